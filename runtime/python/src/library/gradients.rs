//! Calls that compute gradients, and the optimizer's step.
//!
//! Gates and activations have their derivatives here, as functions for the maps of the library.

use super::{AnyObject, Arrays, Typed, unsupported};
use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::prelude::*;
use kernels_rs::activation::{geglu, geglu_tanh, sigmoid, swiglu};
use kernels_rs::elementwise;
use kernels_rs::optimizer::AdamW;
use kernels_rs::rowwise::{CrossEntropy, Norm, Softmax};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(softmax_backward, m)?)?;
    m.add_function(wrap_pyfunction!(norm_backward, m)?)?;
    m.add_function(wrap_pyfunction!(cross_entropy_backward, m)?)?;
    m.add_function(wrap_pyfunction!(activation_backward, m)?)?;
    m.add_function(wrap_pyfunction!(gate_of_two, m)?)?;
    m.add_function(wrap_pyfunction!(gate_backward, m)?)?;
    m.add_function(wrap_pyfunction!(adamw, m)?)
}

/// Returns the derivative of SiLU, s · (1 + x · (1 − s)) with s = sigmoid(x); its limits for ±∞.
#[device]
fn silu_slope(x: f32) -> f32 {
    let s = sigmoid(x);
    s * (1.0 - s).mul_add(x.max(f32::MIN).min(f32::MAX), 1.0)
}

/// Returns the derivative of GELU, Φ(x) + x · φ(x). The density φ is 0 beyond |x| = 100 in `f32`.
#[device]
fn gelu_slope(x: f32) -> f32 {
    let near = x.max(-100.0).min(100.0);
    let share = 0.5 * (1.0 + math::erf(x * std::f32::consts::FRAC_1_SQRT_2));
    (0.398_942_3 * near).mul_add(math::exp(-0.5 * near * near), share)
}

/// Returns the derivative of the tanh approximation of GELU. The second term is 0 beyond
/// |x| = 100.
#[device]
fn gelu_tanh_slope(x: f32) -> f32 {
    let near = x.max(-100.0).min(100.0);
    let t = math::tanh(0.797_884_6 * (0.044_715 * x * x).mul_add(x, x));
    let inner = 0.797_884_6 * (0.134_145 * near).mul_add(near, 1.0);
    0.5 * (near * inner).mul_add((-t).mul_add(t, 1.0), 1.0 + t)
}

/// Returns dy times the derivative of SiLU at x.
#[device(value)]
fn silu_gradient(dy: f32, x: f32) -> f32 {
    dy * silu_slope(x)
}

/// Returns dy times the derivative of GELU at x.
#[device(value)]
fn gelu_gradient(dy: f32, x: f32) -> f32 {
    dy * gelu_slope(x)
}

/// Returns dy times the derivative of the tanh approximation of GELU at x.
#[device(value)]
fn gelu_tanh_gradient(dy: f32, x: f32) -> f32 {
    dy * gelu_tanh_slope(x)
}

/// Returns the gradient of a for silu(a) · b.
#[device(value)]
fn swiglu_gradient(dy: f32, a: f32, b: f32) -> f32 {
    dy * b * silu_slope(a)
}

/// Returns the gradient of a for gelu(a) · b.
#[device(value)]
fn geglu_gradient(dy: f32, a: f32, b: f32) -> f32 {
    dy * b * gelu_slope(a)
}

/// Returns the gradient of a for gelu_tanh(a) · b.
#[device(value)]
fn geglu_tanh_gradient(dy: f32, a: f32, b: f32) -> f32 {
    dy * b * gelu_tanh_slope(a)
}

/// Computes dx of y = softmax(scale · x), or its logarithm, from y and dy.
#[pyfunction]
#[pyo3(signature = (y, dy, dx, scale = 1.0, log = false, stream = None))]
fn softmax_backward(
    py: Python<'_>,
    y: AnyObject<'_, '_>,
    dy: AnyObject<'_, '_>,
    dx: AnyObject<'_, '_>,
    scale: f32,
    log: bool,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("y", y), ("dy", dy), ("dx", dx)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (y, dy, dx) = (arrays.take::<T, 2>(&call)?, arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        call.run((y, dy, dx), move |on, (y, dy, dx)| {
            let plain = Softmax::new().scale(scale);
            let softmax = if log { plain.log() } else { plain };
            softmax.backward(on, &y.view()?, &dy.view()?, &mut dx.view_mut()?)
        })
    })
}

/// Computes the gradients of a norm: of its input into `dx`, of its weight and of its bias.
#[pyfunction]
#[pyo3(signature = (x, saved, dy, dx, weight, dweight, dbias, centered, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn norm_backward(
    py: Python<'_>,
    x: AnyObject<'_, '_>,
    saved: AnyObject<'_, '_>,
    dy: AnyObject<'_, '_>,
    dx: AnyObject<'_, '_>,
    weight: Option<&Bound<'_, PyAny>>,
    dweight: Option<&Bound<'_, PyAny>>,
    dbias: Option<&Bound<'_, PyAny>>,
    centered: bool,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let optional = [weight.map(|a| ("weight", a)), dweight.map(|a| ("dweight", a)), dbias.map(|a| ("dbias", a))];
    let given = [("x", x), ("saved", saved), ("dy", dy), ("dx", dx)];
    let given: Vec<_> = given.into_iter().chain(optional.into_iter().flatten()).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let plain = if centered { Norm::layer(0.0) } else { Norm::rms(0.0) };
    floats!(arrays.first(), T => {
        let (x, saved) = (arrays.take::<T, 2>(&call)?, arrays.take::<f32, 2>(&call)?);
        let (dy, dx) = (arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        if weight.is_none() {
            return call.run((x, saved, dy, dx), move |on, (x, saved, dy, dx)| {
                plain.backward(on, &x.view()?, &saved.view()?, &dy.view()?, &mut dx.view_mut()?)
            });
        }
        floats!(arrays.first(), W => {
            let w = arrays.take::<W, 1>(&call)?;
            let dw = dweight.map(|_| arrays.out::<W, 1>(&call)).transpose()?;
            let db = dbias.map(|_| arrays.out::<W, 1>(&call)).transpose()?;
            call.run((x, saved, dy, dx, w, dw, db), move |on, (x, saved, dy, dx, w, dw, db)| {
                let (x, saved, dy, w) = (x.view()?, saved.view()?, dy.view()?, w.view()?);
                let norm = plain.weight(&w);
                norm.backward(on, &x, &saved, &dy, &mut dx.view_mut()?)?;
                if dw.is_none() && db.is_none() {
                    return Ok(());
                }
                let mut dw = dw.as_mut().map(Typed::view_mut).transpose()?;
                let mut db = db.as_mut().map(Typed::view_mut).transpose()?;
                norm.backward_columns(on, &x, &saved, &dy, dw.as_mut(), db.as_mut())
            })
        })
    })
}

/// Computes the gradient of logits from those of each row's loss.
#[pyfunction]
#[pyo3(signature = (logits, labels, log_sum, gradient, dx, smoothing = 0.0, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn cross_entropy_backward(
    py: Python<'_>,
    logits: AnyObject<'_, '_>,
    labels: AnyObject<'_, '_>,
    log_sum: AnyObject<'_, '_>,
    gradient: AnyObject<'_, '_>,
    dx: AnyObject<'_, '_>,
    smoothing: f32,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let given = [("logits", logits), ("labels", labels), ("log_sum", log_sum), ("gradient", gradient), ("dx", dx)];
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (x, labels) = (arrays.take::<T, 2>(&call)?, arrays.take_as::<u32, 1>(&call)?);
        let (log_sum, gradient) = (arrays.take::<f32, 1>(&call)?, arrays.take::<f32, 1>(&call)?);
        let dx = arrays.out::<T, 2>(&call)?;
        call.run((x, labels, log_sum, gradient, dx), move |on, (x, labels, log_sum, gradient, dx)| {
            let loss = CrossEntropy::new().smoothing(smoothing);
            let (log_sum, gradient) = (log_sum.view()?, gradient.view()?);
            loss.backward(on, &x.view()?, &labels.view()?, &log_sum, &gradient, &mut dx.view_mut()?)
        })
    })
}

/// Computes dx of y = f(x), from x and dy: "silu", "gelu" or "gelu_tanh".
#[pyfunction]
#[pyo3(signature = (name, x, dy, dx, stream = None))]
fn activation_backward(
    py: Python<'_>,
    name: &str,
    x: AnyObject<'_, '_>,
    dy: AnyObject<'_, '_>,
    dx: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("x", x), ("dy", dy), ("dx", dx)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (x, dy, dx) = (arrays.take::<T, 2>(&call)?, arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        macro_rules! run {
            ($slope:expr) => {
                call.run((x, dy, dx), |on, (x, dy, dx)| {
                    let (x, dy) = (x.view()?.strided(), dy.view()?.strided());
                    elementwise::map2(on, $slope, dy, x, dx.view_mut()?.strided())
                })
            };
        }
        match name {
            "silu" => run!(silu_gradient {}),
            "gelu" => run!(gelu_gradient {}),
            "gelu_tanh" => run!(gelu_tanh_gradient {}),
            other => Err(PyValueError::new_err(format!("no activation `{other}` has a gradient"))),
        }
    })
}

/// Computes f(a) · b of two arrays: "swiglu", "geglu" or "geglu_tanh".
#[pyfunction]
#[pyo3(signature = (name, a, b, out, stream = None))]
fn gate_of_two(
    py: Python<'_>,
    name: &str,
    a: AnyObject<'_, '_>,
    b: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("gate", a), ("up", b), ("out", out)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (a, b, y) = (arrays.take::<T, 2>(&call)?, arrays.take::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        macro_rules! run {
            ($gate:expr) => {
                call.run((a, b, y), |on, (a, b, y)| {
                    elementwise::map2(on, $gate, a.view()?.strided(), b.view()?.strided(), y.view_mut()?.strided())
                })
            };
        }
        match name {
            "swiglu" => run!(swiglu {}),
            "geglu" => run!(geglu {}),
            "geglu_tanh" => run!(geglu_tanh {}),
            other => Err(PyValueError::new_err(format!("no gate `{other}`"))),
        }
    })
}

/// Computes the gradients of a and b for f(a) · b, in a launch for each.
#[pyfunction]
#[pyo3(signature = (name, a, b, dy, da, db, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn gate_backward(
    py: Python<'_>,
    name: &str,
    a: AnyObject<'_, '_>,
    b: AnyObject<'_, '_>,
    dy: AnyObject<'_, '_>,
    da: AnyObject<'_, '_>,
    db: AnyObject<'_, '_>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let mut arrays = Arrays::of(&[("gate", a), ("up", b), ("dy", dy), ("dgate", da), ("dup", db)])?;
    let call = arrays.open(py, stream)?;
    floats!(arrays.first(), T => {
        let (a, b, dy) = (arrays.take::<T, 2>(&call)?, arrays.take::<T, 2>(&call)?, arrays.take::<T, 2>(&call)?);
        let (da, db) = (arrays.out::<T, 2>(&call)?, arrays.out::<T, 2>(&call)?);
        // The gradient of b is f(a) · dy: the gate itself, with dy for b.
        macro_rules! run {
            ($of_a:expr, $gate:expr) => {
                call.run((a, b, dy, da, db), |on, (a, b, dy, da, db)| {
                    let (a, b, dy) = (a.view()?.strided(), b.view()?.strided(), dy.view()?.strided());
                    elementwise::map3(on, $of_a, dy, a, b, da.view_mut()?.strided())?;
                    elementwise::map2(on, $gate, a, dy, db.view_mut()?.strided())
                })
            };
        }
        match name {
            "swiglu" => run!(swiglu_gradient {}, swiglu {}),
            "geglu" => run!(geglu_gradient {}, geglu {}),
            "geglu_tanh" => run!(geglu_tanh_gradient {}, geglu_tanh {}),
            other => Err(PyValueError::new_err(format!("no gate `{other}`"))),
        }
    })
}

/// Updates weights and the moments of AdamW with a gradient, in one pass. Steps begin at 1.
#[pyfunction]
#[pyo3(signature = (weight, gradient, moments, step, rate, betas, epsilon, decay, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn adamw(
    py: Python<'_>,
    weight: AnyObject<'_, '_>,
    gradient: AnyObject<'_, '_>,
    moments: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    step: u64,
    rate: f64,
    betas: [f64; 2],
    epsilon: f64,
    decay: f64,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let given = [("gradient", gradient), ("weight", weight), ("moments[0]", &moments.0), ("moments[1]", &moments.1)];
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let adamw = AdamW::new(rate).betas(betas).epsilon(epsilon).decay(decay);
    floats!(arrays.first(), G => {
        let g = arrays.take::<G, 1>(&call)?;
        floats!(arrays.first(), W => {
            let w = arrays.out::<W, 1>(&call)?;
            let (m, v) = (arrays.out::<f32, 1>(&call)?, arrays.out::<f32, 1>(&call)?);
            call.run((g, w, m, v), move |on, (g, w, m, v)| {
                adamw.step(on, step, &g.view()?, &mut w.view_mut()?, &mut m.view_mut()?, &mut v.view_mut()?)
            })
        })
    })
}
