//! Functions of streams, events and host functions.

use super::{check_result_pointer, exports, get, handle, no_flags, pointer, put, put_if};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::graph::AttributeValue;
use crate::core::stream::{Stream, StreamArgument};
use crate::core::work::{HostFunction, StreamWork};
use cudarc::driver::sys;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// Returns a stream that the program created. The default stream has no attributes here.
fn made(driver: &Driver, stream: sys::CUstream) -> Result<Arc<Stream>> {
    match driver.queue(handle(stream))? {
        StreamArgument::Made(stream) => Ok(stream),
        StreamArgument::Default(_) => Err(Error::unsupported("attributes of the default stream")),
    }
}

/// Rejects attributes that a stream does not have. A stream has: access policy, synchronization
/// policy, priority, memory domains.
fn check_attribute(id: c_uint) -> Result {
    if [1, 3, 8, 9, 10].contains(&id) { Ok(()) } else { Err(Error::value(format!("streams have no attribute {id}"))) }
}

exports! {
    fn cuStreamCreate(stream: *mut sys::CUstream, flags: c_uint) = call |driver| {
        check_result_pointer(stream)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(stream, pointer(driver.create_stream(flags)?.handle)) }
    };

    fn cuStreamCreateWithPriority(stream: *mut sys::CUstream, flags: c_uint, _priority: c_int) = call |driver| {
        check_result_pointer(stream)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(stream, pointer(driver.create_stream(flags)?.handle)) }
    };

    fn cuStreamDestroy_v2(stream: sys::CUstream) as cuStreamDestroy = call |driver| {
        driver.destroy_stream(handle(stream))
    };

    fn cuStreamSynchronize(stream: sys::CUstream) as cuStreamSynchronize_ptsz = call |driver| {
        driver.synchronize(&driver.queue(handle(stream))?)
    };

    fn cuStreamQuery(stream: sys::CUstream) as cuStreamQuery_ptsz = call |driver| {
        driver.query(&driver.queue(handle(stream))?)
    };

    fn cuStreamWaitEvent(stream: sys::CUstream, event: sys::CUevent, flags: c_uint) as cuStreamWaitEvent_ptsz = call |driver| {
        // Flag 1 marks an event that was recorded outside of a capture.
        if flags > 1 {
            return Err(Error::value(format!("invalid flags of a wait: {flags:#x}")));
        }
        driver.wait_for(&driver.queue(handle(stream))?, handle(event))
    };

    fn cuStreamGetPriority(stream: sys::CUstream, priority: *mut c_int) as cuStreamGetPriority_ptsz = call |driver| {
        driver.queue(handle(stream))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(priority, 0) }
    };

    fn cuStreamGetFlags(stream: sys::CUstream, flags: *mut c_uint) as cuStreamGetFlags_ptsz = call |driver| {
        let made = match driver.queue(handle(stream))? {
            StreamArgument::Default(_) => 0,
            StreamArgument::Made(stream) => stream.flags,
        };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(flags, made) }
    };

    fn cuStreamGetId(stream: sys::CUstream, id: *mut u64) as cuStreamGetId_ptsz = call |driver| {
        let known = match driver.queue(handle(stream))? {
            StreamArgument::Default(_) => 0,
            StreamArgument::Made(stream) => stream.id,
        };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(id, known) }
    };

    fn cuStreamGetCtx(stream: sys::CUstream, context: *mut sys::CUcontext) as cuStreamGetCtx_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(context, pointer(queue.context().handle)) }
    };

    fn cuStreamGetCtx_v2(stream: sys::CUstream, context: *mut sys::CUcontext, green: *mut *mut c_void) as cuStreamGetCtx_v2_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires. No context is a part of the
        // device.
        unsafe {
            put_if(green, std::ptr::null_mut());
            put(context, pointer(queue.context().handle))
        }
    };

    fn cuStreamGetAttribute(stream: sys::CUstream, id: c_uint, value: *mut AttributeValue) as cuStreamGetAttribute_ptsz = call |driver| {
        check_attribute(id)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(value, made(driver, stream)?.attribute(id)) }
    };

    fn cuStreamSetAttribute(stream: sys::CUstream, id: c_uint, value: *const AttributeValue) as cuStreamSetAttribute_ptsz = call |driver| {
        check_attribute(id)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        made(driver, stream)?.set_attribute(id, unsafe { get(value)? });
        Ok(())
    };

    fn cuStreamCopyAttributes(to: sys::CUstream, from: sys::CUstream) as cuStreamCopyAttributes_ptsz = call |driver| {
        let (to, from) = (made(driver, to)?, made(driver, from)?);
        to.copy_attributes(&from);
        Ok(())
    };

    fn cuStreamGetDevice(stream: sys::CUstream, device: *mut sys::CUdevice) = call |driver| {
        let queue = driver.queue(handle(stream))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(device, queue.context().device as sys::CUdevice) }
    };

    fn cuLaunchHostFunc(
        stream: sys::CUstream,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) as cuLaunchHostFunc_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        let function = function.ok_or_else(|| Error::value("the function is null"))?;
        driver.submit(&queue, StreamWork::Call(HostFunction::Plain { function, data }))
    };

    fn cuStreamAddCallback(
        stream: sys::CUstream,
        function: Option<unsafe extern "C" fn(*mut c_void, u32, *mut c_void)>,
        data: *mut c_void,
        flags: c_uint,
    ) as cuStreamAddCallback_ptsz = call |driver| {
        no_flags(flags)?;
        let queue = driver.queue(handle(stream))?;
        queue.refuse_in_capture("callbacks in a capture are not supported")?;
        let function = function.ok_or_else(|| Error::value("the function is null"))?;
        let stream = handle(stream).0;
        driver.submit(&queue, StreamWork::Call(HostFunction::WithStatus { function, stream, data }))
    };

    fn cuEventCreate(event: *mut sys::CUevent, flags: c_uint) = call |driver| {
        check_result_pointer(event)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(event, pointer(driver.create_event(flags)?.handle)) }
    };

    fn cuEventDestroy_v2(event: sys::CUevent) as cuEventDestroy = call |driver| {
        driver.events.remove(handle(event)).map(|_| ())
    };

    fn cuEventRecord(event: sys::CUevent, stream: sys::CUstream) as cuEventRecord_ptsz = call |driver| {
        driver.record(handle(event), &driver.queue(handle(stream))?)
    };

    fn cuEventRecordWithFlags(event: sys::CUevent, stream: sys::CUstream, flags: c_uint) as cuEventRecordWithFlags_ptsz = call |driver| {
        if flags > 1 {
            return Err(Error::value(format!("invalid flags of a recording: {flags:#x}")));
        }
        driver.record(handle(event), &driver.queue(handle(stream))?)
    };

    fn cuEventQuery(event: sys::CUevent) = call |driver| {
        driver.query_event(handle(event))
    };

    fn cuEventSynchronize(event: sys::CUevent) = call |driver| {
        driver.synchronize_event(handle(event))
    };

    fn cuEventElapsedTime(
        milliseconds: *mut f32,
        start: sys::CUevent,
        end: sys::CUevent,
    ) as cuEventElapsedTime_v2 = call |driver| {
        let (start, end) = (driver.events.get(handle(start))?, driver.events.get(handle(end))?);
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(milliseconds, end.elapsed_ms(&start)?) }
    };

    fn cuStreamIsCapturing(stream: sys::CUstream, status: *mut c_uint) as cuStreamIsCapturing_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        // 0: no capture. 1: capture in progress. 2: capture invalidated.
        let now = queue.capturing().map_or(0, |(_, capture)| if capture.is_valid() { 1 } else { 2 });
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(status, now) }
    };

    fn cuStreamGetCaptureInfo(stream: sys::CUstream, status: *mut c_uint, id: *mut u64) as cuStreamGetCaptureInfo_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        let capture = queue.capturing().map(|(_, capture)| capture);
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put_if(id, capture.as_ref().map_or(0, |capture| capture.id));
            put(status, capture.map_or(0, |capture| if capture.is_valid() { 1 } else { 2 }))
        }
    };
}
