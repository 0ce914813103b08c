//! Resource budgets of the library's kernels on sm_61, measured in the machine code that ptxas 12.9
//! makes of their PTX.
//!
//! Without a ptxas and an nvdisasm (`tests/get-nvdisasm` fetches both) the tests check nothing, and
//! print that they were skipped.

use kernel_dsl::compiler::hir::{Constant, Instance};
use kernel_dsl::compiler::{Scalar, Target, compile};
use kernel_dsl::half::f16;
use kernel_dsl::{Artifact, Declared, GenericArgument, Kernel};
use kernels_rs::activation::{silu, swiglu};
use kernels_rs::attention::backward::{attention_gradient_kv, attention_gradient_q};
use kernels_rs::attention::cache::{Blocks, Contiguous, Unscaled};
use kernels_rs::attention::decode::flash_decode;
use kernels_rs::attention::prefill::{flash_attention, flash_attention_cached};
use kernels_rs::attention::score::Plain;
use kernels_rs::attention::span::{Dense, Whole};
use kernels_rs::elementwise::maps::{map_1, map_2, map_3, multiply_add};
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::gemm::gemv::{gemv_n, gemv_t};
use kernels_rs::gemm::tiled::{gemm, sum_splits};
use kernels_rs::permute::gather::gather_rows;
use kernels_rs::permute::rows::{copy_rows, fill_rows};
use kernels_rs::permute::tiles::transpose_tiles;
use kernels_rs::quant::Format;
use kernels_rs::quant::activations::quantize_activations;
use kernels_rs::quant::few::gemv_blocks;
use kernels_rs::quant::formats::{Int8, Iq4Nl, Iq4Xs, Mxfp4, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
use kernels_rs::quant::igemm::igemm;
use kernels_rs::quant::many::{add_parts, gemm_blocks};
use kernels_rs::quant::repack::{dequantize, quantize_q4, quantize_q8, repack, repack_rows};
use kernels_rs::reduce::Sum;
use kernels_rs::reduce::kernels::{reduce_columns, reduce_parts, reduce_rows};
use kernels_rs::rotary::kernels::{rotate, rotate_in_place};
use kernels_rs::rowwise::backward::{norm_backward, norm_columns, softmax_backward};
use kernels_rs::rowwise::group::{group_norm, group_norm_backward};
use kernels_rs::rowwise::norm::{norm_activations, norm_divided, norm_quantized, norm_rows};
use kernels_rs::rowwise::softmax::{softmax_divided, softmax_rows};
use kernels_rs::sampling::best::best_parts;
use kernels_rs::sampling::nucleus::{draw_likely, ends_of_parts, level_sums, level_tokens};
use kernels_rs::sampling::threshold::sample_likely;
use kernels_rs::sampling::top::{likeliest_of_parts, sample_top};
use kernels_rs::scan::kernels::scan_rows;
use kernels_rs_command::nvdisasm::Nvdisasm;
use kernels_rs_command::ptxas::{Ptxas, Resources};
use kernels_rs_command::sass::{Listing, NaturalLoop};

/// The name of an instance, its resources, its loops, and the loop with the most multiplications of
/// floats or bytes, if any.
struct Cost {
    name: &'static str,
    resources: Resources,
    hot: Option<NaturalLoop>,
    loops: Vec<NaturalLoop>,
}

/// Returns the costs of each declared instance of a kernel.
fn costs<K: Kernel>() -> Vec<Cost> {
    let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);
    let Some((ptxas, nvdisasm)) = ptxas.and_then(|p| Nvdisasm::find(&p).map(|n| (p, n))) else {
        println!("skipped: no ptxas for sm_61 with an nvdisasm; `tests/get-nvdisasm` fetches both");
        return Vec::new();
    };
    let instances = K::ARTIFACT.instances;
    let all = nvdisasm.disassemble_all(&ptxas, instances.iter().map(|i| i.ptx), Target::SM_61).unwrap();
    let cost = |(instance, (resources, listing)): (&Declared, (Resources, Listing))| {
        let loops = listing.loops();
        let hot = loops.iter().max_by_key(|l| ffma(l) + dp4a(l)).cloned();
        Cost { name: instance.name, resources, hot, loops }
    };
    instances.iter().zip(all).map(cost).collect()
}

fn ffma(l: &NaturalLoop) -> u32 {
    l.mix.get("FFMA").copied().unwrap_or(0)
}

fn dp4a(l: &NaturalLoop) -> u32 {
    l.mix.iter().filter(|(name, _)| name.starts_with("IDP")).map(|(_, n)| n).sum()
}

/// Number of registers of a multiprocessor of sm_61.
const REGISTERS: u32 = 65_536;

/// Checks that no tile of `f32` spills in its loop, and that two blocks of 256 threads fit with the
/// large tiles. Limits the other instructions and the bank conflicts of registers in the 128 × 128
/// × 8 loop in `f32`.
#[test]
fn gemm_issues_mostly_multiplications() {
    for Cost { name, resources, hot, .. } in
        costs::<gemm<f32, f32, f32, Identity, 128, 128, 8, 2, 2, 4, false, false, 256, 1, 1>>()
    {
        assert!(resources.registers <= REGISTERS / 512, "{name}: {} registers", resources.registers);
        // One tile of `f16` keeps two registers in local memory.
        let spilt = if name == "gemm@f16_64x128_v4_tb" { 40 } else { 0 };
        assert!(resources.spill_loads <= spilt && resources.stack_bytes <= spilt, "{name} spills");

        let Some(hot) = hot else { panic!("{name} has no loop") };
        let (ffma, slots, lost) = (ffma(&hot), hot.slots, hot.bank_conflicts.unwrap());
        println!("{name}: {ffma} FFMA in {slots} slots, {lost} cycles lost to register banks");
        if name.starts_with("gemm@f16") {
            let conversions = hot.mix.get("F2F").copied().unwrap_or(0);
            assert!(100 * conversions <= 6 * hot.instructions, "{name}: {conversions} conversions");
            assert!(!hot.mix.keys().any(|name| name.starts_with('H')), "{name}: arithmetic of f16, {:?}", hot.mix);
        } else if name.starts_with("gemm@f32_128x128_v4") {
            assert_eq!(ffma, 1024, "{name}");
            assert!(100 * ffma >= 97 * slots, "{name}: {ffma} FFMA in {slots} slots");
            assert!(5 * lost <= ffma, "{name}: {lost} cycles lost of {ffma} FFMA");
        }
    }
}

/// Limits the other instructions in the inner loops, over slices of Q and K and over slices of V.
/// Two blocks of 256 threads must fit, or three of 128 where a step has two tiles of keys. The last
/// step may have one tile.
#[test]
fn attention_issues_mostly_multiplications() {
    let floats = costs::<flash_attention<f32, Plain, Dense, Whole, 128, 4, 128, 2, 64, 2, 2, 4>>();
    let cached =
        costs::<flash_attention_cached<f16, i8, Blocks, Contiguous, Plain, Dense, Whole, 128, 128, 2, 64, 2, 2, 4>>();
    for Cost { name, resources, loops, .. } in floats.into_iter().chain(cached) {
        let two = name.contains("_w128");
        let threads = if two { 384 } else { 512 };
        assert!(resources.registers <= REGISTERS / threads, "{name}: {} registers", resources.registers);
        // Over caches, most spills are in the second pass for values that are not finite.
        let stack = if two && name.starts_with("flash_attention_cached") { 104 } else { 0 };
        assert!(resources.stack_bytes <= stack, "{name}: {} bytes of stack", resources.stack_bytes);
        let most = loops.iter().map(ffma).max().unwrap();
        let inner: Vec<_> = loops.iter().filter(|l| ffma(l) < most && ffma(l) >= 128).collect();
        assert_eq!(inner.len(), if two { 4 } else { 2 }, "{name}: {} loops that multiply", inner.len());
        for l in inner {
            let (ffma, slots) = (ffma(l), l.slots);
            println!("{name}: {ffma} FFMA in {slots} slots");
            // Narrower tiles have fewer multiplications per load, and 16-bit floats are converted.
            let least = if name.contains("@f32_") { 80 } else { 50 };
            assert!(100 * ffma >= least * slots, "{name}: {ffma} FFMA in {slots} slots");
        }
    }
}

/// Limits the other instructions in the inner loops of the gradients, and the bank conflicts of
/// registers. No instance spills. For heads of 128 two blocks of dK and dV, and three of dQ, must
/// fit; for heads of 64 three, and four.
#[test]
fn gradients_issue_mostly_multiplications() {
    let of_q = costs::<attention_gradient_q<f32, Plain, Dense, Whole, 128, 4, 2, 1, 2, 2>>();
    let of_kv = costs::<attention_gradient_kv<f32, Plain, Dense, Whole, 128, 4, 2, 1, 2, 2>>();
    for Cost { name, resources, loops, .. } in of_q.into_iter().chain(of_kv) {
        let (kv, wide) = (name.contains("_kv"), name.contains("_w128"));
        let blocks = if wide { 2 } else { 3 } + u32::from(!kv);
        assert!(resources.registers <= REGISTERS / (128 * blocks), "{name}: {} registers", resources.registers);
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        let most = loops.iter().map(ffma).max().unwrap();
        let inner: Vec<_> = loops.iter().filter(|l| ffma(l) < most && ffma(l) >= 512).collect();
        assert_eq!(inner.len(), if kv { 4 } else { 3 }, "{name}: {} loops that multiply", inner.len());
        for l in inner {
            let (ffma, slots, lost) = (ffma(l), l.slots, l.bank_conflicts.unwrap());
            println!("{name}: {ffma} FFMA in {slots} slots, {lost} cycles lost to register banks");
            // 16-bit floats are converted.
            let least = if name.contains("@f32_") { 90 } else { 75 };
            assert!(100 * ffma >= least * slots, "{name}: {ffma} FFMA in {slots} slots");
            assert!(5 * lost <= ffma, "{name}: {lost} cycles lost of {ffma} FFMA");
        }
    }
}

/// Checks that memory-bound kernels leave registers for many warps and use no local memory.
#[test]
fn memory_bound_kernels_leave_registers_for_warps() {
    let few = costs::<gemv_n<f32, f32, f32, Identity, 1, 8, 16, 256, 4>>()
        .into_iter()
        .chain(costs::<gemv_t<f32, f32, f32, Identity, 1, 1, 4, 4>>());
    for Cost { name, resources, .. } in few.chain(costs::<sum_splits<f32, Identity, 4>>()) {
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        let one_row = name.contains("@f32_") && name.contains("r1_");
        if name.starts_with("gemv_n") && one_row && name.ends_with("_v4") {
            // Loads in flight occupy registers: 16 bytes each, `ahead` of them per thread.
            let ahead = if name.contains("_l8_") { 16 } else { 8 };
            let in_flight = REGISTERS / resources.registers * ahead * 16;
            println!("{name}: {in_flight} bytes in flight on a multiprocessor");
            assert!(in_flight >= 96 << 10, "{name}: {in_flight} bytes in flight");
        }
        let few = name.starts_with("gemv_t") && one_row || name.starts_with("sum_splits");
        assert!(resources.registers <= if few { 48 } else { 128 }, "{name}: {} registers", resources.registers);
    }
    for Cost { name, resources, loops, .. } in
        costs::<flash_decode<f32, f32, f32, Unscaled, Contiguous, 16, 4, 8, 2, 4, false, 1, 128, true, 2, 8, 8>>()
    {
        assert!(resources.registers <= 128, "{name}: {} registers", resources.registers);
        for l in loops.iter().filter(|l| ffma(l) >= 64) {
            println!("{name}: {} slots, {} FFMA, {} registers, {:?}", l.slots, ffma(l), resources.registers, l.mix);
        }
        // A P40 is limited by memory up to 17 slots for each byte of a lane. For each key in flight
        // a lane loads bytes of keys, values and scales. The instance of q4_0 has pages: finding a
        // key's page takes a division.
        let of_integers = match name {
            "flash_decode@q8_0" | "flash_decode@q8_0_streamed" => Some((4.0 * (32.0 + 2.0), 4.8)),
            "flash_decode@q4_0" => Some((4.0 * (16.0 + 2.0), 13.2)),
            "flash_decode@f32_i8_contiguous" => Some((8.0 * (16.0 + 0.5), 5.7)),
            _ => None,
        };
        if let Some((bytes, most)) = of_integers {
            let slots = loops.iter().filter(|l| dp4a(l) >= 16).map(|l| f64::from(l.slots) / bytes).fold(0.0, f64::max);
            println!("{name}: {slots:.2} slots for each byte");
            assert!(slots > 0.0 && slots <= most, "{name}: {slots:.2} slots for each byte");
        }
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
    }
}

/// Checks that copying kernels leave registers and shared memory for the full occupancy of a
/// multiprocessor.
#[test]
fn copies_reach_full_occupancy() {
    let moves = costs::<copy_rows<f32, 4, 4, 1>>()
        .into_iter()
        .chain(costs::<fill_rows<f32, 4>>())
        .chain(costs::<gather_rows<f32, 4, 2>>())
        .chain(costs::<transpose_tiles<f32, 4, 4, 64, 64, 1, 64, 65, 66, 16, 2, 4, 8, 2>>());
    for Cost { name, resources, .. } in moves {
        assert!(resources.registers <= REGISTERS / 2048, "{name}: {} registers", resources.registers);
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        // A multiprocessor has 96 KB for 2048 threads. Kernels with shared memory have blocks of
        // 512.
        assert!(resources.shared_bytes <= 96 * 1024 / 4, "{name}: {} bytes of shared memory", resources.shared_bytes);
    }
}

/// Checks that element-wise and reducing kernels do not spill.
#[test]
fn element_wise_kernels_do_not_spill() {
    let all = costs::<map_1<f32, f32, silu, 4, 4, 1>>()
        .into_iter()
        .chain(costs::<map_2<f32, f32, f32, swiglu, 4, 4, 4, 1, 1>>())
        .chain(costs::<map_3<f32, f32, f32, f32, multiply_add, 4, 4, 4, 4, 1, 1, 1>>())
        .chain(costs::<reduce_rows<f32, Sum, 256, 4, 1>>())
        .chain(costs::<reduce_parts<f32, Sum, 4>>())
        .chain(costs::<reduce_columns<f32, Sum, 4>>())
        .chain(costs::<rotate<f32, true, 4, 1>>())
        .chain(costs::<rotate_in_place<f32, true, 4, 1>>())
        .chain(costs::<scan_rows<f32, true, 4>>());
    for Cost { name, resources, .. } in all {
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        // The budget is for four blocks of 256 threads.
        assert!(resources.registers <= 64, "{name}: {} registers", resources.registers);
    }
}

/// Checks that no tile of bytes spills, and that two blocks of 256 threads fit. At least 88 % of
/// the issue slots of the loop are `dp4a`, or 70 % where bytes are loaded one by one. Also limits
/// the bank conflicts of registers.
#[test]
fn igemm_issues_mostly_multiplications() {
    for Cost { name, resources, hot, .. } in costs::<igemm<f32, Identity, 128, 128, 2, 2, 16, false, true, 256, 1, 1>>()
    {
        assert!(resources.registers <= REGISTERS / 512, "{name}: {} registers", resources.registers);
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        let Some(hot) = hot else { panic!("{name} has no loop") };
        let (dp4a, slots, lost) = (dp4a(&hot), hot.slots, hot.bank_conflicts.unwrap());
        println!("{name}: {dp4a} dp4a in {slots} slots, {lost} cycles lost to register banks");
        let least = if name == "igemm@f32_128x128_v16_tb" {
            94
        } else if name == "igemm@f32_64x64_v1_tb" {
            70
        } else {
            88
        };
        assert!(100 * dp4a >= least * slots, "{name}: {dp4a} dp4a in {slots} slots");
        assert!(5 * lost <= dp4a, "{name}: {lost} cycles lost of {dp4a} dp4a");
    }
}

/// Returns the registers of a thread of a tile of `tall` rows. A multiprocessor has seven blocks of
/// two warps, or six with experts, and 16 larger warps.
fn registers_of_tile(tall: u32, with_experts: bool) -> u32 {
    match (tall, with_experts) {
        (16, true) => REGISTERS / 384,
        (16, false) => REGISTERS / 448,
        _ => REGISTERS / 512,
    }
}

/// Checks the share of `dp4a` in the slots of the loop of products of many rows, in percent.
#[test]
fn tiles_of_blocks_issue_mostly_multiplications() {
    const SHARES: [(&str, u32); 10] = [
        ("gemm_blocks@q4_0_f32_64_v4", 60),
        ("gemm_blocks@q8_0_f32_64_v4", 60),
        ("gemm_blocks@q4_k_f32_64_v4", 54),
        ("gemm_blocks@q6_k_f32_64_v4", 46),
        ("gemm_blocks@q4_0_f32_32_v4", 60),
        ("gemm_blocks@q6_k_f32_32_v4", 46),
        ("gemm_blocks@q4_0_f32_16_v4", 50),
        ("gemm_blocks@q4_k_f16_16_v1", 45),
        ("gemm_blocks@experts_q4_k_f32_64_v4", 54),
        ("gemm_blocks@experts_q4_k_f32_32_v4", 54),
    ];
    for Cost { name, resources, hot, .. } in costs::<gemm_blocks<Q4_0, f32, Identity, 64, 4, false, 1, 256>>() {
        let tall = if name.contains("_16_") { 16 } else { 32 };
        let registers = registers_of_tile(tall, name.contains("experts"));
        assert!(resources.registers <= registers, "{name}: {} registers", resources.registers);
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        let Some(hot) = hot else { panic!("{name} has no loop") };
        println!("{name}: {} dp4a in {} slots, {} registers", dp4a(&hot), hot.slots, resources.registers);
        assert_eq!(dp4a(&hot), 256, "{name}");
        let Some((_, share)) = SHARES.iter().find(|(limited, _)| *limited == name) else { continue };
        assert!(100 * 256 >= share * hot.slots, "{name}: {} slots", hot.slots);
    }
}

/// Checks that products of 1, 4 and 8 rows are bound by memory: limits are slots for a hundred
/// weights. A Tesla P40 has 960 while its memory delivers a hundred weights of Q4_0 or Q4_K, 1810
/// of Q8_0, 1390 of Q6_K.
#[test]
fn blocks_of_few_rows_are_bound_by_memory() {
    // Weights of a lane in the loop, and slots for a hundred of them.
    const MAX_SLOTS: [(&str, u32, u32); 12] = [
        ("gemv_blocks@q4_0_r1", 512, 130),
        ("gemv_blocks@q8_0_r1", 512, 90),
        ("gemv_blocks@q4_k_r1", 512, 160),
        ("gemv_blocks@q6_k_r1", 512, 240),
        ("gemv_blocks@q4_0_r4", 256, 200),
        ("gemv_blocks@q8_0_r4", 192, 180),
        ("gemv_blocks@q4_k_r4", 192, 255),
        ("gemv_blocks@q6_k_r4", 192, 315),
        ("gemv_blocks@q4_0_r8", 192, 340),
        ("gemv_blocks@q8_0_r8", 192, 320),
        ("gemv_blocks@q4_k_r8", 192, 420),
        ("gemv_blocks@q6_k_r8", 128, 520),
    ];
    for Cost { name, resources, hot, .. } in
        costs::<gemv_blocks<Q4_0, f32, f32, Identity, true, 1, 4, 512, 4096, 2, 4, 4, 1>>()
    {
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        assert!(resources.registers <= REGISTERS / 512, "{name}: {} registers", resources.registers);
        let Some(hot) = hot else { panic!("{name} has no loop") };
        let Some((_, weights, most)) = MAX_SLOTS.iter().find(|(limited, ..)| *limited == name) else { continue };
        let slots = 100 * hot.slots / weights;
        println!("{name}: {slots} slots for a hundred weights, {} registers", resources.registers);
        assert!(slots <= *most, "{name}: {slots} slots for a hundred weights");
    }
}

/// A product of weights in blocks.
enum QuantizedProduct {
    /// A product of few rows: the weights that a lane multiplies in an iteration, and the numbers
    /// and bytes of a block.
    Rows { weights: usize, numbers: usize, bytes: usize },
    /// A tile of rows.
    Tile,
}

/// Checks that products with every format of weights stay in registers: of 1, 2, 4 and 8 rows and
/// of tiles, as they are compiled when a program first needs them.
///
/// Products of up to 8 rows issue at most 17.0 slots for a byte of weights. A Tesla P40 has as many
/// while its memory delivers the byte.
#[test]
fn every_format_stays_in_registers() {
    let ptxas = Ptxas::find().filter(Ptxas::takes_sm_61);
    let Some((ptxas, nvdisasm)) = ptxas.and_then(|p| Nvdisasm::find(&p).map(|n| (p, n))) else {
        println!("skipped: no ptxas for sm_61 with an nvdisasm; `tests/get-nvdisasm` fetches both");
        return;
    };
    let number = Constant::Usize;
    let mut products = Vec::new();
    let mut compiled = |artifact: &Artifact, constants: Vec<Constant>, registers: u32, shape: QuantizedProduct| {
        let instance = Instance(constants);
        let ptx = compile(&artifact.program().unwrap(), &instance, Target::SM_61).unwrap();
        products.push((instance.name(artifact.name), ptx, registers, shape));
    };
    let (float, identity) = (Constant::Scalar(Scalar::F32), Identity::CONSTANT);
    let formats = [
        (Q4_0::CONSTANT, Format::Q4_0, [2, 4, 3]),
        (Iq4Nl::CONSTANT, Format::Iq4Nl, [2, 4, 3]),
        (Iq4Xs::CONSTANT, Format::Iq4Xs, [2, 4, 3]),
        (Mxfp4::CONSTANT, Format::Mxfp4, [2, 4, 3]),
        (Q4_1::CONSTANT, Format::Q4_1, [1, 3, 3]),
        (Q5_0::CONSTANT, Format::Q5_0, [1, 3, 3]),
        (Q5_1::CONSTANT, Format::Q5_1, [1, 3, 3]),
        (Q8_0::CONSTANT, Format::Q8_0, [1, 3, 3]),
        (Q2K::CONSTANT, Format::Q2K, [1, 3, 3]),
        (Q3K::CONSTANT, Format::Q3K, [1, 3, 2]),
        (Q4K::CONSTANT, Format::Q4K, [1, 3, 3]),
        (Q5K::CONSTANT, Format::Q5K, [1, 3, 3]),
        (Q6K::CONSTANT, Format::Q6K, [1, 3, 2]),
        (Int8::CONSTANT, Format::Int8, [1, 3, 3]),
    ];
    // Each product is compiled for every third format on every change.
    let selected = |product: usize, format: usize| tests::share::is_whole() || (product + format).is_multiple_of(3);
    for (at, (constant, format, [ahead, few, many])) in formats.into_iter().enumerate() {
        let [numbers, bytes] = format.block();
        // Rows, columns, threads, piece, units ahead, as `Weights::product` chooses them.
        let rows = [
            [1, 4, 512, 4096, ahead],
            [1, if ahead == 2 { 6 } else { 3 }, 512, 2048, 1],
            [1, 4, 256, 2048, ahead],
            [2, few, 256, 2048, 1],
            [4, few, 256, 2048, 1],
            [8, many, 256, 2048, 1],
        ];
        let rows = rows.into_iter().enumerate().filter(|(product, _)| selected(*product, at));
        for (_, [r, w, threads, piece, ahead]) in rows {
            let (fresh, sizes) = (Constant::Bool(r == 1), [r, w, threads, piece, ahead, 4, r * w, r].map(number));
            let types = [constant.clone(), float.clone(), float.clone(), identity.clone(), fresh];
            let kernel = gemv_blocks::<Q4_0, f32, f32, Identity, true, 1, 4, 512, 4096, 2, 4, 4, 1>::ARTIFACT;
            // A lane multiplies a unit of `w` rows for each 1024 numbers of a piece.
            let shape = QuantizedProduct::Rows { weights: (w * piece / 32) as usize, numbers, bytes };
            compiled(kernel, types.into_iter().chain(sizes).collect(), REGISTERS / 512, shape);
        }
        let tiles = [[16, 2], [32, 1], [64, 1]].into_iter().enumerate();
        for (_, [tall, q]) in tiles.filter(|(product, _)| selected(*product, at)) {
            for with_experts in [false, true] {
                let types = [constant.clone(), float.clone(), identity.clone()].into_iter();
                let (rows, threads) = ([tall, 4].map(number), [q, 4 * tall].map(number));
                let tile = types.chain(rows).chain([Constant::Bool(with_experts)]).chain(threads).collect();
                let kernel = gemm_blocks::<Q4_0, f32, Identity, 64, 4, false, 1, 256>::ARTIFACT;
                compiled(kernel, tile, registers_of_tile(tall, with_experts), QuantizedProduct::Tile);
            }
        }
    }
    let machine_code = nvdisasm.disassemble_all(&ptxas, products.iter().map(|(_, ptx, ..)| &ptx[..]), Target::SM_61);
    for ((name, _, registers, shape), (resources, listing)) in products.iter().zip(machine_code.unwrap()) {
        // Q3_K has the most bits to put together: one register of its tile of 16 rows is spilled,
        // and one of Q6_K's tile of 64 rows with experts.
        let may_spill = ["<Q3K, f32, Identity, 16", "<Q6K, f32, Identity, 64, 4, true"];
        let is_small = resources.spill_stores == 4 && resources.stack_bytes == 8;
        let is_known = is_small && may_spill.iter().any(|known| name.contains(known));
        assert!((resources.spill_stores, resources.stack_bytes) == (0, 0) || is_known, "{name} spills");
        assert!(resources.registers <= *registers, "{name}: {} registers", resources.registers);
        let hot = listing.loops().into_iter().max_by_key(dp4a);
        let slots = hot.unwrap_or_else(|| panic!("{name} has no loop")).slots;
        match *shape {
            QuantizedProduct::Rows { weights, numbers, bytes } => {
                println!("{name}: {:.2} slots a weight", f64::from(slots) / weights as f64);
                let most = 170 * weights * bytes;
                assert!(10 * slots as usize * numbers <= most, "{name}: {slots} slots for {weights} weights");
            }
            QuantizedProduct::Tile => println!("{name}: {:.1} % dp4a", 25600.0 / f64::from(slots)),
        }
    }
}

/// Checks that kernels that repack weights leave registers for the full occupancy.
#[test]
fn repacking_reaches_full_occupancy() {
    let kernels = [
        costs::<repack<Q4_0>>(),
        costs::<repack_rows>(),
        costs::<quantize_q8<f32, 4>>(),
        costs::<quantize_q4<f32>>(),
        costs::<quantize_activations<f32, swiglu, false, 4>>(),
        costs::<dequantize<Q4_0, f32, 4>>(),
        costs::<add_parts<f32, Identity, 4>>(),
    ];
    for Cost { name, resources, .. } in kernels.into_iter().flatten() {
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        assert!(resources.registers <= 32, "{name}: {} registers", resources.registers);
    }
}

/// Limits the cost of sampling. For each of four elements a draw from all tokens takes a random
/// number, two logarithms and an exact sum: at most 421 slots, 5 % above the 401 of 23-bit numbers
/// and rounded sums. The most likely token takes a comparison for each of four elements.
#[test]
fn draws_are_cheap() {
    let all = costs::<best_parts<f32, false, 4>>()
        .into_iter()
        .chain(costs::<likeliest_of_parts<f32>>())
        .chain(costs::<sample_top<64>>())
        .chain(costs::<sample_likely<f32>>())
        .chain(costs::<ends_of_parts<f32>>())
        .chain(costs::<level_sums<f32>>())
        .chain(costs::<level_tokens<f32>>())
        .chain(costs::<draw_likely<f32>>());
    for Cost { name, resources, loops, .. } in all {
        assert_eq!((resources.spill_stores, resources.stack_bytes), (0, 0), "{name} spills");
        let Some(longest) = loops.iter().max_by_key(|l| l.slots) else { panic!("{name} has no loop") };
        let loads = longest.mix.get("LDG").copied().unwrap_or(0).max(1);
        println!("{name}: {} slots for {loads} loads, {} registers", longest.slots, resources.registers);
        let most = match name {
            "best_parts<f32, NOISE = true, V = 4>" => 421,
            "best_parts<f32, NOISE = false, V = 4>" => 40,
            _ => continue,
        };
        assert!(longest.slots <= most * loads, "{name}: {} slots for {loads} loads", longest.slots);
    }
}

/// Checks that the elements of a row stay in registers, without spills. 1024 threads fit into a
/// multiprocessor, or two blocks of the instances for few waves.
#[test]
fn rows_stay_in_registers() {
    let costs = costs::<softmax_rows<f32, false, false, 256, 1, 4, 4, 2>>()
        .into_iter()
        .chain(costs::<norm_rows<f32, f32, f32, true, false, true, 512, 1, 4, 2, 2>>())
        .chain(costs::<softmax_divided<f32, false, false, 256, 4, 8, 8192>>())
        .chain(costs::<norm_divided<f32, f32, f32, true, false, 256, 4, 8, 8192>>())
        .chain(costs::<norm_quantized<f32, f32, false, 256, 1, 4, 4, 2>>())
        .chain(costs::<norm_activations<f32, f32, false, 256, 1, 4, 2, 2>>())
        .chain(costs::<softmax_backward<f32, false, 512, 1, 4, 2, 2>>())
        .chain(costs::<norm_backward<f32, f32, true, 512, 1, 4, 2, 2>>())
        .chain(costs::<group_norm<f32, f32, f32, 256, 1, 4, 4, 2>>())
        .chain(costs::<group_norm_backward<f32, f32, 512, 1, 4, 2, 2>>())
        .chain(costs::<norm_columns<f32, 4>>());
    for Cost { name, resources, .. } in costs {
        // With a warp per row, one register of a group's channels is in local memory.
        let spilt = if name == "group_norm_backward@f32_l32_v1" { 8 } else { 0 };
        assert!(resources.spill_stores <= spilt && resources.stack_bytes <= spilt, "{name} spills");
        let most = if name.ends_with("_n8") {
            128
        } else if name.starts_with("softmax_divided@") && name.ends_with("_masked") {
            80
        } else {
            64
        };
        assert!(resources.registers <= most, "{name}: {} registers", resources.registers);
    }
}
