//! What the lanes of a warp, the lanes of a group and the threads of a block do together.

use crate::ir;
use serde::{Deserialize, Serialize};

/// An operation of a warp, a group or a block, by the name that it has on all three. The first argument is the value that each
/// lane brings; `combine` is a closure or function of two such values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Collective {
    /// `sum(x)`, `max(x)`, `min(x)`.
    Number(Reduction),
    /// `reduce(x, combine)`.
    Reduce,
    /// `scan(x, combine)`: inclusive. `block::scan(x, identity, combine)`: the exclusive prefix and the total.
    Scan,
    /// `exclusive_scan(x, identity, combine)`.
    ExclusiveScan,
    /// `shuffle(x, lane)`, `shuffle_xor(x, mask)`; `shuffle_up(x, by)` and `shuffle_down(x, by)` give an `Option`.
    Shuffle(ir::Shuffle),
    /// `broadcast(x, from)`.
    Broadcast,
    /// `ballot(p)`, `all(p)`, `any(p)`.
    Vote(ir::Vote),
    /// `warp::match_any(x)`: the lanes with the same bits.
    Match,
    /// `block::count(p)`: threads where it holds.
    Count,
}

/// What a reduction of numbers does with two of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Reduction {
    Sum,
    Max,
    Min,
}
