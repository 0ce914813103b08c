//! A canonical form of a kernel: its effects in order, with their operands.
//!
//! The form ignores the numbering of values, their origin, the time at which pure values are
//! computed, and the bounds of checks. A pure value is identified by its operation and operands
//! alone, wherever it is computed. Sums of integers and multiples of constants are identified by
//! their terms, modulo 2ⁿ. Two kernels with one form have the same effects in the same order, under
//! the same control, with the same operands.

use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{AccessPlace, Binary, Comparison, Inst, Kernel, Label, Op, Region, Type, Unary, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The names of all effects in order.
pub type Form = Vec<u32>;

/// Names of computations and effects, shared by all kernels that are compared.
#[derive(Default)]
pub struct FormNames {
    known: HashMap<String, u32>,
    /// The linear combination of each named integer.
    sums: HashMap<u32, (Scalar, Sum)>,
    constants: HashMap<u32, u64>,
    /// The operation of each name, on names.
    made: HashMap<u32, (Op, Type)>,
    /// For the name of a Boolean: two integers that are equal where it holds, the second of them a
    /// constant.
    equal: HashMap<u32, (u32, u32)>,
    /// Names of comparisons of integers.
    of_integers: HashSet<u32>,
    kept: u32,
}

/// A linear combination: Σ factor · value + constant, modulo 2ⁿ.
#[derive(Clone, Default)]
struct Sum {
    terms: BTreeMap<u32, u64>,
    constant: u64,
}

impl FormNames {
    /// Keeps all names so far permanently.
    pub fn keep(&mut self) {
        self.kept = self.known.len() as u32;
    }

    /// Forgets the names that are not kept.
    pub fn forget(&mut self) {
        let kept = self.kept;
        self.known.retain(|_, name| *name < kept);
        self.sums.retain(|name, _| *name < kept);
        self.constants.retain(|name, _| *name < kept);
        self.made.retain(|name, _| *name < kept);
        self.equal.retain(|name, _| *name < kept);
        self.of_integers.retain(|name| *name < kept);
    }

    fn name(&mut self, what: String) -> u32 {
        let next = self.known.len() as u32;
        *self.known.entry(what).or_insert(next)
    }

    /// Returns the form of a kernel.
    pub fn of(&mut self, kernel: &Kernel) -> Form {
        let mut reader =
            Reader { forms: self, kernel, names: HashMap::new(), labels: HashMap::new(), form: Vec::new() };
        reader.region(&kernel.body);
        reader.form
    }

    fn sum(&self, name: u32) -> Sum {
        if let Some((_, sum)) = self.sums.get(&name) {
            return sum.clone();
        }
        match self.constants.get(&name) {
            Some(bits) => Sum { constant: *bits, ..Sum::default() },
            None => Sum { terms: [(name, 1)].into_iter().collect(), constant: 0 },
        }
    }

    fn of_constant(&mut self, ty: Type, bits: u64) -> u32 {
        let name = self.name(format!("{ty:?} {bits}"));
        self.constants.insert(name, bits);
        name
    }

    fn of_sum(&mut self, ty: Scalar, sum: Sum) -> u32 {
        if sum.terms.is_empty() {
            return self.of_constant(Type::Scalar(ty), sum.constant);
        }
        if let (Some((name, 1)), 1, 0) =
            (sum.terms.first_key_value().map(|(n, f)| (*n, *f)), sum.terms.len(), sum.constant)
        {
            return name;
        }
        let name = self.name(format!("{ty:?} {:?} + {}", sum.terms, sum.constant));
        self.sums.insert(name, (ty, sum));
        name
    }
}

impl Sum {
    fn plus(mut self, other: &Sum, factor: u64, mask: u64) -> Sum {
        for (name, times) in &other.terms {
            let of = self.terms.entry(*name).or_insert(0);
            *of = of.wrapping_add(times.wrapping_mul(factor)) & mask;
        }
        self.terms.retain(|_, factor| *factor != 0);
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor)) & mask;
        self
    }
}

struct Reader<'f, 'k> {
    forms: &'f mut FormNames,
    kernel: &'k Kernel,
    names: HashMap<Value, u32>,
    labels: HashMap<Label, Label>,
    form: Form,
}

impl Reader<'_, '_> {
    fn region(&mut self, region: &Region) {
        self.own(&region.parameters, "parameter");
        for inst in &region.insts {
            if is_quiet(inst) {
                self.quiet(inst);
                continue;
            }
            let mut op = self.named(&inst.op);
            op.regions_mut().into_iter().for_each(|inner| *inner = Region::default());
            match &mut op {
                Op::For(l) => self.label(&mut l.label),
                Op::Loop { label, .. } | Op::Block { label, .. } => self.label(label),
                Op::Break(label, _) | Op::Continue(label, _) => self.label(label),
                _ => {}
            }
            let name = self.forms.name(format!("{op:?}"));
            self.form.push(name);
            for inner in inst.op.regions() {
                self.region(inner);
                let end = self.forms.name("end".to_string());
                self.form.push(end);
            }
            self.own(&inst.results, "result");
        }
    }

    /// Gives values that are not computed a name by their position.
    fn own(&mut self, values: &[Value], what: &str) {
        for (i, value) in values.iter().enumerate() {
            let (at, ty) = (self.form.len(), self.kernel.ty(*value));
            let name = self.forms.name(format!("{what} {i} of {at}: {ty:?}"));
            self.names.insert(*value, name);
        }
    }

    fn label(&mut self, label: &mut Label) {
        let next = Label(self.labels.len() as u32);
        *label = *self.labels.entry(*label).or_insert(next);
    }

    /// Replaces the operands of an operation by their names.
    fn named(&self, op: &Op) -> Op {
        let mut op = op.clone();
        op.map_operands(|v| Value(self.names.get(&v).copied().unwrap_or(u32::MAX)));
        let of_zero = |index: &Value| self.forms.constants.get(&index.0) == Some(&0);
        let plain = |place: &mut AccessPlace| {
            if let AccessPlace::Global { dims, .. } | AccessPlace::Dynamic { dims, .. } = place {
                for dim in dims {
                    // The extent is used by checks only.
                    dim.extent = Value(u32::MAX);
                    if of_zero(&dim.index) {
                        dim.stride = None;
                    }
                }
            }
        };
        match &mut op {
            Op::Load { place, .. } | Op::Store { place, .. } | Op::MarkUndef { place, .. } => plain(place),
            Op::Atomic { place, .. } => plain(place),
            Op::CopyAsync(copy) => {
                plain(&mut copy.to);
                plain(&mut copy.from);
            }
            _ => {}
        }
        op
    }

    /// Gives names to the results of a pure instruction; a pure branch is a select.
    fn quiet(&mut self, inst: &Inst) {
        let Op::If { condition, then, otherwise } = &inst.op else {
            let op = self.named(&inst.op);
            let integers = matches!(self.of_operand(&inst.op), Type::Scalar(ty) if ty.is_integer());
            let name = self.forms.computed(op, self.kernel.ty(inst.results[0]), integers);
            self.names.insert(inst.results[0], name);
            return;
        };
        let sides = [then, otherwise].map(|side| {
            let mut ends = Vec::new();
            for inner in &side.insts {
                match &inner.op {
                    Op::Yield(values) => ends = values.iter().map(|v| self.named_value(*v)).collect(),
                    _ => self.quiet(inner),
                }
            }
            ends
        });
        let condition = self.named_value(*condition);
        for (i, result) in inst.results.iter().enumerate() {
            let (Some(yes), Some(no)) = (sides[0].get(i), sides[1].get(i)) else { continue };
            let op = Op::Select { condition, yes: *yes, no: *no };
            let name = self.forms.computed(op, self.kernel.ty(*result), false);
            self.names.insert(*result, name);
        }
    }

    fn named_value(&self, value: Value) -> Value {
        Value(self.names.get(&value).copied().unwrap_or(u32::MAX))
    }

    /// Returns the type of the compared operands.
    fn of_operand(&self, op: &Op) -> Type {
        match op {
            Op::Compare(_, a, _) => self.kernel.ty(*a),
            _ => Type::Scalar(Scalar::Bool),
        }
    }
}

fn is_integer(ty: Type) -> bool {
    matches!(ty, Type::Scalar(ty) if ty.is_integer())
}

/// Returns whether an instruction is pure.
fn is_quiet(inst: &Inst) -> bool {
    let quiet = |region: &Region| region.insts.iter().all(|inst| matches!(inst.op, Op::Yield(_)) || is_quiet(inst));
    inst.op.is_pure() || matches!(&inst.op, Op::If { then, otherwise, .. } if quiet(then) && quiet(otherwise))
}

/// Maximum depth of operations for the substitution of a constant.
const DEPTH: usize = 64;
/// Maximum depth where the substitution is tested for each select.
const NEAR: usize = 6;

impl FormNames {
    /// Returns the name of a pure operation on names. For a comparison, `integers` states whether
    /// its operands are integers.
    fn computed(&mut self, mut op: Op, ty: Type, integers: bool) -> u32 {
        if let Type::Scalar(ty) = ty
            && let Some(sum) = self.summed(&op, ty)
        {
            return self.of_sum(ty, sum);
        }
        let constant = |v: &Value| self.constants.get(&v.0).copied();
        match &mut op {
            Op::Constant(bits) => return self.of_constant(ty, *bits),
            // Division by one, or of zero by another constant; the type excludes floats.
            Op::Binary(Binary::Div, a, b) if is_integer(ty) && constant(b) == Some(1) => return a.0,
            Op::Binary(Binary::Rem, _, b) if is_integer(ty) && constant(b) == Some(1) => {
                return self.of_constant(ty, 0);
            }
            Op::Binary(operator @ (Binary::Div | Binary::Rem), a, b) if is_integer(ty) && constant(a) == Some(0) => {
                if constant(b).is_some_and(|b| b != 0) {
                    return a.0;
                }
                // Division by zero is reported. Quotient and remainder are equal: 0, or all ones
                // for the divisor 0.
                *operator = Binary::Div;
            }
            // (a − b)² = (b − a)², because rounding is symmetric.
            Op::Binary(Binary::Mul, a, b) | Op::MulAdd(a, b, _) if a == b && !is_integer(ty) => {
                let difference = self.made.get(&a.0).cloned();
                if let Some((Op::Binary(Binary::Sub, x, y), of)) = difference
                    && x > y
                {
                    let turned = Value(self.computed(Op::Binary(Binary::Sub, y, x), of, false));
                    (*a, *b) = (turned, turned);
                }
            }
            Op::Binary(operator, a, b) if operator.commutes() && *a > *b => std::mem::swap(a, b),
            Op::Compare(comparison, a, b) => {
                let turned = match comparison {
                    Comparison::Gt => Some(Comparison::Lt),
                    Comparison::Ge => Some(Comparison::Le),
                    Comparison::Eq | Comparison::Ne if a > b => Some(*comparison),
                    _ => None,
                };
                if let Some(turned) = turned {
                    *comparison = turned;
                    std::mem::swap(a, b);
                }
                let equal = match (constant(a), constant(b)) {
                    _ if *comparison != Comparison::Eq || !integers => None,
                    (None, Some(_)) => Some((a.0, b.0)),
                    (Some(_), None) => Some((b.0, a.0)),
                    _ => None,
                };
                if let Op::Compare(Comparison::Ne, a, b) = op {
                    self.computed(Op::Compare(Comparison::Eq, a, b), ty, integers);
                }
                let name = self.name(format!("{ty:?} {op:?}"));
                self.equal.extend(equal.map(|equal| (name, equal)));
                self.of_integers.extend(integers.then_some(name));
                self.made.insert(name, (op, ty));
                return name;
            }
            Op::Offset { base, terms, .. } => {
                terms.retain(|(index, _)| constant(index) != Some(0));
                if terms.is_empty() {
                    return base.0;
                }
            }
            Op::Select { condition, yes, no } => {
                let mut swap = false;
                while let Some((Op::Unary(Unary::Not, of), _)) = self.made.get(&condition.0) {
                    (*condition, swap) = (*of, !swap);
                }
                if let Some((Op::Compare(Comparison::Ne, a, b), of)) = self.made.get(&condition.0) {
                    let equal = Op::Compare(Comparison::Eq, *a, *b);
                    if let Some(name) = self.known.get(&format!("{of:?} {equal:?}")) {
                        (*condition, swap) = (Value(*name), !swap);
                    }
                }
                if swap {
                    std::mem::swap(yes, no);
                }
                let (condition, yes, no) = (*condition, *yes, *no);
                if yes == no {
                    return yes.0;
                }
                if let Some(strict) = self.strict(condition, [yes, no], ty) {
                    return self.computed(Op::Select { condition: strict, yes, no }, ty, false);
                }
                if let Some(divided) = self.divided(condition, [yes, no]) {
                    return divided;
                }
                // If the other value equals it where x is k, the other value is always correct.
                if let Some((x, k)) = self.equal.get(&condition.0).copied()
                    && self.with(no.0, x, k, DEPTH) == Some(yes.0)
                {
                    return no.0;
                }
            }
            _ => {}
        }
        let name = self.name(format!("{ty:?} {op:?}"));
        self.made.insert(name, (op, ty));
        name
    }

    /// Simplifies a select by ≤ to one by <, if both values are equal where the operands are.
    fn strict(&mut self, condition: Value, [yes, no]: [Value; 2], ty: Type) -> Option<Value> {
        let (Op::Compare(Comparison::Le, a, b), of) = self.made.get(&condition.0).cloned()? else { return None };
        let Type::Scalar(scalar) = ty else { return None };
        let integers = self.of_integers.contains(&condition.0);
        let same = if integers {
            [(a, b), (b, a)].into_iter().any(|(of, other)| {
                let [yes, no] = [yes, no].map(|choice| self.with(choice.0, of.0, other.0, NEAR));
                yes.is_some() && yes == no
            })
        } else {
            // Equal floats have the same bits, except for zeros.
            let zero = |bits: &u64| *bits << (64 - scalar.bits()) << 1 == 0;
            let one = |v: &Value| self.constants.get(&v.0).is_some_and(|bits| !zero(bits));
            ([yes, no] == [a, b] || [yes, no] == [b, a]) && scalar.is_float() && (one(&a) || one(&b))
        };
        same.then(|| Value(self.computed(Op::Compare(Comparison::Lt, a, b), of, integers)))
    }

    /// Simplifies a select, by whether a dividend is below its divisor, between an expression of
    /// the quotient and the same expression with 0: the former is always correct.
    fn divided(&mut self, condition: Value, [yes, no]: [Value; 2]) -> Option<u32> {
        let (op, _) = self.made.get(&condition.0)?;
        let (a, b, [large, small]) = match op {
            Op::Compare(Comparison::Lt, a, b) => (*a, *b, [no, yes]),
            Op::Compare(Comparison::Le, b, a) => (*a, *b, [yes, no]),
            _ => return None,
        };
        let (ty, quotient) = [Scalar::Usize, Scalar::U32, Scalar::U64].into_iter().find_map(|ty| {
            let ty = Type::Scalar(ty);
            Some((ty, *self.known.get(&format!("{ty:?} {:?}", Op::Binary(Binary::Div, a, b)))?))
        })?;
        let zero = self.of_constant(ty, 0);
        (self.with(large.0, quotient, zero, DEPTH) == Some(small.0)).then_some(large.0)
    }

    /// Returns the name of an expression with `k` substituted for `x`.
    fn with(&mut self, name: u32, x: u32, k: u32, depth: usize) -> Option<u32> {
        if name == x {
            return Some(k);
        }
        let depth = depth.checked_sub(1)?;
        if let Some((ty, sum)) = self.sums.get(&name).cloned() {
            let mut with = Sum { constant: sum.constant, ..Sum::default() };
            for (of, factor) in sum.terms {
                let of = self.with(of, x, k, depth)?;
                with = with.plus(&self.sum(of), factor, ty.mask());
            }
            return Some(self.of_sum(ty, with));
        }
        let Some((mut op, ty)) = self.made.get(&name).cloned() else { return Some(name) };
        let integers = self.equal.contains_key(&name);
        let (mut known, mut changed) = (true, false);
        op.map_operands(|v| match self.with(v.0, x, k, depth) {
            Some(with) => {
                changed |= with != v.0;
                Value(with)
            }
            None => {
                known = false;
                v
            }
        });
        known.then(|| if changed { self.computed(op, ty, integers) } else { name })
    }

    /// Returns the linear combination of an integer operation on named operands.
    fn summed(&self, op: &Op, ty: Scalar) -> Option<Sum> {
        if !ty.is_integer() {
            return None;
        }
        let mask = ty.mask();
        let of = |v: &Value| self.sum(v.0);
        let constant = |v: &Value| self.constants.get(&v.0).copied();
        match op {
            Op::Binary(Binary::Add | Binary::WrappingAdd, a, b) => Some(of(a).plus(&of(b), 1, mask)),
            Op::Binary(Binary::Sub | Binary::WrappingSub, a, b) => Some(of(a).plus(&of(b), u64::MAX, mask)),
            Op::Binary(Binary::Mul | Binary::WrappingMul, a, b) => match (constant(a), constant(b)) {
                (_, Some(n)) => Some(Sum::default().plus(&of(a), n, mask)),
                (Some(n), _) => Some(Sum::default().plus(&of(b), n, mask)),
                _ => None,
            },
            Op::Binary(Binary::Shl | Binary::WrappingShl, a, b) => {
                let n = constant(b).filter(|n| *n < u64::from(ty.bits()))?;
                Some(Sum::default().plus(&of(a), 1 << n, mask))
            }
            _ => None,
        }
    }
}
