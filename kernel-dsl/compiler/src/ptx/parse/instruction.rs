//! Instructions.

use super::Parser;
use super::cursor::Failed;
use super::error::Mistake;
use super::lex::{Kind, Mark, Token};
use crate::ptx::ast::{Guard, Instruction, Operand, Statement};
use crate::ptx::check::{Form, Illegal, Reason, check, reordered};
use crate::ptx::words::{Modifier, Opcode};
use smallvec::SmallVec;

/// Operands at most: more are read, and are too many for every form.
const OPERANDS: usize = 16;

impl Parser<'_> {
    /// An instruction with its guard.
    pub fn guarded(&mut self) -> Result<Vec<Statement>, Failed> {
        let guard = self.guard()?;
        let at = self.cursor.name("an instruction")?;
        let word = self.cursor.text(at);
        let Some(opcode) = Opcode::from_spelling(word.as_bytes()) else {
            let what = "a known instruction";
            return Err(self.cursor.fail(at, Mistake::Unknown { what, name: word.to_string() }));
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
                // The statement is read to its end.
                Ok(vec![])
            }
        }
    }

    /// Notes that an instruction cannot be, at the operand that is wrong.
    pub fn illegal(&mut self, at: Token, places: &[Token], illegal: Illegal) -> Failed {
        let place = match illegal.reason {
            Reason::Operand { operand, .. } => places.get(operand).copied().unwrap_or(at),
            _ => at,
        };
        let Illegal { instruction, reason } = illegal;
        self.cursor.fail(place, Mistake::Illegal { instruction, reason })
    }

    /// `@%p` or `@!%p`, if it is there.
    pub fn guard(&mut self) -> Result<Option<Guard>, Failed> {
        if !self.cursor.eat(Mark::At) {
            return Ok(None);
        }
        let negated = self.cursor.eat(Mark::Not);
        Ok(Some(Guard { register: self.register()?, negated }))
    }

    /// Modifiers and operands, and where each operand is.
    pub fn instruction(&mut self, guard: Option<Guard>, opcode: Opcode) -> Result<(Instruction, Vec<Token>), Failed> {
        let mut places = Vec::new();
        let mut modifiers = SmallVec::new();
        while self.cursor.peek().kind == Kind::Dotted {
            match self.cursor.dotted(Modifier::from_spelling) {
                Some(m) => modifiers.push(m),
                None => {
                    let at = self.cursor.next();
                    let name = self.cursor.text(at).to_string();
                    return Err(self.cursor.fail(at, Mistake::Unknown { what: "a known modifier", name }));
                }
            }
        }
        let mut operands = SmallVec::new();
        if !matches!(self.cursor.peek().kind, Kind::Mark(Mark::Semicolon) | Kind::End) {
            loop {
                let at = self.cursor.peek();
                places.push(at);
                operands.push(self.operand(opcode, operands.len())?);
                if operands.len() > OPERANDS {
                    return Err(self.cursor.expected_at(at, "fewer operands"));
                }
                if !self.cursor.eat(Mark::Comma) {
                    break;
                }
            }
        }
        Ok((Instruction { guard, opcode, modifiers, operands }, places))
    }

    /// The instruction as the table has it, if it is legal: its modifiers in the form's order, its float constants in
    /// the operand's width.
    pub fn legal(&self, instruction: Instruction) -> Result<(Instruction, Form), Illegal> {
        let mut refused = match self.with_floats(instruction.clone()) {
            Err(refused) => refused,
            legal => return legal,
        };
        for modifiers in reordered(&instruction) {
            match self.with_floats(Instruction { modifiers, ..instruction.clone() }) {
                // What is wrong beside the order says more.
                Err(closer) if matches!(refused.reason, Reason::Modifiers { .. }) => refused = closer,
                Err(_) => {}
                legal => return legal,
            }
        }
        Err(refused)
    }

    /// The instruction with its float constants rounded or widened to the operand's type, if it is legal.
    fn with_floats(&self, instruction: Instruction) -> Result<(Instruction, Form), Illegal> {
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
        // Where the operands fit then, what is wrong beside them says more.
        let mut converted = [convert(&narrow), convert(&wide)].into_iter().flatten();
        converted.find(|attempt| !misfit(attempt)).unwrap_or(Err(refused))
    }
}
