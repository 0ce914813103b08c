"""Operators of PyTorch: a row of the table, and helpers that all families share."""

import functools

import torch

from .. import _native
from .._fallback import COUNTERS

FLOATS = (torch.float32, torch.float16, torch.bfloat16)

# The kernels count elements of an array in 32 bits.
MAX_ELEMENTS = 2**31

# The rows of all families by name; `registration` fills it.
ROWS = {}


class Operator:
    """A row of the table.

    `kernel` computes the results from operands without gradients, `torch` the first result.
    `refuse` returns the reason why no kernel takes the arguments, or None. `save` stores what
    `backward` needs. `mixed` allows several float types. `scratch` states that the kernel writes
    its own memory before reading it, `constants` that this memory is a table of the device.
    `counted_as` is the name in `stats`, and `any_type` allows elements that are not floats.
    `repeated` is False if no call can repeat the launches of an earlier one. `mutates` states that
    the kernel writes operands.
    """

    def __init__(
        self,
        name,
        schema,
        *,
        kernel,
        fake,
        torch=None,
        refuse=None,
        save=None,
        backward=None,
        mixed=False,
        scratch=False,
        constants=False,
        counted_as=None,
        any_type=False,
        repeated=True,
        mutates=False,
    ):
        self.name, self.schema, self.kernel, self.fake = name, schema, kernel, fake
        self.counted_as, self.any_type, self.mutates = counted_as or name, any_type, mutates
        self.count = COUNTERS.counter(self.counted_as)
        # A call on a GPU that repeats an earlier one only submits the recorded launches.
        self.repeats = _native.Repeats(scratch, constants) if repeated else _Unrepeated()
        self.torch, self.refuse, self.save, self.backward, self.mixed = torch, refuse, save, backward, mixed
        if backward is None:
            self.save, self.backward = lambda ctx, inputs, output: None, self._undifferentiable
        self.overload, self.function = None, _function(self)

    def _undifferentiable(self, ctx, *gradients):
        if self.torch is not None:
            raise RuntimeError(f"{self.name} of kernels_rs has no gradient")
        raise RuntimeError(f"{self.name} of kernels_rs has no derivative, so its function has no second derivative")

    def reason(self, arguments, interpret):
        """Returns why no kernel takes the arguments, or None."""
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
        found = unsupported_tensors(tensors, interpret, self.mixed, self.any_type)
        if found is None and self.refuse is not None:
            found = self.refuse(*arguments)
        return found

    def counted(self, *arguments):
        """Runs the kernel, and counts it."""
        return self._counted(arguments, self.repeats.again(arguments, False))

    def _counted(self, arguments, repeated):
        """Returns `repeated`. If it is None or False, runs the kernel; with None, records it too."""
        self.count()
        if repeated is not None and repeated is not False:
            return repeated
        plain = tuple(x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x for x in arguments)
        return self.kernel(*plain) if repeated is False else self.repeats.first(self.kernel, plain)

    def results(self, *arguments):
        """Computes the results by the kernel."""
        results = self._repeated(arguments)
        return self._computed(arguments, results) if results is None or results is False else results

    def _repeated(self, arguments):
        """Repeats an earlier call on a GPU. Returns None or False as `Repeats.again` does."""
        if torch.compiler.is_compiling():
            return None
        results = self.repeats.again(arguments, True)
        if results is NotImplemented:
            return self.function(*arguments)
        if results is not None and results is not False:
            self.count()
        return results

    def _computed(self, arguments, repeated):
        if not _is_eager(arguments):
            return self.overload(*arguments)
        if not _needs_gradient(arguments):
            # `repeated` is None if a first call on a GPU can be recorded; its arguments need not be
            # read again.
            return self._counted(arguments, repeated)
        return self.function(*arguments)

    def __call__(self, arguments, strict, interpret):
        """Computes the first result by the kernel, or in PyTorch."""
        results = None if _is_forward_mode() else self._repeated(arguments)
        if results is None or results is False:
            reason = self.reason(arguments, interpret)
            if reason is not None:
                note_torch(self.counted_as, reason, strict)
                return self.torch(*arguments)
            results = self._computed(arguments, results)
        return results[0] if isinstance(results, (tuple, list)) else results


class _Unrepeated:
    """Stands in for the launches of an operator whose calls repeat nothing."""

    def again(self, arguments, plain):
        """Returns None: there is no earlier call."""
        return None

    def first(self, function, arguments):
        """Calls the function, and keeps nothing."""
        return function(*arguments)

    def sizes(self):
        """Returns the numbers of signatures, which are 0."""
        return 0, 0


def _function(row):
    """Returns the operator as a function of autograd, which is faster than the dispatcher."""

    # PyTorch inspects the signature at each call if a separate method saves the operands.
    def forward(ctx, *arguments):
        results = row.counted(*arguments)
        row.save(ctx, arguments, results)
        return results

    methods = {"forward": staticmethod(forward), "backward": staticmethod(row.backward)}
    return type(row.name, (torch.autograd.Function,), methods).apply


def note_torch(name, reason, strict):
    # The compiled graph has no counters for calls of PyTorch, so a call that is being traced is not
    # counted either.
    if strict or not torch.compiler.is_compiling():
        COUNTERS.torch(name, reason, strict)


def is_inference(*arguments):
    """Returns whether no gradient of the call can be requested, so no operand is saved."""
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return not _needs_gradient(arguments)


def _is_eager(arguments):
    """Returns whether the tensors have memory, and no tracing or transformation needs the operator."""
    if torch.compiler.is_compiling():
        return False
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    for x in arguments:
        if isinstance(x, torch.Tensor) and (type(x) not in (torch.Tensor, torch.nn.Parameter) or x.is_neg()):
            return False
    return True


def _is_forward_mode():
    """Returns whether tensors may have tangents, which the kernels do not compute."""
    return torch.autograd.forward_ad._current_level >= 0


def _needs_gradient(arguments):
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in arguments)


@functools.lru_cache(maxsize=None)
def _opens(device):
    return device in _native.devices()


def unsupported_tensors(tensors, interpret, mixed, any_type=False):
    """Returns which device, type or extent of the tensors no kernel supports, or None."""
    if _is_forward_mode():
        return "forward-mode gradients"
    device = tensors[0].device
    for x in tensors:
        if x.device != device:
            return "operands on several devices"
        if x.layout is not torch.strided:
            return f"the layout {x.layout}"
        if x.numel() == 0:
            return "a tensor without elements"
        if x.numel() >= MAX_ELEMENTS:
            return "a tensor of 2**31 elements or more"
    if device.type == "cpu":
        if not interpret:
            return "tensors of the CPU"
    elif device.type != "cuda" or not torch.compiler.is_compiling() and not _opens(f"cuda:{device.index}"):
        return f"tensors of {device}, which the CUDA driver does not have"
    if any_type:
        return None
    types = [x.dtype for x in tensors if x.is_floating_point() or x.is_complex()]
    if not types:
        return "elements that are not floats"
    for dtype in types:
        if dtype not in FLOATS:
            return f"elements of {str(dtype)[6:]}"
        if dtype != types[0] and not mixed:
            return "operands of different element types"
    return None


def stream_of(x):
    """Returns the current stream of a tensor's device, in whose order the work runs."""
    return torch._C._cuda_getCurrentRawStream(x.get_device()) if x.is_cuda else None


def as_rows(x):
    """Returns a tensor whose rows the kernels take: the last stride is 1, and outer axes can be joined."""
    return x if x.is_contiguous() or x.dim() == 2 and x.stride(-1) == 1 else x.contiguous()


def new_tensor(x, *shape, dtype=None):
    """Allocates a row-major tensor on the device of x. Shape and type default to those of x."""
    if not shape and dtype is None:
        return torch.empty_like(x, memory_format=torch.contiguous_format)
    return x.new_empty(shape or x.shape, dtype=dtype)
