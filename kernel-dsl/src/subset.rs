//! The subset of Rust that kernels can use.
//!
//! A kernel is Rust, and rustc checks it like any other function. Constructs that a GPU cannot
//! execute, or that would hide their cost, are not in the subset. The compiler rejects them at
//! their tokens, with a message that says what to write instead.
//!
//! # Supported
//!
//! The last column of each row names constructs that show it. [`reference`](crate::reference) lists
//! them with their PTX, and the tests run them.
//!
//! | Rust | in a kernel | shown by |
//! |---|---|---|
//! | integers of 8 to 64 bits, `usize`, `bool`, `f32`, `f64` | `usize` has 32 bits | `u64`, `i64`, `usize`, `f64` |
//! | `u128` | two words of 64 bits, with the operators and methods of integers; no atomic operations | `u128` |
//! | `f16`, `bf16` | from the crate `half`; arithmetic is in `f32`, with rounded results | `f16`, `bf16` |
//! | `b'A'`, `b"ACGT"`, `'A' as u32` | bytes and arrays of bytes; `char` is no type | `u8`, `i8` |
//! | tuples, arrays | in registers | `(A, B)`, `[[T; N]; M]` |
//! | `Option` | with the methods that cannot panic | `Some(x)`, `None`, `o.map_or(x, \|x\| …)` |
//! | `Result` | with the methods that cannot panic | `Ok(x)`, `Err(e)`, `r.map_err(\|e\| …)` |
//! | `?` | of options and results, in device functions and closures; converts no errors | `o?`, `r?` |
//! | slices | as parameters of kernels, in global memory | `x[i]`, `x.get(i).copied()` |
//! | references | to variables and elements, as parameters; a `&mut` refers to the caller's variable | `&mut x`, `&mut` parameters |
//! | operators, and assignment operators | integers wrap, which the oracle reports | `a + b`, `a += b`, and each operator that assigns |
//! | `as`, `from`, `into` | as in Rust, including NaNs; `from` and `into` of numbers | `f32 as i32`, `u32 as u64` |
//! | methods of numbers | those of `methods` | `a.rotate_left(b)`, `a.mul_add(b, c)` |
//! | `let`, shadowing, destructuring, `let … else` | as in Rust | shadowing, `(x, y) = (y, x)`, `let … else` |
//! | blocks, `if`, `match` as values | as in Rust | `{ … }`, a block as a value, `match`, of numbers |
//! | patterns | of numbers, constants, ranges, tuples, arrays, structs, enums; `\|`, `@`, guards; also as parameters of device functions | `1..=4`, `5..`, `x @ 1..=4`, `x if …`, `[p, .., q]`, `Some(x) \| Other(x)`, alternatives that bind, a pattern as a parameter |
//! | `if let`, `while let`, chains of these with `&&` | as in Rust | `if let … && …`, `while let` |
//! | `loop`, `while`, `for`, labels, `break` with a value | a `for` iterates over ranges, arrays and the language's own iterators | `loop`, `break` with a value, `for x in array`, `for x in &array`, `array.iter()`, `(a..b).rev()`, `for i in a..=b` |
//! | functions | `#[device]`, from any module or crate; always inlined; with named lifetimes | a call of a `#[device] fn`, `return` |
//! | closures, `impl Fn`, `F: Fn` | names for code that is inlined | `\|x\| …`, `impl Fn(A) -> B` |
//! | `const`, in bodies and modules | as in Rust | `const NAME: T = …;`, `#[device] const` |
//! | structs | also generic; in buffers with `repr(C)` | `#[device] struct`, generic, `#[repr(C)]` elements of buffers |
//! | enums | also generic; variants may hold data | `#[device] enum` |
//! | `type` aliases | also generic; in a `#[device] mod` or alone | `#[device] type` |
//! | `impl Add`, `impl Index`, and the other arithmetic, bitwise and assignment operators | for structs and enums of a `#[device] mod` | `impl Add for`, and other operators |
//! | methods, associated functions, constants and types | in a `#[device] mod` | a method with `&mut self`, an associated type |
//! | traits, impls over generic types, provided methods | resolved when an instance is compiled | `trait`, `impl Trait for`, an `impl` over generic types, a provided method |
//! | generic parameters | constants of integer types and `bool`, and types; `impl Trait` as a parameter of a device function | generic over a constant, `T: Float` of a kernel |
//! | `size_of`, `std::array::from_fn`, `std::mem::swap`, `matches!` | `swap` takes variables, fields and elements | `size_of::<T>()`, `std::mem::swap(&mut a, &mut b)`, `matches!(x, …)` |
//! | `assert!`, `assert_eq!`, `assert_ne!`, `debug_assert!`, `panic!` | a finding with line and values; the thread ends | `assert!(…)`, `panic!(…)` |
//! | `const { assert!(…) }` | checked for each instance | `const { assert!(…) }` |
//!
//! # Unsupported
//!
//! Rejected by the parser:
//!
//! | Rust | message of the compiler |
//! |---|---|
//! | `"text"` | text is not supported in kernels: `b"text"` is an array of bytes, and `log!` prints text |
//! | `char` | a kernel has no type `char`: write `b'y'`, a `u8` |
//! | `i128` | literals of `i128`, `isize` and half-precision floats are not supported in kernels: write a `u128`, an `i64` or `f16::from_f32(1.0)` |
//! | `isize` | literals of `i128`, `isize` and half-precision floats are not supported in kernels: write a `u128`, an `i64` or `f16::from_f32(1.0)` |
//! | `i128` and `isize` as types | `i128` is not supported in kernels: use `u128`, whose `wrapping_add`, `wrapping_sub` and `wrapping_mul` give the same bits |
//! | `a..` as an iterator | a range in a kernel needs both bounds: `start..end` |
//! | `move` closures | `move` is not supported: a closure in a kernel is inlined at each call and captures by reference. Remove `move` |
//! | A closure that is called immediately | cannot call the value of an expression: bind the closure to a name with `let`, then call that name |
//! | `println!` | the macro `println!` is not supported in kernels: use `log!`, which prints a line with the block and thread |
//! | `vec!` | the macro `vec!` is not supported in kernels: kernels have no heap; use an array in registers, `[0.0; 4]`, or in shared memory, `Shared::new([…])` |
//! | `log!("{x:8}")`, with a width | a message of a kernel shows values by `{}`, `{:?}`, `{:x}` and `{:#x}`: remove width, precision and other formats |
//! | A NUL in the text of `log!` | the text of `log!` contains a NUL, which would end it on a GPU: remove `\0` |
//! | `log!` of more than 26 values | `log!` prints at most 26 values, and this one has 27: write two `log!` |
//! | A width or precision in the message of an assertion | a message of a kernel shows values by `{}`, `{:?}`, `{:x}` and `{:#x}`: remove width, precision and other formats |
//! | `dbg!` | the macro `dbg!` is not supported in kernels: use `log!`, which prints a line with the block and thread |
//! | `unsafe` | `unsafe` is not supported in kernels: remove it; the oracle checks every memory access |
//! | `?` in a kernel | `?` leaves a function that returns an `Option` or a `Result`, and a kernel returns nothing: use `match`, `if let`, `unwrap_or` or `let … else { return };` |
//! | `async` blocks | `async` is not supported in kernels |
//! | `const { … }` as a value | a `const` block in a kernel must be a statement that contains only `assert!(…)` |
//! | A function in a body | items inside a function body are not supported: move this item out and mark it `#[device]` |
//! | A struct in a body | items inside a function body are not supported: move this item out and mark it `#[device]` |
//! | `use` in a body | items inside a function body are not supported: move this item out and mark it `#[device]` |
//! | `static` | items inside a function body are not supported: move this item out and mark it `#[device]` |
//! | `ref` in a pattern | this pattern is not supported in kernels; supported are names, `_`, numbers, ranges, tuples, arrays, structs, `Some(…)`, `None`, `&…`, and alternatives with `\|` |
//! | A variant by its name alone in a pattern | `Left` in a pattern would be a variant that `use` imports: write the variant with its enum, `Enum::Left`, or a name of a variable in lower case |
//! | `*const T`, `*mut T` | this type is not supported in kernels; supported are numbers, `bool`, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | `fn(A) -> B`: function pointers | this type is not supported in kernels; supported are numbers, `bool`, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | `dyn Trait` | this type is not supported in kernels; supported are numbers, `bool`, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | `impl Trait` as a parameter of a kernel | `impl Trait` is supported only as the type of a device function's parameter: name the type here |
//! | `impl Trait` as a result | `impl Trait` is supported only as the type of a device function's parameter: name the type here |
//! | A pattern as a parameter of a kernel | a parameter of a kernel must be a plain name: destructure it with `let` in the body |
//! | `async fn` | a device function cannot be `async`: remove it; nothing in a kernel can be awaited |
//! | `unsafe fn` | a device function cannot be `unsafe`: remove it; the oracle checks every memory access |
//! | `extern "C" fn` | a device function cannot declare an ABI: remove `extern` |
//! | `'a` of a kernel: named lifetimes | a kernel takes no lifetime parameters: remove them, and write `&[T]` and `&mut [T]` |
//! | A closure as a type parameter of a kernel | a kernel cannot take a closure: bound the parameter by `F: DeviceFn<(f32,), Output = f32>`, and pass the name of a `#[device]` function, `kernel::<name>` |
//! | A closure in a struct | the type of a closure can be only that of a device function's parameter, `f: impl Fn(A) -> R`: a device type and an `impl` cannot hold a closure |
//! | A macro of the program | the macro `square!` is not supported in kernels: the compiler sees the call and not its expansion. Write a `#[device]` function, with `&mut` parameters for the variables that it changes, or a macro whose expansion is the whole kernel |
//! | `instances = …`: a clause without its parentheses | `instances` is followed by parentheses: write `instances(A = 1 \| 2, T = f32; …)` |
//! | `const C: char`, or other types than integers and `bool` | a generic constant must be an integer or a `bool` |
//! | `[T; N + 1]`: arithmetic in a type | expected a size: a number or the name of a generic constant |
//! | A kernel without a shape | missing clause `block`: write `#[kernel(block = …, grid = …)]` |
//! | A clause that does not exist | unknown clause `cluster` in `#[kernel]`; the clauses are block, grid, instances, derived, min_blocks, max_registers, contract, assertions, cooperative, tolerance, writes, target and crate |
//! | A generic enum without data | a device enum whose variants hold no data cannot have generic parameters |
//! | A trait with generic parameters | a device trait cannot have generic parameters: use associated types or constants |
//! | `union` | `#[device]` applies to a function, constant, struct, enum or type alias, or to a `mod` with traits and impls |
//! | `static` items | `#[device]` applies to a function, constant, struct, enum or type alias, or to a `mod` with traits and impls: make this `static` a `const` |
//! | `impl Deref`, and other traits of Rust whose functions return references | a device type cannot implement this trait: a device function cannot return a reference; write a method that returns a copy |
//! | `impl Iterator` | a device type cannot implement this trait: a `for` on the device iterates over ranges and arrays; write a method for one step |
//! | A struct with a lifetime | a device type cannot have lifetime parameters: write `View<T, 1>` for a field `&[T]`, and a value for another reference |
//! | A macro among a module's items | this item is not supported in a device module; it can contain functions, constants, structs, enums, type aliases, traits and impls |
//! | `std::mem::replace`, and other functions of the host | a kernel cannot call `std::mem::replace`: from the standard library it can use methods of numbers, arrays and `Option`, `std::array::from_fn` and `size_of` |
//! | `std::mem::swap` of references | in a kernel, `swap` takes two variables, fields or elements: `std::mem::swap(&mut a, &mut b)`. Bind an index that is computed by a call to a name first |
//! | `Vec`, `Box`: the heap | a kernel cannot call functions of the type `Box`: kernels have no heap; use an array in registers, `[0.0; 4]`, or in shared memory, `Shared::new([…])` |
//! | `String` | a kernel cannot call functions of the type `String`: kernels have no heap; use an array in registers, `[0.0; 4]`, or in shared memory, `Shared::new([…])` |
//! | A closure selected by a condition | this type is not supported in kernels; supported are numbers, `bool`, tuples, arrays, slices, `View`, `ViewMut` and `Shared` |
//! | A function that calls itself | `factorial` calls itself; device calls are always inlined, so write a loop |
//!
//! Rejected by the checker, though rustc accepts it:
//!
//! | Rust | message of the compiler |
//! |---|---|
//! | `%` of floats | `%` of floats is not supported in kernels: `a - b * (a / b).trunc()` is close to it where a / b is small |
//! | `usize::MAX` | `usize::MAX` differs between host and device: `usize` has 32 bits on the device. Write `u32::MAX` |
//! | `usize::BITS` | `usize::BITS` differs between host and device: `usize` has 32 bits on the device. Write `u32::BITS` |
//! | A `usize` beyond 32 bits | `4294967296` does not fit in `usize`, which has 32 bits on the device |
//! | `u64 as usize` of arbitrary values | `usize` has 32 bits on the device: select the bits explicitly, as in `(x & 0xffff_ffff) as usize` |
//! | `option.unwrap()` | `Option::unwrap` is not supported in kernels: write `unwrap_or(…)`, or `let Some(x) = … else { return };` |
//! | `"{pair:?}"`, an array in the message of an assertion | the message of an assertion shows numbers and `bool`, not `[f32; 2]`: show its parts |
//! | `log!("{pair:?}")`, of an array | `log!` shows numbers and `bool`, not `[f32; 2]`: show its parts |
//! | `option.unwrap_or_default()` | `Option` has no method `unwrap_or_default` in a kernel; its methods are is_some, is_none, is_some_and, unwrap_or, map, map_or, and_then, ok_or, copied |
//! | `option.filter(\|x\| …)`, and other methods of options | `Option` has no method `filter` in a kernel; its methods are is_some, is_none, is_some_and, unwrap_or, map, map_or, and_then, ok_or, copied |
//! | `x.sin()`, `x.exp()`: the host's mathematics | `f32::sin` is not available in kernels (host-dependent result); use `math::sin` (bit-exact) or `fast::sin` (hardware approximation) |
//! | `x.powi(n)`, `x.powf(y)` | `f32::powi` is not available in kernels (host-dependent result); use `math::pow` (bit-exact) |
//! | `x.rem_euclid(y)` of floats | `f32` has no method `rem_euclid` in a kernel: see `kernel_dsl::methods` for the supported methods |
//! | `a.checked_pow(b)` | `u32` has no method `checked_pow` in a kernel: check the operands first, or use the method named `wrapping_…` |
//! | `a.overflowing_neg()` | `u32` has no method `overflowing_neg` in a kernel: check the operands first, or use the method named `wrapping_…` |
//! | `a.isqrt()`, and other methods of integers | `u32` has no method `isqrt` in a kernel: see `kernel_dsl::methods` for the supported methods |
//! | `slice.iter()` | `&[f32]` has no method `iter` in a kernel: write `for i in 0..x.len()` and index the slice |
//! | `for x in slice` | a `for` in a kernel iterates over a range, an array, `block::share(shape)`, `grid::stride(n)` or `block::stride(n)`; a range takes `.step_by(n)` and `.rev()`, any iterator takes a final `.enumerate()`, and `unroll(…)`, `unroll_by::<F>(…)` or `rolled(…)` can wrap the whole |
//! | `iterator.map(…)`, `sum()`: chains of iterators | in a kernel, a range can appear only in a `for`: write `for i in a..b { … }`; for a part of a slice, add its start to each index |
//! | `iterator.zip(…)` | in a kernel, a range can appear only in a `for`: write `for i in a..b { … }`; for a part of a slice, add its start to each index |
//! | `slice.first()`, and other methods of slices | `&[f32]` has no method `first` in a kernel: read and write its elements by index |
//! | `slice.swap(a, b)` | `&mut [f32]` has no method `swap` in a kernel: read and write its elements by index |
//! | `array.iter().sum()`: chains of iterators | an iterator over an array can only be that of a `for`, perhaps with `.copied()` or `.enumerate()`: write a loop, `for x in array.iter() { … }` |
//! | `bool` in a buffer | a buffer cannot hold `bool`, because not every byte is a valid `bool`: use `u8` |
//! | `usize` in a buffer | a buffer cannot hold `usize`, which has 32 bits on the device and 64 on the host: use `u32` or `u64` |
//! | A tuple in a buffer | a buffer cannot hold a tuple, whose layout is unspecified: use a `#[device] #[repr(C)] struct` |
//! | A struct without `repr(C)` in a buffer | a buffer cannot hold `Unordered`, whose layout is unspecified: add `#[repr(C)]` to the struct |
//! | `&y[1..3]`: a part of a slice | in a kernel, a range can appear only in a `for`: write `for i in a..b { … }`; for a part of a slice, add its start to each index |
//! | A kernel that returns something | a kernel cannot return a value: write the results to buffers |
//! | A constant of the host as a pattern | `LIMIT` is not a device item, so a kernel cannot use it: write `#[device]` above its declaration; a `static` must become a `const` |
//! | A struct as a constant in a pattern | a constant in a pattern must be a number, a `bool` or an enum without data, not `Cell`: bind a name and compare in a guard, `x if x == …` |
//! | A pattern of a slice | a pattern cannot take elements of `&[f32]`, whose length is known only at run time: compare `len()`, and read each element by its index |
//! | `impl From` of a device type | there is no `from` of `Complex` on the device: an `impl From` belongs to the host. Write a function with another name in an `impl` of the type |
//! | `x.into()` of a number that gives no number | `into` of a number gives an integer or a float of 32 or 64 bits in kernels, not `Real`: call a function of `Real` |
//! | `a.cmp(&b)` | `u32` has no method `cmp` in a kernel: write comparisons, such as `if a < b { … } else if a == b { … }` |
//! | `u8::try_from(x)` | `u8` has no function `try_from` in a kernel: write a cast after a check, such as `if x < 256 { x as u8 }` |
//! | `AtomicU32`, and other atomic types | `std::sync::atomic::AtomicU32` is not a device item, so a kernel cannot use it: operations are atomic, not types. Take `x: &mut [u32]`, and write `x.fetch_add(i, value)` |
//!
//! Valid Rust that the device or the target does not support, rejected for an instance:
//!
//! | Rust | message of the compiler |
//! |---|---|
//! | A register array with an index that depends on the launch | registers cannot be indexed by `n`, which is not a constant |
//! | A register array with the index of a loop that is not unrolled | registers cannot be indexed by `i`: unroll the loop over `i` |
//! | A constant index beyond an array | index 4 is beyond `v`, which has 3 elements |
//! | A register array that is too large for a thread | `v` would take 100000 elements in the registers of each thread |
//! | `unroll` of a range that depends on the launch | the end of this range is not a constant: the loop cannot be unrolled |
//! | `unroll` of too many copies | after unrolling, the kernel has more than 262144 instructions |
//! | A constant assertion that does not hold | the assertion fails for this instance |
//! | A block of more than 1024 threads | block: expected 1 to 1024 threads, at most 1024 × 1024 × 64, given 2048 × 1 × 1 |
//! | A block with more than 48 KB of shared memory | `s` needs 80000 bytes of shared memory; the limit is 49152 bytes per block |
//! | A shared array whose shape is not constant | the shape of a shared array must be a compile-time constant |
//! | A pitch below the row's length | the pitch 6 is smaller than a row of 8 elements |
//! | A shared array over a smaller one | `p` needs 64 bytes; `s` provides 32 |
//! | A barrier that some threads do not reach | `block::sync` must be reached by all threads of the block, but some may not reach it |
//! | A barrier after a `return` of some threads | `block::sync` must be reached by all threads of the block, but some may not reach it |
//! | A shuffle that some lanes do not reach | `warp::sum` must be reached by all lanes of the warp, but some may not reach it |
//! | A reduction in a loop that lanes leave one by one | `warp::max` must be reached by all lanes of the warp, but some may not reach it |
//! | A block with a partial warp | this operation needs whole warps of 32 threads; the block has 48 threads |
//! | A group of lanes that is not a power of two | invalid group size 5 |
//! | A group of more lanes than a warp has | invalid group size 64 |
//! | A feature that the target lacks | `warp::match_any` requires sm_70; the kernel is compiled for sm_61 |
//! | A target that does not exist | unknown target `sm_62`; the targets are sm_61, sm_70, sm_75, sm_80, sm_86, sm_89, sm_90 |
//! | A float of 16 bits in an atomic sum | sm_61 has no atomic operations on `kernel_dsl::half::f16` |
//! | A float in an atomic comparison of bits | sm_61 has no such atomic operation on `f32` |
//! | A `copy_async` to an array of dynamic size | `copy_async` cannot fill an array of dynamic size: the number of registers it needs is unknown |
//! | A `copy_async` of more elements than registers hold | the copy needs 313 registers in each thread; a thread has at most 255 |
//! | A token that joins its own value with another copy | `coming` joins its own value with another copy, so the number of copies in flight is unknown |
//! | `load` of more than 16 elements | an access must have 1, 2, 4, 8 or 16 elements, not 32 |
//! | `pow` with an exponent that is not constant | the exponent of `pow` must be a constant, at most 65535 |
//! | A step that is a constant 0 | the step of a loop cannot be 0 |
