//! Tests of wide, masked and atomic accesses.
//!
//! Each kernel runs lowered, optimized, as rustc compiled it, as PTX, and on a GPU, against plain
//! Rust.

/// Declares tests on the CPU and on a GPU, of a function that takes the GPU.
macro_rules! agreements {
    ($($name:ident $gpu:ident $run:ident)*) => {$(
        #[test]
        fn $name() {
            $run(None);
        }

        #[test]
        #[ignore = "needs an NVIDIA GPU"]
        fn $gpu() {
            $run(Some(&runtime::Device::cuda(0).unwrap()));
        }
    )*};
}

mod ahead;
mod elements;
mod faults;
mod kernels;
mod mapped;
mod pipeline;
mod ptx;
mod shared;
mod strided;
mod switched;
mod tables;
mod values;

use super::every_target;
