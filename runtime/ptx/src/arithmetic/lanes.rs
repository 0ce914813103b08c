//! Results that a lane computes from the values of its members: `match` and `redux`.

/// A result computed from the values of all members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberResult {
    /// The lanes that have the same value: `match.any`.
    Same,
    /// All members if they have one value, otherwise none: `match.all`. The predicate is whether
    /// they have one value.
    AllSame,
    /// The sum: `redux.add`.
    Sum,
    /// The minimum of unsigned or signed numbers: `redux.min`.
    #[allow(missing_docs)]
    Least { signed: bool },
    /// The maximum: `redux.max`.
    #[allow(missing_docs)]
    Most { signed: bool },
    /// `redux.and`.
    And,
    /// `redux.or`.
    Or,
    /// `redux.xor`.
    Xor,
}

impl MemberResult {
    /// Returns the result and the predicate of the lane `this`. `all` has the lane's members with
    /// their values, in ascending order. An instruction without a predicate ignores the second
    /// result.
    pub fn of(self, this: (usize, u64), all: &[(usize, u64)]) -> (u32, bool) {
        let words = || all.iter().map(|(_, value)| *value as u32);
        let word = match self {
            MemberResult::Same => mask(all.iter().filter(|(_, value)| *value == this.1)),
            MemberResult::AllSame if all.iter().any(|(_, value)| *value != this.1) => 0,
            MemberResult::AllSame => mask(all.iter()),
            MemberResult::Sum => words().fold(0, u32::wrapping_add),
            MemberResult::Least { signed: false } => words().min().unwrap_or(0),
            MemberResult::Least { signed: true } => words().map(|w| w as i32).min().unwrap_or(0) as u32,
            MemberResult::Most { signed: false } => words().max().unwrap_or(0),
            MemberResult::Most { signed: true } => words().map(|w| w as i32).max().unwrap_or(0) as u32,
            MemberResult::And => words().fold(u32::MAX, |a, b| a & b),
            MemberResult::Or => words().fold(0, |a, b| a | b),
            MemberResult::Xor => words().fold(0, |a, b| a ^ b),
        };
        (word, word != 0)
    }
}

/// Returns the mask of the lanes.
fn mask<'a>(lanes: impl Iterator<Item = &'a (usize, u64)>) -> u32 {
    lanes.fold(0, |mask, (lane, _)| mask | 1 << lane)
}
