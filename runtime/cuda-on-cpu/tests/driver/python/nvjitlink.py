"""The stand-in for nvJitLink.

The codes, and the sizes of the logs, are those of NVIDIA's library of CUDA 12.9, which runs without
a GPU. A comment states each difference.
"""
import os
import tempfile
from cuda import *

jit = C.CDLL("/nowhere/libnvJitLink.so.12")
UNRECOGNIZED, NO_ARCH, INVALID, PTX_COMPILE, NVVM, INTERNAL = 1, 2, 3, 4, 5, 6
CALLER = (HEAD + """.extern .func (.param .b32 r) one(.param .b32 x);
.visible .entry k(.param .u64 o) { .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd0, [o];
{ .param .b32 a; .param .b32 q; st.param.b32 [a], 41; call.uni (q), one, (a); ld.param.b32 %r1, [q]; }
st.global.u32 [%rd0], %r1; ret; }
""").encode()
ARCH = "-arch=sm_61"


def callee(n, linkage=".visible"):
    return (HEAD + f"""{linkage} .func (.param .b32 r) one(.param .b32 x) {{ .reg .b32 %r<2>; ld.param.u32 %r0, [x];
add.u32 %r0, %r0, {n}; st.param.b32 [r], %r0; ret; }}
""").encode()


def create(*options):
    texts = (C.c_char_p * max(1, len(options)))(*[option.encode() for option in options])
    handle = V()
    return jit.nvJitLinkCreate(B(handle), len(options), texts), handle


def log(handle, kind="Error"):
    size = S()
    assert getattr(jit, f"nvJitLinkGet{kind}LogSize")(handle, B(size)) == 0
    buffer = C.create_string_buffer(size.value + 1)
    assert getattr(jit, f"nvJitLinkGet{kind}Log")(handle, buffer) == 0
    assert len(buffer.value) == max(0, size.value - 1)
    return buffer.value.decode()


def link(options, *inputs):
    """Returns the codes of the additions and of the end, the log and the image."""
    code, handle = create(*options)
    assert code == 0, code
    codes = [jit.nvJitLinkAddData(handle, kind, data, S(len(data)), name) for kind, data, name in inputs]
    codes.append(jit.nvJitLinkComplete(handle))
    size, text, image = S(), log(handle), None
    if jit.nvJitLinkGetLinkedCubinSize(handle, B(size)) == 0:
        image = C.create_string_buffer(size.value)
        assert jit.nvJitLinkGetLinkedCubin(handle, image) == 0
    # PTX is a result of -lto -ptx only, and the end comes once.
    assert jit.nvJitLinkGetLinkedPtxSize(handle, B(size)) in (INVALID, INTERNAL)
    assert jit.nvJitLinkComplete(handle) != 0
    assert jit.nvJitLinkDestroy(B(handle)) == 0 and not handle.value
    return codes, text, image


start()
for second in (callee(1), callee(1) + b"\0"):
    for name in (b"b.ptx", None):
        codes, text, image = link([ARCH], (2, CALLER, b"a.ptx"), (2, second, name))
        assert (codes, text) == ([0, 0, 0], "")
module, function, address = V(), V(), alloc(4)
call("cuModuleLoadData", B(module), image)
call("cuModuleGetFunction", B(function), module, b"k")
launch(function, 1, 1, address)
assert words(address, 1) == [42]
# The image runs on its architecture only, like machine code.
other = link(["-arch=sm_90"], (2, callee(1), b"b"))[2]
call("cuModuleLoadData", B(module), other, gives=209)

assert link([ARCH], (2, CALLER, b"a"), (2, callee(1, ".weak"), b"b"), (2, callee(2), b"c"))[:2] == ([0, 0, 0, 0], "")
codes, text, _ = link([ARCH], (2, CALLER, b"a.ptx"))
assert (codes, text) == ([0, INTERNAL], "error   : Undefined reference to 'one' in 'a.ptx'\nERROR 1: finish\n"), text
# NVIDIA's library prints this error, and links.
codes, text, _ = link([ARCH], (2, callee(1), b"b"), (2, callee(2), b"c"))
assert codes == [0, 0, INTERNAL] and "Multiple definition of 'one' in 'c', first defined in 'b'" in text
# A rejected input leaves the session as it was.
codes, text, image = link([ARCH], (2, (HEAD + "frob").encode(), b"a.ptx"))
assert codes == [PTX_COMPILE, 0] and image and "NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (a.ptx)" in text
codes, text, _ = link(["-arch=sm_99"], (2, callee(1), b"b"))
assert (codes, len(text)) == ([PTX_COMPILE, 0], 118), text
assert link([ARCH], (2, callee(1).replace(b"sm_61", b"sm_90").replace(b"6.0", b"8.0"), b"a"))[0] == [PTX_COMPILE, 0]
assert link([ARCH], (2, b"", b"a"))[0] == [INVALID, 0]
assert link([ARCH], (3, callee(1), b"a"))[:2] == ([INVALID, 0], "ERROR 1: bad input: does not match type NVJITLINK_INPUT_LTOIRa\n")
assert link([ARCH], (99, callee(1), b"a"))[:2] == ([INVALID, 0], "unsupported input type: a\n")
assert link([ARCH], (10, callee(1), b"a"))[0] == [0, 0]
assert link([ARCH])[0] == [0]
# NVIDIA's library rejects PTX as a cubin: there it is no cubin.
assert link([ARCH], (1, callee(1), b"a"))[0] == [0, 0]
assert link([ARCH, "-lto"], (2, callee(1), b"a"))[0] == [0, NVVM]
codes, text, _ = link([ARCH, "-lto", "-ptx"], (2, callee(1), b"a"))
assert codes == [0, INVALID] and "-ptx requires that all inputs have LTOIR" in text
for option in ("-O0", "-O3", "-g", "-lineinfo", "-maxrregcount=32", "-verbose", "-time", "-ftz=true", "-prec-div=1",
               "-prec-sqrt=0", "-fma=1", "-kernels-used=k", "-variables-used=x", "-optimize-unused-variables",
               "-Xptxas=-v", "-Xnvvm=-x", "-no-cache", "-split-compile=2", "-split-compile-extended=1"):
    assert link([ARCH, option], (2, callee(1), b"a"))[0] == [0, 0], option
for options, expected in [
    ([], NO_ARCH), ([ARCH, "-frob"], UNRECOGNIZED), (["-arch=frob"], UNRECOGNIZED), ([ARCH, "-ptx"], INVALID),
    ([ARCH, "-v"], UNRECOGNIZED), ([ARCH, "-maxrregcount 32"], UNRECOGNIZED), ([ARCH, "-Xptxas -v"], UNRECOGNIZED),
    ([ARCH, "-arch=compute_61"], INVALID), (["--arch=sm_61"], UNRECOGNIZED), ([ARCH, "-opt-level=3"], UNRECOGNIZED),
]:
    code, handle = create(*options)
    assert code == expected, (options, code)
    jit.nvJitLinkDestroy(B(handle))
_, handle = create(ARCH)
assert jit.nvJitLinkAddFile(handle, 2, b"/nowhere/none.ptx") == INVALID
assert log(handle) == "no such file: /nowhere/none.ptx\n" and log(handle, "Info") == ""
with tempfile.TemporaryDirectory() as folder:
    for name, kind, data in [("one.ptx", 2, callee(3)), ("caller.ptx", 10, CALLER)]:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        assert jit.nvJitLinkAddFile(handle, kind, path.encode()) == 0
assert jit.__getattr__("__nvJitLinkComplete_12_9")(handle) == 0
# The next five crash NVIDIA's library.
assert jit.nvJitLinkGetErrorLogSize(handle, None) == INVALID
assert jit.nvJitLinkCreate(None, 0, None) == INVALID
assert jit.nvJitLinkAddData(handle, 2, None, S(1), None) == INVALID
assert jit.nvJitLinkDestroy(B(V())) == INVALID
assert jit.nvJitLinkComplete(V(12345)) == INVALID
major, minor = C.c_uint(), C.c_uint()
assert jit.nvJitLinkVersion(B(major), B(minor)) == 0 and (major.value, minor.value) == (12, 9)
