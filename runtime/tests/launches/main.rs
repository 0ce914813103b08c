//! Tests of launches through the runtime: devices, the testing kit, and kernels built by hand or by
//! the macros on every executor.

mod check;
mod common;
mod cpu;
mod gpu;
mod grid_barrier;
mod half;
mod local_arrays;
mod property;
mod references;
mod remembered;
mod repeated;
mod threads;
mod trace;
mod uninit;
mod user;
