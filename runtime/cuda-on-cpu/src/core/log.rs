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

    /// Logs a rejected call. A report of several lines is written once: every later call returns
    /// the error of a failed context, and its line then has only the start of the report.
    pub fn refused(&self, call: &str, error: &Error) {
        let Some(destination) = &self.0 else { return };
        let mut destination = destination.lock();
        let error = error.to_string();
        match error.split_once('\n') {
            Some((start, _)) if !destination.is_first(&error) => {
                destination.line(&format!("{call}: {start}, reported above"));
            }
            _ => destination.line(&format!("{call}: {error}")),
        }
    }

    /// Logs a line.
    pub fn line(&self, text: &str) {
        if let Some(destination) = &self.0 {
            destination.lock().line(text);
        }
    }
}

impl Destination {
    /// Writes a text, unless the log has the text already.
    fn line(&mut self, text: &str) {
        if self.is_first(text) {
            // Failure to write the log is ignored.
            let _ = self.to.write_all(format!("cuda-on-cpu: {}\n", text.replace('\n', "\n    ")).as_bytes());
        }
    }

    /// Remembers a text, and returns whether the text is new.
    fn is_first(&mut self, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        self.written.len() >= MAX_REMEMBERED || self.written.insert(hasher.finish())
    }
}

impl fmt::Debug for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Log(…)" } else { "Log" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudarc::driver::sys::CUresult;
    use std::sync::{Arc, Mutex};

    struct SharedBytes(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBytes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_report_is_written_once() {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let to = Box::new(SharedBytes(bytes.clone()));
        let log = CallLog(Some(Lock::new(Destination { to, written: HashSet::new() })));
        let error = Error::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "kernel `k`\nerror: stores 4 bytes");
        for call in ["in the stream", "cuCtxSynchronize", "cuMemFree_v2", "cuMemFree_v2"] {
            log.refused(call, &error);
        }
        let short = Error::value("a pointer is null");
        log.refused("cuMemAlloc_v2", &short);
        log.refused("cuMemFree_v2", &short);
        let text = String::from_utf8(bytes.lock().unwrap().clone()).unwrap();
        assert_eq!(
            text,
            "cuda-on-cpu: in the stream: CUDA_ERROR_ILLEGAL_ADDRESS: kernel `k`\n    error: stores 4 bytes\n\
             cuda-on-cpu: cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS: kernel `k`, reported above\n\
             cuda-on-cpu: cuMemFree_v2: CUDA_ERROR_ILLEGAL_ADDRESS: kernel `k`, reported above\n\
             cuda-on-cpu: cuMemAlloc_v2: CUDA_ERROR_INVALID_VALUE: a pointer is null\n\
             cuda-on-cpu: cuMemFree_v2: CUDA_ERROR_INVALID_VALUE: a pointer is null\n"
        );
    }
}
