//! Reader of GGUF files, versions 2 and 3 (the specification is `docs/gguf.md` in ggml's
//! repository).
//!
//! ```text
//!   magic "GGUF" · version u32 · count of tensors u64 · count of entries u64
//!   entries:   key · type u32 · value                          (strings: length u64, bytes)
//!   tensors:   name · dimensions u32 · extents u64… · format u32 · offset u64
//!   padding to general.alignment, then the tensors' bytes, whose offsets count from here
//! ```
//!
//! A model may be split into parts `NAME-00001-of-00003.gguf`. [`Gguf::open`] accepts the path of
//! any part, opens all parts, and takes the metadata from the first.

mod header;
mod value;

pub use value::{MetadataArray, MetadataValue, ValueType};

use super::FileTensor;
use super::bytes::{FileBytes, name};
use crate::error::{Error, Result};
use header::{GgufFile, GgufHeader, GgufRecord, MetadataEntry};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use value::describe;

/// The most parts of a split model, whose count has 16 bits.
const MAX_PARTS: u64 = u16::MAX as u64;

/// A GGUF file, or all parts of a split one.
#[derive(Debug)]
pub struct Gguf {
    parts: Vec<GgufFile>,
    entries: Vec<MetadataEntry>,
    by_key: HashMap<String, usize>,
    version: u32,
    tensors: Vec<GgufRecord>,
    by_name: HashMap<String, usize>,
}

impl Gguf {
    /// Maps a file, or all parts of a split model, and reads the headers.
    ///
    /// # Errors
    /// If a file cannot be opened or mapped, is not a GGUF file of version 2 or 3, or is truncated
    /// or damaged. Also if a tensor has an unknown format, or a part of a split model is missing.
    pub fn open(path: &Path) -> Result<Gguf> {
        let map = |path: &Path| FileBytes::map(path).map(|bytes| GgufFile { file: name(path), bytes });
        let given = map(path)?;
        let header = given.header(0)?;
        let count = header.number(&given, "split.count", 1, "1 to 65535 parts", |n| (1..=MAX_PARTS).contains(&n))?;
        if count == 1 {
            return Gguf::assemble(vec![(given, header)]);
        }
        let parts = (1..=count).enumerate().map(|(at, number)| {
            let part = map(&part_path(path, number, count)?)?;
            let header = part.header(at)?;
            let found = header.number(&part, "split.no", u64::MAX, "the number of the part", |_| true)?;
            if found != number - 1 {
                let problem = format!("expected {}, as in the name of the file, found {found}", number - 1);
                return Err(Error::field(&part.file, "metadata `split.no`", problem));
            }
            Ok((part, header))
        });
        Gguf::assemble(parts.collect::<Result<Vec<_>>>()?)
    }

    /// Reads a file from memory. Error messages use the name `file`.
    ///
    /// # Errors
    /// If the bytes are not a GGUF file of version 2 or 3, are truncated or damaged, or are part of
    /// a split model. Also if a tensor has an unknown format.
    pub fn from_bytes(file: &str, bytes: Vec<u8>) -> Result<Gguf> {
        let part = GgufFile { file: file.to_owned(), bytes: FileBytes::Owned(bytes) };
        let header = part.header(0)?;
        let count = header.number(&part, "split.count", 1, "1 to 65535 parts", |n| (1..=MAX_PARTS).contains(&n))?;
        match count {
            1 => Gguf::assemble(vec![(part, header)]),
            _ => {
                let needed = format!("a model of {count} parts in memory");
                Err(Error::unsupported(file, "metadata `split.count`", needed, "split models opened by path"))
            }
        }
    }

    /// Joins the parts of a model.
    fn assemble(of: Vec<(GgufFile, GgufHeader)>) -> Result<Gguf> {
        let expected = match of.first() {
            Some((part, header)) => header.number(part, "split.tensors.count", 0, "a count of tensors", |_| true)?,
            None => 0,
        };
        let (mut parts, mut tensors, mut entries, mut version) = (Vec::new(), Vec::new(), None, 0);
        for (part, header) in of {
            parts.push(part);
            tensors.extend(header.tensors);
            version = header.version;
            entries.get_or_insert(header.entries);
        }
        let file = parts[0].file.clone();
        if expected != 0 && expected != tensors.len() as u64 {
            let problem = format!("expected {expected} tensors in all parts, found {}", tensors.len());
            return Err(Error::field(&file, "metadata `split.tensors.count`", problem));
        }
        let entries = entries.unwrap_or_default();
        let mut by_key = HashMap::new();
        for (i, entry) in entries.iter().enumerate() {
            if by_key.insert(entry.key.clone(), i).is_some() {
                return Err(Error::Damaged {
                    file,
                    offset: entry.offset as u64,
                    field: format!("metadata entry {i}"),
                    problem: format!("the key `{}` occurs twice", entry.key),
                });
            }
        }
        let mut by_name = HashMap::new();
        for (i, record) in tensors.iter().enumerate() {
            if by_name.insert(record.name.clone(), i).is_some() {
                return Err(Error::tensor(&parts[record.part].file, &record.name, "the name occurs twice"));
            }
        }
        Ok(Gguf { parts, entries, by_key, version, tensors, by_name })
    }

    /// Returns the path of the file, or of the first part of a split model.
    pub fn file(&self) -> &str {
        &self.parts[0].file
    }

    /// Returns the version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the paths of all files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.file.as_str())
    }

    /// Returns the count of files: 1, or the parts of a split model.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns keys and values of the metadata in the order of the file.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, MetadataValue<'_>)> {
        self.entries.iter().map(|entry| (&*entry.key, entry.value()))
    }

    /// Returns keys, types and bytes of the metadata in the order of the file.
    pub(crate) fn raw_metadata(&self) -> impl Iterator<Item = (&str, ValueType, &[u8])> {
        self.entries.iter().map(|entry| (&*entry.key, entry.value_type, &*entry.bytes))
    }

    /// Returns the value of a metadata key.
    pub fn get(&self, key: &str) -> Option<MetadataValue<'_>> {
        self.by_key.get(key).map(|i| self.entries[*i].value())
    }

    /// Returns the tensors in the order of the files.
    pub fn tensors(&self) -> impl Iterator<Item = FileTensor<'_>> {
        self.tensors.iter().map(|record| self.tensor_of(record))
    }

    /// Returns the tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<FileTensor<'_>> {
        self.by_name.get(name).map(|i| self.tensor_of(&self.tensors[*i]))
    }

    fn tensor_of<'a>(&'a self, record: &'a GgufRecord) -> FileTensor<'a> {
        FileTensor {
            name: &record.name,
            format: record.format,
            extents: &record.extents,
            bytes: &self.parts[record.part].bytes[record.bytes.clone()],
        }
    }

    /// Returns an error about a metadata entry that is absent or not what was `expected`.
    pub(crate) fn unexpected(&self, key: &str, expected: impl std::fmt::Display) -> Error {
        let field = format!("metadata `{key}`");
        match self.by_key.get(key).map(|i| &self.entries[*i]) {
            None => Error::field(self.file(), field, format!("expected {expected}, and the file has no such entry")),
            Some(entry) => Error::Damaged {
                file: self.file().to_owned(),
                offset: entry.value_offset as u64,
                field,
                problem: format!("expected {expected}, found {}", describe(&entry.value())),
            },
        }
    }

    /// Returns the value of a metadata key, or `None` if the key is absent. `convert` is an
    /// accessor of [`MetadataValue`]; `expected` describes the type in the error message.
    pub(crate) fn optional<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&MetadataValue<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => convert(&value).map(Some).ok_or_else(|| self.unexpected(key, expected)),
        }
    }

    /// Returns the value of a metadata key as [`optional`](Gguf::optional) does, or an error if the
    /// key is absent.
    pub(crate) fn required<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&MetadataValue<'a>) -> Option<T>,
    ) -> Result<T> {
        self.optional(key, expected, convert)?.ok_or_else(|| self.unexpected(key, expected))
    }
}

/// Returns the path of part `number`, from 1, of a split model. `path` is that of any part.
fn part_path(path: &Path, number: u64, count: u64) -> Result<PathBuf> {
    let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".gguf"));
    // NAME-00001-of-00003: the numbers have five digits.
    let prefix = stem.and_then(|stem| {
        let (rest, of) = stem.rsplit_once("-of-")?;
        let (prefix, part) = rest.rsplit_once('-')?;
        let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        (digits(part) && of.parse() == Ok(count)).then_some(prefix)
    });
    match prefix {
        Some(prefix) => Ok(path.with_file_name(format!("{prefix}-{number:05}-of-{count:05}.gguf"))),
        None => {
            let problem = format!(
                "this is a part of a model of {count} parts, and its name is not NAME-00001-of-{count:05}.gguf: \
                 restore the names of all parts"
            );
            Err(Error::field(&name(path), "name of the file", problem))
        }
    }
}
