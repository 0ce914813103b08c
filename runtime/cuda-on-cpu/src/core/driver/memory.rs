//! Allocations, copies and fills.

use super::Driver;
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::graph::Operation;
use crate::core::handle::{Handle, HandleType};
use crate::core::memory::{AllocationKind, CopyPlace, Fill, MemoryCopy};
use crate::core::stream::StreamArgument;
use crate::core::work::StreamWork;
use cudarc::driver::sys::CUresult;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A memory pool. Freed memory is released at once.
#[derive(Debug)]
pub struct Pool {
    /// The pool's handle.
    pub handle: Handle,
    /// The pool's settable attributes, by `CUmemPool_attribute`, without effect here.
    pub attributes: [AtomicU64; 9],
    /// The device that the pool was created for; `None` if the pool is the default of each device.
    device: Option<usize>,
}

impl HandleType for Pool {
    const KIND: u8 = 0x48;
    const NAME: &'static str = "memory pool";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl Pool {
    /// Creates a pool with the default attributes.
    pub(super) fn new(handle: Handle, device: Option<usize>) -> Pool {
        let attributes: [AtomicU64; 9] = Default::default();
        // The three reuse policies are enabled by default.
        attributes[1..=3].iter().for_each(|attribute| attribute.store(1, Ordering::Relaxed));
        Pool { handle, attributes, device }
    }

    /// Returns whether the pool has memory of this device.
    pub fn is_of(&self, device: usize) -> bool {
        self.device.is_none_or(|own| own == device)
    }
}

impl Driver {
    /// Allocates memory in the current context.
    pub fn allocate(&self, kind: AllocationKind, bytes: usize) -> Result<u64> {
        let context = self.current()?;
        self.refuse_unsafe("allocating memory")?;
        self.allocate_in(&context, kind, bytes)
    }

    fn allocate_in(&self, context: &Context, kind: AllocationKind, bytes: usize) -> Result<u64> {
        if bytes == 0 {
            return Err(Error::value("an allocation of 0 bytes"));
        }
        let (address, allocation) = self.supply(context.device).allocate(kind, bytes as u64)?;
        context.memory().insert(address, allocation);
        Ok(address)
    }

    /// Frees device memory after all submitted work is complete. A null address has no effect.
    pub fn free(&self, address: u64) -> Result {
        if address == 0 {
            return Ok(());
        }
        let context = self.owner_of(address)?;
        self.refuse_unsafe("freeing memory")?;
        self.release(&context, address, |kind| {
            matches!(kind, AllocationKind::Device | AllocationKind::Pool(_) | AllocationKind::Managed)
        })
    }

    /// Frees page-locked host memory.
    pub fn free_host(&self, address: u64) -> Result {
        let context = self.owner_of(address)?;
        self.refuse_unsafe("freeing memory")?;
        self.release(&context, address, |kind| matches!(kind, AllocationKind::Pinned(_)))
    }

    /// Returns the context of an allocation. No context needs to be current.
    fn owner_of(&self, address: u64) -> Result<Arc<Context>> {
        let why = || match self.top() {
            // A failed context reports its failure first.
            Some(context) => context.check().err().unwrap_or_else(|| no_allocation(address)),
            None => no_allocation(address),
        };
        self.owner(address).ok_or_else(why)
    }

    fn release(&self, context: &Context, address: u64, of: impl Fn(AllocationKind) -> bool) -> Result {
        let good = |context: &Context| {
            let mut memory = context.memory();
            let found = memory.at(address);
            found.is_some_and(|allocation| of(allocation.kind) && !allocation.leaving)
        };
        if !good(context) {
            return Err(no_allocation(address));
        }
        self.engine.wait(self.engine.last());
        context.check()?;
        // Another thread may have freed the memory in between.
        context.memory().remove(address).map(drop).ok_or_else(|| no_allocation(address))
    }

    /// Allocates memory from a pool, in stream order.
    pub fn allocate_ordered(&self, pool: Option<Handle>, bytes: usize, queue: &StreamArgument) -> Result<u64> {
        let pool = self.pools.get(pool.unwrap_or_else(|| self.current_pool()))?;
        let Some((stream, capture)) = queue.capturing() else {
            return self.allocate_in(queue.context(), AllocationKind::Pool(pool.handle), bytes);
        };
        // The memory exists until the graph is destroyed.
        let address = self.allocate_in(queue.context(), AllocationKind::Device, bytes)?;
        self.capture(&capture, stream.handle, Operation::Allocate { address, bytes: bytes as u64 })?;
        Ok(address)
    }

    /// Frees memory in stream order.
    pub fn free_ordered(&self, address: u64, queue: &StreamArgument) -> Result {
        if address == 0 {
            return Err(Error::value("the address is null"));
        }
        if let Some((stream, capture)) = queue.capturing() {
            return self.capture(&capture, stream.handle, Operation::Free(address));
        }
        let mut memory = queue.context().memory();
        let freeable =
            |kind| matches!(kind, AllocationKind::Device | AllocationKind::Pool(_) | AllocationKind::Managed);
        let Some(allocation) = memory.at(address).filter(|a| freeable(a.kind) && !a.leaving) else {
            return Err(no_allocation(address));
        };
        allocation.leaving = true;
        drop(memory);
        self.submit(queue, StreamWork::Free(address))
    }

    /// Returns the default memory pool of the device.
    pub fn default_pool(&self) -> Handle {
        self.default_pool
    }

    /// Returns the pool that `cuMemAllocAsync` allocates from.
    pub fn current_pool(&self) -> Handle {
        Handle(self.current_pool.load(Ordering::Relaxed))
    }

    /// Sets the pool that `cuMemAllocAsync` allocates from.
    pub fn set_current_pool(&self, pool: Handle) -> Result {
        self.current_pool.store(self.pools.get(pool)?.handle.0, Ordering::Relaxed);
        Ok(())
    }

    /// Creates a pool for a device.
    pub fn create_pool(&self, device: usize) -> Arc<Pool> {
        self.pools.insert(|handle| Pool::new(handle, Some(device)))
    }

    /// Destroys a pool; its allocations stay valid.
    pub fn destroy_pool(&self, pool: Handle) -> Result {
        if pool == self.default_pool {
            return Err(Error::value("the default pool of a device cannot be destroyed"));
        }
        self.pools.remove(pool)?;
        let changed = (pool.0, self.default_pool.0);
        let _ = self.current_pool.compare_exchange(changed.0, changed.1, Ordering::Relaxed, Ordering::Relaxed);
        Ok(())
    }

    /// Makes memory of the program accessible to kernels.
    ///
    /// # Safety
    /// `bytes` bytes from `start` on must stay allocated and initialized until they are
    /// unregistered.
    pub unsafe fn register(&self, start: NonNull<u8>, bytes: usize, flags: u32) -> Result {
        let context = self.current()?;
        if bytes == 0 {
            return Err(Error::value("no bytes to register"));
        }
        if context.memory().overlaps(start.addr().get() as u64, bytes as u64) {
            let why = "some of the bytes are pinned, managed or registered already";
            return Err(Error::new(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, why));
        }
        // SAFETY: guaranteed by the caller.
        let (address, allocation) = unsafe { self.supply(context.device).register(start, bytes, flags)? };
        context.memory().insert(address, allocation);
        Ok(())
    }

    /// Unregisters memory after all submitted work is complete.
    pub fn unregister(&self, address: u64) -> Result {
        let context = self.current()?;
        self.release(&context, address, |kind| matches!(kind, AllocationKind::Registered(_))).map_err(|error| {
            match error.code {
                CUresult::CUDA_ERROR_INVALID_VALUE => {
                    Error::new(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, error.why)
                }
                _ => error,
            }
        })
    }

    /// Returns a copy between the contexts that own the addresses, which can be of several devices.
    /// Addresses are unified, so that they name their memory in each context: CUDA C++ Programming
    /// Guide, "Peer-to-Peer Memory Copy".
    pub fn with_owners(&self, mut copy: MemoryCopy) -> MemoryCopy {
        for side in [&mut copy.from, &mut copy.to] {
            let CopyPlace::Device(context, address) = &mut side.place else { continue };
            if context.memory().find(*address).is_some() {
                continue;
            }
            if let Some(owner) = self.owner(*address) {
                *context = owner;
            }
        }
        copy
    }

    /// Copies in the order of the legacy stream, and waits until the copy is complete.
    pub fn copy_now(&self, copy: MemoryCopy) -> Result {
        let queue = StreamArgument::Default(self.current()?);
        copy.check()?;
        self.submit_and_wait(&queue, StreamWork::Copy(copy))
    }

    /// Copies in stream order. The program may reuse pageable host memory as soon as this returns.
    pub fn copy(&self, mut copy: MemoryCopy, queue: &StreamArgument) -> Result {
        copy.check()?;
        if queue.capturing().is_some() {
            return self.submit(queue, StreamWork::Copy(copy));
        }
        copy.stage(queue.context());
        if copy.is_to_wait_for(queue.context()) {
            return self.submit_and_wait(queue, StreamWork::Copy(copy));
        }
        self.submit(queue, StreamWork::Copy(copy))
    }

    /// Fills in the order of the legacy stream, and waits until the fill is complete.
    pub fn fill_now(&self, fill: Fill) -> Result {
        let queue = StreamArgument::Default(self.current()?);
        fill.check()?;
        self.submit_and_wait(&queue, StreamWork::Fill(fill))
    }

    /// Fills in stream order.
    pub fn fill(&self, fill: Fill, queue: &StreamArgument) -> Result {
        fill.check()?;
        self.submit(queue, StreamWork::Fill(fill))
    }

    fn submit_and_wait(&self, queue: &StreamArgument, work: StreamWork) -> Result {
        self.submit(queue, work)?;
        self.engine.wait(match queue {
            StreamArgument::Default(_) => self.engine.last(),
            StreamArgument::Made(stream) => stream.last(),
        });
        queue.context().check()
    }

    /// Returns the number of bytes in use in a pool.
    pub fn used_of_pool(&self, pool: Handle) -> Result<u64> {
        Ok(self.current()?.memory().of_pool(pool))
    }
}

fn no_allocation(address: u64) -> Error {
    Error::value(format!("no allocation that can be freed in this way begins at {address:#x}"))
}
