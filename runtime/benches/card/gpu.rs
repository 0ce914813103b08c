//! An NVIDIA GPU, through the driver's own functions.

use cudarc::driver::{DriverError, result, sys};
use std::ffi::{CString, c_void};

/// The first GPU's context.
#[derive(Clone, Copy)]
pub struct Gpu {
    context: sys::CUcontext,
    device: sys::CUdevice,
}

// SAFETY: a context may be current to several threads at once.
unsafe impl Send for Gpu {}
// SAFETY: a context may be current to several threads at once.
unsafe impl Sync for Gpu {}

/// A module that is loaded, and its entry `kernel`.
pub struct LoadedModule {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

/// Memory of the GPU.
pub struct GpuMemory {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Gpu {
    /// Opens the first GPU.
    pub fn open() -> Result<Gpu, DriverError> {
        result::init()?;
        let device = result::device::get(0)?;
        // SAFETY: the device is one that the driver gave.
        let context = unsafe { result::primary_ctx::retain(device)? };
        Ok(Gpu { context, device })
    }

    /// Returns the GPU's name.
    pub fn name(self) -> Result<String, DriverError> {
        result::device::get_name(self.device)
    }

    /// Makes the context current to this thread.
    pub fn enter(self) -> Result<(), DriverError> {
        // SAFETY: the context is retained until the process ends.
        unsafe { result::ctx::set_current(self.context) }
    }

    /// Compiles a module and finds its entry `kernel`.
    pub fn load(self, text: &str) -> Result<LoadedModule, DriverError> {
        let text = CString::new(text).expect("PTX has no zero byte");
        // SAFETY: the image ends with a zero byte, and the context is current.
        let module = unsafe { result::module::load_data(text.as_ptr().cast())? };
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(module, c"kernel".to_owned())? };
        Ok(LoadedModule { module, function })
    }

    /// Allocates memory.
    pub fn allocate(self, bytes: usize) -> Result<GpuMemory, DriverError> {
        // SAFETY: the memory is not read before it is written.
        let address = unsafe { result::malloc_sync(bytes)? };
        Ok(GpuMemory { address, bytes })
    }
}

impl LoadedModule {
    /// Runs `blocks` blocks of `threads` threads on 64-bit parameters.
    ///
    /// # Safety
    /// The kernel takes these parameters, and the memory that it accesses is allocated.
    pub unsafe fn run(&self, [blocks, threads]: [u32; 2], parameters: &[u64]) -> Result<(), DriverError> {
        let mut pointers: Vec<*mut c_void> =
            parameters.iter().map(|p| std::ptr::from_ref(p).cast_mut().cast()).collect();
        // SAFETY: each parameter is 64 bits wide; the rest is the caller's promise.
        unsafe {
            let (grid, block) = ((blocks, 1, 1), (threads, 1, 1));
            result::launch_kernel(self.function, grid, block, 0, std::ptr::null_mut(), &mut pointers)?;
        }
        result::ctx::synchronize()
    }
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        // SAFETY: the module is loaded, and nothing of it runs.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

impl GpuMemory {
    /// Returns the address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Writes data to the beginning.
    pub fn write<T: bytemuck::Pod>(&mut self, data: &[T]) -> Result<(), DriverError> {
        assert!(size_of_val(data) <= self.bytes, "the data fits");
        // SAFETY: as many bytes are allocated.
        unsafe { result::memcpy_htod_sync(self.address, data) }
    }

    /// Reads data from the beginning.
    pub fn read<T: bytemuck::Pod>(&self, data: &mut [T]) -> Result<(), DriverError> {
        assert!(size_of_val(data) <= self.bytes, "the data fits");
        // SAFETY: as many bytes are allocated.
        unsafe { result::memcpy_dtoh_sync(data, self.address) }
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // SAFETY: the memory is allocated, and nothing uses it.
        let _ = unsafe { result::free_sync(self.address) };
    }
}
