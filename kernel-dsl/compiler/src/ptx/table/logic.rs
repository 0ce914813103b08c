//! Bits: logic, shifts, fields, permutations.

use super::versions::*;
use crate::ptx::form::{Row, row};

#[rustfmt::skip]
#[allow(long_running_const_eval, reason = "the forms are parsed at compile time")]
pub(super) const ROWS: &[Row] = &[
    row(10, V10, "and.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),

    row(20, V20, "bfe.type d, a, b:u32, c:u32; .type = {.u32, .u64, .s32, .s64}"),

    row(20, V20, "bfi.type d, a, b, c:u32, e:u32; .type = {.b32, .b64}"),

    row(70, V76, "bmsk.mode.b32 d, a:u32, b:u32; .mode = {.clamp, .wrap}"),

    row(20, V20, "brev.type d, a; .type = {.b32, .b64}"),

    row(10, V10, "cnot.type d, a; .type = bits"),

    row(30, V60, "fns.b32 d, a:b32, b:b32, c:s32"),

    row(50, V43, "lop3.b32 d, a, b, c, constant:u32"),

    row(10, V10, "not.type d, a; .type = {.pred, .b16, .b32, .b64}"),

    row(10, V10, "or.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),

    row(20, V20, "prmt.b32{.mode} d, a, b, c:u32; .mode = {.f4e, .b4e, .rc8, .ecl, .ecr, .rc16}"),

    row(32, V31, "shf.dir.mode.b32 d, a, b, c:u32; .dir = {.l, .r}; .mode = {.clamp, .wrap}"),

    row(10, V10, "shl.type d, a, b:u32; .type = bits"),

    row(10, V10, "shr.type d, a, b:u32; .type = {.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64}"),

    row(70, V76, "szext.mode.type d, a, b:u32; .mode = {.clamp, .wrap}; .type = word"),

    row(10, V10, "xor.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),
];
