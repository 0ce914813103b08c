"""Runs PyCUDA's own tests on cuda-on-cpu, and prints the results by module.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/pycuda.py target/release/cuda-on-cpu [MODULE…]

PyPI has the source of PyCUDA. The script compiles it with a C++ compiler once, which takes minutes,
and links it to the driver of cuda-on-cpu. PyCUDA runs `nvcc`, for which `--compilers=on` has a
stand-in. Where PyPI is out of reach, the script says so and ends with success.
"""
import os
import subprocess
import sys
import tarfile

# This script has the name of the package, and its folder is first in the path.
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path = [path for path in sys.path if os.path.abspath(path or '.') != FOLDER]
PACKAGES = ['setuptools', 'wheel', 'numpy', 'pytest', 'pytools', 'mako', 'platformdirs', 'nvidia-cuda-runtime-cu12',
            'nvidia-cuda-nvcc-cu12', 'nvidia-cuda-nvrtc-cu12', 'nvidia-cuda-profiler-api-cu12',
            'nvidia-cuda-cccl-cu12', 'nvidia-curand-cu12']
MODULE_SECONDS = 1800


def curand(python):
    """Returns the folder of the library CURAND, without which PyCUDA's `curandom` cannot be imported."""
    return next(python.parents[1].glob('lib/python*/site-packages/nvidia/curand/lib'))


def build(command, python):
    """Returns the folder of PyCUDA's source with its compiled modules; `None` if PyPI is out of reach."""
    from client import driver
    folder = python.parents[1] / 'source'
    root = next(iter(folder.glob('pycuda-*/READY')), None)
    if root is not None:
        return root.parent
    download = [python, '-m', 'pip', 'download', '-q', '--no-deps', '--no-binary', ':all:', '--no-build-isolation',
                '-d', folder, 'pycuda']
    if subprocess.run(download).returncode != 0:
        return None
    archive = next(folder.glob('pycuda-*.tar.gz'))
    with tarfile.open(archive) as files:
        files.extractall(folder, filter='data')
    root = folder / archive.name.removesuffix('.tar.gz')
    includes = ','.join(str(path) for path in python.parents[1].glob('lib/python*/site-packages/nvidia/*/include'))
    random = next(curand(python).glob('libcurand.so.*'))
    options = [f'--cuda-inc-dir={includes}', f'--cudadrv-lib-dir={driver(command)}',
               f'--curand-lib-dir={random.parent}', f'--curand-libname=:{random.name}', '--cxxflags=-O0,-g0,-w']
    for arguments in (['configure.py', *options], ['setup.py', '-q', 'build_ext', '--inplace']):
        subprocess.run([python, *arguments], cwd=root, stdout=subprocess.DEVNULL, check=True)
    (root / 'READY').touch()
    return root


def test(module, path, *omitted):
    """Runs the tests of a module in this process, and writes the results to a file."""
    import pytest
    sys.path.append(FOLDER)
    from client import Results
    sys.path.remove(FOLDER)
    arguments = ['-q', '-p', 'no:cacheprovider', os.path.join(os.environ['PYTHONPATH'], 'test', f'{module}.py')]
    return pytest.main(arguments, plugins=[Results(path, omitted)])


def main():
    from client import environment, library, listed, modules, omitted
    command, *given = sys.argv[1:]
    python = environment('pycuda', PACKAGES)
    root = python and build(os.path.abspath(command), python)
    if root is None:
        print('PyPI is out of reach: no test was run')
        return 0
    headers = python.parents[1].glob('lib/python*/site-packages/nvidia/*/include')
    # PyCUDA skips its tests of 4 GiB arrays, which take hours, on a device with less memory.
    variables = {'CUDA_ON_CPU_COMPILERS': 'on', 'CUDA_ON_CPU_MEMORY': '4G', 'PYTHONPATH': str(root),
                 'PYCUDA_DEFAULT_NVCC_FLAGS': ' '.join(f'-I{folder}' for folder in headers),
                 'PYCUDA_DISABLE_CACHE': '1', 'LD_LIBRARY_PATH': f'{curand(python)}:{library(python)}'}
    return modules(__file__, command, python, given or listed(__file__), MODULE_SECONDS, omitted(__file__),
                   **variables)


if __name__ == '__main__':
    if sys.argv[1] == '-':
        sys.exit(test(*sys.argv[2:]))
    sys.path.insert(0, FOLDER)
    sys.exit(main())
