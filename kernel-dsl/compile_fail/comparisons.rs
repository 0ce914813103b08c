//! Comparisons that the device does not support.
use kernel_dsl::prelude::*;

#[device]
#[derive(Clone, Copy)]
pub struct Plain(u32);

#[device]
#[derive(Clone, Copy)]
pub struct OnHost(u32);

impl PartialEq for OnHost {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PartialOrd for OnHost {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

#[device]
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Holder {
    pub number: f32,
    pub held: [OnHost; 2],
}

#[device]
pub mod angles {
    #[derive(Clone, Copy)]
    pub struct Angle(pub i32);

    impl PartialEq for Angle {
        fn eq(&self, other: &Self) -> bool {
            (self.0 - other.0) % 360 == 0
        }
    }
}
use angles::Angle;

#[device]
pub mod negated {
    #[derive(Clone, Copy)]
    pub struct Negated(pub u32);

    impl PartialEq for Negated {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
        fn ne(&self, other: &Self) -> bool {
            self.0 != other.0
        }
    }
}

#[kernel(block = 32, grid = 1)]
pub fn without_derive(x: &mut [u32]) {
    if Plain(x[0]) == Plain(x[1]) {
        x[2] = 1;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn host_equality(x: &mut [u32]) {
    if OnHost(x[0]) == OnHost(x[1]) {
        x[2] = 1;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn host_order(x: &mut [u32]) {
    if OnHost(x[0]) < OnHost(x[1]) {
        x[2] = 1;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn host_parts(x: &mut [u32]) {
    let a = Holder { number: 1.0, held: [OnHost(x[0]), OnHost(x[1])] };
    if (a, 1) != (a, 2) {
        x[2] = 1;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn slices(x: &[u32], y: &[u32], z: &mut [u32]) {
    if x == y {
        z[0] = 1;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn different_types(x: &mut [i32]) {
    if Angle(x[0]) == x[1] {
        x[1] = 1;
    }
}

fn main() {}
