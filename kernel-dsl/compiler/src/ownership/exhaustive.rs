//! Exhaustive patterns: a `match` must cover each value, and the pattern of a `let`, `for` or
//! closure must match every value.
//!
//! The algorithm is that of L. Maranget, "Warnings for pattern matching" (JFP 2007): a row of
//! wildcards that is useful after all arms is a value that no arm covers.

use super::part::{ExprPart, each_part};
use super::types::{AppliedType, ValueShape};
use crate::Scalar;
use crate::hir::{Block, Expr, ExprKind, Function, Items, Pattern, Statement};
use crate::ir::Unary;
use crate::source::Span;

/// A pattern that does not cover all values: the place, and the message.
pub(super) type Uncovered = (Span, String);

/// The steps after which a `match` counts as covered. Only patterns made by a program reach it.
const MAX_STEPS: u32 = 50_000;

/// Returns the patterns of a function that do not cover all values.
pub(super) fn uncovered(function: &Function, items: &Items) -> Vec<Uncovered> {
    let mut checker = PatternChecker { function, items, found: Vec::new() };
    checker.block(&function.body);
    checker.found
}

struct PatternChecker<'f> {
    function: &'f Function,
    items: &'f Items,
    found: Vec<Uncovered>,
}

impl<'f> PatternChecker<'f> {
    fn block(&mut self, block: &'f Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let { pattern, value, span } => {
                    if let Some(value) = value {
                        self.expr(value);
                        self.irrefutable(pattern, value, *span, "write `let … else { … };`, or `match`");
                    }
                }
                Statement::LetElse { value, otherwise, .. } => {
                    self.expr(value);
                    self.block(otherwise);
                }
                Statement::Expr(e) | Statement::Assert { condition: e, .. } => self.expr(e),
            }
        }
        if let Some(value) = &block.value {
            self.expr(value);
        }
    }

    fn expr(&mut self, e: &'f Expr) {
        each_part(e, &mut |part| match part {
            ExprPart::Expr(e) => self.expr(e),
            ExprPart::Block(b) => self.block(b),
        });
        if let ExprKind::Match { value, arms } = &e.kind {
            let rows = arms.iter().filter(|arm| arm.guard.is_none()).map(|arm| vec![&arm.pattern]).collect();
            if let Some(missing) = self.missing(rows, value) {
                let message =
                    format!("this `match` does not cover {missing}: add an arm for it, or a last arm `_ => …`");
                self.found.push((e.span, message));
            }
        }
        if let ExprKind::For { pattern, range, .. } = &e.kind {
            self.irrefutable(pattern, &range.start, e.span, "bind a name, and use `match` in the body");
        }
    }

    fn irrefutable(&mut self, pattern: &'f Pattern, value: &'f Expr, span: Span, advice: &str) {
        if let Some(missing) = self.missing(vec![vec![pattern]], value) {
            self.found.push((span, format!("this pattern does not cover {missing}: {advice}")));
        }
    }

    /// Returns in words a value of `value`'s type that no row matches.
    fn missing(&self, rows: Vec<Vec<&'f Pattern>>, value: &Expr) -> Option<String> {
        let ty = AppliedType::of(&self.function.types, value.ty);
        if rows.iter().flatten().any(|pattern| !is_known(pattern)) {
            return None;
        }
        let rows = rows.into_iter().map(|row| row.into_iter().map(PatternColumn::Pattern).collect()).collect();
        let mut steps = 0;
        let missing = self.useful(rows, &[ty], &mut steps)?;
        Some(match missing[0].as_str() {
            "_" => "all values".to_string(),
            value => format!("`{value}`"),
        })
    }

    /// Returns values of `types`, in words, that no row matches.
    fn useful(
        &self,
        rows: Vec<Vec<PatternColumn<'f>>>,
        types: &[AppliedType<'f>],
        steps: &mut u32,
    ) -> Option<Vec<String>> {
        *steps += 1;
        if *steps > MAX_STEPS {
            return None;
        }
        let Some((first, rest)) = types.split_first() else {
            return rows.is_empty().then(Vec::new);
        };
        let rows: Vec<Vec<PatternColumn>> = rows.into_iter().flat_map(|row| expanded(&row)).collect();
        if rows.iter().all(|row| matches!(row[0], PatternColumn::Any)) {
            let shape = first.shape(self.items);
            if !matches!(&shape, ValueShape::Variants(all) if all.is_empty()) {
                let rows = rows.into_iter().map(|row| row[1..].to_vec()).collect();
                let mut missing = self.useful(rows, rest, steps)?;
                missing.insert(0, "_".to_string());
                return Some(missing);
            }
        }
        for constructor in self.constructors(&rows, first) {
            let parts = constructor.types.len();
            let rows = rows.iter().filter_map(|row| specialized(row, &constructor)).collect();
            let types: Vec<AppliedType> = constructor.types.iter().chain(rest).cloned().collect();
            if let Some(mut missing) = self.useful(rows, &types, steps) {
                let inner: Vec<String> = missing.drain(..parts).collect();
                missing.insert(0, constructor.written(&inner));
                return Some(missing);
            }
        }
        None
    }

    /// Returns the constructors that together make all values of the type.
    fn constructors(&self, rows: &[Vec<PatternColumn<'f>>], ty: &AppliedType<'f>) -> Vec<ValueConstructor<'f>> {
        let one = |form: ConstructorForm, name: String, types| ValueConstructor { form, name, types };
        match ty.shape(self.items) {
            ValueShape::Bool => [0u128, 1]
                .into_iter()
                .map(|n| {
                    one(
                        ConstructorForm::Numbers(Scalar::Bool, n, n),
                        if n == 0 { "false" } else { "true" }.to_string(),
                        Vec::new(),
                    )
                })
                .collect(),
            ValueShape::Integer(scalar) => {
                let end = last_of(scalar);
                // The ends of all ranges divide the numbers into intervals.
                let mut starts = vec![0u128];
                for row in rows {
                    if let PatternColumn::Pattern(pattern) = &row[0]
                        && let Some((low, high)) = numbers(pattern, scalar)
                    {
                        starts.push(low);
                        starts.extend(high.checked_add(1).filter(|next| *next <= end));
                    }
                }
                starts.sort_unstable();
                starts.dedup();
                let ends = starts.iter().skip(1).map(|next| next - 1).chain([end]);
                let intervals = starts.iter().copied().zip(ends);
                intervals
                    .map(|(low, high)| {
                        one(ConstructorForm::Numbers(scalar, low, high), interval(low, high, scalar), Vec::new())
                    })
                    .collect()
            }
            ValueShape::Option(inner) => vec![
                one(ConstructorForm::None, "None".to_string(), Vec::new()),
                one(ConstructorForm::Some, "Some".to_string(), vec![inner]),
            ],
            ValueShape::Reference(to) => vec![one(ConstructorForm::Reference, "&".to_string(), vec![to])],
            ValueShape::Parts(types) => vec![one(ConstructorForm::Parts, String::new(), types)],
            ValueShape::Struct(name, types) => vec![one(ConstructorForm::Parts, name, types)],
            ValueShape::Elements(element) => {
                let count = rows.iter().map(|row| match row[0] {
                    PatternColumn::Pattern(Pattern::Parts(parts)) => parts.len(),
                    _ => 0,
                });
                let count = count.max().unwrap_or(0);
                vec![one(ConstructorForm::Parts, "[]".to_string(), vec![element; count])]
            }
            ValueShape::Variants(all) => all
                .into_iter()
                .map(|v| one(ConstructorForm::Variant { value: v.value, fields: v.fields }, v.name, v.types))
                .collect(),
            ValueShape::Other => vec![one(ConstructorForm::Other, "_".to_string(), Vec::new())],
        }
    }
}

/// A pattern, or one that matches all values.
#[derive(Clone, Copy)]
enum PatternColumn<'f> {
    Any,
    Pattern(&'f Pattern),
}

/// A way to make values of a type from parts.
struct ValueConstructor<'f> {
    form: ConstructorForm,
    name: String,
    types: Vec<AppliedType<'f>>,
}

enum ConstructorForm {
    /// Numbers in the order of their type, from the first to the last.
    Numbers(Scalar, u128, u128),
    None,
    Some,
    Reference,
    Parts,
    /// A variant, and the indices of its fields in the parts of the enum.
    Variant {
        value: i32,
        fields: Vec<usize>,
    },
    /// Values that patterns cannot enumerate.
    Other,
}

impl ValueConstructor<'_> {
    /// Returns a value in words.
    fn written(&self, parts: &[String]) -> String {
        let parts = parts.join(", ");
        match (&self.form, self.name.as_str()) {
            (ConstructorForm::Reference, _) => format!("&{parts}"),
            (ConstructorForm::Parts, "[]") => format!("[{parts}, ..]").replace("[, ", "["),
            (_, name) if parts.is_empty() && !name.is_empty() => name.to_string(),
            (_, name) => format!("{name}({parts})"),
        }
    }
}

/// Returns the row with `|`, names and wildcards of its first pattern resolved.
fn expanded<'f>(row: &[PatternColumn<'f>]) -> Vec<Vec<PatternColumn<'f>>> {
    let with = |first: PatternColumn<'f>| {
        let mut row = row.to_vec();
        row[0] = first;
        row
    };
    match row[0] {
        PatternColumn::Any => vec![row.to_vec()],
        PatternColumn::Pattern(pattern) => match pattern {
            Pattern::Ignore | Pattern::Local(_) => vec![with(PatternColumn::Any)],
            Pattern::Named(_, inner) | Pattern::Borrowed(_, inner) => expanded(&with(PatternColumn::Pattern(inner))),
            Pattern::Any(all) => all.iter().flat_map(|one| expanded(&with(PatternColumn::Pattern(one)))).collect(),
            _ => vec![row.to_vec()],
        },
    }
}

/// Returns the row for values of the constructor; `None` if the row matches no such value.
fn specialized<'f>(row: &[PatternColumn<'f>], constructor: &ValueConstructor) -> Option<Vec<PatternColumn<'f>>> {
    let count = constructor.types.len();
    let padded = |parts: Vec<PatternColumn<'f>>| {
        let mut parts = parts;
        parts.resize(count, PatternColumn::Any);
        parts
    };
    let parts = match row[0] {
        PatternColumn::Any => padded(Vec::new()),
        PatternColumn::Pattern(pattern) => match (&constructor.form, pattern) {
            (ConstructorForm::Numbers(scalar, low, high), _) => {
                let (from, to) = numbers(pattern, *scalar)?;
                (from <= *low && *high <= to).then(Vec::new)?
            }
            (ConstructorForm::None, Pattern::None) => Vec::new(),
            (ConstructorForm::Some, Pattern::Some(inner))
            | (ConstructorForm::Reference, Pattern::Dereference(inner)) => {
                vec![PatternColumn::Pattern(inner)]
            }
            (ConstructorForm::Parts, Pattern::Parts(parts)) => {
                padded(parts.iter().map(PatternColumn::Pattern).collect())
            }
            (ConstructorForm::Variant { value, .. }, Pattern::Value(e)) => {
                (literal(e)? as u32 as i32 == *value).then(|| padded(Vec::new()))?
            }
            (ConstructorForm::Variant { value, fields }, Pattern::Parts(parts)) => {
                let Some(Pattern::Value(tag)) = parts.first() else { return None };
                if literal(tag)? as u32 as i32 != *value {
                    return None;
                }
                fields.iter().map(|at| parts.get(*at).map_or(PatternColumn::Any, PatternColumn::Pattern)).collect()
            }
            _ => return None,
        },
    };
    Some(parts.into_iter().chain(row[1..].iter().copied()).collect())
}

/// Returns whether all numbers of the pattern are literals. The value of a constant is known later.
fn is_known(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Ignore | Pattern::Local(_) | Pattern::None => true,
        Pattern::Parts(all) | Pattern::Any(all) => all.iter().all(is_known),
        Pattern::Value(e) => literal(e).is_some(),
        Pattern::Range { low, high, .. } => low.iter().chain(high).all(|e| literal(e).is_some()),
        Pattern::Named(_, inner) | Pattern::Borrowed(_, inner) | Pattern::Some(inner) | Pattern::Dereference(inner) => {
            is_known(inner)
        }
    }
}

/// Returns the bits of a literal, with those of a negated one.
fn literal(e: &Expr) -> Option<u128> {
    match &e.kind {
        ExprKind::Literal(bits) => Some(u128::from(*bits)),
        ExprKind::LongLiteral(bits) => Some(*bits),
        ExprKind::Unary(Unary::Neg, inner) => Some(literal(inner)?.wrapping_neg()),
        _ => None,
    }
}

/// Returns the first and last number of a pattern in the order of the type.
fn numbers(pattern: &Pattern, scalar: Scalar) -> Option<(u128, u128)> {
    let at = |e: &Expr| Some(place_in(literal(e)?, scalar));
    match pattern {
        Pattern::Value(e) => {
            let n = at(e)?;
            Some((n, n))
        }
        Pattern::Range { low, high, closed } => {
            let low = match low {
                Some(e) => at(e)?,
                None => 0,
            };
            let high = match high {
                Some(e) if *closed => at(e)?,
                Some(e) => at(e)?.checked_sub(1)?,
                None => last_of(scalar),
            };
            (low <= high).then_some((low, high))
        }
        _ => None,
    }
}

/// Returns the position of a number among all of its type.
fn place_in(bits: u128, scalar: Scalar) -> u128 {
    match scalar {
        Scalar::U128 => bits,
        Scalar::Usize => bits & u128::from(u64::MAX),
        Scalar::Bool => bits & 1,
        _ => {
            let mask = u128::from(scalar.mask());
            let sign = if scalar.is_signed() { (mask >> 1) + 1 } else { 0 };
            (bits & mask) ^ sign
        }
    }
}

/// Returns the last position of a type. No literal is the largest `usize`, whose width differs
/// between host and device.
fn last_of(scalar: Scalar) -> u128 {
    match scalar {
        Scalar::U128 | Scalar::Usize => u128::MAX,
        Scalar::Bool => 1,
        _ => scalar.mask().into(),
    }
}

/// Returns numbers as a pattern.
fn interval(low: u128, high: u128, scalar: Scalar) -> String {
    let number = |n: u128| {
        if !scalar.is_signed() {
            return n.to_string();
        }
        let sign = (u128::from(scalar.mask()) >> 1) + 1;
        (n as i128 - sign as i128).to_string()
    };
    match (low, high) {
        _ if low == high => number(low),
        _ if high == last_of(scalar) => format!("{}..", number(low)),
        _ => format!("{}..={}", number(low), number(high)),
    }
}
