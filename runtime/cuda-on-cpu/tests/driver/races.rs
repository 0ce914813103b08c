//! Tests of races in kernels, in the summary at the end of a process.

use super::common::inside;
use super::raw::{self, gives};
use cudarc::driver::sys::CUresult::*;
use std::ffi::CString;
use std::ptr::{self, null_mut};

/// A kernel in which all warps add 1 to a word, by a load and a store or by an atomic operation.
fn kernel(name: &str, add: &str) -> String {
    format!(
        ".version 6.0\n.target sm_61\n.address_size 64\n.visible .entry {name}(.param .u64 at) {{\n\
         .reg .u32 %n;\n.reg .u64 %a;\nld.param.u64 %a, [at];\n{add}\nret;\n}}"
    )
}

#[test]
fn races_are_listed_with_both_sides() {
    let settings = [("CUDA_ON_CPU_CHECKS", "global-race"), ("CUDA_ON_CPU_ON_FINDING", "continue")];
    let printed = inside!("races_are_listed_with_both_sides", &settings, || {
        raw::context();
        let mut counter = raw::allocate(4);
        gives!(CUDA_SUCCESS, cuMemsetD8_v2(counter, 0, 4));
        for (name, add) in [
            ("plain", "ld.global.u32 %n, [%a];\nadd.u32 %n, %n, 1;\nst.global.u32 [%a], %n;"),
            ("atomic", "red.global.add.u32 [%a], 1;"),
        ] {
            let (code, module) = raw::load(&kernel(name, add));
            assert_eq!(code, CUDA_SUCCESS);
            let (entry, mut function) = (CString::new(name).unwrap(), null_mut());
            gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut function, module, entry.as_ptr()));
            let mut parameters = [ptr::from_mut(&mut counter).cast()];
            let (arguments, extra) = (parameters.as_mut_ptr(), null_mut());
            gives!(CUDA_SUCCESS, cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, null_mut(), arguments, extra));
            gives!(CUDA_SUCCESS, cuCtxSynchronize());
        }
    });
    let Some(printed) = printed else { return };
    let findings: Vec<&str> = printed.lines().filter(|line| line.contains("error[global-race]")).collect();
    assert!(findings.len() == 2 && findings.iter().all(|line| line.contains("in `plain`: ")), "{printed}");
    assert!(findings[0].contains("loads 4 bytes at byte 0 of `0x"), "{printed}");
    let other = "stores without an order: `st.global.u32 [%a], %n` in line 10";
    assert!(findings[0].contains("of block [0, 0, 0]") && findings[0].ends_with(other), "{printed}");
}
