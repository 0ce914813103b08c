//! Pointer strength reduction: chooses the cheapest form of the addresses that loops carry.
//!
//! A view that moves along a matrix is an address that its loop carries and advances, plus a
//! thread's own offset. On sm_61, 64 bits advance by two additions in registers that ptxas then
//! copies. A parameter plus an index takes two instructions, with the parameter in constant memory.
//! So there are two cases:
//!
//! * an address that starts from a parameter is carried as an index relative to the parameter, in
//!   elements and 32 bits. The index includes the distance that every access adds. The address is
//!   computed where it is used (`indexed`);
//! * an address that advances by constants, in a loop that ptxas may unroll, stays an address:
//!   ptxas reaches all copies from one register. The carried address includes the distance that
//!   every access adds. Addresses in shared memory, and those that do not start from a parameter,
//!   are treated the same.
//!
//! The rewrite is exact: addresses are sums in any order, and a view spans less than 2³² elements.

mod family;
mod indexed;

pub use family::unrolls;

use super::constants::Constants;
use super::rewrite::rewrite;
use crate::error::Errors;
use crate::ir::*;
use family::{Distance, Family, LoopAddresses};
use indexed::AddressRoot;
use smallvec::smallvec;

/// Rewrites the addresses that loops carry.
pub fn pointer_strength_reduction(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut used = vec![false; kernel.values.len()];
    mark(&kernel.body, &mut used);
    let constants = Constants::of(kernel);
    let types = std::mem::take(&mut kernel.values);
    let roots = vec![None; types.len()];
    let replacements = (0..types.len() as u32).map(Value).collect();
    let mut mover = AddressMover { types, constants, used, roots, replacements };
    mover.region(&mut kernel.body);
    kernel.values = mover.types;
    mover.constants.place(&mut kernel.body);
    Ok(())
}

/// Marks all used values.
fn mark(region: &Region, used: &mut [bool]) {
    for inst in &region.insts {
        inst.op.for_each_operand(|v| used[v.0 as usize] = true);
        inst.op.regions().into_iter().for_each(|r| mark(r, used));
    }
}

struct AddressMover {
    types: Vec<Type>,
    constants: Constants,
    /// Whether each value of the unchanged kernel is used.
    used: Vec<bool>,
    /// The start of each address that starts from a parameter.
    roots: Vec<Option<AddressRoot>>,
    /// The replacement of each value.
    replacements: Vec<Value>,
}

/// A loop that is being rewritten.
struct Looping<'l> {
    label: Label,
    body: &'l mut Region,
    unroll: Unroll,
    /// The first of the body's parameters that is carried.
    first: usize,
    inits: &'l mut Values,
    /// The final carried values of a `For`; none for a `Loop`, whose results are others.
    results: &'l mut [Value],
    location: Location,
}

impl AddressMover {
    fn value(&mut self, ty: Type) -> Value {
        let value = Value(self.types.len() as u32);
        self.types.push(ty);
        self.roots.push(None);
        self.replacements.push(value);
        value
    }

    /// Extends the tables to the number of values.
    fn grow(&mut self) {
        for n in self.replacements.len()..self.types.len() {
            self.roots.push(None);
            self.replacements.push(Value(n as u32));
        }
    }

    fn region(&mut self, region: &mut Region) {
        rewrite(&mut region.insts, |inst, before| {
            let replacements = &self.replacements;
            inst.op.map_operands(|v| replacements[v.0 as usize]);
            let location = inst.location;
            match &mut inst.op {
                Op::For(l) => {
                    let For { label, body, inits, unroll, .. } = &mut **l;
                    let (results, unroll) = (&mut inst.results, *unroll);
                    self.looping(Looping { label: *label, body, unroll, first: 1, inits, results, location }, before);
                }
                Op::Loop { label, inits, body } => {
                    // The results of a `Loop` come from `Break`s, which are ordinary uses of
                    // carried values.
                    let results = &mut [];
                    let unroll = Unroll::Auto;
                    self.looping(Looping { label: *label, body, unroll, first: 0, inits, results, location }, before);
                }
                _ => self.note(inst),
            }
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
            true
        });
    }

    /// Rewrites a loop.
    fn looping(&mut self, looping: Looping<'_>, before: &mut Vec<Inst>) {
        let Looping { label, body, unroll, first, inits, results, location } = looping;
        let carried: Vec<Value> = body.parameters[first..].to_vec();
        let used = |k: usize| results.get(k).is_some_and(|r| self.used[r.0 as usize]);
        let is_address = |k: &usize| self.types[carried[*k].0 as usize].scalar().is_none() && !used(*k);
        let addresses: Vec<usize> = (0..carried.len()).filter(is_address).collect();
        if addresses.is_empty() {
            return;
        }
        let straight = unrolls(body, unroll);
        let found: Vec<(usize, Family, Option<Distance>)> = {
            let known = LoopAddresses::of(body, label, &self.types);
            let families = addresses.into_iter().filter_map(|k| Some((k, known.family(k, carried[k])?)));
            families.map(|(k, family)| (k, known.distance(k, &family), family)).map(|(k, d, f)| (k, f, d)).collect()
        };
        for (k, family, distance) in found {
            let even = family.steps.iter().all(|(index, _)| self.constants.bits(*index).is_some());
            let root = self.roots[inits[k].0 as usize].clone();
            let root = root.filter(|_| !(straight && even)).and_then(|root| root.of_elements(&family.steps));
            match (root, distance) {
                (Some(root), distance) => {
                    inits[k] = self.index(&root, distance, location, before);
                    if let Some(result) = results.get_mut(k) {
                        *result = self.value(self.types[inits[k].0 as usize]);
                    }
                    self.carry_index(body, label, [first, k], &family.members, &root, distance);
                }
                (None, Some((index, bytes))) => {
                    let moved = self.value(self.types[carried[k].0 as usize]);
                    let op = Op::Offset { base: inits[k], terms: smallvec![(index, None)], bytes };
                    before.push(Inst { op, results: smallvec![moved], location });
                    inits[k] = moved;
                    self.drop_included_moves(body, &family);
                }
                (None, None) => {}
            }
        }
    }

    /// Drops the moves before accesses: the family includes their distance already.
    fn drop_included_moves(&mut self, region: &mut Region, family: &Family) {
        region.insts.retain_mut(|inst| {
            let replacements = &self.replacements;
            inst.op.map_operands(|v| replacements[v.0 as usize]);
            if let (Op::Offset { base, .. }, [result]) = (&inst.op, &inst.results[..])
                && family.members.contains(base)
                && !family.members.contains(result)
            {
                self.replacements[result.0 as usize] = *base;
                return false;
            }
            inst.op.regions_mut().into_iter().for_each(|r| self.drop_included_moves(r, family));
            true
        });
    }
}
