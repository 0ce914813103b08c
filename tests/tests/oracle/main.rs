//! Every check of the oracle, on kernels of the language; and the page that shows them.

mod kernels;
mod origins;
mod page;
mod said;
mod support;
