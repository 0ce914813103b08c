//! The table of the library: errors, and issue slots on sm_61 beside those of NVIDIA's libdevice.
//!
//! `libdevice.cu` has the functions of libdevice in the same frame, and NVRTC 12.9 compiled it to
//! `libdevice.ptx` (`../nvrtc/compile`). ptxas 12.9 assembles both, and the slots of the empty
//! frame are subtracted.

use super::kernels::{PAIRWISE, SINGLE, several};
use super::page;
use super::path::slots;
use super::ulp::{self, FUNCTIONS};
use kernel_dsl::compiler::Target;
use kernels_rs_command::nvdisasm::Nvdisasm;
use kernels_rs_command::ptxas::Ptxas;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// A row: our function, the frame around it, NVIDIA's frame, and NVIDIA's maximum error, if it has
/// the function (CUDA C++ Programming Guide 12.9, *Mathematical Functions*).
struct Row {
    name: &'static str,
    ptx: &'static str,
    frame: &'static str,
    their_frame: &'static str,
    their_error: Option<u32>,
}

fn rows() -> Vec<Row> {
    let theirs = HashMap::from([
        ("exp", 2),
        ("exp2", 2),
        ("exp_m1", 1),
        ("ln", 1),
        ("log2", 1),
        ("log10", 2),
        ("ln_1p", 1),
        ("sin", 2),
        ("cos", 2),
        ("tan", 4),
        ("asin", 2),
        ("acos", 2),
        ("atan", 2),
        ("sinh", 3),
        ("cosh", 2),
        ("tanh", 2),
        ("asinh", 3),
        ("acosh", 4),
        ("atanh", 3),
        ("erf", 2),
        ("rsqrt", 2),
        ("cbrt", 1),
        ("pow", 4),
        ("atan2", 3),
        ("hypot", 3),
    ]);
    let first = |artifact: &kernel_dsl::Artifact| artifact.instances[0].ptx;
    let single = SINGLE.iter().map(|f| Row {
        name: f.name,
        ptx: first(f.plain),
        frame: several::copy::PTX,
        their_frame: "copy",
        their_error: theirs.get(f.name).copied(),
    });
    let pairwise = PAIRWISE.iter().map(|f| Row {
        name: f.name,
        ptx: first(f.plain),
        frame: several::add::PTX,
        their_frame: "add",
        their_error: theirs.get(f.name).copied(),
    });
    let sin_cos = Row {
        name: "sin_cos",
        ptx: several::sin_cos::PTX,
        frame: several::copy2::PTX,
        their_frame: "copy2",
        their_error: Some(2),
    };
    single.chain([sin_cos]).chain(pairwise).collect()
}

/// Returns the documented maximum error, in ulp.
fn error(name: &str) -> f64 {
    if name == "sin_cos" {
        return error("sin").max(error("cos"));
    }
    let mut bounds = FUNCTIONS.iter().map(|f| (f.name, f.bound)).chain(ulp::PAIRWISE.iter().map(|f| (f.name, f.bound)));
    bounds.find(|b| b.0 == name).unwrap_or_else(|| panic!("{name} has no measured error")).1
}

pub(super) struct Tools {
    ptxas: Ptxas,
    nvdisasm: Nvdisasm,
}

impl Tools {
    pub(super) fn find() -> Option<Tools> {
        let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61)?;
        let nvdisasm = Nvdisasm::find(&ptxas)?;
        Some(Tools { ptxas, nvdisasm })
    }

    /// Returns by how many slots each kernel exceeds its frame, the kernel without the function: on
    /// the main path, and in all.
    pub(super) fn beyond(&self, pairs: &[[&str; 2]]) -> Vec<(u32, u32)> {
        let modules: BTreeSet<&str> = pairs.iter().flatten().copied().collect();
        let code = self.nvdisasm.disassemble_all(&self.ptxas, modules.iter().copied(), Target::SM_61);
        let code = code.unwrap_or_else(|e| panic!("{e}"));
        let slots: HashMap<&str, _> = modules.into_iter().zip(code.iter().map(|(_, listing)| slots(listing))).collect();
        let pair = |[ptx, frame]: &[&str; 2]| {
            let ((common, all), (_, frame)) = (slots[ptx], slots[frame]);
            (common - frame, all - frame)
        };
        pairs.iter().map(pair).collect()
    }
}

/// Returns the entries of a module, each with the text before the first entry.
fn entries(module: &str) -> HashMap<String, String> {
    let mut parts = module.split("\n.visible .entry ");
    let head = parts.next().unwrap_or_default();
    let entry = |text: &str| {
        let name = text.split('(').next().unwrap_or_default().to_string();
        // The text after the closing brace belongs to the next entry.
        let end = text.find("\n}").map_or(text.len(), |end| end + 3);
        (name, format!("{head}\n.visible .entry {}\n", &text[..end.min(text.len())]))
    };
    parts.map(entry).collect()
}

#[test]
fn table_is_up_to_date() {
    let Some(tools) = Tools::find() else {
        println!(
            "note: no ptxas for sm_61 with an nvdisasm, so that nothing was counted; `tests/get-nvdisasm` fetches both"
        );
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let theirs = fs::read_to_string(here.join("tests/language/math/libdevice.ptx")).expect("libdevice.ptx");
    let theirs = entries(&theirs);
    let rows = rows();
    let their = |row: &Row| [&theirs[&format!("of_{}", row.name)][..], &theirs[row.their_frame]];
    let ours = tools.beyond(&rows.iter().map(|row| [row.ptx, row.frame]).collect::<Vec<_>>());
    let theirs = tools.beyond(&rows.iter().map(their).collect::<Vec<_>>());
    let mut lines = String::new();
    for (row, ((common, all), (their_common, their_all))) in rows.iter().zip(ours.into_iter().zip(theirs)) {
        let their_error = row.their_error.map_or("–".to_string(), |e| e.to_string());
        let (name, error) = (row.name, error(row.name));
        lines += &format!(
            "//! | [`{name}`] | {error} | {common} | {all} | {their_error} | {their_common} | {their_all} |\n"
        );
    }
    let head = "//! | function | error | slots | in all | NVIDIA's error | slots | in all |\n//! |---|---|---|---|---|---|---|\n";
    let table = head.to_string() + &lines;
    page("math.rs", "//! | function | error |", &table);
}
