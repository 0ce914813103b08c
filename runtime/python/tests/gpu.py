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


import kernels_rs

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
    """Measures the import in new processes, which have imported nothing else."""
    import subprocess

    script = "import time; start = time.perf_counter(); import kernels_rs; print(time.perf_counter() - start)"
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(5)]
    times = [float(run.stdout) for run in runs]
    assert max(times) < 0.3, times
    return f"{statistics.median(times):.3f} s (at most {max(times):.3f}); devices {kernels_rs.devices()}"


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


LAUNCHES = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

/* Returns the nanoseconds of a launch of kernel `name` of the PTX text, all of whose arguments are 0;
   negative if a function of the driver fails. The context is the current one of the thread. */
double launch(const char *ptx, const char *name, int launches) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *module, *function;
    if (!driver) return -1;
    int (*load)(void **, const void *) = dlsym(driver, "cuModuleLoadData");
    int (*find)(void **, void *, const char *) = dlsym(driver, "cuModuleGetFunction");
    int (*run)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        dlsym(driver, "cuLaunchKernel");
    int (*wait)(void *) = dlsym(driver, "cuStreamSynchronize");
    static uint64_t zero[16];
    void *arguments[16];
    for (int i = 0; i < 16; i++) arguments[i] = zero;
    if (load(&module, ptx) || find(&function, module, name)) return -2;
    struct timespec from, to;
    for (int round = 0; round < 2; round++) {
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < launches; i++)
            if (run(function, 4, 1, 1, 256, 1, 1, 0, 0, arguments, 0)) return -3;
        clock_gettime(CLOCK_MONOTONIC, &to);
        if (wait(0)) return -4;
    }
    return ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / launches;
}
"""


@check
def cost_of_a_call_over_the_launch():
    """Compares calls with a loop in C that launches the same PTX, with the same grid, by the driver's function."""
    import ctypes
    import pathlib
    import re
    import shutil
    import subprocess
    import tempfile

    torch, x, y = torch_saxpy(1024)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise ImportError("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "launches.c")
        source.write_text(LAUNCHES)
        library = str(source.with_suffix(".so"))
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", library, "-ldl"], check=True)
        launch = ctypes.CDLL(library).launch
    launch.restype, launch.argtypes = ctypes.c_double, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    saxpy = kernels_rs.compile(SAXPY)
    entry = re.search(r"\.entry\s+([\w$]+)", saxpy.ptx).group(1)
    stream, current = kernels_rs.Stream("cuda"), torch.cuda.current_stream()
    own = kernels_rs.zeros(1024, device="cuda"), kernels_rs.zeros(1024, device="cuda")

    def called(call, finish, n=400):
        for _ in range(n):
            call()
        finish()
        begin = time.perf_counter()
        for _ in range(n):
            call()
        cost = (time.perf_counter() - begin) / n * 1e6
        finish()
        return cost

    calls = {
        "own arrays": lambda: called(lambda: saxpy(2.0, *own, stream=stream, unchecked=True), stream.wait),
        "tensors": lambda: called(lambda: saxpy(2.0, x, y, stream=stream, unchecked=True), stream.wait),
        "tensors on torch's stream": lambda: called(
            lambda: saxpy(2.0, x, y, stream=current, unchecked=True), current.synchronize
        ),
    }
    # Alternately, because the clock of the processor changes.
    rounds = [(launch(saxpy.ptx.encode(), entry.encode(), 400) / 1e3, *(f() for f in calls.values())) for _ in range(15)]
    assert all(first > 0 for first, *_ in rounds), rounds[0][0]
    bare, *costs = (statistics.median(column) for column in zip(*rounds))
    over = ", ".join(f"{name} {cost:.1f} us ({cost - bare:+.1f})" for name, cost in zip(calls, costs))
    return f"launch from C {bare:.1f} us, {over}"


@check
def memory_does_not_grow():
    torch, x, y = torch_saxpy(1024)
    saxpy = kernels_rs.compile(SAXPY)
    rows = torch.randn(16, 64, device="cuda")

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    said = []
    calls = {
        "saxpy": lambda: saxpy(2.0, x, y, unchecked=True),
        "softmax of tensors": lambda: kernels_rs.softmax(rows),
    }
    for name, call in calls.items():
        for _ in range(1000):
            call()
        torch.cuda.synchronize()
        before, device = resident(), torch.cuda.mem_get_info()[0]
        for _ in range(1_000_000):
            call()
        torch.cuda.synchronize()
        grown, on_device = resident() - before, device - torch.cuda.mem_get_info()[0]
        said.append(f"{name}: {grown} bytes, {on_device} on the GPU")
        assert grown < 1 << 20 and on_device < 1 << 20, said
    return "after 1,000,000 calls " + "; ".join(said)


@check
def gradients_beside_finite_differences():
    """Runs PyTorch's gradcheck on the kernels, in float32: the step is 2**-6, and the tolerance 2 %."""
    import warnings

    import torch

    torch.manual_seed(2)
    weight, labels = torch.ones(16, device="cuda"), torch.tensor([1, 4, 0], device="cuda")
    positions = torch.arange(3, device="cuda")
    mask = kernels_rs.BlockMask([[[True]]], 3, 3)

    def heads(x):
        return x.reshape(1, 2, 3, 8)

    functions = {
        "softmax": lambda x: kernels_rs.softmax(x, strict=True),
        "log_softmax": lambda x: kernels_rs.log_softmax(x, strict=True),
        "rms_norm": lambda x: kernels_rs.rms_norm(x, 16, weight, 1e-6, strict=True),
        "layer_norm": lambda x: kernels_rs.layer_norm(x, 16, weight, strict=True),
        "swiglu": lambda x: kernels_rs.swiglu(x, strict=True),
        "gelu": lambda x: kernels_rs.gelu(x, strict=True),
        "matmul": lambda x: kernels_rs.matmul(x, x.T.contiguous(), strict=True),
        "linear": lambda x: kernels_rs.linear(x, x, strict=True),
        "linear with silu": lambda x: kernels_rs.linear(x, x, activation="silu", residual=x[:, :3], strict=True),
        "cross_entropy": lambda x: kernels_rs.cross_entropy(x, labels, strict=True),
        "rotary": lambda x: kernels_rs.rotary(x.reshape(3, 1, 16), positions, strict=True),
        "attention": lambda x: kernels_rs.attention(heads(x), heads(x), heads(x), causal=True, strict=True),
        "attention of blocks": lambda x: kernels_rs.attention(
            heads(x)[:, :1], heads(x)[:, 1:], heads(x)[:, 1:], blocks=mask, strict=True
        ),
        "transpose": lambda x: kernels_rs.transpose(x, strict=True),
        "attention with limited logits": lambda x: kernels_rs.attention(
            heads(x), heads(x), heads(x), softcap=1.0, strict=True
        ),
        "attention with slopes": lambda x: kernels_rs.attention(
            heads(x), heads(x), heads(x), causal=True, alibi=torch.tensor([0.5, 0.1], device="cuda"), strict=True
        ),
        "attention with a bias": lambda x: kernels_rs.attention(
            heads(x), heads(x), heads(x), bias=torch.eye(3, device="cuda"), strict=True
        ),
        "attention of a padded batch": lambda x: kernels_rs.attention(
            heads(x), heads(x), heads(x), lengths=torch.tensor([2], device="cuda"), strict=True
        ),
        "attention of a packed batch": lambda x: kernels_rs.attention(
            heads(x), heads(x), heads(x), offsets=torch.tensor([0, 1, 3], device="cuda"), strict=True
        ),
        "sum": lambda x: kernels_rs.sum(x, 0, strict=True),
        "mean": lambda x: kernels_rs.mean(x, strict=True),
        "norm": lambda x: kernels_rs.norm(x, 2, -1, strict=True),
        "max": lambda x: kernels_rs.max(4 * x, -1, strict=True),
        "min": lambda x: kernels_rs.min(4 * x, 0, strict=True),
        "cumsum": lambda x: kernels_rs.cumsum(x, exclusive=True, strict=True),
        "embedding": lambda x: kernels_rs.embedding(labels, x, strict=True),
    }
    for name, function in functions.items():
        x = torch.randn(3, 16, device="cuda", requires_grad=True)
        with warnings.catch_warnings():
            # PyTorch expects float64.
            warnings.simplefilter("ignore")
            assert torch.autograd.gradcheck(function, (x,), eps=2**-6, atol=1e-2, rtol=2e-2, nondet_tol=1e-6), name
    return f"gradcheck of {len(functions)} functions"


@check
def attention_in_all_forms():
    """Compares scores, batches of sequences, and caches of integers with float64."""
    import torch

    torch.manual_seed(4)
    said = {}

    def near(name, found, expected, tolerance):
        error = ((found - expected).abs() / (1 + expected.abs())).max().item()
        said[name] = max(error, said.get(name, 0))
        assert error <= tolerance, f"{name}: {error}"

    def exact(score, *operands):
        q, k, v = (x.double() for x in operands)
        return score(q @ k.mT / 8).softmax(-1) @ v

    behind = torch.arange(200, device="cuda")[:, None] + 100 - torch.arange(300, device="cuda")
    # Later steps may repeat the launches of the first.
    for step in range(3):
        q, k, v = (torch.randn(2, 4, n, 64, device="cuda") for n in (200, 300, 300))
        slopes, bias = torch.rand(4, device="cuda"), torch.randn(2, 1, 200, 300, device="cuda")
        y = kernels_rs.attention(q, k, v, softcap=2.0, strict=True)
        near("softcap", y, exact(lambda x: 2 * (x / 2).tanh(), q, k, v), 2e-3)
        y = kernels_rs.attention(q, k, v, alibi=slopes, strict=True)
        # The products of slopes and distances are rounded at magnitudes of 300.
        near("alibi", y, exact(lambda x: x - slopes.double()[:, None, None] * behind, q, k, v), 5e-5)
        y = kernels_rs.attention(q, k, v, bias=bias, strict=True)
        near("bias", y, exact(lambda x: x + bias, q, k, v), 1e-5)
        lengths = torch.tensor([150 + step, 200], device="cuda"), torch.tensor([180, 300 - step], device="cuda")
        y = kernels_rs.attention(q, k, v, lengths=lengths, strict=True)
        for i, (n, m) in enumerate(((150 + step, 180), (200, 300 - step))):
            one = exact(lambda x: x, q[i, :, :n], k[i, :, :m], v[i, :, :m])
            near("padded", y[i, :, :n], one, 1e-5)
        assert not y[0, :, 150 + step :].any()
        packed = [x.transpose(0, 1).reshape(1, 4, -1, 64) for x in (q, k, v)]
        offsets = torch.tensor([0, 200, 400], device="cuda"), torch.tensor([0, 300, 600], device="cuda")
        y = kernels_rs.attention(*packed, offsets=offsets, longest=(200, 300), strict=True)
        near("packed", torch.cat(y.split(200, 2)), exact(lambda x: x, q, k, v), 1e-5)
    one, new = torch.randn(2, 8, 64, device="cuda"), torch.randn(2, 2, 4, 64, device="cuda")
    for name, kind, scales, tolerance in (
        ("int8", (64, torch.int8), ((), torch.float32), 0.03),
        ("q8_0", (64, torch.int8), ((2,), torch.float16), 0.03),
        ("q4_0", (8, torch.int32), ((2,), torch.float16), 0.6),
    ):
        caches = torch.zeros(2, 2, 4, 32, kind[0], dtype=kind[1], device="cuda")
        scales = torch.zeros(2, 2, 4, 32, *scales[0], dtype=scales[1], device="cuda")
        lengths, exact_caches = torch.zeros(2, dtype=torch.int64, device="cuda"), torch.zeros(2, 2, 4, 32, 64, device="cuda")
        for _ in range(20):
            rotated = kernels_rs.cache_append(one, *new, *caches, lengths, scales=tuple(scales))
            kernels_rs.cache_append(one, *new, *exact_caches, lengths)
            lengths = lengths + 1
            new = new.roll(1, -1)
        found = kernels_rs.decode(rotated, *caches, lengths, scales=tuple(scales))
        near(name, found, kernels_rs.decode(rotated, *exact_caches, lengths).double(), tolerance)
    return ", ".join(f"{name} {error:.1e}" for name, error in said.items())


@check
def compiles_statistics():
    """Compiles reductions, running sums, histograms and tokens with torch.compile(fullgraph=True)."""
    import torch

    index, weight = torch.randint(0, 90, (64,), device="cuda"), torch.randn(100, 256, device="cuda", requires_grad=True)

    def statistics(index, weight):
        y = kernels_rs.embedding(index, weight)
        rows = kernels_rs.sum(y, -1) + kernels_rs.max(y, -1) - kernels_rs.min(y, -1) + kernels_rs.norm(y, 2, -1)
        rows = rows + kernels_rs.mean(y) + kernels_rs.cumsum(y)[:, -1]
        return rows, kernels_rs.argmax(y, -1), kernels_rs.sample(y, seed=1), kernels_rs.histc(y, 8, -2.0, 2.0)

    found, expected = torch.compile(statistics, fullgraph=True)(index, weight), statistics(index, weight)
    for of_found, of_expected in zip(found, expected):
        torch.testing.assert_close(of_found, of_expected, rtol=1e-4, atol=1e-4)
    gradients = [torch.autograd.grad(y[0].square().sum(), weight)[0] for y in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-3)
    theirs = (weight[index].sum(-1), weight[index].max(-1).values)
    torch.testing.assert_close(kernels_rs.sum(weight[index], -1), theirs[0], rtol=1e-4, atol=1e-4)
    assert torch.equal(kernels_rs.max(weight[index], -1), theirs[1])


@check
def compiles_whole_graphs():
    """Compiles a function with torch.compile(fullgraph=True), and compares values and gradients with eager calls."""
    import torch

    torch.manual_seed(6)
    x, w = torch.randn(64, 256, device="cuda", requires_grad=True), torch.randn(256, 256, device="cuda", requires_grad=True)

    def layer(x, w):
        y = kernels_rs.silu(kernels_rs.linear(kernels_rs.rms_norm(x, 256, None, 1e-6), w))
        q = y.reshape(1, 64, 4, 64).transpose(1, 2)
        return kernels_rs.softmax(kernels_rs.attention(q, q, q, causal=True).transpose(1, 2).reshape(64, 256) + x)

    compiled = torch.compile(layer, fullgraph=True)
    differences = []
    for found, expected in zip(*(
        (y.detach(), *torch.autograd.grad(y.square().sum(), (x, w))) for y in (compiled(x, w), layer(x, w))
    )):
        differences.append(((found - expected).abs().max() / expected.abs().max()).item())
    assert max(differences) < 1e-4, differences
    return "fullgraph=True, largest differences of value and gradients " + ", ".join(f"{x:.1e}" for x in differences)


def qwen_layer(tokens, sections, **extents):
    """Returns a decoder layer of Qwen3-VL with random weights, and the cosines and sines of its positions."""
    import torch
    import transformers
    from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen

    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": sections}
    config = transformers.models.qwen3_vl.Qwen3VLTextConfig(rope_parameters=rope, **extents)
    config._attn_implementation = "sdpa"
    torch.manual_seed(1)
    layer, size = qwen.Qwen3VLTextDecoderLayer(config, 0).cuda(), extents["head_dim"]
    angle = torch.arange(tokens, device="cuda")[:, None] * 5e6 ** (-torch.arange(0, size, 2, device="cuda") / size)
    return layer, tuple(torch.cat([t, t], -1)[None] for t in (angle.cos(), angle.sin()))


@check
def training_steps_beside_torch():
    """Compares three steps of a patched layer of Qwen3-VL and our AdamW with PyTorch's, each beside float64."""
    import copy

    import torch

    torch.manual_seed(7)
    tokens, size = 256, 512
    extents = dict(hidden_size=size, intermediate_size=1024, num_attention_heads=8, num_key_value_heads=4, head_dim=64)
    theirs, position = qwen_layer(tokens, [12, 10, 10], **extents)
    ours, exact = copy.deepcopy(theirs), copy.deepcopy(theirs).double()
    ours.self_attn.config = copy.deepcopy(theirs.self_attn.config)
    kernels_rs.patch(ours, strict=True)
    x, labels = torch.randn(4, tokens, size, device="cuda"), torch.randint(0, size, (4 * tokens,), device="cuda")

    def trained(model, optimizer, loss_of):
        losses, dtype = [], next(model.parameters()).dtype
        for _ in range(3):
            optimizer.zero_grad()
            y = model(x.to(dtype), position_embeddings=tuple(t.to(dtype) for t in position), attention_mask=None)
            y = y[0] if isinstance(y, tuple) else y
            loss = loss_of(y.reshape(-1, size), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, torch.cat([p.detach().double().flatten() for p in model.parameters()])

    F = torch.nn.functional
    reference, of_exact = trained(exact, torch.optim.AdamW(exact.parameters(), lr=1e-3), F.cross_entropy)
    plain, of_theirs = trained(theirs, torch.optim.AdamW(theirs.parameters(), lr=1e-3), F.cross_entropy)
    kernels_rs.stats(reset=True)
    losses, of_ours = trained(ours, kernels_rs.AdamW(ours.parameters(), lr=1e-3, strict=True), kernels_rs.cross_entropy)
    counts = kernels_rs.stats()
    assert not any(of["torch"] for of in counts.values()), counts
    # The first steps divide gradients by their magnitudes, so a gradient near 0 may change its
    # sign.
    error, of_torch = (((w - of_exact).norm() / of_exact.norm()).item() for w in (of_ours, of_theirs))
    assert losses[2] < losses[0] and max(abs(a - b) for a, b in zip(losses, reference)) < 1e-4, losses
    shown = ", ".join(f"{a:.6f} (torch {b:.6f}, float64 {c:.6f})" for a, b, c in zip(losses, plain, reference))
    return f"losses {shown}; relative error of the weights {error:.1e}, torch's {of_torch:.1e}"


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


def event_milliseconds(call, n=20):
    """Returns the median time of a call on the GPU, which the host keeps busy."""
    import torch

    for _ in range(5):
        call()
    times = []
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(n):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / n)
    return statistics.median(times)


def beside_torch(pairs, without=()):
    """Measures pairs of calls, ours and PyTorch's. Returns a line with their times and the mean of ratios.

    A second mean leaves out the pairs `without`.
    """
    said, ratios = [], {}
    for name, (ours, theirs) in pairs.items():
        a, b = event_milliseconds(ours), event_milliseconds(theirs)
        ratios[name] = b / a
        said.append(f"{name} {a:.4f} ms, torch {b:.4f} ms ({b / a:.2f} x)")
    said.append(f"geometric mean of {len(ratios)} {statistics.geometric_mean(ratios.values()):.2f} x")
    others = [ratio for name, ratio in ratios.items() if name not in without]
    if len(others) < len(ratios):
        said.append(f"without {', '.join(without)} {statistics.geometric_mean(others):.2f} x")
    return "; ".join(said)


def turned(x, cos, sin):
    """Returns the rotary embedding of Hugging Face's models."""
    import torch

    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


@check
def operators_beside_torch():
    import torch
    import torch.nn.functional as F

    x, w = torch.randn(32768, 4096, device="cuda"), torch.randn(4096, device="cuda")
    a, b = torch.randn(8192, 6144, device="cuda"), torch.randn(8192, 6144, device="cuda")
    heads, positions = torch.randn(8192, 16, 128, device="cuda"), torch.arange(8192, device="cuda")
    angle = positions[:, None] * 10000.0 ** (-torch.arange(0, 128, 2, device="cuda") / 128)
    cos, sin = (torch.cat([t, t], -1)[:, None] for t in (angle.cos(), angle.sin()))
    q, k, v = (torch.randn(1, 16, 2048, 128, device="cuda") for _ in range(3))
    weight, token = torch.randn(6144, 2048, device="cuda"), torch.randn(1, 2048, device="cuda")
    q4, q8 = kernels_rs.QuantizedLinear(weight, "Q4_0"), kernels_rs.QuantizedLinear(weight, "Q8_0")
    wide = weight.to(torch.bfloat16)
    rows = torch.randn(512, 2048, device="cuda")
    q1, k1, v1 = (torch.randn(1, 16, tokens, 128, device="cuda") for tokens in (1, 4096, 4096))
    scales = weight.abs().amax(-1) / 127
    bytes_of_weight = (weight / scales[:, None]).round().to(torch.int8).T

    def torch_int8(x):
        """Quantizes rows to 8 bits, multiplies them by PyTorch's tensor cores, and applies the scales."""
        scale = x.abs().amax(-1, keepdim=True) / 127
        return torch._int_mm((x / scale).round().to(torch.int8), bytes_of_weight) * (scale * scales)

    return beside_torch(
        {
            "softmax 32768 × 4096": (lambda: kernels_rs.softmax(x), lambda: torch.softmax(x, -1)),
            "rms_norm": (lambda: kernels_rs.rms_norm(x, 4096, w, 1e-6), lambda: F.rms_norm(x, (4096,), w, 1e-6)),
            "layer_norm": (lambda: kernels_rs.layer_norm(x, 4096, w, w), lambda: F.layer_norm(x, (4096,), w, w)),
            "swiglu 8192 × 6144": (lambda: kernels_rs.swiglu(a, b), lambda: F.silu(a) * b),
            "transpose": (lambda: kernels_rs.transpose(x), lambda: x.T.contiguous()),
            "rotary 8192 × 16 × 128": (lambda: kernels_rs.rotary(heads, positions), lambda: turned(heads, cos, sin)),
            "attention 2048 × 16 × 128": (
                lambda: kernels_rs.attention(q, k, v),
                lambda: F.scaled_dot_product_attention(q, k, v),
            ),
            "causal": (
                lambda: kernels_rs.attention(q, k, v, causal=True),
                lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            ),
            "decode 1 of 4096 × 16 × 128": (
                lambda: kernels_rs.attention(q1, k1, v1),
                lambda: F.scaled_dot_product_attention(q1, k1, v1),
            ),
            "Q4_0 linear 1 × 6144 × 2048": (lambda: q4(token), lambda: F.linear(token.bfloat16(), wide)),
            "Q8_0 linear 512 × 6144 × 2048": (lambda: q8(rows), lambda: F.linear(rows, weight)),
            "Q8_0 linear beside int8 512 × 6144 × 2048": (lambda: q8(rows), lambda: torch_int8(rows)),
        },
        # PyTorch has the same product with int8, above.
        without=["Q8_0 linear 512 × 6144 × 2048"],
    )


@check
def one_row_with_q4_0():
    """Measures the product of one row: times of the host and the GPU, as an operator, on a stream, and by PyTorch."""
    import torch

    weight, token = torch.randn(6144, 2048, device="cuda"), torch.randn(1, 2048, device="cuda")
    q4, wide, narrow = kernels_rs.QuantizedLinear(weight, "Q4_0"), weight.bfloat16(), token.bfloat16()
    stream = torch.cuda.current_stream()
    calls = {
        "operator": lambda: q4(token),
        "on a stream": lambda: q4(token, stream=stream),
        "torch, converted": lambda: torch.nn.functional.linear(token.bfloat16(), wide),
        "torch": lambda: torch.nn.functional.linear(narrow, wide),
    }
    said = []
    for name, call in calls.items():
        event_milliseconds(call)
        begin = time.perf_counter()
        for _ in range(200):
            call()
        host = (time.perf_counter() - begin) / 200 * 1e6
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(50):
                call()
            torch.cuda.synchronize()
        events = [e for e in profile.key_averages() if e.device_time_total > 0]
        gpu = sum(e.device_time_total for e in events) / 50
        launches = sum(e.count for e in events) / 50
        said.append(f"{name}: host {host:.1f} us, GPU {gpu:.1f} us in {launches:.0f} launches")
    return "; ".join(said)


@check
def kernels_of_the_gradients_of_norms():
    import torch

    x, w = torch.randn(8192, 4096, device="cuda", requires_grad=True), torch.randn(4096, device="cuda", requires_grad=True)
    said = []
    for name, function in (
        ("rms_norm", lambda: kernels_rs.rms_norm(x, 4096, w, 1e-6)),
        ("torch rms_norm", lambda: torch.nn.functional.rms_norm(x, (4096,), w, 1e-6)),
    ):
        dy = torch.ones_like(x)
        for _ in range(3):
            torch.autograd.grad(function(), (x, w), dy)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(10):
                torch.autograd.grad(function(), (x, w), dy)
            torch.cuda.synchronize()
        events = [e for e in profile.key_averages() if e.device_time_total > 0]
        said += [f"{name}: {e.key[:60]} {e.device_time_total / 10:.1f} us" for e in events]
    return "; ".join(said)


@check
def pool_as_the_allocator_of_torch():
    """Runs a process whose tensors take memory from the pool of the kernels."""
    import subprocess

    script = """
import torch, kernels_rs, time
torch.cuda.memory.change_current_allocator(kernels_rs.torch_allocator())
x = torch.randn(1000, 1000, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
for n in range(200):
    with torch.cuda.stream(side if n % 2 else torch.cuda.current_stream()):
        y = kernels_rs.softmax(torch.full((512, 512), float(n), device="cuda"))
        assert (y - 1 / 512).abs().max().item() < 1e-6, n
        del y
torch.cuda.synchronize()
begin = time.perf_counter()
for _ in range(5000):
    torch.empty(1024, device="cuda")
print(f"torch.empty {(time.perf_counter() - begin) / 5000 * 1e6:.2f} us")
free = torch.cuda.mem_get_info()[0]
blocks = [torch.empty(free // 12, dtype=torch.uint8, device="cuda") for _ in range(8)]
del blocks
whole = torch.empty(int(free * 0.8), dtype=torch.uint8, device="cuda")
assert torch.allclose(kernels_rs.softmax(x), x.softmax(-1), atol=1e-6)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@check
def gradients_beside_torch():
    import torch
    import torch.nn.functional as F

    x = torch.randn(8192, 4096, device="cuda", requires_grad=True)
    w = torch.randn(4096, device="cuda", requires_grad=True)
    a, b = (torch.randn(8192, 6144, device="cuda", requires_grad=True) for _ in range(2))
    q, k, v = (torch.randn(1, 16, 2048, 128, device="cuda", requires_grad=True) for _ in range(3))
    logits = torch.randn(2048, 151936, device="cuda", requires_grad=True)
    labels = torch.randint(0, 151936, (2048,), device="cuda")

    def both(function, *operands):
        def run():
            y = function(*operands)
            torch.autograd.grad(y, operands, torch.ones_like(y))

        return run

    def attended(function, causal=True):
        return both(lambda q, k, v: function(q, k, v, is_causal=causal), q, k, v)

    pairs = {
        "softmax 8192 × 4096": (both(kernels_rs.softmax, x), both(lambda x: torch.softmax(x, -1), x)),
        "rms_norm": (
            both(lambda x, w: kernels_rs.rms_norm(x, 4096, w, 1e-6), x, w),
            both(lambda x, w: F.rms_norm(x, (4096,), w, 1e-6), x, w),
        ),
        "layer_norm": (
            both(lambda x, w: kernels_rs.layer_norm(x, 4096, w), x, w),
            both(lambda x, w: F.layer_norm(x, (4096,), w), x, w),
        ),
        "swiglu 8192 × 6144": (both(kernels_rs.swiglu, a, b), both(lambda a, b: F.silu(a) * b, a, b)),
        "cross_entropy 2048 × 151936": (
            both(lambda x: kernels_rs.cross_entropy(x, labels), logits),
            both(lambda x: F.cross_entropy(x, labels), logits),
        ),
        "causal attention 2048 × 16 × 128": (
            attended(kernels_rs.scaled_dot_product_attention),
            attended(F.scaled_dot_product_attention),
        ),
        "attention 2048 × 16 × 128": (
            attended(kernels_rs.scaled_dot_product_attention, False),
            attended(F.scaled_dot_product_attention, False),
        ),
    }
    return "forward and backward: " + beside_torch(pairs)


@check
def adamw_beside_torch():
    import torch

    weights = [torch.nn.Parameter(torch.randn(4096, 4096, device="cuda")) for _ in range(8)]
    for w in weights:
        w.grad = torch.randn_like(w)
    ours, theirs = kernels_rs.AdamW(weights), torch.optim.AdamW(weights, fused=True)
    return beside_torch({"AdamW 8 × 4096 × 4096": (ours.step, theirs.step)})


@check
def a_layer_of_qwen3_vl():
    """Compares values, times and peak memory of a decoder layer with the extents of Qwen3-VL-2B, patched and not."""
    import copy

    import torch

    extents = dict(hidden_size=2048, intermediate_size=6144, num_attention_heads=16, num_key_value_heads=8, head_dim=128)
    tokens, said = 2048, []
    theirs, position = qwen_layer(tokens, [24, 20, 20], **extents)
    ours = copy.deepcopy(theirs)
    ours.self_attn.config = copy.deepcopy(theirs.self_attn.config)
    patched = kernels_rs.patch(ours, strict=True)
    x = torch.randn(1, tokens, 2048, device="cuda", requires_grad=True)

    def run(layer, graded):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        with torch.set_grad_enabled(graded):
            y = layer(x, position_embeddings=position, attention_mask=None)
        y = y[0] if isinstance(y, tuple) else y
        gradient = torch.autograd.grad(y.square().mean(), x)[0] if graded else None
        torch.cuda.synchronize()
        return y.detach(), gradient, (torch.cuda.max_memory_allocated() - before) / 2**20

    wide = copy.deepcopy(theirs).double()
    position = tuple(t.double() for t in position)
    x = x.detach().double().requires_grad_()
    exact = run(wide, True)
    position = tuple(t.float() for t in position)
    x = x.detach().float().requires_grad_()
    for name, layer in (("ours", ours), ("torch", theirs)):
        y, gradient, _ = run(layer, True)
        for what, found, expected in (("value", y, exact[0]), ("gradient", gradient, exact[1])):
            error = ((found - expected).norm() / expected.norm()).item()
            said.append(f"{name} {what} error {error:.1e}")
            assert error < 1e-5
    for graded in (False, True):
        said.append(("forward and backward" if graded else "forward") + ": ")
        memory = {}
        for name, layer in (("ours", ours), ("torch", theirs)):
            memory[name] = run(layer, graded)[2]
            milliseconds = event_milliseconds(lambda: run(layer, graded), n=3)
            said.append(f"{name} {milliseconds:.3f} ms, peak {memory[name]:.0f} MiB")
        less = 1 - memory["ours"] / memory["torch"]
        said.append(f"{100 * less:.0f} % less memory")
        assert less >= 0.2, said
    return f"{len(patched.modules)} modules; " + ", ".join(said)


@check
def cost_of_an_operator():
    import torch

    x = torch.randn(16, 64, device="cuda")
    graded = x.detach().clone().requires_grad_()
    w = torch.ones(64, device="cuda")
    saxpy = kernels_rs.compile(SAXPY)
    current = torch.cuda.current_stream().cuda_stream
    y = torch.ones(1024, device="cuda")
    stream = kernels_rs.Stream("cuda")
    own = kernels_rs.zeros(1024, device="cuda"), kernels_rs.zeros(1024, device="cuda")
    figures = {}

    def timed(name, call, n=3000):
        for _ in range(300):
            call()
        torch.cuda.synchronize()
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(n // 5):
                call()
            times.append((time.perf_counter() - begin) / (n // 5) * 1e6)
            torch.cuda.synchronize()
            stream.wait()
        figures[name] = statistics.median(times)

    timed("saxpy of own arrays, submitted", lambda: saxpy(2.0, *own, stream=stream, unchecked=True))
    timed("saxpy of tensors, submitted", lambda: saxpy(2.0, y, own[1], stream=stream, unchecked=True))
    timed("saxpy of tensors, torch's stream", lambda: saxpy(2.0, own[0], y, stream=current, unchecked=True))
    timed("softmax", lambda: kernels_rs.softmax(x))
    timed("softmax with a graph", lambda: kernels_rs.softmax(graded))
    timed("torch softmax", lambda: torch.softmax(x, -1))
    timed("torch softmax with a graph", lambda: torch.softmax(graded, -1))
    timed("rms_norm", lambda: kernels_rs.rms_norm(x, 64, w, 1e-6))
    timed("torch rms_norm", lambda: torch.nn.functional.rms_norm(x, (64,), w, 1e-6))
    gate, up = torch.randn(16, 64, device="cuda"), torch.randn(16, 64, device="cuda")
    weight, heads, positions = torch.randn(64, 64, device="cuda"), torch.randn(16, 4, 64, device="cuda"), torch.arange(16, device="cuda")
    narrow = positions.int()
    q, k, v = (torch.randn(1, 2, 16, 64, device="cuda") for _ in range(3))
    q4 = kernels_rs.QuantizedLinear(weight, "Q4_0")
    timed("swiglu", lambda: kernels_rs.swiglu(gate, up))
    timed("linear", lambda: kernels_rs.linear(x, weight))
    timed("torch linear", lambda: torch.nn.functional.linear(x, weight))
    timed("rotary", lambda: kernels_rs.rotary(heads, narrow))
    timed("rotary of int64", lambda: kernels_rs.rotary(heads, positions))
    timed("attention", lambda: kernels_rs.attention(q, k, v))
    timed("torch attention", lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))
    timed("Q4_0 linear", lambda: q4(x))
    timed("transpose", lambda: kernels_rs.transpose(x))
    index, logits = torch.arange(16, device="cuda").int(), torch.randn(4, 32000, device="cuda")
    timed("sum of rows", lambda: kernels_rs.sum(x, -1))
    timed("torch sum of rows", lambda: x.sum(-1))
    timed("max of rows", lambda: kernels_rs.max(x, -1))
    timed("cumsum", lambda: kernels_rs.cumsum(x))
    timed("torch cumsum", lambda: x.cumsum(-1))
    timed("embedding", lambda: kernels_rs.embedding(index, weight))
    timed("torch embedding", lambda: torch.nn.functional.embedding(index, weight))
    timed("histc", lambda: kernels_rs.histc(x, 8, -1.0, 1.0))
    timed("sample", lambda: kernels_rs.sample(logits, seed=1), 500)
    token, caches = torch.randn(2, 4, 64, device="cuda"), torch.zeros(2, 2, 4, 512, 64, device="cuda")
    lengths = torch.tensor([200, 300], device="cuda", dtype=torch.int32)
    timed("cache_append", lambda: kernels_rs.cache_append(token, token, token, *caches, lengths), 500)
    timed("decode", lambda: kernels_rs.decode(token, *caches, lengths), 500)
    timed("attention with limited logits", lambda: kernels_rs.attention(q, k, v, softcap=30.0))
    ones = torch.ones_like(x)

    def backward(function):
        def run():
            torch.autograd.grad(function(graded), graded, ones)

        return run

    timed("softmax and its gradient", backward(kernels_rs.softmax), 1000)
    timed("torch softmax and its gradient", backward(lambda x: torch.softmax(x, -1)), 1000)
    timed("rms_norm and its gradient", backward(lambda x: kernels_rs.rms_norm(x, 64, w, 1e-6)), 1000)
    timed("torch rms_norm and its gradient", backward(lambda x: torch.nn.functional.rms_norm(x, (64,), w, 1e-6)), 1000)
    timed("empty", lambda: torch.empty(16, 64, device="cuda"))
    timed("empty_like", lambda: torch.empty_like(x))
    timed("describe a tensor", lambda: kernels_rs.describe(x))
    return ", ".join(f"{name} {time:.1f} us" for name, time in figures.items())


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
