//! Bitonic sort (Batcher, 1968) in shared memory.

use kernel_dsl::prelude::*;

/// Sorts by `before(a, b)`, ascending. s.dim(0) is a power of two, and all threads of the block
/// participate. Ends with a barrier.
#[device]
pub fn bitonic<T: DeviceCopy>(mut s: Shared<T, 1>, before: impl Fn(T, T) -> bool) {
    let n = s.dim(0);
    let mut k = 2;
    while k <= n {
        let mut j = k / 2;
        while j > 0 {
            for p in (thread::index()..n / 2).step_by(block::threads()) {
                // The loop is over pairs, so that no thread idles.
                let i = (p & !(j - 1)) * 2 + (p & (j - 1));
                let up = i & k == 0;
                let (a, b) = (s[i], s[i + j]);
                if before(b, a) == up && before(a, b) != up {
                    s[i] = b;
                    s[i + j] = a;
                }
            }
            block::sync();
            j /= 2;
        }
        k *= 2;
    }
}
