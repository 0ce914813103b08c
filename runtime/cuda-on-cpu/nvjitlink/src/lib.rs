//! A stand-in for nvJitLink. The functions have the names of nvJitLink.h, and call those of the
//! driver's library, which links PTX (`cuda_on_cpu::stand_ins::nvjitlink`).
//!
//! This library is separate from the driver's. A program that finds the functions in the driver
//! would not open nvJitLink, and NVIDIA's library, which compiles LTO-IR, would stay unknown.

#![cfg(unix)]
// The exported functions have the names of nvJitLink.h.
#![allow(non_snake_case)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// The result code of a failure inside the library: `NVJITLINK_ERROR_INTERNAL`.
const INTERNAL: c_int = 6;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The flag of `dlopen` that resolves all symbols at once.
const RTLD_NOW: c_int = 2;

/// Returns the driver's function of that name.
fn driver(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the names end with NUL. The driver stays loaded.
    let found = unsafe { dlsym(dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Declares the functions, also under the names that the inline functions of nvJitLink.h call: one
/// for each release of CUDA.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $ty:ty),*);)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of nvJitLink.h.")]
            ///
            /// # Safety
            /// The arguments are valid, as nvJitLink.h requires.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $ty),*) -> c_int {
                const NAME: &CStr =
                    match CStr::from_bytes_with_nul(concat!("cuda_on_cpu_", stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name without NUL"),
                    };
                let Some(function) = driver(NAME) else { return INTERNAL };
                // SAFETY: the driver's function has this signature.
                let function = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> c_int>(function)
                };
                // SAFETY: guaranteed by the caller.
                unsafe { function($($argument),*) }
            }

            functions!(@releases $name ($($argument: $ty),*)
                "12_0" "12_1" "12_2" "12_3" "12_4" "12_5" "12_6" "12_7" "12_8" "12_9" "13_0" "13_1" "13_2");
        )*
    };
    (@releases $name:ident $arguments:tt $($release:literal)*) => {
        $(functions!(@release $name $arguments $release);)*
    };
    (@release $name:ident ($($argument:ident: $ty:ty),*) $release:literal) => {
        const _: () = {
            #[unsafe(export_name = concat!("__", stringify!($name), "_", $release))]
            unsafe extern "C" fn release($($argument: $ty),*) -> c_int {
                // SAFETY: guaranteed by the caller.
                unsafe { $name($($argument),*) }
            }
        };
    };
}

functions! {
    fn nvJitLinkCreate(to: *mut *mut c_void, count: u32, options: *mut *const c_char);
    fn nvJitLinkDestroy(handle: *mut *mut c_void);
    fn nvJitLinkAddData(handle: *mut c_void, kind: c_int, data: *const c_void, size: usize, name: *const c_char);
    fn nvJitLinkAddFile(handle: *mut c_void, kind: c_int, path: *const c_char);
    fn nvJitLinkComplete(handle: *mut c_void);
    fn nvJitLinkGetLinkedCubinSize(handle: *mut c_void, size: *mut usize);
    fn nvJitLinkGetLinkedCubin(handle: *mut c_void, cubin: *mut c_void);
    fn nvJitLinkGetLinkedPtxSize(handle: *mut c_void, size: *mut usize);
    fn nvJitLinkGetLinkedPtx(handle: *mut c_void, ptx: *mut c_char);
    fn nvJitLinkGetErrorLogSize(handle: *mut c_void, size: *mut usize);
    fn nvJitLinkGetErrorLog(handle: *mut c_void, log: *mut c_char);
    fn nvJitLinkGetInfoLogSize(handle: *mut c_void, size: *mut usize);
    fn nvJitLinkGetInfoLog(handle: *mut c_void, log: *mut c_char);
    fn nvJitLinkVersion(major: *mut c_uint, minor: *mut c_uint);
}
