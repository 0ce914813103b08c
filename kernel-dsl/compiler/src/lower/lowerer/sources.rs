//! The functions and source locations from which lowering makes the kernel's instructions.

use crate::hir::Function;
use crate::ir::{Kernel, Location, SourceLocation};
use std::collections::HashMap;

/// Indices of the sources and locations that a kernel lists so far.
#[derive(Clone, Default)]
pub(in crate::lower) struct SourceMap {
    /// Index into the kernel's sources, by the hash of a function: the instances of a function
    /// share one source.
    functions: HashMap<u64, u32>,
    locations: HashMap<SourceLocation, Location>,
}

impl SourceMap {
    /// Returns the index of `function` in the kernel's sources; lists the function and its
    /// allowances first if it is new.
    pub fn source(&mut self, kernel: &mut Kernel, function: &Function) -> u32 {
        *self.functions.entry(function.hash).or_insert_with(|| {
            let source = kernel.sources.len() as u32;
            kernel.sources.push(function.source.clone());
            kernel.declared.allowances.extend(function.allowances.iter().map(|a| (source, a.clone())));
            source
        })
    }

    /// Returns the number of `location` in the kernel; lists it first if it is new.
    pub fn location(&mut self, kernel: &mut Kernel, location: SourceLocation) -> Location {
        *self.locations.entry(location).or_insert_with(|| {
            kernel.locations.push(location);
            Location(kernel.locations.len() as u32 - 1)
        })
    }
}
