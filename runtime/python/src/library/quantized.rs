//! Quantized weights of linear layers, and products with them.

use super::operands::{AnyObject, Arrays, DeviceCall, unsupported};
use crate::array::Array;
use crate::call::OpenCall;
use crate::device::Where;
use crate::error;
use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use kernels_rs::quant::{Format, Weights};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use runtime::Result;
use runtime_devices::executor::RawBuffer;
use std::sync::Arc;

/// Quantized weights of a linear layer, [out features, in features], repacked for the products.
#[pyclass(frozen, module = "kernels_rs", name = "Quantized")]
pub(super) struct QuantizedWeights {
    weights: Arc<Weights>,
    place: Where,
}

/// Returns the format with a name of GGML.
fn format(name: &str) -> PyResult<Format> {
    let mut known = Format::ALL.into_iter().filter(|format| *format != Format::Int8);
    known.find(|format| format.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let all: Vec<_> = Format::ALL.iter().filter(|f| **f != Format::Int8).map(|format| format.name()).collect();
        PyValueError::new_err(format!("no format `{name}`; the formats are {}", all.join(", ")))
    })
}

#[pymethods]
impl QuantizedWeights {
    /// Quantizes float weights to "Q8_0" or "Q4_0" on their device.
    #[staticmethod]
    #[pyo3(signature = (weight, format = "Q8_0"))]
    fn quantize(py: Python<'_>, weight: AnyObject<'_, '_>, format: &str) -> PyResult<QuantizedWeights> {
        let format = self::format(format)?;
        let mut arrays = Arrays::of(&[("weight", weight)])?;
        let place = arrays.first().place;
        let call = arrays.open(py, None)?;
        floats!(arrays.first(), T => {
            let w = arrays.take::<T, 2>(&call)?;
            QuantizedWeights::made(call, place, w, move |on, w| match format {
                Format::Q8_0 => Ok(Some(Weights::quantize_q8(on, &w.view()?)?)),
                Format::Q4_0 => Ok(Some(Weights::quantize_q4(on, &w.view()?)?)),
                _ => Ok(None),
            })
        })
    }

    /// Reads the blocks of a GGUF file: bytes [out features, bytes of a row], in a format such as
    /// "Q4_K".
    #[staticmethod]
    #[pyo3(signature = (blocks, format))]
    fn from_blocks(py: Python<'_>, blocks: AnyObject<'_, '_>, format: &str) -> PyResult<QuantizedWeights> {
        let format = self::format(format)?;
        let mut arrays = Arrays::of(&[("blocks", blocks)])?;
        let place = arrays.first().place;
        let call = arrays.open(py, None)?;
        let blocks = arrays.take::<u8, 2>(&call)?;
        QuantizedWeights::made(call, place, blocks, move |on, blocks| {
            Ok(Some(Weights::from_blocks(on, format, &blocks.view()?)?))
        })
    }

    /// Makes weights over the memory of `planes`.
    #[staticmethod]
    fn from_planes(
        py: Python<'_>,
        words: AnyObject<'_, '_>,
        halves: AnyObject<'_, '_>,
        format: &str,
        shape: [usize; 2],
    ) -> PyResult<QuantizedWeights> {
        let format = self::format(format)?;
        let mut arrays = Arrays::of(&[("words", words), ("halves", halves)])?;
        let place = arrays.first().place;
        let call = arrays.open(py, None)?;
        let (words, halves) = (arrays.take_as::<u32, 1>(&call)?, arrays.take_as::<u16, 1>(&call)?);
        let weights = Weights::from_planes(format, shape, words.buffer, halves.buffer);
        Ok(QuantizedWeights { weights: Arc::new(weights.map_err(|e| error::runtime(py, e))?), place })
    }

    /// Returns the weights themselves, which never change.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Returns the weights themselves, which never change.
    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Returns what `pickle` calls to make the weights again, and its arguments.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, own) = (slf.py(), slf.get());
        let (words, halves) = own.planes();
        let again = py.import("kernels_rs._library")?.getattr("_quantized_again")?;
        let arguments = (words, halves, own.format(), own.shape()).into_pyobject(py)?;
        Ok((again, arguments))
    }

    /// Computes out ← x · Wᵀ.
    #[pyo3(signature = (x, out, stream = None))]
    fn product(
        &self,
        py: Python<'_>,
        x: AnyObject<'_, '_>,
        out: AnyObject<'_, '_>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut arrays = Arrays::of(&[("x", x), ("out", out)])?;
        let call = arrays.open(py, stream)?;
        let weights = self.weights.clone();
        floats!(arrays.first(), T => {
            let (x, y) = (arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
            call.run((x, y, weights), |on, (x, y, weights)| weights.product(on, &x.view()?, &mut y.view_mut()?))
        })
    }

    /// Returns the memory of the weights, as arrays of int32 and int16, for `quantized_product`.
    fn planes(&self) -> (Array, Array) {
        let (words, halves) = self.weights.planes();
        let [words, halves] =
            [(words.device_address(), words.len(), Scalar::I32), (halves.device_address(), halves.len(), Scalar::I16)]
                .map(|(address, len, scalar)| {
                    let bytes = len * scalar.bytes() as usize;
                    let owner = PlaneOwner { _weights: self.weights.clone(), place: self.place };
                    // SAFETY: the plane has these bytes, which the weights keep alive. No kernel
                    // writes weights, and other code must not, as for all arrays of a call.
                    let raw = unsafe { RawBuffer::adopted(words.device(), address, bytes, Box::new(owner)) };
                    Array::over(raw, self.place, scalar, vec![len])
                });
        (words, halves)
    }

    /// Returns the extents: out features, in features.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        let [rows, cols] = self.weights.extents();
        (rows, cols)
    }

    /// Returns the format's name.
    #[getter]
    fn format(&self) -> &'static str {
        self.weights.format().name()
    }

    /// Returns the device: "cpu" or "cuda:0".
    #[getter]
    fn device(&self) -> String {
        self.place.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Quantized(shape={:?}, format='{}', device='{}')", self.shape(), self.format(), self.place)
    }
}

/// The owner of a plane that is a tensor of PyTorch. The weights' own tracker does not see the
/// launches of operators, and PyTorch drops the owner on the host, before these launches are over.
struct PlaneOwner {
    _weights: Arc<Weights>,
    place: Where,
}

impl Drop for PlaneOwner {
    fn drop(&mut self) {
        let Where::Cuda(ordinal) = self.place else { return };
        // Without an interpreter, the process ends and frees no memory.
        let _ = Python::try_attach(|py| {
            let torch = py.import("torch.cuda")?;
            torch.call_method1("synchronize", (ordinal,)).map(drop)
        });
    }
}

/// Computes out ← x · Wᵀ with the planes of quantized weights of a format and of extents [out
/// features, in features].
#[pyfunction]
#[pyo3(signature = (x, planes, format, shape, out, stream = None))]
pub(super) fn quantized_product(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    planes: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    format: &str,
    shape: [usize; 2],
    out: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let format = self::format(format)?;
    let mut arrays = Arrays::of(&[("x", x), ("out", out), ("words", &planes.0), ("halves", &planes.1)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (x, y) = (arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        let (words, halves) = (arrays.take_as::<u32, 1>(&call)?, arrays.take_as::<u16, 1>(&call)?);
        let weights = Weights::from_planes(format, shape, words.buffer, halves.buffer);
        let weights = weights.map_err(|e| error::runtime(py, e))?;
        call.run((x, y, weights), |on, (x, y, weights)| weights.product(on, &x.view()?, &mut y.view_mut()?))
    })
}

impl QuantizedWeights {
    fn made<B: Send + Sync>(
        call: DeviceCall<'_>,
        place: Where,
        mut buffers: B,
        make: impl FnOnce(&runtime::Stream, &mut B) -> Result<Option<Weights>> + Send,
    ) -> PyResult<QuantizedWeights> {
        let DeviceCall { py, open: OpenCall { opened, .. } } = call;
        let mut weights = None;
        opened.interruptible(py, || {
            opened.complete(|on| {
                weights = make(on, &mut buffers)?;
                Ok(())
            })
        })?;
        let weights = weights.ok_or_else(|| PyValueError::new_err("floats are quantized to Q8_0 or Q4_0"))?;
        Ok(QuantizedWeights { weights: Arc::new(weights), place })
    }
}
