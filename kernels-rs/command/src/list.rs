//! `kernels list`: the kernels of the program.

use super::name::{self, SelectedInstance};
use crate::error::{CommandOutcome, Error};
use crate::output::{counted, json};
use clap::Args;
use kernel_dsl::Artifact;
use runtime::interpreter::report::shown_path;
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Columns of a line on a terminal that does not say its width, unless `--verbose` is given.
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
    /// Print a JSON array of objects with name, description, instances, file and line
    #[arg(long)]
    json: bool,
}

/// Kernel in the form that `--json` prints.
#[derive(Serialize)]
struct ListedKernel {
    name: &'static str,
    /// First sentence of the documentation.
    description: String,
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
        let Artifact { name, file, line, .. } = *artifact;
        ListedKernel { name, description: summary(artifact), instances, file, line, artifact, arguments }
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
        let columns = columns();
        let mut module = "";
        for entry in &entries {
            if entry.artifact.module != module {
                module = entry.artifact.module;
                writeln!(out, "{module}")?;
            }
            let line = format!("  {:width$}  {:>3}  {}", entry.name, entry.instances.len(), entry.description);
            match self.verbose {
                false => writeln!(out, "{}", shortened(line.trim_end(), columns))?,
                true => {
                    writeln!(out, "{}", line.trim_end())?;
                    writeln!(out, "    {}:{}", shown_path(entry.file), entry.line)?;
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

/// Returns the columns of the terminal; `None` in a file or a pipe, whose lines are whole.
fn columns() -> Option<usize> {
    let width = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    std::io::stdout().is_terminal().then(|| width().unwrap_or(COLUMNS))
}

/// Returns at most `columns` characters of a line; `…` marks an omission.
fn shortened(line: &str, columns: Option<usize>) -> String {
    match columns.filter(|columns| line.chars().count() > *columns) {
        None => line.to_string(),
        Some(columns) => {
            let kept: String = line.chars().take(columns - 1).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn lines_are_cut_at_the_width_of_a_terminal() {
        let line = "  saxpy  1  Computes y";
        assert_eq!(shortened(line, None), line);
        assert_eq!(shortened(line, Some(line.len())), line);
        assert_eq!(shortened(line, Some(12)), "  saxpy  1…");
    }
}
