"""Shows bugs of clients that their tests under cuda-on-cpu revealed, by programs of ours.

    cargo build --release -p cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/bugs.py target/release/cuda-on-cpu [BUG…]

BUGS.md describes the bugs. Each program runs with the version of the package that has the bug, and
the script fails if a bug does not show. Where PyPI is out of reach, the script says so and ends with
success.
"""
import os
import sys

# A script in this folder has the name of a package.
FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path = [path for path in sys.path if os.path.abspath(path or '.') != FOLDER]
COPIES = 10


def tinygrad_event():
    """Copies between devices; the leak check lists an event of each copy."""
    from tinygrad import Tensor
    for n in range(COPIES):
        assert Tensor([n, 2]).realize().to('CUDA:1').realize().tolist() == [n, 2]


def tinygrad_destination():
    """Replays a graph with another destination of a copy; the copy goes to the first destination."""
    from tinygrad.device import Buffer, Device
    from tinygrad.dtype import dtypes
    from tinygrad.engine.realize import BufferXfer
    from tinygrad.engine.schedule import ExecItem
    from tinygrad.uop.ops import Ops, UOp

    def buffer(device, value):
        new = Buffer(device, 1, dtypes.uint8).ensure_allocated()
        new.copyin(memoryview(bytearray([value])))
        return new
    source, first, second = buffer('CUDA', 7), buffer('CUDA:1', 0), buffer('CUDA:1', 0)
    copy = ExecItem(UOp(Ops.NOOP), [first, source], prg=BufferXfer(1, 'CUDA:1', 'CUDA'))
    Device['CUDA'].graph([copy], [first], {})([second], {})
    print([bytes(each.as_buffer())[0] for each in (first, second)])


# The packages of each program, the settings of cuda-on-cpu, and what it prints because of the bug.
BUGS = {
    tinygrad_event: (['tinygrad==0.14.0', 'nvidia-cuda-nvrtc-cu12'], {'CUDA_ON_CPU_LEAK_CHECK': 'full'},
                     f'error[leak]: {COPIES} events were not destroyed'),
    tinygrad_destination: (['tinygrad==0.12.0'], {}, '[7, 0]'),
}


def main():
    from client import driver, environment, library, run
    command, *names = sys.argv[1:]
    missing = 0
    for program, (packages, settings, shown) in BUGS.items():
        if names and program.__name__ not in names:
            continue
        python = environment(program.__name__, packages)
        if python is None:
            print(f'PyPI is out of reach: {program.__name__} was not run')
            continue
        variables = {'CUDA': '1', 'DEV': 'CUDA', 'CACHELEVEL': '0', 'CUDA_PATH': str(driver(command)),
                     'CUDA_ON_CPU_LOG': 'stderr', 'CUDA_ON_CPU_DEVICES': '2', 'LD_LIBRARY_PATH': library(python)}
        code, text, time = run(command, python, [__file__, '-', program.__name__], 120, **variables, **settings)
        found = code == 0 and shown in text
        print(f"{program.__name__}: {'shows' if found else 'does NOT show'}, {time:.0f} s", flush=True)
        if not found:
            missing += 1
            print(text[-4000:])
    return int(missing > 0)


if __name__ == '__main__':
    if sys.argv[1] == '-':
        sys.exit(globals()[sys.argv[2]]())
    sys.path.insert(0, FOLDER)
    sys.exit(main())
