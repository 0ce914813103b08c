//! Devices that are lost.

use super::{alone, elsewhere, far_beyond, is_gpu, next};
use runtime::{Cause, Device, Error, Result};

const N: usize = 1000;

/// NVIDIA's driver does not, of some faults, for as long as the process lives: that is an error that says so.
fn opens_anew_where_the_driver_lets_it() {
    match Device::cuda(0) {
        Ok(device) => works(&device),
        Err(why) => assert!(is_gpu() && why.to_string().contains("the process has to end"), "{why}"),
    }
}

fn works(device: &Device) {
    let x: Vec<u32> = (0..N as u32).collect();
    let (dx, mut dy) = (device.upload(&x).unwrap(), device.zeros(N).unwrap());
    next::launch(device, &dx, &mut dy).unwrap();
    assert_eq!(dy.download().unwrap(), (1..=N as u32).collect::<Vec<_>>());
    let stream = device.stream().unwrap();
    next::launch(&stream, &dx, &mut dy).unwrap();
    stream.wait().unwrap();
}

/// All that there is of a device is lost with it, says so and why, and can be dropped; another context works beside it.
fn is_lost_by(code: u32, kernel: &str, fail: impl FnOnce(&Device) -> Result<()>) {
    let device = Device::cuda(0).unwrap();
    works(&device);
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let x = device.upload(&[7u32; N]).unwrap();
    let mut y = device.zeros(N).unwrap();
    let mut pinned = device.pinned::<u32>(N).unwrap();
    pinned.as_mut_slice().unwrap().fill(3);
    let event = stream.record().unwrap();
    stream.wait().unwrap();
    assert!(device.lost().is_none());

    let error = fail(&device).unwrap_err();
    let said = error.to_string();
    let Error::Lost(loss) = &error else { panic!("{said}") };
    let Cause::Driver(cause) = loss.cause() else { panic!("{said}") };
    assert!(cause.code() == code, "{said}");
    assert_eq!(loss.in_flight().iter().map(|l| l.instance()).collect::<Vec<_>>(), [kernel], "{said}");
    assert!(said.starts_with("cuda:0 (") && said.contains(" is lost: ") && said.contains(cause.name()), "{said}");
    assert!(said.contains(&format!("in flight: {kernel} in 1 × 1 × 1 blocks of 32 × 1 × 1 threads")), "{said}");
    assert_eq!(device.lost(), Some(&**loss));
    assert!(device.to_string().ends_with(", lost"));

    // Whatever comes says the same, at once.
    for again in [
        device.zeros::<u32>(1).unwrap_err(),
        device.alloc::<u32>(1).unwrap_err(),
        device.pinned::<u32>(1).unwrap_err(),
        device.stream().map(drop).unwrap_err(),
        x.download().unwrap_err(),
        y.copy_from(&[1; N]).unwrap_err(),
        next::launch(&device, &x, &mut y).unwrap_err(),
        next::launch(&other, &x, &mut y).unwrap_err(),
        other.wait().unwrap_err(),
        other.record().map(drop).unwrap_err(),
        event.wait().unwrap_err(),
        stream.upload_to(&mut y, &pinned).unwrap_err(),
    ] {
        assert_eq!(again.to_string(), said);
    }
    // What is of the host is still there.
    assert_eq!(pinned.as_slice().unwrap(), [3; N]);

    // On a card what is of the lost one must be gone first.
    if !is_gpu() {
        // The same device, in a context that knows nothing of the lost one.
        let anew = Device::cuda(0).unwrap();
        works(&anew);
        let refused = next::launch(&anew, &x, &mut anew.zeros(N).unwrap()).unwrap_err();
        assert!(refused.to_string().contains("its memory belongs to another device"), "{refused}");
        assert!(anew.stream().unwrap().fill_zero(&mut y).unwrap_err().to_string().contains(", lost"));
        drop((device, stream, x, pinned));
        works(&anew);
        drop((other, y, event));
        works(&anew);
    } else {
        drop((device, stream, x, pinned, other, y, event));
    }
    opens_anew_where_the_driver_lets_it();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_is_lost_by_a_kernel_that_leaves_its_memory() {
    let _alone = alone();
    if elsewhere("lost::gpu_is_lost_by_a_kernel_that_leaves_its_memory") {
        return;
    }
    is_lost_by(700, "far_beyond", |device| {
        let mut y = device.zeros(32)?;
        // SAFETY: none: that is what is tried. Nothing of the process's own is at that address of the device.
        unsafe { far_beyond::launch_unchecked(device, &mut y) }
    });
    // On a stream it is told by whoever waits, the device itself among them.
    if is_gpu() {
        return;
    }
    is_lost_by(700, "far_beyond", |device| {
        let mut y = device.zeros(32)?;
        let stream = device.stream()?;
        // SAFETY: as above.
        unsafe { far_beyond::launch_unchecked(&stream, &mut y)? };
        y.download().map(drop)
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_is_lost_and_opened_many_times() {
    let _alone = alone();
    if elsewhere("lost::gpu_is_lost_and_opened_many_times") {
        return;
    }
    // On a card nobody may hold what is lost.
    let held = (!is_gpu()).then(|| Device::cuda(0).unwrap());
    held.iter().for_each(works);
    for round in 0..if is_gpu() { 1 } else { 20 } {
        let device = Device::cuda(0).unwrap();
        let mut y = device.zeros(32).unwrap();
        // SAFETY: as above.
        let error = unsafe { far_beyond::launch_unchecked(&device, &mut y).unwrap_err() };
        assert!(matches!(error, Error::Lost(_)), "round {round}: {error}");
    }
    opens_anew_where_the_driver_lets_it();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_checks_are_no_reason_to_be_lost() {
    let _alone = alone();
    let device = Device::cuda(0).unwrap();
    let error = far_beyond::launch(&device, &mut device.zeros(32).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Violation(_)), "{error}");
    assert!(device.lost().is_none());
    works(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_says_nothing_of_what_an_event_has_waited_for() {
    let _alone = alone();
    if elsewhere("lost::gpu_says_nothing_of_what_an_event_has_waited_for") {
        return;
    }
    let device = Device::cuda(0).unwrap();
    let stream = device.stream().unwrap();
    let (x, mut y) = (device.zeros(N).unwrap(), device.zeros(N).unwrap());
    next::launch(&stream, &x, &mut y).unwrap();
    stream.record().unwrap().wait().unwrap();
    // SAFETY: as above.
    unsafe { far_beyond::launch_unchecked(&stream, &mut device.zeros(32).unwrap()).unwrap() };
    let error = stream.wait().unwrap_err();
    let Error::Lost(loss) = &error else { panic!("{error}") };
    assert_eq!(loss.in_flight().iter().map(|l| l.instance()).collect::<Vec<_>>(), ["far_beyond"], "{error}");
}

#[test]
fn cpu_is_never_lost() {
    let device = Device::cpu();
    let error = far_beyond::launch(&device, &mut device.zeros(32).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Violation(_)), "{error}");
    assert!(device.lost().is_none());
    works(&device);
}
