//! Twelve kernels on images: on single pixels ([`point`]), on pixels with their neighbors
//! ([`neighbors`]), and on all pixels ([`statistics`]).
#![deny(warnings, missing_docs, clippy::all)]

pub mod neighbors;
pub mod point;
mod specs;
pub mod statistics;
