//! Streams.

use super::context::Context;
use super::engine::Ticket;
use super::error::{Error, Result};
use super::graph::Capture;
use super::handle::{Handle, Object};
use cudarc::driver::sys::CUresult;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stream that a program has made.
#[derive(Debug)]
pub struct Stream {
    /// Its handle.
    pub handle: Handle,
    /// Numbered through in the process.
    pub id: u64,
    /// Whose it is.
    pub context: Arc<Context>,
    /// As it was made.
    pub flags: u32,
    last: AtomicU64,
    capture: Mutex<Option<Arc<Capture>>>,
}

impl Object for Stream {
    const KIND: u8 = 0xC3;
    const NAME: &'static str = "stream";
}

/// `CU_STREAM_NON_BLOCKING`: it does not wait for the legacy stream, nor that for it.
pub const NON_BLOCKING: u32 = 1;

impl Stream {
    /// With nothing to do.
    pub fn new(handle: Handle, id: u64, context: Arc<Context>, flags: u32) -> Stream {
        Stream { handle, id, context, flags, last: AtomicU64::new(0), capture: Mutex::default() }
    }

    /// What it was given last.
    pub fn last(&self) -> Ticket {
        self.last.load(Ordering::Acquire)
    }

    /// It was given this.
    pub fn note(&self, ticket: Ticket) {
        self.last.fetch_max(ticket, Ordering::AcqRel);
    }

    /// The capture that it takes part in.
    pub fn capture(&self) -> Option<Arc<Capture>> {
        self.lock().clone()
    }

    /// It takes part in a capture, or no longer in one.
    pub fn set_capture(&self, capture: Option<Arc<Capture>>) {
        *self.lock() = capture;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Capture>>> {
        // Nothing panics while the lock is held.
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream as a call names it.
#[derive(Clone, Debug)]
pub enum Queue {
    /// 0, `CU_STREAM_LEGACY`, and `CU_STREAM_PER_THREAD`, which is as good as in order with it here.
    Default(Arc<Context>),
    /// One that was made.
    Made(Arc<Stream>),
}

impl Queue {
    /// Whose it is.
    pub fn context(&self) -> &Arc<Context> {
        match self {
            Queue::Default(context) => context,
            Queue::Made(stream) => &stream.context,
        }
    }

    /// The stream and its capture, if it takes part in one.
    pub fn capturing(&self) -> Option<(&Arc<Stream>, Arc<Capture>)> {
        match self {
            Queue::Default(_) => None,
            Queue::Made(stream) => stream.capture().map(|capture| (stream, capture)),
        }
    }

    /// Refuses what a stream that captures cannot do; the capture comes to nothing.
    pub fn refuse_in_capture(&self, what: &str) -> Result {
        let Some((_, capture)) = self.capturing() else { return Ok(()) };
        capture.invalidate(what);
        Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, format!("the stream captures: {what}")))
    }
}
