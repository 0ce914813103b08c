//! A library with the name of NVRTC, for the test of its stand-in. `nvrtcGetPTX` gives PTX whose
//! comments have the headers and the options of the compilation.

#![allow(non_snake_case)]

use std::ffi::{CStr, c_char, c_int};

/// A program: the PTX.
pub struct TextProgram(String);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    unsafe {
        *major = 77;
        *minor = 5;
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    to: *mut *mut TextProgram,
    source: *const c_char,
    _name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    names: *const *const c_char,
) -> c_int {
    let text = |from: *const c_char| unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned();
    let mut source = text(source);
    for index in 0..count as usize {
        let (name, header) = unsafe { (text(*names.add(index)), text(*headers.add(index))) };
        source.push_str(&format!("\n// {name}: {} lines", header.lines().count()));
    }
    unsafe { *to = Box::into_raw(Box::new(TextProgram(source))) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(
    program: *mut TextProgram,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    for index in 0..count as usize {
        let option = unsafe { CStr::from_ptr(*options.add(index)) }.to_string_lossy();
        unsafe { &mut *program }.0.push_str(&format!("\n// {option}"));
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTXSize(program: *mut TextProgram, size: *mut usize) -> c_int {
    unsafe { *size = (&*program).0.len() + 1 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTX(program: *mut TextProgram, to: *mut u8) -> c_int {
    let text = unsafe { &*program }.0.as_str();
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
        to.add(text.len()).write(0);
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut *mut TextProgram) -> c_int {
    unsafe {
        drop(Box::from_raw(*program));
        *program = std::ptr::null_mut();
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLogSize(_program: *mut TextProgram, size: *mut usize) -> c_int {
    unsafe { *size = 1 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLog(_program: *mut TextProgram, to: *mut u8) -> c_int {
    unsafe { to.write(0) };
    0
}
