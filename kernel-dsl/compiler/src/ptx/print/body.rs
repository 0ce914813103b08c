//! Printing of function bodies.

use super::{In, ValueNames, comment, displacement, parameters, variable};
use crate::ptx::ast::{
    Address, Base, Callee, Callees, Declaration, FunctionCall, Guard, Instruction, Location, Operand, RegisterId,
    SourcePosition, Statement,
};
use std::fmt::{Display, Formatter, Result};

pub(super) fn body(f: &mut Formatter<'_>, names: ValueNames<'_>) -> Result {
    f.write_str("{\n")?;
    let mut depth = 1usize;
    for statement in names.function.statements() {
        if let Statement::Close = statement {
            depth = depth.saturating_sub(1);
        }
        if !matches!(statement, Statement::Label(_)) {
            write!(f, "{:1$}", "", 4 * depth)?;
        }
        In(names, statement).fmt(f)?;
        if let Statement::Open = statement {
            depth += 1;
        }
    }
    f.write_str("}\n")
}

/// Writes a statement, with the end of the line.
impl Display for In<'_, Statement> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let In(names, statement) = *self;
        let function = names.function;
        match statement {
            Statement::Label(l) => writeln!(f, "{}:", function.labels[l.0 as usize]),
            Statement::Comment(text) => comment(f, text),
            Statement::Instruction(i) => writeln!(f, "{};", In(names, i)),
            Statement::Call(c) => writeln!(f, "{};", In(names, &**c)),
            Statement::Registers(i) => {
                let Declaration { ty, prefix, count } = &function.registers[*i as usize];
                match count {
                    Some(n) => writeln!(f, ".reg .{ty} {prefix}<{n}>;"),
                    None => writeln!(f, ".reg .{ty} {prefix};"),
                }
            }
            Statement::Variable(i) => variable(f, names.module, Some(function), &function.variables[*i as usize]),
            Statement::BranchTargets(i) => {
                let targets = &function.branch_targets[*i as usize];
                write!(f, "{}: .branchtargets ", targets.name)?;
                commas(f, targets.labels.iter().map(|l| &function.labels[l.0 as usize]))?;
                f.write_str(";\n")
            }
            Statement::CallTargets(i) => {
                let targets = &function.call_targets[*i as usize];
                write!(f, "{}: ", targets.name)?;
                match &targets.callees {
                    Callees::Functions(list) => {
                        f.write_str(".calltargets ")?;
                        commas(f, list.iter().map(|i| &names.module.functions[*i as usize].name))?;
                    }
                    Callees::Prototype { returns, parameters: list, no_return } => {
                        f.write_str(".callprototype ")?;
                        if !returns.is_empty() {
                            parameters(f, returns)?;
                            f.write_str(" ")?;
                        }
                        f.write_str("_ ")?;
                        parameters(f, list)?;
                        f.write_str(if *no_return { " .noreturn" } else { "" })?;
                    }
                }
                f.write_str(";\n")
            }
            Statement::Open => f.write_str("{\n"),
            Statement::Close => f.write_str("}\n"),
            Statement::Pragma(text) => writeln!(f, ".pragma \"{text}\";"),
            Statement::Location(Location { position, inlined }) => {
                write!(f, ".loc {position}")?;
                if let Some(i) = inlined {
                    write!(f, ", function_name {}", i.name)?;
                    displacement(f, i.offset as i32)?;
                    write!(f, ", inlined_at {}", i.at)?;
                }
                f.write_str("\n")
            }
        }
    }
}

impl Display for SourcePosition {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {} {}", self.file, self.line, self.column)
    }
}

fn commas(f: &mut Formatter<'_>, names: impl Iterator<Item = impl Display>) -> Result {
    for (i, name) in names.enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        name.fmt(f)?;
    }
    Ok(())
}

fn guard(f: &mut Formatter<'_>, names: ValueNames<'_>, guard: Option<Guard>) -> Result {
    match guard {
        Some(Guard { register, negated }) => {
            write!(f, "@{}{} ", if negated { "!" } else { "" }, In(names, &register))
        }
        None => Ok(()),
    }
}

impl Display for In<'_, Instruction> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let In(names, i) = *self;
        guard(f, names, i.guard)?;
        f.write_str(i.opcode.spelling())?;
        for m in &i.modifiers {
            f.write_str(".")?;
            f.write_str(m.spelling())?;
        }
        f.write_str(if i.operands.is_empty() { "" } else { " " })?;
        commas(f, i.operands.iter().map(|o| In(names, o)))
    }
}

impl Display for In<'_, FunctionCall> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let In(names, call) = *self;
        guard(f, names, call.guard)?;
        f.write_str(if call.uniform { "call.uni " } else { "call " })?;
        if !call.returns.is_empty() {
            f.write_str("(")?;
            commas(f, call.returns.iter().map(|o| In(names, o)))?;
            f.write_str("), ")?;
        }
        match call.callee {
            Callee::Function(i) => f.write_str(&names.module.functions[i as usize].name)?,
            Callee::Indirect { register, .. } => In(names, &register).fmt(f)?,
        }
        if !call.arguments.is_empty() {
            f.write_str(", (")?;
            commas(f, call.arguments.iter().map(|o| In(names, o)))?;
            f.write_str(")")?;
        }
        match call.callee {
            Callee::Indirect { targets, .. } => {
                write!(f, ", {}", names.function.call_targets[targets as usize].name)
            }
            Callee::Function(_) => Ok(()),
        }
    }
}

impl Display for In<'_, RegisterId> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let declaration = &self.0.function.registers[self.1.declaration as usize];
        f.write_str(&declaration.prefix)?;
        if declaration.count.is_some() { self.1.number.fmt(f) } else { Ok(()) }
    }
}

impl Display for In<'_, Option<RegisterId>> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.1 {
            Some(r) => In(self.0, r).fmt(f),
            None => f.write_str("_"),
        }
    }
}

impl Display for In<'_, Base> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.1 {
            Base::Register(r) => In(self.0, r).fmt(f),
            Base::Symbol(s) => f.write_str(self.0.symbol(*s)),
        }
    }
}

impl Display for In<'_, Operand> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let names = self.0;
        match self.1 {
            Operand::Register(r) => In(names, r).fmt(f),
            Operand::Not(r) => write!(f, "!{}", In(names, r)),
            Operand::Negated(r, selector) => {
                write!(f, "-{}", In(names, r))?;
                selector.map_or(Ok(()), |s| s.fmt(f))
            }
            Operand::Selected(r, selector) => write!(f, "{}{selector}", In(names, r)),
            Operand::Pair(a, b) => write!(f, "{}|{}", In(names, a), In(names, b)),
            Operand::Sink => f.write_str("_"),
            Operand::Vector(v) => {
                f.write_str("{")?;
                commas(f, v.iter().map(|o| In(names, o)))?;
                f.write_str("}")
            }
            Operand::Resident(v, p) => {
                f.write_str("{")?;
                commas(f, v.iter().map(|o| In(names, o)))?;
                write!(f, "}}|{}", In(names, p))
            }
            Operand::Texel(texel) => {
                f.write_str("[")?;
                for base in [Some(&texel.object), texel.sampler.as_ref()].into_iter().flatten() {
                    In(names, base).fmt(f)?;
                    f.write_str(", ")?;
                }
                f.write_str("{")?;
                commas(f, texel.coordinates.iter().map(|o| In(names, o)))?;
                f.write_str("}]")
            }
            Operand::Integer(n) => n.fmt(f),
            Operand::Bits(n) => write!(f, "0x{n:X}"),
            Operand::F32(bits) => write!(f, "0f{bits:08X}"),
            Operand::F64(bits) => write!(f, "0d{bits:016X}"),
            Operand::Special(r) => r.fmt(f),
            Operand::Address(Address { base, offset }) => {
                f.write_str("[")?;
                In(names, base).fmt(f)?;
                displacement(f, *offset)?;
                f.write_str("]")
            }
            Operand::Symbol(s, offset) => {
                f.write_str(names.symbol(*s))?;
                displacement(f, *offset)
            }
            Operand::Label(l) => f.write_str(&names.function.labels[l.0 as usize]),
            Operand::BranchTargets(i) => f.write_str(&names.function.branch_targets[*i as usize].name),
        }
    }
}
