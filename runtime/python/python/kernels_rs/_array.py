"""Results in the caller's array type, and copies to NumPy."""

import sys

from . import _native


_LIBRARIES = ("numpy", "torch", "cupy", "jax", "jaxlib", "kernels_rs")


def _library(array):
    """Returns the name of the library that an array belongs to, also by a subclass of another module."""
    for base in type(array).__mro__:
        library = base.__module__.split(".")[0]
        if library in _LIBRARIES:
            return library
    return type(array).__module__.split(".")[0]


def _dtype(array):
    """Returns the NumPy name of an array's element type."""
    name = getattr(array.dtype, "name", None)
    return name if isinstance(name, str) else str(array.dtype).split(".")[-1]


def _numpy_dtype(name):
    import numpy

    if name == "bfloat16":
        import ml_dtypes

        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(name)


def _empty(like, shape, dtype=None):
    """Allocates an array for a result, in the library and on the device of `like`."""
    dtype = dtype or _dtype(like)
    library = _library(like)
    if library == "numpy":
        import numpy

        return numpy.empty(shape, _numpy_dtype(dtype))
    if library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    if library == "cupy":
        return sys.modules["cupy"].empty(shape, dtype)
    described = _native.describe(like)
    return _native.zeros(shape, dtype, described["device"])


def _zeros(like, shape):
    """Allocates an array of zeros for a result, in the library and on the device of `like`."""
    out = _empty(like, shape)
    if _library(like) == "torch":
        return out.zero_()
    if not isinstance(out, _native.Array):
        out.fill(0)
    return out


def _result(like, out):
    """Converts a result to the library of `like`, if `_empty` had to allocate it in another one."""
    if isinstance(out, _native.Array) and _library(like) in ("jax", "jaxlib"):
        return sys.modules["jax"].dlpack.from_dlpack(out)
    return out


def _as_numpy(array, dtype=None, copy=None):
    """Returns an Array of the CPU for NumPy's functions, which would take an Array of a GPU as an object."""
    import numpy as np

    if array.device != "cpu":
        raise TypeError(f"the array is on {array.device}: kernels_rs.numpy(array) copies it")
    return np.array(array, dtype) if copy else np.asarray(array, dtype)


def _item(array):
    """Returns the element of an Array of one element as a number of Python."""
    return numpy(array).item()


def _truth(array):
    """Returns whether an Array has a first axis of elements; of rank 0, whether its element is not 0."""
    return len(array) != 0 if array.ndim else bool(_item(array))


def numpy(array):
    """Returns a copy of an Array as a NumPy array. bfloat16 needs the package ml_dtypes."""
    import numpy as np

    return np.frombuffer(bytearray(array.tobytes()), _numpy_dtype(array.dtype)).reshape(array.shape)
