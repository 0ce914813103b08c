//! Cases of the example `hash_table`: the counts of all keys, wherever they are in the table.

use super::trial::{Trial, trials};
use crate::examples::hash_table::{counted, hash, insert, look_up};
use runtime::testing::{Expected, Input};

fn keys(n: u32) -> Vec<u32> {
    (0..n).map(|i| 1 + i * i % 29).collect()
}

trials!(insert, |_| {
    let of = |(keys, slots): (Vec<u32>, usize)| {
        let inputs = [Input::slice(&keys), Input::slice(&vec![0u32; slots]), Input::slice(&vec![0u32; slots])];
        let holds = |before: &[Input], after: &[Input]| {
            let (table, counts) = (after[1].to_vec::<u32>(), after[2].to_vec::<u32>());
            let pairs = table.iter().copied().zip(counts).filter(|(key, _)| *key != 0);
            match pairs.collect::<std::collections::BTreeMap<_, _>>() == counted(&before[0].to_vec::<u32>()) {
                true => Ok(()),
                false => Err(format!("the table is {table:?}")),
            }
        };
        let expected = [Expected::judged(1, holds), Expected::judged(2, holds)];
        Trial::new(format!("{} keys in {slots} slots", keys.len()), inputs, expected).with_free(1).with_free(2)
    };
    [(keys(1), 1), (keys(40), 32), (keys(300), 64), ((1..=16).collect(), 16)].into_iter().map(of).collect()
});

trials!(look_up, |_| {
    let counts = counted(&keys(100));
    let (mut table, mut numbers) = (vec![0u32; 32], vec![0u32; 32]);
    for (key, count) in &counts {
        let mut slot = hash(*key, 32);
        while table[slot] != 0 {
            slot = (slot + 1) % 32;
        }
        (table[slot], numbers[slot]) = (*key, *count);
    }
    let asked: Vec<u32> = (1..140).collect();
    let found: Vec<u32> = asked.iter().map(|key| counts.get(key).copied().unwrap_or(0)).collect();
    let inputs = [Input::slice(&asked), Input::slice(&table), Input::slice(&numbers), Input::slice(&vec![7u32; 139])];
    vec![Trial::new("139 keys", inputs, [Expected::exact(3, found)])]
});
