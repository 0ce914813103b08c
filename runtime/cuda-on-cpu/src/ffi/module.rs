//! Functions of modules: loading with JIT options, and lookup.

use super::{check_result_pointer, exports, handle, pointer, put, put_if, text};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::core::image;
use cudarc::driver::sys::{self, CUjit_option as JitOption, CUresult};
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::slice;

/// The options of a load. Each slot holds a number or a pointer, depending on the option.
pub(super) struct LoadOptions<'a> {
    names: &'a [c_int],
    values: *mut *mut c_void,
}

impl<'a> LoadOptions<'a> {
    /// Reads the options of a load, and rejects unknown ones.
    ///
    /// # Safety
    /// `names` and `values` are valid for `count` options.
    pub unsafe fn new(count: c_uint, names: *mut c_int, values: *mut *mut c_void) -> Result<LoadOptions<'a>> {
        if count == 0 {
            return Ok(LoadOptions { names: &[], values });
        }
        if names.is_null() || values.is_null() {
            return Err(Error::value("the options of the module are null"));
        }
        // SAFETY: guaranteed by the caller.
        let names = unsafe { slice::from_raw_parts(names, count as usize) };
        // CUDA 12.9 has the options 0 to 33.
        match names.iter().find(|name| !(0..34).contains(*name)) {
            Some(name) => Err(Error::value(format!("unknown option of the JIT compiler: {name}"))),
            None => Ok(LoadOptions { names, values }),
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

    /// Writes the error log, an empty information log, and a compilation time of 0.
    ///
    /// # Safety
    /// The requirements of `log` hold.
    pub unsafe fn logs(&self, error: &str) {
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
pub(super) unsafe fn image_text<'a>(image: *const c_void) -> Result<Cow<'a, str>> {
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

fn read_bytes(path: &str) -> Result<Vec<u8>> {
    let why = |e| Error::new(CUresult::CUDA_ERROR_FILE_NOT_FOUND, format!("{path} cannot be read: {e}"));
    std::fs::read(path).map_err(why)
}

/// Returns the text of an image in a file.
pub(super) fn read_file(path: &str) -> Result<String> {
    ptx_of(&read_bytes(path)?).map(|ptx| ptx.into_owned())
}

/// Returns the text of an image, up to its NUL.
fn ptx_of(bytes: &[u8]) -> Result<Cow<'_, str>> {
    if image::is_binary(bytes) {
        return Err(image::refuse_binary());
    }
    Ok(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()))
}

/// Adds an input to a link state. Machine code in an archive is left out, so the names that it
/// defines stay undefined.
fn add_input(driver: &Driver, link: Handle, kind: c_int, name: &str, bytes: &[u8], log: &mut String) -> Result {
    use sys::CUjitInputType::*;
    let is_archive = kind == CU_JIT_INPUT_LIBRARY as c_int;
    if !is_archive && kind != CU_JIT_INPUT_PTX as c_int && kind != CU_JIT_INPUT_CUBIN as c_int {
        return Err(if kind < CU_JIT_NUM_INPUT_TYPES as c_int && kind >= 0 {
            image::refuse_binary()
        } else {
            Error::value(format!("unknown type of input: {kind}"))
        });
    }
    if !is_archive {
        return driver.link_add(link, name, &ptx_of(bytes)?, log);
    }
    let Some(members) = crate::core::link::members(bytes) else {
        return Err(Error::new(CUresult::CUDA_ERROR_INVALID_IMAGE, format!("`{name}` is not an archive")));
    };
    for (member, contents) in members {
        if !member.is_empty() && contents.starts_with(b".") | contents.starts_with(b"//") {
            driver.link_add(link, &member, &ptx_of(contents)?, log)?;
        }
    }
    Ok(())
}

/// Returns a name that the caller may leave out.
///
/// # Safety
/// `name` is null or a text that ends with NUL.
unsafe fn name_or(name: *const c_char, otherwise: &str) -> Result<&str> {
    // SAFETY: guaranteed by the caller.
    if name.is_null() { Ok(otherwise) } else { unsafe { text(name) } }
}

/// Loads PTX as a module, and writes its handle and the logs.
///
/// # Safety
/// `to` is null or valid for writes, and the pointers in the options are valid.
unsafe fn load(driver: &Driver, to: *mut sys::CUmodule, ptx: &str, options: &LoadOptions) -> Result {
    check_result_pointer(to)?;
    let mut log = String::new();
    let loaded = driver.load(ptx, &mut log);
    // SAFETY: guaranteed by the caller.
    unsafe {
        options.logs(&log);
        put(to, pointer(loaded?.handle))
    }
}

const NONE: LoadOptions = LoadOptions { names: &[], values: std::ptr::null_mut() };

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
            let options = LoadOptions::new(count, names, values)?;
            load(driver, module, &image_text(image)?, &options)
        }
    };

    fn cuModuleLoadFatBinary(_module: *mut sys::CUmodule, _image: *const c_void) = call |driver| {
        driver.current()?;
        Err(image::refuse_binary())
    };

    fn cuModuleLoad(module: *mut sys::CUmodule, path: *const c_char) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { load(driver, module, &read_file(text(path)?)?, &NONE) }
    };

    fn cuLinkCreate_v2(
        count: c_uint,
        names: *mut c_int,
        values: *mut *mut c_void,
        state: *mut sys::CUlinkState,
    ) = call |driver| {
        check_result_pointer(state)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires, until the state is
        // destroyed.
        unsafe {
            let options = LoadOptions::new(count, names, values)?;
            let kept = (options.names.to_vec(), values.expose_provenance());
            put(state, pointer(driver.link(kept)?.handle))
        }
    };

    fn cuLinkAddData_v2(
        state: sys::CUlinkState,
        kind: c_int,
        data: *mut c_void,
        bytes: usize,
        name: *const c_char,
        count: c_uint,
        names: *mut c_int,
        values: *mut *mut c_void,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let options = unsafe { LoadOptions::new(count, names, values)? };
        if data.is_null() || bytes == 0 {
            return Err(Error::value("the input is empty"));
        }
        // SAFETY: the caller's data has `bytes` bytes.
        let input = unsafe { slice::from_raw_parts(data.cast::<u8>(), bytes) };
        let mut log = String::new();
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let added = add_input(driver, handle(state), kind, unsafe { name_or(name, "<input>")? }, input, &mut log);
        // SAFETY: as above.
        unsafe { options.logs(&log) };
        added
    };

    fn cuLinkAddFile_v2(
        state: sys::CUlinkState,
        kind: c_int,
        path: *const c_char,
        count: c_uint,
        names: *mut c_int,
        values: *mut *mut c_void,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let (options, path) = unsafe { (LoadOptions::new(count, names, values)?, text(path)?) };
        let mut log = String::new();
        let added = add_input(driver, handle(state), kind, path, &read_bytes(path)?, &mut log);
        // SAFETY: as above.
        unsafe { options.logs(&log) };
        added
    };

    fn cuLinkComplete(state: sys::CUlinkState, image: *mut *mut c_void, bytes: *mut usize) = call |driver| {
        check_result_pointer(image)?;
        let link = driver.links.get(handle(state))?;
        let mut log = String::new();
        let completed = driver.link_complete(&link, &mut log);
        let (names, values) = &link.options;
        let options = LoadOptions { names, values: std::ptr::with_exposed_provenance_mut(*values) };
        // SAFETY: the options stay valid until the state is destroyed, as cuda.h requires.
        unsafe { options.logs(&log) };
        let (start, length) = completed?;
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
        check_result_pointer(function)?;
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
        check_result_pointer(to)?;
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
fn slot_of(options: &LoadOptions, option: JitOption) -> Option<usize> {
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
            let options = LoadOptions::new(2, names.as_mut_ptr(), values.as_mut_ptr()).unwrap();
            options.logs("line 5: what");
            assert_eq!(slot_of(&options, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES), Some(8));
            options.logs("");
            assert_eq!(slot_of(&options, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES), Some(0));
            names[0] = 99;
            assert!(LoadOptions::new(2, names.as_mut_ptr(), values.as_mut_ptr()).is_err());
            assert!(LoadOptions::new(2, std::ptr::null_mut(), values.as_mut_ptr()).is_err());
        }
        assert_eq!(&buffer, b"\0ine 5:\0");
    }
}
