//! Translation of IR to the interpreter's instructions.
//!
//! Decoding rejects, with the location, IR that violates a rule of the `ir` module. Execution
//! therefore needs no checks of form: operands are defined before use, types have their operators,
//! and labels name open constructs.

mod compute;
mod construct;
mod effect;
mod memory;
mod place;

use crate::code::Origin;
use crate::code::SHARED_WORDS;
use crate::code::frame::FrameRegister;
use crate::code::fuse::fuse;
use crate::code::origin::origins;
use crate::code::uniform::{RegisterClasses, simplify};
use crate::code::{Code, Inst, Local, Pc, RowIndex};
use crate::refused::Unsupported;
use kernel_dsl_compiler::ir::{self, Kernel, Label, Location, Op, Region, Type, Value};
use kernel_dsl_compiler::{Error, Scalar};

/// The maximum number of instructions: shadow memory packs a site into 22 bits.
const MAX_KERNEL_INSTRUCTIONS: usize = 1 << 22;

/// Whether overflow and division by zero are errors of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OverflowRule {
    /// Arithmetic is checked.
    Checked,
    /// Overflow and division by zero have a result: passes may execute arithmetic speculatively.
    Speculative,
}

/// Decodes `kernel`.
pub fn decode(kernel: &Kernel, arithmetic: OverflowRule) -> Result<Code, Unsupported> {
    let whole = |message: String| Err(Unsupported(Box::new(Error::without_span(message))));
    let threads = kernel.block.most_threads();
    if !(1..=1024).contains(&threads) {
        return whole(format!("a block of {:?} threads: it must have 1 to 1024", kernel.block.max_extents()));
    }
    for array in &kernel.shared {
        let fits = array.shape.len() == array.strides.len()
            && array.offset.is_multiple_of(array.element.align())
            && end(array) <= 4 * SHARED_WORDS as u64;
        if !fits {
            return whole(format!(
                "shared array `{}` is laid out inconsistently, or beyond {} bytes",
                array.name,
                4 * SHARED_WORDS
            ));
        }
    }
    let mut decoder = Decoder {
        kernel,
        checked: arithmetic == OverflowRule::Checked,
        origins: origins(kernel),
        dynamic: vec![None; kernel.values.len()],
        registers: vec![None; kernel.values.len()],
        code: Code::default(),
        open: Vec::new(),
        exits: Vec::new(),
        location: Location(0),
    };
    decoder.locals()?;
    decoder.region(&kernel.body, &[])?;
    decoder.emit(Inst::Exit);
    if decoder.code.insts.len() > MAX_KERNEL_INSTRUCTIONS {
        return whole(format!("the kernel has more than {MAX_KERNEL_INSTRUCTIONS} instructions"));
    }
    let kinds = RegisterClasses::of(&decoder.code);
    simplify(&mut decoder.code, &kinds);
    fuse(&mut decoder.code, &kinds);
    decoder.code.lifetimes = (0..kernel.shared.len()).map(|i| decoder.lifetime(i)).collect();
    Ok(decoder.code)
}

/// Returns the name of an operation, for errors.
fn name_of(op: &Op) -> String {
    let text = format!("{op:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_string()
}

/// Returns the end of a shared array, saturating.
fn end(array: &ir::SharedArray) -> u64 {
    let dims = array.shape.iter().zip(&array.strides);
    let last = dims.map(|(n, s)| u64::from(n.saturating_sub(1)) * u64::from(*s)).fold(0, u64::saturating_add);
    (last + 1).saturating_mul(array.element.bytes().into()).saturating_add(array.offset.into())
}

/// The state of the translation of one kernel.
struct Decoder<'k> {
    kernel: &'k Kernel,
    /// Whether arithmetic is checked.
    checked: bool,
    origins: Vec<Origin>,
    /// The array of dynamic size that an address was computed from.
    dynamic: Vec<Option<u32>>,
    /// The register of each value defined so far.
    registers: Vec<Option<FrameRegister>>,
    code: Code,
    open: Vec<Construct>,
    /// Instructions of the innermost region that jump to its end when no lane is left.
    exits: Vec<Pc>,
    location: Location,
}

/// A construct that `Break` and `Continue` may name.
struct Construct {
    label: Option<Label>,
    /// The registers that receive the values of `Break`.
    results: Vec<FrameRegister>,
    /// The registers that receive the values of `Continue`; `None` if the construct is not a loop.
    carried: Option<Vec<FrameRegister>>,
}

type Result<T, E = Unsupported> = std::result::Result<T, E>;

impl Decoder<'_> {
    fn refuse<T>(&self, message: impl Into<String>) -> Result<T> {
        let place = self.kernel.locations.get(self.location.0 as usize);
        let place = place.and_then(|l| Some((self.kernel.sources.get(l.source as usize)?, l.span)));
        Err(Unsupported(Box::new(match place {
            Some((source, span)) => Error::at(source, span, message),
            None => Error::without_span(message),
        })))
    }

    fn emit(&mut self, inst: Inst) -> Pc {
        self.code.insts.push(inst);
        self.code.locations.push(self.location);
        self.here() - 1
    }

    fn here(&self) -> Pc {
        self.code.insts.len() as Pc
    }

    fn row(&mut self, rows: u32) -> RowIndex {
        self.code.rows += rows;
        self.code.rows - rows
    }

    fn register(&mut self, wide: bool) -> FrameRegister {
        FrameRegister { row: self.row(if wide { 2 } else { 1 }), wide }
    }

    fn ty(&self, value: Value) -> Result<Type> {
        match self.kernel.values.get(value.0 as usize) {
            Some(ty) => Ok(*ty),
            None => self.refuse(format!("%{} is not in the kernel's list of values", value.0)),
        }
    }

    /// Returns the scalar type that represents a value.
    fn scalar(&self, value: Value) -> Result<Scalar> {
        Ok(match self.ty(value)? {
            Type::Scalar(s) => s,
            Type::Global | Type::Constant => Scalar::U64,
            Type::Shared => Scalar::U32,
        })
    }

    fn define(&mut self, value: Value) -> Result<FrameRegister> {
        let wide = self.scalar(value)?.bits() == 64;
        let register = self.register(wide);
        self.bind(value, register)?;
        Ok(register)
    }

    fn bind(&mut self, value: Value, register: FrameRegister) -> Result<()> {
        if self.registers[value.0 as usize].replace(register).is_some() {
            return self.refuse(format!("%{} is defined twice", value.0));
        }
        Ok(())
    }

    fn register_of(&self, value: Value) -> Result<FrameRegister> {
        match self.registers.get(value.0 as usize) {
            Some(Some(register)) => Ok(*register),
            _ => self.refuse(format!("%{} is used before it is defined", value.0)),
        }
    }

    /// Returns the row of a value of type `ty`.
    fn typed(&self, value: Value, ty: Scalar) -> Result<RowIndex> {
        let found = self.scalar(value)?;
        if found != ty {
            return self.refuse(format!("%{} is `{found}` where `{ty}` is needed", value.0));
        }
        Ok(self.register_of(value)?.row)
    }

    fn registers(&self, values: &[Value]) -> Result<Vec<FrameRegister>> {
        values.iter().map(|v| self.register_of(*v)).collect()
    }

    fn locals(&mut self) -> Result<()> {
        for local in &self.kernel.locals {
            let wide = match local.element {
                Type::Scalar(s) => s.bits() == 64,
                Type::Global | Type::Constant => true,
                Type::Shared => false,
            };
            let rows = if wide { 2 } else { 1 };
            let Some(total) = local.len.checked_mul(rows).filter(|n| *n < 1 << 20) else {
                return self.refuse(format!(
                    "the array `{}` has {} elements, which exceeds the registers of the oracle",
                    local.name, local.len
                ));
            };
            let first = FrameRegister { row: self.row(total), wide };
            let element = self.code.elements;
            self.code.elements += local.len;
            self.code.locals.push(Local {
                name: local.name.clone(),
                first,
                ty: local.element.scalar(),
                len: local.len,
                element,
            });
        }
        Ok(())
    }

    /// Decodes a region whose `Yield` moves its values to `yields`. Jumps to its end go to the
    /// next instruction.
    fn region(&mut self, region: &Region, yields: &[FrameRegister]) -> Result<()> {
        let outer = std::mem::take(&mut self.exits);
        for (i, inst) in region.insts.iter().enumerate() {
            self.location = inst.location;
            let is_last = i + 1 == region.insts.len();
            if inst.op.is_terminator() != is_last {
                let name = name_of(&inst.op);
                return self.refuse(match is_last {
                    true => format!("the last operation of a region is `{name}`, which is no terminator"),
                    false => format!("`{name}` ends a region, and operations follow it"),
                });
            }
            self.inst(inst, yields)?;
        }
        if region.insts.is_empty() {
            return self.refuse("a region is empty: it needs a terminator");
        }
        for pc in std::mem::replace(&mut self.exits, outer) {
            self.patch_jump(pc);
        }
        Ok(())
    }

    fn inst(&mut self, inst: &ir::Inst, yields: &[FrameRegister]) -> Result<()> {
        if let Op::Inline { code, inputs } = &inst.op {
            return self.inline(code, inputs, &inst.results);
        }
        let single = match inst.results.as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        let Some(result) = single.filter(|_| inst.op.is_pure()) else {
            return if inst.op.is_pure() {
                self.refuse(format!("`{}` has {} results instead of one", name_of(&inst.op), inst.results.len()))
            } else {
                self.effect(inst, yields)
            };
        };
        self.compute(&inst.op, result)
    }

    /// Returns the array that determines the lifetime of the bytes of shared array `i`. An array
    /// placed over another has a `LifetimeStart` instruction, or is an alias of the other.
    fn lifetime(&self, i: usize) -> u32 {
        let own = |i: usize| {
            self.code.insts.iter().any(|inst| matches!(inst, Inst::LifetimeStart { array, .. } if *array as usize == i))
        };
        let mut at = i;
        // At most one step for each array, because aliases in invalid IR may form a cycle.
        for _ in 0..self.kernel.shared.len() {
            match self.kernel.shared.get(at).and_then(|a| a.over) {
                Some(under) if !own(at) => at = under.0 as usize,
                _ => break,
            }
        }
        at as u32
    }
}
