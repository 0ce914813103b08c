//! Specs of `count_shared`, `count_global`.

use super::stored::{numbers, scalars};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::histogram::kernels::{count_global, count_shared};
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(count_shared<u8, 256, 32, 16>, shared_cases, shared_reference);
runtime::register!(count_global<u32>, cases, reference);

/// Returns cases with numbers of keys and bins; some keys have no bin.
fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[n, bins]: [usize; 2]| {
        let keys = match scalars(instance).first() {
            Some(Scalar::U8) => Input::slice(&random.values::<u8>(n)),
            Some(Scalar::U32) => {
                let mut keys: Vec<u32> = (0..n).map(|_| random.below(bins + bins / 4 + 1) as u32).collect();
                // The smallest key without a bin.
                if let Some(last) = keys.last_mut() {
                    *last = bins as u32;
                }
                Input::slice(&keys)
            }
            // Multiples of 2⁻⁶: `f32` computes the same bin as `f64` if the number of bins is a
            // power of two.
            _ => Input::slice(&(0..n).map(|_| random.below(200) as f32 / 64.0 - 1.5).collect::<Vec<_>>()),
        };
        let before: Vec<u32> = (0..bins).map(|_| random.below(5) as u32).collect();
        let inputs = [keys, Input::scalar(-1.0f32), Input::scalar(1.0f32), Input::slice(&before)];
        Case::new(format!("{n} keys, {bins} bins"), inputs)
    };
    // More keys than all blocks take at once on a device of two multiprocessors, which the
    // interpreters emulate.
    let at_once = 8 * 2 * 256 * numbers(instance).last().unwrap_or(&1);
    let shapes = [[1, 1], [7, 256], [16, 2], [1000, 256], [5003, 64], [300, 35], [0, 8], [at_once + 1003, 250]];
    let mut all: Vec<Case> = shapes.map(case).into();
    if scalars(instance).first() == Some(&Scalar::F32) {
        let largest = f32::MAX;
        let ranges = [
            [-3e38, 3e38],
            [-largest, largest],
            [0.0, largest],
            [-0.25, 0.75],
            [-1e-38, 1e-38],
            [0.0, 1e-44],
            [0.75, 0.75],
        ];
        for (i, [low, high]) in ranges.into_iter().enumerate() {
            let bins = 5 + i;
            let of = |extreme: &Extreme| extreme.fill::<f32>(random, 20);
            let mut keys: Vec<f32> = Extreme::ALL.iter().flat_map(of).collect();
            keys.extend([low, high, low.next_down(), high.next_up(), low / 2.0 + high / 2.0]);
            keys.extend((0..40u8).map(|i| low + (high / 40.0 - low / 40.0) * (f32::from(i) + 0.3)));
            // A number next to the edge of a bin may be on either side.
            keys.retain(|key| {
                let part = (f64::from(*key) - f64::from(low)) / (f64::from(high) - f64::from(low)) * bins as f64;
                [low, high].contains(key) || !part.is_finite() || (part - part.round()).abs() > 1e-5
            });
            let inputs =
                [Input::slice(&keys), Input::scalar(low), Input::scalar(high), Input::slice(&vec![3u32; bins])];
            all.push(Case::new(format!("extremes between {low:e} and {high:e}"), inputs));
        }
    }
    all
}

/// Adds the totals and the counter to the cases.
fn shared_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let mut all = cases(instance, random);
    for case in &mut all {
        let bins = case.inputs[3].extents()[0];
        case.inputs.insert(3, Input::view(&vec![0u64; bins.div_ceil(2)], [bins.div_ceil(2)]));
        case.inputs.insert(4, Input::view(&[0u32], [1]));
    }
    all
}

/// Adds the counts to the bins.
fn reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    vec![counted(instance, inputs, 3, inputs[3].values())]
}

/// Counts the keys. The totals and the counter are 0 again.
fn shared_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let cleared = |at: usize| Expected::new(at, inputs[at].values(), Bound::Exact);
    let bins = vec![0.0; inputs[5].values().len()];
    vec![cleared(3), cleared(4), counted(instance, inputs, 5, bins)]
}

fn counted(instance: &Instance, inputs: &[Input], at: usize, mut bins: Vec<f64>) -> Expected {
    let (keys, low, high) = (inputs[0].values(), inputs[1].value(), inputs[2].value());
    let n = bins.len();
    for key in keys {
        let bin = match scalars(instance).first() {
            Some(Scalar::U8 | Scalar::U32) => key as usize,
            _ if key == high => n - 1,
            _ if key >= low && key <= high => (((key - low) / (high - low) * n as f64) as usize).min(n - 1),
            _ => n,
        };
        if let Some(bin) = bins.get_mut(bin) {
            *bin += 1.0;
        }
    }
    Expected::new(at, bins, Bound::Exact)
}
