//! Faulty host programs: each gets the error code of the real driver and keeps running, and the log
//! has the reason.

use super::common::{self, PTX, inside};
use super::raw::{allocate, context, function, gives, launch, load, own_context};
use cudarc::driver::sys::{self, CUjit_option, CUresult, CUresult::*};
use std::ffi::{CString, c_void};
use std::ptr::{self, null_mut};

/// Runs `body` inside, and checks that the log contains each text.
fn logs(test: &str, settings: &[(&str, &str)], expected: &[&str], body: impl FnOnce()) -> Option<String> {
    let log = inside!(test, settings, body)?;
    for text in expected {
        assert!(log.contains(text), "`{text}` is not in:\n{log}");
    }
    Some(log)
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    let expected = ["cuDeviceGet: CUDA_ERROR_NOT_INITIALIZED", "cuMemAlloc_v2: CUDA_ERROR_INVALID_CONTEXT"];
    logs("calls_in_the_wrong_order_are_refused", &[], &expected, || {
        let (mut device, mut address, mut version) = (0, 0, 0);
        gives!(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&mut device, 0));
        gives!(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&mut address, 4));
        gives!(CUDA_SUCCESS, cuDriverGetVersion(&mut version));
        assert!(version >= 12000);
        gives!(CUDA_ERROR_INVALID_VALUE, cuInit(1));
        gives!(CUDA_SUCCESS, cuInit(0));
        gives!(CUDA_SUCCESS, cuInit(0));
        gives!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, 1));
        gives!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, -1));
        gives!(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&mut address, 4));
        gives!(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
        gives!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(null_mut()));
        gives!(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
        let mut current = null_mut();
        gives!(CUDA_SUCCESS, cuCtxGetCurrent(&mut current));
        assert!(current.is_null());
    });
}

#[test]
fn invalid_handles_are_refused() {
    let expected = [
        "cuStreamSynchronize: CUDA_ERROR_INVALID_HANDLE: the stream 0x",
        "is not a valid stream",
        "cuLaunchKernel: CUDA_ERROR_INVALID_HANDLE: the function is null",
        "cuModuleUnload: CUDA_ERROR_INVALID_HANDLE: the module is null",
    ];
    logs("invalid_handles_are_refused", &[], &expected, || {
        let context = context();
        let foreign = ptr::without_provenance_mut::<c_void>(0x5555_1234_5678);
        let (mut stream, mut event) = (null_mut(), null_mut());
        gives!(CUDA_SUCCESS, cuStreamCreate(&mut stream, 0));
        gives!(CUDA_SUCCESS, cuEventCreate(&mut event, 0));
        for wrong in [foreign, event.cast(), context.cast()] {
            gives!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(wrong.cast()));
            gives!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(wrong.cast()));
            gives!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, wrong.cast()));
        }
        for wrong in [null_mut(), foreign, stream.cast()] {
            gives!(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(wrong.cast()));
            gives!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(wrong.cast()));
            let mut function = null_mut();
            gives!(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&mut function, wrong.cast(), c"x".as_ptr()));
            assert_eq!(launch(wrong.cast(), &mut []), CUDA_ERROR_INVALID_HANDLE);
            gives!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(wrong.cast()));
            gives!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(wrong.cast()));
            gives!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(wrong.cast(), null_mut()));
        }
        gives!(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
        gives!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
        gives!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
        gives!(CUDA_SUCCESS, cuEventDestroy_v2(event));
        gives!(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(event));
        // A new object in the same slot has another handle.
        let mut again = null_mut();
        gives!(CUDA_SUCCESS, cuStreamCreate(&mut again, 0));
        gives!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(again));
    });
}

#[test]
fn null_result_pointers_are_refused() {
    logs("null_result_pointers_are_refused", &[], &["a pointer to a result is null"], || {
        gives!(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(null_mut()));
        context();
        gives!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(null_mut()));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(null_mut(), 4));
        gives!(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(null_mut(), 0));
        gives!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(null_mut(), c"".as_ptr().cast()));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(null_mut(), 4, 0));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(ptr::null()));
        let (mut module, mut function) = (null_mut(), null_mut());
        gives!(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&mut module, ptr::null()));
        module = load(PTX).1;
        gives!(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&mut function, module, ptr::null()));
        gives!(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&mut function, module, c"none".as_ptr()));
        let (mut address, mut bytes) = (0, 0);
        gives!(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&mut address, &mut bytes, module, c"none".as_ptr()));
    });
}

#[test]
fn invalid_addresses_are_refused() {
    let expected = [
        "cuMemcpyHtoD_v2: CUDA_ERROR_INVALID_VALUE: 5 bytes at byte 0 exceed the allocation of 4 bytes at 0x",
        "cuMemFree_v2: CUDA_ERROR_INVALID_VALUE: no allocation that can be freed in this way begins at 0x",
        "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: the device has no",
    ];
    logs("invalid_addresses_are_refused", &[("CUDA_ON_CPU_MEMORY", "1M")], &expected, || {
        context();
        let (mut host, mut address) = ([0u8; 16], 0);
        let at = allocate(4);
        let to = host.as_mut_ptr().cast::<c_void>();
        for wrong in [0, 64, at + 4, at - 1, u64::MAX, u64::MAX - 3, to.addr() as u64] {
            gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(wrong, to, 4));
            gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(to, wrong, 4));
            gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(at, wrong, 4));
            gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoHAsync_v2(to, wrong, 4, null_mut()));
            gives!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(wrong, 1, 4));
            gives!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(wrong, 1, 1, null_mut()));
        }
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(at, to, 5));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(at, to, usize::MAX));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(at, ptr::null(), 4));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(at, 1, usize::MAX));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(at + 2, 1, 0x10));
        gives!(CUDA_SUCCESS, cuMemcpyHtoD_v2(at, to, 0));
        for wrong in [at + 1, 12, u64::MAX] {
            gives!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(wrong));
        }
        gives!(CUDA_SUCCESS, cuMemFree_v2(0));
        gives!(CUDA_SUCCESS, cuMemFree_v2(at));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(at));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(at, to, 4));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&mut address, 0));
        for much in [(1 << 20) + 1, 1 << 40, usize::MAX] {
            gives!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&mut address, much));
        }
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(to));
        gives!(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(to));
        gives!(CUDA_SUCCESS, cuMemHostRegister_v2(to, 16, 0));
        gives!(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(to, 4, 0));
        gives!(CUDA_SUCCESS, cuMemHostUnregister(to));
        // All memory can be allocated, and again after it is freed.
        for _ in 0..3 {
            gives!(CUDA_SUCCESS, cuMemFree_v2(allocate(1 << 20)));
        }
        // Stream-ordered memory.
        let ordered = allocate(4);
        gives!(CUDA_SUCCESS, cuMemFreeAsync(ordered, null_mut()));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(ordered, null_mut()));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(ordered));
    });
}

#[test]
fn invalid_modules_are_refused() {
    let expected = ["cuModuleLoadData: CUDA_ERROR_INVALID_PTX: ptx error: line 4", "machine code"];
    logs("invalid_modules_are_refused", &[], &expected, || {
        context();
        let head = ".version 6.0\n.target sm_61\n.address_size 64\n";
        for (text, code) in [
            ("", CUDA_ERROR_INVALID_PTX),
            ("int main() {}", CUDA_ERROR_INVALID_PTX),
            (&format!("{head}.visible .entry k() {{ add.f33 %f1, %f2; }}"), CUDA_ERROR_INVALID_PTX),
            (&head.replace("sm_61", "sm_90").replace("6.0", "7.8"), CUDA_ERROR_INVALID_PTX),
            (&head.replace("6.0", "99.0"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
            ("\x7fELF\x02\x01\x01", CUDA_ERROR_NO_BINARY_FOR_GPU),
        ] {
            assert_eq!(load(text).0, code, "{text}");
        }
        let wrong = format!("{head}.visible .entry k() {{\n    add.f33 %f1, %f2;\n}}");
        let (code, mut module, log) = load_with_log(&wrong);
        assert_eq!(code, CUDA_ERROR_INVALID_PTX);
        assert!(log.contains("line 5") && log.contains("f33"), "{log}");
        // Shared arrays that exceed 32 bits, alone and together.
        for (declared, used) in
            [(".shared .align 64 .b8 a[4294967295];", "a"), (".shared .b8 b[4294967290], a[64];", "b")]
        {
            let body = format!("{{ .reg .u64 %x; mov.u64 %x, a; mov.u64 %x, {used}; ret; }}");
            let text = format!("{head}{declared}\n.visible .entry k() {body}");
            assert_eq!(load(&text).0, CUDA_ERROR_INVALID_PTX, "{declared}");
        }
        gives!(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&mut module, c"/nowhere/at.all".as_ptr()));
        let file = common::folder("modules").join("kernels.ptx");
        std::fs::write(&file, PTX).unwrap();
        let file = CString::new(file.to_str().unwrap()).unwrap();
        gives!(CUDA_SUCCESS, cuModuleLoad(&mut module, file.as_ptr()));
        gives!(CUDA_SUCCESS, cuModuleUnload(module));
    });
}

/// Modules with the kernel `k`: declarations, directives and a body. The codes are those of the
/// load and of a launch of 32 threads with NVIDIA's driver 580 on an H200.
const MODULES: [(&str, &str, &str, CUresult, CUresult); 25] = [
    (".extern .func f();", "", "call f;", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    (".visible .func f();", "", "call f;", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    (".weak .func f();", "", "call f;", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    (".extern .func f();\n.func h() { call f; ret; }", "", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    (".extern .func f();", "", "", CUDA_SUCCESS, CUDA_SUCCESS),
    (".extern .global .u32 g;", "", "ld.global.u32 r, [g];", CUDA_SUCCESS, CUDA_SUCCESS),
    (".extern .const .u32 g;", "", "ld.const.u32 r, [g];", CUDA_SUCCESS, CUDA_SUCCESS),
    (".extern .global .u32 g[];", "", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    (".extern .const .u32 g[];", "", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    (".const .b8 c[65536];", "", "ld.const.u8 r, [c];", CUDA_SUCCESS, CUDA_SUCCESS),
    (".const .b8 c[65537];", "", "ld.const.u8 r, [c];", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    (".shared .b8 s[49152];", "", "st.shared.u8 [s], 1;", CUDA_SUCCESS, CUDA_SUCCESS),
    (".shared .b8 s[232449];", "", "st.shared.u8 [s], 1;", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    ("", ".maxnreg 0", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    ("", ".maxnreg 1", "", CUDA_SUCCESS, CUDA_SUCCESS),
    ("", ".maxntid 0", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    ("", ".maxntid 32, 0", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    ("", ".reqntid 0", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    ("", ".minnctapersm 0", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    ("", ".maxntid 32 .reqntid 64", "", CUDA_ERROR_INVALID_PTX, CUDA_SUCCESS),
    ("", ".maxntid 2000", "", CUDA_SUCCESS, CUDA_SUCCESS),
    ("", ".maxntid 16", "", CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE),
    ("", ".reqntid 64", "", CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE),
    ("", "", ".local .b8 a[65536]; st.local.u8 [a], 1;", CUDA_SUCCESS, CUDA_SUCCESS),
    ("", "", ".local .b8 a[524288]; st.local.u8 [a], 1;", CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE),
];

/// Loads PTX, and also returns the log of errors.
fn load_with_log(text: &str) -> (CUresult, sys::CUmodule, String) {
    let (text, mut log, mut module) = (CString::new(text).unwrap(), [b'?'; 256], null_mut());
    let mut names = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast(), ptr::without_provenance_mut::<c_void>(log.len())];
    let (names, slots) = (names.as_mut_ptr(), values.as_mut_ptr());
    // SAFETY: the text ends with NUL, and the log has room for its size.
    let code = unsafe { sys::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 2, names, slots) };
    let written = std::ffi::CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap();
    assert_eq!(values[1].addr(), if written.is_empty() { 0 } else { written.len() + 1 });
    (code, module, written.to_string())
}

#[test]
fn modules_are_refused_as_by_nvidias_driver() {
    let expected = ["cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: ptx fatal: Unresolved extern function 'f'"];
    logs("modules_are_refused_as_by_nvidias_driver", &[], &expected, || {
        context();
        let head = ".version 6.0\n.target sm_61\n.address_size 64";
        for (declarations, directives, body, code, launched) in MODULES {
            let entry = format!(".visible .entry k() {directives} {{ .reg .b32 r; {body} ret; }}");
            let text = format!("{head}\n{declarations}\n{entry}");
            let (loaded, module, log) = load_with_log(&text);
            assert_eq!(loaded, code, "{text}");
            assert_eq!(log.is_empty(), code == CUDA_SUCCESS, "{log}\n{text}");
            if loaded != CUDA_SUCCESS {
                continue;
            }
            let mut function = null_mut();
            gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
            let (parameters, extra) = (null_mut(), null_mut());
            // SAFETY: the kernel has no parameters.
            let code = unsafe { sys::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, null_mut(), parameters, extra) };
            assert_eq!(code, launched, "{text}");
            gives!(CUDA_SUCCESS, cuCtxSynchronize());
        }
        for (bytes, code) in [(4352, CUDA_SUCCESS), (4353, CUDA_ERROR_INVALID_PTX)] {
            let text = format!("{head}\n.visible .entry k(.param .b8 p[{bytes}]) {{ ret; }}");
            assert_eq!(load(&text).0, code, "{bytes}");
        }
        // A variable that no module defines is zero at first.
        let text = format!("{head}\n.extern .global .u32 g;\n.visible .entry k() {{ ret; }}");
        let ((code, module), mut address, mut bytes, mut value) = (load(&text), 0, 0, 7u32);
        assert_eq!(code, CUDA_SUCCESS);
        gives!(CUDA_SUCCESS, cuModuleGetGlobal_v2(&mut address, &mut bytes, module, c"g".as_ptr()));
        gives!(CUDA_SUCCESS, cuMemcpyDtoH_v2(ptr::from_mut(&mut value).cast(), address, 4));
        assert_eq!((bytes, value), (4, 0));
    });
}

#[test]
fn invalid_launches_are_refused() {
    logs("invalid_launches_are_refused", &[], &["cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: `small`"], || {
        context();
        let (empty, small, store, sum) = (function("empty"), function("small"), function("store"), function("sum"));
        let shape = |f, grid: [u32; 3], block: [u32; 3], shared| {
            let ([a, b, c], [x, y, z]) = (grid, block);
            // SAFETY: the kernel has no parameters.
            unsafe { sys::cuLaunchKernel(f, a, b, c, x, y, z, shared, null_mut(), null_mut(), null_mut()) }
        };
        let one = [1, 1, 1];
        assert_eq!(shape(empty, one, one, 0), CUDA_SUCCESS);
        for (grid, block, shared) in [
            // The number of threads exceeds 64 bits.
            ([1, 1, 1], [2, u32::MAX, u32::MAX], 0),
            ([0, 1, 1], one, 0),
            (one, [1, 0, 1], 0),
            (one, [1025, 1, 1], 0),
            (one, [32, 33, 1], 0),
            (one, [1, 1, 65], 0),
            ([1, 65536, 1], one, 0),
            ([1 << 31, 1, 1], one, 0),
            (one, one, (48 << 10) + 1),
            (one, one, u32::MAX),
        ] {
            assert_eq!(shape(empty, grid, block, shared), CUDA_ERROR_INVALID_VALUE, "{grid:?} {block:?} {shared}");
        }
        assert_eq!(shape(small, one, [64, 1, 1], 0), CUDA_SUCCESS);
        assert_eq!(shape(small, one, [65, 1, 1], 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(shape(store, one, one, 0), CUDA_ERROR_INVALID_VALUE, "it has parameters");
        let mut nothing = [null_mut(); 2];
        // SAFETY: both addresses are null.
        let code =
            unsafe { sys::cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, null_mut(), nothing.as_mut_ptr(), null_mut()) };
        assert_eq!(code, CUDA_ERROR_INVALID_VALUE);
        let mut value = 0;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        gives!(CUDA_SUCCESS, cuFuncGetAttribute(&mut value, attribute, sum));
        assert_eq!(value, 48 << 10);
        gives!(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(sum, attribute, (48 << 10) + 1));
        gives!(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(sum, attribute, -1));
        gives!(CUDA_SUCCESS, cuCtxSynchronize());
    });
}

/// Causes a fault in a kernel, and checks the code that all later calls return.
fn faults(test: &str, settings: &[(&str, &str)], expected: &str, code: CUresult, run: impl FnOnce()) -> Option<String> {
    logs(test, settings, &[expected], || {
        let context = own_context();
        let held = allocate(4);
        run();
        let (mut address, mut host) = (0, 0u32);
        for _ in 0..2 {
            gives!(code, cuCtxSynchronize());
            gives!(code, cuMemAlloc_v2(&mut address, 4));
            gives!(code, cuMemcpyDtoH_v2(ptr::from_mut(&mut host).cast(), held, 4));
            gives!(code, cuStreamSynchronize(null_mut()));
        }
        // Destroying the context clears the error, and a new context works.
        gives!(CUDA_SUCCESS, cuCtxDestroy_v2(context));
        own_context();
        let at = allocate(4);
        assert_eq!(launch(function("store"), &mut [at, 5]), CUDA_SUCCESS);
        gives!(CUDA_SUCCESS, cuMemcpyDtoH_v2(ptr::from_mut(&mut host).cast(), at, 4));
        assert_eq!(host, 5);
    })
}

#[test]
fn a_wild_store_loses_the_context() {
    let expected = "CUDA_ERROR_ILLEGAL_ADDRESS: kernel `store`\n    error[out-of-bounds]: stores 4";
    faults("a_wild_store_loses_the_context", &[], expected, CUDA_ERROR_ILLEGAL_ADDRESS, || {
        // Host memory is inaccessible to the device.
        let mut host = 1u32;
        let address = ptr::from_mut(&mut host).expose_provenance() as u64;
        assert_eq!(launch(function("store"), &mut [address, 5]), CUDA_SUCCESS);
        gives!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
        assert_eq!(host, 1);
    });
}

#[test]
fn a_store_past_the_end_loses_the_context() {
    let expected = "0 bytes past the end of `0x";
    let log = faults("a_store_past_the_end_loses_the_context", &[], expected, CUDA_ERROR_ILLEGAL_ADDRESS, || {
        let (at, _next) = (allocate(64), allocate(64));
        assert_eq!(launch(function("store"), &mut [at + 64, 5]), CUDA_SUCCESS);
    });
    let Some(log) = log else { return };
    let told = &log[log.find("cuda-on-cpu: in the stream").unwrap()..];
    let lines = told.lines().enumerate().take_while(|(index, line)| *index == 0 || line.starts_with("    "));
    let block: Vec<&str> = lines.map(|(_, line)| line).collect();
    let block = format!("```text\n{}\n```", block.join("\n"));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-dsl/docs/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&block), "{page} must show this:\n{block}");
}

#[test]
fn a_store_to_freed_memory_loses_the_context() {
    let expected = "CUDA_ERROR_ILLEGAL_ADDRESS";
    faults("a_store_to_freed_memory_loses_the_context", &[], expected, CUDA_ERROR_ILLEGAL_ADDRESS, || {
        // An access through an address stored in memory, which is not a parameter of the launch.
        let (holder, freed) = (allocate(8), allocate(64));
        gives!(CUDA_SUCCESS, cuMemcpyHtoD_v2(holder, ptr::from_ref(&freed).cast(), 8));
        let behind = function("store_behind");
        assert_eq!(launch(behind, &mut [holder, 5]), CUDA_SUCCESS);
        gives!(CUDA_SUCCESS, cuCtxSynchronize());
        gives!(CUDA_SUCCESS, cuMemFree_v2(freed));
        assert_eq!(launch(behind, &mut [holder, 5]), CUDA_SUCCESS);
    });
}

#[test]
fn a_misaligned_store_loses_the_context() {
    let expected = "CUDA_ERROR_MISALIGNED_ADDRESS";
    faults("a_misaligned_store_loses_the_context", &[], expected, CUDA_ERROR_MISALIGNED_ADDRESS, || {
        assert_eq!(launch(function("store"), &mut [allocate(64) + 2, 5]), CUDA_SUCCESS);
    });
}

#[test]
fn a_trap_loses_the_context() {
    faults("a_trap_loses_the_context", &[], "CUDA_ERROR_LAUNCH_FAILED", CUDA_ERROR_LAUNCH_FAILED, || {
        assert_eq!(launch(function("stop"), &mut []), CUDA_SUCCESS);
    });
}

/// Checks a recursion whose frames have 256 bytes of local variables each.
#[test]
fn a_recursion_beyond_the_limit_loses_the_context() {
    let text = ".version 6.0\n.target sm_61\n.address_size 64
        .func (.param .b32 o) f(.param .b32 n) { .reg .b32 r, s, t; .reg .pred p; .local .align 4 .b8 a[256];
        ld.param.b32 r, [n]; and.b32 s, r, 63; mov.u32 t, a; mad.lo.u32 t, s, 4, t; st.local.b32 [t], r;
        setp.eq.u32 p, r, 0; @p bra E; sub.u32 s, r, 1; { .param .b32 u; .param .b32 v; st.param.b32 [u], s;
        call (v), f, (u); ld.param.b32 s, [v]; } E: ld.local.b32 r, [t]; add.u32 r, r, s; st.param.b32 [o], r; ret; }
        .visible .entry k(.param .u64 out, .param .u32 depth) { .reg .b64 q; .reg .b32 r; ld.param.u64 q, [out];
        ld.param.u32 r, [depth]; { .param .b32 u; .param .b32 v; st.param.b32 [u], r; call (v), f, (u);
        ld.param.b32 r, [v]; } st.global.u32 [q], r; ret; }";
    let (test, code) = ("a_recursion_beyond_the_limit_loses_the_context", CUDA_ERROR_HARDWARE_STACK_ERROR);
    faults(test, &[], "the limit of the stack is 1024; raise CU_LIMIT_STACK_SIZE", code, || {
        let (loaded, module) = load(text);
        assert_eq!(loaded, CUDA_SUCCESS);
        let (mut function, out, mut sum) = (null_mut(), allocate(4), 0u32);
        gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
        for (limit, depth, expected) in [(1024, 2, 3), (8192, 29, 435)] {
            gives!(CUDA_SUCCESS, cuCtxSetLimit(sys::CUlimit::CU_LIMIT_STACK_SIZE, limit));
            assert_eq!(launch(function, &mut [out, depth]), CUDA_SUCCESS);
            gives!(CUDA_SUCCESS, cuMemcpyDtoH_v2(ptr::from_mut(&mut sum).cast(), out, 4));
            assert_eq!(sum, expected);
        }
        gives!(CUDA_SUCCESS, cuCtxSetLimit(sys::CUlimit::CU_LIMIT_STACK_SIZE, 1024));
        assert_eq!(launch(function, &mut [out, 4]), CUDA_SUCCESS);
    });
}

#[test]
fn an_endless_kernel_is_stopped() {
    let fuel = [("CUDA_ON_CPU_FUEL", "100000")];
    let expected = "CUDA_ERROR_LAUNCH_TIMEOUT";
    faults("an_endless_kernel_is_stopped", &fuel, expected, CUDA_ERROR_LAUNCH_TIMEOUT, || {
        assert_eq!(launch(function("endless"), &mut []), CUDA_SUCCESS);
    });
}

#[test]
fn unsupported_and_unknown_functions_are_refused() {
    let expected =
        ["cuMipmappedArrayCreate: CUDA_ERROR_NOT_SUPPORTED: the function is not supported: textures have one level"];
    logs("unsupported_and_unknown_functions_are_refused", &[], &expected, || {
        context();
        let mut array = null_mut();
        gives!(CUDA_ERROR_NOT_SUPPORTED, cuMipmappedArrayCreate(&mut array, ptr::null(), 1));
        let mut found = null_mut();
        gives!(CUDA_ERROR_NOT_FOUND, cuGetProcAddress(c"cuFrobnicate".as_ptr(), &mut found, 12000, 0));
        assert!(found.is_null());
        gives!(CUDA_SUCCESS, cuGetProcAddress(c"cuMemAlloc".as_ptr(), &mut found, 12000, 0));
        assert!(!found.is_null());
        let mut text = ptr::null();
        gives!(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &mut text));
        // SAFETY: the text is the driver's.
        assert_eq!(unsafe { std::ffi::CStr::from_ptr(text) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
    });
}

#[test]
fn destroyed_contexts_are_reported() {
    logs("destroyed_contexts_are_reported", &[], &["CUDA_ERROR_CONTEXT_IS_DESTROYED"], || {
        let context = own_context();
        let (mut address, mut stream) = (0, null_mut());
        gives!(CUDA_SUCCESS, cuStreamCreate(&mut stream, 0));
        let used = context.addr();
        // The context is current on another thread as well.
        let (told, tell) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let mut address = 0;
                gives!(CUDA_SUCCESS, cuCtxSetCurrent(ptr::without_provenance_mut(used)));
                gives!(CUDA_SUCCESS, cuMemAlloc_v2(&mut address, 4));
                told.send(()).unwrap();
                // SAFETY: the result pointer is valid.
                while let CUDA_SUCCESS = unsafe { sys::cuMemAlloc_v2(&mut address, 4) } {}
                gives!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&mut address, 4));
            });
            tell.recv().unwrap();
            gives!(CUDA_SUCCESS, cuCtxDestroy_v2(context));
            other.join().unwrap();
        });
        gives!(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&mut address, 4));
        gives!(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(context));
        gives!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    });
}

#[test]
fn all_checks_can_be_enabled() {
    // A fault that a GPU does not detect: a load of uninitialized shared memory.
    let text = ".version 6.0\n.target sm_61\n.address_size 64\n.shared .align 4 .b8 s[4];\n\
                .visible .entry k(.param .u64 out) {\n .reg .u32 %n;\n .reg .u64 %a;\n ld.param.u64 %a, [out];\n \
                ld.shared.u32 %n, [s];\n st.global.u32 [%a], %n;\n ret;\n}";
    let run = |code| {
        own_context();
        let (loaded, module) = load(text);
        assert_eq!(loaded, CUDA_SUCCESS);
        let mut function = null_mut();
        gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
        assert_eq!(launch(function, &mut [allocate(4)]), CUDA_SUCCESS);
        gives!(code, cuCtxSynchronize());
    };
    let all = [("CUDA_ON_CPU_CHECKS", "all")];
    logs("all_checks_can_be_enabled", &all, &["error[uninitialized-shared]"], || run(CUDA_ERROR_LAUNCH_FAILED));
}
