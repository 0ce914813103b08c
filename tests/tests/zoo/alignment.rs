//! Accesses of several elements at addresses that are not a multiple of their size.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(behind_a_header, Misaligned, [counted(160), zeros(32)]),
    bug!(odd_rows, Misaligned, [Input::view(&[1f32; 48], [8, 6]), zeros(8)]),
    bug!(shared_window, Misaligned, [counted(64), zeros(32)]),
    bug!(store_of_pairs, Misaligned, [zeros(65)]),
    bug!(bytes_after_a_length, Misaligned, [Input::slice(&[1u8; 520]), Input::slice(&[0u32; 32])]),
    bug!(moved_view, Misaligned, [Input::view(&[1f32; 136], [136]), zeros(32)]),
];

/// a load of four elements that begins one element after the start of the buffer
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 160, y.len() == 32)]
fn behind_a_header<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let header = if MENDED { 4 } else { 1 };
    let v: [f32; 4] = x.load(header + 4 * t); //~ misaligned
    y[t] = v[0] + v[3];
}

/// a load of four elements at the start of each row of six
#[kernel(block = 8, grid = 1, instances(MENDED = false | true))]
#[requires(x.rows() == 8, x.cols() == 6, y.len() == 8)]
fn odd_rows<const MENDED: bool>(x: View<f32, 2>, y: &mut [f32]) {
    let row = thread::x();
    if MENDED {
        let (v, w): ([f32; 2], [f32; 2]) = (x.load((row, 0)), x.load((row, 2)));
        y[row] = v[0] + w[1];
    } else {
        let v: [f32; 4] = x.load((row, 0)); //~ misaligned
        y[row] = v[0] + v[3];
    }
}

/// a sliding window over shared memory, loaded two elements at a time
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 32)]
fn shared_window<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([64]);
    tile[t] = x[t];
    tile[t + 32] = x[t + 32];
    block::sync();
    let first = if MENDED { 2 * t } else { t };
    let v: [f32; 2] = tile.load(first); //~ misaligned
    y[t] = v[0] + v[1];
}

/// stores of two elements that begin at an odd index
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(y.len() == 65)]
fn store_of_pairs<const MENDED: bool>(y: &mut [f32]) {
    let first = if MENDED { 0 } else { 1 };
    y.store(first + 2 * thread::x(), [1.0, 2.0]); //~ misaligned
}

/// a load of sixteen bytes after a header of four bytes
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 520, y.len() == 32)]
fn bytes_after_a_length<const MENDED: bool>(x: &[u8], y: &mut [u32]) {
    let t = thread::x();
    let header = if MENDED { 0 } else { 4 };
    let v: [u8; 16] = x.load(header + 16 * t); //~ misaligned
    y[t] = v[0] as u32 + v[15] as u32;
}

/// a view is moved by two elements and still loads four at a time
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 136, y.len() == 32)]
fn moved_view<const MENDED: bool>(x: View<f32, 1>, y: &mut [f32]) {
    let t = thread::x();
    let part = x.offset(if MENDED { 8 } else { 2 });
    let v: [f32; 4] = part.load(4 * t); //~ misaligned
    y[t] = v[0] + v[3];
}
