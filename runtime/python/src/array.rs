//! Arrays of other libraries as memory of a device, and arrays of this package.

use crate::device::{On, Opened, Where};
use crate::dlpack::{self, Managed};
use crate::error;
use crate::torch::{Torch, TorchTensor};
use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::{Argument, Element, launcher::ArgumentShape};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use runtime::DeviceBuffer;
use runtime_devices::executor::{PoolKind, RawBuffer};
use std::sync::Arc;

/// The largest rank of a view.
const MAX_RANK: usize = 5;

/// An array that a caller passed: the location and form of its elements, and the owner that keeps
/// them alive.
pub struct Foreign {
    pub place: Where,
    pub address: u64,
    pub scalar: Scalar,
    pub shape: Vec<usize>,
    /// In elements.
    pub strides: Vec<isize>,
    pub writable: bool,
    owner: Owner,
    /// A stream of the producer with pending work on the array.
    pending: Option<usize>,
}

/// The object that keeps the elements alive.
enum Owner {
    Object(#[expect(dead_code, reason = "dropped at the end of the last use")] Py<PyAny>),
    /// A tensor of PyTorch.
    Torch(#[expect(dead_code, reason = "dropped at the end of the last use")] Py<PyAny>),
    Managed(#[expect(dead_code, reason = "dropped at the end of the last use")] Managed),
    Array(Py<Array>),
}

/// Memory that a call uses.
pub enum Held {
    /// Memory of another library, adopted.
    Adopted(RawBuffer),
    /// An array of this package.
    Array(Py<Array>),
    /// The buffers of a call of the library.
    Buffers(Box<dyn std::any::Any + Send + Sync>),
}

impl Foreign {
    /// Reads an array of any library. Returns `None` if the object is not an array. `name` is the
    /// array's name in errors.
    pub fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Foreign>> {
        let py = object.py();
        if let Ok(array) = object.cast::<Array>() {
            let own = array.get();
            return Ok(Some(Foreign {
                place: own.place,
                address: own.raw.address(),
                scalar: own.scalar,
                shape: own.shape.clone(),
                strides: dlpack::contiguous(&own.shape),
                writable: own.writable,
                owner: Owner::Array(array.clone().unbind()),
                pending: None,
            }));
        }
        let found = if let Some(found) = Foreign::of_torch(object)? {
            Some(found)
        } else if let Some(interface) = object.getattr_opt(intern!(py, "__array_interface__"))? {
            Some(Foreign::of_interface(object, &interface, Where::Cpu)?)
        } else if object.hasattr(intern!(py, "__dlpack__"))? {
            Some(Foreign::of_dlpack(object)?)
        } else if let Some(interface) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
            // The interface has no device number. The driver rejects a pointer of another device.
            let ordinal = object.getattr_opt(intern!(py, "device"))?.and_then(|device| device_number(&device));
            Some(Foreign::of_interface(object, &interface, Where::Cuda(ordinal.unwrap_or(0)))?)
        } else {
            None
        };
        let Some(found) = found else { return Ok(None) };
        let bytes = u64::from(found.scalar.bytes());
        if found.shape.iter().all(|n| *n > 0) && !found.address.is_multiple_of(bytes) {
            return Err(PyValueError::new_err(format!(
                "`{name}` is not aligned to its elements of {bytes} bytes; copy the array"
            )));
        }
        Ok(Some(found))
    }

    /// Reads `__array_interface__` or `__cuda_array_interface__`.
    fn of_interface(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>, place: Where) -> PyResult<Foreign> {
        let py = object.py();
        let item = |key| interface.get_item(key);
        let shape: Vec<usize> = item(intern!(py, "shape"))?.extract()?;
        let typestr: String = item(intern!(py, "typestr"))?.extract()?;
        if typestr.starts_with('>') {
            return Err(other_order(&typestr));
        }
        let scalar = match of_typestr(&typestr) {
            Some(scalar) => scalar,
            // The dtypes of other libraries have no code.
            None => {
                let dtype = object.getattr(intern!(py, "dtype"))?;
                named(&dtype.getattr(intern!(py, "name"))?.extract::<String>()?)?
            }
        };
        let (address, read_only): (u64, bool) = item(intern!(py, "data"))?.extract()?;
        let optional = |key: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let value = interface.call_method1(intern!(py, "get"), (key,))?;
            Ok((!value.is_none()).then_some(value))
        };
        // NumPy's masked arrays have the mask as an attribute, False without masked elements.
        let hides = |mask: Bound<'_, PyAny>| mask.call_method0(intern!(py, "any")).and_then(|any| any.is_truthy());
        let masked = object.getattr_opt(intern!(py, "mask"))?.is_some_and(|mask| hides(mask).unwrap_or(false));
        if masked || optional("mask")?.is_some() {
            return Err(PyTypeError::new_err("arrays with a mask are not supported"));
        }
        let width = scalar.bytes() as isize;
        let strides = match optional("strides")? {
            None => dlpack::contiguous(&shape),
            Some(strides) => {
                let bytes: Vec<isize> = strides.extract()?;
                let long = shape.iter().map(|n| *n > 1);
                if bytes.iter().zip(long).any(|(stride, long)| long && stride % width != 0) {
                    return Err(PyValueError::new_err(format!(
                        "strides of {bytes:?} bytes are not multiples of an element's {width} bytes; copy the array"
                    )));
                }
                bytes.into_iter().map(|stride| stride / width).collect()
            }
        };
        let pending = optional("stream")?.map(|stream| stream.extract()).transpose()?;
        let owner = Owner::Object(object.clone().unbind());
        Ok(Foreign { place, address, scalar, shape, strides, writable: !read_only, owner, pending })
    }

    /// Reads `__dlpack__`. The producer orders its pending work before that of the device's stream.
    fn of_dlpack(object: &Bound<'_, PyAny>) -> PyResult<Foreign> {
        let py = object.py();
        let (kind, number): (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
        let place = place((kind, number))?;
        let arguments = PyDict::new(py);
        if let Some(handle) = place.open(py)?.handle() {
            arguments.set_item(intern!(py, "stream"), handle)?;
        }
        arguments.set_item(intern!(py, "max_version"), (1, 0))?;
        let dlpack = object.getattr(intern!(py, "__dlpack__"))?;
        let capsule = match dlpack.call((), Some(&arguments)) {
            // A producer of an earlier version does not know the argument.
            Err(e) if e.is_instance_of::<PyTypeError>(py) => {
                arguments.del_item(intern!(py, "max_version"))?;
                dlpack.call((), Some(&arguments))?
            }
            other => other?,
        };
        let managed = Managed::take(&capsule)?;
        let dlpack::Described { address, scalar, shape, strides, read_only, .. } = managed.described()?;
        // The arrays of JAX are immutable, and the earlier form of a capsule does not say so.
        let module: String = object.get_type().getattr(intern!(py, "__module__"))?.extract()?;
        let writable = !read_only && !module.starts_with("jax");
        Ok(Foreign { place, address, scalar, shape, strides, writable, owner: Owner::Managed(managed), pending: None })
    }

    /// Reads a tensor of PyTorch. Returns `None` if the object is not a tensor, or has no plain
    /// memory.
    fn of_torch(object: &Bound<'_, PyAny>) -> PyResult<Option<Foreign>> {
        let Some(tensor) = TorchTensor::of(object)? else { return Ok(None) };
        let TorchTensor { place, address, scalar, shape, strides, requires_grad, is_negated } = tensor;
        // Falls back to DLPack, which rejects the tensor with PyTorch's own message.
        if requires_grad {
            return Ok(None);
        }
        if is_negated {
            return Err(PyValueError::new_err(
                "the tensor is the imaginary part of a conjugate, whose elements PyTorch has not negated yet; call resolve_neg()",
            ));
        }
        let py = object.py();
        let pending = match (place, Torch::loaded(py)) {
            (Where::Cuda(ordinal), Some(torch)) => Some(torch.current_stream(py, ordinal)?),
            _ => None,
        };
        let owner = Owner::Torch(object.clone().unbind());
        Ok(Some(Foreign { place, address, scalar, shape, strides, writable: true, owner, pending }))
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether the elements are row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.len() == 0 || canonical(&self.shape, &self.strides) == dlpack::contiguous(&self.shape)
    }

    /// Returns the strides in elements, and rejects negative ones, which a view cannot have.
    pub fn view_strides(&self, name: &str) -> PyResult<Vec<usize>> {
        let strides = canonical(&self.shape, &self.strides);
        let unsigned = strides.iter().map(|stride| usize::try_from(*stride)).collect::<Result<_, _>>();
        unsigned.map_err(|_| {
            PyValueError::new_err(format!("`{name}` has strides {strides:?}, and none may be negative; copy the array"))
        })
    }

    /// Returns the number of elements from the first to the last, gaps included.
    fn span(&self, strides: &[usize]) -> usize {
        if self.len() == 0 {
            return 0;
        }
        1 + self.shape.iter().zip(strides).map(|(n, stride)| (n - 1) * stride).sum::<usize>()
    }

    /// Returns whether the elements' owner frees memory in the order of the stream `handle`.
    /// PyTorch does, for its current stream.
    fn is_in_order_of(&self, handle: usize) -> bool {
        matches!(self.owner, Owner::Torch(_)) && self.pending == Some(handle)
    }

    /// Returns the object that the buffer keeps alive. A buffer waits for its work before it drops
    /// its owner. Such a wait is unnecessary if the owner frees memory in the order of the call's
    /// stream. The arguments of the call then keep the owner alive until the work is submitted.
    fn kept(self, in_order: bool) -> Box<dyn std::any::Any + Send + Sync> {
        if in_order { Box::new(()) } else { Box::new(self.owner) }
    }

    /// Makes later work of a stream of the device wait for the producer's pending work.
    pub fn wait_for_producer(&self, py: Python<'_>, on: &runtime::Stream) -> PyResult<()> {
        let Some(stream) = self.pending else { return Ok(()) };
        let handle = std::ptr::without_provenance_mut(stream);
        // SAFETY: the interface states that the number is a stream of the array's device.
        let waited = unsafe { on.wait_for_handle(handle) };
        waited.map_err(|e| error::runtime(py, e))
    }

    /// Returns the elements as memory of the device, with their shape in a launch. A slice consists
    /// of all elements, whatever the array's rank.
    /// `in_order` is as for [`buffer`](Foreign::buffer).
    pub fn memory(
        self,
        opened: &Opened,
        form: ArrayForm,
        name: &str,
        in_order: bool,
    ) -> PyResult<(Held, ArgumentShape)> {
        let wide = |numbers: &[usize]| numbers.iter().map(|n| *n as u64).collect();
        let rank = self.shape.len();
        if form != ArrayForm::Slice && rank > MAX_RANK {
            return Err(PyValueError::new_err(format!("`{name}` has rank {rank}; views have rank 1 to {MAX_RANK}")));
        }
        let (span, shape) = match form {
            ArrayForm::Slice if !self.is_contiguous() => {
                return Err(PyValueError::new_err(format!(
                    "`{name}` has gaps or another order than rows (shape {:?}, strides {:?} in elements), and the \
                     kernel takes a slice: copy the array, or take a `View` or `Strided`",
                    self.shape, self.strides
                )));
            }
            ArrayForm::Slice => (self.len(), ArgumentShape::Slice(self.len() as u64)),
            ArrayForm::View | ArrayForm::Strided => {
                let strides = self.view_strides(name)?;
                let extents = wide(if rank == 0 { &[1] } else { &self.shape });
                let span = self.span(&strides);
                let strides = if rank == 0 { [1][..].into() } else { wide(&strides) };
                (
                    span,
                    match form {
                        ArrayForm::Strided => ArgumentShape::Strided { extents, strides },
                        _ if strides.last() != Some(&1) => {
                            return Err(PyValueError::new_err(format!(
                                "`{name}` has strides {strides:?} in elements, and the last stride of a `View` is 1: copy \
                             the array, or take a `Strided`"
                            )));
                        }
                        _ => ArgumentShape::View { extents, strides },
                    },
                )
            }
        };
        if let Owner::Array(array) = self.owner {
            return Ok((Held::Array(array), shape));
        }
        let bytes = span * self.scalar.bytes() as usize;
        let (address, owner) = (self.address, self.kept(in_order));
        // SAFETY: the array's protocol states that these bytes are its elements' and that its owner
        // keeps them alive. No other code writes them during a call, as this package's
        // documentation requires; a launch that may write needs a writable array.
        let raw = unsafe { RawBuffer::adopted(&opened.device, address, bytes, owner) };
        Ok((Held::Adopted(raw), shape))
    }

    /// Returns the elements, gaps included, as a typed buffer for a call of the library. If the
    /// call is `in_order`, the Python caller keeps the elements alive.
    pub fn buffer<T: Element>(
        self,
        py: Python<'_>,
        opened: &Opened,
        name: &str,
        in_order: bool,
    ) -> PyResult<DeviceBuffer<T>> {
        let span = self.span(&self.view_strides(name)?);
        let (address, owner) = (self.address, self.kept(in_order));
        // SAFETY: as in `memory`; callers compare the element type.
        let buffer = unsafe { opened.device.adopt(address, span, owner) };
        buffer.map_err(|e| error::runtime(py, e))
    }
}

/// The form in which a kernel takes an array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ArrayForm {
    Slice,
    View,
    Strided,
}

impl Held {
    /// Returns the memory as an argument of a launch.
    ///
    /// # Safety
    /// The shape is the one that [`Foreign::memory`] returned with it; `mutable` only if the array
    /// is writable.
    pub unsafe fn argument(&self, scalar: Scalar, shape: ArgumentShape, mutable: bool) -> Argument<'_> {
        let raw = match self {
            Held::Adopted(raw) => raw,
            Held::Array(array) => &array.get().raw,
            Held::Buffers(_) => unreachable!("`memory` makes the other two"),
        };
        // SAFETY: by the caller's promise; the memory is initialized, and a launch whose arguments
        // overlap is rejected.
        Argument::Memory(unsafe { raw.argument(scalar.into(), shape, mutable) })
    }
}

/// Returns the strides, with the strides of a row-major array for axes of one element or none.
fn canonical(shape: &[usize], strides: &[isize]) -> Vec<isize> {
    let plain = dlpack::contiguous(shape);
    if shape.contains(&0) {
        return plain;
    }
    shape.iter().zip(strides).zip(plain).map(|((n, stride), plain)| if *n == 1 { plain } else { *stride }).collect()
}

/// Returns the number of a device object, as CuPy and Numba have them.
fn device_number(device: &Bound<'_, PyAny>) -> Option<usize> {
    ["id", "index"].into_iter().find_map(|name| device.getattr(name).ok()?.extract().ok())
}

/// Returns the device of a DLPack array.
fn place((kind, number): (i32, i32)) -> PyResult<Where> {
    match kind {
        dlpack::CPU | dlpack::CUDA_HOST => Ok(Where::Cpu),
        dlpack::CUDA | dlpack::CUDA_MANAGED => Ok(Where::Cuda(usize::try_from(number).unwrap_or(0))),
        _ => Err(PyValueError::new_err(format!(
            "the array is on a DLPack device of kind {kind}; host memory and NVIDIA GPUs are supported"
        ))),
    }
}

fn of_typestr(typestr: &str) -> Option<Scalar> {
    let code = typestr.strip_prefix(['<', '|', '='])?;
    Some(match code {
        "b1" | "u1" => Scalar::U8,
        "i1" => Scalar::I8,
        "i2" => Scalar::I16,
        "i4" => Scalar::I32,
        "i8" => Scalar::I64,
        "u2" => Scalar::U16,
        "u4" => Scalar::U32,
        "u8" => Scalar::U64,
        "f2" => Scalar::F16,
        "f4" => Scalar::F32,
        "f8" => Scalar::F64,
        _ => return None,
    })
}

/// Returns the error for an element type whose bytes are in the other order.
fn other_order(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "elements of the type {name} have their bytes in the other order: convert the array to the machine's order"
    ))
}

/// Returns whether the type is a float of any width.
pub fn is_float(scalar: Scalar) -> bool {
    scalar.is_float() || scalar.is_half()
}

fn typestr(scalar: Scalar) -> String {
    match scalar {
        Scalar::I8 | Scalar::U8 => format!("|{}1", if scalar.is_signed() { 'i' } else { 'u' }),
        // Two bytes without a meaning in NumPy.
        Scalar::Bf16 => "<V2".to_string(),
        scalar if is_float(scalar) => format!("<f{}", scalar.bytes()),
        scalar => format!("<{}{}", if scalar.is_signed() { 'i' } else { 'u' }, scalar.bytes()),
    }
}

/// The NumPy names of the element types.
pub const NAMES: [(&str, Scalar); 12] = [
    ("float32", Scalar::F32),
    ("float16", Scalar::F16),
    ("bfloat16", Scalar::Bf16),
    ("float64", Scalar::F64),
    ("int8", Scalar::I8),
    ("int16", Scalar::I16),
    ("int32", Scalar::I32),
    ("int64", Scalar::I64),
    ("uint8", Scalar::U8),
    ("uint16", Scalar::U16),
    ("uint32", Scalar::U32),
    ("uint64", Scalar::U64),
];

/// Returns the number of an element type among [`NAMES`].
pub fn code_of(scalar: Scalar) -> u64 {
    NAMES.iter().position(|(_, known)| *known == scalar).map_or(u64::MAX, |at| at as u64)
}

/// Returns the element type with a name in NumPy, PyTorch or Rust: `float32`, `torch.float32`,
/// `f32`.
pub fn named(name: &str) -> PyResult<Scalar> {
    let plain = name.rsplit('.').next().unwrap_or(name);
    // NumPy and PyTorch have other names too.
    let other = |name: &str| match name {
        "half" => Some(Scalar::F16),
        "double" => Some(Scalar::F64),
        "b1" | "?" => None,
        code => of_typestr(&format!("<{code}")),
    };
    let numpy = NAMES.iter().find(|(known, _)| *known == plain).map(|(_, scalar)| *scalar).or_else(|| other(plain));
    let rust = || Scalar::from_name(plain).filter(|s| NAMES.iter().any(|(_, known)| known == s));
    numpy.or_else(rust).ok_or_else(|| {
        let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        PyTypeError::new_err(format!("no element type `{name}`; the types are {}", known.join(", ")))
    })
}

/// Returns the element type of a dtype: a name, a dtype of NumPy or PyTorch, or a type of NumPy.
pub fn dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Ok(name) = dtype.extract::<String>() {
        return named(&name);
    }
    // The name of a dtype does not state the order of its bytes.
    if let Ok(order) = dtype.getattr("byteorder").and_then(|order| order.extract::<String>())
        && order == ">"
    {
        return Err(other_order(&dtype.str()?.to_string()));
    }
    for attribute in ["name", "__name__"] {
        if let Ok(name) = dtype.getattr(attribute).and_then(|name| name.extract::<String>()) {
            // Python's own types of numbers have 64 bits in NumPy and PyTorch.
            return match name.as_str() {
                "float" => Ok(Scalar::F64),
                "int" => Ok(Scalar::I64),
                name => named(name),
            };
        }
    }
    named(&dtype.str()?.to_string())
}

/// Returns the NumPy name of an element type.
pub fn name_of(scalar: Scalar) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == scalar).map_or(scalar.name(), |(name, _)| name)
}

/// A row-major array in memory of this package, on the CPU or a GPU.
///
/// Other libraries read it without a copy: numpy.asarray(a) on the CPU, torch.from_dlpack(a),
/// cupy.from_dlpack(a), jax.dlpack.from_dlpack(a).
#[pyclass(frozen, module = "kernels_rs")]
pub struct Array {
    raw: Arc<RawBuffer>,
    place: Where,
    scalar: Scalar,
    shape: Vec<usize>,
    writable: bool,
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
        let elements = shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent));
        let bytes = elements.and_then(|n| n.checked_mul(scalar.bytes() as usize));
        let bytes = bytes.ok_or_else(|| PyValueError::new_err(format!("an array of shape {shape:?} is too large")))?;
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
        let product = |extents: &[usize]| extents.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent));
        let known: Vec<usize> = given.iter().filter_map(|n| usize::try_from(*n).ok()).collect();
        let open = match product(&known) {
            Some(n) if n > 0 && self.size().is_multiple_of(n) => self.size() / n,
            _ => 0,
        };
        let shape: Option<Vec<usize>> =
            given.iter().map(|n| if *n == -1 { Some(open) } else { usize::try_from(*n).ok() }).collect();
        let unknown = given.len() - known.len();
        match shape {
            Some(shape) if unknown <= 1 && product(&shape) == Some(self.size()) => {
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
    let scalar = dtype.map_or(Ok(Scalar::F32), self::dtype)?;
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
    let wanted = shape.iter().try_fold(scalar.bytes() as usize, |n, extent| n.checked_mul(*extent));
    if wanted != Some(bytes.len()) {
        let given = bytes.len();
        return Err(PyValueError::new_err(format!("{given} bytes are no array of {dtype} with the shape {shape:?}")));
    }
    Array::new(py, Where::of(device)?, (scalar, shape), |raw| raw.write(bytes))
}

/// Makes a copy of a row-major host array on a device.
#[pyfunction]
#[pyo3(signature = (source, device = None))]
pub fn array(py: Python<'_>, source: &Bound<'_, PyAny>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
    let foreign = Foreign::of(source, "source")?;
    let foreign = foreign.ok_or_else(|| PyTypeError::new_err("`source` is not an array"))?;
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
    let foreign = Foreign::of(source, "source")?.ok_or_else(|| PyTypeError::new_err("`source` is not an array"))?;
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
    let foreign = Foreign::of(array, "array")?.ok_or_else(|| PyTypeError::new_err("`array` is not an array"))?;
    let all = PyDict::new(py);
    all.set_item("address", foreign.address)?;
    all.set_item("shape", PyTuple::new(py, &foreign.shape)?)?;
    all.set_item("strides", PyTuple::new(py, &foreign.strides)?)?;
    all.set_item("dtype", name_of(foreign.scalar))?;
    all.set_item("device", foreign.place.to_string())?;
    all.set_item("writable", foreign.writable)?;
    Ok(all)
}

/// Returns the place of all arrays of a call, which are on one device; without arrays, the CPU.
pub fn common_place<'a>(arrays: impl Iterator<Item = (&'a str, &'a Foreign)>) -> PyResult<Where> {
    let mut first: Option<(&str, Where)> = None;
    for (name, array) in arrays {
        match first {
            None => first = Some((name, array.place)),
            Some((of, place)) if place != array.place => {
                return Err(PyValueError::new_err(format!(
                    "`{name}` is on {}, and `{of}` on {place}: the arrays of a call are on one device",
                    array.place
                )));
            }
            Some(_) => {}
        }
    }
    Ok(first.map_or(Where::Cpu, |(_, place)| place))
}

/// The device, the stream and the order of a call.
pub struct OpenCall {
    pub opened: Arc<Opened>,
    /// The stream that the caller chose.
    pub stream: Option<On>,
    /// Whether the owners of all arrays free memory in the order of that stream.
    pub in_order: bool,
}

/// Opens the device of a call and reads the stream that the caller chose. Orders the call after the
/// producers' pending work. A call on the stream of this work needs no additional order.
pub fn open<'a>(
    py: Python<'_>,
    arrays: impl Iterator<Item = (&'a str, &'a Foreign)> + Clone,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<OpenCall> {
    let place = common_place(arrays.clone())?;
    let opened = place.open(py)?;
    let stream = stream.map(|stream| On::of(stream, place)).transpose()?;
    let handle = match stream {
        Some(On::Handle(handle)) => Some(handle),
        _ => None,
    };
    let mut ordered = handle;
    for (_, array) in arrays.clone() {
        if array.pending.is_some() && array.pending != ordered {
            let on = match &stream {
                Some(On::Stream(stream)) => &stream.get().stream,
                _ => &opened.stream,
            };
            array.wait_for_producer(py, on)?;
            ordered = ordered.or(array.pending);
        }
    }
    let in_order = handle.is_some_and(|handle| arrays.into_iter().all(|(_, array)| array.is_in_order_of(handle)));
    Ok(OpenCall { opened, stream, in_order })
}

/// Converts a Python number to the bits of a scalar, zero-extended.
pub fn number(value: &Bound<'_, PyAny>, scalar: Scalar, name: &str) -> PyResult<u64> {
    let wrong = |why: &str| PyTypeError::new_err(format!("argument `{name}`: expected {scalar}, {why}"));
    let kind = || value.get_type().name().map_or_else(|_| "an object".to_string(), |name| name.to_string());
    // Python has larger integers, and larger floats than `f32`.
    let out_of_range = || PyValueError::new_err(format!("argument `{name}`: {value} is out of range for {scalar}"));
    let other = |e: PyErr| match e.is_instance_of::<PyOverflowError>(value.py()) {
        true => out_of_range(),
        false => wrong(&format!("given {}", kind())),
    };
    if scalar == Scalar::Bool {
        // A truth value of None or of a text is not what a caller means.
        if value.is_none() || value.is_instance_of::<PyString>() {
            return Err(wrong(&format!("given {}", kind())));
        }
        let given = value.call_method0("__bool__").and_then(|b| b.extract::<bool>());
        return given.map(u64::from).map_err(|_| wrong(&format!("given {}", kind())));
    }
    if is_float(scalar) {
        let given: f64 = value.extract().map_err(other)?;
        let (bits, is_infinite) = match scalar {
            Scalar::F64 => (given.to_bits(), given.is_infinite()),
            Scalar::F16 => (u64::from(f16::from_f64(given).to_bits()), f16::from_f64(given).is_infinite()),
            Scalar::Bf16 => (u64::from(bf16::from_f64(given).to_bits()), bf16::from_f64(given).is_infinite()),
            _ => (u64::from((given as f32).to_bits()), (given as f32).is_infinite()),
        };
        return if is_infinite && given.is_finite() { Err(out_of_range()) } else { Ok(bits) };
    }
    let given: i128 = value.extract().map_err(other)?;
    let bits = if scalar == Scalar::Usize { 64 } else { scalar.bits() };
    let (least, most) = match scalar.is_signed() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    if given < least || given > most {
        return Err(out_of_range());
    }
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    Ok(given as u64 & mask)
}
