//! `math::` on the device: the same bits as on the host, and what it costs beside NVIDIA's library.

mod bits;
mod cost;
#[path = "../every_target/mod.rs"]
mod every_target;
mod kernels;
mod path;
#[path = "../../../kernel-dsl/tests/ulp/mod.rs"]
mod ulp;
