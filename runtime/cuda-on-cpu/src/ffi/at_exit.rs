//! The end of the process: the summary of findings, the reports, and the exit code.

use super::process;
use crate::core::settings::{OnFinding, Settings};
use std::ffi::c_int;

/// A stream of C; only null is passed.
type File = std::ffi::c_void;

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
    fn fflush(stream: *mut File) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// Prepares the end of the process, if the settings need it.
pub fn prepare(settings: &Settings) {
    let Settings { on_finding, error_exit, json, sarif, .. } = settings;
    if *on_finding == OnFinding::Continue || error_exit.is_some() || json.is_some() || sarif.is_some() {
        // SAFETY: the library is never unloaded, so the function exists until the process ends.
        unsafe { atexit(finish) };
    }
}

extern "C" fn finish() {
    // A panic must not reach the caller in C.
    let code = std::panic::catch_unwind(report).unwrap_or_default();
    if let Some(code) = code {
        // SAFETY: null flushes the output of the program, which a return would flush too. Then the
        // process ends.
        unsafe {
            fflush(std::ptr::null_mut());
            _exit(code)
        }
    }
}

/// Writes the summary and the reports. Returns the exit code, if the findings determine it.
fn report() -> Option<c_int> {
    let driver = &process().driver;
    let Settings { on_finding, error_exit, json, sarif, .. } = &driver.settings;
    // Submitted work may still run.
    driver.engine.wait(driver.engine.last());
    if *on_finding == OnFinding::Continue {
        let summary = driver.findings.summary();
        if !summary.is_empty() {
            eprintln!("cuda-on-cpu: {}", summary.replace('\n', "\n    "));
        }
    }
    for (path, value) in [(json, driver.findings.json()), (sarif, driver.findings.sarif())] {
        if let Some(path) = path
            && let Err(e) = std::fs::write(path, format!("{value:#}\n"))
        {
            eprintln!("cuda-on-cpu: {path} cannot be written: {e}");
        }
    }
    error_exit.filter(|_| driver.findings.has_errors())
}
