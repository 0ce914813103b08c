//! Tone curves, which map brightness to brightness.

use kernel_dsl::prelude::*;

pub use curves::*;

/// Curves, and their composition.
#[device]
pub mod curves {
    use crate::format::Color;
    use kernel_dsl::prelude::*;

    /// A function of brightness.
    pub trait Curve: Copy {
        /// Returns the new brightness.
        fn apply(&self, x: f32) -> f32;

        /// Applies the curve to each channel of a color.
        fn of(&self, color: Color) -> Color {
            color.map(|x| self.apply(x))
        }
    }

    /// The power function of x.
    #[derive(Clone, Copy, Debug)]
    pub struct Gamma {
        /// The exponent.
        pub power: f32,
    }

    impl Curve for Gamma {
        fn apply(&self, x: f32) -> f32 {
            if x <= 0.0 { 0.0 } else { math::exp(self.power * math::ln(x)) }
        }
    }

    /// A linear curve that maps `black` to 0 and `white` to 1.
    #[derive(Clone, Copy, Debug)]
    pub struct Levels {
        /// The brightness that becomes 0.
        pub black: f32,
        /// The brightness that becomes 1.
        pub white: f32,
    }

    impl Levels {
        /// The identity on 0 to 1.
        pub const ALL: Levels = Levels { black: 0.0, white: 1.0 };

        fn range(&self) -> f32 {
            self.white - self.black
        }
    }

    impl Curve for Levels {
        fn apply(&self, x: f32) -> f32 {
            ((x - self.black) / self.range()).clamp(0.0, 1.0)
        }
    }

    /// The composition of two curves, the first one applied first.
    #[derive(Clone, Copy, Debug)]
    pub struct Then<A, B>(pub A, pub B);

    impl<A: Curve, B: Curve> Curve for Then<A, B> {
        fn apply(&self, x: f32) -> f32 {
            self.1.apply(self.0.apply(x))
        }
    }

    /// The curve of typical cameras: levels, then a gamma.
    #[derive(Clone, Copy, Debug)]
    pub struct Camera {
        /// The first curve.
        pub levels: Levels,
        /// The second curve.
        pub gamma: Gamma,
    }

    impl Curve for Camera {
        fn apply(&self, x: f32) -> f32 {
            Then(self.levels, self.gamma).apply(x)
        }
    }
}
