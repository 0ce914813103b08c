//! [`Op::Approximate`](kernel_dsl_compiler::ir::Op::Approximate) and
//! [`Op::Bits`](kernel_dsl_compiler::ir::Op::Bits) on whole registers.

use crate::code::BitsOperation;
use crate::code::frame::{LANES, Row};
use crate::code::lanes::{map1, map3, versions};
use kernel_dsl_compiler::ir::Bits;
use kernel_dsl_compiler::{Approximation, integer};

versions! {
    /// `to` ← the byte-wise dot product of `a` and `b`, plus `c`.
    fn dot4(rows: &mut [Row], signs: [bool; 2], to: u32, operands: [u32; 3]);
}

#[inline(always)]
fn dot4(rows: &mut [Row], signs: [bool; 2], to: u32, operands: [u32; 3]) {
    macro_rules! of {
        ($a:literal, $b:literal) => {
            map3(rows, to, operands, |a: u32, b: u32, c: u32| integer::dot4([a, b], [$a, $b], c))
        };
    }
    match signs {
        [true, true] => of!(true, true),
        [true, false] => of!(true, false),
        [false, true] => of!(false, true),
        [false, false] => of!(false, false),
    }
}

/// `to` ← the interpreter's substitute for the approximation of `a`.
pub fn approximate(rows: &mut [Row], what: Approximation, to: u32, a: u32) {
    map1(rows, to, a, |x: f32| what.stand_in(x));
}

impl BitsOperation {
    /// Computes the operation in every lane. Decoding has checked the types of the operands.
    pub fn run(&self, rows: &mut [Row], simd: crate::code::lanes::Simd) {
        if let (Bits::Dot4, [a, b, c]) = (self.what, &*self.operands) {
            let signs = [self.types[0].is_signed(), self.types[1].is_signed()];
            return simd.dot4(rows, signs, self.to.row, [a.row, b.row, c.row]);
        }
        for lane in 0..LANES {
            let mut bits = [0; 4];
            for (bits, operand) in bits.iter_mut().zip(&self.operands) {
                *bits = operand.get(rows, lane);
            }
            let result = self.what.evaluate(&self.types, &bits[..self.operands.len()]);
            self.to.set(rows, lane, result.unwrap_or(0));
        }
    }
}
