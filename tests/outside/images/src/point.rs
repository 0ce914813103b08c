//! Kernels on single pixels.

use kernel_dsl::prelude::*;
use pixel::Pixel;
use pixel::curve::{Camera, Curve, Gamma, Levels};
use pixel::format::{Color, Gray16, Rgb32f, Rgba8};

/// Converts to another format.
#[kernel(block = 256, grid = to.len().div_ceil(256), instances(P = Rgba8, Q = Rgb32f; P = Rgb32f | Rgba8, Q = Gray16; P = Gray16, Q = Rgba8))]
#[requires(from.len() == to.len())]
pub fn convert<P: Pixel, Q: Pixel>(from: &[P], to: &mut [Q]) {
    let i = grid::index();
    if i < to.len() {
        to[i] = Q::of(from[i].color());
    }
}

/// Applies a tone curve in place.
#[kernel(block = 256, grid = image.len().div_ceil(256), instances(P = Rgba8 | Rgb32f, C = Gamma | Levels; P = Rgba8, C = Camera))]
pub fn tone<P: Pixel, C: Curve>(curve: C, image: &mut [P]) {
    for i in grid::stride(image.len()) {
        let before = image[i];
        image[i] = before.with(curve.of(before.color()));
    }
}

/// Modes of blending two layers.
#[device]
pub mod layers {
    /// A function of the lower and the upper layer.
    pub trait Mode {
        /// Blends one channel of the color.
        fn mix(below: f32, above: f32) -> f32;
    }

    /// Multiplication, as with two slides in one projector.
    #[derive(Clone, Copy)]
    pub enum Multiply {}
    impl Mode for Multiply {
        fn mix(below: f32, above: f32) -> f32 {
            below * above
        }
    }

    /// Inverse multiplication, as with two projectors on one wall.
    #[derive(Clone, Copy)]
    pub enum Screen {}
    impl Mode for Screen {
        fn mix(below: f32, above: f32) -> f32 {
            1.0 - (1.0 - below) * (1.0 - above)
        }
    }
}
use layers::{Mode, Multiply, Screen};

/// Blends one layer over another, by a mode and with an opacity.
#[kernel(block = (32, 8), grid = (out.cols().div_ceil(32), out.rows().div_ceil(8)), instances(P = Rgba8, M = Multiply | Screen))]
#[requires(below.rows() == out.rows(), below.cols() == out.cols(), above.rows() == out.rows(), above.cols() == out.cols())]
pub fn blend<P: Pixel, M: Mode>(below: View<P, 2>, above: View<P, 2>, mut out: ViewMut<P, 2>, opacity: f32) {
    let at = (block::y() * 8 + thread::y(), block::x() * 32 + thread::x());
    let (Some(low), Some(high)) = (below.get(at), above.get(at)) else { return };
    let mut color = low.color();
    let mixed = color.zip(high.color(), M::mix);
    let towards = mixed.zip(color, |to, from| to - from);
    color.add_scaled(towards, opacity);
    out[at] = low.with(color);
}

/// Returns the negative of a color.
#[device(value)]
pub fn negative(c: Color) -> Color {
    c.map(|x| 1.0 - x)
}

/// Returns black for dark colors and white for bright ones.
#[device(value)]
pub fn stencil(c: Color) -> Color {
    if c.luma() < 0.5 { Color::BLACK } else { Color::gray(1.0) }
}

/// Applies any device function to each color.
#[kernel(block = 128, grid = y.len().div_ceil(128), instances(F = negative | stencil))]
#[requires(x.len() == y.len())]
pub fn recolor<F: DeviceFn<(Color,), Output = Color>>(x: &[Rgb32f], y: &mut [Rgb32f]) {
    let i = grid::index();
    if let Some(pixel) = x.get(i).copied() {
        y[i] = Rgb32f::of(F::call((pixel.color(),)));
    }
}
