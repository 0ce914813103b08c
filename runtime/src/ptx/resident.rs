//! Memory that outlives launches: modules and buffers as a device holds them.
//!
//! An [`Image`] is a module whose variables in global and constant memory have found their places: its owner keeps what
//! they hold, so that a launch leaves there what the next one finds. [`Program::run_on`] runs on such memory, all of it:
//! an address leads to whichever buffer is there, whether the kernel was given it, loaded it or computed it.

use super::decode::decode;
use super::global::Global;
use super::memory::{Buffer, Lookup};
use super::{Grid, Mismatch, Options, Outcome, Program, Unsupported};
use crate::interpreter::Bytes;
use kernel_dsl::compiler::ptx::{Module, Space};
use std::collections::HashMap;

/// Addresses from here on are of no buffer.
pub const END: u64 = super::memory::window_base(super::code::Window::Local);

/// Who has a variable, by indices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Owner {
    /// The module.
    Module(usize),
    /// A function of the module.
    Function(usize, usize),
}

/// Where variables lie.
pub(super) type Places = HashMap<Owner, u64>;

/// A module whose variables have their places.
#[derive(Debug)]
pub struct Image {
    module: Module,
    places: Places,
    variables: Vec<Variable>,
}

/// A variable in global or constant memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name; two functions may have variables of one name.
    pub name: String,
    /// Whether it is a function's own, which the module does not know by its name.
    pub is_of_function: bool,
    /// Whether it lies in constant memory.
    pub constant: bool,
    /// Where it lies.
    pub address: u64,
    /// What it holds at first.
    pub bytes: Vec<u8>,
}

/// A part of a device's memory, for the length of a launch.
#[derive(Debug)]
pub struct Resident<'m> {
    /// Where it begins.
    pub address: u64,
    /// Whether it is in constant memory.
    pub constant: bool,
    /// What it holds.
    pub bytes: Bytes<'m>,
}

impl Image {
    /// Gives each variable the place that `place` finds for so many bytes, aligned. A variable that is left to another
    /// module gets none; what refers to it is refused by [`Image::program`].
    pub fn new<E>(module: Module, mut place: impl FnMut(u64, u64) -> Result<u64, E>) -> Result<Image, E> {
        let of_module = module.variables().iter().enumerate().map(|(i, v)| (Owner::Module(i), v));
        let functions = module.functions().iter().enumerate();
        let of_functions =
            functions.flat_map(|(f, function)| function.variables.iter().enumerate().map(move |v| (f, v)));
        let all = of_module.chain(of_functions.map(|(f, (i, v))| (Owner::Function(f, i), v)));
        let (mut places, mut found) = (Places::new(), Vec::new());
        for (owner, variable) in all.filter(|(_, v)| matches!(v.space, Space::Global | Space::Const)) {
            let Ok(global) = Global::of(variable) else { continue };
            let address = place(global.bytes.len() as u64, u64::from(variable.alignment().max(1)))?;
            places.insert(owner, address);
            found.push((owner, address, global));
        }
        let link = |(owner, address, mut global): (Owner, u64, Global)| {
            global.link(|variable| places.get(&Owner::Module(variable)).copied());
            let Global { name, constant, bytes, .. } = global;
            Variable { name, is_of_function: matches!(owner, Owner::Function(..)), constant, address, bytes }
        };
        let variables = found.into_iter().map(link).collect();
        Ok(Image { module, places, variables })
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Its variables, which [`Program::run_on`] must find in memory.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Makes code of the entry of that name.
    pub fn program(&self, entry: &str) -> Result<Program, Unsupported> {
        decode(&self.module, entry, Some(&self.places))
    }
}

/// Where a parameter lies among the bytes of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Slot {
    pub offset: usize,
    pub bytes: usize,
}

impl Program {
    /// Where each parameter lies.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = Slot> {
        let variables = self.code.parameters.variables.iter();
        variables.map(|v| Slot { offset: v.offset as usize, bytes: v.bytes as usize })
    }

    /// Bytes of all parameters.
    pub fn parameter_bytes(&self) -> usize {
        self.code.parameters.bytes as usize
    }

    /// Bytes of shared memory of a block, without what launches add.
    pub fn shared_bytes(&self) -> u32 {
        self.code.shared.bytes
    }

    /// Bytes of local memory of a thread.
    pub fn local_bytes(&self) -> u32 {
        self.code.local.bytes
    }

    /// Runs a launch of an entry of an [`Image`] on `memory`, which lies by ascending addresses below [`END`], and apart.
    /// `parameters` are the bytes of all parameters, each at its [`Slot`].
    pub fn run_on(
        &self,
        memory: Vec<Resident<'_>>,
        grid: Grid,
        parameters: Vec<u8>,
        options: Options,
    ) -> Result<Outcome, Mismatch> {
        let mut wrong = self.misfits(grid.block);
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
        let buffer = |Resident { address, constant, bytes }| Buffer {
            name: String::new(),
            base: address,
            mutable: !constant && matches!(bytes, Bytes::Exclusive(_)),
            constant,
            bytes,
            approximate: false,
            touched: None,
        };
        let buffers = memory.into_iter().map(buffer).collect();
        self.execute(grid, buffers, Lookup::Search, parameters, options)
    }
}

impl Resident<'_> {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes.get().len() as u64)
    }
}
