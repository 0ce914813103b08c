"""Kernels from a string: values, errors with their places, instances, texts."""

import copy
import inspect
import pickle
import re
import signal
import sys
import time

import numpy as np
import pytest
from conftest import host

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


def test_a_launch_computes_its_values(device, to):
    saxpy = kernels_rs.compile(SAXPY)
    x, y = np.arange(1000, dtype=np.float32), np.full(1000, 0.5, np.float32)
    dx, dy = to(x), to(y.copy())
    assert saxpy(2.0, dx, dy) is None
    np.testing.assert_array_equal(host(dy), 2 * x + y)
    saxpy(a=1, y=dy, x=dx)
    np.testing.assert_array_equal(host(dy), 3 * x + y)
    saxpy(1.0, dx, dy, unchecked=True)
    np.testing.assert_array_equal(host(dy), 4 * x + y)
    assert repr(saxpy) == "<kernel saxpy(a, x, y)>"


def test_an_access_out_of_bounds_raises_with_its_line(device, to):
    wrong = kernels_rs.compile(SAXPY.replace("if i < y.len() {", "if i < y.len() + 1 {"), file="wrong.rs")
    x, y = to(np.ones(5, np.float32)), to(np.ones(5, np.float32))
    with pytest.raises(kernels_rs.Violation) as raised:
        wrong(2.0, x, y)
    said = str(raised.value)
    assert said.startswith("error[out-of-bounds]: index 5 is out of bounds of `"), said
    assert "--> wrong.rs:7:" in said and "y[i] = a.mul_add(x[i], y[i]);" in said
    assert (raised.value.check, raised.value.file, raised.value.line) == ("out-of-bounds", "wrong.rs", 7)
    assert raised.value.findings[0]["thread"] == [5, 0, 0]


def test_an_endless_loop_raises_at_the_limit():
    endless = kernels_rs.compile(
        """
        #[kernel(block = 32, grid = 1)]
        pub fn endless(y: &mut [u32]) {
            let mut n = y[0];
            while n != 4 {
                n = n.wrapping_mul(3) | 1;
            }
            y[0] = n;
        }
        """
    )
    kernels_rs.set_instruction_limit(10_000)
    try:
        with pytest.raises(kernels_rs.Violation, match="its limit of 10000 warp instructions") as raised:
            endless(np.zeros(4, np.uint32))
    finally:
        kernels_rs.set_instruction_limit(None)
    assert raised.value.check == "fuel-exhausted"
    assert "`set_instruction_limit` in Python" in str(raised.value)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer of signals")
@pytest.mark.parametrize("on", ["a call", "a stream", "the library"])
def test_a_signal_stops_a_kernel_on_the_cpu(on):
    """Sends a signal during calls that take minutes or hours."""
    long = kernels_rs.compile(
        """
        #[kernel(block = 32, grid = 1)]
        pub fn long(y: &mut [u32]) {
            let mut n = 0u32;
            while n < 4_000_000_000 {
                n += 1;
            }
            y[0] = n;
        }
        """
    )
    calls = {
        "a call": lambda: long(np.zeros(4, np.uint32)),
        "a stream": lambda: long(np.zeros(4, np.uint32), stream=kernels_rs.Stream("cpu")),
        "the library": lambda: kernels_rs.matmul(np.ones((2048, 2048), np.float32), np.ones((2048, 2048), np.float32)),
    }

    class Signaled(Exception):
        pass

    def handler(number, frame):
        raise Signaled

    before = signal.signal(signal.SIGALRM, handler)
    kernels_rs.set_instruction_limit(1 << 40)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Signaled):
            calls[on]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        kernels_rs.set_instruction_limit(None)
    y = np.zeros(1, np.uint32)
    kernels_rs.compile("#[kernel(block = 1, grid = 1)]\npub fn one(y: &mut [u32]) { y[0] = 1; }")(y)
    assert y[0] == 1, "the device works after the interrupt"


def test_a_race_raises_on_the_cpu():
    race = kernels_rs.compile(
        """
        #[kernel(block = 64, grid = 1)]
        pub fn race(y: &mut [f32]) {
            let i = thread::x();
            y[0] = y[0] + i as f32;
        }
        """
    )
    with pytest.raises(kernels_rs.Violation, match="race"):
        race(np.zeros(4, np.float32))


def test_a_missing_barrier_raises_on_the_cpu():
    missing = kernels_rs.compile(
        """
        #[kernel(block = 64, grid = 1)]
        pub fn reversed(y: &mut [f32]) {
            let mut tile = Shared::<f32, 1>::new([64]);
            let i = thread::x();
            tile[i] = y[i];
            y[i] = tile[63 - i];
        }
        """
    )
    with pytest.raises(kernels_rs.Violation, match="shared-race|uninitialized"):
        missing(np.ones(64, np.float32))


def test_a_mistake_raises_with_an_excerpt():
    with pytest.raises(kernels_rs.CompileError) as raised:
        kernels_rs.compile(SAXPY.replace("y[i]);", "z);"))
    assert "--> kernel.rs:7:32\n  |\n7 |         y[i] = a.mul_add(x[i], z);\n" in str(raised.value)
    assert [(e["line"], e["column"]) for e in raised.value.errors] == [(7, 32)]
    for text in ["fn k( {", "fn k() {}", "#[kernel(block = 32)] fn k() {}"]:
        with pytest.raises(kernels_rs.CompileError):
            kernels_rs.compile(text)


@pytest.mark.parametrize(
    "body",
    [
        "let n = 1; n = 2;",  # assigned without `mut`
        "let x: u32 = 1.0;",  # another type
        "x[0] = 1.0;",  # written through a shared reference
        "return 1;",  # a value from a kernel
        "unsafe { }",
        "let s = String::new();",
        "y[0u32] = 1.0;",  # an index of another type
        "y[0] = y;",
        "unknown();",
        "if 1 { }",
        "let a = [0.0f32; 4]; let b = a[9];",
    ],
)
def test_what_rustc_rejects_is_rejected(body):
    text = "#[kernel(block = 32, grid = 1)]\npub fn k(x: &[f32], y: &mut [f32]) {\n    %s\n}\n" % body
    with pytest.raises(kernels_rs.CompileError):
        kernels_rs.compile(text)


def test_arguments_that_do_not_fit_are_rejected(device, to):
    saxpy = kernels_rs.compile(SAXPY)
    x, y = to(np.ones(5, np.float32)), to(np.ones(4, np.float32))
    with pytest.raises(kernels_rs.LaunchError) as raised:
        saxpy(2.0, x, y)
    assert str(raised.value) == "cannot launch saxpy:\n  requires `x.len() == y.len()`: x.len() is 5, y.len() is 4"
    with pytest.raises(kernels_rs.LaunchError, match="`y`"):
        saxpy(2.0, x, to(np.ones(5, np.float64)))
    with pytest.raises(kernels_rs.LaunchError, match="overlap"):
        saxpy(2.0, x, x)
    for arguments in [(2.0, x), (2.0, x, y, 1), ("two", x, x), (2.0, 1.0, y), (np.ones(3), x, y)]:
        with pytest.raises(TypeError):
            saxpy(*arguments)
    with pytest.raises(TypeError, match="no parameter `b`"):
        saxpy(2.0, x, y=y, b=1)


def test_arrays_of_two_devices_are_rejected(device, to):
    if device == "cpu":
        pytest.skip("one device")
    with pytest.raises(ValueError, match="`y` is on cpu, and `x` on cuda:0"):
        kernels_rs.compile(SAXPY)(1.0, to(np.ones(4, np.float32)), np.ones(4, np.float32))


def test_read_only_arrays_are_not_written():
    y = np.ones(4, np.float32)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="`y`: the kernel writes it, and it is read-only"):
        kernels_rs.compile(SAXPY)(1.0, np.ones(4, np.float32), y)
    assert (y == 1).all()


@pytest.mark.parametrize(
    "value,place",
    [
        ("1.0" + "+1.0" * 3000, (3, 12)),
        ("(" * 3000 + "1.0" + ")" * 3000, (3, 523)),
        ("x[1]" + ".abs()" * 3000, (3, 12)),
    ],
    ids=["sum", "parentheses", "methods"],
)
def test_sources_that_are_nested_too_deeply_are_rejected(value, place):
    text = "#[kernel(block = 1, grid = 1)]\npub fn f(x: &mut [f32]) {\n    x[0] = %s;\n}\n" % value
    with pytest.raises(kernels_rs.CompileError, match="nested more than") as raised:
        kernels_rs.compile(text)
    assert [(e["line"], e["column"]) for e in raised.value.errors] == [place]


def test_long_expressions_compile():
    text = "#[kernel(block = 1, grid = 1)]\npub fn f(x: &mut [f32]) {\n    x[0] = %s;\n}\n"
    x = np.zeros(1, np.float32)
    for value in ["1.0" + "+1.0" * 1800, "(" * 500 + "1801.0" + ")" * 500]:
        kernels_rs.compile(text % value)(x)
        assert x[0] == 1801


def test_parameters_may_have_the_names_of_options():
    text = """
        #[kernel(block = 1, grid = 1)]
        pub fn f(block: f32, unchecked: f32, x: &mut [f32]) {
            x[0] = block + unchecked;
        }
    """
    kernel, x = kernels_rs.compile(text), np.zeros(1, np.float32)
    kernel(block=1.5, unchecked=2.0, x=x)
    assert x[0] == 3.5
    kernel(1.0, 2.0, x)
    assert x[0] == 3


def test_numbers_that_do_not_fit_are_rejected():
    kernel = kernels_rs.compile(
        """
        #[kernel(block = 1, grid = 1)]
        pub fn f(a: f32, n: u32, b: bool, x: &mut [f32]) {
            x[0] = if b { a } else { n as f32 };
        }
        """
    )
    x = np.zeros(1, np.float32)
    for a, n, name in [(10**400, 1, "a"), (1e39, 1, "a"), (1, 2**200, "n"), (1, -1, "n")]:
        with pytest.raises(ValueError, match=f"argument `{name}`: -?[0-9e+.]* is out of range for"):
            kernel(a, n, True, x)
    for b in [None, "False"]:
        with pytest.raises(TypeError, match="argument `b`: expected bool, given"):
            kernel(1.0, 1, b, x)
    for b in [True, 1, np.bool_(True), np.ones(())]:
        kernel(float("inf"), 1, b, x)
        assert x[0] == np.inf
    for given in [[1.0, 2.0], (1.0, 2.0), []]:
        with pytest.raises(TypeError, match="argument `x`: expected an array, given (list|tuple)"):
            kernel(1.0, 1, True, given)


def test_bounds_of_types_are_checked():
    text = """
        #[kernel(block = 1, grid = 1)]
        pub fn f<T: %s>(x: &mut [T]) {
            x[0] = x[0] + x[0];
        }
    """
    for bound, right, wrong in [("Float", np.float16, np.int32), ("Integer", np.int16, np.float32)]:
        kernel = kernels_rs.compile(text % bound)
        x = np.ones(1, right)
        kernel(x)
        assert x[0] == 2
        with pytest.raises(TypeError, match=f"which is no type of the bound `{bound}`"):
            kernel(np.ones(1, wrong))
    number = kernels_rs.compile(text % "Number")
    number(np.ones(1, np.int32)), number(np.ones(1, np.float32))


def test_kernels_are_copied_and_named():
    saxpy = kernels_rs.compile(SAXPY)
    assert copy.copy(saxpy) is saxpy and copy.deepcopy([saxpy])[0] is saxpy
    assert saxpy.__name__ == saxpy.name == "saxpy" and kernels_rs.Kernel.__name__ == "Kernel"


def test_kernels_are_pickled():
    scaled = kernels_rs.compile(
        """
        #[kernel(block = 32, grid = 1)]
        pub fn scaled<T: Float, const N: usize>(y: &mut [T]) {
            if thread::x() < y.len() {
                y[thread::x()] = T::from_f32(N as f32);
            }
        }
        """,
        file="scaled.rs",
        target="sm_70",
    )
    again = pickle.loads(pickle.dumps(scaled.instance(N=3)))
    y = np.zeros(2, np.float32)
    again(y)
    assert y.tolist() == [3, 3] and ".target sm_70" in again.instance(T="float32").ptx
    assert pickle.loads(pickle.dumps(scaled.instance(T="float16"))).instance(N=1).ptx


def test_signatures_of_kernels():
    assert str(inspect.signature(kernels_rs.compile(SAXPY))) == "(a, x, y, *, block=None, stream=None, unchecked=None)"
    keyword = kernels_rs.compile(re.sub(r"\bx\b", "from", SAXPY))
    assert str(inspect.signature(keyword)) == "(a, from, /, y, *, block=None, stream=None, unchecked=None)"
    inspect.signature(kernels_rs.Kernel.instance)
    assert callable(kernels_rs.Kernel)


def test_a_violation_of_a_stream_that_is_dropped_is_printed(monkeypatch):
    wrong = kernels_rs.compile(SAXPY.replace("if i < y.len() {", "if i < y.len() + 1 {"))
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    stream = kernels_rs.Stream("cpu")
    wrong(2.0, np.ones(5, np.float32), np.ones(5, np.float32), stream=stream)
    del stream
    assert [of.exc_type for of in raised] == [kernels_rs.Violation]


def test_numbers_of_every_float_type_are_passed(device, to):
    text = """
        #[kernel(block = 32, grid = 1)]
        pub fn set<T: Float>(a: T, x: &mut [T]) {
            if thread::x() < x.len() {
                x[thread::x()] = a;
            }
        }
    """
    store = kernels_rs.compile(text)
    dtypes = [np.float16, np.float32, np.float64]
    try:
        import ml_dtypes

        dtypes.append(ml_dtypes.bfloat16)
    except ImportError:
        pass
    for dtype in dtypes:
        for number in [2, 1.5, np.float32(-0.25)]:
            x = to(np.zeros(3, dtype))
            store(number, x)
            assert (host(x) == np.full(3, number, dtype)).all(), (dtype, number)


GENERIC = """
#[device]
const TWO: f32 = 2.0;

#[device]
#[derive(Clone, Copy)]
pub struct Affine {
    pub scale: f32,
    pub shift: f32,
}

#[device]
fn apply(by: Affine, x: f32) -> f32 {
    TWO * x.mul_add(by.scale, by.shift)
}

#[kernel(block = N, grid = y.len().div_ceil(N), instances(small: T = f32, N = 32; half: T = f16, N = 64))]
#[requires(x.len() == y.len())]
pub fn affine<T: Float, const N: usize>(by: Affine, x: &[T], y: &mut [T]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = T::from_f32(apply(by, x[i].to_f32()));
    }
}
"""


def test_instances_follow_from_the_arguments(device, to):
    affine = kernels_rs.compile(GENERIC)
    assert affine.generics == ["T", "N"] and affine.parameters == ["by", "x", "y"]
    x = np.linspace(-1, 1, 100)
    for dtype in [np.float32, np.float16]:
        given, y = to(x.astype(dtype)), to(np.zeros(100, dtype))
        affine((3.0, 0.5), given, y)
        np.testing.assert_allclose(host(y), 2 * (3 * x + 0.5), rtol=2e-3, atol=2e-3)
        affine((1.0, 0.0), given, y, N=128)
        np.testing.assert_allclose(host(y), 2 * x, rtol=2e-3, atol=2e-3)
    assert ".maxntid 128, 1, 1" in affine.instance(T="float16", N=128).ptx
    assert ".maxntid 64, 1, 1" in affine.instance(T="f16").ptx
    assert affine.instances == ["affine@small", "affine@half"]
    assert ".maxntid 32, 1, 1" in affine.instance("small").ptx
    with pytest.raises(ValueError, match="declares no instance `large`"):
        affine.instance("large").ptx
    with pytest.raises(ValueError, match="give T, N by keyword"):
        affine.ptx
    with pytest.raises(TypeError, match="generic parameter `N`"):
        affine.instance(N="many")


def test_the_launch_chooses_a_block(device, to):
    largest = kernels_rs.compile(
        """
        #[kernel(block = 32..=1024, grid = out.len())]
        #[requires(!out.is_empty())]
        pub fn largest(x: &[f32], out: &mut [f32]) {
            let mut best = f32::NEG_INFINITY;
            for i in grid::stride(x.len()) {
                best = best.max(x[i]);
            }
            let best = block::max(best);
            if thread::index() == 0 {
                out[block::x()] = best;
            }
        }
        """
    )
    x, out = np.random.default_rng(1).standard_normal(5000).astype(np.float32), to(np.zeros(3, np.float32))
    largest(to(x), out, block=96)
    assert host(out).max() == x.max()
    with pytest.raises(kernels_rs.LaunchError, match="block"):
        largest(to(x), out, block=2048)


def test_views_have_the_arrays_strides():
    copy = kernels_rs.compile(
        """
        #[kernel(block = (32, 8), grid = (y.cols().div_ceil(32), y.rows().div_ceil(8)))]
        #[requires(x.dim(0) == y.rows(), x.dim(1) == y.cols())]
        pub fn copy(x: Strided<f32, 2>, mut y: ViewMut<f32, 2>) {
            let (row, col) = (block::y() * 8 + thread::y(), block::x() * 32 + thread::x());
            if row < y.rows() && col < y.cols() {
                y[(row, col)] = x[(row, col)];
            }
        }
        """
    )
    x = np.arange(60 * 40, dtype=np.float32).reshape(60, 40)
    for given in [x, x.T, x[::2, 1:30:3], x[:1], x[:, :1], x[5:5]]:
        y = np.zeros(given.shape, np.float32)
        copy(given, y)
        np.testing.assert_array_equal(y, given)
    wide = np.zeros((60, 64), np.float32)
    copy(x, wide[:, 3:43])
    np.testing.assert_array_equal(wide[:, 3:43], x)
    assert wide[:, :3].sum() == 0 and wide[:, 43:].sum() == 0
    with pytest.raises(ValueError, match="none may be negative"):
        copy(x[::-1], np.zeros((60, 40), np.float32))
    with pytest.raises(ValueError, match="last stride of a `View` is 1"):
        copy(x, np.zeros((40, 60), np.float32).T)
    with pytest.raises(ValueError, match="takes a slice"):
        kernels_rs.compile(SAXPY)(1.0, x[:, ::2].T, np.zeros((20, 60), np.float32))


def test_a_kernel_shows_its_texts():
    saxpy = kernels_rs.compile(SAXPY)
    assert ".visible .entry saxpy(" in saxpy.ptx and ".target sm_61" in saxpy.ptx
    assert ".target sm_80" in kernels_rs.compile(SAXPY, target="sm_80").ptx
    assert "saxpy" in saxpy.ir and saxpy.ir != saxpy.optimized_ir
    assert saxpy.report().startswith("saxpy for sm_61\nblock "), saxpy.report()
    page = saxpy.inspect()
    assert "<title>saxpy" in page.html and "mul_add" in page.html
    assert page._repr_html_().startswith("<iframe srcdoc=")
    with pytest.raises(ValueError, match="sm_1"):
        kernels_rs.compile(SAXPY, target="sm_1")


def test_one_of_several_kernels_is_named():
    two = SAXPY + SAXPY.replace("fn saxpy", "fn other")
    assert kernels_rs.compile(two, "other").name == "other"
    with pytest.raises(kernels_rs.CompileError, match="2 kernels, `saxpy`, `other`: name one"):
        kernels_rs.compile(two)
    with pytest.raises(kernels_rs.CompileError, match="no `#\\[kernel\\]` function `third`"):
        kernels_rs.compile(two, "third")


def test_a_text_is_compiled_once_and_fast():
    start = time.perf_counter()
    for n in range(20):
        kernels_rs.compile(SAXPY.replace("256", str(32 + 32 * n)))
    print(f"{(time.perf_counter() - start) / 20 * 1e3:.2f} ms a kernel")
    for _ in range(1000):
        kernels_rs.compile(SAXPY)


def test_streams_keep_the_order_of_calls(device, to):
    saxpy = kernels_rs.compile(SAXPY)
    x, y = to(np.ones(1000, np.float32)), to(np.zeros(1000, np.float32))
    with kernels_rs.Stream(device) as stream:
        for _ in range(10):
            saxpy(1.0, x, y, stream=stream)
    assert (host(y) == 10).all()
    wrong = kernels_rs.compile(SAXPY.replace("if i < y.len() {", "if i <= y.len() {"))
    stream = kernels_rs.Stream(device)
    wrong(1.0, x, y, stream=stream)
    with pytest.raises(kernels_rs.Violation):
        stream.wait()
    stream.wait()
    other = kernels_rs.Stream(device)
    if device != "cpu":
        # A stream of other code, by its number.
        saxpy(1.0, x, y, stream=other.handle)
        other.wait()
    with pytest.raises(TypeError, match="expected a Stream"):
        saxpy(1.0, x, y, stream="main")


def test_numbers_have_the_range_of_their_type():
    store = kernels_rs.compile(
        """
        #[kernel(block = 32, grid = 1)]
        #[requires(y.len() == 4)]
        pub fn store(a: i8, b: u32, c: i64, d: bool, e: usize, y: &mut [i64]) {
            if thread::x() == 0 {
                y[0] = a as i64;
                y[1] = b as i64;
                y[2] = c;
                y[3] = if d { e as i64 } else { -1 };
            }
        }
        """
    )
    y = np.zeros(4, np.int64)
    store(np.int8(-128), 2**32 - 1, -(2**63), True, 7, y)
    assert y.tolist() == [-128, 2**32 - 1, -(2**63), 7]
    for wrong in [(128, 0, 0), (0, -1, 0), (0, 2**32, 0), (0, 0, 2**63)]:
        with pytest.raises(ValueError, match="is out of range"):
            store(*wrong, True, 0, y)
    with pytest.raises(TypeError, match="expected u32, given float"):
        store(0, 1.5, 0, True, 0, y)
