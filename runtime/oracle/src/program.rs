//! A decoded kernel.

use crate::code::{Code, Inst, Pc};
use crate::decode;
use crate::refused::{Mismatch, Unsupported};
use crate::report::{CodeLocation, Sites};
use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ir::{
    BlockExtents, Kernel, Location, Parameter, SharedArray, SharedMemoryNeed, SourceLocation, Table,
};
use kernel_dsl_compiler::oracle::{Allowance, Check, OracleDeclarations, Severity};
use kernel_dsl_compiler::source::KernelSource;

/// The source file of the functions of `math::`.
pub(crate) const MATH: &str = "kernel-dsl/src/math/";

/// A kernel, ready to run.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) instance: String,
    pub(crate) target: Target,
    pub(crate) block: BlockExtents,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) shared: Vec<SharedArray>,
    pub(crate) memory: SharedMemoryNeed,
    /// The tables with their bytes.
    pub(crate) tables: Vec<(Table, Vec<u8>)>,
    pub(crate) sources: Vec<KernelSource>,
    pub(crate) locations: Vec<SourceLocation>,
    pub(crate) declared: OracleDeclarations,
    pub(crate) code: Code,
    /// Whether the code was decoded as lowered. Only the origins of values in such code can be
    /// tracked.
    pub(crate) lowered: bool,
    /// Whether the code also stores floats to buffers, so that NaNs and infinities may have
    /// origins.
    pub(crate) traced: bool,
}

impl Program {
    /// Decodes `kernel`, as lowered or after passes.
    ///
    /// # Errors
    /// If the kernel has an operation that the oracle does not run.
    pub fn decode(kernel: &Kernel) -> Result<Program, Unsupported> {
        Program::new(kernel, decode::OverflowRule::Checked)
    }

    /// Decodes `kernel` after passes, without checks of its arithmetic: passes may execute an
    /// operation speculatively where the program would not, and discard its result.
    ///
    /// # Errors
    /// Returns the errors of [`decode`](Program::decode).
    pub fn decode_optimized(kernel: &Kernel) -> Result<Program, Unsupported> {
        Program::new(kernel, decode::OverflowRule::Speculative)
    }

    fn new(kernel: &Kernel, arithmetic: decode::OverflowRule) -> Result<Program, Unsupported> {
        let code = decode::decode(kernel, arithmetic)?;
        Ok(Program {
            instance: kernel.instance.clone(),
            target: kernel.target,
            block: kernel.block,
            parameters: kernel.parameters.clone(),
            shared: kernel.shared.clone(),
            memory: kernel.shared_memory(),
            tables: kernel.tables.iter().map(|t| (t.clone(), t.contents())).collect(),
            sources: kernel.sources.clone(),
            locations: kernel.locations.clone(),
            declared: kernel.declared.clone(),
            lowered: arithmetic == decode::OverflowRule::Checked,
            traced: arithmetic == decode::OverflowRule::Checked && stores_floats(&code),
            code,
        })
    }

    /// Returns whether the kernel has atomic operations. Without them, the result of a kernel
    /// without races does not depend on the order of execution.
    pub fn has_atomics(&self) -> bool {
        !self.code.atomics.is_empty()
    }

    /// Returns whether all blocks of a launch are resident at once.
    pub fn is_cooperative(&self) -> bool {
        self.declared.cooperative || self.has_grid_barriers()
    }

    /// Returns whether the kernel has barriers of the grid.
    pub(crate) fn has_grid_barriers(&self) -> bool {
        self.code.insts.iter().any(|inst| matches!(inst, Inst::GridSync))
    }

    /// Returns whether an instruction belongs to a function of `math::`.
    pub(crate) fn is_math(&self, site: Pc) -> bool {
        let location = self.code.locations.get(site as usize).and_then(|l| self.locations.get(l.0 as usize));
        let source = location.and_then(|l| self.sources.get(l.source as usize));
        source.is_some_and(|s| s.file.starts_with(MATH))
    }

    /// Returns the block size in x, y, z of a launch that specifies `given`.
    pub(crate) fn block_of(&self, given: Option<[u32; 3]>) -> Result<[u32; 3], Mismatch> {
        match (given, self.block.extents()) {
            (Some(given), _) if self.block.has(given) => Ok(given),
            (None, Some(extents)) => Ok(extents),
            (given, _) => {
                let given = given.map_or("none".to_string(), |[x, y, z]| format!("{x} x {y} x {z}"));
                Err(Mismatch(vec![format!("`{}` has blocks of {}; given {given}", self.instance, self.block)]))
            }
        }
    }

    /// Returns the index in x, y, z of a thread of the block. The index does not depend on the
    /// block size.
    pub(crate) fn thread(&self, linear: u32) -> [u32; 3] {
        let [x, y, _] = self.block.max_extents();
        [linear % x, linear / x % y, linear / x / y]
    }
}

impl Sites for Program {
    fn kernel(&self) -> &str {
        &self.instance
    }

    fn severity(&self, check: Check) -> Severity {
        check.severity(self.target)
    }

    fn sources(&self) -> &[KernelSource] {
        &self.sources
    }

    fn place(&self, site: Pc) -> CodeLocation {
        let location = self.code.locations.get(site as usize).copied();
        place(&self.instance, &self.sources, &self.locations, location)
    }

    /// Returns the allowance of a statement that contains the instruction at `site` or a call that
    /// inlined it.
    fn allowance(&self, check: Check, site: Pc) -> Option<(usize, &str)> {
        let Program { declared, locations, code, .. } = self;
        let i = chain(locations, code.locations.get(site as usize).copied()).find_map(|location| {
            let covers = |(source, allowance): &(u32, Allowance)| {
                *source == location.source && allowance.covers(location.span) && allowance.checks.contains(&check)
            };
            declared.allowances.iter().position(covers)
        })?;
        Some((i, &declared.allowances[i].1.reason))
    }
}

/// Returns a location, followed by the calls that inlined it, innermost first.
pub fn chain(locations: &[SourceLocation], first: Option<Location>) -> impl Iterator<Item = &SourceLocation> {
    let at = |location: Option<Location>| location.and_then(|l| locations.get(l.0 as usize));
    // The chain has at most as many elements as there are locations; a longer one would be a cycle.
    std::iter::successors(at(first), move |location| at(location.caller)).take(locations.len())
}

/// Returns a place in the user's Rust, with the calls that inlined it.
pub fn place(
    instance: &str,
    sources: &[KernelSource],
    locations: &[SourceLocation],
    first: Option<Location>,
) -> CodeLocation {
    let mut places = chain(locations, first).map(|location| {
        let source = sources.get(location.source as usize);
        let (line, span) = (source.map_or(1, |s| s.line), location.span);
        CodeLocation {
            source: location.source as usize,
            function: source.map_or_else(|| instance.to_string(), |s| s.name.clone()),
            file: source.map(|s| s.file.clone()).unwrap_or_default(),
            line: line + u32::from(span.line),
            column: u32::from(span.column),
            end_line: line + u32::from(span.end_line),
            end_column: u32::from(span.end_column),
            callers: Vec::new(),
        }
    });
    let unknown = || CodeLocation {
        source: usize::MAX,
        function: instance.to_string(),
        file: String::new(),
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 1,
        callers: Vec::new(),
    };
    let mut place = places.next().unwrap_or_else(unknown);
    place.callers = places.collect();
    place
}

/// Returns whether the code stores floats to buffers.
fn stores_floats(code: &Code) -> bool {
    code.insts.iter().any(|inst| {
        let access = match inst {
            Inst::Store(i) => &code.accesses[*i as usize],
            Inst::Atomic(i) => &code.atomics[*i as usize].access,
            _ => return false,
        };
        !access.place.is_shared() && (access.element.is_float() || access.element.is_half())
    })
}
