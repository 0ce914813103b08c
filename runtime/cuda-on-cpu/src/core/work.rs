//! Operations of streams: launches, copies, fills and others.

use super::context::Context;
use super::demangle::demangled;
use super::engine::as_host_function;
use super::error::{Error, Result};
use super::event::Event;
use super::findings::ProcessFindings;
use super::log::CallLog;
use super::memory::{Fill, MemoryCopy};
use super::module::ModuleFunction;
use super::settings::OnFinding;
use super::user_object::GraphReferences;
use cudarc::driver::sys::CUresult;
use runtime_ptx::texture::Objects;
use runtime_ptx::{Check, Checks, DeviceMemory, Grid, Options, Outcome, Report, is_stack_overflow};
use std::ffi::c_void;
use std::io::Write;
use std::sync::Arc;

/// An operation of a stream.
#[derive(Clone, Debug)]
pub enum StreamWork {
    /// A kernel launch.
    Launch(ValidatedLaunch),
    /// A copy.
    Copy(MemoryCopy),
    /// A fill with a repeated value.
    Fill(Fill),
    /// The release of the allocation at this address.
    Free(u64),
    /// The recording of an event with this number.
    Record(Arc<Event>, u64),
    /// A call of a host function.
    Call(HostFunction),
    /// The operations of a graph, in order.
    Graph(Arc<[StreamWork]>),
    /// Nothing: the user objects of a graph exist until its launch is complete.
    Keep(#[allow(dead_code, reason = "the references end with the operation")] Arc<[GraphReferences]>),
}

/// The largest number of findings of a launch that continues after them.
const MAX_FINDINGS: usize = 1000;

/// A validated launch.
#[derive(Clone, Debug)]
pub struct ValidatedLaunch {
    /// The kernel.
    pub function: Arc<ModuleFunction>,
    /// The grid of the launch.
    pub grid: Grid,
    /// The parameter bytes.
    pub parameters: Vec<u8>,
    /// Whether all blocks are resident at once.
    pub cooperative: bool,
    /// The textures and surfaces at the time of the call.
    pub objects: Arc<Objects>,
}

/// A function of the program that is called in stream order.
#[derive(Clone, Copy, Debug)]
pub enum HostFunction {
    /// The function of `cuLaunchHostFunc`.
    #[allow(missing_docs)]
    Plain { function: unsafe extern "C" fn(*mut c_void), data: *mut c_void },
    /// The function of `cuStreamAddCallback`, which receives the stream and its status.
    #[allow(missing_docs)]
    WithStatus { function: unsafe extern "C" fn(*mut c_void, u32, *mut c_void), stream: u64, data: *mut c_void },
}

// SAFETY: the program passed the function and its data for use on a thread of the driver.
unsafe impl Send for HostFunction {}
// SAFETY: as above.
unsafe impl Sync for HostFunction {}

/// The limits of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelLimits {
    /// The enabled checks.
    pub checks: Checks,
    /// The maximum number of warp instructions.
    pub fuel: u64,
    /// The reaction to a finding.
    pub on_finding: OnFinding,
}

/// The bytes of the stack for each byte of the limit, which is that of machine code.
const FRAME_FACTOR: u32 = 4;

/// The smallest stack of a thread in bytes.
const MIN_STACK: u32 = 64 << 10;

impl StreamWork {
    /// Runs the operation. On error, the context fails permanently.
    pub fn run(
        &self,
        context: &Arc<Context>,
        limits: &KernelLimits,
        (log, findings): (&CallLog, &ProcessFindings),
    ) -> Result {
        match self {
            StreamWork::Launch(launch) => {
                // A graph has kernels of several contexts.
                let own = &launch.function.module.context;
                own.check()?;
                launch.run(own, limits, (log, findings)).inspect_err(|error| own.fail(error.clone()))
            }
            StreamWork::Copy(copy) => copy.run(),
            StreamWork::Fill(fill) => fill.run(),
            StreamWork::Free(address) => {
                context.memory().remove(*address);
                Ok(())
            }
            StreamWork::Record(event, call) => {
                event.happened(*call);
                Ok(())
            }
            StreamWork::Call(function) => {
                function.call();
                Ok(())
            }
            StreamWork::Graph(works) => works.iter().try_for_each(|work| work.run(context, limits, (log, findings))),
            StreamWork::Keep(_) => Ok(()),
        }
    }
}

impl HostFunction {
    /// Calls the function on this thread.
    pub fn call(self) {
        as_host_function(|| match self {
            // SAFETY: the program passed the function and its data for this call.
            HostFunction::Plain { function, data } => unsafe { function(data) },
            HostFunction::WithStatus { function, stream, data } => {
                let stream = std::ptr::without_provenance_mut(stream as usize);
                // SAFETY: as above.
                unsafe { function(stream, CUresult::CUDA_SUCCESS as u32, data) }
            }
        });
    }
}

impl ValidatedLaunch {
    fn run(&self, context: &Context, limits: &KernelLimits, (log, findings): (&CallLog, &ProcessFindings)) -> Result {
        let options = Options {
            checks: limits.checks,
            fuel: limits.fuel,
            cooperative: self.cooperative,
            // Frames of PTX are larger than those of machine code.
            stack: Some(context.stack_limit().saturating_mul(FRAME_FACTOR).max(MIN_STACK)),
            stack_limit: Some(context.stack_limit()),
            races: true,
            // A GPU stops at the first fault.
            limit: match (limits.on_finding, limits.checks) {
                (OnFinding::Continue, _) => MAX_FINDINGS,
                (OnFinding::Stop, Checks::All | Checks::Named(_)) => 64,
                (OnFinding::Stop, _) => 1,
            },
            ..Options::default()
        };
        if self.function.program.uses_heap() {
            context.prepare_heap()?;
        }
        let mut memory = context.memory();
        let (parts, heap) = memory.for_launch();
        let parts = DeviceMemory { parts, heap, objects: self.objects.clone() };
        let outcome = self.function.program.run_on(parts, self.grid, self.parameters.clone(), options);
        drop(memory);
        match outcome {
            Ok(Outcome { mut report, printed, asserted, .. }) => {
                show(&printed, &asserted);
                // A kernel normally stops at its first fault, so this truncation is not reported.
                report.truncated &= matches!(limits.checks, Checks::All | Checks::Named(_));
                context.memory().explain_freed(&mut report.findings);
                findings.suppress(&mut report);
                findings.record(&report);
                match limits.on_finding {
                    OnFinding::Stop => gpu_error(&report, log),
                    // The summary lists the findings.
                    OnFinding::Continue => Ok(()),
                }
            }
            // The grid was checked against the function before.
            Err(mismatch) => Err(Error::new(CUresult::CUDA_ERROR_LAUNCH_FAILED, mismatch.to_string())),
        }
    }
}

/// Writes what a kernel printed to standard output, and failed assertions to standard error, as
/// NVIDIA's driver does.
fn show(printed: &[u8], asserted: &str) {
    // A closed output is no reason to fail.
    if !printed.is_empty() {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(printed).and_then(|()| out.flush());
    }
    if !asserted.is_empty() {
        let _ = std::io::stderr().write_all(asserted.as_bytes());
    }
}

/// Returns the error that a GPU would report, if any.
fn gpu_error(report: &Report, log: &CallLog) -> Result {
    if report.findings.is_empty() {
        return Ok(());
    }
    let text = format!("kernel `{}`\n{report}", demangled(&report.kernel));
    match report.errors().next() {
        Some(finding) if is_stack_overflow(finding) => Err(Error::new(CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR, text)),
        Some(finding) => Err(Error::new(code(finding.check), text)),
        None => {
            log.line(&text);
            Ok(())
        }
    }
}

/// Returns the error code of a GPU for this violation. Traps, and violations that a GPU does not
/// detect, give a launch failure.
fn code(check: Check) -> CUresult {
    match check {
        Check::OutOfBounds | Check::ReadOnlyWrite => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        Check::Misaligned => CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        Check::WrongSpace => CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
        Check::FuelExhausted => CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
        Check::Assertion => CUresult::CUDA_ERROR_ASSERT,
        _ => CUresult::CUDA_ERROR_LAUNCH_FAILED,
    }
}
