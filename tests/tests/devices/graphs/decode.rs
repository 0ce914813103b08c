//! The main use of graphs: a layer of a transformer's decoder is recorded once, and replayed for
//! each token with another position. The layer's state alternates between two buffers.

use kernel_dsl::prelude::*;
use runtime::Device;

const WIDTH: usize = 64;
const MAX_TOKENS: usize = 12;

/// Computes cache[position] ← x, with the position added in place of a rotation.
#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(position < cache.rows(), cache.cols() == x.len())]
pub fn remember(position: usize, x: &[f32], mut cache: ViewMut<f32, 2>) {
    let i = grid::index();
    if i < x.len() {
        cache[(position, i)] = x[i] + position as f32;
    }
}

/// Computes y[i] = Σ cache[p][i] · w[i] over the positions up to this one.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(positions <= cache.rows(), cache.cols() == y.len(), w.len() == y.len())]
pub fn attend(positions: usize, cache: View<f32, 2>, w: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        let mut sum = 0.0;
        for p in rolled(0..positions) {
            sum = cache[(p, i)].mul_add(w[i], sum);
        }
        y[i] = sum * 0.25;
    }
}

pub fn loops(device: &Device, _: u32) {
    let w: Vec<f32> = (0..WIDTH).map(|i| 1.0 / (i + 1) as f32).collect();
    let start: Vec<f32> = (0..WIDTH).map(|i| (i % 7) as f32 - 3.0).collect();
    let weights = device.upload(&w).unwrap();

    let recording = device.record();
    let w_slot = recording.borrow(&weights).unwrap();
    let x = recording.own(device.upload(&start).unwrap()).unwrap();
    let y = recording.own(device.zeros(WIDTH).unwrap()).unwrap();
    let cache = recording.own(device.alloc(WIDTH * MAX_TOKENS).unwrap()).unwrap();
    let rows = || cache.view([MAX_TOKENS, WIDTH]).unwrap();
    let rows_mut = || cache.view_mut([MAX_TOKENS, WIDTH]).unwrap();
    let write = recording.add(remember::call(0, x, rows_mut())).unwrap();
    // SAFETY: each thread writes its own element, and reads rows that earlier launches have
    // written.
    let read = unsafe { recording.add_unchecked(attend::call(1, rows(), w_slot, y)) }.unwrap();
    let mut layer = recording.finish().unwrap();

    let stream = device.stream().unwrap();
    let mut state = device.alloc(WIDTH).unwrap();
    for position in 0..MAX_TOKENS {
        layer.update(write, remember::call(position, x, rows_mut())).unwrap();
        // SAFETY: each thread writes its own element, and reads rows that earlier launches have
        // written.
        unsafe { layer.update_unchecked(read, attend::call(position + 1, rows(), w_slot, y)) }.unwrap();
        layer.replay(&stream).unwrap();
        // The output becomes the next input: three buffers are swapped, and nothing is copied.
        std::mem::swap(layer.buffer_mut(y).unwrap(), &mut state);
        std::mem::swap(layer.buffer_mut(x).unwrap(), &mut state);
    }
    stream.wait().unwrap();

    let (mut x_host, mut rows_host) = (start, Vec::new());
    for position in 0..MAX_TOKENS {
        rows_host.push(x_host.iter().map(|x| x + position as f32).collect::<Vec<_>>());
        x_host =
            (0..WIDTH).map(|i| rows_host.iter().fold(0.0, |sum, row| f32::mul_add(row[i], w[i], sum)) * 0.25).collect();
    }
    assert_eq!(layer.buffer(x).unwrap().download().unwrap(), x_host);
}
