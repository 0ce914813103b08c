//! Ordered work: streams, events and launches.

use super::Driver;
use crate::core::error::{Error, Result};
use crate::core::event::{Captured, Event};
use crate::core::handle::Handle;
use crate::core::stream::{NON_BLOCKING, Stream, StreamArgument};
use crate::core::work::{StreamWork, ValidatedLaunch};
use cudarc::driver::sys::CUresult;
use std::sync::Arc;

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const SPECIAL_STREAMS: [u64; 2] = [1, 2];

impl Driver {
    /// Creates a stream in the current context.
    pub fn create_stream(&self, flags: u32) -> Result<Arc<Stream>> {
        let context = self.current()?;
        if flags & !NON_BLOCKING != 0 {
            return Err(Error::value(format!("invalid flags of a stream: {flags:#x}")));
        }
        let id = self.id();
        Ok(self.streams.insert(|handle| Stream::new(handle, id, context, flags)))
    }

    /// Returns the stream of a handle, after checking that its context can be used.
    pub fn queue(&self, stream: Handle) -> Result<StreamArgument> {
        let queue = match stream.0 {
            0 => StreamArgument::Default(self.current()?),
            handle if SPECIAL_STREAMS.contains(&handle) => StreamArgument::Default(self.current()?),
            _ => StreamArgument::Made(self.streams.get(stream)?),
        };
        queue.context().check()?;
        Ok(queue)
    }

    /// Destroys a stream; its submitted work still runs.
    pub fn destroy_stream(&self, stream: Handle) -> Result {
        if stream.0 == 0 || SPECIAL_STREAMS.contains(&stream.0) {
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_HANDLE, "the default stream cannot be destroyed"));
        }
        let stream = self.streams.remove(stream)?;
        if let Some(capture) = stream.capture() {
            capture.invalidate("a stream of the capture was destroyed");
            self.leave_capture(&capture);
        }
        Ok(())
    }

    /// Submits an operation to a stream.
    pub fn submit(&self, queue: &StreamArgument, work: StreamWork) -> Result {
        if let Some((stream, capture)) = queue.capturing() {
            return self.capture(&capture, stream.handle, work.into());
        }
        if let StreamArgument::Default(context) = queue {
            self.refuse_implicit(context)?;
        }
        let ticket = self.engine.submit(queue.context().clone(), work)?;
        if let StreamArgument::Made(stream) = queue {
            stream.note(ticket);
        }
        Ok(())
    }

    /// Waits until all submitted work of a stream is complete.
    pub fn synchronize(&self, queue: &StreamArgument) -> Result {
        queue.refuse_in_capture("a stream of the capture was waited for")?;
        self.refuse_unsafe("waiting for a stream")?;
        self.engine.wait(self.end_of(queue));
        queue.context().check()
    }

    /// Returns an error unless the stream has completed all its work.
    pub fn query(&self, queue: &StreamArgument) -> Result {
        queue.refuse_in_capture("a stream of the capture was queried")?;
        if self.engine.is_done(self.end_of(queue)) { queue.context().check() } else { Err(Error::not_ready()) }
    }

    fn end_of(&self, queue: &StreamArgument) -> u64 {
        match queue {
            StreamArgument::Default(_) => self.engine.last(),
            StreamArgument::Made(stream) => stream.last(),
        }
    }

    /// Waits until all submitted work of the current context is complete.
    pub fn synchronize_context(&self) -> Result {
        let context = self.current()?;
        self.refuse_unsafe("waiting for the context")?;
        self.engine.wait(self.engine.last());
        context.check()
    }

    /// Creates an event in the current context.
    pub fn create_event(&self, flags: u32) -> Result<Arc<Event>> {
        let context = self.current()?;
        Event::check(flags)?;
        Ok(self.events.insert(|handle| Event::new(handle, context, flags)))
    }

    /// Records an event in a stream.
    pub fn record(&self, event: Handle, queue: &StreamArgument) -> Result {
        let event = self.events.get(event)?;
        if let Some((stream, capture)) = queue.capturing() {
            let after = capture.front(stream.handle)?;
            event.record_captured(Captured { capture, after });
            return Ok(());
        }
        if !Arc::ptr_eq(&event.context, queue.context()) {
            let why = "the event and the stream belong to different contexts";
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_HANDLE, why));
        }
        let ticket = event.record(&self.engine, queue.context().clone())?;
        if let StreamArgument::Made(stream) = queue {
            stream.note(ticket);
        }
        Ok(())
    }

    /// Makes a stream wait for an event. The work before the event was submitted earlier, so only
    /// captures need a record of this dependency.
    pub fn wait_for(&self, queue: &StreamArgument, event: Handle) -> Result {
        let event = self.events.get(event)?;
        match (queue, queue.capturing(), event.captured()) {
            (StreamArgument::Made(stream), None, None) => {
                stream.note(event.ticket()?);
                Ok(())
            }
            (StreamArgument::Default(_), None, None) => Ok(()),
            (.., Some(captured)) if captured.capture.has_ended() => {
                Err(Error::value("the event was recorded in a capture that has ended"))
            }
            (_, Some((_, capture)), None) => {
                if event.ticket()? == 0 {
                    return Ok(());
                }
                capture.invalidate("a stream would wait for an event from outside the capture");
                let why = "a stream that captures waits for an event that was recorded outside of the capture";
                Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION, why))
            }
            (StreamArgument::Default(_), None, Some(_)) => {
                let why = "the default stream would take part in a capture";
                Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, why))
            }
            (StreamArgument::Made(stream), None, Some(captured)) => {
                captured.capture.join(stream.handle, &captured.after)?;
                stream.set_capture(Some(captured.capture));
                Ok(())
            }
            (_, Some((_, capture)), Some(captured)) if !Arc::ptr_eq(&capture, &captured.capture) => {
                capture.invalidate("a stream would wait for an event of another capture");
                let why = "the event belongs to another capture";
                Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE, why))
            }
            (_, Some((stream, capture)), Some(captured)) => capture.join(stream.handle, &captured.after),
        }
    }

    /// Waits until an event is complete.
    pub fn synchronize_event(&self, event: Handle) -> Result {
        let event = self.events.get(event)?;
        let ticket = event.ticket()?;
        self.refuse_unsafe("waiting for an event")?;
        self.engine.wait(ticket);
        event.context.check()
    }

    /// Returns an error unless the event is complete.
    pub fn query_event(&self, event: Handle) -> Result {
        let event = self.events.get(event)?;
        let ticket = event.ticket()?;
        self.refuse_unsafe("querying an event")?;
        if self.engine.is_done(ticket) { event.context.check() } else { Err(Error::not_ready()) }
    }

    /// Submits a kernel launch.
    pub fn launch(&self, launch: ValidatedLaunch, queue: &StreamArgument) -> Result {
        if !Arc::ptr_eq(&launch.function.module.context, queue.context()) {
            let why = "the function and the stream belong to different contexts";
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_HANDLE, why));
        }
        launch.function.check(launch.grid)?;
        self.submit(queue, StreamWork::Launch(launch))
    }
}
