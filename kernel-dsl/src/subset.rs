//! What of Rust a kernel may say, and what not.
//!
//! A kernel is Rust, and rustc checks it like any other function. What a GPU cannot do, or what would hide what it costs, is left out, and
//! refused at its token with a sentence that says what to write instead.
//!
//! # In
//!
//! Each row is shown by the constructs that it names, which [`reference`](crate::reference) lists with their PTX, and the tests
//! run.
//!
//! | Rust | in a kernel | shown by |
//! |---|---|---|
//! | integers of 8 to 64 bits, `usize`, `bool`, `f32`, `f64` | `usize` has 32 bits | `u64`, `i64`, `usize`, `f64` |
//! | `f16`, `bf16` | of crate `half`; arithmetic is that of `f32`, rounded | `f16`, `bf16` |
//! | tuples, arrays | in registers | `(A, B)`, `[[T; N]; M]` |
//! | `Option` | with the methods that cannot panic | `Some(x)`, `None`, `o.map_or(x, \|x\| …)` |
//! | slices | as parameters of kernels, in global memory | `x[i]`, `x.get(i).copied()` |
//! | references | to variables and places, as parameters; a `&mut` is the caller's variable itself | `&mut x`, `&mut` parameters |
//! | operators, and those that assign | integers wrap, which the oracle reports | `a + b`, `a += b`, and each operator that assigns |
//! | `as` | as in Rust, of NaNs too | `f32 as i32`, `u32 as u64` |
//! | methods of numbers | those of `methods` | `a.rotate_left(b)`, `a.mul_add(b, c)` |
//! | `let`, shadowing, destructuring, `let … else` | as in Rust | shadowing, `(x, y) = (y, x)`, `let … else` |
//! | blocks, `if`, `match` as values | as in Rust | `{ … }`, a block as a value, `match`, of numbers |
//! | patterns | of numbers, ranges, tuples, arrays, structs, options; `\|`, `@`, guards | `1..=4`, `5..`, `x @ 1..=4`, `x if …`, `[p, .., q]` |
//! | `if let`, `while let`, chains of them by `&&` | as in Rust | `if let … && …`, `while let` |
//! | `loop`, `while`, `for`, labels, `break` with a value | a `for` runs over ranges, arrays and the language's own | `loop`, `break` with a value, `for x in array`, `(a..b).rev()` |
//! | functions | `#[device]`, of any module and crate; always inlined | a call of a `#[device] fn`, `return` |
//! | closures, `impl Fn` | names for code that is inlined | `\|x\| …`, `impl Fn(A) -> B` |
//! | `const`, in bodies and modules | as in Rust | `const NAME: T = …;`, `#[device] const` |
//! | structs | generic too; in buffers `repr(C)` | `#[device] struct`, generic, `#[repr(C)]` elements of buffers |
//! | enums | without data | `#[device] enum` |
//! | methods, associated functions, constants and types | in a `#[device] mod` | a method with `&mut self`, an associated type |
//! | traits, impls over generic types, provided methods | all is known when an instance is compiled | `trait`, `impl Trait for`, an `impl` over generic types, a provided method |
//! | generic parameters | `usize` and `bool` constants, and types | generic over a constant, `T: Float` of a kernel |
//! | `size_of`, `std::array::from_fn`, `matches!` | as in Rust | `size_of::<T>()`, `matches!(x, …)` |
//! | `const { assert!(…) }` | for each instance | `const { assert!(…) }` |
//!
//! # Out
//!
//! What is refused where it is read.
//!
//! | Rust | what the compiler says |
//! |---|---|
//! | Text | a kernel has no text: its literals are numbers, `true` and `false` |
//! | `char` | a kernel has no text: its literals are numbers, `true` and `false` |
//! | Byte strings | a kernel has no text: its literals are numbers, `true` and `false` |
//! | `u128`, `i128` | there are no 128-bit integers, `isize`, or half-precision literals on the device |
//! | `isize` | there are no 128-bit integers, `isize`, or half-precision literals on the device |
//! | `a..=b` as an iterator | write the range as `start..end`, whose end is not reached |
//! | `a..` as an iterator | a range in a kernel has both ends: `start..end` |
//! | `move` closures | a closure in a kernel is a name for code that is inlined where it is called, and captures by reference: leave out `move` |
//! | A closure that is called where it stands | a function is called by its path, a closure by its name: bind it with `let` first |
//! | `println!` | a kernel cannot call the macro `println!`: a kernel cannot print; write to a buffer, or look at it under the interpreter |
//! | `vec!` | a kernel cannot call the macro `vec!`: a kernel has no heap; an array in registers is `[0.0; 4]`, one in shared memory `Shared::new([…])` |
//! | `assert!` of what a launch decides | a kernel cannot call the macro `assert!`: for a condition on constants write `const { assert!(…) }`, for one on arguments `#[requires(…)]` |
//! | `panic!`, `unreachable!`, `todo!` | a kernel cannot call the macro `unreachable!`: a kernel cannot panic; leave by `return`, and write to a buffer what the host has to know |
//! | `unsafe` | `unsafe` has no use in a kernel: the oracle checks its accesses |
//! | `?` | `?` is not in the language: take the value by `match`, `if let`, `let … else` or `unwrap_or`, and `return None` in words |
//! | `async` blocks | a kernel cannot be `async` |
//! | `const { … }` as a value | a `const` block in a kernel is a statement that holds `assert!(…)` |
//! | A function in a body | an item inside a kernel: move it out of the body and mark it `#[device]` |
//! | A struct in a body | an item inside a kernel: move it out of the body and mark it `#[device]` |
//! | `use` in a body | an item inside a kernel: move it out of the body and mark it `#[device]` |
//! | `static` | an item inside a kernel: move it out of the body and mark it `#[device]` |
//! | `ref` in a pattern | a pattern in a kernel is a name, `_`, a number, a range, a tuple, array or struct of patterns, `Some(…)`, `None`, `&…`, or several with `\|` |
//! | A constant as a pattern | `LIMIT` would be a constant of the host: write the number, or bind a name and compare in a guard, `n if n == …` |
//! | Raw pointers | this type does not exist on the device; a kernel has numbers, bool, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | Function pointers | this type does not exist on the device; a kernel has numbers, bool, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | Trait objects | this type does not exist on the device; a kernel has numbers, bool, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | `impl Trait` but of closures | an `impl` type on the device is a parameter's that a closure is passed for, `impl Fn(f32, usize) -> f32`: otherwise name the type, or a generic parameter `T: Trait` |
//! | `impl Trait` as a result | an `impl` type on the device is a parameter's that a closure is passed for, `impl Fn(f32, usize) -> f32`: otherwise name the type, or a generic parameter `T: Trait` |
//! | A pattern as a parameter | a parameter is a plain name: take it apart with `let` in the body |
//! | `async fn` | a function that runs on the device cannot be `async` |
//! | `unsafe fn` | a function that runs on the device is not `unsafe`: the oracle checks its accesses |
//! | `extern "C" fn` | a function that runs on the device has no ABI of its own |
//! | Names of lifetimes | lifetimes need no names on the device: write `&[T]`, and views without one |
//! | `const N: u32`, but `usize` and `bool` | a generic constant is a `usize` or a `bool` |
//! | Arithmetic in a type: `[T; N + 1]` | a size is a number or the name of a generic constant |
//! | A kernel without a shape | the kernel does not say its block: write `#[kernel(block = …, grid = …)]` |
//! | A clause that there is not | `cluster` is not a clause of `#[kernel]`; there are block, grid, instances, derived, min_blocks, max_registers, contract, tolerance, writes, target and crate |
//! | An enum that holds data | a variant on the device holds no data (`Option` is the one enum that does): use a struct, or an enum beside the data |
//! | A trait with generic parameters | a trait on the device has no generic parameters: make them associated types or constants |
//! | `union` | `#[device]` goes on a function, constant, struct or enum, or on a `mod` for traits and impls |
//! | `static` items | `#[device]` goes on a function, constant, struct or enum, or on a `mod` for traits and impls |
//! | `type` items | a device module holds functions, constants, structs, enums, traits and impls |
//! | A struct with a lifetime | lifetimes need no names on the device: write `&[T]`, and views without one |
//! | A macro among a module's items | a device module holds functions, constants, structs, enums, traits and impls |
//! | `std::mem::swap`, and other functions of the host | a kernel cannot call `std::mem::swap`: of the standard library it has methods of numbers, arrays and options, `std::array::from_fn` and `size_of` |
//! | `Vec`, `Box`: the heap | a kernel cannot call functions of the type `Box`: a kernel has no heap; an array in registers is `[0.0; 4]`, one in shared memory `Shared::new([…])` |
//! | `String` | a kernel cannot call functions of the type `String`: a kernel has no heap; an array in registers is `[0.0; 4]`, one in shared memory `Shared::new([…])` |
//! | A closure that a condition chooses | this type does not exist on the device; a kernel has numbers, bool, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | A function that calls itself | `factorial` calls itself; on the device every call is inlined, so write a loop |
//!
//! What the checker refuses, where rustc has nothing against it.
//!
//! | Rust | what the compiler says |
//! |---|---|
//! | `%` of floats | `%` of floats is not in the language: `a - b * (a / b).trunc()` comes close where a / b is small |
//! | `usize::MAX` | `usize::MAX` differs between host and device, where `usize` has 32 bits: write `u32::MAX` |
//! | `usize::BITS` | `usize::BITS` differs between host and device, where `usize` has 32 bits: write `u32::BITS` |
//! | A `usize` beyond 32 bits | `4294967296` does not fit `usize`, which has 32 bits on the device |
//! | `u64 as usize` of any value | `usize` has 32 bits on the device: say which bits are meant, as in `(x & 0xffff_ffff) as usize` |
//! | `option.unwrap()` | a kernel cannot panic, so `Option` has no `unwrap` in it: write `unwrap_or(…)` or `if let Some(x) = …` |
//! | `option.unwrap_or_default()` | `Option` has no method `unwrap_or_default` in a kernel: there are is_some, is_none, is_some_and, unwrap_or, map, map_or, and_then, copied |
//! | `option.filter(\|x\| …)`, and other methods of options | `Option` has no method `filter` in a kernel: there are is_some, is_none, is_some_and, unwrap_or, map, map_or, and_then, copied |
//! | `x.sin()`, `x.exp()`: the host's mathematics | `sin` gives other bits from one host to another, and is no method in a kernel: write `math::sin(…)`, whose bits are the same everywhere, or `fast::sin(…)`, the hardware's approximation |
//! | `x.powi(n)`, `x.powf(y)` | `powi` gives other bits from one host to another, and is no method in a kernel: write `math::pow(…)`, whose bits are the same everywhere |
//! | `x.rem_euclid(y)` of floats | `f32` has no method `rem_euclid` in a kernel: those there are stand in `kernel_dsl::methods` |
//! | `a.checked_pow(b)` | `u32` has no method `checked_pow` in a kernel: compare before, or take the method that is called `wrapping_…` |
//! | `a.overflowing_neg()` | `u32` has no method `overflowing_neg` in a kernel: compare before, or take the method that is called `wrapping_…` |
//! | `a.isqrt()`, and other methods of integers | `u32` has no method `isqrt` in a kernel: those there are stand in `kernel_dsl::methods` |
//! | `slice.iter()` | `&[f32]` has no method `iter` in a kernel: write `for i in 0..x.len()`, and index it |
//! | `for x in slice` | a `for` in a kernel runs over a range, an array, `block::share(shape)`, `grid::stride(n)` or `block::stride(n)`: with `.step_by(n)` and `.rev()` on a range, `.enumerate()` behind, and `unroll(…)`, `unroll_by::<F>(…)` or `rolled(…)` around it all, if need be |
//! | `iterator.map(…)`, `sum()`: chains of iterators | a range stands in a `for`, and nowhere else in a kernel |
//! | `iterator.zip(…)` | a range stands in a `for`, and nowhere else in a kernel |
//! | `slice.first()`, and other methods of slices | `&[f32]` has no method `first` in a kernel: its elements are read and written by index |
//! | `slice.swap(a, b)` | `&mut [f32]` has no method `swap` in a kernel: its elements are read and written by index |
//! | `array.iter()` | `[{float}; 2]` has no method `iter` in a kernel: there are len, map |
//! | `bool` in a buffer | a buffer cannot hold `bool`, since not every byte is one: use `u8` |
//! | `usize` in a buffer | `usize` is 32 bits on the device and 64 on the host: a buffer holds `u32` or `u64` |
//! | A tuple in a buffer | a tuple has no layout that a host could fill: use a `#[device] #[repr(C)] struct` |
//! | A struct without `repr(C)` in a buffer | `Unordered` has no layout that a host could fill: give the struct `#[repr(C)]` |
//! | Parts of slices: `&y[1..3]` | a range stands in a `for`, and nowhere else in a kernel |
//! | A kernel that returns something | a kernel returns nothing: it writes its results to buffers |
//!
//! What is Rust and cannot be on the device, or on the target: refused for an instance.
//!
//! | Rust | what the compiler says |
//! |---|---|
//! | A register array at an index that the launch decides | registers cannot be indexed by `n`: unroll the loop over `n` |
//! | A register array at the index of a loop that is not unrolled | registers cannot be indexed by `i`: unroll the loop over `i` |
//! | A constant index beyond an array | index 4 is beyond `v`, which has 3 elements |
//! | An array of more numbers than a thread has room for | `v` would have 100000 elements in the registers of each thread |
//! | `unroll` of a range that the launch decides | the end of this range is not a constant: the loop cannot be unrolled |
//! | `unroll` of too many copies | unrolled, the kernel has more than 262144 instructions |
//! | A constant assertion that does not hold | the condition does not hold for this instance |
//! | More than 1024 threads in a block | block: expected 1 to 1024 threads, at most 1024 × 1024 × 64, given 2048 × 1 × 1 |
//! | More than 48 KB of shared memory | `s` needs 80000 bytes of shared memory, and a block has 49152 |
//! | Shared memory whose shape is no constant | the shape of a shared array must be constant for the instance |
//! | A pitch below the row's length | a pitch of 6 is shorter than a row of 8 elements |
//! | An array over a smaller one | `p` needs 64 bytes, and `s` has 32 there |
//! | A barrier that some threads do not reach | `block::sync` needs all threads of the block, and which of them come here depends on the thread |
//! | A barrier behind a `return` of some | `block::sync` needs all threads of the block, and which of them come here depends on the thread |
//! | A shuffle that some lanes do not reach | `warp::sum` needs all lanes of the warp, and which of them come here depends on the thread |
//! | A reduction in a loop that lanes leave one by one | `warp::max` needs all lanes of the warp, and which of them come here depends on the thread |
//! | Warps that are not whole | a warp has 32 lanes, and a block of 48 threads does not divide into warps |
//! | A group of lanes that is no power of two | there is no group of 5 lanes |
//! | A group of more lanes than a warp | there is no group of 64 lanes |
//! | What the target lacks | `warp::match_any` needs sm_70, and this is compiled for sm_61 |
//! | A target that there is not | `sm_62` is not a target; there are sm_61, sm_70, sm_75, sm_80, sm_86, sm_89, sm_90 |
//! | Atomic operations on small integers | a GPU of sm_61 has no atomic operations on `u8` |
//! | Atomic minima of floats | a GPU of sm_61 has no such atomic operation on `f32` |
//! | A copy ahead to an array of dynamic size | an array of dynamic size cannot be copied to ahead: how many registers that takes is not known |
//! | A copy ahead of more than registers hold | each thread would have 313 values on their way in registers, of which a thread has at most 255 |
//! | A token that is given what it holds and more | `coming` is given what it holds and one copy more, so that how many it holds is not known |
//! | `load` of more than 16 elements | an access takes 1, 2, 4, 8 or 16 elements at once, not 32 |
//! | `pow` with an exponent that is no constant | the exponent of `pow` is a constant of the kernel, 65535 at most |
//! | A step that is a constant 0 | a loop cannot step by 0 |
