"""Runs test modules of current numba-cuda from PyPI on cuda-on-cpu, and prints the results by module.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/numba.py target/release/cuda-on-cpu [MODULE…]

Where PyPI is out of reach, the script says so and ends with success. numba-cuda compiles to LTO-IR,
and links by nvJitLink.
"""
import re
import sys

from client import environment, listed, run

PACKAGES = ['numba-cuda[cu12]', 'cuda-core', 'cuda-bindings==12.9.*', 'nvidia-nvjitlink-cu12', 'numpy', 'pytest',
            'psutil', 'cffi', 'ml_dtypes', 'filecheck']
MODULE_SECONDS = 300


def main():
    command, *given = sys.argv[1:]
    python = environment('numba', PACKAGES)
    if python is None:
        print('PyPI is out of reach: no test was run')
        return 0
    failed = 0
    for module in given or listed(__file__):
        arguments = ['-m', 'unittest', '-v', f'numba.cuda.tests.cudapy.{module}']
        code, text, seconds = run(command, python, arguments, MODULE_SECONDS)
        good = len(re.findall(r'\.\.\. ok$', text, re.M))
        print(f'{module}: {good} pass, {text.strip().splitlines()[-1]}, {seconds:.0f} s', flush=True)
        if code != 0:
            failed += 1
            print(text[-4000:])
    print(f'{failed} modules fail')
    return int(failed > 0)


sys.exit(main())
