"""printf, malloc and free in kernels; assertions: error 710, and the message of each thread."""
import os
import subprocess
import sys
from cuda import *

PRINT = """
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 fmt[7] = {104, 105, 32, 37, 100, 10, 0};
.visible .entry k() {
  .local .align 8 .b8 buf[8]; .reg .b64 %rd<4>; .reg .b32 %r<3>;
  mov.u64 %rd0, buf; cvta.local.u64 %rd1, %rd0; mov.u32 %r0, %tid.x; st.local.u32 [buf], %r0;
  mov.u64 %rd2, fmt; cvta.global.u64 %rd3, %rd2;
  { .param .b64 p0; .param .b64 p1; .param .b32 r; st.param.b64 [p0], %rd3; st.param.b64 [p1], %rd1;
    call.uni (r), vprintf, (p0, p1); ld.param.b32 %r1, [r]; }
  ret; }
"""
ASSERT = """
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 msg[4] = {120, 60, 57, 0};
.visible .entry k(.param .u32 n) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x;
  setp.lt.u32 %p, %r1, %r0; @%p bra OK;
  mov.u64 %rd0, msg; cvta.global.u64 %rd1, %rd0;
  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd1;
    st.param.b64 [b], %rd1; st.param.b32 [c], 7; st.param.b64 [d], %rd1; st.param.b64 [e], 1;
    call.uni __assertfail, (a, b, c, d, e); }
OK: ret; }
"""
HEAP = """
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.visible .entry get(.param .u64 o) { .reg .u64 O, M; ld.param.u64 O, [o];
  { .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); ld.param.b64 M, [r]; }
  st.u32 [M+8], 42; st.global.u64 [O], M; ret; }
.visible .entry put(.param .u64 o) { .reg .u64 O, M; .reg .u32 x; ld.param.u64 O, [o]; ld.global.u64 M, [O];
  ld.u32 x, [M+8]; st.global.u32 [O+8], x; { .param .b64 p; st.param.b64 [p], M; call free, (p); } ret; }
"""

if len(sys.argv) == 1:
    out = {name: subprocess.run([sys.executable, __file__, name], capture_output=True, text=True)
           for name in ("print", "assert", "heap")}
    for name, run in out.items():
        assert run.returncode == 0, (name, run.stdout, run.stderr)
    assert out["print"].stdout == "hi 0\nhi 1\n", out["print"].stdout
    lines = [f"x<9:7: x<9: block: [0,0,0], thread: [{t},0,0] Assertion `x<9` failed." for t in (2, 3)]
    told = [line for line in out["assert"].stderr.splitlines() if not line.startswith(("cuda-on-cpu", " "))]
    assert told == lines, out["assert"].stderr
    sys.exit()

start()
if sys.argv[1] == "print":
    launch(load(PRINT, "k"), 1, 2)
elif sys.argv[1] == "heap":
    # Memory of the heap outlives the launch.
    module, address = load(HEAP), alloc(16)
    for name in ("get", "put"):
        function = V()
        call("cuModuleGetFunction", B(function), module, name.encode())
        launch(function, 1, 1, address)
    assert words(address, 3)[2] == 42
else:
    module = load(ASSERT)
    function, address, device, now = V(), alloc(4), C.c_int(), V()
    call("cuModuleGetFunction", B(function), module, b"k")
    launch(function, 1, 4, C.c_uint(9))
    launch(function, 1, 4, C.c_uint(2), gives=710)
    # The error is sticky, except in calls that do not use the context.
    call("cuMemFree_v2", address, gives=710)
    call("cuModuleUnload", module, gives=710)
    call("cuCtxGetDevice", B(device))
    call("cuCtxGetCurrent", B(now))
    call("cuCtxPushCurrent_v2", now)
