//! Instances: the generic arguments of a kernel.

use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The generic arguments of a kernel, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Instance(pub Vec<Constant>);

/// A generic argument.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Constant {
    Usize(u32),
    Bool(bool),
    /// An element type.
    Scalar(Scalar),
    /// A struct or enum, or a device function passed for a type with `DeviceFn`.
    Item(Item),
}

/// A device item passed for a type parameter. Items are equal if their hashes and names are equal.
#[derive(Clone, Eq, Debug, Serialize, Deserialize)]
pub struct Item {
    /// Returns the name in Rust.
    pub name: Cow<'static, str>,
    /// The hash of the item.
    pub hash: u64,
    /// The serialized [`Library`](super::Library) with the item as root. Empty if the kernel's
    /// program contains the item.
    pub library: Cow<'static, [u8]>,
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        (self.hash, &self.name) == (other.hash, &other.name)
    }
}

impl Hash for Item {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Usize(n) => write!(f, "{n}"),
            Constant::Bool(b) => write!(f, "{b}"),
            Constant::Scalar(s) => write!(f, "{s}"),
            Constant::Item(item) => f.write_str(&item.name),
        }
    }
}

impl Instance {
    /// Returns the Rust name of the instance of `kernel`: `saxpy`, `matmul::<16>`.
    pub fn name(&self, kernel: &str) -> String {
        if self.0.is_empty() {
            return kernel.to_string();
        }
        let values: Vec<_> = self.0.iter().map(Constant::to_string).collect();
        format!("{kernel}::<{}>", values.join(", "))
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
