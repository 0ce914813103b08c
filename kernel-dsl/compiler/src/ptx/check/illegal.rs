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
            Reason::Target { needs, has } => write!(f, "needs sm_{needs}; the kernel is for {has}"),
            Reason::Version { needs, has } => write!(f, "needs `.version {needs}`; the module has {has}"),
            Reason::Modifiers { opcode, given } => {
                write!(f, "is not PTX; there is:")?;
                let (shown, others) = nearest(*opcode, *given);
                shown.iter().try_for_each(|row| write!(f, "\n  {row}"))?;
                if others == 0 { Ok(()) } else { write!(f, "\n  and {others} other forms of `{opcode}`") }
            }
            Reason::Operand { row, operand, takes } => {
                write!(f, "does not fit the form `{row}`: operand {} ", operand + 1)?;
                match takes {
                    Some(takes) => write!(f, "is {takes}"),
                    None => f.write_str("is one too many"),
                }
            }
            Reason::Gone { without, from } => write!(f, "is gone from sm_{without} on in `.version {from}` and later"),
            Reason::Arguments { returned, needs, has } => {
                let what = if *returned { "returns" } else { "takes" };
                write!(f, "calls what {what} {needs} values; there are {has}")
            }
            Reason::Argument { returned, index } => {
                let what = if *returned { "returned value" } else { "argument" };
                write!(f, "differs in {what} {} from what is called", index + 1)
            }
            Reason::Callee => f.write_str("calls what is no function"),
            Reason::Guard => f.write_str("is guarded by what is not a predicate"),
            Reason::Undeclared => f.write_str("names what its entry does not declare"),
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
