//! Comparison of the lines of `log!` that executors print, thread by thread.

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

/// Compares the lines that an executor printed with those of the lowered kernel. The order of lines
/// of different threads is free. Output that may have lost lines is not compared.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_thread_keep_their_order() {
        let [a, b] = ["block [0, 0, 0], thread [0, 0, 0]", "block [0, 0, 0], thread [1, 0, 0]"];
        let text = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let [a1, a2, b1] = [format!("{a}: 1: x"), format!("{a}: 2\nrest"), format!("{b}: 1")];
        let lowered = text(&[&a1, &b1, &a2]);
        let same = |other: &str| same_lines(lowered.as_bytes(), other.as_bytes(), Executor::Ptx);
        assert_eq!(same(&text(&[&a1, &a2, &b1])), Ok(()));
        assert_eq!(same(&text(&[&b1, &a1, &a2])), Ok(()));
        let swapped = same(&text(&[&a2, &a1, &b1])).unwrap_err();
        assert!(swapped.to_string().contains(&format!("{a1}\n{a2}")), "{swapped}");
        let missing = same(&text(&[&a1, &a2])).unwrap_err();
        assert!(missing.to_string().contains("no line of the thread"), "{missing}");
        assert!(same(&text(&[&a1, &b1, &a2, &b1])).is_err());
    }
}
