//! The values of a kernel that affect its behavior.
//!
//! The bounds of accesses are used by checks only, and so are all values computed only for them.

use kernel_dsl::compiler::ir::{AccessPlace, Inst, Kernel, Op, Region, Shuffle, Value};

/// Values and locals with a use other than the bounds of accesses.
pub struct Observed {
    values: Vec<bool>,
    locals: Vec<bool>,
    /// Whether each value is a constant with a single use.
    own_constants: Vec<bool>,
    /// Whether each value is the mask of a shuffle.
    masks: Vec<bool>,
    /// Whether each value is an operand of a comparison.
    compared: Vec<bool>,
}

impl Observed {
    /// Analyzes a lowered kernel.
    pub fn of(kernel: &Kernel) -> Observed {
        let n = kernel.values.len();
        let mut observed = Observed {
            values: vec![false; n],
            locals: vec![false; kernel.locals.len()],
            own_constants: vec![false; n],
            masks: vec![false; n],
            compared: vec![false; n],
        };
        while observed.region(&kernel.body) {}
        let mut uses = vec![0u32; n];
        observed.count(&kernel.body, &mut uses);
        for (own, uses) in observed.own_constants.iter_mut().zip(uses) {
            *own &= uses == 1;
        }
        observed
    }

    /// Returns whether a change of the instruction may change the behavior of the kernel.
    pub fn matters(&self, inst: &Inst) -> bool {
        match &inst.op {
            Op::WriteLocal { local, .. } => self.locals[local.0 as usize],
            Op::ReadLocal { .. } => inst.results.iter().any(|value| self.is(*value)),
            op => !op.is_pure() || inst.results.iter().any(|value| self.is(*value)),
        }
    }

    /// Returns whether a value is a constant with a single use.
    pub fn is_own_constant(&self, value: Value) -> bool {
        self.own_constants[value.0 as usize]
    }

    /// Returns whether a value is the mask of an XOR shuffle.
    pub fn is_mask(&self, value: Value) -> bool {
        self.masks[value.0 as usize]
    }

    /// Returns whether a value is compared with another.
    pub fn is_compared(&self, value: Value) -> bool {
        self.compared[value.0 as usize]
    }

    fn is(&self, value: Value) -> bool {
        self.values[value.0 as usize]
    }

    /// Visits a region, and returns whether anything new was found.
    fn region(&mut self, region: &Region) -> bool {
        let mut new = false;
        for inst in region.insts.iter().rev() {
            for inner in inst.op.regions() {
                new |= self.region(inner);
            }
            if !self.matters(inst) {
                continue;
            }
            if let Op::ReadLocal { local, .. } = &inst.op {
                new |= !std::mem::replace(&mut self.locals[local.0 as usize], true);
            }
            operands(&inst.op, |value| new |= !std::mem::replace(&mut self.values[value.0 as usize], true));
        }
        new
    }

    fn count(&mut self, region: &Region, uses: &mut [u32]) {
        for inst in &region.insts {
            if let (Op::Constant(_), [value]) = (&inst.op, &inst.results[..]) {
                self.own_constants[value.0 as usize] = true;
            }
            if let Op::Shuffle { mode: Shuffle::Xor, selector, .. } = inst.op {
                self.masks[selector.0 as usize] = true;
            }
            if let Op::Compare(_, a, b) = inst.op {
                [a, b].into_iter().for_each(|value| self.compared[value.0 as usize] = true);
            }
            inst.op.for_each_operand(|value| uses[value.0 as usize] += 1);
            inst.op.regions().into_iter().for_each(|inner| self.count(inner, uses));
        }
    }
}

/// Calls `f` on the operands of an operation, except for the extents of checks.
fn operands(op: &Op, mut f: impl FnMut(Value)) {
    let mut extents = Vec::new();
    let mut of = |place: &AccessPlace| match place {
        AccessPlace::Global { dims, .. } | AccessPlace::Dynamic { dims, .. } => {
            extents.extend(dims.iter().map(|dim| dim.extent))
        }
        AccessPlace::Shared { .. } | AccessPlace::Address { .. } => {}
    };
    match op {
        Op::Load { place, .. } | Op::Store { place, .. } | Op::MarkUndef { place, .. } => of(place),
        Op::Atomic { place, .. } => of(place),
        Op::CopyAsync(copy) => {
            of(&copy.to);
            of(&copy.from);
        }
        _ => {}
    }
    // Each extent is skipped once only, because a value may be an index as well.
    op.for_each_operand(|value| match extents.iter().position(|extent| *extent == value) {
        Some(at) => _ = extents.swap_remove(at),
        None => f(value),
    });
}
