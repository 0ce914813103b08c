//! Collective operations of a warp or block.

use super::versions::*;
use crate::ptx::form::{Row, row};

#[rustfmt::skip]
#[allow(long_running_const_eval, reason = "the forms are parsed at compile time")]
pub(super) const ROWS: &[Row] = &[
    row(30, V62, "activemask.b32 d"),

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

    row(70, V60, "match.any.sync.type d:b32, a, b:u32; .type = {.b32, .b64}"),
    row(70, V60, "match.all.sync.type d:b32{|p}, a, b:u32; .type = {.b32, .b64}"),

    row(80, V70, "redux.sync.op.type d, a, b:u32; .op = {.add, .min, .max}; .type = word"),
    row(80, V70, "redux.sync.op.b32 d, a, b:u32; .op = logic"),

    row(30, V60, "shfl.sync.mode.b32 d{|p}, a, b:u32, c:u32, e:u32; .mode = {.up, .down, .bfly, .idx}"),
    row(30, V30, "shfl.mode.b32 d{|p}, a, b:u32, c:u32; .mode = {.up, .down, .bfly, .idx}").gone(70, V64),

    row(30, V60, "vote.sync.mode.pred p, {!}a:pred, b:u32; .mode = {.all, .any, .uni}"),
    row(30, V60, "vote.sync.ballot.b32 d, {!}a:pred, b:u32"),
    row(12, V12, "vote.mode.pred p, {!}a:pred; .mode = {.all, .any, .uni}").gone(70, V64),
    row(20, V20, "vote.ballot.b32 d, {!}a:pred").gone(70, V64),
];
