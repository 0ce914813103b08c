//! Methods of numbers, arrays and options in kernels: the PTX of each, and its edge cases.
//!
//! All are Rust's own, with the same names and results on the host and on every executor. This page
//! states what Rust leaves open, and what the device does where Rust would panic. *Reported* means
//! that the oracle reports an error of the kernel. Rust's debug builds panic there; the device
//! returns the given result.
//!
//! 8- and 16-bit integers are computed in 32-bit registers. A result that may leave its width is
//! extended again, in one or two more instructions than the table says. 64-bit integers are two
//! registers: ptxas expands each operation to between two and about twenty instructions. PTX
//! appends the type: `add` is `add.s32` or `add.rn.f32`. [`reference`](crate::reference) shows the
//! compiler's output for each method, for one type.
//!
//! # Floats
//!
//! No method here is an approximation, and subnormals are kept. The sign and payload of a NaN that
//! arithmetic produces are unspecified.
//!
//! | method | on | PTX | meaning and edges |
//! |---|---|---|---|
//! | `abs` | floats | `abs` | the sign bit is cleared |
//! | `ceil` | floats | `cvt.rpi` | up; −0.5 gives −0 |
//! | `clamp` | floats | 2 `setp`, 2 `selp` | a NaN stays a NaN, and a zero within the bounds keeps its sign; the bounds are in order and no NaNs, or it is `low` raised or `high` lowered in this order, where Rust panics |
//! | `copysign` | floats | 2 `and`, `or`; ptxas makes them one `LOP3` | its size with the sign of the argument, NaNs and zeros too |
//! | `floor` | floats | `cvt.rmi` | down |
//! | `fract` | floats | `cvt.rzi`, `sub` | with the sign of the number; of an infinity a NaN |
//! | `is_finite` | floats | `abs`, `setp.lt` | neither an infinity nor a NaN |
//! | `is_infinite` | floats | `abs`, `setp.eq` | |
//! | `is_nan` | floats | `setp.neu` | |
//! | `is_sign_negative` | floats | `setp.lt` of the bits | −0 and NaNs with the bit too; of a NaN that arithmetic made it is open |
//! | `is_sign_positive` | floats | `setp.ge` of the bits | likewise |
//! | `max` | floats | `max` | a NaN loses against a number; −0 is less than +0, which Rust leaves open |
//! | `min` | floats | `min` | likewise |
//! | `mul_add` | floats | `fma.rn` | one rounding |
//! | `recip` | floats | `div.rn` | 1 / x, correctly rounded: a dozen instructions, not the hardware's approximation |
//! | `round` | floats | `cvt.rzi`, `sub`, `abs`, `setp.ge`, `add`, `selp`, and `copysign` | to the nearest integral value, halves away from zero; `round_ties_even` is one instruction |
//! | `round_ties_even` | floats | `cvt.rni` | to the nearest integral value, halves to the even one |
//! | `signum` | floats | `copysign`, `setp.neu`, `selp` | ±1, for zeros too; a NaN stays |
//! | `sqrt` | floats | `sqrt.rn` | correctly rounded; of a negative number a NaN, −0 gives −0 |
//! | `to_bits` | floats | `mov` | `f32::from_bits` is its inverse |
//! | `trunc` | floats | `cvt.rzi` | towards zero |
//!
//! Rust's other methods of floats (`exp`, `ln`, `sin`, …) depend on the host's library in their
//! last bits. A kernel that calls one is rejected, and the error names the replacement: a function
//! of [`math`](crate::math), with the same bits on every host and device, or of
//! [`fast`](crate::fast).
//!
//! # Integers
//!
//! `n` is the width in bits. Distances and exponents are `u32`.
//!
//! | method | on | PTX | meaning and edges |
//! |---|---|---|---|
//! | `abs` | signed | `abs` | of `MIN` reported, and `MIN` |
//! | `abs_diff` | integers | `max`, `min`, `sub` | the distance, in the unsigned type: never overflows |
//! | `checked_add` | integers | `add`, `setp.lt`; of signed ones `add`, 2 `xor`, `and`, `setp.lt` | `None` where the sum does not fit |
//! | `checked_div` | integers | `setp`, `selp`, `div` | `None` by 0, and of `MIN` by −1 |
//! | `checked_mul` | integers | `mul.lo`, `mul.hi`, `setp.ne` | `None` where the product does not fit |
//! | `checked_rem` | integers | `setp`, `selp`, `rem` | as `checked_div` |
//! | `checked_sub` | integers | `sub`, `setp.lt`; of signed ones `sub`, 2 `xor`, `and`, `setp.lt` | `None` where the difference does not fit |
//! | `clamp` | integers | `max`, `min` | the bounds are in order, or it is the upper one, where Rust panics |
//! | `count_ones` | integers | `popc` | |
//! | `count_zeros` | integers | `not`, `popc` | |
//! | `div_ceil` | unsigned | `div`, `rem`, `setp`, `selp`, `add` | by 0 reported; no overflow on the way |
//! | `div_euclid` | integers | `div`, `rem`, `add`, `sub`, 2 `setp`, 2 `selp`; unsigned `div` | rounds so that the rest is not negative; by 0, and `MIN` by −1, reported |
//! | `ilog2` | integers | `clz`, `sub` | the number of the highest bit; of 0 reported, and of negative numbers, where Rust panics too, 31 of 32 bits and so on |
//! | `is_multiple_of` | unsigned | `setp`, `selp`, `rem`, `setp.eq` | of 0 is 0 alone |
//! | `is_negative` | signed | `setp.lt` | |
//! | `is_positive` | signed | `setp.gt` | |
//! | `is_power_of_two` | unsigned | `popc`, `setp.eq` | not of 0 |
//! | `leading_ones` | integers | `not`, `clz` | |
//! | `leading_zeros` | integers | `clz` | n of 0 |
//! | `max` | integers | `max` | |
//! | `min` | integers | `min` | |
//! | `next_multiple_of` | unsigned | `div_ceil`, `mul` | of 0, and overflow, reported |
//! | `next_power_of_two` | unsigned | `sub`, `clz`, `shr`, `setp`, `selp`, `add` | 1 of 0; above 2ⁿ⁻¹ reported, and 0 |
//! | `overflowing_add` | integers | as `checked_add` | the wrapped sum, and whether it wrapped |
//! | `overflowing_mul` | integers | as `checked_mul` | likewise |
//! | `overflowing_sub` | integers | as `checked_sub` | likewise |
//! | `pow` | integers | `mul`, by squaring | the exponent is a constant of the kernel below 65536; overflow reported, and wraps |
//! | `rem_euclid` | integers | `rem`, `sub`, `max`, `add`, `setp`, `selp`; unsigned `rem` | 0 or more, below the divisor's size; by 0, and `MIN` by −1, reported |
//! | `reverse_bits` | integers | `brev` | |
//! | `rotate_left` | integers | `shf.l.wrap`; of 64 bits `shl`, `shr`, `or` | distances count modulo n |
//! | `rotate_right` | integers | `sub`, which folds where the distance is constant, and `rotate_left` | distances count modulo n |
//! | `saturating_add` | unsigned | `not`, `min`, `add` | `MAX` where the sum does not fit |
//! | `saturating_add` | signed | `add.sat` of 32 bits; else as `checked_add`, `shr`, `xor`, `selp` | `MAX` or `MIN` where the sum does not fit |
//! | `saturating_mul` | integers | as `checked_mul`, and `selp`; of signed ones `xor`, `shr`, `xor` too | `MAX` or `MIN` where the product does not fit |
//! | `saturating_sub` | signed | `sub.sat` of 32 bits; else as `checked_sub`, `shr`, `xor`, `selp` | `MAX` or `MIN` where the difference does not fit |
//! | `saturating_sub` | unsigned | `min`, `sub` | 0 where the difference is negative |
//! | `signum` | signed | `max`, `min` | −1, 0, 1 |
//! | `swap_bytes` | integers | `prmt`; of 64 bits two | |
//! | `trailing_ones` | integers | `not`, `brev`, `clz` | |
//! | `trailing_zeros` | integers | `brev`, `clz` | n of 0 |
//! | `unsigned_abs` | signed | `sub`, `max` | in the unsigned type: of `MIN` 2ⁿ⁻¹ |
//! | `wrapping_abs` | signed | `sub`, `max` | of `MIN` `MIN` |
//! | `wrapping_add` | integers | `add` | modulo 2ⁿ |
//! | `wrapping_div` | integers | `setp`, `selp`, `div`, `sub`, `selp`; unsigned `div` | of `MIN` by −1 `MIN`; by 0 reported |
//! | `wrapping_mul` | integers | `mul.lo` | modulo 2ⁿ |
//! | `wrapping_neg` | integers | `sub` from 0 | modulo 2ⁿ |
//! | `wrapping_pow` | integers | `mul`, by squaring | as `pow`, modulo 2ⁿ |
//! | `wrapping_rem` | integers | `setp`, `selp`, `rem`; unsigned `rem` | of `MIN` by −1 0; by 0 reported |
//! | `wrapping_shl` | integers | `shl`, after `and` where the distance is not constant | the distance counts modulo n, as with `<<` |
//! | `wrapping_shr` | integers | `shr`, likewise | arithmetic on signed integers |
//! | `wrapping_sub` | integers | `sub` | modulo 2ⁿ |
//!
//! The upper half of a product, byte selection, funnel shifts and bit fields are in
//! [`int`](crate::int), dot products of small integers in [`dot`](crate::dot).
//!
//! # Arrays
//!
//! | method | on | PTX | meaning and edges |
//! |---|---|---|---|
//! | `len` | arrays | none | a constant of the kernel |
//! | `map` | arrays | what the function is, once an element | in the order of the elements; of a closure, or a device function by its path |
//!
//! `std::array::from_fn(|i| …)` makes an array of the function's values for each index, a constant
//! in the function.
//!
//! # Options
//!
//! An option is a predicate and the parts of its value in registers. A function argument runs only
//! if there is a value: after a branch, or predicated.
//!
//! | method | on | PTX | meaning and edges |
//! |---|---|---|---|
//! | `and_then` | options | what the function is | |
//! | `copied` | options | a load under the predicate | of a reference into memory |
//! | `is_none` | options | `not` of the predicate | |
//! | `is_some` | options | none | |
//! | `is_some_and` | options | what the function is | |
//! | `map` | options | what the function is | |
//! | `map_or` | options | what the function is, `selp` | the other value is computed in any case, and first |
//! | `unwrap_or` | options | `selp` for each part | likewise |
