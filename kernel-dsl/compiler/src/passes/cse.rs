//! Common subexpressions: a pure instruction that computes what a visible one has computed gives way to it.
//!
//! Value numbering, scoped: what a region computes is known in the regions inside it and forgotten at its end.
//!
//! So does a load of memory that nobody writes during the launch give way to one of the same lanes from the same address: an
//! epilogue that an unrolled loop applies row by row loads its bias once. Not across a loop or a barrier of the block: a value
//! that is held there costs a register where there are fewest. Other loads keep their place.

use crate::hash::FastMap;
use crate::error::Errors;
use crate::ir::*;
use crate::ptx::Inline;
use crate::scalar::Scalar;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Merges what is computed twice.
pub fn cse(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut numbering = Numbering {
        stands: (0..kernel.values.len() as u32).map(Value).collect(),
        types: &kernel.values,
        known: FastMap::with_capacity_and_hasher(kernel.values.len() / 2, Default::default()),
        open: vec![],
        scope: 0,
        blocks: vec![],
        loads: FastMap::default(),
        stretch: 0,
    };
    numbering.region(&mut kernel.body);
    Ok(())
}

/// A pure operation as numbers: which it is, the type of its result, and its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    operation: u32,
    ty: u32,
    operands: [u32; 3],
}

/// A load of read-only memory: base and offset, the scalars, and the lanes that do.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LoadKey {
    base: u32,
    offset: u32,
    ty: u32,
    count: u32,
    lanes: u32,
    /// The part of the kernel between two loops or barriers.
    stretch: u32,
}

/// What a load gave.
struct Loaded {
    results: Values,
    /// What the other lanes got.
    otherwise: Values,
    scope: u32,
}

struct Numbering<'k> {
    types: &'k [Type],
    stands: Vec<Value>,
    /// What has computed each operation, and the region that it stands in.
    known: FastMap<Key, (Value, u32)>,
    /// Whether each region, by the order in which they begin, is around the instruction at hand.
    open: Vec<bool>,
    scope: u32,
    /// Blocks of inline PTX so far.
    blocks: Vec<Arc<Inline>>,
    loads: FastMap<LoadKey, Loaded>,
    stretch: u32,
}

impl Numbering<'_> {
    fn region(&mut self, region: &mut Region) {
        let around = std::mem::replace(&mut self.scope, self.open.len() as u32);
        self.open.push(true);
        region.insts.retain_mut(|inst| self.inst(inst));
        self.open[self.scope as usize] = false;
        self.scope = around;
    }

    /// Rewrites an instruction; tells whether it stays.
    fn inst(&mut self, inst: &mut Inst) -> bool {
        let stands = &self.stands;
        inst.op.map_operands(|v| stands[v.0 as usize]);
        if !inst.op.is_pure() {
            if let Op::Load { .. } = inst.op {
                return self.load(inst);
            }
            let parts = matches!(inst.op, Op::For(_) | Op::Loop { .. } | Op::BlockSync);
            self.stretch += u32::from(parts);
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
            self.stretch += u32::from(parts);
            return true;
        }
        let result = inst.results[0];
        let Some(key) = self.key(&inst.op, self.types[result.0 as usize]) else { return true };
        match self.known.entry(key) {
            Entry::Occupied(known) if self.open[known.get().1 as usize] => {
                self.stands[result.0 as usize] = known.get().0;
                false
            }
            Entry::Occupied(mut gone) => {
                gone.insert((result, self.scope));
                true
            }
            Entry::Vacant(new) => {
                new.insert((result, self.scope));
                true
            }
        }
    }
}

const NONE: u32 = u32::MAX;

impl Numbering<'_> {
    /// Looks for a load that has brought the same; tells whether this one stays.
    fn load(&mut self, inst: &Inst) -> bool {
        let Op::Load { place: Place::Address { base, offset }, element, policy: Policy::ReadOnly, guard } = &inst.op
        else {
            return true;
        };
        let key = LoadKey {
            base: base.0,
            offset: *offset as u32,
            ty: type_number(Type::Scalar(*element)),
            count: inst.results.len() as u32,
            lanes: guard.as_ref().map_or(NONE, |g| g.condition.0),
            stretch: self.stretch,
        };
        let otherwise = guard.as_ref().map(|g| g.otherwise.clone()).unwrap_or_default();
        if let Some(known) = self.loads.get(&key)
            && self.open[known.scope as usize]
            && known.otherwise == otherwise
        {
            for (result, stand) in inst.results.iter().zip(&known.results) {
                self.stands[result.0 as usize] = *stand;
            }
            return false;
        }
        self.loads.insert(key, Loaded { results: inst.results.clone(), otherwise, scope: self.scope });
        true
    }

    /// The number of a block of inline PTX, the same for all that say the same.
    fn block(&mut self, code: &Arc<Inline>) -> u32 {
        let at = self.blocks.iter().position(|b| Arc::ptr_eq(b, code) || b == code);
        if at.is_none() {
            self.blocks.push(code.clone());
        }
        at.unwrap_or(self.blocks.len() - 1) as u32
    }

    fn key(&mut self, op: &Op, ty: Type) -> Option<Key> {
        if let Op::Inline { code, inputs } = op {
            let mut operands = [NONE; 3];
            operands.get_mut(..inputs.len())?.iter_mut().zip(inputs).for_each(|(o, v)| *o = v.0);
            return Some(Key { operation: INLINE | self.block(code) << 8, ty: type_number(ty), operands });
        }
        key(op, ty)
    }
}

/// Beyond the numbers of [`key`].
const INLINE: u32 = 14;

fn key(op: &Op, ty: Type) -> Option<Key> {
    let (operation, detail, operands) = match *op {
        Op::Constant(bits) => (0, 0, [bits as u32, (bits >> 32) as u32, NONE]),
        Op::Parameter(i) => (1, 0, [i, NONE, NONE]),
        Op::Special(s) => {
            let (which, axis) = match s {
                Special::Thread(a) => (0, a),
                Special::Block(a) => (1, a),
                Special::Grid(a) => (2, a),
                Special::BlockDim(a) => (3, a),
            };
            (2, which, [u32::from(axis), NONE, NONE])
        }
        Op::Unary(o, a) => (3, o as u32, [a.0, NONE, NONE]),
        Op::Binary(o, a, b) => {
            let (a, b) = if o.commutes() && a > b { (b, a) } else { (a, b) };
            (4, o as u32, [a.0, b.0, NONE])
        }
        Op::MulAdd(a, b, c) => (5, 0, [a.min(b).0, a.max(b).0, c.0]),
        Op::Approximate(what, a) => (13, what as u32, [a.0, NONE, NONE]),
        Op::Bits(what, ref operands) => {
            let at = |k: usize| operands.get(k).map_or(NONE, |v| v.0);
            let detail = match what {
                Bits::Dot4 => 0,
                Bits::Dot2 { high } => 1 + u32::from(high),
                Bits::Permute => 3,
                Bits::FunnelLeft => 4,
                Bits::FunnelRight => 5,
                Bits::Extract => 6,
                Bits::MultiplyHigh => 7,
                Bits::Multiply24 => 8,
                Bits::SaturatingAdd => 9,
                Bits::SaturatingSub => 10,
                // Of four operands.
                Bits::Insert | Bits::Join => return None,
            };
            (12, detail, [at(0), at(1), at(2)])
        }
        Op::Compare(o, a, b) => (6, o as u32, [a.0, b.0, NONE]),
        Op::Select { condition, yes, no } => (7, 0, [condition.0, yes.0, no.0]),
        Op::Cast(a) => (8, 0, [a.0, NONE, NONE]),
        Op::Bitcast(a) => (9, 0, [a.0, NONE, NONE]),
        Op::Table(t) => (13, 0, [t.0, NONE, NONE]),
        Op::Offset { base, ref terms, bytes } => match terms[..] {
            [(index, stride)] => (10, bytes, [base.0, index.0, stride.map_or(NONE, |s| s.0)]),
            _ => return None,
        },
        _ => return None,
    };
    Some(Key { operation: operation | detail << 8, ty: type_number(ty), operands })
}

fn type_number(ty: Type) -> u32 {
    match ty {
        // Beyond all others.
        Type::Scalar(Scalar::Custom(format)) => format.number() << 8,
        Type::Scalar(s) => Scalar::ALL.iter().position(|t| *t == s).unwrap_or(Scalar::ALL.len() + 3) as u32,
        Type::Global => Scalar::ALL.len() as u32,
        Type::Shared => Scalar::ALL.len() as u32 + 1,
        Type::Constant => Scalar::ALL.len() as u32 + 2,
    }
}
