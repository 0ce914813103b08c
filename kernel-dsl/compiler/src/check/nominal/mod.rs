//! Structs, enums, traits and constants: resolution of paths and methods.

mod argument;
mod call;
mod implementation;
mod path;
mod structure;

pub(super) use call::ids;

use super::types::TypeIndex;
use super::variant::EnumVariant;
use crate::hir::{FunctionId, TraitId};

/// The item that a name of a type resolves to.
#[derive(Clone, Debug)]
pub(super) enum ResolvedItem {
    /// A function or constant of an impl, with all generic arguments.
    Function { function: FunctionId, generics: Vec<TypeIndex>, receiver: bool },
    /// A function or constant of a trait, as the trait declares it; the first of `generics` is
    /// `Self`.
    Method { of_trait: TraitId, item: u32, function: FunctionId, generics: Vec<TypeIndex>, receiver: bool },
    /// A variant of an enum.
    Variant(EnumVariant),
    /// `T::from_f32` or `T::to_f32`: a conversion between the two types.
    Convert { from: TypeIndex, to: TypeIndex },
    /// `T::default`, `N::default`: zero.
    Default,
    /// No item: the error is reported.
    Missing,
}
