//! Atomic operations of a warp: lane by lane, in the order of the run's [`Schedule`].

use crate::code::{AtomicAccess, Pc};
use crate::machine::access::AccessAction;
use crate::machine::address::TargetLanes;
use crate::machine::describe::DescribedTarget;
use crate::machine::{ALL, Machine, Warp};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir;
use runtime_simt::ArgumentBytes;
use runtime_simt::Schedule;
use runtime_simt::lanes_of;

impl Machine<'_, '_> {
    /// Performs `atomic` in each lane of `mask` whose access is valid. Counts the operation as idle
    /// if memory does not change.
    pub fn atomic<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, atomic: &AtomicAccess) {
        let access = &atomic.access;
        let (address, inside) = self.addresses::<TIER>(site, warp, mask, access);
        if let Some(to) = atomic.to {
            to.fill(&mut warp.rows, 0);
        }
        // An operation without a result cannot be a poll, so it never counts as idle.
        let action = AccessAction::of(atomic.operation);
        let (mut rest, mut any, mut highest) = (inside, atomic.to.is_none(), 0);
        while rest != 0 {
            let mut part = self.part::<TIER>(site, warp, &mut rest, &address, access);
            if !self.may_write::<TIER>(site, warp, access, &part) {
                continue;
            }
            if TIER >= ALL {
                self.check_access(action, site, warp, access, &mut part);
            }
            let memory: &mut [u8] = match part.target {
                DescribedTarget::Buffer(b) => match &mut self.buffers[b].bytes {
                    ArgumentBytes::Exclusive(bytes) => bytes,
                    ArgumentBytes::Shared(_) => continue,
                },
                DescribedTarget::Shared => bytemuck::cast_slice_mut(&mut self.shared[..]),
            };
            let AtomicEffect { written, changed } = step(memory, warp, atomic, &part, self.options.schedule);
            any |= changed;
            highest = lanes_of(part.lanes).map(|lane| part.offset[lane]).fold(highest, u64::max);
            if TIER >= ALL {
                if self.order.is_active() {
                    self.put_in_order(warp.index, &part, written);
                }
                self.inspect_atomic(access.element, &part);
            }
        }
        // A loop that accesses ever higher elements makes progress, so the count restarts.
        if any || highest > warp.highest {
            (warp.idle, warp.highest) = (u32::from(!any), highest);
        } else {
            warp.idle = warp.idle.saturating_add(1);
        }
    }

    /// Records the order that the lanes of `part` release and may acquire. The lanes of `written`
    /// have changed their element.
    fn put_in_order(&mut self, warp: u32, part: &TargetLanes, written: u32) {
        let buffer = if let DescribedTarget::Buffer(b) = part.target { Some(b) } else { None };
        for lane in self.options.schedule.lanes(part.lanes) {
            let element = (buffer, part.offset[lane]);
            match written >> lane & 1 {
                0 => self.order.atomic_read(warp, lane as u32, element),
                _ => self.order.atomic(warp, lane as u32, element),
            }
        }
    }
}

/// The effect of an atomic operation.
struct AtomicEffect {
    /// The lanes that have written their element: all except failed compare-exchanges.
    written: u32,
    /// Whether an element has changed.
    changed: bool,
}

/// Performs `atomic`.
fn step(
    memory: &mut [u8],
    warp: &mut Warp,
    atomic: &AtomicAccess,
    part: &TargetLanes,
    schedule: Schedule,
) -> AtomicEffect {
    let AtomicAccess { access, operation, expected, to } = atomic;
    let size = access.element.bytes() as usize;
    let mut stepped = AtomicEffect { written: 0, changed: false };
    for lane in schedule.lanes(part.lanes) {
        let start = part.offset[lane] as usize;
        // Offsets have been checked against `memory`; an offset outside nevertheless leaves it
        // unchanged.
        let Some(bytes) = memory.get_mut(start..start + size) else { continue };
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        let before = u64::from_le_bytes(word);
        let operand = access.values.first().map(|value| value.get(&warp.rows, lane));
        let flush = part.target != DescribedTarget::Shared;
        let after = match (operand, expected.map(|e| e.get(&warp.rows, lane))) {
            (_, Some(expected)) if expected & access.element.mask() != before => None,
            (Some(operand), Some(_)) => Some(operand),
            (Some(operand), None) => Some(changed(*operation, access.element, before, operand, flush)),
            // A load.
            (None, _) => None,
        };
        if let Some(after) = after {
            bytes.copy_from_slice(&after.to_le_bytes()[..size]);
            stepped.written |= 1 << lane;
            stepped.changed |= after != before;
        }
        if let Some(to) = to {
            to.set(&mut warp.rows, lane, before);
        }
    }
    stepped
}

/// Returns the bits that `operation` writes over `a`. `flush` is whether subnormal `f32`s count as
/// zeros.
fn changed(operation: ir::AtomicOperator, element: Scalar, a: u64, b: u64, flush: bool) -> u64 {
    use ir::AtomicOperator::*;
    // The value of an integer, as the order of its type compares it.
    let signed = |bits: u64| ((bits << (64 - element.bits())) as i64) >> (64 - element.bits());
    let less = |a: u64, b: u64| if element.is_signed() { signed(a) < signed(b) } else { a < b };
    match operation {
        Add if element == Scalar::F32 => {
            let flushed = |bits: u64| {
                let x = f32::from_bits(bits as u32);
                if flush && x.is_subnormal() { 0f32.copysign(x) } else { x }
            };
            let sum = flushed(a) + flushed(b);
            flushed(sum.to_bits().into()).to_bits().into()
        }
        Add if element == Scalar::F64 => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        Add => a.wrapping_add(b) & element.mask(),
        Min | Max if element == Scalar::F32 => {
            let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            extreme(operation == Min, f64::from(x), f64::from(y), a, b)
        }
        Min | Max if element == Scalar::F64 => extreme(operation == Min, f64::from_bits(a), f64::from_bits(b), a, b),
        Min => {
            if less(b, a) {
                b
            } else {
                a
            }
        }
        Max => {
            if less(a, b) {
                b
            } else {
                a
            }
        }
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        Load => a,
        Exchange | CompareExchange | Store => b,
    }
}

/// Returns the bits of the minimum or maximum of two floats with these bits. A NaN gives the other
/// operand, and −0 is below +0.
fn extreme(least: bool, x: f64, y: f64, a: u64, b: u64) -> u64 {
    match () {
        () if y.is_nan() => a,
        () if x.is_nan() => b,
        // Equal operands differ at most in the sign of zero.
        () if x == y => {
            if least {
                a | b
            } else {
                a & b
            }
        }
        () => {
            if (x < y) == least {
                a
            } else {
                b
            }
        }
    }
}
