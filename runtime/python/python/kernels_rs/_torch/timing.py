"""Times of the operators' kernels, measured while the caller requests them."""

import time

import torch

from ._operator import ROWS


class Timings:
    """The times of the operators' kernels within a `with` statement. Other calls cost nothing more.

    Calls that PyTorch computes are not measured. On a GPU each measured call records two events.
    """

    def __init__(self):
        self._calls = []

    def __enter__(self):
        for row in ROWS.values():
            row.repeats = _Timed(row.name, row.repeats, self._calls)
        return self

    def __exit__(self, *_):
        for row in ROWS.values():
            row.repeats = row.repeats.without(self._calls)

    def read(self):
        """Waits for the calls, and returns {"softmax": {"calls": 3, "host": seconds, "gpu": seconds}}.

        "host" is the time until the calls returned, "gpu" the time of the work; on the CPU it is 0.
        """
        read = {}
        for name, host, events in list(self._calls):
            of_name = read.setdefault(name, {"calls": 0, "host": 0.0, "gpu": 0.0})
            of_name["calls"] += 1
            of_name["host"] += host
            if events is not None:
                start, end = events
                end.synchronize()
                of_name["gpu"] += start.elapsed_time(end) / 1e3
        return read


class _Timed:
    """A stand-in for an operator's launches that measures the calls."""

    def __init__(self, name, repeats, calls):
        self._name, self._repeats, self._calls = name, repeats, calls

    def again(self, arguments, plain):
        repeated = self._measured(arguments, self._repeats.again, arguments, plain)
        # A call that cannot be repeated is measured by `first`, which then records nothing.
        return None if repeated is False else repeated

    def first(self, function, arguments):
        return self._measured(arguments, self._repeats.first, function, arguments)

    def sizes(self):
        return self._repeats.sizes()

    def without(self, calls):
        """Returns the launches without this measurement, which is removed from `calls`."""
        if self._calls is calls:
            return self._repeats
        return _Timed(self._name, self._repeats.without(calls), self._calls)

    def _measured(self, arguments, call, *given):
        device = next(x.device for x in arguments if isinstance(x, torch.Tensor))
        events = None
        if device.type == "cuda":
            stream = torch.cuda.current_stream(device)
            events = tuple(torch.cuda.Event(enable_timing=True) for _ in range(2))
            events[0].record(stream)
        begin = time.perf_counter()
        results = call(*given)
        host = time.perf_counter() - begin
        if results is None or results is False or results is NotImplemented:
            return results
        if events is not None:
            events[1].record(stream)
        self._calls.append((self._name, host, events))
        return results


def timings():
    """Returns `Timings` for a `with` statement: `with kernels_rs.timings() as times: …; times.read()`."""
    return Timings()
