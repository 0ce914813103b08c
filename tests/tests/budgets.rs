//! What the kernels of the library may cost on sm_61, by the machine code that ptxas 12.9 makes of their PTX.
//!
//! Where no ptxas with an nvdisasm is found (`tests/get-nvdisasm` fetches both), nothing is held to its budget, and the test says so.

use kernel_dsl::compiler::Target;
use kernel_dsl::{Declared, Kernel};
use kernels_rs::command::nvdisasm::Nvdisasm;
use kernels_rs::command::ptxas::{Ptxas, Resources};
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::gemm::gemv::{gemv_across, gemv_along};
use kernels_rs::gemm::sgemm::{sgemm, sum_splits};
use kernels_rs::sass::Loop;

/// An instance's name, what it takes, and the loop with the most multiplications, if it has one.
struct Cost {
    name: &'static str,
    resources: Resources,
    hot: Option<Loop>,
}

/// Of each declared instance of a kernel.
fn costs<K: Kernel>() -> Vec<Cost> {
    let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);
    let Some((ptxas, nvdisasm)) = ptxas.and_then(|p| Nvdisasm::find(&p).map(|n| (p, n))) else {
        println!("skipped: no ptxas for sm_61 with an nvdisasm; `tests/get-nvdisasm` fetches both");
        return Vec::new();
    };
    let cost = |instance: &Declared| {
        let (resources, listing) = nvdisasm.disassemble(&ptxas, instance.ptx, Target::SM_61).unwrap();
        let hot = listing.loops().into_iter().max_by_key(ffma);
        Cost { name: instance.name, resources, hot }
    };
    K::ARTIFACT.instances.iter().map(cost).collect()
}

fn ffma(l: &Loop) -> u32 {
    l.mix.get("FFMA").copied().unwrap_or(0)
}

/// Registers of a multiprocessor of sm_61.
const REGISTERS: u32 = 65_536;

/// No tile spills; the large ones leave room for two blocks of 256 threads.
#[test]
fn sgemm_fits_its_registers() {
    for Cost { name, resources, .. } in costs::<sgemm<Identity, 128, 128, 8, 2, 2, 4, false, false, 256, 1, 1>>() {
        assert!(resources.registers <= REGISTERS / 512, "{name}: {} registers", resources.registers);
        assert_eq!((resources.spill_stores, resources.spill_loads, resources.stack_bytes), (0, 0, 0), "{name} spills");
    }
}

/// The loop of 128 × 128 × 8: what is not a multiplication, and what they wait for one another's registers.
#[test]
fn sgemm_multiplies() {
    for Cost { name, hot, .. } in costs::<sgemm<Identity, 128, 128, 8, 2, 2, 4, false, false, 256, 1, 1>>() {
        let Some(hot) = hot else { panic!("{name} has no loop") };
        let (ffma, slots, lost) = (ffma(&hot), hot.slots, hot.bank_conflicts.unwrap());
        println!("{name}: {ffma} FFMA in {slots} slots, {lost} cycles lost to register banks");
        if name.starts_with("sgemm::<Identity, 128, 128, 8, 2, 2, 4,") {
            assert_eq!(ffma, 1024, "{name}");
            // B turned on its way as A is costs stores of four bytes for both.
            let least = if name.contains("false, true, 256") { 96 } else { 97 };
            assert!(100 * ffma >= least * slots, "{name}: {ffma} FFMA in {slots} slots");
            assert!(5 * lost <= ffma, "{name}: {lost} cycles lost of {ffma} FFMA");
        }
    }
}

/// What is bound by memory wants warps, and no local memory.
#[test]
fn what_streams_leaves_room_for_warps() {
    let few = costs::<gemv_across<Identity, 1, 8, 8, 4>>().into_iter().chain(costs::<gemv_along<Identity, 1, 1, 4>>());
    for Cost { name, resources, .. } in few.chain(costs::<sum_splits<Identity, 4>>()) {
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        let one_row = name.contains("::<Identity, 1,") && name.ends_with(" 4>") || name.starts_with("sum_splits");
        assert!(resources.registers <= if one_row { 48 } else { 128 }, "{name}: {} registers", resources.registers);
    }
}
