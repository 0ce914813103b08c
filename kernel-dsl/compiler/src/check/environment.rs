//! The items that names resolve to: the device items that the chain passed, each once, and the
//! items of the module being checked.

use crate::hir::{
    self, Associated, Builtin, ExprKind, FunctionId, Items, Root, StructId, TraitBound, TraitId, TraitItemKind, merge,
};
use crate::ir;
use crate::syntax;
use std::collections::HashMap;

/// Maximum depth of references between constants. The limit ends a cycle.
const CONSTANTS: u32 = 64;

/// A device item that a function names: its path as written, and its library.
#[derive(Clone, Debug)]
pub struct ItemReference {
    /// The path, as [`syntax::Path::written`] gives it.
    pub path: String,
    /// The item and all items that it refers to.
    pub library: hir::DeviceLibrary,
}

/// The items that a body can reach.
#[derive(Default)]
pub(super) struct Environment {
    /// The functions; a body that is being checked already has its index.
    pub functions: Vec<hir::Function>,
    pub items: Items,
    /// The hash of the module that is checked; 0 outside of modules.
    pub module: u64,
    /// Paths as written, with the items that they name.
    names: HashMap<String, Root>,
    /// Functions that represent constants.
    constants: Vec<FunctionId>,
    /// Values of constants whose bodies are not checked yet.
    numbers: Vec<(FunctionId, u32)>,
}

impl Environment {
    /// Creates the environment. `reserved` is a function whose index must be 0.
    pub(super) fn new(reserved: Option<hir::Function>, callees: &[ItemReference]) -> Environment {
        let mut environment = Environment { functions: reserved.into_iter().collect(), ..Environment::default() };
        for callee in callees {
            let root = merge::merge(&mut environment.functions, &mut environment.items, &callee.library);
            if let Some(root) = root {
                environment.name(callee.path.clone(), root);
            }
        }
        environment
    }

    pub(super) fn name(&mut self, name: String, root: Root) {
        if let Root::Constant(id) = root {
            self.constants.push(id);
        }
        self.names.insert(name, root);
    }

    /// Records the value `n` of a constant whose body is still to be checked.
    pub(super) fn set_number(&mut self, id: FunctionId, n: u32) {
        self.numbers.push((id, n));
    }

    /// Returns the item that `path` names.
    pub(super) fn find(&self, path: &str) -> Option<Root> {
        self.names.get(path).copied()
    }

    pub(super) fn function(&self, id: FunctionId) -> &hir::Function {
        &self.functions[id.0 as usize]
    }

    pub(super) fn struct_of(&self, id: StructId) -> &hir::Struct {
        self.items.struct_of(id)
    }

    pub(super) fn trait_of(&self, id: TraitId) -> &hir::Trait {
        self.items.trait_of(id)
    }

    /// Returns whether one of the bounds implies that a type implements `wanted`.
    pub(super) fn implies(&self, bounds: &[TraitBound], wanted: Builtin) -> bool {
        let built_upon = self.traits(bounds).into_iter().flat_map(|id| &self.trait_of(id).bounds);
        bounds.iter().chain(built_upon).any(|bound| matches!(bound, TraitBound::Builtin(b) if b.implies(wanted)))
    }

    /// Returns the device traits in `bounds`, with their supertraits.
    pub(super) fn traits(&self, bounds: &[TraitBound]) -> Vec<TraitId> {
        let named = |bounds: &[TraitBound]| -> Vec<TraitId> {
            let one = |bound: &TraitBound| match bound {
                TraitBound::Trait(id) => Some(*id),
                _ => None,
            };
            bounds.iter().filter_map(one).collect()
        };
        // rustc rejects cyclic supertraits; here each trait is listed once.
        let (mut all, mut next) = (named(bounds), 0);
        while let Some(id) = all.get(next).copied() {
            for more in named(&self.trait_of(id).bounds) {
                if !all.contains(&more) {
                    all.push(more);
                }
            }
            next += 1;
        }
        all
    }

    /// Returns the inherent function or constant with this name in an impl that satisfies `fits`.
    pub(super) fn inherent(
        &self,
        name: &str,
        mut fits: impl FnMut(&hir::Impl) -> bool,
    ) -> Option<(&hir::Impl, Associated)> {
        let mut impls = self.items.impls.iter().filter(|i| i.of_trait.is_none());
        impls.find_map(|i| {
            let (_, associated) = i.functions.iter().find(|(n, _)| n == name)?;
            fits(i).then_some((i, *associated))
        })
    }
}

impl Environment {
    /// Returns whether a function represents a constant.
    pub(super) fn is_constant(&self, id: FunctionId) -> bool {
        let constant = |a: &Associated| matches!(a, Associated::Constant(c) if *c == id);
        let of_trait = |k: &TraitItemKind| matches!(k, TraitItemKind::Constant { function, .. } if *function == id);
        self.constants.contains(&id)
            || self.items.impls.iter().any(|i| i.functions.iter().any(|(_, a)| constant(a)))
            || self.items.traits.iter().any(|t| t.items.iter().any(|i| of_trait(&i.kind)))
    }

    /// Returns the value of a device constant, if it is computed from numbers.
    pub(super) fn number(&self, id: FunctionId) -> Option<u32> {
        self.number_within(id, CONSTANTS)
    }

    fn number_within(&self, id: FunctionId, depth: u32) -> Option<u32> {
        if let Some((_, n)) = self.numbers.iter().find(|(of, _)| *of == id) {
            return Some(*n);
        }
        self.value(self.function(id).body.value.as_ref()?, depth.checked_sub(1)?)
    }

    fn value(&self, e: &hir::Expr, depth: u32) -> Option<u32> {
        match &e.kind {
            ExprKind::Literal(bits) => u32::try_from(*bits).ok(),
            ExprKind::Binary(op, a, b) => arithmetic(*op, self.value(a, depth)?, self.value(b, depth)?),
            ExprKind::Call { function, arguments, .. } if arguments.is_empty() => self.number_within(*function, depth),
            _ => None,
        }
    }
}

/// Returns the value of a constant expression over numbers.
pub(super) fn number(e: &syntax::Expr, named: &dyn Fn(&syntax::Path) -> Option<u32>) -> Option<u32> {
    match &e.kind {
        syntax::ExprKind::Integer(n, _) => u32::try_from(*n).ok(),
        syntax::ExprKind::Bool(b) => Some(u32::from(*b)),
        syntax::ExprKind::Path(path) => named(path),
        syntax::ExprKind::Binary(syntax::Binary::Arithmetic(op), a, b) => {
            arithmetic(*op, number(a, named)?, number(b, named)?)
        }
        _ => None,
    }
}

fn arithmetic(op: ir::Binary, a: u32, b: u32) -> Option<u32> {
    match op {
        ir::Binary::Add => a.checked_add(b),
        ir::Binary::Sub => a.checked_sub(b),
        ir::Binary::Mul => a.checked_mul(b),
        ir::Binary::Div => a.checked_div(b),
        ir::Binary::Rem => a.checked_rem(b),
        ir::Binary::Shl => u32::try_from(u64::from(a) << b.min(32)).ok(),
        ir::Binary::Shr => a.checked_shr(b),
        _ => None,
    }
}
