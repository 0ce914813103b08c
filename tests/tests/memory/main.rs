//! Accesses of several elements, masked ones, and atomic operations, from Rust text on: as lowered, after passes, as rustc
//! compiled them, as PTX, and on a GPU, against plain Rust.

mod ahead;
mod elements;
#[path = "../every_target/mod.rs"]
mod every_target;
mod faults;
mod kernels;
mod ptx;
mod shared;
mod values;
