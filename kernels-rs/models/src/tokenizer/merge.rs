//! Merging of neighboring tokens, which byte-pair encoding and SentencePiece share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A symbol in a doubly linked list. `merged` says that the symbol before has absorbed this one.
#[derive(Clone, Copy)]
struct LinkedSymbol {
    token: u32,
    previous: usize,
    next: usize,
    merged: bool,
}

/// The index of the missing neighbor at either end of the list.
const NO_SYMBOL: usize = usize::MAX;

/// Merges neighbors in `symbols` until no pair can merge: the pair of lowest rank first, and the
/// leftmost among equals. `pair` returns the rank of a pair and the token that it becomes, or
/// `None` if the pair does not merge.
///
/// The time for n symbols is O(n·log n).
pub fn merge<R: Ord + Copy>(symbols: &mut Vec<u32>, pair: impl Fn(u32, u32) -> Option<(R, u32)>) {
    let n = symbols.len();
    let mut nodes: Vec<LinkedSymbol> = symbols
        .iter()
        .enumerate()
        .map(|(i, token)| LinkedSymbol {
            token: *token,
            previous: i.wrapping_sub(1),
            next: if i + 1 < n { i + 1 } else { NO_SYMBOL },
            merged: false,
        })
        .collect();
    // The lowest rank is on top. An entry is skipped if one of its symbols has changed since.
    let mut queue = BinaryHeap::new();
    let candidate = |nodes: &[LinkedSymbol], left: usize| {
        let (first, second) = (nodes.get(left)?, nodes.get(nodes[left].next)?);
        let (rank, token) = pair(first.token, second.token)?;
        Some(Reverse((rank, left, first.token, second.token, token)))
    };
    queue.extend((0..n).filter_map(|left| candidate(&nodes, left)));
    while let Some(Reverse((_, left, first, second, token))) = queue.pop() {
        let right = nodes[left].next;
        let current = !nodes[left].merged && nodes[left].token == first;
        if !current || nodes.get(right).is_none_or(|node| node.token != second) {
            continue;
        }
        let next = nodes[right].next;
        nodes[right].merged = true;
        nodes[left].token = token;
        nodes[left].next = next;
        if let Some(node) = nodes.get_mut(next) {
            node.previous = left;
        }
        queue.extend(candidate(&nodes, left));
        queue.extend(candidate(&nodes, nodes[left].previous));
    }
    symbols.clear();
    symbols.extend(nodes.iter().filter(|node| !node.merged).map(|node| node.token));
}
