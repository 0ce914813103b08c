//! Strength reduction: operations with a constant operand become cheaper forms, where sm_61 has no
//! single instruction for them.
//!
//! A product of an integer with 2ᵏ is a shift: a multiplication takes several XMAD. Unsigned
//! division and remainder by 2ᵏ are a shift and a mask. Division of a float by 2ᵏ is the product
//! with 2⁻ᵏ, which rounds the same real number. All rewrites are exact.

use super::simplify::Simplifier;
use crate::error::Errors;
use crate::ir::*;
use crate::scalar::Scalar;

/// Replaces costly operations that have a power of two as an operand.
pub fn strength_reduction(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut reducer = Reducer(Simplifier::of(kernel));
    reducer.region(&mut kernel.body);
    reducer.0.finish(kernel);
    Ok(())
}

struct Reducer(Simplifier);

impl Reducer {
    fn region(&mut self, region: &mut Region) {
        for inst in &mut region.insts {
            if let Op::Binary(op, a, b) = inst.op {
                inst.op = self.reduced(op, a, b).unwrap_or(Op::Binary(op, a, b));
            }
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
        }
    }

    fn reduced(&mut self, op: Binary, a: Value, b: Value) -> Option<Op> {
        let ty = self.0.ty(a).scalar()?;
        if let (Binary::Mul | Binary::WrappingMul, Some(_), None) =
            (op, self.0.constants.bits(a), self.0.constants.bits(b))
        {
            return self.reduced(op, b, a);
        }
        let by = self.0.constants.bits(b)?;
        if ty.is_float() {
            let inverse = if op == Binary::Div { inverse(ty, by)? } else { return None };
            return Some(Op::Binary(Binary::Mul, a, self.constant(ty, inverse)));
        }
        if !by.is_power_of_two() || self.0.constants.bits(a).is_some() {
            return None;
        }
        let log = u64::from(by.trailing_zeros());
        match op {
            Binary::Mul | Binary::WrappingMul => Some(Op::Binary(Binary::Shl, a, self.constant(Scalar::U32, log))),
            Binary::Div if !ty.is_signed() => Some(Op::Binary(Binary::Shr, a, self.constant(Scalar::U32, log))),
            Binary::Rem if !ty.is_signed() => Some(Op::Binary(Binary::And, a, self.constant(ty, by - 1))),
            _ => None,
        }
    }

    fn constant(&mut self, ty: Scalar, bits: u64) -> Value {
        self.0.constant(Type::Scalar(ty), bits)
    }
}

/// Returns 1/x, if x and 1/x are powers of two and neither is subnormal.
fn inverse(ty: Scalar, bits: u64) -> Option<u64> {
    match ty {
        Scalar::F32 => {
            let x = f32::from_bits(bits as u32);
            let exact = x.is_normal() && bits & 0x7f_ffff == 0 && x.recip().is_normal();
            exact.then(|| u64::from(x.recip().to_bits()))
        }
        _ => {
            let x = f64::from_bits(bits);
            let exact = x.is_normal() && bits & 0xf_ffff_ffff_ffff == 0 && x.recip().is_normal();
            exact.then(|| x.recip().to_bits())
        }
    }
}
