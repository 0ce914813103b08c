//! The outermost level: the header, variables and functions of a module, in order.

use super::function::Function;
use super::operand::Symbol;
use crate::ptx::words::{Property, Sampling, Space, TargetOption, Type, Version};
use crate::target::Target;
use std::fmt;

/// A module. All its instructions are legal for its target and PTX version.
///
/// Only [`ModuleBuilder`](crate::ptx::ModuleBuilder) and the parser create modules.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    pub(in crate::ptx) version: Version,
    pub(in crate::ptx) target: TargetArchitecture,
    pub(in crate::ptx) options: Vec<TargetOption>,
    pub(in crate::ptx) header: Vec<String>,
    pub(in crate::ptx) items: Vec<Item>,
    pub(in crate::ptx) variables: Vec<Variable>,
    pub(in crate::ptx) functions: Vec<Function>,
}

impl Module {
    /// Returns an empty module.
    pub(in crate::ptx) fn new(version: Version, target: TargetArchitecture) -> Module {
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

    /// Returns the `.version`. A [`ModuleBuilder`](crate::ptx::ModuleBuilder) chooses the lowest
    /// version that supports the module.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the target architecture.
    pub fn target(&self) -> TargetArchitecture {
        self.target
    }

    /// Returns the target options.
    pub fn options(&self) -> &[TargetOption] {
        &self.options
    }

    /// Returns the comment at the top, line by line.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the items of the module, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the variables at module scope, which [`Symbol::Global`] indexes.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Returns the kernels and functions, including those that are only declared.
    /// [`Symbol::Function`] indexes them.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the kernels that the module defines.
    pub fn entries(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|f| f.is_entry() && f.body.is_some())
    }

    /// Gives the first kernel that the module defines another name. Returns false if the module
    /// defines no kernel.
    pub fn rename_entry(&mut self, name: String) -> bool {
        let entry = self.functions.iter_mut().find(|f| f.is_entry() && f.body.is_some());
        entry.map(|entry| entry.name = name).is_some()
    }

    /// Returns the function that a call of function `index` runs: the function itself, or the
    /// function that its alias names. Returns `None` if the module does not define the function.
    pub fn definition(&self, index: u32) -> Option<u32> {
        let alias = |of: u32| {
            self.items.iter().find_map(|item| match item {
                Item::Alias(name, aliasee) if *name == of => Some(*aliasee),
                _ => None,
            })
        };
        // Aliases can form a cycle.
        let mut chain = std::iter::successors(Some(index), |of| alias(*of)).take(self.functions.len());
        chain.find(|i| self.functions[*i as usize].body.is_some())
    }

    /// Returns the kernel with this name.
    pub fn entry(&self, name: &str) -> Option<&Function> {
        self.entries().find(|f| f.name == name)
    }
}

/// An architecture of `.target`: `sm_61`, `sm_90a`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TargetArchitecture {
    /// The number in the name.
    pub sm: u16,
    /// The suffix letter.
    pub variant: ArchitectureVariant,
}

/// The set of architectures that can run the code of a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArchitectureVariant {
    /// All later architectures.
    General,
    /// `a`: only this architecture, whose special instructions the code may use.
    Specific,
    /// `f`: architectures of the same family.
    Family,
}

impl From<Target> for TargetArchitecture {
    fn from(target: Target) -> TargetArchitecture {
        TargetArchitecture { sm: target.sm(), variant: ArchitectureVariant::General }
    }
}

impl fmt::Display for TargetArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.variant {
            ArchitectureVariant::General => "",
            ArchitectureVariant::Specific => "a",
            ArchitectureVariant::Family => "f",
        };
        write!(f, "sm_{}{letter}", self.sm)
    }
}

/// An item of a module.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A line of comment, without its slashes.
    Comment(String),
    /// The variable with this index.
    Variable(u32),
    /// The declaration of the function with this index.
    Declaration(u32),
    /// The definition of the function with this index.
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
    /// The number that `.loc` uses.
    pub index: u32,
    /// The name as written, without quotes.
    pub name: String,
    /// The time of modification and the size, if given.
    pub stamp: Option<(u64, u64)>,
}

/// `.section .debug_abbrev { … }`, kept as text, because nothing here reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// The name, with its dot.
    pub name: String,
    /// The lines, without comments.
    pub lines: Vec<String>,
}

/// The linkage of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Linkage {
    /// Visible only in this module.
    Internal,
    /// `.visible`: visible to every module.
    Visible,
    /// `.extern`: defined in another module.
    Extern,
    /// `.weak`: visible to every module; another definition may replace it.
    Weak,
    /// `.common`: visible to every module, and merged with other variables of the same name.
    Common,
}

/// A variable in a state space.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// The linkage.
    pub linkage: Linkage,
    /// `.attribute(.managed)`
    pub managed: bool,
    /// The state space.
    pub space: Space,
    /// `.align`, in bytes, if given.
    pub align: Option<u32>,
    /// 2 for `.v2`, 4 for `.v4`, otherwise 1.
    pub vector: u8,
    /// The type of an element.
    pub ty: Type,
    /// The name.
    pub name: String,
    /// The dimensions, if the variable is an array. A first dimension of `None` follows from the
    /// initializer or, for an extern array, from the launch.
    pub dimensions: Vec<Option<u64>>,
    /// The initial value. Without one, the state space determines whether the variable is zero or
    /// undefined.
    pub initializer: Option<Initializer>,
}

impl Variable {
    /// Creates a module-local array of `bytes` bytes.
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
            initializer: None,
        }
    }

    /// Returns the size of an element in bytes; a vector is one element.
    pub fn element(&self) -> u64 {
        u64::from(self.vector) * u64::from(self.ty.bits().div_ceil(8))
    }

    /// Returns the size of the variable in bytes; `None` if the launch determines it, or if it
    /// overflows.
    pub fn size(&self) -> Option<u64> {
        let first = |dimension: &Option<u64>| match (dimension, &self.initializer) {
            (Some(n), _) => Some(*n),
            (None, Some(Initializer::List(list))) => Some(list.len() as u64),
            (None, _) => None,
        };
        self.dimensions.iter().try_fold(self.element(), |size, d| size.checked_mul(first(d)?))
    }

    /// Returns the alignment in bytes: the declared one, or that of an element.
    pub fn alignment(&self) -> u32 {
        self.align.unwrap_or(self.element() as u32)
    }
}

/// The initial value of a variable. Missing elements of an array are zero.
#[derive(Clone, PartialEq, Debug)]
pub enum Initializer {
    /// An integer, written in decimal.
    Integer(i64),
    /// An integer, written in hexadecimal.
    Bits(u64),
    /// `0f3F800000`, by its bits.
    F32(u32),
    /// `0d3FF0000000000000`, by its bits.
    F64(u64),
    /// The address of a variable or function of the module, plus `offset` bytes.
    Address {
        /// The variable or function.
        symbol: Symbol,
        /// The offset in bytes.
        offset: i32,
        /// `generic(…)`: a generic address, instead of an address in the variable's state space.
        generic: bool,
        /// `0xFF00(…)`: one byte of the address, counted from 0 for the lowest.
        byte: Option<u8>,
    },
    /// `{…}`
    List(Vec<Initializer>),
    /// `{ addr_mode_0 = wrap, normalized_coords = 1 }`, for a texture, sampler or surface.
    Properties(Vec<(Property, PropertyValue)>),
}

/// The value of a property of a texture, sampler or surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PropertyValue {
    /// A number.
    Number(u32),
    /// An addressing or filter mode.
    Sampling(Sampling),
}
