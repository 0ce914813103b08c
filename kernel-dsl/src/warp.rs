//! The warp, 32 threads of consecutive [`thread::index`](crate::thread::index) that run together, and what its lanes
//! can hand each other without shared memory.
//!
//! All operations here but [`lane`], [`index`] and [`count`] need whole warps (a block whose number of threads is a multiple of
//! 32), and all 32 lanes at the same call: outside of any `if`, loop or `return` in which lanes part.
//!
//! A reduction gives every lane the result. Its order is part of its meaning, and the same on every target: a
//! butterfly, widest first, in which lane l combines its value with that of lane l XOR 16, then 8, 4, 2 and 1.

use crate::host::context::context;
use crate::host::monitor::Scope;

/// Threads of a warp.
const LANES: usize = 32;

/// Index of this thread in its warp, 0 to 31: `thread::index() % 32`. In PTX `and` with 31; for blocks whose x is 32,
/// `%tid.x`.
#[track_caller]
pub fn lane() -> usize {
    context("warp::lane()").index % LANES
}

/// Index of this warp in its block: `thread::index() / 32`. The same for all lanes. In PTX `shr` by 5; for blocks whose
/// x is 32, `%tid.y`.
#[track_caller]
pub fn index() -> usize {
    context("warp::index()").index / LANES
}

/// Warps of the block: `block::threads() / 32`, a constant of the kernel.
#[track_caller]
pub fn count() -> usize {
    context("warp::count()").threads() / LANES
}

/// The group of `W` neighbouring lanes that this lane is in: 2, 4, 8, 16 or 32 of them, the first a multiple of `W`.
///
/// ```ignore
/// let row = warp::group::<8>();                 // four rows a warp
/// let total = row.sum(x[(row.index(), row.lane())]);
/// ```
pub fn group<const W: usize>() -> Group<W> {
    const { assert!(matches!(W, 2 | 4 | 8 | 16 | 32), "a group has 2, 4, 8, 16 or 32 lanes of a warp") }
    Group(())
}

/// `W` neighbouring lanes of a warp, which can hand each other values as the lanes of the warp can; made by [`group`].
/// A device function takes one as `warp::Group<8>`, or `warp::Group<W>`.
///
/// The operations of all groups of a warp are one instruction: as with those of the warp, all 32 lanes must be at the
/// same call, those too whose group has nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Group<const W: usize>(());

impl<const W: usize> Group<W> {
    /// Index of this thread in its group, 0 to W − 1: `thread::index() % W`.
    #[track_caller]
    pub fn lane(self) -> usize {
        context("Group::lane").index % W
    }

    /// Index of this group in its block: `thread::index() / W`. The same for all lanes of the group.
    #[track_caller]
    pub fn index(self) -> usize {
        context("Group::index").index / W
    }

    /// The sum of the group's `x`, for all its lanes: a butterfly, widest first. In PTX log₂ W times `shfl.sync.bfly`
    /// and `add` (two shuffles each for 64-bit types).
    #[track_caller]
    pub fn sum<T: LaneValue>(self, x: T) -> T {
        butterfly("Group::sum", x, W, T::sum)
    }

    /// The largest of the group's `x`; of floats as [`max`].
    #[track_caller]
    pub fn max<T: LaneValue>(self, x: T) -> T {
        butterfly("Group::max", x, W, T::larger)
    }

    /// The smallest of the group's `x`; of floats as [`min`].
    #[track_caller]
    pub fn min<T: LaneValue>(self, x: T) -> T {
        butterfly("Group::min", x, W, T::smaller)
    }

    /// The `x` of the group's lane `lane` mod W. Lanes may name different ones. In PTX `shfl.sync.idx`.
    #[track_caller]
    pub fn shuffle<T: LaneValue>(self, x: T, lane: usize) -> T {
        T::from_lane(exchange("Group::shuffle", x.to_lane())[self.first() + lane % W])
    }

    /// The `x` of the lane whose index in the group is this lane's XOR `mask`; `mask` < W. In PTX `shfl.sync.bfly`.
    #[track_caller]
    pub fn shuffle_xor<T: LaneValue>(self, x: T, mask: usize) -> T {
        assert!(mask < W, "Group::shuffle_xor by {mask}: the group has {W} lanes");
        T::from_lane(exchange("Group::shuffle_xor", x.to_lane())[lane() ^ mask])
    }

    /// The group's `p`, lane l's in bit l; the bits from W on are 0. In PTX `vote.sync.ballot.b32`, and for less than a
    /// warp a shift and a mask.
    #[track_caller]
    pub fn ballot(self, p: bool) -> u32 {
        let lanes = exchange("Group::ballot", u64::from(p));
        lanes[self.first()..][..W].iter().rev().fold(0, |mask, p| mask << 1 | *p as u32)
    }

    /// Whether `p` holds in all lanes of the group. In PTX a ballot and a compare; for a warp `vote.sync.all.pred`.
    #[track_caller]
    pub fn all(self, p: bool) -> bool {
        exchange("Group::all", u64::from(p))[self.first()..][..W].iter().all(|p| *p == 1)
    }

    /// Whether `p` holds in any lane of the group. In PTX a ballot and a compare; for a warp `vote.sync.any.pred`.
    #[track_caller]
    pub fn any(self, p: bool) -> bool {
        exchange("Group::any", u64::from(p))[self.first()..][..W].contains(&1)
    }

    /// The group's first lane in its warp.
    #[track_caller]
    fn first(self) -> usize {
        lane() / W * W
    }
}

/// Waits until all lanes of the warp are here; what they wrote before, to shared memory or through mutable
/// views, all of them see after. In PTX one `bar.warp.sync`.
#[track_caller]
pub fn sync() {
    exchange("warp::sync()", 0);
}

/// The sum of all lanes' `x`. In PTX five times `shfl.sync.bfly` and `add` (two shuffles each for 64-bit types); of integers
/// of 32 bits, from sm_80, one `redux.sync.add`.
#[track_caller]
pub fn sum<T: LaneValue>(x: T) -> T {
    butterfly("warp::sum", x, LANES, T::sum)
}

/// The largest of all lanes' `x`. Of floats, a NaN loses against any number, and −0 is less than +0. In PTX five times
/// `shfl.sync.bfly` and `max`; of integers of 32 bits, from sm_80, one `redux.sync.max`.
#[track_caller]
pub fn max<T: LaneValue>(x: T) -> T {
    butterfly("warp::max", x, LANES, T::larger)
}

/// The smallest of all lanes' `x`. Of floats, a NaN loses against any number, and −0 is less than +0. In PTX five times
/// `shfl.sync.bfly` and `min`; of integers of 32 bits, from sm_80, one `redux.sync.min`.
#[track_caller]
pub fn min<T: LaneValue>(x: T) -> T {
    butterfly("warp::min", x, LANES, T::smaller)
}

/// The `x` of lane `lane` mod 32. Lanes may name different ones. In PTX `shfl.sync.idx`.
#[track_caller]
pub fn shuffle<T: LaneValue>(x: T, lane: usize) -> T {
    T::from_lane(exchange("warp::shuffle", x.to_lane())[lane % LANES])
}

/// The `x` of the lane whose index is this lane's XOR `mask`; `mask` < 32. In PTX `shfl.sync.bfly`.
#[track_caller]
pub fn shuffle_xor<T: LaneValue>(x: T, mask: usize) -> T {
    assert!(mask < LANES, "warp::shuffle_xor by {mask}: a warp has {LANES} lanes");
    T::from_lane(exchange("warp::shuffle_xor", x.to_lane())[lane() ^ mask])
}

/// The lanes whose `x` has the bits of this lane's `x`, lane l in bit l; this lane is among them. From sm_70, where it is
/// `match.any.sync` in PTX; [`target`](crate::target) shows how older targets do it.
#[track_caller]
pub fn match_any<T: LaneValue>(x: T) -> u32 {
    let own = x.to_lane();
    exchange("warp::match_any", own).iter().rev().fold(0, |mask, bits| mask << 1 | u32::from(*bits == own))
}

/// All lanes' `p`, lane l's in bit l. In PTX `vote.sync.ballot.b32`.
#[track_caller]
pub fn ballot(p: bool) -> u32 {
    let lanes = exchange("warp::ballot", u64::from(p));
    lanes.iter().rev().fold(0, |mask, p| mask << 1 | *p as u32)
}

/// Whether `p` holds in all lanes. In PTX `vote.sync.all.pred`.
#[track_caller]
pub fn all(p: bool) -> bool {
    exchange("warp::all", u64::from(p)).iter().all(|p| *p == 1)
}

/// Whether `p` holds in any lane. In PTX `vote.sync.any.pred`.
#[track_caller]
pub fn any(p: bool) -> bool {
    exchange("warp::any", u64::from(p)).contains(&1)
}

/// What lanes can hand each other: `i32`, `u32`, `usize`, `f32` (one shuffle), `i64`, `u64`, `f64` (two).
#[diagnostic::on_unimplemented(
    message = "lanes of a warp cannot exchange `{Self}`",
    note = "they exchange `i32`, `u32`, `i64`, `u64`, `usize`, `f32` and `f64`; widen smaller integers with `as`, floats of 16 bits with `to_f32`"
)]
pub trait LaneValue: Copy + sealed::Arithmetic {}

mod sealed {
    /// What the emulated warp needs of a value.
    pub trait Arithmetic: Sized {
        fn to_lane(self) -> u64;
        fn from_lane(bits: u64) -> Self;
        fn sum(a: Self, b: Self) -> Self;
        fn larger(a: Self, b: Self) -> Self;
        fn smaller(a: Self, b: Self) -> Self;
    }
}

macro_rules! integer {
    ($($t:ty)*) => {$(
        impl LaneValue for $t {}
        impl sealed::Arithmetic for $t {
            fn to_lane(self) -> u64 { self as u64 }
            fn from_lane(bits: u64) -> $t { bits as $t }
            fn sum(a: $t, b: $t) -> $t { a + b }
            fn larger(a: $t, b: $t) -> $t { a.max(b) }
            fn smaller(a: $t, b: $t) -> $t { a.min(b) }
        }
    )*};
}
integer!(i32 u32 i64 u64 usize);

macro_rules! float {
    ($($t:ty)*) => {$(
        impl LaneValue for $t {}
        impl sealed::Arithmetic for $t {
            fn to_lane(self) -> u64 { self.to_bits().into() }
            fn from_lane(bits: u64) -> $t { <$t>::from_bits(bits as _) }
            fn sum(a: $t, b: $t) -> $t { a + b }
            // Rust's `max` and `min` leave the order of zeros open; `max.f32` and `min.f32` do not.
            fn larger(a: $t, b: $t) -> $t {
                if a == b { if a.is_sign_negative() { b } else { a } } else { a.max(b) }
            }
            fn smaller(a: $t, b: $t) -> $t {
                if a == b { if a.is_sign_negative() { a } else { b } } else { a.min(b) }
            }
        }
    )*};
}
float!(f32 f64);

/// Hands `bits` to all lanes, and gives theirs.
#[track_caller]
fn exchange(operation: &'static str, bits: u64) -> [u64; LANES] {
    context(operation).meet(Scope::Warp, operation, bits)
}

/// One exchange, then the butterfly that groups of `width` lanes would run, all of it in each.
#[track_caller]
fn butterfly<T: LaneValue>(operation: &'static str, x: T, width: usize, combine: impl Fn(T, T) -> T) -> T {
    let lanes = exchange(operation, x.to_lane()).map(|bits| Some(T::from_lane(bits)));
    let first = lane() / width * width;
    reduced(&lanes[first..first + width], combine)[lane() - first].expect("all lanes have a value")
}

/// The butterfly over `values`, a power of two of them, widest first. What is not there changes nothing.
pub(crate) fn reduced<T: LaneValue>(values: &[Option<T>], combine: impl Fn(T, T) -> T) -> Vec<Option<T>> {
    let mut values = values.to_vec();
    let mut distance = values.len() / 2;
    while distance > 0 {
        let pair = |l: usize| match (values[l], values[l ^ distance]) {
            (Some(a), Some(b)) => Some(combine(a, b)),
            (a, b) => a.or(b),
        };
        values = (0..values.len()).map(pair).collect();
        distance /= 2;
    }
    values
}
