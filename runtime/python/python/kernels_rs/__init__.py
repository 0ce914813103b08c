"""GPU kernels in Rust, from Python: from a string, and as a library.

    import numpy as np
    import kernels_rs

    saxpy = kernels_rs.compile('''
        #[kernel(block = 256, grid = y.len().div_ceil(256))]
        #[requires(x.len() == y.len())]
        pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
            let i = grid::index();
            if i < y.len() {
                y[i] = a.mul_add(x[i], y[i]);
            }
        }
    ''')
    x, y = np.ones(1000, np.float32), np.ones(1000, np.float32)
    saxpy(2.0, x, y)                      # on the CPU, with every check
    kernels_rs.softmax(x.reshape(10, 100))

Host arrays run on the CPU device, which checks every access and reports races. Arrays of a GPU
(PyTorch, CuPy, JAX, or kernels_rs.array(x, "cuda")) run there. Nothing is copied.

As in NumPy, another thread must not write an array while a call uses it.
"""

import os

from . import _native
from ._native import (
    Array,
    CompileError,
    DeviceError,
    Error,
    Kernel,
    LaunchError,
    Stream,
    Violation,
    __version__,
    array,
    asarray,
    compile,
    describe,
    devices,
    set_instruction_limit,
    zeros,
)
from ._array import _as_numpy, _item, _truth, numpy
from ._fallback import Unsupported, stats
from ._library import (
    BlockMask,
    QuantizedLinear,
    argmax,
    argmin,
    attention,
    attention_cached,
    cache_append,
    cross_entropy,
    cumsum,
    decode,
    embedding,
    geglu,
    gelu,
    histc,
    layer_norm,
    linear,
    matmul,
    max,
    mean,
    min,
    norm,
    rms_norm,
    rotary,
    sample,
    scaled_dot_product_attention,
    silu,
    softmax,
    log_softmax,
    sum,
    swiglu,
    transpose,
)
from ._kernel import Signature as _Signature
from ._page import Page, inspect

Kernel.inspect = inspect
Kernel.__signature__ = _Signature()
Array.__array__ = _as_numpy
Array.item = _item
Array.__float__ = lambda array: float(_item(array))
Array.__int__ = lambda array: int(_item(array))
Array.__bool__ = _truth

# A child of `fork` has only one thread of its parent, and must not wait for locks of the others.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.after_fork)

# The names of module `modules`, which requires PyTorch.
_MODULES = (
    "AdamW",
    "LayerNorm",
    "OptimizedAttention",
    "OptimizedMLP",
    "Patched",
    "RMSNorm",
    "TransformerBlock",
    "patch",
)


def __getattr__(name):
    """Imports names that require PyTorch at first use: importing PyTorch takes a second."""
    if name in ("fake_quantize", "timings", "torch_allocator"):
        from . import _torch

        return getattr(_torch, name)
    if name in _MODULES:
        from . import modules

        return getattr(modules, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Array",
    "BlockMask",
    "CompileError",
    "DeviceError",
    "Error",
    "Kernel",
    "LaunchError",
    "Page",
    "QuantizedLinear",
    "Stream",
    "Unsupported",
    "Violation",
    "__version__",
    "argmax",
    "argmin",
    "array",
    "asarray",
    "attention",
    "attention_cached",
    "cache_append",
    "compile",
    "cross_entropy",
    "cumsum",
    "decode",
    "describe",
    "devices",
    "embedding",
    "geglu",
    "gelu",
    "histc",
    "layer_norm",
    "linear",
    "log_softmax",
    "matmul",
    "max",
    "mean",
    "min",
    "norm",
    "numpy",
    "rms_norm",
    "rotary",
    "sample",
    "scaled_dot_product_attention",
    "set_instruction_limit",
    "silu",
    "softmax",
    "stats",
    "sum",
    "swiglu",
    "transpose",
    "zeros",
]
