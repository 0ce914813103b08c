"""Counts of calls, computed by a kernel or by PyTorch, and the error of `strict=True`."""

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

    def kernel(self, name):
        """Counts a call that a kernel computes."""
        with self._lock:
            self._kernel[name] = self._kernel.get(name, 0) + 1

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
            names = sorted({*self._kernel, *self._torch})
            counts = {n: {"kernel": self._kernel.get(n, 0), "torch": dict(self._torch.get(n, {}))} for n in names}
            if reset:
                self._kernel.clear()
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
