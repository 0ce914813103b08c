//! Streams.

use super::context::Context;
use super::engine::Ticket;
use super::error::{Error, Result};
use super::graph::{AttributeValue, Capture};
use super::handle::{Handle, HandleType};
use cudarc::driver::sys::CUresult;
use runtime_simt::Lock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A stream created by the program.
#[derive(Debug)]
pub struct Stream {
    /// The stream's handle.
    pub handle: Handle,
    /// The stream's ID, unique in the process.
    pub id: u64,
    /// The context that the stream belongs to.
    pub context: Arc<Context>,
    /// The flags given at creation.
    pub flags: u32,
    last: AtomicU64,
    capture: Lock<Option<Arc<Capture>>>,
    /// The attributes that the program set, by `CUlaunchAttributeID`. None has an effect.
    attributes: Lock<BTreeMap<u32, AttributeValue>>,
}

impl HandleType for Stream {
    const KIND: u8 = 0x43;
    const NAME: &'static str = "stream";
}

/// `CU_STREAM_NON_BLOCKING`: the stream and the legacy stream do not wait for each other.
pub const NON_BLOCKING: u32 = 1;

impl Stream {
    /// Creates a stream without work.
    pub fn new(handle: Handle, id: u64, context: Arc<Context>, flags: u32) -> Stream {
        let last = AtomicU64::new(0);
        Stream { handle, id, context, flags, last, capture: Lock::default(), attributes: Lock::default() }
    }

    /// Returns the ticket of the last operation submitted to the stream.
    pub fn last(&self) -> Ticket {
        self.last.load(Ordering::Acquire)
    }

    /// Records the ticket of the last operation submitted to the stream.
    pub fn note(&self, ticket: Ticket) {
        self.last.fetch_max(ticket, Ordering::AcqRel);
    }

    /// Returns the value of an attribute, by default that of NVIDIA's driver.
    pub fn attribute(&self, id: u32) -> AttributeValue {
        let first = match id {
            // The synchronization policy is "automatic".
            3 => 1,
            // The default domain is 0, and the remote one is 1, a byte each.
            9 => 0x100,
            _ => 0,
        };
        self.attributes.lock().get(&id).copied().unwrap_or([first, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Sets an attribute.
    pub fn set_attribute(&self, id: u32, value: AttributeValue) {
        self.attributes.lock().insert(id, value);
    }

    /// Copies the attributes of another stream.
    pub fn copy_attributes(&self, from: &Stream) {
        let attributes = from.attributes.lock().clone();
        *self.attributes.lock() = attributes;
    }

    /// Returns the capture that the stream takes part in.
    pub fn capture(&self) -> Option<Arc<Capture>> {
        self.capture.lock().clone()
    }

    /// Adds the stream to a capture; `None` removes the stream from its capture.
    pub fn set_capture(&self, capture: Option<Arc<Capture>>) {
        *self.capture.lock() = capture;
    }
}

/// The stream argument of a call.
#[derive(Clone, Debug)]
pub enum StreamArgument {
    /// The default stream: 0, `CU_STREAM_LEGACY`, and `CU_STREAM_PER_THREAD`, which here has the
    /// same order.
    Default(Arc<Context>),
    /// A stream created by the program.
    Made(Arc<Stream>),
}

impl StreamArgument {
    /// Returns the context that the stream belongs to.
    pub fn context(&self) -> &Arc<Context> {
        match self {
            StreamArgument::Default(context) => context,
            StreamArgument::Made(stream) => &stream.context,
        }
    }

    /// Returns the stream and its capture, if it takes part in one.
    pub fn capturing(&self) -> Option<(&Arc<Stream>, Arc<Capture>)> {
        match self {
            StreamArgument::Default(_) => None,
            StreamArgument::Made(stream) => stream.capture().map(|capture| (stream, capture)),
        }
    }

    /// Rejects operations that are invalid during a capture, and invalidates the capture.
    pub fn refuse_in_capture(&self, what: &str) -> Result {
        let Some((_, capture)) = self.capturing() else { return Ok(()) };
        capture.invalidate(what);
        Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, format!("the stream captures: {what}")))
    }
}
