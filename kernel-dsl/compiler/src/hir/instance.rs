//! What stands for a kernel's generic parameters.

use crate::scalar::Scalar;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Values for a kernel's generic parameters, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Instance(pub Vec<Constant>);

/// What stands for a generic parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Constant {
    Usize(u32),
    Bool(bool),
    /// An element type.
    Scalar(Scalar),
    /// A struct or enum, or a device function where a type with `DeviceFn` is wanted.
    Item(Item),
}

/// A device item that stands for a type parameter. It is the same as another by its hash and name.
#[derive(Clone, Eq, Debug, Serialize, Deserialize)]
pub struct Item {
    /// Name in Rust.
    pub name: Cow<'static, str>,
    /// The item's hash.
    pub hash: u64,
    /// The serialised [`Library`](super::Library) that has it as its root. Empty where the kernel's program has the item
    /// already.
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
    /// The instance of `kernel` as Rust names it: `saxpy`, `matmul::<16>`.
    pub fn name(&self, kernel: &str) -> String {
        if self.0.is_empty() {
            return kernel.to_string();
        }
        let values: Vec<_> = self.0.iter().map(Constant::to_string).collect();
        format!("{kernel}::<{}>", values.join(", "))
    }

    /// The entry's name in PTX: `saxpy`, `matmul_16`.
    pub fn entry(&self, kernel: &str) -> String {
        let plain = |value: &Constant| -> String {
            let value = value.to_string();
            let value = value.strip_prefix("r#").unwrap_or(&value);
            value.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
        };
        self.0.iter().fold(kernel.to_string(), |name, value| format!("{name}_{}", plain(value)))
    }
}
