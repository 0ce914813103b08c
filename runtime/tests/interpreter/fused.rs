//! Fused instructions: results and reports equal those of the separate instructions.

use crate::kit::{Kit, findings, in_shared, input, out, run_with};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Binary, Comparison, For, Kernel, Op, Type, Unroll, Values};
use runtime::interpreter::{Check, Checks, Options, Outcome};

const THREADS: u32 = 40;
const ROWS: u32 = 16;

const TEXT: &str = "\
s[(row, t)] = x[row * 40 + t];
if t < active {
for i in (0..limit).step_by(step) {
acc[e] = s[(i, t)].mul_add(s[(i, 3)], acc[e]); }
y[t] = acc[e]; }";

/// A sum of products along the columns of a shared array.
#[derive(Clone, Copy)]
struct Sum {
    /// The number of threads that compute sums.
    active: u32,
    limit: u32,
    step: u32,
    /// Whether the sum has the initial value 0.5, or none.
    begun: bool,
    /// The number of accumulators, of which the sum uses the last.
    elements: u32,
}

const WHOLE: Sum = Sum { active: THREADS, limit: ROWS, step: 1, begun: true, elements: 1 };

impl Sum {
    fn kernel(self) -> Kernel {
        let f32s = Scalar::F32;
        let mut k = Kit::new([THREADS, 1, 1], TEXT);
        let (x, y) = (k.slice("x", f32s, false), k.slice("y", f32s, true));
        let limit = k.scalar_argument("limit", Scalar::Usize);
        let s = k.shared("s", f32s, &[ROWS, THREADS], &[THREADS, 1]);
        let acc = k.local("acc", f32s, self.elements);
        let t = k.thread();
        k.at("s[(row, t)]");
        for row in 0..ROWS {
            let (first, row) = (k.b.index(row * THREADS), k.b.index(row));
            let at = k.binary(Binary::Add, first, t);
            let value = k.load(x.at(at), f32s);
            k.store(in_shared(s, &[row, t]), f32s, value);
        }
        k.b.effect(Op::BlockSync);
        k.at("if t < active");
        let active = k.b.index(self.active);
        let inside = k.b.compare(Comparison::Lt, t, active);
        k.when(inside, |k| {
            let element = (self.elements > 1).then(|| k.b.index(self.elements - 1));
            if self.begun {
                let value = k.b.constant(f32s, 0.5f32.to_bits().into());
                k.b.effect(Op::WriteLocal { local: acc, index: element, value });
            }
            k.at("for i in");
            let (start, step, label) = (k.b.index(0), k.b.index(self.step), k.label());
            let around = k.b.location;
            let i = k.b.enter([Type::Scalar(Scalar::Usize)])[0];
            let three = k.b.index(3);
            k.at("acc[e] = s");
            let a = k.load(in_shared(s, &[i, t]), f32s);
            let b = k.load(in_shared(s, &[i, three]), f32s);
            let old = k.b.scalar(Op::ReadLocal { local: acc, index: element }, f32s);
            let new = k.b.scalar(Op::MulAdd(a, b, old), f32s);
            k.b.effect(Op::WriteLocal { local: acc, index: element, value: new });
            let body = k.b.leave();
            k.b.location = around;
            let (end, inits, unroll) = (limit, Values::new(), Unroll::Auto);
            k.b.effect(Op::For(Box::new(For { label, start, end, step, unroll, inits, body })));
            k.at("y[t]");
            let sum = k.b.scalar(Op::ReadLocal { local: acc, index: element }, f32s);
            k.store(y.at(t), f32s, sum);
        });
        k.finish()
    }

    fn run(self, options: Options) -> (Vec<f32>, Outcome) {
        let (x, mut y) = (matrix(), vec![-1.0f32; THREADS as usize]);
        let limit = runtime::interpreter::Binding::Scalar(self.limit.into());
        let outcome = run_with(&self.kernel(), [1, 1, 1], vec![input(&x), out(&mut y), limit], options);
        (y, outcome)
    }

    /// Computes the result in plain Rust.
    fn expected(self) -> Vec<f32> {
        let (x, n) = (matrix(), THREADS as usize);
        let sum = |t: usize| {
            let rows = (0..self.limit as usize).step_by(self.step as usize);
            rows.fold(0.5f32, |sum, i| x[i * n + t].mul_add(x[i * n + 3], sum))
        };
        (0..n).map(|t| if t < self.active as usize { sum(t) } else { -1.0 }).collect()
    }
}

fn matrix() -> Vec<f32> {
    (0..ROWS * THREADS).map(|i| (i.wrapping_mul(2654435761) >> 16) as f32 / 32768.0 - 1.0).collect()
}

fn checks(checks: Checks) -> Options {
    Options { checks, ..Options::default() }
}

const LEVELS: [Checks; 3] = [Checks::Values, Checks::Accesses, Checks::All];

#[test]
fn sums_agree_with_plain_rust() {
    for active in [THREADS, 32, 21, 1] {
        for (limit, step) in [(ROWS, 1), (ROWS, 3), (15, 5), (1, 1), (2, 1), (0, 1), (7, 100)] {
            for elements in [1, 3] {
                let sum = Sum { active, limit, step, elements, ..WHOLE };
                let expected: Vec<u32> = sum.expected().iter().map(|y| y.to_bits()).collect();
                // With all checks, every iteration accesses shadow memory separately. The
                // statistics of such a run must equal those of fused loops.
                let counted = sum.run(checks(Checks::All)).1.statistics;
                for level in LEVELS {
                    let (y, outcome) = sum.run(checks(level));
                    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
                    let y: Vec<u32> = y.iter().map(|y| y.to_bits()).collect();
                    assert_eq!(y, expected, "{active} threads, {limit} by {step}, {level:?}");
                    assert_eq!(outcome.statistics, counted, "{active} threads, {limit} by {step}, {level:?}");
                }
            }
        }
    }
}

#[test]
fn out_of_bounds_is_reported_in_its_iteration() {
    for level in [Checks::Accesses, Checks::All] {
        let (y, outcome) = Sum { limit: ROWS + 2, ..WHOLE }.run(checks(level));
        assert_eq!(findings(&outcome), [(Check::OutOfBounds, 3), (Check::OutOfBounds, 3)]);
        let counts: Vec<u64> = outcome.report.findings.iter().map(|f| f.count).collect();
        assert_eq!(counts, [2 * u64::from(THREADS); 2]);
        // An element that is not loaded is 0, and adds nothing.
        assert_eq!(y, WHOLE.expected());
    }
}

#[test]
fn uninitialized_sum_is_reported_once() {
    for level in [Checks::Accesses, Checks::All] {
        for elements in [1, 3] {
            let (_, outcome) = Sum { begun: false, elements, ..WHOLE }.run(checks(level));
            assert_eq!(findings(&outcome), [(Check::UninitializedLocal, 3)]);
            assert_eq!(outcome.report.findings[0].count, u64::from(THREADS));
        }
    }
}

#[test]
fn fuel_ends_in_the_same_iteration() {
    let whole = WHOLE.run(checks(Checks::All)).1.statistics.warp_instructions;
    for fuel in 0..whole {
        let of = |level| WHOLE.run(Options { fuel, ..checks(level) }).1;
        assert_eq!(of(Checks::Accesses), of(Checks::All), "{fuel}");
    }
}
