//! What the interpreter checks: [`Check`], whose every variant is documented by its definition.

pub use kernel_dsl::compiler::oracle::{Allowance, Check, CheckSet, Coverage, Output, Severity, UnknownCheck};
