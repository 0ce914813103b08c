//! `kernels run`: runs a kernel of any PTX file in the PTX interpreter.

mod element;
pub(super) mod error;
mod numpy;
mod parameters;
mod snippet;

use crate::error::CommandOutcome;
use crate::output::{counted, json};
use clap::{Args, ValueEnum};
use element::Content;
use error::Error;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::analyses::occupancy::MultiprocessorLimits;
use kernel_dsl::compiler::launch::{MAX_BLOCK, MAX_GRID, MAX_THREADS};
use kernel_dsl::compiler::ptx::{Module, parse};
use kernel_dsl::compiler::source::KernelSource;
use parameters::{BufferDescription, EntryParameter, Parameters};
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{
    self, BufferArgument, CodeLocation, Finding, Launch, Options, ParameterValue, Program, Report, Statistics,
    Unsupported, Verdict,
};
use serde::Serialize;
use snippet::Snippet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// Names of the dimensions.
const AXES: [&str; 3] = ["x", "y", "z"];

/// Runs a kernel of any PTX file on the CPU and checks it
///
/// Every access is checked for bounds, alignment and state space. Every barrier and exchange
/// between lanes is checked for its participants, and uninitialized data for whether it affects the
/// results. Races between warps are found too. Unsupported PTX is reported before anything runs.
/// The text of `log!` and `printf` follows the results.
///
/// The entry's parameters are given with --arg and --buffer, in order:
/// kernels run saxpy.ptx --grid 4 --block 256 --arg f32:2 --buffer x:f32[1000]=iota \
///   --arg u32:1000 --buffer y:f32[1000]=1 --arg u32:1000
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct RunArgs {
    /// The PTX file
    file: PathBuf,
    /// The kernel, if the file has several
    entry: Option<String>,
    /// Number of blocks in x, y, z
    #[arg(long, value_name = "X,Y,Z", default_value = "1", value_parser = grid)]
    grid: [u32; 3],
    /// Threads of a block in x, y, z; by default the size that the kernel requires
    #[arg(long, value_name = "X,Y,Z", value_parser = extent)]
    block: Option<[u32; 3]>,
    /// Bytes of shared memory in addition to what the kernel declares
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    #[command(flatten)]
    parameters: Parameters,
    /// Write a buffer to a file after the run, in memory layout, or as an array of NumPy if the
    /// file's name ends in .npy
    #[arg(long, value_name = "NAME=FILE", value_parser = save)]
    save: Vec<Save>,
    /// Number of elements printed per buffer
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    first: usize,
    /// The lanes of a diverged warp that run first; the results of a correct kernel do not depend
    /// on the choice
    #[arg(long, value_enum, default_value_t = PolicyArg::Stack)]
    policy: PolicyArg,
    /// Warp instructions of a block after which a loop counts as endless; 100000000 take seconds,
    /// the default minutes
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().fuel)]
    fuel: u64,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Buffer to write to a file.
#[derive(Clone, Debug)]
struct Save {
    name: String,
    file: PathBuf,
}

/// Command line form of [`ptx::BranchPolicy`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PolicyArg {
    /// Reconvergence at the immediate post-dominator of the diverging branch, as in hardware before
    /// Volta
    Stack,
    /// The lanes with the lowest program counter
    Lowest,
}

impl From<PolicyArg> for ptx::BranchPolicy {
    fn from(policy: PolicyArg) -> ptx::BranchPolicy {
        match policy {
            PolicyArg::Stack => ptx::BranchPolicy::PostDominator,
            PolicyArg::Lowest => ptx::BranchPolicy::LowestFirst,
        }
    }
}

/// Result of a run.
#[derive(Serialize)]
struct RunJson<'a> {
    entry: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    statistics: Statistics,
    findings: &'a [Finding],
    /// Whether the run stopped because it reached the limit of findings.
    truncated: bool,
    /// The text that the kernel printed; at most the last MiB.
    log: &'a str,
    buffers: Vec<BufferContent<'a>>,
}

/// Content of a buffer after the run.
#[derive(Serialize)]
struct BufferContent<'a> {
    name: &'a str,
    r#type: String,
    count: usize,
    /// Whether the content depends on an approximation, so that a GPU may give other values.
    approximate: bool,
    /// The first elements, in the number that the command line requests.
    first: Vec<String>,
}

impl RunArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, crate::error::Error> {
        let file = self.file.display().to_string();
        let text =
            crate::text_file::read(&self.file).map_err(|source| Error::Read { file: self.file.clone(), source })?;
        let snippet = Snippet { file: &file, text: &text };
        let module = parse(&text).map_err(|errors| Error::Text(snippet.syntax(&errors)))?;
        let entry = self.entry(&module, &file)?;
        let program = Program::decode(&module, &entry).map_err(|e| Error::Text(refused(&snippet, &e)))?;
        let required = module.entry(&entry).and_then(|entry| entry.directives.required_threads);
        let most = module.entry(&entry).and_then(|entry| entry.directives.max_threads);
        let block = self.block.or(required).ok_or(Error::NoBlock { most })?;
        self.check_limits(&module, &program, block)?;

        let (names, mut contents) = self.buffers()?;
        let saved = self.save.iter().map(|save| Ok((position(&names, &save.name)?, &save.file)));
        let saved = saved.collect::<Result<Vec<_>, Error>>()?;
        let buffers = names.iter().zip(&mut contents);
        let buffers =
            buffers.map(|(b, bytes)| BufferArgument { name: b.name.clone(), bytes: ArgumentBytes::Exclusive(bytes) });
        let launch = Launch {
            grid: self.grid,
            block,
            dynamic_shared: self.shared,
            buffers: buffers.collect(),
            parameters: self.values(&program, &names)?,
            options: Options { policy: self.policy.into(), fuel: self.fuel, races: true, ..Options::default() },
        };
        let outcome = program.run(launch).map_err(|mismatch| Error::Mismatch {
            mismatch,
            entry: entry.clone(),
            takes: describe_parameters(&program),
        })?;
        let log = String::from_utf8_lossy(&outcome.printed);
        let report = in_file(outcome.report, &entry, &file, &text);
        for (at, file) in saved {
            let file = file.clone();
            let written = match file.extension().is_some_and(|extension| extension == "npy") {
                true => numpy::array(names[at].element, &contents[at])
                    .map_err(|why| Error::Numpy { file: file.clone(), why })
                    .map(|bytes| fs::write(&file, bytes))?,
                false => fs::write(&file, &contents[at]),
            };
            written.map_err(|source| Error::Write { file, source })?;
        }

        let left = |(i, (buffer, bytes)): (usize, (&&BufferDescription, &Vec<u8>))| BufferContent {
            name: &names[i].name,
            r#type: buffer.element.name(),
            count: bytes.len() / buffer.element.bytes(),
            approximate: outcome.approximate.contains(&i),
            first: buffer.element.read(bytes).take(self.first).map(|bits| buffer.element.show(bits)).collect(),
        };
        let run = RunJson {
            entry: &entry,
            grid: self.grid,
            block,
            statistics: outcome.statistics,
            findings: &report.findings,
            truncated: report.truncated,
            log: &log,
            buffers: names.iter().zip(&contents).enumerate().map(left).collect(),
        };
        match self.json {
            true => json(out, &run)?,
            false => run.print(out, &report)?,
        }
        Ok(if report.verdict() == Verdict::Pass { CommandOutcome::Success } else { CommandOutcome::Failure })
    }

    /// Returns the named entry, or the only one.
    fn entry(&self, module: &Module, file: &str) -> Result<String, Error> {
        let entries: Vec<String> = module.entries().map(|entry| entry.name.clone()).collect();
        match (&self.entry, &entries[..]) {
            (_, []) => Err(Error::NoEntry { file: file.to_string() }),
            (None, [only]) => Ok(only.clone()),
            (Some(name), all) if all.contains(name) => Ok(name.clone()),
            (Some(name), _) => Err(Error::NoSuchEntry { file: file.to_string(), entries, name: name.clone() }),
            (None, _) => Err(Error::Entries { file: file.to_string(), entries }),
        }
    }

    /// Rejects launches beyond the limits of the PTX's target.
    fn check_limits(&self, module: &Module, program: &Program, block: [u32; 3]) -> Result<(), Error> {
        let threads = block.iter().fold(1u32, |all, extent| all.saturating_mul(*extent));
        let beyond = |axis: &usize| block[*axis] > MAX_BLOCK[*axis];
        // The interpreter rejects blocks of too many threads.
        if let Some(axis) = (0..3).find(beyond).filter(|_| threads <= MAX_THREADS) {
            return Err(Error::Block { most: MAX_BLOCK[axis], axis: AXES[axis], given: block[axis] });
        }
        // The limits of an unknown target are those of the target before it.
        let of_module = module.target().sm;
        let known = Target::ALL.into_iter().filter(|target| target.sm() <= of_module).max_by_key(|target| target.sm());
        let target = known.unwrap_or(Target::SM_61);
        let limits = MultiprocessorLimits::of(target);
        let most = if target.sm() < 70 { limits.shared_of_block } else { limits.shared - limits.shared_reserved };
        let declared = program.shared_bytes();
        if u64::from(declared) + u64::from(self.shared) > u64::from(most) {
            return Err(Error::Shared { target: target.sm(), most, declared, added: self.shared });
        }
        Ok(())
    }

    /// Returns the buffers in order, and their initial contents.
    fn buffers(&self) -> Result<(Vec<&BufferDescription>, Vec<Vec<u8>>), Error> {
        let mut names: Vec<&BufferDescription> = Vec::new();
        let mut contents = Vec::new();
        for parameter in &self.parameters.0 {
            let EntryParameter::Buffer(buffer) = parameter else { continue };
            if names.iter().any(|b| b.name == buffer.name) {
                return Err(Error::DuplicateBuffer(buffer.name.clone()));
            }
            names.push(buffer);
            contents.push(match &buffer.content {
                Content::File(file) => from_file(buffer, PathBuf::from(file))?,
                content => content
                    .fill(buffer.element, buffer.count.unwrap_or(0))
                    .map_err(|_| Error::Memory { name: buffer.name.clone() })?,
            });
        }
        Ok((names, contents))
    }

    /// Returns the values of the entry's parameters. Rejects a scalar of another type: it is more
    /// likely a mistake than a reinterpretation of its bits.
    fn values(&self, program: &Program, buffers: &[&BufferDescription]) -> Result<Vec<ParameterValue>, Error> {
        for (i, (given, takes)) in self.parameters.0.iter().zip(program.parameters()).enumerate() {
            if let EntryParameter::Scalar(element, _) = given
                && (takes.elements.is_some() || !element.fits(takes.ty))
            {
                let ty =
                    if takes.elements.is_some() { format!("{} bytes", takes.size()) } else { takes.ty.to_string() };
                return Err(Error::Type { number: i + 1, name: takes.name.clone(), ty, given: element.name() });
            }
        }
        let value = |parameter: &EntryParameter| match parameter {
            EntryParameter::Scalar(_, bits) => Ok(ParameterValue::Bits(*bits)),
            EntryParameter::Bytes(bytes) => Ok(ParameterValue::Bytes(bytes.clone())),
            EntryParameter::Inside(name, offset) => {
                Ok(ParameterValue::Address { buffer: position(buffers, name)?, offset: *offset })
            }
            EntryParameter::Buffer(buffer) => {
                Ok(ParameterValue::Address { buffer: position(buffers, &buffer.name)?, offset: 0 })
            }
        };
        self.parameters.0.iter().map(value).collect()
    }
}

/// Describes the parameters of an entry.
fn describe_parameters(program: &Program) -> String {
    let parameters = program.parameters().iter().map(|p| format!("{} ({})", type_of(p), p.name));
    let parameters: Vec<_> = parameters.collect();
    if parameters.is_empty() { "no parameters".to_string() } else { parameters.join(", ") }
}

fn type_of(parameter: &kernel_dsl::compiler::ptx::Parameter) -> String {
    if parameter.elements.is_some() { format!("{} bytes", parameter.size()) } else { parameter.ty.to_string() }
}

fn position(buffers: &[&BufferDescription], name: &str) -> Result<usize, Error> {
    let known = || buffers.iter().map(|b| b.name.clone()).collect();
    let found = buffers.iter().position(|b| b.name == name);
    found.ok_or_else(|| Error::NoBuffer { name: name.to_string(), known: known() })
}

/// Returns the bytes of a file, or the elements of an array that NumPy saved. Fails unless the
/// content is as long as the buffer.
fn from_file(buffer: &BufferDescription, file: PathBuf) -> Result<Vec<u8>, Error> {
    let mut bytes = fs::read(&file).map_err(|source| Error::Read { file: file.clone(), source })?;
    let element = buffer.element;
    if let Some(header) = numpy::header_bytes(element, &bytes) {
        let header = header.map_err(|why| Error::Numpy { file: file.clone(), why })?;
        bytes.drain(..header);
    }
    let fits = match buffer.count {
        Some(count) if count * element.bytes() != bytes.len() => {
            format!("is not {count} elements of {}: {} bytes", element.name(), count * element.bytes())
        }
        None if !bytes.len().is_multiple_of(element.bytes()) => format!("is not a whole number of {}", element.name()),
        _ => return Ok(bytes),
    };
    Err(Error::Length { file, bytes: bytes.len(), fits })
}

/// Returns the report with locations in the file's text. An instruction's location extends to the
/// end of its line.
fn in_file(mut report: Report, entry: &str, file: &str, text: &str) -> Report {
    let text: Vec<String> = text.lines().map(str::to_string).collect();
    for finding in &mut report.findings {
        let line = text.get((finding.place.line as usize).wrapping_sub(1)).map_or("", |line| line.trim_end());
        let indent = line.chars().take_while(|c| c.is_whitespace()).count() as u32;
        let (column, end_column) = (indent + 1, line.chars().count() as u32 + 1);
        let place = std::mem::take(&mut finding.place);
        finding.place = CodeLocation { source: 0, file: file.to_string(), column, end_column, ..place };
    }
    report.sources = vec![KernelSource { name: entry.to_string(), file: file.to_string(), line: 1, text }];
    report
}

/// Lists the unsupported statements, each with its place.
fn refused(snippet: &Snippet, unsupported: &Unsupported) -> String {
    let mut text = format!("the PTX interpreter does not run `{}`", unsupported.entry);
    for refusal in &unsupported.refusals {
        let place = match refusal.line {
            Some(line) => snippet.statement(line),
            None => format!("  {}", refusal.text),
        };
        text += &format!("\n`{}`: {}\n{place}", refusal.text, refusal.why);
    }
    text
}

impl RunJson<'_> {
    fn print(&self, out: &mut dyn Write, report: &Report) -> Result<(), crate::error::Error> {
        let RunJson { entry, grid, block, statistics, .. } = self;
        if !report.findings.is_empty() {
            writeln!(out, "{report}\n")?;
        }
        let found = match self.findings.len() as u32 {
            0 => "nothing was found".to_string(),
            n => counted(n, "finding"),
        };
        let Statistics { warp_instructions, thread_instructions, .. } = statistics;
        writeln!(out, "{entry}, {} of {}: {found}", extent_in_words(grid, "block"), extent_in_words(block, "thread"))?;
        writeln!(out, "{warp_instructions} warp instructions, {thread_instructions} thread instructions")?;
        for BufferContent { name, r#type, count, approximate, first } in &self.buffers {
            let about = if *approximate { "≈" } else { "=" };
            let more = match count - first.len() {
                0 => String::new(),
                n if first.is_empty() => format!("… ({n})"),
                n => format!(", … ({n} more)"),
            };
            writeln!(out, "{name}: {type}[{count}] {about} {}{more}", first.join(", "))?;
        }
        if !self.log.is_empty() {
            writeln!(out, "log:")?;
            self.log.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
        }
        Ok(())
    }
}

/// Formats `4 blocks` or `2 x 2 x 1 blocks`.
fn extent_in_words(extent: &[u32; 3], noun: &str) -> String {
    match extent {
        [x, 1, 1] => counted(*x, noun),
        [x, y, z] => format!("{x} x {y} x {z} {noun}s"),
    }
}

/// Parses `4`, `4,2` or `4,2,1`.
fn extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > extent.len() {
        return Err("expected at most three dimensions".to_string());
    }
    for (to, part) in extent.iter_mut().zip(parts) {
        *to = part.trim().parse().map_err(|_| format!("`{part}` is not a number of blocks or threads"))?;
    }
    Ok(extent)
}

/// Parses a grid size within the limits of the driver.
fn grid(text: &str) -> Result<[u32; 3], String> {
    let grid = extent(text)?;
    if grid.contains(&0) {
        return Err("a grid has at least 1 block in each dimension".to_string());
    }
    match (0..3).find(|axis| grid[*axis] > MAX_GRID[*axis]) {
        None => Ok(grid),
        Some(axis) => Err(format!("a grid has at most {} blocks in {}", MAX_GRID[axis], AXES[axis])),
    }
}

fn save(text: &str) -> Result<Save, String> {
    let (name, file) = text.split_once('=').ok_or("expected NAME=FILE")?;
    Ok(Save { name: name.to_string(), file: PathBuf::from(file) })
}
