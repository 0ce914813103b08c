//! Tests of appending keys and values to a cache, on the CPU and on a GPU, against plain Rust in
//! `f64`.

use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Element, Float, GenericArgument};
use kernels_rs::attention::cache::{BLOCK, StoredElement};
use kernels_rs::attention::{Append, Decode, KvCache, KvCacheMut, Scratch};
use kernels_rs::rotary::PairLayout;
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer};

const SEQUENCES: usize = 3;
const HEADS: usize = 4;
const GROUPS: usize = 2;
const WIDTH: usize = 24;
const PAIRS: usize = 8;
const MAX_KEYS: usize = 12;
/// Tokens of each sequence. The last sequence fills the cache.
const LENGTHS: [u32; SEQUENCES] = [0, 7, 12];
/// Contents of elements that nothing has written.
const BEFORE: f32 = 77.0;

/// The values of a step, on the host and on a device.
struct Step<T: Element> {
    layout: PairLayout,
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    frequencies: Vec<f32>,
    on_device: [DeviceBuffer<T>; 3],
    lengths: DeviceBuffer<u32>,
    of_frequencies: DeviceBuffer<f32>,
}

impl<T: Float + GenericArgument> Step<T> {
    fn new(device: &Device, layout: PairLayout) -> Step<T> {
        let mut random = Random::new(31);
        let mut drawn = |heads: usize| {
            let all: Vec<T> = random.values::<f32>(SEQUENCES * heads * WIDTH).into_iter().map(T::from_f32).collect();
            let wide: Vec<f64> = all.iter().map(|x| f64::from(x.to_f32())).collect();
            (wide, device.upload(&all).unwrap())
        };
        let ((q, of_q), (k, of_k), (v, of_v)) = (drawn(HEADS), drawn(GROUPS), drawn(GROUPS));
        let frequencies: Vec<f32> = (0..PAIRS).map(|i| 100f32.powf(-(i as f32) / PAIRS as f32)).collect();
        let of_frequencies = device.upload(&frequencies).unwrap();
        let lengths = device.upload(&LENGTHS).unwrap();
        Step { layout, q, k, v, frequencies, on_device: [of_q, of_k, of_v], lengths, of_frequencies }
    }

    /// Returns the vectors, rotated to the position of the new token of their sequence.
    fn rotated(&self, x: &[f64]) -> Vec<f64> {
        let heads = x.len() / SEQUENCES / WIDTH;
        let one = |at: usize| {
            let (head, d, position) = (at / WIDTH * WIDTH, at % WIDTH, f64::from(LENGTHS[at / WIDTH / heads]));
            let (i, first) = match self.layout {
                PairLayout::Halves => (d % PAIRS, d < PAIRS),
                PairLayout::Interleaved => (d / 2, d % 2 == 0),
            };
            if d >= 2 * PAIRS {
                return x[at];
            }
            let (a, b) = match self.layout {
                PairLayout::Halves => (x[head + i], x[head + i + PAIRS]),
                PairLayout::Interleaved => (x[head + 2 * i], x[head + 2 * i + 1]),
            };
            let (sin, cos) = (position * f64::from(self.frequencies[i])).sin_cos();
            if first { a * cos - b * sin } else { a * sin + b * cos }
        };
        (0..x.len()).map(one).collect()
    }

    /// Checks that each row of the cache has its old contents or a new vector. `place` returns the
    /// plane and the row of a sequence's new key.
    fn compare(
        &self,
        what: &str,
        cache: [Vec<f64>; 2],
        rows: usize,
        place: impl Fn(usize) -> Option<[usize; 2]>,
        near: f64,
    ) {
        let new = [self.rotated(&self.k), self.v.clone()];
        for (cache, new) in cache.iter().zip(&new) {
            let mut expected = vec![f64::from(BEFORE); cache.len()];
            for sequence in 0..SEQUENCES {
                let Some([plane, row]) = place(sequence) else { continue };
                for (group, d) in (0..GROUPS).flat_map(|g| (0..WIDTH).map(move |d| (g, d))) {
                    expected[((plane * GROUPS + group) * rows + row) * WIDTH + d] =
                        new[(sequence * GROUPS + group) * WIDTH + d];
                }
            }
            for (at, (got, reference)) in cache.iter().zip(&expected).enumerate() {
                assert!((got - reference).abs() <= near, "{what}, {at}: {got}, not {reference}");
            }
        }
    }
}

/// Returns the location of a sequence's new key in a contiguous cache.
fn contiguous(sequence: usize) -> Option<[usize; 2]> {
    let row = LENGTHS[sequence] as usize;
    (row < MAX_KEYS).then_some([sequence, row])
}

const PAGE: usize = 4;
const TABLE: [u32; SEQUENCES * MAX_KEYS / PAGE] = [4, 1, 0, 8, 2, 3, 7, 5, 6];

fn paged(sequence: usize) -> Option<[usize; 2]> {
    let row = LENGTHS[sequence] as usize;
    (row < MAX_KEYS).then(|| [TABLE[sequence * MAX_KEYS / PAGE + row / PAGE] as usize, row % PAGE])
}

fn floats<T: Float + GenericArgument, K: StoredElement + GenericArgument>(
    device: &Device,
    layout: PairLayout,
    near: f64,
) {
    let step = Step::<T>::new(device, layout);
    let frequencies = step.of_frequencies.view([PAIRS]).unwrap();
    let append = Append::new(layout, &frequencies);
    let [q, k, v] = &step.on_device;
    let (of_q, of_k) = ([SEQUENCES, HEADS, WIDTH], [SEQUENCES, GROUPS, WIDTH]);
    let (q, new) = (q.view(of_q).unwrap(), [&k.view(of_k).unwrap(), &v.view(of_k).unwrap()]);
    let lengths = step.lengths.view([SEQUENCES]).unwrap();
    let empty = || device.upload(&[K::narrow(BEFORE); SEQUENCES * GROUPS * MAX_KEYS * WIDTH]).unwrap();
    let wide = |x: &DeviceBuffer<K>| {
        x.download().unwrap().into_iter().map(|x| f64::from(K::widen(K::keep([x; 4]), 0))).collect::<Vec<_>>()
    };

    let mut rotated = device.zeros::<T>(SEQUENCES * HEADS * WIDTH).unwrap();
    let (mut keys, mut values) = (empty(), empty());
    let rows = [SEQUENCES, GROUPS, MAX_KEYS, WIDTH];
    let cache = KvCacheMut::new(keys.view_mut(rows).unwrap(), values.view_mut(rows).unwrap());
    append.run(device, &q, &mut rotated.view_mut(of_q).unwrap(), new, cache, &lengths).unwrap();
    step.compare("one piece", [wide(&keys), wide(&values)], MAX_KEYS, contiguous, near);
    for (at, (got, reference)) in rotated.download().unwrap().into_iter().zip(step.rotated(&step.q)).enumerate() {
        let got = f64::from(got.to_f32());
        assert!((got - reference).abs() <= near, "query {at}: {got}, not {reference}");
    }

    let (mut keys, mut values) = (empty(), empty());
    let rows = [TABLE.len(), GROUPS, PAGE, WIDTH];
    let cache = KvCacheMut::new(keys.view_mut(rows).unwrap(), values.view_mut(rows).unwrap());
    let table = device.upload(&TABLE).unwrap();
    let of_table = table.view([SEQUENCES, MAX_KEYS / PAGE]).unwrap();
    append.run(device, &q, &mut rotated.view_mut(of_q).unwrap(), new, cache.paged(of_table), &lengths).unwrap();
    step.compare("pages", [wide(&keys), wide(&values)], PAGE, paged, near);
}

/// Appends to a cache of bytes. The error of a byte is half of a scale, 1/254 of the largest
/// element of its row, and rotated elements are below 2.
fn bytes(device: &Device, layout: PairLayout) {
    let step = Step::<f32>::new(device, layout);
    let frequencies = step.of_frequencies.view([PAIRS]).unwrap();
    let append = Append::new(layout, &frequencies);
    let [q, k, v] = &step.on_device;
    let (of_q, of_k) = ([SEQUENCES, HEADS, WIDTH], [SEQUENCES, GROUPS, WIDTH]);
    let (q, new) = (q.view(of_q).unwrap(), [&k.view(of_k).unwrap(), &v.view(of_k).unwrap()]);
    let lengths = step.lengths.view([SEQUENCES]).unwrap();
    let table = device.upload(&TABLE).unwrap();
    for pages in [false, true] {
        let (planes, rows) = if pages { (TABLE.len(), PAGE) } else { (SEQUENCES, MAX_KEYS) };
        let all = planes * GROUPS * rows;
        let mut rotated = device.zeros::<f32>(SEQUENCES * HEADS * WIDTH).unwrap();
        let mut cache = [(); 2].map(|()| device.upload(&vec![77i8; all * WIDTH]).unwrap());
        let mut scales = [(); 2].map(|()| device.upload(&vec![1.0f32; all]).unwrap());
        {
            let ([keys, values], [of_keys, of_values]) = (&mut cache, &mut scales);
            let (extents, of_rows) = ([planes, GROUPS, rows, WIDTH], [planes, GROUPS, rows]);
            let cache = KvCacheMut::new(keys.view_mut(extents).unwrap(), values.view_mut(extents).unwrap());
            let cache = cache.scaled([of_keys.view_mut(of_rows).unwrap(), of_values.view_mut(of_rows).unwrap()]);
            let mut rotated = rotated.view_mut(of_q).unwrap();
            let of_table = table.view([SEQUENCES, MAX_KEYS / PAGE]).unwrap();
            let cache = if pages { cache.paged(of_table) } else { cache };
            append.run(device, &q, &mut rotated, new, cache, &lengths).unwrap();
        }
        let wide = |n: usize| {
            let (bytes, scales) = (cache[n].download().unwrap(), scales[n].download().unwrap());
            bytes.iter().enumerate().map(|(i, x)| f64::from(*x) * f64::from(scales[i / WIDTH])).collect::<Vec<_>>()
        };
        step.compare("bytes", [wide(0), wide(1)], rows, if pages { paged } else { contiguous }, 2.0 / 254.0 * 1.01);
    }
}

/// Elements of a cache whose blocks of numbers have scales.
trait Packed: StoredElement + GenericArgument {
    /// The largest error of a number, in units of the scale. The error is 1 where a number with the
    /// sign opposite to the largest one's may be clipped.
    const ERROR: f64;

    /// Returns the numbers before they are multiplied by their scale.
    fn numbers(self) -> Vec<f64>;
}

impl Packed for i8 {
    const ERROR: f64 = 0.5;

    fn numbers(self) -> Vec<f64> {
        vec![f64::from(self)]
    }
}

impl Packed for u32 {
    const ERROR: f64 = 1.0;

    fn numbers(self) -> Vec<f64> {
        self.to_le_bytes().iter().flat_map(|b| [(*b << 4) as i8 >> 4, *b as i8 >> 4].map(f64::from)).collect()
    }
}

/// Appends keys and values to a cache of blocks one after another. Compares steps of one and of two
/// tokens with attention in `f64` over the numbers in the cache.
fn blocks<K: Packed>(device: &Device, width: usize) {
    const SEQUENCES: usize = 2;
    const KEYS: usize = 9;
    let mut random = Random::new(32);
    let per = K::NUMBERS;
    let (rows, of_scales) =
        ([SEQUENCES, GROUPS, MAX_KEYS, width / per], [SEQUENCES, GROUPS, MAX_KEYS, width.div_ceil(BLOCK)]);
    let mut cache = [(); 2].map(|()| device.zeros::<K>(rows.iter().product()).unwrap());
    let mut scales = [(); 2].map(|()| device.zeros::<f16>(of_scales.iter().product()).unwrap());
    let mut exact = [(); 2].map(|()| vec![0.0f64; SEQUENCES * GROUPS * MAX_KEYS * width]);
    let none = device.zeros::<f32>(0).unwrap();
    let append = Append::new(PairLayout::Halves, &none.view([0]).unwrap());
    for key in 0..KEYS {
        let drawn = [(); 2].map(|()| random.values::<f32>(SEQUENCES * GROUPS * width));
        for (exact, drawn) in exact.iter_mut().zip(&drawn) {
            for (row, x) in drawn.chunks(width).enumerate() {
                let at = (row * MAX_KEYS + key) * width;
                exact[at..at + width].iter_mut().zip(x).for_each(|(to, x)| *to = f64::from(*x));
            }
        }
        let new = drawn.each_ref().map(|x| device.upload(x).unwrap());
        let [k, v] = new.each_ref().map(|x| x.view([SEQUENCES, GROUPS, width]).unwrap());
        let lengths = device.upload(&[key as u32; SEQUENCES]).unwrap();
        let ([keys, values], [of_keys, of_values]) = (&mut cache, &mut scales);
        let to = KvCacheMut::new(keys.view_mut(rows).unwrap(), values.view_mut(rows).unwrap());
        let to = to.blocks([of_keys.view_mut(of_scales).unwrap(), of_values.view_mut(of_scales).unwrap()]);
        let mut rotated = device.zeros::<f32>(SEQUENCES * GROUPS * width).unwrap();
        let mut rotated = rotated.view_mut([SEQUENCES, GROUPS, width]).unwrap();
        append.run(device, &k, &mut rotated, [&k, &v], to, &lengths.view([SEQUENCES]).unwrap()).unwrap();
    }
    let held = [0, 1].map(|n: usize| {
        let numbers: Vec<f64> = cache[n].download().unwrap().into_iter().flat_map(Packed::numbers).collect();
        let scales = scales[n].download().unwrap();
        let of_row = width.div_ceil(BLOCK);
        let number = |(i, x): (usize, &f64)| {
            let scale = f64::from(scales[i / width * of_row + i % width / BLOCK]);
            let off = (x * scale - exact[n][i]).abs();
            assert!(off <= K::ERROR * scale.abs() * 1.001, "{i}: {} as {x} × {scale}", exact[n][i]);
            x * scale
        };
        numbers.iter().enumerate().map(number).collect::<Vec<_>>()
    });
    for tokens in [1, 2] {
        let of_q = [SEQUENCES * tokens, HEADS, width];
        let q = random.values::<f32>(of_q.iter().product());
        let (of_tokens, lengths) = (device.upload(&q).unwrap(), device.upload(&[KEYS as u32; SEQUENCES]).unwrap());
        let mut o = device.upload(&vec![f32::NAN; q.len()]).unwrap();
        let [keys, values] = cache.each_ref().map(|x| x.view(rows).unwrap());
        let from = KvCache::new(keys, values).blocks(scales.each_ref().map(|x| x.view(of_scales).unwrap()));
        let (q_view, lengths) = (of_tokens.view(of_q).unwrap(), lengths.view([SEQUENCES]).unwrap());
        let mut scratch = Scratch::with_splits(device, of_q, 2).unwrap();
        let mut to = o.view_mut(of_q).unwrap();
        Decode::new().tokens(tokens).run(device, &q_view, from, &lengths, &mut to, &mut scratch).unwrap();
        for (row, o) in o.download().unwrap().chunks(width).enumerate() {
            let (query, head) = (row / HEADS, row % HEADS);
            let (sequence, seen) = (query / tokens, KEYS - tokens + 1 + query % tokens);
            let at = |j: usize| ((sequence * GROUPS + head / (HEADS / GROUPS)) * MAX_KEYS + j) * width;
            let product =
                |j: usize| (0..width).map(|d| f64::from(q[row * width + d]) * held[0][at(j) + d]).sum::<f64>();
            let weights: Vec<f64> = (0..seen).map(|j| (product(j) / (width as f64).sqrt()).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (d, got) in o.iter().enumerate() {
                let sum: f64 = weights.iter().enumerate().map(|(j, w)| w * held[1][at(j) + d]).sum();
                let off = (f64::from(*got) - sum / total).abs();
                assert!(off <= 1e-5, "{tokens} tokens, row {row}, {d}: {got}, not {}", sum / total);
            }
        }
    }
}

fn all(device: &Device) {
    for width in [8, 40, 128, 256] {
        blocks::<i8>(device, width);
        blocks::<u32>(device, width);
    }
    for layout in [PairLayout::Halves, PairLayout::Interleaved] {
        floats::<f32, f32>(device, layout, 1e-5);
        bytes(device, layout);
    }
    floats::<f32, f16>(device, PairLayout::Halves, 2e-3);
    floats::<f16, f16>(device, PairLayout::Interleaved, 2e-3);
    floats::<bf16, bf16>(device, PairLayout::Halves, 1.6e-2);
}

#[test]
fn cpu_appended_keys_and_values_are_attended() {
    all(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_appended_keys_and_values_are_attended() {
    all(&Device::cuda(0).unwrap());
}

/// Checks that a replayed step appends at the lengths of the replay, not of the recording.
#[test]
fn replayed_step_uses_current_lengths() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let recording = device.record();
    let one = |x: &[f32]| recording.own(device.upload(x).unwrap()).unwrap();
    let (new, frequencies) = (one(&[1.0, 2.0]), one(&[0.0]));
    let (rotated, keys, values) = (one(&[0.0; 2]), one(&[0.0; 6]), one(&[0.0; 6]));
    let lengths = recording.own(device.upload(&[0u32]).unwrap()).unwrap();
    let (of_new, mut of_rotated) = (new.view([1, 1, 2]).unwrap(), rotated.view_mut([1, 1, 2]).unwrap());
    let rows = [1, 1, 3, 2];
    let cache = KvCacheMut::new(keys.view_mut(rows).unwrap(), values.view_mut(rows).unwrap());
    let append = Append::new(PairLayout::Halves, &frequencies.view([1]).unwrap());
    append.run(&recording, &of_new, &mut of_rotated, [&of_new, &of_new], cache, &lengths.view([1]).unwrap()).unwrap();
    let mut graph = recording.finish().unwrap();
    for n in 0..2u32 {
        graph.buffer_mut(lengths).unwrap().copy_from(&[n + 1]).unwrap();
        graph.replay(&stream).unwrap();
        stream.wait().unwrap();
    }
    assert_eq!(graph.buffer(keys).unwrap().download().unwrap(), [0.0, 0.0, 1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn extents_are_compared() {
    let device = Device::cpu();
    let (x, lengths) = (device.zeros::<f32>(8).unwrap(), device.zeros::<u32>(2).unwrap());
    let (mut rotated, mut keys, mut values) =
        (device.zeros::<f32>(8).unwrap(), device.zeros::<f32>(8).unwrap(), device.zeros::<f32>(8).unwrap());
    let q = x.view([2, 1, 4]).unwrap();
    let rows = [1, 1, 2, 4];
    let cache = KvCacheMut::new(keys.view_mut(rows).unwrap(), values.view_mut(rows).unwrap());
    let frequencies = x.view([8]).unwrap();
    let append = Append::new(PairLayout::Halves, &frequencies);
    let mut of_rotated = rotated.view_mut([2, 1, 4]).unwrap();
    let refused = append.run(&device, &q, &mut of_rotated, [&q, &q], cache, &lengths.view([2]).unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("the cache has 1 planes, and there are 2 queries"), "{said}");

    // Scales of blocks of floats, and heads that are not whole words.
    let mut scales = [(); 2].map(|()| device.zeros::<f16>(2).unwrap());
    let rows = [2, 1, 1, 4];
    let cache = KvCacheMut::new(keys.view_mut(rows).unwrap(), values.view_mut(rows).unwrap());
    let cache = cache.blocks(scales.each_mut().map(|scales| scales.view_mut([2, 1, 1, 1]).unwrap()));
    let refused = append.run(&device, &q, &mut of_rotated, [&q, &q], cache, &lengths.view([2]).unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("scales of 32 numbers belong to a cache of bytes"), "{said}");
    let mut words = [(); 2].map(|()| device.zeros::<u32>(2).unwrap());
    let [keys_of_words, values_of_words] = words.each_mut().map(|x| x.view_mut([2, 1, 1, 1]).unwrap());
    let cache = KvCacheMut::new(keys_of_words, values_of_words);
    let refused = append.run(&device, &q, &mut of_rotated, [&q, &q], cache, &lengths.view([2]).unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("heads of q have 4 numbers; expected a multiple of 8"), "{said}");

    // Scales of a cache of floats.
    let mut scales = [(); 2].map(|()| device.zeros::<f32>(4).unwrap());
    let [of_keys, of_values] = &mut scales;
    let rows = [2, 1, 1, 4];
    let cache = KvCacheMut::new(keys.view_mut(rows).unwrap(), values.view_mut(rows).unwrap());
    let cache = cache.scaled([of_keys, of_values].map(|scales| scales.view_mut([2, 1, 2]).unwrap()));
    let refused = append.run(&device, &q, &mut of_rotated, [&q, &q], cache, &lengths.view([2]).unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("scales of rows belong to a cache of bytes"), "{said}");
}
