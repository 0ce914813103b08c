"""Dynamic shared memory whose size is no multiple of a vector, as NVIDIA's compiler reads it."""
from cuda import *

start()
KERNEL = """.extern .shared .align 16 .b8 s[];
.visible .entry k(.param .u64 p) { .reg .u64 o; .reg .u32 a, b, c, d; ld.param.u64 o, [p];
st.shared.v2.u32 [s+16], {5, 6}; st.shared.u32 [s+24], 7; LOAD
st.global.u32 [o], a; st.global.u32 [o+4], b; st.global.u32 [o+8], c; ret; }"""
VECTOR = "ld.shared.v4.u32 {a, b, c, d}, [s+16];"
d = alloc(64)


def run(code):
    function = load(KERNEL.replace("LOAD", code), "k")
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 28, None, parameters(d), None)


run(VECTOR)
assert words(d, 3) == [5, 6, 7]
# A card allocates at least 128 bytes, and answers 0. The driver stops after the vector.
run("ld.shared.u32 a, [s+32]; mov.u32 b, a; mov.u32 c, a;")
call("cuCtxSynchronize", gives=700)
