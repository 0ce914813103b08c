//! Control flow, traps and markers.

use super::versions::*;
use crate::ptx::form::{Row, row};

#[rustfmt::skip]
#[allow(long_running_const_eval, reason = "the forms are parsed at compile time")]
pub(super) const ROWS: &[Row] = &[
    row(10, V10, "bra{.uni} label"),

    row(11, V10, "brkpt"),

    row(30, V60, "brx.idx{.uni} a:u32, tlist"),

    row(10, V10, "call{.uni} callee"),

    row(10, V10, "exit"),

    row(70, V62, "nanosleep.u32 a"),

    row(10, V14, "pmevent event:u32"),
    row(20, V30, "pmevent.mask constant:u32"),

    row(10, V10, "ret{.uni}"),

    row(10, V10, "trap"),
];
