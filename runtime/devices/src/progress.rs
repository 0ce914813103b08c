//! The progress of long launches on the CPU: a line on stderr, shown only if stderr is a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Delay before the line appears.
const BAR_DELAY: Duration = Duration::from_secs(2);

/// Time between two changes of the line.
const PERIOD: Duration = Duration::from_millis(500);

/// Runs a launch of `blocks` blocks, which counts the blocks that have ended. If stderr is a
/// terminal and the launch takes long, a line shows the count until the launch ends.
pub fn run_with_progress<T>(kernel: &str, blocks: u64, launch: impl FnOnce(Option<Arc<AtomicU64>>) -> T) -> T {
    if !io::stderr().is_terminal() {
        return launch(None);
    }
    run_with_progress_on(&mut io::stderr(), BAR_DELAY, kernel, blocks, |ended| launch(Some(ended)))
}

/// Runs a launch, and shows its progress on `terminal` after `patience`.
fn run_with_progress_on<T>(
    terminal: &mut (impl Write + Send),
    patience: Duration,
    kernel: &str,
    blocks: u64,
    launch: impl FnOnce(Arc<AtomicU64>) -> T,
) -> T {
    let (begin, ended) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    thread::scope(|scope| {
        // The channel carries nothing: its sender is dropped when the launch ends.
        let (running, waiting) = mpsc::channel::<()>();
        let counted = ended.clone();
        scope.spawn(move || {
            let (mut delay, mut drawn) = (patience, false);
            // A terminal that cannot be written shows no progress.
            while waiting.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) {
                let line = line(kernel, counted.load(Ordering::Relaxed), blocks, begin.elapsed());
                let _ = write!(terminal, "\r\x1b[K{line}").and_then(|()| terminal.flush());
                (delay, drawn) = (PERIOD, true);
            }
            if drawn {
                let _ = write!(terminal, "\r\x1b[K").and_then(|()| terminal.flush());
            }
        });
        let result = launch(ended);
        drop(running);
        result
    })
}

fn line(kernel: &str, ended: u64, blocks: u64, elapsed: Duration) -> String {
    format!("{kernel} on the CPU: {ended} of {blocks} blocks, {} s", elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that reports each line to the launch.
    struct Terminal(mpsc::Sender<String>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8_lossy(bytes).into_owned()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn long_launch_shows_a_line_until_it_ends() {
        let (to, lines) = mpsc::channel();
        let mut seen = String::new();
        let result = run_with_progress_on(&mut Terminal(to), Duration::ZERO, "softmax<4>", 70_000, |ended| {
            ended.store(123, Ordering::Relaxed);
            while !seen.contains("softmax<4> on the CPU: 123 of 70000 blocks, ") {
                seen += &lines.recv().unwrap();
            }
            7
        });
        assert_eq!(result, 7);
        let rest: String = lines.iter().collect();
        assert!(rest.ends_with("\r\x1b[K"), "the line is removed: {rest:?}");
    }

    #[test]
    fn short_launch_shows_nothing() {
        let (to, lines) = mpsc::channel();
        assert_eq!(run_with_progress_on(&mut Terminal(to), Duration::MAX, "softmax<4>", 1, |_| 7), 7);
        assert_eq!(lines.iter().collect::<String>(), "");
    }
}
