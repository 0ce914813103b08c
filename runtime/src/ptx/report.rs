//! What a run found, as data and in words.

use super::check::{Check, Severity};
use super::code::Site;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// All that a run found, in the order in which it was first met.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The entry that ran.
    pub kernel: String,
    /// One a check and instruction.
    pub findings: Vec<Finding>,
    /// Whether the run was stopped for having found as much as the options allow.
    pub truncated: bool,
}

/// Something wrong at one instruction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What.
    pub check: Check,
    /// What happened, in a sentence with the names and values.
    pub message: String,
    /// The instruction, as it is printed.
    pub instruction: String,
    /// The function that it is in.
    pub function: String,
    /// Its line in the text, if the module was read from one.
    pub line: Option<u32>,
    /// The comment above it, if there is one: in PTX of kernel-dsl, the line of Rust.
    pub comment: Option<String>,
    /// Who met it first.
    pub thread: Thread,
    /// How often it happened there: one a thread each time.
    pub count: u64,
}

/// A thread of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Thread {
    /// Block index in x, y, z.
    pub block: [u32; 3],
    /// Thread index in its block in x, y, z.
    pub thread: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Lane of the warp.
    pub lane: u32,
}

impl Report {
    /// Whether there is no error among the findings.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|f| f.check.severity() == Severity::Warning)
    }
}

/// Findings as they are made.
#[derive(Debug)]
pub struct Findings {
    found: Vec<Finding>,
    by_place: HashMap<(Check, u32), usize>,
    limit: usize,
}

impl Findings {
    /// None yet; `limit` at most.
    pub fn new(limit: usize) -> Findings {
        Findings { found: Vec::new(), by_place: HashMap::new(), limit }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether there are as many as there may be.
    pub fn full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Counts `hits` more of a finding that is already there; whether it is.
    pub fn count(&mut self, check: Check, site: u32, hits: u32) -> bool {
        let known = self.by_place.get(&(check, site)).map(|i| &mut self.found[*i]);
        known.map(|finding| finding.count += u64::from(hits)).is_some()
    }

    /// Adds a finding.
    pub fn add(&mut self, check: Check, (index, site): (u32, &Site), hits: u32, thread: Thread, message: String) {
        self.by_place.insert((check, index), self.found.len());
        self.found.push(Finding {
            check,
            message,
            instruction: site.text.clone(),
            function: site.function.clone(),
            line: site.line,
            comment: site.comment.clone(),
            thread,
            count: hits.into(),
        });
    }

    /// All of them.
    pub fn report(self, kernel: String) -> Report {
        let truncated = self.full();
        Report { kernel, findings: self.found, truncated }
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [x, y, z]) = (self.block, self.thread);
        write!(f, "thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz})")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.check.severity() {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}[{}]: {}\n  {}", self.check, self.message, self.function)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.instruction)?;
        if let Some(comment) = &self.comment {
            write!(f, "    // {comment}")?;
        }
        write!(f, "\n  {}", self.thread)?;
        if self.count > 1 {
            write!(f, ", the first of {}", self.count)?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by the PTX interpreter: ", self.kernel)?;
        match self.findings.len() {
            0 => f.write_str("nothing was found")?,
            1 => f.write_str("1 finding")?,
            n => write!(f, "{n} findings")?,
        }
        self.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))?;
        if self.truncated {
            f.write_str("\nthe run was stopped here; there may be more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}
