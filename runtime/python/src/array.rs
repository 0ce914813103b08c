//! Arrays of this package: row-major memory of the runtime, which other libraries read in place.

use crate::device::Where;
use crate::dlpack;
use crate::error;
use crate::foreign::{ArrayForm, Foreign, Held};
use crate::scalar::{self, name_of, named, typestr};
use kernel_dsl::compiler::Scalar;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use runtime_devices::executor::{PoolKind, RawBuffer};
use std::sync::Arc;

/// A row-major array in memory of this package, on the CPU or a GPU.
///
/// Other libraries read it without a copy: numpy.asarray(a) on the CPU, torch.from_dlpack(a),
/// cupy.from_dlpack(a), jax.dlpack.from_dlpack(a).
#[pyclass(frozen, module = "kernels_rs")]
pub struct Array {
    pub raw: Arc<RawBuffer>,
    pub place: Where,
    pub scalar: Scalar,
    pub shape: Vec<usize>,
    pub writable: bool,
}

/// Returns the number of elements of a shape; `None` if it exceeds a `usize`.
fn elements_of(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent))
}

/// Returns the number of bytes of an array; `None` if it exceeds a `usize`.
fn bytes_of(scalar: Scalar, shape: &[usize]) -> Option<usize> {
    elements_of(shape)?.checked_mul(scalar.bytes() as usize)
}

impl Array {
    /// Allocates zeros, and calls `fill` with the memory.
    fn new(
        py: Python<'_>,
        place: Where,
        (scalar, shape): (Scalar, Vec<usize>),
        fill: impl FnOnce(&mut RawBuffer) -> runtime::Result<()> + Send,
    ) -> PyResult<Array> {
        let opened = place.open(py)?;
        let bytes = bytes_of(scalar, &shape)
            .ok_or_else(|| PyValueError::new_err(format!("an array of shape {shape:?} is too large")))?;
        let made = py.detach(|| {
            let mut raw = RawBuffer::new(&opened.device, PoolKind::Device, bytes)?;
            if bytes > 0 {
                raw.fill(0)?;
                fill(&mut raw)?;
            }
            Ok(Arc::new(raw))
        });
        Ok(Array { raw: made.map_err(|e| error::runtime(py, e))?, place, scalar, shape, writable: true })
    }

    /// Makes a row-major array over memory.
    pub fn over(raw: RawBuffer, place: Where, scalar: Scalar, shape: Vec<usize>) -> Array {
        Array { raw: Arc::new(raw), place, scalar, shape, writable: true }
    }

    fn dlpack_device(&self) -> (i32, i32) {
        match self.place {
            Where::Cpu => (dlpack::CPU, 0),
            Where::Cuda(ordinal) => (dlpack::CUDA, ordinal as i32),
        }
    }

    fn interface(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("typestr", typestr(self.scalar))?;
        interface.set_item("data", (self.raw.address(), !self.writable))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("version", 3)?;
        Ok(interface.into_any().unbind())
    }
}

#[pymethods]
impl Array {
    /// Returns the extents, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Returns the NumPy name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        name_of(self.scalar)
    }

    /// Returns the device: "cpu" or "cuda:0".
    #[getter]
    fn device(&self) -> String {
        self.place.to_string()
    }

    /// Returns the number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the number of bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.raw.bytes()
    }

    /// Returns the address of the first element.
    #[getter]
    fn ptr(&self) -> u64 {
        self.raw.address()
    }

    /// Returns the same memory with another shape: extents, or a tuple of them. One extent may be
    /// -1, which is the number that fits.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> PyResult<Array> {
        let given: Vec<isize> = match shape.len() {
            1 => shape.get_item(0)?.extract().or_else(|_| shape.extract())?,
            _ => shape.extract()?,
        };
        let known: Vec<usize> = given.iter().filter_map(|n| usize::try_from(*n).ok()).collect();
        let open = match elements_of(&known) {
            Some(n) if n > 0 && self.size().is_multiple_of(n) => self.size() / n,
            _ => 0,
        };
        let shape: Option<Vec<usize>> =
            given.iter().map(|n| if *n == -1 { Some(open) } else { usize::try_from(*n).ok() }).collect();
        let unknown = given.len() - known.len();
        match shape {
            Some(shape) if unknown <= 1 && elements_of(&shape) == Some(self.size()) => {
                Ok(Array { raw: self.raw.clone(), shape, ..*self })
            }
            _ => Err(PyValueError::new_err(format!("{} elements have no shape {given:?}", self.size()))),
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape.first().copied().ok_or_else(|| PyTypeError::new_err("an array of rank 0 has no length"))
    }

    fn __repr__(&self) -> String {
        format!("Array(shape={:?}, dtype={}, device='{}')", self.shape, self.dtype(), self.place)
    }

    /// Returns a copy of the elements as bytes, row-major.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        let mut bytes = vec![0; self.raw.bytes()];
        py.detach(|| self.raw.read(&mut bytes)).map_err(|e| error::runtime(py, e))?;
        Ok(pyo3::types::PyBytes::new(py, &bytes))
    }

    /// Returns what `pickle` and `copy` call to make the array again, and its arguments.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let again = py.import("kernels_rs._native")?.getattr("array_of_bytes")?;
        let arguments = (self.tobytes(py)?, self.dtype(), &self.shape, self.device()).into_pyobject(py)?;
        Ok((again, arguments))
    }

    #[getter]
    fn __array_interface__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.place {
            Where::Cpu => self.interface(py),
            Where::Cuda(_) => {
                Err(PyAttributeError::new_err("an array of a GPU has no `__array_interface__`; `numpy()` copies it"))
            }
        }
    }

    #[getter]
    fn __cuda_array_interface__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.place {
            Where::Cpu => Err(PyAttributeError::new_err("an array of the CPU has no `__cuda_array_interface__`")),
            Where::Cuda(_) => self.interface(py),
        }
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        self.dlpack_device()
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__(
        slf: &Bound<'_, Self>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        // Calls of this package are complete, or the caller waits for the stream that it named.
        let _ = stream;
        let own = slf.get();
        if copy == Some(true) || dl_device.is_some_and(|device| device != own.dlpack_device()) {
            return Err(PyBufferError::new_err("this array is exported in place only: without a copy, on its device"));
        }
        let described = (own.raw.address(), own.scalar, &own.shape[..]);
        let form = (max_version.is_some_and(|(major, _)| major >= 1), own.writable);
        dlpack::produce(slf.py(), slf.clone().into_any().unbind(), described, own.dlpack_device(), form)
    }
}

/// Makes an array of zeros.
#[pyfunction]
#[pyo3(signature = (shape, dtype = None, device = None))]
pub fn zeros(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<Array> {
    let given: Vec<isize> = match shape.extract::<isize>() {
        Ok(n) => vec![n],
        Err(_) => shape.extract()?,
    };
    let shape: Option<Vec<usize>> = given.iter().map(|n| usize::try_from(*n).ok()).collect();
    let shape =
        shape.ok_or_else(|| PyValueError::new_err(format!("no extent of a shape is negative, given {given:?}")))?;
    let scalar = dtype.map_or(Ok(Scalar::F32), scalar::dtype)?;
    Array::new(py, device.map_or(Ok(Where::Cpu), Where::of)?, (scalar, shape), |_| Ok(()))
}

/// Makes an array of the bytes that [`Array::tobytes`] returns.
#[pyfunction]
pub fn array_of_bytes(
    py: Python<'_>,
    bytes: &[u8],
    dtype: &str,
    shape: Vec<usize>,
    device: &Bound<'_, PyAny>,
) -> PyResult<Array> {
    let scalar = named(dtype)?;
    if bytes_of(scalar, &shape) != Some(bytes.len()) {
        let given = bytes.len();
        return Err(PyValueError::new_err(format!("{given} bytes are no array of {dtype} with the shape {shape:?}")));
    }
    Array::new(py, Where::of(device)?, (scalar, shape), |raw| raw.write(bytes))
}

/// Makes a copy of a row-major host array on a device.
#[pyfunction]
#[pyo3(signature = (source, device = None))]
pub fn array(py: Python<'_>, source: &Bound<'_, PyAny>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
    let foreign = Foreign::required(source, "source")?;
    if let Where::Cuda(_) = foreign.place {
        let message = format!("`source` is on {}: `kernels_rs.numpy` copies an Array to the host", foreign.place);
        return Err(PyValueError::new_err(message));
    }
    if !foreign.is_contiguous() {
        return Err(PyValueError::new_err("`source` is not row-major: copy the array"));
    }
    let place = device.map_or(Ok(Where::Cpu), Where::of)?;
    let start = foreign.address as usize;
    Array::new(py, place, (foreign.scalar, foreign.shape.clone()), |raw| {
        // SAFETY: a row-major array in host memory has these bytes; `foreign` keeps them alive.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), raw.bytes()) };
        raw.write(bytes)
    })
}

/// Returns a row-major array of any library as an Array over the same memory.
#[pyfunction]
pub fn asarray<'py>(py: Python<'py>, source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Array>> {
    if let Ok(own) = source.cast::<Array>() {
        return Ok(own.clone());
    }
    let foreign = Foreign::required(source, "source")?;
    let (place, scalar, shape, writable) = (foreign.place, foreign.scalar, foreign.shape.clone(), foreign.writable);
    let opened = place.open(py)?;
    foreign.wait_for_producer(py, &opened.stream)?;
    // The array may be used on any stream from now on.
    py.detach(|| opened.complete(|_| Ok(()))).map_err(|e| error::runtime(py, e))?;
    match foreign.memory(&opened, ArrayForm::Slice, "source", false)?.0 {
        Held::Adopted(raw) => Bound::new(py, Array { raw: Arc::new(raw), place, scalar, shape, writable }),
        Held::Array(_) | Held::Buffers(_) => unreachable!("`source` belongs to another library"),
    }
}

/// Describes any array as this package sees it: a dict of address, shape, strides in elements,
/// dtype, device and writable.
#[pyfunction]
pub fn describe<'py>(py: Python<'py>, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let foreign = Foreign::required(array, "array")?;
    let all = PyDict::new(py);
    all.set_item("address", foreign.address)?;
    all.set_item("shape", PyTuple::new(py, &foreign.shape)?)?;
    all.set_item("strides", PyTuple::new(py, &foreign.strides)?)?;
    all.set_item("dtype", name_of(foreign.scalar))?;
    all.set_item("device", foreign.place.to_string())?;
    all.set_item("writable", foreign.writable)?;
    Ok(all)
}
