//! Cases of the example `knn`.

use super::trial::{Trial, trials};
use crate::examples::knn::{expected, knn, scattered, tree};
use kernel_dsl::compiler::hir::Constant;
use runtime::testing::{Expected, Input};

trials!(knn<4>, |instance| {
    let k = instance.0.first().and_then(Constant::usize).unwrap_or(1);
    let of = |(n, m): (usize, usize)| {
        let (mut points, queries) = (scattered(n, 7), scattered(m, 13));
        tree(&mut points, 0);
        let inputs = [
            Input::view(points.as_flattened(), [n, 2]),
            Input::view(queries.as_flattened(), [m, 2]),
            Input::view(&vec![0f32; m * k], [m, k]),
        ];
        let nearest = expected(&points, &queries, k);
        Trial::new(format!("{m} queries, {n} points"), inputs, [Expected::exact(2, nearest)])
    };
    // No point, fewer than k points, k points, and more.
    [(0, 3), (1, 1), (k, 33), (200, 70), (1100, 65)].into_iter().map(of).collect()
});
