"""cuGetProcAddress_v2: base names, versions, and the status of names that are not there."""
from cuda import *

start()


def look(name, version, flags=0):
    function, status = V(), C.c_int(-1)
    call("cuGetProcAddress_v2", name.encode(), B(function), version, C.c_uint64(flags), B(status))
    assert bool(function.value) == (status.value == 0), name
    return status.value, function.value


for name, version in (("cuLinkAddFile", 6050), ("cuMemcpyDtoA", 3020), ("cuMemcpyDtoA", 7000),
                      ("cuGraphInstantiate", 10000), ("cuDevicePrimaryCtxRelease", 7000), ("cuMemAlloc", 2000),
                      ("cuStreamBeginCapture", 10000), ("cuIpcOpenMemHandle", 11000), ("cuArray3DCreate", 3020)):
    assert look(name, version)[0] == 0, name
for name in ("", "cuFrobnicate", "cuMemAlloc_v2", "cuLaunchKernel_ptsz"):
    assert look(name, 12000) == (1, None), name
assert look("cuGraphExecUpdate", 12000)[1] == C.cast(cu.cuGraphExecUpdate_v2, V).value
assert look("cuMemcpyHtoD", 12000, 2)[0] == 0
function = V()
call("cuGetProcAddress_v2", b"cuFrobnicate", B(function), 12000, C.c_uint64(0), None, gives=500)
cu.cuMemcpyHtoD_v2_ptds, cu.cuLaunchKernel_ptsz, cu.cuStreamSynchronize_ptsz
