//! Tests of structs, and of generics over them, through shuffles, reductions and scans.

use super::support::{agree, assemble, checker};
use kernel_dsl::host;
use kernel_dsl::prelude::*;
use runtime::interpreter::Check;
use runtime::testing::{Bound, Checker, Expected, Input, Random};
use runtime::{Device, Error};

#[device]
pub mod monoid {
    use kernel_dsl::prelude::*;

    /// An associative operation on values of a type.
    pub trait Monoid: Copy {
        type T: DeviceCopy;
        const ZERO: Self::T;
        fn join(a: Self::T, b: Self::T) -> Self::T;
    }

    /// The largest value and its first index.
    #[derive(Clone, Copy, Debug)]
    pub struct ArgMax;
    impl Monoid for ArgMax {
        type T = (f32, u32);
        const ZERO: (f32, u32) = (f32::NEG_INFINITY, u32::MAX);
        fn join(a: (f32, u32), b: (f32, u32)) -> (f32, u32) {
            if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
        }
    }

    /// A partial result of a softmax.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Partial {
        pub most: f32,
        pub sums: [f32; 3],
        pub seen: u8,
        pub odd: bool,
    }

    impl Partial {
        pub fn of(x: f32, i: usize) -> Partial {
            Partial { most: x, sums: [x, 1.0, i as f32], seen: 1, odd: i % 2 == 1 }
        }
        pub fn merge(self, other: Partial) -> Partial {
            let sums: [f32; 3] = std::array::from_fn(|k| self.sums[k] + other.sums[k]);
            Partial { most: self.most.max(other.most), sums, seen: self.seen + other.seen, odd: self.odd ^ other.odd }
        }
        pub fn value(self) -> f32 {
            let Partial { most, sums: [a, b, c], seen, odd } = self;
            most + a * 0.5 + b * 0.25 + c + seen as f32 + odd as u32 as f32 * 0.125
        }
    }
}
use monoid::{ArgMax, Monoid, Partial};

/// Reduces a block with any monoid.
#[device]
fn of_block<M: Monoid>(x: M::T) -> M::T {
    let of_warp = warp::reduce(x, M::join);
    let first = warp::broadcast(of_warp, 0);
    block::reduce(if warp::lane() == 0 { first } else { M::ZERO }, M::join)
}

macro_rules! witnessed {
    ($(#[kernel($($clause:tt)*)] #[requires($($condition:tt)*)] pub fn $name:ident ($($parameters:tt)*) $body:tt)*) => {
        mod plain {
            use super::*;
            $(pub fn $name($($parameters)*) $body)*
        }
        $(#[kernel($($clause)*)] #[requires($($condition)*)] pub fn $name($($parameters)*) $body)*
    };
}

witnessed! {
    #[kernel(block = 96, grid = 1)]
    #[requires(x.len() == 96, out.len() == 96 * 6)]
    pub fn structs_travel(x: &[f32], mut out: ViewMut<f32, 1>) {
        let i = thread::index();
        let own = Partial::of(x[i], i);
        let of_warp = warp::reduce(own, |a, b| a.merge(b));
        let through = warp::scan(own, Partial::merge);
        let (before, total) = block::scan(own, Partial::of(0.0, 0), Partial::merge);
        let (best, place) = of_block::<ArgMax>((x[i], i as u32));
        let next = match warp::shuffle_down(own, 1) {
            Some(Partial { sums: [v, ..], odd, .. }) if odd => v,
            Some(p) => -p.value(),
            None => 0.5,
        };
        let group = warp::group::<4>().broadcast(own, 3);
        out[i * 6] = of_warp.value();
        out[i * 6 + 1] = through.value();
        out[i * 6 + 2] = before.value() + total.value();
        out[i * 6 + 3] = best + place as f32;
        out[i * 6 + 4] = next;
        out[i * 6 + 5] = group.value() + block::broadcast(own, 40).value();
    }
}

fn travelling(checker: &Checker) {
    let mut random = Random::new(5);
    // Multiples of 1/8, so that sums are exact in any order.
    let x: Vec<f32> = (0..96).map(|_| random.below(800) as f32 / 8.0).collect();
    let mut out = vec![0f32; 96 * 6];
    let inputs = vec![Input::slice(&x), Input::view(&out, [96 * 6])];
    // SAFETY: the vectors outlive the run, and nothing else accesses them meanwhile. Each thread
    // writes its own elements.
    unsafe {
        let view = ViewMut::host(&mut out, [96 * 6]);
        host::run([1, 1, 1], [96, 1, 1], || plain::structs_travel(&x, view));
    }
    let all = |range: std::ops::Range<usize>| {
        range.map(|i| Partial::of(x[i], i)).reduce(Partial::merge).unwrap_or(Partial::of(0.0, 0))
    };
    let best = x.iter().copied().fold(f32::MIN, f32::max);
    let place = x.iter().position(|v| *v == best).unwrap();
    for i in 0..96 {
        let warp = i / 32 * 32;
        let next = match i % 32 {
            31 => 0.5,
            _ if i % 2 == 0 => x[i + 1],
            _ => -Partial::of(x[i + 1], i + 1).value(),
        };
        let group = i / 4 * 4 + 3;
        let expected = [
            all(warp..warp + 32).value(),
            all(warp..i + 1).value(),
            all(0..i).value() + all(0..96).value(),
            best + place as f32,
            next,
            Partial::of(x[group], group).value() + Partial::of(x[40], 40).value(),
        ];
        assert_eq!(out[i * 6..][..6], expected, "rustc's, thread {i}");
    }
    let expected = Expected::new(1, out.iter().map(|v| f64::from(*v)).collect(), Bound::Exact);
    agree::<structs_travel>(checker, "structs_travel", inputs, &[expected]);
    assemble::<structs_travel>();
}

#[test]
fn structs_in_collectives_agree_with_rustc() {
    travelling(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_structs_in_collectives_agree_with_the_interpreter() {
    travelling(&checker(true));
}

/// Structs with restrictions that follow from their fields. A struct that contains a shared array,
/// at any depth, exists on the device only. A struct that contains views can be passed, but not
/// stored in a buffer.
#[device]
pub mod held {
    use kernel_dsl::prelude::*;

    #[derive(Clone, Copy)]
    pub struct Tile {
        pub of: Shared<f32, 1>,
    }

    #[derive(Clone, Copy)]
    pub struct Work {
        pub tile: Tile,
        pub first: usize,
    }

    impl Work {
        pub fn at(self, i: usize) -> f32 {
            self.tile.of[self.first + i]
        }
    }

    #[derive(Clone, Copy)]
    pub struct Column<T: Element> {
        pub values: Strided<T, 1>,
        pub rows: View<T, 2>,
        pub scale: T,
    }
}
use held::{Column, Tile, Work};

#[kernel(block = 32, grid = 1)]
#[requires(column.values.len() == 32, column.values.stride(0) >= 2)]
fn of_fields(column: Column<f32>, y: &mut [f32]) {
    let i = thread::x();
    let mut shared = Shared::<f32, 1>::new([40]);
    if i < 8 {
        shared[i] = 0.5;
    }
    shared[8 + i] = column.values[i] * column.scale + column.rows[(i % 2, 1)];
    block::sync();
    let work = Work { tile: Tile { of: shared }, first: 8 };
    y[i] = work.at(31 - i);
}

fn test_fields(checker: &Checker) {
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let inputs = vec![
        Input::strided(&x, [32], [3]),
        Input::view(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]),
        Input::scalar(10.0f32),
        Input::slice(&[0f32; 32]),
    ];
    let at = |i: usize| f64::from(x[3 * i] * 10.0 + if i.is_multiple_of(2) { 2.0 } else { 4.0 });
    let expected = [Expected::new(3, (0..32).map(|i| at(31 - i)).collect(), Bound::Exact)];
    agree::<of_fields>(checker, "of fields", inputs, &expected);
    assemble::<of_fields>();
}

#[test]
fn structs_follow_their_fields() {
    test_fields(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_structs_follow_their_fields() {
    test_fields(&checker(true));
}

/// A block of 4-bit codes with its scales, as in ggml's Q4_K.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
#[repr(C, align(16))]
struct CodeBlock {
    factors: [u16; 2],
    scales: [u8; 12],
    codes: [u8; 128],
}

/// Combines words of the codes and scales, which one declaration gives as bytes.
#[kernel(block = 32, grid = 1)]
#[requires(blocks.len() == 4, codes.len() == 32, scales.len() == 32)]
fn words_of_blocks(blocks: &[CodeBlock], codes: &mut [u32], scales: &mut [u32]) {
    let (block, part) = (thread::x() / 8, thread::x() % 8);
    let bytes = blocks[block].codes.load::<16>(16 * part);
    let mut word = 0;
    for i in unroll(0..4) {
        word ^= int::word([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
    }
    codes[thread::x()] = word;
    let own: [u8; 4] = blocks[block].scales.load(4 * (part % 3));
    scales[thread::x()] = int::word(own) ^ blocks[block].factors[1] as u32;
}

/// Loads parts of arrays in buffers and in shared memory, in one and in several accesses.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 4, y.len() == 32)]
fn parts_of_arrays(x: &[[f32; 16]], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<[f32; 16], 1>::new([4]);
    if t < 4 {
        tile[t] = x[t];
    }
    block::sync();
    let (four, eight) = (x[t / 8].load::<4>(4 * (t % 4)), tile[t / 8].load::<8>(8 * (t % 2)));
    y[t] = four[0] + 10.0 * four[3] + 100.0 * eight[1] + 1000.0 * eight[7];
}

/// Stores parts of arrays in buffers and in shared memory: words of bytes, and rows of floats.
#[kernel(block = 32, grid = 1)]
#[requires(blocks.len() == 4, y.len() == 4)]
fn parts_stored(blocks: &mut [CodeBlock], y: &mut [[f32; 16]]) {
    let t = thread::x();
    let (block, part) = (t / 8, t % 8);
    let bytes: [u8; 16] = std::array::from_fn(|i| (t * 16 + i) as u8);
    blocks[block].codes.store(16 * part, bytes);
    if part < 3 {
        blocks[block].scales.store::<4>(4 * part, [part as u8, 1, t as u8, 3]);
    }
    let mut tile = Shared::<[f32; 16], 1>::new([4]);
    tile[block].store(2 * part, [t as f32, -(t as f32)]);
    block::sync();
    if part < 2 {
        let eight: [f32; 8] = std::array::from_fn(|i| tile[block][8 * part + i]);
        y[block].store(8 * part, eight);
    }
}

#[test]
fn parts_of_arrays_in_elements_are_stored() {
    let block = |i: usize| CodeBlock {
        factors: [5, 6 + i as u16],
        scales: std::array::from_fn(|j| [(j / 4) as u8, 1, (8 * i + j / 4) as u8, 3][j % 4]),
        codes: std::array::from_fn(|j| (8 * i * 16 + j) as u8),
    };
    let before = |i: usize| CodeBlock { factors: [5, 6 + i as u16], scales: [9; 12], codes: [8; 128] };
    let y: Vec<[f32; 16]> = (0..4)
        .map(|i| {
            std::array::from_fn(|j| {
                let t = (8 * i + j / 2) as f32;
                if j % 2 == 0 { t } else { -t }
            })
        })
        .collect();
    let expected = [Expected::exact(0, (0..4).map(block)), Expected::exact(1, y)];
    let inputs = vec![Input::slice(&(0..4).map(before).collect::<Vec<_>>()), Input::slice(&[[0f32; 16]; 4])];
    agree::<parts_stored>(&checker(false), "parts_stored", inputs, &expected);
    assemble::<parts_stored>();
    for access in ["st.global.v4.u32", "st.shared.v2.f32", "st.global.v4.f32"] {
        assert!(parts_stored::PTX.contains(access), "{access}: {}", parts_stored::PTX);
    }
}

/// Pairs before another field, which an access beyond the array would reach.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
#[repr(C)]
struct PairsAndTail {
    pairs: [[f32; 2]; 5],
    tail: [f32; 2],
}

/// Loads two pairs from `at` on, and stores two pairs, whose elements are no scalars.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 1, y.len() == 1)]
fn pairs_stored(x: &[PairsAndTail], y: &mut [PairsAndTail], at: usize) {
    if thread::x() == 0 {
        let [a, b]: [[f32; 2]; 2] = x[0].pairs.load(at);
        y[0].pairs.store(at, [b, a]);
    }
}

#[test]
fn pairs_in_elements_are_stored_within_bounds() {
    let element = |first: f32| PairsAndTail {
        pairs: std::array::from_fn(|i| [first + i as f32, -first - i as f32]),
        tail: [100.0, 101.0],
    };
    let (x, y) = (element(1.0), element(10.0));
    // Two pairs are one access of 16 bytes.
    for at in [0, 2] {
        let mut expected = y;
        (expected.pairs[at], expected.pairs[at + 1]) = (x.pairs[at + 1], x.pairs[at]);
        let inputs = vec![Input::slice(&[x]), Input::slice(&[y]), Input::scalar(at)];
        agree::<pairs_stored>(&checker(false), "pairs_stored", inputs, &[Expected::exact(1, [expected])]);
    }
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[x]).unwrap(), device.upload(&[y]).unwrap());
    match pairs_stored::launch(&device, &x, &mut y, 4) {
        Err(Error::Violation(report)) => {
            assert!(report.findings.iter().any(|finding| finding.check == Check::OutOfBounds), "{report}");
        }
        result => panic!("{result:?}, expected a report"),
    }
}

#[test]
fn parts_of_arrays_in_elements_are_loaded() {
    let block = |i: u32| CodeBlock {
        factors: [i as u16, 7 * i as u16],
        scales: std::array::from_fn(|j| (j as u32 * 5 + i) as u8),
        codes: std::array::from_fn(|j| (j as u32 * 31 + i * 77) as u8),
    };
    let blocks: Vec<CodeBlock> = (0..4).map(block).collect();
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let codes = (0..32).map(|t| blocks[t / 8].codes[16 * (t % 8)..][..16].chunks(4).fold(0, |all, w| all ^ word(w)));
    let scale = |t: usize| word(&blocks[t / 8].scales[4 * (t % 8 % 3)..][..4]) ^ u32::from(blocks[t / 8].factors[1]);
    let expected = [Expected::exact(1, codes), Expected::exact(2, (0..32).map(scale))];
    let inputs = vec![Input::slice(&blocks), Input::slice(&[0u32; 32]), Input::slice(&[0u32; 32])];
    agree::<words_of_blocks>(&checker(false), "words_of_blocks", inputs, &expected);
    assemble::<words_of_blocks>();
    assert!(words_of_blocks::PTX.contains("ld.global.nc.v4.u32"), "{}", words_of_blocks::PTX);

    let x: Vec<[f32; 16]> = (0..4).map(|i| std::array::from_fn(|j| (16 * i + j) as f32)).collect();
    let part = |t: usize| {
        let (four, eight) = (&x[t / 8][4 * (t % 4)..], &x[t / 8][8 * (t % 2)..]);
        four[0] + 10.0 * four[3] + 100.0 * eight[1] + 1000.0 * eight[7]
    };
    let expected = [Expected::exact(1, (0..32).map(part))];
    let inputs = vec![Input::slice(&x), Input::slice(&[0f32; 32])];
    agree::<parts_of_arrays>(&checker(false), "parts_of_arrays", inputs, &expected);
    assemble::<parts_of_arrays>();
}
