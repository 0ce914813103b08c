//! Tests of the CUDA device, if there is one:
//! `cargo test -p runtime --test launches gpu -- --ignored`.

use super::common;
use common::{Mistake, artifact, ir};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::launcher::{SliceArgument, SliceMutArgument};
use kernel_dsl::{Artifact, Declared, Launcher};
use runtime::testing::{Bound, Case, Checker, Expected, Input, PreparedInstance, Random, edges};
use runtime::{Device, Error};
use std::sync::Arc;

fn device() -> Device {
    Device::cuda(0).expect("a GPU")
}

/// Launches saxpy from `artifact` over `n` elements.
fn launch(device: &Device, artifact: &'static Artifact, n: usize) -> Result<Vec<f32>, Error> {
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (x, mut y) = (device.upload(&x)?, device.upload(&vec![1.0f32; n])?);
    let arguments = [kernel_dsl::Argument::scalar(2.0f32), (&x).argument(), (&mut y).argument()];
    // SAFETY: the kernel accesses elements below y.len(), which is x.len() too; each thread writes
    // one element.
    unsafe { device.launch_unchecked(artifact, &[], None, &arguments)? };
    y.download()
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_runs_declared_ptx() {
    for n in edges(256) {
        let expected: Vec<_> = (0..n).map(|i| 2.0 * i as f32 + 1.0).collect();
        assert_eq!(launch(&device(), artifact(), n).unwrap(), expected);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_agrees_with_the_interpreter() {
    let prepared =
        PreparedInstance::from_ir(artifact(), &Instance::default(), &ir(Mistake::None), &ir(Mistake::None)).unwrap();
    let checker = Checker::new(Some(device()));
    let mut random = Random::new(5);
    for n in edges(256) {
        let (x, y) = (random.special_values::<f32>(n), random.special_values::<f32>(n));
        let case = Case::new(format!("n = {n}"), [Input::scalar(0.1f32), Input::slice(&x), Input::slice(&y)]);
        let reference = |_: &[Input]| {
            let y = x.iter().zip(&y).map(|(x, y)| f64::from(0.1f32.mul_add(*x, *y))).collect();
            vec![Expected::new(2, y, Bound::Exact)]
        };
        assert_eq!(checker.case(&prepared, &case, reference), Ok(()), "n = {n}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_memory_round_trips() {
    let device = device();
    let data: Vec<u64> = (0..100_000).collect();
    assert_eq!(device.upload(&data).unwrap().download().unwrap(), data);
    assert_eq!(device.zeros::<i32>(77).unwrap().download().unwrap(), [0; 77]);
    assert_eq!(device.alloc::<f32>(77).unwrap().download().unwrap().len(), 77);
    assert!(device.upload::<u8>(&[]).unwrap().download().unwrap().is_empty());
    assert_eq!(Device::cuda(0).unwrap().upload(&data).unwrap().download().unwrap(), data);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_is_the_best_device() {
    let device = Device::best().unwrap();
    assert!(!device.is_cpu());
    let reason = &device.choice().unwrap().reason;
    assert!(reason.contains("first supported GPU") || reason.contains("emulated device"), "{reason}");
    let findings = runtime::doctor::examine();
    println!("{findings:#?}");
    assert!(findings.devices[0].supported && findings.devices[0].info.as_ref().unwrap().multiprocessors > 0);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_runs_the_checked_form() {
    let device = device();
    for n in edges(256) {
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let (x, mut y) = (device.upload(&x).unwrap(), device.upload(&vec![1.0f32; n]).unwrap());
        let arguments = [kernel_dsl::Argument::scalar(2.0f32), (&x).argument(), (&mut y).argument()];
        device.launch(artifact(), &[], None, &arguments).unwrap();
        let expected: Vec<_> = (0..n).map(|i| 2.0 * i as f32 + 1.0).collect();
        assert_eq!(y.download().unwrap(), expected);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_ordinals_are_limited() {
    let error = Device::cuda(1000).unwrap_err();
    assert!(matches!(error, Error::NoSuchDevice { ordinal: 1000, .. }), "{error}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_memory_is_limited() {
    let error = device().zeros::<u8>(1 << 50).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { free: Some(_), .. }), "{error}");
    println!("{error}");
    // The device stays usable.
    assert!(launch(&device(), artifact(), 4).is_ok());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_invalid_ptx_is_rejected_with_the_drivers_log() {
    let ptx: &str = artifact().instances[0].ptx.replace("fma.rn.f32", "fma.rn.f33").leak();
    let instances = Box::leak(Box::new([Declared { name: "saxpy", constants: &[], ptx }]));
    let broken = Box::leak(Box::new(Artifact { instances, ..*artifact() }));
    let error = launch(&device(), broken, 4).unwrap_err();
    let Error::Load { log, .. } = &error else { panic!("{error}") };
    println!("{error}");
    assert!(log.contains("f33"), "{log}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_serves_threads_concurrently() {
    let device = device();
    std::thread::scope(|s| {
        for n in 1..9 {
            let device = &device;
            s.spawn(move || {
                for round in 0..20 {
                    let y = launch(device, artifact(), n * 1000 + round).unwrap();
                    assert!(y.iter().enumerate().all(|(i, y)| *y == 2.0 * i as f32 + 1.0));
                }
            });
        }
    });
}

/// Checks that work is ordered with a stream of other code, and that adopted memory is used in
/// place.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_work_is_ordered_with_streams_of_other_code() {
    let device = Device::cuda(0).unwrap();
    let (ours, other) = (device.stream().unwrap(), device.stream().unwrap());
    let handle = other.driver_handle().unwrap();
    let memory = device.upload(&[1u32; 1024]).unwrap();
    let address = memory.device_address();
    // SAFETY: the allocation is alive until its owner is dropped. Only this buffer uses it.
    let mut adopted = unsafe { device.adopt::<u32>(address, 1024, Box::new(memory)) }.unwrap();
    // SAFETY: the stream is alive.
    unsafe { ours.wait_for_handle(handle) }.unwrap();
    ours.fill_zero(&mut adopted).unwrap();
    // SAFETY: as above.
    unsafe { ours.hold_handle(handle) }.unwrap();
    other.wait().unwrap();
    assert_eq!(adopted.device_address(), address);
    assert_eq!(adopted.download().unwrap(), [0; 1024]);
    // The driver's default stream.
    // SAFETY: null is that stream.
    unsafe { ours.wait_for_handle(std::ptr::null_mut()) }.unwrap();
    ours.wait().unwrap();
}

/// Checks that recorded launches run with other memory, in the order of another stream, and that
/// only launches without checks are recorded.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_launches_are_recorded_and_run_with_other_memory() {
    const N: usize = 300;
    let device = Device::cuda(0).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let numbers = |first: f32| (0..N).map(|i| first + i as f32).collect::<Vec<_>>();
    let (x, mut y) = (device.upload(&numbers(0.0)).unwrap(), device.upload(&[1.0f32; N]).unwrap());
    let launch = |on: &runtime::Stream, x: &runtime::DeviceBuffer<f32>, y: &mut runtime::DeviceBuffer<f32>, checked| {
        let arguments = [kernel_dsl::Argument::scalar(2.0f32), x.argument(), y.argument()];
        match checked {
            true => on.launch(artifact(), &[], None, &arguments),
            // SAFETY: the kernel accesses elements below y.len(), which is x.len() too; each thread
            // writes one element.
            false => unsafe { on.launch_unchecked(artifact(), &[], None, &arguments) },
        }
    };
    let (done, launches) = stream.record_launches(|on| launch(on, &x, &mut y, false));
    done.unwrap();
    let mut launches = launches.expect("one launch without checks");
    let memory: Vec<_> = launches.memory().iter().map(|m| (m.address, m.bytes, m.writes)).collect();
    let bytes = 4 * N as u64;
    assert_eq!(memory, [(x.device_address(), bytes, false), (y.device_address(), bytes, true)]);
    assert_eq!(y.download().unwrap(), numbers(0.0).iter().map(|x| 2.0 * x + 1.0).collect::<Vec<_>>());

    let (u, v) = (device.upload(&numbers(5.0)).unwrap(), device.upload(&numbers(-7.0)).unwrap());
    for _ in 0..2 {
        // SAFETY: both have the length and the alignment of the recorded buffers, and are alive
        // until the stream has been waited for. No other work uses them.
        unsafe { launches.launch(other.driver_handle().unwrap(), &[u.device_address(), v.device_address()]).unwrap() };
    }
    other.wait().unwrap();
    let expected: Vec<_> = numbers(5.0).iter().zip(numbers(-7.0)).map(|(u, v)| 4.0 * u + v).collect();
    assert_eq!(v.download().unwrap(), expected);

    let shared = Arc::new(device.upload(&numbers(1.0)).unwrap());
    let (done, launches) = stream.record_launches(|on| {
        on.share(&shared)?;
        launch(on, &shared, &mut y, false)
    });
    done.unwrap();
    let mut launches = launches.expect("one launch without checks");
    assert_eq!(launches.memory().iter().map(|m| m.shared).collect::<Vec<_>>(), [true, false]);
    let memory = launches.memory().to_vec();
    launches.keep_shared(&memory[..1]);
    assert_eq!(Arc::strong_count(&shared), 2, "the launches keep the buffer");
    launches.keep_shared(&memory[1..]);
    assert_eq!(Arc::strong_count(&shared), 1);

    let recorded = |work: &mut dyn FnMut(&runtime::Stream) -> Result<(), Error>| {
        let (done, launches) = stream.record_launches(work);
        done.unwrap();
        launches.is_some()
    };
    assert!(!recorded(&mut |on| launch(on, &x, &mut y, true)), "the record of violations belongs to the stream");
    assert!(!recorded(&mut |on| on.fill_zero(&mut y)), "a fill is no launch");
    assert!(!recorded(&mut |on| on.reads(&x.view([N])?)), "memory that no argument shows");
    assert!(recorded(&mut |_| Ok(())));
    let cpu = Device::cpu().stream().unwrap();
    assert!(cpu.record_launches(|_| Ok(())).1.is_none());
}
