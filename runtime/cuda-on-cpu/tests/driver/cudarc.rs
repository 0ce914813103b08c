//! Tests of cudarc's safe API, unmodified, with the library as its driver.

use super::common::{PTX, inside};
use cudarc::driver::sys::{CUevent_flags, CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;

fn module(context: &Arc<CudaContext>) -> Arc<CudaModule> {
    context.load_module(Ptx::from_src(PTX)).unwrap()
}

fn function(context: &Arc<CudaContext>, name: &str) -> CudaFunction {
    module(context).load_function(name).unwrap()
}

fn saxpy(f: &CudaFunction, x: &CudaSlice<f32>, y: &mut CudaSlice<f32>) {
    let stream = y.stream().clone();
    let (a, n) = (2.0f32, x.len() as u32);
    let mut launch = stream.launch_builder(f);
    launch.arg(&a).arg(x).arg(y).arg(&n);
    // SAFETY: the parameters are those of `saxpy`, and both arrays have n elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }.unwrap();
}

#[test]
fn device_attributes_follow_the_settings() {
    let settings = [("CUDA_ON_CPU_CAPABILITY", "8.6"), ("CUDA_ON_CPU_MEMORY", "1G")];
    inside!("device_attributes_follow_the_settings", &settings, || {
        let context = CudaContext::new(0).unwrap();
        assert_eq!(CudaContext::device_count().unwrap(), 1);
        assert!(context.name().unwrap().contains("PTX interpreter"));
        assert_eq!(context.compute_capability().unwrap(), (8, 6));
        assert_eq!(context.total_mem().unwrap(), 1 << 30);
        let before = context.mem_get_info().unwrap().0;
        let held = context.default_stream().alloc_zeros::<u8>(1 << 20).unwrap();
        assert_eq!(context.mem_get_info().unwrap().0, before - (1 << 20));
        drop(held);
        context.synchronize().unwrap();
        assert_eq!(context.mem_get_info().unwrap(), (before, 1 << 30));
        assert!(CudaContext::new(1).is_err());
    });
}

#[test]
fn memory_is_copied_and_kernels_run() {
    inside!("memory_is_copied_and_kernels_run", &[], || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let f = function(&context, "saxpy");
        for n in [1, 31, 32, 33, 1000, 4097] {
            let (x, y): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32, (3 * i) as f32)).unzip();
            let (dx, mut dy) = (stream.clone_htod(&x).unwrap(), stream.clone_htod(&y).unwrap());
            saxpy(&f, &dx, &mut dy);
            let expected: Vec<f32> = (0..n).map(|i| (5 * i) as f32).collect();
            assert_eq!(stream.clone_dtoh(&dy).unwrap(), expected);
            assert_eq!(stream.clone_dtoh(&dx).unwrap(), x);
            let copy = stream.clone_dtod(&dy).unwrap();
            stream.memset_zeros(&mut dy).unwrap();
            assert_eq!(stream.clone_dtoh(&copy).unwrap(), expected);
            assert!(stream.clone_dtoh(&dy).unwrap().iter().all(|y| *y == 0.0));
            assert_eq!(stream.clone_dtoh(&copy.slice(n / 2..)).unwrap(), expected[n / 2..]);
        }
    });
}

#[test]
fn streams_wait_for_each_other() {
    inside!("streams_wait_for_each_other", &[], || {
        let context = CudaContext::new(0).unwrap();
        let f = function(&context, "saxpy");
        let first = context.new_stream().unwrap();
        let x = first.clone_htod(&vec![1.0f32; 500]).unwrap();
        let mut y = first.alloc_zeros::<f32>(500).unwrap();
        let second = first.fork().unwrap();
        for i in 0..20 {
            let stream = if i % 2 == 0 { &first } else { &second };
            let (a, n) = (1.0f32, 500u32);
            let mut launch = stream.launch_builder(&f);
            launch.arg(&a).arg(&x).arg(&mut y).arg(&n);
            // SAFETY: the parameters are those of `saxpy`.
            unsafe { launch.launch(LaunchConfig::for_num_elems(n)) }.unwrap();
        }
        second.join(&first).unwrap();
        assert!(second.clone_dtoh(&y).unwrap().iter().all(|y| *y == 20.0));
    });
}

#[test]
fn events_have_times() {
    inside!("events_have_times", &[], || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let start = stream.record_event(flags).unwrap();
        let f = function(&context, "saxpy");
        let x = stream.clone_htod(&vec![1.0f32; 100_000]).unwrap();
        let mut y = stream.clone_htod(&vec![1.0f32; 100_000]).unwrap();
        saxpy(&f, &x, &mut y);
        let end = stream.record_event(flags).unwrap();
        end.synchronize().unwrap();
        assert!(start.is_complete() && end.is_complete());
        let passed = start.elapsed_ms(&end).unwrap();
        assert!(passed > 0.0 && start.elapsed_ms(&start).unwrap() == 0.0 && end.elapsed_ms(&start).unwrap() == -passed);
        let timeless = stream.record_event(None).unwrap();
        assert_eq!(timeless.elapsed_ms(&end).unwrap_err().0, CUresult::CUDA_ERROR_INVALID_HANDLE);
    });
}

#[test]
fn graphs_are_captured_and_run_again() {
    inside!("graphs_are_captured_and_run_again", &[], || {
        let context = CudaContext::new(0).unwrap();
        // SAFETY: only one stream uses the memory.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().unwrap();
        let f = function(&context, "saxpy");
        let x = stream.clone_htod(&vec![1.0f32; 100]).unwrap();
        let mut y = stream.clone_htod(&vec![0.0f32; 100]).unwrap();
        let mut copy = stream.alloc_zeros::<f32>(100).unwrap();
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL).unwrap();
        saxpy(&f, &x, &mut y);
        saxpy(&f, &x, &mut y);
        stream.memcpy_dtod(&y, &mut copy).unwrap();
        let graph = stream.end_capture(CUgraphInstantiate_flags(0)).unwrap().unwrap();
        assert!(stream.clone_dtoh(&copy).unwrap().iter().all(|y| *y == 0.0), "a capture runs nothing");
        graph.upload().unwrap();
        for round in 1..=5 {
            graph.launch().unwrap();
            assert!(stream.clone_dtoh(&copy).unwrap().iter().all(|y| *y == 4.0 * round as f32));
        }
    });
}

#[test]
fn module_variables_keep_their_values() {
    inside!("module_variables_keep_their_values", &[], || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let module = module(&context);
        let f = module.load_function("count").unwrap();
        let counter = |expected: u32| {
            let bytes = module.get_global("counter", &stream).unwrap();
            assert_eq!(stream.clone_dtoh(&bytes.as_view()).unwrap(), expected.to_le_bytes());
        };
        let shape = LaunchConfig { grid_dim: (2, 1, 1), block_dim: (50, 1, 1), shared_mem_bytes: 0 };
        counter(7);
        // SAFETY: the kernel has no parameters.
        unsafe { stream.launch_builder(&f).launch(shape) }.unwrap();
        counter(7 + 100 * 3);
        stream.memcpy_htod(&10.0f32.to_le_bytes(), &mut module.get_global("factor", &stream).unwrap()).unwrap();
        // SAFETY: as above.
        unsafe { stream.launch_builder(&f).launch(shape) }.unwrap();
        counter(7 + 100 * 13);
        // Each module has separate variables.
        let other = context.load_module(Ptx::from_src(PTX)).unwrap();
        let bytes = other.get_global("counter", &stream).unwrap();
        assert_eq!(stream.clone_dtoh(&bytes.as_view()).unwrap(), 7u32.to_le_bytes());
        assert!(module.get_global("nothing", &stream).is_err());
    });
}

#[test]
fn function_attributes_and_occupancy_are_correct() {
    inside!("function_attributes_and_occupancy_are_correct", &[], || {
        let context = CudaContext::new(0).unwrap();
        let module = module(&context);
        let (sum, small) = (module.load_function("sum").unwrap(), module.load_function("small").unwrap());
        assert_eq!(small.max_threads_per_block().unwrap(), 64);
        assert_eq!(sum.max_threads_per_block().unwrap(), 1024);
        assert_eq!((sum.ptx_version().unwrap(), sum.binary_version().unwrap()), (60, 61));
        // The limits of sm_61: 64 warps, 32 blocks, 96 KiB.
        let blocks = |f: &CudaFunction, threads, shared| {
            f.occupancy_max_active_blocks_per_multiprocessor(threads, shared, None).unwrap()
        };
        assert_eq!((blocks(&sum, 256, 0), blocks(&sum, 32, 0), blocks(&sum, 128, 48 << 10)), (8, 32, 2));
        assert_eq!((blocks(&small, 65, 0), blocks(&sum, 32, 49 << 10)), (0, 0));
        extern "C" fn shared(_: std::ffi::c_int) -> usize {
            0
        }
        assert_eq!(small.occupancy_max_potential_block_size(shared, 0, 0, None).unwrap(), (64, 64));
        let stream = context.default_stream();
        let mut out = stream.alloc_zeros::<u32>(3).unwrap();
        let mut launch = stream.launch_builder(&sum);
        launch.arg(&mut out);
        let shape = LaunchConfig { grid_dim: (3, 1, 1), block_dim: (100, 1, 1), shared_mem_bytes: 400 };
        // SAFETY: the kernel stores one number per block.
        unsafe { launch.launch(shape) }.unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), [4950; 3]);
        assert!(module.load_function("none").is_err());
    });
}

#[test]
fn a_lost_context_leaves_others_usable() {
    inside!("a_lost_context_leaves_others_usable", &[], || {
        let lost = CudaContext::new_non_primary(0, 0).unwrap();
        let stream = lost.default_stream();
        let f = function(&lost, "store");
        let mut launch = stream.launch_builder(&f);
        let (at, value) = (64u64, 1u32);
        launch.arg(&at).arg(&value);
        // SAFETY: the fault is intended, and the emulator stops it.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.unwrap();
        assert_eq!(stream.synchronize().unwrap_err().0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(lost.mem_get_info().unwrap_err().0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        let good = CudaContext::new(0).unwrap();
        let stream = good.default_stream();
        assert_eq!(stream.clone_dtoh(&stream.clone_htod(&[1, 2, 3]).unwrap()).unwrap(), [1, 2, 3]);
    });
}

#[test]
fn host_and_device_share_pinned_and_managed_memory() {
    inside!("host_and_device_share_pinned_and_managed_memory", &[], || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let f = function(&context, "store");
        // SAFETY: the memory is written before it is read.
        let mut pinned = unsafe { context.alloc_pinned::<u32>(16) }.unwrap();
        pinned.as_mut_slice().unwrap().fill(3);
        let device = stream.clone_htod(&pinned).unwrap();
        assert_eq!(stream.clone_dtoh(&device).unwrap(), [3; 16]);
        let (at, value) = (pinned.as_ptr().unwrap() as u64 + 8, 9u32);
        let mut launch = stream.launch_builder(&f);
        launch.arg(&at).arg(&value);
        // SAFETY: the kernel writes inside the pinned memory.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(pinned.as_slice().unwrap()[1..4], [3, 9, 3]);
        // SAFETY: the memory is written before it is read.
        let mut managed = unsafe { context.alloc_unified::<u32>(4, true) }.unwrap();
        managed.as_mut_slice().unwrap().copy_from_slice(&[1, 2, 3, 4]);
        let mut launch = stream.launch_builder(&f);
        let value = 77u32;
        launch.arg(&mut managed).arg(&value);
        // SAFETY: the kernel writes inside the managed memory.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.unwrap();
        stream.synchronize().unwrap();
        assert_eq!(managed.as_slice().unwrap(), [77, 2, 3, 4]);
    });
}

#[test]
fn the_program_writes_pinned_memory_during_a_launch() {
    inside!("the_program_writes_pinned_memory_during_a_launch", &[], || {
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let f = function(&context, "saxpy");
        let x = stream.clone_htod(&vec![1.0f32; 200_000]).unwrap();
        let mut y = stream.clone_htod(&vec![0.0f32; 200_000]).unwrap();
        // SAFETY: the memory is written before it is read.
        let mut pinned = unsafe { context.alloc_pinned::<u32>(1) }.unwrap();
        let mut written = 0;
        for launch in 1..=20 {
            saxpy(&f, &x, &mut y);
            let end = stream.record_event(None).unwrap();
            // The kernel does not use the pinned memory.
            while !end.is_complete() {
                written += 1;
                pinned.as_mut_slice().unwrap()[0] = written;
            }
            assert_eq!(pinned.as_slice().unwrap()[0], written, "launch {launch}");
        }
        assert!(stream.clone_dtoh(&y).unwrap().iter().all(|y| *y == 40.0));
    });
}

#[test]
fn a_stream_is_complete_after_the_events_that_it_waits_for() {
    inside!("a_stream_is_complete_after_the_events_that_it_waits_for", &[], || {
        let context = CudaContext::new(0).unwrap();
        let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let f = function(&context, "saxpy");
        let x = first.clone_htod(&vec![1.0f32; 200_000]).unwrap();
        let mut y = first.clone_htod(&vec![0.0f32; 200_000]).unwrap();
        for _ in 0..10 {
            saxpy(&f, &x, &mut y);
            let end = first.record_event(None).unwrap();
            second.wait(&end).unwrap();
            second.synchronize().unwrap();
            assert!(end.is_complete());
        }
    });
}
