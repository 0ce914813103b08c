//! Memory that outlives launches: the modules and buffers of a device.
//!
//! An [`ResidentModule`] is a module whose variables in global and constant memory have addresses.
//! The owner of the image keeps the contents, so that a launch sees the stores of earlier launches.
//! [`Program::run_on`] runs on all of the device's memory. An address finds the buffer at that
//! address, whether the kernel received, loaded or computed the address.

use super::Check;
use super::decode::decode;
use super::global::{Global, Places, VariableOwner};
use super::initialized::InitializedBytes;
use super::launch::{Grid, Mismatch, Options, Outcome};
use super::memory::{Buffer, Lookup};
use super::program::Program;
use super::refused::Unsupported;
use super::service::Heap;
use super::texture::Objects;
use kernel_dsl_compiler::ptx::{Module, Space};
use runtime_simt::ArgumentBytes;
use std::sync::Arc;

/// The end of the address space of buffers.
pub const END: u64 = super::memory::window_base(super::code::Window::Local);

/// A module whose variables have addresses.
#[derive(Debug)]
pub struct ResidentModule {
    module: Module,
    places: Places,
    variables: Vec<ResidentVariable>,
}

/// A variable in global or constant memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResidentVariable {
    /// The name. Two functions may have variables of the same name.
    pub name: String,
    /// Whether the variable belongs to a function. Such a variable cannot be found in the module by
    /// name.
    pub is_of_function: bool,
    /// Whether the variable is in constant memory.
    pub constant: bool,
    /// The address.
    pub address: u64,
    /// The initial contents.
    pub bytes: Vec<u8>,
}

/// A part of a device's memory, borrowed for a launch.
#[derive(Debug)]
pub struct Resident<'m> {
    /// The name of a variable; empty for other memory, which reports name by its address.
    pub name: String,
    /// The address of the first byte.
    pub address: u64,
    /// Whether the part is in constant memory.
    pub constant: bool,
    /// The contents.
    pub bytes: ArgumentBytes<'m>,
    /// The bytes that were written, which the launch extends; `None` if all were. A launch without
    /// the check `uninitialized-buffer` ignores the set.
    pub initialized: Option<&'m mut InitializedBytes>,
    /// Whether the host may access the contents during a launch. A kernel that waits for a change
    /// of other memory waits forever.
    pub of_host: bool,
}

/// A device's memory, borrowed for a launch.
#[derive(Debug)]
pub struct DeviceMemory<'m> {
    /// The parts.
    pub parts: Vec<Resident<'m>>,
    /// The heap, in one of the parts. Without it, `malloc` returns null in kernels.
    pub heap: Option<&'m mut Heap>,
    /// The textures and surfaces, whose texels are in the parts.
    pub objects: Arc<Objects>,
}

impl<'m> From<Vec<Resident<'m>>> for DeviceMemory<'m> {
    fn from(parts: Vec<Resident<'m>>) -> DeviceMemory<'m> {
        DeviceMemory { parts, heap: None, objects: Arc::default() }
    }
}

impl ResidentModule {
    /// Assigns an address to each variable: the result of `place` for a size and an alignment. A
    /// variable that another module defines gets no address. [`ResidentModule::program`] rejects
    /// entries that refer to such a variable.
    ///
    /// # Errors
    /// Returns the first error of `place`.
    pub fn new<E>(module: Module, mut place: impl FnMut(u64, u64) -> Result<u64, E>) -> Result<ResidentModule, E> {
        let of_module = module.variables().iter().enumerate().map(|(i, v)| (VariableOwner::Module(i), v));
        let functions = module.functions().iter().enumerate();
        let of_functions =
            functions.flat_map(|(f, function)| function.variables.iter().enumerate().map(move |v| (f, v)));
        let all = of_module.chain(of_functions.map(|(f, (i, v))| (VariableOwner::Function(f, i), v)));
        let (mut places, mut found) = (Places::new(), Vec::new());
        for (owner, variable) in all.filter(|(_, v)| matches!(v.space, Space::Global | Space::Const)) {
            let Ok(global) = Global::of(variable) else { continue };
            let address = place(global.bytes.len() as u64, u64::from(variable.alignment().max(1)))?;
            places.insert(owner, address);
            found.push((owner, address, global));
        }
        let link = |(owner, address, mut global): (VariableOwner, u64, Global)| {
            global.link(|variable| places.get(&VariableOwner::Module(variable)).copied());
            let Global { name, constant, bytes, .. } = global;
            ResidentVariable {
                name,
                is_of_function: matches!(owner, VariableOwner::Function(..)),
                constant,
                address,
                bytes,
            }
        };
        let variables = found.into_iter().map(link).collect();
        Ok(ResidentModule { module, places, variables })
    }

    /// Returns the module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the variables. [`Program::run_on`] expects them in memory.
    pub fn variables(&self) -> &[ResidentVariable] {
        &self.variables
    }

    /// Decodes the entry with the given name.
    ///
    /// # Errors
    /// Returns the errors of [`Program::decode`], and one if the entry refers to a variable without
    /// an address.
    pub fn program(&self, entry: &str) -> Result<Program, Unsupported> {
        decode(&self.module, entry, Some(&self.places))
    }
}

/// The position of a parameter among the bytes of all parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct ParameterRange {
    pub offset: usize,
    pub bytes: usize,
}

impl Program {
    /// Returns the slot of each parameter.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = ParameterRange> {
        let variables = self.code.parameters.variables.iter();
        variables.map(|v| ParameterRange { offset: v.offset as usize, bytes: v.bytes as usize })
    }

    /// Returns the size of all parameters in bytes.
    pub fn parameter_bytes(&self) -> usize {
        self.code.parameters.bytes as usize
    }

    /// Returns the bytes of shared memory that a block declares; the launch may add more.
    pub fn shared_bytes(&self) -> u32 {
        self.declared_shared
    }

    /// Returns the bytes of local memory of a thread, without its stack.
    pub fn frame_bytes(&self) -> u32 {
        self.code.stack.map_or(self.code.local.bytes, |stack| stack.start)
    }

    /// Returns whether the kernel allocates or frees memory of the device's heap.
    pub fn uses_heap(&self) -> bool {
        self.code.allocates
    }

    /// Runs a launch of an entry of an [`ResidentModule`] on `memory`. The parts of `memory` must
    /// be sorted by address, must not overlap, and must lie below [`END`]. `parameters` holds the
    /// bytes of all parameters, each at its [`ParameterRange`].
    ///
    /// # Errors
    /// If the block is invalid, `parameters` has another length, or `memory` is not as required.
    /// The outcome reports violations of checks.
    pub fn run_on<'m>(
        &self,
        memory: impl Into<DeviceMemory<'m>>,
        grid: Grid,
        parameters: Vec<u8>,
        options: Options,
    ) -> Result<Outcome, Mismatch> {
        let DeviceMemory { parts: memory, heap, objects } = memory.into();
        let mut wrong = self.invalid_block_reasons(grid.block);
        if parameters.len() != self.parameter_bytes() {
            let (takes, given) = (self.parameter_bytes(), parameters.len());
            wrong.push(format!("`{}` takes {takes} bytes of parameters, and {given} are given", self.name));
        }
        let apart = memory.iter().zip(memory.iter().skip(1)).all(|(a, b)| a.end() <= b.address);
        if !apart || memory.last().is_some_and(|last| last.end() > END) {
            wrong.push("the memory overlaps, or is not in order".to_string());
        }
        if !wrong.is_empty() {
            return Err(Mismatch(wrong));
        }
        let tracks = options.checks.enables(Check::UninitializedBuffer);
        let buffer = |Resident { name, address, constant, bytes, initialized, of_host }| Buffer {
            name,
            base: address,
            mutable: !constant && matches!(bytes, ArgumentBytes::Exclusive(_)),
            constant,
            bytes,
            approximate: false,
            touched: None,
            initialized: initialized.filter(|set| tracks && !set.is_complete()),
            of_host,
        };
        let buffers = memory.into_iter().map(buffer).collect();
        self.execute(grid, (buffers, Lookup::Search), (heap, objects), parameters, options)
    }
}

impl Resident<'_> {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes.get().len() as u64)
    }
}
