//! Constants indexed at run time: their contents, their placement, and reports of indices out of
//! bounds.

use super::every_target;
use super::values::{check, check_exact, wide};
use kernel_dsl::compiler::analyses::memory::accesses;
use kernel_dsl::compiler::analyses::slow::{Lint, Slow, lints};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{Target, driver, passes};
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel, host};
use runtime::Device;
use runtime::testing::{Bound, Expected, Input};

#[device]
const WEIGHTS: [f32; 16] =
    [0.5, -1.25, 3.0, 4.5, 1e-8, -0.0, 7.0, 1e30, 2.5, 9.0, -10.0, 11.5, 12.0, -13.25, 14.0, 15.75];

#[device]
const NESTED: [[i16; 3]; 5] = [[1, -2, 3], [-4, 5, -6], [7, -8, 9], [-10, 11, -12], [13, -14, -32768]];

/// Returns the CRC-32 table of the polynomial 0xEDB88320.
#[device]
const fn crc_table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let mut rest = i as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { 0xedb8_8320 ^ (rest >> 1) } else { rest >> 1 };
            bit += 1;
        }
        table[i] = rest;
        i += 1;
    }
    table
}

#[device]
const CRC: [u32; 256] = crc_table();

/// Reads a different element in each lane.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
fn by_lane(x: &[u32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = WEIGHTS[x[i] as usize % 16] * 2.0;
    }
}

/// Reads one element in all lanes, from a loop that is not unrolled, and constants.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
fn by_block(n: usize, y: &mut [f32]) {
    let i = grid::index();
    let mut sum = WEIGHTS[3];
    for k in rolled(0..n) {
        sum = sum * 0.5 + WEIGHTS[k];
    }
    for k in unroll(0..4) {
        sum += WEIGHTS[4 * k];
    }
    if i < y.len() {
        y[i] = sum;
    }
}

#[kernel(block = 64, grid = y.len().div_ceil(64))]
fn nested(y: &mut [i32]) {
    let i = grid::index();
    if i < y.len() {
        let row = NESTED[i % 5];
        y[i] = NESTED[i % 5][i % 3] as i32 * 10 + row[0] as i32 + row[2] as i32;
    }
}

#[kernel(block = 64, grid = bytes.len().div_ceil(64))]
#[requires(bytes.len() == y.len())]
fn crc_of_each(bytes: &[u8], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        let crc = CRC[((0xffff_ffff ^ bytes[i] as u32) & 0xff) as usize] ^ 0x00ff_ffff;
        y[i] = !crc;
    }
}

#[device]
mod shapes {
    use kernel_dsl::prelude::*;

    #[derive(Clone, Copy)]
    pub struct Stencil {
        pub offsets: [[i32; 2]; 3],
        pub scale: f32,
        pub on: [bool; 4],
    }

    #[device(constant)]
    pub const STENCIL: Stencil =
        Stencil { offsets: [[-1, 2], [3, -4], [5, 6]], scale: 0.25, on: [true, false, false, true] };

    pub trait Code: Copy {
        const LEVELS: [f16; 8];
        const NAMES: [u64; 2] = [0x0123_4567_89ab_cdef, 7];
    }

    #[derive(Clone, Copy)]
    pub struct Linear;
    impl Code for Linear {
        const LEVELS: [f16; 8] = [
            f16::from_bits(0x3c00),
            f16::from_bits(0x4000),
            f16::from_bits(0x4200),
            f16::from_bits(0x4400),
            f16::from_bits(0x4500),
            f16::from_bits(0x4600),
            f16::from_bits(0x4700),
            f16::from_bits(0x4800),
        ];
    }

    #[derive(Clone, Copy)]
    pub struct Steep;
    impl Code for Steep {
        const LEVELS: [f16; 8] = [f16::from_bits(0xbc00); 8];
        const NAMES: [u64; 2] = [1, u64::MAX];
    }
}
use shapes::{Code, Linear, STENCIL, Steep};

/// Indexes a field of a struct.
#[kernel(block = 32, grid = 1)]
fn of_a_struct(y: &mut [f32]) {
    let i = thread::x();
    let sum = (STENCIL.offsets[i % 3][i % 2] * 10 + STENCIL.offsets[1][i % 2]) as f32;
    y[i] = if STENCIL.on[i % 4] { sum * STENCIL.scale } else { -sum };
}

#[kernel(block = 32, grid = 1, instances(C = Linear | Steep))]
fn associated<C: Code>(y: &mut [f32], names: &mut [u64]) {
    let i = thread::x();
    y[i] = C::LEVELS[i % 8].to_f32();
    names[i] = C::NAMES[i % 2];
}

/// Indexes a constant that is declared in a body and computed from another, passed whole and in
/// part.
#[device]
fn third(of: &[f32; 4], i: usize) -> f32 {
    of[(i + 3) % 4]
}

#[kernel(block = 32, grid = 1)]
fn of_a_body(y: &mut [f32]) {
    const STEP: f32 = 0.5;
    const RAMP: [f32; 4] = [STEP, STEP * 2.0, STEP * 3.0, STEP * STEP];
    const PLANE: [[f32; 4]; 2] = [RAMP, [9.0; 4]];
    let i = thread::x();
    let whole = RAMP;
    let borrowed = &RAMP;
    y[i] = RAMP[i % 4] + third(&PLANE[i % 2], i) + whole[2] + borrowed[(i + 1) % 4] + third(&RAMP, i);
}

fn by_lane_agrees(gpu: Option<&Device>) {
    let x: Vec<u32> = (0..200).map(|i| i * 7 + 3).collect();
    let expected: Vec<f32> = x.iter().map(|i| WEIGHTS[*i as usize % 16] * 2.0).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0f32; 200])];
    check(by_lane::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
    every_target::assemble(by_lane::ARTIFACT);
}

fn by_block_agrees(gpu: Option<&Device>) {
    for n in [0, 1, 7, 16] {
        let mut sum = WEIGHTS[3];
        for weight in &WEIGHTS[..n] {
            sum = sum * 0.5 + weight;
        }
        for k in 0..4 {
            sum += WEIGHTS[4 * k];
        }
        let inputs = vec![Input::scalar(n), Input::slice(&[0f32; 100])];
        check(by_block::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&[sum; 100]))]);
    }
    every_target::assemble(by_block::ARTIFACT);
}

fn nested_agrees(gpu: Option<&Device>) {
    let at = |i: usize| {
        let row = NESTED[i % 5];
        f64::from(i32::from(row[i % 3]) * 10 + i32::from(row[0]) + i32::from(row[2]))
    };
    let inputs = vec![Input::slice(&[0i32; 90])];
    check(nested::ARTIFACT, &[], gpu, inputs, vec![(0, (0..90).map(at).collect())]);
    every_target::assemble(nested::ARTIFACT);
}

/// Checks the table against the bitwise definition of CRC-32 for messages of one byte.
fn crc_agrees(gpu: Option<&Device>) {
    let bytes: Vec<u8> = (0..=255).collect();
    let crc = |byte: u8| {
        let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        f64::from(!(0..8).fold(!0 ^ u32::from(byte), step))
    };
    let inputs = vec![Input::slice(&bytes), Input::slice(&[0u32; 256])];
    check(crc_of_each::ARTIFACT, &[], gpu, inputs, vec![(1, bytes.iter().map(|b| crc(*b)).collect())]);
    every_target::assemble(crc_of_each::ARTIFACT);
}

fn of_a_struct_agrees(gpu: Option<&Device>) {
    let mut expected = vec![0f32; 32];
    let ys = host::SliceMut::new(&mut expected);
    // SAFETY: each thread writes its own element, and the vector outlives the run.
    unsafe { host::run([1, 1, 1], [32, 1, 1], || of_a_struct_body(&mut ys.of_thread())) };
    drop(ys);
    check(of_a_struct::ARTIFACT, &[], gpu, vec![Input::slice(&[0f32; 32])], vec![(0, wide(&expected))]);
    every_target::assemble(of_a_struct::ARTIFACT);
}

fn of_a_struct_body(y: &mut [f32]) {
    let i = thread::x();
    let sum = (STENCIL.offsets[i % 3][i % 2] * 10 + STENCIL.offsets[1][i % 2]) as f32;
    y[i] = if STENCIL.on[i % 4] { sum * STENCIL.scale } else { -sum };
}

fn associated_agrees(gpu: Option<&Device>) {
    fn of<C: Code>(gpu: Option<&Device>)
    where
        associated<C>: Kernel,
    {
        let levels = (0..32).map(|i| f64::from(C::LEVELS[i % 8].to_f32())).collect();
        let names: Vec<u64> = (0..32).map(|i| C::NAMES[i % 2]).collect();
        let inputs = vec![Input::slice(&[0f32; 32]), Input::slice(&[0u64; 32])];
        let constants = <associated<C> as Kernel>::CONSTANTS;
        let expected = vec![Expected::new(0, levels, Bound::Exact), Expected::exact(1, names)];
        check_exact(<associated<C> as Kernel>::ARTIFACT, constants, gpu, inputs, expected);
    }
    of::<Linear>(gpu);
    of::<Steep>(gpu);
    every_target::assemble(associated::<Linear>::ARTIFACT);
}

fn of_a_body_agrees(gpu: Option<&Device>) {
    let ramp = [0.5f32, 1.0, 1.5, 0.25];
    let at = |i: usize| {
        let lent = [ramp, [9.0; 4]][i % 2][(i + 3) % 4];
        ramp[i % 4] + lent + ramp[2] + ramp[(i + 1) % 4] + ramp[(i + 3) % 4]
    };
    let expected: Vec<f32> = (0..32).map(at).collect();
    check(of_a_body::ARTIFACT, &[], gpu, vec![Input::slice(&[0f32; 32])], vec![(0, wide(&expected))]);
    every_target::assemble(of_a_body::ARTIFACT);
}

agreements! {
    by_lane_reads gpu_by_lane_reads by_lane_agrees
    by_block_reads gpu_by_block_reads by_block_agrees
    nested_tables gpu_nested_tables nested_agrees
    computed_tables gpu_computed_tables crc_agrees
    tables_of_structs gpu_tables_of_structs of_a_struct_agrees
    associated_tables gpu_associated_tables associated_agrees
    tables_of_bodies gpu_tables_of_bodies of_a_body_agrees
}

/// Checks that the placement of a table follows from its reads, or from an attribute, and that
/// unused tables are absent.
#[test]
fn placement_follows_from_reads_or_an_attribute() {
    let lines =
        |ptx: &'static str| ptx.lines().filter(|l| l.starts_with('.') && l.contains(".align")).collect::<Vec<_>>();
    assert!(
        matches!(lines(by_lane::PTX)[..], [line] if line.starts_with(".global .align 16 .f32 $WEIGHTS[16] = {0f3F000000, 0f"))
    );
    assert!(
        matches!(lines(by_block::PTX)[..], [line] if line.starts_with(".const .align 16 .f32 $WEIGHTS[16] = {0f3F000000, 0f"))
    );
    assert!(by_block::PTX.contains("ld.const.f32") && !by_lane::PTX.contains("ld.const"));
    assert!(matches!(lines(of_a_struct::PTX)[..], [line] if line.starts_with(".const .align 16 .b8 $STENCIL[32]")));
    assert!(
        matches!(lines(nested::PTX)[..], [line] if line.starts_with(".global .align 16 .s16 $NESTED[15] = {1, -2, 3, -4"))
    );
    assert_eq!(lines(associated::<Linear>::PTX).len(), 2);
}

/// Checks that divergent reads of constant memory are reported, and that automatic placement avoids
/// them.
#[test]
fn divergent_constant_reads_are_reported() {
    let turns = |artifact: &Artifact| -> Vec<u32> {
        let program = artifact.program().unwrap();
        let lowered = driver::lowered(&program, &Instance(Vec::new()), Target::SM_61).unwrap();
        let sites = accesses(&passes::with_places(lowered.clone().into()).unwrap());
        let lints = lints(&passes::optimize(lowered).unwrap(), &sites);
        let turns = |lint: &Lint| match lint.slow {
            Slow::ConstantSerialization(words) => Some(words),
            _ => None,
        };
        lints.iter().filter_map(turns).collect()
    };
    // Six distinct pairs, two of one row, and four Booleans in one word.
    assert_eq!(turns(of_a_struct::ARTIFACT), [6, 2]);
    assert_eq!(turns(by_block::ARTIFACT), [0; 0]);
    assert_eq!(turns(by_lane::ARTIFACT), [0; 0]);
}
