//! Facts that emission collects from a kernel before it starts.

use super::cast::keeps_bits;
use crate::ir::{Kernel, Op, Region, Type, Value};

/// Facts from one walk over a kernel.
pub(super) struct KernelFacts {
    /// The value whose register a value shares: itself, except casts that change no bits.
    roots: Vec<Value>,
    /// How often each root is used.
    uses: Vec<u32>,
    /// The first result of the instruction that uses each root last, in the order of the text.
    last: Vec<Option<Value>>,
    constants: Vec<bool>,
    /// Whether each parameter is used.
    pub parameters: Vec<bool>,
    /// Whether the kernel makes an address in shared memory from a number that is not constant.
    pub shared_base: bool,
}

impl KernelFacts {
    pub fn new(kernel: &Kernel) -> KernelFacts {
        let n = kernel.values.len();
        let mut survey = KernelFacts {
            roots: (0..n as u32).map(Value).collect(),
            uses: vec![0; n],
            last: vec![None; n],
            constants: vec![false; n],
            parameters: vec![false; kernel.parameters.len()],
            shared_base: false,
        };
        let mut read = Vec::new();
        survey.walk(kernel, &kernel.body, &mut read);
        for (parameter, value) in read {
            let used = survey.uses(value) > 0;
            if let Some(parameter) = survey.parameters.get_mut(parameter as usize) {
                *parameter |= used;
            }
        }
        survey
    }

    /// Adds the facts of `region`; `read` collects the parameters that are read, and their values.
    fn walk(&mut self, kernel: &Kernel, region: &Region, read: &mut Vec<(u32, Value)>) {
        for inst in &region.insts {
            match (&inst.op, inst.results.first()) {
                (Op::Constant(_), Some(r)) => self.constants[r.0 as usize] = true,
                (Op::Parameter(i), Some(r)) => read.push((*i, *r)),
                (Op::Cast(a) | Op::Bitcast(a), Some(r)) if !self.constants[a.0 as usize] => {
                    if keeps_bits(kernel.ty(*a), kernel.ty(*r)) {
                        self.roots[r.0 as usize] = self.root(*a);
                        continue;
                    }
                    self.shared_base |= kernel.ty(*r) == Type::Shared;
                }
                // The loop reads its index to increment it.
                (Op::For(l), _) => {
                    if let Some(index) = l.body.parameters.first() {
                        self.uses[index.0 as usize] += 1;
                    }
                }
                _ => {}
            }
            inst.op.for_each_operand(|v| {
                let root = self.roots[v.0 as usize].0 as usize;
                self.uses[root] += 1;
                self.last[root] = inst.results.first().copied();
            });
            for inner in inst.op.regions() {
                self.walk(kernel, inner, read);
            }
            // The loop reads its index after its body, so the index lives past the last instruction
            // of the body.
            if let Op::For(l) = &inst.op
                && let Some(index) = l.body.parameters.first()
            {
                self.last[index.0 as usize] = None;
            }
        }
    }

    /// Returns the value whose register `value` has.
    pub fn root(&self, value: Value) -> Value {
        self.roots[value.0 as usize]
    }

    /// Returns whether nothing after the instruction whose first result is `by` reads the register
    /// of `value`.
    pub fn is_last_use(&self, value: Value, by: Value) -> bool {
        self.last[self.root(value).0 as usize] == Some(by)
    }

    /// Returns how often the register of `value` is read, through any of its values.
    pub fn uses(&self, value: Value) -> u32 {
        self.uses[self.root(value).0 as usize]
    }
}
