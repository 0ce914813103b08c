//! Arrays of nodes and of dependencies, as arguments and results.

use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::ffi::{get, handle, pointer, put};
use cudarc::driver::sys;

/// Rejects dependencies with data, such as those on a part of a kernel.
///
/// # Safety
/// `data` is null, or has `count` elements.
pub(super) unsafe fn check_edges(data: *const u64, count: usize) -> Result {
    if data.is_null() {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller.
    match (0..count).find(|index| unsafe { data.wrapping_add(*index).read_unaligned() } != 0) {
        None => Ok(()),
        Some(index) => Err(Error::unsupported(format!("the data of dependency {index}"))),
    }
}

/// Writes the data of dependencies, zeros, beside the `count` nodes written to an array.
///
/// # Safety
/// `data` is null, or has `count` elements; `count` is valid.
pub(super) unsafe fn put_edges<T>(data: *mut u64, nodes: *const T, count: *const usize) -> Result {
    if data.is_null() || nodes.is_null() {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller.
    (0..unsafe { get(count)? }).try_for_each(|index| unsafe { put(data.wrapping_add(index), 0) })
}

/// Returns the handles of an array.
///
/// # Safety
/// `from` is null, or has `count` elements.
pub(super) unsafe fn handles(from: *const sys::CUgraphNode, count: usize) -> Result<Vec<Handle>> {
    if from.is_null() && count > 0 {
        return Err(Error::value("an array of nodes is null"));
    }
    // SAFETY: guaranteed by the caller.
    (0..count).map(|index| unsafe { get(from.wrapping_add(index)) }.map(handle)).collect()
}

/// Returns dependencies from two arrays of nodes.
///
/// # Safety
/// Each array is null, or has `count` elements.
pub(super) unsafe fn edges(
    from: *const sys::CUgraphNode,
    to: *const sys::CUgraphNode,
    count: usize,
) -> Result<Vec<(Handle, Handle)>> {
    // SAFETY: guaranteed by the caller.
    let (from, to) = unsafe { (handles(from, count)?, handles(to, count)?) };
    Ok(from.into_iter().zip(to).collect())
}

/// Writes handles to an array with room for `count`, and their number; unused elements become null.
/// Writes only the number if the array is null.
///
/// # Safety
/// `to` is null, or valid for `count` elements.
pub(super) unsafe fn put_handles(to: *mut sys::CUgraphNode, count: *mut usize, list: &[Handle]) -> Result {
    if !to.is_null() {
        // SAFETY: guaranteed by the caller.
        let room = unsafe { get(count)? };
        for index in 0..room {
            let node = list.get(index).copied().unwrap_or(Handle(0));
            // SAFETY: guaranteed by the caller.
            unsafe { put(to.wrapping_add(index), pointer(node))? };
        }
        if room < list.len() {
            return Ok(());
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { put(count, list.len()) }
}

/// Writes the nodes of dependencies to two arrays.
///
/// # Safety
/// Each array is null, or valid for `count` elements.
pub(super) unsafe fn put_edge_nodes(
    (from, to): (*mut sys::CUgraphNode, *mut sys::CUgraphNode),
    count: *mut usize,
    edges: Vec<(Handle, Handle)>,
) -> Result {
    let (first, second): (Vec<Handle>, Vec<Handle>) = edges.into_iter().unzip();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let room = get(count)?;
        put_handles(from, count, &first)?;
        // The second array has the room of the first.
        put(count, if from.is_null() { first.len() } else { room })?;
        put_handles(to, count, &second)
    }
}
