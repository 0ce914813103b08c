//! Functions of cuda.h that are not supported, grouped by the reason. Each is exported, logs its
//! name and the reason, and fails. A program that links to such a function can thus still be
//! loaded.

use crate::core::error::Error;

/// In the C calling convention the caller removes the arguments, so the function can ignore them.
macro_rules! unsupported {
    ($($why:literal: $($name:ident)*;)*) => {
        $($(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> cudarc::driver::sys::CUresult {
                super::guard(stringify!($name), || Err(Error::unsupported(concat!("the function is not supported: ", $why))))
            }
        )*)*

        /// Returns the function of that name.
        pub(super) fn find(name: &str) -> Option<*mut std::ffi::c_void> {
            match name {
                $($(stringify!($name) => Some($name as *mut std::ffi::c_void),)*)*
                _ => None,
            }
        }

        /// The functions, by the reason.
        pub(super) const GROUPS: &[(&str, &[&str])] = &[$(($why, &[$(stringify!($name)),*])),*];
    };
}

unsupported! {
    "textures have one level of detail and the format of their memory, and arrays have no planes or holes":
        cuArrayGetMemoryRequirements
        cuArrayGetPlane
        cuArrayGetSparseProperties
        cuExternalMemoryGetMappedMipmappedArray
        cuGraphicsResourceGetMappedMipmappedArray
        cuGraphicsSubResourceGetMappedArray
        cuMemMapArrayAsync
        cuMipmappedArrayCreate
        cuMipmappedArrayDestroy
        cuMipmappedArrayGetLevel
        cuMipmappedArrayGetMemoryRequirements
        cuMipmappedArrayGetSparseProperties
        cuTensorMapEncodeIm2col
        cuTensorMapEncodeIm2colWide
        cuTensorMapEncodeTiled
        cuTensorMapReplaceAddress
        cuTexObjectGetResourceViewDesc
        cuTexRefGetMipmapFilterMode
        cuTexRefGetMipmapLevelBias
        cuTexRefGetMipmapLevelClamp
        cuTexRefGetMipmappedArray
        cuTexRefSetMipmapFilterMode
        cuTexRefSetMipmapLevelBias
        cuTexRefSetMipmapLevelClamp
        cuTexRefSetMipmappedArray
    ;
    "there is no graphics device":
        cuGraphicsMapResources
        cuGraphicsResourceGetMappedPointer_v2
        cuGraphicsResourceSetMapFlags_v2
        cuGraphicsUnmapResources
        cuGraphicsUnregisterResource
    ;
    "there are no external memories or semaphores":
        cuDestroyExternalMemory
        cuDestroyExternalSemaphore
        cuExternalMemoryGetMappedBuffer
        cuGraphAddExternalSemaphoresSignalNode
        cuGraphAddExternalSemaphoresWaitNode
        cuGraphExecExternalSemaphoresSignalNodeSetParams
        cuGraphExecExternalSemaphoresWaitNodeSetParams
        cuGraphExternalSemaphoresSignalNodeGetParams
        cuGraphExternalSemaphoresSignalNodeSetParams
        cuGraphExternalSemaphoresWaitNodeGetParams
        cuGraphExternalSemaphoresWaitNodeSetParams
        cuImportExternalMemory
        cuImportExternalSemaphore
        cuSignalExternalSemaphoresAsync
        cuWaitExternalSemaphoresAsync
    ;
    "memory and events belong to one process":
        cuDeviceGetCliqueCount
        cuDeviceGetCliqueInfo
        cuDeviceGetFabricClusterUuid
        cuIpcCloseMemHandle
        cuIpcGetEventHandle
        cuIpcGetMemHandle
        cuIpcOpenEventHandle
        cuIpcOpenMemHandle_v2
        cuMemExportToShareableHandle
        cuMemGetHandleForAddressRange
        cuMemImportFromShareableHandle
        cuMemPoolExportPointer
        cuMemPoolExportToShareableHandle
        cuMemPoolImportFromShareableHandle
        cuMemPoolImportPointer
    ;
    "addresses are not mapped apart from memory":
        cuMemAddressFree
        cuMemAddressReserve
        cuMemCreate
        cuMemGetAccess
        cuMemGetAllocationGranularity
        cuMemGetAllocationPropertiesFromHandle
        cuMemMap
        cuMemRelease
        cuMemRetainAllocationHandle
        cuMemSetAccess
        cuMemUnmap
    ;
    "devices access memory of other devices by copies only":
        cuDeviceGetP2PAtomicCapabilities
        cuFlushGPUDirectRDMAWrites
        cuMulticastAddDevice
        cuMulticastBindAddr
        cuMulticastBindAddr_v2
        cuMulticastBindMem
        cuMulticastBindMem_v2
        cuMulticastCreate
        cuMulticastGetGranularity
        cuMulticastUnbind
    ;
    "the device has no partitions of its multiprocessors":
        cuCtxFromGreenCtx
        cuCtxGetDevResource
        cuCtxGetExecAffinity
        cuCtxRecordEvent
        cuCtxWaitEvent
        cuDevResourceGenerateDesc
        cuDevSmResourceSplit
        cuDevSmResourceSplitByCount
        cuDeviceGetDevResource
        cuDeviceGetExecAffinitySupport
        cuGreenCtxCreate
        cuGreenCtxDestroy
        cuGreenCtxGetDevResource
        cuGreenCtxGetId
        cuGreenCtxRecordEvent
        cuGreenCtxStreamCreate
        cuGreenCtxWaitEvent
        cuStreamGetDevResource
        cuStreamGetGreenCtx
    ;
    "streams do not wait for values in memory":
        cuGraphAddBatchMemOpNode
        cuGraphBatchMemOpNodeGetParams
        cuGraphBatchMemOpNodeSetParams
        cuGraphExecBatchMemOpNodeSetParams
        cuStreamBatchMemOp
        cuStreamBatchMemOp_v2
        cuStreamWaitValue32
        cuStreamWaitValue32_v2
        cuStreamWaitValue64
        cuStreamWaitValue64_v2
        cuStreamWriteValue32
        cuStreamWriteValue32_v2
        cuStreamWriteValue64
        cuStreamWriteValue64_v2
    ;
    "there are no core dumps of the device":
        cuCoredumpDeregisterCompleteCallback
        cuCoredumpDeregisterStartCallback
        cuCoredumpGetAttribute
        cuCoredumpGetAttributeGlobal
        cuCoredumpRegisterCompleteCallback
        cuCoredumpRegisterStartCallback
        cuCoredumpSetAttribute
        cuCoredumpSetAttributeGlobal
    ;
    "the device has no clusters of blocks":
        cuOccupancyMaxActiveClusters
        cuOccupancyMaxPotentialClusterSize
    ;
    "the driver would have to return undocumented tables, with which NVIDIA's runtime library verifies it":
        cuGetExportTable
    ;
    "the only log is that of CUDA_ON_CPU_LOG":
        cuLogsCurrent
        cuLogsDumpToFile
        cuLogsDumpToMemory
        cuLogsRegisterCallback
        cuLogsUnregisterCallback
    ;
    "the driver has no events to report":
        cuDeviceRegisterAsyncNotification
        cuDeviceUnregisterAsyncNotification
    ;
    "graphs have no conditions":
        cuGraphConditionalHandleCreate
    ;
    "the memory of graphs is memory of their context":
        cuDeviceGetGraphMemAttribute
        cuDeviceGraphMemTrim
        cuDeviceSetGraphMemAttribute
    ;
    "no tested program uses it":
        cuCtxSynchronize_v2
        cuDeviceGetHostAtomicCapabilities
        cuDeviceGetLuid
        cuDeviceGetProperties
        cuGraphAddNode_v3
        cuGraphExecGetId
        cuGraphGetId
        cuGraphNodeGetContainingGraph
        cuGraphNodeGetLocalId
        cuGraphNodeGetToolsId
        cuGraphNodeSetParams_v2
        cuLaunchCooperativeKernelMultiDevice
        cuLaunchHostFunc_v2
        cuMemBatchDecompressAsync
        cuMemDiscardAndPrefetchBatchAsync
        cuMemDiscardBatchAsync
        cuMemGetDefaultMemPool
        cuMemGetLocationInfo
        cuMemGetMemPool
        cuMemPrefetchBatchAsync
        cuMemRangeGetAttribute
        cuMemRangeGetAttributes
        cuMemSetMemPool
        cuMemcpy3DBatchAsync
        cuMemcpy3DBatchAsync_v2
        cuMemcpy3DWithAttributesAsync
        cuMemcpyBatchAsync
        cuMemcpyBatchAsync_v2
        cuMemcpyWithAttributesAsync
        cuProfilerInitialize
        cuStreamBeginCaptureToCig
        cuStreamBeginRecaptureToGraph
        cuStreamEndCaptureToCig
    ;
}
