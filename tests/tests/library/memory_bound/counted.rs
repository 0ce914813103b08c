//! Gathers of rows, prefix sums, histograms.

use kernels_rs::histogram::histogram;
use kernels_rs::permute::gather;
use kernels_rs::scan::{exclusive, inclusive};
use runtime::Device;
use runtime::testing::Random;

on_each_device! {
    cpu_gathers gpu_gathers gathers;
    cpu_scans gpu_scans scans;
    cpu_histograms gpu_histograms histograms;
}

fn gathers(device: &Device) {
    let mut random = Random::new(41);
    for [rows, n, pitch, tokens] in [[7, 16, 16, 20], [3, 5, 9, 40], [1, 1, 1, 1], [5, 8, 12, 0]] {
        let table = random.values::<f32>(rows * pitch);
        let index: Vec<u32> = (0..tokens).map(|_| random.below(rows + 2) as u32).collect();
        let (dt, di) = (device.upload(&table).unwrap(), device.upload(&index).unwrap());
        let mut y = device.zeros::<f32>(tokens * n).unwrap();
        let view = dt.view_strided([rows, n], [pitch, 1]).unwrap();
        gather(device, &view, &di.view([tokens]).unwrap(), &mut y.view_mut([tokens, n]).unwrap()).unwrap();
        for (i, y) in y.download().unwrap().into_iter().enumerate() {
            let row = index[i / n] as usize;
            assert_eq!(y, if row < rows { table[row * pitch + i % n] } else { 0.0 }, "{tokens} of {rows} × {n} at {i}");
        }
    }
    // A single row, with any stride.
    let table = device.upload(&random.values::<f32>(17)).unwrap();
    let (index, mut y) = (device.zeros::<u32>(1).unwrap(), device.zeros::<f32>(8).unwrap());
    let row = table.view_strided([1, 8], [9, 1]).unwrap();
    gather(device, &row, &index.view([1]).unwrap(), &mut y.view_strided_mut([1, 8], [9, 1]).unwrap()).unwrap();
    assert_eq!(y.download().unwrap(), table.download().unwrap()[..8]);
}

fn scans(device: &Device) {
    let mut random = Random::new(42);
    // One row, below and above the size that is split, and with more tiles than a group; many rows;
    // strided rows; odd lengths.
    const LONG: usize = 257 * 8192 + 4;
    for [rows, n, pitch] in
        [[1, 1, 1], [1, 20_001, 20_001], [1, 16_384, 16_384], [1, LONG, LONG], [20, 37, 40], [3, 5, 5], [2, 0, 4]]
    {
        let x: Vec<u32> = (0..rows * pitch).map(|_| random.below(1000) as u32).collect();
        let floats = random.values::<f32>(rows * pitch);
        let (dx, df) = (device.upload(&x).unwrap(), device.upload(&floats).unwrap());
        let extents = ([rows, n], [pitch, 1]);
        let mut y = device.zeros::<u32>(rows * n).unwrap();
        let view = dx.view_strided(extents.0, extents.1).unwrap();
        for is_inclusive in [true, false] {
            let scan = if is_inclusive { inclusive::<u32> } else { exclusive::<u32> };
            scan(device, &view, &mut y.view_mut([rows, n]).unwrap()).unwrap();
            let y = y.download().unwrap();
            for row in 0..rows {
                let mut sum = 0;
                for i in 0..n {
                    let (before, x) = (sum, x[row * pitch + i]);
                    sum += x;
                    let expected = if is_inclusive { sum } else { before };
                    assert_eq!(y[row * n + i], expected, "{rows} × {n} at {row}, {i}");
                }
            }
        }
        let mut y = device.zeros::<f32>(rows * n).unwrap();
        let view = df.view_strided(extents.0, extents.1).unwrap();
        inclusive(device, &view, &mut y.view_mut([rows, n]).unwrap()).unwrap();
        let y = y.download().unwrap();
        for row in 0..rows {
            let (mut sum, mut size) = (0.0, 0.0);
            for i in 0..n {
                let x = f64::from(floats[row * pitch + i]);
                (sum, size) = (sum + x, size + x.abs());
                let off = 1.001 * (i + 1) as f64 * size * 2f64.powi(-24);
                assert!((f64::from(y[row * n + i]) - sum).abs() <= off, "{rows} × {n} at {row}, {i}");
            }
        }
    }
}

fn histograms(device: &Device) {
    let mut random = Random::new(43);
    for (n, wanted) in [(0, 4), (1, 1), (1000, 256), (3001, 100), (2000, 4096), (2000, 5000)] {
        let keys: Vec<u32> = (0..n).map(|_| random.below(wanted + 3) as u32).collect();
        let bytes: Vec<u8> = random.values(n);
        let floats: Vec<f32> = (0..n).map(|_| random.below(80) as f32 / 16.0 - 2.5).collect();
        let mut count = device.zeros::<u32>(wanted).unwrap();
        let mut expected = vec![0u32; wanted];
        let add = |bins: &mut Vec<u32>, bin: usize| bins.get_mut(bin).into_iter().for_each(|n| *n += 1);

        let dk = device.upload(&keys).unwrap();
        histogram(device, &dk.view([n]).unwrap(), 0.0..=0.0, &mut count.view_mut([wanted]).unwrap()).unwrap();
        keys.iter().for_each(|key| add(&mut expected, *key as usize));
        assert_eq!(count.download().unwrap(), expected, "{n} keys, {wanted} bins");

        let db = device.upload(&bytes).unwrap();
        histogram(device, &db.view([n]).unwrap(), 0.0..=0.0, &mut count.view_mut([wanted]).unwrap()).unwrap();
        expected.fill(0);
        bytes.iter().for_each(|key| add(&mut expected, usize::from(*key)));
        assert_eq!(count.download().unwrap(), expected, "{n} bytes, {wanted} bins");

        // The 32 bins have a width of 1/8, and the numbers are multiples of 1/16, so that f32
        // computes them exactly.
        let df = device.upload(&floats).unwrap();
        let mut count = device.zeros::<u32>(32).unwrap();
        histogram(device, &df.view([n]).unwrap(), -2.0..=2.0, &mut count.view_mut([32]).unwrap()).unwrap();
        let mut expected = vec![0u32; 32];
        for x in floats.iter().filter(|x| (-2.0..=2.0).contains(*x)) {
            add(&mut expected, (((x + 2.0) * 8.0) as usize).min(31));
        }
        assert_eq!(count.download().unwrap(), expected, "{n} numbers");
    }
    // Both ends of f32: the width overflows, is subnormal, or is zero.
    let most = f32::MAX;
    for (keys, low, high, bins) in [
        (vec![-3e38f32, -1e38, 1e38, 3e38], -3e38, 3e38, vec![1u32, 1, 1, 1]),
        (vec![-most, -1.0, 1.0, most, f32::INFINITY, f32::NAN], -most, most, vec![1, 2, 1]),
        (vec![0.0, 1e-45, 3e-45, 4e-45, 6e-45, -1e-45, -0.0], 0.0, 6e-45, vec![3, 3]),
        (vec![2.0, 2f32.next_up(), 2f32.next_down()], 2.0, 2.0, vec![0, 0, 1]),
    ] {
        let (dk, mut count) = (device.upload(&keys).unwrap(), device.zeros::<u32>(bins.len()).unwrap());
        let keys = dk.view([keys.len()]).unwrap();
        histogram(device, &keys, low..=high, &mut count.view_mut([bins.len()]).unwrap()).unwrap();
        assert_eq!(count.download().unwrap(), bins, "{low:e} to {high:e}");
    }
}
