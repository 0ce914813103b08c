//! Compilation of a text into all of its executable forms: the front end as the macros use it,
//! lowering, passes, emission.

use crate::support::{self, Crate, Function};
use kernel_dsl_compiler::check::{self, ItemReference};
use kernel_dsl_compiler::driver::Compilation;
use kernel_dsl_compiler::hir::{self, DeviceLibrary, ExprKind, Program};
use kernel_dsl_compiler::lower::checked::CheckedKernel;
use kernel_dsl_compiler::passes::Optimized;
use kernel_dsl_compiler::{Errors, emit, ir, syntax};
use std::collections::BTreeMap;

/// Front end with the functions of `kernel_dsl::math`, which kernels may call without containing
/// their text.
pub struct Frontend {
    library: BTreeMap<String, DeviceLibrary>,
}

/// Kernel in all executable forms.
pub struct Compiled {
    /// IR as lowered.
    pub lowered: ir::Kernel,
    /// IR after all passes.
    pub optimized: Optimized,
    /// PTX of the kernel.
    pub ptx: String,
    /// Checked form as lowered.
    pub form: CheckedKernel,
    /// Checked form after all passes.
    pub checked: Optimized,
    /// PTX of the checked form.
    pub checked_ptx: String,
    /// Number of blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: [u32; 3],
}

/// Rejection of a kernel: the stage and its message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// Stage that rejected the kernel.
    pub stage: &'static str,
    /// Message of the error.
    pub said: String,
}

fn refused(stage: &'static str) -> impl Fn(String) -> Rejection {
    move |said| Rejection { stage, said }
}

impl Default for Frontend {
    fn default() -> Frontend {
        let math = support::math();
        let library = math.functions.iter().filter_map(|function| match math.check(function) {
            Ok(support::Checked::Device(library)) => Some((function.name(), library)),
            _ => None,
        });
        let mut library: BTreeMap<_, _> = library.collect();
        library.extend(helpers());
        Frontend { library }
    }
}

/// Text of the module `helpers`, which generated kernels name.
const HELPERS: &str = include_str!("helpers.rs");

/// Returns the items of the module `helpers`.
fn helpers() -> Vec<(String, DeviceLibrary)> {
    let module: syn::Item = syn::parse_str(&format!("pub mod helpers {{\n{HELPERS}\n}}")).expect("the module is Rust");
    let read = syntax::module(&module).unwrap_or_else(|e| panic!("the module is in the language: {e:?}"));
    let checked = check::module(&read, &[]).unwrap_or_else(|items| {
        let said: Vec<_> = items.iter().map(|item| &item.diagnostics).collect();
        panic!("the module has no mistakes: {said:?}")
    });
    checked.libraries.into_iter().map(|(name, library)| (name.to_string(), library)).collect()
}

/// Returns the last name of a path, and the path as written.
fn named(path: &syn::Path) -> (String, String) {
    let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    (names.last().cloned().unwrap_or_default(), names.join("::"))
}

impl Frontend {
    /// Parses and checks a text of one kernel, preceded by the device functions that it calls.
    pub fn program(&self, text: &str) -> Result<Program, Rejection> {
        let said = |errors: support::Refusal| {
            let said = errors.0.iter().map(|complaint| complaint.render(text)).collect::<Vec<_>>().join("\n");
            Rejection { stage: "the front end", said }
        };
        let parsed = Crate::parse(text).map_err(|e| said(e.into()))?;
        let mut own = BTreeMap::new();
        for Function { attribute, item } in &parsed.functions {
            let callees = |function: &syntax::Function| -> Vec<ItemReference> {
                let known = |path: &syn::Path| {
                    let (name, path) = named(path);
                    let library = own.get(&name).or_else(|| self.library.get(&name))?;
                    Some(ItemReference { path, library: DeviceLibrary::clone(library) })
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

    /// Compiles the kernel of a text into all its forms.
    pub fn compile(&self, text: &str) -> Result<Compiled, Rejection> {
        let program = self.program(text)?;
        let target = program.launch.target;
        let instance = program.launch.instances.first().map(|declared| declared.arguments.clone()).unwrap_or_default();
        let grid = match program.launch.grid.first().map(|extent| &extent.kind) {
            Some(ExprKind::Literal(n)) => *n as u32,
            other => return Err(refused("the launch")(format!("the grid is not a number: {other:?}"))),
        };
        let said = |stage| move |errors: Errors| refused(stage)(errors.to_string());
        let monomorphic = hir::monomorphic(&program, &instance).map_err(said("the instance"))?;
        let compilation = Compilation::new(&monomorphic, target).map_err(said("lowering"))?;
        let optimized = compilation.optimized().map_err(said("the passes"))?.clone();
        let ptx = compilation.text().map_err(said("emission"))?;
        let form = compilation.checked();
        let checked = form.optimized().map_err(said("the passes"))?;
        let checked_ptx = emit::emit(&checked).map_err(said("emission"))?.to_string();
        let lowered = compilation.lowered().clone();
        let block = lowered.block.extents().unwrap_or([1, 1, 1]);
        Ok(Compiled { lowered: lowered.into(), optimized, ptx, form, checked, checked_ptx, grid, block })
    }
}
