//! Stand-ins for NVIDIA's compilers and linkers, which leave PTX where machine code would be.
//!
//! This device runs PTX. A program that compiles to machine code therefore gets PTX instead, and
//! passes this PTX to the driver. A stand-in verifies PTX with the parser of this project, at the
//! place where NVIDIA's program would compile it.
//!
//! - [`nvjitlink`] has the functions of nvJitLink, whose names are in the crate
//!   `cuda-on-cpu-nvjitlink`.
//! - [`tools`] has the programs `ptxas` and `nvcc`.
//! - The crate `cuda-on-cpu-nvrtc` has the functions of NVRTC. NVIDIA's library compiles, and only
//!   its cubin calls are replaced.
//! - The crate `cuda-on-cpu-preload` has a `dlopen` that leads to these libraries.
//!
//! The folder of [`stage`](crate::stage) has the libraries.

mod headers;
pub mod nvjitlink;
pub mod tools;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs an exported function. A panic gives `otherwise`, because none may reach the caller in C.
fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
