//! Functions of kernels: attributes, occupancy, launches.

use super::layout::LaunchConfig;
use super::{exports, get, handle, put, put_if, wanted};
use crate::core::driver::{Driver, parameters};
use crate::core::error::{Error, Result};
use crate::core::module::Function;
use crate::core::occupancy;
use crate::core::work::Launch;
use cudarc::driver::sys;
use runtime_ptx::Grid;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::slice;
use std::sync::Arc;

/// `CU_LAUNCH_PARAM_END`, `…_BUFFER_POINTER` and `…_BUFFER_SIZE`, the keys in the `extra` list of a
/// launch.
const END: usize = 0;
const BUFFER: usize = 1;
const SIZE: usize = 2;

/// Copies the parameters of a launch from one address per parameter.
///
/// # Safety
/// `pointers` is null, or has an address for each parameter, valid for reads of the parameter's
/// size.
unsafe fn by_pointers(function: &Function, pointers: *mut *mut c_void) -> Result<Vec<u8>> {
    let mut bytes = vec![0; function.program.parameter_bytes()];
    if pointers.is_null() && !bytes.is_empty() {
        return Err(Error::value(format!("`{}` has parameters, but none are given", function.name)));
    }
    for (index, slot) in function.program.slots().enumerate() {
        // SAFETY: guaranteed by the caller.
        let from = unsafe { pointers.add(index).read_unaligned() };
        if from.is_null() {
            return Err(Error::value(format!("the address of parameter {index} of `{}` is null", function.name)));
        }
        // SAFETY: guaranteed by the caller.
        let from = unsafe { slice::from_raw_parts(from.cast::<u8>(), slot.bytes) };
        bytes[slot.offset..][..slot.bytes].copy_from_slice(from);
    }
    Ok(bytes)
}

/// Copies the parameters of a launch from one buffer, given by `extra`.
///
/// # Safety
/// `extra` is a list as cuda.h defines it, and its buffer is valid for the given size.
unsafe fn by_buffer(function: &Function, extra: *mut *mut c_void) -> Result<Vec<u8>> {
    let (mut buffer, mut size) = (std::ptr::null(), None);
    for pair in 0.. {
        // SAFETY: the end key was not read yet, so the list continues.
        let key = unsafe { extra.add(2 * pair).read_unaligned() }.addr();
        if key == END {
            break;
        }
        // SAFETY: every key except the end key has a value.
        let value = unsafe { extra.add(2 * pair + 1).read_unaligned() };
        match key {
            BUFFER => buffer = value.cast_const().cast::<u8>(),
            // SAFETY: the value of this key is the address of the size.
            SIZE => size = Some(unsafe { get(value.cast::<usize>())? }),
            _ => return Err(Error::value(format!("`extra` has an unknown key {key:#x}"))),
        }
    }
    match size {
        Some(0) => parameters(function, &[]),
        Some(size) if !buffer.is_null() => {
            // SAFETY: guaranteed by the caller.
            parameters(function, unsafe { slice::from_raw_parts(buffer, size) })
        }
        _ => Err(Error::value("`extra` lacks the buffer or its size")),
    }
}

/// # Safety
/// The parameters meet the requirements of `by_pointers` or `by_buffer`.
unsafe fn launch(
    driver: &Driver,
    function: sys::CUfunction,
    grid: Grid,
    stream: sys::CUstream,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let queue = driver.queue(handle(stream))?;
    // SAFETY: guaranteed by the caller.
    driver.launch(unsafe { launch_of(driver, function, grid, pointers, extra)? }, &queue)
}

/// # Safety
/// The parameters meet the requirements of `by_pointers` or `by_buffer`.
pub(super) unsafe fn launch_of(
    driver: &Driver,
    function: sys::CUfunction,
    grid: Grid,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<Launch> {
    let function = driver.functions.get(handle(function))?;
    let parameters = match (pointers.is_null(), extra.is_null()) {
        (false, false) => return Err(Error::value("the parameters are given twice")),
        // SAFETY: guaranteed by the caller.
        (_, true) => unsafe { by_pointers(&function, pointers)? },
        // SAFETY: guaranteed by the caller.
        (true, false) => unsafe { by_buffer(&function, extra)? },
    };
    Ok(Launch { function, grid, parameters })
}

/// Returns the function of a handle.
fn function_of(driver: &Driver, function: sys::CUfunction) -> Result<Arc<Function>> {
    driver.current()?;
    driver.functions.get(handle(function))
}

type SizeOfBlock = Option<unsafe extern "C" fn(c_int) -> usize>;

/// # Safety
/// `size` is null or a valid function; the result pointers are null or valid for writes.
unsafe fn best(
    driver: &Driver,
    (grid, block): (*mut c_int, *mut c_int),
    function: sys::CUfunction,
    size: SizeOfBlock,
    dynamic: usize,
    limit: c_int,
) -> Result {
    let function = function_of(driver, function)?;
    let dynamic = |threads: u32| match size {
        // SAFETY: guaranteed by the caller.
        Some(size) => unsafe { size(threads as c_int) },
        None => dynamic,
    };
    let (blocks, threads) = occupancy::best(&function, &driver.settings, dynamic, limit)?;
    // SAFETY: guaranteed by the caller.
    unsafe {
        put(grid, blocks as c_int)?;
        put(block, threads as c_int)
    }
}

exports! {
    fn cuLaunchKernel(
        function: sys::CUfunction,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        shared: c_uint,
        stream: sys::CUstream,
        pointers: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) = call |driver| {
        let grid = Grid { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared: shared };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { launch(driver, function, grid, stream, pointers, extra) }
    };

    fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: sys::CUfunction,
        pointers: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let config = unsafe { get(config)? };
        // SAFETY: as above.
        unsafe { config.check()? };
        let grid = Grid { grid: config.grid, block: config.block, dynamic_shared: config.shared };
        // SAFETY: as above.
        unsafe { launch(driver, function, grid, config.stream, pointers, extra) }
    };

    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: sys::CUfunction) = call |driver| {
        let found = function_of(driver, function)?.attribute(attribute)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(value, found) }
    };

    fn cuFuncSetAttribute(function: sys::CUfunction, attribute: c_int, value: c_int) = call |driver| {
        function_of(driver, function)?.set_attribute(attribute, value)
    };

    fn cuFuncSetCacheConfig(function: sys::CUfunction, _config: c_uint) = call |driver| {
        function_of(driver, function).map(|_| ())
    };

    fn cuFuncSetSharedMemConfig(function: sys::CUfunction, _config: c_uint) = call |driver| {
        function_of(driver, function).map(|_| ())
    };

    fn cuFuncIsLoaded(state: *mut c_uint, function: sys::CUfunction) = call |driver| {
        function_of(driver, function)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires. 1 is "loaded".
        unsafe { put(state, 1) }
    };

    fn cuFuncLoad(function: sys::CUfunction) = call |driver| {
        function_of(driver, function).map(|_| ())
    };

    fn cuFuncGetName(name: *mut *const c_char, function: sys::CUfunction) = call |driver| {
        let function = function_of(driver, function)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires. The function owns the text,
        // which thus lives as long as the function.
        unsafe { put(name, function.c_name.as_ptr()) }
    };

    fn cuFuncGetParamCount(function: sys::CUfunction, count: *mut usize) = call |driver| {
        let function = function_of(driver, function)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(count, function.program.slots().len()) }
    };

    fn cuFuncGetParamInfo(
        function: sys::CUfunction,
        index: usize,
        offset: *mut usize,
        size: *mut usize,
    ) = call |driver| {
        let function = function_of(driver, function)?;
        let slot = function.program.slots().nth(index);
        let slot = slot.ok_or_else(|| Error::value(format!("`{}` has no parameter {index}", function.name)))?;
        wanted(offset)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put(offset, slot.offset)?;
            put_if(size, slot.bytes);
        }
        Ok(())
    };

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: sys::CUfunction,
        threads: c_int,
        dynamic: usize,
    ) = call |driver| {
        let function = function_of(driver, function)?;
        let found = occupancy::blocks(&function, &driver.settings, threads.into(), dynamic)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(blocks, found as c_int) }
    };

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int,
        function: sys::CUfunction,
        threads: c_int,
        dynamic: usize,
        _flags: c_uint,
    ) = call |driver| {
        let function = function_of(driver, function)?;
        let found = occupancy::blocks(&function, &driver.settings, threads.into(), dynamic)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(blocks, found as c_int) }
    };

    fn cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: sys::CUfunction,
        size: SizeOfBlock,
        dynamic: usize,
        limit: c_int,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { best(driver, (grid, block), function, size, dynamic, limit) }
    };

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: *mut c_int,
        block: *mut c_int,
        function: sys::CUfunction,
        size: SizeOfBlock,
        dynamic: usize,
        limit: c_int,
        _flags: c_uint,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { best(driver, (grid, block), function, size, dynamic, limit) }
    };

    fn cuOccupancyAvailableDynamicSMemPerBlock(
        dynamic: *mut usize,
        function: sys::CUfunction,
        blocks: c_int,
        threads: c_int,
    ) = call |driver| {
        let function = function_of(driver, function)?;
        let found = occupancy::dynamic(&function, &driver.settings, blocks, threads)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(dynamic, found) }
    };
}
