//! Libraries and their kernels.

use super::Driver;
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::core::library::{Library, LibraryEntry};
use crate::core::module::{Module, ModuleFunction};
use cudarc::driver::sys::CUresult;
use runtime_simt::Lock;
use std::ffi::CString;
use std::sync::Arc;

impl Driver {
    /// Loads PTX as a library. Errors in the PTX are also written to `log`.
    pub fn load_library(&self, text: &str, log: &mut String) -> Result<Arc<Library>> {
        let module = self.read_image(text, log)?;
        let entries = module.entries().map(|entry| entry.name.clone()).collect();
        Ok(self.libraries.insert(|handle| Library {
            handle,
            text: text.to_string(),
            entries,
            modules: Lock::default(),
            kernels: Lock::default(),
        }))
    }

    /// Unloads a library from every context.
    pub fn unload_library(&self, library: Handle) -> Result {
        let library = self.libraries.remove(library)?;
        for kernel in library.kernels.lock().drain(..) {
            let _ = self.kernels.remove(kernel.handle);
        }
        for (_, module) in library.modules.lock().drain(..) {
            // The context of the module may have been destroyed.
            let _ = self.unload(module);
        }
        Ok(())
    }

    /// Returns the library's module in a context, and loads it there if necessary.
    pub fn module_of(&self, library: Handle, context: &Arc<Context>) -> Result<Arc<Module>> {
        let library = self.libraries.get(library)?;
        let mut modules = library.modules.lock();
        let known = modules.iter().find(|(id, _)| *id == context.id);
        if let Some(module) = known.and_then(|(_, module)| self.modules.get(*module).ok()) {
            return Ok(module);
        }
        let module = self.load_in(context, &library.text, &mut String::new())?;
        modules.retain(|(id, _)| *id != context.id);
        modules.push((context.id, module.handle));
        Ok(module)
    }

    /// Returns a kernel of a library.
    pub fn kernel(&self, library: Handle, name: &str) -> Result<Arc<LibraryEntry>> {
        let library = self.libraries.get(library)?;
        if !library.entries.iter().any(|entry| entry == name) {
            let why = format!("the library has no kernel `{name}`; it has {}", library.entries.join(", "));
            return Err(Error::new(CUresult::CUDA_ERROR_NOT_FOUND, why));
        }
        let mut kernels = library.kernels.lock();
        if let Some(known) = kernels.iter().find(|kernel| kernel.name == name) {
            return Ok(known.clone());
        }
        let kernel = self.kernels.insert(|handle| LibraryEntry {
            handle,
            library: library.handle,
            name: name.to_string(),
            c_name: CString::new(name).unwrap_or_default(),
        });
        kernels.push(kernel.clone());
        Ok(kernel)
    }

    /// Returns a kernel's function in a context.
    pub fn function_of(&self, kernel: &LibraryEntry, context: &Arc<Context>) -> Result<Arc<ModuleFunction>> {
        let module = self.module_of(kernel.library, context)?;
        self.function(module.handle, &kernel.name)
    }

    /// Returns the function of a handle, which may also be the handle of a library's kernel. For a
    /// kernel, returns its function in `context`.
    pub fn callable(
        &self,
        handle: Handle,
        context: impl FnOnce() -> Result<Arc<Context>>,
    ) -> Result<Arc<ModuleFunction>> {
        match self.kernels.get(handle) {
            Ok(kernel) => self.function_of(&kernel, &context()?),
            Err(_) => self.functions.get(handle),
        }
    }
}
