//! The stand-ins for NVIDIA's compilers and linkers.

use super::{common, python};
use std::path::Path;
use std::process::{Command, Output};

#[test]
fn nvjitlink_answers_as_nvidias_library() {
    python::run("nvjitlink.py");
}

#[test]
fn nvrtc_gives_ptx_as_the_cubin() {
    let folder = common::folder("nvrtc");
    compile_nvrtc(&folder);
    python::run_with("nvrtc.py", &[folder.to_str().unwrap()]);
}

/// Compiles a library with the name of NVRTC by rustc.
fn compile_nvrtc(folder: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver/rust/nvrtc.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let mut rustc = Command::new(rustc);
    rustc.args(["--edition=2024", "--crate-type=cdylib", source, "-o"]).arg(folder.join("libnvrtc.so.12"));
    common::expect_good(&rustc.output().expect("rustc, which made this test"));
}

/// nvcc has the headers of the host's compiler, and NVRTC has none.
#[cfg(unix)]
#[test]
fn nvcc_gives_nvrtc_the_standard_headers() {
    let folder = common::folder("nvcc_headers");
    compile_nvrtc(&folder);
    std::fs::write(folder.join("k.cu"), "text").unwrap();
    // No other nvcc is in this `PATH`.
    let search = "PATH=\"${PATH%%:*}\" LD_LIBRARY_PATH=\"$PWD:$LD_LIBRARY_PATH\"";
    common::expect_good(&shell(&folder, &format!("{search} nvcc --cubin -arch sm_61 -DN=1 k.cu")));
    let ptx = std::fs::read_to_string(folder.join("k.cubin")).unwrap();
    assert!(ptx.contains("\n// assert.h: 0 lines\n") && ptx.contains("\n// stdint.h: 23 lines\n"), "{ptx}");
    let first = "// --pre-include=cuda-on-cpu/overloads.h";
    assert!(ptx.ends_with(&format!("\n// --gpu-architecture=compute_61\n{first}\n// -DN=1\0")), "{ptx}");
}

const KERNEL: &str = ".version 6.0\n.target sm_61\n.address_size 64\n.visible .entry k() { ret; }\n";

/// Runs `script` in a shell, in `folder`, with the stand-ins of compilers in `PATH`.
fn shell(folder: &Path, script: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-on-cpu"));
    command.args(["--compilers=on", "sh", "-c", script]).current_dir(folder).output().unwrap()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn ptxas_validates_ptx_and_writes_it_as_the_cubin() {
    let folder = common::folder("ptxas");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("k.ptx", KERNEL);
    write("bad.ptx", &KERNEL.replace("ret", "frob"));
    write("later.ptx", &KERNEL.replace("6.0", "8.0").replace("sm_61", "sm_90"));
    common::expect_good(&shell(
        &folder,
        "ptxas -v -O3 -arch=sm_61 k.ptx -o k.cubin && ptxas --gpu-name sm_61 - < k.ptx",
    ));
    for name in ["k.cubin", "elf.o"] {
        let image = std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(image, format!("// cuda-on-cpu, in place of machine code for sm_61\n{KERNEL}\0"));
    }
    let version = common::expect_good(&shell(&folder, "ptxas --version"));
    assert!(version.contains("release 12.9"), "{version}");
    for (arguments, why) in [
        ("-arch=sm_61 bad.ptx", "line 4"),
        ("-arch=sm_61 later.ptx", "for sm_90"),
        ("-arch=sm_99 k.ptx", "Value 'sm_99' is not defined for option 'gpu-name'"),
        ("-arch=sm_61 none.ptx", "Could not open input file 'none.ptx'"),
        ("-arch=sm_61", "one input file"),
    ] {
        let told = error(&shell(&folder, &format!("ptxas {arguments} -o x.cubin")));
        assert!(told.contains(why), "{arguments}: {told}");
    }
    // By default, PATH is unchanged.
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-on-cpu"));
    let path = common::expect_good(&command.args(["sh", "-c", "echo $PATH"]).output().unwrap());
    assert!(!path.contains("cuda-on-cpu.names"), "{path}");
}

/// Runs a script as the next nvcc in `PATH`, which prints its arguments.
#[cfg(unix)]
#[test]
fn nvcc_compiles_to_ptx_under_the_cubins_name() {
    use std::os::unix::fs::PermissionsExt;
    let folder = common::folder("nvcc");
    let real = folder.join("real");
    std::fs::create_dir_all(&real).unwrap();
    std::fs::write(real.join("nvcc"), "#!/bin/sh\necho $*\n").unwrap();
    std::fs::set_permissions(real.join("nvcc"), PermissionsExt::from_mode(0o755)).unwrap();
    let after = "PATH=\"${PATH%%:*}:$PWD/real:${PATH#*:}\"";
    let output = shell(&folder, &format!("{after} nvcc --cubin -O2 -arch sm_61 -Iinclude k.cu"));
    assert_eq!(common::expect_good(&output), "--ptx -O2 -arch compute_61 -Iinclude k.cu -o k.cubin\n");
}
