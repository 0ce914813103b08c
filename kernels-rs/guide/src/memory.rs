#![doc = include_str!(concat!(env!("OUT_DIR"), "/03_memory.md"))]

use crate::first_constant;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Case, Expected, Input, Random};

/// Copies every S-th element of x: `y[i] = x[S·i]`.
#[kernel(block = 256, grid = y.len().div_ceil(256), instances(S = 1 | 2 | 8 | 32))]
#[requires(x.len() >= S * y.len())]
pub fn gather<const S: usize>(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[S * i];
    }
}

runtime::register!(gather<1>, gather_cases, gather_reference);

fn gather_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |n: usize| {
        let x = Input::slice(&random.values::<f32>(first_constant(instance) * n));
        Case::new(format!("{n} elements"), [x, Input::uninitialized::<f32, 1>([n])])
    };
    [1, 255, 512].map(case).into()
}

fn gather_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let x = inputs[0].to_vec::<f32>();
    vec![Expected::exact(1, x.into_iter().step_by(first_constant(instance)))]
}

/// Prints what a load of one warp costs, for each stride.
pub fn strides() -> runtime::Result<()> {
    println!("stride  sectors  bytes moved  bytes used");
    for instance in crate::instances::<gather<1>>() {
        let Some(case) = gather_cases(&instance, &mut Random::new(1)).pop() else { continue };
        let Some(profile) = crate::profile::<gather<1>>(&instance, &case)? else { continue };
        let load = profile.accesses.iter().find(|access| access.array.as_deref() == Some("x"));
        let Some(load) = load else { continue };
        let sectors = load.counts.cost / load.counts.requests;
        println!("{:6} {sectors:8} {:12} {:11}", first_constant(&instance), 32 * sectors, 4 * 32);
    }
    Ok(())
}
