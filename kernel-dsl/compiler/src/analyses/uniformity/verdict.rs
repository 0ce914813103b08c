//! Verdicts by scope, and their causes.

use crate::ir::{Location, Special, Value};
use serde::Serialize;

/// Scope of threads across which a value may be uniform. A value that is uniform across a scope is
/// uniform across all narrower ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UniformScope {
    /// All threads of the launch.
    Grid,
    /// The threads of a block.
    Block,
    /// The lanes of a warp.
    Warp,
    /// A single thread, which always agrees with itself.
    Lane,
}

impl UniformScope {
    /// Returns the name of the scope.
    pub fn name(self) -> &'static str {
        match self {
            UniformScope::Grid => "grid",
            UniformScope::Block => "block",
            UniformScope::Warp => "warp",
            UniformScope::Lane => "lane",
        }
    }
}

/// Number of scopes for which verdicts are stored.
const SCOPES: usize = 3;

/// Verdict on whether all threads of a scope agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UniformityVerdict {
    /// Proven: all threads agree.
    Uniform,
    /// Unknown at compile time: the value came through memory, or from arithmetic that may make
    /// different values equal.
    Unknown,
    /// Computed from something that differs: a thread's index or, for the grid, a block's index.
    Varies,
}

/// Cause of a verdict other than uniform: one hop of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cause {
    pub hop: CauseStep,
    /// Location in the Rust source.
    pub location: Location,
}

/// Hop of a trace, from its end back to its root.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum CauseStep {
    /// A root: the index of a thread or block.
    Index(Special),
    /// A root: the contents of memory.
    Memory,
    /// Computed from this value, or a copy of it.
    From(Value),
    /// Only threads with this condition reach the point.
    Branch(Value),
    /// This bound determines the number of iterations of the loop.
    Trips(Value),
    /// Some threads have left here; the cause with this number explains which.
    Left(u32),
}

/// Verdict with its cause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CausedVerdict {
    pub verdict: UniformityVerdict,
    cause: Option<Cause>,
}

impl CausedVerdict {
    const UNIFORM: CausedVerdict = CausedVerdict { verdict: UniformityVerdict::Uniform, cause: None };

    pub fn because(verdict: UniformityVerdict, cause: Cause) -> CausedVerdict {
        match verdict {
            UniformityVerdict::Uniform => CausedVerdict::UNIFORM,
            _ => CausedVerdict { verdict, cause: Some(cause) },
        }
    }

    /// Returns the cause of the verdict, if it is not uniform.
    pub fn cause(self) -> Option<Cause> {
        self.cause
    }
}

/// Verdicts for each scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdicts([CausedVerdict; SCOPES]);

impl Verdicts {
    pub const UNIFORM: Verdicts = Verdicts([CausedVerdict::UNIFORM; SCOPES]);

    /// Returns the same entry for all scopes.
    pub fn all(entry: CausedVerdict) -> Verdicts {
        Verdicts([entry; SCOPES])
    }

    /// Collects an entry for each scope, from wide to narrow.
    pub fn by_scope(mut entry: impl FnMut(UniformScope) -> CausedVerdict) -> Verdicts {
        Verdicts([UniformScope::Grid, UniformScope::Block, UniformScope::Warp].map(&mut entry))
    }

    pub fn at(&self, scope: UniformScope) -> CausedVerdict {
        match scope {
            UniformScope::Lane => CausedVerdict::UNIFORM,
            _ => self.0[scope as usize],
        }
    }

    pub fn set(&mut self, scope: UniformScope, entry: CausedVerdict) {
        if scope != UniformScope::Lane {
            self.0[scope as usize] = entry;
        }
    }

    pub fn is_uniform(&self) -> bool {
        self.0.iter().all(|e| e.verdict == UniformityVerdict::Uniform)
    }

    /// Returns the worse verdict of each scope, for a value that depends on both sides. If the
    /// verdicts are equal, the first cause is kept: so an existing cause stays, and traces end.
    pub fn join(self, other: Verdicts) -> Verdicts {
        let mut joined = self;
        for (mine, theirs) in joined.0.iter_mut().zip(other.0) {
            if theirs.verdict > mine.verdict {
                *mine = theirs;
            }
        }
        joined
    }

    /// Returns the same entry with `hop` at `location` added to its cause.
    pub fn with_cause(self, hop: CauseStep, location: Location) -> Verdicts {
        Verdicts(self.0.map(|e| CausedVerdict::because(e.verdict, Cause { hop, location })))
    }

    /// Returns verdicts that are at best unknown, for values that may be equal.
    pub fn at_best_unknown(self) -> Verdicts {
        Verdicts(self.0.map(|e| CausedVerdict { verdict: e.verdict.min(UniformityVerdict::Unknown), ..e }))
    }

    /// Returns whether the verdicts are the same, whatever their causes.
    pub fn agrees(&self, other: &Verdicts) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a.verdict == b.verdict)
    }
}
