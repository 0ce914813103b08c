//! Cases of the kernels of [`neighbors`](crate::neighbors).

use super::{SIZES, Sample, draw, exact, floats, pixels, read, with};
use crate::neighbors::stencils::{Laplace, Sharpen, Stencil};
use crate::neighbors::{Affine, box_blur, convolve, despeckle, mapped, resample};
use kernel_dsl::compiler::hir::{Constant, Instance};
use pixel::border::{Border, resolve};
use pixel::format::{Color, Gray16, Rgba8};
use runtime::testing::{Bound, Case, Expected, Input, Random};

runtime::register!(box_blur<1, 18>, plane_cases, box_blur_reference);
runtime::register!(convolve<Rgba8, Laplace>, convolve_cases, convolve_reference);
runtime::register!(despeckle, plane_cases, despeckle_reference);
runtime::register!(resample<Rgba8>, resample_cases, resample_reference);

fn plane_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |[rows, cols]: [usize; 2]| {
        let mut plane = || Input::view(&random.values::<f32>(rows * cols), [rows, cols]);
        Case::new(format!("{rows} x {cols}"), [plane(), plane()])
    };
    SIZES.into_iter().map(&mut case).collect()
}

/// Returns the value at a position, or the nearest one if it is beyond the edge.
fn near(x: &[f32], [rows, cols]: [usize; 2], row: isize, col: isize) -> f32 {
    let (row, col) = (row.clamp(0, rows as isize - 1), col.clamp(0, cols as isize - 1));
    x[row as usize * cols + col as usize]
}

fn size(input: &Input) -> [usize; 2] {
    input.extents().try_into().unwrap_or_default()
}

/// Returns the positions of an image, by row.
fn places([rows, cols]: [usize; 2]) -> impl Iterator<Item = (usize, usize)> {
    (0..rows * cols).map(move |i| (i / cols, i % cols))
}

/// Computes the reference in f64. The kernel adds (2R + 1)² values of at most 1 in f32. The error
/// of the mean is at most that number of roundings of 2⁻²⁴.
fn box_blur_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let radius = match instance.0[0] {
        Constant::Usize(radius) => radius as isize,
        _ => 0,
    };
    let (x, size) = (floats(&inputs[0]), size(&inputs[0]));
    let count = ((2 * radius + 1) * (2 * radius + 1)) as f64;
    let mean = |(row, col): (usize, usize)| {
        let around = (-radius..=radius).flat_map(|i| (-radius..=radius).map(move |j| (i, j)));
        let value = |(i, j)| f64::from(near(&x, size, row as isize + i, col as isize + j));
        around.map(value).sum::<f64>() / count
    };
    vec![Expected::new(1, places(size).map(mean).collect(), Bound::Absolute(count * 2f64.powi(-24)))]
}

fn despeckle_reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, size) = (floats(&inputs[0]), size(&inputs[0]));
    let middle = |(row, col): (usize, usize)| {
        let value = |k: isize| near(&x, size, row as isize + k / 3 - 1, col as isize + k % 3 - 1);
        let mut nine: Vec<f32> = (0..9).map(value).collect();
        nine.sort_by(f32::total_cmp);
        nine[4]
    };
    exact(1, places(size).map(middle))
}

fn convolve_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    fn of<P: Sample>(random: &mut Random) -> Vec<Case> {
        let all = SIZES.into_iter().flat_map(|size| (0..3u32).map(move |border| (size, border)));
        let mut case = |([rows, cols], border): ([usize; 2], u32)| {
            let x = Input::view(&draw::<P>(random, rows * cols), [rows, cols]);
            let out = Input::view(&vec![0f32; rows * cols], [rows, cols]);
            Case::new(format!("{rows} x {cols}, border {border}"), [x, out, Input::scalar(border)])
        };
        all.map(&mut case).collect()
    }
    with!(instance, 0, P in [Rgba8, Gray16] => of::<P>(random))
}

fn convolve_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    fn of<P: Sample, S: Stencil>(inputs: &[Input]) -> Vec<Expected> {
        let (x, [rows, cols]) = (read::<P>(&inputs[0]), size(&inputs[0]));
        let border = [Border::Clamp, Border::Wrap, Border::Mirror][inputs[2].value() as usize];
        let at = |(row, col): (usize, usize)| {
            let mut sum = 0.0;
            for k in 0..9 {
                let (i, j) = (k / 3, k % 3);
                let r = resolve(border, (row + i) as i32 - 1, rows);
                let c = resolve(border, (col + j) as i32 - 1, cols);
                sum = S::WEIGHTS[i][j].mul_add(x[r * cols + c].color().luma(), sum);
            }
            S::finish(sum)
        };
        exact(1, places([rows, cols]).map(at))
    }
    with!(instance, 0, P in [Rgba8, Gray16] => with!(instance, 1, S in [Laplace, Sharpen] => of::<P, S>(inputs)))
}

const TURN: Affine = Affine { x: (0.5, 0.25), y: (-0.25, 0.75), origin: (3.5, -1.25) };

fn resample_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    fn of<P: Sample>(random: &mut Random) -> Vec<Case> {
        let mut case = |[rows, cols]: [usize; 2]| {
            let mut image = |[r, c]: [usize; 2]| Input::view(&draw::<P>(random, r * c), [r, c]);
            let mut inputs = vec![image([rows, cols]), image([cols, rows])];
            inputs.extend(Input::value_of(TURN));
            Case::new(format!("{rows} x {cols}"), inputs)
        };
        SIZES.into_iter().map(&mut case).collect()
    }
    with!(instance, 0, P in [Rgba8, Gray16] => of::<P>(random))
}

fn resample_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    fn of<P: Sample>(inputs: &[Input]) -> Vec<Expected> {
        let (image, [rows, cols]) = (read::<P>(&inputs[0]), size(&inputs[0]));
        let at = |(row, col): (usize, usize)| {
            let (x, y) = mapped(TURN, (col as f32, row as f32));
            let (left, top) = (x.floor(), y.floor());
            let mut color = Color::BLACK;
            for (i, wy) in [1.0 - (y - top), y - top].into_iter().enumerate() {
                for (j, wx) in [1.0 - (x - left), x - left].into_iter().enumerate() {
                    let (r, c) = (top as i32 + i as i32, left as i32 + j as i32);
                    if (0..rows as i32).contains(&r) && (0..cols as i32).contains(&c) {
                        color.add_scaled(image[r as usize * cols + c as usize].color(), wx * wy);
                    }
                }
            }
            P::of(color)
        };
        pixels(1, places(size(&inputs[1])).map(at))
    }
    with!(instance, 0, P in [Rgba8, Gray16] => of::<P>(inputs))
}
