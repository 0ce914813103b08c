//! What a run found, as data.
//!
//! Many hits of one check at one site are one [`Finding`]: it describes the first and counts the rest, and names every
//! place that it is in conflict with. Places are resolved to file, line and column, so that a report outlives the program
//! that it is about.
//!
//! # As JSON
//!
//! A [`Report`] serialises with the names of its fields, and its verdict before them. What is optional and is not there is `null`.
//!
//! ```text
//! verdict        "pass", "fail": whether one of the findings is an error
//! kernel         the instance, as Rust names it
//! schedule       "in-order", "reversed", "seeded:7": what the commands' --order takes
//! truncated      whether it ended with as many errors as it may find
//! findings[]     check           the check's name: "global-race"
//!                severity        "note", "warning", "error"
//!                message         the sentence
//!                place           function, file, line, column, end_line, end_column, callers[]: places that inlined it
//!                thread          block[3], thread[3], warp, lane
//!                object          name, space ("buffer", "shared", "local"), index[], extents[], element
//!                values          loads, stores, operand, held, other_stored, other_loaded: as Rust writes them
//!                other           place, thread, action: the other side of a conflict
//!                others[]        the same of each further place that it is in conflict with
//!                produced        operation, inputs[], result: what made a NaN or an infinity
//!                ptx[]           line, text: the accesses in the PTX, where `kernels check` made the report
//!                count           how often, one a thread each time
//! allowed[]      check, place, reason, count
//! ```

use super::check::{Check, Severity};
use super::schedule::Schedule;
use kernel_dsl::compiler::source::Source;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt;

/// All that a run found, in the order in which it was first met.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The instance that ran, as Rust names it.
    pub kernel: String,
    /// One a check and site.
    pub findings: Vec<Finding>,
    /// What the kernel allows, by check and statement.
    pub allowed: Vec<Allowed>,
    /// Whether the run was stopped for having found as much as [`Options::limit`](super::Options::limit) allows.
    pub truncated: bool,
    /// The order in which the run went: with it, it goes so again.
    pub schedule: Schedule,
    /// The functions that places name, for their text.
    pub sources: Vec<Source>,
}

/// Something wrong at one place of the kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// What.
    pub check: Check,
    /// How bad.
    pub severity: Severity,
    /// What happened, in a sentence with the names and values.
    pub message: String,
    /// Where in the Rust.
    pub place: Place,
    /// Who met it first.
    pub thread: Thread,
    /// The memory or variable that it is about.
    pub object: Option<Object>,
    /// The values that the access is about, where they are known.
    pub values: Option<Values>,
    /// The access that this one is in conflict with.
    pub other: Option<Other>,
    /// The first access at each further place that this one is in conflict with.
    pub others: Vec<Other>,
    /// What made the number that it is about.
    pub produced: Option<Produced>,
    /// Where the kernel's PTX makes the accesses of that line to that memory, where somebody has looked: `kernels check` does.
    pub ptx: Vec<PtxLine>,
    /// How often it happened at this place: one a thread each time.
    pub count: u64,
}

/// A line of PTX.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PtxLine {
    /// From 1, in the text that the kernel is built with.
    pub line: u32,
    /// The instruction.
    pub text: String,
}

/// The operation that made a NaN or an infinity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Produced {
    /// As Rust writes it, with the operands' values.
    pub operation: String,
    /// The operands' values, in order.
    pub inputs: Vec<String>,
    /// What came of it.
    pub result: String,
}

/// What a statement of the kernel does that the oracle forbids, and that the kernel allows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Allowed {
    /// What.
    pub check: Check,
    /// Where it happened first.
    pub place: Place,
    /// Why it may: the kernel's words.
    pub reason: String,
    /// How often it happened: one a thread each time.
    pub count: u64,
}

/// A place in the user's Rust.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// Index into [`Report::sources`].
    #[serde(skip)]
    pub source: usize,
    /// The function.
    pub function: String,
    /// Its file; empty where the compiler that ran the macro did not tell.
    pub file: String,
    /// From 1, in the file.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// Line of the end.
    pub end_line: u32,
    /// Column of the end, exclusive.
    pub end_column: u32,
    /// The calls that inlined the function here, innermost first.
    pub callers: Vec<Place>,
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

/// What kind of thing an access names.
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
    /// What it is.
    pub space: Space,
    /// The index as the kernel wrote it, outermost dimension first; empty for a computed address.
    pub index: Vec<u64>,
    /// The extents that the index was held against.
    pub extents: Vec<u64>,
    /// Elements from the start of the object to the access; negative if before it.
    pub element: Option<i64>,
}

/// What was loaded and stored where something went wrong: of the first hit, each as Rust writes it.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Values {
    /// What this access loads.
    pub loads: Option<String>,
    /// What this access stores.
    pub stores: Option<String>,
    /// The operand of this access, an atomic operation.
    pub operand: Option<String>,
    /// What the element held just before, where it is not known to be the other's.
    pub held: Option<String>,
    /// What the other access stored.
    pub other_stored: Option<String>,
    /// What the other access loaded.
    pub other_loaded: Option<String>,
}

/// The other side of a conflict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Other {
    /// Where in the Rust; `None` where only the thread is known.
    pub place: Option<Place>,
    /// Who.
    pub thread: Thread,
    /// What it did there: `stores`, `loads`, `waits`.
    pub action: &'static str,
}

/// What is to be said of a kernel, or of a launch of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No error; perhaps warnings.
    Pass,
    /// At least one error.
    Fail,
    /// It could not be looked at, or not to its end, for what looks on lacks something: nothing is known to be wrong, and
    /// it has not passed. No [`Report`] says so, for there is none: [`Error::verdict`](crate::Error::verdict) does.
    Unsupported,
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

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [
            ("the element held", &self.held),
            ("the other stored", &self.other_stored),
            ("the other loaded", &self.other_loaded),
            ("this loads", &self.loads),
            ("this stores", &self.stores),
            ("the operand is", &self.operand),
        ];
        let said = said.into_iter().filter_map(|(who, value)| Some((who, value.as_ref()?)));
        for (i, (who, value)) in said.enumerate() {
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
    /// Whether there is an error among the findings.
    pub fn verdict(&self) -> Verdict {
        if self.errors().next().is_some() { Verdict::Fail } else { Verdict::Pass }
    }

    /// Adds what another run of the same launch found.
    pub(super) fn add(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.allowed.extend(other.allowed);
        self.truncated |= other.truncated;
    }

    /// The findings that are warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Warning)
    }

    /// The findings that are notes.
    pub fn notes(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Note)
    }

    /// One of the findings as a report of its own.
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

    /// The findings that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Error)
    }
}
