"""cuLibrary* and cuKernel*: modules that belong to no context."""
from cuda import *

call("cuInit", 0)
text = (HEAD + STORE + ".visible .entry other(){ret;}\n.visible .global .u32 g = 7;").encode()
library, kernel, function, module, address = V(), V(), V(), V(), C.c_uint64()
call("cuLibraryLoadData", B(library), text, None, None, 0, None, None, 0)
call("cuLibraryLoadData", B(kernel), (HEAD + "frob").encode(), None, None, 0, None, None, 0, gives=218)
count, size, name, value = C.c_uint(), S(), C.c_char_p(), C.c_int()
call("cuLibraryGetKernelCount", B(count), library)
assert count.value == 2
call("cuLibraryGetKernel", B(kernel), library, b"k")
call("cuLibraryGetKernel", B(function), library, b"none", gives=500)
call("cuKernelGetName", B(name), kernel)
assert name.value == b"k"
call("cuKernelGetFunction", B(function), kernel, gives=201)
start()
call("cuKernelGetFunction", B(function), kernel)
address = alloc(4)
# A kernel is launched as a function is.
for handle, number in ((function, 3), (kernel, 4)):
    launch(handle, 1, 1, address, C.c_uint(number))
    assert words(address, 1) == [number]
call("cuKernelGetAttribute", B(value), 0, kernel, 0)
assert value.value == 1024
offset = S()
call("cuKernelGetParamInfo", kernel, S(1), B(offset), B(size))
assert (offset.value, size.value) == (8, 4)
call("cuLibraryGetGlobal", B(address), B(size), library, b"g")
assert size.value == 4 and words(address, 1) == [7]
kernels, back = (V * 2)(), V()
call("cuLibraryEnumerateKernels", kernels, 2, library)
assert kernels[0] == kernel.value
call("cuKernelGetLibrary", B(back), kernel)
assert back.value == library.value
call("cuLibraryGetModule", B(module), library)
call("cuLibraryUnload", library)
call("cuLibraryUnload", library, gives=400)
call("cuKernelGetName", B(name), kernel, gives=400)
