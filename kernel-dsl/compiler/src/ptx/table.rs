//! The instructions: one row a form, in the notation of [`form`](super::form), with the first target and the first
//! `.version` that have it.
//!
//! The rows of an opcode stand together. A form whose alternatives came at different times is several rows. For
//! sm_61 and later, tests hold each alternative of each row against ptxas: accepted where the row says, refused one version and one
//! target earlier; what older targets have is as the manual says.

use super::form::{Row, row};
use super::words::{Opcode, Version};

const V10: Version = Version::new(1, 0);
const V11: Version = Version::new(1, 1);
const V12: Version = Version::new(1, 2);
const V13: Version = Version::new(1, 3);
const V14: Version = Version::new(1, 4);
const V20: Version = Version::new(2, 0);
const V21: Version = Version::new(2, 1);
const V31: Version = Version::new(3, 1);
const V42: Version = Version::new(4, 2);
const V43: Version = Version::new(4, 3);
const V50: Version = Version::new(5, 0);
const V60: Version = Version::new(6, 0);
const V62: Version = Version::new(6, 2);
const V63: Version = Version::new(6, 3);
const V65: Version = Version::new(6, 5);
const V70: Version = Version::new(7, 0);
const V76: Version = Version::new(7, 6);

/// The forms of `opcode`.
pub fn rows(opcode: Opcode) -> &'static [Row] {
    let (start, end) = INDEX[opcode as usize];
    &ROWS[usize::from(start)..usize::from(end)]
}

/// Where each opcode's rows are.
const INDEX: [(u16, u16); Opcode::ALL.len()] = {
    let mut index = [(0, 0); Opcode::ALL.len()];
    let mut i = 0;
    while i < ROWS.len() {
        let at = ROWS[i].opcode as usize;
        if index[at].1 == 0 {
            index[at].0 = i as u16;
        } else {
            assert!(index[at].1 as usize == i, "the rows of an opcode stand together");
        }
        i += 1;
        index[at].1 = i as u16;
    }
    index
};

/// Every form.
#[rustfmt::skip]
#[allow(long_running_const_eval, reason = "the forms are parsed at compile time")]
pub static ROWS: &[Row] = &[
    row(10, V10, "abs.type d, a; .type = {.s16, .s32, .s64}"),
    row(10, V10, "abs{.ftz}.f32 d, a"),
    row(13, V10, "abs.f64 d, a"),
    row(53, V65, "abs{.ftz}.type d, a; .type = {.f16, .f16x2}"),

    row(30, V62, "activemask.b32 d"),

    row(10, V10, "add.type d, a, b; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "add.sat.s32 d, a, b"),
    row(10, V12, "add.cc.type d, a, b; .type = {.u32, .s32}"),
    row(20, V43, "add.cc.type d, a, b; .type = {.u64, .s64}"),
    row(10, V10, "add{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
    row(20, V20, "add.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
    row(13, V10, "add{.rnd}.f64 d, a, b; .rnd = {.rn, .rz, .rm, .rp}"),
    row(53, V42, "add{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),

    row(10, V12, "addc{.cc}.type d, a, b; .type = {.u32, .s32}"),
    row(20, V43, "addc{.cc}.type d, a, b; .type = {.u64, .s64}"),

    row(10, V10, "and.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),

    row(11, V11, "atom{.space}.op.b32 d, [a], b; .space = {.global, .shared}; .op = {.and, .or, .xor, .exch}"),
    row(11, V11, "atom{.space}.cas.b32 d, [a], b, c; .space = {.global, .shared}"),
    row(11, V11, "atom{.space}.op.type d, [a], b; .space = {.global, .shared}; .op = {.add, .min, .max}; .type = {.u32, .s32}"),
    row(11, V11, "atom{.space}.op.u32 d, [a], b; .space = {.global, .shared}; .op = {.inc, .dec}"),
    row(32, V31, "atom{.space}.op.b64 d, [a], b; .space = {.global, .shared}; .op = {.and, .or, .xor}"),
    row(12, V12, "atom{.space}.exch.b64 d, [a], b; .space = {.global, .shared}"),
    row(12, V12, "atom{.space}.cas.b64 d, [a], b, c; .space = {.global, .shared}"),
    row(12, V12, "atom{.space}.add.u64 d, [a], b; .space = {.global, .shared}"),
    row(32, V31, "atom{.space}.op.type d, [a], b; .space = {.global, .shared}; .op = {.min, .max}; .type = {.u64, .s64}"),
    row(20, V20, "atom{.space}.add.f32 d, [a], b; .space = {.global, .shared}"),
    row(60, V50, "atom{.space}.add.f64 d, [a], b; .space = {.global, .shared}"),
    row(70, V63, "atom{.space}.cas.b16 d, [a], b, c; .space = {.global, .shared}"),
    row(60, V50, "atom{.space}.scope.cas.type d, [a], b, c; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .type = {.b32, .b64}"),
    row(60, V50, "atom{.space}.scope.op.type d, [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.and, .or, .xor, .exch}; .type = {.b32, .b64}"),
    row(60, V50, "atom{.space}.scope.op.u32 d, [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.inc, .dec}"),
    row(60, V50, "atom{.space}.scope.op.type d, [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.min, .max}; .type = {.u64, .s64}"),
    row(60, V50, "atom{.space}.scope.op.type d, [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.add, .min, .max}; .type = {.u32, .s32}"),
    row(60, V50, "atom{.space}.scope.add.type d, [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .type = {.u64, .f32, .f64}"),
    row(70, V60, "atom.sem.scope{.space}.op.type d, [a], b; .sem = {.relaxed, .acquire, .release, .acq_rel}; .scope = {.cta, .gpu, .sys}; .space = {.global, .shared}; .op = {.add, .min, .max}; .type = {.u32, .s32}"),

    row(10, V10, "bar.sync barrier:u32{, threads:u32}"),
    row(20, V20, "bar.arrive barrier:u32, threads:u32"),
    row(20, V20, "bar.red.popc.u32 d, barrier:u32, {!}c:pred"),
    row(20, V20, "bar.red.op.pred p, barrier:u32, {!}c:pred; .op = {.and, .or}"),
    row(30, V60, "bar.warp.sync a:u32"),

    row(30, V60, "barrier.sync{.aligned} barrier:u32{, threads:u32}"),
    row(30, V60, "barrier.arrive{.aligned} barrier:u32, threads:u32"),

    row(20, V20, "bfe.type d, a, b:u32, c:u32; .type = {.u32, .u64, .s32, .s64}"),
    row(20, V20, "bfi.type d, a, b, c:u32, e:u32; .type = {.b32, .b64}"),
    row(20, V20, "bfind{.shiftamt}.type d:u32, a; .type = {.u32, .u64, .s32, .s64}"),
    row(70, V76, "bmsk.mode.b32 d, a:u32, b:u32; .mode = {.clamp, .wrap}"),

    row(10, V10, "bra{.uni} label"),
    row(30, V60, "brx.idx{.uni} a:u32, tlist"),

    row(20, V20, "brev.type d, a; .type = {.b32, .b64}"),
    row(20, V20, "clz.type d:u32, a; .type = {.b32, .b64}"),
    row(10, V10, "cnot.type d, a; .type = {.b16, .b32, .b64}"),
    row(20, V20, "copysign.type d, a, b; .type = {.f32, .f64}"),
    row(10, V14, "cos.approx{.ftz}.f32 d, a"),

    row(80, V70, "cp.async.ca.shared.global [d], [a], constant:u32"),
    row(80, V70, "cp.async.cg.shared.global [d], [a], constant:u32"),
    row(80, V70, "cp.async.commit_group"),
    row(80, V70, "cp.async.wait_group constant:u32"),
    row(80, V70, "cp.async.wait_all"),

    // Integers: cut off or extended, as the source's type says; `.sat` clamps, and is there where it could.
    row(10, V10, "cvt.dtype.atype d:dtype+, a:atype+; .dtype = {.u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64}; .atype = {.u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64}"),
    row(10, V10, "cvt.sat.u8.atype d:u8+, a:atype+; .atype = {.u16, .u32, .u64, .s8, .s16, .s32, .s64}"),
    row(10, V10, "cvt.sat.u16.atype d:u16+, a:atype+; .atype = {.u32, .u64, .s8, .s16, .s32, .s64}"),
    row(10, V10, "cvt.sat.u32.atype d:u32+, a:atype+; .atype = {.u64, .s8, .s16, .s32, .s64}"),
    row(10, V10, "cvt.sat.u64.atype d:u64, a:atype+; .atype = {.s8, .s16, .s32, .s64}"),
    row(10, V10, "cvt.sat.s8.atype d:s8+, a:atype+; .atype = {.u8, .u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "cvt.sat.s16.atype d:s16+, a:atype+; .atype = {.u16, .u32, .u64, .s32, .s64}"),
    row(10, V10, "cvt.sat.s32.atype d:s32+, a:atype+; .atype = {.u32, .u64, .s64}"),
    row(10, V10, "cvt.sat.s64.atype d:s64, a:atype; .atype = {.u64}"),
    // Floats to integers.
    row(10, V10, "cvt.rnd{.ftz}{.sat}.dtype.f32 d:dtype+, a; .rnd = {.rni, .rzi, .rmi, .rpi}; .dtype = {.u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64}"),
    row(13, V10, "cvt.rnd{.sat}.dtype.atype d:dtype+, a; .rnd = {.rni, .rzi, .rmi, .rpi}; .dtype = {.u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64}; .atype = {.f16, .f64}"),
    // Integers to floats.
    row(10, V10, "cvt.rnd{.ftz}{.sat}.f32.atype d:f32, a:atype+; .rnd = {.rn, .rz, .rm, .rp}; .atype = {.u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64}"),
    row(13, V10, "cvt.rnd{.sat}.dtype.atype d:dtype, a:atype+; .rnd = {.rn, .rz, .rm, .rp}; .dtype = {.f16, .f64}; .atype = {.u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64}"),
    // Floats to wider floats, exactly.
    row(13, V10, "cvt{.ftz}{.sat}.dtype.f32 d:dtype, a; .dtype = {.f64}"),
    row(10, V10, "cvt{.ftz}{.sat}.f32.f16 d:f32, a:f16"),
    row(13, V10, "cvt{.sat}.f64.f16 d:f64, a:f16"),
    // Floats to narrower floats.
    row(13, V10, "cvt.rnd{.ftz}{.sat}.f32.f64 d:f32, a:f64; .rnd = {.rn, .rz, .rm, .rp}"),
    row(10, V10, "cvt.rnd{.ftz}{.sat}.f16.f32 d:f16, a:f32; .rnd = {.rn, .rz, .rm, .rp}"),
    row(13, V10, "cvt.rnd{.sat}.f16.f64 d:f16, a:f64; .rnd = {.rn, .rz, .rm, .rp}"),
    // Floats to integral values of the same type.
    row(10, V10, "cvt{.rnd}{.ftz}{.sat}.f32.f32 d:f32, a:f32; .rnd = {.rni, .rzi, .rmi, .rpi}"),
    row(13, V10, "cvt{.rnd}{.sat}.f64.f64 d:f64, a:f64; .rnd = {.rni, .rzi, .rmi, .rpi}"),
    row(53, V42, "cvt{.rnd}{.sat}.f16.f16 d:f16, a:f16; .rnd = {.rni, .rzi, .rmi, .rpi}"),
    row(80, V70, "cvt.rnd.f16x2.f32 d:f16x2, a:f32, b:f32; .rnd = {.rn, .rz}"),
    row(80, V70, "cvt.rnd.bf16.f32 d:b16, a:f32; .rnd = {.rn, .rz}"),

    row(20, V20, "cvta.space.size d, a; .space = {.const, .global, .local, .shared}; .size = {.u64}"),
    row(20, V20, "cvta.to.space.size d, a; .space = {.const, .global, .local, .shared}; .size = {.u64}"),

    row(10, V10, "div.type d, a, b; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V14, "div.mode{.ftz}.f32 d, a, b; .mode = {.approx, .full}"),
    row(20, V14, "div.rnd{.ftz}.f32 d, a, b; .rnd = {.rn, .rz, .rm, .rp}"),
    row(13, V14, "div.rnd.f64 d, a, b; .rnd = {.rn, .rz, .rm, .rp}"),

    row(61, V50, "dp2a.mode.atype.btype d:b32, a:b32, b:b32, c:b32; .mode = {.lo, .hi}; .atype = {.u32, .s32}; .btype = {.u32, .s32}"),
    row(61, V50, "dp4a.atype.btype d:b32, a:b32, b:b32, c:b32; .atype = {.u32, .s32}; .btype = {.u32, .s32}"),

    row(10, V14, "ex2.approx{.ftz}.f32 d, a"),
    row(75, V70, "ex2.approx.type d, a; .type = {.f16, .f16x2}"),

    row(10, V10, "exit"),

    row(70, V60, "fence{.sem}.scope; .sem = {.sc, .acq_rel}; .scope = {.cta, .gpu, .sys}"),

    row(20, V20, "fma.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = {.rn, .rz, .rm, .rp}"),
    row(13, V14, "fma.rnd.f64 d, a, b, c; .rnd = {.rn, .rz, .rm, .rp}"),
    row(53, V42, "fma.rn{.ftz}{.sat}.type d, a, b, c; .type = {.f16, .f16x2}"),

    row(30, V60, "fns.b32 d, a:b32, b:b32, c:s32"),

    row(10, V10, "ld{.space}{.vec}.type d:vec, [a]; .space = {.const, .global, .local, .param, .shared}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    row(10, V10, "ld{.space}{.vec}.type d:vec, [a]; .space = {.const, .global, .local, .param, .shared}; .vec = {.v2}; .type = {.b64, .u64, .s64, .f64}"),
    row(10, V11, "ld.volatile{.space}{.vec}.type d:vec, [a]; .space = {.global, .shared}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    row(10, V11, "ld.volatile{.space}{.vec}.type d:vec, [a]; .space = {.global, .shared}; .vec = {.v2}; .type = {.b64, .u64, .s64, .f64}"),
    row(20, V20, "ld{.space}.cop{.vec}.type d:vec, [a]; .space = {.global, .local}; .cop = {.ca, .cg, .cs, .lu, .cv}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    row(20, V20, "ld{.space}.cop{.vec}.type d:vec, [a]; .space = {.global, .local}; .cop = {.ca, .cg, .cs, .lu, .cv}; .vec = {.v2}; .type = {.b64, .u64, .s64, .f64}"),
    row(32, V31, "ld.global{.cop}.nc{.vec}.type d:vec, [a]; .cop = {.ca, .cg, .cs}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    row(32, V31, "ld.global{.cop}.nc{.vec}.type d:vec, [a]; .cop = {.ca, .cg, .cs}; .vec = {.v2}; .type = {.b64, .u64, .s64, .f64}"),
    row(70, V60, "ld.weak{.space}.type d:type+, [a]; .space = {.global, .local, .shared}; .type = {.b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64}"),
    row(70, V60, "ld.sem.scope{.space}.type d:type+, [a]; .sem = {.relaxed, .acquire}; .scope = {.cta, .gpu, .sys}; .space = {.global, .shared}; .type = {.b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64}"),

    row(10, V14, "lg2.approx{.ftz}.f32 d, a"),
    row(50, V43, "lop3.b32 d, a, b, c, constant:u32"),

    row(10, V10, "mad.mode.type d, a, b, c; .mode = {.lo, .hi}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "mad.wide.type d:wide, a, b, c:wide; .type = {.u16, .u32, .s16, .s32}"),
    row(10, V10, "mad.hi.sat.s32 d, a, b, c"),
    row(20, V20, "mad.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = {.rn, .rz, .rm, .rp}"),
    row(13, V14, "mad.rnd.f64 d, a, b, c; .rnd = {.rn, .rz, .rm, .rp}"),
    row(10, V10, "mad24.mode.type d, a, b, c; .mode = {.lo, .hi}; .type = {.u32, .s32}"),
    row(20, V31, "madc.mode{.cc}.type d, a, b, c; .mode = {.lo, .hi}; .type = {.u32, .s32}"),
    row(20, V43, "madc.mode{.cc}.type d, a, b, c; .mode = {.lo, .hi}; .type = {.u64, .s64}"),

    row(70, V60, "match.any.sync.type d:b32, a, b:u32; .type = {.b32, .b64}"),
    row(70, V60, "match.all.sync.type d:b32{|p}, a, b:u32; .type = {.b32, .b64}"),

    row(10, V10, "max.type d, a, b; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "max{.ftz}.f32 d, a, b"),
    row(13, V10, "max.f64 d, a, b"),
    row(80, V70, "max{.ftz}.NaN.f32 d, a, b"),
    row(80, V70, "max{.ftz}{.NaN}.type d, a, b; .type = {.f16, .f16x2}"),

    row(10, V14, "membar.level; .level = {.cta, .gl}"),
    row(20, V20, "membar.sys"),

    row(10, V10, "min.type d, a, b; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "min{.ftz}.f32 d, a, b"),
    row(13, V10, "min.f64 d, a, b"),
    row(80, V70, "min{.ftz}.NaN.f32 d, a, b"),
    row(80, V70, "min{.ftz}{.NaN}.type d, a, b; .type = {.f16, .f16x2}"),

    row(10, V10, "mov.type d, a; .type = {.pred, .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64}"),
    row(10, V10, "mov.type d, sreg:type; .type = {.u32, .u64}"),
    row(10, V10, "mov.type d, symbol; .type = {.u32, .u64}"),
    row(10, V10, "mov.b32 d, a:b16x2"),
    row(10, V10, "mov.b64 d, a:b32x2"),
    row(10, V10, "mov.b64 d, a:b16x4"),
    row(10, V10, "mov.b32 d:b16x2, a"),
    row(10, V10, "mov.b64 d:b32x2, a"),
    row(10, V10, "mov.b64 d:b16x4, a"),

    row(10, V10, "mul.mode.type d, a, b; .mode = {.lo, .hi}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "mul.wide.type d:wide, a, b; .type = {.u16, .u32, .s16, .s32}"),
    row(10, V10, "mul{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
    row(20, V20, "mul.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
    row(13, V10, "mul{.rnd}.f64 d, a, b; .rnd = {.rn, .rz, .rm, .rp}"),
    row(53, V42, "mul{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),
    row(10, V10, "mul24.mode.type d, a, b; .mode = {.lo, .hi}; .type = {.u32, .s32}"),

    row(70, V62, "nanosleep.u32 a"),

    row(10, V10, "neg.type d, a; .type = {.s16, .s32, .s64}"),
    row(10, V10, "neg{.ftz}.f32 d, a"),
    row(13, V10, "neg.f64 d, a"),
    row(53, V60, "neg{.ftz}.type d, a; .type = {.f16, .f16x2}"),

    row(10, V10, "not.type d, a; .type = {.pred, .b16, .b32, .b64}"),
    row(10, V10, "or.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),
    row(20, V20, "popc.type d:u32, a; .type = {.b32, .b64}"),
    row(20, V20, "prefetch{.space}.level [a]; .space = {.global, .local}; .level = {.L1, .L2}"),
    row(20, V20, "prmt.b32{.mode} d, a, b, c:u32; .mode = {.f4e, .b4e, .rc8, .ecl, .ecr, .rc16}"),

    row(10, V14, "rcp.approx{.ftz}.f32 d, a"),
    row(20, V14, "rcp.rnd{.ftz}.f32 d, a; .rnd = {.rn, .rz, .rm, .rp}"),
    row(13, V14, "rcp.rnd.f64 d, a; .rnd = {.rn, .rz, .rm, .rp}"),
    row(20, V21, "rcp.approx.ftz.f64 d, a"),

    row(11, V12, "red{.space}.op.b32 [a], b; .space = {.global, .shared}; .op = {.and, .or, .xor}"),
    row(11, V12, "red{.space}.op.type [a], b; .space = {.global, .shared}; .op = {.add, .min, .max}; .type = {.u32, .s32}"),
    row(11, V12, "red{.space}.op.u32 [a], b; .space = {.global, .shared}; .op = {.inc, .dec}"),
    row(32, V31, "red{.space}.op.b64 [a], b; .space = {.global, .shared}; .op = {.and, .or, .xor}"),
    row(12, V12, "red{.space}.add.u64 [a], b; .space = {.global, .shared}"),
    row(32, V31, "red{.space}.op.type [a], b; .space = {.global, .shared}; .op = {.min, .max}; .type = {.u64, .s64}"),
    row(20, V20, "red{.space}.add.f32 [a], b; .space = {.global, .shared}"),
    row(60, V50, "red{.space}.add.f64 [a], b; .space = {.global, .shared}"),
    row(60, V50, "red{.space}.scope.op.type [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.and, .or, .xor}; .type = {.b32, .b64}"),
    row(60, V50, "red{.space}.scope.op.u32 [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.inc, .dec}"),
    row(60, V50, "red{.space}.scope.op.type [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.min, .max}; .type = {.u64, .s64}"),
    row(60, V50, "red{.space}.scope.op.type [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .op = {.add, .min, .max}; .type = {.u32, .s32}"),
    row(60, V50, "red{.space}.scope.add.type [a], b; .space = {.global, .shared}; .scope = {.cta, .gpu, .sys}; .type = {.u64, .f32, .f64}"),

    row(80, V70, "redux.sync.op.type d, a, b:u32; .op = {.add, .min, .max}; .type = {.u32, .s32}"),
    row(80, V70, "redux.sync.op.b32 d, a, b:u32; .op = {.and, .or, .xor}"),

    row(10, V10, "rem.type d, a, b; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "ret{.uni}"),

    row(10, V14, "rsqrt.approx{.ftz}.f32 d, a"),
    row(13, V14, "rsqrt.approx{.ftz}.f64 d, a"),

    row(10, V10, "sad.type d, a, b, c; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),

    row(10, V10, "selp.type d, a, b, c:pred; .type = {.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64}"),

    row(10, V10, "set.cmp.dtype.type d:dtype, a, b; .cmp = {.eq, .ne}; .dtype = {.u32, .s32, .f32}; .type = {.b16, .b32, .b64}"),
    row(10, V10, "set.cmp.dtype.type d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge}; .dtype = {.u32, .s32, .f32}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "set.cmp.dtype.type d:dtype, a, b; .cmp = {.lo, .ls, .hi, .hs}; .dtype = {.u32, .s32, .f32}; .type = {.u16, .u32, .u64}"),
    row(10, V10, "set.cmp{.ftz}.dtype.f32 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.u32, .s32, .f32}"),
    row(13, V10, "set.cmp.dtype.f64 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.u32, .s32, .f32}"),
    row(53, V42, "set.cmp{.ftz}.dtype.f16 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.f16}"),
    row(53, V65, "set.cmp{.ftz}.dtype.f16 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.u16, .u32, .s16, .s32}"),
    row(53, V42, "set.cmp{.ftz}.dtype.f16x2 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.f16x2}"),
    row(53, V65, "set.cmp{.ftz}.dtype.f16x2 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.u32, .s32}"),
    row(10, V10, "set.cmp.op.dtype.type d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne}; .op = {.and, .or, .xor}; .dtype = {.u32, .s32, .f32}; .type = {.b16, .b32, .b64}"),
    row(10, V10, "set.cmp.op.dtype.type d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge}; .op = {.and, .or, .xor}; .dtype = {.u32, .s32, .f32}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "set.cmp.op.dtype.type d:dtype, a, b, {!}c:pred; .cmp = {.lo, .ls, .hi, .hs}; .op = {.and, .or, .xor}; .dtype = {.u32, .s32, .f32}; .type = {.u16, .u32, .u64}"),
    row(10, V10, "set.cmp.op{.ftz}.dtype.f32 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.u32, .s32, .f32}"),
    row(13, V10, "set.cmp.op.dtype.f64 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.u32, .s32, .f32}"),
    row(53, V42, "set.cmp.op{.ftz}.dtype.f16 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.f16}"),
    row(53, V65, "set.cmp.op{.ftz}.dtype.f16 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.u16, .u32, .s16, .s32}"),
    row(53, V42, "set.cmp.op{.ftz}.dtype.f16x2 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.f16x2}"),
    row(53, V65, "set.cmp.op{.ftz}.dtype.f16x2 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.u32, .s32}"),
    row(53, V42, "set.cmp.dtype.type d:dtype, a, b; .cmp = {.eq, .ne}; .dtype = {.f16}; .type = {.b16, .b32, .b64}"),
    row(53, V42, "set.cmp.dtype.type d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge}; .dtype = {.f16}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(53, V42, "set.cmp.dtype.type d:dtype, a, b; .cmp = {.lo, .ls, .hi, .hs}; .dtype = {.f16}; .type = {.u16, .u32, .u64}"),
    row(53, V42, "set.cmp{.ftz}.dtype.f32 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.f16}"),
    row(53, V42, "set.cmp.dtype.f64 d:dtype, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .dtype = {.f16}"),
    row(53, V42, "set.cmp.op.dtype.type d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne}; .op = {.and, .or, .xor}; .dtype = {.f16}; .type = {.b16, .b32, .b64}"),
    row(53, V42, "set.cmp.op.dtype.type d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge}; .op = {.and, .or, .xor}; .dtype = {.f16}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(53, V42, "set.cmp.op.dtype.type d:dtype, a, b, {!}c:pred; .cmp = {.lo, .ls, .hi, .hs}; .op = {.and, .or, .xor}; .dtype = {.f16}; .type = {.u16, .u32, .u64}"),
    row(53, V42, "set.cmp.op{.ftz}.dtype.f32 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.f16}"),
    row(53, V42, "set.cmp.op.dtype.f64 d:dtype, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .dtype = {.f16}"),

    row(10, V10, "setp.cmp.type p{|p}, a, b; .cmp = {.eq, .ne}; .type = {.b16, .b32, .b64}"),
    row(10, V10, "setp.cmp.type p{|p}, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "setp.cmp.type p{|p}, a, b; .cmp = {.lo, .ls, .hi, .hs}; .type = {.u16, .u32, .u64}"),
    row(10, V10, "setp.cmp{.ftz}.f32 p{|p}, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}"),
    row(13, V10, "setp.cmp.f64 p{|p}, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}"),
    row(53, V42, "setp.cmp{.ftz}.type p{|p}, a, b; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .type = {.f16, .f16x2}"),
    row(10, V10, "setp.cmp.op.type p{|p}, a, b, {!}c:pred; .cmp = {.eq, .ne}; .op = {.and, .or, .xor}; .type = {.b16, .b32, .b64}"),
    row(10, V10, "setp.cmp.op.type p{|p}, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge}; .op = {.and, .or, .xor}; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "setp.cmp.op.type p{|p}, a, b, {!}c:pred; .cmp = {.lo, .ls, .hi, .hs}; .op = {.and, .or, .xor}; .type = {.u16, .u32, .u64}"),
    row(10, V10, "setp.cmp.op{.ftz}.f32 p{|p}, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}"),
    row(13, V10, "setp.cmp.op.f64 p{|p}, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}"),
    row(53, V42, "setp.cmp.op{.ftz}.type p{|p}, a, b, {!}c:pred; .cmp = {.eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan}; .op = {.and, .or, .xor}; .type = {.f16, .f16x2}"),

    row(32, V31, "shf.dir.mode.b32 d, a, b, c:u32; .dir = {.l, .r}; .mode = {.clamp, .wrap}"),
    row(30, V60, "shfl.sync.mode.b32 d{|p}, a, b:u32, c:u32, e:u32; .mode = {.up, .down, .bfly, .idx}"),

    row(10, V10, "shl.type d, a, b:u32; .type = {.b16, .b32, .b64}"),
    row(10, V10, "shr.type d, a, b:u32; .type = {.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64}"),

    row(10, V14, "sin.approx{.ftz}.f32 d, a"),

    row(10, V10, "slct.type.s32 d:type, a:type, b:type, c:s32; .type = {.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64}"),
    row(10, V10, "slct{.ftz}.type.f32 d:type, a:type, b:type, c:f32; .type = {.b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64}"),

    row(10, V14, "sqrt.approx{.ftz}.f32 d, a"),
    row(20, V14, "sqrt.rnd{.ftz}.f32 d, a; .rnd = {.rn, .rz, .rm, .rp}"),
    row(13, V14, "sqrt.rnd.f64 d, a; .rnd = {.rn, .rz, .rm, .rp}"),

    row(10, V10, "st{.space}{.vec}.type [a], b:vec; .space = {.global, .local, .shared}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    row(10, V10, "st{.space}{.vec}.type [a], b:vec; .space = {.global, .local, .shared}; .vec = {.v2}; .type = {.b64, .u64, .s64, .f64}"),
    row(10, V11, "st.volatile{.space}{.vec}.type [a], b:vec; .space = {.global, .shared}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    row(10, V11, "st.volatile{.space}{.vec}.type [a], b:vec; .space = {.global, .shared}; .vec = {.v2}; .type = {.b64, .u64, .s64, .f64}"),
    row(20, V20, "st{.space}.cop{.vec}.type [a], b:vec; .space = {.global, .local}; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2, .v4}; .type = {.b8, .b16, .b32, .u8, .u16, .u32, .s8, .s16, .s32, .f32}"),
    row(20, V20, "st{.space}.cop{.vec}.type [a], b:vec; .space = {.global, .local}; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2}; .type = {.b64, .u64, .s64, .f64}"),
    row(70, V60, "st.sem.scope{.space}.type [a], b:type+; .sem = {.relaxed, .release}; .scope = {.cta, .gpu, .sys}; .space = {.global, .shared}; .type = {.b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64}"),

    row(10, V10, "sub.type d, a, b; .type = {.u16, .u32, .u64, .s16, .s32, .s64}"),
    row(10, V10, "sub.sat.s32 d, a, b"),
    row(10, V12, "sub.cc.type d, a, b; .type = {.u32, .s32}"),
    row(20, V43, "sub.cc.type d, a, b; .type = {.u64, .s64}"),
    row(10, V10, "sub{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = {.rn, .rz}"),
    row(20, V20, "sub.rnd{.ftz}{.sat}.f32 d, a, b; .rnd = {.rm, .rp}"),
    row(13, V10, "sub{.rnd}.f64 d, a, b; .rnd = {.rn, .rz, .rm, .rp}"),
    row(53, V42, "sub{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = {.rn}; .type = {.f16, .f16x2}"),
    row(20, V13, "subc{.cc}.type d, a, b; .type = {.u32, .s32}"),
    row(20, V43, "subc{.cc}.type d, a, b; .type = {.u64, .s64}"),

    row(75, V70, "tanh.approx.type d, a; .type = {.f16, .f16x2, .f32}"),

    row(20, V20, "testp.op.type p, a; .op = {.finite, .infinite, .number, .notanumber, .normal, .subnormal}; .type = {.f32, .f64}"),
    row(10, V10, "trap"),

    row(30, V60, "vote.sync.mode.pred p, {!}a:pred, b:u32; .mode = {.all, .any, .uni}"),
    row(30, V60, "vote.sync.ballot.b32 d, {!}a:pred, b:u32"),

    row(10, V10, "xor.type d, a, b; .type = {.pred, .b16, .b32, .b64}"),
];
