//! From text to everything that runs: the front end as the macros use it, lowering, passes, emission.

// Names of device functions are resolved as the tests of the front end do it.
#[path = "../../../kernel-dsl/compiler/tests/frontend/support.rs"]
#[allow(missing_docs)]
mod support;

use kernel_dsl_compiler::check::{self, Callee};
use kernel_dsl_compiler::hir::{ExprKind, Library, Program};
use kernel_dsl_compiler::lower::checked::Checked;
use kernel_dsl_compiler::passes::{self, Optimized};
use kernel_dsl_compiler::{driver, emit, ir, syntax};
use std::collections::BTreeMap;
use support::{Crate, Function};

/// What kernels may call that stands in no text of theirs: `kernel_dsl::math`.
pub struct Frontend {
    library: BTreeMap<String, Library>,
}

/// A kernel in all forms that something runs.
pub struct Compiled {
    /// As lowered.
    pub lowered: ir::Kernel,
    /// After all passes.
    pub optimised: Optimized,
    /// Its PTX.
    pub ptx: String,
    /// The form that checks itself, as lowered.
    pub form: Checked,
    /// The same after all passes.
    pub checked: Optimized,
    /// Its PTX.
    pub checked_ptx: String,
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: [u32; 3],
}

/// Where a kernel was not taken, and what was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The stage.
    pub stage: &'static str,
    /// Its words.
    pub said: String,
}

fn refused(stage: &'static str) -> impl Fn(String) -> Refused {
    move |said| Refused { stage, said }
}

impl Default for Frontend {
    fn default() -> Frontend {
        let math = support::math();
        let library = math.functions.iter().filter_map(|function| match math.check(function) {
            Ok(support::Checked::Device(library)) => Some((function.name(), library)),
            _ => None,
        });
        Frontend { library: library.collect() }
    }
}

/// The last name of a path, and the path as it is written.
fn named(path: &syn::Path) -> (String, String) {
    let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    (names.last().cloned().unwrap_or_default(), names.join("::"))
}

impl Frontend {
    /// What the front end makes of a text with one kernel, and the device functions that it calls, which come before.
    pub fn program(&self, text: &str) -> Result<Program, Refused> {
        let said = |errors: support::Refusal| {
            let said = errors.0.iter().map(|complaint| complaint.render(text)).collect::<Vec<_>>().join("\n");
            Refused { stage: "the front end", said }
        };
        let parsed = Crate::parse(text).map_err(|e| said(e.into()))?;
        let mut own = BTreeMap::new();
        for Function { attribute, item } in &parsed.functions {
            let callees = |function: &syntax::Function| -> Vec<Callee> {
                let known = |path: &syn::Path| {
                    let (name, path) = named(path);
                    let library = own.get(&name).or_else(|| self.library.get(&name))?;
                    Some(Callee { path, library: Library::clone(library) })
                };
                function.callees().iter().filter_map(known).collect()
            };
            match attribute {
                None => {
                    let read = syntax::device(item).map_err(|e| said(e.into()))?;
                    let library = check::device(&read, &callees(&read)).map_err(|e| said(e.into()))?.hir;
                    own.insert(item.sig.ident.to_string(), library);
                }
                Some(attribute) => {
                    let read = syntax::kernel(attribute.clone(), item).map_err(|e| said(e.into()))?;
                    let kernel = check::kernel(&read.clone(), &callees(&read.function));
                    return Ok(kernel.map_err(|e| said(e.into()))?.hir);
                }
            }
        }
        Err(refused("the front end")("there is no kernel in the text".to_string()))
    }

    /// The kernel of a text, in all its forms.
    pub fn compile(&self, text: &str) -> Result<Compiled, Refused> {
        let program = self.program(text)?;
        let target = program.launch.target;
        let instance = program.launch.instances.first().cloned().unwrap_or_default();
        let grid = match program.launch.grid.first().map(|extent| &extent.kind) {
            Some(ExprKind::Literal(n)) => *n as u32,
            other => return Err(refused("the launch")(format!("the grid is no number: {other:?}"))),
        };
        let lowered = driver::lowered(&program, &instance, target).map_err(|e| refused("lowering")(e.to_string()))?;
        let optimize =
            |kernel: &ir::Kernel| passes::optimize(kernel.clone()).map_err(|e| refused("the passes")(e.to_string()));
        let emitted = |kernel: &Optimized| emit::emit(kernel).map_err(|e| refused("emission")(e.to_string()));
        let optimised = optimize(&lowered)?;
        let ptx = emitted(&optimised)?.to_string();
        let form = Checked::of(lowered.clone());
        let checked = optimize(&form.kernel)?;
        let checked_ptx = emitted(&checked)?.to_string();
        let block = lowered.block.extents().unwrap_or([1, 1, 1]);
        Ok(Compiled { lowered, optimised, ptx, form, checked, checked_ptx, grid, block })
    }
}
