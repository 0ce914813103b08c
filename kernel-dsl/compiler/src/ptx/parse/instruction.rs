//! Instructions.

use super::ModuleParser;
use super::cursor::ParseFailed;
use super::error::ParseMistake;
use super::lex::{Punctuation, Token, TokenKind};
use crate::ptx::ast::{Guard, Instruction, Operand, Statement};
use crate::ptx::check::{ChosenForm, Illegal, Reason, check, reordered};
use crate::ptx::words::{Modifier, Opcode};
use smallvec::SmallVec;

/// The largest number of operands; every form has fewer.
const MAX_OPERANDS: usize = 16;

/// Instructions of later targets, which the table does not have.
const LATER_INSTRUCTIONS: [&str; 19] = [
    "applypriority",
    "clusterlaunchcontrol",
    "createpolicy",
    "discard",
    "elect",
    "getctarank",
    "griddepcontrol",
    "ldmatrix",
    "mapa",
    "mbarrier",
    "mma",
    "movmatrix",
    "multimem",
    "setmaxnreg",
    "stmatrix",
    "tcgen05",
    "tensormap",
    "wgmma",
    "wmma",
];

impl ModuleParser<'_> {
    /// Parses an instruction with its guard.
    pub fn guarded(&mut self) -> Result<Vec<Statement>, ParseFailed> {
        let guard = self.guard()?;
        let at = self.cursor.name("an instruction")?;
        let word = self.cursor.text(at);
        let Some(opcode) = Opcode::from_spelling(word.as_bytes()) else {
            let mistake = if LATER_INSTRUCTIONS.contains(&word) {
                ParseMistake::Unsupported { what: format!("the instruction `{word}`"), help: "" }
            } else {
                ParseMistake::Unknown { what: "a known instruction", name: word.to_string() }
            };
            return Err(self.cursor.fail(at, mistake));
        };
        if opcode == Opcode::Call {
            return self.call(at, guard);
        }
        let (instruction, places) = self.instruction(guard, opcode)?;
        self.cursor.end_of_statement()?;
        match self.legal(instruction) {
            Ok((instruction, _)) => Ok(vec![Statement::Instruction(instruction)]),
            Err(illegal) => {
                self.illegal(at, &places, illegal);
                // The error has been noted, and the statement has been parsed to its end.
                Ok(vec![])
            }
        }
    }

    /// Records the error of an illegal instruction, at the position of the operand that is wrong.
    pub fn illegal(&mut self, at: Token, places: &[Token], illegal: Illegal) -> ParseFailed {
        let place = match illegal.reason {
            Reason::Operand { operand, .. } => places.get(operand).copied().unwrap_or(at),
            _ => at,
        };
        let Illegal { instruction, reason } = illegal;
        self.cursor.fail(place, ParseMistake::Illegal { instruction, reason })
    }

    /// Parses an optional guard, `@%p` or `@!%p`.
    pub fn guard(&mut self) -> Result<Option<Guard>, ParseFailed> {
        if !self.cursor.eat(Punctuation::At) {
            return Ok(None);
        }
        let negated = self.cursor.eat(Punctuation::Not);
        Ok(Some(Guard { register: self.register()?, negated }))
    }

    /// Parses the modifiers and operands of an instruction, with the token of each operand.
    pub fn instruction(
        &mut self,
        guard: Option<Guard>,
        opcode: Opcode,
    ) -> Result<(Instruction, Vec<Token>), ParseFailed> {
        let mut places = Vec::new();
        let mut modifiers = SmallVec::new();
        while self.cursor.peek().kind == TokenKind::Dotted {
            match self.cursor.dotted(Modifier::from_spelling) {
                Some(m) => modifiers.push(m),
                None => {
                    let at = self.cursor.next();
                    let name = self.cursor.text(at).to_string();
                    return Err(self.cursor.fail(at, ParseMistake::Unknown { what: "a known modifier", name }));
                }
            }
        }
        let mut operands = SmallVec::new();
        if !matches!(self.cursor.peek().kind, TokenKind::Punctuation(Punctuation::Semicolon) | TokenKind::End) {
            loop {
                let at = self.cursor.peek();
                places.push(at);
                operands.push(self.operand(opcode, operands.len())?);
                if operands.len() > MAX_OPERANDS {
                    return Err(self.cursor.expected_at(at, "fewer operands"));
                }
                if !self.cursor.eat(Punctuation::Comma) {
                    break;
                }
            }
        }
        Ok((Instruction { guard, opcode, modifiers, operands }, places))
    }

    /// Returns a legal instruction in the form of the table: the modifiers in the form's order, and
    /// float constants with the operand's width.
    pub fn legal(&self, instruction: Instruction) -> Result<(Instruction, ChosenForm), Illegal> {
        let mut refused = match self.with_floats(instruction.clone()) {
            Err(refused) => refused,
            legal => return legal,
        };
        for modifiers in reordered(&instruction) {
            match self.with_floats(Instruction { modifiers, ..instruction.clone() }) {
                // If another order matches a form, the error of that form is more informative.
                Err(closer) if matches!(refused.reason, Reason::Modifiers { .. }) => refused = closer,
                Err(_) => {}
                legal => return legal,
            }
        }
        Err(refused)
    }

    /// Returns the instruction with float constants converted to the operand's type, if it is
    /// legal.
    fn with_floats(&self, instruction: Instruction) -> Result<(Instruction, ChosenForm), Illegal> {
        let attempt = |instruction: Instruction| {
            let form = check(self.names(), &instruction, self.module.target, self.module.version);
            form.map(|form| (instruction, form))
        };
        let refused = match attempt(instruction.clone()) {
            Err(refused) if matches!(refused.reason, Reason::Operand { .. }) => refused,
            decided => return decided,
        };
        let narrow = |o: &Operand| match o {
            Operand::F64(bits) => Some(Operand::F32((f64::from_bits(*bits) as f32).to_bits())),
            _ => None,
        };
        let wide = |o: &Operand| match o {
            Operand::F32(bits) => Some(Operand::F64(f64::from(f32::from_bits(*bits)).to_bits())),
            _ => None,
        };
        let convert = |with: &dyn Fn(&Operand) -> Option<Operand>| {
            let operands = instruction.operands.iter().map(|o| with(o).unwrap_or_else(|| o.clone())).collect();
            let changed = Instruction { operands, ..instruction.clone() };
            (changed != instruction).then(|| attempt(changed))
        };
        let misfit =
            |attempt: &Result<_, Illegal>| attempt.as_ref().is_err_and(|e| matches!(e.reason, Reason::Operand { .. }));
        // If the operands match after a conversion, that attempt's result or error is returned.
        let mut converted = [convert(&narrow), convert(&wide)].into_iter().flatten();
        converted.find(|attempt| !misfit(attempt)).unwrap_or(Err(refused))
    }
}
