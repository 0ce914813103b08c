//! Tests of memory-bound calls (copies, element-wise functions, reductions and others), on the CPU
//! and on a GPU, against plain Rust.

/// Declares a test for each device of a function that takes one.
macro_rules! on_each_device {
    ($($cpu:ident $gpu:ident $all:ident;)*) => {$(
        #[test]
        fn $cpu() {
            $all(&runtime::Device::cpu());
        }

        #[test]
        #[ignore = "needs an NVIDIA GPU"]
        fn $gpu() {
            $all(&runtime::Device::cuda(0).unwrap());
        }
    )*};
}

mod arrays;
mod counted;
mod counters;
mod moved;
mod reduced;
mod rotated;
