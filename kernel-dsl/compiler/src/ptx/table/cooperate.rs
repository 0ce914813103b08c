//! Collective operations of a warp or block.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Activemask, Always(Class::Move), Rate::Full, "d = a mask of the lanes that execute this instruction together with the executing thread. Convergence is not guaranteed", &[
        row(30, V62, "activemask.b32 d"),
    ]),

    instruction(Opcode::Bar, Always(Class::Barrier), Rate::Barrier, "Waits at barrier a. `.sync` waits for all threads of the block or for the given number; `.arrive` does not wait; `.red` also votes on c or counts it. `bar.warp.sync` synchronizes the lanes of mask a", &[
        row(10, V10, "bar.sync barrier:u32{, threads:u32}"),
        row(20, V20, "bar.arrive barrier:u32, threads:u32"),
        row(20, V20, "bar.red.popc.u32 d, barrier:u32, {!}c:pred"),
        row(20, V20, "bar.red.popc.u32 d, barrier:u32, threads:u32, {!}c:pred"),
        row(20, V20, "bar.red.op.pred p, barrier:u32, {!}c:pred; .op = {.and, .or}"),
        row(20, V20, "bar.red.op.pred p, barrier:u32, threads:u32, {!}c:pred; .op = {.and, .or}"),
        row(30, V78, "bar.cta.sync barrier:u32{, threads:u32}"),
        row(30, V78, "bar.cta.arrive barrier:u32, threads:u32"),
        row(30, V78, "bar.cta.red.popc.u32 d, barrier:u32, {!}c:pred"),
        row(30, V78, "bar.cta.red.popc.u32 d, barrier:u32, threads:u32, {!}c:pred"),
        row(30, V78, "bar.cta.red.op.pred p, barrier:u32, {!}c:pred; .op = {.and, .or}"),
        row(30, V78, "bar.cta.red.op.pred p, barrier:u32, threads:u32, {!}c:pred; .op = {.and, .or}"),
        row(30, V60, "bar.warp.sync a:u32"),
    ]),

    instruction(Opcode::Barrier, Always(Class::Barrier), Rate::Barrier, "As `bar`, for threads that may have diverged. `.aligned` requires converged threads", &[
        row(30, V60, "barrier.sync{.aligned} barrier:u32{, threads:u32}"),
        row(30, V60, "barrier.arrive{.aligned} barrier:u32, threads:u32"),
        row(30, V60, "barrier.red.popc{.aligned}.u32 d, barrier:u32, {!}c:pred"),
        row(30, V60, "barrier.red.popc{.aligned}.u32 d, barrier:u32, threads:u32, {!}c:pred"),
        row(30, V60, "barrier.red.op{.aligned}.pred p, barrier:u32, {!}c:pred; .op = {.and, .or}"),
        row(30, V60, "barrier.red.op{.aligned}.pred p, barrier:u32, threads:u32, {!}c:pred; .op = {.and, .or}"),
        row(30, V78, "barrier.cta.sync{.aligned} barrier:u32{, threads:u32}"),
        row(30, V78, "barrier.cta.arrive{.aligned} barrier:u32, threads:u32"),
        row(30, V78, "barrier.cta.red.popc{.aligned}.u32 d, barrier:u32, {!}c:pred"),
        row(30, V78, "barrier.cta.red.popc{.aligned}.u32 d, barrier:u32, threads:u32, {!}c:pred"),
        row(30, V78, "barrier.cta.red.op{.aligned}.pred p, barrier:u32, {!}c:pred; .op = {.and, .or}"),
        row(30, V78, "barrier.cta.red.op{.aligned}.pred p, barrier:u32, threads:u32, {!}c:pred; .op = {.and, .or}"),
    ]),

    instruction(Opcode::Match, Always(Class::Warp), Rate::Quarter, "d = a mask of the lanes whose a equals that of the executing lane (`.any`), or of all lanes if they all agree, else 0 (`.all`)", &[
        row(70, V60, "match.any.sync.type d:b32, a, b:u32; .type = {.b32, .b64}"),
        row(70, V60, "match.all.sync.type d:b32{|p}, a, b:u32; .type = {.b32, .b64}"),
    ]),

    instruction(Opcode::Redux, Always(Class::Warp), Rate::Quarter, "d = the reduction of a over the lanes of mask b", &[
        row(80, V70, "redux.sync.op.type d, a, b:u32; .op = {.add, .min, .max}; .type = word"),
        row(80, V70, "redux.sync.op.b32 d, a, b:u32; .op = logic"),
    ]),

    instruction(Opcode::Shfl, Always(Class::Warp), Rate::Quarter, "d = a of another lane, within the segment given by c: b lanes up or down, the lane number xor b, or lane b. p = whether that lane is in range", &[
        row(30, V60, "shfl.sync.mode.b32 d{|p}, a, b:u32, c:u32, e:u32; .mode = {.up, .down, .bfly, .idx}"),
        row(30, V30, "shfl.mode.b32 d{|p}, a, b:u32, c:u32; .mode = {.up, .down, .bfly, .idx}").removed_in(70, V64),
    ]),

    instruction(Opcode::Vote, Always(Class::Warp), Rate::Half, "p = whether a holds in all lanes, in any lane, or uniformly; d = a mask of the lanes in which a holds. Over the lanes of mask b (`.sync`), or over the active lanes", &[
        row(30, V60, "vote.sync.mode.pred p, {!}a:pred, b:u32; .mode = {.all, .any, .uni}"),
        row(30, V60, "vote.sync.ballot.b32 d, {!}a:pred, b:u32"),
        row(12, V12, "vote.mode.pred p, {!}a:pred; .mode = {.all, .any, .uni}").removed_in(70, V64),
        row(20, V20, "vote.ballot.b32 d, {!}a:pred").removed_in(70, V64),
    ]),
];
