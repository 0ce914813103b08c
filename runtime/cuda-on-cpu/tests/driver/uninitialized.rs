//! Tests of `uninitialized-buffer`: kernels that load bytes which nothing has written.

use super::common::inside;
use super::raw::{self, Pointer, gives};
use cudarc::driver::sys::{self, CUresult::*};
use std::ffi::CString;
use std::ptr::null_mut;

/// The bytes of each buffer.
const BYTES: usize = 256;

/// Kernels of one thread with the address of a buffer, by the name of the instruction.
const BODIES: [(&str, &str); 5] = [
    ("load", "ld.global.u32 %n, [%a+8];"),
    ("wide", "ld.global.v4.u32 {%n, %n, %n, %n}, [%a+16];"),
    ("atomic", "atom.global.add.u32 %n, [%a+8], 1;"),
    ("reduction", "red.global.add.u32 [%a+8], 1;"),
    ("store", "st.global.u32 [%a+8], 1;"),
];

/// A case: its name, the instruction, the preparation of the buffer, and whether the instruction is
/// reported.
type Case = (&'static str, &'static str, fn(Pointer), bool);

fn fill(address: Pointer, bytes: usize) {
    gives!(CUDA_SUCCESS, cuMemsetD8_v2(address, 7, bytes));
}

fn copy(to: Pointer, from: Pointer, bytes: usize) {
    gives!(CUDA_SUCCESS, cuMemcpyDtoD_v2(to, from, bytes));
}

const CASES: &[Case] = &[
    ("nothing", "load", |_| {}, true),
    ("filled", "load", |buffer| fill(buffer, BYTES), false),
    ("filled_before", "load", |buffer| fill(buffer, 11), true),
    ("filled_up_to_the_end", "load", |buffer| fill(buffer, 12), false),
    (
        "filled_in_rows",
        "load",
        // The second row begins at byte 8.
        |buffer| gives!(CUDA_SUCCESS, cuMemsetD2D8_v2(buffer, 8, 1, 4, 2)),
        false,
    ),
    (
        "uploaded",
        "load",
        |buffer| gives!(CUDA_SUCCESS, cuMemcpyHtoD_v2(buffer + 8, [0u8; 4].as_ptr().cast(), 4)),
        false,
    ),
    ("half_written", "wide", |buffer| fill(buffer, 24), true),
    ("stored", "load", |buffer| store(buffer), false),
    ("updated", "atomic", |_| {}, true),
    ("reduced", "reduction", |_| {}, true),
    ("updated_after_a_store", "atomic", |buffer| store(buffer), false),
    ("only_stored", "store", |_| {}, false),
    ("copied_from_written", "load", |buffer| copy(buffer + 3, written(100), 100), false),
    ("copied_from_unwritten", "load", |buffer| copy(buffer, raw::allocate(BYTES), BYTES), true),
    // The last byte of the load comes from beyond the written part.
    ("copied_from_partly_written", "load", |buffer| copy(buffer + 3, written(8), 100), true),
    (
        "moved_inside_the_buffer",
        "load",
        |buffer| {
            fill(buffer, 4);
            copy(buffer + 8, buffer, 4);
        },
        false,
    ),
    (
        "written_then_overwritten_by_unwritten",
        "load",
        |buffer| {
            fill(buffer, BYTES);
            copy(buffer + 8, raw::allocate(4), 4);
        },
        true,
    ),
    ("downloaded", "store", |buffer| _ = raw::read::<4>(buffer), false),
];

/// Returns a buffer whose first bytes are written.
fn written(bytes: usize) -> Pointer {
    let buffer = raw::allocate(BYTES);
    fill(buffer, bytes);
    buffer
}

fn store(buffer: Pointer) {
    assert_eq!(run("store", "store", buffer), CUDA_SUCCESS);
}

/// Runs one instruction as a kernel of that name.
fn run(name: &str, instruction: &str, buffer: Pointer) -> sys::CUresult {
    let body = BODIES.iter().find(|(known, _)| *known == instruction).unwrap().1;
    run_body(name, (".version 6.0\n.target sm_61", body), buffer)
}

/// Runs a kernel of one thread with this name and body, for a target.
fn run_body(name: &str, (target, body): (&str, &str), buffer: Pointer) -> sys::CUresult {
    let text = format!(
        "{target}\n.address_size 64\n.visible .entry {name}(.param .u64 at) {{\n.reg .u32 %n;\n.reg .u64 %a;\nld.param.u64 %a, [at];\n{body}\nret;\n}}"
    );
    let (code, module) = raw::load(&text);
    assert_eq!(code, CUDA_SUCCESS, "{text}");
    let (entry, mut function) = (CString::new(name).unwrap(), null_mut());
    gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut function, module, entry.as_ptr()));
    let launched = raw::launch(function, &mut [buffer]);
    assert_eq!(launched, CUDA_SUCCESS);
    // SAFETY: the call has no arguments.
    unsafe { sys::cuCtxSynchronize() }
}

const CHECK: (&str, &str) = ("CUDA_ON_CPU_CHECKS", "uninitialized-buffer");

#[test]
fn loads_of_unwritten_bytes_are_reported() {
    let settings = [CHECK, ("CUDA_ON_CPU_ON_FINDING", "continue")];
    let printed = inside!("loads_of_unwritten_bytes_are_reported", &settings, || {
        raw::context();
        for (name, instruction, prepare, _) in CASES {
            let buffer = raw::allocate(BYTES);
            prepare(buffer);
            assert_eq!(run(name, instruction, buffer), CUDA_SUCCESS);
        }
    });
    let Some(printed) = printed else { return };
    for (name, _, _, is_reported) in CASES {
        let finding = format!("error[uninitialized-buffer] in `{name}`: ");
        assert_eq!(printed.contains(&finding), *is_reported, "{name}:\n{printed}");
    }
    let count = CASES.iter().filter(|case| case.3).count();
    assert!(printed.contains(&format!("{count} errors and 0 warnings")), "{printed}");
    let message = |name: &str| {
        let line = printed.lines().find(|line| line.contains(&format!("in `{name}`: "))).unwrap();
        line.split_once("`0x").unwrap().1.split_once("` ").unwrap().1
    };
    assert_eq!(message("nothing"), "(256 bytes), which nothing has written");
    assert_eq!(message("half_written"), "(256 bytes), of which nothing has written some bytes");
    assert!(printed.contains("loads 4 bytes at byte 8 of `0x") && printed.contains("PTX line 8"), "{printed}");
    assert!(printed.contains("updates 4 bytes at byte 8 of `0x"), "{printed}");
}

#[test]
fn freed_memory_is_unwritten_when_allocated_again() {
    let settings = [CHECK, ("CUDA_ON_CPU_ON_FINDING", "continue")];
    let printed = inside!("freed_memory_is_unwritten_when_allocated_again", &settings, || {
        raw::context();
        let stream = raw::stream();
        for name in ["first", "second"] {
            let mut buffer = 0;
            gives!(CUDA_SUCCESS, cuMemAllocAsync(&mut buffer, BYTES, stream));
            gives!(CUDA_SUCCESS, cuStreamSynchronize(stream));
            assert_eq!(run(name, "load", buffer), CUDA_SUCCESS);
            fill(buffer, BYTES);
            gives!(CUDA_SUCCESS, cuMemFreeAsync(buffer, stream));
        }
        // The host writes page-locked and managed memory without a call.
        let (mut pinned, mut managed) = (null_mut(), 0);
        gives!(CUDA_SUCCESS, cuMemHostAlloc(&mut pinned, BYTES, 0));
        gives!(CUDA_SUCCESS, cuMemAllocManaged(&mut managed, BYTES, 1));
        assert_eq!(run("of_host", "load", pinned.addr() as Pointer), CUDA_SUCCESS);
        assert_eq!(run("managed", "load", managed), CUDA_SUCCESS);
    });
    let Some(printed) = printed else { return };
    for (name, count) in [("first", 1), ("second", 1), ("of_host", 0), ("managed", 0)] {
        assert_eq!(printed.matches(&format!("in `{name}`: loads")).count(), count, "{printed}");
    }
}

#[test]
fn an_asynchronous_copy_reads_its_source() {
    const BODY: &str = ".shared .align 4 .u32 s;\ncp.async.ca.shared.global [s], [%a+8], 4;";
    let settings = [CHECK, ("CUDA_ON_CPU_ON_FINDING", "continue"), ("CUDA_ON_CPU_CAPABILITY", "8.0")];
    let printed = inside!("an_asynchronous_copy_reads_its_source", &settings, || {
        raw::context();
        for (name, buffer) in [("unwritten", raw::allocate(BYTES)), ("written", written(BYTES))] {
            assert_eq!(run_body(name, (".version 7.0\n.target sm_80", BODY), buffer), CUDA_SUCCESS);
        }
    });
    let Some(printed) = printed else { return };
    let finding = "error[uninitialized-buffer] in `unwritten`: begins to copy from 4 bytes at byte 8 of";
    assert!(printed.contains(finding) && !printed.contains("in `written`"), "{printed}");
}

/// Loads unwritten memory, and returns the code of the launch.
fn load_unwritten() -> sys::CUresult {
    raw::context();
    run("load", "load", raw::allocate(BYTES))
}

#[test]
fn without_the_check_unwritten_memory_is_loaded() {
    let name = "without_the_check_unwritten_memory_is_loaded";
    inside!(name, &[("CUDA_ON_CPU_CHECKS", "undefined-value")], || assert_eq!(load_unwritten(), CUDA_SUCCESS));
}

#[test]
fn a_launch_that_loads_unwritten_memory_fails() {
    let settings = [("CUDA_ON_CPU_CHECKS", "all")];
    let printed = inside!("a_launch_that_loads_unwritten_memory_fails", &settings, || {
        assert_eq!(load_unwritten(), CUDA_ERROR_LAUNCH_FAILED);
    });
    assert!(printed.is_none_or(|printed| printed.contains("error[uninitialized-buffer]: loads 4 bytes")));
}
