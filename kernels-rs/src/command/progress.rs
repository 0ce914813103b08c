//! A progress bar on stderr: only where that is a terminal, and only once work has taken two seconds.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long work may take unseen.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs `work`, which reports on the bar that it is given. The bar is gone when this returns.
pub(super) fn with_bar<T>(steps: usize, work: impl FnOnce(&ProgressBar) -> T) -> T {
    let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} {elapsed}") {
        bar.set_style(style);
    }
    if !io::stderr().is_terminal() {
        return work(&bar);
    }
    thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        let bar = &bar;
        scope.spawn(move || {
            // `done` sends nothing: it is dropped when the work has ended.
            if waiting.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(Duration::from_millis(200));
            }
        });
        let result = work(bar);
        drop(done);
        bar.finish_and_clear();
        result
    })
}
