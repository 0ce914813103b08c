//! Loads, stores and related instructions.

use super::versions::*;
use crate::ptx::form::{Row, row};

#[rustfmt::skip]
#[allow(long_running_const_eval, reason = "the forms are parsed at compile time")]
pub(super) const ROWS: &[Row] = &[
    row(52, V73, "alloca.u64 d, a{, constant:u32}"),

    row(80, V70, "cp.async.ca.shared.global [d], [a], constant:u32{, b:u32}"),
    row(80, V70, "cp.async.cg.shared.global [d], [a], constant:u32{, b:u32}"),
    row(80, V70, "cp.async.commit_group"),
    row(80, V70, "cp.async.wait_group constant:u32"),
    row(80, V70, "cp.async.wait_all"),

    row(70, V60, "fence{.sem}.scope; .sem = {.sc, .acq_rel}; .scope = scope"),

    row(10, V10, "ld{.space}{.vec}.type d:vec, [a]; .space = {.const, .global, .local, .param, .shared}; .vec = {.v2, .v4}; .type = memory32"),
    row(10, V10, "ld{.space}{.vec}.type d:vec, [a]; .space = {.const, .global, .local, .param, .shared}; .vec = {.v2}; .type = memory64"),
    row(10, V11, "ld.volatile{.space}{.vec}.type d:vec, [a]; .space = {.global, .shared}; .vec = {.v2, .v4}; .type = memory32"),
    row(10, V11, "ld.volatile{.space}{.vec}.type d:vec, [a]; .space = {.global, .shared}; .vec = {.v2}; .type = memory64"),
    row(20, V20, "ld{.space}.cop{.vec}.type d:vec, [a]; .space = {.const, .global, .local, .param, .shared}; .cop = {.ca, .cg, .cs, .lu, .cv}; .vec = {.v2, .v4}; .type = memory32"),
    row(20, V20, "ld{.space}.cop{.vec}.type d:vec, [a]; .space = {.const, .global, .local, .param, .shared}; .cop = {.ca, .cg, .cs, .lu, .cv}; .vec = {.v2}; .type = memory64"),
    row(32, V31, "ld.global{.cop}.nc{.vec}.type d:vec, [a]; .cop = {.ca, .cg, .cs}; .vec = {.v2, .v4}; .type = memory32"),
    row(32, V31, "ld.global{.cop}.nc{.vec}.type d:vec, [a]; .cop = {.ca, .cg, .cs}; .vec = {.v2}; .type = memory64"),
    row(70, V60, "ld.weak{.space}.type d:type+, [a]; .space = {.global, .local, .shared}; .type = memory"),
    row(70, V60, "ld.sem.scope{.space}.type d:type+, [a]; .sem = {.relaxed, .acquire}; .scope = scope; .space = {.global, .shared}; .type = memory"),

    row(20, V20, "ldu{.global}{.vec}.type d:vec, [a]; .vec = {.v2, .v4}; .type = memory32"),
    row(20, V20, "ldu{.global}{.vec}.type d:vec, [a]; .vec = {.v2}; .type = memory64"),

    row(10, V14, "membar.level; .level = {.cta, .gl}"),
    row(20, V20, "membar.sys"),
    row(60, V75, "membar.proxy.alias"),

    row(20, V20, "prefetch{.space}.level [a]; .space = {.global, .local}; .level = {.L1, .L2}"),

    row(20, V20, "prefetchu.L1 [a]"),

    row(10, V10, "st{.space}{.vec}.type [a], b:vec; .space = {.global, .local, .shared}; .vec = {.v2, .v4}; .type = memory32"),
    row(10, V10, "st{.space}{.vec}.type [a], b:vec; .space = {.global, .local, .shared}; .vec = {.v2}; .type = memory64"),
    row(20, V20, "st.param{.vec}.type [a], b:vec; .vec = {.v2, .v4}; .type = memory32"),
    row(20, V20, "st.param{.vec}.type [a], b:vec; .vec = {.v2}; .type = memory64"),
    row(10, V11, "st.volatile{.space}{.vec}.type [a], b:vec; .space = {.global, .shared}; .vec = {.v2, .v4}; .type = memory32"),
    row(10, V11, "st.volatile{.space}{.vec}.type [a], b:vec; .space = {.global, .shared}; .vec = {.v2}; .type = memory64"),
    row(20, V20, "st{.space}.cop{.vec}.type [a], b:vec; .space = {.global, .local, .param, .shared}; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2, .v4}; .type = memory32"),
    row(20, V20, "st{.space}.cop{.vec}.type [a], b:vec; .space = {.global, .local, .param, .shared}; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2}; .type = memory64"),
    row(70, V60, "st.sem.scope{.space}.type [a], b:type+; .sem = {.relaxed, .release}; .scope = scope; .space = {.global, .shared}; .type = memory"),

    row(52, V73, "stackrestore.u64 %a"),

    row(52, V73, "stacksave.u64 d"),
];
