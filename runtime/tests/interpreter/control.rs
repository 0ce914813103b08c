//! Control flow: random nests of constructs whose lanes diverge in every iteration. The reference
//! evaluates the same IR one thread at a time, without masks.

use crate::kit::{Kit, Random, Slice, out, run};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{
    Binary, Comparison, For, Kernel, Label, LocalId, Op, Region, Special, Type, Unroll, Value, Values,
};

const THREADS: u32 = 72;

/// A construct that is open at the generator's position.
struct Open {
    label: Label,
    results: Vec<Scalar>,
    /// The types of the carried values; `None` if the construct is not a loop.
    carried: Option<Vec<Scalar>>,
}

struct Generator {
    k: Kit,
    random: Random,
    /// The values in scope.
    scope: Vec<(Value, Scalar)>,
    open: Vec<Open>,
    trace: LocalId,
    iterations: LocalId,
    to: Slice,
    thread: Value,
}

const TYPES: [Scalar; 2] = [Scalar::U32, Scalar::U64];

impl Generator {
    fn below(&mut self, n: u32) -> u32 {
        self.random.below(n)
    }

    fn types(&mut self) -> Vec<Scalar> {
        (0..self.below(3)).map(|_| TYPES[self.below(2) as usize]).collect()
    }

    fn some(&mut self, ty: Scalar) -> Value {
        let of: Vec<_> = self.scope.iter().filter(|v| v.1 == ty).map(|v| v.0).collect();
        if of.is_empty() || self.below(8) == 0 {
            let bits = self.below(40).into();
            return self.k.b.constant(ty, bits);
        }
        // The newest values depend on the control flow.
        let newest = of.len().saturating_sub(6) as u32;
        let pick = newest + self.below(of.len() as u32 - newest);
        of[pick as usize]
    }

    fn values(&mut self, types: &[Scalar]) -> Values {
        types.iter().map(|ty| self.some(*ty)).collect()
    }

    fn condition(&mut self) -> Value {
        let ty = TYPES[self.below(2) as usize];
        let (a, mask) = (self.some(ty), self.below(7) + 1);
        let mask = self.k.b.constant(ty, mask.into());
        let (a, zero) = (self.k.binary(Binary::And, a, mask), self.k.b.constant(ty, 0));
        let op = if self.below(2) == 0 { Comparison::Eq } else { Comparison::Gt };
        self.k.b.compare(op, a, zero)
    }

    /// Mixes a value into the thread's output.
    fn show(&mut self) {
        let (value, ty) = (self.some(Scalar::U64), Scalar::U64);
        let trace = self.k.b.scalar(Op::ReadLocal { local: self.trace, index: None }, ty);
        let factor = self.k.b.constant(ty, 0x9e37_79b9_7f4a_7c15);
        let mixed = self.k.binary(Binary::Xor, trace, value);
        let mixed = self.k.binary(Binary::WrappingMul, mixed, factor);
        self.k.b.effect(Op::WriteLocal { local: self.trace, index: None, value: mixed });
        self.k.store(self.to.at(self.thread), ty, mixed);
    }

    fn compute(&mut self) {
        let ty = TYPES[self.below(2) as usize];
        let (a, b) = (self.some(ty), self.some(ty));
        let ops = [Binary::WrappingAdd, Binary::WrappingMul, Binary::Xor, Binary::WrappingSub, Binary::Max];
        let op = ops[self.below(5) as usize];
        let value = self.k.binary(op, a, b);
        self.scope.push((value, ty));
        let other = TYPES[usize::from(ty == Scalar::U32)];
        let cast = self.k.b.scalar(Op::Cast(value), other);
        self.scope.push((cast, other));
    }

    /// Makes lanes leave every loop after a number of iterations, so that the program ends.
    fn iteration(&mut self, label: Label, results: &[Scalar]) {
        let (iterations, ty) = (self.iterations, Scalar::U32);
        let (n, one) =
            (self.k.b.scalar(Op::ReadLocal { local: iterations, index: None }, ty), self.k.b.constant(ty, 1));
        let n = self.k.binary(Binary::WrappingAdd, n, one);
        self.k.b.effect(Op::WriteLocal { local: iterations, index: None, value: n });
        let most = self.k.b.constant(ty, 40);
        let over = self.k.b.compare(Comparison::Gt, n, most);
        self.k.b.enter([]);
        let values = self.values(results);
        self.k.b.effect(Op::Break(label, values));
        let then = self.k.b.leave();
        self.k.b.enter([]);
        let otherwise = self.k.b.leave();
        self.k.b.effect(Op::If { condition: over, then, otherwise });
    }

    /// Fills the open region, which yields `types`.
    fn region(&mut self, depth: u32, types: &[Scalar], head: Option<(Label, Vec<Scalar>)>) -> Region {
        let scope = self.scope.len();
        if let Some((label, results)) = head {
            self.iteration(label, &results);
        }
        for _ in 0..self.below(4) + 1 {
            match self.below(8) {
                0..2 => self.show(),
                2..5 => self.compute(),
                _ if depth > 0 => self.construct(depth - 1),
                _ => self.compute(),
            }
        }
        let way_out = self.below(10);
        let targets = self.open.len() as u32;
        if way_out < 3 && targets > 0 {
            let target = self.below(targets) as usize;
            let Open { label, results, carried } = &self.open[target];
            let (label, results, carried) = (*label, results.clone(), carried.clone());
            match carried.filter(|_| self.below(2) == 0) {
                Some(carried) => {
                    let values = self.values(&carried);
                    self.k.b.effect(Op::Continue(label, values));
                }
                None => {
                    let values = self.values(&results);
                    self.k.b.effect(Op::Break(label, values));
                }
            }
        } else if way_out == 3 && depth < 2 {
            self.k.b.effect(Op::Return);
        } else {
            let values = self.values(types);
            self.k.b.effect(Op::Yield(values));
        }
        self.scope.truncate(scope);
        self.k.b.leave()
    }

    fn construct(&mut self, depth: u32) {
        let results = self.types();
        let types: Vec<Type> = results.iter().map(|ty| Type::Scalar(*ty)).collect();
        let label = self.k.label();
        let op = match self.below(4) {
            0 => {
                self.k.b.enter([]);
                self.open.push(Open { label, results: results.clone(), carried: None });
                let body = self.region(depth, &results, None);
                self.open.pop();
                Op::Block { label, body }
            }
            1 => {
                let condition = self.condition();
                self.k.b.enter([]);
                let then = self.region(depth, &results, None);
                self.k.b.enter([]);
                let otherwise = self.region(depth, &results, None);
                Op::If { condition, then, otherwise }
            }
            2 => {
                let carried = self.types();
                let inits = self.values(&carried);
                let scope = self.scope.len();
                let parameters = self.k.b.enter(carried.iter().map(|ty| Type::Scalar(*ty)));
                self.scope.extend(parameters.into_iter().zip(carried.clone()));
                self.open.push(Open { label, results: results.clone(), carried: Some(carried.clone()) });
                let body = self.region(depth, &carried, Some((label, results.clone())));
                self.open.pop();
                self.scope.truncate(scope);
                Op::Loop { label, inits, body }
            }
            _ => {
                let (start, end) = (self.some(Scalar::U32), self.some(Scalar::U32));
                let (seven, three) = (self.k.b.constant(Scalar::U32, 7), self.below(3) + 1);
                let (start, end) = (self.k.binary(Binary::And, start, seven), self.k.binary(Binary::And, end, seven));
                let step = self.k.b.constant(Scalar::U32, three.into());
                let inits = self.values(&results);
                let scope = self.scope.len();
                let index = [Scalar::U32].into_iter().chain(results.iter().copied());
                let parameters = self.k.b.enter(index.clone().map(Type::Scalar));
                self.scope.extend(parameters.into_iter().zip(index));
                self.open.push(Open { label, results: results.clone(), carried: Some(results.clone()) });
                let body = self.region(depth, &results, Some((label, results.clone())));
                self.open.pop();
                self.scope.truncate(scope);
                Op::For(Box::new(For { label, start, end, step, unroll: Unroll::Auto, inits, body }))
            }
        };
        let values = self.k.b.emit(op, types);
        self.scope.extend(values.into_iter().zip(results));
    }
}

/// Builds a kernel that stores a trace of each thread's control flow in its element of the only
/// argument.
fn random_kernel(seed: u64) -> Kernel {
    let mut k = Kit::new([THREADS, 1, 1], "wander");
    let to = k.slice("out", Scalar::U64, true);
    let thread = k.thread();
    let (trace, iterations) = (k.local("trace", Scalar::U64, 1), k.local("iterations", Scalar::U32, 1));
    let (zero, none) = (k.b.constant(Scalar::U64, 0), k.b.constant(Scalar::U32, 0));
    k.b.effect(Op::WriteLocal { local: trace, index: None, value: zero });
    k.b.effect(Op::WriteLocal { local: iterations, index: None, value: none });
    let (narrow, wide) = (k.b.scalar(Op::Cast(thread), Scalar::U32), k.b.scalar(Op::Cast(thread), Scalar::U64));
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let scope = vec![(narrow, Scalar::U32), (wide, Scalar::U64)];
    let mut g = Generator { k, random, scope, open: vec![], trace, iterations, to, thread };
    for _ in 0..3 {
        g.construct(4);
        g.show();
    }
    g.k.finish()
}

/// The control flow at the end of a region.
enum ControlFlow {
    Yield(Vec<u64>),
    Break(Label, Vec<u64>),
    Continue(Label, Vec<u64>),
    Return,
}

/// One thread of a kernel from [`random_kernel`].
struct Thread<'k> {
    kernel: &'k Kernel,
    index: u32,
    values: Vec<u64>,
    locals: Vec<u64>,
    out: u64,
}

impl Thread<'_> {
    fn get(&self, value: Value) -> u64 {
        self.values[value.0 as usize]
    }

    fn all(&self, values: &[Value]) -> Vec<u64> {
        values.iter().map(|v| self.get(*v)).collect()
    }

    fn set(&mut self, to: &[Value], values: Vec<u64>) {
        assert_eq!(to.len(), values.len());
        for (to, value) in to.iter().zip(values) {
            self.values[to.0 as usize] = value & self.kernel.ty(*to).scalar().map_or(u64::MAX, Scalar::mask);
        }
    }

    fn region(&mut self, region: &Region) -> ControlFlow {
        for inst in &region.insts {
            let results = match &inst.op {
                Op::Constant(bits) => vec![*bits],
                Op::Parameter(_) => vec![0],
                Op::Special(Special::Thread(0)) => vec![self.index.into()],
                Op::Cast(a) => vec![self.get(*a)],
                Op::Binary(op, a, b) => {
                    let (a, b) = (self.get(*a), self.get(*b));
                    vec![match op {
                        Binary::WrappingAdd => a.wrapping_add(b),
                        Binary::WrappingSub => a.wrapping_sub(b),
                        Binary::WrappingMul => a.wrapping_mul(b),
                        Binary::Xor => a ^ b,
                        Binary::And => a & b,
                        Binary::Max => a.max(b),
                        op => panic!("{op:?} is not generated"),
                    }]
                }
                Op::Compare(op, a, b) => vec![u64::from(match op {
                    Comparison::Eq => self.get(*a) == self.get(*b),
                    Comparison::Gt => self.get(*a) > self.get(*b),
                    op => panic!("{op:?} is not generated"),
                })],
                Op::ReadLocal { local, .. } => vec![self.locals[local.0 as usize]],
                Op::WriteLocal { local, value, .. } => {
                    self.locals[local.0 as usize] = self.get(*value);
                    vec![]
                }
                Op::Store { values, .. } => {
                    self.out = self.get(values[0]);
                    vec![]
                }
                Op::If { condition, then, otherwise } => {
                    let region = if self.get(*condition) != 0 { then } else { otherwise };
                    match self.region(region) {
                        ControlFlow::Yield(values) => values,
                        flow => return flow,
                    }
                }
                Op::Block { label, body } => match self.region(body) {
                    ControlFlow::Yield(values) => values,
                    ControlFlow::Break(l, values) if l == *label => values,
                    flow => return flow,
                },
                Op::Loop { label, inits, body } => {
                    let mut carried = self.all(inits);
                    loop {
                        self.set(&body.parameters, carried);
                        carried = match self.region(body) {
                            ControlFlow::Yield(values) => values,
                            ControlFlow::Continue(l, values) if l == *label => values,
                            ControlFlow::Break(l, values) if l == *label => break values,
                            flow => return flow,
                        };
                    }
                }
                Op::For(l) => {
                    let (end, step, mut index) = (self.get(l.end), self.get(l.step), self.get(l.start));
                    let mut carried = self.all(&l.inits);
                    while index < end {
                        let mut parameters = vec![index];
                        parameters.extend(carried);
                        self.set(&l.body.parameters, parameters);
                        carried = match self.region(&l.body) {
                            ControlFlow::Yield(values) => values,
                            ControlFlow::Continue(label, values) if label == l.label => values,
                            ControlFlow::Break(label, values) if label == l.label => {
                                carried = values;
                                break;
                            }
                            flow => return flow,
                        };
                        index += step;
                    }
                    carried
                }
                Op::Yield(values) => return ControlFlow::Yield(self.all(values)),
                Op::Break(label, values) => return ControlFlow::Break(*label, self.all(values)),
                Op::Continue(label, values) => return ControlFlow::Continue(*label, self.all(values)),
                Op::Return => return ControlFlow::Return,
                op => panic!("{op:?} is not generated"),
            };
            self.set(&inst.results, results);
        }
        panic!("a region without terminator")
    }
}

#[test]
fn warps_in_lockstep_agree_with_single_threads() {
    let mut distinct = 0;
    for seed in 1..=300 {
        let kernel = random_kernel(seed);
        let mut got = vec![0u64; THREADS as usize];
        let outcome = run(&kernel, 1, vec![out(&mut got)]);
        assert!(outcome.report.findings.is_empty(), "seed {seed}: {}", outcome.report);
        let expected: Vec<u64> = (0..THREADS)
            .map(|index| {
                let (values, locals) = (vec![0; kernel.values.len()], vec![0; kernel.locals.len()]);
                let mut thread = Thread { kernel: &kernel, index, values, locals, out: 0 };
                thread.region(&kernel.body);
                thread.out
            })
            .collect();
        assert_eq!(got, expected, "seed {seed}");
        let mut ways = expected;
        ways.sort_unstable();
        ways.dedup();
        distinct += ways.len();
    }
    // A program without divergence would test nothing.
    assert!(distinct > 300 * 20, "only {distinct} ways");
}

/// Checks that loop-carried values are swapped simultaneously, not one after the other.
#[test]
fn carried_values_swap() {
    let mut k = Kit::new([32, 1, 1], "(a, b) = (b, a + b)");
    let to = k.slice("out", Scalar::U32, true);
    let (i, zero, one) = (k.thread(), k.b.constant(Scalar::U32, 0), k.b.constant(Scalar::U32, 1));
    let end = k.b.scalar(Op::Cast(i), Scalar::U32);
    let u32s = Type::Scalar(Scalar::U32);
    let p = k.b.enter([u32s, u32s, u32s]);
    let sum = k.binary(Binary::Add, p[1], p[2]);
    k.b.effect(Op::Yield([p[2], sum].into_iter().collect()));
    let (body, label) = (k.b.leave(), k.label());
    let inits = [zero, one].into_iter().collect();
    let op = For { label, start: zero, end, step: one, unroll: Unroll::Auto, inits, body };
    let results = k.b.emit(Op::For(Box::new(op)), [u32s, u32s]);
    k.store(to.at(i), Scalar::U32, results[0]);
    let mut got = [0u32; 32];
    run(&k.finish(), 1, vec![out(&mut got)]);
    let (mut a, mut b) = (0u32, 1);
    for (i, got) in got.into_iter().enumerate() {
        assert_eq!(got, a, "Fibonacci number {i}");
        (a, b) = (b, a + b);
    }
}
