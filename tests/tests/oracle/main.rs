//! Tests of every check of the oracle, on kernels of the language, and of the page of the checks.

mod checked;
mod checker;
mod declarations;
mod details;
mod endless;
mod kernels;
mod oracle_options;
mod origins;
mod page;
mod precision;
mod reached;
mod resident;
mod support;
mod undefined;
mod uninitialized;
