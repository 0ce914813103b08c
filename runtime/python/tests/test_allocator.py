"""The allocator for PyTorch, called as PyTorch calls it: by its two C functions."""

import ctypes
import re

import pytest

import kernels_rs
from kernels_rs import _native

pytestmark = pytest.mark.skipif("cuda:0" not in kernels_rs.devices(), reason="needs a GPU")


@pytest.fixture
def functions():
    library = ctypes.CDLL(_native.__file__)
    allocate, free = library.kernels_rs_allocate, library.kernels_rs_free
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    free.restype = None
    free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    return allocate, free


class Memory:
    """Memory as an array of float32."""

    def __init__(self, address, n):
        self.__cuda_array_interface__ = dict(shape=(n,), typestr="<f4", data=(address, False), strides=None, version=3)


FILL = """
#[kernel(block = 256, grid = x.len().div_ceil(256))]
pub fn fill(a: f32, x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = a;
    }
}
"""


def test_blocks_are_reused_in_the_order_of_a_stream(functions):
    allocate, free = functions
    own, other = (kernels_rs.Stream("cuda") for _ in range(2))
    first = allocate(4000, 0, own.handle)
    assert first and first % 256 == 0
    free(first, 4000, 0, own.handle)
    assert allocate(4001, 0, other.handle) not in (None, first)
    assert allocate(4001, 0, own.handle) == first
    free(first, 4001, 0, own.handle)
    assert allocate(1 << 20, 0, own.handle) not in (None, first)


def test_blocks_do_not_overlap_and_are_memory_of_the_device(functions):
    allocate, free = functions
    fill = kernels_rs.compile(FILL)
    blocks = [(allocate(4 * n, 0, None), n) for n in (1, 3, 1000, 130, 70_000)]
    for i, (address, n) in enumerate(blocks):
        fill(float(i), Memory(address, n))
    for i, (address, n) in enumerate(blocks):
        found = kernels_rs.numpy(kernels_rs.asarray(Memory(address, n)))
        assert (found == i).all(), (i, n)
        free(address, 4 * n, 0, None)


def test_nothing_and_too_much_are_not_allocated(functions, capfd):
    allocate, free = functions
    assert allocate(0, 0, None) is None
    free(None, 0, 0, None)
    free(12345, 8, 0, None)
    assert allocate(1 << 50, 0, None) is None
    assert "allocating 1125899906842624 bytes of cuda:0 for PyTorch failed" in capfd.readouterr().err


def test_freed_blocks_return_to_the_pool_when_memory_is_short(functions, capfd):
    allocate, free = functions
    addresses = [allocate(64 << 20, 0, None) for _ in range(3)]
    assert None not in addresses
    for address in addresses:
        free(address, 64 << 20, 0, None)
    # The request fails after the freed blocks are back.
    assert allocate(1 << 50, 0, None) is None
    used = re.search(r"the pool: (\d+) bytes in use \(at most (\d+)\)", capfd.readouterr().err)
    now, most = map(int, used.groups())
    assert now < 64 << 20 and most >= 3 * 64 << 20
