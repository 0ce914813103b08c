//! Regenerates the generated pages of the repository that need neither a GPU nor another tool, by
//! the tests that compare them.
//!
//! ```text
//! cargo run -p pages                   the pages
//! cargo run -p pages -- --snapshots    also the snapshots: review what changed before a commit
//! cargo run -p pages -- --mutation     also the page of mutants, in 25 minutes on two cores
//! ```
//!
//! The program prints the changed files at its end, and fails if a test fails for another reason.

use std::io;
use std::process::{Command, ExitCode};

/// A run of tests that write pages.
struct Run {
    pages: &'static str,
    /// The option that selects the run, if it is not part of every run.
    option: Option<&'static str>,
    variables: &'static [(&'static str, &'static str)],
    arguments: &'static str,
}

const UPDATE: &[(&str, &str)] = &[("UPDATE", "1")];
const WHOLE: &[(&str, &str)] = &[("TESTS", "all"), ("UPDATE", "1")];
const INSTA: &[(&str, &str)] = &[("INSTA_UPDATE", "always"), ("TRYBUILD", "overwrite")];

const RUNS: [Run; 13] = [
    Run {
        pages: "kernel-dsl/compiler/src/ptx/table/instructions.md, kernel-dsl/src/reference.rs, \
                kernel-macros/src/clauses.md, kernel-dsl/compiler/tests/passes/filetests",
        option: None,
        variables: UPDATE,
        arguments: "-p kernel-dsl-compiler --features frontend --test ptx --test frontend --test passes",
    },
    Run {
        pages: "runtime/ptx/src/unspecified.md",
        option: None,
        variables: UPDATE,
        arguments: "-p runtime --test ptx unspecified",
    },
    Run {
        pages: "runtime/cuda-on-cpu/src/functions.md",
        option: None,
        variables: UPDATE,
        arguments: "-p cuda-on-cpu --lib page",
    },
    Run {
        pages: "runtime/devices/src/pool/tests: the trace of a transformer",
        option: None,
        variables: UPDATE,
        arguments: "-p runtime-devices --lib transformer",
    },
    Run {
        pages: "tests/tests/zoo/README.md, tests/tests/zoo/INTERLEAVED.md, runtime/oracle/src/checks.md, \
                tests/tests/nvrtc/README.md",
        option: None,
        variables: WHOLE,
        arguments: "-p tests --test zoo --test oracle --test nvrtc",
    },
    Run {
        pages: "kernel-dsl/src/subset.rs, tests/tests/machine_code/compilers/README.md, and the number of instances in \
                kernel-dsl/docs",
        option: None,
        variables: WHOLE,
        arguments: "-p tests --test documentation --test machine_code -- subset:: compilers:: number_of_instances",
    },
    Run {
        pages: "kernel-dsl/src/math.rs: the table of functions",
        option: None,
        variables: UPDATE,
        arguments: "-p tests --test language math::",
    },
    Run {
        pages: "kernels-rs/src/quant/accuracy.md",
        option: None,
        variables: UPDATE,
        arguments: "-p tests --test library products_are_accurate",
    },
    Run {
        pages: "kernels-rs/guide/chapters and pictures",
        option: None,
        variables: UPDATE,
        arguments: "-p guide --test chapters",
    },
    Run {
        pages: "the compiler's snapshots",
        option: Some("--snapshots"),
        variables: INSTA,
        arguments: "-p kernel-dsl-compiler --features frontend",
    },
    Run {
        pages: "tests/tests/machine_code/snapshots and the output of rejected kernels",
        option: Some("--snapshots"),
        variables: INSTA,
        arguments: "-p tests -p kernel-dsl --test machine_code --test compile_fail -- ptx:: sass:: wrong_kernels_have",
    },
    Run {
        pages: "the public surface, and the snapshots of findings, of analyses and of the command",
        option: Some("--snapshots"),
        variables: INSTA,
        arguments: "-p tests -p kernels-rs-command --test analyses --test documentation --test language --test command",
    },
    Run {
        pages: "tests/tests/mutation/README.md",
        option: Some("--mutation"),
        variables: &[("MUTANTS", "all"), ("UPDATE", "1")],
        arguments: "--release -p tests --test mutation",
    },
];

fn main() -> ExitCode {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let known = |option: &str| RUNS.iter().any(|run| run.option == Some(option));
    if let Some(other) = options.iter().find(|option| !known(option)) {
        eprintln!("unknown option `{other}`: expected `--snapshots` or `--mutation`");
        return ExitCode::from(2);
    }
    let selected = |run: &&Run| run.option.is_none_or(|option| options.iter().any(|given| given == option));
    let mut failed = Vec::new();
    for run in RUNS.iter().filter(selected) {
        println!("== {}", run.pages);
        match tests(run) {
            Ok(true) => {}
            Ok(false) => failed.push(format!("cargo test {}", run.arguments)),
            Err(error) => failed.push(format!("cargo test {}: {error}", run.arguments)),
        }
    }
    println!("== changed files");
    if let Err(error) = Command::new("git").args(["status", "--short"]).status() {
        eprintln!("git status: {error}");
    }
    failed.iter().for_each(|command| eprintln!("failed: {command}"));
    ExitCode::from(u8::from(!failed.is_empty()))
}

/// Runs the tests, and returns whether they passed.
fn tests(run: &Run) -> io::Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--no-fail-fast"]).args(run.arguments.split_whitespace());
    Ok(command.envs(run.variables.iter().copied()).status()?.success())
}
