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
    bfs "../../kernels-rs/examples/bfs.rs"
    bitonic "../../kernels-rs/examples/bitonic/main.rs"
    bvh "../../kernels-rs/examples/bvh.rs"
    conv3d "../../kernels-rs/examples/conv3d.rs"
    decode_attention "../../kernels-rs/examples/decode_attention.rs"
    elementwise "../../kernels-rs/examples/elementwise.rs"
    fft "../../kernels-rs/examples/fft.rs"
    flash_attention "../../kernels-rs/examples/flash_attention.rs"
    hash_table "../../kernels-rs/examples/hash_table.rs"
    heat "../../kernels-rs/examples/heat.rs"
    histogram "../../kernels-rs/examples/histogram.rs"
    keccak "../../kernels-rs/examples/keccak.rs"
    knn "../../kernels-rs/examples/knn.rs"
    look_back "../../kernels-rs/examples/look_back.rs"
    nbody "../../kernels-rs/examples/nbody.rs"
    q8_gemm "../../kernels-rs/examples/q8_gemm.rs"
    radix_sort "../../kernels-rs/examples/radix_sort.rs"
    scan "../../kernels-rs/examples/scan.rs"
    sgemm "../../kernels-rs/examples/sgemm.rs"
    sha256 "../../kernels-rs/examples/sha256.rs"
    smith_waterman "../../kernels-rs/examples/smith_waterman.rs"
    topk "../../kernels-rs/examples/topk.rs"
    work_queue "../../kernels-rs/examples/work_queue.rs"
}
