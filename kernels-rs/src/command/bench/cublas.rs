//! NVIDIA's own products: what ours are measured against, where the library is there.

use super::Error;
use ::runtime::Stream;
use cudarc::cublas::{result, sys};
use std::marker::PhantomData;
use std::ptr;

/// A handle that submits to a stream of ours; in `f32` throughout, without TF32 or emulation.
pub(super) struct Cublas<'a> {
    handle: sys::cublasHandle_t,
    _stream: PhantomData<&'a Stream>,
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

impl<'a> Cublas<'a> {
    /// `None` where there is no cuBLAS. One whose name has a number that cudarc does not know is found by the name `libcublas.so` on
    /// `LD_LIBRARY_PATH`.
    pub fn open(stream: &'a Stream) -> Result<Option<Cublas<'a>>, Error> {
        // SAFETY: libraries of that name have no initialisers that do harm.
        if !unsafe { sys::is_culib_present() } {
            return Ok(None);
        }
        let on = stream.driver_handle().unwrap_or(ptr::null_mut());
        let handle = result::create_handle().map_err(failed)?;
        let cublas = Cublas { handle, _stream: PhantomData };
        // SAFETY: handle and stream are alive, and stay so as long as `cublas`.
        unsafe {
            result::set_stream(handle, on.cast()).map_err(failed)?;
            sys::cublasSetMathMode(handle, sys::cublasMath_t::CUBLAS_PEDANTIC_MATH).result().map_err(failed)?;
        }
        Ok(Some(cublas))
    }

    /// Queues a product on the stream.
    ///
    /// # Safety
    /// The addresses are of device memory that holds the matrices until the stream is done, and nobody else uses C meanwhile.
    pub unsafe fn queue(&self, product: &Product) -> Result<(), Error> {
        let [m, n, k] = product.shape.map(|n| n as i32);
        let [a, b, c] = product.at;
        use sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
        let (op_b, ld_b) = if product.turned_b { (CUBLAS_OP_T, k) } else { (CUBLAS_OP_N, n) };
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
        .map_err(failed)
    }
}

impl Drop for Cublas<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and nobody has it any more.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

fn failed(error: result::CublasError) -> Error {
    Error::Peer { peer: "cuBLAS", said: error.to_string() }
}
