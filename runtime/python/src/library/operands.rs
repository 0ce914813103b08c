//! The arrays of a call as memory of the runtime, and the stream on which the call runs.

use crate::call::{self, OpenCall};
use crate::device::On;
use crate::foreign::{Foreign, Held};
use crate::scalar::{is_float, name_of};
use kernel_dsl::Element;
use kernel_dsl::compiler::{ElementType, Scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use runtime::{BufferView, BufferViewMut, DeviceBuffer, Result};

/// An argument of any type.
pub(super) type AnyObject<'a, 'py> = &'a Bound<'py, PyAny>;

pub(super) fn unsupported(given: Scalar, takes: &str) -> PyErr {
    PyTypeError::new_err(format!("the element type is {}, and this function takes {takes}", name_of(given)))
}

/// The device of a call, and the stream that the caller chose.
pub(super) struct DeviceCall<'py> {
    pub(super) py: Python<'py>,
    pub(super) open: OpenCall,
}

/// The arrays of a call, in order, with their names.
pub(super) struct Arrays(Vec<(&'static str, Foreign)>);

impl Arrays {
    pub(super) fn of(given: &[(&'static str, AnyObject<'_, '_>)]) -> PyResult<Arrays> {
        let read = given.iter().map(|(name, object)| Ok((*name, Foreign::required(object, name)?)));
        Ok(Arrays(read.collect::<PyResult<_>>()?))
    }

    /// Opens the device of the arrays.
    pub(super) fn open<'py>(&self, py: Python<'py>, stream: Option<AnyObject<'_, 'py>>) -> PyResult<DeviceCall<'py>> {
        let open = call::open(py, self.0.iter().map(|(name, array)| (*name, array)), stream)?;
        Ok(DeviceCall { py, open })
    }

    /// Returns whether the call has taken all arrays.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn first(&self) -> &Foreign {
        &self.0[0].1
    }

    /// Takes the next array as memory of rank `R` with elements of type `T`.
    pub(super) fn take<T: Element, const R: usize>(&mut self, call: &DeviceCall<'_>) -> PyResult<Typed<T, R>> {
        let (name, array) = self.0.remove(0);
        if ElementType::Scalar(array.scalar) != T::TYPE {
            let wanted = T::TYPE.scalar().map_or("a struct", name_of);
            return Err(PyTypeError::new_err(format!(
                "`{name}` has elements {}, expected {wanted}",
                name_of(array.scalar)
            )));
        }
        Typed::of(call, array, name)
    }

    /// Takes the next array as memory of elements as wide as `T`.
    pub(super) fn take_as<T: Element, const R: usize>(&mut self, call: &DeviceCall<'_>) -> PyResult<Typed<T, R>> {
        let (name, array) = self.0.remove(0);
        if array.scalar.bytes() != T::TYPE.bytes() {
            let (given, wanted) = (name_of(array.scalar), 8 * T::TYPE.bytes());
            return Err(PyTypeError::new_err(format!("`{name}` has elements {given}, expected {wanted} bits")));
        }
        Typed::of(call, array, name)
    }

    /// Takes the next array as memory that the call writes, of elements as wide as `T`.
    pub(super) fn out<T: Element, const R: usize>(&mut self, call: &DeviceCall<'_>) -> PyResult<Typed<T, R>> {
        let (name, array) = &self.0[0];
        if !array.writable {
            return Err(PyValueError::new_err(format!("`{name}` is read-only, and this function writes it")));
        }
        // Integers of one width may differ in their sign; floats are never bits of integers.
        let floats = is_float(array.scalar) || T::TYPE.scalar().is_some_and(is_float);
        if floats { self.take(call) } else { self.take_as(call) }
    }

    /// Takes the next array as memory that the call writes, for elements of the type `of` that the
    /// call moves as integers `T`.
    pub(super) fn out_of<T: Element, const R: usize>(
        &mut self,
        call: &DeviceCall<'_>,
        of: Scalar,
    ) -> PyResult<Typed<T, R>> {
        let (name, array) = &self.0[0];
        if !array.writable {
            return Err(PyValueError::new_err(format!("`{name}` is read-only, and this function writes it")));
        }
        if array.scalar != of && (is_float(array.scalar) || is_float(of)) {
            let (given, wanted) = (name_of(array.scalar), name_of(of));
            return Err(PyTypeError::new_err(format!("`{name}` has elements {given}, expected {wanted}")));
        }
        self.take_as(call)
    }
}

impl DeviceCall<'_> {
    /// Runs `work` with the memory of its arrays.
    pub(super) fn run<B: Send + Sync + 'static>(
        self,
        mut buffers: B,
        work: impl FnOnce(&runtime::Stream, &mut B) -> Result<()> + Send,
    ) -> PyResult<()> {
        let DeviceCall { py, open: OpenCall { opened, stream, in_order } } = self;
        let done = match &stream {
            None => opened.interruptible(py, || opened.complete(|on| work(on, &mut buffers))),
            Some(On::Stream(stream)) => {
                let stream = stream.get();
                opened.interruptible(py, || {
                    let order = stream.follow(&opened);
                    order.and_then(|()| work(&stream.stream, &mut buffers))
                })
            }
            Some(On::Handle(handle)) => opened.interruptible(py, || {
                // SAFETY: the caller passes a live stream of the arrays' device.
                unsafe { opened.ordered(*handle, |on| work(on, &mut buffers)) }
            }),
        };
        match stream {
            Some(On::Stream(stream)) => stream.get().hold(vec![Held::Buffers(Box::new(buffers))]),
            _ if in_order => py.detach(|| opened.drop_later(Box::new(buffers))),
            _ => drop(buffers),
        }
        done
    }
}

/// An array as memory of rank `R`.
pub(super) struct Typed<T: Element, const R: usize> {
    pub(super) buffer: DeviceBuffer<T>,
    pub(super) extents: [usize; R],
    pub(super) strides: [usize; R],
}

impl<T: Element, const R: usize> Typed<T, R> {
    /// Converts an array. Missing outer axes have one element; additional ones are joined.
    fn of(call: &DeviceCall<'_>, array: Foreign, name: &str) -> PyResult<Typed<T, R>> {
        let (extents, strides) = joined::<R>(&array, name)?;
        Ok(Typed { buffer: array.buffer(call.py, &call.open.opened, name, call.open.in_order)?, extents, strides })
    }

    pub(super) fn view(&self) -> Result<BufferView<'_, T, R>> {
        self.buffer.view_strided(self.extents, self.strides)
    }

    pub(super) fn view_mut(&mut self) -> Result<BufferViewMut<'_, T, R>> {
        self.buffer.view_strided_mut(self.extents, self.strides)
    }
}

/// Returns the extents and strides of an array as rank `R`.
fn joined<const R: usize>(array: &Foreign, name: &str) -> PyResult<([usize; R], [usize; R])> {
    let strides = array.view_strides(name)?;
    if strides.last().is_some_and(|last| *last != 1) && array.len() > 0 {
        return Err(PyValueError::new_err(format!(
            "`{name}` has strides {strides:?} in elements, and its last stride must be 1: copy the array"
        )));
    }
    let mut axes: Vec<_> = array.shape.iter().copied().zip(strides).collect();
    while axes.len() > R {
        let ((outer, by_outer), (inner, by_inner)) = (axes[0], axes[1]);
        let stride = match (outer, inner) {
            (1, _) => by_inner,
            (_, 1) => by_outer,
            _ if by_outer == by_inner.saturating_mul(inner) || array.len() == 0 => by_inner,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "`{name}` has gaps between its outer axes (shape {:?}, strides {:?} in elements): copy the array",
                    array.shape, array.strides
                )));
            }
        };
        axes[0] = (outer * inner, stride);
        axes.remove(1);
    }
    while axes.len() < R {
        let (n, stride) = axes.first().copied().unwrap_or((1, 1));
        let outer = if axes.is_empty() { 1 } else { n.max(1).saturating_mul(stride) };
        axes.insert(0, (1, outer));
    }
    let (mut extents, mut strides) = ([1; R], [1; R]);
    for (d, (n, stride)) in axes.into_iter().enumerate() {
        (extents[d], strides[d]) = (n, stride);
    }
    Ok((extents, strides))
}
