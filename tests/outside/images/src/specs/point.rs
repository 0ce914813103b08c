//! Cases of the kernels of [`point`](crate::point).

use super::{SIZES, Sample, draw, pixels, read, with};
use crate::point::layers::{Mode, Multiply, Screen};
use crate::point::{blend, convert, negative, recolor, stencil, tone};
use kernel_dsl::DeviceFn;
use kernel_dsl::compiler::hir::Instance;
use pixel::curve::{Camera, Curve, Gamma, Levels};
use pixel::format::{Gray16, Pixel, Rgb32f, Rgba8};
use runtime::testing::{Case, Expected, Input, Random, edges};

runtime::register!(convert<Rgba8, Rgb32f>, convert_cases, convert_reference);
runtime::register!(tone<Rgba8, Gamma>, tone_cases, tone_reference);
runtime::register!(blend<Rgba8, Multiply>, blend_cases, blend_reference);
runtime::register!(recolor<negative>, recolor_cases, recolor_reference);

fn convert_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    fn of<P: Sample, Q: Sample>(random: &mut Random) -> Vec<Case> {
        let mut case = |n| {
            let inputs = [Input::slice(&draw::<P>(random, n)), Input::slice(&draw::<Q>(random, n))];
            Case::new(format!("{n} pixels"), inputs)
        };
        edges(256).into_iter().map(&mut case).collect()
    }
    with!(instance, 0, P in [Rgba8, Rgb32f, Gray16] => with!(instance, 1, Q in [Rgba8, Rgb32f, Gray16] => of::<P, Q>(random)))
}

fn convert_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    fn of<P: Sample, Q: Sample>(inputs: &[Input]) -> Vec<Expected> {
        pixels(1, read::<P>(&inputs[0]).into_iter().map(|p| Q::of(p.color())))
    }
    with!(instance, 0, P in [Rgba8, Rgb32f, Gray16] => with!(instance, 1, Q in [Rgba8, Rgb32f, Gray16] => of::<P, Q>(inputs)))
}

const GAMMA: Gamma = Gamma { power: 2.2 };
const LEVELS: Levels = Levels { black: 0.1, white: 0.75 };

fn tone_cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let curve = match () {
        () if super::is::<Gamma>(instance, 1) => Input::value_of(GAMMA),
        () if super::is::<Levels>(instance, 1) => Input::value_of(LEVELS),
        () => Input::value_of(Camera { levels: LEVELS, gamma: GAMMA }),
    };
    let mut case = |n| {
        let image = with!(instance, 0, P in [Rgba8, Rgb32f] => vec![Input::slice(&draw::<P>(random, n))]);
        Case::new(format!("{n} pixels"), [curve.clone(), image].concat())
    };
    edges(256).into_iter().map(&mut case).collect()
}

fn tone_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    fn of<P: Sample>(inputs: &[Input], curve: impl Curve) -> Vec<Expected> {
        let image = inputs.len() - 1;
        pixels(image, read::<P>(&inputs[image]).into_iter().map(|p| p.with(curve.of(p.color()))))
    }
    with!(instance, 0, P in [Rgba8, Rgb32f] => match () {
        () if super::is::<Gamma>(instance, 1) => of::<P>(inputs, GAMMA),
        () if super::is::<Levels>(instance, 1) => of::<P>(inputs, LEVELS),
        () => of::<P>(inputs, Camera { levels: LEVELS, gamma: GAMMA }),
    })
}

fn blend_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |[rows, cols]: [usize; 2]| {
        let mut image = || Input::view(&draw::<Rgba8>(random, rows * cols), [rows, cols]);
        Case::new(format!("{rows} x {cols}"), [image(), image(), image(), Input::scalar(0.625f32)])
    };
    SIZES.into_iter().map(&mut case).collect()
}

fn blend_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    fn of<M: Mode>(inputs: &[Input]) -> Vec<Expected> {
        let opacity = inputs[3].value() as f32;
        let pairs = read::<Rgba8>(&inputs[0]).into_iter().zip(read::<Rgba8>(&inputs[1]));
        let mix = |low: f32, high: f32| (M::mix(low, high) - low).mul_add(opacity, low);
        pixels(2, pairs.map(|(low, high)| low.with(low.color().zip(high.color(), mix))))
    }
    with!(instance, 1, M in [Multiply, Screen] => of::<M>(inputs))
}

fn recolor_cases(_: &Instance, random: &mut Random) -> Vec<Case> {
    let mut case = |n| {
        let inputs = [Input::slice(&draw::<Rgb32f>(random, n)), Input::slice(&draw::<Rgb32f>(random, n))];
        Case::new(format!("{n} pixels"), inputs)
    };
    edges(128).into_iter().map(&mut case).collect()
}

fn recolor_reference(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    with!(instance, 0, F in [negative, stencil] => {
        pixels(1, read::<Rgb32f>(&inputs[0]).into_iter().map(|p| Rgb32f::of(F::call((p.color(),)))))
    })
}
