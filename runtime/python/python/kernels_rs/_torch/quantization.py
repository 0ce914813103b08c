"""Fake quantization, for training of quantized models."""

import torch

from .. import _native
from ._operator import Operator, ROWS, new_tensor, stream_of

QUANTIZATION = """
/// Rounds x to the nearest of the numbers (q - zero) * scale with least <= q <= most, ties to even.
/// A row has its own scale, or all rows one.
#[kernel(block = 256, grid = (x.cols().div_ceil(256), x.rows().min(65535)))]
#[requires(y.rows() == x.rows(), y.cols() == x.cols(), scale.len() == 1 || scale.len() == x.rows())]
pub fn quantized<T: Float>(x: View<T, 2>, scale: &[f32], zero: f32, least: f32, most: f32, mut y: ViewMut<T, 2>) {
    let col = grid::index();
    for row in (block::y()..x.rows()).step_by(grid::dim_y()) {
        if col < x.cols() {
            let scale = scale[if scale.len() == 1 { 0 } else { row }];
            let q = (x[(row, col)].to_f32() / scale).round_ties_even() + zero;
            y[(row, col)] = T::from_f32((q.max(least).min(most) - zero) * scale);
        }
    }
}

/// Passes dy where x is within the range of its row, and 0 elsewhere.
#[kernel(block = 256, grid = (x.cols().div_ceil(256), x.rows().min(65535)))]
#[requires(
    dy.rows() == x.rows(), dy.cols() == x.cols(), dx.rows() == x.rows(), dx.cols() == x.cols(),
    scale.len() == 1 || scale.len() == x.rows(),
)]
pub fn straight<T: Float>(
    x: View<T, 2>, scale: &[f32], zero: f32, least: f32, most: f32, dy: View<T, 2>, mut dx: ViewMut<T, 2>,
) {
    let col = grid::index();
    for row in (block::y()..x.rows()).step_by(grid::dim_y()) {
        if col < x.cols() {
            let scale = scale[if scale.len() == 1 { 0 } else { row }];
            let q = (x[(row, col)].to_f32() / scale).round_ties_even() + zero;
            dx[(row, col)] = if q >= least && q <= most { dy[(row, col)] } else { T::from_f32(0.0) };
        }
    }
}
"""


def _quantization(name, x, scale, limits, *tensors):
    kernel = _native.compile(QUANTIZATION, name, file="kernels_rs/_torch/quantization.py")
    # The kernels of quantization take matrices.
    x, *others = (t.contiguous().reshape(-1, x.shape[-1]) for t in (x, *tensors))
    kernel(x, scale.reshape(-1).contiguous(), *limits, *others, stream=stream_of(x), unchecked=x.is_cuda)


def _fake_quantize(input, scale, zero, least, most):
    y = new_tensor(input)
    _quantization("quantized", input, scale, (zero, least, most), y)
    return y


def _fake_quantize_backward(input, scale, zero, least, most, dy):
    dx = new_tensor(input)
    _quantization("straight", input, scale, (zero, least, most), dy, dx)
    return dx


def _fake_quantize_torch(input, scale, zero, least, most):
    if scale.numel() == 1:
        scale, zero = scale.reshape(1).float(), torch.tensor([zero], dtype=torch.int32, device=input.device)
        return torch.fake_quantize_per_tensor_affine(input, scale, zero, least, most)
    zeros = torch.full_like(scale, zero, dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(input, scale.float(), zeros, 0, least, most)


def _fake_quantize_refuse(input, scale, zero, least, most):
    if scale.numel() != 1 and (input.dim() != 2 or scale.numel() != input.shape[0]):
        return "scales that are neither one number nor one for each row of a matrix"
    return "a scale that is not float32" if scale.dtype != torch.float32 else None


def _fake_quantize_save(ctx, inputs, output):
    input, scale, *ctx.range = inputs
    ctx.save_for_backward(input, scale)


def _fake_quantize_gradient(ctx, dy):
    return ROWS["fake_quantize_backward"].results(*ctx.saved_tensors, *ctx.range, dy), None, None, None, None


TABLE = [
    Operator(
        "fake_quantize",
        "(Tensor input, Tensor scale, int zero, int least, int most) -> Tensor",
        kernel=_fake_quantize,
        fake=lambda input, scale, zero, least, most: new_tensor(input),
        torch=_fake_quantize_torch,
        refuse=_fake_quantize_refuse,
        save=_fake_quantize_save,
        backward=_fake_quantize_gradient,
        mixed=True,
    ),
    Operator(
        "fake_quantize_backward",
        "(Tensor input, Tensor scale, int zero, int least, int most, Tensor dy) -> Tensor",
        kernel=_fake_quantize_backward,
        fake=lambda input, scale, zero, least, most, dy: new_tensor(input),
    ),
]


def fake_quantize(
    input, scale, zero_point=0, quant_min=-128, quant_max=127, *, strict=False, interpret=True
):
    """Returns the input rounded to a grid of integers times a scale, for training of quantized models.

    `scale` is a number, or a float32 tensor of one element or of one for each row of a matrix. The
    gradient of the input is that of the identity within the range, and 0 beyond
    (straight-through). The scale has no gradient. This function divides by the scale, where
    PyTorch's `fake_quantize_per_tensor_affine` multiplies by 1 / scale.
    """
    if not isinstance(scale, torch.Tensor):
        scale = torch.full((1,), scale, dtype=torch.float32, device=input.device)
    return ROWS["fake_quantize"]((input, scale, zero_point, quant_min, quant_max), strict, interpret)
