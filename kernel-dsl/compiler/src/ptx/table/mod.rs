//! The table of instructions: one row for each form, in the notation of [`form`](super::form), with
//! the first target and `.version` that support it. Each kind of instruction has a file.
//!
//! A form whose alternatives were introduced at different times has several rows. For sm_61 and
//! later, tests compare each alternative of each row with ptxas: it is accepted as the row states,
//! and rejected one version and one target earlier. Older targets follow the manual.
//!
//! The table has every instruction that sm_61 can execute, and the later instructions that this
//! project emits.
#![doc = ""]
#![doc = include_str!("instructions.md")]

mod arithmetic;
mod atomic;
mod compare;
mod control;
mod convert;
mod cooperate;
mod logic;
mod memory;
mod texture;
mod video;

use super::form::Row;
use super::words::Opcode;

/// The PTX versions that introduced instructions.
mod versions {
    use crate::ptx::words::Version;

    pub const V10: Version = Version::new(1, 0);
    pub const V11: Version = Version::new(1, 1);
    pub const V12: Version = Version::new(1, 2);
    pub const V13: Version = Version::new(1, 3);
    pub const V14: Version = Version::new(1, 4);
    pub const V15: Version = Version::new(1, 5);
    pub const V20: Version = Version::new(2, 0);
    pub const V21: Version = Version::new(2, 1);
    pub const V22: Version = Version::new(2, 2);
    pub const V30: Version = Version::new(3, 0);
    pub const V31: Version = Version::new(3, 1);
    pub const V32: Version = Version::new(3, 2);
    pub const V40: Version = Version::new(4, 0);
    pub const V41: Version = Version::new(4, 1);
    pub const V42: Version = Version::new(4, 2);
    pub const V43: Version = Version::new(4, 3);
    pub const V50: Version = Version::new(5, 0);
    pub const V60: Version = Version::new(6, 0);
    pub const V62: Version = Version::new(6, 2);
    pub const V63: Version = Version::new(6, 3);
    pub const V64: Version = Version::new(6, 4);
    pub const V65: Version = Version::new(6, 5);
    pub const V70: Version = Version::new(7, 0);
    pub const V73: Version = Version::new(7, 3);
    pub const V75: Version = Version::new(7, 5);
    pub const V76: Version = Version::new(7, 6);
    pub const V77: Version = Version::new(7, 7);
    pub const V78: Version = Version::new(7, 8);
    pub const V81: Version = Version::new(8, 1);
}

/// Returns the forms of `opcode`.
pub fn rows(opcode: Opcode) -> &'static [Row] {
    let (start, end) = INDEX[opcode as usize];
    &ROWS[usize::from(start)..usize::from(end)]
}

/// The range of rows of each opcode.
static INDEX: [(u16, u16); Opcode::ALL.len()] = {
    let mut index = [(0, 0); Opcode::ALL.len()];
    let mut i = 0;
    while i < ALL.len() {
        let at = ALL[i].opcode as usize;
        if index[at].1 == 0 {
            index[at].0 = i as u16;
        } else {
            assert!(index[at].1 as usize == i, "the rows of an opcode stand together");
        }
        i += 1;
        index[at].1 = i as u16;
    }
    let mut i = 0;
    while i < index.len() {
        assert!(index[i].1 > 0, "every opcode has a row");
        i += 1;
    }
    index
};

/// All forms.
pub static ROWS: &[Row] = &ALL;

const FILES: [&[Row]; 10] = [
    arithmetic::ROWS,
    atomic::ROWS,
    compare::ROWS,
    control::ROWS,
    convert::ROWS,
    cooperate::ROWS,
    logic::ROWS,
    memory::ROWS,
    texture::ROWS,
    video::ROWS,
];

const COUNT: usize = {
    let (mut count, mut i) = (0, 0);
    while i < FILES.len() {
        count += FILES[i].len();
        i += 1;
    }
    count
};

static ALL: [Row; COUNT] = {
    let mut all = [FILES[0][0]; COUNT];
    let (mut count, mut file) = (0, 0);
    while file < FILES.len() {
        let mut i = 0;
        while i < FILES[file].len() {
            all[count] = FILES[file][i];
            count += 1;
            i += 1;
        }
        file += 1;
    }
    all
};
