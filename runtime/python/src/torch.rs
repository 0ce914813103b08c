//! Tensors of PyTorch, read by its C functions for DLPack, or by their attributes.
//!
//! PyTorch has the functions since version 2.10. Reading the attributes takes ten times as long.

use crate::device::Where;
use crate::dlpack::{self, Exchange};
use crate::scalar;
use kernel_dsl::compiler::Scalar;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::ops::Range;

/// The functions and types of PyTorch by which tensors, streams and modes are read.
pub struct Torch {
    tensor: Py<PyAny>,
    parameter: Py<PyAny>,
    strided: Py<PyAny>,
    dtypes: Vec<(Py<PyAny>, Scalar)>,
    empty: Py<PyAny>,
    empty_like: Py<PyAny>,
    is_grad_enabled: Py<PyAny>,
    /// The C functions, if this version has them.
    exchange: Option<Exchange>,
    /// The function that returns the handle of the current stream of a GPU.
    stream: Py<PyAny>,
    /// The function that returns the number of modes that see each operator, such as fake tensors.
    modes: Py<PyAny>,
    /// The function that returns the innermost transformation, such as `vmap`.
    transformation: Py<PyAny>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

impl Torch {
    /// Returns the objects if a tensor has been read before.
    pub fn loaded(py: Python<'_>) -> Option<&Torch> {
        TORCH.get(py)
    }

    /// Returns the objects if `object` is a plain tensor. A subclass does not count, because it may
    /// change the meaning of operations.
    fn of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<&'py Torch>> {
        let py = object.py();
        let torch = match TORCH.get(py) {
            Some(torch) => torch,
            // Only a tensor's own module has imported PyTorch; importing it here takes a second.
            None if object.get_type().module()?.to_cow()?.starts_with("torch") => {
                TORCH.get_or_try_init(py, || Torch::new(py))?
            }
            None => return Ok(None),
        };
        let of = object.get_type();
        Ok((of.is(torch.tensor.bind(py)) || of.is(torch.parameter.bind(py))).then_some(torch))
    }

    fn new(py: Python<'_>) -> PyResult<Torch> {
        let torch = py.import("torch")?;
        let internal = torch.getattr("_C")?;
        let dtypes = scalar::NAMES.iter();
        let dtypes = dtypes.filter_map(|(name, scalar)| Some((torch.getattr(*name).ok()?.unbind(), *scalar)));
        // A build without CUDA may lack the function for streams, and has no tensors that require
        // it.
        let optional = |object: PyResult<Bound<'_, PyAny>>| object.map_or_else(|_| py.None(), Bound::unbind);
        let functorch = internal.getattr("_functorch");
        let tensor = torch.getattr("Tensor")?;
        Ok(Torch {
            exchange: Exchange::of(&tensor),
            tensor: tensor.unbind(),
            parameter: torch.getattr("nn")?.getattr("Parameter")?.unbind(),
            strided: torch.getattr("strided")?.unbind(),
            dtypes: dtypes.collect(),
            empty: torch.getattr("empty")?.unbind(),
            empty_like: torch.getattr("empty_like")?.unbind(),
            is_grad_enabled: torch.getattr("is_grad_enabled")?.unbind(),
            stream: optional(internal.getattr("_cuda_getCurrentRawStream")),
            modes: optional(internal.getattr("_len_torch_dispatch_stack")),
            transformation: optional(functorch.and_then(|all| all.getattr("peek_interpreter_stack"))),
        })
    }

    /// Returns the handle of the current stream of a GPU.
    pub fn current_stream(&self, py: Python<'_>, ordinal: usize) -> PyResult<usize> {
        match &self.exchange {
            Some(exchange) => exchange.current_stream(py, ordinal),
            None => self.stream.bind(py).call1((ordinal,))?.extract(),
        }
    }

    /// Returns whether PyTorch currently records operations for gradients.
    pub fn computes_gradients(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_grad_enabled.bind(py).call0()?.is_truthy()
    }

    /// Returns whether a mode or a transformation must see each operator. Also returns true if this
    /// version of PyTorch lacks the functions to find out.
    pub fn is_transformed(&self, py: Python<'_>) -> PyResult<bool> {
        let (modes, transformation) = (self.modes.bind(py), self.transformation.bind(py));
        if modes.is_none() || transformation.is_none() {
            return Ok(true);
        }
        Ok(modes.call0()?.is_truthy()? || !transformation.call0()?.is_none())
    }

    /// Allocates a tensor with the shape, strides and type of another: `torch.empty_like`.
    pub fn empty_like<'py>(&self, like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.empty_like.bind(like.py()).call1((like,))
    }

    /// Allocates a tensor: `torch.empty`.
    pub fn empty<'py>(
        &self,
        py: Python<'py>,
        shape: &Py<PyTuple>,
        options: &Py<PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.empty.bind(py).call(shape.bind(py), Some(options.bind(py)))
    }
}

/// Reads a tuple of numbers.
fn numbers<T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>>(tuple: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    tuple.cast::<PyTuple>()?.iter_borrowed().map(|number| number.extract()).collect()
}

/// A plain tensor of PyTorch.
pub struct TorchTensor {
    pub place: Where,
    pub address: u64,
    pub scalar: Scalar,
    pub shape: Vec<usize>,
    /// In elements.
    pub strides: Vec<isize>,
    pub requires_grad: bool,
    /// Whether the elements in memory are still to be negated: PyTorch's lazy negation.
    pub is_negated: bool,
}

impl TorchTensor {
    /// Reads a tensor. Returns `None` if the object is not a tensor, or has no plain memory.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<TorchTensor>> {
        let Some(torch) = Torch::of(object)? else { return Ok(None) };
        let read = match TorchTensor::by_functions(torch, object) {
            None => TorchTensor::by_attributes(torch, object)?,
            read => read,
        };
        let Some(read) = read else { return Ok(None) };
        let py = object.py();
        let requires_grad = object.getattr(intern!(py, "requires_grad"))?.is_truthy()?;
        let is_negated = object.call_method0(intern!(py, "is_neg"))?.is_truthy()?;
        Ok(Some(TorchTensor { requires_grad, is_negated, ..read }))
    }

    /// Reads the memory of a tensor by the C functions; `None` if they do not describe the tensor.
    fn by_functions(torch: &Torch, object: &Bound<'_, PyAny>) -> Option<TorchTensor> {
        let exchange = torch.exchange.as_ref()?;
        // SAFETY: the object is a tensor of PyTorch, or one of its parameters, which are tensors.
        let (described, [device, ordinal]) = unsafe { exchange.describe(object) }.ok()?;
        let place = match device {
            dlpack::CPU => Where::Cpu,
            dlpack::CUDA => Where::Cuda(usize::try_from(ordinal).ok()?),
            _ => return None,
        };
        let dlpack::Described { address, scalar, shape, strides, .. } = described;
        Some(TorchTensor { place, address, scalar, shape, strides, requires_grad: false, is_negated: false })
    }

    /// Reads the memory of a tensor by attributes, in a tenth of the time of a capsule.
    fn by_attributes(torch: &Torch, object: &Bound<'_, PyAny>) -> PyResult<Option<TorchTensor>> {
        let py = object.py();
        let yes = |name| object.getattr(name)?.is_truthy();
        let call = |name| object.call_method0(name);
        let place = if yes(intern!(py, "is_cuda"))? {
            Where::Cuda(call(intern!(py, "get_device"))?.extract()?)
        } else if yes(intern!(py, "is_cpu"))? {
            Where::Cpu
        } else {
            return Ok(None);
        };
        let layout = object.getattr(intern!(py, "layout"))?;
        let dtype = object.getattr(intern!(py, "dtype"))?;
        let known = torch.dtypes.iter().find(|(known, _)| dtype.is(known.bind(py)));
        let (true, Some((_, scalar))) = (layout.is(torch.strided.bind(py)), known) else { return Ok(None) };
        Ok(Some(TorchTensor {
            place,
            address: call(intern!(py, "data_ptr"))?.extract()?,
            scalar: *scalar,
            shape: numbers(&object.getattr(intern!(py, "shape"))?)?,
            strides: numbers(&call(intern!(py, "stride"))?)?,
            requires_grad: false,
            is_negated: false,
        }))
    }

    /// Returns whether the elements are row-major without gaps.
    pub fn is_row_major(&self) -> bool {
        self.shape.contains(&0) || self.strides == dlpack::contiguous(&self.shape)
    }

    /// Returns the addresses from the first element to the end of the last.
    pub fn bytes(&self) -> Range<u64> {
        if self.shape.contains(&0) {
            return self.address..self.address;
        }
        let last: u64 = self.shape.iter().zip(&self.strides).map(|(n, stride)| (*n as u64 - 1) * *stride as u64).sum();
        self.address..self.address + (last + 1) * u64::from(self.scalar.bytes())
    }
}
