//! Cases of the example `radix_sort`.

use super::trial::{Trial, trials};
use crate::examples::radix_sort::{keys, radix_sort};
use runtime::testing::{Expected, Input};

trials!(radix_sort, |_| {
    let of = |(blocks, bits): (usize, u32)| {
        let x = keys(1024 * blocks);
        let mut sorted = x.clone();
        sorted.chunks_mut(1024).for_each(|keys| keys.sort_by_key(|key| u64::from(*key) & ((1 << bits) - 1)));
        let inputs = [Input::scalar(bits), Input::slice(&x)];
        Trial::new(format!("{blocks} blocks, {bits} bits"), inputs, [Expected::exact(1, sorted)])
    };
    [(1, 0), (2, 5), (1, 32)].into_iter().map(of).collect()
});
