//! End-to-end tests of the command `kernels`.

#[path = "command/run.rs"]
mod run;

use serde_json::Value;
use std::process::{Command, Output, Stdio};

fn kernels(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kernels")).args(arguments).output().unwrap()
}

/// Runs a command that must succeed without errors, and returns its stdout.
fn stdout(arguments: &[&str]) -> String {
    let output = kernels(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must be rejected, and returns its stderr.
fn refusal(arguments: &[&str]) -> String {
    let output = kernels(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(arguments)).unwrap()
}

#[test]
fn list_has_the_documented_fields_and_correct_locations() {
    let list = json(&["list", "--json"]);
    let kernels = list.as_array().unwrap();
    let mut instances = Vec::new();
    for kernel in kernels {
        let mut fields: Vec<_> = kernel.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(fields, ["description", "file", "instances", "line", "name"]);
        instances.extend(kernel["instances"].as_array().unwrap().iter().map(|i| i.as_str().unwrap()));

        let file = kernel["file"].as_str().unwrap();
        let text = std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let line = text.lines().nth(kernel["line"].as_u64().unwrap() as usize - 1).unwrap();
        assert!(line.contains(&format!("fn {}", kernel["name"].as_str().unwrap())), "{line}");
    }
    for expected in ["saxpy", "matmul<T = 16>", "transpose", "softmax<ROWS = 4>", "gemm@f32_128x128_v4_ta"] {
        assert!(instances.contains(&expected), "{expected} is not in {instances:?}");
    }
}

#[test]
fn list_has_a_line_a_kernel_by_module() {
    let text = stdout(&["list"]);
    // Only a terminal cuts lines.
    assert!(!text.contains('…') && text.lines().any(|line| line.chars().count() > 80), "{text}");
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("  saxpy ").contains("  1  Computes y ← a·x + y, one element per thread, "), "{text}");
    assert!(line("  matmul ").contains("  2  "), "{text}");
    let (before, _) = text.split_once("\n  matmul ").unwrap();
    let module = before.lines().rfind(|line| !line.starts_with(' ')).unwrap();
    assert_eq!(module, "kernels_rs::gemm");
    let kernels = text.lines().filter(|line| line.starts_with(' ')).count();
    assert!(line(&kernels.to_string()).ends_with(" instances; -v lists the instances"), "{text}");

    let text = stdout(&["list", "-v", "matm*", "gemm@f16_16x128_v4*"]);
    let instances = [
        "    matmul<T = 16>\n    matmul<T = 32>\n",
        "    gemm@f16_16x128_v4     <f16, f16, f16, Identity, BM = 16, BN = 128, BK = 32, QM = 1, QN = 1, V = 4, TA = false,",
        "\n2 kernels, 4 instances\n",
    ];
    for part in instances {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn patterns_and_names_select_instances_in_each_command() {
    let rust = "sum_splits::<f32, Identity, 1>";
    let ptx = kernels_rs::gemm::tiled::sum_splits::<f32, kernels_rs::gemm::epilogue::Identity, 1>::PTX;
    for name in ["sum_splits@f32_v1", "sum_splits<f32, Identity, V = 1>", rust, "sum*@f32_v1"] {
        assert_eq!(stdout(&["show", name]), ptx);
        assert!(stdout(&["report", name]).starts_with("sum_splits@f32_v1 for sm_61\n"), "{name}");
    }
    assert!(stdout(&["trace", "sum*@f16_v1", "--lines", "1"]).contains("sum_splits@f16_v1, thread"));
    let report = json(&["check", "sum_splits@*v4", "matmul<T = 16>", "--json", "--device", "cpu"]);
    let names: Vec<_> = report["instances"].as_array().unwrap().iter().map(|i| i["instance"].as_str()).collect();
    assert_eq!(names, ["sum_splits@f32_v4", "sum_splits@f16_v4", "matmul<T = 16>"].map(Some));
    assert!(refusal(&["show", "sum_splits"]).contains("choose one: sum_splits@f32_v4, "));
    assert!(refusal(&["check", "summ*"]).contains("no kernel and no declared instance matches `summ*`"));
}

#[test]
fn show_prints_only_the_ptx_of_the_program() {
    assert_eq!(stdout(&["show", "matmul::<16>", "--ptx"]), kernels_rs::matmul::<16>::PTX);
    assert_eq!(stdout(&["show", "saxpy"]), kernels_rs::saxpy::PTX);
    assert_eq!(stdout(&["show", "kernels_rs::gemm::matmul::<32>"]), kernels_rs::matmul::<32>::PTX);
}

#[test]
fn show_compiles_other_instances_and_targets() {
    assert!(stdout(&["show", "matmul::<8>"]).contains(".visible .entry matmul_8("));
    assert!(stdout(&["show", "saxpy", "--target", "sm_80"]).contains(".target sm_80"));
    let output = kernels(&["show", "matmul::<48>"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("cannot compile matmul<T = 48> for sm_61") && errors.contains("48 × 48"), "{errors}");
}

#[test]
fn show_prints_ir_before_and_after_passes() {
    let lowered = stdout(&["show", "transpose", "--ir"]);
    let optimized = stdout(&["show", "transpose", "--ir", "--optimized"]);
    assert!(lowered.contains("kernel transpose") && optimized.contains("kernel transpose"));
    assert_ne!(lowered, optimized);
    assert!(refusal(&["show", "transpose", "--optimized"]).contains("--ir"));
}

#[test]
fn show_prints_the_checked_form() {
    let records = |ptx: &str| ptx.matches("atom.global.cas.b32").count();
    let (checked, unchecked) =
        (stdout(&["show", "norm_activations@f32_l256", "--checked"]), stdout(&["show", "norm_activations@f32_l256"]));
    assert!(checked.contains(".param .u64 record") && !unchecked.contains("record"), "{checked}");
    assert!(records(&checked) > 0 && records(&unchecked) == 0, "{checked}");
    let proven = stdout(&["show", "saxpy", "--checked"]);
    assert_eq!(records(&proven), 0, "each access is proven:\n{proven}");
    let ir = stdout(&["show", "saxpy", "--checked", "--ir"]);
    let optimized = stdout(&["show", "saxpy", "--checked", "--ir", "--optimized"]);
    assert!(optimized.lines().count() < ir.lines().count(), "proven checks are removed:\n{optimized}");
    assert!(refusal(&["show", "saxpy", "--checked", "--source"]).contains("--source"));
}

#[test]
fn show_uses_the_line_numbers_of_the_source_file() {
    let shown = stdout(&["show", "softmax", "--source"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/rowwise/textbook.rs");
    let file = std::fs::read_to_string(file).unwrap();
    let kernel = shown.split("\n\n// ").next().unwrap();
    assert!(kernel.starts_with("// kernels-rs/src/rowwise/textbook.rs\n"));
    for line in kernel.lines().skip(1) {
        let (number, text) = line.split_once(" │").unwrap();
        let number: usize = number.trim().parse().unwrap();
        assert_eq!(text.trim(), file.lines().nth(number - 1).unwrap().trim());
    }
    assert!(shown.contains("pub fn exp(x: f32) -> f32"), "a device function that it calls");
}

#[test]
fn paths_can_be_opened_from_the_current_folder() {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for (arguments, path) in [
        (["trace", "saxpy"].as_slice(), "\nsrc/elementwise.rs:39  let i = grid::index();\n"),
        (&["show", "saxpy", "--source"], "// src/elementwise.rs\n"),
        (&["list", "-v", "saxpy"], " src/elementwise.rs:38\n"),
        (&["report", "saxpy", "--all"], " src/elementwise.rs:41:9 "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_kernels")).args(arguments).current_dir(package).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(path) && !text.contains("kernels-rs/src"), "{text}");
    }
}

#[test]
fn unknown_names_are_rejected_with_suggestions() {
    let unknown = refusal(&["show", "matmull"]);
    assert_eq!(unknown, "error: unknown kernel `matmull` (is `matmul` meant?); `kernels list` prints all\n");
    let unknown = refusal(&["show", "nothing_like_it"]);
    assert!(unknown.contains("`; there are ") && unknown.ends_with(" more; `kernels list` prints all\n"), "{unknown}");
    assert!(refusal(&["check", "saxpi"]).contains("is `saxpy` meant?"));
    assert!(refusal(&["show", "matmul"]).contains("choose one: matmul<T = 16>, matmul<T = 32>"));
    assert!(refusal(&["show", "saxpy", "--target", "sm_20"]).contains("sm_61, sm_70"));
    assert!(refusal(&["show", "saxpy", "--ptx", "--ir"]).contains("cannot be used with"));
    assert!(refusal(&["check", "--device", "gpu"]).contains("cuda:N"));
    let no_device = refusal(&["check", "--device", "cuda:4294967296"]);
    assert!(no_device.contains("cannot use cuda:4294967296: ") && no_device.contains("`--device cpu`"), "{no_device}");
    assert!(refusal(&["inspect", "saxpy", "--seed", "x"]).contains("expected a whole number"));
    // The test's own program is not text.
    let program = std::env::current_exe().unwrap();
    for command in [["run"].as_slice(), &["bench", "saxpy", "--against"]] {
        let refused = refusal(&[command, &[program.to_str().unwrap()]].concat());
        assert!(refused.contains("is not text in UTF-8; name a text file"), "{refused}");
    }
    for [command @ .., option, value] in [
        ["trace", "saxpy", "--fuel", "-1"],
        ["check", "saxpy", "--seed", "-1"],
        ["report", "saxpy", "--seed", "-7"],
        ["bench", "saxpy", "--least-change", "-5"],
        ["bench", "saxpy", "--least-change", "nan"],
    ] {
        let refused = refusal(&[command, [option, value]].concat());
        assert!(refused.starts_with(&format!("error: invalid value '{value}' for '{option} ")), "{refused}");
    }
    // A suite has its own cases and device.
    for option in ["--case", "--seed", "--device", "--model", "--save", "--against", "--least-change"] {
        let refused = refusal(&["bench", "--suite", "gemm", option, if option == "--device" { "cpu" } else { "1" }]);
        assert!(refused.contains("cannot be used with"), "{refused}");
    }
    let refused = refusal(&["inspect", "saxpy", "--serve", "--source", "no/such/file.rs"]);
    assert!(refused.contains("cannot read no/such/file.rs: "), "{refused}");
    let no_device = refusal(&["tune", "gemm", "--case", "1x1x1", "--device", "cuda:4294967296"]);
    assert!(no_device.contains("`--device gtx1080`"), "{no_device}");
    let empty = std::env::temp_dir().join(format!("kernels-{}.ptx", std::process::id()));
    std::fs::write(&empty, ".version 6.0\n.target sm_61\n.address_size 64\n").unwrap();
    let refused = refusal(&["inspect", "saxpy", "--against", empty.to_str().unwrap()]);
    assert!(refused.contains(".ptx has no kernel: expected PTX with an `.entry`"), "{refused}");
    std::fs::remove_file(empty).unwrap();
    refusal(&["frobnicate"]);
}

#[test]
fn check_passes_and_states_what_it_compared() {
    let text = stdout(&["check", "saxpy", "--device", "cpu", "--seed", "7"]);
    assert!(text.starts_with("device cpu (interpreter): selected by `--device`\n"), "{text}");
    assert!(text.contains("lowered = optimized = checked = ptx ≈ plain Rust"), "{text}");
    assert!(text.lines().last().unwrap().contains("1 pass") && text.contains("(seed 7)"), "{text}");
}

#[test]
fn check_as_json_has_one_object_per_instance() {
    let report = json(&["check", "softmax", "transpose", "softmax::<2>", "--json", "--device", "cpu"]);
    assert_eq!((&report["passed"], &report["failed"], &report["unsupported"]), (&4.into(), &0.into(), &0.into()));
    let names: Vec<_> = report["instances"].as_array().unwrap().iter().map(|i| i["instance"].as_str()).collect();
    assert_eq!(names, ["softmax<ROWS = 4>", "softmax<ROWS = 8>", "transpose", "softmax<ROWS = 2>"].map(Some));
    for instance in report["instances"].as_array().unwrap() {
        assert_eq!(instance["verdict"], "pass");
        assert!(instance["cases"].as_u64().unwrap() > 10);
        assert_eq!(instance["executors"], serde_json::json!(["lowered", "optimized", "checked", "ptx"]));
    }
}

#[test]
fn doctor_reports_how_the_macros_were_built() {
    let report = json(&["doctor", "--json"]);
    for field in ["driver", "devices", "cpu_threads", "best", "ptxas", "nvdisasm"] {
        assert!(report.get(field).is_some(), "{field} is missing in {report}");
    }
    assert!(report["macros"]["rustc"].as_str().unwrap().starts_with("rustc 1."));
    assert!(report["macros"]["opt_level"].is_string());
    let text = stdout(&["doctor"]);
    assert!(text.contains("macros   opt-level") && text.contains("nvdisasm "), "{text}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernels"));
    let command = command.args(["show", "matmul::<32>"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn report_shows_the_resources_of_an_instance() {
    let text = stdout(&["report", "matmul::<16>", "--all"]);
    assert!(text.starts_with("matmul<T = 16> for sm_61\nblock         16 x 16 x 1: 256 threads\n"), "{text}");
    assert!(text.contains("ta: f32 [16, 16], pitch 16 (padded by 0), bytes 0..1024\n"), "{text}");
    let row = |start: &str| text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{text}"));
    let words: Vec<_> = row("load tb").split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let rest = ["16 × 4 B, looped", "lane", "no bank conflict · 1", "100 %", "shape", "0..256 of 256"];
    assert_eq!(words[1..], [&["load tb"][..], &rest].concat(), "{text}");
    assert!(row("store c").ends_with("line 75       0..1584 of 1584"), "{text}");
    assert!(row("gemm.rs:66:15").ends_with("loop  grid  no divergence in 288 executions"), "{text}");
    assert!(text.ends_with("no operations known to be slow on sm_61\n"), "{text}");
    // Blocks of 144 threads.
    let text = stdout(&["report", "matmul::<12>", "--all"]);
    let slow =
        "slow[partial-warp]: a block of 144 threads leaves 16 lanes of its last warp idle\n  = help: make the block";
    assert!(text.contains(slow), "{text}");
    // A kernel's name selects all of its instances.
    assert_eq!(stdout(&["report", "matmul"]).matches(" for sm_61\n").count(), 2);
}

#[test]
fn report_as_json_has_one_object_per_instance() {
    let report = json(&["report", "transpose", "--json", "--target", "sm_86"]);
    let [transpose] = &report.as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&transpose["instance"], &transpose["target"]), (&"transpose".into(), &"sm_86".into()));
    assert_eq!((&transpose["threads"], &transpose["shared_bytes"]), (&256.into(), &4220.into()));
    assert_eq!(transpose["occupancy"]["of"], 48);
    assert!(transpose.get("machine_code").is_some(), "{transpose}");
    assert_eq!((&transpose["instructions"]["shared-load"], &transpose["lints"]), (&4.into(), &serde_json::json!([])));
    let store = transpose["accesses"].as_array().unwrap().iter().find(|a| a["array"] == "y").unwrap();
    assert_eq!(store["text"], "y[(row + 8 * i, col)] = tile[(thread::x(), thread::y() + 8 * i)];");
    assert_eq!((&store["kind"], &store["count"]), (&"store".into(), &4.into()));
    assert_eq!(store["cost"], serde_json::json!({ "global": { "sectors": 4, "least": 4, "lines": 1, "used": 128 } }));
    assert!(refusal(&["report", "transpos"]).contains("is `transpose` meant?"));
    // The bounds are those of a card of sm_61.
    let has_bound = |text: String| text.lines().any(|line| line.starts_with("limit "));
    assert!(has_bound(stdout(&["report", "transpose"])));
    assert!(!has_bound(stdout(&["report", "transpose", "--target", "sm_86"])));
    assert!(refusal(&["report", "transpose", "--target", "sm_20"]).contains("sm_61, sm_70"));
}

#[test]
fn report_measures_what_it_computes() {
    let report = json(&["report", "saxpy", "--json", "--case", "512 elements"]);
    assert_eq!(report[0]["case"], "512 elements");
    let accesses = report[0]["accesses"].as_array().unwrap();
    assert_eq!(accesses.len(), 3);
    for access in accesses {
        // Two blocks of eight warps with all lanes active.
        let Value::Object(measured) = &access["measured"] else { panic!("{access}") };
        assert_eq!((&measured["requests"], &measured["lanes"]), (&16.into(), &512.into()), "{access}");
        assert_eq!((&measured["mean"], &measured["most"]), (&4.0.into(), &4.into()), "{access}");
        assert_eq!(access["cost"]["global"]["sectors"], 4, "{access}");
        assert_eq!((&measured["lines"], &measured["efficiency"]), (&16.into(), &1.0.into()), "{access}");
        let touched = serde_json::json!({ "first": 0, "end": 2048, "of": 2048 });
        assert_eq!((&measured["touched"], &access["computed"]["end"]), (&touched, &2048.into()), "{access}");
        assert_eq!(access["within"]["lines"], serde_json::json!([40]), "{access}");
        assert_eq!(access["within"]["requires"], access["array"] == "x", "{access}");
    }
    let branch = &report[0]["branches"][0];
    assert_eq!((&branch["scope"], &branch["looped"], &branch["line"]), (&"lane".into(), &false.into(), &40.into()));
    assert_eq!(branch["measured"], serde_json::json!({ "decided": 16, "diverged": 0 }));
    let lines = report[0]["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["line"] == 41 && line["lanes"] == 512 * 4), "{lines:?}");
    let text = stdout(&["report", "saxpy", "--case", "512 elements", "--all"]);
    assert!(text.contains("4 sectors · 4  1      100 %       100 %  line 40"), "{text}");
}

#[test]
fn report_states_a_finding_of_a_location_once() {
    let text = stdout(&["report", "transpose_tiles", "--all"]);
    assert_eq!(text.matches("transpose_tiles@").count(), text.matches(" for sm_61\nblock").count(), "{text}");
    assert_eq!(text.matches("slow[integer-division]").count(), 1, "{text}");
    assert!(text.contains(" (3 times) (in 4 of 4 instances)\n --> kernels-rs/src/permute/rows.rs:8:20\n"), "{text}");
}

/// Checks that the report states how often lanes diverge, and in which lines: the last warp of the
/// launch is not full.
#[test]
fn report_shows_where_lanes_diverge() {
    let text = stdout(&["report", "saxpy", "--all"]);
    assert!(text.contains("branch  lane  diverges in 1 of 320 executions, under 1 %\n"), "{text}");
    assert!(text.contains("where some lanes are inactive:\n  kernels-rs/src/elementwise.rs:41 99 %\n"), "{text}");
}

#[test]
fn trace_follows_a_thread() {
    let text = stdout(&["trace", "saxpy", "--block", "1", "--thread", "3", "--case", "512 elements"]);
    assert!(text.starts_with("case `512 elements` of seed 1\nsaxpy, thread [3, 0, 0] of block [1, 0, 0]\n"), "{text}");
    assert!(text.contains("let i = grid::index();\n    i = 259\n"), "{text}");
    assert!(text.contains("    store y[259]: "), "{text}");
    let trace = json(&["trace", "matmul::<16>", "--thread", "3,1", "--lines", "4", "--json"]);
    assert_eq!((&trace["thread"], trace["lines"].as_array().unwrap().len()), (&serde_json::json!([3, 1, 0]), 4));
    assert_eq!(trace["lines"][0]["events"][0]["value"], "1", "{trace}");
    assert!(trace["left_out"].as_u64().unwrap() > 0, "{trace}");
    assert!(refusal(&["trace", "saxpy", "--case", "none such"]).contains("\n  7: 512 elements\n"));
    let refused = refusal(&["trace", "matmul::<16>", "--block", "90"]);
    assert!(refused.contains("matmul<T = 16> has no such thread: there is no block [90, 0, 0]"), "{refused}");
}

/// Removes the lines of ptxas and nvdisasm, which depend on the installed release.
fn without_machine_code(report: &str) -> Vec<&str> {
    let (before, rest) = report.split_once("machine code").unwrap_or((report, ""));
    let after = rest.find("memory, a warp's access").map_or("", |at| &rest[at..]);
    let lines = before.lines().chain(after.lines());
    lines.filter(|line| !line.starts_with("registers") && !line.starts_with("occupancy")).collect()
}

#[test]
fn report_matches_the_documentation() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-dsl/docs/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut blocks = page.split("```text\n").filter(|block| block.starts_with("matmul<T = 16> for sm_61\n"));
    for more in [&[][..], &["--all"]] {
        let shown = blocks.next().and_then(|block| block.split("```").next()).unwrap();
        let told = stdout(&[&["report", "matmul::<16>"], more].concat());
        if told.contains("ptxas 12.9") && told.contains("machine code") {
            assert_eq!(told, shown);
        } else if !more.is_empty() {
            println!("what ptxas 12.9 and nvdisasm say is left out: `tests/get-nvdisasm` fetches both");
            assert_eq!(without_machine_code(&told), without_machine_code(shown));
        }
    }
}

/// Compares the figures of a loop's forms with the machine code of the instance itself.
#[test]
fn report_compares_unrolled_forms_of_a_loop() {
    let output = kernels(&["report", "softmax<ROWS = 4>", "--unroll", "--json"]);
    if !output.status.success() {
        let refused = String::from_utf8(output.stderr).unwrap();
        assert!(refused.contains("`report` without `--unroll` do not need them"), "{refused}");
        println!("skipped: no ptxas and nvdisasm for sm_61 are found");
        return;
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let loops = report[0]["unrolling"].as_array().unwrap();
    let machine = report[0]["machine_code"]["sass"]["loops"].as_array().unwrap();
    assert_eq!(loops.len(), 3, "{loops:?}");
    for (l, line) in loops.iter().zip([21, 28, 34]) {
        assert_eq!((&l["line"], &l["iterations"]), (&line.into(), &Value::Null));
        let forms = l["forms"].as_array().unwrap();
        let names: Vec<_> = forms.iter().map(|form| form["unrolling"].clone()).collect();
        assert_eq!(
            names,
            serde_json::json!(["declared", "rolled", {"by": 2}, {"by": 4}, {"by": 8}]).as_array().unwrap()[..]
        );
        // ptxas makes four copies of a loop that leaves the choice to it.
        let slots = |l: &Value| l["slots"].as_f64().unwrap();
        let here = machine.iter().filter(|m| m["line"]["number"] == line);
        let largest = here.map(slots).fold(0.0, f64::max);
        assert_eq!(slots(&forms[0]), largest / 4.0, "{l}");
        assert!(slots(&forms[0]) < slots(&forms[1]), "{l}");
        assert_eq!(forms[0]["registers"], report[0]["machine_code"]["registers"], "{l}");
    }
    let text = stdout(&["report", "count_global", "--unroll", "--all"]);
    assert!(text.contains("unrolling, issue slots of an iteration (registers of the kernel):\n"), "{text}");
    assert!(stdout(&["report", "count_global", "--unroll"]).lines().count() <= 25);
    // The page has the same figures, and the suggestions beside the lines.
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("unrolled.html");
    stdout(&["inspect", "softmax<ROWS = 4>", "--unroll", "-o", file.to_str().unwrap()]);
    let model = model(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(model["report"]["unrolling"], report[0]["unrolling"]);
    let [now, .., by_8] = loops[0]["forms"].as_array().unwrap().as_slice() else { panic!("{loops:?}") };
    let (now, by_8) = (&now["slots"], &by_8["slots"]);
    let text = format!("An iteration takes {now} issue slots, and {by_8} with `unroll_by::<8>` around the range.");
    let advice = model["advice"].as_array().unwrap();
    assert!(advice.iter().any(|a| a["place"] == "textbook.rs:21" && a["text"] == *text), "{text}: {advice:?}");
}

/// Checks that the first screen fits a terminal of 25 lines and 100 columns, for large kernels too.
#[test]
fn report_fits_a_screen() {
    let names = ["gemm@f32_128x128_v4", "softmax", "flash_attention@f16_w128_v4", "transpose_tiles", "saxpy"];
    let text = stdout(&[&["report"], &names[..]].concat());
    let wide = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None);
    let screens: Vec<_> = text.split("\n\n").collect();
    assert!(screens.len() > 8, "{}", screens.len());
    for screen in screens {
        assert!(screen.lines().count() <= 25, "{screen}");
        assert!(screen.contains("\noccupancy ") && screen.contains("\naccesses "), "{screen}");
    }
}

/// Returns the data of a page.
fn model(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"model\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Checks the data of the page against figures that other tests hold.
#[test]
fn inspect_writes_a_page() {
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("saxpy.html");
    let name = file.to_str().unwrap();
    assert_eq!(stdout(&["inspect", "saxpy", "-o", name, "--case", "512 elements"]), format!("saxpy: {name}\n"));
    let page = std::fs::read_to_string(&file).unwrap();
    let model = model(&page);
    // The line `y[i] = a.mul_add(x[i], y[i]);` in all forms.
    let lines = model["lines"].as_array().unwrap();
    let at = lines.iter().position(|line| line["number"] == 41).unwrap();
    assert!(lines[at]["text"].as_str().unwrap().contains("a.mul_add(x[i], y[i])"));
    let linked = |form: &str, part: &str| {
        let all = model[form].as_array().unwrap();
        let found = all.iter().any(|line| line["at"] == at && line["text"].as_str().unwrap().contains(part));
        assert!(found, "{form} has no `{part}` at line 41");
    };
    linked("lowered", "store %3[");
    linked("optimized", "store ");
    linked("ptx", "fma.rn.f32");
    if model["sass"].as_array().is_some_and(|sass| !sass.is_empty()) {
        linked("sass", "FFMA");
        assert!(lines[at]["slots"].as_u64() > Some(3) && lines[at]["live"].as_u64() > Some(3), "{}", lines[at]);
    }
    // 512 multiplications with additions; 512 floats of x and of y are read, and as many written.
    assert_eq!((&model["limits"]["operations"], &model["limits"]["bytes"]), (&1024.into(), &6144.into()));
    // Two reads and a write of 512 floats move 64 sectors each.
    assert_eq!(model["limits"]["requested"], 3 * 64 * 32);
    let lanes = model["accesses"][0]["request"]["lanes"].as_array().unwrap();
    let first = lanes[0].as_u64().unwrap();
    assert!((0..32).all(|lane| lanes[lane].as_u64() == Some(first + 4 * lane as u64)), "{lanes:?}");
    let cells = model["tiles"][0]["cells"].as_array().unwrap();
    assert!(cells[0][0] == 0 && cells[cells.len() - 1][0] == 1, "{}", model["tiles"]);
    assert!(model["advice"].as_array().is_some_and(Vec::is_empty), "{}", model["advice"]);
    // A saved page is the other side of a comparison; nothing differs from itself.
    let again = file.with_file_name("again.html");
    stdout(&["inspect", "saxpy", "-o", again.to_str().unwrap(), "--against", name]);
    let page = std::fs::read_to_string(again).unwrap();
    assert!(page.contains("\"comparison\":{\"name\":\"saxpy\"") && !page.contains("\"only\":"));
    let refused = refusal(&["inspect", "saxpy", "--against", "Cargo.html"]);
    assert!(refused.contains("cannot read Cargo.html"), "{refused}");
    assert!(refusal(&["inspect", "matmul"]).contains("choose one: matmul<T = 16>, matmul<T = 32>"));
}

#[test]
fn cache_shows_and_clears_its_contents() {
    use runtime::store::Store;

    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let run = |variable: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kernels"));
        let output = command.args(arguments).env("KERNELS_CACHE", variable).env("KERNELS_CACHE_LIMIT", "3").output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let place = folder.to_str().unwrap();
    assert_eq!(run(place, &["cache"]), format!("{place}\nentries: 0; 0.0 of 3 MiB\n"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{:032x}.ptx-entry", 1)), [0; 100]).unwrap();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let shown: Value = serde_json::from_str(&run(place, &["cache", "--json"])).unwrap();
    assert_eq!((&shown["entries"], &shown["bytes"], &shown["cleared"]), (&1.into(), &100.into(), &false.into()));
    let cleared = run(place, &["cache", "clear"]);
    assert!(cleared.contains("removed entries: 1"), "{cleared}");
    assert_eq!(Store::new(&folder, 0).usage().unwrap().entries, 0);
    assert!(folder.join("notes.txt").exists());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(run("off", &["cache"]).starts_with("the cache is disabled: "));
}

/// A transpose by hand: it reads and writes each element once, and computes nothing.
#[test]
fn bench_counts_what_a_case_does() {
    let folder = std::env::temp_dir().join(format!("kernels-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let saved = folder.join("saved.json");
    let saved = saved.to_str().unwrap();
    let rows = ["bench", "map_2@swiglu_f32_v1", "--device", "cpu"];
    let all = json(&[&rows[..], &["--all-cases", "--json"]].concat());
    assert!(all["cases"].as_array().unwrap().len() > 3, "{all}");

    let measured = json(&["bench", "transpose", "--device", "cpu", "--save", saved, "--json"]);
    assert_eq!(measured["cases"].as_array().unwrap().len(), 1);
    let case = &measured["cases"][0];
    let name = case["case"].as_str().unwrap();
    let extents: Vec<u64> = name.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let bytes = 4 * extents.iter().take(2).product::<u64>();
    assert_eq!((case["work"]["read"].as_u64(), case["work"]["written"].as_u64()), (Some(bytes), Some(bytes)), "{name}");
    assert_eq!(case["work"]["operations"], 0);
    assert!(case["work"]["sectors"].as_u64().unwrap() >= 2 * bytes / 32);

    // Against itself there is no difference; against a shorter earlier estimate it is slower.
    let again = ["bench", "transpose", "--device", "cpu", "--against", saved];
    if case["estimate"].is_object() {
        assert!(stdout(&again).contains("no significant difference: 1.000 ×"));
        let mut faster = measured.clone();
        let us = faster["cases"][0]["estimate"]["time_us"].as_f64().unwrap();
        faster["cases"][0]["estimate"]["time_us"] = (0.9 * us).into();
        std::fs::write(saved, faster.to_string()).unwrap();
        let slower = kernels(&again);
        assert_eq!(slower.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&slower.stdout).contains("slower: 1.111 ×"));
    }
    // Without an estimate the counts are compared.
    let mut fewer = measured.clone();
    let instructions = case["work"]["instructions"].as_f64().unwrap();
    fewer["cases"][0]["estimate"] = Value::Null;
    fewer["cases"][0]["work"]["instructions"] = ((instructions / 2.0) as u64).into();
    std::fs::write(saved, fewer.to_string()).unwrap();
    let slower = kernels(&again);
    assert_eq!(slower.status.code(), Some(1));
    let text = String::from_utf8_lossy(&slower.stdout);
    assert!(text.contains("slower: 2.000 × of the earlier warp instructions, 1.000 × of the sectors"), "{text}");
    let other = ["bench", "saxpy", "--device", "cpu", "--against", saved];
    let why = refusal(&other);
    assert!(why.contains("no case that was measured now is in it; its first case is `"), "{why}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn bench_refuses_what_it_cannot_measure() {
    assert!(refusal(&["bench", "memory"]).contains("`kernels bench --suite memory` measures the suite of that name"));
    assert!(refusal(&["bench"]).contains("<NAME>"));
    let missing = refusal(&["bench", "saxpy", "--against", "does/not/exist.json"]);
    assert!(missing.contains("cannot use the measurements in does/not/exist.json"), "{missing}");
    let broken = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    assert!(
        refusal(&["bench", "saxpy", "--against", &broken])
            .contains("`kernels bench NAME --save FILE` writes such a file")
    );
    assert!(refusal(&["bench", "saxpy", "--device", "cpu", "--model", "gtx1081"]).contains("gtx1080ti"));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_bench_measures_with_warm_and_cold_caches() {
    let measured = json(&["bench", "matmul<T = 16>", "--device", "cuda:0", "--rounds", "5", "--json"]);
    let case = &measured["cases"][0];
    assert!(case["estimate"].is_null());
    let times = case["times"].as_array().unwrap();
    assert_eq!(times.iter().map(|t| t["cache"].as_str().unwrap()).collect::<Vec<_>>(), ["warm", "cold"]);
    for time in times {
        let samples = time["samples_ms"].as_array().unwrap();
        assert!(samples.len() >= 5 && samples.iter().all(|ms| ms.as_f64().unwrap() > 0.0), "{time}");
        let [median, low, high] =
            [&time["median_ms"], &time["ci95_ms"][0], &time["ci95_ms"][1]].map(|ms| ms.as_f64().unwrap());
        assert!(low <= median && median <= high, "{time}");
        // The rates follow from the counts.
        let operations = case["work"]["operations"].as_f64().unwrap();
        assert!((time["gflops"].as_f64().unwrap() / (operations / median / 1e6) - 1.0).abs() < 1e-9, "{time}");
    }
}

#[test]
fn tune_refuses_what_it_cannot_tune() {
    assert!(refusal(&["tune", "gemm", "--case", "5x6"]).contains("write MxNxK or BATCHxMxNxK"));
    assert!(refusal(&["tune", "softmax", "--case", "5x6x7"]).contains("possible values: gemm"));
    let unknown = refusal(&["tune", "gemm", "--case", "5x6x7", "--device", "gtx9"]);
    assert!(unknown.contains("unknown device `gtx9`; the devices are gtx1050ti"), "{unknown}");
    let table = std::env::temp_dir().join(format!("kernels-tune-damaged-{}.txt", std::process::id()));
    std::fs::write(&table, "# plans\nNVIDIA H200 | 1x2x3x4 | A·B | tiles 64x128 99 |\n").unwrap();
    let path = table.to_str().unwrap();
    let damaged = refusal(&["tune", "gemm", "--case", "5x6x7", "--device", "gtx1080ti", "--write", path]);
    assert!(damaged.contains("line 2") && damaged.contains("99 parts; a plan has from 1 to 32"), "{damaged}");
    std::fs::remove_file(&table).unwrap();
}

/// Returns whether a command failed because NVIDIA's tools are missing.
fn lacks_tools(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("an estimate requires machine code")
}

#[test]
fn estimates_are_compared_with_published_figures() {
    let path = std::env::temp_dir().join(format!("kernels-published-{}.json", std::process::id()));
    let text = r#"{
        "figures": [{
            "device": "p4", "what": "a product", "rate": 0.5, "unit": "TFLOP/s", "source": "a test",
            "work": [{ "call": "gemm", "case": "64x64x64", "count": 1 }, { "call": "gemm", "case": "64x64x64", "count": 3 }]
        }],
        "survey": {
            "devices": ["gtx1080"],
            "calls": [{ "call": "rows", "case": "64x256, softmax" }],
            "attention": [[1, 2, 64, 64]]
        }
    }"#;
    std::fs::write(&path, text).unwrap();
    let arguments = ["estimate", "--published", path.to_str().unwrap()];
    let output = kernels(&arguments);
    if !lacks_tools(&output) {
        let tables = stdout(&arguments);
        let figure = tables.lines().find(|line| line.starts_with("| NVIDIA Tesla P4 | a product |")).unwrap();
        let fields: Vec<&str> = figure.split('|').map(str::trim).collect();
        let number = |at: usize| fields[at].split(' ').next().unwrap().parse::<f64>().unwrap();
        assert!(number(3) == 0.5 && (number(4) / 0.5 - number(5)).abs() < 0.1, "{figure}");
        for row in ["| rows, 64x256, softmax | team ", "| causal attention, 1x2x64x64 | – |"] {
            assert!(tables.contains(row), "{row}: {tables}");
        }
    }
    std::fs::write(&path, "{}").unwrap();
    assert!(refusal(&arguments).contains("missing field `figures`"));
    std::fs::remove_file(&path).unwrap();
    assert!(refusal(&arguments).contains("cannot use the published figures"));
}

#[test]
fn tune_estimates_teams_for_rows() {
    let arguments =
        ["tune", "rows", "--case", "100x2048, rms norm", "--device", "gtx1080", "--candidates", "3", "--json"];
    let output = kernels(&arguments);
    if lacks_tools(&output) {
        return;
    }
    let report = json(&arguments);
    let candidates = report["candidates"].as_array().unwrap();
    assert_eq!((candidates.len(), &report["ranking"]), (4, &Value::from("estimates")));
    let us = |candidate: &Value| candidate["estimate_us"].as_f64().unwrap();
    assert!(candidates.iter().all(|candidate| us(candidate) > 0.0), "{report}");
    let best = candidates.iter().min_by(|a, b| us(a).total_cmp(&us(b))).unwrap();
    let of = |plan: &Value| us(candidates.iter().find(|candidate| candidate["plan"] == *plan).unwrap());
    assert_eq!(us(best), of(&report["best"]));
    // Estimates replace the plan in use only by a gain above their error.
    let is_replaced = us(best) <= 0.84 * of(&report["incumbent"]);
    assert_eq!(report["winner"], report[if is_replaced { "best" } else { "incumbent" }]);
}

/// Writes a table in which a plan that spills is the one in use.
#[test]
fn tune_writes_an_estimated_plan_instead_of_an_estimated_one_only() {
    let path = std::env::temp_dir().join(format!("kernels-tuned-{}.txt", std::process::id()));
    let arguments = ["tune", "rows", "--case", "100x2048, rms norm", "--device", "gtx1080", "--candidates", "2"];
    let arguments = [&arguments[..], &["--json", "--write", path.to_str().unwrap()]].concat();
    for (evidence, is_replaced) in [("faster: a measurement", false), ("an estimate, not a measurement: 0.5 ×", true)]
    {
        std::fs::write(&path, format!("GeForce GTX 1080 | 100x2048 | rms norm | team 1024 48 | {evidence}\n")).unwrap();
        if lacks_tools(&kernels(&arguments)) {
            break;
        }
        let table = std::fs::read_to_string(&path).unwrap();
        assert_eq!(table.contains("team 1024 48 |"), !is_replaced, "{table}");
        assert_eq!(table.contains("| an estimate, not a measurement: 0."), is_replaced, "{table}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// Compiles the most used kernels ahead of their use. Nothing is compiled for the CPU.
#[test]
fn cache_fill_names_the_most_used_kernels() {
    let report = json(&["cache", "fill", "--device", "cpu", "--count", "3", "--json"]);
    let names: Vec<&str> = report["instances"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!((names.len(), &report["is_compiled"]), (3, &false.into()), "{report}");
    assert!(names.iter().any(|name| name.starts_with("gemv_blocks")), "{report}");
    let text = stdout(&["cache", "fill", "--device", "cpu"]);
    assert!(text.contains("nothing is compiled for the CPU") && text.lines().count() == 6, "{text}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_cache_fill_compiles_kernels() {
    let report = json(&["cache", "fill", "--device", "cuda:0", "--json"]);
    assert_eq!((report["instances"].as_array().unwrap().len(), &report["is_compiled"]), (5, &true.into()), "{report}");
}

/// Tunes a small product. The times of `cuda-on-cpu` mean nothing, so that the verdict is open.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_tune_checks_and_measures_candidates() {
    let arguments = ["tune", "gemm", "--case", "20x24x200", "--candidates", "3", "--quick", "3", "--confirming", "2"];
    let report = json(&[&arguments[..], &["--device", "cuda:0", "--json"]].concat());
    let candidates = report["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 4);
    assert_eq!(candidates[0]["plan"], report["incumbent"]);
    for candidate in candidates {
        let result = candidate["result"].as_str().unwrap();
        assert!(["measured", "pruned"].contains(&result), "{report}");
    }
}
