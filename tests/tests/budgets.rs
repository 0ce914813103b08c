//! What the kernels of the library may cost on sm_61, by the machine code that ptxas 12.9 makes of their PTX.
//!
//! Where no ptxas with an nvdisasm is found (`tests/get-nvdisasm` fetches both), nothing is held to its budget, and the test says so.

use kernel_dsl::compiler::Target;
use kernel_dsl::{Declared, Kernel};
use kernels_rs::attention::cache::{Contiguous, Unscaled};
use kernels_rs::attention::decode::flash_decode;
use kernels_rs::attention::prefill::flash_attention;
use kernels_rs::attention::score::Plain;
use kernels_rs::attention::span::{Dense, Whole};
use kernels_rs::command::nvdisasm::Nvdisasm;
use kernels_rs::command::ptxas::{Ptxas, Resources};
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::gemm::gemv::{gemv_across, gemv_along};
use kernels_rs::gemm::tiled::{gemm, sum_splits};
use kernels_rs::sass::Loop;

/// An instance's name, what it takes, and the loop with the most multiplications, if it has one.
struct Cost {
    name: &'static str,
    resources: Resources,
    hot: Option<Loop>,
    loops: Vec<Loop>,
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
        let loops = listing.loops();
        let hot = loops.iter().max_by_key(|l| ffma(l)).cloned();
        Cost { name: instance.name, resources, hot, loops }
    };
    K::ARTIFACT.instances.iter().map(cost).collect()
}

fn ffma(l: &Loop) -> u32 {
    l.mix.get("FFMA").copied().unwrap_or(0)
}

/// Registers of a multiprocessor of sm_61.
const REGISTERS: u32 = 65_536;

/// No tile of `f32` spills, and the large ones leave room for two blocks of 256 threads. Of the loop of 128 × 128 × 8 in `f32`: what is not
/// a multiplication, and how long they wait for one another's registers.
#[test]
fn gemm_multiplies() {
    for Cost { name, resources, hot, .. } in
        costs::<gemm<f32, f32, f32, Identity, 128, 128, 8, 2, 2, 4, false, false, 256, 1, 1>>()
    {
        assert!(resources.registers <= REGISTERS / 512, "{name}: {} registers", resources.registers);
        // Of `f16`, one tile keeps two registers in local memory.
        let spilt =
            if name.starts_with("gemm::<f16, f16, f16, Identity, 64, 128, 8, 2, 2, 4, false, true") { 40 } else { 0 };
        assert!(resources.spill_loads <= spilt && resources.stack_bytes <= spilt, "{name} spills");

        let Some(hot) = hot else { panic!("{name} has no loop") };
        let (ffma, slots, lost) = (ffma(&hot), hot.slots, hot.bank_conflicts.unwrap());
        println!("{name}: {ffma} FFMA in {slots} slots, {lost} cycles lost to register banks");
        if name.starts_with("gemm::<f16") {
            let conversions = hot.mix.get("F2F").copied().unwrap_or(0);
            assert!(100 * conversions <= 6 * hot.instructions, "{name}: {conversions} conversions");
            assert!(!hot.mix.keys().any(|name| name.starts_with('H')), "{name}: arithmetic of f16, {:?}", hot.mix);
        } else if name.contains("Identity, 128, 128, 8, 2, 2, 4,") {
            assert_eq!(ffma, 1024, "{name}");
            // B turned on its way as A is costs stores of four bytes for both.
            let least = if name.contains("false, true, 256") { 96 } else { 97 };
            assert!(100 * ffma >= least * slots, "{name}: {ffma} FFMA in {slots} slots");
            assert!(5 * lost <= ffma, "{name}: {lost} cycles lost of {ffma} FFMA");
        }
    }
}

/// Of the two loops within that over tiles, over slices of Q and K and over slices of V: what is no multiplication. Two blocks of 256 threads
/// are to have room.
#[test]
fn attention_multiplies() {
    for Cost { name, resources, loops, .. } in
        costs::<flash_attention<f32, Plain, Dense, Whole, 128, 4, 256, 128, 4, 1, 2>>()
    {
        assert!(resources.registers <= REGISTERS / 512, "{name}: {} registers", resources.registers);
        // A pattern of blocks has two words more to keep.
        let spilt = if name.contains("Listed") { 40 } else { 0 };
        assert!(resources.spill_loads <= spilt && resources.stack_bytes <= spilt, "{name} spills");
        let most = loops.iter().map(ffma).max().unwrap();
        let inner: Vec<_> = loops.iter().filter(|l| ffma(l) < most && ffma(l) >= 128).collect();
        assert_eq!(inner.len(), 2, "{name}: {} loops that multiply", inner.len());
        for l in inner {
            let (ffma, slots) = (ffma(l), l.slots);
            println!("{name}: {ffma} FFMA in {slots} slots");
            // Narrower tiles have fewer multiplications for what is loaded, and 16-bit floats are converted.
            let least = if name.contains("<f32, ") { 80 } else { 50 };
            assert!(100 * ffma >= least * slots, "{name}: {ffma} FFMA in {slots} slots");
        }
    }
}

/// What is bound by memory wants warps, and no local memory.
#[test]
fn what_streams_leaves_room_for_warps() {
    let few = costs::<gemv_across<f32, f32, f32, Identity, 1, 8, 8, 4>>()
        .into_iter()
        .chain(costs::<gemv_along<f32, f32, f32, Identity, 1, 1, 4, 4>>());
    for Cost { name, resources, .. } in few.chain(costs::<sum_splits<f32, Identity, 4>>()) {
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        let one_row = name.contains("f32, Identity, 1,") && name.ends_with(" 4>") || name.starts_with("sum_splits");
        assert!(resources.registers <= if one_row { 48 } else { 128 }, "{name}: {} registers", resources.registers);
    }
    for Cost { name, resources, .. } in costs::<flash_decode<f32, f32, Unscaled, Contiguous, 16, 4, 8, 2, 4>>() {
        assert!(resources.registers <= 128, "{name}: {} registers", resources.registers);
        // Bytes are widened before they are multiplied.
        assert!(resources.stack_bytes == 0 || name.contains("i8"), "{name} spills");
    }
}
