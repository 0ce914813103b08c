//! The findings of all launches: recorded once each, summarized at the end of the process, and
//! written as JSON and SARIF, with the leaks.

use super::demangle::demangled;
use super::leaks::{LEAK, Leak};
use super::settings::Settings;
use runtime_ptx::{Check, Finding, Report, Severity};
use runtime_simt::Lock;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The findings of the process.
#[derive(Debug, Default)]
pub struct ProcessFindings {
    suppressions: Vec<Suppression>,
    found: Lock<BTreeMap<FindingKey, CountedFinding>>,
}

/// The identity of a finding. Violations of one check at one instruction are one finding, whatever
/// the launch and thread.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct FindingKey {
    severity: Reverse<Severity>,
    check: Check,
    kernel: String,
    line: u32,
    instruction: String,
}

/// A finding, with its number of occurrences.
#[derive(Clone, Debug)]
struct CountedFinding {
    first: Finding,
    launches: u64,
    count: u64,
}

/// A rule for findings that are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Suppression {
    check: String,
    /// The kernel, or the function that created the leaked object.
    kernel: String,
}

impl ProcessFindings {
    /// Creates an empty list with the suppressions of a file. Also returns a message for each
    /// invalid line, and if the file cannot be read.
    pub fn new(settings: &Settings) -> (ProcessFindings, Vec<String>) {
        let Some(path) = &settings.suppressions else { return Default::default() };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let (suppressions, wrong) = suppressions(&text);
                let wrong = wrong.iter().map(|(line, why)| format!("the suppressions {path}, line {line}: {why}"));
                (ProcessFindings { suppressions, ..ProcessFindings::default() }, wrong.collect())
            }
            Err(e) => (ProcessFindings::default(), vec![format!("the suppressions {path} cannot be read: {e}")]),
        }
    }

    /// Removes the findings of a report that a suppression names.
    pub fn suppress(&self, report: &mut Report) {
        let kernel = (report.kernel.clone(), demangled(&report.kernel));
        report
            .findings
            .retain(|finding| !self.suppressions.iter().any(|suppression| suppression.covers(finding, &kernel)));
    }

    /// Returns whether a suppression names the function that created the leaked objects.
    pub fn is_suppressed(&self, leak: &Leak) -> bool {
        let covers = |s: &Suppression| matches(&s.check, LEAK) && matches(&s.kernel, leak.function);
        self.suppressions.iter().any(covers)
    }

    /// Records the findings of a launch.
    pub fn record(&self, report: &Report) {
        let mut found = self.found.lock();
        for finding in &report.findings {
            let key = FindingKey {
                severity: Reverse(finding.severity),
                check: finding.check,
                kernel: report.kernel.clone(),
                line: finding.place.line,
                instruction: instruction(finding).to_string(),
            };
            let new = || CountedFinding { first: finding.clone(), launches: 0, count: 0 };
            let entry = found.entry(key).or_insert_with(new);
            entry.launches += 1;
            entry.count += finding.count;
        }
    }

    /// Returns whether there are errors.
    pub fn has_errors(&self) -> bool {
        self.found.lock().keys().any(|key| key.severity.0 == Severity::Error)
    }

    /// Returns the summary: each finding once, errors first; empty without findings.
    pub fn summary(&self) -> String {
        let found = self.found.lock();
        if found.is_empty() {
            return String::new();
        }
        let count = |severity| found.keys().filter(|key| key.severity.0 == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let mut text = format!("{} and {} in kernels", counted(errors, "error"), counted(warnings, "warning"));
        for (key, entry) in found.iter() {
            let CountedFinding { first, launches, count } = entry;
            let _ =
                write!(text, "\n{}[{}] in `{}`: {}", key.severity.0, key.check, demangled(&key.kernel), first.message);
            let mut place = vec![format!("`{}`", key.instruction)];
            if key.line > 0 {
                place.push(format!("PTX line {}", key.line));
            }
            place.extend(origin(first).map(str::to_string));
            if first.place.function != key.kernel {
                place.push(format!("in `{}`", demangled(&first.place.function)));
            }
            let _ = write!(text, "\n    {}", place.join(", "));
            let launches = if *launches == 1 { "1 launch".to_string() } else { format!("{launches} launches") };
            let times = counted(*count as usize, "time");
            let _ = write!(text, "\n    first by {}; {times} in {launches}", first.thread);
        }
        text
    }

    /// Returns the findings and the leaks as JSON.
    pub fn json(&self, leaks: &[Leak]) -> Value {
        let one = |(key, entry): (&FindingKey, &CountedFinding)| {
            let mut finding = json!(Finding { count: entry.count, ..entry.first.clone() });
            finding["kernel"] = json!(key.kernel);
            finding["name"] = json!(demangled(&key.kernel));
            finding["launches"] = json!(entry.launches);
            finding
        };
        let leaks: Vec<Value> = leaks.iter().map(Leak::json).collect();
        json!({ "findings": self.found.lock().iter().map(one).collect::<Vec<_>>(), "leaks": leaks })
    }

    /// Returns the findings and the leaks as SARIF, the format of code scanners.
    pub fn sarif(&self, leaks: &[Leak]) -> Value {
        let found = self.found.lock();
        let mut rules: Vec<&str> = found.keys().map(|key| key.check.name()).collect();
        rules.extend(leaks.iter().map(|_| LEAK));
        rules.sort_unstable();
        rules.dedup();
        let result = |(key, entry): (&FindingKey, &CountedFinding)| {
            let place = origin(&entry.first).and_then(|origin| origin.rsplit_once(':'));
            let location = match place {
                Some((file, line)) => json!([{ "physicalLocation": {
                    "artifactLocation": { "uri": file },
                    "region": { "startLine": line.parse::<u32>().unwrap_or(1) },
                } }]),
                None => json!([{ "logicalLocations": [{ "fullyQualifiedName": demangled(&key.kernel) }] }]),
            };
            let mut message = format!("`{}`: {}", demangled(&key.kernel), entry.first.message);
            if !key.instruction.is_empty() {
                let _ = write!(message, ", by `{}`", key.instruction);
            }
            if key.line > 0 {
                let _ = write!(message, " in PTX line {}", key.line);
            }
            json!({
                "ruleId": key.check,
                "level": key.severity.0,
                "message": { "text": message },
                "locations": location,
            })
        };
        let results: Vec<Value> = found.iter().map(result).chain(leaks.iter().map(Leak::sarif)).collect();
        let rules: Vec<Value> = rules.into_iter().map(|id| json!({ "id": id })).collect();
        json!({
            "version": "2.1.0",
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "runs": [{ "tool": { "driver": { "name": "cuda-on-cpu", "rules": rules } }, "results": results }],
        })
    }
}

/// Formats `1 error` or `2 errors`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the instruction as printed.
fn instruction(finding: &Finding) -> &str {
    finding.instruction.as_ref().map_or("", |instruction| &instruction.text)
}

/// Returns the position in the source that the instruction was compiled from.
fn origin(finding: &Finding) -> Option<&str> {
    finding.instruction.as_ref()?.origin.as_deref()
}

/// Parses suppressions: a check and a kernel in each line, or `leak` and a function of the driver.
/// `#` begins a comment. Also returns the number of each invalid line, and why the line is invalid.
fn suppressions(text: &str) -> (Vec<Suppression>, Vec<(usize, String)>) {
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1..) {
        let rule = line.split('#').next().unwrap_or_default().trim();
        if rule.is_empty() {
            continue;
        }
        let (check, kernel) = rule.split_once(char::is_whitespace).unwrap_or((rule, ""));
        let is_known = Check::ALL.iter().map(|check| check.name()).chain([LEAK]).any(|name| matches(check, name));
        if !is_known {
            wrong.push((number, format!("no check is called `{check}`")));
        } else if kernel.is_empty() {
            wrong.push((number, format!("expected a kernel after `{check}`, or `*` for any kernel")));
        } else {
            rules.push(Suppression { check: check.to_string(), kernel: kernel.trim().to_string() });
        }
    }
    (rules, wrong)
}

impl Suppression {
    fn covers(&self, finding: &Finding, (mangled, readable): &(String, String)) -> bool {
        matches(&self.check, finding.check.name())
            && (matches(&self.kernel, mangled) || matches(&self.kernel, readable))
    }
}

/// Returns whether a text matches a pattern, in which `*` means any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).any(|skipped| text.is_char_boundary(skipped) && matches(rest, &text[skipped..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_ptx::{CodeLocation, PtxInstruction, Thread};

    fn report(kernel: &str, check: Check, line: u32) -> Report {
        let message = "stores 4 bytes 8 bytes past the end of `out`".to_string();
        let (text, origin) = ("st.global.u32 [%rd1], %r1".to_string(), Some("scale.cu:12".to_string()));
        let place = CodeLocation { function: kernel.to_string(), line, ..CodeLocation::default() };
        let thread = Thread { block: [0; 3], thread: [1, 0, 0], warp: 0, lane: 1 };
        let severity = if check == Check::Approximate { Severity::Warning } else { Severity::Error };
        let new = Finding::new(check, severity, message, place, thread);
        let finding = Finding { instruction: Some(PtxInstruction { text, origin }), count: 3, ..new };
        let (allowed, sources, schedule) = Default::default();
        Report { kernel: kernel.to_string(), findings: vec![finding], allowed, truncated: false, schedule, sources }
    }

    #[test]
    fn each_finding_is_listed_once_and_errors_come_first() {
        let findings = ProcessFindings::default();
        assert_eq!(findings.summary(), "");
        findings.record(&report("_Z5scalePf", Check::Approximate, 3));
        assert!(!findings.has_errors());
        for _ in 0..2 {
            findings.record(&report("_Z5scalePf", Check::OutOfBounds, 7));
        }
        assert!(findings.has_errors());
        assert_eq!(
            findings.summary(),
            "1 error and 1 warning in kernels\n\
             error[out-of-bounds] in `scale`: stores 4 bytes 8 bytes past the end of `out`\n    \
             `st.global.u32 [%rd1], %r1`, PTX line 7, scale.cu:12\n    \
             first by thread [1, 0, 0] of block [0, 0, 0] (warp 0, lane 1); 6 times in 2 launches\n\
             warning[approximate] in `scale`: stores 4 bytes 8 bytes past the end of `out`\n    \
             `st.global.u32 [%rd1], %r1`, PTX line 3, scale.cu:12\n    \
             first by thread [1, 0, 0] of block [0, 0, 0] (warp 0, lane 1); 3 times in 1 launch"
        );
        let json = findings.json(&[]);
        assert_eq!((&json["findings"][0]["count"], &json["findings"][0]["name"]), (&json!(6), &json!("scale")));
        let sarif = findings.sarif(&[]);
        let location = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "scale.cu");
        assert_eq!(location["region"]["startLine"], 12);
        assert_eq!(
            sarif["runs"][0]["results"][0]["message"]["text"],
            "`scale`: stores 4 bytes 8 bytes past the end of `out`, by `st.global.u32 [%rd1], %r1` in PTX line 7"
        );
        assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"][1]["id"], "out-of-bounds");
    }

    #[test]
    fn suppressions_name_checks_and_kernels() {
        let findings = ProcessFindings {
            suppressions: suppressions("# known\nout-of-bounds scale # of the old version\n* _ZN3old*\n").0,
            ..ProcessFindings::default()
        };
        let left = |kernel, check| {
            let mut report = report(kernel, check, 1);
            findings.suppress(&mut report);
            report.findings.len()
        };
        assert_eq!(left("_Z5scalePf", Check::OutOfBounds), 0);
        assert_eq!(left("_Z5scalePf", Check::Misaligned), 1);
        assert_eq!(left("_ZN3old1kEv", Check::Misaligned), 0);
        assert_eq!(left("_Z5other", Check::OutOfBounds), 1);
        let (rules, wrong) = suppressions("shared-rase k\n\nout-of-bounds # and?\nshared-* k\nleak cuMemAlloc*\n");
        assert_eq!(rules.len(), 2);
        assert_eq!(
            wrong,
            [
                (1, "no check is called `shared-rase`".to_string()),
                (3, "expected a kernel after `out-of-bounds`, or `*` for any kernel".to_string()),
            ]
        );
        assert!(matches("a*c*", "abcd") && !matches("a*c", "abcd") && matches("*", ""));
    }
}
