//! Distinguishes items with equal tokens at the same position, which a user's macro can create.
//!
//! Stable Rust does not tell which expansion a token belongs to. Items with equal hashes are
//! therefore numbered in the order of expansion, which is deterministic. An item that appears once
//! keeps its hash, so its expansion does not depend on the rest of the crate. An editor that
//! expands an item repeatedly gets other numbers, which is harmless.

use crate::lock::Lock;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// The purpose of a hash. Each item makes at most one hash for each purpose.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum HashPurpose {
    /// The item's identity on the device.
    Identity,
    /// The name of the macro that passes the item's HIR.
    Name,
}

static HASH_COUNTS: LazyLock<Lock<HashMap<(HashPurpose, u64), u64>>> = LazyLock::new(Lock::default);

/// Returns `hash` for the first item with this hash, and another hash for each later item.
pub(super) fn distinct(purpose: HashPurpose, hash: u64) -> u64 {
    let mut seen = HASH_COUNTS.lock();
    let before = seen.entry((purpose, hash)).or_default();
    *before += 1;
    if *before == 1 {
        return hash;
    }
    let mut hasher = DefaultHasher::new();
    (hash, *before).hash(&mut hasher);
    hasher.finish()
}
