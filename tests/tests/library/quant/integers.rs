//! Products of bytes, with zero points and scales.

use super::bytes;
use kernel_dsl::half::f16;
use kernels_rs::quant::{Igemm, Quantized};
use runtime::Device;
use runtime::testing::Random;

on_each_device! {
    cpu_products_of_integers_are_exact gpu_products_of_integers_are_exact integers;
    cpu_scaled_products_agree_with_the_reference gpu_scaled_products_agree_with_the_reference scales;
}

/// A batch of matrices of bytes in memory, with gaps after rows and matrices.
struct Matrices {
    values: Vec<i8>,
    extents: [usize; 3],
    strides: [usize; 3],
}

impl Matrices {
    fn new(random: &mut Random, extents: [usize; 3], gap: usize) -> Matrices {
        let pitch = (extents[2] + gap).max(1);
        let plane = (extents[1] * pitch + gap).max(1);
        Matrices { values: bytes(random, extents[0] * plane), extents, strides: [plane, pitch, 1] }
    }

    fn at(&self, p: usize, [r, c]: [usize; 2], transposed: bool) -> i64 {
        let (r, c) = if transposed { (c, r) } else { (r, c) };
        i64::from(self.values[p * self.strides[0] + r * self.strides[1] + c])
    }
}

/// Checks products of all forms with integer sums and zero points, with all access widths.
fn integers(device: &Device) {
    let mut random = Random::new(3);
    for [n, rows, cols, depth, gap] in
        [[1, 1, 1, 1, 0], [2, 5, 8, 48, 16], [1, 20, 36, 20, 4], [1, 33, 65, 7, 1], [1, 3, 4, 0, 0], [1, 0, 4, 4, 0]]
    {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            let [ta, tb] = transposed;
            let a = Matrices::new(&mut random, if ta { [n, depth, rows] } else { [n, rows, depth] }, gap);
            let b = Matrices::new(&mut random, if tb { [n, cols, depth] } else { [n, depth, cols] }, gap);
            let (da, db) = (device.upload(&a.values).unwrap(), device.upload(&b.values).unwrap());
            let zero_a: Vec<i32> = (0..rows).map(|_| random.below(256) as i32 - 128).collect();
            let zero_b = vec![random.below(256) as i32 - 128];
            let (za, zb) = (device.upload(&zero_a).unwrap(), device.upload(&zero_b).unwrap());
            let mut igemm = Igemm::new();
            if ta {
                igemm = igemm.transpose_a();
            }
            if tb {
                igemm = igemm.transpose_b();
            }
            let (va, vb) =
                (da.view_strided(a.extents, a.strides).unwrap(), db.view_strided(b.extents, b.strides).unwrap());
            for zeros in [false, true] {
                let (mut qa, mut qb) = (Quantized::new(va), Quantized::new(vb));
                if zeros {
                    (qa, qb) = (qa.zero(za.view([rows]).unwrap()), qb.zero(zb.view([1]).unwrap()));
                }
                let mut c = device.zeros::<i32>(n * rows * cols).unwrap();
                igemm.run(device, qa, qb, &mut c.view_mut([n, rows, cols]).unwrap()).unwrap();
                for (i, x) in c.download().unwrap().into_iter().enumerate() {
                    let (p, r, c) = (i / (rows * cols), i / cols % rows, i % cols);
                    let (za, zb) = if zeros { (i64::from(zero_a[r]), i64::from(zero_b[0])) } else { (0, 0) };
                    let sum: i64 = (0..depth).map(|k| (a.at(p, [r, k], ta) - za) * (b.at(p, [k, c], tb) - zb)).sum();
                    assert_eq!(
                        i64::from(x),
                        sum,
                        "{n} of {rows} × {cols} × {depth}, {transposed:?}, {zeros} at {p}, {r}, {c}"
                    );
                }
            }
        }
    }
}

/// Checks scales of rows and columns, and results as bytes, which are rounded to even and saturate.
fn scales(device: &Device) {
    let a = device.upload(&[100i8, 100, 1, 2]).unwrap();
    let b = device.upload(&[127i8, 127, 1, 1]).unwrap();
    let (a, b) = (a.view([1, 2, 2]).unwrap(), b.view([1, 2, 2]).unwrap());
    let (rows, cols) = (device.upload(&[1.0f32, 0.5]).unwrap(), device.upload(&[1.0f32, -0.25]).unwrap());
    let (a, b) = (Quantized::new(a).scale(rows.view([2]).unwrap()), Quantized::new(b).scale(cols.view([2]).unwrap()));
    let igemm = Igemm::new().transpose_b();
    let mut real = device.zeros::<f32>(4).unwrap();
    igemm.run(device, a, b, &mut real.view_mut([1, 2, 2]).unwrap()).unwrap();
    // The sums are 25400, 200, 381 and 3.
    assert_eq!(real.download().unwrap(), [25400.0, -50.0, 190.5, -0.375]);
    let mut half = device.zeros::<f16>(4).unwrap();
    igemm.run(device, a, b, &mut half.view_mut([1, 2, 2]).unwrap()).unwrap();
    assert_eq!(half.download().unwrap().map_f32(), [25408.0, -50.0, 190.5, -0.375]);
    let mut byte = device.zeros::<i8>(4).unwrap();
    igemm.output(4.0, -1).run(device, a, b, &mut byte.view_mut([1, 2, 2]).unwrap()).unwrap();
    // The scaled values are 6350, −12.5, 47.625 and −0.09. The values are rounded, and the zero
    // point −1 is added.
    assert_eq!(byte.download().unwrap(), [127, -13, 47, -1]);
}

trait MapF32 {
    fn map_f32(self) -> Vec<f32>;
}

impl MapF32 for Vec<f16> {
    fn map_f32(self) -> Vec<f32> {
        self.into_iter().map(f16::to_f32).collect()
    }
}

/// Rejects operands whose extents do not match.
#[test]
fn extents_are_compared() {
    let device = Device::cpu();
    let a = device.upload(&[1i8; 12]).unwrap();
    let mut c = device.zeros::<i32>(9).unwrap();
    let (left, right) = (a.view([1, 3, 4]).unwrap(), a.view([1, 3, 4]).unwrap());
    let mut c = c.view_mut([1, 3, 3]).unwrap();
    Igemm::new().transpose_b().run(&device, Quantized::new(left), Quantized::new(right), &mut c).unwrap();
    let error = Igemm::new().run(&device, Quantized::new(left), Quantized::new(right), &mut c).unwrap_err();
    assert!(error.to_string().contains("B: extents [1, 3, 4], expected [1, 4, 3]"), "{error}");
    let zeros = device.upload(&[1, 2]).unwrap();
    let error = Igemm::new()
        .transpose_b()
        .run(&device, Quantized::new(left).zero(zeros.view([2]).unwrap()), Quantized::new(right), &mut c)
        .unwrap_err();
    assert!(error.to_string().contains("the zero points of A are 2; expected 1 for all, 3 for one per row"), "{error}");
    // An empty list differs from a missing list.
    let (none, no_scale) = (device.zeros::<i32>(0).unwrap(), device.zeros::<f32>(0).unwrap());
    let (none, no_scale) = (none.view([0]).unwrap(), no_scale.view([0]).unwrap());
    let product = Igemm::new().transpose_b();
    let error = product.run(&device, Quantized::new(left).zero(none), Quantized::new(right), &mut c).unwrap_err();
    assert!(error.to_string().contains("the zero points of A are 0; expected 1 for all"), "{error}");
    let error = product.run(&device, Quantized::new(left), Quantized::new(right).scale(no_scale), &mut c).unwrap_err();
    assert!(error.to_string().contains("the scales of B are 0; expected 1 for all"), "{error}");
    // For a product without rows, an empty list is correct.
    let (rows, mut sums) = (device.zeros::<i8>(0).unwrap(), device.zeros::<i32>(0).unwrap());
    let (rows, mut sums) = (rows.view([1, 0, 4]).unwrap(), sums.view_mut([1, 0, 3]).unwrap());
    product.run(&device, Quantized::new(rows).zero(none), Quantized::new(right), &mut sums).unwrap();
}
