//! The linker: several modules become one.
//!
//! A name with linkage means the same function or variable in all modules. A strong definition
//! replaces weak ones, and of several weak or `.common` definitions the first remains. Names
//! without linkage belong to their module.

use super::ast::{
    Address, Base, Callee, Callees, Function, FunctionKind, Initializer, Item, Linkage, Location, Module, Operand,
    Statement, Symbol, Variable,
};
use super::words::Space;
use std::collections::HashMap;
use std::fmt;

/// The functions that the device provides, so that no module need define them.
pub const DEVICE_FUNCTIONS: [&str; 6] =
    ["__assertfail", "cudaCGGetIntrinsicHandle", "cudaCGSynchronize", "free", "malloc", "vprintf"];

/// A reason why modules cannot be linked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// Two modules define the same name.
    #[allow(missing_docs)]
    DefinedTwice { name: String, first: String, second: String },
    /// Two modules declare the same name differently.
    #[allow(missing_docs)]
    Different { name: String, first: String, second: String },
    /// No module defines a name that a module uses.
    #[allow(missing_docs)]
    Undefined { name: String, module: String },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::DefinedTwice { name, first, second } => {
                write!(f, "Multiple definition of '{name}' in '{second}', first defined in '{first}'")
            }
            LinkError::Different { name, first, second } => {
                write!(f, "'{name}' is declared differently in '{first}' and in '{second}'")
            }
            LinkError::Undefined { name, module } => write!(f, "Undefined reference to '{name}' in '{module}'"),
        }
    }
}

impl std::error::Error for LinkError {}

/// Links modules, each with its name for error messages. Returns all errors if there are any.
///
/// The result has the highest version and target of the modules.
pub fn link(modules: Vec<(String, Module)>) -> Result<Module, Vec<LinkError>> {
    let latest = modules.iter().map(|(_, m)| (m.version, m.target)).reduce(|a, b| {
        let target = if b.1.sm > a.1.sm { b.1 } else { a.1 };
        (a.0.max(b.0), target)
    });
    let Some((version, target)) = latest else { return Err(Vec::new()) };
    let mut linker = Linker {
        module: Module::new(version, target),
        functions: LinkedNames::default(),
        variables: LinkedNames::default(),
        errors: Vec::new(),
    };
    let (mut files, mut aliases, mut number) = (Vec::new(), Vec::new(), 0);
    for (name, module) in modules {
        let first = number;
        for item in &module.items {
            if let Item::File(file) = item {
                let index = first + file.index;
                number = number.max(index + 1);
                files.push(Item::File(super::ast::File { index, ..file.clone() }));
            }
        }
        linker
            .module
            .options
            .extend(module.options.iter().filter(|o| !linker.module.options.contains(o)).copied().collect::<Vec<_>>());
        linker.add(&name, module, first, &mut aliases);
    }
    linker.check_undefined();
    if !linker.errors.is_empty() {
        return Err(linker.errors);
    }
    let mut module = linker.module;
    let functions = 0..module.functions.len() as u32;
    module.items = files;
    // An entry that is defined needs no declaration: no function calls it, and PTX allows no limits
    // such as `.maxntid` in a declaration.
    let declared = |i: &u32| {
        let function = &module.functions[*i as usize];
        function.kind == FunctionKind::Device || function.body.is_none()
    };
    module.items.extend(functions.clone().filter(declared).map(Item::Declaration));
    module.items.extend((0..module.variables.len() as u32).map(Item::Variable));
    module.items.extend(aliases);
    let defined = |i: &u32| module.functions[*i as usize].body.is_some();
    let definitions: Vec<Item> = functions.filter(defined).map(Item::Definition).collect();
    module.items.extend(definitions);
    Ok(module)
}

/// The names with linkage: for each, the index, and the module of the definition or first
/// declaration.
type LinkedNames = HashMap<String, (u32, String)>;

struct Linker {
    module: Module,
    functions: LinkedNames,
    variables: LinkedNames,
    errors: Vec<LinkError>,
}

/// The indices of a module's functions and variables in the linked module.
struct LinkedIndices {
    functions: Vec<u32>,
    variables: Vec<u32>,
    /// The offset between a file's number in the module and in the linked module.
    files: u32,
}

impl Linker {
    fn add(&mut self, name: &str, mut module: Module, files: u32, aliases: &mut Vec<Item>) {
        let mut places = LinkedIndices { functions: Vec::new(), variables: Vec::new(), files };
        let aliased: Vec<u32> =
            module.items.iter().filter_map(|i| if let Item::Alias(new, _) = i { Some(*new) } else { None }).collect();
        // The indices must be known before the bodies, which refer to them, are moved.
        let mut kept_functions = Vec::new();
        for (i, function) in module.functions.iter().enumerate() {
            let defines = function.body.is_some() || aliased.contains(&(i as u32));
            let (index, keeps) = self.place_function(name, function, defines);
            places.functions.push(index);
            kept_functions.push(keeps);
        }
        let mut kept_variables = Vec::new();
        for variable in &module.variables {
            let (index, keeps) = self.place_variable(name, variable);
            places.variables.push(index);
            kept_variables.push(keeps);
        }
        for item in &module.items {
            if let Item::Alias(new, old) = item
                && kept_functions[*new as usize]
            {
                aliases.push(Item::Alias(places.functions[*new as usize], places.functions[*old as usize]));
            }
        }
        for (i, mut function) in module.functions.drain(..).enumerate().filter(|(i, _)| kept_functions[*i]) {
            places.move_function(&mut function);
            let to = &mut self.module.functions[places.functions[i] as usize];
            function.name = std::mem::take(&mut to.name);
            *to = function;
        }
        for (i, mut variable) in module.variables.drain(..).enumerate().filter(|(i, _)| kept_variables[*i]) {
            if let Some(value) = &mut variable.initializer {
                places.move_initializer(value);
            }
            let to = &mut self.module.variables[places.variables[i] as usize];
            variable.name = std::mem::take(&mut to.name);
            *to = variable;
        }
    }

    /// Returns the index of a function, and whether this declaration or definition is kept.
    fn place_function(&mut self, module: &str, function: &Function, defines: bool) -> (u32, bool) {
        let known = (function.linkage != Linkage::Internal).then(|| self.functions.get(&function.name)).flatten();
        let Some((index, first)) = known.cloned() else {
            let index = self.module.functions.len() as u32;
            let mut placed = Function::new(function.linkage, function.kind, &function.name);
            if function.linkage == Linkage::Internal {
                let taken = self.module.functions.iter().any(|f| f.name == function.name);
                placed.name = if taken { format!("{}${index}", function.name) } else { placed.name };
            } else {
                self.functions.insert(function.name.clone(), (index, module.to_string()));
            }
            self.module.functions.push(placed);
            return (index, true);
        };
        let before = &self.module.functions[index as usize];
        let (name, second) = (function.name.clone(), module.to_string());
        if before.kind != function.kind || !before.has_signature_of(function) {
            self.errors.push(LinkError::Different { name, first, second });
            return (index, false);
        }
        let is_defined = before.linkage != Linkage::Extern && before.body.is_some();
        let keeps = match (is_defined, defines) {
            (false, _) => defines,
            (true, false) => false,
            (true, true) if function.linkage == Linkage::Weak => false,
            (true, true) if before.linkage == Linkage::Weak => true,
            (true, true) => {
                self.errors.push(LinkError::DefinedTwice { name, first, second });
                false
            }
        };
        if keeps {
            self.functions.insert(function.name.clone(), (index, module.to_string()));
        }
        (index, keeps)
    }

    /// Returns the index of a variable, and whether this declaration or definition is kept.
    fn place_variable(&mut self, module: &str, variable: &Variable) -> (u32, bool) {
        let known = (variable.linkage != Linkage::Internal).then(|| self.variables.get(&variable.name)).flatten();
        let Some((index, first)) = known.cloned() else {
            let index = self.module.variables.len() as u32;
            let mut placed = variable.clone();
            placed.initializer = None;
            if variable.linkage == Linkage::Internal {
                let taken = self.module.variables.iter().any(|v| v.name == variable.name);
                placed.name = if taken { format!("{}${index}", variable.name) } else { placed.name };
            } else {
                self.variables.insert(variable.name.clone(), (index, module.to_string()));
            }
            self.module.variables.push(placed);
            return (index, true);
        };
        let before = &self.module.variables[index as usize];
        let (name, second) = (variable.name.clone(), module.to_string());
        if before.space != variable.space {
            self.errors.push(LinkError::Different { name, first, second });
            return (index, false);
        }
        let keeps = match (before.linkage, variable.linkage) {
            (_, Linkage::Extern) => false,
            (Linkage::Extern, _) => true,
            (Linkage::Common, Linkage::Common) => variable.size() > before.size(),
            (_, Linkage::Weak | Linkage::Common) => false,
            (Linkage::Weak | Linkage::Common, _) => true,
            _ => {
                self.errors.push(LinkError::DefinedTwice { name, first, second });
                false
            }
        };
        if keeps {
            self.variables.insert(variable.name.clone(), (index, module.to_string()));
        }
        (index, keeps)
    }

    /// Reports names that no module defines.
    fn check_undefined(&mut self) {
        if !self.errors.is_empty() {
            return;
        }
        for (name, (index, module)) in &self.functions {
            let function = &self.module.functions[*index as usize];
            if function.linkage == Linkage::Extern && function.body.is_none() && !DEVICE_FUNCTIONS.contains(&&**name) {
                self.errors.push(LinkError::Undefined { name: name.clone(), module: module.clone() });
            }
        }
        for (name, (index, module)) in &self.variables {
            let variable = &self.module.variables[*index as usize];
            // The launch sets the size of an extern array in shared memory.
            if variable.linkage == Linkage::Extern && variable.space != Space::Shared {
                self.errors.push(LinkError::Undefined { name: name.clone(), module: module.clone() });
            }
        }
        self.errors.sort_by_key(ToString::to_string);
    }
}

impl LinkedIndices {
    fn symbol(&self, symbol: &mut Symbol) {
        match symbol {
            Symbol::Function(i) => *i = self.functions[*i as usize],
            Symbol::Global(i) => *i = self.variables[*i as usize],
            Symbol::Parameter(_) | Symbol::Return(_) | Symbol::Variable(_) => {}
        }
    }

    fn move_base(&self, base: &mut Base) {
        if let Base::Symbol(symbol) = base {
            self.symbol(symbol);
        }
    }

    fn move_operand(&self, operand: &mut Operand) {
        match operand {
            Operand::Symbol(symbol, _) => self.symbol(symbol),
            Operand::Address(Address { base, .. }) => self.move_base(base),
            Operand::Vector(list) | Operand::Resident(list, _) => list.iter_mut().for_each(|o| self.move_operand(o)),
            Operand::Texel(texel) => {
                self.move_base(&mut texel.object);
                texel.sampler.iter_mut().for_each(|s| self.move_base(s));
                texel.coordinates.iter_mut().for_each(|o| self.move_operand(o));
            }
            _ => {}
        }
    }

    fn move_initializer(&self, value: &mut Initializer) {
        match value {
            Initializer::Address { symbol, .. } => self.symbol(symbol),
            Initializer::List(list) => list.iter_mut().for_each(|v| self.move_initializer(v)),
            _ => {}
        }
    }

    fn move_function(&self, function: &mut Function) {
        for value in function.variables.iter_mut().filter_map(|v| v.initializer.as_mut()) {
            self.move_initializer(value);
        }
        for targets in &mut function.call_targets {
            if let Callees::Functions(list) = &mut targets.callees {
                list.iter_mut().for_each(|i| *i = self.functions[*i as usize]);
            }
        }
        for statement in function.body.iter_mut().flatten() {
            match statement {
                Statement::Instruction(i) => i.operands.iter_mut().for_each(|o| self.move_operand(o)),
                Statement::Call(call) => {
                    if let Callee::Function(i) = &mut call.callee {
                        *i = self.functions[*i as usize];
                    }
                    call.arguments.iter_mut().chain(&mut call.returns).for_each(|o| self.move_operand(o));
                }
                Statement::Location(Location { position, inlined }) => {
                    position.file += self.files;
                    // The sections of names are not linked.
                    *inlined = None;
                }
                _ => {}
            }
        }
    }
}
