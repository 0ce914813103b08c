//! Functions: signature, directives, and the statements of the body.

use super::ModuleParser;
use super::cursor::ParseFailed;
use super::error::ParseMistake;
use super::lex::{Punctuation, Token, TokenKind};
use super::module::{begins_item, is_of_later_targets};
use super::scope::{MAX_DEPTH, Name};
use crate::ptx::ast::{
    BranchTargets, Directives, Function, FunctionKind, Inlined, Item, Label, Lines, Linkage, Location, Parameter,
    SourcePosition, Statement, Symbol,
};
use crate::ptx::words::{Space, TypeClass, Version};

/// The largest size of a kernel's parameters in bytes.
const MAX_PARAMETER_BYTES: u64 = 4352;

/// The largest size of a kernel's parameters in bytes for sm_70 and later, from PTX 8.1 on.
const MAX_PARAMETER_BYTES_LATER: u64 = 32764;

impl<'a> ModuleParser<'a> {
    /// Parses a function after `.entry` or `.func`.
    pub fn signature_and_body(&mut self, linkage: Linkage, kind: FunctionKind) -> Result<(), ParseFailed> {
        let mut registers = Vec::new();
        let returns = match kind {
            FunctionKind::Device => self.parameters(&mut registers)?,
            FunctionKind::Entry => Vec::new(),
        };
        let at = self.cursor.name("a function name")?;
        let name = self.cursor.text(at);
        let parameters = self.parameters(&mut registers)?;
        let directives = self.directives(kind)?;
        self.signature(at, kind, &returns, &parameters);
        if kind == FunctionKind::Entry {
            self.limit_parameters(at, name, &parameters);
        }
        let defined = self.cursor.is(Punctuation::OpenBrace);
        let mut function = Function::new(linkage, kind, name);
        let only = |list: &[(Token, Parameter)]| list.iter().map(|(_, p)| p.clone()).collect();
        (function.returns, function.parameters) = (only(&returns), only(&parameters));
        (function.directives, function.registers) = (directives, registers);
        let index = self.announce(at, name, function, defined)?;
        if !defined {
            self.module.items.push(Item::Declaration(index));
            // The semicolon is optional, as in ptxas.
            self.cursor.eat(Punctuation::Semicolon);
            return Ok(());
        }
        self.module.items.push(Item::Definition(index));
        self.function = index as usize;
        self.scope = Default::default();
        self.scope.open();
        self.declare_parameters(&returns, Symbol::Return);
        self.declare_parameters(&parameters, Symbol::Parameter);
        self.body();
        Ok(())
    }

    /// Declares the names of parameters or results. The elements of a vector have one name.
    fn declare_parameters(&mut self, list: &[(Token, Parameter)], symbol: impl Fn(u32) -> Symbol) {
        let mut index = 0;
        for parameters in list.chunk_by(|(a, _), (b, _)| a.start == b.start) {
            let (at, first) = &parameters[0];
            let meaning = match (first.register, parameters.len()) {
                (None, _) => Name::Symbol(symbol(index)),
                (Some(register), 1) => Name::Register(register),
                (Some(first), length) => Name::Vector(first, length as u32),
            };
            self.declare(*at, meaning);
            index += parameters.len() as u32;
        }
    }

    /// Declares a function, or completes an earlier declaration.
    fn announce(&mut self, at: Token, name: &'a str, function: Function, defined: bool) -> Result<u32, ParseFailed> {
        let taken = ParseMistake::Taken { name: name.to_string() };
        match self.globals.get(name) {
            None => {
                let index = self.module.functions.len() as u32;
                self.globals.insert(name, Symbol::Function(index));
                self.module.functions.push(function);
                Ok(index)
            }
            Some(Symbol::Function(index)) => {
                let before = &self.module.functions[*index as usize];
                if before.body.is_some() && defined {
                    return Err(self.cursor.fail(at, taken));
                }
                if before.kind != function.kind || !before.has_signature_of(&function) {
                    let text = format!("`{name}` was already declared with a different signature");
                    return Err(self.wrong(at, text));
                }
                if defined {
                    self.module.functions[*index as usize] = function;
                }
                Ok(*index)
            }
            Some(_) => Err(self.cursor.fail(at, taken)),
        }
    }

    /// Reports parameters that this kind of function cannot have.
    fn signature(
        &mut self,
        at: Token,
        kind: FunctionKind,
        returns: &[(Token, Parameter)],
        given: &[(Token, Parameter)],
    ) {
        let in_memory = returns.iter().filter(|(_, p)| p.register.is_none()).count();
        if in_memory > 1 {
            self.wrong(at, "a function can return one `.param`, or several registers");
        }
        for (at, p) in given {
            match kind {
                FunctionKind::Entry if p.register.is_some() || p.elements == Some(None) => {
                    self.wrong(*at, "a kernel parameter must be a `.param` of known length");
                }
                FunctionKind::Device if p.ty.class() == TypeClass::Opaque => {
                    self.wrong(
                        *at,
                        "only kernels have texture, sampler and surface parameters; pass the handle to a function",
                    );
                }
                FunctionKind::Device if p.pointer.is_some() => {
                    self.wrong(*at, "`.ptr` is allowed only on a kernel parameter");
                }
                _ => {}
            }
        }
    }

    /// Rejects the parameters of a kernel that are too large together.
    fn limit_parameters(&mut self, at: Token, name: &str, given: &[(Token, Parameter)]) {
        let end = |start: u64, (_, p): &(Token, Parameter)| {
            start.next_multiple_of(p.alignment().max(1).into()) + u64::from(p.size())
        };
        let bytes = given.iter().fold(0, end);
        let (of_version, of_target) = (self.module.version >= Version::new(8, 1), self.module.target.sm >= 70);
        let most = if of_version && of_target { MAX_PARAMETER_BYTES_LATER } else { MAX_PARAMETER_BYTES };
        if bytes > most {
            self.wrong(at, format!("the parameters of `{name}` take {bytes} bytes, and at most {most} are allowed"));
        }
    }

    fn directives(&mut self, kind: FunctionKind) -> Result<Directives, ParseFailed> {
        let mut d = Directives::default();
        loop {
            let at = self.cursor.peek();
            // A prototype may have no semicolon.
            if at.kind != TokenKind::Dotted || begins_item(self.cursor.text(at)) {
                if d.max_threads.is_some() && d.required_threads.is_some() {
                    self.wrong(at, "a kernel cannot have both `.maxntid` and `.reqntid`");
                }
                return Ok(d);
            }
            self.cursor.next();
            match (self.cursor.text(at), kind) {
                (".maxntid", FunctionKind::Entry) => d.max_threads = Some(self.extent()?),
                (".reqntid", FunctionKind::Entry) => d.required_threads = Some(self.extent()?),
                (".minnctapersm", FunctionKind::Entry) => d.min_blocks = Some(self.positive()?),
                (".maxnreg", FunctionKind::Entry) => d.max_registers = Some(self.positive()?),
                // Ignored since PTX 2.0.
                (".maxnctapersm", FunctionKind::Entry) => _ = self.cursor.constant_u32()?,
                (".pragma", FunctionKind::Entry) => {
                    d.pragmas.extend(self.pragmas()?);
                }
                (".noreturn", FunctionKind::Device) => {
                    self.require_support(at, "`.noreturn`", Version::new(6, 4), 0);
                    d.no_return = true;
                }
                (word, _) if is_of_later_targets(word) => {
                    let what = format!("`{word}`");
                    return Err(self.cursor.fail(at, ParseMistake::Unsupported { what, help: "" }));
                }
                _ => {
                    return Err(self
                        .cursor
                        .expected_at(at, "a directive that applies to this kind of function, `{` or `;`"));
                }
            }
        }
    }

    /// Parses a number of at least 1.
    fn positive(&mut self) -> Result<u32, ParseFailed> {
        let at = self.cursor.peek();
        let number = self.cursor.constant_u32()?;
        if number == 0 { Err(self.cursor.expected_at(at, "a number of at least 1")) } else { Ok(number) }
    }

    /// Parses one to three numbers.
    fn extent(&mut self) -> Result<[u32; 3], ParseFailed> {
        let mut extent = [self.cursor.constant_u32()?, 1, 1];
        for n in &mut extent[1..] {
            if !self.cursor.eat(Punctuation::Comma) {
                break;
            }
            *n = self.cursor.constant_u32()?;
        }
        if extent.contains(&0) {
            return Err(self.cursor.expected("extents of at least 1 before this"));
        }
        Ok(extent)
    }

    /// Parses the statements from `{` to the matching `}`.
    fn body(&mut self) {
        self.cursor.next();
        let mut body = Vec::new();
        let mut lines = Vec::new();
        while self.scope.depth() > 0 {
            let comments = self.comments();
            body.extend(comments.into_iter().map(Statement::Comment));
            let at = self.cursor.peek();
            let line = self.cursor.line(at);
            lines.resize(body.len(), line);
            if at.kind == TokenKind::End {
                self.cursor.expected("`}` at the end of the function");
                break;
            }
            match self.statement() {
                Ok(statements) => body.extend(statements),
                Err(ParseFailed) => self.cursor.recover(),
            }
            lines.resize(body.len(), line);
        }
        let same = std::mem::take(&mut self.scope).resolutions();
        let function = self.function();
        (function.body, function.lines) = (Some(body), Lines(lines));
        function.number_labels(&same);
    }

    /// Parses a statement; a declaration of several names becomes several statements.
    fn statement(&mut self) -> Result<Vec<Statement>, ParseFailed> {
        let at = self.cursor.peek();
        match at.kind {
            TokenKind::Punctuation(Punctuation::OpenBrace) => {
                self.cursor.next();
                if !self.scope.open() {
                    let what = format!("a block nested more than {MAX_DEPTH} levels deep");
                    return Err(self.cursor.fail(at, ParseMistake::Unsupported { what, help: "" }));
                }
                Ok(vec![Statement::Open])
            }
            TokenKind::Punctuation(Punctuation::CloseBrace) => {
                self.cursor.next();
                for (name, at) in self.scope.close() {
                    self.cursor.fail(at, ParseMistake::Unknown { what: "a label here", name: name.to_string() });
                }
                Ok(if self.scope.depth() == 0 { vec![] } else { vec![Statement::Close] })
            }
            TokenKind::Dotted => self.directive(at),
            TokenKind::Word if self.cursor.ahead(1).kind == TokenKind::Punctuation(Punctuation::Colon) => {
                self.cursor.next();
                self.cursor.next();
                let next = self.cursor.peek();
                if next.kind == TokenKind::Dotted {
                    match self.cursor.text(next) {
                        ".branchtargets" => return self.branch_targets(at),
                        ".calltargets" => return self.call_targets(at),
                        ".callprototype" => return self.call_prototype(at),
                        _ => {}
                    }
                }
                let name = self.cursor.text(at);
                let placed = self.scope.place(name);
                Ok(self
                    .labeled(at, placed, ParseMistake::Taken { name: name.to_string() })
                    .map(Statement::Label)
                    .into_iter()
                    .collect())
            }
            TokenKind::Word | TokenKind::Punctuation(Punctuation::At) => self.guarded(),
            _ => Err(self.cursor.expected("an instruction, a directive, a label or `}`")),
        }
    }

    fn directive(&mut self, at: Token) -> Result<Vec<Statement>, ParseFailed> {
        let word = self.cursor.text(at);
        if let Some(space) = self.cursor.dotted(Space::from_spelling) {
            return self.local_variables(space);
        }
        self.cursor.next();
        match word {
            ".reg" => self.registers(),
            ".pragma" => Ok(self.pragmas()?.into_iter().map(Statement::Pragma).collect()),
            ".loc" => {
                let position = self.position()?;
                let inlined = if self.cursor.eat(Punctuation::Comma) { Some(self.inlined()?) } else { None };
                // Other statements may end without a semicolon.
                self.cursor.eat(Punctuation::Semicolon);
                Ok(vec![Statement::Location(Location { position, inlined })])
            }
            _ => Err(self.cursor.expected_at(at, "a state space, `.reg`, `.pragma` or `.loc`")),
        }
    }

    /// Parses `1 12 5`. Each number is a literal, because adjacent numbers are not an expression.
    fn position(&mut self) -> Result<SourcePosition, ParseFailed> {
        let mut numbers = [0; 3];
        for n in &mut numbers {
            *n = self.cursor.literal("a file's number, a line and a column")?;
        }
        let [file, line, column] = numbers;
        Ok(SourcePosition { file, line, column })
    }

    /// Parses `function_name $L__info_string0+16, inlined_at 1 7 3`
    fn inlined(&mut self) -> Result<Inlined, ParseFailed> {
        let word = |parser: &mut Self, wanted: &str| match parser.cursor.next() {
            at if at.kind == TokenKind::Word && parser.cursor.text(at) == wanted => Ok(()),
            at => Err(parser.cursor.expected_at(at, format!("`{wanted}`"))),
        };
        word(self, "function_name")?;
        let at = self.cursor.name("the label of the name")?;
        let name = self.cursor.text(at).to_string();
        let offset = if self.cursor.eat(Punctuation::Plus) { self.offset()?.max(0) as u32 } else { 0 };
        self.cursor.expect(Punctuation::Comma)?;
        word(self, "inlined_at")?;
        Ok(Inlined { name, offset, at: self.position()? })
    }

    fn branch_targets(&mut self, at: Token) -> Result<Vec<Statement>, ParseFailed> {
        self.cursor.next();
        let mut labels = Vec::new();
        loop {
            let at = self.cursor.name("a label")?;
            labels.push(self.label(at)?);
            if !self.cursor.eat(Punctuation::Comma) {
                break;
            }
        }
        self.cursor.end_of_statement()?;
        let index = self.function().branch_targets.len() as u32;
        self.declare(at, Name::BranchTargets(index));
        let name = self.cursor.text(at).to_string();
        self.function().branch_targets.push(BranchTargets { name, labels });
        Ok(vec![Statement::BranchTargets(index)])
    }

    /// Parses the name of a label.
    pub fn label(&mut self, at: Token) -> Result<Label, ParseFailed> {
        let name = self.cursor.text(at);
        let label = self.scope.label(name, at);
        self.labeled(at, label, ParseMistake::Unknown { what: "a label", name: name.to_string() })
    }

    /// Records the name of a new label, and returns the label. Without a label, reports
    /// `otherwise`.
    fn labeled(&mut self, at: Token, label: Option<Label>, otherwise: ParseMistake) -> Result<Label, ParseFailed> {
        let Some(label) = label else { return Err(self.cursor.fail(at, otherwise)) };
        let name = self.cursor.text(at).to_string();
        let labels = &mut self.function().labels;
        if labels.len() == label.0 as usize {
            labels.push(name);
        }
        Ok(label)
    }
}
