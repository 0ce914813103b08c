//! A proof of which accesses are in bounds in every launch, and by which facts.
//!
//! An index is a polynomial over extents, indices of threads and blocks, and iteration numbers of
//! loops (`linear`). Known facts are the extents of block and grid, `#[requires]` (`promised`), and
//! the conditions of enclosing branches and loops (`decide`). If these facts keep an index below
//! its extent, the access is proven, and a minimal set of them is reported. If all conditions of an
//! access are understood, its bytes in a launch of known extents follow without execution
//! (`range`).
//!
//! No `usize` wraps: that is an error of the kernel by itself. Only [`decide_exactly`] holds where
//! one does.

mod decide;
mod linear;
mod promised;
mod range;

pub use decide::decide_exactly;
pub use range::LaunchParameters;

use super::memory::{self, AccessKind};
use crate::hir::Monomorphic;
use crate::ir::{Kernel, Location};
use decide::{AccessBounds, LaunchVariables};
use promised::Promised;
use range::{AccessBytes, Variables};
use std::ops::Range;

/// Accesses of a kernel.
pub struct KernelAccesses {
    /// Accesses in the order in which their locations first appear.
    pub sites: Vec<BoundsSite>,
    variables: Variables,
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

/// Combinations of fewer launch facts (`requires`, `grid`) than both, in the order of the attempts,
/// the weakest first.
const FEWER_PROMISES: [(bool, bool); 3] = [(false, false), (false, true), (true, false)];

impl KernelAccesses {
    /// Analyzes `kernel`, an instance of `program` that still contains places: IR as lowered, or
    /// [`with_places`](crate::passes::with_places).
    pub fn of(program: &Monomorphic, kernel: &Kernel) -> KernelAccesses {
        let by = |requires: bool, grid: bool| {
            let promised = if requires { Promised::of(program) } else { Promised::nothing() };
            LaunchVariables::some(program, &promised, requires, grid).accesses(kernel, &promised)
        };
        let (all, variables) = by(true, true);
        let mut proofs: Vec<Option<Proof>> = vec![None; all.len()];
        for (requires, grid) in FEWER_PROMISES {
            // An access that all facts together do not prove is not attempted with fewer.
            let open = |(seen, proof): (&AccessBounds, &Option<Proof>)| seen.proof.is_some() && proof.is_none();
            if !all.iter().zip(&proofs).any(open) {
                break;
            }
            for (proof, seen) in proofs.iter_mut().zip(by(requires, grid).0) {
                if let (None, Some(conditions)) = (&proof, seen.proof) {
                    *proof = Some(Proof { conditions, requires, grid });
                }
            }
        }
        let origins = memory::origins(kernel);
        let mut sites: Vec<BoundsSite> = Vec::new();
        for (mut seen, proof) in all.into_iter().zip(proofs) {
            let with_both = seen.proof.take().map(|conditions| Proof { conditions, requires: true, grid: true });
            let proof = proof.or(with_both);
            let AccessBounds { location, kind, place, bytes, formula, .. } = seen;
            let array = memory::name(kernel, &origins, &place);
            let same =
                |s: &&mut BoundsSite| (s.location, s.kind, s.bytes) == (location, kind, bytes) && s.array == array;
            match sites.iter_mut().find(same) {
                Some(site) => site.and(proof, formula),
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
    /// Returns `None` if the extents of the launch do not determine the range, or only at great
    /// length.
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
    fn and(&mut self, proof: Option<Proof>, formula: Option<AccessBytes>) {
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
