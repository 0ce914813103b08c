//! Tests of launches, and of a third crate's implementations of `pixel`'s traits.

use images::neighbors::{Affine, resample};
use images::point::tone;
use images::statistics::{Extent, extents};
use kernel_dsl::prelude::*;
use pixel::curve::{Curve, Gamma};
use pixel::format::{Color, Pixel, Rgb32f, Rgba8};
use runtime::{Device, Result};

/// Inverts the brightness above `from`.
#[device]
pub mod solarize {
    use pixel::Curve;

    #[derive(Clone, Copy, Debug)]
    pub struct Solarize {
        pub from: f32,
    }

    impl Curve for Solarize {
        fn apply(&self, x: f32) -> f32 {
            if x > self.from { 1.0 - x } else { x }
        }
    }
}
use solarize::Solarize;

fn gray(n: usize) -> Vec<Rgba8> {
    (0..n).map(|i| Rgba8 { a: 7, ..Rgba8::of(Color::gray(i as f32 / n as f32)) }).collect()
}

#[test]
fn structs_can_be_arguments() -> Result<()> {
    let device = Device::cpu();
    let pixels = gray(1000);
    let mut image = device.upload(&pixels)?;
    let curve = Gamma { power: 0.5 };
    tone::<Rgba8, Gamma>::launch(&device, curve, &mut image)?;
    let expected: Vec<Rgba8> = pixels.iter().map(|p| p.with(curve.of(p.color()))).collect();
    assert_eq!(image.download()?, expected);
    assert!(tone::<Rgba8, Gamma>::PTX.contains(".param .f32 curve_power"));
    Ok(())
}

#[test]
fn curves_of_this_crate_run_in_kernels_of_another() -> Result<()> {
    let device = Device::cpu();
    let pixels: Vec<Rgb32f> = gray(100).iter().map(|p| Rgb32f::of(p.color())).collect();
    let mut image = device.upload(&pixels)?;
    let curve = Solarize { from: 0.5 };
    tone::<Rgb32f, Solarize>::launch(&device, curve, &mut image)?;
    let expected: Vec<Rgb32f> = pixels.iter().map(|p| Rgb32f::of(curve.of(p.color()))).collect();
    assert_eq!(image.download()?, expected);
    Ok(())
}

#[test]
fn structs_can_be_results() -> Result<()> {
    let device = Device::cpu();
    let image = device.upload(&gray(256))?;
    let mut out = device.zeros(2)?;
    extents::<Rgba8, 64>::launch(&device, image.view([2, 128])?, &mut out)?;
    let luma = |i: usize| gray(256)[i].color().luma();
    let row = |first: usize| Extent { low: luma(first), high: luma(first + 127), count: 128 };
    assert_eq!(out.download()?, [row(0), row(128)]);
    Ok(())
}

#[test]
fn identity_changes_nothing() -> Result<()> {
    let device = Device::cpu();
    let pixels: Vec<Rgba8> = gray(60).into_iter().map(|p| Rgba8 { a: 255, ..p }).collect();
    let image = device.upload(&pixels)?;
    let mut out = device.zeros(60)?;
    let identity = Affine { x: (1.0, 0.0), y: (0.0, 1.0), origin: (0.0, 0.0) };
    resample::<Rgba8>::launch(&device, image.view([6, 10])?, out.view_mut([6, 10])?, identity)?;
    assert_eq!(out.download()?, pixels);
    Ok(())
}
