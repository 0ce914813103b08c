"""The driver's functions by ctypes, for the scripts beside this file.

Each script asserts what NVIDIA's driver 580.159 answers on an H100, unless a comment says otherwise.
"""
import ctypes as C

cu = C.CDLL("libcuda.so.1")
HEAD = ".version 6.0\n.target sm_61\n.address_size 64\n"
V, B, S = C.c_void_p, C.byref, C.c_size_t


def code(name, *args):
    return getattr(cu, name)(*args)


def call(name, *args, gives=0):
    found = code(name, *args)
    assert found == gives, f"{name}: {found}, not {gives}"


def start():
    call("cuInit", 0)
    context = V()
    call("cuDevicePrimaryCtxRetain", B(context), 0)
    call("cuCtxSetCurrent", context)
    return context


def load(ptx, name=None):
    module = V()
    call("cuModuleLoadData", B(module), (HEAD + ptx).encode())
    if name is None:
        return module
    function = V()
    call("cuModuleGetFunction", B(function), module, name.encode())
    return function


def parameters(*args):
    return (V * max(1, len(args)))(*[C.cast(C.pointer(a), V) for a in args])


def launch(function, grid, block, *args, stream=None, gives=0):
    call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, 0, stream, parameters(*args), None)
    call("cuCtxSynchronize", gives=gives)


def alloc(size):
    address = C.c_uint64()
    call("cuMemAlloc_v2", B(address), S(size))
    return address


def words(address, count):
    out = (C.c_uint32 * count)()
    call("cuMemcpyDtoH_v2", out, address, S(4 * count))
    return list(out)


STORE = """.visible .entry k(.param .u64 p, .param .u32 v) { .reg .u64 o; .reg .u32 x; ld.param.u64 o, [p];
ld.param.u32 x, [v]; st.global.u32 [o], x; ret; }"""
