//! Collective operations of the lanes of a warp, the lanes of a group and the threads of a block.

use crate::ir;
use serde::{Deserialize, Serialize};

/// A collective operation of a warp, group or block; the name is the same for all three. The first
/// argument is the value of each lane; `combine` is a closure or function of two values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Collective {
    /// `sum(x)`, `max(x)`, `min(x)`.
    Number(Reduction),
    /// `reduce(x, combine)`.
    Reduce,
    /// `scan(x, combine)`: inclusive. `block::scan(x, identity, combine)`: the exclusive prefix and
    /// the total.
    Scan,
    /// `exclusive_scan(x, identity, combine)`.
    ExclusiveScan,
    /// `shuffle(x, lane)`, `shuffle_xor(x, mask)`; `shuffle_up(x, by)` and `shuffle_down(x, by)`
    /// return an `Option`.
    Shuffle(ir::Shuffle),
    /// `broadcast(x, from)`.
    Broadcast,
    /// `ballot(p)`, `all(p)`, `any(p)`.
    Vote(ir::Vote),
    /// `warp::match_any(x)`: the lanes with the same bits.
    Match,
    /// `block::count(p)`: the number of threads where `p` holds.
    Count,
}

/// The operation that combines two numbers in a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Reduction {
    Sum,
    Max,
    Min,
}
