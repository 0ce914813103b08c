//! Mistakes in a `#[device] mod`: rustc's own, once, and others that rustc accepts.

use kernel_dsl::prelude::*;

#[device]
pub mod functions {
    pub fn mistyped(x: f32) -> u32 {
        x
    }

    pub fn unknown<const N: usize>(x: f32) -> f32 {
        x + missing
    }

    pub fn ours(x: f32) -> f32 {
        x.hypot(1.0)
    }

    pub const MISTYPED: u32 = 1.5;

    pub const OURS: f32 = 1.0f32.to_radians();

    pub fn right(x: f32) -> f32 {
        x
    }
}

#[device]
pub mod methods {
    use kernel_dsl::prelude::*;

    pub trait Shape: Copy {
        type Of: Number;
        const SIDES: u32;
        fn area(self) -> f32;
        fn of(self) -> Self::Of;
    }

    #[derive(Clone, Copy)]
    pub struct Square {
        pub side: f32,
    }

    impl Square {
        pub fn mistyped(self) -> u32 {
            self.side
        }

        pub fn ours(&self, by: f32) -> f32 {
            let Self { side } = *self;
            side.hypot(by)
        }

        pub fn changed(&mut self) {
            self.side.missing();
        }
    }

    impl Shape for Square {
        type Of = f32;
        const SIDES: u32 = 4.0;
        fn area(self) -> f32 {
            self.side * self.wide
        }
        fn of(self) -> Self::Of {
            self.side.exp_m1()
        }
    }

    #[derive(Clone, Copy)]
    pub struct Many<const N: usize> {
        pub sides: [f32; N],
    }

    impl<const N: usize> Many<N> {
        pub fn mistyped(self) -> [f32; N] {
            self.sides[0]
        }

        pub fn ours(self) -> f32 {
            self.sides[0].hypot(N as f32)
        }
    }
}

#[device]
const ALONE: u32 = -1.0;

#[kernel(block = 32, grid = 1)]
fn uses(y: &mut [f32]) {
    y[0] = functions::right(1.0);
}

fn main() {}
