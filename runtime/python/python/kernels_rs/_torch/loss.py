"""Cross-entropy of logits and class indices."""

import torch
import torch.nn.functional as F

from .. import _native
from .._checks import _smoothing
from ._operator import Operator, ROWS, as_rows, new_tensor, note_torch, stream_of


def _loss(logits, labels, smoothing):
    loss, log_sum = _loss_fake(logits, labels, smoothing)
    _native.cross_entropy(as_rows(logits), labels.contiguous(), loss, log_sum, smoothing, stream_of(logits))
    return loss, log_sum


def _loss_fake(logits, labels, smoothing):
    return tuple(new_tensor(logits, logits.shape[0], dtype=torch.float32) for _ in range(2))


def _loss_torch(logits, labels, smoothing):
    return F.cross_entropy(logits, labels.long(), reduction="none", label_smoothing=smoothing, ignore_index=-1)


def _loss_save(ctx, inputs, output):
    logits, labels, ctx.smoothing = inputs
    ctx.save_for_backward(logits, labels, output[1])
    ctx.mark_non_differentiable(output[1])


def _loss_gradient(ctx, dloss, _):
    return ROWS["cross_entropy_backward"].results(*ctx.saved_tensors, dloss, ctx.smoothing), None, None


def _loss_backward(logits, labels, log_sum, dloss, smoothing):
    dx = new_tensor(logits)
    operands = as_rows(logits), labels.contiguous(), log_sum, dloss.contiguous()
    _native.cross_entropy_backward(*operands, dx, smoothing, stream_of(logits))
    return dx


TABLE = [
    Operator(
        "cross_entropy",
        "(Tensor logits, Tensor labels, float smoothing) -> (Tensor, Tensor)",
        kernel=_loss,
        fake=_loss_fake,
        torch=_loss_torch,
        save=_loss_save,
        backward=_loss_gradient,
    ),
    Operator(
        "cross_entropy_backward",
        "(Tensor logits, Tensor labels, Tensor log_sum, Tensor dloss, float smoothing) -> Tensor",
        kernel=_loss_backward,
        fake=lambda logits, labels, log_sum, dloss, smoothing: new_tensor(logits),
    ),
]


def cross_entropy(
    input, target, *, ignore_index=-100, reduction="mean", label_smoothing=0.0, strict=False, interpret=True
):
    _smoothing(label_smoothing)
    if input.dim() != 2 or target.dim() != 1 or target.is_floating_point():
        note_torch("cross_entropy", "logits of another rank than (rows, classes), or probabilities", strict)
        return F.cross_entropy(
            input, target, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
        )
    ignored = (target == ignore_index) | (target < 0) | (target >= input.shape[1])
    labels = torch.where(ignored, -1, target).to(torch.int32)
    loss = ROWS["cross_entropy"]((input, labels, label_smoothing), strict, interpret)
    if reduction == "none":
        return loss
    if reduction not in ("sum", "mean"):
        raise ValueError(f"reduction = {reduction!r}: expected 'none', 'sum' or 'mean'")
    return loss.sum() if reduction == "sum" else loss.sum() / (~ignored).sum()
