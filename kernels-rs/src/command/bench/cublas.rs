//! NVIDIA's own products: what ours are measured against, where the library is there.

use super::Error;
use cudarc::cublas::{result, sys};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, sys::CUevent_flags};
use std::sync::Arc;
use std::time::Duration;

/// A handle of the first device, on a stream of its own; in `f32` throughout, without TF32 or emulation.
pub(super) struct Cublas {
    handle: sys::cublasHandle_t,
    stream: Arc<CudaStream>,
}

/// A row-major product, matrices without gaps.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub shape: [usize; 3],
    /// B is stored as [N, K].
    pub turned_b: bool,
    /// Addresses on the device of A, B and C.
    pub at: [u64; 3],
}

impl Cublas {
    /// `None` where there is no cuBLAS. One whose name has a number that cudarc does not know is found by the name `libcublas.so` on
    /// `LD_LIBRARY_PATH`.
    pub fn open() -> Result<Option<Cublas>, Error> {
        // SAFETY: libraries of that name have no initialisers that do harm.
        if !unsafe { sys::is_culib_present() } {
            return Ok(None);
        }
        let stream = CudaContext::new(0).and_then(|context| context.new_stream()).map_err(driver)?;
        let handle = result::create_handle().map_err(failed)?;
        let cublas = Cublas { handle, stream };
        // SAFETY: handle and stream are alive, and stay so as long as `cublas`.
        unsafe {
            result::set_stream(handle, cublas.stream.cu_stream().cast()).map_err(failed)?;
            sys::cublasSetMathMode(handle, sys::cublasMath_t::CUBLAS_PEDANTIC_MATH).result().map_err(failed)?;
        }
        Ok(Some(cublas))
    }

    /// How long the device takes for `times` products in a row, by its own clock.
    ///
    /// # Safety
    /// The addresses are of device memory that holds the matrices, and nobody else uses C meanwhile.
    pub unsafe fn time(&self, product: &Product, times: u32) -> Result<Duration, Error> {
        let [m, n, k] = product.shape.map(|n| n as i32);
        let [a, b, c] = product.at;
        use sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
        let (op_b, ld_b) = if product.turned_b { (CUBLAS_OP_T, k) } else { (CUBLAS_OP_N, n) };
        let start = self.mark()?;
        for _ in 0..times {
            let (alpha, beta) = (1f32, 0f32);
            // cuBLAS counts column by column: Cᵀ = Bᵀ·Aᵀ.
            // SAFETY: by the caller's promise; the factors are read before the call returns.
            unsafe {
                sys::cublasSgemm_v2(
                    self.handle,
                    op_b,
                    CUBLAS_OP_N,
                    n,
                    m,
                    k,
                    &alpha,
                    b as *const f32,
                    ld_b,
                    a as *const f32,
                    k,
                    &beta,
                    c as *mut f32,
                    n,
                )
            }
            .result()
            .map_err(failed)?;
        }
        let end = self.mark()?;
        end.synchronize().map_err(driver)?;
        let ms = start.elapsed_ms(&end).map_err(driver)?;
        Ok(Duration::from_secs_f64(f64::from(ms) / 1e3))
    }

    fn mark(&self) -> Result<CudaEvent, Error> {
        self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(driver)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and nobody has it any more.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

fn failed(error: result::CublasError) -> Error {
    Error::Peer { peer: "cuBLAS", said: error.to_string() }
}

fn driver(error: DriverError) -> Error {
    Error::Peer { peer: "the CUDA driver", said: error.to_string() }
}
