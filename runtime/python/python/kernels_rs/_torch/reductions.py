"""Reductions, running sums and histograms."""

import functools
import math

import torch

from .. import _library, _native
from .._checks import _axis_of, _norm_of
from ._operator import FLOATS, Operator, ROWS, as_rows, new_tensor, note_torch, stream_of

# The element types of running sums, whose results have the type of the input.
SUMMED = tuple(getattr(torch, name) for name in ("float32", "float64", "int32", "int64", "uint32") if hasattr(torch, name))

# The element types of histograms; integers are indices of bins.
COUNTED = tuple(getattr(torch, name) for name in ("float32", "uint8", "uint32") if hasattr(torch, name))


def _of_type(input, types):
    """Returns why no kernel takes the elements of a tensor, or None."""
    return None if input.dtype in types else f"elements of {str(input.dtype)[6:]}"


# Reductions of an axis, or of all elements


def _kept(shape, dim, keepdim):
    """Returns the shape of a result; the reduced axes have one element, or are left out."""
    if dim is None:
        return (1,) * len(shape) if keepdim else ()
    dim %= len(shape)
    return (*shape[:dim], *((1,) if keepdim else ()), *shape[dim + 1 :])


def _reduced_fake(name, input, dim, keepdim):
    dtype = torch.int32 if name.startswith("arg") else torch.float32
    return input.new_empty(_kept(input.shape, dim, keepdim), dtype=dtype)


def _reduced(name, input, dim, keepdim):
    y = _reduced_fake(name, input, dim, keepdim)
    if dim is None or dim in (-1, input.dim() - 1):
        _native.reduction(name, as_rows(input), y, dim is None, True, stream_of(input))
        return y
    shape, dim = input.shape, dim % input.dim()
    columns = input.contiguous().view(math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :]))
    _native.reduction(name, columns, y, False, False, stream_of(input))
    return y


def _reduced_torch(name, input, dim, keepdim):
    # The kernels give float32 for 16-bit floats, too.
    dtype = torch.float32 if input.dtype in FLOATS else None
    if name in ("sum", "mean"):
        return getattr(torch, name)(input, dim, keepdim, dtype=dtype)
    if name in ("norm1", "norm2"):
        return torch.linalg.vector_norm(input, int(name[-1]), dim, keepdim, dtype=dtype)
    largest, shape = name.endswith("max"), _kept(input.shape, dim, keepdim)
    if input.is_floating_point():
        # A NaN is the last in the order of the kernels.
        input = input.masked_fill(input.isnan(), -math.inf if largest else math.inf)
    input, dim = (input.flatten(), 0) if dim is None else (input, dim)
    values, places = (torch.max if largest else torch.min)(input, dim)
    y = places.to(torch.int32) if name.startswith("arg") else values
    return (y if dtype is None or name.startswith("arg") else y.to(dtype)).reshape(shape)


def _reduced_save(name, ctx, inputs, output):
    input, ctx.dim, _ = inputs
    ctx.shape, ctx.dtype = input.shape, input.dtype
    if name not in ("sum", "mean"):
        ctx.save_for_backward(input, *([output] if name == "norm2" else []))


def _reduced_gradient(name, ctx, dy):
    kept = _kept(ctx.shape, ctx.dim, True)
    dy = dy.reshape(kept)
    if name in ("max", "min"):
        return _extreme_gradient(name, ctx, dy), None, None
    if name == "mean":
        dy = dy / (math.prod(ctx.shape) if ctx.dim is None else ctx.shape[ctx.dim])
    if name == "norm1":
        dy = dy * ctx.saved_tensors[0].sign()
    if name == "norm2":
        input, norm = ctx.saved_tensors
        norm = norm.reshape(kept)
        # The gradient of a norm of 0 is 0, as in PyTorch.
        dy = input * torch.where(norm == 0, 0, dy / norm)
    return dy.expand(ctx.shape).to(ctx.dtype), None, None


def _extreme_gradient(name, ctx, dy):
    """Returns the gradient of the largest or smallest element, which belongs to the first such element."""
    input = ctx.saved_tensors[0].detach()
    place = ROWS[f"arg{name}"].results(input, ctx.dim, True).long()
    dy = dy.to(ctx.dtype)
    if ctx.dim is not None:
        return dy.new_zeros(ctx.shape).scatter(ctx.dim, place, dy)
    return dy.new_zeros(math.prod(ctx.shape)).scatter(0, place.reshape(1), dy.reshape(1)).reshape(ctx.shape)


def _reduction_rows():
    """Yields the rows of reductions."""
    bind = functools.partial
    for name in ("sum", "mean", "norm1", "norm2", "max", "min", "argmax", "argmin"):
        differentiable = not name.startswith("arg")
        yield Operator(
            name,
            "(Tensor input, int? dim, bool keepdim) -> Tensor",
            kernel=bind(_reduced, name),
            fake=bind(_reduced_fake, name),
            torch=bind(_reduced_torch, name),
            save=bind(_reduced_save, name) if differentiable else None,
            backward=bind(_reduced_gradient, name) if differentiable else None,
            scratch=True,
        )


# Running sums


def _cumsum(input, dim, exclusive):
    y = new_tensor(input)
    _native.cumulative(as_rows(input), y, exclusive, stream_of(input))
    return y


def _cumsum_torch(input, dim, exclusive):
    sums = input.cumsum(dim, dtype=input.dtype if input.dtype in SUMMED else None)
    if not exclusive or not sums.numel():
        return sums
    if not sums.dim():
        return torch.zeros_like(sums)
    first = torch.zeros_like(sums.narrow(dim, 0, 1))
    return torch.cat([first, sums.narrow(dim, 0, sums.shape[dim] - 1)], dim)


def _cumsum_refuse(input, dim, exclusive):
    if input.dim() == 0 or dim not in (-1, input.dim() - 1):
        return "an axis other than the last"
    return _of_type(input, SUMMED)


def _cumsum_save(ctx, inputs, output):
    _, _, ctx.exclusive = inputs


def _cumsum_gradient(ctx, dy):
    # An element is in the sums after it.
    return ROWS["cumsum"].results(dy.flip(-1), -1, ctx.exclusive).flip(-1), None, None


# Histograms


def _histc_fake(input, bins, min, max):
    return input.new_empty((bins,), dtype=torch.int32)


def _histc(input, bins, min, max):
    y = _histc_fake(input, bins, min, max)
    _native.counts(input.contiguous(), y, min, max, stream_of(input))
    return y


def _histc_of_range(input, bins, min, max):
    low, high = (_reduced(name, input, None, False).item() for name in ("min", "max"))
    return _histc(input, bins, *_library._range(low, high))


def _histc_torch(input, bins, min, max):
    input = input.detach()
    if not input.numel():
        return input.new_zeros((bins,), dtype=torch.int32)
    if input.is_floating_point():
        wide = input if input.dtype == torch.float64 else input.float()
        return torch.histc(wide, bins, min, max).to(torch.int32)
    places = torch.where((input >= 0) & (input < bins), input, bins).long().flatten()
    ones = torch.ones_like(places, dtype=torch.int32)
    return ones.new_zeros(bins + 1).scatter_add(0, places, ones)[:bins]


def _histc_refuse(input, bins, min, max):
    return _of_type(input, COUNTED)


TABLE = [
    *_reduction_rows(),
    Operator(
        "cumsum",
        "(Tensor input, int dim, bool exclusive) -> Tensor",
        kernel=_cumsum,
        fake=lambda input, dim, exclusive: new_tensor(input),
        torch=_cumsum_torch,
        refuse=_cumsum_refuse,
        save=_cumsum_save,
        backward=_cumsum_gradient,
        scratch=True,
        any_type=True,
    ),
    Operator(
        "histc",
        "(Tensor input, int bins, float min, float max) -> Tensor",
        kernel=_histc,
        fake=_histc_fake,
        torch=_histc_torch,
        refuse=_histc_refuse,
        scratch=True,
        any_type=True,
    ),
    # The host reads the smallest and the largest element, so that no launch can be repeated.
    Operator(
        "histc_of_range",
        "(Tensor input, int bins, float min, float max) -> Tensor",
        kernel=_histc_of_range,
        fake=_histc_fake,
        torch=_histc_torch,
        refuse=_histc_refuse,
        any_type=True,
        counted_as="histc",
        repeated=False,
    ),
]


def _reduction(name, input, dim, keepdim, strict, interpret):
    if isinstance(dim, (tuple, list)) and name in ("sum", "mean", "norm1", "norm2"):
        note_torch(name, "several axes", strict)
        return _reduced_torch(name, input, tuple(dim), keepdim)
    return ROWS[name]((input, _axis_of(name, input.shape, dim), bool(keepdim)), strict, interpret)


def sum(input, dim=None, keepdim=False, *, strict=False, interpret=True):
    return _reduction("sum", input, dim, keepdim, strict, interpret)


def mean(input, dim=None, keepdim=False, *, strict=False, interpret=True):
    return _reduction("mean", input, dim, keepdim, strict, interpret)


def norm(input, p=2, dim=None, keepdim=False, *, strict=False, interpret=True):
    if p not in (1, 2) and not isinstance(p, bool):
        note_torch("norm", "a norm other than the 1- and the 2-norm", strict)
        dtype = torch.float32 if input.dtype in FLOATS else None
        return torch.linalg.vector_norm(input, p, dim, keepdim, dtype=dtype)
    return _reduction(_norm_of(p), input, dim, keepdim, strict, interpret)


def max(input, dim=None, keepdim=False, *, strict=False, interpret=True):
    return _reduction("max", input, dim, keepdim, strict, interpret)


def min(input, dim=None, keepdim=False, *, strict=False, interpret=True):
    return _reduction("min", input, dim, keepdim, strict, interpret)


def argmax(input, dim=None, keepdim=False, *, strict=False, interpret=True):
    return _reduction("argmax", input, dim, keepdim, strict, interpret)


def argmin(input, dim=None, keepdim=False, *, strict=False, interpret=True):
    return _reduction("argmin", input, dim, keepdim, strict, interpret)


def cumsum(input, dim=-1, *, exclusive=False, strict=False, interpret=True):
    return ROWS["cumsum"]((input, dim, bool(exclusive)), strict, interpret)


def histc(input, bins=100, min=0.0, max=0.0, *, strict=False, interpret=True):
    of_range = input.is_floating_point() and min == max == 0
    name = "histc_of_range" if of_range else "histc"
    return ROWS[name]((input, bins, float(min), float(max)), strict, interpret)
