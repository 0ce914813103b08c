//! Points where control may take two paths, and the scope of threads that take the same path.
//! Reports use them.

use super::{UniformScope, Uniformity, UniformityVerdict};
use crate::ir::{AccessPlace, Inst, Kernel, Location, Op, Region, Value};

/// Branch or loop, or several of one source location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// Location of the branch or loop.
    pub location: Location,
    /// Whether the construct is a loop.
    pub looped: bool,
    /// Number of constructs at the location.
    pub count: u32,
    /// Scope of the threads that reach the construct together and are proven to take the same path.
    /// For a loop, they run the same number of iterations, except threads that return or leave a
    /// counted loop early.
    pub scope: UniformScope,
}

/// Returns the branches and loops of `kernel`, in the order in which their locations first appear.
/// The condition of an exit from inside a loop, such as that of a `while`, counts as a branch.
pub fn branches(kernel: &Kernel) -> Vec<Branch> {
    let mut found = Vec::new();
    walk(&Uniformity::new(kernel), &kernel.body, &mut found);
    found
}

fn walk(uniformity: &Uniformity<'_>, region: &Region, found: &mut Vec<Branch>) {
    for inst in &region.insts {
        if let Some((looped, scope)) = decided(uniformity, inst) {
            match found.iter_mut().find(|b| (b.location, b.looped) == (inst.location, looped)) {
                Some(branch) => {
                    branch.count += 1;
                    branch.scope = branch.scope.max(scope);
                }
                None => found.push(Branch { location: inst.location, looped, count: 1, scope }),
            }
        }
        inst.op.regions().into_iter().for_each(|inner| walk(uniformity, inner, found));
    }
}

/// Returns whether the construct is a loop, and which threads take the same path.
fn decided(uniformity: &Uniformity<'_>, inst: &Inst) -> Option<(bool, UniformScope)> {
    match &inst.op {
        Op::If { condition, .. } => Some((false, uniformity.scope_of(*condition))),
        Op::For(l) => Some((true, uniformity.scope_of_all([l.start, l.end, l.step]))),
        Op::Loop { .. } => Some((true, uniformity.scope_of_breaks(inst)?)),
        _ => None,
    }
}

impl Uniformity<'_> {
    /// Returns the widest scope across which all `values` are proven to be uniform.
    pub fn scope_of_all(&self, values: impl IntoIterator<Item = Value>) -> UniformScope {
        values.into_iter().map(|value| self.scope_of(value)).max().unwrap_or(UniformScope::Grid)
    }

    /// Returns the widest scope whose threads are proven to leave the loop `inst` in the same
    /// iteration, if they leave by its breaks. Returns `None` if control does not reach the loop.
    fn scope_of_breaks(&self, inst: &Inst) -> Option<UniformScope> {
        let breaks = self.flow.breaks.get(&std::ptr::from_ref(inst).addr())?;
        let all = [UniformScope::Grid, UniformScope::Block, UniformScope::Warp];
        Some(
            all.into_iter().find(|s| breaks.at(*s).verdict == UniformityVerdict::Uniform).unwrap_or(UniformScope::Lane),
        )
    }

    /// Returns the widest scope whose threads are proven to access the same place, if they reach it
    /// together.
    pub fn scope_of_place(&self, place: &AccessPlace) -> UniformScope {
        let mut values: Vec<Value> =
            place.element_offset().into_iter().flat_map(|w| &w.indices).map(|s| s.index).collect();
        match place {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                values.push(*base);
                values.extend(dims.iter().map(|dim| dim.index));
                values.extend(dims.iter().filter_map(|dim| dim.stride));
            }
            AccessPlace::Shared { indices, .. } => values.extend(indices),
            AccessPlace::Address { base, .. } => values.push(*base),
        }
        self.scope_of_all(values)
    }
}
