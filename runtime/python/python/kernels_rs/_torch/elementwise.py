"""Gates of two halves and of two tensors, and activations."""

import functools

import torch.nn.functional as F

from .. import _native
from .._checks import _form_of_gelu
from ._operator import Operator, ROWS, as_rows, new_tensor, stream_of

GATES = {"swiglu": F.silu, "geglu": F.gelu, "geglu_tanh": functools.partial(F.gelu, approximate="tanh")}
ACTIVATIONS = {"silu": F.silu, "gelu": F.gelu, "gelu_tanh": functools.partial(F.gelu, approximate="tanh")}


def _halves(x):
    return x.chunk(2, -1)


def _gate(name, input):
    y = new_tensor(input, *input.shape[:-1], input.shape[-1] // 2)
    _native.gate(name, as_rows(input), y, stream_of(input))
    return y


def _gate_backward(name, input, dy):
    dx = new_tensor(input)
    _native.gate_backward(name, *_halves(as_rows(input)), as_rows(dy), *_halves(dx), stream_of(input))
    return dx


def _pair(name, gate, up):
    y = new_tensor(gate)
    _native.gate_of_two(name, as_rows(gate), as_rows(up), y, stream_of(gate))
    return y


def _pair_backward(name, gate, up, dy):
    of_gate, of_up = new_tensor(gate), new_tensor(up)
    _native.gate_backward(name, as_rows(gate), as_rows(up), as_rows(dy), of_gate, of_up, stream_of(gate))
    return of_gate, of_up


def _activation(name, input):
    y = new_tensor(input)
    _native.activation(name, as_rows(input), y, stream_of(input))
    return y


def _activation_backward(name, input, dy):
    dx = new_tensor(input)
    _native.activation_backward(name, as_rows(input), as_rows(dy), dx, stream_of(input))
    return dx


def _save_all(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _elementwise_gradient(name, ctx, dy):
    return ROWS[name].results(*ctx.saved_tensors, dy)


def _odd(input):
    return "an odd last axis, which has no halves" if input.shape[-1] % 2 else None


def _unequal(gate, up):
    return "a gate and an operand of different shapes" if gate.shape != up.shape else None


def _elementwise_rows():
    """Yields the rows of gates and activations."""
    bind = functools.partial
    one, two = "(Tensor input) -> Tensor", "(Tensor gate, Tensor up) -> Tensor"
    for name, f in GATES.items():
        yield Operator(
            name,
            one,
            kernel=bind(_gate, name),
            fake=lambda input: new_tensor(input, *input.shape[:-1], input.shape[-1] // 2),
            torch=lambda input, f=f: f(_halves(input)[0]) * _halves(input)[1],
            refuse=_odd,
            save=_save_all,
            backward=bind(_elementwise_gradient, f"{name}_backward"),
        )
        yield Operator(
            f"{name}_backward",
            "(Tensor input, Tensor dy) -> Tensor",
            kernel=bind(_gate_backward, name),
            fake=lambda input, dy: new_tensor(input),
        )
        yield Operator(
            f"{name}_of_two",
            two,
            kernel=bind(_pair, name),
            fake=lambda gate, up: new_tensor(gate),
            torch=lambda gate, up, f=f: f(gate) * up,
            refuse=_unequal,
            save=_save_all,
            backward=bind(_elementwise_gradient, f"{name}_of_two_backward"),
        )
        yield Operator(
            f"{name}_of_two_backward",
            "(Tensor gate, Tensor up, Tensor dy) -> (Tensor, Tensor)",
            kernel=bind(_pair_backward, name),
            fake=lambda gate, up, dy: (new_tensor(gate), new_tensor(up)),
        )
    for name, f in ACTIVATIONS.items():
        yield Operator(
            name,
            one,
            kernel=bind(_activation, name),
            fake=lambda input: new_tensor(input),
            torch=f,
            save=_save_all,
            backward=bind(_elementwise_gradient, f"{name}_backward"),
        )
        yield Operator(
            f"{name}_backward",
            "(Tensor input, Tensor dy) -> Tensor",
            kernel=bind(_activation_backward, name),
            fake=lambda input, dy: new_tensor(input),
        )


TABLE = list(_elementwise_rows())


def _gate_of(name, input, up, strict, interpret):
    if up is None:
        return ROWS[name]((input,), strict, interpret)
    return ROWS[f"{name}_of_two"]((input, up), strict, interpret)


def swiglu(input, up=None, *, strict=False, interpret=True):
    return _gate_of("swiglu", input, up, strict, interpret)


def geglu(input, up=None, *, approximate="none", strict=False, interpret=True):
    return _gate_of(_form_of_gelu("geglu", approximate), input, up, strict, interpret)


def silu(input, *, strict=False, interpret=True):
    return ROWS["silu"]((input,), strict, interpret)


def gelu(input, approximate="none", *, strict=False, interpret=True):
    return ROWS[_form_of_gelu("gelu", approximate)]((input,), strict, interpret)
