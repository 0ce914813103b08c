//! What streams do: launches, copies, fills, and the rest.

use super::context::Context;
use super::engine::as_host_function;
use super::error::{Error, Result};
use super::event::Event;
use super::log::Log;
use super::memory::{Copy, Fill};
use super::module::Function;
use cudarc::driver::sys::CUresult;
use runtime::ptx::{Check, Checks, Grid, Options, Outcome, Report, Severity};
use std::ffi::c_void;
use std::sync::Arc;

/// A piece of work.
#[derive(Clone, Debug)]
pub enum Work {
    /// Runs a kernel.
    Launch(Launch),
    /// Copies.
    Copy(Copy),
    /// Writes the same over and over.
    Fill(Fill),
    /// Frees what begins there.
    Free(u64),
    /// Notes the time in an event, for the call of that number.
    Record(Arc<Event>, u64),
    /// Calls the program.
    Call(HostFunction),
    /// All of a graph, in its order.
    Graph(Arc<[Work]>),
}

/// A launch that was found good.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What runs.
    pub function: Arc<Function>,
    /// In which shape.
    pub grid: Grid,
    /// The bytes of its parameters.
    pub parameters: Vec<u8>,
}

/// A function of the program, to be called when its turn comes.
#[derive(Clone, Copy, Debug)]
pub enum HostFunction {
    /// Of `cuLaunchHostFunc`.
    #[allow(missing_docs)]
    Plain { function: unsafe extern "C" fn(*mut c_void), data: *mut c_void },
    /// Of `cuStreamAddCallback`, which is told the stream and how it goes.
    #[allow(missing_docs)]
    WithStatus { function: unsafe extern "C" fn(*mut c_void, u32, *mut c_void), stream: u64, data: *mut c_void },
}

// SAFETY: the program has given function and data to be used on a thread of the driver's.
unsafe impl Send for HostFunction {}
// SAFETY: as above.
unsafe impl Sync for HostFunction {}

/// What bounds a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// What is checked.
    pub checks: Checks,
    /// Warp instructions that it may run.
    pub fuel: u64,
}

impl Work {
    /// Does it. The error is the context's from then on.
    pub fn run(&self, context: &Arc<Context>, limits: &Limits, log: &Log) -> Result {
        match self {
            Work::Launch(launch) => launch.run(context, limits, log),
            Work::Copy(copy) => copy.run(),
            Work::Fill(fill) => fill.run(),
            Work::Free(address) => {
                context.memory().remove(*address);
                Ok(())
            }
            Work::Record(event, call) => {
                event.happened(*call);
                Ok(())
            }
            Work::Call(function) => {
                function.call();
                Ok(())
            }
            Work::Graph(works) => works.iter().try_for_each(|work| work.run(context, limits, log)),
        }
    }
}

impl HostFunction {
    fn call(self) {
        as_host_function(|| match self {
            // SAFETY: the program gave them for this call.
            HostFunction::Plain { function, data } => unsafe { function(data) },
            HostFunction::WithStatus { function, stream, data } => {
                let stream = std::ptr::without_provenance_mut(stream as usize);
                // SAFETY: as above.
                unsafe { function(stream, CUresult::CUDA_SUCCESS as u32, data) }
            }
        });
    }
}

impl Launch {
    fn run(&self, context: &Context, limits: &Limits, log: &Log) -> Result {
        let options = Options {
            checks: limits.checks,
            fuel: limits.fuel,
            // A card stops at the first.
            limit: if limits.checks == Checks::All { 64 } else { 1 },
            ..Options::default()
        };
        let mut memory = context.memory();
        let outcome = self.function.program.run_on(memory.residents(), self.grid, self.parameters.clone(), options);
        drop(memory);
        match outcome {
            Ok(Outcome { mut report, .. }) => {
                // That a kernel goes no further than its first fault goes without saying.
                report.truncated &= limits.checks == Checks::All;
                judge(&report, log)
            }
            // The shape was held against the function before.
            Err(mismatch) => Err(Error::new(CUresult::CUDA_ERROR_LAUNCH_FAILED, mismatch.to_string())),
        }
    }
}

/// The error that a card would give, if any.
fn judge(report: &Report, log: &Log) -> Result {
    let worst = report.findings.iter().find(|finding| finding.check.severity() == Severity::Error);
    match worst.map(|finding| code(finding.check)) {
        Some(code) => Err(Error::new(code, report.to_string())),
        None => {
            if !report.findings.is_empty() {
                log.line(&report.to_string());
            }
            Ok(())
        }
    }
}

/// What a card says to it. To what a card does not see, and to traps, it says that the launch failed.
fn code(check: Check) -> CUresult {
    match check {
        Check::OutOfBounds | Check::ReadOnlyWrite => CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        Check::Misaligned => CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        Check::WrongSpace => CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
        Check::FuelExhausted => CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
        _ => CUresult::CUDA_ERROR_LAUNCH_FAILED,
    }
}
