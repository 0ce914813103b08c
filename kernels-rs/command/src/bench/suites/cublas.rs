//! cuBLAS matrix products, the baseline of the benchmarks where the library is installed.

use crate::error::Error;
use ::runtime::Stream;
use cudarc::cublas::{result, sys};
use std::marker::PhantomData;
use std::ptr;

/// cuBLAS handle that submits to one of the runtime's streams, in `f32` throughout, without TF32 or
/// emulation.
pub(super) struct Cublas<'a> {
    handle: sys::cublasHandle_t,
    _stream: PhantomData<&'a Stream>,
}

/// Row-major product of contiguous matrices.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub shape: [usize; 3],
    /// B is stored as [N, K].
    pub transpose_b: bool,
    /// Addresses on the device of A, B and C.
    pub at: [u64; 3],
}

impl<'a> Cublas<'a> {
    /// Opens cuBLAS on the stream; returns `None` if the library is not installed. A library
    /// version unknown to cudarc is found under the name `libcublas.so` on `LD_LIBRARY_PATH`.
    pub fn open(stream: &'a Stream) -> Result<Option<Cublas<'a>>, Error> {
        // SAFETY: the initializers of libraries with this name have no harmful effects.
        if !unsafe { sys::is_culib_present() } {
            return Ok(None);
        }
        let on = stream.driver_handle().unwrap_or(ptr::null_mut());
        let handle = result::create_handle().map_err(failed)?;
        let cublas = Cublas { handle, _stream: PhantomData };
        // SAFETY: handle and stream are alive, and outlive `cublas`.
        unsafe {
            result::set_stream(handle, on.cast()).map_err(failed)?;
            sys::cublasSetMathMode(handle, sys::cublasMath_t::CUBLAS_PEDANTIC_MATH).result().map_err(failed)?;
        }
        Ok(Some(cublas))
    }

    /// Queues a product on the stream.
    ///
    /// # Safety
    /// The addresses must refer to device memory that holds the matrices until the stream has
    /// finished. No other work may use C during that time.
    pub unsafe fn queue(&self, product: &Product) -> Result<(), Error> {
        let [m, n, k] = product.shape.map(|n| n as i32);
        let [a, b, c] = product.at;
        use sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
        let (op_b, ld_b) = if product.transpose_b { (CUBLAS_OP_T, k) } else { (CUBLAS_OP_N, n) };
        let (alpha, beta) = (1f32, 0f32);
        // cuBLAS is column-major: Cᵀ = Bᵀ·Aᵀ. SAFETY: guaranteed by the caller; the factors are
        // read before the call returns.
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
        .map_err(failed)
    }
}

impl Drop for Cublas<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is alive and no longer used elsewhere.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

fn failed(error: result::CublasError) -> Error {
    Error::Peer { peer: "cuBLAS", message: error.to_string() }
}
