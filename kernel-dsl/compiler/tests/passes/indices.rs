//! Tests of indices near 2³²: constants that wrap, or that exceed the offset of an access, must
//! address the element that the kernel names.

use crate::evaluator::run_with;
use crate::examples::Write;
use crate::generator;
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::passes::optimize;
use smallvec::smallvec;

/// Stores to `y` at the index that `index` makes of a run-time `usize`, and at the next one.
/// Compares the store's address after passes with that before, for each of `given`, with floats,
/// and with a part of elements of 16 bytes.
fn check(given: &[u32], index: impl Fn(&mut Write, Value) -> Value) {
    check_within(given, |_, _| None, &index);
    check_within(given, |_, _| Some(ElementOffset { bytes: 16, offset: 8, indices: smallvec![] }), &index);
}

fn check_within(
    given: &[u32],
    within: impl Fn(&mut Write, Value) -> Option<ElementOffset>,
    index: &impl Fn(&mut Write, Value) -> Value,
) {
    let mut k = generator::empty();
    k.parameters.truncate(4);
    k.parameters.push(Parameter { name: "v".into(), argument: 2, role: Role::Value(Scalar::Usize) });
    let (mut w, p) = Write::new(k);
    // In a loop, so that a constant moves the base instead of being added to the index in 32 bits.
    let (one, two) = (w.n(1), w.n(2));
    let end = w.add(p[4], two);
    w.each(0, [p[4], end, one], Unroll::Never, |w, v| {
        let (index, within) = (index(w, v), within(w, v));
        let one = w.f(1.0);
        let dims = smallvec![Dim { index, extent: p[3], stride: None }];
        w.store(AccessPlace::Global { base: p[2], dims, within: within.map(Box::new) }, one);
    });
    let before = w.0.finish();
    verify::verify(&before).unwrap_or_else(|e| panic!("{e}\n{before}"));
    let after = optimize(before.clone()).expect("optimizes");
    for v in given {
        let (a, b) = [&before, &*after].map(|k| run_with(k, 0, Some((*v).into()))).into();
        assert!(a == b, "{v}: {a:?}, {b:?}\n{before}\n{}", *after);
    }
}

#[test]
fn a_wrapped_sum_is_not_an_addend() {
    for (by, more) in [(32, 8), (u32::MAX - 15, 8), (u32::MAX, 0), (1 << 31, 12)] {
        check(&[16, 100, 1 << 31, u32::MAX - 15], |w, v| {
            let (by, more) = (w.n(by), w.n(more));
            let wrapped = w.bin(Binary::WrappingAdd, v, by);
            w.add(wrapped, more)
        });
    }
    check(&[16, 100, 1 << 31], |w, v| {
        let (by, less) = (w.n(u32::MAX), w.n(5));
        let wrapped = w.bin(Binary::WrappingAdd, v, by);
        w.bin(Binary::Sub, wrapped, less)
    });
}

#[test]
fn a_large_constant_moves_the_index() {
    for n in [1 << 27, 1 << 28, (1 << 28) + 1, 1 << 29, 3_000_000_000] {
        check(&[n, n + 1, u32::MAX - 2], |w, v| {
            let n = w.n(n);
            w.bin(Binary::Sub, v, n)
        });
        check(&[0, 1, u32::MAX - n - 2], |w, v| {
            let n = w.n(n);
            w.add(v, n)
        });
        // The sum is hoisted separately from the constant if a loop changes one of them.
        check(&[n, n + 1], |w, v| {
            let thread = w.special(Special::Thread(0));
            let (n, sum) = (w.n(n), w.add(v, thread));
            w.bin(Binary::Sub, sum, n)
        });
    }
}

#[test]
fn overflowing_products_of_constants_terminate() {
    // No index is valid here; the passes only have to end.
    check(&[], |w, v| {
        let n = w.n(4_000_000_000);
        let sum = w.add(v, n);
        w.mul(sum, n)
    });
}

#[test]
fn offsets_within_an_element_fit_in_an_access() {
    for n in [(1 << 27) - 1, 1 << 27, (1 << 27) + 1] {
        let within = |w: &mut Write, v: Value| {
            let (low, two, one) = (w.n(1), w.n(2), w.n(1));
            let some = w.bin(Binary::And, v, low);
            let some = w.bin(Binary::Or, some, two);
            let index = w.bin(Binary::Sub, some, one);
            Some(ElementOffset {
                bytes: 16,
                offset: 0,
                indices: smallvec![ElementIndex { index, extent: 4, bytes: 4 }],
            })
        };
        check_within(&[n, n + 1, n + 1000], within, &|w, v| {
            let n = w.n(n);
            w.bin(Binary::Sub, v, n)
        });
    }
}
