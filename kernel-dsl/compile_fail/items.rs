//! Invalid device items.

use kernel_dsl::prelude::*;

#[device]
pub enum Shape<const N: usize> {
    Circle,
    Point,
}

#[device]
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Padded {
    pub small: u8,
    pub wide: u32,
}

#[device]
#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Native {
    pub count: usize,
}

#[device]
#[derive(Clone, Copy, DeviceCopy)]
pub struct Unordered {
    pub key: u32,
}

pub struct OfTheHost {
    pub value: f32,
}

#[device]
pub mod turns {
    pub fn even(n: u32) -> bool {
        if n == 0 { true } else { odd(n - 1) }
    }
    pub fn odd(n: u32) -> bool {
        if n == 0 { false } else { even(n - 1) }
    }
}

#[device]
pub mod generic {
    pub trait Into2<T> {
        fn into2(self) -> T;
    }
}

#[device(value)]
pub fn of_any<T: Float>(x: T) -> T {
    x
}

#[kernel(block = 32, grid = 1)]
pub fn in_buffers(x: &[Unordered], y: &mut [(f32, u32)]) {
    y[0] = (0.0, x[0].key);
}

#[kernel(block = 32, grid = 1)]
pub fn unmarked(y: &mut [f32]) {
    let host = OfTheHost { value: 1.0 };
    y[0] = host.value;
}

#[kernel(block = 32, grid = 1, instances(N = 3, M = 2), derived(M = N * 2))]
pub fn follows<const N: usize, const M: usize>(y: &mut [f32]) {
    y[0] = N as f32;
}

fn main() {}
