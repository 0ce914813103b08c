//! `kernels list`: the kernels of the program.

use super::name::{self, SelectedInstance};
use crate::error::{CommandOutcome, Error};
use crate::output::{counted, json};
use clap::Args;
use kernel_dsl::Artifact;
use serde::Serialize;
use std::io::Write;

/// Columns of a line, unless `--verbose` is given.
const COLUMNS: usize = 80;

/// Lists the kernels by module: the number of instances and the documentation of each
#[derive(Args)]
pub(super) struct ListArgs {
    /// Kernels, instances or patterns: gemm, 'gemm*', '*@f16*', 'attention::*'. All by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Also list each kernel's source line and its instances with their generic arguments
    #[arg(long, short)]
    verbose: bool,
    /// Print a JSON array of objects with name, instances, file and line
    #[arg(long)]
    json: bool,
}

/// Kernel in the form that `--json` prints.
#[derive(Serialize)]
struct ListedKernel {
    name: &'static str,
    instances: Vec<String>,
    file: &'static str,
    line: u32,
    #[serde(skip)]
    artifact: &'static Artifact,
    /// Generic arguments of each instance; `None` if its name already shows them.
    #[serde(skip)]
    arguments: Vec<Option<String>>,
}

impl ListedKernel {
    fn new(artifact: &'static Artifact) -> ListedKernel {
        let (instances, arguments) = (Vec::new(), Vec::new());
        ListedKernel { name: artifact.name, instances, file: artifact.file, line: artifact.line, artifact, arguments }
    }

    fn push(&mut self, selected: &SelectedInstance) {
        let (name, spelled) = (selected.name(), self.artifact.name_with_arguments(&selected.instance.0));
        self.arguments.push((name != spelled).then(|| spelled[self.name.len()..].to_string()));
        self.instances.push(name);
    }
}

impl ListArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let entries = entries(&self.names)?;
        if self.json {
            json(out, &entries)?;
            return Ok(CommandOutcome::Success);
        }
        if entries.is_empty() {
            writeln!(out, "no kernels in this program: is the crate that holds them used? (`use my_kernels as _;`)")?;
            return Ok(CommandOutcome::Success);
        }
        let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        let mut module = "";
        for entry in &entries {
            if entry.artifact.module != module {
                module = entry.artifact.module;
                writeln!(out, "{module}")?;
            }
            let line = format!("  {:width$}  {:>3}  {}", entry.name, entry.instances.len(), summary(entry.artifact));
            match self.verbose {
                false => writeln!(out, "{}", shortened(line.trim_end()))?,
                true => {
                    writeln!(out, "{}", line.trim_end())?;
                    writeln!(out, "    {}:{}", entry.file, entry.line)?;
                    let named = entry.instances.iter().zip(&entry.arguments).filter(|(_, given)| given.is_some());
                    let width = named.map(|(name, _)| name.chars().count()).max().unwrap_or(0);
                    for (name, arguments) in entry.instances.iter().zip(&entry.arguments) {
                        let line = format!("    {name:width$}  {}", arguments.as_deref().unwrap_or_default());
                        writeln!(out, "{}", line.trim_end())?;
                    }
                }
            }
        }
        let instances: usize = entries.iter().map(|entry| entry.instances.len()).sum();
        let hint = if self.verbose { "" } else { "; -v lists the instances" };
        writeln!(out, "{}, {}{hint}", counted(entries.len(), "kernel"), counted(instances, "instance"))?;
        Ok(CommandOutcome::Success)
    }
}

/// Returns the selected kernels, sorted by module and name, each with its selected instances.
fn entries(names: &[String]) -> Result<Vec<ListedKernel>, Error> {
    let mut entries: Vec<_> = kernel_dsl::kernels().into_iter().map(ListedKernel::new).collect();
    for selected in name::instances(names)? {
        let entry = entries.iter_mut().find(|entry| std::ptr::eq(entry.artifact, selected.artifact));
        entry.expect("each kernel has an entry").push(&selected);
    }
    // A kernel without declared instances is listed too, unless names select others.
    entries.retain(|entry| names.is_empty() || !entry.instances.is_empty());
    Ok(entries)
}

/// Returns the first sentence of a kernel's documentation.
fn summary(artifact: &Artifact) -> String {
    let lines = artifact.docs.lines().map(str::trim).take_while(|line| !line.is_empty());
    let paragraph = lines.collect::<Vec<_>>().join(" ");
    paragraph.split_once(". ").map_or(paragraph.clone(), |(sentence, _)| format!("{sentence}."))
}

/// Returns at most [`COLUMNS`] characters of a line; `…` marks an omission.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(COLUMNS) {
        None => line.to_string(),
        Some(_) => {
            let kept: String = line.chars().take(COLUMNS - 1).collect();
            format!("{}…", kept.trim_end())
        }
    }
}
