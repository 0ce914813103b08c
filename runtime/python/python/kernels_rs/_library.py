"""The kernel library, with the names and the argument order of torch.nn.functional."""

import functools
import inspect
import itertools
import sys
import weakref

from . import _native
from ._checks import (
    _activation_of,
    _axis_of,
    _default_frequencies,
    _form_of_gelu,
    _norm_of,
    _queries,
    _sequences_of,
    _shape_of,
    _smoothing,
)
from ._array import _dtype, _empty, _library, _numpy_dtype, _result, _zeros, numpy

_KERNELS = {}
_INFINITE = float("inf")


def _kernel(name, source):
    """Returns a kernel of this module, compiled once."""
    if name not in _KERNELS:
        _KERNELS[name] = _native.compile(source, name, file="kernels_rs/_library.py")
    return _KERNELS[name]


def _with_operator(function):
    """Makes a function call its PyTorch operator for tensors of PyTorch.

    With `out` or `stream`, and for arrays of other libraries, the function itself runs.
    `strict=True` forbids a fallback to PyTorch's own operators.
    """
    name = function.__name__.lstrip("_")
    operand = function.__code__.co_varnames[0]

    @functools.wraps(function)
    def routed(*arguments, strict=False, **named):
        torch = sys.modules.get("torch")
        input = arguments[0] if arguments else named.get(operand)
        if torch is not None and isinstance(input, torch.Tensor):
            options = {key: value for key, value in named.items() if value is not None or key not in ("out", "stream")}
            if "out" not in options and "stream" not in options:
                _tensors(name, arguments, options)
                # torch.compile guards what it reads, so a call must not look for the module.
                from . import _torch as operators

                return getattr(operators, name)(*arguments, strict=strict, **options)
        elif arguments or operand in named:
            _operand(name, input)
        return _called(name, function, arguments, named)

    signature = inspect.signature(function)
    strict = inspect.Parameter("strict", inspect.Parameter.KEYWORD_ONLY, default=False)
    routed.__signature__ = signature.replace(parameters=[*signature.parameters.values(), strict])
    return routed


def _called(name, function, arguments, named):
    """Calls a function for arrays. Explains errors of Python that operands of a wrong type or rank cause.

    Operands are looked at only after such an error, so that a valid call costs nothing more.
    """
    try:
        return function(*arguments, **named)
    except (AttributeError, IndexError, OverflowError) as error:
        explained = _explained(name, inspect.signature(function), arguments, named, error)
        if explained is None:
            raise
    raise explained


# Operands that are arrays. Lengths and offsets of `attention` may also be pairs of arrays.
_ARRAYS = frozenset(
    "input other target weight bias residual query key value key_cache value_cache lengths offsets queries pages alibi "
    "x up positions logits out".split()
)


def _explained(name, signature, arguments, named, error):
    """Returns an error that names the operand because of which a call failed, or None."""
    given = signature.bind(*arguments, **named).arguments
    if isinstance(error, OverflowError):
        for operand, x in given.items():
            if isinstance(x, int) and not 0 <= x < 2**64:
                return ValueError(f"{operand} = {x}: expected a number from 0 to 2**64 - 1")
        return None
    arrays = {operand: x for operand, x in given.items() if operand in _ARRAYS}
    for operand, x in arrays.items():
        is_absent = x is None and signature.parameters[operand].default is None
        is_pair = isinstance(x, (tuple, list)) and operand in ("lengths", "offsets") and name == "attention"
        if not is_absent and not is_pair and not (hasattr(x, "shape") and hasattr(x, "dtype")):
            return TypeError(f"{name} takes an array as `{operand}`, given {type(x).__name__}")
    if isinstance(error, IndexError):
        shapes = [f"`{operand}` {tuple(x.shape)}" for operand, x in arrays.items() if hasattr(x, "shape")]
        return ValueError(f"{name} takes arrays with more axes, given the shapes {', '.join(shapes)}")
    return None


# Options that are sequences of numbers, and may be arrays of NumPy beside a tensor of PyTorch.
_SEQUENCES = ("axes", "frequencies", "longest", "normalized_shape", "window")


def _tensors(function, arguments, named):
    """Rejects operands that are arrays of another library, beside a tensor of PyTorch."""
    torch = sys.modules["torch"]
    for x in (*arguments, *(value for name, value in named.items() if name not in _SEQUENCES)):
        # A number of NumPy has an empty shape.
        if not isinstance(x, torch.Tensor) and getattr(x, "shape", ()):
            raise TypeError(
                f"{function} takes tensors of PyTorch beside a tensor, given {type(x).__name__}: torch.from_dlpack shares it"
            )


def _operand(function, input):
    """Returns an operand of a call without an operator, and rejects what is no array.

    Where PyTorch records no gradients, a tensor that requires one is an operand as it is.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(input, torch.Tensor):
        return input if torch.is_grad_enabled() or not input.requires_grad else input.detach()
    if not hasattr(input, "shape") or not hasattr(input, "dtype"):
        raise TypeError(f"{function} takes an array, given {type(input).__name__}")
    if type(input).__name__.endswith("Tracer"):
        raise TypeError(f"{function} cannot be traced by jax.jit or jax.grad: call it with arrays, outside of them")
    return input


def _given(**named):
    """Returns the arguments that are not None."""
    return {name: value for name, value in named.items() if value is not None}


def _out(like, out, shape, dtype=None):
    if out is None:
        return _empty(like, shape, dtype)
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"out has the shape {tuple(out.shape)}, and the result {tuple(shape)}")
    return out


def _last(x, dim):
    """Rejects every axis but the last."""
    if dim not in (-1, len(x.shape) - 1):
        raise ValueError(f"dim = {dim}: this function works on the last axis; transpose the array")


def _unsigned(x):
    """Returns indices as uint32, the type that kernels take. Negative indices become 2**32 - 1."""
    name = _dtype(x)
    _integers(x, "indices")
    if name == "uint32":
        return x
    if _library(x) == "numpy":
        import numpy as np

        # Some versions of NumPy reject 2**32 - 1 in an operation with int32, so the indices are
        # widened first.
        wide = x.astype(np.int64)
        kept = np.where((wide < 0) | (wide > 0xFFFFFFFF), 0xFFFFFFFF, wide)
        return np.ascontiguousarray(kept).astype(np.uint32)
    if name not in ("int32", "int64"):
        raise TypeError(f"indices are {name}, expected int32, int64 or uint32")
    torch = sys.modules.get("torch")
    if _library(x) == "torch" and hasattr(torch, "uint32"):
        # PyTorch converts in the order of its stream, without a wait. The bits of -1 are 2**32 - 1.
        return (x if name == "int32" else x.clamp(-1, 2**31 - 1).to(torch.int32)).view(torch.uint32)
    described = _native.describe(x)
    narrow = _kernel(
        f"narrow_{name}",
        """
        #[kernel(block = 256, grid = y.len().div_ceil(256))]
        #[requires(x.len() == y.len())]
        pub fn narrow_int64(x: &[i64], y: &mut [u32]) {
            let i = grid::index();
            if i < y.len() {
                y[i] = if x[i] < 0 || x[i] > 0xffff_ffff { u32::MAX } else { x[i] as u32 };
            }
        }

        #[kernel(block = 256, grid = y.len().div_ceil(256))]
        #[requires(x.len() == y.len())]
        pub fn narrow_int32(x: &[i32], y: &mut [u32]) {
            let i = grid::index();
            if i < y.len() {
                y[i] = if x[i] < 0 { u32::MAX } else { x[i] as u32 };
            }
        }
        """,
    )
    y = _native.zeros(tuple(x.shape), "uint32", described["device"])
    narrow(x, y)
    return y


def _integers(x, what):
    """Rejects numbers that are not integers."""
    name = _dtype(x)
    if not name.startswith(("int", "uint", "bool")):
        raise TypeError(f"{what} are {name}, expected integers")


def _positions(x):
    """Returns positions as integers of 32 bits. The kernels read the bits as int32."""
    name = _dtype(x)
    _integers(x, "positions")
    if _library(x) == "numpy":
        import numpy as np

        if x.size and (x.min() < -(2**31) or x.max() >= 2**31):
            raise ValueError("positions must be from -2**31 to 2**31 - 1")
        return np.ascontiguousarray(x.astype(np.int32))
    if name in ("int32", "uint32"):
        return x
    if name != "int64":
        raise TypeError(f"positions are {name}, expected int32, int64 or uint32")
    narrow = _kernel(
        "narrow_positions",
        """
        #[kernel(block = 256, grid = y.len().div_ceil(256))]
        #[requires(x.len() == y.len())]
        pub fn narrow_positions(x: &[i64], y: &mut [i32]) {
            let i = grid::index();
            if i < y.len() {
                y[i] = x[i] as i32;
            }
        }
        """,
    )
    y = _native.zeros(tuple(x.shape), "int32", _native.describe(x)["device"])
    narrow(x, y)
    return y


def _converted(input, dtype):
    """Returns an array with another element type."""
    if dtype is None or getattr(dtype, "__name__", str(dtype)) == _dtype(input):
        return input
    if not hasattr(input, "astype"):
        raise TypeError(f"dtype = {dtype}: elements of an Array of {_dtype(input)} cannot be converted")
    return input.astype(_numpy_dtype(dtype) if _library(input) == "numpy" else dtype)


@_with_operator
def softmax(input, dim=-1, dtype=None, *, scale=1.0, causal=0, out=None, stream=None):
    """Returns the softmax of scale * input over the last axis, computed in float32.

    The input is converted to `dtype` first.
    `causal` is the number of queries of a sequence; 0 masks nothing. Rows are queries, and columns
    are keys. The last key belongs to the last query. Keys after a query's own key are masked.

    >>> kernels_rs.softmax(np.float32([[0, 0], [1, 1]])).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    _last(input, dim)
    input = _converted(input, dtype)
    out = _out(input, out, input.shape)
    _native.softmax(input, out, scale, False, _queries(causal), stream)
    return _result(input, out)


@_with_operator
def log_softmax(input, dim=-1, dtype=None, *, scale=1.0, causal=0, out=None, stream=None):
    """Returns the logarithm of the softmax of scale * input over the last axis.

    >>> kernels_rs.log_softmax(np.float32([0, 0])).tolist()
    [-0.6931..., -0.6931...]
    """
    _last(input, dim)
    input = _converted(input, dtype)
    out = _out(input, out, input.shape)
    _native.softmax(input, out, scale, True, _queries(causal), stream)
    return _result(input, out)


def _normalized(input, normalized_shape):
    shape = _shape_of(normalized_shape)
    if shape != tuple(input.shape[-1:]):
        raise ValueError(f"normalized_shape is {shape}, and the last axis of the input has {input.shape[-1]} elements")


@_with_operator
def rms_norm(input, normalized_shape, weight=None, eps=None, *, out=None, stream=None):
    """Returns input / sqrt(mean(input**2) + eps) * weight, over the last axis.

    >>> kernels_rs.rms_norm(np.float32([[3, 4]]), 2, eps=0.0).tolist()
    [[0.848..., 1.131...]]
    """
    _normalized(input, normalized_shape)
    if eps is None:
        eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(_dtype(input), 2.0**-23)
    out = _out(input, out, input.shape)
    _native.norm(input, weight, None, out, eps, False, stream)
    return _result(input, out)


@_with_operator
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, *, out=None, stream=None):
    """Returns (input - mean) / sqrt(variance + eps) * weight + bias, over the last axis.

    >>> kernels_rs.layer_norm(np.float32([[1, 3]]), 2, eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    _normalized(input, normalized_shape)
    if bias is not None and weight is None:
        raise ValueError("a bias needs a weight")
    out = _out(input, out, input.shape)
    _native.norm(input, weight, bias, out, eps, True, stream)
    return _result(input, out)


@_with_operator
def cross_entropy(input, target, *, ignore_index=-100, reduction="mean", label_smoothing=0.0, stream=None):
    """Returns the cross-entropy of logits (rows, classes) and class indices (rows).

    Rows whose index is negative or not below the number of classes are ignored. "mean" averages the
    other rows.

    >>> kernels_rs.cross_entropy(np.zeros((2, 4), np.float32), np.array([1, -100])).item()
    1.386...
    """
    if ignore_index >= 0:
        raise ValueError("ignore_index must be negative; negative indices are ignored")
    if len(input.shape) != 2 or len(target.shape) != 1:
        given = f"{tuple(input.shape)} and {tuple(target.shape)}"
        raise ValueError(f"cross_entropy takes logits (rows, classes) and classes (rows), given {given}")
    rows = input.shape[0]
    labels = _unsigned(target)
    loss, log_sum = _empty(input, (rows,), "float32"), _empty(input, (rows,), "float32")
    _native.cross_entropy(input, labels, loss, log_sum, _smoothing(label_smoothing), stream)
    if reduction == "none":
        return _result(input, loss)
    total = _empty(input, (), "float32")
    _native.reduction("sum", loss, total, True, True, stream)
    if reduction == "sum":
        return _result(input, total)
    if reduction != "mean":
        raise ValueError(f"reduction = {reduction!r}: expected 'none', 'sum' or 'mean'")
    divide = _kernel(
        "divide",
        """
        #[kernel(block = 256, grid = 1)]
        #[requires(total.len() == 1)]
        pub fn divide(labels: &[u32], classes: u32, total: &mut [f32]) {
            let mut counted = 0;
            for i in (thread::x()..labels.len()).step_by(256) {
                if labels[i] < classes {
                    counted += 1u32;
                }
            }
            let counted = block::sum(counted);
            if thread::x() == 0 {
                total[0] = total[0] / (counted as f32);
            }
        }
        """,
    )
    divide(labels, input.shape[1], total, stream=stream)
    return _result(input, total)


@_with_operator
def matmul(input, other, *, out=None, stream=None):
    """Returns the product of matrices (m, k) and (k, n), or of equally long batches of them.

    >>> kernels_rs.matmul(np.float32([[1, 2]]), np.float32([[3], [4]])).tolist()
    [[11.0]]
    """
    if len(input.shape) != len(other.shape) or len(input.shape) < 2:
        raise ValueError(f"matmul takes two matrices or two batches of equal rank, given {input.shape} and {other.shape}")
    out = _out(input, out, tuple(input.shape[:-1]) + (other.shape[-1],))
    _native.product(input, other, None, out, False, False, stream=stream)
    return _result(input, out)


def linear(input, weight, bias=None, *, activation=None, residual=None, out=None, stream=None, strict=False):
    """Returns activation(input @ weight.T + bias) + residual. The weight is (out features, in features).

    The activation is "relu", "silu", "gelu", "gelu_tanh" or None. The product's kernel applies it
    before it stores.

    >>> x, w = np.float32([[1, -2]]), np.float32([[1, 0], [0, 1]])
    >>> kernels_rs.linear(x, w, activation="relu", residual=np.float32([[5, 5]])).tolist()
    [[6.0, 5.0]]
    """
    if isinstance(weight, QuantizedLinear):
        if activation is not None or residual is not None:
            raise ValueError("a quantized linear layer has no activation and no residual: apply them to the result")
        return weight(input, bias, out=out, stream=stream)
    options = _given(activation=activation, residual=residual, out=out, stream=stream)
    return _linear(input, weight, bias, **options, strict=strict)


@_with_operator
def _linear(input, weight, bias=None, *, activation=None, residual=None, out=None, stream=None):
    out = _out(input, out, tuple(input.shape[:-1]) + (weight.shape[0],))
    rows = _rows_of_out(out)
    if activation is None and residual is None:
        _native.product(_rows(input), weight, bias, rows, False, True, stream=stream)
    else:
        if residual is not None and tuple(residual.shape) != tuple(out.shape):
            raise ValueError(f"residual has the shape {tuple(residual.shape)}, and the result {tuple(out.shape)}")
        added = None if residual is None else _rows(residual)
        _native.linear(_rows(input), weight, bias, added, _activation_of(activation), rows, stream)
    return _result(input, out)


def _rows(x):
    """Returns an array as a matrix. An array that cannot be viewed so is copied."""
    if not len(x.shape):
        raise ValueError("a linear layer takes an input with one axis or more, given an array of the shape ()")
    return x if len(x.shape) == 2 else x.reshape(_count(x.shape[:-1]), x.shape[-1])


def _rows_of_out(out):
    """Returns an array for a result as a matrix of the same memory."""
    rows = _rows(out)
    if rows is not out and _count(out.shape):
        if _native.describe(rows)["address"] != _native.describe(out)["address"]:
            raise ValueError(
                f"out has gaps between its outer axes (shape {tuple(out.shape)}): pass a row-major array, or copy the result"
            )
    return rows


def _count(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


class QuantizedLinear:
    """Quantized weights of a linear layer: QuantizedLinear(weight, "Q8_0"), or blocks of a GGUF file."""

    def __init__(self, weight, format="Q8_0"):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(weight, torch.Tensor):
            weight = weight.detach()
        self.weight = weight if isinstance(weight, _native.Quantized) else _native.Quantized.quantize(weight, format)
        self._planes = self._facts = None

    @classmethod
    def from_blocks(cls, blocks, format):
        """Reads the blocks of a GGUF file: uint8 (out features, bytes of a row)."""
        return cls(_native.Quantized.from_blocks(blocks, format))

    @property
    def shape(self):
        """Returns out features and in features."""
        return self.weight.shape

    @property
    def format(self):
        """Returns the format's name, such as "Q8_0"."""
        return self.weight.format

    def __call__(self, input, bias=None, *, out=None, stream=None):
        """Returns input @ weight.T, with the input quantized to 8 bits in groups of 32. No bias yet.

        A NaN has no code of 8 bits: NaNs of the input, and of weights that are quantized here, count as 0.
        """
        if bias is not None:
            raise ValueError("a quantized linear layer takes no bias yet: add it to the result")
        if out is None and stream is None and _library(input) == "torch":
            from . import _torch as operators

            if self._planes is None:
                self.prepare()
            # Operators take no empty tensors: formats whose scales are in `words` have no `halves`.
            if input.numel() and self._planes[1].numel():
                return operators.quantized_linear(input, self._planes, *self._facts)
        input = _operand("QuantizedLinear", input)
        out = _out(input, out, tuple(input.shape[:-1]) + (self.shape[0],))
        self.weight.product(_rows(input), _rows_of_out(out), stream)
        return _result(input, out)

    def prepare(self):
        """Makes tensors of PyTorch over the memory of the weights, for the operator.

        The first call makes these tensors too, but torch.compile needs them earlier.
        """
        import torch

        self._facts = self.format, self.shape
        self._planes = tuple(torch.from_dlpack(plane) for plane in self.weight.planes())
        return self

    def __getstate__(self):
        # Planes share the memory of the weights, and are made again.
        return {"weight": self.weight, "_planes": None, "_facts": None}

    def __repr__(self):
        return f"QuantizedLinear(shape={self.shape}, format={self.format!r})"


class BlockMask:
    """The blocks of keys that each block of queries sees, for attention(..., blocks=mask).

    `seen` has truth values (heads, blocks of queries, blocks of keys). A block has `block` rows, 64
    or 128; the last one may have fewer. The time is proportional to the number of seen blocks.
    """

    def __init__(self, seen, queries, keys, *, block=64):
        self.seen = [[[bool(x) for x in row] for row in head] for head in _lists(seen)]
        self.queries, self.keys, self.block = queries, keys, block
        self._native = _native.SeenBlocks(self.seen, queries, keys, block)
        # Operators of PyTorch take numbers, so a mask has one.
        self._number = next(_NUMBERS)
        _MASKS[self._number] = self

    def __reduce__(self):
        return _block_mask, (self.seen, self.queries, self.keys, self.block)

    @property
    def density(self):
        """Returns the fraction of blocks that are seen."""
        return self._native.density()

    def __repr__(self):
        return f"BlockMask(heads={len(self.seen)}, queries={self.queries}, keys={self.keys}, block={self.block})"


def _block_mask(seen, queries, keys, block):
    """Returns the mask that `pickle` has stored."""
    return BlockMask(seen, queries, keys, block=block)


_NUMBERS = itertools.count()
_MASKS = weakref.WeakValueDictionary()


def _lists(array):
    """Returns nested lists of an array, or of sequences."""
    if isinstance(array, _native.Array):
        array = numpy(array)
    return array.tolist() if hasattr(array, "tolist") else array


def _quantized_again(words, halves, format, shape):
    """Returns the weights that `pickle` has stored."""
    return _native.Quantized.from_planes(words, halves, format, shape)


@_with_operator
def attention(
    query,
    key,
    value,
    *,
    causal=False,
    scale=None,
    window=None,
    blocks=None,
    softcap=None,
    alibi=None,
    bias=None,
    lengths=None,
    offsets=None,
    longest=None,
    out=None,
    stream=None,
):
    """Returns attention of (batch, heads, tokens, size), with fewer heads of keys than of queries.

    `causal` aligns the last query with the last key. `window` is the number of keys before and
    after a query's position. `blocks` is a BlockMask. One of three scores changes the logits:
    `softcap` limits them to softcap * tanh(logit / softcap), `alibi` (heads) has the slopes of
    linear biases, and `bias` (batch, heads, queries, keys) is added. Axes of the bias with one
    element are shared, except the last. A bias of -inf excludes a key.

    `lengths` has the numbers of queries and of keys of each sequence of a padded batch. In a packed
    batch of one, `offsets` has the first rows of the sequences' queries and keys, and the end of
    the last one. `longest` is the largest numbers of queries and of keys of a sequence,
    by default all rows. One array may serve queries and keys. Rows of no sequence are zeros, unless
    `out` is given.

    >>> q, v = np.zeros((1, 1, 2, 4), np.float32), np.float32([[[[1], [3]]]])
    >>> kernels_rs.attention(q, q, v, causal=True).ravel().tolist()
    [1.0, 2.0]
    >>> kernels_rs.attention(q, q, v, lengths=np.array([1])).ravel().tolist()
    [1.0, 0.0]
    """
    sequences = _sequences_of(blocks, softcap, alibi, bias, lengths, offsets)
    shape = tuple(query.shape[:-1]) + (value.shape[-1],)
    if sequences is not None:
        out = _zeros(query, shape) if out is None else out
        sequences = (*map(_unsigned, sequences), _longest(longest, query, key) if lengths is None else None)
    out = _out(query, out, shape)
    window = None if window is None else tuple(window)
    alibi, bias = (None if x is None else _converted(_operand("attention", x), "float32") for x in (alibi, bias))
    score = {"softcap": softcap, "slopes": alibi, "bias": bias}
    mask = _native_mask(blocks)
    _native.attention(query, key, value, out, scale, causal, window, stream, mask=mask, sequences=sequences, **score)
    return _result(query, out)


def _longest(longest, query, key):
    """Returns the largest numbers of queries and of keys that a sequence of a packed batch may have."""
    if longest is None:
        return [query.shape[-2], key.shape[-2]]
    return [longest, longest] if isinstance(longest, int) else list(longest)


def _native_mask(blocks):
    if blocks is not None and not isinstance(blocks, BlockMask):
        raise TypeError(f"blocks is a BlockMask, given {type(blocks).__name__}")
    return None if blocks is None else blocks._native


def _current(stream, x):
    """Returns the stream of a call: for a tensor on a GPU, by default PyTorch's current one."""
    torch = sys.modules.get("torch")
    if stream is None and torch is not None and isinstance(x, torch.Tensor) and x.is_cuda:
        return torch.cuda.current_stream(x.device)
    return stream


@_with_operator
def cache_append(
    query,
    key,
    value,
    key_cache,
    value_cache,
    lengths,
    *,
    base=10000.0,
    size=None,
    frequencies=None,
    interleaved=False,
    pages=None,
    scales=None,
    out=None,
    stream=None,
):
    """Appends a decoding step's keys and values to the caches. Returns the rotated queries.

    Queries are (sequences, heads, size), new keys and values (sequences, key heads, size), and the
    caches, which are written, (sequences, key heads, rows, size). Row `lengths[i]` of sequence i
    receives the new key, which is rotated to this position, as the query is. The rotation is that
    of `rotary`; `size=0` rotates nothing. With `pages` (sequences, pages of a sequence) the caches
    are (pages, key heads, rows of a page, size). A sequence whose cache is full is left as it is.

    A cache may have another float type than the queries. A cache of integers has `scales`, one array
    for the keys and one for the values, which are written, too. Three formats exist: int8 with a
    float32 for each row (sequences, key heads, rows); int8 with a float16 for each 32 numbers
    (sequences, key heads, rows, size / 32), called q8_0; and q4_0, uint32 (sequences, key heads,
    rows, size / 8) of eight numbers of four bits, with the same scales.
    """
    query, key, value = (_operand("cache_append", x) for x in (query, key, value))
    if frequencies is None:
        frequencies = _default_frequencies(base, query.shape[-1] if size is None else size)
    out = _out(query, out, query.shape)
    lengths, pages = _unsigned(lengths), None if pages is None else _unsigned(pages)
    caches, stream = (key_cache, value_cache), _current(stream, query)
    options = list(frequencies), interleaved, pages, stream, scales
    _native.cache_append(query, key, value, caches, lengths, out, *options)
    return _result(query, out)


def _filled(like, number):
    """Returns an array of the same shape, library and device, all of whose elements are a number."""
    if _library(like) == "numpy":
        import numpy as np

        return np.full_like(like, number)
    if _library(like) == "torch":
        return like.new_full(like.shape, number)
    filled = _empty(like, like.shape, "uint32")
    fill = _kernel(
        "filled",
        """
        #[kernel(block = 256, grid = y.len().div_ceil(256))]
        pub fn filled(number: u32, y: &mut [u32]) {
            let i = grid::index();
            if i < y.len() {
                y[i] = number;
            }
        }
        """,
    )
    fill(number, filled)
    return filled


@_with_operator
def attention_cached(
    query,
    key_cache,
    value_cache,
    lengths,
    *,
    queries=None,
    causal=True,
    scale=None,
    window=None,
    pages=None,
    scales=None,
    out=None,
    stream=None,
):
    """Returns attention of a prompt, or a piece of one, over the cached keys of its sequence.

    Queries are (sequences, heads, tokens, size). The caches and their scales are those of
    `cache_append`. Sequence i has `queries[i]` tokens, by default all, and `lengths[i]` keys, those
    of its tokens included: the last token has the position of the last key. `window` is the number
    of keys before and after a token's position. Rows beyond a sequence's tokens are zeros, unless
    `out` is given.

    >>> q = np.zeros((1, 1, 2, 8), np.float32)
    >>> v = np.arange(32, dtype=np.float32).reshape(1, 1, 4, 8)

    >>> kernels_rs.attention_cached(q, v, v, np.array([3]))[0, 0, :, 0].tolist()
    [4.0, 8.0]
    """
    query = _operand("attention_cached", query)
    if out is None and queries is not None:
        out = _zeros(query, query.shape)
    out = _out(query, out, query.shape)
    if queries is None:
        queries = _filled(lengths, query.shape[2])
    queries, lengths, pages = (None if x is None else _unsigned(x) for x in (queries, lengths, pages))
    caches, stream = (key_cache, value_cache), _current(stream, query)
    window = None if window is None else tuple(window)
    _native.attention_cached(query, caches, queries, lengths, out, causal, scale, window, pages, stream, scales)
    return _result(query, out)


@_with_operator
def decode(
    query, key_cache, value_cache, lengths, *, tokens=1, scale=None, pages=None, scales=None, out=None, stream=None
):
    """Returns attention of the last tokens of each sequence over its cached keys.

    Queries are (sequences * tokens, heads, size), with 1 to 16 tokens of each sequence. The caches
    and their scales are those of `cache_append`. Sequence i has `lengths[i]` keys, those of its
    tokens included: `lengths + 1` after `cache_append`.

    >>> q, lengths = np.ones((1, 1, 4), np.float32), np.array([0])
    >>> caches = np.zeros((2, 1, 1, 8, 4), np.float32)

    >>> rotated = kernels_rs.cache_append(q, q, q, *caches, lengths)
    >>> kernels_rs.decode(rotated, *caches, lengths + 1).tolist()
    [[[1.0, 1.0, 1.0, 1.0]]]
    """
    query = _operand("decode", query)
    out = _out(query, out, query.shape)
    lengths, pages = _unsigned(lengths), None if pages is None else _unsigned(pages)
    caches, stream = (key_cache, value_cache), _current(stream, query)
    _native.decode(query, caches, lengths, out, tokens, scale, pages, stream, scales)
    return _result(query, out)


@_with_operator
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, *, stream=None
):
    """Returns attention as torch.nn.functional does, without a mask and without dropout."""
    if attn_mask is not None or dropout_p:
        raise ValueError("attn_mask and dropout_p are not supported; `attention` has causal masks and windows")
    if len(query.shape) != 4 or len(key.shape) != 4:
        raise ValueError("queries, keys and values have the extents (batch, heads, tokens, size)")
    if is_causal and query.shape[-2] != key.shape[-2]:
        raise ValueError("is_causal needs as many queries as keys; `attention` aligns the last query with the last key")
    if not enable_gqa and query.shape[-3] != key.shape[-3]:
        raise ValueError("query and key have different numbers of heads; enable_gqa allows it")
    return attention(query, key, value, causal=is_causal, scale=scale, stream=stream)


@_with_operator
def rotary(x, positions, *, base=10000.0, size=None, frequencies=None, axes=None, interleaved=False, out=None, stream=None):
    """Returns x (tokens, heads, size) with pairs rotated by the angles of positions (tokens).

    Positions are integers, also negative ones.
    Pairs are the halves of a head, or neighbors if `interleaved`. `size` is the number of rotated
    elements. With `axes`, positions are (axes, tokens), and pair i uses the row axes[i].

    >>> kernels_rs.rotary(np.float32([[[1, 0]], [[1, 0]]]), np.array([0, 1])).ravel().tolist()
    [1.0, 0.0, 0.540..., 0.841...]
    """
    if frequencies is None:
        frequencies = _default_frequencies(base, size or x.shape[-1])
    out = _out(x, out, x.shape)
    _native.rotary(x, _positions(positions), out, list(frequencies), axes, interleaved, stream)
    return _result(x, out)


def _gated(x, up, name, out, stream):
    if up is not None:
        out = _out(x, out, x.shape)
        _native.gate_of_two(name, x, up, out, stream)
        return _result(x, out)
    if x.shape[-1] % 2:
        raise ValueError(f"the last axis has {x.shape[-1]} elements, and a gate needs two halves")
    out = _out(x, out, tuple(x.shape[:-1]) + (x.shape[-1] // 2,))
    _native.gate(name, x, out, stream)
    return _result(x, out)


@_with_operator
def swiglu(input, up=None, *, out=None, stream=None):
    """Returns silu(a) * b of the halves (a | b) of the last axis, or of a = input and b = up.

    >>> kernels_rs.swiglu(np.float32([0, 2]), np.float32([5, 1])).tolist()
    [0.0, 1.761...]
    """
    return _gated(input, up, "swiglu", out, stream)


@_with_operator
def geglu(input, up=None, *, approximate="none", out=None, stream=None):
    """Returns gelu(a) * b of the halves (a | b) of the last axis, or of a = input and b = up."""
    return _gated(input, up, _form_of_gelu("geglu", approximate), out, stream)


@_with_operator
def silu(input, *, out=None, stream=None):
    """Returns input / (1 + exp(-input)).

    >>> kernels_rs.silu(np.float32([0, 2])).tolist()
    [0.0, 1.761...]
    """
    out = _out(input, out, input.shape)
    _native.activation("silu", input, out, stream)
    return _result(input, out)


@_with_operator
def gelu(input, approximate="none", *, out=None, stream=None):
    """Returns the Gaussian error linear unit, or its approximation by tanh.

    >>> kernels_rs.gelu(np.float32([0, 2])).tolist()
    [0.0, 1.954...]
    """
    out = _out(input, out, input.shape)
    _native.activation(_form_of_gelu("gelu", approximate), input, out, stream)
    return _result(input, out)


def _reduced(name, input, dim, keepdim, dtype, stream):
    input = _operand(name, input)
    shape = tuple(input.shape)
    rank, dim = len(shape), _axis_of(name, shape, dim)
    if dim is None:
        out = _empty(input, (1,) * rank if keepdim else (), dtype)
        _native.reduction(name, input, out, True, True, stream)
        return _result(input, out)
    kept = shape[:dim] + ((1,) if keepdim else ()) + shape[dim + 1 :]
    out = _empty(input, kept, dtype)
    if dim == rank - 1:
        _native.reduction(name, input, out, False, True, stream)
        return _result(input, out)
    rows = input.reshape(_count(shape[:dim]), shape[dim], _count(shape[dim + 1 :]))
    _native.reduction(name, rows, out, False, False, stream)
    return _result(input, out)


@_with_operator
def sum(input, dim=None, keepdim=False, *, stream=None):
    """Returns sums over an axis, or of all elements, in float32.

    >>> kernels_rs.sum(np.float32([[1, 2], [3, 4]]), 0).tolist()
    [4.0, 6.0]
    """
    return _reduced("sum", input, dim, keepdim, "float32", stream)


@_with_operator
def mean(input, dim=None, keepdim=False, *, stream=None):
    """Returns means over an axis, or of all elements, in float32.

    >>> kernels_rs.mean(np.float32([[1, 2], [3, 4]])).item()
    2.5
    """
    return _reduced("mean", input, dim, keepdim, "float32", stream)


@_with_operator
def norm(input, p=2, dim=None, keepdim=False, *, stream=None):
    """Returns 1- or 2-norms over an axis, or of all elements, in float32.

    >>> kernels_rs.norm(np.float32([3, 4])).item()
    5.0
    """
    return _reduced(_norm_of(p), input, dim, keepdim, "float32", stream)


@_with_operator
def max(input, dim=None, keepdim=False, *, stream=None):
    """Returns the largest numbers over an axis, or of all elements, in float32. A NaN counts as -inf.

    >>> kernels_rs.max(np.float32([[1, 2], [4, 3]]), -1).tolist()
    [2.0, 4.0]
    """
    return _reduced("max", input, dim, keepdim, "float32", stream)


@_with_operator
def min(input, dim=None, keepdim=False, *, stream=None):
    """Returns the smallest numbers over an axis, or of all elements, in float32. A NaN counts as inf."""
    return _reduced("min", input, dim, keepdim, "float32", stream)


def _index_type(input):
    # PyTorch computes little with uint32.
    return "int32" if _library(input) == "torch" else "uint32"


@_with_operator
def argmax(input, dim=None, keepdim=False, *, stream=None):
    """Returns the first indices of the largest numbers, as 32-bit integers.

    >>> kernels_rs.argmax(np.float32([[1, 2], [4, 3]]), -1).tolist()
    [1, 0]
    """
    return _reduced("argmax", input, dim, keepdim, _index_type(input), stream)


@_with_operator
def argmin(input, dim=None, keepdim=False, *, stream=None):
    """Returns the first indices of the smallest numbers, as 32-bit integers."""
    return _reduced("argmin", input, dim, keepdim, _index_type(input), stream)


@_with_operator
def cumsum(input, dim=-1, *, exclusive=False, out=None, stream=None):
    """Returns running sums along the last axis. If `exclusive`, an element is not in its own sum.

    >>> kernels_rs.cumsum(np.int32([1, 2, 3])).tolist()
    [1, 3, 6]
    >>> kernels_rs.cumsum(np.int32([1, 2, 3]), exclusive=True).tolist()
    [0, 1, 3]
    """
    input = _operand("cumsum", input)
    _last(input, dim)
    out = _out(input, out, input.shape)
    _native.cumulative(input, out, exclusive, stream)
    return _result(input, out)


@_with_operator
def transpose(input, *, out=None, stream=None):
    """Returns a copy with the last two axes exchanged.

    >>> kernels_rs.transpose(np.int8([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise ValueError(f"transpose exchanges the last two axes, and the array has the shape {shape}")
    out = _out(input, out, shape[:-2] + (shape[-1], shape[-2]))
    _native.transpose(input, out, stream)
    return _result(input, out)


@_with_operator
def embedding(input, weight, *, out=None, stream=None):
    """Returns the rows of the weight with the indices `input`; an index beyond the rows gives zeros.

    >>> kernels_rs.embedding(np.array([1, 0, 1]), np.float32([[1, 2], [3, 4]])).tolist()
    [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """
    input, weight = _operand("embedding", input), _operand("embedding", weight)
    out = _out(weight, out, tuple(input.shape) + (weight.shape[1],))
    _native.embedding(weight, _unsigned(input), _rows_of_out(out), stream)
    return _result(weight, out)


@_with_operator
def histc(input, bins=100, min=0.0, max=0.0, *, stream=None):
    """Returns the number of elements in each of `bins` bins from `min` to `max`, as 32-bit integers.

    If both are 0, they are the smallest and the largest element, whose reading waits for the array.
    Elements of uint8 and uint32 are indices of bins.

    >>> kernels_rs.histc(np.float32([0, 1, 2, 3]), 2).tolist()
    [2, 2]
    """
    input = _operand("histc", input)
    if min == max == 0 and _dtype(input) == "float32" and _count(input.shape):
        min, max = _measured_range(input, stream)
    out = _empty(input, (bins,), _index_type(input))
    _native.counts(input, out, min, max, stream)
    return _result(input, out)


def _measured_range(input, stream):
    """Returns the range of an array's elements."""
    if stream is not None:
        raise ValueError("histc with a stream needs min and max: their computation would wait")
    ends = (_reduced(name, input, None, False, "float32", None) for name in ("min", "max"))
    return _range(*(float(numpy(end) if isinstance(end, _native.Array) else end) for end in ends))


def _range(low, high):
    """Returns the range from the smallest to the largest element; for equal elements, 2 around them."""
    if low in (_INFINITE, -_INFINITE) or high in (_INFINITE, -_INFINITE):
        raise ValueError(f"the elements are from {low} to {high}: give min and max")
    return (low - 1, high + 1) if low == high else (low, high)


@_with_operator
def sample(logits, *, seed, offset=0, temperature=1.0, top_k=0, top_p=1.0, stream=None):
    """Returns a token for each row of logits, drawn from its softmax; temperature 0 is greedy.

    The same seed and offset give the same tokens on every device. PyTorch, which computes a call
    without a kernel, draws other tokens.

    >>> kernels_rs.sample(np.float32([[0, 9, 1]]), seed=1, temperature=0.0).tolist()
    [1]
    """
    logits = _operand("sample", logits)
    out = _empty(logits, tuple(logits.shape[:-1]), _index_type(logits))
    _native.sample(logits, out, seed, offset, temperature, top_k, top_p, stream)
    return _result(logits, out)
