"""Runs small programs of cuda.core from PyPI on cuda-on-cpu, and prints the results by program.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/cuda_core.py target/release/cuda-on-cpu [PROGRAM…]

Each program compares its results with NumPy. Where PyPI is out of reach, the script says so and ends
with success.
"""
import ctypes
import sys

PACKAGES = ['cuda-core', 'cuda-bindings==12.9.*', 'nvidia-cuda-nvrtc-cu12', 'nvidia-nvjitlink-cu12',
            'nvidia-cuda-runtime-cu12', 'numpy']

SAXPY = '''template<typename T> __global__ void saxpy(T a, const T *x, const T *y, T *o, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) o[i] = a * x[i] + y[i];
}'''


class Session:
    """A device with a stream, and copies from and to NumPy."""

    def __init__(self):
        from cuda.core import Device
        self.device = Device()
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.arch = 'sm_' + ''.join(map(str, self.device.compute_capability))

    def compile(self, code, kind='cubin', **options):
        from cuda.core import Program, ProgramOptions
        names = options.pop('names', ())
        program = Program(code, code_type='c++', options=ProgramOptions(arch=self.arch, **options))
        return program.compile(kind, name_expressions=names)

    def upload(self, array):
        from cuda.bindings import driver
        buffer = self.device.allocate(array.nbytes, stream=self.stream)
        self.stream.sync()
        assert driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes)[0] == 0
        return buffer

    def download(self, buffer, array):
        from cuda.bindings import driver
        self.stream.sync()
        assert driver.cuMemcpyDtoH(array.ctypes.data, int(buffer.handle), array.nbytes)[0] == 0
        return array

    def launch(self, kernel, grid, block, *args):
        from cuda.core import LaunchConfig, launch
        launch(self.stream, LaunchConfig(grid=grid, block=block), kernel, *args)


def saxpy(kind):
    import numpy as np
    s = Session()
    for name, dtype, scalar in (('float', np.float32, ctypes.c_float), ('double', np.float64, ctypes.c_double)):
        symbol = f'saxpy<{name}>'
        kernel = s.compile(SAXPY, kind, std='c++17', names=(symbol,)).get_kernel(symbol)
        x, y = np.random.default_rng(1).random((2, 1000)).astype(dtype)
        buffers = [s.upload(a) for a in (x, y, np.zeros_like(x))]
        s.launch(kernel, 8, 128, scalar(2), *buffers, ctypes.c_size_t(1000))
        assert np.allclose(s.download(buffers[2], np.zeros_like(x)), 2 * x + y)


def saxpy_as_cubin():
    saxpy('cubin')


def saxpy_as_ptx():
    saxpy('ptx')


def link(kind, **options):
    import numpy as np
    from cuda.core import Linker, LinkerOptions
    s = Session()
    codes = ['extern "C" __device__ int successor(int x) { return x + 1; }',
             'extern "C" __device__ int successor(int);'
             'extern "C" __global__ void k(int *o) { o[threadIdx.x] = successor(threadIdx.x); }']
    objects = [s.compile(code, kind, relocatable_device_code=True, **options) for code in codes]
    linker = Linker(*objects, options=LinkerOptions(arch=s.arch, link_time_optimization=kind == 'ltoir' or None))
    buffer = s.upload(np.zeros(32, np.int32))
    s.launch(linker.link('cubin').get_kernel('k'), 1, 32, buffer)
    assert (s.download(buffer, np.zeros(32, np.int32)) == np.arange(32) + 1).all()


def link_of_ptx():
    link('ptx')


def link_of_cubins():
    link('cubin')


def link_time_optimization():
    link('ltoir', link_time_optimization=True)


def events_and_streams():
    import numpy as np
    s = Session()
    kernel = s.compile('extern "C" __global__ void add(int *o, int n) { atomicAdd(o, n); }').get_kernel('add')
    buffer = s.upload(np.zeros(1, np.int32))
    event = s.stream.record()
    other = s.device.create_stream()
    other.wait(event)
    for n in range(10):
        s.launch(kernel, 2, 64, buffer, ctypes.c_int(n))
    event = s.stream.record()
    event.sync()
    assert event.is_done
    assert s.download(buffer, np.zeros(1, np.int32))[0] == 128 * 45


def errors_of_compilation():
    s = Session()
    try:
        s.compile('__global__ void k() { undeclared = 1; }')
    except Exception as error:
        assert 'undeclared' in str(error), error
        return
    raise AssertionError('the compilation succeeded')


if __name__ == '__main__':
    if sys.argv[1] == '-':
        globals()[sys.argv[2]]()
    else:
        from client import programs
        programs(__file__, PACKAGES)
