//! Tests of the leak check: objects that still exist at the end of a process.

use super::common::{self, PTX, inside};
use super::raw::{self, gives};
use cudarc::driver::sys::{self, CUresult::*};
use std::ffi::{CString, c_char, c_uint, c_void};
use std::process::Command;
use std::ptr::null_mut;

/// Creates one object of each type that the check reports, and destroys the objects if `frees`.
fn every_object(frees: bool) {
    let primary = raw::context();
    let (mut pinned, mut managed, mut ordered, mut registered) = (null_mut(), 0, 0, vec![0u8; 4096]);
    let memory = raw::allocate(100);
    gives!(CUDA_SUCCESS, cuMemHostAlloc(&mut pinned, 200, 0));
    gives!(CUDA_SUCCESS, cuMemAllocManaged(&mut managed, 300, 1));
    let (stream, event) = (raw::stream(), raw::event());
    gives!(CUDA_SUCCESS, cuMemAllocAsync(&mut ordered, 400, stream));
    gives!(CUDA_SUCCESS, cuMemHostRegister_v2(registered.as_mut_ptr().cast(), 4096, 0));
    let (mut graph, mut executable, mut array) = (null_mut(), null_mut(), null_mut());
    gives!(CUDA_SUCCESS, cuGraphCreate(&mut graph, 0));
    let mut node = null_mut();
    // SAFETY: zeros are a valid description without a pool.
    let mut of_graph: sys::CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    of_graph.poolProps.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    of_graph.poolProps.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    of_graph.bytesize = 500;
    gives!(CUDA_SUCCESS, cuGraphAddMemAllocNode(&mut node, graph, null_mut(), 0, &mut of_graph));
    gives!(CUDA_SUCCESS, cuGraphInstantiateWithFlags(&mut executable, graph, 0));
    let description = sys::CUDA_ARRAY_DESCRIPTOR {
        Width: 8,
        Height: 4,
        Format: sys::CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        NumChannels: 1,
    };
    gives!(CUDA_SUCCESS, cuArrayCreate_v2(&mut array, &description));
    let (_, module) = raw::load(PTX);
    let library = load_library();
    let own = raw::own_context();
    let in_own = raw::allocate(600);
    gives!(CUDA_SUCCESS, cuCtxSetCurrent(primary));
    if !frees {
        // The memory stays registered until the end of the process.
        std::mem::forget(registered);
        return;
    }
    gives!(CUDA_SUCCESS, cuMemFree_v2(memory));
    gives!(CUDA_SUCCESS, cuMemFreeHost(pinned));
    gives!(CUDA_SUCCESS, cuMemFree_v2(managed));
    gives!(CUDA_SUCCESS, cuMemFreeAsync(ordered, stream));
    gives!(CUDA_SUCCESS, cuMemHostUnregister(registered.as_mut_ptr().cast()));
    gives!(CUDA_SUCCESS, cuGraphExecDestroy(executable));
    gives!(CUDA_SUCCESS, cuGraphDestroy(graph));
    gives!(CUDA_SUCCESS, cuArrayDestroy(array));
    gives!(CUDA_SUCCESS, cuStreamDestroy_v2(stream));
    gives!(CUDA_SUCCESS, cuEventDestroy_v2(event));
    gives!(CUDA_SUCCESS, cuModuleUnload(module));
    unload_library(library);
    // The memory of a destroyed context is freed with the context.
    assert_ne!(in_own, 0);
    gives!(CUDA_SUCCESS, cuCtxDestroy_v2(own));
}

/// Loads the tests' PTX as a library. cudarc has no binding for CUDA 11.
fn load_library() -> *mut c_void {
    type Load = unsafe extern "C" fn(
        *mut *mut c_void,
        *const c_char,
        *mut c_void,
        *mut c_void,
        c_uint,
        *mut c_void,
        *mut c_void,
        c_uint,
    ) -> sys::CUresult;
    let (mut library, text) = (null_mut(), CString::new(PTX).unwrap());
    // SAFETY: the type is the signature of the function in cuda.h, and the text ends with NUL.
    unsafe {
        let load: Load = *sys::culib().get(b"cuLibraryLoadData\0").unwrap();
        let code = load(&mut library, text.as_ptr(), null_mut(), null_mut(), 0, null_mut(), null_mut(), 0);
        assert_eq!(code, CUDA_SUCCESS);
    }
    library
}

/// Unloads a library.
fn unload_library(library: *mut c_void) {
    // SAFETY: the type is the signature of the function in cuda.h.
    unsafe {
        let unload: unsafe extern "C" fn(*mut c_void) -> sys::CUresult =
            *sys::culib().get(b"cuLibraryUnload\0").unwrap();
        assert_eq!(unload(library), CUDA_SUCCESS);
    }
}

/// Returns the sentences of the leaks in a summary.
fn leaks(printed: &str) -> Vec<&str> {
    printed.lines().filter_map(|line| line.trim().strip_prefix("error[leak]: ")).collect()
}

#[test]
fn every_leaked_object_is_reported() {
    let json = common::folder("leaks").join("found.json");
    let sarif = common::folder("leaks").join("found.sarif");
    let settings = [
        ("CUDA_ON_CPU_LEAK_CHECK", "full"),
        ("CUDA_ON_CPU_JSON", json.to_str().unwrap()),
        ("CUDA_ON_CPU_SARIF", sarif.to_str().unwrap()),
    ];
    let Some(printed) = inside!("every_leaked_object_is_reported", &settings, || every_object(false)) else { return };
    let expected = [
        "an allocation of device memory was not freed: 100 bytes",
        "an allocation of page-locked memory was not freed: 200 bytes",
        "an allocation of managed memory was not freed: 300 bytes",
        "a stream was not destroyed",
        "an event was not destroyed",
        "an allocation from a pool was not freed: 400 bytes",
        "a range of registered memory was not unregistered: 4096 bytes",
        "a graph was not destroyed",
        "an executable graph was not destroyed",
        "an array was not destroyed: 32 bytes",
        "a context was not destroyed",
        "an allocation of device memory was not freed: 600 bytes",
    ];
    assert_eq!(leaks(&printed), expected, "{printed}");
    // cuInit, cuDevicePrimaryCtxRetain and cuCtxSetCurrent precede.
    assert!(printed.contains("by `cuMemAlloc_v2`, call 4 of the process"), "{printed}");
    assert!(printed.contains("12 leaks, 5728 bytes in all"), "{printed}");
    let json = std::fs::read_to_string(json).unwrap();
    let sarif = std::fs::read_to_string(sarif).unwrap();
    assert!(json.contains("\"function\": \"cuArrayCreate_v2\""), "{json}");
    assert_eq!((json.matches("\"check\": \"leak\"").count(), sarif.matches("\"ruleId\": \"leak\"").count()), (12, 12));
    assert_eq!(sarif.matches("\"id\": \"leak\"").count(), 1);
}

#[test]
fn modules_are_reported_on_request() {
    let settings = [("CUDA_ON_CPU_LEAK_CHECK", "modules")];
    let Some(printed) = inside!("modules_are_reported_on_request", &settings, || every_object(false)) else { return };
    let leaks = leaks(&printed);
    assert_eq!(leaks.len(), 14, "{printed}");
    assert!(leaks.contains(&"a module was not unloaded") && leaks.contains(&"a library was not unloaded"));
}

#[test]
fn destroyed_objects_are_not_reported() {
    let settings = [("CUDA_ON_CPU_LEAK_CHECK", "modules"), ("CUDA_ON_CPU_ERROR_EXITCODE", "9")];
    let printed = inside!("destroyed_objects_are_not_reported", &settings, || every_object(true));
    assert_eq!(leaks(&printed.unwrap_or_default()), [""; 0]);
}

#[test]
fn without_the_check_nothing_is_reported() {
    let printed = inside!("without_the_check_nothing_is_reported", &[], || every_object(false));
    assert!(printed.is_none_or(|printed| leaks(&printed).is_empty()));
}

#[test]
fn a_reset_frees_memory() {
    let settings = [("CUDA_ON_CPU_LEAK_CHECK", "full"), ("CUDA_ON_CPU_ERROR_EXITCODE", "9")];
    inside!("a_reset_frees_memory", &settings, || {
        raw::context();
        raw::allocate(100);
        raw::stream();
        gives!(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(0));
    });
}

/// Compiles the C program of these tests.
fn program() -> Command {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver");
    let program = common::folder("c-leaks").join("leaks");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-g", "-Wall", "-Werror", "-o"]).arg(&program);
    let compiled = compiler.arg(format!("{tests}/c/leaks.c")).arg("-ldl").output();
    common::expect_good(&compiled.expect("the C compiler `cc`, which Rust links with as well"));
    common::command(program.to_str().unwrap())
}

#[test]
fn leaks_of_a_c_program_have_its_functions_and_set_the_exit_code() {
    let mut command = program();
    command.env("CUDA_ON_CPU_LEAK_CHECK", "full").env("CUDA_ON_CPU_ERROR_EXITCODE", "9");
    // The destructor frees its memory before the check, and the forked child reports nothing.
    let clean = command.output().unwrap();
    assert_eq!((clean.status.code(), String::from_utf8_lossy(&clean.stderr).as_ref()), (Some(0), ""));
    let leaking = command.arg("leak").output().unwrap();
    let printed = String::from_utf8_lossy(&leaking.stderr);
    assert_eq!(leaking.status.code(), Some(9), "{printed}");
    assert_eq!(
        leaks(&printed),
        ["3 allocations of device memory were not freed: 1000 bytes each", "a stream was not destroyed"],
        "{printed}"
    );
    // The functions of the program, with their lines.
    for function in ["`allocate`, ", "`leak`, ", "`main`, "] {
        let frame = printed.lines().find(|line| line.trim().starts_with(&format!("in {function}")));
        assert!(frame.is_some_and(|frame| frame.contains("c/leaks.c:")), "{printed}");
    }
    // A suppression names the function that created the objects.
    let suppressions = common::folder("c-leaks").join("suppressions");
    std::fs::write(&suppressions, "leak cuMemAlloc*\nleak cuStreamCreate # known\n").unwrap();
    let suppressed = command.env("CUDA_ON_CPU_SUPPRESSIONS", &suppressions).output().unwrap();
    assert_eq!((suppressed.status.code(), String::from_utf8_lossy(&suppressed.stderr).as_ref()), (Some(0), ""));
}
