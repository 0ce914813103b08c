//! Activations that the kernel of a gate or norm quantizes.

use super::{blocks, dequantized, multiplied};
use kernels_rs::activation::swiglu;
use kernels_rs::elementwise::map2;
use kernels_rs::quant::{Activations, Format};
use kernels_rs::rowwise::Norm;
use runtime::Device;
use runtime::testing::Random;

on_each_device! {
    cpu_gated_products_agree_with_the_reference gpu_gated_products_agree_with_the_reference gated;
    cpu_normed_products_agree_with_the_reference gpu_normed_products_agree_with_the_reference normed;
}

/// Checks products with a gate that its own kernel quantizes. The products equal those with a
/// separate gate, bit for bit, and are close to plain Rust. Some rows have gaps.
fn gated(device: &Device) {
    let mut random = Random::new(21);
    for [m, k, gap] in [[1, 64, 0], [3, 256, 4], [5, 96, 1], [9, 32, 0], [0, 32, 0]] {
        let (n, pitch) = (6, k + gap);
        let [a, b]: [Vec<f32>; 2] = [(); 2].map(|()| random.values(m * pitch));
        let weights = blocks(device, Format::Q8_0, &random.values::<f32>(n * k), k);
        let w = dequantized(device, &weights);
        let [da, db] = [&a, &b].map(|x| device.upload(x).unwrap());
        let [va, vb] = [&da, &db].map(|x| x.view_strided([m, k], [pitch, 1]).unwrap());
        let mut apart = device.zeros::<f32>(m * k).unwrap();
        map2(device, swiglu {}, va.strided(), vb.strided(), apart.view_mut([m, k]).unwrap().strided()).unwrap();
        let [mut y, mut other] = [(); 2].map(|()| device.upload(&vec![f32::NAN; m * n]).unwrap());
        let x = Activations::quantize_gated(device, swiglu {}, &va, &vb).unwrap();
        assert_eq!(x.extents(), [m, k]);
        weights.product_of(device, &x, &mut y.view_mut([m, n]).unwrap()).unwrap();
        let x = Activations::quantize(device, &apart.view([m, k]).unwrap()).unwrap();
        weights.product_of(device, &x, &mut other.view_mut([m, n]).unwrap()).unwrap();
        let y = y.download().unwrap();
        assert_eq!(y, other.download().unwrap(), "{m} × {k}");
        let gate = |i: usize| {
            let [a, b] = [&a, &b].map(|x| f64::from(x[i / k * pitch + i % k]));
            (a / (1.0 + (-a).exp()) * b) as f32
        };
        let gates: Vec<f32> = (0..m * k).map(gate).collect();
        multiplied(&format!("gates of {m} × {k}"), &y, &gates, &w, k);
    }
    let x = device.zeros::<f32>(64).unwrap();
    let error = Activations::quantize_gated(device, swiglu {}, &x.view([2, 32]).unwrap(), &x.view([1, 64]).unwrap());
    assert!(error.unwrap_err().to_string().contains("the extents of a"));
}

/// Checks norms that their own kernel quantizes: products and the sum z equal those of a separate
/// norm, bit for bit. Some rows are not whole accesses, and the first case adds nothing.
fn normed(device: &Device) {
    let mut random = Random::new(23);
    for (i, [m, k, gap]) in [[1, 64, 0], [3, 1056, 4], [5, 300, 1], [9, 32, 0], [0, 32, 0]].into_iter().enumerate() {
        let (n, pitch) = (6, k + gap);
        let [x, residual]: [Vec<f32>; 2] = [(); 2].map(|()| random.values(m * pitch));
        let whole = k.next_multiple_of(32);
        let weights = blocks(device, Format::Q8_0, &random.values::<f32>(n * whole), whole);
        let [x, residual] = [&x, &residual].map(|x| device.upload(x).unwrap());
        let weight = device.upload(&random.values::<f32>(k)).unwrap();
        let weight = weight.view([k]).unwrap();
        let (x, residual) =
            (x.view_strided([m, k], [pitch, 1]).unwrap(), residual.view_strided([m, k], [pitch, 1]).unwrap());
        let [mut z, mut apart_z, mut apart] = [(); 3].map(|()| device.zeros::<f32>(m * k).unwrap());
        let norm = || Norm::rms(1e-5).weight(&weight);
        {
            let (mut z, mut apart_z) = (z.view_mut([m, k]).unwrap(), apart_z.view_mut([m, k]).unwrap());
            let [added, apart_added] = [&mut z, &mut apart_z].map(|z| if i > 0 { Some((&residual, z)) } else { None });
            let made = Activations::quantize_norm(device, norm(), &x, added).unwrap();
            norm().run_added(device, &x, apart_added, &mut apart.view_mut([m, k]).unwrap(), None).unwrap();
            let separate = Activations::quantize(device, &apart.view([m, k]).unwrap()).unwrap();
            assert_eq!(made.extents(), [m, k]);
            if k % 32 == 0 {
                let [y, other] = [&made, &separate].map(|x| {
                    let mut y = device.upload(&vec![f32::NAN; m * n]).unwrap();
                    weights.product_of(device, x, &mut y.view_mut([m, n]).unwrap()).unwrap();
                    y.download().unwrap()
                });
                assert_eq!(y, other, "{m} × {k}");
                assert!(y.iter().all(|y| y.is_finite()) && y.iter().filter(|y| **y == 0.0).count() == 0);
            }
        }
        assert_eq!(z.download().unwrap(), apart_z.download().unwrap());
    }
}
