//! Measured costs of memory accesses, by warp and instruction, from the actual addresses of the
//! lanes.
//!
//! The compiler's analyses predict the same costs for accesses that they understand, for a warp of
//! a full block, before anything runs (`compiler::analyses::memory`). This module counts addresses
//! and needs no analysis.

use crate::Program;
use crate::code::frame::{FrameRegister, LANES, lanes_of};
use crate::code::{AccessLocation, AccessOp, Inst, MaskSlot, Pc};
use crate::machine::access::AccessAction;
use crate::machine::describe::DescribedTarget;
use crate::machine::observer::Observer;
use crate::machine::{Machine, VALUES, Warp};
use crate::report::{self, Sites};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::analyses::bounds::LaunchParameters;
use kernel_dsl_compiler::ir::{Location, Placement};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a sector of global memory.
const SECTOR: u64 = 32;
/// Bytes of a line of the caches.
const LINE: u64 = 128;
/// Bytes that a bank of shared memory delivers at once.
const BANK: u64 = 4;
/// Banks of shared memory.
const BANKS: u64 = 32;
/// Bytes of a word in the record of stores.
const WORD: u64 = 4;
/// Words of a buffer whose stores are recorded.
const MAX_WORDS: u64 = 1 << 20;
/// Bytes that shared memory delivers at once: a larger request of a warp is served by half or
/// quarter warps.
const AT_ONCE: u64 = BANK * BANKS;

/// The memory costs of a launch.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemoryProfile {
    /// The accesses that were executed, in the order of the code.
    pub accesses: Vec<ProfiledAccess>,
    /// The branches and loops that were executed, in the order of the code.
    pub branches: Vec<Branched>,
    /// The active lanes, by line of Rust.
    pub lines: Vec<ProfiledLine>,
    /// Operations on floats in active lanes; a multiplication with addition counts as two.
    pub float_operations: u64,
    /// The blocks that stored to each buffer.
    pub stored: Vec<StoringBlocks>,
    /// The parameters of the launch.
    #[serde(skip)]
    pub launched: LaunchParameters,
}

/// The blocks that stored to a buffer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StoringBlocks {
    /// The parameter.
    pub array: String,
    /// For each word of 4 bytes, the linear index of the block that stored to it last, x fastest;
    /// `None` without a store. Words after the first 2²⁰ are left out.
    pub blocks: Vec<Option<u32>>,
}

/// The lanes' addresses in one request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RequestAddresses {
    /// The block index in x, y, z.
    pub block: [u32; 3],
    /// The warp's index in the block.
    pub warp: u32,
    /// For each lane, the first byte that the lane accesses, counted from the beginning of the
    /// buffer or of the block's shared memory; `None` for an inactive lane.
    pub offsets: [Option<u64>; LANES],
}

/// A branch, or the end of a loop's iteration, in all warps.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Branched {
    /// The location in the kernel's IR.
    #[serde(skip)]
    pub location: Location,
    /// The source location.
    pub place: report::CodeLocation,
    /// Whether the decision belongs to a loop.
    pub looped: bool,
    /// The decisions of warps.
    #[serde(flatten)]
    pub ways: BranchCounts,
}

/// The number of decisions of a warp at a branch, and of those at which its lanes diverged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct BranchCounts {
    /// Decisions with at least one active lane.
    pub decided: u64,
    /// The number of decisions at which the active lanes diverged.
    pub diverged: u64,
}

impl BranchCounts {
    /// Returns the sum of both.
    pub fn plus(self, other: BranchCounts) -> BranchCounts {
        BranchCounts { decided: self.decided + other.decided, diverged: self.diverged + other.diverged }
    }

    /// Returns the fraction of the decisions at which lanes diverged.
    pub fn share(&self) -> f64 {
        self.diverged as f64 / self.decided.max(1) as f64
    }
}

/// The instructions of a line of Rust, in all warps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProfiledLine {
    /// The file.
    pub file: String,
    /// The line number, from 1.
    pub line: u32,
    /// The number of instructions that warps executed.
    pub instructions: u64,
    /// Active lanes, summed over the instructions.
    pub lanes: u64,
}

impl ProfiledLine {
    /// Returns the mean fraction of a warp's lanes that were active.
    pub fn active(&self) -> f64 {
        self.lanes as f64 / (LANES as u64 * self.instructions.max(1)) as f64
    }
}

/// An access of the code, in all warps.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProfiledAccess {
    /// The location in the kernel's IR.
    #[serde(skip)]
    pub location: Location,
    /// The source location.
    pub place: report::CodeLocation,
    /// The kind of the access.
    pub kind: RequestKind,
    /// The array or parameter; `None` if it was not always the same.
    pub array: Option<String>,
    /// Bytes that a lane accesses.
    pub bytes: u32,
    /// The memory and the cost of the requests.
    #[serde(flatten)]
    pub counts: RequestCounts,
    /// The bytes touched; `None` if the buffer or array was not always the same.
    pub touched: Option<TouchedBytes>,
    /// The lanes of the request [`RequestCounts::fullest`].
    pub sample: RequestAddresses,
}

/// The range of bytes touched in a buffer or array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TouchedBytes {
    /// The first byte, counted from the beginning of the buffer or array.
    pub first: u64,
    /// The end of the last byte.
    pub end: u64,
    /// The size of the buffer or array in bytes; `None` for an array whose size the launch
    /// determines.
    pub of: Option<u64>,
}

impl TouchedBytes {
    /// Returns the union of both ranges, which belong to one buffer or array.
    pub fn union(self, other: TouchedBytes) -> TouchedBytes {
        TouchedBytes { first: self.first.min(other.first), end: self.end.max(other.end), of: self.of }
    }
}

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum RequestKind {
    Load,
    Store,
    Atomic,
}

/// The cost of the requests of an access. The accesses of a warp's active lanes in one instruction
/// form one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct RequestCounts {
    /// The accessed memory.
    pub memory: RequestMemory,
    /// Requests with at least one lane.
    pub requests: u64,
    /// Active lanes, summed over the requests.
    pub lanes: u64,
    /// The total cost of all requests.
    pub cost: u64,
    /// The cost of the most expensive request.
    pub most: u32,
    /// Bytes requested, summed over the requests; a byte that several lanes of a request access
    /// counts once.
    pub used: u64,
    /// Lines of 128 bytes that were touched, for global memory.
    pub lines: u64,
    /// Requests whose lanes all had the same address.
    pub together: u64,
    /// The worst request among those with the most active lanes: for a full block, a request that
    /// the compiler's analyses predict.
    pub fullest: Request,
}

/// A request of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Request {
    /// The number of active lanes.
    pub lanes: u32,
    /// The cost of the request.
    pub cost: u32,
    /// The least cost of a request of the same size in bytes.
    pub least: u32,
    /// Bytes that the lanes requested, each counted once.
    pub used: u32,
    /// Lines of 128 bytes that the request touched, for global memory.
    pub lines: u32,
}

/// The memory, which also determines the unit of cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestMemory {
    /// Global memory: sectors of 32 bytes that are touched.
    Global,
    /// Distinct words that the request needs from the busiest of the 32 banks: 1 is free of
    /// conflicts.
    Shared,
    /// Constant memory: distinct words that lanes read, served one after the other.
    Constant,
}

impl Request {
    /// Returns whether this request represents the access better: by the number of lanes, then by
    /// the excess over the least cost.
    pub fn outweighs(self, other: Request) -> bool {
        let excess = |a: Request, b: Request| u64::from(a.cost) * u64::from(b.least);
        (self.lanes, excess(self, other)) > (other.lanes, excess(other, self))
    }
}

impl RequestCounts {
    fn one(memory: RequestMemory, request: Request) -> RequestCounts {
        let Request { lanes, cost, used, lines, .. } = request;
        let [used, lines] = [used, lines].map(u64::from);
        let (lanes, fullest) = (lanes.into(), request);
        RequestCounts { memory, requests: 1, lanes, cost: cost.into(), most: cost, used, lines, together: 0, fullest }
    }

    /// Returns the mean cost of a request.
    pub fn mean(&self) -> f64 {
        self.cost as f64 / self.requests.max(1) as f64
    }

    /// Returns the mean fraction of a warp's lanes that were active.
    pub fn active(&self) -> f64 {
        self.lanes as f64 / (LANES as u64 * self.requests.max(1)) as f64
    }

    /// Returns the fraction of the transferred bytes that were requested, for global memory.
    pub fn efficiency(&self) -> Option<f64> {
        (self.memory == RequestMemory::Global).then(|| self.used as f64 / (SECTOR * self.cost.max(1)) as f64)
    }

    /// Returns the sum of both.
    pub fn plus(self, other: RequestCounts) -> RequestCounts {
        RequestCounts {
            memory: self.memory,
            requests: self.requests + other.requests,
            lanes: self.lanes + other.lanes,
            cost: self.cost + other.cost,
            most: self.most.max(other.most),
            used: self.used + other.used,
            lines: self.lines + other.lines,
            together: self.together + other.together,
            fullest: if other.fullest.outweighs(self.fullest) { other.fullest } else { self.fullest },
        }
    }
}

/// The counters of a running launch. A copy that bypasses the registers counts as two accesses, a
/// load and a store.
#[derive(Default)]
pub(crate) struct Counters {
    accesses: BTreeMap<(Pc, RequestKind), AccessCounter>,
    branches: BTreeMap<Pc, BranchCounts>,
    /// The lanes that had left a loop by its previous iteration, while other lanes continue. The
    /// key is the instruction at the loop's end and the warp.
    left: BTreeMap<(Pc, u32), u32>,
    /// By instruction, the number of executions and the sum of active lanes.
    run: Vec<(u64, u64)>,
    /// By buffer, its name and the block that stored to each word last.
    stored: BTreeMap<usize, StoringBlocks>,
}

/// The counter of one access.
struct AccessCounter {
    array: Option<String>,
    bytes: u32,
    counts: RequestCounts,
    touched: TouchedBytes,
    sample: RequestAddresses,
}

impl Observer for Counters {
    /// Counts the instruction at `site`.
    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        self.count_active_lanes(machine, site, mask);
        self.branch(machine, site, warp, mask);
        let code = &machine.program.code;
        let truth = |row: Option<u32>| row.map_or(u32::MAX, |row| machine.simd.truth(&warp.rows, row));
        match code.insts[site as usize] {
            Inst::Load(i) => self.count(machine, site, warp, mask, &code.accesses[i as usize], AccessAction::Load),
            Inst::Store(i) => self.count(machine, site, warp, mask, &code.accesses[i as usize], AccessAction::Store),
            Inst::Atomic(i) => self.count(
                machine,
                site,
                warp,
                mask,
                &code.atomics[i as usize].access,
                AccessAction::of(code.atomics[i as usize].operation),
            ),
            Inst::CopyAsync(i) => {
                let copy = &code.copies[i as usize];
                let stored = mask & truth(copy.guard);
                let loaded = stored & truth(copy.inside);
                self.count(machine, site, warp, loaded, &copy.from, AccessAction::Load);
                self.count(machine, site, warp, stored, &copy.to, AccessAction::Store);
            }
            _ => {}
        }
    }
}

impl Counters {
    /// Counts the lanes of an instruction, except for markers of control flow.
    fn count_active_lanes(&mut self, machine: &Machine<'_, '_>, site: Pc, mask: u32) {
        let insts = &machine.program.code.insts;
        let marks = matches!(
            insts[site as usize],
            Inst::Else { .. } | Inst::EndIf { .. } | Inst::Enter { .. } | Inst::EnterFor { .. } | Inst::Leave { .. }
        );
        if mask == 0 || marks || matches!(insts[site as usize], Inst::DbgValue(_) | Inst::LifetimeStart { .. }) {
            return;
        }
        self.run.resize(insts.len(), (0, 0));
        let (times, lanes) = &mut self.run[site as usize];
        *times += 1;
        *lanes += u64::from(mask.count_ones());
    }

    /// Counts an iteration of a loop that ends at `site`. Lanes diverge there if some leave the
    /// loop in this iteration and others continue.
    fn iteration(&mut self, site: Pc, warp: &Warp, slot: MaskSlot, mask: u32) {
        let on = mask | slot.pending;
        let before = self.left.remove(&(site, warp.index)).unwrap_or(0);
        // Lanes that have left stay out while others continue. If one of them is active again, a
        // new execution of the loop has begun.
        let left = if before & !slot.done == 0 { slot.done & !before } else { slot.done };
        if on != 0 {
            self.left.insert((site, warp.index), slot.done);
        }
        if on | left != 0 {
            let ways = self.branches.entry(site).or_default();
            *ways = ways.plus(BranchCounts { decided: 1, diverged: (on != 0 && left != 0).into() });
        }
    }

    /// Counts the decision of the instruction at `site`, if lanes may diverge there.
    fn branch(&mut self, machine: &Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        let (active, on) = match machine.program.code.insts[site as usize] {
            Inst::If { condition, .. } => (mask, machine.simd.truth(&warp.rows, condition)),
            Inst::Test { ty, index, limit, .. } => (mask, continuing_lanes(warp, ty, [index, limit], None)),
            Inst::Step { ty, slot, index, step, limit, .. } => {
                let active = mask | warp.slots[slot as usize].pending;
                (active, continuing_lanes(warp, ty, [index, limit], Some(step)))
            }
            Inst::StepUniform { slot, index, step, limit, .. } => {
                let active = mask | warp.slots[slot as usize].pending;
                (active, continuing_lanes(warp, Scalar::U32, [index, limit], Some(step)))
            }
            Inst::Again { slot, .. } => return self.iteration(site, warp, warp.slots[slot as usize], mask),
            _ => return,
        };
        if active != 0 {
            let diverged = active & on != 0 && active & !on != 0;
            let ways = self.branches.entry(site).or_default();
            *ways = ways.plus(BranchCounts { decided: 1, diverged: diverged.into() });
        }
    }

    fn count(
        &mut self,
        machine: &mut Machine<'_, '_>,
        site: Pc,
        warp: &Warp,
        mask: u32,
        access: &AccessOp,
        action: AccessAction,
    ) {
        let active = machine.guarded(warp, mask, access);
        let (address, mut rest) = machine.addresses::<VALUES>(site, warp, active, access);
        let kind = match action {
            AccessAction::Load => RequestKind::Load,
            AccessAction::Store | AccessAction::MarkUndef => RequestKind::Store,
            AccessAction::Atomic | AccessAction::AtomicLoad | AccessAction::AtomicStore => RequestKind::Atomic,
        };
        while rest != 0 {
            let part = machine.part::<VALUES>(site, warp, &mut rest, &address, access);
            let Some(first) = lanes_of(part.lanes).next() else { continue };
            let name = machine.object(part.target, part.offset[first], access).name;
            let touched = machine.touched(&part, access);
            let at = || lanes_of(part.lanes).map(|lane| (lane, address[lane]));
            let bytes = access.bytes();
            let memory = match part.target {
                DescribedTarget::Shared => RequestMemory::Shared,
                DescribedTarget::Buffer(buffer) if machine.is_constant(buffer) => RequestMemory::Constant,
                DescribedTarget::Buffer(_) => RequestMemory::Global,
            };
            let requested = RequestedBytes::of(at().map(|(_, a)| a), bytes);
            let used = requested.count();
            let (cost, least, lines) = match memory {
                RequestMemory::Shared => (busiest(at(), bytes, !action.is_atomic()), 1, 0),
                RequestMemory::Constant => (distinct(at().map(|(_, a)| a / u64::from(bytes.max(4)))), 1, 0),
                RequestMemory::Global => {
                    (requested.pieces(SECTOR), used.div_ceil(SECTOR as u32), requested.pieces(LINE))
                }
            };
            let one = at().map(|(_, a)| a).all(|a| a == address[first]);
            let request = Request { lanes: part.lanes.count_ones(), cost, least, used, lines };
            let counts = RequestCounts { together: one.into(), ..RequestCounts::one(memory, request) };
            if let (DescribedTarget::Buffer(buffer), false) = (part.target, action == AccessAction::Load) {
                self.store(machine, buffer, &name, lanes_of(part.lanes).map(|lane| part.offset[lane]), bytes);
            }
            let sample = || RequestAddresses {
                block: machine.block,
                warp: warp.index,
                offsets: std::array::from_fn(|lane| (part.lanes >> lane & 1 == 1).then(|| part.offset[lane])),
            };
            match self.accesses.get_mut(&(site, kind)) {
                Some(counter) => {
                    if request.outweighs(counter.counts.fullest) {
                        counter.sample = sample();
                    }
                    counter.array = counter.array.take().filter(|array| *array == name);
                    counter.counts = counter.counts.plus(counts);
                    counter.touched = counter.touched.union(touched);
                }
                None => {
                    let sample = sample();
                    let counter = AccessCounter { array: Some(name), bytes: access.bytes(), counts, touched, sample };
                    self.accesses.insert((site, kind), counter);
                }
            }
        }
    }

    /// Records the running block as the last to store `bytes` bytes at each of `offsets`.
    fn store(
        &mut self,
        machine: &Machine<'_, '_>,
        buffer: usize,
        name: &str,
        offsets: impl Iterator<Item = u64>,
        bytes: u32,
    ) {
        let [x, y, z] = machine.block;
        let [columns, rows, _] = machine.setting.grid.blocks;
        let block = (z * rows + y) * columns + x;
        let new = || StoringBlocks { array: name.to_string(), blocks: Vec::new() };
        let words = &mut self.stored.entry(buffer).or_insert_with(new).blocks;
        for offset in offsets {
            let end = offset.saturating_add(bytes.into()).div_ceil(WORD).min(MAX_WORDS) as usize;
            let first = ((offset / WORD) as usize).min(end);
            if words.len() < end {
                words.resize(end, None);
            }
            words[first..end].fill(Some(block));
        }
    }

    /// Returns the counts by source location.
    pub fn profile(self, program: &Program, launched: LaunchParameters) -> MemoryProfile {
        let locations = &program.code.locations;
        let accessed = |((site, kind), counter): ((Pc, RequestKind), AccessCounter)| {
            let AccessCounter { array, bytes, counts, touched, sample } = counter;
            let (location, place) = (locations[site as usize], program.place(site));
            let touched = array.is_some().then_some(touched);
            ProfiledAccess { location, place, kind, array, bytes, counts, touched, sample }
        };
        let branched = |(site, ways): (Pc, BranchCounts)| {
            let looped = !matches!(program.code.insts[site as usize], Inst::If { .. });
            Branched { location: locations[site as usize], place: program.place(site), looped, ways }
        };
        let mut lines: BTreeMap<(String, u32), (u64, u64)> = BTreeMap::new();
        let mut float_operations = 0;
        for (site, (times, lanes)) in self.run.into_iter().enumerate().filter(|(_, (times, _))| *times > 0) {
            let report::CodeLocation { file, line, .. } = program.place(site as Pc);
            let all = lines.entry((file, line)).or_default();
            *all = (all.0 + times, all.1 + lanes);
            float_operations += lanes * operations(&program.code.insts[site]);
        }
        let line = |((file, line), (instructions, lanes))| ProfiledLine { file, line, instructions, lanes };
        MemoryProfile {
            accesses: self.accesses.into_iter().map(accessed).collect(),
            branches: self.branches.into_iter().map(branched).collect(),
            lines: lines.into_iter().map(line).collect(),
            float_operations,
            stored: self.stored.into_values().collect(),
            launched,
        }
    }
}

/// Returns the number of operations on floats of a lane in `inst`. Sign changes and casts do not
/// count.
fn operations(inst: &Inst) -> u64 {
    match inst {
        Inst::MulAdd { ty, .. } if ty.is_float() => 2,
        Inst::Binary { ty, .. } | Inst::CheckedBinary { ty, .. } if ty.is_float() => 1,
        Inst::Approximate { .. } => 1,
        _ => 0,
    }
}

/// Returns the lanes whose current or next index is below the limit.
fn continuing_lanes(warp: &Warp, ty: Scalar, [index, limit]: [u32; 2], step: Option<u32>) -> u32 {
    let at = |row: u32, lane: usize| {
        let bits = FrameRegister { row, wide: ty.bits() == 64 }.get(&warp.rows, lane);
        let unused = 64 - ty.bits();
        match ty.is_signed() {
            true => i128::from((bits << unused) as i64 >> unused),
            false => i128::from(bits & ty.mask()),
        }
    };
    let next = |lane: usize| at(index, lane) + step.map_or(0, |step| at(step, lane));
    (0..LANES).filter(|lane| next(*lane) < at(limit, *lane)).fold(0, |mask, lane| mask | 1 << lane)
}

impl Machine<'_, '_> {
    /// Returns the range of bytes that the lanes of an access touch.
    fn touched(&self, part: &crate::machine::address::TargetLanes, access: &AccessOp) -> TouchedBytes {
        let offsets = || lanes_of(part.lanes).map(|lane| part.offset[lane]);
        let (first, last) = (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0));
        let (start, of) = match (part.target, &access.place) {
            (DescribedTarget::Buffer(buffer), _) => (0, Some(self.buffers[buffer].bytes.get().len() as u64)),
            (DescribedTarget::Shared, AccessLocation::Shared { array, .. }) => {
                let array = &self.program.shared[*array as usize];
                (array.offset.into(), Some(array.bytes().into()))
            }
            (DescribedTarget::Shared, AccessLocation::Dynamic { array: Some(array), .. }) => {
                (self.setting.dynamic[*array as usize].into(), None)
            }
            (DescribedTarget::Shared, _) => (0, None),
        };
        let end = last.saturating_add(access.bytes().into()).saturating_sub(start);
        TouchedBytes { first: first.saturating_sub(start), end, of }
    }

    /// Returns whether buffer number `buffer` is a table in constant memory. Tables are the last
    /// buffers.
    fn is_constant(&self, buffer: usize) -> bool {
        let tables = &self.program.tables;
        let table = (buffer + tables.len()).checked_sub(self.buffers.len()).and_then(|table| tables.get(table));
        table.is_some_and(|(table, _)| table.placement == Placement::Constant)
    }
}

/// Returns the number of distinct values.
fn distinct(numbers: impl Iterator<Item = u64>) -> u32 {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len() as u32
}

/// Bytes that a request needs, as ascending ranges that do not overlap.
struct RequestedBytes(Vec<Range<u64>>);

impl RequestedBytes {
    /// Returns the bytes of accesses of `bytes` bytes.
    fn of(addresses: impl Iterator<Item = u64>, bytes: u32) -> RequestedBytes {
        let mut starts: Vec<u64> = addresses.collect();
        starts.sort_unstable();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for start in starts {
            let end = start + u64::from(bytes);
            match ranges.last_mut() {
                Some(last) if start <= last.end => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        RequestedBytes(ranges)
    }

    /// Returns the number of bytes.
    fn count(&self) -> u32 {
        self.0.iter().map(|range| range.end - range.start).sum::<u64>() as u32
    }

    /// Returns the number of pieces of `size` bytes that contain these bytes.
    fn pieces(&self, size: u64) -> u32 {
        // Two ranges may share a piece.
        let (mut count, mut next) = (0, 0);
        for range in &self.0 {
            let end = range.end.div_ceil(size);
            count += end - (range.start / size).max(next);
            next = end;
        }
        count as u32
    }
}

/// Returns the number of distinct words that the lanes need from the busiest bank. Lanes that
/// access one word are served together if `merged`. Accesses of 8 and 16 bytes are served by half
/// and quarter warps.
fn busiest(lanes: impl Iterator<Item = (usize, u64)>, bytes: u32, merged: bool) -> u32 {
    let bytes = u64::from(bytes.clamp(1, 16));
    let at_once = (AT_ONCE / bytes.max(BANK)) as usize;
    // The lanes that are served at once, the bank, and the word.
    let mut words: Vec<(usize, u64, u64)> = lanes
        .flat_map(|(lane, address)| {
            let words = address / BANK..=(address + bytes - 1) / BANK;
            words.map(move |word| (lane / at_once, word % BANKS, word))
        })
        .collect();
    words.sort_unstable();
    if merged {
        words.dedup();
    }
    let of_bank = words.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    of_bank.map(|words| words.len() as u32).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_have_32_bytes_and_lines_128() {
        let of = |f: fn(u64) -> u64, bytes| {
            let requested = RequestedBytes::of((0..32).map(f), bytes);
            (requested.pieces(SECTOR), requested.count(), requested.pieces(LINE))
        };
        assert_eq!(of(|l| 4 * l, 4), (4, 128, 1));
        assert_eq!(of(|l| 4 * l + 4, 4), (5, 128, 2));
        assert_eq!(of(|l| 128 * l, 4), (32, 128, 32));
        assert_eq!(of(|_| 30, 4), (2, 4, 1));
        assert_eq!(of(|l| 16 * l, 16), (16, 512, 4));
        assert_eq!(of(|l| 2 * (31 - l), 4), (3, 66, 1), "descending addresses that overlap");
        assert_eq!(of(|l| 48 * l, 4), (32, 128, 12), "several ranges in a line");
        assert_eq!(of(|l| 20 * l, 4), (20, 128, 5), "two ranges in a sector");
    }

    #[test]
    fn banks_have_4_bytes() {
        let of = |f: fn(u64) -> u64, bytes, merged| busiest((0..32).map(|l| (l as usize, f(l))), bytes, merged);
        assert_eq!(of(|l| 4 * l, 4, true), 1);
        assert_eq!(of(|l| 8 * l, 4, true), 2);
        assert_eq!(of(|l| 128 * l, 4, true), 32);
        assert_eq!(of(|_| 64, 4, true), 1, "one word for all");
        assert_eq!(of(|_| 64, 4, false), 32, "atomic operations take turns");
        assert_eq!(of(|l| 8 * l, 8, true), 1, "a half of a warp at once");
        assert_eq!(of(|l| 16 * l, 16, true), 1, "a quarter of a warp at once");
        assert_eq!(of(|l| 32 * l, 16, true), 2);
        assert_eq!(of(|l| l, 1, true), 1, "bytes of one word");
    }
}
