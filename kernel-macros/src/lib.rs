//! The attribute macros of kernel-dsl, a thin shell over `kernel_dsl_compiler::expand`, which does
//! all the work and has the tests. `kernel_dsl::prelude` exports the macros.

use kernel_dsl_compiler::{Build, expand};
use proc_macro::TokenStream;

/// Makes a kernel of a function: a type of the same name with its PTX and launch functions.
///
/// ```text
/// #[kernel(
///     block = (T, T),
///     grid = (c.cols().div_ceil(T), c.rows().div_ceil(T)),
///     instances(T = 16 | 32)
/// )]
/// #[requires(a.cols() == b.rows())]
/// pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) { … }
/// ```
///
#[doc = include_str!("clauses.md")]
///
/// `#[requires(…)]` below the attribute lists conditions over the parameters that a launch must
/// meet.
///
/// `#[allow(global_race, reason = "…")]` before a statement of a kernel or device function makes
/// the oracle list a `global-race` of the statement with the reason, instead of reporting it.
/// Check names use `_` for `-`; `race` includes all kinds of races. An `allow` that names no
/// check and gives no reason belongs to rustc.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::kernel(attribute.into(), item.into()).into()
}

/// Makes an item usable in kernels and device items, of this crate and of others. The item stays
/// an ordinary host item too.
///
/// The attribute applies to functions, constants, structs, enums, type aliases, and modules with
/// traits and impls. All items of such a module become device items. Beside each item, the
/// attribute defines a macro of the same name that carries the item to its users; a `use` imports
/// both.
///
/// | clause | meaning |
/// |---|---|
/// | `value` | On a function: also defines a type of its name, which implements `DeviceFn`. |
/// | `crate = path` | The path of kernel-dsl, if not `::kernel_dsl`. |
#[proc_macro_attribute]
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::device(attribute.into(), item.into()).into()
}

/// Allows values of a struct or enum in shared memory and in exchanges between lanes. Each field of
/// a struct must be `DeviceCopy`. An enum must have at least one variant.
#[proc_macro_derive(DeviceCopy)]
pub fn device_copy(item: TokenStream) -> TokenStream {
    expand::device_copy(item.into()).into()
}

/// Ends a chain of device items. Only expansions call this macro.
#[doc(hidden)]
#[proc_macro]
pub fn __link(tokens: TokenStream) -> TokenStream {
    expand::link(tokens.into()).into()
}

/// Continues a chain of device items in a module. Only expansions call this macro.
#[doc(hidden)]
#[proc_macro]
pub fn __step(tokens: TokenStream) -> TokenStream {
    expand::step(tokens.into()).into()
}

/// Returns the build settings of these macros: the fields of `compiler::Build`.
#[doc(hidden)]
#[proc_macro]
pub fn __build(_: TokenStream) -> TokenStream {
    let Build { opt_level, verified, rustc } = Build::THIS;
    format!("({opt_level:?}, {verified}, {rustc:?})").parse().unwrap_or_default()
}
