//! The table of instructions: each has an entry with its class, its rate on sm_61, its meaning and
//! its forms. A form is a row in the notation of [`form`](super::form), with the first target and
//! `.version` that support it. Each kind of instruction has a file.
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

use super::cost::{ClassRule, Rate};
use super::form::FormRow;
use super::words::Opcode;

/// All PTX versions up to 8.8. A row names the version that introduced its form.
#[allow(dead_code)]
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
    pub const V23: Version = Version::new(2, 3);
    pub const V30: Version = Version::new(3, 0);
    pub const V31: Version = Version::new(3, 1);
    pub const V32: Version = Version::new(3, 2);
    pub const V40: Version = Version::new(4, 0);
    pub const V41: Version = Version::new(4, 1);
    pub const V42: Version = Version::new(4, 2);
    pub const V43: Version = Version::new(4, 3);
    pub const V50: Version = Version::new(5, 0);
    pub const V60: Version = Version::new(6, 0);
    pub const V61: Version = Version::new(6, 1);
    pub const V62: Version = Version::new(6, 2);
    pub const V63: Version = Version::new(6, 3);
    pub const V64: Version = Version::new(6, 4);
    pub const V65: Version = Version::new(6, 5);
    pub const V70: Version = Version::new(7, 0);
    pub const V71: Version = Version::new(7, 1);
    pub const V72: Version = Version::new(7, 2);
    pub const V73: Version = Version::new(7, 3);
    pub const V74: Version = Version::new(7, 4);
    pub const V75: Version = Version::new(7, 5);
    pub const V76: Version = Version::new(7, 6);
    pub const V77: Version = Version::new(7, 7);
    pub const V78: Version = Version::new(7, 8);
    pub const V80: Version = Version::new(8, 0);
    pub const V81: Version = Version::new(8, 1);
    pub const V82: Version = Version::new(8, 2);
    pub const V83: Version = Version::new(8, 3);
    pub const V84: Version = Version::new(8, 4);
    pub const V85: Version = Version::new(8, 5);
    pub const V86: Version = Version::new(8, 6);
    pub const V87: Version = Version::new(8, 7);
    pub const V88: Version = Version::new(8, 8);
}

/// An instruction with all its forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstructionForms {
    /// The opcode.
    pub opcode: Opcode,
    /// The class of a form.
    pub class: ClassRule,
    /// The rate of a form on 32 bits; [`Rate::of`] has the rate of others.
    pub rate: Rate,
    /// A short description, with the operand names of the forms.
    pub meaning: &'static str,
    /// The forms.
    pub forms: &'static [FormRow],
}

/// Makes an entry of the table.
const fn instruction(
    opcode: Opcode,
    class: ClassRule,
    rate: Rate,
    meaning: &'static str,
    forms: &'static [FormRow],
) -> InstructionForms {
    assert!(!forms.is_empty(), "every opcode has a form");
    let mut i = 0;
    while i < forms.len() {
        assert!(forms[i].opcode as usize == opcode as usize, "a form has the opcode of its entry");
        i += 1;
    }
    InstructionForms { opcode, class, rate, meaning, forms }
}

/// Returns the entry of `opcode`.
pub fn instruction_of(opcode: Opcode) -> &'static InstructionForms {
    &INSTRUCTIONS[opcode as usize]
}

/// Returns the forms of `opcode`.
pub fn rows(opcode: Opcode) -> &'static [FormRow] {
    instruction_of(opcode).forms
}

/// The entry of each opcode.
static INSTRUCTIONS: [InstructionForms; Opcode::ALL.len()] = {
    let mut found = [None; Opcode::ALL.len()];
    let mut file = 0;
    while file < FILES.len() {
        let mut i = 0;
        while i < FILES[file].len() {
            let entry = FILES[file][i];
            assert!(found[entry.opcode as usize].is_none(), "an opcode has one entry");
            found[entry.opcode as usize] = Some(entry);
            i += 1;
        }
        file += 1;
    }
    let mut all = [FILES[0][0]; Opcode::ALL.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = match found[i] {
            Some(entry) => entry,
            None => panic!("{}", Opcode::ALL[i].spelling()), // has no entry: add it to a file of this folder
        };
        i += 1;
    }
    all
};

/// All forms.
pub static ROWS: &[FormRow] = &ALL;

const FILES: [&[InstructionForms]; 10] = [
    arithmetic::INSTRUCTIONS,
    atomic::INSTRUCTIONS,
    compare::INSTRUCTIONS,
    control::INSTRUCTIONS,
    convert::INSTRUCTIONS,
    cooperate::INSTRUCTIONS,
    logic::INSTRUCTIONS,
    memory::INSTRUCTIONS,
    texture::INSTRUCTIONS,
    video::INSTRUCTIONS,
];

const COUNT: usize = {
    let (mut count, mut file) = (0, 0);
    while file < FILES.len() {
        let mut i = 0;
        while i < FILES[file].len() {
            count += FILES[file][i].forms.len();
            i += 1;
        }
        file += 1;
    }
    count
};

static ALL: [FormRow; COUNT] = {
    let mut all = [FILES[0][0].forms[0]; COUNT];
    let (mut count, mut file) = (0, 0);
    while file < FILES.len() {
        let mut i = 0;
        while i < FILES[file].len() {
            let forms = FILES[file][i].forms;
            let mut form = 0;
            while form < forms.len() {
                all[count] = forms[form];
                count += 1;
                form += 1;
            }
            i += 1;
        }
        file += 1;
    }
    all
};
