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
/// | `block = …` | threads of a block: one expression or a tuple of up to three, over the generic constants. The last may be for the launch to decide: `32..=1024` or `(64..=1024).step_by(64)`, whose value is an argument of the launch, or an expression over the parameters that has a bound, `x.cols().clamp(32, 1024)`. A range from whole warps to whole warps is of whole warps |
/// | `grid = …` | blocks of the grid: expressions over constants and parameters, and `block::threads()` |
/// | `instances(A = 1 \| 2, T = f32; …)` | what stands for the generic parameters, to compile now: `\|` a product, `;` a list |
/// | `derived(N = 16 / size_of::<T>())` | generic constants that follow from the others |
/// | `min_blocks = …` | blocks that a multiprocessor should hold at once: an expression over the generic constants |
/// | `max_registers = …` | registers a thread at most: `128`, or `if WIDE { 168 } else { 128 }` |
/// | `contract` | a sum or difference of floats with a product written in it, `a * b + c` or `c -= a * b`, is one `mul_add` with one rounding: in the kernel itself, not in the device functions that it calls |
/// | `tolerance(y(relative = 1e-6, absolute = 1e-7))` | how near a GPU's results must be to the interpreter's, for what the values of `fast::` functions reach |
/// | `writes(y = all, z = once)` | that a launch writes each element of `y`, and each of `z` by one thread: the oracle holds it to that |
/// | `target = sm_80` | what it is compiled for, of sm_61 (if nothing is said), sm_70, sm_75, sm_80, sm_86, sm_89 and sm_90; older devices cannot run it |
/// | `crate = path` | where kernel-dsl is, if not at `::kernel_dsl` |
///
/// `#[requires(…)]` below it lists conditions over the parameters that a launch must meet.
///
/// `#[allow(global_race, reason = "…")]` before a statement of the body, or of a device function's, has the oracle not report
/// there what it calls `global-race` (with `_` for `-`; `race` is all kinds of them), but list it with the reason. An `allow` that
/// neither names a check nor gives a reason is rustc's.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::kernel(attribute.into(), item.into()).into()
}

/// Makes an item usable in kernels and in other device items, of this crate and of others. It stays an ordinary item of the
/// host too.
///
/// It goes on functions, constants, structs, enums without data, and on a `mod { … }` for traits and impls: all items of
/// the module are the device's then. A macro of the same name is made beside each, which carries it to those that name
/// it: `use` brings both.
///
/// | clause | says |
/// |---|---|
/// | `value` | of a function: make a type of its name, too, which implements `DeviceFn` |
/// | `crate = path` | where kernel-dsl is, if not at `::kernel_dsl` |
#[proc_macro_attribute]
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::device(attribute.into(), item.into()).into()
}

/// Lets values of a struct lie in shared memory and go from lane to lane: each field must be able to. An enum needs a
/// variant.
#[proc_macro_derive(DeviceCopy)]
pub fn device_copy(item: TokenStream) -> TokenStream {
    expand::device_copy(item.into()).into()
}

/// The end of a chain of device items; only expansions call it.
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
