//! Arithmetic on parts of 32-bit registers.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Vabsdiff, Always(Class::Integer), Rate::Full, "d = |a - b| of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vabsdiff.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
        row(20, V20, "vabsdiff.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vabsdiff2, Always(Class::Integer), Rate::Full, "d = c with |a - b| in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vabsdiff2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vabsdiff2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vabsdiff4, Always(Class::Integer), Rate::Full, "d = c with |a - b| in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vabsdiff4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vabsdiff4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vadd, Always(Class::Integer), Rate::Full, "d = a + b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vadd.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
        row(20, V20, "vadd.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vadd2, Always(Class::Integer), Rate::Full, "d = c with a + b in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vadd2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vadd2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vadd4, Always(Class::Integer), Rate::Full, "d = c with a + b in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vadd4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vadd4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vavrg2, Always(Class::Integer), Rate::Full, "d = c with (a + b + 1) / 2 in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vavrg2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vavrg2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vavrg4, Always(Class::Integer), Rate::Full, "d = c with (a + b + 1) / 2 in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vavrg4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vavrg4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vmad, Always(Class::Multiply), Rate::Sequence, "d = a * b + c of parts of 32-bit registers, shifted right by 0, 7 or 15. `.po` adds 1", &[
        row(20, V20, "vmad.dtype.atype.btype{.sat}{.scale} d:dtype, {-}a:atype{.part}, {-}b:btype{.part}, {-}c:dtype; .dtype = word; .atype = word; .btype = word; .scale = {.shr7, .shr15}"),
        row(20, V20, "vmad.dtype.atype.btype.po{.sat}{.scale} d:dtype, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word; .scale = {.shr7, .shr15}"),
    ]),

    instruction(Opcode::Vmax, Always(Class::Integer), Rate::Full, "d = max(a, b) of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vmax.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
        row(20, V20, "vmax.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vmax2, Always(Class::Integer), Rate::Full, "d = c with max(a, b) in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vmax2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vmax2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vmax4, Always(Class::Integer), Rate::Full, "d = c with max(a, b) in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vmax4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vmax4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vmin, Always(Class::Integer), Rate::Full, "d = min(a, b) of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vmin.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
        row(20, V20, "vmin.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vmin2, Always(Class::Integer), Rate::Full, "d = c with min(a, b) in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vmin2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vmin2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vmin4, Always(Class::Integer), Rate::Full, "d = c with min(a, b) in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vmin4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vmin4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vset, Always(Class::Integer), Rate::Full, "d = whether parts of 32-bit registers compare true, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vset.atype.btype.cmp{.op2} d:u32, a:atype{.part}, b:btype{.part}{.op2, c:u32}; .atype = word; .btype = word; .cmp = compare; .op2 = {.add, .min, .max}"),
        row(20, V20, "vset.atype.btype.cmp d:u32.part, a:atype{.part}, b:btype{.part}, c:u32; .atype = word; .btype = word; .cmp = compare"),
    ]),

    instruction(Opcode::Vset2, Always(Class::Integer), Rate::Full, "d = c with the comparison result in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vset2.atype.btype.cmp{.add} d:u32{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:u32; .atype = word; .btype = word; .cmp = compare"),
    ]),

    instruction(Opcode::Vset4, Always(Class::Integer), Rate::Full, "d = c with the comparison result in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vset4.atype.btype.cmp{.add} d:u32{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:u32; .atype = word; .btype = word; .cmp = compare"),
    ]),

    instruction(Opcode::Vshl, Always(Class::Integer), Rate::Full, "d = a << b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vshl.dtype.atype.u32{.sat}.mode{.op2} d:dtype, a:atype{.part}, b:u32{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .mode = {.clamp, .wrap}; .op2 = {.add, .min, .max}"),
        row(20, V20, "vshl.dtype.atype.u32{.sat}.mode d:dtype.part, a:atype{.part}, b:u32{.part}, c:dtype; .dtype = word; .atype = word; .mode = {.clamp, .wrap}"),
    ]),

    instruction(Opcode::Vshr, Always(Class::Integer), Rate::Full, "d = a >> b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vshr.dtype.atype.u32{.sat}.mode{.op2} d:dtype, a:atype{.part}, b:u32{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .mode = {.clamp, .wrap}; .op2 = {.add, .min, .max}"),
        row(20, V20, "vshr.dtype.atype.u32{.sat}.mode d:dtype.part, a:atype{.part}, b:u32{.part}, c:dtype; .dtype = word; .atype = word; .mode = {.clamp, .wrap}"),
    ]),

    instruction(Opcode::Vsub, Always(Class::Integer), Rate::Full, "d = a - b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c", &[
        row(20, V20, "vsub.dtype.atype.btype{.sat}{.op2} d:dtype, a:atype{.part}, b:btype{.part}{.op2, c:dtype}; .dtype = word; .atype = word; .btype = word; .op2 = {.add, .min, .max}"),
        row(20, V20, "vsub.dtype.atype.btype{.sat} d:dtype.part, a:atype{.part}, b:btype{.part}, c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vsub2, Always(Class::Integer), Rate::Full, "d = c with a - b in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vsub2.dtype.atype.btype{.sat} d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vsub2.dtype.atype.btype.add d:dtype{.half_mask}, %a:atype{.halves}, %b:btype{.halves}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),

    instruction(Opcode::Vsub4, Always(Class::Integer), Rate::Full, "d = c with a - b in each half or byte selected by the mask, or c + their sum", &[
        row(30, V30, "vsub4.dtype.atype.btype{.sat} d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
        row(30, V30, "vsub4.dtype.atype.btype.add d:dtype{.byte_mask}, %a:atype{.bytes}, %b:btype{.bytes}, %c:dtype; .dtype = word; .atype = word; .btype = word"),
    ]),
];
