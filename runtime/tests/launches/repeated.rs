//! Measured launches run on the inputs of their case each time.

use kernel_dsl::Kernel;
use kernel_dsl::prelude::*;
use runtime::testing::{self, FormTimes, Input, RepeatedLaunch};
use runtime::{Device, Error};
use std::time::Duration;

/// A kernel that takes a ticket, as look-back does. On its own result the assertion fails; another
/// such kernel would wait forever.
#[kernel(block = 32, grid = 2, assertions)]
#[requires(tickets.len() == 1, x.len() == 64, y.len() == 64)]
fn takes_tickets(x: &[f32], tickets: &mut [u32], y: &mut [f32]) {
    let mut taken = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        taken[0] = tickets.fetch_add(0, 1);
    }
    block::sync();
    assert!(taken[0] < 2, "ticket {}", taken[0]);
    let i = taken[0] as usize * 32 + thread::x();
    y[i] = x[i] + 1.0;
}

#[kernel(block = 32, grid = 2)]
#[requires(x.len() == 64, y.len() == 64)]
fn only_writes(x: &[f32], y: &mut [f32]) {
    y[grid::index()] = x[grid::index()];
}

fn inputs() -> Vec<Input> {
    vec![Input::slice(&[0.5f32; 64]), Input::slice(&[0u32]), Input::slice(&[0.0f32; 64])]
}

fn measure(device: &Device) -> runtime::Result<FormTimes> {
    let (artifact, declared) = (takes_tickets::ARTIFACT, &takes_tickets::ARTIFACT.instances[0]);
    FormTimes::measure(device, artifact, declared, &inputs().into(), 4, Duration::from_millis(20))
}

/// Launches the kernel unchecked `launches` times.
fn repeat<K: Kernel>(
    device: &Device,
    inputs: Vec<Input>,
    launches: usize,
    restore: bool,
) -> runtime::Result<Option<u32>> {
    let stream = device.stream()?;
    let mut in_a_row = None;
    testing::prepared(&stream, K::ARTIFACT, K::CONSTANTS, &inputs.into(), |launch: &mut RepeatedLaunch<'_>| {
        in_a_row = launch.max_launches_in_a_row();
        for _ in 0..launches {
            if restore {
                launch.restore()?;
            }
            launch.launch()?;
        }
        stream.wait()
    })?;
    Ok(in_a_row)
}

fn each_launch_finds_the_inputs(device: &Device) {
    for restore in [false, true] {
        let in_a_row = repeat::<takes_tickets>(device, inputs(), 120, restore).unwrap();
        assert!(in_a_row.is_some_and(|n| (2..120).contains(&n)), "{in_a_row:?}");
    }
    let [x, _, y] = inputs().try_into().unwrap();
    assert_eq!(repeat::<only_writes>(device, vec![x, y], 120, false).unwrap(), None);
    let times = measure(device).unwrap();
    assert!(times.unchecked.len() >= 3 && times.checked.len() == times.unchecked.len());
}

#[test]
fn each_launch_finds_the_inputs_on_the_cpu() {
    each_launch_finds_the_inputs(&Device::cpu());
}

#[test]
fn a_kernel_that_fails_on_its_inputs_is_reported() {
    let mut inputs = inputs();
    inputs[1] = Input::slice(&[1u32]);
    let failed = repeat::<takes_tickets>(&Device::cpu(), inputs, 1, true).unwrap_err();
    assert!(matches!(failed, Error::Violation(_)), "{failed}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_each_launch_finds_the_inputs() {
    each_launch_finds_the_inputs(&Device::cuda(0).unwrap());
}
