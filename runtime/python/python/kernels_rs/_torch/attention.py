"""Attention of queries, keys and values."""

import torch
import torch.nn.functional as F

from .. import _library, _native
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
]


def attention(query, key, value, *, causal=False, scale=None, window=None, blocks=None, strict=False, interpret=True):
    if blocks is not None:
        if window is not None:
            raise ValueError("attention takes blocks or a window, not both")
        _library._native_mask(blocks)
        return ROWS["block_attention"]((query, key, value, blocks._number, causal, scale), strict, interpret)
    window = None if window is None else list(window)
    return ROWS["attention"]((query, key, value, causal, scale, window), strict, interpret)


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
