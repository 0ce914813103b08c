//! Cases of the example `histogram`.

use super::trial::{Trial, trials};
use crate::examples::histogram::histogram;
use runtime::testing::{Bound, Expected, Input};

trials!(histogram, |_| {
    let bytes = |n: usize| {
        let x: Vec<u8> = (0..n).map(|i| (i * i % 251) as u8).collect();
        let mut bins = vec![0u32; 256];
        x.iter().for_each(|v| bins[usize::from(*v)] += 1);
        let expected = [Expected::new(1, bins.iter().map(|n| f64::from(*n)).collect(), Bound::Exact)];
        Trial::new(format!("{n} bytes"), [Input::slice(&x), Input::slice(&[0u32; 256])], expected)
    };
    // The first case takes more than one iteration of the grid.
    [40_003, 5003, 16, 7].into_iter().map(bytes).collect()
});
