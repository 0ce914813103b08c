//! Attention of many queries and its gradient, with scores, block masks, and batches of sequences
//! of different lengths.

use super::sparse::SeenBlocks;
use super::{AnyObject, Arrays, DeviceCall, Typed, unsupported};
use crate::error;
use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use kernels_rs::Queue;
use kernels_rs::attention::mask::DeviceMask;
use kernels_rs::attention::score::{Alibi, ScoreBias, Softcap};
use kernels_rs::attention::{Attention, Gradients, Layout, Qkv};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use runtime::Result;
use std::sync::Arc;

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(attention, m)?)?;
    m.add_function(wrap_pyfunction!(attention_backward, m)?)
}

/// The numbers of each sequence's queries and keys in a padded batch. With the largest numbers of a
/// sequence: the rows where the sequences of a packed batch begin, and the end of the last one.
type SequenceLists<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<[usize; 2]>);

/// The score of a call, with its arrays.
enum ScoreArrays {
    Plain,
    Softcap(f32),
    /// A slope for each head.
    Alibi(Typed<f32, 1>),
    /// An element for each sequence, head, query and key.
    Bias(Typed<f32, 4>),
}

/// Calls `$run` with `$attention` as the call with the score of `$score`.
macro_rules! scored {
    ($on:ident, $score:expr, $attention:ident => $run:expr) => {
        match $score {
            ScoreArrays::Plain => $run,
            ScoreArrays::Softcap(cap) => {
                // SAFETY: the score reads no memory.
                let $attention = unsafe { $attention.score(Softcap { cap: *cap }) };
                $run
            }
            ScoreArrays::Alibi(slopes) => {
                let slopes = slopes.view()?;
                // SAFETY: `ScoreArrays::take` has compared the slopes with the heads. The launches
                // are noted as readers of the slopes, and queued before their borrow ends.
                let $attention = unsafe { $attention.score(Alibi { slopes: slopes.detached() }) };
                $on.reading(&slopes, || $run)
            }
            ScoreArrays::Bias(bias) => {
                let bias = bias.view()?;
                // SAFETY: as for slopes. The bias has an element for each sequence, head, query and
                // key of the views, and sequences are not packed.
                let $attention = unsafe { $attention.score(ScoreBias { bias: bias.detached() }) };
                $on.reading(&bias, || $run)
            }
        }
    };
}

/// Computes attention of [batch, heads, tokens, size]. `lse` receives the logarithm of each query's
/// sum, [batch, heads, tokens], which the gradient requires. Rows of no sequence are not written.
#[pyfunction]
#[pyo3(signature = (
    q, k, v, out, scale = None, causal = false, window = None, stream = None, lse = None, mask = None,
    softcap = None, slopes = None, bias = None, sequences = None
))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn attention(
    py: Python<'_>,
    q: AnyObject<'_, '_>,
    k: AnyObject<'_, '_>,
    v: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    scale: Option<f32>,
    causal: bool,
    window: Option<(usize, usize)>,
    stream: Option<&Bound<'_, PyAny>>,
    lse: Option<&Bound<'_, PyAny>>,
    mask: Option<&Bound<'_, SeenBlocks>>,
    softcap: Option<f32>,
    slopes: Option<&Bound<'_, PyAny>>,
    bias: Option<&Bound<'_, PyAny>>,
    sequences: Option<SequenceLists<'_>>,
) -> PyResult<()> {
    let given = [("query", q), ("key", k), ("value", v), ("out", out)];
    let optional = [lse.map(|lse| ("lse", lse)), slopes.map(|s| ("alibi", s)), bias.map(|bias| ("bias", bias))];
    let of_lists = sequences.iter().flat_map(|(queries, keys, _)| [("queries", queries), ("keys", keys)]);
    let given: Vec<_> = given.into_iter().chain(optional.into_iter().flatten()).chain(of_lists).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let attention = attention_of(scale, causal, window);
    let mask = mask_of(&call, mask)?;
    floats!(arrays.first(), T => {
        let (q, k, v) = (arrays.take::<T, 4>(&call)?, arrays.take::<T, 4>(&call)?, arrays.take::<T, 4>(&call)?);
        let o = arrays.out::<T, 4>(&call)?;
        let lse = lse.map(|_| arrays.out::<f32, 3>(&call)).transpose()?;
        let logits = [q.extents[0], q.extents[1], q.extents[2], k.extents[2]];
        let score = ScoreArrays::take(&mut arrays, &call, (softcap, slopes.is_some(), bias.is_some()), logits)?;
        let longest = sequences.map(|(_, _, longest)| longest);
        let lists = longest.map(|_| lists(&mut arrays, &call)).transpose()?;
        call.run((q, k, v, o, lse, score, lists), move |on, (q, k, v, o, lse, score, lists)| {
            let qkv = Qkv { q: q.view()?, k: k.view()?, v: v.view()? };
            let mut lse = lse.as_mut().map(Typed::view_mut).transpose()?;
            let attention = attention.layout(layout(lists.as_ref(), longest.flatten())?);
            let attention = mask.as_deref().map_or(attention, |mask| attention.mask(mask));
            scored!(on, score, attention => attention.run(on, qkv, &mut o.view_mut()?, lse.as_mut()))
        })
    })
}

/// Computes the gradients of attention from the result, its gradient and the logarithms of the
/// forward call. Rows of no sequence are not written.
#[pyfunction]
#[pyo3(signature = (
    operands, results, gradients, scale = None, causal = false, window = None, stream = None, mask = None,
    softcap = None, slopes = None, bias = None, sequences = None
))]
#[allow(clippy::type_complexity, reason = "the triples name the arrays of one role")]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn attention_backward(
    py: Python<'_>,
    operands: (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>),
    results: (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>),
    gradients: (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>),
    scale: Option<f32>,
    causal: bool,
    window: Option<(usize, usize)>,
    stream: Option<&Bound<'_, PyAny>>,
    mask: Option<&Bound<'_, SeenBlocks>>,
    softcap: Option<f32>,
    slopes: Option<&Bound<'_, PyAny>>,
    bias: Option<&Bound<'_, PyAny>>,
    sequences: Option<SequenceLists<'_>>,
) -> PyResult<()> {
    let ((q, k, v), (o, d_o, lse), (dq, dk, dv)) = (&operands, &results, &gradients);
    let given = [("query", q), ("key", k), ("value", v), ("out", o), ("gradient", d_o), ("lse", lse)];
    let given = given.into_iter().chain([("dquery", dq), ("dkey", dk), ("dvalue", dv)]);
    let optional = [slopes.map(|slopes| ("alibi", slopes)), bias.map(|bias| ("bias", bias))];
    let of_lists = sequences.iter().flat_map(|(queries, keys, _)| [("queries", queries), ("keys", keys)]);
    let given: Vec<_> = given.chain(optional.into_iter().flatten()).chain(of_lists).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let attention = attention_of(scale, causal, window);
    let mask = mask_of(&call, mask)?;
    floats!(arrays.first(), T => {
        let (q, k, v) = (arrays.take::<T, 4>(&call)?, arrays.take::<T, 4>(&call)?, arrays.take::<T, 4>(&call)?);
        let results = (arrays.take::<T, 4>(&call)?, arrays.take::<T, 4>(&call)?, arrays.take::<f32, 3>(&call)?);
        let gradients = (arrays.out::<T, 4>(&call)?, arrays.out::<T, 4>(&call)?, arrays.out::<T, 4>(&call)?);
        let logits = [q.extents[0], q.extents[1], q.extents[2], k.extents[2]];
        let score = ScoreArrays::take(&mut arrays, &call, (softcap, slopes.is_some(), bias.is_some()), logits)?;
        let longest = sequences.map(|(_, _, longest)| longest);
        let lists = longest.map(|_| lists(&mut arrays, &call)).transpose()?;
        let buffers = (q, k, v, results, gradients, score, lists);
        call.run(buffers, move |on, (q, k, v, (o, d_o, lse), (dq, dk, dv), score, lists)| {
            let qkv = Qkv { q: q.view()?, k: k.view()?, v: v.view()? };
            let gradients = Gradients { d_q: dq.view_mut()?, d_k: dk.view_mut()?, d_v: dv.view_mut()? };
            let attention = attention.layout(layout(lists.as_ref(), longest.flatten())?);
            let attention = mask.as_deref().map_or(attention, |mask| attention.mask(mask));
            let results = [&o.view()?, &d_o.view()?];
            scored!(on, score, attention => attention.backward(on, qkv, results, &lse.view()?, gradients))
        })
    })
}

/// Returns attention with a scale, a causal mask or a window of keys before and after.
pub(super) fn attention_of(scale: Option<f32>, causal: bool, window: Option<(usize, usize)>) -> Attention<'static> {
    let attention = scale.map_or(Attention::new(), |scale| Attention::new().scale(scale));
    let attention = window.map_or(attention, |(left, right)| attention.band(left, right));
    if causal { attention.causal() } else { attention }
}

/// Returns a block mask on the device of a call.
fn mask_of(call: &DeviceCall<'_>, mask: Option<&Bound<'_, SeenBlocks>>) -> PyResult<Option<Arc<DeviceMask>>> {
    let mask = mask.map(|mask| mask.get().on(&call.open.opened)).transpose();
    mask.map_err(|e| error::runtime(call.py, e))
}

impl ScoreArrays {
    /// Takes the arrays of a score with a limit of the logits, with slopes or with a bias. Rejects
    /// arrays with other extents than the logits [batch, heads, queries, keys].
    fn take(
        arrays: &mut Arrays,
        call: &DeviceCall<'_>,
        (softcap, has_slopes, has_bias): (Option<f32>, bool, bool),
        logits: [usize; 4],
    ) -> PyResult<ScoreArrays> {
        match (softcap, has_slopes, has_bias) {
            (None, false, false) => Ok(ScoreArrays::Plain),
            (Some(cap), false, false) => Ok(ScoreArrays::Softcap(cap)),
            (None, true, false) => {
                let slopes = arrays.take::<f32, 1>(call)?;
                let ([found], wanted) = (slopes.extents, logits[1]);
                if found != wanted {
                    let why = format!("`alibi` has {found} slopes, and the query {wanted} heads");
                    return Err(PyValueError::new_err(why));
                }
                Ok(ScoreArrays::Alibi(slopes))
            }
            (None, false, true) => {
                let mut bias = arrays.take::<f32, 4>(call)?;
                let found = bias.extents;
                for (d, wanted) in logits.into_iter().enumerate() {
                    if d < 3 && found[d] == 1 {
                        (bias.extents[d], bias.strides[d]) = (wanted, 0);
                    } else if found[d] != wanted {
                        let why = format!("`bias` has the extents {found:?}, and the logits {logits:?}");
                        return Err(PyValueError::new_err(why));
                    }
                }
                Ok(ScoreArrays::Bias(bias))
            }
            _ => Err(PyValueError::new_err("a call has one of `softcap`, `alibi` and `bias`")),
        }
    }
}

/// Takes the lists of queries and of keys.
fn lists(arrays: &mut Arrays, call: &DeviceCall<'_>) -> PyResult<[Typed<u32, 1>; 2]> {
    Ok([arrays.take_as::<u32, 1>(call)?, arrays.take_as::<u32, 1>(call)?])
}

/// Returns the layout of sequences with these lists: packed if the largest numbers of queries and
/// of keys are given.
fn layout(lists: Option<&[Typed<u32, 1>; 2]>, longest: Option<[usize; 2]>) -> Result<Layout<'_>> {
    let Some([queries, keys]) = lists else { return Ok(Layout::Dense) };
    let (queries, keys) = (queries.view()?, keys.view()?);
    Ok(match longest {
        Some(longest) => Layout::Packed { queries, keys, longest },
        None => Layout::Padded { queries, keys },
    })
}
