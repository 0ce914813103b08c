//! The attribute macros of kernel-dsl: a shell over its compiler, in which all the work is done and tested
//! (`kernel_dsl_compiler::expand`). Users have them from `kernel_dsl::prelude`.

use kernel_dsl_compiler::{Build, expand};
use proc_macro::TokenStream;

/// Makes a kernel of a function: a type of its name, in which its PTX and its launch functions lie.
///
/// ```text
/// #[kernel(block = (T, T), grid = (c.cols().div_ceil(T), c.rows().div_ceil(T)), instances(T = 16 | 32))]
/// #[requires(a.cols() == b.rows())]
/// pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) { … }
/// ```
///
/// | clause | says |
/// |---|---|
/// | `block = …` | threads of a block: one expression or a tuple of up to three, over the generic constants |
/// | `grid = …` | blocks of the grid: the same, over the parameters too |
/// | `instances(A = 1 \| 2, B = true; …)` | values of the generic constants to compile now: `\|` a product, `;` a list |
/// | `min_blocks = n` | blocks that a multiprocessor should hold at once |
/// | `max_registers = n` | registers a thread at most |
/// | `target = sm_80` | what it is compiled for, of sm_61 (if nothing is said), sm_70, sm_75, sm_80, sm_86, sm_89 and sm_90; older devices cannot run it |
/// | `crate = path` | where kernel-dsl is, if not at `::kernel_dsl` |
///
/// `#[requires(…)]` below it lists conditions over the parameters that a launch must meet.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::kernel(attribute.into(), item.into()).into()
}

/// Makes a function callable from kernels and from other device functions, of this crate and of others. It stays an
/// ordinary function of the host too.
///
/// A macro of the same name is made beside it, which carries the function to its callers: `use` brings both. `crate = path` says
/// where kernel-dsl is, if not at `::kernel_dsl`.
#[proc_macro_attribute]
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::device(attribute.into(), item.into()).into()
}

/// The end of a chain of device functions; only expansions call it.
#[doc(hidden)]
#[proc_macro]
pub fn __link(tokens: TokenStream) -> TokenStream {
    expand::link(tokens.into()).into()
}

/// How these macros were compiled: the fields of `compiler::Build`.
#[doc(hidden)]
#[proc_macro]
pub fn __build(_: TokenStream) -> TokenStream {
    let Build { opt_level, debug_assertions, rustc } = Build::THIS;
    format!("({opt_level:?}, {debug_assertions}, {rustc:?})").parse().unwrap_or_default()
}
