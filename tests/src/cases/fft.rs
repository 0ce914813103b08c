//! Cases of the example `fft`.

use super::trial::{Trial, trials, truth};
use crate::examples::fft::{fft, roots, signal, transformed};
use runtime::testing::{Bound, Expected, Input};

trials!(fft<false>, |instance| {
    let inverse = truth(instance, 0);
    let of = |n: usize| {
        let x = signal(256 * n);
        // Eight levels with three roundings each, on sums of up to 256 numbers below √2.
        let bound = Bound::Absolute(24.0 * 2f64.powi(-24) * 256.0 * std::f64::consts::SQRT_2);
        let expected = Expected::new(1, transformed(&x, inverse), bound);
        Trial::new(format!("{n} transforms"), [Input::slice(&roots()), Input::slice(&x)], [expected])
    };
    [1, 3].into_iter().map(of).collect()
});
