//! What is wrong with a text, and where.

use crate::ptx::check::Reason;
use crate::ptx::words::Version;
use std::fmt;

/// A mistake in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// What is wrong there.
    pub mistake: Mistake,
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Something else stands there than should.
    Expected {
        /// What should, in words or quoted.
        expected: String,
        /// What does, quoted.
        found: String,
    },
    /// A name that nothing has.
    Unknown {
        /// What was looked for: `an instruction`, `a register`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that something has already.
    Taken {
        /// The name.
        name: String,
    },
    /// An instruction that cannot be.
    Illegal {
        /// The instruction, as it is written when read.
        instruction: String,
        /// What is wrong with it.
        reason: Reason,
    },
    /// What the module's version or target does not have.
    Later {
        /// What it is.
        what: &'static str,
        /// The first `.version` that has it.
        version: Version,
        /// The first target that has it.
        target: u16,
    },
    /// What the language has, and this parser does not.
    Unsupported {
        /// What it is.
        what: String,
        /// What to write instead, if anything.
        help: &'static str,
    },
    /// What the grammar allows and the language does not, in words.
    Wrong(String),
}

/// All mistakes of a text, in its order; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errors(pub Vec<Error>);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.mistake)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::Expected { expected, found } => write!(f, "expected {expected}, found {found}"),
            Mistake::Unknown { what, name } => write!(f, "`{name}` is not {what}"),
            Mistake::Taken { name } => write!(f, "`{name}` is declared twice"),
            Mistake::Illegal { instruction, reason } => write!(f, "`{instruction}` {reason}"),
            Mistake::Later { what, version, target: 0 } => write!(f, "{what} needs `.version {version}`"),
            Mistake::Later { what, version, target } => write!(f, "{what} needs `.version {version}` and sm_{target}"),
            Mistake::Unsupported { what, help } => {
                write!(f, "{what} is not supported")?;
                if help.is_empty() { Ok(()) } else { write!(f, "\nhelp: {help}") }
            }
            Mistake::Wrong(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { "\n" } else { "" })?;
            e.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Errors {}
