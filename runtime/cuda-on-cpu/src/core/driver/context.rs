//! The current context of each thread, and the primary contexts.

use super::Driver;
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::graph::Mode;
use crate::core::handle::Handle;
use cudarc::driver::sys::CUresult;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering;

thread_local! {
    /// The context stack of a thread, whose last context is current. The stack is never dropped:
    /// destructors of the program call the driver after those of the thread's variables.
    static STACK: ManuallyDrop<RefCell<Vec<Arc<Context>>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// A device's primary context, and its reference count. The context's handle never changes.
#[derive(Debug, Default)]
pub struct Primary {
    /// The context; it is destroyed while the primary context is inactive.
    context: Option<Arc<Context>>,
    holders: u32,
    flags: u32,
}

/// The valid flags of a context: `CU_CTX_FLAGS_MASK`, and the flags of core dumps and copies. The
/// latter have no effect here.
const FLAGS: u32 = 0xff;

/// Returns the capture mode of this thread: the calls that the thread may make while a stream
/// captures.
pub fn capture_mode() -> Mode {
    MODE.get()
}

/// Sets the capture mode of this thread, and returns the previous one.
pub fn set_capture_mode(mode: Mode) -> Mode {
    MODE.replace(mode)
}

fn flags(flags: u32) -> Result<u32> {
    // At most one scheduling flag.
    if flags & !FLAGS != 0 || !matches!(flags & 7, 0 | 1 | 2 | 4) {
        return Err(Error::value(format!("invalid flags of a context: {flags:#x}")));
    }
    Ok(flags)
}

fn no_context() -> Error {
    Error::new(CUresult::CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread")
}

impl Driver {
    /// Returns the current context, or an error if it cannot be used.
    pub fn current(&self) -> Result<Arc<Context>> {
        let context = self.top().ok_or_else(no_context)?;
        context.check()?;
        Ok(context)
    }

    /// Returns the current context, even if it has failed or was destroyed.
    pub fn top(&self) -> Option<Arc<Context>> {
        let top = STACK.with(|stack| stack.borrow().last().cloned())?;
        // A primary context that is retained again is another object with the same handle.
        Some(if top.is_primary { self.contexts.get(top.handle).unwrap_or(top) } else { top })
    }

    /// Returns the context whose memory contains an address of the device or of pinned memory: the
    /// current context, or any other. Addresses are unique among all devices.
    pub fn owner(&self, address: u64) -> Option<Arc<Context>> {
        let has = |context: &Arc<Context>| context.memory().find(address).is_some();
        let current = self.top().filter(has);
        current.or_else(|| self.contexts.all().into_iter().find(has))
    }

    /// Creates a context, and makes it current.
    pub fn create_context(&self, given: u32, device: i32) -> Result<Arc<Context>> {
        let device = self.device(device)?;
        let given = flags(given)?;
        let (id, supply) = (self.id(), self.supply(device).clone());
        let context = self.contexts.insert(|handle| Context::new(handle, id, (device, supply), false, given));
        context.stack();
        STACK.with(|stack| stack.borrow_mut().push(context.clone()));
        Ok(context)
    }

    /// Destroys a context other than the primary one, with all its objects.
    pub fn destroy_context(&self, handle: Handle) -> Result {
        let context = self.contexts.get(handle)?;
        if context.is_primary {
            let why = "the primary context can be released, but not destroyed";
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_CONTEXT, why));
        }
        self.contexts.remove(handle)?;
        self.end(&context);
        STACK.with(|stack| stack.borrow_mut().pop_if(|top| Arc::ptr_eq(top, &context)));
        Ok(())
    }

    /// Frees all objects of a context.
    fn end(&self, context: &Arc<Context>) {
        self.engine.wait(self.engine.last());
        context.destroy();
        self.executables.remove_all(|executable| Arc::ptr_eq(&executable.context, context));
        self.functions.remove_all(|function| Arc::ptr_eq(&function.module.context, context));
        self.modules.remove_all(|module| Arc::ptr_eq(&module.context, context));
        self.events.remove_all(|event| Arc::ptr_eq(&event.context, context));
        self.streams.remove_all(|stream| Arc::ptr_eq(&stream.context, context));
        self.textures.remove_all(|texture| Arc::ptr_eq(&texture.context, context));
        self.surfaces.remove_all(|surface| Arc::ptr_eq(&surface.context, context));
        self.references.remove_all(|reference| Arc::ptr_eq(&reference.context, context));
        self.arrays.remove_all(|array| Arc::ptr_eq(&array.context, context));
        context.memory().clear();
    }

    /// Pushes a context on the stack, which makes it current.
    pub fn push(&self, handle: Handle) -> Result {
        let context = self.contexts.get(handle)?;
        context.stack();
        STACK.with(|stack| stack.borrow_mut().push(context));
        Ok(())
    }

    /// Pops the current context, which makes the previous one current.
    pub fn pop(&self) -> Result<Arc<Context>> {
        let context = STACK.with(|stack| stack.borrow_mut().pop()).ok_or_else(no_context)?;
        context.unstack();
        Ok(context)
    }

    /// Replaces the current context; a null handle leaves none.
    pub fn set_current(&self, handle: Handle) -> Result {
        let context = if handle.0 == 0 { None } else { Some(self.contexts.get(handle)?) };
        STACK.with(|stack| {
            let mut stack = stack.borrow_mut();
            stack.pop().iter().for_each(|context| context.unstack());
            context.iter().for_each(|context| context.stack());
            stack.extend(context);
        });
        Ok(())
    }

    /// Retains the primary context, and creates it if it has no users.
    pub fn retain_primary(&self, device: i32) -> Result<Arc<Context>> {
        let device = self.device(device)?;
        let mut primary = self.primary[device].lock();
        let context = match &primary.context {
            Some(context) if !context.is_destroyed() => context.clone(),
            inactive => {
                let (id, flags) = (self.id(), primary.flags);
                let supply = self.supply(device).clone();
                let new = |handle| Context::new(handle, id, (device, supply), true, flags);
                match inactive {
                    Some(inactive) => self.contexts.replace(inactive.handle, new(inactive.handle))?,
                    None => self.contexts.insert(new),
                }
            }
        };
        primary.context = Some(context.clone());
        primary.holders += 1;
        Ok(context)
    }

    /// Releases the primary context; the last release destroys it.
    pub fn release_primary(&self, device: i32) -> Result {
        let device = self.device(device)?;
        let mut primary = self.primary[device].lock();
        if primary.holders == 0 {
            let why = "the primary context is released more often than it was retained";
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_CONTEXT, why));
        }
        primary.holders -= 1;
        let last = primary.context.clone().filter(|context| primary.holders == 0 && !context.is_destroyed());
        drop(primary);
        last.iter().for_each(|context| self.end(context));
        Ok(())
    }

    /// Destroys the primary context's objects regardless of its users, who still have to release
    /// it. The context's handle can be used again after the next retain.
    pub fn reset_primary(&self, device: i32) -> Result {
        let device = self.device(device)?;
        let context = self.primary[device].lock().context.clone();
        context.iter().filter(|context| !context.is_destroyed()).for_each(|context| self.end(context));
        Ok(())
    }

    /// Sets the flags for the primary context's creation.
    pub fn set_primary_flags(&self, device: i32, given: u32) -> Result {
        let device = self.device(device)?;
        let mut primary = self.primary[device].lock();
        primary.flags = flags(given)?;
        if let Some(context) = &primary.context {
            context.flags.store(given, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the flags of the primary context, and whether it is active.
    pub fn primary_state(&self, device: i32) -> Result<(u32, bool)> {
        let device = self.device(device)?;
        let primary = self.primary[device].lock();
        Ok((primary.flags, primary.context.as_ref().is_some_and(|context| !context.is_destroyed())))
    }
}
