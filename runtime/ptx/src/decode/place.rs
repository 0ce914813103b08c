//! Locations of the variables that an entry can reach.

use super::super::global::{Global, VariableOwner};
use super::super::memory::{MAX_BUFFERS, base};
use super::call::callees;
use super::operand::VariableLocation;
use super::{Decoder, VARIABLE_GAP};
use kernel_dsl_compiler::ptx::{Base, Function, Initializer, Module, Operand, Space, Statement, Symbol, Variable};

/// Returns the functions that the entry calls, including the entry.
pub fn reachable(module: &Module, entry: usize) -> Vec<usize> {
    let mut found = vec![entry];
    let mut next = 0;
    while let Some(&index) = found.get(next) {
        next += 1;
        for callee in callees(module, index).flatten() {
            if !found.contains(&callee) {
                found.push(callee);
            }
        }
    }
    found
}

/// Calls `each` on the symbols whose addresses an initializer contains.
pub fn symbols(initializer: &Initializer, each: &mut dyn FnMut(Symbol)) {
    match initializer {
        Initializer::Address { symbol, .. } => each(*symbol),
        Initializer::List(list) => list.iter().for_each(|i| symbols(i, each)),
        _ => {}
    }
}

/// Returns whether the function refers to variable `index` of the module.
fn uses(function: &Function, index: u32) -> bool {
    fn operand(o: &Operand, wanted: Symbol) -> bool {
        match o {
            Operand::Symbol(s, _) => *s == wanted,
            Operand::Address(a) => a.base == Base::Symbol(wanted),
            Operand::Texel(t) => t.object == Base::Symbol(wanted) || t.sampler == Some(Base::Symbol(wanted)),
            Operand::Vector(v) => v.iter().any(|o| operand(o, wanted)),
            _ => false,
        }
    }
    let wanted = Symbol::Global(index);
    function.statements().iter().any(|s| match s {
        Statement::Instruction(i) => i.operands.iter().any(|o| operand(o, wanted)),
        Statement::Call(c) => c.arguments.iter().any(|o| operand(o, wanted)),
        _ => false,
    })
}

/// Returns whether the initializer of a variable contains the address of variable `index`.
fn pointed_at(module: &Module, index: u32) -> bool {
    let mut found = false;
    for variable in module.variables() {
        variable.initializer.iter().for_each(|i| symbols(i, &mut |s| found |= s == Symbol::Global(index)));
    }
    found
}

/// Returns the bytes of shared memory that functions declare, without gaps between variables. A
/// variable of the module counts if a function refers to it.
pub fn declared_shared(module: &Module, functions: &[usize]) -> u64 {
    let of_module = module.variables().iter().enumerate().filter(|(index, variable)| {
        let is_used = |function: &usize| uses(&module.functions()[*function], *index as u32);
        variable.space == Space::Shared && functions.iter().any(is_used)
    });
    let of_functions = functions.iter().flat_map(|function| &module.functions()[*function].variables);
    let shared = of_functions.filter(|variable| variable.space == Space::Shared);
    of_module.map(|(_, variable)| variable).chain(shared).fold(0, |end: u64, variable| {
        let start = end.checked_next_multiple_of(variable.alignment().max(1).into()).unwrap_or(u64::MAX);
        start.saturating_add(variable.size().unwrap_or(0))
    })
}

impl<'m> Decoder<'m> {
    /// Assigns a buffer to each variable of the module in global or constant memory.
    pub(super) fn place_globals(&mut self, reachable: &[usize]) -> Vec<Global> {
        let module = self.module;
        let mut globals = Vec::new();
        for (index, variable) in module.variables().iter().enumerate() {
            let used = reachable.iter().any(|f| uses(&module.functions()[*f], index as u32))
                || pointed_at(module, index as u32);
            let buffer = matches!(variable.space, Space::Global | Space::Const);
            if !used || !buffer {
                self.globals.push(None);
                continue;
            }
            let home = self.buffer(VariableOwner::Module(index), variable, &mut globals);
            self.globals.push(home);
        }
        for &function in reachable {
            for (index, variable) in module.functions()[function].variables.iter().enumerate() {
                if matches!(variable.space, Space::Global | Space::Const)
                    && let Some(home) = self.buffer(VariableOwner::Function(function, index), variable, &mut globals)
                {
                    self.own.insert((function, index), home);
                }
            }
        }
        for global in &mut globals {
            global.link(|variable| match self.globals.get(variable) {
                Some(Some(VariableLocation::Buffer { address, .. })) => Some(*address),
                _ => None,
            });
        }
        globals
    }

    /// Returns a buffer for a variable: the launch's own, or the one in a device's memory.
    fn buffer(
        &mut self,
        owner: VariableOwner,
        variable: &Variable,
        globals: &mut Vec<Global>,
    ) -> Option<VariableLocation> {
        let constant = variable.space == Space::Const;
        let placed = self.places.map(|places| places.get(&owner));
        let why = match Global::of(variable) {
            _ if placed == Some(None) => "it has no location on the device".to_string(),
            Ok(global) if globals.len() < MAX_BUFFERS / 2 => {
                let bytes = global.bytes.len() as u64;
                let address = match placed.flatten() {
                    Some(address) => *address,
                    None => {
                        globals.push(global);
                        base(globals.len() - 1)
                    }
                };
                return Some(VariableLocation::Buffer { address, bytes, constant });
            }
            Ok(_) => "there are too many variables".to_string(),
            Err(why) => why,
        };
        self.refuse(format!(".{} {}", variable.space, variable.name), None, why);
        None
    }

    /// Assigns a location to each shared variable. Returns the beginning of dynamic shared memory,
    /// if something refers to it.
    pub(super) fn place_shared(&mut self, reachable: &[usize]) -> u32 {
        let module = self.module;
        let mut align = 16;
        let mut open = Vec::new();
        for (index, variable) in module.variables().iter().enumerate() {
            let used = reachable.iter().any(|f| uses(&module.functions()[*f], index as u32));
            if variable.space != Space::Shared || !used {
                continue;
            }
            match variable.size().and_then(|n| u32::try_from(n).ok()) {
                Some(bytes) if bytes > 0 => {
                    let offset = self.code.shared.add(&variable.name, bytes, variable.alignment(), VARIABLE_GAP);
                    self.globals[index] = Some(VariableLocation::shared(offset));
                }
                _ => {
                    align = align.max(variable.alignment());
                    open.push(index);
                }
            }
        }
        for &function in reachable {
            for (index, variable) in module.functions()[function].variables.iter().enumerate() {
                if variable.space != Space::Shared {
                    continue;
                }
                let bytes = variable.size().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
                let offset = self.code.shared.add(&variable.name, bytes, variable.alignment(), VARIABLE_GAP);
                self.own.insert((function, index), VariableLocation::shared(offset));
            }
        }
        let dynamic = self.code.shared.bytes.checked_next_multiple_of(align).unwrap_or(u32::MAX);
        self.code.shared.open = open.first().map(|index| (module.variables()[*index].name.clone(), dynamic));
        for index in open {
            self.globals[index] = Some(VariableLocation::shared(dynamic));
        }
        dynamic
    }
}
