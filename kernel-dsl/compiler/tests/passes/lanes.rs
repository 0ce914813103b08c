//! Tests that the analysis of lanes agrees with the values that each lane computes: random indices,
//! in loops and branches.

use crate::{equal, evaluator, generator};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::analyses::lanes::{LANES, LaneValues, Lanes};
use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::passes::with_places;
use smallvec::smallvec;
use std::collections::HashMap;

const USIZE: Type = Type::Scalar(Scalar::Usize);

/// Programs on indices that do not overflow.
struct Indices {
    b: Builder,
    state: u64,
    /// Values in scope, and their upper bounds.
    scope: Vec<(Value, u64)>,
    /// The addresses of loads and stores.
    memory: [(Value, Value); 2],
    labels: u32,
}

impl Indices {
    fn kernel(seed: u64) -> Kernel {
        let mut b = Builder::new(generator::empty());
        let mut parameter = |i: u32| {
            let ty = b.kernel.parameters[i as usize].ty();
            b.value(Op::Parameter(i), ty)
        };
        let memory = [(parameter(0), parameter(1)), (parameter(2), parameter(3))];
        let stride = parameter(7);
        let thread = b.scalar(Op::Special(Special::Thread(0)), Scalar::Usize);
        let block = b.scalar(Op::Special(Special::Block(0)), Scalar::Usize);
        let scope = vec![(thread, 32), (block, 64), (stride, 64)];
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut g = Indices { b, state, scope, memory, labels: 0 };
        g.statements(12, 2);
        for i in 0..g.scope.len() {
            g.show(g.scope[i].0);
        }
        g.b.finish()
    }

    fn below(&mut self, n: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) % n
    }

    fn any(&mut self) -> (Value, u64) {
        // Prefers recent values.
        let n = self.scope.len() as u64;
        let i = self.below(n).max(self.below(n));
        self.scope[i as usize]
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    fn bin(&mut self, op: Binary, a: Value, b: Value) -> Value {
        self.b.scalar(Op::Binary(op, a, b), Scalar::Usize)
    }

    fn number(&mut self, n: u64) -> Value {
        self.b.index(n as u32)
    }

    /// Keeps `value` small.
    fn keep(&mut self, value: Value, below: u64) -> (Value, u64) {
        if below <= 1 << 20 {
            return (value, below);
        }
        let n = self.number(1000);
        (self.bin(Binary::Rem, value, n), 1000)
    }

    fn show(&mut self, value: Value) {
        let n = self.number(64);
        let index = self.bin(Binary::Rem, value, n);
        let value = self.b.scalar(Op::Cast(value), Scalar::U32);
        let (base, extent) = self.memory[1];
        let place = AccessPlace::Global { base, dims: smallvec![Dim { index, extent, stride: None }], within: None };
        self.b.effect(Op::Store { place, element: Scalar::U32, values: smallvec![value], guard: None });
    }

    fn condition(&mut self) -> Value {
        let (a, b) = (self.any().0, self.any().0);
        let comparisons = [Comparison::Lt, Comparison::Eq, Comparison::Ge, Comparison::Ne];
        let comparison = comparisons[self.below(4) as usize];
        let n = 1 + self.below(40);
        let b = if self.below(2) == 0 { self.number(n) } else { b };
        self.b.compare(comparison, a, b)
    }

    fn statements(&mut self, n: u32, depth: u32) {
        for _ in 0..n {
            let made = match self.below(if depth > 0 { 22 } else { 18 }) {
                18 | 19 => self.branch(depth),
                20 => self.counted(depth),
                21 => self.endless(depth),
                which => self.arithmetic(which),
            };
            let made = self.keep(made.0, made.1);
            self.scope.push(made);
        }
    }

    fn arithmetic(&mut self, which: u64) -> (Value, u64) {
        let ((a, most), (b, other)) = (self.any(), self.any());
        let by = [1, 2, 3, 4, 5, 8, 16, 31, 32, 64][self.below(10) as usize];
        let all = (most.max(other)).next_power_of_two();
        let constant = self.number(by);
        let log = self.below(5);
        let shift = self.b.constant(Scalar::U32, log);
        let made = match which {
            0..=2 => (self.bin(Binary::Add, a, b), most + other),
            3 | 4 => (self.bin(Binary::Mul, a, constant), most * by),
            5 => (self.bin(Binary::Div, a, constant), most),
            6 | 7 => (self.bin(Binary::Rem, a, constant), by),
            8 => {
                let mask = self.number(by - 1);
                (self.bin(Binary::And, a, mask), by)
            }
            9 => (self.bin(Binary::Shl, a, shift), most << log),
            10 => (self.bin(Binary::Shr, a, shift), most),
            11 => (self.bin(Binary::Xor, a, b), all),
            12 => (self.bin(Binary::Or, a, b), all),
            13 => (self.bin(Binary::Max, a, b), all),
            14 => {
                let less = self.bin(Binary::Min, a, b);
                (self.bin(Binary::Sub, a, less), most)
            }
            15 => {
                let condition = self.condition();
                (self.b.value(Op::Select { condition, yes: a, no: b }, USIZE), all)
            }
            16 => {
                let narrow = self.b.scalar(Op::Cast(a), Scalar::U8);
                (self.b.scalar(Op::Cast(narrow), Scalar::Usize), 256)
            }
            _ => {
                let (base, extent) = self.memory[0];
                let place =
                    AccessPlace::Global { base, dims: smallvec![Dim { index: a, extent, stride: None }], within: None };
                let op = Op::Load { place, element: Scalar::U8, policy: CachePolicy::ReadOnly, guard: None };
                let loaded = self.b.scalar(op, Scalar::U8);
                (self.b.scalar(Op::Cast(loaded), Scalar::Usize), 256)
            }
        };
        // Bounds then hold for any operands.
        (made.0, made.1.max(2))
    }

    /// Returns the region that `body` makes, which yields its result, and the bound of the result.
    fn region(&mut self, parameters: &[(Value, u64)], body: impl FnOnce(&mut Self) -> (Op, u64)) -> (Region, u64) {
        let known = self.scope.len();
        self.scope.extend(parameters);
        let (end, below) = body(self);
        self.b.effect(end);
        self.scope.truncate(known);
        (self.b.leave(), below)
    }

    fn branch(&mut self, depth: u32) -> (Value, u64) {
        let condition = self.condition();
        let arm = |g: &mut Self| {
            g.b.enter([]);
            g.region(&[], |g| {
                g.statements(2, depth - 1);
                let (value, below) = g.any();
                (Op::Yield(smallvec![value]), below)
            })
        };
        let ((then, a), (otherwise, b)) = (arm(self), arm(self));
        (self.b.value(Op::If { condition, then, otherwise }, USIZE), a.max(b))
    }

    /// Returns the next value of a carried one: a sum, kept small, sometimes under a condition.
    fn next(&mut self, carried: Value) -> Value {
        let (more, _) = self.any();
        let sum = self.bin(Binary::Add, carried, more);
        let n = self.number(4096);
        self.bin(Binary::Rem, sum, n)
    }

    fn counted(&mut self, depth: u32) -> (Value, u64) {
        let (label, (start, below), (init, _)) = (self.label(), self.any(), self.any());
        let (length, step) = (self.below(7), 1 + self.below(3));
        let (length, step) = (self.number(length), self.number(step));
        let end = self.bin(Binary::Add, start, length);
        let parameters = self.b.enter([USIZE, USIZE]);
        let known = [(parameters[0], below + 8), (parameters[1], 1 << 20)];
        let (body, _) = self.region(&known, |g| {
            g.statements(2, depth - 1);
            if g.below(3) == 0 {
                let condition = g.condition();
                g.b.enter([]);
                let next = g.next(parameters[1]);
                let jump = if g.below(2) == 0 { Op::Break } else { Op::Continue };
                let (then, _) = g.region(&[], |_| (jump(label, smallvec![next]), 0));
                g.b.enter([]);
                let otherwise = g.b.leave();
                g.b.effect(Op::If { condition, then, otherwise });
            }
            // Some are pointers, which move equally in all lanes.
            let next = if g.below(2) == 0 { g.bin(Binary::Add, parameters[1], step) } else { g.next(parameters[1]) };
            (Op::Yield(smallvec![next]), 0)
        });
        let inits = smallvec![init];
        let l = For { label, start, end, step, unroll: Unroll::Never, inits, body };
        (self.b.value(Op::For(Box::new(l)), USIZE), 1 << 21)
    }

    fn endless(&mut self, depth: u32) -> (Value, u64) {
        let (label, (init, _)) = (self.label(), self.any());
        let zero = self.number(0);
        let parameters = self.b.enter([USIZE, USIZE]);
        let (body, _) = self.region(&[(parameters[0], 8), (parameters[1], 1 << 20)], |g| {
            let least = g.any().0;
            let limit = g.number(5);
            let limit = g.bin(Binary::Min, least, limit);
            let over = g.b.compare(Comparison::Ge, parameters[0], limit);
            g.b.enter([]);
            let (then, _) = g.region(&[], |_| (Op::Break(label, smallvec![parameters[1]]), 0));
            g.b.enter([]);
            let otherwise = g.b.leave();
            g.b.effect(Op::If { condition: over, then, otherwise });
            g.statements(2, depth - 1);
            let one = g.number(1);
            let next = [g.bin(Binary::Add, parameters[0], one), g.next(parameters[1])];
            (Op::Yield(next.into_iter().collect()), 0)
        });
        let inits = smallvec![zero, init];
        (self.b.value(Op::Loop { label, inits, body }, USIZE), 1 << 20)
    }
}

/// Compares the known values with those of the lanes. Returns how many values are known, and how
/// many are not.
fn check(seed: u64, kernel: &Kernel) -> (usize, usize) {
    let known = Lanes::of(kernel, 0);
    let (mut sure, mut unsure) = (0, 0);
    for input in 0..2 {
        let mut all: HashMap<_, Vec<(usize, i64)>> = HashMap::new();
        for lane in 0..LANES {
            for ((value, at), bits) in evaluator::lane(kernel, input, lane as u32).values {
                if kernel.ty(value) == USIZE {
                    all.entry((value, at)).or_default().push((lane, bits as i64));
                }
            }
        }
        for ((value, at), lanes) in all {
            let wrong = |what: String| -> ! { panic!("seed {seed}, {value} in iteration {at:?}: {what}\n{kernel}") };
            match known.get(value) {
                LaneValues::Unknown => unsure += 1,
                LaneValues::Exact(exact) => {
                    sure += 1;
                    if let Some((lane, x)) = lanes.iter().find(|(lane, x)| *x != exact[*lane]) {
                        wrong(format!("lane {lane} has {x}, not {}", exact[*lane]));
                    }
                }
                LaneValues::Relative { lanes: relative, multiple } => {
                    sure += 1;
                    let bases: Vec<i64> = lanes.iter().map(|(lane, x)| x - relative[*lane]).collect();
                    if bases.iter().any(|b| *b != bases[0]) || bases[0].rem_euclid(multiple as i64) != 0 {
                        wrong(format!("{lanes:?} are not {relative:?} above one multiple of {multiple}"));
                    }
                }
            }
        }
    }
    (sure, unsure)
}

#[test]
fn known_lane_values_are_correct() {
    let (mut sure, mut unsure) = (0, 0);
    // Each program runs 32 times: a quarter of the other tests' number takes the same time.
    for seed in equal::seeds().step_by(4) {
        let kernel = Indices::kernel(seed);
        verify::verify(&kernel).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}"));
        let later = with_places(kernel.clone()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}"));
        for kernel in [&kernel, &later] {
            let (s, u) = check(seed, kernel);
            (sure, unsure) = (sure + s, unsure + u);
        }
    }
    assert!(sure > unsure && unsure > 0, "{sure} known, {unsure} not");
}
