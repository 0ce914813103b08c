//! Benchmarks of attention: long queries compared with their two matrix products, masked attention
//! compared with unmasked, and a decoding step compared with a copy.

use super::{Measurement, Timer, Trial, WorkRate, drawn, measure_all};
use crate::bench::typical::{ATTENTION_FLOP_PER_NS, LONG_NS};
use crate::error::Error;
use ::runtime::testing::{Draw, Random};
use ::runtime::{Device, DeviceBuffer};
use kernel_dsl::half::f16;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::attention::cache::{BLOCK, StoredElement};
use kernels_rs::attention::mask::{BlockMask, BlockSize, random};
use kernels_rs::attention::{Attention, Decode, Gradients, KvCache, Qkv, Scratch};
use kernels_rs::gemm::Gemm;

/// Sequences, heads, queries and keys, and elements of a head.
const SHAPES: [[usize; 4]; 4] = [[1, 16, 2048, 128], [4, 16, 512, 64], [1, 16, 4096, 128], [1, 16, 2048, 80]];

pub(super) fn measure(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for shape in SHAPES {
        for causal in [false, true] {
            measured.extend(measure_attention::<f32>("attention f32", timer, shape, causal, rounds)?);
        }
    }
    for causal in [false, true] {
        measured.extend(measure_attention::<f16>("attention f16", timer, SHAPES[0], causal, rounds)?);
    }
    for shape in [SHAPES[0], SHAPES[1]] {
        for causal in [false, true] {
            measured.extend(backward(timer, shape, causal, rounds)?);
        }
    }
    for (length, density) in [(4096, 0.5), (4096, 0.1), (8192, 0.1)] {
        for size in [BlockSize::Large, BlockSize::Small] {
            measured.extend(masked(timer, [1, 16, length, 128], size, density, rounds)?);
        }
    }
    Ok(measured)
}

/// Measures attention compared with its two matrix products over all keys, whose scores go through
/// global memory.
fn measure_attention<T: Draw + Float + GenericArgument>(
    kernel: &'static str,
    timer: &Timer,
    shape: [usize; 4],
    causal: bool,
    rounds: usize,
) -> Result<Vec<Measurement>, Error> {
    let ([batch, heads, length, width], stream) = (shape, timer.stream());
    let (device, mut random) = (stream.device(), Random::new(1));
    let elements = batch * heads * length * width;
    let [q, k, v] = [(); 3].map(|()| drawn::<T>(device, &mut random, elements));
    let (q, k, v) = (q?, k?, v?);
    let zeros = |n: usize| device.zeros::<T>(n).map_err(Error::Device);
    let (mut o, mut product, mut scores) =
        (zeros(elements)?, zeros(elements)?, zeros(batch * heads * length * length)?);
    let pairs = if causal { length * (length + 1) / 2 } else { length * length };
    let flop = 4.0 * (batch * heads * pairs * width) as f64;
    let times = (LONG_NS / (flop / ATTENTION_FLOP_PER_NS)).clamp(2.0, 50.0) as u32;
    let attention = if causal { Attention::new().causal() } else { Attention::new() };
    let planes = [batch * heads, length, width];
    let contenders = vec![
        timer.timed("ours", times, || {
            let qkv = Qkv { q: q.view(shape)?, k: k.view(shape)?, v: v.view(shape)? };
            attention.run(stream, qkv, &mut o.view_mut(shape)?, None)
        }),
        timer.timed("both products", times, || {
            let square = [batch * heads, length, length];
            let gemm = Gemm::new().transpose_b();
            gemm.run(stream, &q.view(planes)?, &k.view(planes)?, &mut scores.view_mut(square)?)?;
            Gemm::new().run(stream, &scores.view(square)?, &v.view(planes)?, &mut product.view_mut(planes)?)
        }),
    ];
    let seen = if causal { "causal" } else { "full" };
    let shape = format!("{batch}x{heads}x{length}x{width}, {seen}");
    measure_all(
        vec![Trial { kernel, shape, rate: Some(WorkRate::Flop(flop)), contenders, after: Box::new(|| ()) }],
        rounds,
    )
}

/// Measures the three gradients compared with the forward call. The operation count covers the five
/// matrix products they need, 2.5 × the forward call's (Dao and others, 2022).
fn backward(timer: &Timer, shape: [usize; 4], causal: bool, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let ([batch, heads, length, width], stream) = (shape, timer.stream());
    let (device, mut random) = (stream.device(), Random::new(1));
    let elements = batch * heads * length * width;
    let [q, k, v, d_o] = [(); 4].map(|()| drawn::<f32>(device, &mut random, elements));
    let (q, k, v, d_o) = (q?, k?, v?, d_o?);
    let zeros = |n: usize| device.zeros::<f32>(n).map_err(Error::Device);
    let (mut o, mut again, of_rows) = (zeros(elements)?, zeros(elements)?, [batch, heads, length]);
    let mut lse = zeros(of_rows.iter().product())?;
    let (mut d_q, mut d_k, mut d_v) = (zeros(elements)?, zeros(elements)?, zeros(elements)?);
    let pairs = if causal { length * (length + 1) / 2 } else { length * length };
    let flop = 10.0 * (batch * heads * pairs * width) as f64;
    let times = (LONG_NS / (flop / ATTENTION_FLOP_PER_NS)).clamp(2.0, 50.0) as u32;
    let attention = if causal { Attention::new().causal() } else { Attention::new() };
    let forward = |o: &mut DeviceBuffer<f32>, lse: Option<&mut DeviceBuffer<f32>>| {
        let mut lse = lse.map(|lse| lse.view_mut(of_rows)).transpose()?;
        let qkv = Qkv { q: q.view(shape)?, k: k.view(shape)?, v: v.view(shape)? };
        attention.run(stream, qkv, &mut o.view_mut(shape)?, lse.as_mut())
    };
    forward(&mut o, Some(&mut lse)).map_err(Error::Device)?;
    let contenders = vec![
        timer.timed("ours", times, || {
            let qkv = Qkv { q: q.view(shape)?, k: k.view(shape)?, v: v.view(shape)? };
            let (o, d_o, lse) = (o.view(shape)?, d_o.view(shape)?, lse.view(of_rows)?);
            let (d_q, d_k, d_v) = (d_q.view_mut(shape)?, d_k.view_mut(shape)?, d_v.view_mut(shape)?);
            attention.backward(stream, qkv, [&o, &d_o], &lse, Gradients { d_q, d_k, d_v })
        }),
        timer.timed("forward", times, || forward(&mut again, None)),
    ];
    let seen = if causal { "causal" } else { "full" };
    let shape = format!("{batch}x{heads}x{length}x{width}, {seen}");
    let kernel = "attention backward f32";
    measure_all(
        vec![Trial { kernel, shape, rate: Some(WorkRate::Flop(flop)), contenders, after: Box::new(|| ()) }],
        rounds,
    )
}

/// Measures attention with a random mask compared with unmasked attention.
fn masked(
    timer: &Timer,
    shape: [usize; 4],
    size: BlockSize,
    density: f64,
    rounds: usize,
) -> Result<Vec<Measurement>, Error> {
    let ([batch, heads, length, width], stream) = (shape, timer.stream());
    let (device, mut numbers) = (stream.device(), Random::new(1));
    let elements = batch * heads * length * width;
    let [q, k, v] = [(); 3].map(|()| drawn::<f32>(device, &mut numbers, elements));
    let (q, k, v) = (q?, k?, v?);
    let (mut o, mut other) =
        (device.zeros::<f32>(elements).map_err(Error::Device)?, device.zeros::<f32>(elements).map_err(Error::Device)?);
    let mask = BlockMask::new(size, heads, [length, length], random(density, 1));
    let on_device = mask.upload(device).map_err(Error::Device)?;
    let flop = 4.0 * mask.density() * (batch * heads * length * length * width) as f64;
    let contenders = vec![
        timer.timed("ours", 2, || {
            let qkv = Qkv { q: q.view(shape)?, k: k.view(shape)?, v: v.view(shape)? };
            Attention::new().mask(&on_device).run(stream, qkv, &mut o.view_mut(shape)?, None)
        }),
        timer.timed("whole", 2, || {
            let qkv = Qkv { q: q.view(shape)?, k: k.view(shape)?, v: v.view(shape)? };
            Attention::new().run(stream, qkv, &mut other.view_mut(shape)?, None)
        }),
    ];
    let shape = format!("{heads}x{length}x{width}, blocks of {}, density {:.3}", size.get(), mask.density());
    let trial = Trial {
        kernel: "block-sparse attention f32",
        shape,
        rate: Some(WorkRate::Flop(flop)),
        contenders,
        after: Box::new(|| ()),
    };
    measure_all(vec![trial], rounds)
}

pub(super) fn measure_decode(timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for shape in [[1, 16, 8, 8192, 128], [1, 16, 8, 65_536, 128], [4, 16, 8, 8192, 128]] {
        measured.extend(decoded::<f32, f32>("decode f32", timer, shape, 1, rounds)?);
    }
    measured.extend(decoded::<f16, f16>("decode f16", timer, [1, 16, 8, 32_768, 128], 1, rounds)?);
    // A sequence's drafts, with two and with four query heads a key head.
    for (heads, keys, tokens) in [
        (16, 8192, 1),
        (16, 8192, 2),
        (16, 8192, 4),
        (16, 8192, 8),
        (16, 8192, 16),
        (16, 32_768, 4),
        (32, 8192, 1),
        (32, 8192, 4),
    ] {
        measured.extend(decoded::<f16, f16>("decode f16", timer, [1, heads, 8, keys, 128], tokens, rounds)?);
    }
    measured.extend(decoded::<f32, f32>("decode f32", timer, [1, 16, 8, 8192, 128], 4, rounds)?);
    for (keys, tokens) in [(8192, 1), (32_768, 1), (131_072, 1), (32_768, 4)] {
        let shape = [1, 16, 8, keys, 128];
        measured.extend(decoded::<f16, i8>("decode q8_0", timer, shape, tokens, rounds)?);
        measured.extend(decoded::<f16, u32>("decode q4_0", timer, shape, tokens, rounds)?);
    }
    Ok(measured)
}

/// The numbers of a cache: floats, or blocks of 32 numbers with a scale.
trait CacheNumber: StoredElement + GenericArgument {
    /// Draws `n` elements, and their scales if there are any.
    fn drawn(device: &Device, random: &mut Random, n: usize) -> Result<ElementsAndScales<Self>, Error>;
}

/// Elements of keys or of values, and the scales of their blocks.
type ElementsAndScales<K> = (DeviceBuffer<K>, Option<DeviceBuffer<f16>>);

impl CacheNumber for f32 {
    fn drawn(device: &Device, random: &mut Random, n: usize) -> Result<ElementsAndScales<f32>, Error> {
        Ok((drawn(device, random, n)?, None))
    }
}

impl CacheNumber for f16 {
    fn drawn(device: &Device, random: &mut Random, n: usize) -> Result<ElementsAndScales<f16>, Error> {
        Ok((drawn(device, random, n)?, None))
    }
}

impl CacheNumber for i8 {
    fn drawn(device: &Device, random: &mut Random, n: usize) -> Result<ElementsAndScales<i8>, Error> {
        Ok((drawn(device, random, n)?, Some(drawn(device, random, n.div_ceil(BLOCK))?)))
    }
}

impl CacheNumber for u32 {
    fn drawn(device: &Device, random: &mut Random, n: usize) -> Result<ElementsAndScales<u32>, Error> {
        let words: Vec<u32> = (0..n).map(|_| random.bits() as u32).collect();
        let words = device.upload(&words).map_err(Error::Device)?;
        Ok((words, Some(drawn(device, random, (n * u32::NUMBERS).div_ceil(BLOCK))?)))
    }
}

/// Measures a decoding step of `tokens` tokens a sequence, compared with a copy of the same number
/// of bytes.
fn decoded<T: Draw + Float + GenericArgument, K: CacheNumber>(
    kernel: &'static str,
    timer: &Timer,
    shape: [usize; 5],
    tokens: usize,
    rounds: usize,
) -> Result<Vec<Measurement>, Error> {
    let ([sequences, heads, groups, keys, width], stream) = (shape, timer.stream());
    let (device, mut random) = (stream.device(), Random::new(1));
    let elements = sequences * groups * keys * (width / K::NUMBERS);
    let q = drawn::<T>(device, &mut random, sequences * tokens * heads * width)?;
    let [(k, of_keys), (v, of_values)] =
        [K::drawn(device, &mut random, elements)?, K::drawn(device, &mut random, elements)?];
    let lengths = device.upload(&vec![keys as u32; sequences]).map_err(Error::Device)?;
    let mut o = device.zeros::<T>(sequences * tokens * heads * width).map_err(Error::Device)?;
    let of_q = [sequences * tokens, heads, width];
    let mut scratch = Scratch::for_tokens(device, of_q, tokens, groups, keys).map_err(Error::Device)?;
    let bytes = elements * size_of::<K>() + of_keys.as_ref().map_or(0, |scales| scales.len() * size_of::<f16>());
    let zeros = || device.zeros::<u8>(bytes).map_err(Error::Device);
    let (source, mut target) = (zeros()?, zeros()?);
    let bytes = 2.0 * bytes as f64;
    let times = (LONG_NS / (bytes / 4e3)).clamp(2.0, 100.0) as u32;
    let (cache, of_blocks) =
        ([sequences, groups, keys, width / K::NUMBERS], [sequences, groups, keys, width.div_ceil(BLOCK)]);
    let contenders = vec![
        timer.timed("ours", times, || {
            let mut cache = KvCache::new(k.view(cache)?, v.view(cache)?);
            if let (Some(of_keys), Some(of_values)) = (&of_keys, &of_values) {
                cache = cache.blocks([of_keys.view(of_blocks)?, of_values.view(of_blocks)?]);
            }
            let (lengths, mut o) = (lengths.view([sequences])?, o.view_mut(of_q)?);
            Decode::new().tokens(tokens).run(stream, &q.view(of_q)?, cache, &lengths, &mut o, &mut scratch)
        }),
        timer.timed("copy", times, || stream.copy(&source, &mut target)),
    ];
    let shape = format!("{sequences}x{tokens}x{heads} queries, {groups}x{keys} keys of {width}");
    measure_all(
        vec![Trial { kernel, shape, rate: Some(WorkRate::Bytes(bytes)), contenders, after: Box::new(|| ()) }],
        rounds,
    )
}
