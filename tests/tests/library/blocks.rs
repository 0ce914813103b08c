//! Tests of transformer layers, as calls and as replayed graphs, on the CPU and on a GPU, against
//! plain Rust in `f64`.

mod decoder;
mod reference;
mod vision;

use kernel_dsl::half::f16;
use kernel_dsl::{Float, GenericArgument};
use reference::Matrix;
use runtime::testing::{Draw, Random};
use runtime::{Device, DeviceBuffer};
use std::sync::Arc;

/// A type that layers store, with the resulting error of their sums.
trait StoredFloat: Float + GenericArgument + Draw + kernels_rs::attention::cache::StoredElement {
    /// The unit roundoff: half the distance from 1 to the next number.
    const UNIT: f64;
}

impl StoredFloat for f32 {
    const UNIT: f64 = 1.0 / (1 << 24) as f64;
}

impl StoredFloat for f16 {
    const UNIT: f64 = 1.0 / (1 << 11) as f64;
}

/// Returns numbers from −size to size, rounded to the stored type, on the device and on the host.
fn learnt<T: StoredFloat>(
    device: &Device,
    random: &mut Random,
    n: usize,
    size: f32,
) -> (Arc<DeviceBuffer<T>>, Vec<f32>) {
    let values: Vec<T> = (0..n).map(|_| T::from_f32(size * random.unit() as f32)).collect();
    (Arc::new(device.upload(&values).unwrap()), values.iter().map(|x| x.to_f32()).collect())
}

/// Checks that the error of each row is at most `roundings` unit roundoffs, relative to the row's
/// largest number. Errors of a layer spread from each number of a row to all of its numbers.
fn close<T: StoredFloat>(what: &str, got: &[f32], expected: &Matrix, roundings: f64) {
    assert_eq!(got.len(), expected.values.len(), "{what}");
    for (row, (got, expected)) in got.chunks(expected.cols).zip(expected.rows()).enumerate() {
        let size = expected.iter().fold(0.0f64, |top, x| top.max(x.abs()));
        for (col, (got, expected)) in got.iter().zip(expected).enumerate() {
            let off = (f64::from(*got) - expected).abs() / (size * <T as StoredFloat>::UNIT);
            assert!(off <= roundings, "{what}: {got} is not {expected} at {row}, {col}: off by {off:.1} units");
        }
    }
}
