//! Cases of the example `bfs`: each level of a search.

use super::trial::{Trial, trials};
use crate::examples::bfs::{UNREACHED, distances, expand, graph};
use runtime::testing::{Expected, Input};

trials!(expand, |_| {
    // Some frontiers have more vertices than a block has threads.
    let n = 900;
    let (starts, ends) = graph(n);
    let distance = distances(&starts, &ends);
    let at = |level: u32| (0..n).filter(|v| distance[*v as usize] == level).collect::<Vec<_>>();
    let neighbors = |v: u32| &ends[starts[v as usize] as usize..starts[v as usize + 1] as usize];
    let of = |level: u32| {
        let (mut frontier, next) = (at(level - 1), at(level));
        let (count, found) = (frontier.len(), next.len());
        // Beyond its end the frontier has a vertex that must not be visited yet.
        let later = (0..n).find(|v| neighbors(*v).iter().any(|to| distance[*to as usize] > level));
        frontier.resize(n as usize, later.unwrap_or(0));
        let known =
            |level: u32| -> Vec<u32> { distance.iter().map(|d| if *d > level { UNREACHED } else { *d }).collect() };
        let inputs = [
            Input::scalar(level),
            Input::scalar(count),
            Input::slice(&frontier),
            Input::slice(&starts),
            Input::slice(&ends),
            Input::slice(&known(level - 1)),
            Input::slice(&vec![UNREACHED; n as usize]),
            Input::slice(&[0u32]),
        ];
        let holds = move |_: &[Input], after: &[Input]| {
            let mut listed = after[6].to_vec::<u32>()[..found].to_vec();
            listed.sort_unstable();
            if listed == next { Ok(()) } else { Err(format!("the next frontier is {listed:?}")) }
        };
        let expected =
            [Expected::exact(5, known(level)), Expected::judged(6, holds), Expected::exact(7, [found as u32])];
        Trial::new(format!("level {level}"), inputs, expected).with_free(6)
    };
    [1, 3, 7].into_iter().map(of).collect()
});
