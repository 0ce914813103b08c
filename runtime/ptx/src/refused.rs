//! Errors for an entry that cannot run.

use std::fmt;

/// An unsupported instruction or declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedInstruction {
    /// The instruction or declaration, as it is printed.
    pub text: String,
    /// The line, if the module was read from text.
    pub line: Option<u32>,
    /// The reason of the rejection.
    pub why: String,
}

/// Error that lists all rejections of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// The entry.
    pub entry: String,
    /// The rejections, at least one.
    pub refusals: Vec<RefusedInstruction>,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the PTX interpreter does not run `{}`", self.entry)?;
        for RefusedInstruction { text, line, why } in &self.refusals {
            let line = line.map_or(String::new(), |n| format!("line {n}: "));
            write!(f, "\n  {line}`{text}`: {why}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unsupported {}
