//! Calls, and declarations of the possible functions of indirect calls.

use super::ModuleParser;
use super::cursor::ParseFailed;
use super::error::ParseMistake;
use super::lex::{Punctuation, Token, TokenKind};
use super::scope::Name;
use crate::ptx::ast::{CallTargets, Callee, Callees, FunctionCall, Guard, Operand, Parameter, Statement, Symbol};
use crate::ptx::check::{Illegal, check_call};
use crate::ptx::words::Opcode;

impl ModuleParser<'_> {
    /// Parses `$table: .calltargets f, g;`
    pub fn call_targets(&mut self, at: Token) -> Result<Vec<Statement>, ParseFailed> {
        self.cursor.next();
        let mut functions = vec![self.function_name()?];
        while self.cursor.eat(Punctuation::Comma) {
            functions.push(self.function_name()?);
        }
        self.declare_call_targets(at, Callees::Functions(functions))
    }

    /// Parses `$proto: .callprototype (.param .b32 _) _ (.param .b64 _);`
    pub fn call_prototype(&mut self, at: Token) -> Result<Vec<Statement>, ParseFailed> {
        self.cursor.next();
        // The registers of a prototype belong to no function, so their declarations are dropped.
        let mut registers = Vec::new();
        let only = |list: Vec<(Token, Parameter)>| list.into_iter().map(|(_, p)| p).collect();
        let returns = only(self.parameters(&mut registers)?);
        self.cursor.name("`_`")?;
        let parameters = only(self.parameters(&mut registers)?);
        let no_return = self.cursor.eat_dotted(".noreturn");
        self.declare_call_targets(at, Callees::Prototype { returns, parameters, no_return })
    }

    fn declare_call_targets(&mut self, at: Token, callees: Callees) -> Result<Vec<Statement>, ParseFailed> {
        self.cursor.end_of_statement()?;
        let index = self.function().call_targets.len() as u32;
        self.declare(at, Name::CallTargets(index));
        let name = self.cursor.text(at).to_string();
        self.function().call_targets.push(CallTargets { name, callees });
        Ok(vec![Statement::CallTargets(index)])
    }

    /// Parses a call after the word `call`.
    pub fn call(&mut self, at: Token, guard: Option<Guard>) -> Result<Vec<Statement>, ParseFailed> {
        let uniform = self.cursor.eat_dotted(".uni");
        let returns = if self.cursor.is(Punctuation::Open) {
            let list = self.call_operands()?;
            self.cursor.expect(Punctuation::Comma)?;
            list
        } else {
            Vec::new()
        };
        let callee = self.cursor.name("a function, or a register that holds its address")?;
        let name = self.cursor.text(callee);
        let register = match self.scope.find(name) {
            Some(Name::Register(r)) => Some(r),
            _ => None,
        };
        let mut arguments = Vec::new();
        let mut targets = None;
        while self.cursor.eat(Punctuation::Comma) {
            if self.cursor.is(Punctuation::Open) && targets.is_none() && arguments.is_empty() {
                arguments = self.call_operands()?;
                continue;
            }
            let at = self.cursor.name("`(`, or a list or prototype of functions")?;
            let name = self.cursor.text(at);
            match self.scope.find(name) {
                Some(Name::CallTargets(i)) if targets.is_none() => targets = Some(i),
                _ => {
                    let what = "a list or prototype of functions";
                    return Err(self.cursor.fail(at, ParseMistake::Unknown { what, name: name.to_string() }));
                }
            }
        }
        self.cursor.end_of_statement()?;
        let found = match (register, self.globals.get(name), targets) {
            (Some(register), _, Some(targets)) => Ok(Callee::Indirect { register, targets }),
            (Some(_), _, None) => {
                Err(ParseMistake::Wrong("an indirect call needs a list or prototype of functions".to_string()))
            }
            (None, Some(Symbol::Function(i)), None) => Ok(Callee::Function(*i)),
            _ => Err(ParseMistake::Unknown { what: "a function", name: name.to_string() }),
        };
        // An error is reported only here, after the statement's end, so that parsing can continue.
        let callee = match found {
            Ok(callee) => callee,
            Err(mistake) => {
                self.cursor.fail(callee, mistake);
                return Ok(vec![]);
            }
        };
        let call = FunctionCall { guard, uniform, returns, callee, arguments };
        if let Err(Illegal { instruction, reason }) = check_call(self.names(), &call) {
            self.cursor.fail(at, ParseMistake::Illegal { instruction, reason });
        }
        Ok(vec![Statement::Call(Box::new(call))])
    }

    /// Parses `(a, b)`
    fn call_operands(&mut self) -> Result<Vec<Operand>, ParseFailed> {
        self.cursor.expect(Punctuation::Open)?;
        let mut list = Vec::new();
        while self.cursor.peek().kind != TokenKind::Punctuation(Punctuation::Close) {
            let named = self.cursor.peek().kind == TokenKind::Word;
            match self.operand(Opcode::Call, list.len())? {
                // The elements of a vector of registers are passed one by one.
                Operand::Vector(elements) if named => list.extend(elements),
                one => list.push(one),
            }
            if !self.cursor.eat(Punctuation::Comma) {
                break;
            }
        }
        self.cursor.expect(Punctuation::Close)?;
        Ok(list)
    }
}
