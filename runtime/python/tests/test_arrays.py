"""Arrays without copies, in both directions, and their lifetimes."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from conftest import host

import kernels_rs

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

DTYPES = ["float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


class ByDlpack:
    """An array that has the methods of DLPack alone."""

    def __init__(self, array, version=None):
        self.array, self.version = array, version

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, stream=None, **arguments):
        if self.version is None and "max_version" in arguments:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**arguments)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_arrays_are_read_in_place(dtype):
    x = np.zeros((3, 4, 5), dtype)
    for view in [x, x[1], x[:, ::2], x.T, x[..., 2:]]:
        for given in [view, ByDlpack(view), ByDlpack(view, 1)]:
            described = kernels_rs.describe(given)
            assert described["address"] == view.__array_interface__["data"][0]
            assert described["shape"] == view.shape and described["dtype"] == dtype
            assert described["strides"] == tuple(s // x.itemsize for s in view.strides)
            assert (described["device"], described["writable"]) == ("cpu", True)


def test_bfloat16_is_read_and_returned():
    if ml_dtypes is None:
        pytest.skip("ml_dtypes is not installed")
    x = np.arange(-4, 4).astype(ml_dtypes.bfloat16)
    assert kernels_rs.describe(x)["dtype"] == "bfloat16"
    y = kernels_rs.softmax(x)
    assert y.dtype == x.dtype and abs(y.astype(np.float32).sum() - 1) < 0.02
    copied = kernels_rs.numpy(kernels_rs.array(x))
    assert copied.dtype == x.dtype and (copied == x).all()
    with pytest.raises(TypeError, match="`out` has elements float16, expected bfloat16"):
        kernels_rs.silu(x, out=np.zeros(8, np.float16))


def test_a_launch_writes_in_place():
    double = kernels_rs.compile(
        """
        #[kernel(block = 64, grid = y.len().div_ceil(64))]
        pub fn double<T: Number>(y: &mut [T]) {
            let i = grid::index();
            if i < y.len() {
                y[i] = y[i] + y[i];
            }
        }
        """
    )
    for dtype in ["float32", "float16", "float64", "int32", "uint8"]:
        y = np.arange(100).astype(dtype)
        address = y.ctypes.data
        double(y)
        double(ByDlpack(y))
        assert y.ctypes.data == address
        np.testing.assert_array_equal(y, np.arange(100) * 4 % 256 if dtype == "uint8" else np.arange(100) * 4)


def test_arrays_are_exported_in_place(device):
    a = kernels_rs.array(np.arange(12, dtype=np.float32).reshape(3, 4), device)
    assert (a.shape, a.dtype, a.device, a.ndim, a.size, a.nbytes) == ((3, 4), "float32", device, 2, 12, 48)
    assert len(a) == 3 and repr(a) == f"Array(shape=[3, 4], dtype=float32, device='{device}')"
    for given in [a, ByDlpack(a), ByDlpack(a, 1)]:
        described = kernels_rs.describe(given)
        assert described["address"] == a.ptr and described["strides"] == (4, 1)
        assert described["device"] == device
    if device == "cpu":
        for array in [np.asarray(a), np.from_dlpack(a)]:
            assert array.ctypes.data == a.ptr
            np.testing.assert_array_equal(array, kernels_rs.numpy(a))
        assert not hasattr(a, "__cuda_array_interface__")
    else:
        interface = a.__cuda_array_interface__
        assert interface["data"] == (a.ptr, False) and interface["typestr"] == "<f4" and interface["shape"] == (3, 4)
        assert not hasattr(a, "__array_interface__")
        by_interface = type("Other", (), {"__cuda_array_interface__": interface})()
        assert kernels_rs.describe(by_interface)["address"] == a.ptr
    with pytest.raises(BufferError):
        a.__dlpack__(copy=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exported_arrays_have_their_element_type(device, dtype):
    x = np.arange(6).astype(dtype)
    a = kernels_rs.array(x, device)
    for given in [ByDlpack(a), ByDlpack(a, 1)]:
        assert kernels_rs.describe(given)["dtype"] == dtype
    if device == "cpu":
        for exported in [np.asarray(a), np.from_dlpack(a), np.from_dlpack(ByDlpack(a))]:
            assert exported.dtype == dtype
            np.testing.assert_array_equal(exported, x)
    else:
        assert np.dtype(a.__cuda_array_interface__["typestr"]) == dtype


def test_numpy_converts_arrays(device):
    a = kernels_rs.array(np.arange(3, dtype=np.float32), device)
    if device == "cpu":
        assert np.asarray(a, np.float64).tolist() == [0, 1, 2]
        assert a.__array__().ctypes.data == a.ptr and a.__array__(copy=True).ctypes.data != a.ptr
    else:
        with pytest.raises(TypeError, match="kernels_rs.numpy\\(array\\) copies it"):
            np.asarray(a)
        with pytest.raises(ValueError, match="`source` is on cuda:0: `kernels_rs.numpy` copies"):
            kernels_rs.array(a, "cpu")


def test_asarray_is_the_same_memory(device):
    a = kernels_rs.array(np.arange(6, dtype=np.int32), device)
    b = kernels_rs.asarray(ByDlpack(a, 1))
    assert b.ptr == a.ptr and kernels_rs.asarray(a) is a
    c = a.reshape(2, 3)
    assert c.ptr == a.ptr and c.shape == (2, 3)
    with pytest.raises(ValueError):
        a.reshape(4)
    if device == "cpu":
        frozen = np.ones(3)
        frozen.flags.writeable = False
        assert not kernels_rs.describe(kernels_rs.asarray(frozen))["writable"]


def test_read_only_arrays_stay_read_only():
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    a = kernels_rs.asarray(frozen)
    assert not np.asarray(a).flags.writeable
    for given in [a, ByDlpack(a, 1), a.reshape(3, 1)]:
        assert not kernels_rs.describe(given)["writable"]
    with pytest.raises(BufferError, match="read-only"):
        a.__dlpack__()
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert not np.from_dlpack(a).flags.writeable


def test_memory_lives_as_long_as_its_last_user():
    class Watched(np.ndarray):
        pass

    x = np.ones(1000, np.float32).view(Watched)
    alive = weakref.ref(x)
    wrapped = kernels_rs.asarray(x)
    again = np.from_dlpack(wrapped)
    del x, wrapped
    gc.collect()
    assert alive() is not None and again.sum() == 1000
    del again
    gc.collect()
    assert alive() is None


def ended(script):
    """Runs a script in another process, and returns what it has printed if its exit code is 0."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "x = np.from_dlpack(kernels_rs.zeros(3))",
        "x = kernels_rs.zeros(3).__dlpack__()",
        "x = kernels_rs.zeros(3).__dlpack__(max_version=(1, 0))",
        "x = kernels_rs.asarray(type('D', (), {n: getattr(a, n) for n in ['__dlpack__', '__dlpack_device__']})())",
    ],
)
def test_a_process_ends_while_other_libraries_hold_arrays(line):
    script = "import numpy as np, kernels_rs\na = np.zeros(3, np.float32)\n" + line + "\nkept = [x]\nprint('end')"
    assert ended(script) == "end\n"


def test_capsules_are_taken_once():
    a = kernels_rs.zeros(4)
    for arguments in [{}, {"max_version": (1, 0)}]:
        a.__dlpack__(**arguments)
        capsule = a.__dlpack__(**arguments)

        class Once:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **arguments):
                return capsule

        assert kernels_rs.describe(Once())["address"] == a.ptr
        with pytest.raises(TypeError, match="already used"):
            kernels_rs.describe(Once())


def test_calls_do_not_leak():
    saxpy = kernels_rs.compile(
        """
        #[kernel(block = 32, grid = 1)]
        pub fn first(x: &[f32], y: &mut [f32]) {
            if thread::x() == 0 {
                y[0] = x[0];
            }
        }
        """
    )
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    try:
        resident()
    except OSError:
        pytest.skip("no /proc")
    for _ in range(300):
        saxpy(ByDlpack(x, 1), y)
    before = resident()
    for _ in range(3000):
        saxpy(ByDlpack(x, 1), y)
    assert resident() - before < 256, "3000 calls took more than 1 MB"


def test_threads_run_while_a_launch_does():
    """Checks that a launch releases the GIL: another thread counts during the launch."""
    slow = kernels_rs.compile(
        """
        #[kernel(block = 32, grid = 1)]
        pub fn slow(y: &mut [u32]) {
            let mut n = 0u32;
            for i in 0..100000 {
                n = n + (i as u32);
            }
            y[thread::x()] = n;
        }
        """
    )
    y, counted, done = np.zeros(32, np.uint32), [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    # The system may start the thread late.
    during = 0
    for _ in range(100):
        before = counted[0]
        slow(y)
        during += counted[0] - before
        if during:
            break
    done.set()
    thread.join()
    assert y[0] == sum(range(100000)) % 2**32 and during > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_computes_while_threads_of_its_parent_are_in_calls():
    script = """
import os, threading, time
import numpy as np, kernels_rs
text = "#[kernel(block = 32, grid = 64)] pub fn f(x: &mut [f32]) { let mut a = 0.0;"
text += "for i in 0..300 { a += i as f32; } if grid::index() == 0 { x[0] = a; } }"
slow, quick = kernels_rs.compile(text), kernels_rs.compile(text.replace("300", "3"))
calls = [0, 0]

def run(n):
    x = np.zeros(1, np.float32)
    while True:
        slow(x)
        calls[n] += 1

for n in range(2):
    threading.Thread(target=run, args=(n,), daemon=True).start()
while not all(calls):
    time.sleep(0.001)
for _ in range(6):
    child = os.fork()
    if child == 0:
        x = np.zeros(1, np.float32)
        quick(x)
        os._exit(0 if x[0] == 3 else 1)
    ended = (0, 0)
    for _ in range(6000):
        ended = os.waitpid(child, os.WNOHANG)
        if ended[0]:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0), ended
print("end", flush=True)
os._exit(0)
"""
    assert ended(script) == "end\n"


def test_what_is_no_array_is_rejected():
    with pytest.raises(TypeError, match="complex"):
        kernels_rs.describe(np.zeros(3, np.complex64))
    with pytest.raises(TypeError, match="is not an array"):
        kernels_rs.describe([1.0, 2.0])
    masked = np.ma.array([1, 2, 100], mask=[0, 0, 1], dtype=np.float32)
    for call in [kernels_rs.describe, kernels_rs.sum]:
        with pytest.raises(TypeError, match="arrays with a mask"):
            call(masked)
    assert kernels_rs.sum(np.ma.array([1, 2, 100], dtype=np.float32)) == 103
    for dtype in [">f4", ">i8", ">f2"]:
        swapped = np.ones(3, dtype)
        for call in [kernels_rs.describe, kernels_rs.array, kernels_rs.asarray, kernels_rs.sum]:
            with pytest.raises(TypeError, match="other order"):
                call(swapped)
        with pytest.raises(TypeError, match="other order"):
            kernels_rs.silu(np.ones(3, np.float32), out=swapped)
        with pytest.raises(TypeError, match="other order"):
            kernels_rs.zeros(3, np.dtype(dtype))
    unaligned = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float32)
    with pytest.raises(ValueError, match="not aligned"):
        kernels_rs.describe(unaligned)
    with pytest.raises(TypeError, match="no element type `complex64`"):
        kernels_rs.zeros(3, "complex64")
    with pytest.raises(ValueError, match="no device `tpu`"):
        kernels_rs.zeros(3, device="tpu")
    with pytest.raises(kernels_rs.DeviceError):
        kernels_rs.zeros(3, device="cuda:99")


def test_shapes_and_names_of_types_are_those_of_numpy():
    a = kernels_rs.zeros((2, 6))
    for given, expected in [((-1,), (12,)), (((3, 4),), (3, 4)), (([2, -1, 3],), (2, 2, 3)), ((4, 3), (4, 3)), ((12,), (12,))]:
        assert a.reshape(*given).shape == expected
    for given in [(-1, -1), (5, -1), (-2, 6), ((3, 5),), (0, -1)]:
        with pytest.raises(ValueError, match="12 elements have no shape"):
            a.reshape(*given)
    assert kernels_rs.zeros(()).reshape(1, 1).shape == (1, 1) and kernels_rs.zeros(1).reshape().shape == ()
    assert kernels_rs.zeros((0, 3)).reshape(3, -1).shape == (3, 0)
    for shape in [-1, (2, -1)]:
        with pytest.raises(ValueError, match="no extent of a shape is negative"):
            kernels_rs.zeros(shape)
    names = {"half": "float16", "double": "float64", "f4": "float32", "i8": "int64", "u1": "uint8", float: "float64", int: "int64"}
    for given, expected in names.items():
        assert kernels_rs.zeros(3, given).dtype == expected
    for given in [bool, "f3", "b1", "bool"]:
        with pytest.raises(TypeError, match="no element type"):
            kernels_rs.zeros(3, given)


def test_arrays_of_one_element_are_numbers(device):
    a = kernels_rs.array(np.full((), 2.5, np.float32), device)
    assert (a.item(), float(a), int(a), bool(a)) == (2.5, 2.5, 2, True)
    assert not kernels_rs.zeros((), device=device) and kernels_rs.zeros(2, device=device)
    assert not kernels_rs.zeros(0, device=device)
    with pytest.raises(ValueError):
        float(kernels_rs.zeros(2, device=device))


def test_empty_arrays_are_accepted(device):
    a = kernels_rs.zeros((0, 3), device=device)
    assert kernels_rs.numpy(a).shape == (0, 3)
    assert host(kernels_rs.softmax(a)).shape == (0, 3)


def test_jax_arrays_are_read_and_not_written():
    jax = pytest.importorskip("jax")
    # With a GPU, JAX would place the array there.
    x = jax.device_put(jax.numpy.linspace(-1, 1, 12).reshape(3, 4), jax.devices("cpu")[0])
    assert kernels_rs.describe(x)["writable"] is False
    y = kernels_rs.softmax(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_allclose(np.asarray(y), np.asarray(jax.nn.softmax(x)), rtol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        kernels_rs.softmax(np.asarray(x), out=x)
    for call in [jax.jit(kernels_rs.softmax), jax.grad(lambda x: kernels_rs.sum(x))]:
        with pytest.raises(TypeError, match="cannot be traced by jax.jit or jax.grad"):
            call(x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_arrays_are_copied_and_pickled(device, dtype):
    a = kernels_rs.zeros((2, 3), dtype, device)
    for again in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert (again.shape, again.dtype, again.device) == (a.shape, a.dtype, a.device)
        assert again.tobytes() == a.tobytes() and again.ptr != a.ptr
    empty = copy.copy(kernels_rs.zeros((0, 3), dtype, device))
    assert empty.shape == (0, 3)


def test_quantized_weights_and_masks_are_pickled(to):
    layer = kernels_rs.QuantizedLinear(to(np.eye(32, dtype=np.float32)))
    x = to(np.ones((2, 32), np.float32))
    expected = host(layer(x))
    for again in (copy.copy(layer), copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(host(again(x)), expected)
    mask = pickle.loads(pickle.dumps(kernels_rs.BlockMask([[[True]]], 3, 5)))
    assert (mask.seen, mask.queries, mask.keys, mask.block) == ([[[True]]], 3, 5, 64)
