//! Host versions of the warp's operations for an emulated launch: the device's exchanges, in the
//! device's order.

use super::{LANES, LaneNumber, lane};
use crate::element::DeviceCopy;
use crate::host::context::context;
use crate::host::monitor::BarrierScope;

/// Passes `x` to all lanes, and returns their values.
#[track_caller]
pub(crate) fn exchange<T: DeviceCopy>(operation: &'static str, x: T) -> Vec<T> {
    context(operation).rendezvous(BarrierScope::Warp, operation, x)
}

/// Exchanges `x` within the lane's group of `width` lanes.
#[track_caller]
pub(super) fn exchange_in<T: DeviceCopy>(operation: &'static str, x: T, width: usize) -> Vec<T> {
    exchange(operation, x)[lane() / width * width..][..width].to_vec()
}

/// Exchanges the values of a group of `width` lanes once, then computes the butterfly in each lane.
#[track_caller]
pub(super) fn butterfly<T: LaneNumber>(operation: &'static str, x: T, width: usize, combine: impl Fn(T, T) -> T) -> T {
    let lanes: Vec<_> = exchange_in(operation, x, width).into_iter().map(Some).collect();
    reduced(&lanes, combine)[lane() % width].expect("all lanes have a value")
}

/// Reduces `values`, whose number is a power of two, by a butterfly, widest step first. A missing
/// value changes nothing.
pub(crate) fn reduced<T: Copy>(values: &[Option<T>], combine: impl Fn(T, T) -> T) -> Vec<Option<T>> {
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

/// Reduces by a closure in the order of the lanes: a butterfly, narrowest step first, and the first
/// lane's result for all. Each step exchanges values, because each lane's closure may have captured
/// different values.
#[track_caller]
pub(crate) fn reduce<T: DeviceCopy>(operation: &'static str, x: T, width: usize, combine: &impl Fn(T, T) -> T) -> T {
    reduce_first(operation, x, width, width, combine)
}

/// Computes [`reduce`] over the values of the first `count` lanes of each group of `width`, a power
/// of two.
#[track_caller]
pub(crate) fn reduce_first<T: DeviceCopy>(
    operation: &'static str,
    mut x: T,
    width: usize,
    count: usize,
    combine: &impl Fn(T, T) -> T,
) -> T {
    let own = lane() % width;
    let mut distance = 1;
    while distance < width {
        let other = exchange(operation, x)[lane() ^ distance];
        if own | distance < count {
            x = combine(x, other);
        }
        distance *= 2;
    }
    shuffle(operation, x, 0, width)
}

/// Computes the inclusive scan over the first `count` lanes of each group of `width`; the other
/// lanes keep their value.
#[track_caller]
pub(crate) fn scan<T: DeviceCopy>(
    operation: &'static str,
    mut x: T,
    width: usize,
    count: usize,
    combine: &impl Fn(T, T) -> T,
) -> T {
    let own = lane() % width;
    let mut distance = 1;
    while distance < count {
        let lanes = exchange(operation, x);
        if own >= distance && own < count {
            x = combine(lanes[lane() - distance], x);
        }
        distance *= 2;
    }
    x
}

#[track_caller]
pub(super) fn exclusive_scan<T: DeviceCopy>(
    operation: &'static str,
    x: T,
    identity: T,
    width: usize,
    combine: &impl Fn(T, T) -> T,
) -> T {
    let through = scan(operation, x, width, width, combine);
    shuffle_up(operation, through, 1, width).unwrap_or(identity)
}

#[track_caller]
pub(super) fn shuffle<T: DeviceCopy>(operation: &'static str, x: T, from: usize, width: usize) -> T {
    exchange_in(operation, x, width)[from % width]
}

#[track_caller]
pub(super) fn broadcast<T: DeviceCopy>(operation: &'static str, x: T, from: usize, width: usize) -> T {
    assert!(from < width, "{operation} from lane {from} of {width}");
    shuffle(operation, x, from, width)
}

#[track_caller]
pub(super) fn shuffle_xor<T: DeviceCopy>(operation: &'static str, x: T, mask: usize, width: usize) -> T {
    assert!(mask < width, "the mask {mask} of {operation} must be below {width}, the number of lanes");
    exchange(operation, x)[lane() ^ mask]
}

#[track_caller]
pub(super) fn shuffle_up<T: DeviceCopy>(operation: &'static str, x: T, by: usize, width: usize) -> Option<T> {
    let lanes = exchange_in(operation, x, width);
    (lane() % width).checked_sub(by).map(|from| lanes[from])
}

#[track_caller]
pub(super) fn shuffle_down<T: DeviceCopy>(operation: &'static str, x: T, by: usize, width: usize) -> Option<T> {
    let lanes = exchange_in(operation, x, width);
    (lane() % width).checked_add(by).and_then(|from| lanes.get(from).copied())
}

#[track_caller]
pub(super) fn match_any<T: LaneNumber>(operation: &'static str, x: T) -> u32 {
    exchange(operation, x).into_iter().rev().fold(0, |mask, other| mask << 1 | u32::from(T::same(x, other)))
}

#[track_caller]
pub(super) fn ballot(operation: &'static str, p: bool, width: usize) -> u32 {
    exchange_in(operation, p, width).iter().rev().fold(0, |mask, p| mask << 1 | u32::from(*p))
}

/// Returns whether a group may have this number of lanes.
pub(super) const fn is_width(lanes: usize) -> bool {
    matches!(lanes, 2 | 4 | 8 | 16 | LANES)
}
