//! Operands.

use super::ModuleParser;
use super::cursor::ParseFailed;
use super::error::ParseMistake;
use super::expression::ConstantValue;
use super::lex::{Punctuation, Token, TokenKind};
use super::scope::Name;
use crate::ptx::ast::{Address, Base, Operand, RegisterId, Selector, Symbol, Texel};
use crate::ptx::form::OperandKind as Form;
use crate::ptx::table;
use crate::ptx::words::{Opcode, SpecialRegister};

/// The meaning of a name in an operand.
enum NameMeaning {
    Register(RegisterId),
    /// All elements of a vector of registers.
    Vector(Vec<Operand>),
    Symbol(Symbol),
}

impl ModuleParser<'_> {
    /// Parses operand `index` of an instruction.
    pub fn operand(&mut self, opcode: Opcode, index: usize) -> Result<Operand, ParseFailed> {
        let at = self.cursor.peek();
        let takes =
            |kind: Form| table::rows(opcode).iter().any(|r| r.operands().get(index).is_some_and(|o| o.kind == kind));
        match at.kind {
            TokenKind::Punctuation(Punctuation::OpenBracket) => {
                self.cursor.next();
                let address = self.address()?;
                if self.cursor.is(Punctuation::Comma) {
                    return self.texel(address, opcode, index);
                }
                self.cursor.expect(Punctuation::CloseBracket)?;
                Ok(address)
            }
            TokenKind::Punctuation(Punctuation::OpenBrace) if self.placeholder() => self.named(takes(Form::Address)),
            TokenKind::Punctuation(Punctuation::OpenBrace) => self.vector(opcode, index),
            TokenKind::Punctuation(Punctuation::Not) if self.register_follows() => {
                self.cursor.next();
                Ok(Operand::Not(self.register()?))
            }
            TokenKind::Punctuation(Punctuation::Minus) if self.register_follows() => {
                self.cursor.next();
                let register = self.register()?;
                Ok(Operand::Negated(register, self.selector()?))
            }
            _ if self.cursor.at_constant() => Ok(match self.cursor.constant()? {
                ConstantValue::Signed(n) => Operand::Integer(n),
                ConstantValue::Unsigned(n) => Operand::Integer(n as i64),
                ConstantValue::Bits(n) => Operand::Bits(n),
                ConstantValue::F32(bits) => Operand::F32(bits),
                ConstantValue::F64(bits) => Operand::F64(bits),
                ConstantValue::Decimal(x) => Operand::F64(x.to_bits()),
            }),
            TokenKind::Word if takes(Form::Label) => {
                self.cursor.next();
                Ok(Operand::Label(self.label(at)?))
            }
            TokenKind::Word if takes(Form::BranchTargets) => {
                self.cursor.next();
                match self.scope.find(self.cursor.text(at)) {
                    Some(Name::BranchTargets(i)) => Ok(Operand::BranchTargets(i)),
                    _ => Err(self.unknown(at, "a list of branch targets declared before")),
                }
            }
            TokenKind::Word if self.cursor.text(at) == "_" => {
                self.cursor.next();
                if self.cursor.eat(Punctuation::Bar) {
                    Ok(Operand::Pair(None, self.half_of_pair()?))
                } else {
                    Ok(Operand::Sink)
                }
            }
            TokenKind::Word => match self.special(at) {
                Some(special) => Ok(Operand::Special(special)),
                None => self.named(takes(Form::Address)),
            },
            _ => Err(self.cursor.expected("an operand")),
        }
    }

    /// Returns whether a register follows the next token.
    fn register_follows(&self) -> bool {
        let next = self.cursor.ahead(1);
        match next.kind {
            TokenKind::Word => self.cursor.text(next) != "WARP_SZ",
            TokenKind::Punctuation(Punctuation::OpenBrace) => self.placeholders,
            _ => false,
        }
    }

    /// Parses a special register, which can have two words.
    fn special(&mut self, at: Token) -> Option<SpecialRegister> {
        let text = self.cursor.text(at);
        let next = self.cursor.ahead(1);
        if next.kind == TokenKind::Dotted
            && let Some(special) =
                SpecialRegister::from_spelling(format!("{text}{}", self.cursor.text(next)).as_bytes())
        {
            self.cursor.next();
            self.cursor.next();
            return Some(special);
        }
        let special = SpecialRegister::from_spelling(text.as_bytes()).filter(|_| self.scope.find(text).is_none())?;
        self.cursor.next();
        Some(special)
    }

    /// Returns whether a placeholder is next: `{a}`.
    fn placeholder(&self) -> bool {
        self.placeholders
            && matches!(self.cursor.ahead(1).kind, TokenKind::Word | TokenKind::Number(_))
            && self.cursor.ahead(2).kind == TokenKind::Punctuation(Punctuation::CloseBrace)
    }

    /// Parses a name and resolves it.
    fn find(&mut self) -> Result<(Token, NameMeaning), ParseFailed> {
        if self.placeholder() {
            self.cursor.next();
            let at = self.cursor.next();
            self.cursor.next();
            let name = self.cursor.text(at);
            let prefix = format!("{{{name}}}");
            let Some(declaration) = self.function().registers.iter().position(|d| d.prefix == prefix) else {
                let text =
                    format!("`{prefix}` is not an operand: declare it after the text, as in `{name} = in(u32) value`");
                return Err(self.wrong(at, text));
            };
            return Ok((at, NameMeaning::Register(RegisterId { declaration: declaration as u32, number: 0 })));
        }
        let at = self.cursor.name("a register, a variable or a constant")?;
        let name = self.cursor.text(at);
        match (self.scope.find(name), self.globals.get(name)) {
            (Some(Name::Register(r)), _) => Ok((at, NameMeaning::Register(r))),
            (Some(Name::Vector(first, length)), _) => {
                let element = |i| RegisterId { declaration: first.declaration + i, ..first };
                let named = match self.element_selector(length)? {
                    Some(i) => NameMeaning::Register(element(i)),
                    None => NameMeaning::Vector((0..length).map(|i| element(i).into()).collect()),
                };
                Ok((at, named))
            }
            (Some(Name::Symbol(s)), _) | (None, Some(&s)) => Ok((at, NameMeaning::Symbol(s))),
            _ => Err(self.unknown(at, "a register, a variable or a function here")),
        }
    }

    /// Parses an optional selector of one of `length` elements of a vector: `.x` or `.r`.
    fn element_selector(&mut self, length: u32) -> Result<Option<u32>, ParseFailed> {
        let at = self.cursor.peek();
        if at.kind != TokenKind::Dotted {
            return Ok(None);
        }
        let element = match self.cursor.dotted_text(at) {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => length,
        };
        if element >= length {
            return Err(self.cursor.expected("an element of the vector, such as `.x`"));
        }
        self.cursor.next();
        Ok(Some(element))
    }

    /// Records an undefined name, once.
    fn unknown(&mut self, at: Token, what: &'static str) -> ParseFailed {
        let name = self.cursor.text(at);
        if self.placeholders {
            let text = format!("`{name}` is not a register of this block: write an operand in braces, `{{{name}}}`");
            return self.wrong(at, text);
        }
        if self.unknown.insert(name) {
            return self.cursor.fail(at, ParseMistake::Unknown { what, name: name.to_string() });
        }
        ParseFailed
    }

    /// Parses a register.
    pub fn register(&mut self) -> Result<RegisterId, ParseFailed> {
        match self.find()? {
            (_, NameMeaning::Register(r)) => Ok(r),
            (at, NameMeaning::Vector(_) | NameMeaning::Symbol(_)) => Err(self.unknown(at, "a register")),
        }
    }

    /// Parses a register or symbol, with what can follow.
    fn named(&mut self, address: bool) -> Result<Operand, ParseFailed> {
        let (at, named) = self.find()?;
        match named {
            NameMeaning::Register(r) if self.cursor.eat(Punctuation::Bar) => {
                Ok(Operand::Pair(Some(r), self.half_of_pair()?))
            }
            NameMeaning::Register(r) => Ok(match self.selector()? {
                Some(selector) => Operand::Selected(r, selector),
                None => Operand::Register(r),
            }),
            NameMeaning::Vector(elements) if self.cursor.eat(Punctuation::Bar) => {
                Ok(Operand::Resident(elements, self.register()?))
            }
            NameMeaning::Vector(elements) => Ok(Operand::Vector(elements)),
            NameMeaning::Symbol(symbol) if self.cursor.eat(Punctuation::OpenBracket) => {
                let element = match symbol {
                    Symbol::Variable(i) => self.function().variables[i as usize].element(),
                    Symbol::Global(i) => self.module.variables[i as usize].element(),
                    _ => 1,
                };
                let index = self.offset()?;
                self.cursor.expect(Punctuation::CloseBracket)?;
                let Some(offset) = i32::try_from(element).ok().and_then(|e| e.checked_mul(index)) else {
                    return Err(self.cursor.expected_at(at, "an offset that fits in 32 bits"));
                };
                let base = Base::Symbol(symbol);
                Ok(if address { Operand::Address(Address { base, offset }) } else { Operand::Symbol(symbol, offset) })
            }
            NameMeaning::Symbol(symbol) => {
                let offset = if self.cursor.eat(Punctuation::Plus) { self.offset()? } else { 0 };
                Ok(Operand::Symbol(symbol, offset))
            }
        }
    }

    fn half_of_pair(&mut self) -> Result<Option<RegisterId>, ParseFailed> {
        let at = self.cursor.peek();
        if at.kind == TokenKind::Word && self.cursor.text(at) == "_" {
            self.cursor.next();
            return Ok(None);
        }
        self.register().map(Some)
    }

    fn address(&mut self) -> Result<Operand, ParseFailed> {
        let at = self.cursor.peek();
        if self.cursor.at_constant() {
            let what = "a constant address".to_string();
            return Err(self.cursor.fail(at, ParseMistake::Unsupported { what, help: "move it to a register first" }));
        }
        let base = match self.find()? {
            (_, NameMeaning::Register(r)) => Base::Register(r),
            (_, NameMeaning::Symbol(s)) => Base::Symbol(s),
            (at, NameMeaning::Vector(_)) => return Err(self.cursor.expected_at(at, "one element of the vector")),
        };
        let offset = if self.cursor.eat(Punctuation::Plus) { self.offset()? } else { 0 };
        if self.cursor.is(Punctuation::Minus) {
            return Err(self.cursor.expected("`]` or `+`: to subtract, add a negative number, as in `[%rd1+-4]`"));
        }
        Ok(Operand::Address(Address { base, offset }))
    }

    /// Parses a location in a texture or surface, after its name: an optional sampler and the
    /// coordinates.
    fn texel(&mut self, object: Operand, opcode: Opcode, index: usize) -> Result<Operand, ParseFailed> {
        let at = self.cursor.peek();
        let Operand::Address(Address { base: object, offset: 0 }) = object else {
            return Err(self.cursor.expected("`]`: an offset cannot be followed by coordinates"));
        };
        let mut sampler = None;
        loop {
            self.cursor.expect(Punctuation::Comma)?;
            let coordinates = match self.operand(opcode, index)? {
                Operand::Vector(coordinates) => coordinates,
                Operand::Register(r) if sampler.is_none() && self.cursor.is(Punctuation::Comma) => {
                    sampler = Some(Base::Register(r));
                    continue;
                }
                Operand::Symbol(s, 0) if sampler.is_none() && self.cursor.is(Punctuation::Comma) => {
                    sampler = Some(Base::Symbol(s));
                    continue;
                }
                // A single coordinate needs no braces, except after a sampler.
                Operand::Texel(_) | Operand::Address(_) | Operand::Resident(..) => {
                    return Err(self.cursor.expected_at(at, "coordinates such as `{%f1, %f2}`"));
                }
                _ if sampler.is_some() => return Err(self.cursor.expected_at(at, "coordinates such as `{%f1, %f2}`")),
                one => vec![one],
            };
            self.cursor.expect(Punctuation::CloseBracket)?;
            return Ok(Operand::Texel(Box::new(Texel { object, sampler, coordinates })));
        }
    }

    fn vector(&mut self, opcode: Opcode, index: usize) -> Result<Operand, ParseFailed> {
        self.cursor.next();
        let mut elements = Vec::new();
        loop {
            if self.cursor.is(Punctuation::OpenBrace) && !self.placeholder() {
                return Err(self.cursor.expected("an element of a vector"));
            }
            elements.push(self.operand(opcode, index)?);
            if !self.cursor.eat(Punctuation::Comma) {
                self.cursor.expect(Punctuation::CloseBrace)?;
                if self.cursor.eat(Punctuation::Bar) {
                    return Ok(Operand::Resident(elements, self.register()?));
                }
                return Ok(Operand::Vector(elements));
            }
        }
    }

    /// Parses an optional selector, such as `.b0` or `.h10`.
    fn selector(&mut self) -> Result<Option<Selector>, ParseFailed> {
        let at = self.cursor.peek();
        if at.kind != TokenKind::Dotted {
            return Ok(None);
        }
        match selector(self.cursor.dotted_text(at)) {
            Some(selector) => {
                self.cursor.next();
                Ok(Some(selector))
            }
            None => Err(self.cursor.expected("a selector of bytes or halves, such as `.b0` or `.h1`")),
        }
    }
}

fn selector(word: &str) -> Option<Selector> {
    let (unit, digits) = word.split_at_checked(1)?;
    let digit = |i: usize, limit: u8| digits.as_bytes().get(i).map(|c| c.wrapping_sub(b'0')).filter(|n| *n < limit);
    match (unit, digits.len()) {
        ("b", 1) => digit(0, 4).map(Selector::Byte),
        ("h", 1) => digit(0, 2).map(Selector::Half),
        ("h", 2) => Some(Selector::Halves([digit(0, 4)?, digit(1, 4)?])),
        ("b", n @ 2..=4) => {
            let mut bytes = [None; 4];
            for (i, byte) in bytes.iter_mut().take(n).enumerate() {
                *byte = Some(digit(i, 8)?);
            }
            Some(Selector::Bytes(bytes))
        }
        _ => None,
    }
}
