"""Counts of calls, computed by a kernel or by PyTorch, and the error of `strict=True`."""

import itertools
import logging
import threading

from ._native import Error

LOGGER = logging.getLogger("kernels_rs")


class Unsupported(Error):
    """A call with `strict=True` that no kernel supports."""


class Counters:
    """Counts of calls for each function: computed by a kernel, or by PyTorch with the reason."""

    def __init__(self):
        # The backward pass counts on threads of PyTorch.
        self._lock = threading.Lock()
        self._kernel = {}
        self._torch = {}

    def counter(self, name):
        """Returns the function that counts a call that a kernel computes, for all operators of a name."""
        with self._lock:
            # A step of `itertools.count` needs no lock, whose cost each call would pay.
            calls, _ = self._kernel.setdefault(name, (itertools.count(), [0]))
        return calls.__next__

    def _calls(self, name, reset):
        """Returns the number of calls since the last reset. Reading the counter counts, too."""
        calls, uncounted = self._kernel.get(name, (iter([0]), [0]))
        count = next(calls) - uncounted[0]
        uncounted[0] += count + 1 if reset else 1
        return count

    def torch(self, name, reason, strict):
        """Counts a call that PyTorch computes, and logs the first one for a reason.

        Raises Unsupported if `strict`.
        """
        if strict:
            raise Unsupported(f"{name}: there is no kernel for {reason}; without strict=True, PyTorch computes the call")
        with self._lock:
            of_name = self._torch.setdefault(name, {})
            first = reason not in of_name
            of_name[reason] = of_name.get(reason, 0) + 1
        if first:
            LOGGER.warning("%s: there is no kernel for %s, so PyTorch computes such calls (logged once)", name, reason)

    def read(self, reset):
        """Returns the counts as a dict, and sets them to 0 if `reset`."""
        with self._lock:
            counts = {}
            for name in sorted({*self._kernel, *self._torch}):
                calls, reasons = self._calls(name, reset), self._torch.get(name, {})
                if calls or reasons:
                    counts[name] = {"kernel": calls, "torch": dict(reasons)}
            if reset:
                self._torch.clear()
        return counts


COUNTERS = Counters()


def stats(reset=False):
    """Returns the calls with tensors of PyTorch, by function: {"softmax": {"kernel": 3, "torch": {reason: 1}}}.

    "kernel" counts calls that a kernel computed, "torch" those that PyTorch computed, by reason.
    In a function compiled by torch.compile, each run counts the kernels, but no calls of PyTorch.
    `reset` sets all counts to 0; reasons are then logged again.
    """
    return COUNTERS.read(reset)
