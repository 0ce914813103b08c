"""The step of AdamW, which changes its operands and so is not an operator of the table."""

import torch

from .. import _native
from .._fallback import COUNTERS
from ._operator import note_torch, stream_of, unsupported_tensors

_COUNT_STEP = COUNTERS.counter("adamw")


def adamw(weight, gradient, m, v, step, rate, betas, eps, decay, *, strict, interpret):
    """Updates the weight and its moments m and v with a gradient."""
    weight = weight.detach()
    reason = unsupported_tensors((weight, gradient), interpret, True)
    if reason is None and not (weight.is_contiguous() and m.is_contiguous() and v.is_contiguous()):
        reason = "weights in another order than rows"
    if reason is None:
        _COUNT_STEP()
        flat = tuple(x.reshape(-1) for x in (gradient, m, v))
        _native.adamw(weight.view(-1), flat[0], flat[1:], step, rate, betas, eps, decay, stream_of(weight))
        torch.autograd.graph.increment_version(weight)
        return
    note_torch("adamw", reason, strict)
    gradient = gradient.to(m.dtype)
    m.lerp_(gradient, 1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    length = m / ((v / (1 - betas[1] ** step)).sqrt_() + eps)
    weight.copy_(weight.to(m.dtype).mul_(1 - rate * decay).sub_(length, alpha=rate / (1 - betas[0] ** step)))
