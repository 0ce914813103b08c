//! Functions of libraries and their kernels.

use super::module::{LoadOptions, image_text, read_file};
use super::{check_result_pointer, exports, handle, pointer, put, put_if, text};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::module::ModuleFunction;
use cudarc::driver::sys;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

/// The handle of a library.
type CUlibrary = *mut c_void;

/// The handle of a kernel.
type CUkernel = *mut c_void;

/// Loads PTX as a library, and writes its handle and the logs.
///
/// # Safety
/// `to` is null or valid for writes, and the pointers in the options are valid.
unsafe fn load(driver: &Driver, to: *mut CUlibrary, ptx: &str, options: &LoadOptions) -> Result {
    check_result_pointer(to)?;
    let mut log = String::new();
    let loaded = driver.load_library(ptx, &mut log);
    // SAFETY: guaranteed by the caller.
    unsafe {
        options.logs(&log);
        put(to, pointer(loaded?.handle))
    }
}

/// Returns the function of a kernel in the current context.
fn function_of(driver: &Driver, kernel: CUkernel) -> Result<Arc<ModuleFunction>> {
    let kernel = driver.kernels.get(handle(kernel))?;
    driver.function_of(&kernel, &driver.current()?)
}

exports! {
    fn cuLibraryLoadData(
        library: *mut CUlibrary,
        code: *const c_void,
        names: *mut c_int,
        values: *mut *mut c_void,
        count: c_uint,
        _library_names: *mut c_int,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { load(driver, library, &image_text(code)?, &LoadOptions::new(count, names, values)?) }
    };

    fn cuLibraryLoadFromFile(
        library: *mut CUlibrary,
        path: *const c_char,
        names: *mut c_int,
        values: *mut *mut c_void,
        count: c_uint,
        _library_names: *mut c_int,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { load(driver, library, &read_file(text(path)?)?, &LoadOptions::new(count, names, values)?) }
    };

    fn cuLibraryUnload(library: CUlibrary) = call |driver| {
        driver.unload_library(handle(library))
    };

    fn cuLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const c_char) = call |driver| {
        check_result_pointer(kernel)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let found = driver.kernel(handle(library), unsafe { text(name)? })?;
        // SAFETY: as above.
        unsafe { put(kernel, pointer(found.handle)) }
    };

    fn cuLibraryGetKernelCount(count: *mut c_uint, library: CUlibrary) = call |driver| {
        let library = driver.libraries.get(handle(library))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(count, library.entries.len() as c_uint) }
    };

    fn cuLibraryEnumerateKernels(to: *mut CUkernel, room: c_uint, library: CUlibrary) = call |driver| {
        check_result_pointer(to)?;
        let known = driver.libraries.get(handle(library))?;
        for (index, name) in known.entries.iter().take(room as usize).enumerate() {
            let kernel = driver.kernel(known.handle, name)?;
            // SAFETY: the caller's array has room for `room` handles, as cuda.h requires.
            unsafe { put(to.wrapping_add(index), pointer(kernel.handle))? };
        }
        Ok(())
    };

    fn cuLibraryGetModule(module: *mut sys::CUmodule, library: CUlibrary) = call |driver| {
        check_result_pointer(module)?;
        let found = driver.module_of(handle(library), &driver.current()?)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(module, pointer(found.handle)) }
    };

    fn cuLibraryGetUnifiedFunction(to: *mut *mut c_void, library: CUlibrary, name: *const c_char) = call |driver| {
        check_result_pointer(to)?;
        driver.module_of(handle(library), &driver.current()?)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let name = unsafe { text(name)? };
        // A function has one address for host and device only in machine code. NVIDIA's driver 580
        // returns this code for every function of PTX.
        Err(Error::value(format!("the library has no unified function `{name}`")))
    };

    fn cuLibraryGetGlobal(
        address: *mut sys::CUdeviceptr,
        bytes: *mut usize,
        library: CUlibrary,
        name: *const c_char,
    ) as cuLibraryGetManaged = call |driver| {
        let module = driver.module_of(handle(library), &driver.current()?)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let found = module.variable(unsafe { text(name)? })?;
        // SAFETY: as above.
        unsafe {
            put_if(address, found.0);
            put_if(bytes, found.1 as usize);
        }
        Ok(())
    };

    fn cuKernelGetFunction(function: *mut sys::CUfunction, kernel: CUkernel) = call |driver| {
        check_result_pointer(function)?;
        let found = function_of(driver, kernel)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(function, pointer(found.handle)) }
    };

    fn cuKernelGetLibrary(library: *mut CUlibrary, kernel: CUkernel) = call |driver| {
        let kernel = driver.kernels.get(handle(kernel))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(library, pointer(kernel.library)) }
    };

    fn cuKernelGetName(name: *mut *const c_char, kernel: CUkernel) = call |driver| {
        let kernel = driver.kernels.get(handle(kernel))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires. The kernel owns the text,
        // which thus lives as long as the kernel.
        unsafe { put(name, kernel.c_name.as_ptr()) }
    };

    fn cuKernelGetAttribute(
        value: *mut c_int,
        attribute: c_int,
        kernel: CUkernel,
        device: sys::CUdevice,
    ) = call |driver| {
        driver.device(device)?;
        let found = function_of(driver, kernel)?.attribute(attribute)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(value, found) }
    };

    fn cuKernelSetAttribute(
        attribute: c_int,
        value: c_int,
        kernel: CUkernel,
        device: sys::CUdevice,
    ) = call |driver| {
        driver.device(device)?;
        function_of(driver, kernel)?.set_attribute(attribute, value)
    };

    fn cuKernelSetCacheConfig(kernel: CUkernel, _config: c_uint, device: sys::CUdevice) = call |driver| {
        driver.device(device)?;
        driver.kernels.get(handle(kernel)).map(|_| ())
    };

    fn cuKernelGetParamCount(kernel: CUkernel, count: *mut usize) = call |driver| {
        let function = function_of(driver, kernel)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(count, function.program.slots().len()) }
    };

    fn cuKernelGetParamInfo(
        kernel: CUkernel,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) = call |driver| {
        let function = function_of(driver, kernel)?;
        let slot = function.program.slots().nth(index);
        let slot = slot.ok_or_else(|| Error::value(format!("`{}` has no parameter {index}", function.name)))?;
        check_result_pointer(offset)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put(offset, slot.offset)?;
            put_if(size, slot.bytes);
        }
        Ok(())
    };
}
