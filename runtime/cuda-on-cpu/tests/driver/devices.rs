//! Tests of this project's runtime on two devices. Each device rejects objects of the other device,
//! and copies between both devices work.

use super::common::inside;
use kernels_rs::saxpy;
use runtime::{Device, Error};

const TWO: &[(&str, &str)] = &[("CUDA_ON_CPU_DEVICES", "2"), ("CUDA_ON_CPU_MEMORY", "64M")];
const N: usize = 1000;

fn two() -> [Device; 2] {
    [0, 1].map(|ordinal| Device::cuda(ordinal).unwrap())
}

fn numbers(from: usize) -> Vec<f32> {
    (from..from + N).map(|i| i as f32).collect()
}

#[test]
fn two_devices_exist() {
    inside!("two_devices_exist", TWO, || {
        let [first, second] = two();
        assert!(first.to_string().starts_with("cuda:0") && second.to_string().starts_with("cuda:1"));
        assert!(matches!(Device::cuda(2).unwrap_err(), Error::NoSuchDevice { ordinal: 2, count: 2 }));
        assert_eq!(runtime::doctor::examine().devices.len(), 2);
        // Each device has separate memory.
        let held: Vec<_> = [&first, &second].iter().map(|device| device.zeros::<u8>(40 << 20).unwrap()).collect();
        assert!(matches!(first.zeros::<u8>(40 << 20).unwrap_err(), Error::OutOfMemory { .. }));
        assert_eq!(second.memory().in_use, 40 << 20);
        drop(held);
    });
}

#[test]
fn a_device_can_be_hidden() {
    let settings = [TWO, &[("CUDA_VISIBLE_DEVICES", "1")]].concat();
    inside!("a_device_can_be_hidden", &settings, || {
        assert!(matches!(Device::cuda(1).unwrap_err(), Error::NoSuchDevice { ordinal: 1, count: 1 }));
        Device::cuda(0).unwrap();
    });
}

#[test]
fn memory_of_another_device_is_rejected() {
    inside!("memory_of_another_device_is_rejected", TWO, || {
        let [first, second] = two();
        let (x, mut y) = (first.upload(&numbers(0)).unwrap(), second.upload(&numbers(5)).unwrap());
        let stream = first.stream().unwrap();
        let said = |result: Result<(), Error>| result.unwrap_err().to_string();
        assert!(said(saxpy::launch(&first, 2.0, &x, &mut y)).contains("`y`: its memory belongs to another device"));
        assert!(said(saxpy::launch(&stream, 2.0, &x, &mut y)).contains("another device"));
        // SAFETY: the launch is rejected.
        assert!(said(unsafe { saxpy::launch_unchecked(&second, 2.0, &x, &mut y) }).contains("`x`: its memory"));
        assert!(said(stream.prepare(saxpy::call(2.0, &x, &mut y)).map(drop)).contains("another device"));
        assert!(said(stream.fill_zero(&mut y)).contains("the buffer belongs to cuda:1"));
        assert!(said(stream.copy(&x, &mut y)).contains("the buffer to write belongs to cuda:1"));
        let mut pinned = second.pinned::<f32>(N).unwrap();
        assert!(stream.download_to(&y, &mut pinned).is_err());
        let recording = first.record();
        assert!(said(recording.borrow(&y).map(drop)).contains("the buffer belongs to cuda:1"));
        let mut graph = recording.finish().unwrap();
        assert!(said(graph.replay(&second.stream().unwrap())).contains("the graph belongs to cuda:0"));
        let (here, there) = (stream.record().unwrap(), second.stream().unwrap().record().unwrap());
        assert!(matches!(there.duration_since(&here), Err(Error::OtherDevice { .. })));
        // The data is unchanged.
        assert_eq!((x.download().unwrap(), y.download().unwrap()), (numbers(0), numbers(5)));
    });
}

#[test]
fn copies_between_devices_keep_the_call_order() {
    inside!("copies_between_devices_keep_the_call_order", TWO, || {
        let [first, second] = two();
        let (here, there) = (first.stream().unwrap(), second.stream().unwrap());
        let mut x = first.upload(&numbers(0)).unwrap();
        let mut y = second.zeros(N).unwrap();
        let mut expected = numbers(0);
        for round in 0..5 {
            // `x` is written, copied and overwritten; `y` is used on its own device.
            let ones = first.upload(&vec![round as f32; N]).unwrap();
            saxpy::launch(&here, 1.0, &ones, &mut x).unwrap();
            there.copy(&x, &mut y).unwrap();
            here.fill_zero(&mut x).unwrap();
            let twos = second.upload(&vec![2.0; N]).unwrap();
            saxpy::launch(&there, 1.0, &twos, &mut y).unwrap();
            here.copy(&y, &mut x).unwrap();
            expected.iter_mut().for_each(|e| *e += round as f32 + 2.0);
        }
        assert_eq!(x.download().unwrap(), expected);
        // The buffer is dropped during its copy: the next owner of the memory waits.
        there.copy(&x, &mut y).unwrap();
        drop(x);
        let garbage = first.upload(&vec![-1f32; N]).unwrap();
        assert_eq!(y.download().unwrap(), expected);
        assert_eq!(garbage.download().unwrap(), vec![-1f32; N]);
        // A stream of one device waits for an event of the other.
        here.wait_for(&there.record().unwrap()).unwrap();
        here.wait().unwrap();

        // Copies from and to the CPU.
        let cpu = Device::cpu();
        let mut host = cpu.zeros(N).unwrap();
        cpu.stream().unwrap().copy(&y, &mut host).unwrap();
        assert_eq!(host.as_slice().unwrap(), expected);
        host.as_mut_slice().unwrap()[0] = 99.0;
        there.copy(&host, &mut y).unwrap();
        assert_eq!(y.download().unwrap()[..2], [99.0, expected[1]]);
        assert!(matches!(there.copy(&second.zeros(3).unwrap(), &mut y), Err(Error::Length { .. })));
    });
}
