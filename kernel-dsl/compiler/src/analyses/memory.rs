//! The cost of memory accesses: bank conflicts and sectors.
//!
//! Shared memory has 32 banks of 4 bytes. A bank serves one word at a time, so lanes that access
//! different words of a bank are serialized. Global memory moves sectors of 32 bytes: the access of
//! a warp costs as many sectors as it touches. Constant memory serves one location of a warp at a
//! time. Local memory interleaves the arrays of the lanes word by word: word w of lane l is at 4 ·
//! (32 · w + l). So lanes that use one index share sectors.

use super::lanes::{self, LANES, LaneValues, Lanes, Numbers};
use super::uniformity::{UniformScope, Uniformity};
use crate::ir::*;
use crate::scalar::Scalar;
use serde::Serialize;
use std::collections::HashSet;

/// Size of a sector in bytes.
pub const SECTOR: i64 = 32;
/// Number of sectors in a cache line.
const LINE: i64 = 4;
/// Number of banks of shared memory.
const BANKS: usize = 32;
/// Bytes that shared memory delivers in one transaction.
const MAX_TRANSACTION_BYTES: u32 = 128;

/// Access to memory, or several accesses of one source location.
#[derive(Clone, PartialEq, Debug)]
pub struct AccessSite {
    /// Location of the access.
    pub location: Location,
    /// Load, store or atomic operation.
    pub kind: AccessKind,
    /// Name of the shared array, the table, or the kernel's parameter, if known.
    pub array: Option<String>,
    /// Bytes accessed per lane.
    pub bytes: u32,
    /// Number of instructions at the location.
    pub count: u32,
    /// Number of enclosing loops that are not unrolled.
    pub loops: u32,
    /// Cost of the access; `None` if the addresses of the lanes are not understood.
    pub cost: Option<Cost>,
    /// Widest scope whose threads are proven to use one address, if they reach the access together.
    pub address: UniformScope,
}

/// Operation of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

/// Cost of an access for a warp, in the worst warp of the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    /// An access to shared memory.
    Shared {
        /// Accesses to the busiest bank per 128 bytes: 1 is free of conflicts.
        ways: u32,
    },
    /// An access to global memory.
    Global {
        /// Number of touched sectors, for buffers aligned to a sector. A first byte with unknown
        /// alignment is assumed to be aligned.
        sectors: u32,
        /// Minimum number of sectors that hold the bytes.
        least: u32,
        /// Number of 128-byte lines that contain the sectors, for buffers aligned to a line.
        lines: u32,
        /// Number of distinct bytes requested; the transfer is `sectors` · 32 bytes.
        used: u32,
    },
    /// An access to constant memory.
    Constant {
        /// Number of distinct locations that a warp reads, one after another. If the addresses are
        /// not understood, the maximum possible number.
        words: u32,
    },
    /// An access to an array in local memory.
    Local {
        /// Number of touched sectors; the maximum possible number if the indices are not
        /// understood.
        sectors: u32,
        /// Number of sectors if all lanes use one index.
        least: u32,
    },
}

impl Cost {
    /// Returns the cost as a multiple of the minimum.
    fn excess(self) -> f64 {
        match self {
            Cost::Shared { ways } => f64::from(ways),
            Cost::Constant { words } => f64::from(words),
            Cost::Global { sectors, least, .. } | Cost::Local { sectors, least } => {
                f64::from(sectors) / f64::from(least.max(1))
            }
        }
    }
}

/// Returns the accesses of `kernel`, in the order in which their locations first appear. The kernel
/// must still contain places: IR as lowered, or [`with_places`](crate::passes::with_places).
pub fn accesses(kernel: &Kernel) -> Vec<AccessSite> {
    let origins = origins(kernel);
    let uniformity = Uniformity::new(kernel);
    let mut sites: Vec<AccessSite> = Vec::new();
    let all = kernel.block.most_threads();
    for warp in 0..all.div_ceil(LANES as u32) {
        let threads = all - warp * LANES as u32;
        let active = if threads >= LANES as u32 { u32::MAX } else { (1 << threads) - 1 };
        let mut found = Vec::new();
        let walk = AccessWalk { kernel, origins: &origins, uniformity: &uniformity, lanes: &Lanes::of(kernel, warp) };
        walk.region(&kernel.body, active, 0, &mut found);
        match warp {
            0 => sites = found,
            _ => sites.iter_mut().zip(found).for_each(|(site, other)| site.cost = worse(site.cost, other.cost)),
        }
    }
    let mut merged: Vec<AccessSite> = Vec::new();
    for site in sites {
        let key = |s: &AccessSite| (s.location, s.kind, s.bytes, s.array.clone());
        match merged.iter_mut().find(|s| key(s) == key(&site)) {
            Some(first) => {
                first.count += site.count;
                first.loops = first.loops.max(site.loops);
                first.cost = worse(first.cost, site.cost);
                first.address = first.address.max(site.address);
            }
            None => merged.push(site),
        }
    }
    merged
}

/// Returns the worse of two costs. An unknown cost is worst.
fn worse(a: Option<Cost>, b: Option<Cost>) -> Option<Cost> {
    let (a, b) = (a?, b?);
    Some(if b.excess() > a.excess() { b } else { a })
}

/// Returns whether the kernel may read memory that it may write. A second launch on the results of
/// the first may then differ, and may even wait forever. The kernel must be as lowered.
pub fn may_read_written_memory(kernel: &Kernel) -> bool {
    let origins = origins(kernel);
    let may_be_written = |place: &AccessPlace| match place {
        AccessPlace::Global { base, .. } | AccessPlace::Address { base, .. } => match origins[base.0 as usize] {
            Some(AddressOrigin::Parameter(i)) => {
                matches!(kernel.parameters[i as usize].role, Role::Address { mutable: true, .. })
            }
            Some(AddressOrigin::Dynamic(_) | AddressOrigin::Table(_)) => false,
            None => true,
        },
        AccessPlace::Dynamic { .. } | AccessPlace::Shared { .. } => false,
    };
    fn any(region: &Region, reads: &dyn Fn(&Op) -> bool) -> bool {
        region.insts.iter().any(|inst| reads(&inst.op) || inst.op.regions().into_iter().any(|r| any(r, reads)))
    }
    any(&kernel.body, &|op| match op {
        Op::Load { place, .. } | Op::Atomic { place, .. } => may_be_written(place),
        Op::CopyAsync(copy) => may_be_written(&copy.from),
        _ => false,
    })
}

/// Memory that an address points into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AddressOrigin {
    /// The kernel's parameter with this index.
    Parameter(u32),
    /// A shared array whose size the launch evaluates.
    Dynamic(DynamicId),
    /// A constant table.
    Table(TableId),
}

/// Returns the origin of each address.
pub(super) fn origins(kernel: &Kernel) -> Vec<Option<AddressOrigin>> {
    fn walk(region: &Region, origins: &mut Vec<Option<AddressOrigin>>) {
        for inst in &region.insts {
            let carried = |inits: &[Value], to: &[Value], origins: &mut Vec<Option<AddressOrigin>>| {
                to.iter().zip(inits).for_each(|(t, i)| origins[t.0 as usize] = origins[i.0 as usize]);
            };
            match &inst.op {
                Op::Parameter(i) => origins[inst.results[0].0 as usize] = Some(AddressOrigin::Parameter(*i)),
                Op::Table(table) => origins[inst.results[0].0 as usize] = Some(AddressOrigin::Table(*table)),
                Op::Dynamic { array, .. } => origins[inst.results[0].0 as usize] = Some(AddressOrigin::Dynamic(*array)),
                Op::Offset { base, .. } => origins[inst.results[0].0 as usize] = origins[base.0 as usize],
                Op::For(l) => carried(&l.inits, l.body.parameters.get(1..).unwrap_or_default(), origins),
                Op::Loop { inits, body, .. } => carried(inits, &body.parameters, origins),
                _ => {}
            }
            inst.op.regions().into_iter().for_each(|r| walk(r, origins));
        }
    }
    let mut origins = vec![None; kernel.values.len()];
    walk(&kernel.body, &mut origins);
    origins
}

/// Returns the name of the accessed memory.
pub(super) fn name(kernel: &Kernel, origins: &[Option<AddressOrigin>], place: &AccessPlace) -> Option<String> {
    match place {
        AccessPlace::Shared { array, .. } => Some(kernel.shared[array.0 as usize].name.clone()),
        AccessPlace::Global { base, .. } | AccessPlace::Dynamic { base, .. } | AccessPlace::Address { base, .. } => {
            origins[base.0 as usize].map(|origin| match origin {
                AddressOrigin::Parameter(i) => kernel.parameters[i as usize].name.clone(),
                AddressOrigin::Dynamic(id) => kernel.dynamic[id.0 as usize].name.clone(),
                AddressOrigin::Table(id) => kernel.tables[id.0 as usize].name.clone(),
            })
        }
    }
}

struct AccessWalk<'k> {
    kernel: &'k Kernel,
    origins: &'k [Option<AddressOrigin>],
    uniformity: &'k Uniformity<'k>,
    lanes: &'k Lanes,
}

impl AccessWalk<'_> {
    fn region(&self, region: &Region, active: u32, loops: u32, found: &mut Vec<AccessSite>) {
        for inst in &region.insts {
            if let Op::CopyAsync(copy) = &inst.op {
                let holds = |v: Option<Value>| v.and_then(|v| self.holding(v)).unwrap_or(u32::MAX);
                let stored = active & holds(copy.guard);
                let loaded = stored & holds(copy.inside);
                for (kind, place, active) in
                    [(AccessKind::Load, &copy.from, loaded), (AccessKind::Store, &copy.to, stored)]
                {
                    let bytes = copy.size();
                    let cost = self.cost(place, copy.element, WarpRequest { active, bytes, merged: true });
                    let (location, array) = (inst.location, name(self.kernel, self.origins, place));
                    let address = self.uniformity.scope_of_place(place);
                    found.push(AccessSite { location, kind, array, bytes, count: 1, loops, cost, address });
                }
                continue;
            }
            let access = match &inst.op {
                Op::Load { place, element, guard, .. } => {
                    Some((AccessKind::Load, place, *element, inst.results.len(), guard.as_ref().map(|g| g.condition)))
                }
                Op::Store { place, element, values, guard } => {
                    Some((AccessKind::Store, place, *element, values.len(), *guard))
                }
                Op::ReadLocal { local, index } | Op::WriteLocal { local, index, .. } => {
                    let array = &self.kernel.locals[local.0 as usize];
                    if array.memory {
                        let load = matches!(inst.op, Op::ReadLocal { .. });
                        found.push(AccessSite {
                            location: inst.location,
                            kind: if load { AccessKind::Load } else { AccessKind::Store },
                            array: Some(array.name.clone()),
                            bytes: array.element_bytes(),
                            count: 1,
                            loops,
                            cost: Some(self.local(array, *index)),
                            address: index.map_or(UniformScope::Grid, |index| self.uniformity.scope_of(index)),
                        });
                    }
                    continue;
                }
                Op::Atomic { place, element, .. } => Some((AccessKind::Atomic, place, *element, 1, None)),
                Op::If { condition, then, otherwise } => {
                    let holds = self.holding(*condition);
                    self.region(then, active & holds.unwrap_or(u32::MAX), loops, found);
                    self.region(otherwise, active & holds.map_or(u32::MAX, |h| !h), loops, found);
                    continue;
                }
                op => {
                    let around = u32::from(matches!(op, Op::For(_) | Op::Loop { .. }));
                    op.regions().into_iter().for_each(|r| self.region(r, active, loops + around, found));
                    continue;
                }
            };
            if let Some((kind, place, element, width, guard)) = access {
                let active = active & guard.and_then(|g| self.holding(g)).unwrap_or(u32::MAX);
                let bytes = element.bytes() * width as u32;
                let cost = self.cost(place, element, WarpRequest { active, bytes, merged: kind != AccessKind::Atomic });
                let array = name(self.kernel, self.origins, place);
                let (location, address) = (inst.location, self.uniformity.scope_of_place(place));
                found.push(AccessSite { location, kind, array, bytes, count: 1, loops, cost, address });
            }
        }
    }

    fn cost(&self, place: &AccessPlace, element: Scalar, request: WarpRequest) -> Option<Cost> {
        let (unit, within) = (place.unit(element), self.lanes.offset_within_element(place.element_offset()));
        match place {
            AccessPlace::Shared { array, indices, .. } => self.shared(*array, indices, within, request),
            AccessPlace::Dynamic { base, dims, .. } => {
                let (address, rows) = self.address(*base, dims, unit, within)?;
                // The first bank of a row is unknown if the pitch is unknown.
                let one_row = rows.iter().all(|row| row.iter().all(|x| *x == row[0]));
                one_row.then_some(Cost::Shared { ways: request.ways(&address.relative()?) })
            }
            AccessPlace::Global { base, dims, .. } => {
                let (address, rows) = self.address(*base, dims, unit, within)?;
                if self.kernel.ty(*base) == Type::Constant {
                    return self.constant(*base, address, request);
                }
                let aligned = address.multiple().is_multiple_of(SECTOR as u64);
                Some(sectors(&address.relative()?, &rows, request.active, request.bytes, aligned))
            }
            AccessPlace::Address { .. } => None,
        }
    }

    fn local(&self, array: &Local, index: Option<Value>) -> Cost {
        let (bytes, lanes_a_sector) = (array.element_bytes(), SECTOR as usize / 4);
        let words = bytes.div_ceil(4);
        let least = words * (LANES / lanes_a_sector) as u32;
        let rows = index.and_then(|index| self.lanes.get(index).relative());
        let sectors = match (rows, index) {
            (_, None) => least,
            (_, Some(index)) if self.uniformity.scope_of(index) <= UniformScope::Warp => least,
            (Some(rows), _) => {
                let touched: HashSet<_> = (0..LANES).map(|lane| (rows[lane], lane / lanes_a_sector)).collect();
                words * touched.len() as u32
            }
            (None, _) => {
                let all = array.bytes().div_ceil(4) * (LANES / lanes_a_sector) as u32;
                all.min(words * LANES as u32)
            }
        };
        Cost::Local { sectors, least }
    }

    fn constant(&self, base: Value, address: LaneValues, request: WarpRequest) -> Option<Cost> {
        if let Some(addresses) = address.relative() {
            return Some(Cost::Constant { words: words(&addresses, request.active, request.bytes) });
        }
        // Unless the kernel chose the placement, the compiler uses constant memory only for tables
        // with uniform indices. This analysis may fail to prove uniformity.
        let Some(AddressOrigin::Table(id)) = self.origins[base.0 as usize] else { return None };
        let table = self.kernel.table(id).filter(|t| t.placement == Placement::Constant)?;
        Some(Cost::Constant { words: (table.bytes / request.bytes.max(1)).min(LANES as u32) })
    }

    /// Returns the lanes in which a condition holds, if it is known in each.
    fn holding(&self, condition: Value) -> Option<u32> {
        match self.lanes.get(condition) {
            LaneValues::Exact(lanes) => Some((0..LANES).filter(|l| lanes[*l] != 0).fold(0, |m, l| m | 1 << l)),
            _ => None,
        }
    }

    fn shared(&self, array: SharedId, indices: &[Value], within: LaneValues, request: WarpRequest) -> Option<Cost> {
        let array = &self.kernel.shared[array.0 as usize];
        let size = array.element.bytes();
        let terms = indices.iter().zip(&array.strides).map(|(index, stride)| (*index, stride.saturating_mul(size)));
        let place = self.lanes.sum(within, terms);
        let (addresses, offset) = (place.relative()?, i64::from(array.offset));
        let (Some(swizzle), [.., row, _]) = (array.swizzle(), indices) else {
            return Some(Cost::Shared { ways: request.ways(&addresses.map(|a| offset + a)) });
        };
        // A common offset moves all lanes by the same number of banks. In a swizzled array, the
        // offset also selects the pieces that are exchanged. So the result is the worst case over
        // all possible offsets.
        let row = self.lanes.get(*row);
        let rows = row.relative()?;
        let (period, span) = (i64::from(swizzle.period()), i64::from(swizzle.mask + 1) * i64::from(Swizzle::PIECE));
        let mut worst = 0;
        for first_row in (0..period).step_by(common(row.multiple(), period)) {
            for first in (0..span).step_by(common(place.multiple(), span)) {
                let address = |l: usize| {
                    let row = (first_row + rows[l]).rem_euclid(period) as u32;
                    offset + ((first + addresses[l]) ^ i64::from(swizzle.bits(row)))
                };
                worst = worst.max(request.ways(&std::array::from_fn(address)));
            }
        }
        Some(Cost::Shared { ways: worst })
    }

    /// Returns the address of an element of `unit` bytes. Dimensions with an unknown stride are
    /// left out, and their indices are returned separately.
    fn address(&self, base: Value, dims: &[Dim], unit: u32, within: LaneValues) -> Option<(LaneValues, [Numbers; 5])> {
        let mut address = lanes::add(self.lanes.get(base), within);
        let mut rows = [[0i64; LANES]; 5];
        for (dim, row) in dims.iter().zip(&mut rows) {
            let stride = match dim.stride.map(|s| self.lanes.get(s)) {
                None => Some(1),
                Some(stride) => stride.constant().and_then(|s| u32::try_from(s).ok()),
            };
            match stride {
                Some(stride) => address = self.lanes.sum(address, [(dim.index, stride.saturating_mul(unit))]),
                None => {
                    let index = self.lanes.get(dim.index);
                    *row = index.relative()?;
                    if index.constant() != Some(0) {
                        // All lanes access one row at a multiple of the element size; other rows
                        // may start anywhere.
                        let zero = row.iter().all(|x| *x == 0);
                        let multiple = if zero { index.multiple().saturating_mul(unit.into()) } else { 1 };
                        address = lanes::add(address, LaneValues::Relative { lanes: [0; LANES], multiple });
                    }
                }
            }
        }
        Some((address, rows))
    }
}

/// Request of a warp to memory.
#[derive(Clone, Copy)]
struct WarpRequest {
    /// Active lanes.
    active: u32,
    /// Bytes accessed per lane.
    bytes: u32,
    /// Whether lanes that access one word are served together.
    merged: bool,
}

impl WarpRequest {
    fn ways(self, addresses: &Numbers) -> u32 {
        ways(addresses, self.active, self.bytes, self.merged)
    }
}

/// Returns the step between the distinct remainders of multiples of `multiple` modulo `period`.
fn common(multiple: u64, period: i64) -> usize {
    lanes::gcd(period as u64, multiple).max(1) as usize
}

/// Returns the number of different words that the busiest bank serves, where lane l accesses
/// `bytes` bytes at `addresses[l]`. Accesses of 8 and 16 bytes are split into half and quarter
/// warps. With `merged`, lanes that access one word are served together, as in loads and stores.
/// Atomic operations are serialized.
pub fn ways(addresses: &Numbers, active: u32, bytes: u32, merged: bool) -> u32 {
    let wide = bytes.clamp(4, MAX_VECTOR_BYTES);
    let lanes_at_once = (MAX_TRANSACTION_BYTES / wide) as usize;
    let mut worst = 0;
    for first in (0..LANES).step_by(lanes_at_once) {
        let mut words = Vec::with_capacity(BANKS);
        for lane in (first..first + lanes_at_once).filter(|l| active >> l & 1 == 1) {
            words.extend((0..i64::from(wide / 4)).map(|w| addresses[lane].div_euclid(4) + w));
        }
        words.sort_unstable();
        if merged {
            words.dedup();
        }
        let mut banks = [0u32; BANKS];
        for word in words {
            banks[word.rem_euclid(BANKS as i64) as usize] += 1;
        }
        worst = worst.max(banks.into_iter().max().unwrap_or(0));
    }
    worst
}

/// Returns the number of distinct locations of constant memory that lanes read: the constant cache
/// serves one location at a time.
fn words(addresses: &Numbers, active: u32, bytes: u32) -> u32 {
    let mut all: Vec<i64> =
        (0..LANES).filter(|l| active >> l & 1 == 1).map(|l| addresses[l].div_euclid(bytes.max(4).into())).collect();
    all.sort_unstable();
    all.dedup();
    all.len() as u32
}

/// Returns the cost in sectors of an access of `bytes` bytes per lane. Lanes with different `rows`
/// are far apart.
fn sectors(addresses: &Numbers, rows: &[Numbers; 5], active: u32, bytes: u32, aligned: bool) -> Cost {
    let mut lanes: Vec<usize> = (0..LANES).filter(|l| active >> l & 1 == 1).collect();
    let row = |l: usize| rows.map(|r| r[l]);
    lanes.sort_unstable_by_key(|l| (row(*l), addresses[*l]));
    let (mut sectors, mut filled, mut lines) = (0, 0, 0);
    for group in lanes.chunk_by(|a, b| row(*a) == row(*b)) {
        let start = if aligned { 0 } else { addresses[group[0]] };
        // The first sector, byte and line that are not yet counted.
        let (mut sector, mut byte, mut line) = (i64::MIN, i64::MIN, i64::MIN);
        for lane in group {
            let (first, end) = (addresses[*lane] - start, addresses[*lane] - start + i64::from(bytes));
            let (first_sector, end_sector) = (first.div_euclid(SECTOR), (end - 1).div_euclid(SECTOR) + 1);
            sectors += (end_sector - first_sector.max(sector)).max(0);
            filled += (end - first.max(byte)).max(0);
            let (first_line, end_line) = (first_sector.div_euclid(LINE), (end_sector - 1).div_euclid(LINE) + 1);
            lines += (end_line - first_line.max(line)).max(0);
            (sector, byte, line) = (sector.max(end_sector), byte.max(end), line.max(end_line));
        }
    }
    let least = (filled as u64).div_ceil(SECTOR as u64) as u32;
    Cost::Global { sectors: sectors as u32, least, lines: lines as u32, used: filled as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(f: impl Fn(i64) -> i64) -> Numbers {
        std::array::from_fn(|l| f(l as i64))
    }

    #[test]
    fn bank_conflicts_follow_from_the_stride() {
        let stride = |words: i64| ways(&by(|l| 4 * words * l), u32::MAX, 4, true);
        // Lanes with this stride use 32 / gcd(stride, 32) banks.
        assert_eq!([0, 1, 2, 3, 16, 32, 33].map(stride), [1, 1, 2, 1, 16, 32, 1]);
        assert_eq!(ways(&by(|l| 4 * 32 * l), 0b11, 4, true), 2, "absent lanes make no request");
        assert_eq!(ways(&by(|_| 0), u32::MAX, 4, false), 32, "atomic operations on one word");
        assert_eq!(ways(&by(|l| 16 * l), u32::MAX, 16, true), 1, "a quarter of a warp at once");
        assert_eq!(ways(&by(|l| 8 * l), u32::MAX, 8, true), 1);
        assert_eq!(ways(&by(|l| l), u32::MAX, 1, true), 1, "bytes of one word");
    }

    #[test]
    fn sectors_follow_from_the_stride() {
        let rows = [[0; LANES]; 5];
        let cost = |f: fn(i64) -> i64, bytes, aligned| match sectors(&by(f), &rows, u32::MAX, bytes, aligned) {
            Cost::Global { sectors, least, .. } => (sectors, least),
            _ => unreachable!(),
        };
        assert_eq!(cost(|l| 4 * l, 4, true), (4, 4));
        assert_eq!(cost(|l| 4 * l + 4, 4, true), (5, 4), "across the edge of a sector");
        assert_eq!(cost(|l| 4 * l + 4, 4, false), (4, 4), "who knows where it begins");
        assert_eq!(cost(|l| 8 * l, 4, true), (8, 4));
        assert_eq!(cost(|l| 1024 * l, 4, true), (32, 4));
        assert_eq!(cost(|_| 64, 4, true), (1, 1));
        assert_eq!(cost(|l| 16 * l, 16, true), (16, 16));
    }

    #[test]
    fn rows_share_no_sector() {
        let mut rows = [[0; LANES]; 5];
        rows[0] = by(|l| l / 16);
        let cost = sectors(&by(|l| 4 * (l % 16)), &rows, u32::MAX, 4, false);
        assert_eq!(cost, Cost::Global { sectors: 4, least: 4, lines: 2, used: 128 });
    }
}
