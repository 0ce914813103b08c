//! Cases of the example `sha256`: digests of messages with known digests.

use super::trial::{Trial, trials};
use crate::examples::sha256::{KNOWN, padded, sha256};
use runtime::testing::{Expected, Input};

trials!(sha256, |_| {
    let repeated = |n: usize| {
        let known = || KNOWN.iter().cycle().take(n);
        let x: Vec<u32> = known().flat_map(|(message, _)| padded(message.as_bytes())).collect();
        let digests: Vec<u32> = known().flat_map(|(_, digest)| *digest).collect();
        let inputs = [Input::view(&x, [n, 16]), Input::view(&vec![0u32; 8 * n], [n, 8])];
        Trial::new(format!("{n} messages"), inputs, [Expected::exact(1, digests)])
    };
    [1, 2, 131].into_iter().map(repeated).collect()
});
