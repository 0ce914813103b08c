//! The product on OpenCL devices, with the library loaded at run time.

use super::{Factors, Row, TILE, fastest};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::error_codes::ClError;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use opencl3::platform::{Platform, get_platforms};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_float, cl_uint};
use std::ptr;

/// The algorithm of `kernels_rs::gemm::matmul::<16>`, including padding.
const SOURCE: &str = "
kernel void product(uint n, global const float *a, global const float *b, global float *c) {
    local float ta[16][17], tb[16][17];
    uint x = get_local_id(0), y = get_local_id(1);
    uint row = get_group_id(1) * 16 + y, column = get_group_id(0) * 16 + x;
    float sum = 0.0f;
    for (uint k = 0; k < n; k += 16) {
        ta[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0.0f;
        tb[y][x] = k + y < n && column < n ? b[(k + y) * n + column] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < 16; i++)
            sum = fma(ta[y][i], tb[i][x], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}";

/// Measures each device, and returns the errors.
pub fn products(factors: &Factors, rows: &mut Vec<Row>) -> Vec<String> {
    let platforms = match get_platforms() {
        Ok(platforms) if !platforms.is_empty() => platforms,
        Ok(_) => return vec!["the OpenCL library reports no devices".to_string()],
        Err(e) => return vec![format!("no OpenCL library found: {e}")],
    };
    let mut notes = Vec::new();
    for platform in platforms {
        let version = platform.version().unwrap_or_default();
        let devices = platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default();
        for device in devices.into_iter().map(Device::new) {
            match product(factors, &platform, &device) {
                Ok(row) => rows.push(row),
                Err(e) => notes.push(format!("{}, {version}: {e}", device.name().unwrap_or_default())),
            }
        }
    }
    notes
}

fn product(factors: &Factors, platform: &Platform, device: &Device) -> Result<Row, String> {
    let said = |e: ClError| e.to_string();
    let (n, size) = (factors.n as cl_uint, factors.a.len());
    let context = Context::from_device(device).map_err(said)?;
    let queue = CommandQueue::create_default(&context, 0).map_err(said)?;
    let program = Program::create_and_build_from_source(&context, SOURCE, "-cl-std=CL1.2")?;
    let kernel = Kernel::create(&program, "product").map_err(said)?;
    let buffer = |flags| {
        // SAFETY: no host memory is passed.
        unsafe { Buffer::<cl_float>::create(&context, flags, size, ptr::null_mut()) }
    };
    let mut a = buffer(CL_MEM_READ_ONLY).map_err(said)?;
    let mut b = buffer(CL_MEM_READ_ONLY).map_err(said)?;
    let c = buffer(CL_MEM_WRITE_ONLY).map_err(said)?;
    for (buffer, values) in [(&mut a, &factors.a), (&mut b, &factors.b)] {
        // SAFETY: both have the same number of elements, and the call returns after the copy.
        unsafe { queue.enqueue_write_buffer(buffer, CL_BLOCKING, 0, values, &[]) }.map_err(said)?;
    }
    let (tile, global) = (TILE as usize, (factors.blocks() * TILE) as usize);
    let run = || -> Result<(), ClError> {
        // SAFETY: the kernel takes these arguments, and accesses elements below n in each
        // dimension.
        unsafe {
            ExecuteKernel::new(&kernel)
                .set_arg(&n)
                .set_arg(&a)
                .set_arg(&b)
                .set_arg(&c)
                .set_global_work_sizes(&[global, global])
                .set_local_work_sizes(&[tile, tile])
                .enqueue_nd_range(&queue)?;
        }
        queue.finish()
    };
    // The first launch may still compile.
    run().map_err(said)?;
    let time = fastest(run).map_err(said)?;
    let mut product = vec![0.0f32; size];
    // SAFETY: both have the same number of elements, and the call returns after the copy.
    unsafe { queue.enqueue_read_buffer(&c, CL_BLOCKING, 0, &mut product, &[]) }.map_err(said)?;
    let name = device.name().map_err(said)?;
    let how = platform.version().map_err(said)?;
    Ok(Row { executor: name, how: short(&how), time, product })
}

/// Returns the version of a platform without its list of build options.
fn short(version: &str) -> String {
    version.split_whitespace().take(4).collect::<Vec<_>>().join(" ")
}
