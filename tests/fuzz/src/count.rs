//! Statistics of the language constructs in the kernels, which show that the whole language is
//! covered.

use crate::forms::{BLOCKS, FORMS, OperandType, OperationForm, SCANS, WARP_FORMS};
use crate::program::Kernel;
use kernel_dsl_compiler::Scalar;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Number of occurrences of each construct.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Count {
    /// Number of kernels.
    pub kernels: u64,
    /// Number of values and statements.
    pub nodes: u64,
    /// Occurrences by construct.
    pub constructs: BTreeMap<&'static str, u64>,
    /// Operations that occurred, with their result types.
    #[serde(skip)]
    pairs: BTreeSet<(&'static str, Scalar)>,
}

/// Returns all operations, each with all of its result types.
fn possible() -> BTreeSet<(&'static str, Scalar)> {
    let results = |form: &'static OperationForm| match form.result {
        OperandType::T => form.over.to_vec(),
        OperandType::R => form.results.to_vec(),
        OperandType::Of(ty) => vec![ty],
    };
    let all = [FORMS, WARP_FORMS, BLOCKS, SCANS].into_iter().flatten();
    all.flat_map(|form| results(form).into_iter().map(|ty| (form.name, ty))).collect()
}

impl Count {
    /// Counts a kernel.
    pub fn add(&mut self, kernel: &Kernel) {
        self.kernels += 1;
        let (mut values, mut statements) = (Vec::new(), Vec::new());
        kernel.visit(&mut |expr| values.push((expr.construct, expr.ty)), &mut |s| statements.push(s.construct));
        self.nodes += (values.len() + statements.len()) as u64;
        for construct in values.iter().map(|(construct, _)| construct).chain(&statements) {
            *self.constructs.entry(construct).or_default() += 1;
        }
        self.pairs.extend(values);
        // A collective operation is the value of a `let`, which has the type of the construct.
        let together = [WARP_FORMS, BLOCKS, SCANS].into_iter().flatten();
        for form in together.filter(|form| statements.contains(&form.name)) {
            kernel.visit(&mut |_| {}, &mut |s| {
                let ty = s.text.split([':', '=']).nth(1).and_then(|ty| Scalar::from_name(ty.trim()));
                if let Some(ty) = ty.filter(|_| s.construct == form.name) {
                    self.pairs.insert((form.name, ty));
                }
            });
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: Count) {
        self.kernels += other.kernels;
        self.nodes += other.nodes;
        for (construct, n) in other.constructs {
            *self.constructs.entry(construct).or_default() += n;
        }
        self.pairs.extend(other.pairs);
    }

    /// Returns the number of covered operations on types, and the number of all.
    pub fn covered(&self) -> (usize, usize) {
        let possible = possible();
        (possible.iter().filter(|pair| self.pairs.contains(pair)).count(), possible.len())
    }

    /// Returns the operations that no kernel contained.
    pub fn missing(&self) -> Vec<String> {
        possible()
            .iter()
            .filter(|pair| !self.pairs.contains(pair))
            .map(|(name, ty)| format!("{name} of {ty}"))
            .collect()
    }
}
