"""The registration of all operators, for torch.compile and torch.export."""

import torch

from . import arrays, attention, cache, elementwise, loss, products, quantization, reductions, rotary, rowwise, tokens
from ._operator import ROWS

FAMILIES = (rowwise, elementwise, products, loss, rotary, quantization, attention, cache, arrays, reductions, tokens)


def _registered(table):
    """Defines the operators. Returns the library, which keeps the definitions."""
    if not hasattr(torch.library, "register_autograd"):
        raise ImportError(f"kernels_rs needs PyTorch 2.4 for its operators, and finds {torch.__version__}")
    library = torch.library.Library("kernels_rs", "DEF")
    for row in table:
        library.define(row.name + row.schema)
        library.impl(row.name, row.counted, "CompositeExplicitAutograd")
        torch.library.register_fake(f"kernels_rs::{row.name}", row.fake, lib=library)
        # PyTorch has no gradients of operators that write their operands.
        if not row.mutates:
            torch.library.register_autograd(
                f"kernels_rs::{row.name}", row.backward, setup_context=row.save, lib=library
            )
        row.overload = getattr(getattr(torch.ops.kernels_rs, row.name), "default")
        ROWS[row.name] = row
    return library


LIBRARY = _registered([row for family in FAMILIES for row in family.TABLE])
