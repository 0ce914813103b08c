//! Tests of attention over caches, on the CPU and on a GPU, against plain Rust in `f64`.

use kernel_dsl::half::f16;
use kernel_dsl::{Element, GenericArgument};
use kernels_rs::attention::cache::StoredElement;
use kernels_rs::attention::mask::{BlockMask, BlockSize, local};
use kernels_rs::attention::{Attention, KvCache, Layout};
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer, Error};

/// Sequences, and rows of a page. A page ends within a tile of 64 keys.
const BATCH: usize = 2;
const PAGE: usize = 24;

/// The numbers of query heads, key heads, queries, keys, and elements of a head.
#[derive(Clone, Copy, Debug)]
struct CachedShape {
    heads: usize,
    groups: usize,
    queries: usize,
    keys: usize,
    width: usize,
}

/// How keys lie in a cache.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Planes {
    /// A plane for each sequence.
    Contiguous,
    /// Pages, of which the last sequence has the first.
    Pages,
}

/// Keys and values of all sequences: the elements of rows [sequence, head, key], as stored and as
/// numbers, with scales of rows or of 32 numbers.
struct Rows<K> {
    stored: [Vec<K>; 2],
    scales: [Vec<f16>; 2],
    of_rows: [Vec<f32>; 2],
    numbers: [Vec<f64>; 2],
}

/// The scales of a cache.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Factors {
    None,
    Rows,
    Blocks,
}

/// Draws rows. `element` returns an element and its numbers.
fn rows<K>(
    random: &mut Random,
    shape: CachedShape,
    factors: Factors,
    element: impl Fn(&mut Random) -> (K, Vec<f64>),
) -> Rows<K> {
    let CachedShape { groups, keys, width, .. } = shape;
    let blocks = width.div_ceil(32);
    let mut all = Rows {
        stored: [Vec::new(), Vec::new()],
        scales: [Vec::new(), Vec::new()],
        of_rows: [Vec::new(), Vec::new()],
        numbers: [Vec::new(), Vec::new()],
    };
    for half in 0..2 {
        for _ in 0..BATCH * groups * keys {
            let of_row = (1 + random.below(64)) as f32 / 64.0;
            let scales: Vec<f16> = (0..blocks).map(|_| f16::from_f32((1 + random.below(64)) as f32 / 64.0)).collect();
            let mut d = 0;
            while d < width {
                let (stored, numbers) = element(random);
                all.stored[half].push(stored);
                for number in numbers {
                    let scale = match factors {
                        Factors::None => 1.0,
                        Factors::Rows => f64::from(of_row),
                        Factors::Blocks => f64::from(scales[d / 32]),
                    };
                    all.numbers[half].push(number * scale);
                    d += 1;
                }
            }
            all.scales[half].extend(scales);
            all.of_rows[half].push(of_row);
        }
    }
    all
}

/// Copies rows of [sequence, head, key] to the rows of pages, whose others are `other`.
fn in_pages<T: Copy>(rows: &[T], shape: CachedShape, other: T) -> Vec<T> {
    let CachedShape { groups, keys, .. } = shape;
    let (pages, of_row) = (keys.div_ceil(PAGE), rows.len() / (BATCH * groups * keys));
    let mut all = vec![other; BATCH * pages * groups * PAGE * of_row];
    for (i, row) in rows.chunks(of_row).enumerate() {
        let (key, group, sequence) = (i % keys, i / keys % groups, i / keys / groups);
        let plane = BATCH * pages - 1 - (sequence * pages + key / PAGE);
        let at = ((plane * groups + group) * PAGE + key % PAGE) * of_row;
        all[at..at + of_row].copy_from_slice(row);
    }
    all
}

/// Compares a causal call with plain Rust, and the logarithms of sums.
fn compare<K: StoredElement + GenericArgument + Element>(
    device: &Device,
    random: &mut Random,
    shape: CachedShape,
    (factors, planes): (Factors, Planes),
    rows: &Rows<K>,
    other: K,
) {
    let CachedShape { heads, groups, queries, keys, width } = shape;
    let q: Vec<f32> = random.values(BATCH * heads * queries * width);
    let scale = [1.0, 0.004, 0.04][if K::NUMBERS > 1 { 2 } else { usize::from(factors != Factors::None) }];
    let pages = keys.div_ceil(PAGE);
    let (count, of_plane) = if planes == Planes::Pages { (BATCH * pages, PAGE) } else { (BATCH, keys) };
    let [k, v] = [0, 1].map(|half| {
        let stored = &rows.stored[half];
        let paged = in_pages(stored, shape, other);
        device.upload(if planes == Planes::Pages { &paged } else { stored }).unwrap()
    });
    let blocks = [0, 1].map(|half| {
        let paged = in_pages(&rows.scales[half], shape, f16::NAN);
        device.upload(if planes == Planes::Pages { &paged } else { &rows.scales[half] }).unwrap()
    });
    let of_rows = [0, 1].map(|half| {
        let paged = in_pages(&rows.of_rows[half], shape, f32::NAN);
        device.upload(if planes == Planes::Pages { &paged } else { &rows.of_rows[half] }).unwrap()
    });
    let elements = [count, groups, of_plane, width / K::NUMBERS];
    let mut cache = KvCache::new(k.view(elements).unwrap(), v.view(elements).unwrap());
    if factors == Factors::Blocks {
        let of = [count, groups, of_plane, width.div_ceil(32)];
        cache = cache.blocks([blocks[0].view(of).unwrap(), blocks[1].view(of).unwrap()]);
    }
    if factors == Factors::Rows {
        let of = [count, groups, of_plane];
        cache = cache.scaled([of_rows[0].view(of).unwrap(), of_rows[1].view(of).unwrap()]);
    }
    let table: Vec<u32> = (0..(BATCH * pages) as u32).rev().collect();
    let table = device.upload(&table).unwrap();
    // The second sequence has fewer queries and keys.
    let lengths = [[queries, queries.div_ceil(2)], [keys, keys - keys / 3]];
    let on_device = lengths.map(|n| device.upload(&n.map(|n| n as u32)).unwrap());
    let mut call = Attention::new().scale(scale).causal();
    if planes == Planes::Pages {
        cache = cache.paged(table.view([BATCH, pages]).unwrap());
    }
    call = call.layout(Layout::Padded {
        queries: on_device[0].view([BATCH]).unwrap(),
        keys: on_device[1].view([BATCH]).unwrap(),
    });
    let on_card = device.upload(&q).unwrap();
    let of_q = [BATCH, heads, queries, width];
    let mut o = device.upload(&vec![77.0f32; q.len()]).unwrap();
    let mut lse = device.upload(&vec![77.0f32; BATCH * heads * queries]).unwrap();
    let mut logs = lse.view_mut([BATCH, heads, queries]).unwrap();
    let (q_view, mut o_view) = (on_card.view(of_q).unwrap(), o.view_mut(of_q).unwrap());
    call.run_cached(device, &q_view, cache, &mut o_view, Some(&mut logs)).unwrap();
    let (o, lse) = (o.download().unwrap(), lse.download().unwrap());
    for row in 0..BATCH * heads * queries {
        let (sequence, head, query) = (row / queries / heads, row / queries % heads, row % queries);
        let [of_queries, of_keys] = [lengths[0][sequence], lengths[1][sequence]];
        let first = (sequence * groups + head / (heads / groups)) * keys;
        let seen = (of_keys + query + 1).saturating_sub(of_queries).min(of_keys);
        let product = |key: usize| -> f64 {
            let of = |d: usize| f64::from(q[row * width + d]) * rows.numbers[0][(first + key) * width + d];
            (0..width).map(of).sum()
        };
        let logits: Vec<f64> = (0..seen).map(|key| f64::from(scale) * product(key)).collect();
        let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logits.iter().map(|x| (x - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let what = format!("{shape:?}, {factors:?}, {planes:?}, row {row}");
        let exact = match (query < of_queries, seen) {
            (false, _) => 77.0,
            (_, 0) => f64::NEG_INFINITY,
            _ => top + sum.ln(),
        };
        let near = |got: f32, exact: f64| {
            f64::from(got) == exact || (f64::from(got) - exact).abs() <= 1e-4 * exact.abs().max(8.0)
        };
        assert!(near(lse[row], exact), "{what}: the logarithm is {}, not {exact}", lse[row]);
        for d in 0..width {
            let of = |key: usize| weights[key] * rows.numbers[1][(first + key) * width + d];
            let exact = match (query < of_queries, seen) {
                (false, _) => 77.0,
                (_, 0) => 0.0,
                _ => (0..seen).map(of).sum::<f64>() / sum,
            };
            assert!(near(o[row * width + d], exact), "{what}: element {d} is {}, not {exact}", o[row * width + d]);
        }
    }
}

/// Checks every format and every form of tiles, each with contiguous planes or pages, or with both
/// if the environment requests whole tests.
fn formats(device: &Device) {
    let mut random = Random::new(11);
    let shapes = [
        CachedShape { heads: 2, groups: 1, queries: 3, keys: 5, width: 8 },
        CachedShape { heads: 1, groups: 1, queries: 20, keys: 150, width: 128 },
        CachedShape { heads: 2, groups: 2, queries: 3, keys: 70, width: 96 },
        CachedShape { heads: 3, groups: 1, queries: 70, keys: 100, width: 32 },
        CachedShape { heads: 1, groups: 1, queries: 66, keys: 65, width: 64 },
        CachedShape { heads: 1, groups: 1, queries: 66, keys: 130, width: 40 },
        CachedShape { heads: 1, groups: 1, queries: 17, keys: 64, width: 160 },
    ];
    // Formats alternate between contiguous planes and pages. So do shapes, by the first format's
    // kind of planes.
    let both = [Planes::Contiguous, Planes::Pages];
    for (i, shape) in shapes.into_iter().enumerate() {
        let of_turn = |turn: usize| {
            let planes = both[(i + turn) % 2];
            both.into_iter().filter(move |of| tests::share::is_whole() || *of == planes)
        };
        let q8 = |random: &mut Random| {
            let byte = random.below(256) as u8 as i8;
            (byte, vec![f64::from(byte)])
        };
        for (turn, factors) in [Factors::Blocks, Factors::Rows].into_iter().enumerate() {
            let all = rows(&mut random, shape, factors, q8);
            of_turn(turn).for_each(|planes| compare(device, &mut random, shape, (factors, planes), &all, 3i8));
        }
        let q4 = |random: &mut Random| {
            let word = random.bits() as u32;
            (word, (0..8).map(|i| f64::from((word << (28 - 4 * i)) as i32 >> 28)).collect())
        };
        let all = rows(&mut random, shape, Factors::Blocks, q4);
        of_turn(1).for_each(|planes| compare(device, &mut random, shape, (Factors::Blocks, planes), &all, 3u32));
        let half = |random: &mut Random| {
            let x = f16::from_f32(random.values::<f32>(1)[0]);
            (x, vec![f64::from(x)])
        };
        let all = rows(&mut random, shape, Factors::None, half);
        of_turn(0).for_each(|planes| compare(device, &mut random, shape, (Factors::None, planes), &all, f16::NAN));
    }
}

#[test]
fn cpu_formats_of_caches_agree_with_the_reference() {
    formats(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_formats_of_caches_agree_with_the_reference() {
    formats(&Device::cuda(0).unwrap());
}

/// Compares a call over floats in a cache with the call over the same floats, bit for bit, with a
/// block mask.
#[test]
fn a_cache_of_floats_gives_the_same_bits() -> Result<(), Error> {
    let device = Device::cpu();
    let mut random = Random::new(5);
    let (of_q, of_k) = ([1, 2, 130, 16], [1, 1, 200, 16]);
    let mut draw = |extents: [usize; 4]| -> Result<DeviceBuffer<f32>, Error> {
        device.upload(&random.values::<f32>(extents.iter().product()))
    };
    let (q, k, v) = (draw(of_q)?, draw(of_k)?, draw(of_k)?);
    let mask = BlockMask::new(BlockSize::Small, 2, [130, 200], local(1)).upload(&device)?;
    let call = Attention::new().mask(&mask);
    let (mut plain, mut cached) = (device.zeros::<f32>(2 * 130 * 16)?, device.zeros::<f32>(2 * 130 * 16)?);
    let (q, k, v) = (q.view(of_q)?, k.view(of_k)?, v.view(of_k)?);
    call.run(&device, kernels_rs::attention::Qkv { q, k, v }, &mut plain.view_mut(of_q)?, None)?;
    call.run_cached(&device, &q, KvCache::new(k, v), &mut cached.view_mut(of_q)?, None)?;
    let bits =
        |x: DeviceBuffer<f32>| -> Result<Vec<u32>, Error> { Ok(x.download()?.iter().map(|x| x.to_bits()).collect()) };
    assert_eq!(bits(plain)?, bits(cached)?);
    Ok(())
}
