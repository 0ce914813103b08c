"""Launches in steps, as before CUDA 4: cuFuncSetBlockShape, cuParamSet*, cuLaunchGrid."""
from cuda import *

start()
f, d, stream = load(STORE.replace("st.global.u32 [o], x;", """.reg .u32 b; mov.u32 b, %ctaid.x; mad.wide.u32 o, b, 4, o;
mov.u32 b, %ntid.x; add.u32 x, x, b; st.global.u32 [o], x;"""), "k"), alloc(16), V()
call("cuFuncSetBlockShape", f, 3, 1, 1)
call("cuFuncSetBlockShape", f, 0, 1, 1, gives=1)
call("cuFuncSetSharedSize", f, 0)
call("cuParamSetv", f, 0, B(d), 8)
call("cuParamSeti", f, 8, 5)
call("cuParamSetSize", f, 12)
call("cuParamSeti", f, 64, 5, gives=1)
call("cuLaunchGrid", f, 2, 1)
call("cuCtxSynchronize")
assert words(d, 2) == [8, 8]
call("cuParamSeti", f, 8, 6)
call("cuLaunch", f)
call("cuStreamCreate", B(stream), 0)
call("cuLaunchGridAsync", f, 1, 1, stream)
call("cuStreamSynchronize", stream)
assert words(d, 2) == [9, 8]
