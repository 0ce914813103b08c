//! Cases of the kernels of [`statistics`](crate::statistics).

use super::{SIZES, Sample, draw, exact, floats, read, with};
use crate::statistics::{BINS, Extent, NOTHING, extents, histogram, joined, row_means, running};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use pixel::format::{Gray16, Rgb32f, Rgba8};
use runtime::testing::{Bound, Case, Expected, Input, Random, edges};

runtime::register!(histogram<Rgba8>, histogram_cases, histogram_reference);
runtime::register!(extents<Rgba8, 64>, extents_cases, extents_reference);
runtime::register!(running<u32>, running_cases, running_reference);
runtime::register!(row_means<f32>, row_means_cases, row_means_reference);

fn histogram_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |n| {
        let image = with!(instance, 0, P in [Rgba8, Gray16] => vec![Input::slice(&draw::<P>(random, n))]);
        Case::new(format!("{n} pixels"), [image, vec![Input::slice(&[5u32; BINS])]].concat())
    };
    edges(128).into_iter().chain([2500]).map(&mut case).collect()
}

fn histogram_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    fn of<P: Sample>(inputs: &[Input]) -> Vec<Expected> {
        let mut bins = inputs[1].values();
        for pixel in read::<P>(&inputs[0]) {
            let level = pixel.color().luma().clamp(0.0, 1.0) * (BINS - 1) as f32;
            bins[level.round() as usize] += 1.0;
        }
        exact(1, bins)
    }
    with!(instance, 0, P in [Rgba8, Gray16] => of::<P>(inputs))
}

fn extents_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    fn of<P: Sample>(random: &mut Random) -> Vec<Case> {
        let mut case = |[rows, cols]: [usize; 2]| {
            let inputs =
                [Input::view(&draw::<P>(random, rows * cols), [rows, cols]), Input::slice(&vec![NOTHING; rows])];
            Case::new(format!("{rows} x {cols}"), inputs)
        };
        SIZES.into_iter().chain([[3, 300], [2, 0]]).map(&mut case).collect()
    }
    with!(instance, 0, P in [Rgba8, Rgb32f] => of::<P>(random))
}

fn extents_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    fn of<P: Sample>(inputs: &[Input]) -> Vec<Expected> {
        let (image, [rows, cols]) = (read::<P>(&inputs[0]), inputs[0].extents().try_into().unwrap_or_default());
        let of_row = |row: usize| {
            let one = |p: &P| p.color().luma();
            let one = |p| Extent { low: one(p), high: one(p), count: 1 };
            image[row * cols..][..cols].iter().map(one).fold(NOTHING, joined)
        };
        let numbers = |e: Extent| [f64::from(e.low), f64::from(e.high), f64::from(e.count)];
        exact(1, (0..rows).map(of_row).flat_map(numbers))
    }
    with!(instance, 0, P in [Rgba8, Rgb32f] => of::<P>(inputs))
}

/// Makes images of small integers, so that sums are exact in any order.
fn running_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |[rows, cols]: [usize; 2]| {
        let whole: Vec<u32> = (0..rows * cols).map(|_| random.below(1000) as u32).collect();
        let view = |values: &[u32]| match super::is::<u32>(instance, 0) {
            true => Input::view(values, [rows, cols]),
            false => Input::view(&values.iter().map(|x| *x as f32).collect::<Vec<_>>(), [rows, cols]),
        };
        Case::new(format!("{rows} x {cols}"), [view(&whole), view(&vec![0; whole.len()])])
    };
    SIZES.into_iter().chain([[2, 300], [1, 128]]).map(&mut case).collect()
}

fn running_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, cols) = (inputs[0].values(), inputs[0].extents()[1]);
    exact(1, (0..x.len()).map(|i| x[i / cols * cols..=i].iter().sum::<f64>()))
}

fn row_means_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |[rows, cols]: [usize; 2]| {
        let image =
            with!(instance, 0, T in [f32, f16] => vec![Input::view(&random.values::<T>(rows * cols), [rows, cols])]);
        Case::new(format!("{rows} x {cols}"), [image, vec![Input::slice(&vec![0f32; rows])]].concat())
    };
    SIZES.into_iter().chain([[3, 300]]).map(&mut case).collect()
}

/// Computes the reference in f64; the kernel adds `cols` values of at most 1 in f32.
fn row_means_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, cols) = (floats(&inputs[0]), inputs[0].extents()[1]);
    let mean = |row: &[f32]| row.iter().map(|x| f64::from(*x)).sum::<f64>() / cols as f64;
    vec![Expected::new(1, x.chunks(cols).map(mean).collect(), Bound::Absolute(cols as f64 * 2f64.powi(-24)))]
}
