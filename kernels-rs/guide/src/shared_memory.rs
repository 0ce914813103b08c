#![doc = include_str!(concat!(env!("OUT_DIR"), "/04_shared_memory.md"))]

use crate::first_constant;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Case, Expected, Input, Random};

/// Computes y ← xᵀ directly: loads along rows, stores along columns.
#[kernel(block = (32, 8), grid = (x.cols().div_ceil(32), x.rows().div_ceil(8)), writes(y = once))]
#[requires(y.rows() == x.cols(), y.cols() == x.rows())]
pub fn transpose_directly(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let (row, col) = (block::y() * 8 + thread::y(), block::x() * 32 + thread::x());
    if row < x.rows() && col < x.cols() {
        y[(col, row)] = x[(row, col)];
    }
}

/// Computes y ← xᵀ by tiles of 32 × 32 in shared memory, whose rows are P elements apart.
#[kernel(
    block = (32, 8), grid = (x.cols().div_ceil(32), x.rows().div_ceil(32)), writes(y = once),
    instances(P = 32 | 33),
)]
#[requires(y.rows() == x.cols(), y.cols() == x.rows())]
pub fn transpose_tile<const P: usize>(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let mut tile = Shared::<f32, 2>::with_pitch([32, 32], P);
    let (row0, col0) = (block::y() * 32, block::x() * 32);
    for i in unroll((0..32).step_by(8)) {
        let (r, c) = (thread::y() + i, thread::x());
        tile[(r, c)] = x.get((row0 + r, col0 + c)).unwrap_or(0.0);
    }
    block::sync();
    for i in unroll((0..32).step_by(8)) {
        let (r, c) = (thread::y() + i, thread::x());
        if col0 + r < y.rows() && row0 + c < y.cols() {
            y[(col0 + r, row0 + c)] = tile[(c, r)];
        }
    }
}

runtime::register!(transpose_directly, matrices, transposed);
runtime::register!(transpose_tile<32>, matrices, transposed);

fn matrices(_: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[rows, cols]: [usize; 2]| {
        let x = Input::view(&random.values::<f32>(rows * cols), [rows, cols]);
        Case::new(format!("{rows} × {cols}"), [x, Input::uninitialized::<f32, 2>([cols, rows])])
    };
    [[1, 1], [33, 70], [64, 96]].map(case).into()
}

fn transposed(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, &[rows, cols]) = (inputs[0].to_vec::<f32>(), inputs[0].extents()) else { return Vec::new() };
    let elements = (0..rows * cols).map(|i| x[i % rows * cols + i / rows]);
    vec![Expected::exact(1, elements.collect::<Vec<_>>())]
}

/// Prints the costs of the accesses of each transposition.
pub fn transpositions() -> runtime::Result<()> {
    let none = Instance::default();
    costs::<transpose_directly>("directly", &none)?;
    for instance in crate::instances::<transpose_tile<32>>() {
        let name = format!("tile, pitch {}", first_constant(&instance));
        costs::<transpose_tile<32>>(&name, &instance)?;
    }
    Ok(())
}

fn costs<K: kernel_dsl::Kernel>(name: &str, instance: &Instance) -> runtime::Result<()> {
    println!("{name}:");
    let Some(case) = matrices(instance, &mut Random::new(1)).pop() else { return Ok(()) };
    let Some(profile) = crate::profile::<K>(instance, &case)? else { return Ok(()) };
    let mut printed = Vec::new();
    for access in &profile.accesses {
        let (array, counts) = (access.array.as_deref().unwrap_or("?"), &access.counts);
        let unit = if array == "tile" { "bank passes" } else { "sectors" };
        let kind = format!("{:?}", access.kind).to_lowercase();
        let line = format!("  {kind:5} {array:4} {unit:11} {:2}", counts.cost / counts.requests);
        // An unrolled loop has equal accesses.
        if !printed.contains(&line) {
            println!("{line}");
            printed.push(line);
        }
    }
    Ok(())
}
