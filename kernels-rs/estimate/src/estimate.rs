//! Estimates of launches.

use crate::control::{Control, Encodings};
use crate::device::{DeviceModel, ExecutionUnit};
use crate::nvdisasm::Nvdisasm;
use crate::path::{self, BasicBlock};
use crate::profile::{BlockCounts, Counter, LineCosts, SECTOR};
use crate::ptxas::{Ptxas, Resources};
use crate::sass::{Class, Line, Listing, SassInstruction};
use crate::simulate::{IssueEffect, LaunchWork, ModelPart, Simulated, SimulatedInstruction, Stall, simulate};
use kernel_dsl::compiler::driver::Compilation;
use kernel_dsl::compiler::hir::{Instance, Monomorphic};
use kernel_dsl::compiler::launch::DeviceFacts;
use kernel_dsl::compiler::{Errors, Target, emit};
use kernel_dsl::{Argument, Artifact};
use runtime::Device;
use runtime::ptx::Options;
use runtime::testing::executor::ValidatedArgs;
use runtime::testing::ptx::DecodedPtx;
use runtime_simt::Lock;
use serde::Serialize;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Warp instructions that the interpreter runs for an estimate, and the largest number of blocks.
const SAMPLED_INSTRUCTIONS: u64 = 8_000_000;
const SAMPLED_BLOCKS: u64 = 12;
/// Warp instructions after which a block counts as endless, for example one that waits for another.
const FUEL: u64 = 1 << 26;
/// Number of blocks, and of warp instructions of each, that are run to find the share of memory
/// that concurrent blocks have in common.
const SHARING_BLOCKS: u64 = 48;
const SHARING_INSTRUCTIONS: u64 = 1500;
/// Sizes of the data of repeated launches, relative to the L2 cache. Up to the first, all data stay
/// in the cache; from the second on, none do. Data of 50 MB, 0.80 of the cache of an H200, were
/// measured to come at the memory's rate.
const L2_HELD: f64 = 0.65;
const L2_GONE: f64 = 0.8;

/// Error that keeps a launch from being estimated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// NVIDIA's tools are missing.
    #[error(
        "an estimate requires machine code, and {missing} is not found on PATH nor in target/tools; the CUDA toolkit \
         up to 12.9 has both ptxas and nvdisasm, and `tests/get-nvdisasm` of kernels-rs fetches them"
    )]
    NoTools {
        /// Name of the tool.
        missing: String,
    },
    /// The instance does not compile.
    #[error("cannot compile {instance}: {source}")]
    Compile {
        /// Name of the instance.
        instance: String,
        /// Reason.
        source: Errors,
    },
    /// ptxas or nvdisasm failed.
    #[error("cannot assemble {instance}: {message}")]
    Tool {
        /// Name of the instance.
        instance: String,
        /// Message of the tool.
        message: String,
    },
    /// The interpreter failed.
    #[error("cannot count the instructions of {instance}: {source}")]
    Run {
        /// Name of the instance.
        instance: String,
        /// Reason.
        source: Box<runtime::Error>,
    },
    /// The launch does not fit the device.
    #[error("{instance} does not fit {device}: {why}")]
    Fit {
        /// Name of the instance.
        instance: String,
        /// Name of the device.
        device: String,
        /// Reason.
        why: String,
    },
}

/// Estimate of a launch.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchEstimate {
    /// Name of the instance.
    pub instance: String,
    /// Number of blocks.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u64,
    /// Time in microseconds, with the cost of a launch.
    pub time_us: f64,
    /// Resource that limits the launch.
    pub limiter: Limiter,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes that a thread stores to local memory and loads from it for lack of registers.
    pub spill_bytes: u32,
    /// Bytes of shared memory of a block, without what a launch adds.
    pub shared_bytes: u32,
    /// Resident blocks of a multiprocessor.
    pub resident_blocks: u64,
    /// Share of the multiprocessor's warps that are resident.
    pub occupancy: f64,
    /// Rounds in which the busiest multiprocessor runs its blocks; a fraction means that the last
    /// round is not full.
    pub waves: f64,
    /// Issue slots of the machine code, in all warps.
    pub slots: f64,
    /// Share of the cycles in which schedulers issue.
    pub issue_share: f64,
    /// Share of the device's peak rate of `f32` multiply-adds.
    pub float_share: f64,
    /// Share of the device's peak memory bandwidth.
    pub dram_share: f64,
    /// Bytes that the multiprocessors request from the L2 cache.
    pub l2_bytes: f64,
    /// Bytes from and to the memory.
    pub dram_bytes: f64,
    /// Accesses that the simulated warps lack or have in excess, as a share of the accesses that
    /// the interpreter counted. The times of launches with a large share are unreliable.
    pub unmatched_accesses: f64,
    /// Share of the waiting time of warps by reason.
    pub stalls: BTreeMap<Stall, f64>,
    /// Waiting time by line of Rust, the longest first.
    pub lines: Vec<LineStalls>,
}

/// Waiting time of a line.
#[derive(Clone, Debug, Serialize)]
pub struct LineStalls {
    /// Line of Rust; `None` for code without one.
    pub line: Option<Line>,
    /// Share of the waiting time of all warps.
    pub share: f64,
    /// Most frequent reason.
    pub reason: Stall,
}

/// Resource that limits a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The cost of a launch.
    Launch,
    /// Too few blocks for the multiprocessors, or too few warps to hide latencies.
    Latency,
    /// The issue rate of the schedulers.
    Issue,
    /// Rate of a unit.
    Unit(ExecutionUnit),
    /// The rate of shared memory and L1 cache.
    SharedMemory,
    /// The rate at which the L2 cache delivers.
    L2,
    /// The bandwidth of the memory.
    Dram,
}

impl Limiter {
    /// Returns the limiter in words.
    pub fn name(self) -> String {
        match self {
            Limiter::Launch => "the cost of a launch".to_string(),
            Limiter::Latency => "latencies".to_string(),
            Limiter::Issue => "the issue rate".to_string(),
            Limiter::Unit(unit) => format!("the {unit:?} units").to_lowercase(),
            Limiter::SharedMemory => "shared memory and L1 cache".to_string(),
            Limiter::L2 => "the L2 cache".to_string(),
            Limiter::Dram => "the memory's bandwidth".to_string(),
        }
    }
}

/// Machine code of an instance.
struct InstanceCode {
    listing: Listing,
    controls: Vec<Control>,
    resources: Resources,
    executable: DecodedPtx,
    /// Line of Rust for each line of the PTX.
    rust: Vec<Option<Line>>,
}

/// Model of a device that estimates launches.
pub struct Estimator {
    model: DeviceModel,
    ptxas: Ptxas,
    nvdisasm: Nvdisasm,
    codes: Lock<HashMap<(String, Instance), Arc<InstanceCode>>>,
    estimates: Lock<Vec<LaunchEstimate>>,
    error: Lock<Option<Error>>,
    /// Whether launches are neither run nor estimated.
    is_preparing: Lock<bool>,
    /// Part of the model that is left out.
    without: Lock<Option<ModelPart>>,
    /// Counted launches, by instance and extents, if they are kept.
    kept_counts: Lock<Option<KeptCounts>>,
}

/// Counted launches, by the name of the instance and by its extents.
type KeptCounts = HashMap<(String, String), CountedLaunch>;

/// A launch before its simulation.
struct CountedLaunch {
    code: Arc<InstanceCode>,
    paths: Vec<BasicBlock>,
    ops: Vec<SimulatedInstruction>,
    work: LaunchWork,
    figures: LaunchFigures,
}

impl Estimator {
    /// Finds NVIDIA's tools, and creates an estimator for a device.
    ///
    /// # Errors
    /// Returns an error if NVIDIA's tools are missing.
    pub fn new(model: DeviceModel) -> Result<Arc<Estimator>, Error> {
        let missing = |tool: &str| Error::NoTools { missing: tool.to_string() };
        let target = target(&model);
        let ptxas = Ptxas::find().filter(|ptxas| ptxas.supports(target)).ok_or_else(|| missing("ptxas"))?;
        let nvdisasm = Nvdisasm::find(&ptxas).ok_or_else(|| missing("nvdisasm"))?;
        let (codes, estimates, error, is_preparing, without, kept_counts) = Default::default();
        Ok(Arc::new(Estimator { model, ptxas, nvdisasm, codes, estimates, error, is_preparing, without, kept_counts }))
    }

    /// Returns the model of the device.
    pub fn model(&self) -> &DeviceModel {
        &self.model
    }

    /// Leaves out a part of the model from now on, or none.
    pub fn leave_out(&self, part: Option<ModelPart>) {
        *self.without.lock() = part;
    }

    /// Keeps the counts of launches from now on, for estimates of equal launches by other models.
    /// Launches of an instance with equal extents and scalars count as equal.
    pub fn keep_counts(&self) {
        self.kept_counts.lock().get_or_insert_default();
    }

    /// Calls `prepare`, whose launches are neither run nor estimated: for example those that
    /// convert operands.
    pub fn without_launches<T>(&self, prepare: impl FnOnce() -> T) -> T {
        *self.is_preparing.lock() = true;
        let prepared = prepare();
        *self.is_preparing.lock() = false;
        prepared
    }

    /// Returns a device that estimates launches instead of running them, until the next call of
    /// [`take`](Estimator::take). New buffers are zeros, and the results of launches are
    /// undefined.
    pub fn device(self: &Arc<Estimator>) -> Device {
        let facts = DeviceFacts { multiprocessors: self.model.device.multiprocessors.value as u32 };
        let estimator = self.clone();
        let handler = move |artifact: &'static Artifact, program: &Monomorphic, validated: &ValidatedArgs| {
            if *estimator.is_preparing.lock() {
                return Ok(());
            }
            let mut error = estimator.error.lock();
            if error.is_none() {
                match estimator.estimate(artifact, program, validated) {
                    Ok(estimate) => {
                        estimator.estimates.lock().push(estimate);
                    }
                    Err(e) => *error = Some(e),
                }
            }
            Ok(())
        };
        Device::cpu_with_handler(facts, Box::new(handler))
    }

    /// Returns the estimates of the launches since the last call, in their order, or the first
    /// error.
    ///
    /// # Errors
    /// Returns an error if a launch could not be estimated.
    pub fn take(&self) -> Result<Vec<LaunchEstimate>, Error> {
        let estimates = std::mem::take(&mut *self.estimates.lock());
        match self.error.lock().take() {
            Some(error) => Err(error),
            None => Ok(estimates),
        }
    }

    /// Estimates a launch.
    ///
    /// # Errors
    /// Returns an error if the instance does not compile, a tool fails, or the interpreter cannot
    /// run the kernel on sampled blocks.
    pub fn estimate(
        &self,
        artifact: &'static Artifact,
        program: &Monomorphic,
        validated: &ValidatedArgs,
    ) -> Result<LaunchEstimate, Error> {
        let mut kept = self.kept_counts.lock();
        let Some(kept) = &mut *kept else {
            return Ok(self.simulated(&self.counted(artifact, program, validated)?));
        };
        let key = (program.instance_name(), format!("{:?} {:?}", validated.shape(), extents(validated)));
        let counted = match kept.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.counted(artifact, program, validated)?),
        };
        Ok(self.simulated(counted))
    }

    /// Counts the instructions and the memory of a launch, and finds the paths of its warps.
    fn counted(
        &self,
        artifact: &'static Artifact,
        program: &Monomorphic,
        validated: &ValidatedArgs,
    ) -> Result<CountedLaunch, Error> {
        let instance = program.instance_name();
        let code = self.code(artifact, program)?;
        let shape = validated.shape();
        let count = |axes: [u32; 3]| axes.into_iter().map(u64::from).product::<u64>();
        let (blocks, threads) = (count(shape.grid), count(shape.block));
        let warps = threads.div_ceil(32);
        let resident = self.resident(&code, validated, warps).map_err(|why| Error::Fit {
            instance: instance.clone(),
            device: self.model.device.name.clone(),
            why,
        })?;
        let architecture = &self.model.architecture;
        let multiprocessors = self.model.device.multiprocessors.value as u64;
        let failed = |source| Error::Run { instance: instance.clone(), source: Box::new(source) };
        let shared = f64::from(code.resources.shared_bytes) * resident as f64;
        let has_own_l1 = architecture.l1_bytes.value < architecture.shared_bytes.value;
        let l1 = if has_own_l1 { architecture.l1_bytes.value } else { architecture.l1_bytes.value - shared };
        let l1_of_block = (l1.max(16384.0) / resident as f64) as u64;
        let run = |sampled: &[u64]| self.counts(&code, validated, sampled, warps, l1_of_block).map_err(failed);
        let (counts, longest) = sampled(blocks, run)?;
        // If each block has a multiprocessor, the longest block determines the time.
        let counts_of_path = if blocks <= multiprocessors { Some(run(&[longest])?) } else { None };
        let executions = executions(counts_of_path.as_ref().unwrap_or(&counts));
        let paths = path::blocks(&code.listing, &executions);
        let unmatched_accesses = path::unmatched_accesses(&code.listing, &paths, &executions);
        let ops = self.ops(&code, &counts, &path::active_shares(&code.listing, &paths, &executions));

        // Memory: what all blocks touch, and what they request.
        let bytes: u64 = validated
            .arguments()
            .iter()
            .map(|argument| match argument {
                Argument::Memory(memory) => memory.bytes(),
                Argument::Scalar { .. } => 0,
            })
            .sum();
        let scale = blocks as f64 / counts.blocks.max(1) as f64;
        let footprint = (counts.sectors_together as f64 * scale * SECTOR as f64).min(bytes as f64);
        let l2_bytes = sectors(&ops, &paths) * (blocks * warps) as f64 * SECTOR as f64;
        let l2_size = self.model.device.l2_mib.value * f64::from(1 << 20);
        let beyond = ((footprint / l2_size - L2_HELD) / (L2_GONE - L2_HELD)).clamp(0.0, 1.0);
        // The memory transfers an updated sector twice: a load, and a store after it.
        let updated = (counts.updated_together as f64 * scale * SECTOR as f64).min(footprint);
        let mut dram_bytes = (footprint + updated) * beyond;
        if beyond > 0.0 && l2_bytes > 1.2 * footprint {
            let concurrent = (resident * multiprocessors).min(blocks);
            let alone = self.unshared_fraction(&code, validated, concurrent, warps).map_err(failed)?;
            let transfers = counts.sectors_of_blocks + counts.updated_of_blocks;
            let of_blocks = transfers as f64 * scale * SECTOR as f64;
            dram_bytes = dram_bytes.max(of_blocks * alone * beyond);
        }
        let from_dram = if l2_bytes > 0.0 { (dram_bytes / l2_bytes).min(1.0) } else { 0.0 };

        // The busiest multiprocessor gets more of the memory's bandwidth while others have fewer
        // blocks.
        let most_blocks = blocks.div_ceil(multiprocessors);
        let busy = blocks as f64 / (most_blocks * multiprocessors).max(1) as f64;
        let work = LaunchWork { blocks: most_blocks, resident, warps, from_dram, busy };
        let figures =
            LaunchFigures { instance, blocks, threads, resident, warps, l2_bytes, dram_bytes, unmatched_accesses };
        Ok(CountedLaunch { code, paths, ops, work, figures })
    }

    /// Simulates a launch, without the part of the model that is left out.
    fn simulated(&self, counted: &CountedLaunch) -> LaunchEstimate {
        let CountedLaunch { code, paths, ops, work, figures } = counted;
        let without = *self.without.lock();
        let (model, ops) = match without {
            Some(part) => part.removed(self.model.clone(), ops.clone()),
            None => (self.model.clone(), ops.clone()),
        };
        let mut simulated = simulate(&ops, paths, work, &model);
        // However short the simulated path is, the launch must transfer the memory that it touches.
        let sectors = figures.dram_bytes / SECTOR as f64 / self.model.device.multiprocessors.value;
        simulated.cycles = simulated.cycles.max(sectors / model.dram_sectors_per_cycle());
        self.summary(figures.clone(), code, paths, &simulated)
    }

    /// Returns the machine code of an instance, assembled once.
    fn code(&self, artifact: &'static Artifact, program: &Monomorphic) -> Result<Arc<InstanceCode>, Error> {
        let key = (format!("{}::{}", artifact.module, artifact.name), program.instance().clone());
        if let Some(code) = self.codes.lock().get(&key) {
            return Ok(code.clone());
        }
        let instance = program.instance_name();
        let compile = |source| Error::Compile { instance: instance.clone(), source };
        let compilation = Compilation::new(program, artifact.target).map_err(compile)?;
        let optimized = compilation.optimized().map_err(compile)?;
        let ptx = compilation.module(emit::LineDirectives::Kept).map_err(compile)?.to_string();
        let failed = |message: String| Error::Tool { instance: instance.clone(), message };
        let (resources, text) = self.nvdisasm.encoded(&self.ptxas, &ptx, target(&self.model)).map_err(failed)?;
        let (plain, encodings) = Encodings::split(&text);
        let listing = Listing::read(&plain).ok_or_else(|| failed("cannot parse the disassembly".to_string()))?;
        let sm = self.model.architecture.sm.value as u16;
        let control = |inst: &SassInstruction| encodings.control(sm, inst.address);
        let controls: Option<Vec<Control>> = listing.instructions.iter().map(control).collect();
        let controls = controls.ok_or_else(|| failed("the disassembly has no encodings".to_string()))?;
        let executable = DecodedPtx::new(instance.clone(), &ptx, optimized.shared_memory())
            .map_err(|source| Error::Run { instance: instance.clone(), source: Box::new(source) })?;
        let code = Arc::new(InstanceCode { listing, controls, resources, executable, rust: rust_lines(&ptx) });
        self.codes.lock().insert(key, code.clone());
        Ok(code)
    }

    /// Returns the number of blocks that a multiprocessor holds at once, or the resource that is
    /// insufficient for one block.
    fn resident(&self, code: &InstanceCode, validated: &ValidatedArgs, warps: u64) -> Result<u64, String> {
        let architecture = &self.model.architecture;
        let whole = |n: u64, unit: u64| n.div_ceil(unit) * unit;
        // Registers are allocated by 256 for a warp, and warps by the number of schedulers.
        let of_warp = whole(u64::from(code.resources.registers) * 32, 256).max(256);
        let schedulers = architecture.schedulers.value as u64;
        let by_registers = architecture.registers.value as u64 / of_warp / schedulers * schedulers / warps;
        let dynamic = u64::from(validated.shared_bytes("", code.executable.shared()).unwrap_or(0));
        let shared = whole(u64::from(code.resources.shared_bytes) + dynamic, 256);
        // From Ampere on the system takes 1 KB for each block.
        let shared = if architecture.sm.value >= 80.0 { shared + 1024 } else { shared };
        let by_shared = (architecture.shared_bytes.value as u64).checked_div(shared).unwrap_or(u64::MAX);
        let by_warps = architecture.warps.value as u64 / warps;
        let by_blocks = architecture.blocks.value as u64;
        let limits =
            [(by_registers, "registers"), (by_shared, "shared memory"), (by_warps, "warps"), (by_blocks, "blocks")];
        match limits.into_iter().min() {
            Some((0, what)) => Err(format!("a block needs more {what} than a multiprocessor has")),
            limit => Ok(limit.map_or(1, |(blocks, _)| blocks)),
        }
    }

    /// Runs the blocks of these numbers on the PTX interpreter.
    fn counts(
        &self,
        code: &InstanceCode,
        validated: &ValidatedArgs,
        blocks: &[u64],
        warps: u64,
        l1: u64,
    ) -> runtime::Result<BlockCounts> {
        let mut counter = Counter::new(warps, l1);
        let options = Options { fuel: FUEL, ..Options::default() };
        code.executable.observe(validated, options, blocks.iter().copied(), &mut counter)?;
        Ok(counter.finish())
    }

    /// Returns the share of the sectors that concurrent blocks do not share with one another, from
    /// the first instructions of each.
    fn unshared_fraction(
        &self,
        code: &InstanceCode,
        validated: &ValidatedArgs,
        concurrent: u64,
        warps: u64,
    ) -> runtime::Result<f64> {
        let mut counter = Counter::new(warps, 0);
        let options = Options { fuel: SHARING_INSTRUCTIONS * warps, ..Options::default() };
        let blocks = concurrent.min(SHARING_BLOCKS);
        for i in 0..blocks {
            // The limit of instructions may end a block early. This error is ignored, because the
            // first instructions suffice here.
            let block = (concurrent - blocks) / 2 + i;
            match code.executable.observe(validated, options, std::iter::once(block), &mut counter) {
                Ok(()) | Err(runtime::Error::Ptx { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        let counts = counter.finish();
        Ok(counts.sectors_together as f64 / counts.sectors_of_blocks.max(1) as f64)
    }

    /// Converts the listing to the instructions of the simulation.
    fn ops(&self, code: &InstanceCode, counts: &BlockCounts, active: &[f64]) -> Vec<SimulatedInstruction> {
        let conflicts = code.listing.bank_conflicts();
        let op = |(at, (inst, control)): (usize, (&SassInstruction, &Control))| {
            let line = inst.line.as_ref().and_then(|line| counts.lines.get(line.number as usize));
            let bank_conflicts = conflicts.as_ref().map_or(0, |conflicts| conflicts[at].cycles);
            SimulatedInstruction {
                control: *control,
                unit: self.unit(inst),
                effect: self.effect(inst, control, line, active[at]),
                bank_conflicts,
            }
        };
        code.listing.instructions.iter().zip(&code.controls).enumerate().map(op).collect()
    }

    /// Returns the unit that executes an instruction.
    fn unit(&self, inst: &SassInstruction) -> ExecutionUnit {
        let unit = match (Class::of(inst), inst.opcode()) {
            (_, "FMNMX" | "IMNMX" | "BFE" | "BFI" | "SHL" | "SHR" | "SHF" | "ISCADD" | "LEA" | "VIMNMX") => {
                ExecutionUnit::Shift
            }
            (_, "FLO" | "POPC" | "BREV" | "UFLO" | "UPOPC") => ExecutionUnit::Special,
            (_, "IDP" | "IDP4A") => ExecutionUnit::Dot,
            (Class::Move, "IMAD") => ExecutionUnit::Multiply,
            (Class::Move, "S2R" | "S2UR") | (Class::Constant, _) => ExecutionUnit::Special,
            (Class::Fma | Class::Float, _) => ExecutionUnit::Float,
            (Class::Integer | Class::Move, _) => ExecutionUnit::Integer,
            (Class::Compare, "FSETP" | "ISETP" | "FSET" | "ISET") => ExecutionUnit::Compare,
            (Class::Compare, _) => ExecutionUnit::Integer,
            (Class::Multiply, _) => ExecutionUnit::Multiply,
            (Class::Special | Class::Convert, _) => ExecutionUnit::Special,
            (Class::Half | Class::Matrix, _) => ExecutionUnit::Half,
            (Class::Double, _) => ExecutionUnit::Double,
            (Class::Control | Class::Barrier | Class::Other, _) => ExecutionUnit::Control,
            _ => ExecutionUnit::Memory,
        };
        // From Volta on, one unit executes integers, shifts and comparisons.
        match unit {
            ExecutionUnit::Shift | ExecutionUnit::Compare if self.model.architecture.sm.value >= 70.0 => {
                ExecutionUnit::Integer
            }
            unit => unit,
        }
    }

    /// Returns the effect of an instruction. `active` has the executions in the interpreter for
    /// each execution on the path.
    fn effect(&self, inst: &SassInstruction, control: &Control, line: Option<&LineCosts>, active: f64) -> IssueEffect {
        let architecture = &self.model.architecture;
        let each = |n: u64| line.map_or(0.0, |line| active * n as f64 / line.executed.max(1) as f64);
        let global = |held: bool| match line.filter(|line| line.sectors > 0) {
            Some(line) => {
                let (sectors, missed) = (each(line.sectors), each(if held { line.missed } else { line.sectors }));
                let wide = each(line.bytes).max(sectors * SECTOR as f64) / 128.0;
                let cycles = each(line.requests).max(wide * architecture.l1_cycles_per_128_bytes.value);
                IssueEffect::Global { cycles, sectors: missed, hits: 1.0 - missed / sectors }
            }
            None if line.is_some() => IssueEffect::Special,
            None => IssueEffect::Global { cycles: 1.0, sectors: 0.0, hits: 1.0 },
        };
        let read_only = inst.name.split('.').any(|word| word == "CI" || word == "CONSTANT");
        match (Class::of(inst), inst.opcode()) {
            (_, "NOP") => IssueEffect::Idle,
            (_, "BAR") if !inst.name.contains("ARV") => IssueEffect::Barrier,
            (Class::SharedLoad | Class::SharedStore, _) | (_, "ATOMS") => {
                IssueEffect::Shared(line.map_or(1.0, |line| each(line.shared_cycles)))
            }
            (Class::Warp, "SHFL" | "MATCH" | "REDUX") => IssueEffect::Shared(1.0),
            (Class::GlobalLoad | Class::Generic | Class::Texture, _) => {
                global(read_only || architecture.l1_holds_all_loads.value > 0.0)
            }
            (Class::GlobalStore | Class::Atomic, _) => global(false),
            (Class::LocalLoad | Class::LocalStore, _) => IssueEffect::Global { cycles: 1.0, sectors: 0.0, hits: 1.0 },
            _ if control.write_barrier.is_some() => IssueEffect::Special,
            _ => IssueEffect::None,
        }
    }

    fn summary(
        &self,
        launch: LaunchFigures,
        code: &InstanceCode,
        paths: &[BasicBlock],
        simulated: &Simulated,
    ) -> LaunchEstimate {
        let LaunchFigures { instance, blocks, threads, resident, warps, l2_bytes, dram_bytes, unmatched_accesses } =
            launch;
        let (device, architecture) = (&self.model.device, &self.model.architecture);
        let (schedulers, multiprocessors) = (architecture.schedulers.value, device.multiprocessors.value);
        let busy_us = simulated.cycles / device.clock_mhz.value;
        let time_us = architecture.launch_us.value + busy_us;
        let cycles = simulated.simulated_cycles;
        let of_schedulers = |n: f64| n / cycles / schedulers;
        let issue_share = of_schedulers(simulated.issue_cycles);
        let units = simulated.unit_cycles.iter().map(|(unit, n)| (of_schedulers(*n), Limiter::Unit(*unit)));
        let [memory, l2, dram] = simulated.memory_cycles.map(|n| n / cycles);
        let shares =
            [(issue_share, Limiter::Issue), (memory, Limiter::SharedMemory), (l2, Limiter::L2), (dram, Limiter::Dram)];
        let most = shares.into_iter().chain(units).max_by(|a, b| a.0.total_cmp(&b.0));
        let limiter = match most {
            _ if busy_us < architecture.launch_us.value => Limiter::Launch,
            Some((share, limiter)) if share >= 0.6 => limiter,
            _ => Limiter::Latency,
        };
        // Executions of the instructions that `counts` selects, by a warp on average.
        let executed = |counts: &dyn Fn(&SassInstruction) -> bool| -> f64 {
            let of_block = |block: &BasicBlock| {
                let selected = block.range.clone().filter(|at| counts(&code.listing.instructions[*at])).count();
                selected as f64 * block.count
            };
            paths.iter().map(of_block).sum()
        };
        // The share of the schedulers' cycles in which a multiply-add issues.
        let fma = executed(&|inst| Class::of(inst) == Class::Fma);
        let float_share =
            fma * (blocks * warps) as f64 / (multiprocessors * schedulers) / (time_us * device.clock_mhz.value);
        let total: f64 = simulated.stalls.iter().flatten().sum::<f64>().max(1.0);
        let mut stalls = BTreeMap::new();
        let mut by_line: HashMap<Option<Line>, [f64; Stall::ALL.len()]> = HashMap::new();
        for (inst, waits) in code.listing.instructions.iter().zip(&simulated.stalls) {
            let line = inst.line.as_ref().and_then(|line| code.rust.get(line.number as usize)).cloned().flatten();
            let sums = by_line.entry(line).or_default();
            for (reason, cycles) in Stall::ALL.into_iter().zip(waits) {
                *stalls.entry(reason).or_default() += cycles / total;
                sums[reason as usize] += cycles / total;
            }
        }
        let mut lines: Vec<LineStalls> = by_line
            .into_iter()
            .filter_map(|(line, sums)| {
                let reason = Stall::ALL.into_iter().max_by(|a, b| sums[*a as usize].total_cmp(&sums[*b as usize]))?;
                Some(LineStalls { line, share: sums.iter().sum(), reason })
            })
            .collect();
        lines.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.line.cmp(&b.line)));
        LaunchEstimate {
            instance,
            blocks,
            threads,
            time_us,
            limiter,
            registers: code.resources.registers,
            spill_bytes: code.resources.spill_stores + code.resources.spill_loads,
            shared_bytes: code.resources.shared_bytes,
            resident_blocks: resident,
            occupancy: (resident * warps) as f64 / architecture.warps.value,
            waves: blocks as f64 / multiprocessors / resident as f64,
            slots: executed(&|inst| !inst.idle() && !inst.paired) * (blocks * warps) as f64,
            issue_share,
            float_share,
            dram_share: dram_bytes / (time_us * device.dram_gb_per_s.value * 1e3),
            l2_bytes,
            dram_bytes,
            unmatched_accesses,
            stalls,
            lines,
        }
    }
}

/// Returns the extents of the memory of a launch, and its scalars.
fn extents(validated: &ValidatedArgs) -> Vec<String> {
    let text = |argument: &Argument| match argument {
        Argument::Memory(memory) => format!("{:?}", memory.shape()),
        scalar @ Argument::Scalar { .. } => format!("{scalar:?}"),
    };
    validated.arguments().iter().map(text).collect()
}

/// Figures of a launch.
#[derive(Clone)]
struct LaunchFigures {
    instance: String,
    blocks: u64,
    threads: u64,
    resident: u64,
    warps: u64,
    l2_bytes: f64,
    dram_bytes: f64,
    unmatched_accesses: f64,
}

/// Returns the target of the device's machine code.
fn target(model: &DeviceModel) -> Target {
    let sm = model.architecture.sm.value as u16;
    Target::ALL.into_iter().find(|target| target.sm() == sm).unwrap_or(Target::SM_61)
}

/// Runs evenly spread blocks of a launch, up to a number of instructions. Returns their counts, and
/// the number of the block with the most instructions.
fn sampled<E>(blocks: u64, run: impl Fn(&[u64]) -> Result<BlockCounts, E>) -> Result<(BlockCounts, u64), E> {
    let first = run(&[blocks / 2])?;
    let cost: u64 = first.lines.iter().map(|line| line.executed).sum();
    let affordable = (SAMPLED_INSTRUCTIONS / cost.max(1)).clamp(1, SAMPLED_BLOCKS).min(blocks);
    if affordable == 1 {
        return Ok((first, blocks / 2));
    }
    let spread: Vec<u64> = (0..affordable).map(|i| (2 * i + 1) * blocks / (2 * affordable)).collect();
    let counts = run(&spread)?;
    let longest = spread.iter().zip(&counts.executed_of_block).max_by_key(|(_, executed)| **executed);
    let longest = longest.map_or(blocks / 2, |(block, _)| *block);
    Ok((counts, longest))
}

/// Returns the executions of each line by a warp, on average.
fn executions(counts: &BlockCounts) -> HashMap<u32, f64> {
    let warps = (counts.blocks * counts.warps).max(1) as f64;
    let lines = counts.lines.iter().enumerate().filter(|(_, costs)| costs.executed > 0);
    lines.map(|(line, costs)| (line as u32, costs.executed as f64 / warps)).collect()
}

/// Returns the sectors that a warp requests from the L2 cache.
fn sectors(ops: &[SimulatedInstruction], blocks: &[BasicBlock]) -> f64 {
    let of_block = |block: &BasicBlock| {
        let sectors = ops[block.range.clone()].iter().map(|op| match op.effect {
            IssueEffect::Global { sectors, .. } => sectors,
            _ => 0.0,
        });
        sectors.sum::<f64>() * block.count
    };
    blocks.iter().map(of_block).sum()
}

/// Returns the line of Rust for each line of PTX text, from its `.file` and `.loc` directives.
fn rust_lines(ptx: &str) -> Vec<Option<Line>> {
    let files: HashMap<&str, &str> = ptx
        .lines()
        .filter_map(|row| row.trim().strip_prefix(".file "))
        .filter_map(|rest| rest.split_once(' '))
        .map(|(number, name)| (number, name.trim().trim_matches('"')))
        .collect();
    let (mut lines, mut current) = (vec![None], None);
    for row in ptx.lines() {
        if let Some(rest) = row.trim().strip_prefix(".loc ") {
            let mut words = rest.split([' ', ',', ';']).filter(|word| !word.is_empty());
            let file = words.next().and_then(|number| files.get(number));
            let number = words.next().and_then(|line| line.parse().ok());
            current = file.zip(number).map(|(file, number)| Line { file: file.to_string(), number });
        }
        lines.push(current.clone());
    }
    lines
}
