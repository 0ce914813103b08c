//! Inline PTX: instructions in which `{name}` is an operand, and declarations of registers.

use super::cursor::ParseFailed;
use super::error::{ParseErrors, ParseMistake};
use super::lex::{Punctuation, Token, TokenKind};
use super::scope::MAX_DEPTH;
use super::{ModuleParser, module};
use crate::ptx::ast::{
    Declaration, Function, FunctionKind, Instruction, Linkage, Module, RegisterId, Statement, TargetArchitecture,
};
use crate::ptx::check::{ChosenForm, Illegal, Reason};
use crate::ptx::form;
use crate::ptx::inline::{
    Direction, Effect, InlineSource, effect_of, effect_of_special, reads_carry, refused, register_type,
    unspecified_result, writes_carry,
};
use crate::ptx::print::In;
use crate::ptx::words::{Opcode, Type};
use crate::ptx::{Operand, inline};
use smallvec::SmallVec;
use std::collections::HashSet;

/// A parsed block.
pub(in crate::ptx) struct ParsedBlock {
    /// The module: one function, whose first registers are the operands.
    pub module: Module,
    pub effect: Effect,
    /// By operand, whether an instruction names it.
    pub named: Vec<bool>,
    /// By operand, whether every lane writes it.
    pub written: Vec<bool>,
}

/// Parses the instructions of a block for `target`, in the newest PTX version.
pub(in crate::ptx) fn inline(source: &InlineSource, target: TargetArchitecture) -> Result<ParsedBlock, ParseErrors> {
    let mut parser = ModuleParser::new(&source.text)?;
    parser.placeholders = true;
    (parser.module.target, parser.module.version) = (target, module::LATEST_KNOWN);
    let mut function = Function::new(Linkage::Internal, FunctionKind::Device, "");
    function.registers = source
        .operands
        .iter()
        .map(|o| Declaration {
            ty: register_type(o.ty).unwrap_or(Type::B32),
            prefix: format!("{{{}}}", o.name),
            count: None,
        })
        .collect();
    parser.module.functions.push(function);
    parser.scope.open();
    let mut block = InlineParser::new(&source.operands);
    while parser.cursor.peek().kind != TokenKind::End {
        if let Err(ParseFailed) = parser.part(&mut block) {
            parser.cursor.recover();
        }
    }
    parser.function().body = Some(block.body);
    let InlineParser { effect, named, operands, written, .. } = block;
    let is_written = |i: usize| written.contains(&RegisterId { declaration: i as u32, number: 0 });
    let written = (0..operands.len()).map(is_written).collect();
    let ModuleParser { cursor, module, .. } = parser;
    cursor.finish(ParsedBlock { module, effect, named, written })
}

/// The state of a block during parsing.
struct InlineParser<'s> {
    operands: &'s [inline::InlineOperand],
    body: Vec<Statement>,
    effect: Effect,
    named: Vec<bool>,
    /// The registers that have a value in every lane.
    defined: HashSet<RegisterId>,
    /// The registers that an instruction has written.
    written: HashSet<RegisterId>,
    /// Whether the carry is set in every lane.
    carry: bool,
}

impl<'s> InlineParser<'s> {
    fn new(operands: &'s [inline::InlineOperand]) -> InlineParser<'s> {
        let enters = |i: &usize| operands[*i].direction.enters();
        let register = |i: usize| RegisterId { declaration: i as u32, number: 0 };
        InlineParser {
            operands,
            body: Vec::new(),
            effect: Effect::None,
            named: vec![false; operands.len()],
            defined: (0..operands.len()).filter(enters).map(register).collect(),
            written: HashSet::new(),
            carry: false,
        }
    }

    fn operand(&self, register: RegisterId) -> Option<&inline::InlineOperand> {
        self.operands.get(register.declaration as usize)
    }
}

impl ModuleParser<'_> {
    /// Parses an instruction, a declaration, or a brace of a scope.
    fn part(&mut self, block: &mut InlineParser<'_>) -> Result<(), ParseFailed> {
        let at = self.cursor.peek();
        match at.kind {
            TokenKind::Punctuation(Punctuation::Semicolon) => {
                self.cursor.next();
                Ok(())
            }
            TokenKind::Punctuation(Punctuation::OpenBrace) => {
                self.cursor.next();
                if self.scope.open() {
                    return Ok(());
                }
                let what = format!("a scope nested more than {MAX_DEPTH} levels deep");
                Err(self.cursor.fail(at, ParseMistake::Unsupported { what, help: "" }))
            }
            TokenKind::Punctuation(Punctuation::CloseBrace) => {
                self.cursor.next();
                if self.scope.depth() > 1 {
                    self.scope.close();
                    return Ok(());
                }
                self.cursor.expected_at(at, "an instruction");
                Ok(())
            }
            TokenKind::Dotted if self.cursor.eat_dotted(".reg") => {
                block.body.extend(self.registers()?);
                Ok(())
            }
            TokenKind::Dotted => {
                let word = self.cursor.text(at);
                let text =
                    format!("`{word}` is not allowed in inline PTX, which can declare only registers, with `.reg`");
                Err(self.wrong(at, text))
            }
            TokenKind::Word if self.cursor.ahead(1).kind == TokenKind::Punctuation(Punctuation::Colon) => {
                let name = self.cursor.text(at);
                let why = refused(Opcode::Bra).unwrap_or_default();
                let text = format!("the label `{name}` is not allowed in inline PTX: {why}");
                Err(self.wrong(at, text))
            }
            TokenKind::Word | TokenKind::Punctuation(Punctuation::At) => self.inline_instruction(block),
            _ => Err(self.cursor.expected("an instruction or `.reg`")),
        }
    }

    fn inline_instruction(&mut self, block: &mut InlineParser<'_>) -> Result<(), ParseFailed> {
        let guard = self.guard()?;
        let at = self.cursor.name("an instruction")?;
        let word = self.cursor.text(at);
        let Some(opcode) = Opcode::from_spelling(word.as_bytes()) else {
            let what = "a known instruction";
            return Err(self.cursor.fail(at, ParseMistake::Unknown { what, name: word.to_string() }));
        };
        if let Some(why) = refused(opcode) {
            return Err(self.wrong(at, format!("`{word}` is not allowed in inline PTX: {why}")));
        }
        let (instruction, places) = self.instruction(guard, opcode)?;
        // The last instruction needs no semicolon.
        if self.cursor.peek().kind != TokenKind::End {
            self.cursor.end_of_statement()?;
        }
        let (instruction, form) = match self.legal(instruction.clone()) {
            Ok(legal) => legal,
            Err(illegal) => {
                self.record_illegal(block, at, &places, &instruction, illegal);
                return Ok(());
            }
        };
        self.flow(block, at, &instruction, &form);
        block.body.push(Statement::Instruction(instruction));
        Ok(())
    }

    /// Records that an instruction is illegal, with the declared type of a block operand.
    fn record_illegal(
        &mut self,
        block: &InlineParser<'_>,
        at: Token,
        places: &[Token],
        instruction: &Instruction,
        illegal: Illegal,
    ) {
        let given = match illegal.reason {
            Reason::Operand { operand, .. } => instruction.operands.get(operand),
            _ => None,
        };
        let declared = match given {
            Some(Operand::Register(r) | Operand::Not(r) | Operand::Negated(r, _) | Operand::Selected(r, _)) => {
                block.operand(*r)
            }
            _ => None,
        };
        let Some(inline::InlineOperand { name, ty, .. }) = declared else {
            self.illegal(at, places, illegal);
            return;
        };
        self.wrong(at, format!("{illegal}; `{{{name}}}` is a `{ty}`"));
    }

    /// Tracks the reads and writes of an instruction, and notes reads of undefined registers and
    /// writes of inputs.
    fn flow(&mut self, block: &mut InlineParser<'_>, at: Token, instruction: &Instruction, form: &ChosenForm) {
        let text = In(self.names(), instruction).to_string();
        let mut mistakes: Vec<String> = Vec::new();
        mistakes.extend(unspecified_result(instruction));
        let (mut reads, mut writes): (SmallVec<[RegisterId; 4]>, SmallVec<[RegisterId; 2]>) = Default::default();
        reads.extend(instruction.guard.map(|g| g.register));
        for (operand, form) in instruction.operands.iter().zip(form.row.operands()) {
            let written = form.destination && form.kind != form::OperandKind::Address;
            operand.registers(&mut |r, _| if written { writes.push(r) } else { reads.push(r) });
            if let Operand::Special(special) = operand {
                block.effect = block.effect.max(effect_of_special(*special));
            }
        }
        block.effect = block.effect.max(effect_of(instruction.opcode));
        for r in reads.iter().chain(&writes) {
            if let Some(named) = block.named.get_mut(r.declaration as usize) {
                *named = true;
            }
        }
        let name = |r: RegisterId| {
            let declaration = &self.module.functions[0].registers[r.declaration as usize];
            match declaration.count {
                Some(_) => format!("{}{}", declaration.prefix, r.number),
                None => declaration.prefix.clone(),
            }
        };
        for r in reads.iter().filter(|r| !block.defined.contains(r)) {
            mistakes.push(format!("reads `{}`, which no unpredicated instruction has written yet", name(*r)));
        }
        for (i, r) in writes.iter().enumerate() {
            if block.operand(*r).is_some_and(|o| o.direction == Direction::In) {
                mistakes.push(format!("writes `{}`, which is an input: make it `inout`", name(*r)));
            }
            if writes[..i].contains(r) {
                mistakes.push(format!("writes `{}` twice", name(*r)));
            }
        }
        if reads_carry(instruction.opcode) && !block.carry {
            mistakes.push("reads the carry, which no unpredicated `.cc` instruction has set in this block".to_string());
        }
        let guarded = instruction.guard.is_some();
        for r in writes {
            // If the guard is false, the register keeps its value.
            if !guarded || block.defined.contains(&r) {
                block.defined.insert(r);
                block.written.insert(r);
            }
        }
        block.carry |= writes_carry(instruction) && !guarded;
        for mistake in mistakes {
            self.wrong(at, format!("`{text}` {mistake}"));
        }
    }
}
