//! The operators that a device type can implement, by the name of Rust's trait.

use crate::ir::Binary;

/// The traits that a `#[device] mod` can implement for its types.
const TRAITS: [&str; 25] = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Rem",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Shl",
    "Shr",
    "AddAssign",
    "SubAssign",
    "MulAssign",
    "DivAssign",
    "RemAssign",
    "BitAndAssign",
    "BitOrAssign",
    "BitXorAssign",
    "ShlAssign",
    "ShrAssign",
    "Neg",
    "Not",
    "Index",
    "IndexMut",
    "PartialEq",
];

/// Returns the trait of an operator with this name, if a device type can implement the trait.
pub fn operator_trait(name: &str) -> Option<&'static str> {
    TRAITS.into_iter().find(|known| *known == name)
}

/// Returns the trait of the language whose types have the operator of a trait of Rust. The operator
/// returns the same type.
pub fn numbers_with(operator: &str) -> Option<&'static str> {
    operator_trait(operator)?;
    Some(match operator.strip_suffix("Assign").unwrap_or(operator) {
        "Add" | "Sub" | "Mul" => "Number",
        "Div" | "Neg" => "Float",
        "Rem" | "BitAnd" | "BitOr" | "BitXor" | "Shl" | "Shr" | "Not" => "Integer",
        _ => return None,
    })
}

/// Returns the traits of an operator of two operands: of `a + b`, and of `a += b`.
pub fn traits_of(operator: Binary) -> Option<[&'static str; 2]> {
    Some(match operator {
        Binary::Add => ["Add", "AddAssign"],
        Binary::Sub => ["Sub", "SubAssign"],
        Binary::Mul => ["Mul", "MulAssign"],
        Binary::Div => ["Div", "DivAssign"],
        Binary::Rem => ["Rem", "RemAssign"],
        Binary::And => ["BitAnd", "BitAndAssign"],
        Binary::Or => ["BitOr", "BitOrAssign"],
        Binary::Xor => ["BitXor", "BitXorAssign"],
        Binary::Shl => ["Shl", "ShlAssign"],
        Binary::Shr => ["Shr", "ShrAssign"],
        _ => return None,
    })
}

/// Returns why a device type cannot implement a trait of Rust's library, for the traits that
/// programs implement most.
pub fn unsupported_trait(name: &str) -> Option<&'static str> {
    Some(match name {
        "Deref" | "DerefMut" | "AsRef" | "AsMut" | "Borrow" => {
            "a device function cannot return a reference; write a method that returns a copy"
        }
        "Drop" => "values on the device are never dropped; remove the impl",
        "Iterator" | "IntoIterator" => {
            "a `for` on the device iterates over ranges and arrays; write a method for one step"
        }
        "Sum" | "Product" => "kernels have no iterators of values; write a function that adds up an array",
        "TryFrom" | "TryInto" | "FromStr" => "write a method that returns a `Result` or an `Option`",
        _ => return None,
    })
}
