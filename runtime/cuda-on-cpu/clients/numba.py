"""Runs test modules of numba-cuda from PyPI on cuda-on-cpu, and prints the results by module.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/numba.py target/release/libcuda_on_cpu.so [MODULE…]

The script makes an environment in a temporary folder, and keeps it for the next run. Where PyPI is
out of reach, it says so and ends with success. A linker by NVIDIA (nvJitLink) produces machine code
for the device, which this driver does not run. The environment is therefore without it, and
numba-cuda links through the driver.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PACKAGES = ['numba-cuda[cu12]', 'cuda-core', 'cuda-bindings==12.9.*', 'numpy', 'pytest', 'psutil', 'cffi', 'ml_dtypes',
            'filecheck']
WITHOUT = ['nvidia-nvjitlink-cu12']
MODULE_SECONDS = 300


def environment(folder):
    """Returns the interpreter of the environment, or `None` if PyPI is out of reach."""
    python = folder / 'bin' / 'python'
    if (folder / 'READY').exists():
        return python
    subprocess.run([sys.executable, '-m', 'venv', folder], check=True)
    if subprocess.run([python, '-m', 'pip', 'install', '-q', *PACKAGES]).returncode != 0:
        return None
    subprocess.run([python, '-m', 'pip', 'uninstall', '-q', '-y', *WITHOUT], check=True)
    (folder / 'READY').touch()
    return python


def modules(given):
    """Returns the modules to run: those given, or those of the list without the omitted ones."""
    lines = (pathlib.Path(__file__).with_name('numba.txt')).read_text().splitlines()
    listed = [line.split()[0] for line in lines if line and line[0] not in '#-']
    return given or listed


def main():
    driver, *given = sys.argv[1:]
    folder = pathlib.Path(tempfile.gettempdir()) / 'cuda-on-cpu-clients'
    python = environment(folder)
    if python is None:
        print('PyPI is out of reach: no test was run')
        return 0
    library = folder / 'driver'
    library.mkdir(exist_ok=True)
    (library / 'libcuda.so.1').unlink(missing_ok=True)
    (library / 'libcuda.so.1').symlink_to(pathlib.Path(driver).resolve())
    variables = {**os.environ, 'LD_LIBRARY_PATH': str(library)}
    failed = 0
    for module in modules(given):
        start = time.monotonic()
        command = [python, '-W', 'ignore', '-m', 'unittest', '-v', f'numba.cuda.tests.cudapy.{module}']
        try:
            ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=MODULE_SECONDS)
            text, code = ran.stderr, ran.returncode
        except subprocess.TimeoutExpired:
            text, code = f'no end after {MODULE_SECONDS} s', 1
        good = len(re.findall(r'\.\.\. ok$', text, re.M))
        print(f'{module}: {good} pass, {text.strip().splitlines()[-1]}, {time.monotonic() - start:.0f} s', flush=True)
        if code != 0:
            failed += 1
            print(text[-4000:])
    print(f'{failed} modules fail')
    return int(failed > 0)


sys.exit(main())
