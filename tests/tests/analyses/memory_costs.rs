//! Tests of the memory analysis and of the lints of slow code, against addresses computed in plain
//! Rust.

use kernel_dsl::compiler::analyses::memory::{AccessKind, AccessSite, Cost, accesses};
use kernel_dsl::compiler::analyses::slow::{Lint, Slow, lints};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::{Scalar, Target, lower, passes};
use kernel_dsl::prelude::*;
use kernel_dsl::{Artifact, Kernel};
use std::collections::HashSet;

const THREADS: usize = 96;

/// Declares a kernel that loads the element of an index from a buffer and from shared memory, and
/// the index as a Rust function.
macro_rules! patterns {
    ($($name:ident: |$t:ident| $index:expr;)*) => {
        mod kernels {
            use super::*;
            $(
                #[kernel(block = THREADS, grid = 1, instances(THREADS = 96))]
                pub fn $name<const THREADS: usize>(x: &[f32], y: &mut [f32]) {
                    let s = Shared::<f32, 1>::new([8192]);
                    s.fill(1.0);
                    block::sync();
                    let $t = thread::index();
                    let i = $index;
                    y[$t] = x[i] + s[i];
                }
            )*
        }
        const PATTERNS: &[(&Artifact, fn(usize) -> usize)] =
            &[$((<kernels::$name<96> as Kernel>::ARTIFACT, |$t| $index)),*];
    };
}

patterns! {
    consecutive: |t| t;
    shifted: |t| t + 3;
    backwards: |t| 95 - t;
    every_second: |t| 2 * t;
    every_third: |t| t * 3 + 1;
    columns: |t| t * 32;
    padded_columns: |t| t * 33;
    transposed: |t| t % 8 * 64 + t / 8;
    pairs: |t| t / 2;
    one: |_t| 7;
    by_warp: |t| t / 32 * 100;
    swizzled: |t| (t % 32) * 32 + ((t / 32) ^ (t % 32));
    bits: |t| (t << 4 | t >> 1) & 1023;
    chosen: |t| if t % 2 == 0 { t } else { 64 * t };
    least: |t| t.min(40) * 8;
    rotated: |t| (t as u32).wrapping_mul(0x0800_0001).rotate_left(5) as usize % 4096;
    narrow: |t| (t as u8).wrapping_mul(2).wrapping_add(100) as usize;
    signed: |t| ((t as i32 - 48) * -2 + 100) as usize;
}

fn ir_of(artifact: &Artifact, instance: usize, target: Target) -> (passes::Optimized, Vec<AccessSite>) {
    let program = artifact.program().unwrap();
    let instance = Instance(artifact.instances[instance].constants.to_vec());
    let lowered = lower::lower(&program, &instance, target).unwrap();
    let sites = accesses(&passes::with_places(lowered.clone()).unwrap());
    (passes::optimize(lowered).unwrap(), sites)
}

fn sites(artifact: &Artifact) -> Vec<AccessSite> {
    ir_of(artifact, 0, Target::SM_61).1
}

fn loaded<'s>(sites: &'s [AccessSite], array: &str) -> &'s AccessSite {
    let mut found = sites.iter().filter(|s| s.kind == AccessKind::Load && s.array.as_deref() == Some(array));
    let site = found.next().unwrap_or_else(|| panic!("no load of `{array}` in {sites:?}"));
    assert_eq!(found.next(), None, "several loads of `{array}`");
    site
}

/// Returns the sectors of the warp with the most waste, the minimum for its bytes, and the words
/// that the busiest bank serves.
fn counted(index: fn(usize) -> usize) -> ((usize, usize), usize) {
    let indices: Vec<usize> = (0..THREADS).map(index).collect();
    let (mut worst, mut ways) = ((0, 1), 0);
    for warp in indices.chunks(32) {
        let words: HashSet<usize> = warp.iter().copied().collect();
        let sectors: HashSet<usize> = words.iter().map(|word| word * 4 / 32).collect();
        let here = (sectors.len(), (words.len() * 4).div_ceil(32));
        if here.0 * worst.1 > worst.0 * here.1 {
            worst = here;
        }
        let busiest = (0..32).map(|bank| words.iter().filter(|word| **word % 32 == bank).count()).max();
        ways = ways.max(busiest.unwrap());
    }
    (worst, ways)
}

#[test]
fn sectors_and_conflicts_match_the_addresses() {
    for (artifact, index) in PATTERNS {
        let all = sites(artifact);
        let ((sectors, least), ways) = counted(*index);
        let found = match loaded(&all, "x").cost {
            Some(Cost::Global { sectors, least, .. }) => Some((sectors as usize, least as usize)),
            _ => None,
        };
        assert_eq!(found, Some((sectors, least)), "{}", artifact.name);
        assert_eq!(loaded(&all, "s").cost, Some(Cost::Shared { ways: ways as u32 }), "{}", artifact.name);
    }
}

/// Reads columns of a swizzled array, by packs and by elements, and every other element of an array
/// of the launch's size.
#[kernel(block = 32, grid = 1)]
#[requires(x.rows() == 32, x.cols() == 32, y.rows() == 32, y.cols() == 32, y.aligned(4), n > 64)]
pub fn laid_out(x: View<f32, 2>, mut y: ViewMut<f32, 2>, n: usize) {
    let tile = Shared::<f32, 2>::swizzled([32, 32]);
    let mut row = Shared::<f32, 1>::dynamic([n]);
    tile.copy_from(x);
    let t = thread::x();
    row[2 * t] = 1.0;
    block::sync();
    for piece in rolled(0..8) {
        y.store((t, 4 * piece), tile.load::<4>((t, 4 * piece)));
    }
    for col in rolled(0..n) {
        y[(t, 0)] += tile[(t, col)];
    }
}

#[test]
fn swizzled_and_dynamic_shared_memory_has_known_costs() {
    let all = sites(laid_out::ARTIFACT);
    let cost = |array: &str, kind: AccessKind, bytes: u32| {
        let mut found = all.iter().filter(|s| (s.array.as_deref(), s.kind, s.bytes) == (Some(array), kind, bytes));
        let site = found.next().unwrap_or_else(|| panic!("no such access of `{array}` in {all:?}"));
        assert_eq!(found.next(), None, "several accesses of `{array}`");
        site.cost
    };
    // The hardware serves eight lanes at once, in consecutive rows. Each lane finds its pack at a
    // different location of the row.
    let at = |row: usize, col: usize| row * 32 + (col ^ ((row & 7) << 2));
    let busiest = |lanes: std::ops::Range<usize>, width: usize, col: usize| {
        let words: Vec<usize> = lanes.flat_map(|row| (0..width).map(move |w| at(row, col) + w)).collect();
        (0..32).map(|bank| words.iter().filter(|word| **word % 32 == bank).count()).max()
    };
    assert_eq!((0..8).map(|piece| busiest(8..16, 4, 4 * piece)).max(), Some(Some(1)));
    assert_eq!(cost("tile", AccessKind::Load, 16), Some(Cost::Shared { ways: 1 }));
    assert_eq!((0..32).map(|col| busiest(0..32, 1, col)).max(), Some(Some(4)));
    assert_eq!(cost("tile", AccessKind::Load, 4), Some(Cost::Shared { ways: 4 }));
    assert_eq!(cost("row", AccessKind::Store, 4), Some(Cost::Shared { ways: 2 }));
}

/// Reads an array in local memory at an index that 16 lanes share, at the lane's own index, and at
/// an index from memory.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, y.len() == 32)]
pub fn in_local_memory(x: &[u32], y: &mut [u64]) {
    let t = thread::x();
    let mut own = thread::local::<[u64; 40]>();
    for k in rolled(0..40) {
        own[k] = k as u64;
    }
    let halves = own[t / 16];
    let apart = own[t];
    let unknown = own[x[t] as usize % 40];
    y[t] = halves ^ apart ^ unknown;
}

#[test]
fn local_memory_has_known_costs() {
    let all = sites(in_local_memory::ARTIFACT);
    let own: Vec<_> = all.iter().filter(|site| site.array.as_deref() == Some("own")).collect();
    let found: Vec<_> = own.iter().map(|site| (site.kind, site.bytes, site.loops, site.cost)).collect();
    // Word w of lane l is at 4 · (32 · w + l).
    let sectors = |index: &dyn Fn(usize) -> usize| {
        let words = (0..32).flat_map(|lane| [0, 1].map(|half| 32 * (2 * index(lane) + half) + lane));
        words.map(|word| word / 8).collect::<std::collections::BTreeSet<_>>().len() as u32
    };
    let cost = |sectors| Some(Cost::Local { sectors, least: 8 });
    let expected = [
        (AccessKind::Store, 8, 1, cost(sectors(&|_| 3))),
        (AccessKind::Load, 8, 0, cost(sectors(&|lane| lane / 16))),
        (AccessKind::Load, 8, 0, cost(sectors(&|lane| lane))),
        (AccessKind::Load, 8, 0, cost(64)),
    ];
    assert_eq!(found, expected);
}

/// Copies tiles with 16 bytes per lane, through registers and with `cp.async`.
#[kernel(block = (32, 4), grid = 4)]
#[requires(x.aligned(4), x.cols() % 4 == 0)]
pub fn wide_tiles(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let plain = Shared::<f32, 2>::new([32, 32]);
    let pitched = Shared::<f32, 2>::with_pitch([32, 16], 20);
    let coming = plain.copy_async(x.offset((block::x() * 32, 0)));
    pitched.copy_from(x.offset((block::x() * 32, 32)));
    coming.wait();
    block::sync();
    y[(thread::y(), thread::x())] = plain[(thread::y(), thread::x())] + pitched[(thread::x(), thread::y())];
}

#[test]
fn wide_copies_are_counted() {
    for target in [Target::SM_61, Target::SM_80] {
        let (_, all) = ir_of(wide_tiles::ARTIFACT, 0, target);
        let name = |s: &AccessSite| s.array.clone().unwrap_or_default();
        let cost = |array: &str, kind| {
            let site = all
                .iter()
                .find(|s| name(s) == array && s.kind == kind)
                .unwrap_or_else(|| panic!("no access to `{array}`"));
            (site.bytes, site.cost)
        };
        let ways = |n| Some(Cost::Shared { ways: n });
        assert_eq!(cost("plain", AccessKind::Store), (16, ways(1)), "{target}");
        // Four lanes cover a row of 16 words, and a quarter of a warp covers two rows, 20 words
        // apart. Four banks occur in both rows.
        assert_eq!(cost("pitched", AccessKind::Store), (16, ways(2)), "{target}");
        let loads: Vec<_> = all.iter().filter(|s| name(s) == "x").map(|s| (s.bytes, s.cost)).collect();
        // A quarter of a warp covers a row of 128 bytes, or two rows of 64.
        let whole = |lines| (16, Some(Cost::Global { sectors: 16, least: 16, lines, used: 512 }));
        assert_eq!(loads, [whole(4), whole(8)], "{target}");
        assert_eq!(cost("pitched", AccessKind::Load), (4, ways(4)), "{target}");
    }
}

/// Loads from addresses relative to a value that all lanes share, and from other addresses.
#[kernel(block = (16, 4), grid = (4, 4))]
#[requires(lists.len() > 0)]
pub fn relative(a: View<f32, 2>, lists: &[u32], mut y: ViewMut<f32, 2>, n: usize) {
    let tile = Shared::<f32, 2>::new([16, 16]);
    tile.copy_from(a.offset((block::y() * 16, block::x() * 16)));
    block::sync();
    let (row, col) = (block::y() * 16 + thread::y(), block::x() * 16 + thread::x());
    let mut acc = 0.0;
    let mut at = thread::x();
    for k in (0..n).step_by(2) {
        acc += a[(row, k)];
        acc += a[(k, col)];
        acc += a[(at, k)];
        at += 16;
    }
    let list = lists[block::x()] as usize;
    acc += a[(list, col)];
    let own = lists[col] as usize;
    acc += a[(own, 0)];
    if thread::x() < 2 {
        acc += tile[(thread::x(), thread::y())];
    }
    for i in 0..4 {
        y[(row + 4 * i, col)] = acc;
    }
}

#[test]
fn uniform_offsets_do_not_matter() {
    let (kernel, all) = ir_of(relative::ARTIFACT, 0, Target::SM_61);
    let at = |text: &str| -> Vec<Option<Cost>> {
        let here = |s: &&AccessSite| {
            let at = kernel.locations[s.location.0 as usize];
            kernel.sources[at.source as usize].line_code(at.span.line.into()) == text
        };
        all.iter().filter(here).map(|s| s.cost).collect()
    };
    let global = |[sectors, least, lines, used]: [u32; 4]| Some(Cost::Global { sectors, least, lines, used });
    // A warp covers two rows of sixteen elements.
    assert_eq!(at("acc += a[(row, k)];"), [global([2, 1, 2, 8])]);
    assert_eq!(at("acc += a[(k, col)];"), [global([2, 2, 1, 64])]);
    assert_eq!(
        at("acc += a[(at, k)];"),
        [global([16, 2, 16, 64])],
        "a loop-carried index with the same step in all lanes"
    );
    assert_eq!(at("let list = lists[block::x()] as usize;"), [global([1, 1, 1, 4])]);
    assert_eq!(at("acc += a[(list, col)];"), [global([2, 2, 1, 64])], "a value loaded from one location is uniform");
    assert_eq!(at("acc += a[(own, 0)];"), [None], "a value loaded per lane is unknown");
    assert_eq!(at("acc += tile[(thread::x(), thread::y())];"), [Some(Cost::Shared { ways: 1 })], "four lanes");
    assert_eq!(at("y[(row + 4 * i, col)] = acc;"), [global([4, 4, 2, 128])]);
    let copies = at("tile.copy_from(a.offset((block::y() * 16, block::x() * 16)));");
    assert_eq!(copies, [global([4, 4, 2, 128]), Some(Cost::Shared { ways: 1 })]);
    let unrolled = all.iter().find(|s| s.array.as_deref() == Some("y")).unwrap();
    assert_eq!((unrolled.count, unrolled.loops), (4, 0), "an unrolled loop has four instructions");
}

/// Contains one of each lint of slow code.
#[kernel(block = (20, 3), grid = 1)]
pub fn crawling(n: usize, x: &[f64], words: &mut [u64], floats: &mut [f32]) {
    let sums = Shared::<f32, 1>::new([32]);
    let wide = Shared::<u64, 2>::new([32, 32]);
    let i = thread::index();
    sums.fill(0.0);
    wide.fill(0);
    block::sync();
    let row = i / n;
    let scaled = x[i % 7] * 2.5;
    words[row] *= words[row + 1];
    words[i] = words[i] / words[row];
    sums.fetch_add(row % 32, 1.0);
    wide.fetch_add((i % 32, 0), 1);
    let mut f = scaled as f32;
    for k in 1..n {
        f = (f / (k as f32)).sqrt();
    }
    floats[64 * i] = f / 3.0;
}

fn found(artifact: &'static Artifact, target: Target) -> Vec<(String, Slow, u32, bool)> {
    let (kernel, sites) = ir_of(artifact, 0, target);
    let line = |lint: &Lint| match lint.location {
        Some(location) => {
            let at = kernel.locations[location.0 as usize];
            kernel.sources[at.source as usize].line_code(at.span.line.into()).to_string()
        }
        None => String::new(),
    };
    lints(&kernel, &sites).iter().map(|l| (line(l), l.slow, l.count, l.looped)).collect()
}

#[test]
fn slow_code_is_found_with_its_line() {
    let mut expected = vec![
        ("", Slow::PartialWarp(60), 1, false),
        ("let row = i / n;", Slow::IntegerDivision(Scalar::Usize), 1, false),
        ("let scaled = x[i % 7] * 2.5;", Slow::Double, 1, false),
        ("words[row] *= words[row + 1];", Slow::WideMultiply, 1, false),
        ("words[i] = words[i] / words[row];", Slow::IntegerDivision(Scalar::U64), 1, false),
        ("sums.fetch_add(row % 32, 1.0);", Slow::SharedAtomic(Scalar::F32), 1, false),
        ("wide.fetch_add((i % 32, 0), 1);", Slow::SharedAtomic(Scalar::U64), 1, false),
        ("wide.fetch_add((i % 32, 0), 1);", Slow::BankConflict(16), 1, false),
        ("f = (f / (k as f32)).sqrt();", Slow::FloatDivision(Scalar::F32), 1, true),
        ("f = (f / (k as f32)).sqrt();", Slow::SquareRoot(Scalar::F32), 1, true),
        ("floats[64 * i] = f / 3.0;", Slow::Scattered { sectors: 32, least: 4 }, 1, false),
    ];
    let same = |target, expected: &[(&str, Slow, u32, bool)]| {
        let expected: Vec<_> = expected.iter().map(|(line, s, n, l)| (line.to_string(), *s, *n, *l)).collect();
        assert_eq!(found(crawling::ARTIFACT, target), expected, "{target}");
    };
    same(Target::SM_61, &expected);
    // An A100 has half as many units for f64 as for f32, so that f64 is not slow there.
    expected.retain(|(_, slow, ..)| *slow != Slow::Double);
    same(Target::SM_80, &expected);
}

#[test]
fn lints_have_a_message_and_a_hint() {
    let (kernel, sites) = ir_of(crawling::ARTIFACT, 0, Target::SM_61);
    let all = lints(&kernel, &sites);
    let messages: Vec<_> = all
        .iter()
        .map(|l| format!("{}: {}\n  {}", l.slow.name(), l.slow.message(kernel.target), l.slow.help()))
        .collect();
    insta::assert_snapshot!(messages.join("\n"));
}
