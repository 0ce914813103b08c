//! Bits: logic, shifts, fields, permutations.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::And, Always(Class::Integer), Rate::Full, "d = a & b", &[
        row(10, V10, "and.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),
    ]),

    instruction(Opcode::Bfe, Always(Class::Integer), Rate::Half, "d = the c bits of a starting at bit b, sign-extended if the type is signed", &[
        row(20, V20, "bfe.type d, a, b:u32, c:u32; .type = {.u32, .u64, .s32, .s64}"),
    ]),

    instruction(Opcode::Bfi, Always(Class::Integer), Rate::Half, "d = b with the e bits starting at bit c replaced by the lowest bits of a", &[
        row(20, V20, "bfi.type d, a, b, c:u32, e:u32; .type = {.b32, .b64}"),
    ]),

    instruction(Opcode::Bmsk, Always(Class::Integer), Rate::Full, "d = a mask of b one bits that starts at bit a", &[
        row(70, V76, "bmsk.mode.b32 d, a:u32, b:u32; .mode = {.clamp, .wrap}"),
    ]),

    instruction(Opcode::Brev, Always(Class::Integer), Rate::Half, "d = the bits of a in reverse order", &[
        row(20, V20, "brev.type d, a; .type = {.b32, .b64}"),
    ]),

    instruction(Opcode::Cnot, Always(Class::Integer), Rate::Full, "d = 1 if a is 0, else 0", &[
        row(10, V10, "cnot.type d, a; .type = bits"),
    ]),

    instruction(Opcode::Fns, Always(Class::Integer), Rate::Full, "d = the position of the c-th set bit of a, counted upwards from bit b, or downwards if c is negative; 0xFFFFFFFF if there is none", &[
        row(30, V60, "fns.b32 d, a:b32, b:b32, c:s32"),
    ]),

    instruction(Opcode::Lop3, Always(Class::Integer), Rate::Full, "d = a bitwise function of a, b and c. Each result bit is the bit of the constant selected by the bits of a, b and c", &[
        row(50, V43, "lop3.b32 d, a, b, c, constant:u32"),
    ]),

    instruction(Opcode::Not, Always(Class::Integer), Rate::Full, "d = ~a", &[
        row(10, V10, "not.type d, a; .type = {.pred, .b16, .b32, .b64}"),
    ]),

    instruction(Opcode::Or, Always(Class::Integer), Rate::Full, "d = a | b", &[
        row(10, V10, "or.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),
    ]),

    instruction(Opcode::Prmt, Always(Class::Integer), Rate::Full, "d = four bytes selected from a and b by four bits of c each; the highest of these bits replicates the sign of the byte. In the special modes two bits of c select", &[
        row(20, V20, "prmt.b32{.mode} d, a, b, c:u32; .mode = {.f4e, .b4e, .rc8, .ecl, .ecr, .rc16}"),
    ]),

    instruction(Opcode::Shf, Always(Class::Integer), Rate::Half, "d = 32 bits of the 64-bit value b:a shifted by c. `.l` shifts left and keeps the upper half, `.r` shifts right and keeps the lower half. `.clamp` limits c to 32, `.wrap` takes c modulo 32", &[
        row(32, V31, "shf.dir.mode.b32 d, a, b, c:u32; .dir = {.l, .r}; .mode = {.clamp, .wrap}"),
    ]),

    instruction(Opcode::Shl, Always(Class::Integer), Rate::Half, "d = a shifted left by b; 0 if b is at least the width", &[
        row(10, V10, "shl.type d, a, b:u32; .type = bits"),
    ]),

    instruction(Opcode::Shr, Always(Class::Integer), Rate::Half, "d = a shifted right by b, sign-filled if the type is signed. A shift by at least the width shifts out all bits", &[
        row(10, V10, "shr.type d, a, b:u32; .type = {.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64}"),
    ]),

    instruction(Opcode::Szext, Always(Class::Integer), Rate::Full, "d = the low b bits of a, sign- or zero-extended", &[
        row(70, V76, "szext.mode.type d, a, b:u32; .mode = {.clamp, .wrap}; .type = word"),
    ]),

    instruction(Opcode::Xor, Always(Class::Integer), Rate::Full, "d = a ^ b", &[
        row(10, V10, "xor.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),
    ]),
];
