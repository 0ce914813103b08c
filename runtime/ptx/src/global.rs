//! Variables of a module in global and constant memory, with their initial contents.

use super::memory::function_address;
use kernel_dsl_compiler::ptx::{Initializer, Space, Symbol, Variable};
use std::collections::HashMap;

/// A variable, with its contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Global {
    /// The name.
    pub name: String,
    /// Whether the variable is in constant memory.
    pub constant: bool,
    /// The initial contents.
    pub bytes: Vec<u8>,
    /// The addresses in the contents, until all variables have addresses.
    relocations: Vec<Relocation>,
}

/// An address in the contents of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Relocation {
    /// The offset in the variable.
    at: usize,
    bytes: usize,
    /// The referenced variable or function of the module, and the offset from it.
    symbol: Symbol,
    offset: i32,
    /// The selected byte of the address, if only one byte is stored.
    byte: Option<u8>,
}

impl Global {
    /// Creates a variable from its declaration.
    pub fn of(variable: &Variable) -> Result<Global, String> {
        let size = variable.size().and_then(|n| usize::try_from(n).ok()).filter(|n| *n < 1 << 30);
        let Some(size) = size else {
            return Err("its size is left to another module, or is too large".to_string());
        };
        let mut global = Global {
            name: variable.name.clone(),
            constant: variable.space == Space::Const,
            bytes: vec![0; size],
            relocations: Vec::new(),
        };
        if let Some(initializer) = &variable.initializer {
            let element = (variable.ty.bits() / 8) as usize;
            // The bytes of an element in each dimension, outermost first.
            let mut strides = vec![element];
            if variable.vector > 1 {
                strides.insert(0, element * usize::from(variable.vector));
            }
            for dimension in variable.dimensions.iter().skip(1).rev() {
                let n = dimension.unwrap_or(1) as usize;
                strides.insert(0, strides[0] * n);
            }
            global.put(initializer, 0, &strides, element)?;
        }
        Ok(global)
    }

    fn put(&mut self, initializer: &Initializer, at: usize, strides: &[usize], element: usize) -> Result<(), String> {
        let bits = match initializer {
            Initializer::List(list) => {
                let stride = strides.first().copied().unwrap_or(element);
                for (i, one) in list.iter().enumerate() {
                    self.put(one, at + i * stride, strides.get(1..).unwrap_or_default(), element)?;
                }
                return Ok(());
            }
            Initializer::Address { symbol, offset, byte, .. } => {
                let bytes = if byte.is_some() { 1 } else { element };
                self.relocations.push(Relocation { at, bytes, symbol: *symbol, offset: *offset, byte: *byte });
                return Ok(());
            }
            // A texture has no contents here: the launch defines its properties.
            Initializer::Properties(_) => return Ok(()),
            Initializer::Integer(n) => *n as u64,
            Initializer::Bits(n) => *n,
            Initializer::F32(n) if element == 8 => f64::from(f32::from_bits(*n)).to_bits(),
            Initializer::F32(n) => u64::from(*n),
            Initializer::F64(n) if element == 4 => u64::from((f64::from_bits(*n) as f32).to_bits()),
            Initializer::F64(n) => *n,
        };
        match self.bytes.get_mut(at..at + element) {
            Some(to) => to.copy_from_slice(&bits.to_le_bytes()[..element]),
            None => return Err("its initializer has too many elements".to_string()),
        }
        Ok(())
    }

    /// Writes the addresses into the variable's contents, once every variable has an address.
    /// `places` returns the address of the variable with an index in the module.
    pub(super) fn link(&mut self, places: impl Fn(usize) -> Option<u64>) {
        for relocation in std::mem::take(&mut self.relocations) {
            let start = match relocation.symbol {
                Symbol::Function(index) => function_address(index as usize),
                Symbol::Global(variable) => match places(variable as usize) {
                    Some(address) => address,
                    None => continue,
                },
                Symbol::Parameter(_) | Symbol::Return(_) | Symbol::Variable(_) => continue,
            };
            let address = start.wrapping_add(relocation.offset as u64);
            let value = address >> (8 * u32::from(relocation.byte.unwrap_or(0)));
            if let Some(to) = self.bytes.get_mut(relocation.at..relocation.at + relocation.bytes) {
                to.copy_from_slice(&value.to_le_bytes()[..relocation.bytes]);
            }
        }
    }
}

/// The owner of a variable, by indices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum VariableOwner {
    /// The module.
    Module(usize),
    /// A function of the module.
    Function(usize, usize),
}

/// The addresses of variables.
pub(super) type Places = HashMap<VariableOwner, u64>;
