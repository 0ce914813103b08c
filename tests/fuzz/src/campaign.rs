//! Many kernels, on all cores, in batches.

use crate::batch;
use crate::compile::Frontend;
use crate::count::Count;
use crate::generate;
use crate::gpu::Gpu;
use crate::program::Kernel;
use crate::run::{self, Failure, Good};
use crate::shrink::shrink;
use kernels_rs::command::ptxas::Ptxas;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Kernels of a batch: one module for ptxas and for the GPU.
const BATCH: u64 = 64;

/// What to do.
pub struct Campaign<'c> {
    /// One kernel for each.
    pub seeds: Range<u64>,
    /// Threads.
    pub threads: usize,
    /// The assembler, if kernels go through it.
    pub ptxas: Option<&'c Ptxas>,
    /// A GPU, if they run there.
    pub gpu: Option<&'c Gpu>,
    /// Failures after which it ends.
    pub limit: usize,
    /// Whether what goes wrong is made small.
    pub shrinks: bool,
}

/// A kernel that something was wrong with.
pub struct Wrong {
    /// Its seed.
    pub seed: u64,
    /// As small as it could be made.
    pub kernel: Kernel,
    /// What is wrong with that.
    pub failure: Failure,
}

/// What came of it.
#[derive(Default)]
pub struct Summary {
    /// What kernels were made of.
    pub count: Count,
    /// What went wrong, by ascending seeds.
    pub wrong: Vec<Wrong>,
    /// Warp instructions of the interpreter as lowered, in all.
    pub instructions: u64,
    /// Kernels that ptxas took.
    pub assembled: u64,
    /// Kernels that ran on a GPU, at each level.
    pub on_gpu: u64,
    /// Time of all threads on the interpreters, in ptxas, and on the GPU.
    pub spent: [Duration; 3],
    /// Why it ended before its end, if it did.
    pub ended: Option<String>,
}

impl Campaign<'_> {
    /// Does it; `progress` is told of each kernel.
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
                // A thread of its own: what proc-macro2 keeps of each text goes with it.
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
            match run::test(frontend, &kernel.to_string(), seed) {
                Ok(good) => {
                    summary.instructions += good.instructions;
                    goods.push((seed, kernel, good));
                }
                Err(failure) => summary
                    .wrong
                    .push(self.smaller(seed, kernel, failure, |text| run::test(frontend, text, seed).err())),
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
