//! Tests of lost devices.

use super::{alone, elsewhere, far_beyond, is_gpu, next};
use runtime::{Device, Error, LossCause, Result};

const N: usize = 1000;

/// Opens the device again. After some faults NVIDIA's driver does not allow this in the same
/// process, and the error says so.
fn opens_again_where_the_driver_allows_it() {
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

/// Checks that everything that belongs to a lost device reports the cause, and can be dropped, and
/// that another context works meanwhile.
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
    let LossCause::Driver(cause) = loss.cause() else { panic!("{said}") };
    assert!(cause.code() == code, "{said}");
    assert_eq!(loss.in_flight().iter().map(|l| l.instance()).collect::<Vec<_>>(), [kernel], "{said}");
    assert!(said.starts_with("cuda:0 (") && said.contains(" is lost: ") && said.contains(cause.name()), "{said}");
    assert!(said.contains(&format!("in flight: {kernel} in 1 × 1 × 1 blocks of 32 × 1 × 1 threads")), "{said}");
    assert_eq!(device.lost(), Some(&**loss));
    assert!(device.to_string().ends_with(", lost"));

    // Every later call returns the same error at once.
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
    // Page-locked host memory remains readable.
    assert_eq!(pinned.as_slice().unwrap(), [3; N]);

    // On a card, all objects of the lost context must be dropped first.
    if !is_gpu() {
        // Opens the same device in a new context.
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
    opens_again_where_the_driver_allows_it();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_is_lost_by_an_access_out_of_bounds() {
    let _alone = alone();
    if elsewhere("lost::gpu_is_lost_by_an_access_out_of_bounds") {
        return;
    }
    is_lost_by(700, "far_beyond", |device| {
        let mut y = device.zeros(32)?;
        // SAFETY: this is deliberately unsound for the device, to test the loss of its context. No
        // other memory of the process is at that device address.
        unsafe { far_beyond::launch_unchecked(device, &mut y) }
    });
    // On a stream, every waiting call reports the fault, including those of the device.
    if is_gpu() {
        return;
    }
    is_lost_by(700, "far_beyond", |device| {
        let mut y = device.zeros(32)?;
        let stream = device.stream()?;
        // SAFETY: as above, deliberately unsound for the device.
        unsafe { far_beyond::launch_unchecked(&stream, &mut y)? };
        y.download().map(drop)
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_is_lost_and_opened_repeatedly() {
    let _alone = alone();
    if elsewhere("lost::gpu_is_lost_and_opened_repeatedly") {
        return;
    }
    // On a card, no handle of the lost context may remain.
    let held = (!is_gpu()).then(|| Device::cuda(0).unwrap());
    held.iter().for_each(works);
    for round in 0..if is_gpu() { 1 } else { 20 } {
        let device = Device::cuda(0).unwrap();
        let mut y = device.zeros(32).unwrap();
        // SAFETY: as above, deliberately unsound for the device.
        let error = unsafe { far_beyond::launch_unchecked(&device, &mut y).unwrap_err() };
        assert!(matches!(error, Error::Lost(_)), "round {round}: {error}");
    }
    opens_again_where_the_driver_allows_it();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_failed_checks_do_not_lose_the_device() {
    let _alone = alone();
    let device = Device::cuda(0).unwrap();
    let error = far_beyond::launch(&device, &mut device.zeros(32).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Violation(_)), "{error}");
    assert!(device.lost().is_none());
    works(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_loss_omits_launches_before_a_waited_event() {
    let _alone = alone();
    if elsewhere("lost::gpu_loss_omits_launches_before_a_waited_event") {
        return;
    }
    let device = Device::cuda(0).unwrap();
    let stream = device.stream().unwrap();
    let (x, mut y) = (device.zeros(N).unwrap(), device.zeros(N).unwrap());
    next::launch(&stream, &x, &mut y).unwrap();
    stream.record().unwrap().wait().unwrap();
    // SAFETY: as above, deliberately unsound for the device.
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
