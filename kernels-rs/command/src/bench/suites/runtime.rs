//! Benchmarks of the runtime's overhead over direct driver calls.

use super::cublas::{Cublas, Product};
use super::driver::DriverBaseline;
use super::{Contender, Measurement, Trial, measure_all};
use crate::error::Error;
use ::runtime::Device;
use ::runtime::store::Store;
use kernel_dsl::Element;
use kernels_rs::gemm::Gemm;
use kernels_rs::saxpy;
use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// Number of successive launches, less than a driver's queue holds, so that none waits for the
/// device.
const LAUNCHES: u32 = 200;

/// Maximum number of measured loads: each needs its own context.
const LOADS: usize = 10;

pub(super) fn measure(rounds: usize) -> Result<Vec<Measurement>, Error> {
    // Loads are measured first: each needs a new context, and none exists yet.
    let mut loaded = loads(rounds.min(LOADS))?;
    let device = Device::cuda(0).map_err(Error::Device)?;
    let driver = DriverBaseline::new(saxpy::PTX, "saxpy")?;
    let mut measured = launches(&device, &driver, rounds)?;
    measured.extend(graphs(&device, &driver, rounds)?);
    measured.extend(allocations(&device, &driver, rounds)?);
    measured.append(&mut loaded);
    Ok(measured)
}

/// Returns the mean time of one of `count` calls.
fn mean_call_time(count: u32, mut call: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    let start = Instant::now();
    (0..count).try_for_each(|_| call())?;
    Ok(start.elapsed() / count)
}

/// Measures the preparation of a kernel's first launch. The driver may use its own cache
/// (CUDA_CACHE_DISABLE=1 disables it). The checked form is made at run time: with the disk cache of
/// this crate, and without it.
fn loads(rounds: usize) -> Result<Vec<Measurement>, Error> {
    let folder = std::env::temp_dir().join(format!("kernels-bench-{}", std::process::id()));
    let store = Store::new(&folder, 64 << 20);
    let load = |store: Option<&Store>, is_checked: bool| {
        let device = Device::cuda(0)?;
        device.set_store(store.cloned());
        let (stream, x, mut y) = (device.stream()?, device.upload(&[1f32; 256])?, device.upload(&[1f32; 256])?);
        let call = saxpy::call(2.0, &x, &mut y);
        let start = Instant::now();
        // SAFETY: the kernel accesses only elements within bounds.
        let ready = if is_checked { stream.prepare(call)? } else { unsafe { stream.prepare_unchecked(call)? } };
        let time = start.elapsed();
        drop(ready);
        Ok(time)
    };
    let contender = |name, store: Option<&'_ Store>, is_checked| {
        let (store, load) = (store.cloned(), &load);
        Contender::new(name, move || load(store.as_ref(), is_checked).map_err(Error::Device))
    };
    let trial = |kernel, contenders| Trial {
        kernel,
        shape: "saxpy, module compiled and loaded".into(),
        rate: None,
        contenders,
        after: Box::new(|| ()),
    };
    let checked = vec![contender("ours", Some(&store), true), contender("without our cache", None, true)];
    let trials = vec![trial("load", vec![contender("ours", None, false)]), trial("load of the checked form", checked)];
    let measured = measure_all(trials, rounds);
    // A failure is ignored: the folder is a temporary one.
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

fn launches(device: &Device, driver: &DriverBaseline, rounds: usize) -> Result<Vec<Measurement>, Error> {
    let stream = device.stream().map_err(Error::Device)?;
    let x = device.upload(&[1f32; 256]).map_err(Error::Device)?;
    let buffer = || device.upload(&[1f32; 256]).map_err(Error::Device);
    let (mut bare, mut checked, mut typed, mut theirs) = (buffer()?, buffer()?, buffer()?, buffer()?);
    // The kernel parameters contain the address of a buffer.
    let address = |buffer: &::runtime::DeviceBuffer<f32>| buffer.device_address();
    let (x_address, y_address) = (address(&x), address(&theirs));
    let _keep = &mut theirs;

    // SAFETY: the kernel accesses only elements within bounds.
    let mut bare = unsafe { stream.prepare_unchecked(saxpy::call(2.0, &x, &mut bare)) }.map_err(Error::Device)?;
    let mut checked = stream.prepare(saxpy::call(2.0, &x, &mut checked)).map_err(Error::Device)?;
    let launch_by_driver = || {
        let mut parameters = Saxpy { a: 2.0, x: x_address, y: y_address, n: 256 };
        let mut pointers = parameters.pointers();
        // SAFETY: saxpy takes a number, an address and a length, twice; the buffers outlive the
        // rounds.
        mean_call_time(LAUNCHES, || unsafe { driver.launch(&mut pointers) })
    };
    // The smallest product without a special case measures the library's host work and its launch.
    let cublas = Cublas::open(&stream)?;
    let shape = [16; 3];
    let matrices = [buffer()?, buffer()?, buffer()?];
    let product = Product { shape, transpose_b: false, at: [0, 1, 2].map(|i| matrices[i].device_address()) };
    let wait = || {
        let _ = stream.wait();
        let _ = driver.wait();
    };
    let trial = |kernel, shape: &str, ours| {
        let mut contenders = vec![ours, Contender::new("cuLaunchKernel", launch_by_driver)];
        if let Some(cublas) = &cublas {
            // SAFETY: each matrix has 256 elements and outlives the rounds; no other work uses the
            // matrices.
            let launch = || mean_call_time(LAUNCHES, || unsafe { cublas.queue(&product) });
            contenders.push(Contender::new("cublasSgemm", launch));
        }
        Trial { kernel, shape: shape.into(), rate: None, contenders, after: Box::new(wait) }
    };
    let device_error = |launched: ::runtime::Result<()>| launched.map_err(Error::Device);
    let (a, b, mut c) = (buffer()?, buffer()?, buffer()?);
    let mut multiply = || {
        let (a, b) = (a.view([1, 16, 16])?, b.view([1, 16, 16])?);
        Gemm::new().run(&stream, &a, &b, &mut c.view_mut([1, 16, 16])?)
    };
    let of_saxpy = "saxpy, 256 elements, host time of a launch";
    let trials = vec![
        trial(
            "prepared launch",
            of_saxpy,
            Contender::new("ours", || mean_call_time(LAUNCHES, || device_error(bare.launch()))),
        ),
        trial(
            "prepared checked launch",
            of_saxpy,
            Contender::new("ours", || mean_call_time(LAUNCHES, || device_error(checked.launch()))),
        ),
        trial(
            "Gemm::run",
            "16 × 16 × 16, host time of a call",
            Contender::new("ours", || mean_call_time(LAUNCHES, || device_error(multiply()))),
        ),
        trial(
            "launch",
            of_saxpy,
            Contender::new("ours", || {
                mean_call_time(LAUNCHES, || {
                    // SAFETY: as above.
                    device_error(unsafe { saxpy::launch_unchecked(&stream, 2.0, &x, &mut typed) })
                })
            }),
        ),
    ];
    measure_all(trials, rounds)
}

/// Measures dependent launches, as in the layers of a model: the time of each, from the first
/// submission to the completion of all.
fn graphs(device: &Device, driver: &DriverBaseline, rounds: usize) -> Result<Vec<Measurement>, Error> {
    const NODES: u32 = 100;
    const REPLAYS: u32 = 20;
    let stream = device.stream().map_err(Error::Device)?;
    let x = device.upload(&[1f32; 256]).map_err(Error::Device)?;
    let theirs = device.upload(&[1f32; 256]).map_err(Error::Device)?;
    let (x_address, y_address) = (x.device_address(), theirs.device_address());
    let recorded = |checked: bool| {
        let recording = device.record();
        let (x, y) = (recording.borrow(&x)?, recording.own(device.upload(&[1f32; 256])?)?);
        for _ in 0..NODES {
            match checked {
                true => saxpy::launch(&recording, 2.0, x, y)?,
                // SAFETY: the kernel accesses only elements within bounds.
                false => unsafe { saxpy::launch_unchecked(&recording, 2.0, x, y)? },
            }
        }
        recording.finish()
    };
    let (mut bare, mut checked) = (recorded(false).map_err(Error::Device)?, recorded(true).map_err(Error::Device)?);
    let replayed = |graph: &mut ::runtime::Graph<'_>| {
        let start = Instant::now();
        for _ in 0..REPLAYS {
            graph.replay(&stream).map_err(Error::Device)?;
        }
        stream.wait().map_err(Error::Device)?;
        Ok(start.elapsed() / (REPLAYS * NODES))
    };
    let mut parameters = Saxpy { a: 2.0, x: x_address, y: y_address, n: 256 };
    let mut launch = move || {
        // SAFETY: saxpy takes a number, an address and a length, twice; the buffers outlive the
        // rounds.
        unsafe { driver.launch(&mut parameters.pointers()) }
    };
    let captured = driver.capture(|| (0..NODES).try_for_each(|_| launch()))?;
    let shape = || "saxpy, 256 elements, each after the one before; of one until all are over".to_string();
    let launched = || {
        let start = Instant::now();
        (0..REPLAYS * NODES).try_for_each(|_| launch())?;
        driver.wait()?;
        Ok(start.elapsed() / (REPLAYS * NODES))
    };
    let by_driver = || {
        let start = Instant::now();
        (0..REPLAYS).try_for_each(|_| driver.replay(&captured))?;
        driver.wait()?;
        Ok(start.elapsed() / (REPLAYS * NODES))
    };
    let trials = vec![
        Trial {
            kernel: "graph of 100 launches",
            shape: shape(),
            rate: None,
            contenders: vec![
                Contender::new("ours", || replayed(&mut bare)),
                Contender::new("cuGraphLaunch, captured", by_driver),
                Contender::new("cuLaunchKernel", launched),
            ],
            after: Box::new(|| ()),
        },
        Trial {
            kernel: "graph of 100 checked launches",
            shape: shape(),
            rate: None,
            contenders: vec![Contender::new("ours", || replayed(&mut checked))],
            after: Box::new(|| ()),
        },
    ];
    measure_all(trials, rounds)
}

/// Parameters of saxpy.
struct Saxpy {
    a: f32,
    x: u64,
    y: u64,
    n: u32,
}

impl Saxpy {
    fn pointers(&mut self) -> [*mut c_void; 5] {
        let n = ptr::from_mut(&mut self.n).cast();
        [ptr::from_mut(&mut self.a).cast(), ptr::from_mut(&mut self.x).cast(), n, ptr::from_mut(&mut self.y).cast(), n]
    }
}

fn allocations(device: &Device, driver: &DriverBaseline, rounds: usize) -> Result<Vec<Measurement>, Error> {
    const COUNT: u32 = 1000;
    let trial = Trial {
        kernel: "allocate and free",
        shape: "1 MiB".into(),
        rate: None,
        contenders: vec![
            Contender::new("ours", || {
                mean_call_time(COUNT, || {
                    device.alloc::<u8>(MIB / u8::TYPE.bytes() as usize).map(drop).map_err(Error::Device)
                })
            }),
            Contender::new("cuMemAlloc", || mean_call_time(COUNT / 50, || driver.allocate(MIB))),
            Contender::new("cuMemAllocAsync", || mean_call_time(COUNT / 10, || driver.allocate_in_order(MIB))),
        ],
        after: Box::new(|| _ = driver.wait()),
    };
    measure_all(vec![trial], rounds)
}
