//! Parallel copies, put in a sequential order with the same effect.

use crate::ptx::{Operand, RegisterId};

/// Orders `moves` (to, from), whose destinations are distinct, such that no source is overwritten
/// before it is read. Copies of a register to itself are dropped; a cycle is broken with a register
/// from `temporary`, which returns one like the given register.
pub(super) fn sequence(
    moves: impl IntoIterator<Item = (RegisterId, Operand)>,
    mut temporary: impl FnMut(RegisterId) -> RegisterId,
) -> Vec<(RegisterId, Operand)> {
    let mut pending: Vec<_> = moves.into_iter().filter(|(to, from)| *from != Operand::Register(*to)).collect();
    let mut ordered = Vec::with_capacity(pending.len());
    while !pending.is_empty() {
        let reads = |r: RegisterId, moves: &[(RegisterId, Operand)]| {
            moves.iter().any(|(_, from)| *from == Operand::Register(r))
        };
        match pending.iter().position(|(to, _)| !reads(*to, &pending)) {
            Some(i) => ordered.push(pending.remove(i)),
            None => {
                // The old value of each destination is still needed, so the moves form cycles. One
                // old value is saved in a temporary register, and later moves read it there.
                let first = pending[0].0;
                let saved = temporary(first);
                ordered.push((saved, first.into()));
                for (_, from) in &mut pending {
                    if *from == Operand::Register(first) {
                        *from = saved.into();
                    }
                }
            }
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every assignment of four registers from five sources has the effect of parallel
    /// copies.
    #[test]
    fn any_order_has_the_effect_of_lockstep() {
        let register = |number| RegisterId { declaration: 0, number };
        for code in 0..5usize.pow(4) {
            let sources: Vec<usize> = (0..4).map(|i| code / 5usize.pow(i) % 5).collect();
            let moves = sources.iter().enumerate().map(|(to, from)| {
                (register(to as u32), if *from == 4 { Operand::Integer(9) } else { register(*from as u32).into() })
            });
            let mut fresh = 4;
            let ordered = sequence(moves, |_| {
                fresh += 1;
                register(fresh - 1)
            });
            let mut values: Vec<i64> = (0..16).collect();
            for (to, from) in ordered {
                values[to.number as usize] = match from {
                    Operand::Register(r) => values[r.number as usize],
                    Operand::Integer(n) => n,
                    _ => unreachable!(),
                };
            }
            let expected: Vec<i64> = sources.iter().map(|s| if *s == 4 { 9 } else { *s as i64 }).collect();
            assert_eq!(values[..4], expected, "{sources:?}");
        }
    }
}
