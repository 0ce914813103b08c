//! The closed list of functions: what callees brought along, each once.

use super::Callee;
use crate::hir::{self, FunctionId};

/// The device functions that a body can reach. The body's own function is number 0; these follow.
pub(super) struct Linked {
    /// Functions 1, 2, ….
    pub functions: Vec<hir::Function>,
    /// Paths as written and what they name.
    paths: Vec<(String, FunctionId)>,
}

impl Linked {
    pub(super) fn new(callees: &[Callee]) -> Linked {
        let mut linked = Linked { functions: Vec::new(), paths: Vec::new() };
        for callee in callees {
            let ids: Vec<_> = callee.library.functions.iter().map(|f| linked.add(f)).collect();
            // A function found again was renumbered when it first came; renumbering it anew would do the same.
            for (id, function) in ids.iter().zip(&callee.library.functions) {
                let mut body = function.body.clone();
                hir::visit::block(&mut body, &mut |e| {
                    if let hir::ExprKind::Call { function, .. } | hir::ExprKind::Function { function, .. } = &mut e.kind
                    {
                        *function = ids[function.0 as usize];
                    }
                });
                linked.functions[id.0 as usize - 1].body = body;
            }
            if let Some(first) = ids.first() {
                linked.paths.push((callee.path.clone(), *first));
            }
        }
        linked
    }

    fn add(&mut self, function: &hir::Function) -> FunctionId {
        let at = self.functions.iter().position(|f| f.hash == function.hash && f.name == function.name).unwrap_or_else(
            || {
                self.functions.push(function.clone());
                self.functions.len() - 1
            },
        );
        FunctionId(at as u32 + 1)
    }

    /// The function that `path` names, with its number.
    pub(super) fn find(&self, path: &str) -> Option<(FunctionId, &hir::Function)> {
        let (_, id) = self.paths.iter().find(|(p, _)| p == path)?;
        Some((*id, &self.functions[id.0 as usize - 1]))
    }
}
