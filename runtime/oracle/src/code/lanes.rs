//! Arithmetic on whole registers: one call computes all 32 lanes.
//!
//! Every lane is computed, active or not. A value is read only where it was defined, so the
//! contents of other lanes do not matter. Each loop is compiled twice, for the baseline and for
//! AVX2 with FMA (without FMA, `mul_add` calls a software routine); [`Simd`] selects at run time.

use crate::code::division::Divide;
use crate::code::frame::{FULL, FrameRegister, LANES, LaneWord, Row};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{Binary, Comparison, Unary};

/// The compiled version of the loops that this machine runs.
#[derive(Clone, Copy, Debug)]
pub struct Simd {
    /// Set only by [`Simd::detect`], and only if the processor has AVX2, FMA and the
    /// bit-manipulation instructions; `versions!` relies on it.
    avx2: bool,
}

impl Simd {
    /// Returns the best version for this machine.
    pub fn detect() -> Simd {
        #[cfg(target_arch = "x86_64")]
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        #[cfg(not(target_arch = "x86_64"))]
        let avx2 = false;
        Simd { avx2 }
    }

    /// Returns whether this processor has AVX2, FMA, BMI1, BMI2, LZCNT and POPCNT.
    #[inline(always)]
    pub fn has_avx2(self) -> bool {
        self.avx2
    }
}

/// Defines a method of [`Simd`] for each function, compiled for the baseline and for AVX2.
macro_rules! versions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
        impl $crate::code::lanes::Simd {$(
            $(#[$doc])*
            #[inline]
            #[allow(clippy::too_many_arguments)]
            pub fn $name(self, $($argument: $ty),*) $(-> $result)? {
                #[cfg(target_arch = "x86_64")]
                if self.has_avx2() {
                    #[target_feature(enable = "avx2,fma")]
                    #[allow(clippy::too_many_arguments)]
                    fn fast($($argument: $ty),*) $(-> $result)? {
                        $name($($argument),*)
                    }
                    // SAFETY: `has_avx2` is true only if the processor supports both features.
                    return unsafe { fast($($argument),*) };
                }
                $name($($argument),*)
            }
        )*}
    };
}
pub(crate) use versions;

versions! {
    /// `to` ← op `a`. Registers are given by row; `to` lies above its operands.
    fn unary(rows: &mut [Row], op: Unary, ty: Scalar, to: u32, a: u32);
    /// `to` ← `a` op `b`. Integer division and remainder by zero give all ones; `MIN / −1` wraps.
    fn binary(rows: &mut [Row], op: Binary, ty: Scalar, to: u32, a: u32, b: u32);
    /// Returns the lanes where `a` op `b` (+, −, ×, ÷, %, <<, >>) overflows integer type `ty`. A
    /// shift overflows if its distance is the width of `ty` or more.
    fn overflows(rows: &[Row], op: Binary, ty: Scalar, a: u32, b: u32) -> u32;
    /// Returns the lanes where `a` is the least value of signed type `ty`.
    fn is_minimum(rows: &[Row], ty: Scalar, a: u32) -> u32;
    /// Returns the lanes where integer `a` is 0.
    fn is_zero(rows: &[Row], ty: Scalar, a: u32) -> u32;
    /// `to` ← `a` · `b` + `c`, rounded once.
    fn mul_add(rows: &mut [Row], ty: Scalar, to: u32, a: u32, b: u32, c: u32);
    /// `to` ← the result of comparing `a` with `b`.
    fn compare(rows: &mut [Row], op: Comparison, ty: Scalar, to: u32, a: u32, b: u32);
    /// Returns the lanes where `a` < `b`.
    fn less(rows: &[Row], ty: Scalar, a: u32, b: u32) -> u32;
    /// `index` ← `index` + `step`, wrapping. Returns the lanes where the sum is below `limit`.
    fn advance(rows: &mut [Row], ty: Scalar, index: u32, step: u32, limit: u32) -> u32;
    /// `to` ← `yes` where `condition` holds, `no` elsewhere.
    fn select(rows: &mut [Row], wide: bool, to: u32, condition: u32, yes: u32, no: u32);
    /// Returns the lanes where the `bool` at `row` is true.
    fn truth(rows: &[Row], row: u32) -> u32;
    /// Returns the word that all lanes of `mask` hold at `row`, or `None` if they differ.
    fn uniform_word(rows: &[Row], row: u32, mask: u32) -> Option<u32>;
    /// `to` ← `from` in the lanes of `mask`. The registers have equal widths.
    fn blend(rows: &mut [Row], to: FrameRegister, from: FrameRegister, mask: u32);
}

/// A scalar as stored in a lane.
pub(crate) trait LaneScalar: Copy {
    type Word: LaneWord;
    fn load(word: Self::Word) -> Self;
    fn store(self) -> Self::Word;
}

/// Implements [`LaneScalar`] by the conversions from and to the word of a lane.
macro_rules! lane {
    ($($t:ty: $word:ty, $w:ident => $load:expr, $x:ident => $store:expr;)*) => {$(
        impl LaneScalar for $t {
            type Word = $word;
            #[inline(always)]
            fn load($w: $word) -> $t { $load }
            #[inline(always)]
            fn store(self) -> $word { let $x = self; $store }
        }
    )*};
}
lane! {
    bool: u32, w => w != 0, x => u32::from(x);
    i8: u32, w => w as i8, x => u32::from(x as u8);
    i16: u32, w => w as i16, x => u32::from(x as u16);
    i32: u32, w => w as i32, x => x as u32;
    i64: u64, w => w as i64, x => x as u64;
    u8: u32, w => w as u8, x => u32::from(x);
    u16: u32, w => w as u16, x => u32::from(x);
    u32: u32, w => w, x => x;
    u64: u64, w => w, x => x;
    f32: u32, w => f32::from_bits(w), x => x.to_bits();
    f64: u64, w => f64::from_bits(w), x => x.to_bits();
}

#[inline(always)]
pub(crate) fn map1<A: LaneScalar, T: LaneScalar>(rows: &mut [Row], to: u32, a: u32, f: impl Fn(A) -> T) {
    let (operands, results) = rows.split_at_mut(to as usize);
    let a = A::Word::lanes(operands, a as usize);
    let to = T::Word::lanes_mut(results, 0);
    for l in 0..LANES {
        to[l] = f(A::load(a[l])).store();
    }
}

#[inline(always)]
fn map2<A: LaneScalar, B: LaneScalar, T: LaneScalar>(rows: &mut [Row], to: u32, a: u32, b: u32, f: impl Fn(A, B) -> T) {
    let (operands, results) = rows.split_at_mut(to as usize);
    let (a, b) = (A::Word::lanes(operands, a as usize), B::Word::lanes(operands, b as usize));
    let to = T::Word::lanes_mut(results, 0);
    for l in 0..LANES {
        to[l] = f(A::load(a[l]), B::load(b[l])).store();
    }
}

#[inline(always)]
pub(crate) fn map3<A: LaneScalar, B: LaneScalar, C: LaneScalar, T: LaneScalar>(
    rows: &mut [Row],
    to: u32,
    [a, b, c]: [u32; 3],
    f: impl Fn(A, B, C) -> T,
) {
    let (operands, results) = rows.split_at_mut(to as usize);
    let (a, b) = (A::Word::lanes(operands, a as usize), B::Word::lanes(operands, b as usize));
    let c = C::Word::lanes(operands, c as usize);
    let to = T::Word::lanes_mut(results, 0);
    for l in 0..LANES {
        to[l] = f(A::load(a[l]), B::load(b[l]), C::load(c[l])).store();
    }
}

/// Returns the lanes where `f` holds. Since `f` rarely holds, the mask is computed only if `f`
/// holds in a lane.
#[inline(always)]
fn rare_mask<A: LaneScalar, B: LaneScalar>(rows: &[Row], a: u32, b: u32, f: impl Fn(A, B) -> bool) -> u32 {
    let (a, b) = (A::Word::lanes(rows, a as usize), B::Word::lanes(rows, b as usize));
    let mut any = 0;
    for l in 0..LANES {
        any |= u32::from(f(A::load(a[l]), B::load(b[l])));
    }
    if any == 0 { 0 } else { mask(|l| f(A::load(a[l]), B::load(b[l]))) }
}

/// Returns the mask whose bit l is `f(l)`.
#[inline(always)]
pub fn mask(f: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for l in 0..LANES {
        mask |= u32::from(f(l)) << l;
    }
    mask
}

/// `$body!` with the Rust type of an integer scalar type; `$otherwise` for the others.
macro_rules! for_integer {
    ($ty:expr, $body:ident!($($argument:tt)*), $otherwise:expr) => {
        match $ty {
            Scalar::I8 => $body!(i8, $($argument)*),
            Scalar::I16 => $body!(i16, $($argument)*),
            Scalar::I32 => $body!(i32, $($argument)*),
            Scalar::I64 => $body!(i64, $($argument)*),
            Scalar::U8 => $body!(u8, $($argument)*),
            Scalar::U16 => $body!(u16, $($argument)*),
            Scalar::U32 | Scalar::Usize => $body!(u32, $($argument)*),
            Scalar::U64 => $body!(u64, $($argument)*),
            _ => $otherwise,
        }
    };
}

/// Panics: decoding rejects operations that a type does not have.
fn refused() -> ! {
    unreachable!("decoding refuses operators that a type does not have")
}

#[inline(always)]
fn unary(rows: &mut [Row], op: Unary, ty: Scalar, to: u32, a: u32) {
    macro_rules! integer {
        ($t:ty,) => {
            match op {
                Unary::Neg => map1(rows, to, a, <$t>::wrapping_neg),
                Unary::Not => map1(rows, to, a, |x: $t| !x),
                Unary::CountOnes => map1(rows, to, a, |x: $t| x.count_ones()),
                Unary::LeadingZeros => map1(rows, to, a, |x: $t| x.leading_zeros()),
                Unary::ReverseBits => map1(rows, to, a, |x: $t| x.reverse_bits()),
                Unary::SwapBytes => map1(rows, to, a, |x: $t| x.swap_bytes()),
                Unary::Abs => map1(rows, to, a, |x: $t| if x.leading_zeros() == 0 { x.wrapping_neg() } else { x }),
                _ => refused(),
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            match op {
                Unary::Neg => map1(rows, to, a, |x: $t| -x),
                Unary::Abs => map1(rows, to, a, <$t>::abs),
                Unary::Sqrt => map1(rows, to, a, <$t>::sqrt),
                Unary::Floor => map1(rows, to, a, <$t>::floor),
                Unary::Ceil => map1(rows, to, a, <$t>::ceil),
                Unary::Trunc => map1(rows, to, a, <$t>::trunc),
                Unary::RoundEven => map1(rows, to, a, <$t>::round_ties_even),
                _ => refused(),
            }
        };
    }
    match ty {
        Scalar::F32 => float!(f32),
        Scalar::F64 => float!(f64),
        Scalar::Bool => map1(rows, to, a, |x: bool| !x),
        _ => for_integer!(ty, integer!(), refused()),
    }
}

#[inline(always)]
fn binary(rows: &mut [Row], op: Binary, ty: Scalar, to: u32, a: u32, b: u32) {
    macro_rules! integer {
        ($t:ty,) => {
            match op {
                Binary::Add | Binary::WrappingAdd => map2(rows, to, a, b, <$t>::wrapping_add),
                Binary::Sub | Binary::WrappingSub => map2(rows, to, a, b, <$t>::wrapping_sub),
                Binary::Mul | Binary::WrappingMul => map2(rows, to, a, b, <$t>::wrapping_mul),
                Binary::Div => map2(rows, to, a, b, <$t>::quotient),
                Binary::Rem => map2(rows, to, a, b, <$t>::remainder),
                Binary::Min => map2(rows, to, a, b, |x: $t, y: $t| x.min(y)),
                Binary::Max => map2(rows, to, a, b, |x: $t, y: $t| x.max(y)),
                Binary::And => map2(rows, to, a, b, |x: $t, y: $t| x & y),
                Binary::Or => map2(rows, to, a, b, |x: $t, y: $t| x | y),
                Binary::Xor => map2(rows, to, a, b, |x: $t, y: $t| x ^ y),
                Binary::Shl | Binary::WrappingShl => map2(rows, to, a, b, <$t>::wrapping_shl),
                Binary::Shr | Binary::WrappingShr => map2(rows, to, a, b, <$t>::wrapping_shr),
                Binary::RotateLeft => map2(rows, to, a, b, <$t>::rotate_left),
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            match op {
                Binary::Add => map2(rows, to, a, b, |x: $t, y: $t| x + y),
                Binary::Sub => map2(rows, to, a, b, |x: $t, y: $t| x - y),
                Binary::Mul => map2(rows, to, a, b, |x: $t, y: $t| x * y),
                Binary::Div => map2(rows, to, a, b, |x: $t, y: $t| x / y),
                Binary::Rem => map2(rows, to, a, b, |x: $t, y: $t| x % y),
                // Equal operands differ at most in the sign of zero: the union of their bits has
                // the sign if either does, the intersection if both do.
                Binary::Min => map2(rows, to, a, b, |x: $t, y: $t| match () {
                    () if x < y || y.is_nan() => x,
                    () if x == y => <$t>::from_bits(x.to_bits() | y.to_bits()),
                    () => y,
                }),
                Binary::Max => map2(rows, to, a, b, |x: $t, y: $t| match () {
                    () if x > y || y.is_nan() => x,
                    () if x == y => <$t>::from_bits(x.to_bits() & y.to_bits()),
                    () => y,
                }),
                _ => refused(),
            }
        };
    }
    match ty {
        Scalar::F32 => float!(f32),
        Scalar::F64 => float!(f64),
        Scalar::Bool => match op {
            Binary::And => map2(rows, to, a, b, |x: bool, y: bool| x & y),
            Binary::Or => map2(rows, to, a, b, |x: bool, y: bool| x | y),
            Binary::Xor => map2(rows, to, a, b, |x: bool, y: bool| x ^ y),
            _ => refused(),
        },
        _ => for_integer!(ty, integer!(), refused()),
    }
}

#[inline(always)]
fn overflows(rows: &[Row], op: Binary, ty: Scalar, a: u32, b: u32) -> u32 {
    macro_rules! integer {
        ($t:ty,) => {
            match op {
                Binary::Add => rare_mask(rows, a, b, |x: $t, y: $t| x.overflowing_add(y).1),
                Binary::Sub => rare_mask(rows, a, b, |x: $t, y: $t| x.overflowing_sub(y).1),
                Binary::Mul => rare_mask(rows, a, b, |x: $t, y: $t| x.overflowing_mul(y).1),
                Binary::Shl | Binary::Shr => rare_mask(rows, a, b, |_: $t, y: u32| y >= <$t>::BITS),
                Binary::Div | Binary::Rem => rare_mask(rows, a, b, |x: $t, y: $t| y != 0 && x.overflowing_div(y).1),
                _ => 0,
            }
        };
    }
    for_integer!(ty, integer!(), 0)
}

#[inline(always)]
fn is_minimum(rows: &[Row], ty: Scalar, a: u32) -> u32 {
    macro_rules! integer {
        ($t:ty,) => {
            rare_mask(rows, a, a, |x: $t, _: $t| x == <$t>::MIN)
        };
    }
    for_integer!(ty, integer!(), 0)
}

#[inline(always)]
fn is_zero(rows: &[Row], ty: Scalar, a: u32) -> u32 {
    if ty.bits() == 64 {
        rare_mask(rows, a, a, |x: u64, _: u64| x == 0)
    } else {
        rare_mask(rows, a, a, |x: u32, _: u32| x == 0)
    }
}

#[inline(always)]
fn mul_add(rows: &mut [Row], ty: Scalar, to: u32, a: u32, b: u32, c: u32) {
    if ty == Scalar::F32 {
        map3(rows, to, [a, b, c], f32::mul_add);
    } else {
        map3(rows, to, [a, b, c], f64::mul_add);
    }
}

#[inline(always)]
fn compare(rows: &mut [Row], op: Comparison, ty: Scalar, to: u32, a: u32, b: u32) {
    macro_rules! number {
        ($t:ty,) => {
            match op {
                Comparison::Eq => map2(rows, to, a, b, |x: $t, y: $t| x == y),
                Comparison::Ne => map2(rows, to, a, b, |x: $t, y: $t| x != y),
                Comparison::Lt => map2(rows, to, a, b, |x: $t, y: $t| x < y),
                Comparison::Le => map2(rows, to, a, b, |x: $t, y: $t| x <= y),
                Comparison::Gt => map2(rows, to, a, b, |x: $t, y: $t| x > y),
                Comparison::Ge => map2(rows, to, a, b, |x: $t, y: $t| x >= y),
            }
        };
    }
    match ty {
        Scalar::F32 => number!(f32,),
        Scalar::F64 => number!(f64,),
        Scalar::Bool => number!(u32,),
        _ => for_integer!(ty, number!(), refused()),
    }
}

#[inline(always)]
fn less(rows: &[Row], ty: Scalar, a: u32, b: u32) -> u32 {
    macro_rules! integer {
        ($t:ty,) => {{
            type W = <$t as LaneScalar>::Word;
            let (a, b) = (W::lanes(rows, a as usize), W::lanes(rows, b as usize));
            mask(|l| <$t>::load(a[l]) < <$t>::load(b[l]))
        }};
    }
    for_integer!(ty, integer!(), refused())
}

#[inline(always)]
fn advance(rows: &mut [Row], ty: Scalar, index: u32, step: u32, limit: u32) -> u32 {
    macro_rules! integer {
        ($t:ty,) => {{
            type W = <$t as LaneScalar>::Word;
            let (step, limit) = (*W::lanes(rows, step as usize), *W::lanes(rows, limit as usize));
            let index = W::lanes_mut(rows, index as usize);
            let mut all = true;
            for l in 0..LANES {
                let next = <$t>::load(index[l]).wrapping_add(<$t>::load(step[l]));
                index[l] = next.store();
                all &= next < <$t>::load(limit[l]);
            }
            // Usually, all lanes continue with another iteration.
            if all { FULL } else { mask(|l| <$t>::load(index[l]) < <$t>::load(limit[l])) }
        }};
    }
    for_integer!(ty, integer!(), refused())
}

#[inline(always)]
fn select(rows: &mut [Row], wide: bool, to: u32, condition: u32, yes: u32, no: u32) {
    if wide {
        map3(rows, to, [condition, yes, no], |c: bool, x: u64, y: u64| if c { x } else { y });
    } else {
        map3(rows, to, [condition, yes, no], |c: bool, x: u32, y: u32| if c { x } else { y });
    }
}

#[inline(always)]
fn uniform_word(rows: &[Row], row: u32, mask: u32) -> Option<u32> {
    let row = u32::lanes(rows, row as usize);
    let first = row[mask.trailing_zeros() as usize % LANES];
    let other = |(lane, word): (usize, &u32)| (word ^ first) & (mask >> lane & 1).wrapping_neg();
    let others = row.iter().enumerate().map(other).fold(0, |others, other| others | other);
    (others == 0).then_some(first)
}

#[inline(always)]
fn blend(rows: &mut [Row], to: FrameRegister, from: FrameRegister, mask: u32) {
    to.copy(rows, from, mask);
}

#[inline(always)]
fn truth(rows: &[Row], row: u32) -> u32 {
    let row = u32::lanes(rows, row as usize);
    mask(|l| row[l] != 0)
}
