//! Inline PTX: what the language has no word for.
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
//! First come literals of text, which stand below one another; then the operands. An operand has a name, which stands
//! in braces in the text, a direction and a type:
//!
//! | operand | its register |
//! |---|---|
//! | `a = in(u32) value` | holds the value, and is not written |
//! | `d = out(u32)` | is written; what it holds at the end comes out |
//! | `d = inout(u32) value` | holds the value first, and what it holds at the end comes out |
//!
//! `ptx!` is an expression. Its value is the one that comes out, or a tuple of those that do, in the order of the operands, or
//! `()`. Inputs are values: nothing is written back to a variable.
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
//! PTX has no registers of 8 bits: widen such values first. `.reg .b32 t, u;` declares registers of the block's own,
//! which have a scope if braces are around them. A pair of halves, for an instruction on `.f16x2`, is such a `.b32`:
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
//! At the macro, before anything is compiled for a target: each instruction against the compiler's table, its modifiers and the
//! types of its operands; that a register is written before it is read, in every lane, and so is what comes out; that inputs are
//! not written; that each operand is named. When an instance is compiled: that its target has the instructions. So an
//! `if target::SM >= 70` may hold what sm_61 lacks. A mistake is a compile error at the literal, with the instruction
//! and what the table has instead.
//!
//! What stands in a block computes registers from registers, and gives the same bits everywhere. The rest is refused, in words:
//!
//! | refused | because | instead |
//! |---|---|---|
//! | branches, labels, calls, `exit`, `ret`, `trap` | the way of control is the compiler's to know | `if`, loops, `return` around the block; guards in it, `@{p} add.u32 …` |
//! | loads, stores, atomics, copies, addresses | the oracle checks each access | slices, views, [`Shared`](crate::Shared) |
//! | barriers, fences, shuffles, votes, reductions | the oracle checks who takes part | [`block`](crate::block), [`warp`](crate::warp), [`fence`](crate::fence) |
//! | approximations, such as `ex2.approx` and `div.full` | each machine has bits of its own | `fast::exp2` and its kin; `math` |
//! | `add`, `sub` and `mul` of floats without a rounding | the assembler may make one `fma` of two | `add.rn.f32` |
//! | the carry of another block | what comes between may change it | one block |
//!
//! # Executors
//!
//! The interpreter runs a block by the semantics that its PTX interpreter has, so every executor agrees on the bits. A
//! quotient by zero is reported as in Rust. What the table has and the interpreter does not know, such as `brkpt` or `%envreg0`,
//! goes to a GPU alone: on the CPU the kernel is refused before anything runs, and the instruction named.
//!
//! A block that computes from its operands alone is treated as any operator: dropped where its results are unused, and
//! if it has one result, merged with its like and moved out of loops. `%tid`, `%ntid`, `%ctaid`, `%nctaid`, `%laneid` and the
//! lane masks say who the thread is, and are as good.
//!
//! `activemask`, `nanosleep`, `pmevent`, and the other special registers, such as `%clock64`, `%globaltimer`, `%smid` and
//! `%warpid`, ask the machine: such a block is done where it stands, each time. **What it gives is outside of the promise
//! that executors agree.** In the interpreter a clock counts instructions, and there is one multiprocessor.
//!
//! On the host, where rustc has compiled a device function, there is nothing that could run PTX: `ptx!` panics there. A
//! kernel with inline PTX runs on [`Device::cpu()`](https://docs.rs/runtime), not under [`host::run`](crate::host::run).

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
/// It has a meaning in kernels and device functions, and nowhere else:
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
        $crate::__private::of_a_device::<$output>()
    }};
    (#device) => {
        loop {}
    };
    ($($anything:tt)*) => {
        ::core::compile_error!("`ptx!` has a meaning only in a kernel or a `#[device]` function")
    };
}
