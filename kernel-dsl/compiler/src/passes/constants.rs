//! The constants of a kernel that a pass rewrites. Each has one value, defined at the start of the
//! body, where all code sees it.

use crate::hash::FastMap;
use crate::ir::{Inst, Kernel, Location, Op, Region, Type, Value};

/// The constant values, and the value of each constant.
#[derive(Debug, Default)]
pub struct Constants {
    bits: Vec<Option<u64>>,
    known: FastMap<(Type, u64), Value>,
    fresh: Vec<Inst>,
}

impl Constants {
    /// Returns the constants of `kernel`, wherever they are. Constants at the start of the body are
    /// reused.
    pub fn of(kernel: &Kernel) -> Constants {
        let mut constants = Constants { bits: vec![None; kernel.values.len()], ..Constants::default() };
        for inst in &kernel.body.insts {
            let Op::Constant(bits) = inst.op else { break };
            constants.known.insert((kernel.ty(inst.results[0]), bits), inst.results[0]);
        }
        constants.collect(&kernel.body);
        constants
    }

    fn collect(&mut self, region: &Region) {
        for inst in &region.insts {
            match inst.op {
                Op::Constant(bits) => self.bits[inst.results[0].0 as usize] = Some(bits),
                _ => inst.op.regions().into_iter().for_each(|r| self.collect(r)),
            }
        }
    }

    /// Returns the bits of `value`, if it is constant.
    pub fn bits(&self, value: Value) -> Option<u64> {
        self.bits.get(value.0 as usize).copied().flatten()
    }

    /// Returns the constant of type `ty` with these bits; `types` is the kernel's table of values.
    pub fn get(&mut self, types: &mut Vec<Type>, ty: Type, bits: u64) -> Value {
        if let Some(v) = self.known.get(&(ty, bits)) {
            return *v;
        }
        let value = Value(types.len() as u32);
        types.push(ty);
        self.bits.resize(types.len(), None);
        self.bits[value.0 as usize] = Some(bits);
        self.known.insert((ty, bits), value);
        let inst = Inst { op: Op::Constant(bits), results: [value].into_iter().collect(), location: Location(0) };
        self.fresh.push(inst);
        value
    }

    /// Puts the new constants first in the kernel's body.
    pub fn place(self, body: &mut Region) {
        body.insts.splice(0..0, self.fresh);
    }
}
