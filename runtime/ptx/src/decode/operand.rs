//! Operands: registers, constants and addresses, resolved to locations.

use super::super::access::generic;
use super::super::code::{Condition, Window};
use super::super::memory::function_address;
use super::super::registers::{RegisterPlace, StateId};
use super::{Decoder, Frame, Result};
use kernel_dsl_compiler::ptx::{Address, Base, Operand, RegisterId, Symbol, Type};

/// A location that an instruction reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandLocation {
    /// The storage of its lanes.
    pub place: RegisterPlace,
    /// The index of its definedness.
    pub id: StateId,
    /// Width of the register in bits.
    pub bits: u32,
}

/// The storage that each lane of a value needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Width {
    Predicate,
    Word,
    Wide,
}

impl Width {
    /// Returns the storage for values of this width.
    pub fn of(bits: u32) -> Width {
        match bits {
            1 => Width::Predicate,
            0..=32 => Width::Word,
            _ => Width::Wide,
        }
    }
}

/// The location of a variable or parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VariableLocation {
    /// Bytes of a state space, from an offset.
    #[allow(missing_docs)]
    Memory { window: Window, offset: u32 },
    /// Bytes of the running routine's frame, in local memory.
    #[allow(missing_docs)]
    Frame { offset: u32 },
    /// A buffer of the module.
    #[allow(missing_docs)]
    Buffer { address: u64, bytes: u64, constant: bool },
    /// A register or a constant that is passed.
    Value(OperandLocation),
    /// A constant that is passed, with the type of the parameter.
    #[allow(missing_docs)]
    Constant { bits: u64 },
}

impl VariableLocation {
    /// Returns the location of a variable in shared memory.
    pub fn shared(offset: u32) -> VariableLocation {
        VariableLocation::Memory { window: Window::Shared, offset }
    }

    /// Returns the location of a variable in local memory.
    pub fn local(offset: u32) -> VariableLocation {
        VariableLocation::Memory { window: Window::Local, offset }
    }

    /// Returns the state space, and the address in it.
    fn address(self) -> Option<(Window, u64)> {
        match self {
            VariableLocation::Memory { window, offset } => Some((window, offset.into())),
            VariableLocation::Buffer { address, constant, .. } => {
                Some((if constant { Window::Const } else { Window::Global }, address))
            }
            VariableLocation::Frame { .. } | VariableLocation::Value(_) | VariableLocation::Constant { .. } => None,
        }
    }
}

impl OperandLocation {
    /// Returns the row of a register of at most 32 bits.
    pub fn word(self) -> Result<u32> {
        match self.place {
            RegisterPlace::Word(row) => Ok(row),
            _ => Err(format!("expected an operand of at most 32 bits, found one of {}", self.bits)),
        }
    }

    /// Returns the rows of a 64-bit register.
    pub fn wide(self) -> Result<u32> {
        match self.place {
            RegisterPlace::Wide(row) => Ok(row),
            _ => Err(format!("expected an operand of 64 bits, found one of {}", self.bits)),
        }
    }

    /// Returns the predicate.
    pub fn predicate(self) -> Result<u32> {
        match self.place {
            RegisterPlace::Predicate(index) => Ok(index),
            _ => Err("expected a predicate, found a register".to_string()),
        }
    }
}

impl<'m> Decoder<'m> {
    /// Allocates a location of this width.
    pub fn fresh(&mut self, bits: u32) -> OperandLocation {
        let sizes = &mut self.code.sizes;
        let place = match Width::of(bits) {
            Width::Predicate => {
                sizes.predicates += 1;
                RegisterPlace::Predicate(sizes.predicates - 1)
            }
            Width::Word => {
                sizes.rows += 1;
                RegisterPlace::Word(sizes.rows - 1)
            }
            Width::Wide => {
                sizes.rows += 2;
                RegisterPlace::Wide(sizes.rows - 2)
            }
        };
        sizes.ids += 1;
        self.registers.push((place, sizes.ids - 1));
        OperandLocation { place, id: sizes.ids - 1, bits }
    }

    /// Returns the first destination and the second one, after `|`; `_` and a missing one are
    /// `None`. `what` names the required kind of register in the error message.
    pub fn destinations(
        &mut self,
        frame: &mut Frame<'m>,
        operands: &[Operand],
        what: &str,
    ) -> Result<[Option<OperandLocation>; 2]> {
        let (first, second) = match operands.first() {
            Some(Operand::Pair(first, second)) => (*first, *second),
            Some(Operand::Register(first)) => (Some(*first), None),
            Some(Operand::Sink) => (None, None),
            _ => return Err(format!("its destination is not a {what}")),
        };
        let first = first.map(|r| self.register(frame, r)).transpose()?;
        let second = second.map(|r| self.register(frame, r)).transpose()?;
        Ok([first, second])
    }

    /// Returns the location of a register.
    pub fn register(&mut self, frame: &mut Frame<'m>, register: RegisterId) -> Result<OperandLocation> {
        let Some(declaration) = frame.function.registers.get(register.declaration as usize) else {
            return Err("it names a register that is not declared".to_string());
        };
        if declaration.ty.bits() > 64 {
            return Err("the interpreter has no registers of 128 bits".to_string());
        }
        if let Some(known) = frame.registers.get(&register) {
            return Ok(*known);
        }
        let source = self.fresh(declaration.ty.bits());
        frame.registers.insert(register, source);
        Ok(source)
    }

    /// Returns the location of a register that is written.
    pub fn to(&mut self, frame: &mut Frame<'m>, operands: &[Operand], index: usize) -> Result<OperandLocation> {
        match operands.get(index) {
            Some(Operand::Register(r)) => self.register(frame, *r),
            Some(Operand::Sink) => Ok(self.fresh(64)),
            _ => Err("its destination is not a register".to_string()),
        }
    }

    /// Returns the location of constant bits.
    pub fn constant(&mut self, bits: u64, width: u32) -> OperandLocation {
        let key = (bits, Width::of(width));
        if let Some(known) = self.constants.get(&key) {
            return *known;
        }
        let source = OperandLocation { bits: width, ..self.fresh(width) };
        self.code.constants.push((source.place, source.id, bits));
        self.constants.insert(key, source);
        source
    }

    /// Returns the location of an operand that is read as a value of `ty`.
    pub fn from(&mut self, frame: &mut Frame<'m>, operand: &Operand, ty: Type) -> Result<OperandLocation> {
        let mask = u64::MAX >> (64 - ty.bits().clamp(1, 64));
        Ok(match operand {
            Operand::Register(r) => self.register(frame, *r)?,
            // A predicate is true unless the constant is 0.
            Operand::Integer(n) if ty == Type::Pred => self.constant(u64::from(*n != 0), 1),
            Operand::Bits(n) if ty == Type::Pred => self.constant(u64::from(*n != 0), 1),
            Operand::Integer(n) => self.constant(*n as u64 & mask, ty.bits()),
            Operand::Bits(n) => self.constant(*n & mask, ty.bits()),
            Operand::F32(bits) if ty.bits() == 64 => {
                self.constant(f64::from(f32::from_bits(*bits)).to_bits(), ty.bits())
            }
            Operand::F32(bits) => self.constant(u64::from(*bits), ty.bits()),
            Operand::F64(bits) if ty.bits() == 32 => {
                self.constant(u64::from((f64::from_bits(*bits) as f32).to_bits()), ty.bits())
            }
            Operand::F64(bits) => self.constant(*bits, ty.bits()),
            Operand::Special(s) => self.special(*s)?,
            Operand::Symbol(Symbol::Function(i), 0) => {
                let index = self.module.definition(*i).unwrap_or(*i);
                self.constant(function_address(index as usize) & mask, ty.bits())
            }
            Operand::Symbol(symbol, offset) => {
                if let VariableLocation::Frame { offset: at } = self.variable_location(frame, *symbol)? {
                    return Ok(self.frame_address(u64::from(at).wrapping_add(*offset as u64), ty.bits()));
                }
                let (_, address) = self.symbol(frame, *symbol)?;
                self.constant(address.wrapping_add(*offset as u64) & mask, ty.bits())
            }
            Operand::Not(_) => return Err("a negated predicate is not allowed here".to_string()),
            Operand::Negated(..) | Operand::Selected(..) => {
                return Err("the interpreter does not support parts of operands".to_string());
            }
            Operand::Pair(..) | Operand::Resident(..) | Operand::Vector(_) | Operand::Sink => {
                return Err("expected one operand, found several".to_string());
            }
            Operand::Address(_) | Operand::Texel(_) | Operand::Label(_) | Operand::BranchTargets(_) => {
                return Err("expected a value, found a memory operand".to_string());
            }
        })
    }

    /// Returns the location of operand `index`, which is read as a value of `ty`.
    pub fn operand(
        &mut self,
        frame: &mut Frame<'m>,
        operands: &[Operand],
        index: usize,
        ty: Type,
    ) -> Result<OperandLocation> {
        match operands.get(index) {
            Some(operand) => self.from(frame, operand, ty),
            None => Err("it has too few operands".to_string()),
        }
    }

    /// Returns the condition that a predicate is true, or false if `negated`.
    pub fn condition(&mut self, frame: &mut Frame<'m>, register: RegisterId, negated: bool) -> Result<Condition> {
        let source = self.register(frame, register)?;
        Ok(Condition { predicate: source.predicate()?, id: source.id, negated })
    }

    /// Returns the condition of an operand: a predicate, possibly negated, or a constant.
    pub fn predicate(&mut self, frame: &mut Frame<'m>, operand: Option<&Operand>) -> Result<Condition> {
        match operand {
            Some(Operand::Not(r)) => self.condition(frame, *r, true),
            Some(operand) => {
                let source = self.from(frame, operand, Type::Pred)?;
                Ok(Condition { predicate: source.predicate()?, id: source.id, negated: false })
            }
            None => Err("it has too few operands".to_string()),
        }
    }

    /// Returns the state space of a variable or parameter, and its address in it.
    pub fn symbol(&mut self, frame: &Frame<'m>, symbol: Symbol) -> Result<(Window, u64)> {
        let home = self.variable_location(frame, symbol)?;
        home.address().ok_or_else(|| "it takes the address of a register".to_string())
    }

    /// Returns the location of a variable or parameter.
    fn variable_location(&self, frame: &Frame<'m>, symbol: Symbol) -> Result<VariableLocation> {
        let home = match symbol {
            Symbol::Parameter(i) => frame.parameters.get(i as usize).copied(),
            Symbol::Return(i) => frame.returns.get(i as usize).copied(),
            Symbol::Variable(i) => frame.variables.get(i as usize).copied().flatten(),
            Symbol::Global(i) => self.globals.get(i as usize).copied().flatten(),
            Symbol::Function(_) => return Err("expected the address of memory, found that of a function".to_string()),
        };
        home.ok_or_else(|| "the interpreter has no location for its variable".to_string())
    }

    /// Returns the address in local memory of a byte of the running routine's frame.
    fn frame_address(&mut self, offset: u64, bits: u32) -> OperandLocation {
        let (frame, to) = (self.frame_register(), self.fresh(bits));
        let decoded = self.lanewise(to, &[frame], move |[start, ..]| start.wrapping_add(offset));
        let site = self.site;
        self.push(None, decoded, site);
        to
    }

    /// Returns the location of an access: the named or implied state space, a register, and an
    /// offset in bytes.
    pub fn place(
        &mut self,
        frame: &mut Frame<'m>,
        operand: Option<&Operand>,
        named: Window,
    ) -> Result<(Window, Option<OperandLocation>, i64)> {
        let Some(Operand::Address(Address { base, offset })) = operand else {
            return Err("an address is missing".to_string());
        };
        match base {
            Base::Register(r) => {
                // Parameters of functions are in local memory.
                let device = named == Window::Param && !frame.function.is_entry();
                let window = if device { Window::Local } else { named };
                Ok((window, Some(self.register(frame, *r)?), i64::from(*offset)))
            }
            Base::Symbol(symbol) => {
                if let VariableLocation::Frame { offset: start } = self.variable_location(frame, *symbol)? {
                    let at = i64::from(start) + i64::from(*offset);
                    let register = self.frame_register();
                    return match named {
                        Window::Generic => Ok((named, Some(register), generic(Window::Local, at as u64) as i64)),
                        Window::Local | Window::Param => Ok((Window::Local, Some(register), at)),
                        _ => Err(format!("it names {} memory, but its variable is in local memory", named.name())),
                    };
                }
                let (home, address) = self.symbol(frame, *symbol)?;
                let at = address.wrapping_add(*offset as u64) as i64;
                match (named, home) {
                    (Window::Generic, home) => Ok((Window::Generic, None, generic(home, at as u64) as i64)),
                    (named, home) if named == home => Ok((home, None, at)),
                    (Window::Param, Window::Local) => Ok((home, None, at)),
                    (named, home) => {
                        Err(format!("it names {} memory, but its variable is in {}", named.name(), home.name()))
                    }
                }
            }
        }
    }
}
