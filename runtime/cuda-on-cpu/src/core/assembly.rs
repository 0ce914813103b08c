//! Rules for a whole module that NVIDIA's driver checks when it loads the module.
//!
//! The codes and the wording are those of NVIDIA's driver 580 on an H200. That driver accepts an
//! `.extern` variable of known size that no module defines: the variable is zero at first.

use kernel_dsl_compiler::ptx::ast::Callees;
use kernel_dsl_compiler::ptx::link::DEVICE_FUNCTIONS;
use kernel_dsl_compiler::ptx::{Callee, Function, Initializer, Linkage, Module, Operand, Space, Statement, Symbol};
use runtime_ptx::shared_bytes_of;

/// The largest size of constant memory in bytes.
const MAX_CONSTANT_BYTES: u64 = 64 << 10;

/// Returns the reasons why no device can load the module, one a line. A block has at most
/// `max_shared` bytes of shared memory.
pub fn refusals(module: &Module, max_shared: u32) -> Vec<String> {
    let mut found = unresolved(module);
    let of_space = |space: Space| module.variables().iter().filter(move |variable| variable.space == space);
    let bytes_of = |space: Space| {
        let sizes = of_space(space).map(|variable| variable.size().unwrap_or(0));
        sizes.fold(0, u64::saturating_add)
    };
    let constant = bytes_of(Space::Const);
    if constant > MAX_CONSTANT_BYTES {
        let most = MAX_CONSTANT_BYTES;
        found.push(format!("ptx error: the module has {constant} bytes of constant memory, and at most {most} exist"));
    }
    let of_functions = module.functions().iter().flat_map(|function| &function.variables);
    let own = of_functions.filter(|variable| variable.space == Space::Shared);
    let all = own.fold(bytes_of(Space::Shared), |all, variable| all.saturating_add(variable.size().unwrap_or(0)));
    // Most modules have less shared memory than one block. In others each kernel counts by itself.
    if all > max_shared.into() {
        for entry in module.entries().filter(|entry| entry.body.is_some()) {
            let (name, bytes) = (&entry.name, shared_bytes_of(module, &entry.name));
            if bytes > max_shared.into() {
                let most = format!("a block of this device has at most {max_shared}");
                found.push(format!("ptx error: `{name}` declares {bytes} bytes of shared memory, and {most}"));
            }
        }
    }
    found
}

/// Returns the functions and variables to which the module refers and that nothing defines.
fn unresolved(module: &Module) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |index: u32, user: &str| {
        let function = &module.functions()[index as usize];
        let is_known = DEVICE_FUNCTIONS.contains(&function.name.as_str());
        if function.is_entry() || is_known || module.definition(index).is_some() {
            return;
        }
        let name = &function.name;
        let line = format!("ptx fatal: Unresolved extern function '{name}', to which `{user}` refers");
        if !found.contains(&line) {
            found.push(line);
        }
    };
    for function in module.functions() {
        functions_of(function, &mut |index| add(index, &function.name));
    }
    for variable in module.variables() {
        variable.initializer.iter().for_each(|i| functions_in(i, &mut |index| add(index, &variable.name)));
    }
    let has_no_size = module.variables().iter().filter(|variable| {
        variable.linkage == Linkage::Extern && variable.space != Space::Shared && variable.size().is_none()
    });
    found.extend(has_no_size.map(|variable| format!("ptx fatal: Unresolved extern variable '{}'", variable.name)));
    found
}

/// Calls `each` on the functions to which a function refers.
fn functions_of(function: &Function, each: &mut dyn FnMut(u32)) {
    for statement in function.statements() {
        match statement {
            Statement::Call(call) => {
                if let Callee::Function(index) = call.callee {
                    each(index);
                }
            }
            Statement::Instruction(instruction) => {
                for operand in &instruction.operands {
                    if let Operand::Symbol(Symbol::Function(index), _) = operand {
                        each(*index);
                    }
                }
            }
            _ => {}
        }
    }
    for targets in &function.call_targets {
        if let Callees::Functions(list) = &targets.callees {
            list.iter().for_each(|index| each(*index));
        }
    }
}

/// Calls `each` on the functions whose addresses an initial value contains.
fn functions_in(initializer: &Initializer, each: &mut dyn FnMut(u32)) {
    match initializer {
        Initializer::Address { symbol: Symbol::Function(index), .. } => each(*index),
        Initializer::List(list) => list.iter().for_each(|one| functions_in(one, each)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl_compiler::ptx::parse;

    fn refused(text: &str) -> String {
        let text = format!(".version 6.0\n.target sm_61\n.address_size 64\n{text}");
        refusals(&parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), 48 << 10).join("\n")
    }

    #[test]
    fn names_that_nothing_defines_are_refused() {
        let (call, f) = (".visible .entry k() { call f; ret; }", ".extern .func f();");
        let of = |name: &str, user: &str| {
            format!("ptx fatal: Unresolved extern function '{name}', to which `{user}` refers")
        };
        assert_eq!(refused(&format!("{f}\n{call}")), of("f", "k"));
        assert_eq!(refused(&format!("{f}\n.func h() {{ call f; call f; ret; }}")), of("f", "h"));
        assert_eq!(refused(&format!("{f}\n.visible .entry k() {{ ret; }}")), "");
        assert_eq!(refused(&format!(".func f() {{ ret; }}\n{call}")), "");
        assert_eq!(refused(&format!("{f}\n.global .u64 t[2] = {{0, f}};")), of("f", "t"));
        assert_eq!(refused(".extern .func free(.param .b64 p);\n.func h() { call free, (0); ret; }"), "");
        let open = "ptx fatal: Unresolved extern variable 'g'";
        assert_eq!(refused(".extern .global .u32 g[];"), open);
        assert_eq!(refused(".extern .global .u32 g;\n.extern .const .u32 c;\n.extern .shared .u32 s[];"), "");
    }

    #[test]
    fn memory_beyond_the_device_is_refused() {
        let shared = |bytes: u64| {
            format!(
                ".shared .b8 a[{bytes}];\n.visible .entry k() {{ st.shared.u8 [a], 1; ret; }}\n.visible .entry i() {{ ret; }}"
            )
        };
        assert_eq!(refused(&shared(48 << 10)), "");
        let why = refused(&shared((48 << 10) + 1));
        assert_eq!(
            why,
            "ptx error: `k` declares 49153 bytes of shared memory, and a block of this device has at most 49152"
        );
        assert!(refused(&shared(u64::from(u32::MAX))).contains("4294967295"));
        let own = ".visible .entry k() { .shared .b8 a[24576]; .shared .b8 b[24576]; st.shared.u8 [a], 1; st.shared.u8 [b], 1; ret; }";
        assert_eq!(refused(own), "");
        assert_eq!(refused(".const .b8 c[65536];"), "");
        assert!(refused(".const .b8 c[65537];").contains("65537 bytes of constant memory"));
    }
}
