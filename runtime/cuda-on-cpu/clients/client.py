"""An environment with packages from PyPI, for the scripts beside this file."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def environment(name, packages):
    """Returns the interpreter of an environment, or `None` if PyPI is out of reach.

    The environment is in a temporary folder, and stays for the next run.
    """
    folder = pathlib.Path(tempfile.gettempdir()) / 'cuda-on-cpu-clients' / name
    python = folder / 'bin' / 'python'
    if (folder / 'READY').exists():
        return python
    subprocess.run([sys.executable, '-m', 'venv', folder], check=True)
    if subprocess.run([python, '-m', 'pip', 'install', '-q', '--only-binary', ':all:', *packages]).returncode != 0:
        return None
    (folder / 'READY').touch()
    return python


def listed(script):
    """Returns the names in the list beside a script, without the omitted ones."""
    lines = pathlib.Path(script).with_suffix('.txt').read_text().splitlines()
    return [line.split()[0] for line in lines if line and line[0] not in '#-']


def run(command, python, arguments, seconds, **variables):
    """Runs Python under `cuda-on-cpu`. Returns the exit code, the output and the time in seconds."""
    start = time.monotonic()
    # The log would be among the lines of the tests.
    everything = {'CUDA_ON_CPU_LOG': 'off', **os.environ, **variables}
    try:
        line = [pathlib.Path(command).resolve(), python, '-W', 'ignore', *arguments]
        ran = subprocess.run(line, env=everything, capture_output=True, text=True, errors='replace', timeout=seconds)
        code, text = ran.returncode, ran.stdout + ran.stderr
    except subprocess.TimeoutExpired:
        code, text = 1, f'no end after {seconds} s'
    return code, text, time.monotonic() - start


def programs(script, packages, seconds=120, **variables):
    """Runs the listed functions of a script, each in a process, and ends with the exit code.

    The script runs itself again as `SCRIPT - NAME`.
    """
    command, *names = sys.argv[1:]
    python = environment(pathlib.Path(script).stem, packages)
    if python is None:
        print('PyPI is out of reach: no program was run')
        sys.exit(0)
    # The NVRTC of the environment, for clients that open it by its name alone.
    found = next((python.parents[1] / 'lib').glob('python*/site-packages/nvidia/cuda_nvrtc/lib'), None)
    if found is not None:
        variables['LD_LIBRARY_PATH'] = f"{found}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    failed = 0
    for name in names or listed(script):
        code, text, time = run(command, python, [script, '-', name], seconds, **variables)
        print(f"{name}: {'pass' if code == 0 else 'FAIL'}, {time:.0f} s", flush=True)
        if code != 0:
            failed += 1
            print(text[-4000:])
    print(f'{failed} programs fail')
    sys.exit(int(failed > 0))
