//! Functions: what they say of themselves, how many blocks fit, launches.

use super::layout::LaunchConfig;
use super::{exports, get, handle, put, put_if, wanted};
use crate::core::driver::{Driver, parameters};
use crate::core::error::{Error, Result};
use crate::core::module::Function;
use crate::core::occupancy;
use crate::core::work::Launch;
use cudarc::driver::sys;
use runtime::ptx::Grid;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::slice;
use std::sync::Arc;

/// `CU_LAUNCH_PARAM_END`, `…_BUFFER_POINTER` and `…_BUFFER_SIZE`, which the `extra` of a launch is made of.
const END: usize = 0;
const BUFFER: usize = 1;
const SIZE: usize = 2;

/// Copies the parameters of a launch, of which there is an address each.
///
/// # Safety
/// `pointers` is null, or has for each parameter the address of as many bytes as that has.
unsafe fn by_pointers(function: &Function, pointers: *mut *mut c_void) -> Result<Vec<u8>> {
    let mut bytes = vec![0; function.program.parameter_bytes()];
    if pointers.is_null() && !bytes.is_empty() {
        return Err(Error::value(format!("`{}` has parameters, and none are given", function.name)));
    }
    for (index, slot) in function.program.slots().enumerate() {
        // SAFETY: by the caller's promise.
        let from = unsafe { pointers.add(index).read_unaligned() };
        if from.is_null() {
            return Err(Error::value(format!("the address of parameter {index} of `{}` is null", function.name)));
        }
        // SAFETY: by the caller's promise.
        let from = unsafe { slice::from_raw_parts(from.cast::<u8>(), slot.bytes) };
        bytes[slot.offset..][..slot.bytes].copy_from_slice(from);
    }
    Ok(bytes)
}

/// The same out of one buffer, as `extra` names it.
///
/// # Safety
/// `extra` is a list as cuda.h has it, whose buffer has as many bytes as it says.
unsafe fn by_buffer(function: &Function, extra: *mut *mut c_void) -> Result<Vec<u8>> {
    let (mut buffer, mut size) = (std::ptr::null(), None);
    for pair in 0.. {
        // SAFETY: the end has not come yet.
        let key = unsafe { extra.add(2 * pair).read_unaligned() }.addr();
        if key == END {
            break;
        }
        // SAFETY: a key that is not the end has a value.
        let value = unsafe { extra.add(2 * pair + 1).read_unaligned() };
        match key {
            BUFFER => buffer = value.cast_const().cast::<u8>(),
            // SAFETY: the value of this one is the address of the size.
            SIZE => size = Some(unsafe { get(value.cast::<usize>())? }),
            _ => return Err(Error::value(format!("{key:#x} is nothing that `extra` can name"))),
        }
    }
    match size {
        Some(0) => parameters(function, &[]),
        Some(size) if !buffer.is_null() => {
            // SAFETY: by the caller's promise.
            parameters(function, unsafe { slice::from_raw_parts(buffer, size) })
        }
        _ => Err(Error::value("`extra` names no buffer, or not its size")),
    }
}

/// # Safety
/// The parameters are as for `by_pointers` or `by_buffer`.
unsafe fn launch(
    driver: &Driver,
    function: sys::CUfunction,
    grid: Grid,
    stream: sys::CUstream,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let queue = driver.queue(handle(stream))?;
    // SAFETY: by the caller's promise.
    driver.launch(unsafe { launch_of(driver, function, grid, pointers, extra)? }, &queue)
}

/// # Safety
/// As above.
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
        // SAFETY: by the caller's promise.
        (_, true) => unsafe { by_pointers(&function, pointers)? },
        // SAFETY: by the caller's promise.
        (true, false) => unsafe { by_buffer(&function, extra)? },
    };
    Ok(Launch { function, grid, parameters })
}

/// A function.
fn function_of(driver: &Driver, function: sys::CUfunction) -> Result<Arc<Function>> {
    driver.current()?;
    driver.functions.get(handle(function))
}

type SizeOfBlock = Option<unsafe extern "C" fn(c_int) -> usize>;

/// # Safety
/// `size` is null or a function of the caller's; the results are null or the caller's.
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
        // SAFETY: by the caller's promise.
        Some(size) => unsafe { size(threads as c_int) },
        None => dynamic,
    };
    let (blocks, threads) = occupancy::best(&function, &driver.settings, dynamic, limit)?;
    // SAFETY: by the caller's promise.
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
        // SAFETY: the caller's, by cuda.h.
        unsafe { launch(driver, function, grid, stream, pointers, extra) }
    };

    fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: sys::CUfunction,
        pointers: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) = call |driver| {
        // SAFETY: the caller's, by cuda.h.
        let config = unsafe { get(config)? };
        // SAFETY: as above.
        unsafe { config.check()? };
        let grid = Grid { grid: config.grid, block: config.block, dynamic_shared: config.shared };
        // SAFETY: as above.
        unsafe { launch(driver, function, grid, config.stream, pointers, extra) }
    };

    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: sys::CUfunction) = call |driver| {
        let found = function_of(driver, function)?.attribute(attribute)?;
        // SAFETY: the caller's, by cuda.h.
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
        // SAFETY: the caller's, by cuda.h. 1 is loaded.
        unsafe { put(state, 1) }
    };

    fn cuFuncLoad(function: sys::CUfunction) = call |driver| {
        function_of(driver, function).map(|_| ())
    };

    fn cuFuncGetName(name: *mut *const c_char, function: sys::CUfunction) = call |driver| {
        let function = function_of(driver, function)?;
        // SAFETY: the caller's, by cuda.h. The text lives as long as the function, which has it.
        unsafe { put(name, function.c_name.as_ptr()) }
    };

    fn cuFuncGetParamCount(function: sys::CUfunction, count: *mut usize) = call |driver| {
        let function = function_of(driver, function)?;
        // SAFETY: the caller's, by cuda.h.
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
        // SAFETY: the caller's, by cuda.h.
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
        // SAFETY: the caller's, by cuda.h.
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
        // SAFETY: the caller's, by cuda.h.
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
        // SAFETY: the caller's, by cuda.h.
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
        // SAFETY: the caller's, by cuda.h.
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
        // SAFETY: the caller's, by cuda.h.
        unsafe { put(dynamic, found) }
    };
}
