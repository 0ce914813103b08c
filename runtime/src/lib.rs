//!

pub mod interpreter;
