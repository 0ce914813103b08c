//! One case on one executor, and what it says: for kernels that are wrong on purpose.

use super::check::Prepared;
use super::compare::{differ, gaps, reference};
use super::signature::Outputs;
use super::{Case, Executor, Expected, Failure};
use crate::cpu::Executable;
use crate::interpreter::{Options, Outcome, Report, Statistics};
use crate::ptx;
use crate::{Device, Error, Result};
use kernel_dsl::Launcher;
use kernel_dsl::compiler::ir;
use std::cell::RefCell;

/// The oracle, for a form of an instance's IR that need not be what the instance was lowered to.
pub struct Oracle<'p> {
    prepared: &'p Prepared,
    executable: Executable,
    device: Device,
}

/// What a run on the oracle left.
pub struct Trial {
    /// What was found, errors and warnings; `None` if the launch had no blocks.
    pub outcome: Option<Outcome>,
    outputs: Outputs,
}

impl Trial {
    /// What the run did.
    pub fn statistics(&self) -> Statistics {
        self.outcome.as_ref().map(|outcome| outcome.statistics).unwrap_or_default()
    }
}

impl<'p> Oracle<'p> {
    /// For `kernel`, which takes the arguments of the instance. An error if the interpreter cannot run it.
    pub fn new(prepared: &'p Prepared, kernel: &ir::Kernel) -> Result<Oracle<'p>> {
        Ok(Oracle { prepared, executable: Executable::new(kernel)?, device: Device::cpu() })
    }

    /// Whether what it leaves may depend on the order of blocks, warps and lanes.
    pub fn has_atomics(&self) -> bool {
        self.executable.has_atomics()
    }

    /// Runs a case, of those that [`Prepared::sized`] gives. An error if the launch is refused: nothing has run then.
    pub fn run(&self, case: &Case, options: Options) -> Result<Trial> {
        let outcome = RefCell::new(None);
        let outputs = self.prepared.run(&self.device, case, |arguments| {
            let approved = self.prepared.approved(&self.device, case, arguments)?;
            outcome.replace(self.executable.outcome(&approved, options)?);
            Ok(())
        })?;
        Ok(Trial { outcome: outcome.into_inner(), outputs })
    }

    /// What is wrong with what a run of `case` left, if these are the expected values.
    pub fn wrong(&self, case: &Case, trial: &Trial, expected: &[Expected]) -> Option<Failure> {
        let (executor, names) = (Executor::Lowered, self.prepared.names());
        gaps(&executor, names, &trial.outputs, case).or_else(|| reference(&executor, names, &trial.outputs, expected))
    }

    /// Whether two runs of `case` left different bits where they may not.
    pub fn differ(&self, case: &Case, a: &Trial, b: &Trial) -> bool {
        let mut both = a.outputs.iter().zip(&b.outputs).filter(|((index, _), _)| !case.order_dependent.contains(index));
        both.any(|((_, a), (_, b))| differ("", a, b, None).is_some())
    }
}

impl Prepared {
    /// What the checked form, after all passes, reports of a case itself, as it would on a GPU.
    pub fn checked_form(&self, case: &Case, options: Options) -> Result<Option<Report>> {
        let (device, reported) = (Device::cpu(), RefCell::new(None));
        self.run(&device, case, |arguments| {
            let (executable, form) = self.checked();
            let approved = self.approved(&device, case, arguments)?;
            reported.replace(executable.outcome_checked(&approved, form, options)?.1);
            Ok(())
        })?;
        Ok(reported.into_inner())
    }

    /// Launches the bare form of a case on `device`, for tools that look on from outside.
    ///
    /// # Safety
    /// On a GPU nothing of what the kernel does is checked: it must be right, or no more be asked of the process and the device than what
    /// a wrong kernel leaves of them.
    pub unsafe fn launch_bare(&self, device: &Device, case: &Case) -> Result<()> {
        let (artifact, constants) = self.instance();
        let outputs = self.run(device, case, |arguments| {
            // SAFETY: by the caller's promise.
            unsafe { device.launch_unchecked(artifact, constants, case.block, arguments) }
        });
        outputs.map(drop)
    }

    /// What the PTX interpreter reports of a case; nothing of an instance without PTX.
    pub fn ptx_report(&self, case: &Case, options: ptx::Options) -> Result<Option<ptx::Report>> {
        let (device, Some(executable)) = (Device::cpu(), self.ptx()) else { return Ok(None) };
        let run = self.run(&device, case, |arguments| {
            executable.run(&self.approved(&device, case, arguments)?, self.names(), options)
        });
        match run {
            Ok(_) => Ok(None),
            Err(Error::Ptx { instance, source }) => match *source {
                ptx::Failure::Violation(report) => Ok(Some(*report)),
                other => Err(Error::Ptx { instance, source: Box::new(other) }),
            },
            Err(e) => Err(e),
        }
    }
}
