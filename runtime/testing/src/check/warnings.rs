//! The findings of a check that are not failures.

use crate::Warned;
use runtime_oracle::report::{Allowed, CodeLocation, Finding};
use runtime_oracle::{Check, Report, Severity};
use std::collections::BTreeMap;

/// The oracle's warnings and notes: one report for each check, file and position.
#[derive(Default)]
pub(super) struct Warnings {
    /// The text that the last case printed.
    pub(super) printed: Vec<u8>,
    pub(super) found: BTreeMap<(Check, String, [u32; 2]), Warned>,
    /// Findings that the kernel allows.
    pub(super) allowed: BTreeMap<(Check, String, [u32; 2]), Allowed>,
}

impl Warnings {
    pub(super) fn add(&mut self, case: &str, report: &Report) {
        for finding in report.warnings().chain(report.notes()) {
            self.note(case, finding, report);
        }
        for allowed in &report.allowed {
            self.allow(allowed.clone());
        }
    }

    /// Adds the findings of another case. The first report of a position is kept.
    pub(super) fn take(&mut self, later: Warnings) {
        for (place, warned) in later.found {
            self.found.entry(place).and_modify(|known| known.cases += warned.cases).or_insert(warned);
        }
        later.allowed.into_values().for_each(|allowed| self.allow(allowed));
    }

    /// Adds warnings of loops that did not end in another schedule.
    pub(super) fn waits(&mut self, case: &str, report: &Report) {
        for finding in report.errors() {
            let message = "with blocks and warps in this order a loop does not end: it waits for blocks or warps that may not have begun";
            let finding = Finding { severity: Severity::Warning, message: message.to_string(), ..finding.clone() };
            self.note(case, &finding, report);
        }
    }

    fn note(&mut self, case: &str, finding: &Finding, report: &Report) {
        let CodeLocation { file, line, column, .. } = &finding.place;
        let place = (finding.check, file.clone(), [*line, *column]);
        self.found.entry(place).or_insert_with(|| {
            let (case, report) = (case.to_string(), report.alone(finding));
            Warned { case, cases: 1, report }
        });
    }

    /// Returns the first report of a warning; notes are skipped.
    pub(super) fn first(&self) -> Option<Report> {
        self.found.values().map(|warned| &warned.report).find(|report| report.warnings().next().is_some()).cloned()
    }

    pub(super) fn reports(self) -> Vec<Report> {
        self.found.into_values().map(|warned| warned.report).collect()
    }

    fn allow(&mut self, allowed: Allowed) {
        let CodeLocation { ref file, line, column, .. } = allowed.place;
        let place = (allowed.check, file.clone(), [line, column]);
        self.allowed.entry(place).and_modify(|known| known.count += allowed.count).or_insert(allowed);
    }
}
