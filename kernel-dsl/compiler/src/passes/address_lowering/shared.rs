//! Addresses in shared memory: byte offsets in a small range, so that sums may be regrouped freely.

use super::{AddressLowerer, AddressSum, AddressTerm, gcd, groups};
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::{SmallVec, smallvec};

impl AddressLowerer<'_> {
    /// Returns the address of the element of a shared array with these indices.
    pub(super) fn shared_place(
        &mut self,
        array: SharedId,
        indices: &[Value],
        within: Option<&ElementOffset>,
        location: Location,
        out: &mut Vec<Inst>,
    ) -> AccessPlace {
        let array = &self.kernel.shared[array.0 as usize];
        let mut sum = AddressSum::default();
        let parts = indices.iter().zip(&array.strides).map(|(i, s)| (*i, s.wrapping_mul(array.element.bytes())));
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

    /// Returns Σ index · bytes in shared memory. The sums stay far below 2³², so they may be
    /// grouped freely.
    fn bytes(&self, parts: impl Iterator<Item = (Value, u32)>) -> AddressSum {
        let mut sum = AddressSum::default();
        for (index, bytes) in parts {
            let part = self.split(index, true);
            sum.terms.extend(part.terms.into_iter().map(|t| AddressTerm { scale: t.scale.wrapping_mul(bytes), ..t }));
            sum.constant += part.constant * i64::from(bytes);
        }
        sum
    }

    /// Returns the position of `column`, in bytes, in a swizzled row. Only the low bits of both
    /// matter. Terms that move the column or the row by whole periods stay outside the exclusive
    /// or, so accesses can share them.
    fn swizzled(
        &mut self,
        swizzle: Swizzle,
        row: AddressSum,
        column: AddressSum,
        at: Location,
        out: &mut Vec<Inst>,
    ) -> AddressSum {
        let exchanged_bytes = (swizzle.mask + 1) * Swizzle::PIECE;
        let whole = |t: &AddressTerm| t.stride.is_none() && t.scale.is_multiple_of(exchanged_bytes);
        let (high, low): (SmallVec<[AddressTerm; 4]>, SmallVec<[AddressTerm; 4]>) =
            column.terms.into_iter().partition(whole);
        let low_constant = column.constant.rem_euclid(exchanged_bytes.into());
        let mut sum = AddressSum { terms: high, constant: column.constant - low_constant };
        let period = swizzle.period();
        let moving: SmallVec<[AddressTerm; 4]> =
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
                // The swizzle does not change the offset inside a piece, so it stays a constant.
                let inside = if low.is_empty() { low_constant % i64::from(Swizzle::PIECE) } else { 0 };
                let low = self.total(&low, (low_constant - inside) as u32, at, out);
                let moved = self.push(Op::Binary(Binary::Xor, bits, low), usize, at, out);
                sum.terms.push(self.term(moved, None, 1));
                sum.constant += inside;
            }
        }
        sum
    }

    /// Returns the address of an array of dynamic size: after the static arrays, and after earlier
    /// arrays of dynamic size.
    pub(super) fn dynamic(&mut self, array: DynamicId, extents: &[Value], at: Location, out: &mut Vec<Inst>) -> Op {
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

    fn shared(&mut self, mut sum: AddressSum, location: Location, out: &mut Vec<Inst>) -> AccessPlace {
        let mut address = self.constants.get(&mut self.types, Type::Shared, 0);
        self.grow();
        for group in groups(&mut sum.terms) {
            let mut group: SmallVec<[AddressTerm; 4]> = group.into();
            // Terms with a common factor are added first, so that one shift scales the sum.
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
        AccessPlace::Address { base: address, offset: sum.constant as i32 }
    }
}
