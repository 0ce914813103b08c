//! Device items other than functions: structs, enums, traits, and impls.
//!
//! Each item has a hash of its tokens and position, which identifies it when libraries are merged.

use super::{EnumId, FunctionId, Generic, StructId, TraitId, Type, TypeId};
use crate::Scalar;
use crate::ir::Comparison;
use serde::{Deserialize, Serialize};

/// The items of a program or library.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Items {
    pub structs: Vec<Struct>,
    pub enums: Vec<Enum>,
    pub traits: Vec<Trait>,
    pub impls: Vec<Impl>,
}

/// A device struct.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Struct {
    /// Name in Rust.
    pub name: String,
    /// Distinguishes structs of the same name.
    pub hash: u64,
    /// Generic parameters, in order.
    pub generics: Vec<Generic>,
    /// The types that fields name.
    pub types: Vec<Type>,
    /// Fields, in order.
    pub fields: Vec<Field>,
    /// Whether the struct is `repr(C)`, so that buffers can hold it.
    pub repr_c: bool,
    /// The hash of the module whose items alone may name the struct; 0 for a public one.
    pub private_to: u64,
    /// Whether the struct is `Copy`, if its generic arguments are.
    pub copy: bool,
    /// The comparisons that the struct derives.
    pub derived: DerivedComparisons,
}

/// The comparisons that a struct or enum derives. A derived comparison compares the parts in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DerivedComparisons {
    /// `derive(PartialEq)`, for `==` and `!=`.
    pub equality: bool,
    /// `derive(PartialOrd)`, for `<`, `<=`, `>` and `>=`.
    pub order: bool,
}

impl DerivedComparisons {
    /// Returns whether `comparison` is derived.
    pub fn has(self, comparison: Comparison) -> bool {
        if comparison.is_order() { self.order } else { self.equality }
    }
}

/// A field of a struct. The fields of a tuple struct are named `0`, `1`, ….
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Field {
    pub name: String,
    pub ty: TypeId,
    /// The hash of the module whose items alone may name the field; 0 for a public one.
    pub private_to: u64,
}

/// An enum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Enum {
    /// Name in Rust.
    pub name: String,
    /// Distinguishes enums of the same name.
    pub hash: u64,
    /// The variants, in order; an enum without variants has no values and serves only as a type.
    pub variants: Vec<Variant>,
    /// The hash of the module whose items alone may name the enum; 0 for a public one.
    pub private_to: u64,
    /// Whether the enum is `Copy`, if its generic arguments are.
    pub copy: bool,
    /// The comparisons that the enum derives.
    pub derived: DerivedComparisons,
    /// The struct that holds a value, if a variant holds data. The struct has the generic
    /// parameters of the enum. The struct contains the discriminant, and `Variant.field` for each
    /// field of each variant. An enum without data is a discriminant.
    pub data: Option<StructId>,
}

/// A variant of an enum, with its discriminant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Variant {
    pub name: String,
    pub value: i32,
}

/// A trait, with `Self` as its only generic parameter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trait {
    /// Name in Rust.
    pub name: String,
    /// Distinguishes traits of the same name.
    pub hash: u64,
    /// The supertraits.
    pub bounds: Vec<TraitBound>,
    /// The items that impls provide, in order.
    pub items: Vec<TraitItem>,
}

/// An item of a trait.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TraitItem {
    pub name: String,
    pub kind: TraitItemKind,
}

/// The kind of a trait item. A function or constant has `Self` as its first generic parameter. The
/// body is empty if the trait provides none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TraitItemKind {
    Type(Vec<TraitBound>),
    Constant { function: FunctionId, provided: bool },
    Function { function: FunctionId, provided: bool, receiver: bool },
}

/// An `impl` block.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Impl {
    /// Distinguishes impls.
    pub hash: u64,
    /// The generic parameters, in order; they are also the first ones of the impl's functions.
    pub generics: Vec<Generic>,
    /// The types that the impl names.
    pub types: Vec<Type>,
    /// The trait; `None` for an inherent impl.
    pub of_trait: Option<TraitId>,
    /// The type.
    pub for_type: TypeId,
    /// Associated types, by name.
    pub associated: Vec<(String, TypeId)>,
    /// Functions and constants, by name.
    pub functions: Vec<(String, Associated)>,
}

/// A function or constant of an impl.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Associated {
    Constant(FunctionId),
    Function { function: FunctionId, receiver: bool },
}

impl Associated {
    /// Returns the function, or the function that returns the constant.
    pub fn function(self) -> FunctionId {
        match self {
            Associated::Constant(function) | Associated::Function { function, .. } => function,
        }
    }
}

/// A bound of a type parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TraitBound {
    /// A trait of the prelude, or of Rust.
    Builtin(Builtin),
    /// A device trait.
    Trait(TraitId),
    /// `DeviceFn<(A, B), Output = R>`: a device function.
    #[allow(missing_docs)]
    Function { parameters: Vec<TypeId>, returns: TypeId },
}

/// Built-in traits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Builtin {
    /// `Clone`, `Send`, `Sync`, `Sized`: nearly every type implements them.
    Value,
    /// `Copy`, `DeviceCopy`.
    Copy,
    /// Types that a buffer can hold.
    Element,
    /// Elements that are numbers of at most 64 bits: +, −, ×, comparisons, and zero as default.
    Number,
    /// `f16`, `bf16`, `f32`, `f64`: also ÷, negation, and conversions to and from `f32`.
    Float,
    /// Fixed-width integers: also bit operations.
    Integer,
    /// `Default`.
    Default,
}

impl Builtin {
    /// Returns the trait with this name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Some(match name {
            "Clone" | "Send" | "Sync" | "Sized" => Builtin::Value,
            "Copy" | "DeviceCopy" => Builtin::Copy,
            "Element" => Builtin::Element,
            "Number" => Builtin::Number,
            "Float" => Builtin::Float,
            "Integer" => Builtin::Integer,
            "Default" => Builtin::Default,
            _ => return None,
        })
    }

    /// Returns the name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Builtin::Value => "Clone",
            Builtin::Copy => "Copy",
            Builtin::Element => "Element",
            Builtin::Number => "Number",
            Builtin::Float => "Float",
            Builtin::Integer => "Integer",
            Builtin::Default => "Default",
        }
    }

    /// Returns whether a scalar type implements the trait.
    pub fn holds(self, scalar: Scalar) -> bool {
        let element = !matches!(scalar, Scalar::Bool | Scalar::Usize);
        let number = element && scalar != Scalar::U128;
        let float = scalar.is_float() || scalar.is_half();
        match self {
            Builtin::Value | Builtin::Copy | Builtin::Default => true,
            Builtin::Element => element,
            Builtin::Number => number,
            Builtin::Float => float,
            Builtin::Integer => number && !float,
        }
    }

    /// Returns whether every type that implements `self` implements `other`.
    pub fn implies(self, other: Builtin) -> bool {
        use Builtin::*;
        self == other
            || match self {
                Value => false,
                Copy | Default => other == Value,
                Element => matches!(other, Value | Copy),
                Number => matches!(other, Value | Copy | Element | Default),
                Float | Integer => matches!(other, Value | Copy | Element | Number | Default),
            }
    }
}

impl Items {
    /// Returns the struct with index `id`.
    pub fn struct_of(&self, id: StructId) -> &Struct {
        &self.structs[id.0 as usize]
    }

    /// Returns the generic parameters of an enum. Only an enum with data has any.
    pub fn enum_generics(&self, id: EnumId) -> &[Generic] {
        self.enums[id.0 as usize].data.map_or(&[], |data| &self.struct_of(data).generics)
    }

    /// Returns the trait with index `id`.
    pub fn trait_of(&self, id: TraitId) -> &Trait {
        &self.traits[id.0 as usize]
    }
}

/// Returns the name of the function that implements an operator, as the impl lists it in the HIR.
/// No method of a type has such a name.
pub fn operator_function(of_trait: &str) -> String {
    format!("impl {of_trait}")
}
