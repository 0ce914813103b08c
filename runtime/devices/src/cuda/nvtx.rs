//! Ranges for NVIDIA's profilers: submitted work appears by name on their timeline, if NVIDIA's
//! library is found.
//!
//! The library is libnvToolsExt, part of CUDA's toolkits up to 12.8. The library is loaded if a
//! profiler has started the program, which sets `NVTX_INJECTION64_PATH`, or if `KERNELS_NVTX` is
//! set. Otherwise names cost nothing. A missing library is not reported.

use super::operation::StreamOperation;
use libloading::Library;
use std::ffi::{CString, c_char, c_int};

const LIBRARY_NAMES: [&str; 3] = ["libnvToolsExt.so.1", "libnvToolsExt.so", "nvToolsExt64_1.dll"];

/// The environment variables that request ranges.
const REQUEST_VARIABLES: [&str; 2] = ["KERNELS_NVTX", "NVTX_INJECTION64_PATH"];

/// The functions of the library.
pub(super) struct Nvtx {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

/// A range, which ends when this guard is dropped. Ranges belong to a thread, and nest.
pub(super) struct NvtxRange<'n>(&'n Nvtx);

impl Nvtx {
    /// Loads the library if it is requested and found. The library stays loaded.
    pub fn load() -> Option<Nvtx> {
        if !REQUEST_VARIABLES.iter().any(|variable| std::env::var_os(variable).is_some()) {
            return None;
        }
        // SAFETY: loading NVIDIA's library runs its initializers, as intended.
        let library = LIBRARY_NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
        // SAFETY: these are the functions' signatures, by nvToolsExt.h.
        let nvtx =
            unsafe { Nvtx { push: *library.get(c"nvtxRangePushA").ok()?, pop: *library.get(c"nvtxRangePop").ok()? } };
        // The functions are called for as long as the process lives.
        std::mem::forget(library);
        Some(nvtx)
    }

    /// Opens a range that is named after an operation.
    pub fn range(&self, operation: StreamOperation<'_>) -> NvtxRange<'_> {
        let name = CString::new(operation.to_string()).unwrap_or_default();
        // SAFETY: a text that ends with a NUL, which the library copies.
        unsafe { (self.push)(name.as_ptr()) };
        NvtxRange(self)
    }
}

impl Drop for NvtxRange<'_> {
    fn drop(&mut self) {
        // SAFETY: the function has no arguments, and ends a range that this thread has begun.
        unsafe { (self.0.pop)() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::ffi::CStr;

    thread_local! {
        static MARKS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    unsafe extern "C" fn push(name: *const c_char) -> c_int {
        // SAFETY: the caller's text ends with a NUL.
        let name = unsafe { CStr::from_ptr(name) };
        MARKS.with_borrow_mut(|marks| marks.push(name.to_str().unwrap().to_string()));
        0
    }

    unsafe extern "C" fn pop() -> c_int {
        MARKS.with_borrow_mut(|marks| marks.push("end".into()));
        0
    }

    #[test]
    fn a_range_has_the_operations_name_and_is_closed() {
        let nvtx = Nvtx { push, pop };
        let range = nvtx.range(StreamOperation::Fill { bytes: 16, at: 0x100 });
        MARKS.with_borrow(|marks| assert_eq!(*marks, ["filling 16 bytes at 0x100"]));
        drop(range);
        MARKS.with_borrow(|marks| assert_eq!(marks[1..], ["end"]));
    }
}
