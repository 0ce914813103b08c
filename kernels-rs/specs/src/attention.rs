//! Spec of `flash_attention`: sequences of every layout, with every pattern of blocks.

use super::stored::{at_rest, drawn, drawn_but, extreme, numbers, scalars};
use super::{TINY, U, gamma};
use kernel_dsl::GenericArgument;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::attention::prefill::flash_attention;
use kernels_rs::attention::score::{Alibi, Plain};
use kernels_rs::attention::span::{Dense, KEYS, Listed, Packed, Padded, Whole};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(flash_attention<f32, Plain, Dense, Whole, 128, 4, 128, 2, 64, 2, 2, 4>, cases, reference);

/// Returns whether `T` is a parameter of the instance.
pub(super) fn has<T: GenericArgument>(instance: &Instance) -> bool {
    instance.0.contains(&T::CONSTANT)
}

/// A band limit larger than any sequence.
const UNBOUNDED: usize = 1 << 30;

/// The shape of a case.
#[derive(Clone, Copy)]
struct AttentionCaseShape {
    heads: [usize; 2],
    queries: usize,
    keys: usize,
    width: usize,
    values: usize,
    left: usize,
    right: usize,
    scale: f32,
    /// The number of key tiles of each part but the last of a list. Every third list is not cut.
    parts: &'static [usize],
    /// The number of query tiles of a mask's block.
    block: usize,
    /// Whether the last two keys of a head have a NaN and an infinity among their values.
    odd: bool,
}

/// Returns one matrix for each head of each sequence, with gaps after rows, heads and sequences, in
/// multiples of `unit`.
pub(super) fn heads(random: &mut Random, stored: Scalar, extents: [usize; 4], unit: usize) -> Input {
    let [batch, heads, rows, width] = extents;
    let gap = unit * random.below(3);
    let row = (width + gap).max(unit);
    let (head, all) = (rows * row + gap, heads * (rows * row + gap) + gap);
    let strides = [all.max(unit), head.max(unit), row, 1];
    drawn(random, stored, batch * strides[0].max(1) + heads * strides[1] + strides[2], extents, strides)
}

/// Returns rows of heads as [`heads`] does, without gaps. The last row but one has a NaN in its
/// first column, and the last an infinity in its second.
pub(super) fn odd_heads(random: &mut Random, stored: Scalar, extents: [usize; 4]) -> Input {
    let [batch, heads, rows, width] = extents;
    let strides = [heads * rows * width, rows * width, width, 1];
    drawn_but(random, stored, batch * strides[0], extents, strides, |i| match (rows - i / width % rows, i % width) {
        (2, 0) => Some(f32::NAN),
        (1, 1) => Some(f32::INFINITY),
        _ => None,
    })
}

/// The constants of an instance that its cases and its reference depend on.
#[derive(Clone, Copy)]
pub(super) struct TileForm {
    /// Elements of a value that a block computes.
    pub wide: usize,
    /// The number that extents and strides of rows are multiples of.
    pub unit: usize,
    /// Queries of a block.
    pub rows: usize,
}

impl TileForm {
    fn of(instance: &Instance) -> Option<TileForm> {
        let &[wide, unit, _, _, rows, ..] = numbers(instance).as_slice() else { return None };
        Some(TileForm { wide, unit, rows })
    }
}

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    TileForm::of(instance).map(|form| cases_of(instance, form, random)).unwrap_or_default()
}

/// Returns cases at the edges of the tiles of an instance, with keys and values as floats.
pub(super) fn cases_of(instance: &Instance, form: TileForm, random: &mut Random) -> Vec<Case> {
    let TileForm { wide, unit, rows } = form;
    // Elements of a head of Q: a whole slice if four are read at once.
    let (deep, odd) = if unit > 1 { (24, 8) } else { (21, 3) };
    let any = AttentionCaseShape {
        heads: [1, 1],
        queries: 1,
        keys: 1,
        width: odd,
        values: unit,
        left: UNBOUNDED,
        right: UNBOUNDED,
        scale: 0.5,
        parts: &[],
        block: 1,
        odd: false,
    };
    let extremes = [
        // Tests non-finite values of keys that some queries do not see: in the first tile of a
        // step, in the second, and in a partial one.
        AttentionCaseShape { queries: 3, keys: 64, values: 3 * unit, right: 0, odd: true, ..any },
        AttentionCaseShape { heads: [2, 2], queries: 4, keys: 103, values: wide, left: 60, right: 0, odd: true, ..any },
        // Logits near the limit of `f32`.
        AttentionCaseShape { queries: 2, keys: 65, scale: 1e30, ..any },
    ];
    let first = [
        any,
        AttentionCaseShape { heads: [2, 1], queries: 3, keys: 13, width: 2 * odd, values: 3 * unit, right: 0, ..any },
        // Two parts: a whole step of two tiles of keys, and half a step.
        AttentionCaseShape { queries: 2, keys: 140, parts: &[2], block: 2, ..any },
        // Divided like causal products: for the first tile of queries the second part is empty.
        AttentionCaseShape {
            heads: [2, 2],
            queries: rows + 2,
            keys: rows + 2,
            right: 0,
            parts: if rows == 64 { &[1] } else { &[2] },
            ..any
        },
    ];
    let longer = if unit > 1 { 40 } else { 31 };
    // Large tiles get few cases: each needs a million multiplications on each of four executors,
    // and the other instances have the same code.
    let few = rows * wide > 64 * 64;
    // A column of values of each extreme; the extremes repeat.
    let values = AttentionCaseShape { queries: 3, keys: 5, values: 24, ..any };
    let mut of_values = case(instance, form, random, values);
    if let &[batch, heads, keys, width] = of_values.inputs[2].extents() {
        let strides = [heads * keys * width, keys * width, width, 1];
        of_values.inputs[2] = extreme(random, &Extreme::ALL, stored(instance), 3, [batch, heads, keys, width], strides);
    }
    let of_values = Case { name: "extreme values".into(), ..of_values };
    if few {
        let shapes = first.into_iter().chain(extremes);
        return shapes.map(|shape| case(instance, form, random, shape)).chain([of_values]).collect();
    }
    let shapes = [
        any,
        // More queries than keys, so that the first see none; tiles of unequal work.
        AttentionCaseShape { queries: rows + 1, keys: 65, width: deep, values: wide, right: 0, ..any },
        // A window that begins with the last key of a tile, and values wider than a tile.
        AttentionCaseShape {
            heads: [2, 2],
            queries: 5,
            keys: 130,
            width: 2 * odd,
            values: wide + unit,
            left: 62,
            right: 3,
            ..any
        },
        // Logits with only one significant key, and a sequence without keys.
        AttentionCaseShape { queries: 3, keys: 64, values: 2 * unit, scale: 3e4, ..any },
        AttentionCaseShape { queries: 3, keys: 0, ..any },
        // Divided like causal products: for the first tile of queries the second part is empty;
        // also a second piece of values.
        AttentionCaseShape {
            heads: [2, 1],
            queries: rows + 2,
            keys: rows + 2,
            values: wide + unit,
            right: 0,
            parts: if rows == 64 { &[1] } else { &[2] },
            ..any
        },
        // A whole tile of queries, and more parts than are reduced at once.
        AttentionCaseShape { queries: rows, keys: 140, values: wide, parts: &[1, 1], ..any },
        // An odd number of parts, the last of which has several tiles.
        AttentionCaseShape { heads: [2, 1], queries: 5, keys: 200, values: wide, parts: &[1, 1], ..any },
        // Queries that see no key of any part; a head of more than two iterations; more than half
        // of the maximum number of parts.
        AttentionCaseShape { queries: rows + 1, keys: 33, width: longer, right: 0, parts: &[1], ..any },
        AttentionCaseShape { queries: 2, keys: 9 * 64, values: 2 * unit, parts: &[1; 17], ..any },
        // Only the last query of a tile sees a key of the last tile.
        AttentionCaseShape { queries: rows, keys: 2 * 64 + 1, right: 0, ..any },
        AttentionCaseShape {
            queries: 1 + random.below(20),
            keys: 1 + random.below(100),
            left: random.below(100),
            right: random.below(100),
            ..any
        },
    ];
    let shapes = shapes.into_iter().chain(extremes);
    shapes.map(|shape| case(instance, form, random, shape)).chain([of_values]).collect()
}

/// Returns the storage format of Q and O, and of K and V as floats.
fn stored(instance: &Instance) -> Scalar {
    scalars(instance).first().copied().unwrap_or(Scalar::F32)
}

fn case(instance: &Instance, form: TileForm, random: &mut Random, shape: AttentionCaseShape) -> Case {
    let TileForm { wide, unit, rows } = form;
    let stored = stored(instance);
    let AttentionCaseShape { heads: [of_q, of_k], queries, keys, width, values, left, right, scale, parts, block, odd } =
        shape;
    let (padded, packed) = (has::<Padded>(instance), has::<Packed>(instance));
    let batch = if packed || queries > 1 && !padded { 1 } else { 2 };
    let count = if packed { 3 } else { batch };
    let tiles = queries.div_ceil(rows);
    let (work, slots) = work(random, [tiles, of_q, values.div_ceil(wide) * count], parts);
    // The last of the packed sequences has half of the rows.
    let [queries, keys] = [queries, keys].map(|n| if packed { 2 * n } else { n });
    let mut inputs = vec![
        heads(random, stored, [batch, of_q, queries, width], unit),
        heads(random, stored, [batch, of_k, keys, width], unit),
        match odd {
            true => odd_heads(random, stored, [batch, of_k, keys, values]),
            false => heads(random, stored, [batch, of_k, keys, values], unit),
        },
        heads(random, stored, [batch, of_q, queries, values], unit),
        Input::view(&random.values::<f32>(batch * of_q * queries), [batch, of_q, queries]),
        Input::view(&random.values::<f32>(slots * rows * wide), [slots, rows, wide]),
        Input::view(&random.values::<f32>(slots * rows * 2), [slots, rows, 2]),
        Input::slice(&vec![0u32; slots]),
        Input::scalar(scale),
        Input::scalar(left),
        Input::scalar(right),
    ];
    if has::<Alibi>(instance) {
        inputs.push(Input::slice(&[0.1f32, 0.25][..of_q]));
    }
    inputs.extend(lists(instance, random, of_q, [queries, keys], rows * block));
    inputs.extend(lengths(instance, [queries, keys], batch));
    inputs.push(Input::view(&work, [work.len() / 8, 8]));
    let band = |n: usize| if n == UNBOUNDED { "all".to_string() } else { n.to_string() };
    Case::new(
        format!(
            "{count} of {of_q} × {queries} queries, {of_k} × {keys} keys, {width} and {values} wide, {} keys before and {} after, × {scale}, in {} parts, odd: {odd}",
            band(left),
            band(right),
            parts.len() + 1
        ),
        inputs,
    )
}

/// Returns a row for each block, in random order, and the number of parts that store partial
/// results. The blocks have the given numbers of query tiles, heads, and pieces of sequences.
fn work(random: &mut Random, [tiles, heads, others]: [usize; 3], parts: &[usize]) -> (Vec<u32>, usize) {
    const ALL: usize = 1 << 30;
    let (mut blocks, mut slots) = (Vec::new(), 0);
    for list in 0..tiles * heads * others {
        let [tile, head, other] = [list % tiles, list / tiles % heads, list / tiles / heads];
        if parts.is_empty() || list % 3 == 2 {
            blocks.push([tile, head, other, 0, ALL, 0, 0, 0]);
            continue;
        }
        let (slot, mut before) = (slots, 0);
        for part in 0..=parts.len() {
            let most = parts.get(part).copied().unwrap_or(ALL);
            blocks.push([tile, head, other, before, most, part, parts.len() + 1, slot]);
            before += most;
        }
        slots += parts.len() + 1;
    }
    for at in (1..blocks.len()).rev() {
        blocks.swap(at, random.below(at + 1));
    }
    (blocks.as_flattened().iter().map(|n| *n as u32).collect(), slots)
}

/// Returns a mask's lists if the instance has a mask: some blocks for each tile of queries.
pub(super) fn lists(
    instance: &Instance,
    random: &mut Random,
    heads: usize,
    [queries, keys]: [usize; 2],
    size: usize,
) -> Vec<Input> {
    if !has::<Listed>(instance) {
        return Vec::new();
    }
    let (tiles, blocks) = (queries.div_ceil(size), keys.div_ceil(size));
    let (mut starts, mut list) = (Vec::new(), Vec::new());
    for _ in 0..heads {
        for _ in 0..tiles {
            starts.push(list.len() as u32);
            list.extend((0..blocks as u32).filter(|_| random.below(3) > 0));
        }
        starts.push(list.len() as u32);
    }
    vec![Input::view(&starts, [heads, tiles + 1]), Input::slice(&list), Input::scalar((size / KEYS).ilog2() as usize)]
}

/// Returns the lengths of sequences, or their starts, if the instance has them. Of three packed
/// sequences the second is empty.
pub(super) fn lengths(instance: &Instance, [queries, keys]: [usize; 2], batch: usize) -> Vec<Input> {
    let starts = |n: usize| Input::slice(&[n / 4, n / 2, n / 2, n].map(|n| n as u32));
    if has::<Padded>(instance) {
        let lengths = |all: usize, second: usize| Input::slice(&[all as u32, second as u32][..batch]);
        vec![lengths(queries, queries / 2), lengths(keys, keys / 2 + 7)]
    } else if has::<Packed>(instance) {
        vec![starts(queries), starts(keys)]
    } else {
        Vec::new()
    }
}

/// Returns the first key of each tile of keys that a tile of queries sees, in order.
pub(super) fn visited_tiles(
    [row0, rows]: [usize; 2],
    [queries, keys]: [usize; 2],
    [left, right]: [usize; 2],
    list: Option<(Vec<usize>, usize)>,
) -> Vec<usize> {
    if let Some((blocks, size)) = list {
        return blocks.iter().flat_map(|block| (0..size / KEYS).map(move |i| block * size + i * KEYS)).collect();
    }
    // Positions relative to the first key; they may be negative.
    let (first, last) = (row0 + keys, (row0 + rows).min(queries) - 1 + keys);
    let (begin, end) = (first.saturating_sub(left + queries), (last + right + 1).saturating_sub(queries).min(keys));
    (begin / KEYS * KEYS..end).step_by(KEYS).filter(|_| begin < end).collect()
}

/// The exact softmax of a query, with bounds of the kernel's errors.
pub(super) struct ExactSoftmax {
    /// Each weight divided by the sum, by key.
    pub weights: Vec<(usize, f64)>,
    /// The bound of each weight's relative error.
    pub each: Vec<f64>,
    /// The bound of the sum's relative error.
    pub sum: f64,
    /// The largest logit.
    top: f64,
    log: f64,
    log_off: f64,
}

/// Computes the softmax of a query and its error bounds, to first order in u = 2⁻²⁴. For a logit x
/// let m be the largest of its row, and r = m − x:
///
/// * x is a sum of d products, scaled, with added slopes if any. The error of x is e = γ(d +
///   2)·scale·Σ|q·k| + u·|x|.
/// * The weight is 2^(−r·log₂e − n), where n is the exponent of the number of keys. The difference,
///   log₂e and the fused operation are rounded: r·3u + n·u. The exponential is correctly rounded
///   here, and the kernel's tolerance covers a device's: 2u.
/// * Each of `t` later tiles multiplies by an exponential of the difference of two maxima, which is
///   at most the range R of the row's logits: t·(3R + 4)·u.
///
/// The error of a weight is the sum of these, w. Weights are positive. Therefore the error of their
/// sum is the mean of w, plus γ of the additions, at most 64·t + 8. The error of an output Σ p·v is
/// Σ p·|v|·(w + mean + 2γ), plus the quotient's 2u. The error of the logarithm of the sum consists
/// of the sum's error and 4u·|ln Σ|. The roundings of m and of the final addition add
/// u·(|m| + |lse|), and the largest logit adds its e. Weights below 2⁻¹²⁶ are zeros.
pub(super) fn softmax(logits: &[(usize, f64, f64)], tiles: usize) -> Option<ExactSoftmax> {
    let top = logits.iter().map(|l| l.1).fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return None;
    }
    let least = logits.iter().map(|l| l.1).fold(f64::INFINITY, f64::min);
    // Logits further below the largest have a weight of 0.
    let range = (top - least).min(200.0);
    let lowered = logits.len().next_power_of_two().ilog2() as f64 + 1.0;
    let own = |x: f64, off: f64| {
        off + (3.0 * (top - x).min(200.0) + lowered + 5.0) * U + tiles as f64 * (3.0 * range + 4.0) * U
    };
    let total: f64 = logits.iter().map(|l| (l.1 - top).exp()).sum();
    let weights: Vec<_> = logits.iter().map(|l| (l.0, (l.1 - top).exp() / total)).collect();
    let each: Vec<f64> = logits.iter().map(|l| own(l.1, l.2)).collect();
    let mean: f64 = weights.iter().zip(&each).map(|(w, e)| w.1 * e).sum();
    let sum = mean + gamma(logits.len() + 2 * tiles + 8);
    let log = top + total.ln();
    let largest = logits.iter().filter(|l| top - l.1 < 1.0).map(|l| l.2).fold(0.0, f64::max);
    let log_off = sum + largest + U * (4.0 * total.ln().abs() + 2.0 * top.abs() + log.abs() + 1.0);
    Some(ExactSoftmax { weights, each, sum, top, log, log_off })
}

impl ExactSoftmax {
    /// Returns the mean of values by key, and the bound of its error.
    pub(super) fn mean(&self, value: impl Fn(usize) -> f64) -> (f64, f64) {
        let sum: f64 = self.weights.iter().map(|(j, p)| p * value(*j)).sum();
        let additions = gamma(self.weights.len() + 8);
        let terms = self.weights.iter().zip(&self.each);
        let off: f64 = terms.map(|((j, p), e)| p * value(*j).abs() * (e + self.sum + additions)).sum();
        (sum, 1.01 * (off + 2.0 * U * sum.abs()) + 4.0 * TINY + self.weights.len() as f64 * 2f64.powi(-126))
    }
}

fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    TileForm::of(instance).map(|form| reference_of(instance, form, inputs)).unwrap_or_default()
}

/// Returns the exact results of an instance for keys and values as floats.
pub(super) fn reference_of(instance: &Instance, form: TileForm, inputs: &[Input]) -> Vec<Expected> {
    let TileForm { wide: piece, rows: tile, .. } = form;
    let stored = stored(instance);
    let [q, k, v, mut o, mut lse, mut partial, mut logs] = [0, 1, 2, 3, 4, 5, 6].map(|n| inputs[n].values());
    let [scale, left, right] = [8, 9, 10].map(|n| inputs[n].value());
    let (&[_, of_q, rows, width], &[_, of_k, keys, wide]) = (inputs[0].extents(), inputs[2].extents()) else {
        return Vec::new();
    };
    let mut rest = inputs[11..].iter();
    let mut array = |wanted: bool| if wanted { rest.next().map(Input::values).unwrap_or_default() } else { Vec::new() };
    let slopes = array(has::<Alibi>(instance));
    let listed = has::<Listed>(instance);
    let (starts, blocks, shift) = (array(listed), array(listed), array(listed));
    let (padded, packed) = (has::<Padded>(instance), has::<Packed>(instance));
    let lengths = [array(padded || packed), array(padded || packed)];
    let work = array(true);

    let (mut o_bounds, mut lse_bounds) = (vec![0.0; o.len()], vec![0.0; lse.len()]);
    let (mut partial_bounds, mut logs_bounds) = (vec![0.0; partial.len()], vec![0.0; logs.len()]);
    let pieces = wide.div_ceil(piece);
    for block in work.chunks(8) {
        let [tile_at, head, other, before, most, part, parts, slot] =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|i| block[i] as usize);
        let (sequence, piece_at) = (other / pieces, other % pieces);
        // The first row and the number of rows of the sequence's queries and keys.
        let rows_of = |of: usize, most: usize| match lengths[of].get(sequence) {
            None => (0, most),
            Some(n) if padded => (0, (*n as usize).min(most)),
            Some(n) => (*n as usize, lengths[of][sequence + 1] as usize - *n as usize),
        };
        let ((q0, queries), (k0, keys_here)) = (rows_of(0, rows), rows_of(1, keys));
        let batch = if packed { 0 } else { sequence };
        let key_head = batch * of_k + head / (of_q / of_k);
        let columns = piece_at * piece..((piece_at + 1) * piece).min(wide);
        for i in tile_at * tile..((tile_at + 1) * tile).min(queries) {
            let position = keys_here as f64 - queries as f64 + i as f64;
            let query = (batch * of_q + head) * rows + q0 + i;
            let list = listed.then(|| {
                let size = KEYS << shift[0] as usize;
                let row = head * (rows.div_ceil(size) + 1) + i / size;
                let here = &blocks[starts[row] as usize..starts[row + 1] as usize];
                (here.iter().map(|block| *block as usize).collect(), size)
            });
            let band = [left as usize, right as usize];
            let looked = visited_tiles([i / tile * tile, tile], [queries, keys_here], band, list);
            let seen = |j: usize| {
                let band = (j as f64) >= position - left && (j as f64) <= position + right;
                band && (!listed || looked.contains(&(j / KEYS * KEYS)))
            };
            let logit = |j: usize| {
                let products = (0..width).map(|d| q[query * width + d] * k[(key_head * keys + k0 + j) * width + d]);
                let (sum, size) = (products.clone().sum::<f64>(), products.map(f64::abs).sum::<f64>());
                let slope = slopes.get(head).copied().unwrap_or(0.0);
                let x = scale * sum + slope * (j as f64 - position);
                (j, x, gamma(width + 2) * scale * size + U * x.abs())
            };
            if parts > 0 {
                let own_tiles: Vec<_> = looked.iter().skip(before).take(most).copied().collect();
                let own = |j: &usize| own_tiles.contains(&(j / KEYS * KEYS)) && seen(*j);
                let logits: Vec<_> = (0..keys_here).filter(own).map(logit).collect();
                let found = softmax(&logits, own_tiles.len());
                let at = (slot + part) * tile + i % tile;
                let top = found.as_ref().map_or(f64::NEG_INFINITY, |s| s.top);
                let all = keys_here.next_power_of_two() as f64;
                let sum = found.as_ref().map_or(0.0, |s| (s.log - s.top).exp() / all);
                // The error of the largest logit is a factor of all sums.
                let sum_off = found.as_ref().map_or(0.0, |s| sum * 1.01 * (s.log_off + U));
                logs[2 * at..2 * at + 2].copy_from_slice(&[top, sum]);
                let top_off = found.as_ref().map_or(0.0, |s| 1.01 * s.log_off);
                logs_bounds[2 * at..2 * at + 2].copy_from_slice(&[top_off, sum_off]);
                for c in 0..piece {
                    let column = piece_at * piece + c;
                    let value = |j: usize| match column < wide {
                        true => v[(key_head * keys + k0 + j) * wide + column],
                        false => 0.0,
                    };
                    let (mean, off) = found.as_ref().map_or((0.0, 0.0), |s| s.mean(value));
                    let size = logits.iter().map(|l| value(l.0).abs()).fold(0.0, f64::max);
                    partial[at * piece + c] = mean * sum;
                    partial_bounds[at * piece + c] = 1.01 * (off * sum + size * sum_off);
                }
            }
            // All parts of a list have the same exact result.
            let logits: Vec<_> = (0..keys_here).filter(|j| seen(*j)).map(logit).collect();
            // Parts are scaled once more.
            let found = softmax(&logits, keys_here.div_ceil(64) + 3 * usize::from(parts > 0));
            for c in columns.clone() {
                let out = query * wide + c;
                o[out] = 0.0;
                if let Some(softmax) = &found {
                    let (sum, off) = softmax.mean(|j| v[(key_head * keys + k0 + j) * wide + c]);
                    (o[out], o_bounds[out]) = (sum, off + at_rest(stored, sum, off));
                }
            }
            if piece_at == 0 {
                lse[query] = found.as_ref().map_or(f64::NEG_INFINITY, |s| s.log);
                lse_bounds[query] = found.as_ref().map_or(0.0, |s| 1.01 * s.log_off);
            }
        }
    }
    vec![
        Expected::new(3, o, Bound::Each(o_bounds)),
        Expected::new(4, lse, Bound::Each(lse_bounds)),
        Expected::new(5, partial, Bound::Each(partial_bounds)),
        Expected::new(6, logs, Bound::Each(logs_bounds)),
        Expected::new(7, inputs[7].values(), Bound::Exact),
    ]
}
