//! Vector accesses in parts whose alignment is known.
//!
//! The kernel has no variables in registers any more, and its loops are unrolled. So [`Multiples`]
//! knows the elements of register arrays one by one.

use super::USIZE;
use super::multiples::Multiples;
use crate::hir::Monomorphic;
use crate::ir::{AccessPlace, Binary, Guard, Inst, Kernel, Location, MAX_VECTOR_BYTES, Op, Region, Value, Values};
use crate::scalar::Scalar;
use smallvec::smallvec;

/// Splits each vector access into the largest parts that are known to be aligned. Each launch meets
/// the contract of `program`, if that is known.
pub(super) fn split_unaligned(kernel: &mut Kernel, program: Option<&Monomorphic>) {
    let multiples = Multiples::of(kernel, program);
    let body = std::mem::take(&mut kernel.body);
    let mut splitter = AccessSplitter { kernel, multiples, out: Vec::new() };
    let body = splitter.region(body);
    kernel.body = body;
}

struct AccessSplitter<'k> {
    kernel: &'k mut Kernel,
    multiples: Multiples,
    /// The instructions of the region written so far.
    out: Vec<Inst>,
}

impl AccessSplitter<'_> {
    fn region(&mut self, region: Region) -> Region {
        let outer = std::mem::take(&mut self.out);
        for inst in region.insts {
            self.inst(inst);
        }
        Region { parameters: region.parameters, insts: std::mem::replace(&mut self.out, outer) }
    }

    fn inst(&mut self, mut inst: Inst) {
        match &mut inst.op {
            Op::Load { place, element, .. } => {
                let n = inst.results.len();
                let part = self.aligned_part(place, *element, n);
                if part < n {
                    return self.split_load(&inst, part);
                }
            }
            Op::Store { place, element, values, .. } => {
                let n = values.len();
                let part = self.aligned_part(place, *element, n);
                if part < n {
                    return self.split_store(&inst, part);
                }
            }
            op => {
                for region in op.regions_mut() {
                    *region = self.region(std::mem::take(region));
                }
            }
        }
        self.out.push(inst);
    }

    /// Returns the number of scalars of the largest aligned parts of an access to `n` of them.
    fn aligned_part(&self, place: &AccessPlace, element: Scalar, n: usize) -> usize {
        let align = self.multiples.alignment(self.kernel, place, element);
        // All parts but the first begin at a multiple of their size from the first.
        let most = if align == MAX_VECTOR_BYTES { n } else { (align / element.bytes()).max(1) as usize };
        let whole = 1 << n.trailing_zeros().min(usize::BITS - 1);
        most.min(whole)
    }

    /// Loads parts of `n` scalars.
    fn split_load(&mut self, inst: &Inst, n: usize) {
        let Op::Load { place, element, policy, guard } = &inst.op else { return };
        for (part, results) in inst.results.chunks(n).enumerate() {
            let first = part * n;
            let place = self.element(place, *element, first as u32, inst.location);
            let guard = guard.as_ref().map(|g| Guard {
                condition: g.condition,
                otherwise: g.otherwise[first..first + results.len()].iter().copied().collect(),
            });
            let op = Op::Load { place, element: *element, policy: *policy, guard };
            self.out.push(Inst { op, results: results.iter().copied().collect(), location: inst.location });
        }
    }

    /// Stores parts of `n` scalars.
    fn split_store(&mut self, inst: &Inst, n: usize) {
        let Op::Store { place, element, values, guard } = &inst.op else { return };
        for (part, values) in values.chunks(n).enumerate() {
            let place = self.element(place, *element, (part * n) as u32, inst.location);
            let op = Op::Store { place, element: *element, values: values.iter().copied().collect(), guard: *guard };
            self.out.push(Inst { op, results: Values::new(), location: inst.location });
        }
    }

    /// Returns the place of the `i`th scalar of an access.
    fn element(&mut self, place: &AccessPlace, element: Scalar, i: u32, at: Location) -> AccessPlace {
        let mut place = place.clone();
        let (last, within) = match &mut place {
            AccessPlace::Global { dims, within, .. } | AccessPlace::Dynamic { dims, within, .. } => {
                (dims.last_mut().map(|d| &mut d.index), within)
            }
            AccessPlace::Shared { indices, within, .. } => (indices.last_mut(), within),
            AccessPlace::Address { offset, .. } => {
                *offset += (i * element.bytes()) as i32;
                return place;
            }
        };
        let mut skipped = i;
        if let Some(within) = within {
            within.offset += i * element.bytes();
            // Continues with the following elements.
            skipped = if within.indices.is_empty() { within.offset / within.bytes } else { 0 };
            within.offset -= skipped * within.bytes;
        }
        if let Some(index) = last.filter(|_| skipped > 0) {
            let skipped = self.emit(Op::Constant(skipped.into()), at);
            *index = self.emit(Op::Binary(Binary::WrappingAdd, *index, skipped), at);
        }
        place
    }

    fn emit(&mut self, op: Op, location: Location) -> Value {
        let value = self.kernel.value(USIZE);
        self.out.push(Inst { op, results: smallvec![value], location });
        value
    }
}
