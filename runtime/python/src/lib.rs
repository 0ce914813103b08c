//! The native part of the Python package `kernels_rs`: kernels from a string, and the kernel
//! library, on arrays of NumPy, PyTorch, CuPy and JAX.
//!
//! # Architecture
//!
//! ```text
//! python/kernels_rs   names and argument order of torch.nn.functional; results of the caller's array type
//!        ▼
//! library, kernel     calls of the library; kernels from a string: compile, launch, report
//!        ▼
//! repeat              calls of PyTorch's operators that repeat the launches of an equal call
//!        ▼
//! call                the device and stream of a call, and its order after pending work
//!        ▼
//! foreign ─▶ dlpack, torch   arrays of other libraries as memory of a device
//! array               arrays of this package
//!        ▼
//! device, error       open devices and streams; errors as exceptions
//! scalar              element types: names, and the bits of Python's numbers
//! fork                locks that a child of `fork` can take
//!        ▲
//! allocator           memory of the runtime's pool for PyTorch's own tensors
//! ```
//!
//! **Arrays.** [`foreign::Foreign`] is an array of another library: address, extents, strides,
//! element type, device, and the object that keeps the memory alive. Such an array is read from the
//! attributes of a tensor of PyTorch, or from `__array_interface__`, `__dlpack__` or
//! `__cuda_array_interface__`, and nothing is copied. The runtime adopts its memory as a buffer.
//! [`array::Array`] is memory of the runtime, which other libraries read by the same protocols.
//!
//! **Device and stream.** The arrays of a call determine the device. With host arrays, the call
//! runs on the CPU device, which checks every access; with arrays of a GPU, on that GPU. A call
//! without a stream is complete when it returns. A call on a [`device::Stream`] is complete after
//! the stream's `wait`. A call on a stream of other code is ordered with that stream by events. A
//! producer of a DLPack array orders its pending work before the call.
//!
//! **Calls.** Arguments are converted and checked with the GIL held. The launch runs without the
//! GIL. The runtime checks the contract of the kernel as for Rust callers: types, extents, overlaps
//! and `requires`. As in NumPy, another thread must not write an array while a call uses it.
//!
//! **Errors.** Each error of the compiler and the runtime is an exception with the same text
//! ([`error`]): `CompileError`, `LaunchError`, `Violation`, `DeviceError`. Violations and compile
//! errors also have their source locations as attributes.
//!
//! **PyTorch.** The native calls have no gradients. `python/kernels_rs/_torch` makes operators of
//! pairs of calls: a forward call of [`library`], and its gradient. An operator with the shapes,
//! types and options of an earlier call repeats its launches ([`repeat`]).
//!
//! **Kernels from a string.** The front end of the compiler reads the text as `kernels inspect
//! --serve` does, without rustc. A compiled kernel is kept for the life of the process, because a
//! device identifies a kernel by its address. Equal strings are compiled once ([`kernel`]).

mod allocator;
mod array;
mod call;
mod device;
mod dlpack;
mod error;
mod foreign;
mod fork;
mod kernel;
mod library;
mod repeat;
mod scalar;
mod torch;

use pyo3::prelude::*;

/// Fills the native module of `kernels_rs`.
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(m)?;
    m.add_class::<array::Array>()?;
    m.add_class::<device::Stream>()?;
    m.add_class::<kernel::Kernel>()?;
    m.add_class::<repeat::Repeats>()?;
    m.add_function(wrap_pyfunction!(array::zeros, m)?)?;
    m.add_function(wrap_pyfunction!(array::array, m)?)?;
    m.add_function(wrap_pyfunction!(array::array_of_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(array::asarray, m)?)?;
    m.add_function(wrap_pyfunction!(array::describe, m)?)?;
    m.add_function(wrap_pyfunction!(device::devices, m)?)?;
    m.add_function(wrap_pyfunction!(device::set_instruction_limit, m)?)?;
    m.add_function(wrap_pyfunction!(kernel::compile, m)?)?;
    m.add_function(wrap_pyfunction!(after_fork, m)?)?;
    library::register(m)
}

/// Replaces the locks that threads of the parent held. Python calls it in a child of `fork`.
#[pyfunction]
fn after_fork() {
    device::OPENED.renew(|opened| opened.iter().any(|(_, device)| device.is_held()));
    kernel::COMPILED.renew(|all| {
        all.values().for_each(|compiled| compiled.instances.renew(|_| false));
        false
    });
}
