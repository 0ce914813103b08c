//! Calls of the kernel library. The Python layer allocates results and passes them as the last
//! arrays.

use crate::error;
use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::prelude::*;
use kernel_dsl::{Element, Float, GenericArgument};
use kernels_rs::activation::{geglu, geglu_tanh, gelu, gelu_tanh, silu, swiglu};
use kernels_rs::gemm::{Gemm, epilogue as epilogues};
use kernels_rs::reduce::{self, Reduced};
use kernels_rs::rotary::PairLayout;
use kernels_rs::rowwise::{CrossEntropy, Norm, Softmax};
use kernels_rs::sampling::Sample;
use kernels_rs::{elementwise, histogram, permute, scan};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use runtime::{BufferView, DeviceBuffer, Result};
use std::any::Any;

/// Adds the functions of the library to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<QuantizedWeights>()?;
    m.add_class::<SeenBlocks>()?;
    m.add_function(wrap_pyfunction!(linear, m)?)?;
    cache::register(m)?;
    m.add_function(wrap_pyfunction!(softmax, m)?)?;
    m.add_function(wrap_pyfunction!(norm, m)?)?;
    m.add_function(wrap_pyfunction!(cross_entropy, m)?)?;
    m.add_function(wrap_pyfunction!(product, m)?)?;
    attention::register(m)?;
    m.add_function(wrap_pyfunction!(rotary, m)?)?;
    m.add_function(wrap_pyfunction!(gate, m)?)?;
    m.add_function(wrap_pyfunction!(activation, m)?)?;
    m.add_function(wrap_pyfunction!(reduction, m)?)?;
    m.add_function(wrap_pyfunction!(cumulative, m)?)?;
    m.add_function(wrap_pyfunction!(transpose, m)?)?;
    m.add_function(wrap_pyfunction!(embedding, m)?)?;
    m.add_function(wrap_pyfunction!(counts, m)?)?;
    m.add_function(wrap_pyfunction!(sample, m)?)?;
    m.add_function(wrap_pyfunction!(quantized_product, m)?)?;
    gradients::register(m)
}

/// Returns its argument. The library's map of this function converts between float types.
#[device(value)]
fn converted(x: f32) -> f32 {
    x
}

/// Calls `$body` with `$T` as the float type of an array.
macro_rules! floats {
    ($array:expr, $T:ident => $body:expr) => {{
        let scalar = $array.scalar;
        match scalar {
            Scalar::F32 => {
                type $T = f32;
                $body
            }
            Scalar::F16 => {
                type $T = f16;
                $body
            }
            Scalar::Bf16 => {
                type $T = bf16;
                $body
            }
            other => Err(unsupported(other, "float32, float16 and bfloat16")),
        }
    }};
}

/// Calls `$body` with `$T` as an integer of the width of an array's elements.
macro_rules! widths {
    ($array:expr, $T:ident => $body:expr) => {{
        let bytes = $array.scalar.bytes();
        match bytes {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    }};
}

mod attention;
mod cache;
mod epilogue;
mod gradients;
mod operands;
mod quantized;
mod sparse;

use epilogue::{ACTIVATIONS, LinearEpilogue};
use operands::{AnyObject, Arrays, DeviceCall, Typed, unsupported};
use quantized::{QuantizedWeights, quantized_product};
use sparse::SeenBlocks;

/// Computes the softmax of the last axis, or its logarithm.
#[pyfunction]
#[pyo3(signature = (x, out, scale = 1.0, log = false, causal = 0, stream = None))]
fn softmax(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    scale: f32,
    log: bool,
    causal: usize,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("x", x), ("out", out)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (x, y) = (arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        call.run((x, y), move |on, (x, y)| {
            let plain = Softmax::new().scale(scale).causal(causal);
            let softmax = if log { plain.log() } else { plain };
            softmax.run(on, &x.view()?, &mut y.view_mut()?)
        })
    })
}

/// Computes the layer norm (`centered`) or RMS norm of the last axis. `saved` receives each row's
/// mean and factor, which the gradient requires.
#[pyfunction]
#[pyo3(signature = (x, weight, bias, out, eps, centered, stream = None, saved = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn norm(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    weight: Option<&Bound<'_, PyAny>>,
    bias: Option<&Bound<'_, PyAny>>,
    out: AnyObject<'_, '_>,
    eps: f32,
    centered: bool,
    stream: Option<&Bound<'_, PyAny>>,
    saved: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let optional = [saved.map(|s| ("saved", s)), weight.map(|w| ("weight", w)), bias.map(|b| ("bias", b))];
    let given: Vec<_> = [("x", x), ("out", out)].into_iter().chain(optional.into_iter().flatten()).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let plain = if centered { Norm::layer(eps) } else { Norm::rms(eps) };
    floats!(arrays.first(), T => {
        let (x, y) = (arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        let saved = saved.map(|_| arrays.out::<f32, 2>(&call)).transpose()?;
        if weight.is_none() {
            return call.run((x, y, saved), move |on, (x, y, saved)| {
                let mut saved = saved.as_mut().map(Typed::view_mut).transpose()?;
                plain.run_added(on, &x.view()?, None, &mut y.view_mut()?, saved.as_mut())
            });
        }
        floats!(arrays.first(), W => {
            let w = arrays.take::<W, 1>(&call)?;
            let b = bias.map(|_| arrays.take::<W, 1>(&call)).transpose()?;
            call.run((x, y, saved, w, b), move |on, (x, y, saved, w, b)| {
                let (w, b) = (w.view()?, b.as_ref().map(Typed::view).transpose()?);
                let mut saved = saved.as_mut().map(Typed::view_mut).transpose()?;
                let norm = plain.weight(&w);
                let norm = match &b {
                    Some(b) => norm.bias(b),
                    None => norm,
                };
                norm.run_added(on, &x.view()?, None, &mut y.view_mut()?, saved.as_mut())
            })
        })
    })
}

/// Computes the cross-entropy of rows of logits, and the logarithms of their sums.
#[pyfunction]
#[pyo3(signature = (logits, labels, loss, log_sum, smoothing = 0.0, stream = None))]
fn cross_entropy(
    py: Python<'_>,
    logits: AnyObject<'_, '_>,
    labels: AnyObject<'_, '_>,
    loss: AnyObject<'_, '_>,
    log_sum: AnyObject<'_, '_>,
    smoothing: f32,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("logits", logits), ("labels", labels), ("loss", loss), ("log_sum", log_sum)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (x, labels) = (arrays.take::<T, 2>(&call)?, arrays.take_as::<u32, 1>(&call)?);
        let (loss, log_sum) = (arrays.out::<f32, 1>(&call)?, arrays.out::<f32, 1>(&call)?);
        call.run((x, labels, loss, log_sum), move |on, (x, labels, loss, log_sum)| {
            let call = CrossEntropy::new().smoothing(smoothing);
            call.run(on, &x.view()?, &labels.view()?, &mut loss.view_mut()?, &mut log_sum.view_mut()?)
        })
    })
}

/// Computes out ← activation(alpha · op(a) · op(b) + beta · out + bias).
#[pyfunction]
#[pyo3(signature = (a, b, bias, out, transpose_a, transpose_b, alpha = 1.0, beta = 0.0, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn product(
    py: Python<'_>,
    a: AnyObject<'_, '_>,
    b: AnyObject<'_, '_>,
    bias: Option<&Bound<'_, PyAny>>,
    out: AnyObject<'_, '_>,
    transpose_a: bool,
    transpose_b: bool,
    alpha: f32,
    beta: f32,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let given = [Some(("a", a)), Some(("b", b)), Some(("out", out)), bias.map(|bias| ("bias", bias))];
    let given: Vec<_> = given.into_iter().flatten().collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let mut gemm = Gemm::new().alpha(alpha).beta(beta);
    gemm = if transpose_a { gemm.transpose_a() } else { gemm };
    gemm = if transpose_b { gemm.transpose_b() } else { gemm };
    floats!(arrays.first(), T => {
        let (a, b) = (arrays.take::<T, 3>(&call)?, arrays.take::<T, 3>(&call)?);
        let c = arrays.out::<T, 3>(&call)?;
        if arrays.is_empty() {
            return call.run((a, b, c), move |on, (a, b, c)| gemm.run(on, &a.view()?, &b.view()?, &mut c.view_mut()?));
        }
        let bias = arrays.take::<T, 1>(&call)?;
        if bias.extents[0] != c.extents[2] {
            let (found, wanted) = (bias.extents[0], c.extents[2]);
            return Err(PyValueError::new_err(format!("`bias` has {found} elements, and the result {wanted} columns")));
        }
        call.run((a, b, c, bias), move |on, (a, b, c, bias)| {
            let mut wide = on.device().alloc::<f32>(bias.extents[0])?;
            elementwise::map(on, converted {}, bias.view()?.strided(), wide.view_mut(bias.extents)?.strided())?;
            let wide = wide.view(bias.extents)?;
            on.reads(&wide)?;
            // SAFETY: the buffer is alive and not written until its drop, which waits for the
            // launch that `reads` declares.
            let epilogue = epilogues::Bias { bias: unsafe { wide.detached() } };
            // SAFETY: the bias has an element for each column of c, compared above.
            unsafe { gemm.run_with(on, &a.view()?, &b.view()?, &mut c.view_mut()?, epilogue)? };
            on.reads(&wide)
        })
    })
}

/// Computes out ← activation(x · Wᵀ + bias) + residual in one kernel.
#[pyfunction]
#[pyo3(signature = (x, weight, bias, residual, activation, out, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn linear(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    weight: AnyObject<'_, '_>,
    bias: Option<&Bound<'_, PyAny>>,
    residual: Option<&Bound<'_, PyAny>>,
    activation: &str,
    out: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let activation = ACTIVATIONS.iter().position(|known| *known == activation).ok_or_else(|| {
        let known = ACTIVATIONS.join(", ");
        PyValueError::new_err(format!("no activation `{activation}`; the activations are {known}"))
    })?;
    let optional = [bias.map(|bias| ("bias", bias)), residual.map(|residual| ("residual", residual))];
    let given = [("input", x), ("weight", weight), ("out", out)];
    let given: Vec<_> = given.into_iter().chain(optional.into_iter().flatten()).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (x, w) = (arrays.take::<T, 3>(&call)?, arrays.take::<T, 3>(&call)?);
        let c = arrays.out::<T, 3>(&call)?;
        let bias = bias.map(|_| arrays.take::<T, 1>(&call)).transpose()?;
        let residual = residual.map(|_| arrays.take::<T, 3>(&call)).transpose()?;
        if let Some(found) = bias.as_ref().map(|bias| bias.extents[0]).filter(|found| *found != c.extents[2]) {
            let wanted = c.extents[2];
            return Err(PyValueError::new_err(format!("`bias` has {found} elements, and the result {wanted} columns")));
        }
        if let Some(found) = residual.as_ref().map(|r| r.extents).filter(|found| *found != c.extents) {
            let wanted = c.extents;
            return Err(PyValueError::new_err(format!("`residual` has the extents {found:?}, and the result {wanted:?}")));
        }
        let bytes = |array: &Typed<T, 3>| {
            let start = array.buffer.device_address();
            start..start + (array.buffer.len() * size_of::<T>()) as u64
        };
        let (of_c, added) = (bytes(&c), residual.as_ref().map(bytes));
        if added.is_some_and(|added| added.start < of_c.end && of_c.start < added.end) {
            return Err(PyValueError::new_err("`residual` and `out` share memory"));
        }
        call.run((x, w, c, bias, residual), move |on, (x, w, c, bias, residual)| {
            let (bias, residual) = (bias.as_ref(), residual.as_ref());
            let wide = (widened(on, bias)?, widened(on, residual)?);
            let (of_bias, of_residual) = (as_f32(bias, &wide.0)?, as_f32(residual, &wide.1)?);
            on.reads(&of_bias)?;
            on.reads(&of_residual)?;
            // SAFETY: the buffers are alive and not written until their drop, which waits for the
            // launch that `reads` declares.
            let (bias, residual) = unsafe { (of_bias.detached(), of_residual.detached()) };
            let epilogue = LinearEpilogue { bias, residual, activation: activation as u32 };
            let gemm = Gemm::new().transpose_b();
            // SAFETY: the bias has an element for each column of c, and the residual the extents of
            // c, compared above; empty ones are not read.
            unsafe { gemm.run_with(on, &x.view()?, &w.view()?, &mut c.view_mut()?, epilogue)? };
            on.reads(&of_bias)?;
            on.reads(&of_residual)
        })
    })
}

/// Returns the buffer of an array of `f32`.
fn of_f32<T: Float, const R: usize>(array: &Typed<T, R>) -> Option<&DeviceBuffer<f32>> {
    (&array.buffer as &dyn Any).downcast_ref()
}

/// Returns the elements as `f32` in new memory; none without an array, or if they are `f32`.
fn widened<T: Float + GenericArgument, const R: usize>(
    on: &runtime::Stream,
    array: Option<&Typed<T, R>>,
) -> Result<DeviceBuffer<f32>> {
    let Some(array) = array.filter(|array| of_f32(array).is_none()) else { return on.device().alloc::<f32>(0) };
    let mut wide = on.device().alloc::<f32>(array.extents.iter().product())?;
    elementwise::map(on, converted {}, array.view()?.strided(), wide.view_mut(array.extents)?.strided())?;
    Ok(wide)
}

/// Returns the elements of an array as `f32`: its own, or those of `wide`; none without an array.
fn as_f32<'a, T: Float, const R: usize>(
    array: Option<&'a Typed<T, R>>,
    wide: &'a DeviceBuffer<f32>,
) -> Result<BufferView<'a, f32, R>> {
    match array.map(|array| (array, of_f32(array))) {
        None => wide.view([0; R]),
        Some((array, Some(own))) => own.view_strided(array.extents, array.strides),
        Some((array, None)) => wide.view(array.extents),
    }
}

/// Rotates pairs of elements of [tokens, heads, size] by the angles of positions [axes, tokens].
#[pyfunction]
#[pyo3(signature = (x, positions, out, frequencies, axes = None, interleaved = false, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn rotary(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    positions: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    frequencies: Vec<f32>,
    axes: Option<Vec<u32>>,
    interleaved: bool,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("x", x), ("positions", positions), ("out", out)])?;
    let call = arrays.open(py, stream)?;
    let layout = if interleaved { PairLayout::Interleaved } else { PairLayout::Halves };
    let axes = axes.unwrap_or_else(|| vec![0; frequencies.len()]);
    floats!(arrays.first(), T => {
        let (x, positions) = (arrays.take::<T, 3>(&call)?, arrays.take_as::<u32, 2>(&call)?);
        let y = arrays.out::<T, 3>(&call)?;
        let rotary = call.open.opened.rotary(layout, &frequencies, &axes).map_err(|e| error::runtime(py, e))?;
        call.run((x, positions, y), move |on, (x, positions, y)| {
            rotary.run(on, &x.view()?, &positions.view()?, &mut y.view_mut()?)
        })
    })
}

/// Runs a call of the library with the function of a name, from `x` to `out`.
macro_rules! call_by_name {
    (($py:expr, $what:literal, $name:expr, $x:expr, $out:expr, $stream:expr), $call:path, { $($known:literal => $f:expr),+ }) => {{
        let mut arrays = Arrays::of(&[("x", $x), ("out", $out)])?;
        let call = arrays.open($py, $stream)?;
        floats!(arrays.first(), T => {
            let (x, y) = (arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
            match $name {
                $($known => call.run((x, y), |on, (x, y)| $call(on, $f, x.view()?.strided(), y.view_mut()?.strided())),)+
                other => Err(PyValueError::new_err(format!(concat!("no ", $what, " `{}`"), other))),
            }
        })
    }};
}

/// Computes the gate of the halves of the last axis: "swiglu", "geglu" or "geglu_tanh".
#[pyfunction]
#[pyo3(signature = (name, x, out, stream = None))]
fn gate(
    py: Python<'_>,
    name: &str,
    x: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    call_by_name!((py, "gate", name, x, out, stream), elementwise::gate, {
        "swiglu" => swiglu {}, "geglu" => geglu {}, "geglu_tanh" => geglu_tanh {}
    })
}

/// Applies a function to each element: "silu", "gelu" or "gelu_tanh".
#[pyfunction]
#[pyo3(signature = (name, x, out, stream = None))]
fn activation(
    py: Python<'_>,
    name: &str,
    x: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    call_by_name!((py, "activation", name, x, out, stream), elementwise::map, {
        "silu" => silu {}, "gelu" => gelu {}, "gelu_tanh" => gelu_tanh {}
    })
}

/// Reduces the middle axis of [batch, n, inner]; without `inner`, the last axis.
#[pyfunction]
#[pyo3(signature = (name, x, out, whole = false, last = true, stream = None))]
fn reduction(
    py: Python<'_>,
    name: &str,
    x: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    whole: bool,
    last: bool,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let arrays = Arrays::of(&[("x", x), ("out", out)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => match name {
        "sum" => reduced::<T, _>(call, arrays, reduce::Sum, whole, last),
        "mean" => reduced::<T, _>(call, arrays, reduce::Mean, whole, last),
        "norm1" => reduced::<T, _>(call, arrays, reduce::Norm1, whole, last),
        "norm2" => reduced::<T, _>(call, arrays, reduce::Norm2, whole, last),
        "max" => reduced::<T, _>(call, arrays, reduce::Max, whole, last),
        "min" => reduced::<T, _>(call, arrays, reduce::Min, whole, last),
        "argmax" => reduced::<T, _>(call, arrays, reduce::ArgMax, whole, last),
        "argmin" => reduced::<T, _>(call, arrays, reduce::ArgMin, whole, last),
        _ => Err(PyValueError::new_err(format!("no reduction `{name}`"))),
    })
}

fn reduced<T: Float + GenericArgument, M: Reduced + Send>(
    call: DeviceCall<'_>,
    mut arrays: Arrays,
    monoid: M,
    whole: bool,
    last: bool,
) -> PyResult<()>
where
    M::Out: Element,
{
    if whole || last {
        let (x, y) = (arrays.take::<T, 2>(&call)?, arrays.out::<M::Out, 1>(&call)?);
        return call.run((x, y), move |on, (x, y)| match whole {
            true => reduce::all(on, monoid, &x.view()?, &mut y.view_mut()?),
            false => reduce::rows(on, monoid, &x.view()?, &mut y.view_mut()?),
        });
    }
    let (x, y) = (arrays.take::<T, 3>(&call)?, arrays.out::<M::Out, 1>(&call)?);
    call.run((x, y), move |on, (x, y)| reduce::columns(on, monoid, &x.view()?, &mut y.view_mut()?))
}

/// Computes running sums of the last axis.
#[pyfunction]
#[pyo3(signature = (x, out, exclusive = false, stream = None))]
fn cumulative(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    exclusive: bool,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("x", x), ("out", out)])?;
    let call = arrays.open(py, stream)?;
    macro_rules! run {
        ($T:ty) => {{
            let (x, y) = (arrays.take::<$T, 2>(&call)?, arrays.out::<$T, 2>(&call)?);
            call.run((x, y), move |on, (x, y)| match exclusive {
                true => scan::exclusive(on, &x.view()?, &mut y.view_mut()?),
                false => scan::inclusive(on, &x.view()?, &mut y.view_mut()?),
            })
        }};
    }
    match arrays.first().scalar {
        Scalar::F32 => run!(f32),
        Scalar::F64 => run!(f64),
        Scalar::I32 => run!(i32),
        Scalar::U32 => run!(u32),
        Scalar::I64 => run!(i64),
        other => Err(unsupported(other, "float32, float64, int32, uint32 and int64")),
    }
}

/// Copies the transposes of the last two axes.
#[pyfunction]
#[pyo3(signature = (x, out, stream = None))]
fn transpose(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("x", x), ("out", out)])?;
    let call = arrays.open(py, stream)?;
    widths!(arrays.first(), T => {
        let of = arrays.first().scalar;
        let (x, y) = (arrays.take_as::<T, 3>(&call)?, arrays.out_of::<T, 3>(&call, of)?);
        call.run((x, y), |on, (x, y)| permute::transpose_batch(on, &x.view()?, &mut y.view_mut()?))
    })
}

/// Copies rows of a table.
#[pyfunction]
#[pyo3(signature = (table, index, out, stream = None))]
fn embedding(
    py: Python<'_>,
    table: AnyObject<'_, '_>,
    index: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("table", table), ("index", index), ("out", out)])?;
    let call = arrays.open(py, stream)?;
    widths!(arrays.first(), T => {
        let of = arrays.first().scalar;
        let (table, index) = (arrays.take_as::<T, 2>(&call)?, arrays.take_as::<u32, 1>(&call)?);
        let y = arrays.out_of::<T, 2>(&call, of)?;
        call.run((table, index, y), |on, (table, index, y)| {
            permute::gather(on, &table.view()?, &index.view()?, &mut y.view_mut()?)
        })
    })
}

/// Counts keys in bins.
#[pyfunction]
#[pyo3(signature = (keys, bins, low = 0.0, high = 0.0, stream = None))]
fn counts(
    py: Python<'_>,
    keys: AnyObject<'_, '_>,
    bins: AnyObject<'_, '_>,
    low: f32,
    high: f32,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("keys", keys), ("bins", bins)])?;
    let call = arrays.open(py, stream)?;
    macro_rules! run {
        ($T:ty) => {{
            let (keys, bins) = (arrays.take::<$T, 1>(&call)?, arrays.out::<u32, 1>(&call)?);
            call.run((keys, bins), move |on, (keys, bins)| {
                histogram::histogram(on, &keys.view()?, low..=high, &mut bins.view_mut()?)
            })
        }};
    }
    match arrays.first().scalar {
        Scalar::F32 => run!(f32),
        Scalar::U32 => run!(u32),
        Scalar::U8 => run!(u8),
        other => Err(unsupported(other, "float32, uint32 and uint8")),
    }
}

/// Draws a token for each row of logits.
#[pyfunction]
#[pyo3(signature = (logits, tokens, seed, offset = 0, temperature = 1.0, top_k = 0, top_p = 1.0, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn sample(
    py: Python<'_>,
    logits: AnyObject<'_, '_>,
    tokens: AnyObject<'_, '_>,
    seed: u64,
    offset: u64,
    temperature: f32,
    top_k: usize,
    top_p: f32,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("logits", logits), ("tokens", tokens)])?;
    let call = arrays.open(py, stream)?;
    let sample = Sample::new(seed).offset(offset).temperature(temperature).top_k(top_k).top_p(top_p);
    floats!(arrays.first(), T => {
        let (logits, tokens) = (arrays.take::<T, 2>(&call)?, arrays.out::<u32, 1>(&call)?);
        call.run((logits, tokens), move |on, (logits, tokens)| sample.run(on, &logits.view()?, &mut tokens.view_mut()?))
    })
}
