//! Small integers, loaded in one order and stored in another: random orders against plain Rust.
//! Kernels run as lowered and after the passes, which permute the bytes of words.

use crate::kit::*;
use crate::memory::everywhere;
use kernel_dsl::compiler::ir::{Binary, Bits, Comparison, Inst, Kernel, Op, Region, Value, Values};
use kernel_dsl::compiler::{Scalar, passes};

/// The number of threads. `BYTES` is the number of bytes that each thread reads, and also the
/// number that it writes.
const THREADS: u32 = 8;
const BYTES: u32 = 64;

/// A store: elements of a thread's output, each from an element of its input or a constant.
struct Written {
    to: u32,
    from: Vec<Result<u32, u64>>,
    /// The number of threads that store, if not all of them.
    below: Option<u32>,
}

struct Shuffle {
    kernel: Kernel,
    written: Vec<Written>,
}

/// Draws the number of words of an access at word `at`: 1, 2 or 4, at an aligned position.
fn piece(random: &mut Random, at: u32) -> u32 {
    1 << random.below(3).min(at.trailing_zeros())
}

/// Builds a kernel that loads all elements of a thread in pieces of several words, and stores them
/// in another order. Stores are also in pieces, or joined to words.
fn shuffle(element: Scalar, seed: u64) -> Shuffle {
    let mut random = Random(seed * 2 + 1);
    let each = BYTES / element.bytes();
    let parts = 4 / element.bytes();
    let mut k = Kit::new([THREADS, 1, 1], "x[i]");
    let x = k.slice("x", element, true);
    k.at("x[i]");
    let thread = k.thread();
    let n = k.b.index(each);
    let first = k.binary(Binary::Mul, thread, n);
    let place = |k: &mut Kit, at: u32| {
        let at = k.b.index(at);
        let at = k.binary(Binary::Add, first, at);
        x.at(at)
    };
    let mut loaded: Vec<Value> = Vec::new();
    while (loaded.len() as u32) < each {
        let words = piece(&mut random, loaded.len() as u32 / parts);
        let place = place(&mut k, loaded.len() as u32);
        loaded.extend(k.load_many(place, element, (words * parts) as usize));
    }
    let mut written = Vec::new();
    let mut to = each * THREADS;
    // A small choice of words makes packs of one, two and three of them.
    let among = [each, 4 * parts, 2 * parts, parts][random.below(4) as usize];
    let start = random.below(each - among + 1);
    while to < each * (THREADS + 1) {
        let words = piece(&mut random, to / parts);
        let below = (random.below(3) == 0).then(|| random.below(THREADS));
        // Some columns of words, as in a transpose.
        let (columns, part) = (random.below(2) == 0, random.below(parts));
        let from: Vec<Result<u32, u64>> = (0..words * parts)
            .map(|i| match random.below(40) {
                0 => Err(random.next() & element.mask()),
                _ if columns => Ok((i % parts * parts + (part + i / parts) % parts) % each),
                _ => Ok(start + random.below(among)),
            })
            .collect();
        let joined = words == 1 && random.below(2) == 0;
        let alone = random.below(30) == 0;
        let store = |k: &mut Kit| {
            let values: Values = from
                .iter()
                .map(|of| match of {
                    Ok(i) => loaded[*i as usize],
                    Err(bits) => k.b.constant(element, *bits),
                })
                .collect();
            if joined {
                // Joins the elements twice: both words are equal.
                let word = if element.is_signed() { Scalar::I32 } else { Scalar::U32 };
                let a = k.b.scalar(Op::Bits(Bits::Join, values.iter().copied().collect()), word);
                let b = k.b.scalar(Op::Bits(Bits::Join, values.iter().copied().collect()), word);
                let both = k.binary(Binary::And, a, b);
                for part in 0..parts {
                    let distance = k.b.constant(Scalar::U32, u64::from(part * 8 * element.bytes()));
                    let shifted = k.b.scalar(Op::Binary(Binary::Shr, both, distance), word);
                    let low = k.b.scalar(Op::Cast(shifted), element);
                    let place = place(k, to + part);
                    k.store(place, element, low);
                }
            } else if alone {
                for (at, value) in (to..).zip(values) {
                    let place = place(k, at);
                    k.store(place, element, value);
                }
            } else {
                let place = place(k, to);
                k.b.effect(Op::Store { place, element, values, guard: None });
            }
        };
        if let Some(below) = below {
            let bound = k.b.index(below);
            let condition = k.b.compare(Comparison::Lt, thread, bound);
            k.when(condition, store);
        } else {
            store(&mut k);
        }
        written.push(Written { to: to - each * THREADS, from, below });
        to += words * parts;
    }
    Shuffle { kernel: k.finish(), written }
}

fn permutations(region: &Region) -> usize {
    let of = |inst: &Inst| {
        let own = usize::from(matches!(inst.op, Op::Bits(Bits::Permute, _)));
        own + inst.op.regions().into_iter().map(permutations).sum::<usize>()
    };
    region.insts.iter().map(of).sum()
}

#[test]
fn results_are_equal_in_any_order() {
    let mut permuted = 0;
    for seed in 0..100 {
        for element in [Scalar::I8, Scalar::U8, Scalar::I16, Scalar::U16] {
            let Shuffle { kernel, written } = shuffle(element, seed);
            let size = element.bytes() as usize;
            let half = (THREADS * BYTES) as usize;
            let mut random = Random(seed + 7);
            let bytes: Vec<u8> = (0..2 * half).map(|_| random.next() as u8).collect();
            let mut expected = bytes.clone();
            for (thread, w) in (0..THREADS).flat_map(|thread| written.iter().map(move |w| (thread, w))) {
                if w.below.is_some_and(|below| thread >= below) {
                    continue;
                }
                for (at, from) in w.from.iter().enumerate() {
                    let part = thread as usize * BYTES as usize;
                    let to = half + part + (w.to as usize + at) * size;
                    match from {
                        Ok(i) => expected[to..to + size].copy_from_slice(&bytes[part + *i as usize * size..][..size]),
                        Err(bits) => expected[to..to + size].copy_from_slice(&bits.to_le_bytes()[..size]),
                    }
                }
            }
            assert!(everywhere(&kernel, &bytes, size) == expected, "{element:?}, seed {seed}\n{kernel}");
            permuted += permutations(&passes::optimize(kernel).expect("passes take it").body);
        }
    }
    assert!(permuted > 1000, "{permuted} permutations");
}
