//! Contexts: their memory, their permanent failures and their preferences.

use super::error::{Error, Result};
use super::handle::{Handle, HandleType};
use super::memory::{AllocationKind, Allocations, Supply};
use cudarc::driver::sys::CUresult;
use runtime_ptx::texture::{self, Objects};
use runtime_simt::Lock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};

/// A context of a device.
#[derive(Debug)]
pub struct Context {
    /// The context's handle.
    pub handle: Handle,
    /// The context's ID, unique in the process.
    pub id: u64,
    /// The index of the context's device.
    pub device: usize,
    /// Whether the context is the device's primary context.
    pub is_primary: bool,
    /// The flags given at creation, or set since.
    pub flags: AtomicU32,
    /// The context's preferences.
    pub preferences: Lock<Preferences>,
    memory: Lock<Allocations>,
    /// The textures and surfaces that later launches use.
    objects: Lock<Arc<Objects>>,
    supply: Arc<Supply>,
    /// The error of the first kernel or copy that failed. Every later call returns this error.
    failure: OnceLock<Error>,
    destroyed: AtomicBool,
    /// The number of entries of the context in the stacks of threads.
    stacked: AtomicU32,
    /// The number of calls of `cuCtxAttach` without a matching call of `cuCtxDetach`.
    attached: AtomicU32,
}

/// Settings of a context. Only the sizes of the heap and of the stack have an effect here. The
/// others can be read back.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Preferences {
    pub cache: u32,
    pub shared_bank: u32,
    /// The limits, by `CUlimit`.
    pub limits: [usize; 7],
}

/// The index of the size of each thread's stack among the limits: `CU_LIMIT_STACK_SIZE`.
const STACK_LIMIT: usize = 0;

/// The default size of the stack in NVIDIA's driver.
const DEFAULT_STACK: usize = 1 << 10;

/// The index of the size of the heap among the limits: `CU_LIMIT_MALLOC_HEAP_SIZE`.
const HEAP_LIMIT: usize = 2;

impl Default for Preferences {
    /// Returns the default limits of NVIDIA's driver.
    fn default() -> Preferences {
        Preferences { cache: 0, shared_bank: 1, limits: [DEFAULT_STACK, 1 << 20, 8 << 20, 2, 2048, 64, 0] }
    }
}

impl HandleType for Context {
    const KIND: u8 = 0x41;
    const NAME: &'static str = "context";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_CONTEXT;
}

impl Context {
    /// Creates a context without allocations.
    pub fn new(
        handle: Handle,
        id: u64,
        (device, supply): (usize, Arc<Supply>),
        is_primary: bool,
        flags: u32,
    ) -> Context {
        Context {
            handle,
            id,
            device,
            is_primary,
            flags: flags.into(),
            preferences: Lock::default(),
            memory: Lock::default(),
            objects: Lock::default(),
            supply,
            failure: OnceLock::new(),
            destroyed: false.into(),
            stacked: 0.into(),
            attached: 0.into(),
        }
    }

    /// Locks the context's memory for this thread.
    pub fn memory(&self) -> MutexGuard<'_, Allocations> {
        self.memory.lock()
    }

    /// Returns the textures and surfaces of a launch that is submitted now.
    pub fn objects(&self) -> Arc<Objects> {
        self.objects.lock().clone()
    }

    /// Adds, replaces or removes a texture or surface.
    pub fn set_object(&self, handle: u64, object: Option<texture::TextureOrSurface>) {
        let mut objects = self.objects.lock();
        let objects = Arc::make_mut(&mut objects);
        match object {
            Some(object) => objects.insert(handle, object),
            None => objects.remove(&handle),
        };
    }

    /// Allocates the heap of kernels, unless the context already has one.
    pub fn prepare_heap(&self) -> Result {
        let bytes = self.preferences().limits[HEAP_LIMIT] as u64;
        let mut memory = self.memory();
        if memory.heap().is_none() {
            let (address, allocation) = self.supply.allocate(AllocationKind::Heap, bytes.max(1))?;
            memory.set_heap(address, allocation);
        }
        Ok(())
    }

    /// Returns the limit of each thread's stack in bytes.
    pub fn stack_limit(&self) -> u32 {
        u32::try_from(self.preferences().limits[STACK_LIMIT]).unwrap_or(u32::MAX)
    }

    /// Locks the context's preferences for this thread.
    pub fn preferences(&self) -> MutexGuard<'_, Preferences> {
        self.preferences.lock()
    }

    /// Checks that the context can be used, and returns an error with the reason otherwise.
    pub fn check(&self) -> Result {
        if self.is_destroyed() {
            return Err(Error::new(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been destroyed"));
        }
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Returns the error by which the context failed, if it did.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// Marks the context as failed, permanently; the first error is kept.
    pub fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
    }

    /// Adds a user of the context.
    pub fn attach(&self) {
        self.attached.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a user of the context. Returns false if the creator is the only user.
    pub fn detach(&self) -> bool {
        self.attached.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |users| users.checked_sub(1)).is_ok()
    }

    /// Counts an entry of the context in the stack of a thread. An entry of a thread that has ended
    /// counts too.
    pub fn stack(&self) {
        self.stacked.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the removal of such an entry.
    pub fn unstack(&self) {
        self.stacked.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether the stack of a thread has the context.
    pub fn is_stacked(&self) -> bool {
        self.stacked.load(Ordering::Relaxed) > 0
    }

    /// Returns whether the context was destroyed.
    pub fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    /// Marks the context as destroyed.
    pub fn destroy(&self) {
        self.destroyed.store(true, Ordering::Release);
    }
}
