//! Cases of the example `bfs`: each level of a search.

use super::trial::{Trial, trials};
use crate::examples::bfs::{FAR, distances, expand, graph};
use runtime::testing::{Expected, Input};

trials!(expand, |_| {
    let n = 150;
    let (starts, ends) = graph(n);
    let distance = distances(&starts, &ends);
    let at = |level: u32| (0..n).filter(move |v| distances(&graph(n).0, &graph(n).1)[*v as usize] == level);
    let of = |level: u32| {
        let mut frontier: Vec<u32> = at(level - 1).collect();
        let (count, found) = (frontier.len(), at(level).count() as u32);
        frontier.resize(n as usize, 0);
        let known = |level: u32| -> Vec<u32> { distance.iter().map(|d| if *d > level { FAR } else { *d }).collect() };
        let inputs = [
            Input::scalar(level),
            Input::scalar(count),
            Input::slice(&frontier),
            Input::slice(&starts),
            Input::slice(&ends),
            Input::slice(&known(level - 1)),
            Input::slice(&vec![FAR; n as usize]),
            Input::slice(&[0u32]),
        ];
        let next = at(level).chain(std::iter::repeat_n(FAR, (n - found) as usize));
        let expected = [Expected::exact(5, known(level)), Expected::multiset(6, next), Expected::exact(7, [found])];
        Trial::new(format!("level {level}"), inputs, expected).with_free(6)
    };
    (1..5).map(of).collect()
});
