//! User objects, and the references of graphs to them.

use crate::core::error::Error;
use crate::core::user_object::{Destructor, UserObject};
use crate::core::work::HostFunction;
use crate::ffi::{check_result_pointer, exports, handle, pointer, put};
use cudarc::driver::sys;
use std::ffi::{c_uint, c_void};

/// `CU_GRAPH_USER_OBJECT_MOVE`: the graph gets references of the program.
const MOVE: c_uint = 1;

exports! {
    fn cuUserObjectCreate(object: *mut *mut c_void, data: *mut c_void, destroy: Option<unsafe extern "C" fn(*mut c_void)>, count: c_uint, flags: c_uint) = call |driver| {
        check_result_pointer(object)?;
        let function = destroy.ok_or_else(|| Error::value("the function is null"))?;
        // The only flag states that calls do not wait for the function.
        if flags != 1 {
            return Err(Error::value(format!("invalid flags of a user object: {flags:#x}")));
        }
        let function = HostFunction::Plain { function, data };
        let made = UserObject::create(&driver.user_objects, Destructor::new(move || function.call()), count)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(object, pointer(made.handle)) }
    };

    fn cuUserObjectRetain(object: *mut c_void, count: c_uint) = call |driver| {
        driver.user_objects.get(handle(object))?.retain(count)
    };

    fn cuUserObjectRelease(object: *mut c_void, count: c_uint) = call |driver| {
        driver.user_objects.get(handle(object))?.release(count)
    };

    fn cuGraphRetainUserObject(graph: sys::CUgraph, object: *mut c_void, count: c_uint, flags: c_uint) = call |driver| {
        if flags & !MOVE != 0 {
            return Err(Error::value(format!("invalid flags of references to a user object: {flags:#x}")));
        }
        let graph = driver.graphs.get(handle(graph))?;
        graph.keep(driver.user_objects.get(handle(object))?.refer(count, flags == MOVE)?);
        Ok(())
    };

    fn cuGraphReleaseUserObject(graph: sys::CUgraph, object: *mut c_void, count: c_uint) = call |driver| {
        driver.graphs.get(handle(graph))?.take_references(handle(object), count).map(drop)
    };
}
