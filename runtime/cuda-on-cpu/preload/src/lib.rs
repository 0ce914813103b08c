//! A `dlopen` that opens the stand-ins of `cuda-on-cpu` in place of NVIDIA's libraries, even if a
//! program names these by their paths.
//!
//! A search path (`LD_LIBRARY_PATH`) reaches only the libraries that a program names without a
//! path. Python packages open NVIDIA's libraries by their paths in `site-packages`. The dynamic
//! linker therefore loads this small library before the program (`LD_PRELOAD`), and its `dlopen`
//! replaces a library by the base name:
//!
//! | requested | opened |
//! |---|---|
//! | `libcuda.so*` | the driver beside this library |
//! | `libnvJitLink.so*`, `libnvrtc.so*` | the stand-in beside this library |
//! | others | as requested |
//!
//! The stand-ins call NVIDIA's compiler (NVRTC), and NVIDIA's linker (nvJitLink) for inputs other
//! than PTX. `dlopen` therefore also opens the requested library. If NVRTC is not installed, the
//! program gets the same error as without this library.
//!
//! `dlopen` continues in the C library by a jump, not by a call. The C library then sees the
//! program as the caller, whose own search path (`RUNPATH`) counts.

#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `dlopen` of the C library.
type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// Description of an address, by `dladdr`.
#[repr(C)]
struct AddressInformation {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, to: *mut AddressInformation) -> c_int;
}

/// The handle by which `dlsym` searches the libraries after the caller's.
const RTLD_NEXT: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);

/// The flag of `dlopen` that opens a library only if it is loaded.
const RTLD_NOLOAD: c_int = 4;

/// The flag of `dlopen` with which a library finds its own symbols before those of others.
const RTLD_DEEPBIND: c_int = 8;

/// The flag of `dlopen` that adds the symbols of a library to the global scope.
const RTLD_GLOBAL: c_int = 0x100;

/// The handle of NVIDIA's NVRTC that the program has opened last.
static COMPILER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The handle of NVIDIA's nvJitLink that the program has opened last.
static LINKER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The action with which `dlopen` continues, returned in two registers.
#[repr(C)]
struct Continuation {
    /// The function to jump to, or null.
    function: *const c_void,
    /// The first argument of the function; without a function, the result of `dlopen`.
    value: *const c_void,
}

/// Opens a library, or its stand-in.
///
/// # Safety
/// The requirements of the C library's `dlopen` apply.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "push rsi",
        "call {decide}",
        "pop rsi",
        "test rax, rax",
        "je 2f",
        "mov rdi, rdx",
        "jmp rax",
        "2:",
        "mov rax, rdx",
        "ret",
        decide = sym decide,
    )
}

/// Opens a library, or its stand-in.
///
/// # Safety
/// The requirements of the C library's `dlopen` apply.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "stp x1, x30, [sp, #-16]!",
        "bl {decide}",
        "mov x9, x1",
        "ldp x1, x30, [sp], #16",
        "cbz x0, 2f",
        "mov x16, x0",
        "mov x0, x9",
        "br x16",
        "2:",
        "mov x0, x9",
        "ret",
        decide = sym decide,
    )
}

/// Returns the action with which `dlopen` continues.
///
/// # Safety
/// `name` is null or a text that ends with NUL.
unsafe extern "C" fn decide(name: *const c_char, flags: c_int) -> Continuation {
    let Some(open) = real() else { return Continuation { function: null(), value: null() } };
    let pass = |name: *const c_char| Continuation { function: open as *const c_void, value: name.cast() };
    if name.is_null() {
        return pass(name);
    }
    // SAFETY: guaranteed by the caller.
    let asked = unsafe { CStr::from_ptr(name) };
    let Some(stand_in) = StandIn::of(asked.to_bytes()) else { return pass(name) };
    let Some(path) = stand_in.path() else { return pass(name) };
    if stand_in == StandIn::Driver {
        return pass(path.as_ptr());
    }
    // The functions of the real library stay out of the global scope, where a program would find
    // them before the stand-in. The real library calls its own functions, not the stand-in.
    // SAFETY: these are the arguments of the caller, apart from the scope.
    let library = unsafe { open(name, flags & !RTLD_GLOBAL | RTLD_DEEPBIND) };
    match stand_in {
        // With `RTLD_NOLOAD`, a program only tests whether the library is loaded.
        _ if library.is_null() && flags & RTLD_NOLOAD != 0 => return pass(name),
        StandIn::Nvrtc if library.is_null() => return pass(name),
        StandIn::Nvrtc => COMPILER.store(library, Ordering::Release),
        _ if library.is_null() => {}
        _ => LINKER.store(library, Ordering::Release),
    }
    // SAFETY: the path is a text, and opening the stand-in runs no code of the program.
    let opened = unsafe { open(path.as_ptr(), flags & !RTLD_NOLOAD) };
    Continuation { function: null(), value: if opened.is_null() { library } else { opened } }
}

/// A library beside this one, which replaces another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StandIn {
    /// The driver.
    Driver,
    /// The stand-in for nvJitLink.
    Linker,
    /// The stand-in for NVRTC.
    Nvrtc,
}

impl StandIn {
    /// Returns the stand-in for a library with that name or path.
    fn of(asked: &[u8]) -> Option<StandIn> {
        let base = asked.rsplit(|byte| *byte == b'/').next()?;
        let is = |name: &[u8]| base.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest[0] == b'.');
        let known: [(&[u8], StandIn); 3] =
            [(b"libcuda.so", StandIn::Driver), (b"libnvJitLink.so", StandIn::Linker), (b"libnvrtc.so", StandIn::Nvrtc)];
        known.into_iter().find(|(name, _)| is(name)).map(|(_, stand_in)| stand_in)
    }

    /// Returns the path of the stand-in, if it is beside this library.
    fn path(self) -> Option<&'static CStr> {
        static DRIVER: OnceLock<Option<CString>> = OnceLock::new();
        static LINKER: OnceLock<Option<CString>> = OnceLock::new();
        static NVRTC: OnceLock<Option<CString>> = OnceLock::new();
        match self {
            StandIn::Driver => DRIVER.get_or_init(|| sibling_path("libcuda.so.1")).as_deref(),
            StandIn::Linker => LINKER.get_or_init(|| sibling_path("libcuda_on_cpu_nvjitlink.so")).as_deref(),
            StandIn::Nvrtc => NVRTC.get_or_init(|| sibling_path("libcuda_on_cpu_nvrtc.so")).as_deref(),
        }
    }
}

/// Returns the path of a library beside this one.
fn sibling_path(name: &str) -> Option<CString> {
    let mut found = AddressInformation { file: null(), base: null_mut(), symbol: null(), address: null_mut() };
    // SAFETY: the address is that of a function of this library, and the result is valid for
    // writes.
    if unsafe { dladdr(decide as *const c_void, &mut found) } == 0 || found.file.is_null() {
        return None;
    }
    // SAFETY: `dladdr` returned the text, which lives as long as this library.
    let own = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(found.file) }.to_bytes()));
    let path = own.parent()?.join(name);
    path.exists().then(|| CString::new(path.as_os_str().as_bytes()).ok()).flatten()
}

/// Returns `dlopen` of the C library.
fn real() -> Option<Open> {
    static REAL_FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut found = REAL_FUNCTION.load(Ordering::Acquire);
    if found.is_null() {
        // SAFETY: the name ends with NUL.
        found = unsafe { dlsym(RTLD_NEXT, c"dlopen".as_ptr()) };
        REAL_FUNCTION.store(found, Ordering::Release);
    }
    // SAFETY: the symbol has this signature in every C library.
    (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Open>(found) })
}

/// Returns the handle of NVRTC that the program has opened last, for the stand-in; null without
/// one.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu_compiler() -> *mut c_void {
    COMPILER.load(Ordering::Acquire)
}

/// Returns the handle of nvJitLink that the program has opened last, for the stand-in. Returns null
/// if the program has opened none, or if the library is not installed.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu_linker() -> *mut c_void {
    LINKER.load(Ordering::Acquire)
}
