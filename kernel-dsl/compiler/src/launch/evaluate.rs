//! Evaluation of the expressions of `block`, `grid` and `requires` on the host.
//!
//! Expressions mean the same as on the device, but overflow is an error: arithmetic uses 128 bits,
//! and a result that does not fit in its type (32 bits for `usize`) fails with the numbers.
//! `wrapping_…` wraps.

use super::{DeviceFacts, Fact, explain};
use crate::Scalar;
use crate::half;
use crate::hir::monomorphic::{LaunchArgument, Monomorphic};
use crate::hir::{
    Block, Constant, Expr, ExprKind, Function, FunctionId, Instance, Intrinsic, LocalId, Pattern, Size, Statement,
    Type, TypeId,
};
use crate::ir::{Binary, Comparison, Unary};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Range;

/// The facts that the evaluation of an expression may use. An argument has no fact if it was
/// rejected, or if there is no launch yet.
pub(super) struct LaunchFacts<'a> {
    /// The kernel, or a called device function.
    pub function: &'a Function,
    pub monomorphic: &'a Monomorphic,
    /// For a device function: the values of its variables so far.
    pub bound: Option<RefCell<Vec<Option<HostValue>>>>,
    pub instance: &'a Instance,
    /// The properties of the device, if there is a launch.
    pub device: Option<DeviceFacts>,
    /// The threads of a block, once known.
    pub block: Option<[u32; 3]>,
    /// The arguments of a launch, in order.
    pub arguments: &'a [LaunchArgument],
    pub facts: &'a [Option<&'a Fact>],
}

/// A value on the host.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum HostValue {
    /// The bits of a scalar, zero-extended.
    Scalar(Scalar, u64),
    /// The argument with this index.
    Argument(usize),
    Tuple(Vec<HostValue>),
}

/// The reason why an expression has no value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum EvaluationFailure {
    /// The expression depends on an unknown argument.
    Unknown,
    /// The expression is invalid, for this reason.
    Invalid(String),
}

pub(super) type Evaluated<T> = Result<T, EvaluationFailure>;

/// Why a `u128` has no value.
const U128_REASON: &str = "uses a `u128`, but only the device computes with more than 64 bits: pass a `u64`";

pub(super) fn invalid<T>(why: impl Into<String>) -> Evaluated<T> {
    Err(EvaluationFailure::Invalid(why.into()))
}

/// A scalar as a number.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum HostNumber {
    Integer(i128),
    Float(f64),
}

fn number(ty: Scalar, bits: u64) -> HostNumber {
    match ty {
        Scalar::F16 => HostNumber::Float(f64::from(half::f16_to_f32(bits as u16))),
        Scalar::Bf16 => HostNumber::Float(f64::from(half::bf16_to_f32(bits as u16))),
        Scalar::Custom(format) => HostNumber::Float(f64::from(format.decode(bits as u16))),
        Scalar::F32 => HostNumber::Float(f64::from(f32::from_bits(bits as u32))),
        Scalar::F64 => HostNumber::Float(f64::from_bits(bits)),
        _ => HostNumber::Integer(integer(ty, bits)),
    }
}

pub(super) fn integer(ty: Scalar, bits: u64) -> i128 {
    let unused = 64 - ty.bits();
    if ty.is_signed() { i128::from((bits << unused) as i64 >> unused) } else { i128::from(bits & ty.mask()) }
}

/// Formats the bits of a scalar in Rust notation.
pub(super) fn display(ty: Scalar, bits: u64) -> String {
    match ty {
        Scalar::Bool => (bits != 0).to_string(),
        Scalar::F16 => format!("{:?}", half::f16_to_f32(bits as u16)),
        Scalar::Bf16 => format!("{:?}", half::bf16_to_f32(bits as u16)),
        Scalar::Custom(format) => format!("{:?}", format.decode(bits as u16)),
        Scalar::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Scalar::F64 => format!("{:?}", f64::from_bits(bits)),
        _ => integer(ty, bits).to_string(),
    }
}

/// Returns the bits of `value` rounded to the float type `ty`. For one `f32` operation computed in
/// `f64`, rounding twice equals rounding once, because 53 ≥ 2 · 24 + 2 bits. A 16-bit result is the
/// rounded `f32` result.
fn float_bits(ty: Scalar, value: f64) -> u64 {
    match ty {
        Scalar::F16 => u64::from(half::f16_from_f32(value as f32)),
        Scalar::Bf16 => u64::from(half::bf16_from_f32(value as f32)),
        Scalar::Custom(format) => u64::from(format.encode(value as f32)),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// Returns the bits of `value`, if it fits in `ty`.
pub(super) fn fit(ty: Scalar, value: i128) -> Option<u64> {
    let bits = value as u64 & ty.mask();
    (integer(ty, bits) == value).then_some(bits)
}

impl LaunchFacts<'_> {
    /// Evaluates `expr`, which must be a `bool`.
    pub fn condition(&self, expr: &Expr) -> Evaluated<bool> {
        match self.scalar(expr)? {
            (Scalar::Bool, bits) => Ok(bits != 0),
            (other, _) => invalid(format!("is `{other}`, not `bool`")),
        }
    }

    /// Evaluates `expr`, which must be an unsigned 32-bit number.
    pub fn count(&self, expr: &Expr) -> Evaluated<u32> {
        match self.scalar(expr)? {
            (Scalar::Usize | Scalar::U32, bits) => Ok(bits as u32),
            (other, _) => invalid(format!("is `{other}`, not `usize`")),
        }
    }

    fn scalar(&self, expr: &Expr) -> Evaluated<(Scalar, u64)> {
        if self.function.types.get(expr.ty.0 as usize) == Some(&Type::Scalar(Scalar::U128)) {
            return invalid(U128_REASON);
        }
        match self.value(expr)? {
            HostValue::Scalar(ty, bits) => Ok((ty, bits)),
            _ => invalid("is not a number"),
        }
    }

    fn usize(&self, expr: &Expr) -> Evaluated<u64> {
        self.count(expr).map(u64::from)
    }

    fn value(&self, expr: &Expr) -> Evaluated<HostValue> {
        let scalar = |(ty, bits)| Ok(HostValue::Scalar(ty, bits));
        match &expr.kind {
            ExprKind::Literal(bits) => match self.function.types.get(expr.ty.0 as usize) {
                Some(Type::Scalar(ty)) => Ok(HostValue::Scalar(*ty, *bits)),
                _ => invalid("contains a literal that is not a scalar"),
            },
            ExprKind::Local(id) => self.parameter(id.0 as usize),
            ExprKind::Generic(index) => match self.instance.0.get(*index as usize) {
                Some(Constant::Usize(n)) => Ok(HostValue::Scalar(Scalar::Usize, u64::from(*n))),
                Some(Constant::Bool(b)) => Ok(HostValue::Scalar(Scalar::Bool, u64::from(*b))),
                Some(Constant::Integer(n)) => match self.function.types.get(expr.ty.0 as usize) {
                    Some(Type::Scalar(Scalar::U128)) => invalid(U128_REASON),
                    Some(Type::Scalar(ty)) => Ok(HostValue::Scalar(*ty, *n as u64 & ty.mask())),
                    _ => invalid("contains a generic constant that is not a scalar"),
                },
                Some(Constant::Scalar(_) | Constant::Item(_)) => invalid("uses a type where a number is needed"),
                None => invalid(format!("uses generic constant {index}, which the instance lacks")),
            },
            ExprKind::Unary(op, a) => scalar(unary(*op, self.scalar(a)?)?),
            ExprKind::Binary(op, a, b) => scalar(binary(*op, self.scalar(a)?, self.scalar(b)?)?),
            ExprKind::Compare(op, a, b) => {
                let holds = self.compare(*op, a.ty, self.value(a)?, self.value(b)?)?;
                scalar((Scalar::Bool, u64::from(holds)))
            }
            ExprKind::AndAlso(a, b) => scalar((Scalar::Bool, u64::from(self.condition(a)? && self.condition(b)?))),
            ExprKind::OrElse(a, b) => scalar((Scalar::Bool, u64::from(self.condition(a)? || self.condition(b)?))),
            ExprKind::Cast(a) => match self.function.types.get(expr.ty.0 as usize) {
                Some(Type::Scalar(to)) => scalar((*to, cast(self.scalar(a)?, *to)?)),
                _ => invalid("casts to a type that is not a scalar"),
            },
            ExprKind::If { condition, then, otherwise: Some(otherwise) } => {
                if self.condition(condition)? {
                    self.block(then)
                } else {
                    self.value(otherwise)
                }
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Call { function, arguments, .. } => {
                self.call(*function, arguments.iter().map(|e| self.value(e)).collect::<Evaluated<_>>()?)
            }
            ExprKind::Array(parts) => {
                parts.iter().map(|e| self.value(e)).collect::<Evaluated<_>>().map(HostValue::Tuple)
            }
            ExprKind::Repeat(element) => match self.function.types.get(expr.ty.0 as usize) {
                Some(Type::Array(_, Size::Known(n))) => Ok(HostValue::Tuple(vec![self.value(element)?; *n as usize])),
                _ => invalid("repeats a value an unknown number of times"),
            },
            ExprKind::Index { base, index } => match self.value(base)? {
                HostValue::Tuple(mut parts) => {
                    let (at, n) = (self.usize(index)?, parts.len());
                    match usize::try_from(at).ok().filter(|at| *at < n) {
                        Some(at) => Ok(parts.swap_remove(at)),
                        None => invalid(format!("reads element {at} of an array of {n} elements")),
                    }
                }
                HostValue::Argument(_) => invalid("reads an element in memory, which only the device can do"),
                HostValue::Scalar(..) => invalid("reads an element of a number"),
            },
            ExprKind::Reference(of) | ExprKind::Dereference(of) => self.value(of),
            ExprKind::Struct { fields, rest } => {
                let mut parts = match rest {
                    Some(rest) => match self.value(rest)? {
                        HostValue::Tuple(parts) => parts,
                        _ => return invalid("takes fields from a value that is not a struct"),
                    },
                    // The fields of other variants have no value.
                    None => {
                        let count = match self.function.types.get(expr.ty.0 as usize) {
                            Some(Type::Tuple(parts)) => parts.len(),
                            _ => fields.len(),
                        };
                        vec![HostValue::Tuple(Vec::new()); count]
                    }
                };
                for (i, value) in fields {
                    let value = self.value(value)?;
                    if let Some(part) = parts.get_mut(*i as usize) {
                        *part = value;
                    }
                }
                Ok(HostValue::Tuple(parts))
            }
            ExprKind::Tuple(parts) => {
                parts.iter().map(|e| self.value(e)).collect::<Evaluated<_>>().map(HostValue::Tuple)
            }
            ExprKind::Field { base, field } => match self.value(base)? {
                HostValue::Tuple(mut parts) if (*field as usize) < parts.len() => {
                    Ok(parts.swap_remove(*field as usize))
                }
                _ => invalid(format!("reads field {field} of a value without such a field")),
            },
            ExprKind::Intrinsic { intrinsic, arguments } => self.intrinsic(*intrinsic, arguments),
            ExprKind::Match { value, arms } => {
                let value = self.value(value)?;
                for arm in arms {
                    let matches = self.matches(&arm.pattern, &value)?;
                    if matches && arm.guard.as_ref().map_or(Ok(true), |guard| self.condition(guard))? {
                        return self.value(&arm.body);
                    }
                }
                invalid("matches a value that no arm takes")
            }
            _ => invalid("contains an expression that only the device can evaluate"),
        }
    }

    fn block(&self, block: &Block) -> Evaluated<HostValue> {
        for statement in &block.statements {
            match (statement, &self.bound) {
                (Statement::Let { pattern, value: Some(value), .. }, Some(_)) => {
                    let value = self.value(value)?;
                    self.matches(pattern, &value)?;
                }
                (Statement::Expr(Expr { kind: ExprKind::Assertion { condition: Some(condition), .. }, .. }), _) => {
                    if !self.condition(condition)? {
                        return invalid("fails an assertion");
                    }
                }
                _ => return invalid("contains a block with statements, which only the device can evaluate"),
            }
        }
        match &block.value {
            Some(value) => self.value(value),
            None => Ok(HostValue::Tuple(Vec::new())),
        }
    }

    /// Returns whether a value matches a pattern, and binds the names of the pattern.
    fn matches(&self, pattern: &Pattern, value: &HostValue) -> Evaluated<bool> {
        let bind = |id: LocalId| match &self.bound {
            Some(bound) => {
                bound.borrow_mut()[id.0 as usize] = Some(value.clone());
                Ok(true)
            }
            None => invalid("binds a name, which only a device function can do"),
        };
        match (pattern, value) {
            (Pattern::Ignore, _) => Ok(true),
            (Pattern::Local(id), _) => bind(*id),
            (Pattern::Named(id, inner) | Pattern::Borrowed(id, inner), _) => {
                Ok(bind(*id)? && self.matches(inner, value)?)
            }
            (Pattern::Dereference(inner), _) => self.matches(inner, value),
            (Pattern::Any(patterns), _) => {
                let mut all = patterns.iter();
                all.try_fold(false, |any, pattern| Ok(any || self.matches(pattern, value)?))
            }
            (Pattern::Parts(patterns), HostValue::Tuple(parts)) => {
                let mut all = patterns.iter().zip(parts);
                all.try_fold(true, |all, (pattern, part)| Ok(all && self.matches(pattern, part)?))
            }
            (Pattern::Some(inner), HostValue::Tuple(parts)) => match &parts[..] {
                [HostValue::Scalar(_, 1), value] => self.matches(inner, value),
                _ => Ok(false),
            },
            (Pattern::None, HostValue::Tuple(parts)) => Ok(matches!(parts.first(), Some(HostValue::Scalar(_, 0)))),
            (Pattern::Value(wanted), HostValue::Scalar(ty, bits)) => {
                Ok(number(*ty, self.pattern_bits(wanted)?) == number(*ty, *bits))
            }
            (Pattern::Range { low, high, closed }, HostValue::Scalar(ty, bits)) => {
                let bound =
                    |e: &Option<Box<Expr>>| e.as_ref().map(|e| Ok(number(*ty, self.pattern_bits(e)?))).transpose();
                let (value, low, high) = (number(*ty, *bits), bound(low)?, bound(high)?);
                let below = |high| if *closed { value <= high } else { value < high };
                Ok(low.is_none_or(|low| low <= value) && high.is_none_or(below))
            }
            _ => invalid("matches a value that only the device can match"),
        }
    }

    /// Returns the bits of a number in a pattern.
    fn pattern_bits(&self, e: &Expr) -> Evaluated<u64> {
        match e.kind {
            ExprKind::Literal(bits) => Ok(bits),
            _ => Ok(self.scalar(e)?.1),
        }
    }

    /// Evaluates a call of a device function without loops and without assigned variables.
    fn call(&self, function: FunctionId, arguments: Vec<HostValue>) -> Evaluated<HostValue> {
        let Some(callee) = self.monomorphic.program().functions.get(function.0 as usize) else {
            return invalid("calls a missing function");
        };
        let mut bound = vec![None; callee.locals.len()];
        for (variable, value) in bound.iter_mut().zip(arguments) {
            *variable = Some(value);
        }
        LaunchFacts { function: callee, bound: Some(RefCell::new(bound)), ..*self }.block(&callee.body)
    }

    /// Compares two values of type `ty`, part by part.
    fn compare(&self, op: Comparison, ty: TypeId, a: HostValue, b: HostValue) -> Evaluated<bool> {
        let ordering = match op {
            Comparison::Eq => return self.equal(ty, a, b),
            Comparison::Ne => return Ok(!self.equal(ty, a, b)?),
            _ => self.order(ty, a, b)?,
        };
        Ok(ordering.is_some_and(|ordering| match op {
            Comparison::Lt => ordering.is_lt(),
            Comparison::Le => ordering.is_le(),
            Comparison::Gt => ordering.is_gt(),
            _ => ordering.is_ge(),
        }))
    }

    fn equal(&self, ty: TypeId, a: HostValue, b: HostValue) -> Evaluated<bool> {
        if let Some(function) = self.monomorphic.equality(ty) {
            return match self.call(function, vec![a, b])? {
                HostValue::Scalar(Scalar::Bool, bits) => Ok(bits != 0),
                _ => invalid("compares by an `eq` that does not return a `bool`"),
            };
        }
        match (a, b) {
            (HostValue::Tuple(a), HostValue::Tuple(b)) if let Some(inner) = self.option_of(ty) => {
                match (<[HostValue; 2]>::try_from(a), <[HostValue; 2]>::try_from(b)) {
                    (Ok([some, a]), Ok([other, b])) if some == other => {
                        Ok(some == HostValue::Scalar(Scalar::Bool, 0) || self.equal(inner, a, b)?)
                    }
                    _ => Ok(false),
                }
            }
            (HostValue::Tuple(a), HostValue::Tuple(b)) => {
                // The fields of other variants have no value.
                let absent = match (self.monomorphic.variants(ty), a.first()) {
                    (Some(variants), Some(HostValue::Scalar(_, tag))) => {
                        let others = variants.into_iter().filter(|(value, _)| *value as u32 != *tag as u32);
                        others.flat_map(|(_, fields)| fields).collect()
                    }
                    _ => Vec::new(),
                };
                let parts = self.parts(ty, a.len())?.into_iter().zip(a.into_iter().zip(b)).enumerate();
                for (_, (ty, (a, b))) in parts.filter(|(at, _)| !absent.contains(at)) {
                    if !self.equal(ty, a, b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (a, b) => Ok(self.order(ty, a, b)? == Some(Ordering::Equal)),
        }
    }

    /// Returns the order of two values; `None` for a NaN.
    fn order(&self, ty: TypeId, a: HostValue, b: HostValue) -> Evaluated<Option<Ordering>> {
        match (a, b) {
            (HostValue::Tuple(a), HostValue::Tuple(b)) if let Some(inner) = self.option_of(ty) => {
                match (<[HostValue; 2]>::try_from(a), <[HostValue; 2]>::try_from(b)) {
                    (Ok([HostValue::Scalar(_, 1), a]), Ok([HostValue::Scalar(_, 1), b])) => self.order(inner, a, b),
                    (Ok([HostValue::Scalar(_, some), _]), Ok([HostValue::Scalar(_, other), _])) => {
                        Ok(Some(some.cmp(&other)))
                    }
                    _ => invalid("compares values that only the device can compare"),
                }
            }
            (HostValue::Scalar(Scalar::U128, _), _) => invalid(U128_REASON),
            (HostValue::Scalar(of, a), HostValue::Scalar(other, b)) if of == other => {
                Ok(number(of, a).partial_cmp(&number(of, b)))
            }
            (HostValue::Scalar(of, _), HostValue::Scalar(other, _)) => {
                invalid(format!("compares `{of}` with `{other}`"))
            }
            (HostValue::Tuple(a), HostValue::Tuple(b)) => {
                for (ty, (a, b)) in self.parts(ty, a.len())?.into_iter().zip(a.into_iter().zip(b)) {
                    let order = self.order(ty, a, b)?;
                    if order != Some(Ordering::Equal) {
                        return Ok(order);
                    }
                }
                Ok(Some(Ordering::Equal))
            }
            _ => invalid("compares values that only the device can compare"),
        }
    }

    /// Returns the type of the value that an option holds.
    fn option_of(&self, ty: TypeId) -> Option<TypeId> {
        match self.function.types.get(ty.0 as usize) {
            Some(Type::Option(inner)) => Some(*inner),
            _ => None,
        }
    }

    /// Returns the types of the `n` parts of a type.
    fn parts(&self, ty: TypeId, n: usize) -> Evaluated<Vec<TypeId>> {
        match self.function.types.get(ty.0 as usize) {
            Some(Type::Tuple(parts)) => Ok(parts.clone()),
            Some(Type::Array(element, _)) => Ok(vec![*element; n]),
            Some(Type::Scalar(Scalar::U128)) => invalid(U128_REASON),
            _ if n == 0 => Ok(Vec::new()),
            _ => invalid("compares values that only the device can compare"),
        }
    }

    /// Returns the value of a parameter, assembled from its arguments.
    fn parameter(&self, index: usize) -> Evaluated<HostValue> {
        if let Some(bound) = &self.bound {
            let value = bound.borrow().get(index).cloned().flatten();
            return value.map_or_else(|| invalid("uses a variable before its initialization"), Ok);
        }
        let Some(local) = self.function.locals.get(index).filter(|_| index < self.function.parameters as usize) else {
            return invalid("uses a variable that is not a parameter");
        };
        let mut next = self.arguments.iter().position(|a| a.parameter as usize == index).unwrap_or(0);
        self.assemble_value(local.ty, &mut next)
    }

    /// Returns the index of the argument that `expr` names: a parameter, or a part of one.
    pub fn argument_named(&self, expr: &Expr) -> Option<usize> {
        if self.bound.is_some() {
            return None;
        }
        // The parts of a parameter are arguments in the order of the types that contain them.
        let place = self.part(expr)?;
        (self.leaves(place.1) == 1 && place.0 < self.arguments.len()).then_some(place.0)
    }

    /// Returns the first argument of the part of a parameter that `expr` names, and the part's
    /// type.
    fn part(&self, expr: &Expr) -> Option<(usize, TypeId)> {
        let (base, at) = match &expr.kind {
            ExprKind::Local(id) => {
                let first = self.arguments.iter().position(|a| a.parameter == id.0)?;
                return Some((first, self.function.locals.get(id.0 as usize)?.ty));
            }
            ExprKind::Field { base, field } => (base, u64::from(*field)),
            ExprKind::Index { base, index } => (base, self.usize(index).ok()?),
            _ => return None,
        };
        let (first, ty) = self.part(base)?;
        match self.function.ty(ty) {
            Type::Tuple(parts) => {
                let before = parts.get(..at as usize)?.iter().map(|p| self.leaves(*p)).sum::<usize>();
                Some((first + before, *parts.get(at as usize)?))
            }
            Type::Array(element, Size::Known(n)) if at < u64::from(*n) => {
                Some((first + at as usize * self.leaves(*element), *element))
            }
            _ => None,
        }
    }

    /// Returns the number of arguments that a value of a type consists of.
    fn leaves(&self, ty: TypeId) -> usize {
        match self.function.ty(ty) {
            Type::Tuple(parts) => parts.iter().map(|p| self.leaves(*p)).sum(),
            Type::Array(element, Size::Known(n)) => *n as usize * self.leaves(*element),
            Type::Scalar(Scalar::U128) => 2,
            _ => 1,
        }
    }

    fn assemble_value(&self, ty: TypeId, next: &mut usize) -> Evaluated<HostValue> {
        let parts = match self.function.ty(ty) {
            Type::Tuple(parts) => parts.clone(),
            Type::Array(element, Size::Known(n)) => vec![*element; *n as usize],
            Type::Scalar(Scalar::U128) => {
                *next += 2;
                let words = [*next - 2, *next - 1].map(|word| self.argument(word));
                return words.into_iter().collect::<Evaluated<_>>().map(HostValue::Tuple);
            }
            _ => {
                *next += 1;
                return self.argument(*next - 1);
            }
        };
        parts.into_iter().map(|part| self.assemble_value(part, next)).collect::<Evaluated<_>>().map(HostValue::Tuple)
    }

    fn argument(&self, index: usize) -> Evaluated<HostValue> {
        match self.facts.get(index) {
            Some(Some(Fact::Scalar { ty, bits })) => Ok(HostValue::Scalar(*ty, *bits)),
            Some(Some(_)) => Ok(HostValue::Argument(index)),
            Some(None) => Err(EvaluationFailure::Unknown),
            None => invalid("uses a variable that is not a parameter"),
        }
    }

    /// Returns the slice or view that `expr` names.
    fn memory(&self, expr: &Expr) -> Evaluated<&Fact> {
        match self.value(expr)? {
            HostValue::Argument(index) => self.facts[index].ok_or(EvaluationFailure::Unknown),
            _ => invalid("reads the extent of a value that is neither a slice nor a view"),
        }
    }

    fn intrinsic(&self, intrinsic: Intrinsic, arguments: &[Expr]) -> Evaluated<HostValue> {
        let usize = |n: u64| Ok(HostValue::Scalar(Scalar::Usize, n));
        let bool = |b: bool| Ok(HostValue::Scalar(Scalar::Bool, u64::from(b)));
        let scalar = |(ty, bits)| Ok(HostValue::Scalar(ty, bits));
        match (intrinsic, arguments) {
            (Intrinsic::Extent(Some(d)), [x]) => usize(self.memory(x)?.extent(u64::from(d))?),
            (Intrinsic::Extent(None), [x, d]) => usize(self.memory(x)?.extent(self.usize(d)?)?),
            (Intrinsic::Stride, [x, d]) => usize(self.memory(x)?.stride(self.usize(d)?)?),
            (Intrinsic::IsEmpty, [x]) => bool(self.memory(x)?.extents().contains(&0)),
            (Intrinsic::Aligned, [x, n]) => {
                let n = self.usize(n)?;
                if n == 0 {
                    return invalid("checks an alignment of 0 elements");
                }
                bool(self.memory(x)?.aligned(n))
            }
            (Intrinsic::ArrayLen, [array]) => match self.value(array)? {
                HostValue::Tuple(parts) => usize(parts.len() as u64),
                _ => invalid("reads the length of a value that is not an array"),
            },
            (Intrinsic::Some, [x]) => Ok(HostValue::Tuple(vec![HostValue::Scalar(Scalar::Bool, 1), self.value(x)?])),
            (Intrinsic::None, []) => {
                Ok(HostValue::Tuple(vec![HostValue::Scalar(Scalar::Bool, 0), HostValue::Tuple(Vec::new())]))
            }
            (Intrinsic::IsSome, [x]) => match self.value(x)? {
                HostValue::Tuple(mut parts) if !parts.is_empty() => Ok(parts.swap_remove(0)),
                _ => invalid("tests a value that is not an option"),
            },
            (Intrinsic::Unary(op), [a]) => scalar(unary(op, self.scalar(a)?)?),
            (Intrinsic::Binary(op), [a, b]) => scalar(binary(op, self.scalar(a)?, self.scalar(b)?)?),
            (Intrinsic::Method(method), all) => {
                let all: Evaluated<Vec<_>> = all.iter().map(|a| self.scalar(a)).collect();
                scalar(super::method::evaluate(method, &all?)?)
            }
            (Intrinsic::DivCeil, [a, b]) => self.unsigned(a, b, |a, b| (b != 0).then(|| (a + b - 1) / b)),
            (Intrinsic::NextMultipleOf, [a, b]) => self.unsigned(a, b, |a, b| (b != 0).then(|| (a + b - 1) / b * b)),
            (Intrinsic::SaturatingSub, [a, b]) => self.unsigned(a, b, |a, b| Some((a - b).max(0))),
            (Intrinsic::Multiprocessors, []) => usize(u64::from(self.device()?.multiprocessors)),
            (Intrinsic::Waves, [resident, blocks]) => {
                let at_once = self.usize(resident)?.saturating_mul(u64::from(self.device()?.multiprocessors));
                usize(self.usize(blocks)?.min(at_once))
            }
            (Intrinsic::BlockThreads, []) => usize(self.threads(0..3)?),
            (Intrinsic::BlockDim(axis), []) => usize(self.threads(usize::from(axis)..usize::from(axis) + 1)?),
            _ => invalid("calls a function that only the device can evaluate"),
        }
    }

    /// Returns the number of threads of a block along these axes.
    fn threads(&self, axes: Range<usize>) -> Evaluated<u64> {
        let block = self.block.ok_or(EvaluationFailure::Unknown)?;
        Ok(block.get(axes).unwrap_or_default().iter().map(|n| u64::from(*n)).product())
    }

    fn device(&self) -> Evaluated<DeviceFacts> {
        self.device.map_or_else(|| invalid("uses a property of the device, which is unknown before a launch"), Ok)
    }

    /// Applies `f` to two unsigned integers of the same type; `None` from `f` is a division by
    /// zero.
    fn unsigned(&self, a: &Expr, b: &Expr, f: impl Fn(i128, i128) -> Option<i128>) -> Evaluated<HostValue> {
        let ((ty, a), (other, b)) = (self.scalar(a)?, self.scalar(b)?);
        if ty != other || !ty.is_integer() || ty.is_signed() {
            return invalid(format!("needs two unsigned integers of the same type, not `{ty}` and `{other}`"));
        }
        let Some(result) = f(integer(ty, a), integer(ty, b)) else { return invalid("divides by zero") };
        match fit(ty, result) {
            Some(bits) => Ok(HostValue::Scalar(ty, bits)),
            None => invalid(overflow(ty, result)),
        }
    }
}

impl Fact {
    /// Returns the extents, outermost first; none for a scalar.
    pub(super) fn extents(&self) -> &[u64] {
        match self {
            Fact::Scalar { .. } => &[],
            Fact::Slice { len, .. } => std::slice::from_ref(len),
            Fact::View { extents, .. } => extents,
        }
    }

    fn extent(&self, d: u64) -> Evaluated<u64> {
        let extents = self.extents();
        match usize::try_from(d).ok().and_then(|d| extents.get(d)) {
            Some(n) => Ok(*n),
            None => invalid(format!("reads dimension {d} of {}, which has {}", explain::fact(self), extents.len())),
        }
    }

    fn stride(&self, d: u64) -> Evaluated<u64> {
        let strides: &[u64] = match self {
            Fact::View { strides, .. } => strides,
            _ => &[],
        };
        match usize::try_from(d).ok().and_then(|d| strides.get(d)) {
            Some(n) => Ok(*n),
            None => invalid(format!("reads stride {d} of {}, which has {}", explain::fact(self), strides.len())),
        }
    }

    /// Returns whether the base and all strides except the last are multiples of `n` elements.
    fn aligned(&self, n: u64) -> bool {
        let outer: &[u64] = match self {
            Fact::View { strides, .. } => &strides[..strides.len().saturating_sub(1)],
            _ => &[],
        };
        let whole = |element: crate::ElementType| n.saturating_mul(u64::from(element.bytes()));
        match self {
            Fact::Scalar { .. } => false,
            Fact::Slice { element, address, .. } => address.is_multiple_of(whole(*element)),
            Fact::View { element, address, .. } => {
                address.is_multiple_of(whole(*element)) && outer.iter().all(|s| s % n == 0)
            }
        }
    }
}

pub(super) fn overflow(ty: Scalar, value: i128) -> String {
    match ty {
        Scalar::Usize => {
            format!("evaluates to {value}, which does not fit in `usize`, which has 32 bits on the device")
        }
        _ => format!("evaluates to {value}, which does not fit in `{ty}`"),
    }
}

fn unary(op: Unary, (ty, bits): (Scalar, u64)) -> Evaluated<(Scalar, u64)> {
    let unknown = || invalid(format!("applies `{op:?}` to `{ty}`"));
    let float = |v: f64| Ok((ty, float_bits(ty, v)));
    let signed = |v: i128| fit(ty, v).map(|bits| (ty, bits)).map_or_else(|| invalid(overflow(ty, v)), Ok);
    match (op, number(ty, bits)) {
        // The sign is a bit, also for a NaN.
        (Unary::Neg, HostNumber::Float(_)) => Ok((ty, bits ^ (1 << (ty.bits() - 1)))),
        (Unary::Abs, HostNumber::Float(_)) => Ok((ty, bits & (ty.mask() >> 1))),
        (Unary::Sqrt, HostNumber::Float(v)) => float(v.sqrt()),
        (Unary::Floor, HostNumber::Float(v)) => float(v.floor()),
        (Unary::Ceil, HostNumber::Float(v)) => float(v.ceil()),
        (Unary::Trunc, HostNumber::Float(v)) => float(v.trunc()),
        (Unary::RoundEven, HostNumber::Float(v)) => float(v.round_ties_even()),
        (Unary::Not, HostNumber::Integer(_)) => Ok((ty, !bits & ty.mask())),
        (Unary::Neg, HostNumber::Integer(v)) if ty.is_signed() => signed(-v),
        (Unary::Abs, HostNumber::Integer(v)) if ty.is_signed() => signed(v.abs()),
        (Unary::CountOnes, HostNumber::Integer(_)) if ty.is_integer() => {
            Ok((Scalar::U32, u64::from((bits & ty.mask()).count_ones())))
        }
        (Unary::LeadingZeros, HostNumber::Integer(_)) if ty.is_integer() => {
            Ok((Scalar::U32, u64::from((bits & ty.mask()).leading_zeros() - (64 - ty.bits()))))
        }
        _ => unknown(),
    }
}

fn binary(op: Binary, (ty, a_bits): (Scalar, u64), (other, b_bits): (Scalar, u64)) -> Evaluated<(Scalar, u64)> {
    use Binary::*;
    if ty != other && !(op.is_shift() && other.is_integer()) {
        return invalid(format!("applies `{op:?}` to `{ty}` and `{other}`"));
    }
    let (a, b) = match (number(ty, a_bits), number(other, b_bits)) {
        (HostNumber::Float(a), HostNumber::Float(b)) => {
            let value = match op {
                Add => a + b,
                Sub => a - b,
                Mul => a * b,
                Div => a / b,
                Rem => a % b,
                Min => least(a, b),
                Max => -least(-a, -b),
                _ => return invalid(format!("applies `{op:?}` to `{ty}`")),
            };
            return Ok((ty, float_bits(ty, value)));
        }
        (HostNumber::Integer(a), HostNumber::Integer(b)) => (a, b),
        _ => return invalid(format!("applies `{op:?}` to `{ty}` and `{other}`")),
    };
    if ty == Scalar::Bool && !matches!(op, And | Or | Xor) {
        return invalid(format!("applies `{op:?}` to `bool`"));
    }
    let amount = (b as u32) & (ty.bits() - 1);
    let result = match op {
        Add | WrappingAdd => a + b,
        Sub | WrappingSub => a - b,
        Mul | WrappingMul => a.checked_mul(b).unwrap_or(i128::MAX),
        Div | Rem if b == 0 => return invalid("divides by zero"),
        Div => a / b,
        Rem => a % b,
        Min => a.min(b),
        Max => a.max(b),
        And => integer(ty, a_bits & b_bits),
        Or => integer(ty, a_bits | b_bits),
        Xor => integer(ty, a_bits ^ b_bits),
        // Bits shifted out on the left are lost, as in Rust.
        Shl | WrappingShl => integer(ty, (a_bits << amount) & ty.mask()),
        Shr | WrappingShr => a >> amount,
        RotateLeft if ty.bits() == 64 => integer(ty, a_bits.rotate_left(amount)),
        RotateLeft => integer(ty, u64::from((a_bits as u32).rotate_left(amount))),
    };
    match fit(ty, result) {
        Some(bits) => Ok((ty, bits)),
        None if op == WrappingMul => Ok((ty, a_bits.wrapping_mul(b_bits) & ty.mask())),
        None if matches!(op, WrappingAdd | WrappingSub) => Ok((ty, result as u64 & ty.mask())),
        None => invalid(overflow(ty, result)),
    }
}

/// Returns the smaller number; −0 is less than +0, and a NaN is ignored.
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

/// Casts as Rust's `as` does, but fails if the result does not fit in `usize`.
fn cast((from, bits): (Scalar, u64), to: Scalar) -> Evaluated<u64> {
    match (number(from, bits), to) {
        _ if from != to && (from.is_half() || to.is_half()) => invalid(format!("casts `{from}` to `{to}`")),
        (HostNumber::Integer(v), Scalar::F32) => Ok(u64::from((v as f32).to_bits())),
        (HostNumber::Integer(v), Scalar::F64) => Ok((v as f64).to_bits()),
        (HostNumber::Float(_), _) if from == to => Ok(bits),
        (HostNumber::Float(v), Scalar::F32 | Scalar::F64) => Ok(float_bits(to, v)),
        (_, Scalar::Bool) if from != Scalar::Bool => invalid(format!("casts `{from}` to `bool`")),
        (HostNumber::Integer(v), Scalar::Usize) => fit(to, v).map_or_else(|| invalid(overflow(to, v)), Ok),
        (HostNumber::Integer(v), _) => Ok(v as u64 & to.mask()),
        (HostNumber::Float(v), _) => {
            let largest = if to.is_signed() { to.mask() >> 1 } else { to.mask() } as i128;
            let least = if to.is_signed() { -largest - 1 } else { 0 };
            // `as i128` saturates and converts a NaN to 0.
            Ok((v as i128).clamp(least, largest) as u64 & to.mask())
        }
    }
}
