//! Contexts: memory, what goes wrong in it for good, and what a program would have it prefer.

use super::error::{Error, Result};
use super::handle::{Handle, Object};
use super::memory::Space;
use cudarc::driver::sys::CUresult;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A context of a device.
#[derive(Debug)]
pub struct Context {
    /// Its handle.
    pub handle: Handle,
    /// Numbered through in the process.
    pub id: u64,
    /// The number of its device.
    pub device: usize,
    /// Whether it is the device's primary one.
    pub is_primary: bool,
    /// As it was made, or set since.
    pub flags: AtomicU32,
    /// What it would rather have.
    pub preferences: Mutex<Preferences>,
    memory: Mutex<Space>,
    /// What went wrong in a kernel or copy: from then on every call says so.
    failure: OnceLock<Error>,
    destroyed: AtomicBool,
}

/// What can be set of a context and does nothing here but be told again.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Preferences {
    pub cache: u32,
    pub shared_bank: u32,
    /// By `CUlimit`.
    pub limits: [usize; 7],
}

impl Default for Preferences {
    /// Limits as a card's driver has them.
    fn default() -> Preferences {
        Preferences { cache: 0, shared_bank: 1, limits: [1 << 10, 1 << 20, 8 << 20, 2, 2048, 64, 0] }
    }
}

impl Object for Context {
    const KIND: u8 = 0xC1;
    const NAME: &'static str = "context";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_CONTEXT;
}

impl Context {
    /// Without anything in it.
    pub fn new(handle: Handle, id: u64, device: usize, is_primary: bool, flags: u32) -> Context {
        Context {
            handle,
            id,
            device,
            is_primary,
            flags: flags.into(),
            preferences: Mutex::default(),
            memory: Mutex::default(),
            failure: OnceLock::new(),
            destroyed: false.into(),
        }
    }

    /// Its memory, for this thread alone.
    pub fn memory(&self) -> MutexGuard<'_, Space> {
        // A kernel that panics may leave its values half written, and the table of allocations whole.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its preferences, for this thread alone.
    pub fn preferences(&self) -> MutexGuard<'_, Preferences> {
        self.preferences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it can be used: the error says why not.
    pub fn check(&self) -> Result {
        if self.destroyed.load(Ordering::Acquire) {
            return Err(Error::new(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been destroyed"));
        }
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// What went wrong in it.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// Something went wrong, for good; the first is kept.
    pub fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
    }

    /// It is no more.
    pub fn destroy(&self) {
        self.destroyed.store(true, Ordering::Release);
    }
}
