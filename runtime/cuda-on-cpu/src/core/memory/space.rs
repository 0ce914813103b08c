//! The allocations of a context, by address.

use super::block::MemoryBlock;
use super::supply::Lease;
use crate::core::error::{Error, Result};
use crate::core::origin::CallOrigin;
use cudarc::driver::sys::CUresult;
use runtime_ptx::{ArgumentBytes, Finding, Heap, InitializedBytes, Resident};
use std::collections::{BTreeMap, VecDeque};

/// The allocations of a context, the heap of kernels, and the addresses and sizes of freed
/// allocations.
#[derive(Debug, Default)]
pub struct Allocations(BTreeMap<u64, Allocation>, Option<Heap>, VecDeque<(u64, u64)>);

/// The largest number of freed allocations whose addresses and sizes are remembered, for reports.
const MAX_REMEMBERED_RANGES: usize = 4096;

/// The end of the message about an access to an address that belongs to no buffer.
const NO_BUFFER: &str = ", which is in no buffer";

/// An allocation.
#[derive(Debug)]
pub struct Allocation {
    /// The kind of the allocation.
    pub kind: AllocationKind,
    /// The name of a variable; empty for others.
    pub name: String,
    /// The bytes of the allocation.
    pub block: MemoryBlock,
    /// The bytes that were written, if they are tracked and some were not.
    pub initialized: Option<InitializedBytes>,
    /// The allocation's ID, unique in the process.
    pub id: u64,
    /// The call that created the allocation.
    pub origin: CallOrigin,
    /// Whether `cuMemFreeAsync` was called: the allocation is freed in stream order.
    pub leaving: bool,
    /// The device's addresses and bytes that the allocation occupies.
    pub(super) _lease: Lease,
}

/// The kind of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationKind {
    /// Device memory.
    Device,
    /// The memory from which kernels allocate.
    Heap,
    /// The texels of an array.
    Array,
    /// Device memory from a pool.
    Pool(crate::core::handle::Handle),
    /// A variable of a module.
    #[allow(missing_docs)]
    Variable { constant: bool },
    /// Managed memory, at the same address on the device and the host: `cuMemAllocManaged`.
    Managed,
    /// Page-locked host memory that the device can access, with its allocation flags.
    Pinned(u32),
    /// Memory of the program, registered with these flags.
    Registered(u32),
}

impl AllocationKind {
    /// Returns whether the host accesses the allocation at the same address.
    pub fn is_of_host(self) -> bool {
        matches!(self, AllocationKind::Managed | AllocationKind::Pinned(_) | AllocationKind::Registered(_))
    }

    /// Returns whether only copies, fills and kernels write the allocation, and nothing does at the
    /// start.
    pub fn is_uninitialized(self) -> bool {
        matches!(self, AllocationKind::Device | AllocationKind::Pool(_))
    }

    /// Returns whether the allocation occupies device memory.
    pub fn counts(self) -> bool {
        !matches!(self, AllocationKind::Pinned(_) | AllocationKind::Registered(_))
    }
}

/// A position in an allocation.
#[derive(Debug)]
pub struct AllocationOffset<'s> {
    /// The allocation's first address.
    pub start: u64,
    /// The offset of the position in bytes.
    pub offset: u64,
    /// The allocation.
    pub allocation: &'s Allocation,
}

impl Allocations {
    /// Returns the number of allocations of the program.
    pub fn len(&self) -> usize {
        self.0.values().filter(|allocation| allocation.kind != AllocationKind::Heap).count()
    }

    /// Adds an allocation, whose addresses must be unused.
    pub fn insert(&mut self, address: u64, allocation: Allocation) {
        self.0.insert(address, allocation);
    }

    /// Removes the allocation that begins at `address`.
    pub fn remove(&mut self, address: u64) -> Option<Allocation> {
        let removed = self.0.remove(&address);
        if let Some(allocation) = &removed {
            self.2.push_back((address, allocation.block.len()));
            if self.2.len() > MAX_REMEMBERED_RANGES {
                self.2.pop_front();
            }
        }
        removed
    }

    /// Adds to findings at addresses in no buffer that the address was in freed memory.
    pub fn explain_freed(&self, findings: &mut [Finding]) {
        for finding in findings {
            let Some(before) = finding.message.strip_suffix(NO_BUFFER) else { continue };
            let digits = before.rsplit_once("0x").map_or("", |(_, digits)| digits);
            let Ok(address) = u64::from_str_radix(digits, 16) else { continue };
            let covers = |(start, bytes): &&(u64, u64)| (*start..start.saturating_add(*bytes)).contains(&address);
            if let Some((start, bytes)) = self.2.iter().rev().find(covers) {
                finding.message += &format!(": byte {} of {bytes} bytes that were freed", address - start);
            }
        }
    }

    /// Returns the allocation that begins at `address`.
    pub fn at(&mut self, address: u64) -> Option<&mut Allocation> {
        self.0.get_mut(&address)
    }

    /// Returns the allocation that contains `address`.
    pub fn find(&self, address: u64) -> Option<AllocationOffset<'_>> {
        let (&start, allocation) = self.0.range(..=address).next_back()?;
        let offset = address - start;
        (offset < allocation.block.len()).then_some(AllocationOffset { start, offset, allocation })
    }

    /// Returns whether an allocation overlaps these bytes.
    pub fn overlaps(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes);
        let last = self.0.range(..end).next_back();
        last.is_some_and(|(start, allocation)| start + allocation.block.len() > address)
    }

    /// Returns the host address of `bytes` bytes inside one allocation. Fails with
    /// `CUDA_ERROR_INVALID_VALUE` if no allocation contains all of them.
    pub fn pointer(&self, address: u64, bytes: u64) -> Result<*mut u8> {
        let Some(found) = self.find(address) else {
            return Err(Error::value(match self.0.range(..=address).next_back() {
                Some((start, last)) if address - start <= 2 * last.block.len() => format!(
                    "{address:#x} is {} bytes past the end of the allocation of {} bytes at {start:#x}",
                    address - start - last.block.len(),
                    last.block.len()
                ),
                _ => format!("{address:#x} is in no allocation"),
            }));
        };
        let (length, left) = (found.allocation.block.len(), found.allocation.block.len() - found.offset);
        if bytes > left {
            let (start, offset) = (found.start, found.offset);
            return Err(Error::value(format!(
                "{bytes} bytes at byte {offset} exceed the allocation of {length} bytes at {start:#x} by {}",
                bytes - left
            )));
        }
        Ok(found.allocation.block.start().wrapping_add(found.offset as usize))
    }

    /// Rejects bytes that no allocation contains, and bytes whose stream-ordered release was
    /// already submitted.
    pub fn check(&self, address: u64, bytes: u64) -> Result {
        self.pointer(address, bytes)?;
        match self.find(address) {
            Some(AllocationOffset { start, allocation: Allocation { leaving: true, .. }, .. }) => {
                Err(Error::value(format!("the allocation at {start:#x} has been freed")))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the written bytes of the allocation that contains `address` are tracked.
    pub fn is_tracked(&self, address: u64) -> bool {
        self.find(address).is_some_and(|found| found.allocation.initialized.is_some())
    }

    /// Returns which of these bytes were written, 64 bytes to a word; `None` if all were.
    pub fn written(&self, address: u64, bytes: u64) -> Option<Vec<u64>> {
        let found = self.find(address)?;
        Some(found.allocation.initialized.as_ref()?.bits(found.offset..found.offset + bytes))
    }

    /// Records the bits of bytes that a copy or a fill writes; `None` means that all are written.
    pub fn set_written(&mut self, address: u64, bytes: u64, written: Option<&[u64]>) {
        let Some((start, allocation)) = self.0.range_mut(..=address).next_back() else { return };
        let offset = address - start;
        match (&mut allocation.initialized, written) {
            (None, _) => {}
            (Some(set), None) => set.add(offset..offset + bytes),
            (Some(set), Some(written)) => set.set_bits(offset..offset + bytes, written),
        }
    }

    /// Returns whether all these host bytes are pinned or managed.
    pub fn is_pinned(&self, address: u64, bytes: u64) -> bool {
        let found = self.find(address);
        found.is_some_and(|f| f.allocation.kind.is_of_host() && bytes <= f.allocation.block.len() - f.offset)
    }

    /// Returns the heap from which kernels allocate, if the context has one.
    pub fn heap(&self) -> Option<&Heap> {
        self.1.as_ref()
    }

    /// Returns the allocations with their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Allocation)> {
        self.0.iter().map(|(address, allocation)| (*address, allocation))
    }

    /// Adds the heap from which kernels allocate.
    pub fn set_heap(&mut self, address: u64, allocation: Allocation) {
        self.1 = Some(Heap::new(address, allocation.block.len()));
        self.insert(address, allocation);
    }

    /// Returns all allocations that a kernel can access, and the heap.
    pub fn for_launch(&mut self) -> (Vec<Resident<'_>>, Option<&mut Heap>) {
        let resident = |(address, allocation): (&u64, _)| {
            let Allocation { kind, name, block, initialized, .. }: &mut Allocation = allocation;
            initialized.take_if(|set| set.is_complete());
            let constant = *kind == AllocationKind::Variable { constant: true };
            let bytes = ArgumentBytes::Exclusive(block.get_mut());
            let (name, of_host) = (name.clone(), kind.is_of_host());
            Resident { name, address: *address, constant, bytes, initialized: initialized.as_mut(), of_host }
        };
        (self.0.iter_mut().map(resident).collect(), self.1.as_mut())
    }

    /// Removes and returns all allocations.
    pub fn clear(&mut self) -> BTreeMap<u64, Allocation> {
        self.1 = None;
        std::mem::take(&mut self.0)
    }

    /// Returns the number of bytes in use in a pool.
    pub fn of_pool(&self, pool: crate::core::handle::Handle) -> u64 {
        self.0.values().filter(|a| a.kind == AllocationKind::Pool(pool)).map(|a| a.block.len()).sum()
    }
}

/// Converts the error of a validated copy whose memory was freed in between.
pub fn vanished(error: Error) -> Error {
    Error::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, error.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_ptx::{Check, CodeLocation, Severity, Thread};

    #[test]
    fn accesses_to_freed_memory_are_explained() {
        let mut allocations = Allocations::default();
        allocations.2.push_back((0x2000, 0x100));
        let thread = Thread { block: [0; 3], thread: [0; 3], warp: 0, lane: 0 };
        let explained = |message: &str| {
            let place = CodeLocation::default();
            let new = Finding::new(Check::OutOfBounds, Severity::Error, message.to_string(), place, thread);
            let mut findings = [new];
            allocations.explain_freed(&mut findings);
            findings[0].message.clone()
        };
        assert_eq!(
            explained("stores 4 bytes at 0x2010, which is in no buffer"),
            "stores 4 bytes at 0x2010, which is in no buffer: byte 16 of 256 bytes that were freed"
        );
        for message in ["stores 4 bytes at 0x2100, which is in no buffer", "stores 4 bytes at byte 0 of `0x2000`"] {
            assert_eq!(explained(message), message);
        }
    }
}
