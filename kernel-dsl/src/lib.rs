//! GPU kernels in Rust: written as functions, compiled to PTX for sm_61 while the crate is compiled, with nothing
//! installed but stable Rust.
//!
//! # What a kernel is
//!
//! A kernel is a function that a GPU runs many times at once, each time as a *thread*. A launch makes a *grid* of
//! *blocks* of threads. Threads of a block share a small, fast memory and can wait for one another; blocks know nothing
//! of each other, and run in any order. Within a block, 32 threads with consecutive indices form a *warp*, whose
//! *lanes* run together and can hand each other values.
//!
//! A kernel says what one thread does:
//!
//! ```
//! use kernel_dsl::prelude::*;
//!
//! /// y ← a·x + y
//! #[kernel(block = 256, grid = y.len().div_ceil(256))]
//! #[requires(x.len() == y.len())]
//! pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
//!     let i = grid::index();
//!     if i < y.len() {
//!         y[i] = a.mul_add(x[i], y[i]);
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The attribute gives the launch its shape: 256 threads a block, and as many blocks as cover `y`. `requires` is what
//! must hold of the arguments; a launch that does not meet it is refused before anything runs. Both are Rust
//! expressions over the kernel's parameters.
//!
//! `saxpy` is now a type, used as a namespace. `saxpy::PTX` is the kernel's PTX, a `&'static str` that is there when
//! the crate is compiled; `saxpy::launch(&device, 2.0, &x, &mut y)` runs it on a device of crate `runtime`.
//!
//! # Shared memory, and instances
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// C = A·B by T×T tiles in shared memory.
//! #[kernel(block = (T, T), grid = (c.cols().div_ceil(T), c.rows().div_ceil(T)), instances(T = 16 | 32))]
//! #[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
//! pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
//!     let ta = Shared::<f32, 2>::padded([T, T]);
//!     let tb = Shared::<f32, 2>::padded([T, T]);
//!     let (row, col) = (block::y() * T + thread::y(), block::x() * T + thread::x());
//!     let mut acc = 0.0;
//!     for k in (0..a.cols()).step_by(T) {
//!         ta.copy_from(a.offset((block::y() * T, k)));
//!         tb.copy_from(b.offset((k, block::x() * T)));
//!         block::sync();
//!         for i in unroll(0..T) {
//!             acc = ta[(thread::y(), i)].mul_add(tb[(i, thread::x())], acc);
//!         }
//!         block::sync();
//!     }
//!     if row < c.rows() && col < c.cols() {
//!         c[(row, col)] = acc;
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! A kernel may be generic over constants. Those that `instances` declares are compiled with the crate:
//! `matmul::<16>::PTX`. `matmul::<24>::launch(…)` works too, compiled when it is first launched, from what the
//! expansion keeps of the kernel; `matmul::<24>::PTX` is a compile error that lists the instances there are.
//!
//! * [`View`] and [`ViewMut`] are arrays of rank 1 to 5 in global memory. They move like pointers ([`View::offset`]),
//!   and know their extents. [`Strided`] and [`StridedMut`] are those whose neighbours need not lie side by side: a column, a
//!   transposed matrix ([`View::strided`], [`Strided::transposed`]).
//! * [`Shared`] is an array in the block's memory. Handles to it are `Copy`: rustc's borrow checker keeps out of what
//!   threads do to one another, and the oracle checks that instead. `padded` lets the compiler choose the pitch
//!   that the memory banks like, `swizzled` does without one, and `dynamic` has the launch tell the size. An array lives to the end of
//!   the braces that it is made in, and arrays that do not live at once share bytes: a [`block::sync`] belongs between
//!   the last use of one and the first of the next, at a loop's end too.
//! * [`copy_from`](Shared::copy_from) is done by the whole block together, and puts zeros beyond the edge. It is no
//!   barrier, so [`block::sync`] stands after it, and after the tile's last use.
//! * [`copy_async`](Shared::copy_async) begins such a copy, and [`Pending::wait`] completes it: a loop loads its next tile while it
//!   computes with this one.
//! * `x.load::<4>(i)` and `x.store(i, values)` move up to 16 elements at once, in accesses of up to 16 bytes, which must be
//!   aligned; `load_or` and `store_in` take any place, and leave out what lies beyond the edge. Slices, views and
//!   shared arrays have them.
//! * `fetch_add`, `fetch_min`, …, `exchange` and `compare_exchange` are atomic, on whatever a kernel may write.
//! * [`fence`] orders memory between blocks, which the kernel's end does otherwise.
//! * [`unroll`] makes a copy of the loop's body for each iteration.
//!
//! # Warps
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// Each row of y is the softmax of the same row of x. A warp works on a row.
//! #[kernel(block = (32, ROWS), grid = x.rows().div_ceil(ROWS), instances(ROWS = 4))]
//! #[requires(x.rows() == y.rows(), x.cols() == y.cols())]
//! pub fn softmax<const ROWS: usize>(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
//!     let row = block::x() * ROWS + thread::y();
//!     let cols = if row < x.rows() { x.cols() } else { 0 };
//!     let mut m = f32::NEG_INFINITY;
//!     for i in (warp::lane()..cols).step_by(32) {
//!         m = m.max(x[(row, i)]);
//!     }
//!     let m = warp::max(m);
//!     let mut s = 0.0;
//!     for i in (warp::lane()..cols).step_by(32) {
//!         s += math::exp(x[(row, i)] - m);
//!     }
//!     let s = warp::sum(s);
//!     for i in (warp::lane()..cols).step_by(32) {
//!         y[(row, i)] = math::exp(x[(row, i)] - m) / s;
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! The operations of [`warp`] need all 32 lanes at the same call, so the reductions stand outside of the loops and of
//! any `if` that depends on the row: lanes of a row that is not there take part with values that do not count. The same
//! holds of [`block::sync`] and the block.
//!
//! A warp, a [group](warp::group) of 2 to 32 of its lanes, and the [block] have the same operations: `sum`, `max` and
//! `min` of numbers; `reduce` and `scan` by a closure or device function, over numbers, `bool`, and tuples, arrays and options
//! of them; `broadcast`, `any`, `all`. Lanes have `shuffle`, `shuffle_xor`, `shuffle_up` and `shuffle_down`, and `ballot`.
//!
//! # Who comes together
//!
//! [`block::sync`] and the other operations of [`block`] need all threads of the block at the same call, those of
//! [`warp`] all lanes of the warp. Whether they are is seen from what decides the way there. A parameter is the same for
//! all threads; a block's index for a block; `warp::index()`, and `grid::index() / 32`, for a warp; `thread::x()` for
//! none. What is computed from such values is the same where all of them are, and a variable where all that it was set to
//! is, and the way to where it was. The result of a reduction, a vote, or a shuffle from one lane is the same for all that
//! take part. An `if`, `while` or `for` on a value that is the same for the warp keeps the warp together, and so on. A
//! `return`, `break` or `continue` that some threads take, and others not, leaves the others alone to the end of what is
//! left: the kernel, the loop, or its iteration.
//!
//! ```compile_fail
//! # use kernel_dsl::prelude::*;
//! #[kernel(block = 256, grid = y.len().div_ceil(256))]
//! pub fn share(x: &[f32], y: &mut [f32]) {
//!     let i = grid::index();
//!     if i >= y.len() {
//!         return;
//!     }
//!     y[i] = x[i] / block::sum(x[i]);
//! }
//! # fn main() {}
//! ```
//!
//! ```text
//! error: `block::sum` needs all threads of the block, and which of them come here depends on the thread
//!        note: line 5, `return;`: some threads leave, and others go on
//!        note: line 4, `if i >= y.len() {`: threads part
//!        note: line 3, `let i = grid::index();`: differs between threads
//!        help: let all threads of the block go on, and put what only some have to do under an `if` without the `block::sum`
//! ```
//!
//! Threads beyond the end come along with a value that does not count:
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[kernel(block = 256, grid = y.len().div_ceil(256))]
//! pub fn share(x: &[f32], y: &mut [f32]) {
//!     let i = grid::index();
//!     let mine = x.get(i).copied().unwrap_or(0.0);
//!     let total = block::sum(mine);
//!     if i < y.len() {
//!         y[i] = mine / total;
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! Refused is what is proven to depend on the thread. Where shared memory or a buffer that is written decides, or a division by a
//! number of the launch, the kernel compiles, and the interpreter checks each time whether all have come. Which is so of a
//! value tells [`compiler::analyses::uniformity`].
//!
//! # Functions
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[device]
//! pub fn silu(x: f32) -> f32 {
//!     x / (1.0 + math::exp(-x))
//! }
//! # fn main() {}
//! ```
//!
//! A `#[device]` function is called from kernels and other device functions, of its own crate or another, and is an
//! ordinary function on the host as well. It is always inlined. A `&mut` parameter is the caller's variable itself, so
//! that arrays passed that way stay in registers.
//!
//! What a function does can be a parameter, too, of type `impl Fn(f32, usize) -> f32`: a closure is passed for it, or the
//! path of another device function. A closure is a name for code that is inlined where it is called; it captures by
//! reference, is bound by `let` or passed on, and is never chosen by a condition or stored.
//!
//! # Structs, traits, and kernels that are generic over types
//!
//! `#[device]` also goes on constants, on structs, on enums without data, and on a module, for traits and impls: all that the
//! module holds is the device's then.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[device]
//! pub mod activation {
//!     use kernel_dsl::prelude::*;
//!
//!     /// What is done with each element.
//!     pub trait Activation: Copy {
//!         fn apply(self, x: f32) -> f32;
//!     }
//!
//!     #[derive(Clone, Copy)]
//!     pub struct Relu;
//!     impl Activation for Relu {
//!         fn apply(self, x: f32) -> f32 {
//!             x.max(0.0)
//!         }
//!     }
//!
//!     /// slope · x below zero
//!     #[derive(Clone, Copy)]
//!     pub struct Leaky {
//!         pub slope: f32,
//!     }
//!     impl Activation for Leaky {
//!         fn apply(self, x: f32) -> f32 {
//!             if x < 0.0 { self.slope * x } else { x }
//!         }
//!     }
//! }
//! use activation::{Activation, Leaky, Relu};
//!
//! #[kernel(block = 256, grid = y.len().div_ceil(256), instances(A = Relu | Leaky, T = f32 | f16))]
//! #[requires(x.len() == y.len())]
//! pub fn activate<A: Activation, T: Float>(a: A, x: &[T], y: &mut [T]) {
//!     let i = grid::index();
//!     if i < y.len() {
//!         y[i] = T::from_f32(a.apply(x[i].to_f32()));
//!     }
//! }
//! # fn main() { assert!(activate::<Leaky, f16>::PTX.contains(".param .f32 a_slope")); }
//! ```
//!
//! A kernel's generic parameters are constants and types. An instance says what stands for them: element types, device structs and
//! enums, and functions marked `#[device(value)]`, which implement [`DeviceFn`]. Bounds are device traits, and
//! [`Element`], [`Number`], [`Float`], [`Integer`] and [`DeviceFn`] of the prelude. What a type of another crate does in a
//! kernel of this one is compiled when it is launched: `activate::<TheirActivation, f32>::launch(…)`. A generic constant
//! that follows from the others is `derived(N = 16 / size_of::<T>())`.
//!
//! A struct that derives [`DeviceCopy`](trait@DeviceCopy) goes through shuffles, reductions and shared memory; one that is
//! `repr(C)`, of numbers and without padding, lies in buffers too. A struct passed to a kernel becomes a parameter of the
//! entry for each number in it. Methods, associated constants, associated types and provided methods are as in Rust; all is
//! known when the instance is compiled, and nothing is called through a pointer.
//!
//! # Tables
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// What the codes of four bits stand for.
//! #[device]
//! const LEVELS: [f32; 16] = [
//!     -1.0, -0.7, -0.53, -0.39, -0.28, -0.18, -0.09, 0.0, 0.08, 0.16, 0.25, 0.34, 0.44, 0.56, 0.72, 1.0,
//! ];
//!
//! #[kernel(block = 256, grid = codes.len().div_ceil(256))]
//! #[requires(y.len() == 2 * codes.len())]
//! pub fn decode(codes: &[u8], y: &mut [f32]) {
//!     let i = grid::index();
//!     if i < codes.len() {
//!         let code = codes[i] as usize;
//!         y.store(2 * i, [LEVELS[code % 16], LEVELS[code / 16]]);
//!     }
//! }
//! # fn main() { assert!(decode::PTX.contains(".global .align 16 .f32 $LEVELS[16]")); }
//! ```
//!
//! A constant array, of a module, a body, a trait or an impl, or in a constant struct, may be indexed by what is known at run time
//! only. It becomes data of the PTX module, once however often it is named; what is read by a constant index is an immediate, and
//! takes no room. It may be computed: `const TABLE: [u32; 256] = table();` runs the `#[device] const fn` here, as rustc does for the
//! host. An index is checked as that of a buffer is.
//!
//! Where it lies follows from how it is read. The constant cache gives a warp one element at a time, as fast as a register;
//! global memory, by the read-only path, serves lanes together that ask for different ones. So a table lies in constant memory where
//! each of its reads is proven to be of one element for all lanes of a warp ([`uniformity`](compiler::analyses::uniformity)), as long as
//! its 64 KB last; in global memory otherwise. `#[device(constant)]` and `#[device(global)]` on a constant say it instead: a table that was put
//! into constant memory and has no room is a compile error, and `kernels report` tells where its lanes take turns.
//!
//! # Targets
//!
//! PTX is made for sm_61, and runs on every later card. What sm_61 lacks is a compile error there that names the first target that
//! has it: a kernel that needs one says `#[kernel(target = sm_80, …)]`, and what differs by target branches on
//! [`target::SM`].
//!
//! # Inline PTX
//!
//! What the language has no word for, [`ptx!`] says in instructions, with operands that have types:
//! `ptx!("prmt.b32 {d}, {a}, 0, 0x0123;", a = in(u32) x, d = out(u32))`. Module [`inline`] tells what can stand there; the
//! interpreter runs it as it runs all PTX.
//!
//! # Blocks that the launch chooses
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// out[b] is the largest of the block's part of x.
//! #[kernel(block = 32..=1024, grid = out.len())]
//! #[requires(!out.is_empty())]
//! pub fn largest(x: &[f32], out: &mut [f32]) {
//!     let mut best = f32::NEG_INFINITY;
//!     for i in grid::stride(x.len()) {
//!         best = best.max(x[i]);
//!     }
//!     let best = block::max(best);
//!     if thread::index() == 0 {
//!         out[block::x()] = best;
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! `largest::launch(&device, 256, &x, &mut out)` runs it in blocks of 256 threads: one PTX, which reads the block's size from a
//! special register, for all sizes. A launch of a size that the range does not have is refused. A range both of whose ends
//! are whole warps is of whole warps; `.step_by(n)` says another step. Where an expression over the parameters decides,
//! `block = x.cols().next_multiple_of(32).min(1024)`, the launch passes nothing, and how many threads there are at most
//! must follow from the expression: from `min`, `clamp`, `%`. Of a block of two or three axes it is the last one that may be
//! left open. `grid` and `requires` may ask for `block::threads()`.
//!
//! Operations of whole warps need a number of threads that is a multiple of 32 whatever the launch: by the range, by the
//! expression, or by `#[requires(block::threads() % 32 == 0)]`. Shared memory of the compiler's own, registers and occupancy
//! are counted for the largest block, and the order of a reduction is that of a kernel whose block has the same size for
//! good.
//!
//! # Values that may be missing
//!
//! `Option<T>` is the one enum that holds data: a `bool` and the parts of `T`, in registers. `v.get((row, col))` of a
//! view is `Some` of the element where it lies inside, `x.get(i).copied()` is Rust's own way to say that of a slice; either is
//! one load that the threads outside do not make. `if let`, `while let`, `let … else` and `match` take it apart, and it has
//! the [methods](methods#options) of Rust's that need no panic.
//!
//! # What the language has
//!
//! A kernel is Rust, and means what a Rust reader expects; rustc checks it against the items of [`prelude`], so names,
//! types and borrows are wrong where Rust says so. [`mod@reference`] lists every construct, with the PTX that it becomes and what
//! that costs; [`subset`] what of Rust is in, and what is out and why.
//!
//! * **Types**: `bool`, integers of 8 to 64 bits, `usize`, `f32` and `f64`, and the floats of 16 bits,
//!   [`f16`](half::f16) and [`bf16`](half::bf16), with what [`half`] lists; tuples and arrays of them, which live in
//!   registers; `Option`; `#[device]` structs, and enums without data; slices, views and handles as above. Elements of
//!   buffers are the numbers but `usize`, arrays of them, and `repr(C)` structs; shared memory holds `bool`,
//!   `usize`, tuples and other structs too. A part of an element is a place: `w[(row, b)].qs[j]` is a load of one number.
//! * **Statements**: `let` with tuple and array patterns, assignment, destructuring and compound assignment, `if` and
//!   `while` with conditions and `let`s joined by `&&`, `match` with numbers, ranges, tuples, arrays, `|`, bindings and
//!   guards, `loop`, labels on loops and blocks, `break`, `continue`, `return`, and `const { assert!(…) }`.
//! * **Iterators** of a `for`: `a..b` with `.step_by(n)` and `.rev()`; [`block::share`], [`block::stride`] and
//!   [`grid::stride`]; register arrays; all of them with `.enumerate()`, in [`unroll`], [`unroll_by`] or [`rolled`].
//! * **Arrays**: `[x; N]`, `[a, b]`, `std::array::from_fn(|i| …)`, `.map(|x| …)`, `.len()`; `size_of::<T>()`.
//! * **Items**: `#[device]` functions, constants, structs, enums, and modules of them with traits and impls; `const` in a
//!   body.
//! * **Generics**: constants of type `usize` and `bool`, and types, on functions, structs and impls.
//! * **Methods of numbers**: those of [`methods`], with their PTX and their edge cases; instructions of the machine beyond them in
//!   [`int`] and [`dot`]; and [`math`], the same bits everywhere, and [`fast`], what the hardware approximates.
//!
//! Not in the language: enums with data beside `Option`, trait objects, traits with generic parameters, iterators beyond those above,
//! strings, allocation, panics, recursion. Whatever lies outside is a compile error at its token.
//!
//! # What differs from Rust on the host
//!
//! * `usize` has 32 bits. Its overflow is an error of the kernel, as out of bounds is: the interpreter reports it, and
//!   compiled code may assume that it does not happen. `wrapping_*` wraps. Fixed-width integers wrap; the interpreter
//!   reports that as Rust's debug builds do.
//! * A division by zero is reported by the interpreter, and gives an unspecified value on a GPU.
//! * `max` and `min` of floats return the number where one operand is a NaN, and order −0 below +0.
//! * a · b + c is one rounding only where the kernel says `mul_add`, or its attribute `contract`: then a sum or difference with a
//!   product written in it is one, in the kernel itself and not in the device functions that it calls (and not where rustc
//!   compiles the kernel, under [`host::run`]). Nothing else is contracted or reordered.
//! * Threads run together: what two of them do to one element, one of them writing, is a race unless a sync stands
//!   between.
//!
//! # How a kernel is proved
//!
//! The interpreter of crate `runtime` runs the compiler's intermediate representation, a warp at a time, and checks
//! every access, barrier and exchange; `kernels check` compares what it computes, before and after optimisation, with
//! plain Rust and, where there is one, with the GPU, bit for bit, or within the kernel's tolerance where [`fast`] is used. [`host::run`] runs the same Rust as rustc compiled
//! it, a thread each, which tells whether our compiler reads a kernel as rustc does.
//!
//! # Where things are
//!
//! [`prelude`] lists what a kernel is written with. [`artifact`] is what an expansion holds, [`launcher`] what stands
//! between a typed `launch` and a device; [`compiler`] is all the rest.

extern crate self as kernel_dsl;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
pub mod artifact;
mod atomic;
pub mod block;
pub mod device;
pub mod dot;
pub mod element;
pub mod fast;
pub mod fence;
pub mod float16;
pub mod grid;
pub mod half;
pub mod host;
pub mod inline;
pub mod int;
mod iterate;
pub mod launcher;
mod layout;
pub mod math;
pub mod methods;
mod pending;
pub mod pipeline;
pub mod prelude;
pub mod reference;
mod shared;
mod slice;
pub mod subset;
pub mod target;
pub mod thread;
mod view;
pub mod warp;
mod wide;

pub use artifact::{Artifact, Declared, Kernel, kernels};
pub use atomic::{Atomic, AtomicInteger};
pub use dot::{dp2a_hi, dp2a_lo, dp4a};
pub use element::{DeviceCopy, DeviceFn, Element, Float, GenericArgument, Integer, Number, ScalarElement};
pub use float16::Float16;
pub use iterate::{rolled, unroll, unroll_by};
pub use kernel_dsl_compiler as compiler;
#[doc(hidden)]
pub use kernel_macros::__link;
pub use kernel_macros::{DeviceCopy, device, kernel};
pub use launcher::{Argument, Call, Launcher};
pub use layout::Position;
pub use pending::Pending;
pub use shared::Shared;
pub use slice::SliceExt;
pub use view::{Source, Strided, StridedMut, View, ViewMut};
