//! Builds IR, instruction by instruction, region by region.

use super::{Comparison, Inst, Kernel, Location, Op, Region, Type, Value, Values};
use crate::scalar::Scalar;

/// Appends instructions to the innermost open region of a kernel under construction.
#[derive(Clone, Debug)]
pub struct Builder {
    /// The kernel so far; its body is set by [`Builder::finish`].
    pub kernel: Kernel,
    /// The source location of the next instructions.
    pub location: Location,
    open: Vec<Region>,
}

impl Builder {
    /// Returns a builder whose open region is the body of `kernel`, still empty.
    pub fn new(kernel: Kernel) -> Builder {
        Builder { kernel, location: Location(0), open: vec![Region::default()] }
    }

    /// Appends `op` with a new result of each type. Appends nothing after a terminator, because
    /// that code is unreachable.
    pub fn emit(&mut self, op: Op, results: impl IntoIterator<Item = Type>) -> Values {
        let results: Values = results.into_iter().map(|t| self.kernel.value(t)).collect();
        if !self.ended() {
            let inst = Inst { op, results: results.clone(), location: self.location };
            self.open.last_mut().expect("a region is open").insts.push(inst);
        }
        results
    }

    /// Appends the instructions of a region without parameters, except its final `Yield`.
    pub fn splice(&mut self, mut region: Region) {
        if self.ended() {
            return;
        }
        if let Some(Inst { op: Op::Yield(_), .. }) = region.insts.last() {
            region.insts.pop();
        }
        self.open.last_mut().expect("a region is open").insts.extend(region.insts);
    }

    /// Returns the operation that defines `value`, if it is in the open region.
    pub fn defined(&self, value: Value) -> Option<&Op> {
        let insts = &self.open.last()?.insts;
        // Values have ascending numbers, so the search ends at the first instruction with lower
        // ones.
        let mut since = insts.iter().rev().take_while(|i| i.results.last().is_none_or(|last| *last >= value));
        since.find(|i| i.results.contains(&value)).map(|i| &i.op)
    }

    /// Appends `op`, which has no result.
    pub fn effect(&mut self, op: Op) {
        self.emit(op, []);
    }

    /// Appends `op`, which has one result.
    pub fn value(&mut self, op: Op, ty: Type) -> Value {
        self.emit(op, [ty])[0]
    }

    /// Appends `op`, which has one scalar result.
    pub fn scalar(&mut self, op: Op, ty: Scalar) -> Value {
        self.value(op, Type::Scalar(ty))
    }

    /// Adds a constant of type `ty`, given by its bits.
    pub fn constant(&mut self, ty: Scalar, bits: u64) -> Value {
        self.scalar(Op::Constant(bits & ty.mask()), ty)
    }

    /// Adds a `usize` constant.
    pub fn index(&mut self, n: u32) -> Value {
        self.constant(Scalar::Usize, u64::from(n))
    }

    /// Adds a comparison.
    pub fn compare(&mut self, comparison: Comparison, a: Value, b: Value) -> Value {
        self.scalar(Op::Compare(comparison, a, b), Scalar::Bool)
    }

    /// Opens a region, to which later instructions are appended. Returns its parameters.
    pub fn enter(&mut self, parameters: impl IntoIterator<Item = Type>) -> Values {
        let parameters: Values = parameters.into_iter().map(|t| self.kernel.value(t)).collect();
        self.open.push(Region { parameters: parameters.clone(), insts: Vec::new() });
        parameters
    }

    /// Closes the innermost region. A region that does not end with a terminator gets an empty
    /// `Yield`.
    pub fn leave(&mut self) -> Region {
        if !self.ended() {
            self.effect(Op::Yield(Values::new()));
        }
        self.open.pop().expect("a region is open")
    }

    /// Returns whether the innermost region has its terminator, so that nothing may follow.
    pub fn ended(&self) -> bool {
        self.open.last().and_then(|r| r.insts.last()).is_some_and(|i| i.op.is_terminator())
    }

    /// Returns the kernel with its body.
    pub fn finish(mut self) -> Kernel {
        self.kernel.body = self.leave();
        self.kernel
    }
}
