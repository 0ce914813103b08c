//! Executable graphs: their instantiation, updates, uploads, launches and destruction.

use crate::core::driver::{Driver, UpdateMismatch};
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::ffi::layout::{InstantiateParams, UpdateInfo};
use crate::ffi::{check_result_pointer, exports, get, handle, pointer, put, put_if};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{c_char, c_uint};

/// Accepted flags of `CUDA_GRAPH_INSTANTIATE_FLAG_…`: free on launch, upload, use node priorities.
/// None has an effect here: nothing is freed or uploaded, and there is only one priority.
const FREE_UPLOAD_PRIORITY: u64 = 1 | UPLOAD | 8;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;

/// Instantiates a graph, and writes the handle of the executable graph.
///
/// # Safety
/// `to` is null or valid for writes.
unsafe fn instantiate(driver: &Driver, to: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: u64) -> Result {
    check_result_pointer(to)?;
    match flags & !FREE_UPLOAD_PRIORITY {
        0 => {}
        DEVICE_LAUNCH if flags == DEVICE_LAUNCH => return Err(Error::unsupported("graphs that the device launches")),
        _ => return Err(Error::value(format!("invalid flags of an executable graph: {flags:#x}"))),
    }
    let made = driver.instantiate(handle(graph), flags)?;
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, pointer(made.handle)) }
}

/// Updates an executable graph. Returns what the call writes, and the result of the call.
fn update(driver: &Driver, executable: sys::CUgraphExec, graph: sys::CUgraph) -> Result<(UpdateInfo, Result)> {
    let info = |result, node, from| UpdateInfo { result, node: pointer(node), from: pointer(from) };
    Ok(match driver.update(handle(executable), handle(graph))? {
        None => (info(0, Handle(0), Handle(0)), Ok(())),
        Some(UpdateMismatch { result, node, from }) => {
            let why = format!("the graph differs from the executable graph: CUgraphExecUpdateResult {result}");
            let error = Error::new(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, why);
            (info(result, node, from), Err(error))
        }
    })
}

exports! {
    fn cuGraphInstantiate_v2(executable: *mut sys::CUgraphExec, graph: sys::CUgraph, node: *mut sys::CUgraphNode, log: *mut c_char, room: usize) as cuGraphInstantiate = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires. The result has no further
        // information.
        unsafe {
            put_if(node, pointer(Handle(0)));
            if room > 0 {
                put_if(log, 0);
            }
            instantiate(driver, executable, graph, 0)
        }
    };

    fn cuGraphInstantiateWithFlags(executable: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: u64) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { instantiate(driver, executable, graph, flags) }
    };

    fn cuGraphInstantiateWithParams(executable: *mut sys::CUgraphExec, graph: sys::CUgraph, params: *mut InstantiateParams) as cuGraphInstantiateWithParams_ptsz = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let given = get(params)?;
            let upload = || driver.queue(handle(given.upload_stream)).map(|_| ());
            let ready = if given.flags & UPLOAD == 0 { Ok(()) } else { upload() };
            let done = ready.and_then(|()| instantiate(driver, executable, graph, given.flags));
            // `CUDA_GRAPH_INSTANTIATE_SUCCESS`, or `…_ERROR`. No node is at fault.
            put(params, InstantiateParams { node: pointer(Handle(0)), result: c_uint::from(done.is_err()), ..given })?;
            done
        }
    };

    fn cuGraphExecGetFlags(executable: sys::CUgraphExec, flags: *mut u64) = call |driver| {
        let known = driver.executables.get(handle(executable))?.flags;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(flags, known) }
    };

    fn cuGraphExecDestroy(executable: sys::CUgraphExec) = call |driver| {
        driver.executables.remove(handle(executable)).map(|_| ())
    };

    fn cuGraphExecUpdate(executable: sys::CUgraphExec, graph: sys::CUgraph, node: *mut sys::CUgraphNode, result: *mut c_uint) = call |driver| {
        let (info, updated) = update(driver, executable, graph)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            put_if(node, info.node);
            put_if(result, info.result);
        }
        updated
    };

    fn cuGraphExecUpdate_v2(executable: sys::CUgraphExec, graph: sys::CUgraph, info: *mut UpdateInfo) = call |driver| {
        let (found, updated) = update(driver, executable, graph)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put_if(info, found) };
        updated
    };

    fn cuGraphNodeSetEnabled(executable: sys::CUgraphExec, node: sys::CUgraphNode, enabled: c_uint) = call |driver| {
        driver.executables.get(handle(executable))?.change(handle(node), |step| {
            step.enabled = enabled != 0;
            Ok(())
        })
    };

    fn cuGraphNodeGetEnabled(executable: sys::CUgraphExec, node: sys::CUgraphNode, enabled: *mut c_uint) = call |driver| {
        let mut known = 0;
        driver.executables.get(handle(executable))?.change(handle(node), |step| {
            known = c_uint::from(step.enabled);
            Ok(())
        })?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(enabled, known) }
    };

    fn cuGraphUpload(executable: sys::CUgraphExec, stream: sys::CUstream) as cuGraphUpload_ptsz = call |driver| {
        driver.queue(handle(stream))?;
        driver.executables.get(handle(executable)).map(|_| ())
    };

    fn cuGraphLaunch(executable: sys::CUgraphExec, stream: sys::CUstream) as cuGraphLaunch_ptsz = call |driver| {
        driver.launch_graph(handle(executable), &driver.queue(handle(stream))?)
    };
}
