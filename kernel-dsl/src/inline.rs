//! Inline PTX: instructions that the language has no construct for.
//!
//! ```
//! use kernel_dsl::prelude::*;
//!
//! /// a · b + c in 64 bits, by halves.
//! #[device]
//! pub fn multiply_add(a: u32, b: u32, c: u32) -> (u32, u32) {
//!     ptx!(
//!         "mad.lo.cc.u32 {low}, {a}, {b}, {c};",
//!         "madc.hi.u32 {high}, {a}, {b}, 0;",
//!         a = in(u32) a,
//!         b = in(u32) b,
//!         c = in(u32) c,
//!         low = out(u32),
//!         high = out(u32),
//!     )
//! }
//!
//! /// Each sum of four products of bytes.
//! #[kernel(block = 256, grid = y.len().div_ceil(256))]
//! #[requires(a.len() == y.len(), b.len() == y.len())]
//! pub fn dot4(a: &[u32], b: &[u32], y: &mut [i32]) {
//!     let i = grid::index();
//!     if i < y.len() {
//!         y[i] = ptx!("dp4a.s32.s32 {d}, {a}, {b}, {d};", a = in(u32) a[i], b = in(u32) b[i], d = inout(i32) y[i]);
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! # Text and operands
//!
//! The macro takes string literals of PTX text, one below another, then the operands. An operand
//! has a name, which the text writes in braces, a direction and a type:
//!
//! | operand | its register |
//! |---|---|
//! | `a = in(u32) value` | holds the value; read only |
//! | `d = out(u32)` | is written; its final content is a result |
//! | `d = inout(u32) value` | holds the value first; its final content is a result |
//!
//! `ptx!` is an expression, whose value is the one result, or a tuple of the results in the order
//! of the operands, or `()`. Inputs are values: nothing is written back to a variable.
//!
//! | type | register | |
//! |---|---|---|
//! | `bool` | `.pred` | `setp` writes one, `selp` and guards read one |
//! | `i16`, `u16` | `.s16`, `.u16` | |
//! | `f16`, `bf16` | `.b16` | |
//! | `i32`, `u32`, `usize` | `.s32`, `.u32`, `.u32` | |
//! | `i64`, `u64` | `.s64`, `.u64` | |
//! | `f32`, `f64` | `.f32`, `.f64` | |
//!
//! PTX has no 8-bit registers: widen such values first. `.reg .b32 t, u;` declares registers of the
//! inline block, scoped by braces if there are any. A pair of halves, for an instruction on
//! `.f16x2`, is such a `.b32`:
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// Two sums at once. sm_61 has the instruction, and takes 64 times as long for it as for one on `f32`.
//! #[device]
//! pub fn add_pairs(a: u32, b: u32) -> u32 {
//!     ptx!(
//!         ".reg .b32 x, y;",
//!         "mov.b32 x, {a}; mov.b32 y, {b};",
//!         "add.rn.f16x2 x, x, y;",
//!         "mov.b32 {d}, x;",
//!         a = in(u32) a,
//!         b = in(u32) b,
//!         d = out(u32),
//!     )
//! }
//! # fn main() {}
//! ```
//!
//! # What is checked
//!
//! The macro checks, before an instance is compiled: each instruction against the compiler's table,
//! with its modifiers and operand types; that every register and result is written before it is
//! read, in every lane; that inputs are not written; and that each operand is used. Compiling an
//! instance checks that its target has the instructions, so an `if target::SM >= 70` may hold
//! instructions that sm_61 lacks. A mistake is a compile error at the literal, with the instruction
//! and the alternatives in the table.
//!
//! An inline block computes registers from registers, with the same bits everywhere. The following
//! is rejected:
//!
//! | rejected | reason | alternative |
//! |---|---|---|
//! | branches, labels, calls, `exit`, `ret`, `trap` | the compiler must know the control flow | `if`, loops, `return` around the block; guards in it, `@{p} add.u32 …` |
//! | loads, stores, atomics, copies, addresses | the oracle checks each access | slices, views, [`Shared`](crate::Shared) |
//! | barriers, fences, shuffles, votes, reductions | the oracle checks the participants | [`block`](crate::block), [`warp`](crate::warp), [`fence`](crate::fence) |
//! | approximations, such as `ex2.approx` and `div.full` | the bits differ between machines | [`fast`](crate::fast), whose values are tracked; [`math`](crate::math) |
//! | `add`, `sub` and `mul` of floats without a rounding | the assembler may fuse two into one `fma` | `add.rn.f32` |
//! | the carry of another inline block | code between the two may change the carry | one inline block |
//!
//! # Executors
//!
//! The interpreter of IR runs an inline block with the semantics of the PTX interpreter, so every
//! executor gives the same bits. The interpreter reports a division by zero as in Rust.
//! Instructions that are in the table but not in the interpreter, such as `brkpt` or `%envreg0`,
//! run on a GPU only: on the CPU the kernel is rejected before it runs, and the error names the
//! instruction.
//!
//! A block that computes from its operands alone is treated like an operator: dropped if its
//! results are unused, and, with one result, merged with equal blocks and moved out of loops.
//! `%tid`, `%ntid`, `%ctaid`, `%nctaid`, `%laneid` and the lane masks identify the thread and count
//! as operands.
//!
//! `activemask`, `nanosleep`, `pmevent`, and the other special registers, such as `%clock64`,
//! `%globaltimer`, `%smid` and `%warpid`, depend on the machine. A block that uses one of them runs
//! each time, at its place, and its results may differ between executors. In the interpreter each
//! reading of a clock is later than the one before, and there is one multiprocessor.
//!
//! `ptx!` panics in a device function that rustc compiled for the host, because nothing there runs
//! PTX. A kernel with inline PTX runs on crate `runtime`'s `Device::cpu()`, not under
//! [`host::run`](crate::host::run).

/// Instructions of PTX, with operands: see [`inline`](crate::inline).
///
/// ```
/// # use kernel_dsl::prelude::*;
/// /// Whether each bit is set in at least two of the three.
/// #[device]
/// pub fn majority(a: u32, b: u32, c: u32) -> u32 {
///     ptx!("lop3.b32 {d}, {a}, {b}, {c}, 0xE8;", a = in(u32) a, b = in(u32) b, c = in(u32) c, d = out(u32))
/// }
/// # fn main() {}
/// ```
///
/// The macro can be used only in kernels and device functions:
///
/// ```compile_fail
/// # use kernel_dsl::prelude::*;
/// fn of_the_host(a: u32) -> u32 {
///     ptx!("brev.b32 {d}, {a};", a = in(u32) a, d = out(u32))
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! ptx {
    (#device ($($ty:ty = $value:expr),*) -> $output:ty) => {{
        $(let _: $ty = $value;)*
        $crate::__private::ptx_on_host::<$output>()
    }};
    (#device) => {
        loop {}
    };
    ($($anything:tt)*) => {
        ::core::compile_error!("`ptx!` can be used only in a kernel or a `#[device]` function")
    };
}
