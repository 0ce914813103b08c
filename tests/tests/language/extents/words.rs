//! Memory-bound calls: reductions, scans, histograms, copies, gathers, element-wise functions, and
//! the heads of a block.

use super::{Call, On, Written};
use kernels_rs::activation::swiglu;
use kernels_rs::blocks::cache::{Cache, Tokens};
use kernels_rs::blocks::heads::prepare;
use kernels_rs::elementwise::{gate, map, map2, map3};
use kernels_rs::histogram::histogram;
use kernels_rs::optimizer::AdamW;
use kernels_rs::permute::{copy, fill, gather, transpose_batch};
use kernels_rs::reduce::{self, ArgMax, Sum};
use kernels_rs::scan;
use runtime::Error;

const ROWS: &[(&str, usize)] = &[("rows", 1), ("n", 1)];
const MATRICES: &[(&str, usize)] = &[("batch", 1), ("rows", 1), ("cols", 1)];
const FOUR: &[(&str, usize)] = &[("axis 0", 2), ("axis 1", 2), ("axis 2", 2), ("axis 3", 2)];

pub const CALLS: &[Call] = &[
    Call { name: "reduce::rows and all", dimensions: ROWS, on_cpu: &["n"], run: reduced },
    Call { name: "reduce::columns", dimensions: MATRICES, on_cpu: &["rows", "cols"], run: columns },
    Call { name: "scan::inclusive and exclusive", dimensions: ROWS, on_cpu: &["n"], run: scanned },
    Call { name: "histogram", dimensions: &[("keys", 1), ("bins", 1)], on_cpu: &["keys", "bins"], run: counted },
    Call { name: "permute::copy and fill", dimensions: FOUR, on_cpu: &["axis 0"], run: copied },
    Call {
        name: "permute::transpose_batch",
        dimensions: MATRICES,
        on_cpu: &["batch", "rows", "cols"],
        run: transposed,
    },
    Call {
        name: "permute::gather",
        dimensions: &[("rows", 1), ("tokens", 1), ("n", 1)],
        on_cpu: &["rows", "tokens", "n"],
        run: gathered,
    },
    Call { name: "elementwise::map, map2 and map3", dimensions: FOUR, on_cpu: &["axis 1", "axis 2"], run: mapped },
    Call { name: "AdamW::step", dimensions: &[("n", 1)], on_cpu: &["n"], run: stepped },
    Call { name: "elementwise::gate", dimensions: ROWS, on_cpu: &["rows", "n"], run: gated },
    Call {
        name: "blocks::prepare",
        dimensions: &[("tokens", 1), ("heads", 1), ("room", 1)],
        on_cpu: &["room"],
        run: prepared,
    },
];

fn reduced(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, n] = extents else { panic!() };
    let ((x, of_x), mut sums, mut all) = (on.numbers(rows * n, 1), on.output(rows), on.output(1));
    let mut places = on.array(&vec![7u32; rows]);
    let x = x.view([rows, n]);
    reduce::rows(&on.device, Sum, &x, &mut sums.view_mut([rows]))?;
    reduce::rows(&on.device, ArgMax, &x, &mut places.view_mut([rows]))?;
    reduce::all(&on.device, Sum, &x, &mut all.view_mut([1]))?;
    let row = |r: usize| &of_x[r * n..][..n];
    let place = |r: usize| {
        let top = row(r).iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row(r).iter().position(|x| *x == top).map_or(f64::from(u32::MAX), |i| i as f64)
    };
    Ok(vec![
        Written::new("sums", sums.download(), (0..rows).map(|r| row(r).iter().sum()).collect()),
        Written::new("places", places.download(), (0..rows).map(place).collect()),
        Written::new("all", all.download(), vec![of_x.iter().sum()]),
    ])
}

fn columns(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, rows, cols] = extents else { panic!() };
    let ((x, of_x), mut y) = (on.numbers(batch * rows * cols, 1), on.output(batch * cols));
    reduce::columns(&on.device, Sum, &x.view([batch, rows, cols]), &mut y.view_mut([batch * cols]))?;
    let column = |i: usize| (0..rows).map(|r| of_x[(i / cols * rows + r) * cols + i % cols]).sum();
    Ok(vec![Written::new("y", y.download(), (0..batch * cols).map(column).collect())])
}

fn scanned(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, n] = extents else { panic!() };
    let ((x, of_x), [mut with, mut without]) = (on.numbers(rows * n, 1), [(); 2].map(|()| on.output(rows * n)));
    scan::inclusive(&on.device, &x.view([rows, n]), &mut with.view_mut([rows, n]))?;
    scan::exclusive(&on.device, &x.view([rows, n]), &mut without.view_mut([rows, n]))?;
    let mut sum = 0.0;
    let mut reference = [Vec::new(), Vec::new()];
    for (i, x) in of_x.iter().enumerate() {
        sum = if i % n == 0 { 0.0 } else { sum };
        reference[1].push(sum);
        sum += x;
        reference[0].push(sum);
    }
    let [of_with, of_without] = reference;
    Ok(vec![
        Written::new("inclusive", with.download(), of_with),
        Written::new("exclusive", without.download(), of_without),
    ])
}

fn counted(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[n, bins] = extents else { panic!() };
    let key = |i: usize| (i * 3 % 5) as u32;
    let (keys, mut of_bins) = (on.array(&(0..n).map(key).collect::<Vec<_>>()), on.array(&vec![7u32; bins]));
    histogram(&on.device, &keys.view([n]), 0.0..=1.0, &mut of_bins.view_mut([bins]))?;
    let mut reference = vec![0.0; bins];
    (0..n).filter_map(|i| reference.get_mut(key(i) as usize).map(|bin| *bin += 1.0)).for_each(drop);
    Ok(vec![Written::new("bins", of_bins.download(), reference)])
}

/// Computes y[d, b, c, a] ← x[a, b, c, d].
fn copied(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[a, b, c, d] = extents else { panic!() };
    let n = a * b * c * d;
    let ((x, of_x), mut y, mut filled) = (on.numbers(n, 1), on.output(n), on.output(n));
    let permuted = x.view([a, b, c, d]).strided().permuted([3, 1, 2, 0])?;
    copy(&on.device, permuted, y.view_mut([d, b, c, a]).strided())?;
    fill(&on.device, 9.0f32, filled.view_mut([a, b, c, d]).strided())?;
    let element = |i: usize| of_x[((i % a * b + i / a / c % b) * c + i / a % c) * d + i / a / c / b];
    Ok(vec![
        Written::new("y", y.download(), (0..n).map(element).collect()),
        Written::new("filled", filled.download(), vec![9.0; n]),
    ])
}

fn transposed(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, rows, cols] = extents else { panic!() };
    let n = batch * rows * cols;
    let ((x, of_x), mut y) = (on.numbers(n, 1), on.output(n));
    transpose_batch(&on.device, &x.view([batch, rows, cols]), &mut y.view_mut([batch, cols, rows]))?;
    let element = |i: usize| of_x[(i / rows / cols * rows + i % rows) * cols + i / rows % cols];
    Ok(vec![Written::new("y", y.download(), (0..n).map(element).collect())])
}

fn gathered(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, tokens, n] = extents else { panic!() };
    // The index one beyond the last row gives zeros.
    let row = |token: usize| token * 60_001 % (rows + 1);
    let ((table, of_table), mut y) = (on.numbers(rows * n, 1), on.output(tokens * n));
    let index = on.array(&(0..tokens).map(|i| row(i) as u32).collect::<Vec<_>>());
    gather(&on.device, &table.view([rows, n]), &index.view([tokens]), &mut y.view_mut([tokens, n]))?;
    let element = |i: usize| of_table.get(row(i / n) * n + i % n).copied().unwrap_or(0.0);
    Ok(vec![Written::new("y", y.download(), (0..tokens * n).map(element).collect())])
}

/// Checks max(x, 0), and a product with a row that is broadcast.
fn mapped(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[a, b, c, d] = extents else { panic!() };
    let n = a * b * c * d;
    let ((x, of_x), (row, of_row), [mut y, mut z, mut w]) =
        (on.numbers(n, 1), on.numbers(d, 3), [(); 3].map(|()| on.output(n)));
    let (x, shape) = (x.view([a, b, c, d]).strided(), [a, b, c, d]);
    map(&on.device, relu {}, x, y.view_mut(shape).strided())?;
    map2(&on.device, multiply {}, x, row.view([d]).strided(), z.view_mut(shape).strided())?;
    map3(&on.device, multiply_add {}, x, row.view([d]).strided(), x, w.view_mut(shape).strided())?;
    Ok(vec![
        Written::new("y", y.download(), of_x.iter().map(|x| x.max(0.0)).collect()),
        Written::new("z", z.download(), of_x.iter().enumerate().map(|(i, x)| x * of_row[i % d]).collect()),
        Written::new("w", w.download(), of_x.iter().enumerate().map(|(i, x)| x * of_row[i % d] + x).collect()),
    ])
}

/// Computes max(x, 0).
#[kernel_dsl::device(value)]
fn relu(x: f32) -> f32 {
    x.max(0.0)
}

/// Computes a·b.
#[kernel_dsl::device(value)]
fn multiply(a: f32, b: f32) -> f32 {
    a * b
}

/// Computes a·b + c.
#[kernel_dsl::device(value)]
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// Computes y ← silu(a)·b of the halves a and b of a row.
fn gated(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, n] = extents else { panic!() };
    let ((x, of_x), mut y) = (on.numbers(rows * 2 * n, 1), on.output(rows * n));
    gate(&on.device, swiglu {}, x.view([rows, 2 * n]).strided(), y.view_mut([rows, n]).strided())?;
    let element = |i: usize| {
        let [a, b] = [0, n].map(|half| of_x[i / n * 2 * n + half + i % n]);
        a / (1.0 + (-a).exp()) * b
    };
    Ok(vec![Written::new("y", y.download(), (0..rows * n).map(element).collect())])
}

/// Checks the preparation of heads without norms and rotation. Token i goes to row i of the cache,
/// if that exists.
fn prepared(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    const HEAD: usize = 64;
    let &[tokens, heads, room] = extents else { panic!() };
    let ((qkv, of_qkv), mut q) = (on.numbers(tokens * 3 * heads * HEAD, 1), on.output(tokens * heads * HEAD));
    let [mut keys, mut values] = [(); 2].map(|()| on.array(&vec![0f32; heads * room * HEAD]));
    let (positions, slots) = (on.array(&vec![0u32; tokens]), on.array(&(0..tokens as u32).collect::<Vec<_>>()));
    let (axes, frequencies) = (on.array(&[0u32; HEAD / 2]), on.array(&[1f32; HEAD / 2]));
    let of_tokens = Tokens {
        positions: positions.view([1, tokens]),
        axes: axes.view([HEAD / 2]),
        frequencies: frequencies.view([HEAD / 2]),
        slots: slots.view([tokens]),
    };
    let shape = [1, heads, room, HEAD];
    let mut cache = Cache { keys: keys.view_mut(shape), values: values.view_mut(shape) };
    let qkv = qkv.view([tokens, 3 * heads * HEAD]);
    prepare(&on.device, &qkv, None, &of_tokens, &mut q.view_mut([tokens, heads, HEAD]), &mut cache)?;
    let of = |token: usize, part: usize, head: usize, d: usize| of_qkv[((token * 3 + part) * heads + head) * HEAD + d];
    let of_q = |i: usize| of(i / HEAD / heads, 0, i / HEAD % heads, i % HEAD);
    let stored = |part: usize| {
        let element = move |i: usize| {
            let row = i / HEAD % room;
            if row < tokens { of(row, part, i / HEAD / room, i % HEAD) } else { 0.0 }
        };
        (0..heads * room * HEAD).map(element).collect::<Vec<_>>()
    };
    Ok(vec![
        Written::new("q", q.download(), (0..tokens * heads * HEAD).map(of_q).collect()),
        Written::new("keys", keys.download(), stored(1)),
        Written::new("values", values.download(), stored(2)),
    ])
}

/// Takes two steps without decay and without memory of gradients: each moves a weight by the rate,
/// against its gradient.
fn stepped(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[n] = extents else { panic!() };
    let ((g, of_g), (mut w, of_w)) = (on.numbers(n, 1), on.numbers(n, 3));
    let (mut m, mut v) = (on.output(n), on.output(n));
    fill(&on.device, 0.0f32, m.view_mut([n]).strided())?;
    fill(&on.device, 0.0f32, v.view_mut([n]).strided())?;
    let adamw = AdamW::new(0.25).betas([0.0, 0.0]).epsilon(1e-30).decay(0.0);
    for step in 1..3 {
        let (w, m, v) = (&mut w.view_mut([n]), &mut m.view_mut([n]), &mut v.view_mut([n]));
        adamw.step(&on.device, step, &g.view([n]), w, m, v)?;
    }
    let moved = |(w, g): (&f64, &f64)| if *g == 0.0 { *w } else { w - 0.5 * g.signum() };
    Ok(vec![
        Written::new("w", w.download(), of_w.iter().zip(&of_g).map(moved).collect()),
        Written::new("m", m.download(), of_g.clone()),
        Written::new("v", v.download(), of_g.iter().map(|g| g * g).collect()),
    ])
}
