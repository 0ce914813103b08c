"""Rows of tables for tokens, and tokens drawn from logits."""

import torch
import torch.nn.functional as F

from .. import _native
from ._operator import FLOATS, MAX_ELEMENTS, Operator, ROWS, as_rows, stream_of

# The element types of tables, which are copied as they are.
COPIED = (*FLOATS, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def _embedding_fake(index, weight):
    return weight.new_empty((*index.shape, weight.shape[1]))


def _embedding(index, weight):
    y = _embedding_fake(index, weight)
    _native.embedding(as_rows(weight), index.contiguous(), y.view(-1, weight.shape[1]), stream_of(weight))
    return y


def _valid(index, rows):
    """Returns whether each index is a row, and the indices with 0 for the others."""
    valid = (index >= 0) & (index < rows)
    return valid, torch.where(valid, index, 0).long()


def _embedding_torch(index, weight):
    if weight.dim() == 2 and not weight.shape[0]:
        return weight.new_zeros((*index.shape, weight.shape[1]))
    valid, places = _valid(index, weight.shape[0])
    return F.embedding(places, weight).masked_fill(~valid[..., None], 0)


def _embedding_refuse(index, weight):
    if weight.dim() != 2:
        return "a table of another rank than (rows, size)"
    if index.numel() * weight.shape[1] >= MAX_ELEMENTS:
        return "a result of 2**31 elements or more"
    return None if weight.dtype in COPIED else f"elements of {str(weight.dtype)[6:]}"


def _embedding_save(ctx, inputs, output):
    index, weight = inputs
    ctx.rows = weight.shape[0]
    ctx.save_for_backward(index)


def _embedding_gradient(ctx, dy):
    valid, places = _valid(ctx.saved_tensors[0], ctx.rows)
    dy = dy.masked_fill(~valid[..., None], 0)
    return None, torch.ops.aten.embedding_dense_backward(dy, places, ctx.rows, -1, False)


def _sample_fake(logits, seed, offset, temperature, top_k, top_p):
    return logits.new_empty(logits.shape[:-1], dtype=torch.int32)


def _sample(logits, seed, offset, temperature, top_k, top_p):
    y = _sample_fake(logits, seed, offset, temperature, top_k, top_p)
    seed, offset = seed % 2**64, offset % 2**64
    _native.sample(as_rows(logits), y, seed, offset, temperature, top_k, top_p, stream_of(logits))
    return y


def _sample_torch(logits, seed, offset, temperature, top_k, top_p):
    if not temperature >= 0 or not top_p > 0:
        raise ValueError(f"temperature = {temperature} and top_p = {top_p}: expected at least 0, and more than 0")
    logits, n = logits.detach(), logits.shape[-1]
    if temperature == 0 or not logits.numel():
        return logits.argmax(-1).to(torch.int32)
    scaled = logits.float() if logits.dtype in FLOATS else logits
    order = (scaled / temperature).sort(stable=True, dim=-1, descending=True)
    p = order.values.softmax(-1)
    if 0 < top_k < n:
        p = p.masked_fill(torch.arange(n, device=p.device) >= top_k, 0)
        p = p / p.sum(-1, keepdim=True)
    if top_p < 1:
        # A token is kept if the likelier ones add up to less than `top_p`.
        p = p.masked_fill(p.cumsum(-1) - p >= top_p, 0)
    number = (seed ^ offset * 0x9E3779B97F4A7C15) % 2**63
    generator = torch.Generator(device=p.device).manual_seed(number)
    draw = torch.multinomial(p.reshape(-1, n), 1, generator=generator)
    return order.indices.reshape(-1, n).gather(1, draw).reshape(logits.shape[:-1]).to(torch.int32)


def _sample_refuse(logits, seed, offset, temperature, top_k, top_p):
    return None if logits.dim() else "a single logit"


TABLE = [
    Operator(
        "embedding",
        "(Tensor index, Tensor weight) -> Tensor",
        kernel=_embedding,
        fake=_embedding_fake,
        torch=_embedding_torch,
        refuse=_embedding_refuse,
        save=_embedding_save,
        backward=_embedding_gradient,
        any_type=True,
    ),
    # Each call has another offset, so that no launch would be repeated.
    Operator(
        "sample",
        "(Tensor logits, int seed, int offset, float temperature, int top_k, float top_p) -> Tensor",
        kernel=_sample,
        fake=_sample_fake,
        torch=_sample_torch,
        refuse=_sample_refuse,
        repeated=False,
    ),
]


def embedding(input, weight, *, strict=False, interpret=True):
    if input.is_floating_point() or input.is_complex():
        raise TypeError(f"indices are {str(input.dtype)[6:]}, expected integers")
    index = input
    if input.dtype == torch.int64 and weight.dim():
        # The kernel takes 32 bits. Indices beyond the table stay beyond it.
        index = input.clamp(-1, weight.shape[0])
    return ROWS["embedding"]((index.to(torch.int32), weight), strict, interpret)


def _word(number):
    """Returns a number of 64 bits as a signed one, which operators take."""
    return (number + 2**63) % 2**64 - 2**63


def sample(logits, *, seed, offset=0, temperature=1.0, top_k=0, top_p=1.0, strict=False, interpret=True):
    arguments = logits, _word(seed), _word(offset), float(temperature), top_k, float(top_p)
    return ROWS["sample"](arguments, strict, interpret)
