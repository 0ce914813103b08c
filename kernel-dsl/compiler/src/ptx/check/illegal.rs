//! Why an instruction cannot be, and how that is told.

use super::Takes;
use crate::ptx::ast::Architecture;
use crate::ptx::form::{Row, Set};
use crate::ptx::table;
use crate::ptx::words::{Opcode, Version};
use std::fmt;

/// Why an instruction cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Illegal {
    /// The instruction as text.
    pub instruction: String,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The target does not have it; the first one that does.
    #[allow(missing_docs)]
    Target { needs: u16, has: Architecture },
    /// The language has it only from a later version on.
    #[allow(missing_docs)]
    Version { needs: Version, has: Version },
    /// No form of the opcode has these modifiers.
    #[allow(missing_docs)]
    Modifiers { opcode: Opcode, given: Set },
    /// The form that has these modifiers takes something else as operand `operand` (from 0), or not so many.
    Operand {
        /// The form.
        row: &'static Row,
        /// The operand.
        operand: usize,
        /// What it takes there; `None` if nothing.
        takes: Option<Takes>,
    },
    /// A call gives or takes another number of values than there are.
    #[allow(missing_docs)]
    Arguments { returned: bool, needs: usize, has: usize },
    /// Argument, or returned value, `index` (from 0) of a call is of another type or size.
    #[allow(missing_docs)]
    Argument { returned: bool, index: usize },
    /// What is called is no function.
    Callee,
    /// Targets from `sm_{without}` on no longer have it, in versions from `from` on.
    #[allow(missing_docs)]
    Gone { without: u16, from: Version },
    /// The guard is not a predicate.
    Guard,
    /// The register, label or symbol that it names is not declared.
    Undeclared,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.instruction, self.reason)
    }
}

/// What is to be read behind the instruction.
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
            Reason::Operand { row, operand, takes } => {
                write!(f, "does not match the form `{row}`: operand {} ", operand + 1)?;
                match takes {
                    Some(takes) => write!(f, "must be {takes}"),
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
                write!(f, "does not match the called function: {what} {} has another type or size", index + 1)
            }
            Reason::Callee => f.write_str("calls something that is not a function"),
            Reason::Guard => f.write_str("has a guard that is not a predicate"),
            Reason::Undeclared => f.write_str("uses a name that the entry does not declare"),
        }
    }
}

impl std::error::Error for Illegal {}

/// Forms to name at most, if there are others that are less like what was given.
const SHOWN: usize = 5;

/// The forms of an opcode that have most of the modifiers, in their order, and how many others there are.
fn nearest(opcode: Opcode, given: Set) -> (Vec<&'static Row>, usize) {
    let rows = table::rows(opcode);
    let shared = |row: &Row| given.iter().filter(|m| row.modifiers.has(*m)).count();
    let most = rows.iter().map(shared).max().unwrap_or(0);
    let mut shown: Vec<&Row> = rows.iter().filter(|row| rows.len() <= SHOWN || shared(row) == most).collect();
    shown.truncate(SHOWN);
    let others = rows.len() - shown.len();
    (shown, others)
}
