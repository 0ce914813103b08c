//! Device attributes, by their numbers in `CUdevice_attribute`.

use super::error::{Error, Result};
use super::module::shared_at_most;
use super::settings::Settings;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use kernel_dsl_compiler::analyses::occupancy::Limits;

/// The last attribute number of CUDA 12.9's cuda.h.
const LAST: i32 = 145;

/// Returns a device attribute; 0 for features that this device lacks, such as textures and peers.
pub fn of_device(settings: &Settings, attribute: i32) -> Result<i32> {
    use Attribute::*;
    let limits = Limits::of(settings.target());
    let all = [
        (CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
        (CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024),
        (CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024),
        (CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64),
        (CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, i32::MAX),
        (CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
        (CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535),
        (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, limits.shared_of_block as i32),
        (CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10),
        (CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
        (CU_DEVICE_ATTRIBUTE_MAX_PITCH, i32::MAX),
        (CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, limits.registers as i32),
        // In kHz. The value has no meaning here, but programs divide by it.
        (CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1_000_000),
        (CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1_000_000),
        (CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64),
        (CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512),
        (CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32),
        (CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512),
        (CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, settings.multiprocessors as i32),
        (CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1),
        (CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 32 * limits.warps as i32),
        (CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1),
        (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, settings.capability.0 as i32),
        (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, settings.capability.1 as i32),
        (CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1),
        (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, limits.shared as i32),
        (CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, limits.registers as i32),
        (CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1),
        (CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 1),
        (CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1),
        (CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_at_most(settings) as i32),
        (CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1),
        (CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, limits.blocks as i32),
        (CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, limits.shared_reserved as i32),
        (CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1),
        (CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1),
        (CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1),
        (CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1),
        (CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1),
        (CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2),
        (CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1),
        (CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1),
        (CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 2 << 20),
        (CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1),
        (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0),
    ];
    if !(1..=LAST).contains(&attribute) {
        return Err(Error::value(format!("unknown attribute of a device: {attribute}")));
    }
    Ok(all.iter().find(|(known, _)| *known as i32 == attribute).map_or(0, |(_, value)| *value))
}
