//! The data of a report, computed from the forms of an instance.

use crate::forms::CompiledForms;
use crate::lines::SourceFunctions;
use crate::machine::{CodeCost, Issue};
use crate::source_place::SourcePlace;
use crate::unrolling::UnrolledLoop;
use kernel_dsl::compiler::analyses::approximate::Decision;
use kernel_dsl::compiler::analyses::bounds::{self, KernelAccesses, Proof};
use kernel_dsl::compiler::analyses::memory::{self, AccessKind, AccessSite, Cost};
use kernel_dsl::compiler::analyses::mix;
use kernel_dsl::compiler::analyses::occupancy::{Needs, Occupancy};
use kernel_dsl::compiler::analyses::slow::{self, Lint, Slow};
use kernel_dsl::compiler::analyses::uniformity::{self, UniformScope};
use kernel_dsl::compiler::ir::{DynamicArray, Kernel, Local, Location, Op, Region, Role};
use kernel_dsl::compiler::ptx::cost::InstructionClass;
use kernels_rs_estimate::ptxas::Resources;
use kernels_rs_estimate::sass::{self, Class, Line};
use runtime::interpreter::profile::{self, BranchCounts, MemoryProfile, ProfiledAccess, RequestCounts, TouchedBytes};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Report of an instance.
#[derive(Serialize)]
pub(crate) struct ReportJson {
    pub(crate) instance: String,
    pub(crate) target: String,
    /// Threads of a block in x, y, z; the largest block, if the launch chooses the size.
    pub(crate) block: [u32; 3],
    pub(crate) threads: u32,
    /// Possible block sizes, in words.
    pub(crate) blocks: String,
    pub(crate) shared_bytes: u32,
    /// Types and sizes of the arrays in shared memory.
    pub(crate) shared: Vec<String>,
    /// Bytes of the arrays in local memory, of a thread.
    pub(crate) local_bytes: u32,
    /// Names, types and sizes of the arrays in local memory.
    pub(crate) local: Vec<String>,
    /// Resources of the machine code; `null` if there is no ptxas that supports the target.
    pub(crate) machine_code: Option<MachineCodeReport>,
    /// Occupancy with the largest block. Unknown registers are treated as no limit.
    pub(crate) occupancy: Shares,
    /// Occupancy with each examined block size, the largest first.
    pub(crate) by_block: Vec<Shares>,
    /// Instructions of the PTX by kind; an instruction in a loop counts once.
    pub(crate) instructions: BTreeMap<InstructionClass, u32>,
    /// The case in which accesses were measured; `null` if the kernel has no registered test cases.
    pub(crate) case: Option<String>,
    pub(crate) accesses: Vec<AccessReport>,
    /// Results of the bounds analysis of the indices.
    #[serde(skip)]
    pub(crate) reach: KernelAccesses,
    pub(crate) branches: Vec<MachineBranch>,
    /// Lines of Rust, with the number of lanes active in their instructions in the case.
    pub(crate) lines: Vec<profile::ProfiledLine>,
    pub(crate) lints: Vec<Slowness>,
    /// Effect of unrolling each loop; `null` unless requested.
    pub(crate) unrolling: Option<Vec<UnrolledLoop>>,
    /// Results that depend on the hardware's approximations.
    pub(crate) decisions: Vec<ApproximateDecision>,
}

#[derive(Serialize)]
pub(crate) struct MachineCodeReport {
    pub(crate) ptxas: String,
    #[serde(flatten)]
    pub(crate) resources: Resources,
    /// Machine code; `null` if there is no nvdisasm.
    pub(crate) sass: Option<Sass>,
}

/// Instructions made by ptxas, and their cost.
#[derive(Serialize)]
pub(crate) struct Sass {
    #[serde(flatten)]
    pub(crate) issue: Issue,
    pub(crate) mix: BTreeMap<Class, u32>,
    /// Loops by their start, outer loops before inner ones.
    pub(crate) loops: Vec<MachineLoop>,
}

/// Loop of the machine code: the cost of an iteration that executes every path, inner loops once.
#[derive(Serialize)]
pub(crate) struct MachineLoop {
    /// Place in the source; `null` if unknown.
    pub(crate) line: Option<Line>,
    pub(crate) text: String,
    /// Number of enclosing loops.
    pub(crate) depth: u32,
    /// Index of the innermost enclosing loop.
    pub(crate) inside: Option<usize>,
    #[serde(flatten)]
    pub(crate) issue: Issue,
    pub(crate) mix: BTreeMap<Class, u32>,
}

#[derive(Clone, Serialize)]
pub(crate) struct Shares {
    pub(crate) block: [u32; 3],
    #[serde(flatten)]
    pub(crate) occupancy: Occupancy,
    pub(crate) percent: u32,
}

/// Access to memory.
#[derive(Serialize)]
pub(crate) struct AccessReport {
    #[serde(skip)]
    pub(crate) location: Location,
    #[serde(flatten)]
    pub(crate) place: SourcePlace,
    pub(crate) kind: AccessKind,
    /// Name of the array or parameter; `null` if it depends on control flow.
    pub(crate) array: Option<String>,
    pub(crate) bytes: u32,
    /// Bytes of an element of the array; `null` if unknown.
    pub(crate) element_bytes: Option<u32>,
    /// Number of instructions that the place was compiled to.
    pub(crate) count: u32,
    /// Number of enclosing loops.
    pub(crate) loops: u32,
    /// The widest scope whose threads are proven to access one place.
    pub(crate) address: UniformScope,
    /// Cost of a warp's access; `null` if the addresses are not understood.
    pub(crate) cost: Option<Cost>,
    /// Proof that the whole access lies within the array; `null` without a proof.
    pub(crate) within: Option<ProofFacts>,
    /// Range of bytes that the access touches in the case, computed from the extents alone; `null`
    /// if the extents do not determine it.
    pub(crate) computed: Option<Range<u64>>,
    /// Measurements of the case; `null` if the access was not executed or nothing was measured.
    pub(crate) measured: Option<MeasuredRequests>,
}

/// Facts that the proof of an access uses, beyond the shapes of block and array.
#[derive(Serialize)]
pub(crate) struct ProofFacts {
    /// Lines of branches, loops and guards.
    pub(super) lines: Vec<u32>,
    /// Whether the proof uses `#[requires]`.
    pub(super) requires: bool,
    /// Whether the proof uses that a block's index is below the number of blocks.
    pub(super) grid: bool,
}

/// Measured memory requests of an access.
#[derive(Serialize)]
pub(crate) struct MeasuredRequests {
    #[serde(flatten)]
    pub(crate) counts: RequestCounts,
    /// Mean cost of a request.
    pub(crate) mean: f64,
    /// Fraction of a warp's lanes that were active.
    pub(crate) active: f64,
    /// For global memory, the fraction of the transferred bytes that was requested.
    pub(crate) efficiency: Option<f64>,
    pub(crate) touched: Option<TouchedBytes>,
}

/// Branch or loop.
#[derive(Serialize)]
pub(crate) struct MachineBranch {
    #[serde(skip)]
    pub(crate) location: Location,
    #[serde(flatten)]
    pub(crate) place: SourcePlace,
    pub(crate) looped: bool,
    /// Number of constructs that the place was compiled to.
    pub(crate) count: u32,
    /// Widest scope whose threads are proven to take the same path.
    pub(crate) scope: UniformScope,
    /// Divergence of warps in the case; `null` if the branch was not executed or nothing was
    /// measured.
    pub(crate) measured: Option<BranchCounts>,
}

/// Code that is legal on the target and slow there.
#[derive(Clone, PartialEq, Serialize)]
pub(crate) struct Slowness {
    pub(crate) lint: &'static str,
    /// Place of the slow code; `null` for the whole kernel.
    pub(crate) place: Option<SourcePlace>,
    pub(crate) count: u32,
    pub(crate) in_loop: bool,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

/// Result that depends on an approximation.
#[derive(Clone, PartialEq, Serialize)]
pub(crate) struct ApproximateDecision {
    pub(super) decides: &'static str,
    pub(super) place: SourcePlace,
    pub(super) message: String,
    pub(super) notes: Vec<String>,
    pub(super) help: Option<String>,
}

impl ReportJson {
    /// Computes the report of a compiled instance.
    pub(crate) fn of(forms: &CompiledForms<'_>) -> ReportJson {
        let CompiledForms { name, target, compilation, optimized, module, with_places, machine } = forms;
        let (target, optimized) = (*target, *optimized);
        let (lowered, approximations) = (compilation.lowered(), compilation.approximations());
        let decisions =
            approximations.decisions.iter().map(|decision| ApproximateDecision::new(lowered, *decision)).collect();
        let sites = memory::accesses(with_places);
        let reach = KernelAccesses::of(compilation.program(), with_places);
        let branches = uniformity::branches(with_places);
        let branches = branches.into_iter().map(|branch| MachineBranch::new(with_places, branch)).collect();
        let local = local_arrays(optimized);
        let machine_code = machine.as_ref().map(|(ptxas, machine)| MachineCodeReport {
            ptxas: ptxas.clone(),
            resources: machine.resources,
            sass: machine.code.as_ref().map(|code| Sass::new(code, &SourceFunctions::of(&optimized.sources))),
        });
        let (threads, shared_bytes) = (optimized.block.most_threads(), optimized.shared_bytes());
        let registers = machine_code.as_ref().map(|m| m.resources.registers);
        let shares = |block: [u32; 3]| {
            let needs = Needs { threads: block.iter().product(), registers, shared: shared_bytes };
            let occupancy = Occupancy::of(target, needs);
            Shares { block, percent: occupancy.percent(), occupancy }
        };
        let by_block: Vec<_> = optimized.block.samples().into_iter().rev().map(shares).collect();
        let mut lints = slow::lints(optimized, &sites);
        if let Some(MachineCodeReport { resources: r, .. }) = &machine_code
            && r.spill_loads + r.spill_stores > 0
        {
            let slow = Slow::Spills { stores: r.spill_stores, loads: r.spill_loads };
            lints.insert(0, Lint { slow, location: None, count: 1, looped: false });
        }
        ReportJson {
            instance: name.clone(),
            target: target.to_string(),
            block: optimized.block.max_extents(),
            threads,
            blocks: optimized.block.to_string(),
            shared_bytes,
            shared: arrays(optimized),
            local_bytes: local.iter().map(|array| array.bytes()).sum(),
            local: local.into_iter().map(Local::to_string).collect(),
            machine_code,
            occupancy: shares(optimized.block.max_extents()),
            by_block,
            instructions: mix::mix(module).into_iter().collect(),
            case: None,
            accesses: sites.into_iter().map(|site| AccessReport::new(with_places, site, &reach)).collect(),
            reach,
            branches,
            lines: Vec::new(),
            lints: merged(lints.into_iter().map(|lint| Slowness::new(optimized, lint))),
            unrolling: None,
            decisions,
        }
    }

    /// Adds the measurements of a case.
    pub(crate) fn measure(&mut self, case: String, profile: &MemoryProfile) {
        self.case = Some(case);
        self.accesses.iter_mut().for_each(|access| access.measure(profile, &self.reach));
        self.branches.iter_mut().for_each(|branch| branch.measure(profile));
        self.lines = profile.lines.clone();
    }
}

/// Describes the arrays in shared memory.
fn arrays(kernel: &Kernel) -> Vec<String> {
    let fixed = kernel.shared.iter().map(|array| array.to_string());
    let dynamic = kernel.dynamic.iter();
    let dynamic = dynamic
        .map(|DynamicArray { name, element, .. }| format!("{name}: {element}, sized at launch, not included here"));
    fixed.chain(dynamic).collect()
}

/// Returns the arrays in local memory that the kernel accesses.
fn local_arrays(kernel: &Kernel) -> Vec<&Local> {
    fn walk(region: &Region, used: &mut BTreeSet<u32>) {
        for inst in &region.insts {
            if let Op::ReadLocal { local, .. } | Op::WriteLocal { local, .. } = &inst.op {
                used.insert(local.0);
            }
            inst.op.regions().into_iter().for_each(|region| walk(region, used));
        }
    }
    let mut used = BTreeSet::new();
    walk(&kernel.body, &mut used);
    used.into_iter().map(|i| &kernel.locals[i as usize]).filter(|array| array.memory).collect()
}

/// Merges equal lints of one place into one, with the number of occurrences.
fn merged(lints: impl Iterator<Item = Slowness>) -> Vec<Slowness> {
    let mut all: Vec<Slowness> = Vec::new();
    for lint in lints {
        match all.iter_mut().find(|other| other.is_like(&lint)) {
            Some(other) => {
                other.count += lint.count;
                other.in_loop |= lint.in_loop;
            }
            None => all.push(lint),
        }
    }
    all
}

impl Sass {
    fn new(code: &CodeCost, lines: &SourceFunctions) -> Sass {
        let looped = |(i, l): (usize, &sass::NaturalLoop)| {
            // The backward jump belongs to the loop; its first instruction may have the line of any
            // statement in it.
            let line = code.listing.instructions[l.jump].line.clone();
            let text = line.as_ref().map_or("", |line| lines.code(line)).to_string();
            let (depth, inside) = (l.depth, code.enclosing_loop(i));
            MachineLoop { line, text, depth, inside, issue: Issue::from(l), mix: l.classes.clone() }
        };
        Sass {
            issue: Issue::from(code),
            mix: code.listing.classes(0..code.listing.instructions.len()),
            loops: code.loops.iter().enumerate().map(looped).collect(),
        }
    }
}

impl ApproximateDecision {
    fn new(kernel: &Kernel, decision: Decision) -> ApproximateDecision {
        let error = decision.error(kernel);
        let place = SourcePlace::new(kernel, decision.location);
        ApproximateDecision {
            decides: decision.decided.name(),
            place,
            message: error.message,
            notes: error.notes,
            help: error.help,
        }
    }
}

impl AccessReport {
    fn new(kernel: &Kernel, site: AccessSite, reach: &KernelAccesses) -> AccessReport {
        let AccessSite { location, kind, array, bytes, count, loops, cost, address } = site;
        let place = SourcePlace::new(kernel, location);
        let named = |name: &str| array.as_deref() == Some(name);
        let element_bytes = kernel.shared.iter().find(|s| named(&s.name)).map(|s| s.element.bytes());
        let dynamic = || kernel.dynamic.iter().find(|s| named(&s.name)).map(|s| s.element.bytes());
        let parameter = || {
            kernel.parameters.iter().find(|p| named(&p.name)).and_then(|p| match p.role {
                Role::Address { element, .. } => Some(element.bytes()),
                _ => None,
            })
        };
        // Local memory is accessed an element at a time.
        let local = || matches!(cost, Some(Cost::Local { .. })).then_some(bytes);
        let element_bytes = element_bytes.or_else(dynamic).or_else(parameter).or_else(local);
        let mut access = AccessReport {
            location,
            place,
            kind,
            array,
            bytes,
            element_bytes,
            count,
            loops,
            address,
            cost,
            within: None,
            computed: None,
            measured: None,
        };
        let proof = access.of(reach).and_then(|site| site.proof.as_ref());
        access.within = proof.map(|proof| ProofFacts::new(kernel, proof));
        access
    }

    /// Returns the results of the bounds analysis for the access.
    fn of<'r>(&self, reach: &'r KernelAccesses) -> Option<&'r bounds::BoundsSite> {
        reach.sites.iter().find(|site| {
            (site.location, site.kind, site.bytes) == (self.location, self.kind, self.bytes) && site.array == self.array
        })
    }

    /// Records the measurements of the access.
    fn measure(&mut self, profile: &MemoryProfile, reach: &KernelAccesses) {
        let kind = match self.kind {
            AccessKind::Load => profile::RequestKind::Load,
            AccessKind::Store => profile::RequestKind::Store,
            AccessKind::Atomic => profile::RequestKind::Atomic,
        };
        // If control flow decides which array is accessed, the analysis names no array.
        let of_it = |a: &&ProfiledAccess| {
            (a.location, a.kind, a.bytes) == (self.location, kind, self.bytes)
                && (self.array.is_none() || a.array == self.array)
        };
        let counts = profile.accesses.iter().filter(of_it).map(|a| a.counts).reduce(RequestCounts::plus);
        let touched = profile.accesses.iter().filter(of_it).map(|a| a.touched);
        let touched = touched.reduce(|a, b| Some(a?.union(b?))).flatten();
        self.measured = counts.map(|counts| MeasuredRequests {
            mean: counts.mean(),
            active: counts.active(),
            efficiency: counts.efficiency(),
            counts,
            touched: touched.filter(|_| self.array.is_some()),
        });
        self.computed = self.of(reach).and_then(|site| reach.bytes(site, &profile.launched));
    }
}

impl ProofFacts {
    fn new(kernel: &Kernel, proof: &Proof) -> ProofFacts {
        let mut lines: Vec<u32> = proof.conditions.iter().map(|at| SourcePlace::new(kernel, *at).line).collect();
        lines.sort_unstable();
        lines.dedup();
        ProofFacts { lines, requires: proof.requires, grid: proof.grid }
    }
}

impl MachineBranch {
    fn new(kernel: &Kernel, branch: uniformity::Branch) -> MachineBranch {
        let uniformity::Branch { location, looped, count, scope } = branch;
        MachineBranch { location, place: SourcePlace::new(kernel, location), looped, count, scope, measured: None }
    }

    /// Records the measurements of the branch.
    fn measure(&mut self, profile: &MemoryProfile) {
        let of_it = profile.branches.iter().filter(|b| (b.location, b.looped) == (self.location, self.looped));
        self.measured = of_it.map(|b| b.ways).reduce(BranchCounts::plus);
    }
}

impl Slowness {
    fn new(kernel: &Kernel, lint: Lint) -> Slowness {
        Slowness {
            lint: lint.slow.name(),
            place: lint.location.map(|location| SourcePlace::new(kernel, location)),
            count: lint.count,
            in_loop: lint.looped,
            message: lint.slow.message(kernel.target),
            help: lint.slow.help(),
        }
    }

    /// Returns whether both lints have the same message and place.
    pub(super) fn is_like(&self, other: &Slowness) -> bool {
        (self.lint, &self.place, &self.message) == (other.lint, &other.place, &other.message)
    }
}
