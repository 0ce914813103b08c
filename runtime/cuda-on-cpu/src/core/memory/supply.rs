//! A device's memory, and the parts in use.

use super::addresses::{Addresses, RANGE};
use super::block::MemoryBlock;
use super::space::{Allocation, AllocationKind};
use crate::core::error::{Error, Result};
use crate::core::origin::CallOrigin;
use cudarc::driver::sys::CUresult;
use runtime_ptx::InitializedBytes;
use runtime_simt::Lock;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The device's memory.
#[derive(Debug)]
pub struct Supply {
    total: u64,
    used: AtomicU64,
    allocations: AtomicU64,
    /// The address table, shared by all devices.
    addresses: Arc<Lock<Addresses>>,
    /// Whether allocations track which of their bytes were written.
    tracks: bool,
}

/// The device resources of an allocation, released on drop.
#[derive(Debug)]
pub struct Lease {
    supply: Arc<Supply>,
    /// The device address.
    address: Option<u64>,
    /// The number of device bytes.
    bytes: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.supply.used.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some(address) = self.address {
            self.supply.addresses.lock().give_back(address);
        }
    }
}

/// The alignment of host memory that the device uses: a page.
const PAGE: usize = 4096;

impl Supply {
    /// Creates the memory of a device with `total` bytes. If `tracks` is set, allocations track
    /// which of their bytes were written.
    pub fn new(total: u64, addresses: Arc<Lock<Addresses>>, tracks: bool) -> Supply {
        Supply { total, used: AtomicU64::new(0), allocations: AtomicU64::new(0), addresses, tracks }
    }

    /// Returns the total and the free bytes.
    pub fn bytes(&self) -> (u64, u64) {
        (self.total, self.total - self.used.load(Ordering::Relaxed))
    }

    /// Allocates memory of this kind, and returns its address and the allocation.
    pub fn allocate(self: &Arc<Supply>, kind: AllocationKind, bytes: u64) -> Result<(u64, Allocation)> {
        let mut lease = self.lease(if kind.counts() { bytes } else { 0 })?;
        if kind.is_of_host() {
            let block = MemoryBlock::zeroed(bytes, PAGE).ok_or_else(|| out_of_memory(bytes, "the host"))?;
            let address = host_address(block.start(), bytes)?;
            return Ok((address, self.allocation(kind, block, lease)));
        }
        let block = MemoryBlock::zeroed(bytes, 16).ok_or_else(|| out_of_memory(bytes, "the host"))?;
        let mut addresses = self.addresses.lock();
        let address = addresses.take(bytes).ok_or_else(|| out_of_memory(bytes, "the range of addresses"))?;
        drop(addresses);
        lease.address = Some(address);
        Ok((address, self.allocation(kind, block, lease)))
    }

    /// Returns an allocation of memory that the program registers, and its address.
    ///
    /// # Safety
    /// `bytes` bytes from `start` on must stay allocated and initialized until they are
    /// unregistered.
    pub unsafe fn register(
        self: &Arc<Supply>,
        start: NonNull<u8>,
        bytes: usize,
        flags: u32,
    ) -> Result<(u64, Allocation)> {
        let address = host_address(start.as_ptr(), bytes as u64)?;
        // SAFETY: guaranteed by the caller.
        let block = unsafe { MemoryBlock::of_program(start, bytes) };
        let lease = self.lease(0)?;
        Ok((address, self.allocation(AllocationKind::Registered(flags), block, lease)))
    }

    fn allocation(&self, kind: AllocationKind, block: MemoryBlock, lease: Lease) -> Allocation {
        let id = 1 + self.allocations.fetch_add(1, Ordering::Relaxed);
        let initialized = (self.tracks && kind.is_uninitialized()).then(|| InitializedBytes::new(block.len()));
        Allocation {
            kind,
            name: String::new(),
            block,
            initialized,
            id,
            origin: CallOrigin::current(),
            leaving: false,
            _lease: lease,
        }
    }

    fn lease(self: &Arc<Supply>, bytes: u64) -> Result<Lease> {
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.total);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(Lease { supply: self.clone(), address: None, bytes }),
            Err(_) => Err(out_of_memory(bytes, "the device")),
        }
    }
}

fn out_of_memory(bytes: u64, of: &str) -> Error {
    Error::new(CUresult::CUDA_ERROR_OUT_OF_MEMORY, format!("{of} has no {bytes} bytes left"))
}

/// Returns the address at which a kernel accesses host memory.
fn host_address(start: *mut u8, bytes: u64) -> Result<u64> {
    let address = start.addr() as u64;
    let end = address.saturating_add(bytes);
    if end > runtime_ptx::resident::END || address < RANGE.end && end > RANGE.start {
        return Err(Error::unsupported(format!("host memory at {address:#x} is inside the device's address range")));
    }
    Ok(address)
}
