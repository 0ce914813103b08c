"""The library against NumPy in float64."""

import math

import numpy as np
import pytest
from conftest import host

import kernels_rs

RNG = np.random.default_rng(7)
FLOATS = [(np.float32, 2e-6), (np.float16, 2e-3)]


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def wide(x):
    return x.astype(np.float64)


def close(found, expected, tolerance):
    found = host(found)
    np.testing.assert_allclose(wide(found), expected, rtol=tolerance, atol=tolerance)


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype,tolerance", FLOATS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 64), (7,), (1, 300)])
def test_softmax_matches_numpy(to, dtype, tolerance, shape):
    x = normal(*shape, dtype=dtype)
    y = kernels_rs.softmax(to(x), dim=-1)
    assert tuple(y.shape) == shape
    close(y, soft(wide(x)), tolerance)
    close(kernels_rs.log_softmax(to(x), scale=0.5), np.log(soft(wide(x) / 2)), 4 * tolerance)


def test_softmax_accepts_rows_with_gaps(to, device):
    if device != "cpu":
        pytest.skip("an Array has no gaps")
    x = normal(6, 40)
    close(kernels_rs.softmax(x[::2, 3:20]), soft(wide(x[::2, 3:20])), 2e-6)
    out = np.zeros((3, 50), np.float32)
    kernels_rs.softmax(x[::2, 3:20], out=out[:, 1:18])
    close(out[:, 1:18], soft(wide(x[::2, 3:20])), 2e-6)
    with pytest.raises(ValueError, match="last stride must be 1"):
        kernels_rs.softmax(x.T)
    with pytest.raises(ValueError, match="last axis"):
        kernels_rs.softmax(x, dim=0)


@pytest.mark.parametrize("dtype,tolerance", FLOATS)
def test_norms_match_numpy(to, dtype, tolerance):
    x, w, b = normal(2, 3, 96, dtype=dtype), normal(96, dtype=dtype), normal(96, dtype=dtype)
    x64, w64, b64 = wide(x), wide(w), wide(b)
    rms = x64 / np.sqrt((x64**2).mean(-1, keepdims=True) + 1e-6)
    centered = x64 - x64.mean(-1, keepdims=True)
    layer = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
    close(kernels_rs.rms_norm(to(x), 96, eps=1e-6), rms, 2 * tolerance)
    close(kernels_rs.rms_norm(to(x), (96,), to(w), 1e-6), rms * w64, 4 * tolerance)
    close(kernels_rs.layer_norm(to(x), 96), layer, 2 * tolerance)
    close(kernels_rs.layer_norm(to(x), [96], to(w), to(b)), layer * w64 + b64, 4 * tolerance)
    close(kernels_rs.rms_norm(to(x), 96, to(w.astype(np.float32)), 1e-6), rms * w64, 4 * tolerance)
    with pytest.raises(ValueError, match="normalized_shape"):
        kernels_rs.layer_norm(to(x), 95)


def test_cross_entropy_matches_numpy(to):
    x, labels = normal(9, 50), RNG.integers(0, 50, 9)
    each = -np.log(soft(wide(x)))[np.arange(9), labels]
    for dtype in [np.int64, np.int32, np.uint32]:
        close(kernels_rs.cross_entropy(to(x), to(labels.astype(dtype)), reduction="none"), each, 4e-6)
    labels[[2, 5]] = -100
    kept = np.delete(each, [2, 5])
    close(kernels_rs.cross_entropy(to(x), to(labels)), kept.mean(), 4e-6)
    close(kernels_rs.cross_entropy(to(x), to(labels), reduction="sum"), kept.sum(), 4e-6)


@pytest.mark.parametrize("dtype,tolerance", [(np.float32, 1e-5), (np.float16, 2e-2)])
def test_products_match_numpy(to, dtype, tolerance):
    a, b = normal(33, 20, dtype=dtype), normal(20, 17, dtype=dtype)
    close(kernels_rs.matmul(to(a), to(b)), wide(a) @ wide(b), tolerance)
    a, b = normal(2, 5, 8, dtype=dtype), normal(2, 8, 12, dtype=dtype)
    close(kernels_rs.matmul(to(a), to(b)), wide(a) @ wide(b), tolerance)
    x, w, bias = normal(2, 3, 24, dtype=dtype), normal(10, 24, dtype=dtype), normal(10, dtype=dtype)
    close(kernels_rs.linear(to(x), to(w)), wide(x) @ wide(w).T, tolerance)
    close(kernels_rs.linear(to(x), to(w), to(bias)), wide(x) @ wide(w).T + wide(bias), tolerance)
    with pytest.raises(ValueError, match="`bias` has 9 elements"):
        kernels_rs.linear(to(x), to(w), to(bias[:9]))
    with pytest.raises(kernels_rs.LaunchError, match="extents"):
        kernels_rs.matmul(to(a[0]), to(a[0]))


@pytest.mark.parametrize("format,tolerance", [("Q8_0", 0.02), ("Q4_0", 0.2)])
def test_quantized_linear_is_near_linear(to, format, tolerance):
    x, w = normal(3, 64), normal(8, 64)
    layer = kernels_rs.QuantizedLinear(to(w), format)
    assert layer.shape == (8, 64) and layer.format == format
    expected = wide(x) @ wide(w).T
    found = wide(host(kernels_rs.linear(to(x), layer)))
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    with pytest.raises(ValueError, match="no format `Q9`"):
        kernels_rs.QuantizedLinear(to(w), "Q9")


def test_blocks_of_a_file_are_multiplied(to):
    """Checks blocks of Q8_0 built by hand: a float16 scale and 32 bytes for each 32 numbers."""
    scales = RNG.uniform(0.1, 1, (4, 2)).astype(np.float16)
    q = RNG.integers(-127, 128, (4, 2, 32)).astype(np.int8)
    blocks = np.concatenate([scales[..., None].view(np.uint8), q.view(np.uint8)], -1).reshape(4, 68)
    w = (wide(scales)[..., None] * q).reshape(4, 64)
    x = normal(2, 64)
    layer = kernels_rs.QuantizedLinear.from_blocks(to(blocks), "q8_0")
    expected = wide(x) @ w.T
    assert np.abs(wide(host(layer(to(x)))) - expected).max() < 0.02 * np.abs(expected).max()


@pytest.mark.parametrize("dtype,tolerance", FLOATS)
def test_attention_matches_numpy(to, dtype, tolerance):
    q, k, v = normal(2, 4, 9, 32, dtype=dtype), normal(2, 2, 9, 32, dtype=dtype), normal(2, 2, 9, 32, dtype=dtype)

    def expected(causal, scale=32**-0.5, q=q):
        keys, values = wide(k).repeat(2, 1), wide(v).repeat(2, 1)
        logits = scale * wide(q) @ keys.swapaxes(-1, -2)
        if causal:
            n, m = logits.shape[-2:]
            logits = np.where(np.tri(n, m, m - n) > 0, logits, -np.inf)
        return soft(logits) @ values

    call = kernels_rs.scaled_dot_product_attention
    close(call(to(q), to(k), to(v), enable_gqa=True), expected(False), 2 * tolerance)
    close(call(to(q), to(k), to(v), is_causal=True, enable_gqa=True), expected(True), 2 * tolerance)
    close(kernels_rs.attention(to(q), to(k), to(v), scale=0.1), expected(False, 0.1), 2 * tolerance)
    few = np.ascontiguousarray(q[:, :, :3])
    close(kernels_rs.attention(to(few), to(k), to(v), causal=True), expected(True, q=few), 2 * tolerance)
    with pytest.raises(ValueError, match="enable_gqa"):
        call(to(q), to(k), to(v))
    with pytest.raises(ValueError, match="attn_mask"):
        call(to(q), to(k), to(v), attn_mask=to(q))


@pytest.mark.parametrize("activation", [None, "relu", "silu", "gelu", "gelu_tanh"])
def test_linear_with_an_epilogue(to, activation):
    functions = {
        None: lambda x: x,
        "relu": lambda x: np.maximum(x, 0),
        "silu": lambda x: x / (1 + np.exp(-x)),
        "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
        "gelu_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    }
    for dtype, tolerance in [(np.float32, 1e-5), (np.float16, 2e-2)]:
        x, w, b, r = (normal(*shape, dtype=dtype) for shape in [(2, 3, 24), (10, 24), (10,), (2, 3, 10)])
        z = wide(x) @ wide(w).T
        f = functions[activation]
        close(kernels_rs.linear(to(x), to(w), activation=activation), f(z), tolerance)
        close(kernels_rs.linear(to(x), to(w), to(b), activation=activation), f(z + wide(b)), tolerance)
        found = kernels_rs.linear(to(x), to(w), to(b), activation=activation, residual=to(r))
        close(found, f(z + wide(b)) + wide(r), tolerance)


def test_what_an_epilogue_does_not_take(to):
    x, w = normal(3, 8), normal(4, 8)
    with pytest.raises(ValueError, match="activation = 'tanh'"):
        kernels_rs.linear(to(x), to(w), activation="tanh")
    with pytest.raises(ValueError, match=r"residual has the shape \(4, 3\)"):
        kernels_rs.linear(to(x), to(w), residual=to(normal(4, 3)))
    with pytest.raises(ValueError, match="`bias` has 3 elements"):
        kernels_rs.linear(to(x), to(w), to(normal(3)), activation="relu")
    with pytest.raises(ValueError, match="a quantized linear layer has no activation"):
        kernels_rs.linear(to(normal(3, 32)), kernels_rs.QuantizedLinear(to(normal(4, 32))), activation="relu")
    out = to(normal(3, 4))
    with pytest.raises(ValueError, match="`residual` and `out` share memory"):
        kernels_rs.linear(to(x), to(w), residual=out, out=out)


@pytest.mark.parametrize("block", [64, 128])
def test_attention_of_blocks(to, block):
    queries, keys = block + 5, 2 * block + 3
    q, k, v = (normal(2, 2, n, 16) for n in (queries, keys, keys))
    seen = np.array([[[1, 0, 1], [0, 1, 0]], [[0, 1, 0], [0, 0, 0]]], bool)
    mask = kernels_rs.BlockMask(seen, queries, keys, block=block)
    assert mask.density == seen.mean()
    each = seen.repeat(block, 1).repeat(block, 2)[:, :queries, :keys]
    logits = np.where(each, wide(q) @ wide(k).swapaxes(-1, -2) / 4, -1e300)
    expected = soft(logits) @ wide(v)
    # Queries that see no key give zeros.
    expected[:, 1, block:] = 0
    close(kernels_rs.attention(to(q), to(k), to(v), blocks=mask), expected, 1e-5)
    with pytest.raises(kernels_rs.Error, match="the mask has 2 heads"):
        kernels_rs.attention(to(q[:, :1]), to(k[:, :1]), to(v[:, :1]), blocks=mask)
    with pytest.raises(ValueError, match="`seen` has other extents"):
        kernels_rs.BlockMask(seen[:, :1], queries, keys, block=block)
    with pytest.raises(ValueError, match="blocks have 64 or 128 rows"):
        kernels_rs.BlockMask(seen, queries, keys, block=32)


def attended(q, k, v, score=lambda x, behind: x, causal=False):
    """Computes attention of (heads, tokens, size) by its definition, and zeros for a query that sees no key."""
    q, k, v = (wide(x) for x in (q, k, v))
    behind = np.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1] - np.arange(k.shape[1])
    logits = score(q @ k.repeat(len(q) // len(k), 0).swapaxes(-1, -2) / q.shape[-1] ** 0.5, behind)
    logits = np.where((behind < 0) & causal, -np.inf, logits)
    e = np.exp(logits - np.maximum(logits.max(-1, keepdims=True, initial=-1e9), -1e9))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v.repeat(len(q) // len(v), 0)


@pytest.mark.parametrize("dtype,tolerance", [(np.float32, 1e-5), (np.float16, 2e-3)])
def test_attention_with_a_score(to, dtype, tolerance):
    q, k, v = (normal(2, heads, n, 16, dtype=dtype) for heads, n in ((4, 70), (2, 90), (2, 90)))

    def expected(score, causal=False):
        return np.stack([attended(q[i], k[i], v[i], lambda x, behind, i=i: score(x, behind, i), causal) for i in range(2)])

    found = kernels_rs.attention(to(q), to(k), to(v), softcap=2.0)
    close(found, expected(lambda x, behind, i: 2 * np.tanh(x / 2)), max(tolerance, 1e-4))
    slopes = np.float32([0.5, 0.25, 0.125, 0])
    found = kernels_rs.attention(to(q), to(k), to(v), causal=True, alibi=to(slopes))
    close(found, expected(lambda x, behind, i: x - slopes[:, None, None] * behind, True), tolerance)
    for shape in [(2, 4, 70, 90), (1, 4, 1, 90), (2, 1, 70, 90), (70, 90)]:
        bias = normal(*shape)
        bias[..., 3:9] = -np.inf
        each = np.broadcast_to(bias, (2, 4, 70, 90))
        found = kernels_rs.attention(to(q), to(k), to(v), bias=to(bias))
        close(found, expected(lambda x, behind, i: x + each[i]), tolerance)
    with pytest.raises(ValueError, match="`alibi` has 3 slopes, and the query 4 heads"):
        kernels_rs.attention(to(q), to(k), to(v), alibi=to(slopes[:3]))
    with pytest.raises(ValueError, match="`bias` has the extents"):
        kernels_rs.attention(to(q), to(k), to(v), bias=to(normal(70, 1)))
    with pytest.raises(ValueError, match="one of softcap, alibi and bias"):
        kernels_rs.attention(to(q), to(k), to(v), alibi=to(slopes), softcap=1.0)
    with pytest.raises(TypeError, match="attention takes an array, given list"):
        kernels_rs.attention(to(q), to(k), to(v), alibi=[0.5, 0.25, 0.125, 0])


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_attention_of_sequences_of_different_lengths(to, dtype):
    q, k, v = (normal(3, 2, n, 16) for n in (80, 100, 100))
    queries, keys = np.array([80, 3, 0], dtype), np.array([100, 70, 5], dtype)
    slopes = np.float32([0.5, 0.25])
    expected, of_slopes = np.zeros((2, 3, 2, 80, 16))
    for i, (n, m) in enumerate(zip(queries, keys)):
        rows = q[i, :, :n], k[i, :, :m], v[i, :, :m]
        expected[i, :, :n] = attended(*rows, causal=True)
        of_slopes[i, :, :n] = attended(*rows, lambda x, behind: x - slopes[:, None, None] * behind, True)
    lengths = to(queries), to(keys)
    close(kernels_rs.attention(to(q), to(k), to(v), causal=True, lengths=lengths), expected, 1e-5)
    close(kernels_rs.attention(to(q), to(k), to(v), causal=True, lengths=lengths, alibi=to(slopes)), of_slopes, 1e-5)
    # The same sequences in a packed batch, with a row before and after them.
    packed = []
    for x, lists in ((q, queries), (k, keys), (v, keys)):
        parts = [normal(2, 1, 16), *(x[i, :, : lists[i]] for i in range(3)), normal(2, 1, 16)]
        packed.append(to(np.concatenate(parts, 1)[None]))
    offsets = [np.concatenate([[1], 1 + x.cumsum()]).astype(dtype) for x in (queries, keys)]
    for longest in [None, (80, 100)]:
        found = host(kernels_rs.attention(*packed, causal=True, offsets=tuple(map(to, offsets)), longest=longest))
        for i, (start, stop) in enumerate(zip(offsets[0], offsets[0][1:])):
            close(found[0, :, start:stop], expected[i, :, : queries[i]], 1e-5)
        assert not found[0, :, 0].any() and not found[0, :, -1].any()
    out = to(np.full((3, 2, 80, 16), 7, np.float32))
    kernels_rs.attention(to(q), to(k), to(v), lengths=lengths, out=out)
    assert (host(out)[1, :, 3:] == 7).all() and (host(out)[2] == 7).all()
    with pytest.raises(ValueError, match="not both"):
        kernels_rs.attention(*packed, lengths=lengths, offsets=lengths)


def numbers_of(words, scales, format):
    """Returns the numbers of a cache of integers as float64."""
    if format == "q4_0":
        words = words.view(np.uint32)[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
        words = ((words.astype(int) + 8) % 16 - 8).reshape(*words.shape[:-2], -1)
    each = np.repeat(wide(scales), 32, -1) if scales.ndim == 4 else wide(scales)[..., None]
    return words * each[..., : words.shape[-1]]


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("format", ["int8", "q8_0", "q4_0"])
def test_decoding_with_a_cache_of_integers(to, format, paged):
    sequences, heads, groups, size, rows = 2, 4, 2, 48, 8
    planes = (sequences, groups, rows) if not paged else (2 * sequences, groups, rows // 2)
    kind, scale, limit = {
        "int8": (np.zeros((*planes, size), np.int8), np.zeros(planes, np.float32), 127),
        "q8_0": (np.zeros((*planes, size), np.int8), np.zeros((*planes, 2), np.float16), 127),
        "q4_0": (np.zeros((*planes, size // 8), np.uint32), np.zeros((*planes, 2), np.float16), 8),
    }[format]
    caches, scales = [to(kind.copy()) for _ in "kv"], tuple(to(scale.copy()) for _ in "kv")
    pages = np.array([[2, 0], [1, 3]], np.uint32) if paged else None
    named = {"pages": to(pages) if paged else None, "scales": scales}
    lengths = np.array([0, 3])
    for _ in range(3):
        q, k, v = (normal(sequences, n, size) for n in (heads, groups, groups))
        rotated = kernels_rs.cache_append(to(q), to(k), to(v), *caches, to(lengths), **named)
        close(rotated, wide(host(kernels_rs.rotary(q, lengths))), 2e-5)
        turned = host(kernels_rs.rotary(k, lengths))
        stored = [numbers_of(host(x), host(s), format) for x, s in zip(caches, scales)]
        of_scales = [np.abs(wide(host(s))) for s in scales]
        for i, length in enumerate(lengths):
            at = (i, slice(None), length)
            if paged:
                at = (pages[i, length // (rows // 2)], slice(None), length % (rows // 2))
            for exact, found, each in zip((turned[i], v[i]), stored, of_scales):
                # Half a scale, or a whole one for the largest numbers of four bits.
                step = np.repeat(each[at], 32, -1)[..., :size] if each.ndim == 4 else each[at][:, None]
                assert (np.abs(found[at] - exact) <= (1 if limit == 8 else 0.51) * step + 1e-5).all()
                assert np.abs(found[at]).max() > 0
        found = kernels_rs.decode(rotated, *caches, to(lengths + 1), **named)
        for i, length in enumerate(lengths + 1):
            keys, values = stored
            if paged:
                keys, values = (np.concatenate([x[page] for page in pages[i]], 1)[None] for x in stored)
            of_sequence = 0 if paged else i
            of_step = wide(host(rotated))[i][:, None], keys[of_sequence][:, :length], values[of_sequence][:, :length]
            close(host(found)[i], attended(*of_step)[:, 0], 2e-3)
        lengths = lengths + 1
    with pytest.raises(kernels_rs.Error, match="scales of the cache"):
        kernels_rs.decode(rotated, *caches, to(lengths), **{**named, "scales": tuple(to(host(s)[:1]) for s in scales)})


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("format", ["float32", "int8", "q8_0", "q4_0"])
def test_prompts_with_a_cache(to, format, paged):
    """Compares pieces of prompts over a cache with attention in float64 of the numbers in the cache."""
    sequences, heads, groups, size, rows = 2, 4, 2, 32, 8
    planes = (sequences, groups, rows) if not paged else (2 * sequences, groups, rows // 2)
    kind, scale = {
        "float32": (np.zeros((*planes, size), np.float32), None),
        "int8": (np.zeros((*planes, size), np.int8), np.zeros(planes, np.float32)),
        "q8_0": (np.zeros((*planes, size), np.int8), np.zeros((*planes, 1), np.float16)),
        "q4_0": (np.zeros((*planes, size // 8), np.uint32), np.zeros((*planes, 1), np.float16)),
    }[format]
    caches = [to(kind.copy()) for _ in "kv"]
    scales = None if scale is None else tuple(to(scale.copy()) for _ in "kv")
    pages = np.array([[2, 0], [1, 3]], np.uint32) if paged else None
    named = {"pages": to(pages) if paged else None, "scales": scales}
    for step in range(6):
        new = (to(normal(sequences, n, size)) for n in (heads, groups, groups))
        kernels_rs.cache_append(*new, *caches, to(np.array([step, step])), **named)
    if scales is None:
        stored = [wide(host(x)) for x in caches]
    else:
        stored = [numbers_of(host(x), host(s), format) for x, s in zip(caches, scales)]
    q, queries, lengths = normal(sequences, heads, 3, size), np.array([3, 2]), np.array([6, 5])
    for window in (None, (2, 0)):
        found = kernels_rs.attention_cached(
            to(q), *caches, to(lengths), queries=to(queries), window=window, scale=0.25, **named
        )
        assert (host(found)[1, :, 2] == 0).all(), "rows of no token"
        for i, (tokens, length) in enumerate(zip(queries, lengths)):
            keys, values = (np.concatenate([x[p] for p in pages[i]], 1) if paged else x[i] for x in stored)
            keys, values = (np.repeat(x[:, :length], heads // groups, 0) for x in (keys, values))
            behind = np.arange(tokens)[:, None] + length - tokens - np.arange(length)
            seen = (behind >= 0) & (behind <= (rows if window is None else 2))
            logits = np.where(seen, wide(q[i, :, :tokens]) @ keys.transpose(0, 2, 1) * 0.25, -np.inf)
            weights = np.exp(logits - logits.max(-1, keepdims=True))
            expected = weights / weights.sum(-1, keepdims=True) @ values
            close(host(found)[i, :, :tokens], expected, 2e-3)
    whole = kernels_rs.attention_cached(to(q), *caches, to(lengths), **named)
    some = kernels_rs.attention_cached(to(q), *caches, to(lengths), queries=to(np.array([3, 3])), **named)
    assert (host(whole) == host(some)).all()


def test_each_call_has_its_frequencies(to):
    q, caches = normal(1, 2, 16), np.zeros((2, 1, 2, 9, 16), np.float32)
    for options in [{}, {"base": 50.0}, {"size": 8}, {"frequencies": [0.5]}, {}, {"base": 50.0}]:
        found = kernels_rs.cache_append(to(q), to(q), to(q), *map(to, caches), to(np.array([7])), **options)
        expected = kernels_rs.rotary(q, np.array([7]), **options)
        close(found, wide(expected), 1e-5)


@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize("dtype,tolerance", [(np.float32, 1e-5), (np.float16, 4e-3)])
def test_decoding_with_a_cache(to, dtype, tolerance, paged):
    """Compares steps over a cache with attention of the whole sequences in float64."""
    sequences, heads, groups, size, rows = 2, 4, 2, 16, 8
    shape = (sequences, groups, rows, size) if not paged else (2 * sequences, groups, rows // 2, size)
    caches = to(np.zeros(shape, dtype)), to(np.zeros(shape, dtype))
    pages = to(np.array([[2, 0], [1, 3]], np.uint32)) if paged else None
    lengths = np.array([0, 2], np.int64)
    # Sequence 1 has two keys before the first step, which are zeros.
    keys = [[np.zeros((groups, size))] * n for n in lengths]
    values = [[np.zeros((groups, size))] * n for n in lengths]

    def turned(x, position):
        angle = position * 10000.0 ** (-2 * np.arange(size // 2) / size)
        a, b = x[:, : size // 2], x[:, size // 2 :]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)

    for _ in range(4):
        q, k, v = normal(sequences, heads, size, dtype=dtype), *(normal(sequences, groups, size, dtype=dtype) for _ in "kv")
        rotated = kernels_rs.cache_append(to(q), to(k), to(v), *caches, to(lengths), pages=pages)
        found = kernels_rs.decode(rotated, *caches, to(lengths + 1), pages=pages)
        expected = np.zeros((sequences, heads, size))
        for i, length in enumerate(lengths):
            keys[i].append(turned(wide(k[i]), length))
            values[i].append(wide(v[i]))
            of_keys = np.repeat(np.stack(keys[i], 1), heads // groups, 0)
            of_values = np.repeat(np.stack(values[i], 1), heads // groups, 0)
            logits = np.einsum("hd,hnd->hn", turned(wide(q[i]), length), of_keys) / size**0.5
            expected[i] = np.einsum("hn,hnd->hd", soft(logits), of_values)
        close(found, expected, tolerance)
        lengths = lengths + 1


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_matches_numpy(to, interleaved):
    x, positions = normal(5, 2, 16), np.array([-3, 0, 1, 100, 1000])
    angle = positions[:, None] * 10000.0 ** (-2 * np.arange(8) / 16)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x64 = wide(x)
    a, b = (x64[..., ::2], x64[..., 1::2]) if interleaved else (x64[..., :8], x64[..., 8:])
    y = np.stack([a * cos - b * sin, b * cos + a * sin], -1)
    y = y.reshape(x.shape) if interleaved else np.concatenate([y[..., 0], y[..., 1]], -1)
    for dtype in [np.int64, np.int32]:
        close(kernels_rs.rotary(to(x), to(positions.astype(dtype)), interleaved=interleaved), y, 2e-4)
    close(kernels_rs.rotary(to(x[1:]), to(positions[1:].astype(np.uint32)), interleaved=interleaved), y[1:], 2e-4)


def test_logits_are_rows_of_classes(to):
    for shape, labels in [((5, 1, 13), (5, 1)), ((13,), ()), ((2, 3, 13), (2, 3)), ((5, 13), (5, 1))]:
        with pytest.raises(ValueError, match="cross_entropy takes logits"):
            kernels_rs.cross_entropy(to(normal(*shape)), to(np.zeros(labels, np.int64)))


def test_indices_and_positions_are_integers(to):
    x = normal(3, 1, 4)
    with pytest.raises(TypeError, match="positions are float64, expected integers"):
        kernels_rs.rotary(to(x), to(np.array([0.5, 1.0, 2.0])))
    with pytest.raises(ValueError, match="positions must be from -2\\*\\*31"):
        kernels_rs.rotary(x, np.array([0, 1, 2**31]))
    with pytest.raises(TypeError, match="indices are float64, expected integers"):
        kernels_rs.embedding(to(np.array([1.7])), to(normal(4, 3)))
    with pytest.raises(TypeError, match="indices are float32, expected integers"):
        kernels_rs.cross_entropy(to(normal(3, 4)), to(np.array([0.9, np.nan, 2.9], np.float32)))


@pytest.mark.parametrize("dtype,tolerance", FLOATS)
def test_activations_and_gates_match_numpy(to, dtype, tolerance):
    erf = np.vectorize(__import__("math").erf)
    x = normal(3, 40, dtype=dtype)
    x64 = wide(x)
    silu, gelu = x64 / (1 + np.exp(-x64)), x64 / 2 * (1 + erf(x64 / 2**0.5))
    tanh = x64 / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x64 + 0.044715 * x64**3)))
    close(kernels_rs.silu(to(x)), silu, 2 * tolerance)
    close(kernels_rs.gelu(to(x)), gelu, 2 * tolerance)
    close(kernels_rs.gelu(to(x), "tanh"), tanh, 2 * tolerance)
    close(kernels_rs.swiglu(to(x)), silu[:, :20] * x64[:, 20:], 2 * tolerance)
    close(kernels_rs.geglu(to(x)), gelu[:, :20] * x64[:, 20:], 2 * tolerance)
    close(kernels_rs.geglu(to(x), approximate="tanh"), tanh[:, :20] * x64[:, 20:], 2 * tolerance)
    up = normal(*x.shape, dtype=dtype)
    close(kernels_rs.swiglu(to(x), to(up)), silu * wide(up), 4 * tolerance)
    close(kernels_rs.geglu(to(x), to(up)), gelu * wide(up), 4 * tolerance)
    with pytest.raises((ValueError, kernels_rs.LaunchError)):
        kernels_rs.swiglu(to(x), to(normal(3, 7, dtype=dtype)))


def test_reductions_match_numpy(to):
    x = normal(3, 5, 7)
    x64 = wide(x)
    for dim in [None, 0, 1, 2, -1]:
        close(kernels_rs.sum(to(x), dim), x64.sum(dim), 4e-6)
        close(kernels_rs.mean(to(x), dim), x64.mean(dim), 4e-6)
        close(kernels_rs.max(to(x), dim), x64.max(dim), 0)
        close(kernels_rs.min(to(x), dim), x64.min(dim), 0)
        assert (host(kernels_rs.argmax(to(x), dim)) == x.argmax(dim)).all()
        assert (host(kernels_rs.argmin(to(x), dim)) == x.argmin(dim)).all()
        close(kernels_rs.norm(to(x), 2, dim), np.sqrt((x64**2).sum(dim)), 4e-6)
    assert tuple(kernels_rs.sum(to(x), 1, keepdim=True).shape) == (3, 1, 7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint32, np.int64])
def test_cumsum_matches_numpy(to, dtype):
    x = RNG.integers(0, 9, (3, 100)).astype(dtype)
    assert (host(kernels_rs.cumsum(to(x))) == x.cumsum(-1)).all()
    assert (host(kernels_rs.cumsum(to(x), exclusive=True)) == x.cumsum(-1) - x).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_transpose_matches_numpy(to, dtype):
    x = RNG.integers(0, 99, (2, 33, 18)).astype(dtype)
    assert (host(kernels_rs.transpose(to(x))) == x.swapaxes(1, 2)).all()


def test_embedding_matches_numpy(to):
    table, index = normal(10, 12), np.array([[3, 0], [9, -1]])
    expected = table[index]
    expected[1, 1] = 0
    assert (host(kernels_rs.embedding(to(index), to(table))) == expected).all()


def test_out_is_written_or_rejected():
    x, w, table = normal(2, 3, 5), normal(4, 5), normal(7, 4)
    calls = [
        lambda out: kernels_rs.linear(x, w, out=out),
        lambda out: kernels_rs.embedding(np.arange(6).reshape(2, 3), table, out=out),
        lambda out: kernels_rs.QuantizedLinear(normal(4, 32))(normal(2, 3, 32), out=out),
        lambda out: kernels_rs.softmax(normal(2, 3, 4), out=out),
    ]
    for call in calls:
        out = np.full((2, 3, 4), 7, np.float32)
        assert call(out) is out and not (out == 7).any()
        wide = np.full((3, 2, 3, 4), 7, np.float32)
        call(wide[1])
        assert not (wide[1] == 7).any() and (wide[[0, 2]] == 7).all()
        gaps = np.full((2, 6, 4), 7, np.float32)
        with pytest.raises(ValueError, match="gaps between its outer axes"):
            call(gaps[:, :3])
        assert (gaps == 7).all()


def test_out_has_the_type_of_the_result(to):
    x, w = normal(2, 4), normal(4, 4)
    calls = {
        "silu": lambda out: kernels_rs.silu(to(x), out=out),
        "softmax": lambda out: kernels_rs.softmax(to(x), out=out),
        "linear": lambda out: kernels_rs.linear(to(x), to(w), out=out),
        "embedding": lambda out: kernels_rs.embedding(to(np.array([0, 2])), to(w), out=out),
        "transpose": lambda out: kernels_rs.transpose(to(x.reshape(4, 2)), out=out),
    }
    for name, call in calls.items():
        for dtype in [np.int32, np.uint32, np.float16]:
            out = to(np.zeros((2, 4), dtype))
            with pytest.raises(TypeError, match="`out` has elements"):
                call(out)
            assert not host(out).any(), name
    halves = to(np.ones((4, 2), np.float16))
    with pytest.raises(TypeError, match="`out` has elements uint16, expected float16"):
        kernels_rs.transpose(halves, out=to(np.zeros((2, 4), np.uint16)))
    assert (host(kernels_rs.transpose(halves, out=to(np.zeros((2, 4), np.float16)))) == 1).all()


def test_operands_have_names(to):
    q = to(normal(1, 2, 3, 4))
    by_name = kernels_rs.attention(query=q, key=q, value=q)
    assert (host(by_name) == host(kernels_rs.attention(q, q, q))).all()
    x, positions = to(normal(3, 1, 4)), to(np.arange(3))
    assert (host(kernels_rs.rotary(x=x, positions=positions)) == host(kernels_rs.rotary(x, positions))).all()
    assert (host(kernels_rs.softmax(input=x, out=None, stream=None)) == host(kernels_rs.softmax(x))).all()
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        kernels_rs.softmax()


def test_results_of_subclasses_are_arrays_of_their_library():
    class Mine(np.ndarray):
        pass

    x = normal(2, 3)
    y = kernels_rs.softmax(x.view(Mine))
    assert isinstance(y, np.ndarray) and (y == kernels_rs.softmax(x)).all()
    assert isinstance(kernels_rs.embedding(np.array([1]).view(Mine), x.view(Mine)), np.ndarray)


def test_arguments_of_other_types_are_converted_or_rejected(to):
    x = to(normal(3, 4))
    assert (host(kernels_rs.norm(x, 2.0)) == host(kernels_rs.norm(x, 2))).all()
    for p in [True, 3, 0.5]:
        with pytest.raises(ValueError, match="expected 1 or 2"):
            kernels_rs.norm(x, p)
    for dim in [(0, 1), [0]]:
        with pytest.raises(TypeError, match="expected one axis, or None"):
            kernels_rs.sum(x, dim)
    assert (host(kernels_rs.rms_norm(x, np.int64(4))) == host(kernels_rs.rms_norm(x, 4))).all()
    q = to(normal(1, 1, 3, 4))
    assert (host(kernels_rs.attention(q, q, q, window=[1, 1])) == host(kernels_rs.attention(q, q, q, window=(1, 1)))).all()
    with pytest.raises(ValueError, match="transpose exchanges the last two axes"):
        kernels_rs.transpose(to(normal(3)))
    with pytest.raises(ValueError, match=r"\(batch, heads, tokens, size\)"):
        kernels_rs.scaled_dot_product_attention(x, x, x)
    with pytest.raises(ValueError, match="label_smoothing = 2.0: expected a number from 0 to 1"):
        kernels_rs.cross_entropy(x, to(np.array([0, 1, 2])), label_smoothing=2.0)


def test_extremes_of_no_elements_are_rejected(to):
    for call in [kernels_rs.max, kernels_rs.min, kernels_rs.argmax, kernels_rs.argmin]:
        for shape, dim in [((0,), None), ((0,), 0), ((2, 0), -1), ((0, 3), 0)]:
            with pytest.raises(ValueError, match="of no elements"):
                call(to(np.zeros(shape, np.float32)), dim)
        assert tuple(call(to(np.zeros((0, 3), np.float32)), 1).shape) == (0,)
    assert host(kernels_rs.sum(to(np.zeros((0,), np.float32)))) == 0


def test_softmax_returns_another_type():
    x = normal(2, 4, dtype=np.float16)
    for dtype in ["float32", np.float32, np.dtype(np.float32)]:
        for call in [kernels_rs.softmax, kernels_rs.log_softmax]:
            y = call(x, -1, dtype)
            assert y.dtype == np.float32
            np.testing.assert_array_equal(y, call(x.astype(np.float32)))
    assert kernels_rs.softmax(wide(x), dtype="float16").dtype == np.float16
    with pytest.raises(TypeError, match="cannot be converted"):
        kernels_rs.softmax(kernels_rs.array(x), dtype="float32")


@pytest.mark.parametrize("given", [[1.0], None, 3.0])
def test_what_is_no_array_is_rejected(given):
    for call in [kernels_rs.softmax, kernels_rs.sum, kernels_rs.cumsum, kernels_rs.silu, kernels_rs.histc]:
        with pytest.raises(TypeError, match=f"{call.__name__} takes an array, given {type(given).__name__}"):
            call(given)


def test_other_operands_that_are_no_arrays_are_named():
    x, listed = normal(2, 4), [[1.0]]
    for name, operand, call in [
        ("matmul", "other", lambda: kernels_rs.matmul(x, listed)),
        ("linear", "weight", lambda: kernels_rs.linear(x, listed)),
        ("cross_entropy", "target", lambda: kernels_rs.cross_entropy(x, [1, 2])),
        ("softmax", "out", lambda: kernels_rs.softmax(x, out=listed)),
        ("swiglu", "out", lambda: kernels_rs.swiglu(x, x, out=listed)),
        ("attention", "value", lambda: kernels_rs.attention(x, x, listed)),
        ("attention", "lengths", lambda: kernels_rs.attention(normal(1, 1, 2, 4), x, x, lengths=3)),
        ("decode", "lengths", lambda: kernels_rs.decode(x, x, x, [1])),
        ("rotary", "positions", lambda: kernels_rs.rotary(normal(2, 1, 4), [0, 1])),
    ]:
        given = "int" if operand == "lengths" and name == "attention" else "list"
        with pytest.raises(TypeError, match=f"{name} takes an array as `{operand}`, given {given}"):
            call()
    with pytest.raises(TypeError, match="attention takes an array as `value`, given NoneType"):
        kernels_rs.attention(x, x, None)


def test_arrays_with_too_few_axes_are_named(to, device):
    x, none = to(normal(2, 32)), kernels_rs.array(np.array(1, np.float32), device)
    for name, call in [
        ("swiglu", lambda: kernels_rs.swiglu(none)),
        ("geglu", lambda: kernels_rs.geglu(none)),
        ("rms_norm", lambda: kernels_rs.rms_norm(none, 1)),
        ("rotary", lambda: kernels_rs.rotary(none, np.array([0]))),
    ]:
        with pytest.raises(ValueError, match=rf"{name} takes arrays with more axes, given the shapes `\w+` \(\)"):
            call()
    with pytest.raises(ValueError, match=r"embedding takes arrays with more axes, .* `input` \(1,\), `weight` \(2,\)"):
        kernels_rs.embedding(np.array([0]), normal(2))
    for call in [lambda: kernels_rs.linear(none, x), lambda: kernels_rs.QuantizedLinear(x)(none)]:
        with pytest.raises(ValueError, match=r"takes an input with one axis or more, given an array of the shape \(\)"):
            call()
    with pytest.raises(TypeError, match="QuantizedLinear takes an array, given list"):
        kernels_rs.QuantizedLinear(x)([1.0])


def test_numbers_that_no_kernel_takes_are_named():
    x = normal(2, 4)
    for option, call in [
        ("causal = -1", lambda: kernels_rs.softmax(x, causal=-1)),
        ("top_k = -1", lambda: kernels_rs.sample(x, seed=1, top_k=-1)),
        ("seed = -1", lambda: kernels_rs.sample(x, seed=-1)),
        ("offset = 18446744073709551616", lambda: kernels_rs.sample(x, seed=1, offset=2**64)),
    ]:
        with pytest.raises(ValueError, match=rf"^{option}: expected a number from 0 to 2\*\*64 - 1$"):
            call()


def test_options_that_do_not_exist_are_rejected(to):
    x = to(normal(2, 4))
    for call in [kernels_rs.gelu, kernels_rs.geglu]:
        with pytest.raises(ValueError, match="approximate = 'tahn': expected 'none' or 'tanh'"):
            call(x, approximate="tahn")
    for call in [kernels_rs.softmax, kernels_rs.log_softmax]:
        with pytest.raises(TypeError, match="causal is the number of queries"):
            call(x, causal=True)


def test_histc_matches_numpy(to):
    x = RNG.uniform(-1, 2, 1000).astype(np.float32)
    found = host(kernels_rs.histc(to(x), 10, 0.0, 1.0))
    assert np.abs(found.astype(int) - np.histogram(x, 10, (0, 1))[0]).sum() <= 2
    whole = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert host(kernels_rs.histc(to(whole), 3)).tolist() == [2, 2, 2]
    assert host(kernels_rs.histc(to(np.full(4, 5, np.float32)), 3)).tolist() == [0, 4, 0]
    assert host(kernels_rs.histc(to(np.zeros((0,), np.float32)), 3)).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="give min and max"):
        kernels_rs.histc(to(np.array([1, np.inf], np.float32)), 3)
    keys = RNG.integers(0, 20, 500).astype(np.uint8)
    assert (host(kernels_rs.histc(to(keys), 16)) == np.bincount(keys, minlength=20)[:16]).all()


def test_sample_draws_the_allowed_tokens(to):
    x = normal(5, 200)
    assert (host(kernels_rs.sample(to(x), seed=1, temperature=0.0)) == x.argmax(-1)).all()
    tokens = host(kernels_rs.sample(to(x), seed=1, top_k=3))
    assert all(token in np.argsort(row)[-3:] for token, row in zip(tokens, x))
    assert (host(kernels_rs.sample(to(x), seed=1)) == host(kernels_rs.sample(x, seed=1))).all()


def test_calls_on_a_stream_give_the_same_results(device, to):
    x = normal(8, 64)
    with kernels_rs.Stream(device) as stream:
        given = to(x)
        y = kernels_rs.softmax(given, stream=stream)
        z = kernels_rs.sum(y, -1, stream=stream)
        del given
    close(y, soft(wide(x)), 2e-6)
    close(z, np.ones(8), 2e-6)


def test_element_types_that_are_not_supported_are_rejected(to):
    with pytest.raises(TypeError, match="the element type is int32, and this function takes float32, float16 and bf"):
        kernels_rs.softmax(to(np.ones((2, 2), np.int32)))
    with pytest.raises(TypeError, match="`b` has elements float16, expected float32"):
        kernels_rs.matmul(to(normal(2, 2)), to(normal(2, 2, dtype=np.float16)))
