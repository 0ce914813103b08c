//! Libraries: modules that belong to no context. Each context loads a library at its first use
//! there.

use super::handle::{Handle, HandleType};
use runtime_simt::Lock;
use std::ffi::CString;
use std::sync::Arc;

/// A library.
#[derive(Debug)]
pub struct Library {
    /// The library's handle.
    pub handle: Handle,
    /// The PTX.
    pub text: String,
    /// The names of the kernels, in order.
    pub entries: Vec<String>,
    /// The module of each context that has loaded the library, by the context's ID.
    pub modules: Lock<Vec<(u64, Handle)>>,
    /// The kernels looked up so far.
    pub kernels: Lock<Vec<Arc<LibraryEntry>>>,
}

/// A kernel of a library.
#[derive(Debug)]
pub struct LibraryEntry {
    /// The kernel's handle.
    pub handle: Handle,
    /// The library.
    pub library: Handle,
    /// The name.
    pub name: String,
    /// The name as a C string.
    pub c_name: CString,
}

impl HandleType for Library {
    const KIND: u8 = 0x4B;
    const NAME: &'static str = "library";
}

impl HandleType for LibraryEntry {
    const KIND: u8 = 0x4C;
    const NAME: &'static str = "kernel";
}
