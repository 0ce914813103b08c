//! Errors of the compiler and the runtime as exceptions.

use kernel_dsl::compiler::{self, Errors};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use runtime::interpreter::{Report, report::Finding};

create_exception!(kernels_rs, Error, PyException, "Base class of the errors of this package.");
create_exception!(
    kernels_rs,
    CompileError,
    Error,
    "Mistakes in a kernel. `errors` has a dict for each: message, notes, help, file, line, column."
);
create_exception!(kernels_rs, LaunchError, Error, "Arguments that do not meet the kernel's contract; nothing has run.");
create_exception!(
    kernels_rs,
    Violation,
    Error,
    "A launch that violated a check, such as a race. `findings` has a dict for each place; `check`, `file`, `line` \
     and `column` are those of the first."
);
create_exception!(kernels_rs, DeviceError, Error, "An error of a device or its driver.");

/// Adds the exceptions to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("Error", py.get_type::<Error>())?;
    m.add("CompileError", py.get_type::<CompileError>())?;
    m.add("LaunchError", py.get_type::<LaunchError>())?;
    m.add("Violation", py.get_type::<Violation>())?;
    m.add("DeviceError", py.get_type::<DeviceError>())
}

/// Converts an error of the runtime.
pub fn runtime(py: Python<'_>, error: runtime::Error) -> PyErr {
    if let Some(report) = error.report() {
        let raised = Violation::new_err(error.to_string());
        // Attributes of a new exception can be set; if memory is short, the text remains.
        let _ = violation(raised.value(py), report);
        return raised;
    }
    match &error {
        runtime::Error::Compile { source, .. } => compile(py, source),
        runtime::Error::Refused { .. }
        | runtime::Error::RefusedArguments { .. }
        | runtime::Error::View { .. }
        | runtime::Error::TooLarge(_) => LaunchError::new_err(error.to_string()),
        _ => DeviceError::new_err(error.to_string()),
    }
}

/// Converts errors of the compiler, each with an excerpt of the source.
pub fn compile(py: Python<'_>, errors: &Errors) -> PyErr {
    let text: Vec<_> = errors.0.iter().map(excerpt).collect();
    let raised = CompileError::new_err(text.join("\n\n"));
    let _ = mistakes(raised.value(py), errors);
    raised
}

fn mistakes(raised: &Bound<'_, PyAny>, errors: &Errors) -> PyResult<()> {
    let all = PyList::empty(raised.py());
    for error in &errors.0 {
        let one = PyDict::new(raised.py());
        one.set_item("message", &error.message)?;
        one.set_item("notes", &error.notes)?;
        one.set_item("help", &error.help)?;
        let place = error.place.as_ref();
        one.set_item("file", place.map(|(source, _)| &source.file))?;
        one.set_item("line", place.map(|(source, span)| source.line + u32::from(span.line)))?;
        one.set_item("column", place.map(|(_, span)| span.column))?;
        all.append(one)?;
    }
    raised.setattr("errors", all)
}

fn violation(raised: &Bound<'_, PyAny>, report: &Report) -> PyResult<()> {
    let all = PyList::empty(raised.py());
    for Finding { check, severity, message, place, thread, count, .. } in &report.findings {
        let one = PyDict::new(raised.py());
        one.set_item("check", check.name())?;
        one.set_item("severity", severity.to_string())?;
        one.set_item("message", message)?;
        one.set_item("function", &place.function)?;
        one.set_item("file", &place.file)?;
        one.set_item("line", place.line)?;
        one.set_item("column", place.column)?;
        one.set_item("block", thread.block.to_vec())?;
        one.set_item("thread", thread.thread.to_vec())?;
        one.set_item("count", count)?;
        all.append(one)?;
    }
    if let Ok(first) = all.get_item(0) {
        for name in ["check", "file", "line", "column"] {
            raised.setattr(name, first.get_item(name)?)?;
        }
    }
    raised.setattr("findings", all)
}

/// Returns the error in rustc's format: message, place, line of the source, notes and help.
fn excerpt(error: &compiler::Error) -> String {
    let mut text = format!("error: {}", error.message);
    let mut gutter = String::new();
    if let Some((source, span)) = &error.place {
        let line = source.line + u32::from(span.line);
        let number = line.to_string();
        gutter = " ".repeat(number.len());
        text += &format!("\n{gutter}--> {}:{line}:{}", source.file, span.column);
        if let Some(code) = source.line_text(u32::from(span.line)) {
            let start = usize::from(span.column).saturating_sub(1);
            let whole = code.chars().count();
            let end = if span.end_line == span.line { usize::from(span.end_column).saturating_sub(1) } else { whole };
            let marks = "^".repeat(end.min(whole).saturating_sub(start).max(1));
            // Tabs keep their width below the code.
            let indent: String = code.chars().take(start).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            text += &format!("\n{gutter} |\n{number} | {code}\n{gutter} | {indent}{marks}");
        }
    }
    for note in &error.notes {
        text += &format!("\n{gutter} = note: {note}");
    }
    if let Some(help) = &error.help {
        text += &format!("\n{gutter} = help: {help}");
    }
    text
}
