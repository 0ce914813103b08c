//! All constructs of the language, the PTX that each compiles to, and its cost on sm_61.
//!
//! The compiler generates this page. For each construct it compiles a program that uses this
//! construct alone, and lists the resulting instructions in order, each once with its count.
//! Constants are folded, and variables are in registers, as in every kernel. A construct without
//! instructions is evaluated at compile time, or its instructions belong to its uses. On other
//! types a construct has the instructions of those types. The tests run every program on each
//! executor (`tests/tests/language/constructs`), and compare with code compiled by rustc.
//!
//! *Rate* is the throughput of each instruction, as a fraction of 128 results per clock of a
//! multiprocessor of sm_61:
//!
//! - 1 for `f32` arithmetic, and for addition and logic of integers;
//! - 1/2 for shifts, comparisons, minima and bit fields;
//! - 1/4 for conversions, shuffles and the special function unit;
//! - 1/32 for `f64`;
//! - 1/64 for arithmetic of 16-bit floats, which the compiler never emits.
//!
//! A *sequence* is several machine instructions made by ptxas. A product of integers has three or
//! four, a division of integers about thirty, a correctly rounded quotient or root ten to thirty.
//! The cost of *shared* accesses depends on their bank conflicts, and that of *global* ones on the
//! number of sectors. The cost of *atomic* ones depends on the number of threads with the same
//! address. `kernels report` measures them for a kernel.
//!
//! # Types
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `bool` | `setp.gt.u32`, `setp.le.u32`, `setp.eq.u32`, `xor.pred`, `and.pred`, `or.pred`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `u8`, `i8` | 3 `cvt.u32.u8`, 2 `cvt.s32.s8`, `shr.u32`, `shl.b32`, `add.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `u16`, `i16` | 4 `cvt.u32.u16`, 3 `cvt.s32.s16`, `mul.lo.u32`, 2 `sub.s32`, `max.s32`, `add.u32` | sm_61 | 1, 1/2, 1/4, sequence |
//! | `u32`, `i32` | `mul.lo.u32`, 2 `mov.b32`, 2 `sub.s32`, `max.s32`, `add.u32` | sm_61 | 1, 1/2, sequence |
//! | `u64`, `i64` | 2 `cvt.u64.u32`, `mul.lo.u64`, `mov.b64`, `add.u64` | sm_61 | 1, 1/2, sequence |
//! | `u128` | `cvt.u64.u32`, 2 `mul.lo.u64`, `mul.hi.u64`, `add.u64`, `shr.u64`, `xor.b64` | sm_61 | 1, 1/2, sequence |
//! | `usize` | `add.u32`, `shr.u32` | sm_61 | 1, 1/2 |
//! | `f32` | `cvt.rn.f32.u32`, `mul.rn.f32` | sm_61 | 1, 1/4 |
//! | `f64` | `cvt.rn.f64.u32`, `div.rn.f64` | sm_61 | 1/32, sequence |
//! | `f16` | `cvt.rn.f32.u32`, 2 `cvt.rn.f16.f32`, `cvt.f32.f16`, `add.rn.f32` | sm_61 | 1, 1/4 |
//! | `bf16` | `cvt.rn.f32.u32`, 3 `mov.b32`, 4 `shr.u32`, 2 `and.b32`, 4 `add.u32`, 2 `setp.neu.f32`, 2 `selp.u32`, 2 `cvt.u32.u16`, `shl.b32`, `mul.rn.f32` | sm_61 | 1, 1/2, 1/4 |
//! | `(A, B)` | `cvt.rn.f32.u32`, `cvt.rzi.u32.f32`, `add.u32` | sm_61 | 1, 1/4 |
//! | `t.0` | `add.u32`, `mul.lo.u32` | sm_61 | 1, sequence |
//! | `[T; N]` | 2 `add.u32`, `mul.lo.u32` | sm_61 | 1, sequence |
//! | `[x; N]` | 4 `add.u32` | sm_61 | 1 |
//! | `[[T; N]; M]` | `mul.lo.u32`, `add.u32` | sm_61 | 1, sequence |
//! | `v.len()` | `add.u32` | sm_61 | 1 |
//! | `v.map(\|x\| …)` | 2 `mul.lo.u32`, `add.u32` | sm_61 | 1, sequence |
//! | `std::array::from_fn(\|i\| …)` | `shl.b32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `t == u`, of tuples and arrays | 2 `setp.eq.u32`, `and.pred`, 2 `selp.u32`, 2 `setp.ne.u32`, `or.pred`, `shl.b32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `t < u`, of tuples and arrays | 2 `setp.lt.u32`, `setp.eq.u32`, `and.pred`, `or.pred`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `size_of::<T>()` | `add.u32` | sm_61 | 1 |
//! | `const NAME: T = …;` | `mul.lo.u32` | sm_61 | sequence |
//! | `&mut x` | `add.u32` | sm_61 | 1 |
//!
//! # Options
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `Some(x)`, `None` | `setp.gt.u32`, 2 `selp.u32` | sm_61 | 1, 1/2 |
//! | `o == p` | `setp.gt.u32`, 2 `selp.u32`, `setp.eq.u32`, `not.pred`, `or.pred`, `and.pred` | sm_61 | 1, 1/2 |
//! | `o == p`, of references | `setp.gt.u32`, 2 `selp.u32`, `setp.eq.u32` | sm_61 | 1, 1/2 |
//! | `o.is_some()` | `setp.gt.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `o.is_none()` | `setp.gt.u32`, `not.pred`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `o.is_some_and(\|x\| …)` | `setp.gt.u32`, 2 `selp.u32`, 2 `bra`, `and.b32`, `setp.eq.u32`, `mov.pred` | sm_61 | 1, 1/2, branch |
//! | `o.unwrap_or(x)` | `setp.gt.u32`, 2 `selp.u32` | sm_61 | 1, 1/2 |
//! | `o.map(\|x\| …)` | `setp.gt.u32`, 3 `selp.u32`, `shl.b32` | sm_61 | 1, 1/2 |
//! | `o.map_or(x, \|x\| …)` | `setp.gt.u32`, 2 `selp.u32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `o.and_then(\|x\| …)` | 2 `setp.gt.u32`, 4 `selp.u32`, `sub.u32`, `and.pred` | sm_61 | 1, 1/2 |
//! | `o.ok_or(e)` | `setp.gt.u32`, 4 `selp.u32`, `add.u32`, `selp.s32`, `setp.eq.s32` | sm_61 | 1, 1/2 |
//! | `o?` | `sub.u32`, `setp.ge.u32`, 3 `bra`, 2 `mov.u32`, 2 `mov.pred`, `mul.lo.u32`, `selp.u32` | sm_61 | 1, 1/2, sequence, branch |
//!
//! # Results
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `Ok(x)`, `Err(e)` | `setp.gt.u32`, `selp.s32`, 3 `selp.u32`, `setp.eq.s32`, `shl.b32` | sm_61 | 1, 1/2 |
//! | `r == s` | `setp.gt.u32`, `selp.s32`, 3 `selp.u32`, `setp.eq.s32`, 2 `setp.eq.u32`, 2 `and.pred` | sm_61 | 1, 1/2 |
//! | `r?` | `sub.u32`, `setp.ge.u32`, `selp.s32`, 2 `selp.u32`, 2 `setp.eq.s32`, 3 `bra`, 2 `mov.u32`, 2 `mov.s32`, `mul.lo.u32` | sm_61 | 1, 1/2, sequence, branch |
//! | `r.is_ok()` | `setp.gt.u32`, `selp.s32`, `setp.eq.s32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `r.is_err()` | `setp.gt.u32`, `selp.s32`, `setp.eq.s32`, `not.pred`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `r.is_ok_and(\|x\| …)` | `setp.gt.u32`, `selp.s32`, 2 `selp.u32`, `setp.eq.s32`, 2 `bra`, `and.b32`, `setp.eq.u32`, `mov.pred` | sm_61 | 1, 1/2, branch |
//! | `r.ok()` | `setp.gt.u32`, `selp.s32`, 3 `selp.u32`, `setp.eq.s32` | sm_61 | 1, 1/2 |
//! | `r.err()` | `setp.gt.u32`, `selp.s32`, 3 `selp.u32`, `setp.eq.s32` | sm_61 | 1, 1/2 |
//! | `r.unwrap_or(x)` | `setp.gt.u32`, `selp.s32`, 2 `selp.u32`, `add.u32`, `setp.eq.s32` | sm_61 | 1, 1/2 |
//! | `r.map(\|x\| …)` | `setp.gt.u32`, 2 `selp.s32`, 3 `selp.u32`, 2 `setp.eq.s32`, `shl.b32` | sm_61 | 1, 1/2 |
//! | `r.map_err(\|e\| …)` | `setp.gt.u32`, 2 `selp.s32`, 5 `selp.u32`, 2 `setp.eq.s32`, `mul.lo.u32` | sm_61 | 1, 1/2, sequence |
//! | `r.map_or(x, \|x\| …)` | `setp.gt.u32`, `selp.s32`, 2 `selp.u32`, `setp.eq.s32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `r.and_then(\|x\| …)` | 2 `setp.gt.u32`, 3 `selp.s32`, 4 `selp.u32`, 2 `setp.eq.s32`, `sub.u32` | sm_61 | 1, 1/2 |
//!
//! # Integers
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `-a` | `neg.s32` | sm_61 | 1 |
//! | `a * b` | `mul.lo.s32` | sm_61 | sequence |
//! | `a / b` | `div.s32` | sm_61 | sequence |
//! | `a % b` | `rem.s32` | sm_61 | sequence |
//! | `a >> b`, arithmetic | `mov.b32`, `and.b32`, `shr.s32` | sm_61 | 1, 1/2 |
//! | `a < b`, signed | `setp.lt.s32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.abs()` | `abs.s32` | sm_61 | 1 |
//! | `a.signum()` | `max.s32`, `min.s32` | sm_61 | 1/2 |
//! | `a.is_negative()` | `setp.lt.s32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.is_positive()` | `setp.gt.s32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.wrapping_abs()` | `sub.s32`, `max.s32` | sm_61 | 1, 1/2 |
//! | `a.unsigned_abs()` | `sub.s32`, `max.s32`, `mov.b32` | sm_61 | 1, 1/2 |
//! | `a.div_euclid(b)`, signed | `div.s32`, `rem.s32`, `add.s32`, `sub.s32`, `setp.gt.s32`, 2 `selp.s32`, `setp.lt.s32` | sm_61 | 1, 1/2, sequence |
//! | `a.rem_euclid(b)`, signed | `rem.s32`, `sub.s32`, `max.s32`, `add.s32`, `setp.lt.s32`, `selp.s32` | sm_61 | 1, 1/2, sequence |
//! | `a.clamp(low, high)` | `max.s32`, `min.s32` | sm_61 | 1/2 |
//! | `a.wrapping_div(b)`, signed | `setp.eq.s32`, 2 `selp.s32`, `div.s32`, `sub.s32` | sm_61 | 1, 1/2, sequence |
//! | `a.wrapping_rem(b)`, signed | `setp.eq.s32`, `selp.s32`, `rem.s32` | sm_61 | 1, 1/2, sequence |
//! | `a.wrapping_pow(5)` | 3 `mul.lo.s32` | sm_61 | sequence |
//! | `a.wrapping_neg()` | `sub.s32` | sm_61 | 1 |
//! | `a + b` | `add.u32` | sm_61 | 1 |
//! | `a - b` | `sub.u32` | sm_61 | 1 |
//! | `a / b`, unsigned | `div.u32` | sm_61 | sequence |
//! | `a / 10` | `div.u32` | sm_61 | sequence |
//! | `a % 8` | `and.b32` | sm_61 | 1 |
//! | `a & b` | `and.b32` | sm_61 | 1 |
//! | `a \| b` | `or.b32` | sm_61 | 1 |
//! | `a ^ b` | `xor.b32` | sm_61 | 1 |
//! | `!a` | `not.b32` | sm_61 | 1 |
//! | `a << b` | 2 `and.b32`, `shl.b32` | sm_61 | 1, 1/2 |
//! | `a >> b` | `and.b32`, `shr.u32` | sm_61 | 1, 1/2 |
//! | `a == b` | `setp.eq.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a != b` | `setp.ne.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a <= b` | `setp.le.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a > b` | `setp.gt.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a >= b` | `setp.ge.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a += b`, and each operator that assigns | `add.u32`, `xor.b32`, `shl.b32`, `or.b32` | sm_61 | 1, 1/2 |
//! | `a.min(b)` | `min.u32` | sm_61 | 1/2 |
//! | `a.max(b)` | `max.u32` | sm_61 | 1/2 |
//! | `a.abs_diff(b)` | `max.u32`, `min.u32`, `sub.u32` | sm_61 | 1, 1/2 |
//! | `a.pow(3)` | 2 `mul.lo.u32` | sm_61 | sequence |
//! | `a.count_ones()` | `popc.b32` | sm_61 | 1/4 |
//! | `a.count_zeros()` | `not.b32`, `popc.b32` | sm_61 | 1, 1/4 |
//! | `a.leading_zeros()` | `clz.b32` | sm_61 | 1/4 |
//! | `a.leading_ones()` | `clz.b32` | sm_61 | 1/4 |
//! | `a.trailing_zeros()` | `brev.b32`, `clz.b32` | sm_61 | 1/2, 1/4 |
//! | `a.trailing_ones()` | `not.b32`, `brev.b32`, `clz.b32` | sm_61 | 1, 1/2, 1/4 |
//! | `a.reverse_bits()` | `brev.b32` | sm_61 | 1/2 |
//! | `a.swap_bytes()` | `prmt.b32` | sm_61 | 1 |
//! | `a.rotate_left(b)` | `shf.l.wrap.b32` | sm_61 | 1/2 |
//! | `a.rotate_right(b)` | `sub.u32`, `shf.l.wrap.b32` | sm_61 | 1, 1/2 |
//! | `a.wrapping_add(b)` | `or.b32`, `add.u32` | sm_61 | 1 |
//! | `a.wrapping_sub(b)` | `sub.u32` | sm_61 | 1 |
//! | `a.wrapping_mul(b)` | `mul.lo.u32` | sm_61 | sequence |
//! | `a.wrapping_shl(b)` | `and.b32`, `shl.b32` | sm_61 | 1, 1/2 |
//! | `a.wrapping_shr(b)` | `and.b32`, `shr.u32` | sm_61 | 1, 1/2 |
//! | `a.div_ceil(b)` | `div.u32`, `rem.u32`, `setp.ne.u32`, `selp.u32`, `add.u32` | sm_61 | 1, 1/2, sequence |
//! | `a.next_multiple_of(b)` | `div.u32`, `rem.u32`, `setp.ne.u32`, `selp.u32`, `add.u32`, `mul.lo.u32` | sm_61 | 1, 1/2, sequence |
//! | `a.next_power_of_two()` | `sub.u32`, `clz.b32`, `and.b32`, `shr.u32`, `setp.gt.u32`, `selp.u32`, `add.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `a.is_power_of_two()` | `popc.b32`, `setp.eq.u32`, `selp.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `a.saturating_add(b)` | `or.b32`, `not.b32`, `min.u32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `a.saturating_sub(b)` | `min.u32`, `sub.u32` | sm_61 | 1, 1/2 |
//! | `a.div_euclid(b)` | `div.u32` | sm_61 | sequence |
//! | `a.rem_euclid(b)` | `rem.u32` | sm_61 | sequence |
//! | `a.checked_add(b)` | `add.u32`, `setp.ge.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.checked_sub(b)` | `sub.u32`, `setp.ge.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.checked_mul(b)` | `mul.lo.u32`, `mul.hi.u32`, `setp.eq.u32`, `selp.u32` | sm_61 | 1, 1/2, sequence |
//! | `a.checked_div(b)` | `sub.u32`, `setp.eq.u32`, 2 `selp.u32`, `div.u32`, `setp.ne.u32` | sm_61 | 1, 1/2, sequence |
//! | `a.checked_rem(b)` | `sub.u32`, `setp.eq.u32`, 2 `selp.u32`, `rem.u32`, `setp.ne.u32` | sm_61 | 1, 1/2, sequence |
//! | `a.overflowing_add(b)` | `add.u32`, `setp.lt.u32`, `selp.u32`, `xor.b32` | sm_61 | 1, 1/2 |
//! | `a.overflowing_sub(b)` | `sub.u32`, `setp.lt.u32`, `selp.u32`, `xor.b32` | sm_61 | 1, 1/2 |
//! | `a.overflowing_mul(b)` | `mul.lo.u32`, `mul.hi.u32`, `setp.ne.u32`, `selp.u32`, `xor.b32` | sm_61 | 1, 1/2, sequence |
//! | `a.saturating_mul(b)` | `mul.lo.u32`, `mul.hi.u32`, `setp.ne.u32`, `selp.u32` | sm_61 | 1, 1/2, sequence |
//! | `a.ilog2()` | `clz.b32`, `sub.u32` | sm_61 | 1, 1/4 |
//! | `a.is_multiple_of(b)` | 2 `setp.eq.u32`, 3 `selp.u32`, `rem.u32` | sm_61 | 1, 1/2, sequence |
//!
//! # Integer instructions by name
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `int::mul_hi(a, b)` | `mul.hi.u32` | sm_61 | sequence |
//! | `int::widening_mul(a, b)` | `mul.lo.u32`, `mul.hi.u32`, `xor.b32` | sm_61 | 1, sequence |
//! | `int::carrying_add(a, b, carry)` | `and.b32`, `setp.eq.u32`, 2 `add.u32`, 2 `setp.lt.u32`, 2 `selp.u32`, `or.pred`, `xor.b32` | sm_61 | 1, 1/2 |
//! | `int::borrowing_sub(a, b, borrow)` | `and.b32`, `setp.eq.u32`, 2 `sub.u32`, 2 `setp.lt.u32`, 2 `selp.u32`, `or.pred`, `xor.b32` | sm_61 | 1, 1/2 |
//! | `int::mul24(a, b)` | 2 `and.b32`, `mul24.lo.u32` | sm_61 | 1, sequence |
//! | `int::byte_perm(a, b, selector)` | `prmt.b32` | sm_61 | 1 |
//! | `int::word(bytes)` | 3 `cvt.u32.u8`, `shr.u32`, 3 `prmt.b32` | sm_61 | 1, 1/2, 1/4 |
//! | `int::funnel_shl(high, low, n)` | `shf.l.wrap.b32` | sm_61 | 1/2 |
//! | `int::funnel_shr(high, low, n)` | `shf.r.wrap.b32` | sm_61 | 1/2 |
//! | `int::extract(x, position, length)` | `bfe.u32` | sm_61 | 1/2 |
//! | `int::insert(bits, into, position, length)` | `bfi.b32` | sm_61 | 1/2 |
//! | `dp4a(a, b, c)` | `dp4a.u32.u32` | sm_61 | 1 |
//! | `dp2a_lo(a, b, c)` | `dp2a.lo.u32.u32` | sm_61 | 1 |
//! | `dp2a_hi(a, b, c)` | `dp2a.hi.u32.u32` | sm_61 | 1 |
//!
//! # Casts
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `i32 as u32` | `mov.b32` | sm_61 | 1 |
//! | `i32 as i64` | `cvt.s64.s32` | sm_61 | 1/2 |
//! | `i32 as i8` | `cvt.s32.s8` | sm_61 | 1/4 |
//! | `u32 as u64` | `cvt.u64.u32` | sm_61 | 1/2 |
//! | `i32 as f32` | `cvt.rn.f32.s32` | sm_61 | 1/4 |
//! | `f32 as i32` | `cvt.rn.f32.s32`, `mul.rn.f32`, `cvt.rzi.s32.f32` | sm_61 | 1, 1/4 |
//! | `f32 as f64` | `cvt.rn.f32.u32`, `cvt.f64.f32` | sm_61 | 1/4, 1/32 |
//! | `f64 as f32` | `cvt.rn.f64.u32`, `mul.rn.f64`, `cvt.rn.f32.f64` | sm_61 | 1/32 |
//! | `bool as u32` | `setp.lt.s32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `u32 as usize` | `add.u32` | sm_61 | 1 |
//! | `a as u64 * b as u64 >> 32` | `cvt.u64.u32`, `mul.lo.u64`, `shr.u64` | sm_61 | 1/2, sequence |
//!
//! # Floats
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `a + b` | `add.rn.f32` | sm_61 | 1 |
//! | `a - b` | `sub.rn.f32` | sm_61 | 1 |
//! | `a * b` | `mul.rn.f32` | sm_61 | 1 |
//! | `a / b` | `div.rn.f32` | sm_61 | sequence |
//! | `-a` | `neg.f32` | sm_61 | 1 |
//! | `a < b` | `setp.lt.f32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a == b` | `setp.eq.f32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.mul_add(b, c)` | `fma.rn.f32` | sm_61 | 1 |
//! | `a.abs()` | `abs.f32` | sm_61 | 1 |
//! | `a.sqrt()` | `sqrt.rn.f32` | sm_61 | sequence |
//! | `a.floor()` | `cvt.rmi.f32.f32` | sm_61 | 1/4 |
//! | `a.ceil()` | `cvt.rpi.f32.f32` | sm_61 | 1/4 |
//! | `a.trunc()` | `cvt.rzi.f32.f32` | sm_61 | 1/4 |
//! | `a.round()` | `cvt.rzi.f32.f32`, `sub.rn.f32`, `abs.f32`, 2 `mov.b32`, `and.b32`, `or.b32`, `add.rn.f32`, `setp.ge.f32`, `selp.f32` | sm_61 | 1, 1/2, 1/4 |
//! | `a.round_ties_even()` | `cvt.rni.f32.f32` | sm_61 | 1/4 |
//! | `a.min(b)` | `min.f32` | sm_61 | 1/2 |
//! | `a.max(b)` | `max.f32` | sm_61 | 1/2 |
//! | `a.clamp(low, high)` | `setp.lt.f32`, 2 `selp.f32`, `setp.gt.f32` | sm_61 | 1, 1/2 |
//! | `a.to_bits()` | `setp.neu.f32`, `mov.b32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `f32::from_bits(n)` | `setp.neu.f32`, 2 `bra`, `mov.u32`, 2 `mov.b32`, `shr.u32` | sm_61 | 1, 1/2, branch |
//! | `a.is_nan()` | `setp.neu.f32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.is_finite()` | `abs.f32`, `setp.lt.f32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.is_infinite()` | `abs.f32`, `setp.eq.f32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.is_sign_negative()` | `mov.b32`, `setp.lt.s32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.is_sign_positive()` | `mov.b32`, `setp.ge.s32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | `a.recip()` | `div.rn.f32` | sm_61 | sequence |
//! | `a.fract()` | `cvt.rzi.f32.f32`, `sub.rn.f32` | sm_61 | 1, 1/4 |
//! | `a.signum()` | 2 `mov.b32`, `and.b32`, `or.b32`, `setp.neu.f32`, `selp.f32` | sm_61 | 1, 1/2 |
//! | `a.copysign(b)` | 3 `mov.b32`, 2 `and.b32`, `or.b32` | sm_61 | 1 |
//! | `f32::INFINITY`, and the other constants | 3 `add.rn.f32` | sm_61 | 1 |
//! | `a + b` of `f64` | `add.rn.f64` | sm_61 | 1/32 |
//! | `a * b` of `f64` | `mul.rn.f64` | sm_61 | 1/32 |
//! | `a / b` of `f64` | `div.rn.f64` | sm_61 | sequence |
//! | `a.sqrt()` of `f64` | `sqrt.rn.f64` | sm_61 | sequence |
//!
//! # Floats of 16 bits
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `a + b` | 2 `cvt.f32.f16`, `add.rn.f32`, `cvt.rn.f16.f32` | sm_61 | 1, 1/4 |
//! | `a * b` | 2 `cvt.f32.f16`, `mul.rn.f32`, `cvt.rn.f16.f32` | sm_61 | 1, 1/4 |
//! | `a / b` | 2 `cvt.f32.f16`, `div.rn.f32`, `cvt.rn.f16.f32` | sm_61 | 1/4, sequence |
//! | `-a` | `cvt.u32.u16`, `xor.b32`, `cvt.u16.u32` | sm_61 | 1, 1/4 |
//! | `a < b` | 2 `cvt.f32.f16`, `setp.lt.f32`, `selp.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `a.to_f32()` | `cvt.f32.f16` | sm_61 | 1/4 |
//! | `f16::from_f32(x)` | `cvt.f32.f16`, `mul.rn.f32`, `cvt.rn.f16.f32` | sm_61 | 1, 1/4 |
//! | `bf16::from_f32(x)` | `cvt.f32.f16`, `mul.rn.f32`, 2 `mov.b32`, 2 `shr.u32`, `and.b32`, 2 `add.u32`, `setp.neu.f32`, `selp.u32`, `cvt.u32.u16`, `shl.b32` | sm_61 | 1, 1/2, 1/4 |
//! | `a.to_bits()` | `cvt.f32.f16`, `setp.eq.f32`, `cvt.u32.u16`, `selp.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `a.mul_add(b, c)` | 2 `cvt.f32.f16`, `fma.rn.f32`, `cvt.rn.f16.f32` | sm_61 | 1, 1/4 |
//! | `a.abs()` | `cvt.u32.u16`, `and.b32`, `cvt.u16.u32` | sm_61 | 1, 1/4 |
//! | `a.min(b)` | 2 `cvt.f32.f16`, `min.f32`, `cvt.rn.f16.f32` | sm_61 | 1/2, 1/4 |
//! | `a.max(b)` | 2 `cvt.f32.f16`, `max.f32`, `cvt.rn.f16.f32` | sm_61 | 1/2, 1/4 |
//!
//! # Transcendental functions
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `math::exp(x)` | `setp.lt.f32`, `selp.f32`, 9 `fma.rn.f32`, `min.f32`, `sub.rn.f32`, 3 `mov.b32`, 2 `shl.b32`, `and.b32`, `sub.u32`, 2 `mul.rn.f32` | sm_61 | 1, 1/2 |
//! | `math::exp2(x)` | `setp.lt.f32`, `selp.f32`, `add.rn.f32`, `min.f32`, 2 `sub.rn.f32`, 6 `fma.rn.f32`, 3 `mov.b32`, 2 `shl.b32`, `and.b32`, `sub.u32`, 2 `mul.rn.f32` | sm_61 | 1, 1/2 |
//! | `math::exp_m1(x)` | 2 `setp.lt.f32`, 2 `selp.f32`, 8 `fma.rn.f32`, `min.f32`, 2 `sub.rn.f32`, 2 `mov.b32`, `shl.b32`, 2 `mul.rn.f32`, 2 `add.rn.f32`, `abs.f32` | sm_61 | 1, 1/2 |
//! | `math::ln(x)` | `setp.lt.f32`, 2 `mul.rn.f32`, 4 `selp.f32`, 4 `mov.b32`, 2 `sub.u32`, `and.b32`, `sub.rn.f32`, `cvt.rn.f32.s32`, 12 `fma.rn.f32`, `setp.lt.u32`, `setp.eq.f32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::log2(x)` | `setp.lt.f32`, 2 `mul.rn.f32`, 4 `selp.f32`, 4 `mov.b32`, 2 `sub.u32`, `and.b32`, `sub.rn.f32`, `cvt.rn.f32.s32`, 12 `fma.rn.f32`, `add.rn.f32`, `setp.lt.u32`, `setp.eq.f32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::log10(x)` | `setp.lt.f32`, 2 `mul.rn.f32`, 4 `selp.f32`, 4 `mov.b32`, 2 `sub.u32`, `and.b32`, `sub.rn.f32`, `cvt.rn.f32.s32`, 14 `fma.rn.f32`, `setp.lt.u32`, `setp.eq.f32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::ln_1p(x)` | `add.rn.f32`, 7 `mov.b32`, 3 `sub.u32`, 2 `and.b32`, 13 `fma.rn.f32`, `sub.rn.f32`, `cvt.rn.f32.s32`, 2 `mul.rn.f32`, `setp.lt.u32`, 2 `selp.f32`, `setp.eq.f32`, `or.b32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::sin(x)` | `abs.f32`, 11 `fma.rn.f32`, 6 `sub.rn.f32`, 5 `mul.rn.f32`, `neg.f32`, `setp.gt.f32`, 2 `bra`, 7 `mov.b32`, 5 `and.b32`, 2 `or.b32`, 2 `shr.u32`, 3 `sub.u32`, `mov.u64`, `mad.wide.u32`, 4 `ld.global.nc.u32`, 3 `shf.l.wrap.b32`, `mul.lo.u32`, 5 `cvt.u64.u32`, 3 `shl.b64`, `mul.lo.u64`, 3 `add.u64`, 2 `mul.hi.u32`, 3 `shr.u64`, 2 `cvt.u32.u64`, 2 `sub.u64`, `setp.ne.u64`, `selp.u64`, `clz.b64`, `cvt.rn.f32.u32`, `cvt.rzi.u32.f32`, `cvt.rn.f32.s32`, 2 `shl.b32`, `selp.u32`, 2 `add.rn.f32`, 2 `mov.f32`, `setp.eq.u32`, `selp.f32`, 2 `xor.b32` | sm_61 | 1, 1/2, 1/4, sequence, global, branch |
//! | `math::cos(x)` | `abs.f32`, 11 `fma.rn.f32`, 6 `sub.rn.f32`, 5 `mul.rn.f32`, `neg.f32`, `setp.gt.f32`, 2 `bra`, 6 `mov.b32`, 5 `and.b32`, 2 `or.b32`, 2 `shr.u32`, 3 `sub.u32`, `mov.u64`, `mad.wide.u32`, 4 `ld.global.nc.u32`, 3 `shf.l.wrap.b32`, `mul.lo.u32`, 5 `cvt.u64.u32`, 3 `shl.b64`, `mul.lo.u64`, 3 `add.u64`, 2 `mul.hi.u32`, 3 `shr.u64`, 2 `cvt.u32.u64`, 2 `sub.u64`, `setp.ne.u64`, `selp.u64`, `clz.b64`, `cvt.rn.f32.u32`, `cvt.rzi.u32.f32`, `cvt.rn.f32.s32`, 2 `shl.b32`, `selp.u32`, 2 `add.rn.f32`, 2 `mov.f32`, `setp.eq.u32`, `selp.f32`, `add.u32`, `xor.b32` | sm_61 | 1, 1/2, 1/4, sequence, global, branch |
//! | `math::sin_cos(x)` | `abs.f32`, 11 `fma.rn.f32`, 7 `sub.rn.f32`, 5 `mul.rn.f32`, `neg.f32`, `setp.gt.f32`, 2 `bra`, 9 `mov.b32`, 6 `and.b32`, 2 `or.b32`, 2 `shr.u32`, 3 `sub.u32`, `mov.u64`, `mad.wide.u32`, 4 `ld.global.nc.u32`, 3 `shf.l.wrap.b32`, `mul.lo.u32`, 5 `cvt.u64.u32`, 3 `shl.b64`, `mul.lo.u64`, 3 `add.u64`, 2 `mul.hi.u32`, 3 `shr.u64`, 2 `cvt.u32.u64`, 2 `sub.u64`, `setp.ne.u64`, `selp.u64`, `clz.b64`, `cvt.rn.f32.u32`, `cvt.rzi.u32.f32`, `cvt.rn.f32.s32`, 3 `shl.b32`, `selp.u32`, 2 `add.rn.f32`, 2 `mov.f32`, `setp.eq.u32`, 2 `selp.f32`, 3 `xor.b32`, `add.u32` | sm_61 | 1, 1/2, 1/4, sequence, global, branch |
//! | `math::tan(x)` | `abs.f32`, 19 `fma.rn.f32`, 9 `sub.rn.f32`, 7 `mul.rn.f32`, 5 `neg.f32`, `setp.gt.f32`, 2 `bra`, 9 `mov.b32`, 5 `and.b32`, 2 `or.b32`, 2 `shr.u32`, 4 `sub.u32`, `mov.u64`, `mad.wide.u32`, 4 `ld.global.nc.u32`, 3 `shf.l.wrap.b32`, `mul.lo.u32`, 5 `cvt.u64.u32`, 3 `shl.b64`, `mul.lo.u64`, 3 `add.u64`, 2 `mul.hi.u32`, 3 `shr.u64`, 2 `cvt.u32.u64`, 2 `sub.u64`, `setp.ne.u64`, `selp.u64`, `clz.b64`, `cvt.rn.f32.u32`, `cvt.rzi.u32.f32`, `cvt.rn.f32.s32`, `shl.b32`, `selp.u32`, 6 `add.rn.f32`, 2 `mov.f32`, `setp.eq.u32`, `selp.f32`, `xor.b32` | sm_61 | 1, 1/2, 1/4, sequence, global, branch |
//! | `math::asin(x)` | `abs.f32`, `setp.lt.f32`, 7 `mul.rn.f32`, 14 `fma.rn.f32`, 3 `selp.f32`, 5 `mov.b32`, `shr.u32`, `sub.u32`, 3 `neg.f32`, 3 `add.rn.f32`, `setp.gt.f32`, 2 `sub.rn.f32`, 2 `and.b32`, `or.b32` | sm_61 | 1, 1/2 |
//! | `math::acos(x)` | `abs.f32`, `setp.lt.f32`, 6 `mul.rn.f32`, 12 `fma.rn.f32`, 7 `selp.f32`, 2 `mov.b32`, `shr.u32`, `sub.u32`, 3 `neg.f32`, 5 `add.rn.f32`, `setp.ge.f32`, 2 `sub.rn.f32`, `setp.gt.f32` | sm_61 | 1, 1/2 |
//! | `math::atan(x)` | `abs.f32`, `setp.gt.f32`, `min.f32`, 5 `mov.b32`, `sub.u32`, 2 `neg.f32`, 15 `fma.rn.f32`, 3 `selp.f32`, 2 `mul.rn.f32`, `add.rn.f32`, `sub.rn.f32`, 2 `and.b32`, `or.b32` | sm_61 | 1, 1/2 |
//! | `math::atan2(y, x)` | `abs.f32`, 2 `setp.gt.f32`, 10 `selp.f32`, 6 `mov.b32`, 2 `sub.u32`, `setp.lt.u32`, 4 `bra`, 3 `mov.f32`, 3 `setp.eq.f32`, 8 `mul.rn.f32`, 4 `neg.f32`, 17 `fma.rn.f32`, `not.pred`, 2 `add.rn.f32`, 2 `and.b32`, `or.b32` | sm_61 | 1, 1/2, branch |
//! | `math::sinh(x)` | `abs.f32`, `setp.gt.f32`, 3 `selp.f32`, 2 `setp.lt.f32`, 10 `fma.rn.f32`, 2 `sub.rn.f32`, 4 `mul.rn.f32`, 8 `mov.b32`, `shl.b32`, `sub.u32`, `max.s32`, 3 `add.rn.f32`, 2 `and.b32`, `or.b32` | sm_61 | 1, 1/2 |
//! | `math::cosh(x)` | `abs.f32`, `setp.gt.f32`, `selp.f32`, 9 `fma.rn.f32`, 2 `sub.rn.f32`, 3 `mul.rn.f32`, 5 `mov.b32`, `shl.b32`, `sub.u32`, `max.s32`, 3 `add.rn.f32` | sm_61 | 1, 1/2 |
//! | `math::tanh(x)` | `abs.f32`, 2 `mul.rn.f32`, 21 `fma.rn.f32`, `min.f32`, 2 `add.rn.f32`, `sub.rn.f32`, 8 `mov.b32`, `shl.b32`, `add.u32`, `sub.u32`, 2 `neg.f32`, `setp.ge.f32`, `selp.f32`, 2 `and.b32`, `or.b32` | sm_61 | 1, 1/2 |
//! | `math::asinh(x)` | `abs.f32`, 8 `mul.rn.f32`, 23 `fma.rn.f32`, 3 `sub.rn.f32`, 9 `mov.b32`, `shr.u32`, 4 `sub.u32`, 2 `neg.f32`, 5 `add.rn.f32`, `setp.gt.f32`, 5 `selp.f32`, 3 `and.b32`, `cvt.rn.f32.s32`, 2 `setp.lt.f32`, `or.b32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::acosh(x)` | 3 `setp.lt.f32`, 8 `mul.rn.f32`, 25 `fma.rn.f32`, 3 `sub.rn.f32`, 8 `selp.f32`, 4 `neg.f32`, 6 `mov.b32`, `shr.u32`, 4 `sub.u32`, 8 `add.rn.f32`, `setp.gt.f32`, `and.b32`, `cvt.rn.f32.s32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::atanh(x)` | `abs.f32`, 6 `mul.rn.f32`, 24 `fma.rn.f32`, 2 `add.rn.f32`, 4 `sub.rn.f32`, 9 `mov.b32`, 4 `sub.u32`, 3 `neg.f32`, 3 `and.b32`, `cvt.rn.f32.s32`, `setp.eq.f32`, 3 `selp.f32`, 2 `setp.lt.f32`, `or.b32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::sigmoid(x)` | `abs.f32`, `setp.gt.f32`, 4 `neg.f32`, 4 `selp.f32`, 16 `fma.rn.f32`, 3 `sub.rn.f32`, 8 `mul.rn.f32`, 6 `add.rn.f32`, 3 `mov.b32`, 2 `shl.b32`, `and.b32`, `sub.u32`, `setp.lt.f32` | sm_61 | 1, 1/2 |
//! | `math::erf(x)` | `abs.f32`, `mul.rn.f32`, 18 `fma.rn.f32`, `min.f32`, 4 `sub.rn.f32`, 6 `mov.b32`, `shl.b32`, `add.u32`, `setp.ge.f32`, `selp.f32`, 2 `and.b32`, `or.b32` | sm_61 | 1, 1/2 |
//! | `math::pow(x, y)` | 2 `abs.f32`, 3 `setp.lt.f32`, 9 `mul.rn.f32`, 8 `selp.f32`, 7 `mov.b32`, 4 `sub.u32`, 2 `and.b32`, `cvt.rn.f32.s32`, 23 `fma.rn.f32`, 9 `sub.rn.f32`, 9 `add.rn.f32`, 5 `neg.f32`, `setp.gt.f32`, `max.f32`, `min.f32`, 2 `shl.b32`, `setp.lt.u32`, 2 `bra`, `mov.f32`, 4 `setp.eq.f32`, 2 `or.pred`, 2 `setp.neu.f32`, `and.pred` | sm_61 | 1, 1/2, 1/4, branch |
//! | `math::cbrt(x)` | `abs.f32`, `setp.lt.f32`, 9 `mul.rn.f32`, 3 `selp.f32`, 5 `mov.b32`, `cvt.rn.f32.u32`, 7 `fma.rn.f32`, `cvt.rzi.u32.f32`, 2 `neg.f32`, 2 `setp.eq.f32`, `or.pred`, 2 `and.b32`, `or.b32` | sm_61 | 1, 1/2, 1/4 |
//! | `math::rsqrt(x)` | 5 `mov.b32`, 3 `sub.u32`, `setp.lt.u32`, 4 `bra`, 2 `shr.u32`, 10 `mul.rn.f32`, 4 `neg.f32`, 10 `fma.rn.f32`, `setp.gt.f32`, `setp.lt.f32`, `and.pred`, `setp.eq.f32`, `and.b32`, `or.b32`, 2 `selp.f32` | sm_61 | 1, 1/2, branch |
//! | `math::hypot(x, y)` | `abs.f32`, `setp.lt.f32`, 3 `selp.f32`, 5 `mov.b32`, `and.b32`, `max.u32`, `min.u32`, 2 `sub.u32`, 7 `mul.rn.f32`, 6 `fma.rn.f32`, `shr.u32`, 2 `neg.f32`, `add.rn.f32`, 2 `setp.eq.f32`, `or.pred` | sm_61 | 1, 1/2 |
//!
//! # The hardware's approximations
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `fast::exp2(x)` | `ex2.approx.ftz.f32` | sm_61 | 1/4 |
//! | `fast::exp(x)` | `mul.rn.f32`, `ex2.approx.ftz.f32` | sm_61 | 1, 1/4 |
//! | `fast::log2(x)` | `lg2.approx.ftz.f32` | sm_61 | 1/4 |
//! | `fast::ln(x)` | `lg2.approx.ftz.f32`, `mul.rn.f32` | sm_61 | 1, 1/4 |
//! | `fast::rcp(x)` | `rcp.approx.ftz.f32` | sm_61 | 1/4 |
//! | `fast::sqrt(x)` | `sqrt.approx.ftz.f32` | sm_61 | 1/4 |
//! | `fast::rsqrt(x)` | `rsqrt.approx.ftz.f32` | sm_61 | 1/4 |
//! | `fast::sin(x)` | `sin.approx.ftz.f32` | sm_61 | 1/4 |
//! | `fast::cos(x)` | `cos.approx.ftz.f32` | sm_61 | 1/4 |
//! | `fast::tanh(x)` | `mul.rn.f32`, `ex2.approx.ftz.f32`, `add.rn.f32`, `rcp.approx.ftz.f32`, `fma.rn.f32` | sm_61 | 1, 1/4 |
//! | `fast::div(x, y)` | `rcp.approx.ftz.f32`, `mul.rn.f32` | sm_61 | 1, 1/4 |
//!
//! # Statements and control
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `let x = …;` | `add.u32`, `mul.lo.u32` | sm_61 | 1, sequence |
//! | `let mut x`, `x = …` | `shl.b32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `let x;`, set later | `setp.gt.u32`, `selp.u32` | sm_61 | 1, 1/2 |
//! | shadowing | `add.u32`, `shl.b32` | sm_61 | 1, 1/2 |
//! | `(x, y) = (y, x)` | `mul.lo.u32`, `add.u32` | sm_61 | 1, sequence |
//! | `std::mem::swap(&mut a, &mut b)` | `mul.lo.u32`, `add.u32` | sm_61 | 1, sequence |
//! | `{ … }`, a block as a value | `mul.lo.u32`, 2 `add.u32` | sm_61 | 1, sequence |
//! | `if`, `else if`, `else` | 2 `setp.gt.u32`, `sub.u32`, `mul.lo.u32`, 2 `selp.u32` | sm_61 | 1, 1/2, sequence |
//! | `p && q`, `p \|\| q` | `setp.ne.u32`, 2 `bra`, `div.u32`, `setp.gt.u32`, `mov.pred`, `setp.eq.u32`, `or.pred`, `selp.u32` | sm_61 | 1, 1/2, sequence, branch |
//! | `if let` | `setp.gt.u32`, 2 `selp.u32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `if let … && …` | `setp.gt.u32`, `selp.u32`, 3 `bra`, `and.b32`, `setp.eq.u32`, 2 `mov.u32` | sm_61 | 1, 1/2, branch |
//! | `let … else` | `setp.gt.u32`, `selp.u32`, 2 `bra`, 2 `mov.u32` | sm_61 | 1, 1/2, branch |
//! | `assert!(…)` | `add.u32` | sm_61 | 1 |
//! | `panic!(…)` | `setp.gt.u32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `log!(…)` | `setp.gt.u32`, `bra`, 2 `mov.u32`, 7 `st.local.u32`, 2 `mov.u64`, `cvta.global.u64`, `cvta.local.u64`, 2 `st.param.b64`, `add.u32` | sm_61 | 1, 1/2, global, branch |
//! | `matches!(x, …)` | `setp.eq.u32`, `setp.ge.u32`, `setp.le.u32`, `and.pred`, `or.pred`, `selp.u32` | sm_61 | 1, 1/2 |
//!
//! # Patterns
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `match`, of numbers | 3 `setp.eq.u32`, 3 `selp.u32` | sm_61 | 1, 1/2 |
//! | `1..=4`, `5..` | `setp.lt.u32`, `setp.le.u32`, 2 `selp.u32` | sm_61 | 1, 1/2 |
//! | `p \| q` | 5 `setp.eq.u32`, 3 `or.pred`, `shl.b32`, 2 `selp.u32` | sm_61 | 1, 1/2 |
//! | `Some(x) \| Other(x)`, alternatives that bind | 4 `setp.eq.u32`, 2 `or.pred`, 3 `selp.u32`, `mul.lo.u32` | sm_61 | 1, 1/2, sequence |
//! | `x @ 1..=4` | `setp.ge.u32`, `setp.le.u32`, `and.pred`, `mul.lo.u32`, `selp.u32` | sm_61 | 1, 1/2, sequence |
//! | `x if …` | `shl.b32`, `setp.gt.u32`, `sub.u32`, `setp.eq.u32`, 2 `selp.u32` | sm_61 | 1, 1/2 |
//! | `(p, q)` | `and.b32`, 4 `setp.eq.u32`, `and.pred`, 3 `selp.u32` | sm_61 | 1, 1/2 |
//! | `[p, .., q]` | `mul.lo.u32`, `add.u32` | sm_61 | 1, sequence |
//! | `Some(p)` | `setp.gt.u32`, 4 `selp.u32`, `setp.eq.u32`, `and.pred` | sm_61 | 1, 1/2 |
//! | `true`, `false` | 2 `setp.gt.u32`, 2 `and.pred`, `setp.le.u32`, 2 `selp.u32` | sm_61 | 1, 1/2 |
//! | `_` | none | sm_61 |  |
//! | `-1`, of signed numbers | `mov.b32`, `sub.s32`, 3 `setp.eq.s32`, 3 `selp.u32` | sm_61 | 1, 1/2 |
//!
//! # Loops
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `while` | 2 `mov.u32`, `setp.gt.u32`, 3 `bra`, `add.u32`, `shr.u32` | sm_61 | 1, 1/2, branch |
//! | `while let` | `mov.pred`, 2 `mov.u32`, 4 `bra`, `add.u32`, `setp.gt.u32`, `sub.u32`, `selp.u32` | sm_61 | 1, 1/2, branch |
//! | `loop`, `break` with a value | `setp.gt.u32`, 3 `bra`, `mov.u32`, `shl.b32`, `add.u32` | sm_61 | 1, 1/2, branch |
//! | `break` | 2 `mov.u32`, `setp.gt.u32`, 2 `bra`, 2 `add.u32`, `setp.lt.u32` | sm_61 | 1, 1/2, branch |
//! | `continue` | 2 `rem.u32`, 2 `mov.u32`, `setp.ge.u32`, 3 `bra`, `setp.eq.u32`, 2 `add.u32`, `setp.lt.u32` | sm_61 | 1, 1/2, sequence, branch |
//! | `'name: for`, `break 'name`, `continue 'name` | 3 `mov.u32`, 2 `setp.ge.u32`, 6 `bra`, 2 `setp.gt.u32`, 3 `add.u32`, 2 `setp.lt.u32` | sm_61 | 1, 1/2, branch |
//! | `'name: { … break 'name x … }` | 2 `setp.gt.u32`, 4 `bra`, 3 `mov.u32` | sm_61 | 1, 1/2, branch |
//! | `for i in a..b` | `mov.u32`, `setp.ge.u32`, 2 `bra`, `shl.b32`, 2 `add.u32`, `rem.u32`, `setp.lt.u32` | sm_61 | 1, 1/2, sequence, branch |
//! | `(a..b).step_by(n)` | 2 `mov.u32`, `setp.ge.u32`, 2 `bra`, 2 `add.u32`, `setp.lt.u32` | sm_61 | 1, 1/2, branch |
//! | `(a..b).rev()` | 2 `mov.u32`, `setp.ge.u32`, 2 `bra`, 2 `sub.u32`, `mul.lo.u32`, 2 `add.u32`, `rem.u32`, `setp.lt.u32` | sm_61 | 1, 1/2, sequence, branch |
//! | `for i in a..=b` | `cvt.u64.u32`, 2 `add.u64`, `mov.u64`, `mov.u32`, `setp.ge.u64`, 2 `bra`, `cvt.u32.u64`, `mul.lo.u32`, `add.u32`, `rem.u32`, `setp.lt.u64` | sm_61 | 1, 1/2, sequence, branch |
//! | `.enumerate()` | `min.u32`, `sub.u32`, 2 `mov.u32`, `setp.ge.u32`, 2 `bra`, 3 `add.u32`, `mul.lo.u32`, `setp.lt.u32` | sm_61 | 1, 1/2, sequence, branch |
//! | `for x in array` | 2 `shl.b32`, 2 `add.u32` | sm_61 | 1, 1/2 |
//! | `for x in &array`, `array.iter()` | 2 `shl.b32`, 4 `add.u32` | sm_61 | 1, 1/2 |
//! | `for x in &mut array` | 2 `add.u32`, `mul.lo.u32` | sm_61 | 1, sequence |
//! | `unroll(a..b)` | 4 `shl.b32`, 3 `add.u32` | sm_61 | 1, 1/2 |
//! | `unroll_by::<N>(a..b)` | `min.u32`, `sub.u32`, `shr.u32`, `and.b32`, `setp.ne.u32`, `selp.u32`, 6 `add.u32`, `shl.b32`, 3 `mov.u32`, `setp.ge.u32`, 4 `bra`, 3 `mul.lo.u32`, 2 `setp.lt.u32` | sm_61 | 1, 1/2, sequence, branch |
//! | `rolled(a..b)` | `mov.s32`, `shl.b32`, `mov.b32`, `add.u32`, `add.s32`, `setp.lt.s32`, `bra` | sm_61 | 1, 1/2, branch |
//!
//! # Functions
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `\|x\| …` | 2 `mul.lo.u32`, `add.u32` | sm_61 | 1, sequence |
//! | a closure that captures by reference | `add.u32` | sm_61 | 1 |
//! | a call of a `#[device] fn` | `mul.lo.u32`, `add.u32` | sm_61 | 1, sequence |
//! | `impl Fn(A) -> B` | 2 `add.u32` | sm_61 | 1 |
//! | a function's path for `impl Fn` | 2 `mul.lo.u32` | sm_61 | sequence |
//! | `&mut` parameters | 2 `add.u32` | sm_61 | 1 |
//! | a pattern as a parameter | 2 `add.u32`, `mul.lo.u32` | sm_61 | 1, sequence |
//! | `return` | `setp.gt.u32`, 2 `bra`, 2 `mov.u32`, `add.u32` | sm_61 | 1, 1/2, branch |
//! | generic over a constant | 2 `add.u32` | sm_61 | 1 |
//! | generic over types | none | sm_61 |  |
//!
//! # Items
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `#[device] const` | depends on its use | sm_61 |  |
//! | `TABLE[i]`, read by each lane | depends on its use | sm_61 |  |
//! | `TABLE[i]`, read by the warp | depends on its use | sm_61 |  |
//! | `#[device] struct` | depends on its use | sm_61 |  |
//! | `#[device] struct`, of a tuple | depends on its use | sm_61 |  |
//! | `#[device] struct`, generic | depends on its use | sm_61 |  |
//! | `Struct { field, ..rest }` | depends on its use | sm_61 |  |
//! | a pattern of a struct | depends on its use | sm_61 |  |
//! | `#[device] enum` | depends on its use | sm_61 |  |
//! | `#[device] enum`, with data | depends on its use | sm_61 |  |
//! | `#[repr(C)]` elements of buffers | depends on its use | sm_61 |  |
//! | `#[derive(DeviceCopy)]` in shared memory | depends on its use | sm_61 |  |
//! | a method | depends on its use | sm_61 |  |
//! | a method with `&mut self` | depends on its use | sm_61 |  |
//! | an associated function | depends on its use | sm_61 |  |
//! | an associated constant | depends on its use | sm_61 |  |
//! | `trait`, `impl Trait for` | depends on its use | sm_61 |  |
//! | a provided method | depends on its use | sm_61 |  |
//! | an associated type | depends on its use | sm_61 |  |
//! | an `impl` over generic types | depends on its use | sm_61 |  |
//! | `impl Add for`, and other operators | depends on its use | sm_61 |  |
//! | `#[device] type` | depends on its use | sm_61 |  |
//! | `const N: usize` of a kernel | depends on its use | sm_61 |  |
//! | `ptx!(…)` | depends on its use | sm_61 |  |
//! | a constant array at an index of run time | depends on its use | sm_61 |  |
//! | `const { assert!(…) }` | depends on its use | sm_61 |  |
//! | `const K: i32` of a kernel, and other integers | depends on its use | sm_61 |  |
//! | `const P: bool` of a kernel | depends on its use | sm_61 |  |
//! | `T: Float` of a kernel | depends on its use | sm_61 |  |
//! | `F: DeviceFn` of a kernel | depends on its use | sm_61 |  |
//! | `derived(N = …)` | depends on its use | sm_61 |  |
//!
//! # Slices
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `x[i]` | `mad.wide.u32`, `ld.global.nc.f32` | sm_61 | 1/2, global |
//! | `y[i] = v` | `mad.wide.u32`, `st.global.f32` | sm_61 | 1/2, global |
//! | `x.len()` | none | sm_61 |  |
//! | `x.is_empty()` | `setp.eq.u32` | sm_61 | 1/2 |
//! | `x.get(i).copied()` | `shl.b32`, `setp.lt.u32`, `mad.wide.u32`, `mov.f32`, `ld.global.nc.f32` | sm_61 | 1, 1/2, global |
//! | `x.load::<4>(i)` | `shr.u32`, `shl.b32`, `mad.wide.u32`, `ld.global.nc.v4.f32` | sm_61 | 1/2, global |
//! | `x.load_or::<4>(i, other)` | `shl.b32`, `setp.lt.u32`, `mad.wide.u32`, `sub.u32`, 2 `mov.f32`, 2 `ld.global.nc.f32`, `setp.gt.u32`, `and.pred` | sm_61 | 1, 1/2, global |
//!
//! # Views
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `v[(row, col)]` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `ld.global.nc.f32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.rows()` | none | sm_61 |  |
//! | `v.cols()` | none | sm_61 |  |
//! | `v.dim(d)` | none | sm_61 |  |
//! | `v.at(i)` | `sub.u32`, `mul.lo.u32` | sm_61 | 1, sequence |
//! | `v.len()` | none | sm_61 |  |
//! | `v.offset((row, col))` | `mul.lo.u32` | sm_61 | sequence |
//! | `v.get((row, col))` | 2 `add.u32`, 2 `setp.lt.u32`, `and.pred`, `mul.lo.u32`, `mad.wide.u32`, `mov.f32`, `ld.global.nc.f32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.is_empty()` | 2 `setp.eq.u32`, `or.pred` | sm_61 | 1, 1/2 |
//! | `v.load::<4>((row, col))` | `shr.u32`, `shl.b32`, `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `ld.global.nc.v4.f32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.load_or::<4>((row, col), other)` | 2 `setp.lt.u32`, 2 `and.pred`, `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `sub.u32`, 2 `mov.f32`, 2 `ld.global.nc.f32`, `setp.gt.u32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.store((row, col), values)` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `st.global.v4.f32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.store_in((row, col), values)` | 2 `setp.lt.u32`, 4 `and.pred`, `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `sub.u32`, 4 `st.global.f32`, 3 `setp.gt.u32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.stride(d)` | none | sm_61 |  |
//! | `v.strided()` | none | sm_61 |  |
//! | `v.transposed()` | none | sm_61 |  |
//! | `v.streaming()` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `ld.global.cs.nc.f32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.bypass_l1()` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `ld.global.cg.f32` | sm_61 | 1, 1/2, sequence, global |
//!
//! # Atomic operations
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `v.fetch_add(at, value)` | `mov.u32`, `and.b32`, `add.u32`, `mad.wide.u32`, `red.global.add.u32` | sm_61 | 1, 1/2, atomic |
//! | `v.fetch_sub(at, value)` | `mov.u32`, `and.b32`, `add.u32`, `mad.wide.u32`, `red.global.add.u32` | sm_61 | 1, 1/2, atomic |
//! | `v.fetch_min(at, value)` | `and.b32`, `add.u32`, `mad.wide.u32`, `red.global.min.u32` | sm_61 | 1, 1/2, atomic |
//! | `v.fetch_max(at, value)` | `and.b32`, `add.u32`, `mad.wide.u32`, `red.global.max.u32` | sm_61 | 1, 1/2, atomic |
//! | `v.fetch_and(at, value)` | `and.b32`, `add.u32`, `mad.wide.u32`, `red.global.and.b32` | sm_61 | 1, 1/2, atomic |
//! | `v.fetch_or(at, value)` | `and.b32`, `add.u32`, `mad.wide.u32`, `red.global.or.b32` | sm_61 | 1, 1/2, atomic |
//! | `v.fetch_xor(at, value)` | `and.b32`, `add.u32`, `mad.wide.u32`, `red.global.xor.b32` | sm_61 | 1, 1/2, atomic |
//! | `v.load_relaxed(at)`, `v.read_volatile(at)` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `ld.volatile.global.u32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.load_acquire(at)` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `ld.volatile.global.u32`, `membar.gl` | sm_61 | 1, 1/2, sequence, global, barrier |
//! | `v.store_relaxed(at, value)`, `v.write_volatile(at, value)` | 2 `mul.lo.u32`, 2 `add.u32`, 2 `mad.wide.u32`, `ld.global.nc.u32`, `st.volatile.global.u32` | sm_61 | 1, 1/2, sequence, global |
//! | `v.store_release(at, value)` | 2 `mul.lo.u32`, 2 `add.u32`, 2 `mad.wide.u32`, `ld.global.nc.u32`, `membar.gl`, `st.volatile.global.u32` | sm_61 | 1, 1/2, sequence, global, barrier |
//! | `v.exchange(at, value)` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `atom.global.exch.b32` | sm_61 | 1, 1/2, sequence, atomic |
//! | `v.compare_exchange(at, expected, value)` | `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `atom.global.cas.b32` | sm_61 | 1, 1/2, sequence, atomic |
//!
//! # Fences
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `fence::block()` | `membar.cta` | sm_61 | barrier |
//! | `fence::grid()` | `membar.gl` | sm_61 | barrier |
//! | `fence::system()` | `membar.sys` | sm_61 | barrier |
//!
//! # Shared memory
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `Shared::<T, R>::new(shape)` | none | sm_61 |  |
//! | `s[i] = v` | `shl.b32`, `mov.u32`, `add.u32`, `st.shared.u32` | sm_61 | 1, 1/2, shared |
//! | `s[i]` | `shl.b32`, `mov.u32`, `add.u32`, `ld.shared.f32` | sm_61 | 1, 1/2, shared |
//! | `Shared::<T, R>::padded(shape)` | none | sm_61 |  |
//! | `Shared::<T, R>::with_pitch(shape, pitch)` | none | sm_61 |  |
//! | `Shared::<T, R>::swizzled(shape)` | none | sm_61 |  |
//! | `Shared::<T, R>::dynamic(shape)` | none | sm_61 |  |
//! | `Shared::over(other, shape)` | none | sm_61 |  |
//! | `s.cast::<U>()` | none | sm_61 |  |
//! | `s.at(i)` | none | sm_61 |  |
//! | `std::mem::swap(&mut s, &mut t)` | 3 `mov.u32` | sm_61 | 1 |
//! | `[s, t][i]` | none | sm_61 |  |
//! | `s.dim(d)` | none | sm_61 |  |
//! | `s.len()` | none | sm_61 |  |
//! | `s.rows()` | none | sm_61 |  |
//! | `s.cols()` | none | sm_61 |  |
//! | `s.fill(value)` | 2 `mov.u32`, 2 `setp.lt.u32`, `shl.b32`, 2 `add.u32`, 2 `st.shared.f32` | sm_61 | 1, 1/2, shared |
//! | `s.get(i)` | `mov.f32`, `ld.shared.f32` | sm_61 | 1, shared |
//! | `s.load::<4>(i)` | `shr.u32`, `shl.b32`, `mov.u32`, `add.u32`, `ld.shared.v4.f32` | sm_61 | 1, 1/2, shared |
//! | `s.load_or::<4>(i, other)` | `setp.lt.u32`, `sub.u32`, `shl.b32`, `mov.u32`, `add.u32`, 2 `mov.f32`, 2 `ld.shared.f32`, `setp.gt.u32`, `and.pred` | sm_61 | 1, 1/2, shared |
//! | `s.store(i, values)` | 2 `shl.b32`, `mov.u32`, `add.u32`, `st.shared.v4.f32` | sm_61 | 1, 1/2, shared |
//! | `s.store_in(i, values)` | 2 `shl.b32`, `setp.lt.u32`, `sub.u32`, `mov.u32`, `add.u32`, 4 `st.shared.f32`, 3 `setp.gt.u32`, 3 `and.pred` | sm_61 | 1, 1/2, shared |
//! | `s.fetch_add(i, value)` | `and.b32`, `shl.b32`, `mov.u32`, `add.u32`, `red.shared.add.u32` | sm_61 | 1, 1/2, atomic |
//! | `s.fetch_max(i, value)` | `and.b32`, `shl.b32`, `mov.u32`, `add.u32`, `red.shared.max.u32` | sm_61 | 1, 1/2, atomic |
//!
//! # Copies to shared memory
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `s.copy_from(view)` | `and.b32`, `shr.u32`, 2 `setp.lt.u32`, `and.pred`, `mul.lo.u32`, 3 `add.u32`, `mad.wide.u32`, `mov.f32`, `ld.global.nc.f32`, 2 `shl.b32`, `mov.u32`, `st.shared.f32` | sm_61 | 1, 1/2, sequence, shared, global |
//! | `s.copy_async(view)` | `and.b32`, `shr.u32`, 2 `setp.lt.u32`, `and.pred`, `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `mov.f32`, `ld.global.nc.f32` | sm_61 | 1, 1/2, sequence, global |
//! | `p.wait()` | 2 `shl.b32`, 2 `add.u32`, `mov.u32`, `st.shared.f32` | sm_61 | 1, 1/2, shared |
//! | `s.copy_async_map(view, \|x\| …)` | `and.b32`, `shr.u32`, 2 `setp.lt.u32`, `and.pred`, `mul.lo.u32`, `add.u32`, `mad.wide.u32`, `mov.f32`, `ld.global.nc.f32`, `mul.rn.f32`, `cvt.rn.f16.f32` | sm_61 | 1, 1/2, 1/4, sequence, global |
//! | `p.and(q)` | `setp.lt.u32`, `and.pred`, `mov.f32`, `ld.global.nc.f32` | sm_61 | 1, 1/2, global |
//! | `Pending::none()` | none | sm_61 |  |
//! | `s.cp_async(view)` | `and.b32`, `shr.u32`, 2 `setp.lt.u32`, `and.pred`, 2 `shl.b32`, 3 `add.u32`, `mov.u32`, `mul.lo.u32`, `mad.wide.u32`, `selp.u32`, `cp.async.ca.shared.global` | sm_80 | 1, 1/2, sequence, global |
//! | `pipeline::commit()` | `cp.async.commit_group` | sm_80 | global |
//! | `pipeline::wait::<N>()` | `cp.async.wait_group` | sm_80 | global |
//!
//! # Places
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `thread::x()` | `mov.u32` | sm_61 | 1 |
//! | `thread::y()` | none | sm_61 |  |
//! | `thread::z()` | none | sm_61 |  |
//! | `thread::index()` | `mov.u32` | sm_61 | 1 |
//! | `thread::local::<[T; N]>()` | none | sm_61 |  |
//! | `stack[i] = v` | `mov.u32`, `mad.lo.u32`, `st.local.u32` | sm_61 | 1, 1/2, global |
//! | `stack[i]` | `mov.u32`, `mad.lo.u32`, `ld.local.u32` | sm_61 | 1, 1/2, global |
//! | `block::x()` | `mov.u32` | sm_61 | 1 |
//! | `block::y()` | `mov.u32` | sm_61 | 1 |
//! | `block::z()` | `mov.u32` | sm_61 | 1 |
//! | `block::dim_x()` | none | sm_61 |  |
//! | `block::dim_y()` | none | sm_61 |  |
//! | `block::dim_z()` | none | sm_61 |  |
//! | `block::threads()` | none | sm_61 |  |
//! | `grid::dim_x()` | `mov.u32` | sm_61 | 1 |
//! | `grid::dim_y()` | `mov.u32` | sm_61 | 1 |
//! | `grid::dim_z()` | `mov.u32` | sm_61 | 1 |
//! | `grid::index()` | 2 `mov.u32`, `shl.b32`, `add.u32` | sm_61 | 1, 1/2 |
//! | `grid::threads()` | `mov.u32`, `shl.b32` | sm_61 | 1, 1/2 |
//! | `warp::lane()` | `mov.u32`, `and.b32` | sm_61 | 1 |
//! | `warp::index()` | `mov.u32`, `shr.u32` | sm_61 | 1, 1/2 |
//! | `warp::count()` | none | sm_61 |  |
//! | `block::stride(n)` | 2 `mov.u32`, `mad.wide.u32`, `mov.f32`, `setp.ge.u32`, 2 `bra`, `ld.global.nc.f32`, `add.rn.f32`, `add.s64`, `add.u32`, `setp.lt.u32` | sm_61 | 1, 1/2, global, branch |
//! | `grid::stride(n)` | 3 `mov.u32`, 2 `shl.b32`, 2 `add.u32`, `mov.f32`, `setp.ge.u32`, 2 `bra`, `mad.wide.u32`, `ld.global.nc.f32`, `add.rn.f32`, `setp.lt.u32` | sm_61 | 1, 1/2, global, branch |
//! | `block::share(shape)` | `mov.u32`, 2 `setp.lt.u32`, 4 `bra`, 2 `rem.u32`, 2 `div.u32`, 2 `mul.lo.u32`, 3 `add.u32`, 2 `and.b32`, 2 `mad.wide.u32`, 2 `ld.global.nc.f32`, 2 `add.rn.f32`, 2 `mov.f32` | sm_61 | 1, 1/2, sequence, global, branch |
//! | `target::SM` | none | sm_61 |  |
//!
//! # Blocks
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `block::sync()` | `bar.sync` | sm_61 | barrier |
//! | `block::sum(x)` | 6 `shfl.sync.bfly.b32`, 8 `add.u32`, 2 `and.b32`, `shr.u32`, `setp.eq.u32`, 2 `shl.b32`, 2 `mov.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32` | sm_61 | 1, 1/2, 1/4, shared, barrier |
//! | `block::max(x)` | 6 `shfl.sync.bfly.b32`, 6 `max.u32`, 2 `and.b32`, `shr.u32`, `setp.eq.u32`, 2 `shl.b32`, 2 `mov.u32`, 2 `add.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32` | sm_61 | 1, 1/2, 1/4, shared, barrier |
//! | `block::min(x)` | 6 `shfl.sync.bfly.b32`, 6 `min.u32`, 2 `and.b32`, `shr.u32`, `setp.eq.u32`, 2 `shl.b32`, 2 `mov.u32`, 2 `add.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32` | sm_61 | 1, 1/2, 1/4, shared, barrier |
//! | `block::reduce(x, \|a, b\| …)` | 6 `shfl.sync.bfly.b32`, 6 `xor.b32`, 2 `and.b32`, `shr.u32`, `setp.eq.u32`, 2 `shl.b32`, 2 `mov.u32`, 2 `add.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32` | sm_61 | 1, 1/2, 1/4, shared, barrier |
//! | `block::scan(x, zero, \|a, b\| …)` | `and.b32`, 7 `shfl.sync.up.b32`, 5 `setp.ge.u32`, 9 `add.u32`, 9 `selp.u32`, 3 `setp.eq.u32`, `shr.u32`, 2 `shl.b32`, 3 `mov.u32`, `st.shared.u32`, `bar.sync`, `setp.lt.u32`, `ld.shared.u32`, `and.pred`, 2 `shfl.sync.idx.b32`, `min.u32`, `sub.u32` | sm_61 | 1, 1/2, 1/4, shared, barrier |
//! | `block::broadcast(x, thread)` | `setp.eq.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32` | sm_61 | 1/2, shared, barrier |
//! | `block::all(p)` | `setp.gt.u32`, 2 `vote.sync.all.pred`, `selp.u32`, 2 `and.b32`, `shr.u32`, `setp.eq.u32`, 2 `shl.b32`, 2 `mov.u32`, 2 `add.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32`, `setp.ne.u32` | sm_61 | 1, 1/2, shared, barrier |
//! | `block::any(p)` | 2 `setp.eq.u32`, 2 `vote.sync.any.pred`, `selp.u32`, 2 `and.b32`, `shr.u32`, 2 `shl.b32`, 2 `mov.u32`, 2 `add.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32`, `setp.ne.u32` | sm_61 | 1, 1/2, shared, barrier |
//! | `block::count(p)` | `setp.gt.u32`, `vote.sync.ballot.b32`, `popc.b32`, 2 `and.b32`, `shr.u32`, `setp.eq.u32`, 2 `shl.b32`, 2 `mov.u32`, 3 `add.u32`, `st.shared.u32`, `bar.sync`, `ld.shared.u32`, `shfl.sync.bfly.b32` | sm_61 | 1, 1/2, 1/4, shared, barrier |
//!
//! # Warps
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `warp::sync()` | `bar.warp.sync` | sm_61 | barrier |
//! | `warp::sum(x)` | 5 `shfl.sync.bfly.b32`, 5 `add.u32` | sm_61 | 1, 1/4 |
//! | `warp::max(x)` | 5 `shfl.sync.bfly.b32`, 5 `max.u32` | sm_61 | 1/2, 1/4 |
//! | `warp::min(x)` | 5 `shfl.sync.bfly.b32`, 5 `min.u32` | sm_61 | 1/2, 1/4 |
//! | `warp::reduce(x, \|a, b\| …)` | 5 `shfl.sync.bfly.b32`, 5 `xor.b32` | sm_61 | 1, 1/4 |
//! | `warp::scan(x, \|a, b\| …)` | `and.b32`, 5 `shfl.sync.up.b32`, 5 `setp.ge.u32`, 5 `add.u32`, 5 `selp.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `warp::exclusive_scan(x, zero, \|a, b\| …)` | `and.b32`, 6 `shfl.sync.up.b32`, 5 `setp.ge.u32`, 5 `add.u32`, 6 `selp.u32`, `setp.eq.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `warp::broadcast(x, lane)` | `shfl.sync.idx.b32` | sm_61 | 1/4 |
//! | `warp::shuffle(x, lane)` | `and.b32`, `sub.u32`, `shfl.sync.idx.b32` | sm_61 | 1, 1/4 |
//! | `warp::shuffle_xor(x, mask)` | `shfl.sync.bfly.b32` | sm_61 | 1/4 |
//! | `warp::shuffle_up(x, by)` | `shfl.sync.up.b32`, `and.b32`, `setp.ge.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `warp::shuffle_down(x, by)` | `shfl.sync.down.b32`, `and.b32`, `sub.u32`, `setp.gt.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `warp::ballot(p)` | `setp.gt.u32`, `vote.sync.ballot.b32` | sm_61 | 1/2 |
//! | `warp::all(p)` | `setp.gt.u32`, `vote.sync.all.pred` | sm_61 | 1/2 |
//! | `warp::any(p)` | `setp.eq.u32`, `vote.sync.any.pred` | sm_61 | 1/2 |
//! | `warp::group::<N>()` | none | sm_61 |  |
//!
//! # Groups of lanes
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `g.lane()` | `mov.u32`, `and.b32` | sm_61 | 1 |
//! | `g.index()` | `mov.u32`, `shr.u32` | sm_61 | 1, 1/2 |
//! | `g.sum(x)` | 3 `shfl.sync.bfly.b32`, 3 `add.u32` | sm_61 | 1, 1/4 |
//! | `g.max(x)` | 2 `shfl.sync.bfly.b32`, 2 `max.u32` | sm_61 | 1/2, 1/4 |
//! | `g.min(x)` | 4 `shfl.sync.bfly.b32`, 4 `min.u32` | sm_61 | 1/2, 1/4 |
//! | `g.reduce(x, \|a, b\| …)` | 3 `shfl.sync.bfly.b32`, 3 `xor.b32` | sm_61 | 1, 1/4 |
//! | `g.scan(x, \|a, b\| …)` | `and.b32`, 3 `shfl.sync.up.b32`, 3 `setp.ge.u32`, 3 `add.u32`, 3 `selp.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `g.exclusive_scan(x, zero, \|a, b\| …)` | `and.b32`, 4 `shfl.sync.up.b32`, 3 `setp.ge.u32`, 3 `add.u32`, 4 `selp.u32`, `setp.eq.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `g.broadcast(x, lane)` | `shfl.sync.idx.b32` | sm_61 | 1/4 |
//! | `g.shuffle(x, lane)` | `and.b32`, `sub.u32`, `shfl.sync.idx.b32` | sm_61 | 1, 1/4 |
//! | `g.shuffle_xor(x, mask)` | `shfl.sync.bfly.b32` | sm_61 | 1/4 |
//! | `g.shuffle_up(x, by)` | `shfl.sync.up.b32`, `and.b32`, `setp.ge.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `g.shuffle_down(x, by)` | `shfl.sync.down.b32`, `and.b32`, `sub.u32`, `setp.gt.u32` | sm_61 | 1, 1/2, 1/4 |
//! | `g.ballot(p)` | `setp.gt.u32`, `vote.sync.ballot.b32`, 4 `and.b32`, `shr.u32` | sm_61 | 1, 1/2 |
//! | `g.all(p)` | `setp.gt.u32`, `vote.sync.ballot.b32`, 4 `and.b32`, `shr.u32`, `setp.eq.u32` | sm_61 | 1, 1/2 |
//! | `g.any(p)` | `setp.eq.u32`, `vote.sync.ballot.b32`, 4 `and.b32`, `shr.u32`, `setp.ne.u32` | sm_61 | 1, 1/2 |
//!
//! # The grid
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `grid::sync()` | 2 `bar.sync`, 9 `mov.u32`, `setp.ne.u32`, 2 `bra`, `mov.b64`, 2 `or.b32`, 2 `mul.lo.u32`, `sub.u32`, `setp.eq.u32`, `selp.u32`, 2 `membar.gl`, `atom.global.add.u32`, `ld.volatile.global.u32`, `xor.b32`, `setp.ge.s32` | sm_61 | 1, 1/2, sequence, global, atomic, barrier, branch |
//!
//! # Warps of later targets
//!
//! | construct | PTX | from | rate |
//! |---|---|---|---|
//! | `warp::match_any(x)` | `match.any.sync.b32` | sm_70 | 1/4 |
