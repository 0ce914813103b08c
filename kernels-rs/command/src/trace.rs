//! `kernels trace`: one thread of an instance, line by line.

use super::cases::{self, CaseOptions};
use super::name::{self, SelectedInstance};
use super::oracle_args::OracleArgs;
use crate::error::{CommandOutcome, Error};
use crate::output::json;
use clap::Args;
use runtime::interpreter::{self, Verdict};
use runtime::testing::{self, TracedThread};
use serde::Serialize;
use std::io::Write;

/// Follows one thread of an instance through a case, line by line: assignments, loads, stores,
/// branch directions, barriers and lines of `log!`
///
/// The kernel runs as written, on the interpreter, with every check that is not disabled; findings
/// follow the trace.
#[derive(Args)]
pub(super) struct TraceArgs {
    /// The instance: saxpy, gemm@f32_128x128_v4, 'matmul<T = 16>'. A kernel's name, or a pattern,
    /// is enough if it selects one instance
    name: String,
    #[command(flatten)]
    followed: ThreadArgs,
    #[command(flatten)]
    wanted: CaseOptions,
    #[command(flatten)]
    oracle: OracleArgs,
    /// Maximum number of lines; further lines are counted
    #[arg(long, default_value_t = 200)]
    lines: usize,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Options that select the thread to follow.
#[derive(Args)]
pub(super) struct ThreadArgs {
    /// Index of the block in x, y, z; omitted y and z are 0
    #[arg(long, value_name = "X,Y,Z", default_value = "0", value_parser = index)]
    block: [u32; 3],
    /// Index of the thread in its block
    #[arg(long, value_name = "X,Y,Z", default_value = "0", value_parser = index)]
    thread: [u32; 3],
}

impl ThreadArgs {
    /// Returns the thread, with a limit of lines.
    pub(super) fn thread(&self, limit: usize) -> TracedThread {
        TracedThread { block: self.block, thread: self.thread, limit }
    }
}

/// Contents of the trace.
#[derive(Serialize)]
struct TraceJson<'a> {
    case: &'a str,
    seed: u64,
    #[serde(flatten)]
    trace: &'a interpreter::Trace,
    /// Findings of the oracle in the whole launch.
    report: &'a interpreter::Report,
}

impl TraceArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let SelectedInstance { artifact, instance } = name::instance(&self.name)?;
        let cases = self.wanted.of(artifact, &instance)?;
        let thread = self.followed.thread(self.lines);
        let mut refused = None;
        for case in &cases {
            match testing::trace(artifact, &instance, case, thread, self.oracle.options()) {
                Ok((outcome, trace)) => {
                    let report = &outcome.report;
                    if self.json {
                        json(out, &TraceJson { case: &case.name, seed: self.wanted.seed(), trace: &trace, report })?;
                    } else {
                        writeln!(out, "case `{}` of seed {}", case.name, self.wanted.seed())?;
                        writeln!(out, "{trace}")?;
                        if !report.findings.is_empty() {
                            writeln!(out, "\n{report}")?;
                        }
                    }
                    return Ok(if report.verdict() == Verdict::Pass {
                        CommandOutcome::Success
                    } else {
                        CommandOutcome::Failure
                    });
                }
                // Another case may have such a thread.
                Err(e) => _ = refused.get_or_insert((e, &case.name)),
            }
        }
        Err(match refused {
            Some((source, case)) => Error::Trace { case: case.clone(), source: source.into() },
            None => cases::Error::NoSpec { instance: artifact.instance_name(&instance.0) }.into(),
        })
    }
}

/// Parses up to three numbers.
fn index(text: &str) -> Result<[u32; 3], String> {
    let wrong = || format!("expected an index such as 5 or 5,0,1, and not `{text}`");
    let numbers: Vec<u32> = text.split(',').map(|n| n.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    match numbers[..] {
        [x] => Ok([x, 0, 0]),
        [x, y] => Ok([x, y, 0]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_up_to_three_dimensions() {
        assert_eq!(index("5"), Ok([5, 0, 0]));
        assert_eq!(index("5, 0,1"), Ok([5, 0, 1]));
        for wrong in ["", "x", "-1", "1,2,3,4", "1,"] {
            assert!(index(wrong).is_err(), "{wrong}");
        }
    }
}
