//! Costs of the eight steps of the matrix product: in the machine code, in the interpreter's
//! counts, and on a device.

use crate::product::*;
use kernel_dsl::compiler::Compilation;
use kernel_dsl::compiler::analyses::occupancy::{Needs, Occupancy};
use kernel_dsl::compiler::hir::{Instance, monomorphic};
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Declared, Kernel};
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::gemm::tiled::gemm;
use kernels_rs_command::{nvdisasm::Nvdisasm, ptxas::Ptxas};
use runtime::interpreter::profile::{ProfiledAccess, RequestMemory};
use runtime::testing::{Case, Input, Profiler, Random};
use runtime::{Device, Result, Stream};
use std::time::Duration;

/// The library's instance for tiles of 128 × 128 × 8.
type Library = gemm<f32, f32, f32, Identity, 128, 128, 8, 2, 2, 4, false, false, 256, 1, 1>;

/// A step of the matrix product.
pub struct Step {
    /// Name of the kernel.
    pub name: &'static str,
    artifact: &'static Artifact,
    instance: Instance,
    /// Whether the kernel is the library's, which has more arguments.
    is_library: bool,
}

impl Step {
    fn of<K: Kernel>() -> Step {
        let instance = Instance(K::ARTIFACT.instances.first().map(|i| i.constants.to_vec()).unwrap_or_default());
        Step { name: K::ARTIFACT.name, artifact: K::ARTIFACT, instance, is_library: false }
    }

    fn declared(&self) -> Option<&'static Declared> {
        self.artifact.instances.iter().find(|declared| declared.constants == self.instance.0)
    }
}

/// Returns the eight steps.
pub fn steps() -> Vec<Step> {
    let library = <Library as Kernel>::ARTIFACT;
    let name = "f32_128x128_v4";
    let instance = library.instances.iter().find(|declared| declared.name.ends_with(name));
    let instance = Instance(instance.map(|declared| declared.constants.to_vec()).unwrap_or_default());
    vec![
        Step::of::<step1_naive>(),
        Step::of::<step2_coalesced>(),
        Step::of::<step3_shared>(),
        Step::of::<step4_column>(),
        Step::of::<step5_square>(),
        Step::of::<step6_vectors>(),
        Step::of::<step7_double>(),
        Step { name: "gemm", artifact: library, instance, is_library: true },
    ]
}

/// Costs of the loop in which a product spends its time.
pub struct Loop {
    /// Registers of a thread.
    pub registers: u32,
    /// Warps that a multiprocessor holds at once.
    pub warps: u32,
    /// Issue slots for each multiply-add.
    pub slots: f64,
    /// Accesses to shared memory for each multiply-add.
    pub shared: f64,
}

impl Loop {
    /// Assembles a step. Returns `None` without NVIDIA's tools.
    pub fn of(step: &Step) -> Option<Loop> {
        let ptxas = Ptxas::find()?;
        let nvdisasm = Nvdisasm::find(&ptxas)?;
        let (target, ptx) = (step.artifact.target, step.declared()?.ptx);
        let (resources, listing) = nvdisasm.disassemble(&ptxas, ptx, target).ok()?;
        let count = |body: &[usize], names: &[&str]| {
            let is_one = |i: &&usize| names.iter().any(|name| listing.instructions[**i].name.starts_with(name));
            body.iter().filter(is_one).count()
        };
        let multiply_adds = |body: &[usize]| count(body, &["FFMA"]);
        // Several loops may do equal work. Longer ones handle edges.
        let loops = listing.loops();
        let most = loops.iter().map(|l| multiply_adds(&l.body)).max()?;
        let inner = loops.iter().filter(|l| multiply_adds(&l.body) == most).min_by_key(|l| l.slots)?;
        let program = step.artifact.program().ok()?;
        let program = monomorphic(&program, &step.instance).ok()?;
        let threads = Compilation::new(&program, target).ok()?.lowered().block.most_threads();
        let needs = Needs { threads, registers: Some(resources.registers), shared: resources.shared_bytes };
        Some(Loop {
            registers: resources.registers,
            warps: Occupancy::of(target, needs).warps,
            slots: f64::from(inner.slots) / most as f64,
            shared: count(&inner.body, &["LDS", "STS"]) as f64 / most as f64,
        })
    }
}

/// Memory operations for each multiply-add of a warp, as the interpreter counts them.
pub struct Traffic {
    /// Accesses to shared memory.
    pub shared: f64,
    /// Passes of shared memory, at least.
    pub passes: f64,
    /// Sectors of global memory.
    pub sectors: f64,
}

impl Traffic {
    /// Runs a step on matrices of 128 × 128.
    pub fn of(step: &Step) -> Result<Option<Traffic>> {
        let profiler = Profiler::new(step.artifact, &step.instance, step.artifact.target)?;
        let Some((_, profile)) = profiler.run(&case(step, 128))? else { return Ok(None) };
        let multiply_adds = profile.float_operations as f64 / 2.0 / 32.0;
        let (mut shared, mut passes, mut sectors) = (0, 0, 0);
        for access in &profile.accesses {
            match access.counts.memory {
                RequestMemory::Shared => {
                    shared += access.counts.requests;
                    passes += access.counts.requests * least_passes(access);
                }
                RequestMemory::Global => sectors += access.counts.cost,
                RequestMemory::Constant => {}
            }
        }
        let [shared, passes, sectors] = [shared, passes, sectors].map(|n| n as f64 / multiply_adds);
        Ok(Some(Traffic { shared, passes, sectors }))
    }
}

/// Returns the number of different words in the busiest bank of an access, over all lanes of one
/// request. No hardware needs fewer passes.
fn least_passes(access: &ProfiledAccess) -> u64 {
    let mut words: Vec<u64> = Vec::new();
    for offset in access.sample.offsets.iter().flatten() {
        words.extend(offset / 4..(offset + u64::from(access.bytes)).div_ceil(4));
    }
    words.sort_unstable();
    words.dedup();
    let of_bank = |bank| words.iter().filter(|word| *word % 32 == bank).count() as u64;
    (0..32).map(of_bank).max().unwrap_or(0)
}

/// Returns a case of a step with square matrices.
fn case(step: &Step, n: usize) -> Case {
    let mut random = Random::new(1);
    let (a, b) = (random.values::<f32>(n * n), random.values::<f32>(n * n));
    let name = format!("{n} × {n} × {n}");
    if !step.is_library {
        let c = Input::uninitialized::<f32, 2>([n, n]);
        return Case::new(name, [Input::view(&a, [n, n]), Input::view(&b, [n, n]), c]);
    }
    let [a, b] = [a, b].map(|matrix| Input::view(&matrix, [1, n, n]));
    let c = Input::uninitialized::<f32, 3>([1, n, n]);
    Case::new(
        name,
        [Input::scalar(1.0f32), a, b, Input::scalar(0.0f32), c, Input::scalar(1usize), Input::scalar(0usize)],
    )
}

/// Warp instructions that a multiprocessor issues in a clock.
const ISSUED: f64 = 4.0;
/// Passes of shared memory in a clock.
const PASSES: f64 = 1.0;
/// Sectors that L2 delivers to a multiprocessor in a clock: 64 bytes.
const SECTORS: f64 = 2.0;

/// Prints the table of the eight steps.
pub fn print() -> Result<()> {
    println!("kernel           registers  warps  slots/FMA  FMA share  passes/FMA  sectors/FMA  bound");
    for step in steps() {
        let (Some(code), Some(traffic)) = (Loop::of(&step), Traffic::of(&step)?) else {
            println!("{:16} requires ptxas and nvdisasm", step.name);
            continue;
        };
        let share = 1.0 / code.slots;
        // The compiler merges some accesses to adjacent words, after the interpreter has counted.
        let passes = traffic.passes * (code.shared / traffic.shared.max(1e-9)).min(1.0);
        let shared = PASSES / ISSUED / passes.max(1e-9);
        let global = SECTORS / ISSUED / traffic.sectors.max(1e-9);
        let bound = share.min(shared).min(global).min(1.0);
        println!(
            "{:16} {:9} {:6} {:10.3} {:8.1} % {:11.3} {:12.4} {:4.1} %",
            step.name,
            code.registers,
            code.warps,
            code.slots,
            100.0 * share,
            passes,
            traffic.sectors,
            100.0 * bound
        );
    }
    Ok(())
}

/// Number of independent sums of a thread of `bare_rate`.
#[device]
const CHAINS: usize = 8;
/// Iterations of `bare_rate`.
#[device]
const ROUNDS: usize = 4096;

/// Computes multiply-adds without any memory access, to measure the card's own rate.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn bare_rate(a: f32, y: &mut [f32]) {
    let i = grid::index();
    let mut sums = [a; CHAINS];
    for _ in 0..ROUNDS {
        for j in unroll(0..CHAINS) {
            sums[j] = sums[j].mul_add(a, 1.0);
        }
    }
    let mut sum = 0.0;
    for j in unroll(0..CHAINS) {
        sum += sums[j];
    }
    if i < y.len() {
        y[i] = sum;
    }
}

/// Returns the least time of some launches.
fn least(stream: &Stream, mut launch: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let before = stream.record()?;
        launch()?;
        let after = stream.record()?;
        stream.wait()?;
        best = best.min(after.duration_since(&before)?);
    }
    Ok(best.as_secs_f64())
}

/// Times the eight steps on the best device, at N × N × N, and compares with the device's rate of
/// bare multiply-adds.
pub fn time() -> Result<()> {
    let device = Device::best()?;
    let is_gpu = !device.is_cpu();
    let n: usize = if is_gpu { 4096 } else { 128 };
    println!("{device}, {n} × {n} × {n}");
    let stream = device.stream()?;
    let threads = if is_gpu { 1 << 20 } else { 256 };
    let mut y = stream.upload(&vec![0.0f32; threads])?;
    // SAFETY: the kernel stores below the length only, and is correct on the interpreter.
    let mut bare = unsafe { stream.prepare_unchecked(bare_rate::call(0.5, &mut y))? };
    let seconds = least(&stream, || bare.launch())?;
    drop(bare);
    let rate = 2.0 * (threads * CHAINS * ROUNDS) as f64 / seconds;
    println!("bare multiply-adds: {:.2} TFLOP/s", rate / 1e12);
    let mut random = Random::new(1);
    let a = stream.upload(&random.values::<f32>(n * n))?;
    let b = stream.upload(&random.values::<f32>(n * n))?;
    let mut c = stream.upload(&vec![0.0f32; n * n])?;
    macro_rules! timed {
        ($name:expr, $call:expr) => {{
            // SAFETY: the extents are multiples of the tiles, and the kernels are correct on the
            // interpreter.
            let mut prepared = unsafe { stream.prepare_unchecked($call)? };
            let seconds = least(&stream, || prepared.launch())?;
            drop(prepared);
            let done = 2.0 * (n as f64).powi(3) / seconds;
            println!("{:16} {:8.3} ms {:8.3} TFLOP/s {:6.2} %", $name, 1e3 * seconds, done / 1e12, 100.0 * done / rate);
        }};
    }
    macro_rules! step {
        ($kernel:ident) => {
            timed!(stringify!($kernel), $kernel::call(a.view([n, n])?, b.view([n, n])?, c.view_mut([n, n])?))
        };
    }
    step!(step1_naive);
    step!(step2_coalesced);
    step!(step3_shared);
    step!(step4_column);
    step!(step5_square);
    step!(step6_vectors);
    step!(step7_double);
    let (left, right) = (a.view([1, n, n])?, b.view([1, n, n])?);
    timed!("gemm", Library::call(1.0, left, right, 0.0, c.view_mut([1, n, n])?, 1, 0, Identity));
    Ok(())
}
