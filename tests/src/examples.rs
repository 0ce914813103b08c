//! The examples of `kernels-rs/examples` with kernels as experts write them, compiled as modules.
//!
//! All their instances are tested on every executor, beside the library's: see `cases`.

// `topk` contains a file of `bitonic`.
#![allow(clippy::duplicate_mod)]

use std::error::Error;

macro_rules! experts {
    ($($name:ident $path:literal)*) => {
        $(#[path = $path]
        pub(crate) mod $name;)*

        /// The main function of each example.
        pub const MAINS: &[(&str, fn() -> Result<(), Box<dyn Error>>)] = &[$((stringify!($name), $name::main)),*];
    };
}

experts! {
    bitonic "../../kernels-rs/examples/bitonic/main.rs"
    conv3d "../../kernels-rs/examples/conv3d.rs"
    decode_attention "../../kernels-rs/examples/decode_attention.rs"
    elementwise "../../kernels-rs/examples/elementwise.rs"
    flash_attention "../../kernels-rs/examples/flash_attention.rs"
    histogram "../../kernels-rs/examples/histogram.rs"
    q8_gemm "../../kernels-rs/examples/q8_gemm.rs"
    scan "../../kernels-rs/examples/scan.rs"
    sgemm "../../kernels-rs/examples/sgemm.rs"
    topk "../../kernels-rs/examples/topk.rs"
}
