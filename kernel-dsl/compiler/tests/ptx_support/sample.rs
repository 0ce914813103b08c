//! Instructions made from the forms of the table, and a module that defines every kind of name.

use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ptx::form::{
    ConstantLimit, FormRow, OperandForm, OperandKind, OperandType, Presence, Selection,
};
use kernel_dsl_compiler::ptx::{
    Address, Base, Instruction, Modifier, ModuleBuilder, Opcode, Operand, Selector, Space, SpecialRegister, Symbol,
    Texel, Type, Variable,
};

/// A replacement of a register operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Instead {
    Constant,
    /// A part of a register.
    Selected,
    /// A negated register or predicate.
    Negated,
    /// The sink `_`.
    Sink,
    /// Two registers.
    Pair,
    /// The handle of a texture or surface in a register instead of its name.
    Handle,
}

/// A module under construction that defines every kind of name.
pub struct Sample {
    pub builder: ModuleBuilder,
    parameter: Symbol,
    variables: Vec<(Space, Symbol)>,
    objects: Vec<(Type, Symbol)>,
}

impl Sample {
    pub fn new(target: Target) -> Sample {
        let mut builder = ModuleBuilder::new(target, "sample").unwrap();
        let parameter = builder.parameter("parameter", Type::U64).unwrap();
        Sample { builder, parameter, variables: Vec::new(), objects: Vec::new() }
    }

    /// Returns a variable in a space.
    fn variable(&mut self, space: Space) -> Symbol {
        if let Some((_, symbol)) = self.variables.iter().find(|(s, _)| *s == space) {
            return *symbol;
        }
        let symbol = self.builder.variable(&format!("in_{space}"), space, 16, 64).unwrap();
        self.variables.push((space, symbol));
        symbol
    }

    /// Returns a texture or a surface. Samplers exist only as handles.
    fn object(&mut self, ty: Type, instead: Option<Instead>) -> Option<Base> {
        match instead {
            Some(Instead::Handle) => return Some(Base::Register(self.builder.register(Type::U64))),
            Some(_) => return None,
            None if ty == Type::Samplerref => return Some(Base::Register(self.builder.register(Type::U64))),
            None => {}
        }
        if let Some((_, symbol)) = self.objects.iter().find(|(t, _)| *t == ty) {
            return Some(Base::Symbol(*symbol));
        }
        let variable = Variable::bytes(Space::Global, 8, &format!("a_{ty}"), 0);
        let variable = Variable { ty, align: None, dimensions: Vec::new(), ..variable };
        let symbol = self.builder.global(variable).unwrap();
        self.objects.push((ty, symbol));
        Some(Base::Symbol(symbol))
    }

    /// Returns a position in a texture or surface.
    fn texel(
        &mut self,
        object: Type,
        ty: Type,
        choice: &[Option<Modifier>],
        instead: Option<Instead>,
    ) -> Option<Operand> {
        let constant = instead == Some(Instead::Constant);
        let object = self.object(object, instead.filter(|_| !constant))?;
        let shape = choice.iter().flatten().find_map(|m| m.shape())?;
        let of = |i: usize| if i == 0 && shape.indexed { Type::U32 } else { ty };
        let coordinates = (0..shape.coordinates).map(of);
        let coordinates =
            coordinates.map(|ty| if constant { Sample::constant(ty) } else { Some(self.builder.register(ty).into()) });
        let coordinates = coordinates.collect::<Option<_>>()?;
        Some(Operand::Texel(Box::new(Texel { object, sampler: None, coordinates })))
    }

    fn constant(ty: Type) -> Option<Operand> {
        match ty {
            Type::F32 => Some(Operand::F32(1f32.to_bits())),
            Type::F64 => Some(Operand::F64(1f64.to_bits())),
            Type::F16 | Type::F16x2 => None,
            _ => Some(Operand::Integer(1)),
        }
    }

    /// Returns the operand of a form, with `instead` of a register if the form allows it.
    fn operand(
        &mut self,
        opcode: Opcode,
        form: &OperandForm,
        choice: &[Option<Modifier>],
        instead: Option<Instead>,
    ) -> Option<Operand> {
        let slot = |i: u8| choice[usize::from(i)].and_then(Modifier::ty);
        let ty = match form.ty {
            OperandType::None => None,
            OperandType::Fixed(t) => Some(t),
            OperandType::Slot(i) => slot(i),
            OperandType::Wide(i) => slot(i).and_then(Type::doubled),
        };
        match form.kind {
            OperandKind::Texel(object) => return self.texel(object, ty?, choice, instead),
            OperandKind::Object(_) | OperandKind::OwnSampler => {
                let object = if let OperandKind::Object(object) = form.kind { object } else { Type::Texref };
                let base = self.object(object, instead)?;
                return Some(Operand::Address(Address { base, offset: 0 }));
            }
            OperandKind::Vector(n) if form.paired && instead == Some(Instead::Pair) => {
                let parts = (0..n).map(|_| Some(self.builder.register(ty?).into())).collect::<Option<_>>()?;
                return Some(Operand::Resident(parts, self.builder.register(Type::Pred)));
            }
            _ => {}
        }
        let mut value = |ty: Type| {
            if instead == Some(Instead::Constant) {
                return if form.destination || form.register { None } else { Sample::constant(ty) };
            }
            // Registers of 8 bits are rarely useful.
            let register = self.builder.register(if form.wider && ty.bits() == 8 { Type::U32 } else { ty });
            Some(match instead {
                Some(Instead::Selected) => Operand::Selected(register, selector(form.selection)?),
                Some(Instead::Negated) if form.negatable => Operand::Not(register),
                Some(Instead::Negated) if form.signed => Operand::Negated(register, None),
                Some(Instead::Pair) if form.paired => {
                    Operand::Pair(Some(register), Some(self.builder.register(Type::Pred)))
                }
                Some(Instead::Sink) if form.sink => Operand::Sink,
                Some(_) => return None,
                None if form.selection == Selection::OnePart => Operand::Selected(register, Selector::Half(1)),
                None => Operand::Register(register),
            })
        };
        let vector = match form.kind {
            OperandKind::Vector(n) => Some(usize::from(n)),
            OperandKind::Vectorized => choice.iter().flatten().find_map(|m| m.vector()),
            OperandKind::Axes => Some(choice.iter().flatten().find_map(|m| m.shape())?.axes),
            _ => None,
        };
        if let Some(n) = vector {
            return (0..n).map(|_| value(ty?)).collect::<Option<Vec<_>>>().map(Operand::Vector);
        }
        match form.kind {
            OperandKind::Constant if form.limit == ConstantLimit::Event => Some(Operand::Integer(15)),
            OperandKind::Constant => Some(Operand::Integer(16)),
            OperandKind::Value if instead == Some(Instead::Constant) && form.limit == ConstantLimit::Threads => {
                Some(Operand::Integer(64))
            }
            OperandKind::Symbol => {
                let space = choice.iter().flatten().find_map(|m| m.space()).unwrap_or(Space::Shared);
                Some(Operand::Symbol(self.variable(space), 4))
            }
            OperandKind::Special => Some(Operand::Special(match ty? {
                ty if ty.bits() == 64 => SpecialRegister::Clock64,
                _ => SpecialRegister::TidX,
            })),
            OperandKind::Label => {
                let label = self.builder.label(format!("$here_{}", self.builder.entry().labels.len()));
                self.builder.place(label);
                Some(Operand::Label(label))
            }
            OperandKind::Address => {
                let base = if choice.contains(&Some(Modifier::Param)) {
                    Base::Symbol(if opcode == Opcode::St { self.variable(Space::Param) } else { self.parameter })
                } else {
                    Base::Register(self.builder.register(Type::U64))
                };
                Some(Operand::Address(Address { base, offset: 0 }))
            }
            _ => value(ty?),
        }
    }

    /// Returns the instruction of a row with this choice of modifiers, and a replacement of one
    /// register operand.
    pub fn instruction(
        &mut self,
        row: &FormRow,
        choice: &[Option<Modifier>],
        instead: Option<(usize, Instead)>,
    ) -> Option<Instruction> {
        let operands = row
            .operands()
            .iter()
            .enumerate()
            .filter(|(_, form)| match form.presence {
                Presence::With(slot) => choice[usize::from(slot)].is_some(),
                Presence::Always | Presence::Optional => true,
            })
            .map(|(i, form)| {
                self.operand(row.opcode, form, choice, instead.filter(|(at, _)| *at == i).map(|(_, what)| what))
            })
            .collect::<Option<_>>()?;
        let modifiers = choice.iter().flatten().copied().collect();
        Some(Instruction { guard: None, opcode: row.opcode, modifiers, operands })
    }

    pub fn text(self) -> String {
        self.builder.finish().unwrap().to_string()
    }
}

/// Returns a selector that the form accepts.
fn selector(selection: Selection) -> Option<Selector> {
    Some(match selection {
        Selection::None => return None,
        Selection::Part => Selector::Byte(3),
        Selection::OnePart | Selection::HalfMask => Selector::Half(0),
        Selection::Halves => Selector::Halves([3, 0]),
        Selection::Bytes => Selector::Bytes([7, 0, 2, 2].map(Some)),
        Selection::ByteMask => Selector::Bytes([Some(3), Some(1), None, None]),
    })
}
