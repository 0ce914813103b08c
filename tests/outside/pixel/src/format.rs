//! Pixel formats, and the colors that they represent.

use kernel_dsl::prelude::*;

pub use pixels::*;

/// Pixel formats, and the common type of colors.
#[device]
pub mod pixels {
    use kernel_dsl::prelude::*;

    /// Red, green and blue from 0 to 1, in registers.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    pub struct Color {
        /// Red.
        pub r: f32,
        /// Green.
        pub g: f32,
        /// Blue.
        pub b: f32,
    }

    impl Color {
        /// Black.
        pub const BLACK: Color = Color::gray(0.0);

        /// Returns gray with this value in each channel.
        pub const fn gray(value: f32) -> Color {
            Color { r: value, g: value, b: value }
        }

        /// Returns the perceived brightness (Rec. 709).
        pub fn luma(self) -> f32 {
            let Color { r, g, b } = self;
            0.2126f32.mul_add(r, 0.7152f32.mul_add(g, 0.0722 * b))
        }

        /// Applies `f` to each channel.
        pub fn map(self, f: impl Fn(f32) -> f32) -> Color {
            Color { r: f(self.r), g: f(self.g), b: f(self.b) }
        }

        /// Applies `f` to each pair of channels.
        pub fn zip(self, other: Color, f: impl Fn(f32, f32) -> f32) -> Color {
            Color { r: f(self.r, other.r), g: f(self.g, other.g), b: f(self.b, other.b) }
        }

        /// Computes self + by · other.
        pub fn add_scaled(&mut self, other: Color, by: f32) {
            *self = self.zip(other, |a, b| b.mul_add(by, a));
        }
    }

    /// A pixel format.
    pub trait Pixel: Element {
        /// Size of a pixel in bytes.
        const BYTES: usize;
        /// The largest value of a channel; 1 if it is a float.
        const WHITE: f32;
        /// Returns the color of the pixel.
        fn color(self) -> Color;
        /// Returns the pixel nearest to a color; brighter colors than white become white.
        fn of(color: Color) -> Self;
        /// Returns a pixel with another color and otherwise the properties of this one.
        fn with(self, color: Color) -> Self {
            Self::of(color)
        }
    }

    /// Four bytes, the last of which is the coverage of the pixel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, DeviceCopy)]
    #[repr(C)]
    pub struct Rgba8 {
        /// Red.
        pub r: u8,
        /// Green.
        pub g: u8,
        /// Blue.
        pub b: u8,
        /// Coverage.
        pub a: u8,
    }

    /// Three floats of linear light.
    #[derive(Clone, Copy, Debug, PartialEq, Default, DeviceCopy)]
    #[repr(C)]
    pub struct Rgb32f {
        /// Red, green, blue.
        pub channels: [f32; 3],
    }

    /// One 16-bit float.
    #[derive(Clone, Copy, Debug, PartialEq, Default, DeviceCopy)]
    #[repr(C)]
    pub struct Gray16(pub f16);

    /// Maps 0 to 1 onto 0 to 255, rounded.
    pub fn quantize(x: f32) -> u8 {
        (x.clamp(0.0, 1.0) * Rgba8::WHITE).round() as u8
    }

    impl Pixel for Rgba8 {
        const BYTES: usize = size_of::<u32>();
        const WHITE: f32 = 255.0;
        fn color(self) -> Color {
            Color { r: self.r as f32, g: self.g as f32, b: self.b as f32 }.map(|x| x / Self::WHITE)
        }
        fn of(color: Color) -> Self {
            Rgba8 { r: quantize(color.r), g: quantize(color.g), b: quantize(color.b), a: 255 }
        }
        fn with(self, color: Color) -> Self {
            Rgba8 { a: self.a, ..Self::of(color) }
        }
    }

    impl Pixel for Rgb32f {
        const BYTES: usize = 3 * size_of::<f32>();
        const WHITE: f32 = 1.0;
        fn color(self) -> Color {
            let [r, g, b] = self.channels;
            Color { r, g, b }
        }
        fn of(color: Color) -> Self {
            Rgb32f { channels: [color.r, color.g, color.b] }
        }
    }

    impl Pixel for Gray16 {
        const BYTES: usize = size_of::<f16>();
        const WHITE: f32 = 1.0;
        fn color(self) -> Color {
            Color::gray(self.0.to_f32())
        }
        fn of(color: Color) -> Self {
            Self(f16::from_f32(color.luma()))
        }
    }
}
