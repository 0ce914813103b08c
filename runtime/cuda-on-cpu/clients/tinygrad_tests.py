"""Runs tinygrad's own tests on cuda-on-cpu, and prints the results by module.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/tinygrad_tests.py target/release/cuda-on-cpu [MODULE…]

The tests are in the source of tinygrad on PyPI, of which 0.12.0 is the last with more than one
module. Each module of `test` runs in a process, without the tests that tinygrad_tests.txt omits.
Without a module, all run. Modules that compare with PyTorch need 5 GB of packages. Where PyPI is
out of reach, the script says so and ends with success.

The source has no `test.helpers` and no `test.unit`, which the tests import: `helpers` and `dtypes`
below are in their place. A test that calls `extra` or `examples`, which the source lacks too, is
skipped. So is a test that computes on tinygrad's device for the CPU too, unless `clang` is in `PATH`.

`CUDA_PTX=1` in the environment selects tinygrad's own PTX in place of NVRTC's.
"""
import importlib.abc
import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
import tarfile
import types

# PyPI's sum of the source of this version: other tests would not fit the list.
SOURCE = 'tinygrad==0.12.0 --hash=sha256:299cd53d9452b8689b36c7026c866b73d1e4a862ec53a8ea5bc2a412358c1bbf'
FOLDER = os.path.dirname(os.path.abspath(__file__))
# A script in this folder has the name of the package.
sys.path = [path for path in sys.path if os.path.abspath(path or '.') != FOLDER]
PACKAGES = ['setuptools>=77', 'wheel', 'numpy', 'pytest', 'hypothesis', 'nvidia-cuda-nvrtc-cu12',
            'nvidia-cuda-runtime-cu12', 'nvidia-cuda-nvcc-cu12', 'nvidia-cuda-cccl-cu12']
# PyTorch computes on the CPU. An import of PyTorch needs its packages for CUDA all the same.
TORCH = ['numpy', 'pytest', 'hypothesis', 'torch==2.6.0']
MODULE_SECONDS = 1800
# `test_multitensor` has the most: CUDA:0 to CUDA:5.
DEVICES = '6'


def source(python):
    """Returns the folder of tinygrad's source; `None` if PyPI is out of reach."""
    folder = python.parents[1] / 'source'
    root = next(iter(folder.glob('tinygrad-*/READY')), None)
    if root is not None:
        return root.parent
    folder.mkdir(exist_ok=True)
    (folder / 'requirements.txt').write_text(f'{SOURCE}\n')
    download = [python, '-m', 'pip', 'download', '-q', '--no-deps', '--no-binary', ':all:', '--no-build-isolation',
                '-d', folder, '--require-hashes', '-r', folder / 'requirements.txt']
    if subprocess.run(download).returncode != 0:
        return None
    archive = next(folder.glob('tinygrad-*.tar.gz'))
    with tarfile.open(archive) as files:
        files.extractall(folder, filter='data')
    root = folder / archive.name.removesuffix('.tar.gz')
    # tinygrad names one folder of headers to NVRTC.
    for headers in sorted(python.parents[1].glob('lib/python*/site-packages/nvidia/*/include')):
        shutil.copytree(headers, root / 'include', dirs_exist_ok=True)
    (root / 'READY').touch()
    return root


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An importer of folders of tinygrad's repository that its source on PyPI lacks.

    A call of anything in them skips the test.
    """

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('extra', 'examples'):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        import pytest
        folder = spec.name.partition('.')[0]

        class Lacking(types.ModuleType):
            def __getattr__(self, name):
                if name.startswith('__'):
                    raise AttributeError(name)
                return lambda *_, **__: pytest.skip(f'needs the folder `{folder}` of the repository of tinygrad')
        return Lacking(spec.name)

    def exec_module(self, module):
        pass


def helpers():
    """Returns the functions of `test.helpers`."""
    import unittest

    import numpy as np
    from tinygrad import Device, dtypes
    from tinygrad.codegen import full_rewrite_to_sink, line_rewrite, linearize, pm_linearize_cleanups
    from tinygrad.dtype import _to_np_dtype, truncate

    def assert_jit_cache_len(function, count):
        kernels = function.jit_cache
        if kernels and hasattr(kernels[0].prg, 'jit_cache'):
            # One graph has all kernels.
            assert len(kernels) == 1, kernels
            kernels = kernels[0].prg.jit_cache
        assert len(kernels) == count, (len(kernels), count)

    def get_uops(sink, renderer=None):
        return line_rewrite(linearize(full_rewrite_to_sink(sink, renderer)), pm_linearize_cleanups)

    def rand_for_dtype(dtype, size):
        if dtype == dtypes.bool:
            return np.random.choice([True, False], size)
        if dtypes.is_int(dtype):
            low = 0 if dtypes.is_unsigned(dtype) else -100
            return np.random.randint(low, 100, size, dtype=_to_np_dtype(dtype))
        values = np.random.uniform(-10, 10, size)
        # NumPy lacks some of the types: their values in a wider one are exact.
        return np.array([truncate[dtype](float(value)) for value in values], _to_np_dtype(dtype))

    return {'REAL_DEV': Device.DEFAULT, 'slow': lambda test: test, 'needs_second_gpu': lambda test: test,
            'not_support_multi_device': lambda: False, 'assert_jit_cache_len': assert_jit_cache_len,
            'get_uops': get_uops, 'rand_for_dtype': rand_for_dtype}


def dtypes():
    """Returns the names of `test.unit.test_dtype_spec`."""
    import numpy as np
    from tinygrad import dtypes as known
    from tinygrad.device import is_dtype_supported
    from tinygrad.dtype import DTYPES_DICT
    # An operation rounds to 2 or 3 bits after the first one, so to half of that step.
    tolerances = {known.half: 1e-3, known.bfloat16: 1e-2, known.fp8e4m3: 2**-4, known.fp8e5m2: 2**-3}
    supported = [dtype for dtype in DTYPES_DICT.values() if is_dtype_supported(dtype)]

    def assert_equal(tensor, dtype, expected):
        assert tensor.dtype == dtype, (tensor.dtype, dtype)
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerances.get(dtype, 1e-7))

    # The largest values of the types of 8 bits: specification of the Open Compute Project.
    return {'_assert_eq': assert_equal, 'core_dtypes': list(DTYPES_DICT.values()), 'FP8E4M3_MAX': 448.0,
            'FP8E5M2_MAX': 57344.0, 'dtype_ints': [dtype for dtype in supported if known.is_int(dtype)],
            'dtype_floats': [dtype for dtype in supported if known.is_float(dtype)]}


def test(module, path, *omitted):
    """Runs the tests of a module in this process, and writes the results to a file."""
    import pytest
    sys.path.append(FOLDER)
    from client import Results
    sys.path.remove(FOLDER)
    # tinygrad keeps compiled kernels for the next program.
    os.environ['CACHEDB'] = os.path.join(os.path.dirname(path), 'cache.db')
    tests = os.path.join(os.environ['PYTHONPATH'], 'test')
    sys.meta_path.append(Absent())
    if shutil.which('clang') is None:
        from tinygrad.runtime.support.compiler_cpu import ClangJITCompiler
        ClangJITCompiler.compile = lambda *_: pytest.skip("needs clang, for tinygrad's device of the CPU")
    # The standard library has a package `test` too.
    for name, names in (('test', {}), ('test.helpers', helpers()), ('test.unit', {}),
                        ('test.unit.test_dtype_spec', dtypes())):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(names)
    sys.modules['test'].__path__ = [tests]
    sys.modules['test.unit'].__path__ = []
    arguments = ['-q', '-p', 'no:cacheprovider', os.path.join(tests, f'{module}.py')]
    return pytest.main(arguments, plugins=[Results(path, omitted)])


def main():
    from client import driver, environment, library, listed, modules, omitted
    command, *given = sys.argv[1:]
    given = given or listed(__file__)
    python = environment('tinygrad_tests', PACKAGES)
    root = python and source(python)
    if root is None:
        print('PyPI is out of reach: no test was run')
        return 0
    compared = [name for name in given
                if re.search(r'^\s*import torch$', (root / 'test' / f'{name}.py').read_text(), re.MULTILINE)]
    compiler = next(python.parents[1].glob('lib/python*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.*'))
    # PyTorch has an older NVRTC.
    libraries = library(python)
    if compared:
        python = environment('tinygrad_tests_torch', TORCH)
        if python is None:
            print(f"PyPI has no {TORCH[-1]} for this Python: {', '.join(compared)} cannot run")
            return 1
    # This version does not search LD_LIBRARY_PATH.
    link, library_file = root / 'libcuda.so.1', driver(command) / 'libcuda.so.1'
    if link.resolve() != library_file.resolve():
        link.unlink(missing_ok=True)
        link.symlink_to(library_file)
    # In CI, tinygrad leaves out types.
    variables = {'CUDA': '1', 'CI': '', 'CUDA_PATH': str(root), 'NVRTC_PATH': str(compiler), 'PYTHONPATH': str(root),
                 'CUDA_ON_CPU_DEVICES': DEVICES, 'LD_LIBRARY_PATH': libraries}
    return modules(__file__, command, python, given, MODULE_SECONDS, omitted(__file__), **variables)


if __name__ == '__main__':
    if sys.argv[1] == '-':
        sys.exit(test(*sys.argv[2:]))
    sys.path.insert(0, FOLDER)
    sys.exit(main())
