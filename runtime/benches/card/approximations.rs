//! The error of approximate instructions: of a card on all operands of 32 and 16 bits and random
//! ones of 64 bits, and of the interpreter on some of them.

use super::gpu::{Gpu, GpuMemory, LoadedModule};
use super::operands::Random;
use kernel_dsl::compiler::Approximation;
use kernel_dsl::compiler::ptx::parse;
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Checks, Launch, Options, ParameterValue, Program};
use std::error::Error;
use std::f64::consts::PI;
use std::fmt::Write;
use std::path::Path;
use std::thread;

/// Operands of one launch.
const PART: usize = 1 << 25;
/// The interpreter runs one in this many operands.
const STRIDE: u64 = 127;

/// The largest errors of an instruction.
#[derive(Clone, Copy, Default)]
struct Worst {
    /// In units of the last place of the true result, and the operand.
    ulp: (f64, u64),
    /// Relative to the true result, where the result is normal.
    relative: (f64, u64),
    /// Absolute, where the manual bounds the absolute error.
    absolute: (f64, u64),
    /// Absolute, in a second interval.
    wide: (f64, u64),
    /// Operands whose result is a NaN, an infinity or a number where the true result is not.
    wrong: (u64, u64),
}

fn max(a: (f64, u64), b: (f64, u64)) -> (f64, u64) {
    if b.0 > a.0 { b } else { a }
}

impl Worst {
    fn or(self, other: Worst) -> Worst {
        let at = if self.wrong.0 > 0 { self.wrong.1 } else { other.wrong.1 };
        Worst {
            ulp: max(self.ulp, other.ulp),
            relative: max(self.relative, other.relative),
            absolute: max(self.absolute, other.absolute),
            wide: max(self.wide, other.wide),
            wrong: (self.wrong.0 + other.wrong.0, at),
        }
    }

    fn fail(&mut self, at: u64) {
        self.wrong = (self.wrong.0 + 1, if self.wrong.0 == 0 { at } else { self.wrong.1 });
    }
}

/// A binary format: bits of the fraction, exponents of the least and greatest normal number.
#[derive(Clone, Copy)]
struct Format {
    fraction: i32,
    least: i32,
    greatest: i32,
}

const F32: Format = Format { fraction: 23, least: -126, greatest: 127 };
const F16: Format = Format { fraction: 10, least: -14, greatest: 15 };

/// The quantity that the manual bounds.
#[derive(Clone, Copy, PartialEq)]
enum Interval {
    /// The relative error or the error in units of the last place, everywhere.
    Everywhere,
    /// The absolute error for operands within 2π, and another within 100π.
    Periods,
    /// The absolute error between ½ and 2, the relative one elsewhere.
    AroundOne,
    /// The absolute error, everywhere.
    Absolute,
}

/// An instruction of one operand of at most 32 bits.
struct Unary {
    name: &'static str,
    what: Approximation,
    ftz: bool,
    half: bool,
    target: &'static str,
    interval: Interval,
    bound: &'static str,
    /// Whether the errors are within the documented bound.
    holds: fn(&Worst) -> bool,
}

#[rustfmt::skip]
const UNARY: &[Unary] = &[
    Unary { name: "rcp.approx.f32", what: Approximation::Reciprocal, ftz: false, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "1 ulp", holds: |w| w.ulp.0 <= 1.0 },
    Unary { name: "rcp.approx.ftz.f32", what: Approximation::Reciprocal, ftz: true, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "1 ulp", holds: |w| w.ulp.0 <= 1.0 },
    Unary { name: "sqrt.approx.f32", what: Approximation::SquareRoot, ftz: false, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "relative 2^-23", holds: |w| w.relative.0.log2() <= -23.0 },
    Unary { name: "sqrt.approx.ftz.f32", what: Approximation::SquareRoot, ftz: true, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "relative 2^-23", holds: |w| w.relative.0.log2() <= -23.0 },
    Unary { name: "rsqrt.approx.f32", what: Approximation::ReciprocalSquareRoot, ftz: false, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "relative 2^-22.9", holds: |w| w.relative.0.log2() <= -22.9 },
    Unary { name: "rsqrt.approx.ftz.f32", what: Approximation::ReciprocalSquareRoot, ftz: true, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "relative 2^-22.9", holds: |w| w.relative.0.log2() <= -22.9 },
    Unary { name: "sin.approx.f32", what: Approximation::Sine, ftz: false, half: false, target: "sm_61", interval: Interval::Periods, bound: "absolute 2^-20.5 within 2π, 2^-14.7 within 100π", holds: periods },
    Unary { name: "sin.approx.ftz.f32", what: Approximation::Sine, ftz: true, half: false, target: "sm_61", interval: Interval::Periods, bound: "absolute 2^-20.5 within 2π, 2^-14.7 within 100π", holds: periods },
    Unary { name: "cos.approx.f32", what: Approximation::Cosine, ftz: false, half: false, target: "sm_61", interval: Interval::Periods, bound: "absolute 2^-20.5 within 2π, 2^-14.7 within 100π", holds: periods },
    Unary { name: "cos.approx.ftz.f32", what: Approximation::Cosine, ftz: true, half: false, target: "sm_61", interval: Interval::Periods, bound: "absolute 2^-20.5 within 2π, 2^-14.7 within 100π", holds: periods },
    Unary { name: "lg2.approx.f32", what: Approximation::Logarithm, ftz: false, half: false, target: "sm_61", interval: Interval::AroundOne, bound: "absolute 2^-22 in (½, 2), relative 2^-22 elsewhere", holds: around_one },
    Unary { name: "lg2.approx.ftz.f32", what: Approximation::Logarithm, ftz: true, half: false, target: "sm_61", interval: Interval::AroundOne, bound: "absolute 2^-22 in (½, 2), relative 2^-22 elsewhere", holds: around_one },
    Unary { name: "ex2.approx.f32", what: Approximation::Exponential, ftz: false, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "2 ulp", holds: |w| w.ulp.0 <= 2.0 },
    Unary { name: "ex2.approx.ftz.f32", what: Approximation::Exponential, ftz: true, half: false, target: "sm_61", interval: Interval::Everywhere, bound: "2 ulp", holds: |w| w.ulp.0 <= 2.0 },
    Unary { name: "tanh.approx.f32", what: Approximation::Tangent, ftz: false, half: false, target: "sm_75", interval: Interval::Everywhere, bound: "relative 2^-11", holds: |w| w.relative.0.log2() <= -11.0 },
    Unary { name: "ex2.approx.f16", what: Approximation::Exponential, ftz: false, half: true, target: "sm_75", interval: Interval::Everywhere, bound: "relative 2^-9.9", holds: |w| w.relative.0.log2() <= -9.9 },
    Unary { name: "tanh.approx.f16", what: Approximation::Tangent, ftz: false, half: true, target: "sm_75", interval: Interval::Absolute, bound: "absolute 2^-10.987", holds: |w| w.absolute.0.log2() <= -10.987 },
];

fn periods(worst: &Worst) -> bool {
    worst.absolute.0.log2() <= -20.5 && worst.wide.0.log2() <= -14.7
}

fn around_one(worst: &Worst) -> bool {
    worst.absolute.0.log2() <= -22.0 && worst.relative.0.log2() <= -22.0
}

impl Unary {
    /// Returns the module: an entry `kernel` that writes the results of the operands base, base +
    /// stride, ….
    fn text(&self) -> String {
        let (operand, store) = match self.half {
            true => ("cvt.u16.u64 %h0, %d1;", "cvt.u32.u16 %r0, %h0;"),
            false => ("cvt.u32.u64 %r0, %d1;", ""),
        };
        let register = if self.half { "%h0" } else { "%r0" };
        module(
            self.target,
            &format!("{operand}\n{} {register}, {register};\n{store}\nst.global.u32 [%d2], %r0;", self.name),
        )
    }

    /// Adds the error of one result.
    fn add(&self, worst: &mut Worst, bits: u64, x: f64, exact: f64, given: f64) {
        let format = if self.half { F16 } else { F32 };
        let bounded = match self.interval {
            Interval::Periods => x.abs() <= 100.0 * PI || !x.is_finite(),
            _ => true,
        };
        if !bounded {
            if given.is_nan() || given.abs() > 1.0 {
                worst.fail(bits);
            }
            return;
        }
        let least = f64::exp2(format.least.into());
        if exact.is_nan() || given.is_nan() {
            if exact.is_nan() != given.is_nan() {
                worst.fail(bits);
            }
            return;
        }
        if exact.abs() >= f64::exp2(f64::from(format.greatest) + 1.0) || given.is_infinite() {
            if exact.abs() < f64::exp2(f64::from(format.greatest) + 1.0) * (1.0 - 1e-6)
                || given.abs() < exact.abs().min(6e4)
            {
                worst.fail(bits);
            }
            return;
        }
        if self.ftz && exact.abs() < least {
            if given != 0.0 && given.abs() > least {
                worst.fail(bits);
            }
            return;
        }
        let error = (given - exact).abs();
        // The biased exponent of the true result: 0 for a zero, which is below every least normal
        // number.
        let exponent = (exact.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        let last = exponent.max(format.least) - format.fraction;
        let ulp = error * f64::from_bits(((1023 - last) as u64) << 52);
        let inside = match self.interval {
            Interval::Everywhere => false,
            Interval::Periods => x.abs() <= 2.0 * PI,
            Interval::AroundOne => x > 0.5 && x < 2.0,
            Interval::Absolute => true,
        };
        worst.ulp = max(worst.ulp, (ulp, bits));
        if inside {
            worst.absolute = max(worst.absolute, (error, bits));
        } else if exact.abs() >= least {
            worst.relative = max(worst.relative, (error / exact.abs(), bits));
        }
        if self.interval == Interval::Periods {
            worst.wide = max(worst.wide, (error, bits));
        }
    }

    /// Returns the errors in words.
    fn show(&self, worst: &Worst) -> String {
        let Worst { ulp, relative, absolute, wide, wrong } = worst;
        let power = |(error, at): &(f64, u64)| format!("2^{:.2} at {at:#x}", error.log2());
        let errors = match self.interval {
            Interval::Everywhere => format!("{:.3} ulp at {:#x}, relative {}", ulp.0, ulp.1, power(relative)),
            Interval::Absolute => format!("absolute {}", power(absolute)),
            Interval::Periods => format!("absolute {}, {}", power(absolute), power(wide)),
            Interval::AroundOne => format!("absolute {}, relative {}", power(absolute), power(relative)),
        };
        errors + &others(*wrong)
    }

    /// Returns the errors of results.
    fn measure(&self, operands: impl Fn(usize) -> u64 + Sync, given: &[u32]) -> Worst {
        let share = given.len().div_ceil(thread::available_parallelism().map_or(1, usize::from)).max(1);
        let operands = &operands;
        thread::scope(|scope| {
            let parts = given.chunks(share).enumerate();
            let parts: Vec<_> = parts
                .map(|(part, given)| {
                    scope.spawn(move || {
                        let mut worst = Worst::default();
                        for (i, y) in given.iter().enumerate() {
                            let bits = operands(part * share + i);
                            let (x, y) = (self.value(bits as u32), self.value(*y));
                            let x = if self.ftz && x.abs() < f64::exp2(-126.0) { 0.0f64.copysign(x) } else { x };
                            if self.interval == Interval::Periods && x.is_finite() && x.abs() > 100.0 * PI {
                                self.add(&mut worst, bits, x, 0.0, y);
                            } else {
                                self.add(&mut worst, bits, x, self.what.exact(x), y);
                            }
                        }
                        worst
                    })
                })
                .collect();
            parts.into_iter().map(|p| p.join().expect("a measurement does not panic")).fold(Worst::default(), Worst::or)
        })
    }

    fn value(&self, bits: u32) -> f64 {
        if self.half { half(bits as u16) } else { f32::from_bits(bits).into() }
    }
}

fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * f64::exp2(-24.0),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * f64::exp2(f64::from(exponent) - 25.0),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// Returns a module whose entry `kernel(base, stride, out)` has its operand in `%d1` and the
/// address of its result in `%d2`.
fn module(target: &str, body: &str) -> String {
    format!(
        ".version 7.8\n.target {target}\n.address_size 64\n\
         .visible .entry kernel(.param .u64 base, .param .u64 stride, .param .u64 out)\n{{\n\
         .reg .b16 %h<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n\
         mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n\
         ld.param.u64 %d1, [base];\nld.param.u64 %d3, [stride];\ncvt.u64.u32 %d4, %r1;\nmad.lo.u64 %d1, %d4, %d3, %d1;\n\
         ld.param.u64 %d2, [out];\ncvta.to.global.u64 %d2, %d2;\nmad.wide.u32 %d2, %r1, 4, %d2;\n{body}\nret;\n}}\n"
    )
}

/// Runs a module in the interpreter on operands 0, [`STRIDE`], ….
fn interpret(text: &str, results: &mut [u32], stride: u64) -> Result<(), Box<dyn Error>> {
    let program = Program::decode(&parse(text).map_err(|e| e.to_string())?, "kernel")?;
    let launch = Launch {
        grid: [results.len() as u32 / 256, 1, 1],
        block: [256, 1, 1],
        dynamic_shared: 0,
        buffers: vec![BufferArgument {
            name: "out".into(),
            bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(results)),
        }],
        parameters: vec![
            ParameterValue::Bits(0),
            ParameterValue::Bits(stride),
            ParameterValue::Address { buffer: 0, offset: 0 },
        ],
        options: Options { checks: Checks::Values, ..Options::default() },
    };
    program.run(launch)?;
    Ok(())
}

/// Measures the approximate instructions whose name begins with `prefix`, and writes
/// `approximations.md`.
pub fn run(folder: &Path, prefix: &str) -> Result<(), Box<dyn Error>> {
    let gpu = Gpu::open()?;
    gpu.enter()?;
    let mut page = format!(
        "# Approximate instructions\n\n\
         This page has the largest errors of the approximate instructions, on {} and in the interpreter.\n\
         The column *within* says whether the card keeps the bound that the manual documents. An ulp is the distance \
         between the numbers next to the true result.\n\n\
         The card is measured on all operands of `f32` and `f16`, on 2^22 random ones of `f64`, and on 2^24 random \
         pairs for divisions.\n\
         The interpreter is measured on the same operands, except only one in {STRIDE} of `f32`.\n\n\
         `cargo bench -p runtime --bench card -- approximations FOLDER` writes this page.\n\n\
         | instruction | documented bound | card | within | interpreter |\n|---|---|---|---|---|\n",
        gpu.name()?
    );
    let memory = gpu.allocate(4 * PART)?;
    let mut results = vec![0u32; PART];
    for unary in UNARY.iter().filter(|unary| unary.name.starts_with(prefix)) {
        let text = unary.text();
        let loaded = gpu.load(&text)?;
        let all = if unary.half { 1 << 16 } else { 1u64 << 32 };
        let mut card = Worst::default();
        for base in (0..all).step_by(PART) {
            let count = PART.min((all - base) as usize);
            launch(&loaded, count, base, &memory)?;
            memory.read(&mut results[..count])?;
            card = card.or(unary.measure(|i| base + i as u64, &results[..count]));
        }
        let (count, stride) = if unary.half { (1 << 16, 1) } else { (PART, STRIDE) };
        interpret(&text, &mut results[..count], stride)?;
        let ours = unary.measure(|i| (i as u64 * stride) & 0xffff_ffff, &results[..count]);
        let within = (unary.holds)(&card) && card.wrong.0 == 0;
        let shown = [card, ours].map(|worst| unary.show(&worst));
        row(&mut page, unary.name, unary.bound, shown, Some(within))?;
    }
    doubles(gpu, prefix, &mut page)?;
    quotients(gpu, prefix, &mut page)?;
    std::fs::write(folder.join("approximations.md"), page)?;
    Ok(())
}

/// Adds a row to the table.
fn row(
    page: &mut String,
    name: &str,
    bound: &str,
    [card, ours]: [String; 2],
    within: Option<bool>,
) -> Result<(), Box<dyn Error>> {
    let within = within.map_or("", |within| if within { "yes" } else { "no" });
    writeln!(page, "| `{name}` | {bound} | {card} | {within} | {ours} |")?;
    println!("{}", page.lines().last().unwrap_or_default());
    Ok(())
}

/// Returns a mention of results of another kind than the true ones: NaNs, infinities or numbers.
fn others((count, at): (u64, u64)) -> String {
    if count == 0 { String::new() } else { format!("; {count} results of another kind, as at {at:#x}") }
}

fn launch(loaded: &LoadedModule, count: usize, base: u64, memory: &GpuMemory) -> Result<(), Box<dyn Error>> {
    // SAFETY: the kernel writes four bytes a thread to the memory, which has room for `count`.
    unsafe { loaded.run([count as u32 / 256, 256], &[base, 1, memory.address()])? };
    Ok(())
}

/// Returns a module of an entry `kernel(in, out)`: `body` computes `%d6` from `%d4` and `%d5`, two
/// words of each thread.
fn pairs(body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_61\n.address_size 64\n.visible .entry kernel(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .b32 %r<8>;\n.reg .b64 %d<8>;\n\
         mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n\
         ld.param.u64 %d1, [in];\ncvta.to.global.u64 %d1, %d1;\nmad.wide.u32 %d1, %r1, 16, %d1;\n\
         ld.param.u64 %d2, [out];\ncvta.to.global.u64 %d2, %d2;\nmad.wide.u32 %d2, %r1, 8, %d2;\n\
         ld.global.u64 %d4, [%d1];\nld.global.u64 %d5, [%d1+8];\ncvt.u32.u64 %r4, %d4;\ncvt.u32.u64 %r5, %d5;\n{body}\n\
         st.global.u64 [%d2], %d6;\nret;\n}}\n"
    )
}

/// Returns the results of a module of pairs, on the card and in the interpreter.
fn both(gpu: Gpu, text: &str, input: &[[u64; 2]]) -> Result<[Vec<u64>; 2], Box<dyn Error>> {
    let loaded = gpu.load(text)?;
    let (mut from, to) = (gpu.allocate(size_of_val(input))?, gpu.allocate(8 * input.len())?);
    let (mut card, mut ours) = (vec![0u64; input.len()], vec![0u64; input.len()]);
    from.write(input)?;
    // SAFETY: the kernel reads 16 bytes and writes 8 a thread, which are allocated.
    unsafe { loaded.run([input.len() as u32 / 256, 256], &[from.address(), to.address()])? };
    to.read(&mut card)?;
    let program = Program::decode(&parse(text).map_err(|e| e.to_string())?, "kernel")?;
    program.run(Launch {
        grid: [input.len() as u32 / 256, 1, 1],
        block: [256, 1, 1],
        dynamic_shared: 0,
        buffers: vec![
            BufferArgument { name: "in".into(), bytes: ArgumentBytes::Shared(bytemuck::cast_slice(input)) },
            BufferArgument { name: "out".into(), bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut ours)) },
        ],
        parameters: vec![
            ParameterValue::Address { buffer: 0, offset: 0 },
            ParameterValue::Address { buffer: 1, offset: 0 },
        ],
        options: Options { checks: Checks::Values, ..Options::default() },
    })?;
    Ok([card, ours])
}

/// Measures the instructions with one `f64` operand.
fn doubles(gpu: Gpu, prefix: &str, page: &mut String) -> Result<(), Box<dyn Error>> {
    let mut random = Random::new(64);
    let input: Vec<[u64; 2]> = (0..1 << 22).map(|_| [random.next() & (u64::MAX >> random.below(2)), 0]).collect();
    for (name, documented) in
        [("rcp.approx.ftz.f64", "none"), ("rsqrt.approx.ftz.f64", "none"), ("rsqrt.approx.f64", "none")]
    {
        if !name.starts_with(prefix) {
            continue;
        }
        let [card, ours] = both(gpu, &pairs(&format!("{name} %d6, %d4;")), &input)?;
        let shown = [card, ours].map(|given| {
            let (mut worst, mut wrong) = ((0.0f64, 0u64), (0, 0));
            for ([bits, _], y) in input.iter().zip(given) {
                let upper = if name.contains(".ftz") { bits & !0xffff_ffff } else { *bits };
                let (x, y) = (f64::from_bits(upper), f64::from_bits(y));
                let x = if name.contains(".ftz") && x.is_subnormal() { 0.0f64.copysign(x) } else { x };
                let exact = if name.starts_with("rcp") { 1.0 / x } else { 1.0 / x.sqrt() };
                let flushed = name.contains(".ftz") && exact.is_subnormal();
                if exact.is_nan() || exact.is_infinite() || exact == 0.0 || flushed {
                    let expected = if flushed { 0.0 } else { exact };
                    if !(expected.is_nan() && y.is_nan() || expected == y) {
                        wrong = (wrong.0 + 1, *bits);
                    }
                    continue;
                }
                let error = if name.starts_with("rcp") { x.mul_add(-y, 1.0).abs() } else { root_error(x, y) };
                worst = max(worst, (error, *bits));
            }
            format!("relative 2^{:.2} at {:#x}{}", worst.0.log2(), worst.1, others(wrong))
        });
        row(page, name, documented, shown, None)?;
    }
    Ok(())
}

/// Returns the relative error of y as 1/√x, from 1 − x·y² in twice the precision.
fn root_error(x: f64, y: f64) -> f64 {
    // Scales in steps, so that no intermediate result leaves the range.
    let half = x.log2().floor() as i32 >> 1;
    let scale = f64::exp2(f64::from(-half));
    let (x, y) = (x * scale * scale, y * f64::exp2(f64::from(half)));
    let square = y * y;
    let low = y.mul_add(y, -square);
    let product = x * square;
    let rest = x.mul_add(square, -product);
    ((1.0 - product) - rest - x * low).abs() / 2.0
}

/// Measures the approximate divisions.
fn quotients(gpu: Gpu, prefix: &str, page: &mut String) -> Result<(), Box<dyn Error>> {
    let mut random = Random::new(32);
    let input: Vec<[u64; 2]> = (0..1 << 24).map(|_| [random.next() >> 32, random.next() >> 32]).collect();
    for name in ["div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32"] {
        if !name.starts_with(prefix) {
            continue;
        }
        let [card, ours] = both(gpu, &pairs(&format!("{name} %r6, %r4, %r5;\ncvt.u64.u32 %d6, %r6;")), &input)?;
        let ftz = name.contains(".ftz");
        let unary = Unary { ftz, bound: "2 ulp", name, ..UNARY[0] };
        let worst = [card, ours].map(|given| {
            let mut worst = Worst::default();
            for ([a, b], y) in input.iter().zip(given) {
                let flush = |x: f32| if ftz && x.is_subnormal() { 0.0f32.copysign(x) } else { x };
                let (x, z) = (flush(f32::from_bits(*a as u32)), flush(f32::from_bits(*b as u32)));
                let beyond = name.contains("approx") && z.is_finite() && z.abs() > f32::exp2(126.0);
                let exact = if beyond { f64::from(x) * 0.0f64.copysign(z.into()) } else { f64::from(x) / f64::from(z) };
                unary.add(&mut worst, a << 32 | b, 1.0, exact, f32::from_bits(y as u32).into());
            }
            worst
        });
        let shown = worst.map(|w| format!("{:.3} ulp at {:#x}{}", w.ulp.0, w.ulp.1, others(w.wrong)));
        row(page, name, "2 ulp", shown, Some(worst[0].ulp.0 <= 2.0 && worst[0].wrong.0 == 0))?;
    }
    Ok(())
}
