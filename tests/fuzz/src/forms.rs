//! A table of the operations that kernels consist of: a row each, with its types.
//!
//! Each operation is defined for all operand values and passes every check. Operations that could
//! overflow, divide by zero or expose the bits of a NaN are written so that they cannot.

use kernel_dsl_compiler::Scalar::{self, *};

/// Type in a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandType {
    /// The operand type of the row.
    T,
    /// One of the result types of the row.
    R,
    /// A fixed type.
    Of(Scalar),
}

/// An operation. In its text, `$T` is the operand type, `$R` the result type, and `$W` the number
/// of bits of `$T` minus one.
#[derive(Clone, Copy, Debug)]
pub struct OperationForm {
    /// Name in the statistics.
    pub name: &'static str,
    /// Text with operands `$0`, `$1`, ….
    pub text: &'static str,
    /// Types that `T` may be.
    pub over: &'static [Scalar],
    /// Type of the result.
    pub result: OperandType,
    /// Types that `R` may be.
    pub results: &'static [Scalar],
    /// Types of the operands.
    pub takes: &'static [OperandType],
}

const WIDE: &[Scalar] = &[I32, U32, I64, U64];
const ORDERED: &[Scalar] = &[I32, U32, I64, U64, F32, F64];
const BOOLEAN: &[Scalar] = &[Bool];
const SIGNED: &[Scalar] = &[I8, I16, I32, I64];
const INTEGERS: &[Scalar] = &[I8, I16, I32, I64, U8, U16, U32, U64];
const FLOATS: &[Scalar] = &[F32, F64];
const HALVES: &[Scalar] = &[F16, Bf16];
const REALS: &[Scalar] = &[F32, F64, F16, Bf16];
const VALUES: &[Scalar] = &[I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, F16, Bf16];
const ALL: &[Scalar] = &[Bool, I8, I16, I32, I64, U8, U16, U32, U64, U128, F32, F64, F16, Bf16, Usize];
/// The types of a single thread, with `u128`.
const WHOLE: &[Scalar] = &[I8, I16, I32, I64, U8, U16, U32, U64, U128];
const NATURAL: &[Scalar] = &[U8, U16, U32, U64, U128];
const CAST: &[Scalar] = &[I8, I16, I32, I64, U8, U16, U32, U64, U128, F32, F64];
const COMPARED: &[Scalar] = &[I8, I16, I32, I64, U8, U16, U32, U64, U128, F32, F64, F16, Bf16];
const INDEX: &[Scalar] = &[Usize];
const WORD: &[Scalar] = &[U32];
const SINGLE: &[Scalar] = &[F32];
const BYTE: &[Scalar] = &[U8];
/// The numbers whose references Rust's operators take.
const REFERENCED: &[Scalar] = &[I8, I16, I32, I64, U8, U16, U32, U64, U128];

const fn form(
    name: &'static str,
    over: &'static [Scalar],
    takes: &'static [OperandType],
    result: OperandType,
    text: &'static str,
) -> OperationForm {
    OperationForm { name, text, over, result, results: &[], takes }
}

const fn cast(
    name: &'static str,
    over: &'static [Scalar],
    results: &'static [Scalar],
    text: &'static str,
) -> OperationForm {
    OperationForm { name, text, over, result: OperandType::R, results, takes: &[OperandType::T] }
}

const T: OperandType = OperandType::T;
const N: OperandType = OperandType::Of(U32);
const B: OperandType = OperandType::Of(Bool);
const X: OperandType = OperandType::Of(Usize);
const F: OperandType = OperandType::Of(F32);

/// Operations of a single thread.
pub const FORMS: &[OperationForm] = &[
    // Integers.
    form("wrapping_add", WHOLE, &[T, T], T, "$0.wrapping_add($1)"),
    form("wrapping_sub", WHOLE, &[T, T], T, "$0.wrapping_sub($1)"),
    form("wrapping_mul", WHOLE, &[T, T], T, "$0.wrapping_mul($1)"),
    form("+", WHOLE, &[T, T], T, "(($0 & 0x3f) + ($1 & 0x3f))"),
    form("- of signed", SIGNED, &[T, T], T, "(($0 & 0x3f) - ($1 & 0x3f))"),
    form("- of unsigned", NATURAL, &[T, T], T, "{ let (p, q) = ($0, $1); p.max(q) - p.min(q) }"),
    form("*", WHOLE, &[T, T], T, "(($0 & 0x7) * ($1 & 0xf))"),
    form("* by a constant", WHOLE, &[T], T, "(($0 & 0x7) * 12)"),
    form("/ of unsigned", NATURAL, &[T, T], T, "($0 / ($1 | 1))"),
    form("/ of signed", SIGNED, &[T, T], T, "($0 / match $1 { 0 | -1 => 3, d => d })"),
    form("/ by a constant", WHOLE, &[T], T, "($0 / 10)"),
    form("/ by a power of two", WHOLE, &[T], T, "($0 / 8)"),
    form("% of unsigned", NATURAL, &[T, T], T, "($0 % ($1 | 1))"),
    form("% of signed", SIGNED, &[T, T], T, "($0 % match $1 { 0 | -1 => -7, d => d })"),
    form("% by a constant", WHOLE, &[T], T, "($0 % 7)"),
    form("% by a power of two", WHOLE, &[T], T, "($0 % 16)"),
    form("&", WHOLE, &[T, T], T, "($0 & $1)"),
    form("|", WHOLE, &[T, T], T, "($0 | $1)"),
    form("^", WHOLE, &[T, T], T, "($0 ^ $1)"),
    form("!", WHOLE, &[T], T, "(!$0)"),
    form("<<", WHOLE, &[T, N], T, "($0 << ($1 & $W))"),
    form(">>", WHOLE, &[T, N], T, "($0 >> ($1 & $W))"),
    form("<< by a constant", WHOLE, &[T], T, "($0 << 3)"),
    form(">> by a constant", WHOLE, &[T], T, "($0 >> 5)"),
    form("wrapping_shl", WHOLE, &[T, N], T, "$0.wrapping_shl($1)"),
    form("wrapping_shr", WHOLE, &[T, N], T, "$0.wrapping_shr($1)"),
    form("rotate_left", WHOLE, &[T, N], T, "$0.rotate_left($1)"),
    form("rotate_right", WHOLE, &[T, N], T, "$0.rotate_right($1)"),
    form("- of one", SIGNED, &[T], T, "(-($0 >> 1))"),
    form("wrapping_neg", WHOLE, &[T], T, "$0.wrapping_neg()"),
    form("abs", SIGNED, &[T], T, "($0 >> 1).abs()"),
    form("wrapping_abs", SIGNED, &[T], T, "$0.wrapping_abs()"),
    form("signum", SIGNED, &[T], T, "$0.signum()"),
    form("is_negative", SIGNED, &[T], B, "$0.is_negative()"),
    form("is_positive", SIGNED, &[T], B, "$0.is_positive()"),
    form("unsigned_abs of 32 bits", &[I32], &[T], OperandType::Of(U32), "$0.unsigned_abs()"),
    form("unsigned_abs of 8 bits", &[I8], &[T], OperandType::Of(U8), "$0.unsigned_abs()"),
    form("unsigned_abs of 64 bits", &[I64], &[T], OperandType::Of(U64), "$0.unsigned_abs()"),
    form("min", WHOLE, &[T, T], T, "$0.min($1)"),
    form("max", WHOLE, &[T, T], T, "$0.max($1)"),
    form("clamp", WHOLE, &[T], T, "$0.clamp(3, 99)"),
    form("abs_diff", NATURAL, &[T, T], T, "$0.abs_diff($1)"),
    form("pow", WHOLE, &[T], T, "($0 & 0x3).pow(3)"),
    form("count_ones", WHOLE, &[T], N, "$0.count_ones()"),
    form("count_zeros", WHOLE, &[T], N, "$0.count_zeros()"),
    form("leading_zeros", WHOLE, &[T], N, "$0.leading_zeros()"),
    form("leading_ones", WHOLE, &[T], N, "$0.leading_ones()"),
    form("trailing_zeros", WHOLE, &[T], N, "$0.trailing_zeros()"),
    form("trailing_ones", WHOLE, &[T], N, "$0.trailing_ones()"),
    form("reverse_bits", WHOLE, &[T], T, "$0.reverse_bits()"),
    form("swap_bytes", WHOLE, &[T], T, "$0.swap_bytes()"),
    form("div_ceil", NATURAL, &[T, T], T, "$0.div_ceil($1 | 1)"),
    form("next_multiple_of", NATURAL, &[T, T], T, "($0 & 0x3f).next_multiple_of(($1 & 0x1f) | 1)"),
    form("next_power_of_two", NATURAL, &[T], T, "($0 & 0x7f).next_power_of_two()"),
    form("is_power_of_two", NATURAL, &[T], B, "$0.is_power_of_two()"),
    form("is_multiple_of", NATURAL, &[T, T], B, "$0.is_multiple_of($1)"),
    form("ilog2", NATURAL, &[T], N, "($0 | 1).ilog2()"),
    form("saturating_add", WHOLE, &[T, T], T, "$0.saturating_add($1)"),
    form("saturating_sub", WHOLE, &[T, T], T, "$0.saturating_sub($1)"),
    form("saturating_mul", NATURAL, &[T, T], T, "$0.saturating_mul($1)"),
    form("div_euclid", SIGNED, &[T, T], T, "$0.div_euclid(match $1 { 0 | -1 => 5, d => d })"),
    form("rem_euclid", SIGNED, &[T, T], T, "$0.rem_euclid(match $1 { 0 | -1 => -5, d => d })"),
    form("checked_add", WHOLE, &[T, T, T], T, "$0.checked_add($1).unwrap_or($2)"),
    form("checked_sub", WHOLE, &[T, T, T], T, "$0.checked_sub($1).unwrap_or($2)"),
    form("checked_mul", WHOLE, &[T, T, T], T, "$0.checked_mul($1).unwrap_or($2)"),
    form("checked_div", WHOLE, &[T, T, T], T, "$0.checked_div($1).unwrap_or($2)"),
    form("checked_rem", WHOLE, &[T, T, T], T, "$0.checked_rem($1).unwrap_or($2)"),
    form("overflowing_add", WHOLE, &[T, T], T, "{ let (p, q) = $0.overflowing_add($1); p ^ q as $T }"),
    form("overflowing_sub", WHOLE, &[T, T], T, "{ let (p, q) = $0.overflowing_sub($1); p ^ q as $T }"),
    form("overflowing_mul", WHOLE, &[T, T], T, "{ let (p, q) = $0.overflowing_mul($1); p ^ q as $T }"),
    form("int::mul_hi", WORD, &[T, T], T, "int::mul_hi($0, $1)"),
    form("int::widening_mul", WORD, &[T, T], T, "{ let (p, q) = int::widening_mul($0, $1); p ^ q }"),
    form("int::carrying_add", WORD, &[T, T, T], T, "{ let (p, q) = int::carrying_add($0, $1, $2 > 9); p ^ q as $T }"),
    form("int::borrowing_sub", WORD, &[T, T, T], T, "{ let (p, q) = int::borrowing_sub($0, $1, $2 > 9); p ^ q as $T }"),
    form("int::mul24", WORD, &[T, T], T, "int::mul24($0 & 0xff_ffff, $1 & 0xff_ffff)"),
    form("int::byte_perm", WORD, &[T, T], T, "int::byte_perm($0, $1, 0x1604)"),
    form("int::funnel_shl", WORD, &[T, T, N], T, "int::funnel_shl($0, $1, $2 & 31)"),
    form("int::funnel_shr", WORD, &[T, T, N], T, "int::funnel_shr($0, $1, $2 & 31)"),
    form("int::extract", WORD, &[T], T, "int::extract($0, 4, 9)"),
    form("int::insert", WORD, &[T, T], T, "int::insert($0, $1, 4, 9)"),
    form("a product of 64 bits", WORD, &[T, T], T, "((($0 as u64 * $1 as u64) >> 32) as u32)"),
    // Floats.
    form("+ of floats", REALS, &[T, T], T, "($0 + $1)"),
    form("- of floats", REALS, &[T, T], T, "($0 - $1)"),
    form("* of floats", REALS, &[T, T], T, "($0 * $1)"),
    form("/ of floats", REALS, &[T, T], T, "($0 / $1)"),
    form("- of one float", REALS, &[T], T, "(-$0)"),
    form("mul_add", REALS, &[T, T, T], T, "$0.mul_add($1, $2)"),
    form("abs of a float", REALS, &[T], T, "$0.abs()"),
    form("min of floats", REALS, &[T, T], T, "$0.min($1)"),
    form("max of floats", REALS, &[T, T], T, "$0.max($1)"),
    form("clamp of a float", FLOATS, &[T], T, "$0.clamp(-2.5, 100.0)"),
    form("sqrt", FLOATS, &[T], T, "$0.sqrt()"),
    form("floor", FLOATS, &[T], T, "$0.floor()"),
    form("ceil", FLOATS, &[T], T, "$0.ceil()"),
    form("trunc", FLOATS, &[T], T, "$0.trunc()"),
    form("round", FLOATS, &[T], T, "$0.round()"),
    form("round_ties_even", FLOATS, &[T], T, "$0.round_ties_even()"),
    form("fract", FLOATS, &[T], T, "$0.fract()"),
    form("recip", FLOATS, &[T], T, "$0.recip()"),
    form("signum of a float", FLOATS, &[T], T, "$0.signum()"),
    form("copysign", FLOATS, &[T, T], T, "{ let (p, q) = ($0, $1); if q.is_nan() { p } else { p.copysign(q) } }"),
    form("is_nan", FLOATS, &[T], B, "$0.is_nan()"),
    form("is_finite", FLOATS, &[T], B, "$0.is_finite()"),
    form("is_infinite", FLOATS, &[T], B, "$0.is_infinite()"),
    form("is_sign_negative", FLOATS, &[T], B, "{ let p = $0; !p.is_nan() && p.is_sign_negative() }"),
    form("to_bits of 32 bits", SINGLE, &[T], N, "{ let p = $0; if p.is_nan() { 7 } else { p.to_bits() } }"),
    form(
        "to_bits of 64 bits",
        &[F64],
        &[T],
        OperandType::Of(U64),
        "{ let p = $0; if p.is_nan() { 7 } else { p.to_bits() } }",
    ),
    form(
        "to_bits of 16 bits",
        HALVES,
        &[T],
        OperandType::Of(U16),
        "{ let p = $0; if p == p { p.to_bits() } else { 7 } }",
    ),
    form("from_bits of 32 bits", SINGLE, &[N], T, "f32::from_bits($0)"),
    form("from_bits of 64 bits", &[F64], &[OperandType::Of(U64)], T, "f64::from_bits($0)"),
    form("from_bits of 16 bits", HALVES, &[OperandType::Of(U16)], T, "$T::from_bits($0)"),
    form("math::exp", SINGLE, &[T], T, "math::exp($0)"),
    form("math::ln", SINGLE, &[T], T, "math::ln($0)"),
    form("math::sin", SINGLE, &[T], T, "math::sin($0)"),
    form("math::tanh", SINGLE, &[T], T, "math::tanh($0)"),
    form("math::cbrt", SINGLE, &[T], T, "math::cbrt($0)"),
    form("math::pow", SINGLE, &[T, T], T, "math::pow($0, $1)"),
    form("math::atan2", SINGLE, &[T, T], T, "math::atan2($0, $1)"),
    form("math::hypot", SINGLE, &[T, T], T, "math::hypot($0, $1)"),
    // Comparisons, truth.
    form("<", COMPARED, &[T, T], B, "($0 < $1)"),
    form("<=", COMPARED, &[T, T], B, "($0 <= $1)"),
    form(">", COMPARED, &[T, T], B, "($0 > $1)"),
    form(">=", COMPARED, &[T, T], B, "($0 >= $1)"),
    form("==", COMPARED, &[T, T], B, "($0 == $1)"),
    form("!=", COMPARED, &[T, T], B, "($0 != $1)"),
    form("== of indices", INDEX, &[T, T], B, "($0 == $1)"),
    form("< of indices", INDEX, &[T, T], B, "($0 < $1)"),
    form("== of tuples", ALL, &[T, T, T], B, "(($0, $1) == ($2, $1))"),
    form("< of tuples", COMPARED, &[T, T, T, T], B, "(($0, $1) < ($2, $3))"),
    form(">= of arrays", COMPARED, &[T, T, T], B, "([$0, $1, $2] >= [$1, $0, $2])"),
    form(
        "!= of options",
        COMPARED,
        &[B, T, B, T],
        B,
        "{ let (p, q) = (if $0 { Some($1) } else { None }, if $2 { Some($3) } else { None }); p != q }",
    ),
    form("< of bool", BOOLEAN, &[T, T], B, "($0 < $1)"),
    form("&&", BOOLEAN, &[T, T], T, "($0 && $1)"),
    form("||", BOOLEAN, &[T, T], T, "($0 || $1)"),
    form("& of bool", BOOLEAN, &[T, T], T, "($0 & $1)"),
    form("| of bool", BOOLEAN, &[T, T], T, "($0 | $1)"),
    form("^ of bool", BOOLEAN, &[T, T], T, "($0 ^ $1)"),
    form("! of bool", BOOLEAN, &[T], T, "(!$0)"),
    form("matches!", WHOLE, &[T], B, "matches!($0, 1 | 3..=8 | 100..)"),
    // Choices.
    form("if as a value", ALL, &[B, T, T], T, "(if $0 { $1 } else { $2 })"),
    form("if, else if", ALL, &[B, T, B, T, T], T, "(if $0 { $1 } else if $2 { $3 } else { $4 })"),
    form("match of numbers", ALL, &[N, T, T, T], T, "(match $0 { 0 => $1, 2 | 5..=9 => $2, _ => $3 })"),
    form(
        "match with a guard",
        WHOLE,
        &[T, T, T],
        T,
        "(match $0 { p if p > 64 => p ^ $1, p @ 1..=63 => p & $2, _ => 5 })",
    ),
    form(
        "match of a tuple",
        ALL,
        &[B, B, T, T, T],
        T,
        "(match ($0, $1) { (true, true) => $2, (true, false) => $3, (false, _) => $4 })",
    ),
    form(
        "Option, if let",
        ALL,
        &[B, T, T],
        T,
        "{ let p = if $0 { Some($1) } else { None }; if let Some(q) = p { q } else { $2 } }",
    ),
    form(
        "Option::map_or",
        WHOLE,
        &[B, T, T],
        T,
        "{ let p = if $0 { Some($1) } else { None }; p.map_or($2, |q| q ^ 3) }",
    ),
    form(
        "a labeled block",
        ALL,
        &[B, T, B, T, T],
        T,
        "'found: { if $0 { break 'found $1; } if $2 { break 'found $3; } $4 }",
    ),
    form("a closure", WHOLE, &[T, T, T], T, "{ let f = |p: $T| p.wrapping_mul($0); f($1) ^ f($2) }"),
    form("an array", ALL, &[T, T, T], T, "{ let p = [$0, $1, $2]; p[1] }"),
    form(
        "a tuple",
        ALL,
        &[T, T],
        T,
        "{ let (p, q) = ($0, $1); let (mut r, mut s) = (p, q); (r, s) = (s, r); if true { r } else { s } }",
    ),
    // Casts.
    cast("as, of numbers", CAST, CAST, "($0 as $R)"),
    cast("as, of bool", BOOLEAN, WHOLE, "($0 as $R)"),
    cast("as, of indices", INDEX, CAST, "($0 as $R)"),
    cast("as, through f32", CAST, WHOLE, "(($0 as f32 * 0.5) as $R)"),
    form("to_f32", HALVES, &[T], F, "$0.to_f32()"),
    form("from_f32", HALVES, &[F], T, "$T::from_f32($0)"),
    // Conversions. Rust's library has those that keep every value.
    cast("from, of u8", BYTE, &[U8, U16, U32, U64, U128, I16, I32, I64, F32, F64], "$R::from($0)"),
    cast("from, of u16", &[U16], &[U16, U32, U64, U128, I32, I64, F32, F64], "$R::from($0)"),
    cast("from, of u32", WORD, &[U32, U64, U128, I64, F64], "$R::from($0)"),
    cast("from, of u64", &[U64], &[U64, U128], "$R::from($0)"),
    cast("from, of i8", &[I8], &[I8, I16, I32, I64, F32, F64], "$R::from($0)"),
    cast("from, of i16", &[I16], &[I16, I32, I64, F32, F64], "$R::from($0)"),
    cast("from, of i32", &[I32], &[I32, I64, F64], "$R::from($0)"),
    cast("from, of f32", SINGLE, &[F32, F64], "$R::from($0)"),
    cast("from, of bool", BOOLEAN, WHOLE, "$R::from($0)"),
    cast("into, of u8", BYTE, &[U8, U16, U32, U64, U128, I16, I32, I64, F32, F64], "{ let p: $R = $0.into(); p }"),
    cast("into, of u32", WORD, &[U32, U64, U128, I64, F64], "{ let p: $R = $0.into(); p }"),
    cast("into, of i16", &[I16], &[I16, I32, I64, F32, F64], "{ let p: $R = $0.into(); p }"),
    cast("into, of bool", BOOLEAN, WHOLE, "{ let p: $R = $0.into(); p }"),
    form("bytes, reversed", WHOLE, &[T], T, "$T::from_be_bytes($0.to_le_bytes())"),
    form("bytes, in order", CAST, &[T], T, "$T::from_le_bytes($0.to_le_bytes())"),
    form("a byte of a number", WHOLE, &[T], OperandType::Of(U8), "{ let [p, ..] = $0.to_be_bytes(); p }"),
    form(
        "bytes of text",
        WORD,
        &[T],
        T,
        "{ let mut p = $0; for q in b\"AC\\n\" { p = p.wrapping_mul(31) ^ *q as u32; } p }",
    ),
    form(
        "a byte of text",
        BYTE,
        &[N],
        T,
        "{ let p = *b\"GATTACA.\"; let [q, .., r] = p; match $0 & 3 { 0 => q, 1 => p[4], _ => r } }",
    ),
    form("bytes in patterns", BYTE, &[T], B, "matches!($0, b'a'..=b'z' | b'_' | b'\\n')"),
    // Constants and tables.
    form(
        "constants in patterns",
        WHOLE,
        &[T, T, T],
        T,
        "{ const P: $T = 9; const Q: $T = P * 3; match $0 { P => $1, Q | $T::MAX => $2, 1..=P => 3, Q.. => 4, _ => $1 } }",
    ),
    form("a constant float in a pattern", FLOATS, &[T, T], T, "{ const P: $T = 1.5; match $0 { P => $1, _ => 2.5 } }"),
    form(
        "a constant in a pattern of a tuple",
        ALL,
        &[N, B, T, T, T],
        T,
        "{ const P: u32 = 2; const Q: bool = !false; match ($0 & 3, $1) { (P, Q) => $2, (P.., _) => $3, (_, _) => $4 } }",
    ),
    form("a constant table", WHOLE, &[X], T, "{ const P: [$T; 4] = [7, 1, $T::MAX, 3]; P[$0 & 3] }"),
    // Ranges.
    form("contains, of a range", CAST, &[T, T, T], B, "($0..$1).contains(&$2)"),
    form("contains, of an inclusive range", CAST, &[T, T, T], B, "($0..=$1).contains(&$2)"),
    form("contains, of a range without a start", CAST, &[T, T], B, "(..$0).contains(&$1)"),
    form("contains, of a range without an end", CAST, &[T, T], B, "{ let p = &$1; ($0..).contains(p) }"),
    form("contains, of constants", WHOLE, &[T], B, "(3..=77).contains(&$0)"),
    form("an inclusive range", WHOLE, &[T], T, "{ let mut p = $0; for q in 1..=3u32 { p = p.rotate_left(q); } p }"),
    form(
        "rev and step_by",
        WHOLE,
        &[T],
        T,
        "{ let mut p = $0; for q in (0..=6u32).rev().step_by(2) { p = p.rotate_left(q) ^ 1; } p }",
    ),
    form(
        "step_by and rev",
        WHOLE,
        &[T],
        T,
        "{ let mut p = $0; for q in (0..7u32).step_by(3).rev() { p = p.rotate_left(q) ^ 1; } p }",
    ),
    // Arrays.
    form("swap of elements", ALL, &[T, T, T], T, "{ let mut p = [$0, $1, $2]; p.swap(0, 2); p[0] }"),
    form(
        "a pattern of an array",
        ALL,
        &[T, T, T],
        T,
        "{ let [p, .., q] = [$0, $1, $2, $0]; if true { q } else { p } }",
    ),
    form("an array of arrays", ALL, &[T, T, T], T, "{ let p = [[$0, $1], [$2, $0]]; let [_, [q, _]] = p; q }"),
    form("a repeated value", ALL, &[T, T], T, "{ let mut p = [$0; 3]; p[1] = $1; p[2] }"),
    form(
        "an array in reverse",
        WHOLE,
        &[T, T, T],
        T,
        "{ let mut p = $0; for q in [$1, $2, 5].iter().rev() { p = p.wrapping_mul(3) ^ *q; } p }",
    ),
    form(
        "an array with numbers, in reverse",
        WHOLE,
        &[T, T, T],
        T,
        "{ let mut p = $0; for (k, q) in [$1, $2, 5].into_iter().enumerate().rev() { p = p.rotate_left(k as u32) ^ q; } p }",
    ),
    form(
        "each second element",
        WHOLE,
        &[T, T, T],
        T,
        "{ let mut p = $0; for q in [$1, $2, 5].iter().step_by(2) { p ^= q; } p }",
    ),
    form(
        "elements, changed",
        WHOLE,
        &[T, T, T],
        T,
        "{ let mut p = [$0, $1, $2]; for q in p.iter_mut().rev() { *q = q.wrapping_mul(5); } p[1] ^ p[2] }",
    ),
    form("map of an array", WHOLE, &[T, T, T], T, "{ let [p, q] = [$0, $1].map(|p| p.wrapping_add($2)); p ^ q }"),
    form(
        "an array in local memory",
        WIDE,
        &[T, T, X, X],
        T,
        "{ let mut p = thread::local::<[$T; 4]>(); for q in 0..4 { p[q] = $0; } p[$2 & 3] = $1; p[$3 & 3] }",
    ),
    form(
        "swap in local memory",
        WIDE,
        &[T, T, X, X],
        T,
        "{ let mut p = thread::local::<[$T; 4]>(); p[0] = $0; p[1] = $1; p[2] = 2; p[3] = 3; p.swap($2 & 3, $3 & 3); p[0] }",
    ),
    // References.
    form("operators of references", REFERENCED, &[T, T], T, "{ let (p, q) = (&$0, &$1); (p ^ q) | (*p & 3) }"),
    form("& of a reference and a value", REFERENCED, &[T, T], T, "(&$0 & $1)"),
    form("^= of a reference", REFERENCED, &[T, T], T, "{ let mut p = $0; p ^= &$1; p }"),
    form("! of a reference", REFERENCED, &[T], T, "{ let p = &$0; !p }"),
    form("operators of references to floats", FLOATS, &[T, T], T, "{ let (p, q) = (&$0, &$1); p + q * 2.0 }"),
    form("- of a reference", FLOATS, &[T], T, "{ let p = &$0; -p }"),
    form("< of references", CAST, &[T, T], B, "(&$0 < &$1)"),
    form("a reference that changes", WHOLE, &[T, T], T, "{ let mut p = $0; { let q = &mut p; *q ^= $1; } p }"),
    // Wrapping operations that a division by zero would end.
    form("wrapping_div", NATURAL, &[T, T], T, "$0.wrapping_div($1 | 1)"),
    form("wrapping_rem", NATURAL, &[T, T], T, "$0.wrapping_rem($1 | 1)"),
    form("wrapping_pow", WHOLE, &[T], T, "$0.wrapping_pow(5)"),
    // Options and results.
    form(
        "? of an option",
        WHOLE,
        &[T, T, T],
        T,
        "{ let f = |p: $T| -> Option<$T> { let q = p.checked_add($1)?; if q > 9 { Some(q ^ 1) } else { None } }; f($0).unwrap_or($2) }",
    ),
    form(
        "? of a result",
        WHOLE,
        &[T, T, T],
        T,
        "{ let f = |p: $T| -> Result<$T, u8> { let q = p.checked_sub($1).ok_or(7u8)?; Ok(q ^ 1) }; match f($0) { Ok(p) => p, Err(q) => $2 ^ q as $T } }",
    ),
    form(
        "methods of a result",
        WHOLE,
        &[B, T, T, T],
        T,
        "{ let p: Result<$T, $T> = if $0 { Ok($1) } else { Err($2) }; p.map(|q| q ^ 1).map_err(|q| q & 7).ok().unwrap_or($3) }",
    ),
    form(
        "== of results",
        WHOLE,
        &[B, T, T],
        B,
        "{ let p: Result<$T, $T> = if $0 { Ok($1) } else { Err($2) }; p == Ok($2) || p.is_ok_and(|q| q < 9) }",
    ),
    form(
        "and_then, is_some_and",
        WHOLE,
        &[T, T],
        B,
        "$0.checked_mul($1).and_then(|p| if p > 5 { Some(p) } else { None }).is_some_and(|q| q < 99)",
    ),
    // Patterns.
    form(
        "alternatives that bind",
        WHOLE,
        &[T, T],
        T,
        "(match ($0, $1) { (3, p) | (p, 3) => p, (p @ 5..=60, q) | (q, p @ (0 | 77)) if p < q => p ^ q, (p, _) => p & 9 })",
    ),
    form(
        "alternatives of a result",
        ALL,
        &[B, T, T],
        T,
        "{ let p: Result<$T, $T> = if $0 { Ok($1) } else { Err($2) }; let (Ok(q) | Err(q)) = p; q }",
    ),
    form(
        "let, else",
        ALL,
        &[B, T, T],
        T,
        "'none: { let p = if $0 { Some($1) } else { None }; let Some(q) = p else { break 'none $2; }; q }",
    ),
    form("if let, &&", WHOLE, &[T, T, T], T, "(if let Some(p) = $0.checked_add($1) && p > 9 { p } else { $2 })"),
    form(
        "while let",
        WORD,
        &[N],
        T,
        "{ let (mut p, mut q) = (Some($0 & 3), 1u32); while let Some(r) = p { q = q * 3 + r; p = if r == 0 { None } else { Some(r - 1) }; } q }",
    ),
    // Functions of the module `helpers`.
    form("a generic function of a closure", WORD, &[T, T], T, "helpers::twice(|p: u32| p.rotate_left(3) ^ $0, $1)"),
    form("a closure by impl", WORD, &[T, T], T, "helpers::folded([$0, $1, 3], |p, q| p.wrapping_mul(3) ^ q)"),
    form(
        "a closure that changes a variable",
        WORD,
        &[T, T],
        T,
        "{ let mut p = $0; helpers::repeat(|q| p = p.rotate_left(q) ^ $1, 3); p }",
    ),
    form("a generic function of numbers", FLOATS, &[T, T], T, "helpers::norm($0, $1)"),
    form("a generic constant", WHOLE, &[T], T, "helpers::rotated::<$T, 3>([$0, 1, 2, 4])"),
    form("an enum with data", WORD, &[N, N], T, "helpers::Token::of($0, $1).value()"),
    form("== of enums", WORD, &[N, N, N], B, "(helpers::Token::of($0, $1) == helpers::Token::of($2, $1))"),
    form("? of an enum", WORD, &[N, N], T, "(match helpers::quarter($0, $1) { Ok(p) => p, Err(p) => p.code() })"),
    form(
        "operators of a struct",
        FLOATS,
        &[T, T, T],
        T,
        "{ let (p, q) = (helpers::Pair { x: $0, y: $1 }, helpers::Pair { x: $1, y: $2 }); let mut r = -(p + q * $2); r += &p; (&r - &q)[1] }",
    ),
    form("impl Trait", SINGLE, &[T, T], T, "helpers::total(&helpers::Square($0), helpers::Circle { radius: $1 })"),
    // Indices: each is below 64.
    form("as usize", WORD, &[T], X, "(($0 & 63) as usize)"),
    form("+ of indices", INDEX, &[T, T], T, "(($0 + $1) & 63)"),
    form("* of indices", INDEX, &[T, T], T, "(($0 * $1 + 3) % 61)"),
    form("/ of indices", INDEX, &[T], T, "($0 / 5)"),
    form("^ of indices", INDEX, &[T, T], T, "($0 ^ $1)"),
    form("- of indices", INDEX, &[T], T, "(63 - $0)"),
    form("min of indices", INDEX, &[T, T], T, "$0.min($1)"),
    form("wrapping_sub of indices", INDEX, &[T, T], T, "($0.wrapping_sub($1) & 63)"),
    form("saturating_sub of indices", INDEX, &[T, T], T, "$0.saturating_sub($1)"),
];

/// Collective operations of a warp, where all threads of the block are converged. For floats, the
/// order of operations is part of the meaning.
pub const WARP_FORMS: &[OperationForm] = &[
    form("warp::sum", WIDE, &[T], T, "warp::sum($0 & 0xffff)"),
    form("warp::sum of floats", FLOATS, &[T], T, "warp::sum($0)"),
    form("warp::max", ORDERED, &[T], T, "warp::max($0)"),
    form("warp::min", ORDERED, &[T], T, "warp::min($0)"),
    form("warp::reduce", INTEGERS, &[T], T, "warp::reduce($0, |a, b| a ^ b)"),
    form(
        "warp::reduce, not associative",
        INTEGERS,
        &[T],
        T,
        "warp::reduce($0, |a, b| a.wrapping_mul(3).wrapping_add(b))",
    ),
    form("warp::scan", INTEGERS, &[T], T, "warp::scan($0, |a, b| a.wrapping_add(b))"),
    form("warp::exclusive_scan", INTEGERS, &[T], T, "warp::exclusive_scan($0, 0, |a, b| a.wrapping_add(b))"),
    form("warp::broadcast", VALUES, &[T], T, "warp::broadcast($0, 9)"),
    form("warp::shuffle", VALUES, &[T, X], T, "warp::shuffle($0, $1 & 31)"),
    form("warp::shuffle_xor", VALUES, &[T], T, "warp::shuffle_xor($0, 21)"),
    form("warp::shuffle_up", VALUES, &[T, T], T, "warp::shuffle_up($0, 3).unwrap_or($1)"),
    form("warp::shuffle_down", VALUES, &[T, T], T, "warp::shuffle_down($0, 7).unwrap_or($1)"),
    form("warp::ballot", BOOLEAN, &[T], N, "warp::ballot($0)"),
    form("warp::all", BOOLEAN, &[T], B, "warp::all($0)"),
    form("warp::any", BOOLEAN, &[T], B, "warp::any($0)"),
    form("group.sum", FLOATS, &[T], T, "warp::group::<8>().sum($0)"),
    form("group.max", ORDERED, &[T], T, "warp::group::<4>().max($0)"),
    form("group.reduce", INTEGERS, &[T], T, "warp::group::<16>().reduce($0, |a, b| a ^ b)"),
    form("group.scan", INTEGERS, &[T], T, "warp::group::<8>().scan($0, |a, b| a.wrapping_add(b))"),
    form("group.shuffle", VALUES, &[T, X], T, "warp::group::<8>().shuffle($0, $1 & 7)"),
    form("group.shuffle_up", VALUES, &[T, T], T, "warp::group::<8>().shuffle_up($0, 2).unwrap_or($1)"),
    form("group.broadcast", VALUES, &[T], T, "warp::group::<16>().broadcast($0, 3)"),
    form("group.ballot", BOOLEAN, &[T], N, "warp::group::<8>().ballot($0)"),
    form("group.any", BOOLEAN, &[T], B, "warp::group::<4>().any($0)"),
];

/// Collective operations of a block, whose result is uniform across the block unless stated
/// otherwise.
pub const BLOCKS: &[OperationForm] = &[
    form("block::sum", WIDE, &[T], T, "block::sum($0 & 0xffff)"),
    form("block::sum of floats", FLOATS, &[T], T, "block::sum($0)"),
    form("block::max", ORDERED, &[T], T, "block::max($0)"),
    form("block::min", ORDERED, &[T], T, "block::min($0)"),
    form("block::reduce", INTEGERS, &[T], T, "block::reduce($0, |a, b| a ^ b)"),
    form("block::broadcast", VALUES, &[T], T, "block::broadcast($0, 13)"),
    form("block::all", BOOLEAN, &[T], B, "block::all($0)"),
    form("block::any", BOOLEAN, &[T], B, "block::any($0)"),
];

/// Collective operations whose result differs between threads or is not proven to be uniform.
pub const SCANS: &[OperationForm] = &[
    form("block::scan", INTEGERS, &[T], T, "{ let (p, _) = block::scan($0, 0, |a, b| a.wrapping_add(b)); p }"),
    form(
        "block::scan, the total",
        INTEGERS,
        &[T],
        T,
        "{ let (_, p) = block::scan($0, 0, |a, b| a.wrapping_add(b)); p }",
    ),
];
