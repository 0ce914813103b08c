//! Decoding with a cache of keys and values: the call that appends to the cache, and attention.

use super::{AnyObject, Arrays, DeviceCall, Typed, unsupported};
use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::attention::cache::StoredElement;
use kernels_rs::attention::{Append, Decode, KvCache, KvCacheMut, Scratch};
use kernels_rs::rotary::PairLayout;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(cache_append, m)?)?;
    m.add_function(wrap_pyfunction!(decode, m)?)
}

/// Writes the keys and values of a new token of each sequence to row `lengths` of the caches, and
/// rotates keys and queries to their positions. With `pages`, the caches consist of pages.
#[pyfunction]
#[pyo3(signature = (q, key, value, caches, lengths, out, frequencies, interleaved = false, pages = None, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn cache_append(
    py: Python<'_>,
    q: AnyObject<'_, '_>,
    key: AnyObject<'_, '_>,
    value: AnyObject<'_, '_>,
    caches: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    lengths: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    frequencies: Vec<f32>,
    interleaved: bool,
    pages: Option<&Bound<'_, PyAny>>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let given = [("query", q), ("key", key), ("value", value), ("out", out)];
    let of_cache = [("key_cache", &caches.0), ("value_cache", &caches.1), ("lengths", lengths)];
    let given: Vec<_> = given.into_iter().chain(of_cache).chain(pages.map(|p| ("pages", p))).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let layout = if interleaved { PairLayout::Interleaved } else { PairLayout::Halves };
    floats!(arrays.first(), T => {
        let (q, key) = (arrays.take::<T, 3>(&call)?, arrays.take::<T, 3>(&call)?);
        let (value, rotated) = (arrays.take::<T, 3>(&call)?, arrays.out::<T, 3>(&call)?);
        let (keys, values) = (arrays.out::<T, 4>(&call)?, arrays.out::<T, 4>(&call)?);
        let lengths = arrays.take_as::<u32, 1>(&call)?;
        let pages = pages.map(|_| arrays.take_as::<u32, 2>(&call)).transpose()?;
        let buffers = (q, key, value, rotated, keys, values, lengths, pages);
        call.run(buffers, move |on, (q, key, value, rotated, keys, values, lengths, pages)| {
            let frequencies = on.device().upload(&frequencies)?;
            let append = Append::new(layout, &frequencies.view([frequencies.len()])?);
            let cache = KvCacheMut::new(keys.view_mut()?, values.view_mut()?);
            let cache = match pages {
                Some(pages) => cache.paged(pages.view()?),
                None => cache,
            };
            let new = [&key.view()?, &value.view()?];
            append.run(on, &q.view()?, &mut rotated.view_mut()?, new, cache, &lengths.view()?)
        })
    })
}

/// Computes attention of the last `tokens` tokens of each sequence over the first `lengths` keys of
/// the caches. With `pages`, the caches consist of pages.
#[pyfunction]
#[pyo3(signature = (q, caches, lengths, out, tokens = 1, scale = None, pages = None, stream = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn decode(
    py: Python<'_>,
    q: AnyObject<'_, '_>,
    caches: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    lengths: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    tokens: usize,
    scale: Option<f32>,
    pages: Option<&Bound<'_, PyAny>>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    if tokens == 0 {
        return Err(PyValueError::new_err("`tokens` is 0, and a step has at least one token"));
    }
    let given =
        [("query", q), ("out", out), ("key_cache", &caches.0), ("value_cache", &caches.1), ("lengths", lengths)];
    let given: Vec<_> = given.into_iter().chain(pages.map(|p| ("pages", p))).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let step = scale.map_or(Decode::new(), |scale| Decode::new().scale(scale)).tokens(tokens);
    floats!(arrays.first(), T => {
        let (q, o) = (arrays.take::<T, 3>(&call)?, arrays.out::<T, 3>(&call)?);
        let stored = arrays.first().scalar;
        match stored {
            Scalar::F32 => decoded::<T, f32>(call, arrays, (q, o), step, tokens),
            Scalar::F16 => decoded::<T, f16>(call, arrays, (q, o), step, tokens),
            Scalar::Bf16 => decoded::<T, bf16>(call, arrays, (q, o), step, tokens),
            other => Err(unsupported(other, "caches of float32, float16 and bfloat16")),
        }
    })
}

fn decoded<T: Float + GenericArgument, K: Float + StoredElement + GenericArgument>(
    call: DeviceCall<'_>,
    mut arrays: Arrays,
    (q, o): (Typed<T, 3>, Typed<T, 3>),
    step: Decode,
    tokens: usize,
) -> PyResult<()> {
    let (keys, values) = (arrays.take::<K, 4>(&call)?, arrays.take::<K, 4>(&call)?);
    let lengths = arrays.take_as::<u32, 1>(&call)?;
    let pages = (!arrays.is_empty()).then(|| arrays.take_as::<u32, 2>(&call)).transpose()?;
    call.run((q, o, keys, values, lengths, pages), move |on, (q, o, keys, values, lengths, pages)| {
        let cache = KvCache::new(keys.view()?, values.view()?);
        let [_, groups, rows, _] = keys.extents;
        let (cache, room) = match pages {
            Some(pages) => (cache.paged(pages.view()?), rows.saturating_mul(pages.extents[1])),
            None => (cache, rows),
        };
        let mut scratch = Scratch::for_tokens(on, q.extents, tokens, groups, room)?;
        step.run(on, &q.view()?, cache, &lengths.view()?, &mut o.view_mut()?, &mut scratch)
    })
}
