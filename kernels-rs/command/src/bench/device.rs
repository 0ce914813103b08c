//! Timing of work on the device by the device's own clock.

use super::busy::busy;
use super::measure::Contender;
use crate::error::Error;
use ::runtime::{Device, DeviceBuffer, Stream};
use kernels_rs_estimate::Estimator;
use std::cell::RefCell;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Timer of device work by the device's clock. A kernel keeps the device busy while the work is
/// queued, which hides the host's submission time.
pub(crate) struct Timer {
    stream: Stream,
    /// States of the kernel that keeps the device busy.
    states: RefCell<DeviceBuffer<u32>>,
    /// Duration of one iteration of the kernel that keeps the device busy.
    round: Duration,
    /// The model that estimates the launches, if this machine lacks the device.
    estimator: Option<Arc<Estimator>>,
}

/// Number of iterations measured to determine the duration of one.
const ROUNDS: usize = 10_000;

/// Maximum time for which the device is kept busy.
const MAX_BUSY: Duration = Duration::from_millis(50);

impl Timer {
    pub fn new(device: &Device) -> Result<Timer, Error> {
        let make = || {
            let (stream, states) = (device.stream()?, RefCell::new(device.zeros(256)?));
            let mut timer = Timer { stream, states, round: Duration::ZERO, estimator: None };
            // The first launch loads the kernel.
            timer.busy(1)?;
            let start = timer.stream.record()?;
            timer.busy(ROUNDS)?;
            let end = timer.stream.record()?;
            end.wait()?;
            timer.round = (end.duration_since(&start)? / ROUNDS as u32).max(Duration::from_nanos(1));
            Ok(timer)
        };
        make().map_err(Error::Device)
    }

    /// Returns a timer whose times are estimates.
    #[cfg(feature = "library")]
    pub fn estimated(estimator: Arc<Estimator>) -> Result<Timer, Error> {
        let device = estimator.device();
        let make = || {
            let (stream, states) = (device.stream()?, RefCell::new(device.zeros(1)?));
            Ok(Timer { stream, states, round: Duration::ZERO, estimator: Some(estimator) })
        };
        make().map_err(Error::Device)
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    fn busy(&self, rounds: usize) -> ::runtime::Result<()> {
        // SAFETY: each of the 256 threads accesses its own state, whatever the states are.
        unsafe { busy::launch_unchecked(&self.stream, rounds, &mut *self.states.borrow_mut()) }
    }

    /// Returns a contender that queues the library's `work` `times` times.
    pub fn timed<'a>(
        &'a self,
        name: &'static str,
        times: u32,
        mut work: impl FnMut() -> ::runtime::Result<()> + 'a,
    ) -> Contender<'a> {
        self.timed_peer(name, times, move || work().map_err(Error::Device))
    }

    /// Returns a contender that queues `prepare` and then times the library's `work` alone.
    /// `prepare` must keep the device busy for longer than the host takes to queue the work.
    pub fn timed_after<'a>(
        &'a self,
        name: &'static str,
        mut prepare: impl FnMut(&Stream) -> ::runtime::Result<()> + 'a,
        mut work: impl FnMut() -> ::runtime::Result<()> + 'a,
    ) -> Contender<'a> {
        Contender::new(name, move || {
            let mut run = || {
                prepare(&self.stream)?;
                let start = self.stream.record()?;
                work()?;
                let end = self.stream.record()?;
                end.wait()?;
                end.duration_since(&start)
            };
            run().map_err(Error::Device)
        })
    }

    /// Keeps the device busy until `work` returns, which runs in another thread.
    pub fn busy_during<T: Send>(&self, work: impl FnOnce() -> Option<T> + Send) -> Option<T> {
        let rounds = (MAX_BUSY.as_secs_f64() / self.round.as_secs_f64()) as usize;
        thread::scope(|scope| {
            let work = scope.spawn(work);
            while !work.is_finished() && self.busy(rounds).and_then(|()| self.stream.wait()).is_ok() {}
            work.join().ok().flatten()
        })
    }

    /// Returns a contender that queues the vendor's `work` `times` times.
    pub fn timed_peer<'a>(
        &'a self,
        name: &'static str,
        times: u32,
        mut work: impl FnMut() -> Result<(), Error> + 'a,
    ) -> Contender<'a> {
        if let Some(estimator) = &self.estimator {
            return Contender::estimated(name, move || {
                // Launches of the preparation do not count.
                estimator.take()?;
                work()?;
                let us: f64 = estimator.take()?.iter().map(|launch| launch.time_us).sum();
                Ok(Duration::from_secs_f64(us / 1e6))
            });
        }
        // Time the host took to queue the work last time.
        let mut queueing = Duration::ZERO;
        Contender::new(name, move || {
            let ahead = queueing.mul_f64(1.5).min(MAX_BUSY);
            self.busy((ahead.as_secs_f64() / self.round.as_secs_f64()) as usize).map_err(Error::Device)?;
            let began = Instant::now();
            let start = self.stream.record().map_err(Error::Device)?;
            for _ in 0..times {
                work()?;
            }
            let end = self.stream.record().map_err(Error::Device)?;
            queueing = began.elapsed();
            end.wait().map_err(Error::Device)?;
            Ok(end.duration_since(&start).map_err(Error::Device)? / times)
        })
    }
}
