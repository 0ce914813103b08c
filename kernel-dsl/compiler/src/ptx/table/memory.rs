//! Loads, stores and related instructions.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Alloca, Always(Class::Move), Rate::Full, "d = the local-memory address of newly allocated stack memory of a bytes", &[
        row(52, V73, "alloca.u64 d, a{, constant:u32}"),
    ]),

    instruction(Opcode::Cp, Always(Class::GlobalLoad), Rate::Global, "Starts a copy from global to shared memory without blocking the executing thread. Other forms commit a group of copies and wait for groups", &[
        row(80, V70, "cp.async.ca.shared.global [d], [a], constant:u32{, b:u32}"),
        row(80, V70, "cp.async.cg.shared.global [d], [a], constant:u32{, b:u32}"),
        row(80, V70, "cp.async.commit_group"),
        row(80, V70, "cp.async.wait_group constant:u32"),
        row(80, V70, "cp.async.wait_all"),
    ]),

    instruction(Opcode::Fence, Always(Class::Barrier), Rate::Barrier, "Orders the memory accesses before the fence before those after it", &[
        row(70, V60, "fence{.sem}.scope; .sem = {.sc, .acq_rel}; .scope = scope"),
    ]),

    instruction(Opcode::Ld, Load, Rate::Global, "d = the value at address a, sign- or zero-extended in a wider register. `.nc` requires that the memory is not written while the kernel runs", &[
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
    ]),

    instruction(Opcode::Ldu, Always(Class::GlobalLoad), Rate::Global, "d = the value at address a, which must be read-only and the same for all lanes", &[
        row(20, V20, "ldu{.global}{.vec}.type d:vec, [a]; .vec = {.v2, .v4}; .type = memory32"),
        row(20, V20, "ldu{.global}{.vec}.type d:vec, [a]; .vec = {.v2}; .type = memory64"),
    ]),

    instruction(Opcode::Membar, Always(Class::Barrier), Rate::Barrier, "Orders the memory accesses before the barrier before those after it, for the block, the device or the system", &[
        row(10, V14, "membar.level; .level = {.cta, .gl}"),
        row(20, V20, "membar.sys"),
        row(60, V75, "membar.proxy.alias"),
    ]),

    instruction(Opcode::Prefetch, Always(Class::GlobalLoad), Rate::Global, "Loads the cache line of address a into the given cache", &[
        row(20, V20, "prefetch{.space}.level [a]; .space = {.global, .local}; .level = {.L1, .L2}"),
    ]),

    instruction(Opcode::Prefetchu, Always(Class::GlobalLoad), Rate::Global, "Loads the cache line of address a into the given cache", &[
        row(20, V20, "prefetchu.L1 [a]"),
    ]),

    instruction(Opcode::St, Store, Rate::Global, "Stores b at address a", &[
        row(10, V10, "st{.space}{.vec}.type [a], b:vec; .space = {.global, .local, .shared}; .vec = {.v2, .v4}; .type = memory32"),
        row(10, V10, "st{.space}{.vec}.type [a], b:vec; .space = {.global, .local, .shared}; .vec = {.v2}; .type = memory64"),
        row(20, V20, "st.param{.vec}.type [a], b:vec; .vec = {.v2, .v4}; .type = memory32"),
        row(20, V20, "st.param{.vec}.type [a], b:vec; .vec = {.v2}; .type = memory64"),
        row(10, V11, "st.volatile{.space}{.vec}.type [a], b:vec; .space = {.global, .shared}; .vec = {.v2, .v4}; .type = memory32"),
        row(10, V11, "st.volatile{.space}{.vec}.type [a], b:vec; .space = {.global, .shared}; .vec = {.v2}; .type = memory64"),
        row(20, V20, "st{.space}.cop{.vec}.type [a], b:vec; .space = {.global, .local, .param, .shared}; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2, .v4}; .type = memory32"),
        row(20, V20, "st{.space}.cop{.vec}.type [a], b:vec; .space = {.global, .local, .param, .shared}; .cop = {.wb, .cg, .cs, .wt}; .vec = {.v2}; .type = memory64"),
        row(70, V60, "st.sem.scope{.space}.type [a], b:type+; .sem = {.relaxed, .release}; .scope = scope; .space = {.global, .shared}; .type = memory"),
    ]),

    instruction(Opcode::Stackrestore, Always(Class::Move), Rate::Full, "Restores the stack pointer a saved by `stacksave`", &[
        row(52, V73, "stackrestore.u64 %a"),
    ]),

    instruction(Opcode::Stacksave, Always(Class::Move), Rate::Full, "d = the stack pointer", &[
        row(52, V73, "stacksave.u64 d"),
    ]),
];
