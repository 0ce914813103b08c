//! Machine code of our compiler beside NVIDIA's own:
//! `cargo test -p tests --test nvrtc -- --nocapture`.
//!
//! `cuda/` has each kernel in CUDA C, with the same shape and class of arithmetic, and the PTX that
//! NVRTC 12.9 generates for sm_61 (`compile` regenerates it). ptxas for sm_61 assembles both texts,
//! and the test counts issue slots per element of work. For a kernel with loops these are the slots
//! of the loop that processes the elements, otherwise all slots of the kernel.
//!
//! Registers are counted as the kernel uses them, and as a multiprocessor allocates them: in units
//! of eight per thread, which determine the number of resident warps. `README.md` is the table;
//! `UPDATE=1` writes it. Without ptxas and nvdisasm (`tests/get-nvdisasm`) the test compares
//! nothing, and prints a note.
//!
//! The test also writes a page for each kernel, as `kernels inspect --against` does, into
//! `target/tmp/nvrtc`; `index.html` there links them.
//!
//! `examples.rs` adds the kernels of twelve examples, with their lines of code.

#[path = "../every_target/mod.rs"]
#[allow(dead_code, reason = "not every test assembles")]
mod every_target;
mod examples;
mod plain;
mod products;
mod rows;
#[path = "../language/support.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod support;
mod values;

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::{Artifact, Kernel};
use kernels_rs_command::examine::Examined;
use kernels_rs_command::nvdisasm::Nvdisasm;
use kernels_rs_command::ptxas::{Ptxas, Resources};
use kernels_rs_command::sass::{Listing, NaturalLoop};
use runtime::testing::on_every_core;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The instructions that are counted, and their elements of work.
enum Work {
    /// All instructions of a kernel without loops.
    Whole,
    /// For each phase, the loop with the most instructions in `counts`, each of which processes an
    /// element, and with none in `without`.
    Loops(&'static [Phase]),
    /// The longest loop without an inner loop, of which each iteration is an element.
    Rolled,
}

/// A kernel and its counted work.
type Compared = (&'static Artifact, Work);

struct Phase {
    counts: &'static str,
    without: &'static str,
}

/// Issue slots per element and registers per thread.
struct Cost {
    slots: f64,
    registers: u32,
}

impl Cost {
    /// Returns the allocated registers per thread: sm_61 allocates units of 256 per warp.
    fn allocated(&self) -> u32 {
        self.registers.next_multiple_of(256 / 32)
    }
}

/// The most registers per thread with full occupancy on sm_61: 65,536 for 2,048 threads.
const FULL: u32 = 65_536 / 2_048;

/// Ratios of our costs to those of NVRTC.
#[derive(Default)]
struct Ratios(Vec<f64>);

impl Ratios {
    fn push(&mut self, ours: f64, theirs: f64) -> f64 {
        self.0.push(ours / theirs);
        ours / theirs
    }

    fn mean(&self) -> f64 {
        (self.0.iter().map(|r| r.ln()).sum::<f64>() / self.0.len() as f64).exp()
    }

    fn largest(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }
}

/// The rows of kernels, and their ratios.
#[derive(Default)]
struct Table {
    text: String,
    slots: Ratios,
    registers: Ratios,
    allocated: Ratios,
    /// The kernels of which a multiprocessor holds fewer warps.
    fewer_warps: Vec<&'static str>,
}

impl Table {
    fn of(tools: &Tools, kernels: &[Compared]) -> Table {
        let mut table = Table::default();
        table.text.push_str(
            "| kernel | slots | NVRTC's | ratio | registers | NVRTC's | allocated | NVRTC's |\n|---|---|---|---|---|---|---|---|\n",
        );
        for ((kernel, _), [ours, theirs]) in kernels.iter().zip(tools.costs(kernels)) {
            let name = kernel.name;
            let ratio = table.slots.push(ours.slots, theirs.slots);
            table.registers.push(ours.registers.into(), theirs.registers.into());
            let fewer = table.allocated.push(ours.allocated().into(), theirs.allocated().into()) > 1.1;
            if fewer && ours.allocated() > FULL {
                table.fewer_warps.push(name);
            }
            let row = [ours.registers, theirs.registers, ours.allocated(), theirs.allocated()].map(|n| n.to_string());
            let (ours, theirs, row) = (ours.slots, theirs.slots, row.join(" | "));
            let _ = writeln!(table.text, "| {name} | {ours:.3} | {theirs:.3} | {ratio:.3} | {row} |");
        }
        let Table { text, slots, registers, allocated, .. } = &mut table;
        for (what, ratios) in [("slots", slots), ("registers", registers), ("registers allocated", allocated)] {
            let (mean, largest) = (ratios.mean(), ratios.largest());
            let _ = write!(text, "\nGeometric mean of the ratios of {what}: {mean:.3}; the largest: {largest:.3}.\n");
        }
        table
    }
}

struct Tools {
    ptxas: Ptxas,
    nvdisasm: Nvdisasm,
}

impl Tools {
    fn find() -> Option<Tools> {
        let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61)?;
        let nvdisasm = Nvdisasm::find(&ptxas)?;
        Some(Tools { ptxas, nvdisasm })
    }

    /// Returns the costs of our code and of NVRTC's for each kernel.
    fn costs(&self, kernels: &[Compared]) -> Vec<[Cost; 2]> {
        let target = kernel_dsl::compiler::Target::SM_61;
        let theirs: Vec<String> = kernels.iter().map(|(kernel, _)| theirs(kernel)).collect();
        let modules = kernels.iter().zip(&theirs).flat_map(|((kernel, _), theirs)| [kernel.instances[0].ptx, theirs]);
        let code = self.nvdisasm.disassemble_all(&self.ptxas, modules, target).unwrap_or_else(|e| panic!("{e}"));
        let pair = |((kernel, work), both): (&(&Artifact, Work), &[(Resources, Listing)])| {
            [0, 1].map(|i| {
                let (resources, listing) = &both[i];
                assert_eq!((resources.spill_stores, resources.spill_loads), (0, 0), "{} spills", kernel.name);
                Cost { slots: slots(kernel.name, listing, work), registers: resources.registers }
            })
        };
        kernels.iter().zip(code.chunks(2)).map(pair).collect()
    }
}

fn slots(name: &str, listing: &Listing, work: &Work) -> f64 {
    let loops = listing.loops();
    let phases = match work {
        Work::Whole => return f64::from(listing.slots(0..listing.instructions.len())),
        Work::Rolled => {
            let is_inner =
                |l: &&NaturalLoop| !loops.iter().any(|other| other.head != l.head && l.body.contains(&other.head));
            return f64::from(loops.iter().filter(is_inner).map(|l| l.slots).max().unwrap_or_default());
        }
        Work::Loops(phases) => phases,
    };
    let of_phase = |phase: &Phase| {
        let elements = |l: &NaturalLoop| l.mix.get(phase.counts).copied().unwrap_or(0);
        let fits = |l: &&NaturalLoop| elements(l) > 0 && !l.mix.contains_key(phase.without);
        let main = loops.iter().filter(fits).max_by_key(|l| elements(l));
        let main = main.unwrap_or_else(|| panic!("{name} has no loop with {}", phase.counts));
        f64::from(main.slots) / f64::from(elements(main))
    };
    phases.iter().map(of_phase).sum()
}

fn kernels() -> Vec<Compared> {
    const NOTHING: &str = "";
    vec![
        (plain::saxpy::ARTIFACT, Work::Whole),
        (plain::strided_sum::ARTIFACT, Work::Loops(&[Phase { counts: "FADD", without: NOTHING }])),
        (plain::block_sum::ARTIFACT, Work::Whole),
        (plain::warp_scan::ARTIFACT, Work::Whole),
        (products::tiled::ARTIFACT, Work::Loops(&[Phase { counts: "FFMA", without: NOTHING }])),
        (products::blocked::ARTIFACT, Work::Loops(&[Phase { counts: "FFMA", without: NOTHING }])),
        (plain::transpose::ARTIFACT, Work::Whole),
        (
            rows::softmax::ARTIFACT,
            Work::Loops(&[
                Phase { counts: "FMNMX", without: "MUFU" },
                Phase { counts: "MUFU", without: "STG" },
                Phase { counts: "STG", without: NOTHING },
            ]),
        ),
        (
            rows::layernorm::ARTIFACT,
            Work::Loops(&[
                Phase { counts: "FADD", without: "FFMA" },
                Phase { counts: "FFMA", without: "STG" },
                Phase { counts: "STG", without: NOTHING },
            ]),
        ),
        (plain::histogram::ARTIFACT, Work::Loops(&[Phase { counts: "ATOMS", without: NOTHING }])),
        (plain::stencil::ARTIFACT, Work::Whole),
        (rows::dot::ARTIFACT, Work::Loops(&[Phase { counts: "IDP", without: NOTHING }])),
        (rows::rotary::ARTIFACT, Work::Loops(&[Phase { counts: "STG", without: NOTHING }])),
    ]
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvrtc")
}

/// Returns NVRTC's PTX of a kernel, which has the file of the kernel or of its example.
fn theirs(kernel: &Artifact) -> String {
    let file = kernel.module.strip_prefix(examples::MODULE).unwrap_or(kernel.name);
    entry(&read(&format!("cuda/{file}.ptx")), kernel.name)
}

/// Returns the text of a file of this folder.
fn read(file: &str) -> String {
    let path = here().join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns a module with one of its entries, preceded by the text before the first entry.
fn entry(module: &str, name: &str) -> String {
    const START: &str = "\n.visible .entry ";
    let mut parts = module.split(START);
    let head = parts.next().unwrap_or_default();
    let entry = parts.find(|part| part.split('(').next() == Some(name));
    let entry = entry.unwrap_or_else(|| panic!("NVRTC's PTX has no entry {name}"));
    // The text after the closing brace belongs to the next entry.
    let end = entry.find("\n}\n").unwrap_or_else(|| panic!("the entry {name} does not end"));
    format!("{head}{START}{}", &entry[..end + 3])
}

/// Writes the page of each kernel with the differences from NVRTC's code, as `kernels inspect
/// --against` does, and a table of figures with links to them.
#[test]
fn pages_show_the_differences_from_nvrtc() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvrtc");
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let write = |file: String, text: &str| {
        let path = folder.join(file);
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    };
    let (kernels, mut rows) = (kernels(), String::new());
    let mut costs = Tools::find().map(|tools| tools.costs(&kernels)).unwrap_or_default().into_iter();
    let pages = on_every_core(&kernels, |(kernel, _)| {
        let name = kernel.name;
        let program = kernel.program().unwrap_or_else(|e| panic!("{name}: {e}"));
        let instance = Instance(kernel.instances[0].constants.to_vec());
        let examined = Examined::new(kernel, &program, instance, kernel.target);
        let mut examined = examined.unwrap_or_else(|e| panic!("{name}: {e}"));
        let compared = examined.compare_ptx("NVRTC 12.9", &theirs(kernel), kernel.target);
        compared.unwrap_or_else(|e| panic!("{name}: {e}"));
        let page = examined.page();
        // Each side has lines that the other lacks.
        for side in ["this", "other"] {
            assert!(page.contains(&format!("\"only\":\"{side}\"")), "{name}");
        }
        page
    });
    for ((kernel, _), page) in kernels.iter().zip(pages) {
        let name = kernel.name;
        write(format!("{name}.html"), &page);
        let _ = write!(rows, "<tr><td><a href=\"{name}.html\">{name}</a>");
        if let Some([ours, nvrtcs]) = costs.next() {
            let _ = write!(rows, "<td>{:.3}<td>{:.3}", ours.slots, nvrtcs.slots);
            let _ = write!(rows, "<td>{}<td>{}", ours.registers, nvrtcs.registers);
        }
        rows.push('\n');
    }
    write(
        "index.html".to_string(),
        &format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>kernels-rs and NVRTC</title>\n\
             <style>:root {{ color-scheme: light dark; font-family: system-ui, sans-serif }}\n\
             td, th {{ padding: .2em 1em; text-align: right }}\n\
             td:first-child, th:first-child {{ text-align: left }}</style>\n\
             <h1>Our code beside that of NVRTC 12.9, for sm_61</h1>\n\
             <table>\n<tr><th>kernel<th>slots per element<th>NVRTC's<th>registers<th>NVRTC's\n{rows}</table></html>\n"
        ),
    );
    println!("{}", folder.join("index.html").display());
}

#[test]
fn code_is_as_good_as_that_of_nvrtc() {
    let Some(tools) = Tools::find() else {
        println!(
            "note: no ptxas for sm_61 with an nvdisasm, so that nothing was compared; `tests/get-nvdisasm` fetches both"
        );
        return;
    };
    let mut page = "Issue slots per element of work and registers per thread on sm_61, with ptxas 12.9 and NVRTC 12.9.86. Written by \
        `UPDATE=1 cargo test -p tests --test nvrtc`.\n\n"
        .to_string();
    let plain = Table::of(&tools, &kernels());
    page.push_str(&plain.text);
    page.push_str(
        "\nBoth versions of layernorm request one copy of each loop, with `rolled` and `#pragma unroll 1`. Otherwise ptxas unrolls ours by \
         four, with twelve loads in flight, 17.5 slots and 32 registers. NVRTC's loops stay rolled: 38 slots and 17 registers.\n",
    );
    let _ = write!(
        page,
        "\nRegisters are allocated in units of eight per thread. Up to {FULL} registers per thread allow full occupancy, so that \
         fewer have no benefit.\n"
    );
    page.push_str(examples::SLOTS);
    let of_examples = Table::of(&tools, &examples::kernels());
    page.push_str(&of_examples.text);
    page.push_str(examples::LINES);
    page.push_str(&examples::line_table());
    print!("{page}");
    let path = here().join("README.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    assert_eq!(fs::read_to_string(&path).ok().as_deref(), Some(page.as_str()), "UPDATE=1 writes the table");
    let (mean, largest) = (plain.slots.mean(), plain.slots.largest());
    assert!(mean <= 1.0 && largest <= 1.1, "slots: mean {mean:.3}, largest {largest:.3}");
    let (mean, largest) = (plain.registers.mean(), plain.registers.largest());
    assert!(mean <= 1.0 && largest <= 1.1, "registers: mean {mean:.3}, largest {largest:.3}");
    assert!(plain.allocated.mean() <= 1.0, "registers allocated: mean {:.3}", plain.allocated.mean());
    let fewer = plain.fewer_warps;
    assert!(fewer.is_empty(), "with {fewer:?} a multiprocessor holds fewer warps than with NVRTC's code");
    let mean = of_examples.slots.mean();
    assert!(mean <= 1.0, "slots of examples: mean {mean:.3}");
}
