//! Checks that the README and the pages of the documentation show the program's current output.

use crate::{ROOT, published_crates};
use kernel_dsl::prelude::*;
use kernels_rs::saxpy;
use kernels_rs_specs as _;
use runtime::Device;
use runtime::testing::kernel_specs;
use std::collections::BTreeMap;

/// Scales and adds without a guard, which is a mistake: threads beyond the end exceed the buffers.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn unguarded(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    y[i] = a.mul_add(x[i], y[i]);
}

fn readme() -> String {
    std::fs::read_to_string(format!("{ROOT}/README.md")).unwrap()
}

/// Returns the text of the documentation's pages.
fn pages() -> String {
    let folder = std::fs::read_dir(format!("{ROOT}/kernel-dsl/docs")).unwrap();
    folder.map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap()).collect()
}

/// Asserts that the README or a page has a block with `text` alone.
fn shows(text: &str) {
    let block = format!("```text\n{}\n```", text.trim_end());
    assert!((readme() + &pages()).contains(&block), "the documentation must show this:\n{block}");
}

/// Checks that each abridged block of the README is part of a block of the pages. A line `…` marks
/// an omission.
#[test]
fn abridged_blocks_are_parts_of_complete_ones() {
    let (readme, pages) = (readme(), pages());
    let blocks = readme.split("```text\n").skip(1).map(|block| block.split("```").next().unwrap());
    let abridged: Vec<&str> = blocks.filter(|block| block.contains("…\n")).collect();
    assert!(abridged.len() >= 5);
    for part in abridged.iter().flat_map(|block| block.split("…\n")) {
        assert!(pages.contains(part), "no page shows this part of the README:\n{part}");
    }
}

/// Checks that the page of crates names each feature and each dependency of the published crates.
#[test]
fn the_page_of_crates_names_features_and_dependencies() {
    let page = std::fs::read_to_string(format!("{ROOT}/kernel-dsl/docs/crates.md")).unwrap();
    let mut dependencies = 0;
    for (folder, manifest) in published_crates() {
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let name = line.split(['.', ' ', '=']).next().unwrap();
            let listed = !name.is_empty() && !name.starts_with(['#', '[', '"', ']']) && name != "default";
            if listed && matches!(section, "[features]" | "[dependencies]") {
                assert!(page.contains(&format!("`{name}`")), "crates.md does not name `{name}` of {folder}");
                dependencies += 1;
            }
        }
    }
    assert!(dependencies > 40, "{dependencies}");
}

/// Checks that the pages have the number of instances that `kernels list` prints.
#[test]
fn pages_have_the_number_of_instances() {
    let of_library = kernel_specs().into_iter().filter(|spec| spec.artifact.module.starts_with("kernels_rs::"));
    let kernels = of_library.map(|spec| ((spec.artifact.module, spec.artifact.name), spec.artifact.instances.len()));
    let instances: usize = kernels.collect::<BTreeMap<_, _>>().into_values().sum();
    let folder = std::path::Path::new(ROOT).join("kernel-dsl/docs");
    for (page, before, after) in
        [("commands.md", "\n", " instances, "), ("evidence.md", "`kernels check` runs ", " instances on ")]
    {
        let path = folder.join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = text.rsplit_once(after).expect("the page has the number of instances");
        let (head, number) = head.rsplit_once(before).expect("the page has the number of instances");
        let current = format!("{head}{before}{instances}{after}{rest}");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &current).unwrap();
        } else {
            assert_eq!(number, instances.to_string(), "{page}: `cargo run -p pages` writes the number of instances");
        }
    }
}

#[test]
fn the_ptx_of_saxpy_is_current() {
    shows(saxpy::PTX);
}

#[test]
fn a_rejected_launch_has_the_shown_error() {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 5]).unwrap();
    let mut y = device.upload(&[1.0f32; 4]).unwrap();
    let error = saxpy::launch(&device, 2.0, &x, &mut y).unwrap_err();
    shows(&error.to_string());
}

#[test]
fn a_finding_has_the_shown_text() {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 5]).unwrap();
    let mut y = device.upload(&[1.0f32; 5]).unwrap();
    let error = unguarded::launch(&device, 2.0, &x, &mut y).unwrap_err();
    shows(&error.to_string());
}

/// Runs the lines about streams.
#[test]
fn a_stream_gives_the_shown_result() -> runtime::Result<()> {
    let device = Device::cpu();
    let (xs, ys) = ([1.0f32; 5], [2.0f32; 5]);

    let stream = device.stream()?;
    let x = stream.upload(&xs)?;
    let mut y = stream.upload(&ys)?;
    let mut step = stream.prepare(saxpy::call(2.0, &x, &mut y))?;
    for _ in 0..100 {
        step.launch()?;
    }
    drop(step);
    stream.wait()?;
    assert_eq!(y.download()?, [202.0; 5]);
    Ok(())
}

/// Runs the lines about graphs.
#[test]
fn a_graph_gives_the_shown_result() -> runtime::Result<()> {
    let device = Device::cpu();
    let (stream, weights, ys) = (device.stream()?, device.upload(&[1.0f32; 5])?, [2.0f32; 5]);

    let recording = device.record();
    let x = recording.borrow(&weights)?;
    let y = recording.own(device.upload(&ys)?)?;
    let step = recording.add(saxpy::call(2.0, x, y))?;
    saxpy::launch(&recording, 1.0, x, y)?;
    let mut graph = recording.finish()?;
    graph.replay(&stream)?;
    graph.update(step, saxpy::call(3.0, x, y))?;
    graph.replay(&stream)?;
    let result = graph.buffer(y)?.download()?;
    assert_eq!(result, [9.0; 5]);
    Ok(())
}

/// Compares the machine code, if the release of ptxas that the page names and an nvdisasm are
/// installed.
#[test]
fn the_machine_code_of_saxpy_is_current() {
    use kernels_rs_command::{nvdisasm::Nvdisasm, ptxas::Ptxas};

    let ptxas = Ptxas::find().filter(|ptxas| ptxas.release.as_deref() == Some("12.9"));
    if ptxas.and_then(|ptxas| Nvdisasm::find(&ptxas)).is_none() {
        println!("skipped: no ptxas 12.9 with an nvdisasm; `tests/get-nvdisasm` fetches both");
        return;
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_all-kernels"));
    let output = command.args(["show", "saxpy", "--sass"]).output().unwrap();
    shows(&String::from_utf8(output.stdout).unwrap());
}

/// Compares an estimate, if the release of ptxas that it was made with and an nvdisasm are
/// installed.
#[test]
fn an_estimate_has_the_shown_text() {
    use kernels_rs_command::{nvdisasm::Nvdisasm, ptxas::Ptxas};

    let ptxas = Ptxas::find().filter(|ptxas| ptxas.release.as_deref() == Some("12.9"));
    if ptxas.and_then(|ptxas| Nvdisasm::find(&ptxas)).is_none() {
        println!("skipped: no ptxas 12.9 with an nvdisasm; `tests/get-nvdisasm` fetches both");
        return;
    }
    let pages = pages();
    let line = pages.lines().find_map(|line| line.strip_prefix("cargo run --bin kernels -- estimate "));
    let arguments: Vec<_> = line.unwrap().split(' ').map(|argument| argument.trim_matches('\'')).collect();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_all-kernels"));
    shows(&String::from_utf8(command.arg("estimate").args(arguments).output().unwrap().stdout).unwrap());
}

#[test]
fn a_run_of_ptx_prints_the_shown_lines() {
    let line = pages();
    let line = line.lines().find_map(|line| line.strip_prefix("cargo run --bin kernels -- run ")).unwrap();
    let arguments: Vec<_> = line.split(' ').map(|argument| argument.trim_matches('\'')).collect();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_all-kernels"));
    let command = command.arg("run").args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    shows(&String::from_utf8(output.stdout).unwrap());
}

/// Computes y ← x + 1, except for element 63 of each block.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn increment(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = if thread::x() == 63 { x[i] } else { x[i].wrapping_add(1) };
    }
}

#[test]
fn a_counterexample_has_the_shown_text() {
    use runtime::testing::{self, Expected};

    let found = testing::property::<increment>()
        .cases(|g| {
            let n = g.size("n", 64);
            [g.slice::<u32>(n), g.slice::<u32>(n)]
        })
        .reference(|inputs| vec![Expected::exact(1, inputs[0].to_vec::<u32>().into_iter().map(|x| x.wrapping_add(1)))])
        .run();
    shows(&found.unwrap_err().to_string());
}

#[test]
fn a_trace_has_the_shown_lines() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_all-kernels"));
    let arguments = ["trace", "saxpy", "--block", "1", "--thread", "3", "--case", "512 elements"];
    let line = "-- trace saxpy --block 1 --thread 3 --case '512 elements'\n";
    assert!(pages().contains(line), "the documentation must show this:\n{line}");
    // Two kernels have this name; the path selects one.
    let arguments = arguments.map(|a| if a == "saxpy" { "elementwise::saxpy" } else { a });
    shows(&String::from_utf8(command.args(arguments).output().unwrap().stdout).unwrap());
}
