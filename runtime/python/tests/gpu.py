"""Checks and figures on a GPU, with PyTorch, CuPy and JAX where they are installed: `python gpu.py`.

Prints a line for each check. The exit code is the number of failed checks.
"""

import statistics
import sys
import time
import traceback

import numpy as np

FAILED = []


def check(function):
    try:
        said = function()
        print(f"pass  {function.__name__}{': ' + said if said else ''}", flush=True)
    except ImportError as missing:
        print(f"skip  {function.__name__}: {missing}", flush=True)
    except Exception:
        FAILED.append(function.__name__)
        print(f"FAIL  {function.__name__}\n{traceback.format_exc()}", flush=True)


start = time.perf_counter()
import kernels_rs

IMPORTED = time.perf_counter() - start
SAXPY = """
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}
"""


@check
def imports_fast():
    return f"{IMPORTED:.3f} s; devices {kernels_rs.devices()}"


@check
def compiles_in_milliseconds():
    times = []
    for n in range(30):
        begin = time.perf_counter()
        kernels_rs.compile(SAXPY.replace("256", str(32 + 32 * n)))
        times.append(time.perf_counter() - begin)
    return f"median {statistics.median(times) * 1e3:.2f} ms"


@check
def own_arrays():
    saxpy = kernels_rs.compile(SAXPY)
    x, y = kernels_rs.array(np.arange(1000, dtype=np.float32), "cuda"), kernels_rs.zeros(1000, device="cuda")
    saxpy(2.0, x, y)
    assert (kernels_rs.numpy(y) == 2 * np.arange(1000)).all()
    wrong = kernels_rs.compile(SAXPY.replace("i < y.len()", "i <= y.len()"))
    try:
        wrong(1.0, x, y)
        raise AssertionError("no violation")
    except kernels_rs.Violation as e:
        assert e.line == 7, str(e)


def torch_saxpy(n=1 << 20):
    import torch

    return torch, torch.arange(n, dtype=torch.float32, device="cuda"), torch.ones(n, device="cuda")


@check
def torch_arrays_in_place():
    torch, x, y = torch_saxpy()
    for dtype in [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64]:
        t = torch.zeros(8, dtype=dtype, device="cuda")[2:]
        described = kernels_rs.describe(t)
        assert described["address"] == t.data_ptr() and described["device"] == "cuda:0", described
    saxpy = kernels_rs.compile(SAXPY)
    pointer = y.data_ptr()
    for unchecked in [False, True]:
        saxpy(2.0, x, y, unchecked=unchecked)
    assert y.data_ptr() == pointer and torch.equal(y, 4 * x + 1)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        z = torch.zeros_like(x)
        for _ in range(100):
            z.add_(1)
            saxpy(1.0, x, z, stream=side, unchecked=True)
        z.add_(1)
    side.synchronize()
    assert torch.allclose(z, 100 * x + 101)
    a = kernels_rs.array(np.arange(6, dtype=np.float32), "cuda")
    t = torch.from_dlpack(a)
    assert t.data_ptr() == a.ptr and t.tolist() == [0, 1, 2, 3, 4, 5]
    t = torch.as_tensor(type("I", (), {"__cuda_array_interface__": a.__cuda_array_interface__})(), device="cuda")
    assert t.data_ptr() == a.ptr


@check
def torch_values_of_the_library():
    import torch
    import torch.nn.functional as F

    torch.manual_seed(1)
    said = []

    def near(name, found, expected, tolerance):
        error = ((found.double() - expected).abs() / (1 + expected.abs())).max().item()
        said.append(f"{name} {error:.1e}")
        assert error <= tolerance, f"{name}: {error}"

    for dtype, tolerance in [(torch.float32, 1e-5), (torch.float16, 4e-3), (torch.bfloat16, 4e-2)]:
        x = torch.randn(64, 1024, device="cuda").to(dtype)
        w, b = torch.randn(1024, device="cuda").to(dtype), torch.randn(1024, device="cuda").to(dtype)
        d = x.double()
        near("softmax", kernels_rs.softmax(x), d.softmax(-1), tolerance)
        near("layer_norm", kernels_rs.layer_norm(x, 1024, w, b), F.layer_norm(d, (1024,), w.double(), b.double()), tolerance)
        rms = d / (d.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * w.double()
        near("rms_norm", kernels_rs.rms_norm(x, 1024, w, 1e-6), rms, tolerance)
        weight = torch.randn(256, 1024, device="cuda").to(dtype)
        near("linear", kernels_rs.linear(x, weight, b[:256]), F.linear(d, weight.double(), b[:256].double()), 8 * tolerance)
        q, k, v = (torch.randn(2, 4, 128, 64, device="cuda").to(dtype) for _ in range(3))
        expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
        near("attention", kernels_rs.scaled_dot_product_attention(q, k, v, is_causal=True), expected, tolerance)
        near("swiglu", kernels_rs.swiglu(x), F.silu(d[:, :512]) * d[:, 512:], tolerance)
    labels = torch.randint(0, 1024, (64,), device="cuda")
    x = torch.randn(64, 1024, device="cuda")
    near("cross_entropy", kernels_rs.cross_entropy(x, labels), F.cross_entropy(x.double(), labels), 1e-5)
    assert torch.equal(kernels_rs.argmax(x, -1).long(), x.argmax(-1))
    near("sum", kernels_rs.sum(x, 0), x.double().sum(0), 1e-5)
    assert torch.equal(kernels_rs.transpose(x), x.T)
    layer = kernels_rs.QuantizedLinear(torch.randn(128, 1024, device="cuda"))
    assert kernels_rs.linear(x, layer).shape == (64, 128)
    return ", ".join(said)


@check
def cost_of_a_call():
    torch, x, y = torch_saxpy(1024)
    saxpy = kernels_rs.compile(SAXPY)
    stream = kernels_rs.Stream("cuda")
    ax, ay = kernels_rs.asarray(x), kernels_rs.asarray(y)
    figures = {}

    def timed(name, call, finish, n=2000):
        for _ in range(200):
            call()
        finish()
        begin = time.perf_counter()
        for _ in range(n):
            call()
        figures[name] = (time.perf_counter() - begin) / n * 1e6
        finish()

    timed("submitted, Array", lambda: saxpy(2.0, ax, ay, stream=stream, unchecked=True), stream.wait)
    timed("submitted, torch", lambda: saxpy(2.0, x, y, stream=stream, unchecked=True), stream.wait)
    current = torch.cuda.current_stream()
    timed("torch's stream", lambda: saxpy(2.0, x, y, stream=current, unchecked=True), current.synchronize)
    timed("complete, Array", lambda: saxpy(2.0, ax, ay, unchecked=True), stream.wait)
    timed("torch add_", lambda: y.add_(x), torch.cuda.synchronize)
    return ", ".join(f"{name} {time:.1f} us" for name, time in figures.items())


@check
def memory_does_not_grow():
    torch, x, y = torch_saxpy(1024)
    saxpy = kernels_rs.compile(SAXPY)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(1000):
        saxpy(2.0, x, y, unchecked=True)
    before, device = resident(), torch.cuda.mem_get_info()[0]
    for _ in range(200_000):
        saxpy(2.0, x, y, unchecked=True)
    grown = resident() - before
    assert grown < 1 << 20 and device - torch.cuda.mem_get_info()[0] < 1 << 20
    return f"{grown} bytes after 200,000 calls"


@check
def speed_beside_torch():
    import torch
    import torch.nn.functional as F

    def milliseconds(call, n=20):
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        times = []
        for _ in range(n):
            begin = time.perf_counter()
            call()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return statistics.median(times) * 1e3

    x = torch.randn(32768, 4096, device="cuda")
    w = torch.randn(4096, device="cuda")
    out = torch.empty_like(x)
    pairs = {
        "softmax": (lambda: kernels_rs.softmax(x, out=out), lambda: torch.softmax(x, -1)),
        "layer_norm": (lambda: kernels_rs.layer_norm(x, 4096, w, w, out=out), lambda: F.layer_norm(x, (4096,), w, w)),
        "swiglu": (lambda: kernels_rs.swiglu(x), lambda: F.silu(x[:, :2048]) * x[:, 2048:]),
        "transpose": (lambda: kernels_rs.transpose(x), lambda: x.T.contiguous()),
    }
    said = []
    for name, (ours, theirs) in pairs.items():
        a, b = milliseconds(ours), milliseconds(theirs)
        said.append(f"{name} {a:.3f} ms, torch {b:.3f} ms ({b / a:.2f} x)")
    return "; ".join(said)


@check
def cupy_arrays_in_place():
    import cupy

    x, y = cupy.arange(1000, dtype=cupy.float32), cupy.zeros(1000, cupy.float32)
    assert kernels_rs.describe(x)["address"] == x.data.ptr
    kernels_rs.compile(SAXPY)(2.0, x, y)
    assert (y == 2 * x).all()
    z = kernels_rs.softmax(x.reshape(10, 100))
    assert isinstance(z, cupy.ndarray) and abs(float(z.sum()) - 10) < 1e-4
    a = kernels_rs.array(np.ones(5, np.float32), "cuda")
    assert cupy.from_dlpack(a).data.ptr == a.ptr


@check
def jax_arrays_in_place():
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError("jax has no GPU")
    x = jax.numpy.arange(12.0).reshape(3, 4)
    assert kernels_rs.describe(x)["address"] == x.unsafe_buffer_pointer()
    y = kernels_rs.softmax(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_allclose(np.asarray(y), np.asarray(jax.nn.softmax(x)), rtol=1e-6)


print(f"{len(FAILED)} failed: {', '.join(FAILED)}" if FAILED else "all passed")
sys.exit(len(FAILED))
