//! Which threads of a block ask for a value.
//!
//! A thread asks for what it stores, for what an access or a turn of a loop depends on, and for what such values are made of in the thread itself;
//! where lanes exchange, for what the lane has whose value it gets. What the others have may be anything: there a number that follows from the thread's index is left out, and
//! so kernels that differ there alone become one.
//!
//! Why this is sound: which thread a shuffle hands a value to is known only by numbers that are themselves known of each thread; where they are not, all lanes of the warp are
//! asked. What is handed on through memory is asked for by whoever stores it. A choice of which the condition is known of a thread asks for what that thread takes.

use super::normal::LANES;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::analyses::uniformity::Uniformity;
use kernel_dsl::compiler::ir::{Binary, Inst, Kernel, Label, Op, Place, Region, Shuffle, Type, Value, Values};
use std::collections::HashMap;

/// Threads of a block, by linear index.
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

    /// All threads of the warps that have one here.
    fn warps(self) -> Threads {
        let half = |word: u64, mask: u64| if word & mask == 0 { 0 } else { mask };
        Threads(self.0.map(|word| half(word, 0xffff_ffff) | half(word, 0xffff_ffff << 32)))
    }
}

/// Who comes to an instruction.
#[derive(Clone)]
pub struct Came {
    pub threads: Threads,
    /// Those that store or load, where it is guarded.
    pub inside: Threads,
    /// Where other threads than those that the condition picks do it for them: what is left of the condition for these.
    pub rest: Option<Vec<Value>>,
}

/// Who comes to each instruction, by its address.
pub type Comers = HashMap<usize, Came>;

/// The threads that ask for each value.
pub struct Asked<'a, 'k> {
    kernel: &'k Kernel,
    uniformity: &'a Uniformity<'k>,
    comers: &'a Comers,
    by_value: Vec<Threads>,
    /// What a loop or block carries on: parameters and results.
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

    /// The threads that ask for one of these.
    pub fn any(&self, values: &[Value]) -> Threads {
        values.iter().fold(Threads::default(), |all, v| all.or(self.by_value[v.0 as usize]))
    }

    fn ask(&mut self, value: Value, threads: Threads) {
        let of = &mut self.by_value[value.0 as usize];
        let more = of.or(threads);
        self.changed |= std::mem::replace(of, more) != more;
    }

    /// The threads of which a truth value holds, where that is known of each.
    fn where_holds(&self, condition: Value) -> Option<Threads> {
        Some(Threads::of(self.uniformity.numbers(condition)?.into_iter().map(|n| n != 0)))
    }

    /// A region; what its end hands on becomes one of `becomes`, value by value.
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
                    // Not both where the other decides: what is known is asked for everywhere.
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
            // Who loads must find something there, whether it is asked for or not.
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
                // Where all lanes have the same, the own stands for another's.
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

/// The threads whose values these get.
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
        // Who finds none there keeps its own.
        from.add(if other < width { thread - within + other } else { thread });
    }
    from
}

/// What an access depends on.
fn operands(place: &Place, mut f: impl FnMut(Value)) {
    super::normal::place_operands(&mut place.clone(), |v| {
        f(v);
        v
    });
}
