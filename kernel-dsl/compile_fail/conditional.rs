//! Conditional compilation inside of device items.

use kernel_dsl::prelude::*;

#[device]
#[derive(Clone, Copy)]
pub struct Parts {
    pub a: f32,
    #[cfg(unix)]
    pub b: f32,
}

#[device]
pub enum Mode {
    Plain,
    #[cfg(unix)]
    Posix,
}

#[device]
pub mod items {
    pub trait Scale: Copy {
        #[cfg(unix)]
        const BY: f32;
        #[cfg(unix)]
        fn scaled(self) -> f32;
        fn same(self) -> f32;
    }

    impl Scale for f32 {
        #[cfg(unix)]
        const BY: f32 = 2.0;
        #[cfg(unix)]
        fn scaled(self) -> f32 {
            self
        }
        #[cfg_attr(unix, inline)]
        fn same(self) -> f32 {
            self
        }
    }
}

#[device]
fn of(x: f32, #[cfg(unix)] y: f32) -> f32 {
    x + y
}

#[kernel(block = 32, grid = 1)]
fn in_a_body(y: &mut [f32]) {
    #[cfg(unix)]
    let x = 1.0;
    y[0] = match thread::x() {
        #[cfg(unix)]
        0 => x,
        _ => 0.0,
    };
}

fn main() {}
