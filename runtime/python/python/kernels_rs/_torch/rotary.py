"""Rotary embedding of positions."""

import torch

from .. import _native
from ._operator import Operator, ROWS, new_tensor, stream_of


def _rotary(x, positions, frequencies, axes, interleaved):
    y = new_tensor(x)
    x = x if x.stride(-1) == 1 else x.contiguous()
    axes = None if axes is None else list(axes)
    _native.rotary(x, positions.contiguous(), y, list(frequencies), axes, interleaved, stream_of(x))
    return y


def _rotary_torch(x, positions, frequencies, axes, interleaved):
    of_pair = positions.reshape(-1, x.shape[0])[axes if axes is not None else [0] * len(frequencies)].T
    angle = of_pair.double() * torch.tensor(frequencies, dtype=torch.float64, device=x.device)
    cos, sin = (t.to(torch.promote_types(x.dtype, torch.float32))[:, None] for t in (angle.cos(), angle.sin()))
    n = 2 * len(frequencies)
    turned = x[..., :n]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    pairs = a * cos - b * sin, a * sin + b * cos
    turned = torch.stack(pairs, -1).flatten(-2) if interleaved else torch.cat(pairs, -1)
    return torch.cat([turned.to(x.dtype), x[..., n:]], -1)


def _rotary_refuse(x, positions, frequencies, axes, interleaved):
    if x.dim() != 3:
        return "heads of another rank than (tokens, heads, size)"
    if len(frequencies) > 256:
        return "more than 256 pairs"
    return None


def _rotary_save(ctx, inputs, output):
    _, positions, ctx.frequencies, ctx.axes, ctx.interleaved = inputs
    ctx.save_for_backward(positions)


def _rotary_gradient(ctx, dy):
    # The inverse of a rotation is its transpose: the same angles in the other direction.
    back = [-f for f in ctx.frequencies]
    return ROWS["rotary"].results(dy, *ctx.saved_tensors, back, ctx.axes, ctx.interleaved), None, None, None, None


TABLE = [
    Operator(
        "rotary",
        "(Tensor x, Tensor positions, float[] frequencies, int[]? axes, bool interleaved) -> Tensor",
        kernel=_rotary,
        fake=lambda x, positions, frequencies, axes, interleaved: new_tensor(x),
        constants=True,
        torch=_rotary_torch,
        refuse=_rotary_refuse,
        save=_rotary_save,
        backward=_rotary_gradient,
    ),
]


def rotary(
    x,
    positions,
    *,
    base=10000.0,
    size=None,
    frequencies=None,
    axes=None,
    interleaved=False,
    strict=False,
    interpret=True,
):
    if frequencies is None:
        size = size or x.shape[-1]
        frequencies = [base ** (-2.0 * i / size) for i in range(size // 2)]
    arguments = x, positions.to(torch.int32), list(frequencies), axes if axes is None else list(axes), interleaved
    return ROWS["rotary"](arguments, strict, interpret)
