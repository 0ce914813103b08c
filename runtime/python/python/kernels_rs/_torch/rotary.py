"""Rotary embedding of positions."""

import torch

from .. import _native
from .._checks import _default_frequencies
from ._operator import Operator, ROWS, new_tensor, note_torch, stream_of


def _rotary(x, positions, frequencies, axes, interleaved):
    y = new_tensor(x)
    axes = None if axes is None else list(axes)
    _native.rotary(x, positions, y, list(frequencies), axes, interleaved, stream_of(x))
    return y


def _rotary_torch(x, positions, frequencies, axes, interleaved):
    tokens = x.shape[0]
    rows = positions.numel() // tokens if tokens else 1 + max(axes or [0])
    of_pair = positions.reshape(rows, tokens)[axes if axes is not None else [0] * len(frequencies)].T
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
    if x.stride(-1) != 1 or not positions.is_contiguous():
        return "elements or positions that are not contiguous"
    return None


def _rotary_save(ctx, inputs, output):
    _, positions, ctx.frequencies, ctx.axes, ctx.interleaved = inputs
    ctx.save_for_backward(positions)


def _rotary_gradient(ctx, dy):
    # The inverse of a rotation is its transpose: the same angles in the other direction.
    back = [-f for f in ctx.frequencies]
    dy = dy if dy.stride(-1) == 1 else dy.contiguous()
    return ROWS["rotary"].results(dy, *ctx.saved_tensors, back, ctx.axes, ctx.interleaved), None, None, None, None


# The embedding of Hugging Face's models, whose cosines and sines are tables

TURNED = """
/// Rotates the halves of heads x[batch, head, token] by angles with tables of cosines and sines,
/// which may differ between the halves; or applies the transposed rotation.
#[kernel(block = 256, grid = ((x.dim(2) * (x.dim(3) / 2)).div_ceil(256), x.dim(1), x.dim(0)))]
#[requires(
    x.dim(3) % 2 == 0, y.dim(0) == x.dim(0), y.dim(1) == x.dim(1), y.dim(2) == x.dim(2), y.dim(3) == x.dim(3),
    cos.dim(1) == x.dim(2), cos.dim(2) == x.dim(3), cos.dim(0) == x.dim(0) || cos.dim(0) == 1,
    sin.dim(0) == cos.dim(0), sin.dim(1) == cos.dim(1), sin.dim(2) == cos.dim(2),
)]
pub fn turned<T: Float, C: Float>(
    x: View<T, 4>, cos: View<C, 3>, sin: View<C, 3>, transposed: bool, mut y: ViewMut<T, 4>,
) {
    let pairs = x.dim(3) / 2;
    let at = grid::index();
    if at < x.dim(2) * pairs {
        let (batch, head, token, pair) = (block::z(), block::y(), at / pairs, at % pairs);
        let table = if cos.dim(0) == 1 { 0 } else { batch };
        let (a, b) = (x[(batch, head, token, pair)].to_f32(), x[(batch, head, token, pair + pairs)].to_f32());
        let (near, far) = (sin[(table, token, pair)].to_f32(), sin[(table, token, pair + pairs)].to_f32());
        let (of_a, of_b) = if transposed { (far, -near) } else { (-near, far) };
        y[(batch, head, token, pair)] = T::from_f32(b.mul_add(of_a, a * cos[(table, token, pair)].to_f32()));
        y[(batch, head, token, pair + pairs)] =
            T::from_f32(a.mul_add(of_b, b * cos[(table, token, pair + pairs)].to_f32()));
    }
}
"""


def _turned(x, cos, sin, transposed):
    y = new_tensor(x)
    x, cos, sin = (t if t.stride(-1) == 1 else t.contiguous() for t in (x, cos, sin))
    kernel = _native.compile(TURNED, "turned", file="kernels_rs/_torch/rotary.py")
    kernel(x, cos, sin, transposed, y, stream=stream_of(x), unchecked=x.is_cuda)
    return y


def _turned_torch(x, cos, sin, transposed):
    a, b = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    if transposed:
        near, far = sin.chunk(2, -1)
        turned = x * cos + torch.cat([b * far, -a * near], -1)
    else:
        turned = x * cos + torch.cat([-b, a], -1) * sin
    return turned.to(x.dtype)


def _turned_refuse(x, cos, sin, transposed):
    if x.dim() != 4 or cos.dim() != 3 or cos.shape != sin.shape or x.shape[-1] % 2:
        return "heads of another rank than (batch, heads, tokens, size), or of an odd size"
    if cos.shape[1:] != x.shape[2:] or cos.shape[0] not in (1, x.shape[0]):
        return "tables of another shape than (batch, tokens, size)"
    if x.shape[0] >= 1 << 16 or x.shape[1] >= 1 << 16:
        return "65536 heads or batches"
    return "angles with a gradient" if cos.requires_grad or sin.requires_grad else None


def _turned_save(ctx, inputs, output):
    _, cos, sin, ctx.transposed = inputs
    ctx.save_for_backward(cos, sin)


def _turned_gradient(ctx, dy):
    return ROWS["rotary_tables"].results(dy, *ctx.saved_tensors, not ctx.transposed), None, None, None


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
    Operator(
        "rotary_tables",
        "(Tensor x, Tensor cos, Tensor sin, bool transposed) -> Tensor",
        kernel=_turned,
        fake=lambda x, cos, sin, transposed: new_tensor(x),
        torch=_turned_torch,
        refuse=_turned_refuse,
        save=_turned_save,
        backward=_turned_gradient,
        mixed=True,
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
    frequencies = _default_frequencies(base, size or x.shape[-1]) if frequencies is None else frequencies
    # In a recorded call, memory that belongs to no tensor of the call counts as the rotary table.
    # Copies are therefore made before the call.
    x = x if x.stride(-1) == 1 else x.contiguous()
    if positions.is_floating_point() or positions.is_complex():
        raise TypeError(f"positions are {str(positions.dtype)[6:]}, expected integers")
    positions = positions.to(torch.int32).contiguous()
    arguments = x, positions, list(frequencies), axes if axes is None else list(axes), interleaved
    return ROWS["rotary"](arguments, strict, interpret)


def rotary_tables(x, cos, sin, *, strict=False, interpret=True):
    """Returns heads x (batch, heads, tokens, size) rotated as Hugging Face's models do.

    The tables are (batch or 1, tokens, size); the result is x * cos + (-b | a) * sin of the halves
    a and b of x.
    """
    if cos.requires_grad or sin.requires_grad:
        # A repeated call does not ask for a reason.
        note_torch("rotary_tables", "angles with a gradient", strict)
        return _turned_torch(x, cos, sin, False)
    return ROWS["rotary_tables"]((x, cos, sin, False), strict, interpret)
