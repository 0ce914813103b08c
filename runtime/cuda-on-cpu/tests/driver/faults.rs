//! Tests of the runtime on a failing driver: each call of a whole program fails in turn, with every
//! code.

use super::common::{self, inside};
use cudarc::driver::sys;
use kernels_rs::saxpy;
use runtime::store::Store;
use runtime::{Device, DeviceBuffer, Error, Result, Stream};
use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::time::Duration;

/// The functions that the library exports beside the driver's.
struct Injection {
    fail: unsafe extern "C" fn(*const c_char) -> c_int,
    calls: unsafe extern "C" fn() -> u64,
    objects: unsafe extern "C" fn() -> u64,
}

impl Injection {
    fn new() -> Injection {
        // SAFETY: the library is loaded, and these are the signatures of its functions.
        unsafe {
            let library = sys::culib();
            Injection {
                fail: *library.get(b"cuda_on_cpu_fail\0").unwrap(),
                calls: *library.get(b"cuda_on_cpu_calls\0").unwrap(),
                objects: *library.get(b"cuda_on_cpu_objects\0").unwrap(),
            }
        }
    }

    fn set(&self, fault: Option<&str>) {
        let text = fault.map(|fault| CString::new(fault).unwrap());
        // SAFETY: the pointer is null, or a text that ends with NUL.
        let understood = unsafe { (self.fail)(text.as_ref().map_or(ptr::null(), |text| text.as_ptr())) };
        assert_eq!(understood, 1, "{fault:?}");
    }

    fn calls(&self) -> u64 {
        // SAFETY: the function has no parameters.
        unsafe { (self.calls)() }
    }

    fn objects(&self) -> u64 {
        // SAFETY: the function has no parameters.
        unsafe { (self.objects)() }
    }
}

/// All driver calls that the runtime makes for the program. The test checks their number, so that
/// none is missing.
const CALLS: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyDtoH_v2",
    "cuMemsetD8Async",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuLibraryLoadData",
    "cuLibraryGetKernel",
    "cuKernelGetFunction",
    "cuLibraryUnload",
    "cuLaunchKernel",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemsetD8_v2",
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphAddKernelNode",
    "cuGraphInstantiate_v2",
    "cuGraphExecKernelNodeSetParams",
    "cuGraphExecDestroy",
    "cuGraphLaunch",
];

const CODES: [u32; 3] = [2, 700, 999];
const N: usize = 300;

/// Runs a program that uses every feature, some twice, and whose results are always the same.
fn program(device: &Device) -> Result<Vec<f32>> {
    let numbers: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let (x, mut y) = (device.upload(&numbers)?, device.zeros(N)?);
    saxpy::launch(device, 2.0, &x, &mut y)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let start = first.record()?;
    let mut pinned = device.pinned(N)?;
    pinned.as_mut_slice()?.copy_from_slice(&y.download()?);
    let mut z = device.alloc(N)?;
    first.upload_to(&mut z, &pinned)?;
    saxpy::launch(&second, 1.0, &x, &mut z)?;
    // SAFETY: both buffers have the same number of elements.
    unsafe { saxpy::launch_unchecked(&first, 1.0, &x, &mut z)? };
    let end = first.record()?;
    second.wait_for(&end)?;
    let mut prepared = second.prepare(saxpy::call(3.0, &x, &mut z))?;
    (0..3).try_for_each(|_| prepared.launch())?;
    drop(prepared);
    second.copy(&z, &mut y)?;
    first.fill_zero(&mut z)?;
    second.download_to(&y, &mut pinned)?;
    let mut result = pinned.as_slice()?.to_vec();
    result.extend(replayed(device, &first, &x)?);
    first.wait()?;
    second.wait()?;
    let _ = end.is_complete()?;
    end.duration_since(&start)?;
    drop((z, first, second, start, end, pinned));
    device.trim_memory()?;
    Ok(result)
}

/// Runs the part of the program that uses graphs.
fn replayed(device: &Device, stream: &Stream, x: &DeviceBuffer<f32>) -> Result<Vec<f32>> {
    let recording = device.record();
    let (x, y) = (recording.borrow(x)?, recording.own(device.zeros(N)?)?);
    let checked = recording.add(saxpy::call(1.0, x, y))?;
    // SAFETY: both buffers have the same number of elements.
    unsafe { recording.add_unchecked(saxpy::call(1.0, x, y))? };
    let mut graph = recording.finish()?;
    graph.replay(stream)?;
    graph.update(checked, saxpy::call(2.0, x, y))?;
    graph.replay(stream)?;
    stream.wait()?;
    graph.buffer(y)?.download()
}

fn expected() -> Vec<f32> {
    let times = |a: f32| (0..N).map(move |i| a * i as f32);
    times(13.0).chain(times(5.0)).collect()
}

/// Runs the program twice in succession, so that state left by the first run affects the second.
fn twice() -> Result<Vec<f32>> {
    let device = Device::cuda(0)?;
    program(&device)?;
    program(&device)
}

/// Ends the process if a call hangs.
fn at_most(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("it hangs");
        std::process::abort();
    });
}

#[test]
fn every_call_of_a_program_may_fail() {
    inside!("every_call_of_a_program_may_fail", &[("CUDA_ON_CPU_LOG", "/dev/null")], || {
        at_most(Duration::from_secs(300));
        let injection = Injection::new();
        injection.set(Some("1@1000000000"));
        assert_eq!(twice().unwrap(), expected());
        let calls = injection.calls();
        assert_eq!(injection.objects(), 0);

        let (mut met, mut succeeded) = (0, 0);
        for name in CALLS {
            let count = {
                injection.set(Some(&format!("1@{name}#1000000000")));
                twice().unwrap();
                injection.calls()
            };
            met += count;
            for n in 1..=count {
                // Out of memory, a lost context, and an unknown error.
                for code in CODES {
                    let fault = format!("{code}@{name}#{n}");
                    injection.set(Some(&fault));
                    let result = twice();
                    injection.set(None);
                    match result {
                        Ok(result) => {
                            assert_eq!(result, expected(), "{fault}");
                            succeeded += 1;
                        }
                        Err(error) => look(&error, &fault),
                    }
                    // SAFETY: a thread may have no context; a context that could not be released
                    // has no other user.
                    unsafe {
                        assert_eq!(sys::cuCtxSetCurrent(ptr::null_mut()), sys::CUresult::CUDA_SUCCESS);
                        if *name == "cuDevicePrimaryCtxRelease_v2" {
                            assert_eq!(sys::cuDevicePrimaryCtxReset_v2(0), sys::CUresult::CUDA_SUCCESS);
                            // Repeats the release, which an injected fault made fail.
                            let _ = sys::cuDevicePrimaryCtxRelease_v2(0);
                        }
                    }
                    assert_eq!(injection.objects(), 0, "{fault} leaves objects behind");
                }
            }
        }
        assert_eq!(met, calls, "a call is missing from the list");
        println!("{calls} calls, {} failures, {succeeded} of which did not matter", CODES.len() as u64 * calls);
    });
}

/// Checks that an error names the failed operation and its object.
fn look(error: &Error, fault: &str) {
    let text = error.to_string();
    let code = fault.split('@').next().unwrap();
    let expected = match error {
        Error::Driver(_) | Error::Lost(_) | Error::Load { .. } | Error::Exhausted { .. } => format!("({code})"),
        Error::OutOfMemory { pool: Some(_), .. } => "the pool".to_string(),
        _ => panic!("{fault}: {text}"),
    };
    assert!(text.contains(&expected), "{fault}: {text}");
    let subject = ["CUDA device 0", "the CUDA driver", "cuda:0", "the CUDA devices", "pinned"];
    assert!(subject.iter().any(|subject| text.contains(subject)), "{fault}: {text}");
}

#[test]
fn a_device_stays_usable_or_is_lost() {
    inside!("a_device_stays_usable_or_is_lost", &[("CUDA_ON_CPU_LOG", "/dev/null")], || {
        at_most(Duration::from_secs(300));
        let injection = Injection::new();
        // The only device, which the test keeps open as a long-running job does.
        let mut device = Device::cuda(0).unwrap();
        program(&device).unwrap();
        injection.set(Some("1@1000000000"));
        program(&device).unwrap();
        let calls = injection.calls();
        for n in 1..=calls {
            for code in CODES {
                let fault = format!("{code}@{n}");
                injection.set(Some(&fault));
                let result = program(&device);
                injection.set(None);
                if let Ok(result) = &result {
                    assert_eq!(result, &expected(), "{fault}");
                }
                match device.lost() {
                    None => assert!(code != 700 || result.is_ok(), "{fault}: {result:?}"),
                    Some(loss) => {
                        let said = loss.to_string();
                        assert!(said.contains("is lost") && said.contains(&format!("({code})")), "{fault}: {said}");
                        for later in [
                            device.zeros::<f32>(1).map(|_| ()),
                            device.alloc::<f32>(1).map(|_| ()),
                            device.pinned::<f32>(1).map(|_| ()),
                            device.stream().map(|_| ()),
                        ] {
                            assert_eq!(later.unwrap_err().to_string(), said, "{fault}");
                        }
                        device = Device::cuda(0).unwrap();
                    }
                }
                assert_eq!(program(&device).unwrap(), expected(), "after {fault}");
            }
        }
        drop(device);
        assert_eq!(injection.objects(), 0);
    });
}

#[test]
fn every_allocation_may_fail() {
    inside!("every_allocation_may_fail", &[("CUDA_ON_CPU_LOG", "/dev/null")], || {
        at_most(Duration::from_secs(300));
        let injection = Injection::new();
        let device = Device::cuda(0).unwrap();
        for name in [
            "cuMemAlloc_v2",
            "cuMemHostAlloc",
            "cuStreamCreate",
            "cuEventCreate",
            "cuModuleLoadDataEx",
            "cuGraphCreate",
            "cuGraphAddKernelNode",
            "cuGraphInstantiate_v2",
            "cuGraphExecKernelNodeSetParams",
            "cuGraphLaunch",
        ] {
            device.trim_memory().unwrap();
            // All calls fail, then each call alone, for which a retry may succeed.
            for which in std::iter::once(String::new()).chain((1..20).map(|n| format!("#{n}"))) {
                injection.set(Some(&format!("2@{name}{which}")));
                let result = program(&device);
                injection.set(None);
                match result {
                    Ok(result) => assert_eq!(result, expected()),
                    Err(error) => {
                        assert!(error.to_string().contains("pool: "), "{name}{which}: {error}");
                    }
                }
                assert!(device.lost().is_none());
                assert_eq!(program(&device).unwrap(), expected(), "after {name}{which}");
            }
        }
    });
}

#[test]
fn cached_memory_is_released_for_graphs() {
    inside!("cached_memory_is_released_for_graphs", &[("CUDA_ON_CPU_LOG", "/dev/null")], || {
        let injection = Injection::new();
        let device = Device::cuda(0).unwrap();
        for name in ["cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiate_v2", "cuGraphLaunch"] {
            // Leaves memory in the pool to be released.
            drop(device.zeros::<f32>(1 << 20).unwrap());
            injection.set(Some(&format!("2@{name}#1")));
            let result = program(&device);
            injection.set(None);
            assert_eq!(result.unwrap(), expected(), "{name}");
        }
    });
}

#[test]
fn with_cpu_fallback_continues_on_the_cpu() {
    let name = "with_cpu_fallback_continues_on_the_cpu";
    let printed = inside!(name, &[("CUDA_ON_CPU_LOG", "/dev/null")], || {
        let injection = Injection::new();
        let attempt = |device: &Device, fault: Option<&str>| {
            injection.set(fault);
            let mut on_cpu = Vec::new();
            let result = device.with_cpu_fallback(|device| {
                on_cpu.push(device.is_cpu());
                program(device)
            });
            injection.set(None);
            (result, on_cpu)
        };
        for fault in ["700@cuLaunchKernel#2", "999@cuStreamSynchronize#1", "700@cuGraphLaunch#2"] {
            let device = Device::cuda(0).unwrap();
            let (result, on_cpu) = attempt(&device, None);
            assert_eq!((result.unwrap(), on_cpu), (expected(), vec![false]));
            let (result, on_cpu) = attempt(&device, Some(fault));
            assert_eq!((result.unwrap(), on_cpu), (expected(), vec![false, true]), "{fault}");
            // Without the fallback the caller gets the error, and a retry does not return to the
            // GPU by itself.
            assert!(matches!(program(&device), Err(Error::Lost(_))));
            let (result, on_cpu) = attempt(&device, None);
            assert_eq!((result.unwrap(), on_cpu), (expected(), vec![false, true]), "{fault}");
        }
        // Other errors do not trigger the fallback.
        let device = Device::cuda(0).unwrap();
        let (result, on_cpu) = attempt(&device, Some("2@cuMemAlloc_v2"));
        assert!(matches!(result, Err(Error::OutOfMemory { .. })), "{result:?}");
        assert_eq!(on_cpu, [false]);
        // The loss of another device does not trigger the fallback either, and buffers of the lost
        // device do not move to the CPU.
        injection.set(Some("700@cuLaunchKernel#1"));
        let (x, mut y) = (device.upload(&[1.0f32; N]).unwrap(), device.zeros(N).unwrap());
        let (cpu, mut times) = (Device::cpu(), 0);
        let result = cpu.with_cpu_fallback(|_| {
            times += 1;
            saxpy::launch(&device, 1.0, &x, &mut y)
        });
        injection.set(None);
        assert!(matches!(result, Err(Error::Lost(_))), "{result:?}");
        assert_eq!(times, 1);
        let refused = device.with_cpu_fallback(|device| saxpy::launch(device, 1.0, &x, &mut y)).unwrap_err();
        assert!(refused.to_string().contains("its memory belongs to another device"), "{refused}");
    });
    if let Some(printed) = printed {
        let said = printed.matches("kernel-dsl: work restarts on cpu (interpreter): cuda:0 (").count();
        assert_eq!(said, 7, "{printed}");
    }
}

/// Returns an empty folder for a store.
fn store(name: &str) -> std::path::PathBuf {
    let folder = common::folder(name);
    std::fs::remove_dir_all(&folder).unwrap();
    folder
}

#[test]
fn kernels_compiled_at_run_time_are_cached() {
    let folder = store("kept");
    let settings = [("KERNELS_CACHE", folder.to_str().unwrap()), ("CUDA_ON_CPU_LOG", "/dev/null")];
    inside!("kernels_compiled_at_run_time_are_cached", &settings, || {
        let store = Store::of_environment().unwrap();
        let files = || {
            let files = std::fs::read_dir(store.folder()).unwrap().map(|file| file.unwrap().path());
            files.map(|path| (std::fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
        };
        assert_eq!(twice().unwrap(), expected());
        let kept = files();
        assert_eq!((store.usage().unwrap().entries, kept.len()), (1, 1), "the checked form; the bare one is declared");
        assert_eq!(twice().unwrap(), expected());
        assert_eq!(files(), kept);
        // A damaged file is rebuilt.
        for (bytes, path) in &kept {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }
        assert_eq!(twice().unwrap(), expected());
        assert_eq!(files(), kept);
    });
}

#[test]
fn a_context_lost_by_other_code_is_not_used() {
    inside!("a_context_lost_by_other_code_is_not_used", &[("CUDA_ON_CPU_LOG", "/dev/null")], || {
        let context = cudarc::driver::CudaContext::new(0).unwrap();
        let module = context.load_module(cudarc::nvrtc::Ptx::from_src(common::PTX)).unwrap();
        let stop = module.load_function("stop").unwrap();
        let stream = context.default_stream();
        // SAFETY: the kernel has no parameters, and traps.
        unsafe {
            let _ = stream.launch_builder(&stop).launch(cudarc::driver::LaunchConfig::for_num_elems(1));
        }
        assert!(stream.synchronize().is_err());
        let device = Device::cuda(0).unwrap();
        assert_eq!(program(&device).unwrap(), expected());
        drop(device);
        assert!(stream.synchronize().is_err());
    });
}
