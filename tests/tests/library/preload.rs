//! Kernels that are compiled ahead of their use, and the clocks of a device.

use kernels_rs::gemm::Gemm;
use kernels_rs::preload::preload_most_used;
use runtime::{ClockError, Device};

/// Preloads the kernels of a product and computes it.
fn preloaded(device: &Device) {
    let [m, n, k] = [20, 24, 200];
    let numbers = |n: usize| (0..n).map(|i| ((i * 7919) % 1000) as f32 / 999.0).collect::<Vec<_>>();
    let (a, b) = (numbers(m * k), numbers(k * n));
    let exact =
        |row: usize, col: usize| -> f64 { (0..k).map(|i| f64::from(a[row * k + i]) * f64::from(b[i * n + col])).sum() };
    let (da, db) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
    let mut c = device.upload(&vec![f32::NAN; m * n]).unwrap();
    let (va, vb) = (da.view([1, m, k]).unwrap(), db.view([1, k, n]).unwrap());
    let names = preload_most_used(device, 5, |queue| Gemm::new().run(queue, &va, &vb, &mut c.view_mut([1, m, n])?));
    let names = names.unwrap();
    assert!(!names.is_empty() && names.len() <= 5, "{names:?}");
    assert!(c.download().unwrap().iter().all(|c| c.is_nan()), "the launches are only counted");
    Gemm::new().run(device, &va, &vb, &mut c.view_mut([1, m, n]).unwrap()).unwrap();
    for (at, c) in c.download().unwrap().into_iter().enumerate() {
        let exact = exact(at / n, at % n);
        assert!((f64::from(c) - exact).abs() < 1e-4 * exact, "{at}: {c} instead of {exact}");
    }
}

#[test]
fn preloaded_kernels_run() {
    preloaded(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_preloaded_kernels_run() {
    preloaded(&Device::cuda(0).unwrap());
}

/// Reads the clocks of a GPU. The driver on the CPU has no NVML.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_clocks_are_within_their_limit() {
    match Device::cuda(0).unwrap().clocks() {
        Ok(clocks) => {
            assert!((1..=clocks.max_multiprocessor_mhz).contains(&clocks.multiprocessor_mhz), "{clocks}");
            assert!(clocks.memory_mhz > 0, "{clocks}");
            assert!(clocks.celsius.is_none_or(|celsius| (1..120).contains(&celsius)), "{clocks}");
        }
        Err(e) => {
            assert!(matches!(e, ClockError::NoLibrary | ClockError::Address { .. } | ClockError::Call { .. }), "{e}")
        }
    }
}
