"""Kernels that wait until the host stores to pinned memory: by strong loads, and by weak loads with a fence."""
from cuda import *

start()
KERNEL = """.visible .entry k(.param .u64 flag, .param .u64 out) { .reg .u64 f, o; .reg .u32 x; .reg .pred p;
ld.param.u64 f, [flag]; ld.param.u64 o, [out]; st.volatile.global.u32 [f+4], 1;
wait: POLL setp.eq.u32 p, x, 0; @p bra wait; st.global.u32 [o], x; ret; }"""
memory, out = V(), alloc(64)
call("cuMemHostAlloc", B(memory), S(8), 0)
flags = C.cast(memory, C.POINTER(C.c_uint32))
polls = ["ld.volatile.global.u32 x, [f];", "ld.global.u32 x, [f]; membar.sys;", "membar.gl; ld.global.u32 x, [f];",
         "atom.sys.global.or.b32 x, [f], 0;"]
for value, poll in enumerate(polls, 7):
    function = load(KERNEL.replace("POLL", poll), "k")
    flags[0], flags[1] = 0, 0
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters(memory, out), None)
    # The kernel runs before the host ends its wait.
    while flags[1] == 0:
        pass
    flags[0] = value
    call("cuCtxSynchronize")
    assert words(out, 1) == [value], poll
