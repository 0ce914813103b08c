//! `kernels list`: the kernels of the program.

use super::{Error, Outcome, json};
use clap::Args;
use kernel_dsl::Artifact;
use serde::Serialize;
use std::io::Write;

/// Lists the kernels: their places, declared instances, and documentation
#[derive(Args)]
pub(super) struct List {
    /// Print a JSON array of objects with name, instances, file and line
    #[arg(long)]
    json: bool,
}

/// Kernel in the form that `--json` prints.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    instances: Vec<&'static str>,
    file: &'static str,
    line: u32,
}

impl Entry {
    fn new(artifact: &'static Artifact) -> Entry {
        let instances = artifact.instances.iter().map(|i| i.name).collect();
        Entry { name: artifact.name, instances, file: artifact.file, line: artifact.line }
    }
}

impl List {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let kernels = kernel_dsl::kernels();
        if self.json {
            json(out, &kernels.into_iter().map(Entry::new).collect::<Vec<_>>())?;
            return Ok(Outcome::Good);
        }
        if kernels.is_empty() {
            writeln!(out, "no kernels in this program: is the crate that holds them used? (`use my_kernels as _;`)")?;
        }
        let name = kernels.iter().map(|a| a.name.len()).max().unwrap_or(0);
        let place = |a: &Artifact| format!("{}:{}", a.file, a.line);
        let places = kernels.iter().map(|a| place(a).len()).max().unwrap_or(0);
        for artifact in kernels {
            let instances = Entry::new(artifact).instances.join(", ");
            writeln!(out, "{:name$}  {:places$}  {instances}", artifact.name, place(artifact))?;
            let summary: Vec<_> = artifact.docs.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
            if !summary.is_empty() {
                writeln!(out, "{:name$}  {}", "", summary.join(" "))?;
            }
        }
        Ok(Outcome::Good)
    }
}
