//! Twelve kernels on images: each pixel by itself ([`point`]), with its neighbours ([`neighbours`]), and all of them
//! together ([`statistics`]).
#![deny(warnings, missing_docs, clippy::all)]

pub mod neighbours;
pub mod point;
pub mod statistics;
mod subjects;
