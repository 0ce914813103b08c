//! Control flow, traps and markers.

use super::entry::versions::*;
use super::entry::{InstructionForms, instruction};
use crate::ptx::cost::{ClassRule::*, InstructionClass as Class, Rate};
use crate::ptx::form::row;
use crate::ptx::words::Opcode;

#[rustfmt::skip]
pub(super) const INSTRUCTIONS: &[InstructionForms] = &[
    instruction(Opcode::Bra, Always(Class::Control), Rate::Branch, "Branches to the label. `.uni` asserts that all active lanes branch together", &[
        row(10, V10, "bra{.uni} label"),
    ]),

    instruction(Opcode::Brkpt, Always(Class::Control), Rate::Branch, "Stops for a debugger", &[
        row(11, V10, "brkpt"),
    ]),

    instruction(Opcode::Brx, Always(Class::Control), Rate::Branch, "Branches to label number a of the list", &[
        row(30, V60, "brx.idx{.uni} a:u32, tlist"),
    ]),

    instruction(Opcode::Call, Always(Class::Control), Rate::Branch, "Calls a function. `.uni` asserts that all active lanes make the same call", &[
        row(10, V10, "call{.uni} callee"),
    ]),

    instruction(Opcode::Exit, Always(Class::Control), Rate::Branch, "Ends the thread", &[
        row(10, V10, "exit"),
    ]),

    instruction(Opcode::Nanosleep, Always(Class::Control), Rate::Branch, "Waits for about a nanoseconds", &[
        row(70, V62, "nanosleep.u32 a"),
    ]),

    instruction(Opcode::Pmevent, Always(Class::Control), Rate::Branch, "Triggers a profiler event", &[
        row(10, V14, "pmevent event:u32"),
        row(20, V30, "pmevent.mask constant:u32"),
    ]),

    instruction(Opcode::Ret, Always(Class::Control), Rate::Branch, "Returns from a function; in a kernel, ends the thread", &[
        row(10, V10, "ret{.uni}"),
    ]),

    instruction(Opcode::Trap, Always(Class::Control), Rate::Branch, "Aborts the kernel with an error", &[
        row(10, V10, "trap"),
    ]),
];
