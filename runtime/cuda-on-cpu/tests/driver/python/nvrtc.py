"""The stand-in for NVRTC, with a library of that name in the folder of the first argument.

`python3 nvrtc.py FOLDER` asserts what NVIDIA's library answers, apart from the cubin, which is PTX.
"""
import os
import sys
from cuda import *

path = os.path.join(sys.argv[1], "libnvrtc.so.12")
try:
    C.CDLL(os.path.join(sys.argv[1], "libnvrtc.so.11"))
    raise SystemExit("a missing library was opened")
except OSError:
    pass
# A program that looks whether the library is loaded finds none before it opens the library.
NOLOAD = 4
for name in ("libnvrtc.so.12", path):
    try:
        C.CDLL(name, mode=NOLOAD)
        raise SystemExit(f"{name} was open before")
    except OSError:
        pass
rtc = C.CDLL(path, mode=os.RTLD_GLOBAL)
C.CDLL(path, mode=NOLOAD)
major, minor = C.c_int(), C.c_int()
assert rtc.nvrtcVersion(B(major), B(minor)) == 0 and (major.value, minor.value) == (77, 5)


def compile(ptx, *options):
    program, size = V(), S()
    assert rtc.nvrtcCreateProgram(B(program), ptx.encode(), b"k.cu", 0, None, None) == 0
    texts = (C.c_char_p * max(1, len(options)))(*[option.encode() for option in options])
    assert rtc.nvrtcCompileProgram(program, len(options), texts) == 0
    results = []
    for kind in ("PTX", "CUBIN"):
        assert getattr(rtc, f"nvrtcGet{kind}Size")(program, B(size)) == 0
        buffer = C.create_string_buffer(size.value + 1)
        assert getattr(rtc, f"nvrtcGet{kind}")(program, buffer) == 0
        results.append(buffer.raw[:size.value])
    assert rtc.nvrtcDestroyProgram(B(program)) == 0 and not program.value
    return results


KERNEL = HEAD + STORE
for options, seen in [
    (("--gpu-architecture=sm_61", "-DN=1"), ("--gpu-architecture=compute_61", "-DN=1")),
    (("-arch", "sm_61"), ("-arch", "compute_61")),
]:
    ptx, cubin = compile(KERNEL, *options)
    assert ptx == cubin == (KERNEL + "".join(f"\n// {option}" for option in seen)).encode() + b"\0", ptx
    # Without a real architecture there is no cubin.
    assert compile(KERNEL, *seen) == [ptx, b""]
start()
module, function, address = V(), V(), alloc(4)
call("cuModuleLoadData", B(module), cubin)
call("cuModuleGetFunction", B(function), module, b"k")
launch(function, 1, 1, address, C.c_uint(9))
assert words(address, 1) == [9]
