//! The threads of a block that demand a value.
//!
//! A thread demands the values that it stores, and those that its accesses and iterations depend
//! on. It also demands the operands of such values in the thread itself. Where lanes exchange, it
//! demands the value of the source lane. In other threads the value may be anything. A number that
//! follows from the thread index is removed there, so that kernels that differ only there become
//! equal.
//!
//! The source lane of a shuffle is known only if its selector is known for each thread; otherwise
//! all lanes of the warp demand the value. The thread that stores a value to memory demands it. If
//! the condition of a select is known for a thread, the thread demands only the selected operand.

use super::normal::LANES;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::analyses::uniformity::Uniformity;
use kernel_dsl::compiler::ir::{AccessPlace, Binary, Inst, Kernel, Label, Op, Region, Shuffle, Type, Value, Values};
use std::collections::HashMap;

/// A set of threads of a block, by linear index.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Threads([u64; 16]);

impl Threads {
    pub const ALL: Threads = Threads([u64::MAX; 16]);

    pub fn of(holds: impl Iterator<Item = bool>) -> Threads {
        let mut threads = Threads::default();
        holds.enumerate().filter(|(_, holds)| *holds).for_each(|(t, _)| threads.add(t));
        threads
    }

    pub fn has(&self, thread: usize) -> bool {
        self.0.get(thread / 64).is_some_and(|word| word >> (thread % 64) & 1 == 1)
    }

    fn add(&mut self, thread: usize) {
        self.0[thread / 64] |= 1 << (thread % 64);
    }

    pub fn and(self, other: Threads) -> Threads {
        Threads(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    fn or(self, other: Threads) -> Threads {
        Threads(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    fn but(self, other: Threads) -> Threads {
        Threads(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    fn all(self) -> impl Iterator<Item = usize> {
        (0..1024).filter(move |t| self.has(*t))
    }

    /// Returns all threads of the warps that have a thread in the set.
    fn warps(self) -> Threads {
        let half = |word: u64, mask: u64| if word & mask == 0 { 0 } else { mask };
        Threads(self.0.map(|word| half(word, 0xffff_ffff) | half(word, 0xffff_ffff << 32)))
    }
}

/// The threads that reach an instruction.
#[derive(Clone)]
pub struct Came {
    pub threads: Threads,
    /// The threads that store or load, if the access is guarded.
    pub inside: Threads,
    /// The remaining part of the condition, if other threads make the access for those that it
    /// selects.
    pub rest: Option<Vec<Value>>,
}

/// The threads that reach each instruction, by its address.
pub type Comers = HashMap<usize, Came>;

/// The threads that demand each value.
pub struct Asked<'a, 'k> {
    kernel: &'k Kernel,
    uniformity: &'a Uniformity<'k>,
    comers: &'a Comers,
    by_value: Vec<Threads>,
    /// The carried values of a loop or block: parameters and results.
    loops: HashMap<Label, Vec<Values>>,
    results: HashMap<Label, Values>,
    changed: bool,
}

impl<'a, 'k> Asked<'a, 'k> {
    pub fn of(kernel: &'k Kernel, uniformity: &'a Uniformity<'k>, comers: &'a Comers) -> Asked<'a, 'k> {
        let by_value = vec![Threads::default(); kernel.values.len()];
        let (loops, results) = (HashMap::new(), HashMap::new());
        let mut asked = Asked { kernel, uniformity, comers, by_value, loops, results, changed: true };
        while std::mem::replace(&mut asked.changed, false) {
            asked.region(&kernel.body, &[]);
        }
        asked
    }

    /// Returns the threads that demand one of these values.
    pub fn any(&self, values: &[Value]) -> Threads {
        values.iter().fold(Threads::default(), |all, v| all.or(self.by_value[v.0 as usize]))
    }

    fn ask(&mut self, value: Value, threads: Threads) {
        let of = &mut self.by_value[value.0 as usize];
        let more = of.or(threads);
        self.changed |= std::mem::replace(of, more) != more;
    }

    /// Returns the threads for which a Boolean holds, if that is known for each thread.
    fn where_holds(&self, condition: Value) -> Option<Threads> {
        Some(Threads::of(self.uniformity.numbers(condition)?.into_iter().map(|n| n != 0)))
    }

    /// Visits a region whose yielded values become `becomes`, by position.
    fn region(&mut self, region: &Region, becomes: &[Values]) {
        for inst in region.insts.iter().rev() {
            self.inst(inst, becomes);
        }
    }

    fn hand_on(&mut self, values: &Values, becomes: &[Values], here: Threads) {
        for (i, value) in values.iter().enumerate() {
            let of: Values = becomes.iter().filter_map(|all| all.get(i)).copied().collect();
            let threads = self.any(&of);
            self.ask(*value, threads.and(here));
        }
    }

    fn inst(&mut self, inst: &Inst, becomes: &[Values]) {
        let came = self.comers.get(&std::ptr::from_ref(inst).addr());
        let here = came.map_or(Threads::ALL, |came| came.threads);
        let inside = came.map_or(Threads::ALL, |came| came.inside);
        let rest = came.and_then(|came| came.rest.clone());
        let by = self.any(&inst.results);
        match &inst.op {
            Op::Yield(values) => self.hand_on(values, becomes, here),
            Op::Continue(label, values) => {
                let becomes = self.loops.get(label).cloned().unwrap_or_default();
                self.hand_on(values, &becomes, here);
            }
            Op::Break(label, values) => {
                let results = self.results.get(label).cloned().unwrap_or_default();
                self.hand_on(values, &[results], here);
            }
            Op::For(l) => {
                let carried = vec![l.body.parameters.iter().skip(1).copied().collect(), inst.results.clone()];
                self.loops.insert(l.label, carried.clone());
                self.results.insert(l.label, inst.results.clone());
                self.region(&l.body, &carried);
                self.hand_on(&l.inits, &carried, here);
                [l.start, l.end, l.step].into_iter().for_each(|v| self.ask(v, here));
            }
            Op::Loop { label, inits, body } => {
                let carried = vec![body.parameters.clone()];
                self.loops.insert(*label, carried.clone());
                self.results.insert(*label, inst.results.clone());
                self.region(body, &carried);
                self.hand_on(inits, &carried, here);
            }
            Op::Block { label, body } => {
                self.results.insert(*label, inst.results.clone());
                self.region(body, std::slice::from_ref(&inst.results));
            }
            Op::If { condition, then, otherwise } => {
                [then, otherwise].into_iter().for_each(|side| self.region(side, std::slice::from_ref(&inst.results)));
                match rest {
                    Some(rest) => rest.into_iter().for_each(|v| self.ask(v, inside)),
                    None => self.ask(*condition, here),
                }
            }
            Op::Select { condition, yes, no } => {
                let holds = self.where_holds(*condition);
                self.ask(*yes, holds.map_or(by, |holds| by.and(holds)));
                self.ask(*no, holds.map_or(by, |holds| by.but(holds)));
                self.ask(*condition, by);
            }
            Op::Binary(op @ (Binary::And | Binary::Or), a, b) => {
                for (value, other) in [(*a, *b), (*b, *a)] {
                    // Only one of the two operands is demanded where the other decides; a known
                    // operand is always demanded.
                    let truth = self.kernel.ty(value) == Type::Scalar(Scalar::Bool);
                    let other = self.where_holds(other).filter(|_| truth && self.uniformity.numbers(value).is_none());
                    let open = |holds: Threads| if *op == Binary::And { by.and(holds) } else { by.but(holds) };
                    self.ask(value, other.map_or(by, open));
                }
            }
            Op::Store { place, values, guard, .. } => {
                values.iter().for_each(|v| self.ask(*v, inside));
                operands(place, |v| self.ask(v, inside));
                match rest {
                    Some(rest) => rest.into_iter().for_each(|v| self.ask(v, inside)),
                    None => guard.iter().for_each(|guard| self.ask(*guard, here)),
                }
            }
            // A load needs an existing element, whether its result is demanded or not.
            Op::Load { place, guard, .. } if by != Threads::default() => {
                operands(place, |v| self.ask(v, inside));
                if let Some(guard) = guard {
                    self.ask(guard.condition, here);
                    guard.otherwise.iter().for_each(|v| self.ask(*v, by));
                }
            }
            Op::Shuffle { mode, value, selector, width } => {
                let from = match self.uniformity.numbers(*selector) {
                    Some(numbers) => sources(by, *mode, &numbers, *width as usize),
                    None => by.warps(),
                };
                // If all lanes have the same value, a lane's own value replaces that of another.
                let same = self.uniformity.indifferent(*value) & LANES == LANES;
                self.ask(*value, if same { by.or(from) } else { from });
                self.ask(*selector, by);
            }
            Op::Vote { value, .. } | Op::Match(value) | Op::Reduce(_, value) => self.ask(*value, by.warps()),
            Op::Load { .. } => {}
            op if op.is_pure() => op.for_each_operand(|v| self.ask(v, by)),
            op => {
                op.for_each_operand(|v| self.ask(v, here));
                op.regions().into_iter().for_each(|inner| self.region(inner, &[]));
            }
        }
    }
}

/// Returns the threads whose values the threads of `by` receive.
fn sources(by: Threads, mode: Shuffle, numbers: &[u64], width: usize) -> Threads {
    let mut from = Threads::default();
    for thread in by.all().take_while(|t| *t < numbers.len()) {
        let (n, within) = (numbers[thread] as usize, thread % width);
        let other = match mode {
            Shuffle::Index => n % width,
            Shuffle::Xor => within ^ n,
            Shuffle::Up => within.wrapping_sub(n),
            Shuffle::Down => within + n,
        };
        // A lane without a source lane keeps its own value.
        from.add(if other < width { thread - within + other } else { thread });
    }
    from
}

/// Calls `f` on the operands of an access.
fn operands(place: &AccessPlace, mut f: impl FnMut(Value)) {
    super::normal::place_operands(&mut place.clone(), |v| {
        f(v);
        v
    });
}
