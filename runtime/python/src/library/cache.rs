//! Attention with a cache of keys and values, of prompts and of decoding steps, and the call that
//! appends to the cache.

use super::{AnyObject, Arrays, DeviceCall, Typed, unsupported};
use crate::error;
use crate::scalar::is_float;
use half::{bf16, f16};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::{Element, Float, GenericArgument};
use kernels_rs::attention::cache::StoredElement;
use kernels_rs::attention::{Append, Attention, Decode, KvCache, KvCacheMut, Layout, Scratch};
use kernels_rs::rotary::PairLayout;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use runtime::{DeviceBuffer, Result};
use std::sync::Arc;

/// Adds the functions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(cache_append, m)?)?;
    m.add_function(wrap_pyfunction!(attention_cached, m)?)?;
    m.add_function(wrap_pyfunction!(decode, m)?)
}

/// The keys and the values of a cache, or their scales.
type CacheArrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The scales of the keys and of the values of a cache.
enum StoredScales {
    /// No scales: the cache stores floats.
    None,
    /// A scale for each row of each head.
    Rows([Typed<f32, 3>; 2]),
    /// A scale for each 32 numbers.
    Blocks([Typed<f16, 4>; 2]),
}

/// Calls `$body` with `$K` as the type of the elements of a cache.
macro_rules! stored {
    ($array:expr, $scaled:expr, $K:ident => $body:expr) => {{
        let stored = $array.scalar;
        if is_float(stored) == $scaled {
            return Err(scales_of(stored));
        }
        match stored {
            Scalar::F32 => {
                type $K = f32;
                $body
            }
            Scalar::F16 => {
                type $K = f16;
                $body
            }
            Scalar::Bf16 => {
                type $K = bf16;
                $body
            }
            Scalar::I8 => {
                type $K = i8;
                $body
            }
            // Eight numbers of four bits.
            Scalar::U32 | Scalar::I32 => {
                type $K = u32;
                $body
            }
            other => Err(unsupported(other, "caches of float32, float16, bfloat16, int8 and uint32")),
        }
    }};
}

/// Writes the keys and values of a new token of each sequence to row `lengths` of the caches, and
/// rotates keys and queries to their positions. With `pages`, the caches consist of pages. Caches
/// of integers have `scales`, which the call writes, too.
#[pyfunction]
#[pyo3(signature = (
    q, key, value, caches, lengths, out, frequencies, interleaved = false, pages = None, stream = None, scales = None
))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn cache_append(
    py: Python<'_>,
    q: AnyObject<'_, '_>,
    key: AnyObject<'_, '_>,
    value: AnyObject<'_, '_>,
    caches: CacheArrays<'_>,
    lengths: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    frequencies: Vec<f32>,
    interleaved: bool,
    pages: Option<&Bound<'_, PyAny>>,
    stream: Option<&Bound<'_, PyAny>>,
    scales: Option<CacheArrays<'_>>,
) -> PyResult<()> {
    let given = [("query", q), ("key", key), ("value", value), ("out", out)];
    let of_cache = [("key_cache", &caches.0), ("value_cache", &caches.1)];
    let of_scales = scales.iter().flat_map(|(keys, values)| [("scales[0]", keys), ("scales[1]", values)]);
    let rest = [Some(("lengths", lengths)), pages.map(|p| ("pages", p))];
    let given: Vec<_> = given.into_iter().chain(of_cache).chain(of_scales).chain(rest.into_iter().flatten()).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let layout = if interleaved { PairLayout::Interleaved } else { PairLayout::Halves };
    let frequencies = call.open.opened.frequencies(&frequencies).map_err(|e| error::runtime(py, e))?;
    floats!(arrays.first(), T => {
        let (q, key) = (arrays.take::<T, 3>(&call)?, arrays.take::<T, 3>(&call)?);
        let (value, rotated) = (arrays.take::<T, 3>(&call)?, arrays.out::<T, 3>(&call)?);
        stored!(arrays.first(), scales.is_some(), K => {
            appended::<T, K>(call, arrays, [q, key, value, rotated], (layout, frequencies), scales.is_some())
        })
    })
}

fn appended<T: Float + GenericArgument, K: StoredElement + GenericArgument>(
    call: DeviceCall<'_>,
    mut arrays: Arrays,
    [q, key, value, rotated]: [Typed<T, 3>; 4],
    (layout, frequencies): (PairLayout, Arc<DeviceBuffer<f32>>),
    scaled: bool,
) -> PyResult<()> {
    let (keys, values) = (arrays.out::<K, 4>(&call)?, arrays.out::<K, 4>(&call)?);
    let scales = StoredScales::take(&mut arrays, &call, scaled, true)?;
    let lengths = arrays.take_as::<u32, 1>(&call)?;
    let pages = (!arrays.is_empty()).then(|| arrays.take_as::<u32, 2>(&call)).transpose()?;
    let buffers = (q, key, value, rotated, keys, values, scales, lengths, pages);
    call.run(buffers, move |on, (q, key, value, rotated, keys, values, scales, lengths, pages)| {
        let append = Append::new(layout, &frequencies.view([frequencies.len()])?);
        let cache = KvCacheMut::new(keys.view_mut()?, values.view_mut()?);
        let cache = match scales {
            StoredScales::None => cache,
            StoredScales::Rows([keys, values]) => cache.scaled([keys.view_mut()?, values.view_mut()?]),
            StoredScales::Blocks([keys, values]) => cache.blocks([keys.view_mut()?, values.view_mut()?]),
        };
        let cache = match pages {
            Some(pages) => cache.paged(pages.view()?),
            None => cache,
        };
        let new = [&key.view()?, &value.view()?];
        append.run(on, &q.view()?, &mut rotated.view_mut()?, new, cache, &lengths.view()?)
    })
}

/// Computes attention of the last `tokens` tokens of each sequence over the first `lengths` keys of
/// the caches. With `pages`, the caches consist of pages. Caches of integers have `scales`.
#[pyfunction]
#[pyo3(signature = (q, caches, lengths, out, tokens = 1, scale = None, pages = None, stream = None, scales = None))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn decode(
    py: Python<'_>,
    q: AnyObject<'_, '_>,
    caches: CacheArrays<'_>,
    lengths: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    tokens: usize,
    scale: Option<f32>,
    pages: Option<&Bound<'_, PyAny>>,
    stream: Option<&Bound<'_, PyAny>>,
    scales: Option<CacheArrays<'_>>,
) -> PyResult<()> {
    if tokens == 0 {
        return Err(PyValueError::new_err("`tokens` is 0, and a step has at least one token"));
    }
    let given = [("query", q), ("out", out), ("key_cache", &caches.0), ("value_cache", &caches.1)];
    let of_scales = scales.iter().flat_map(|(keys, values)| [("scales[0]", keys), ("scales[1]", values)]);
    let rest = [Some(("lengths", lengths)), pages.map(|p| ("pages", p))];
    let given: Vec<_> = given.into_iter().chain(of_scales).chain(rest.into_iter().flatten()).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let step = scale.map_or(Decode::new(), |scale| Decode::new().scale(scale)).tokens(tokens);
    floats!(arrays.first(), T => {
        let (q, o) = (arrays.take::<T, 3>(&call)?, arrays.out::<T, 3>(&call)?);
        stored!(arrays.first(), scales.is_some(), K => {
            decoded::<T, K>(call, arrays, (q, o), (step, tokens), scales.is_some())
        })
    })
}

fn decoded<T: Float + GenericArgument, K: StoredElement + GenericArgument>(
    call: DeviceCall<'_>,
    mut arrays: Arrays,
    (q, o): (Typed<T, 3>, Typed<T, 3>),
    (step, tokens): (Decode, usize),
    scaled: bool,
) -> PyResult<()> {
    let (keys, values) = (stored_of::<K>(&mut arrays, &call)?, stored_of::<K>(&mut arrays, &call)?);
    let scales = StoredScales::take(&mut arrays, &call, scaled, false)?;
    let lengths = arrays.take_as::<u32, 1>(&call)?;
    let pages = (!arrays.is_empty()).then(|| arrays.take_as::<u32, 2>(&call)).transpose()?;
    let buffers = (q, o, keys, values, scales, lengths, pages);
    call.run(buffers, move |on, (q, o, keys, values, scales, lengths, pages)| {
        let [_, groups, rows, _] = keys.extents;
        let room = pages.as_ref().map_or(rows, |pages| rows.saturating_mul(pages.extents[1]));
        let cache = cache_of([keys, values], scales, pages.as_ref())?;
        let mut scratch = Scratch::for_tokens(on, q.extents, tokens, groups, room)?;
        step.run(on, &q.view()?, cache, &lengths.view()?, &mut o.view_mut()?, &mut scratch)
    })
}

/// Computes attention of [sequence, head, token, size] over the first `lengths` keys of the caches,
/// of which the last belongs to the last of the sequence's `queries`. With `pages`, the caches
/// consist of pages. Caches of integers have `scales`. Rows beyond the queries are not written.
#[pyfunction]
#[pyo3(signature = (
    q, caches, queries, lengths, out, causal = true, scale = None, window = None, pages = None, stream = None,
    scales = None
))]
#[allow(clippy::too_many_arguments, reason = "the operands and options of the call")]
fn attention_cached(
    py: Python<'_>,
    q: AnyObject<'_, '_>,
    caches: CacheArrays<'_>,
    queries: AnyObject<'_, '_>,
    lengths: AnyObject<'_, '_>,
    out: AnyObject<'_, '_>,
    causal: bool,
    scale: Option<f32>,
    window: Option<(usize, usize)>,
    pages: Option<&Bound<'_, PyAny>>,
    stream: Option<&Bound<'_, PyAny>>,
    scales: Option<CacheArrays<'_>>,
) -> PyResult<()> {
    let given = [("query", q), ("out", out), ("key_cache", &caches.0), ("value_cache", &caches.1)];
    let of_scales = scales.iter().flat_map(|(keys, values)| [("scales[0]", keys), ("scales[1]", values)]);
    let rest = [Some(("queries", queries)), Some(("lengths", lengths)), pages.map(|p| ("pages", p))];
    let given: Vec<_> = given.into_iter().chain(of_scales).chain(rest.into_iter().flatten()).collect();
    let mut arrays = Arrays::of(&given)?;
    let call = arrays.open(py, stream)?;
    let attention = super::attention::attention_of(scale, causal, window);
    floats!(arrays.first(), T => {
        let (q, o) = (arrays.take::<T, 4>(&call)?, arrays.out::<T, 4>(&call)?);
        stored!(arrays.first(), scales.is_some(), K => {
            attended::<T, K>(call, arrays, (q, o), attention, scales.is_some())
        })
    })
}

fn attended<T: Float + GenericArgument, K: StoredElement + GenericArgument>(
    call: DeviceCall<'_>,
    mut arrays: Arrays,
    (q, o): (Typed<T, 4>, Typed<T, 4>),
    attention: Attention<'static>,
    scaled: bool,
) -> PyResult<()> {
    let (keys, values) = (stored_of::<K>(&mut arrays, &call)?, stored_of::<K>(&mut arrays, &call)?);
    let scales = StoredScales::take(&mut arrays, &call, scaled, false)?;
    let (queries, lengths) = (arrays.take_as::<u32, 1>(&call)?, arrays.take_as::<u32, 1>(&call)?);
    let pages = (!arrays.is_empty()).then(|| arrays.take_as::<u32, 2>(&call)).transpose()?;
    let buffers = (q, o, keys, values, scales, queries, lengths, pages);
    call.run(buffers, move |on, (q, o, keys, values, scales, queries, lengths, pages)| {
        let cache = cache_of([keys, values], scales, pages.as_ref())?;
        let attention = attention.layout(Layout::Padded { queries: queries.view()?, keys: lengths.view()? });
        attention.run_cached(on, &q.view()?, cache, &mut o.view_mut()?, None)
    })
}

/// Returns a cache that a call reads.
fn cache_of<'a, K: StoredElement + GenericArgument>(
    [keys, values]: [&'a Typed<K, 4>; 2],
    scales: &'a StoredScales,
    pages: Option<&'a Typed<u32, 2>>,
) -> Result<KvCache<'a, K>> {
    let cache = KvCache::new(keys.view()?, values.view()?);
    let cache = match scales {
        StoredScales::None => cache,
        StoredScales::Rows([keys, values]) => cache.scaled([keys.view()?, values.view()?]),
        StoredScales::Blocks([keys, values]) => cache.blocks([keys.view()?, values.view()?]),
    };
    Ok(match pages {
        Some(pages) => cache.paged(pages.view()?),
        None => cache,
    })
}

/// Takes the next array as elements of a cache that the call reads.
fn stored_of<K: Element>(arrays: &mut Arrays, call: &DeviceCall<'_>) -> PyResult<Typed<K, 4>> {
    // Words of four-bit numbers may be signed or unsigned.
    if K::TYPE.scalar().is_some_and(is_float) { arrays.take(call) } else { arrays.take_as(call) }
}

fn scales_of(stored: Scalar) -> PyErr {
    PyValueError::new_err(if is_float(stored) {
        "a cache of floats has no `scales`"
    } else {
        "a cache of integers has `scales`, one array for the keys and one for the values"
    })
}

impl StoredScales {
    /// Takes the scales of the keys and of the values, which the call reads or `writes`.
    fn take(arrays: &mut Arrays, call: &DeviceCall<'_>, scaled: bool, writes: bool) -> PyResult<StoredScales> {
        if !scaled {
            return Ok(StoredScales::None);
        }
        match arrays.first().scalar {
            Scalar::F32 if writes => Ok(StoredScales::Rows([arrays.out(call)?, arrays.out(call)?])),
            Scalar::F32 => Ok(StoredScales::Rows([arrays.take(call)?, arrays.take(call)?])),
            Scalar::F16 if writes => Ok(StoredScales::Blocks([arrays.out(call)?, arrays.out(call)?])),
            Scalar::F16 => Ok(StoredScales::Blocks([arrays.take(call)?, arrays.take(call)?])),
            other => Err(unsupported(other, "scales of float32 for rows, and of float16 for blocks of 32 numbers")),
        }
    }
}
