//! One instruction with placeholders for operands, as inline assembly writes it.

use super::Parser;
use super::cursor::Failed;
use super::error::{Errors, Mistake};
use super::lex::{Kind, Mark};
use crate::ptx::ast::{Function, FunctionKind, Guard, Instruction, Linkage, Module};
use crate::ptx::form::{self, Row};
use crate::ptx::print::{In, Names};
use crate::ptx::words::{Opcode, Type};
use std::fmt;

/// An instruction whose operands are in part still open.
#[derive(Clone, Debug)]
pub struct Template {
    /// The form that it has.
    pub row: &'static Row,
    /// The instruction; register 0 of declaration `i` stands for placeholder `i`.
    pub instruction: Instruction,
    /// In the order in which the text first names them.
    pub placeholders: Vec<Placeholder>,
    /// Has the names of the placeholders.
    module: Box<Module>,
}

/// An operand that is to be given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placeholder {
    /// What stands between the braces.
    pub name: String,
    /// The type that the instruction works on there; `None` where it is an address.
    pub ty: Option<Type>,
    /// Whether the instruction writes it.
    pub written: bool,
    /// Whether the instruction reads it.
    pub read: bool,
    /// Whether it must be a constant.
    pub constant: bool,
    /// Whether a register may be wider than the type.
    pub wider: bool,
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        In(Names { module: &self.module, function: &self.module.functions[0] }, &self.instruction).fmt(f)
    }
}

/// Reads one instruction in which `{name}` stands for an operand: `shf.l.wrap.b32 {d}, {a}, {b}, {c};`. The semicolon
/// may be left out.
///
/// Any target and any version will do: the template's row says which have it.
pub fn instruction(text: &str) -> Result<Template, Errors> {
    let mut parser = Parser::new(text)?;
    parser.placeholders = true;
    parser.module.functions.push(Function::new(Linkage::Internal, FunctionKind::Device, ""));
    parser.scope.open();
    let template = parser.template();
    let (cursor, module) = (parser.cursor, Box::new(parser.module));
    let (row, instruction, placeholders) = cursor.finish_with(template)?;
    Ok(Template { row, instruction, placeholders, module })
}

impl Parser<'_> {
    fn template(&mut self) -> Result<(&'static Row, Instruction, Vec<Placeholder>), Failed> {
        let guard = self.guard()?;
        let at = self.cursor.name("an instruction")?;
        let word = self.cursor.text(at);
        let Some(opcode) = Opcode::from_spelling(word.as_bytes()).filter(|o| *o != Opcode::Call) else {
            let what = "an instruction of the table";
            return Err(self.cursor.fail(at, Mistake::Unknown { what, name: word.to_string() }));
        };
        let (instruction, places) = self.instruction(guard, opcode)?;
        self.cursor.eat(Mark::Semicolon);
        if self.cursor.peek().kind != Kind::End {
            return Err(self.cursor.expected("the end: inline assembly is one instruction"));
        }
        let (instruction, form) = match self.legal(instruction) {
            Ok(legal) => legal,
            Err(illegal) => return Err(self.illegal(at, &places, illegal)),
        };
        let registers = self.function().registers.iter();
        let mut placeholders: Vec<Placeholder> = registers
            .map(|d| Placeholder {
                name: d.prefix.trim_matches(['{', '}']).to_string(),
                ty: None,
                written: false,
                read: false,
                constant: false,
                wider: false,
            })
            .collect();
        if let Some(Guard { register, .. }) = guard {
            let p = &mut placeholders[register.declaration as usize];
            (p.ty, p.read) = (Some(Type::Pred), true);
        }
        for (i, operand) in instruction.operands.iter().enumerate() {
            let operand_form = &form.row.operands()[i];
            operand.registers(&mut |register, pair| {
                let p = &mut placeholders[register.declaration as usize];
                let address = operand_form.kind == form::Kind::Address;
                p.ty = p.ty.or(if pair { Some(Type::Pred) } else { form.ty(i) });
                p.written |= operand_form.destination && !address;
                p.read |= !operand_form.destination || address;
                p.constant |= operand_form.kind == form::Kind::Constant;
                p.wider |= operand_form.wider;
            });
        }
        Ok((form.row, instruction, placeholders))
    }
}
