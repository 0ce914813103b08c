//! The reasons why an instruction is illegal, and their messages.

use super::AcceptedOperands;
use crate::ptx::ast::TargetArchitecture;
use crate::ptx::form::{FormRow, Set};
use crate::ptx::table;
use crate::ptx::words::{Opcode, Version};
use std::fmt;

/// Error returned for an illegal instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Illegal {
    /// The instruction as text.
    pub instruction: String,
    /// The reason.
    pub reason: Reason,
}

/// The reason why an instruction is illegal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The target does not support the instruction; `needs` is the first target that does.
    #[allow(missing_docs)]
    Target { needs: u16, has: TargetArchitecture },
    /// The instruction needs a later PTX version.
    #[allow(missing_docs)]
    Version { needs: Version, has: Version },
    /// No form of the opcode has these modifiers.
    #[allow(missing_docs)]
    Modifiers { opcode: Opcode, given: Set },
    /// The form with these modifiers does not accept operand `operand` (from 0), or has fewer
    /// operands.
    Operand {
        /// The form.
        row: &'static FormRow,
        /// The operand.
        operand: usize,
        /// The accepted operand; `None` if there is none.
        accepted: Option<AcceptedOperands>,
    },
    /// A call has the wrong number of arguments or returned values.
    #[allow(missing_docs)]
    Arguments { returned: bool, needs: usize, has: usize },
    /// Argument or returned value `index` (from 0) of a call has the wrong type or size.
    #[allow(missing_docs)]
    Argument { returned: bool, index: usize },
    /// The callee is not a function.
    Callee,
    /// From `.version` `from` on, targets from `sm_{without}` on do not support the instruction.
    #[allow(missing_docs)]
    Gone { without: u16, from: Version },
    /// The guard is not a predicate.
    Guard,
    /// A register, label or symbol is not declared.
    Undeclared,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.instruction, self.reason)
    }
}

/// Formats the reason as the text after the instruction.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Target { needs, has } => write!(f, "requires sm_{needs}; the kernel is compiled for {has}"),
            Reason::Version { needs, has } => write!(f, "requires `.version {needs}`; the module has {has}"),
            Reason::Modifiers { opcode, given } => {
                write!(f, "is not a valid form of this instruction; the forms are:")?;
                let (shown, others) = nearest(*opcode, *given);
                shown.iter().try_for_each(|row| write!(f, "\n  {row}"))?;
                if others == 0 { Ok(()) } else { write!(f, "\n  and {others} more forms of `{opcode}`") }
            }
            Reason::Operand { row, operand, accepted } => {
                write!(f, "does not match the form `{row}`: operand {} ", operand + 1)?;
                match accepted {
                    Some(accepted) => write!(f, "must be {accepted}"),
                    None => f.write_str("is not expected"),
                }
            }
            Reason::Gone { without, from } => {
                write!(f, "was removed in `.version {from}` for targets from sm_{without} on")
            }
            Reason::Arguments { returned, needs, has } => {
                let what = if *returned { "returned values" } else { "arguments" };
                write!(f, "has the wrong number of {what}: the called function has {needs}, given {has}")
            }
            Reason::Argument { returned, index } => {
                let what = if *returned { "returned value" } else { "argument" };
                write!(
                    f,
                    "does not match the called function: {what} {} has another type, size or alignment",
                    index + 1
                )
            }
            Reason::Callee => f.write_str("calls something that is not a function"),
            Reason::Guard => f.write_str("has a guard that is not a predicate"),
            Reason::Undeclared => f.write_str("uses a name that the entry does not declare"),
        }
    }
}

impl std::error::Error for Illegal {}

/// The largest number of forms to list.
const MAX_FORMS_SHOWN: usize = 5;

/// Returns the forms of an opcode that share the most modifiers with `given`, and the number of
/// other forms.
fn nearest(opcode: Opcode, given: Set) -> (Vec<&'static FormRow>, usize) {
    let rows = table::rows(opcode);
    let shared = |row: &FormRow| given.iter().filter(|m| row.modifiers.has(*m)).count();
    let most = rows.iter().map(shared).max().unwrap_or(0);
    let mut shown: Vec<&FormRow> =
        rows.iter().filter(|row| rows.len() <= MAX_FORMS_SHOWN || shared(row) == most).collect();
    shown.truncate(MAX_FORMS_SHOWN);
    let others = rows.len() - shown.len();
    (shown, others)
}
