//! Each check on a small kernel that violates it, reported at the right line with the right names,
//! and on a correct variant.

use crate::kit::{Kit, Slice, findings, in_shared, input, out, run, run_with};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{
    AccessPlace, Binary, Comparison, Dim, For, Kernel, Op, Shuffle, Special, Type, Unary, Unroll, Value, Values, Vote,
};
use runtime::interpreter::report::{Finding, Space};
use runtime::interpreter::{ArgumentBytes, Binding, Check, Launch, LaunchFailure, Options, Outcome, Program, Severity};

/// Returns the only finding of a run, which must be `check` at line `line` of the text.
fn only(outcome: &Outcome, check: Check, line: u32) -> &Finding {
    assert_eq!(findings(outcome), [(check, line)], "{}", outcome.report);
    &outcome.report.findings[0]
}

fn clean(outcome: &Outcome) {
    assert_eq!(findings(outcome), [], "{}", outcome.report);
}

/// Builds y[i] = x[i], for all threads or only those below the length.
fn copy(guarded: bool) -> Kernel {
    let mut k = Kit::new([64, 1, 1], "let i = grid::index();\nif i < x.len() {\n    y[i] = x[i];\n}");
    let (x, y) = (k.slice("x", Scalar::F32, false), k.slice("y", Scalar::F32, true));
    let i = k.grid_index();
    let body = |k: &mut Kit| {
        k.at("x[i]");
        let v = k.load(x.at(i), Scalar::F32);
        k.at("y[i]");
        k.store(y.at(i), Scalar::F32, v);
    };
    if guarded {
        k.at("if i < x.len()");
        let inside = k.b.compare(Comparison::Lt, i, x.len);
        k.when(inside, body);
    } else {
        body(&mut k);
    }
    k.finish()
}

#[test]
fn accesses_out_of_bounds_of_a_slice_are_reported() {
    let (x, mut y) = (vec![1.0f32; 100], vec![0.0f32; 128]);
    let outcome = run(&copy(false), 2, vec![input(&x), out(&mut y)]);
    let finding = only(&outcome, Check::OutOfBounds, 2);
    assert_eq!(finding.message, "index 100 is out of bounds of `x`, which has 100 elements");
    assert_eq!(finding.count, 28);
    let object = finding.object.as_ref().expect("a buffer");
    assert_eq!((&object.name[..], object.space, object.element), ("x", Space::Buffer, Some(100)));
    assert_eq!((&object.index[..], &object.extents[..]), (&[100][..], &[100][..]));
    let thread = finding.thread;
    assert_eq!((thread.block, thread.thread, thread.warp, thread.lane), ([1, 0, 0], [36, 0, 0], 1, 4));
    assert!(y[..100].iter().all(|v| *v == 1.0) && y[100..].iter().all(|v| *v == 0.0), "a skipped load gives 0");
    clean(&run(&copy(true), 2, vec![input(&x), out(&mut y)]));
}

#[test]
fn accesses_out_of_bounds_are_reported_by_dimension() {
    // Column 4 of row 0 is inside the buffer, but outside of its row.
    let kernel = |column: u32| {
        let mut k = Kit::new([1, 1, 1], "c[(0, j)] = 1.0;");
        let c = k.view("c", Scalar::F32, 2, true);
        let (row, column, one) = (k.b.index(0), k.b.index(column), k.b.constant(Scalar::F32, 0x3f80_0000));
        k.at("c[(0, j)]");
        k.store(c.at(&[row, column]), Scalar::F32, one);
        k.finish()
    };
    let view = |data: &'static mut [f32]| Binding::Memory {
        bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(data)),
        extents: vec![2, 4],
        strides: vec![4],
    };
    let outcome = run(&kernel(4), 1, vec![view(vec![0.0; 8].leak())]);
    assert_eq!(only(&outcome, Check::OutOfBounds, 0).message, "index (0, 4) is out of bounds of `c`, which is 2 × 4");
    clean(&run(&kernel(3), 1, vec![view(vec![0.0; 8].leak())]));
}

/// Builds a vector access of four elements at `i`, from a slice.
fn load4(index: u32) -> Kernel {
    let mut k = Kit::new([1, 1, 1], "let v: [f32; 4] = x.load(i);\ny[0] = v[3];");
    let (x, y) = (k.slice("x", Scalar::F32, false), k.slice("y", Scalar::F32, true));
    let (i, zero) = (k.b.index(index), k.b.index(0));
    k.at("x.load(i)");
    let v = k.load_many(x.at(i), Scalar::F32, 4);
    k.at("y[0]");
    k.store(y.at(zero), Scalar::F32, v[3]);
    k.finish()
}

/// Returns 16-byte aligned data.
fn aligned() -> Vec<u128> {
    (0..3u128).map(|i| i << 96).collect()
}

/// Checks that the two findings of a compound assignment differ.
#[test]
fn compound_assignments_name_their_store() {
    let mut k = Kit::new([32, 1, 1], "y[i] *= 2.0;");
    let y = k.slice("y", Scalar::F32, true);
    let i = k.thread();
    k.at("y[i]");
    let old = k.load(y.at(i), Scalar::F32);
    let new = k.binary(Binary::Add, old, old);
    k.store(y.at(i), Scalar::F32, new);
    let outcome = run(&k.finish(), 1, vec![out(&mut [1.0f32; 30])]);
    assert_eq!(findings(&outcome), [(Check::OutOfBounds, 0), (Check::OutOfBounds, 0)], "{}", outcome.report);
    let messages: Vec<_> = outcome.report.findings.iter().map(|finding| finding.message.as_str()).collect();
    let load = "index 30 is out of bounds of `y`, which has 30 elements";
    assert_eq!(messages, [load, &format!("{load}, when the assignment stores the result")]);
}

#[test]
fn vectors_must_fit_and_be_aligned() {
    let (x, mut y) = (aligned(), [7.0f32]);
    let x: &[f32] = bytemuck::cast_slice(&x);
    clean(&run(&load4(8), 1, vec![input(x), out(&mut y)]));
    assert_eq!(y[0].to_bits(), 2);
    let outcome = run(&load4(2), 1, vec![input(x), out(&mut y)]);
    only(&outcome, Check::Misaligned, 0);
    let outcome = run(&load4(8), 1, vec![input(&x[..10]), out(&mut y)]);
    let finding = only(&outcome, Check::OutOfBounds, 0);
    assert_eq!(finding.message, "elements 8..12 are out of bounds of `x`, which has 10 elements");
}

#[test]
fn computed_addresses_belong_to_their_original_buffer() {
    // After the passes: an address moved by `Offset`, and a constant displacement.
    let kernel = |start: u32, offset: i32| {
        let mut k = Kit::new([1, 1, 1], "y[0] = x[n];");
        let (x, y) = (k.slice("x", Scalar::F32, false), k.slice("y", Scalar::F32, true));
        let start = k.b.index(start);
        let terms = [(start, None)].into_iter().collect();
        let base = k.b.value(Op::Offset { base: x.base, terms, bytes: 4 }, Type::Global);
        k.at("x[n]");
        let v = k.load(AccessPlace::Address { base, offset }, Scalar::F32);
        k.at("y[0]");
        k.store(AccessPlace::Address { base: y.base, offset: 0 }, Scalar::F32, v);
        k.finish()
    };
    let (x, mut y) = ([1.0f32, 2.0, 3.0], [0.0f32]);
    clean(&run(&kernel(4, -8), 1, vec![input(&x), out(&mut y)]));
    assert_eq!(y, [3.0]);
    for (start, offset, element) in [(3, 0, 3), (0, -4, -1), (u32::MAX, 0, i64::from(u32::MAX))] {
        let outcome = run(&kernel(start, offset), 1, vec![input(&x), out(&mut y)]);
        let object = only(&outcome, Check::OutOfBounds, 0).object.clone().expect("a buffer");
        assert_eq!((&object.name[..], object.element), ("x", Some(element)));
    }
}

#[test]
fn an_address_may_come_from_either_of_two() {
    let mut k = Kit::new([2, 1, 1], "y[i] = (if i == 0 { a } else { b })[0];");
    let (a, b) = (k.slice("a", Scalar::U32, false), k.slice("b", Scalar::U32, false));
    let (y, i, zero) = (k.slice("y", Scalar::U32, true), k.thread(), k.b.index(0));
    let first = k.b.compare(Comparison::Eq, i, zero);
    let base = k.b.value(Op::Select { condition: first, yes: a.base, no: b.base }, Type::Global);
    let v = k.load(AccessPlace::Address { base, offset: 0 }, Scalar::U32);
    k.store(y.at(i), Scalar::U32, v);
    let mut y = [0u32; 2];
    clean(&run(&k.finish(), 1, vec![input(&[5u32]), input(&[6u32]), out(&mut y)]));
    assert_eq!(y, [5, 6]);
}

#[test]
fn read_only_buffers_are_not_written() {
    let kernel = |mutable| {
        let mut k = Kit::new([1, 1, 1], "x[0] = 1;");
        let x = k.slice("x", Scalar::U32, mutable);
        let (zero, one) = (k.b.index(0), k.b.constant(Scalar::U32, 1));
        k.at("x[0]");
        k.store(x.at(zero), Scalar::U32, one);
        k.finish()
    };
    let mut x = [0u32];
    only(&run(&kernel(false), 1, vec![out(&mut x)]), Check::ReadOnlyWrite, 0);
    assert_eq!(x, [0]);
    only(&run(&kernel(false), 1, vec![input(&x)]), Check::ReadOnlyWrite, 0);
    clean(&run(&kernel(true), 1, vec![out(&mut x)]));
    assert_eq!(x, [1]);
}

const NEIGHBOR: &str = "s[i] = i;\nblock::sync();\ny[i] = s[j];";

/// Builds a kernel whose threads each store an element of a shared array and load another thread's,
/// with or without the barrier.
fn neighbor(store: bool, barrier: bool, distance: u32) -> Kernel {
    let mut k = Kit::new([64, 1, 1], NEIGHBOR);
    let y = k.slice("y", Scalar::Usize, true);
    let s = k.shared("s", Scalar::Usize, &[64], &[1]);
    let (i, distance, last) = (k.thread(), k.b.index(distance), k.b.index(63));
    if store {
        k.at("s[i] = i");
        k.store(in_shared(s, &[i]), Scalar::Usize, i);
    }
    if barrier {
        k.at("block::sync()");
        k.b.effect(Op::BlockSync);
    }
    let j = k.binary(Binary::WrappingAdd, i, distance);
    let j = k.binary(Binary::And, j, last);
    k.at("s[j]");
    let v = k.load(in_shared(s, &[j]), Scalar::Usize);
    k.at("y[i]");
    k.store(y.at(i), Scalar::Usize, v);
    k.finish()
}

#[test]
fn shared_memory_starts_undefined_in_every_block() {
    let mut y = [9u32; 64];
    let finding_of = |kernel: &Kernel, blocks| {
        let mut y = [9u32; 64];
        let outcome = run(kernel, blocks, vec![out(&mut y)]);
        let only = only(&outcome, Check::UninitializedShared, 2).clone();
        (only, y)
    };
    let (finding, y0) = finding_of(&neighbor(false, true, 1), 1);
    assert_eq!((finding.count, &finding.object.as_ref().expect("an array").name[..]), (64, "s"));
    assert_eq!(y0, [0; 64]);
    clean(&run(&neighbor(true, true, 1), 1, vec![out(&mut y)]));
    assert!(y.iter().enumerate().all(|(i, v)| *v == (i as u32 + 1) % 64));

    // Block 0 stores and block 1 does not: shared memory of block 0 is not visible in block 1.
    let mut k = Kit::new([1, 1, 1], "if block::x() == 0 { s[0] = 1; }\ny[block::x()] = s[0];");
    let y = k.slice("y", Scalar::Usize, true);
    let s = k.shared("s", Scalar::Usize, &[1], &[1]);
    let (block, zero, one) = (k.special(Special::Block(0)), k.b.index(0), k.b.index(1));
    let first = k.b.compare(Comparison::Eq, block, zero);
    k.when(first, |k| k.store(in_shared(s, &[zero]), Scalar::Usize, one));
    k.at("= s[0]");
    let v = k.load(in_shared(s, &[zero]), Scalar::Usize);
    k.store(y.at(block), Scalar::Usize, v);
    let mut y = [9u32; 2];
    let outcome = run(&k.finish(), 2, vec![out(&mut y)]);
    assert_eq!(only(&outcome, Check::UninitializedShared, 1).thread.block, [1, 0, 0]);
    assert_eq!(y, [1, 0]);
}

#[test]
fn shared_races_need_two_warps_and_no_barrier() {
    let mut y = [0u32; 64];
    let outcome = run(&neighbor(true, false, 32), 1, vec![out(&mut y)]);
    // Warp 0 runs first, and loads before warp 1 stores. The load is undefined, and the later store
    // is a race.
    let races: Vec<_> = outcome.report.findings.iter().filter(|f| f.check == Check::SharedRace).collect();
    assert!(!races.is_empty(), "{}", outcome.report);
    for race in races {
        let other = race.other.as_ref().expect("two sides");
        assert_ne!(race.thread.warp, other.thread.warp);
        let lines = [race.place.line, other.place.as_ref().expect("a place").line];
        assert!(lines == [10, 12] || lines == [12, 10], "{lines:?}");
    }
    // An access by the same lane of the other warp is a race. An access by another lane of the same
    // warp is not, because a warp runs in lockstep.
    let within = |k: Kernel| run(&k, 1, vec![out(&mut [0u32; 64])]);
    clean(&within(neighbor(true, false, 0)));
    clean(&within(neighbor(true, true, 32)));
}

/// Builds a kernel whose threads all store `value(i)` to one element.
fn one_element(threads: u32, shared: bool, same: bool) -> Kernel {
    let mut k = Kit::new([threads, 1, 1], "to[0] = i;");
    let y = k.slice("y", Scalar::Usize, true);
    let s = k.shared("s", Scalar::Usize, &[4], &[1]);
    let (i, zero) = (k.thread(), k.b.index(0));
    k.at("to[0]");
    let place = if shared { in_shared(s, &[zero]) } else { y.at(zero) };
    k.store(place, Scalar::Usize, if same { zero } else { i });
    k.finish()
}

#[test]
fn lanes_store_different_values_to_one_element() {
    for shared in [true, false] {
        let outcome = run(&one_element(32, shared, false), 1, vec![out(&mut [0u32])]);
        let finding = only(&outcome, Check::StoreConflict, 0);
        assert_eq!(finding.other.as_ref().expect("two sides").thread.lane, 0);
        assert_eq!(finding.thread.lane, 1);
        clean(&run(&one_element(32, shared, true), 1, vec![out(&mut [0u32])]));
        let check = if shared { Check::SharedRace } else { Check::GlobalRace };
        only(&run(&one_element(64, shared, true), 1, vec![out(&mut [0u32])]), check, 0);
    }
}

#[test]
fn blocks_race_whatever_their_order() {
    // Block b stores y[b], and loads the element that the previous or the next block stores.
    let kernel = |index: fn(&mut Kit, Value) -> Value| {
        let mut k = Kit::new([1, 1, 1], "y[block::x()] = 1;\nz[block::x()] = y[i];");
        let (y, z) = (k.slice("y", Scalar::U32, true), k.slice("z", Scalar::U32, true));
        let (b, one) = (k.special(Special::Block(0)), k.b.constant(Scalar::U32, 1));
        k.at("y[block::x()]");
        k.store(y.at(b), Scalar::U32, one);
        let i = index(&mut k, b);
        k.at("y[i]");
        let v = k.load(y.at(i), Scalar::U32);
        k.at("z[block::x()]");
        k.store(z.at(b), Scalar::U32, v);
        k.finish()
    };
    fn stepped(k: &mut Kit, b: Value, by: u32) -> Value {
        let (by, three) = (k.b.index(by), k.b.index(3));
        let i = k.binary(Binary::WrappingAdd, b, by);
        k.binary(Binary::And, i, three)
    }
    let arguments = || vec![out(vec![0u32; 4].leak()), out(vec![0u32; 4].leak())];
    for kernel in [kernel(|k, b| stepped(k, b, 1)), kernel(|k, b| stepped(k, b, 3))] {
        let outcome = run(&kernel, 4, arguments());
        let races: Vec<_> = outcome.report.findings.iter().filter(|f| f.check == Check::GlobalRace).collect();
        assert!(!races.is_empty());
        for race in races {
            let other = race.other.as_ref().expect("two sides");
            assert_ne!(race.thread.block, other.thread.block);
        }
    }
    clean(&run(&kernel(|_, b| b), 4, arguments()));
}

/// Builds `block::sync()` under a condition on the thread index.
fn barrier_if(condition: impl FnOnce(&mut Kit, Value) -> Value, ends: bool) -> Kernel {
    let mut k = Kit::new([64, 1, 1], "if condition {\n    block::sync();\n}");
    let i = k.thread();
    let condition = condition(&mut k, i);
    if ends {
        k.when(condition, |k| k.b.effect(Op::Return));
        k.at("block::sync()");
        k.b.effect(Op::BlockSync);
    } else {
        k.when(condition, |k| {
            k.at("block::sync()");
            k.b.effect(Op::BlockSync);
        });
    }
    k.finish()
}

fn below(n: u32) -> impl FnOnce(&mut Kit, Value) -> Value {
    move |k, i| {
        let n = k.b.index(n);
        k.b.compare(Comparison::Lt, i, n)
    }
}

#[test]
fn all_threads_reach_barriers() {
    // Lanes of both warps are missing.
    let odd = |k: &mut Kit, i| {
        let (one, zero) = (k.b.index(1), k.b.index(0));
        let bit = k.binary(Binary::And, i, one);
        k.b.compare(Comparison::Ne, bit, zero)
    };
    let outcome = run(&barrier_if(odd, false), 1, vec![]);
    let finding = only(&outcome, Check::DivergentBarrier, 1);
    assert_eq!(finding.message, "`block::sync()` is reached by 16 of the 32 lanes of a warp");
    assert_eq!(finding.other.as_ref().expect("who is missing").thread.lane, 0);
    // All lanes of one warp are missing.
    let outcome = run(&barrier_if(below(32), false), 1, vec![]);
    let finding = only(&outcome, Check::DivergentBarrier, 1);
    assert_eq!(finding.other.as_ref().expect("who is missing").thread.warp, 1);
    // All lanes are present; or the missing lanes have ended, and their warp has not.
    clean(&run(&barrier_if(below(64), false), 1, vec![]));
    clean(&run(&barrier_if(below(5), true), 1, vec![]));
}

#[test]
fn warps_wait_at_one_barrier() {
    let mut k = Kit::new([64, 1, 1], "if i < 32 {\n    block::sync();\n} else {\n    block::sync(); // there\n}");
    let (i, half) = (k.thread(), k.b.index(32));
    let first = k.b.compare(Comparison::Lt, i, half);
    k.b.enter([]);
    k.at("block::sync();");
    k.b.effect(Op::BlockSync);
    let then = k.b.leave();
    k.b.enter([]);
    k.at("block::sync(); // there");
    k.b.effect(Op::BlockSync);
    let otherwise = k.b.leave();
    k.b.effect(Op::If { condition: first, then, otherwise });
    let outcome = run(&k.finish(), 1, vec![]);
    let finding = only(&outcome, Check::DivergentBarrier, 1);
    assert_eq!(finding.other.as_ref().and_then(|o| o.place.as_ref()).expect("the other barrier").line, 13);
}

/// Runs a warp operation under `i < n`.
fn warp_if(n: u32, op: fn(&mut Kit, Value)) -> Outcome {
    let mut k = Kit::new([32, 1, 1], "if i < n {\n    warp::operation();\n}");
    let i = k.thread();
    let condition = below(n)(&mut k, i);
    k.when(condition, |k| {
        k.at("warp::operation()");
        op(k, i);
    });
    run(&k.finish(), 1, vec![])
}

#[test]
fn warp_operations_are_for_the_whole_warp() {
    let sync: fn(&mut Kit, Value) = |k, _| k.b.effect(Op::WarpSync);
    let vote: fn(&mut Kit, Value) = |k, _| {
        let yes = k.b.constant(Scalar::Bool, 1);
        k.b.scalar(Op::Vote { mode: Vote::Ballot, value: yes }, Scalar::U32);
    };
    for op in [sync, vote] {
        only(&warp_if(31, op), Check::DivergentWarp, 1);
        clean(&warp_if(32, op));
    }
    let shuffle: fn(&mut Kit, Value) = |k, value| {
        let selector = k.b.constant(Scalar::U32, 1);
        k.b.scalar(Op::Shuffle { mode: Shuffle::Xor, value, selector, width: 32 }, Scalar::Usize);
    };
    let outcome = warp_if(31, shuffle);
    assert_eq!(findings(&outcome), [(Check::DivergentWarp, 1), (Check::ShuffleInactive, 1)]);
    assert_eq!(outcome.report.findings[1].thread.lane, 30);
    clean(&warp_if(32, shuffle));
}

#[test]
fn shuffles_and_votes_need_active_lanes() {
    let run_shuffle = |mode, width: u32, selector: u32, wide: bool| {
        let mut k = Kit::new([32, 1, 1], "y[i] = warp::shuffle(i, s);");
        let y = k.slice("y", Scalar::U64, true);
        let (i, selector) = (k.thread(), k.b.constant(Scalar::U32, selector.into()));
        let ty = if wide { Scalar::U64 } else { Scalar::U32 };
        let mut value = k.b.scalar(Op::Cast(i), ty);
        if wide {
            let shift = k.b.constant(Scalar::U32, 33);
            value = k.binary(Binary::Shl, value, shift);
        }
        k.at("warp::shuffle(i, s)");
        let v = k.b.scalar(Op::Shuffle { mode, value, selector, width }, ty);
        let v = if wide { v } else { k.b.scalar(Op::Cast(v), Scalar::U64) };
        k.store(y.at(i), Scalar::U64, v);
        let mut y = [0u64; 32];
        let outcome = run(&k.finish(), 1, vec![out(&mut y)]);
        (y.map(|v| if wide { v >> 33 } else { v }), outcome)
    };
    for wide in [false, true] {
        for width in [2u32, 4, 8, 16, 32] {
            for selector in [0, 1, 2, 5, 16, 31, 32, 40] {
                for mode in [Shuffle::Index, Shuffle::Xor, Shuffle::Up, Shuffle::Down, Shuffle::Broadcast] {
                    let (y, outcome) = run_shuffle(mode, width, selector, wide);
                    for lane in 0..32 {
                        let first = lane / width * width;
                        let source = match mode {
                            Shuffle::Index | Shuffle::Broadcast => first + selector % width,
                            Shuffle::Xor => {
                                if selector < width {
                                    lane ^ selector
                                } else {
                                    lane
                                }
                            }
                            Shuffle::Up => {
                                if lane >= first + selector {
                                    lane - selector
                                } else {
                                    lane
                                }
                            }
                            Shuffle::Down => {
                                if lane + selector < first + width {
                                    lane + selector
                                } else {
                                    lane
                                }
                            }
                        };
                        assert_eq!(y[lane as usize], u64::from(source), "{mode:?} {selector} of {width}, lane {lane}");
                    }
                    if matches!(mode, Shuffle::Xor | Shuffle::Broadcast) && selector >= width {
                        only(&outcome, Check::ShuffleSelector, 0);
                    } else {
                        clean(&outcome);
                    }
                }
            }
        }
    }
    let mut k = Kit::new([32, 1, 1], "ballot, all, any");
    let (y, i, limit) = (k.slice("y", Scalar::U32, true), k.thread(), k.b.index(5));
    let some = k.b.compare(Comparison::Lt, i, limit);
    let ballot = k.b.scalar(Op::Vote { mode: Vote::Ballot, value: some }, Scalar::U32);
    k.store(y.at(i), Scalar::U32, ballot);
    for (n, mode) in [(1, Vote::All), (2, Vote::Any)] {
        let vote = k.b.scalar(Op::Vote { mode, value: some }, Scalar::Bool);
        let vote = k.b.scalar(Op::Cast(vote), Scalar::U32);
        let n = k.b.index(32 * n);
        let at = k.binary(Binary::Add, i, n);
        k.store(y.at(at), Scalar::U32, vote);
    }
    let mut y = [9u32; 96];
    clean(&run(&k.finish(), 1, vec![out(&mut y)]));
    assert!(y[..32].iter().all(|v| *v == 0b11111) && y[32..64] == [0; 32] && y[64..] == [1; 32]);
}

#[test]
fn locals_are_written_before_they_are_read() {
    let kernel = |written: u32, index: Option<u32>| {
        let mut k = Kit::new([32, 1, 1], "let mut r: [u32; 4];\nr[i] = 7;\ny[i] = r[i];");
        let y = k.slice("y", Scalar::U32, true);
        let r = k.local("r", Scalar::U32, if index.is_some() { 4 } else { 1 });
        let (i, seven) = (k.thread(), k.b.constant(Scalar::U32, 7));
        let index = index.map(|n| k.b.index(n));
        let condition = below(written)(&mut k, i);
        k.when(condition, |k| {
            k.at("r[i] = 7");
            k.b.effect(Op::WriteLocal { local: r, index, value: seven });
        });
        k.at("= r[i]");
        let v = k.b.scalar(Op::ReadLocal { local: r, index }, Scalar::U32);
        k.store(y.at(i), Scalar::U32, v);
        k.finish()
    };
    for index in [None, Some(3)] {
        let mut y = [9u32; 32];
        let outcome = run(&kernel(20, index), 1, vec![out(&mut y)]);
        let finding = only(&outcome, Check::UninitializedLocal, 2);
        assert_eq!((finding.thread.lane, finding.count), (20, 12));
        assert!(y[..20] == [7; 20] && y[20..] == [0; 12]);
        clean(&run(&kernel(32, index), 1, vec![out(&mut y)]));
    }
    let outcome = run(&kernel(32, Some(4)), 1, vec![out(&mut [0u32; 32])]);
    assert_eq!(findings(&outcome), [(Check::OutOfBounds, 1), (Check::OutOfBounds, 2)]);
}

#[test]
fn checks_are_disabled_by_name() {
    let mut k = Kit::new([32, 1, 1], "max + 1; 7 / 0");
    let [max, one, seven, zero] = [u32::MAX.into(), 1, 7, 0].map(|n| k.b.constant(Scalar::Usize, n));
    k.at("max + 1");
    k.binary(Binary::Add, max, one);
    k.at("7 / 0");
    k.binary(Binary::Div, seven, zero);
    let kernel = k.finish();
    let without = |names: &[&str]| {
        let without = names.iter().map(|name| name.parse().expect("a check's name")).collect();
        let outcome = run_with(&kernel, [1, 1, 1], vec![], Options { without, ..Options::default() });
        outcome.report.findings.iter().map(|f| f.check).collect::<Vec<_>>()
    };
    assert_eq!(without(&[]), [Check::UsizeOverflow, Check::DivisionByZero]);
    assert_eq!(without(&["usize-overflow"]), [Check::DivisionByZero]);
    assert_eq!(without(&["usize-overflow", "division-by-zero"]), []);
    let first = run_with(&kernel, [1, 1, 1], vec![], Options { limit: 1, ..Options::default() });
    assert_eq!((first.report.findings.len(), first.report.truncated), (1, true));
    let unknown = "races".parse::<Check>().unwrap_err().to_string();
    assert!(unknown.starts_with("unknown check `races`; the checks are out-of-bounds, misaligned"), "{unknown}");
}

/// Runs `a op b` on constants of type `ty`.
fn arithmetic(op: Binary, ty: Scalar, a: u64, b: u64) -> Outcome {
    let mut k = Kit::new([32, 1, 1], "let c = a op b;");
    let (a, b) = (k.b.constant(ty, a), k.b.constant(ty, b));
    k.at("a op b");
    k.binary(op, a, b);
    run(&k.finish(), 1, vec![])
}

#[test]
fn integers_overflow_and_divide_by_zero() {
    let max = u64::from(u32::MAX);
    let usizes = [(Binary::Add, max, 1), (Binary::Sub, 0, 1), (Binary::Mul, 1 << 16, 1 << 16)];
    for (op, a, b) in usizes {
        let outcome = arithmetic(op, Scalar::Usize, a, b);
        let finding = only(&outcome, Check::UsizeOverflow, 0);
        assert_eq!((finding.severity, finding.count), (Severity::Error, 32));
        let outcome = arithmetic(op, Scalar::U32, a, b);
        assert_eq!(only(&outcome, Check::IntegerOverflow, 0).severity, Severity::Warning);
        assert!(outcome.result().is_ok(), "a warning is not a failure");
    }
    clean(&arithmetic(Binary::Add, Scalar::Usize, max, 0));
    clean(&arithmetic(Binary::WrappingAdd, Scalar::Usize, max, 1));
    assert_eq!(
        only(&arithmetic(Binary::Add, Scalar::I8, 127, 1), Check::IntegerOverflow, 0).message,
        "`127 + 1` overflows `i8`"
    );
    for op in [Binary::Div, Binary::Rem] {
        only(&arithmetic(op, Scalar::I32, 7, 0), Check::DivisionByZero, 0);
        only(&arithmetic(op, Scalar::I32, 1 << 31, max), Check::DivisionOverflow, 0);
        clean(&arithmetic(op, Scalar::I32, 7, max));
        clean(&arithmetic(op, Scalar::F32, 7, 0));
    }
    let mut k = Kit::new([1, 1, 1], "-i");
    let least = k.b.constant(Scalar::I16, 0x8000);
    k.at("-i");
    k.b.scalar(Op::Unary(Unary::Neg, least), Scalar::I16);
    only(&run(&k.finish(), 1, vec![]), Check::IntegerOverflow, 0);
}

#[test]
fn moving_a_view_overflows() {
    let kernel = |by: u32| {
        let mut k = Kit::new([1, 1, 1], "x.offset((i, 0))");
        let x = k.slice("x", Scalar::U8, false);
        let (i, stride) = (k.b.index(by), k.b.index(1 << 16));
        let terms = [(i, Some(stride))].into_iter().collect();
        k.at("x.offset");
        k.b.value(Op::Offset { base: x.base, terms, bytes: 1 }, Type::Global);
        k.finish()
    };
    only(&run(&kernel(1 << 16), 1, vec![input(&[0u8])]), Check::UsizeOverflow, 0);
    clean(&run(&kernel(1), 1, vec![input(&[0u8])]));
}

/// Runs an empty `for` from `start` to `end`.
fn counted(ty: Scalar, start: u64, end: u64, step: u64) -> Outcome {
    let mut k = Kit::new([1, 1, 1], "for i in range {}");
    let [start, end, step] = [start, end, step].map(|n| k.b.constant(ty, n));
    k.at("for i in range");
    k.b.enter([Type::Scalar(ty)]);
    let (body, label) = (k.b.leave(), k.label());
    k.b.effect(Op::For(Box::new(For { label, start, end, step, unroll: Unroll::Auto, inits: Values::new(), body })));
    run_with(&k.finish(), [1, 1, 1], vec![], Options { fuel: 1000, ..Options::default() })
}

#[test]
fn loops_whose_index_overflows_are_reported() {
    let max = u64::from(u32::MAX);
    only(&counted(Scalar::Usize, 0, max, 1 << 31), Check::UsizeOverflow, 0);
    only(&counted(Scalar::U8, 0, 255, 100), Check::IntegerOverflow, 0);
    clean(&counted(Scalar::Usize, 0, 100, 7));
    clean(&counted(Scalar::I32, max - 9, 5, 3));
    // The loop ends at once instead of running until the fuel is spent.
    only(&counted(Scalar::I32, 0, 5, 0), Check::LoopStep, 0);
    only(&counted(Scalar::U64, 0, 1 << 40, 1), Check::FuelExhausted, 0);

    let mut k = Kit::new([32, 1, 1], "loop {}");
    k.at("loop {}");
    k.b.enter([]);
    let (body, label) = (k.b.leave(), k.label());
    k.b.effect(Op::Loop { label, inits: Values::new(), body });
    let options = Options { fuel: 1000, ..Options::default() };
    only(&run_with(&k.finish(), [1, 1, 1], vec![], options), Check::FuelExhausted, 0);
}

/// Checks the limit without reaching it, which takes about a minute.
#[test]
fn launches_have_a_limit_by_default() {
    assert_eq!(Options::default().fuel, 1 << 30);
    assert_eq!(runtime::ptx::Options::default().fuel, 1 << 30);
    let help = Check::FuelExhausted.help().expect("the check has help");
    for way in ["`Device::set_instruction_limit`", "`Options::fuel`", "`--fuel`", "`set_instruction_limit` in Python"] {
        assert!(help.contains(way), "no {way} in: {help}");
    }
}

#[test]
fn findings_have_a_limit() {
    let mut k = Kit::new([1, 1, 1], "1 / 0");
    let (one, zero) = (k.b.constant(Scalar::U32, 1), k.b.constant(Scalar::U32, 0));
    for _ in 0..5 {
        k.binary(Binary::Div, one, zero);
    }
    let outcome = run_with(&k.finish(), [1, 1, 1], vec![], Options { limit: 3, ..Options::default() });
    assert_eq!(outcome.report.findings.len(), 3);
    assert!(outcome.report.truncated);
}

#[test]
fn arguments_must_fit() {
    let program = Program::decode(&copy(true)).expect("a kernel");
    let launch =
        |arguments| program.run(Launch { grid: [1, 1, 1], block: None, arguments, options: Options::default() });
    let x = [0.0f32; 4];
    let y = || out(vec![0.0f32; 4].leak());
    let refused = |r: Result<Outcome, LaunchFailure>| r.expect_err("a mismatch").to_string();
    assert_eq!(refused(launch(vec![input(&x)])), "`kernel` takes 2 arguments, and 1 are given");
    assert!(refused(launch(vec![Binding::Scalar(3), y()])).contains("(`x`) expects memory, found a scalar"));
    assert!(refused(launch(vec![input(&x), input(&x)])).contains("(`y`) is written by the kernel"));
    let long = Binding::Memory { bytes: ArgumentBytes::Shared(&[0; 16]), extents: vec![5], strides: vec![] };
    assert!(refused(launch(vec![long, y()])).contains("spans 20 bytes by its extents and strides, and has 16"));
    let flat = Binding::Memory { bytes: ArgumentBytes::Shared(&[0; 16]), extents: vec![], strides: vec![] };
    assert!(refused(launch(vec![flat, y()])).contains("has 0 dimensions"));

    let mut k = Kit::new([1, 1, 1], "n");
    k.scalar_argument("n", Scalar::U8);
    let program = Program::decode(&k.finish()).expect("a kernel");
    let launch =
        |n| program.run(Launch { grid: [1, 1, 1], block: None, arguments: vec![n], options: Options::default() });
    assert!(launch(Binding::Scalar(255)).is_ok());
    assert!(refused(launch(Binding::Scalar(256))).contains("too many for `u8`"));
    assert!(refused(launch(input(&[0u8]))).contains("expects a `u8`, found memory"));
}

#[test]
fn invalid_ir_is_rejected() {
    let mut k = Kit::new([1, 1, 1], "nonsense");
    let a = k.b.constant(Scalar::F32, 0);
    k.at("nonsense");
    k.binary(Binary::Shl, a, a);
    let error = Program::decode(&k.finish()).expect_err("a shift of a float").to_string();
    assert_eq!(error, "the interpreter cannot run this kernel: zoo/src/lib.rs:10:1: `f32` has no operation Shl");
    let mut k = Kit::new([1, 1, 1], "nonsense");
    k.b.scalar(Op::Binary(Binary::Add, a, a), Scalar::F32);
    assert!(Program::decode(&k.finish()).is_err(), "a value of another kernel");
    let k = Kit::new([2048, 1, 1], "nonsense");
    assert!(Program::decode(&k.finish()).expect_err("too many threads").to_string().contains("1 to 1024"));
}

/// Checks that a computed extent larger than the buffer permits no accesses outside of the buffer.
#[test]
fn extents_do_not_make_memory() {
    let mut k = Kit::new([1, 1, 1], "y[5] = x.narrow(9)[5];");
    let (x, y): (Slice, Slice) = (k.slice("x", Scalar::U32, false), k.slice("y", Scalar::U32, true));
    let (index, extent) = (k.b.index(5), k.b.index(9));
    let dims = [Dim { index, extent, stride: None }].into_iter().collect();
    k.at("x.narrow(9)[5]");
    let v = k.load(AccessPlace::Global { base: x.base, dims, within: None }, Scalar::U32);
    k.store(y.at(index), Scalar::U32, v);
    let outcome = run(&k.finish(), 1, vec![input(&[1u32; 5]), out(&mut [0u32; 6])]);
    only(&outcome, Check::OutOfBounds, 0);
}
