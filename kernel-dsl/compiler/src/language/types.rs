//! The built-in names of types and bounds.

use crate::Scalar;
use crate::float16::{Float16Format, Float16Policy};
use crate::hir::Builtin;

/// The name of Rust's `Result`. A device item can also have it, as in Rust.
pub const RESULT_NAME: &str = "Result";

/// Returns whether no device type can have the name, because the name always denotes a type of the
/// language.
pub fn reserves_type(name: &str) -> bool {
    name != "Self" && (owns_type(name) || Scalar::from_name(name).is_some())
}

/// Returns whether a path in the position of a type is built in, by its last name.
pub fn owns_type(last: &str) -> bool {
    matches!(
        last,
        "Float16" | "View" | "ViewMut" | "Strided" | "StridedMut" | "Shared" | "Option" | "Group" | "Pending" | "Self"
    )
}

/// Returns whether a path in the position of a bound is built in, by its last name.
///
/// The checker treats Rust's own traits in the list, such as `Add` and `Debug`, as bounds that
/// every type satisfies.
pub fn owns_bound(last: &str) -> bool {
    const RUST: &[&str] =
        &["Add", "Debug", "DeviceFn", "Div", "Fn", "Mul", "Neg", "PartialEq", "PartialOrd", "Rem", "Sub"];
    Builtin::from_name(last).is_some() || RUST.contains(&last)
}

/// Returns the layout of `Float16<exponent, bias, policy>`, where no policy means `Ieee`.
pub fn float16([exponent, bias]: [i128; 2], policy: Option<&str>) -> Option<Float16Format> {
    let policy = match policy {
        None | Some("Ieee") => Float16Policy::Ieee,
        Some("Finite") => Float16Policy::Finite,
        Some("Saturating") => Float16Policy::Saturating,
        Some(_) => return None,
    };
    Float16Format::new(u32::try_from(exponent).ok()?, i32::try_from(bias).ok()?, policy)
}
