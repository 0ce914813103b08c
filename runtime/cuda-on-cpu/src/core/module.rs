//! Modules and their kernels.

use super::context::Context;
use super::error::{Error, Result};
use super::handle::{Handle, HandleType};
use super::memory::{AllocationKind, Supply};
use super::settings::Settings;
use cudarc::driver::sys::{CUfunction_attribute as Attribute, CUresult};
use kernel_dsl_compiler::analyses::occupancy::MultiprocessorLimits;
use kernel_dsl_compiler::ptx;
use runtime_ptx::{Grid, Program, ResidentModule};
use runtime_simt::Lock;
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

/// A loaded module.
#[derive(Debug)]
pub struct Module {
    /// The module's handle.
    pub handle: Handle,
    /// The context that the module belongs to.
    pub context: Arc<Context>,
    image: ResidentModule,
    /// The entries looked up so far, with their handles.
    functions: Lock<Vec<(String, Handle)>>,
}

/// A kernel of a module.
#[derive(Debug)]
pub struct ModuleFunction {
    /// The function's handle.
    pub handle: Handle,
    /// The module that defines the function.
    pub module: Arc<Module>,
    /// The function's name.
    pub name: String,
    /// The function's name as a C string.
    pub c_name: CString,
    /// The decoded code.
    pub program: Program,
    /// The maximum shared memory of a block in bytes, including memory that needs an opt-in by
    /// attribute.
    shared_at_most: u32,
    /// The maximum dynamic shared memory of a launch, in bytes.
    pub dynamic: AtomicU32,
    carveout: AtomicI32,
    stepwise: Lock<Stepwise>,
}

/// A launch that the program prepares with one call for each part, as before CUDA 4.
#[derive(Clone, Debug)]
pub struct Stepwise {
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// The bytes of the parameters.
    pub parameters: Vec<u8>,
}

impl HandleType for Module {
    const KIND: u8 = 0x42;
    const NAME: &'static str = "module";
}

impl HandleType for ModuleFunction {
    const KIND: u8 = 0x45;
    const NAME: &'static str = "function";
}

/// The reported registers per thread of a kernel without a directive: the largest number that
/// permits full occupancy. The PTX is not register-allocated here.
const REGISTERS: i32 = 32;

/// The local memory of a thread in bytes. A launch whose kernel needs this much fails with
/// `CUDA_ERROR_INVALID_VALUE`, as do blocks that the kernel's directives exclude. Both codes are
/// those of NVIDIA's driver 580 on an H200.
const MAX_LOCAL_BYTES: u32 = 512 << 10;

impl Module {
    /// Places a module's variables in memory.
    pub fn new(context: Arc<Context>, module: ptx::Module, supply: &Arc<Supply>, handle: Handle) -> Result<Module> {
        let mut memory = Vec::new();
        let image = ResidentModule::new(module, |bytes, _| {
            let (address, allocation) = supply.allocate(AllocationKind::Variable { constant: false }, bytes.max(1))?;
            memory.push((address, allocation));
            Ok::<u64, Error>(address)
        })?;
        let mut space = context.memory();
        for ((address, mut allocation), variable) in memory.into_iter().zip(image.variables()) {
            allocation.kind = AllocationKind::Variable { constant: variable.constant };
            allocation.name = variable.name.clone();
            allocation.block.get_mut()[..variable.bytes.len()].copy_from_slice(&variable.bytes);
            space.insert(address, allocation);
        }
        drop(space);
        Ok(Module { handle, context, image, functions: Lock::default() })
    }

    /// Frees the module's variables.
    pub fn unload(&self) {
        let mut memory = self.context.memory();
        for variable in self.image.variables() {
            memory.remove(variable.address);
        }
    }

    /// Returns the address and size in bytes of a variable.
    pub fn variable(&self, name: &str) -> Result<(u64, u64)> {
        let variables = self.image.variables();
        match variables.iter().find(|variable| !variable.is_of_function && variable.name == name) {
            Some(variable) => Ok((variable.address, variable.bytes.len() as u64)),
            None => Err(Error::new(CUresult::CUDA_ERROR_NOT_FOUND, format!("the module has no variable `{name}`"))),
        }
    }

    /// Returns the address of a `.texref` or `.surfref` variable.
    pub fn object(&self, name: &str, is_surface: bool) -> Result<u64> {
        let ty = if is_surface { ptx::Type::Surfref } else { ptx::Type::Texref };
        let is_declared =
            self.image.module().variables().iter().any(|variable| variable.name == name && variable.ty == ty);
        if !is_declared {
            let why = format!("the module has no variable `.{ty} {name}`");
            return Err(Error::new(CUresult::CUDA_ERROR_NOT_FOUND, why));
        }
        self.variable(name).map(|(address, _)| address)
    }

    /// Returns the names of the module's kernels.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.image.module().entries().map(|entry| entry.name.as_str())
    }

    /// Locks the table of entries looked up so far, with their handles.
    pub fn functions(&self) -> MutexGuard<'_, Vec<(String, Handle)>> {
        self.functions.lock()
    }

    /// Decodes an entry.
    pub fn program(&self, name: &str) -> Result<Program> {
        if self.image.module().entry(name).is_none() {
            let entries: Vec<&str> = self.entries().collect();
            let why = format!("the module has no kernel `{name}`; it has {}", entries.join(", "));
            return Err(Error::new(CUresult::CUDA_ERROR_NOT_FOUND, why));
        }
        self.image.program(name).map_err(|unsupported| Error::unsupported(unsupported.to_string()))
    }
}

impl ModuleFunction {
    /// Creates the function of a module's entry.
    pub fn new(
        handle: Handle,
        module: Arc<Module>,
        name: &str,
        program: Program,
        settings: &Settings,
    ) -> ModuleFunction {
        let limits = MultiprocessorLimits::of(settings.target());
        let (own, at_most) = (program.shared_bytes(), shared_at_most(settings));
        // A kernel that declares more than others may use has all of the block's memory.
        let most = if own > limits.shared_of_block { at_most } else { limits.shared_of_block };
        ModuleFunction {
            handle,
            module,
            name: name.to_string(),
            c_name: CString::new(name).unwrap_or_default(),
            shared_at_most: at_most,
            dynamic: AtomicU32::new(most.saturating_sub(own)),
            carveout: AtomicI32::new(-1),
            stepwise: Lock::new(Stepwise { block: [1; 3], shared: 0, parameters: Vec::new() }),
            program,
        }
    }

    /// Locks the launch that the program prepares in steps.
    pub fn stepwise(&self) -> MutexGuard<'_, Stepwise> {
        self.stepwise.lock()
    }

    /// Sets bytes of the parameters of the launch that the program prepares in steps.
    pub fn set_parameter(&self, offset: i32, bytes: &[u8]) -> Result {
        let most = self.program.parameter_bytes().next_multiple_of(8);
        let end = usize::try_from(offset).ok().and_then(|start| start.checked_add(bytes.len()));
        let Some(end) = end.filter(|end| *end <= most) else {
            return Err(Error::value(format!("`{}` has no {} bytes at {offset}", self.name, bytes.len())));
        };
        let parameters = &mut self.stepwise().parameters;
        parameters.resize(parameters.len().max(end), 0);
        parameters[end - bytes.len()..end].copy_from_slice(bytes);
        Ok(())
    }

    /// Returns the directives before the function's body.
    pub fn directives(&self) -> &ptx::ast::Directives {
        static NONE: ptx::ast::Directives = ptx::ast::Directives {
            max_threads: None,
            required_threads: None,
            min_blocks: None,
            max_registers: None,
            no_return: false,
            pragmas: Vec::new(),
        };
        self.module.image.module().entry(&self.name).map_or(&NONE, |entry| &entry.directives)
    }

    /// Returns the maximum number of threads per block.
    pub fn most_threads(&self) -> u32 {
        let directives = self.directives();
        let product = |threads: [u32; 3]| threads.iter().fold(1u32, |all, n| all.saturating_mul(*n));
        directives.required_threads.or(directives.max_threads).map_or(1024, |threads| product(threads).min(1024))
    }

    /// Returns an attribute of the function.
    pub fn attribute(&self, attribute: i32) -> Result<i32> {
        let is = |a: Attribute| attribute == a as i32;
        let target = self.module.image.module().target();
        let version = self.module.image.module().version();
        Ok(match attribute {
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) => self.most_threads() as i32,
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) => self.program.shared_bytes() as i32,
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) => {
                let constants = self.module.image.variables().iter().filter(|variable| variable.constant);
                constants.map(|variable| variable.bytes.len() as i32).sum()
            }
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) => self.program.frame_bytes() as i32,
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS) => {
                self.directives().max_registers.map_or(REGISTERS, |most| (most as i32).min(255))
            }
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION) => {
                i32::from(version.major) * 10 + i32::from(version.minor)
            }
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION) => i32::from(target.sm),
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA) => 0,
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) => {
                self.dynamic.load(Ordering::Relaxed) as i32
            }
            _ if is(Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) => {
                self.carveout.load(Ordering::Relaxed)
            }
            _ => return Err(Error::value(format!("unknown attribute of a function: {attribute}"))),
        })
    }

    /// Sets an attribute, if it is settable.
    pub fn set_attribute(&self, attribute: i32, value: i32) -> Result {
        if attribute == Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as i32 {
            let most = self.shared_at_most.saturating_sub(self.program.shared_bytes());
            let bytes = u32::try_from(value).ok().filter(|bytes| *bytes <= most);
            let why = || Error::value(format!("a launch can add at most {most} bytes of shared memory, not {value}"));
            self.dynamic.store(bytes.ok_or_else(why)?, Ordering::Relaxed);
        } else if attribute == Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as i32 {
            if !(-1..=100).contains(&value) {
                return Err(Error::value(format!("{value} is not a percentage")));
            }
            self.carveout.store(value, Ordering::Relaxed);
        } else {
            return Err(Error::value(format!("the attribute {attribute} of a function cannot be set")));
        }
        Ok(())
    }

    /// Checks a launch against the limits of the function and the device.
    pub fn check(&self, grid: Grid) -> Result {
        let Grid { grid: blocks, block, dynamic_shared } = grid;
        if block.contains(&0) || blocks.contains(&0) {
            return Err(Error::value(format!("a grid of {blocks:?} blocks of {block:?} threads is empty")));
        }
        let threads = block.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        if block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024 {
            return Err(Error::value(format!("a block of {block:?} threads exceeds the maximum size")));
        }
        if blocks[0] > i32::MAX as u32 || blocks[1] > 65535 || blocks[2] > 65535 {
            return Err(Error::value(format!("a grid of {blocks:?} blocks exceeds the maximum size")));
        }
        let most = self.dynamic.load(Ordering::Relaxed);
        if dynamic_shared > most {
            let why = format!("{dynamic_shared} bytes of dynamic shared memory exceed the limit of {most}");
            return Err(Error::value(why));
        }
        let directives = self.directives();
        if directives.required_threads.is_some_and(|required| required != block) || threads > self.most_threads().into()
        {
            let why = format!("`{}` does not support blocks of {block:?} threads", self.name);
            return Err(Error::value(why));
        }
        let local = self.program.frame_bytes();
        if local >= MAX_LOCAL_BYTES {
            let why = format!("a thread of `{}` needs {local} bytes of local memory, the device's limit", self.name);
            return Err(Error::value(why));
        }
        Ok(())
    }
}

/// Returns the maximum shared memory of a block in bytes, including opt-in shared memory.
pub fn shared_at_most(settings: &Settings) -> u32 {
    let limits = MultiprocessorLimits::of(settings.target());
    if settings.target().sm() < 70 { limits.shared_of_block } else { limits.shared - limits.shared_reserved }
}
