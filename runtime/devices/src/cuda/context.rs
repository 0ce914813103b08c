//! A device's context, and memory in it.
//!
//! The context is the device's primary one, which is shared with all code of the process that uses
//! the device. A thread without a current context gets this one, as in CUDA's runtime. On a thread
//! with another current context, the primary context is current only during one operation.
//!
//! If a kernel or the hardware fails permanently, the context is lost: every later operation fails
//! at once, without a call of the driver. A lost context is kept until its last user is dropped,
//! because the driver may own host memory. If the device is opened again before that, it gets a
//! separate context. The context of a kernel that does not end is kept permanently.

use super::driver::Driver;
use super::driver_error::{DriverError, DriverStatus};
use super::in_flight::InFlight;
use super::info::DeviceInfo;
use super::loss::{Loss, LossCause};
use super::timeline::Timeline;
use crate::Error;
use crate::trace::event;
use cudarc::driver::sys;
use runtime_simt::Lock;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, Weak};
use std::time::Duration;

/// Devices in whose primary context a kernel does not end. Such a context is never released;
/// retaining it again would return the same context.
static ABANDONED_CONTEXTS: Lock<Vec<usize>> = Lock::new(Vec::new());

/// A device with a context, which this object keeps alive.
pub(super) struct Context {
    pub driver: Driver,
    pub info: DeviceInfo,
    device: sys::CUdevice,
    context: sys::CUcontext,
    kind: ContextOwner,
    lost: OnceLock<Arc<Loss>>,
    /// The time limit in nanoseconds; 0 is none.
    watchdog_timeout: AtomicU64,
    /// Whether each operation is followed by an event, because a time limit is set or about to be
    /// set.
    timed: AtomicBool,
    /// The launches of each stream, which a loss reports.
    in_flight: Lock<Vec<Weak<InFlight>>>,
    /// The timelines of the streams.
    timelines: Lock<Vec<Weak<Lock<Timeline>>>>,
    /// Addresses of unused memory, to be freed when no work is in flight.
    deferred_frees: Lock<Vec<u64>>,
}

/// The owner of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ContextOwner {
    /// The device's primary context.
    Primary,
    /// A separate context, if the primary one is lost.
    Own,
}

// SAFETY: any thread may use a context handle, and several threads may call the driver at once. The
// current context is a property of the thread, and each operation sets it.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// A guard that stays on its thread, and keeps the context current there.
struct Current<'a> {
    driver: &'a Driver,
    pushed: bool,
    thread: PhantomData<*mut ()>,
}

fn abandoned_contexts() -> MutexGuard<'static, Vec<usize>> {
    ABANDONED_CONTEXTS.lock()
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = ptr::null_mut();
            // SAFETY: pops what `Context::enter` pushed on this thread; operations nest.
            unsafe { (self.driver.context_pop)(&mut popped) };
        }
    }
}

impl Context {
    /// Opens a context of device `ordinal`: the primary one if `primary` allows it and it is
    /// neither lost nor abandoned.
    pub fn open(ordinal: usize, primary: bool) -> Result<Context, Error> {
        let driver = Driver::open()?;
        let info = driver.device_info(ordinal)?;
        info.require_supported()?;
        let device = driver.device(ordinal)?;
        if !primary || abandoned_contexts().contains(&ordinal) {
            return Context::separate(driver, info, device);
        }
        let mut context = ptr::null_mut();
        // SAFETY: `context` outlives the call; `device` is a device.
        let code = unsafe { (driver.context_retain)(&mut context, device) };
        match driver.result(code, || format!("making a context on {info}")) {
            Ok(()) => {}
            Err(why) if why.loses_context() => return Context::separate(driver, info, device),
            Err(why) => return Err(Error::Driver(why)),
        }
        let opened = Context::new(driver, info, device, context, ContextOwner::Primary);
        // Other code of the process may have corrupted the context. Retaining it does not report
        // that, but this query does.
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        let works = opened.run(
            || "querying the current context".into(),
            |driver| unsafe { (driver.memory_info)(&mut free, &mut total) },
        );
        match works {
            Ok(()) => Ok(opened),
            Err(Error::Lost(_)) => Context::open(ordinal, false),
            Err(why) => Err(why),
        }
    }

    /// Creates a separate context.
    fn separate(driver: Driver, info: DeviceInfo, device: sys::CUdevice) -> Result<Context, Error> {
        let (mut context, mut popped) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: both outlive the calls; `device` is a device. The driver makes the context
        // current; `enter` does that when needed.
        let code = unsafe {
            match (driver.context_create)(&mut context, 0, device) {
                0 => (driver.context_pop)(&mut popped),
                code => code,
            }
        };
        let made = driver.check(code, || {
            format!(
                "making a context on {info} beside a lost one (if the driver allows a process only one context, drop \
                 all objects of the lost device; if that does not help, end the process)"
            )
        });
        let context = Context::new(driver, info, device, context, ContextOwner::Own);
        // A context that cannot be popped is destroyed with `context`.
        made.map(|()| context)
    }

    fn new(
        driver: Driver,
        info: DeviceInfo,
        device: sys::CUdevice,
        context: sys::CUcontext,
        kind: ContextOwner,
    ) -> Context {
        Context {
            driver,
            info,
            device,
            context,
            kind,
            lost: OnceLock::new(),
            watchdog_timeout: AtomicU64::new(0),
            timed: AtomicBool::new(false),
            in_flight: Lock::default(),
            timelines: Lock::default(),
            deferred_frees: Lock::default(),
        }
    }

    /// Returns the loss, if the context is lost.
    pub fn lost(&self) -> Option<&Arc<Loss>> {
        self.lost.get()
    }

    /// Fails if the context is lost.
    pub fn check(&self) -> Result<(), Error> {
        self.lost().map_or(Ok(()), |loss| Err(Error::Lost(loss.clone())))
    }

    /// Marks the context as lost. The first cause is kept.
    pub fn lose(&self, cause: LossCause) -> Error {
        let loss = self.lost.get_or_init(|| {
            if self.kind == ContextOwner::Primary && matches!(cause, LossCause::TimeLimit { .. }) {
                // The context is marked as abandoned before any thread can see the loss and reopen
                // the device.
                abandoned_contexts().push(self.info.ordinal);
            }
            let streams = self.in_flight.lock();
            let in_flight = streams.iter().filter_map(Weak::upgrade).flat_map(|stream| stream.list()).collect();
            let loss = Arc::new(Loss { device: self.info.to_string(), cause, in_flight });
            event!(ERROR, %loss, "device lost");
            loss
        });
        Error::Lost(loss.clone())
    }

    /// Returns the time limit of waits, if there is one.
    pub fn watchdog_timeout(&self) -> Option<Duration> {
        match self.watchdog_timeout.load(Ordering::Relaxed) {
            0 => None,
            nanoseconds => Some(Duration::from_nanos(nanoseconds)),
        }
    }

    /// Returns whether operations are followed by events, as a time limit requires.
    pub fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Acquire)
    }

    /// Sets whether operations are followed by events. The caller turns events on before it sets a
    /// time limit, and off after it removes the limit.
    pub fn set_timed(&self, timed: bool) {
        self.timed.store(timed, Ordering::Release);
    }

    /// Sets the time limit. The caller ensures that no work without a following event is in flight.
    pub fn set_watchdog_timeout(&self, limit: Option<Duration>) {
        let nanoseconds = limit.map_or(0, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).max(1));
        self.watchdog_timeout.store(nanoseconds, Ordering::Relaxed);
    }

    /// Records the launches of a stream, for reports of a loss.
    pub fn watch(&self, in_flight: &Arc<InFlight>, timeline: &Arc<Lock<Timeline>>) {
        self.in_flight.lock().push(Arc::downgrade(in_flight));
        self.timelines.lock().push(Arc::downgrade(timeline));
    }

    /// Updates the timelines of all streams, and returns the number of newly completed operations.
    pub fn progress(&self) -> Result<usize, Error> {
        let all: Vec<_> = {
            let timelines = self.timelines.lock();
            timelines.iter().filter_map(Weak::upgrade).collect()
        };
        all.iter().try_fold(0, |over, timeline| Ok(over + timeline.lock().advance(self)?))
    }

    /// Runs `call` with the context current. `doing` describes the call in errors.
    pub fn run(&self, doing: impl Fn() -> String, call: impl FnOnce(&Driver) -> DriverStatus) -> Result<(), Error> {
        self.attempt(doing, call)?.map_err(|why| self.driver_error(why))
    }

    /// Runs a call on borrowed memory. Any failure leaves the device's use of that memory unknown,
    /// so it loses the context.
    pub fn run_or_lose(
        &self,
        doing: impl Fn() -> String,
        call: impl FnOnce(&Driver) -> DriverStatus,
    ) -> Result<(), Error> {
        self.attempt(doing, call)?.map_err(|why| self.lose(LossCause::Driver(why)))
    }

    fn attempt(
        &self,
        doing: impl Fn() -> String,
        call: impl FnOnce(&Driver) -> DriverStatus,
    ) -> Result<Result<(), DriverError>, Error> {
        self.check()?;
        Ok(self.enter(&doing).and_then(|_current| {
            let code = call(&self.driver);
            self.driver.result(code, || format!("{} on {}", doing(), self.info))
        }))
    }

    fn driver_error(&self, why: DriverError) -> Error {
        if why.loses_context() { self.lose(LossCause::Driver(why)) } else { Error::Driver(why) }
    }

    fn enter(&self, doing: impl Fn() -> String) -> Result<Current<'_>, DriverError> {
        let driver = &self.driver;
        let mut current = ptr::null_mut();
        // SAFETY: `current` outlives the call; the context is retained, so it is alive. A thread
        // whose current context was destroyed may get an error; ours is pushed on top.
        let (code, pushed) = unsafe {
            match (driver.context_current)(&mut current) {
                0 if current == self.context => (0, false),
                0 if current.is_null() => ((driver.context_make_current)(self.context), false),
                _ => ((driver.context_push)(self.context), true),
            }
        };
        driver.result(code, || format!("making the context of {} current for {}", self.info, doing()))?;
        Ok(Current { driver, pushed, thread: PhantomData })
    }

    /// Returns the handle, by which other contexts refer to this one.
    pub fn handle(&self) -> sys::CUcontext {
        self.context
    }

    /// Allocates `bytes` > 0 bytes of device memory.
    pub fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        event!(DEBUG, device = %self.info, bytes, "memory reserved");
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

    /// Allocates `bytes` > 0 bytes of pinned host memory.
    pub fn allocate_pinned(&self, bytes: usize) -> Result<u64, Error> {
        event!(DEBUG, device = "the host (pinned)", bytes, "memory reserved");
        /// The flag that lets every context use the memory.
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

    /// Frees pinned memory.
    ///
    /// # Safety
    /// `address` came from `allocate_pinned` and is not used any more.
    pub unsafe fn free_pinned(&self, address: u64) {
        let memory = ptr::with_exposed_provenance_mut(address as usize);
        // See `free`. SAFETY: the caller guarantees it.
        let _ = self.run(|| "freeing pinned memory".into(), |driver| unsafe { (driver.pinned_free)(memory) });
    }

    /// Returns free and total bytes, if the driver reports them.
    pub fn free_memory(&self) -> Option<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        let queried = self.run(
            || "querying the free memory".into(),
            // SAFETY: both outlive the call.
            |driver| unsafe { (driver.memory_info)(&mut free, &mut total) },
        );
        queried.is_ok().then_some((free, total))
    }

    /// Frees memory.
    ///
    /// # Safety
    /// `address` came from `allocate` and is not used any more.
    pub unsafe fn free(&self, address: u64) {
        // A failure here is the result of an earlier operation, which reported it, or of a driver
        // that has shut down with the process. SAFETY: the caller guarantees it.
        let _ = self.run(|| "freeing memory".into(), |driver| unsafe { (driver.memory_free)(address) });
    }

    /// Frees memory without waiting for a kernel that may not end. The driver's call waits for the
    /// whole device. With a time limit, the address is therefore kept, and a later wait frees the
    /// memory.
    ///
    /// # Safety
    /// `address` came from `allocate`; all work that may use it has been submitted.
    pub unsafe fn free_or_leave(&self, address: u64) {
        match self.watchdog_timeout() {
            // SAFETY: the caller guarantees it; the driver frees the memory when all submitted work
            // is complete.
            None => unsafe { self.free(address) },
            Some(_) => self.deferred_frees.lock().push(address),
        }
    }

    /// Takes the addresses to be freed. The caller waits for all submitted work and then frees
    /// them.
    pub fn take_deferred_frees(&self) -> Vec<u64> {
        std::mem::take(&mut *self.deferred_frees.lock())
    }

    /// Frees memory whose release was deferred.
    ///
    /// # Safety
    /// `addresses` came from `take_deferred_frees`.
    pub unsafe fn free_deferred(&self, addresses: Vec<u64>) {
        // SAFETY: guaranteed by this caller and, once each, by the callers that deferred the frees.
        addresses.into_iter().for_each(|address| unsafe { self.free(address) });
    }

    /// Sets every byte.
    ///
    /// # Safety
    /// `bytes` bytes at `address` belong to one allocation, and no other code uses them.
    pub unsafe fn fill(&self, address: u64, bytes: usize, value: u8) -> Result<(), Error> {
        self.run(
            || format!("filling {bytes} bytes at {address:#x}"),
            // SAFETY: the caller guarantees it. The fill may continue after the call, so the
            // default stream is waited for.
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
    /// `to.len()` bytes at `address` belong to one allocation, and no other code writes them.
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
        if self.lost().is_some_and(|loss| matches!(loss.cause(), LossCause::TimeLimit { .. })) {
            // Destroying the context would wait for the kernel that does not end, and could block
            // other calls of the driver. The context stays until the process ends; the primary
            // context was recorded as abandoned when it was lost.
            return;
        }
        let addresses = self.take_deferred_frees();
        // SAFETY: just taken.
        unsafe { self.free_deferred(addresses) };
        let mut current = ptr::null_mut();
        // SAFETY: `current` outlives the call; a thread may have no context.
        unsafe {
            if (self.driver.context_current)(&mut current) == 0 && current == self.context && !current.is_null() {
                (self.driver.context_make_current)(ptr::null_mut());
            }
        }
        // SAFETY: the context was created or retained once, if it is not null. Modules and buffers
        // keep this object alive, so none is left.
        unsafe {
            match self.kind {
                ContextOwner::Primary => (self.driver.context_release)(self.device),
                ContextOwner::Own if self.context.is_null() => 0,
                ContextOwner::Own => (self.driver.context_destroy)(self.context),
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn gpu_is_opened_in_an_own_context_after_a_time_limit() {
        let primary = Context::open(0, true).expect("a GPU");
        assert_eq!(primary.kind, ContextOwner::Primary);
        let known_by = primary.handle();
        // Simulates a time limit; no kernel runs there.
        primary.lose(LossCause::TimeLimit { waiting_for: "a kernel".into(), limit: Duration::ZERO });
        assert_eq!(Context::open(0, true).expect("the GPU beside it").kind, ContextOwner::Own);
        drop(primary);
        let anew = Context::open(0, true).expect("the GPU after it");
        assert_eq!(anew.kind, ContextOwner::Own);
        assert!(anew.handle() != known_by && anew.free_memory().is_some());
    }
}
