//! Cases of the example `nbody`.

use super::trial::{Trial, trials};
use crate::examples::nbody::{accelerations, bodies, nbody};
use runtime::testing::{Bound, Expected, Input};

trials!(nbody, |_| {
    let of = |n: usize| {
        let x = bodies(n);
        let expected = accelerations(&x);
        // Each of the n terms has ten roundings, and so has the sum.
        let largest = expected.iter().fold(0.0f64, |most, a| most.max(a.abs()));
        let bound = Bound::Absolute(20.0 * n as f64 * 2f64.powi(-24) * largest.max(1.0));
        let inputs = [Input::view(&x, [n, 4]), Input::view(&vec![0f32; 4 * n], [n, 4])];
        Trial::new(format!("{n} bodies"), inputs, [Expected::new(1, expected, bound)])
    };
    [1, 128, 150].into_iter().map(of).collect()
});
