"""Runs the tests of current numba-cuda from PyPI on cuda-on-cpu, and prints the results by module.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/numba.py target/release/cuda-on-cpu [MODULE…]

Each module of `numba.cuda.tests` runs in a process, without the tests that numba.txt omits. Without
a module, all run. Where PyPI is out of reach, the script says so and ends with success. numba-cuda
compiles to LTO-IR, and links by nvJitLink.

With `gpu` in place of the command, the tests run on the GPU, by the Python of this script and its
packages, and none is omitted.
"""
import os
import shutil
import sys

# This script has the name of the package, and its folder is first in the path.
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path = [path for path in sys.path if os.path.abspath(path or '.') != FOLDER]
PACKAGES = ['numba-cuda[cu12]', 'cuda-core', 'cuda-bindings==12.9.*', 'nvidia-nvjitlink-cu12', 'nvidia-curand-cu12',
            'numpy', 'pytest', 'psutil', 'cffi', 'ml_dtypes', 'filecheck']
MODULE_SECONDS = 1800


def test(module, path, *omitted):
    """Runs the tests of a module in this process, and writes the results to a file."""
    import pytest
    sys.path.append(FOLDER)
    from client import Results
    sys.path.remove(FOLDER)

    class Plugin(Results):
        @pytest.fixture(scope='class')
        def initialize_from_pytest_config(self, request):
            # The package does not contain its own fixture.
            request.cls._dump_failed_filechecks = False

    # Some folders of the package have no `__init__.py`.
    arguments = ['-q', '-p', 'no:cacheprovider', '-o', 'consider_namespace_packages=true', '--pyargs',
                 f'numba.cuda.tests.{module}']
    return pytest.main(arguments, plugins=[Plugin(path, omitted)])


def main():
    from client import environment, listed, modules, omitted
    command, *given = sys.argv[1:]
    given = given or listed(__file__)
    if command == 'gpu':
        return modules(__file__, None, sys.executable, given, MODULE_SECONDS, {})
    python = environment('numba', PACKAGES)
    if python is None:
        print('PyPI is out of reach: no test was run')
        return 0
    # numba-cuda looks for the headers of CURAND among those of CUDA.
    for headers in python.parents[1].glob('lib/python*/site-packages/nvidia/curand/include'):
        shutil.copytree(headers, headers.parents[1] / 'cuda_runtime' / 'include', dirs_exist_ok=True)
    return modules(__file__, command, python, given, MODULE_SECONDS, omitted(__file__))


if __name__ == '__main__':
    if sys.argv[1] == '-':
        sys.exit(test(*sys.argv[2:]))
    sys.path.insert(0, FOLDER)
    sys.exit(main())
