//! `math::` on the device: the same bits as on the host, and what it costs beside NVIDIA's library.

mod bits;
#[path = "../every_target/mod.rs"]
mod every_target;
mod kernels;
