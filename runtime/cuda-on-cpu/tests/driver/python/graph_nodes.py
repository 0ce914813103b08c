"""Nodes of any type by one function, updates that do not fit, attributes, and user objects."""
import time

from cuda import *

start()
f = load(STORE, "k")
stream, d = V(), alloc(64)
call("cuStreamCreate", B(stream), 1)
KERNEL, MEMCPY, MEMSET, HOST, CHILD, EMPTY, WAIT, RECORD, ALLOCATION, FREE = 0, 1, 2, 3, 4, 5, 6, 7, 10, 11


class Parameters(C.Structure):
    _fields_ = [("type", C.c_uint), ("reserved", C.c_int * 3), ("content", C.c_uint64 * 29), ("end", C.c_longlong)]


class Kernel(C.Structure):
    _fields_ = [("func", V), ("dims", C.c_uint * 7), ("params", C.POINTER(V)), ("extra", V), ("kern", V), ("ctx", V)]


class Memset(C.Structure):
    _fields_ = [("dst", C.c_uint64), ("pitch", S), ("value", C.c_uint), ("size", C.c_uint), ("width", S), ("height", S),
                ("ctx", V)]


class Host(C.Structure):
    _fields_ = [("fn", V), ("data", V)]


class Side(C.Structure):
    _fields_ = [("x", S), ("y", S), ("z", S), ("level", S), ("kind", C.c_uint), ("host", V), ("device", C.c_uint64),
                ("array", V), ("reserved", V), ("pitch", S), ("height", S)]


class Memcpy(C.Structure):
    _fields_ = [("flags", C.c_int), ("reserved", C.c_int), ("ctx", V), ("src", Side), ("dst", Side), ("width", S),
                ("height", S), ("depth", S)]


class Allocation(C.Structure):
    _fields_ = [("alloc", C.c_uint), ("handles", C.c_uint), ("location", C.c_uint), ("device", C.c_int), ("security", V),
                ("reserved", C.c_ubyte * 64), ("access", V), ("count", S), ("bytes", S), ("dptr", C.c_uint64)]


class Info(C.Structure):
    _fields_ = [("result", C.c_uint), ("node", V), ("from_", V)]


def described(kind, content):
    given = Parameters(kind)
    C.memmove(C.addressof(given) + Parameters.content.offset, C.addressof(content), C.sizeof(content))
    return given


def content(given, layout):
    return layout.from_buffer_copy(given, Parameters.content.offset)


def add(graph, kind, value, *after, gives=0):
    node, given, after = V(), described(kind, value), (V * len(after))(*after)
    call("cuGraphAddNode_v2", B(node), graph, after, None, S(len(after)), B(given), gives=gives)
    return node, given


def shown(node):
    given = Parameters()
    call("cuGraphNodeGetParams", node, B(given))
    return given


def created():
    graph = V()
    call("cuGraphCreate", B(graph), 0)
    return graph


def instantiated(graph):
    executable = V()
    call("cuGraphInstantiateWithFlags", B(executable), graph, C.c_uint64(0))
    return executable


def run(executable):
    call("cuGraphLaunch", executable, stream)
    call("cuStreamSynchronize", stream)
    return words(d, 4)


def kernel(value):
    return Kernel(f, (C.c_uint * 7)(1, 1, 1, 1, 1, 1, 0), parameters(d, C.c_uint32(value)))


def fill(value):
    return Memset(d.value, 0, value, 4, 4, 1)


# A node of each type.
called, event = [], V()
callback = C.CFUNCTYPE(None, V)(lambda data: called.append(data))
call("cuEventCreate", B(event), 0)
inner = created()
add(inner, KERNEL, kernel(8))
graph = created()
first, _ = add(graph, MEMSET, fill(6))
copy = Memcpy(src=Side(kind=2, device=d.value), dst=Side(kind=2, device=d.value + 32), width=4, height=1, depth=1)
second, _ = add(graph, MEMCPY, copy, first)
third, _ = add(graph, HOST, Host(C.cast(callback, V), V(5)), second)
child, _ = add(graph, CHILD, C.c_uint64(inner.value), third)
empty, _ = add(graph, EMPTY, C.c_uint64(), child)
record, _ = add(graph, RECORD, C.c_uint64(event.value), empty)
wait, _ = add(graph, WAIT, C.c_uint64(event.value), record)
add(graph, 99, C.c_uint64(), gives=1)
kind = C.c_int(-1)
for node, expected in [(first, MEMSET), (second, MEMCPY), (third, HOST), (child, CHILD), (empty, EMPTY),
                       (record, RECORD), (wait, WAIT)]:
    call("cuGraphNodeGetType", node, B(kind))
    assert kind.value == expected
executable = instantiated(graph)
assert run(executable) == [8, 6, 6, 6] and words(C.c_uint64(d.value + 32), 1) == [6] and called == [5]
call("cuEventSynchronize", event)

# Parameters are read, and set in the graph and in the executable graph.
known = content(shown(first), Memset)
assert (known.dst, known.value, known.size, known.width) == (d.value, 6, 4, 4)
known = content(shown(second), Memcpy)
assert (known.src.device, known.dst.device, known.width) == (d.value, d.value + 32, 4)
assert content(shown(third), Host).data == 5
assert content(shown(record), C.c_uint64).value == event.value
call("cuGraphNodeSetParams", first, B(described(MEMSET, fill(3))))
assert content(shown(first), Memset).value == 3
assert run(executable) == [8, 6, 6, 6]
assert run(instantiated(graph)) == [8, 3, 3, 3]
call("cuGraphExecNodeSetParams", executable, first, B(described(MEMSET, fill(4))))
assert run(executable) == [8, 4, 4, 4]
call("cuGraphNodeSetParams", first, B(described(KERNEL, kernel(1))), gives=1)
call("cuGraphExecNodeSetParams", executable, first, B(described(KERNEL, kernel(1))), gives=1)

# A child graph is replaced by one with the same nodes.
other = created()
add(other, KERNEL, kernel(9))
call("cuGraphExecChildGraphNodeSetParams", executable, child, other)
assert run(executable) == [9, 4, 4, 4]
call("cuGraphExecChildGraphNodeSetParams", executable, child, created(), gives=1)
call("cuGraphExecChildGraphNodeSetParams", executable, first, other, gives=1)

# The data of dependencies: all are full dependencies.
sources, targets, data, count = (V * 8)(), (V * 8)(), (C.c_uint64 * 8)(*[7] * 8), S(8)
call("cuGraphGetEdges_v2", graph, sources, targets, data, B(count))
assert count.value == 6 and list(data)[:6] == [0] * 6
data, count = (C.c_uint64 * 8)(*[7] * 8), S(8)
call("cuGraphNodeGetDependencies_v2", second, sources, data, B(count))
assert count.value == 1 and sources[0] == first.value and data[0] == 0
status, number, in_progress = C.c_int(-1), C.c_uint64(), V()
nodes, edges = C.POINTER(V)(), C.POINTER(C.c_uint64)()
call("cuStreamBeginCapture_v2", stream, 1)
call("cuMemsetD8Async", d, 1, S(64), stream)
call("cuStreamGetCaptureInfo_v3", stream, B(status), B(number), B(in_progress), B(nodes), B(edges), B(count))
assert (status.value, count.value) == (1, 1) and nodes[0] is not None and (not edges or edges[0] == 0)
call("cuStreamEndCapture", stream, B(V()))

# Updates that do not fit: another number of nodes, another type, other dependencies.
def chain(*kinds, linked=True):
    graph, nodes = created(), []
    for kind in kinds:
        after = nodes[-1:] if linked else nodes[:1] if len(nodes) > 1 else nodes[-1:]
        value = {KERNEL: kernel(1), MEMSET: fill(1), EMPTY: C.c_uint64()}[kind]
        nodes.append(add(graph, kind, value, *after)[0])
    return graph, nodes


executable = instantiated(chain(MEMSET, KERNEL, EMPTY)[0])
info = Info()
call("cuGraphExecUpdate_v2", executable, chain(MEMSET, KERNEL, EMPTY)[0], B(info))
assert (info.result, info.node) == (0, None)
call("cuGraphExecUpdate_v2", executable, chain(MEMSET, KERNEL)[0], B(info), gives=910)
assert (info.result, info.node) == (2, None)
graph, nodes = chain(MEMSET, MEMSET, EMPTY)
call("cuGraphExecUpdate_v2", executable, graph, B(info), gives=910)
assert (info.result, info.node) == (3, nodes[1].value)
graph, nodes = chain(MEMSET, KERNEL, EMPTY, linked=False)
call("cuGraphExecUpdate_v2", executable, graph, B(info), gives=910)
assert info.result == 2 and info.node in [node.value for node in nodes]

# Attributes of kernel nodes and of streams.
value = (C.c_uint64 * 8)()
graph, nodes = chain(KERNEL, KERNEL)
call("cuGraphKernelNodeGetAttribute", nodes[0], 2, value)
assert C.c_int(value[0]).value == 0
value[0] = 1
call("cuGraphKernelNodeSetAttribute", nodes[0], 2, value)
call("cuGraphKernelNodeCopyAttributes", nodes[1], nodes[0])
value[0] = 0
call("cuGraphKernelNodeGetAttribute", nodes[1], 2, value)
assert value[0] & 1 == 1
call("cuGraphKernelNodeSetParams_v2", nodes[1], B(kernel(2)))
value[0] = 0
call("cuGraphKernelNodeGetAttribute", nodes[1], 2, value)
assert value[0] & 1 == 1
call("cuGraphKernelNodeGetAttribute", chain(MEMSET)[1][0], 2, value, gives=1)
run(instantiated(graph))
other = V()
call("cuStreamCreate", B(other), 1)
call("cuStreamGetAttribute", stream, 3, value)
assert C.c_uint(value[0]).value == 1
value[0] = 2
call("cuStreamSetAttribute", stream, 3, value)
call("cuStreamCopyAttributes", other, stream)
value[0] = 0
call("cuStreamGetAttribute", other, 3, value)
assert C.c_uint(value[0]).value == 2

# User objects exist as long as the program, a graph, or an executable graph refers to them.
ended = []
destroy = C.CFUNCTYPE(None, V)(lambda data: ended.append(data))


def user_object(data, references=1):
    made = V()
    call("cuUserObjectCreate", B(made), V(data), destroy, references, 1)
    return made


def ends(data):
    call("cuCtxSynchronize")
    for _ in range(1000):
        if data in ended:
            return True
        time.sleep(0.001)
    return False


call("cuUserObjectCreate", B(V()), V(1), destroy, 0, 1, gives=1)
call("cuUserObjectCreate", B(V()), V(1), destroy, 1, 0, gives=1)
call("cuUserObjectCreate", B(V()), V(1), None, 1, 1, gives=1)
made = user_object(11, 2)
call("cuUserObjectRetain", made, 1)
call("cuUserObjectRelease", made, 2)
assert 11 not in ended
call("cuUserObjectRelease", made, 1)
assert ends(11)
made, graph = user_object(12), chain(KERNEL)[0]
call("cuGraphRetainUserObject", graph, made, 1, 1)
executable, clone = instantiated(graph), V()
call("cuGraphClone", B(clone), graph)
call("cuGraphDestroy", graph)
run(executable)
assert 12 not in ended
call("cuGraphDestroy", clone)
call("cuGraphLaunch", executable, stream)
call("cuGraphExecDestroy", executable)
assert ends(12)
made, graph = user_object(13), created()
call("cuGraphRetainUserObject", graph, made, 2, 0)
call("cuUserObjectRelease", made, 1)
call("cuGraphReleaseUserObject", graph, made, 1)
assert 13 not in ended
call("cuGraphReleaseUserObject", graph, made, 1)
assert ends(13)

# Attributes of two devices, and copies between contexts.
call("cuDeviceGetP2PAttribute", B(C.c_int()), 1, 0, 0, gives=101)
context = V()
call("cuCtxGetCurrent", B(context))
words_of = lambda address: words(C.c_uint64(address), 1)[0]
call("cuMemsetD32_v2", d, 77, S(1))
side = lambda address: Side(kind=2, device=address, reserved=context.value)
peer = Memcpy(src=side(d.value), dst=side(d.value + 16), width=4, height=1, depth=1)
call("cuMemcpy3DPeer", C.byref(peer, Memcpy.src.offset))
assert words_of(d.value + 16) == 77

# An allocation and its release, whose address the call returns.
graph = created()
given = Allocation(alloc=1, location=1, device=0, bytes=64)
node, given = add(graph, ALLOCATION, given)
address = content(given, Allocation).dptr
assert address != 0 and content(shown(node), Allocation).dptr == address
inside, _ = add(graph, MEMSET, Memset(address, 0, 5, 4, 4, 1), node)
free, _ = add(graph, FREE, C.c_uint64(address), inside)
assert content(shown(free), C.c_uint64).value == address
call("cuGraphNodeGetType", free, B(kind))
assert kind.value == FREE
run(instantiated(graph))
