//! Mutants that are none: what is proved to do what the kernel does, in every launch, by rewriting both until they are the same.
//!
//! Each rewriting is one of the compiler's passes, or keeps what a kernel does by what the compiler's analyses know: what a launch
//! promises ([`Promised`]), and numbers by thread ([`normal`]).

use super::normal::{Depth, Names, normal};
use super::promised::Promised;
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::ir::{Inst, Kernel, Label, Location, Op, Region, Type, Unroll, Value};
use kernel_dsl::compiler::{emit, passes};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
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
        })
    }
}

/// A kernel in the forms that mutants are held against.
pub struct Prover {
    promised: Promised,
    names: RefCell<Names>,
    ptx: Option<String>,
    forms: Vec<(Proof, Option<Form>)>,
}

impl Prover {
    /// Of a kernel as lowered, and what it was lowered from.
    pub fn new(program: &Monomorphic, kernel: &Kernel) -> Prover {
        let (promised, names) = (Promised::of(program), RefCell::new(Names::default()));
        let mut prover = Prover { promised, names, ptx: ptx(kernel), forms: Vec::new() };
        prover.forms = prover.forms_of(kernel).collect();
        prover
    }

    /// By what a mutant is proved to be none, if it is.
    pub fn proof(&self, mutant: &Kernel) -> Option<Proof> {
        if self.ptx.is_some() && self.ptx == ptx(mutant) {
            return Some(Proof::Ptx);
        }
        let mut both = self.forms.iter().zip(self.forms_of(mutant));
        both.find(|((_, own), (_, of))| own.is_some() && own == of).map(|((proof, _), _)| *proof)
    }

    fn forms_of(&self, kernel: &Kernel) -> impl Iterator<Item = (Proof, Option<Form>)> {
        let plain = unrolled(kernel).map(|mut kernel| {
            self.promised.apply(&mut kernel);
            kernel
        });
        let plain = plain.and_then(|kernel| passes::with_places(kernel).ok());
        let deep = |depth| {
            let form = normal(plain.as_ref()?, &mut self.names.borrow_mut(), depth);
            passes::with_places(form).ok().as_ref().map(Form::of)
        };
        [
            (Proof::Launch, plain.as_ref().map(Form::of)),
            (Proof::Numbers, deep(Depth::Numbers)),
            (Proof::Stores, deep(Depth::Stores)),
        ]
        .into_iter()
    }
}

/// What is compiled of a kernel.
fn ptx(kernel: &Kernel) -> Option<String> {
    let optimised = passes::optimise(kernel.clone()).ok()?;
    emit::emit(&optimised).ok().map(|module| module.to_string())
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

/// A kernel's body, by which number a value has and where it comes from apart.
#[derive(PartialEq)]
struct Form {
    body: Region,
    types: Vec<Type>,
}

impl Form {
    fn of(kernel: &Kernel) -> Form {
        let mut body = kernel.body.clone();
        let mut leaves = Leaves { kernel, first: BTreeMap::new(), stands: HashMap::new() };
        leaves.take(&mut body);
        let mut used = HashSet::new();
        leaves.stand(&mut body, &mut used);
        let first = leaves.first.into_values().filter(|inst| used.contains(&inst.results[0]));
        body.insts.splice(0..0, first);
        let mut numbers = Numbers { kernel, values: HashMap::new(), labels: HashMap::new(), types: Vec::new() };
        numbers.region(&mut body);
        Form { body, types: numbers.types }
    }
}

/// Instructions without operands: each once, first in the body, in an order of their own.
struct Leaves<'k> {
    kernel: &'k Kernel,
    first: BTreeMap<String, Inst>,
    stands: HashMap<Value, Value>,
}

impl Leaves<'_> {
    fn take(&mut self, region: &mut Region) {
        for mut inst in std::mem::take(&mut region.insts) {
            inst.location = Location(0);
            if matches!(inst.op, Op::Constant(_) | Op::Parameter(_) | Op::Special(_)) {
                let value = inst.results[0];
                let key = format!("{:?} {:?}", self.kernel.ty(value), inst.op);
                let stand = self.first.entry(key).or_insert(inst).results[0];
                self.stands.insert(value, stand);
                continue;
            }
            inst.op.regions_mut().into_iter().for_each(|inner| self.take(inner));
            region.insts.push(inst);
        }
    }

    fn stand(&self, region: &mut Region, used: &mut HashSet<Value>) {
        for inst in &mut region.insts {
            inst.op.map_operands(|v| self.stands.get(&v).copied().unwrap_or(v));
            inst.op.for_each_operand(|v| _ = used.insert(v));
            inst.op.regions_mut().into_iter().for_each(|inner| self.stand(inner, used));
        }
    }
}

/// Numbers in the order of definition.
struct Numbers<'k> {
    kernel: &'k Kernel,
    values: HashMap<Value, Value>,
    labels: HashMap<Label, Label>,
    types: Vec<Type>,
}

impl Numbers<'_> {
    fn define(&mut self, value: &mut Value) {
        self.types.push(self.kernel.ty(*value));
        let number = Value(self.types.len() as u32 - 1);
        self.values.insert(*value, number);
        *value = number;
    }

    fn label(&mut self, label: &mut Label) {
        let next = Label(self.labels.len() as u32);
        *label = *self.labels.entry(*label).or_insert(next);
    }

    fn region(&mut self, region: &mut Region) {
        region.parameters.iter_mut().for_each(|v| self.define(v));
        for inst in &mut region.insts {
            inst.op.map_operands(|v| self.values.get(&v).copied().unwrap_or(v));
            match &mut inst.op {
                Op::For(l) => self.label(&mut l.label),
                Op::Loop { label, .. } | Op::Block { label, .. } => self.label(label),
                Op::Break(label, _) | Op::Continue(label, _) => self.label(label),
                _ => {}
            }
            inst.op.regions_mut().into_iter().for_each(|inner| self.region(inner));
            inst.results.iter_mut().for_each(|v| self.define(v));
        }
    }
}
