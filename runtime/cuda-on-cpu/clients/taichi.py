"""Runs small programs of Taichi from PyPI on cuda-on-cpu, and prints the results by program.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/taichi.py target/release/cuda-on-cpu [PROGRAM…]

Each program compares its results with NumPy. Where PyPI is out of reach, the script says so and ends
with success.
"""
import os
import sys

# This script has the name of the package, and its folder is first in the path.
sys.path = [path for path in sys.path if os.path.abspath(path or '.') != os.path.dirname(os.path.abspath(__file__))]
PACKAGES = ['taichi', 'numpy']


def start():
    import taichi as ti
    ti.init(arch=ti.cuda, offline_cache=False, log_level=ti.ERROR)
    assert ti.cfg.arch == ti.cuda
    return ti


def fields():
    import numpy as np
    ti = start()
    x, v = ti.field(ti.f32, shape=(40, 30)), ti.Vector.field(3, ti.f32, shape=50)

    @ti.kernel
    def fill():
        for i, j in x:
            x[i, j] = i * 100 + j
        for i in v:
            v[i] = ti.Vector([i, 2 * i, 3 * i])
    fill()
    i, j = np.indices((40, 30))
    assert (x.to_numpy() == i * 100 + j).all()
    assert (v.to_numpy() == np.outer(np.arange(50), [1, 2, 3])).all()


def reductions():
    import numpy as np
    ti = start()
    data = np.random.default_rng(1).random(1000).astype(np.float32)
    x = ti.field(ti.f32, shape=1000)
    x.from_numpy(data)

    @ti.kernel
    def total() -> ti.f32:
        result = 0.0
        for i in x:
            result += x[i]
        return result

    @ti.kernel
    def largest() -> ti.f32:
        result = -1.0
        for i in x:
            ti.atomic_max(result, x[i])
        return result
    assert abs(total() - data.sum(dtype=np.float64)) < 1e-2 and largest() == data.max()


def arrays():
    import numpy as np
    ti = start()

    @ti.kernel
    def product(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
        for i, j in c:
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    a, b = np.random.default_rng(1).random((2, 20, 20)).astype(np.float32)
    c = np.zeros((20, 20), np.float32)
    product(a, b, c)
    assert np.allclose(c, a @ b)


def functions_of_mathematics():
    import numpy as np
    ti = start()
    x, y = ti.field(ti.f64, shape=100), ti.field(ti.f64, shape=100)
    x.from_numpy(np.linspace(0.1, 3, 100))

    @ti.kernel
    def compute():
        for i in x:
            y[i] = ti.sin(x[i]) + ti.exp(-x[i]) + ti.sqrt(x[i]) + ti.log(x[i]) + ti.atan2(x[i], 2.0)
    compute()
    n = x.to_numpy()
    assert np.allclose(y.to_numpy(), np.sin(n) + np.exp(-n) + np.sqrt(n) + np.log(n) + np.arctan2(n, 2))


def sparse_fields():
    ti = start()
    x = ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 16)
    block.dense(ti.i, 8).place(x)

    @ti.kernel
    def activate():
        for i in range(4):
            x[i * 32] = i + 1

    @ti.kernel
    def total() -> ti.i32:
        result = 0
        for i in x:
            result += x[i] + 100
        return result
    activate()
    assert total() == 1 + 2 + 3 + 4 + 4 * 8 * 100


def gradients():
    import numpy as np
    ti = start()
    x, loss = ti.field(ti.f32, shape=10, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)
    x.from_numpy(np.arange(10, dtype=np.float32))

    @ti.kernel
    def compute():
        for i in x:
            loss[None] += x[i] ** 2
    with ti.ad.Tape(loss):
        compute()
    assert np.allclose(x.grad.to_numpy(), 2 * np.arange(10))


if __name__ == '__main__':
    if sys.argv[1] == '-':
        globals()[sys.argv[2]]()
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from client import programs
        programs(__file__, PACKAGES)
