//! A CUDA driver library whose device is the PTX interpreter.
//!
//! Programs that use CUDA's driver API run on it unchanged: cudarc, a C program, this project's own
//! CUDA backend. Such programs load this library in place of NVIDIA's `libcuda.so.1`. GPU host code
//! is thus tested on machines without a GPU, and errors of a program are explained in words.
//!
//! ```text
//! cargo run --release -p cuda-on-cpu -- PROGRAM ARGUMENTS…      # runs a program on the library
//! CUDA_ON_CPU_LOG=calls.log                                     # the log goes to a file; by default to stderr
//! CUDA_ON_CPU_CHECKS=all                                        # all checks of the PTX interpreter
//! CUDA_ON_CPU_FAIL=700@17                                       # the 17th call fails with the code of an illegal address
//! ```
//!
//! The log has a line for each rejected call, with the reason. The command logs to `stderr` unless
//! the variable is set, and leaves standard output to the program. `CUDA_ON_CPU_LOG=off` turns the
//! log off. A program that loads the library without the command has no log by default. The command
//! starts no program if an option or a variable is wrong, and ends with exit code 2.
//!
//! A program can change the injected fault while it runs. `cuda_on_cpu_fail(text)`, exported beside
//! the driver's functions, accepts the syntax of the variable. `cuda_on_cpu_calls()` returns the
//! number of calls since then, and `cuda_on_cpu_objects()` the number of live objects. A test can
//! thus fail each call of a program in turn, and check for leaks.
//!
//! # Architecture
//!
//! ```text
//! ffi      the exported functions: each converts C arguments, calls the core and returns a code
//! ─────────────────────────────────────────────────────────────────────────────────────────────────
//! core     driver     the objects of the process, and the operations on them
//!          handle     validated numbers that identify objects
//!          context    memory and permanent failures
//!          memory     addresses of the device, allocations, copies
//!          module     loaded PTX, its variables and kernels
//!          engine     the queue of all streams, and its worker thread
//!          work       operations of streams: launches, copies, fills, calls
//!          event, graph, stream
//! ─────────────────────────────────────────────────────────────────────────────────────────────────
//! runtime_ptx         runs kernels on the memory of a context
//! ```
//!
//! `ffi` checks all pointer arguments for null, and never unwinds into its caller. Handles are
//! numbers, never addresses: null handles, handles of another type and freed handles are each
//! rejected by name. The only other unsafe accesses are to memory that the program passes, which is
//! valid by CUDA's rules.
//!
//! # Features and limits
//!
//! The library provides one device, or several that are alike, each with separate memory. The
//! device name identifies the emulator, and the default compute capability is 6.1
//! ([`VARIABLES`]). Devices can copy from one another, but cannot access each other's memory. The
//! library runs PTX text, not machine code. A kernel with an out-of-bounds access is stopped at
//! that access, and the context is lost with `CUDA_ERROR_ILLEGAL_ADDRESS`, as on a GPU. A kernel
//! never touches other memory of the process. Allocations are 64 KiB apart, so that an access past
//! the end of one does not hit the next.
//!
//! All streams of all devices share one queue, and kernels run one at a time. CUDA allows this
//! order, and the library tries no other: a missing wait between streams goes undetected. A kernel
//! that waits for another kernel, or for a block that may not be resident, fails with
//! `CUDA_ERROR_LAUNCH_TIMEOUT` as soon as it repeats its state. A kernel that polls page-locked or
//! managed memory waits for the host. Such a kernel fails when its fuel is spent: with the default
//! fuel, after about an hour.
//!
//! `CU_LIMIT_STACK_SIZE` limits the frames of recursive and indirect calls to 1,024 bytes a thread,
//! until a program raises it by `cuCtxSetLimit`. Other local memory does not count, as with
//! NVIDIA's driver. Frames of PTX differ from those of machine code, so a frame counts with what it
//! needs at least: local variables that the function indexes or passes on. A call beyond the limit
//! fails with `CUDA_ERROR_HARDWARE_STACK_ERROR`; a GPU may fail with `CUDA_ERROR_ILLEGAL_ADDRESS`
//! or earlier. A thread's stack has at least 64 KiB here and four times the limit, at most 512 KiB.
//! An endless recursion exceeds this.
//!
//! What a kernel prints goes to standard output, and failed assertions go to standard error.
//! Kernels allocate from a heap, whose size is the context's limit. In a cooperative launch all
//! blocks are resident, and take turns. Several modules of PTX are linked; machine code is not.
//!
//! [`functions`] lists the functions of cuda.h, with the reason for each that is not supported:
//! mipmapped arrays, peer access, inter-process memory and others. The unsupported functions are
//! exported, return `CUDA_ERROR_NOT_SUPPORTED` and appear in the log. The runtime API (`libcudart`)
//! uses undocumented tables of NVIDIA's driver, and so does not run on this library.
//!
//! # Compilers and linkers
//!
//! A program that compiles to machine code gets PTX in its place ([`stand_ins`]). `cuda-on-cpu`
//! places stand-ins for nvJitLink and for the cubin calls of NVRTC before every program, on Linux.
//! `--compilers=on` also puts `ptxas` and `nvcc` first in `PATH`. A program that reads machine code
//! needs NVIDIA's `ptxas`, so these two are off by default.
//!
//! # A sanitizer
//!
//! ```text
//! cuda-on-cpu --on-finding=continue --checks=all --error-exitcode=9 --json=found.json PROGRAM…
//! ```
//!
//! With `--on-finding=continue`, an invalid access is left out and recorded, and the kernel
//! continues. At the end of the process, a summary lists each finding once. Each entry has the
//! lines of PTX and of the source (`.loc`), and the number of occurrences. The findings are also
//! written as JSON and as SARIF. `--suppressions` names a file of findings to leave out: a check
//! and a kernel in each line, with `*` for any text. Signals and exit codes are the program's,
//! unless `--error-exitcode` applies.
//!
//! # Checks by name
//!
//! `--checks=all` enables every check of [`runtime_ptx`]. A list of names enables some of them,
//! beside the faults: `--checks=uninitialized-buffer,race`. `race` includes all races.
//!
//! - `uninitialized-buffer`: a load from, or an atomic operation on, device memory that nothing has
//!   written: no copy, no fill, no kernel. A copy between device memory also copies which bytes
//!   were written, and is not reported. Neither is a copy to the host. The initcheck of
//!   compute-sanitizer has the same limits. The check covers allocations of device memory and of
//!   pools. The host writes page-locked and managed memory without a call, so they count as
//!   written, like arrays and the heap of kernels. Without this check, allocations do not track
//!   their written bytes.
//! - `global-race` and `shared-race`: a plain store and another access to the same byte by two
//!   warps of a launch, unless an order could exist between the two. Barriers order accesses, as do
//!   fences with atomic operations or volatile accesses. A store of the value that memory already
//!   holds races with no earlier store. An atomic operation of the scope `.cta` (`atomicAdd_block`)
//!   races with one of another block. A write to memory that the launch also loads by
//!   `ld.global.nc` (`__ldg`) or `ldu` is reported in any order. Races between lanes of a warp, and
//!   between launches, are not found. The racecheck of compute-sanitizer finds races in shared
//!   memory only. A launch with this check runs on one thread.
//!
//! # Leaks
//!
//! ```text
//! cuda-on-cpu --leak-check=full --error-exitcode=9 PROGRAM…
//! ```
//!
//! With `--leak-check=full`, the summary also lists the objects that exist at the end of the
//! process: memory of every kind, arrays, textures, surfaces, streams, events, graphs, executable
//! graphs, pools, link states and contexts. Objects of one type and size that one function of the
//! driver created are one leak. Each entry has the numbers of the calls, as `--fail` counts them,
//! and the program's functions on the stack of the first call. The line `leak cuMemAlloc*` in
//! `--suppressions` leaves out the leaks of that function. Memory of `malloc` in kernels is listed
//! under the name `malloc`.
//!
//! The check runs after the functions of `atexit`, and on Linux also after the destructors of
//! static objects. The objects of a context are freed with the context. compute-sanitizer, in
//! contrast, reports memory that a destroyed context still had, and no objects other than memory.
//! Primary contexts and contexts that are current on a thread are not listed. Most programs keep
//! their code loaded until they end, so only `--leak-check=modules` lists modules and libraries.

// The exported functions have the names of cuda.h.
#![allow(non_snake_case)]

mod core;
mod ffi;
pub mod stage;
pub mod stand_ins;

#[doc = include_str!("functions.md")]
pub mod functions {}

pub use core::settings::{VARIABLES, invalid_settings};
