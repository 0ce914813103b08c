//! The log: a line for each rejected call, and for other notable events.

use super::error::Error;
use super::settings::is_stderr;
use runtime_simt::Lock;
use std::collections::HashSet;
use std::fmt;
use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

/// The destination of the log, if any.
#[derive(Default)]
pub struct CallLog(Option<Lock<Destination>>);

/// The destination of lines, and the lines already written, because the log has each line once.
struct Destination {
    to: Box<dyn Write + Send>,
    written: HashSet<u64>,
}

/// The largest number of lines that are remembered.
const MAX_REMEMBERED: usize = 1 << 16;

impl CallLog {
    /// Opens a log to `stderr`, or appending to a file. Two processes may share a file: each line
    /// is one write.
    pub fn open(place: &str) -> Result<CallLog, String> {
        let to: Box<dyn Write + Send> = match place {
            place if is_stderr(place) => Box::new(std::io::stderr()),
            path => match OpenOptions::new().create(true).append(true).open(path) {
                Ok(file) => Box::new(file),
                Err(e) => return Err(format!("the log {path} cannot be opened: {e}")),
            },
        };
        Ok(CallLog(Some(Lock::new(Destination { to, written: HashSet::new() }))))
    }

    /// Logs a rejected call.
    pub fn refused(&self, call: &str, error: &Error) {
        if self.0.is_some() {
            self.line(&format!("{call}: {error}"));
        }
    }

    /// Logs a line.
    pub fn line(&self, text: &str) {
        let Some(to) = &self.0 else { return };
        let mut destination = to.lock();
        let Destination { to, written } = &mut *destination;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if written.len() < MAX_REMEMBERED && !written.insert(hasher.finish()) {
            return;
        }
        // Failure to write the log is ignored.
        let _ = to.write_all(format!("cuda-on-cpu: {}\n", text.replace('\n', "\n    ")).as_bytes());
    }
}

impl fmt::Debug for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Log(…)" } else { "Log" })
    }
}
