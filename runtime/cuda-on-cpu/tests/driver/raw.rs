//! The raw driver API, for calls that cudarc's safe API prevents.

#![allow(dead_code)]

use crate::common::PTX;
use cudarc::driver::sys::{self, CUresult, CUresult::*};
use std::ffi::{CString, c_void};
use std::ptr::{self, null_mut};

/// A device address.
pub type Pointer = sys::CUdeviceptr;

/// Makes a call, and asserts its code. Every call is unsafe because of its arguments. Tests of
/// rejections pass invalid arguments on purpose, except for pointers that are dereferenced.
macro_rules! gives {
    ($code:ident, $($call:tt)*) => {
        // SAFETY: result pointers are valid or null; handles and device addresses may have any
        // value.
        assert_eq!(unsafe { cudarc::driver::sys::$($call)* }, $code, "{}", stringify!($($call)*))
    };
}
pub(crate) use gives;

/// Makes the primary context current, and returns it.
pub fn context() -> sys::CUcontext {
    let mut context = null_mut();
    gives!(CUDA_SUCCESS, cuInit(0));
    gives!(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&mut context, 0));
    gives!(CUDA_SUCCESS, cuCtxSetCurrent(context));
    context
}

/// Makes a new context current, and returns it.
pub fn own_context() -> sys::CUcontext {
    let mut context = null_mut();
    gives!(CUDA_SUCCESS, cuInit(0));
    gives!(CUDA_SUCCESS, cuCtxCreate_v2(&mut context, 0, 0));
    context
}

/// Loads PTX.
pub fn load(text: &str) -> (CUresult, sys::CUmodule) {
    let (text, mut module) = (CString::new(text).unwrap(), null_mut());
    // SAFETY: the text ends with NUL.
    (unsafe { sys::cuModuleLoadData(&mut module, text.as_ptr().cast()) }, module)
}

/// Loads the tests' module again, and returns one of its kernels.
pub fn function(name: &str) -> sys::CUfunction {
    let (code, module) = load(PTX);
    assert_eq!(code, CUDA_SUCCESS);
    let (name, mut function) = (CString::new(name).unwrap(), null_mut());
    gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

/// Allocates device memory.
pub fn allocate(bytes: usize) -> Pointer {
    let mut address = 0;
    gives!(CUDA_SUCCESS, cuMemAlloc_v2(&mut address, bytes));
    address
}

/// Launches one thread with these parameters.
pub fn launch_in(stream: sys::CUstream, function: sys::CUfunction, parameters: &mut [u64]) -> CUresult {
    let mut pointers: Vec<*mut c_void> = parameters.iter_mut().map(|p| ptr::from_mut(p).cast()).collect();
    // SAFETY: the number of parameters is the kernel's, and none is larger than 8 bytes.
    unsafe { sys::cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, pointers.as_mut_ptr(), null_mut()) }
}

/// Launches one thread with these parameters in the default stream.
pub fn launch(function: sys::CUfunction, parameters: &mut [u64]) -> CUresult {
    launch_in(null_mut(), function, parameters)
}

/// Reads `N` bytes of device memory.
pub fn read<const N: usize>(address: Pointer) -> [u8; N] {
    let mut bytes = [0u8; N];
    gives!(CUDA_SUCCESS, cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, N));
    bytes
}

/// Creates a stream.
pub fn stream() -> sys::CUstream {
    let mut stream = null_mut();
    gives!(CUDA_SUCCESS, cuStreamCreate(&mut stream, 1));
    stream
}

/// Creates an event.
pub fn event() -> sys::CUevent {
    let mut event = null_mut();
    gives!(CUDA_SUCCESS, cuEventCreate(&mut event, 0));
    event
}
