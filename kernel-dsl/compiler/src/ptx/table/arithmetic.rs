//! Arithmetic on integers, floats and half-precision floats.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Abs, Typed, Rate::Full, "d = |a|. The minimum signed integer is unchanged", &[
        row(10, V10, "abs.type d, a; .type = {.s16, .s32, .s64}"),
        row(10, V10, "abs{.ftz}.f32 d, a"),
        row(13, V10, "abs.f64 d, a"),
        row(53, V65, "abs{.ftz}.type d, a; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Add, Typed, Rate::Full, "d = a + b. Integers wrap, or saturate with `.sat`; `.cc` sets the carry. Floats round to nearest by default; without a rounding modifier the assembler may contract the sum with a product. On floats `.sat` clamps to [0, 1]", &[
        row(10, V10, "add.type d, a, b; .type = integer"),
        row(10, V10, "add.sat.s32 d, a, b"),
        row(10, V12, "add.cc.type d, a, b; .type = word"),
        row(20, V43, "add.cc.type d, a, b; .type = double_word"),
        row(10, V10, "add{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
        row(20, V20, "add.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
        row(13, V10, "add{.rnd}.f64 d, a, b; .rnd = rounding"),
        row(53, V42, "add{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Addc, Always(Class::Integer), Rate::Full, "d = a + b + carry. `.cc` sets the carry", &[
        row(10, V12, "addc{.cc}.type d, a, b; .type = word"),
        row(20, V43, "addc{.cc}.type d, a, b; .type = double_word"),
    ]),

    instruction(Opcode::Bfind, Always(Class::Integer), Rate::Quarter, "d = the position of the highest bit that differs from the sign, or 0xFFFFFFFF if there is none. `.shiftamt` gives the shift that moves this bit to the top", &[
        row(20, V20, "bfind{.shiftamt}.type d:u32, a; .type = {.u32, .u64, .s32, .s64}"),
    ]),

    instruction(Opcode::Clz, Always(Class::Integer), Rate::Quarter, "d = the number of leading zeros of a", &[
        row(20, V20, "clz.type d:u32, a; .type = {.b32, .b64}"),
    ]),

    instruction(Opcode::Copysign, Typed, Rate::Full, "d = b with the sign of a", &[
        row(20, V20, "copysign.type d, a, b; .type = {.f32, .f64}"),
    ]),

    instruction(Opcode::Cos, Always(Class::Special), Rate::Quarter, "d = cos(a), approximately", &[
        row(10, V14, "cos.approx{.ftz}.f32 d, a"),
    ]),

    instruction(Opcode::Div, Quotient, Rate::Sequence, "d = a / b, truncated for integers; integer division by 0 is unspecified. `.approx` is within 2 ulp unless |b| is huge, `.full` within 2 ulp; with a rounding modifier the result is correctly rounded", &[
        row(10, V10, "div.type d, a, b; .type = integer"),
        row(10, V14, "div.mode{.ftz}.f32 d, a, b; .mode = {.approx, .full}"),
        row(20, V14, "div.rnd{.ftz}.f32 d, a, b; .rnd = rounding"),
        row(13, V14, "div.rnd.f64 d, a, b; .rnd = rounding"),
    ]),

    instruction(Opcode::Dp2a, Product, Rate::Full, "d = c + the dot product of the two halves of a and two bytes of b, low or high", &[
        row(61, V50, "dp2a.mode.atype.btype d:b32, a:b32, b:b32, c:b32; .mode = {.lo, .hi}; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Dp4a, Product, Rate::Full, "d = c + the dot product of the four bytes of a and the four bytes of b", &[
        row(61, V50, "dp4a.atype.btype d:b32, a:b32, b:b32, c:b32; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Ex2, Always(Class::Special), Rate::Quarter, "d = 2^a, approximately", &[
        row(10, V14, "ex2.approx{.ftz}.f32 d, a"),
        row(75, V70, "ex2.approx.type d, a; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Fma, Typed, Rate::Full, "d = a * b + c, rounded once", &[
        row(20, V20, "fma.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = rounding"),
        row(13, V14, "fma.rnd.f64 d, a, b, c; .rnd = rounding"),
        row(53, V42, "fma.rn{.ftz}{.sat}.type d, a, b, c; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Lg2, Always(Class::Special), Rate::Quarter, "d = log2(a), approximately", &[
        row(10, V14, "lg2.approx{.ftz}.f32 d, a"),
    ]),

    instruction(Opcode::Mad, Product, Rate::Sequence, "d = a * b + c. For integers the low or high half, or with `.wide` the full result; for floats as `fma`", &[
        row(10, V10, "mad.mode.type d, a, b, c; .mode = {.lo, .hi}; .type = integer"),
        row(20, V30, "mad.mode.cc.type d, a, b, c; .mode = {.lo, .hi}; .type = word"),
        row(20, V43, "mad.mode.cc.type d, a, b, c; .mode = {.lo, .hi}; .type = double_word"),
        row(10, V10, "mad.wide.type d:wide, a, b, c:wide; .type = {.u16, .u32, .s16, .s32}"),
        row(10, V10, "mad.hi.sat.s32 d, a, b, c"),
        row(10, V10, "mad{.sat}.f32 d, a, b, c").removed_in(20, V10),
        row(20, V20, "mad.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = rounding"),
        row(13, V14, "mad.rnd.f64 d, a, b, c; .rnd = rounding"),
    ]),

    instruction(Opcode::Mad24, Product, Rate::Sequence, "d = c + the low or high 32 bits of the 48-bit product of the low 24 bits of a and b", &[
        row(10, V10, "mad24.mode.type d, a, b, c; .mode = {.lo, .hi}; .type = word"),
        row(10, V10, "mad24.hi.sat.s32 d, a, b, c"),
    ]),

    instruction(Opcode::Madc, Product, Rate::Sequence, "d = the low or high half of a * b, + c + carry. `.cc` sets the carry", &[
        row(20, V31, "madc.mode{.cc}.type d, a, b, c; .mode = {.lo, .hi}; .type = word"),
        row(20, V43, "madc.mode{.cc}.type d, a, b, c; .mode = {.lo, .hi}; .type = double_word"),
    ]),

    instruction(Opcode::Max, Typed, Rate::Half, "d = max(a, b). -0 is less than +0. If one operand is NaN, d is the other; with `.NaN`, d is NaN", &[
        row(10, V10, "max.type d, a, b; .type = integer"),
        row(10, V10, "max{.ftz}.f32 d, a, b"),
        row(13, V10, "max.f64 d, a, b"),
        row(80, V70, "max{.ftz}.NaN.f32 d, a, b"),
        row(80, V70, "max{.ftz}{.NaN}.type d, a, b; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Min, Typed, Rate::Half, "d = min(a, b). -0 is less than +0. If one operand is NaN, d is the other; with `.NaN`, d is NaN", &[
        row(10, V10, "min.type d, a, b; .type = integer"),
        row(10, V10, "min{.ftz}.f32 d, a, b"),
        row(13, V10, "min.f64 d, a, b"),
        row(80, V70, "min{.ftz}.NaN.f32 d, a, b"),
        row(80, V70, "min{.ftz}{.NaN}.type d, a, b; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Mul, Product, Rate::Sequence, "d = a * b. For integers the low or high half, or with `.wide` the full result; for floats as `add`", &[
        row(10, V10, "mul.mode.type d, a, b; .mode = {.lo, .hi}; .type = integer"),
        row(10, V10, "mul.wide.type d:wide, a, b; .type = {.u16, .u32, .s16, .s32}"),
        row(10, V10, "mul{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
        row(20, V20, "mul.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
        row(13, V10, "mul{.rnd}.f64 d, a, b; .rnd = rounding"),
        row(53, V42, "mul{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Mul24, Product, Rate::Sequence, "d = the low or high 32 bits of the 48-bit product of the low 24 bits of a and b", &[
        row(10, V10, "mul24.mode.type d, a, b; .mode = {.lo, .hi}; .type = word"),
    ]),

    instruction(Opcode::Neg, Typed, Rate::Full, "d = -a", &[
        row(10, V10, "neg.type d, a; .type = {.s16, .s32, .s64}"),
        row(10, V10, "neg{.ftz}.f32 d, a"),
        row(13, V10, "neg.f64 d, a"),
        row(53, V60, "neg{.ftz}.type d, a; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Popc, Always(Class::Integer), Rate::Quarter, "d = the number of set bits in a", &[
        row(20, V20, "popc.type d:u32, a; .type = {.b32, .b64}"),
    ]),

    instruction(Opcode::Rcp, Always(Class::Special), Rate::Sequence, "d = 1 / a", &[
        row(10, V14, "rcp.approx{.ftz}.f32 d, a"),
        row(20, V14, "rcp.rnd{.ftz}.f32 d, a; .rnd = rounding"),
        row(13, V14, "rcp.rnd.f64 d, a; .rnd = rounding"),
        row(20, V21, "rcp.approx.ftz.f64 d, a"),
    ]),

    instruction(Opcode::Rem, Always(Class::Divide), Rate::Sequence, "d = the remainder of a / b, with the sign of a; unspecified if b is 0", &[
        row(10, V10, "rem.type d, a, b; .type = integer"),
    ]),

    instruction(Opcode::Rsqrt, Always(Class::Special), Rate::Sequence, "d = 1 / sqrt(a), approximately", &[
        row(10, V14, "rsqrt.approx{.ftz}.f32 d, a"),
        row(13, V14, "rsqrt.approx{.ftz}.f64 d, a"),
    ]),

    instruction(Opcode::Sad, Product, Rate::Half, "d = c + |a - b|", &[
        row(10, V10, "sad.type d, a, b, c; .type = integer"),
    ]),

    instruction(Opcode::Sin, Always(Class::Special), Rate::Quarter, "d = sin(a), approximately", &[
        row(10, V14, "sin.approx{.ftz}.f32 d, a"),
    ]),

    instruction(Opcode::Sqrt, Always(Class::Special), Rate::Sequence, "d = sqrt(a)", &[
        row(10, V14, "sqrt.approx{.ftz}.f32 d, a"),
        row(20, V14, "sqrt.rnd{.ftz}.f32 d, a; .rnd = rounding"),
        row(13, V14, "sqrt.rnd.f64 d, a; .rnd = rounding"),
    ]),

    instruction(Opcode::Sub, Typed, Rate::Full, "d = a - b, with the rules of `add`. `.cc` sets the carry of a + !b + 1, which is 1 if there is no borrow", &[
        row(10, V10, "sub.type d, a, b; .type = integer"),
        row(10, V10, "sub.sat.s32 d, a, b"),
        row(10, V12, "sub.cc.type d, a, b; .type = word"),
        row(20, V43, "sub.cc.type d, a, b; .type = double_word"),
        row(10, V10, "sub{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
        row(20, V20, "sub.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
        row(13, V10, "sub{.rnd}.f64 d, a, b; .rnd = rounding"),
        row(53, V42, "sub{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),
    ]),

    instruction(Opcode::Subc, Always(Class::Integer), Rate::Full, "d = a + !b + carry, that is a - b - (1 - carry). `.cc` sets the carry", &[
        row(20, V13, "subc{.cc}.type d, a, b; .type = word"),
        row(20, V43, "subc{.cc}.type d, a, b; .type = double_word"),
    ]),

    instruction(Opcode::Tanh, Always(Class::Special), Rate::Quarter, "d = tanh(a), approximately", &[
        row(75, V70, "tanh.approx.type d, a; .type = {.f16, .f16x2, .f32}"),
    ]),

    instruction(Opcode::Testp, Always(Class::Compare), Rate::Half, "p = whether a has the given property", &[
        row(20, V20, "testp.op.type p, a; .op = {.finite, .infinite, .number, .notanumber, .normal, .subnormal}; .type = {.f32, .f64}"),
    ]),
];
