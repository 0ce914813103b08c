//! The findings of a run, as data and as text.

use super::check::Check;
use super::code::Site;
use runtime_simt::{Severity, Thread};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

/// The findings of a run, in the order of their first occurrence.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The name of the entry.
    pub kernel: String,
    /// The findings, one for each check and instruction.
    pub findings: Vec<Finding>,
    /// Whether the run was stopped at the limit of findings.
    pub truncated: bool,
}

/// A violation at one instruction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The violated check.
    pub check: Check,
    /// A sentence that describes the violation, with names and values.
    pub message: String,
    /// The instruction as printed.
    pub instruction: String,
    /// The function that contains the instruction.
    pub function: String,
    /// The line of the instruction, if the module was read from text.
    pub line: Option<u32>,
    /// The comment above the instruction, if there is one. In PTX of kernel-dsl, this is the line
    /// of Rust.
    pub comment: Option<String>,
    /// The file and line of the source, if the PTX has them in `.loc`.
    pub source: Option<String>,
    /// The first thread that met the violation.
    pub thread: Thread,
    /// The number of occurrences: one for each thread and execution.
    pub count: u64,
}

impl Report {
    /// Returns the findings with errors first; each severity in the order of first occurrence.
    pub fn by_severity(&self) -> Vec<&Finding> {
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|finding| Reverse(finding.check.severity()));
        findings
    }

    /// Returns a report that contains only `finding`.
    pub fn alone(&self, finding: &Finding) -> Report {
        Report { kernel: self.kernel.clone(), findings: vec![finding.clone()], truncated: false }
    }

    /// Returns whether there is no error among the findings.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|f| f.check.severity() == Severity::Warning)
    }
}

/// The findings of a run in progress.
#[derive(Debug)]
pub struct Findings {
    found: Vec<Finding>,
    by_place: HashMap<(Check, u32), usize>,
    limit: usize,
}

impl Findings {
    /// Creates an empty list for at most `limit` findings.
    pub fn new(limit: usize) -> Findings {
        Findings { found: Vec::new(), by_place: HashMap::new(), limit }
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns whether the limit is reached.
    pub fn full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Adds `hits` to the count of a known finding; returns whether the finding is known.
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
            source: site.source.clone(),
            thread,
            count: hits.into(),
        });
    }

    /// Returns the report of all findings.
    pub fn report(self, kernel: String) -> Report {
        let truncated = self.full();
        Report { kernel, findings: self.found, truncated }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.check.severity() {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}[{}]: {}\n  {}", self.check, self.message, self.function)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.instruction)?;
        if let Some(comment) = self.source.as_ref().or(self.comment.as_ref()) {
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
        self.by_severity().into_iter().try_for_each(|finding| write!(f, "\n{finding}"))?;
        if self.truncated {
            f.write_str("\nthe run was stopped here; there may be more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}
