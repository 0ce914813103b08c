//! Arguments that a signature does not allow: a host vector, an integer for an `f32`, one too few.
use kernel_dsl::prelude::*;

#[kernel(block = 256, grid = x.len().div_ceil(256))]
pub fn scale(a: f32, x: &[f32], mut y: ViewMut<f32, 1>) {
    let i = grid::index();
    y[i] = a * x[i];
}

fn launch<'a, D: kernel_dsl::Launcher>(
    device: &D,
    x: impl kernel_dsl::launcher::SliceArgument<'a, f32> + Copy,
    y: impl kernel_dsl::launcher::ViewMutArgument<'a, f32, 1> + Copy,
) -> Result<(), D::Error> {
    let host = vec![1.0f32];
    scale::launch(device, 2.0, &host, y)?;
    scale::launch(device, 2.0, x, &host)?;
    scale::launch(device, 2, x, y)?;
    scale::launch(device, 2.0, x)?;
    Ok(())
}

fn main() {}
