"""Kernels as Python's functions: signatures, and kernels that `pickle` has stored."""

from . import _native


def compiled_again(source, name, file, target, label, generics):
    """Returns the kernel that `Kernel.__reduce__` describes."""
    kernel = _native.compile(source, name, file=file, target=target)
    return kernel.instance(label, **generics) if label is not None or generics else kernel


class Signature:
    """The attribute `__signature__` of a kernel, for inspect.signature and help."""

    def __get__(self, kernel, owner):
        if kernel is None:
            raise AttributeError("the class of kernels has no signature of its own")
        import inspect
        import keyword

        kinds = inspect.Parameter
        names = list(kernel.parameters)
        # Keywords of Python, such as `from`, name no arguments of a call. Parameters by position
        # precede the others.
        by_position = max((i + 1 for i, name in enumerate(names) if keyword.iskeyword(name)), default=0)
        parameters = [
            kinds(name, kinds.POSITIONAL_ONLY if i < by_position else kinds.POSITIONAL_OR_KEYWORD)
            for i, name in enumerate(names)
        ]
        # A generic parameter or an option that has the name of a parameter is hidden by it.
        for name in (*kernel.generics, "block", "stream", "unchecked"):
            if name not in names:
                names.append(name)
                parameters.append(kinds(name, kinds.KEYWORD_ONLY, default=None))
        return inspect.Signature(parameters)
