//! The memory of a launch: the buffers of its arguments and a block's shared memory.
//!
//! Each buffer has an address in the interpreter's address space. Argument n is at (n + 1) · 2⁴⁰
//! plus the low bits of its host address, which decide alignment. An address that a kernel computes
//! from this address remains far from other buffers.

use crate::code::SHARED_WORDS;
use crate::machine::outputs::OutputContract;
use crate::machine::shadow::{PageBudget, Shadow};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{MemoryElement, Table};
use runtime_simt::ArgumentBytes;

/// A block's shared memory, in words.
pub type SharedMemory = Box<[u32; SHARED_WORDS]>;

/// log₂ of the distance between buffers.
const BUFFER_DISTANCE_BITS: u32 = 40;

/// The bits of the host's address that a buffer's address keeps.
const ALIGNMENT: u64 = 0xff;

/// The memory of one argument.
#[derive(Debug)]
pub struct Buffer<'m> {
    /// Name in the kernel.
    pub name: String,
    /// Index of the argument.
    pub argument: u32,
    /// The element type.
    pub element: MemoryElement,
    /// Address in the kernel.
    pub base: u64,
    /// Whether the kernel may write.
    pub mutable: bool,
    /// Contents.
    pub bytes: ArgumentBytes<'m>,
    /// The shadow memory; unused for read-only buffers.
    pub shadow: Shadow,
    /// The declared output of the launch to the buffer, and its uninitialized bytes.
    pub contract: OutputContract,
}

impl<'m> Buffer<'m> {
    /// Returns the memory of argument `argument`, with a shadow cell for each `granule` bytes.
    pub fn new(
        name: String,
        argument: u32,
        element: MemoryElement,
        mutable: bool,
        bytes: ArgumentBytes<'m>,
        granule: u32,
        budget: PageBudget,
    ) -> Buffer<'m> {
        let host = bytes.get().as_ptr() as u64;
        let base = u64::from(argument + 1) << BUFFER_DISTANCE_BITS | host & ALIGNMENT;
        let shadow = Shadow::new(if mutable { bytes.get().len() } else { 0 }, granule, budget);
        Buffer { name, argument, element, base, mutable, bytes, shadow, contract: OutputContract::default() }
    }

    /// Returns a copy of the bytes, if a launch may write them.
    pub fn copied(&self) -> Option<Vec<u8>> {
        let may = self.mutable && matches!(self.bytes, ArgumentBytes::Exclusive(_));
        may.then(|| self.bytes.get().to_vec())
    }

    /// Returns the same buffer at the same address with untouched shadow memory, backed by `copy`
    /// if there is one.
    pub fn over<'c>(&'c self, copy: &'c mut Option<Vec<u8>>) -> Buffer<'c> {
        let Buffer { argument, element, base, mutable, .. } = *self;
        let bytes = match copy {
            Some(copy) => ArgumentBytes::Exclusive(copy),
            None => ArgumentBytes::Shared(self.bytes.get()),
        };
        let (name, contract, shadow) = (self.name.clone(), self.contract.clone(), self.shadow.empty_like());
        Buffer { name, argument, element, base, mutable, bytes, shadow, contract }
    }

    /// Returns the bytes if a launch may have written them.
    pub fn written(&mut self) -> Option<&mut [u8]> {
        match &mut self.bytes {
            ArgumentBytes::Exclusive(bytes) if self.mutable => Some(bytes),
            _ => None,
        }
    }

    /// Returns a table as the buffer of argument `argument`.
    pub fn table(table: &Table, argument: u32, bytes: &'m [u8]) -> Buffer<'m> {
        Buffer {
            name: table.name.clone(),
            argument,
            element: MemoryElement::aggregate(table.bytes.max(1)),
            base: u64::from(argument + 1) << BUFFER_DISTANCE_BITS,
            mutable: false,
            bytes: ArgumentBytes::Shared(bytes),
            shadow: Shadow::new(0, 1, PageBudget::new(0)),
            contract: OutputContract::default(),
        }
    }
}

/// Returns shared memory with all bytes set to `fill`.
pub fn shared_memory(fill: u8) -> SharedMemory {
    // Built in a vector: the array is too large for the stack.
    vec![u32::from_ne_bytes([fill; 4]); SHARED_WORDS]
        .try_into()
        .unwrap_or_else(|_| unreachable!("the vector has {SHARED_WORDS} elements"))
}

/// Returns the argument whose address range contains `address`.
pub fn argument_at(address: u64) -> Option<u32> {
    ((address >> BUFFER_DISTANCE_BITS) as u32).checked_sub(1)
}

/// Returns the scalar at a byte offset in memory.
pub fn word(memory: &[u8], byte: u64, ty: Scalar) -> u64 {
    let mut word = [0; 8];
    let size = ty.bytes() as usize;
    if let Some(bytes) = memory.get(byte as usize..).and_then(|m| m.get(..size)) {
        word[..size].copy_from_slice(bytes);
    }
    u64::from_le_bytes(word)
}
