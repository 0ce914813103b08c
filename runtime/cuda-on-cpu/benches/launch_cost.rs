//! Measures the launch overhead: an empty kernel of one thread, through the exported functions.
//!
//! `cargo bench -p cuda-on-cpu --bench launch_cost`. The goal is at most 20 µs.

use cudarc::driver::sys::{self, CUresult};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const PTX: &std::ffi::CStr =
    c".version 6.0\n.target sm_61\n.address_size 64\n.visible .entry empty()\n{\n    ret;\n}\n";

fn good(code: CUresult) {
    assert_eq!(code, CUresult::CUDA_SUCCESS);
}

/// Returns the median of several measurements, each of `count` calls.
fn median(count: u32, mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..101)
        .map(|_| {
            let start = Instant::now();
            (0..count).for_each(|_| run());
            start.elapsed() / count
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folder = cuda_on_cpu::stage::folder().expect("the library beside this program");
    if !std::env::split_paths(&path).any(|known| known == folder) {
        // The loader reads the library path only at program start.
        let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap();
        let program = std::env::current_exe().unwrap();
        let status = std::process::Command::new(program).env("LD_LIBRARY_PATH", path).status().unwrap();
        std::process::exit(status.code().unwrap_or(1));
    }
    let (mut context, mut module, mut function, mut stream) = (null_mut(), null_mut(), null_mut(), null_mut());
    // SAFETY: the result pointers are valid, the text ends with NUL, and the handles are live.
    unsafe {
        good(sys::cuInit(0));
        good(sys::cuCtxCreate_v2(&mut context, 0, 0));
        good(sys::cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
        good(sys::cuModuleGetFunction(&mut function, module, c"empty".as_ptr()));
        good(sys::cuStreamCreate(&mut stream, 0));
    }
    let launch = || {
        // SAFETY: the kernel has no parameters.
        good(unsafe { sys::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), null_mut()) });
    };
    // SAFETY: the stream is live.
    let wait = || good(unsafe { sys::cuStreamSynchronize(stream) });
    for allocations in [0, 100, 1000] {
        let mut held = vec![0; allocations];
        // SAFETY: the result pointer is valid.
        held.iter_mut().for_each(|address| good(unsafe { sys::cuMemAlloc_v2(address, 256) }));
        let alone = median(100, || {
            launch();
            wait();
        });
        let many = median(1, || {
            (0..100).for_each(|_| launch());
            wait();
        }) / 100;
        println!("{allocations:5} allocations: {alone:8.2?} a launch that is waited for, {many:8.2?} one of a hundred");
        // SAFETY: the addresses were allocated above, and no launch is in flight.
        held.iter().for_each(|address| good(unsafe { sys::cuMemFree_v2(*address) }));
    }
}
