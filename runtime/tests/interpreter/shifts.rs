//! Shifts by the width or more: the distance is taken modulo the width. `<<` and `>>` are reported,
//! `wrapping_shl` and `wrapping_shr` are not.

use crate::kit::{Kit, findings, out, run};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{Binary, Op};
use runtime::interpreter::{Check, Outcome, Severity};

/// Runs y[0] = a op distance in a kernel of one thread.
fn shifted(op: Binary, ty: Scalar, a: u64, distance: u64) -> (Outcome, u64) {
    let mut k = Kit::new([1, 1, 1], "y[0] = a op n;");
    let y = k.slice("y", ty, true);
    let (a, n, zero) = (k.b.constant(ty, a), k.b.constant(Scalar::U32, distance), k.b.index(0));
    k.at("a op n");
    let value = k.b.scalar(Op::Binary(op, a, n), ty);
    k.at("y[0]");
    k.store(y.at(zero), ty, value);
    let kernel = k.finish();
    let mut bytes = [0u64; 1];
    let bytes_of = bytemuck::cast_slice_mut::<u64, u8>(&mut bytes);
    let outcome = match ty.bytes() {
        1 => run(&kernel, 1, vec![out::<u8>(bytes_of)]),
        2 => run(&kernel, 1, vec![out::<u16>(bytemuck::cast_slice_mut(bytes_of))]),
        4 => run(&kernel, 1, vec![out::<u32>(bytemuck::cast_slice_mut(bytes_of))]),
        _ => run(&kernel, 1, vec![out::<u64>(bytemuck::cast_slice_mut(bytes_of))]),
    };
    (outcome, bytes[0])
}

macro_rules! as_rust {
    ($($ty:ident $scalar:ident),*) => {$(
        #[test]
        fn $ty() {
            for a in [1, 0x5a, $ty::MAX, $ty::MIN] {
                for n in [0, 1, $ty::BITS - 1, $ty::BITS, $ty::BITS + 3, u32::MAX] {
                    let bits = |v: $ty| v as u64 & Scalar::$scalar.mask();
                    let expected = [
                        (Binary::Shl, a.wrapping_shl(n), a.checked_shl(n).is_none()),
                        (Binary::Shr, a.wrapping_shr(n), a.checked_shr(n).is_none()),
                        (Binary::WrappingShl, a.wrapping_shl(n), false),
                        (Binary::WrappingShr, a.wrapping_shr(n), false),
                    ];
                    for (op, value, told) in expected {
                        let (outcome, result) = shifted(op, Scalar::$scalar, bits(a), n.into());
                        assert_eq!(result, bits(value), "{a} {op:?} {n}");
                        let found = if told { vec![(Check::ShiftOverflow, 0)] } else { vec![] };
                        assert_eq!(findings(&outcome), found, "{a} {op:?} {n}: {}", outcome.report);
                    }
                }
            }
        }
    )*};
}
as_rust!(i8 I8, i16 I16, i32 I32, i64 I64, u8 U8, u16 U16, u32 U32, u64 U64);

#[test]
fn shift_overflow_is_a_warning_with_its_values() {
    let (outcome, _) = shifted(Binary::Shr, Scalar::I64, 5, 70);
    let finding = &outcome.report.findings[0];
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.message, "`5 >> 70` shifts a `i64` of 64 bits by at least its width: the distance counts as 6");
}
