//! A stand-in for NVRTC. NVIDIA's library compiles CUDA C++ to PTX, and the stand-in returns this
//! PTX as the cubin too.
//!
//! The library that is loaded before the program (`cuda-on-cpu-preload`) opens NVIDIA's library
//! where the program looks for it, and gives the program this stand-in. All calls are forwarded. A
//! program that requests machine code (`--gpu-architecture=sm_61`) gets PTX for the virtual
//! architecture of that number, and the same PTX as the cubin. Without a real architecture, a
//! program has no cubin, as with NVIDIA's library.

// The exported functions have the names of nvrtc.h.
#![allow(non_snake_case)]

use kernel_dsl_compiler::lock::Lock;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::MutexGuard;

/// A result code: `nvrtcResult`.
type NvrtcCode = c_int;

/// A program of NVRTC.
type ProgramHandle = *mut c_void;

const SUCCESS: NvrtcCode = 0;
const INVALID_INPUT: NvrtcCode = 3;
const INTERNAL_ERROR: NvrtcCode = 11;

#[cfg(unix)]
unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Returns NVIDIA's function of that name, if the program has opened the library.
#[cfg(unix)]
fn real(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with NUL. Null means all libraries of the program.
    let compiler = unsafe { dlsym(std::ptr::null_mut(), c"cuda_on_cpu_compiler".as_ptr()) };
    if compiler.is_null() {
        return None;
    }
    // SAFETY: the library that is loaded before the program has the function with this signature.
    let library = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> *mut c_void>(compiler)() };
    if library.is_null() {
        return None;
    }
    // SAFETY: the handle is that of an open library, and the name ends with NUL.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

#[cfg(not(unix))]
fn real(_name: &CStr) -> Option<*mut c_void> {
    None
}

/// Runs an exported function. No panic may reach the caller in C.
fn guard(body: impl FnOnce() -> NvrtcCode) -> NvrtcCode {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(INTERNAL_ERROR)
}

/// Declares functions that are forwarded.
macro_rules! forwarded {
    ($(fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty, $otherwise:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of nvrtc.h, forwarded.")]
            ///
            /// # Safety
            /// The arguments are valid, as nvrtc.h requires.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $ty),*) -> $result {
                const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name without NUL"),
                };
                let Some(real) = real(NAME) else { return $otherwise };
                // SAFETY: NVIDIA's function has the signature of nvrtc.h.
                unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> $result>(real)($($argument),*)
                }
            }
        )*
    };
}

forwarded! {
    fn nvrtcGetErrorString(code: NvrtcCode) -> *const c_char, c"NVRTC is not loaded".as_ptr();
    fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetSupportedArchs(numbers: *mut c_int) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcCreateProgram(
        to: *mut ProgramHandle,
        source: *const c_char,
        name: *const c_char,
        count: c_int,
        headers: *const *const c_char,
        names: *const *const c_char
    ) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetPTXSize(program: ProgramHandle, size: *mut usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetPTX(program: ProgramHandle, ptx: *mut c_char) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetNVVMSize(program: ProgramHandle, size: *mut usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetNVVM(program: ProgramHandle, nvvm: *mut c_char) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetLTOIRSize(program: ProgramHandle, size: *mut usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetLTOIR(program: ProgramHandle, ir: *mut c_char) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetOptiXIRSize(program: ProgramHandle, size: *mut usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetOptiXIR(program: ProgramHandle, ir: *mut c_char) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetProgramLogSize(program: ProgramHandle, size: *mut usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetProgramLog(program: ProgramHandle, log: *mut c_char) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcAddNameExpression(program: ProgramHandle, name: *const c_char) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetLoweredName(program: ProgramHandle, name: *const c_char, to: *mut *const c_char) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetPCHHeapSize(size: *mut usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcSetPCHHeapSize(size: usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetPCHCreateStatus(program: ProgramHandle) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcGetPCHHeapSizeRequired(program: ProgramHandle, size: *mut usize) -> NvrtcCode, INTERNAL_ERROR;
    fn nvrtcSetFlowCallback(program: ProgramHandle, call: *mut c_void, payload: *mut c_void) -> NvrtcCode, INTERNAL_ERROR;
}

/// NVIDIA's functions that the stand-ins call.
mod original {
    use super::{NvrtcCode, ProgramHandle, real};
    use std::ffi::{c_char, c_int, c_void};

    pub type Compile = unsafe extern "C" fn(ProgramHandle, c_int, *const *const c_char) -> NvrtcCode;
    pub type Destroy = unsafe extern "C" fn(*mut ProgramHandle) -> NvrtcCode;

    pub fn compile() -> Option<Compile> {
        // SAFETY: the signature is that of nvrtc.h.
        real(c"nvrtcCompileProgram").map(|f| unsafe { std::mem::transmute::<*mut c_void, Compile>(f) })
    }

    pub fn destroy() -> Option<Destroy> {
        // SAFETY: the signature is that of nvrtc.h.
        real(c"nvrtcDestroyProgram").map(|f| unsafe { std::mem::transmute::<*mut c_void, Destroy>(f) })
    }
}

/// Returns the programs compiled for a real architecture, by their addresses.
fn with_cubin() -> MutexGuard<'static, BTreeSet<usize>> {
    static PROGRAMS: Lock<BTreeSet<usize>> = Lock::new(BTreeSet::new());
    PROGRAMS.lock()
}

/// Replaces real architectures by virtual ones. Also returns whether there was a real one.
///
/// The value of an option follows the equals sign, or is the next argument.
fn virtual_architecture<'a>(options: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    const NAMES: [&[u8]; 3] = [b"--gpu-architecture", b"-gpu-architecture", b"-arch"];
    let (mut found, mut real, mut is_next) = (Vec::new(), false, false);
    for option in options {
        let split = option.iter().position(|byte| *byte == b'=').map(|at| option.split_at(at + 1));
        let (name, value) = match split {
            Some((name, value)) if NAMES.contains(&&name[..name.len() - 1]) => (name, value),
            _ if is_next => (&b""[..], option),
            _ => (option, &b""[..]),
        };
        match value.strip_prefix(b"sm_") {
            Some(number) => {
                real = true;
                found.push([name, b"compute_", number].concat());
            }
            None => found.push(option.to_vec()),
        }
        is_next = NAMES.contains(&option);
    }
    (found, real)
}

/// Compiles a program, always to PTX.
///
/// # Safety
/// The arguments are valid, as nvrtc.h requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(
    program: ProgramHandle,
    count: c_int,
    options: *const *const c_char,
) -> NvrtcCode {
    guard(|| {
        let Some(compile) = original::compile() else { return INTERNAL_ERROR };
        let count = usize::try_from(count).unwrap_or_default();
        if count > 0 && options.is_null() {
            return INVALID_INPUT;
        }
        // SAFETY: the caller's array has `count` texts.
        let given: Vec<*const c_char> =
            (0..count).map(|index| unsafe { options.add(index).read_unaligned() }).collect();
        if given.iter().any(|option| option.is_null()) {
            return INVALID_INPUT;
        }
        // SAFETY: as above.
        let texts = given.iter().map(|option| unsafe { CStr::from_ptr(*option) }.to_bytes());
        let (changed, real) = virtual_architecture(texts);
        let changed: Vec<CString> = changed.into_iter().filter_map(|text| CString::new(text).ok()).collect();
        let pointers: Vec<*const c_char> = changed.iter().map(|text| text.as_ptr()).collect();
        // SAFETY: the program is the caller's, and the texts live until the call returns.
        let code = unsafe { compile(program, pointers.len() as c_int, pointers.as_ptr()) };
        if real && code == SUCCESS {
            with_cubin().insert(program.addr());
        } else {
            with_cubin().remove(&program.addr());
        }
        code
    })
}

/// Destroys a program.
///
/// # Safety
/// The pointer is null or points to a program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut ProgramHandle) -> NvrtcCode {
    guard(|| {
        let Some(destroy) = original::destroy() else { return INTERNAL_ERROR };
        if !program.is_null() {
            // SAFETY: guaranteed by the caller.
            with_cubin().remove(&unsafe { program.read_unaligned() }.addr());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { destroy(program) }
    })
}

/// Writes the size of the PTX in place of the cubin; 0 without a real architecture.
///
/// # Safety
/// The arguments are valid, as nvrtc.h requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBINSize(program: ProgramHandle, size: *mut usize) -> NvrtcCode {
    guard(|| {
        // SAFETY: guaranteed by the caller.
        let code = unsafe { nvrtcGetPTXSize(program, size) };
        if code == SUCCESS && !with_cubin().contains(&program.addr()) {
            // SAFETY: the size was written before.
            unsafe { size.write_unaligned(0) };
        }
        code
    })
}

/// Writes the PTX in place of the cubin.
///
/// # Safety
/// The buffer has the size that `nvrtcGetCUBINSize` returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBIN(program: ProgramHandle, cubin: *mut c_char) -> NvrtcCode {
    guard(|| {
        if !with_cubin().contains(&program.addr()) {
            // The size of the cubin is 0 in this case, and NVIDIA's library writes nothing.
            return if cubin.is_null() { INVALID_INPUT } else { SUCCESS };
        }
        // SAFETY: guaranteed by the caller.
        unsafe { nvrtcGetPTX(program, cubin) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(options: &[&str]) -> (Vec<String>, bool) {
        let (found, real) = virtual_architecture(options.iter().map(|option| option.as_bytes()));
        (found.into_iter().map(|text| String::from_utf8(text).unwrap()).collect(), real)
    }

    #[test]
    fn real_architectures_become_virtual() {
        let own = |list: &[&str]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        for (given, expected) in [
            (&["--gpu-architecture=sm_61", "-O3"][..], &["--gpu-architecture=compute_61", "-O3"][..]),
            (&["-arch=sm_90a"], &["-arch=compute_90a"]),
            (&["-arch", "sm_75", "sm_80"], &["-arch", "compute_75", "sm_80"]),
        ] {
            assert_eq!(changed(given), (own(expected), true), "{given:?}");
        }
        for kept in [&["-arch=compute_61"][..], &["-D", "sm_61"], &["-DARCH=sm_61"], &[]] {
            assert_eq!(changed(kept), (own(kept), false), "{kept:?}");
        }
    }
}
