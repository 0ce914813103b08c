//! The device and stream of a call, and its order after pending work on its arrays.

use crate::device::{On, Opened, Where};
use crate::foreign::Foreign;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Returns the place of all arrays of a call, which are on one device; without arrays, the CPU.
fn common_place<'a>(arrays: impl Iterator<Item = (&'a str, &'a Foreign)>) -> PyResult<Where> {
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
