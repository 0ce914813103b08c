//! A progress bar on stderr, shown only on a terminal and only after two seconds of work.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Delay before the bar appears.
const BAR_DELAY: Duration = Duration::from_secs(2);

/// Runs `work`, which reports progress on the given bar. The bar is removed when this function
/// returns.
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
            // `done` sends nothing: it is dropped when the work ends.
            if waiting.recv_timeout(BAR_DELAY) == Err(mpsc::RecvTimeoutError::Timeout) {
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
