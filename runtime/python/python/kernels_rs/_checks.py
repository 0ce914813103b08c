"""Checks of options that the functions for arrays and for tensors share."""

import functools
import operator


def _form_of_gelu(name, approximate):
    """Returns the name of the exact form or of the approximation by tanh."""
    forms = {"none": name, "tanh": f"{name}_tanh"}
    if approximate not in forms:
        raise ValueError(f"approximate = {approximate!r}: expected 'none' or 'tanh'")
    return forms[approximate]


def _queries(causal):
    """Returns the number of queries of a sequence, which a truth value is not."""
    if isinstance(causal, bool):
        raise TypeError("causal is the number of queries of a sequence, and 0 without a mask; it is no truth value")
    return causal


def _shape_of(extents):
    """Returns the extents of axes as a tuple; a number is one axis."""
    return (operator.index(extents),) if hasattr(extents, "__index__") else tuple(extents)


def _smoothing(label_smoothing):
    """Returns the part of each label that is spread over all classes."""
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing = {label_smoothing}: expected a number from 0 to 1")
    return label_smoothing


def _activation_of(activation):
    """Returns the name of a linear layer's activation; None is the identity."""
    known = ("none", "relu", "silu", "gelu", "gelu_tanh")
    name = "none" if activation is None else activation
    if name not in known:
        raise ValueError(f"activation = {activation!r}: expected None, {', '.join(map(repr, known[1:]))}")
    return name


def _axis_of(name, shape, dim):
    """Returns the axis of a reduction, counted from 0; None for all elements.

    Rejects extremes of no elements.
    """
    rank = len(shape)
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"dim = {dim}: expected one axis, or None for all elements")
    if dim is not None:
        dim = dim if isinstance(dim, int) else operator.index(dim)
        if not -rank <= dim < rank:
            raise ValueError(f"dim = {dim}: the array has rank {rank}")
        dim %= rank
    if name in ("max", "min", "argmax", "argmin") and 0 in shape:
        others = () if dim is None else (*shape[:dim], *shape[dim + 1 :])
        if 0 not in others:
            raise ValueError(f"{name} of no elements: the array has the shape {tuple(shape)}")
    return dim


def _norm_of(p):
    """Returns the name of the reduction to a 1- or 2-norm."""
    if p not in (1, 2) or isinstance(p, bool):
        raise ValueError(f"p = {p}: expected 1 or 2")
    return f"norm{int(p)}"


@functools.lru_cache(maxsize=64)
def _default_frequencies(base, size):
    """Returns the frequencies of the pairs of a rotary embedding of `size` elements."""
    return tuple(base ** (-2.0 * i / size) for i in range(size // 2))


def _sequences_of(blocks, softcap, alibi, bias, lengths, offsets):
    """Returns the lists of queries and of keys of a padded or a packed batch, or None.

    Rejects options of attention that no kernel has together.
    """
    if (softcap is not None) + (alibi is not None) + (bias is not None) > 1:
        raise ValueError("attention takes one of softcap, alibi and bias")
    if softcap is not None and not softcap > 0:
        raise ValueError(f"softcap = {softcap}: expected a number above 0")
    if lengths is None and offsets is None:
        return None
    if lengths is not None and offsets is not None:
        raise ValueError("attention takes lengths of a padded batch or offsets of a packed one, not both")
    if blocks is not None:
        raise ValueError("a BlockMask belongs to sequences of equal length, without lengths and offsets")
    if bias is not None and offsets is not None:
        raise ValueError("a bias belongs to sequences of a batch, and offsets to packed ones: pad the sequences")
    lists = offsets if lengths is None else lengths
    if not isinstance(lists, (tuple, list)):
        return lists, lists
    if len(lists) != 2:
        raise ValueError(f"lengths and offsets are an array of queries and one of keys, given {len(lists)}")
    return tuple(lists)
