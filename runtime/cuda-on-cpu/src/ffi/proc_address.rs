//! `cuGetProcAddress`: the lookup of a function by its unversioned name and a CUDA version.

use super::{put, text};
use crate::core::error::{Error, Result};
use cudarc::driver::sys::CUresult;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// Functions with several variants. Each variant has the CUDA version from which it applies, as
/// `cuDriverGetVersion` returns it, latest first. The sources are the `#define`s and `typedef`s of
/// cuda.h and cudaTypedefs.h.
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
    ("cuStreamGetCtx", &[(12050, "cuStreamGetCtx_v2"), (9020, "cuStreamGetCtx")]),
    (
        "cuStreamGetCaptureInfo",
        &[
            (12030, "cuStreamGetCaptureInfo_v3"),
            (11030, "cuStreamGetCaptureInfo_v2"),
            (10010, "cuStreamGetCaptureInfo"),
        ],
    ),
    (
        "cuStreamUpdateCaptureDependencies",
        &[(12030, "cuStreamUpdateCaptureDependencies_v2"), (11030, "cuStreamUpdateCaptureDependencies")],
    ),
    ("cuGraphAddKernelNode", &[(12000, "cuGraphAddKernelNode_v2"), (10000, "cuGraphAddKernelNode")]),
    ("cuGraphKernelNodeGetParams", &[(12000, "cuGraphKernelNodeGetParams_v2"), (10000, "cuGraphKernelNodeGetParams")]),
    ("cuGraphKernelNodeSetParams", &[(12000, "cuGraphKernelNodeSetParams_v2"), (10000, "cuGraphKernelNodeSetParams")]),
    (
        "cuGraphExecKernelNodeSetParams",
        &[(12000, "cuGraphExecKernelNodeSetParams_v2"), (10010, "cuGraphExecKernelNodeSetParams")],
    ),
    ("cuGraphExecUpdate", &[(12000, "cuGraphExecUpdate_v2"), (10020, "cuGraphExecUpdate")]),
    ("cuGraphAddNode", &[(12030, "cuGraphAddNode_v2"), (12020, "cuGraphAddNode")]),
    ("cuGraphGetEdges", &[(12030, "cuGraphGetEdges_v2"), (10000, "cuGraphGetEdges")]),
    ("cuGraphNodeGetDependencies", &[(12030, "cuGraphNodeGetDependencies_v2"), (10000, "cuGraphNodeGetDependencies")]),
    (
        "cuGraphNodeGetDependentNodes",
        &[(12030, "cuGraphNodeGetDependentNodes_v2"), (10000, "cuGraphNodeGetDependentNodes")],
    ),
    ("cuGraphAddDependencies", &[(12030, "cuGraphAddDependencies_v2"), (10000, "cuGraphAddDependencies")]),
    ("cuGraphRemoveDependencies", &[(12030, "cuGraphRemoveDependencies_v2"), (10000, "cuGraphRemoveDependencies")]),
    ("cuStreamWaitValue32", &[(11070, "cuStreamWaitValue32_v2"), (8000, "cuStreamWaitValue32")]),
    ("cuStreamWaitValue64", &[(11070, "cuStreamWaitValue64_v2"), (9000, "cuStreamWaitValue64")]),
    ("cuStreamWriteValue32", &[(11070, "cuStreamWriteValue32_v2"), (8000, "cuStreamWriteValue32")]),
    ("cuStreamWriteValue64", &[(11070, "cuStreamWriteValue64_v2"), (9000, "cuStreamWriteValue64")]),
    ("cuStreamBatchMemOp", &[(11070, "cuStreamBatchMemOp_v2"), (8000, "cuStreamBatchMemOp")]),
    ("cuTexRefSetAddress2D", &[(4010, "cuTexRefSetAddress2D_v3")]),
];

/// The suffixes of exported functions of cuda.h. A program requests functions without them.
const SUFFIXES: [&str; 5] = ["_v2", "_v3", "_v4", "_ptds", "_ptsz"];

/// The result of a lookup: `CUdriverProcAddressQueryResult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupResult {
    /// The function.
    Function(*mut c_void),
    /// There is no function of that name.
    Nothing,
    /// The function exists only in a later version of CUDA.
    Later,
}

impl LookupResult {
    /// Returns the number of the result.
    pub fn status(self) -> u32 {
        match self {
            LookupResult::Function(_) => 0,
            LookupResult::Nothing => 1,
            LookupResult::Later => 2,
        }
    }
}

/// Returns the function of a name without a suffix, for a CUDA version.
pub fn by_base_name(name: &str, version: c_int) -> LookupResult {
    if SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
        return LookupResult::Nothing;
    }
    let exact = match VERSIONS.iter().find(|(base, _)| *base == name) {
        Some((_, versions)) => {
            let suited = versions.iter().find(|(since, _)| *since <= version);
            // Functions of earlier versions of CUDA have other variants, for 32-bit addresses. No
            // 64-bit program can distinguish the variants.
            suited.or(versions.last()).and_then(|(since, exact)| {
                let found = exported(exact)?;
                Some(if *since > 11000.max(version) { LookupResult::Later } else { LookupResult::Function(found) })
            })
        }
        None => exported(name).or_else(|| exported(&format!("{name}_v2"))).map(LookupResult::Function),
    };
    exact.unwrap_or(LookupResult::Nothing)
}

/// Looks a function up, and writes it; null if there is none.
///
/// # Safety
/// `symbol` is null or a text that ends with NUL; `to` is null or valid for writes.
pub unsafe fn find(symbol: *const c_char, to: *mut *mut c_void, version: c_int, flags: u64) -> Result<LookupResult> {
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, ptr::null_mut())? };
    if flags & !3 != 0 || flags == 3 {
        return Err(Error::value(format!("invalid flags of cuGetProcAddress: {flags:#x}")));
    }
    // SAFETY: guaranteed by the caller.
    let found = by_base_name(unsafe { text(symbol)? }, version);
    if let LookupResult::Function(function) = found {
        // SAFETY: guaranteed by the caller.
        unsafe { put(to, function)? };
    }
    Ok(found)
}

/// Returns the error of a lookup that finds nothing.
///
/// # Safety
/// `symbol` is null or a text that ends with NUL.
pub unsafe fn not_found(symbol: *const c_char, version: c_int) -> Error {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { text(symbol) }.unwrap_or_default();
    let why = format!("the driver has no function `{name}` for CUDA {}.{}", version / 1000, version % 1000 / 10);
    Error::new(CUresult::CUDA_ERROR_NOT_FOUND, why)
}

/// Returns the exported function of that name.
pub fn exported(name: &str) -> Option<*mut c_void> {
    let modules = [
        super::entry::find,
        super::device::find,
        super::context::find,
        super::module::find,
        super::library::find,
        super::function::find,
        super::memory::find,
        super::pool::find,
        super::copy::find,
        super::stream::find,
        super::graph::find,
        super::texture::find,
        super::unsupported::find,
    ];
    modules.iter().find_map(|find| find(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, version: c_int) -> Option<*mut c_void> {
        match by_base_name(name, version) {
            LookupResult::Function(function) => Some(function),
            LookupResult::Nothing | LookupResult::Later => None,
        }
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
        assert_eq!(ask("cuMemAlloc", 12000), exported("cuMemAlloc_v2"));
        assert_eq!(ask("cuCtxCreate", 11000), exported("cuCtxCreate_v2"));
        assert_eq!(ask("cuCtxCreate", 12090), exported("cuCtxCreate_v4"));
        assert_eq!(ask("cuInit", 2000), exported("cuInit"));
        assert_eq!(by_base_name("cuGetProcAddress", 11000), LookupResult::Later);
        // Names of cuda.h whose only variant has a suffix, and versions before the first variant.
        for (name, version, exact) in [
            ("cuLinkAddFile", 6050, "cuLinkAddFile_v2"),
            ("cuIpcOpenMemHandle", 11000, "cuIpcOpenMemHandle_v2"),
            ("cuMemcpyDtoA", 3020, "cuMemcpyDtoA_v2"),
            ("cuGraphInstantiate", 10000, "cuGraphInstantiate_v2"),
            ("cuDevicePrimaryCtxRelease", 7000, "cuDevicePrimaryCtxRelease_v2"),
            ("cuMemAlloc", 2000, "cuMemAlloc_v2"),
            ("cuStreamBeginCapture", 10000, "cuStreamBeginCapture_v2"),
        ] {
            assert!(ask(name, version).is_some() && ask(name, version) == exported(exact), "{name}");
        }
        // A suffix is not part of the name.
        for name in ["cuMemAlloc_v2", "cuLaunchKernel_ptsz", "cuMemcpy_ptds"] {
            assert!(exported(name).is_some() && by_base_name(name, 12000) == LookupResult::Nothing, "{name}");
        }
        assert_eq!(ask("cuFrobnicate", 12000), None);
        assert_eq!(ask("", 12000), None);
    }
}
