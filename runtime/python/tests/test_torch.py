"""PyTorch's operators: values and gradients beside PyTorch in float64, fallback, torch.compile and torch.export."""

import itertools
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import kernels_rs

torch = pytest.importorskip("torch")
F = torch.nn.functional

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
DTYPES = [(torch.float32, 2e-5), (torch.float16, 1e-2), (torch.bfloat16, 8e-2)]


def normal(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rms(x, w, eps):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * w


def rotated(x, interleaved=False):
    n = x.shape[-1]
    angle = POSITIONS.double()[:, None] * 10000.0 ** (-torch.arange(0, n, 2, dtype=torch.float64) / n)
    angle = angle.to(x.device)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    pairs = a * cos - b * sin, a * sin + b * cos
    return torch.stack(pairs, -1).flatten(-2) if interleaved else torch.cat(pairs, -1)


def banded(q, k, v, left, right):
    """Computes attention by its definition; the last query is aligned with the last key."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    behind = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2] - torch.arange(k.shape[2])
    behind = behind.to(q.device)
    logits = q @ k.mT / q.shape[-1] ** 0.5
    return logits.masked_fill((behind > left) | (behind < -right), float("-inf")).softmax(-1) @ v


def rotary_tables(*operands):
    from kernels_rs._torch import rotary_tables

    return rotary_tables(*operands)


def tables(x):
    """Returns cosines and sines that differ between the halves."""
    return (normal(1, 5, 8, seed=seed).to(x) for seed in (20, 21))


POSITIONS = torch.tensor([0, 3, -2, 700])
LABELS = torch.tensor([0, 6, -100, 3])
FAR = 1 << 20

BLOCKS = kernels_rs.BlockMask([[[1, 0, 1], [0, 1, 0]], [[0, 1, 0], [1, 1, 0]]], 70, 130)


def blocked(q, k, v):
    """Returns attention in which each block of 64 queries sees some blocks of 64 keys."""
    logits = (q @ k.mT) / q.shape[-1] ** 0.5
    for head, row, col in itertools.product(range(2), range(2), range(3)):
        if not BLOCKS.seen[head][row][col]:
            logits = logits.clone()
            logits[:, head, 64 * row : 64 * row + 64, 64 * col : 64 * col + 64] = float("-inf")
    return logits.softmax(-1) @ v


def scored(q, k, v, score):
    """Returns attention whose logits are a function of the products, and of the distances to the keys."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    behind = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2] - torch.arange(k.shape[2])
    return score(q @ k.mT / q.shape[-1] ** 0.5, behind.to(q.device)).softmax(-1) @ v


def sequences(q, k, v, spans, rows):
    """Returns causal attention of each span (batch, queries, keys) of rows, and zeros between the spans."""
    parts, at = [], 0
    for batch, (start, stop), (first, end) in spans:
        operands = q[batch : batch + 1, :, start:stop], *(x[batch : batch + 1, :, first:end] for x in (k, v))
        at_row = batch * q.shape[2] + start
        parts += [torch.zeros_like(operands[0])[:, :, :1].expand(-1, -1, at_row - at, -1), banded(*operands, FAR, 0)]
        at = at_row + stop - start
    parts.append(torch.zeros_like(parts[-1])[:, :, :1].expand(-1, -1, rows - at, -1))
    whole = torch.cat(parts, 2)
    return torch.cat(whole.split(q.shape[2], 2), 0)


def listed(x, *numbers, dtype=torch.int64):
    """Returns a tensor of numbers on the device of x."""
    return torch.tensor(numbers, dtype=dtype, device=x.device)


def bias_of(x):
    """Returns a bias that is shared by the heads and leaves out some keys."""
    bias = normal(2, 1, 5, 7, seed=30)
    bias[0, 0, 1, 2:4] = bias[1, 0, 3, 0] = float("-inf")
    return bias.to(x.device)


# For each case: the function, its equivalent in PyTorch in float64, and the operands.
CASES = {
    "softmax": (kernels_rs.softmax, lambda x: x.softmax(-1), [(3, 2, 37)]),
    "softmax scaled": (lambda x: kernels_rs.softmax(x, scale=0.3), lambda x: (0.3 * x).softmax(-1), [(4, 64)]),
    "log_softmax": (kernels_rs.log_softmax, lambda x: x.log_softmax(-1), [(5, 33)]),
    "softmax causal": (
        lambda x: kernels_rs.softmax(x, causal=3),
        lambda x: x.masked_fill(torch.ones(3, 5, device=x.device).triu(3).bool(), float("-inf")).softmax(-1),
        [(2, 3, 5)],
    ),
    "rms_norm": (lambda x, w: kernels_rs.rms_norm(x, 48, w, 1e-6), lambda x, w: rms(x, w, 1e-6), [(2, 3, 48), (48,)]),
    "rms_norm without a weight": (lambda x: kernels_rs.rms_norm(x, 9, None, 1e-6), lambda x: rms(x, 1, 1e-6), [(4, 9)]),
    "layer_norm": (
        lambda x, w, b: kernels_rs.layer_norm(x, 40, w, b),
        lambda x, w, b: F.layer_norm(x, (40,), w, b),
        [(70, 40), (40,), (40,)],
    ),
    "layer_norm without a bias": (
        lambda x, w: kernels_rs.layer_norm(x, (17,), w),
        lambda x, w: F.layer_norm(x, (17,), w),
        [(5, 17), (17,)],
    ),
    "swiglu": (kernels_rs.swiglu, lambda x: F.silu(x[..., :20]) * x[..., 20:], [(2, 3, 40)]),
    "geglu": (kernels_rs.geglu, lambda x: F.gelu(x[..., :5]) * x[..., 5:], [(3, 10)]),
    "geglu tanh": (
        lambda x: kernels_rs.geglu(x, approximate="tanh"),
        lambda x: F.gelu(x[..., :8], approximate="tanh") * x[..., 8:],
        [(3, 16)],
    ),
    "swiglu of two": (kernels_rs.swiglu, lambda a, b: F.silu(a) * b, [(2, 3, 20), (2, 3, 20)]),
    "geglu of two": (kernels_rs.geglu, lambda a, b: F.gelu(a) * b, [(3, 20), (3, 20)]),
    "silu": (kernels_rs.silu, F.silu, [(3, 50)]),
    "gelu": (kernels_rs.gelu, F.gelu, [(3, 50)]),
    "gelu tanh": (lambda x: kernels_rs.gelu(x, "tanh"), lambda x: F.gelu(x, approximate="tanh"), [(50,)]),
    "linear": (kernels_rs.linear, F.linear, [(2, 3, 20), (7, 20), (7,)]),
    "linear without a bias": (kernels_rs.linear, F.linear, [(5, 16), (8, 16)]),
    "linear with silu and a residual": (
        lambda x, w, b, r: kernels_rs.linear(x, w, b, activation="silu", residual=r),
        lambda x, w, b, r: F.silu(F.linear(x, w, b)) + r,
        [(2, 3, 20), (7, 20), (7,), (2, 3, 7)],
    ),
    "linear with relu": (
        lambda x, w: kernels_rs.linear(x, w, activation="relu"),
        lambda x, w: F.linear(x, w).relu(),
        [(5, 16), (8, 16)],
    ),
    "linear with gelu": (
        lambda x, w, b: kernels_rs.linear(x, w, b, activation="gelu"),
        lambda x, w, b: F.gelu(F.linear(x, w, b)),
        [(5, 16), (8, 16), (8,)],
    ),
    "linear with a residual": (
        lambda x, w, r: kernels_rs.linear(x, w, residual=r),
        lambda x, w, r: F.linear(x, w) + r,
        [(5, 16), (8, 16), (5, 8)],
    ),
    "attention of blocks": (
        lambda q, k, v: kernels_rs.attention(q, k, v, blocks=BLOCKS),
        lambda q, k, v: blocked(q, k, v),
        [(1, 2, 70, 8), (1, 2, 130, 8), (1, 2, 130, 8)],
    ),
    "matmul": (kernels_rs.matmul, torch.matmul, [(6, 9), (9, 5)]),
    "matmul of a transpose": (lambda a, b: kernels_rs.matmul(a.T, b), lambda a, b: a.T @ b, [(9, 6), (9, 5)]),
    "matmul of batches": (kernels_rs.matmul, torch.matmul, [(2, 2, 6, 9), (2, 2, 9, 5)]),
    "cross_entropy": (
        lambda x: kernels_rs.cross_entropy(x, LABELS.to(x.device)),
        lambda x: F.cross_entropy(x, LABELS.to(x.device)),
        [(4, 7)],
    ),
    "cross_entropy smoothed": (
        lambda x: kernels_rs.cross_entropy(x, LABELS.to(x.device), label_smoothing=0.2, reduction="sum"),
        lambda x: F.cross_entropy(x, LABELS.to(x.device), label_smoothing=0.2, reduction="sum"),
        [(4, 7)],
    ),
    "rotary": (lambda x: kernels_rs.rotary(x, POSITIONS.to(x.device)), lambda x: rotated(x), [(4, 3, 16)]),
    "rotary of neighbors": (
        lambda x: kernels_rs.rotary(x, POSITIONS.to(x.device), interleaved=True),
        lambda x: rotated(x, True),
        [(4, 3, 16)],
    ),
    "rotary of tables": (
        lambda x: rotary_tables(x, *tables(x)),
        lambda x: x * list(tables(x))[0][:, None] + torch.cat([-x[..., 4:], x[..., :4]], -1) * list(tables(x))[1][:, None],
        [(2, 3, 5, 8)],
    ),
    "attention": (kernels_rs.attention, lambda q, k, v: banded(q, k, v, FAR, FAR), [(2, 2, 9, 8)] * 3),
    "attention causal, grouped": (
        lambda q, k, v: kernels_rs.attention(q, k, v, causal=True),
        lambda q, k, v: banded(q, k, v, FAR, 0),
        [(1, 4, 5, 16), (1, 2, 70, 16), (1, 2, 70, 16)],
    ),
    "attention of a window": (
        lambda q, k, v: kernels_rs.attention(q, k, v, window=(3, 2)),
        lambda q, k, v: banded(q, k, v, 3, 2),
        [(1, 1, 12, 8)] * 3,
    ),
    "attention of transposed heads": (
        lambda q, k, v: kernels_rs.attention(*(x.transpose(1, 2) for x in (q, k, v))),
        lambda q, k, v: banded(*(x.transpose(1, 2) for x in (q, k, v)), FAR, FAR),
        [(1, 9, 2, 8)] * 3,
    ),
    "attention with limited logits": (
        lambda q, k, v: kernels_rs.attention(q, k, v, softcap=1.5),
        lambda q, k, v: scored(q, k, v, lambda x, _: 1.5 * (x / 1.5).tanh()),
        [(1, 2, 5, 8), (1, 1, 9, 8), (1, 1, 9, 8)],
    ),
    "attention with slopes": (
        lambda q, k, v: kernels_rs.attention(q, k, v, causal=True, alibi=listed(q, 0.5, 0.25, dtype=torch.float32)),
        lambda q, k, v: scored(
            q,
            k,
            v,
            lambda x, behind: (x - listed(q, 0.5, 0.25, dtype=x.dtype)[:, None, None] * behind).masked_fill(behind < 0, -1e300),
        ),
        [(1, 2, 4, 8), (1, 2, 6, 8), (1, 2, 6, 8)],
    ),
    "attention with a bias": (
        lambda q, k, v: kernels_rs.attention(q, k, v, bias=bias_of(q)),
        lambda q, k, v: scored(q, k, v, lambda x, _: x + bias_of(q)),
        [(2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)],
    ),
    "attention of a padded batch": (
        lambda q, k, v: kernels_rs.attention(q, k, v, causal=True, lengths=(listed(q, 3, 5), listed(q, 4, 6))),
        lambda q, k, v: sequences(q, k, v, [(0, (0, 3), (0, 4)), (1, (0, 5), (0, 6))], 10),
        [(2, 2, 5, 8), (2, 1, 6, 8), (2, 1, 6, 8)],
    ),
    "attention of a packed batch": (
        lambda q, k, v: kernels_rs.attention(q, k, v, causal=True, offsets=listed(q, 0, 2, 6)),
        lambda q, k, v: sequences(q, k, v, [(0, (0, 2), (0, 2)), (0, (2, 6), (2, 6))], 8),
        [(1, 2, 8, 8)] * 3,
    ),
    "sum": (kernels_rs.sum, torch.sum, [(3, 2, 9)]),
    "sum of rows": (lambda x: kernels_rs.sum(x, -1), lambda x: x.sum(-1), [(3, 2, 9)]),
    "sum of columns": (lambda x: kernels_rs.sum(x, 1, keepdim=True), lambda x: x.sum(1, True), [(3, 4, 5)]),
    "sum of a transpose": (lambda x: kernels_rs.sum(x.mT, -1), lambda x: x.mT.sum(-1), [(3, 4, 5)]),
    "mean": (lambda x: kernels_rs.mean(x, keepdim=True), lambda x: x.mean((0, 1), True), [(4, 9)]),
    "mean of columns": (lambda x: kernels_rs.mean(x, 0), lambda x: x.mean(0), [(4, 9)]),
    "norm": (kernels_rs.norm, torch.linalg.vector_norm, [(4, 9)]),
    "norm of rows": (lambda x: kernels_rs.norm(x, 2, -1), lambda x: x.norm(2, -1), [(2, 4, 9)]),
    "1-norm of columns": (lambda x: kernels_rs.norm(x, 1, 0), lambda x: x.abs().sum(0), [(4, 9)]),
    "max": (kernels_rs.max, lambda x: x.flatten().max(0).values, [(4, 9)]),
    "max of rows": (lambda x: kernels_rs.max(x, 1, keepdim=True), lambda x: x.max(1, True).values, [(4, 9)]),
    "min of columns": (lambda x: kernels_rs.min(x, 0), lambda x: x.min(0).values, [(4, 9)]),
    "scaled_dot_product_attention": (
        lambda q, k, v: kernels_rs.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(1, 2, 6, 8)] * 3,
    ),
}


def near(name, found, expected, tolerance):
    error = ((found.double() - expected).abs() / (1 + expected.abs())).max().item()
    assert error <= tolerance, f"{name}: {error}"


def strict(function, *operands):
    """Calls a function, and fails if PyTorch computed the result."""
    kernels_rs.stats(reset=True)
    y = function(*operands)
    counts = kernels_rs.stats(reset=True)
    assert counts and not any(of["torch"] for of in counts.values()), counts
    return y


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("dtype,tolerance", DTYPES, ids=lambda x: str(x)[6:] if isinstance(x, torch.dtype) else "")
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_match_pytorch(case, dtype, tolerance, on):
    ours, theirs, shapes = CASES[case]
    operands = [normal(*shape, seed=i).to(on, dtype).requires_grad_() for i, shape in enumerate(shapes)]
    wide = [x.detach().double().requires_grad_() for x in operands]
    y, expected = strict(ours, *operands), theirs(*wide)
    near("value", y, expected, tolerance)
    dy = normal(*y.shape, seed=9).to(y)
    found = torch.autograd.grad(y, operands, dy)
    for i, (gradient, of) in enumerate(zip(found, torch.autograd.grad(expected, wide, dy.double()))):
        assert gradient.dtype == dtype
        near(f"gradient {i}", gradient, of, 4 * tolerance)
    with torch.no_grad():
        # Without gradients the kernel runs without the operator.
        assert torch.equal(strict(ours, *operands), y)


@pytest.mark.parametrize("case", CASES)
def test_float64_is_pytorch(case):
    # The fallback has the function's values and gradients: PyTorch differentiates it numerically.
    ours, theirs, shapes = CASES[case]
    operands = [normal(*shape, seed=i).double().requires_grad_() for i, shape in enumerate(shapes)]
    kernels_rs.stats(reset=True)
    torch.testing.assert_close(ours(*operands), theirs(*operands))
    counts = kernels_rs.stats(reset=True)
    assert all(of["kernel"] == 0 and of["torch"] == {"elements of float64": 1} for of in counts.values()), counts
    if sum(x.numel() for x in operands) < 400:
        assert torch.autograd.gradcheck(ours, operands)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [False, True])
def test_fake_quantization_matches_pytorch(dtype, rows, on):
    # Scales are powers of two, so that division and multiplication by the reciprocal are equal; x
    # includes ties.
    x = (torch.arange(-150, 150).reshape(3, 100) / 8).to(on, dtype).requires_grad_()
    scale = torch.tensor([0.25, 0.125, 0.0625] if rows else 0.125, device=on)
    y = kernels_rs.fake_quantize(x, scale if rows else 0.125, 3, -100, 60)
    of_row = scale[:, None] if rows else scale
    q = (x.detach().double() / of_row).round() + 3
    assert torch.equal(y.double(), (q.clamp(-100, 60) - 3) * of_row)
    dy = normal(3, 100).to(x)
    y.backward(dy)
    assert torch.equal(x.grad, torch.where((q >= -100) & (q <= 60), dy, 0))
    theirs = x.detach().float().requires_grad_()
    if rows:
        zeros = torch.full((3,), 3, dtype=torch.int32, device=on)
        z = torch.fake_quantize_per_channel_affine(theirs, scale, zeros, 0, -100, 60)
    else:
        z = torch.fake_quantize_per_tensor_affine(theirs, 0.125, 3, -100, 60)
    z.backward(dy.float())
    assert torch.equal(y.float(), z) and torch.equal(x.grad.float(), theirs.grad)
    wide = x.detach().double().requires_grad_()
    with pytest.raises(kernels_rs.Unsupported, match="float64"):
        kernels_rs.fake_quantize(wide, 0.125, strict=True)
    with pytest.raises(kernels_rs.Unsupported, match="neither one number nor one for each row"):
        kernels_rs.fake_quantize(x, torch.ones(7, device=on), strict=True)


def test_second_derivatives_match_pytorch():
    a, b = (normal(4, 4, seed=i).requires_grad_() for i in range(2))
    (first,) = torch.autograd.grad(kernels_rs.matmul(a, b).square().sum(), a, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), b)
    wide = [x.detach().double().requires_grad_() for x in (a, b)]
    (expected,) = torch.autograd.grad((wide[0] @ wide[1]).square().sum(), wide[0], create_graph=True)
    near("second", second, torch.autograd.grad(expected.sum(), wide[1])[0], 1e-4)
    (first,) = torch.autograd.grad(kernels_rs.gelu(a).square().sum(), a, create_graph=True)
    torch.testing.assert_close(first, torch.autograd.grad(F.gelu(a).square().sum(), a)[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="gelu_backward of kernels_rs has no derivative"):
        torch.autograd.grad(first.sum(), a)


QUANTIZED = kernels_rs.QuantizedLinear(normal(6, 64), "Q8_0").prepare()


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("shape", [(1, 64), (5, 64), (2, 3, 64)])
def test_quantized_linear_is_near_linear(shape, on):
    weight, x = normal(6, 64).to(on), normal(*shape, seed=2).to(on)
    layer = kernels_rs.QuantizedLinear(weight, "Q8_0")
    kernels_rs.stats(reset=True)
    found = layer(x)
    assert kernels_rs.stats()["quantized_linear"] == {"kernel": 1, "torch": {}}
    out = torch.empty(*shape[:-1], 6, device=on)
    layer(x, out=out)
    assert torch.equal(found, out)
    near("value", found, F.linear(x.double(), weight.double()), 0.1)
    compiled = torch.compile(lambda x: layer(x) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), found + 1)
    with pytest.raises(TypeError, match="Q8_0 takes float32"):
        layer(x.double())
    with pytest.raises(TypeError, match=r"\(rows, 64\)"):
        layer(x[..., :32])
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="quantized_linear of kernels_rs has no gradient"):
        layer(x).sum().backward()


@pytest.mark.parametrize("on", DEVICES)
def test_quantized_linear_accepts_formats_without_a_plane_of_scales(on):
    # A block of Q4_K: 256 numbers in 128 bytes, two scales of 16 bits, and 12 bytes of scales.
    scales = torch.tensor([0.01, 0.002], dtype=torch.float16).view(torch.uint8).expand(3, 4)
    rest = torch.randint(0, 256, (3, 140), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))
    layer = kernels_rs.QuantizedLinear.from_blocks(torch.cat([scales, rest], 1).to(on), "Q4_K")
    x = normal(2, 256).to(on)
    out = torch.empty(2, 3, device=on)
    layer(x, out=out)
    assert torch.equal(layer(x), out) and out.abs().sum() > 0
    assert layer(x[:0]).shape == (0, 3)


def test_norms_without_a_gradient_save_nothing():
    x, w = normal(3, 9), normal(9).requires_grad_()
    with torch.no_grad():
        found = kernels_rs.rms_norm(x, 9, w, 1e-6)
    assert not found.requires_grad
    graded = kernels_rs.rms_norm(x, 9, w, 1e-6)
    assert torch.equal(found, graded) and graded.requires_grad
    near("value", found, rms(x.double(), w.double(), 1e-6), 2e-5)


@pytest.mark.parametrize("on", DEVICES)
def test_transpose_accepts_any_elements(on):
    x = torch.arange(12, device=on).reshape(3, 4)
    kernels_rs.stats(reset=True)
    assert torch.equal(kernels_rs.transpose(x), x.T)
    assert torch.equal(kernels_rs.transpose(x.reshape(1, 1, 3, 4)), x.T[None, None])
    assert torch.equal(kernels_rs.transpose(x.T), x)
    assert kernels_rs.stats()["transpose"] == {"kernel": 3, "torch": {}}
    wide = normal(2, 3, 5).double().to(on).requires_grad_()
    assert torch.autograd.gradcheck(kernels_rs.transpose, wide) and torch.autograd.gradgradcheck(kernels_rs.transpose, wide)


# PyTorch's own checks of a registration: schema, fake implementation, autograd, and tracing.
OPERATORS = {
    "softmax": [(3, 9), -1, 0.5, False, 0],
    "norm": [(3, 9), (9,), (9,), 1e-5, True],
    "norm_of_inference": [normal(3, 9), normal(9), None, 1e-5, False],
    "transpose": [(3, 8)],
    "quantized_linear": [normal(3, 64), *QUANTIZED._planes, "Q8_0", 6, 64],
    "swiglu": [(3, 8)],
    "swiglu_of_two": [(3, 8), (3, 8)],
    "gelu_tanh": [(3, 8)],
    "product": [(5, 3), (4, 3), (4,), False, True],
    "linear": [(5, 3), (4, 3), (4,), (5, 4), "silu"],
    "cross_entropy": [(4, 7), LABELS.int(), 0.1],
    "rotary": [(4, 2, 8), POSITIONS.int(), [1.0, 0.1, 0.01, 0.001], None, False],
    "rotary_tables": [(2, 3, 5, 8), torch.ones(1, 5, 8), torch.zeros(1, 5, 8), False],
    "fake_quantize": [(3, 9), torch.ones(3), 0, -3, 3],
    "attention": [(1, 2, 5, 8), (1, 1, 6, 8), (1, 1, 6, 8), True, None, None],
    "scored_attention": [*[(2, 2, 5, 8)] * 3, *[None] * 4, None, 2.0, None, True, None, [2, 0]],
    "sum": [(3, 4, 5), 1, True],
    "mean": [(3, 4), None, False],
    "norm2": [(3, 4), 1, False],
    "max": [(3, 4), 1, False],
    "min": [(3, 4), None, True],
    "argmax": [(3, 4), 0, False],
    "cumsum": [(3, 4), -1, True],
    "embedding": [LABELS.int(), (7, 4)],
    "histc": [normal(30), 5, -1.0, 1.0],
    "histc_of_range": [normal(30), 5, 0.0, 0.0],
    "sample": [normal(3, 9), 1, 2, 0.5, 4, 0.9],
    "block_attention": [(1, 2, 70, 8), (1, 2, 130, 8), (1, 2, 130, 8), BLOCKS._number, True, None],
}


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("name", OPERATORS)
def test_registrations_pass_the_checks_of_pytorch(name, on):
    kernels_rs.softmax(normal(1, 2))  # registers the operators
    arguments = [normal(*x) if isinstance(x, tuple) else x for x in OPERATORS[name]]
    arguments = [x.to(on) if isinstance(x, torch.Tensor) else x for x in arguments]
    for x, given in zip(arguments, OPERATORS[name]):
        if isinstance(given, tuple):
            x.requires_grad_()
    torch.library.opcheck(getattr(torch.ops.kernels_rs, name).default, tuple(arguments))


def layer(x, w, gate, up, down):
    y = kernels_rs.rms_norm(x, x.shape[-1], w, 1e-6)
    heads = y.reshape(1, -1, 2, 8).transpose(1, 2)
    y = x + kernels_rs.scaled_dot_product_attention(heads, heads, heads, is_causal=True).transpose(1, 2).reshape(x.shape)
    return y + kernels_rs.linear(kernels_rs.swiglu(kernels_rs.linear(y, gate), kernels_rs.linear(y, up)), down)


def operands_of_a_layer(on="cpu"):
    shapes = [(5, 16), (16,), (24, 16), (24, 16), (16, 24)]
    return [(0.3 * normal(*shape, seed=i)).to(on).requires_grad_() for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("on", DEVICES)
def test_compile_has_no_graph_breaks(on):
    operands = operands_of_a_layer(on)
    expected = layer(*operands)
    # On the CPU, Inductor needs a C++ compiler; "aot_eager" traces the same graphs, backward too.
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager" if on == "cpu" else "inductor")
    found = compiled(*operands)
    torch.testing.assert_close(found, expected)
    gradients = (torch.autograd.grad(y.square().sum(), operands) for y in (found, expected))
    for of_found, of_expected in zip(*gradients):
        torch.testing.assert_close(of_found, of_expected)


def test_compile_works_before_any_call():
    # In a new process, the operators are imported while torch.compile traces the function.
    script = """
import torch, kernels_rs
x = torch.arange(6.0).reshape(2, 3)
for backend in ["eager", "aot_eager"]:
    found = torch.compile(lambda x: kernels_rs.softmax(x), fullgraph=True, backend=backend)(x)
    torch.testing.assert_close(found, x.softmax(-1))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_operands_have_names_and_options_may_be_none():
    q = normal(1, 2, 3, 4).requires_grad_()
    for call in [kernels_rs.attention, kernels_rs.scaled_dot_product_attention]:
        torch.testing.assert_close(call(query=q, key=q, value=q), F.scaled_dot_product_attention(q, q, q))
    y = kernels_rs.softmax(input=q, out=None, stream=None)
    assert torch.equal(y, kernels_rs.softmax(q)) and y.requires_grad
    kernels_rs.rms_norm(q, 4, stream=None).sum().backward()
    torch.testing.assert_close(kernels_rs.softmax(q.double(), stream=None), q.double().softmax(-1))


def statistics(index, weight):
    """Calls all functions of reductions, running sums, histograms and tokens."""
    y = kernels_rs.embedding(index, weight, strict=True)
    rows = kernels_rs.sum(y, -1) + kernels_rs.max(y, -1) * kernels_rs.min(y, -1) + kernels_rs.norm(y, 2, -1)
    rows = rows + kernels_rs.mean(y) + kernels_rs.cumsum(y, exclusive=True)[..., -1]
    of_rows = kernels_rs.argmax(y, -1), kernels_rs.argmin(y, -1), kernels_rs.sample(y, seed=2**64 - 1, offset=7)
    return rows, *of_rows, kernels_rs.histc(y, 4, -2.0, 2.0), kernels_rs.histc(y, 4)


@pytest.mark.parametrize("on", DEVICES)
def test_statistics_are_compiled_and_exported(on):
    index, weight = torch.tensor([[2, 0], [3, 9]], device=on), normal(5, 6).to(on).requires_grad_()
    expected = strict(statistics, index, weight)
    (gradient,) = torch.autograd.grad(expected[0].square().sum(), weight)
    compiled = torch.compile(statistics, fullgraph=True, backend="aot_eager")(index, weight)

    class Layer(torch.nn.Module):
        def forward(self, index, weight):
            return statistics(index, weight)

    program = torch.export.export(Layer(), (index, weight))
    called = {str(node.target) for node in program.graph.nodes}
    assert {f"kernels_rs.{name}.default" for name in ("embedding", "sum", "cumsum", "sample", "histc_of_range")} <= called
    for found in (compiled, program.module()(index, weight)):
        for of_found, of_expected in zip(found, expected):
            torch.testing.assert_close(of_found, of_expected)
        torch.testing.assert_close(torch.autograd.grad(found[0].square().sum(), weight)[0], gradient)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("exclusive", [False, True])
def test_running_sums_match_pytorch(on, exclusive):
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
        x = (8 * normal(3, 50)).round().to(on, dtype)
        expected = x.cumsum(-1, dtype=dtype) - (x if exclusive else 0)
        found = strict(lambda x: kernels_rs.cumsum(x, exclusive=exclusive), x)
        assert found.dtype == dtype and torch.equal(found, expected)
    x = normal(3, 7).to(on, torch.float64).requires_grad_()

    def run(x):
        return kernels_rs.cumsum(x, exclusive=exclusive, strict=True)

    assert torch.autograd.gradcheck(run, x) and torch.autograd.gradgradcheck(run, x)
    # PyTorch computes 16-bit floats, small integers and other axes.
    kernels_rs.stats(reset=True)
    for y, dim in ((x.half(), -1), (x.char(), -1), (x, 0), (x.float()[0, 0], 0)):
        found = kernels_rs.cumsum(y, dim, exclusive=exclusive)
        expected = y.cumsum(dim)
        torch.testing.assert_close(found, expected - y if exclusive else expected, rtol=1e-2, atol=1e-2)
    reasons = {"elements of float16": 1, "elements of int8": 1, "an axis other than the last": 2}
    assert kernels_rs.stats(reset=True)["cumsum"] == {"kernel": 0, "torch": reasons}
    assert torch.autograd.gradcheck(lambda x: kernels_rs.cumsum(x, 0, exclusive=exclusive), x)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_rows_of_a_table_match_pytorch(on, dtype):
    weight = normal(5, 6).to(on, dtype).requires_grad_()
    for index in ([[3, 0], [3, 4]], [1], [[-1, 5], [2, 2**32]]):
        index = torch.tensor(index, device=on)
        inside = (index >= 0) & (index < 5)
        expected = torch.where(inside[..., None], weight.detach()[index.where(inside, 0)], 0)
        for of_type in (index, index.int()) if index.max() < 2**31 else (index,):
            y = strict(kernels_rs.embedding, of_type, weight)
            assert torch.equal(y, expected)
            dy = normal(*y.shape, seed=4).to(y)
            of_rows = torch.zeros(5, 6, dtype=torch.float64, device=on)
            of_rows.index_add_(0, index[inside], dy[inside].double())
            near("gradient", torch.autograd.grad(y, weight, dy)[0], of_rows, 2e-2 if dtype == torch.bfloat16 else 1e-6)
    kernels_rs.stats(reset=True)
    none = torch.zeros(0, 2, dtype=torch.int64, device=on)
    assert kernels_rs.embedding(none, weight).shape == (0, 2, 6)
    assert torch.equal(kernels_rs.embedding(torch.tensor([1], device=on), weight.detach() > 0), weight.detach()[1:2] > 0)
    reasons = {"a tensor without elements": 1, "elements of bool": 1}
    assert kernels_rs.stats(reset=True)["embedding"] == {"kernel": 0, "torch": reasons}
    with pytest.raises(TypeError, match="indices are float32, expected integers"):
        kernels_rs.embedding(torch.zeros(2), weight)


@pytest.mark.parametrize("on", DEVICES)
def test_extremes_count_a_nan_as_the_last(on):
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("nan")] * 3], device=on)
    for y in (x.requires_grad_(), x.detach().double().requires_grad_()):
        largest, least = kernels_rs.max(y, -1), kernels_rs.min(y, -1)
        assert largest.tolist() == [3, -float("inf")] and least.tolist() == [1, float("inf")]
        (gradient,) = torch.autograd.grad(largest[0] + 2 * least[0], y)
        assert gradient.tolist() == [[2, 0, 1], [0, 0, 0]]
        assert kernels_rs.argmax(y, -1)[0] == 2 and kernels_rs.argmin(y, -1)[0] == 0
        assert not kernels_rs.argmax(y, -1).requires_grad
    zeros = torch.zeros(2, 3, device=on, requires_grad=True)
    assert torch.autograd.grad(kernels_rs.norm(zeros), zeros)[0].tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("on", DEVICES)
def test_reductions_without_a_kernel_are_pytorch(on):
    kernels_rs.stats(reset=True)
    x = normal(2, 3, 4).to(on)
    torch.testing.assert_close(kernels_rs.sum(x, (0, 2)), x.sum((0, 2)))
    torch.testing.assert_close(kernels_rs.norm(x, 3, 1), x.norm(3, 1))
    assert kernels_rs.sum(x.int()).item() == x.int().sum() and kernels_rs.max(x.int()).dtype == torch.int32
    assert kernels_rs.sum(x[:0].half(), 0).dtype == torch.float32
    counts = kernels_rs.stats(reset=True)
    reasons = {"several axes": 1, "elements that are not floats": 1, "a tensor without elements": 1}
    assert counts["sum"]["torch"] == reasons and counts["norm"]["torch"] == {"a norm other than the 1- and the 2-norm": 1}
    for call in (
        lambda: kernels_rs.sum(x, (0, 2), strict=True),
        lambda: kernels_rs.mean(x.double(), strict=True),
        lambda: kernels_rs.norm(x, 3, strict=True),
        lambda: kernels_rs.cumsum(x, 0, strict=True),
        lambda: kernels_rs.histc(x.double(), strict=True),
        lambda: kernels_rs.sample(x.double(), seed=1, strict=True),
        lambda: kernels_rs.embedding(torch.zeros(0, dtype=torch.int64, device=on), x[0], strict=True),
    ):
        with pytest.raises(kernels_rs.Unsupported, match="there is no kernel for"):
            call()
    with pytest.raises(ValueError, match="max of no elements"):
        kernels_rs.max(x[:0])
    with pytest.raises(TypeError, match="expected one axis"):
        kernels_rs.argmax(x, (0, 1))


@pytest.mark.parametrize("on", DEVICES)
def test_histograms_match_pytorch(on):
    x = normal(500).to(on)
    for low, high in ((-1.0, 1.0), (0.0, 0.0)):
        expected = torch.histc(x, 8, low, high).int()
        for _ in range(2):
            found = strict(lambda x: kernels_rs.histc(x, 8, low, high), x)
            assert found.dtype == torch.int32 and (found - expected).abs().sum() <= 2
        x = 2 * x
    keys = torch.arange(40, device=on).reshape(5, 8) % 7
    expected = [6, 6, 6, 6, 6]
    assert strict(lambda x: kernels_rs.histc(x, 5), keys.to(torch.uint8)).tolist() == expected
    kernels_rs.stats(reset=True)
    assert kernels_rs.histc(keys, 5).tolist() == expected
    assert kernels_rs.histc(keys.double(), 7).tolist() == [6] * 5 + [5] * 2
    assert kernels_rs.histc(x[:0], 3).tolist() == [0, 0, 0]
    reasons = {"elements of int64": 1, "elements of float64": 1, "a tensor without elements": 1}
    assert kernels_rs.stats(reset=True)["histc"] == {"kernel": 0, "torch": reasons}


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tokens_are_drawn_from_the_likeliest(on, dtype):
    # PyTorch draws from float64, by the same rules.
    x = normal(2, 3, 50).to(on, dtype)
    assert torch.equal(kernels_rs.sample(x, seed=1, temperature=0.0).long(), x.argmax(-1))
    assert torch.equal(kernels_rs.sample(x, seed=1, top_k=1).long(), x.argmax(-1))
    order, p = x.argsort(-1, descending=True), x.double().softmax(-1).sort(-1, descending=True).values
    for options, kept in (
        ({"top_k": 3}, torch.arange(50, device=on) < 3),
        ({"top_p": 0.5}, p.cumsum(-1) - p < 0.5),
    ):
        seen = set()
        for offset in range(20):
            tokens = kernels_rs.sample(x, seed=5, offset=offset, **options)
            assert tokens.shape == (2, 3) and tokens.dtype == torch.int32
            assert torch.equal(tokens, kernels_rs.sample(x, seed=5, offset=offset, **options))
            rank = (order == tokens[..., None]).long().argmax(-1)
            assert kept.expand(2, 3, 50).gather(-1, rank[..., None]).all(), options
            seen.add(tuple(tokens.flatten().tolist()))
        assert len(seen) > 5


def test_functions_take_parameters_with_and_without_gradients():
    weight = torch.nn.Parameter(normal(5, 4))
    with torch.no_grad():
        assert torch.equal(kernels_rs.embedding(torch.tensor([3, 0]), weight), weight[[3, 0]])
        torch.testing.assert_close(kernels_rs.sum(weight), weight.sum())
        torch.testing.assert_close(kernels_rs.cumsum(weight), weight.cumsum(-1))
        assert torch.equal(kernels_rs.argmax(weight, -1).long(), weight.argmax(-1))
    kernels_rs.sum(weight).backward()
    assert torch.equal(weight.grad, torch.ones(5, 4))
    with pytest.raises(BufferError, match="require"):
        kernels_rs.cumsum(weight, out=torch.empty(5, 4))


@pytest.mark.parametrize("on", DEVICES)
def test_a_score_with_a_gradient_is_pytorch(on):
    q = normal(1, 2, 4, 8).double().to(on)
    bias, slopes = normal(2, 4, 4).double().to(on).requires_grad_(), normal(2, seed=2).double().to(on).requires_grad_()
    kernels_rs.stats(reset=True)
    for call, x in (
        (lambda x: kernels_rs.attention(q, q, q, bias=x), bias),
        (lambda x: kernels_rs.attention(q, q, q, alibi=x), slopes),
    ):
        assert torch.autograd.gradcheck(call, x)
        y = call(x).float()
        narrow = q.float()
        option = {"bias" if x is bias else "alibi": x.detach().float().requires_grad_()}
        kernels_rs.stats(reset=True)
        found = kernels_rs.attention(narrow, narrow, narrow, **option)
        counts = kernels_rs.stats(reset=True)
        assert counts["attention"] == {"kernel": 0, "torch": {"slopes or a bias with a gradient": 1}}
        torch.testing.assert_close(found, y)
        (gradient,) = torch.autograd.grad(found.sum(), list(option.values()))
        torch.testing.assert_close(gradient.double(), torch.autograd.grad(y.sum(), x)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("on", DEVICES)
def test_scored_attention_is_compiled(on):
    q = normal(2, 2, 6, 8).to(on).requires_grad_()
    slopes, lengths = torch.tensor([0.5, 0.1], device=on), torch.tensor([4, 6], device=on)

    def run(q):
        y = kernels_rs.attention(q, q, q, causal=True, alibi=slopes, lengths=lengths, strict=True)
        return y + kernels_rs.attention(q, q, q, softcap=2.0, window=(2, 1), strict=True)

    found, expected = torch.compile(run, fullgraph=True, backend="aot_eager")(q), run(q)
    torch.testing.assert_close(found, expected)
    for of_found, of_expected in zip(*(torch.autograd.grad(y.square().sum(), q) for y in (found, expected))):
        torch.testing.assert_close(of_found, of_expected)


def test_options_of_attention_are_checked():
    q, slopes = normal(1, 2, 3, 4), torch.ones(2)
    lengths = torch.tensor([3])
    mask = kernels_rs.BlockMask([[[True]]] * 2, 3, 3)
    for named, message in (
        (dict(softcap=1.0, alibi=slopes), "one of softcap, alibi and bias"),
        (dict(softcap=0.0), "softcap = 0.0: expected a number above 0"),
        (dict(lengths=lengths, offsets=lengths), "not both"),
        (dict(lengths=lengths, blocks=mask), "BlockMask belongs to sequences of equal length"),
        (dict(offsets=torch.tensor([0, 3]), bias=torch.zeros(3, 3)), "pad the sequences"),
        (dict(lengths=(lengths,)), "given 1"),
        (dict(alibi=torch.ones(3)), r"alibi has the shape \(3,\), and the query 2 heads"),
        (dict(bias=torch.ones(2, 2)), r"bias has the shape \(1, 1, 2, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            kernels_rs.attention(q, q, q, **named)
    with pytest.raises(TypeError, match="lengths and offsets are float32"):
        kernels_rs.attention(q, q, q, lengths=lengths.float())
    y = kernels_rs.attention(q, q, q, alibi=[1.0, 1.0])
    torch.testing.assert_close(y, kernels_rs.attention(q, q, q, alibi=slopes))


@pytest.mark.parametrize("stored", ["int8", "q8_0", "q4_0"])
def test_decoding_steps_with_a_cache_of_integers(stored):
    q, k, v = torch.randn(2, 4, 32), torch.randn(2, 2, 32), torch.randn(2, 2, 32)
    words = torch.zeros(2, 2, 2, 5, 4, dtype=torch.int32) if stored == "q4_0" else torch.zeros(2, 2, 2, 5, 32, dtype=torch.int8)
    scales = torch.zeros(2, 2, 2, 5) if stored == "int8" else torch.zeros(2, 2, 2, 5, 1, dtype=torch.float16)
    lengths = torch.tensor([0, 0])
    rotated = kernels_rs.cache_append(q, k, v, *words, lengths, scales=tuple(scales))
    found = kernels_rs.decode(rotated, *words, lengths + 1, scales=tuple(scales))
    # The only key has the weight 1.
    torch.testing.assert_close(found, v.repeat_interleave(2, 1), rtol=0, atol=0.5 if stored == "q4_0" else 0.03)
    with pytest.raises(ValueError, match="a cache of integers has `scales`"):
        kernels_rs.decode(rotated, *words, lengths + 1)
    caches = torch.zeros(2, 2, 2, 5, 32)
    with pytest.raises(ValueError, match="a cache of floats has no `scales`"):
        kernels_rs.decode(rotated, *caches, lengths + 1, scales=tuple(scales))


def test_arguments_are_those_of_pytorch():
    x = normal(5, 4)
    sdpa = kernels_rs.scaled_dot_product_attention
    torch.testing.assert_close(sdpa(x, x, x), F.scaled_dot_product_attention(x, x, x))
    y = x[None]
    torch.testing.assert_close(sdpa(y, y, y, enable_gqa=True), F.scaled_dot_product_attention(y, y, y, enable_gqa=True))
    with pytest.raises(ValueError, match="label_smoothing = 2.0: expected a number from 0 to 1"):
        kernels_rs.cross_entropy(x, torch.tensor([0, 1, 2, 3, 0]), label_smoothing=2.0)


def test_results_of_subclasses_are_tensors():
    class Mine(torch.Tensor):
        pass

    x = normal(2, 3)
    assert isinstance(kernels_rs.sum(x.as_subclass(Mine)), torch.Tensor)
    torch.testing.assert_close(kernels_rs.softmax(x.as_subclass(Mine)).as_subclass(torch.Tensor), x.softmax(-1))


def test_weights_of_a_layer_are_quantized():
    layer = torch.nn.Linear(64, 8)
    x = normal(3, 64)
    quantized = kernels_rs.QuantizedLinear(layer.weight)
    assert torch.equal(quantized(x), kernels_rs.QuantizedLinear(layer.weight.detach())(x))


def test_options_that_do_not_exist_are_rejected():
    for call in [kernels_rs.gelu, kernels_rs.geglu]:
        with pytest.raises(ValueError, match="approximate = 'tahn': expected 'none' or 'tanh'"):
            call(normal(2, 4), approximate="tahn")
    for call in [kernels_rs.softmax, kernels_rs.log_softmax]:
        with pytest.raises(TypeError, match="causal is the number of queries"):
            call(normal(2, 4), causal=True)


def test_operands_of_another_library_are_rejected():
    x, w = torch.ones(2, 3), np.ones((4, 3), np.float32)
    for call in (
        lambda: kernels_rs.linear(x, w),
        lambda: kernels_rs.linear(x, weight=w),
        lambda: kernels_rs.matmul(x, w.T),
        lambda: kernels_rs.rms_norm(x, 3, w[0]),
    ):
        with pytest.raises(TypeError, match="takes tensors of PyTorch beside a tensor, given ndarray"):
            call()
    assert kernels_rs.rms_norm(x, np.int64(3)).shape == (2, 3)
    heads, frequencies = torch.ones(2, 1, 4), np.array([1.0, 0.5])
    turned = kernels_rs.rotary(heads, torch.arange(2), frequencies=frequencies, axes=np.array([0, 0]))
    torch.testing.assert_close(turned, kernels_rs.rotary(heads, torch.arange(2), frequencies=frequencies.tolist()))


def test_a_residual_is_broadcast():
    x, w = torch.randn(2, 3, 8), torch.randn(4, 8)
    for shape in [(3, 4), (2, 1, 4), (2, 3, 1), (4,)]:
        r = torch.randn(shape)
        torch.testing.assert_close(kernels_rs.linear(x, w, residual=r, strict=True), F.linear(x, w) + r)


def test_block_masks_are_kept_and_checked():
    q = torch.ones(1, 1, 64, 8)
    mask = kernels_rs.BlockMask([[[True]]], 64, 64)
    assert mask.density == 1 and kernels_rs.attention(q, q, q, blocks=mask).shape == q.shape
    with pytest.raises(ValueError, match="blocks or a window"):
        kernels_rs.attention(q, q, q, blocks=mask, window=(1, 1))
    with pytest.raises(TypeError, match="blocks is a BlockMask"):
        kernels_rs.attention(q, q, q, blocks=[[[True]]])
    with pytest.raises(RuntimeError, match="exists no longer"):
        torch.ops.kernels_rs.block_attention(q, q, q, 10**6, False, None)


def test_decoding_steps_of_tensors():
    q, k, v = torch.randn(2, 4, 8), torch.randn(2, 2, 8), torch.randn(2, 2, 8)
    caches = torch.zeros(2, 2, 5, 8), torch.zeros(2, 2, 5, 8)
    lengths = torch.tensor([0, 3])
    rotated = kernels_rs.cache_append(q, k, v, *caches, lengths)
    torch.testing.assert_close(rotated, kernels_rs.rotary(q, lengths))
    torch.testing.assert_close(caches[1][1, :, 3], v[1])
    o = kernels_rs.decode(rotated, *caches, lengths + 1)
    torch.testing.assert_close(o[0], v[0].repeat_interleave(2, 0))


def decoding_operands(dtype=torch.float32):
    """Returns queries, new keys and values, caches of two sequences in pages of two rows, lengths, and pages."""
    q, new = normal(2, 4, 8).to(dtype), [normal(2, 2, 8, seed=i).to(dtype) for i in (1, 2)]
    caches = [normal(7, 2, 2, 8, seed=i).to(dtype) for i in (3, 4)]
    # The second sequence is full.
    return q, new, caches, torch.tensor([3, 6]), torch.tensor([[0, 2, 4], [1, 3, 5]])


def decoding_step(q, new, caches, lengths, pages, **named):
    rotated = kernels_rs.cache_append(q, *new, *caches, lengths, pages=pages, **named)
    named = {"pages": pages, "scale": 0.3, **named}
    lengths = (lengths + 1).clamp(max=6)
    prompts = torch.stack([rotated, q], 2)
    return (
        rotated,
        kernels_rs.decode(rotated, *caches, lengths, **named),
        kernels_rs.attention_cached(prompts, *caches, lengths, **named),
        kernels_rs.attention_cached(prompts, *caches, lengths, queries=lengths // 4, window=(2, 0), **named),
    )


@pytest.mark.parametrize("paged", [False, True])
def test_decoding_steps_in_pytorch_agree(paged):
    kernels_rs.stats(reset=True)
    results = []
    for dtype in (torch.float32, torch.float64):
        q, new, caches, lengths, pages = decoding_operands(dtype)
        if not paged:
            caches, pages = [cache[p].transpose(1, 2).flatten(2, 3) for cache in caches for p in [pages]], None
        results.append([*decoding_step(q, new, caches, lengths, pages), *caches])
    for ours, theirs in zip(*results):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    counts = kernels_rs.stats(reset=True)
    for name, calls in (("cache_append", 1), ("decode", 1), ("attention_cached", 2)):
        assert counts[name] == {"kernel": calls, "torch": {"elements of float64": calls}}
    with pytest.raises(kernels_rs.Unsupported):
        decoding_step(q, new, caches, lengths, pages, strict=True)


def test_gradients_of_a_decoding_step_are_of_pytorch():
    q, _, caches, lengths, pages = decoding_operands()
    q.requires_grad_()
    kernels_rs.stats(reset=True)
    y = kernels_rs.decode(q, *caches, lengths, pages=pages)
    assert kernels_rs.stats(reset=True)["decode"]["torch"] == {"an operand with a gradient": 1}
    with torch.no_grad():
        torch.testing.assert_close(y, kernels_rs.decode(q, *caches, lengths, pages=pages, strict=True))
    (gradient,) = torch.autograd.grad(y.sum(), q)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("on", DEVICES)
def test_decoding_steps_are_compiled(on):
    def run(q, new, caches, lengths, pages):
        return decoding_step(q, new, caches, lengths, pages, strict=True)

    results = []
    for call in (run, torch.compile(run, fullgraph=True, backend="aot_eager")):
        q, new, caches, lengths, pages = decoding_operands()
        caches = [x.to(on) for x in caches]
        given = q.to(on), [x.to(on) for x in new], caches, lengths.to(on), pages.to(on)
        # On a GPU, the second step repeats the launches of the first one.
        for _ in range(2):
            step = call(*given)
        results.append([*step, *caches])
    for eager, compiled in zip(*results):
        torch.testing.assert_close(compiled, eager)


def test_positions_are_integers():
    with pytest.raises(TypeError, match="positions are float32, expected integers"):
        kernels_rs.rotary(normal(1, 1, 2), torch.tensor([0.5]))


@pytest.mark.parametrize("case", CASES)
def test_forward_mode_is_pytorch(case):
    ours, theirs, shapes = CASES[case]
    operands = tuple(normal(*shape, seed=i).double() for i, shape in enumerate(shapes))
    tangents = tuple(normal(*shape, seed=7 + i).double() for i, shape in enumerate(shapes))
    narrow = [tuple(x.float() for x in all) for all in (operands, tangents)]
    kernels_rs.stats(reset=True)
    try:
        _, expected = torch.func.jvp(theirs, operands, tangents)
        _, found = torch.func.jvp(ours, *narrow)
    except NotImplementedError:
        assert "attention" in case
        pytest.skip("PyTorch has no tangents of attention on this device")
    near("tangent", found, expected, 1e-4)
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(x, t) for x, t in zip(*narrow)]
        near("tangent", torch.autograd.forward_ad.unpack_dual(ours(*duals)).tangent, expected, 1e-4)
    counts = kernels_rs.stats(reset=True)
    assert counts and all(set(of["torch"]) == {"forward-mode gradients"} and not of["kernel"] for of in counts.values())


def test_forward_mode_is_rejected_without_a_fallback():
    with pytest.raises(kernels_rs.Unsupported, match="forward-mode"):
        torch.func.jvp(lambda x: kernels_rs.silu(x, strict=True), (torch.ones(3),), (torch.ones(3),))


def test_transformations_call_the_operator():
    # A transformation needs the operator, which a repeated call must not skip.
    x = normal(5, 2, 6)
    for _ in range(3):
        with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
            fake = kernels_rs.softmax(mode.from_tensor(x))
        assert type(fake) is not torch.Tensor and fake.shape == x.shape
        torch.testing.assert_close(kernels_rs.softmax(x), x.softmax(-1))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_repeated_calls_use_the_current_operands_on_a_gpu():
    # The first call of a signature is recorded. Later calls have other data, also on other streams.
    side = torch.cuda.Stream()
    for step in range(4):
        operands = [normal(*shape, seed=step).cuda().requires_grad_() for shape in ((70, 40), (40,), (40,))]
        wide = [x.detach().double().requires_grad_() for x in operands]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side if step % 2 else torch.cuda.current_stream()):
            y = kernels_rs.layer_norm(operands[0], 40, *operands[1:])
            found = torch.autograd.grad(y, operands, y.detach())
        torch.cuda.current_stream().wait_stream(side)
        expected = F.layer_norm(wide[0], (40,), *wide[1:])
        near("value", y, expected, 2e-5)
        for of_found, of_expected in zip(found, torch.autograd.grad(expected, wide, expected.detach())):
            near("gradient", of_found, of_expected, 1e-4)
    from kernels_rs._torch import ROWS

    for name in ("norm", "norm_backward"):
        assert ROWS[name].repeats.sizes()[0] > 0, name


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_repeated_attention_uses_the_current_operands_on_a_gpu():
    from kernels_rs._torch import ROWS

    for step in range(4):
        operands = [normal(1, 2, n, 16, seed=3 * step + i).cuda().requires_grad_() for i, n in enumerate((70, 90, 90))]
        wide = [x.detach().double().requires_grad_() for x in operands]
        y = kernels_rs.attention(*operands, causal=True)
        expected = banded(*wide, FAR, 0)
        near("value", y, expected, 2e-5)
        # The gradient has separate memory: a call whose tensors share memory is not repeated.
        of_y = y.detach().clone()
        gradients = torch.autograd.grad(y, operands, of_y), torch.autograd.grad(expected, wide, expected.detach())
        for of_found, of_expected in zip(*gradients):
            near("gradient", of_found, of_expected, 1e-4)
    for name in ("attention", "attention_backward"):
        assert ROWS[name].repeats.sizes()[0] > 0, name


def test_layers_are_exported():
    class Layer(torch.nn.Module):
        def forward(self, *operands):
            return layer(*operands)

    operands = operands_of_a_layer()
    program = torch.export.export(Layer(), tuple(operands))
    called = {str(node.target) for node in program.graph.nodes}
    assert {"kernels_rs.norm.default", "kernels_rs.attention.default", "kernels_rs.product.default"} <= called
    torch.testing.assert_close(program.module()(*operands), layer(*operands))


def test_fallback_is_logged_once_and_counted(caplog):
    kernels_rs.stats(reset=True)
    x = normal(4, 6)
    with caplog.at_level(logging.WARNING, "kernels_rs"):
        for _ in range(3):
            torch.testing.assert_close(kernels_rs.softmax(x, dim=0), x.softmax(0))
        kernels_rs.softmax(x.double())
        kernels_rs.softmax(x)
    assert kernels_rs.stats()["softmax"] == {
        "kernel": 1,
        "torch": {"an axis other than the last": 3, "elements of float64": 1},
    }
    assert len(caplog.records) == 2 and "an axis other than the last" in caplog.records[0].message


@pytest.mark.parametrize("on", DEVICES)
def test_timings_count_each_operator(on):
    x = normal(4, 6).to(on).requires_grad_()
    with kernels_rs.timings() as outer:
        with kernels_rs.timings() as times:
            for _ in range(3):
                kernels_rs.softmax(x.detach())
            kernels_rs.gelu(x).sum().backward()
            kernels_rs.softmax(x, dim=0)
        kernels_rs.softmax(x.detach())
    kernels_rs.softmax(x.detach())
    read = times.read()
    assert {name: of["calls"] for name, of in read.items()} == {"softmax": 3, "gelu": 1, "gelu_backward": 1}
    assert outer.read()["softmax"]["calls"] == 4
    for of in read.values():
        assert of["host"] > 0 and (of["gpu"] > 0) == (on == "cuda"), read


def test_attention_with_a_mask_is_pytorch():
    q, k = normal(1, 4, 3, 8), normal(1, 2, 5, 8)
    mask = torch.tensor([True, False, True, True, False]).expand(3, 5)
    found = kernels_rs.scaled_dot_product_attention(q, k, k, attn_mask=mask, enable_gqa=True)
    logits = (q @ k.repeat_interleave(2, 1).mT / 8**0.5).masked_fill(~mask, float("-inf"))
    torch.testing.assert_close(found, logits.softmax(-1) @ k.repeat_interleave(2, 1))
    torch.testing.assert_close(
        kernels_rs.scaled_dot_product_attention(q, q, q, dropout_p=0.0, scale=0.1),
        F.scaled_dot_product_attention(q, q, q, scale=0.1),
    )


@pytest.mark.parametrize(
    "call,reason",
    [
        (lambda x: kernels_rs.softmax(x, dim=0, strict=True), "an axis other than the last"),
        (lambda x: kernels_rs.softmax(x.double(), strict=True), "elements of float64"),
        (lambda x: kernels_rs.softmax(x[:0], strict=True), "without elements"),
        (lambda x: kernels_rs.softmax(x.to("meta"), strict=True), "meta"),
        (lambda x: kernels_rs.linear(x, x.half(), strict=True), "different element types"),
        (lambda x: kernels_rs.layer_norm(x, (4, 6), strict=True), "several axes"),
        (lambda x: kernels_rs.matmul(x, x[0], strict=True), "vectors"),
        (
            lambda x: kernels_rs.scaled_dot_product_attention(x, x, x, attn_mask=x[:, :4] > 0, strict=True),
            "a mask",
        ),
    ],
)
def test_strict_calls_state_the_reason(call, reason):
    with pytest.raises(kernels_rs.Unsupported, match=reason):
        call(normal(4, 6))


def test_other_arrays_are_as_before():
    numpy = pytest.importorskip("numpy")
    x = normal(3, 8)
    found = kernels_rs.swiglu(x.numpy(), strict=True)
    assert isinstance(found, numpy.ndarray)
    numpy.testing.assert_array_equal(found, kernels_rs.swiglu(x).numpy())
    out = torch.empty(3, 8)
    assert kernels_rs.softmax(x, out=out) is out and torch.equal(out, kernels_rs.softmax(x))


def test_tensors_are_read_in_place():
    for dtype in "float32 float16 bfloat16 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split():
        x = torch.zeros(4, 6, dtype=getattr(torch, dtype))[1:, ::2]
        found = kernels_rs.describe(x)
        expected = dict(address=x.data_ptr(), shape=(3, 3), strides=(6, 2), dtype=dtype, device="cpu", writable=True)
        assert found == expected
    frozen = torch.nn.Parameter(torch.zeros(3), requires_grad=False)
    assert kernels_rs.describe(frozen)["address"] == frozen.data_ptr()

    class Subclass(torch.Tensor):
        pass

    assert kernels_rs.describe(torch.zeros(3).as_subclass(Subclass))["shape"] == (3,)
    with pytest.raises((BufferError, RuntimeError), match="gradient"):
        kernels_rs.softmax(torch.zeros(3, requires_grad=True), out=torch.empty(3))
    with pytest.raises((BufferError, TypeError, ValueError, RuntimeError)):
        kernels_rs.describe(torch.zeros(3, device="meta"))
    with pytest.raises((BufferError, TypeError, ValueError, RuntimeError)):
        kernels_rs.describe(torch.zeros(3).to_sparse())


def test_a_pending_sign_is_rejected_or_applied():
    x = torch.complex(torch.zeros(1), torch.ones(1)).conj().imag
    assert x.is_neg() and x.item() == -1
    with pytest.raises(ValueError, match="resolve_neg"):
        kernels_rs.softmax(x, out=torch.empty(1))
    # PyTorch negates the elements before it calls an operator.
    torch.testing.assert_close(strict(kernels_rs.silu, x), F.silu(x))


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
@pytest.mark.parametrize("side", [False, True])
def test_memory_is_freed_in_order_of_the_stream(side):
    # A call returns before its work is done. Freed operands must not be overwritten before that.
    add = kernels_rs.compile(
        """
        #[kernel(block = 256, grid = y.len().div_ceil(256))]
        #[requires(x.len() == y.len())]
        pub fn add(x: &[f32], y: &mut [f32]) {
            let i = grid::index();
            if i < y.len() {
                y[i] += x[i];
            }
        }
        """
    )
    stream = torch.cuda.Stream() if side else torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        sums = torch.zeros(2048, 2048, device="cuda")
        for i in range(300):
            x = torch.full((2048, 2048), float(i % 7), device="cuda")
            y = kernels_rs.softmax(x)
            del x
            torch.full((2048, 2048), float("nan"), device="cuda")
            y = kernels_rs.silu(kernels_rs.linear(y, torch.eye(2048, device="cuda")))
            torch.full((2048, 2048), float("nan"), device="cuda")
            add(y, sums, stream=stream, unchecked=True)
            del y
    stream.synchronize()
    of_one = F.silu(torch.tensor(1 / 2048, dtype=torch.float64)).item()
    assert ((sums.double() / (300 * of_one)) - 1).abs().max().item() < 1e-4
    kernels_rs.stats(reset=True)


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
def test_tensors_live_in_memory_of_the_pool():
    script = """
import torch, kernels_rs
torch.cuda.memory.change_current_allocator(kernels_rs.torch_allocator())
side = torch.cuda.Stream()
for n in range(100):
    with torch.cuda.stream(side if n % 2 else torch.cuda.current_stream()):
        y = kernels_rs.softmax(torch.full((512, 512), float(n), device="cuda"))
        assert (y - 1 / 512).abs().max().item() < 1e-6, n
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_allocator_has_the_functions_of_the_package():
    assert isinstance(kernels_rs.torch_allocator(), torch.cuda.memory.CUDAPluggableAllocator)


@pytest.mark.parametrize("on", DEVICES)
def test_calls_that_cannot_be_repeated_run_anew(on):
    # The launch of a product with a bias reads memory that no argument shows.
    for step in range(3):
        x, w, b = (normal(*shape, seed=step + i).to(on) for i, shape in enumerate([(5, 16), (8, 16), (8,)]))
        near("value", strict(kernels_rs.linear, x, w, b), F.linear(x.double(), w.double(), b.double()), 2e-5)
        w.requires_grad_()
        gradient = torch.autograd.grad(kernels_rs.linear(x, w, b).sum(), w)[0]
        near("gradient", gradient, x.double().sum(0).expand(8, 16), 2e-5)
