//! Modules and link states.

use super::Driver;
use crate::core::assembly;
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::core::image;
use crate::core::link::{self, Link, LinkInput, LinkProgress};
use crate::core::module::{Module, ModuleFunction, shared_at_most};
use cudarc::driver::sys::CUresult;
use kernel_dsl_compiler::ptx;
use runtime_simt::Lock;
use std::ffi::c_int;
use std::sync::Arc;

impl Driver {
    /// Loads PTX in the current context. Errors in the PTX are also written to `log`.
    pub fn load(&self, text: &str, log: &mut String) -> Result<Arc<Module>> {
        self.load_in(&self.current()?, text, log)
    }

    /// Loads PTX in a context.
    pub(super) fn load_in(&self, context: &Arc<Context>, text: &str, log: &mut String) -> Result<Arc<Module>> {
        let module = self.read_image(text, log)?;
        let supply = self.supply(context.device);
        let mut made = Module::new(context.clone(), module, supply, Handle(0))?;
        Ok(self.modules.insert(|handle| {
            made.handle = handle;
            made
        }))
    }

    /// Parses PTX, or an image of a link state.
    pub(super) fn read_image(&self, text: &str, log: &mut String) -> Result<ptx::Module> {
        let module = self.read(link::ptx(text, self.settings.target())?, log)?;
        let refusals = assembly::refusals(&module, shared_at_most(&self.settings));
        if refusals.is_empty() {
            return Ok(module);
        }
        *log = refusals.join("\n");
        Err(Error::new(CUresult::CUDA_ERROR_INVALID_PTX, log.clone()))
    }

    fn read(&self, text: &str, log: &mut String) -> Result<ptx::Module> {
        image::read(text, self.settings.target()).map_err(|(error, messages)| {
            *log = messages;
            error
        })
    }

    /// Creates a link state with these options, whose values are at an address of the program.
    pub fn link(&self, options: (Vec<c_int>, usize)) -> Result<Arc<Link>> {
        self.current()?;
        Ok(self.links.insert(|handle| Link { handle, options, state: Lock::new(LinkProgress::Added(Vec::new())) }))
    }

    /// Adds PTX to a link state.
    pub fn link_add(&self, link: Handle, name: &str, text: &str, log: &mut String) -> Result {
        let link = self.links.get(link)?;
        let text = link::ptx(text, self.settings.target())?;
        let module = self.read(text, log)?;
        link.state.lock().add(LinkInput { name: name.to_string(), text: text.to_string(), module })
    }

    /// Returns the address and length of the compiled image, which stays valid until the link state
    /// is destroyed. Errors of the linker are also written to `log`.
    pub fn link_complete(&self, link: &Link, log: &mut String) -> Result<(*const u8, usize)> {
        let mut state = link.state.lock();
        let image = state.complete(self.settings.target(), log)?;
        Ok((image.as_ptr(), image.len()))
    }

    /// Unloads a module after all submitted work is complete.
    pub fn unload(&self, module: Handle) -> Result {
        self.modules.get(module)?.context.check()?;
        let module = self.modules.remove(module)?;
        self.functions.remove_all(|function| Arc::ptr_eq(&function.module, &module));
        self.engine.wait(self.engine.last());
        let gone = |variable: &(Handle, String)| variable.0 == module.handle;
        for reference in self.references.remove_all(|reference| reference.variable.as_ref().is_some_and(gone)) {
            if let Some(address) = reference.address {
                module.context.set_object(address, None);
            }
        }
        module.unload();
        Ok(())
    }

    /// Returns a kernel of a module.
    pub fn function(&self, module: Handle, name: &str) -> Result<Arc<ModuleFunction>> {
        let module = self.modules.get(module)?;
        module.context.check()?;
        let mut functions = module.functions();
        if let Some((_, handle)) = functions.iter().find(|(known, _)| known == name) {
            return self.functions.get(*handle);
        }
        let program = module.program(name)?;
        let function =
            self.functions.insert(|handle| ModuleFunction::new(handle, module.clone(), name, program, &self.settings));
        functions.push((name.to_string(), function.handle));
        Ok(function)
    }

    /// Returns the address and size in bytes of a module's variable.
    pub fn variable(&self, module: Handle, name: &str) -> Result<(u64, u64)> {
        let module = self.modules.get(module)?;
        module.context.check()?;
        module.variable(name)
    }
}

/// Returns the parameter bytes of a launch whose program passed one buffer with all parameters.
pub fn parameters(function: &ModuleFunction, given: &[u8]) -> Result<Vec<u8>> {
    let bytes = function.program.parameter_bytes();
    match given.get(..bytes) {
        Some(given) => Ok(given.to_vec()),
        None => Err(Error::value(format!("`{}` has {bytes} bytes of parameters, not {}", function.name, given.len()))),
    }
}
