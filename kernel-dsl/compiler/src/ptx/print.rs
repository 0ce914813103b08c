//! PTX as text.

use super::ast::{Address, Base, Entry, Guard, Instruction, Module, Operand, Register, Statement, Symbol};
use std::fmt::{self, Display};

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.header {
            comment(f, line)?;
        }
        writeln!(f, ".version {}\n.target {}\n.address_size 64\n", self.version, self.target)?;
        self.entry.fmt(f)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".visible .entry {}(", self.name)?;
        for (i, p) in self.parameters.iter().enumerate() {
            write!(f, "{}\n    .param .{} {}", if i > 0 { "," } else { "" }, p.ty, p.name)?;
        }
        f.write_str(if self.parameters.is_empty() { ")\n" } else { "\n)\n" })?;
        if let Some([x, y, z]) = self.max_threads {
            writeln!(f, ".maxntid {x}, {y}, {z}")?;
        }
        if let Some(n) = self.min_blocks {
            writeln!(f, ".minnctapersm {n}")?;
        }
        if let Some(n) = self.max_registers {
            writeln!(f, ".maxnreg {n}")?;
        }
        f.write_str("{\n")?;
        for d in self.registers.iter().filter(|d| d.count > 0) {
            writeln!(f, "    .reg .{} {}<{}>;", d.ty, d.prefix, d.count)?;
        }
        for v in &self.variables {
            writeln!(f, "    .{} .align {} .b8 {}[{}];", v.space, v.align, v.name, v.bytes)?;
        }
        for statement in &self.body {
            match statement {
                Statement::Label(l) => writeln!(f, "{}:", self.labels[l.0 as usize])?,
                Statement::Comment(text) => {
                    f.write_str("    ")?;
                    comment(f, text)?;
                }
                Statement::Instruction(i) => writeln!(f, "    {};", In(self, i))?,
            }
        }
        f.write_str("}\n")
    }
}

/// Writes a line of comment. ptxas refuses what is not ASCII, and takes a backslash at the end for a continued line.
fn comment(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("//")?;
    let text = text.trim_end_matches(|c: char| c == '\\' || c.is_whitespace());
    if !text.is_empty() {
        f.write_str(" ")?;
    }
    for c in text.chars() {
        match c {
            ' '..='~' => write!(f, "{c}")?,
            '\t' => f.write_str("    ")?,
            _ => write!(f, "{}", c.escape_unicode())?,
        }
    }
    f.write_str("\n")
}

/// Something together with the entry that has its names, for printing.
pub struct In<'a, T>(pub &'a Entry, pub &'a T);

impl fmt::Display for In<'_, Instruction> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let In(entry, i) = *self;
        if let Some(Guard { register, negated }) = i.guard {
            write!(f, "@{}{} ", if negated { "!" } else { "" }, In(entry, &register))?;
        }
        f.write_str(i.opcode.spelling())?;
        for m in &i.modifiers {
            f.write_str(".")?;
            f.write_str(m.spelling())?;
        }
        list(f, entry, " ", &i.operands)
    }
}

fn list(f: &mut fmt::Formatter<'_>, entry: &Entry, before: &str, operands: &[Operand]) -> fmt::Result {
    for (i, o) in operands.iter().enumerate() {
        f.write_str(if i == 0 { before } else { ", " })?;
        In(entry, o).fmt(f)?;
    }
    Ok(())
}

impl fmt::Display for In<'_, Register> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0.registers[usize::from(self.1.declaration)].prefix, self.1.number)
    }
}

impl fmt::Display for In<'_, Operand> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.0;
        match self.1 {
            Operand::Register(r) => In(entry, r).fmt(f),
            Operand::Not(r) => write!(f, "!{}", In(entry, r)),
            Operand::Pair(a, b) => write!(f, "{}|{}", In(entry, a), In(entry, b)),
            Operand::Vector(v) => {
                f.write_str("{")?;
                list(f, entry, "", v)?;
                f.write_str("}")
            }
            Operand::Integer(n) => n.fmt(f),
            Operand::Bits(n) => write!(f, "0x{n:X}"),
            Operand::F32(bits) => write!(f, "0f{bits:08X}"),
            Operand::F64(bits) => write!(f, "0d{bits:016X}"),
            Operand::Special(r) => r.fmt(f),
            Operand::Address(Address { base, offset }) => {
                f.write_str("[")?;
                match base {
                    Base::Register(r) => In(entry, r).fmt(f)?,
                    Base::Symbol(s) => f.write_str(entry.symbol(*s))?,
                }
                displacement(f, *offset)?;
                f.write_str("]")
            }
            Operand::Symbol(s, offset) => symbol(f, entry, *s, *offset),
            Operand::Label(l) => f.write_str(&entry.labels[l.0 as usize]),
        }
    }
}

fn symbol(f: &mut fmt::Formatter<'_>, entry: &Entry, symbol: Symbol, offset: i32) -> fmt::Result {
    f.write_str(entry.symbol(symbol))?;
    displacement(f, offset)
}

/// ptxas has no subtraction in an address: `+-4`.
fn displacement(f: &mut fmt::Formatter<'_>, offset: i32) -> fmt::Result {
    if offset == 0 { Ok(()) } else { write!(f, "+{offset}") }
}
