//! Runs of one case on one executor, with its findings: for tests of kernels with deliberate bugs.

use super::check::PreparedInstance;
use super::compare::{check_gaps, order_dependent, reference};
use super::signature::Outputs;
use super::{Case, Executor, Expected, Failure};
use kernel_dsl::Launcher;
use kernel_dsl::compiler::ir;
use runtime_devices::executor::Executable;
use runtime_devices::{Device, Result};
use runtime_oracle::{Options, Outcome, Report, Statistics};
use runtime_ptx as ptx;
use std::cell::RefCell;

/// The oracle, for any IR form of an instance. The form may differ from the lowered one.
pub struct Oracle<'p> {
    prepared: &'p PreparedInstance,
    executable: Executable,
    device: Device,
}

/// The result of a run on the oracle.
pub struct OracleRun {
    /// The findings, both errors and warnings; `None` if the launch had no blocks.
    pub outcome: Option<Outcome>,
    outputs: Outputs,
}

impl OracleRun {
    /// Returns the statistics of the run.
    pub fn statistics(&self) -> Statistics {
        self.outcome.as_ref().map(|outcome| outcome.statistics).unwrap_or_default()
    }
}

impl<'p> Oracle<'p> {
    /// Prepares `kernel`, which takes the arguments of the instance.
    ///
    /// # Errors
    /// If the interpreter does not support the kernel.
    pub fn new(prepared: &'p PreparedInstance, kernel: &ir::Kernel) -> Result<Oracle<'p>> {
        Ok(Oracle { prepared, executable: Executable::new(kernel)?, device: Device::cpu() })
    }

    /// Returns whether the result may depend on the order of blocks, warps and lanes.
    pub fn has_atomics(&self) -> bool {
        self.executable.has_atomics()
    }

    /// Runs one of the cases that [`PreparedInstance::sized`] returns.
    ///
    /// # Errors
    /// If the launch is rejected; nothing has run then.
    pub fn run(&self, case: &Case, options: Options) -> Result<OracleRun> {
        let outcome = RefCell::new(None);
        let outputs = self.prepared.run(&self.device, case, |arguments| {
            let validated = self.prepared.validated(&self.device, case, arguments)?;
            outcome.replace(self.executable.outcome(&validated, options)?);
            Ok(())
        })?;
        Ok(OracleRun { outcome: outcome.into_inner(), outputs })
    }

    /// Compares the result of a run of `case` with the expected values. Returns the failure if they
    /// differ.
    pub fn wrong(&self, case: &Case, run: &OracleRun, expected: &[Expected]) -> Option<Failure> {
        let (executor, names) = (Executor::Lowered, self.prepared.names());
        check_gaps(&executor, names, &run.outputs, case)
            .or_else(|| reference(&executor, names, &run.outputs, case, expected))
    }

    /// Returns whether two runs of `case` differ in an argument that must not depend on the
    /// schedule. The case names arguments that may, in
    /// [`Case::with_order_dependent`]. In a kernel with atomic operations, those whose expected
    /// contents have no order may depend on it too.
    pub fn differ(&self, case: &Case, expected: &[Expected], a: &OracleRun, b: &OracleRun) -> bool {
        let free = order_dependent(case, self.has_atomics(), expected);
        self.prepared.difference(&free, &a.outputs, &b.outputs).is_some()
    }
}

impl PreparedInstance {
    /// Runs the checked form of a case after all passes. Returns the report that a GPU would return
    /// too, or `None` without a violation.
    ///
    /// # Errors
    /// If the case violates the kernel's contract, or memory is insufficient.
    pub fn checked_form(&self, case: &Case, options: Options) -> Result<Option<Report>> {
        let (device, reported) = (Device::cpu(), RefCell::new(None));
        self.run(&device, case, |arguments| {
            let (executable, form) = self.checked();
            let validated = self.validated(&device, case, arguments)?;
            reported.replace(executable.outcome_checked(&validated, form, options)?.1);
            Ok(())
        })?;
        Ok(reported.into_inner())
    }

    /// Launches the unchecked form of a case on `device`, for external tools that observe the
    /// launch.
    ///
    /// # Errors
    /// If the case violates the kernel's contract, or the device fails.
    ///
    /// # Safety
    /// On a GPU nothing that the kernel does is checked. The kernel must be correct for the case.
    /// After a faulty kernel, neither the process nor the device is reliable.
    pub unsafe fn launch_bare(&self, device: &Device, case: &Case) -> Result<()> {
        let (artifact, constants) = self.instance();
        let outputs = self.run(device, case, |arguments| {
            // SAFETY: the caller keeps the contract of this function.
            unsafe { device.launch_unchecked(artifact, constants, case.block, arguments) }
        });
        outputs.map(drop)
    }

    /// Returns whether the PTX interpreter reports an error for a case, or has another result than
    /// `run`. Arguments that may depend on the schedule, as in [`Oracle::differ`], are not
    /// compared. `None` means that the instance has no PTX.
    ///
    /// # Errors
    /// If the case violates the kernel's contract, or memory is insufficient.
    pub fn ptx_differs(
        &self,
        case: &Case,
        expected: &[Expected],
        run: &OracleRun,
        options: ptx::Options,
    ) -> Result<Option<bool>> {
        let free = order_dependent(case, self.lowered.has_atomics(), expected);
        match self.run_ptx(case, options).transpose() {
            Some(Ok(outputs)) => Ok(Some(self.difference(&free, &run.outputs, &outputs).is_some())),
            Some(Err(e)) if e.report().is_some() => Ok(Some(true)),
            Some(Err(e)) => Err(e),
            None => Ok(None),
        }
    }

    /// Returns the report of the PTX interpreter for a case; `None` if there are no errors, or if
    /// the instance has no PTX.
    ///
    /// # Errors
    /// If the case violates the kernel's contract, or memory is insufficient.
    pub fn ptx_report(&self, case: &Case, options: ptx::Options) -> Result<Option<Report>> {
        match self.run_ptx(case, options) {
            Ok(_) => Ok(None),
            Err(e) => e.report().cloned().map(Some).ok_or(e),
        }
    }

    /// Returns the outputs of the PTX interpreter for a case; `None` if the instance has no PTX.
    fn run_ptx(&self, case: &Case, options: ptx::Options) -> Result<Option<Outputs>> {
        let (device, Some(executable)) = (Device::cpu(), self.ptx()) else { return Ok(None) };
        let outputs = self.run(&device, case, |arguments| {
            executable.run(&self.validated(&device, case, arguments)?, self.names(), options).map(drop)
        });
        outputs.map(Some)
    }
}
