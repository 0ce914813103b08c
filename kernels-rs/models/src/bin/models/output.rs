//! Writes to the standard output and to stderr that never panic, as `print!` and `eprintln!` do.

use models::Error;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Writes a text to the standard output at once. Returns whether the output is still read: a reader
/// such as `head` may close the pipe early.
///
/// # Errors
/// If the output cannot be written for another reason, such as a full disk.
pub fn write_output(text: &str) -> Result<bool, Error> {
    is_read(write_and_flush(&mut std::io::stdout().lock(), text))
}

/// Writes a line to stderr. Drops the line if stderr is closed or full, because a message is not
/// worth the end of the command.
pub fn write_message(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn write_and_flush(output: &mut impl Write, text: &str) -> std::io::Result<()> {
    output.write_all(text.as_bytes())?;
    // The standard output keeps the text after the last line break, and drops errors at the end.
    output.flush()
}

/// Turns the result of a write into whether the output is read.
fn is_read(written: std::io::Result<()>) -> Result<bool, Error> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(source) => Err(Error::Io { action: "write to", path: PathBuf::from("the standard output"), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_read, write_and_flush};
    use std::io::{BufWriter, Error, ErrorKind, Write};

    /// An output whose writes fail.
    struct FailingOutput(ErrorKind);

    impl Write for FailingOutput {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(Error::from(self.0))
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_closed_pipe_is_no_error() {
        // The buffer holds the text until it is flushed, as the standard output does.
        let written = |kind| is_read(write_and_flush(&mut BufWriter::new(FailingOutput(kind)), "text"));
        assert!(!written(ErrorKind::BrokenPipe).unwrap());
        let error = written(ErrorKind::StorageFull).unwrap_err().to_string();
        assert!(error.starts_with("cannot write to the standard output: "), "{error}");
        assert!(is_read(write_and_flush(&mut Vec::new(), "text")).unwrap());
    }
}
