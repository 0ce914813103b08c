//! Mutants that are none: what is proved to do what the kernel does, in every launch, by rewriting both until they are the same.
//!
//! Each rewriting is one of the compiler's passes, or keeps what a kernel does by what the compiler's analyses know: what a launch
//! promises ([`Promised`]), numbers by thread ([`normal`]), where a value is asked for ([`needed`]), and how integers lie to one another
//! where they are compared ([`Bounds`], [`folds`](super::folds)). What is left is held against the kernel's own by what it does and of what ([`Forms`]).

use super::folds::Extents;
use super::form::{Form, Forms};
use super::idle::idle;
use super::multiples::multiples;
use super::needed::needed;
use super::normal::{Depth, Names, normal};
use super::swaps::swaps;
use super::turns::turns;
use kernel_dsl::compiler::analyses::bounds::{Bounds, Promised};
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::ir::{Inst, Kernel, Op, Region, Unroll, Value, Values};
use kernel_dsl::compiler::{emit, passes};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

/// By what a mutant is proved to be none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Proof {
    /// Its PTX is the kernel's own.
    Ptx,
    /// Loops of constant bounds unrolled, and what a launch promises put in.
    Launch,
    /// And what follows from a thread's index computed for each.
    Numbers,
    /// And one thread for all that store the same to one place.
    Stores,
    /// And one thing for what nobody asks for.
    Needed,
    /// And comparisons decided by where they stand.
    Bounds,
    /// And numbers by thread left out where that thread does not ask for them.
    Threads,
    /// And zeros added to sums, and turns left out that do nothing.
    Turns,
    /// And barriers, additions, stores and questions left out that come to nothing.
    Idle,
}

impl Proof {
    /// All of them, those that take the least first.
    pub const ALL: [Proof; 9] = [
        Proof::Ptx,
        Proof::Launch,
        Proof::Numbers,
        Proof::Stores,
        Proof::Needed,
        Proof::Bounds,
        Proof::Threads,
        Proof::Turns,
        Proof::Idle,
    ];
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Proof::Ptx => "the PTX of the kernel itself",
            Proof::Launch => {
                "the same IR, once loops of constant bounds are unrolled and what `grid` and `#[requires]` promise is put in"
            }
            Proof::Numbers => "and what follows from the index of a thread alone is computed for each that comes there",
            Proof::Stores => "and of threads that store the same to one place the first does",
            Proof::Needed => "and where nobody asks for a value one thing stands for it",
            Proof::Bounds => "and comparisons of which where they stand, and the launch, leave one outcome have that",
            Proof::Threads => "and a value is looked at for the threads alone that ask for it",
            Proof::Turns => "and zeros are added to a sum wherever there are some, and turns of a loop left out that do nothing",
            Proof::Idle => {
                "and barriers left out between which nobody meets, additions of zero, stores of what is there, and questions that are asked again"
            }
        })
    }
}

/// A kernel in the forms that mutants are held against.
pub struct Prover {
    promised: Promised,
    bounds: Bounds,
    extents: Extents,
    names: RefCell<Names>,
    forms: RefCell<Forms>,
    ptx: Option<String>,
    own: Vec<(Proof, Option<Form>)>,
}

impl Prover {
    /// Of a kernel as lowered, and what it was lowered from.
    pub fn new(program: &Monomorphic, kernel: &Kernel) -> Prover {
        let (promised, names, forms) = (Promised::of(program), RefCell::default(), RefCell::default());
        let bounds = Bounds::of(program, &promised);
        let extents = Extents::of(program);
        let mut prover = Prover { promised, bounds, extents, names, forms, ptx: ptx(kernel), own: Vec::new() };
        let plain = prover.plain(kernel);
        let of = |proof: Proof| (proof, plain.as_ref().and_then(|plain| prover.form(kernel, plain, proof)));
        prover.own = Proof::ALL[1..].iter().map(|proof| of(*proof)).collect();
        prover.forms.borrow_mut().keep();
        prover
    }

    /// By what a mutant is proved to be none, if it is.
    pub fn proof(&self, mutant: &Kernel) -> Option<Proof> {
        if self.ptx.is_some() && self.ptx == ptx(mutant) {
            return Some(Proof::Ptx);
        }
        let plain = self.plain(mutant)?;
        let same = |(proof, own): &&(Proof, Option<Form>)| own.is_some() && *own == self.form(mutant, &plain, *proof);
        let proof = self.own.iter().find(same).map(|(proof, _)| *proof);
        self.forms.borrow_mut().forget();
        proof
    }

    /// With places, unrolled, and with what a launch promises.
    fn plain(&self, kernel: &Kernel) -> Option<Kernel> {
        let mut kernel = unrolled(kernel)?;
        self.promised.apply(&mut kernel);
        self.extents.no_block_wraps(&mut kernel);
        flat(&mut kernel.body);
        passes::with_places(kernel).ok()
    }

    /// The form of a kernel, of which `plain` is the plain one.
    fn form(&self, kernel: &Kernel, plain: &Kernel, proof: Proof) -> Option<Form> {
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
            Proof::Needed => form(&asked(normal(&asked(plain.clone())?, Depth::Stores)?)?),
            Proof::Bounds | Proof::Threads | Proof::Turns | Proof::Idle => {
                let depth = if proof == Proof::Bounds { Depth::Stores } else { Depth::Threads };
                let plain = match proof {
                    Proof::Idle => {
                        turned(rewritten(self.plain(&asked_once(kernel)?)?, |kernel| idle(kernel) | swaps(kernel))?)?
                    }
                    Proof::Turns => turned(plain.clone())?,
                    _ => plain.clone(),
                };
                let decided = asked(self.decided(plain)?)?;
                form(&asked(normal(&asked(self.decided(decided)?)?, depth)?)?)
            }
        }
    }

    /// With the outcome of comparisons that are decided.
    fn decided(&self, kernel: Kernel) -> Option<Kernel> {
        rewritten(kernel, |kernel| {
            let fewer = multiples(kernel, &self.bounds, &self.promised) | self.extents.folds(kernel);
            self.bounds.apply(kernel, &self.promised) || fewer
        })
    }
}

/// Has choices for branches that only compute: that the other side is computed too changes nothing.
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

/// Whether a region only computes what its end hands on.
fn only_computes(region: &Region) -> bool {
    let Some((Inst { op: Op::Yield(_), .. }, before)) = region.insts.split_last() else { return false };
    before.iter().all(|inst| inst.op.is_pure())
}

/// Rounds of a rewriting that makes way for itself.
const ROUNDS: usize = 8;

/// With one thing for what nobody asks for.
fn asked(kernel: Kernel) -> Option<Kernel> {
    rewritten(kernel, needed)
}

/// With zeros added to sums, and without turns that do nothing.
fn turned(kernel: Kernel) -> Option<Kernel> {
    rewritten(kernel, turns)
}

/// Without questions that are asked again, before a pass leaves out those that come second.
fn asked_once(kernel: &Kernel) -> Option<Kernel> {
    let mut kernel = kernel.clone();
    passes::run(&mut kernel, &[passes::FRONT]).ok()?;
    passes::dce::dce(&mut kernel).ok()?;
    passes::cse::cse(&mut kernel).ok()?;
    idle(&mut kernel);
    Some(kernel)
}

/// Rewritten until that changes nothing.
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

/// What is compiled of a kernel.
fn ptx(kernel: &Kernel) -> Option<String> {
    let optimized = passes::optimize(kernel.clone()).ok()?;
    emit::emit(&optimized).ok().map(|module| module.to_string())
}

/// Turns of a loop of constant bounds that are unrolled, whatever the kernel asks.
const TURNS: u64 = 64;

/// The kernel with places, and its loops of constant bounds unrolled.
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
                    && end.saturating_sub(start).div_ceil(step) <= TURNS
                {
                    l.unroll = Unroll::Full;
                }
            }
            _ => {}
        }
        inst.op.regions_mut().into_iter().for_each(|inner| mark(inner, constants));
    }
}
