//! Elements of several scalars, and shared memory that is swizzled, sized by the launch, or shared
//! by several arrays. Each form of a kernel runs against plain Rust.

use crate::kit::*;
use kernel_dsl::compiler::ir::record::WORDS;
use kernel_dsl::compiler::ir::{
    AccessPlace, Binary, Comparison, Dim, DynamicArray, DynamicId, ElementIndex, ElementOffset, For, Formula, Kernel,
    MemoryElement, Op, Role, SharedLayout, Special, Swizzle, Type, Unary, Unroll, Value, Values,
};
use kernel_dsl::compiler::lower::checked::CheckedKernel;
use kernel_dsl::compiler::{Scalar, passes};
use runtime::interpreter::{ArgumentBytes, Binding, Check, Launch, Options, Program, reported};
use smallvec::{SmallVec, smallvec};

/// A pair of `u32`s, then four `u16`s: 16 bytes.
const RECORD: MemoryElement = MemoryElement::Aggregate { bytes: 16, align: 4 };

fn within(offset: u32, indices: SmallVec<[ElementIndex; 1]>) -> Option<Box<ElementOffset>> {
    Some(Box::new(ElementOffset { bytes: RECORD.bytes(), offset, indices }))
}

fn element(place: AccessPlace, inside: Option<Box<ElementOffset>>) -> AccessPlace {
    match place {
        AccessPlace::Global { base, dims, .. } => AccessPlace::Global { base, dims, within: inside },
        AccessPlace::Shared { array, indices, .. } => AccessPlace::Shared { array, indices, within: inside },
        other => other,
    }
}

/// Runs `kernel` as lowered, after passes, and in its checked form, which must agree and find
/// nothing. Returns the bytes of its one argument, whose initial contents are `bytes`.
pub fn everywhere(kernel: &Kernel, bytes: &[u8], size: usize) -> Vec<u8> {
    let launch = |program: &Program, record: Option<&mut [u32]>| {
        let mut data = bytes.to_vec();
        let n = (data.len() / size) as u32;
        let first = Binding::Memory { bytes: ArgumentBytes::Exclusive(&mut data), extents: vec![n], strides: vec![] };
        let arguments = std::iter::once(first).chain(record.map(out)).collect();
        let run = program.run(Launch { grid: [1, 1, 1], block: None, arguments, options: Options::default() });
        let outcome = run.unwrap_or_else(|e| panic!("{e}"));
        assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
        data
    };
    let lowered = launch(&Program::decode(kernel).expect("it decodes"), None);
    let optimized = passes::optimize(kernel.clone()).expect("passes take it");
    assert_eq!(lowered, launch(&Program::decode_optimized(&optimized).expect("it decodes"), None), "after passes");
    let checked = CheckedKernel::of(kernel.clone());
    let mut record = [0; WORDS];
    let program = Program::decode(&checked.kernel).expect("it decodes");
    assert_eq!(lowered, launch(&program, Some(&mut record)), "checked");
    // Passes split its vector accesses.
    let optimized = checked.optimized().expect("passes take it");
    let program = Program::decode_optimized(&optimized).expect("it decodes");
    assert_eq!(lowered, launch(&program, Some(&mut record)), "checked, after passes");
    assert_eq!(reported(&checked, &record), None);
    lowered
}

/// Returns the message of the checked form for a run on `bytes`.
fn violation(kernel: &Kernel, bytes: &mut [u8], size: usize) -> String {
    let checked = CheckedKernel::of(kernel.clone());
    let (n, mut record) = ((bytes.len() / size) as u32, [0u32; WORDS]);
    let first = Binding::Memory { bytes: ArgumentBytes::Exclusive(bytes), extents: vec![n], strides: vec![] };
    let outcome = run(&checked.kernel, 1, vec![first, out(&mut record)]);
    assert!(outcome.report.findings.is_empty(), "a reported access is suppressed: {}", outcome.report);
    reported(&checked, &record).expect("a violation").findings[0].message.clone()
}

/// Builds a kernel whose thread i swaps the `u32`s of record i, and moves its `u16` number i mod
/// `among` to the first.
fn records(among: u32) -> Kernel {
    let mut k = Kit::new([32, 1, 1], "x[i].q[i % among]");
    let x = k.slice("x", Scalar::U32, true);
    k.b.kernel.parameters[0].role = Role::Address { element: RECORD, mutable: true };
    k.at("x[i].q");
    let i = k.thread();
    let pair = k.load_many(element(x.at(i), within(0, smallvec![])), Scalar::U32, 2);
    let swapped: Values = [pair[1], pair[0]].into_iter().collect();
    let place = element(x.at(i), within(0, smallvec![]));
    k.b.effect(Op::Store { place, element: Scalar::U32, values: swapped, guard: None });
    let among = k.b.index(among);
    let j = k.binary(Binary::Rem, i, among);
    let step = |index| smallvec![ElementIndex { index, extent: 4, bytes: 2 }];
    let q = k.load(element(x.at(i), within(8, step(j))), Scalar::U16);
    let zero = k.b.index(0);
    k.store(element(x.at(i), within(8, step(zero))), Scalar::U16, q);
    k.finish()
}

#[test]
fn parts_of_elements_are_exchanged() {
    let bytes: Vec<u8> = (0..32 * 16).map(|i| (i * 7 % 251) as u8).collect();
    let mut expected = bytes.clone();
    for (i, record) in expected.chunks_mut(16).enumerate() {
        let (a, b) = record[..8].split_at_mut(4);
        a.swap_with_slice(b);
        record.copy_within(8 + 2 * (i % 4)..10 + 2 * (i % 4), 8);
    }
    // The alignment of a record guarantees only 4 bytes for the pair. Here records are 16 bytes
    // apart, from an aligned address.
    assert_eq!(everywhere(&records(4), &bytes, 16), expected);

    // An index past the array in the element does not access another field.
    let mut data = bytes.clone();
    let n = (data.len() / 16) as u32;
    let argument = Binding::Memory { bytes: ArgumentBytes::Exclusive(&mut data), extents: vec![n], strides: vec![] };
    let outcome = run(&records(5), 1, vec![argument]);
    assert_eq!(findings(&outcome), [(Check::OutOfBounds, 0)]);
    let message = "index 4 is out of bounds of the array in the element, which has 4 elements";
    assert_eq!(outcome.report.findings[0].message, message);
    assert_eq!(outcome.report.findings[0].count, 6);
    assert_eq!(violation(&records(5), &mut bytes.clone(), 16), message);

    // A record past the end of the slice.
    let message = "index 31 is out of bounds of `x`, which has 31 elements";
    assert_eq!(violation(&records(4), &mut bytes[..31 * 16].to_vec(), 16), message);
}

/// Builds a kernel of 32 × 8 threads that store (row, column) to swizzled rows of `columns` `f32`s.
/// The kernel then copies the bytes to y in storage order.
fn swizzled(columns: u32) -> Kernel {
    let mut k = Kit::new([columns, 16, 1], "s[(r, c)] = 100 r + c;");
    let y = k.slice("y", Scalar::U32, true);
    let s = k.shared("s", Scalar::U32, &[16, columns], &[columns, 1]);
    k.b.kernel.shared[0].layout = SharedLayout::Swizzled(Swizzle::of(4 * columns).expect("whole pieces"));
    let flat = k.shared("flat", Scalar::U32, &[16 * columns], &[1]);
    k.b.kernel.shared[1].over = Some(s);
    k.b.kernel.shared[1].offset = 0;
    let (c, r) = (k.thread(), k.special(Special::Thread(1)));
    let (hundred, width) = (k.b.index(100), k.b.index(columns));
    let row = k.binary(Binary::Mul, r, hundred);
    let v = k.binary(Binary::Add, row, c);
    let v = k.b.scalar(Op::Cast(v), Scalar::U32);
    k.store(in_shared(s, &[r, c]), Scalar::U32, v);
    k.b.effect(Op::BlockSync);
    // Loads by index find the values again, four at a time where aligned.
    let three = k.b.index(3);
    let masked = k.b.scalar(Op::Unary(Unary::Not, three), Scalar::Usize);
    let quad = k.binary(Binary::And, c, masked);
    let found = k.load_many(in_shared(s, &[r, quad]), Scalar::U32, 4);
    let at = k.binary(Binary::Mul, r, width);
    let at = k.binary(Binary::Add, at, c);
    let lies = k.load(in_shared(flat, &[at]), Scalar::U32);
    let mut right = lies;
    for (i, found) in found.iter().enumerate() {
        let i = k.b.index(i as u32);
        let column = k.binary(Binary::Add, quad, i);
        let expected = k.binary(Binary::Add, row, column);
        let expected = k.b.scalar(Op::Cast(expected), Scalar::U32);
        let same = k.b.compare(Comparison::Eq, *found, expected);
        let wrong = k.b.constant(Scalar::U32, 999_999);
        right = k.b.scalar(Op::Select { condition: same, yes: right, no: wrong }, Scalar::U32);
    }
    k.store(y.at(at), Scalar::U32, right);
    k.finish()
}

#[test]
fn swizzled_rows_lie_as_documented() {
    // Rows of 1, 2, 4, 8 and 16 pieces, and of 6, which is divisible by two.
    for columns in [4, 8, 16, 32, 64, 24] {
        let n = (16 * columns) as usize;
        let bytes = everywhere(&swizzled(columns), &vec![0; 4 * n], 4);
        let words: &[u32] = bytemuck::cast_slice(&bytes);
        for (at, word) in words.iter().enumerate() {
            let (row, piece, rest) = (at as u32 / columns, at as u32 % columns / 4, at as u32 % 4);
            let among = 1 << (columns / 4).trailing_zeros().min(3);
            let moved = piece ^ ((row / (8 / among)) % among);
            assert_eq!(*word, 100 * row + 4 * moved + rest, "{columns} columns, word {at}");
        }
    }
}

/// Builds a kernel in which `d` has `n` elements, and `e` has x.len() elements. Thread i stores to
/// d[i] and e[i], and adds its neighbor's two values to x[i].
fn dynamic(n: u32) -> Kernel {
    let mut k = Kit::new([64, 1, 1], "let d = dynamic(n);\nd[i] = i;\ne[i] = 2 i;");
    let x = k.slice("x", Scalar::U32, true);
    let (n, i, last) = (k.b.index(n), k.thread(), k.b.index(63));
    let wide = k.binary(Binary::Add, x.len, n);
    let mut arrays: Vec<(Value, Value)> = Vec::new();
    for (name, extent) in [("d", wide), ("e", x.len)] {
        let array = DynamicArray { name: name.into(), element: Scalar::U32.into(), extents: smallvec![] };
        k.b.kernel.dynamic.push(array);
        let id = DynamicId(k.b.kernel.dynamic.len() as u32 - 1);
        k.at("let d");
        arrays.push((k.b.value(Op::Dynamic { array: id, extents: smallvec![extent] }, Type::Shared), extent));
    }
    let place = |(base, extent), index| AccessPlace::Dynamic {
        base,
        dims: [Dim { index, extent, stride: None }].into_iter().collect(),
        within: None,
    };
    let v = k.b.scalar(Op::Cast(i), Scalar::U32);
    let twice = k.binary(Binary::Add, v, v);
    k.at("d[i]");
    k.store(place(arrays[0], i), Scalar::U32, v);
    k.at("e[i]");
    k.store(place(arrays[1], i), Scalar::U32, twice);
    k.b.effect(Op::BlockSync);
    let one = k.b.index(1);
    let j = k.binary(Binary::Add, i, one);
    let j = k.binary(Binary::And, j, last);
    let (a, b) = (k.load(place(arrays[0], j), Scalar::U32), k.load(place(arrays[1], j), Scalar::U32));
    let sum = k.binary(Binary::Add, a, b);
    let old = k.load(x.at(i), Scalar::U32);
    let sum = k.binary(Binary::Add, sum, old);
    k.store(x.at(i), Scalar::U32, sum);
    let mut kernel = k.finish();
    for (array, (_, extent)) in arrays.into_iter().enumerate() {
        kernel.dynamic[array].extents = smallvec![Formula::of(&kernel, extent).expect("the extent is a parameter")];
    }
    kernel
}

#[test]
fn the_launch_evaluates_sizes() {
    let bytes: Vec<u8> = bytemuck::cast_slice::<u32, u8>(&[1000; 64]).to_vec();
    for n in [0, 3] {
        let after = everywhere(&dynamic(n), &bytes, 4);
        let expected: Vec<u32> = (0..64).map(|i| 1000 + 3 * ((i + 1) % 64)).collect();
        assert_eq!(bytemuck::cast_slice::<u8, u32>(&after), expected);
    }
    // `e` is one element short.
    let outcome = run(&dynamic(1), 1, vec![out(&mut [0u32; 63])]);
    assert_eq!(findings(&outcome)[0], (Check::OutOfBounds, 2));
    // The load and the store are at one place of the source.
    let message = "index 63 is out of bounds of `e`, which has 63 elements";
    assert_eq!(outcome.report.findings[0].message, format!("{message}, when the assignment stores the result"));
    assert_eq!(violation(&dynamic(1), &mut [0; 4 * 63], 4), message);
    // More shared memory than a block may have, and a size that overflows.
    let refused = |n, len: usize| {
        let program = Program::decode(&dynamic(n)).expect("it decodes");
        let mut x = vec![0u32; len];
        let launch = Launch { grid: [1, 1, 1], block: None, arguments: vec![out(&mut x)], options: Options::default() };
        program.run(launch).expect_err("it is refused").to_string()
    };
    assert_eq!(
        refused(10_000, 5000),
        "the block needs more than 49152 bytes of shared memory: `d` of 15000 elements 60000; \
         launch smaller blocks, or pass smaller sizes"
    );
    assert_eq!(refused(u32::MAX, 1), "the size of `d` in shared memory: 1 + 4294967295 overflows `usize`");
}

/// Builds a kernel whose arrays `a` and `b` share their bytes. The kernel stores to `a` and loads
/// through `b`, after the lifetime of `b` starts or without that.
fn two_lives(begins: bool, stored: bool) -> Kernel {
    let mut k = Kit::new([32, 1, 1], "a[i] = i;\nlet b;\ny[i] = b[i];");
    let y = k.slice("y", Scalar::Usize, true);
    let a = k.shared("a", Scalar::Usize, &[32], &[1]);
    let b = k.shared("b", Scalar::Usize, &[32], &[1]);
    k.b.kernel.shared[1].over = Some(a);
    k.b.kernel.shared[1].offset = 0;
    let i = k.thread();
    k.store(in_shared(a, &[i]), Scalar::Usize, i);
    if begins {
        k.b.effect(Op::LifetimeStart(b));
    }
    if stored {
        k.store(in_shared(b, &[i]), Scalar::Usize, i);
    }
    k.at("= b[i]");
    let v = k.load(in_shared(b, &[i]), Scalar::Usize);
    k.store(y.at(i), Scalar::Usize, v);
    k.finish()
}

#[test]
fn array_on_reused_bytes_begins_undefined() {
    let outcome = run(&two_lives(true, false), 1, vec![out(&mut [0u32; 32])]);
    assert_eq!(findings(&outcome), [(Check::UninitializedShared, 2)]);
    for (begins, stored) in [(false, false), (true, true)] {
        let bytes = everywhere(&two_lives(begins, stored), &[0; 128], 4);
        assert!(bytemuck::cast_slice::<u8, u32>(&bytes).iter().enumerate().all(|(i, v)| *v == i as u32));
    }
}

/// Checks a shared array whose lifetime starts in each iteration. Warps store a part each, and load
/// it after the barrier. With `stale`, the last iteration loads without a store.
#[test]
fn iterations_begin_undefined_and_warps_may_be_ahead() {
    for stale in [false, true] {
        let mut k = Kit::new([64, 1, 1], "s[i] = n;\ny[i] = s[i];");
        let y = k.slice("y", Scalar::Usize, true);
        let s = k.shared("s", Scalar::Usize, &[64], &[1]);
        let (i, zero, two, one) = (k.thread(), k.b.index(0), k.b.index(2), k.b.index(1));
        let label = k.label();
        let n = k.b.enter([Type::Scalar(Scalar::Usize)])[0];
        k.b.effect(Op::LifetimeStart(s));
        let last = k.b.compare(Comparison::Lt, n, if stale { one } else { two });
        k.when(last, |k| k.store(in_shared(s, &[i]), Scalar::Usize, n));
        k.b.effect(Op::BlockSync);
        k.at("= s[i]");
        let v = k.load(in_shared(s, &[i]), Scalar::Usize);
        k.store(y.at(i), Scalar::Usize, v);
        let body = k.b.leave();
        let (unroll, inits) = (Unroll::Never, Values::new());
        let counted = For { label, start: zero, end: two, step: one, unroll, inits, body };
        k.b.effect(Op::For(Box::new(counted)));
        let outcome = run(&k.finish(), 1, vec![out(&mut [0u32; 64])]);
        let expected: &[_] = if stale { &[(Check::UninitializedShared, 1)] } else { &[] };
        assert_eq!(findings(&outcome), expected);
    }
}

#[test]
fn copies_in_flight_are_undefined() {
    let kernel = |arrives: bool, distance: u32| {
        let mut k = Kit::new([64, 1, 1], "copy(s);\ny[i] = s[j];");
        let y = k.slice("y", Scalar::Usize, true);
        let s = k.shared("s", Scalar::Usize, &[64], &[1]);
        let (i, distance, last) = (k.thread(), k.b.index(distance), k.b.index(63));
        let j = k.binary(Binary::WrappingAdd, i, distance);
        let j = k.binary(Binary::And, j, last);
        k.store(in_shared(s, &[i]), Scalar::Usize, i);
        k.b.effect(Op::BlockSync);
        k.at("copy(s)");
        k.b.effect(Op::MarkUndef { place: in_shared(s, &[i]), element: Scalar::Usize, count: 1, guard: None });
        if arrives {
            k.store(in_shared(s, &[i]), Scalar::Usize, i);
        }
        k.at("= s[j]");
        let v = k.load(in_shared(s, &[j]), Scalar::Usize);
        k.store(y.at(i), Scalar::Usize, v);
        k.finish()
    };
    let found = |kernel: &Kernel| findings(&run(kernel, 1, vec![out(&mut [0u32; 64])]));
    assert_eq!(found(&kernel(true, 0)), []);
    assert_eq!(found(&kernel(false, 0)), [(Check::UninitializedShared, 1), (Check::UnfinishedCopy, 0)]);
    // Another warp's load is not ordered with the copy.
    assert!(found(&kernel(false, 32)).contains(&(Check::SharedRace, 1)));
}
