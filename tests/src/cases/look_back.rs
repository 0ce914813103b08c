//! Cases of the example `look_back`.

use super::trial::{Trial, trials};
use crate::examples::look_back::{look_back, sums};
use runtime::testing::{Expected, Input};

trials!(look_back, |_| {
    let of = |n: usize| {
        let x: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let tiles = n.div_ceil(128);
        let inputs =
            [Input::slice(&x), Input::slice(&vec![0u32; n]), Input::slice(&vec![0u64; tiles]), Input::slice(&[0u32])];
        let last: Vec<u64> = sums(&x).chunks(128).map(|tile| 2 << 32 | u64::from(tile[tile.len() - 1])).collect();
        let expected = [Expected::exact(1, sums(&x)), Expected::exact(2, last), Expected::exact(3, [tiles as u32])];
        Trial::new(format!("{n} elements"), inputs, expected)
    };
    [1, 128, 129, 500].into_iter().map(of).collect()
});
