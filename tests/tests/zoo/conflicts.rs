//! Lanes of a warp that store to one element in one instruction: different values, or equal ones.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(all_to_one, StoreConflict, [counted(32), zeros(1)]),
    bug!(each_stores_the_largest, EqualStores, [counted(32), zeros(1)]),
    bug!(keys_that_repeat, StoreConflict, [Input::slice(&[3u32; 32]), Input::slice(&[0u32; 32])]),
    bug!(halved_index, StoreConflict, [counted(32), zeros(32)]),
    bug!(bank_for_index, StoreConflict, [counted(32), zeros(32)]),
    bug!(vectors_that_overlap, StoreConflict, [counted(32), zeros(128)]),
    bug!(rows_without_stride, StoreConflict, [counted(32), Input::view(&[0f32; 32], [4, 8])]),
];

/// every lane stores its own value as the result
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 1)]
fn all_to_one<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let own = x[thread::x()];
    let all = warp::max(own);
    if MENDED {
        if thread::x() == 0 {
            y[0] = all;
        }
    } else {
        y[0] = own; //~ store-conflict
    }
}

/// every lane stores the same result
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 1)]
fn each_stores_the_largest<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let all = warp::max(x[thread::x()]);
    if !MENDED || thread::x() == 0 {
        y[0] = all; //~ equal-stores
    }
}

/// a scatter by keys with duplicates
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(keys.len() == 32, y.len() == 32)]
fn keys_that_repeat<const MENDED: bool>(keys: &[u32], y: &mut [u32]) {
    let t = thread::x();
    let key = if MENDED { t } else { keys[t] as usize };
    y[key] = t as u32; //~ store-conflict
}

/// two lanes store to each element
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn halved_index<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let to = if MENDED { t } else { t / 2 };
    y[to] = x[t]; //~ store-conflict
}

/// the upper half of the lanes stores to the elements of the lower half
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 32)]
fn bank_for_index<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut tile = Shared::<f32, 1>::new([32]);
    tile.fill(0.0);
    warp::sync();
    let to = if MENDED { t } else { t % 16 };
    tile[to] = x[t]; //~ store-conflict
    warp::sync();
    y[t] = tile[31 - t];
}

/// two lanes each store four elements to the same location
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.len() == 128)]
fn vectors_that_overlap<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let to = if MENDED { t } else { t / 2 };
    y.store(4 * to, [x[t]; 4]); //~ store-conflict
}

/// a two-dimensional index omits the row
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 32, y.rows() == 4, y.cols() == 8)]
fn rows_without_stride<const MENDED: bool>(x: &[f32], mut y: ViewMut<f32, 2>) {
    let t = thread::x();
    let row = if MENDED { t / 8 } else { 0 };
    y[(row, t % 8)] = x[t]; //~ store-conflict
}
