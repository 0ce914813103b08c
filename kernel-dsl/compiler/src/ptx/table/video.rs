//! Arithmetic on parts of 32-bit registers.

use super::versions::*;
use crate::ptx::form::{Row, row};

#[rustfmt::skip]
#[allow(long_running_const_eval, reason = "the forms are parsed at compile time")]
pub(super) const ROWS: &[Row] = &[
    row(20, V20, "vabsdiff.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
    row(20, V20, "vabsdiff.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vabsdiff2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vabsdiff2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vabsdiff4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vabsdiff4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(20, V20, "vadd.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
    row(20, V20, "vadd.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vadd2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vadd2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vadd4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vadd4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vavrg2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vavrg2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vavrg4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vavrg4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(20, V20, "vmad.dtype.atype.btype{.sat}{.scale} d:dtype, {-}a:atype{.part}, {-}b:btype{.part}, {-}c:dtype; .dtype = word; .atype = word; .btype = word; .scale = {.shr7, .shr15}"),
    row(20, V20, "vmad.dtype.atype.btype.po{.sat}{.scale} d:dtype, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word; .scale = {.shr7, .shr15}"),

    row(20, V20, "vmax.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
    row(20, V20, "vmax.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vmax2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vmax2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vmax4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vmax4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(20, V20, "vmin.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
    row(20, V20, "vmin.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vmin2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vmin2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vmin4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vmin4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(20, V20, "vset.atype.btype.cmp{.op2} d:u32, a:atype{.part}, b:btype{.part}{.op2, c:u32}; .atype = word; .btype = word; .cmp = compare; .op2 = {.add, .min, .max}"),
    row(20, V20, "vset.atype.btype.cmp d:u32.part, a:atype{.part}, b:btype{.part}, c:u32; .atype = word; .btype = word; .cmp = compare"),

    row(30, V30, "vset2.atype.btype.cmp{.add} d:u32{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:u32; .atype = word; .btype = word; .cmp = compare"),

    row(30, V30, "vset4.atype.btype.cmp{.add} d:u32{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:u32; .atype = word; .btype = word; .cmp = compare"),

    row(20, V20, "vshl.dtype.atype.u32{.sat}.mode{.op2} d:dtype, a:atype{.part}, b:u32{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .mode = {.clamp, .wrap}; .op2 = {.add, .min, .max}"),
    row(20, V20, "vshl.dtype.atype.u32{.sat}.mode d:dtype.part, a:atype{.part}, b:u32{.part}, c:dtype; .dtype = word; .atype = word; .mode = {.clamp, .wrap}"),

    row(20, V20, "vshr.dtype.atype.u32{.sat}.mode{.op2} d:dtype, a:atype{.part}, b:u32{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .mode = {.clamp, .wrap}; .op2 = {.add, .min, .max}"),
    row(20, V20, "vshr.dtype.atype.u32{.sat}.mode d:dtype.part, a:atype{.part}, b:u32{.part}, c:dtype; .dtype = word; .atype = word; .mode = {.clamp, .wrap}"),

    row(20, V20, "vsub.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
    row(20, V20, "vsub.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vsub2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vsub2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),

    row(30, V30, "vsub4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    row(30, V30, "vsub4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
];
