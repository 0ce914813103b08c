//! Conversion, and moves between registers.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Cvt, Always(Class::Convert), Rate::Quarter, "d = a converted to another type. Integers are truncated or extended; `.sat` saturates. Floats to integers always saturate; NaN becomes 0, or the minimum or maximum if either side has 64 bits. Conversions to integers and narrower floats need a rounding modifier; conversions to wider floats must not have one", &[
        // Integers: truncated, or extended by the source type; `.sat` saturates, in forms that can
        // overflow.
        row(10, V10, "cvt.dtype.atype d:dtype+, a:atype+; .dtype = any_integer; .atype = any_integer"),
        row(10, V10, "cvt.dtype.atype d:dtype+, sreg:atype+; .dtype = any_integer; .atype = any_integer"),
        row(10, V10, "cvt.sat.u8.atype d:u8+, a:atype+; .atype = {.u16, .u32, .u64, .s8, .s16, .s32, .s64}"),
        row(10, V10, "cvt.sat.u16.atype d:u16+, a:atype+; .atype = {.u32, .u64, .s8, .s16, .s32, .s64}"),
        row(10, V10, "cvt.sat.u32.atype d:u32+, a:atype+; .atype = {.u64, .s8, .s16, .s32, .s64}"),
        row(10, V10, "cvt.sat.u64.atype d:u64, a:atype+; .atype = {.s8, .s16, .s32, .s64}"),
        row(10, V10, "cvt.sat.s8.atype d:s8+, a:atype+; .atype = {.u8, .u16, .u32, .u64, .s16, .s32, .s64}"),
        row(10, V10, "cvt.sat.s16.atype d:s16+, a:atype+; .atype = {.u16, .u32, .u64, .s32, .s64}"),
        row(10, V10, "cvt.sat.s32.atype d:s32+, a:atype+; .atype = {.u32, .u64, .s64}"),
        row(10, V10, "cvt.sat.s64.atype d:s64, a:atype; .atype = {.u64}"),
        // Floats to integers.
        row(10, V10, "cvt.rnd{.ftz}{.sat}.dtype.f32 d:dtype+, a; .rnd = integral; .dtype = any_integer"),
        row(13, V10, "cvt.rnd{.sat}.dtype.atype d:dtype+, a; .rnd = integral; .dtype = any_integer; .atype = {.f16, .f64}"),
        // Integers to floats.
        row(10, V10, "cvt.rnd{.ftz}{.sat}.f32.atype d:f32, a:atype+; .rnd = rounding; .atype = any_integer"),
        row(13, V10, "cvt.rnd{.sat}.dtype.atype d:dtype, a:atype+; .rnd = rounding; .dtype = {.f16, .f64}; .atype = any_integer"),
        // Floats to wider floats, exactly.
        row(13, V10, "cvt{.ftz}{.sat}.dtype.f32 d:dtype, a; .dtype = {.f64}"),
        row(10, V10, "cvt{.ftz}{.sat}.f32.f16 d:f32, a:f16"),
        row(13, V10, "cvt{.sat}.f64.f16 d:f64, a:f16"),
        // Floats to narrower floats.
        row(13, V10, "cvt.rnd{.ftz}{.sat}.f32.f64 d:f32, a:f64; .rnd = rounding"),
        row(10, V10, "cvt.rnd{.ftz}{.sat}.f16.f32 d:f16, a:f32; .rnd = rounding"),
        row(13, V10, "cvt.rnd{.sat}.f16.f64 d:f16, a:f64; .rnd = rounding"),
        // Floats to integral values of the same type.
        row(10, V10, "cvt{.rnd}{.ftz}{.sat}.f32.f32 d:f32, a:f32; .rnd = integral"),
        row(13, V10, "cvt{.rnd}{.sat}.f64.f64 d:f64, a:f64; .rnd = integral"),
        row(53, V42, "cvt{.rnd}{.sat}.f16.f16 d:f16, a:f16; .rnd = integral"),
        row(80, V70, "cvt.rnd.f16x2.f32 d:f16x2, a:f32, b:f32; .rnd = {.rn, .rz}"),
        row(80, V70, "cvt.rnd.bf16.f32 d:b16, a:f32; .rnd = {.rn, .rz}"),
    ]),

    instruction(Opcode::Cvta, Always(Class::Move), Rate::Full, "d = the generic address of a, an address in the state space. `.to` converts back", &[
        row(20, V20, "cvta.space.size d, a; .space = {.global, .local, .shared}; .size = {.u64}"),
        row(20, V31, "cvta.const.u64 d, a"),
        row(20, V20, "cvta.space.size d, symbol; .space = {.global, .local, .shared}; .size = {.u64}"),
        row(20, V31, "cvta.const.u64 d, symbol"),
        row(20, V20, "cvta.to.space.size d, %a; .space = {.global, .local, .shared}; .size = {.u64}"),
        row(20, V31, "cvta.to.const.u64 d, %a"),
    ]),

    instruction(Opcode::Isspacep, Always(Class::Compare), Rate::Half, "p = whether the generic address a is in the state space", &[
        row(20, V20, "isspacep.space p, %a:u64; .space = {.global, .local, .shared}"),
        row(20, V31, "isspacep.const p, %a:u64"),
        row(70, V77, "isspacep.param p, %a:u64"),
    ]),

    instruction(Opcode::Mov, Always(Class::Move), Rate::Full, "d = a. a is a register, constant, address or special register; also packs and unpacks vectors", &[
        row(10, V10, "mov.type d, a; .type = {.pred, .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64}"),
        row(10, V10, "mov.type d, sreg:type; .type = {.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64}"),
        row(10, V10, "mov.type d, symbol; .type = {.b32, .b64, .u32, .u64, .s32, .s64}"),
        row(10, V10, "mov.b32 d, a:b16x2"),
        row(10, V10, "mov.b64 d, a:b32x2"),
        row(10, V10, "mov.b64 d, a:b16x4"),
        row(10, V10, "mov.b32 d:b16x2, a"),
        row(10, V10, "mov.b64 d:b32x2, a"),
        row(10, V10, "mov.b64 d:b16x4, a"),
        row(10, V10, "mov.v2.type d:typex2, a:typex2; .type = value"),
        row(10, V10, "mov.v4.type d:typex4, a:typex4; .type = {.b16, .b32, .u16, .u32, .s16, .s32, .f32}"),
    ]),
];
