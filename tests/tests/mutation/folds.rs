//! Simplification of comparisons and quotients of multiples of powers of two, and of extents with a
//! block for each index.
//!
//! For multiples x and b of n, and c below n: x + c is below b where x is, and (x + c) / n = x / n.
//! How a value is computed shows that it is a multiple; for extents, `#[requires]` states their
//! remainder. 2³² is a multiple of a power of two as well. A multiple therefore remains one when it
//! wraps, and x + c does not wrap. Of a larger constant, the part below n is removed in sums that
//! do not wrap.
//!
//! A grid has fewer than 2³¹ blocks along an axis: an extent that equals their number does not wrap
//! where a small constant is added.

use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::{Constant, Expr, ExprKind, Intrinsic, LocalId, Monomorphic};
use kernel_dsl::compiler::ir::{Binary, Comparison, Inst, Kernel, Location, Op, Region, Role, Type, Value, Values};
use std::collections::{HashMap, HashSet};

/// An argument's extent: the argument and the dimension.
type Extent = (u32, u32);

/// Facts about extents from the contract of a launch.
#[derive(Default)]
pub struct Extents {
    /// The union-find parent of each extent among equal extents.
    same: HashMap<Extent, Extent>,
    /// The power of two that divides each representative extent.
    powers: HashMap<Extent, u32>,
    /// Extents that equal the number of blocks along an axis.
    blocks: HashSet<Extent>,
}

/// The power of two assumed for 0, which is a multiple of all.
const BITS: u32 = 32;

/// Returns the largest power of two that divides a number.
fn power(n: u64) -> u32 {
    n.trailing_zeros().min(BITS)
}

impl Extents {
    /// Reads the facts that `grid` and `#[requires(…)]` state for an instance.
    pub fn of(program: &Monomorphic) -> Extents {
        let (launch, reader) = (&program.program().launch, Reader::of(program));
        let mut extents = Extents::default();
        let requires = || launch.requires.iter().map(|requirement| &requirement.condition);
        requires().for_each(|condition| extents.equal(condition, &reader));
        requires().for_each(|condition| extents.multiple(condition, &reader));
        for blocks in &launch.grid {
            let of = match &blocks.kind {
                ExprKind::Intrinsic { intrinsic: Intrinsic::DivCeil, arguments } => match &arguments[..] {
                    [of, by] if reader.number(by) == Some(1) => of,
                    _ => blocks,
                },
                _ => blocks,
            };
            let first = reader.extent(of).map(|extent| extents.first(extent));
            extents.blocks.extend(first);
        }
        extents
    }

    fn first(&self, mut extent: Extent) -> Extent {
        while let Some(same) = self.same.get(&extent) {
            extent = *same;
        }
        extent
    }

    fn equal(&mut self, condition: &Expr, reader: &Reader<'_>) {
        match &condition.kind {
            ExprKind::AndAlso(a, b) => [a, b].into_iter().for_each(|part| self.equal(part, reader)),
            ExprKind::Compare(Comparison::Eq, a, b) => {
                if let (Some(a), Some(b)) = (reader.extent(a), reader.extent(b)) {
                    let (a, b) = (self.first(a), self.first(b));
                    if a != b {
                        self.same.insert(b, a);
                    }
                }
            }
            _ => {}
        }
    }

    fn multiple(&mut self, condition: &Expr, reader: &Reader<'_>) {
        match &condition.kind {
            ExprKind::AndAlso(a, b) => [a, b].into_iter().for_each(|part| self.multiple(part, reader)),
            ExprKind::Compare(Comparison::Eq, rest, zero) if reader.number(zero) == Some(0) => {
                if let ExprKind::Binary(Binary::Rem, of, by) = &rest.kind
                    && let (Some(of), Some(by)) = (reader.extent(of), reader.number(by))
                {
                    let most = self.powers.entry(self.first(of)).or_insert(0);
                    *most = power(by).max(*most);
                }
            }
            _ => {}
        }
    }

    fn of_parameter(&self, kernel: &Kernel, parameter: u32) -> Option<Extent> {
        let parameter = kernel.parameters.get(parameter as usize)?;
        match parameter.role {
            Role::Extent(dimension) => Some(self.first((parameter.argument, dimension))),
            _ => None,
        }
    }

    /// Marks sums of the number of blocks and a constant as not wrapping.
    pub fn no_block_wraps(&self, kernel: &mut Kernel) {
        let mut body = std::mem::take(&mut kernel.body);
        self.without_wrapping(kernel, &mut body, &mut HashMap::new());
        kernel.body = body;
    }

    fn without_wrapping(&self, kernel: &Kernel, region: &mut Region, made: &mut HashMap<Value, Op>) {
        for inst in &mut region.insts {
            if let Op::Binary(operator @ Binary::WrappingAdd, of, more) = &mut inst.op
                && let (Some(Op::Parameter(p)), Some(Op::Constant(more))) = (made.get(of), made.get(more))
                && *more < 1 << 31
                && self.of_parameter(kernel, *p).is_some_and(|extent| self.blocks.contains(&extent))
            {
                *operator = Binary::Add;
            }
            if let ([result], Op::Parameter(_) | Op::Constant(_)) = (&inst.results[..], &inst.op) {
                made.insert(*result, inst.op.clone());
            }
            inst.op.regions_mut().into_iter().for_each(|inner| self.without_wrapping(kernel, inner, made));
        }
    }

    /// Removes additions to multiples that do not change a comparison or a quotient, and returns
    /// whether there was one.
    pub fn folds(&self, kernel: &mut Kernel) -> bool {
        let mut body = std::mem::take(&mut kernel.body);
        let mut folds =
            Folds { extents: self, kernel: &mut *kernel, powers: HashMap::new(), made: HashMap::new(), changed: false };
        folds.region(&mut body);
        let changed = folds.changed;
        kernel.body = body;
        changed
    }
}

struct Folds<'a> {
    extents: &'a Extents,
    kernel: &'a mut Kernel,
    /// The power of two that divides each value.
    powers: HashMap<Value, u32>,
    made: HashMap<Value, Op>,
    changed: bool,
}

impl Folds<'_> {
    fn region(&mut self, region: &mut Region) {
        for mut inst in std::mem::take(&mut region.insts) {
            let before = self.inst(&mut inst);
            region.insts.extend(before);
            region.insts.push(inst);
        }
    }

    fn is_usize(&self, value: Value) -> bool {
        self.kernel.ty(value) == Type::Scalar(Scalar::Usize)
    }

    /// Rewrites an instruction, and returns the instructions that must precede it.
    fn inst(&mut self, inst: &mut Inst) -> Vec<Inst> {
        let mut before = Vec::new();
        match &mut inst.op {
            Op::Compare(comparison, a, b) if self.is_usize(*a) => {
                if let Some((than, terms)) = self.compared(*comparison, *a, *b) {
                    let [of, other] = terms.map(|(x, c)| self.sum(x, c, inst.location, &mut before));
                    (*comparison, *a, *b) = (than, of, other);
                    self.changed = true;
                }
            }
            Op::Binary(operator @ (Binary::Div | Binary::Shr), of, by) if self.is_usize(*of) => {
                let (x, c, _) = self.apart(*of);
                if let Some(n) = self.divisor(*operator, *by)
                    && c > 0
                    && c < 1 << n
                    && self.power(x) >= n
                {
                    *of = x;
                    self.changed = true;
                }
            }
            Op::For(l) if self.is_usize(l.start) => {
                let power = self.power(l.start).min(self.power(l.step));
                self.powers.insert(l.body.parameters[0], power);
            }
            _ => {}
        }
        if let [result] = inst.results[..]
            && self.is_usize(result)
            && inst.op.is_pure()
        {
            self.powers.insert(result, self.power_of(&inst.op).min(BITS));
            self.made.insert(result, inst.op.clone());
        }
        inst.op.regions_mut().into_iter().for_each(|inner| self.region(inner));
        before
    }

    /// Computes x + c in `before`.
    fn sum(&mut self, x: Value, c: u64, location: Location, before: &mut Vec<Inst>) -> Value {
        if c == 0 {
            return x;
        }
        let mut add = |kernel: &mut Kernel, op: Op| {
            let value = kernel.value(Type::Scalar(Scalar::Usize));
            before.push(Inst { op, results: Values::from_slice(&[value]), location });
            value
        };
        let c = add(self.kernel, Op::Constant(c));
        add(self.kernel, Op::Binary(Binary::Add, x, c))
    }

    fn power(&self, value: Value) -> u32 {
        self.powers.get(&value).copied().unwrap_or(0)
    }

    fn constant(&self, value: Value) -> Option<u64> {
        match self.made.get(&value) {
            Some(Op::Constant(n)) => Some(*n),
            _ => None,
        }
    }

    /// Returns the exponent of the divisor, if that is a power of two.
    fn divisor(&self, operator: Binary, by: Value) -> Option<u32> {
        let by = self.constant(by)?;
        match operator {
            Binary::Div => by.is_power_of_two().then(|| power(by)),
            _ => u32::try_from(by).ok().filter(|n| *n < BITS),
        }
    }

    fn power_of(&self, op: &Op) -> u32 {
        let of = |value: &Value| self.power(*value);
        match op {
            Op::Constant(n) => power(*n),
            Op::Parameter(p) => {
                let extent = self.extents.of_parameter(self.kernel, *p);
                extent.and_then(|extent| self.extents.powers.get(&extent)).copied().unwrap_or(0)
            }
            Op::Binary(Binary::Mul, a, b) => of(a) + of(b),
            Op::Binary(Binary::Add | Binary::Sub | Binary::Min | Binary::Max | Binary::Rem, a, b) => of(a).min(of(b)),
            Op::Binary(Binary::Shl, a, b) => self.divisor(Binary::Shl, *b).map_or(0, |n| of(a) + n),
            Op::Binary(operator @ (Binary::Div | Binary::Shr), a, b) => {
                self.divisor(*operator, *b).map_or(0, |n| of(a).saturating_sub(n))
            }
            Op::Select { yes, no, .. } => of(yes).min(of(no)),
            _ => 0,
        }
    }

    /// Splits a number into a base and an added constant, and returns whether the sum may wrap.
    fn apart(&self, value: Value) -> (Value, u64, bool) {
        if let Some(Op::Binary(operator @ (Binary::Add | Binary::WrappingAdd), a, b)) = self.made.get(&value) {
            for (of, more) in [(*a, *b), (*b, *a)] {
                // A constant above half of the range represents a negative number.
                if let Some(more) = self.constant(more).filter(|more| *more < 1 << 31) {
                    return (of, more, *operator == Binary::WrappingAdd);
                }
            }
        }
        (value, 0, false)
    }

    /// Returns an equivalent comparison of numbers with smaller added constants, if there is one.
    fn compared(&self, comparison: Comparison, a: Value, b: Value) -> Option<(Comparison, [Term; 2])> {
        // For < and ≤, an added constant that no multiple reaches makes no difference.
        let (a, b) = match comparison {
            Comparison::Lt | Comparison::Le => (a, b),
            Comparison::Gt | Comparison::Ge => (b, a),
            Comparison::Eq | Comparison::Ne => return None,
        };
        // Splits c into its part below n and the multiple. Below a power of two no sum wraps.
        let rest = |(x, c, wraps): (Value, u64, bool), other: Value| {
            let n = 1 << self.power(x).min(self.power(other));
            (c % n > 0 && (c < n || !wraps)).then_some((x, c - c % n))
        };
        if let Some(less) = rest(self.apart(a), b) {
            // No multiple lies between this one and the next, which is the smallest that b can be
            // if it is greater.
            return Some((Comparison::Lt, [less, (b, 0)]));
        }
        rest(self.apart(b), a).map(|less| (Comparison::Le, [(a, 0), less]))
    }
}

/// A number and a constant added to it.
type Term = (Value, u64);

/// Reads the expressions of a kernel's launch with the kernel's own names.
struct Reader<'p> {
    program: &'p Monomorphic,
    /// The launch argument of each parameter that is a single argument.
    arguments: HashMap<u32, u32>,
}

impl<'p> Reader<'p> {
    fn of(program: &'p Monomorphic) -> Reader<'p> {
        let all = program.arguments();
        let alone = |parameter: u32| all.iter().filter(|a| a.parameter == parameter).count() == 1;
        let arguments = all.iter().enumerate().filter(|(_, a)| alone(a.parameter));
        let arguments = arguments.map(|(i, a)| (a.parameter, i as u32)).collect();
        Reader { program, arguments }
    }

    /// Returns the extent of an argument that an expression is, if any.
    fn extent(&self, e: &Expr) -> Option<Extent> {
        let ExprKind::Intrinsic { intrinsic: Intrinsic::Extent(dimension), arguments } = &e.kind else { return None };
        let ExprKind::Local(LocalId(parameter)) = arguments.first()?.kind else { return None };
        let dimension = match dimension {
            Some(dimension) => u32::from(*dimension),
            None => self.number(arguments.get(1)?)? as u32,
        };
        Some((*self.arguments.get(&parameter)?, dimension))
    }

    /// Returns a number, or a constant of the instance.
    fn number(&self, e: &Expr) -> Option<u64> {
        match &e.kind {
            ExprKind::Literal(n) => Some(*n),
            ExprKind::Generic(i) => match self.program.instance().0.get(*i as usize)? {
                Constant::Usize(n) => Some((*n).into()),
                _ => None,
            },
            _ => None,
        }
    }
}
