"""The linker: modules joined from memory and from files, archives, and undefined names."""
import os
import tempfile
from cuda import *

start()
CALLER = (HEAD + """.extern .func (.param .b32 r) one(.param .b32 x);
.visible .entry k(.param .u64 o) { .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd0, [o];
{ .param .b32 a; .param .b32 q; st.param.b32 [a], 41; call.uni (q), one, (a); ld.param.b32 %r1, [q]; }
st.global.u32 [%rd0], %r1; ret; }
""").encode()


def callee(n, linkage=".visible"):
    return (HEAD + f"""{linkage} .func (.param .b32 r) one(.param .b32 x) {{ .reg .b32 %r<2>; ld.param.u32 %r0, [x];
add.u32 %r0, %r0, {n}; st.param.b32 [r], %r0; ret; }}
""").encode()


def link(*inputs, gives=0, archive=False):
    log = C.create_string_buffer(500)
    names, values = (C.c_int * 2)(5, 6), (V * 2)(C.addressof(log), 500)
    state, image, size = V(), V(), S()
    call("cuLinkCreate_v2", 2, names, values, B(state))
    for i, data in enumerate(inputs):
        if isinstance(data, str):
            call("cuLinkAddFile_v2", state, 4 if archive else 1, data.encode(), 0, None, None)
        else:
            call("cuLinkAddData_v2", state, 1, data + b"\0", S(len(data) + 1), f"{i}.ptx".encode(), 0, None, None)
    call("cuLinkComplete", state, B(image), B(size), gives=gives)
    if gives:
        return log.value.decode()
    module, function, address = V(), V(), alloc(4)
    call("cuModuleLoadData", B(module), image)
    call("cuModuleGetFunction", B(function), module, b"k")
    call("cuLinkDestroy", state)
    launch(function, 1, 1, address)
    return words(address, 1)


assert link(CALLER, callee(1)) == [42]
assert link(callee(2), CALLER) == [43]
assert link(CALLER, callee(1, ".weak"), callee(3)) == [44]
assert "Undefined reference to 'one' in '0.ptx'" in link(CALLER, callee(1).replace(b"one", b"two"), gives=300)
assert "Multiple definition of 'one'" in link(CALLER, callee(1), callee(2), gives=300)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "callee.ptx")
    with open(path, "wb") as file:
        file.write(callee(1))
    assert link(CALLER, path) == [42]
    state = V()
    call("cuLinkCreate_v2", 0, None, None, B(state))
    call("cuLinkAddFile_v2", state, 1, b"/nowhere/none.ptx", 0, None, None, gives=301)
    # An archive of a PTX file and of machine code, which no name needs.
    def member(name, data):
        head = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
        return head + data + b"\n" * (len(data) % 2)
    path = os.path.join(folder, "lib.a")
    with open(path, "wb") as file:
        file.write(b"!<arch>\n" + member("a.o", b"\x7fELF machine") + member("b.ptx", callee(4)))
    assert link(CALLER, path, archive=True) == [45]
