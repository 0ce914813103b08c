//! Functions of modules: loading with JIT options, and lookup.

use super::{exports, handle, pointer, put, put_if, text, wanted};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::image;
use cudarc::driver::sys::{self, CUjit_option as JitOption, CUresult};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::slice;

/// The options of a load. Each slot holds a number or a pointer, depending on the option.
struct Options<'a> {
    names: &'a [c_int],
    values: *mut *mut c_void,
}

impl<'a> Options<'a> {
    /// # Safety
    /// `names` and `values` are valid for `count` options.
    unsafe fn new(count: c_uint, names: *mut c_int, values: *mut *mut c_void) -> Result<Options<'a>> {
        if count == 0 {
            return Ok(Options { names: &[], values });
        }
        if names.is_null() || values.is_null() {
            return Err(Error::value("the options of the module are null"));
        }
        // SAFETY: guaranteed by the caller.
        let names = unsafe { slice::from_raw_parts(names, count as usize) };
        // CUDA 12.9 has the options 0 to 33.
        match names.iter().find(|name| !(0..34).contains(*name)) {
            Some(name) => Err(Error::value(format!("unknown option of the JIT compiler: {name}"))),
            None => Ok(Options { names, values }),
        }
    }

    /// Returns the slot of an option, if the caller passed the option.
    fn slot(&self, option: JitOption) -> Option<*mut *mut c_void> {
        let index = self.names.iter().position(|name| *name == option as c_int)?;
        Some(self.values.wrapping_add(index))
    }

    /// Writes a log to its buffer, truncated to the buffer's size. Also writes the length to the
    /// slot of the size.
    ///
    /// # Safety
    /// A buffer is valid for writes of its given size.
    unsafe fn log(&self, buffer: JitOption, size: JitOption, text: &str) {
        let (Some(buffer), Some(size)) = (self.slot(buffer), self.slot(size)) else { return };
        // SAFETY: the caller's slots are valid; the size is the number in its slot.
        let (to, room) = unsafe { (*buffer, (*size).addr() as c_uint as usize) };
        if to.is_null() || room == 0 {
            return;
        }
        let kept = &text.as_bytes()[..text.len().min(room - 1)];
        // SAFETY: the buffer has room for these bytes and one more.
        unsafe {
            std::ptr::copy_nonoverlapping(kept.as_ptr(), to.cast::<u8>(), kept.len());
            to.cast::<u8>().add(kept.len()).write(0);
            *size = std::ptr::without_provenance_mut(kept.len() + usize::from(!kept.is_empty()));
        }
    }

    /// # Safety
    /// The requirements of `log` hold.
    unsafe fn logs(&self, error: &str) {
        use sys::CUjit_option::*;
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.log(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
            self.log(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
        }
        if let Some(slot) = self.slot(CU_JIT_WALL_TIME) {
            // Milliseconds as a float's bits. SAFETY: the caller's slot is valid.
            unsafe { *slot = std::ptr::without_provenance_mut(0) };
        }
    }
}

/// Returns the text of an image in memory.
///
/// # Safety
/// `image` is null, machine code, or a text that ends with NUL.
unsafe fn image_text<'a>(image: *const c_void) -> Result<std::borrow::Cow<'a, str>> {
    if image.is_null() {
        return Err(Error::value("the image is null"));
    }
    // Machine code may have no NUL, so the first four bytes are read one at a time.
    let mut start = [0; 4];
    for (at, byte) in start.iter_mut().enumerate() {
        // SAFETY: no earlier byte is NUL, so this byte exists.
        *byte = unsafe { *image.cast::<u8>().add(at) };
        if *byte == 0 {
            break;
        }
    }
    if image::is_binary(&start) {
        return Err(image::refuse_binary());
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy())
}

/// # Safety
/// `to` is null or valid for writes, and the pointers in the options are valid.
unsafe fn load(driver: &Driver, to: *mut sys::CUmodule, ptx: &str, options: &Options) -> Result {
    wanted(to)?;
    let mut log = String::new();
    let loaded = driver.load(ptx, &mut log);
    // SAFETY: guaranteed by the caller.
    unsafe {
        options.logs(&log);
        put(to, pointer(loaded?.handle))
    }
}

const NONE: Options = Options { names: &[], values: std::ptr::null_mut() };

exports! {
    fn cuModuleLoadData(module: *mut sys::CUmodule, image: *const c_void) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { load(driver, module, &image_text(image)?, &NONE) }
    };

    fn cuModuleLoadDataEx(
        module: *mut sys::CUmodule,
        image: *const c_void,
        count: c_uint,
        names: *mut c_int,
        values: *mut *mut c_void,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            let options = Options::new(count, names, values)?;
            load(driver, module, &image_text(image)?, &options)
        }
    };

    fn cuModuleLoadFatBinary(_module: *mut sys::CUmodule, _image: *const c_void) = call |driver| {
        driver.current()?;
        Err(image::refuse_binary())
    };

    fn cuModuleLoad(module: *mut sys::CUmodule, path: *const c_char) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let path = unsafe { text(path)? };
        let bytes = std::fs::read(path).map_err(|e| {
            Error::new(CUresult::CUDA_ERROR_FILE_NOT_FOUND, format!("{path} cannot be read: {e}"))
        })?;
        if image::is_binary(&bytes) {
            return Err(image::refuse_binary());
        }
        let ptx = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
        // SAFETY: as above.
        unsafe { load(driver, module, &ptx, &NONE) }
    };

    fn cuLinkCreate_v2(
        count: c_uint,
        names: *mut c_int,
        values: *mut *mut c_void,
        state: *mut sys::CUlinkState,
    ) = call |driver| {
        wanted(state)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires. The log of the whole
        // compilation is empty.
        unsafe {
            Options::new(count, names, values)?;
            put(state, pointer(driver.link()?.handle))
        }
    };

    fn cuLinkAddData_v2(
        state: sys::CUlinkState,
        kind: c_int,
        data: *mut c_void,
        bytes: usize,
        _name: *const c_char,
        count: c_uint,
        names: *mut c_int,
        values: *mut *mut c_void,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let options = unsafe { Options::new(count, names, values)? };
        if kind != sys::CUjitInputType::CU_JIT_INPUT_PTX as c_int {
            return Err(image::refuse_binary());
        }
        if data.is_null() || bytes == 0 {
            return Err(Error::value("the input has no PTX"));
        }
        // SAFETY: the caller's data has `bytes` bytes.
        let text = unsafe { slice::from_raw_parts(data.cast::<u8>(), bytes) };
        let text = String::from_utf8_lossy(text.split(|byte| *byte == 0).next().unwrap_or_default());
        let mut log = String::new();
        let added = driver.link_add(handle(state), &text, &mut log);
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { options.logs(&log) };
        added
    };

    fn cuLinkComplete(state: sys::CUlinkState, image: *mut *mut c_void, bytes: *mut usize) = call |driver| {
        wanted(image)?;
        let (start, length) = driver.link_complete(handle(state))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put(image, start.cast_mut().cast())?;
            put_if(bytes, length);
        }
        Ok(())
    };

    fn cuLinkDestroy(state: sys::CUlinkState) = call |driver| {
        driver.links.remove(handle(state)).map(|_| ())
    };

    fn cuModuleUnload(module: sys::CUmodule) = call |driver| {
        driver.unload(handle(module))
    };

    fn cuModuleGetLoadingMode(mode: *mut c_uint) = call |_driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires. 2 means lazy loading: a kernel
        // is decoded on first use.
        unsafe { put(mode, 2) }
    };

    fn cuModuleGetFunction(function: *mut sys::CUfunction, module: sys::CUmodule, name: *const c_char) = call |driver| {
        wanted(function)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let name = unsafe { text(name)? };
        let found = driver.function(handle(module), name)?;
        // SAFETY: as above.
        unsafe { put(function, pointer(found.handle)) }
    };

    fn cuModuleGetFunctionCount(count: *mut c_uint, module: sys::CUmodule) = call |driver| {
        let module = driver.modules.get(handle(module))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(count, module.entries().count() as c_uint) }
    };

    fn cuModuleEnumerateFunctions(to: *mut sys::CUfunction, room: c_uint, module: sys::CUmodule) = call |driver| {
        wanted(to)?;
        let loaded = driver.modules.get(handle(module))?;
        for (index, name) in loaded.entries().take(room as usize).enumerate() {
            let function = driver.function(handle(module), name)?;
            // SAFETY: the caller's array has room for `count` handles, as cuda.h requires.
            unsafe { put(to.wrapping_add(index), pointer(function.handle))? };
        }
        Ok(())
    };

    fn cuModuleGetGlobal_v2(
        address: *mut sys::CUdeviceptr,
        bytes: *mut usize,
        module: sys::CUmodule,
        name: *const c_char,
    ) = call |driver| {
        if address.is_null() && bytes.is_null() {
            return Err(Error::value("neither the address nor the size is requested"));
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let found = driver.variable(handle(module), unsafe { text(name)? })?;
        // SAFETY: as above.
        unsafe {
            put_if(address, found.0);
            put_if(bytes, found.1 as usize);
        }
        Ok(())
    };

    fn cuFuncGetModule(module: *mut sys::CUmodule, function: sys::CUfunction) = call |driver| {
        let function = driver.functions.get(handle(function))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(module, pointer(function.module.handle)) }
    };
}

/// Reads an option's slot, for the tests.
#[cfg(test)]
fn slot_of(options: &Options, option: JitOption) -> Option<usize> {
    // SAFETY: the test's slot is valid.
    options.slot(option).and_then(|slot| unsafe { super::get(slot) }.ok()).map(|value| value.addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::CUjit_option::*;

    #[test]
    fn logs_are_truncated_and_their_length_is_returned() {
        let mut buffer = [7u8; 8];
        let mut names = [CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as c_int, CU_JIT_ERROR_LOG_BUFFER as c_int];
        let mut values = [std::ptr::without_provenance_mut(8), buffer.as_mut_ptr().cast()];
        // SAFETY: the arrays have two options, and the buffer has eight bytes.
        unsafe {
            let options = Options::new(2, names.as_mut_ptr(), values.as_mut_ptr()).unwrap();
            options.logs("line 5: what");
            assert_eq!(slot_of(&options, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES), Some(8));
            options.logs("");
            assert_eq!(slot_of(&options, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES), Some(0));
            names[0] = 99;
            assert!(Options::new(2, names.as_mut_ptr(), values.as_mut_ptr()).is_err());
            assert!(Options::new(2, std::ptr::null_mut(), values.as_mut_ptr()).is_err());
        }
        assert_eq!(&buffer, b"\0ine 5:\0");
    }
}
