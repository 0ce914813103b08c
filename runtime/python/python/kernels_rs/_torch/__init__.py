"""Operators of PyTorch: the library with gradients, for torch.compile and torch.export.

The module of a family has a `TABLE` with a row for each operator. A row has the schema, the call of
the kernel, the shapes of the results, the gradient, and the equivalent in PyTorch. `registration`
makes the operators of these rows. The functions of a family have the names and arguments of the
library.

A call that no kernel supports runs PyTorch's operator, with its own gradient. The reason depends
on types, devices and shapes only, so that torch.compile decides when it traces.
"""

from . import registration
from ._operator import ROWS
from .allocator import torch_allocator
from .arrays import transpose
from .attention import attention, scaled_dot_product_attention
from .cache import attention_cached, cache_append, decode
from .elementwise import geglu, gelu, silu, swiglu
from .loss import cross_entropy
from .optimizer import adamw
from .products import linear, matmul, quantized_linear
from .quantization import fake_quantize
from .reductions import argmax, argmin, cumsum, histc, max, mean, min, norm, sum
from .rotary import rotary, rotary_tables
from .rowwise import layer_norm, log_softmax, rms_norm, softmax
from .timing import timings
from .tokens import embedding, sample

__all__ = [
    "ROWS",
    "adamw",
    "argmax",
    "argmin",
    "attention",
    "attention_cached",
    "cache_append",
    "cross_entropy",
    "cumsum",
    "decode",
    "embedding",
    "fake_quantize",
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
    "quantized_linear",
    "registration",
    "rms_norm",
    "rotary",
    "rotary_tables",
    "sample",
    "scaled_dot_product_attention",
    "silu",
    "softmax",
    "sum",
    "swiglu",
    "timings",
    "torch_allocator",
    "transpose",
]
