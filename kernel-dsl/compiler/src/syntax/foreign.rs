//! Names that kernels cannot use: of CUDA, and of the standard library.

use crate::language;
use syn::visit::{self, Visit};

/// Explains why a kernel has no variable of this path; `None` if it may have one.
pub(super) fn variable(path: &syn::Path) -> Option<String> {
    language::foreign_variable(&path.get_ident()?.to_string())
}

/// Explains why a function cannot be called; `None` if the path may name a function of kernels.
pub(super) fn function(path: &syn::Path) -> Option<String> {
    let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    let name = names.join("::");
    if path.leading_colon.is_none() && language::owns(&name) {
        return language::foreign_function(&name);
    }
    match names.first()?.as_str() {
        "std" | "core" | "alloc" => Some(format!(
            "a kernel cannot call `{name}`: from the standard library it can use methods of numbers, arrays and `Option`, `std::array::from_fn` and `size_of`"
        )),
        _ => language::foreign_function(&name).or_else(|| of_host_type(&names)),
    }
}

/// Explains why an associated function of a host type, such as `Vec::new`, cannot be called.
fn of_host_type(path: &[String]) -> Option<String> {
    let [.., name, _] = path else { return None };
    let way_out = match name.as_str() {
        "Vec" | "Box" | "String" | "Rc" | "Arc" | "HashMap" | "BTreeMap" | "VecDeque" | "HashSet" => {
            "kernels have no heap; use an array in registers, `[0.0; 4]`, or in shared memory, `Shared::new([…])`"
        }
        _ => return None,
    };
    Some(format!("a kernel cannot call functions of the type `{name}`: {way_out}"))
}

/// Returns whether a body names something that reading rejects as foreign. rustc would report the
/// same name, or the type of the named item, a second time.
pub(crate) fn names_foreign(body: &syn::Block) -> bool {
    let mut names = Names { foreign: false };
    names.visit_block(body);
    names.foreign
}

struct Names {
    foreign: bool,
}

impl Visit<'_> for Names {
    fn visit_expr(&mut self, e: &syn::Expr) {
        self.foreign |= match e {
            syn::Expr::Call(call) => matches!(&*call.func, syn::Expr::Path(p) if function(&p.path).is_some()),
            syn::Expr::Path(p) => variable(&p.path).is_some(),
            _ => false,
        };
        visit::visit_expr(self, e);
    }
}
