//! Legality of instructions: an instruction is matched against the rows of its opcode.

mod accepted;
mod call;
mod illegal;

pub use accepted::AcceptedOperands;
pub use call::check_call;
pub use illegal::{Illegal, Reason};

use super::ast::{
    Address, Base, Function, Instruction, Operand, RegisterId, Selector, Symbol, TargetArchitecture, Texel,
};
use super::form::{ConstantLimit, FormRow, MAX_SLOTS, OperandForm, OperandKind, OperandType, Presence, Selection, Set};
use super::print::{In, ValueNames};
use super::table;
use super::words::{Modifier, Opcode, Space, TargetOption, TextureShape, Type, TypeClass, Version};
use accepted::accepted_operands;
use smallvec::SmallVec;

/// The row of an instruction, with the chosen modifier of each slot.
#[derive(Clone, Copy, Debug)]
pub struct ChosenForm {
    /// The row.
    pub row: &'static FormRow,
    /// The first `.version` that supports the instruction: that of the row, of a word, or of a
    /// special register.
    pub version: Version,
    chosen: Chosen,
}

impl ChosenForm {
    /// Returns the type of operand `operand`, if it has one.
    pub fn ty(&self, operand: usize) -> Option<Type> {
        operand_type(self.row.operands().get(operand)?, &self.chosen)
    }

    /// Returns the modifier in slot `slot`.
    pub fn modifier(&self, slot: usize) -> Option<Modifier> {
        self.chosen.get(slot).copied().flatten()
    }
}

/// Returns the form of `instruction`, if it is legal for `target` and `version`; `names` resolves
/// its references.
pub fn check(
    names: ValueNames<'_>,
    instruction: &Instruction,
    target: TargetArchitecture,
    version: Version,
) -> Result<ChosenForm, Illegal> {
    ModuleCheck { names }.form(instruction, target, version)
}

#[derive(Clone, Copy)]
struct ModuleCheck<'a> {
    names: ValueNames<'a>,
}

impl ModuleCheck<'_> {
    fn form(
        self,
        instruction: &Instruction,
        target: TargetArchitecture,
        version: Version,
    ) -> Result<ChosenForm, Illegal> {
        let names = self.names;
        let fail = |reason| {
            // An undeclared operand has no name to print.
            let instruction = match reason {
                Reason::Undeclared => instruction.opcode.to_string(),
                _ => In(names, instruction).to_string(),
            };
            Err(Illegal { instruction, reason })
        };
        if !declared(names, instruction) {
            return fail(Reason::Undeclared);
        }
        if instruction.guard.is_some_and(|g| !self.is(g.register, |ty| ty == Type::Pred)) {
            return fail(Reason::Guard);
        }
        let mut later: Option<Reason> = None;
        let mut mismatch: Option<Reason> = None;
        let mut deepest = None;
        let (with_target, with_version) = minimum_support(instruction);
        let opcode = instruction.opcode;
        // Most rows of an opcode are excluded by this quick test.
        let given = Set::of(&instruction.modifiers);
        for row in table::rows(opcode).iter().filter(|row| given.is_subset_of(row.modifiers)) {
            let Some(chosen) = modifiers(row, &instruction.modifiers) else { continue };
            let (needs_target, needs) = (row.target.max(with_target), row.version.max(with_version));
            match self.operands(row, &chosen, &instruction.operands) {
                // The form that matches the most operands is probably the intended one.
                Err(operand) if deepest.is_none_or(|d| operand > d) => {
                    deepest = Some(operand);
                    let accepted = row.operands().get(operand).map(|form| accepted_operands(form, &chosen));
                    mismatch = Some(Reason::Operand { row, operand, accepted });
                }
                Err(_) => {}
                Ok(()) if needs_target > target.sm => {
                    let needs = match later {
                        Some(Reason::Target { needs, .. }) => needs.min(needs_target),
                        _ => needs_target,
                    };
                    later = Some(Reason::Target { needs, has: target });
                }
                Ok(()) if needs > version => later = later.or(Some(Reason::Version { needs, has: version })),
                Ok(()) => match row.removed {
                    Some((without, from)) if target.sm >= without && version >= from => {
                        later = Some(Reason::Gone { without, from });
                    }
                    _ => return Ok(ChosenForm { row, version: needs, chosen }),
                },
            }
        }
        fail(later.or(mismatch).unwrap_or(Reason::Modifiers { opcode, given }))
    }

    /// Returns whether the type of a register satisfies `predicate`.
    fn is(self, register: RegisterId, predicate: impl FnOnce(Type) -> bool) -> bool {
        predicate(self.names.function.ty(register))
    }
}

/// Returns the first target and version that support the words and special registers of the
/// instruction.
fn minimum_support(instruction: &Instruction) -> (u16, Version) {
    let words = instruction.modifiers.iter().filter_map(|m| m.introduced_in()).map(|version| (0, version));
    let registers = instruction.operands.iter().filter_map(|o| match o {
        Operand::Special(s) => Some(s.introduced_in()),
        Operand::Resident(..) => Some((60, Version::new(7, 1))),
        _ => None,
    });
    words.chain(registers).fold((0, Version::new(0, 0)), |(t, v), (target, version)| (t.max(target), v.max(version)))
}

/// Returns whether everything that the instruction names is declared.
fn declared(names: ValueNames<'_>, instruction: &Instruction) -> bool {
    instruction.guard.is_none_or(|g| has_register(names.function, g.register))
        && instruction.operands.iter().all(|o| has_operand(names, o))
}

fn has_operand(names: ValueNames<'_>, operand: &Operand) -> bool {
    let function = names.function;
    match operand {
        Operand::Register(r) | Operand::Not(r) | Operand::Negated(r, _) | Operand::Selected(r, _) => {
            has_register(function, *r)
        }
        Operand::Pair(a, b) => [a, b].into_iter().flatten().all(|r| has_register(function, *r)),
        Operand::Vector(v) => v.iter().all(|o| has_operand(names, o)),
        Operand::Resident(v, p) => v.iter().all(|o| has_operand(names, o)) && has_register(function, *p),
        Operand::Texel(texel) => {
            let has = |base: &Base| match base {
                Base::Register(r) => has_register(function, *r),
                Base::Symbol(s) => has_symbol(names, *s),
            };
            has(&texel.object)
                && texel.sampler.as_ref().is_none_or(has)
                && texel.coordinates.iter().all(|o| has_operand(names, o))
        }
        Operand::Address(Address { base: Base::Register(r), .. }) => has_register(function, *r),
        Operand::Address(Address { base: Base::Symbol(s), .. }) | Operand::Symbol(s, _) => has_symbol(names, *s),
        Operand::Label(l) => (l.0 as usize) < function.labels.len(),
        Operand::BranchTargets(i) => (*i as usize) < function.branch_targets.len(),
        Operand::Sink
        | Operand::Integer(_)
        | Operand::Bits(_)
        | Operand::F32(_)
        | Operand::F64(_)
        | Operand::Special(_) => true,
    }
}

fn has_symbol(names: ValueNames<'_>, symbol: Symbol) -> bool {
    let (i, count) = match symbol {
        Symbol::Parameter(i) => (i, names.function.parameters.len()),
        Symbol::Return(i) => (i, names.function.returns.len()),
        Symbol::Variable(i) => (i, names.function.variables.len()),
        Symbol::Global(i) => (i, names.module.variables.len()),
        Symbol::Function(i) => (i, names.module.functions.len()),
    };
    (i as usize) < count
}

fn has_register(function: &Function, register: RegisterId) -> bool {
    function.registers.get(register.declaration as usize).is_some_and(|d| register.number < d.count())
}

/// The modifier in each slot of a row.
type Chosen = [Option<Modifier>; MAX_SLOTS];

/// Returns the modifier of each slot of `row`, if the modifiers match the form.
fn modifiers(row: &FormRow, given: &[Modifier]) -> Option<Chosen> {
    let mut chosen = [None; MAX_SLOTS];
    let mut rest = given.iter().copied().peekable();
    for (slot, place) in row.slots().iter().zip(&mut chosen) {
        *place = rest.next_if(|m| slot.alternatives.has(m.canonical()));
        if place.is_none() && !slot.optional {
            return None;
        }
    }
    rest.next().is_none().then_some(chosen)
}

/// Returns the modifiers of an instruction in the order of each form that accepts all of them.
/// Assemblers accept any order, except for modifiers that belong to the opcode, and for the order
/// of several types.
pub(super) fn reordered(instruction: &Instruction) -> impl Iterator<Item = SmallVec<[Modifier; 6]>> {
    let given = &instruction.modifiers;
    let set = Set::of(given);
    table::rows(instruction.opcode).iter().filter(move |row| set.is_subset_of(row.modifiers)).filter_map(move |row| {
        let mut rest: SmallVec<[Modifier; 6]> = given.clone();
        let mut order: SmallVec<[Modifier; 6]> = SmallVec::new();
        for slot in row.slots() {
            match rest.iter().position(|m| slot.alternatives.has(m.canonical())) {
                Some(i) => order.push(rest.remove(i)),
                None if slot.optional => {}
                None => return None,
            }
        }
        let stays = |i: usize| !given[i].belongs_to_opcode() || order[i] == given[i];
        (rest.is_empty() && order != *given && (0..given.len()).all(stays)).then_some(order)
    })
}

/// Returns the shape of the texture or surface that the modifiers select.
fn shape(chosen: &Chosen) -> Option<TextureShape> {
    chosen.iter().flatten().find_map(|m| m.shape())
}

fn operand_type(form: &OperandForm, chosen: &Chosen) -> Option<Type> {
    let slot = |i: u8| chosen[usize::from(i)].and_then(Modifier::ty);
    match form.ty {
        OperandType::None => None,
        OperandType::Fixed(t) => Some(t),
        OperandType::Slot(i) => slot(i),
        OperandType::Wide(i) => slot(i).and_then(Type::doubled),
    }
}

impl ModuleCheck<'_> {
    /// Returns the first operand that does not match the row, if any.
    fn operands(self, row: &FormRow, chosen: &Chosen, given: &[Operand]) -> Result<(), usize> {
        let mut rest = given.iter().peekable();
        for (i, form) in row.operands().iter().enumerate() {
            let wanted = match form.presence {
                Presence::Always => true,
                Presence::Optional => rest.peek().is_some(),
                Presence::With(slot) => chosen[usize::from(slot)].is_some(),
            };
            if wanted && !rest.next().is_some_and(|o| self.fits(row.opcode, form, chosen, o)) {
                return Err(i);
            }
        }
        if rest.next().is_some() { Err(row.operands().len()) } else { Ok(()) }
    }

    fn fits(self, opcode: Opcode, form: &OperandForm, chosen: &Chosen, given: &Operand) -> bool {
        let ty = operand_type(form, chosen);
        let vector = match form.kind {
            OperandKind::Vectorized => chosen.iter().flatten().find_map(|m| m.vector()),
            OperandKind::Vector(n) => Some(usize::from(n)),
            OperandKind::Axes => shape(chosen).map(|s| s.axes),
            _ => None,
        };
        match (form.kind, given, ty) {
            (OperandKind::Label, Operand::Label(_), _) => true,
            (OperandKind::BranchTargets, Operand::BranchTargets(_), _) => true,
            (OperandKind::Symbol, Operand::Symbol(symbol, _), _) if self.object(*symbol).is_some() => {
                // Only `mov.u64` accepts such a symbol: it gives the handle of the object.
                opcode == Opcode::Mov && ty == Some(Type::U64)
            }
            (OperandKind::Symbol, Operand::Symbol(symbol, _), _) => self.is_in_space(*symbol, chosen),
            (OperandKind::Object(object), Operand::Address(Address { base, offset: 0 }), _) => {
                self.is_object(base, object)
            }
            (OperandKind::OwnSampler, Operand::Address(Address { base, offset: 0 }), _) => {
                !self.independent() && self.is_object(base, Type::Texref)
            }
            (OperandKind::Texel(object), Operand::Texel(texel), Some(ty)) => {
                self.texel(form, object, ty, texel, chosen)
            }
            (OperandKind::Special, Operand::Special(s), Some(ty)) if form.wider => holds(s.ty(), ty, true),
            (OperandKind::Special, Operand::Special(s), Some(ty)) => s.moves_as(ty.bits()),
            (OperandKind::Address, Operand::Address(a), _) => {
                // A callee cannot write its arguments.
                let given = matches!(a.base, Base::Symbol(Symbol::Parameter(_)));
                !(given && opcode == Opcode::St) && self.address(a, chosen)
            }
            (OperandKind::Value, Operand::Pair(d, p), Some(ty)) => {
                form.paired
                    && (d.is_some() || p.is_some() && form.sink)
                    && p.is_none_or(|p| self.is(p, |t| t == Type::Pred))
                    && d.is_none_or(|d| self.is(d, |t| holds(t, ty, form.wider)))
            }
            (OperandKind::Value, Operand::Selected(r, selector), Some(ty)) => {
                selected(form.selection, *selector) && self.is(*r, |t| holds(t, ty, false))
            }
            (OperandKind::Value, Operand::Negated(r, selector), Some(ty)) => {
                form.signed
                    && selector.is_none_or(|s| selected(form.selection, s))
                    && self.is(*r, |t| holds(t, ty, false))
            }
            (OperandKind::Value, Operand::Sink, _) => form.sink,
            (OperandKind::Value, Operand::Register(_), _) if form.selection == Selection::OnePart => false,
            (OperandKind::Value, Operand::Not(p), _) => form.negatable && self.is(*p, |t| t == Type::Pred),
            (OperandKind::Vectorized | OperandKind::Vector(_) | OperandKind::Axes, Operand::Vector(v), Some(ty)) => {
                // A single register can be written as a vector of one element.
                let length = vector.or((form.kind == OperandKind::Vectorized).then_some(1));
                length == Some(v.len()) && self.vector(form, ty, v)
            }
            (OperandKind::Vector(_), Operand::Resident(v, p), Some(ty)) => {
                form.paired && vector == Some(v.len()) && self.is(*p, |t| t == Type::Pred) && self.vector(form, ty, v)
            }
            // With one axis, an offset needs no braces.
            (OperandKind::Axes, o, Some(Type::S32)) => vector == Some(1) && self.value(form, Type::S32, o),
            (OperandKind::Constant, o, Some(ty)) => constant_fits(o, ty) && is_within_limit(form.limit, o),
            (OperandKind::Value, o, Some(ty)) => self.value(form, ty, o),
            (OperandKind::Vectorized, o, Some(ty)) => vector.is_none() && self.value(form, ty, o),
            _ => false,
        }
    }

    /// Returns whether the operands can be the elements of a vector.
    fn vector(self, form: &OperandForm, ty: Type, elements: &[Operand]) -> bool {
        let sink = |o: &Operand| *o == Operand::Sink && form.destination;
        !elements.iter().all(sink)
            && elements.iter().all(|o| sink(o) || self.value(form, ty, o))
            && self.is_of_one_class(elements)
    }

    /// Returns the object type of a symbol, if it is a texture, sampler or surface.
    fn object(self, symbol: Symbol) -> Option<Type> {
        let ty = match symbol {
            Symbol::Parameter(i) => self.names.function.parameters[i as usize].ty,
            Symbol::Global(i) => self.names.module.variables[i as usize].ty,
            Symbol::Return(_) | Symbol::Variable(_) | Symbol::Function(_) => return None,
        };
        Some(ty).filter(|ty| ty.class() == TypeClass::Opaque)
    }

    /// Returns whether the target has independent textures and samplers.
    fn independent(self) -> bool {
        self.names.module.options.contains(&TargetOption::TexmodeIndependent)
    }

    /// Returns whether an operand is an object of this type, or can hold its handle.
    fn is_object(self, base: &Base, object: Type) -> bool {
        match base {
            Base::Register(r) => self.is(*r, |ty| holds(ty, Type::U64, false)),
            Base::Symbol(symbol) => self.object(*symbol) == Some(object),
        }
    }

    fn texel(self, form: &OperandForm, object: Type, ty: Type, texel: &Texel, chosen: &Chosen) -> bool {
        let Some(shape) = shape(chosen) else { return false };
        let Texel { object: which, sampler, coordinates } = texel;
        let sampled = object == Type::Texref && self.independent();
        let (index, rest) = coordinates.split_at(usize::from(shape.indexed).min(coordinates.len()));
        self.is_object(which, object)
            && sampler.is_some() == sampled
            && sampler.is_none_or(|s| self.is_object(&s, Type::Samplerref))
            // The vector may have more elements than coordinates. The hardware ignores these
            // elements.
            && coordinates.len() >= shape.coordinates
            && matches!(coordinates.len(), 1 | 2 | 4)
            && index.iter().all(|o| self.value(form, Type::U32, o))
            && rest.iter().all(|o| self.value(form, ty, o))
            && self.is_of_one_class(rest)
    }

    /// Returns whether the elements of a vector have the same kind: integers, or floats of one
    /// type. Untyped bits match both.
    fn is_of_one_class(self, vector: &[Operand]) -> bool {
        let kind = |o: &Operand| match o {
            Operand::Register(r) => Some(self.names.function.ty(*r)).filter(|ty| ty.class() != TypeClass::Bits),
            Operand::Integer(_) | Operand::Bits(_) => Some(Type::U32),
            Operand::F32(_) => Some(Type::F32),
            Operand::F64(_) => Some(Type::F64),
            _ => None,
        };
        let mut kinds = vector.iter().filter_map(kind);
        let first = kinds.next();
        first
            .is_none_or(|a| kinds.all(|b| a == b || a.class() == TypeClass::Integer && b.class() == TypeClass::Integer))
    }

    fn value(self, form: &OperandForm, ty: Type, given: &Operand) -> bool {
        match given {
            Operand::Register(r) => self.is(*r, |t| holds(t, ty, form.wider)),
            constant => {
                !form.destination
                    && !form.register
                    && constant_fits(constant, ty)
                    && is_within_limit(form.limit, constant)
            }
        }
    }

    /// Returns whether an address is valid. An address in a register has 64 bits, or 32 bits in
    /// small state spaces. If the instruction names a state space, a variable must be in that
    /// space.
    fn address(self, address: &Address, chosen: &Chosen) -> bool {
        match address.base {
            Base::Register(r) => self.is(r, |ty| {
                let given = chosen.iter().flatten().find_map(|m| m.space());
                let small = matches!(given, Some(Space::Shared | Space::Local | Space::Const));
                matches!(ty.class(), TypeClass::Bits | TypeClass::Integer)
                    && (ty.bits() == 64 || small && ty.bits() == 32)
            }),
            Base::Symbol(symbol) => {
                !matches!(symbol, Symbol::Function(_))
                    && self.object(symbol).is_none()
                    && self.is_in_space(symbol, chosen)
            }
        }
    }

    /// Returns whether a symbol is in the state space that the instruction names, if it names one.
    fn is_in_space(self, symbol: Symbol, chosen: &Chosen) -> bool {
        let lies = match symbol {
            Symbol::Parameter(_) | Symbol::Return(_) => Some(Space::Param),
            Symbol::Variable(i) => Some(self.names.function.variables[i as usize].space),
            Symbol::Global(i) => Some(self.names.module.variables[i as usize].space),
            Symbol::Function(_) => None,
        };
        chosen.iter().flatten().find_map(|m| m.space()).is_none_or(|space| Some(space) == lies)
    }
}

/// Returns whether a selector is allowed, or present if required.
fn selected(selection: Selection, selector: Selector) -> bool {
    let falling =
        |digits: &[u8], limit: u8| digits.iter().all(|d| *d < limit) && digits.windows(2).all(|w| w[0] > w[1]);
    match (selection, selector) {
        (Selection::Part | Selection::OnePart, Selector::Byte(_) | Selector::Half(_)) => true,
        (Selection::Halves, Selector::Halves(_)) => true,
        (Selection::Bytes, Selector::Bytes(digits)) => digits.iter().all(Option::is_some),
        (Selection::HalfMask, Selector::Half(_)) | (Selection::ByteMask, Selector::Byte(_)) => true,
        (Selection::HalfMask, Selector::Halves(digits)) => falling(&digits, 2),
        (Selection::ByteMask, Selector::Bytes(digits)) => falling(&digits.into_iter().flatten().collect::<Vec<_>>(), 4),
        _ => false,
    }
}

/// Returns whether a register of type `register` is valid for an operand of type `ty`.
fn holds(register: Type, ty: Type, wider: bool) -> bool {
    if register.bits() == ty.bits() {
        return same_class(register, ty);
    }
    wider
        && register.bits() > ty.bits()
        && matches!(register.class(), TypeClass::Bits | TypeClass::Integer)
        && matches!(ty.class(), TypeClass::Bits | TypeClass::Integer)
}

/// Returns whether two types of equal size are compatible: their classes are equal, or
/// one of them is untyped bits.
fn same_class(a: Type, b: Type) -> bool {
    a.class() == b.class()
        || matches!((a.class(), b.class()), (TypeClass::Bits, TypeClass::Integer | TypeClass::Float))
        || matches!((b.class(), a.class()), (TypeClass::Bits, TypeClass::Integer | TypeClass::Float))
}

/// Returns whether a constant is valid for an operand of type `ty`. An integer has 64 bits, and the
/// instruction uses its low bits.
fn constant_fits(constant: &Operand, ty: Type) -> bool {
    match constant {
        Operand::Integer(_) | Operand::Bits(_) => {
            matches!(ty.class(), TypeClass::Predicate | TypeClass::Bits | TypeClass::Integer) && ty.bits() <= 64
        }
        Operand::F32(_) => matches!(ty, Type::F32 | Type::B32),
        Operand::F64(_) => matches!(ty, Type::F64 | Type::B64),
        _ => false,
    }
}

fn is_within_limit(limit: ConstantLimit, constant: &Operand) -> bool {
    let n = match constant {
        Operand::Integer(n) => *n,
        Operand::Bits(n) => *n as i64,
        _ => return limit == ConstantLimit::None,
    };
    match limit {
        ConstantLimit::None => true,
        ConstantLimit::Barrier | ConstantLimit::Event => (0..16).contains(&n),
        ConstantLimit::Threads => n > 0 && n % 32 == 0,
    }
}
