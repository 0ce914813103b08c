//! The bytes of a file, and a cursor whose errors name the field that is read.

use crate::error::{Error, Result};
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;

/// The bytes of a file, mapped or in memory.
#[derive(Debug)]
pub(crate) enum FileBytes {
    Mapped(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl FileBytes {
    /// Maps a file into memory. The operating system reads a page at its first use.
    pub fn map(path: &Path) -> Result<FileBytes> {
        let failed = |action| move |source| Error::Io { action, path: path.to_owned(), source };
        let file = File::open(path).map_err(failed("open"))?;
        let metadata = file.metadata().map_err(failed("read"))?;
        if !metadata.is_file() {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
            return Err(failed("map")(source));
        }
        // The operating system refuses to map an empty file.
        if metadata.len() == 0 {
            return Ok(FileBytes::Owned(Vec::new()));
        }
        // SAFETY: the map is read-only. Rust assumes that shared bytes do not change, and the crate
        // cannot prevent another process from writing to the file. This crate limits the effect of
        // such changes. Text and metadata of GGUF are checked and read in copies, and lengths and
        // offsets are checked whenever they are read. Only elements of tensors are read in place,
        // and any bytes are valid elements. The `safetensors` crate parses its header in place. If
        // another process truncates the file, reading beyond its end raises SIGBUS, which ends
        // this process.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed("map"))?;
        Ok(FileBytes::Mapped(map))
    }

    /// Reads a whole small file, such as JSON. Rejects a file of more than `limit` bytes.
    pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
        let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > limit {
            let problem = format!("the file has {length} bytes; at most {limit} are read");
            return Err(Error::field(&name(path), "size", problem));
        }
        std::fs::read(path).map_err(failed)
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            FileBytes::Mapped(map) => map,
            FileBytes::Owned(bytes) => bytes,
        }
    }
}

/// Returns a path for messages.
pub(crate) fn name(path: &Path) -> String {
    path.display().to_string()
}

/// A position in a file from which little-endian values are read. Every read that passes the end of
/// the file is an error.
#[derive(Debug)]
pub(crate) struct FileCursor<'a> {
    pub file: &'a str,
    pub bytes: &'a [u8],
    pub offset: usize,
}

impl<'a> FileCursor<'a> {
    /// Returns an error about the field at `offset`.
    pub fn damaged(&self, offset: usize, field: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Damaged {
            file: self.file.to_owned(),
            offset: offset as u64,
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// Returns the count of bytes until the end of the file.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Returns the range of the next `n` bytes and moves past them. Calls `field` for the field's
    /// name only on failure.
    pub fn take(&mut self, n: u64, field: impl FnOnce() -> String) -> Result<Range<usize>> {
        match usize::try_from(n).ok().filter(|n| *n <= self.remaining()) {
            Some(n) => {
                let range = self.offset..self.offset + n;
                self.offset = range.end;
                Ok(range)
            }
            None => {
                let left = self.remaining();
                let problem =
                    format!("needs {n} bytes, and the file ends after {left} more: it is truncated or damaged");
                Err(self.damaged(self.offset, field(), problem))
            }
        }
    }

    /// Reads `N` bytes.
    pub fn array<const N: usize>(&mut self, field: impl FnOnce() -> String) -> Result<[u8; N]> {
        let range = self.take(N as u64, field)?;
        Ok(std::array::from_fn(|i| self.bytes[range.start + i]))
    }

    /// Reads a 32-bit integer.
    pub fn u32(&mut self, field: impl FnOnce() -> String) -> Result<u32> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Reads a 64-bit integer.
    pub fn u64(&mut self, field: impl FnOnce() -> String) -> Result<u64> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Reads a string: a 64-bit length, then bytes that may not be UTF-8. Returns the range of the
    /// bytes.
    pub fn string(&mut self, field: impl Fn() -> String) -> Result<Range<usize>> {
        let length = self.u64(|| format!("length of {}", field()))?;
        self.take(length, field)
    }
}
