//! The end of the process: the summary of findings and leaks, the reports, and the exit code.

use super::process;
use crate::core::leaks::{Leak, LeakCheck};
use crate::core::settings::{OnFinding, Settings};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// A stream of C; only null is passed.
type CFile = std::ffi::c_void;

unsafe extern "C" {
    #[cfg(not(target_os = "linux"))]
    fn atexit(function: extern "C" fn()) -> c_int;
    fn fflush(stream: *mut CFile) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// Whether there is something to do at the end of the process.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// The function that the dynamic linker calls at the end of the process, after all functions of
/// `atexit`. Destructors of the program's own static objects have thus freed their memory before.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".fini_array")]
static FINISH: extern "C" fn() = finish;

/// Prepares the end of the process, if the settings need it.
pub fn prepare(settings: &Settings) {
    let Settings { on_finding, leak_check, error_exit, json, sarif, .. } = settings;
    let summarizes = *on_finding == OnFinding::Continue || *leak_check != LeakCheck::No;
    if summarizes || error_exit.is_some() || json.is_some() || sarif.is_some() {
        PREPARED.store(true, Ordering::Release);
        #[cfg(not(target_os = "linux"))]
        // SAFETY: the library is never unloaded, so the function exists until the process ends.
        unsafe {
            atexit(finish)
        };
    }
}

extern "C" fn finish() {
    if !PREPARED.load(Ordering::Acquire) {
        return;
    }
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
    let process = process();
    if ![0, std::process::id()].contains(&process.initialized.load(Ordering::Acquire)) {
        // The objects belong to the process from which this one was forked.
        return None;
    }
    let driver = &process.driver;
    let Settings { on_finding, error_exit, json, sarif, .. } = &driver.settings;
    // Submitted work may still run.
    driver.engine.wait(driver.engine.last());
    let leaks = driver.leaks();
    let of_kernels = match on_finding {
        OnFinding::Stop => String::new(),
        OnFinding::Continue => driver.findings.summary(),
    };
    for summary in [of_kernels, Leak::summarize(&leaks)].iter().filter(|summary| !summary.is_empty()) {
        eprintln!("cuda-on-cpu: {}", summary.replace('\n', "\n    "));
    }
    for (path, value) in [(json, driver.findings.json(&leaks)), (sarif, driver.findings.sarif(&leaks))] {
        if let Some(path) = path
            && let Err(e) = std::fs::write(path, format!("{value:#}\n"))
        {
            eprintln!("cuda-on-cpu: {path} cannot be written: {e}");
        }
    }
    error_exit.filter(|_| driver.findings.has_errors() || !leaks.is_empty())
}
