//! Loads, stores, atomic operations and addresses.

use super::super::access::generic;
use super::super::arithmetic::float::{F16, F32, F64, FloatFormat, Rounding};
use super::super::code::{
    AccessStrength, AsyncCopyAccess, AtomicAccess, Data, InstructionKind, MemoryAccess, Update, Window,
};
use super::super::memory::{window_base, window_of};
use super::operand::VariableLocation;
use super::words::{Words, integer};
use super::{Decoded, Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::{Modifier, Opcode, Operand, Type};
use smallvec::SmallVec;

/// Modifiers without an effect here: cache hints, scopes and orders. All accesses happen at once
/// and in order.
const ORDERS: [Modifier; 17] = [
    Modifier::Volatile,
    Modifier::Ca,
    Modifier::Cg,
    Modifier::Cs,
    Modifier::Lu,
    Modifier::Cv,
    Modifier::Wb,
    Modifier::Wt,
    Modifier::Weak,
    Modifier::Relaxed,
    Modifier::Acquire,
    Modifier::Release,
    Modifier::AcqRel,
    Modifier::Cta,
    Modifier::Gpu,
    Modifier::Sys,
    Modifier::Sc,
];

/// Orders that other threads can observe.
const STRONG: [Modifier; 7] = [
    Modifier::Volatile,
    Modifier::Cv,
    Modifier::Relaxed,
    Modifier::Acquire,
    Modifier::Release,
    Modifier::AcqRel,
    Modifier::Sc,
];

/// Returns the strength of an access with this modifier of [`STRONG`].
fn strength(modifier: Modifier) -> AccessStrength {
    match modifier {
        Modifier::Release | Modifier::AcqRel | Modifier::Sc => AccessStrength::Releasing,
        _ => AccessStrength::Strong,
    }
}

/// Returns the state space that modifiers name.
fn window(words: &mut Words) -> Window {
    words
        .take_as(|m| match m {
            Modifier::Global => Some(Window::Global),
            Modifier::Const => Some(Window::Const),
            Modifier::Shared | Modifier::SharedCta => Some(Window::Shared),
            Modifier::Local => Some(Window::Local),
            Modifier::Param | Modifier::ParamEntry | Modifier::ParamFunc => Some(Window::Param),
            _ => None,
        })
        .unwrap_or(Window::Generic)
}

/// The opcodes that [`Decoder::memory`] decodes.
pub(super) const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Cp, Ld, Ldu, St, Atom, Red, Prefetch, Prefetchu]
};

impl<'m> Decoder<'m> {
    pub(super) fn memory(
        &mut self,
        frame: &mut Frame<'m>,
        opcode: Opcode,
        words: &mut Words,
        operands: &[Operand],
    ) -> Result {
        match opcode {
            Opcode::Cp => self.copy_async(frame, words, operands),
            Opcode::Ld | Opcode::Ldu | Opcode::St => self.access(frame, opcode, words, operands),
            Opcode::Prefetch | Opcode::Prefetchu => {
                window(words);
                words.pass(&[Modifier::L1, Modifier::L2]);
                Ok(Decoded::plain(InstructionKind::Nothing))
            }
            _ => self.atomic(frame, opcode, words, operands),
        }
    }

    fn access(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let load = opcode != Opcode::St;
        let named = window(words);
        let strength = words.take_one(&STRONG).map(strength).unwrap_or_default();
        let strength = if words.take(Modifier::Cta) { strength.of_block() } else { strength };
        self.code.ordered |= strength != AccessStrength::Weak;
        words.pass(&ORDERS);
        // Every access is visible at once here, so only the check of races needs this.
        let read_only = words.take(Modifier::Nc) || opcode == Opcode::Ldu;
        self.code.has_read_only_loads |= read_only;
        let length = words.take_as(Modifier::vector).unwrap_or(1);
        let ty = words.ty()?;
        let [first, second] = operands else { return Err("it has two operands".to_string()) };
        let (data, address) = if load { (first, second) } else { (second, first) };
        let (window, base, offset) = self.place(frame, Some(address), named)?;
        let parts = match data {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        if parts.len() != length {
            return Err(format!("it moves {length} elements, and has registers for {}", parts.len()));
        }
        let element = ty.bits() / 8;
        if !matches!(element, 1 | 2 | 4 | 8) {
            return Err(format!("the interpreter has no memory of .{ty}"));
        }
        let mut values = SmallVec::new();
        let (mut reads, mut writes) = (SmallVec::<[u32; 4]>::new(), SmallVec::<[u32; 2]>::new());
        reads.extend(base.map(|b| b.id));
        for part in parts {
            let source = match part {
                Operand::Sink => None,
                Operand::Register(r) => Some(self.register(frame, *r)?),
                constant if !load => Some(self.from(frame, constant, ty)?),
                _ => return Err("its destination is not a register".to_string()),
            };
            if let Some(source) = source {
                if load { writes.push(source.id) } else { reads.push(source.id) }
            }
            values.push(source.map(|s| s.data()));
        }
        let signed = integer(ty).is_some_and(|i| i.signed);
        let base = base.map(|b| (b.place, b.id));
        let needed = values.len() as u32;
        let access = MemoryAccess { window, base, offset, element, signed, values, needed, strength, read_only };
        let kind = match (load, strength != AccessStrength::Weak) {
            (true, true) => InstructionKind::StrongLoad(access),
            (true, false) => InstructionKind::Load(access),
            (false, _) => InstructionKind::Store(access),
        };
        Ok(Decoded { kind, reads, writes })
    }

    /// Decodes `cp.async`.
    fn copy_async(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        words.take(Modifier::Async);
        if words.take(Modifier::CommitGroup) {
            return Ok(Decoded::plain(InstructionKind::CopyCommit));
        }
        if words.take(Modifier::WaitAll) {
            return Ok(Decoded::plain(InstructionKind::CopyWait(None)));
        }
        let number = |operand: Option<&Operand>| match operand {
            Some(Operand::Integer(n)) => {
                u32::try_from(*n).map_err(|_| format!("{n} is not a valid number of groups or bytes"))
            }
            _ => Err("it has a constant there".to_string()),
        };
        if words.take(Modifier::WaitGroup) {
            return Ok(Decoded::plain(InstructionKind::CopyWait(Some(number(operands.first())?))));
        }
        words.pass(&[Modifier::Ca, Modifier::Cg]);
        words.pass(&[Modifier::Shared, Modifier::SharedCta, Modifier::Global]);
        let bytes = number(operands.get(2))?;
        if !matches!(bytes, 4 | 8 | 16) {
            return Err(format!("it copies 4, 8 or 16 bytes, not {bytes}"));
        }
        let mut reads = SmallVec::<[u32; 4]>::new();
        let mut access = |decoder: &mut Self, i: usize, named| -> Result<MemoryAccess> {
            let (window, base, offset) = decoder.place(frame, operands.get(i), named)?;
            reads.extend(base.map(|b| b.id));
            let (base, values) = (base.map(|b| (b.place, b.id)), SmallVec::from_elem(None, bytes as usize / 4));
            let strength = AccessStrength::Weak;
            let (element, signed, read_only) = (4, false, false);
            let needed = values.len() as u32;
            Ok(MemoryAccess { window, base, offset, element, signed, values, needed, strength, read_only })
        };
        let (to, from) = (access(self, 0, Window::Shared)?, access(self, 1, Window::Global)?);
        let read = match operands.len() {
            3 => None,
            _ => Some(self.operand(frame, operands, 3, Type::U32)?),
        };
        reads.extend(read.map(|r| r.id));
        let read = read.map(|r| (r.place, r.id));
        let kind = InstructionKind::Copy(Box::new(AsyncCopyAccess { to, from, read }));
        Ok(Decoded { kind, reads, writes: SmallVec::new() })
    }

    fn atomic(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        let named = window(words);
        let strength = words.take_one(&STRONG).map_or(AccessStrength::Strong, strength);
        let strength = if words.take(Modifier::Cta) { strength.of_block() } else { strength };
        let of_system = words.take(Modifier::Sys);
        words.pass(&ORDERS);
        let operation = words.take_one(&[
            Modifier::And,
            Modifier::Or,
            Modifier::Xor,
            Modifier::Exch,
            Modifier::Cas,
            Modifier::Add,
            Modifier::Inc,
            Modifier::Dec,
            Modifier::Min,
            Modifier::Max,
        ]);
        let Some(operation) = operation else { return Err("it has no operation".to_string()) };
        words.take(Modifier::NoFtz);
        let ty = words.ty()?;
        let first = usize::from(opcode == Opcode::Atom);
        let result = if first == 1 && !matches!(operands.first(), Some(Operand::Sink)) {
            Some(self.to(frame, operands, 0)?)
        } else {
            None
        };
        let (window, base, offset) = self.place(frame, operands.get(first), named)?;
        let count = if operation == Modifier::Cas { 2 } else { 1 };
        let mut given: SmallVec<[Data; 2]> = SmallVec::new();
        for i in 0..count {
            given.push(self.operand(frame, operands, first + 1 + i, ty)?.data());
        }
        if operands.len() != first + 1 + count {
            return Err("it has a wrong number of operands".to_string());
        }
        let update = update(operation, ty)?;
        let element = ty.bits() / 8;
        let values = SmallVec::new();
        let (base_place, signed, read_only) = (base.map(|b| (b.place, b.id)), false, false);
        let needed = values.len() as u32;
        let access =
            MemoryAccess { window, base: base_place, offset, element, signed, values, needed, strength, read_only };
        let reads = base.map(|b| b.id).into_iter().chain(given.iter().map(|d| d.id)).collect();
        let writes = result.iter().map(|r| r.id).collect();
        let result = result.map(|r| r.data());
        let kind = InstructionKind::Atomic(AtomicAccess { access, of_system, result, operands: given, update });
        Ok(Decoded { kind, reads, writes })
    }

    /// Decodes `cvta`, which converts between generic addresses and those of a state space.
    pub(super) fn convert_address(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let to_window = words.take(Modifier::To);
        let window = window(words);
        let ty = words.ty()?;
        if window == Window::Generic || ty.bits() != 64 {
            return Err("the interpreter has 64-bit addresses of a named space only".to_string());
        }
        let (to, from) = (self.to(frame, operands, 0)?, self.operand(frame, operands, 1, ty)?);
        if !to_window {
            return Ok(self.lanewise(to, &[from], move |[a, ..]| generic(window, a)));
        }
        if matches!(window, Window::Global | Window::Const) && to.wide().is_ok() && from.wide().is_ok() {
            let outside = "the address is not of that space";
            return Ok(self.partial(to, &[from], outside, move |[a, ..]| (a, window_of(a) == Window::Global)));
        }
        Ok(self.partial(to, &[from], "the address is not of that space", move |[a, ..]| {
            (a.wrapping_sub(window_base(window)), window_of(a) == window)
        }))
    }
}

impl<'m> Decoder<'m> {
    /// Decodes `isspacep`, which tests whether a generic address is in a state space.
    pub(super) fn is_space(&mut self, frame: &mut Frame<'m>, words: &mut Words, operands: &[Operand]) -> Result {
        let window = window(words);
        let (to, from) = (self.to(frame, operands, 0)?, self.operand(frame, operands, 1, Type::U64)?);
        let constants: Vec<(u64, u64)> = self
            .globals
            .iter()
            .flatten()
            .filter_map(|home| match home {
                VariableLocation::Buffer { address, bytes, constant: true } => Some((*address, *bytes)),
                _ => None,
            })
            .collect();
        Ok(self.lanewise(to, &[from], move |[a, ..]| {
            let constant = constants.iter().any(|(start, bytes)| a.wrapping_sub(*start) < *bytes);
            u64::from(match window {
                Window::Const => constant,
                Window::Global => !constant && window_of(a) == Window::Global,
                _ => window_of(a) == window,
            })
        }))
    }
}

/// Returns the function that computes the new value of an atomic operation.
pub(super) fn update(operation: Modifier, ty: Type) -> Result<Update> {
    let float: Option<FloatFormat> = match ty {
        Type::F32 => Some(F32),
        Type::F64 => Some(F64),
        _ => None,
    };
    if let (Type::F16 | Type::F16x2, Modifier::Add) = (ty, operation) {
        let pair = ty == Type::F16x2;
        return Ok(Box::new(move |old, a, _, _| {
            let sum = |shift: u32| F16.add(old >> shift & 0xffff, a >> shift & 0xffff, Rounding::Nearest) << shift;
            if pair { sum(0) | sum(16) } else { sum(0) }
        }));
    }
    if let Some(format) = float {
        if operation != Modifier::Add {
            return Err(format!("there is no atomic .{operation} of .{ty}"));
        }
        // In global memory, sums of singles flush subnormals; in shared memory they do not.
        return Ok(Box::new(move |old, a, _, shared| {
            let flush = |x| if format == F32 && !shared { format.flush(x) } else { x };
            flush(format.add(flush(old), flush(a), Rounding::Nearest))
        }));
    }
    let Some(integers) = integer(ty) else { return Err(format!("the interpreter has no atomics of .{ty}")) };
    let mask = integers.mask();
    Ok(match operation {
        Modifier::And => Box::new(|old, a, _, _| old & a),
        Modifier::Or => Box::new(|old, a, _, _| old | a),
        Modifier::Xor => Box::new(|old, a, _, _| old ^ a),
        Modifier::Exch => Box::new(|_, a, _, _| a),
        Modifier::Cas => Box::new(|old, a, b, _| if old == a { b } else { old }),
        Modifier::Add => Box::new(move |old, a, _, _| old.wrapping_add(a) & mask),
        Modifier::Inc => Box::new(|old, a, _, _| if old >= a { 0 } else { old + 1 }),
        Modifier::Dec => Box::new(|old, a, _, _| if old == 0 || old > a { a } else { old - 1 }),
        Modifier::Min => Box::new(move |old, a, _, _| if integers.value(a) < integers.value(old) { a } else { old }),
        Modifier::Max => Box::new(move |old, a, _, _| if integers.value(a) > integers.value(old) { a } else { old }),
        _ => return Err(format!("the interpreter does not support `.{operation}`")),
    })
}
