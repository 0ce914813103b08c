//! A user's kernel, which calls a device function of another crate.
#![deny(warnings)]

use kernel_dsl::prelude::*;
use kernels_rs::activation::silu;

/// Computes y ← silu(x) · gate, as in the feed-forward layers of language models.
#[kernel(block = 128, grid = y.len().div_ceil(128))]
#[requires(x.len() == y.len(), gate.len() == y.len())]
pub fn gated(x: &[f32], gate: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = silu(x[i]) * gate[i];
    }
}

/// Returns the dot product of two words, as vectors of four bytes.
#[device]
pub fn dot4(a: u32, b: u32) -> u32 {
    ptx!("dp4a.u32.u32 {d}, {a}, {b}, 0;", a = in(u32) a, b = in(u32) b, d = out(u32))
}

/// Computes the sum of the squares of each word's four bytes.
#[kernel(block = 128, grid = y.len().div_ceil(128))]
#[requires(x.len() == y.len())]
pub fn squares(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = dot4(x[i], x[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Device;
    use runtime::testing::{self, Expected};

    #[test]
    fn gated_agrees_with_plain_rust() -> runtime::Result<()> {
        let x: Vec<f32> = (0..1000).map(|i| i as f32 / 50.0 - 10.0).collect();
        let gate: Vec<f32> = (0..1000).map(|i| (i % 7) as f32).collect();
        let device = Device::cpu();
        let mut y = device.zeros(x.len())?;
        gated::launch(&device, &device.upload(&x)?, &device.upload(&gate)?, &mut y)?;
        // The device function runs on the host too. The function's operations are exact, so that
        // the bits are the same.
        let expected: Vec<f32> = x.iter().zip(&gate).map(|(x, g)| silu(*x) * g).collect();
        assert_eq!(y.download()?, expected);
        assert!(gated::PTX.contains(".target sm_61"));
        Ok(())
    }

    /// Runs on every executor, with critical sizes and values, and shrinks failing cases.
    #[test]
    fn gated_agrees_on_every_executor() {
        testing::property::<gated>()
            .cases(|g| {
                let n = g.size("n", 128);
                [g.special_slice::<f32>(n), g.slice::<f32>(n), g.slice::<f32>(n)]
            })
            .reference(|inputs| {
                let [x, gate] = [0, 1].map(|i| inputs[i].to_vec::<f32>());
                vec![Expected::exact(2, x.iter().zip(gate).map(|(x, g)| silu(*x) * g))]
            })
            .check();
    }

    #[test]
    fn inline_ptx_is_interpreted() -> runtime::Result<()> {
        let x: Vec<u32> = (0..300u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        let device = Device::cpu();
        let mut y = device.zeros(x.len())?;
        squares::launch(&device, &device.upload(&x)?, &mut y)?;
        let square = |x: &u32| x.to_le_bytes().iter().map(|b| u32::from(*b) * u32::from(*b)).sum();
        let expected: Vec<u32> = x.iter().map(square).collect();
        assert_eq!(y.download()?, expected);
        Ok(())
    }

    #[test]
    fn unsuitable_launches_are_rejected() -> runtime::Result<()> {
        let device = Device::cpu();
        let (short, long) = (device.zeros(10)?, device.zeros(20)?);
        let refused = gated::launch(&device, &short, &long, &mut device.zeros(20)?).unwrap_err().to_string();
        assert!(refused.contains("x.len() == y.len()"), "{refused}");
        Ok(())
    }
}
