"""Vectors at the end of a buffer, as NVIDIA's compiler loads the last elements of an array."""
from cuda import *

start()
KERNEL = """.visible .entry k(.param .u64 p, .param .u64 q) { .reg .u64 o, i; .reg .u32 a, b, c, d; .reg .pred z;
ld.param.u64 o, [p]; ld.param.u64 i, [q]; LOAD
st.global.u32 [o], a; st.global.u32 [o+4], b; st.global.u32 [o+8], c; ret; }"""
VECTOR = "ld.global.v4.u32 {a, b, c, d}, [i+16];"
to, of = alloc(64), alloc(28)
call("cuMemcpyHtoD_v2", of, (C.c_uint32 * 7)(1, 2, 3, 4, 5, 6, 7), 28)


def run(code):
    function = load(KERNEL.replace("LOAD", code), "k")
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters(to, of), None)


# NVRTC 12.9 combines the loads of elements 4 to 6 of 7: nothing reads `d`.
run(VECTOR)
assert words(to, 3) == [5, 6, 7]
run(VECTOR.replace("d}", "_}"))
assert words(to, 3) == [5, 6, 7]
# An instruction reads `d`. A card answers 0, because it allocates 512 bytes.
run(VECTOR + "setp.eq.u32 z, d, 0; @z mov.u32 a, 9;")
call("cuCtxSynchronize", gives=700)
