//! Base commoning: if only one access in a loop uses an address inside a parameter's memory as its
//! base, the parameter becomes the base.
//!
//! A row of a matrix is a loop-invariant address to which an access adds an index. The address
//! takes 64 bits of registers throughout the loop. The row as an index takes 32, and the parameter
//! is an operand in constant memory. So the index of the access becomes the sum of both:
//!
//! * an index that the loop carries for that access alone starts at the sum: no instruction more,
//!   two registers less;
//! * for any other index, the row's index is added at its use, in a loop that ptxas does not
//!   unroll: one 32-bit addition saves one register.
//!
//! Where several accesses of a loop use a row as base, or a loop uses several rows of a parameter,
//! the rows stay addresses. One addition for each access would cost more. The rewrite is exact:
//! addresses are sums in any order, and a view spans less than 2³² elements.

use super::constants::Constants;
use super::exits::Exits;
use super::pointer_strength_reduction::unrolls;
use super::rewrite::rewrite;
use crate::error::Errors;
use crate::hash::FastMap;
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::{SmallVec, smallvec};

const USIZE: Type = Type::Scalar(Scalar::Usize);

/// Rewrites addresses in loops as indices from parameters.
pub fn base_commoning(kernel: &mut Kernel) -> Result<(), Errors> {
    let n = kernel.values.len();
    let mut counter = AddressCounter {
        constants: Constants::of(kernel),
        types: std::mem::take(&mut kernel.values),
        uses: vec![0; n],
        loops: 0,
        loops_by_row: FastMap::default(),
        rows: FastMap::default(),
        unrolls: false,
        depth: 0,
        levels: vec![0; n],
        sources: FastMap::default(),
    };
    counter.note(&kernel.body);
    counter.count(&kernel.body, None);
    counter.region(&mut kernel.body, None);
    kernel.values = counter.types;
    Ok(())
}

/// The origin of an address.
#[derive(Clone, Copy)]
enum AddressSource {
    /// A parameter.
    Parameter,
    /// An element at an index from the parameter.
    Row(MatrixRow),
}

#[derive(Clone, Copy)]
struct MatrixRow {
    parameter: Value,
    index: Value,
    bytes: u32,
}

/// The carried values of the current loop that are each the index of one access only.
#[derive(Default)]
struct OwnCarried {
    /// The index of each carried value, by the parameter of the body.
    carried: FastMap<Value, usize>,
    /// The carried values whose start the pass changes, each with the index of the row to add.
    moved: Vec<(usize, Value)>,
}

struct AddressCounter {
    types: Vec<Type>,
    constants: Constants,
    /// The number of uses of each value by instructions that are not dead.
    uses: Vec<u32>,
    loops: u32,
    /// For each row, the loops that compute addresses from it.
    loops_by_row: FastMap<Value, SmallVec<[u32; 4]>>,
    /// For each loop and parameter, the number of addresses that the loop computes from rows of the
    /// parameter.
    rows: FastMap<(u32, Value), u32>,
    /// Whether ptxas may unroll the current loop.
    unrolls: bool,
    depth: u32,
    /// The number of loops that each value is defined inside of.
    levels: Vec<u32>,
    /// The origins of addresses.
    sources: FastMap<Value, AddressSource>,
}

impl AddressCounter {
    /// Counts uses in a region of the loop with this number. The count goes from the last
    /// instruction to the first, so that it can skip dead instructions.
    fn count(&mut self, region: &Region, within: Option<u32>) {
        for inst in region.insts.iter().rev() {
            if inst.op.is_pure() && inst.results.iter().all(|r| self.uses[r.0 as usize] == 0) {
                continue;
            }
            let looping = matches!(inst.op, Op::For(_) | Op::Loop { .. });
            self.loops += u32::from(looping);
            let inner = if looping { Some(self.loops) } else { within };
            inst.op.regions().into_iter().for_each(|r| self.count(r, inner));
            inst.op.for_each_operand(|v| self.uses[v.0 as usize] += 1);
            if let (Op::Offset { base, .. }, Some(within)) = (&inst.op, within)
                && let Some(AddressSource::Row(row)) = self.sources.get(base)
            {
                self.loops_by_row.entry(*base).or_default().push(within);
                *self.rows.entry((within, row.parameter)).or_default() += 1;
            }
        }
    }

    /// Returns whether only loops use the row, each with one access, and none of them uses another
    /// row of the parameter.
    fn serves_alone(&self, base: Value, row: MatrixRow) -> bool {
        let Some(loops) = self.loops_by_row.get(&base) else { return false };
        let alone = loops.iter().all(|l| self.rows.get(&(*l, row.parameter)) == Some(&1));
        alone && loops.len() == self.used(base) as usize
    }

    fn used(&self, v: Value) -> u32 {
        self.uses.get(v.0 as usize).copied().unwrap_or_default()
    }

    fn define(&mut self, values: &[Value]) {
        values.iter().for_each(|v| self.levels[v.0 as usize] = self.depth);
    }

    fn region(&mut self, region: &mut Region, mut own: Option<&mut OwnCarried>) {
        self.define(&region.parameters);
        rewrite(&mut region.insts, |inst, before| {
            // The count of uses skips dead code. So dead code must be dropped before it changes a
            // carried value.
            if inst.op.is_pure() && inst.results.iter().all(|r| self.used(*r) == 0) {
                return false;
            }
            self.define(&inst.results);
            match &mut inst.op {
                Op::For(l) => self.counted(l, &inst.results, inst.location, before),
                Op::Loop { body, .. } => self.looping(body, Unroll::Auto, None),
                Op::Offset { .. } => self.access(inst, own.as_deref_mut(), before),
                op => op.regions_mut().into_iter().for_each(|r| self.region(r, own.as_deref_mut())),
            }
            true
        });
    }

    fn looping(&mut self, body: &mut Region, unroll: Unroll, own: Option<&mut OwnCarried>) {
        let outer = std::mem::replace(&mut self.unrolls, unrolls(body, unroll));
        self.depth += 1;
        self.region(body, own);
        self.depth -= 1;
        self.unrolls = outer;
    }

    fn counted(&mut self, l: &mut For, results: &[Value], location: Location, before: &mut Vec<Inst>) {
        let mut own = self.sole_use_carried(l, results);
        self.looping(&mut l.body, l.unroll, Some(&mut own));
        for (k, by) in own.moved {
            l.inits[k] = match self.constants.bits(l.inits[k]) {
                Some(0) => by,
                _ => self.sum(l.inits[k], by, location, before),
            };
        }
    }

    /// Returns the carried values that have only two uses: one instruction, and the addition that
    /// computes their next value.
    fn sole_use_carried(&self, l: &For, results: &[Value]) -> OwnCarried {
        let mut own = OwnCarried::default();
        let [next] = Exits::of(&l.body, l.label).next[..] else { return own };
        for (k, parameter) in l.body.parameters.iter().skip(1).enumerate() {
            let adds = |inst: &Inst| {
                let adds = matches!(inst.op, Op::Binary(Binary::Add | Binary::WrappingAdd, a, _) if a == *parameter);
                adds && inst.results[..] == [next[k]]
            };
            let alone = self.used(*parameter) == 2 && self.used(next[k]) == 1 && self.used(results[k]) == 0;
            if alone && l.body.insts.iter().any(adds) {
                own.carried.insert(*parameter, k);
            }
        }
        own
    }

    /// Records the origins of the addresses in a region.
    fn note(&mut self, region: &Region) {
        for inst in &region.insts {
            inst.op.regions().into_iter().for_each(|r| self.note(r));
            let [result] = inst.results[..] else { continue };
            if self.types[result.0 as usize] != Type::Global {
                continue;
            }
            let source = match &inst.op {
                Op::Parameter(_) => AddressSource::Parameter,
                Op::Offset { base, terms, bytes } => match (self.sources.get(base), &terms[..]) {
                    (Some(AddressSource::Parameter), &[(index, None)]) if self.types[index.0 as usize] == USIZE => {
                        AddressSource::Row(MatrixRow { parameter: *base, index, bytes: *bytes })
                    }
                    _ => continue,
                },
                _ => continue,
            };
            self.sources.insert(result, source);
        }
    }

    /// Rewrites an address in a loop as an index from the parameter, if no other address in the
    /// loop starts from its row.
    fn access(&mut self, inst: &mut Inst, own: Option<&mut OwnCarried>, before: &mut Vec<Inst>) {
        let Op::Offset { base, terms, bytes } = &mut inst.op else { return };
        let (Some(AddressSource::Row(row)), &[(index, None)]) = (self.sources.get(base).copied(), &terms[..]) else {
            return;
        };
        let alone = self.levels[base.0 as usize] < self.depth && self.serves_alone(*base, row);
        if !alone || row.bytes != *bytes || self.types[index.0 as usize] != USIZE {
            return;
        }
        let index = match own.and_then(|own| Some((*own.carried.get(&index)?, own))) {
            Some((k, own)) => {
                own.moved.push((k, row.index));
                index
            }
            None if self.unrolls => return,
            None => self.sum(index, row.index, inst.location, before),
        };
        (*base, *terms) = (row.parameter, smallvec![(index, None)]);
    }

    fn sum(&mut self, a: Value, b: Value, location: Location, out: &mut Vec<Inst>) -> Value {
        let sum = Value(self.types.len() as u32);
        self.types.push(USIZE);
        self.levels.push(self.depth);
        out.push(Inst { op: Op::Binary(Binary::WrappingAdd, a, b), results: smallvec![sum], location });
        sum
    }
}
