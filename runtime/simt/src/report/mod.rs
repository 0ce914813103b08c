//! The findings of a run of either interpreter, as data and as text.
//!
//! An interpreter numbers the instructions of its program and describes them by [`Sites`]. For each
//! hit of a check, the interpreter passes a site, a thread and a [`Description`] to its
//! [`Findings`]. At the end of the run, these become a [`Report`]. The oracle's [`CodeLocation`] is
//! in Rust, the PTX interpreter's is in PTX, with the [`PtxInstruction`].
//!
//! Repeated hits of one check at one site form one [`Finding`]: it describes the first hit, counts
//! the others, and lists every location that it conflicts with. Places are resolved to file, line
//! and column, so a report outlives the program that it describes.
//!
//! # JSON format
//!
//! A [`Report`] serializes with the names of its fields, preceded by its verdict. Absent optional
//! values are `null`.
//!
//! ```text
//! verdict        "pass", "fail": whether one of the findings is an error
//! kernel         the instance, in Rust syntax; for PTX, the name of the entry
//! schedule       "in-order", "reversed", "seeded:7", "preempted:7@12,40": the argument of --order
//! truncated      whether the run ended at its limit of errors
//! findings[]     check           the check's name: "global-race"
//!                severity        "note", "warning", "error"
//!                message         the sentence
//!                place           function, file, line, column, end_line, end_column, callers[]: places that inlined it
//!                thread          block[3], thread[3], warp, lane
//!                instruction     text, origin: the PTX instruction, if the PTX interpreter found it
//!                object          name, space ("buffer", "shared", "local"), index[], extents[], element
//!                values          loads, stores, operand, held, other_stored, other_loaded: in Rust syntax
//!                other           place, thread, action: the other side of a conflict
//!                others[]        the same fields for each further place in conflict
//!                produced        operation, inputs[], result: the operation that produced a NaN or an infinity
//!                ptx[]           line, text: the accesses in the PTX, if `kernels check` made the report
//!                count           number of hits, counted by thread
//! allowed[]      check, place, reason, count
//! ```

mod findings;
mod path;
mod render;

use crate::Schedule;
pub use crate::Thread;
pub use findings::{Description, Findings, Sites};
use kernel_dsl_compiler::oracle::{Check, Severity};
use kernel_dsl_compiler::source::KernelSource;
pub use path::{show_paths_from, shown_path};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::fmt;

/// The findings of a run, in the order of their first hits.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The instance that ran, in Rust syntax; for PTX, the name of the entry.
    pub kernel: String,
    /// One finding for each check and site.
    pub findings: Vec<Finding>,
    /// Violations that the kernel allows, by check and statement.
    pub allowed: Vec<Allowed>,
    /// Whether the run stopped because it reached its limit of errors.
    pub truncated: bool,
    /// The schedule of the run, which reproduces it.
    pub schedule: Schedule,
    /// The functions that contain the places, for their source text.
    pub sources: Vec<KernelSource>,
}

/// A violation of a check at one location of the kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The severity.
    pub severity: Severity,
    /// A description of the event, in a sentence with names and values.
    pub message: String,
    /// The location in the Rust source, or in the PTX.
    pub place: CodeLocation,
    /// The first thread that violated the check.
    pub thread: Thread,
    /// The instruction at the place, if the program is PTX.
    pub instruction: Option<PtxInstruction>,
    /// The memory or variable.
    pub object: Option<Object>,
    /// The values of the access, where they are known.
    pub values: Option<AccessValues>,
    /// The conflicting access.
    pub other: Option<ConflictSide>,
    /// The first conflicting access at each further place.
    pub others: Vec<ConflictSide>,
    /// The operation that produced the number.
    pub produced: Option<Produced>,
    /// The PTX instructions for the accesses of this line to this memory. `kernels check` fills
    /// them in.
    pub ptx: Vec<PtxLine>,
    /// The number of hits at this place, counted by thread.
    pub count: u64,
}

/// A line of PTX.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PtxLine {
    /// The line number, from 1, in the text that the kernel is built with.
    pub line: u32,
    /// The instruction.
    pub text: String,
}

/// An instruction of a PTX program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PtxInstruction {
    /// The instruction as printed.
    pub text: String,
    /// The file and line of the source, from `.loc`; without it, the comment above the instruction.
    /// In PTX of kernel-dsl, the comment is the line of Rust.
    pub origin: Option<String>,
}

/// The operation that produced a NaN or an infinity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Produced {
    /// The operation in Rust syntax, with the operands' values.
    pub operation: String,
    /// The operands' values, in order.
    pub inputs: Vec<String>,
    /// The result of the operation.
    pub result: String,
}

/// A violation that a statement of the kernel allows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Allowed {
    /// The check.
    pub check: Check,
    /// The place of the first hit.
    pub place: CodeLocation,
    /// The reason that the kernel states.
    pub reason: String,
    /// The number of hits, counted by thread.
    pub count: u64,
}

/// A location in the user's Rust or PTX.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CodeLocation {
    /// Index into [`Report::sources`].
    #[serde(skip)]
    pub source: usize,
    /// The function.
    pub function: String,
    /// The file; empty if the compiler that expanded the macro did not provide it, and for PTX that
    /// is not in a file.
    pub file: String,
    /// The line, from 1, in the file; 0 for PTX that was not read from text.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// Line of the end.
    pub end_line: u32,
    /// Column of the end, exclusive.
    pub end_column: u32,
    /// The calls that inlined the function here, innermost first.
    pub callers: Vec<CodeLocation>,
}

/// The kind of object that an access names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// An argument of the kernel.
    Buffer,
    /// An array in shared memory.
    Shared,
    /// A variable or register array.
    Local,
}

/// The memory or variable that a finding is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Object {
    /// Name in the kernel.
    pub name: String,
    /// The kind of object.
    pub space: Space,
    /// The index as the kernel wrote it, outermost dimension first; empty for a computed address.
    pub index: Vec<u64>,
    /// The extents that the index was checked against.
    pub extents: Vec<u64>,
    /// Elements from the start of the object to the access; negative if before it.
    pub element: Option<i64>,
}

/// The values loaded and stored at the first hit, in Rust syntax.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct AccessValues {
    /// The value that this access loads.
    pub loads: Option<String>,
    /// The value that this access stores.
    pub stores: Option<String>,
    /// The operand of this access, if it is an atomic operation.
    pub operand: Option<String>,
    /// The value of the element before this access, unless the other access is known to have stored
    /// it.
    pub held: Option<String>,
    /// The value that the other access stored.
    pub other_stored: Option<String>,
    /// The value that the other access loaded.
    pub other_loaded: Option<String>,
}

/// The other side of a conflict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ConflictSide {
    /// The source location; `None` if only the thread is known.
    pub place: Option<CodeLocation>,
    /// The thread that made the access.
    pub thread: Thread,
    /// The action of the thread there: `stores`, `loads`, `waits`.
    pub action: &'static str,
}

/// The verdict on a kernel or on one launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No error; there may be warnings.
    Pass,
    /// At least one error.
    Fail,
    /// The check could not run, or not to its end, because a requirement is missing: no error is
    /// known, and the kernel has not passed. No [`Report`] has this verdict;
    /// `runtime::Error::verdict` returns it.
    Unsupported,
}

impl fmt::Display for CodeLocation {
    /// Writes the file and the line, or the function and the line if the file is not known. The
    /// file is shown as [`show_paths_from`] requested.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file.is_empty() { self.function.as_str().into() } else { path::shown_path(&self.file) };
        write!(f, "{file}:{}", self.line)
    }
}

impl Finding {
    /// Returns a finding with one hit and no details.
    pub fn new(check: Check, severity: Severity, message: String, place: CodeLocation, thread: Thread) -> Finding {
        Finding {
            check,
            severity,
            message,
            place,
            thread,
            instruction: None,
            object: None,
            values: None,
            other: None,
            others: Vec::new(),
            produced: None,
            ptx: Vec::new(),
            count: 1,
        }
    }

    /// Returns the place in words: the file and line, or the line of the PTX.
    pub fn location(&self) -> String {
        match (&self.instruction, self.place.line) {
            (Some(instruction), 0) => format!("`{}` in the PTX", instruction.text),
            (Some(_), line) if self.place.file.is_empty() => format!("line {line} of the PTX"),
            _ => self.place.to_string(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Unsupported => "unsupported",
        })
    }
}

impl fmt::Display for AccessValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [
            ("the element held", &self.held),
            ("the other stored", &self.other_stored),
            ("the other loaded", &self.other_loaded),
            ("this loads", &self.loads),
            ("this stores", &self.stores),
            ("the operand is", &self.operand),
        ];
        let values = values.into_iter().filter_map(|(who, value)| Some((who, value.as_ref()?)));
        for (i, (who, value)) in values.enumerate() {
            write!(f, "{}{who} {value}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Report", 6)?;
        object.serialize_field("verdict", &self.verdict())?;
        object.serialize_field("kernel", &self.kernel)?;
        object.serialize_field("schedule", &self.schedule)?;
        object.serialize_field("truncated", &self.truncated)?;
        object.serialize_field("findings", &self.findings)?;
        object.serialize_field("allowed", &self.allowed)?;
        object.end()
    }
}

impl Report {
    /// Returns whether one of the findings is an error.
    pub fn verdict(&self) -> Verdict {
        if self.errors().next().is_some() { Verdict::Fail } else { Verdict::Pass }
    }

    /// Adds the findings of another run of the same launch.
    pub fn add(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.allowed.extend(other.allowed);
        self.truncated |= other.truncated;
    }

    /// Returns the findings with errors first, then warnings and notes; each in the order of their
    /// first hits.
    pub fn by_severity(&self) -> Vec<&Finding> {
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|finding| Reverse(finding.severity));
        findings
    }

    /// Returns the findings that are warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Warning)
    }

    /// Returns the findings that are notes.
    pub fn notes(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Note)
    }

    /// Returns a report of the same run that contains only `finding`.
    pub fn alone(&self, finding: &Finding) -> Report {
        Report {
            kernel: self.kernel.clone(),
            findings: vec![finding.clone()],
            allowed: Vec::new(),
            truncated: false,
            schedule: self.schedule,
            sources: self.sources.clone(),
        }
    }

    /// Returns the findings that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Error)
    }
}
