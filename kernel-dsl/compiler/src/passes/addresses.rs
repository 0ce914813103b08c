//! Places to addresses: one base for accesses that differ by a constant, the constant in the instruction.
//!
//! An index is a sum of terms and a constant. The constant goes into the access as bytes; this is exact because
//! arithmetic on `usize` does not wrap. The terms are summed by the loop in which they change, outermost first, so that
//! what does not change in a loop can leave it, and each partial sum moves the base: [`Op::Offset`] with one term.
//! Elements are counted in 32 bits from the address that a parameter gives: a view spans less than 2³² elements.
//! Addresses in shared memory are bytes in 32 bits, from a constant.

use super::constants::Constants;
use super::rewrite::rewrite;
use crate::error::{Error, Errors};
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::{SmallVec, smallvec};

/// The largest constant, in elements, that is taken out of an index. Beyond, an access could not add it anyway, and the
/// base cannot be moved back by it.
const LARGEST: u64 = 1 << 28;

/// Makes every place an address.
pub fn addresses(kernel: &mut Kernel) -> Result<(), Errors> {
    let constants = Constants::of(kernel);
    let types = std::mem::take(&mut kernel.values);
    let mut body = std::mem::take(&mut kernel.body);
    let n = types.len();
    let mut lowerer = Lowerer {
        kernel,
        types,
        constants,
        definitions: vec![Definition::Opaque; n],
        levels: vec![0; n],
        mixed: vec![false; n],
        offsets: Vec::new(),
        dynamic: Vec::new(),
        errors: Vec::new(),
        depth: 0,
    };
    lowerer.region(&mut body);
    let Lowerer { types, constants, errors, .. } = lowerer;
    if !errors.is_empty() {
        return Err(Errors(errors));
    }
    constants.place(&mut body);
    kernel.values = types;
    kernel.body = body;
    Ok(())
}

/// How a value is made, as far as taking it apart needs.
#[derive(Clone, Copy, PartialEq)]
enum Definition {
    Opaque,
    Add(Value, Value),
    /// Less a constant.
    Less(Value, u32),
    /// Times a constant.
    Times(Value, u32),
    /// An `Offset`, by index into the table of them.
    Offset(u32),
}

/// A term of an address: value times a constant, or times another value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    level: u32,
    value: Value,
    stride: Option<Value>,
    scale: u32,
}

/// Σ terms + constant, in elements.
#[derive(Clone, Default)]
struct Sum {
    terms: SmallVec<[Term; 4]>,
    constant: i64,
}

/// Where an `Offset` leads: its own base, and how far from there in elements.
#[derive(Clone)]
struct Moved {
    base: Value,
    /// Bytes of an element.
    bytes: u32,
    sum: Sum,
}

struct Lowerer<'k> {
    kernel: &'k Kernel,
    types: Vec<Type>,
    constants: Constants,
    definitions: Vec<Definition>,
    /// The number of loops around the point from which on a value no longer changes.
    levels: Vec<u32>,
    /// Whether a value is a sum that is worth taking apart: it has a constant addend, or addends of several levels.
    mixed: Vec<bool>,
    offsets: Vec<Moved>,
    /// Bytes of each array of dynamic size so far.
    dynamic: Vec<Value>,
    errors: Vec<Error>,
    depth: u32,
}

impl Lowerer<'_> {
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
                | Op::Poison { place, element, .. }
                | Op::Atomic { place, element, .. } => *place = self.place(place, *element, inst.location, before),
                Op::Dynamic { array, extents } => {
                    let (array, extents) = (*array, std::mem::take(extents));
                    inst.op = self.dynamic(array, &extents, inst.location, before);
                }
                _ => {}
            }
            true
        });
    }

    /// Notes how a value is made.
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
            Op::Binary(Binary::Add, a, b) if usize_result => Definition::Add(*a, *b),
            Op::Binary(Binary::Sub, a, b) if usize_result => match self.constants.bits(*b) {
                Some(c) => Definition::Less(*a, c as u32),
                None => return,
            },
            Op::Binary(Binary::Mul, a, b) if usize_result => match (self.constants.bits(*a), self.constants.bits(*b)) {
                (_, Some(c)) => Definition::Times(*a, c as u32),
                (Some(c), _) => Definition::Times(*b, c as u32),
                _ => return,
            },
            Op::Offset { base, terms, bytes } => {
                let moved = self.moved(*base, terms, *bytes);
                self.offsets.push(moved);
                Definition::Offset(self.offsets.len() as u32 - 1)
            }
            _ => return,
        };
        self.definitions[result] = definition;
        self.mixed[result] = match definition {
            Definition::Add(a, b) => {
                let constant = self.constants.bits(a).is_some() || self.constants.bits(b).is_some();
                let levels = self.levels[a.0 as usize] != self.levels[b.0 as usize];
                constant || levels || self.mixed[a.0 as usize] || self.mixed[b.0 as usize]
            }
            Definition::Times(a, _) => self.mixed[a.0 as usize],
            Definition::Less(..) => true,
            _ => false,
        };
    }

    /// `value` as a sum. `outermost` is false within another sum or product, where a negative constant could make the sum
    /// of the other terms wrap although the whole does not.
    fn split(&self, value: Value, outermost: bool) -> Sum {
        let sum = self.parts(value, outermost);
        if sum.constant.unsigned_abs() <= LARGEST {
            return sum;
        }
        match self.constants.bits(value) {
            // A constant alone is no more than `usize` holds.
            Some(_) => sum,
            None => Sum { terms: smallvec![self.term(value, None, 1)], constant: 0 },
        }
    }

    fn parts(&self, value: Value, outermost: bool) -> Sum {
        let whole = Sum { terms: smallvec![self.term(value, None, 1)], constant: 0 };
        if let Some(c) = self.constants.bits(value) {
            return Sum { terms: smallvec![], constant: c as i64 };
        }
        if !self.mixed[value.0 as usize] {
            return whole;
        }
        match self.definitions[value.0 as usize] {
            Definition::Add(a, b) => {
                // With one part constant, the other stands alone still.
                let alone = self.constants.bits(a).is_some() || self.constants.bits(b).is_some();
                let mut sum = self.split(a, outermost && alone);
                let other = self.split(b, outermost && alone);
                sum.terms.extend(other.terms);
                sum.constant += other.constant;
                sum
            }
            Definition::Less(a, c) if outermost => {
                let mut sum = self.split(a, true);
                sum.constant -= i64::from(c);
                sum
            }
            Definition::Times(a, c) => {
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

    fn term(&self, value: Value, stride: Option<Value>, scale: u32) -> Term {
        let level = |v: Value| self.levels[v.0 as usize];
        Term { level: level(value).max(stride.map_or(0, level)), value, stride, scale }
    }

    /// Index times stride. With a stride that is not constant the index stays whole: its constant would become one more
    /// product.
    fn scaled(&self, index: Value, stride: Option<Value>) -> Sum {
        let Some(stride) = stride else { return self.split(index, true) };
        let Some(c) = self.constants.bits(stride) else {
            return match self.constants.bits(index) {
                Some(i) if i <= 1 << 16 => {
                    let terms = if i == 0 { smallvec![] } else { smallvec![self.term(stride, None, i as u32)] };
                    Sum { terms, constant: 0 }
                }
                _ => Sum { terms: smallvec![self.term(index, Some(stride), 1)], constant: 0 },
            };
        };
        let mut sum = self.split(index, c <= 1);
        let fits = sum.terms.iter().all(|t| u64::from(t.scale) * c <= u64::from(u32::MAX));
        if !fits {
            return Sum { terms: smallvec![self.term(index, Some(stride), 1)], constant: 0 };
        }
        sum.terms.iter_mut().for_each(|t| t.scale *= c as u32);
        sum.constant = sum.constant.saturating_mul(c as i64);
        sum
    }

    fn moved(&self, base: Value, terms: &[(Value, Option<Value>)], bytes: u32) -> Moved {
        let mut moved = self.from(base, bytes);
        let alone = terms.len() == 1 && moved.sum.terms.is_empty();
        for (index, stride) in terms {
            let sum = self.scaled(*index, *stride);
            self.add(&mut moved.sum, sum, *index, *stride, alone);
        }
        moved
    }

    /// Adds `sum`, which is index times stride, or that product whole where a negative constant is not alone.
    fn add(&self, to: &mut Sum, sum: Sum, index: Value, stride: Option<Value>, alone: bool) {
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

    /// Where `base` leads from, if it is an offset in elements of the same size.
    fn from(&self, base: Value, bytes: u32) -> Moved {
        if let Definition::Offset(i) = self.definitions[base.0 as usize] {
            let moved = &self.offsets[i as usize];
            if moved.bytes == bytes {
                return moved.clone();
            }
        }
        Moved { base, bytes, sum: Sum::default() }
    }

    fn place(&mut self, place: &Place, scalar: Scalar, location: Location, out: &mut Vec<Inst>) -> Place {
        match place {
            Place::Address { .. } => place.clone(),
            Place::Global { base, dims, within } | Place::Dynamic { base, dims, within } => {
                let terms: SmallVec<[_; 4]> = dims.iter().map(|d| (d.index, d.stride)).collect();
                let moved = self.moved(*base, &terms, place.unit(scalar));
                self.global(moved, within.as_deref(), location, out)
            }
            Place::Shared { array, indices, within } => {
                let array = &self.kernel.shared[array.0 as usize];
                let mut sum = Sum::default();
                let parts =
                    indices.iter().zip(&array.strides).map(|(i, s)| (*i, s.wrapping_mul(array.element.bytes())));
                let mut parts: SmallVec<[(Value, u32); 4]> = parts.collect();
                let steps = within.iter().flat_map(|w| w.indices.iter().map(|s| (s.index, s.bytes)));
                let offset = within.as_ref().map_or(0, |w| w.offset);
                match (array.swizzle(), parts.len()) {
                    (Some(swizzle), rank @ 2..) => {
                        let mut column = self.bytes(std::iter::once(parts[rank - 1]).chain(steps));
                        column.constant += i64::from(offset);
                        let row = self.split(parts[rank - 2].0, true);
                        parts.truncate(rank - 1);
                        sum = self.swizzled(swizzle, row, column, location, out);
                    }
                    _ => {
                        parts.extend(steps);
                        sum.constant += i64::from(offset);
                    }
                }
                let rest = self.bytes(parts.into_iter());
                sum.terms.extend(rest.terms);
                sum.constant += rest.constant + i64::from(array.offset);
                self.shared(sum, location, out)
            }
        }
    }

    /// Σ index · bytes in shared memory. Bytes there are few: sums cannot come near 2³², and so may be grouped freely.
    fn bytes(&self, parts: impl Iterator<Item = (Value, u32)>) -> Sum {
        let mut sum = Sum::default();
        for (index, bytes) in parts {
            let part = self.split(index, true);
            sum.terms.extend(part.terms.into_iter().map(|t| Term { scale: t.scale.wrapping_mul(bytes), ..t }));
            sum.constant += part.constant * i64::from(bytes);
        }
        sum
    }

    /// Where `column`, in bytes, lies in a swizzled row. Only the low bits of both count: what moves a column by whole turns, and
    /// a row by whole periods, stays outside of the exclusive or, and so in what accesses share.
    fn swizzled(&mut self, swizzle: Swizzle, row: Sum, column: Sum, at: Location, out: &mut Vec<Inst>) -> Sum {
        let turn = (swizzle.mask + 1) * Swizzle::PIECE;
        let whole = |t: &Term| t.stride.is_none() && t.scale.is_multiple_of(turn);
        let (high, low): (SmallVec<[Term; 4]>, SmallVec<[Term; 4]>) = column.terms.into_iter().partition(whole);
        let low_constant = column.constant.rem_euclid(turn.into());
        let mut sum = Sum { terms: high, constant: column.constant - low_constant };
        let period = swizzle.period();
        let moving: SmallVec<[Term; 4]> =
            row.terms.into_iter().filter(|t| t.stride.is_some() || !t.scale.is_multiple_of(period)).collect();
        let row_constant = row.constant.rem_euclid(period.into()) as u32;
        let usize = Type::Scalar(Scalar::Usize);
        let mut bits = None;
        if !moving.is_empty() && swizzle.mask > 0 {
            let mut row = self.total(&moving, row_constant, at, out);
            if swizzle.shift > 0 {
                let shift = self.constants.get(&mut self.types, Type::Scalar(Scalar::U32), swizzle.shift.into());
                self.grow();
                row = self.push(Op::Binary(Binary::Shr, row, shift), usize, at, out);
            }
            let mask = self.constant(swizzle.mask);
            let piece = self.push(Op::Binary(Binary::And, row, mask), usize, at, out);
            bits = Some(self.times(piece, Swizzle::PIECE, at, out));
        }
        let fixed = if bits.is_none() { swizzle.bits(row_constant) } else { 0 };
        match (bits, low.is_empty()) {
            (None, true) => sum.constant += low_constant ^ i64::from(fixed),
            (None, false) if fixed == 0 => {
                sum.terms.extend(low);
                sum.constant += low_constant;
            }
            (None, false) => {
                let low = self.total(&low, low_constant as u32, at, out);
                let fixed = self.constant(fixed);
                let moved = self.push(Op::Binary(Binary::Xor, low, fixed), usize, at, out);
                sum.terms.push(self.term(moved, None, 1));
            }
            (Some(bits), true) if low_constant == 0 => sum.terms.push(self.term(bits, None, 1)),
            (Some(bits), _) => {
                // Bytes inside a piece stay what they are, and can stay constant.
                let inside = if low.is_empty() { low_constant % i64::from(Swizzle::PIECE) } else { 0 };
                let low = self.total(&low, (low_constant - inside) as u32, at, out);
                let moved = self.push(Op::Binary(Binary::Xor, bits, low), usize, at, out);
                sum.terms.push(self.term(moved, None, 1));
                sum.constant += inside;
            }
        }
        sum
    }

    /// The address of an array of dynamic size: behind the static ones, and those of dynamic size before it.
    fn dynamic(&mut self, array: DynamicId, extents: &[Value], at: Location, out: &mut Vec<Inst>) -> Op {
        let Some(element) = self.kernel.dynamic.get(array.0 as usize).map(|a| a.element) else {
            self.errors.push(self.kernel.error(at, "IR is malformed: there is no such array of dynamic size"));
            return Op::Constant(0);
        };
        if array.0 as usize != self.dynamic.len() || self.depth > 0 {
            self.errors.push(self.kernel.error(at, "arrays of dynamic size are made once each, in order"));
            return Op::Constant(0);
        }
        let usize = Type::Scalar(Scalar::Usize);
        let mut bytes = self.constant(element.bytes());
        for extent in extents {
            bytes = self.push(Op::Binary(Binary::Mul, bytes, *extent), usize, at, out);
        }
        let (slack, mask) = (self.constant(15), self.constant(!15));
        let up = self.push(Op::Binary(Binary::Add, bytes, slack), usize, at, out);
        let size = self.push(Op::Binary(Binary::And, up, mask), usize, at, out);
        let first = u64::from(self.kernel.dynamic_offset());
        let before = std::mem::take(&mut self.dynamic);
        let op = match before.is_empty() {
            true => Op::Constant(first),
            false => {
                let base = self.constants.get(&mut self.types, Type::Shared, first);
                self.grow();
                Op::Offset { base, terms: before.iter().map(|b| (*b, None)).collect(), bytes: 1 }
            }
        };
        self.dynamic = before;
        self.dynamic.push(size);
        op
    }

    fn global(&mut self, moved: Moved, within: Option<&Within>, location: Location, out: &mut Vec<Inst>) -> Place {
        let Moved { base, bytes: unit, mut sum } = moved;
        let ty = self.types[base.0 as usize];
        let mut steps: SmallVec<[(Sum, u32); 1]> = SmallVec::new();
        let mut inside = within.map_or(0, |w| i64::from(w.offset));
        for step in within.into_iter().flat_map(|w| &w.indices) {
            let part = self.split(step.index, true);
            inside += part.constant * i64::from(step.bytes);
            steps.push((Sum { constant: 0, ..part }, step.bytes));
        }
        let bytes = sum.constant.saturating_mul(i64::from(unit)).saturating_add(inside);
        let mut address = base;
        let offset = i32::try_from(bytes).unwrap_or_else(|_| {
            // Beyond what an access can add: the constant moves the base like a term.
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
        Place::Address { base: address, offset }
    }

    fn shared(&mut self, mut sum: Sum, location: Location, out: &mut Vec<Inst>) -> Place {
        let mut address = self.constants.get(&mut self.types, Type::Shared, 0);
        self.grow();
        for group in groups(&mut sum.terms) {
            let mut group: SmallVec<[Term; 4]> = group.into();
            // Several terms share the factor that all of them have: one shift for all.
            let mut shared = group.iter().map(|t| t.scale).fold(0, gcd).max(1);
            if let [_] = group[..] {
                shared = 1;
            }
            group.iter_mut().for_each(|t| t.scale /= shared);
            let index = self.sum(&group, location, out);
            let index = self.times(index, shared, location, out);
            let op = Op::Offset { base: address, terms: smallvec![(index, None)], bytes: 1 };
            address = self.push(op, Type::Shared, location, out);
        }
        Place::Address { base: address, offset: sum.constant as i32 }
    }

    /// Σ terms + constant as a value.
    fn total(&mut self, terms: &[Term], constant: u32, location: Location, out: &mut Vec<Inst>) -> Value {
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

    /// Σ terms as a value.
    fn sum(&mut self, terms: &[Term], location: Location, out: &mut Vec<Inst>) -> Value {
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
        if let Definition::Times(of, by) = self.definitions[value.0 as usize]
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

    /// Keeps the tables as long as that of values.
    fn grow(&mut self) {
        self.definitions.resize(self.types.len(), Definition::Opaque);
        self.levels.resize(self.types.len(), 0);
        self.mixed.resize(self.types.len(), false);
    }
}

/// The terms by level, outermost first; those that a loop does not change come first.
fn groups(terms: &mut [Term]) -> impl Iterator<Item = &[Term]> {
    terms.sort_unstable();
    terms.chunk_by(|a, b| a.level == b.level)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
