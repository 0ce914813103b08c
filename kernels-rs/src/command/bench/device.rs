//! Work on the device, by its own clock.

use super::{Contender, Error};
use ::runtime::testing::{Draw, Random};
use ::runtime::{Device, DeviceBuffer, Stream};
use std::time::Duration;

/// `n` ordinary values on the device: clocks and power depend on them.
pub(super) fn drawn<T: Draw>(device: &Device, random: &mut Random, n: usize) -> Result<DeviceBuffer<T>, Error> {
    let some: Vec<T> = random.values(n.min(1 << 20));
    let mut all = some.repeat(n.div_ceil(some.len().max(1)));
    all.truncate(n);
    device.upload(&all).map_err(Error::Device)
}

/// Work that is queued `times` times, by the device's clock.
pub(super) fn timed<'a>(
    name: &'static str,
    stream: &'a Stream,
    times: u32,
    mut work: impl FnMut() -> ::runtime::Result<()> + 'a,
) -> Contender<'a> {
    Contender::new(name, move || {
        let mut run = || -> ::runtime::Result<Duration> {
            let start = stream.record()?;
            for _ in 0..times {
                work()?;
            }
            let end = stream.record()?;
            end.wait()?;
            end.since(&start)
        };
        Ok(run().map_err(Error::Device)? / times)
    })
}
