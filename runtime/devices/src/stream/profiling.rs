//! Profiles of streams.

use super::{OperationQueue, Stream};
use crate::profile::{Profile, ProfiledWork, Timed};
use crate::{Device, Result};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::compiler::launch::LaunchShape;
use kernel_dsl::{Argument, Artifact};
use runtime_simt::Lock;
use std::time::Instant;

/// The recorded operations of a profiled CPU stream, each complete when it has been submitted.
#[derive(Debug, Default)]
pub(crate) struct ProfiledOperations(Lock<Option<(Instant, Vec<Timed>)>>);

impl ProfiledOperations {
    /// Runs `run`. If the stream is profiled, records the duration for `work`.
    pub fn time<T>(&self, work: impl FnOnce() -> ProfiledWork, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(base) = self.0.lock().as_ref().map(|(base, _)| *base) else {
            return run();
        };
        let start = base.elapsed();
        let result = run();
        let timed = Timed { work: work(), start, time: base.elapsed() - start };
        if let Some((_, done)) = &mut *self.0.lock() {
            done.push(timed);
        }
        result
    }
}

impl Stream {
    /// Starts recording the duration of each operation. On a GPU, a profile costs two events per
    /// operation; streams without a profile have no cost. A replay of a graph is one operation.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn start_profile(&self) -> Result<()> {
        match &self.queue {
            OperationQueue::Cpu => {
                *self.recording.0.lock() = Some((Instant::now(), Vec::new()));
                Ok(())
            }
            OperationQueue::Cuda(_, stream) => stream.start_profile(),
        }
    }

    /// Waits for the operations since the start of the profile and returns their durations. Without
    /// a start, the profile is empty.
    ///
    /// # Errors
    /// If the device is lost. Violations of checked launches are errors of the next
    /// [`wait`](Stream::wait).
    ///
    /// ```
    /// # fn main() -> runtime::Result<()> {
    /// let device = runtime::Device::cpu();
    /// let stream = device.stream()?;
    /// let mut x = device.zeros::<f32>(1000)?;
    /// stream.start_profile()?;
    /// stream.fill_zero(&mut x)?;
    /// let profile = stream.end_profile()?;
    /// println!("{profile}");
    /// assert_eq!(profile.operations().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn end_profile(&self) -> Result<Profile> {
        let operations = match &self.queue {
            OperationQueue::Cpu => {
                let recorded = self.recording.0.lock().take();
                recorded.map_or_else(Vec::new, |(_, done)| done)
            }
            OperationQueue::Cuda(_, stream) => stream.end_profile()?,
        };
        Ok(Profile { device: self.device.to_string(), operations })
    }
}

impl Device {
    /// Describes a launch on the CPU for a profile.
    pub(super) fn work(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> ProfiledWork {
        let mut instance = kernel.name.to_string();
        let mut shape = LaunchShape { grid: [0; 3], block: [0; 3] };
        // A rejected launch reports its error itself; here it has no shape.
        let _ = self.validated(kernel, constants, block, arguments, |program, validated| {
            instance = program.instance_name();
            shape = validated.shape();
            Ok(())
        });
        ProfiledWork::launch(&instance, shape)
    }
}
