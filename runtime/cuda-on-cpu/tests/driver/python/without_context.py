"""Calls without a current context, and the primary context: retained, reset and retained again."""
import os
from cuda import *

context = start()
assert context.value < 1 << 63, "programs keep handles as signed numbers"
address, host, event, stream, value = alloc(64), V(), V(), V(), C.c_uint()
call("cuMemHostAlloc", B(host), S(64), 0)
module = load(".visible .entry k(){ret;}")
call("cuEventCreate", B(event), 0)
call("cuStreamCreate", B(stream), 1)
call("cuCtxSetCurrent", None)
call("cuPointerGetAttribute", B(value), 2, address)
assert value.value == 2
buffer = (C.c_char * 64)()
call("cuMemcpyDtoH_v2", buffer, address, S(64), gives=201)
call("cuMemcpyHtoD_v2", address, buffer, S(64), gives=201)
call("cuMemsetD8_v2", address, 0, S(64), gives=201)
function = V()
call("cuModuleGetFunction", B(function), module, b"k")
call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, None, None)
for name, arg in (("cuStreamSynchronize", (stream,)), ("cuEventRecord", (event, stream)),
                  ("cuEventSynchronize", (event,)), ("cuEventDestroy_v2", (event,)), ("cuStreamDestroy_v2", (stream,)),
                  ("cuMemFree_v2", (address,)), ("cuMemFreeHost", (host,)), ("cuModuleUnload", (module,))):
    call(name, *arg)
call("cuCtxSynchronize", gives=201)

# Reset while retained: the context is inactive, but its handle stays.
call("cuDevicePrimaryCtxReset_v2", 0)
flags, active, popped = C.c_uint(), C.c_int(7), V()
call("cuDevicePrimaryCtxGetState", 0, B(flags), B(active))
assert active.value == 0
call("cuCtxPushCurrent_v2", context)
call("cuMemAlloc_v2", B(address), S(64), gives=709)
call("cuCtxPopCurrent_v2", B(popped))
call("cuDevicePrimaryCtxRelease_v2", 0)
call("cuDevicePrimaryCtxRelease_v2", 0, gives=201)
again = V()
call("cuDevicePrimaryCtxRetain", B(again), 0)
assert again.value == context.value
call("cuCtxPushCurrent_v2", context)
call("cuMemAlloc_v2", B(address), S(64))
call("cuMemFree_v2", address)

# Peer access to oneself.
call("cuCtxEnablePeerAccess", context, 0, gives=217)
call("cuCtxEnablePeerAccess", context, 1, gives=1)
call("cuCtxDisablePeerAccess", context, gives=705)

# Allocations of more than 1 MiB begin at multiples of 2 MiB.
for size in (1, 512, 1 << 20, (1 << 20) + 1, 3710976, 64 << 20):
    for _ in range(3):
        assert alloc(size).value % ((2 << 20) if size > 1 << 20 else 512) == 0

# A forked child cannot use the driver.
child = os.fork()
if child == 0:
    count = C.c_int()
    os._exit(0 if code("cuDeviceGetCount", B(count)) == 3 and code("cuInit", 0) == 3 else 1)
assert os.waitpid(child, 0)[1] == 0

# cuCtxAttach and cuCtxDetach.
own = V()
call("cuCtxCreate_v2", B(own), 0, 0)
call("cuCtxAttach", B(own), 0)
call("cuCtxDetach", own)
call("cuCtxSynchronize")
call("cuCtxDetach", own)
