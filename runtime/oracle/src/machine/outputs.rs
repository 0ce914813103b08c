//! Checks of a launch's buffers: reads of uninitialized elements, and outputs that the kernel
//! declares to write completely or once.

use crate::check::{Check, Coverage};
use crate::code::frame::lanes_of;
use crate::code::{AccessOp, Pc};
use crate::machine::access::AccessAction;
use crate::machine::address::TargetLanes;
use crate::machine::memory::Buffer;
use crate::machine::memory::word;
use crate::machine::shadow::{Clock, Shadow, Stamp, TimeSlice};
use crate::machine::{CheckHits, Machine, Warp};
use crate::report::{AccessValues, Description, Object, Space, Thread};
use runtime_simt::ByteRanges;
use runtime_simt::number::short;

/// The state of a buffer besides its bytes.
#[derive(Clone, Default, Debug)]
pub struct OutputContract {
    /// Bytes that are uninitialized at launch.
    pub uninit: ByteRanges,
    /// The declared coverage of the output.
    pub coverage: Option<Coverage>,
    /// Extent and stride of each dimension, in elements.
    pub shape: Vec<(u32, u32)>,
}

impl OutputContract {
    /// Returns whether an access of that kind needs a check.
    pub fn needs_check(&self, action: AccessAction) -> bool {
        match action {
            AccessAction::Load | AccessAction::Atomic | AccessAction::AtomicLoad => !self.uninit.is_empty(),
            AccessAction::Store => self.coverage == Some(Coverage::Once),
            AccessAction::AtomicStore | AccessAction::MarkUndef => false,
        }
    }
}

impl Machine<'_, '_> {
    /// Checks an access to buffer `b` against earlier stores, and suppresses uninitialized loads.
    pub fn check_contract(
        &mut self,
        action: AccessAction,
        site: Pc,
        warp: &Warp,
        access: &AccessOp,
        part: &mut TargetLanes,
        b: usize,
    ) {
        let known = self.order.known(warp.index).to_vec();
        let slices: &[TimeSlice] = if self.interleaved { &self.history } else { &[] };
        let clock = Clock { counts_earlier_blocks: true, known: &known, slices, ..self.clock(warp) };
        let stamp = Stamp::new(self.epoch, site, warp.index * 32);
        let size = access.bytes();
        let buffer = &mut self.buffers[b];
        match action {
            AccessAction::Load | AccessAction::Atomic | AccessAction::AtomicLoad => {
                let Buffer { contract, shadow, mutable, .. } = buffer;
                let nothing = |l: &usize| {
                    let at = part.offset[*l];
                    contract.uninit.intersects(at..at + u64::from(size))
                        && !(*mutable && shadow.stored_of(at, size, &contract.uninit))
                };
                let missing = lanes_of(part.lanes).filter(nothing).fold(0, |m, l| m | 1 << l);
                self.report(Check::UninitializedBuffer, site, warp.index, missing, |machine, lane| {
                    let object = machine.object(part.target, part.offset[lane], access);
                    let (name, element) = (&object.name, object.element.unwrap_or(0));
                    let what = match action {
                        AccessAction::Load => "loaded",
                        AccessAction::AtomicLoad => "loaded atomically",
                        _ => "changed atomically",
                    };
                    let message = format!(
                        "element {element} of `{name}` is {what}, and neither the host nor a thread has stored it"
                    );
                    let values = if action == AccessAction::Load {
                        machine.filled(action, access)
                    } else {
                        AccessValues::default()
                    };
                    Description::new(message).about(object).with(values)
                });
                if action == AccessAction::Load {
                    part.lanes &= !missing;
                }
            }
            AccessAction::Store => {
                let mut first: Option<Stamp> = None;
                let mut again = 0u32;
                let mut seen: Vec<(u64, u32)> = Vec::new();
                for lane in lanes_of(part.lanes) {
                    let (at, now) = (part.offset[lane], stamp.thread_plus(lane as u32));
                    let together = seen.iter().find(|(other, _)| other.abs_diff(at) < size.into());
                    let before = match together {
                        Some((_, lane)) => Some(stamp.thread_plus(*lane)),
                        None => buffer.shadow.stored_by_another(at, size, clock, now),
                    };
                    if before.is_some() {
                        again |= 1 << lane;
                        first = first.or(before);
                    }
                    seen.push((at, lane as u32));
                }
                let Some(before) = first else { return };
                let hits = CheckHits { count: again.count_ones(), warp: warp.index, first: again };
                self.report_against(Check::WrittenTwice, site, Some(before.site()), hits, |machine, lane| {
                    let object = machine.object(part.target, part.offset[lane], access);
                    let (name, element) = (&object.name, object.element.unwrap_or(0));
                    let message = format!(
                        "element {element} of `{name}` is stored by two threads, but the kernel declares to write it once"
                    );
                    let other = machine.thread_at(before.epoch(), before.thread());
                    let value = access.values.first();
                    let stores = value.map(|value| short(access.element, value.get(&warp.rows, lane)));
                    // With simultaneous stores, no lane has stored yet.
                    let memory = machine.contents(part.target);
                    let held = short(access.element, word(memory, part.offset[lane], access.element));
                    let held = (before.epoch() != stamp.epoch() || before.site() != site).then_some(held);
                    let values = AccessValues { stores, held, ..AccessValues::default() };
                    Description::new(message).about(object).with(values).against(Some(before.site()), other, "stores it before")
                });
            }
            AccessAction::AtomicStore | AccessAction::MarkUndef => {}
        }
    }

    /// Reports outputs that a launch, which has ended, has not completely written.
    pub fn unwritten_outputs(&mut self) {
        for b in 0..self.buffers.len() {
            if self.buffers[b].contract.coverage.is_none() {
                continue;
            }
            let buffer = &self.buffers[b];
            let size = buffer.element.bytes();
            let missing = |index: &u64| !buffer.shadow.written(index * u64::from(size), size);
            let mut elements = Elements::of(buffer);
            let Some(first) = elements.find(missing) else { continue };
            let count = 1 + elements.filter(missing).count() as u64;
            let total = Elements::of(buffer).count() as u64;
            // The nearest store shows where the kernel should have written it.
            let distance = |index: &u64| index.abs_diff(first);
            let near = Elements::of(buffer).filter(|i| !missing(i)).min_by_key(distance);
            let stamp = near.and_then(|index| buffer.shadow.last_store(index * u64::from(size)));
            let name = buffer.name.clone();
            let of = if count == total { "no element".to_string() } else { format!("element {first}") };
            let rest = match count {
                _ if count == total => format!("none of its {total}"),
                1 => format!("1 of {total}"),
                _ => format!("the first of {count} among {total}"),
            };
            let word = buffer.contract.coverage.map_or("all", Coverage::name);
            let message = match count == total {
                true => format!(
                    "{of} of `{name}` is written by any thread, but the kernel declares `writes({name} = {word})`"
                ),
                false => format!(
                    "{of} of `{name}`, {rest}, is written by no thread, but the kernel declares `writes({name} = {word})`"
                ),
            };
            let object = Object {
                name,
                space: Space::Buffer,
                index: Vec::new(),
                extents: buffer.contract.shape.iter().map(|(extent, _)| u64::from(*extent)).collect(),
                element: Some(first as i64),
            };
            let no_thread = Thread { block: [0; 3], thread: [0; 3], warp: 0, lane: 0 };
            let (site, thread) =
                stamp.map_or((Pc::MAX, no_thread), |s| (s.site(), self.thread_at(s.epoch(), s.thread())));
            if !self.options.without.contains(Check::UnwrittenOutput)
                && !self.findings.count(Check::UnwrittenOutput, site, None, count as u32)
            {
                let description = Description::new(message).about(object);
                self.findings.add(Check::UnwrittenOutput, site, count as u32, thread, description);
            }
        }
    }
}

/// Returns whether parts of a launch, with these shadows of the buffer, have together written its
/// declared output.
pub fn is_covered(buffer: &Buffer<'_>, shadows: &[&Shadow]) -> bool {
    let size = buffer.element.bytes();
    let written = |index: u64| shadows.iter().any(|shadow| shadow.written(index * u64::from(size), size));
    buffer.contract.coverage.is_none() || Elements::of(buffer).all(written)
}

/// The elements of a buffer that belong to its argument, by ascending index.
struct Elements<'b> {
    shape: &'b [(u32, u32)],
    index: Vec<u32>,
    ended: bool,
}

impl Elements<'_> {
    fn of<'b>(buffer: &'b Buffer<'_>) -> Elements<'b> {
        let shape = &buffer.contract.shape[..];
        Elements { shape, index: vec![0; shape.len()], ended: shape.iter().any(|(extent, _)| *extent == 0) }
    }
}

impl Iterator for Elements<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.ended {
            return None;
        }
        let at = self.index.iter().zip(self.shape).map(|(i, (_, stride))| u64::from(*i) * u64::from(*stride)).sum();
        self.ended = true;
        for (i, (extent, _)) in self.index.iter_mut().zip(self.shape).rev() {
            *i += 1;
            if *i < *extent {
                self.ended = false;
                break;
            }
            *i = 0;
        }
        Some(at)
    }
}
