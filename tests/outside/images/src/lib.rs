//! Twelve kernels on images: each pixel by itself ([`point`]), with its neighbors ([`neighbors`]), and all of them
//! together ([`statistics`]).
#![deny(warnings, missing_docs, clippy::all)]

pub mod neighbors;
pub mod point;
mod specs;
pub mod statistics;
