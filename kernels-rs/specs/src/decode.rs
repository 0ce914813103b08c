//! Specs of `flash_decode` and `cache_append`: a decoding step with caches of every layout and
//! format.

use super::attention::{has, softmax};
use super::stored::{at_rest, drawn, extreme, numbers, rounded, scalars};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::half::{bf16, f16};
use kernels_rs::attention::append::cache_append;
use kernels_rs::attention::cache::{BLOCK, Blocks, Contiguous, Paged, Scaled, Unscaled};
use kernels_rs::attention::decode::flash_decode;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(flash_decode<f32, f32, f32, Unscaled, Contiguous, 16, 4, 8, 2, 4, false, 1, 128, true, 2, 8, 8>, cases, reference);
runtime::register!(cache_append<f32, f32, f32, Contiguous, 0, false>, append_cases, append_reference);

/// Rows of a page.
const PAGE: usize = 16;

/// Returns a cache: numbers stored as `stored`, bytes, or words of eight numbers of four bits.
fn rows(random: &mut Random, stored: Scalar, extents: [usize; 4]) -> Input {
    let [planes, heads, rows, width] = extents;
    let strides = [heads * rows * width, rows * width, width, 1];
    match stored {
        Scalar::I8 => {
            let bytes: Vec<i8> = (0..planes * strides[0]).map(|_| random.below(255) as u8 as i8).collect();
            Input::strided(&bytes, extents, strides)
        }
        Scalar::U32 => {
            let words: Vec<u32> = (0..planes * strides[0] / 8).map(|_| random.bits() as u32).collect();
            let strides = [strides[0] / 8, strides[1] / 8, width / 8, 1];
            Input::strided(&words, [planes, heads, rows, width / 8], strides)
        }
        _ => drawn(random, stored, planes * strides[0], extents, strides),
    }
}

/// Returns the numbers of elements stored as `stored`.
pub(super) fn unpacked(stored: Scalar, elements: Vec<f64>) -> Vec<f64> {
    if stored != Scalar::U32 {
        return elements;
    }
    // Four bits in two's complement.
    let number = |word: u32, i: usize| f64::from(((word >> (4 * i)) << 28) as i32 >> 28);
    elements.into_iter().flat_map(|word| (0..8).map(move |i| number(word as u32, i))).collect()
}

/// Returns words of eight numbers of four bits.
fn words(numbers: &[f64]) -> Vec<f64> {
    let word = |eight: &[f64]| (0..8).fold(0u32, |word, i| word | (eight[i] as i32 as u32 & 15) << (4 * i));
    numbers.chunks_exact(8).map(|eight| f64::from(word(eight))).collect()
}

/// Returns the numbers of a row that share a scale, and the scales of a row of `width` numbers.
fn shared(instance: &Instance, width: usize) -> [usize; 2] {
    if has::<Blocks>(instance) { [BLOCK, width.div_ceil(BLOCK)] } else { [width.max(1), 1] }
}

/// Returns the number of planes, their rows, and the planes of each sequence: one each, or pages in
/// some order.
fn layout(instance: &Instance, sequences: usize, room: usize) -> ([usize; 2], Option<Input>) {
    if !has::<Paged>(instance) {
        return ([sequences, room], None);
    }
    let pages = room.div_ceil(PAGE);
    // From the last page to the first.
    let table: Vec<u32> = (0..(sequences * pages) as u32).rev().collect();
    ([sequences * pages, PAGE], Some(Input::view(&table, [sequences, pages])))
}

/// The constants of an instance of `flash_decode`.
#[derive(Clone, Copy)]
struct DecodeConstants {
    lanes: usize,
    wide: usize,
    each: usize,
    group: usize,
    /// Whether sequences have several tokens.
    several: bool,
    /// The columns of a block.
    columns: usize,
    /// The number of keys that a block takes at a time.
    iteration_keys: usize,
}

impl DecodeConstants {
    fn of(instance: &Instance) -> Option<DecodeConstants> {
        let &[lanes, wide, each, group, in_flight, several, sets, threads, ..] = numbers(instance).as_slice() else {
            return None;
        };
        let iteration_keys = threads / sets / lanes * in_flight;
        Some(DecodeConstants { lanes, wide, each, group, several: several == 1, columns: group * sets, iteration_keys })
    }
}

/// The shape of a case.
#[derive(Clone, Copy)]
struct DecodeShape<'a> {
    /// Key heads, query heads per key head, and elements of a head.
    heads: [usize; 3],
    tokens: usize,
    /// The keys of each sequence.
    lengths: &'a [u32],
    /// The number of keys that a sequence has room for, and the number of splits.
    room: [usize; 2],
    /// A factor of the logits.
    larger: f32,
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let Some(constants) = DecodeConstants::of(instance) else { return Vec::new() };
    let DecodeConstants { lanes, wide, each, group, several, columns, iteration_keys } = constants;
    let keys = iteration_keys as u32;
    type Listed<'a> = ([usize; 3], usize, &'a [u32], [usize; 2], f32);
    let one: [Listed; 8] = [
        ([1, 1, wide], 1, &[1], [1, 1], 1.0),
        // One split is full, and the other has one key, two, or none; logits with only one
        // significant key.
        ([1, 1, wide], 1, &[2 * keys + 1, 2 * keys + 2, 2 * keys], [3 * iteration_keys, 2], 1e4),
        // Several iterations of one split.
        ([1, 1, wide], 1, &[2 * keys + 1], [3 * iteration_keys, 1], 1.0),
        // More splits than a warp has lanes; most have no keys.
        ([1, 1, lanes * each], 1, &[70], [80, 34], 1.0),
        // More splits with keys than a warp has lanes, and more than are reduced at once.
        ([1, group, wide], 1, &[36 * keys - 3, 36 * keys - 1], [36 * iteration_keys, 36], 1.0),
        ([2, group + 1, lanes * each], 1, &[37, 0], [40, 2], 1.0),
        ([1, group, lanes * each - wide], 1, &[70, 65, 33], [64, 3], 1.0),
        ([1, 1, lanes * each], 1, &[5], [200, 4], 1.0),
    ];
    let tokens: [Listed; 8] = [
        ([1, 1, wide], 1, &[1], [1, 1], 1.0),
        // The last tokens' keys begin an iteration, end one, and lie in two splits. Only one key's
        // logit is significant.
        ([1, 1, wide], 2, &[2 * keys + 1, 2 * keys + 2, 2 * keys], [3 * iteration_keys, 2], 1e4),
        // Tokens without keys, and no sequence.
        ([1, 1, wide], 3, &[2, 0, 3], [4, 2], 1.0),
        // All columns of a block, and one of the next.
        ([2, 1, lanes * each], columns, &[keys + 3], [2 * iteration_keys, 3], 1.0),
        ([1, columns + 1, wide], 1, &[37, 40], [40, 2], 1.0),
        // Heads that do not divide the columns of a warp.
        ([1, 3, lanes * each - wide], 5, &[70, 65, 33], [64, 3], 1.0),
        // More splits than a warp has lanes; most have no keys.
        ([1, 2, wide], 4, &[70], [80, 34], 1.0),
        // Several splits that every token sees.
        ([1, 2, wide], 2, &[9 * keys - 3], [9 * iteration_keys, 3], 1.0),
    ];
    let shapes = if several { tokens } else { one };
    let shape = |(heads, tokens, lengths, room, larger)| DecodeShape { heads, tokens, lengths, room, larger };
    let mut all: Vec<Case> = shapes.map(|listed| case(instance, random, shape(listed))).into();
    let &[of_q, .., cached] = scalars(instance).as_slice() else { return all };
    if !matches!(cached, Scalar::I8 | Scalar::U32) {
        // A column of values of each extreme; the extremes repeat. Then infinite values, and a
        // single key in the next iteration.
        let values: [(&str, &[Extreme], [u32; 1], usize); 2] = [
            ("extreme values", &Extreme::ALL, [7], 16),
            ("values of −∞", &[Extreme::AllNegativeInfinity], [keys + 1], 2 * iteration_keys),
        ];
        for (name, which, keys, room) in &values {
            let mut of_values = case(instance, random, shape(([1, 1, lanes * each], 1, keys, [*room, 1], 1.0)));
            if let &[planes, groups, rows, width] = of_values.inputs[2].extents() {
                let strides = [groups * rows * width, rows * width, width, 1];
                of_values.inputs[2] = extreme(random, which, cached, 3, [planes, groups, rows, width], strides);
            }
            all.push(Case { name: (*name).into(), ..of_values });
        }
        // Several iterations of all columns of a block. Then splits whose largest logits differ by
        // several units, more than are reduced at once.
        let further = [
            ([1, group, lanes * each], [2 * keys + 1], [3 * iteration_keys, 1], 1.0),
            ([1, group, wide], [18 * keys - 3], [18 * iteration_keys, 18], 30.0),
        ];
        for (heads, lengths, room, larger) in &further {
            all.push(case(instance, random, shape((*heads, 1, lengths, *room, *larger))));
        }
        // If exponentials were relative to 0, or to a partial sum of a logit, all would be 0.
        let lengths = [2 * keys + 1, keys + 1];
        let mut negative =
            case(instance, random, shape(([1, group, lanes * each], 1, &lengths, [3 * iteration_keys, 1], 100.0)));
        for (argument, sign) in [(0, 1.0), (1, -1.0)] {
            let input = &mut negative.inputs[argument];
            let x: Vec<f32> = input.values().iter().map(|x| sign * x.abs() as f32).collect();
            *input = match *input.extents() {
                [queries, heads, width] => rounded(of_q, &x, [queries, heads, width]),
                [planes, groups, rows, width] => rounded(cached, &x, [planes, groups, rows, width]),
                _ => continue,
            };
        }
        all.push(Case { name: "large negative logits".into(), ..negative });
    }
    all
}

fn case(instance: &Instance, random: &mut Random, shape: DecodeShape) -> Case {
    let Some(DecodeConstants { columns, .. }) = DecodeConstants::of(instance) else { return Case::new("", []) };
    let &[of_q, of_o, cached] = scalars(instance).as_slice() else { return Case::new("", []) };
    let DecodeShape { heads: [groups, of_group, width], tokens, lengths, room: [room, splits], larger } = shape;
    let (sequences, heads) = (lengths.len(), groups * of_group);
    let queries = sequences * tokens;
    let ([planes, of_plane], table) = layout(instance, sequences, room);
    let mut inputs = vec![
        drawn(random, of_q, queries * heads * width, [queries, heads, width], [heads * width, width, 1]),
        rows(random, cached, [planes, groups, of_plane, width]),
        rows(random, cached, [planes, groups, of_plane, width]),
    ];
    if has::<Scaled>(instance) {
        let mut scales = || Input::view(&random.values::<f32>(planes * groups * of_plane), [planes, groups, of_plane]);
        inputs.extend([scales(), scales()]);
    }
    if has::<Blocks>(instance) {
        let extents = [planes, groups, of_plane, width.div_ceil(BLOCK)];
        let mut scales = || Input::view(&random.values::<f16>(extents.iter().product()), extents);
        inputs.extend([scales(), scales()]);
    }
    inputs.extend(table);
    inputs.push(Input::slice(lengths));
    inputs.push(drawn(random, of_o, queries * heads * width, [queries, heads, width], [heads * width, width, 1]));
    let scratch = |extents: [usize; 4]| Input::view(&vec![7.0f32; extents.iter().product()], extents);
    inputs.push(scratch([queries, heads, splits, width]));
    inputs.push(scratch([queries, heads, splits, 2]));
    inputs.push(Input::slice(&vec![0u32; sequences * groups * (of_group * tokens).div_ceil(columns)]));
    let factor = match cached {
        Scalar::I8 => 0.002f32,
        Scalar::U32 => 0.05,
        _ => 0.3,
    };
    let scale = larger * factor;
    inputs.extend([Input::scalar(groups), Input::scalar(splits), Input::scalar(tokens), Input::scalar(scale)]);
    Case::new(
        format!(
            "{lengths:?} of {room} keys, {tokens} tokens, {groups} × {of_group} heads of {width}, {splits} splits, × {scale}"
        ),
        inputs,
    )
}

/// Multiplies a query by its factor · log₂ e, and rounds it to 16 bits of the largest product.
fn round_to_integers(q: &mut [f64], scale: f64) {
    let factor = f64::from(scale as f32 * std::f32::consts::LOG2_E);
    let x: Vec<f64> = q.iter().map(|q| f64::from((q * factor) as f32)).collect();
    let top = x.iter().map(|x| x.abs()).fold(2f64.powi(-112), f64::max);
    let unit = 2f64.powi(top.log2().floor() as i32 - 14);
    for (q, x) in q.iter_mut().zip(x) {
        *q = (x / unit).round_ties_even().min(32_767.0) * unit / factor;
    }
}

/// Computes the results and their error bounds as [`softmax`] does. The query is rounded with its
/// factor, and keys with theirs, 6 roundings in all. `tiles` counts the iterations of a lane, one
/// for each keys · U in a split, the exchanges between lanes and warps, and the splits. The base of
/// a split's sums is its largest logit in units of log₂ e, plus an exponent. The exponent is the
/// binary logarithm of the number of keys, rounded up.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[_, stored, cached] = scalars(instance).as_slice() else { return Vec::new() };
    let (scaled, paged) = (has::<Scaled>(instance) || has::<Blocks>(instance), has::<Paged>(instance));
    let (mut q, [k, v]) = (inputs[0].values(), [1, 2].map(|n| unpacked(cached, inputs[n].values())));
    let (&[queries, heads, width], &[planes, groups, rows, _]) = (inputs[0].extents(), inputs[1].extents()) else {
        return Vec::new();
    };
    let [per, of_row] = shared(instance, width);
    let ones = vec![1.0; planes * groups * rows * of_row];
    let [key_scales, value_scales] = [3, 4].map(|n| if scaled { inputs[n].values() } else { ones.clone() });
    let mut at = if scaled { 5 } else { 3 };
    let (table, pages) = match paged {
        true => (inputs[at].values(), inputs[at].extents().last().copied().unwrap_or(0)),
        false => ((0..queries).map(|n| n as f64).collect(), 1),
    };
    at += usize::from(paged);
    let (lengths, o, ended) = (inputs[at].values(), at + 1, at + 4);
    let (splits, scale) = (inputs[at + 6].value() as usize, inputs[at + 8].value());
    let tokens = inputs[at + 7].value() as usize;
    let Some(DecodeConstants { iteration_keys, each: of_lane, several, .. }) = DecodeConstants::of(instance) else {
        return Vec::new();
    };
    if matches!(cached, Scalar::I8 | Scalar::U32) && !several {
        q.chunks_mut(width).flat_map(|head| head.chunks_mut(of_lane)).for_each(|q| round_to_integers(q, scale));
    }
    let [mut values, mut bounds] = [(); 2].map(|()| Vec::new());
    let [mut parts, mut part_bounds, mut logs, mut log_bounds] = [(); 4].map(|()| Vec::new());
    for (query, head) in (0..queries).flat_map(|q| (0..heads).map(move |h| (q, h))) {
        let (sequence, token) = (query / tokens, query % tokens);
        let all = (lengths[sequence] as usize).min(pages * rows);
        let count = (all + token + 1).saturating_sub(tokens);
        let row = |j: usize| {
            let plane = table[sequence * pages + j / rows] as usize;
            (plane * groups + head / (heads / groups)) * rows + j % rows
        };
        let scale_of = |j: usize, d: usize| row(j) * of_row + d / per;
        let logit = |j: usize| {
            let of =
                |d: usize| q[(query * heads + head) * width + d] * k[row(j) * width + d] * key_scales[scale_of(j, d)];
            let (sum, size) = (0..width).map(of).fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
            (j, scale * sum, gamma(width + 6) * scale * size)
        };
        let logits: Vec<_> = (0..count).map(logit).collect();
        let tiles = count + splits + 10;
        let found = softmax(&logits, tiles);
        let of_value = |(j, d): (usize, usize)| v[row(j) * width + d] * value_scales[scale_of(j, d)];
        for d in 0..width {
            let (value, off) = found.as_ref().map_or((0.0, 0.0), |softmax| softmax.mean(|j| of_value((j, d))));
            values.push(value);
            bounds.push(off + 2.0 * U * value.abs() + at_rest(stored, value, off));
        }
        // The sums of a split are relative to the split's largest logit, whose error is a common
        // factor of the sums.
        let each = all.div_ceil(splits).next_multiple_of(iteration_keys);
        for split in 0..splits {
            let of_split = &logits[(split * each).min(count)..((split + 1) * each).min(count)];
            let Some(softmax) = softmax(of_split, tiles) else {
                parts.extend(vec![0.0; width]);
                part_bounds.extend(vec![0.0; width]);
                logs.extend([f64::NEG_INFINITY, 0.0]);
                log_bounds.extend([0.0; 2]);
                continue;
            };
            let top = of_split.iter().map(|l| l.1).fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = of_split.iter().map(|l| (l.1 - top).exp()).sum();
            let power = all.next_power_of_two() as f64;
            let off_top = of_split.iter().map(|l| l.2).fold(0.0, f64::max) + U * (4.0 * top.abs() + power.log2());
            let total = total / power;
            let factor = 1.01 * (softmax.sum + off_top);
            for d in 0..width {
                let (mean, off) = softmax.mean(|j| of_value((j, d)));
                parts.push(mean * total);
                part_bounds.push(total * (off + factor * mean.abs() + 4.0 * TINY));
            }
            logs.extend([top * std::f64::consts::LOG2_E + power.log2(), total]);
            log_bounds.extend([1.01 * off_top * std::f64::consts::LOG2_E, total * factor]);
        }
    }
    let counters = inputs[ended].value_count();
    vec![
        Expected::new(o, values, Bound::Each(bounds)),
        Expected::new(o + 1, parts, Bound::Each(part_bounds)),
        Expected::new(o + 2, logs, Bound::Each(log_bounds)),
        Expected::new(ended, vec![0.0; counters], Bound::Exact),
    ]
}

/// The space of a cache for its sequences.
#[derive(Clone, Copy, PartialEq, Debug)]
enum CacheSpace {
    /// Enough space for all.
    Full,
    /// No planes.
    NoPlanes,
    /// No pages, if the cache has pages.
    NoPages,
    /// Pages for one sequence, if the cache has pages. The first is beyond the last plane; the
    /// kernel clamps it to the last.
    Short,
}

fn append_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    // Query heads, key heads, elements, and rotated pairs; the keys of each sequence; space for 20
    // rows, or two pages.
    let shapes: [([usize; 4], &[u32], CacheSpace); 7] = [
        ([1, 1, 1, 0], &[0], CacheSpace::Full),
        ([4, 2, 40, 20], &[3, 20, 32, 19], CacheSpace::Full),
        ([2, 1, 37, 9], &[5], CacheSpace::Full),
        ([1, 2, 64, 12], &[7], CacheSpace::Full),
        ([2, 1, 6, 2], &[4], CacheSpace::NoPlanes),
        ([2, 1, 6, 2], &[0], CacheSpace::NoPages),
        ([1, 1, 6, 2], &[3, 9], CacheSpace::Short),
    ];
    let (&[_, cached, of_scales], &[per, _]) = (scalars(instance).as_slice(), numbers(instance).as_slice()) else {
        return Vec::new();
    };
    let mut case = |([heads, groups, width, pairs], lengths, room): ([usize; 4], &[u32], CacheSpace)| {
        let sequences = lengths.len();
        let width = if cached == Scalar::U32 { width.next_multiple_of(8) } else { width };
        let ([planes, rows], table) = layout(instance, sequences, 20);
        let table = match room {
            CacheSpace::NoPages => table.map(|_| Input::view::<u32, 2>(&[], [0, 2])),
            CacheSpace::Short => table.map(|_| Input::view(&[u32::MAX, 0], [1, 2])),
            CacheSpace::Full | CacheSpace::NoPlanes => table,
        };
        let planes = if room == CacheSpace::NoPlanes { 0 } else { planes };
        let mut vectors =
            |heads: usize| Input::view(&random.values::<f32>(sequences * heads * width), [sequences, heads, width]);
        let mut inputs = vec![vectors(heads), vectors(heads)];
        // If there are several sequences, the last has zeros. A warp finds the largest number of a
        // row in its second iteration.
        let mut rows_of = || {
            let mut x = random.values::<f32>(sequences * groups * width);
            if cached == Scalar::U32 {
                // Multiples of half a step, which is a power of two.
                for (i, block) in x.chunks_mut(width).flat_map(|row| row.chunks_mut(BLOCK)).enumerate() {
                    let step = [1.0, -0.25, 2.0, -0.125][i % 4];
                    block.fill_with(|| (random.below(33) as f32 - 16.0) / 2.0 * step);
                    block[random.below(block.len())] = -8.0 * step;
                    if step < 0.0 {
                        // Otherwise a negative number could have the largest magnitude, and the
                        // step would be positive.
                        block.iter_mut().filter(|x| **x == 8.0 * step).for_each(|x| *x = 0.0);
                    }
                }
            }
            x.chunks_mut(width)
                .filter(|_| cached != Scalar::U32)
                .filter(|row| row.len() > 32)
                .for_each(|row| row[32] = -4.0);
            if sequences > 2 {
                x[(sequences - 1) * groups * width..].fill(0.0);
            }
            Input::view(&x, [sequences, groups, width])
        };
        inputs.extend([rows_of(), rows_of()]);
        inputs.extend([(); 2].map(|()| self::rows(random, cached, [planes, groups, rows, width])));
        let scales = if per > 0 { [planes, groups, rows, width.div_ceil(per)] } else { [0; 4] };
        let [_, heads_apart, rows_apart, _] = scales;
        let strides = [heads_apart * rows_apart * scales[3], rows_apart * scales[3], scales[3], 1];
        inputs.extend([(); 2].map(|()| drawn(random, of_scales, scales.iter().product(), scales, strides)));
        inputs.extend(table);
        inputs.push(Input::slice(lengths));
        let frequencies: Vec<f32> = (0..pairs).map(|i| 100f32.powf(-(i as f32) / pairs as f32)).collect();
        // Words of several numbers are compared exactly: without a rotation.
        let frequencies = if cached == Scalar::U32 { vec![0.0; pairs] } else { frequencies };
        inputs.push(Input::slice(&frequencies));
        let name = format!("after {lengths:?} keys, {heads} and {groups} heads of {width}, {pairs} pairs, {room:?}");
        Case::new(name, inputs)
    };
    let mut all: Vec<Case> = shapes.into_iter().map(&mut case).collect();
    if per == 0 {
        // Rows of each extreme, which are stored without a rotation.
        let (n, width) = (Extreme::ALL.len(), 6);
        let lengths = vec![1u32; n];
        let mut of_rows = case(([1, 1, width, 0], &lengths, CacheSpace::Full));
        for argument in [2, 3] {
            of_rows.inputs[argument] = extreme(random, &Extreme::ALL, Scalar::F32, 0, [n, 1, width], [width, width, 1]);
        }
        all.push(Case { name: "extreme rows".into(), ..of_rows });
    }
    all
}

/// Returns the scale of numbers before its rounding. The largest magnitude is 127 scales of bytes,
/// and −8 scales of numbers of four bits.
fn step_of(stored: Scalar, x: impl Iterator<Item = f64> + Clone) -> f64 {
    let (height, depth) = (x.clone().fold(0.0, f64::max), x.fold(0.0, |depth, x| f64::max(depth, -x)));
    match stored {
        Scalar::U32 if depth >= height => depth / 8.0,
        Scalar::U32 => -height / 8.0,
        _ => depth.max(height) / 127.0,
    }
}

/// Computes the results and their error bounds. The angle is rounded once, so that the error of
/// sine and cosine is |φ|·u, plus two units in the last place. A rotated element is a sum of two
/// products, each with a rounding: (|a| + |b|)·(|φ| + 8)·u. A stored number is x / step rounded to
/// nearest. The step has three roundings and the error of the largest element. The step of a block
/// is rounded to `f16` before x is divided by the step.
fn append_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let paged = has::<Paged>(instance);
    let (&[_, cached, of_scales], &[per, interleaved]) = (scalars(instance).as_slice(), numbers(instance).as_slice())
    else {
        return Vec::new();
    };
    let (scaled, interleaved) = (per > 0, interleaved == 1);
    let [q, new_k, new_v] = [0, 2, 3].map(|n| inputs[n].values());
    let (&[sequences, heads, width], &[planes, groups, rows, _]) = (inputs[0].extents(), inputs[4].extents()) else {
        return Vec::new();
    };
    let per = if scaled { per.min(width.max(1)) } else { width.max(1) };
    let of_row = width.div_ceil(per);
    let mut all: Vec<(Vec<f64>, Vec<f64>)> = [1, 4, 5, 6, 7]
        .map(|n| {
            let values = inputs[n].values();
            let values = if matches!(n, 4 | 5) { unpacked(cached, values) } else { values };
            let zeros = vec![0.0; values.len()];
            (values, zeros)
        })
        .into();
    let (table, pages) = match paged {
        true => (inputs[8].values(), inputs[8].extents().last().copied().unwrap_or(0)),
        false => ((0..sequences).map(|n| n as f64).collect(), 1),
    };
    let lengths = inputs[8 + usize::from(paged)].values();
    let frequencies = inputs[9 + usize::from(paged)].values();
    let rotated = 2 * frequencies.len();
    let rotated = |x: &[f64], d: usize, position: f64| {
        if d >= rotated {
            return (x[d], 0.0);
        }
        let i = if interleaved { d / 2 } else { d % (rotated / 2) };
        let (a, b) = if interleaved { (2 * i, 2 * i + 1) } else { (i, i + rotated / 2) };
        let (sin, cos) = (position * frequencies[i]).sin_cos();
        let value = if d == a { x[a] * cos - x[b] * sin } else { x[a] * sin + x[b] * cos };
        (value, (x[a].abs() + x[b].abs()) * (position * frequencies[i] + 8.0) * U + TINY)
    };
    for sequence in 0..sequences {
        let position = lengths[sequence];
        for (head, d) in (0..heads).flat_map(|h| (0..width).map(move |d| (h, d))) {
            let at = (sequence * heads + head) * width;
            (all[0].0[at + d], all[0].1[at + d]) = rotated(&q[at..at + width], d, position);
        }
        let j = position as usize;
        if j >= pages * rows || planes == 0 || table.is_empty() {
            continue;
        }
        let plane = table[sequence.min(table.len() / pages - 1) * pages + j / rows] as usize;
        let plane = plane.min(planes - 1);
        for head in 0..groups {
            let from = (sequence * groups + head) * width;
            let row = (plane * groups + head) * rows + j % rows;
            let keys: Vec<_> = (0..width).map(|d| rotated(&new_k[from..from + width], d, position)).collect();
            let values: Vec<_> = (0..width).map(|d| (new_v[from + d], 0.0)).collect();
            for (n, x) in [(0, keys), (1, values)] {
                for (block, x) in x.chunks(per).enumerate() {
                    let (from, at) = (row * width + block * per, row * of_row + block);
                    if !scaled {
                        for (d, (value, off)) in x.iter().enumerate() {
                            (all[1 + n].0[from + d], all[1 + n].1[from + d]) = (*value, *off);
                        }
                        continue;
                    }
                    let exact = step_of(cached, x.iter().map(|x| x.0));
                    let off = x.iter().map(|x| x.1).fold(0.0, f64::max);
                    if cached == Scalar::U32 {
                        // The drawn numbers are multiples of half a step.
                        (all[3 + n].0[at], all[3 + n].1[at]) = (exact, 0.0);
                        for (d, (value, _)) in x.iter().enumerate() {
                            let number = if exact == 0.0 { 0.0 } else { (value / exact).round_ties_even() };
                            (all[1 + n].0[from + d], all[1 + n].1[from + d]) = (number.clamp(-8.0, 7.0), 0.0);
                        }
                        continue;
                    }
                    let steps = 127.0;
                    let of_step = (off + 3.0 * U * steps * exact.abs()) / steps;
                    // The rounded step, and the relative distance to the next one.
                    let (step, next) = match of_scales {
                        Scalar::F16 => (f16::from_f64(exact).to_f64(), 2f64.powi(-10)),
                        Scalar::Bf16 => (bf16::from_f64(exact).to_f64(), 2f64.powi(-7)),
                        _ => (exact, 0.0),
                    };
                    (all[3 + n].0[at], all[3 + n].1[at]) = (step, of_step + 2.0 * at_rest(of_scales, exact, of_step));
                    for (d, (value, _)) in x.iter().enumerate() {
                        let number = if step == 0.0 { 0.0 } else { value / step };
                        // The kernel's step may be the next one.
                        let relative = 4.0 * U + next + 2.0 * off / (steps * exact.abs()).max(TINY);
                        let bound = if exact == 0.0 { 0.0 } else { 0.5 + steps * relative };
                        (all[1 + n].0[from + d], all[1 + n].1[from + d]) = (number, bound);
                    }
                }
            }
        }
    }
    let expected = [1, 4, 5, 6, 7].into_iter().zip(all);
    let packed = |n: usize| cached == Scalar::U32 && matches!(n, 4 | 5);
    let expected = expected.map(|(n, (values, bounds))| match packed(n) {
        true => Expected::new(n, words(&values), Bound::Exact),
        false => Expected::new(n, values, Bound::Each(bounds)),
    });
    expected.collect()
}
