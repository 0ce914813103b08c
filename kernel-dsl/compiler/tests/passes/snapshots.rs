//! Each pass before and after, on a kernel made for it, and whole kernels through all passes.

use crate::examples::{self, Write, at, at2};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::*;
use kernel_dsl_compiler::passes::{self, Run, optimise};
use smallvec::smallvec;

/// The text of `kernel`'s body before and after `run`, and after `dce`, so that what has become unused is not there.
fn before_and_after(kernel: Kernel, runs: &[Run]) -> String {
    verify::verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    let mut after = kernel.clone();
    for run in runs.iter().chain(&[passes::dce::dce as Run]) {
        run(&mut after).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
        verify::verify(&after).unwrap_or_else(|e| panic!("{e}\n{after}"));
    }
    format!("{}\n── after ──\n{}", body(&kernel), body(&after))
}

/// The printed kernel without its parameters.
fn body(kernel: &Kernel) -> String {
    let text = kernel.to_string();
    let lines = text.lines().filter(|l| !l.starts_with("    parameter") && !l.contains(" = parameter "));
    lines.collect::<Vec<_>>().join("\n")
}

/// A kernel over the parameters of `generator::empty`: `x`, `y`, `m`, `s`, `a`.
fn small(locals: &[(&str, Scalar, u32)], write: impl FnOnce(&mut Write, &[Value])) -> Kernel {
    let mut k = crate::generator::empty();
    k.locals =
        locals.iter().map(|(n, e, l)| Local { name: n.to_string(), element: Type::Scalar(*e), len: *l }).collect();
    let (mut w, p) = Write::new(k);
    write(&mut w, &p);
    w.0.finish()
}

#[test]
fn fold() {
    let k = small(&[], |w, p| {
        let (one, two, three) = (w.n(1), w.n(2), w.n(3));
        let i = w.special(Special::Thread(0));
        let j = w.add(i, one);
        let j = w.add(j, two);
        let (six, plus, minus, unit) = (w.mul(two, three), w.f(0.0), w.f(-0.0), w.f(1.0));
        let always = w.0.compare(Comparison::Lt, two, six);
        w.iff(always, |w| {
            // −0 + 0 is +0, so this addition has to stay; the other one and the product need not.
            let kept = w.add(p[9], plus);
            let gone = w.add(p[9], minus);
            let gone = w.mul(gone, unit);
            w.store(at(p[2], j, p[3]), kept);
            w.store(at(p[2], six, p[3]), gone);
        });
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::fold::fold]));
}

#[test]
fn unroll() {
    let k = small(&[("sum", Scalar::F32, 3)], |w, p| {
        w.upto(0, 3, Unroll::Full, |w, i| {
            w.upto(1, 2, Unroll::Full, |w, j| {
                let k = w.add(i, j);
                let v = w.load(at(p[0], k, p[1]));
                let old = w.read(0, Some(i));
                let new = w.add(old, v);
                w.write(0, Some(i), new);
            });
        });
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::unroll::unroll]));
}

#[test]
fn unroll_with_jumps() {
    let k = small(&[], |w, p| {
        w.upto(0, 3, Unroll::Full, |w, i| {
            let v = w.load(at(p[0], i, p[1]));
            let zero = w.f(0.0);
            let negative = w.0.compare(Comparison::Lt, v, zero);
            w.iff(negative, |w| w.0.effect(Op::Continue(Label(0), smallvec![])));
            let large = w.0.compare(Comparison::Gt, v, p[9]);
            w.iff(large, |w| w.0.effect(Op::Break(Label(0), smallvec![])));
            w.store(at(p[2], i, p[3]), v);
        });
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::unroll::unroll]));
}

#[test]
fn promote() {
    let locals = [("best", Scalar::F32, 1), ("pair", Scalar::F32, 2)];
    let k = small(&locals, |w, p| {
        let zero = w.f(0.0);
        w.write(0, None, zero);
        let range = [w.n(0), p[1], w.n(1)];
        w.each(0, range, Unroll::Auto, |w, i| {
            let v = w.load(at(p[0], i, p[1]));
            let one = w.n(1);
            w.write(1, Some(one), v);
            let best = w.read(0, None);
            let better = w.0.compare(Comparison::Gt, v, best);
            w.iff(better, |w| w.write(0, None, v));
            let enough = w.0.compare(Comparison::Gt, v, p[9]);
            w.iff(enough, |w| w.0.effect(Op::Break(Label(0), smallvec![])));
        });
        let (best, one) = (w.read(0, None), w.n(1));
        let last = w.read(1, Some(one));
        let sum = w.add(best, last);
        w.store(at(p[2], one, p[3]), sum);
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::promote::promote]));
}

#[test]
fn addresses() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let (one, three, four) = (w.n(1), w.n(3), w.n(4));
        let up = w.add(i, three);
        let down = w.bin(Binary::Sub, i, one);
        let times = w.mul(up, four);
        for index in [i, up, down, times] {
            let v = w.load(at(p[0], index, p[1]));
            w.store(at2(&p[4..8], up, index), v);
        }
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::addresses::addresses, passes::cse::cse]));
}

#[test]
fn cse() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let (a, b) = (w.mul(i, p[7]), w.mul(p[7], i));
        // Two loads of one place stay two.
        let (x, y) = (w.load(at(p[2], a, p[3])), w.load(at(p[2], b, p[3])));
        let sum = w.add(x, y);
        w.store(at(p[2], a, p[3]), sum);
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::cse::cse]));
}

/// Loads of memory that nobody writes, by address: those of the same lanes are one where no loop or barrier lies between.
#[test]
fn cse_of_loads() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let condition = w.0.compare(Comparison::Lt, i, p[1]);
        let (zero, one) = (w.f(0.0), w.f(1.0));
        let load = |w: &mut Write, policy, guard: Option<Value>, other: Value| {
            let guard = guard.map(|condition| Guard { condition, otherwise: smallvec![other; 2] });
            let place = Place::Address { base: p[0], offset: 8 };
            let pair =
                w.0.emit(Op::Load { place, element: Scalar::F32, policy, guard }, vec![Type::Scalar(Scalar::F32); 2]);
            w.mul(pair[0], pair[1])
        };
        let put = |w: &mut Write, products: &[Value]| {
            let place = Place::Address { base: p[2], offset: 0 };
            let values = products.iter().copied().collect();
            w.0.effect(Op::Store { place, element: Scalar::F32, values, guard: None });
        };
        let first = load(w, Policy::ReadOnly, Some(condition), zero);
        // The same, what its lanes are given otherwise, all lanes, and memory that the launch writes.
        let again = load(w, Policy::ReadOnly, Some(condition), zero);
        let other = load(w, Policy::ReadOnly, Some(condition), one);
        let all = load(w, Policy::ReadOnly, None, zero);
        let written = load(w, Policy::Coherent, None, zero);
        let rewritten = load(w, Policy::Coherent, None, zero);
        put(w, &[first, again, other, all]);
        put(w, &[written, rewritten]);
        w.iff(condition, |w| {
            let inside = load(w, Policy::ReadOnly, None, zero);
            put(w, &[inside]);
        });
        w.upto(0, 4, Unroll::Never, |w, _| {
            let looping = load(w, Policy::ReadOnly, None, zero);
            put(w, &[looping]);
        });
        let after = load(w, Policy::ReadOnly, None, zero);
        put(w, &[after]);
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::cse::cse]));
}

#[test]
fn implied() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let j = w.special(Special::Thread(1));
        let store = |w: &mut Write, condition: Value| {
            let (yes, no) = (w.f(1.0), w.f(0.0));
            let v = w.0.scalar(Op::Select { condition, yes, no }, Scalar::F32);
            w.store(at(p[2], i, p[3]), v);
        };
        // Lanes that leave decide for those that stay: here i < y's extent, and so not >=.
        let outside = w.0.compare(Comparison::Ge, i, p[1]);
        w.0.enter([]);
        w.0.effect(Op::Return);
        let then = w.0.leave();
        w.0.enter([]);
        w.0.effect(Op::Yield(smallvec![]));
        let otherwise = w.0.leave();
        w.0.effect(Op::If { condition: outside, then, otherwise });
        let inside = w.0.compare(Comparison::Gt, p[1], i);
        store(w, inside);
        // At most and not equal is less; of one alone that does not follow.
        let most = w.0.compare(Comparison::Le, i, j);
        let apart = w.0.compare(Comparison::Ne, j, i);
        w.iff(most, |w| {
            let less = w.0.compare(Comparison::Lt, i, j);
            store(w, less);
        });
        let both = w.bin(Binary::And, most, apart);
        w.iff(both, |w| {
            let less = w.0.compare(Comparison::Lt, i, j);
            store(w, less);
            store(w, apart);
        });
        // What a side knew ends with it; a loop knows its index; of floats nothing follows.
        let less = w.0.compare(Comparison::Lt, i, j);
        store(w, less);
        let range = [j, p[3], w.n(1)];
        w.each(0, range, Unroll::Never, |w, k| {
            let inside = w.0.compare(Comparison::Lt, k, p[3]);
            store(w, inside);
        });
        let x = w.load(at(p[0], i, p[1]));
        let above = w.0.compare(Comparison::Gt, x, p[9]);
        w.iff(above, |w| {
            let not = w.0.compare(Comparison::Le, x, p[9]);
            store(w, not);
        });
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::implied::implied, passes::fold::fold]));
}

#[test]
fn masked() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let inside = w.0.compare(Comparison::Lt, i, p[1]);
        let guarded = |w: &mut Write| {
            let (place, otherwise) = (at(p[0], i, p[1]), smallvec![w.f(0.0)]);
            let guard = Some(Guard { condition: inside, otherwise });
            w.0.scalar(Op::Load { place, element: Scalar::F32, policy: Policy::Coherent, guard }, Scalar::F32)
        };
        let choose = |w: &mut Write, condition: Value, yes: Value, no: Value| {
            let v = w.0.scalar(Op::Select { condition, yes, no }, Scalar::F32);
            w.store(at(p[2], i, p[3]), v);
        };
        // One choice, or two alike: the load gives it.
        let (x, one) = (guarded(w), w.f(1.0));
        choose(w, inside, x, one);
        choose(w, inside, x, one);
        // Two that differ, a use of what the others get, another condition, a choice that is no constant: it stays.
        let (x, two) = (guarded(w), w.f(2.0));
        choose(w, inside, x, one);
        choose(w, inside, x, two);
        let x = guarded(w);
        choose(w, inside, x, one);
        w.store(at(p[2], i, p[3]), x);
        let x = guarded(w);
        let other = w.0.compare(Comparison::Lt, i, p[3]);
        choose(w, other, x, one);
        let x = guarded(w);
        choose(w, inside, x, p[9]);
        // Chosen where it does not load is another thing.
        let x = guarded(w);
        choose(w, inside, one, x);
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::masked::masked]));
}

#[test]
fn licm() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let range = [w.n(0), p[1], w.n(1)];
        w.each(0, range, Unroll::Auto, |w, j| {
            let row = w.mul(i, p[7]);
            let range = [w.n(0), p[5], w.n(1)];
            w.each(1, range, Unroll::Auto, |w, l| {
                let at_row = w.add(row, j);
                let at_both = w.add(at_row, l);
                w.store(at(p[2], at_both, p[3]), p[9]);
            });
        });
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::licm::licm]));
}

#[test]
fn branches() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let inside = w.0.compare(Comparison::Lt, i, p[1]);
        let v = w.or_zero(inside, |w| w.load(at(p[0], i, p[1])));
        let positive = w.0.compare(Comparison::Gt, v, p[9]);
        let twice = w.or_zero(positive, |w| w.add(v, v));
        w.iff(inside, |w| w.store(at(p[2], i, p[3]), twice));
        // A barrier stays in its branch.
        w.iff(positive, |w| w.0.effect(Op::WarpSync));
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::fold::fold, passes::branches::branches]));
}

#[test]
fn induction() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let range = [i, p[1], w.n(32)];
        w.each(0, range, Unroll::Auto, |w, j| {
            let v = w.load(at2(&p[4..8], j, i));
            let one = w.n(1);
            let next = w.add(j, one);
            w.store(at(p[2], next, p[3]), v);
        });
    });
    let runs = [passes::addresses::addresses as Run, passes::licm::licm, passes::induction::induction];
    insta::assert_snapshot!(before_and_after(k, &runs));
}

/// An address and a number that a loop carries: the number it hands on as it was, the address moves; a barrier, or a distance that
/// is not constant, decides how.
fn running(barrier: bool) -> Kernel {
    small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let (start, one, sixteen) = (w.n(0), w.n(1), w.n(16));
        let row = w.mul(i, p[7]);
        let first = w.0.value(Op::Offset { base: p[4], terms: smallvec![(row, None)], bytes: 4 }, Type::Global);
        let f32 = Type::Scalar(Scalar::F32);
        let parameters = w.0.enter([examples::USIZE, Type::Global, examples::USIZE, f32]);
        let own = w.mul(i, parameters[2]);
        let v = w.load(at(parameters[1], own, p[6]));
        let sum = w.add(parameters[3], v);
        if barrier {
            w.0.effect(Op::BlockSync);
        }
        let moved = Op::Offset { base: parameters[1], terms: smallvec![(sixteen, None)], bytes: 4 };
        let moved = w.0.value(moved, Type::Global);
        w.0.effect(Op::Yield(smallvec![moved, parameters[2], sum]));
        let body = w.0.leave();
        let inits = smallvec![first, p[7], p[9]];
        let l = For { label: Label(0), start, end: p[5], step: one, unroll: Unroll::Auto, inits, body };
        let results = w.0.emit(Op::For(Box::new(l)), [Type::Global, examples::USIZE, f32]);
        w.store(at(p[2], i, p[3]), results[2]);
    })
}

#[test]
fn carried() {
    insta::assert_snapshot!(before_and_after(running(false), &[passes::carried::carried]));
}

#[test]
fn pointers() {
    let runs =
        [passes::carried::carried as Run, passes::addresses::addresses, passes::licm::licm, passes::pointers::pointers];
    let both = [true, false].map(|barrier| before_and_after(running(barrier), &runs));
    insta::assert_snapshot!(both.join("\n── without a barrier ──\n"));
}

/// The one row of `x` in the loop is counted from the parameter; those of `m`, of which there are two, stay. (In `matmul` and `blocked`
/// the index is one that the loop carries.)
#[test]
fn bases() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let row = w.mul(i, p[7]);
        let element = |w: &mut Write, from, at| {
            w.0.value(Op::Offset { base: from, terms: smallvec![(at, None)], bytes: 4 }, Type::Global)
        };
        let (own, once, twice) = (element(w, p[0], row), element(w, p[4], row), element(w, p[4], i));
        let range = [i, p[1], w.n(32)];
        w.each(0, range, Unroll::Never, |w, j| {
            let far = w.mul(j, p[7]);
            let places = [at(own, j, p[1]), at(once, far, p[6]), at(twice, j, p[6]), at(twice, row, p[6])];
            let values = places.map(|place| w.load(place));
            let sum = values.into_iter().reduce(|a, b| w.add(a, b)).expect("four");
            w.store(at(p[2], j, p[3]), sum);
        });
    });
    let runs = [
        passes::addresses::addresses as Run,
        passes::licm::licm,
        passes::pointers::pointers,
        passes::induction::induction,
        passes::bases::bases,
    ];
    insta::assert_snapshot!(before_and_after(k, &runs));
}

/// What nobody writes is loaded after what a store replaces, but not past what uses it.
#[test]
fn order() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let fixed = |w: &mut Write, place| {
            let load = Op::Load { place, element: Scalar::F32, policy: Policy::ReadOnly, guard: None };
            w.0.scalar(load, Scalar::F32)
        };
        for used in [false, true] {
            let x = fixed(w, at(p[0], i, p[1]));
            let own = if used { w.0.scalar(Op::Cast(x), Scalar::Usize) } else { i };
            let y = w.load(at(p[2], own, p[3]));
            let sum = w.add(x, y);
            w.store(at(p[2], own, p[3]), sum);
        }
    });
    insta::assert_snapshot!(before_and_after(
        k,
        &[passes::addresses::addresses as Run, passes::cse::cse, passes::order::order]
    ));
}

#[test]
fn words() {
    let k = small(&[], |w, p| {
        let i8s = Type::Scalar(Scalar::I8);
        let place = |offset| Place::Address { base: p[2], offset };
        let (one, zero) = (w.n(1), w.0.constant(Scalar::I8, 0));
        let i = w.special(Special::Thread(0));
        let condition = w.0.compare(Comparison::Lt, i, one);
        let load = |w: &mut Write, n: usize, offset, guard| {
            let (element, policy) = (Scalar::I8, Policy::Coherent);
            w.0.emit(Op::Load { place: place(offset), element, policy, guard }, vec![i8s; n])
        };
        // A guarded load through an `if` to a store and a product: words all the way.
        w.0.enter([]);
        let guarded = load(w, 4, 0, Some(Guard { condition, otherwise: smallvec![zero; 4] }));
        w.0.effect(Op::Yield(guarded));
        let then = w.0.leave();
        w.0.enter([]);
        w.0.effect(Op::Yield(smallvec![zero; 4]));
        let otherwise = w.0.leave();
        let given = w.0.emit(Op::If { condition, then, otherwise }, [i8s; 4]);
        w.0.effect(Op::Store { place: place(16), element: Scalar::I8, values: given.clone(), guard: None });
        let sum = w.0.constant(Scalar::I32, 5);
        let join = |w: &mut Write, parts: &[Value]| {
            w.0.scalar(Op::Bits(Bits::Join, parts.iter().copied().collect()), Scalar::I32)
        };
        let a = join(w, &given);
        let eight = load(w, 8, 8, None);
        let b = join(w, &eight[..4]);
        let c = join(w, &eight[4..]);
        let sum = w.0.scalar(Op::Bits(Bits::Dot4, [a, b, sum].into_iter().collect()), Scalar::I32);
        let sum = w.0.scalar(Op::Bits(Bits::Dot4, [a, c, sum].into_iter().collect()), Scalar::I32);
        // One part of these is used by itself, so they stay apart.
        let apart = load(w, 4, 24, None);
        let d = join(w, &apart);
        let own = w.0.scalar(Op::Cast(apart[2]), Scalar::I32);
        let sum = w.0.scalar(Op::Bits(Bits::Dot4, [d, own, sum].into_iter().collect()), Scalar::I32);
        w.0.effect(Op::Store { place: place(32), element: Scalar::I32, values: smallvec![sum], guard: None });
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::words::words]));
}

#[test]
fn strength() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        let (eight, ten, four) = (w.n(8), w.n(10), w.f(4.0));
        let (div, rem) = (w.bin(Binary::Div, i, eight), w.bin(Binary::Rem, i, eight));
        let (mul, tenth) = (w.mul(div, eight), w.bin(Binary::Div, rem, ten));
        let quarter = w.bin(Binary::Div, p[9], four);
        let third = w.bin(Binary::Div, four, p[9]);
        w.store(at(p[2], mul, p[3]), quarter);
        w.store(at(p[2], tenth, p[3]), third);
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::strength::strength]));
}

#[test]
fn dce() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        w.load(at(p[0], i, p[1]));
        // A loop whose result nobody uses, and one of whose carried values somebody does.
        let f32 = Type::Scalar(Scalar::F32);
        for used in [false, true] {
            let (start, step) = (w.n(0), w.n(1));
            let parameters = w.0.enter([examples::USIZE, f32, f32]);
            let a = w.add(parameters[1], p[9]);
            let b = w.add(parameters[2], parameters[1]);
            w.0.effect(Op::Yield(smallvec![a, b]));
            let body = w.0.leave();
            let label = Label(u32::from(used));
            let inits = smallvec![p[9], p[9]];
            let l = For { label, start, end: p[1], step, unroll: Unroll::Auto, inits, body };
            let results = w.0.emit(Op::For(Box::new(l)), [f32, f32]);
            if used {
                w.store(at(p[2], i, p[3]), results[0]);
            }
        }
    });
    insta::assert_snapshot!(before_and_after(k, &[]));
}

#[test]
fn sink() {
    let k = small(&[], |w, p| {
        let i = w.special(Special::Thread(0));
        // Two places of a row that are needed beyond the loop are four registers: they follow it, and the row's number is held.
        let row = w.mul(i, p[7]);
        let one = w.n(1);
        let next = w.add(row, one);
        let offset = |w: &mut Write, base, index| {
            w.0.value(Op::Offset { base, terms: smallvec![(index, None)], bytes: 4 }, Type::Global)
        };
        let (first, second) = (offset(w, p[2], row), offset(w, p[2], next));
        // A sum of two loaded numbers is one register where its parts are two: it stays.
        let (a, b) = (w.load(at(p[0], i, p[1])), w.load(at(p[0], one, p[1])));
        let sum = w.add(a, b);
        // A quotient that the loop uses stays before it, and so does what the loop needs anyway.
        let quotient = w.bin(Binary::Div, a, p[9]);
        let address = offset(w, p[4], row);
        w.upto(0, 4, Unroll::Never, |w, k| {
            w.store(Place::Address { base: address, offset: 0 }, quotient);
            w.store(at(p[2], k, p[3]), p[9]);
        });
        let doubled = w.add(quotient, quotient);
        w.store(Place::Address { base: first, offset: 0 }, sum);
        w.store(Place::Address { base: second, offset: 0 }, doubled);
    });
    insta::assert_snapshot!(before_and_after(k, &[passes::sink::sink]));
}

/// Before and after all passes.
fn whole(kernel: Kernel) -> String {
    verify::verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
    let before = kernel.to_string();
    let after = optimise(kernel).unwrap_or_else(|e| panic!("{e}\n{before}"));
    format!("{before}\n── after ──\n{}", body(&after))
}

#[test]
fn saxpy() {
    insta::assert_snapshot!(whole(examples::saxpy()));
}

#[test]
fn stencil() {
    insta::assert_snapshot!(whole(examples::stencil()));
}

#[test]
fn matmul() {
    insta::assert_snapshot!(whole(examples::matmul(4)));
}

#[test]
fn blocked() {
    insta::assert_snapshot!(whole(examples::blocked(2, 2, 2)));
}
