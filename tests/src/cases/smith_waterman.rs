//! Cases of the example `smith_waterman`.

use super::trial::{Trial, trials};
use crate::examples::smith_waterman::{letters, score, smith_waterman};
use runtime::testing::{Expected, Input};

trials!(smith_waterman, |_| {
    let of = |[pairs, n, m]: [usize; 3]| {
        let (a, b) = (letters(pairs, n, 1), letters(pairs, m, 3));
        let best: Vec<i32> = a.chunks(n).zip(b.chunks(m)).map(|(a, b)| score(a, b)).collect();
        let inputs = [Input::view(&a, [pairs, n]), Input::view(&b, [pairs, m]), Input::slice(&vec![-1i32; pairs])];
        Trial::new(format!("{pairs} pairs, {n} x {m}"), inputs, [Expected::exact(2, best)])
    };
    [[1, 1, 1], [3, 32, 40], [2, 70, 100], [1, 33, 7]].into_iter().map(of).collect()
});
