//! The calls whose plans are tuned. The operands of a call hold the inputs and the result of one
//! shape, and compute a reference in f64.

use kernels_rs::Queue;
use kernels_rs::tuned::TunableShape;
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer};

/// Unit roundoff of `f32`.
pub(super) const ROUNDOFF: f64 = 1.0 / (1 << 24) as f64;

/// A shape of a call whose plans are tuned.
pub(super) trait TunedCall: TunableShape {
    /// The name of the call in the command.
    const NAME: &'static str;
    /// The functions of the library that take a table.
    const SETTER: &'static str;
    type Operands: CallOperands<Plan = Self::Plan>;

    /// Returns whether an extent is 0, so that there is nothing to tune.
    fn is_empty(self) -> bool;

    /// Returns the plans that compute this shape on a device with this number of multiprocessors.
    /// The first is the one in use if there is no table.
    fn ranked(self, multiprocessors: u32) -> Vec<Self::Plan>;

    /// Creates operands on a queue's device. The queue converts weights.
    fn operands(self, on: &impl Queue, values: OperandValues) -> runtime::Result<Self::Operands>;

    /// Returns the number of floating-point operations, or of those of integers instead; 0 if
    /// memory limits the call.
    fn operations(self) -> f64;

    /// Returns a rough time on an H100, which determines the number of launches in one measurement.
    fn typical_ns(self) -> f64;
}

/// The values of operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OperandValues {
    /// Zeros, for estimates.
    Zeros,
    /// Ordinary values, for measurements.
    Drawn,
}

impl OperandValues {
    /// Returns the next `count` numbers, and a buffer with them. Estimates need no reference, so
    /// that the host has no zeros.
    pub fn uploaded(
        self,
        device: &Device,
        random: &mut Random,
        count: usize,
    ) -> runtime::Result<(Vec<f32>, DeviceBuffer<f32>)> {
        match self {
            OperandValues::Zeros => Ok((Vec::new(), device.zeros(count)?)),
            OperandValues::Drawn => {
                let numbers: Vec<f32> = random.values(count);
                let uploaded = device.upload(&numbers)?;
                Ok((numbers, uploaded))
            }
        }
    }
}

/// The inputs and the result of a call.
pub(super) trait CallOperands {
    type Plan;

    /// Queues the call, computed by a plan.
    fn run(&self, on: &impl Queue, plan: Self::Plan) -> runtime::Result<()>;

    /// Overwrites the result by NaNs, so that an earlier result fails the check.
    fn overwrite_result(&self, device: &Device) -> runtime::Result<()>;

    /// Returns the result.
    fn result(&self) -> runtime::Result<Vec<f32>>;

    /// Computes the result in f64, with the bound of the error of each element.
    fn reference(&self) -> CallReference;
}

/// The elements of a result, with the bounds of their errors.
pub(super) struct CallReference {
    pub values: Vec<f64>,
    pub bounds: Vec<f64>,
    /// The number of elements of a row.
    pub columns: usize,
}

impl CallReference {
    /// Returns what is wrong with a result, if something is.
    pub fn mismatch(&self, result: &[f32]) -> Option<String> {
        if result.len() != self.values.len() {
            return Some(format!("it has {} elements instead of {}", result.len(), self.values.len()));
        }
        let expected = self.values.iter().zip(&self.bounds);
        // A NaN is not within the bound.
        let is_wrong = |(given, (value, bound)): (&f32, (&f64, &f64))| {
            let error = (f64::from(*given) - value).abs();
            error.is_nan() || error > *bound
        };
        let at = result.iter().zip(expected).position(is_wrong)?;
        let (row, col) = (at / self.columns, at % self.columns);
        Some(format!(
            "element ({row}, {col}) is {}, and the reference is {} ± {:.1e}",
            result[at], self.values[at], self.bounds[at]
        ))
    }
}
