//! Tests of sentences about extreme inputs, for families that have no table.

use super::{COLUMNS, Stored, all, matrix, near, row_of, stored, wide};
use kernel_dsl::half::f16;
use kernel_dsl::prelude::*;
use kernels_rs::blocks::cache::{Cache, Tokens};
use kernels_rs::blocks::heads::{Norms, prepare};
use kernels_rs::convolution::Convolution;
use kernels_rs::elementwise::map;
use kernels_rs::gemm::Gemm;
use kernels_rs::permute::{copy, gather, transpose_batch};
use kernels_rs::rotary::{PairLayout, Rotary};
use kernels_rs::rowwise::Softmax;
use kernels_rs::scan;
use runtime::Device;
use runtime::testing::Extreme;

/// A sentence of the documentation, with a check in each storage format.
struct Sentence {
    /// The text of the source file.
    source: &'static str,
    text: &'static str,
    checks: &'static [fn(&Device)],
}

macro_rules! sentence {
    ($path:literal, $text:literal, $check:ident) => {
        Sentence {
            source: include_str!(concat!("../../../../kernels-rs/src/", $path)),
            text: $text,
            checks: &[$check::<f32>, $check::<f16>, $check::<kernel_dsl::half::bf16>],
        }
    };
}

const SENTENCES: &[Sentence] = &[
    sentence!("gemm/product.rs", "a NaN in row i of A makes row i of C NaN, and 0 · ∞ is NaN", products_of_nan),
    sentence!("gemm/product.rs", "Gaps between rows may contain anything", products_without_gaps),
    sentence!("gemm/product.rs", "C is not read if β is 0; A and B are read for every α", products_of_zero),
    sentence!("gemm/product.rs", "Subnormal inputs and results are kept", products_of_subnormals),
    sentence!("gemm/product.rs", "An `f16` beyond ±65,504 is stored as ±∞", products_out_of_range),
    sentence!("convolution/run.rs", "a weight of ∞ or NaN makes windows at the edge NaN", windows_at_the_edge),
    sentence!("elementwise/map.rs", "subnormal numbers, infinities and NaNs are stored unchanged", mapped_unchanged),
    sentence!("elementwise/map.rs", "a result beyond the range of y's format is ±∞", mapped_out_of_range),
    sentence!("permute.rs", "Elements are copied bit for bit in every format", copied),
    sentence!("rotary/run.rs", "A pair with a NaN becomes NaN.", rotated_nan),
    sentence!("rotary/run.rs", "±∞, or NaN for 0 · ∞ and for ∞ − ∞", rotated_infinity),
    sentence!("rotary/run.rs", "Elements that are not rotated are copied bit for bit", not_rotated),
    sentence!("blocks/heads.rs", "Finite heads have a finite norm, from subnormal numbers to 3.4·10³⁸", finite_heads),
    sentence!("blocks/heads.rs", "A head with a NaN is NaN.", heads_of_nan),
    sentence!(
        "blocks/heads.rs",
        "the pair of the ∞ is NaN, and the others are 0 for finite weights",
        heads_of_infinity
    ),
    sentence!("rowwise/call/softmax.rs", "A product beyond 3.4·10³⁸ counts as ±∞.", scaled_out_of_range),
    sentence!(
        "rowwise/call/backward.rs",
        "Where y is 0, or −∞ for the logarithm, dx is 0 and dy is ignored",
        ignored_gradients
    ),
    Sentence {
        source: include_str!("../../../../kernels-rs/src/scan.rs"),
        text: "affects the sums from its index to the end of its row",
        checks: &[sums_from_an_infinity],
    },
    Sentence {
        source: include_str!("../../../../kernels-rs/src/scan.rs"),
        text: "Subnormal numbers are not flushed.",
        checks: &[sums_of_subnormals],
    },
];

#[test]
fn each_sentence_about_extremes_holds() {
    let device = Device::cpu();
    for Sentence { source, text, checks } in SENTENCES {
        let comment = |line: &'static str| Some(line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']));
        let words = source.lines().filter_map(comment).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        assert!(words.contains(text), "no documentation says: {text}");
        println!("{text}");
        checks.iter().for_each(|check| check(&device));
    }
}

/// Rows of products: few, for the kernels of vectors, and many, for tiles.
const ROWS: [usize; 2] = [2, 20];

/// Returns C = α·A·B, where C contained NaN. Rows of A are `pitch` elements apart.
fn product<T: Stored>(device: &Device, alpha: f32, a: &[T], pitch: usize, b: &[T], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let (a, b) = (device.upload(a).unwrap(), device.upload(b).unwrap());
    let mut c = device.upload(&vec![T::from_f32(f32::NAN); m * n]).unwrap();
    let a = a.view_strided([1, m, k], [m * pitch, pitch, 1]).unwrap();
    let (b, mut to) = (b.view([1, k, n]).unwrap(), c.view_mut([1, m, n]).unwrap());
    Gemm::new().alpha(alpha).run(device, &a, &b, &mut to).unwrap();
    wide(&c.download().unwrap())
}

fn products_of_nan<T: Stored>(device: &Device) {
    let b = stored::<T>(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let with_infinity = stored::<T>(&[1.0, f32::INFINITY, 3.0, 4.0, 5.0, 6.0]);
    for m in ROWS {
        let mut a = [1.0, 0.5, 2.0].repeat(m);
        a[4] = f32::NAN;
        a[0] = 0.0;
        let a = stored::<T>(&a);
        let c = product(device, 1.0, &a, 3, &b, [m, 2, 3]);
        for (i, c) in c.chunks(2).enumerate() {
            let expected = if i == 0 { [11.5, 14.0] } else { [12.5, 16.0] };
            assert!(if i == 1 { all(c, f64::is_nan) } else { c == expected }, "row {i} of {m} is {c:?}");
        }
        let c = product(device, 1.0, &a, 3, &with_infinity, [m, 2, 3]);
        assert!(c[0] == 11.5 && c[1].is_nan(), "0 · ∞ of {m} rows gives {c:?}");
    }
}

fn products_without_gaps<T: Stored>(device: &Device) {
    for m in ROWS {
        let a = stored::<T>(&[1.0, 2.0, f32::NAN, f32::INFINITY].repeat(m));
        let c = product(device, 1.0, &a, 4, &stored::<T>(&[3.0, 0.5]), [m, 1, 2]);
        assert!(all(&c, |c| c == 4.0), "{c:?}");
    }
}

fn products_of_zero<T: Stored>(device: &Device) {
    for m in ROWS {
        let (ones, with_nan) = (stored::<T>(&[1.0].repeat(m)), stored::<T>(&[f32::NAN].repeat(m)));
        assert!(all(&product(device, 0.0, &ones, 1, &ones[..1], [m, 1, 1]), |c| c == 0.0));
        assert!(all(&product(device, 0.0, &with_nan, 1, &ones[..1], [m, 1, 1]), f64::is_nan));
    }
}

fn products_of_subnormals<T: Stored>(device: &Device) {
    for m in ROWS {
        let a: Vec<T> = row_of::<T>(Extreme::Subnormal).into_iter().cycle().take(m).collect();
        let c = product(device, 1.0, &a, 1, &stored::<T>(&[1.0]), [m, 1, 1]);
        assert_eq!(c, wide(&a));
    }
}

fn products_out_of_range<T: Stored>(device: &Device) {
    for m in ROWS {
        let c = product(device, 1.0, &stored::<T>(&[-256.0].repeat(m)), 1, &stored::<T>(&[256.0]), [m, 1, 1]);
        let expected = if T::from_f32(65536.0).to_f32().is_finite() { -65536.0 } else { f64::NEG_INFINITY };
        assert!(all(&c, |c| c == expected), "{c:?}");
    }
}

fn windows_at_the_edge<T: Stored>(device: &Device) {
    let x = device.upload(&stored::<T>(&[1.0, 2.0, 3.0])).unwrap();
    let mut y = device.upload(&stored::<T>(&[7.0; 3])).unwrap();
    let run = |weight: f32, y: &mut runtime::DeviceBuffer<T>| {
        let w = device.upload(&stored::<T>(&[weight, 1.0, 1.0])).unwrap();
        let (x, w) = (x.view([1, 1, 1, 1, 3]).unwrap(), w.view([1, 1, 1, 1, 3]).unwrap());
        let mut to = y.view_mut([1, 1, 1, 1, 3]).unwrap();
        Convolution::new().padding([0, 0, 1]).run(device, &x, &w, None, &mut to).unwrap();
        wide(&y.download().unwrap())
    };
    assert_eq!(run(1.0, &mut y), [3.0, 6.0, 5.0]);
    let with_infinity = run(f32::INFINITY, &mut y);
    assert!(with_infinity[0].is_nan() && with_infinity[1..] == [f64::INFINITY; 2], "{with_infinity:?}");
    assert!(all(&run(f32::NAN, &mut y), f64::is_nan));
}

#[device(value)]
fn unchanged(x: f32) -> f32 {
    x
}

#[device(value)]
fn tripled(x: f32) -> f32 {
    x * 3.0
}

fn mapped_unchanged<T: Stored>(device: &Device) {
    for extreme in Extreme::ALL {
        let x = row_of::<T>(extreme);
        let (on, mut y) = (device.upload(&x).unwrap(), device.upload(&stored::<T>(&[7.0; COLUMNS])).unwrap());
        let (from, to) = (on.view([COLUMNS]).unwrap().strided(), y.view_mut([COLUMNS]).unwrap().strided());
        map(device, unchanged {}, from, to).unwrap();
        let same = wide(&x).into_iter().zip(wide(&y.download().unwrap())).all(|(x, y)| near(x, y, 0.0));
        assert!(same, "{extreme:?}");
    }
}

fn mapped_out_of_range<T: Stored>(device: &Device) {
    let x = stored::<T>(&[T::LARGEST_FINITE as f32, -T::LARGEST_FINITE as f32]);
    let (on, mut y) = (device.upload(&x).unwrap(), device.upload(&x).unwrap());
    map(device, tripled {}, on.view([2]).unwrap().strided(), y.view_mut([2]).unwrap().strided()).unwrap();
    assert_eq!(wide(&y.download().unwrap()), [f64::INFINITY, f64::NEG_INFINITY]);
}

/// Returns the bits of each element, widened exactly. A NaN keeps its payload.
fn bits<T: Stored>(x: &[T]) -> Vec<u32> {
    x.iter().map(|x| x.to_f32().to_bits()).collect()
}

fn copied<T: Stored + Number>(device: &Device) {
    let payload = T::from_f32(f32::from_bits(0xffe1_0000));
    for extreme in Extreme::ALL {
        let mut x = row_of::<T>(extreme);
        x[5] = payload;
        let (on, mut y) = (device.upload(&x).unwrap(), device.upload(&stored::<T>(&[7.0; COLUMNS])).unwrap());
        copy(device, on.view([COLUMNS]).unwrap().strided(), y.view_mut([COLUMNS]).unwrap().strided()).unwrap();
        assert_eq!(bits(&y.download().unwrap()), bits(&x), "{extreme:?}");
        let shape = [1, 2, COLUMNS / 2];
        let to = &mut y.view_mut([1, COLUMNS / 2, 2]).unwrap();
        transpose_batch(device, &on.view(shape).unwrap(), to).unwrap();
        let transposed: Vec<T> = (0..COLUMNS).map(|i| x[i % 2 * (COLUMNS / 2) + i / 2]).collect();
        assert_eq!(bits(&y.download().unwrap()), bits(&transposed), "{extreme:?}");
        let index = device.upload(&[1u32, 0]).unwrap();
        let to = &mut y.view_mut([2, COLUMNS / 2]).unwrap();
        gather(device, &on.view([2, COLUMNS / 2]).unwrap(), &index.view([2]).unwrap(), to).unwrap();
        let gathered = [&x[COLUMNS / 2..], &x[..COLUMNS / 2]].concat();
        assert_eq!(bits(&y.download().unwrap()), bits(&gathered), "{extreme:?}");
    }
}

/// Rotates the first pair of four elements by an angle.
fn rotated<T: Stored>(device: &Device, angle: f32, x: [f32; 4]) -> (Vec<T>, Vec<T>) {
    let rotary = Rotary::new(device, PairLayout::Interleaved, &[angle]).unwrap();
    let x = stored::<T>(&x);
    let (on, mut y) = (device.upload(&x).unwrap(), device.upload(&stored::<T>(&[7.0; 4])).unwrap());
    let position = device.upload(&[1u32]).unwrap();
    let to = &mut y.view_mut([1, 1, 4]).unwrap();
    rotary.run(device, &on.view([1, 1, 4]).unwrap(), &position.view([1, 1]).unwrap(), to).unwrap();
    (x, y.download().unwrap())
}

fn rotated_nan<T: Stored>(device: &Device) {
    for pair in [[f32::NAN, 1.0], [1.0, f32::NAN]] {
        for angle in [0.0, 1.0] {
            let (_, y) = rotated::<T>(device, angle, [pair[0], pair[1], 1.0, 2.0]);
            assert!(all(&wide(&y[..2]), f64::is_nan) && wide(&y[2..]) == [1.0, 2.0]);
        }
    }
}

fn rotated_infinity<T: Stored>(device: &Device) {
    let high = f32::INFINITY;
    let (_, y) = rotated::<T>(device, 1.0, [high, 1.0, 1.0, 2.0]);
    assert_eq!(wide(&y), [f64::INFINITY, f64::INFINITY, 1.0, 2.0]);
    let (_, y) = rotated::<T>(device, 1.0, [high, high, 1.0, 2.0]);
    assert!(wide(&y)[0].is_nan() && wide(&y)[1] == f64::INFINITY);
    // The sine of 0 is 0.
    let (_, y) = rotated::<T>(device, 0.0, [high, 1.0, 1.0, 2.0]);
    assert!(wide(&y)[0] == f64::INFINITY && wide(&y)[1].is_nan());
}

fn not_rotated<T: Stored>(device: &Device) {
    for rest in [[f32::NAN, f32::INFINITY], [-0.0, f32::NEG_INFINITY]] {
        let (x, y) = rotated::<T>(device, 1.0, [1.0, 2.0, rest[0], rest[1]]);
        assert_eq!(bits(&y[2..]), bits(&x[2..]));
    }
    let tiny = row_of::<T>(Extreme::Subnormal)[0].to_f32();
    let (x, y) = rotated::<T>(device, 0.0, [tiny, tiny, tiny, -tiny]);
    assert_eq!(bits(&y), bits(&x));
}

fn scaled_out_of_range<T: Stored>(device: &Device) {
    let run = |x: [f32; 3]| matrix(device, &stored::<T>(&x), |x, y| Softmax::new().scale(1e38).run(device, x, y));
    assert_eq!(run([-100.0, 0.0, -60_000.0]), [0.0, 1.0, 0.0]);
    assert!(all(&run([100.0, 0.0, 1.0]), f64::is_nan));
}

fn ignored_gradients<T: Stored>(device: &Device) {
    for (log, y) in [(false, [0.5, 0.0, 0.5]), (true, [0.0, f32::NEG_INFINITY, 0.0])] {
        let softmax = if log { Softmax::new().log() } else { Softmax::new() };
        let run = |odd: f32| {
            let dy = device.upload(&stored::<T>(&[1.0, odd, 3.0])).unwrap();
            let dy = dy.view([1, 3]).unwrap();
            matrix(device, &stored::<T>(&y), |y, dx| softmax.backward(device, y, &dy, dx))
        };
        let expected = run(0.0);
        assert!(expected[1] == 0.0 && expected[0] < 0.0, "{expected:?}");
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(run(odd), expected);
        }
    }
}

/// Elements of a head.
const HEAD: usize = 64;

/// Returns the head of a query with RMS norm, without rotation.
fn head<T: Stored>(device: &Device, x: &[T]) -> Vec<f64> {
    let all = device.upload(&x.repeat(3)).unwrap();
    let [mut q, mut keys, mut values] = [(); 3].map(|()| device.upload(&stored::<T>(&[7.0; HEAD])).unwrap());
    let weight = device.upload(&stored::<T>(&[1.0; HEAD])).unwrap();
    let (positions, slots) = (device.upload(&[0u32]).unwrap(), device.upload(&[0u32]).unwrap());
    let (axes, frequencies) = (device.upload(&[0u32; HEAD / 2]).unwrap(), device.upload(&[1f32; HEAD / 2]).unwrap());
    let weight = weight.view([HEAD]).unwrap();
    let norms = Norms { weights: [&weight, &weight], epsilon: 0.0 };
    let tokens = Tokens {
        positions: positions.view([1, 1]).unwrap(),
        axes: axes.view([HEAD / 2]).unwrap(),
        frequencies: frequencies.view([HEAD / 2]).unwrap(),
        slots: slots.view([1]).unwrap(),
    };
    let shape = [1, 1, 1, HEAD];
    let mut cache = Cache { keys: keys.view_mut(shape).unwrap(), values: values.view_mut(shape).unwrap() };
    let qkv = all.view([1, 3 * HEAD]).unwrap();
    prepare(device, &qkv, Some(norms), &tokens, &mut q.view_mut([1, 1, HEAD]).unwrap(), &mut cache).unwrap();
    wide(&q.download().unwrap())
}

fn finite_heads<T: Stored>(device: &Device) {
    for extreme in Extreme::finite() {
        let x: Vec<T> = extreme.fill(&mut runtime::testing::Random::new(5), HEAD);
        let values = wide(&x);
        let largest = values.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let y = head(device, &x);
        if largest == 0.0 {
            continue;
        }
        let square = values.iter().map(|x| (x / largest).powi(2)).sum::<f64>() / HEAD as f64;
        for (x, y) in values.iter().zip(y) {
            let expected = x / largest / square.sqrt();
            assert!(
                (y - expected).abs() <= 1e-2 * (expected.abs() + 1e-2),
                "{extreme:?}: {x} becomes {y}, not {expected}"
            );
        }
    }
}

/// Returns a head of ones with another number at index 3.
fn head_with<T: Stored>(x: f32) -> Vec<T> {
    let mut all = [1.0; HEAD];
    all[3] = x;
    stored(&all)
}

fn heads_of_nan<T: Stored>(device: &Device) {
    assert!(all(&head(device, &head_with::<T>(f32::NAN)), f64::is_nan));
}

fn heads_of_infinity<T: Stored>(device: &Device) {
    for infinity in [f32::INFINITY, f32::NEG_INFINITY] {
        for (i, y) in head(device, &head_with::<T>(infinity)).into_iter().enumerate() {
            assert!(if i % (HEAD / 2) == 3 { y.is_nan() } else { y == 0.0 }, "element {i} is {y}");
        }
    }
}

fn sums(device: &Device, x: &[f32]) -> [Vec<f32>; 2] {
    let on = device.upload(x).unwrap();
    [true, false].map(|inclusive| {
        let mut y = device.upload(&vec![7.0; x.len()]).unwrap();
        let (from, mut to) = (on.view([1, x.len()]).unwrap(), y.view_mut([1, x.len()]).unwrap());
        if inclusive {
            scan::inclusive(device, &from, &mut to).unwrap();
        } else {
            scan::exclusive(device, &from, &mut to).unwrap();
        }
        y.download().unwrap()
    })
}

fn sums_from_an_infinity(device: &Device) {
    // Within a thread's elements, and beyond a warp's.
    for at in [2, 1500] {
        for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let mut x = vec![1.0; 4001];
            x[at] = odd;
            for (later, sums) in sums(device, &x).into_iter().enumerate() {
                for (i, sum) in sums.into_iter().enumerate() {
                    let before = i < at + later;
                    let is_odd = sum == odd || sum.is_nan() && odd.is_nan();
                    assert!(if before { sum == (i + 1 - later) as f32 } else { is_odd }, "{odd} at {at}: {i} is {sum}");
                }
            }
        }
    }
}

fn sums_of_subnormals(device: &Device) {
    let unit = f32::from_bits(1);
    let [inclusive, exclusive] = sums(device, &[unit; 500]);
    assert!((0..500).all(|i| inclusive[i] == (i + 1) as f32 * unit && exclusive[i] == i as f32 * unit));
}
