//! The kernels of kernels-rs on shapes and values that proptest makes up, and shrinks where one fails.

use kernels_rs::{matmul, saxpy, softmax, transpose};
use proptest::collection::vec;
use proptest::prelude::*;
use runtime::{Device, DeviceBuffer};

fn upload(data: &[f32]) -> DeviceBuffer<f32> {
    Device::cpu().upload(data).unwrap()
}

/// A matrix of any values, NaNs and infinities among them.
fn matrix() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
    (0usize..70, 0usize..70).prop_flat_map(|(m, n)| (Just(m), Just(n), vec(any::<f32>(), m * n)))
}

/// Whole numbers so small that sums of their products are exact in any order.
fn small(count: usize) -> impl Strategy<Value = Vec<f32>> {
    vec((-8i8..=8).prop_map(f32::from), count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn saxpy_is_a_fused_product_and_sum(a in any::<f32>(), xy in vec((any::<f32>(), any::<f32>()), 0..700)) {
        let (x, y): (Vec<f32>, Vec<f32>) = xy.into_iter().unzip();
        let mut result = upload(&y);
        saxpy::launch(&Device::cpu(), a, &upload(&x), &mut result).unwrap();
        for ((x, y), found) in x.iter().zip(&y).zip(result.download().unwrap()) {
            let wanted = a.mul_add(*x, *y);
            prop_assert!(found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan());
        }
    }

    #[test]
    fn transpose_moves_every_bit((m, n, x) in matrix()) {
        let mut y = Device::cpu().alloc::<f32>(m * n).unwrap();
        let from = upload(&x);
        transpose::launch(&Device::cpu(), from.view([m, n]).unwrap(), y.view_mut([n, m]).unwrap()).unwrap();
        let y = y.download().unwrap();
        for r in 0..m {
            for c in 0..n {
                prop_assert_eq!(x[r * n + c].to_bits(), y[c * m + r].to_bits());
            }
        }
    }

    #[test]
    fn matmul_is_exact_on_small_integers(
        (m, n, k, a, b) in (0usize..40, 0usize..40, 0usize..40)
            .prop_flat_map(|(m, n, k)| (Just(m), Just(n), Just(k), small(m * k), small(k * n)))
    ) {
        let mut c = Device::cpu().alloc::<f32>(m * n).unwrap();
        let (da, db) = (upload(&a), upload(&b));
        matmul::<16>::launch(
            &Device::cpu(),
            da.view([m, k]).unwrap(),
            db.view([k, n]).unwrap(),
            c.view_mut([m, n]).unwrap(),
        )
        .unwrap();
        let c = c.download().unwrap();
        for r in 0..m {
            for j in 0..n {
                let wanted: f32 = (0..k).map(|i| a[r * k + i] * b[i * n + j]).sum();
                prop_assert_eq!(c[r * n + j], wanted);
            }
        }
    }

    #[test]
    fn rows_of_softmax_sum_to_one(
        (m, n, x) in (1usize..20, 1usize..100).prop_flat_map(|(m, n)| (Just(m), Just(n), vec(-80.0f32..80.0, m * n)))
    ) {
        let mut y = Device::cpu().alloc::<f32>(m * n).unwrap();
        let from = upload(&x);
        softmax::<4>::launch(&Device::cpu(), from.view([m, n]).unwrap(), y.view_mut([m, n]).unwrap()).unwrap();
        for row in y.download().unwrap().chunks(n) {
            let sum: f64 = row.iter().map(|p| f64::from(*p)).sum();
            // Each quotient is off by a few units in the last place, and the errors of a row add up at worst.
            prop_assert!((sum - 1.0).abs() < 1e-6 * n as f64, "the row sums to {}", sum);
            prop_assert!(row.iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }
}
