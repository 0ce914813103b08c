//! Methods of numbers, arrays and options in kernels: the PTX of each, and its edge cases.
//!
//! All are methods of Rust, with the same names and results on the host and on every executor. This
//! page states what Rust leaves open, and what the device does where Rust would panic. *Reported*
//! means that the oracle reports an error of the kernel. Rust's debug builds panic there; the
//! device returns the given result.
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
//! | `clamp` | floats | 2 `setp`, 2 `selp` | a NaN stays a NaN, and a zero within the bounds keeps its sign; if the bounds are out of order or NaN, where Rust panics, `low` applies first and then `high` |
//! | `copysign` | floats | 2 `and`, `or`; ptxas makes them one `LOP3` | the magnitude of the number with the sign of the argument, also for NaNs and zeros |
//! | `floor` | floats | `cvt.rmi` | down |
//! | `fract` | floats | `cvt.rzi`, `sub` | with the sign of the number; a NaN for an infinity |
//! | `is_finite` | floats | `abs`, `setp.lt` | neither an infinity nor a NaN |
//! | `is_infinite` | floats | `abs`, `setp.eq` | |
//! | `is_nan` | floats | `setp.neu` | |
//! | `is_sign_negative` | floats | `setp.lt` of the bits | also for −0 and NaNs with the sign bit; unspecified for a NaN that arithmetic produced |
//! | `is_sign_positive` | floats | `setp.ge` of the bits | likewise |
//! | `max` | floats | `max` | a NaN loses against a number; −0 is less than +0, which Rust leaves open |
//! | `min` | floats | `min` | likewise |
//! | `mul_add` | floats | `fma.rn` | one rounding |
//! | `recip` | floats | `div.rn` | 1 / x, correctly rounded: a dozen instructions, not the hardware's approximation |
//! | `round` | floats | `cvt.rzi`, `sub`, `abs`, `setp.ge`, `add`, `selp`, and `copysign` | to the nearest integral value, halves away from zero; `round_ties_even` is one instruction |
//! | `round_ties_even` | floats | `cvt.rni` | to the nearest integral value, halves to the even one |
//! | `signum` | floats | `copysign`, `setp.neu`, `selp` | ±1, for zeros too; a NaN stays |
//! | `sqrt` | floats | `sqrt.rn` | correctly rounded; a NaN for a negative number, −0 for −0 |
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
//! | `abs` | signed | `abs` | `MIN` is reported and gives `MIN` |
//! | `abs_diff` | integers | `max`, `min`, `sub` | the distance, in the unsigned type: never overflows |
//! | `checked_add` | integers | `add`, `setp.lt`; of signed ones `add`, 2 `xor`, `and`, `setp.lt` | `None` where the sum does not fit |
//! | `checked_div` | integers | `setp`, `selp`, `div` | `None` for a division by 0, and for `MIN` / −1 |
//! | `checked_mul` | integers | `mul.lo`, `mul.hi`, `setp.ne` | `None` where the product does not fit |
//! | `checked_rem` | integers | `setp`, `selp`, `rem` | as `checked_div` |
//! | `checked_sub` | integers | `sub`, `setp.lt`; of signed ones `sub`, 2 `xor`, `and`, `setp.lt` | `None` where the difference does not fit |
//! | `clamp` | integers | `max`, `min` | the upper bound if the bounds are out of order, where Rust panics |
//! | `count_ones` | integers | `popc` | |
//! | `count_zeros` | integers | `not`, `popc` | |
//! | `div_ceil` | unsigned | `div`, `rem`, `setp`, `selp`, `add` | a division by 0 is reported; no intermediate result overflows |
//! | `div_euclid` | integers | `div`, `rem`, `add`, `sub`, 2 `setp`, 2 `selp`; unsigned `div` | rounds so that the remainder is not negative; a division by 0, and `MIN` / −1, are reported |
//! | `ilog2` | integers | `clz`, `sub` | the position of the highest bit; 0 is reported; a negative number, where Rust panics too, gives n − 1 |
//! | `is_multiple_of` | unsigned | `setp`, `selp`, `rem`, `setp.eq` | only 0 is a multiple of 0 |
//! | `is_negative` | signed | `setp.lt` | |
//! | `is_positive` | signed | `setp.gt` | |
//! | `is_power_of_two` | unsigned | `popc`, `setp.eq` | false for 0 |
//! | `leading_ones` | integers | `not`, `clz` | |
//! | `leading_zeros` | integers | `clz` | n for 0 |
//! | `max` | integers | `max` | |
//! | `min` | integers | `min` | |
//! | `next_multiple_of` | unsigned | `div_ceil`, `mul` | a multiple of 0, and overflow, are reported |
//! | `next_power_of_two` | unsigned | `sub`, `clz`, `shr`, `setp`, `selp`, `add` | 1 for 0; a number above 2ⁿ⁻¹ is reported and gives 0 |
//! | `overflowing_add` | integers | as `checked_add` | the wrapped sum, and whether it wrapped |
//! | `overflowing_mul` | integers | as `checked_mul` | likewise |
//! | `overflowing_sub` | integers | as `checked_sub` | likewise |
//! | `pow` | integers | `mul`, by squaring | the exponent is a constant of the kernel below 65536; overflow reported, and wraps |
//! | `rem_euclid` | integers | `rem`, `sub`, `max`, `add`, `setp`, `selp`; unsigned `rem` | not negative, and below the divisor's magnitude; a division by 0, and `MIN` / −1, are reported |
//! | `reverse_bits` | integers | `brev` | |
//! | `rotate_left` | integers | `shf.l.wrap`; of 64 bits two of them, of 8 and 16 `shl`, `shr`, `or` | distances count modulo n |
//! | `rotate_right` | integers | `sub`, which folds where the distance is constant, and `rotate_left` | distances count modulo n |
//! | `saturating_add` | unsigned | `not`, `min`, `add` | `MAX` where the sum does not fit |
//! | `saturating_add` | signed | `add.sat` of 32 bits; else as `checked_add`, `shr`, `xor`, `selp` | `MAX` or `MIN` where the sum does not fit |
//! | `saturating_mul` | integers | as `checked_mul`, and `selp`; of signed ones `xor`, `shr`, `xor` too | `MAX` or `MIN` where the product does not fit |
//! | `saturating_sub` | signed | `sub.sat` of 32 bits; else as `checked_sub`, `shr`, `xor`, `selp` | `MAX` or `MIN` where the difference does not fit |
//! | `saturating_sub` | unsigned | `min`, `sub` | 0 where the difference is negative |
//! | `signum` | signed | `max`, `min` | −1, 0, 1 |
//! | `swap_bytes` | integers | `prmt`; of 64 bits two | |
//! | `trailing_ones` | integers | `not`, `brev`, `clz` | |
//! | `trailing_zeros` | integers | `brev`, `clz` | n for 0 |
//! | `unsigned_abs` | signed | `sub`, `max` | in the unsigned type; 2ⁿ⁻¹ for `MIN` |
//! | `wrapping_abs` | signed | `sub`, `max` | `MIN` for `MIN` |
//! | `wrapping_add` | integers | `add` | modulo 2ⁿ |
//! | `wrapping_div` | integers | `setp`, `selp`, `div`, `sub`, `selp`; unsigned `div` | `MIN` for `MIN` / −1; a division by 0 is reported |
//! | `wrapping_mul` | integers | `mul.lo` | modulo 2ⁿ |
//! | `wrapping_neg` | integers | `sub` from 0 | modulo 2ⁿ |
//! | `wrapping_pow` | integers | `mul`, by squaring | as `pow`, modulo 2ⁿ |
//! | `wrapping_rem` | integers | `setp`, `selp`, `rem`; unsigned `rem` | 0 for `MIN` / −1; a division by 0 is reported |
//! | `wrapping_shl` | integers | `shl`, after `and` where the distance is not constant | the distance counts modulo n, as with `<<` |
//! | `wrapping_shr` | integers | `shr`, likewise | arithmetic on signed integers |
//! | `wrapping_sub` | integers | `sub` | modulo 2ⁿ |
//!
//! A `u128` has the operators and the methods of unsigned integers. The type is two words of 64
//! bits: in memory 16 bytes with that alignment, the low word first. A parameter of this type is
//! two parameters of the entry, `x.low` and `x.high`. On sm_61:
//!
//! | operation | PTX | instructions |
//! |---|---|---|
//! | sum, difference | `add.cc`, `addc`; `sub.cc`, `subc` | 4 |
//! | product | 3 `mul.lo`, `mul.hi`, 2 `add` | some 70; the product of two `u64` some 40 |
//! | quotient, remainder | 3 `div` of 64 bits, and a correction, without branches | some 500; a remainder also takes a product |
//! | shifts | 4 shifts, `or`, 2 `selp` | some 12, fewer where the distance is constant |
//! | comparisons | 3 `setp` of 64 bits | some 6 |
//! | casts to floats | `clz`, shifts, `cvt`, `mul` | rounded once, to nearest even |
//!
//! Overflow of a `u128`, a distance of 128 or more, and a zero divisor are reported like those of
//! a `u64`. Such a report shows words of 64 bits instead of the operands. Atomic operations, `sum`,
//! `min` and `max` of lanes, generic constants and ranges of a `for` have no `u128`.
//!
//! The upper half of a product, byte selection, funnel shifts and bit fields are in
//! [`int`](crate::int), dot products of small integers in [`dot`](crate::dot).
//!
//! # Arrays
//!
//! | method | on | PTX | meaning and edges |
//! |---|---|---|---|
//! | `len` | arrays | none | a constant of the kernel |
//! | `map` | arrays | the code of the function, once per element | in the order of the elements; takes a closure, or the path of a device function |
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
//! | `and_then` | options | the code of the function | |
//! | `copied` | options | a load under the predicate | for a reference into memory |
//! | `is_none` | options | `not` of the predicate | |
//! | `is_some` | options | none | |
//! | `is_some_and` | options | the code of the function | |
//! | `map` | options | the code of the function | |
//! | `map_or` | options | the code of the function, `selp` | the other value is computed in any case, and first |
//! | `ok_or` | options | `selp` for each part | likewise: a `Result`, with the argument as its error |
//! | `unwrap_or` | options | `selp` for each part | likewise |
//!
//! # Results
//!
//! A `Result` is a number that distinguishes `Ok` from `Err`, and the parts of value and error, in
//! registers. `?` leaves a device function or closure with `None` or the error. `?` converts no
//! errors: `map_err` does.
//!
//! | method | on | PTX | meaning and edges |
//! |---|---|---|---|
//! | `and_then` | results | the code of the function | |
//! | `err` | results | `setp` | an option of the error |
//! | `is_err` | results | `setp` | |
//! | `is_ok` | results | `setp` | |
//! | `is_ok_and` | results | the code of the function | |
//! | `map` | results | the code of the function | |
//! | `map_err` | results | the code of the function, called with the error | |
//! | `map_or` | results | the code of the function, `selp` | the other value is computed in any case, and first |
//! | `ok` | results | `setp` | an option of the value |
//! | `unwrap_or` | results | `selp` for each part | the other value is computed in any case, and first |
