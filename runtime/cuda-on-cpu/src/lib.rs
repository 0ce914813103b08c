//! A CUDA driver library whose device is the PTX interpreter.
//!
//! Programs that speak CUDA's driver API (cudarc, a C program, this project's own CUDA backend) run on it unchanged: they
//! are pointed at this library in place of NVIDIA's `libcuda.so.1`. So the code that drives a card is tested on machines that
//! have none, and what a program does wrong is told in words.
//!
//! ```text
//! cargo run --release -p cuda-on-cpu -- PROGRAM ARGUMENTS…      # a program on it
//! CUDA_ON_CPU_LOG=stderr                                        # a line for each call that is refused, and why
//! CUDA_ON_CPU_CHECKS=all                                        # everything that the PTX interpreter checks
//! CUDA_ON_CPU_FAIL=700@17                                       # the 17th call fails, as if a kernel had left its memory
//! ```
//!
//! What is to fail can be changed while the program runs: `cuda_on_cpu_fail(text)`, exported beside the driver's functions, takes what the
//! variable takes; `cuda_on_cpu_calls()` tells how many calls there were since, `cuda_on_cpu_objects()` what is still to be ended. So
//! a test can have every call of a program fail in turn, and see that nothing leaks.
//!
//! # How it is made
//!
//! ```text
//! ffi      the exported functions: C in, one call of the core, a code out
//! ─────────────────────────────────────────────────────────────────────────────────────────────────
//! core     driver     the objects of the process, and what each call does with them
//!          handle     numbers that programs hold, told from all others
//!          context    memory, and what has gone wrong for good
//!          memory     addresses of the device, allocations, copies
//!          module     PTX that is loaded, its variables and kernels
//!          engine     the queue of all streams, and who takes from it
//!          work       what streams do: launches, copies, fills, calls
//!          event, graph, stream
//! ─────────────────────────────────────────────────────────────────────────────────────────────────
//! runtime::ptx        runs kernels on the memory of a context
//! ```
//!
//! `ffi` reads arguments, all of which are checked for null, and never lets a panic into its caller. Handles are numbers, never
//! addresses: a null one, one of another kind and one that was freed are each refused by name. Nothing else is unsafe but the
//! bytes that a program names, which are its own by CUDA's rules.
//!
//! # What it is
//!
//! One device, or several that are alike, each with memory of its own: they call themselves what they are, of compute capability 6.1 if
//! the environment does not say otherwise ([`VARIABLES`]). Between devices there are copies, and no access to one another's memory. It runs PTX text, not machine code. A kernel that leaves its memory is stopped there, and the context is lost with
//! `CUDA_ERROR_ILLEGAL_ADDRESS`, as on a card; memory of the process is never touched. Allocations lie 64 KiB apart, so that an
//! access past the end of one does not fall into the next.
//!
//! All streams of all devices share one queue, and kernels run one at a time. That is an order which CUDA allows, and no other is tried: a
//! missing wait between streams does not show. A kernel that waits for the host, or for another kernel, waits until its fuel
//! is spent and then ends with `CUDA_ERROR_LAUNCH_TIMEOUT`.
//!
//! There are no textures, surfaces, arrays, peers or other processes' memory; no joining of several modules, no launches from
//! the device, no cooperative launches, no nodes but launches put into graphs by hand. Their functions are exported, return
//! `CUDA_ERROR_NOT_SUPPORTED` and stand in the log. The runtime API (`libcudart`) asks the driver for tables that NVIDIA does not
//! document, and so does not run on it.

// The exported functions have the names of cuda.h.
#![allow(non_snake_case)]

mod core;
mod ffi;
pub mod stage;

pub use core::settings::VARIABLES;
