//! `log!`: the lines of all executors against plain Rust. The expected digits of floats are those
//! of C's `printf` in glibc.

use super::support::{assemble, checker};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel};
use runtime::Device;
use runtime::testing::{Case, Checker, Expected, Input, KernelSpec, Random};
use std::collections::BTreeMap;
use std::process::Command;

/// The kernels of this module.
const KERNELS: [fn(&Checker) -> String; 3] = [
    |c| text(c, shown::ARTIFACT, shown_cases),
    |c| text(c, ordered::ARTIFACT, ordered_cases),
    |c| text(c, nothing::ARTIFACT, nothing_cases),
];

const SINGLES: [f32; 14] = [
    0.1,
    1.0,
    -0.0,
    1e10,
    123_456.79,
    16_777_216.0,
    1e9,
    f32::MAX,
    -2.5e-7,
    f32::from_bits(1),
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::from_bits(0xFFC0_0001),
];

const SINGLE_TEXTS: [&str; 14] = [
    "0.100000001",
    "1",
    "-0",
    "1e+10",
    "123456.789",
    "16777216",
    "1e+09",
    "3.40282347e+38",
    "-2.49999999e-07",
    "1.40129846e-45",
    "inf",
    "-inf",
    "nan",
    "nan",
];

const HALF_TEXTS: [&str; 14] =
    ["0.0999755859", "1", "-0", "inf", "inf", "inf", "inf", "inf", "-2.38418579e-07", "0", "inf", "-inf", "nan", "nan"];

const BRAIN_TEXTS: [&str; 14] = [
    "0.100097656",
    "1",
    "-0",
    "9.99922074e+09",
    "123392",
    "16777216",
    "998244352",
    "inf",
    "-2.4959445e-07",
    "0",
    "inf",
    "-inf",
    "nan",
    "nan",
];

const DOUBLES: [f64; 14] = [
    0.1,
    1.0 / 3.0,
    5e-324,
    f64::MAX,
    -2.5,
    1e16,
    1e17,
    0.0,
    -0.0,
    100.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::from_bits(0xFFF8_0000_0000_0001),
];

const DOUBLE_TEXTS: [&str; 14] = [
    "0.10000000000000001",
    "0.33333333333333331",
    "4.9406564584124654e-324",
    "1.7976931348623157e+308",
    "-2.5",
    "10000000000000000",
    "1e+17",
    "0",
    "-0",
    "100",
    "inf",
    "-inf",
    "nan",
    "nan",
];

const INTEGERS: [i64; 14] = [
    0,
    1,
    -1,
    127,
    -128,
    255,
    32_767,
    -32_768,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    i64::MAX,
    i64::MIN,
    0x0123_4567_89AB_CDEF,
];

/// Shows values of each type in each style.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 14, d.len() == 14, n.len() == 14, h.len() == 14, y.len() == 14)]
fn shown(x: &[f32], d: &[f64], n: &[i64], h: &[f16], y: &mut [u32]) {
    let i = thread::x();
    if i < y.len() {
        let (x, d, n) = (x[i], d[i], n[i]);
        log!("{i}: {x} {:?} {d} {}", bf16::from_f32(x), h[i]);
        log!("{} {} {} {} {}", n as i8, n as i16, n as i32, n, n < 0);
        log!("{:?} {:?} {:?} {:?}", n as u8, n as u16, n as u32, n as u64);
        log!("{:x} {:x} {:x} {n:x} {n:#x}", n as i8, n as u16, n as i32);
        log!("{{100%}} %d {0} {b:#x} {0} \"é\"\ttrue: {t}", n as i32, b = n as u8, t = true);
        log!();
        y[i] = 1;
    }
}

fn shown_cases(_: &Instance, _: &mut Random) -> Vec<Case> {
    let halves = SINGLES.map(f16::from_f32);
    let inputs = [Input::slice(&SINGLES), Input::slice(&DOUBLES), Input::slice(&INTEGERS), Input::slice(&halves)];
    vec![Case::new("shown", [inputs.to_vec(), vec![Input::slice(&[0u32; 14])]].concat())]
}

/// Prints before and after barriers, in loops, and in a device function, in some threads.
#[kernel(block = (16, 4), grid = (2, 2))]
#[requires(y.len() == 256)]
fn ordered(y: &mut [u32]) {
    let t = thread::index();
    if t % 21 == 0 {
        log!("before {t}");
    }
    block::sync();
    for k in 0..t % 3 {
        if t % 21 == 1 {
            log!("step {k}");
            continue;
        }
        log!("other step {k}");
    }
    block::sync();
    last(t);
    y[(block::y() * 2 + block::x()) * 64 + t] = 1;
}

/// Prints in the last thread.
#[device]
fn last(t: usize) {
    if t == 63 {
        for k in unroll(0..2) {
            log!("last of {} {k}", block::x());
        }
    }
}

fn ordered_cases(_: &Instance, _: &mut Random) -> Vec<Case> {
    vec![Case::new("ordered", [Input::slice(&[0u32; 256])])]
}

/// Prints in no thread.
#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 32)]
fn nothing(y: &mut [u32]) {
    y[thread::x()] = 1;
    if y[thread::x()] > 1 {
        log!("never");
    }
}

fn nothing_cases(_: &Instance, _: &mut Random) -> Vec<Case> {
    vec![Case::new("nothing", [Input::slice(&[0u32; 32])])]
}

fn ones(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let last = inputs.len() - 1;
    vec![Expected::exact(last, vec![1u32; inputs[last].value_count()])]
}

/// Runs the kernel on all executors, which must print equal lines for each thread. Returns the text
/// of the oracle.
fn text(checker: &Checker, artifact: &'static Artifact, cases: fn(&Instance, &mut Random) -> Vec<Case>) -> String {
    let spec = KernelSpec { artifact, cases, reference: ones };
    let report = checker.check(&spec, &Instance(Vec::new()), 1);
    assert!(report.passed(), "{report}");
    report.cases.into_iter().map(|case| case.printed).collect()
}

fn start(block: [u32; 3], thread: [u32; 3]) -> String {
    format!("block {block:?}, thread {thread:?}: ")
}

#[test]
fn values_have_the_digits_of_c() {
    let text = text(&checker(false), shown::ARTIFACT, shown_cases);
    // Each log runs in all lanes before the next one.
    let mut lines = [(); 6].map(|()| String::new());
    for i in 0..14 {
        let (n, at) = (INTEGERS[i], start([0; 3], [i as u32, 0, 0]));
        let shown = [
            format!("{i}: {} {} {} {}", SINGLE_TEXTS[i], BRAIN_TEXTS[i], DOUBLE_TEXTS[i], HALF_TEXTS[i]),
            format!("{} {} {} {} {}", n as i8, n as i16, n as i32, n, n < 0),
            format!("{:?} {:?} {:?} {:?}", n as u8, n as u16, n as u32, n as u64),
            format!("{:x} {:x} {:x} {n:x} {n:#x}", n as i8, n as u16, n as i32),
            format!("{{100%}} %d {0} {b:#x} {0} \"é\"\ttrue: {t}", n as i32, b = n as u8, t = true),
            String::new(),
        ];
        lines.iter_mut().zip(shown).for_each(|(line, shown)| *line += &format!("{at}{shown}\n"));
    }
    assert_eq!(text, lines.concat());
}

#[test]
fn lines_have_the_order_of_the_program() {
    let text = text(&checker(false), ordered::ARTIFACT, ordered_cases);
    let mut expected = BTreeMap::new();
    for (by, bx) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for t in 0..64u32 {
            let mut lines: Vec<String> = Vec::new();
            if t % 21 == 0 {
                lines.push(format!("before {t}"));
            }
            lines.extend((0..t % 3).map(|k| format!("{}step {k}", if t % 21 == 1 { "" } else { "other " })));
            if t == 63 {
                lines.extend((0..2).map(|k| format!("last of {bx} {k}")));
            }
            expected.insert(start([bx, by, 0], [t % 16, t / 16, 0]), lines);
        }
    }
    expected.retain(|_, lines| !lines.is_empty());
    assert_eq!(by_thread(&text), expected);
    // Blocks run in their order, and barriers separate lines.
    let blocks: Vec<_> = text.lines().map(|line| line.split_once(", thread").unwrap().0).collect();
    assert!(blocks.is_sorted_by_key(|block| (block.split(", ").nth(1), block.split(", ").next())), "{text}");
    let first: Vec<_> = text.lines().take_while(|line| line.starts_with("block [0, 0, 0]")).collect();
    let before = first.iter().rposition(|line| line.contains("before")).unwrap();
    assert!(first[before + 1..].iter().all(|line| !line.contains("before")) && before == 3, "{text}");
    assert!(first.last().unwrap().ends_with("last of 0 1"), "{text}");
}

/// Returns the lines of each thread, in order.
fn by_thread(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((thread, line)) = line.split_once(": ")
            && let Some(at) = thread.find("block [")
        {
            threads.entry(format!("{}: ", &thread[at..])).or_default().push(line.to_string());
        }
    }
    threads
}

#[test]
fn kernel_that_prints_nothing_has_no_lines() {
    assert_eq!(text(&checker(false), nothing::ARTIFACT, nothing_cases), "");
}

#[test]
fn every_target_assembles_logs() {
    assemble::<shown>();
    assemble::<ordered>();
}

/// Prints about 3 MB.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
fn talks(y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        log!("{i}");
        y[i] = 1;
    }
}

#[test]
fn a_launch_keeps_its_last_mebibyte() {
    let cases = |_: &Instance, _: &mut Random| vec![Case::new("talks", [Input::slice(&[0u32; 65_536])])];
    let text = text(&checker(false), talks::ARTIFACT, cases);
    assert!(text.len() <= 1 << 20 && text.len() > (1 << 20) - 100, "{}", text.len());
    assert!(text.ends_with("block [255, 0, 0], thread [255, 0, 0]: 65535\n"));
}

/// Runs a test again in a process, which must succeed there. Returns what it printed; `None` in
/// that process.
fn printed_by(test: &str, body: impl FnOnce()) -> Option<String> {
    const CHILD: &str = "KERNELS_LOG_CHILD";
    if std::env::var_os(CHILD).is_some() {
        body();
        return None;
    }
    let program = std::env::current_exe().expect("this program");
    let arguments = ["--include-ignored", "--exact", &format!("log::{test}"), "--nocapture"];
    let output = Command::new(program).args(arguments).env(CHILD, "1").output().expect("this program runs again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(text)
}

#[test]
fn cpu_device_prints_to_standard_output() {
    let printed = printed_by("cpu_device_prints_to_standard_output", || {
        let device = Device::cpu();
        ordered::launch(&device, &mut device.upload(&[0u32; 256]).unwrap()).unwrap();
    });
    if let Some(printed) = printed {
        let expected = text(&checker(false), ordered::ARTIFACT, ordered_cases);
        assert!(printed.contains(&expected), "{printed}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_prints_the_lines_of_the_oracle() {
    // The unchecked form and the checked form run there.
    let printed = printed_by("gpu_prints_the_lines_of_the_oracle", || {
        KERNELS.iter().for_each(|run| _ = run(&checker(true)));
    });
    let Some(printed) = printed else { return };
    let mut expected = BTreeMap::<String, Vec<String>>::new();
    for run in KERNELS {
        for (thread, lines) in by_thread(&run(&checker(false))) {
            expected.entry(thread).or_default().extend([lines.clone(), lines].concat());
        }
    }
    assert_eq!(by_thread(&printed), expected);
}
