//! The lines of `log!` that executors print: equal for each thread.

use super::{Executor, Failure};
use runtime_simt::MAX_PRINTED;
use std::collections::BTreeMap;

/// Returns the lines of each thread. A line without a thread belongs to the one before it.
fn by_thread(text: &str) -> BTreeMap<&str, String> {
    let mut threads: BTreeMap<&str, String> = BTreeMap::new();
    let mut thread = "";
    for line in text.split_inclusive('\n') {
        if let Some((name, _)) = line.split_once(": ").filter(|(name, _)| name.starts_with("block [")) {
            thread = name;
        }
        *threads.entry(thread).or_default() += line;
    }
    threads
}

/// Compares the text of an executor with the lowered kernel's. The order of lines of different
/// threads is free. A text that may have lost lines is not compared.
pub(super) fn same_lines(lowered: &[u8], other: &[u8], executor: Executor) -> Result<(), Failure> {
    if lowered == other || lowered.len().max(other.len()) > MAX_PRINTED / 2 {
        return Ok(());
    }
    let [lowered, other] = [lowered, other].map(String::from_utf8_lossy);
    let [lowered, other] = [by_thread(&lowered), by_thread(&other)];
    let thread = lowered.keys().chain(other.keys()).find(|thread| lowered.get(*thread) != other.get(*thread));
    let Some(thread) = thread else { return Ok(()) };
    let of = |threads: &BTreeMap<&str, String>| threads.get(thread).cloned().unwrap_or_default();
    Err(Failure::PrintsDiffer { executor, left: of(&lowered), right: of(&other) })
}
