"""Attention of queries, keys and values."""

import torch
import torch.nn.functional as F

from .. import _library, _native
from .._checks import _sequences_of
from ._operator import Operator, ROWS, new_tensor, note_torch, stream_of


def _attention(query, key, value, causal, scale, window):
    o, lse = _attention_fake(query, key, value, causal, scale, window)
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    _native.attention(q, k, v, o, scale, causal, _pair_of(window), stream_of(q), lse)
    return o, lse


def _pair_of(window):
    return None if window is None else tuple(window)


def _attention_fake(query, key, value, causal, scale, window):
    return new_tensor(query, *query.shape[:-1], value.shape[-1]), new_tensor(query, *query.shape[:-1], dtype=torch.float32)


def _attention_torch(query, key, value, causal, scale, window):
    queries, keys = query.shape[-2], key.shape[-2]
    mask = None
    if window is not None or causal and queries != keys:
        # The last query is aligned with the last key.
        behind = torch.arange(queries, device=query.device)[:, None] + keys - queries
        behind = behind - torch.arange(keys, device=query.device)
        left, right = window if window is not None else (keys + queries, keys + queries)
        mask = (behind <= left) & (behind >= (0 if causal else -right))
        causal = False
    groups = query.shape[-3] // key.shape[-3]
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    return F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal, scale=scale)


def _attention_refuse(query, key, value, causal, scale, window):
    if any(x.dim() != 4 for x in (query, key, value)):
        return "queries, keys or values of another rank than (batch, heads, tokens, size)"
    if query.shape[0] != key.shape[0] or key.shape[:3] != value.shape[:3] or query.shape[3] != key.shape[3]:
        return "queries, keys and values whose extents differ"
    if query.shape[1] % key.shape[1]:
        return "heads of queries that are no multiple of those of keys"
    return None


# Attention with a block mask, which has a number


def _mask_of(number):
    mask = _library._MASKS.get(number)
    if mask is None:
        raise RuntimeError(f"the BlockMask with the number {number} of a traced call exists no longer: keep it")
    return mask


def _block_attention(query, key, value, mask, causal, scale):
    o, lse = _attention_fake(query, key, value, causal, scale, None)
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    _native.attention(q, k, v, o, scale, causal, None, stream_of(q), lse, _mask_of(mask)._native)
    return o, lse


def _block_attention_torch(query, key, value, mask, causal, scale):
    mask, groups = _mask_of(mask), query.shape[-3] // key.shape[-3]
    seen = torch.tensor(mask.seen, device=query.device)
    seen = seen.repeat_interleave(mask.block, 1).repeat_interleave(mask.block, 2)[:, : mask.queries, : mask.keys]
    if causal:
        seen = seen.tril(mask.keys - mask.queries)
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    logits = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    # A query that sees no key gives zeros, and a softmax without elements NaNs.
    weights = logits.masked_fill(~seen & seen.any(-1, keepdim=True), float("-inf")).softmax(-1)
    return weights.masked_fill(~seen, 0.0) @ value


def _block_attention_refuse(query, key, value, mask, causal, scale):
    return _attention_refuse(query, key, value, causal, scale, None)


def _block_attention_save(ctx, inputs, output):
    query, key, value, ctx.mask, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(query, key, value, *output)
    ctx.mark_non_differentiable(output[1])


def _block_attention_gradient(ctx, do, _):
    row = ROWS["block_attention_backward"]
    return *row.results(*ctx.saved_tensors, do, ctx.mask, ctx.causal, ctx.scale), None, None, None


def _block_attention_backward(query, key, value, o, lse, do, mask, causal, scale):
    gradients = tuple(new_tensor(x) for x in (query, key, value))
    operands = tuple(x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    results, native = (o, do if do.stride(-1) == 1 else do.contiguous(), lse), _mask_of(mask)._native
    _native.attention_backward(operands, results, gradients, scale, causal, None, stream_of(query), native)
    return gradients


def _attention_save(ctx, inputs, output):
    query, key, value, ctx.causal, ctx.scale, ctx.window = inputs
    ctx.save_for_backward(query, key, value, *output)
    ctx.mark_non_differentiable(output[1])


def _attention_gradient(ctx, do, _):
    gradients = ROWS["attention_backward"].results(*ctx.saved_tensors, do, ctx.causal, ctx.scale, ctx.window)
    return *gradients, None, None, None


def _attention_backward(query, key, value, o, lse, do, causal, scale, window):
    gradients = tuple(new_tensor(x) for x in (query, key, value))
    operands = tuple(x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    results = o, do if do.stride(-1) == 1 else do.contiguous(), lse
    _native.attention_backward(operands, results, gradients, scale, causal, _pair_of(window), stream_of(query))
    return gradients


# Attention with a score, or of sequences of different lengths


def _scored(query, key, value, slopes, bias, queries, keys, longest, softcap, mask, causal, scale, window):
    o, lse = _attention_fake(query, key, value, causal, scale, window)
    if queries is not None:
        # The kernel writes the rows of the sequences only.
        o.zero_()
        lse.fill_(float("-inf"))
    q, k, v = _with_rows(query, key, value)
    score = _score_of(slopes, bias, queries, keys, longest, softcap)
    options = scale, causal, _pair_of(window), stream_of(q), lse, None if mask is None else _mask_of(mask)._native
    _native.attention(q, k, v, o, *options, *score)
    return o, lse


def _with_rows(*operands):
    """Returns tensors whose last stride is 1, which the kernels need."""
    return tuple(x if x.stride(-1) == 1 else x.contiguous() for x in operands)


def _score_of(slopes, bias, queries, keys, longest, softcap):
    """Returns the score and the lists of sequences as the native functions take them."""
    slopes, bias = (None if x is None else _with_rows(x)[0] for x in (slopes, bias))
    lists = None
    if queries is not None:
        lists = queries.contiguous(), keys.contiguous(), None if longest is None else list(longest)
    return softcap, slopes, bias, lists


def _scored_refuse(query, key, value, slopes, bias, queries, keys, longest, softcap, mask, causal, scale, window):
    reason = _attention_refuse(query, key, value, causal, scale, window)
    if reason is not None:
        return reason
    if not query.dtype == key.dtype == value.dtype:
        return "operands of different element types"
    if any(x is not None and x.requires_grad for x in (slopes, bias)):
        return "slopes or a bias with a gradient"
    return None


def _scored_torch(query, key, value, slopes, bias, queries, keys, longest, softcap, mask, causal, scale, window):
    if longest is not None:
        return _packed_torch(query, key, value, slopes, queries, keys, softcap, causal, scale, window)
    (heads, rows), cols = query.shape[1:3], key.shape[-2]
    if heads != key.shape[1]:
        key, value = (x.repeat_interleave(heads // key.shape[1], 1) for x in (key, value))
    logits = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    row, col = torch.arange(rows, device=query.device)[:, None], torch.arange(cols, device=query.device)
    # A sequence's last query is at the position of its last key.
    of_rows, of_cols = rows, cols
    if queries is not None:
        of_rows, of_cols = (x.long()[:, None, None, None] for x in (queries, keys))
    behind = row + of_cols - of_rows - col
    seen = (row < of_rows) & (col < of_cols)
    if causal:
        seen = seen & (behind >= 0)
    if window is not None:
        seen = seen & (behind <= window[0]) & (behind >= -window[1])
    if slopes is not None:
        logits = logits - slopes[:, None, None] * behind
    if bias is not None:
        seen = seen & (bias != float("-inf"))
        logits = logits + torch.where(seen, bias, 0)
    if mask is not None:
        mask = _mask_of(mask)
        blocks = torch.tensor(mask.seen, device=query.device)
        seen = seen & blocks.repeat_interleave(mask.block, 1).repeat_interleave(mask.block, 2)[:, :rows, :cols]
    seen = seen.expand(logits.shape)
    # A query that sees no key gives zeros.
    empty = ~seen.any(-1, keepdim=True)
    weights = logits.masked_fill(~seen & ~empty, float("-inf")).softmax(-1).masked_fill(empty, 0)
    return weights.to(value.dtype) @ value


def _packed_torch(query, key, value, slopes, queries, keys, softcap, causal, scale, window):
    rows = queries.clamp(0, query.shape[2]).tolist()
    cols = keys.clamp(0, key.shape[2]).tolist()
    o = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for q, q_end, k, k_end in zip(rows, rows[1:], cols, cols[1:]):
        one = query[:, :, q:q_end], key[:, :, k:k_end], value[:, :, k:k_end], slopes, None, None, None
        o[:, :, q:q_end] = _scored_torch(*one, None, softcap, None, causal, scale, window)
    return o


def _scored_save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3], *output, *inputs[3:7])
    ctx.options = inputs[7:]
    ctx.mark_non_differentiable(output[1])


def _scored_gradient(ctx, do, _):
    *tensors, slopes, bias, queries, keys = ctx.saved_tensors
    row = ROWS["scored_attention_backward"]
    gradients = row.results(*tensors, do, slopes, bias, queries, keys, *ctx.options)
    return (*gradients, *[None] * 10)


def _scored_backward(
    query, key, value, o, lse, do, slopes, bias, queries, keys, longest, softcap, mask, causal, scale, window
):
    gradients = tuple(new_tensor(x) for x in (query, key, value))
    if queries is not None:
        for x in gradients:
            x.zero_()
    score = _score_of(slopes, bias, queries, keys, longest, softcap)
    options = scale, causal, _pair_of(window), stream_of(query), None if mask is None else _mask_of(mask)._native
    results = o, *_with_rows(do), lse
    _native.attention_backward(_with_rows(query, key, value), results, gradients, *options, *score)
    return gradients


TABLE = [
    Operator(
        "attention",
        "(Tensor query, Tensor key, Tensor value, bool causal, float? scale, int[]? window) -> (Tensor, Tensor)",
        kernel=_attention,
        fake=_attention_fake,
        torch=_attention_torch,
        refuse=_attention_refuse,
        save=_attention_save,
        backward=_attention_gradient,
        scratch=True,
    ),
    Operator(
        "attention_backward",
        "(Tensor query, Tensor key, Tensor value, Tensor o, Tensor lse, Tensor do, bool causal, float? scale,"
        " int[]? window) -> (Tensor, Tensor, Tensor)",
        kernel=_attention_backward,
        fake=lambda query, key, value, *_: tuple(new_tensor(x) for x in (query, key, value)),
        scratch=True,
    ),
    Operator(
        "block_attention",
        "(Tensor query, Tensor key, Tensor value, int mask, bool causal, float? scale) -> (Tensor, Tensor)",
        kernel=_block_attention,
        fake=lambda query, key, value, mask, causal, scale: _attention_fake(query, key, value, causal, scale, None),
        torch=_block_attention_torch,
        refuse=_block_attention_refuse,
        save=_block_attention_save,
        backward=_block_attention_gradient,
    ),
    Operator(
        "block_attention_backward",
        "(Tensor query, Tensor key, Tensor value, Tensor o, Tensor lse, Tensor do, int mask, bool causal,"
        " float? scale) -> (Tensor, Tensor, Tensor)",
        kernel=_block_attention_backward,
        fake=lambda query, key, value, *_: tuple(new_tensor(x) for x in (query, key, value)),
    ),
    Operator(
        "scored_attention",
        "(Tensor query, Tensor key, Tensor value, Tensor? slopes, Tensor? bias, Tensor? queries, Tensor? keys,"
        " int[]? longest, float? softcap, int? mask, bool causal, float? scale, int[]? window) -> (Tensor, Tensor)",
        kernel=_scored,
        fake=lambda query, key, value, *_: _attention_fake(query, key, value, False, None, None),
        torch=_scored_torch,
        refuse=_scored_refuse,
        save=_scored_save,
        backward=_scored_gradient,
        mixed=True,
        scratch=True,
        counted_as="attention",
    ),
    Operator(
        "scored_attention_backward",
        "(Tensor query, Tensor key, Tensor value, Tensor o, Tensor lse, Tensor do, Tensor? slopes, Tensor? bias,"
        " Tensor? queries, Tensor? keys, int[]? longest, float? softcap, int? mask, bool causal, float? scale,"
        " int[]? window) -> (Tensor, Tensor, Tensor)",
        kernel=_scored_backward,
        fake=lambda query, key, value, *_: tuple(new_tensor(x) for x in (query, key, value)),
        scratch=True,
        counted_as="attention_backward",
    ),
]


def attention(
    query,
    key,
    value,
    *,
    causal=False,
    scale=None,
    window=None,
    blocks=None,
    softcap=None,
    alibi=None,
    bias=None,
    lengths=None,
    offsets=None,
    longest=None,
    strict=False,
    interpret=True,
):
    if blocks is not None:
        if window is not None:
            raise ValueError("attention takes blocks or a window, not both")
        _library._native_mask(blocks)
    window = None if window is None else list(window)
    if softcap is None and alibi is None and bias is None and lengths is None and offsets is None:
        if blocks is None:
            return ROWS["attention"]((query, key, value, causal, scale, window), strict, interpret)
        return ROWS["block_attention"]((query, key, value, blocks._number, causal, scale), strict, interpret)
    sequences = _sequences_of(blocks, softcap, alibi, bias, lengths, offsets)
    if alibi is not None and not isinstance(alibi, torch.Tensor):
        alibi = torch.tensor(alibi, device=query.device)
    if alibi is not None and alibi.shape != query.shape[1:2]:
        raise ValueError(f"alibi has the shape {tuple(alibi.shape)}, and the query {query.shape[1]} heads")
    if bias is not None:
        bias = _bias_of(bias, query, key)
    # The kernels read float32; PyTorch computes float64.
    wide = query.dtype if query.dtype == torch.float64 else torch.float32
    slopes, bias = [x if x is None else x.to(wide) for x in (alibi, bias)]
    queries, keys = (None, None) if sequences is None else [_list_of(x) for x in sequences]
    longest = None if offsets is None else _library._longest(longest, query, key)
    mask = None if blocks is None else blocks._number
    arguments = query, key, value, slopes, bias, queries, keys, longest, softcap, mask, causal, scale, window
    return ROWS["scored_attention"](arguments, strict, interpret)


def _bias_of(bias, query, key):
    """Returns a bias with four axes, of which the last has an element for each key."""
    logits = *query.shape[:-1], key.shape[-2]
    bias = bias.reshape(*[1] * (4 - bias.dim()), *bias.shape)
    if bias.dim() != 4 or any(n not in (1, wanted) for n, wanted in zip(bias.shape, logits)):
        raise ValueError(f"bias has the shape {tuple(bias.shape)}, and the logits {logits}")
    return bias.expand(*bias.shape[:-1], logits[-1])


def _list_of(x):
    """Returns numbers of queries or keys as the kernels take them."""
    if x.is_floating_point() or x.is_complex():
        raise TypeError(f"lengths and offsets are {str(x.dtype)[6:]}, expected integers")
    return x.to(torch.int32)


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
    *,
    strict=False,
    interpret=True,
):
    reason = None
    if attn_mask is not None:
        reason = "a mask"
    elif dropout_p:
        reason = "dropout"
    elif is_causal and query.shape[-2] != key.shape[-2]:
        reason = "a causal mask with another number of queries than keys"
    elif query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        reason = "queries, keys or values of another rank than (batch, heads, tokens, size)"
    elif not enable_gqa and query.shape[-3:-2] != key.shape[-3:-2]:
        reason = "other heads of queries than of keys without enable_gqa"
    if reason is None:
        return attention(query, key, value, causal=is_causal, scale=scale, strict=strict, interpret=interpret)
    note_torch("attention", reason, strict)
    groups = query.shape[-3] // key.shape[-3] if enable_gqa and query.dim() > 2 else 1
    if groups > 1 and attn_mask is not None:
        # With a mask, PyTorch has fast kernels for equal numbers of heads only.
        key, value, enable_gqa = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3), False
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
