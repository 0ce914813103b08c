//! Reports operations that are legal on a target and slow there.
//!
//! A cost is the number of machine instructions that ptxas 12.9 makes from the PTX instruction
//! alone, beyond one addition. A slow path for rare operands, such as subnormals in a division, is
//! included.

use super::memory::{AccessSite, Cost};
use crate::ir::{AccessPlace, AtomicOperator, Binary, Kernel, Location, Op, Region, Type, Unary};
use crate::passes::Optimized;
use crate::scalar::Scalar;
use crate::target::Target;
use std::collections::HashMap;

/// Slow operation and its location.
#[derive(Clone, PartialEq, Debug)]
pub struct Lint {
    /// The slow operation.
    pub slow: Slow,
    /// Location; `None` for the whole kernel.
    pub location: Option<Location>,
    /// Number of instructions at the location.
    pub count: u32,
    /// Whether the operation is in a loop.
    pub looped: bool,
}

/// Operation that is legal and slow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Slow {
    /// Arithmetic in `f64` on a target with few units for it.
    Double,
    /// Integer quotient or remainder by a divisor that is not constant.
    IntegerDivision(Scalar),
    /// Product of 64-bit integers.
    WideMultiply,
    /// Correctly rounded quotient, in a loop.
    FloatDivision(Scalar),
    /// Correctly rounded square root, in a loop.
    SquareRoot(Scalar),
    /// Atomic operation on shared memory without a machine instruction: a compare-and-swap loop.
    SharedAtomic(Scalar),
    /// Bank conflict of shared memory, with the number of words that one bank serves.
    BankConflict(u32),
    /// Read of constant memory, with the maximum number of distinct locations that a warp reads.
    ConstantSerialization(u32),
    /// Access to more sectors of global memory than its bytes would fill.
    #[allow(missing_docs)]
    Scattered { sectors: u32, least: u32 },
    /// Spills to local memory, in bytes per thread.
    #[allow(missing_docs)]
    Spills { stores: u32, loads: u32 },
    /// Block whose threads do not fill its last warp.
    PartialWarp(u32),
}

impl Slow {
    /// Returns the name of the lint in reports.
    pub fn name(self) -> &'static str {
        match self {
            Slow::Double => "f64-arithmetic",
            Slow::IntegerDivision(_) => "integer-division",
            Slow::WideMultiply => "64-bit-multiply",
            Slow::FloatDivision(_) => "float-division",
            Slow::SquareRoot(_) => "square-root",
            Slow::SharedAtomic(_) => "shared-atomic-loop",
            Slow::BankConflict(_) => "bank-conflict",
            Slow::ConstantSerialization(_) => "constant-serialization",
            Slow::Scattered { .. } => "scattered-access",
            Slow::Spills { .. } => "spills",
            Slow::PartialWarp(_) => "partial-warp",
        }
    }

    /// Returns the message with the cost on `target`.
    pub fn message(self, target: Target) -> String {
        match self {
            Slow::Double => {
                format!("{target} does f64 arithmetic at 1/{} of the rate of f32", f64_ratio(target))
            }
            Slow::IntegerDivision(ty) => {
                let n = division(ty, target);
                format!(
                    "{target} has no instruction for integer division: dividing `{ty}` takes about {n} instructions"
                )
            }
            Slow::WideMultiply => {
                let n = if target < Target::SM_70 { 15 } else { 4 };
                format!("a product of 64 bits takes about {n} instructions on {target}")
            }
            Slow::FloatDivision(ty) => {
                format!("a correctly rounded division of `{ty}` takes about 10 instructions, or 100 on its rare path")
            }
            Slow::SquareRoot(ty) => {
                let n = if ty == Scalar::F64 { 55 } else { 30 };
                format!(
                    "a correctly rounded square root of `{ty}` takes about {n} instructions, including its rare path"
                )
            }
            Slow::SharedAtomic(ty) => {
                format!(
                    "{target} has no such atomic operation on `{ty}` in shared memory: the operation loops over compare-and-swap"
                )
            }
            Slow::BankConflict(ways) => {
                format!("the lanes of a warp access {ways} words of one bank of shared memory, one after the other")
            }
            Slow::ConstantSerialization(words) => {
                format!("the lanes of a warp read up to {words} addresses of constant memory, one after the other")
            }
            Slow::Scattered { sectors, least } => {
                format!("a warp accesses {sectors} sectors of 32 bytes, where {least} would suffice")
            }
            Slow::Spills { stores, loads } => {
                format!("registers are spilled: a thread stores {stores} bytes to local memory, and loads {loads}")
            }
            Slow::PartialWarp(threads) => {
                let idle = 32 - threads % 32;
                format!("a block of {threads} threads leaves {idle} lanes of its last warp idle")
            }
        }
    }

    /// Returns the advice.
    pub fn help(self) -> &'static str {
        match self {
            Slow::Double => "compute in `f32` if its 24 bits suffice; is a literal without a suffix meant as `f32`?",
            Slow::IntegerDivision(_) => {
                "divide by a generic constant, preferably a power of two; or use nested loops instead of splitting an index"
            }
            Slow::WideMultiply => "multiply in 32 bits, and widen the product or add to a 64-bit base",
            Slow::FloatDivision(_) => {
                "if one more rounding is acceptable, multiply by a reciprocal that is computed before the loop"
            }
            Slow::SquareRoot(_) => "compute the root after the loop, or compare squares",
            Slow::SharedAtomic(_) => {
                "use `u32` or `i32` (fixed point if necessary), or sum in the warp first, with `warp::sum`, and let one lane add"
            }
            Slow::BankConflict(_) => "make the array `Shared::padded`, or let lanes follow the last index",
            Slow::ConstantSerialization(_) => "remove `#[device(constant)]`, so that the table is in global memory",
            Slow::Scattered { .. } => {
                "let consecutive lanes follow the last index, or stage the data in a tile in shared memory"
            }
            Slow::Spills { .. } => "use smaller tiles, unroll less, or raise `max_registers`",
            Slow::PartialWarp(_) => "make the block a multiple of 32 threads",
        }
    }
}

/// Returns how many times slower `f64` arithmetic is than `f32`, from the table of throughputs in
/// NVIDIA's CUDA C++ Programming Guide.
fn f64_ratio(target: Target) -> u32 {
    match target.sm() {
        61 | 75 => 32,
        86 | 89 => 64,
        _ => 2,
    }
}

/// Returns the number of machine instructions of an integer division.
fn division(ty: Scalar, target: Target) -> u32 {
    match (ty.bits(), target < Target::SM_70) {
        (64, true) => 170,
        (64, false) => 75,
        (_, true) => 30,
        (_, false) => 20,
    }
}

/// Returns whether ptxas compiles an atomic operation on shared memory to a loop, on every target.
fn loops(operation: AtomicOperator, element: Scalar) -> bool {
    match operation {
        AtomicOperator::Load | AtomicOperator::Store => false,
        AtomicOperator::Exchange | AtomicOperator::CompareExchange => element.bits() < 32,
        _ => element.is_float() || element.bits() != 32,
    }
}

/// Returns the slow operations of `kernel` by location. `sites` are its accesses to memory.
pub fn lints(kernel: &Optimized, sites: &[AccessSite]) -> Vec<Lint> {
    let mut search = SlowSearch { kernel, constants: HashMap::new(), found: Vec::new() };
    search.region(&kernel.body, false);
    let mut found = search.found;
    for site in sites {
        let slow = match site.cost {
            Some(Cost::Shared { ways }) if ways > 1 => Slow::BankConflict(ways),
            Some(Cost::Constant { words }) if words > 1 => Slow::ConstantSerialization(words),
            Some(Cost::Global { sectors, least, .. }) if sectors >= 2 * least && sectors > 2 => {
                Slow::Scattered { sectors, least }
            }
            _ => continue,
        };
        found.push(Lint { slow, location: Some(site.location), count: site.count, looped: site.loops > 0 });
    }
    // The lints are sorted in the order of the source.
    let place = |lint: &Lint| {
        let at = kernel.locations[lint.location.map_or(0, |l| l.0) as usize];
        (at.source, at.span)
    };
    found.sort_by_key(place);
    if let Some(threads) = kernel.block.threads().filter(|n| !n.is_multiple_of(32)) {
        let slow = Slow::PartialWarp(threads);
        found.insert(0, Lint { slow, location: None, count: 1, looped: false });
    }
    found
}

struct SlowSearch<'k> {
    kernel: &'k Kernel,
    constants: HashMap<u32, u64>,
    found: Vec<Lint>,
}

impl SlowSearch<'_> {
    fn region(&mut self, region: &Region, looped: bool) {
        for inst in &region.insts {
            if let Op::Constant(bits) = inst.op {
                self.constants.insert(inst.results[0].0, bits);
            }
            if let Some(slow) = self.slow(&inst.op, inst.results.first().map(|r| self.kernel.ty(*r)), looped) {
                self.note(slow, inst.location, looped);
            }
            let inner = looped || matches!(inst.op, Op::For(_) | Op::Loop { .. });
            inst.op.regions().into_iter().for_each(|r| self.region(r, inner));
        }
    }

    fn note(&mut self, slow: Slow, location: Location, looped: bool) {
        match self.found.iter_mut().find(|l| (l.slow, l.location) == (slow, Some(location))) {
            Some(known) => {
                known.count += 1;
                known.looped |= looped;
            }
            None => self.found.push(Lint { slow, location: Some(location), count: 1, looped }),
        }
    }

    fn slow(&self, op: &Op, result: Option<Type>, looped: bool) -> Option<Slow> {
        let constant = |v: &crate::ir::Value| self.constants.contains_key(&v.0);
        if let Op::Atomic { operation, place: AccessPlace::Address { base, .. }, element, .. } = op {
            let shared = self.kernel.ty(*base) == Type::Shared;
            return (shared && loops(*operation, *element)).then_some(Slow::SharedAtomic(*element));
        }
        let ty = result.and_then(Type::scalar);
        let double = f64_ratio(self.kernel.target) > 2;
        match (op, ty?) {
            (Op::Binary(..) | Op::MulAdd(..), Scalar::F64) if double => Some(Slow::Double),
            (Op::Unary(Unary::Sqrt, _), Scalar::F64) if double => Some(Slow::Double),
            (Op::Unary(Unary::Sqrt, _), ty) if looped => Some(Slow::SquareRoot(ty)),
            (Op::Binary(Binary::Div, ..), ty) if ty.is_float() => looped.then_some(Slow::FloatDivision(ty)),
            (Op::Binary(Binary::Div | Binary::Rem, _, by), ty) => (!constant(by)).then_some(Slow::IntegerDivision(ty)),
            (Op::Binary(Binary::Mul | Binary::WrappingMul, ..), Scalar::I64 | Scalar::U64) => Some(Slow::WideMultiply),
            _ => None,
        }
    }
}
