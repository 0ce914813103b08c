"""Products of matrices, and linear layers."""

import torch
import torch.nn.functional as F

from .. import _native
from .._checks import _activation_of
from ._operator import Operator, ROWS, as_rows, new_tensor, note_torch, stream_of
from .elementwise import ACTIVATIONS


def _product_shape(a, b, transpose_a, transpose_b):
    m = a.shape[-1 if transpose_a else -2]
    n = b.shape[-2 if transpose_b else -1]
    return (*a.shape[:-2], m, n)


def _operand(x, transposed):
    """Returns a matrix whose last stride is 1, and whether it is the transposed operand."""
    if x.stride(-1) == 1 or x.stride(-2) != 1:
        return (x if x.stride(-1) == 1 else x.contiguous()), transposed
    return x.transpose(-1, -2), not transposed


def _product(a, b, bias, transpose_a, transpose_b):
    c = new_tensor(a, *_product_shape(a, b, transpose_a, transpose_b))
    (a, transpose_a), (b, transpose_b) = _operand(a, transpose_a), _operand(b, transpose_b)
    bias = None if bias is None else bias.contiguous()
    _native.product(a, b, bias, c, transpose_a, transpose_b, stream=stream_of(a))
    return c


def _product_torch(a, b, bias, transpose_a, transpose_b):
    if a.dim() == 2 and not transpose_a and transpose_b:
        return F.linear(a, b, bias)
    c = torch.matmul(a.mT if transpose_a else a, b.mT if transpose_b else b)
    return c if bias is None else c + bias


def _product_refuse(a, b, bias, transpose_a, transpose_b):
    if a.dim() not in (2, 3) or a.dim() != b.dim() or a.shape[:-2] != b.shape[:-2]:
        return "matrices of other ranks or batches than the library's"
    k, of_b = a.shape[-2 if transpose_a else -1], b.shape[-1 if transpose_b else -2]
    if k != of_b:
        return "matrices whose inner extents differ"
    if bias is not None and bias.shape != (b.shape[-2 if transpose_b else -1],):
        return "a bias of another shape than a row of the result"
    return None


def _product_save(ctx, inputs, output):
    a, b, bias, ctx.transpose_a, ctx.transpose_b = inputs
    ctx.save_for_backward(a, b)


def _product_gradient(ctx, dc):
    (a, b), (ta, tb) = ctx.saved_tensors, (ctx.transpose_a, ctx.transpose_b)
    da = db = dbias = None
    if ctx.needs_input_grad[0]:
        da = ROWS["product"].results(b, dc, None, tb, True) if ta else ROWS["product"].results(dc, b, None, False, not tb)
    if ctx.needs_input_grad[1]:
        db = ROWS["product"].results(dc, a, None, True, ta) if tb else ROWS["product"].results(a, dc, None, not ta, False)
    if ctx.needs_input_grad[2]:
        dbias = dc.reshape(-1, dc.shape[-1]).sum(0)
    return da, db, dbias, None, None


TABLE = [
    Operator(
        "product",
        "(Tensor a, Tensor b, Tensor? bias, bool transpose_a, bool transpose_b) -> Tensor",
        kernel=_product,
        fake=lambda a, b, bias, ta, tb: new_tensor(a, *_product_shape(a, b, ta, tb)),
        torch=_product_torch,
        refuse=_product_refuse,
        save=_product_save,
        backward=_product_gradient,
        scratch=True,
    ),
]


# The linear layer with an activation or a residual

SLOPES = {name: f"{name}_backward" for name in ("silu", "gelu", "gelu_tanh")}
FUNCTIONS = {"none": lambda x: x, "relu": torch.relu, **ACTIVATIONS}


def _linear(input, weight, bias, residual, activation):
    y = new_tensor(input, input.shape[0], weight.shape[0])
    (input, weight), bias = (as_rows(x) for x in (input, weight)), None if bias is None else bias.contiguous()
    residual = None if residual is None else as_rows(residual)
    _native.linear(input, weight, bias, residual, activation, y, stream_of(y))
    return y


def _linear_torch(input, weight, bias, residual, activation):
    y = FUNCTIONS[activation](F.linear(input, weight, bias))
    return y if residual is None else y + residual


def _linear_refuse(input, weight, bias, residual, activation):
    if residual is not None and residual.shape != (input.shape[0], weight.shape[0]):
        return "a residual of another shape than the result"
    return _product_refuse(input, weight, bias, False, True)


def _linear_save(ctx, inputs, output):
    input, weight, bias, _, ctx.activation = inputs
    ctx.save_for_backward(input, weight, bias)


def _linear_gradient(ctx, dy):
    """Computes the argument of the activation again, which the forward pass does not store."""
    input, weight, bias = ctx.saved_tensors
    dx = dw = dbias = None
    dz = dy
    if ctx.activation != "none" and any(ctx.needs_input_grad[:3]):
        z = ROWS["product"].results(input, weight, bias, False, True)
        relu = ctx.activation == "relu"
        dz = torch.where(z > 0, dy, 0) if relu else ROWS[SLOPES[ctx.activation]].results(z, dy)
    if ctx.needs_input_grad[0]:
        dx = ROWS["product"].results(dz, weight, None, False, False)
    if ctx.needs_input_grad[1]:
        dw = ROWS["product"].results(dz, input, None, True, False)
    if ctx.needs_input_grad[2]:
        dbias = dz.sum(0)
    return dx, dw, dbias, dy if ctx.needs_input_grad[3] else None, None


TABLE.append(
    Operator(
        "linear",
        "(Tensor input, Tensor weight, Tensor? bias, Tensor? residual, str activation) -> Tensor",
        kernel=_linear,
        fake=lambda input, weight, bias, residual, activation: new_tensor(input, input.shape[0], weight.shape[0]),
        torch=_linear_torch,
        refuse=_linear_refuse,
        save=_linear_save,
        backward=_linear_gradient,
        scratch=True,
    )
)


def matmul(input, other, *, strict=False, interpret=True):
    if input.dim() > 3 and input.dim() == other.dim() and input.shape[:-2] == other.shape[:-2]:
        a, b = input.flatten(0, -3), other.flatten(0, -3)
        c = ROWS["product"]((a, b, None, False, False), strict, interpret)
        return c.reshape(*input.shape[:-2], *c.shape[-2:])
    if input.dim() < 2 or other.dim() < 2:
        note_torch("product", "vectors", strict)
        return torch.matmul(input, other)
    return ROWS["product"]((input, other, None, False, False), strict, interpret)


def linear(input, weight, bias=None, *, activation=None, residual=None, strict=False, interpret=True):
    if activation is None and residual is None:
        name, rest = "product", (bias, False, True)
    else:
        shape = (*input.shape[:-1], weight.shape[0])
        if residual is not None and (input.dim() != 2 or residual.shape == shape):
            # The rows of the product are those of all outer axes.
            residual = residual.expand(shape).reshape(-1, shape[-1])
        name, rest = "linear", (bias, residual, _activation_of(activation))
    if input.dim() == 2:
        return ROWS[name]((input, weight, *rest), strict, interpret)
    y = ROWS[name]((input.reshape(-1, input.shape[-1]), weight, *rest), strict, interpret)
    return y.reshape(*input.shape[:-1], weight.shape[0])


# The product with quantized weights


def _quantized_linear(input, words, halves, format, rows, columns):
    y = new_tensor(input, input.shape[0], rows)
    _native.quantized_product(as_rows(input), (words, halves), format, (rows, columns), y, stream_of(input))
    return y


def _quantized_linear_refuse(input, words, halves, format, rows, columns):
    return None if input.dim() == 2 and input.shape[1] == columns else "an input of other extents than (rows, in features)"


def _quantized_linear_torch(input, words, halves, format, rows, columns):
    raise TypeError(
        f"a product with weights of {format} takes float32, float16 or bfloat16 of the extents (rows, {columns}) on "
        f"{words.device}, and the input is {input.dtype} of the extents {tuple(input.shape)} on {input.device}"
    )


TABLE.append(
    Operator(
        "quantized_linear",
        "(Tensor input, Tensor words, Tensor halves, str format, int rows, int columns) -> Tensor",
        kernel=_quantized_linear,
        fake=lambda input, words, halves, format, rows, columns: new_tensor(input, input.shape[0], rows),
        torch=_quantized_linear_torch,
        refuse=_quantized_linear_refuse,
        scratch=True,
    )
)


def quantized_linear(input, planes, format, shape, *, strict=False, interpret=True):
    """Returns input @ weight.T with the planes of quantized weights of a format and of these extents."""
    rows = input if input.dim() == 2 else input.reshape(-1, input.shape[-1])
    y = ROWS["quantized_linear"]((rows, *planes, format, *shape), strict, interpret)
    return y if input.dim() == 2 else y.reshape(*input.shape[:-1], shape[0])
