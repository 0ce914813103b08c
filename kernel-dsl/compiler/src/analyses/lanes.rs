//! An analysis of how values differ across the lanes of a warp.
//!
//! The cost of an access depends on how its index differs between lanes. So a value is tracked as
//! 32 numbers, exactly or relative to a number that all lanes share. `grid::index()` is 0 to 31
//! across the lanes, plus a multiple of the block size, in every block. A warp runs in lockstep:
//! all lanes in a loop are in the same iteration, so values that advance equally in all lanes stay
//! relative to one number.

use crate::ir::*;
use crate::ptx::inline::Effect;
use crate::scalar::Scalar;

/// Number of lanes of a warp.
pub const LANES: usize = 32;

/// Assumed alignment of an argument's address. The driver aligns its allocations this way, though a
/// view may begin anywhere in an allocation.
const ALIGNED: u64 = 256;

/// One number per lane.
pub type Numbers = [i64; LANES];

/// Knowledge about a value across the lanes of a warp.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LaneValues {
    /// The number of each lane.
    Exact(Numbers),
    /// An unknown multiple of `multiple`, the same in all lanes, plus the number of each lane.
    #[allow(missing_docs)]
    Relative { lanes: Numbers, multiple: u64 },
    /// No information.
    Unknown,
}

impl LaneValues {
    /// One unknown number, the same in all lanes.
    pub const UNIFORM: LaneValues = LaneValues::Relative { lanes: [0; LANES], multiple: 1 };

    /// Returns the offsets of the lanes from a common number.
    pub fn relative(self) -> Option<Numbers> {
        match self {
            LaneValues::Exact(lanes) | LaneValues::Relative { lanes, .. } => Some(lanes),
            LaneValues::Unknown => None,
        }
    }

    /// Returns whether all lanes have the same number.
    pub fn is_uniform(self) -> bool {
        self.relative().is_some_and(|lanes| same(&lanes))
    }

    /// Returns the number that all lanes have, if known.
    pub fn constant(self) -> Option<i64> {
        match self {
            LaneValues::Exact(lanes) if same(&lanes) => Some(lanes[0]),
            _ => None,
        }
    }

    /// Returns the largest known divisor of the common part; 0 for exact values, whose common part
    /// is 0.
    pub fn multiple(self) -> u64 {
        match self {
            LaneValues::Exact(_) => 0,
            LaneValues::Relative { multiple, .. } => multiple,
            LaneValues::Unknown => 1,
        }
    }

    /// Returns the same offsets without the known divisor of the common part.
    fn without_divisor(self) -> LaneValues {
        match self.relative() {
            Some(lanes) => LaneValues::Relative { lanes, multiple: 1 },
            None => LaneValues::Unknown,
        }
    }
}

fn same(lanes: &Numbers) -> bool {
    lanes.iter().all(|x| *x == lanes[0])
}

/// Knowledge about each value of a kernel, in one warp of each block.
#[derive(Debug)]
pub struct Lanes {
    values: Vec<LaneValues>,
    /// Index of the warp in its block.
    warp: u32,
}

impl Lanes {
    /// Analyzes warp `warp` of a block. Lanes beyond the end of the block count as present.
    pub fn of(kernel: &Kernel, warp: u32) -> Lanes {
        let mut lanes = Lanes { values: vec![LaneValues::Unknown; kernel.values.len()], warp };
        lanes.region(kernel, &kernel.body);
        lanes
    }

    /// Returns what is known about `value`.
    pub fn get(&self, value: Value) -> LaneValues {
        self.values[value.0 as usize]
    }

    /// Returns the byte offset from the start of an element to the accessed part of it.
    pub fn offset_within_element(&self, within: Option<&ElementOffset>) -> LaneValues {
        let Some(within) = within else { return LaneValues::Exact([0; LANES]) };
        let steps = within.indices.iter().map(|step| (step.index, step.bytes));
        self.sum(LaneValues::Exact([within.offset.into(); LANES]), steps)
    }

    /// Computes `first` + Σ index · scale.
    pub fn sum(&self, first: LaneValues, terms: impl IntoIterator<Item = (Value, u32)>) -> LaneValues {
        terms.into_iter().fold(first, |sum, (index, scale)| {
            let term = binary(Binary::Mul, Scalar::U64, self.get(index), LaneValues::Exact([scale.into(); LANES]));
            add(sum, term)
        })
    }

    fn set(&mut self, value: Value, across: LaneValues) {
        self.values[value.0 as usize] = across;
    }

    fn region(&mut self, kernel: &Kernel, region: &Region) {
        for inst in &region.insts {
            // An earlier walk of a loop body may have set a result under an assumption that failed.
            inst.results.iter().for_each(|r| self.set(*r, LaneValues::Unknown));
            match &inst.op {
                Op::For(l) => {
                    let known = self.get(l.start);
                    let index =
                        if self.get(l.step).is_uniform() { known.without_divisor() } else { LaneValues::Unknown };
                    let index = match (index, self.get(l.step).constant()) {
                        // Start and step determine the divisor of the common part.
                        (LaneValues::Relative { lanes, .. }, Some(step)) => {
                            LaneValues::Relative { lanes, multiple: gcd(known.multiple(), step.unsigned_abs()).max(1) }
                        }
                        (index, _) => index,
                    };
                    if let Some((first, carried)) = l.body.parameters.split_first() {
                        self.set(*first, index);
                        self.looping(kernel, &l.body, l.label, &l.inits, carried);
                    }
                    let together = [l.start, l.end, l.step].iter().all(|v| self.get(*v).is_uniform());
                    if together && !leaves(&l.body, l.label) {
                        for (result, carried) in inst.results.iter().zip(l.body.parameters.iter().skip(1)) {
                            self.set(*result, self.get(*carried));
                        }
                    }
                }
                Op::Loop { label, inits, body } => self.looping(kernel, body, *label, inits, &body.parameters),
                Op::If { condition, then, otherwise } => {
                    self.region(kernel, then);
                    self.region(kernel, otherwise);
                    let ends = [then, otherwise].map(|r| r.yielded());
                    for (i, result) in inst.results.iter().enumerate() {
                        let across = match ends {
                            [Some(yes), Some(no)] => self.select(*condition, yes[i], no[i]),
                            // Only one side reaches the end of the branch, so its values are the
                            // results.
                            [Some(one), None] | [None, Some(one)] => self.get(one[i]),
                            [None, None] => LaneValues::Unknown,
                        };
                        self.set(*result, across);
                    }
                }
                Op::Block { body, .. } => self.region(kernel, body),
                op => {
                    if let [result] = inst.results.as_slice() {
                        let across = self.inst(kernel, op, kernel.ty(*result));
                        self.set(*result, across);
                    }
                }
            }
        }
    }

    /// Analyzes a loop's body. A carried value is assumed to have the offsets of the first
    /// iteration in all iterations, with another common part, until the body shows otherwise.
    fn looping(&mut self, kernel: &Kernel, body: &Region, label: Label, inits: &[Value], carried: &[Value]) {
        for (parameter, init) in carried.iter().zip(inits) {
            self.set(*parameter, self.get(*init).without_divisor());
        }
        loop {
            self.region(kernel, body);
            let mut changed = false;
            let mut next: Vec<&Values> = body.yielded().into_iter().collect();
            continues(body, label, &mut next);
            for (i, parameter) in carried.iter().enumerate() {
                let Some(first) = self.get(*parameter).relative() else { continue };
                let stays = |v: &&Values| match self.get(v[i]).relative() {
                    Some(lanes) => same(&std::array::from_fn(|l| lanes[l].wrapping_sub(first[l]))),
                    None => false,
                };
                // Lanes may reach the next iteration on different paths. If the paths pass
                // different values, the value differs between these lanes.
                let one_way = next.iter().all(|v| v[i] == next[0][i]);
                if !one_way || !next.iter().all(stays) {
                    self.set(*parameter, LaneValues::Unknown);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn select(&self, condition: Value, yes: Value, no: Value) -> LaneValues {
        let (condition, yes, no) = (self.get(condition), self.get(yes), self.get(no));
        match (condition, yes, no) {
            (LaneValues::Exact(c), LaneValues::Exact(y), LaneValues::Exact(n)) => {
                LaneValues::Exact(std::array::from_fn(|l| if c[l] != 0 { y[l] } else { n[l] }))
            }
            _ if yes == no && yes.constant().is_some() => yes,
            _ if condition.is_uniform() && yes.relative() == no.relative() => yes.without_divisor(),
            _ if condition.is_uniform() && yes.is_uniform() && no.is_uniform() => LaneValues::UNIFORM,
            _ => LaneValues::Unknown,
        }
    }

    fn inst(&self, kernel: &Kernel, op: &Op, ty: Type) -> LaneValues {
        let integer = ty.scalar().filter(|s| s.is_integer() || *s == Scalar::Bool);
        let across = match op {
            Op::Constant(bits) => LaneValues::Exact([*bits as i64; LANES]),
            Op::Table(_) => LaneValues::Relative { lanes: [0; LANES], multiple: Table::ALIGN.into() },
            Op::Parameter(_) if ty == Type::Global => LaneValues::Relative { lanes: [0; LANES], multiple: ALIGNED },
            Op::Parameter(_) | Op::Special(Special::Block(_) | Special::Grid(_)) => LaneValues::UNIFORM,
            Op::Special(Special::BlockDim(axis)) => match kernel.block.extent(*axis) {
                Some(n) => LaneValues::Exact([n.into(); LANES]),
                None => LaneValues::Relative { lanes: [0; LANES], multiple: kernel.block.divisor(*axis).into() },
            },
            Op::Vote { .. } | Op::Reduce(..) => LaneValues::UNIFORM,
            Op::Special(Special::Thread(axis)) => {
                let ([x, y, _], first) =
                    (kernel.block.max_extents().map(i64::from), i64::from(self.warp) * LANES as i64);
                LaneValues::Exact(std::array::from_fn(|lane| {
                    let thread = first + lane as i64;
                    match axis {
                        0 => thread % x,
                        1 => thread / x % y,
                        _ => thread / (x * y),
                    }
                }))
            }
            Op::Cast(a) if kernel.ty(*a).scalar().is_some_and(|s| s.is_integer() || s == Scalar::Bool) => {
                let from = kernel.ty(*a).scalar().map_or(0, Scalar::bits);
                match self.get(*a) {
                    // The discarded bits may differ between lanes where the sum with the unknown
                    // part carries.
                    a if integer.is_some_and(|s| s.bits() < from) && matches!(a, LaneValues::Relative { .. }) => {
                        if a.is_uniform() { LaneValues::UNIFORM } else { LaneValues::Unknown }
                    }
                    a => a,
                }
            }
            Op::Unary(op @ (Unary::Neg | Unary::Not | Unary::Abs), a) if integer.is_some() => {
                match (op, self.get(*a)) {
                    (Unary::Neg, LaneValues::Exact(lanes)) => LaneValues::Exact(lanes.map(i64::wrapping_neg)),
                    (Unary::Abs, LaneValues::Exact(lanes)) => LaneValues::Exact(lanes.map(i64::wrapping_abs)),
                    (Unary::Not, LaneValues::Exact(lanes)) => LaneValues::Exact(lanes.map(|x| !x)),
                    (_, a) if a.is_uniform() => LaneValues::UNIFORM,
                    _ => LaneValues::Unknown,
                }
            }
            Op::Select { condition, yes, no } => self.select(*condition, *yes, *no),
            Op::Compare(comparison, a, b) => compare(*comparison, self.get(*a), self.get(*b)),
            Op::Binary(op, a, b) if integer.is_some() => {
                binary(*op, integer.unwrap_or(Scalar::U64), self.get(*a), self.get(*b))
            }
            // Arrays of dynamic size are aligned to the widest access of the machine.
            Op::Dynamic { .. } => LaneValues::Relative { lanes: [0; LANES], multiple: MAX_VECTOR_BYTES.into() },
            Op::Offset { base, terms, bytes } => terms.iter().fold(self.get(*base), |sum, (index, stride)| {
                let stride = stride.map_or(LaneValues::Exact([1; LANES]), |s| self.get(s));
                let elements = binary(Binary::Mul, Scalar::U64, self.get(*index), stride);
                let bytes = LaneValues::Exact([i64::from(*bytes); LANES]);
                add(sum, binary(Binary::Mul, Scalar::U64, elements, bytes))
            }),
            Op::Inline { code, .. } if code.effect() != Effect::None => LaneValues::Unknown,
            op => {
                // If the operands are uniform, so is the result. If all lanes load from one
                // address, they load one value.
                let mut uniform = op.is_pure() || matches!(op, Op::Load { .. } | Op::Inline { .. });
                op.for_each_operand(|v| uniform &= self.get(v).is_uniform());
                if uniform { LaneValues::UNIFORM } else { LaneValues::Unknown }
            }
        };
        match (across, integer) {
            (LaneValues::Exact(lanes), Some(ty)) => LaneValues::Exact(lanes.map(|x| wrapped(ty, x))),
            (LaneValues::Exact(lanes), None) if ty.scalar().is_some() && !same(&lanes) => LaneValues::Unknown,
            (across, _) => across,
        }
    }
}

/// Returns a number wrapped to its type.
fn wrapped(ty: Scalar, x: i64) -> i64 {
    let unused = 64 - ty.bits();
    if ty.is_signed() { x << unused >> unused } else { (x as u64 & ty.mask()) as i64 }
}

/// Returns whether control leaves the loop with this label and body before its last iteration.
fn leaves(body: &Region, label: Label) -> bool {
    fn labels(region: &Region, found: &mut Vec<Label>) {
        for inst in &region.insts {
            match &inst.op {
                Op::For(l) => found.push(l.label),
                Op::Loop { label, .. } | Op::Block { label, .. } => found.push(*label),
                _ => {}
            }
            inst.op.regions().into_iter().for_each(|r| labels(r, found));
        }
    }
    fn jumps_out(region: &Region, label: Label, inner: &[Label]) -> bool {
        region.insts.iter().any(|inst| match &inst.op {
            Op::Break(l, _) => !inner.contains(l),
            Op::Continue(l, _) => *l != label && !inner.contains(l),
            Op::Return => true,
            op => op.regions().into_iter().any(|r| jumps_out(r, label, inner)),
        })
    }
    let mut inner = Vec::new();
    labels(body, &mut inner);
    jumps_out(body, label, &inner)
}

fn continues<'k>(region: &'k Region, label: Label, found: &mut Vec<&'k Values>) {
    for inst in &region.insts {
        match &inst.op {
            Op::Continue(l, values) if *l == label => found.push(values),
            op => op.regions().into_iter().for_each(|r| continues(r, label, found)),
        }
    }
}

fn compare(comparison: Comparison, a: LaneValues, b: LaneValues) -> LaneValues {
    match (a, b) {
        (LaneValues::Exact(a), LaneValues::Exact(b)) => LaneValues::Exact(std::array::from_fn(|l| {
            i64::from(match comparison {
                Comparison::Eq => a[l] == b[l],
                Comparison::Ne => a[l] != b[l],
                Comparison::Lt => a[l] < b[l],
                Comparison::Le => a[l] <= b[l],
                Comparison::Gt => a[l] > b[l],
                Comparison::Ge => a[l] >= b[l],
            })
        })),
        (a, b) if a.is_uniform() && b.is_uniform() => LaneValues::UNIFORM,
        _ => LaneValues::Unknown,
    }
}

/// Returns the sum of addresses or of parts of them.
pub(super) fn add(a: LaneValues, b: LaneValues) -> LaneValues {
    binary(Binary::Add, Scalar::U64, a, b)
}

fn binary(op: Binary, ty: Scalar, a: LaneValues, b: LaneValues) -> LaneValues {
    use LaneValues::{Exact, Relative, Unknown};
    let zip = |x: Numbers, y: Numbers, f: fn(i64, i64) -> i64| std::array::from_fn(|l| f(x[l], y[l]));
    let both = |f: fn(i64, i64) -> i64| match (a, b) {
        (Exact(x), Exact(y)) => Exact(zip(x, y, f)),
        _ if a.is_uniform() && b.is_uniform() => LaneValues::UNIFORM,
        _ => Unknown,
    };
    let shifted = |f: fn(i64, i64) -> i64| match (a, b) {
        (Exact(x), Exact(y)) => Exact(std::array::from_fn(|l| f(x[l], y[l] & i64::from(ty.bits() - 1)))),
        _ => both(|x, _| x),
    };
    // If `by` divides the multiple of the common part, the division can be applied to each lane's
    // number.
    let divided = |by: i64, quotient: bool| match a {
        Relative { lanes, multiple } if !ty.is_signed() && by > 0 && multiple.is_multiple_of(by as u64) => {
            Some(match quotient {
                true => Relative { lanes: lanes.map(|x| x.div_euclid(by)), multiple: multiple / by as u64 },
                false => Exact(lanes.map(|x| x.rem_euclid(by))),
            })
        }
        _ => None,
    };
    match op {
        Binary::Add | Binary::WrappingAdd | Binary::Sub | Binary::WrappingSub => {
            let f = if matches!(op, Binary::Add | Binary::WrappingAdd) { i64::wrapping_add } else { i64::wrapping_sub };
            match (a, b) {
                (Exact(x), Exact(y)) => Exact(zip(x, y, f)),
                (Exact(x) | Relative { lanes: x, .. }, Exact(y) | Relative { lanes: y, .. }) => {
                    Relative { lanes: zip(x, y, f), multiple: gcd(a.multiple(), b.multiple()).max(1) }
                }
                _ => Unknown,
            }
        }
        Binary::Mul | Binary::WrappingMul => match (a, b, a.constant().or(b.constant())) {
            (Relative { lanes, multiple }, Exact(_), Some(by)) | (Exact(_), Relative { lanes, multiple }, Some(by)) => {
                let multiple = multiple.saturating_mul(by.unsigned_abs()).max(1);
                Relative { lanes: lanes.map(|x| x.wrapping_mul(by)), multiple }
            }
            _ => both(i64::wrapping_mul),
        },
        // A quotient by 0 is unspecified.
        Binary::Div | Binary::Rem if matches!(b, Exact(by) if by.contains(&0)) => {
            if a.is_uniform() && b.is_uniform() {
                LaneValues::UNIFORM
            } else {
                Unknown
            }
        }
        Binary::Div => match b.constant().and_then(|by| divided(by, true)) {
            Some(quotient) => quotient,
            None => both(|x, y| x.checked_div(y).unwrap_or(0)),
        },
        Binary::Rem => match b.constant().and_then(|by| divided(by, false)) {
            Some(rest) => rest,
            None => both(|x, y| x.checked_rem(y).unwrap_or(0)),
        },
        Binary::And => match b.constant().and_then(|m| m.checked_add(1)).filter(|n| *n > 0 && n & (n - 1) == 0) {
            Some(n) => divided(n, false).unwrap_or_else(|| both(|x, y| x & y)),
            None => both(|x, y| x & y),
        },
        Binary::Or => both(|x, y| x | y),
        Binary::Xor => both(|x, y| x ^ y),
        Binary::Shl | Binary::WrappingShl => match b.constant() {
            Some(by @ 0..32) => binary(Binary::Mul, ty, a, Exact([1 << by; LANES])),
            _ => shifted(|x, y| x << y),
        },
        Binary::Shr | Binary::WrappingShr => match b.constant() {
            Some(by @ 0..32) => divided(1 << by, true).unwrap_or_else(|| shifted(|x, y| x >> y)),
            _ => shifted(|x, y| x >> y),
        },
        Binary::RotateLeft if ty.bits() == 32 => both(|x, y| i64::from((x as u32).rotate_left(y as u32))),
        Binary::RotateLeft if a.is_uniform() && b.is_uniform() => LaneValues::UNIFORM,
        Binary::RotateLeft => Unknown,
        Binary::Min => both(Ord::min),
        Binary::Max => both(Ord::max),
    }
}

/// Returns the greatest common divisor of two numbers. The divisor of 0 and n is n.
pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
