"""Copies and graphs of two devices. Comments name the source of each rule: no card was asked."""
import os

os.environ["CUDA_ON_CPU_DEVICES"] = "2"
from cuda import *

call("cuInit", 0)
contexts, memory, stores = [V(), V()], [], []
for device, context in enumerate(contexts):
    call("cuCtxCreate_v2", B(context), 0, device)
    memory.append(alloc(8))
    stores.append(load(STORE, "k"))
first, second = memory

# A copy by unified addresses reaches each device from any context, without access to peers:
# CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy".
for context in contexts:
    call("cuCtxSetCurrent", context)
    call("cuMemcpyHtoD_v2", first, (C.c_uint32 * 2)(1, 2), S(8))
    call("cuMemcpyDtoD_v2", second, first, S(8))
    assert words(second, 2) == [1, 2]
    call("cuMemcpyDtoDAsync_v2", C.c_uint64(first.value + 4), second, S(4), None)
    call("cuMemcpy", C.c_uint64(second.value + 4), first, S(4))
    assert words(first, 2) == [1, 1] and words(second, 2) == [1, 1]
call("cuMemcpyDtoD_v2", second, first, S(9), gives=1)

# The contexts of cuMemcpyPeer must be those of the addresses.
call("cuMemcpyPeer", second, contexts[1], first, contexts[0], S(8))
call("cuMemcpyPeer", second, contexts[0], first, contexts[1], S(8), gives=1)
call("cuMemcpyPeerAsync", second, contexts[0], first, contexts[1], S(8), None, gives=1)


class Kernel(C.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v1"""
    _fields_ = [("function", V), ("grid", C.c_uint * 3), ("block", C.c_uint * 3), ("shared", C.c_uint),
                ("parameters", V), ("extra", V)]


class Side(C.Structure):
    _fields_ = [("x", S), ("y", S), ("z", S), ("level", S), ("kind", C.c_uint), ("host", V), ("device", C.c_uint64),
                ("array", V), ("reserved", V), ("pitch", S), ("height", S)]


class Copy(C.Structure):
    """CUDA_MEMCPY3D_v2"""
    _fields_ = [("source", Side), ("to", Side), ("width", S), ("height", S), ("depth", S)]


DEVICE = 2
kept = []


def add(graph, function, address, value, after):
    """Adds a node that stores a value."""
    given = parameters(C.c_uint64(address), C.c_uint32(value))
    kept.append(given)
    ones, node = (C.c_uint * 3)(1, 1, 1), V()
    node_parameters = Kernel(function, ones, ones, 0, C.cast(given, V), None)
    call("cuGraphAddKernelNode", B(node), graph, (V * len(after))(*after), S(len(after)), B(node_parameters))
    return node


# A kernel node runs in the context of its function: cuda.h, `CUDA_KERNEL_NODE_PARAMS::ctx`. The
# graph stores 5 on the first device, copies it to the second one, and then changes both.
graph, executable, copied = V(), V(), V()
call("cuGraphCreate", B(graph), 0)
five = add(graph, stores[0], first.value, 5, [])
copy = Copy(Side(kind=DEVICE, device=first.value), Side(kind=DEVICE, device=second.value), 4, 1, 1)
call("cuGraphAddMemcpyNode", B(copied), graph, (V * 1)(five), S(1), B(copy), contexts[0])
six = add(graph, stores[0], first.value, 6, [copied])
add(graph, stores[1], second.value + 4, 7, [six])
call("cuGraphInstantiate_v2", B(executable), graph, None, None, S(0))
for context in contexts:
    call("cuCtxSetCurrent", context)
    for address in memory:
        call("cuMemcpyHtoD_v2", address, (C.c_uint32 * 2)(0, 0), S(8))
    call("cuGraphLaunch", executable, None)
    call("cuCtxSynchronize")
    assert words(first, 2) == [6, 0] and words(second, 2) == [5, 7]

# A fault is a failure of the kernel's own context, and of the stream's.
add(graph, stores[1], 8, 1, [])
call("cuGraphInstantiate_v2", B(executable), graph, None, None, S(0))
call("cuCtxSetCurrent", contexts[0])
call("cuGraphLaunch", executable, None)
call("cuCtxSynchronize", gives=700)
call("cuCtxSetCurrent", contexts[1])
call("cuCtxSynchronize", gives=700)
