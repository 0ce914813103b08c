//! Tests that folding and strength reduction are correct for every operand: each operator, with
//! each special constant on either side, for each special value.

use crate::evaluator::run_with;
use crate::examples::{Write, at};
use crate::generator;
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::passes::{fold::fold, strength_reduction::strength_reduction};

fn special(ty: Scalar) -> Vec<u64> {
    let floats = [0.0, 1.0, 2.0, 0.25, 3.0, 1e-40, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN, 1e38, 1.7e38];
    let mut all: Vec<u64> = match ty {
        Scalar::F32 => floats.iter().flat_map(|x| [*x, -*x]).map(|x| u64::from(x.to_bits())).collect(),
        Scalar::F64 => floats.iter().flat_map(|x| [f64::from(*x), -f64::from(*x)]).map(f64::to_bits).collect(),
        _ => [0u64, 1, 2, 3, 7, 8, 64, 100, u64::MAX, 1 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1].to_vec(),
    };
    all.iter_mut().for_each(|x| *x &= ty.mask());
    all.sort_unstable();
    all.dedup();
    all
}

fn operators(ty: Scalar) -> Vec<Binary> {
    use Binary::*;
    match ty {
        Scalar::Bool => vec![And, Or, Xor],
        Scalar::F32 | Scalar::F64 => vec![Add, Sub, Mul, Div, Rem, Min, Max],
        _ => vec![Add, Sub, Mul, Div, Rem, WrappingAdd, WrappingSub, WrappingMul, Min, Max, And, Or, Xor],
    }
}

/// Stores the bits of `v`, split or widened to 32.
fn show(w: &mut Write, y: &[Value], v: Value) {
    let ty = w.0.kernel.ty(v).scalar().expect("a number");
    let wide = match ty {
        Scalar::F64 => w.0.scalar(Op::Bitcast(v), Scalar::U64),
        Scalar::F32 => w.0.scalar(Op::Bitcast(v), Scalar::U32),
        _ => w.0.scalar(Op::Cast(v), Scalar::U64),
    };
    let shift = w.0.constant(Scalar::U32, if ty == Scalar::F32 { 0 } else { 32 });
    let high = w.bin(Binary::Shr, wide, shift);
    for half in [wide, high] {
        let low = w.0.scalar(Op::Cast(half), Scalar::U32);
        let bits = w.0.scalar(Op::Bitcast(low), Scalar::F32);
        let zero = w.n(0);
        w.store(at(y[0], zero, y[1]), bits);
    }
}

/// Compares the kernel that `write` makes of a scalar parameter with its folded and reduced form,
/// for each special value.
fn check(ty: Scalar, what: &str, allowed: impl Fn(u64) -> bool, write: impl Fn(&mut Write, Value) -> Value) {
    let mut k = generator::empty();
    k.parameters.truncate(4);
    k.parameters.push(Parameter { name: "v".into(), argument: 2, role: Role::Value(ty) });
    let (mut w, p) = Write::new(k);
    let v = write(&mut w, p[4]);
    show(&mut w, &p[2..4], v);
    let before = w.0.finish();
    verify::verify(&before).unwrap_or_else(|e| panic!("{e}\n{before}"));
    let mut after = before.clone();
    fold(&mut after).expect("folds");
    strength_reduction(&mut after).expect("reduces");
    for x in special(ty).into_iter().filter(|x| allowed(*x)) {
        let (a, b) = (run_with(&before, 0, Some(x)), run_with(&after, 0, Some(x)));
        assert!(a == b, "{what} of {ty} {x:#x}: {a:?}, {b:?}\n{before}\n{after}");
    }
}

/// Returns the types that arithmetic is done in.
fn computed() -> impl Iterator<Item = Scalar> {
    Scalar::ALL.into_iter().filter(|s| !s.is_half())
}

#[test]
fn binary_identities_keep_values() {
    for ty in computed() {
        for op in operators(ty) {
            for c in special(ty) {
                let division = matches!(op, Binary::Div | Binary::Rem) && !ty.is_float();
                let least = |x: u64| ty.is_signed() && x == 1 << (ty.bits() - 1);
                let minus_one = |x: u64| ty.is_signed() && x == ty.mask();
                let open = |x: u64, d: u64| division && (d == 0 || least(x) && minus_one(d));
                check(
                    ty,
                    &format!("{op:?} by {c:#x}"),
                    |x| !open(x, c),
                    |w, x| {
                        let c = w.0.constant(ty, c);
                        w.bin(op, x, c)
                    },
                );
                check(
                    ty,
                    &format!("{op:?} of {c:#x}"),
                    |x| !open(c, x),
                    |w, x| {
                        let c = w.0.constant(ty, c);
                        w.bin(op, c, x)
                    },
                );
            }
            if !matches!(op, Binary::Div | Binary::Rem) || ty.is_float() {
                check(ty, &format!("{op:?} with itself"), |_| true, |w, x| w.bin(op, x, x));
            }
        }
    }
}

/// Tests a remainder of a remainder and a mask of a mask, which are merged if the constants allow
/// it.
#[test]
fn repeated_remainders_and_masks_keep_values() {
    for ty in [Scalar::U8, Scalar::I32, Scalar::U32, Scalar::U64, Scalar::Usize] {
        for op in [Binary::Rem, Binary::And] {
            for (first, second) in [(32, 8), (8, 32), (12, 4), (12, 8), (7, 7), (5, 1), (96, 33)] {
                check(
                    ty,
                    &format!("{op:?} {first}, then {second}"),
                    |_| true,
                    |w, x| {
                        let (first, second) = (w.0.constant(ty, first), w.0.constant(ty, second));
                        let once = w.bin(op, x, first);
                        w.bin(op, once, second)
                    },
                );
            }
        }
    }
}

#[test]
fn comparison_identities_keep_values() {
    let all = [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];
    for ty in computed() {
        for op in &all[..if ty == Scalar::Bool { 2 } else { 6 }] {
            for c in special(ty) {
                for swap in [false, true] {
                    // Also the inverse.
                    for inverse in [false, true] {
                        check(
                            ty,
                            &format!("{op:?} {c:#x}"),
                            |_| true,
                            |w, x| {
                                let c = w.0.constant(ty, c);
                                let (a, b) = if swap { (c, x) } else { (x, c) };
                                let holds = w.0.compare(*op, a, b);
                                if inverse { w.0.scalar(Op::Unary(Unary::Not, holds), Scalar::Bool) } else { holds }
                            },
                        );
                    }
                }
            }
            check(ty, &format!("{op:?} itself"), |_| true, |w, x| w.0.compare(*op, x, x));
        }
    }
}

#[test]
fn fused_identities_keep_values() {
    for ty in [Scalar::F32, Scalar::F64] {
        for a in special(ty) {
            for b in special(ty) {
                for place in 0..3 {
                    check(
                        ty,
                        &format!("mul_add {a:#x} {b:#x} {place}"),
                        |_| true,
                        |w, x| {
                            let (a, b) = (w.0.constant(ty, a), w.0.constant(ty, b));
                            let [a, b, c] = [[x, a, b], [a, x, b], [a, b, x]][place];
                            w.0.scalar(Op::MulAdd(a, b, c), ty)
                        },
                    );
                }
            }
        }
    }
}

#[test]
fn casts_of_constants_keep_their_value() {
    for from in computed() {
        for c in special(from) {
            for to in computed() {
                if to == Scalar::Bool && from != to || from == Scalar::Bool && to.is_float() {
                    continue;
                }
                check(
                    from,
                    &format!("{c:#x} as {to}"),
                    |_| true,
                    |w, _| {
                        let c = w.0.constant(from, c);
                        w.0.scalar(Op::Cast(c), to)
                    },
                );
            }
            if from == Scalar::Bool {
                continue;
            }
            let unary: &[Unary] = match () {
                () if from.is_float() => {
                    &[Unary::Neg, Unary::Abs, Unary::Sqrt, Unary::Floor, Unary::Ceil, Unary::Trunc, Unary::RoundEven]
                }
                () if from.is_signed() => &[Unary::Neg, Unary::Not, Unary::Abs],
                () => &[Unary::Neg, Unary::Not],
            };
            for op in unary {
                check(
                    from,
                    &format!("{op:?} {c:#x}"),
                    |_| true,
                    |w, _| {
                        let c = w.0.constant(from, c);
                        w.0.scalar(Op::Unary(*op, c), from)
                    },
                );
            }
            if from.is_integer() {
                for op in [Binary::Shl, Binary::Shr, Binary::WrappingShl, Binary::WrappingShr] {
                    for amount in [0, 1, 7, 31, 32, 33, 63, 64] {
                        check(
                            from,
                            &format!("{op:?} by {amount}"),
                            |_| true,
                            |w, x| {
                                let (c, amount) = (w.0.constant(from, c), w.0.constant(Scalar::U32, amount));
                                let (known, moved) = (w.bin(op, c, amount), w.bin(op, x, amount));
                                w.bin(Binary::Xor, known, moved)
                            },
                        );
                    }
                }
                if from.bits() >= 32 {
                    for op in [Unary::CountOnes, Unary::LeadingZeros] {
                        check(
                            from,
                            &format!("{op:?} {c:#x}"),
                            |_| true,
                            |w, _| {
                                let c = w.0.constant(from, c);
                                w.0.scalar(Op::Unary(op, c), Scalar::U32)
                            },
                        );
                    }
                }
            }
        }
    }
}
