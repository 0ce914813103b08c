//! Tests of the library's calls, on the CPU and on a GPU, against plain Rust.

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

mod append;
mod attention;
mod attention_cached;
mod attention_extremes;
mod blocks;
mod convolution;
mod dense;
mod formats;
mod memory_bound;
mod preload;
mod projected;
mod quant;
mod refusals;
mod rowwise;
mod sampling;
mod shapes;
