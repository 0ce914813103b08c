"""Decoding steps with a cache of keys and values."""

import torch

from .. import _library, _native
from ._operator import FLOATS, Operator, ROWS, new_tensor, stream_of


def _with_scales(key_scales, value_scales):
    return None if key_scales is None else (key_scales, value_scales)


def _append(
    query, key, value, key_cache, value_cache, lengths, frequencies, interleaved, pages, key_scales, value_scales
):
    rotated, caches = new_tensor(query), (key_cache, value_cache)
    options = list(frequencies), interleaved, pages, stream_of(query), _with_scales(key_scales, value_scales)
    _native.cache_append(query, key, value, caches, lengths, rotated, *options)
    return rotated


def _append_torch(
    query, key, value, key_cache, value_cache, lengths, frequencies, interleaved, pages, key_scales, value_scales
):
    lengths = lengths.long()
    if frequencies:
        turned = ROWS["rotary"].torch
        query, key = (turned(x, lengths, frequencies, None, interleaved) for x in (query, key))
    rows = key_cache.shape[2]
    room = rows if pages is None else rows * pages.shape[1]
    # A sequence whose cache is full is left as it is.
    sequence = ((lengths >= 0) & (lengths < room)).nonzero()[:, 0]
    at = lengths[sequence]
    block = sequence if pages is None else pages.long()[sequence, at // rows]
    for cache, new in ((key_cache, key), (value_cache, value)):
        cache[block, :, at % rows] = new[sequence].to(cache.dtype)
    return query.clone()


def _decode(query, key_cache, value_cache, lengths, tokens, scale, pages, key_scales, value_scales):
    o, caches = new_tensor(query), (key_cache, value_cache)
    scales = _with_scales(key_scales, value_scales)
    _native.decode(query, caches, lengths, o, tokens, scale, pages, stream_of(query), scales)
    return o


def _decode_torch(query, key_cache, value_cache, lengths, tokens, scale, pages, key_scales, value_scales):
    keys, values = _in_one_piece(key_cache, pages), _in_one_piece(value_cache, pages)
    heads, size = query.shape[1:]
    q = query.view(-1, tokens, heads, size).transpose(1, 2)
    keys, values = (x.repeat_interleave(heads // x.shape[1], 1).to(q.dtype) for x in (keys, values))
    logits = q @ keys.mT * (size**-0.5 if scale is None else scale)
    # The last token sees all keys of its sequence.
    end = lengths.long()[:, None, None, None] - tokens + 1 + torch.arange(tokens, device=q.device)[:, None]
    seen = (torch.arange(keys.shape[2], device=q.device) < end).expand(logits.shape)
    # A token that sees no key gives zeros.
    empty = ~seen.any(-1, keepdim=True)
    weights = logits.masked_fill(~seen & ~empty, float("-inf")).softmax(-1).masked_fill(empty, 0)
    return (weights @ values).transpose(1, 2).reshape(query.shape)


def _cached(query, key_cache, value_cache, queries, lengths, causal, scale, window, pages, key_scales, value_scales):
    o, caches = new_tensor(query), (key_cache, value_cache)
    # The kernel writes the rows of the sequences only.
    o.zero_()
    window = None if window is None else tuple(window)
    options = causal, scale, window, pages, stream_of(query), _with_scales(key_scales, value_scales)
    _native.attention_cached(query, caches, queries, lengths, o, *options)
    return o


def _cached_torch(
    query, key_cache, value_cache, queries, lengths, causal, scale, window, pages, key_scales, value_scales
):
    keys, values = (_in_one_piece(cache, pages).to(query.dtype) for cache in (key_cache, value_cache))
    lists = queries.to(torch.int32), lengths.to(torch.int32)
    scored = ROWS["scored_attention"].torch
    return scored(query, keys, values, None, None, *lists, None, None, None, causal, scale, window)


def _in_one_piece(cache, pages):
    # (sequences, pages, heads, rows, size) to (sequences, heads, pages * rows, size)
    return cache if pages is None else cache[pages.long()].transpose(1, 2).flatten(2, 3)


def _refuse(operands, caches, key_scales):
    """Returns why the kernels do not take floats of these types, or None. Caches of integers have no equivalent."""
    if key_scales is not None or not all(x.is_floating_point() for x in caches):
        return None
    for x in (*operands, *caches):
        if x.dtype not in FLOATS:
            return f"elements of {str(x.dtype)[6:]}"
    if torch.is_grad_enabled() and any(x.requires_grad for x in (*operands, *caches)):
        return "an operand with a gradient"
    return None


TABLE = [
    Operator(
        "cache_append",
        "(Tensor query, Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, Tensor lengths,"
        " float[] frequencies, bool interleaved, Tensor? pages, Tensor(c!)? key_scales, Tensor(d!)? value_scales)"
        " -> Tensor",
        kernel=_append,
        fake=lambda query, *_: new_tensor(query),
        torch=_append_torch,
        refuse=lambda query, key, value, key_cache, value_cache, lengths, frequencies, interleaved, pages, scales, _: (
            _refuse((query, key, value), (key_cache, value_cache), scales)
        ),
        constants=True,
        any_type=True,
        mutates=True,
    ),
    Operator(
        "attention_cached",
        "(Tensor query, Tensor key_cache, Tensor value_cache, Tensor queries, Tensor lengths, bool causal, float? scale,"
        " int[]? window, Tensor? pages, Tensor? key_scales, Tensor? value_scales) -> Tensor",
        kernel=_cached,
        fake=lambda query, *_: new_tensor(query),
        torch=_cached_torch,
        refuse=lambda query, key_cache, value_cache, queries, lengths, causal, scale, window, pages, scales, _: (
            _refuse((query,), (key_cache, value_cache), scales)
        ),
        any_type=True,
    ),
    Operator(
        "decode",
        "(Tensor query, Tensor key_cache, Tensor value_cache, Tensor lengths, int tokens, float? scale, Tensor? pages,"
        " Tensor? key_scales, Tensor? value_scales) -> Tensor",
        kernel=_decode,
        fake=lambda query, *_: new_tensor(query),
        torch=_decode_torch,
        refuse=lambda query, key_cache, value_cache, lengths, tokens, scale, pages, scales, _: (
            _refuse((query,), (key_cache, value_cache), scales)
        ),
        scratch=True,
        any_type=True,
    ),
]


def _indices(lengths, pages):
    """Returns lengths and pages of the type that kernels take."""
    return _library._unsigned(lengths), None if pages is None else _library._unsigned(pages)


def cache_append(
    query,
    key,
    value,
    key_cache,
    value_cache,
    lengths,
    *,
    base=10000.0,
    size=None,
    frequencies=None,
    interleaved=False,
    pages=None,
    scales=None,
    strict=False,
    interpret=True,
):
    if frequencies is None:
        frequencies = _library._default_frequencies(base, query.shape[-1] if size is None else size)
    lengths, pages = _indices(lengths, pages)
    options = list(map(float, frequencies)), interleaved, pages, *(scales or (None, None))
    return ROWS["cache_append"]((query, key, value, key_cache, value_cache, lengths, *options), strict, interpret)


def attention_cached(
    query,
    key_cache,
    value_cache,
    lengths,
    *,
    queries=None,
    causal=True,
    scale=None,
    window=None,
    pages=None,
    scales=None,
    strict=False,
    interpret=True,
):
    if queries is None:
        queries = torch.full_like(lengths, query.shape[2])
    queries, (lengths, pages) = _library._unsigned(queries), _indices(lengths, pages)
    options = causal, scale, None if window is None else list(window), pages, *(scales or (None, None))
    arguments = query, key_cache, value_cache, queries, lengths, *options
    return ROWS["attention_cached"](arguments, strict, interpret)


def decode(
    query, key_cache, value_cache, lengths, *, tokens=1, scale=None, pages=None, scales=None, strict=False, interpret=True
):
    lengths, pages = _indices(lengths, pages)
    options = tokens, scale, pages, *(scales or (None, None))
    return ROWS["decode"]((query, key_cache, value_cache, lengths, *options), strict, interpret)
