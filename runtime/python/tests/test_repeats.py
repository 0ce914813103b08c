"""Repeated calls of operators, on tensors of a stand-in for PyTorch whose memory is that of a GPU's Arrays."""

import os
import subprocess
import sys

import pytest

import kernels_rs

STAND_IN = '''
import ctypes, sys, types
import numpy as np
import kernels_rs
from kernels_rs import _native

torch = types.ModuleType("torch")

class Tensor:
    """The attributes of a tensor that this package reads."""

    __module__ = "torch"
    is_cuda, is_cpu, layout, requires_grad = True, False, "strided", False

    def __init__(self, array, shape=None, strides=None, offset=0):
        self.offset = offset
        self.array, self.dtype, self.device = array, sys.intern(array.dtype), "cuda:0"
        self.shape = tuple(array.shape) if shape is None else shape
        self.strides = strides or tuple(int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape)))

    def get_device(self):
        return 0

    def data_ptr(self):
        # PyTorch's tensors without elements have no address.
        return self.array.ptr + self.offset if all(self.shape) else 0

    def stride(self):
        return self.strides

    def is_neg(self):
        return False

class Parameter(Tensor):
    __module__ = "torch"

def empty(*shape, dtype, device):
    shape = shape[0] if isinstance(shape[0], tuple) else shape
    array = kernels_rs.zeros(shape, dtype, device)
    # PyTorch's stream does not wait for the zeros, so they must be written before a kernel runs.
    kernels_rs.numpy(array)
    return Tensor(array)

def empty_like(x):
    return empty(x.shape, dtype=x.dtype, device=x.device)

STATE = {"modes": 0, "grad": True}
torch.empty_like = empty_like
torch.Tensor, torch.nn, torch.strided, torch.empty = Tensor, types.SimpleNamespace(Parameter=Parameter), "strided", empty
for name in ["float32", "float16", "uint8", "int16", "int32"]:
    setattr(torch, name, name)
torch.is_grad_enabled = lambda: STATE["grad"]
torch._C = types.SimpleNamespace(
    _cuda_getCurrentRawStream=lambda ordinal: 0,
    _len_torch_dispatch_stack=lambda: STATE["modes"],
    _functorch=types.SimpleNamespace(peek_interpreter_stack=lambda: None),
)
sys.modules["torch"] = torch

def tensor(x):
    return Tensor(kernels_rs.array(x, "cuda"))

driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()

def read(x):
    # The package does not know that PyTorch's stream writes this array, so the copy does not wait.
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0 and driver.cuStreamSynchronize(None) == 0
    return kernels_rs.numpy(x.array)

def numbers(*shape):
    return rng.standard_normal(shape).astype(np.float32)

rng = np.random.default_rng(1)
'''

SOFTMAX = '''
def softmax(x, scale):
    calls.append(scale)
    y = empty(x.shape, dtype=x.dtype, device=x.device)
    _native.softmax(x, y, scale, False, 0, 0)
    return y

def expected(x, scale):
    e = np.exp(scale * (x - x.max(-1, keepdims=True)).astype(np.float64))
    return e / e.sum(-1, keepdims=True)

calls, repeats = [], _native.Repeats(False)
def call(x, scale, plain=True):
    y = repeats.again((x, scale), plain)
    return repeats.first(softmax, (x, scale)) if y is None or y is False else y

# A signature is recorded once; other numbers, shapes and strides have other signatures.
for shape, scale, ran in [((5, 9), 1.0, 1), ((5, 9), 1.0, 1), ((5, 9), 0.5, 2), ((4, 9), 1.0, 3), ((5, 9), 0.5, 3)]:
    a = numbers(*shape)
    np.testing.assert_allclose(read(call(tensor(a), scale)), expected(a, scale), rtol=1e-5)
    assert len(calls) == ran, (shape, scale, calls)
wide = numbers(5, 12)
np.testing.assert_allclose(read(call(Tensor(kernels_rs.array(wide, "cuda"), (5, 9), (12, 1)), 1.0)), expected(wide[:, :9], 1.0), rtol=1e-5)
assert len(calls) == 4 and repeats.sizes() == (4, 0)

# With modes, gradients and other objects, the function itself runs.
x = tensor(numbers(5, 9))
assert repeats.again((x, 1.0), True) is not None
x.requires_grad = True
assert repeats.again((x, 1.0), True) is NotImplemented and isinstance(repeats.again((x, 1.0), False), Tensor)
assert repeats.again((x, 2.0), True) is None
STATE["grad"] = False
assert isinstance(repeats.again((x, 1.0), True), Tensor)
STATE["modes"] = 1
assert repeats.again((x, 1.0), True) is None
STATE["modes"] = 0
assert repeats.again((x, "1.0"), True) is None and repeats.again((np.zeros(3), 1.0), True) is None

# A function's own memory cannot be repeated, unless the operator declares scratch memory.
def copied(x, scale):
    calls.append(scale)
    between, y = (empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(2))
    _native.softmax(x, between, scale, False, 0, 0)
    _native.softmax(between, y, scale, False, 0, 0)
    return y
def twice(x, scale):
    return copied(x, scale)
x.requires_grad = False
repeats, softmax, calls = _native.Repeats(True), copied, []
for _ in range(2):
    call(x, 1.0)
# Two native calls are not recorded.
assert len(calls) == 2 and repeats.sizes() == (0, 1)
assert repeats.again((x, 1.0), True) is False and repeats.again((x, 3.0), True) is None

# An error of the function is raised, and nothing is kept.
def wrong(x, scale):
    raise ValueError("wrong")
softmax, repeats = wrong, _native.Repeats(False)
for _ in range(2):
    try:
        call(x, 1.0)
    except ValueError as e:
        assert str(e) == "wrong"
    else:
        raise AssertionError("no error")
assert repeats.sizes() == (0, 0)
'''

NORM = '''
# The gradients of weight and bias have memory for partial sums; results are a tuple. A result that
# the caller does not request has no elements.
def gradients(x, weight, saved, dy, biased):
    calls.append(x.shape)
    shapes = x.shape, weight.shape, weight.shape if biased else (0,)
    dx, dweight, dbias = (empty(s, dtype=x.dtype, device=x.device) for s in shapes)
    _native.norm_backward(x, saved, dy, dx, weight, dweight, dbias if biased else None, True, 0)
    return dx, dweight, dbias

for scratch, biased, ran in [(True, True, 1), (True, False, 1), (False, True, 3)]:
    calls, repeats = [], _native.Repeats(scratch)
    for seed in range(3):
        a, w, dy = numbers(70, 33), numbers(33), numbers(70, 33)
        mean, factor = a.mean(-1), 1 / np.sqrt(a.var(-1) + 1e-5)
        saved = np.stack([mean, factor], -1).astype(np.float32)
        arguments = tensor(a), tensor(w), tensor(saved), tensor(dy), biased
        results = repeats.again(arguments, True)
        if results is None or results is False:
            results = repeats.first(gradients, arguments)
        z = ((a - mean[:, None]) * factor[:, None]).astype(np.float64)
        g = dy.astype(np.float64) * w
        dx = factor[:, None] * (g - g.mean(-1, keepdims=True) - z * (g * z).mean(-1, keepdims=True))
        dbias = dy.astype(np.float64).sum(0) if biased else np.zeros(0)
        for found, expected in zip(results, (dx, (dy * z).sum(0), dbias)):
            assert found.shape == expected.shape
            np.testing.assert_allclose(read(found), expected, rtol=1e-3, atol=1e-4)
    assert len(calls) == ran, (biased, calls)
'''

SHARED = '''
# One tensor in two places, or overlapping parts of one, is another pattern than two tensors.
def gradient(x, saved, dy):
    calls.append(x.shape)
    dx = empty(x.shape, dtype=x.dtype, device=x.device)
    _native.norm_backward(x, saved, dy, dx, None, None, None, True, 0)
    return dx

def check(x, dy, a, g):
    mean, factor = a.mean(-1), 1 / np.sqrt(a.var(-1) + 1e-5)
    arguments = x, tensor(np.stack([mean, factor], -1).astype(np.float32)), dy
    dx = repeats.again(arguments, True)
    dx = repeats.first(gradient, arguments) if dx is None or dx is False else dx
    z = ((a - mean[:, None]) * factor[:, None]).astype(np.float64)
    expected = factor[:, None] * (g - g.mean(-1, keepdims=True) - z * (g * z).mean(-1, keepdims=True))
    np.testing.assert_allclose(read(dx), expected, rtol=1e-3, atol=1e-4)

calls, repeats = [], _native.Repeats(True)
a, g = numbers(7, 64), numbers(7, 64)
same = tensor(a)
check(same, same, a, a)
check(tensor(a), tensor(g), a, g)
check(tensor(a), tensor(g), a, g)
assert len(calls) == 2 and repeats.sizes() == (1, 0), (calls, repeats.sizes())
check(same, same, a, a)
assert len(calls) == 2, calls

def part(whole, first):
    return Tensor(whole.array, (7, 64), (128, 1), 4 * first)

repeats, calls = _native.Repeats(True), []
both = numbers(7, 128)
whole, other = tensor(both), tensor(both)
check(part(whole, 0), part(whole, 64), both[:, :64], both[:, 64:])
check(part(whole, 0), part(other, 64), both[:, :64], both[:, 64:])
other = numbers(7, 128)
check(part(whole, 0), part(tensor(other), 64), both[:, :64], other[:, 64:])
assert len(calls) == 2, calls
'''

ROTARY = '''
# Frequencies are a list of the signature, and their table is memory of the device.
def rotary(x, positions, frequencies, axes, interleaved):
    calls.append(frequencies)
    y = empty(x.shape, dtype=x.dtype, device=x.device)
    _native.rotary(x, positions, y, frequencies, axes, interleaved, 0)
    return y

for constants, ran in [(True, 2), (False, 4)]:
    calls, repeats = [], _native.Repeats(constants=constants)
    for step, frequencies in enumerate([[1.0, 0.1], [1.0, 0.1], [0.5, 0.2], [1.0, 0.1]]):
        a, positions = numbers(5, 3, 4), np.arange(5, dtype=np.int32) + step
        arguments = tensor(a), tensor(positions), frequencies, None, False
        y = repeats.again(arguments, True)
        y = repeats.first(rotary, arguments) if y is None or y is False else y
        angle = (positions[:, None] * np.array(frequencies))[:, None]
        p, q = a[..., :2], a[..., 2:]
        turned = [p * np.cos(angle) - q * np.sin(angle), p * np.sin(angle) + q * np.cos(angle)]
        np.testing.assert_allclose(read(y), np.concatenate(turned, -1), rtol=1e-4, atol=1e-5)
    assert len(calls) == ran, calls
'''

ATTENTION = '''
# The schedule of the blocks is shared memory of the device, and partial results are scratch memory.
def attention(q, k, v, causal):
    calls.append(causal)
    o, lse = empty(q.shape, dtype=q.dtype, device=q.device), empty(q.shape[:3], dtype="float32", device=q.device)
    _native.attention(q, k, v, o, None, causal, None, 0, lse)
    return o, lse

calls, repeats = [], _native.Repeats(True)
for step in range(3):
    q, k, v = numbers(1, 2, 5, 8), numbers(1, 2, 70, 8), numbers(1, 2, 70, 8)
    arguments = tensor(q), tensor(k), tensor(v), True
    results = repeats.again(arguments, True)
    results = repeats.first(attention, arguments) if results is None else results
    logits = q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / 8**0.5
    logits[..., np.arange(70) > np.arange(65, 70)[:, None]] = -np.inf
    e = np.exp(logits)
    np.testing.assert_allclose(read(results[0]), e / e.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(read(results[1]), np.log(e.sum(-1)), rtol=1e-5)
assert len(calls) == 1 and repeats.sizes() == (1, 0), (calls, repeats.sizes())
'''

QUANTIZED = '''
# Layers of equal format and extents repeat the same launches with their own planes. Strings are
# parts of the signature.
def product(x, words, halves, format, rows, columns):
    calls.append(x.shape)
    y = empty((x.shape[0], rows), dtype=x.dtype, device=x.device)
    _native.quantized_product(x, (words, halves), format, (rows, columns), y, 0)
    return y

calls, repeats, layers = [], _native.Repeats(True), []
for format, m, n, k, ran in [("Q4_0", 1, 6, 64, 1), ("Q4_0", 1, 6, 64, 1), ("Q8_0", 1, 6, 64, 2), ("Q4_0", 1, 6, 64, 2), ("Q8_0", 5, 6, 64, 3), ("Q8_0", 5, 6, 64, 3)]:
    weight, x = kernels_rs.array(numbers(n, k), "cuda"), numbers(m, k)
    layer = _native.Quantized.quantize(weight, format)
    layers.append(layer)
    arguments = (tensor(x), *(Tensor(plane) for plane in layer.planes()), format, n, k)
    y = repeats.again(arguments, True)
    y = repeats.first(product, arguments) if y is None else y
    direct = empty((m, n), dtype="float32", device="cuda:0")
    layer.product(arguments[0], direct, 0)
    np.testing.assert_array_equal(read(y), read(direct))
    exact = x.astype(np.float64) @ kernels_rs.numpy(weight).T
    assert np.abs(read(y) - exact).max() < (0.2 if format == "Q8_0" else 3), format
    assert len(calls) == ran, (format, calls)
# The recording keeps no weights: their planes are arguments.
try:
    _native.quantized_product(arguments[0], arguments[1:3], "Q8_0", (n, 2 * k), direct, 0)
except Exception as e:
    assert "words: extents" in str(e), e
else:
    raise AssertionError("planes of other extents")
'''

SCRIPTS = {
    "softmax": SOFTMAX,
    "norm": NORM,
    "shared": SHARED,
    "rotary": ROTARY,
    "attention": ATTENTION,
    "quantized": QUANTIZED,
}


# The table of C functions for DLPack, as PyTorch has it since version 2.10 (dlpack.h 1.3).
EXCHANGE = '''
import ctypes

class Description(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]

DESCRIBE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Description))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))

class Table(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 3),
        ("describe", DESCRIBE),
        ("stream", STREAM),
    ]

CODES = {"float32": (2, 32), "float16": (2, 16), "uint8": (1, 8), "int16": (0, 16), "int32": (0, 32)}
described = []

@DESCRIBE
def describe(x, out):
    described.append(x)
    x.numbers = [(ctypes.c_int64 * len(n))(*n) for n in (x.shape, x.strides)]
    pointers = [ctypes.cast(n, ctypes.c_void_p).value for n in x.numbers]
    out[0] = Description(x.data_ptr(), (2, 0), len(x.shape), *CODES[x.dtype], 1, *pointers, 0)
    return 0

@STREAM
def stream(device, ordinal, out):
    out[0] = None
    return 0

# A later version comes first, with the earlier one behind it.
table = Table(1, 3, None, (ctypes.c_void_p * 3)(), describe, stream)
later = Table(2, 0, ctypes.addressof(table))
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
Tensor.__dlpack_c_exchange_api__ = capsule(ctypes.addressof(later), b"dlpack_exchange_api", None)

def unread(name):
    raise AssertionError(f"{name} was read although the table describes tensors")

Tensor.get_device = Tensor.stride = lambda self: unread("an attribute")
torch._C._cuda_getCurrentRawStream = lambda ordinal: unread("the stream")
'''


@pytest.mark.skipif("cuda:0" not in kernels_rs.devices(), reason="needs a GPU")
@pytest.mark.parametrize("exchange", ["", EXCHANGE], ids=["attributes", "functions"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_repeats_give_the_same_results(script, exchange):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    check = "\nassert described" if exchange else ""
    text = STAND_IN + exchange + script + check
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
