//! A fuzzing campaign: many kernels, on all cores, in batches.

use crate::batch;
use crate::compile::Frontend;
use crate::count::Count;
use crate::generate;
use crate::gpu::Gpu;
use crate::program::Kernel;
use crate::run::{self, Failure, Good};
use crate::shrink::shrink;
use kernels_rs_command::ptxas::Ptxas;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of kernels in a batch: one module for ptxas and for the GPU.
const BATCH: u64 = 64;

/// Configuration of a campaign.
pub struct Campaign<'c> {
    /// Seeds, one for each kernel.
    pub seeds: Range<u64>,
    /// Number of threads.
    pub threads: usize,
    /// Assembler, if kernels are assembled.
    pub ptxas: Option<&'c Ptxas>,
    /// GPU, if kernels run on one.
    pub gpu: Option<&'c Gpu>,
    /// Number of failures that ends the campaign.
    pub limit: usize,
    /// Whether failing kernels are shrunk.
    pub shrinks: bool,
    /// Whether the kernels run. Otherwise they are only compiled, into all their forms.
    pub runs: bool,
}

/// Kernel with a failure.
pub struct Wrong {
    /// Seed of the kernel.
    pub seed: u64,
    /// Kernel after shrinking.
    pub kernel: Kernel,
    /// Failure of the shrunk kernel.
    pub failure: Failure,
}

/// Result of a campaign.
#[derive(Default)]
pub struct Summary {
    /// Language constructs in the kernels.
    pub count: Count,
    /// Failures by ascending seed.
    pub wrong: Vec<Wrong>,
    /// Total of warp instructions in the interpreter on IR as lowered.
    pub instructions: u64,
    /// Number of kernels that ptxas accepted.
    pub assembled: u64,
    /// Number of kernel runs on a GPU, at each level.
    pub on_gpu: u64,
    /// Time of all threads in the compiler and on the interpreters, in ptxas, and on the GPU.
    pub spent: [Duration; 3],
    /// Reason why the campaign ended early, if it did.
    pub ended: Option<String>,
}

impl Campaign<'_> {
    /// Runs the campaign; calls `progress` after each kernel.
    pub fn run(&self, progress: impl Fn() + Sync) -> Summary {
        let frontend = Frontend::default();
        let (next, stop, all) =
            (AtomicU64::new(self.seeds.start), AtomicBool::new(false), Mutex::new(Summary::default()));
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= self.seeds.end {
                    return;
                }
                let seeds = first..(first + BATCH).min(self.seeds.end);
                // Each batch has its own thread: proc-macro2 keeps data of every parsed text until
                // the thread ends.
                let batch = thread::scope(|scope| {
                    let batch = thread::Builder::new().stack_size(64 << 20);
                    let batch = batch.spawn_scoped(scope, || self.batch(&frontend, seeds, &progress));
                    batch.map_err(|e| e.to_string())?.join().map_err(|_| "a mistake of the fuzzer's own".to_string())
                });
                let mut summary = all.lock().expect("nothing panics while it is held");
                match batch {
                    Ok(batch) => summary.merge(batch),
                    Err(why) => summary.ended = Some(why),
                }
                if summary.ended.is_some() || summary.wrong.len() >= self.limit {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        };
        thread::scope(|scope| (0..self.threads).for_each(|_| drop(scope.spawn(work))));
        let mut summary = all.into_inner().expect("nothing panics while it is held");
        summary.wrong.sort_by_key(|wrong| wrong.seed);
        summary
    }

    fn batch(&self, frontend: &Frontend, seeds: Range<u64>, progress: &impl Fn()) -> Summary {
        let mut summary = Summary::default();
        let mut goods: Vec<(u64, Kernel, Good)> = Vec::new();
        for seed in seeds {
            let start = Instant::now();
            let kernel = generate::kernel(seed);
            summary.count.add(&kernel);
            let test = |text: &str| match self.runs {
                true => run::test(frontend, text, seed).map(Some),
                false => run::compile(frontend, text).map(|()| None),
            };
            match test(&kernel.to_string()) {
                Ok(Some(good)) => {
                    summary.instructions += good.instructions;
                    goods.push((seed, kernel, good));
                }
                Ok(None) => {}
                Err(failure) => summary.wrong.push(self.smaller(seed, kernel, failure, |text| test(text).err())),
            }
            summary.spent[0] += start.elapsed();
            progress();
            if summary.wrong.len() >= self.limit {
                return summary;
            }
        }
        let all: Vec<&Good> = goods.iter().map(|(.., good)| good).collect();
        if all.is_empty() {
            return summary;
        }
        if let Some(ptxas) = self.ptxas {
            let start = Instant::now();
            match batch::assemble(ptxas, &all) {
                None => summary.assembled += all.len() as u64,
                Some((n, said)) => {
                    let (seed, kernel, _) = &goods[n];
                    summary.wrong.push(self.smaller(*seed, kernel.clone(), Failure::Assembler(said), |text| {
                        let good = run::test(frontend, text, *seed).ok()?;
                        batch::assemble(ptxas, &[&good]).map(|(_, said)| Failure::Assembler(said))
                    }));
                }
            }
            summary.spent[1] += start.elapsed();
        }
        if let Some(gpu) = self.gpu {
            let start = Instant::now();
            match gpu.run(&all) {
                Ok(wrong) => {
                    summary.on_gpu += all.len() as u64;
                    for (n, failure) in wrong {
                        let (seed, kernel, _) = &goods[n];
                        summary.wrong.push(self.smaller(*seed, kernel.clone(), failure, |text| {
                            let good = run::test(frontend, text, *seed).ok()?;
                            Some(gpu.run(&[&good]).ok()?.into_iter().next()?.1)
                        }));
                    }
                }
                Err(said) => summary.ended = Some(format!("the GPU: {said}")),
            }
            summary.spent[2] += start.elapsed();
        }
        summary
    }

    fn smaller(&self, seed: u64, kernel: Kernel, failure: Failure, again: impl Fn(&str) -> Option<Failure>) -> Wrong {
        if !self.shrinks {
            return Wrong { seed, kernel, failure };
        }
        let mut last = failure;
        let kernel = shrink(kernel, |smaller| {
            let found = again(&smaller.to_string()).filter(|found| found.is_like(&last));
            found.map(|found| last = found).is_some()
        });
        Wrong { seed, kernel, failure: last }
    }
}

impl Summary {
    fn merge(&mut self, other: Summary) {
        self.count.merge(other.count);
        self.wrong.extend(other.wrong);
        self.instructions += other.instructions;
        self.assembled += other.assembled;
        self.on_gpu += other.on_gpu;
        self.spent.iter_mut().zip(other.spent).for_each(|(all, more)| *all += more);
        self.ended = self.ended.take().or(other.ended);
    }
}
