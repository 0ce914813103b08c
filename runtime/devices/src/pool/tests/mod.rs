//! Tests of the pool over a source that counts allocations and runs out of memory.

mod transformer;

use super::*;
use crate::hazard::TimelinePoint;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// A source of a fixed number of bytes, which returns each address once.
struct Device {
    left: Cell<u64>,
    next: Cell<u64>,
    held: RefCell<BTreeMap<u64, u64>>,
    waited: RefCell<Vec<TimelinePoint>>,
    lost: Cell<bool>,
}

impl Device {
    fn of(bytes: u64) -> Device {
        Device {
            left: Cell::new(bytes),
            next: Cell::new(1 << 20),
            held: RefCell::default(),
            waited: RefCell::default(),
            lost: Cell::new(false),
        }
    }
}

impl SegmentSource for Device {
    fn reserve(&self, bytes: u64) -> Result<u64> {
        if bytes > self.left.get() {
            let free = Some((self.left.get() as usize, 0));
            return Err(Error::OutOfMemory { requested: bytes as usize, device: self.name(), free, pool: None });
        }
        self.left.set(self.left.get() - bytes);
        let address = self.next.replace(self.next.get() + bytes + 256);
        self.held.borrow_mut().insert(address, bytes);
        Ok(address)
    }

    fn name(&self) -> String {
        "a device".into()
    }

    fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        self.waited.borrow_mut().extend(pending.iter().copied());
        match self.lost.get() {
            true => Err(Error::OtherDevice { item: "it", found: "lost".into(), stream: "lost".into() }),
            false => Ok(()),
        }
    }

    unsafe fn release(&self, address: u64, bytes: u64) {
        assert_eq!(self.held.borrow_mut().remove(&address), Some(bytes));
        self.left.set(self.left.get() + bytes);
    }
}

const MB: usize = 1 << 20;

#[test]
fn cached_memory_is_reused() {
    let (pool, device) = (DevicePool::default(), Device::of(1 << 30));
    let (first, _) = pool.take(MB, &device).unwrap();
    let address = first.address;
    pool.give_back(first, WaitSet::new(), &device);
    let reserved = pool.statistics().reserved;
    for _ in 0..1000 {
        let (again, _) = pool.take(MB, &device).unwrap();
        assert_eq!(again.address, address);
        pool.give_back(again, WaitSet::new(), &device);
    }
    let statistics = pool.statistics();
    assert_eq!((statistics.allocations, statistics.hits), (1001, 1000));
    assert_eq!((statistics.in_use, statistics.peak_in_use), (0, MB as u64));
    assert_eq!((statistics.reserved, statistics.segments), (reserved, 1));
    assert_eq!(statistics.fragmentation(), 0.0);
}

#[test]
fn pending_uses_pass_to_the_next_owner() {
    let (pool, device) = (DevicePool::default(), Device::of(1 << 30));
    let at = TimelinePoint { stream: 3, count: 8 };
    let (piece, pending) = pool.take(MB, &device).unwrap();
    assert!(pending.is_empty());
    pool.give_back(piece, [at].into_iter().collect(), &device);
    let (again, pending) = pool.take(MB, &device).unwrap();
    assert_eq!(pending.as_slice(), [at]);
    pool.give_back(again, pending, &device);
    // An allocation of another size, after the block was merged with its neighbor.
    pool.statistics();
    let (_, pending) = pool.take(MB / 2 + 1, &device).unwrap();
    assert_eq!(pending.as_slice(), [at]);
    assert!(device.waited.borrow().is_empty(), "the host waits for nothing");
}

#[test]
fn an_empty_allocation_takes_no_memory() {
    let (pool, device) = (DevicePool::default(), Device::of(0));
    let (piece, _) = pool.take(0, &device).unwrap();
    assert_eq!(piece.address, 0);
    pool.give_back(piece, WaitSet::new(), &device);
    assert_eq!(pool.statistics(), MemoryStatistics::default());
}

#[test]
fn cached_memory_is_trimmed_before_an_allocation_fails() {
    let (pool, device) = (DevicePool::default(), Device::of(64 * MB as u64));
    let at = TimelinePoint { stream: 1, count: 1 };
    let (large, _) = pool.take(40 * MB, &device).unwrap();
    pool.give_back(large, [at].into_iter().collect(), &device);
    // 24 MB are left. The pool waits until the 40 MB are unused, and releases them for this
    // request.
    let (larger, _) = pool.take(60 * MB, &device).unwrap();
    assert_eq!(device.waited.borrow().as_slice(), [at]);
    assert_eq!(device.held.borrow().len(), 1);
    // The remaining memory is less than a large segment, but enough for the request.
    let (rest, _) = pool.take(4 * MB, &device).unwrap();
    let error = pool.take(MB, &device).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("no memory for 1048576 bytes on a device: 0 of its 0 bytes are free; the pool: "),
        "{message}"
    );
    assert!(message.contains("67108864 bytes in use"), "{message}");
    pool.give_back(larger, WaitSet::new(), &device);
    pool.give_back(rest, WaitSet::new(), &device);
    assert_eq!(pool.trim(&device).unwrap(), 64 * MB as u64);
    assert_eq!(pool.statistics().reserved, 0);
    assert!(device.held.borrow().is_empty());
}

#[test]
fn the_limit_is_enforced() {
    let (pool, device) = (DevicePool::default(), Device::of(1 << 40));
    pool.set_limit(Some(20 * MB as u64));
    let (first, _) = pool.take(MB, &device).unwrap();
    let error = pool.take(17 * MB, &device).unwrap_err();
    assert!(
        error.to_string().contains("`Device::limit_memory` is 20971520; raise the limit, or drop buffers"),
        "{error}"
    );
    pool.give_back(first, WaitSet::new(), &device);
    // Cached memory is released for the request.
    let (second, _) = pool.take(17 * MB, &device).unwrap();
    assert_eq!(pool.statistics().reserved, 18 * MB as u64);
    pool.give_back(second, WaitSet::new(), &device);
}

#[test]
fn small_allocations_do_not_keep_large_segments() {
    let (pool, device) = (DevicePool::default(), Device::of(1 << 30));
    let (small, _) = pool.take(100, &device).unwrap();
    let (large, _) = pool.take(8 * MB, &device).unwrap();
    pool.give_back(large, WaitSet::new(), &device);
    assert_eq!(pool.trim(&device).unwrap(), LARGE_SEGMENT);
    assert_eq!(pool.statistics().reserved, SEGMENT);
    pool.give_back(small, WaitSet::new(), &device);
}

#[test]
fn a_lost_device_keeps_its_segments() {
    let (pool, device) = (DevicePool::default(), Device::of(1 << 30));
    let (piece, _) = pool.take(MB, &device).unwrap();
    pool.give_back(piece, WaitSet::new(), &device);
    device.lost.set(true);
    assert!(pool.trim(&device).is_err());
    assert_eq!((pool.statistics().segments, device.held.borrow().len()), (1, 1));
}

#[test]
fn excessive_sizes_are_rejected() {
    let (pool, device) = (DevicePool::default(), Device::of(1 << 30));
    for bytes in [usize::MAX, usize::MAX - 300, usize::MAX / 2] {
        assert!(matches!(pool.take(bytes, &device), Err(Error::OutOfMemory { .. })), "{bytes}");
    }
}

#[test]
fn a_bare_pool_does_not_cache() {
    let (pool, device) = (DevicePool::uncached(), Device::of(1000));
    let at = TimelinePoint { stream: 1, count: 1 };
    let (first, _) = pool.take(300, &device).unwrap();
    let (second, _) = pool.take(300, &device).unwrap();
    assert_eq!(device.held.borrow().values().copied().collect::<Vec<_>>(), [300, 300]);
    assert!(pool.take(500, &device).is_err());
    pool.give_back(first, [at].into_iter().collect(), &device);
    assert_eq!(device.waited.borrow().as_slice(), [at]);
    pool.give_back(second, WaitSet::new(), &device);
    assert!(device.held.borrow().is_empty());
    let statistics = pool.statistics();
    assert_eq!((statistics.in_use, statistics.reserved, statistics.segments, statistics.hits), (0, 0, 0, 0));
}
