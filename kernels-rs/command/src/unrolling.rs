//! Effect of unrolling: a kernel is compiled and assembled again with one loop changed.
//!
//! A form of a loop is what `rolled`, `unroll_by::<F>` or `unroll` around its range makes. The
//! figures of a form are those of the machine code: the issue slots of the loop, divided by the
//! iterations in its body, and the registers of the whole kernel. A loop of the source has no
//! figures if the compiler or ptxas removed it, or if it encloses another loop of the machine code.

use super::machine::{CodeCost, Tools};
use super::progress::with_bar;
use super::source_place::SourcePlace;
use crate::error::Error;
use indicatif::ProgressBar;
use kernel_dsl::compiler::analyses::occupancy::{Needs, Occupancy};
use kernel_dsl::compiler::emit::{self, file_name};
use kernel_dsl::compiler::hir::{self, ExprKind, Instance, LabelId, Program, Size, Type, Unroll, visit};
use kernel_dsl::compiler::ir::{Inst, Kernel, Op, Region};
use kernel_dsl::compiler::{Compilation, Errors, Scalar, Target, passes};
use kernels_rs_estimate::ptxas::Resources;
use kernels_rs_estimate::sass::{Class, Line, NaturalLoop};
use runtime::testing::on_every_core;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Examined factors of `unroll_by`.
const FACTORS: [u32; 3] = [2, 4, 8];
/// The largest number of iterations of a loop that is unrolled whole.
const MAX_TRIPS: u64 = 64;
/// The largest number of machine instructions to which a loop is unrolled. The time of ptxas grows
/// faster than the size of a loop.
const MAX_INSTRUCTIONS: u64 = 2048;
/// Share of the issue slots of an iteration that a suggested form must save.
const MIN_SAVING: f64 = 0.03;
/// Excess over the fewest issue slots at which a smaller factor is preferred.
const MAX_EXCESS: f64 = 1.01;

/// Figures of the forms of a loop.
#[derive(Serialize)]
pub(super) struct UnrolledLoop {
    #[serde(flatten)]
    pub(super) place: SourcePlace,
    /// Number of iterations; `null` if it depends on the launch or differs between copies.
    pub(super) iterations: Option<u64>,
    /// The form of the source, followed by the others by number of copies.
    pub(super) forms: Vec<LoopForm>,
}

/// Figures of a form of a loop.
#[derive(Serialize)]
pub(super) struct LoopForm {
    pub(super) unrolling: Unrolling,
    /// Issue slots of an iteration.
    pub(super) slots: f64,
    /// Resources of the kernel.
    #[serde(flatten)]
    pub(super) resources: Resources,
    /// Warps that a multiprocessor holds.
    pub(super) warps: u32,
}

/// Number of copies of a loop's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unrolling {
    /// The form of the source: ptxas may copy the body if the source does not decide.
    Declared,
    Rolled,
    By(u32),
    Whole,
}

impl fmt::Display for Unrolling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unrolling::Declared => f.write_str("now"),
            Unrolling::Rolled => f.write_str("rolled"),
            Unrolling::By(copies) => write!(f, "by {copies}"),
            Unrolling::Whole => f.write_str("whole"),
        }
    }
}

impl Unrolling {
    /// Returns the directive that makes the form.
    fn directive(self) -> String {
        match self {
            Unrolling::Declared => "the present form".to_string(),
            Unrolling::Rolled => "`rolled`".to_string(),
            Unrolling::By(copies) => format!("`unroll_by::<{copies}>`"),
            Unrolling::Whole => "`unroll`".to_string(),
        }
    }
}

impl UnrolledLoop {
    /// Returns the figures of a form, if the form was examined.
    pub(super) fn form(&self, unrolling: Unrolling) -> Option<&LoopForm> {
        self.forms.iter().find(|form| form.unrolling == unrolling)
    }

    /// Returns the form with the fewest issue slots; of nearly equal forms, the one with the fewest
    /// copies.
    pub(super) fn cheapest(&self) -> Option<&LoopForm> {
        cheapest_of(|| self.forms.iter())
    }

    /// Suggests the form with the fewest issue slots, if it saves some without spills and without a
    /// loss of occupancy.
    pub(super) fn suggestion(&self) -> Option<String> {
        let now = self.form(Unrolling::Declared)?;
        let spilled = |form: &LoopForm| form.resources.spill_loads + form.resources.spill_stores;
        let best =
            cheapest_of(|| self.forms.iter().filter(|form| form.warps >= now.warps && spilled(form) <= spilled(now)))?;
        if best.slots > now.slots * (1.0 - MIN_SAVING) {
            return None;
        }
        let registers = match (best.resources.registers, now.resources.registers) {
            (best, now) if best == now => String::new(),
            (best, now) => format!("; the kernel then takes {best} registers instead of {now}"),
        };
        Some(format!(
            "An iteration takes {} issue slots, and {} with {} around the range{registers}.",
            rounded(now.slots),
            rounded(best.slots),
            best.unrolling.directive(),
        ))
    }
}

/// Returns the form with the fewest issue slots; of nearly equal forms, the first.
fn cheapest_of<'l, I: Iterator<Item = &'l LoopForm>>(forms: impl Fn() -> I) -> Option<&'l LoopForm> {
    let fewest = forms().map(|form| form.slots).min_by(f64::total_cmp)?;
    forms().find(|form| form.slots <= fewest * MAX_EXCESS)
}

impl LoopForm {
    /// Formats the issue slots and registers: `34.75 (30)`.
    pub(super) fn figures(&self) -> String {
        let spills = if self.resources.spill_loads + self.resources.spill_stores > 0 { ", spills" } else { "" };
        format!("{} ({}{spills})", rounded(self.slots), self.resources.registers)
    }
}

/// Formats a number of issue slots with at most two decimal places.
fn rounded(slots: f64) -> String {
    let text = format!("{slots:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A `for` of the source.
struct SourceLoop {
    /// Index of its function.
    function: usize,
    label: LabelId,
    place: SourcePlace,
    /// Line in the machine code.
    line: Line,
    /// Whether `unroll_by` takes the range.
    counts_usize: bool,
}

/// A kernel with one loop changed.
struct Assembled {
    resources: Resources,
    code: CodeCost,
}

/// A loop that has machine code as declared and rolled.
struct Candidate<'a> {
    source: &'a SourceLoop,
    /// IR that the analyses of accesses read, with the loop rolled.
    kernel: &'a Kernel,
    rolled: &'a Assembled,
    /// Number of loops of the rolled code: a device function that is inlined several times has one
    /// for each.
    number: usize,
    /// Instructions of these loops.
    instructions: u64,
    /// Number of iterations, if it is a constant.
    iterations: Option<u64>,
}

/// The compiler and assembler of an instance.
struct Assembler<'a> {
    name: &'a str,
    program: &'a Program,
    instance: &'a Instance,
    target: Target,
    tools: &'a Tools,
}

/// Computes the figures of each `for` that is an innermost loop of `code`, the machine code of the
/// instance. `resources` are those of the instance. Forms are assembled concurrently.
pub(super) fn of(
    name: &str,
    (program, instance): (&Program, &Instance),
    target: Target,
    tools: &Tools,
    (code, resources): (&CodeCost, Resources),
) -> Result<Vec<UnrolledLoop>, Error> {
    let assembler = Assembler { name, program, instance, target, tools };
    let mut sources = source_loops(program);
    sources.retain(|source| !innermost(code, &source.line).is_empty());
    with_bar(sources.len(), |bar| {
        bar.set_message(format!("forms of loops of {name}"));
        let rolled = concurrently(&sources, bar, |source| {
            let with_places = |c: &Compilation<'_>| passes::with_places(c.lowered().clone().into());
            assembler.assemble(source, Unroll::Never, with_places)
        })?;
        let all = sources.iter().zip(&rolled).filter_map(|(source, rolled)| {
            let (kernel, rolled) = rolled.as_ref()?;
            Candidate::new(source, kernel, rolled)
        });
        let candidates: Vec<_> = all.collect();
        let unrollings: Vec<_> = candidates.iter().map(Candidate::unrollings).collect();
        let pairs = candidates.iter().zip(&unrollings);
        let changes: Vec<_> =
            pairs.flat_map(|(c, forms)| forms.iter().map(|(_, unroll)| (c.source, *unroll))).collect();
        bar.inc_length(changes.len() as u64);
        let assemble = |(source, unroll): &(&_, Unroll)| assembler.assemble(source, *unroll, |_| Ok(()));
        let mut assembled = concurrently(&changes, bar, assemble)?.into_iter();
        let mut loops = Vec::new();
        for (candidate, unrollings) in candidates.iter().zip(&unrollings) {
            let others: Vec<_> = assembled.by_ref().take(unrollings.len()).collect();
            let others = unrollings.iter().zip(&others).filter_map(|((unrolling, _), other)| {
                let ((), other) = other.as_ref()?;
                Some((*unrolling, &other.code, other.resources))
            });
            let Assembled { resources: rolled_resources, code: rolled } = candidate.rolled;
            let own = [(Unrolling::Declared, code, resources), (Unrolling::Rolled, rolled, *rolled_resources)];
            let form = |(unrolling, code, resources)| candidate.form(target, unrolling, code, resources);
            let forms = own.into_iter().chain(others).filter_map(form);
            let (place, iterations) = (candidate.source.place.clone(), candidate.iterations);
            let unrolled = UnrolledLoop { place, iterations, forms: forms.collect() };
            // Without the declared form there is nothing to compare with.
            if unrolled.form(Unrolling::Declared).is_some() {
                loops.push(unrolled);
            }
        }
        Ok(loops)
    })
}

/// Makes a result of each item on all cores, and advances `bar` by each.
fn concurrently<T: Sync, R: Send>(
    items: &[T],
    bar: &ProgressBar,
    make: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let one = |item: &T| {
        let made = make(item);
        bar.inc(1);
        made
    };
    on_every_core(items, one).into_iter().collect()
}

impl<'a> Candidate<'a> {
    /// Returns the loop at `source`, if its rolled form has machine code.
    fn new(source: &'a SourceLoop, kernel: &'a Kernel, rolled: &'a Assembled) -> Option<Candidate<'a>> {
        let loops = innermost(&rolled.code, &source.line);
        let instructions = loops.iter().map(|l| u64::from(l.instructions)).sum();
        let iterations = iterations(kernel, &source.place);
        (!loops.is_empty()).then_some(Candidate {
            source,
            kernel,
            rolled,
            number: loops.len(),
            instructions,
            iterations,
        })
    }

    /// Returns the unrolled forms to assemble, and the directives of the range that make them.
    fn unrollings(&self) -> Vec<(Unrolling, Unroll)> {
        let fits = |copies: u64| copies * self.instructions <= MAX_INSTRUCTIONS;
        let is_factor = |copies: u64| fits(copies) && self.iterations.is_none_or(|n| n > copies);
        let by = FACTORS.into_iter().filter(|copies| self.source.counts_usize && is_factor(u64::from(*copies)));
        let whole = self.iterations.filter(|n| *n <= MAX_TRIPS && fits(*n));
        by.map(|copies| (Unrolling::By(copies), Unroll::By(Size::Known(copies))))
            .chain(whole.map(|_| (Unrolling::Whole, Unroll::Full)))
            .collect()
    }

    /// Returns the figures of the form `unrolling`, if the loop has machine code in `code`.
    fn form(&self, target: Target, unrolling: Unrolling, code: &CodeCost, resources: Resources) -> Option<LoopForm> {
        let registers = Some(resources.registers);
        let needs = Needs { threads: self.kernel.block.most_threads(), registers, shared: self.kernel.shared_bytes() };
        let warps = Occupancy::of(target, needs).warps;
        Some(LoopForm { unrolling, slots: self.slots(unrolling, code)?, resources, warps })
    }

    /// Returns the mean issue slots of the largest loops at the line.
    fn mean(&self, loops: &[&NaturalLoop]) -> Option<f64> {
        let main = loops.get(..self.number)?;
        Some(f64::from(main.iter().map(|l| l.slots).sum::<u32>()) / main.len() as f64)
    }

    /// Returns the issue slots of an iteration in `code`, which has the form `unrolling`.
    fn slots(&self, unrolling: Unrolling, code: &CodeCost) -> Option<f64> {
        let loops = innermost(code, &self.source.line);
        let base = &self.rolled.code;
        let rolled = innermost(base, &self.source.line);
        match unrolling {
            Unrolling::Declared => Some(self.mean(&loops)? / f64::from(copies(rolled.first()?, loops.first()?))),
            Unrolling::Rolled => self.mean(&loops),
            Unrolling::By(copies) => Some(self.mean(&loops)? / f64::from(copies)),
            Unrolling::Whole => {
                let removed = code.loops.len() + self.number == base.loops.len();
                let own: u32 = rolled.iter().map(|l| l.slots).sum();
                let slots = code.size().1.saturating_sub(base.size().1 - own);
                let iterations = self.iterations.filter(|_| removed)?;
                Some(f64::from(slots) / (iterations as f64 * self.number as f64))
            }
        }
    }
}

impl Assembler<'_> {
    /// Compiles and assembles the instance with a loop changed, and adds what `read` returns.
    /// Returns `None` if the changed kernel is not legal, such as one with a register array whose
    /// index is not constant.
    fn assemble<T>(
        &self,
        source: &SourceLoop,
        unroll: Unroll,
        read: impl FnOnce(&Compilation<'_>) -> Result<T, Errors>,
    ) -> Result<Option<(T, Assembled)>, Error> {
        let mut program = self.program.clone();
        set(&mut program, source, unroll);
        let compiled = hir::monomorphic(&program, self.instance).and_then(|program| {
            let compilation = Compilation::new(&program, self.target)?;
            Ok((read(&compilation)?, compilation.module(emit::LineDirectives::Kept)?))
        });
        let Ok((read, module)) = compiled else { return Ok(None) };
        let machine = self.tools.assemble(self.name, &module.to_string(), self.target)?;
        Ok(machine.code.map(|code| (read, Assembled { resources: machine.resources, code })))
    }
}

/// Sets the directive of a loop. Loops around it that leave the choice to the compiler stay
/// rolled, so that the forms differ in one loop.
fn set(program: &mut Program, source: &SourceLoop, unroll: Unroll) {
    visit::block(&mut program.functions[source.function].body, &mut |e| {
        let ExprKind::For { label, range, body, .. } = &mut e.kind else { return };
        if *label == source.label {
            range.unroll = unroll;
        } else if range.unroll == Unroll::Auto {
            visit::block(body, &mut |inner| {
                if matches!(&inner.kind, ExprKind::For { label, .. } if *label == source.label) {
                    range.unroll = Unroll::Never;
                }
            });
        }
    });
}

/// Returns the loops over ranges that the source does not unroll whole, in the order of the source.
fn source_loops(program: &Program) -> Vec<SourceLoop> {
    let mut all = Vec::new();
    for (index, function) in program.functions.iter().enumerate() {
        let source = &function.source;
        visit::block(&mut function.body.clone(), &mut |e| {
            let ExprKind::For { label, range, .. } = &e.kind else { return };
            if range.unroll == Unroll::Full {
                return;
            }
            let (span, ty) = (range.start.span, function.ty(range.start.ty));
            let place = SourcePlace::of_source(source, span);
            all.push(SourceLoop {
                function: index,
                label: *label,
                line: Line { file: file_name(source), number: place.line },
                place,
                counts_usize: *ty == Type::Scalar(Scalar::Usize) || range.enumerate.is_some(),
            });
        });
    }
    all.sort_by(|a, b| (&a.line.file, a.place.line).cmp(&(&b.line.file, b.place.line)));
    all
}

/// Returns the loops of a line that enclose no other loop, the largest first.
fn innermost<'c>(code: &'c CodeCost, line: &Line) -> Vec<&'c NaturalLoop> {
    let is_outer =
        |l: &NaturalLoop| code.loops.iter().any(|o| o.depth > l.depth && l.body.binary_search(&o.head).is_ok());
    let is_at = |l: &&NaturalLoop| code.listing.instructions[l.jump].line.as_ref() == Some(line) && !is_outer(l);
    let mut loops: Vec<_> = code.loops.iter().filter(is_at).collect();
    loops.sort_by_key(|l| std::cmp::Reverse(l.slots));
    loops
}

/// Returns the number of iterations in the body of `copied`: the factor by which most instructions
/// of `rolled` occur more often. Copies share counters and addresses. So instructions of those
/// classes decide only if the loop has no others.
fn copies(rolled: &NaturalLoop, copied: &NaturalLoop) -> u32 {
    let is_shared = |class: &Class| matches!(class, Class::Integer | Class::Compare | Class::Move | Class::Control);
    let vote = |of_counting: bool| {
        let mut votes: BTreeMap<u32, u32> = BTreeMap::new();
        for (class, number) in rolled.classes.iter().filter(|(class, _)| is_shared(class) == of_counting) {
            let found = copied.classes.get(class).copied().unwrap_or(0);
            if found > 0 && found % number == 0 {
                *votes.entry(found / number).or_default() += number;
            }
        }
        votes.into_iter().max_by_key(|(_, votes)| *votes)
    };
    vote(false).or_else(|| vote(true)).map_or(1, |(copies, _)| copies)
}

/// Returns the number of iterations of the loops at a line. The result is `None` if the number is
/// not constant, or differs between loops.
fn iterations(kernel: &Kernel, place: &SourcePlace) -> Option<u64> {
    fn walk(region: &Region, visit: &mut dyn FnMut(&Inst)) {
        for inst in &region.insts {
            visit(inst);
            inst.op.regions().into_iter().for_each(|region| walk(region, visit));
        }
    }
    let mut constants = BTreeMap::new();
    walk(&kernel.body, &mut |inst| {
        if let (Op::Constant(constant), [value]) = (&inst.op, &inst.results[..]) {
            constants.insert(*value, *constant);
        }
    });
    let mut all = BTreeSet::new();
    walk(&kernel.body, &mut |inst| {
        if let Op::For(l) = &inst.op
            && SourcePlace::new(kernel, inst.location).line == place.line
        {
            let [start, end, step] = [l.start, l.end, l.step].map(|value| constants.get(&value).copied());
            let number =
                |start: u64, end: u64, step: u64| (step > 0 && end > start).then(|| (end - start).div_ceil(step));
            all.insert(start.zip(end).zip(step).and_then(|((start, end), step)| number(start, end, step)));
        }
    });
    match all.into_iter().collect::<Vec<_>>()[..] {
        [iterations] => iterations,
        _ => None,
    }
}
