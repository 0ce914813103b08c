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
mod entry;
mod logic;
mod memory;
mod texture;
mod video;

pub use entry::InstructionForms;

use super::form::FormRow;
use super::words::Opcode;

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
