"""An environment with packages from PyPI, for the scripts beside this file."""
import contextlib
import os
import pathlib
import signal
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


def library(python):
    """Returns the search path of libraries with the NVRTC of an environment first.

    Some clients open it by its name alone.
    """
    found = next((python.parents[1] / 'lib').glob('python*/site-packages/nvidia/cuda_nvrtc/lib'), None)
    others = os.environ.get('LD_LIBRARY_PATH', '')
    return others if found is None else f'{found}:{others}'


def driver(command):
    """Returns the folder with the driver library of `cuda-on-cpu`."""
    line = [pathlib.Path(command).resolve(), 'printenv', 'LD_LIBRARY_PATH']
    path = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return pathlib.Path(path.strip().split(':')[0])


def listed(script):
    """Returns the names in the list beside a script, without the omitted ones."""
    lines = pathlib.Path(script).with_suffix('.txt').read_text().splitlines()
    return [line.split()[0] for line in lines if line and line[0] not in '#-']


def omitted(script):
    """Returns the omitted tests of each module: lines `- MODULE TEST: REASON`. `*` is all tests."""
    tests = {}
    for line in pathlib.Path(script).with_suffix('.txt').read_text().splitlines():
        if line.startswith('- '):
            module, test = line[2:].split(': ')[0].split()
            tests.setdefault(module, []).append(test)
    return tests


def run(command, python, arguments, seconds, directory=None, **variables):
    """Runs Python in a folder, under `cuda-on-cpu` unless `command` is `None`.

    Returns the exit code, the output and the time in seconds.
    """
    start = time.monotonic()
    # The log would be among the lines of the tests.
    everything = {'CUDA_ON_CPU_LOG': 'off', **os.environ, **variables}
    line = [python, '-W', 'ignore', *arguments]
    if command is not None:
        line.insert(0, pathlib.Path(command).resolve())
    # Processes that the tests start and leave behind would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(line, env=everything, cwd=directory, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, start_new_session=True)
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        text = output.read().decode(errors='replace')
    if code is None:
        code, text = 1, f'{text}\nno end after {seconds} s'
    return code, text, time.monotonic() - start


NO_TESTS = 5


class Results:
    """A plugin of pytest that leaves out tests, and writes a line for the start and the end of each."""

    def __init__(self, path, omitted):
        self.file, self.omitted = open(path, 'w', buffering=1), omitted

    def write(self, *words):
        self.file.write('\t'.join(' '.join(str(word).split()) for word in words) + '\n')

    def name(self, node):
        """Returns the class and the function of a test."""
        return node.split('::', 1)[-1].replace('::', '.').replace(' ', '')

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self.name(item.nodeid) not in self.omitted]

    def pytest_runtest_logstart(self, nodeid):
        self.write('start', self.name(nodeid))

    def pytest_runtest_logreport(self, report):
        name = self.name(report.nodeid)
        if report.skipped and hasattr(report, 'wasxfail'):
            self.write('expected', name, report.wasxfail)
        elif report.skipped:
            self.write('skip', name, report.longrepr[2])
        elif report.failed:
            self.write('FAIL', name, report.longreprtext[-3000:])
        elif report.when == 'call':
            self.write('pass', name)

    def pytest_collectreport(self, report):
        if report.failed:
            self.write('FAIL', 'collection', report.longreprtext[-3000:])


def results(path):
    """Returns the result of each test with the reason, and the test that did not end."""
    found, running = {}, None
    for line in pathlib.Path(path).read_text().splitlines():
        result, name, *reason = line.split('\t')
        if result == 'start':
            running = name
            continue
        running = None
        # The teardown of a test can fail after the test.
        if found.get(name, ('pass',))[0] != 'FAIL':
            found[name] = (result, ' '.join(reason))
    return found, running


def modules(script, command, python, names, seconds, omitted, **variables):
    """Runs modules of tests, each in a process, and returns the exit code.

    The script runs itself again as `SCRIPT - MODULE RESULTS [OMITTED TEST…]`. The environment
    variable CLIENT_RESULTS names a file for the results of all tests.
    """
    total = {'pass': 0, 'FAIL': 0, 'skip': 0, 'expected': 0}
    log = open(os.environ.get('CLIENT_RESULTS', os.devnull), 'a', buffering=1)
    with tempfile.TemporaryDirectory() as folder:
        for module in names:
            left_out = omitted.get(module, [])
            if '*' in left_out:
                continue
            path = os.path.join(folder, module)
            pathlib.Path(path).touch()
            arguments = [os.path.abspath(script), '-', module, path, *left_out]
            code, text, time = run(command, python, arguments, seconds, directory=folder, **variables)
            # pytest's code if a module skips itself.
            code = 0 if code == NO_TESTS else code
            found, running = results(path)
            if code != 0 and running is not None:
                found[running] = ('FAIL', f'the process ended in this test: {text.strip()[-1000:]}')
            elif code != 0 and not any(result == 'FAIL' for result, _ in found.values()):
                found['module'] = ('FAIL', text.strip()[-1000:])
            counts = {name: sum(result == name for result, _ in found.values()) for name in total}
            total = {name: total[name] + counts[name] for name in total}
            counts = ', '.join(f'{count} {name}' for name, count in counts.items() if count)
            print(f'{module}: {counts or "no test"}, {time:.0f} s', flush=True)
            for name, (result, reason) in found.items():
                log.write(f'{module}\t{name}\t{result}\t{reason}\n')
                if result == 'FAIL':
                    print(f'  {name}: {reason}', flush=True)
    print(', '.join(f'{count} {name}' for name, count in total.items()))
    return int(total['FAIL'] > 0)


def programs(script, packages, seconds=120, **variables):
    """Runs the listed functions of a script, each in a process, and ends with the exit code.

    The script runs itself again as `SCRIPT - NAME`.
    """
    command, *names = sys.argv[1:]
    python = environment(pathlib.Path(script).stem, packages)
    if python is None:
        print('PyPI is out of reach: no program was run')
        sys.exit(0)
    variables['LD_LIBRARY_PATH'] = library(python)
    failed = 0
    for name in names or listed(script):
        code, text, time = run(command, python, [script, '-', name], seconds, **variables)
        print(f"{name}: {'pass' if code == 0 else 'FAIL'}, {time:.0f} s", flush=True)
        if code != 0:
            failed += 1
            print(text[-4000:])
    print(f'{failed} programs fail')
    sys.exit(int(failed > 0))
