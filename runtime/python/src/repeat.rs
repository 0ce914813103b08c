//! Calls of operators of PyTorch that repeat the launches of an earlier, equal call.
//!
//! The first call of an operator with some shapes, strides, types and options runs its function,
//! and its launches are recorded. Later calls make the results and submit these launches to
//! PyTorch's current stream, with the addresses of the new tensors. The arguments are not validated
//! again, because everything that the contract depends on is equal.

use crate::device::Where;
use crate::error;
use crate::scalar;
use crate::torch::{Torch, TorchTensor};
use kernel_dsl_compiler::lock::Lock;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNotImplemented, PyString, PyTuple};
use runtime::RecordedLaunches;
use std::collections::HashMap;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// The modulus up to which a repeated call's addresses equal the recorded ones. Kernels choose the
/// width of their accesses by the low bits of addresses.
const ALIGNMENT: u64 = 256;

/// The maximum number of signatures in the table. Shapes that vary from call to call fill the
/// table, which is then emptied except for calls with shared memory.
const MAX_SIGNATURES: usize = 1024;

/// The launches of an operator, by the signatures of its calls.
#[pyclass(frozen, module = "kernels_rs")]
pub struct Repeats {
    /// Whether a call writes all memory outside its arguments and results before it reads this
    /// memory. A repeated call may then use new memory.
    scratch: bool,
    /// Whether all other memory, which calls only read, is constant and lives as long as the
    /// device.
    constants: bool,
    calls: Lock<HashMap<Vec<u64>, Option<Arc<RepeatableCall>>>>,
}

/// A call that can be repeated.
struct RepeatableCall {
    results: Vec<NewTensor>,
    /// Whether the operator returns a tuple.
    tuple: bool,
    /// The memory that only the launches themselves write and read.
    scratch: Vec<NewTensor>,
    /// The place of each recorded address.
    places: Vec<ResultPlace>,
    launches: Lock<RecordedLaunches>,
    /// Whether the launches read shared memory, which they keep.
    is_shared: bool,
}

/// The place of recorded memory: a tensor, among arguments, results and scratch memory in this
/// order, and the distance in bytes from its first element.
struct ResultPlace {
    /// The index of the tensor. `None` for constant, shared and empty memory, whose address is the
    /// offset.
    tensor: Option<usize>,
    offset: u64,
}

/// A tensor that a repeated call allocates, row-major.
struct NewTensor {
    /// The index among the arguments' tensors of a row-major tensor with the same shape and type.
    like: Option<usize>,
    /// The arguments of `torch.empty`.
    shape: Py<PyTuple>,
    options: Py<PyDict>,
    /// Address modulo `ALIGNMENT`; `None` without elements, whose address is null.
    alignment: Option<u64>,
}

/// The arguments of a call.
struct CallArguments {
    signature: Vec<u64>,
    tensors: Vec<TorchTensor>,
    /// The object of each tensor.
    objects: Vec<Py<PyAny>>,
    ordinal: Option<usize>,
}

impl CallArguments {
    /// Reads arguments; `None` if one of them is neither a plain tensor of a GPU, nor a number,
    /// nor a list of these.
    fn of(arguments: &Bound<'_, PyTuple>) -> Option<CallArguments> {
        let mut given = CallArguments {
            signature: Vec::with_capacity(32),
            tensors: Vec::new(),
            objects: Vec::new(),
            ordinal: None,
        };
        for argument in arguments.iter_borrowed() {
            given.add(&argument)?;
        }
        given.ordinal.is_some().then_some(given)
    }

    /// Returns whether tensors share memory, which the signature does not tell.
    fn shares_memory(&self) -> bool {
        let ranges: Vec<_> = self.tensors.iter().map(TorchTensor::bytes).collect();
        let shares = |(i, a): (usize, &Range<u64>)| ranges[..i].iter().any(|b| a.start < b.end && b.start < a.end);
        ranges.iter().enumerate().any(shares)
    }

    fn add(&mut self, argument: &Bound<'_, PyAny>) -> Option<()> {
        let signature = &mut self.signature;
        if argument.is_none() {
            signature.push(0);
        // A tensor that is being transformed has attributes that raise exceptions.
        } else if let Some(tensor) = TorchTensor::of(argument).ok()? {
            let Where::Cuda(ordinal) = tensor.place else { return None };
            if tensor.is_negated || self.ordinal.is_some_and(|first| first != ordinal) {
                return None;
            }
            self.ordinal = Some(ordinal);
            let code = scalar::code_of(tensor.scalar);
            signature.extend([1, ordinal as u64, code, tensor.address % ALIGNMENT, tensor.shape.len() as u64]);
            signature.extend(tensor.shape.iter().map(|n| *n as u64));
            signature.extend(tensor.strides.iter().map(|n| *n as u64));
            self.tensors.push(tensor);
            self.objects.push(argument.clone().unbind());
        } else if let Ok(number) = argument.cast::<PyBool>() {
            signature.extend([2, u64::from(number.is_true())]);
        } else if let Ok(number) = argument.cast::<PyInt>() {
            signature.extend([3, number.extract::<i64>().ok()? as u64]);
        } else if let Ok(number) = argument.cast::<PyFloat>() {
            signature.extend([4, number.extract::<f64>().ok()?.to_bits()]);
        } else if let Ok(text) = argument.cast::<PyString>() {
            let text = text.to_cow().ok()?;
            signature.extend([6, text.len() as u64]);
            signature.extend(text.bytes().map(u64::from));
        } else if let Ok(list) = argument.cast::<PyList>() {
            signature.extend([5, list.len() as u64]);
            list.iter().try_for_each(|item| self.add(&item))?;
        } else {
            return None;
        }
        Some(())
    }
}

#[pymethods]
impl Repeats {
    #[new]
    #[pyo3(signature = (scratch = false, constants = false))]
    fn new(scratch: bool, constants: bool) -> Repeats {
        Repeats { scratch, constants, calls: Lock::default() }
    }

    /// Repeats an earlier call and returns its results. Returns None without an equal earlier call,
    /// and False if that call cannot be repeated. With `plain`, returns `NotImplemented` for a
    /// repeatable call that needs a gradient.
    fn again<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        plain: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(torch) = Torch::loaded(py) else { return Ok(None) };
        if torch.is_transformed(py)? {
            return Ok(None);
        }
        let Some(given) = CallArguments::of(arguments) else { return Ok(None) };
        let known = self.calls().get(&given.signature).cloned();
        let Some(known) = known else { return Ok(None) };
        let Some(call) = known else { return Ok(Some(PyBool::new(py, false).to_owned().into_any())) };
        if plain && given.tensors.iter().any(|tensor| tensor.requires_grad) && torch.computes_gradients(py)? {
            return Ok(Some(PyNotImplemented::get(py).to_owned().into_any()));
        }
        let handle = torch.current_stream(py, given.ordinal.unwrap_or(0))?;
        let repeated = call.repeat(py, torch, &given, handle);
        // The device may be lost: the next call opens it again. Work in flight may read the shared
        // memory of a call, which therefore stays.
        if repeated.is_err() && !call.is_shared {
            self.calls().remove(&given.signature);
        }
        repeated
    }

    /// Calls `function` with the arguments, and keeps its launches for `again`. Launches of a call
    /// whose tensors share memory are not kept.
    fn first<'py>(
        &self,
        py: Python<'py>,
        function: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(given) = CallArguments::of(arguments) else { return function.call1(arguments) };
        // A recorded address belongs to one tensor only if no other tensor has it.
        if given.shares_memory() || self.calls().contains_key(&given.signature) {
            return function.call1(arguments);
        }
        let opened = Where::Cuda(given.ordinal.unwrap_or(0)).open(py)?;
        if !opened.recording.begin() {
            // Another thread records.
            return function.call1(arguments);
        }
        let results = function.call1(arguments);
        let launches = opened.recording.end();
        let results = results?;
        let call = match launches {
            Some(launches) => RepeatableCall::of(py, &given, &results, launches, self)?,
            None => None,
        };
        let mut calls = self.calls();
        if calls.len() >= MAX_SIGNATURES {
            // Work in flight, or a graph that captured it, may read the shared memory of a call.
            calls.retain(|_, call| call.as_ref().is_some_and(|call| call.is_shared));
        }
        if calls.len() < MAX_SIGNATURES {
            calls.insert(given.signature, call.map(Arc::new));
        }
        Ok(results)
    }

    /// Returns the number of signatures whose calls are repeated, and the number of all other
    /// signatures.
    fn sizes(&self) -> (usize, usize) {
        let calls = self.calls();
        let repeated = calls.values().flatten().count();
        (repeated, calls.len() - repeated)
    }
}

impl Repeats {
    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u64>, Option<Arc<RepeatableCall>>>> {
        self.calls.lock()
    }
}

impl RepeatableCall {
    /// Finds the tensors of all recorded memory. Returns `None` if memory belongs to no tensor and
    /// is neither shared nor constant nor scratch memory.
    fn of(
        py: Python<'_>,
        given: &CallArguments,
        results: &Bound<'_, PyAny>,
        mut launches: RecordedLaunches,
        repeats: &Repeats,
    ) -> PyResult<Option<RepeatableCall>> {
        let (mut made, mut new) = (Vec::new(), Vec::new());
        let tuple = results.cast::<PyTuple>();
        let all: Vec<_> = match &tuple {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![results.clone()],
        };
        for result in &all {
            let Some(tensor) = TorchTensor::of(result)? else { return Ok(None) };
            if !tensor.is_row_major() {
                return Ok(None);
            }
            let equal = |x: &TorchTensor| x.is_row_major() && x.shape == tensor.shape && x.scalar == tensor.scalar;
            new.push(NewTensor::of(py, result, &tensor, given.tensors.iter().position(equal))?);
            made.push(tensor);
        }
        let mut ranges: Vec<_> = given.tensors.iter().chain(&made).map(TorchTensor::bytes).collect();
        let tensors = ranges.len();
        let (mut places, mut shared) = (Vec::new(), Vec::new());
        for memory in launches.memory() {
            let (start, end) = (memory.address, memory.address + memory.bytes);
            if memory.bytes == 0 {
                places.push(ResultPlace { tensor: None, offset: start });
                continue;
            }
            let inside = |range: &Range<u64>| range.start <= start && end <= range.end;
            let known = match ranges.iter().position(inside) {
                Some(known) => known,
                None if memory.shared => {
                    shared.push(*memory);
                    places.push(ResultPlace { tensor: None, offset: start });
                    continue;
                }
                None if repeats.constants && !memory.writes => {
                    places.push(ResultPlace { tensor: None, offset: start });
                    continue;
                }
                // Memory of a later launch that overlaps this memory would need a larger scratch
                // tensor.
                None if !repeats.scratch || !memory.writes || ranges.iter().any(|r| r.start < end && start < r.end) => {
                    return Ok(None);
                }
                None => {
                    ranges.push(start..end);
                    ranges.len() - 1
                }
            };
            places.push(ResultPlace { tensor: Some(known), offset: start - ranges[known].start });
        }
        launches.keep_shared(&shared);
        let first = all.first().filter(|_| ranges.len() > tensors);
        let scratch = first.map_or(Ok(Vec::new()), |like| {
            ranges[tensors..].iter().map(|range| NewTensor::bytes(py, like, range.end - range.start)).collect()
        });
        let (tuple, scratch, is_shared) = (tuple.is_ok(), scratch?, !shared.is_empty());
        Ok(Some(RepeatableCall { results: new, tuple, scratch, places, launches: Lock::new(launches), is_shared }))
    }

    /// Submits the launches with the tensors of this call. Returns `None` if a new tensor's
    /// alignment differs from the recorded one.
    fn repeat<'py>(
        &self,
        py: Python<'py>,
        torch: &Torch,
        given: &CallArguments,
        handle: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut starts: Vec<u64> = given.tensors.iter().map(|tensor| tensor.address).collect();
        let mut made = Vec::with_capacity(self.results.len() + self.scratch.len());
        for new in self.results.iter().chain(&self.scratch) {
            let tensor = match new.like {
                Some(like) => torch.empty_like(given.objects[like].bind(py))?,
                None => torch.empty(py, &new.shape, &new.options)?,
            };
            let address: u64 = tensor.call_method0(intern!(py, "data_ptr"))?.extract()?;
            // An allocator that is out of memory may return null.
            if new.alignment.is_some_and(|alignment| address == 0 || address % ALIGNMENT != alignment) {
                return Ok(None);
            }
            starts.push(address);
            made.push(tensor);
        }
        let address = |place: &ResultPlace| place.tensor.map_or(0, |tensor| starts[tensor]) + place.offset;
        let addresses: Vec<u64> = self.places.iter().map(address).collect();
        let submitted = py.detach(|| {
            let mut launches = self.launches.lock();
            // SAFETY: the stream is PyTorch's current one of the tensors' device. An equal call was
            // validated: types, shapes, strides, alignment and options are those of the signature.
            // PyTorch frees memory in the order of its current stream. What is written is new, so
            // nothing else has it. Operators in the table read no index that must be in bounds
            // without checking it.
            unsafe { launches.launch(ptr::without_provenance_mut(handle), &addresses) }
        });
        submitted.map_err(|e| error::runtime(py, e))?;
        made.truncate(self.results.len());
        Ok(Some(match made.pop() {
            Some(result) if !self.tuple => result,
            last => {
                made.extend(last);
                PyTuple::new(py, made)?.into_any()
            }
        }))
    }
}

impl NewTensor {
    fn of(py: Python<'_>, made: &Bound<'_, PyAny>, tensor: &TorchTensor, like: Option<usize>) -> PyResult<NewTensor> {
        let options = PyDict::new(py);
        for name in [intern!(py, "dtype"), intern!(py, "device")] {
            options.set_item(name, made.getattr(name)?)?;
        }
        let shape = PyTuple::new(py, [PyTuple::new(py, &tensor.shape)?])?;
        let alignment = (!tensor.bytes().is_empty()).then_some(tensor.address % ALIGNMENT);
        Ok(NewTensor { like, shape: shape.unbind(), options: options.unbind(), alignment })
    }

    fn bytes(py: Python<'_>, like: &Bound<'_, PyAny>, bytes: u64) -> PyResult<NewTensor> {
        let options = PyDict::new(py);
        options.set_item("dtype", py.import("torch")?.getattr("uint8")?)?;
        options.set_item("device", like.getattr("device")?)?;
        Ok(NewTensor {
            like: None,
            shape: PyTuple::new(py, [bytes])?.unbind(),
            options: options.unbind(),
            alignment: Some(0),
        })
    }
}
