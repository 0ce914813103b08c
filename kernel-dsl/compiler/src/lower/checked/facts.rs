//! Known facts about `usize` values: upper bounds and, within a branch or loop, other values that
//! they are less than.

use crate::ir::{Binary, Comparison, DynamicId, Inst, Kernel, Op, Region, Role, Special, TableId, Type, Unary, Value};
use crate::scalar::Scalar;
use std::collections::HashMap;

/// Facts about the values that have been defined so far.
pub(super) struct ValueFacts {
    /// An upper bound of each unsigned value, valid everywhere.
    bounds: Vec<u32>,
    constants: Vec<Option<u64>>,
    definitions: Vec<AssumedDefinition>,
    /// For each value, the first value with the same computation.
    same: Vec<Value>,
    computed: HashMap<PureComputation, Value>,
    /// The argument that each address was computed from.
    arguments: Vec<Option<u32>>,
    /// The array of dynamic size that each address was computed from.
    dynamic: Vec<Option<DynamicId>>,
    /// The table that begins at each address of a table.
    tables: HashMap<Value, TableId>,
    /// Pairs (a, b) with a < b at the current place.
    less: Vec<(Value, Value)>,
    block: [u32; 3],
}

/// A computation whose result does not depend on where it is computed.
#[derive(PartialEq, Eq, Hash)]
enum PureComputation {
    Constant(Type, u64),
    Special(Special),
    Binary(Binary, Value, Value),
}

/// The definition of a value, as far as it matters when the value is assumed to be true or false.
#[derive(Clone, Copy, PartialEq)]
enum AssumedDefinition {
    Opaque,
    Compare(Comparison, Value, Value),
    Both(Value, Value),
    Either(Value, Value),
    Not(Value),
    Min(Value, Value),
}

/// The largest grid that the driver accepts: 2³¹ − 1 × 65535 × 65535 blocks.
const GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];

impl ValueFacts {
    pub fn new(kernel: &Kernel) -> ValueFacts {
        let n = kernel.values.len();
        ValueFacts {
            bounds: vec![u32::MAX; n],
            constants: vec![None; n],
            definitions: vec![AssumedDefinition::Opaque; n],
            same: (0..n as u32).map(Value).collect(),
            computed: HashMap::new(),
            arguments: vec![None; n],
            dynamic: vec![None; n],
            tables: HashMap::new(),
            less: Vec::new(),
            block: kernel.block.max_extents(),
        }
    }

    /// Records what `inst` defines.
    pub fn define(&mut self, kernel: &Kernel, inst: &Inst) {
        let n = kernel.values.len();
        self.bounds.resize(n, u32::MAX);
        self.constants.resize(n, None);
        self.definitions.resize(n, AssumedDefinition::Opaque);
        self.arguments.resize(n, None);
        self.dynamic.resize(n, None);
        self.same.extend((self.same.len() as u32..n as u32).map(Value));
        let Some(result) = inst.results.first() else { return };
        let computation = match inst.op {
            Op::Constant(bits) => Some(PureComputation::Constant(kernel.ty(*result), bits)),
            Op::Special(special) => Some(PureComputation::Special(special)),
            Op::Binary(op, a, b) => Some(PureComputation::Binary(op, self.same(a), self.same(b))),
            _ => None,
        };
        if let Some(computation) = computation {
            self.same[result.0 as usize] = *self.computed.entry(computation).or_insert(*result);
        }
        let at = result.0 as usize;
        if let Op::Table(table) = inst.op {
            self.tables.insert(*result, table);
        }
        if let Op::Constant(bits) = inst.op {
            self.constants[at] = Some(bits);
        }
        self.bounds[at] = self.bound(kernel, &inst.op, *result);
        self.definitions[at] = self.definition(kernel, &inst.op, *result);
        self.arguments[at] = match &inst.op {
            Op::Parameter(i) => {
                let parameter = kernel.parameters.get(*i as usize);
                parameter.filter(|p| matches!(p.role, Role::Address { .. })).map(|p| p.argument)
            }
            Op::Offset { base, .. } => self.argument(*base),
            _ => None,
        };
        self.dynamic[at] = match &inst.op {
            Op::Dynamic { array, .. } => Some(*array),
            Op::Offset { base, .. } => self.dynamic(*base),
            _ => None,
        };
    }

    /// Returns the argument that an address was computed from, if it is the same on every path.
    pub fn argument(&self, address: Value) -> Option<u32> {
        self.arguments[address.0 as usize]
    }

    /// Returns the array of dynamic size that an address was computed from.
    pub fn dynamic(&self, address: Value) -> Option<DynamicId> {
        self.dynamic[address.0 as usize]
    }

    /// Returns the table with this address.
    pub fn table(&self, address: Value) -> Option<TableId> {
        self.tables.get(&address).copied()
    }

    fn same(&self, value: Value) -> Value {
        self.same[value.0 as usize]
    }

    /// Returns the bits of a constant.
    pub fn bits(&self, value: Value) -> Option<u64> {
        self.constants[value.0 as usize]
    }

    fn most(&self, value: Value) -> u32 {
        self.bounds[value.0 as usize]
    }

    fn bound(&self, kernel: &Kernel, op: &Op, result: Value) -> u32 {
        let most = |v: &Value| self.most(*v);
        let constant = |v: &Value| self.bits(*v).map(|b| b as u32);
        let axis = |of: &[u32; 3], axis: u8| of.get(usize::from(axis)).copied().unwrap_or(u32::MAX);
        match op {
            Op::Constant(bits) => u32::try_from(*bits).unwrap_or(u32::MAX),
            Op::Special(Special::Thread(a)) => axis(&self.block, *a).saturating_sub(1),
            Op::Special(Special::Block(a)) => axis(&GRID, *a) - 1,
            Op::Special(Special::Grid(a)) => axis(&GRID, *a),
            Op::Special(Special::BlockDim(a)) => axis(&self.block, *a),
            Op::Binary(op, a, b) => match (op, constant(b)) {
                (Binary::Add, _) => most(a).saturating_add(most(b)),
                (Binary::Mul, _) => most(a).saturating_mul(most(b)),
                // Arithmetic on fixed-width types may wrap.
                (Binary::Sub, _) if kernel.ty(result).scalar() == Some(Scalar::Usize) => most(a),
                (Binary::Div, Some(c)) if c > 0 => most(a) / c,
                (Binary::Div, _) => u32::MAX,
                (Binary::Rem, Some(c)) if c > 0 => most(a).min(c - 1),
                (Binary::Rem, _) => u32::MAX,
                (Binary::Min | Binary::And, _) => most(a).min(most(b)),
                (Binary::Max, _) => most(a).max(most(b)),
                (Binary::Shr | Binary::WrappingShr, Some(c)) => most(a) >> (c & 31),
                _ => u32::MAX,
            },
            Op::Select { yes, no, .. } => most(yes).max(most(no)),
            Op::Cast(a) => match kernel.ty(*a).scalar() {
                Some(Scalar::Bool) => 1,
                Some(Scalar::U8) => u8::MAX.into(),
                Some(Scalar::U16) => u16::MAX.into(),
                Some(Scalar::U32 | Scalar::Usize) => most(a),
                _ => u32::MAX,
            },
            _ => u32::MAX,
        }
    }

    fn definition(&self, kernel: &Kernel, op: &Op, result: Value) -> AssumedDefinition {
        let truth = kernel.ty(result).scalar() == Some(Scalar::Bool);
        match op {
            Op::Compare(c, a, b) if kernel.ty(*a).scalar() == Some(Scalar::Usize) => {
                AssumedDefinition::Compare(*c, *a, *b)
            }
            Op::Binary(Binary::And, a, b) if truth => AssumedDefinition::Both(*a, *b),
            Op::Binary(Binary::Or, a, b) if truth => AssumedDefinition::Either(*a, *b),
            Op::Binary(Binary::Min, a, b) => AssumedDefinition::Min(*a, *b),
            Op::Unary(Unary::Not, a) if truth => AssumedDefinition::Not(*a),
            // `a && b` and `a || b`.
            Op::If { condition, then, otherwise } if truth => {
                match (yielded(then), yielded(otherwise), yielded(then).and_then(|v| self.bits(v))) {
                    (Some(a), Some(b), _) if self.bits(b) == Some(0) => AssumedDefinition::Both(*condition, a),
                    (Some(_), Some(b), Some(1)) => AssumedDefinition::Either(*condition, b),
                    _ => AssumedDefinition::Opaque,
                }
            }
            _ => AssumedDefinition::Opaque,
        }
    }

    /// Returns a mark of the assumptions, for [`forget`](Self::forget).
    pub fn assumption_mark(&self) -> usize {
        self.less.len()
    }

    /// Drops the assumptions made since `mark`.
    pub fn forget(&mut self, mark: usize) {
        self.less.truncate(mark);
    }

    /// Assumes that `condition` is `truth`, until [`forget`](Self::forget).
    pub fn assume(&mut self, condition: Value, truth: bool) {
        match (self.definitions[condition.0 as usize], truth) {
            (AssumedDefinition::Both(a, b), true) | (AssumedDefinition::Either(a, b), false) => {
                self.assume(a, truth);
                self.assume(b, truth);
            }
            (AssumedDefinition::Not(a), _) => self.assume(a, !truth),
            (AssumedDefinition::Compare(Comparison::Lt, a, b), true)
            | (AssumedDefinition::Compare(Comparison::Ge, a, b), false) => {
                self.less.push((self.same(a), self.same(b)));
            }
            (AssumedDefinition::Compare(Comparison::Gt, a, b), true)
            | (AssumedDefinition::Compare(Comparison::Le, a, b), false) => {
                self.less.push((self.same(b), self.same(a)));
            }
            _ => {}
        }
    }

    /// Assumes that `index` is the index of a loop, and therefore below `end`.
    pub fn assume_loop_index(&mut self, index: Value, end: Value) {
        self.bounds[index.0 as usize] = self.most(end).saturating_sub(1);
        self.less.push((index, self.same(end)));
    }

    /// Returns whether adding `step` to the index of a loop that ends at `end` cannot wrap.
    pub fn steps(&self, end: Value, step: Value) -> bool {
        self.most(end).saturating_sub(1).checked_add(self.most(step)).is_some()
    }

    /// Returns whether a < b is known.
    pub fn less(&self, a: Value, b: Value) -> bool {
        self.less.contains(&(self.same(a), self.same(b)))
    }

    /// Returns whether `value` ≤ `last` is known.
    pub fn at_most(&self, value: Value, last: u32) -> bool {
        let below = |(a, b): &(Value, Value)| *a == self.same(value) && self.most(*b) <= last.saturating_add(1);
        self.most(value) <= last || self.less.iter().any(below)
    }

    /// Returns whether a op b, where op is `Add`, `Sub` or `Mul`, cannot overflow.
    pub fn fits(&self, op: Binary, a: Value, b: Value) -> bool {
        match op {
            Binary::Add => self.most(a).checked_add(self.most(b)).is_some(),
            Binary::Mul => self.most(a).checked_mul(self.most(b)).is_some(),
            Binary::Sub => match self.definitions[b.0 as usize] {
                AssumedDefinition::Min(x, y) => [x, y].map(|v| self.same(v)).contains(&self.same(a)),
                _ => self.bits(b) == Some(0),
            },
            _ => true,
        }
    }
}

/// Returns the single value that a region yields.
fn yielded(region: &Region) -> Option<Value> {
    let [value] = region.yielded()?[..] else { return None };
    Some(value)
}
