"""Runs small programs of tinygrad from PyPI on cuda-on-cpu, and prints the results by program.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/tinygrad.py target/release/cuda-on-cpu [PROGRAM…]

Each program compares its results with NumPy. The package has no tests. Where PyPI is out of reach,
the script says so and ends with success.
"""
import os
import sys

# This script has the name of the package, and its folder is first in the path.
sys.path = [path for path in sys.path if os.path.abspath(path or '.') != os.path.dirname(os.path.abspath(__file__))]
PACKAGES = ['tinygrad', 'nvidia-cuda-nvrtc-cu12', 'numpy']


def arrays(*shapes):
    import numpy as np
    from tinygrad import Device, Tensor
    assert Device.DEFAULT == 'CUDA', Device.DEFAULT
    random = np.random.default_rng(1)
    given = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    return given, [Tensor(a) for a in given]


def close(found, expected, tolerance=1e-4):
    import numpy as np
    found = found.numpy()
    assert found.shape == expected.shape and np.allclose(found, expected, tolerance, tolerance), (found, expected)


def elementwise():
    import numpy as np
    (a, b), (x, y) = arrays((45, 65), (45, 65))
    close(x * y + x.exp() - y.relu(), a * b + np.exp(a) - np.maximum(b, 0))
    close((x > y).where(x, y), np.maximum(a, b))
    close(x.abs().sqrt().sin(), np.sin(np.sqrt(np.abs(a))))


def reductions():
    (a,), (x,) = arrays((33, 17, 5))
    for axis in (None, 0, 1, 2):
        close(x.sum(axis), a.sum(axis))
        close(x.max(axis), a.max(axis))
    close(x.mean((0, 2)), a.mean((0, 2)))


def products():
    (a, b, c), (x, y, z) = arrays((31, 40), (40, 29), (3, 40, 29))
    close(x @ y, a @ b)
    close(x @ z, a @ c)


def convolution():
    import numpy as np
    (a, w), (x, k) = arrays((2, 3, 11, 9), (4, 3, 3, 3))
    expected = np.zeros((2, 4, 9, 7), np.float32)
    for i in range(9):
        for j in range(7):
            expected[:, :, i, j] = np.einsum('nchw,ochw->no', a[:, :, i:i + 3, j:j + 3], w)
    close(x.conv2d(k), expected)


def softmax_and_gradient():
    import numpy as np
    (a, w), (x, y) = arrays((8, 20), (20, 6))
    x.requires_grad = True
    (x @ y).relu().sum().backward()
    close(x.grad, ((a @ w) > 0).astype(np.float32) @ w.T)
    power = np.exp(a - a.max(1, keepdims=True))
    close(x.detach().softmax(), power / power.sum(1, keepdims=True))


def movement():
    import numpy as np
    (a,), (x,) = arrays((6, 7, 8))
    close(x.permute(2, 0, 1).reshape(8, 42)[1:7:2], a.transpose(2, 0, 1).reshape(8, 42)[1:7:2])
    close(x.pad(((1, 2), (0, 0), (3, 0))), np.pad(a, ((1, 2), (0, 0), (3, 0))))
    close(x.flip(1).cat(x, dim=0), np.concatenate([a[:, ::-1], a]))


def compiled_function():
    from tinygrad import Tensor, TinyJit
    (a, b), _ = arrays((16, 16), (16, 16))

    @TinyJit
    def step(x, y):
        return (x @ y + 1).realize()
    for n in range(5):
        close(step(Tensor(a * n).realize(), Tensor(b).realize()), a * n @ b + 1)


if __name__ == '__main__':
    if sys.argv[1] == '-':
        globals()[sys.argv[2]]()
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from client import programs
        programs(__file__, PACKAGES, CUDA='1', DEV='CUDA', CACHELEVEL='0')
