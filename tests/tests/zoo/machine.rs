//! Results that depend on the machine and not on the launch alone. Such results differ on another
//! card, or in the next launch.

use crate::{Bug, bug, counted, zeros};
use kernel_dsl::prelude::*;
use runtime::testing::Input;

pub const BUGS: &[Bug] = &[
    bug!(seed_of_the_clock, MachineDependent, [Input::scalar(7u32), Input::slice(&[0u32; 32])]),
    bug!(slot_of_the_multiprocessor, MachineDependent, [counted(4), zeros(4)]),
];

/// random numbers seeded from the clock
#[kernel(block = 32, grid = 1, instances(MENDED = false | true))]
#[requires(y.len() == 32)]
fn seed_of_the_clock<const MENDED: bool>(seed: u32, y: &mut [u32]) {
    let first = if MENDED { seed } else { ptx!("mov.u32 {d}, %clock;", d = out(u32)) }; //~ machine-dependent
    let t = thread::x();
    y[t] = (first ^ (t as u32).wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
}

/// a factor selected by the multiprocessor that the block runs on
#[kernel(block = 1, grid = 4, instances(MENDED = false | true))]
#[requires(x.len() == 4, y.len() == 4)]
fn slot_of_the_multiprocessor<const MENDED: bool>(x: &[f32], y: &mut [f32]) {
    let b = block::x();
    let slot = if MENDED { b as u32 } else { ptx!("mov.u32 {d}, %smid;", d = out(u32)) }; //~ machine-dependent
    y[b] = x[b] * slot as f32;
}
