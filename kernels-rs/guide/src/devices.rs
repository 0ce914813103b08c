#![doc = include_str!(concat!(env!("OUT_DIR"), "/12_devices.md"))]

pub use crate::memory::gather;
use kernel_dsl::prelude::*;
use runtime::Device;

/// Multiplies each element of x by a.
#[kernel(block = 256, grid = x.len().div_ceil(256))]
pub fn scale(a: f32, x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = a * x[i];
    }
}

/// Enqueues ten launches on a stream, and waits once.
pub fn stream() -> runtime::Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let mut x = stream.upload(&[1.0f32; 5])?;
    let mut step = stream.prepare(scale::call(2.0, &mut x))?;
    for _ in 0..10 {
        step.launch()?;
    }
    drop(step);
    stream.wait()?;
    println!("{:?}", x.download()?);
    Ok(())
}

/// Records a graph of two launches, replays it, and changes an argument.
pub fn graph() -> runtime::Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let recording = device.record();
    let x = recording.own(device.upload(&[1.0f32; 5])?)?;
    let step = recording.add(scale::call(2.0, x))?;
    scale::launch(&recording, 10.0, x)?;
    let mut graph = recording.finish()?;
    graph.replay(&stream)?;
    graph.update(step, scale::call(3.0, x))?;
    graph.replay(&stream)?;
    let result = graph.buffer(x)?.download()?;
    println!("{result:?}");
    Ok(())
}

/// Passes buffers whose lengths do not fit together.
pub fn rejected() -> runtime::Result<()> {
    let device = Device::cpu();
    let (x, mut y) = (device.upload(&[1.0f32; 5])?, device.zeros::<f32>(6)?);
    if let Err(error) = gather::<1>::launch(&device, &x, &mut y) {
        println!("{error}");
    }
    Ok(())
}
