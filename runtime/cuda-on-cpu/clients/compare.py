"""Compares the results of a client's tests on a GPU and on cuda-on-cpu, test by test.

    CLIENT_RESULTS=gpu.tsv python3 runtime/cuda-on-cpu/clients/numba.py gpu
    CLIENT_RESULTS=cpu.tsv python3 runtime/cuda-on-cpu/clients/numba.py target/release/cuda-on-cpu
    python3 runtime/cuda-on-cpu/clients/compare.py numba gpu.tsv cpu.tsv…

The first argument names the client, whose list beside this script has the omitted tests. A file has
a line for each result: module, test and result, with a tab after each. `MODULE@MODE` is a second run
of a module. Prints each test that passes on the GPU and neither passes here nor is omitted. Ends
with 1 if fewer than 95 % of the tests that pass on the GPU, without the omitted ones, pass here.
"""
import collections
import pathlib
import sys

from client import omitted

GOAL = 95


def results(paths):
    """Returns the result of each test, with the columns after it.

    A test with several lines in a run, such as one with subtests, passes if no line fails. A test
    of several runs passes if it passes in one.
    """
    runs = {}
    for path in paths:
        for line in pathlib.Path(path).read_text(errors='replace').splitlines():
            module, test, result, *reason = line.split('\t')
            known = runs.setdefault((module, test), (result, reason))
            ranks = ['skip', 'expected', 'pass']
            if result not in ranks or known[0] in ranks and ranks.index(result) > ranks.index(known[0]):
                runs[module, test] = (result, reason)
    found = {}
    for (module, test), outcome in runs.items():
        test = (module.partition('@')[0], test)
        if test not in found or outcome[0] == 'pass':
            found[test] = outcome
    return found


def main():
    client, gpu, *cpu = sys.argv[1:]
    left_out = omitted(pathlib.Path(__file__).with_name(f'{client}.txt'))
    passed = [test for test, (result, _) in results([gpu]).items() if result == 'pass']
    here = results(cpu)
    kinds = collections.Counter()
    for module, test in sorted(passed):
        result, reason = here.get((module, test), ('not run', []))
        if result != 'pass' and not {'*', test}.isdisjoint(left_out.get(module, [])):
            result = 'omitted'
        kinds[result] += 1
        if result not in ('pass', 'omitted'):
            print(f'{result}: {module} {test}: {" ".join(reason)[-300:]}')
    of, whole = len(passed) - kinds['omitted'], len(passed)
    counts = ', '.join(f'{count} {kind}' for kind, count in kinds.most_common())
    print(f'{client}: {whole} pass on the GPU; of these here: {counts}')
    share = 100 * kinds['pass'] / max(of, 1)
    print(f'{share:.1f} % pass without the omitted ones, {100 * kinds["pass"] / max(whole, 1):.1f} % with them')
    return int(share < GOAL)


if __name__ == '__main__':
    sys.exit(main())
