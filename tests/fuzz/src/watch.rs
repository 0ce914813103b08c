//! A time limit for each trial of a fuzzer.

use kernel_dsl_compiler::lock::Lock;
use std::process::exit;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The current trial, which a thread compares with the time limit.
pub struct Watch(Arc<Lock<Option<(Instant, String)>>>);

impl Watch {
    /// Starts the thread, which prints a trial that exceeds `limit`, and ends the process.
    pub fn start(limit: Duration) -> Watch {
        let current = Arc::<Lock<Option<(Instant, String)>>>::default();
        let watched = current.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let current = watched.lock();
                if let Some((since, text)) = &*current
                    && since.elapsed() > limit
                {
                    eprintln!("{:?} and not done:\n{text}", since.elapsed());
                    exit(1);
                }
            }
        });
        Watch(current)
    }

    /// Begins a trial.
    pub fn begin(&self, text: String) {
        self.set(Some((Instant::now(), text)));
    }

    /// Ends the trial.
    pub fn end(&self) {
        self.set(None);
    }

    fn set(&self, trial: Option<(Instant, String)>) {
        *self.0.lock() = trial;
    }
}
