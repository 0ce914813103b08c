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
/// | clause | meaning |
/// |---|---|
/// | `block = …` | The threads of a block: one expression or a tuple of up to three, over the generic constants. The launch can choose the last extent: `32..=1024` or `(64..=1024).step_by(64)` adds an argument to the launch functions. An expression over the parameters needs an upper bound, `x.cols().clamp(32, 1024)`. A range between multiples of 32 contains only multiples of 32. |
/// | `grid = …` | The blocks of the grid: expressions over constants and parameters, and `block::threads()`. |
/// | `instances(A = 1 \| 2, T = f32; …)` | The instances to compile now: `\|` separates alternatives, `;` separates declarations. |
/// | `instances(tile: A = 1 \| 2, T = f32; …)` | The same, with names for reports and the command line: `matmul@tile_a1`, `matmul@tile_a2`. Each parameter with alternatives adds its value to the name: a number after the parameter's name, a type, or the parameter's name where a `bool` is true. |
/// | `derived(N = 16 / size_of::<T>())` | Generic constants that are computed from the others. |
/// | `min_blocks = …` | The number of blocks that a multiprocessor should hold at once: an expression over the generic constants. |
/// | `max_registers = …` | The largest number of registers of a thread: `128`, or `if WIDE { 168 } else { 128 }`. |
/// | `contract` | Contracts a sum or difference of floats that contains a product, `a * b + c` or `c -= a * b`, to one `mul_add` with one rounding. Applies to the kernel, and not to the device functions that it calls. |
/// | `tolerance(y(relative = 1e-6, absolute = 1e-7))` | The largest difference between a GPU's results and the interpreter's, for values that `fast::` functions reach. |
/// | `writes(y = all, z = once)` | Declares that a launch writes each element of `y`, and each element of `z` by one thread. The oracle verifies this. |
/// | `target = sm_80` | The target: sm_61 (the default), sm_70, sm_75, sm_80, sm_86, sm_89 or sm_90. Older devices cannot run the kernel. |
/// | `crate = path` | The path of kernel-dsl, if not `::kernel_dsl`. |
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
/// The attribute applies to functions, constants, structs, enums without data, and to a `mod { …
/// }` with traits and impls, all of whose items become device items. Beside each item, the
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

/// Allows values of a struct or enum in shared memory and in exchanges between lanes. Each field
/// of a struct must be `DeviceCopy`; an enum needs a variant.
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

/// Returns the build settings of these macros: the fields of `compiler::Build`.
#[doc(hidden)]
#[proc_macro]
pub fn __build(_: TokenStream) -> TokenStream {
    let Build { opt_level, debug_assertions, rustc } = Build::THIS;
    format!("({opt_level:?}, {debug_assertions}, {rustc:?})").parse().unwrap_or_default()
}
