"""Graphs: nodes and their types and parameters, updates, clones, captures and their information."""
from cuda import *

start()
f = load(STORE, "k")
stream, other, executable, d = V(), V(), V(), alloc(64)
call("cuStreamCreate", B(stream), 1)
call("cuStreamCreate", B(other), 1)


class Kernel(C.Structure):
    _fields_ = [("func", V), ("dims", C.c_uint * 7), ("params", C.POINTER(V)), ("extra", V), ("kern", V), ("ctx", V)]


class Memset(C.Structure):
    _fields_ = [("dst", C.c_uint64), ("pitch", S), ("value", C.c_uint), ("size", C.c_uint), ("width", S), ("height", S)]


class Instantiate(C.Structure):
    _fields_ = [("flags", C.c_uint64), ("stream", V), ("node", V), ("result", C.c_int)]


class Info(C.Structure):
    _fields_ = [("result", C.c_uint), ("node", V), ("from_", V)]


def record(value):
    graph = V()
    call("cuStreamBeginCapture_v2", stream, 1)
    call("cuLaunchKernel", f, 1, 1, 1, 1, 1, 1, 0, stream, parameters(d, C.c_uint32(value)), None)
    call("cuStreamEndCapture", stream, B(graph))
    return graph


def run():
    call("cuGraphLaunch", executable, stream)
    call("cuStreamSynchronize", stream)
    return words(d, 1)[0]


# The calls of llama.cpp with a captured graph.
graph = record(5)
call("cuGraphInstantiateWithFlags", B(executable), graph, C.c_uint64(0))
assert run() == 5
count, node, kind = S(1), (V * 1)(), C.c_int(-1)
call("cuGraphGetNodes", graph, node, B(count))
first = V(node[0])
call("cuGraphNodeGetType", first, B(kind))
assert kind.value == 0
given = Kernel()
call("cuGraphKernelNodeGetParams_v2", first, B(given))
assert given.func == f.value and C.cast(given.params[1], C.POINTER(C.c_uint32))[0] == 5
C.cast(given.params[1], C.POINTER(C.c_uint32))[0] = 9
call("cuGraphExecKernelNodeSetParams_v2", executable, first, B(given))
assert run() == 9
info = Info()
call("cuGraphExecUpdate_v2", executable, record(7), B(info))
assert run() == 7 and info.result == 0
empty = V()
call("cuGraphCreate", B(empty), 0)
call("cuGraphExecUpdate_v2", executable, empty, B(info), gives=910)
assert info.result == 2
call("cuGraphNodeSetEnabled", executable, first, 0)
call("cuMemsetD32_v2", d, 1, S(1))
assert run() == 1

# A graph made by hand: a fill, a kernel after it, a host function, an event, a child.
graph, fill, kernel, host, event, record_node, child = V(), V(), V(), V(), V(), V(), V()
call("cuGraphCreate", B(graph), 0)
call("cuGraphAddMemsetNode", B(fill), graph, None, S(0), B(Memset(d.value, 0, 6, 4, 4, 1)), None)
given = Kernel(f, (C.c_uint * 7)(1, 1, 1, 1, 1, 1, 0), parameters(d, C.c_uint32(8)))
call("cuGraphAddKernelNode_v2", B(kernel), graph, B(fill), S(1), B(given))
called = []
callback = C.CFUNCTYPE(None, V)(lambda _: called.append(1))


class Host(C.Structure):
    _fields_ = [("fn", V), ("data", V)]


call("cuGraphAddHostNode", B(host), graph, B(kernel), S(1), B(Host(C.cast(callback, V), None)))
call("cuEventCreate", B(event), 0)
call("cuGraphAddEventRecordNode", B(record_node), graph, B(host), S(1), event)
inner = record(11)
call("cuGraphAddChildGraphNode", B(child), graph, B(host), S(1), inner)
executable = V()
call("cuGraphInstantiateWithFlags", B(executable), graph, C.c_uint64(0))
assert run() == 11 and called == [1] and words(d, 4) == [11, 6, 6, 6]
call("cuEventSynchronize", event)
nodes, count = (V * 8)(), S(8)
call("cuGraphGetNodes", graph, nodes, B(count))
kinds = []
for n in nodes[:count.value]:
    call("cuGraphNodeGetType", V(n), B(kind))
    kinds.append(kind.value)
assert kinds == [2, 0, 3, 7, 4]
call("cuGraphGetEdges", graph, None, None, B(count))
assert count.value == 4
call("cuGraphNodeGetDependencies", kernel, None, B(count))
assert count.value == 1
call("cuGraphNodeGetDependentNodes", host, nodes, B(C.c_size_t(8)))
assert {nodes[0], nodes[1]} == {record_node.value, child.value}
call("cuGraphGetRootNodes", graph, None, B(count))
assert count.value == 1
shown = Memset()
call("cuGraphMemsetNodeGetParams", fill, B(shown))
assert (shown.dst, shown.value, shown.size, shown.width) == (d.value, 6, 4, 4)
call("cuGraphKernelNodeGetParams_v2", fill, B(given), gives=1)
call("cuGraphExecMemsetNodeSetParams", executable, fill, B(Memset(d.value, 0, 3, 4, 4, 1)), None)
run()
assert words(d, 4) == [11, 3, 3, 3]
clone, found = V(), V()
call("cuGraphClone", B(clone), graph)
call("cuGraphNodeFindInClone", B(found), kernel, clone)
assert found.value not in (None, kernel.value)
call("cuGraphAddDependencies", graph, B(record_node), B(child), S(1))
call("cuGraphAddDependencies", graph, B(child), B(fill), S(1), gives=1)
call("cuGraphRemoveDependencies", graph, B(record_node), B(child), S(1))
call("cuGraphDestroyNode", child)
call("cuGraphNodeGetType", child, B(kind), gives=1)
call("cuGraphDestroy", graph)

# The information of a capture, and an allocation inside it.
status, number, in_progress, deps, size = C.c_int(-1), C.c_uint64(), V(), C.POINTER(V)(), S()
call("cuStreamGetCaptureInfo_v2", stream, B(status), B(number), B(in_progress), B(deps), B(size))
assert status.value == 0
call("cuStreamBeginCapture_v2", stream, 1)
call("cuMemsetD8Async", d, 1, S(64), stream)
call("cuStreamGetCaptureInfo_v2", stream, B(status), B(number), B(in_progress), B(deps), B(size))
assert (status.value, size.value) == (1, 1)
call("cuGraphNodeGetType", V(deps[0]), B(kind))
assert kind.value == 2
address = C.c_uint64()
call("cuMemAllocAsync", B(address), S(64), stream)
call("cuMemsetD8Async", address, 1, S(64), stream)
call("cuMemFreeAsync", address, stream)
call("cuStreamEndCapture", stream, B(graph))
assert graph.value == in_progress.value
call("cuGraphInstantiateWithFlags", B(executable), graph, C.c_uint64(0))
run()

# The call of cuda.core.
graph = record(11)
given = Instantiate(2, stream, 1, 7)
call("cuGraphInstantiateWithParams", B(executable), graph, B(given))
assert (given.node, given.result) == (None, 0) and run() == 11
flags = C.c_uint64()
call("cuGraphExecGetFlags", executable, B(flags))
assert flags.value == 2
given.flags = 64
call("cuGraphInstantiateWithParams", B(executable), graph, B(given), gives=1)
assert given.result == 1

# An event that was recorded in a capture that has ended.
call("cuStreamBeginCapture_v2", stream, 1)
call("cuMemsetD8Async", d, 1, S(64), stream)
call("cuEventRecord", event, stream)
call("cuStreamEndCapture", stream, B(graph))
call("cuGraphDestroy", graph)
call("cuStreamWaitEvent", other, event, 0, gives=1)
call("cuStreamIsCapturing", other, B(status))
assert status.value == 0
call("cuMemsetD8Async", d, 1, S(16), other)
call("cuStreamSynchronize", other)
