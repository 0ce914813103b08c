//! Where shared arrays lie, and the pitch of those that the compiler is to pad.
//!
//! An array lives from its making to the end of the braces around it. Bytes are given out as a stack is: what was made in braces
//! gives its bytes back at their end, so that arrays of blocks that follow or exclude one another share them. Where an
//! array's bytes were another's, or its own of an earlier iteration, [`Op::Begin`] stays to tell the oracle.
//!
//! Shared memory has 32 banks of 4 bytes; lanes of a warp that ask one bank for different words wait for one another. For
//! each access to a padded array whose index is understood, the indices of the 32 lanes of a warp are worked out
//! relative to a part that all lanes share (which moves all of them from bank to bank alike, and so does not matter).
//! The pitch is the row's length plus the smallest pad with the least sum, over those accesses, of the number of words that
//! the worst bank must give, weighted by 8 for each loop around the access. Pads keep the alignment of the widest
//! access of the machine: with them the pitch is a multiple of its width.

use super::value::Val;
use crate::analyses::lanes::{Lanes, Numbers};
use crate::analyses::memory;
use crate::error::{Error, Errors};
use crate::ir::{Kernel, Location, Op, Place, Region, SHARED_LIMIT, SharedId, WIDEST};
use smallvec::SmallVec;

/// What to do where that is not enough.
pub(super) const WAY_OUT: &str = "use smaller tiles, or keep part of the data in registers";
/// Pads that are tried, in elements: beyond a full turn around the banks nothing new comes.
const PADS: u32 = 32;
/// Weight of one loop around an access.
const LOOP_WEIGHT: u64 = 8;

/// What happens to shared arrays, in the order of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// An array is made. Those that no event tells of live as long as the kernel.
    Declare(SharedId),
    /// Braces open.
    Open,
    /// Braces close; these arrays go on to live in those around.
    Close(Vec<SharedId>),
    /// Braces close, and all arrays go on.
    CloseAll,
}

/// An array on the bytes of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Alias {
    pub array: SharedId,
    /// Outer dimensions that it has from what it lies over, strides and all.
    pub kept: usize,
    /// Whether it is the other array by another name, of another element type.
    pub cast: bool,
    pub location: Location,
}

/// What lowering knows of a kernel's shared arrays.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Plan {
    /// Those whose pitch is to be chosen.
    pub padded: Vec<SharedId>,
    /// When they come and go.
    pub events: Vec<Event>,
    /// Those on the bytes of others, made after those.
    pub aliases: Vec<Alias>,
}

impl Plan {
    /// Notes an opening brace. Returns what [`close`](Self::close) takes for its closing brace.
    pub(super) fn open(&mut self) -> usize {
        self.events.push(Event::Open);
        self.events.len() - 1
    }

    /// Notes a closing brace. The arrays that `value`, the value of the braces, names live on.
    pub(super) fn close(&mut self, opened: usize, value: &Val) {
        if self.events.len() == opened + 1 {
            self.events.truncate(opened);
            return;
        }
        let (mut kept, mut any) = (Vec::new(), false);
        value.arrays(&mut |array| match array {
            Some(array) => kept.push(array),
            None => any = true,
        });
        self.events.push(if any { Event::CloseAll } else { Event::Close(kept) });
    }
}

/// Elements from one index to the next, for rows that lie `pitch` apart.
pub(super) fn strides(shape: &[u32], pitch: u32) -> SmallVec<[u32; 3]> {
    let mut strides: SmallVec<[u32; 3]> = SmallVec::from_elem(1, shape.len());
    let mut stride = pitch;
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = stride;
        stride = stride.saturating_mul(shape[d]);
    }
    strides
}

/// Chooses the pitch of `padded` arrays and gives each array its place.
pub(super) fn assign(kernel: &mut Kernel, plan: &Plan) -> Result<(), Errors> {
    let Plan { padded, events, aliases } = plan;
    if !padded.is_empty() {
        let mut accesses = Vec::new();
        let lanes = Lanes::of(kernel, 0);
        collect(&lanes, &kernel.body, 1, &mut accesses);
        for id in padded {
            let pad = best_pad(kernel, *id, &accesses);
            let array = &mut kernel.shared[id.0 as usize];
            let row = array.shape[array.shape.len() - 1];
            array.strides = strides(&array.shape, row + pad);
            array.layout = crate::ir::Layout::Padded { pad };
        }
    }
    for alias in aliases {
        lay_over(kernel, alias)?;
    }
    place(kernel, events);
    super::dynamic::sizes(kernel)?;
    if kernel.shared_bytes() > SHARED_LIMIT {
        let each: Vec<_> = kernel.shared.iter().map(|s| format!("`{}` {}", s.name, s.bytes())).collect();
        return Err(Error::whole(format!(
            "`{}` needs {} bytes of shared memory ({}); the limit is {SHARED_LIMIT} bytes per block",
            kernel.instance,
            kernel.shared_bytes(),
            each.join(", ")
        ))
        .help(WAY_OUT)
        .into());
    }
    let sharing: Vec<bool> = (0..kernel.shared.len()).map(|i| shares(kernel, i)).collect();
    keep_begins(&mut kernel.body, &sharing, false);
    Ok(())
}

/// Gives an array the outer strides of the one that it lies over, whose pitch is known now.
fn lay_over(kernel: &mut Kernel, alias: &Alias) -> Result<(), Errors> {
    let array = &kernel.shared[alias.array.0 as usize];
    let Some(under) = array.over.map(|id| &kernel.shared[id.0 as usize]) else { return Ok(()) };
    let size = array.element.bytes();
    // What an access of the machine is aligned to must be so in each plane.
    let unit = if alias.cast { size } else { size.max(WIDEST) };
    let mut strides = array.strides.clone();
    for (d, stride) in strides.iter_mut().enumerate().take(alias.kept) {
        let bytes = under.strides[d].saturating_mul(under.element.bytes());
        if !bytes.is_multiple_of(unit) || !bytes.is_multiple_of(size) {
            let message = format!(
                "`{}` cannot reuse the memory of `{}`: the stride of its dimension {d} is {bytes} bytes, not a multiple of {unit}",
                array.name, under.name
            );
            return Err(kernel
                .error(alias.location, message)
                .help("make the rows or the pitch such a multiple")
                .into());
        }
        *stride = bytes / size;
    }
    let reach = |strides: &[u32], shape: &[u32], bytes: u32| {
        let inner = shape.iter().zip(strides).skip(alias.kept);
        let last = inner.map(|(n, s)| n.saturating_sub(1).saturating_mul(*s)).fold(0, u32::saturating_add);
        last.saturating_add(1).saturating_mul(bytes)
    };
    let needed = reach(&strides, &array.shape, size);
    let there = reach(&under.strides, &under.shape, under.element.bytes());
    if needed > there {
        let message = format!("`{}` needs {needed} bytes; `{}` provides {there}", array.name, under.name);
        return Err(kernel.error(alias.location, message).help("reuse the memory of a larger array").into());
    }
    kernel.shared[alias.array.0 as usize].strides = strides;
    Ok(())
}

/// Gives each array its first byte.
fn place(kernel: &mut Kernel, events: &[Event]) {
    let end = |kernel: &Kernel, id: SharedId| {
        let array = &kernel.shared[id.0 as usize];
        array.offset.saturating_add(array.bytes().next_multiple_of(WIDEST))
    };
    let (mut top, mut most, mut open) = (0u32, 0u32, Vec::new());
    for event in events {
        match event {
            Event::Declare(id) => {
                kernel.shared[id.0 as usize].offset = top;
                top = end(kernel, *id);
                most = most.max(top);
            }
            Event::Open => open.push(top),
            Event::Close(kept) => {
                let before = open.pop().unwrap_or(0);
                top = kept.iter().map(|id| end(kernel, root(kernel, *id))).fold(before, u32::max);
            }
            Event::CloseAll => _ = open.pop(),
        }
    }
    for i in 0..kernel.shared.len() {
        let id = SharedId(i as u32);
        let offset = match kernel.shared[i].over {
            // What it lies over was made before it.
            Some(under) => kernel.shared[under.0 as usize].offset,
            None if events.contains(&Event::Declare(id)) => continue,
            None => most,
        };
        kernel.shared[i].offset = offset;
        if kernel.shared[i].over.is_none() {
            most = end(kernel, id);
        }
    }
}

/// The array whose bytes `id` has.
fn root(kernel: &Kernel, id: SharedId) -> SharedId {
    kernel.shared[id.0 as usize].over.map_or(id, |under| root(kernel, under))
}

/// Whether other arrays have bytes of this one.
fn shares(kernel: &Kernel, i: usize) -> bool {
    let of = |i: usize| {
        let array = &kernel.shared[i];
        (array.offset, array.offset + array.bytes())
    };
    let (start, end) = of(i);
    (0..kernel.shared.len()).any(|j| {
        let (other, last) = of(j);
        j != i && start < last && other < end
    })
}

/// Drops each `Begin` whose array's bytes are undefined in any case: no other array's, and made once.
fn keep_begins(region: &mut Region, sharing: &[bool], looped: bool) {
    region.insts.retain(|inst| match inst.op {
        Op::Begin(array) => looped || sharing[array.0 as usize],
        _ => true,
    });
    for inst in &mut region.insts {
        let looped = looped || matches!(inst.op, Op::For(_) | Op::Loop { .. });
        inst.op.regions_mut().into_iter().for_each(|r| keep_begins(r, sharing, looped));
    }
}

/// One access to a shared array: the indices of the lanes, by dimension.
struct Access {
    array: SharedId,
    indices: SmallVec<[Numbers; 3]>,
    /// Bytes from the element's first, by lane.
    within: Numbers,
    /// Bytes that each lane accesses.
    bytes: u32,
    weight: u64,
}

fn collect(lanes: &Lanes, region: &Region, weight: u64, found: &mut Vec<Access>) {
    for inst in &region.insts {
        let (place, bytes) = match &inst.op {
            Op::Load { place, element, .. } => (Some(place), inst.results.len() as u32 * element.bytes()),
            Op::Store { place, element, values, .. } => (Some(place), values.len() as u32 * element.bytes()),
            Op::Atomic { place, element, .. } => (Some(place), element.bytes()),
            _ => (None, 0),
        };
        if let Some(Place::Shared { array, indices, within }) = place {
            let indices: Option<_> = indices.iter().map(|v| lanes.get(*v).relative()).collect();
            let within = lanes.within(within.as_deref()).relative();
            if let (Some(indices), Some(within)) = (indices, within) {
                found.push(Access { array: *array, indices, within, bytes, weight });
            }
        }
        let inner = match inst.op {
            Op::For(_) | Op::Loop { .. } => weight.saturating_mul(LOOP_WEIGHT),
            _ => weight,
        };
        for inner_region in inst.op.regions() {
            collect(lanes, inner_region, inner, found);
        }
    }
}

fn best_pad(kernel: &Kernel, id: SharedId, accesses: &[Access]) -> u32 {
    let array = &kernel.shared[id.0 as usize];
    if array.shape.len() < 2 {
        return 0;
    }
    let row = array.shape[array.shape.len() - 1];
    let widest = accesses.iter().filter(|a| a.array == id).map(|a| a.bytes).max().unwrap_or(1);
    // Rows start where an access of the machine may.
    let aligned = aligned_pitch(widest, array.element.bytes());
    let first = row.next_multiple_of(aligned) - row;
    let cost = |pad: u32| -> u64 {
        let strides = strides(&array.shape, row + pad);
        accesses
            .iter()
            .filter(|a| a.array == id)
            .map(|a| a.weight * u64::from(degree(a, &strides, array.element.bytes())))
            .sum()
    };
    (first..first + PADS).step_by(aligned as usize).min_by_key(|pad| (cost(*pad), *pad)).unwrap_or(0)
}

/// Elements of `bytes` bytes that a pitch is to be a multiple of, so that accesses of `widest` bytes are aligned in all rows.
pub(super) fn aligned_pitch(widest: u32, bytes: u32) -> u32 {
    let access = widest.clamp(1, WIDEST);
    access >> bytes.trailing_zeros().min(access.ilog2())
}

/// Words that the worst bank must give.
fn degree(access: &Access, strides: &[u32], bytes: u32) -> u32 {
    let address = |lane: usize| {
        let element: i64 = access.indices.iter().zip(strides).map(|(i, s)| i[lane] * i64::from(*s)).sum();
        element * i64::from(bytes) + access.within[lane]
    };
    memory::ways(&std::array::from_fn(address), u32::MAX, access.bytes, true)
}
