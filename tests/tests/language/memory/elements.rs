//! Structs, arrays and tuples as elements of buffers and shared arrays.

use super::values::check;
use kernel_dsl::prelude::*;
use kernel_dsl::{Kernel, host};
use runtime::Device;
use runtime::testing::{Input, Random};

/// A block of 32 quantized numbers in the format of files: 34 bytes with an alignment of two.
#[device]
#[derive(Clone, Copy, PartialEq, Debug, DeviceCopy)]
#[repr(C)]
pub struct Block {
    pub d: f16,
    pub qs: [i8; 32],
}

/// Separates words of four bytes and scales, with one thread per word.
#[device]
pub fn repack_of(w: View<Block, 2>, mut qs: ViewMut<[i8; 4], 2>, mut d: ViewMut<f16, 2>) {
    let i = grid::index();
    let (blocks, row) = (w.cols(), i / (8 * w.cols()));
    if row < w.rows() {
        let (b, word) = (i / 8 % blocks, i % 8);
        let mut q = [0i8; 4];
        for j in unroll(0..4) {
            q[j] = w[(row, b)].qs[4 * word + j];
        }
        qs[(row, 8 * b + word)] = q;
        if word == 0 {
            d[(row, b)] = w[(row, b)].d;
        }
    }
}

#[kernel(block = 32, grid = (w.rows() * w.cols() * 8).div_ceil(32))]
#[requires(qs.rows() == w.rows(), d.rows() == w.rows(), qs.cols() == 8 * w.cols(), d.cols() == w.cols())]
pub fn repack(w: View<Block, 2>, qs: ViewMut<[i8; 4], 2>, d: ViewMut<f16, 2>) {
    repack_of(w, qs, d);
}

#[device]
#[derive(Clone, Copy, PartialEq, Debug, DeviceCopy)]
#[repr(C)]
pub struct Entry {
    pub key: f32,
    pub payload: u32,
}

/// Sorts each row by key, and equal keys by payload, with a bitonic sort in shared memory of the
/// row's size.
#[device]
pub fn sorted_of(mut rows: ViewMut<Entry, 2>) {
    let n = rows.cols();
    let mut s = Shared::<Entry, 1>::dynamic([n.next_power_of_two()]);
    for i in (thread::index()..s.dim(0)).step_by(block::threads()) {
        s[i] = rows.get((block::x(), i)).unwrap_or(Entry { key: f32::INFINITY, payload: u32::MAX });
    }
    block::sync();
    let mut k = 2;
    while k <= s.dim(0) {
        let mut j = k / 2;
        while j > 0 {
            for p in (thread::index()..s.dim(0) / 2).step_by(block::threads()) {
                let i = (p & !(j - 1)) * 2 + (p & (j - 1));
                let up = i & k == 0;
                let (a, b) = (s[i], s[i + j]);
                let after = b.key < a.key || (b.key == a.key && b.payload < a.payload);
                let before = a.key < b.key || (a.key == b.key && a.payload < b.payload);
                if after == up && before != up {
                    s[i] = b;
                    s[i + j] = a;
                }
            }
            block::sync();
            j /= 2;
        }
        k *= 2;
    }
    for i in (thread::index()..n).step_by(block::threads()) {
        rows[(block::x(), i)] = s[i];
    }
}

#[kernel(block = 32, grid = rows.rows())]
pub fn sorted(rows: ViewMut<Entry, 2>) {
    sorted_of(rows);
}

/// A struct whose parts in memory are places: they are read, written and updated, and an array in
/// it is indexed at run time.
#[device]
#[derive(Clone, Copy, PartialEq, Debug, DeviceCopy)]
#[repr(C)]
pub struct Particle {
    pub position: [f32; 3],
    pub charge: f32,
    pub counts: [u16; 6],
}

#[device]
pub fn moved_of(mut x: ViewMut<Particle, 1>, by: f32) {
    let i = grid::index();
    if i < x.len() {
        x[i].position[i % 3] += by;
        x[i].charge = x[i].position[0] * 2.0;
        x[i].counts[i % 6] = (i as u16) * 3;
        let [a, _, c] = x[i].position;
        if a > c {
            x[i].position = [c, a, a];
        }
    }
}

#[kernel(block = 32, grid = x.len().div_ceil(32))]
pub fn moved(x: ViewMut<Particle, 1>, by: f32) {
    moved_of(x, by);
}

/// Copies pairs of entries at once, masked at the edge. Elements outside count as zeros.
#[device]
pub fn paired_of(x: View<Entry, 1>, y: ViewMut<Entry, 1>) {
    let i = grid::index() * 2;
    if i + 2 <= x.len() {
        let v: [Entry; 2] = x.load(i);
        y.store(i, [v[1], v[0]]);
    } else {
        let v = x.load_or::<2>(i, Entry { key: 0.5, payload: 7 });
        y.store_in(i, [v[1], v[0]]);
    }
}

#[kernel(block = 32, grid = x.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn paired(x: View<Entry, 1>, y: ViewMut<Entry, 1>) {
    paired_of(x, y);
}

/// Exchanges tuples with a `bool` through shared memory, and fills and copies arrays of structs by
/// the block.
#[device]
pub fn traded_of(x: View<Particle, 2>, mut y: ViewMut<Particle, 2>, mut flags: ViewMut<u32, 1>) {
    let mut s = Shared::<(f32, bool, u8), 1>::new([64]);
    let t = Shared::<Particle, 2>::padded([8, 8]);
    let (row, col) = (thread::x() / 8, thread::x() % 8);
    t.fill(Particle { position: [1.0, 2.0, 3.0], charge: 4.0, counts: [9; 6] });
    block::sync();
    let first = t[(row, col)].counts[5];
    block::sync();
    t.copy_from(x);
    let i = thread::x();
    s[i] = (i as f32, i % 3 == 0, i as u8);
    block::sync();
    y[(col, row)] = t[(row, col)];
    let (value, third, byte) = s[63 - i];
    flags[i] = if third { value as u32 + 1000 } else { byte as u32 } + first as u32 * 10_000;
}

#[kernel(block = 64, grid = 1)]
#[requires(y.rows() == 8, y.cols() == 8, flags.len() == 64)]
pub fn traded(x: View<Particle, 2>, y: ViewMut<Particle, 2>, flags: ViewMut<u32, 1>) {
    traded_of(x, y, flags);
}

fn bytes(n: usize) -> Vec<i8> {
    let mut random = Random::new(n as u64);
    (0..n).map(|_| random.below(256) as u8 as i8).collect()
}

fn repack_agrees(gpu: Option<&Device>) {
    for (rows, blocks) in [(1, 1), (3, 2), (5, 7)] {
        let raw = bytes(rows * blocks * 32);
        let w: Vec<Block> = raw
            .chunks(32)
            .enumerate()
            .map(|(i, q)| Block { d: f16::from_f32(i as f32 / 4.0), qs: q.try_into().unwrap() })
            .collect();
        let (qs, d) = (vec![[0i8; 4]; rows * blocks * 8], vec![f16::from_f32(0.0); rows * blocks]);
        let inputs = vec![
            Input::view(&w, [rows, blocks]),
            Input::view(&qs, [rows, blocks * 8]),
            Input::view(&d, [rows, blocks]),
        ];
        let numbers = raw.iter().map(|q| f64::from(*q)).collect();
        let scales = w.iter().map(|b| f64::from(b.d.to_f32())).collect();
        check(repack::ARTIFACT, &[], gpu, inputs, vec![(1, numbers), (2, scales)]);
        let (mut qs, mut d) = (qs, d);
        // SAFETY: each thread writes its own elements, and the vectors outlive the run.
        unsafe {
            let w = View::host(&w, [rows, blocks]);
            let (q, d) = (ViewMut::host(&mut qs, [rows, blocks * 8]), ViewMut::host(&mut d, [rows, blocks]));
            host::run([(rows * blocks * 8).div_ceil(32), 1, 1], [32, 1, 1], || repack_of(w, q, d));
        }
        assert_eq!(qs.concat(), raw);
        assert!(d.iter().zip(&w).all(|(d, b)| *d == b.d));
    }
}

fn sorted_agrees(gpu: Option<&Device>) {
    for (rows, n) in [(1, 1), (2, 7), (3, 64), (1, 100)] {
        let mut random = Random::new(n as u64);
        let entry = |i: usize, random: &mut Random| Entry { key: random.below(20) as f32 - 9.0, payload: i as u32 };
        let x: Vec<Entry> = (0..rows * n).map(|i| entry(i, &mut random)).collect();
        let mut expected = x.clone();
        for row in expected.chunks_mut(n) {
            row.sort_by(|a, b| a.key.total_cmp(&b.key).then(a.payload.cmp(&b.payload)));
        }
        let numbers = expected.iter().flat_map(|e| [f64::from(e.key), f64::from(e.payload)]).collect();
        check(sorted::ARTIFACT, &[], gpu, vec![Input::view(&x, [rows, n])], vec![(0, numbers)]);
        let mut y = x;
        // SAFETY: each block sorts its own row, with barriers between the steps, and the vector
        // outlives the run.
        unsafe {
            let y = ViewMut::host(&mut y, [rows, n]);
            host::run([rows, 1, 1], [32, 1, 1], || sorted_of(y));
        }
        assert_eq!(y, expected);
    }
}

fn particles(n: usize) -> Vec<Particle> {
    let mut random = Random::new(n as u64);
    let mut number = || random.below(64) as f32 - 32.0;
    let mut particle = |i: usize| Particle {
        position: [number(), number(), number()],
        charge: number(),
        counts: std::array::from_fn(|k| (i * 7 + k) as u16),
    };
    (0..n).map(&mut particle).collect()
}

fn numbers(particles: &[Particle]) -> Vec<f64> {
    let of = |p: &Particle| {
        let floats = p.position.iter().chain([&p.charge]).map(|x| f64::from(*x));
        floats.chain(p.counts.iter().map(|c| f64::from(*c))).collect::<Vec<_>>()
    };
    particles.iter().flat_map(of).collect()
}

fn moved_agrees(gpu: Option<&Device>) {
    let x = particles(40);
    let mut expected = x.clone();
    for (i, p) in expected.iter_mut().enumerate() {
        p.position[i % 3] += 2.5;
        p.charge = p.position[0] * 2.0;
        p.counts[i % 6] = i as u16 * 3;
        let [a, _, c] = p.position;
        if a > c {
            p.position = [c, a, a];
        }
    }
    let inputs = vec![Input::view(&x, [40]), Input::scalar(2.5f32)];
    check(moved::ARTIFACT, &[], gpu, inputs, vec![(0, numbers(&expected))]);
    let mut y = x;
    // SAFETY: as in `repack_agrees`.
    unsafe {
        let y = ViewMut::host(&mut y, [40]);
        host::run([2, 1, 1], [32, 1, 1], || moved_of(y, 2.5));
    }
    assert_eq!(y, expected);
}

fn paired_agrees(gpu: Option<&Device>) {
    for n in [0usize, 1, 2, 63, 64, 65] {
        let x: Vec<Entry> = (0..n as u32).map(|i| Entry { key: i as f32 / 2.0, payload: 100 + i }).collect();
        let zero = vec![Entry { key: 0.0, payload: 0 }; n];
        let other = Entry { key: 0.5, payload: 7 };
        let expected: Vec<Entry> = (0..n).map(|i| x.get(i ^ 1).copied().unwrap_or(other)).collect();
        let flat = expected.iter().flat_map(|e| [f64::from(e.key), f64::from(e.payload)]).collect();
        let inputs = vec![Input::view(&x, [n]), Input::view(&zero, [n])];
        check(paired::ARTIFACT, &[], gpu, inputs, vec![(1, flat)]);
        let mut y = zero;
        // SAFETY: as in `repack_agrees`.
        unsafe {
            let (x, y) = (View::host(&x, [n]), ViewMut::host(&mut y, [n]));
            host::run([n.div_ceil(64), 1, 1], [32, 1, 1], || paired_of(x, y));
        }
        assert_eq!(y, expected);
    }
}

fn traded_agrees(gpu: Option<&Device>) {
    // One row is missing, where copies give zeros.
    let x = particles(56);
    let zero = Particle { position: [0.0; 3], charge: 0.0, counts: [0; 6] };
    let expected: Vec<Particle> = (0..64).map(|i| x.get(i % 8 * 8 + i / 8).copied().unwrap_or(zero)).collect();
    let flags: Vec<u32> = (0..64u32).map(|i| 63 - i).map(|i| if i % 3 == 0 { i + 1000 } else { i } + 90_000).collect();
    let (y, none) = (vec![zero; 64], vec![0u32; 64]);
    let inputs = vec![Input::view(&x, [7, 8]), Input::view(&y, [8, 8]), Input::view(&none, [64])];
    let wide = flags.iter().map(|f| f64::from(*f)).collect();
    check(traded::ARTIFACT, &[], gpu, inputs, vec![(1, numbers(&expected)), (2, wide)]);
    let (mut y, mut seen) = (y, none);
    // SAFETY: as in `repack_agrees`.
    unsafe {
        let (x, y) = (View::host(&x, [7, 8]), ViewMut::host(&mut y, [8, 8]));
        let seen = ViewMut::host(&mut seen, [64]);
        host::run([1, 1, 1], [64, 1, 1], || traded_of(x, y, seen));
    }
    assert_eq!((y, seen), (expected, flags));
}

agreements! {
    blocks_of_a_file gpu_blocks_of_a_file repack_agrees
    entries_sorted gpu_entries_sorted sorted_agrees
    parts_of_structs gpu_parts_of_structs moved_agrees
    pairs_and_the_edge gpu_pairs_and_the_edge paired_agrees
    tuples_and_structs_shared gpu_tuples_and_structs_shared traded_agrees
}

#[test]
fn ptx_of_elements_is_as_accepted() {
    insta::assert_snapshot!("sorted", sorted::PTX);
    insta::assert_snapshot!("repack", repack::PTX);
    [repack::ARTIFACT, sorted::ARTIFACT, moved::ARTIFACT, paired::ARTIFACT, traded::ARTIFACT]
        .into_iter()
        .for_each(super::every_target::assemble);
}
