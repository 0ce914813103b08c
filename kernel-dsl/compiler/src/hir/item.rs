//! Device items beside functions: structs, enums, traits, and impls.
//!
//! Each carries a hash over its tokens and place, by which it is the same item when libraries are merged.

use super::{FunctionId, Generic, StructId, TraitId, Type, TypeId};
use crate::Scalar;
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

/// A struct of the device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Struct {
    /// Name in Rust.
    pub name: String,
    /// Tells structs of one name apart.
    pub hash: u64,
    /// Generic parameters, in order.
    pub generics: Vec<Generic>,
    /// The types that fields name.
    pub types: Vec<Type>,
    /// Fields, in order.
    pub fields: Vec<Field>,
    /// Declared `repr(C)`: its values have a place in buffers.
    pub repr_c: bool,
}

/// A field of a struct. Those of a tuple struct are called `0`, `1`, ….
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Field {
    pub name: String,
    pub ty: TypeId,
}

/// An enum without data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Enum {
    /// Name in Rust.
    pub name: String,
    /// Tells enums of one name apart.
    pub hash: u64,
    /// In order; an enum without variants has no values and stands for a type only.
    pub variants: Vec<Variant>,
}

/// A variant of an enum, with its discriminant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Variant {
    pub name: String,
    pub value: i32,
}

/// A trait. It has no generic parameters but `Self`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trait {
    /// Name in Rust.
    pub name: String,
    /// Tells traits of one name apart.
    pub hash: u64,
    /// Traits that an implementing type has, too.
    pub bounds: Vec<Bound>,
    /// What its impls provide, in order.
    pub items: Vec<TraitItem>,
}

/// Something that a trait declares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TraitItem {
    pub name: String,
    pub kind: TraitItemKind,
}

/// What a trait declares. A function or constant is one whose first generic parameter is `Self`; its body is empty where
/// it is not provided.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TraitItemKind {
    Type(Vec<Bound>),
    Constant { function: FunctionId, provided: bool },
    Function { function: FunctionId, provided: bool, receiver: bool },
}

/// An `impl` block.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Impl {
    /// Tells impls apart.
    pub hash: u64,
    /// Generic parameters, in order; also the first ones of its functions.
    pub generics: Vec<Generic>,
    /// The types that are named here.
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
    /// The function that it is, or whose value it is.
    pub fn function(self) -> FunctionId {
        match self {
            Associated::Constant(function) | Associated::Function { function, .. } => function,
        }
    }
}

/// What a type parameter has to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Bound {
    /// A trait of the prelude, or of Rust.
    Builtin(Builtin),
    /// A device trait.
    Trait(TraitId),
    /// `DeviceFn<(A, B), Output = R>`: a device function.
    #[allow(missing_docs)]
    Function { parameters: Vec<TypeId>, returns: TypeId },
}

/// Traits that the language knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Builtin {
    /// `Copy`, `Clone`, `DeviceCopy`, `Send`, `Sync`, `Sized`: every value of the language.
    Value,
    /// What a buffer can hold.
    Element,
    /// Elements that are numbers: + − ×, comparisons, a default of zero.
    Number,
    /// `f16`, `bf16`, `f32`, `f64`: also ÷, negation, and the way to and from `f32`.
    Float,
    /// The integers of fixed width: also bit operations.
    Integer,
    /// `Default`.
    Default,
}

impl Builtin {
    /// The trait of that name.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Some(match name {
            "Copy" | "Clone" | "DeviceCopy" | "Send" | "Sync" | "Sized" => Builtin::Value,
            "Element" => Builtin::Element,
            "Number" => Builtin::Number,
            "Float" => Builtin::Float,
            "Integer" => Builtin::Integer,
            "Default" => Builtin::Default,
            _ => return None,
        })
    }

    /// Name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Builtin::Value => "Copy",
            Builtin::Element => "Element",
            Builtin::Number => "Number",
            Builtin::Float => "Float",
            Builtin::Integer => "Integer",
            Builtin::Default => "Default",
        }
    }

    /// Whether a scalar type implements it.
    pub fn holds(self, scalar: Scalar) -> bool {
        let element = !matches!(scalar, Scalar::Bool | Scalar::Usize);
        let float = scalar.is_float() || scalar.is_half();
        match self {
            Builtin::Value | Builtin::Default => true,
            Builtin::Element | Builtin::Number => element,
            Builtin::Float => float,
            Builtin::Integer => element && !float,
        }
    }

    /// Whether what implements `self` implements `other`.
    pub fn implies(self, other: Builtin) -> bool {
        use Builtin::*;
        self == other
            || match self {
                Value => false,
                Default => other == Value,
                Element => other == Value,
                Number => matches!(other, Value | Element | Default),
                Float | Integer => matches!(other, Value | Element | Number | Default),
            }
    }
}

impl Items {
    /// The struct that `id` names.
    pub fn a_struct(&self, id: StructId) -> &Struct {
        &self.structs[id.0 as usize]
    }

    /// The trait that `id` names.
    pub fn a_trait(&self, id: TraitId) -> &Trait {
        &self.traits[id.0 as usize]
    }
}
