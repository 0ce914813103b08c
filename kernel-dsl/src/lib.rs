//! GPU kernels written as Rust functions. The macros compile them to PTX for sm_61 while rustc
//! compiles the crate. Stable Rust is the only tool needed.
//!
//! # What a kernel is
//!
//! A kernel is a function that a GPU runs many times in parallel, once for each *thread*. A launch
//! makes a *grid* of *blocks* of threads. The threads of a block share a small, fast memory and can
//! wait for each other. Blocks are independent and run in any order. Within a block, 32 threads
//! with consecutive indices form a *warp*. The threads of a warp are its *lanes*; lanes run
//! together and can exchange values.
//!
//! The kernel's body describes one thread:
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
//! The attribute gives the launch its shape: 256 threads a block, and enough blocks to cover `y`.
//! `requires` states a condition on the arguments; a launch that violates the condition is rejected
//! before anything runs. Both are Rust expressions over the kernel's parameters.
//!
//! The macro turns `saxpy` into a type that serves as a namespace. `saxpy::PTX` is the kernel's
//! PTX, a `&'static str` in the compiled crate. `saxpy::launch(&device, 2.0, &x, &mut y)` runs the
//! kernel on a device of crate `runtime`.
//!
//! # Shared memory and instances
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
//! A kernel may be generic over constants. The instances that `instances` declares are compiled
//! with the crate: `matmul::<16>::PTX`. `matmul::<24>::launch(…)` works too: the runtime compiles
//! it at its first launch, from the kernel's serialized form in the expansion. `matmul::<24>::PTX`
//! is a compile error that lists the declared instances.
//!
//! Reports and errors name an instance with its arguments, `matmul<T = 16>`. A declaration can give
//! it a shorter name: `instances(tile: T = 16 | 32)` declares `matmul@tile_t16` and
//! `matmul@tile_t32`. The command `kernels` takes all of these forms, and `matmul::<16>`.
//!
//! * [`View`] and [`ViewMut`] are arrays of rank 1 to 5 in global memory. Views move like pointers
//!   ([`View::offset`]) and know their extents. The last dimension of a view is contiguous.
//!   [`Strided`] and [`StridedMut`] have a stride in every dimension: a column, a transposed matrix
//!   ([`View::strided`], [`Strided::transposed`]).
//! * [`Shared`] is an array in the block's memory. The array's handles are `Copy`, so rustc's
//!   borrow checker does not restrict which thread accesses an element; the oracle reports races
//!   instead. `padded` lets the compiler choose the pitch with the fewest bank conflicts,
//!   `swizzled` avoids conflicts without padding, and the launch evaluates the shape of `dynamic`.
//!   An array lives until the end of the enclosing braces. Arrays whose lifetimes do not overlap
//!   share bytes. A [`block::sync`] therefore belongs between the last use of one and the first use
//!   of the next, also at the end of a loop's body.
//! * `std::mem::swap(&mut s, &mut t)` exchanges two shared arrays, and `[s, t][k % 2]` chooses one
//!   at run time. The arrays have one type and shape and are created in the same braces. The
//!   compiler makes them rows of one array, so that a choice is an index.
//! * [`copy_from`](Shared::copy_from) is a cooperative copy by the whole block, with zeros beyond
//!   the edge. The copy is not a barrier: call [`block::sync`] after it, and again after the last
//!   use of the tile.
//! * [`copy_async`](Shared::copy_async) issues such a copy, and [`Pending::wait`] completes it. A
//!   loop can load its next tile while it computes with the current one.
//! * `x.load::<4>(i)` and `x.store(i, values)` move up to 16 elements at once, in accesses of up to
//!   16 bytes, which must be aligned. `load_or` and `store_in` need no alignment and skip elements
//!   beyond the edge. Slices, views and shared arrays have these methods. An array within an
//!   element has `load` and `store`: `blocks[i].codes.load::<8>(k)`. [`int::word`] makes a `u32` of
//!   four bytes.
//! * `fetch_add`, `fetch_sub`, `fetch_min`, …, `exchange` and `compare_exchange` are atomic, on all
//!   memory that a kernel may write. Integers of 8 to 64 bits have all of them; `f32` and `f64`
//!   have `fetch_add`, `fetch_sub`, `fetch_min`, `fetch_max` and `exchange`.
//! * `load_relaxed`, `load_acquire`, `store_relaxed` and `store_release` are atomic loads and
//!   stores. `read_volatile` and `write_volatile` are other names of the relaxed ones.
//! * [`fence`] orders memory accesses between blocks of one launch. The end of a launch orders them
//!   for the next launch.
//! * [`unroll`] copies the loop's body for each iteration.
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
//! The operations of [`warp`] need all 32 lanes at the same call. The reductions therefore stay
//! outside the loops and outside every `if` that depends on the row: lanes whose row does not exist
//! take part with neutral values. The same rule applies to [`block::sync`] and the threads of the
//! block.
//!
//! A warp, a [group](warp::group) of 2 to 32 of its lanes, and the [block] have the same
//! operations. `sum`, `max` and `min` reduce numbers. `reduce` and `scan` take a closure or device
//! function, over numbers, `bool`, and tuples, arrays and options of these types. `broadcast`,
//! `any` and `all` complete the list. Lanes also have `shuffle`, `shuffle_xor`, `shuffle_up`,
//! `shuffle_down` and `ballot`.
//!
//! # Convergence
//!
//! [`block::sync`] and the other operations of [`block`] need all threads of the block at the same
//! call; operations of [`warp`] need all lanes of the warp. The compiler decides from the values
//! that control the path to the call.
//!
//! A value is *uniform* for a group of threads if all of them have the same value. A parameter is
//! uniform for the grid, a block index for the block, `warp::index()` and `grid::index() / 32` for
//! the warp; `thread::x()` differs between threads. A value computed from uniform values is
//! uniform. A variable is uniform if every value assigned to it is, and if control reaches each
//! assignment uniformly. The result of a reduction, a vote, or a shuffle from one lane is uniform
//! for the participants.
//!
//! An `if`, `while` or `for` on a value that is uniform for the warp keeps the warp converged; the
//! same holds for the block. If only some threads take a `return`, `break` or `continue`, the
//! others are diverged until the end of the kernel, the loop or the iteration.
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
//! error: `block::sum` must be reached by all threads of the block, but some may not reach it
//!        note: line 5, `return;`: some threads leave, and others continue
//!        note: line 4, `if i >= y.len() {`: threads diverge
//!        note: line 3, `let i = grid::index();`: differs between threads
//!        help: let all threads of the block continue, and put the work of some under an `if` without the `block::sum`
//! ```
//!
//! Threads beyond the end take part with a neutral value:
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
//! The compiler rejects a call whose path provably depends on the thread. If the path depends on
//! shared memory, on a written buffer, or on a division by a launch parameter, the kernel compiles.
//! The interpreter then checks every execution. [`compiler::analyses::uniformity`] documents the
//! rules for each value.
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
//! Kernels and other device functions call a `#[device]` function, from its own crate or another.
//! On the host it is an ordinary function. Calls are always inlined. A `&mut` parameter aliases the
//! caller's variable, so arrays passed this way stay in registers.
//!
//! Code can be a parameter too, of type `impl Fn(f32, usize) -> f32`: the caller passes a closure
//! or the path of another device function. A closure captures by reference, is inlined at each
//! call, and is bound by `let` or passed on. A closure cannot be stored or chosen by a run-time
//! condition.
//!
//! # Structs, traits, and kernels that are generic over types
//!
//! `#[device]` also applies to constants, structs, enums, type aliases, and modules. A device
//! module may hold traits and impls. An alias of a number type has the constants and functions of
//! the type: `Real::MAX`.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[device]
//! pub mod activation {
//!     use kernel_dsl::prelude::*;
//!
//!     /// A function of each element.
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
//! A kernel's generic parameters are constants, of any integer type or `bool`, and types. An
//! instance gives a value to each parameter: numbers, element types, device structs and enums, and
//! functions marked `#[device(value)]`, which implement [`DeviceFn`]. Bounds are device traits, or
//! [`Element`], [`Number`], [`Float`], [`Integer`] and [`DeviceFn`] of the prelude. An instance
//! with a type of another crate is compiled at its first launch:
//! `activate::<TheirActivation, f32>::launch(…)`. A generic constant that follows from the others
//! is declared by `derived(N = 16 / size_of::<T>())`.
//!
//! A struct that derives [`DeviceCopy`](trait@DeviceCopy) works in shuffles, reductions and shared
//! memory. A struct that is also `repr(C)` or `repr(C, align(16))`, made of numbers and without
//! padding, can be an element of a buffer. A struct passed to a kernel becomes one parameter of the
//! entry for each number in it. Methods, associated constants, associated types and provided
//! methods work as in Rust. Every call is resolved when the instance is compiled.
//!
//! The variants of an enum may hold data, also of a generic type. `match`, `if let` and
//! `let … else` take it apart. A value is in registers: its discriminant, and the fields of all
//! variants. The compiler removes fields that nothing reads. An enum with data can be passed
//! between device functions, and between lanes if it derives [`DeviceCopy`](trait@DeviceCopy).
//! Buffers and shared memory cannot hold such an enum, and a launch cannot pass one.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[device]
//! #[derive(Clone, Copy)]
//! pub enum Step {
//!     Stay,
//!     Move(f32),
//!     Turn { by: f32, sign: f32 },
//! }
//!
//! #[device]
//! pub fn next(x: f32) -> Step {
//!     if x < 0.0 {
//!         Step::Turn { by: 0.5, sign: -1.0 }
//!     } else if x < 1.0 {
//!         Step::Move(0.25)
//!     } else {
//!         Step::Stay
//!     }
//! }
//!
//! #[kernel(block = 256, grid = x.len().div_ceil(256))]
//! pub fn steps(x: &mut [f32]) {
//!     let i = grid::index();
//!     if i < x.len() {
//!         x[i] = match next(x[i]) {
//!             Step::Stay => x[i],
//!             Step::Move(far) => x[i] + far,
//!             Step::Turn { by, sign } => sign * x[i] * by,
//!         };
//!     }
//! }
//! # fn main() { assert!(steps::PTX.contains(".entry steps(")); }
//! ```
//!
//! A device module may implement the operators of [`std::ops`] for its types: arithmetic, bitwise
//! and shift operators, their assigning forms, `-x` and `!x`. An operator is a call of the function
//! of the impl, so it costs what the body costs. The operands may have different types. `Index` and
//! `IndexMut` give `v[i]` a meaning; their functions return a reference to a place, such as
//! `&self.parts[i]`.
//!
//! `==`, `!=`, `<`, `<=`, `>` and `>=` compare tuples, arrays, options, and structs and enums that
//! derive `PartialEq` or `PartialOrd`, above or below `#[device]`. As in Rust, the first parts that
//! differ decide an order, and a NaN makes a comparison false. The machine code compares all parts,
//! without branches. A device module may instead implement `PartialEq` by a function `eq`. A
//! comparison of a type that holds such a value calls this `eq` where rustc does: where both values
//! exist and the parts before are equal.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[device]
//! pub mod complex {
//!     use kernel_dsl::prelude::*;
//!     use std::ops::{Add, Mul};
//!
//!     #[derive(Clone, Copy, DeviceCopy)]
//!     #[repr(C)]
//!     pub struct Complex {
//!         pub re: f32,
//!         pub im: f32,
//!     }
//!
//!     impl Add for Complex {
//!         type Output = Complex;
//!         fn add(self, b: Complex) -> Complex {
//!             Complex { re: self.re + b.re, im: self.im + b.im }
//!         }
//!     }
//!
//!     impl Mul for Complex {
//!         type Output = Complex;
//!         fn mul(self, b: Complex) -> Complex {
//!             Complex { re: self.re * b.re - self.im * b.im, im: self.re * b.im + self.im * b.re }
//!         }
//!     }
//! }
//! use complex::Complex;
//!
//! /// One step of z ← z² + c
//! #[kernel(block = 256, grid = z.len().div_ceil(256))]
//! #[requires(z.len() == c.len())]
//! pub fn step(z: &mut [Complex], c: &[Complex]) {
//!     let i = grid::index();
//!     if i < z.len() {
//!         z[i] = z[i] * z[i] + c[i];
//!     }
//! }
//! # fn main() { assert!(step::PTX.contains(".entry step(")); }
//! ```
//!
//! # Tables
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// The values of the codes of four bits.
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
//! A constant array may be indexed by a run-time value. Such an array may be declared in a module,
//! a body, a trait or an impl, or be part of a constant struct. The array becomes data of the PTX
//! module, once for all its uses; an element at a constant index becomes an immediate. The array
//! may be computed: for `const TABLE: [u32; 256] = table();` the compiler runs the
//! `#[device] const fn`, as rustc does for the host. Indices are checked like those of a buffer.
//!
//! The compiler chooses the memory from the accesses. Constant memory delivers one element at a
//! time to a warp, as fast as a register. Global memory, through the read-only path, serves lanes
//! that access different elements. A table is placed in constant memory if each access provably
//! reads one element a warp ([`uniformity`](compiler::analyses::uniformity)), up to 64 KB in total.
//! `#[device(constant)]` and `#[device(global)]` on a constant override the choice. A table forced
//! into constant memory that does not fit is a compile error, and `kernels report` shows where its
//! accesses serialize.
//!
//! # Arrays in local memory
//!
//! An array of a thread is in registers, which have no addresses. So each index must be a constant
//! after unrolling. [`thread::local`] makes an array of each thread in local memory, whose indices
//! may be computed: a stack, or a list of candidates. Each access is a load or store of the
//! device's memory through its caches. The interpreter reports indices out of bounds, and elements
//! that are read and were never written.
//!
//! # Targets
//!
//! The compiler emits PTX for sm_61, which runs on every later card. An instruction that sm_61
//! lacks is a compile error that names the first target with the instruction. A kernel that needs
//! one declares `#[kernel(target = sm_80, …)]`; code that differs between targets branches on
//! [`target::SM`].
//!
//! # Inline PTX
//!
//! [`ptx!`] writes PTX instructions directly, with typed operands:
//! `ptx!("prmt.b32 {d}, {a}, 0, 0x0123;", a = in(u32) x, d = out(u32))`. Module [`inline`]
//! documents the accepted forms. The interpreter runs inline PTX too.
//!
//! # Block sizes chosen by the launch
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
//! `largest::launch(&device, 256, &x, &mut out)` runs the kernel in blocks of 256 threads. One PTX
//! text serves all sizes and reads the block's size from a special register. A launch with a size
//! outside the range is rejected. A range whose ends are both multiples of 32 admits only multiples
//! of 32; `.step_by(n)` sets another step.
//!
//! The size can also be an expression over the parameters,
//! `block = x.cols().next_multiple_of(32).min(1024)`; the launch then passes nothing. The compiler
//! must be able to derive the maximum number of threads from `min`, `clamp` or `%`. In a block of
//! two or three axes only the last axis may be left open. `grid` and `requires` may use
//! `block::threads()`.
//!
//! Operations of whole warps need a thread count that is a multiple of 32 at every launch. The
//! range, the expression, or `#[requires(block::threads() % 32 == 0)]` must guarantee this. The
//! shared memory of the block's operations, registers and occupancy are computed for the largest
//! block. Reductions use the same order as a kernel with a fixed block of that size.
//!
//! # Cooperative kernels
//!
//! Blocks of a launch run in any order, and a block may begin after another has ended. With the
//! clause `cooperative`, all blocks of a launch are resident at once, so that they may wait for
//! each other. [`grid::sync`] waits for all of them and orders memory, so that an algorithm of
//! several phases is one launch:
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! /// Divides x by its largest element.
//! #[kernel(cooperative, block = 256, grid = device::multiprocessors())]
//! #[requires(largest.len() == 1)]
//! pub fn normalized(x: &mut [f32], largest: &mut [f32]) {
//!     let mut own = 0.0f32;
//!     for i in grid::stride(x.len()) {
//!         own = own.max(x[i]);
//!     }
//!     let own = block::max(own);
//!     if thread::index() == 0 {
//!         largest.fetch_max(0, own);
//!     }
//!     grid::sync();                                                   // all maxima before any quotient
//!     let all = largest[0];
//!     for i in grid::stride(x.len()) {
//!         x[i] = x[i] / all;
//!     }
//! }
//! # fn main() { assert!(normalized::PTX.contains("%envreg1")); }
//! ```
//!
//! A launch of more blocks than the device holds is refused: the error has both numbers. The limit
//! on a GPU is the number of multiprocessors times the blocks that one holds, which the clause
//! `min_blocks` can raise; the CPU device holds 1024 blocks. Streams accept cooperative launches;
//! graphs reject them. The interpreter keeps all blocks resident, and reports those that wait at
//! different barriers or end while others wait, and accesses that no barrier orders.
//!
//! Without the clause, blocks may wait for earlier blocks. A wait for a later block ends only if
//! the GPU holds all blocks of the launch at once. Nothing checks that on a GPU. The interpreter
//! accepts such waits in launches of up to 16 blocks, or fewer large ones. In other launches, the
//! interpreter reports a `livelock`.
//!
//! # Assertions
//!
//! `assert!`, `assert_eq!`, `assert_ne!`, `debug_assert!` and its variants, `panic!`,
//! `unreachable!`, `todo!` and `unimplemented!` work as in Rust. A thread that fails ends, and the
//! others continue as after a `return`; a barrier does not wait for a thread that failed. The
//! message shows numbers and `bool` by `{}`, `{:?}`, `{:x}` or `{:#x}`, and both sides of a
//! comparison.
//!
//! ```
//! # use kernel_dsl::prelude::*;
//! #[kernel(block = 32, grid = lengths.len().div_ceil(32))]
//! #[requires(offsets.len() == lengths.len() + 1)]
//! pub fn row_lengths(offsets: &[u32], lengths: &mut [u32]) {
//!     let i = grid::index();
//!     if i < lengths.len() {
//!         assert!(offsets[i] <= offsets[i + 1], "row {i} ends before it starts");
//!         lengths[i] = offsets[i + 1] - offsets[i];
//!     }
//! }
//! # fn main() { assert!(!row_lengths::PTX.contains("trap")); }
//! ```
//!
//! ```text
//! error[assertion]: `offsets[i] <= offsets[i + 1]` does not hold: row 1 ends before it starts (left: 3, right: 2)
//! ```
//!
//! The interpreter and `launch` on a GPU report the first thread that fails. The PTX of
//! `launch_unchecked` has no trace of an `assert!`: its condition is not computed, and the thread
//! continues. A `panic!` ends the thread there. With the clause `assertions` of the attribute,
//! `assert!` and `panic!` end the launch with an error of the driver instead; `debug_assert!` does
//! not.
//!
//! # Logs
//!
//! [`log!`] prints a line with values, after the block and the thread: `log!("x[{i}] = {}", x[i])`.
//! All executors print the same lines. On a GPU the driver prints them, without an order between
//! threads. `kernels check` shows the lines of a case.
//!
//! # Optional values
//!
//! `Option<T>` is a `bool` and the parts of `T`, in registers. `v.get((row, col))` of a view is
//! `Some(element)` inside the extents; `x.get(i).copied()` is the form for slices. Either is one
//! predicated load, skipped by threads outside. `if let`, `while let`, `let … else` and `match`
//! destructure an option. The [methods](methods#options) of Rust's `Option` that cannot panic are
//! available.
//!
//! `Result<T, E>` is a number, and the parts of `T` and `E`, in registers. In device functions and
//! closures, `?` returns `None` or the error. The [methods](methods#results) of Rust's `Result` are
//! those that cannot panic.
//!
//! # The language
//!
//! A kernel is Rust and means what a Rust reader expects. rustc checks the kernel against the items
//! of [`prelude`], so names, types and borrows follow Rust's rules. [`mod@reference`] lists every
//! construct with its PTX and its cost. [`subset`] lists the parts of Rust that are in the
//! language, and the reason for each part that is not.
//!
//! * **Types**: `bool`, integers of 8 to 64 bits, `u128`, `usize`, `f32` and `f64`, and the 16-bit
//!   floats [`f16`](half::f16) and [`bf16`](half::bf16), with the methods that [`half`] lists. A
//!   `u128` is two words of 64 bits ([`methods`](mod@methods) states the cost). Tuples and
//!   arrays of these types live in registers, and arrays of [`thread::local`] in local memory.
//!   Further types are `Option`, `Result`, `#[device]` structs and enums, and slices, views and
//!   handles as above. Elements of buffers are the numbers except `usize`, arrays of numbers, and
//!   `repr(C)` structs. Shared memory also holds `bool`, `usize`, tuples and other structs. A part
//!   of an element is a place: `w[(row, b)].qs[j]` loads one number.
//! * **Statements**: `let` with tuple and array patterns; plain, destructuring and compound
//!   assignment; `if` and `while` with conditions and `let`s joined by `&&`; `match` with numbers,
//!   ranges, tuples, arrays, `|`, bindings and guards, also of a value behind a reference; `loop`;
//!   labels on loops and blocks; `break`, `continue`, `return`; and `const { assert!(…) }`.
//! * **Iterators** of a `for`: `a..b` and `a..=b` with `.step_by(n)` and `.rev()`;
//!   [`block::share`], [`block::stride`] and [`grid::stride`]; register arrays, and references to
//!   their elements by `&array`, `&mut array`, `.iter()` and `.iter_mut()`. All accept
//!   `.enumerate()`, and [`unroll`], [`unroll_by`] or [`rolled`] around them.
//! * **Arrays**: `[x; N]`, `[a, b]`, `std::array::from_fn(|i| …)`, `.map(|x| …)`, `.len()`;
//!   `size_of::<T>()`.
//! * **Items**: `#[device]` functions, constants, structs, enums, type aliases, and modules of them
//!   with traits and impls, also of operators; `const` in a body.
//! * **Generics**: constants of integer types and `bool`, and types, on functions, structs,
//!   enums and impls. A constant of type `u128` has at most 127 bits.
//! * **Methods of numbers**: [`methods`] lists them with their PTX and edge cases. [`int`] and
//!   [`dot`] add machine instructions, [`math`] functions with the same bits on every device, and
//!   [`fast`] the hardware's approximations.
//!
//! Not in the language: trait objects, traits with generic parameters, other iterators, strings,
//! allocation, recursion. Each is a compile error at its token.
//!
//! # Differences from Rust on the host
//!
//! * `usize` has 32 bits. Overflow of `usize` is an error of the kernel, like an access out of
//!   bounds: the interpreter reports it, and compiled code may assume that it does not happen.
//!   `wrapping_*` wraps. Fixed-width integers wrap; the interpreter reports their overflow as
//!   Rust's debug builds do.
//! * The interpreter reports a division by zero. On a GPU the result is unspecified.
//! * `max` and `min` of floats return the number if one operand is NaN, and order −0 below +0.
//! * a · b + c is rounded once only where the kernel writes `mul_add`, or where its attribute has
//!   `contract`. `contract` fuses each sum or difference with a product written in it. The clause
//!   applies to the kernel's own body, not to device functions, and not under [`host::run`].
//!   Nothing else is contracted or reordered.
//! * Threads run concurrently. Two accesses of different threads to one element, at least one of
//!   them a write, are a race unless a sync separates them.
//!
//! # How a kernel is verified
//!
//! The interpreter of crate `runtime` runs the compiler's intermediate representation, one warp at
//! a time, and checks every access, barrier and exchange. `kernels check` compares its results,
//! before and after optimization, with plain Rust and with the GPU where there is one. The
//! comparison is bit for bit, or within the kernel's tolerance where [`fast`] is used.
//! [`host::run`] runs the kernel as rustc compiled it, with a host thread for each device thread.
//! The result tests that our compiler gives Rust the meaning that rustc gives it.
//!
//! # Modules
//!
//! [`prelude`] lists the items that kernels use. [`artifact`] is the content of an expansion, and
//! [`launcher`] the interface between a typed `launch` and a device. [`compiler`] is the compiler
//! itself.

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
mod log;
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
pub use kernel_macros::{__link, __step};
pub use kernel_macros::{DeviceCopy, device, kernel};
pub use launcher::{Argument, Call, LaunchForm, Launcher};
pub use layout::Position;
pub use pending::Pending;
pub use shared::Shared;
pub use slice::SliceExt;
pub use view::{CopySource, Strided, StridedMut, View, ViewMut};
