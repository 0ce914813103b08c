//! A user-defined `block`, which must not be confused with the prelude's.
use kernel_dsl::prelude::*;

mod mine {
    pub mod block {
        pub fn sync() {}
    }
}
use mine::block;

#[kernel(block = 256, grid = 1)]
pub fn k(y: &mut [f32]) {
    y[0] = 1.0;
    block::sync();
}

fn main() {
    println!("{}", k::PTX);
}
