//! Arithmetic on integers, floats and half-precision floats.

use super::versions::*;
use crate::ptx::form::{Row, row};

#[rustfmt::skip]
#[allow(long_running_const_eval, reason = "the forms are parsed at compile time")]
pub(super) const ROWS: &[Row] = &[
    row(10, V10, "abs.type d, a; .type = {.s16, .s32, .s64}"),
    row(10, V10, "abs{.ftz}.f32 d, a"),
    row(13, V10, "abs.f64 d, a"),
    row(53, V65, "abs{.ftz}.type d, a; .type = {.f16, .f16x2}"),

    row(10, V10, "add.type d, a, b; .type = integer"),
    row(10, V10, "add.sat.s32 d, a, b"),
    row(10, V12, "add.cc.type d, a, b; .type = word"),
    row(20, V43, "add.cc.type d, a, b; .type = double_word"),
    row(10, V10, "add{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
    row(20, V20, "add.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
    row(13, V10, "add{.rnd}.f64 d, a, b; .rnd = rounding"),
    row(53, V42, "add{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),

    row(10, V12, "addc{.cc}.type d, a, b; .type = word"),
    row(20, V43, "addc{.cc}.type d, a, b; .type = double_word"),

    row(20, V20, "bfind{.shiftamt}.type d:u32, a; .type = {.u32, .u64, .s32, .s64}"),

    row(20, V20, "clz.type d:u32, a; .type = {.b32, .b64}"),

    row(20, V20, "copysign.type d, a, b; .type = {.f32, .f64}"),

    row(10, V14, "cos.approx{.ftz}.f32 d, a"),

    row(10, V10, "div.type d, a, b; .type = integer"),
    row(10, V14, "div.mode{.ftz}.f32 d, a, b; .mode = {.approx, .full}"),
    row(20, V14, "div.rnd{.ftz}.f32 d, a, b; .rnd = rounding"),
    row(13, V14, "div.rnd.f64 d, a, b; .rnd = rounding"),

    row(61, V50, "dp2a.mode.atype.btype d:b32, a:b32, b:b32, c:b32; .mode = {.lo, .hi}; .atype = word; .btype = word"),

    row(61, V50, "dp4a.atype.btype d:b32, a:b32, b:b32, c:b32; .atype = word; .btype = word"),

    row(10, V14, "ex2.approx{.ftz}.f32 d, a"),
    row(75, V70, "ex2.approx.type d, a; .type = {.f16, .f16x2}"),

    row(20, V20, "fma.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = rounding"),
    row(13, V14, "fma.rnd.f64 d, a, b, c; .rnd = rounding"),
    row(53, V42, "fma.rn{.ftz}{.sat}.type d, a, b, c; .type = {.f16, .f16x2}"),

    row(10, V14, "lg2.approx{.ftz}.f32 d, a"),

    row(10, V10, "mad.mode.type d, a, b, c; .mode = {.lo, .hi}; .type = integer"),
    row(20, V30, "mad.mode.cc.type d, a, b, c; .mode = {.lo, .hi}; .type = word"),
    row(20, V43, "mad.mode.cc.type d, a, b, c; .mode = {.lo, .hi}; .type = double_word"),
    row(10, V10, "mad.wide.type d:wide, a, b, c:wide; .type = {.u16, .u32, .s16, .s32}"),
    row(10, V10, "mad.hi.sat.s32 d, a, b, c"),
    row(10, V10, "mad{.sat}.f32 d, a, b, c").gone(20, V10),
    row(20, V20, "mad.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = rounding"),
    row(13, V14, "mad.rnd.f64 d, a, b, c; .rnd = rounding"),

    row(10, V10, "mad24.mode.type d, a, b, c; .mode = {.lo, .hi}; .type = word"),
    row(10, V10, "mad24.hi.sat.s32 d, a, b, c"),

    row(20, V31, "madc.mode{.cc}.type d, a, b, c; .mode = {.lo, .hi}; .type = word"),
    row(20, V43, "madc.mode{.cc}.type d, a, b, c; .mode = {.lo, .hi}; .type = double_word"),

    row(10, V10, "max.type d, a, b; .type = integer"),
    row(10, V10, "max{.ftz}.f32 d, a, b"),
    row(13, V10, "max.f64 d, a, b"),
    row(80, V70, "max{.ftz}.NaN.f32 d, a, b"),
    row(80, V70, "max{.ftz}{.NaN}.type d, a, b; .type = {.f16, .f16x2}"),

    row(10, V10, "min.type d, a, b; .type = integer"),
    row(10, V10, "min{.ftz}.f32 d, a, b"),
    row(13, V10, "min.f64 d, a, b"),
    row(80, V70, "min{.ftz}.NaN.f32 d, a, b"),
    row(80, V70, "min{.ftz}{.NaN}.type d, a, b; .type = {.f16, .f16x2}"),

    row(10, V10, "mul.mode.type d, a, b; .mode = {.lo, .hi}; .type = integer"),
    row(10, V10, "mul.wide.type d:wide, a, b; .type = {.u16, .u32, .s16, .s32}"),
    row(10, V10, "mul{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
    row(20, V20, "mul.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
    row(13, V10, "mul{.rnd}.f64 d, a, b; .rnd = rounding"),
    row(53, V42, "mul{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),

    row(10, V10, "mul24.mode.type d, a, b; .mode = {.lo, .hi}; .type = word"),

    row(10, V10, "neg.type d, a; .type = {.s16, .s32, .s64}"),
    row(10, V10, "neg{.ftz}.f32 d, a"),
    row(13, V10, "neg.f64 d, a"),
    row(53, V60, "neg{.ftz}.type d, a; .type = {.f16, .f16x2}"),

    row(20, V20, "popc.type d:u32, a; .type = {.b32, .b64}"),

    row(10, V14, "rcp.approx{.ftz}.f32 d, a"),
    row(20, V14, "rcp.rnd{.ftz}.f32 d, a; .rnd = rounding"),
    row(13, V14, "rcp.rnd.f64 d, a; .rnd = rounding"),
    row(20, V21, "rcp.approx.ftz.f64 d, a"),

    row(10, V10, "rem.type d, a, b; .type = integer"),

    row(10, V14, "rsqrt.approx{.ftz}.f32 d, a"),
    row(13, V14, "rsqrt.approx{.ftz}.f64 d, a"),

    row(10, V10, "sad.type d, a, b, c; .type = integer"),

    row(10, V14, "sin.approx{.ftz}.f32 d, a"),

    row(10, V14, "sqrt.approx{.ftz}.f32 d, a"),
    row(20, V14, "sqrt.rnd{.ftz}.f32 d, a; .rnd = rounding"),
    row(13, V14, "sqrt.rnd.f64 d, a; .rnd = rounding"),

    row(10, V10, "sub.type d, a, b; .type = integer"),
    row(10, V10, "sub.sat.s32 d, a, b"),
    row(10, V12, "sub.cc.type d, a, b; .type = word"),
    row(20, V43, "sub.cc.type d, a, b; .type = double_word"),
    row(10, V10, "sub{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
    row(20, V20, "sub.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
    row(13, V10, "sub{.rnd}.f64 d, a, b; .rnd = rounding"),
    row(53, V42, "sub{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),

    row(20, V13, "subc{.cc}.type d, a, b; .type = word"),
    row(20, V43, "subc{.cc}.type d, a, b; .type = double_word"),

    row(75, V70, "tanh.approx.type d, a; .type = {.f16, .f16x2, .f32}"),

    row(20, V20, "testp.op.type p, a; .op = {.finite, .infinite, .number, .notanumber, .normal, .subnormal}; .type = {.f32, .f64}"),
];
