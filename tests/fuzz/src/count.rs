//! What kernels were made of: so that it can be seen that all of the language comes.

use crate::forms::{BLOCKS, FORMS, Form, SCANS, Slot, TOGETHER};
use crate::program::Kernel;
use kernel_dsl_compiler::Scalar;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How often each construct came.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Count {
    /// Kernels.
    pub kernels: u64,
    /// Values and statements in them.
    pub nodes: u64,
    /// By construct.
    pub constructs: BTreeMap<&'static str, u64>,
    /// Operations and the types of their results that came.
    #[serde(skip)]
    pairs: BTreeSet<(&'static str, Scalar)>,
}

/// All operations with all types that they have as results.
fn possible() -> BTreeSet<(&'static str, Scalar)> {
    let results = |form: &'static Form| match form.result {
        Slot::T => form.over.to_vec(),
        Slot::R => form.results.to_vec(),
        Slot::Of(ty) => vec![ty],
    };
    let all = [FORMS, TOGETHER, BLOCKS, SCANS].into_iter().flatten();
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
        // What threads do together stands in a `let`, whose type the construct has.
        let together = [TOGETHER, BLOCKS, SCANS].into_iter().flatten();
        for form in together.filter(|form| statements.contains(&form.name)) {
            kernel.visit(&mut |_| {}, &mut |s| {
                let ty = s.text.split([':', '=']).nth(1).and_then(|ty| Scalar::from_name(ty.trim()));
                if let Some(ty) = ty.filter(|_| s.construct == form.name) {
                    self.pairs.insert((form.name, ty));
                }
            });
        }
    }

    /// Both together.
    pub fn merge(&mut self, other: Count) {
        self.kernels += other.kernels;
        self.nodes += other.nodes;
        for (construct, n) in other.constructs {
            *self.constructs.entry(construct).or_default() += n;
        }
        self.pairs.extend(other.pairs);
    }

    /// Operations on types that came, and how many there are.
    pub fn covered(&self) -> (usize, usize) {
        let possible = possible();
        (possible.iter().filter(|pair| self.pairs.contains(pair)).count(), possible.len())
    }

    /// Those that did not come.
    pub fn missing(&self) -> Vec<String> {
        possible()
            .iter()
            .filter(|pair| !self.pairs.contains(pair))
            .map(|(name, ty)| format!("{name} of {ty}"))
            .collect()
    }
}
