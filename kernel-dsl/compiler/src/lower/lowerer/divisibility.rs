//! Known divisors of `usize` values.

use crate::ir::Value;
use crate::launch::Promise;
use std::collections::HashMap;

/// Known divisors of the `usize` values of a kernel.
#[derive(Clone)]
pub(in crate::lower) struct Divisibility {
    /// The guarantees of the kernel's conditions about its parameters.
    pub promises: Vec<Promise>,
    /// The known divisors of values.
    pub divisors: HashMap<Value, u32>,
}

impl Divisibility {
    /// Creates the divisors of a kernel with these conditions, none of them recorded yet.
    pub fn new(promises: Vec<Promise>) -> Divisibility {
        Divisibility { promises, divisors: HashMap::new() }
    }
}
