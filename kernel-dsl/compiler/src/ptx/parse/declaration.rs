//! Declarations of parameters, variables with initial values, and registers.

use super::ModuleParser;
use super::cursor::ParseFailed;
use super::error::ParseMistake;
use super::expression::ConstantValue;
use super::lex::{Punctuation, Token, TokenKind};
use super::scope::{Name, Numbered};
use crate::ptx::ast::{
    Declaration, Initializer, Item, Linkage, Parameter, Pointer, PropertyValue, RegisterId, Statement, Symbol, Variable,
};
use crate::ptx::words::{Property, Sampling, Space, TargetOption, Type, TypeClass, Version};

/// The largest number of dimensions of an array.
const MAX_DIMENSIONS: usize = 16;

impl<'a> ModuleParser<'a> {
    /// Parses a type, such as `.u32`.
    pub fn ty(&mut self) -> Result<Type, ParseFailed> {
        let at = self.cursor.peek();
        let ty = self.type_or_object()?;
        if ty.class() == TypeClass::Opaque {
            let text = "a texture, sampler or surface must be a module variable in `.global`, or a kernel parameter";
            return Err(self.wrong(at, text));
        }
        Ok(ty)
    }

    /// Parses a type, including those of textures, samplers and surfaces.
    fn type_or_object(&mut self) -> Result<Type, ParseFailed> {
        let at = self.cursor.peek();
        let ty = self.cursor.dotted(Type::from_spelling);
        // The bfloat16 types are allowed only in instructions.
        let Some(ty) = ty.filter(|ty| !matches!(ty, Type::Bf16 | Type::Bf16x2)) else {
            return Err(self.cursor.expected_at(at, "a type"));
        };
        if ty == Type::Samplerref && !self.module.options.contains(&TargetOption::TexmodeIndependent) {
            self.wrong(at, "separate samplers require `.target …, texmode_independent`");
        }
        if ty == Type::B128 {
            self.require_support(at, "type `.b128`", Version::new(8, 3), 70);
        }
        Ok(ty)
    }

    fn align(&mut self) -> Result<u32, ParseFailed> {
        let at = self.cursor.peek();
        let align = self.cursor.constant_u32()?;
        if align.is_power_of_two() { Ok(align) } else { Err(self.cursor.expected_at(at, "a power of two")) }
    }

    /// Parses an optional `(…, …)`. Parameters in registers are added to `registers`.
    pub fn parameters(&mut self, registers: &mut Vec<Declaration>) -> Result<Vec<(Token, Parameter)>, ParseFailed> {
        let mut list = Vec::new();
        if !self.cursor.eat(Punctuation::Open) || self.cursor.eat(Punctuation::Close) {
            return Ok(list);
        }
        loop {
            list.extend(self.parameter(registers)?);
            if !self.cursor.eat(Punctuation::Comma) {
                self.cursor.expect(Punctuation::Close)?;
                return Ok(list);
            }
        }
    }

    /// Parses a parameter. A vector of registers becomes one parameter for each element.
    fn parameter(&mut self, registers: &mut Vec<Declaration>) -> Result<Vec<(Token, Parameter)>, ParseFailed> {
        let in_register = self.cursor.eat_dotted(".reg");
        if !in_register && !self.cursor.eat_dotted(".param") {
            return Err(self.cursor.expected("`.param` or `.reg`"));
        }
        let mut align = None;
        while self.cursor.eat_dotted(".align") {
            align = Some(self.align()?);
        }
        let at = self.cursor.peek();
        let elements = if in_register { self.vector_of_registers() } else { 1 };
        let ty = if in_register { self.ty()? } else { self.type_or_object()? };
        if ty == Type::Pred && !in_register {
            self.wrong(at, "a predicate cannot be in memory");
        }
        let pointer = if self.cursor.eat_dotted(".ptr") {
            let space = self.cursor.dotted(Space::from_spelling);
            let align = if self.cursor.eat_dotted(".align") { Some(self.align()?) } else { None };
            Some(Pointer { space, align })
        } else {
            None
        };
        if elements > 1 {
            self.fits_vector(at, elements, ty)?;
        }
        let at = self.cursor.name("a parameter name")?;
        let name = self.cursor.text(at).to_string();
        if elements > 1 {
            let element = |i: usize| {
                let name = element_name(&name, i);
                registers.push(Declaration { ty, prefix: name.clone(), count: None });
                let register = Some(RegisterId { declaration: registers.len() as u32 - 1, number: 0 });
                (at, Parameter { register, ..Parameter::scalar(&name, ty) })
            };
            return Ok((0..elements as usize).map(element).collect());
        }
        let elements = if self.cursor.eat(Punctuation::OpenBracket) {
            let elements = if self.cursor.is(Punctuation::CloseBracket) {
                self.require_support(at, "a parameter array of unspecified length", Version::new(6, 0), 0);
                None
            } else {
                Some(self.cursor.constant_u32()?)
            };
            self.cursor.expect(Punctuation::CloseBracket)?;
            Some(elements)
        } else {
            None
        };
        let register = in_register.then(|| {
            registers.push(Declaration { ty, prefix: name.clone(), count: None });
            RegisterId { declaration: registers.len() as u32 - 1, number: 0 }
        });
        Ok(vec![(at, Parameter { name, ty, align, elements, pointer, register })])
    }

    /// Parses an optional `.v2` or `.v4`. Returns the number of elements.
    fn vector_of_registers(&mut self) -> u32 {
        let lengths = [(".v2", 2), (".v4", 4)];
        lengths.into_iter().find(|(word, _)| self.cursor.eat_dotted(word)).map_or(1, |(_, n)| n)
    }

    /// Rejects vectors of registers that are too long.
    fn fits_vector(&mut self, at: Token, elements: u32, ty: Type) -> Result<(), ParseFailed> {
        if ty == Type::Pred || elements * ty.bits() > 128 {
            return Err(self.wrong(at, "a vector has at most 128 bits, and no predicates"));
        }
        Ok(())
    }

    /// Parses the textures of a `.tex` directive.
    pub fn textures(&mut self, linkage: Linkage) -> Result<(), ParseFailed> {
        let texture = Variable { linkage, ty: Type::Texref, align: None, ..Variable::bytes(Space::Global, 1, "", 0) };
        let list = self.named_variables(&texture)?;
        self.declare_globals(list);
        Ok(())
    }

    /// Parses variables at module scope, after the state space.
    pub fn module_variables(&mut self, linkage: Linkage, space: Space) -> Result<(), ParseFailed> {
        let list = self.variables(linkage, space)?;
        self.declare_globals(list);
        Ok(())
    }

    /// Returns whether variable `index` of the module is only an `.extern` declaration of
    /// `variable`, with the same state space and type.
    fn completes(&self, index: u32, variable: &Variable) -> bool {
        let before = &self.module.variables[index as usize];
        before.linkage == Linkage::Extern && (before.space, before.ty) == (variable.space, variable.ty)
    }

    fn declare_globals(&mut self, list: Vec<(Token, Variable)>) {
        for (at, variable) in list {
            let index = self.module.variables.len() as u32;
            let name = self.cursor.text(at);
            match self.globals.insert(name, Symbol::Global(index)) {
                // A definition completes an earlier `.extern` declaration.
                Some(Symbol::Global(before)) if self.completes(before, &variable) => {
                    self.globals.insert(name, Symbol::Global(before));
                    self.module.variables[before as usize] = variable;
                    continue;
                }
                Some(_) => _ = self.cursor.fail(at, ParseMistake::Taken { name: name.to_string() }),
                None => {}
            }
            self.module.variables.push(variable);
            self.module.items.push(Item::Variable(index));
        }
    }

    /// Parses variables of a function, after the state space. Returns the statements that declare
    /// them.
    pub fn local_variables(&mut self, space: Space) -> Result<Vec<Statement>, ParseFailed> {
        let mut statements = Vec::new();
        for (at, variable) in self.variables(Linkage::Internal, space)? {
            let index = self.function().variables.len() as u32;
            self.function().variables.push(variable);
            self.declare(at, Name::Symbol(Symbol::Variable(index)));
            statements.push(Statement::Variable(index));
        }
        Ok(statements)
    }

    /// Declares a name of the function.
    pub fn declare(&mut self, at: Token, meaning: Name) {
        let name = self.cursor.text(at);
        if !self.scope.declare(name, meaning) {
            self.cursor.fail(at, ParseMistake::Taken { name: name.to_string() });
        }
    }

    /// Parses the common part of several variables, then each variable with its name.
    fn variables(&mut self, linkage: Linkage, space: Space) -> Result<Vec<(Token, Variable)>, ParseFailed> {
        let (mut align, mut vector, mut managed) = (None, 1, false);
        let at = loop {
            let at = self.cursor.peek();
            if self.cursor.eat_dotted(".align") {
                align = Some(self.align()?);
            } else if self.cursor.eat_dotted(".v2") {
                vector = 2;
            } else if self.cursor.eat_dotted(".v4") {
                vector = 4;
            } else if self.cursor.eat_dotted(".attribute") {
                self.cursor.expect(Punctuation::Open)?;
                if !self.cursor.eat_dotted(".managed") {
                    return Err(self.cursor.expected("`.managed`"));
                }
                self.cursor.expect(Punctuation::Close)?;
                managed = true;
            } else {
                break at;
            }
        };
        let ty = if space == Space::Global { self.type_or_object()? } else { self.ty()? };
        if ty == Type::Pred {
            return Err(self.wrong(at, "a predicate cannot be in memory"));
        }
        if ty.class() == TypeClass::Opaque && (vector > 1 || linkage == Linkage::Common || self.scope.depth() > 0) {
            self.wrong(at, "a texture, sampler or surface must be a module variable, and not a vector or `.common`");
        }
        if u32::from(vector) * ty.bits() > 128 {
            return Err(self.wrong(at, "a vector has at most 128 bits"));
        }
        if managed && space != Space::Global {
            return Err(self.wrong(at, "a managed variable must be in `.global`"));
        }
        let (name, dimensions, initializer) = (String::new(), Vec::new(), None);
        let common = Variable { linkage, managed, space, align, vector, ty, name, dimensions, initializer };
        self.named_variables(&common)
    }

    /// Parses variables with this common part, each from its name on.
    fn named_variables(&mut self, common: &Variable) -> Result<Vec<(Token, Variable)>, ParseFailed> {
        let mut list = Vec::new();
        loop {
            let at = self.cursor.name("a variable name")?;
            let name = self.cursor.text(at).to_string();
            let mut variable = Variable { name, dimensions: Vec::new(), ..common.clone() };
            self.dimensions(&mut variable)?;
            if self.cursor.eat(Punctuation::Assign) {
                self.initial_value(at, &mut variable)?;
            }
            if variable.size().is_none_or(|n| n == 0) && common.linkage != Linkage::Extern {
                let text = format!("the array `{}` has no length", variable.name);
                self.wrong(at, text);
            }
            list.push((at, variable));
            if !self.cursor.eat(Punctuation::Comma) {
                self.cursor.end_of_statement()?;
                return Ok(list);
            }
        }
    }

    fn dimensions(&mut self, variable: &mut Variable) -> Result<(), ParseFailed> {
        loop {
            let at = self.cursor.peek();
            if !self.cursor.eat(Punctuation::OpenBracket) {
                return Ok(());
            }
            let first = variable.dimensions.is_empty();
            let length =
                if first && self.cursor.is(Punctuation::CloseBracket) { None } else { Some(self.cursor.integer()?) };
            self.cursor.expect(Punctuation::CloseBracket)?;
            variable.dimensions.push(length);
            if variable.dimensions.len() > MAX_DIMENSIONS {
                let what = format!("an array of more than {MAX_DIMENSIONS} dimensions");
                return Err(self.cursor.fail(at, ParseMistake::Unsupported { what, help: "" }));
            }
        }
    }

    fn initial_value(&mut self, at: Token, variable: &mut Variable) -> Result<(), ParseFailed> {
        if variable.ty.class() == TypeClass::Opaque {
            variable.initializer = Some(self.properties()?);
            return Ok(());
        }
        let half = matches!(variable.ty.class(), TypeClass::Float) && !matches!(variable.ty, Type::F32 | Type::F64);
        let why = match variable.space {
            Space::Global | Space::Const if half => "of this type",
            Space::Global | Space::Const if variable.linkage == Linkage::Extern => "declared `.extern`",
            Space::Global | Space::Const => {
                let mut lengths = variable.dimensions.clone();
                if variable.vector > 1 {
                    lengths.push(Some(u64::from(variable.vector)));
                }
                variable.initializer = Some(self.initializer(variable.ty, &lengths)?);
                return Ok(());
            }
            _ => "in this state space",
        };
        let text = format!("a variable {why} cannot have an initial value");
        Err(self.wrong(at, text))
    }

    /// Parses `{ addr_mode_0 = wrap, normalized_coords = 1 }`
    fn properties(&mut self) -> Result<Initializer, ParseFailed> {
        let mut list = Vec::new();
        self.cursor.expect(Punctuation::OpenBrace)?;
        loop {
            let at = self.cursor.name("a property of a texture or sampler, such as `addr_mode_0`")?;
            let name = self.cursor.text(at);
            let Some(property) = Property::from_spelling(name.as_bytes()) else {
                let what = "a property of a texture or sampler";
                return Err(self.cursor.fail(at, ParseMistake::Unknown { what, name: name.to_string() }));
            };
            self.cursor.expect(Punctuation::Assign)?;
            let at = self.cursor.peek();
            let sampling =
                Sampling::from_spelling(self.cursor.text(at).as_bytes()).filter(|_| at.kind == TokenKind::Word);
            let setting = match sampling {
                Some(sampling) => {
                    self.cursor.next();
                    PropertyValue::Sampling(sampling)
                }
                None => PropertyValue::Number(self.cursor.constant_u32()?),
            };
            list.push((property, setting));
            if !self.cursor.eat(Punctuation::Comma) {
                self.cursor.expect(Punctuation::CloseBrace)?;
                return Ok(Initializer::Properties(list));
            }
        }
    }

    /// Parses the initial value of an array of these dimensions.
    fn initializer(&mut self, ty: Type, lengths: &[Option<u64>]) -> Result<Initializer, ParseFailed> {
        let Some((length, inner)) = lengths.split_first() else { return self.initial_element(ty) };
        self.cursor.expect(Punctuation::OpenBrace)?;
        let mut list = Vec::new();
        if self.cursor.eat(Punctuation::CloseBrace) {
            return Ok(Initializer::List(list));
        }
        loop {
            let at = self.cursor.peek();
            list.push(self.initializer(ty, inner)?);
            if length.is_some_and(|n| list.len() as u64 > n) {
                let text = format!("more initial values than elements ({})", length.unwrap_or_default());
                return Err(self.wrong(at, text));
            }
            if self.cursor.eat(Punctuation::CloseBrace) {
                return Ok(Initializer::List(list));
            }
            if !self.cursor.eat(Punctuation::Comma) {
                return Err(self.cursor.expected("`,` or `}`"));
            }
        }
    }

    fn initial_element(&mut self, ty: Type) -> Result<Initializer, ParseFailed> {
        let at = self.cursor.peek();
        if at.kind == TokenKind::Word && self.cursor.text(at) != "WARP_SZ" {
            return self.initial_address(None);
        }
        let value = self.cursor.constant()?;
        // `0xFF00(a)`: a byte of an address.
        if let Some(mask) = value.integer()
            && self.cursor.eat(Punctuation::Open)
        {
            self.require_support(at, "one byte of an address as an initial value", Version::new(7, 1), 0);
            let byte = (0..8).find(|byte| mask == 0xff << (8 * byte));
            let Some(byte) = byte else { return Err(self.cursor.expected_at(at, "a mask that selects one byte")) };
            let address = self.initial_address(Some(byte))?;
            self.cursor.expect(Punctuation::Close)?;
            return Ok(address);
        }
        let converted = match (ty, value) {
            (Type::F32, ConstantValue::F32(bits)) => Some(Initializer::F32(bits)),
            (Type::F32, ConstantValue::F64(bits)) => Some(Initializer::F32((f64::from_bits(bits) as f32).to_bits())),
            (Type::F32, ConstantValue::Decimal(x)) => Some(Initializer::F32((x as f32).to_bits())),
            (Type::F64, ConstantValue::F32(bits)) => Some(Initializer::F64(f64::from(f32::from_bits(bits)).to_bits())),
            (Type::F64, ConstantValue::F64(bits)) => Some(Initializer::F64(bits)),
            (Type::F64, ConstantValue::Decimal(x)) => Some(Initializer::F64(x.to_bits())),
            (_, ConstantValue::Bits(n)) if ty.class() != TypeClass::Float => Some(Initializer::Bits(n)),
            (_, ConstantValue::Signed(n)) if ty.class() != TypeClass::Float => Some(Initializer::Integer(n)),
            (_, ConstantValue::Unsigned(n)) if ty.class() != TypeClass::Float => Some(Initializer::Integer(n as i64)),
            _ => None,
        };
        converted.ok_or_else(|| self.cursor.expected_at(at, format!("a constant of type `.{ty}`")))
    }

    fn initial_address(&mut self, byte: Option<u8>) -> Result<Initializer, ParseFailed> {
        let mut at = self.cursor.name("a variable or a function")?;
        let generic = self.cursor.text(at) == "generic" && self.cursor.eat(Punctuation::Open);
        if generic {
            at = self.cursor.name("a variable or a function")?;
            self.cursor.expect(Punctuation::Close)?;
        }
        let name = self.cursor.text(at);
        let inner = self.scope.find(name).and_then(|n| if let Name::Symbol(s) = n { Some(s) } else { None });
        let symbol = inner.or_else(|| self.globals.get(name).copied());
        let space = match symbol {
            Some(Symbol::Global(i)) => Some(self.module.variables[i as usize].space),
            Some(Symbol::Variable(i)) => Some(self.function().variables[i as usize].space),
            Some(Symbol::Function(_)) => Some(Space::Global),
            _ => None,
        };
        let (Some(symbol), Some(Space::Global | Space::Const)) = (symbol, space) else {
            let what = "a variable or function with a constant address";
            return Err(self.cursor.fail(at, ParseMistake::Unknown { what, name: name.to_string() }));
        };
        let offset = if self.cursor.eat(Punctuation::Plus) { self.offset()? } else { 0 };
        Ok(Initializer::Address { symbol, offset, generic, byte })
    }

    /// Parses the offset after the `+` of an address.
    pub fn offset(&mut self) -> Result<i32, ParseFailed> {
        let at = self.cursor.peek();
        let value = self.cursor.integer()? as i64;
        i32::try_from(value).map_err(|_| self.cursor.expected_at(at, "an offset that fits in 32 bits"))
    }

    /// Parses registers after `.reg`. Returns the statements that declare them.
    pub fn registers(&mut self) -> Result<Vec<Statement>, ParseFailed> {
        let at = self.cursor.peek();
        let elements = self.vector_of_registers();
        let ty = self.ty()?;
        if elements > 1 {
            self.fits_vector(at, elements, ty)?;
        }
        let mut statements = Vec::new();
        loop {
            let at = self.cursor.name("a register name")?;
            let prefix = self.cursor.text(at);
            let count = if self.cursor.eat(Punctuation::Less) {
                // Not an expression, because `>` is an operator.
                let count = self.cursor.literal("a number of registers")?;
                self.cursor.expect(Punctuation::Greater)?;
                Some(count)
            } else {
                None
            };
            let registers = &mut self.function().registers;
            let declaration = registers.len() as u32;
            registers.extend((0..elements as usize).map(|i| {
                let prefix = if elements == 1 { prefix.to_string() } else { element_name(prefix, i) };
                Declaration { ty, prefix, count }
            }));
            let free = match count {
                Some(count) => self.scope.declare_numbered(prefix, Numbered { declaration, count, elements }),
                None => self.scope.declare(prefix, Name::registers(RegisterId { declaration, number: 0 }, elements)),
            };
            if !free {
                self.cursor.fail(at, ParseMistake::Taken { name: prefix.to_string() });
            }
            statements.extend((0..elements).map(|i| Statement::Registers(declaration + i)));
            if !self.cursor.eat(Punctuation::Comma) {
                self.cursor.end_of_statement()?;
                return Ok(statements);
            }
        }
    }
}

/// Returns the name of an element of a vector of registers.
fn element_name(vector: &str, element: usize) -> String {
    format!("{vector}${}", ["x", "y", "z", "w"][element.min(3)])
}
