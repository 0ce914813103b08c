//! Operations that a struct lacks because a field lacks them, whatever the type is called.

use kernel_dsl::prelude::*;

#[device]
pub mod held {
    use kernel_dsl::prelude::*;

    #[derive(Clone, Copy)]
    pub struct Tile {
        pub of: Shared<f32, 1>,
    }

    #[derive(Clone, Copy)]
    pub struct Work {
        pub tile: Tile,
        pub first: usize,
    }

    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Plain {
        pub code: u32,
    }
}
use held::{Plain, Work};

#[kernel(block = 32, grid = 1)]
fn taken(work: Work, y: &mut [f32]) {
    y[thread::x()] = work.first as f32;
}

fn passed(work: Work, plain: Plain) {
    fn passes<T: kernel_dsl::launcher::ValueArgument>(_: T) {}
    passes(plain);
    passes(work);
}

fn in_a_buffer(work: Work, plain: Plain) {
    fn lies<T: Element>(_: T) {}
    lies(plain);
    lies(work);
}

fn main() {}
