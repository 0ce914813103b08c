//! Every check of the oracle, on kernels of the language; and the page that shows them.

mod checker;
mod endless;
mod kernels;
mod origins;
mod page;
mod precision;
mod said;
mod support;
mod told;
mod undefined;
mod vacant;
