//! Attributes that are unknown, incomplete, or repeated.

#[kernel]
fn nothing_said(y: &mut [f32]) {}

#[kernel(blok = 32, grid = 1)]
fn misspelt(y: &mut [f32]) {}

#[kernel(block = 32, block = 64, grid = 1, grid = 2)]
fn twice(y: &mut [f32]) {}

#[kernel(block = (1, 2, 3, 4), grid = ())]
fn axes(y: &mut [f32]) {}

#[kernel(block = 32, grid = |x| x)]
#[requires(y.len() == match y { _ => 1 })]
fn outside(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1, instances(T = 4))]
fn no_such_constant(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1, instances(T = 1 | 4294967296, F = 2; T = 1, U = 3))]
fn values<const T: usize, const F: bool>(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1, instances(one: T = 4))]
fn named_without_parameters(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1, instances(tile: T = 1; tile: T = 2; again: T = 1; t: N = 4 | 4))]
fn named_twice<const T: usize>(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1, min_blocks = 4294967296)]
fn too_many(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1, target = sm_35)]
fn too_old(y: &mut [f32]) {}

#[kernel(block = 32, target = sm_80, grid = 1, target = sm_90)]
fn two_targets(y: &mut [f32]) {}

#[kernel(block = 32, grid = 1, target = "sm_80")]
fn quoted_target(y: &mut [f32]) {}
