//! Address lowering: places become addresses. Accesses that differ by a constant share one base.
//!
//! An index is a sum of terms and a constant. The constant becomes the byte offset of the access,
//! which is exact because arithmetic on `usize` does not wrap. The terms are grouped by the
//! innermost loop that changes them. The group of the outermost loop is added first, so that its
//! sum can leave the inner loops. Each partial sum moves the base: [`Op::Offset`] with one term.
//! Elements are counted in 32 bits from the address of a parameter: a view spans less than 2³²
//! elements. Addresses in shared memory are 32-bit byte offsets from a constant.

mod shared;

use super::constants::Constants;
use super::rewrite::rewrite;
use crate::error::{Error, Errors};
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::{SmallVec, smallvec};

/// Maximum constant, in elements, that is split off from an index. A larger one might not fit the
/// byte offset of an access, and could not be compensated by moving the base back.
const MAX_ACCESS_CONSTANT: u64 = 1 << 28;

/// Bytes of the largest access.
const MAX_ACCESS_BYTES: i32 = 256;

/// Makes every place an address.
pub fn address_lowering(kernel: &mut Kernel) -> Result<(), Errors> {
    let constants = Constants::of(kernel);
    let types = std::mem::take(&mut kernel.values);
    let mut body = std::mem::take(&mut kernel.body);
    let n = types.len();
    let mut lowerer = AddressLowerer {
        kernel,
        types,
        constants,
        definitions: vec![SumDefinition::Opaque; n],
        levels: vec![0; n],
        mixed: vec![false; n],
        offsets: Vec::new(),
        dynamic: Vec::new(),
        errors: Vec::new(),
        depth: 0,
    };
    lowerer.region(&mut body);
    let AddressLowerer { types, constants, errors, .. } = lowerer;
    if !errors.is_empty() {
        return Err(Errors(errors));
    }
    constants.place(&mut body);
    kernel.values = types;
    kernel.body = body;
    Ok(())
}

/// The definition of a value, if it is a sum that address lowering splits.
#[derive(Clone, Copy, PartialEq)]
enum SumDefinition {
    Opaque,
    Add(Value, Value),
    /// A value minus a constant.
    Less(Value, u32),
    /// A value times a constant.
    Times(Value, u32),
    /// An `Offset`, by index into the table of offsets.
    Offset(u32),
}

/// A term of an address: value times a constant, or times another value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AddressTerm {
    level: u32,
    value: Value,
    stride: Option<Value>,
    scale: u32,
}

/// Σ terms + constant, in elements.
#[derive(Clone, Default)]
struct AddressSum {
    terms: SmallVec<[AddressTerm; 4]>,
    constant: i64,
}

/// The result of an `Offset`: its base, and the distance from it in elements.
#[derive(Clone)]
struct MovedBase {
    base: Value,
    /// Bytes of an element.
    bytes: u32,
    sum: AddressSum,
}

struct AddressLowerer<'k> {
    kernel: &'k Kernel,
    types: Vec<Type>,
    constants: Constants,
    definitions: Vec<SumDefinition>,
    /// The depth of the innermost loop that changes each value; 0 if no loop changes the value.
    levels: Vec<u32>,
    /// Whether a value is a sum that is worth splitting: it has a constant addend, or addends of
    /// several levels.
    mixed: Vec<bool>,
    offsets: Vec<MovedBase>,
    /// Bytes of each array of dynamic size so far.
    dynamic: Vec<Value>,
    errors: Vec<Error>,
    depth: u32,
}

impl AddressLowerer<'_> {
    fn region(&mut self, region: &mut Region) {
        for p in &region.parameters {
            self.levels[p.0 as usize] = self.depth;
        }
        rewrite(&mut region.insts, |inst, before| {
            self.define(inst);
            let looping = u32::from(matches!(inst.op, Op::For(_) | Op::Loop { .. }));
            self.depth += looping;
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
            self.depth -= looping;
            match &mut inst.op {
                Op::Load { place, element, .. }
                | Op::Store { place, element, .. }
                | Op::MarkUndef { place, element, .. }
                | Op::Atomic { place, element, .. } => *place = self.place(place, *element, inst.location, before),
                Op::Offset { base, terms, bytes } => {
                    if let Some(op) = self.split_offset(*base, terms, *bytes, inst.location, before) {
                        inst.op = op;
                    }
                }
                Op::CopyAsync(copy) => {
                    let element = copy.element;
                    copy.to = self.place(&copy.to, element, inst.location, before);
                    copy.from = self.place(&copy.from, element, inst.location, before);
                }
                Op::Dynamic { array, extents } => {
                    let (array, extents) = (*array, std::mem::take(extents));
                    inst.op = self.dynamic(array, &extents, inst.location, before);
                }
                _ => {}
            }
            true
        });
    }

    /// Records the definition of a value.
    fn define(&mut self, inst: &Inst) {
        let pure = inst.op.is_pure();
        let mut level = if pure { 0 } else { self.depth };
        if pure {
            inst.op.for_each_operand(|v| level = level.max(self.levels[v.0 as usize]));
        }
        for r in &inst.results {
            self.levels[r.0 as usize] = level;
        }
        let Some(result) = inst.results.first().map(|r| r.0 as usize).filter(|_| pure) else { return };
        let usize_result = self.types[result] == Type::Scalar(Scalar::Usize);
        let definition = match &inst.op {
            Op::Binary(Binary::Add, a, b) if usize_result => SumDefinition::Add(*a, *b),
            Op::Binary(Binary::Sub, a, b) if usize_result => match self.constants.bits(*b) {
                Some(c) => SumDefinition::Less(*a, c as u32),
                None => return,
            },
            Op::Binary(Binary::Mul, a, b) if usize_result => match (self.constants.bits(*a), self.constants.bits(*b)) {
                (_, Some(c)) => SumDefinition::Times(*a, c as u32),
                (Some(c), _) => SumDefinition::Times(*b, c as u32),
                _ => return,
            },
            Op::Offset { base, terms, bytes } => {
                let moved = self.moved(*base, terms, *bytes);
                self.offsets.push(moved);
                SumDefinition::Offset(self.offsets.len() as u32 - 1)
            }
            _ => return,
        };
        self.definitions[result] = definition;
        self.mixed[result] = match definition {
            SumDefinition::Add(a, b) => {
                let constant = self.constants.bits(a).is_some() || self.constants.bits(b).is_some();
                let levels = self.levels[a.0 as usize] != self.levels[b.0 as usize];
                constant || levels || self.mixed[a.0 as usize] || self.mixed[b.0 as usize]
            }
            SumDefinition::Times(a, _) => self.mixed[a.0 as usize],
            SumDefinition::Less(..) => true,
            _ => false,
        };
    }

    /// Returns `value` as a sum. `outermost` is false for part of another sum or product. There,
    /// without a negative constant, the other terms could wrap although the complete sum does not.
    fn split(&self, value: Value, outermost: bool) -> AddressSum {
        let sum = self.parts(value, outermost);
        if sum.constant.unsigned_abs() <= MAX_ACCESS_CONSTANT {
            return sum;
        }
        match self.constants.bits(value) {
            // A constant index fits `usize`, so it may stay a constant of any size.
            Some(_) => sum,
            None => AddressSum { terms: smallvec![self.term(value, None, 1)], constant: 0 },
        }
    }

    fn parts(&self, value: Value, outermost: bool) -> AddressSum {
        let whole = AddressSum { terms: smallvec![self.term(value, None, 1)], constant: 0 };
        if let Some(c) = self.constants.bits(value) {
            return AddressSum { terms: smallvec![], constant: c as i64 };
        }
        if !self.mixed[value.0 as usize] {
            return whole;
        }
        match self.definitions[value.0 as usize] {
            SumDefinition::Add(a, b) => {
                // A negative constant may be split off one operand only if the other is constant.
                let alone = self.constants.bits(a).is_some() || self.constants.bits(b).is_some();
                let mut sum = self.split(a, outermost && alone);
                let other = self.split(b, outermost && alone);
                sum.terms.extend(other.terms);
                sum.constant += other.constant;
                sum
            }
            SumDefinition::Less(a, c) if outermost => {
                let mut sum = self.split(a, true);
                sum.constant -= i64::from(c);
                sum
            }
            SumDefinition::Times(a, c) => {
                let mut sum = self.split(a, false);
                sum.constant *= i64::from(c);
                for t in &mut sum.terms {
                    match t.scale.checked_mul(c) {
                        Some(s) => t.scale = s,
                        None => return whole,
                    }
                }
                sum
            }
            _ => whole,
        }
    }

    fn term(&self, value: Value, stride: Option<Value>, scale: u32) -> AddressTerm {
        let level = |v: Value| self.levels[v.0 as usize];
        AddressTerm { level: level(value).max(stride.map_or(0, level)), value, stride, scale }
    }

    /// Returns the index times stride. With a non-constant stride the index is not split: its
    /// constant would cost one more product.
    fn scaled(&self, index: Value, stride: Option<Value>) -> AddressSum {
        let Some(stride) = stride else { return self.split(index, true) };
        let Some(c) = self.constants.bits(stride) else {
            return match self.constants.bits(index) {
                Some(i) if i <= 1 << 16 => {
                    let terms = if i == 0 { smallvec![] } else { smallvec![self.term(stride, None, i as u32)] };
                    AddressSum { terms, constant: 0 }
                }
                _ => AddressSum { terms: smallvec![self.term(index, Some(stride), 1)], constant: 0 },
            };
        };
        let mut sum = self.split(index, c <= 1);
        let fits = sum.terms.iter().all(|t| u64::from(t.scale) * c <= u64::from(u32::MAX));
        if !fits {
            return AddressSum { terms: smallvec![self.term(index, Some(stride), 1)], constant: 0 };
        }
        sum.terms.iter_mut().for_each(|t| t.scale *= c as u32);
        sum.constant = sum.constant.saturating_mul(c as i64);
        sum
    }

    fn moved(&self, base: Value, terms: &[(Value, Option<Value>)], bytes: u32) -> MovedBase {
        let mut moved = self.from(base, bytes);
        let alone = terms.len() == 1 && moved.sum.terms.is_empty();
        for (index, stride) in terms {
            let sum = self.scaled(*index, *stride);
            let alone = alone && sum.constant.saturating_mul(bytes.into()) >= i32::MIN.into();
            self.add(&mut moved.sum, sum, *index, *stride, alone);
        }
        moved
    }

    /// Adds `sum`, which is index times stride. If its constant is negative and `alone` is false,
    /// adds the whole product as one term: a negative constant could make the remaining terms wrap.
    fn add(&self, to: &mut AddressSum, sum: AddressSum, index: Value, stride: Option<Value>, alone: bool) {
        if sum.constant < 0 && !alone {
            let whole = match stride.map(|s| self.constants.bits(s)) {
                None => self.term(index, None, 1),
                Some(Some(c)) if c <= u64::from(u32::MAX) => self.term(index, None, c as u32),
                Some(_) => self.term(index, stride, 1),
            };
            to.terms.push(whole);
        } else {
            to.terms.extend(sum.terms);
            to.constant = to.constant.saturating_add(sum.constant);
        }
    }

    /// Returns the offset that defines `base`, if it is in elements of the same size.
    fn from(&self, base: Value, bytes: u32) -> MovedBase {
        if let SumDefinition::Offset(i) = self.definitions[base.0 as usize] {
            let moved = &self.offsets[i as usize];
            if moved.bytes == bytes {
                return moved.clone();
            }
        }
        MovedBase { base, bytes, sum: AddressSum::default() }
    }

    fn place(&mut self, place: &AccessPlace, scalar: Scalar, location: Location, out: &mut Vec<Inst>) -> AccessPlace {
        match place {
            AccessPlace::Address { .. } => place.clone(),
            AccessPlace::Global { base, dims, within } | AccessPlace::Dynamic { base, dims, within } => {
                let terms: SmallVec<[_; 4]> = dims.iter().map(|d| (d.index, d.stride)).collect();
                let moved = self.moved(*base, &terms, place.unit(scalar));
                self.global(moved, within.as_deref(), location, out)
            }
            AccessPlace::Shared { array, indices, within } => {
                self.shared_place(*array, indices, within.as_deref(), location, out)
            }
        }
    }

    fn global(
        &mut self,
        moved: MovedBase,
        within: Option<&ElementOffset>,
        location: Location,
        out: &mut Vec<Inst>,
    ) -> AccessPlace {
        let MovedBase { base, bytes: unit, mut sum } = moved;
        let ty = self.types[base.0 as usize];
        let mut steps: SmallVec<[(AddressSum, u32); 1]> = SmallVec::new();
        let mut inside = within.map_or(0, |w| i64::from(w.offset));
        for step in within.into_iter().flat_map(|w| &w.indices) {
            // A second negative constant could exceed the offset of an access.
            let part = self.split(step.index, sum.constant >= 0);
            inside += part.constant * i64::from(step.bytes);
            steps.push((AddressSum { constant: 0, ..part }, step.bytes));
        }
        let bytes = sum.constant.saturating_mul(i64::from(unit)).saturating_add(inside);
        let mut address = base;
        // Emission adds up to `MAX_ACCESS_BYTES` for the later parts of an access.
        let fits = i32::try_from(bytes).ok().filter(|bytes| *bytes <= i32::MAX - MAX_ACCESS_BYTES);
        let offset = fits.unwrap_or_else(|| {
            // If the offset is too large, the constant moves the base like a term.
            let elements =
                self.constants.get(&mut self.types, Type::Scalar(Scalar::Usize), sum.constant as u64 & 0xffff_ffff);
            self.grow();
            sum.terms.push(self.term(elements, None, 1));
            inside as i32
        });
        steps.insert(0, (sum, unit));
        for (mut sum, bytes) in steps {
            for group in groups(&mut sum.terms) {
                let index = self.sum(group, location, out);
                let op = Op::Offset { base: address, terms: smallvec![(index, None)], bytes };
                address = self.push(op, ty, location, out);
            }
        }
        AccessPlace::Address { base: address, offset }
    }

    /// Splits an `Offset` that has a product or terms of several levels. Each product, and the
    /// terms of each level, become one offset. Returns the last of these offsets, or `None` if
    /// there is nothing to split.
    fn split_offset(
        &mut self,
        base: Value,
        terms: &[(Value, Option<Value>)],
        bytes: u32,
        location: Location,
        out: &mut Vec<Inst>,
    ) -> Option<Op> {
        if let [(_, None)] = terms {
            return None;
        }
        let mut moved = MovedBase { base, bytes, sum: AddressSum::default() };
        for (index, stride) in terms {
            let sum = self.scaled(*index, *stride);
            self.add(&mut moved.sum, sum, *index, *stride, false);
        }
        let constant = u32::try_from(moved.sum.constant).ok()?;
        let ty = self.types[base.0 as usize];
        let mut indices: SmallVec<[Value; 2]> = SmallVec::new();
        for group in groups(&mut moved.sum.terms) {
            indices.push(self.sum(group, location, out));
        }
        if constant != 0 || indices.is_empty() {
            indices.push(self.constant(constant));
        }
        let last = indices.pop()?;
        let mut address = base;
        for index in indices {
            address =
                self.push(Op::Offset { base: address, terms: smallvec![(index, None)], bytes }, ty, location, out);
        }
        Some(Op::Offset { base: address, terms: smallvec![(last, None)], bytes })
    }

    /// Emits Σ terms + constant, and returns its value.
    fn total(&mut self, terms: &[AddressTerm], constant: u32, location: Location, out: &mut Vec<Inst>) -> Value {
        let sum = self.sum(terms, location, out);
        if constant == 0 {
            return sum;
        }
        let constant = self.constant(constant);
        if terms.is_empty() {
            return constant;
        }
        self.push(Op::Binary(Binary::Add, sum, constant), Type::Scalar(Scalar::Usize), location, out)
    }

    /// Emits Σ terms, and returns its value.
    fn sum(&mut self, terms: &[AddressTerm], location: Location, out: &mut Vec<Inst>) -> Value {
        let mut sum = None;
        for t in terms {
            let product = match t.stride {
                Some(s) => {
                    let op = Op::Binary(Binary::Mul, t.value, s);
                    self.push(op, Type::Scalar(Scalar::Usize), location, out)
                }
                None => t.value,
            };
            let term = self.times(product, t.scale, location, out);
            sum = Some(match sum {
                None => term,
                Some(s) => self.push(Op::Binary(Binary::Add, s, term), Type::Scalar(Scalar::Usize), location, out),
            });
        }
        sum.unwrap_or_else(|| self.constant(0))
    }

    fn times(&mut self, value: Value, factor: u32, location: Location, out: &mut Vec<Inst>) -> Value {
        if factor == 1 {
            return value;
        }
        if let SumDefinition::Times(of, by) = self.definitions[value.0 as usize]
            && let Some(both) = by.checked_mul(factor)
        {
            return self.times(of, both, location, out);
        }
        let factor = self.constant(factor);
        self.push(Op::Binary(Binary::Mul, value, factor), Type::Scalar(Scalar::Usize), location, out)
    }

    fn constant(&mut self, n: u32) -> Value {
        let v = self.constants.get(&mut self.types, Type::Scalar(Scalar::Usize), u64::from(n));
        self.grow();
        v
    }

    fn push(&mut self, op: Op, ty: Type, location: Location, out: &mut Vec<Inst>) -> Value {
        self.types.push(ty);
        self.grow();
        let value = Value(self.types.len() as u32 - 1);
        let mut level = 0;
        op.for_each_operand(|v| level = level.max(self.levels[v.0 as usize]));
        self.levels[value.0 as usize] = level;
        out.push(Inst { op, results: [value].into_iter().collect(), location });
        value
    }

    /// Extends the tables to the number of values.
    fn grow(&mut self) {
        self.definitions.resize(self.types.len(), SumDefinition::Opaque);
        self.levels.resize(self.types.len(), 0);
        self.mixed.resize(self.types.len(), false);
    }
}

/// Returns the terms by level, outermost first. Terms that no loop changes come first.
fn groups(terms: &mut [AddressTerm]) -> impl Iterator<Item = &[AddressTerm]> {
    terms.sort_unstable();
    terms.chunk_by(|a, b| a.level == b.level)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
