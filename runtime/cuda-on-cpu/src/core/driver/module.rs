//! What is loaded.

use super::Driver;
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::core::image;
use crate::core::module::{Function, Module};
use std::sync::Arc;

impl Driver {
    /// Loads PTX in the current context. What is wrong with it goes to `log` too.
    pub fn load(&self, text: &str, log: &mut String) -> Result<Arc<Module>> {
        let context = self.current()?;
        let module = image::read(text, self.settings.target()).map_err(|(error, told)| {
            *log = told;
            error
        })?;
        let supply = self.supply(context.device);
        let mut made = Module::new(context, module, supply, Handle(0))?;
        Ok(self.modules.insert(|handle| {
            made.handle = handle;
            made
        }))
    }

    /// Unloads a module when all that was submitted has happened.
    pub fn unload(&self, module: Handle) -> Result {
        self.current()?;
        let module = self.modules.remove(module)?;
        self.functions.remove_all(|function| Arc::ptr_eq(&function.module, &module));
        self.engine.wait(self.engine.last());
        module.unload();
        Ok(())
    }

    /// A kernel of a module.
    pub fn function(&self, module: Handle, name: &str) -> Result<Arc<Function>> {
        self.current()?;
        let module = self.modules.get(module)?;
        let mut functions = module.functions();
        if let Some((_, handle)) = functions.iter().find(|(known, _)| known == name) {
            return self.functions.get(*handle);
        }
        let program = module.program(name)?;
        let function =
            self.functions.insert(|handle| Function::new(handle, module.clone(), name, program, &self.settings));
        functions.push((name.to_string(), function.handle));
        Ok(function)
    }

    /// Address and bytes of a variable of a module.
    pub fn variable(&self, module: Handle, name: &str) -> Result<(u64, u64)> {
        self.current()?;
        self.modules.get(module)?.variable(name)
    }
}

/// The bytes of the parameters of a launch, of which the program has given a buffer with all.
pub fn parameters(function: &Function, given: &[u8]) -> Result<Vec<u8>> {
    let bytes = function.program.parameter_bytes();
    match given.get(..bytes) {
        Some(given) => Ok(given.to_vec()),
        None => Err(Error::value(format!("`{}` has {bytes} bytes of parameters, not {}", function.name, given.len()))),
    }
}
