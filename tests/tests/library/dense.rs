//! Tests of matrix products, on the CPU and on a GPU: with every plan the result agrees with `f64`,
//! and other memory is unchanged.

use kernel_dsl::half::f16;
use kernels_rs::gemm::Gemm;
use kernels_rs::gemm::plan::{GemmPlan, GemmTile, GemvWidth};
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer, Slot, SlotMut};

/// Returns γ(n), the bound of n successive roundings.
fn gamma(n: usize) -> f64 {
    let nu = n as f64 / f64::from(1 << 24);
    nu / (1.0 - nu)
}

/// A batch of matrices in memory: extents and strides. A known value fills the gaps between
/// elements.
struct Matrices {
    values: Vec<f32>,
    extents: [usize; 3],
    strides: [usize; 3],
}

const GAP: f32 = 1234.5;

impl Matrices {
    fn new(random: &mut Random, extents: [usize; 3], gap: usize, shared: bool) -> Matrices {
        let [n, rows, cols] = extents;
        let pitch = (cols + gap).max(1);
        let plane = if shared { 0 } else { (rows * pitch + gap).max(1) };
        let mut values = vec![GAP; if shared { rows * pitch } else { n * plane } + gap];
        let drawn: Vec<f32> = random.values(n * rows * cols);
        for (i, x) in drawn.into_iter().enumerate() {
            let (p, r, c) = (i / (rows * cols), i / cols % rows, i % cols);
            values[p * plane + r * pitch + c] = x;
        }
        Matrices { values, extents, strides: [plane, pitch, 1] }
    }

    fn at(&self, of: &[f32], n: usize, [r, c]: [usize; 2], transposed: bool) -> f64 {
        let (r, c) = if transposed { (c, r) } else { (r, c) };
        f64::from(of[n * self.strides[0] + r * self.strides[1] + c])
    }

    fn upload(&self, device: &Device) -> DeviceBuffer<f32> {
        device.upload(&self.values).unwrap()
    }
}

struct Call {
    shape: [usize; 4],
    transposed: [bool; 2],
    gap: usize,
    shared_b: bool,
    alpha: f32,
    beta: f32,
}

fn check(device: &Device, random: &mut Random, call: &Call) {
    let Call { shape: [n, rows, cols, depth], transposed: [ta, tb], gap, shared_b, alpha, beta } = *call;
    let what = format!("{n} of {rows} × {cols} × {depth}, transposed {ta} {tb}, gap {gap}, α {alpha}, β {beta}");
    let a = Matrices::new(random, if ta { [n, depth, rows] } else { [n, rows, depth] }, gap, false);
    let b = Matrices::new(random, if tb { [n, cols, depth] } else { [n, depth, cols] }, gap, shared_b);
    let c = Matrices::new(random, [n, rows, cols], gap, false);
    let (da, db, mut dc) = (a.upload(device), b.upload(device), c.upload(device));
    let mut gemm = Gemm::new().alpha(alpha).beta(beta);
    if ta {
        gemm = gemm.transpose_a();
    }
    if tb {
        gemm = gemm.transpose_b();
    }
    let view = |buffer, m: &Matrices| DeviceBuffer::view_strided(buffer, m.extents, m.strides).unwrap();
    gemm.run(device, &view(&da, &a), &view(&db, &b), &mut dc.view_strided_mut(c.extents, c.strides).unwrap()).unwrap();
    let got = dc.download().unwrap();
    let mut untouched = got.clone();
    for p in 0..n {
        for r in 0..rows {
            for col in 0..cols {
                let products = (0..depth).map(|k| a.at(&a.values, p, [r, k], ta) * b.at(&b.values, p, [k, col], tb));
                let size: f64 = products.clone().map(f64::abs).sum();
                let old = if beta == 0.0 { 0.0 } else { f64::from(beta) * c.at(&c.values, p, [r, col], false) };
                let sum: f64 = f64::from(alpha) * products.sum::<f64>();
                let off =
                    1.001 * (gamma(depth + 34) * f64::from(alpha.abs()) * size + gamma(1) * (sum + old).abs()) + 1e-40;
                let value = c.at(&got, p, [r, col], false);
                assert!((value - (sum + old)).abs() <= off, "{what}: at {:?} {value}, not {}", [p, r, col], sum + old);
                untouched[p * c.strides[0] + r * c.strides[1] + col] = GAP;
            }
        }
    }
    assert!(untouched.iter().all(|x| *x == GAP), "{what}: something beside C was written");
}

/// Checks all plans, both access widths, all transposes, and shapes around the tile sizes.
fn all(device: &Device) {
    let mut random = Random::new(7);
    let shapes = [
        [1, 1, 1, 1],
        [1, 0, 3, 3],
        [2, 3, 0, 3],
        [2, 3, 4, 0],
        [1, 4, 4, 4],
        [3, 5, 7, 9],
        [1, 1, 130, 513],
        [2, 2, 36, 260],
        [1, 8, 36, 520],
        [1, 16, 128, 128],
        [2, 17, 130, 33],
        [1, 65, 129, 20],
    ];
    for shape in shapes {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            let gap = [0, 4, 1][random.below(3)];
            let (alpha, beta) = ([1.0, -0.5, 0.0][random.below(3)], [0.0, 1.0, 2.5][random.below(3)]);
            let shared_b = random.below(3) == 0;
            check(device, &mut random, &Call { shape, transposed, gap, shared_b, alpha, beta });
        }
    }
}

#[test]
fn cpu_products_of_every_shape_agree_with_the_reference() {
    all(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_products_of_every_shape_agree_with_the_reference() {
    all(&Device::cuda(0).unwrap());
}

/// Checks that C is not read where β is 0: NaNs in C have no effect.
#[test]
fn old_contents_of_c_do_not_matter_where_beta_is_0() {
    let device = Device::cpu();
    let a = device.upload(&[1.0f32; 64 * 64]).unwrap();
    for rows in [1, 64] {
        let mut c = device.upload(&vec![f32::NAN; rows * 64]).unwrap();
        let a_view = a.view_strided([1, rows, 64], [64 * 64, 64, 1]).unwrap();
        Gemm::new()
            .run(&device, &a_view, &a.view([1, 64, 64]).unwrap(), &mut c.view_mut([1, rows, 64]).unwrap())
            .unwrap();
        assert_eq!(c.download().unwrap(), vec![64.0; rows * 64]);
    }
}

/// Rejects operands whose extents do not match, with a message.
#[test]
fn extents_are_compared() {
    let device = Device::cpu();
    let (a, b) = (device.upload(&[1.0f32; 12]).unwrap(), device.upload(&[1.0f32; 20]).unwrap());
    let mut c = device.zeros::<f32>(15).unwrap();
    let mut run = |gemm: Gemm, a_is, b_is, c_is| {
        gemm.run(&device, &a.view(a_is).unwrap(), &b.view(b_is).unwrap(), &mut c.view_mut(c_is).unwrap())
    };
    run(Gemm::new(), [1, 3, 4], [1, 4, 5], [1, 3, 5]).unwrap();
    run(Gemm::new().transpose_a().transpose_b(), [1, 4, 3], [1, 5, 4], [1, 3, 5]).unwrap();
    for (gemm, a_is, b_is, c_is) in [
        (Gemm::new(), [1, 4, 3], [1, 4, 5], [1, 3, 5]),
        (Gemm::new().transpose_b(), [1, 3, 4], [1, 4, 5], [1, 3, 5]),
        (Gemm::new(), [1, 3, 4], [1, 4, 5], [1, 5, 3]),
        (Gemm::new(), [1, 3, 4], [2, 2, 5], [1, 3, 5]),
        (Gemm::new(), [3, 1, 4], [1, 4, 5], [1, 3, 5]),
    ] {
        let error = run(gemm, a_is, b_is, c_is).unwrap_err().to_string();
        assert!(error.contains("expected") || error.contains("requires"), "{error}");
    }
}

/// Multiplies small integers, whose products are exact in any order.
#[test]
fn every_plan_gives_the_product_or_is_rejected() {
    let device = Device::cpu();
    let (m, n, k) = (5, 36, 64);
    let small = |len: usize| (0..len).map(|i| (i * 7 % 11) as f32 - 5.0).collect::<Vec<_>>();
    let (a, b) = (small(m * k), small(k * n));
    let b_t: Vec<f32> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
    let right: Vec<f32> =
        (0..m * n).map(|i| (0..k).map(|d| a[i / n * k + d] * b[d * n + i % n]).sum::<f32>()).collect();
    let [a, b, b_t] = [a, b, b_t].map(|x| device.upload(&x).unwrap());
    let (a, b, b_t) = (a.view([1, m, k]).unwrap(), b.view([1, k, n]).unwrap(), b_t.view([1, n, k]).unwrap());
    let run = |plan: GemmPlan, transposed: bool| {
        let mut c = device.zeros::<f32>(m * n).unwrap();
        let gemm = if transposed { Gemm::new().transpose_b() } else { Gemm::new() };
        let b = if transposed { &b_t } else { &b };
        gemm.plan(plan).run(&device, &a, b, &mut c.view_mut([1, m, n]).unwrap()).map(|()| c.download().unwrap())
    };
    let tiles = GemmTile::ALL.into_iter().flat_map(|tile| [1, 2].map(|parts| GemmPlan::Tiles(tile, parts)));
    for plan in tiles {
        assert_eq!(run(plan, false).unwrap(), right, "{plan:?}");
        assert_eq!(run(plan, true).unwrap(), right, "{plan:?}");
    }
    for rows in [1, 2, 4, 8] {
        for width in [GemvWidth::Columns32, GemvWidth::Columns16] {
            let plan = GemmPlan::GemvN(rows, width);
            assert_eq!(run(plan, false).unwrap(), right, "{plan:?}");
            let said = run(plan, true).unwrap_err().to_string();
            assert!(said.contains("`GemmPlan::GemvN` takes neither A nor B transposed"), "{said}");
        }
        let plan = GemmPlan::GemvT(rows);
        assert_eq!(run(plan, true).unwrap(), right, "{plan:?}");
        let said = run(plan, false).unwrap_err().to_string();
        assert!(said.contains("`GemmPlan::GemvT` takes B transposed"), "{said}");
    }
    for plan in [GemmPlan::Tiles(GemmTile::T16x128, 0), GemmPlan::GemvN(3, GemvWidth::Columns32), GemmPlan::GemvT(0)] {
        let said = run(plan, matches!(plan, GemmPlan::GemvT(_))).unwrap_err().to_string();
        assert!(said.contains("does not apply"), "{said}");
    }
}

/// An epilogue defined outside the kernel crate.
#[kernel_dsl::device]
mod own {
    use kernel_dsl::prelude::*;
    use kernels_rs::gemm::epilogue::*;

    /// Squares the elements below the diagonal.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Lower;

    impl Epilogue for Lower {
        fn apply<const V: usize>(&self, mut x: [f32; V], at: [usize; 3]) -> [f32; V] {
            for i in unroll(0..V) {
                x[i] = if at[2] + i <= at[1] { x[i] * x[i] } else { 0.0 };
            }
            x
        }
    }

    /// Combines two epilogues of the library.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct BiasRelu {
        pub bias: View<f32, 1>,
    }

    impl Epilogue for BiasRelu {
        fn apply<const V: usize>(&self, x: [f32; V], at: [usize; 3]) -> [f32; V] {
            let first = Bias { bias: self.bias };
            Relu.apply(first.apply(x, at), at)
        }
    }
}

/// Checks the result of each epilogue with every plan.
fn epilogues(device: &Device) {
    use kernels_rs::gemm::epilogue::*;
    let mut random = Random::new(3);
    // Products of few rows, in both orders; elements one at a time; a tile; a tile in parts.
    let products =
        [([1, 64, 40], true), ([1, 64, 40], false), ([5, 33, 9], false), ([40, 36, 16], true), ([16, 128, 512], false)];
    for ([rows, cols, depth], transposed) in products {
        // Integers make the products exact.
        let mut whole = |n: usize| (0..n).map(|_| random.below(7) as f32 - 3.0).collect::<Vec<_>>();
        let (a, b) = (whole(rows * depth), whole(depth * cols));
        let (bias, with) = (whole(cols), whole(rows * cols));
        let product = |r: usize, c: usize| -> f32 {
            (0..depth).map(|k| a[r * depth + k] * if transposed { b[c * depth + k] } else { b[k * cols + c] }).sum()
        };
        let [da, db, dbias, dwith] = [&a, &b, &bias, &with].map(|x| device.upload(x).unwrap());
        let mut gemm = Gemm::new().alpha(2.0);
        if transposed {
            gemm = gemm.transpose_b();
        }
        macro_rules! becomes {
            ($epilogue:expr, $of:expr) => {
                let mut c = device.zeros::<f32>(rows * cols).unwrap();
                let b_is = if transposed { [1, cols, depth] } else { [1, depth, cols] };
                let (av, bv) = (da.view([1, rows, depth]).unwrap(), db.view(b_is).unwrap());
                // SAFETY: the bias has an element per column, and the added matrix has the extents
                // of C.
                unsafe { gemm.run_with(device, &av, &bv, &mut c.view_mut([1, rows, cols]).unwrap(), $epilogue) }
                    .unwrap();
                let of: &dyn Fn(f32, usize, usize) -> f64 = &$of;
                for (i, x) in c.download().unwrap().into_iter().enumerate() {
                    let (r, c) = (i / cols, i % cols);
                    let expected = of(2.0 * product(r, c), r, c);
                    // Only `exp`, `tanh` and later operations round: a few units in the last place
                    // of x, with the bias, or of the result.
                    let x_is = f64::from(2.0 * product(r, c)).abs() + f64::from(bias[c]).abs();
                    let off = 8.0 * (expected.abs() + x_is) * 2f64.powi(-24);
                    assert!(
                        (f64::from(x) - expected).abs() <= off,
                        "{} at {r}, {c}: {x}, not {expected}",
                        stringify!($epilogue)
                    );
                }
            };
        }
        // SAFETY: the buffers live until the end of this block, and nothing writes to them.
        let (bias_view, residual) = unsafe {
            (
                Bias { bias: dbias.view([cols]).unwrap().detached() },
                Residual { with: dwith.view([1, rows, cols]).unwrap().detached() },
            )
        };
        becomes!(Identity, |x, _, _| f64::from(x));
        becomes!(Relu, |x, _, _| f64::from(x.max(0.0)));
        becomes!(bias_view, |x, _, c| f64::from(x + bias[c]));
        becomes!(residual, |x, r, c| f64::from(x + with[r * cols + c]));
        becomes!(own::BiasRelu { bias: bias_view.bias }, |x, _, c| f64::from((x + bias[c]).max(0.0)));
        becomes!(Silu, |x, _, _| f64::from(x) / (1.0 + (-f64::from(x)).exp()));
        becomes!(Gelu, |x, _, _| {
            let x = f64::from(x);
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        });
        becomes!(BiasGelu { bias: bias_view }, |x, _, c| {
            let x = f64::from(x + bias[c]);
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        });
        becomes!(own::Lower, |x, r, c| if c <= r { f64::from(x * x) } else { 0.0 });
    }
}

#[test]
fn cpu_epilogues_agree_with_the_reference() {
    epilogues(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_epilogues_agree_with_the_reference() {
    epilogues(&Device::cuda(0).unwrap());
}

/// Checks matrices stored as `f16`. Products are computed in `f32` and rounded once, or not at all
/// if C is `f32`; products of integers are exact.
fn halves(device: &Device) {
    let mut random = Random::new(5);
    for [rows, cols, depth] in [[128, 128, 40], [5, 33, 9], [1, 64, 40], [7, 36, 520], [16, 128, 512], [0, 4, 4]] {
        for transposed in [false, true] {
            let mut whole = |n: usize| (0..n).map(|_| random.below(5) as f32 - 2.0).collect::<Vec<_>>();
            let (a, b) = (whole(rows * depth), whole(depth * cols));
            let upload = |x: &[f32]| device.upload(&x.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()).unwrap();
            let (da, db, mut c) = (upload(&a), upload(&b), device.zeros::<f16>(rows * cols).unwrap());
            let gemm = if transposed { Gemm::new().transpose_b() } else { Gemm::new() };
            let b_is = if transposed { [1, cols, depth] } else { [1, depth, cols] };
            let (av, bv) = (da.view([1, rows, depth]).unwrap(), db.view(b_is).unwrap());
            gemm.run(device, &av, &bv, &mut c.view_mut([1, rows, cols]).unwrap()).unwrap();
            let mut wide = device.zeros::<f32>(rows * cols).unwrap();
            gemm.alpha(1.0 / 1024.0).run(device, &av, &bv, &mut wide.view_mut([1, rows, cols]).unwrap()).unwrap();
            for (i, (x, wide)) in c.download().unwrap().into_iter().zip(wide.download().unwrap()).enumerate() {
                let (r, c) = (i / cols, i % cols);
                let b = |k: usize| if transposed { b[c * depth + k] } else { b[k * cols + c] };
                let expected: f32 = (0..depth).map(|k| a[r * depth + k] * b(k)).sum();
                assert_eq!(x.to_f32(), expected, "{rows} × {cols} × {depth} at {r}, {c}");
                assert_eq!(wide, expected / 1024.0, "{rows} × {cols} × {depth} as f32 at {r}, {c}");
            }
        }
    }
}

#[test]
fn cpu_products_of_halves_agree_with_the_reference() {
    halves(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_products_of_halves_agree_with_the_reference() {
    halves(&Device::cuda(0).unwrap());
}

/// Checks a chain of products in a graph, of which one is split and uses the graph's memory for its
/// parts.
fn recorded(device: &Device) {
    let mut random = Random::new(7);
    let mut whole = |n: usize| (0..n).map(|_| random.below(5) as f32 - 2.0).collect::<Vec<_>>();
    let (rows, inner, depth) = (16, 128, 512);
    let (x, first, second) = (whole(rows * depth), whole(depth * inner), whole(inner * inner));
    let weights = [&first, &second].map(|w| device.upload(w).unwrap());
    let recording = device.record();
    let input = recording.own(device.zeros::<f32>(rows * depth).unwrap()).unwrap();
    let [between, output] = [(); 2].map(|()| recording.own(device.zeros::<f32>(rows * inner).unwrap()).unwrap());
    let [w1, w2] = [&weights[0], &weights[1]].map(|w| recording.borrow(w).unwrap());
    let multiply = |a: SlotMut<f32>, b: Slot<f32>, c: SlotMut<f32>, depth: usize| {
        let (a, b) = (a.view([1, rows, depth]).unwrap(), b.view([1, depth, inner]).unwrap());
        Gemm::new().run(&recording, &a, &b, &mut c.view_mut([1, rows, inner]).unwrap()).unwrap();
    };
    multiply(input, w1, between, depth);
    multiply(between, w2, output, inner);
    let mut graph = recording.finish().unwrap();
    assert!(graph.len() > 2, "none of the products is split");
    let stream = device.stream().unwrap();
    let product = |a: &[f32], b: &[f32], depth: usize, cols: usize| -> Vec<f32> {
        let sum = |r: usize, c: usize| (0..depth).map(|k| a[r * depth + k] * b[k * cols + c]).sum();
        (0..rows * cols).map(|i| sum(i / cols, i % cols)).collect()
    };
    let expected = product(&product(&x, &first, depth, inner), &second, inner, inner);
    for times in [1.0, 2.0] {
        let scaled: Vec<f32> = x.iter().map(|x| times * x).collect();
        graph.buffer_mut(input).unwrap().copy_from(&scaled).unwrap();
        graph.replay(&stream).unwrap();
        stream.wait().unwrap();
        let got = graph.buffer(output).unwrap().download().unwrap();
        assert_eq!(got, expected.iter().map(|x| times * x).collect::<Vec<_>>());
    }
}

#[test]
fn cpu_recorded_products_run_again() {
    recorded(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_recorded_products_run_again() {
    recorded(&Device::cuda(0).unwrap());
}
