//! What stands at the outermost level: the module's header, its variables and its functions, in their order.

use super::function::Function;
use super::operand::Symbol;
use crate::ptx::words::{Property, Sampling, Space, TargetOption, Type, Version};
use crate::target::Target;
use std::fmt;

/// A module, all of whose instructions are legal for its target in its version of the language.
///
/// [`Builder`](crate::ptx::Builder) makes it, or the parser.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    pub(in crate::ptx) version: Version,
    pub(in crate::ptx) target: Architecture,
    pub(in crate::ptx) options: Vec<TargetOption>,
    pub(in crate::ptx) header: Vec<String>,
    pub(in crate::ptx) items: Vec<Item>,
    pub(in crate::ptx) variables: Vec<Variable>,
    pub(in crate::ptx) functions: Vec<Function>,
}

impl Module {
    /// An empty module.
    pub(in crate::ptx) fn new(version: Version, target: Architecture) -> Module {
        Module {
            version,
            target,
            options: Vec::new(),
            header: Vec::new(),
            items: Vec::new(),
            variables: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// Its `.version`; of a module from a [`Builder`](crate::ptx::Builder), the lowest that has all that it uses.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What it is for.
    pub fn target(&self) -> Architecture {
        self.target
    }

    /// What follows the architecture in `.target`.
    pub fn options(&self) -> &[TargetOption] {
        &self.options
    }

    /// The comment at the top, line by line.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// What it is made of, in its order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Variables at module scope: what [`Symbol::Global`] indexes.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Kernels and functions, those among them that are declared alone: what [`Symbol::Function`] indexes.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The kernels that it defines.
    pub fn entries(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|f| f.is_entry() && f.body.is_some())
    }

    /// The kernel of that name.
    pub fn entry(&self, name: &str) -> Option<&Function> {
        self.entries().find(|f| f.name == name)
    }
}

/// What `.target` names: `sm_61`, `sm_90a`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Architecture {
    /// The number in the name.
    pub sm: u16,
    /// The letter after it.
    pub variant: Variant,
}

/// Whether code for an architecture runs on later ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Variant {
    /// On all later ones.
    General,
    /// `a`: on this one alone, whose special instructions it may use.
    Specific,
    /// `f`: on those of the same family.
    Family,
}

impl From<Target> for Architecture {
    fn from(target: Target) -> Architecture {
        Architecture { sm: target.sm(), variant: Variant::General }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.variant {
            Variant::General => "",
            Variant::Specific => "a",
            Variant::Family => "f",
        };
        write!(f, "sm_{}{letter}", self.sm)
    }
}

/// A part of a module.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A line of comment, without its slashes.
    Comment(String),
    /// The variable of that index.
    Variable(u32),
    /// The function of that index, without its body.
    Declaration(u32),
    /// The function of that index with its body.
    Definition(u32),
    /// `.alias name, aliasee;` by their indices.
    Alias(u32, u32),
    /// `.pragma "…";`
    Pragma(String),
    /// A source file that `.loc` refers to.
    File(File),
    /// A section of debug information.
    Section(Section),
}

/// `.file 1 "kernel.cu"`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// What `.loc` calls it.
    pub index: u32,
    /// As the text writes it, between the quotes.
    pub name: String,
    /// Time of modification and size, where given.
    pub stamp: Option<(u64, u64)>,
}

/// `.section .debug_abbrev { … }`: kept as text, for nothing here reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// With its dot.
    pub name: String,
    /// Its lines, without comments.
    pub lines: Vec<String>,
}

/// Who else sees a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Linkage {
    /// This module alone.
    Internal,
    /// `.visible`: every module.
    Visible,
    /// `.extern`: it is another module's.
    Extern,
    /// `.weak`: every module, and another's may take its place.
    Weak,
    /// `.common`: every module, merged with others of the name.
    Common,
}

/// A variable in a state space.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// Who else sees it.
    pub linkage: Linkage,
    /// `.attribute(.managed)`
    pub managed: bool,
    /// Where it lies.
    pub space: Space,
    /// `.align`, in bytes, where given.
    pub align: Option<u32>,
    /// 2 or 4 of a `.v2` or `.v4`, else 1.
    pub vector: u8,
    /// Of an element.
    pub ty: Type,
    /// Its name.
    pub name: String,
    /// Its dimensions, if it is an array; `None` for a first one left to the initialiser or, of an extern one, to the
    /// launch.
    pub dimensions: Vec<Option<u64>>,
    /// What it holds at first; without, zeros or anything, as its space has it.
    pub initialiser: Option<Initialiser>,
}

impl Variable {
    /// An array of `bytes` bytes that the module keeps for itself.
    pub fn bytes(space: Space, align: u32, name: &str, bytes: u32) -> Variable {
        Variable {
            linkage: Linkage::Internal,
            managed: false,
            space,
            align: Some(align),
            vector: 1,
            ty: Type::B8,
            name: name.to_string(),
            dimensions: vec![Some(u64::from(bytes))],
            initialiser: None,
        }
    }

    /// Bytes of an element, a vector being one.
    pub fn element(&self) -> u64 {
        u64::from(self.vector) * u64::from(self.ty.bits().div_ceil(8))
    }

    /// Bytes of the whole; `None` if that is left to the launch, or more than there can be.
    pub fn size(&self) -> Option<u64> {
        let first = |dimension: &Option<u64>| match (dimension, &self.initialiser) {
            (Some(n), _) => Some(*n),
            (None, Some(Initialiser::List(list))) => Some(list.len() as u64),
            (None, _) => None,
        };
        self.dimensions.iter().try_fold(self.element(), |size, d| size.checked_mul(first(d)?))
    }

    /// Its alignment in bytes: the declared one, or that of its element.
    pub fn alignment(&self) -> u32 {
        self.align.unwrap_or(self.element() as u32)
    }
}

/// What a variable holds at first. Of an array, what is left out is zero.
#[derive(Clone, PartialEq, Debug)]
pub enum Initialiser {
    /// An integer, written in decimal.
    Integer(i64),
    /// An integer, written in hexadecimal.
    Bits(u64),
    /// `0f3F800000`, by its bits.
    F32(u32),
    /// `0d3FF0000000000000`, by its bits.
    F64(u64),
    /// The address of a variable or function of the module, `offset` bytes on.
    Address {
        /// What it is the address of.
        symbol: Symbol,
        /// Bytes from there.
        offset: i32,
        /// `generic(…)`: as a generic address, not in the variable's own space.
        generic: bool,
        /// `0xFF00(…)`: the byte of the address that this is, from 0 for the lowest.
        byte: Option<u8>,
    },
    /// `{…}`
    List(Vec<Initialiser>),
    /// `{ addr_mode_0 = wrap, normalized_coords = 1 }`, of a texture, a sampler or a surface.
    Properties(Vec<(Property, Setting)>),
}

/// What a property of a texture, a sampler or a surface is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// A number.
    Number(u32),
    /// A way of reading it.
    Sampling(Sampling),
}
