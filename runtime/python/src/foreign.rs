//! Arrays of any library as memory of a device.

use crate::array::Array;
use crate::device::{Opened, Where};
use crate::dlpack::{self, Managed};
use crate::error;
use crate::scalar::{named, of_typestr, other_order};
use crate::torch::{Torch, TorchTensor};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::{Argument, Element, launcher::ArgumentShape};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use runtime::DeviceBuffer;
use runtime_devices::executor::RawBuffer;

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
    pub pending: Option<usize>,
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
    /// Reads an array of any library. `name` is the array's name in errors.
    pub fn required(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Foreign> {
        Foreign::of(object, name)?.ok_or_else(|| PyTypeError::new_err(format!("`{name}` is not an array")))
    }

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
    pub fn is_in_order_of(&self, handle: usize) -> bool {
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
