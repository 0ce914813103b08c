//! Construction of modules. Each instruction is checked when it is appended.

use super::ast::{
    Declaration, File, Function, FunctionCall, FunctionKind, Instruction, Item, Label, Linkage, Location, Module,
    Operand, Parameter, RegisterId, SourcePosition, Statement, Symbol, Variable,
};
use super::check::{Illegal, check, check_call};
use super::print::{ValueNames, comment_text};
use super::words::{Space, Type, Version};
use crate::error::{Error, Errors};
use crate::target::Target;

/// A module under construction.
#[derive(Debug)]
pub struct ModuleBuilder {
    module: Module,
    /// For each label: whether it has been placed, and whether an instruction uses it.
    labels: Vec<(bool, bool)>,
    /// The declaration for new registers of each type.
    declarations: [Option<u32>; Type::ALL.len()],
}

impl ModuleBuilder {
    /// Creates a module for `target` with an empty entry named `name`.
    pub fn new(target: Target, name: &str) -> Result<ModuleBuilder, Errors> {
        identifier(name)?;
        let mut module = Module::new(Version::of(target), target.into());
        let entry = Function::new(Linkage::Visible, FunctionKind::Entry, name);
        module.functions.push(Function { body: Some(Vec::new()), ..entry });
        module.items.push(Item::Definition(0));
        Ok(ModuleBuilder { module, labels: Vec::new(), declarations: [None; Type::ALL.len()] })
    }

    /// Returns the entry so far.
    pub fn entry(&self) -> &Function {
        &self.module.functions[0]
    }

    fn entry_mut(&mut self) -> &mut Function {
        &mut self.module.functions[0]
    }

    /// Returns the names that instructions of the entry can use so far.
    pub fn names(&self) -> ValueNames<'_> {
        ValueNames { module: &self.module, function: self.entry() }
    }

    fn push(&mut self, statement: Statement) {
        self.entry_mut().body.get_or_insert_default().push(statement);
    }

    /// Appends a line to the comment at the top.
    pub fn header(&mut self, line: impl Into<String>) {
        self.module.header.push(comment_text(&line.into()));
    }

    /// Sets the performance directives; see [`Directives`](super::ast::Directives).
    pub fn directives(&mut self, max_threads: [u32; 3], min_blocks: Option<u32>, max_registers: Option<u32>) {
        let directives = &mut self.entry_mut().directives;
        directives.max_threads = Some(max_threads);
        (directives.min_blocks, directives.max_registers) = (min_blocks, max_registers);
    }

    /// Appends a parameter.
    pub fn parameter(&mut self, name: &str, ty: Type) -> Result<Symbol, Errors> {
        self.fresh(name)?;
        let parameters = &mut self.entry_mut().parameters;
        parameters.push(Parameter::scalar(name, ty));
        Ok(Symbol::Parameter(parameters.len() as u32 - 1))
    }

    /// Appends an array of bytes to the body's variables.
    pub fn variable(&mut self, name: &str, space: Space, align: u32, bytes: u32) -> Result<Symbol, Errors> {
        self.local(Variable::bytes(space, align, name, bytes))
    }

    /// Appends a `.param` of calls to the body's variables.
    pub fn call_parameter(&mut self, name: &str, ty: Type) -> Result<Symbol, Errors> {
        let scalar = Variable { ty, align: None, dimensions: Vec::new(), ..Variable::bytes(Space::Param, 1, name, 0) };
        self.local(scalar)
    }

    fn local(&mut self, variable: Variable) -> Result<Symbol, Errors> {
        self.fresh(&variable.name)?;
        let variables = &mut self.entry_mut().variables;
        variables.push(variable);
        Ok(Symbol::Variable(variables.len() as u32 - 1))
    }

    /// Adds a variable at module scope, before the entry.
    pub fn global(&mut self, variable: Variable) -> Result<Symbol, Errors> {
        self.fresh(&variable.name)?;
        let index = self.module.variables.len() as u32;
        self.module.variables.push(variable);
        self.module.items.insert(index as usize, Item::Variable(index));
        Ok(Symbol::Global(index))
    }

    /// Declares a function of the driver before the entry. Returns its index.
    pub fn declare(
        &mut self,
        name: &str,
        returns: &[(&str, Type)],
        parameters: &[(&str, Type)],
    ) -> Result<u32, Errors> {
        self.fresh(name)?;
        let list = |list: &[(&str, Type)]| list.iter().map(|(name, ty)| Parameter::scalar(name, *ty)).collect();
        let index = self.module.functions.len() as u32;
        let function = Function::new(Linkage::Extern, FunctionKind::Device, name);
        self.module.functions.push(Function { returns: list(returns), parameters: list(parameters), ..function });
        let entry = self.module.items.len() - 1;
        self.module.items.insert(entry, Item::Declaration(index));
        Ok(index)
    }

    /// Appends a call, if its operands fit the callee.
    pub fn call(&mut self, call: FunctionCall) -> Result<(), Illegal> {
        check_call(self.names(), &call)?;
        self.push(Statement::Call(Box::new(call)));
        Ok(())
    }

    /// Declares a new register of type `ty`.
    pub fn register(&mut self, ty: Type) -> RegisterId {
        let registers = &mut self.module.functions[0].registers;
        let declaration = *self.declarations[ty as usize].get_or_insert_with(|| {
            registers.push(Declaration { ty, prefix: ty.prefix().to_string(), count: Some(0) });
            registers.len() as u32 - 1
        });
        let count = registers[declaration as usize].count.get_or_insert_default();
        *count += 1;
        RegisterId { declaration, number: *count - 1 }
    }

    /// Declares a new label, which must be placed once.
    pub fn label(&mut self, name: impl Into<String>) -> Label {
        self.entry_mut().labels.push(name.into());
        self.labels.push((false, false));
        Label(self.labels.len() as u32 - 1)
    }

    /// Returns whether an instruction uses `label` so far.
    pub fn is_used(&self, label: Label) -> bool {
        self.labels[label.0 as usize].1
    }

    /// Places `label` at the current position.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0 as usize].0 = true;
        self.push(Statement::Label(label));
    }

    /// Appends a pragma. The pragma of a loop directly follows the label that the loop jumps back
    /// to.
    pub fn pragma(&mut self, text: impl Into<String>) {
        self.push(Statement::Pragma(text.into()));
    }

    /// Appends a line of comment.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.push(Statement::Comment(comment_text(&text.into())));
    }

    /// Returns the number of a source file; declares the file before the entry if it is new.
    pub fn file(&mut self, name: &str) -> u32 {
        let items = &mut self.module.items;
        let files = || items.iter().filter_map(|item| if let Item::File(file) = item { Some(file) } else { None });
        if let Some(known) = files().find(|file| file.name == name) {
            return known.index;
        }
        let index = files().count() as u32 + 1;
        let entry = items.len() - 1;
        items.insert(entry, Item::File(File { index, name: name.to_string(), stamp: None }));
        index
    }

    /// Appends a `.loc` for the code that follows.
    pub fn location(&mut self, position: SourcePosition) {
        self.push(Statement::Location(Location { position, inlined: None }));
    }

    /// Appends an instruction, if the table contains it and the target supports it.
    pub fn instruction(&mut self, instruction: Instruction) -> Result<(), Illegal> {
        let form = check(self.names(), &instruction, self.module.target, Version::new(u8::MAX, 0))?;
        self.module.version = self.module.version.max(form.version);
        for operand in &instruction.operands {
            if let Operand::Label(l) = operand {
                self.labels[l.0 as usize].1 = true;
            }
        }
        self.push(Statement::Instruction(instruction));
        Ok(())
    }

    /// Returns the module; an error if the target of a branch is not placed.
    pub fn finish(mut self) -> Result<Module, Errors> {
        match self.labels.iter().position(|(placed, named)| *named && !placed) {
            Some(i) => {
                let name = &self.entry().labels[i];
                Err(Error::without_span(format!("PTX: the target `{name}` of a branch is not defined")).into())
            }
            None => {
                let entry = self.entry_mut();
                let registers = (0..entry.registers.len() as u32).map(Statement::Registers);
                let variables = (0..entry.variables.len() as u32).map(Statement::Variable);
                entry.body.get_or_insert_default().splice(0..0, registers.chain(variables));
                let same: Vec<u32> = (0..entry.labels.len() as u32).collect();
                entry.number_labels(&same);
                Ok(self.module)
            }
        }
    }

    fn fresh(&self, name: &str) -> Result<(), Errors> {
        identifier(name)?;
        let entry = self.entry();
        let variables = entry.variables.iter().chain(&self.module.variables);
        let taken = entry.parameters.iter().map(|p| &p.name).chain(variables.map(|v| &v.name)).any(|n| n == name);
        if taken { Err(Error::without_span(format!("PTX: the name `{name}` is defined twice")).into()) } else { Ok(()) }
    }
}

/// Checks a PTX identifier: a letter followed by letters, digits, `_` or `$`; or `_`, `$` or `%`
/// followed by at least one of these.
fn identifier(name: &str) -> Result<(), Errors> {
    let follows = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut chars = name.chars();
    let fine = match chars.next() {
        Some(c) if c.is_ascii_alphabetic() => chars.all(follows),
        Some('_' | '$' | '%') => name.len() > 1 && chars.all(follows),
        _ => false,
    };
    if fine {
        Ok(())
    } else {
        Err(Error::without_span(format!("`{name}` is not a valid PTX identifier"))
            .help("use ASCII letters, digits and underscores")
            .into())
    }
}
