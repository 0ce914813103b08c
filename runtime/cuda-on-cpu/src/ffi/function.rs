//! Functions of kernels: attributes, occupancy, launches.

use super::layout::LaunchConfig;
use super::{check_result_pointer, exports, get, handle, put, put_if};
use crate::core::context::Context;
use crate::core::driver::{Driver, parameters};
use crate::core::error::{Error, Result};
use crate::core::module::{ModuleFunction, Stepwise};
use crate::core::occupancy;
use crate::core::work::ValidatedLaunch;
use cudarc::driver::sys::{self, CUresult};
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
unsafe fn by_pointers(function: &ModuleFunction, pointers: *mut *mut c_void) -> Result<Vec<u8>> {
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
unsafe fn by_buffer(function: &ModuleFunction, extra: *mut *mut c_void) -> Result<Vec<u8>> {
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

/// Submits a launch, cooperative or not, to a stream.
///
/// # Safety
/// The parameters meet the requirements of `by_pointers` or `by_buffer`.
unsafe fn launch(
    driver: &Driver,
    function: sys::CUfunction,
    (grid, cooperative): (Grid, bool),
    stream: sys::CUstream,
    arguments: (*mut *mut c_void, *mut *mut c_void),
) -> Result {
    let queue = driver.queue(handle(stream))?;
    // SAFETY: guaranteed by the caller.
    let launch = unsafe { launch_of(driver, queue.context(), function, grid, arguments)? };
    if cooperative {
        check_cooperative(driver, &launch)?;
    }
    driver.launch(ValidatedLaunch { cooperative, ..launch }, &queue)
}

/// Rejects a cooperative launch whose blocks the device cannot hold at once.
fn check_cooperative(driver: &Driver, launch: &ValidatedLaunch) -> Result {
    let Grid { grid, block, dynamic_shared } = launch.grid;
    launch.function.check(launch.grid)?;
    let threads: u32 = block.iter().product();
    let each = occupancy::blocks(&launch.function, &driver.settings, threads.into(), dynamic_shared as usize)?;
    let most = u64::from(each) * u64::from(driver.settings.multiprocessors);
    let blocks = grid.iter().map(|n| u64::from(*n)).product::<u64>();
    if blocks > most {
        let why = format!("{blocks} blocks of a cooperative launch are more than the {most} that the device holds");
        return Err(Error::new(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, why));
    }
    Ok(())
}

/// Validates a launch of a function, whose parameters come from either of the two pointers.
///
/// # Safety
/// The parameters meet the requirements of `by_pointers` or `by_buffer`.
pub(super) unsafe fn launch_of(
    driver: &Driver,
    context: &Arc<Context>,
    function: sys::CUfunction,
    grid: Grid,
    (pointers, extra): (*mut *mut c_void, *mut *mut c_void),
) -> Result<ValidatedLaunch> {
    let function = driver.callable(handle(function), || Ok(context.clone()))?;
    let parameters = match (pointers.is_null(), extra.is_null()) {
        (false, false) => return Err(Error::value("the parameters are given twice")),
        // SAFETY: guaranteed by the caller.
        (_, true) => unsafe { by_pointers(&function, pointers)? },
        // SAFETY: guaranteed by the caller.
        (true, false) => unsafe { by_buffer(&function, extra)? },
    };
    let objects = function.module.context.objects();
    Ok(ValidatedLaunch { function, grid, parameters, cooperative: false, objects })
}

/// Launches a function with the block and the parameters that earlier calls set.
fn launch_stepwise(
    driver: &Driver,
    function: sys::CUfunction,
    (width, height): (c_int, c_int),
    stream: sys::CUstream,
) -> Result {
    let queue = driver.queue(handle(stream))?;
    let function = function_of(driver, function)?;
    let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(height)) else {
        return Err(Error::value(format!("a grid of {width} by {height} blocks")));
    };
    let Stepwise { block, shared, parameters: given } = function.stepwise().clone();
    let grid = Grid { grid: [width, height, 1], block, dynamic_shared: shared };
    let parameters = parameters(&function, &given)?;
    let objects = function.module.context.objects();
    driver.launch(ValidatedLaunch { function, grid, parameters, cooperative: false, objects }, &queue)
}

/// Returns the function of a handle.
fn function_of(driver: &Driver, function: sys::CUfunction) -> Result<Arc<ModuleFunction>> {
    let context = driver.current()?;
    driver.callable(handle(function), || Ok(context))
}

/// A function of the program that returns the dynamic shared memory of a block in bytes, by its
/// number of threads: `CUoccupancyB2DSize`.
type SizeOfBlock = Option<unsafe extern "C" fn(c_int) -> usize>;

/// Writes the block size with the highest occupancy, and the number of blocks that fill the device.
/// `size` returns the dynamic shared memory of a block by its number of threads.
///
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
    ) as cuLaunchKernel_ptsz = call |driver| {
        let grid = Grid { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared: shared };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { launch(driver, function, (grid, false), stream, (pointers, extra)) }
    };

    fn cuLaunchCooperativeKernel(
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
    ) as cuLaunchCooperativeKernel_ptsz = call |driver| {
        let grid = Grid { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared: shared };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { launch(driver, function, (grid, true), stream, (pointers, std::ptr::null_mut())) }
    };

    fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: sys::CUfunction,
        pointers: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) as cuLaunchKernelEx_ptsz = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let config = unsafe { get(config)? };
        // SAFETY: as above.
        let cooperative = unsafe { config.check()? };
        let grid = Grid { grid: config.grid, block: config.block, dynamic_shared: config.shared };
        // SAFETY: as above.
        unsafe { launch(driver, function, (grid, cooperative), config.stream, (pointers, extra)) }
    };

    fn cuFuncSetBlockShape(function: sys::CUfunction, x: c_int, y: c_int, z: c_int) = call |driver| {
        let function = function_of(driver, function)?;
        let size = |n: c_int| u32::try_from(n).ok().filter(|n| *n > 0);
        let (Some(x), Some(y), Some(z)) = (size(x), size(y), size(z)) else {
            return Err(Error::value(format!("a block of {x}, {y} and {z} threads")));
        };
        function.stepwise().block = [x, y, z];
        Ok(())
    };

    fn cuFuncSetSharedSize(function: sys::CUfunction, bytes: c_uint) = call |driver| {
        function_of(driver, function)?.stepwise().shared = bytes;
        Ok(())
    };

    fn cuParamSetSize(function: sys::CUfunction, bytes: c_uint) = call |driver| {
        let function = function_of(driver, function)?;
        let known = function.program.parameter_bytes();
        if bytes as usize > known.next_multiple_of(8) {
            return Err(Error::value(format!("`{}` has {known} bytes of parameters, not {bytes}", function.name)));
        }
        function.stepwise().parameters.resize(bytes as usize, 0);
        Ok(())
    };

    fn cuParamSeti(function: sys::CUfunction, offset: c_int, value: c_uint) = call |driver| {
        function_of(driver, function)?.set_parameter(offset, &value.to_le_bytes())
    };

    fn cuParamSetf(function: sys::CUfunction, offset: c_int, value: f32) = call |driver| {
        function_of(driver, function)?.set_parameter(offset, &value.to_le_bytes())
    };

    fn cuParamSetv(function: sys::CUfunction, offset: c_int, from: *mut c_void, bytes: c_uint) = call |driver| {
        if from.is_null() {
            return Err(Error::value("the address of the parameter is null"));
        }
        // SAFETY: the caller's data has `bytes` bytes, as cuda.h requires.
        let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), bytes as usize) };
        function_of(driver, function)?.set_parameter(offset, bytes)
    };

    fn cuLaunch(function: sys::CUfunction) = call |driver| {
        launch_stepwise(driver, function, (1, 1), std::ptr::null_mut())
    };

    fn cuLaunchGrid(function: sys::CUfunction, width: c_int, height: c_int) = call |driver| {
        launch_stepwise(driver, function, (width, height), std::ptr::null_mut())
    };

    fn cuLaunchGridAsync(
        function: sys::CUfunction,
        width: c_int,
        height: c_int,
        stream: sys::CUstream,
    ) = call |driver| {
        launch_stepwise(driver, function, (width, height), stream)
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
        check_result_pointer(offset)?;
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
