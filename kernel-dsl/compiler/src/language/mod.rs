//! The vocabulary of the language: every name that a kernel can use without defining it.
//!
//! Each kind of name has one table. The reader of a kernel, the checker and the documentation use
//! the same tables, so that they agree on what exists. This module depends on the HIR, because a
//! row names the operation that a function or method becomes. The module does not depend on the
//! syntax tree: names are strings here.
//!
//! * [`FUNCTIONS`]: functions of the prelude, such as `block::sum`.
//! * [`METHODS`], [`ARRAY_METHODS`], [`OPTION_METHODS`], [`RESULT_METHODS`]: methods of the
//!   built-in types.
//! * [`SHARED_CONSTRUCTORS`]: constructors of arrays in shared memory.
//! * [`constant`]: associated constants, such as `f32::INFINITY`.
//! * [`operator_trait`]: traits of Rust whose operators a device type can implement.
//! * [`inexact`]: methods of Rust that kernels reject, with what to use instead.
//! * [`foreign_function`]: names of CUDA and of Rust's library, with what to write instead.
//! * [`words`]: all of these names, for documentation and tests.

mod constants;
#[cfg(test)]
mod documented;
mod foreign;
mod functions;
mod inexact;
mod methods;
mod operators;
mod shared;
mod signature;
mod types;
mod words;

pub use constants::constant;
pub use foreign::{foreign_access, foreign_function, foreign_number_method, foreign_variable, missing_item};
pub use functions::{FUNCTIONS, Integers, PreludeFunction, dot_product, is_from_fn, is_size_of, owns, takes_closure};
pub use inexact::inexact;
pub use methods::{
    ARRAY_METHODS, LanguageMethod, METHODS, OPTION_METHODS, RESULT_METHODS, Receiver, has_associated,
    method_takes_closure,
};
pub use operators::{numbers_with, operator_trait, traits_of, unsupported_trait};
pub use shared::{MAX_SHARED_RANK, SHARED_CONSTRUCTORS, SharedConstructor, SharedParameter};
pub use signature::SignatureType;
pub use types::{RESULT_NAME, float16, owns_bound, owns_type, reserves_type};
pub use words::{BuiltinName, words};
