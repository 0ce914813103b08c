//! Comparison and selection.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Selp, Always(Class::Compare), Rate::Full, "d = a if c, else b", &[
        row(10, V10, "selp.type d, a, b, c:pred; .type = value"),
    ]),

    instruction(Opcode::Set, Always(Class::Compare), Rate::Half, "d = all ones, or 1.0 for floats, if the comparison of a and b holds, else 0. `.op` combines the comparison with c", &[
        row(10, V10, "set.cmp{.op}.dtype.type d:dtype, a, b{.op, {!}c:pred}; .cmp = {.eq, .ne}; .op = logic; .dtype = {.u32, .s32, .f32}; .type = bits"),
        row(10, V10, "set.cmp{.op}.dtype.type d:dtype, a, b{.op, {!}c:pred}; .cmp = compare; .op = logic; .dtype = {.u32, .s32, .f32}; .type = integer"),
        row(10, V10, "set.cmp{.op}.dtype.type d:dtype, a, b{.op, {!}c:pred}; .cmp = {.lo, .ls, .hi, .hs}; .op = logic; .dtype = {.u32, .s32, .f32}; .type = unsigned"),
        row(10, V10, "set.cmp{.op}{.ftz}.dtype.f32 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = {.u32, .s32, .f32}"),
        row(13, V10, "set.cmp{.op}.dtype.f64 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = {.u32, .s32, .f32}"),
        row(53, V42, "set.cmp{.op}.dtype.type d:dtype, a, b{.op, {!}c:pred}; .cmp = {.eq, .ne}; .op = logic; .dtype = {.f16}; .type = bits"),
        row(53, V42, "set.cmp{.op}.dtype.type d:dtype, a, b{.op, {!}c:pred}; .cmp = compare; .op = logic; .dtype = {.f16}; .type = integer"),
        row(53, V42, "set.cmp{.op}.dtype.type d:dtype, a, b{.op, {!}c:pred}; .cmp = {.lo, .ls, .hi, .hs}; .op = logic; .dtype = {.f16}; .type = unsigned"),
        row(53, V42, "set.cmp{.op}{.ftz}.dtype.f32 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = {.f16}"),
        row(53, V42, "set.cmp{.op}.dtype.f64 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = {.f16}"),
        row(53, V42, "set.cmp{.op}{.ftz}.dtype.f16 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = {.f16}"),
        row(53, V65, "set.cmp{.op}{.ftz}.dtype.f16 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = {.u16, .u32, .s16, .s32}"),
        row(53, V42, "set.cmp{.op}{.ftz}.dtype.f16x2 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = {.f16x2}"),
        row(53, V65, "set.cmp{.op}{.ftz}.dtype.f16x2 d:dtype, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic; .dtype = word"),
    ]),

    instruction(Opcode::Setp, Always(Class::Compare), Rate::Half, "p = whether the comparison of a and b holds; the predicate after the bar is the negation. `.op` combines each with c. With a NaN operand, `eq` to `ge` and `ne` are false, `equ` to `geu` are true", &[
        row(10, V10, "setp.cmp{.op}.type p{_}{|p}, a, b{.op, {!}c:pred}; .cmp = {.eq, .ne}; .op = logic; .type = bits"),
        row(10, V10, "setp.cmp{.op}.type p{_}{|p}, a, b{.op, {!}c:pred}; .cmp = compare; .op = logic; .type = integer"),
        row(10, V10, "setp.cmp{.op}.type p{_}{|p}, a, b{.op, {!}c:pred}; .cmp = {.lo, .ls, .hi, .hs}; .op = logic; .type = unsigned"),
        row(10, V10, "setp.cmp{.op}{.ftz}.f32 p{_}{|p}, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic"),
        row(13, V10, "setp.cmp{.op}.f64 p{_}{|p}, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic"),
        row(53, V42, "setp.cmp{.op}{.ftz}.f16 p{_}, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic"),
        row(53, V42, "setp.cmp{.op}{.ftz}.f16x2 p{_}{|p}, a, b{.op, {!}c:pred}; .cmp = float_compare; .op = logic"),
    ]),

    instruction(Opcode::Slct, Always(Class::Compare), Rate::Half, "d = a if c >= 0, else b; b if c is NaN", &[
        row(10, V10, "slct.type.s32 d:type, a:type, b:type, c:s32; .type = value"),
        row(10, V10, "slct{.ftz}.type.f32 d:type, a:type, b:type, c:f32; .type = value"),
    ]),
];
