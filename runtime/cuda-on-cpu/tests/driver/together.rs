//! Concurrency: several threads of a process, several processes on a machine.

use super::common::{self, PTX, command, expect_good, inside};
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use std::process::Stdio;
use std::sync::Arc;

/// Runs the work of one thread, with a new stream, module and buffers.
fn work(context: &Arc<CudaContext>, seed: u32) {
    let stream = context.new_stream().unwrap();
    let module = context.load_module(Ptx::from_src(PTX)).unwrap();
    let (f, count) = (module.load_function("saxpy").unwrap(), module.load_function("count").unwrap());
    for round in 0..20 {
        let n = 100 + seed + round;
        let x: Vec<f32> = (0..n).map(|i| (i * seed) as f32).collect();
        let (dx, mut dy) = (stream.clone_htod(&x).unwrap(), stream.alloc_zeros::<f32>(n as usize).unwrap());
        let a = seed as f32;
        let mut launch = stream.launch_builder(&f);
        launch.arg(&a).arg(&dx).arg(&mut dy).arg(&n);
        // SAFETY: the parameters are those of `saxpy`.
        unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }.unwrap();
        let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the kernel has no parameters.
        unsafe { stream.launch_builder(&count).launch(one) }.unwrap();
        let expected: Vec<f32> = x.iter().map(|x| a * x).collect();
        assert_eq!(stream.clone_dtoh(&dy).unwrap(), expected);
    }
    let counter = module.get_global("counter", &stream).unwrap();
    assert_eq!(stream.clone_dtoh(&counter.as_view()).unwrap(), (7u32 + 20 * 3).to_le_bytes());
}

#[test]
fn eight_threads_share_a_context() {
    inside!("eight_threads_share_a_context", &[], || {
        let context = CudaContext::new(0).unwrap();
        std::thread::scope(|scope| {
            (1..=8).for_each(|seed| {
                drop(scope.spawn({
                    let context = context.clone();
                    move || work(&context, seed)
                }))
            });
        });
        context.check_err().unwrap();
    });
}

#[test]
fn eight_threads_have_a_context_each() {
    inside!("eight_threads_have_a_context_each", &[], || {
        std::thread::scope(|scope| {
            for seed in 1..=8 {
                scope.spawn(move || work(&CudaContext::new_non_primary(0, 0).unwrap(), seed));
            }
        });
    });
}

/// Runs inside the processes of the test below.
#[test]
fn one_of_two_processes_computes() {
    inside!("one_of_two_processes_computes", &[], || work(&CudaContext::new(0).unwrap(), 5));
}

#[test]
fn two_processes_are_independent() {
    let program = std::env::current_exe().unwrap();
    let log = common::folder("together").join("log");
    let _ = std::fs::remove_file(&log);
    let run = |_| {
        let mut command = command(program.to_str().unwrap());
        command
            .args(["--exact", "together::one_of_two_processes_computes", "--nocapture"])
            .env("CUDA_ON_CPU_TEST", "1")
            .env("CUDA_ON_CPU_LOG", &log);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both: Vec<_> = (0..2).map(run).collect();
    for process in both {
        expect_good(&process.wait_with_output().unwrap());
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "", "nothing was refused");
}
