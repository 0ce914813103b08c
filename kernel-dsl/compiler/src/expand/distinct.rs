//! Tells apart items of the same words at the same place: what a macro of the user's writes several times.
//!
//! Stable Rust does not say which expansion a token is of, so items of one hash are numbered in the order in which rustc
//! comes to them, which is the same each time. An item that is written once has its hash alone, so what it becomes does not
//! depend on what else the crate has. An editor, which expands an item again and again, gets other numbers, and makes nothing of
//! them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};

/// What a hash is counted for: an item comes to each once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// The item's identity on the device.
    Identity,
    /// The name of the macro that hands it over.
    Name,
}

static SEEN: LazyLock<Mutex<HashMap<(Purpose, u64), u64>>> = LazyLock::new(Mutex::default);

/// `hash`, and of an item that comes later with the same one, a hash of its own.
pub(super) fn distinct(purpose: Purpose, hash: u64) -> u64 {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = seen.entry((purpose, hash)).or_default();
    *before += 1;
    if *before == 1 {
        return hash;
    }
    let mut hasher = DefaultHasher::new();
    (hash, *before).hash(&mut hasher);
    hasher.finish()
}
