//! Calls whose last block combines the results of all blocks.

use kernels_rs::histogram::histogram;
use kernels_rs::reduce::{self, Sum};
use runtime::{Device, DeviceBuffer};
use std::collections::HashMap;

/// The number of elements, for which several blocks have parts of the row.
const N: usize = 1 << 20;

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_recorded_calls_clear_their_counters() {
    let device = Device::cuda(0).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let (x, mut y) = (device.upload(&[1.0f32; N]).unwrap(), device.zeros::<f32>(1).unwrap());
    let (done, launches) = stream.record_launches(|on| reduce::all(on, Sum, &x.view([1, N])?, &mut y.view_mut([1])?));
    done.unwrap();
    let mut launches = launches.expect("launches only");
    assert_eq!(y.download().unwrap(), [N as f32]);

    let (u, v) = (device.upload(&[2.0f32; N]).unwrap(), device.upload(&[7.0f32]).unwrap());
    // All other memory has other contents than when it was recorded.
    let mut scratch: HashMap<u64, DeviceBuffer<u32>> = HashMap::new();
    let mut addresses = Vec::new();
    for memory in launches.memory() {
        addresses.push(match memory.address {
            address if address == x.device_address() => u.device_address(),
            address if address == y.device_address() => v.device_address(),
            address => {
                let words = memory.bytes.div_ceil(4) as usize;
                let new = || device.upload(&vec![u32::MAX; words]).unwrap();
                scratch.entry(address).or_insert_with(new).device_address()
            }
        });
    }
    for _ in 0..3 {
        // SAFETY: all memory is as large as the recorded memory, aligned to 256 bytes, and alive
        // until the stream has been waited for. No other work uses it.
        unsafe { launches.launch(other.driver_handle().unwrap(), &addresses).unwrap() };
        other.wait().unwrap();
        assert_eq!(v.download().unwrap(), [2.0 * N as f32]);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_calls_of_several_streams_share_no_counters() {
    let device = Device::cuda(0).unwrap();
    let streams: Vec<_> = (0..3).map(|_| device.stream().unwrap()).collect();
    let inputs: Vec<_> = (1..=3).map(|x| device.upload(&vec![x as f32; N]).unwrap()).collect();
    let keys = device.upload(&(0..N).map(|i| (i % 5) as u8).collect::<Vec<_>>()).unwrap();
    let mut sums: Vec<_> = (0..3).map(|_| device.zeros::<f32>(1).unwrap()).collect();
    let mut bins: Vec<_> = (0..3).map(|_| device.zeros::<u32>(5).unwrap()).collect();
    for _ in 0..20 {
        for (i, stream) in streams.iter().enumerate() {
            reduce::all(stream, Sum, &inputs[i].view([1, N]).unwrap(), &mut sums[i].view_mut([1]).unwrap()).unwrap();
            histogram(stream, &keys.view([N]).unwrap(), 0.0..=0.0, &mut bins[i].view_mut([5]).unwrap()).unwrap();
        }
    }
    for (i, stream) in streams.iter().enumerate() {
        stream.wait().unwrap();
        assert_eq!(sums[i].download().unwrap(), [(i + 1) as f32 * N as f32]);
        let expected: Vec<u32> = (0..5).map(|bin| (N - bin).div_ceil(5) as u32).collect();
        assert_eq!(bins[i].download().unwrap(), expected);
    }
}
