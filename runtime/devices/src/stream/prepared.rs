//! Launches that are checked once and submitted many times.

use super::{OperationQueue, Stream};
use crate::Result;
use crate::cuda::{Cuda, CudaStream, Ready};
use kernel_dsl::{Call, LaunchForm, Launcher};
use std::fmt;

/// A prepared launch: its arguments have been checked and its module is loaded. The launch borrows
/// the arguments.
///
/// Submitting it costs little more than the driver's call: nothing is allocated for up to 64
/// parameters, and the only lock is the stream's own.
///
/// ```
/// use kernel_dsl::prelude::*;
///
/// /// y ← y + x
/// #[kernel(block = 32, grid = y.len().div_ceil(32))]
/// #[requires(x.len() == y.len())]
/// fn add(x: &[f32], y: &mut [f32]) {
///     let i = grid::index();
///     if i < y.len() {
///         y[i] += x[i];
///     }
/// }
///
/// fn main() -> runtime::Result<()> {
///     let device = runtime::Device::cpu();
///     let (x, mut y) = (device.upload(&[1.0f32, 2.0])?, device.zeros(2)?);
///     let stream = device.stream()?;
///     let mut step = stream.prepare(add::call(&x, &mut y))?;
///     for _ in 0..10 {
///         step.launch()?;
///     }
///     drop(step);
///     stream.wait()?;
///     assert_eq!(y.download()?, [10.0, 20.0]);
///     Ok(())
/// }
/// ```
pub struct Prepared<'a> {
    stream: &'a Stream,
    kind: PreparedKind<'a>,
    instance: &'static str,
}

/// The form of a prepared launch on each backend.
enum PreparedKind<'a> {
    /// There is no block to run.
    Nothing,
    Cpu(Call<'a>, LaunchForm),
    Cuda(&'a Cuda, &'a CudaStream, Ready<'a>),
}

impl Stream {
    /// Prepares a launch with every access checked. A violation is the error of the next wait.
    ///
    /// # Errors
    /// Arguments that violate the kernel's contract, or a kernel that cannot be loaded.
    pub fn prepare<'a>(&'a self, call: Call<'a>) -> Result<Prepared<'a>> {
        self.prepared(call, LaunchForm::Checked)
    }

    /// Prepares a launch of the kernel's unchecked PTX.
    ///
    /// # Safety
    /// At every submission the kernel must be free of out-of-bounds accesses and races for these
    /// arguments.
    ///
    /// # Errors
    /// Returns the errors of [`prepare`](Stream::prepare).
    pub unsafe fn prepare_unchecked<'a>(&'a self, call: Call<'a>) -> Result<Prepared<'a>> {
        self.prepared(call, LaunchForm::Unchecked)
    }

    fn prepared<'a>(&'a self, call: Call<'a>, form: LaunchForm) -> Result<Prepared<'a>> {
        let instance = call.kernel().name;
        let (kernel, constants, block) = (call.kernel(), call.constants(), call.block());
        let ready = self.device.validated(kernel, constants, block, call.arguments(), |program, validated| {
            Ok(Some(match &self.queue {
                OperationQueue::Cpu => None,
                OperationQueue::Cuda(cuda, stream) => {
                    Some((cuda, stream, cuda.prepare_launch(form, kernel, program, validated)?))
                }
            }))
        })?;
        let kind = match ready {
            None => PreparedKind::Nothing,
            Some(None) => PreparedKind::Cpu(call, form),
            Some(Some((cuda, stream, ready))) => PreparedKind::Cuda(cuda, stream, ready),
        };
        Ok(Prepared { stream: self, kind, instance })
    }
}

impl Prepared<'_> {
    /// Submits the launch once more.
    ///
    /// # Errors
    /// If the device is lost, or out of memory. On the CPU also if the arguments are rejected.
    pub fn launch(&mut self) -> Result<()> {
        match &mut self.kind {
            PreparedKind::Nothing => Ok(()),
            // SAFETY: on the CPU both forms are checked.
            PreparedKind::Cpu(call, form) => unsafe {
                self.stream.submit(*form, call.kernel(), call.constants(), call.block(), call.arguments())
            },
            // SAFETY: the arguments are borrowed while this lives, and tracked for a later free.
            // The arguments were validated; the caller of `prepare_unchecked` guarantees what
            // checks do not cover.
            PreparedKind::Cuda(cuda, stream, ready) => unsafe { cuda.submit(stream, ready) },
        }
    }
}

impl fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({} on {})", self.instance, self.stream.device)
    }
}
