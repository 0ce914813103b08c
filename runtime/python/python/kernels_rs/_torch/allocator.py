"""The runtime's memory pool as the allocator of PyTorch's tensors."""

import torch

from .. import _native


def torch_allocator():
    """Returns an allocator with which PyTorch's tensors on GPUs take memory from the pool of the kernels.

    `torch.cuda.memory.change_current_allocator(kernels_rs.torch_allocator())` selects it, before
    the first tensor on a GPU. PyTorch's memory statistics and graph capture do not work with it.
    `Tensor.record_stream` has no effect: before the tensor is freed, order the work of other
    streams before that of the tensor's own stream. If memory is insufficient,
    PyTorch gets a null address, and raises no `torch.OutOfMemoryError`.
    """
    return torch.cuda.memory.CUDAPluggableAllocator(_native.__file__, "kernels_rs_allocate", "kernels_rs_free")
