//! Proofs that a mutant is equivalent to its kernel in every launch: both are rewritten until they
//! are equal.
//!
//! Each rewrite is a pass of the compiler, or preserves the behavior because of an analysis of the
//! compiler. The analyses provide the promises of a launch ([`Promised`]), numbers by thread
//! ([`normal`]), the conditions under which values are demanded ([`needed`]), and the order of
//! compared integers ([`Bounds`], [`folds`](super::folds)). The resulting kernels are compared by
//! their effects and operands ([`FormNames`]).

use super::folds::Extents;
use super::form::{Form, FormNames};
use super::multiples::multiples;
use super::needed::needed;
use super::normal::{Depth, Names, normal};
use kernel_dsl::compiler::analyses::bounds::{Bounds, Promised};
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::ir::{Inst, Kernel, Op, Region, Unroll, Value, Values};
use kernel_dsl::compiler::{emit, passes};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

/// The step of the rewriting that proves a mutant equivalent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Proof {
    /// The PTX equals the kernel's.
    Ptx,
    /// Loops with constant bounds are unrolled, and the promises of a launch are applied.
    Launch,
    /// In addition, values that follow from a thread's index are computed for each thread.
    Numbers,
    /// In addition, one thread makes equal stores to one location.
    Stores,
    /// In addition, values are replaced where they are not demanded.
    Needed,
    /// In addition, comparisons with a known outcome are resolved.
    Bounds,
    /// In addition, numbers by thread are removed for threads that do not demand them.
    Threads,
}

impl Proof {
    /// All steps, the cheapest first.
    pub const ALL: [Proof; 7] =
        [Proof::Ptx, Proof::Launch, Proof::Numbers, Proof::Stores, Proof::Needed, Proof::Bounds, Proof::Threads];
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Proof::Ptx => "the PTX of the kernel itself",
            Proof::Launch => {
                "the same IR after unrolling loops with constant bounds and applying `grid` and `#[requires]`"
            }
            Proof::Numbers => "and computing values that follow from the thread index for each thread",
            Proof::Stores => "and one thread making equal stores to one location",
            Proof::Needed => "and replacing values where they are not demanded",
            Proof::Bounds => "and resolving comparisons whose outcome follows from their position and the launch",
            Proof::Threads => "and considering a value only for the threads that demand it",
        })
    }
}

/// The forms of a kernel with which mutants are compared.
pub struct Prover {
    promised: Promised,
    bounds: Bounds,
    extents: Extents,
    names: RefCell<Names>,
    forms: RefCell<FormNames>,
    ptx: Option<String>,
    own: Vec<(Proof, Option<Form>)>,
}

impl Prover {
    /// Makes a prover for a lowered kernel and the program that it was lowered from.
    pub fn new(program: &Monomorphic, kernel: &Kernel) -> Prover {
        let (promised, names, forms) = (Promised::of(program), RefCell::default(), RefCell::default());
        let bounds = Bounds::of(program, &promised);
        let extents = Extents::of(program);
        let mut prover = Prover { promised, bounds, extents, names, forms, ptx: ptx(kernel), own: Vec::new() };
        let plain = prover.plain(kernel);
        let of = |proof: Proof| (proof, plain.as_ref().and_then(|plain| prover.form(plain, proof)));
        prover.own = Proof::ALL[1..].iter().map(|proof| of(*proof)).collect();
        prover.forms.borrow_mut().keep();
        prover
    }

    /// Returns the step that proves a mutant equivalent, if any.
    pub fn proof(&self, mutant: &Kernel) -> Option<Proof> {
        if self.ptx.is_some() && self.ptx == ptx(mutant) {
            return Some(Proof::Ptx);
        }
        let plain = self.plain(mutant)?;
        let same = |(proof, own): &&(Proof, Option<Form>)| own.is_some() && *own == self.form(&plain, *proof);
        let proof = self.own.iter().find(same).map(|(proof, _)| *proof);
        self.forms.borrow_mut().forget();
        proof
    }

    /// Returns the kernel with explicit places, unrolled, and with the promises of a launch.
    fn plain(&self, kernel: &Kernel) -> Option<Kernel> {
        let mut kernel = unrolled(kernel)?;
        self.promised.apply(&mut kernel);
        self.extents.no_block_wraps(&mut kernel);
        flat(&mut kernel.body);
        passes::with_places(kernel).ok()
    }

    /// Returns the form after a step of `plain`, a result of [`Prover::plain`].
    fn form(&self, plain: &Kernel, proof: Proof) -> Option<Form> {
        let normal = |kernel: &Kernel, depth| {
            let normal = normal(kernel, &mut self.names.borrow_mut(), depth);
            passes::with_places(normal).ok()
        };
        let form = |kernel: &Kernel| Some(self.forms.borrow_mut().of(kernel));
        match proof {
            Proof::Ptx => None,
            Proof::Launch => form(plain),
            Proof::Numbers => form(&normal(plain, Depth::Numbers)?),
            Proof::Stores => form(&normal(plain, Depth::Stores)?),
            Proof::Needed => form(&without_undemanded(normal(&without_undemanded(plain.clone())?, Depth::Stores)?)?),
            Proof::Bounds | Proof::Threads => {
                let depth = if proof == Proof::Bounds { Depth::Stores } else { Depth::Threads };
                let decided = without_undemanded(self.decided(plain.clone())?)?;
                form(&without_undemanded(normal(&without_undemanded(self.decided(decided)?)?, depth)?)?)
            }
        }
    }

    /// Resolves comparisons with a known outcome.
    fn decided(&self, kernel: Kernel) -> Option<Kernel> {
        rewritten(kernel, |kernel| {
            let fewer = multiples(kernel, &self.bounds, &self.promised) | self.extents.folds(kernel);
            self.bounds.apply(kernel, &self.promised) || fewer
        })
    }
}

/// Replaces branches that only compute by selects: computing the other side as well has no effect.
fn flat(region: &mut Region) {
    for mut inst in std::mem::take(&mut region.insts) {
        inst.op.regions_mut().into_iter().for_each(flat);
        match inst.op {
            Op::If { condition, mut then, mut otherwise } if [&then, &otherwise].into_iter().all(only_computes) => {
                let ends = [&mut then, &mut otherwise].map(|side| match side.insts.pop() {
                    Some(Inst { op: Op::Yield(values), .. }) => values,
                    _ => Values::new(),
                });
                region.insts.extend(then.insts.into_iter().chain(otherwise.insts));
                for (i, result) in inst.results.iter().enumerate() {
                    let op = Op::Select { condition, yes: ends[0][i], no: ends[1][i] };
                    let results = Values::from_slice(&[*result]);
                    region.insts.push(Inst { op, results, location: inst.location });
                }
            }
            _ => region.insts.push(inst),
        }
    }
}

/// Returns whether a region only computes the values that it yields.
fn only_computes(region: &Region) -> bool {
    let Some((Inst { op: Op::Yield(_), .. }, before)) = region.insts.split_last() else { return false };
    before.iter().all(|inst| inst.op.is_pure())
}

/// Maximum rounds of a rewrite that enables itself.
const ROUNDS: usize = 8;

/// Replaces values where they are not demanded.
fn without_undemanded(kernel: Kernel) -> Option<Kernel> {
    rewritten(kernel, needed)
}

/// Rewrites a kernel until nothing changes.
fn rewritten(mut kernel: Kernel, mut rewrite: impl FnMut(&mut Kernel) -> bool) -> Option<Kernel> {
    for _ in 0..ROUNDS {
        let changed = rewrite(&mut kernel);
        kernel = passes::with_places(kernel).ok()?;
        if !changed {
            break;
        }
    }
    Some(kernel)
}

/// Compiles a kernel to PTX.
fn ptx(kernel: &Kernel) -> Option<String> {
    let optimized = passes::optimize(kernel.clone()).ok()?;
    emit::emit(&optimized).ok().map(|module| module.to_string())
}

/// Maximum iterations of a loop with constant bounds that is unrolled, regardless of the kernel's
/// hints.
const MAX_UNROLLED: u64 = 64;

/// Returns the kernel with explicit places and with unrolled loops of constant bounds.
fn unrolled(kernel: &Kernel) -> Option<Kernel> {
    let mut kernel = passes::with_places(kernel.clone()).ok()?;
    let mut constants = HashMap::new();
    let mut body = std::mem::take(&mut kernel.body);
    mark(&mut body, &mut constants);
    kernel.body = body;
    passes::with_places(kernel).ok()
}

fn mark(region: &mut Region, constants: &mut HashMap<Value, u64>) {
    for inst in &mut region.insts {
        match &mut inst.op {
            Op::Constant(bits) => _ = constants.insert(inst.results[0], *bits),
            Op::For(l) => {
                let known = [l.start, l.end, l.step].map(|v| constants.get(&v).copied());
                if let [Some(start), Some(end), Some(step)] = known
                    && step > 0
                    && end.saturating_sub(start).div_ceil(step) <= MAX_UNROLLED
                {
                    l.unroll = Unroll::Full;
                }
            }
            _ => {}
        }
        inst.op.regions_mut().into_iter().for_each(|inner| mark(inner, constants));
    }
}
