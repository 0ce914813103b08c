//! Atomic operations on memory.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Atom, Always(Class::Atomic), Rate::Atomic, "d = the old value at address a. Atomically replaces this value by the operator applied to it and b. `.inc` counts up to b, then restarts at 0; `.dec` counts down to 0, then restarts at b; `.cas` stores c if the old value equals b. `add.f32` flushes subnormals in global memory but not in shared memory", &[
        row(11, V11, "atom{.space}.op.b32 d{_}, [a], b; .space = {.global, .shared}; .op = {.and, .or, .xor, .exch}"),
        row(11, V11, "atom{.space}.cas.b32 d{_}, [a], b, c; .space = {.global, .shared}"),
        row(11, V11, "atom{.space}.op.type d{_}, [a], b; .space = {.global, .shared}; .op = {.add, .min, .max}; .type = word"),
        row(11, V11, "atom{.space}.op.u32 d{_}, [a], b; .space = {.global, .shared}; .op = {.inc, .dec}"),
        row(32, V31, "atom{.space}.op.b64 d{_}, [a], b; .space = {.global, .shared}; .op = logic"),
        row(12, V12, "atom{.space}.exch.b64 d{_}, [a], b; .space = {.global, .shared}"),
        row(12, V12, "atom{.space}.cas.b64 d{_}, [a], b, c; .space = {.global, .shared}"),
        row(12, V12, "atom{.space}.add.u64 d{_}, [a], b; .space = {.global, .shared}"),
        row(32, V31, "atom{.space}.op.type d{_}, [a], b; .space = {.global, .shared}; .op = {.min, .max}; .type = double_word"),
        row(20, V20, "atom{.space}.add.f32 d{_}, [a], b; .space = {.global, .shared}"),
        row(60, V50, "atom{.space}.add.f64 d{_}, [a], b; .space = {.global, .shared}"),
        row(70, V63, "atom{.space}.cas.b16 d{_}, [a], b, c; .space = {.global, .shared}"),
        row(60, V50, "atom{.space}.scope.cas.type d{_}, [a], b, c; .space = {.global, .shared}; .scope = scope; .type = {.b32, .b64}"),
        row(60, V50, "atom{.space}.scope.op.type d{_}, [a], b; .space = {.global, .shared}; .scope = scope; .op = {.and, .or, .xor, .exch}; .type = {.b32, .b64}"),
        row(60, V50, "atom{.space}.scope.op.u32 d{_}, [a], b; .space = {.global, .shared}; .scope = scope; .op = {.inc, .dec}"),
        row(60, V50, "atom{.space}.scope.op.type d{_}, [a], b; .space = {.global, .shared}; .scope = scope; .op = {.min, .max}; .type = double_word"),
        row(60, V50, "atom{.space}.scope.op.type d{_}, [a], b; .space = {.global, .shared}; .scope = scope; .op = {.add, .min, .max}; .type = word"),
        row(60, V50, "atom{.space}.scope.add.type d{_}, [a], b; .space = {.global, .shared}; .scope = scope; .type = {.u64, .f32, .f64}"),
        row(70, V60, "atom.sem.scope{.space}.cas.type d{_}, [a], b, c; .sem = {.relaxed, .acquire, .release, .acq_rel}; .scope = scope; .space = {.global, .shared}; .type = {.b32, .b64}"),
        row(70, V60, "atom.sem.scope{.space}.op.type d{_}, [a], b; .sem = {.relaxed, .acquire, .release, .acq_rel}; .scope = scope; .space = {.global, .shared}; .op = {.and, .or, .xor, .exch}; .type = {.b32, .b64}"),
        row(70, V60, "atom.sem.scope{.space}.op.u32 d{_}, [a], b; .sem = {.relaxed, .acquire, .release, .acq_rel}; .scope = scope; .space = {.global, .shared}; .op = {.inc, .dec}"),
        row(70, V60, "atom.sem.scope{.space}.op.type d{_}, [a], b; .sem = {.relaxed, .acquire, .release, .acq_rel}; .scope = scope; .space = {.global, .shared}; .op = {.min, .max}; .type = double_word"),
        row(70, V60, "atom.sem.scope{.space}.op.type d{_}, [a], b; .sem = {.relaxed, .acquire, .release, .acq_rel}; .scope = scope; .space = {.global, .shared}; .op = {.add, .min, .max}; .type = word"),
        row(70, V60, "atom.sem.scope{.space}.add.type d{_}, [a], b; .sem = {.relaxed, .acquire, .release, .acq_rel}; .scope = scope; .space = {.global, .shared}; .type = {.u64, .f32, .f64}"),
        row(60, V62, "atom{.space}{.scope}.add.noftz.f16x2 d{_}, [a], b; .space = {.global, .shared}; .scope = scope"),
        row(70, V63, "atom{.space}{.scope}.add.noftz.f16 d{_}, [a], b; .space = {.global, .shared}; .scope = scope"),
    ]),

    instruction(Opcode::Red, Always(Class::Atomic), Rate::Atomic, "As `atom`, without returning the old value", &[
        row(11, V12, "red{.space}.op.b32 [a], b; .space = {.global, .shared}; .op = logic"),
        row(11, V12, "red{.space}.op.type [a], b; .space = {.global, .shared}; .op = {.add, .min, .max}; .type = word"),
        row(11, V12, "red{.space}.op.u32 [a], b; .space = {.global, .shared}; .op = {.inc, .dec}"),
        row(32, V31, "red{.space}.op.b64 [a], b; .space = {.global, .shared}; .op = logic"),
        row(12, V12, "red{.space}.add.u64 [a], b; .space = {.global, .shared}"),
        row(32, V31, "red{.space}.op.type [a], b; .space = {.global, .shared}; .op = {.min, .max}; .type = double_word"),
        row(20, V20, "red{.space}.add.f32 [a], b; .space = {.global, .shared}"),
        row(60, V50, "red{.space}.add.f64 [a], b; .space = {.global, .shared}"),
        row(60, V50, "red{.space}.scope.op.type [a], b; .space = {.global, .shared}; .scope = scope; .op = logic; .type = {.b32, .b64}"),
        row(60, V50, "red{.space}.scope.op.u32 [a], b; .space = {.global, .shared}; .scope = scope; .op = {.inc, .dec}"),
        row(60, V50, "red{.space}.scope.op.type [a], b; .space = {.global, .shared}; .scope = scope; .op = {.min, .max}; .type = double_word"),
        row(60, V50, "red{.space}.scope.op.type [a], b; .space = {.global, .shared}; .scope = scope; .op = {.add, .min, .max}; .type = word"),
        row(60, V50, "red{.space}.scope.add.type [a], b; .space = {.global, .shared}; .scope = scope; .type = {.u64, .f32, .f64}"),
        row(60, V62, "red{.space}{.scope}.add.noftz.f16x2 [a], b; .space = {.global, .shared}; .scope = scope"),
        row(70, V63, "red{.space}{.scope}.add.noftz.f16 [a], b; .space = {.global, .shared}; .scope = scope"),
        row(70, V60, "red.sem.scope{.space}.op.type [a], b; .sem = {.relaxed, .release}; .scope = scope; .space = {.global, .shared}; .op = logic; .type = {.b32, .b64}"),
        row(70, V60, "red.sem.scope{.space}.op.u32 [a], b; .sem = {.relaxed, .release}; .scope = scope; .space = {.global, .shared}; .op = {.inc, .dec}"),
        row(70, V60, "red.sem.scope{.space}.op.type [a], b; .sem = {.relaxed, .release}; .scope = scope; .space = {.global, .shared}; .op = {.min, .max}; .type = double_word"),
        row(70, V60, "red.sem.scope{.space}.op.type [a], b; .sem = {.relaxed, .release}; .scope = scope; .space = {.global, .shared}; .op = {.add, .min, .max}; .type = word"),
        row(70, V60, "red.sem.scope{.space}.add.type [a], b; .sem = {.relaxed, .release}; .scope = scope; .space = {.global, .shared}; .type = {.u64, .f32, .f64}"),
    ]),
];
