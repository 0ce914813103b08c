//! Modifiers of an instruction. The decoder takes each one that it handles; those that remain are
//! rejected.

use crate::arithmetic::float::Rounding;
use crate::arithmetic::integer::IntegerFormat;
use kernel_dsl_compiler::ptx::words::TypeClass;
use kernel_dsl_compiler::ptx::{Modifier, Type};

/// The remaining modifiers.
pub struct Words(Vec<Modifier>);

impl Words {
    /// Starts with all modifiers.
    pub fn new(modifiers: &[Modifier]) -> Words {
        Words(modifiers.to_vec())
    }

    /// Takes a modifier, and returns whether it was present.
    pub fn take(&mut self, modifier: Modifier) -> bool {
        self.take_one(&[modifier]).is_some()
    }

    /// Takes the first of these modifiers.
    pub fn take_one(&mut self, of: &[Modifier]) -> Option<Modifier> {
        let at = self.0.iter().position(|m| of.contains(m))?;
        Some(self.0.remove(at))
    }

    /// Takes the first modifier for which `f` returns a value.
    pub fn take_as<T>(&mut self, f: impl Fn(Modifier) -> Option<T>) -> Option<T> {
        let (at, found) = self.0.iter().enumerate().find_map(|(i, m)| Some((i, f(*m)?)))?;
        self.0.remove(at);
        Some(found)
    }

    /// Takes the next type.
    pub fn ty(&mut self) -> Result<Type, String> {
        self.take_as(Modifier::ty).ok_or_else(|| "it has no type".to_string())
    }

    /// Takes `.rn`, `.rz`, `.rm` or `.rp`.
    pub fn rounding(&mut self) -> Option<Rounding> {
        self.take_as(|m| match m {
            Modifier::Rn => Some(Rounding::Nearest),
            Modifier::Rz => Some(Rounding::Zero),
            Modifier::Rm => Some(Rounding::Down),
            Modifier::Rp => Some(Rounding::Up),
            _ => None,
        })
    }

    /// Takes `.rni`, `.rzi`, `.rmi` or `.rpi`.
    pub fn integral(&mut self) -> Option<Rounding> {
        self.take_as(|m| match m {
            Modifier::Rni => Some(Rounding::Nearest),
            Modifier::Rzi => Some(Rounding::Zero),
            Modifier::Rmi => Some(Rounding::Down),
            Modifier::Rpi => Some(Rounding::Up),
            _ => None,
        })
    }

    /// Takes modifiers without an effect here: cache hints and scopes.
    pub fn pass(&mut self, of: &[Modifier]) {
        self.0.retain(|m| !of.contains(m));
    }

    /// Returns a modifier that was not taken.
    pub fn left(&self) -> Option<Modifier> {
        self.0.first().copied()
    }
}

/// Returns the integers of a type; untyped bits count as unsigned.
pub fn integer(ty: Type) -> Option<IntegerFormat> {
    let signed = matches!(ty, Type::S8 | Type::S16 | Type::S32 | Type::S64);
    let whole = matches!(ty.class(), TypeClass::Integer | TypeClass::Bits) && ty.bits() <= 64;
    whole.then_some(IntegerFormat { bits: ty.bits(), signed })
}
