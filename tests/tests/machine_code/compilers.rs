//! Machine code of the library's kernels for sm_61 by release of ptxas: registers, spills, and the
//! issue slots of the hottest loops of products.
//!
//! Each driver contains a release of the PTX compiler, and Pascal owners run drivers of many years.
//! `tests/get-ptxas --earlier` fetches the releases. A release that is not found is skipped, with a
//! message.
//!
//! On every change, the first and the last release assemble every 16th instance and those that may
//! spill. With `TESTS=all`, each release assembles all. If all releases are found, it also
//! compares the page `compilers/README.md`, which
//! `TESTS=all UPDATE=1 cargo test -p tests --test machine_code compilers` writes.

use kernel_dsl::Declared;
use kernel_dsl::compiler::Target;
use kernels_rs_command::nvdisasm::Nvdisasm;
use kernels_rs_command::ptxas::{Ptxas, Resources};
use kernels_rs_command::sass::Listing;
use kernels_rs_specs as _;
use runtime::testing::on_every_core;
use std::fmt::Write;
use std::fs;

/// The releases, the last for sm_61 first.
const RELEASES: [&str; 4] = ["12.9", "12.6", "12.2", "11.8"];

/// Bytes of spill stores and loads of an instance, by release in the order of [`RELEASES`].
type Spilled = (&'static str, [u32; 4]);

/// The instances that may spill.
const SPILLED: &[Spilled] = &[
    ("flash_attention@f32_w128_v4", [0, 216, 216, 216]),
    ("flash_attention@f32_w128_v4_listed", [0, 216, 216, 216]),
    ("flash_attention@f16_w128_v4", [0, 92, 92, 92]),
    ("flash_attention_cached@q8_0_w128_contiguous", [252; 4]),
    ("flash_attention_cached@q8_0_w128_paged", [40, 116, 116, 116]),
    ("flash_attention_cached@q4_0_w128_contiguous", [252; 4]),
    ("flash_attention_cached@q4_0_w128_paged", [96, 116, 116, 116]),
    ("flash_attention_cached@i8_w64_listed", [0, 68, 68, 68]),
];

/// Instances whose hottest loop the page shows.
const PRODUCTS: [&str; 9] = [
    "gemm@f32_128x128_v4",
    "gemm@f32_128x128_v4_tb",
    "gemm@f32_64x128_v4",
    "gemm@f16_128x128_v4",
    "flash_attention@f32_w128_v4",
    "flash_attention@f16_w128_v4",
    "gemm_blocks@q4_0_f32_64_v4",
    "gemv_blocks@q4_0_r1",
    "igemm@i32_128x128_v16",
];

struct Release {
    ptxas: Ptxas,
    /// The resources of each instance.
    resources: Vec<Resources>,
}

fn instances() -> Vec<&'static Declared> {
    let kernels = kernel_dsl::kernels().into_iter().filter(|kernel| kernel.module.starts_with("kernels_rs"));
    let instances = kernels.filter(|kernel| kernel.target == Target::SM_61).flat_map(|kernel| kernel.instances);
    let instances: Vec<_> = instances.collect();
    assert!(instances.len() > 250, "kernels-rs is not linked");
    let may_spill = |instance: &Declared| SPILLED.iter().any(|(name, _)| *name == instance.name);
    let selected = |(i, instance): &(usize, &Declared)| tests::share::is_whole() || i % 16 == 0 || may_spill(instance);
    instances.into_iter().enumerate().filter(selected).map(|(_, instance)| instance).collect()
}

fn assemble(ptxas: Ptxas, instances: &[&Declared]) -> Release {
    let resources = on_every_core(instances, |instance| {
        ptxas.assemble(instance.ptx, Target::SM_61).unwrap_or_else(|error| panic!("{}: {error}", instance.name))
    });
    Release { ptxas, resources }
}

#[test]
fn every_release_keeps_instances_in_registers() {
    let instances = instances();
    let ends = [RELEASES[0], RELEASES[RELEASES.len() - 1]];
    let found = RELEASES.map(|release| {
        if !tests::share::is_whole() && !ends.contains(&release) {
            return None;
        }
        let found = Ptxas::of_release(release).map(|ptxas| assemble(ptxas, &instances));
        match &found {
            Some(found) => println!("{} assembled {} instances", found.ptxas, instances.len()),
            None => println!("skipped: no ptxas {release} is found; `tests/get-ptxas --earlier` fetches it"),
        }
        found
    });
    let mut wrong = Vec::new();
    for (number, instance) in instances.iter().enumerate() {
        let permitted = SPILLED.iter().find(|(name, _)| *name == instance.name).map_or([0; 4], |(_, bytes)| *bytes);
        for (found, permitted) in found.iter().zip(permitted) {
            let Some(Release { ptxas, resources }) = found else { continue };
            let spilled = resources[number].spill_stores + resources[number].spill_loads;
            if spilled > permitted {
                wrong.push(format!(
                    "{}: {spilled} bytes of spills by {ptxas}; {permitted} are permitted",
                    instance.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if !tests::share::is_whole() {
        return;
    }
    let Some(found) = found.into_iter().collect::<Option<Vec<_>>>() else { return };
    let Some(nvdisasm) = Nvdisasm::find(&found[0].ptxas) else {
        println!("skipped: no nvdisasm is found; `tests/get-nvdisasm` fetches it");
        return;
    };
    compare(&page(&instances, &found, &nvdisasm));
}

fn compare(page: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine_code/compilers/README.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, page).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), page, "UPDATE=1 writes the page");
}

fn page(instances: &[&Declared], found: &[Release], nvdisasm: &Nvdisasm) -> String {
    let mut page = String::from(
        "# Machine code by release of ptxas\n\n\
         A driver compiles PTX with the ptxas of its time: release 11.8 is that of r520, 12.2 of r535, 12.6 of r560, and\n\
         12.9 of r575. This page compares what they make of the declared instances of the library for sm_61.\n\
         `TESTS=all UPDATE=1 cargo test -p tests --test machine_code compilers` writes it.\n\n",
    );
    let columns = |page: &mut String, first: &str| {
        let _ = write!(page, "| {first} |");
        RELEASES.iter().for_each(|release| *page += &format!(" {release} |"));
        page.push_str("\n|---|---|---|---|---|\n");
    };
    let row = |page: &mut String, name: &str, cells: Vec<String>| {
        let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
    };
    let each = |cell: &dyn Fn(&Resources) -> u32, number: usize| -> Vec<u32> {
        found.iter().map(|release| cell(&release.resources[number])).collect()
    };
    columns(&mut page, &format!("all {} instances", instances.len()));
    let count = |test: &dyn Fn(&Resources) -> bool| -> Vec<String> {
        found.iter().map(|release| release.resources.iter().filter(|r| test(r)).count().to_string()).collect()
    };
    row(&mut page, "instances that spill", count(&|r| r.spill_stores + r.spill_loads > 0));
    let sum = |release: &Release| release.resources.iter().map(|r| r.registers).sum::<u32>() as f64;
    let mean = |release| format!("{:.1}", sum(release) / instances.len() as f64);
    row(&mut page, "mean of registers", found.iter().map(mean).collect());

    page.push_str("\n## Spills, bytes stored and loaded\n\n");
    columns(&mut page, "instance");
    for (number, instance) in instances.iter().enumerate() {
        let bytes = each(&|r| r.spill_stores + r.spill_loads, number);
        if bytes.iter().any(|&bytes| bytes > 0) {
            row(&mut page, &format!("`{}`", instance.name), bytes.iter().map(u32::to_string).collect());
        }
    }

    page.push_str("\n## Issue slots of the hottest loop, and cycles lost to register banks\n\n");
    columns(&mut page, "instance");
    for name in PRODUCTS {
        let instance = instances.iter().find(|instance| instance.name == name);
        let instance = instance.unwrap_or_else(|| panic!("{name} is not declared"));
        let cell = |release: &Release| hottest(&nvdisasm.listing(&release.ptxas, instance.ptx, Target::SM_61).unwrap());
        row(&mut page, &format!("`{name}`"), found.iter().map(cell).collect());
    }
    page
}

/// Returns the slots and conflicts of the innermost loop with the most multiplications.
fn hottest(listing: &Listing) -> String {
    let loops = listing.loops();
    let products = |name: &str| name == "FFMA" || name.starts_with("IDP") || name == "XMAD";
    let count = |l: &&kernels_rs_command::sass::NaturalLoop| {
        let all = l.mix.iter().filter(|(name, _)| products(name)).map(|(_, n)| n).sum::<u32>();
        (loops.iter().all(|other| other.depth <= l.depth || !l.body.contains(&other.head)), all)
    };
    let hot = loops.iter().max_by_key(count).expect("a loop");
    format!("{} + {}", hot.slots, hot.bank_conflicts.unwrap_or(0))
}
