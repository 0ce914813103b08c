//! A C program that opens the library by its name.

use super::common;
use std::process::Command;

/// Requires a C compiler: on Linux Rust already needs the same `cc` as its linker.
#[test]
fn a_c_program_calls_the_twelve_basic_functions() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver");
    let program = common::folder("c").join("basic");
    let source = format!("{tests}/c/basic.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Werror", "-o"]).arg(&program).args([&source, "-ldl"]);
    let compiled = compiler.output().expect("the C compiler `cc`, which Rust links with as well");
    common::expect_good(&compiled);
    let mut run = common::command(program.to_str().unwrap());
    let printed = common::expect_good(&run.arg(format!("{tests}/common/kernels.ptx")).output().unwrap());
    assert_eq!(printed, "12 functions\n");
}
