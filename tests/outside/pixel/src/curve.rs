//! Tone curves: what becomes of a brightness.

use kernel_dsl::prelude::*;

pub use curves::*;

/// Curves, and a way to put two behind one another.
#[device]
pub mod curves {
    use crate::format::Color;
    use kernel_dsl::prelude::*;

    /// A function of brightness.
    pub trait Curve: Copy {
        /// The new brightness.
        fn apply(&self, x: f32) -> f32;

        /// Of each part of a color.
        fn of(&self, color: Color) -> Color {
            color.map(|x| self.apply(x))
        }
    }

    /// x to a power.
    #[derive(Clone, Copy, Debug)]
    pub struct Gamma {
        /// The power.
        pub power: f32,
    }

    impl Curve for Gamma {
        fn apply(&self, x: f32) -> f32 {
            if x <= 0.0 { 0.0 } else { math::exp(self.power * math::ln(x)) }
        }
    }

    /// What is at `black` becomes 0, what is at `white` 1.
    #[derive(Clone, Copy, Debug)]
    pub struct Levels {
        /// Becomes 0.
        pub black: f32,
        /// Becomes 1.
        pub white: f32,
    }

    impl Levels {
        /// From 0 to 1: changes nothing.
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

    /// One curve after another.
    #[derive(Clone, Copy, Debug)]
    pub struct Then<A, B>(pub A, pub B);

    impl<A: Curve, B: Curve> Curve for Then<A, B> {
        fn apply(&self, x: f32) -> f32 {
            self.1.apply(self.0.apply(x))
        }
    }

    /// The curve that most cameras expected: levels, then a gamma.
    #[derive(Clone, Copy, Debug)]
    pub struct Camera {
        /// First.
        pub levels: Levels,
        /// Then.
        pub gamma: Gamma,
    }

    impl Curve for Camera {
        fn apply(&self, x: f32) -> f32 {
            Then(self.levels, self.gamma).apply(x)
        }
    }
}
