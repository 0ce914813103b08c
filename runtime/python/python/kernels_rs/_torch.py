"""Operators of PyTorch: the library with gradients, for torch.compile and torch.export.

`TABLE` has a row for each operator: its schema, the call of the kernel, the shapes of its results,
its gradient, and the same in PyTorch. The registrations follow from it. The functions below the
table have the names and arguments of the library.

A call that no kernel supports is PyTorch's own operator, with its own gradient. The reason depends
on types, devices and shapes only, so that torch.compile decides when it traces.
"""

import functools

import torch
import torch.nn.functional as F

from . import _native
from ._fallback import COUNTERS

FLOATS = (torch.float32, torch.float16, torch.bfloat16)

# The kernels count elements of an array in 32 bits.
MAX_ELEMENTS = 2**31

GATES = {"swiglu": F.silu, "geglu": F.gelu, "geglu_tanh": functools.partial(F.gelu, approximate="tanh")}
ACTIVATIONS = {"silu": F.silu, "gelu": F.gelu, "gelu_tanh": functools.partial(F.gelu, approximate="tanh")}


class Operator:
    """A row of the table.

    `kernel` computes the results from operands without gradients, `torch` the first of them.
    `refuse` returns why no kernel takes the arguments, or None. `save` stores what `backward`
    needs. `mixed` allows several float types. `scratch` states that the kernel's own memory is
    written before it is read, `constants` that it is a table of the device.
    """

    def __init__(
        self,
        name,
        schema,
        *,
        kernel,
        fake,
        torch=None,
        refuse=None,
        save=None,
        backward=None,
        mixed=False,
        scratch=False,
        constants=False,
    ):
        self.name, self.schema, self.kernel, self.fake = name, schema, kernel, fake
        # Calls on a GPU that repeat an earlier one submit its launches, and skip what leads to them.
        self.repeats = _native.Repeats(scratch, constants)
        self.torch, self.refuse, self.save, self.backward, self.mixed = torch, refuse, save, backward, mixed
        if backward is None:
            self.save, self.backward = lambda ctx, inputs, output: None, self._undifferentiable
        self.overload, self.function = None, _function(self)

    def _undifferentiable(self, ctx, *gradients):
        raise RuntimeError(f"{self.name} of kernels_rs has no derivative, so its function has no second derivative")

    def reason(self, arguments, interpret):
        """Returns why no kernel takes the arguments, or None."""
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
        found = _unsupported_tensors(tensors, interpret, self.mixed)
        if found is None and self.refuse is not None:
            found = self.refuse(*arguments)
        return found

    def counted(self, *arguments):
        """Runs the kernel, and counts it."""
        COUNTERS.kernel(self.name)
        results = self.repeats.again(arguments, False)
        if results is None:
            plain = (x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x for x in arguments)
            results = self.repeats.first(self.kernel, tuple(plain))
        return results

    def results(self, *arguments):
        """Computes the results by the kernel."""
        results = self._repeated(arguments)
        return self._computed(arguments) if results is None else results

    def _repeated(self, arguments):
        """Returns the results of a call that repeats an earlier one on a GPU, or None."""
        if torch.compiler.is_compiling():
            return None
        results = self.repeats.again(arguments, True)
        if results is NotImplemented:
            return self.function(*arguments)
        if results is not None:
            COUNTERS.kernel(self.name)
        return results

    def _computed(self, arguments):
        if not _is_eager(arguments):
            return self.overload(*arguments)
        if not _needs_gradient(arguments):
            return self.counted(*arguments)
        return self.function(*arguments)

    def __call__(self, arguments, strict, interpret):
        """Computes the first result by the kernel, or in PyTorch."""
        results = self._repeated(arguments)
        if results is None:
            reason = self.reason(arguments, interpret)
            if reason is not None:
                _in_torch(self.name, reason, strict)
                return self.torch(*arguments)
            results = self._computed(arguments)
        return results[0] if isinstance(results, (tuple, list)) else results


def _function(row):
    """Returns the operator as a function of PyTorch's autograd, which takes a part of the dispatcher's time."""

    # PyTorch inspects the signature at each call if the saving is a method of its own.
    def forward(ctx, *arguments):
        results = row.counted(*arguments)
        row.save(ctx, arguments, results)
        return results

    methods = {"forward": staticmethod(forward), "backward": staticmethod(row.backward)}
    return type(row.name, (torch.autograd.Function,), methods).apply


def _in_torch(name, reason, strict):
    # A graph has no counters: a call that is being traced is counted as little as PyTorch's own.
    if strict or not torch.compiler.is_compiling():
        COUNTERS.torch(name, reason, strict)


def _is_eager(arguments):
    """Returns whether the tensors have memory, and no tracing or transformation needs the operator."""
    if torch.compiler.is_compiling():
        return False
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    for x in arguments:
        if isinstance(x, torch.Tensor) and (type(x) not in (torch.Tensor, torch.nn.Parameter) or x.is_neg()):
            return False
    return True


def _needs_gradient(arguments):
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in arguments)


@functools.lru_cache(maxsize=None)
def _opens(device):
    return device in _native.devices()


def _unsupported_tensors(tensors, interpret, mixed):
    """Returns what the kernels do not support of the tensors' devices, types or extents, or None."""
    device = tensors[0].device
    for x in tensors:
        if x.device != device:
            return "operands on several devices"
        if x.layout is not torch.strided:
            return f"the layout {x.layout}"
        if x.numel() == 0:
            return "a tensor without elements"
        if x.numel() >= MAX_ELEMENTS:
            return "a tensor of 2**31 elements or more"
    if device.type == "cpu":
        if not interpret:
            return "tensors of the CPU"
    elif device.type != "cuda" or not torch.compiler.is_compiling() and not _opens(f"cuda:{device.index}"):
        return f"tensors of {device}, which the CUDA driver does not have"
    types = [x.dtype for x in tensors if x.is_floating_point() or x.is_complex()]
    if not types:
        return "elements that are not floats"
    for dtype in types:
        if dtype not in FLOATS:
            return f"elements of {str(dtype)[6:]}"
        if dtype != types[0] and not mixed:
            return "operands of different element types"
    return None


def _stream(x):
    """Returns the current stream of a tensor's device, in whose order the work runs."""
    return torch._C._cuda_getCurrentRawStream(x.get_device()) if x.is_cuda else None


def _rows(x):
    """Returns a tensor whose rows the kernels take: the last stride is 1, and outer axes can be joined."""
    return x if x.is_contiguous() or x.dim() == 2 and x.stride(-1) == 1 else x.contiguous()


def _new(x, *shape, dtype=None):
    """Returns an empty tensor, row-major, of the shape, type and device of x where they are not given."""
    if not shape and dtype is None:
        return torch.empty_like(x, memory_format=torch.contiguous_format)
    return x.new_empty(shape or x.shape, dtype=dtype)


# Softmax


def _softmax(input, dim, scale, log, causal):
    y = _new(input)
    _native.softmax(_rows(input), y, scale, log, causal, _stream(input))
    return y


def _softmax_torch(input, dim, scale, log, causal):
    x = input * scale if scale != 1 else input
    if causal:
        # Rows are the queries of consecutive sequences; the last key is that of the last query.
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
    dx = _new(y)
    _native.softmax_backward(_rows(y), _rows(dy), dx, scale, log, _stream(y))
    return dx


# Norms


def _norm(input, weight, bias, eps, centered):
    x = _rows(input)
    y, saved = _norm_fake(input, weight, bias, eps, centered)
    vectors = [None if v is None else v.contiguous() for v in (weight, bias)]
    _native.norm(x, *vectors, y, eps, centered, _stream(x), saved)
    return y, saved


def _norm_torch(input, weight, bias, eps, centered):
    if centered:
        return F.layer_norm(input, input.shape[-1:], weight, bias, eps)
    y = F.rms_norm(input, input.shape[-1:], weight, eps)
    return y if bias is None else y + bias


def _norm_fake(input, weight, bias, eps, centered):
    return _new(input), _new(input, input.numel() // input.shape[-1], 2, dtype=torch.float32)


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
    _native.norm_backward(_rows(input), saved, _rows(dy), dx, *given, centered, _stream(input))
    return dx, dweight, dbias


def _norm_backward_fake(input, weight, saved, dy, centered, columns, biased):
    like = input if weight is None else weight
    n = input.shape[-1]
    return _new(input), _new(like, n if columns else 0), _new(like, n if biased else 0)


def _norm_refuse(input, weight, bias, eps, centered):
    for x in (weight, bias):
        if x is not None and x.shape != input.shape[-1:]:
            return "a weight or bias of another shape than the last axis"
    if weight is None and bias is not None:
        return "a bias without a weight"
    if bias is not None and bias.dtype != weight.dtype:
        return "operands of different element types"
    return None


# Gates of two halves and of two tensors, and activations


def _halves(x):
    return x.chunk(2, -1)


def _gate(name, input):
    y = _new(input, *input.shape[:-1], input.shape[-1] // 2)
    _native.gate(name, _rows(input), y, _stream(input))
    return y


def _gate_backward(name, input, dy):
    dx = _new(input)
    _native.gate_backward(name, *_halves(_rows(input)), _rows(dy), *_halves(dx), _stream(input))
    return dx


def _pair(name, gate, up):
    y = _new(gate)
    _native.gate_of_two(name, _rows(gate), _rows(up), y, _stream(gate))
    return y


def _pair_backward(name, gate, up, dy):
    of_gate, of_up = _new(gate), _new(up)
    _native.gate_backward(name, _rows(gate), _rows(up), _rows(dy), of_gate, of_up, _stream(gate))
    return of_gate, of_up


def _activation(name, input):
    y = _new(input)
    _native.activation(name, _rows(input), y, _stream(input))
    return y


def _activation_backward(name, input, dy):
    dx = _new(input)
    _native.activation_backward(name, _rows(input), _rows(dy), dx, _stream(input))
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
            fake=lambda input: _new(input, *input.shape[:-1], input.shape[-1] // 2),
            torch=lambda input, f=f: f(_halves(input)[0]) * _halves(input)[1],
            refuse=_odd,
            save=_save_all,
            backward=bind(_elementwise_gradient, f"{name}_backward"),
        )
        yield Operator(
            f"{name}_backward",
            "(Tensor input, Tensor dy) -> Tensor",
            kernel=bind(_gate_backward, name),
            fake=lambda input, dy: _new(input),
        )
        yield Operator(
            f"{name}_of_two",
            two,
            kernel=bind(_pair, name),
            fake=lambda gate, up: _new(gate),
            torch=lambda gate, up, f=f: f(gate) * up,
            refuse=_unequal,
            save=_save_all,
            backward=bind(_elementwise_gradient, f"{name}_of_two_backward"),
        )
        yield Operator(
            f"{name}_of_two_backward",
            "(Tensor gate, Tensor up, Tensor dy) -> (Tensor, Tensor)",
            kernel=bind(_pair_backward, name),
            fake=lambda gate, up, dy: (_new(gate), _new(up)),
        )
    for name, f in ACTIVATIONS.items():
        yield Operator(
            name,
            one,
            kernel=bind(_activation, name),
            fake=lambda input: _new(input),
            torch=f,
            save=_save_all,
            backward=bind(_elementwise_gradient, f"{name}_backward"),
        )
        yield Operator(
            f"{name}_backward",
            "(Tensor input, Tensor dy) -> Tensor",
            kernel=bind(_activation_backward, name),
            fake=lambda input, dy: _new(input),
        )


# Products


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
    c = _new(a, *_product_shape(a, b, transpose_a, transpose_b))
    (a, transpose_a), (b, transpose_b) = _operand(a, transpose_a), _operand(b, transpose_b)
    bias = None if bias is None else bias.contiguous()
    _native.product(a, b, bias, c, transpose_a, transpose_b, stream=_stream(a))
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


# Cross-entropy


def _loss(logits, labels, smoothing):
    loss, log_sum = _loss_fake(logits, labels, smoothing)
    _native.cross_entropy(_rows(logits), labels.contiguous(), loss, log_sum, smoothing, _stream(logits))
    return loss, log_sum


def _loss_fake(logits, labels, smoothing):
    return tuple(_new(logits, logits.shape[0], dtype=torch.float32) for _ in range(2))


def _loss_torch(logits, labels, smoothing):
    return F.cross_entropy(logits, labels.long(), reduction="none", label_smoothing=smoothing, ignore_index=-1)


def _loss_save(ctx, inputs, output):
    logits, labels, ctx.smoothing = inputs
    ctx.save_for_backward(logits, labels, output[1])
    ctx.mark_non_differentiable(output[1])


def _loss_gradient(ctx, dloss, _):
    return ROWS["cross_entropy_backward"].results(*ctx.saved_tensors, dloss, ctx.smoothing), None, None


def _loss_backward(logits, labels, log_sum, dloss, smoothing):
    dx = _new(logits)
    operands = _rows(logits), labels.contiguous(), log_sum, dloss.contiguous()
    _native.cross_entropy_backward(*operands, dx, smoothing, _stream(logits))
    return dx


# Rotary embedding


def _rotary(x, positions, frequencies, axes, interleaved):
    y = _new(x)
    x = x if x.stride(-1) == 1 else x.contiguous()
    axes = None if axes is None else list(axes)
    _native.rotary(x, positions.contiguous(), y, list(frequencies), axes, interleaved, _stream(x))
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


# Attention


def _attention(query, key, value, causal, scale, window):
    o, lse = _attention_fake(query, key, value, causal, scale, window)
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    _native.attention(q, k, v, o, scale, causal, _pair_of(window), _stream(q), lse)
    return o, lse


def _pair_of(window):
    return None if window is None else tuple(window)


def _attention_fake(query, key, value, causal, scale, window):
    return _new(query, *query.shape[:-1], value.shape[-1]), _new(query, *query.shape[:-1], dtype=torch.float32)


def _attention_torch(query, key, value, causal, scale, window):
    queries, keys = query.shape[-2], key.shape[-2]
    mask = None
    if window is not None or causal and queries != keys:
        # The last query is aligned with the last key.
        behind = torch.arange(queries, device=query.device)[:, None] + keys - queries
        behind = behind - torch.arange(keys, device=query.device)
        left, right = window if window is not None else (keys + queries, keys + queries)
        mask = (behind <= left) & (behind >= (0 if causal else -right))
        causal = False
    groups = query.shape[-3] // key.shape[-3]
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    return F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal, scale=scale)


def _attention_refuse(query, key, value, causal, scale, window):
    if any(x.dim() != 4 for x in (query, key, value)):
        return "queries, keys or values of another rank than (batch, heads, tokens, size)"
    if query.shape[0] != key.shape[0] or key.shape[:3] != value.shape[:3] or query.shape[3] != key.shape[3]:
        return "queries, keys and values whose extents differ"
    if query.shape[1] % key.shape[1]:
        return "heads of queries that are no multiple of those of keys"
    return None


def _attention_save(ctx, inputs, output):
    query, key, value, ctx.causal, ctx.scale, ctx.window = inputs
    ctx.save_for_backward(query, key, value, *output)
    ctx.mark_non_differentiable(output[1])


def _attention_gradient(ctx, do, _):
    gradients = ROWS["attention_backward"].results(*ctx.saved_tensors, do, ctx.causal, ctx.scale, ctx.window)
    return *gradients, None, None, None


def _attention_backward(query, key, value, o, lse, do, causal, scale, window):
    gradients = tuple(_new(x) for x in (query, key, value))
    operands = tuple(x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    results = o, do if do.stride(-1) == 1 else do.contiguous(), lse
    _native.attention_backward(operands, results, gradients, scale, causal, _pair_of(window), _stream(query))
    return gradients


# Fake quantization

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
    kernel = _native.compile(QUANTIZATION, name, file="kernels_rs/_torch.py")
    # These kernels take matrices.
    x, *others = (t.contiguous().reshape(-1, x.shape[-1]) for t in (x, *tensors))
    kernel(x, scale.reshape(-1).contiguous(), *limits, *others, stream=_stream(x), unchecked=x.is_cuda)


def _fake_quantize(input, scale, zero, least, most):
    y = _new(input)
    _quantization("quantized", input, scale, (zero, least, most), y)
    return y


def _fake_quantize_backward(input, scale, zero, least, most, dy):
    dx = _new(input)
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
        "softmax",
        "(Tensor input, int dim, float scale, bool log, int causal) -> Tensor",
        kernel=_softmax,
        fake=lambda input, dim, scale, log, causal: _new(input),
        torch=_softmax_torch,
        refuse=_softmax_refuse,
        save=_softmax_save,
        backward=_softmax_gradient,
    ),
    Operator(
        "softmax_backward",
        "(Tensor y, Tensor dy, float scale, bool log) -> Tensor",
        kernel=_softmax_backward,
        fake=lambda y, dy, scale, log: _new(y),
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
    Operator(
        "norm_backward",
        "(Tensor input, Tensor? weight, Tensor saved, Tensor dy, bool centered, bool columns, bool biased)"
        " -> (Tensor, Tensor, Tensor)",
        kernel=_norm_backward,
        fake=_norm_backward_fake,
        scratch=True,
    ),
    *_elementwise_rows(),
    Operator(
        "product",
        "(Tensor a, Tensor b, Tensor? bias, bool transpose_a, bool transpose_b) -> Tensor",
        kernel=_product,
        fake=lambda a, b, bias, ta, tb: _new(a, *_product_shape(a, b, ta, tb)),
        torch=_product_torch,
        refuse=_product_refuse,
        save=_product_save,
        backward=_product_gradient,
    ),
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
        fake=lambda logits, labels, log_sum, dloss, smoothing: _new(logits),
    ),
    Operator(
        "rotary",
        "(Tensor x, Tensor positions, float[] frequencies, int[]? axes, bool interleaved) -> Tensor",
        kernel=_rotary,
        fake=lambda x, positions, frequencies, axes, interleaved: _new(x),
        constants=True,
        torch=_rotary_torch,
        refuse=_rotary_refuse,
        save=_rotary_save,
        backward=_rotary_gradient,
    ),
    Operator(
        "fake_quantize",
        "(Tensor input, Tensor scale, int zero, int least, int most) -> Tensor",
        kernel=_fake_quantize,
        fake=lambda input, scale, zero, least, most: _new(input),
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
        fake=lambda input, scale, zero, least, most, dy: _new(input),
    ),
    Operator(
        "attention",
        "(Tensor query, Tensor key, Tensor value, bool causal, float? scale, int[]? window) -> (Tensor, Tensor)",
        kernel=_attention,
        fake=_attention_fake,
        torch=_attention_torch,
        refuse=_attention_refuse,
        save=_attention_save,
        backward=_attention_gradient,
    ),
    Operator(
        "attention_backward",
        "(Tensor query, Tensor key, Tensor value, Tensor o, Tensor lse, Tensor do, bool causal, float? scale,"
        " int[]? window) -> (Tensor, Tensor, Tensor)",
        kernel=_attention_backward,
        fake=lambda query, key, value, *_: tuple(_new(x) for x in (query, key, value)),
    ),
]


def _registered(table):
    """Registers the operators. Returns the library, which keeps the registrations, and a dict of the rows."""
    if not hasattr(torch.library, "register_autograd"):
        raise ImportError(f"kernels_rs needs PyTorch 2.4 for its operators, and finds {torch.__version__}")
    library = torch.library.Library("kernels_rs", "DEF")
    for row in table:
        library.define(row.name + row.schema)
        library.impl(row.name, row.counted, "CompositeExplicitAutograd")
        torch.library.register_fake(f"kernels_rs::{row.name}", row.fake, lib=library)
        torch.library.register_autograd(f"kernels_rs::{row.name}", row.backward, setup_context=row.save, lib=library)
        row.overload = getattr(getattr(torch.ops.kernels_rs, row.name), "default")
    return library, {row.name: row for row in table}


LIBRARY, ROWS = _registered(TABLE)


# The functions of the library


def softmax(input, dim=-1, dtype=None, *, scale=1.0, causal=0, strict=False, interpret=True, log=False):
    if dtype is not None:
        input = input.to(getattr(torch, dtype) if isinstance(dtype, str) else dtype)
    return ROWS["softmax"]((input, dim, scale, log, causal), strict, interpret)


def log_softmax(input, dim=-1, dtype=None, *, scale=1.0, causal=0, strict=False, interpret=True):
    return softmax(input, dim, dtype, scale=scale, causal=causal, strict=strict, interpret=interpret, log=True)


def _normalized(input, normalized_shape, weight, bias, eps, centered, strict, interpret):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if shape == tuple(input.shape[-1:]):
        return ROWS["norm"]((input, weight, bias, eps, centered), strict, interpret)
    _in_torch("norm", "a norm over several axes", strict)
    if centered:
        return F.layer_norm(input, shape, weight, bias, eps)
    return F.rms_norm(input, shape, weight, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None, *, strict=False, interpret=True):
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    return _normalized(input, normalized_shape, weight, None, eps, False, strict, interpret)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, *, strict=False, interpret=True):
    return _normalized(input, normalized_shape, weight, bias, eps, True, strict, interpret)


def _gate_of(name, input, up, strict, interpret):
    if up is None:
        return ROWS[name]((input,), strict, interpret)
    return ROWS[f"{name}_of_two"]((input, up), strict, interpret)


def swiglu(input, up=None, *, strict=False, interpret=True):
    return _gate_of("swiglu", input, up, strict, interpret)


def geglu(input, up=None, *, approximate="none", strict=False, interpret=True):
    return _gate_of("geglu_tanh" if approximate == "tanh" else "geglu", input, up, strict, interpret)


def silu(input, *, strict=False, interpret=True):
    return ROWS["silu"]((input,), strict, interpret)


def gelu(input, approximate="none", *, strict=False, interpret=True):
    return ROWS["gelu_tanh" if approximate == "tanh" else "gelu"]((input,), strict, interpret)


def matmul(input, other, *, strict=False, interpret=True):
    if input.dim() > 3 and input.dim() == other.dim() and input.shape[:-2] == other.shape[:-2]:
        a, b = input.flatten(0, -3), other.flatten(0, -3)
        c = ROWS["product"]((a, b, None, False, False), strict, interpret)
        return c.reshape(*input.shape[:-2], *c.shape[-2:])
    if input.dim() < 2 or other.dim() < 2:
        _in_torch("product", "vectors", strict)
        return torch.matmul(input, other)
    return ROWS["product"]((input, other, None, False, False), strict, interpret)


def linear(input, weight, bias=None, *, strict=False, interpret=True):
    y = ROWS["product"]((input.reshape(-1, input.shape[-1]), weight, bias, False, True), strict, interpret)
    return y.reshape(*input.shape[:-1], weight.shape[0])


def cross_entropy(
    input, target, *, ignore_index=-100, reduction="mean", label_smoothing=0.0, strict=False, interpret=True
):
    if input.dim() != 2 or target.dim() != 1 or target.is_floating_point():
        _in_torch("cross_entropy", "logits of another rank than (rows, classes), or probabilities", strict)
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


def fake_quantize(
    input, scale, zero_point=0, quant_min=-128, quant_max=127, *, strict=False, interpret=True
):
    """Returns the input rounded to a grid of integers times a scale, for training of quantized models.

    `scale` is a number, a tensor of one element, or of one for each row of a matrix, in float32. The
    gradient is that of the identity within the range, and 0 beyond (straight-through); the scale
    has none. PyTorch's `fake_quantize_per_tensor_affine` multiplies by 1 / scale where this divides.
    """
    if not isinstance(scale, torch.Tensor):
        scale = torch.full((1,), scale, dtype=torch.float32, device=input.device)
    return ROWS["fake_quantize"]((input, scale, zero_point, quant_min, quant_max), strict, interpret)


def attention(query, key, value, *, causal=False, scale=None, window=None, strict=False, interpret=True):
    window = None if window is None else list(window)
    return ROWS["attention"]((query, key, value, causal, scale, window), strict, interpret)


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
    *,
    strict=False,
    interpret=True,
):
    reason = None
    if attn_mask is not None:
        reason = "a mask"
    elif dropout_p:
        reason = "dropout"
    elif is_causal and query.shape[-2] != key.shape[-2]:
        reason = "a causal mask with another number of queries than keys"
    elif not enable_gqa and query.shape[-3:-2] != key.shape[-3:-2]:
        reason = "other heads of queries than of keys without enable_gqa"
    if reason is None:
        return attention(query, key, value, causal=is_causal, scale=scale, strict=strict, interpret=interpret)
    _in_torch("attention", reason, strict)
    groups = query.shape[-3] // key.shape[-3] if enable_gqa else 1
    if groups > 1 and attn_mask is not None:
        # With a mask, PyTorch has fast kernels for equal numbers of heads only.
        key, value, enable_gqa = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3), False
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


# The optimizer's step. It changes its operands, so it is no operator of the table.


def adamw(weight, gradient, m, v, step, rate, betas, eps, decay, *, strict, interpret):
    """Updates the weight and its moments m and v with a gradient."""
    weight = weight.detach()
    reason = _unsupported_tensors((weight, gradient), interpret, True)
    if reason is None and not (weight.is_contiguous() and m.is_contiguous() and v.is_contiguous()):
        reason = "weights in another order than rows"
    if reason is None:
        COUNTERS.kernel("adamw")
        flat = tuple(x.reshape(-1) for x in (gradient, m, v))
        _native.adamw(weight.view(-1), flat[0], flat[1:], step, rate, betas, eps, decay, _stream(weight))
        torch.autograd.graph.increment_version(weight)
        return
    _in_torch("adamw", reason, strict)
    gradient = gradient.to(m.dtype)
    m.lerp_(gradient, 1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    length = m / ((v / (1 - betas[1] ** step)).sqrt_() + eps)
    weight.copy_(weight.to(m.dtype).mul_(1 - rate * decay).sub_(length, alpha=rate / (1 - betas[0] ** step)))
