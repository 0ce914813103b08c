//! Conditions that a kernel states itself, and that do not hold.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(offsets_that_fall, Assertion, [Input::slice(&[0u32, 3, 2, 4]), Input::slice(&[0u32; 3])]),
    bug!(unknown_code, Assertion, [Input::slice(&[0u32, 3, 1, 2]), zeros(4)]),
    bug!(probe_of_a_full_table, Assertion, [Input::slice(&[7u32; 8]), Input::slice(&[0u32; 8])]),
    bug!(barrier_among_survivors, Assertion, [counted(64), zeros(64)]),
];

/// row lengths from offsets that are not sorted
#[kernel(block = 3, grid = 1, instances(MENDED = false | true))]
#[requires(offsets.len() == 4, lengths.len() == 3)]
fn offsets_that_fall<const MENDED: bool>(offsets: &[u32], lengths: &mut [u32]) {
    let i = thread::x();
    let (start, end) = (offsets[i], if MENDED { offsets[i + 1].max(offsets[i]) } else { offsets[i + 1] });
    assert!(start <= end, "row {i} ends before it starts"); //~ assertion
    lengths[i] = end - start;
}

/// a `match` of codes without one of them
#[kernel(block = 4, grid = 1, instances(MENDED = false | true))]
#[requires(codes.len() == 4, y.len() == 4)]
fn unknown_code<const MENDED: bool>(codes: &[u32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = match codes[i] {
        0 => 0.0,
        1 => 0.5,
        2 => 1.0,
        3 if MENDED => 2.0,
        code => unreachable!("code {code}"), //~ assertion
    };
}

/// a search for a free slot without an end
#[kernel(block = 1, grid = 1, instances(MENDED = false | true))]
#[requires(keys.len() == 8, slots.len() == 8)]
fn probe_of_a_full_table<const MENDED: bool>(keys: &[u32], slots: &mut [u32]) {
    for i in 0..8 {
        let mut probes = 0;
        while slots[(keys[i] as usize + probes) % 8] != 0 {
            probes += 1;
            debug_assert_ne!(probes, if MENDED { 8 } else { 4 }, "no slot for key {i}"); //~ assertion
        }
        slots[(keys[i] as usize + probes) % 8] = keys[i];
    }
}

/// an assertion before a barrier, which the threads that pass still reach
#[kernel(block = 64, grid = 1, instances(MENDED = false | true))]
#[requires(x.len() == 64, y.len() == 64)]
fn barrier_among_survivors<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([64]);
    let i = thread::x();
    tile[i] = x[i];
    assert_ne!(x[i], if MENDED { -1.0 } else { 5.0 }); //~ assertion
    block::sync();
    y[i] = tile[63 - i];
}
