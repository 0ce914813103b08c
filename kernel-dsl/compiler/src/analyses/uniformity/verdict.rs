//! Verdicts by scope, and their causes.

use crate::ir::{Location, Special, Value};
use serde::Serialize;

/// Threads that are asked to agree. What is the same for a scope is the same for all that it holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UniformScope {
    /// All threads of the launch.
    Grid,
    /// The threads of a block.
    Block,
    /// The lanes of a warp.
    Warp,
    /// One thread, which agrees with itself.
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

/// Scopes in which there is something to ask.
const SCOPES: usize = 3;

/// Whether all threads of a scope agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// Proven: all of them.
    Uniform,
    /// Not known at compile time. It came through memory, or by arithmetic that may make different
    /// values equal.
    Unknown,
    /// It is computed from what differs: from a thread's index, or for the grid a block's.
    Varies,
}

/// What made a verdict other than uniform: one hop of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cause {
    pub hop: Hop,
    /// The Rust where it happens.
    pub location: Location,
}

/// What a trace passes, from its end back to its root.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Hop {
    /// A root: the index of a thread or block.
    Index(Special),
    /// A root: what memory holds.
    Memory,
    /// Computed from this value, or a copy of it.
    From(Value),
    /// Only threads with this condition go here.
    Branch(Value),
    /// This bound says how often the loop runs.
    Trips(Value),
    /// Threads have left here; why just these tells the cause with this number.
    Left(u32),
}

/// A verdict with its cause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Entry {
    pub verdict: Verdict,
    cause: Option<Cause>,
}

impl Entry {
    const UNIFORM: Entry = Entry { verdict: Verdict::Uniform, cause: None };

    pub fn because(verdict: Verdict, cause: Cause) -> Entry {
        match verdict {
            Verdict::Uniform => Entry::UNIFORM,
            _ => Entry { verdict, cause: Some(cause) },
        }
    }

    /// Returns the cause of the divergence.
    pub fn cause(self) -> Option<Cause> {
        self.cause
    }
}

/// A verdict for each scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdicts([Entry; SCOPES]);

impl Verdicts {
    pub const UNIFORM: Verdicts = Verdicts([Entry::UNIFORM; SCOPES]);

    /// Returns the same entry for all scopes.
    pub fn all(entry: Entry) -> Verdicts {
        Verdicts([entry; SCOPES])
    }

    /// Entries by scope, wide to narrow.
    pub fn by_scope(mut entry: impl FnMut(UniformScope) -> Entry) -> Verdicts {
        Verdicts([UniformScope::Grid, UniformScope::Block, UniformScope::Warp].map(&mut entry))
    }

    pub fn at(&self, scope: UniformScope) -> Entry {
        match scope {
            UniformScope::Lane => Entry::UNIFORM,
            _ => self.0[scope as usize],
        }
    }

    pub fn set(&mut self, scope: UniformScope, entry: Entry) {
        if scope != UniformScope::Lane {
            self.0[scope as usize] = entry;
        }
    }

    pub fn is_uniform(&self) -> bool {
        self.0.iter().all(|e| e.verdict == Verdict::Uniform)
    }

    /// What needs both to agree. Where both disagree alike, the first's cause is kept: so a cause,
    /// once there, stays, and traces end.
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
    pub fn told(self, hop: Hop, location: Location) -> Verdicts {
        Verdicts(self.0.map(|e| Entry::because(e.verdict, Cause { hop, location })))
    }

    /// Returns verdicts that are at best unknown, for values that may be equal.
    pub fn doubted(self) -> Verdicts {
        Verdicts(self.0.map(|e| Entry { verdict: e.verdict.min(Verdict::Unknown), ..e }))
    }

    /// Returns whether the verdicts are the same, whatever their causes.
    pub fn agrees(&self, other: &Verdicts) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a.verdict == b.verdict)
    }
}
