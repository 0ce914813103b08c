//! The table of instructions against ptxas: what a row allows is accepted, from the version and the target that it
//! names on; and the forms that look legal and are not are refused by both.

mod ptx_support;

use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ptx::check::Reason;
use kernel_dsl_compiler::ptx::form::{Kind, OperandForm, OperandType, Row, Slot};
use kernel_dsl_compiler::ptx::table::ROWS;
use kernel_dsl_compiler::ptx::{
    Address, Base, Builder, Illegal, Instruction, Modifier, Opcode, Operand, Register, Space, SpecialRegister, Symbol,
    Type, Version,
};

/// Every choice of modifiers that the slots allow.
fn choices(slots: &[Slot]) -> Vec<Vec<Option<Modifier>>> {
    slots.iter().fold(vec![vec![]], |all, slot| {
        let here: Vec<Option<Modifier>> =
            slot.alternatives.iter().map(Some).chain(slot.optional.then_some(None)).collect();
        all.iter().flat_map(|c| here.iter().map(|m| c.iter().copied().chain([*m]).collect())).collect()
    })
}

/// A choice for each slot, then the same with each slot changed by itself.
fn one_by_one(slots: &[Slot]) -> Vec<Vec<Option<Modifier>>> {
    let first: Vec<_> = slots.iter().map(|s| s.alternatives.iter().next()).collect();
    let mut all = vec![first.clone()];
    for (i, slot) in slots.iter().enumerate() {
        for m in slot.alternatives.iter().map(Some).skip(1).chain(slot.optional.then_some(None)) {
            let mut choice = first.clone();
            choice[i] = m;
            all.push(choice);
        }
    }
    all
}

/// A module under construction with something of everything to name.
struct Sample {
    builder: Builder,
    parameter: Symbol,
    variable: Symbol,
}

impl Sample {
    fn new(target: Target) -> Sample {
        let mut builder = Builder::new(target, "sample").unwrap();
        let parameter = builder.parameter("parameter", Type::U64).unwrap();
        let variable = builder.variable("$smem", Space::Shared, 16, 64).unwrap();
        Sample { builder, parameter, variable }
    }

    fn constant(ty: Type) -> Option<Operand> {
        match ty {
            Type::F32 => Some(Operand::F32(1f32.to_bits())),
            Type::F64 => Some(Operand::F64(1f64.to_bits())),
            Type::F16 | Type::F16x2 => None,
            _ => Some(Operand::Integer(1)),
        }
    }

    /// The operand of a form; `constant` where one is to stand there, if it can.
    fn operand(&mut self, form: &OperandForm, choice: &[Option<Modifier>], constant: bool) -> Option<Operand> {
        let slot = |i: u8| choice[usize::from(i)].and_then(Modifier::ty);
        let ty = match form.ty {
            OperandType::None => None,
            OperandType::Fixed(t) => Some(t),
            OperandType::Slot(i) => slot(i),
            OperandType::Wide(i) => slot(i).and_then(Type::doubled),
        };
        let mut value = |ty: Type| match constant && !form.destination {
            true => Sample::constant(ty),
            // There are no registers of 8 bits worth having.
            false if form.wider && ty.bits() == 8 => Some(self.builder.register(Type::U32).into()),
            false => Some(self.builder.register(ty).into()),
        };
        let vector = match form.kind {
            Kind::Vector(n) => Some(usize::from(n)),
            Kind::Vectorised => choice.iter().flatten().find_map(|m| m.vector()),
            _ => None,
        };
        if let Some(n) = vector {
            return (0..n).map(|_| value(ty?)).collect::<Option<Vec<_>>>().map(Operand::Vector);
        }
        match form.kind {
            Kind::Constant => Some(Operand::Integer(4)),
            Kind::Symbol => Some(Operand::Symbol(self.variable, 4)),
            Kind::Special => Some(Operand::Special(match ty? {
                Type::U64 => SpecialRegister::Clock64,
                _ => SpecialRegister::TidX,
            })),
            Kind::Label => {
                let label = self.builder.label("$here");
                self.builder.place(label);
                Some(Operand::Label(label))
            }
            Kind::Address => {
                let base = if choice.contains(&Some(Modifier::Param)) {
                    Base::Symbol(self.parameter)
                } else {
                    Base::Register(self.builder.register(Type::U64))
                };
                Some(Operand::Address(Address { base, offset: 0 }))
            }
            _ => value(ty?),
        }
    }

    /// The instruction of a row with this choice of modifiers, operand `constant` of it a constant.
    fn instruction(&mut self, row: &Row, choice: &[Option<Modifier>], constant: Option<usize>) -> Option<Instruction> {
        let operands = row
            .operands()
            .iter()
            .enumerate()
            .map(|(i, form)| self.operand(form, choice, constant == Some(i)))
            .collect::<Option<_>>()?;
        let modifiers = choice.iter().flatten().copied().collect();
        Some(Instruction { guard: None, opcode: row.opcode, modifiers, operands })
    }

    fn text(self) -> String {
        self.builder.finish().unwrap().to_string()
    }
}

/// The target that a row is tried on.
fn target(row: &Row) -> Target {
    Target::ALL.into_iter().find(|t| t.sm() >= row.target).unwrap()
}

#[test]
fn each_row_is_accepted_by_ptxas() {
    let mut failures = Vec::new();
    let mut count = 0;
    let installed = ptx_support::installed();
    for row in ROWS {
        let mut sample = Sample::new(target(row));
        for choice in choices(row.slots()) {
            let constants = row.operands().iter().enumerate().filter(|(_, f)| !f.destination).map(|(i, _)| Some(i));
            for constant in [None].into_iter().chain(constants) {
                let Some(instruction) = sample.instruction(row, &choice, constant) else { continue };
                sample.builder.instruction(instruction).unwrap_or_else(|e| panic!("{}: {e}", row.form));
                count += 1;
            }
        }
        let text = sample.text();
        if installed && let Err(e) = ptx_support::assemble(&text, target(row).sm()) {
            let named: Vec<String> = e
                .lines()
                .take(3)
                .map(|l| {
                    let number = l.split("line ").nth(1).and_then(|l| l.split(';').next()).and_then(|n| n.parse().ok());
                    format!("{l}\n    {}", number.and_then(|n: usize| text.lines().nth(n - 1)).unwrap_or_default())
                })
                .collect();
            failures.push(format!("{}\n  {}", row.form, named.join("\n  ")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{count} instructions of {} forms", ROWS.len());
}

/// The module with another version and target than the builder found.
fn with(text: &str, version: Version, sm: u16) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for line in &mut lines {
        if line.starts_with(".version") {
            *line = format!(".version {version}");
        } else if line.starts_with(".target") {
            *line = format!(".target sm_{sm}");
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn no_row_is_accepted_before_its_version_or_target() {
    if !ptx_support::installed() {
        return;
    }
    let versions: Vec<Version> =
        [(5, 0), (6, 0), (6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (7, 0), (7, 1), (7, 5), (7, 6), (7, 8), (8, 0)]
            .into_iter()
            .map(|(major, minor)| Version::new(major, minor))
            .collect();
    let mut failures = Vec::new();
    for row in ROWS {
        let here = target(row);
        let version = versions.iter().copied().rfind(|v| *v < row.version && *v >= Version::of(here));
        let before = Target::ALL.into_iter().rfind(|t| *t < here && row.target > t.sm());
        for choice in one_by_one(row.slots()) {
            let mut sample = Sample::new(here);
            let instruction = sample.instruction(row, &choice, None).unwrap();
            sample.builder.instruction(instruction).unwrap();
            let text = sample.text();
            if let Some(v) = version
                && ptx_support::assemble(&with(&text, v, here.sm()), here.sm()).is_ok()
            {
                failures.push(format!("{choice:?} of {} is fine in {v}", row.form));
            }
            if let Some(t) = before
                && ptx_support::assemble(&with(&text, Version::new(8, 0), t.sm()), t.sm()).is_ok()
            {
                failures.push(format!("{choice:?} of {} is fine on {t}", row.form));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
