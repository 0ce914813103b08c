//! Known powers of two that divide the integers and addresses of a kernel.
//!
//! The checked form keeps a vector access whole only if its address is a multiple of its bytes in
//! every launch. A launch guarantees facts about its arguments. Wrapping modulo 2³² does not change
//! which powers of two divide a sum, difference or product.
//!
//! The analysis starts from the assumption that 2³² divides everything, and visits the kernel until
//! no exponent falls any more. So a variable that a loop advances keeps the powers of two that
//! divide both its start and its steps.

use crate::hir::Monomorphic;
use crate::ir::{
    self, AccessPlace, Binary, Dim, ElementOffset, Inst, Kernel, Label, MAX_VECTOR_BYTES, Op, Region, Role,
    SharedArray, Type, Value,
};
use crate::launch::{self, Promise};
use crate::scalar::Scalar;
use std::collections::HashMap;

/// The exponent of a number that is zero modulo 2³².
const ZERO: u32 = 32;

/// For each value, an exponent `e` such that 2ᵉ divides the value: an integer of at most 32 bits,
/// or an address in bytes.
pub(super) struct Multiples {
    exponents: Vec<u32>,
    locals: Vec<u32>,
    /// The exponent of each parameter of the entry.
    parameters: Vec<u32>,
    constants: HashMap<Value, u32>,
    /// The constructs around the current instruction.
    open: Vec<NamedConstruct>,
    changed: bool,
}

/// A construct that `Break` or `Continue` may name.
struct NamedConstruct {
    label: Label,
    results: Vec<Value>,
    /// The carried parameters, if it is a loop.
    carried: Vec<Value>,
}

impl Multiples {
    /// Analyzes a kernel whose accesses name indices, not addresses. Launches meet the contract of
    /// `program`, if that is known.
    pub fn of(kernel: &Kernel, program: Option<&Monomorphic>) -> Multiples {
        let mut multiples = Multiples {
            exponents: vec![ZERO; kernel.values.len()],
            locals: vec![ZERO; kernel.locals.len()],
            parameters: parameters(kernel, program),
            constants: HashMap::new(),
            open: Vec::new(),
            changed: true,
        };
        while std::mem::take(&mut multiples.changed) {
            multiples.region(kernel, &kernel.body);
        }
        multiples
    }

    /// Returns the largest power of two, at most [`MAX_VECTOR_BYTES`], that is known to divide the
    /// address of an access to scalars of type `element`, in bytes.
    pub fn alignment(&self, kernel: &Kernel, place: &AccessPlace, element: Scalar) -> u32 {
        let unit = power(place.unit(element));
        let exponent = match place {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                dims.iter().map(|dim| self.dim(dim) + unit).fold(self.get(*base), u32::min)
            }
            AccessPlace::Shared { array, indices, .. } => {
                let SharedArray { strides, offset, element, .. } = &kernel.shared[array.0 as usize];
                let terms = indices.iter().zip(strides);
                let terms = terms.map(|(index, stride)| self.get(*index) + power(*stride) + power(element.bytes()));
                terms.fold(power(*offset), u32::min)
            }
            AccessPlace::Address { base, offset } => self.get(*base).min(power(offset.cast_unsigned())),
        };
        let exponent = place.element_offset().map_or(exponent, |within| exponent.min(self.within(within)));
        1 << exponent.min(MAX_VECTOR_BYTES.trailing_zeros())
    }

    fn dim(&self, dim: &Dim) -> u32 {
        self.get(dim.index) + dim.stride.map_or(0, |stride| self.get(stride))
    }

    fn within(&self, within: &ElementOffset) -> u32 {
        let steps = within.indices.iter().map(|step| self.get(step.index) + power(step.bytes));
        steps.fold(power(within.offset), u32::min)
    }

    fn get(&self, value: Value) -> u32 {
        self.exponents.get(value.0 as usize).copied().unwrap_or(0)
    }

    /// Records that no more than 2^`exponent` is known to divide `value`.
    fn meet(&mut self, value: Value, exponent: u32) {
        let known = &mut self.exponents[value.0 as usize];
        self.changed |= exponent < *known;
        *known = exponent.min(*known);
    }

    fn meet_all(&mut self, values: &[Value], from: &[Value]) {
        for (value, from) in values.iter().zip(from) {
            self.meet(*value, self.get(*from));
        }
    }

    fn region(&mut self, kernel: &Kernel, region: &Region) {
        for inst in &region.insts {
            self.inst(kernel, inst);
        }
    }

    /// Visits a region of a construct. `yields` are the values that its `Yield` passes on.
    fn enter(&mut self, kernel: &Kernel, region: &Region, yields: &[&[Value]]) {
        self.region(kernel, region);
        if let Some(values) = region.yielded() {
            yields.iter().for_each(|to| self.meet_all(to, values));
        }
    }

    fn inst(&mut self, kernel: &Kernel, inst: &Inst) {
        match &inst.op {
            Op::If { then, otherwise, .. } => {
                self.enter(kernel, then, &[&inst.results]);
                self.enter(kernel, otherwise, &[&inst.results]);
            }
            Op::For(l) => {
                let Some((index, carried)) = l.body.parameters.split_first() else { return };
                self.meet(*index, self.get(l.start).min(self.get(l.step)));
                self.meet_all(carried, &l.inits);
                self.meet_all(&inst.results, &l.inits);
                self.open.push(NamedConstruct {
                    label: l.label,
                    results: inst.results.to_vec(),
                    carried: carried.to_vec(),
                });
                self.enter(kernel, &l.body, &[carried, &inst.results]);
                self.open.pop();
            }
            Op::Loop { label, inits, body } => {
                self.meet_all(&body.parameters, inits);
                let carried = body.parameters.to_vec();
                self.open.push(NamedConstruct { label: *label, results: inst.results.to_vec(), carried });
                self.enter(kernel, body, &[&body.parameters]);
                self.open.pop();
            }
            Op::Block { label, body } => {
                self.open.push(NamedConstruct { label: *label, results: inst.results.to_vec(), carried: Vec::new() });
                self.enter(kernel, body, &[&inst.results]);
                self.open.pop();
            }
            Op::Break(label, values) => {
                if let Some(of) = self.open.iter().find(|of| of.label == *label) {
                    let results = of.results.clone();
                    self.meet_all(&results, values);
                }
            }
            Op::Continue(label, values) => {
                if let Some(of) = self.open.iter().find(|of| of.label == *label) {
                    // A counted loop may end after the iteration.
                    let (carried, results) = (of.carried.clone(), of.results.clone());
                    self.meet_all(&carried, values);
                    if carried.len() == results.len() {
                        self.meet_all(&results, values);
                    }
                }
            }
            Op::WriteLocal { local, value, .. } => {
                let (exponent, known) = (self.get(*value), &mut self.locals[local.0 as usize]);
                self.changed |= exponent < *known;
                *known = exponent.min(*known);
            }
            op => {
                if let (Op::Constant(bits), [result]) = (op, &inst.results[..]) {
                    self.constants.extend(u32::try_from(*bits).ok().map(|bits| (*result, bits)));
                }
                let exponent = self.exponent(kernel, op);
                for result in &inst.results {
                    // Wider integers, floats and truth values are not tracked.
                    let followed = match kernel.ty(*result) {
                        Type::Scalar(scalar) => scalar.is_integer() && scalar.bits() <= 32,
                        Type::Global | Type::Constant | Type::Shared => true,
                    };
                    self.meet(*result, if followed { exponent } else { 0 });
                }
            }
        }
    }

    /// Returns the exponent of the result of an operation without regions.
    fn exponent(&self, kernel: &Kernel, op: &Op) -> u32 {
        let get = |value: &Value| self.get(*value);
        match op {
            Op::Constant(bits) => u32::try_from(*bits).map_or(0, power),
            Op::Parameter(parameter) => self.parameters.get(*parameter as usize).copied().unwrap_or(0),
            Op::Dynamic { .. } => power(MAX_VECTOR_BYTES),
            Op::Offset { base, terms, bytes } => {
                let terms =
                    terms.iter().map(|(index, stride)| get(index) + stride.as_ref().map_or(0, get) + power(*bytes));
                terms.fold(get(base), u32::min)
            }
            Op::Binary(operator, a, b) => self.binary(kernel, *operator, *a, *b),
            Op::Select { yes, no, .. } => get(yes).min(get(no)),
            Op::Cast(a) => match kernel.ty(*a).scalar() {
                Some(from) if from.is_integer() && from.bits() <= 32 => get(a),
                _ => 0,
            },
            Op::ReadLocal { local, .. } => self.locals[local.0 as usize],
            _ => 0,
        }
    }

    fn binary(&self, kernel: &Kernel, operator: Binary, a: Value, b: Value) -> u32 {
        let (left, right) = (self.get(a), self.get(b));
        let constant = self.constants.get(&b).copied();
        let unsigned = kernel.ty(a).scalar().is_some_and(|s| !s.is_signed());
        match operator {
            Binary::Add | Binary::WrappingAdd | Binary::Sub | Binary::WrappingSub => left.min(right),
            Binary::Min | Binary::Max | Binary::Or | Binary::Xor => left.min(right),
            Binary::Mul | Binary::WrappingMul => (left + right).min(ZERO),
            Binary::And => left.max(right),
            // a % b is a minus a multiple of b, unless b is 0.
            Binary::Rem if unsigned && constant.is_some_and(|b| b > 0) => left.min(right),
            Binary::Div if unsigned && constant.is_some_and(u32::is_power_of_two) => left.saturating_sub(right),
            Binary::Shr | Binary::WrappingShr if unsigned && constant.is_some_and(|b| b < ZERO) => {
                left.saturating_sub(constant.unwrap_or(0))
            }
            // The low zeros of the operand stay.
            Binary::Shl | Binary::WrappingShl => match constant {
                Some(shift) if shift < ZERO => (left + shift).min(ZERO),
                _ => left,
            },
            _ => 0,
        }
    }
}

/// Returns the exponent of each parameter of the entry.
fn parameters(kernel: &Kernel, program: Option<&Monomorphic>) -> Vec<u32> {
    let arguments = program.map(Monomorphic::arguments).unwrap_or_default();
    let argument = |parameter: u32| {
        let mut of = arguments.iter().enumerate().filter(|(_, argument)| argument.parameter == parameter);
        of.next().map(|(index, _)| index as u32).filter(|_| of.next().is_none())
    };
    let promises = program.map(launch::promises).unwrap_or_default();
    let promised = |parameter: &ir::Parameter, outer: bool| {
        let multiples = promises.iter().filter_map(|promise| match (*promise, parameter.role) {
            (Promise::Aligned { parameter: of, elements }, Role::Address { element, .. }) => {
                (argument(of.0) == Some(parameter.argument)).then(|| power(elements) + power(element.bytes()))
            }
            (Promise::Aligned { parameter: of, elements }, Role::Stride(_)) => {
                (outer && argument(of.0) == Some(parameter.argument)).then(|| power(elements))
            }
            (Promise::Extent { parameter: of, dimension, multiple }, Role::Extent(of_dimension)) => {
                let is = argument(of.0) == Some(parameter.argument) && u32::from(dimension) == of_dimension;
                is.then(|| power(multiple))
            }
            _ => None,
        });
        multiples.max().unwrap_or(0).min(ZERO)
    };
    let exponent = |parameter: &ir::Parameter| {
        let rank = |p: &ir::Parameter| p.argument == parameter.argument && matches!(p.role, Role::Extent(_));
        let dimensions = kernel.parameters.iter().filter(|p| rank(p)).count() as u32;
        let outer = matches!(parameter.role, Role::Stride(dimension) if dimension + 1 < dimensions);
        let natural = match parameter.role {
            Role::Address { element, .. } => power(element.align()),
            _ => 0,
        };
        natural.max(promised(parameter, outer))
    };
    kernel.parameters.iter().map(exponent).collect()
}

/// Returns the exponent of the largest power of two that divides `n`.
fn power(n: u32) -> u32 {
    n.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pointer and an index that a loop advances.
    const CARRIED: &str = "\
kernel k = k for sm_61, block 32×1×1
    parameter 0 x: global {16 bytes, align 16}
    parameter 1 y: global mut f32
    parameter 1 y_len: usize (extent 0)
    parameter 2 n: usize
%0: global = parameter x
%1: global = parameter y
%2: usize = parameter y_len
%3: usize = parameter n
%4: usize = thread.x
%5: usize = mul %4, 8
%6: usize = mul %3, 4
%7: global, %8: usize = 'l0: for %9: usize in %5..%2 step 32 (%10: global = %0, %11: usize = %6) {
    %12: global = offset %10 + 4 * (%9)
    %13: usize = sub %11, %5
    %14: usize = rem %13, 12
    %15: usize = rem %13, %3
    yield %12, %13
}
";

    #[test]
    fn loops_keep_the_common_powers_of_two() {
        let kernel: Kernel = CARRIED.parse().unwrap_or_else(|fault| panic!("{fault:?}"));
        let multiples = Multiples::of(&kernel, None);
        let exponent = |value: u32| multiples.get(Value(value));
        // The alignment of their elements is all that is known of the arguments.
        assert_eq!([exponent(0), exponent(1), exponent(2), exponent(3), exponent(4)], [4, 2, 0, 0, 0]);
        assert_eq!([exponent(5), exponent(6), exponent(9)], [3, 2, 3]);
        // 16 bytes, and a multiple of 8 elements of 4 bytes.
        assert_eq!([exponent(10), exponent(12), exponent(7)], [4, 4, 4]);
        assert_eq!([exponent(11), exponent(13), exponent(8)], [2, 2, 2]);
        // A remainder by 0 is any number.
        assert_eq!([exponent(14), exponent(15)], [2, 0]);
    }
}
