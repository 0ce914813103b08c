//! Mistakes in device functions whose type parameters have bounds. The macro reports its own, and
//! rustc's come alone.
use kernel_dsl::prelude::*;

#[device]
pub mod traits {
    pub trait Act: Copy {
        type Out: Copy;
        const WIDTH: u32;
        fn act(self, x: f32) -> f32;
        fn out(self) -> Self::Out;
    }

    pub trait Other {
        fn other(self) -> u32;
    }
}
use traits::{Act, Other};

#[device]
pub mod methods {
    use super::traits::{Act, Other};

    #[derive(Clone, Copy)]
    pub struct Pair<T> {
        pub first: T,
        pub second: T,
    }

    impl<T: Act> Pair<T> {
        pub fn large(self) -> usize {
            let _ = self.first.act(1.0);
            0x1_0000_0000
        }

        pub fn absent(self) -> f32 {
            self.second.absent(1.0)
        }
    }

    impl<T> Pair<T>
    where
        T: Other + Copy,
    {
        pub fn larger<U: Act, const N: usize>(self, of: U) -> usize {
            let _ = of.act(self.first.other() as f32);
            N + 0x2_0000_0000
        }
    }
}

// The macro's mistake.
#[device]
fn large<T: Act>(of: T) -> usize {
    let _ = of.act(2.0);
    0x3_0000_0000
}

#[device]
fn several<T: Act + Other, U, const N: usize, const B: bool>(of: T, with: U) -> usize
where
    U: Act,
{
    let _ = with.act(of.act(1.0));
    if B { N } else { 0x4_0000_0000 }
}

#[device]
fn projected<T: Act, F: DeviceFn<(T::Out,), Output = T::Out>>(of: T, _map: F) -> usize {
    let _ = of.out();
    0x5_0000_0000
}

#[device]
fn callable<T: Act>(of: T, with: impl Fn(T) -> f32) -> usize {
    let _ = with(of);
    0x6_0000_0000
}

#[device]
fn width<T: Act>() -> usize {
    T::WIDTH as usize + 0x7_0000_0000
}

// The mistakes of rustc.
#[device]
fn no_method<T: Act>(of: T) -> f32 {
    of.deed(2.0)
}

#[device]
fn no_bound<T: Other, U>(of: U) -> f32 {
    of.act(2.0)
}

#[device]
fn no_constant<T: Act>() -> u32 {
    T::HEIGHT
}

#[device]
fn wrong_type<T: Act>(of: T) -> f32 {
    let x: u32 = of.act(1.0);
    x as f32
}

#[device]
fn wrong_argument<T: Act>(of: T) -> f32 {
    of.act(1u32)
}

fn main() {}
