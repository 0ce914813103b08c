//! The accesses of a kernel, each with the facts that prove it in bounds.

use super::accesses::{self, AccessBounds};
use super::launch::{EqualExtents, LaunchPromises, NameResolver};
use super::launch_bytes::{AccessBytes, LaunchParameters, VariableMeanings};
use super::variables::VariableTable;
use crate::analyses::memory::{self, AccessKind};
use crate::hir::Monomorphic;
use crate::ir::{Kernel, Location};
use std::ops::Range;

/// Accesses of a kernel.
pub struct KernelAccesses {
    /// Accesses in the order in which their locations first appear.
    pub sites: Vec<BoundsSite>,
    variables: VariableMeanings,
}

/// Access to memory, or several accesses of one source location.
pub struct BoundsSite {
    /// Location of the access.
    pub location: Location,
    /// Load, store or atomic operation.
    pub kind: AccessKind,
    /// Name of the shared array, the table, or the kernel's parameter, if known.
    pub array: Option<String>,
    /// Bytes accessed per lane.
    pub bytes: u32,
    /// Facts that keep all these accesses in bounds; `None` if one of them is not proven.
    pub proof: Option<Proof>,
    /// Formulas of the accessed bytes; `None` if one access is not understood.
    formulas: Option<Vec<AccessBytes>>,
}

/// Facts that keep an access in bounds, beyond the shapes of block and array, which are always
/// known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Proof {
    /// Branches, loops and guards that the proof needs.
    pub conditions: Vec<Location>,
    /// Whether the proof needs `#[requires]`.
    pub requires: bool,
    /// Whether the proof needs that a block's index is below the number of blocks.
    pub grid: bool,
}

/// Promises of launches with at most one of the two clauses, in the order of the attempts: the
/// weakest first.
const FEWER_PROMISES: [LaunchPromises; 3] = [
    LaunchPromises { requires: false, grid: false },
    LaunchPromises { requires: false, grid: true },
    LaunchPromises { requires: true, grid: false },
];

impl KernelAccesses {
    /// Analyzes `kernel`, an instance of `program` that still contains places: IR as lowered, or
    /// [`with_places`](crate::passes::with_places).
    pub fn of(program: &Monomorphic, kernel: &Kernel) -> KernelAccesses {
        let with_promises = |promises: LaunchPromises| {
            let names = NameResolver::of(program);
            let equal = if promises.requires { EqualExtents::of(program, &names) } else { EqualExtents::default() };
            accesses::collect(VariableTable::of_launch(program, &equal, promises), kernel, &equal)
        };
        let (all, variables) = with_promises(LaunchPromises::ALL);
        let mut proofs: Vec<Option<Proof>> = vec![None; all.len()];
        for promises in FEWER_PROMISES {
            // If all facts together do not prove an access, fewer facts do not either.
            let is_open = |(access, proof): (&AccessBounds, &Option<Proof>)| access.proof.is_some() && proof.is_none();
            if !all.iter().zip(&proofs).any(is_open) {
                break;
            }
            for (proof, access) in proofs.iter_mut().zip(with_promises(promises).0) {
                if let (None, Some(conditions)) = (&proof, access.proof) {
                    *proof = Some(Proof { conditions, requires: promises.requires, grid: promises.grid });
                }
            }
        }
        let origins = memory::origins(kernel);
        let mut sites: Vec<BoundsSite> = Vec::new();
        for (mut access, proof) in all.into_iter().zip(proofs) {
            let with_both = access.proof.take().map(|conditions| Proof { conditions, requires: true, grid: true });
            let proof = proof.or(with_both);
            let AccessBounds { location, kind, place, bytes, formula, .. } = access;
            let array = memory::name(kernel, &origins, &place);
            let same =
                |s: &&mut BoundsSite| (s.location, s.kind, s.bytes) == (location, kind, bytes) && s.array == array;
            match sites.iter_mut().find(same) {
                Some(site) => site.add_access(proof, formula),
                None => {
                    let formulas = formula.map(|formula| vec![formula]);
                    sites.push(BoundsSite { location, kind, array, bytes, proof, formulas });
                }
            }
        }
        KernelAccesses { sites, variables }
    }

    /// Returns the range from the first to the last byte that `site` touches in a launch, relative
    /// to the start of the buffer or array. The range is empty if no thread reaches the access.
    /// Returns `None` if the extents of the launch do not determine the range, or if the
    /// enumeration takes too many steps.
    pub fn bytes(&self, site: &BoundsSite, launched: &LaunchParameters) -> Option<Range<u64>> {
        let mut all = Vec::new();
        for formula in site.formulas.as_ref()? {
            all.push(self.variables.range(formula, launched)?);
        }
        let both = |a: Range<u64>, b: Range<u64>| a.start.min(b.start)..a.end.max(b.end);
        Some(all.into_iter().filter(|range| !range.is_empty()).reduce(both).unwrap_or(0..0))
    }
}

impl BoundsSite {
    /// Adds another access of the same location.
    fn add_access(&mut self, proof: Option<Proof>, formula: Option<AccessBytes>) {
        self.proof = match (self.proof.take(), proof) {
            (Some(mut one), Some(other)) => {
                one.conditions.extend(other.conditions);
                one.conditions.sort_unstable();
                one.conditions.dedup();
                one.requires |= other.requires;
                one.grid |= other.grid;
                Some(one)
            }
            _ => None,
        };
        match (&mut self.formulas, formula) {
            (Some(all), Some(formula)) if !all.contains(&formula) => all.push(formula),
            (Some(_), Some(_)) => {}
            (formulas, _) => *formulas = None,
        }
    }
}
