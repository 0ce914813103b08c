//! Accesses of several elements, masked ones, and atomic operations, from Rust text on: as lowered, after passes, as rustc
//! compiled them, as PTX, and on a GPU, against plain Rust.

/// A test on the CPU and one on a GPU too, of a function that takes the GPU.
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
#[path = "../every_target/mod.rs"]
mod every_target;
mod faults;
mod kernels;
mod mapped;
mod pipeline;
mod ptx;
mod shared;
mod strided;
mod tables;
mod values;
