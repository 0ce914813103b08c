//! `kernels bench`: costs of kernels in the cases of their specs, and suites of the library.

mod busy;
mod device;
mod kernels;
mod measure;
#[cfg(feature = "library")]
mod suites;
#[cfg(feature = "library")]
pub(super) mod typical;

#[cfg(feature = "library")]
pub(super) use {
    device::Timer,
    measure::Contender,
    suites::{EstimableSuite, MeasuredTime},
};

use crate::error::{CommandOutcome, Error};
use clap::Args;
use std::io::Write;

/// Measures kernels in the cases of their specs: times, rates and counts
///
/// On a GPU, a time is the median with its 95 % confidence interval, once with the data in the L2
/// cache and once without. The interpreter counts operations and bytes, so that rates need no
/// formula. Without a GPU, the counts remain, and an estimate of the time on --model if ptxas and
/// nvdisasm are found.
#[cfg_attr(
    feature = "library",
    doc = "--suite measures a group of the library instead, compared with the vendor's libraries."
)]
#[derive(Args)]
pub(super) struct BenchArgs {
    /// Kernels, instances or patterns: matmul, 'gemm*', gemm@f32_128x128_v4, 'matmul<T = 8>'.
    #[cfg_attr(
        feature = "library",
        doc = "With --suite checked also none, for all; with --suite quant, formats of weights",
        arg(required_unless_present = "suite")
    )]
    #[cfg_attr(not(feature = "library"), arg(required = true))]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Group of measurements to run instead, on the first GPU
    #[cfg(feature = "library")]
    #[arg(long, conflicts_with_all = [
        "case", "seed", "all_cases", "device", "model", "save", "against", "least_change",
    ])]
    suite: Option<suites::Suite>,
    /// Number of measurements of each item
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    #[command(flatten)]
    kernels: kernels::KernelArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl BenchArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let rounds = usize::from(self.rounds);
        #[cfg(feature = "library")]
        if let Some(suite) = self.suite {
            return suite.run(&self.names, rounds, self.json, out);
        }
        let outcome = self.kernels.run(&self.names, rounds, self.json, out);
        #[cfg(feature = "library")]
        let outcome = outcome.map_err(suites::of_unknown_kernel);
        outcome
    }
}
