//! Direct driver calls, the baseline for the runtime's own calls.

use crate::error::Error;
use cudarc::driver::{CudaContext, CudaGraph, CudaStream, result, sys};
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// A stream of the first device, and a kernel loaded there.
pub(super) struct DriverBaseline {
    stream: Arc<CudaStream>,
    /// Kernel, which stays loaded until the process ends.
    function: sys::CUfunction,
}

impl DriverBaseline {
    /// Loads the PTX of a kernel and creates the launcher for `entry`.
    pub fn new(ptx: &str, entry: &str) -> Result<DriverBaseline, Error> {
        let [ptx, entry] = [ptx, entry].map(|text| CString::new(text).unwrap_or_default());
        let open = || {
            let stream = CudaContext::new(0)?.new_stream()?;
            // SAFETY: the text ends with a NUL; the context was just created and is current; the
            // module is loaded.
            let function = unsafe {
                let module = result::module::load_data(ptx.as_ptr().cast())?;
                result::module::get_function(module, entry)?
            };
            Ok(DriverBaseline { stream, function })
        };
        open().map_err(failed)
    }

    /// Calls `cuLaunchKernel` with one block of 256 threads.
    ///
    /// # Safety
    /// `parameters` must match the kernel's parameters.
    pub unsafe fn launch(&self, parameters: &mut [*mut c_void]) -> Result<(), Error> {
        // SAFETY: function and stream are alive; the caller guarantees the rest.
        unsafe {
            let stream = self.stream.cu_stream();
            sys::cuLaunchKernel(self.function, 1, 1, 1, 256, 1, 1, 0, stream, parameters.as_mut_ptr(), ptr::null_mut())
        }
        .result()
        .map_err(failed)
    }

    /// Captures the launches submitted by `launches` into a graph.
    pub fn capture(&self, launches: impl FnOnce() -> Result<(), Error>) -> Result<CudaGraph, Error> {
        self.stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).map_err(failed)?;
        let launched = launches();
        let graph = self.stream.end_capture(sys::CUgraphInstantiate_flags(0)).map_err(failed)?;
        launched?;
        graph.ok_or_else(|| Error::Peer { peer: "the CUDA driver", message: "it captured nothing".into() })
    }

    /// `cuGraphLaunch`
    pub fn replay(&self, graph: &CudaGraph) -> Result<(), Error> {
        graph.launch().map_err(failed)
    }

    pub fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize().map_err(failed)
    }

    /// `cuMemAlloc` and `cuMemFree`.
    pub fn allocate(&self, bytes: usize) -> Result<(), Error> {
        let mut address = 0;
        // SAFETY: the context is current because this thread made it so; the allocation is freed
        // exactly once.
        unsafe { sys::cuMemAlloc_v2(&mut address, bytes).result().and_then(|()| sys::cuMemFree_v2(address).result()) }
            .map_err(failed)
    }

    /// `cuMemAllocAsync` and `cuMemFreeAsync`.
    pub fn allocate_in_order(&self, bytes: usize) -> Result<(), Error> {
        let (mut address, stream) = (0, self.stream.cu_stream());
        // SAFETY: as above; the stream is alive.
        unsafe {
            sys::cuMemAllocAsync(&mut address, bytes, stream)
                .result()
                .and_then(|()| sys::cuMemFreeAsync(address, stream).result())
        }
        .map_err(failed)
    }
}

fn failed(error: cudarc::driver::DriverError) -> Error {
    Error::Peer { peer: "the CUDA driver", message: error.to_string() }
}
