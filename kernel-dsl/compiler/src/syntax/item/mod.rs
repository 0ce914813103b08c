//! Device items other than functions: constants, structs, enums, type aliases, traits and impls,
//! alone or in a module.

mod bound;
mod constant;
mod data;
mod implementation;
mod module;

use super::{Function, Generic, Path, RustSyntax, Type};
use crate::hir::DerivedComparisons;
use proc_macro2::Ident;

pub use constant::is_placement;
pub(crate) use data::derives;
pub use module::module;

/// The items of a `#[device] mod`, or a single item.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The items in source order.
    pub items: Vec<Item>,
    /// A hash of the tokens and the source position.
    pub hash: u64,
    /// Whether the items are those of a `mod`, which alone may name its private items.
    pub named: bool,
}

/// A device item.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Item {
    Function(Function),
    /// A constant, as a function without parameters that returns its value.
    Constant(Function),
    Struct(Struct),
    /// A type alias, as a struct whose only field has the type.
    Alias(Struct),
    Enum(Enum),
    Trait(Trait),
    Impl(Impl),
}

impl Item {
    /// Returns the fields of a struct, a type alias, or an enum with data; `None` for other items.
    pub fn fields(&self) -> Option<&Struct> {
        match self {
            Item::Struct(s) | Item::Alias(s) => Some(s),
            Item::Enum(e) => e.data.as_ref(),
            _ => None,
        }
    }
}

/// A struct.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Struct {
    pub name: Ident,
    pub generics: Vec<Generic>,
    /// The fields, with their types; those of a tuple struct are named `0`, `1`, ….
    pub fields: Vec<(String, Type)>,
    /// Has `#[repr(C)]`.
    pub repr_c: bool,
    /// The bytes of `align(…)`, or 1.
    pub align: u32,
    /// Derives `Copy`, or has an `impl Copy` in its module.
    pub copy: bool,
    /// Has no `pub`.
    pub private: bool,
    /// The fields without `pub`.
    pub private_fields: Vec<String>,
    pub derived: DerivedComparisons,
    pub hash: u64,
}

/// An enum.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Enum {
    pub name: Ident,
    pub variants: Vec<(String, i32)>,
    /// Derives `Copy`, or has an `impl Copy` in its module.
    pub copy: bool,
    /// Has no `pub`.
    pub private: bool,
    pub derived: DerivedComparisons,
    /// The parts of a value, if a variant holds data: the discriminant `tag`, and a field
    /// `Variant.field` for each field of each variant.
    pub data: Option<Struct>,
    pub hash: u64,
}

/// A trait.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Trait {
    pub name: Ident,
    pub bounds: Vec<TraitBound>,
    pub items: Vec<TraitItem>,
    pub hash: u64,
}

/// An item of a trait.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum TraitItem {
    Type { name: Ident, bounds: Vec<TraitBound> },
    Constant { function: Function, provided: bool },
    Function { function: Function, provided: bool },
}

/// An `impl` block.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Impl {
    pub generics: Vec<Generic>,
    /// The device trait that the type implements; `None` for an inherent impl and for an operator.
    pub of_trait: Option<Path>,
    /// The name of Rust's trait, for the impl of an operator.
    pub operator: Option<&'static str>,
    pub for_type: Type,
    pub types: Vec<(Ident, Type)>,
    pub constants: Vec<Function>,
    pub functions: Vec<Function>,
    pub hash: u64,
    /// The Rust source of the impl, without its items.
    pub written: RustSyntax<syn::ItemImpl>,
}

/// A bound of a type parameter: a trait.
#[derive(Clone, Debug)]
pub struct TraitBound {
    /// The path.
    pub path: Path,
    /// The parameters and result of `DeviceFn<(A, B), Output = R>`.
    pub signature: Option<(Vec<Type>, Type)>,
}
