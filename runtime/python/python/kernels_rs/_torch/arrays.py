"""Copies of tensors in another order."""

from .. import _native
from ._operator import Operator, ROWS, new_tensor, stream_of


def _transpose_fake(input):
    return new_tensor(input, *input.shape[:-2], input.shape[-1], input.shape[-2])


def _transpose(input):
    y = _transpose_fake(input)
    in_place = input.is_contiguous() or input.dim() <= 3 and input.stride(-1) == 1
    _native.transpose(input if in_place else input.contiguous(), y, stream_of(input))
    return y


def _transpose_refuse(input):
    return None if input.dim() >= 2 else "a vector"


def _transpose_gradient(ctx, dy):
    return ROWS["transpose"].results(dy)


TABLE = [
    Operator(
        "transpose",
        "(Tensor input) -> Tensor",
        kernel=_transpose,
        fake=_transpose_fake,
        torch=lambda input: input.mT.contiguous(),
        refuse=_transpose_refuse,
        save=lambda ctx, inputs, output: None,
        backward=_transpose_gradient,
        any_type=True,
    ),
]


def transpose(input, *, strict=False, interpret=True):
    return ROWS["transpose"]((input,), strict, interpret)
