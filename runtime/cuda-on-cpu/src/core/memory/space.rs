//! What a context has allocated, by address.

use super::block::Block;
use super::supply::Lease;
use crate::core::error::{Error, Result};
use cudarc::driver::sys::CUresult;
use runtime::interpreter::Bytes;
use runtime::ptx::Resident;
use std::collections::BTreeMap;

/// The allocations of a context.
#[derive(Debug, Default)]
pub struct Space(BTreeMap<u64, Allocation>);

/// Memory that was allocated at once.
#[derive(Debug)]
pub struct Allocation {
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub block: Block,
    /// Numbered through in the process.
    pub id: u64,
    /// Whether `cuMemFreeAsync` was called for it: it goes when its turn comes.
    pub leaving: bool,
    /// What it has taken of the device.
    pub(super) _lease: Lease,
}

/// What an allocation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Of the device alone.
    Device,
    /// Of a pool of the device.
    Pool(crate::core::handle::Handle),
    /// A variable of a module.
    #[allow(missing_docs)]
    Variable { constant: bool },
    /// Of the device and the host at the same address: `cuMemAllocManaged`.
    Managed,
    /// The host's, for the device too, with the flags of its allocation.
    Pinned(u32),
    /// The program's own, registered with these flags.
    Registered(u32),
}

impl Kind {
    /// Whether the host has it at the same address.
    pub fn is_of_host(self) -> bool {
        matches!(self, Kind::Managed | Kind::Pinned(_) | Kind::Registered(_))
    }

    /// Whether it takes of the device's memory.
    pub fn counts(self) -> bool {
        !matches!(self, Kind::Pinned(_) | Kind::Registered(_))
    }
}

/// A place in an allocation.
#[derive(Debug)]
pub struct Found<'s> {
    /// Where the allocation begins.
    pub start: u64,
    /// How far on the place is.
    pub offset: u64,
    /// The allocation.
    pub allocation: &'s Allocation,
}

impl Space {
    /// Number of allocations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an allocation, whose addresses are nobody's.
    pub fn insert(&mut self, address: u64, allocation: Allocation) {
        self.0.insert(address, allocation);
    }

    /// Takes one out, by its first address.
    pub fn remove(&mut self, address: u64) -> Option<Allocation> {
        self.0.remove(&address)
    }

    /// The one that begins there.
    pub fn at(&mut self, address: u64) -> Option<&mut Allocation> {
        self.0.get_mut(&address)
    }

    /// The one that has the byte at that address.
    pub fn find(&self, address: u64) -> Option<Found<'_>> {
        let (&start, allocation) = self.0.range(..=address).next_back()?;
        let offset = address - start;
        (offset < allocation.block.len()).then_some(Found { start, offset, allocation })
    }

    /// Whether some allocation has one of these bytes.
    pub fn overlaps(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes);
        let last = self.0.range(..end).next_back();
        last.is_some_and(|(start, allocation)| start + allocation.block.len() > address)
    }

    /// The host's address of `bytes` bytes that one allocation has; `CUDA_ERROR_INVALID_VALUE` where none has them all.
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
                "{bytes} bytes from {address:#x} are {} more than the allocation of {length} bytes at {start:#x} has from byte \
                 {offset} on",
                bytes - left
            )));
        }
        Ok(found.allocation.block.start().wrapping_add(found.offset as usize))
    }

    /// Refuses bytes that a call cannot name: that no allocation has, or one that is freed when its turn comes.
    pub fn check(&self, address: u64, bytes: u64) -> Result {
        self.pointer(address, bytes)?;
        match self.find(address) {
            Some(Found { start, allocation: Allocation { leaving: true, .. }, .. }) => {
                Err(Error::value(format!("the allocation at {start:#x} has been freed")))
            }
            _ => Ok(()),
        }
    }

    /// Whether all these bytes of the host are pinned or managed.
    pub fn is_pinned(&self, address: u64, bytes: u64) -> bool {
        let found = self.find(address);
        found.is_some_and(|f| f.allocation.kind.is_of_host() && bytes <= f.allocation.block.len() - f.offset)
    }

    /// All that a kernel can reach.
    pub fn residents(&mut self) -> Vec<Resident<'_>> {
        let resident = |(address, allocation): (&u64, _)| {
            let Allocation { kind, block, .. }: &mut Allocation = allocation;
            let constant = *kind == Kind::Variable { constant: true };
            Resident { address: *address, constant, bytes: Bytes::Exclusive(block.get_mut()) }
        };
        self.0.iter_mut().map(resident).collect()
    }

    /// Takes all out.
    pub fn clear(&mut self) -> BTreeMap<u64, Allocation> {
        std::mem::take(&mut self.0)
    }

    /// Bytes that live in that pool.
    pub fn of_pool(&self, pool: crate::core::handle::Handle) -> u64 {
        self.0.values().filter(|a| a.kind == Kind::Pool(pool)).map(|a| a.block.len()).sum()
    }
}

/// What a copy that was found good meets where its memory has gone in between.
pub fn vanished(error: Error) -> Error {
    Error::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, error.why)
}
