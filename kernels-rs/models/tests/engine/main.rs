//! Whole models on the CPU device and on a GPU, compared with plain loops over `f32`.

mod figures;
mod generation;
mod logits;
#[path = "../support/reference.rs"]
mod reference;
mod sequences;
#[path = "../support/small.rs"]
mod small;
#[path = "../support/mod.rs"]
mod support;

/// Returns the largest difference, relative to the largest magnitude of an expected logit.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    let top = expected.iter().fold(0.0f32, |top, x| top.max(x.abs()));
    found.iter().zip(expected).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / top
}
