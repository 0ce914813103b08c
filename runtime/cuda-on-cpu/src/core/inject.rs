//! Fault injection: the calls that fail, and their error codes.
//!
//! ```text
//! 700@17                the 17th call of the process fails with CUDA_ERROR_ILLEGAL_ADDRESS
//! 2@cuMemAlloc_v2       every call of that function fails with CUDA_ERROR_OUT_OF_MEMORY
//! 2@cuMemAlloc_v2#3     only the third call of that function fails
//! ```
//!
//! A call with an injected fault has no other effect. An error that loses the context on a GPU
//! loses the current context here too.

use super::error::Error;
use cudarc::driver::sys::CUresult;
use runtime_simt::Lock;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The calls that fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultInjection {
    code: CUresult,
    /// The function's name; `None` matches every function.
    function: Option<String>,
    /// The number of the failing call, from 1; `None` means all calls.
    number: Option<u64>,
}

impl FromStr for FaultInjection {
    type Err = ();

    fn from_str(text: &str) -> Result<FaultInjection, ()> {
        let (code, which) = text.split_once('@').ok_or(())?;
        let code: u32 = code.parse().map_err(|_| ())?;
        let code = *CODES.iter().find(|known| **known as u32 == code).ok_or(())?;
        let number = |text: &str| text.parse().ok().filter(|n| *n > 0).ok_or(());
        let (function, number) = match which.split_once('#') {
            Some((function, n)) => (Some(function), Some(number(n)?)),
            None if which.starts_with("cu") => (Some(which), None),
            None => (None, Some(number(which)?)),
        };
        Ok(FaultInjection { code, function: function.map(str::to_string), number })
    }
}

/// The requested fault, and the number of matching calls since its request.
#[derive(Debug, Default)]
pub struct Injection {
    /// Whether a fault is requested; without one, calls do not take the lock.
    armed: AtomicBool,
    fault: Lock<Option<FaultInjection>>,
    /// The number of calls that matched the fault's function.
    calls: AtomicU64,
}

impl Injection {
    /// Sets the fault for the calls from now on, and resets the count.
    pub fn set(&self, fault: Option<FaultInjection>) {
        let mut current = self.fault.lock();
        self.armed.store(fault.is_some(), Ordering::Release);
        self.calls.store(0, Ordering::Relaxed);
        *current = fault;
    }

    /// Returns the number of calls that matched the fault's function, including failed calls.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns the injected error of a call to `call`, if any.
    pub fn injected_error(&self, call: &str) -> Option<Error> {
        if !self.armed.load(Ordering::Acquire) {
            return None;
        }
        let current = self.fault.lock();
        let fault = current.as_ref()?;
        if fault.function.as_ref().is_some_and(|function| function != call) {
            return None;
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if fault.number.is_some_and(|wanted| wanted != number) {
            return None;
        }
        Some(Error::new(fault.code, format!("an injected failure, at call {number}")))
    }
}

/// The codes that faults can use: errors of a driver that the caller did not cause, or that are
/// reported late.
const CODES: [CUresult; 28] = {
    use CUresult::*;
    [
        CUDA_ERROR_INVALID_VALUE,
        CUDA_ERROR_OUT_OF_MEMORY,
        CUDA_ERROR_NOT_INITIALIZED,
        CUDA_ERROR_DEINITIALIZED,
        CUDA_ERROR_NO_DEVICE,
        CUDA_ERROR_INVALID_CONTEXT,
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
        CUDA_ERROR_OPERATING_SYSTEM,
        CUDA_ERROR_INVALID_HANDLE,
        CUDA_ERROR_NOT_FOUND,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_NOT_PERMITTED,
        CUDA_ERROR_NOT_SUPPORTED,
        CUDA_ERROR_UNKNOWN,
    ]
};

/// Returns whether this error loses the context on a GPU.
pub fn is_sticky(code: CUresult) -> bool {
    matches!(code as u32, 214 | 220 | 700 | 702 | 710 | 714..=719)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(fault: &str, calls: &[&str]) -> Vec<bool> {
        let injection = Injection::default();
        injection.set(Some(fault.parse().unwrap()));
        calls.iter().map(|call| injection.injected_error(call).is_some()).collect()
    }

    #[test]
    fn faults_select_a_call_by_number_or_by_name() {
        assert_eq!(failing("700@2", &["cuInit", "cuMemAlloc_v2", "cuInit"]), [false, true, false]);
        assert_eq!(failing("2@cuInit", &["cuInit", "cuMemAlloc_v2", "cuInit"]), [true, false, true]);
        assert_eq!(failing("2@cuInit#2", &["cuInit", "cuMemAlloc_v2", "cuInit"]), [false, false, true]);
        for wrong in ["", "700", "0@1", "12345@1", "2@0", "2@cuInit#0", "x@1", "2@x"] {
            assert!(wrong.parse::<FaultInjection>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_fault_no_call_fails() {
        let injection = Injection::default();
        assert!(injection.injected_error("cuInit").is_none());
        injection.set(Some("2@1".parse().unwrap()));
        injection.set(None);
        assert!(injection.injected_error("cuInit").is_none());
        assert_eq!(injection.calls(), 0);
    }
}
