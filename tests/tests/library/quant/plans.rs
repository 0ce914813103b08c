//! The plans of a product: suitable ones agree, and others are rejected.

use super::{blocks, dequantized, multiplied};
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::plan::{QuantPlan, QuantTile};
use kernels_rs::quant::{Activations, Format, Weights};
use runtime::Device;
use runtime::testing::Random;

on_each_device! {
    cpu_suitable_plans_give_the_same_product gpu_suitable_plans_give_the_same_product plans;
}

/// Checks every plan of a product, with parts of K that are smaller than the others or empty.
fn plans(device: &Device) {
    let (mut random, [m, n, k]) = (Random::new(9), [33, 20, 1280]);
    let x: Vec<f32> = random.values(m * k);
    let dx = device.upload(&x).unwrap();
    let activations = Activations::quantize(device, &dx.view([m, k]).unwrap()).unwrap();
    assert_eq!(activations.extents(), [m, k]);
    for format in [Format::Q4_0, Format::Q2K, Format::Q6K] {
        let weights = blocks(device, format, &random.values::<f32>(n * k), k);
        let w = dequantized(device, &weights);
        let tiles = QuantTile::ALL.into_iter().flat_map(|tile| [1, 3, 6].map(|splits| QuantPlan::Tiles(tile, splits)));
        let few = [QuantPlan::few(format, m), "few 1 128 1024 1".parse().unwrap(), "few 4 512 2048 2".parse().unwrap()];
        for plan in few.into_iter().chain(tiles) {
            let mut y = device.upload(&vec![f32::NAN; m * n]).unwrap();
            let mut to = y.view_mut([m, n]).unwrap();
            // SAFETY: this epilogue accesses nothing.
            unsafe { weights.product_with_plan(device, plan, &activations, &mut to, Identity) }.unwrap();
            multiplied(&format!("{} by {plan:?}", format.name()), &y.download().unwrap(), &x, &w, k);
        }
    }
}

/// Rejects plans that cannot compute a product, and activations of other extents.
#[test]
fn unsuitable_plans_are_rejected() {
    let device = Device::cpu();
    let (numbers, mut y) = (device.zeros::<f32>(640).unwrap(), device.zeros::<f32>(20).unwrap());
    let weights = Weights::quantize_q4(&device, &numbers.view_strided([2, 64], [64, 1]).unwrap()).unwrap();
    let mut said = |rows: usize, cols: usize, plan: QuantPlan| {
        let x = numbers.view_strided([rows, cols], [cols, 1]).unwrap();
        let x = Activations::quantize(&device, &x).unwrap();
        let mut y = y.view_strided_mut([rows, 2], [2, 1]).unwrap();
        // SAFETY: this epilogue accesses nothing.
        unsafe { weights.product_with_plan(&device, plan, &x, &mut y, Identity) }.map_err(|error| error.to_string())
    };
    said(10, 64, QuantPlan::Tiles(QuantTile::T16x128, 1)).unwrap();
    assert!(said(10, 64, QuantPlan::Tiles(QuantTile::T16x128, 0)).unwrap_err().contains("at least one part"));
    assert!(said(3, 64, QuantPlan::Tiles(QuantTile::T64x128, 1)).unwrap_err().contains("more than 8 rows"));
    let few = QuantPlan::few(Format::Q4_0, 10);
    said(10, 64, few).unwrap();
    let too_many = "few 8 256 2048 1".parse().unwrap();
    assert!(said(10, 64, too_many).unwrap_err().contains("from 1 to 32 sums"));
    assert!(said(10, 32, few).unwrap_err().contains("the activations have 32 columns, but the weights have 64"));
}
