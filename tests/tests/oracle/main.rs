//! Every check of the oracle, on kernels of the language; and the page that shows them.

mod endless;
mod kernels;
mod origins;
mod page;
mod precision;
mod said;
mod support;
mod undefined;
