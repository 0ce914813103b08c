//! End-to-end tests of `kernels run` on PTX from NVRTC, LLVM and this project.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kernels")).arg("run").args(arguments).output().unwrap()
}

/// Runs a command that must succeed, and returns its stdout.
fn good(arguments: &[&str]) -> String {
    let output = run(arguments);
    let (printed, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {}\n{errors}{printed}", output.status);
    printed
}

/// Runs a command that must be rejected before it prints anything, and returns its stderr and exit
/// code.
fn refusal(arguments: &[&str]) -> (String, Option<i32>) {
    let output = run(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?}");
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

/// Returns the path of PTX that NVRTC made from the kernels in `runtime/tests/ptx/cuda`.
fn nvrtc(name: &str) -> String {
    format!("{}/../../runtime/tests/ptx/cuda/{name}.ptx", env!("CARGO_MANIFEST_DIR"))
}

/// Temporary folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("kernels-run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure is ignored: every test has its own folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn floats(file: &Path) -> Vec<f32> {
    let bytes = std::fs::read(file).unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn nvrtcs_saxpy_computes_the_right_result() {
    let numeric = nvrtc("numeric");
    let saxpy = [&numeric, "saxpy", "--grid", "4", "--block", "256", "--arg", "s32:1000", "--arg", "f32:2"];
    let rest = ["--buffer", "x:f32[1000]=iota", "--buffer", "y:f32[1000]=1"];
    for policy in ["stack", "lowest"] {
        let text = good(&[&saxpy[..], &rest, &["--policy", policy, "--first", "4"]].concat());
        assert!(text.starts_with("saxpy, 4 blocks of 256 threads: nothing was found\n"), "{text}");
        assert!(text.ends_with("\ny: f32[1000] = 1.0, 3.0, 5.0, 7.0, … (996 more)\n"), "{text}");
    }
    let told: Value = serde_json::from_str(&good(&[&saxpy[..], &rest, &["--json", "--first", "2"]].concat())).unwrap();
    assert_eq!((&told["entry"], &told["block"]), (&"saxpy".into(), &serde_json::json!([256, 1, 1])));
    assert_eq!((&told["findings"], &told["statistics"]["warps"]), (&serde_json::json!([]), &32.into()));
    let y =
        serde_json::json!({"name": "y", "type": "f32", "count": 1000, "approximate": false, "first": ["1.0", "3.0"]});
    assert_eq!(told["buffers"][1], y);
}

/// A kernel whose threads print their number and its half.
const PRINTS: &str = r#".version 6.0
.target sm_61
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[16] = {37, 100, 58, 32, 37, 103, 10, 0};
.visible .entry prints()
.reqntid 3, 1, 1
{
    .local .align 8 .b8 values[16];
    .reg .u64 T, V;
    .reg .u32 n;
    .reg .f64 d;
    mov.u64 V, values;
    cvta.local.u64 V, V;
    mov.u32 n, %tid.x;
    st.u32 [V], n;
    cvt.rn.f64.u32 d, n;
    mul.f64 d, d, 0d3FE0000000000000;
    st.f64 [V+8], d;
    mov.u64 T, text;
    cvta.global.u64 T, T;
    {
    .param .b64 format;
    .param .b64 all;
    .param .b32 r;
    st.param.b64 [format], T;
    st.param.b64 [all], V;
    call (r), vprintf, (format, all);
    }
    ret;
}
"#;

#[test]
fn printed_lines_follow_the_results() {
    let folder = Folder::new("prints");
    let file = folder.file("prints.ptx", PRINTS);
    let text = good(&[&file]);
    assert!(text.starts_with("prints, 1 block of 3 threads: nothing was found\n"), "{text}");
    assert!(text.ends_with("\nlog:\n  0: 0\n  1: 0.5\n  2: 1\n"), "{text}");
    let run: Value = serde_json::from_str(&good(&[&file, "--json"])).unwrap();
    assert_eq!(run["log"], "0: 0\n1: 0.5\n2: 1\n");
}

#[test]
fn nvrtcs_scan_uses_dynamic_shared_memory() {
    let collective = nvrtc("collective");
    let scan = [&collective, "scan_block", "--block", "64", "--shared", "512"];
    let text = good(&[&scan[..], &["--buffer", "x:i32[60]=2", "--buffer", "y:i32[60]", "--arg", "i32:60"]].concat());
    assert!(text.contains("\ny: i32[60] = 2, 4, 6, 8, 10, 12, 14, 16, … (52 more)\n"), "{text}");
}

#[test]
fn matrix_products_read_and_write_files() {
    let folder = Folder::new("matmul");
    let ptx = folder.file("matmul.ptx", kernels_rs::matmul::<16>::PTX);
    let (m, k, n) = (20, 33, 17);
    let a: Vec<f32> = (0..m * k).map(|i| (i % 13) as f32 - 6.0).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32 - 3.0).collect();
    let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let a_file = format!("a:f32[]=@{}", folder.file("a.bin", bytes(&a)));
    let b_file = format!("b:f32[{}]=@{}", k * n, folder.file("b.bin", bytes(&b)));
    let c_file = folder.0.join("c.bin");
    let save = format!("c={}", c_file.display());
    let view = |rows: usize, columns: usize| [rows, columns, columns].map(|n| format!("u32:{n}"));
    let (va, vb, vc) = (view(m, k), view(k, n), view(m, n));
    let mut arguments = vec![&ptx[..], "--grid", "2,2", "--block", "16,16", "--save", &save, "--first", "0"];
    for (buffer, view) in [(&a_file[..], &va), (&b_file, &vb), ("c:f32[340]=-1", &vc)] {
        arguments.extend(["--buffer", buffer]);
        view.iter().for_each(|part| arguments.extend(["--arg", part]));
    }
    let text = good(&arguments);
    assert!(text.contains("\nc: f32[340] = … (340)\n"), "{text}");
    // Small integers: every order of the sum is exact.
    let product = (0..m * n).map(|i| (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum::<f32>());
    assert_eq!(floats(&c_file), product.collect::<Vec<_>>());
}

#[test]
fn violations_are_shown_with_their_location() {
    let folder = Folder::new("wrong");
    let ptx = folder.file(
        "k.ptx",
        ".version 6.4\n.target sm_61\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\t.reg .b64 %rd<3>;\n\
         \tld.param.u64 \t%rd1, [out];\n\tst.global.u64 \t[%rd1+8], %rd2;\n\tret;\n}\n",
    );
    let output = run(&[&ptx, "--block", "2", "--buffer", "out:u64[1]"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let place = format!(" --> {ptx}:8:2\n  |\n8 |     st.global.u64     [%rd1+8], %rd2;\n  |     ^");
    assert!(text.contains("error[out-of-bounds]: ") && text.contains(&place), "{text}");
    assert!(text.contains("^ thread [0, 0, 0] of block [0, 0, 0] (warp 0, lane 0)\n"), "{text}");
    assert!(text.contains("  = note: this happened 2 times here\n"), "{text}");
    assert!(text.contains("k, 1 block of 2 threads: "), "{text}");
}

#[test]
fn an_endless_loop_is_stopped() {
    let folder = Folder::new("loop");
    let text = ".version 6.4\n.target sm_61\n.address_size 64\n.entry k()\n{\nL:\nbra L;\n}\n";
    let output = run(&[&folder.file("k.ptx", text), "--block", "32", "--fuel", "1000"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("error[fuel-exhausted]: "));
}

#[test]
fn unknown_names_are_rejected_before_anything_runs() {
    let llvm = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-dsl/compiler/tests/ptx/llvm.ptx");
    let (error, code) = refusal(&[llvm, "--block", "1"]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("error: the PTX interpreter does not run `work`\n`call "), "{error}");
    assert!(error.contains("`: the module does not define it") && error.contains("--> "), "{error}");

    let folder = Folder::new("unknown");
    let text = ".version 6.4\n.target sm_61\n.address_size 64\n.entry k()\n{\n  frob.u32 a;\n  ret;\n}\n";
    let file = folder.file("k.ptx", text);
    let (error, code) = refusal(&[&file, "--block", "1"]);
    assert_eq!(code, Some(1));
    let expected =
        format!("error: `frob` is not a known instruction\n --> {file}:6:3\n  |\n6 |   frob.u32 a;\n  |   ^\n");
    assert_eq!(error, expected);
}

#[test]
fn mismatches_are_reported() {
    let numeric = nvrtc("numeric");
    let fails = |arguments: &[&str], message: &str| {
        let (error, code) = refusal(arguments);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    };
    fails(&["no such file"], "cannot read no such file: ");
    fails(&[&numeric], "numeric.ptx has saxpy, matmul, stencil, ");
    fails(&[&numeric, "saxpi"], "numeric.ptx has saxpy, matmul, stencil, ");
    fails(&[&numeric, "saxpi"], "but no kernel `saxpi`");
    fails(&[&numeric, "saxpy"], "give --block");
    let takes = "saxpy takes u32 (saxpy_param_0), f32 (saxpy_param_1), u64 (saxpy_param_2), u64 (saxpy_param_3)";
    fails(&[&numeric, "saxpy", "--block", "32"], takes);
    fails(&[&numeric, "saxpy", "--block", "2048"], "invalid block size [2048, 1, 1]: a block has 1 to 1024 threads");
    let wrong = ["--arg", "s32:8", "--arg", "u32:2", "--buffer", "x:f32[8]", "--buffer", "y:f32[8]"];
    let saxpy = [&numeric, "saxpy", "--block", "32"];
    fails(&[&saxpy[..], &wrong].concat(), "parameter 2, `saxpy_param_1`, is f32, but u32 was given");
    fails(
        &[&saxpy[..], &["--arg", "s32:1", "--arg", "f32:1", "--arg", "&x"]].concat(),
        "no buffer is called `x`; none is given",
    );
    fails(&[&saxpy[..], &["--buffer", "x:f32[1]", "--buffer", "x:f32[1]"]].concat(), "two buffers are called `x`");
    fails(&[&saxpy[..], &["--buffer", "x:f32[]=iota"]].concat(), "missing number of elements");
    fails(&[&saxpy[..], &["--save", "x=x.bin"]].concat(), "no buffer is called `x`; none is given");
    fails(&[&saxpy[..], &["--grid", "1,2,3,4"]].concat(), "expected at most three dimensions");
    fails(&[&saxpy[..], &["--grid", "4,0"]].concat(), "a grid has at least 1 block in each dimension");
    fails(&[&numeric, "saxpy", "--block", "1,1,65"], "a block has at most 64 threads in z, and 65 are given");
    fails(&[&saxpy[..], &["--shared", "99999999"]].concat(), "bytes of shared memory on sm_");
    let folder = Folder::new("maxntid");
    let text = ".version 6.4\n.target sm_61\n.address_size 64\n.entry k() .maxntid 64, 2, 1 { ret; }\n";
    fails(&[&folder.file("k.ptx", text)], "give --block, of 128 threads at most (.maxntid 64, 2, 1)");
}

#[test]
fn buffers_can_be_shared_and_offset() {
    let saxpy = nvrtc("numeric");
    let arguments = ["saxpy", "--block", "32", "--arg", "s32:1", "--arg", "f32:1", "--arg", "&x+4"];
    // One thread: x[0] += x[1].
    let text = good(&[&[&saxpy[..]], &arguments[..], &["--buffer", "x:f32[5]=iota"]].concat());
    assert!(text.ends_with("\nx: f32[5] = 1.0, 1.0, 2.0, 3.0, 4.0\n"), "{text}");
}

#[test]
fn races_are_found() {
    let folder = Folder::new("race");
    let text = ".version 6.0\n.target sm_61\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .u64 %rd<4>;\n\
                .reg .u32 %r<8>;\nld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nadd.u32 %r1, %r1, 1;\n\
                st.global.u32 [%rd1], %r1;\nret;\n}\n";
    let output = run(&[&folder.file("k.ptx", text), "--grid", "4", "--block", "64", "--buffer", "p:u32[64]"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("error[global-race]: "), "{text}");
}

#[test]
fn arrays_of_numpy_are_read_and_written() {
    let folder = Folder::new("numpy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    let bytes = [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat();
    let elements: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let x = folder.file("x.npy", [&bytes[..], &elements].concat());
    let ptx = folder.file(
        "k.ptx",
        ".version 6.4\n.target sm_61\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n\tret;\n}\n",
    );
    let saved = folder.0.join("y.npy");
    let save = format!("x={}", saved.display());
    let text = good(&[&ptx, "--block", "1", "--buffer", &format!("x:f32[]=@{x}"), "--save", &save]);
    assert!(text.ends_with("\nx: f32[2] = 1.5, -2.0\n"), "{text}");
    let saved = std::fs::read(saved).unwrap();
    assert!(saved.starts_with(b"\x93NUMPY") && saved.ends_with(&elements));
    let (error, code) = refusal(&[&ptx, "--block", "1", "--buffer", &format!("x:f64[]=@{x}")]);
    assert_eq!(code, Some(2));
    assert!(error.contains("the array's elements are `<f4`, and the buffer's are f64"), "{error}");
}
