//! More shared memory than a block has: in one array, in all together, and in one instance only.
use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = 1)]
pub fn one(y: &mut [f32]) {
    let mut tile = Shared::<f32, 2>::new([128, 128]);
    tile[(0, thread::x())] = y[0];
    y[1] = tile[(0, 0)];
}

#[kernel(block = 32, grid = 1)]
pub fn together(y: &mut [f32]) {
    let mut a = Shared::<f32, 2>::new([64, 100]);
    let mut b = Shared::<f64, 1>::new([4000]);
    a[(0, 0)] = 1.0;
    b[0] = 1.0;
    y[1] = a[(0, 0)];
}

#[kernel(block = 32, grid = 1, instances(T = 32 | 256))]
pub fn instance<const T: usize>(y: &mut [f32]) {
    let mut tile = Shared::<f32, 2>::padded([T, T]);
    tile[(0, thread::x())] = y[0];
    y[1] = tile[(0, 0)];
}

fn main() {
    println!("{} {} {}", one::PTX, together::PTX, instance::<32>::PTX);
}
