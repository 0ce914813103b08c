//! Errors of calls: a CUDA error code, and a reason in words for the log.

use cudarc::driver::sys::CUresult;
use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;

/// The error of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The code that the call returns.
    pub code: CUresult,
    /// The reason, for the log.
    pub why: Cow<'static, str>,
}

/// `Result` with [`Error`] as its default error type.
pub type Result<T = ()> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error from a code and a reason.
    pub fn new(code: CUresult, why: impl Into<Cow<'static, str>>) -> Error {
        Error { code, why: why.into() }
    }

    /// Creates a `CUDA_ERROR_INVALID_VALUE`.
    pub fn value(why: impl Into<Cow<'static, str>>) -> Error {
        Error::new(CUresult::CUDA_ERROR_INVALID_VALUE, why)
    }

    /// Creates a `CUDA_ERROR_NOT_SUPPORTED`, for features that only the real driver has.
    pub fn unsupported(why: impl Into<Cow<'static, str>>) -> Error {
        Error::new(CUresult::CUDA_ERROR_NOT_SUPPORTED, why)
    }

    /// Creates a `CUDA_ERROR_NOT_READY`, which is a query result rather than an error.
    pub fn not_ready() -> Error {
        Error::new(CUresult::CUDA_ERROR_NOT_READY, "")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name(self.code as u32).unwrap_or_default().to_string_lossy();
        if self.why.is_empty() { f.write_str(&name) } else { write!(f, "{name}: {}", self.why) }
    }
}

impl std::error::Error for Error {}

/// Returns the name of a code, such as `CUDA_ERROR_INVALID_VALUE`.
pub fn name(code: u32) -> Option<&'static CStr> {
    find(code).map(|(_, name, _)| *name)
}

/// Returns the description of a code.
pub fn description(code: u32) -> Option<&'static CStr> {
    find(code).map(|(_, _, text)| *text)
}

fn find(code: u32) -> Option<&'static (u32, &'static CStr, &'static CStr)> {
    CODES.binary_search_by_key(&code, |(code, ..)| *code).ok().map(|index| &CODES[index])
}

/// All codes of cuda.h up to CUDA 12.9, ascending, with this project's descriptions.
const CODES: &[(u32, &CStr, &CStr)] = &[
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"the driver is not initialized"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"the driver is shutting down"),
    (5, c"CUDA_ERROR_PROFILER_DISABLED", c"the profiler is disabled"),
    (6, c"CUDA_ERROR_PROFILER_NOT_INITIALIZED", c"the profiler is not initialized"),
    (7, c"CUDA_ERROR_PROFILER_ALREADY_STARTED", c"the profiler has been started"),
    (8, c"CUDA_ERROR_PROFILER_ALREADY_STOPPED", c"the profiler has been stopped"),
    (34, c"CUDA_ERROR_STUB_LIBRARY", c"the library is a stub"),
    (36, c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", c"the call needs a newer driver"),
    (46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"the device is not available"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"there is no CUDA device"),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (102, c"CUDA_ERROR_DEVICE_NOT_LICENSED", c"the device is not licensed"),
    (200, c"CUDA_ERROR_INVALID_IMAGE", c"the device image is invalid"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (202, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT", c"the context is current already"),
    (205, c"CUDA_ERROR_MAP_FAILED", c"mapping failed"),
    (206, c"CUDA_ERROR_UNMAP_FAILED", c"unmapping failed"),
    (207, c"CUDA_ERROR_ARRAY_IS_MAPPED", c"the array is mapped"),
    (208, c"CUDA_ERROR_ALREADY_MAPPED", c"the resource is mapped already"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image for the device"),
    (210, c"CUDA_ERROR_ALREADY_ACQUIRED", c"the resource is acquired already"),
    (211, c"CUDA_ERROR_NOT_MAPPED", c"the resource is not mapped"),
    (212, c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", c"the resource is not mapped as an array"),
    (213, c"CUDA_ERROR_NOT_MAPPED_AS_POINTER", c"the resource is not mapped as a pointer"),
    (214, c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error"),
    (215, c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"the limit is not supported"),
    (216, c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", c"another thread uses the context"),
    (217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"no peer access between these devices"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"the PTX does not compile"),
    (219, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", c"invalid graphics context"),
    (220, c"CUDA_ERROR_NVLINK_UNCORRECTABLE", c"uncorrectable NVLink error"),
    (221, c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", c"the PTX compiler was not found"),
    (222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the driver does not support this version of PTX"),
    (223, c"CUDA_ERROR_JIT_COMPILATION_DISABLED", c"compiling PTX is disabled"),
    (224, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", c"the execution affinity is not supported"),
    (225, c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", c"synchronizing on the device is not supported"),
    (226, c"CUDA_ERROR_CONTAINED", c"a contained error"),
    (300, c"CUDA_ERROR_INVALID_SOURCE", c"the kernel's source is invalid"),
    (301, c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found"),
    (302, c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", c"a symbol of a shared object was not found"),
    (303, c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", c"a shared object could not be initialized"),
    (304, c"CUDA_ERROR_OPERATING_SYSTEM", c"a call of the operating system failed"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (401, c"CUDA_ERROR_ILLEGAL_STATE", c"the resource is not in a state for this operation"),
    (402, c"CUDA_ERROR_LOSSY_QUERY", c"the query would lose information"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"no such symbol"),
    (600, c"CUDA_ERROR_NOT_READY", c"not ready"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access"),
    (701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"the launch requests too many resources"),
    (702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"the launch ran too long"),
    (703, c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", c"the launch uses another way of texturing"),
    (704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is enabled already"),
    (705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access is not enabled"),
    (708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"the primary context is active"),
    (709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"the context has been destroyed"),
    (710, c"CUDA_ERROR_ASSERT", c"an assertion on the device failed"),
    (711, c"CUDA_ERROR_TOO_MANY_PEERS", c"too many peers"),
    (712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"the host memory is registered already"),
    (713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"the host memory is not registered"),
    (714, c"CUDA_ERROR_HARDWARE_STACK_ERROR", c"a stack error of the hardware"),
    (715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"an illegal instruction"),
    (716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"a misaligned address"),
    (717, c"CUDA_ERROR_INVALID_ADDRESS_SPACE", c"an address of another address space"),
    (718, c"CUDA_ERROR_INVALID_PC", c"an invalid program counter"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"the launch failed"),
    (720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"too many blocks for a cooperative launch"),
    (800, c"CUDA_ERROR_NOT_PERMITTED", c"not permitted"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"not supported"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY", c"the system is not ready"),
    (803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"the versions of the driver and of its kernel module differ"),
    (804, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", c"no forward compatibility on the device"),
    (805, c"CUDA_ERROR_MPS_CONNECTION_FAILED", c"the MPS server cannot be reached"),
    (806, c"CUDA_ERROR_MPS_RPC_FAILURE", c"a call of the MPS server failed"),
    (807, c"CUDA_ERROR_MPS_SERVER_NOT_READY", c"the MPS server is not ready"),
    (808, c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", c"too many clients of MPS"),
    (809, c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", c"too many connections of MPS"),
    (810, c"CUDA_ERROR_MPS_CLIENT_TERMINATED", c"the MPS client was ended"),
    (811, c"CUDA_ERROR_CDP_NOT_SUPPORTED", c"no launches from the device"),
    (812, c"CUDA_ERROR_CDP_VERSION_MISMATCH", c"the versions for launches from the device differ"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"not permitted while a stream is capturing"),
    (901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"the capture was invalidated before"),
    (902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"two captures would be merged"),
    (903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"the capture was not begun in this stream"),
    (904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"a stream of the capture was not joined"),
    (905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"a dependency would leave the capture"),
    (906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"the capture would depend on the legacy stream"),
    (907, c"CUDA_ERROR_CAPTURED_EVENT", c"the event was recorded in a capture"),
    (908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"another thread began the capture"),
    (909, c"CUDA_ERROR_TIMEOUT", c"the wait timed out"),
    (910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"the graph differs too much for an update"),
    (911, c"CUDA_ERROR_EXTERNAL_DEVICE", c"an error of an external device"),
    (912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"an invalid size of a cluster"),
    (913, c"CUDA_ERROR_FUNCTION_NOT_LOADED", c"the function is not loaded"),
    (914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"an invalid type of resource"),
    (915, c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", c"an invalid configuration of a resource"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_match_the_names_of_the_bindings() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for code in [
            CUresult::CUDA_SUCCESS,
            CUresult::CUDA_ERROR_INVALID_VALUE,
            CUresult::CUDA_ERROR_INVALID_CONTEXT,
            CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
            CUresult::CUDA_ERROR_INVALID_PTX,
            CUresult::CUDA_ERROR_INVALID_HANDLE,
            CUresult::CUDA_ERROR_NOT_FOUND,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
            CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
            CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
            CUresult::CUDA_ERROR_CAPTURED_EVENT,
            CUresult::CUDA_ERROR_UNKNOWN,
        ] {
            assert_eq!(name(code as u32).unwrap().to_str().unwrap(), format!("{code:?}"));
        }
        assert_eq!(name(35), None);
        assert_eq!(description(2), Some(c"out of memory"));
    }
}
