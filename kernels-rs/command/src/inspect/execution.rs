//! A case on the interpreter: the oracle's findings, and the trace of one thread in steps that a
//! page can follow forwards and backwards.

use super::model::{Inspection, LineIndex};
use crate::trace::ThreadArgs;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::hir::Monomorphic;
use runtime::interpreter::trace::{Trace, TraceEvent};
use runtime::interpreter::{Finding, Options};
use runtime::testing::{self, Case};
use serde::Serialize;

/// Largest number of steps on a page.
const STEPS: usize = 4000;
/// Largest size of the steps' text in bytes, which bounds the page.
const MAX_TEXT_BYTES: usize = 600_000;

/// Findings of the oracle in a case, and the steps of a thread.
#[derive(Serialize)]
pub(crate) struct Execution {
    pub findings: Vec<FindingText>,
    /// Index of the thread's block.
    pub block: [u32; 3],
    pub thread: [u32; 3],
    pub steps: Vec<TraceStep>,
    /// Number of later steps that the page leaves out.
    pub left_out: u64,
}

/// A finding of the oracle.
#[derive(Serialize)]
pub(crate) struct FindingText {
    pub severity: String,
    pub check: &'static str,
    pub message: String,
    /// Advice, for checks with a general answer.
    pub help: Option<&'static str>,
    /// Number of hits, counted by thread.
    pub count: u64,
    /// Place in words: `gemm.rs:17`.
    pub place: String,
    /// Index of the line of Rust.
    pub at: Option<usize>,
}

/// The events of the thread at one line, until it reached another.
#[derive(Serialize)]
pub(crate) struct TraceStep {
    /// Index of the line of Rust.
    pub at: Option<usize>,
    /// Names and new values of variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(String, String)>,
    /// Other events: loads, stores, branches, barriers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

impl Inspection {
    /// Runs the case with every check, and follows a thread.
    pub(super) fn execute(
        &mut self,
        program: &Monomorphic,
        target: Target,
        case: &Case,
        followed: &ThreadArgs,
    ) -> Result<(), crate::error::Error> {
        let thread = followed.thread(STEPS);
        let traced = testing::trace_of_program(program.clone(), target, case, thread, Options::default());
        let (outcome, trace) = traced
            .map_err(|source| crate::error::Error::Trace { case: case.name.clone(), source: Box::new(source) })?;
        let findings = outcome.report.findings.iter().map(|finding| FindingText::new(finding, &self.index)).collect();
        self.execution = Some(Execution::new(findings, trace, &self.index));
        Ok(())
    }
}

impl Execution {
    fn new(findings: Vec<FindingText>, trace: Trace, index: &LineIndex) -> Execution {
        let (mut steps, mut bytes, mut left_out) = (Vec::new(), 0, trace.left_out);
        for line in trace.lines {
            let (mut set, mut events) = (Vec::new(), Vec::new());
            for event in line.events {
                match event {
                    TraceEvent::Assigned { name, value } => {
                        bytes += name.len() + value.len();
                        set.push((name, value));
                    }
                    event => {
                        let text = event.to_string();
                        bytes += text.len();
                        events.push(text);
                    }
                }
            }
            if bytes > MAX_TEXT_BYTES {
                left_out += 1;
            } else {
                steps.push(TraceStep { at: index.get(&line.file, line.line), set, events });
            }
        }
        Execution { findings, block: trace.block, thread: trace.thread, steps, left_out }
    }
}

impl FindingText {
    fn new(finding: &Finding, index: &LineIndex) -> FindingText {
        let Finding { check, severity, message, place, count, .. } = finding;
        let short = place.file.rsplit('/').next().unwrap_or(&place.file);
        FindingText {
            severity: severity.to_string(),
            check: check.name(),
            message: message.clone(),
            help: check.help(),
            count: *count,
            place: format!("{short}:{}", place.line),
            at: index.get(&place.file, place.line),
        }
    }
}
