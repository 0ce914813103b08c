"""Devices of the tests: the CPU, and the first GPU if the driver has one (`cuda-on-cpu` is one)."""

import numpy as np
import pytest

import kernels_rs

DEVICES = kernels_rs.devices()


@pytest.fixture(params=["cpu", "cuda:0"])
def device(request):
    if request.param not in DEVICES:
        pytest.skip("no GPU, and no driver on the CPU (cuda-on-cpu)")
    return request.param


@pytest.fixture
def to(device):
    """Moves a NumPy array to the device; on the CPU it stays as it is."""
    if device == "cpu":
        return lambda array: array
    return lambda array: kernels_rs.array(np.ascontiguousarray(array), device)


def host(array):
    """Returns a result as a NumPy array."""
    return array if isinstance(array, np.ndarray) else kernels_rs.numpy(array)
