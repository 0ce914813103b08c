//! The calls that created the objects of the process, recorded for the leak check.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest number of functions of the program in a report.
const MAX_FRAMES: usize = 8;

/// The call that created an object. Without the leak check, no call is recorded.
#[derive(Clone, Default, Debug)]
pub struct CallOrigin {
    /// The name of the called function.
    pub function: &'static str,
    /// The number of the call in the process, from 1; 0 for calls of kernels.
    pub number: u64,
    stack: Option<Arc<Backtrace>>,
}

/// A function of the program on the stack of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostFrame {
    /// The name of the function.
    pub function: String,
    /// The file and the line, if the program has debug information.
    pub place: Option<(String, u32)>,
}

thread_local! {
    /// The call that the thread makes or made last: its function and number.
    static CALL: Cell<Option<(&'static str, u64)>> = const { Cell::new(None) };
}

/// The number of calls of the process, as fault injection numbers them.
#[derive(Debug, Default)]
pub struct CallCounter(AtomicU64);

impl CallCounter {
    /// Begins a call of the current thread. Objects that the thread creates until its next call
    /// have this call as their origin.
    pub fn begin(&self, function: &'static str) {
        CALL.set(Some((function, 1 + self.0.fetch_add(1, Ordering::Relaxed))));
    }
}

impl CallOrigin {
    /// Returns the call of the current thread, with its stack.
    pub fn current() -> CallOrigin {
        match CALL.get() {
            Some((function, number)) => {
                CallOrigin { function, number, stack: Some(Arc::new(Backtrace::force_capture())) }
            }
            None => CallOrigin::default(),
        }
    }

    /// Returns the origin of objects that kernels create by calls of `function`.
    pub fn of_kernels(function: &'static str) -> CallOrigin {
        CallOrigin { function, ..CallOrigin::default() }
    }

    /// Returns the functions of the program that led to the call, innermost first.
    pub fn frames(&self) -> Vec<HostFrame> {
        let Some(stack) = &self.stack else { return Vec::new() };
        let mut frames = frames(&stack.to_string());
        // The frames up to the exported function are those of this library.
        let own = frames.iter().rposition(|frame| frame.function == self.function);
        frames.drain(..own.map_or(frames.len(), |own| own + 1));
        // The callers of `main` are not the program's.
        let main = frames.iter().position(|frame| frame.function == "main");
        frames.truncate(main.map_or(frames.len(), |main| main + 1));
        frames.retain(|frame| frame.function != "<unknown>" && !frame.is_of_standard_library());
        frames.truncate(MAX_FRAMES);
        frames
    }
}

impl HostFrame {
    /// Returns whether the function belongs to Rust's standard library.
    fn is_of_standard_library(&self) -> bool {
        let folders = ["/rustc/", "/rustlib/src/rust/library/"];
        self.place.as_ref().is_some_and(|(file, _)| folders.iter().any(|folder| file.contains(folder)))
    }
}

/// Parses a stack as printed by the standard library: `  3: function`, and `at file:line:column`
/// below it.
fn frames(text: &str) -> Vec<HostFrame> {
    let mut frames: Vec<HostFrame> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            let mut parts = place.rsplitn(3, ':');
            let (_column, line, file) = (parts.next(), parts.next(), parts.next());
            let place = line.and_then(|line| line.parse().ok()).zip(file);
            if let (Some(frame), Some((line, file))) = (frames.last_mut(), place) {
                frame.place = Some((file.to_string(), line));
            }
        } else if let Some((number, function)) = line.split_once(": ")
            && number.bytes().all(|digit| digit.is_ascii_digit())
        {
            frames.push(HostFrame { function: function.to_string(), place: None });
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_stack_is_parsed() {
        let text = "   0: <T as core::Trait>::call\n             at /rust/core/src/ops.rs:250:5\n   \
                    1: cuMemAlloc_v2\n   2: main\n             at ./app.c:12:7\n  10: <unknown>\n";
        let frame = |function: &str, place: Option<(&str, u32)>| HostFrame {
            function: function.to_string(),
            place: place.map(|(file, line)| (file.to_string(), line)),
        };
        assert_eq!(
            frames(text),
            [
                frame("<T as core::Trait>::call", Some(("/rust/core/src/ops.rs", 250))),
                frame("cuMemAlloc_v2", None),
                frame("main", Some(("./app.c", 12))),
                frame("<unknown>", None),
            ]
        );
    }

    #[test]
    fn calls_have_numbers_and_stacks() {
        assert_eq!(CallOrigin::current().number, 0);
        let counter = CallCounter::default();
        counter.begin("cuInit");
        counter.begin("cuMemAlloc_v2");
        let origin = CallOrigin::current();
        assert_eq!((origin.function, origin.number), ("cuMemAlloc_v2", 2));
        let stack = frames(&origin.stack.as_ref().unwrap().to_string());
        assert!(stack.iter().any(|frame| frame.function.contains("calls_have_numbers_and_stacks")), "{stack:?}");
        assert!(origin.frames().is_empty(), "the stack has no exported function");
    }
}
