//! Tests a few kernels on all executors of the CPU; `cargo run --release -p fuzz` tests thousands.

use fuzz::campaign::Campaign;
use fuzz::generate;
use std::num::NonZeroUsize;
use std::thread;

#[test]
fn executors_agree_on_the_first_kernels() {
    let campaign = Campaign {
        seeds: 1..if cfg!(debug_assertions) { 65 } else { 513 },
        threads: thread::available_parallelism().map_or(1, NonZeroUsize::get),
        ptxas: None,
        gpu: None,
        limit: 3,
        shrinks: false,
        runs: true,
    };
    let summary = campaign.run(|| {});
    assert_eq!(summary.ended, None);
    let wrong: Vec<_> = summary.wrong.iter().map(|w| format!("seed {}: {}\n{}", w.seed, w.failure, w.kernel)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn seeds_determine_kernels() {
    for seed in 0..200 {
        assert_eq!(generate::kernel(seed), generate::kernel(seed));
        let unnamed = |seed: u64| generate::kernel(seed).to_string().replace(&format!("k{seed}"), "k");
        assert_ne!(unnamed(seed), unnamed(seed + 1));
    }
}
