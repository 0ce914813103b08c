//! `attention_join`: parts of keys brought together.

use super::attention::{has, lengths, lists, looked_at};
use super::stored::{at_rest, drawn, numbers, scalars};
use super::{TINY, U, gamma};
use crate::attention::join::attention_join;
use crate::attention::span::{Dense, Listed, Packed, Padded, Whole};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Bound, Case, Expected, Input, Random};

runtime::register!(attention_join<f32, Dense, Whole, 128, 4, 128>, cases, reference);

/// Beyond every sequence.
const FAR: usize = 1 << 30;

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[wide, unit, rows] = numbers(instance).as_slice() else { return Vec::new() };
    // Heads, queries, keys, elements of a value, the band, and tiles of keys of a part.
    [
        ([1, 1, 70], unit, [FAR, FAR], 1),
        // Nothing is divided.
        ([2, 5, 100], unit, [FAR, FAR], 2),
        // Of a causal product the first tile of queries is not; with a second piece of values.
        ([2, rows + 3, rows + 3], wide + unit, [FAR, 0], rows / 64),
        // A window that begins within a tile, in three parts.
        ([1, 3, 300], wide, [150, 7], 1),
        // More queries than keys: the first see none.
        ([1, rows + 70, 129], 3 * unit, [FAR, 0], 1),
        ([1, 3, 0], unit, [FAR, FAR], 1),
    ]
    .map(|([heads, queries, keys], values, [left, right], each)| {
        let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
        let packed = has::<Packed>(instance);
        let batch = if packed || queries > 5 { 1 } else { 2 };
        let count = if packed { 3 } else { batch };
        let parts = keys.div_ceil(64 * each).max(1) + 1;
        let slots = queries.div_ceil(rows) * heads * values.div_ceil(wide) * count * parts;
        // Of some rows no key of a part counts.
        let logs: Vec<f32> = (0..slots * rows)
            .flat_map(|_| match random.below(8) {
                0 => [f32::NEG_INFINITY, 0.0],
                _ => [random.below(60) as f32 * 0.37 - 9.0, 1.0 + random.below(100) as f32 * 0.13],
            })
            .collect();
        let sums = random.values::<f32>(slots * rows * wide);
        let sums: Vec<f32> = sums
            .iter()
            .zip(0..)
            .map(|(x, i): (&f32, usize)| if logs[i / wide * 2 + 1] == 0.0 { 0.0 } else { *x })
            .collect();
        let mut inputs = vec![
            Input::view(&sums, [slots, rows, wide]),
            Input::view(&logs, [slots, rows, 2]),
            drawn(
                random,
                stored,
                batch * heads * queries * values,
                [batch, heads, queries, values],
                [heads * queries * values, queries * values, values, 1],
            ),
            Input::view(&random.values::<f32>(batch * heads * queries), [batch, heads, queries]),
        ];
        inputs.extend([keys, left, right].map(Input::scalar));
        inputs.extend(lists(instance, random, heads, [queries, keys], rows));
        inputs.extend(lengths(instance, [queries, keys], batch));
        inputs.extend([count, queries, parts, each].map(Input::scalar));
        let name = format!("{count} of {heads} × {queries} queries, {keys} keys, {values} wide, parts of {each}");
        Case::new(name, inputs)
    })
    .into()
}

/// exp(max_p − max) is off by the rounding of both in units of log₂ e and of their difference, (|max_p| + |max|)·3u, and its own 2u; a sum of n
/// such products by γ(n + 1); the quotient by 2u; the logarithm by what its argument is, 4u·|ln Σ|, and the final addition.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[wide, _, tile] = numbers(instance).as_slice() else { return Vec::new() };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let [sums, logs, mut o, mut lse] = [0, 1, 2, 3].map(|n| inputs[n].values());
    let [keys, left, right] = [4, 5, 6].map(|n| inputs[n].value() as usize);
    let &[_, heads, rows, values] = inputs[2].extents() else { return Vec::new() };
    let mut rest = inputs[7..].iter();
    let mut array = |wanted: bool| if wanted { rest.next().map(Input::values).unwrap_or_default() } else { Vec::new() };
    let listed = has::<Listed>(instance);
    let (starts, blocks, _, _) = (array(listed), array(listed), array(listed), array(listed));
    let (padded, packed) = (has::<Padded>(instance), has::<Packed>(instance));
    let lengths = [array(padded || packed), array(padded || packed)];
    let [count, longest, parts, each] = [(); 4].map(|()| array(true)[0] as usize);
    let (pieces, tiles) = (values.div_ceil(wide), longest.div_ceil(tile));
    let (mut o_bounds, mut lse_bounds) = (vec![0.0; o.len()], vec![0.0; lse.len()]);
    for (sequence, head) in (0..count).flat_map(|s| (0..heads).map(move |h| (s, h))) {
        let part = |of: usize, most: usize| match lengths[of].get(sequence) {
            None => (0, most),
            Some(n) if padded => (0, (*n as usize).min(most)),
            Some(n) => (*n as usize, lengths[of][sequence + 1] as usize - *n as usize),
        };
        let ((q0, queries), (_, keys_here)) = (part(0, rows), part(1, keys));
        let batch = if packed { 0 } else { sequence };
        for i in 0..queries {
            let list = listed.then(|| {
                let row = head * (rows.div_ceil(tile) + 1) + i / tile;
                let here = &blocks[starts[row] as usize..starts[row + 1] as usize];
                (here.iter().map(|block| *block as usize).collect(), tile)
            });
            let looked = looked_at([i / tile * tile, tile], [queries, keys_here], [left, right], list);
            if looked.len() <= each {
                continue;
            }
            let query = (batch * heads + head) * rows + q0 + i;
            for c in 0..values {
                let other = sequence * pieces + c / wide;
                let first = ((other * heads + head) * tiles + i / tile) * parts;
                let of_parts = (first..first + looked.len().div_ceil(each)).map(|slot| {
                    let at = slot * tile + i % tile;
                    (logs[2 * at], logs[2 * at + 1], sums[at * wide + c % wide])
                });
                let top = of_parts.clone().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
                // The first piece of values says the logarithm.
                if top == f64::NEG_INFINITY {
                    o[query * values + c] = 0.0;
                    if c < wide {
                        lse[query] = f64::NEG_INFINITY;
                    }
                    continue;
                }
                let scales = of_parts.clone().map(|p| (p.0 - top).exp());
                let n = of_parts.clone().count();
                let off = |p: &(f64, f64, f64)| 3.0 * U * (p.0.abs() + top.abs() + 4.0) + gamma(n + 4);
                let sum: f64 = of_parts.clone().zip(scales.clone()).map(|(p, s)| s * p.1).sum();
                let sum_off: f64 = of_parts
                    .clone()
                    .zip(scales.clone())
                    .filter(|(p, _)| p.1 > 0.0)
                    .map(|(p, s)| s * p.1 * off(&p))
                    .sum();
                let acc: f64 = of_parts.clone().zip(scales.clone()).map(|(p, s)| s * p.2).sum();
                let acc_off: f64 =
                    of_parts.zip(scales).filter(|(p, _)| p.1 > 0.0).map(|(p, s)| s * p.2.abs() * off(&p)).sum();
                let value = acc / sum;
                let value_off = 1.01 * (acc_off / sum + value.abs() * (sum_off / sum + 2.0 * U)) + TINY;
                o[query * values + c] = value;
                o_bounds[query * values + c] = value_off + at_rest(stored, value, value_off);
                if c < wide {
                    lse[query] = top + sum.ln();
                    lse_bounds[query] = 1.01 * (sum_off / sum + U * (4.0 * sum.ln().abs() + lse[query].abs() + 1.0));
                }
            }
        }
    }
    vec![Expected::new(2, o, Bound::Each(o_bounds)), Expected::new(3, lse, Bound::Each(lse_bounds))]
}
