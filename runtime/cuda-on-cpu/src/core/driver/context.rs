//! The current context of each thread, and the primary contexts.

use super::{Driver, lock};
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::graph::Mode;
use crate::core::handle::Handle;
use cudarc::driver::sys::CUresult;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;

thread_local! {
    /// The context stack of a thread, whose last context is current.
    static STACK: RefCell<Vec<Arc<Context>>> = const { RefCell::new(Vec::new()) };
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// A device's primary context, and its reference count.
#[derive(Debug, Default)]
pub struct Primary {
    context: Option<Arc<Context>>,
    holders: u32,
    flags: u32,
}

/// The valid flags of a context: `CU_CTX_FLAGS_MASK`, and the flags of core dumps and copies. The
/// latter have no effect here.
const FLAGS: u32 = 0xff;

/// Returns the capture mode of this thread: what the thread may do while a stream captures.
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

fn none() -> Error {
    Error::new(CUresult::CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread")
}

impl Driver {
    /// Returns the current context, or an error if it cannot be used.
    pub fn current(&self) -> Result<Arc<Context>> {
        let context = self.top().ok_or_else(none)?;
        context.check()?;
        Ok(context)
    }

    /// Returns the current context, even if it has failed or was destroyed.
    pub fn top(&self) -> Option<Arc<Context>> {
        STACK.with_borrow(|stack| stack.last().cloned())
    }

    /// Creates a context, and makes it current.
    pub fn create_context(&self, given: u32, device: i32) -> Result<Arc<Context>> {
        let device = self.device(device)?;
        let given = flags(given)?;
        let id = self.id();
        let context = self.contexts.insert(|handle| Context::new(handle, id, device, false, given));
        STACK.with_borrow_mut(|stack| stack.push(context.clone()));
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
        STACK.with_borrow_mut(|stack| stack.pop_if(|top| Arc::ptr_eq(top, &context)));
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
        context.memory().clear();
    }

    /// Pushes a context on the stack, which makes it current.
    pub fn push(&self, handle: Handle) -> Result {
        let context = self.contexts.get(handle)?;
        STACK.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }

    /// Pops the current context, which makes the previous one current.
    pub fn pop(&self) -> Result<Arc<Context>> {
        STACK.with_borrow_mut(Vec::pop).ok_or_else(none)
    }

    /// Replaces the current context; a null handle leaves none.
    pub fn set_current(&self, handle: Handle) -> Result {
        let context = if handle.0 == 0 { None } else { Some(self.contexts.get(handle)?) };
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            stack.extend(context);
        });
        Ok(())
    }

    /// Retains the primary context, and creates it if it has no users.
    pub fn retain_primary(&self, device: i32) -> Result<Arc<Context>> {
        let device = self.device(device)?;
        let mut primary = lock(&self.primary[device]);
        let context = match &primary.context {
            Some(context) => context.clone(),
            None => {
                let (id, flags) = (self.id(), primary.flags);
                self.contexts.insert(|handle| Context::new(handle, id, device, true, flags))
            }
        };
        primary.context = Some(context.clone());
        primary.holders += 1;
        Ok(context)
    }

    /// Releases the primary context; the last release destroys it.
    pub fn release_primary(&self, device: i32) -> Result {
        let device = self.device(device)?;
        let mut primary = lock(&self.primary[device]);
        if primary.holders == 0 {
            let why = "the primary context is released more often than it was retained";
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_CONTEXT, why));
        }
        primary.holders -= 1;
        let last = if primary.holders == 0 { primary.context.take() } else { None };
        drop(primary);
        self.end_primary(last)
    }

    /// Destroys the primary context regardless of its users. Their handles become invalid;
    /// retaining the primary context again creates a new one.
    pub fn reset_primary(&self, device: i32) -> Result {
        let device = self.device(device)?;
        let mut primary = lock(&self.primary[device]);
        primary.holders = 0;
        let last = primary.context.take();
        drop(primary);
        self.end_primary(last)
    }

    fn end_primary(&self, context: Option<Arc<Context>>) -> Result {
        if let Some(context) = context {
            self.contexts.remove(context.handle)?;
            self.end(&context);
        }
        Ok(())
    }

    /// Sets the flags for the primary context's creation.
    pub fn set_primary_flags(&self, device: i32, given: u32) -> Result {
        let device = self.device(device)?;
        let mut primary = lock(&self.primary[device]);
        primary.flags = flags(given)?;
        if let Some(context) = &primary.context {
            context.flags.store(given, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the flags of the primary context, and whether it is active.
    pub fn primary_state(&self, device: i32) -> Result<(u32, bool)> {
        let device = self.device(device)?;
        let primary = lock(&self.primary[device]);
        Ok((primary.flags, primary.context.is_some()))
    }
}
