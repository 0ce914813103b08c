//! Cases of the example `bvh`.

use super::trial::{Trial, trials};
use crate::examples::bvh::{leaves, nearest, rays, trace, tree};
use runtime::testing::{Expected, Input};

trials!(trace, |_| {
    let of = |(n, m): (usize, usize)| {
        let (leaves, rays) = (leaves(n), rays(m));
        let tree = tree(&leaves);
        let inputs = [
            Input::slice(tree.boxes.as_flattened()),
            Input::slice(&tree.child),
            Input::slice(&rays),
            Input::slice(&vec![0f32; m]),
        ];
        Trial::new(format!("{m} rays, {n} boxes"), inputs, [Expected::exact(3, nearest(&leaves, &rays))])
    };
    [(1, 3), (60, 130)].into_iter().map(of).collect()
});
