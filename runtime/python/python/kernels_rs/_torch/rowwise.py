"""Softmax and norms of the last axis."""

import torch
import torch.nn.functional as F

from .. import _native
from .._checks import _queries, _shape_of
from ._operator import Operator, ROWS, as_rows, is_inference, new_tensor, note_torch, stream_of


def _softmax(input, dim, scale, log, causal):
    y = new_tensor(input)
    _native.softmax(as_rows(input), y, scale, log, causal, stream_of(input))
    return y


def _softmax_torch(input, dim, scale, log, causal):
    x = input * scale if scale != 1 else input
    if causal:
        # Rows are the queries of consecutive sequences; the last key belongs to the last query.
        rows, keys = x.numel() // x.shape[-1], x.shape[-1]
        query = torch.arange(rows, device=x.device) % causal + keys - causal
        unseen = torch.arange(keys, device=x.device) > query[:, None]
        x = x.masked_fill(unseen.reshape(x.shape), float("-inf"))
    return F.log_softmax(x, dim) if log else F.softmax(x, dim)


def _softmax_refuse(input, dim, scale, log, causal):
    if dim not in (-1, input.dim() - 1) or input.dim() == 0:
        return "an axis other than the last"
    return None


def _softmax_save(ctx, inputs, output):
    ctx.save_for_backward(output)
    _, _, ctx.scale, ctx.log, _ = inputs


def _softmax_gradient(ctx, dy):
    (y,) = ctx.saved_tensors
    return ROWS["softmax_backward"].results(y, dy, ctx.scale, ctx.log), None, None, None, None


def _softmax_backward(y, dy, scale, log):
    dx = new_tensor(y)
    _native.softmax_backward(as_rows(y), as_rows(dy), dx, scale, log, stream_of(y))
    return dx


def _norm(input, weight, bias, eps, centered):
    x = as_rows(input)
    y, saved = _norm_fake(input, weight, bias, eps, centered)
    vectors = [None if v is None else v.contiguous() for v in (weight, bias)]
    _native.norm(x, *vectors, y, eps, centered, stream_of(x), saved)
    return y, saved


def _norm_of_inference(input, weight, bias, eps, centered):
    x, y = as_rows(input), new_tensor(input)
    vectors = [None if v is None else v.contiguous() for v in (weight, bias)]
    _native.norm(x, *vectors, y, eps, centered, stream_of(x))
    return y


def _norm_torch(input, weight, bias, eps, centered):
    if centered:
        return F.layer_norm(input, input.shape[-1:], weight, bias, eps)
    y = F.rms_norm(input, input.shape[-1:], weight, eps)
    return y if bias is None else y + bias


def _norm_fake(input, weight, bias, eps, centered):
    return new_tensor(input), new_tensor(input, input.numel() // input.shape[-1], 2, dtype=torch.float32)


def _norm_save(ctx, inputs, output):
    input, weight, bias, _, ctx.centered = inputs
    ctx.has_bias = bias is not None
    ctx.save_for_backward(input, weight, output[1])
    ctx.mark_non_differentiable(output[1])


def _norm_gradient(ctx, dy, _):
    input, weight, saved = ctx.saved_tensors
    columns = weight is not None and any(ctx.needs_input_grad[1:3])
    dx, dweight, dbias = ROWS["norm_backward"].results(input, weight, saved, dy, ctx.centered, columns, columns and ctx.has_bias)
    return dx, dweight if columns else None, dbias if ctx.has_bias else None, None, None


def _norm_backward(input, weight, saved, dy, centered, columns, biased):
    dx, dweight, dbias = _norm_backward_fake(input, weight, saved, dy, centered, columns, biased)
    given = [None if weight is None else weight.contiguous(), dweight if columns else None, dbias if biased else None]
    _native.norm_backward(as_rows(input), saved, as_rows(dy), dx, *given, centered, stream_of(input))
    return dx, dweight, dbias


def _norm_backward_fake(input, weight, saved, dy, centered, columns, biased):
    like = input if weight is None else weight
    n = input.shape[-1]
    return new_tensor(input), new_tensor(like, n if columns else 0), new_tensor(like, n if biased else 0)


def _norm_refuse(input, weight, bias, eps, centered):
    for x in (weight, bias):
        if x is not None and x.shape != input.shape[-1:]:
            return "a weight or bias of another shape than the last axis"
    if weight is None and bias is not None:
        return "a bias without a weight"
    if bias is not None and bias.dtype != weight.dtype:
        return "operands of different element types"
    return None


TABLE = [
    Operator(
        "softmax",
        "(Tensor input, int dim, float scale, bool log, int causal) -> Tensor",
        kernel=_softmax,
        fake=lambda input, dim, scale, log, causal: new_tensor(input),
        torch=_softmax_torch,
        refuse=_softmax_refuse,
        save=_softmax_save,
        backward=_softmax_gradient,
    ),
    Operator(
        "softmax_backward",
        "(Tensor y, Tensor dy, float scale, bool log) -> Tensor",
        kernel=_softmax_backward,
        fake=lambda y, dy, scale, log: new_tensor(y),
    ),
    Operator(
        "norm",
        "(Tensor input, Tensor? weight, Tensor? bias, float eps, bool centered) -> (Tensor, Tensor)",
        kernel=_norm,
        fake=_norm_fake,
        torch=_norm_torch,
        refuse=_norm_refuse,
        save=_norm_save,
        backward=_norm_gradient,
        mixed=True,
    ),
    # Without a gradient the mean and factor of the rows are not stored.
    Operator(
        "norm_of_inference",
        "(Tensor input, Tensor? weight, Tensor? bias, float eps, bool centered) -> Tensor",
        kernel=_norm_of_inference,
        fake=lambda input, *_: new_tensor(input),
        torch=_norm_torch,
        refuse=_norm_refuse,
        mixed=True,
        counted_as="norm",
    ),
    Operator(
        "norm_backward",
        "(Tensor input, Tensor? weight, Tensor saved, Tensor dy, bool centered, bool columns, bool biased)"
        " -> (Tensor, Tensor, Tensor)",
        kernel=_norm_backward,
        fake=_norm_backward_fake,
        scratch=True,
    ),
]


def softmax(input, dim=-1, dtype=None, *, scale=1.0, causal=0, strict=False, interpret=True, log=False):
    if dtype is not None:
        input = input.to(getattr(torch, dtype) if isinstance(dtype, str) else dtype)
    return ROWS["softmax"]((input, dim, scale, log, _queries(causal)), strict, interpret)


def log_softmax(input, dim=-1, dtype=None, *, scale=1.0, causal=0, strict=False, interpret=True):
    return softmax(input, dim, dtype, scale=scale, causal=causal, strict=strict, interpret=interpret, log=True)


def _normalized(input, normalized_shape, weight, bias, eps, centered, strict, interpret):
    shape = _shape_of(normalized_shape)
    if shape == tuple(input.shape[-1:]):
        name = "norm_of_inference" if is_inference(input, weight, bias) else "norm"
        return ROWS[name]((input, weight, bias, eps, centered), strict, interpret)
    note_torch("norm", "a norm over several axes", strict)
    if centered:
        return F.layer_norm(input, shape, weight, bias, eps)
    return F.rms_norm(input, shape, weight, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None, *, strict=False, interpret=True):
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    return _normalized(input, normalized_shape, weight, None, eps, False, strict, interpret)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, *, strict=False, interpret=True):
    return _normalized(input, normalized_shape, weight, bias, eps, True, strict, interpret)
