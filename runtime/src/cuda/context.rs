//! A device's primary context, and memory in it.
//!
//! The context is shared with everything in the process that uses the device. A thread that has no context current gets this one, as
//! CUDA's own runtime does it; on a thread that has another, this one is current only for the length of one operation.

use super::driver::{Code, Driver};
use super::info::DeviceInfo;
use crate::Error;
use cudarc::driver::sys;
use std::marker::PhantomData;
use std::ptr;

/// A device with its primary context, which it keeps alive.
pub(super) struct Context {
    pub driver: Driver,
    pub info: DeviceInfo,
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: a context handle may be used from any thread, and the driver's functions from several at once; which context is
// current is a matter of the thread and is set in each operation.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// The context is current on this thread until this is dropped, at least. It stays on its thread.
struct Current<'a> {
    driver: &'a Driver,
    pushed: bool,
    thread: PhantomData<*mut ()>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = ptr::null_mut();
            // SAFETY: pops what `Context::enter` pushed on this thread; operations are properly nested.
            unsafe { (self.driver.context_pop)(&mut popped) };
        }
    }
}

impl Context {
    pub fn open(ordinal: usize) -> Result<Context, Error> {
        let driver = Driver::open()?;
        let info = driver.device_info(ordinal)?;
        info.require_supported()?;
        let device = driver.device(ordinal)?;
        let mut context = ptr::null_mut();
        // SAFETY: `context` outlives the call; `device` is a device.
        let code = unsafe { (driver.context_retain)(&mut context, device) };
        driver.check(code, || format!("making a context on {info}"))?;
        Ok(Context { driver, info, device, context })
    }

    /// Runs `call` with the context current; `doing` says what it is for.
    pub fn run(&self, doing: impl Fn() -> String, call: impl FnOnce(&Driver) -> Code) -> Result<(), Error> {
        let _current = self.enter(&doing)?;
        let code = call(&self.driver);
        self.driver.check(code, || format!("{} on {}", doing(), self.info))
    }

    fn enter(&self, doing: impl Fn() -> String) -> Result<Current<'_>, Error> {
        let driver = &self.driver;
        let mut current = ptr::null_mut();
        // SAFETY: `current` outlives the call; the context is alive: it is retained.
        let (code, pushed) = unsafe {
            match (driver.context_current)(&mut current) {
                0 if current == self.context => (0, false),
                0 if current.is_null() => ((driver.context_make_current)(self.context), false),
                _ => ((driver.context_push)(self.context), true),
            }
        };
        driver.check(code, || format!("making the context of {} current for {}", self.info, doing()))?;
        Ok(Current { driver, pushed, thread: PhantomData })
    }

    /// What other contexts know it by.
    pub fn handle(&self) -> sys::CUcontext {
        self.context
    }

    /// New memory; `bytes` > 0.
    pub fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        let mut address = 0;
        // SAFETY: `address` outlives the call.
        let made = self.run(
            || format!("allocating {bytes} bytes"),
            |driver| unsafe { (driver.memory_allocate)(&mut address, bytes) },
        );
        match made {
            Ok(()) => Ok(address),
            Err(Error::Driver(e)) if e.is_out_of_memory() => Err(Error::OutOfMemory {
                requested: bytes,
                device: self.info.to_string(),
                free: self.free_memory(),
                pool: None,
            }),
            Err(e) => Err(e),
        }
    }

    /// New memory of the host that the device copies from and to by itself; `bytes` > 0.
    pub fn allocate_pinned(&self, bytes: usize) -> Result<u64, Error> {
        /// Any context may use it so.
        const PORTABLE: u32 = 1;
        let mut address = ptr::null_mut();
        let made = self.run(
            || format!("allocating {bytes} bytes of pinned host memory"),
            // SAFETY: `address` outlives the call.
            |driver| unsafe { (driver.pinned_allocate)(&mut address, bytes, PORTABLE) },
        );
        match made {
            Ok(()) => Ok(address.expose_provenance() as u64),
            Err(Error::Driver(e)) if e.is_out_of_memory() => Err(Error::OutOfMemory {
                requested: bytes,
                device: "the host (pinned)".to_string(),
                free: None,
                pool: None,
            }),
            Err(e) => Err(e),
        }
    }

    /// Frees it.
    ///
    /// # Safety
    /// `address` came from `allocate_pinned` and is not used any more.
    pub unsafe fn free_pinned(&self, address: u64) {
        let memory = ptr::with_exposed_provenance_mut(address as usize);
        // As for `free`. SAFETY: by the caller's promise.
        let _ = self.run(|| "freeing pinned memory".into(), |driver| unsafe { (driver.pinned_free)(memory) });
    }

    /// Free and total bytes, where the driver tells.
    fn free_memory(&self) -> Option<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        let asked = self.run(
            || "asking for free memory".into(),
            // SAFETY: both outlive the call.
            |driver| unsafe { (driver.memory_info)(&mut free, &mut total) },
        );
        asked.is_ok().then_some((free, total))
    }

    /// Frees memory.
    ///
    /// # Safety
    /// `address` came from `allocate` and is not used any more.
    pub unsafe fn free(&self, address: u64) {
        // A failure here is that of an earlier operation, which has been reported, or of a driver that has shut down with the process.
        // SAFETY: by the caller's promise.
        let _ = self.run(|| "freeing memory".into(), |driver| unsafe { (driver.memory_free)(address) });
    }

    /// Sets every byte.
    ///
    /// # Safety
    /// `bytes` bytes at `address` are one allocation's and nobody else uses them.
    pub unsafe fn fill(&self, address: u64, bytes: usize, value: u8) -> Result<(), Error> {
        self.run(
            || format!("filling {bytes} bytes at {address:#x}"),
            // SAFETY: by the caller's promise. Filling may go on after the call: the default stream is waited for.
            |driver| unsafe {
                match (driver.memory_fill)(address, value, bytes) {
                    0 => (driver.stream_wait)(ptr::null_mut()),
                    code => code,
                }
            },
        )
    }

    /// Copies from the device.
    ///
    /// # Safety
    /// As many bytes at `address` are one allocation's and nobody writes them.
    pub unsafe fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        let bytes = to.len();
        self.run(
            || format!("copying {bytes} bytes from the device at {address:#x}"),
            // SAFETY: by the caller's promise.
            |driver| unsafe { (driver.copy_to_host)(to.as_mut_ptr().cast(), address, bytes) },
        )
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`; modules and buffers, which hold this context, are gone.
        unsafe { (self.driver.context_release)(self.device) };
    }
}
