//! `count_shared`, `count_global`.

use super::stored::{numbers, scalars};
use crate::histogram::kernels::{count_global, count_shared};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Bound, Case, Expected, Input, Random};

runtime::register!(count_shared<u8, 256, 8, 16>, cases, reference);
runtime::register!(count_global<u32>, cases, reference);

/// Keys, bins; some keys have none.
fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[n, bins]: [usize; 2]| {
        let keys = match scalars(instance).first() {
            Some(Scalar::U8) => Input::slice(&random.values::<u8>(n)),
            Some(Scalar::U32) => {
                let mut keys: Vec<u32> = (0..n).map(|_| random.below(bins + bins / 4 + 1) as u32).collect();
                // The first that has none.
                if let Some(last) = keys.last_mut() {
                    *last = bins as u32;
                }
                Input::slice(&keys)
            }
            // Multiples of 2⁻⁶, so that f32 computes the bin as f64 does where their number is a power of two.
            _ => Input::slice(&(0..n).map(|_| random.below(200) as f32 / 64.0 - 1.5).collect::<Vec<_>>()),
        };
        let before: Vec<u32> = (0..bins).map(|_| random.below(5) as u32).collect();
        let inputs = [keys, Input::scalar(-1.0f32), Input::scalar(1.0f32), Input::slice(&before)];
        Case::new(format!("{n} keys, {bins} bins"), inputs)
    };
    // More than all blocks take at once of a device of two multiprocessors, as the interpreters' is.
    let at_once = 8 * 2 * 256 * numbers(instance).last().unwrap_or(&1);
    [[1, 1], [7, 256], [16, 2], [1000, 256], [5003, 64], [0, 8], [at_once + 1003, 250]].map(case).into()
}

fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (keys, low, high, mut bins) = (inputs[0].values(), inputs[1].value(), inputs[2].value(), inputs[3].values());
    let n = bins.len();
    for key in keys {
        let bin = match scalars(instance).first() {
            Some(Scalar::U8 | Scalar::U32) => key as usize,
            _ if key >= low && key <= high => (((key - low) / (high - low) * n as f64) as usize).min(n - 1),
            _ => n,
        };
        if let Some(bin) = bins.get_mut(bin) {
            *bin += 1.0;
        }
    }
    vec![Expected::new(3, bins, Bound::Exact)]
}
