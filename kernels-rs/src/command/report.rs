//! `kernels report`: what an instance takes of the machine, by the compiler's own analyses and, where it is found, ptxas.

use super::cases::{self, Wanted};
use super::lines::Lines;
use super::machine::{Code, Issue, Tools};
use super::name::{self, Named};
use super::ptxas::Resources;
use super::{Error, Outcome, json};
use crate::sass::{self, Class, Line};
use clap::Args;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::analyses::approximate::{Approximations, Decision};
use kernel_dsl::compiler::analyses::memory::{self, Cost, Kind, Site};
use kernel_dsl::compiler::analyses::mix;
use kernel_dsl::compiler::analyses::occupancy::{Needs, Occupancy};
use kernel_dsl::compiler::analyses::slow::{self, Lint, Slow};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::ir::{DynamicArray, Kernel, Location};
use kernel_dsl::compiler::{Errors, Target, analyses, emit, passes};
use runtime::interpreter::profile::{self, Accessed, Counts, Profile};
use runtime::testing::Profiler;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

/// Tells what an instance takes of the machine: registers, shared memory, occupancy, instructions, bank conflicts, sectors; and
/// what of it is slow on the target
///
/// Bank conflicts and sectors are those of a warp whose lanes all take part, worked out from how the indices depend on
/// the thread; beside them stands what the interpreter measures on a case of those that `check` tries. Registers and spills are what ptxas says, where one is found that knows the target; loops, issue slots and
/// register banks are of the machine code that it makes, where an nvdisasm is found too.
#[derive(Args)]
pub(super) struct Report {
    /// A kernel, all of whose declared instances are meant, or an instance: matmul, 'matmul::<16>'
    name: String,
    /// The architecture to compile for, such as sm_80; the kernel's own, sm_61 unless it says another, if none is named
    #[arg(long, value_name = "SM")]
    target: Option<Target>,
    #[command(flatten)]
    wanted: Wanted,
    /// Print a JSON array of objects, one an instance
    #[arg(long)]
    json: bool,
}

/// Kinds of instructions that stand in a line.
const KINDS_A_LINE: usize = 5;

/// What is told of an instance.
#[derive(Serialize)]
struct Told {
    instance: String,
    target: String,
    /// Threads of a block in x, y, z; of one whose size the launch chooses, the largest.
    block: [u32; 3],
    threads: u32,
    /// The sizes that there are, in words.
    blocks: String,
    shared_bytes: u32,
    /// What the arrays in shared memory are.
    shared: Vec<String>,
    /// `null` where there is no ptxas that knows the target.
    machine_code: Option<MachineCode>,
    /// Of the largest block. Where registers are not known, as if they did not limit it.
    occupancy: Shares,
    /// Of each size of block that was looked at, the largest first.
    by_block: Vec<Shares>,
    /// Instructions of the PTX by kind; one in a loop counts once.
    instructions: BTreeMap<mix::Class, u32>,
    /// The case that accesses were measured on; `null` where nothing says how to try the kernel.
    case: Option<String>,
    accesses: Vec<Access>,
    lints: Vec<Slowness>,
    /// What the hardware's approximations decide.
    decisions: Vec<Doubt>,
}

#[derive(Serialize)]
struct MachineCode {
    ptxas: String,
    #[serde(flatten)]
    resources: Resources,
    /// `null` where there is no nvdisasm.
    sass: Option<Sass>,
}

/// The instructions that ptxas made, and what they are worth.
#[derive(Serialize)]
struct Sass {
    #[serde(flatten)]
    issue: Issue,
    mix: BTreeMap<Class, u32>,
    /// By where they begin, outer ones before inner ones.
    loops: Vec<Loop>,
}

/// A loop of the machine code: what an iteration takes that takes every path, inner loops once.
#[derive(Serialize)]
struct Loop {
    /// Where it stands in the source; `null` where that is not known.
    line: Option<Line>,
    text: String,
    /// Loops around it.
    depth: u32,
    /// The index of the one right around it.
    inside: Option<usize>,
    #[serde(flatten)]
    issue: Issue,
    mix: BTreeMap<Class, u32>,
}

#[derive(Clone, Serialize)]
struct Shares {
    block: [u32; 3],
    #[serde(flatten)]
    occupancy: Occupancy,
    percent: u32,
}

/// A place in the source.
#[derive(Clone, Serialize)]
struct Place {
    file: String,
    line: u32,
    column: u16,
    text: String,
}

/// An access to memory.
#[derive(Serialize)]
struct Access {
    #[serde(skip)]
    location: Location,
    #[serde(flatten)]
    place: Place,
    kind: Kind,
    /// Name of the array or parameter; `null` where it depends on the way.
    array: Option<String>,
    bytes: u32,
    /// Instructions that the place became.
    count: u32,
    /// Loops around it.
    loops: u32,
    /// `null` where it is not understood.
    cost: Option<Cost>,
    /// What it asked in the case; `null` where it was not come to, or nothing was measured.
    measured: Option<Measured>,
}

/// What an access asked of memory.
#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    counts: Counts,
    /// Of a request.
    mean: f64,
    /// The part of a warp's lanes that took part.
    active: f64,
}

/// What is legal on the target and slow there.
#[derive(Serialize)]
struct Slowness {
    lint: &'static str,
    /// `null` where the whole kernel is meant.
    place: Option<Place>,
    count: u32,
    in_loop: bool,
    message: String,
    help: &'static str,
}

/// What an approximation decides.
#[derive(Serialize)]
struct Doubt {
    decides: &'static str,
    place: Place,
    message: String,
    notes: Vec<String>,
    help: Option<String>,
}

impl Report {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let named = Named::find(&self.name, &kernel_dsl::kernels())?;
        let artifact = named.artifact;
        let target = self.target.unwrap_or(artifact.target);
        let tools = Tools::find(target);
        let instances = named.instances();
        if instances.is_empty() {
            return Err(name::Error::NoInstance { name: artifact.name }.into());
        }
        let told = instances.iter().map(|instance| self.told(artifact, instance, target, tools.as_ref()));
        let told = told.collect::<Result<Vec<_>, _>>()?;
        if self.json {
            json(out, &told)?;
            return Ok(Outcome::Good);
        }
        for (i, instance) in told.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            instance.print(out)?;
        }
        Ok(Outcome::Good)
    }
}

impl Report {
    /// All that is told of an instance.
    fn told(
        &self,
        artifact: &'static Artifact,
        instance: &Instance,
        target: Target,
        tools: Option<&Tools>,
    ) -> Result<Told, Error> {
        let mut told = Told::of(artifact, instance, target, tools)?;
        let cases = match self.wanted.of(artifact, instance) {
            // Without being asked, what can be told is.
            Err(cases::Error::NoSubject { .. }) if !self.wanted.is_said() => return Ok(told),
            cases => cases?,
        };
        let Some(case) = cases.first() else { return Ok(told) };
        let measured = Profiler::new(artifact, instance, target).and_then(|profiler| profiler.run(case));
        let measured = measured.map_err(|source| Error::Profile {
            instance: told.instance.clone(),
            case: case.name.clone(),
            source: source.into(),
        })?;
        if let Some((_, profile)) = measured {
            told.case = Some(case.name.clone());
            told.accesses.iter_mut().for_each(|access| access.measure(&profile));
        }
        Ok(told)
    }
}

/// The arrays in shared memory.
fn arrays(kernel: &Kernel) -> Vec<String> {
    let fixed = kernel.shared.iter().map(|array| array.to_string());
    let dynamic = kernel.dynamic.iter();
    let dynamic = dynamic.map(|DynamicArray { name, element, .. }| {
        format!("{name}: {element}, as large as the launch says, and not counted here")
    });
    fixed.chain(dynamic).collect()
}

impl Told {
    fn of(
        artifact: &'static Artifact,
        instance: &Instance,
        target: Target,
        tools: Option<&Tools>,
    ) -> Result<Told, Error> {
        let name = instance.name(artifact.name);
        let failed = |source: Errors| Error::Compile { instance: name.clone(), target, source };
        let lowered = analyses::lowered(&name::program(artifact)?, instance, target).map_err(failed)?;
        let approximations = Approximations::of(&lowered);
        let decisions = approximations.decisions.iter().map(|decision| Doubt::new(&lowered, *decision)).collect();
        let optimised = passes::optimise(lowered.clone()).map_err(failed)?;
        let module = emit::emit_with(&optimised, emit::Lines::Kept).map_err(failed)?;
        let sites = memory::accesses(&passes::with_places(lowered).map_err(failed)?);

        let machine_code = match tools {
            Some(tools) => {
                let machine = tools.assemble(&name, &module.to_string(), target)?;
                let sass = machine.code.map(|code| Sass::new(&code, &Lines::of(&optimised.sources)));
                Some(MachineCode { ptxas: tools.ptxas.to_string(), resources: machine.resources, sass })
            }
            None => None,
        };
        let (threads, shared_bytes) = (optimised.block.most_threads(), optimised.shared_bytes());
        let registers = machine_code.as_ref().map(|m| m.resources.registers);
        let shares = |block: [u32; 3]| {
            let needs = Needs { threads: block.iter().product(), registers, shared: shared_bytes };
            let occupancy = Occupancy::of(target, needs);
            Shares { block, percent: occupancy.percent(), occupancy }
        };
        let by_block: Vec<_> = optimised.block.samples().into_iter().rev().map(shares).collect();
        let mut lints = slow::lints(&optimised, &sites);
        if let Some(MachineCode { resources: r, .. }) = &machine_code
            && r.spill_loads + r.spill_stores > 0
        {
            let slow = Slow::Spills { stores: r.spill_stores, loads: r.spill_loads };
            lints.insert(0, Lint { slow, location: None, count: 1, looped: false });
        }
        Ok(Told {
            instance: name.clone(),
            target: target.to_string(),
            block: optimised.block.most(),
            threads,
            blocks: optimised.block.to_string(),
            shared_bytes,
            shared: arrays(&optimised),
            machine_code,
            occupancy: shares(optimised.block.most()),
            by_block,
            instructions: mix::mix(&module).into_iter().collect(),
            case: None,
            accesses: sites.into_iter().map(|site| Access::new(&optimised, site)).collect(),
            lints: lints.into_iter().map(|lint| Slowness::new(&optimised, lint)).collect(),
            decisions,
        })
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "{} for {}", self.instance, self.target)?;
        writeln!(out, "block         {}", self.blocks)?;
        match &self.machine_code {
            Some(MachineCode { ptxas, resources, .. }) => writeln!(out, "registers     {resources} ({ptxas})")?,
            None => writeln!(out, "registers     not known: no ptxas that knows {} is found", self.target)?,
        }
        writeln!(out, "shared        {} bytes", self.shared_bytes)?;
        for array in &self.shared {
            writeln!(out, "              {array}")?;
        }
        let unless = if self.machine_code.is_none() { ", unless by registers" } else { "" };
        for (i, Shares { block, occupancy, percent }) in self.by_block.iter().enumerate() {
            let Occupancy { blocks, warps, of, limited_by } = occupancy;
            let limits: Vec<_> = limited_by.iter().map(|limit| limit.name()).collect();
            let heading = if i == 0 { "occupancy" } else { "" };
            let size = match self.by_block.len() {
                1 => String::new(),
                _ => format!(" of {} threads", block.iter().product::<u32>()),
            };
            writeln!(
                out,
                "{heading:14}{warps} of {of} warps ({percent} %) in {blocks} blocks{size}, limited by {}{unless}",
                limits.join(" and ")
            )?;
        }
        let total: u32 = self.instructions.values().sum();
        writeln!(out, "instructions  {total} of PTX")?;
        kinds(out, 14, self.instructions.iter().map(|(class, n)| (class.name(), *n)))?;
        if let Some(sass) = self.machine_code.as_ref().and_then(|machine| machine.sass.as_ref()) {
            sass.print(out)?;
        }
        if !self.accesses.is_empty() {
            match &self.case {
                Some(case) => writeln!(out, "memory, a warp's access at a time, and measured on {case}:")?,
                None => writeln!(out, "memory, a warp's access at a time:")?,
            }
        }
        let rows: Vec<[String; 5]> = self.accesses.iter().map(|access| access.row(self.case.is_some())).collect();
        let widths: [usize; 5] =
            std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
        for row in rows {
            let padded: String = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}  ")).collect();
            writeln!(out, "  {}", padded.trim_end())?;
        }
        if self.lints.is_empty() {
            writeln!(out, "nothing in it is known to be slow on {}", self.target)?;
        }
        for lint in &self.lints {
            lint.print(out)?;
        }
        for doubt in &self.decisions {
            doubt.print(out)?;
        }
        Ok(())
    }
}

/// Instructions by kind, some a line, behind `indent` spaces.
fn kinds(out: &mut dyn Write, indent: usize, mix: impl Iterator<Item = (&'static str, u32)>) -> Result<(), Error> {
    let kinds: Vec<_> = mix.map(|(class, n)| format!("{n} {class}")).collect();
    kinds.chunks(KINDS_A_LINE).try_for_each(|line| Ok(writeln!(out, "{:indent$}{}", "", line.join(", "))?))
}

impl Sass {
    fn new(code: &Code, lines: &Lines) -> Sass {
        let looped = |(i, l): (usize, &sass::Loop)| {
            // What jumps back is the loop's own; its first instruction can be of any line in it.
            let line = code.listing.instructions[l.jump].line.clone();
            let text = line.as_ref().map_or("", |line| lines.code(line)).to_string();
            let (depth, inside) = (l.depth, code.around(i));
            Loop { line, text, depth, inside, issue: Issue::from(l), mix: l.classes.clone() }
        };
        Sass {
            issue: Issue::from(code),
            mix: code.listing.classes(0..code.listing.instructions.len()),
            loops: code.loops.iter().enumerate().map(looped).collect(),
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "machine code  {}", self.issue)?;
        kinds(out, 14, self.mix.iter().map(|(class, n)| (class.name(), *n)))?;
        if !self.loops.is_empty() {
            writeln!(out, "loops of the machine code, an iteration with all its paths:")?;
        }
        for Loop { line, text, depth, issue, mix, .. } in &self.loops {
            let indent = 2 + 2 * *depth as usize;
            match line {
                Some(Line { file, number }) => writeln!(out, "{:indent$}{file}:{number} {text}", "")?,
                None => writeln!(out, "{:indent$}no line of Rust: ptxas's own", "")?,
            }
            writeln!(out, "{:indent$}    {issue}", "")?;
            kinds(out, indent + 4, mix.iter().map(|(class, n)| (class.name(), *n)))?;
        }
        Ok(())
    }
}

impl Place {
    fn new(kernel: &Kernel, location: Location) -> Place {
        let at = kernel.locations[location.0 as usize];
        let source = &kernel.sources[at.source as usize];
        let offset = u32::from(at.span.line);
        Place {
            file: source.file.clone(),
            line: source.line + offset,
            column: at.span.column,
            text: source.line_code(offset).to_string(),
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        let Place { file, line, column, text } = self;
        let gutter = line.to_string().len();
        writeln!(out, "{:gutter$}--> {file}:{line}:{column}", "")?;
        Ok(writeln!(out, "{line} | {text}")?)
    }
}

impl Doubt {
    fn new(kernel: &Kernel, decision: Decision) -> Doubt {
        let error = decision.error(kernel);
        let place = Place::new(kernel, decision.location);
        Doubt { decides: decision.decided.name(), place, message: error.message, notes: error.notes, help: error.help }
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "approximate[{}]: {}", self.decides, self.message)?;
        self.place.print(out)?;
        for note in &self.notes {
            writeln!(out, "  = note: {note}")?;
        }
        self.help.iter().try_for_each(|help| Ok(writeln!(out, "  = help: {help}")?))
    }
}

impl Access {
    fn new(kernel: &Kernel, site: Site) -> Access {
        let Site { location, kind, array, bytes, count, loops, cost } = site;
        let place = Place::new(kernel, location);
        Access { location, place, kind, array, bytes, count, loops, cost, measured: None }
    }

    /// Takes what was measured of it.
    fn measure(&mut self, profile: &Profile) {
        let kind = match self.kind {
            Kind::Load => profile::Kind::Load,
            Kind::Store => profile::Kind::Store,
            Kind::Atomic => profile::Kind::Atomic,
        };
        // Where a way decides which array it is, the analysis has no name for it.
        let of_it = |a: &&Accessed| {
            (a.location, a.kind, a.bytes) == (self.location, kind, self.bytes)
                && (self.array.is_none() || a.array == self.array)
        };
        let counts = profile.accesses.iter().filter(of_it).map(|a| a.counts).reduce(Counts::and);
        self.measured = counts.map(|counts| Measured { mean: counts.mean(), active: counts.active(), counts });
    }

    /// Where, what, how much, what it costs, and what it did if that was `measured`.
    fn row(&self, measured: bool) -> [String; 5] {
        let Place { file, line, column, .. } = &self.place;
        let kind = match self.kind {
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::Atomic => "atomic",
        };
        let times = if self.count > 1 { format!("{} × ", self.count) } else { String::new() };
        let cost = match self.cost {
            Some(Cost::Shared { ways: 0 | 1 }) => "no bank conflict".to_string(),
            Some(Cost::Shared { ways }) => format!("{ways}-way bank conflict"),
            Some(Cost::Constant { words: 0 | 1 }) => "one place".to_string(),
            Some(Cost::Constant { words }) => format!("up to {words} places, in turns"),
            Some(Cost::Global { sectors, least }) if sectors == least => format!("{sectors} sectors"),
            Some(Cost::Global { sectors, least }) => format!("{sectors} sectors, where {least} would do"),
            None => "not known: the index depends on memory, or on what is too involved".to_string(),
        };
        let looped = if self.loops > 0 { ", in a loop" } else { "" };
        [
            format!("{file}:{line}:{column}"),
            format!("{kind} {}", self.array.as_deref().unwrap_or("?")),
            format!("{times}{} B a lane", self.bytes),
            format!("{cost}{looped}"),
            match &self.measured {
                Some(measured) => measured.to_string(),
                None if measured => "not come to".to_string(),
                None => String::new(),
            },
        ]
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { counts, mean, active } = self;
        // Whole numbers where all requests cost the same.
        match counts.cost == u64::from(counts.most) * counts.requests {
            true => write!(f, "measured {}", counts.most)?,
            false => write!(f, "measured {mean:.2}, at most {}", counts.most)?,
        }
        match counts.lanes == 32 * counts.requests {
            true => Ok(()),
            false => write!(f, ", {:.0} % of lanes", 100.0 * active),
        }
    }
}

impl Slowness {
    fn new(kernel: &Kernel, lint: Lint) -> Slowness {
        Slowness {
            lint: lint.slow.name(),
            place: lint.location.map(|location| Place::new(kernel, location)),
            count: lint.count,
            in_loop: lint.looped,
            message: lint.slow.message(kernel.target),
            help: lint.slow.help(),
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        let times = match (self.count, self.in_loop) {
            (0 | 1, false) => String::new(),
            (0 | 1, true) => " (in a loop)".to_string(),
            (n, false) => format!(" ({n} times)"),
            (n, true) => format!(" ({n} times, in a loop)"),
        };
        writeln!(out, "slow[{}]: {}{times}", self.lint, self.message)?;
        if let Some(place) = &self.place {
            place.print(out)?;
        }
        Ok(writeln!(out, "  = help: {}", self.help)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lint_shows_its_line() {
        let text = "let k = i / n;".to_string();
        let place = Place { file: "src/a.rs".to_string(), line: 120, column: 9, text };
        let slow = Slow::IntegerDivision(kernel_dsl::compiler::Scalar::U32);
        let (message, help) = (slow.message(Target::SM_80), slow.help());
        let lint = Slowness { lint: slow.name(), place: Some(place), count: 4, in_loop: true, message, help };
        let mut out = Vec::new();
        lint.print(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "slow[integer-division]: sm_80 has no division of integers: of `u32` it is some 20 instructions \
             (4 times, in a loop)\n   --> src/a.rs:120:9\n120 | let k = i / n;\n  = help: divide by a generic constant, \
             best a power of two; or count with nested loops instead of taking an index apart\n"
        );
    }
}
