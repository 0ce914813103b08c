//! Execution of kernels on a GPU, directly through its driver, at two optimization levels of its
//! JIT.
//!
//! Only kernels that the interpreters accepted run here: the device has no other protection.

use crate::batch::merged;
use crate::data::Argument;
use crate::run::{Executor, Failure, Good, Parameter, compare, parameters};
use cudarc::driver::sys::{self, CUjit_option, CUresult};
use std::ffi::{CString, c_void};
use std::ptr::{self, null_mut};

/// GPU with memory for one launch at a time.
pub struct Gpu {
    context: sys::CUcontext,
    name: String,
}

// SAFETY: any thread may use a context after making it current, which each call does.
unsafe impl Send for Gpu {}
// SAFETY: any thread may use a context after making it current, which each call does.
unsafe impl Sync for Gpu {}

/// Converts a driver result code to an error message.
fn good(what: &str, code: CUresult) -> Result<(), String> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{what}: {code:?}")) }
}

/// A module, unloaded when dropped.
struct Module(sys::CUmodule);

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module was loaded and is dropped once.
        let _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

/// Device memory, freed when dropped.
struct GpuMemory(sys::CUdeviceptr);

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated and is dropped once.
        let _ = unsafe { sys::cuMemFree_v2(self.0) };
    }
}

/// Alignment of device addresses in bytes.
const ALIGNMENT: usize = 256;

impl Gpu {
    /// Opens the first GPU.
    pub fn open() -> Result<Gpu, String> {
        // SAFETY: the initializers of the driver library have no harmful effects.
        if !unsafe { sys::is_culib_present() } {
            return Err("there is no driver library".to_string());
        }
        let (mut device, mut context, mut name) = (0, null_mut(), [0u8; 128]);
        // SAFETY: each result pointer refers to a buffer of the stated size.
        unsafe {
            good("cuInit", sys::cuInit(0))?;
            good("cuDeviceGet", sys::cuDeviceGet(&mut device, 0))?;
            good("cuDeviceGetName", sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device))?;
            good("cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
        }
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(Gpu { context, name: String::from_utf8_lossy(&name[..end]).into_owned() })
    }

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs kernels on which the interpreters agree, all in one module, at both levels. Returns the
    /// failures by kernel index, or an error of the driver itself.
    pub fn run(&self, goods: &[&Good]) -> Result<Vec<(usize, Failure)>, String> {
        // SAFETY: the context lives until the process ends.
        good("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })?;
        let text = merged(goods.iter().map(|good| good.compiled.ptx.as_str()))?;
        let mut wrong = Vec::new();
        for executor in [Executor::Gpu, Executor::GpuUnoptimized] {
            let module = self.load(&text, executor)?;
            for (n, kernel) in goods.iter().enumerate() {
                let left =
                    self.launch(&module, kernel).map_err(|said| format!("{}: {said}", kernel.compiled.lowered.name))?;
                if let Err(failure) = compare(executor, &kernel.left, &left) {
                    wrong.push((n, failure));
                }
            }
        }
        Ok(wrong)
    }

    fn load(&self, text: &str, executor: Executor) -> Result<Module, String> {
        let text = CString::new(text).map_err(|e| e.to_string())?;
        let mut log = vec![0u8; 16 << 10];
        let mut options = vec![CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = vec![log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(log.len())];
        if executor == Executor::GpuUnoptimized {
            options.push(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL);
            values.push(ptr::without_provenance_mut(0));
        }
        let mut module = null_mut();
        // SAFETY: the text ends with a NUL; each option has a value of its type, and all outlive
        // the call.
        let code = unsafe {
            let (count, options) = (options.len() as u32, options.as_mut_ptr());
            sys::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), count, options, values.as_mut_ptr())
        };
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        good(&format!("cuModuleLoadDataEx: {}", String::from_utf8_lossy(&log[..end])), code)?;
        Ok(Module(module))
    }

    /// Runs a kernel and returns its arguments after the launch.
    fn launch(&self, module: &Module, kernel: &Good) -> Result<Vec<Argument>, String> {
        let lowered = &kernel.compiled.lowered;
        let mut function = null_mut();
        let name = CString::new(lowered.instance.as_str()).map_err(|e| e.to_string())?;
        // SAFETY: the module is loaded, and the name ends with a NUL.
        good("cuModuleGetFunction", unsafe { sys::cuModuleGetFunction(&mut function, module.0, name.as_ptr()) })?;
        // One allocation holds all arguments consecutively.
        let (mut host, mut starts) = (Vec::new(), Vec::new());
        for argument in &kernel.arguments {
            host.resize(host.len().next_multiple_of(ALIGNMENT), 0u8);
            starts.push(host.len());
            if let Argument::Memory { bytes, .. } = argument {
                host.extend(bytes);
            }
        }
        let mut address = 0;
        // SAFETY: `address` is valid for writes.
        good("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&mut address, host.len().max(1)) })?;
        let memory = GpuMemory(address);
        // SAFETY: both sides have the same number of bytes.
        good("cuMemcpyHtoD", unsafe { sys::cuMemcpyHtoD_v2(memory.0, host.as_ptr().cast(), host.len()) })?;
        let mut values: Vec<u64> = parameters(lowered, &kernel.arguments)
            .into_iter()
            .map(|parameter| match parameter {
                Parameter::Bits(bits, _) => bits,
                Parameter::Address(argument) => memory.0 + starts[argument] as u64,
            })
            .collect();
        let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|value| ptr::from_mut(value).cast()).collect();
        let ([x, y, z], grid) = (kernel.compiled.block, kernel.compiled.grid);
        // SAFETY: each parameter has a pointer to a little-endian value; the interpreters accepted
        // the kernel with the same arguments.
        let code = unsafe {
            sys::cuLaunchKernel(function, grid, 1, 1, x, y, z, 0, null_mut(), pointers.as_mut_ptr(), null_mut())
        };
        good("cuLaunchKernel", code)?;
        // SAFETY: both sides have the same number of bytes; the copy waits for the kernel.
        good("after the launch", unsafe { sys::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), memory.0, host.len()) })?;
        let mut left = kernel.arguments.clone();
        for (argument, start) in left.iter_mut().zip(starts) {
            if let Argument::Memory { bytes, .. } = argument {
                let length = bytes.len();
                bytes.copy_from_slice(&host[start..start + length]);
            }
        }
        Ok(left)
    }
}
