//! An entry of the table: an instruction with all its forms.

use crate::ptx::cost::{ClassRule, Rate};
use crate::ptx::form::FormRow;
use crate::ptx::words::Opcode;

/// All PTX versions up to 8.8. A row names the version that introduced its form.
#[allow(dead_code)]
pub(super) mod versions {
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
pub(super) const fn instruction(
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
