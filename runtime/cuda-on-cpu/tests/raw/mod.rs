//! The driver API as it is, for tests that call it with what cudarc's safe API would not.

#![allow(dead_code)]

use crate::common::PTX;
use cudarc::driver::sys::{self, CUresult, CUresult::*};
use std::ffi::{CString, c_void};
use std::ptr::{self, null_mut};

/// An address of the device.
pub type Pointer = sys::CUdeviceptr;

/// A call, and the code that it must give. Every call is unsafe for what it is given, which in tests of refusals is wrong on
/// purpose but for pointers that are followed.
macro_rules! gives {
    ($code:ident, $($call:tt)*) => {
        // SAFETY: the pointers to results are good or null; handles and device addresses may be anything.
        assert_eq!(unsafe { cudarc::driver::sys::$($call)* }, $code, "{}", stringify!($($call)*))
    };
}
pub(crate) use gives;

/// The primary context, current.
pub fn context() -> sys::CUcontext {
    let mut context = null_mut();
    gives!(CUDA_SUCCESS, cuInit(0));
    gives!(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&mut context, 0));
    gives!(CUDA_SUCCESS, cuCtxSetCurrent(context));
    context
}

/// A context of the test's own, current.
pub fn own_context() -> sys::CUcontext {
    let mut context = null_mut();
    gives!(CUDA_SUCCESS, cuInit(0));
    gives!(CUDA_SUCCESS, cuCtxCreate_v2(&mut context, 0, 0));
    context
}

/// Loads PTX.
pub fn load(text: &str) -> (CUresult, sys::CUmodule) {
    let (text, mut module) = (CString::new(text).unwrap(), null_mut());
    // SAFETY: a text that ends with NUL.
    (unsafe { sys::cuModuleLoadData(&mut module, text.as_ptr().cast()) }, module)
}

/// A kernel of the tests' module, which is loaded anew.
pub fn function(name: &str) -> sys::CUfunction {
    let (code, module) = load(PTX);
    assert_eq!(code, CUDA_SUCCESS);
    let (name, mut function) = (CString::new(name).unwrap(), null_mut());
    gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

/// New memory.
pub fn allocate(bytes: usize) -> Pointer {
    let mut address = 0;
    gives!(CUDA_SUCCESS, cuMemAlloc_v2(&mut address, bytes));
    address
}

/// Launches with those parameters, one thread.
pub fn launch_in(stream: sys::CUstream, function: sys::CUfunction, parameters: &mut [u64]) -> CUresult {
    let mut pointers: Vec<*mut c_void> = parameters.iter_mut().map(|p| ptr::from_mut(p).cast()).collect();
    // SAFETY: as many parameters as the kernel has, none larger than 8 bytes.
    unsafe { sys::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, pointers.as_mut_ptr(), null_mut()) }
}

/// The same in the default stream.
pub fn launch(function: sys::CUfunction, parameters: &mut [u64]) -> CUresult {
    launch_in(null_mut(), function, parameters)
}

/// What is there.
pub fn read<const N: usize>(address: Pointer) -> [u8; N] {
    let mut bytes = [0u8; N];
    gives!(CUDA_SUCCESS, cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, N));
    bytes
}

/// A new stream.
pub fn stream() -> sys::CUstream {
    let mut stream = null_mut();
    gives!(CUDA_SUCCESS, cuStreamCreate(&mut stream, 1));
    stream
}

/// A new event.
pub fn event() -> sys::CUevent {
    let mut event = null_mut();
    gives!(CUDA_SUCCESS, cuEventCreate(&mut event, 0));
    event
}
