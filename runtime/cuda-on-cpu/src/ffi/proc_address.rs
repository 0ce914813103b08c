//! `cuGetProcAddress`: the lookup of a function by its unversioned name and a CUDA version.

use super::{put, text};
use crate::core::error::{Error, Result};
use cudarc::driver::sys::CUresult;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// Functions that have changed: for each, the CUDA versions (as `cuDriverGetVersion` gives them)
/// from which a variant applies, latest first. From the `#define`s and `typedef`s of cuda.h and
/// cudaTypedefs.h.
const VERSIONS: &[(&str, &[(c_int, &str)])] = &[
    ("cuCtxCreate", &[(12050, "cuCtxCreate_v4"), (11040, "cuCtxCreate_v3"), (3020, "cuCtxCreate_v2")]),
    ("cuCtxDestroy", &[(4000, "cuCtxDestroy_v2")]),
    ("cuCtxPopCurrent", &[(4000, "cuCtxPopCurrent_v2")]),
    ("cuCtxPushCurrent", &[(4000, "cuCtxPushCurrent_v2")]),
    ("cuDeviceGetUuid", &[(11040, "cuDeviceGetUuid_v2"), (9020, "cuDeviceGetUuid")]),
    ("cuDevicePrimaryCtxRelease", &[(11000, "cuDevicePrimaryCtxRelease_v2")]),
    ("cuDevicePrimaryCtxReset", &[(11000, "cuDevicePrimaryCtxReset_v2")]),
    ("cuDevicePrimaryCtxSetFlags", &[(11000, "cuDevicePrimaryCtxSetFlags_v2")]),
    ("cuDeviceTotalMem", &[(3020, "cuDeviceTotalMem_v2")]),
    ("cuEventDestroy", &[(4000, "cuEventDestroy_v2")]),
    ("cuEventElapsedTime", &[(12080, "cuEventElapsedTime_v2"), (2000, "cuEventElapsedTime")]),
    ("cuGetProcAddress", &[(12000, "cuGetProcAddress_v2"), (11030, "cuGetProcAddress")]),
    ("cuGraphInstantiate", &[(12000, "cuGraphInstantiateWithFlags"), (11000, "cuGraphInstantiate_v2")]),
    ("cuLinkAddData", &[(6050, "cuLinkAddData_v2")]),
    ("cuLinkCreate", &[(6050, "cuLinkCreate_v2")]),
    ("cuMemAlloc", &[(3020, "cuMemAlloc_v2")]),
    ("cuMemAllocHost", &[(3020, "cuMemAllocHost_v2")]),
    ("cuMemAllocPitch", &[(3020, "cuMemAllocPitch_v2")]),
    ("cuMemFree", &[(3020, "cuMemFree_v2")]),
    ("cuMemGetAddressRange", &[(3020, "cuMemGetAddressRange_v2")]),
    ("cuMemGetInfo", &[(3020, "cuMemGetInfo_v2")]),
    ("cuMemHostGetDevicePointer", &[(3020, "cuMemHostGetDevicePointer_v2")]),
    ("cuMemHostRegister", &[(6050, "cuMemHostRegister_v2")]),
    ("cuMemPrefetchAsync", &[(12020, "cuMemPrefetchAsync_v2"), (8000, "cuMemPrefetchAsync")]),
    ("cuMemAdvise", &[(12020, "cuMemAdvise_v2"), (8000, "cuMemAdvise")]),
    ("cuMemcpy2D", &[(3020, "cuMemcpy2D_v2")]),
    ("cuMemcpy2DAsync", &[(3020, "cuMemcpy2DAsync_v2")]),
    ("cuMemcpy2DUnaligned", &[(3020, "cuMemcpy2DUnaligned_v2")]),
    ("cuMemcpy3D", &[(3020, "cuMemcpy3D_v2")]),
    ("cuMemcpy3DAsync", &[(3020, "cuMemcpy3DAsync_v2")]),
    ("cuMemcpyDtoD", &[(3020, "cuMemcpyDtoD_v2")]),
    ("cuMemcpyDtoDAsync", &[(3020, "cuMemcpyDtoDAsync_v2")]),
    ("cuMemcpyDtoH", &[(3020, "cuMemcpyDtoH_v2")]),
    ("cuMemcpyDtoHAsync", &[(3020, "cuMemcpyDtoHAsync_v2")]),
    ("cuMemcpyHtoD", &[(3020, "cuMemcpyHtoD_v2")]),
    ("cuMemcpyHtoDAsync", &[(3020, "cuMemcpyHtoDAsync_v2")]),
    ("cuMemsetD16", &[(3020, "cuMemsetD16_v2")]),
    ("cuMemsetD2D16", &[(3020, "cuMemsetD2D16_v2")]),
    ("cuMemsetD2D32", &[(3020, "cuMemsetD2D32_v2")]),
    ("cuMemsetD2D8", &[(3020, "cuMemsetD2D8_v2")]),
    ("cuMemsetD32", &[(3020, "cuMemsetD32_v2")]),
    ("cuMemsetD8", &[(3020, "cuMemsetD8_v2")]),
    ("cuModuleGetGlobal", &[(3020, "cuModuleGetGlobal_v2")]),
    ("cuStreamBeginCapture", &[(10010, "cuStreamBeginCapture_v2")]),
    ("cuStreamDestroy", &[(4000, "cuStreamDestroy_v2")]),
    ("cuStreamGetCaptureInfo", &[(11030, "cuStreamGetCaptureInfo_v2"), (10010, "cuStreamGetCaptureInfo")]),
];

/// # Safety
/// `symbol` is null or a text that ends with NUL; `to` is null or valid for writes.
pub unsafe fn find(symbol: *const c_char, to: *mut *mut c_void, version: c_int, flags: u64) -> Result {
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, ptr::null_mut())? };
    if flags & !3 != 0 || flags == 3 {
        return Err(Error::value(format!("invalid flags of cuGetProcAddress: {flags:#x}")));
    }
    // SAFETY: guaranteed by the caller.
    let name = unsafe { text(symbol)? };
    let exact = match VERSIONS.iter().find(|(base, _)| *base == name) {
        Some((_, versions)) => versions.iter().find(|(since, _)| *since <= version).map(|(_, exact)| *exact),
        None => Some(name),
    };
    let Some(function) = exact.and_then(exported) else {
        let why = format!("the driver has no function `{name}` for CUDA {version}");
        return Err(Error::new(CUresult::CUDA_ERROR_NOT_FOUND, why));
    };
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, function) }
}

/// Returns the exported function of that name.
pub fn exported(name: &str) -> Option<*mut c_void> {
    let modules = [
        super::entry::find,
        super::device::find,
        super::context::find,
        super::module::find,
        super::function::find,
        super::memory::find,
        super::pool::find,
        super::copy::find,
        super::stream::find,
        super::graph::find,
        super::unsupported::find,
    ];
    modules.iter().find_map(|find| find(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &std::ffi::CStr, version: c_int) -> Option<*mut c_void> {
        let mut found = ptr::null_mut();
        // SAFETY: the name is a text with its NUL, and `found` is valid for writes.
        unsafe { find(name.as_ptr(), &mut found, version, 0) }.ok().map(|()| found)
    }

    #[test]
    fn every_version_in_the_table_is_exported() {
        for (base, versions) in VERSIONS {
            assert!(versions.windows(2).all(|pair| pair[0].0 > pair[1].0), "{base}");
            for (_, exact) in *versions {
                assert!(exported(exact).is_some(), "{exact}");
            }
        }
    }

    #[test]
    fn names_resolve_by_cuda_version() {
        assert_eq!(ask(c"cuMemAlloc", 12000), exported("cuMemAlloc_v2"));
        assert_eq!(ask(c"cuCtxCreate", 11000), exported("cuCtxCreate_v2"));
        assert_eq!(ask(c"cuCtxCreate", 12090), exported("cuCtxCreate_v4"));
        assert_eq!(ask(c"cuInit", 2000), exported("cuInit"));
        assert_eq!(ask(c"cuGetProcAddress", 11000), None);
        assert_eq!(ask(c"cuFrobnicate", 12000), None);
        assert_eq!(ask(c"", 12000), None);
    }
}
