//! Tests of inline PTX: results against plain Rust on every executor, optimization of the blocks,
//! and instructions that an executor rejects.

use super::support::{agree, assemble, checker};
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{Target, compile, driver, lower};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input, Random};
use runtime::{Device, Error};

fn exact(argument: usize, values: impl IntoIterator<Item = u32>) -> Expected {
    Expected::new(argument, values.into_iter().map(f64::from).collect(), Bound::Exact)
}

/// Computes a · b + c in 64 bits, a − b with its borrow, and a + c in 64 bits.
#[kernel(block = 64, grid = a.len().div_ceil(64))]
#[requires(b.len() == a.len(), c.len() == a.len(), out.len() == a.len() * 6)]
pub fn carries(a: &[u32], b: &[u32], c: &[u32], out: &mut [u32]) {
    let i = grid::index();
    if i < a.len() {
        let (low, high) = wide_product(a[i], b[i], c[i]);
        let (difference, borrowed) = ptx!(
            "sub.cc.u32 {d}, {a}, {b};",
            "subc.u32 {e}, 0, 0;",
            a = in(u32) a[i],
            b = in(u32) b[i],
            d = out(u32),
            e = out(u32),
        );
        let sum = ptx!(
            "{ .reg .u32 low, high; add.cc.u32 low, {a}, {b}; addc.u32 high, 0, 0; mov.b64 {d}, {low, high}; }",
            a = in(u32) a[i],
            b = in(u32) c[i],
            d = out(u64),
        );
        out[6 * i] = low;
        out[6 * i + 1] = high;
        out[6 * i + 2] = difference;
        out[6 * i + 3] = borrowed;
        out[6 * i + 4] = sum as u32;
        out[6 * i + 5] = (sum >> 32) as u32;
    }
}

#[device]
fn wide_product(a: u32, b: u32, c: u32) -> (u32, u32) {
    ptx!(
        "mad.lo.cc.u32 {low}, {a}, {b}, {c};",
        "madc.hi.u32 {high}, {a}, {b}, 0",
        a = in(u32) a,
        b = in(u32) b,
        c = in(u32) c,
        low = out(u32),
        high = out(u32),
    )
}

fn test_carries(checker: &Checker) {
    let mut random = Random::new(1);
    let [a, b, c]: [Vec<u32>; 3] = std::array::from_fn(|_| random.special_values(130));
    let expected = (0..130).flat_map(|i| {
        let product = u64::from(a[i]) * u64::from(b[i]) + u64::from(c[i]);
        let (difference, borrowed) = a[i].overflowing_sub(b[i]);
        let sum = u64::from(a[i]) + u64::from(c[i]);
        let borrowed = if borrowed { u32::MAX } else { 0 };
        [product as u32, (product >> 32) as u32, difference, borrowed, sum as u32, (sum >> 32) as u32]
    });
    let expected = exact(3, expected);
    let inputs = vec![Input::slice(&a), Input::slice(&b), Input::slice(&c), Input::slice(&vec![0u32; 130 * 6])];
    agree::<carries>(checker, "carries", inputs, &[expected]);
}

/// Uses instructions that the language has no method for.
#[kernel(block = 64, grid = a.len().div_ceil(64))]
#[requires(b.len() == a.len(), c.len() == a.len(), out.len() == a.len() * 8)]
pub fn bits(a: &[u32], b: &[u32], c: &[u32], out: &mut [u32]) {
    let i = grid::index();
    if i < a.len() {
        let (a, b, c) = (a[i], b[i], c[i]);
        out[8 * i] =
            ptx!("lop3.b32 {d}, {a}, {b}, {c}, 0xE8;", a = in(u32) a, b = in(u32) b, c = in(u32) c, d = out(u32));
        out[8 * i + 1] = ptx!("prmt.b32 {d}, {a}, {b}, 0x6240;", a = in(u32) a, b = in(u32) b, d = out(u32));
        out[8 * i + 2] = ptx!("bfe.s32 {d}, {a}, 5, 7;", a = in(i32) a as i32, d = out(i32)) as u32;
        out[8 * i + 3] =
            ptx!("shf.r.wrap.b32 {d}, {a}, {b}, {n};", a = in(u32) a, b = in(u32) b, n = in(usize) i, d = out(u32));
        out[8 * i + 4] = ptx!("bfind.u32 {d}, {a};", a = in(u32) a, d = out(u32));
        out[8 * i + 5] = ptx!("dp4a.u32.u32 {d}, {a}, {b}, {d};", a = in(u32) a, b = in(u32) b, d = inout(u32) c);
        out[8 * i + 6] = ptx!("vadd4.u32.u32.u32.sat {d}, {a}, {b}, {a};", a = in(u32) a, b = in(u32) b, d = out(u32));
        out[8 * i + 7] = ptx!("sad.u32 {d}, {a}, {b}, {c};", a = in(u32) a, b = in(u32) b, c = in(u32) c, d = out(u32));
    }
}

fn test_bits(checker: &Checker) {
    let mut random = Random::new(2);
    let [a, b, c]: [Vec<u32>; 3] = std::array::from_fn(|_| random.special_values(130));
    let expected = (0..130).flat_map(|i| {
        let (x, y, z) = (a[i], b[i], c[i]);
        let [p, q] = [x, y].map(u32::to_le_bytes);
        let dot = p.iter().zip(q).fold(z, |sum, (p, q)| sum.wrapping_add(u32::from(*p) * u32::from(q)));
        let pair = u64::from(y) << 32 | u64::from(x);
        [
            x & y | x & z | y & z,
            u32::from_le_bytes([p[0], q[0], p[2], q[2]]),
            (((x >> 5) as i32) << 25 >> 25) as u32,
            (pair >> (i % 32)) as u32,
            if x == 0 { u32::MAX } else { 31 - x.leading_zeros() },
            dot,
            u32::from_le_bytes(std::array::from_fn(|k| p[k].saturating_add(q[k]))),
            x.abs_diff(y).wrapping_add(z),
        ]
    });
    let expected = exact(3, expected);
    let inputs = vec![Input::slice(&a), Input::slice(&b), Input::slice(&c), Input::slice(&vec![0u32; 130 * 8])];
    agree::<bits>(checker, "bits", inputs, &[expected]);
}

/// Uses every type of operand, and guards.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(out.len() == x.len() * 8)]
pub fn types(x: &[i32], out: &mut [u32]) {
    let i = grid::index();
    if i < x.len() {
        let v = x[i];
        // A shift of 16 bits by 16 or more gives 0.
        let short = ptx!("shl.b16 {d}, {a}, 3;", a = in(i16) v as i16, d = out(i16));
        out[8 * i] = short as i32 as u32;
        out[8 * i + 1] = ptx!("mul.wide.u16 {d}, {a}, {a};", a = in(u16) v as u16, d = out(u32));
        let (small, either) = ptx!(
            "setp.lt.or.s32 {p}|{q}, {a}, {b}, {c};",
            a = in(i32) v,
            b = in(i32) 1000,
            c = in(bool) i % 2 == 0,
            p = out(bool),
            q = out(bool),
        );
        out[8 * i + 2] = if small { 1 } else { 0 } + if either { 2 } else { 0 };
        out[8 * i + 3] = ptx!(
            "@{p} add.s32 {d}, {d}, 7;",
            "@!{p} neg.s32 {d}, {d};",
            p = in(bool) v > 0,
            d = inout(i32) v >> 8,
        ) as u32;
        let big = ptx!("mul.wide.s32 {d}, {a}, {a};", a = in(i32) v, d = out(i64));
        out[8 * i + 4] = (big >> 16) as u32;
        let half = ptx!("cvt.rn.f16.s32 {d}, {a};", a = in(i32) v % 4096, d = out(f16));
        out[8 * i + 5] = ptx!("cvt.rzi.s32.f16 {d}, {a};", a = in(f16) half, d = out(i32)) as u32;
        let rounded = bf16::from_f32((v % 256) as f32);
        out[8 * i + 6] = ptx!("mov.b32 {d}, {0, {a}};", a = in(bf16) rounded, d = out(u32));
        out[8 * i + 7] = ptx!("bfe.u64 {d}, {a}, 20, 30;", a = in(u64) big as u64, d = out(u64)) as u32;
    }
}

fn test_types(checker: &Checker) {
    let x: Vec<i32> = Random::new(3).special_values(130);
    let expected = x.iter().enumerate().flat_map(|(i, &v)| {
        let big = i64::from(v) * i64::from(v);
        let short = (v as i16).wrapping_shl(3);
        let even = i % 2 == 0;
        [
            i32::from(short) as u32,
            u32::from(v as u16) * u32::from(v as u16),
            u32::from(v < 1000 || even) + 2 * u32::from(v >= 1000 || even),
            if v > 0 { (v >> 8) + 7 } else { (v >> 8).wrapping_neg() } as u32,
            (big >> 16) as u32,
            f16::from_f32((v % 4096) as f32).to_f32() as i32 as u32,
            ((v % 256) as f32).to_bits(),
            (big as u64 >> 20) as u32 & 0x3fff_ffff,
        ]
    });
    let expected = exact(1, expected);
    agree::<types>(checker, "types", vec![Input::slice(&x), Input::slice(&vec![0u32; 130 * 8])], &[expected]);
}

/// Uses roundings that Rust's operators do not have.
#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(y.len() == x.len(), out.len() == x.len() * 4, wide.len() == x.len())]
pub fn roundings(x: &[f32], y: &[f32], out: &mut [f32], wide: &mut [f64]) {
    let i = grid::index();
    if i < x.len() {
        let (x, y) = (x[i], y[i]);
        out[4 * i] = ptx!("add.rz.f32 {d}, {x}, {y};", x = in(f32) x, y = in(f32) y, d = out(f32));
        out[4 * i + 1] = ptx!("cvt.rpi.f32.f32 {d}, {x};", x = in(f32) x * 100.0, d = out(f32));
        out[4 * i + 2] = ptx!("fma.rn.ftz.sat.f32 {d}, {x}, {y}, 0.5;", x = in(f32) x, y = in(f32) y, d = out(f32));
        out[4 * i + 3] =
            ptx!(".reg .b32 t; mov.b32 t, {x}; and.b32 t, t, 0xFFFF0000; mov.b32 {d}, t;", x = in(f32) x, d = out(f32));
        wide[i] = ptx!("mul.rm.f64 {d}, {x}, {y};", x = in(f64) x as f64, y = in(f64) 0.1, d = out(f64));
    }
}

fn test_roundings(checker: &Checker) {
    let mut random = Random::new(4);
    let (x, y): (Vec<f32>, Vec<f32>) = (random.values(130), random.values(130));
    // The sum is exact in f64, and a cast to f32 rounds to nearest. The result steps back once if
    // the cast rounded away from zero.
    let towards_zero = |sum: f64| {
        let near = sum as f32;
        if f64::from(near).abs() > sum.abs() { f32::from_bits(near.to_bits() - 1) } else { near }
    };
    let expected = x.iter().zip(&y).flat_map(|(&x, &y)| {
        [
            towards_zero(f64::from(x) + f64::from(y)),
            (x * 100.0).ceil(),
            x.mul_add(y, 0.5).clamp(0.0, 1.0),
            f32::from_bits(x.to_bits() & 0xffff_0000),
        ]
    });
    let out = Expected::new(2, expected.map(f64::from).collect(), Bound::Exact);
    let down = x.iter().map(|x| {
        let x = f64::from(*x);
        let near = x * 0.1;
        // The rounding error of rounding to nearest.
        let up = x.mul_add(0.1, -near) < 0.0;
        if up { near.next_down() } else { near }
    });
    let wide = Expected::new(3, down.collect(), Bound::Exact);
    let inputs =
        vec![Input::slice(&x), Input::slice(&y), Input::slice(&vec![0f32; 520]), Input::slice(&vec![0f64; 130])];
    agree::<roundings>(checker, "roundings", inputs, &[out, wide]);
}

/// Inline PTX in generic functions, methods and closures, in loops and conditions.
#[device]
pub mod operations {
    use kernel_dsl::prelude::*;

    /// A function of three words.
    pub trait Ternary: Copy {
        /// Returns the function value.
        fn apply(self, a: u32, b: u32, c: u32) -> u32;
    }

    /// The bitwise majority of three words.
    #[derive(Clone, Copy)]
    pub struct Majority;
    impl Ternary for Majority {
        fn apply(self, a: u32, b: u32, c: u32) -> u32 {
            ptx!("lop3.b32 {d}, {a}, {b}, {c}, 0xE8;", a = in(u32) a, b = in(u32) b, c = in(u32) c, d = out(u32))
        }
    }

    /// The bitwise parity of three words.
    #[derive(Clone, Copy)]
    pub struct Parity;
    impl Ternary for Parity {
        fn apply(self, a: u32, b: u32, c: u32) -> u32 {
            ptx!("lop3.b32 {d}, {a}, {b}, {c}, 0x96;", a = in(u32) a, b = in(u32) b, c = in(u32) c, d = out(u32))
        }
    }

    /// Applies the function repeatedly.
    pub fn repeated<T: Ternary, const TIMES: usize>(f: T, a: u32, b: u32) -> u32 {
        let mut x = a;
        for i in 0..TIMES {
            x = f.apply(x, b, i as u32);
        }
        x
    }
}
use operations::{Majority, Parity, Ternary, repeated};

#[kernel(block = 64, grid = x.len().div_ceil(64), instances(T = Majority | Parity, N = 3))]
#[requires(out.len() == x.len() * 3)]
pub fn generic<T: Ternary, const N: usize>(f: T, x: &[u32], out: &mut [u32]) {
    let i = grid::index();
    if i < x.len() {
        out[3 * i] = repeated::<T, N>(f, x[i], 0x00ff_00ff);
        let reverse = |v: u32| ptx!("brev.b32 {d}, {a};", a = in(u32) v, d = out(u32));
        let mut sum = 0;
        for k in rolled(0..x[i] as usize % 5) {
            sum += reverse(k as u32) >> 24;
        }
        out[3 * i + 1] = sum;
        out[3 * i + 2] = 0;
        if ptx!("testp.infinite.f32 {p}, {a};", a = in(f32) f32::from_bits(x[i]), p = out(bool)) {
            out[3 * i + 2] = ptx!("popc.b32 {d}, {a};", a = in(u32) x[i], d = out(u32));
        }
    }
}

fn test_generic(checker: &Checker) {
    let mut x: Vec<u32> = Random::new(5).values(128);
    x.extend([f32::INFINITY.to_bits(), f32::NEG_INFINITY.to_bits()]);
    let majority = |a: u32, b: u32, c: u32| a & b | a & c | b & c;
    let parity = |a: u32, b: u32, c: u32| a ^ b ^ c;
    let expected = |f: fn(u32, u32, u32) -> u32| {
        let all = x.iter().flat_map(|&x| {
            let infinite = f32::from_bits(x).is_infinite();
            [
                (0..3).fold(x, |x, i| f(x, 0x00ff_00ff, i)),
                (0..x % 5).map(|k| k.reverse_bits() >> 24).sum(),
                if infinite { x.count_ones() } else { 0 },
            ]
        });
        exact(1, all)
    };
    let inputs = || vec![Input::slice(&x), Input::slice(&vec![0u32; 390])];
    agree::<generic<Majority, 3>>(checker, "majority", inputs(), &[expected(majority)]);
    agree::<generic<Parity, 3>>(checker, "parity", inputs(), &[expected(parity)]);
}

/// Reads the position of a thread, and registers of the machine.
#[kernel(block = (16, 8), grid = (2, 3))]
#[requires(out.len() == 6 * 128 * 3)]
pub fn position(out: &mut [u32]) {
    let thread = (block::y() * 2 + block::x()) * 128 + thread::index();
    out[3 * thread] = ptx!(
        ".reg .u32 t;",
        "mov.u32 {d}, %tid.x;",
        "mov.u32 t, %ctaid.y; mad.lo.u32 {d}, t, 1000, {d};",
        "mov.u32 t, %laneid; mad.lo.u32 {d}, t, 100000, {d};",
        d = out(u32),
    );
    out[3 * thread + 1] = ptx!("mov.u32 {d}, %lanemask_lt;", d = out(u32));
    let before = ptx!("mov.u64 {d}, %clock64;", d = out(u64));
    let after = ptx!("mov.u64 {d}, %clock64;", d = out(u64));
    // The time itself is unspecified, so that only its order is stored.
    out[3 * thread + 2] = if after > before { 1 } else { 0 };
}

fn test_position(checker: &Checker) {
    let expected = (0..6u32).flat_map(|block| {
        (0..128u32).flat_map(move |thread| {
            let lane = thread % 32;
            [thread % 16 + 1000 * (block / 2) + 100_000 * lane, (1 << lane) - 1, 1]
        })
    });
    let expected = exact(0, expected);
    agree::<position>(checker, "position", vec![Input::slice(&vec![0u32; 6 * 128 * 3])], &[expected]);
}

/// Uses instructions of later targets where they exist.
#[kernel(block = 32, grid = 1)]
pub fn later(out: &mut [u32]) {
    let i = thread::index();
    if target::SM >= 70 {
        ptx!("nanosleep.u32 {n};", n = in(u32) 20);
        out[i] = ptx!("bmsk.wrap.b32 {d}, 4, {n};", n = in(u32) 9, d = out(u32));
    } else {
        out[i] = ((1 << 9) - 1) << 4;
    }
}

fn all(checker: &Checker) {
    test_carries(checker);
    test_bits(checker);
    test_types(checker);
    test_roundings(checker);
    test_generic(checker);
    test_position(checker);
    agree::<later>(checker, "later", vec![Input::slice(&[0u32; 32])], &[exact(0, [0x1ff0; 32])]);
}

#[test]
fn blocks_agree_with_rust() {
    all(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_blocks_agree_with_rust() {
    all(&checker(true));
}

#[test]
fn ptxas_accepts_the_blocks() {
    assemble::<carries>();
    assemble::<bits>();
    assemble::<types>();
    assemble::<roundings>();
    assemble::<generic<Majority, 3>>();
    assemble::<position>();
    assemble::<later>();
    assemble::<moved>();
}

/// Contains blocks for the passes: the first two become one, the third is removed, and the fourth
/// moves before the loop. Reads of the machine's state remain.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() >= 32, out.len() >= 32)]
pub fn moved(x: &[u32], out: &mut [u32]) {
    let i = thread::index();
    let v = x[i];
    let a = ptx!("brev.b32 {d}, {a};", a = in(u32) v, d = out(u32));
    let b = ptx!("brev.b32 {d}, {a};", a = in(u32) v, d = out(u32));
    let (_unused, _too) = ptx!("bfind.u32 {d}, {a}; popc.b32 {e}, {a};", a = in(u32) a, d = out(u32), e = out(u32));
    let mut sum = a + b;
    for k in rolled(0..8) {
        sum ^= ptx!("clz.b32 {d}, {a};", a = in(u32) a, d = out(u32)) + k as u32;
        ptx!("pmevent 3;");
    }
    let _clock = ptx!("mov.u32 {d}, %clock;", d = out(u32));
    out[i] = sum;
}

#[test]
fn passes_optimize_blocks() {
    insta::assert_snapshot!(moved::PTX);
    let program = moved::ARTIFACT.program().unwrap();
    let kernel = lower::lower(&program, &Instance::default(), Target::SM_61).unwrap();
    let ir = kernel.to_string();
    for line in [
        "ptx (in a: u32, out d: u32) \"brev.b32 {d}, {a};\" with ",
        "ptx (in a: u32, out d: u32, out e: u32) \"bfind.u32 {d}, {a}; popc.b32 {e}, {a};\" with ",
        "ptx (out d: u32) \"mov.u32 {d}, %clock;\"\n",
    ] {
        assert!(ir.contains(line), "no `{line}` in:\n{ir}");
    }
    driver::lowered(&program, &Instance::default(), Target::SM_61).unwrap();
}

#[kernel(block = 32, grid = 1)]
pub fn divided(x: &[u32], out: &mut [u32]) {
    let i = thread::index();
    out[i] = ptx!("rem.u32 {d}, 100, {a};", a = in(u32) x[i], d = out(u32));
}

#[kernel(block = 32, grid = 1)]
pub fn stopped(out: &mut [u32]) {
    ptx!("brkpt;");
    out[thread::index()] = 1;
}

#[kernel(block = 32, grid = 1)]
pub fn environment(out: &mut [u32]) {
    out[thread::index()] = ptx!("mov.u32 {d}, %envreg3;", d = out(u32));
}

#[test]
fn oracle_reports_divisions_by_zero() {
    let device = Device::cpu();
    let x = device.upload(&std::array::from_fn::<u32, 32, _>(|i| i as u32)).unwrap();
    let mut out = device.upload(&[0u32; 32]).unwrap();
    let told = divided::launch(&device, &x, &mut out).unwrap_err().to_string();
    assert!(
        told.starts_with("error[division-by-zero]: `rem.u32 {d}, 100, {a}` has no defined result: it divides by zero"),
        "{told}"
    );
    assert!(told.contains("thread [0, 0, 0] of block [0, 0, 0]"), "{told}");
    let out = out.download().unwrap();
    assert!((1..32).all(|i| out[i as usize] == 100 % i));
}

/// Checks that the interpreter rejects an unsupported instruction by its name, before it runs
/// anything.
#[test]
fn oracle_rejects_unsupported_instructions() {
    let device = Device::cpu();
    let mut out = device.upload(&[7u32; 32]).unwrap();
    let error = stopped::launch(&device, &mut out).unwrap_err();
    assert!(matches!(error, Error::Interpreter { .. }), "{error}");
    assert_eq!(out.download().unwrap(), [7; 32]);
    let refused = error.to_string();
    let start =
        "the CPU device cannot run stopped: the interpreter cannot run this kernel: tests/tests/language/inline.rs:";
    let end = ": inline PTX, `brkpt`: it does more than compute";
    assert!(refused.starts_with(start) && refused.ends_with(end), "{refused}");
}

/// Checks that reads of values that depend on the machine are reported.
#[test]
fn oracle_reports_machine_dependent_reads() {
    let device = Device::cpu();
    let mut out = device.upload(&[7u32; 32]).unwrap();
    let told = environment::launch(&device, &mut out).unwrap_err().to_string();
    assert!(
        told.contains("warning[machine-dependent]: inline PTX reads a value that differs between machines"),
        "{told}"
    );
    assert!(told.contains("%envreg3"), "{told}");
}

/// Checks instructions of later targets, and the message on a target that lacks them.
#[test]
fn targets_have_their_instructions() {
    assert!(!later::PTX.contains("nanosleep"));
    let program = later::ARTIFACT.program().unwrap();
    let volta = compile(&program, &Instance::default(), Target::SM_70).unwrap();
    assert!(
        volta.contains(".version 7.6") && volta.contains("nanosleep.u32") && volta.contains("bmsk.wrap.b32"),
        "{volta}"
    );
}

/// Checks that a device function with inline PTX cannot be called on the host.
#[test]
#[should_panic(expected = "`ptx!` needs a device")]
fn device_functions_with_blocks_do_not_run_on_the_host() {
    wide_product(1, 2, 3);
}
