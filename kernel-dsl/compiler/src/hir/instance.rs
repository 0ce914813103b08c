//! Instances: the generic arguments of a kernel.

use super::Program;
use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The generic arguments of a kernel, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Instance(pub Vec<Constant>);

/// An instance that the kernel declares.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DeclaredInstance {
    /// The name that the declaration gives to the instance, without the kernel's.
    pub name: Option<String>,
    /// The generic arguments.
    pub arguments: Instance,
}

/// A generic argument.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Constant {
    Usize(u32),
    Bool(bool),
    /// A value of another integer type, which the parameter declares.
    Integer(i128),
    /// An element type.
    Scalar(Scalar),
    /// A struct or enum, or a device function passed for a type with `DeviceFn`.
    Item(ItemArgument),
}

/// A device item passed for a type parameter. Items are equal if their hashes and names are equal.
#[derive(Clone, Eq, Debug, Serialize, Deserialize)]
pub struct ItemArgument {
    /// Name in Rust.
    pub name: Cow<'static, str>,
    /// The hash of the item.
    pub hash: u64,
    /// The serialized [`DeviceLibrary`](super::DeviceLibrary) with the item as root. Empty if the
    /// kernel's program contains the item.
    pub library: Cow<'static, [u8]>,
}

impl PartialEq for ItemArgument {
    fn eq(&self, other: &ItemArgument) -> bool {
        (self.hash, &self.name) == (other.hash, &other.name)
    }
}

impl Hash for ItemArgument {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Usize(n) => write!(f, "{n}"),
            Constant::Bool(b) => write!(f, "{b}"),
            Constant::Integer(n) => write!(f, "{n}"),
            Constant::Scalar(s) => write!(f, "{s}"),
            Constant::Item(item) => f.write_str(&item.name),
        }
    }
}

impl Constant {
    /// Returns the number, if the argument is a number.
    pub fn usize(&self) -> Option<usize> {
        match self {
            Constant::Usize(n) => Some(*n as usize),
            _ => None,
        }
    }

    /// Returns the `bool`, if the argument is a `bool`.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Constant::Bool(b) => Some(*b),
            _ => None,
        }
    }
}

/// Prints the generic arguments as Rust does, `<f32, 16>`; prints nothing if there are none.
impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.0.iter().map(Constant::to_string).collect();
        if values.is_empty() { Ok(()) } else { write!(f, "<{}>", values.join(", ")) }
    }
}

/// Returns the name of an instance without a declared name, as reports print it: `saxpy`,
/// `matmul<T = 16>`, `softmax<f32, ROWS = 4>`. Numbers and bools follow the names of their
/// `parameters`.
pub fn name_with_arguments<'a>(
    kernel: &str,
    parameters: impl Iterator<Item = &'a str>,
    arguments: &[Constant],
) -> String {
    if arguments.is_empty() {
        return kernel.to_string();
    }
    let arguments = parameters.zip(arguments).map(|(parameter, argument)| match argument {
        Constant::Usize(_) | Constant::Bool(_) | Constant::Integer(_) => format!("{parameter} = {argument}"),
        Constant::Scalar(_) | Constant::Item(_) => argument.to_string(),
    });
    format!("{kernel}<{}>", arguments.collect::<Vec<_>>().join(", "))
}

/// Returns the name of an instance with a declared name, as reports print it: `gemm@tile`.
pub fn labeled(kernel: &str, name: &str) -> String {
    format!("{kernel}@{name}")
}

impl Program {
    /// Returns the name of an instance as reports and errors print it: with its declared name,
    /// `gemm@tile`, or else with its generic arguments, `matmul<T = 16>`.
    pub fn instance_name(&self, instance: &Instance) -> String {
        let kernel = &self.functions[0];
        let declared = self.launch.instances.iter().find(|declared| declared.arguments == *instance);
        match declared.and_then(|declared| declared.name.as_deref()) {
            Some(name) => labeled(&kernel.name, name),
            None => name_with_arguments(&kernel.name, kernel.generics.iter().map(|g| g.name.as_str()), &instance.0),
        }
    }
}

impl Instance {
    /// Returns the Rust name of the instance of `kernel`: `saxpy`, `matmul::<16>`. Reports and
    /// errors print [`Program::instance_name`] instead.
    pub fn name(&self, kernel: &str) -> String {
        if self.0.is_empty() { kernel.to_string() } else { format!("{kernel}::{self}") }
    }

    /// Returns the name of the PTX entry: `saxpy`, `matmul_16`.
    pub fn entry(&self, kernel: &str) -> String {
        let plain = |value: &Constant| -> String {
            let value = value.to_string();
            let value = value.strip_prefix("r#").unwrap_or(&value);
            value.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
        };
        self.0.iter().fold(kernel.to_string(), |name, value| format!("{name}_{}", plain(value)))
    }
}
