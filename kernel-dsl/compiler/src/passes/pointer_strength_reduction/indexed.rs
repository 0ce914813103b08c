//! Rewriting of a carried address as an index relative to a parameter.

use super::super::rewrite::rewrite;
use super::AddressMover;
use super::family::Distance;
use crate::hash::FastMap;
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::{SmallVec, smallvec};
use std::collections::HashSet;

const USIZE: Type = Type::Scalar(Scalar::Usize);

/// The start of an address: a parameter of the kernel, and the element indices added to it.
#[derive(Clone, Debug)]
pub struct AddressRoot {
    base: Value,
    /// Bytes of an element; `None` if the address is the parameter itself.
    bytes: Option<u32>,
    indices: SmallVec<[Value; 4]>,
}

impl AddressRoot {
    fn moved(mut self, index: Value, bytes: u32) -> Option<AddressRoot> {
        self.indices.push(index);
        (*self.bytes.get_or_insert(bytes) == bytes).then_some(self)
    }

    /// Returns this root, if its elements have the size that all `steps` use.
    pub fn of_elements(mut self, steps: &[Distance]) -> Option<AddressRoot> {
        let bytes = *self.bytes.get_or_insert(steps.first()?.1);
        steps.iter().all(|step| step.1 == bytes).then_some(self)
    }

    fn address(&self, index: Value) -> Op {
        Op::Offset { base: self.base, terms: smallvec![(index, None)], bytes: self.bytes.unwrap_or(1) }
    }
}

/// The state of a family while its loop is rewritten.
struct Indices<'f> {
    label: Label,
    /// The index of the carried value.
    carried: usize,
    /// For a `For`, the value to pass out of the loop in place of the address; `None` for a `Loop`.
    loop_result: Option<Value>,
    members: &'f HashSet<Value>,
    root: &'f AddressRoot,
    /// The distance that accesses add and that the index includes.
    distance: Option<Distance>,
    /// The index of each member.
    index: FastMap<Value, Value>,
}

impl AddressMover {
    /// Records the start of an address.
    pub(super) fn note(&mut self, inst: &Inst) {
        let [result] = inst.results[..] else { return };
        if self.types[result.0 as usize] != Type::Global {
            return;
        }
        self.roots[result.0 as usize] = match &inst.op {
            Op::Parameter(_) => Some(AddressRoot { base: result, bytes: None, indices: SmallVec::new() }),
            Op::Offset { base, terms, bytes } => match terms[..] {
                [(index, None)] => self.roots[base.0 as usize].clone().and_then(|root| root.moved(index, *bytes)),
                _ => None,
            },
            _ => None,
        };
    }

    /// Returns the index of an address moved by `distance`, and emits its code before the loop.
    pub(super) fn index(
        &mut self,
        root: &AddressRoot,
        distance: Option<Distance>,
        location: Location,
        out: &mut Vec<Inst>,
    ) -> Value {
        let distance = distance.filter(|d| Some(d.1) == root.bytes).map(|d| d.0);
        let mut sum: Option<Value> = None;
        for index in root.indices.iter().copied().chain(distance) {
            sum = Some(match sum {
                None => index,
                Some(sum) => self.push(Op::Binary(Binary::WrappingAdd, sum, index), USIZE, location, out),
            });
        }
        sum.unwrap_or_else(|| {
            let zero = self.constants.get(&mut self.types, USIZE, 0);
            self.grow();
            zero
        })
    }

    fn push(&mut self, op: Op, ty: Type, location: Location, out: &mut Vec<Inst>) -> Value {
        let value = self.value(ty);
        out.push(Inst { op, results: smallvec![value], location });
        value
    }

    /// Turns the family of a carried value into indices from `root`. The value is number `carried`
    /// of the body's parameters from `first` on.
    pub(super) fn carry_index(
        &mut self,
        body: &mut Region,
        label: Label,
        [first, carried]: [usize; 2],
        members: &HashSet<Value>,
        root: &AddressRoot,
        distance: Option<Distance>,
    ) {
        let index = self.value(USIZE);
        let was = std::mem::replace(&mut body.parameters[first + carried], index);
        let mut indices = Indices {
            label,
            carried,
            loop_result: (first > 0).then_some(index),
            members,
            root,
            distance: distance.filter(|d| Some(d.1) == root.bytes),
            index: FastMap::default(),
        };
        indices.index.insert(was, index);
        self.indices_in(body, true, &mut indices, &FastMap::default());
    }

    /// Rewrites a region of the loop. `addresses` maps members to the addresses that enclosing code
    /// has computed.
    fn indices_in(
        &mut self,
        region: &mut Region,
        outermost: bool,
        family: &mut Indices<'_>,
        addresses: &FastMap<Value, Value>,
    ) {
        let mut addresses = addresses.clone();
        rewrite(&mut region.insts, |inst, before| {
            let replacements = &self.replacements;
            inst.op.map_operands(|v| replacements[v.0 as usize]);
            let location = inst.location;
            if let [result] = inst.results[..]
                && family.members.contains(&result)
            {
                let index = match inst.op {
                    Op::Offset { base, ref terms, .. } => {
                        Op::Binary(Binary::WrappingAdd, family.index[&base], terms[0].0)
                    }
                    Op::Select { condition, yes, no } => {
                        Op::Select { condition, yes: family.index[&yes], no: family.index[&no] }
                    }
                    _ => return true,
                };
                let index = self.push(index, USIZE, location, before);
                family.index.insert(result, index);
                return false;
            }
            // The index already includes the distance that every access adds, so the move is
            // dropped.
            if let (Op::Offset { base, terms, bytes }, Some(distance)) = (&inst.op, family.distance)
                && family.members.contains(base)
                && terms[..] == [(distance.0, None)]
                && *bytes == distance.1
            {
                inst.op = family.root.address(family.index[base]);
                return true;
            }
            let next = match &mut inst.op {
                Op::Yield(values) if outermost => Some(values),
                Op::Continue(label, values) if *label == family.label => Some(values),
                _ => None,
            };
            if let Some(values) = next {
                values[family.carried] = family.index[&values[family.carried]];
            }
            // The result of the loop, which is unused, is an index now.
            if let (Op::Break(label, values), Some(index)) = (&mut inst.op, family.loop_result)
                && *label == family.label
            {
                values[family.carried] = index;
            }
            let mut needed: SmallVec<[Value; 2]> = SmallVec::new();
            inst.op.for_each_operand(|v| needed.extend(family.members.contains(&v).then_some(v)));
            for member in needed {
                addresses.entry(member).or_insert_with(|| {
                    let op = family.root.address(family.index[&member]);
                    self.push(op, Type::Global, location, before)
                });
            }
            inst.op.map_operands(|v| addresses.get(&v).copied().unwrap_or(v));
            for inner in inst.op.regions_mut() {
                self.indices_in(inner, false, family, &addresses);
            }
            true
        });
    }
}
