//! Reader of GGUF files, versions 2 and 3 (the specification is `docs/gguf.md` in ggml's
//! repository).
//!
//! ```text
//!   magic "GGUF" · version u32 · tensors u64 · entries u64
//!   entries:   key · type u32 · value                          (strings: length u64, bytes)
//!   tensors:   name · dimensions u32 · extents u64… · format u32 · offset u64
//!   padding to general.alignment, then the tensors' bytes at their offsets
//! ```
//!
//! A model may be split into parts `NAME-00001-of-00003.gguf`; [`Gguf::open`] accepts any of them
//! and opens all. Metadata is that of the first part.

use super::bytes::{FileBytes, FileCursor, name};
use super::{FileTensor, TensorFormat};
use crate::error::{Error, Result, quoted};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The largest count of metadata entries, and of tensors. Real files have some 50 entries and 1,000
/// tensors.
const MAX_ENTRIES: u64 = 1 << 16;
const MAX_TENSORS: u64 = 1 << 18;

/// The longest key or tensor name. The specification sets this limit for keys.
const MAX_NAME_BYTES: usize = 65_535;

/// The most dimensions of a tensor in ggml.
const MAX_DIMENSIONS: u32 = 4;

/// The deepest nesting of arrays that is read.
const MAX_NESTING: u32 = 8;

/// The most parts of a split model: their count has 16 bits.
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

/// A file of a model, the only one or one of several.
#[derive(Debug)]
struct GgufFile {
    file: String,
    bytes: FileBytes,
}

/// A metadata entry: where its value is.
#[derive(Debug)]
struct MetadataEntry {
    key: String,
    value_type: ValueType,
    /// The bytes of the value, without its type.
    value: Range<usize>,
    /// Where the entry begins.
    offset: usize,
}

/// A tensor: where its bytes are.
#[derive(Debug)]
struct GgufRecord {
    name: String,
    format: TensorFormat,
    extents: Vec<u64>,
    part: usize,
    bytes: Range<usize>,
    /// The offset of the field that says where the bytes are.
    field: usize,
}

/// The type of a metadata value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    /// Every type; the number of a type in a file is its position.
    pub const ALL: [ValueType; 13] = {
        use ValueType::*;
        [U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64]
    };

    /// Returns the bytes of a value, `None` where they vary.
    const fn bytes(self) -> Option<u64> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::String | ValueType::Array => None,
        }
    }

    /// Returns the name as GGUF tools print it.
    pub const fn name(self) -> &'static str {
        [
            "uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64",
            "int64", "float64",
        ][self as usize]
    }
}

/// A metadata value.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum MetadataValue<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Bytes that should be UTF-8.
    String(&'a [u8]),
    Array(MetadataArray<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of metadata values of one type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MetadataArray<'a> {
    /// The type of the elements.
    pub element: ValueType,
    /// The count of elements.
    pub length: u64,
    bytes: &'a [u8],
}

impl<'a> MetadataArray<'a> {
    /// Returns the elements in order.
    pub fn iter(&self) -> impl Iterator<Item = MetadataValue<'a>> + use<'a> {
        let mut cursor = FileCursor { file: "", bytes: self.bytes, offset: 0 };
        let (element, length) = (self.element, self.length);
        // The reader has checked that the elements fill the bytes.
        (0..length).map_while(move |_| value(&mut cursor, element, 0).ok())
    }
}

impl<'a> MetadataValue<'a> {
    /// Returns the type of the value.
    pub fn value_type(&self) -> ValueType {
        match self {
            MetadataValue::U8(_) => ValueType::U8,
            MetadataValue::I8(_) => ValueType::I8,
            MetadataValue::U16(_) => ValueType::U16,
            MetadataValue::I16(_) => ValueType::I16,
            MetadataValue::U32(_) => ValueType::U32,
            MetadataValue::I32(_) => ValueType::I32,
            MetadataValue::F32(_) => ValueType::F32,
            MetadataValue::Bool(_) => ValueType::Bool,
            MetadataValue::String(_) => ValueType::String,
            MetadataValue::Array(_) => ValueType::Array,
            MetadataValue::U64(_) => ValueType::U64,
            MetadataValue::I64(_) => ValueType::I64,
            MetadataValue::F64(_) => ValueType::F64,
        }
    }

    /// Returns an integer of any width that is not negative.
    pub fn unsigned(&self) -> Option<u64> {
        match *self {
            MetadataValue::U8(v) => Some(v.into()),
            MetadataValue::U16(v) => Some(v.into()),
            MetadataValue::U32(v) => Some(v.into()),
            MetadataValue::U64(v) => Some(v),
            MetadataValue::I8(v) => v.try_into().ok(),
            MetadataValue::I16(v) => v.try_into().ok(),
            MetadataValue::I32(v) => v.try_into().ok(),
            MetadataValue::I64(v) => v.try_into().ok(),
            _ => None,
        }
    }

    /// Returns a floating-point number of either width.
    pub fn float(&self) -> Option<f64> {
        match *self {
            MetadataValue::F32(v) => Some(v.into()),
            MetadataValue::F64(v) => Some(v),
            _ => None,
        }
    }

    /// Returns a truth value.
    pub fn bool(&self) -> Option<bool> {
        match *self {
            MetadataValue::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// Returns a string that is UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        match *self {
            MetadataValue::String(v) => std::str::from_utf8(v).ok(),
            _ => None,
        }
    }

    /// Returns an array.
    pub fn array(&self) -> Option<MetadataArray<'a>> {
        match *self {
            MetadataValue::Array(v) => Some(v),
            _ => None,
        }
    }
}

/// Reads a value of a type at the cursor.
fn value<'a>(cursor: &mut FileCursor<'a>, value_type: ValueType, nesting: u32) -> Result<MetadataValue<'a>> {
    let field = || "value".to_owned();
    Ok(match value_type {
        ValueType::U8 => MetadataValue::U8(u8::from_le_bytes(cursor.array(field)?)),
        ValueType::I8 => MetadataValue::I8(i8::from_le_bytes(cursor.array(field)?)),
        ValueType::U16 => MetadataValue::U16(u16::from_le_bytes(cursor.array(field)?)),
        ValueType::I16 => MetadataValue::I16(i16::from_le_bytes(cursor.array(field)?)),
        ValueType::U32 => MetadataValue::U32(u32::from_le_bytes(cursor.array(field)?)),
        ValueType::I32 => MetadataValue::I32(i32::from_le_bytes(cursor.array(field)?)),
        ValueType::F32 => MetadataValue::F32(f32::from_le_bytes(cursor.array(field)?)),
        ValueType::U64 => MetadataValue::U64(u64::from_le_bytes(cursor.array(field)?)),
        ValueType::I64 => MetadataValue::I64(i64::from_le_bytes(cursor.array(field)?)),
        ValueType::F64 => MetadataValue::F64(f64::from_le_bytes(cursor.array(field)?)),
        ValueType::Bool => {
            let at = cursor.offset;
            match cursor.array::<1>(field)? {
                [0] => MetadataValue::Bool(false),
                [1] => MetadataValue::Bool(true),
                [byte] => {
                    let problem = format!("expected 0 or 1 for a bool, found {byte}");
                    return Err(cursor.damaged(at, field(), problem));
                }
            }
        }
        ValueType::String => {
            let range = cursor.string(field)?;
            MetadataValue::String(&cursor.bytes[range])
        }
        ValueType::Array => {
            let element = read_type(cursor, || "element type of the array".to_owned())?;
            let at = cursor.offset;
            let length = cursor.u64(|| "length of the array".to_owned())?;
            let start = cursor.offset;
            match element.bytes() {
                // Truth values must be 0 or 1, so they are checked one by one, like strings and
                // arrays.
                Some(bytes) if element != ValueType::Bool => {
                    let Some(bytes) = length.checked_mul(bytes) else {
                        let problem = format!("{length} elements of {bytes} bytes exceed 64 bits");
                        return Err(cursor.damaged(at, "length of the array", problem));
                    };
                    cursor.take(bytes, || format!("array of {length} {}", element.name()))?;
                }
                _ => {
                    if nesting == MAX_NESTING {
                        let problem = format!("arrays are nested more than {MAX_NESTING} deep");
                        return Err(cursor.damaged(at, "array", problem));
                    }
                    // Each element has at least one byte, so with a false length the loop ends at
                    // the end of the file.
                    for _ in 0..length {
                        value(cursor, element, nesting + 1)?;
                    }
                }
            }
            MetadataValue::Array(MetadataArray { element, length, bytes: &cursor.bytes[start..cursor.offset] })
        }
    })
}

/// Reads the number of a type.
fn read_type(cursor: &mut FileCursor<'_>, field: impl Fn() -> String) -> Result<ValueType> {
    let at = cursor.offset;
    let number = cursor.u32(&field)?;
    ValueType::ALL.get(number as usize).copied().ok_or_else(|| {
        cursor.damaged(at, field(), format!("expected the number of a value type, 0 to 12, found {number}"))
    })
}

impl GgufFile {
    /// Reads the header.
    fn header(&self, part: usize) -> Result<GgufHeader> {
        let mut cursor = FileCursor { file: &self.file, bytes: &self.bytes, offset: 0 };
        let magic: [u8; 4] = cursor.array(|| "magic".to_owned())?;
        if magic != *b"GGUF" {
            let problem = format!("expected `GGUF`, found {}: this is not a GGUF file", quoted(&magic));
            return Err(cursor.damaged(0, "magic", problem));
        }
        let version = cursor.u32(|| "version".to_owned())?;
        if !matches!(version, 2 | 3) {
            let needed = match version {
                0 => "version 0".to_owned(),
                _ if version & 0xffff == 0 => "a big-endian file".to_owned(),
                _ => format!("version {version}"),
            };
            return Err(Error::unsupported(&self.file, "version at byte 4", needed, "little-endian versions 2 and 3"));
        }
        let tensors = count(&mut cursor, "count of tensors", MAX_TENSORS)?;
        let entries = count(&mut cursor, "count of metadata entries", MAX_ENTRIES)?;
        let entries = (0..entries).map(|i| entry(&mut cursor, i)).collect::<Result<Vec<MetadataEntry>>>()?;
        let tensors = (0..tensors).map(|i| record(&mut cursor, i, part)).collect::<Result<Vec<GgufRecord>>>()?;
        let mut header = GgufHeader { version, entries, tensors };
        header.locate_tensors(self, cursor.offset)?;
        Ok(header)
    }
}

/// Reads a count that is at most `limit`.
fn count(cursor: &mut FileCursor<'_>, field: &str, limit: u64) -> Result<u64> {
    let at = cursor.offset;
    let count = cursor.u64(|| field.to_owned())?;
    if count > limit {
        return Err(cursor.damaged(at, field, format!("expected at most {limit}, found {count}")));
    }
    Ok(count)
}

/// Reads the name of an entry or tensor.
fn read_name(cursor: &mut FileCursor<'_>, field: impl Fn() -> String) -> Result<String> {
    let at = cursor.offset;
    let range = cursor.string(&field)?;
    let bytes = &cursor.bytes[range];
    if bytes.is_empty() || bytes.len() > MAX_NAME_BYTES {
        let problem = format!("expected 1 to {MAX_NAME_BYTES} bytes, found {}", bytes.len());
        return Err(cursor.damaged(at, field(), problem));
    }
    String::from_utf8(bytes.to_vec())
        .map_err(|_| cursor.damaged(at, field(), format!("expected UTF-8, found {}", quoted(bytes))))
}

/// Reads metadata entry number `i`.
fn entry(cursor: &mut FileCursor<'_>, i: u64) -> Result<MetadataEntry> {
    let offset = cursor.offset;
    let key = read_name(cursor, || format!("key of metadata entry {i}"))?;
    let value_type = read_type(cursor, || format!("type of metadata `{key}`"))?;
    let start = cursor.offset;
    value(cursor, value_type, 0).map_err(|error| match error {
        Error::Damaged { file, offset, field, problem } => {
            Error::Damaged { file, offset, field: format!("metadata `{key}`, {field}"), problem }
        }
        other => other,
    })?;
    Ok(MetadataEntry { key, value_type, value: start..cursor.offset, offset })
}

/// Reads tensor number `i`, whose offset is given relative to the beginning of the data.
fn record(cursor: &mut FileCursor<'_>, i: u64, part: usize) -> Result<GgufRecord> {
    let name = read_name(cursor, || format!("name of tensor {i}"))?;
    let at = cursor.offset;
    let dimensions = cursor.u32(|| format!("dimensions of tensor `{name}`"))?;
    if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        let problem = format!("expected 1 to {MAX_DIMENSIONS}, found {dimensions}");
        return Err(cursor.damaged(at, format!("dimensions of tensor `{name}`"), problem));
    }
    let field = || format!("extents of tensor `{name}`");
    let at = cursor.offset;
    let mut extents = (0..dimensions).map(|_| cursor.u64(field)).collect::<Result<Vec<u64>>>()?;
    let elements = extents.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
    let Some(elements) = elements.filter(|elements| *elements > 0) else {
        let problem = format!("expected a product from 1 to 2^64 - 1, found {extents:?}");
        return Err(cursor.damaged(at, field(), problem));
    };
    let number = cursor.u32(|| format!("format of tensor `{name}`"))?;
    let Some(format) = TensorFormat::from_number(number) else {
        let all: Vec<String> = TensorFormat::ALL.iter().map(|format| format!("{} {format}", format.number())).collect();
        let needed = format!("format number {number}");
        return Err(Error::unsupported(cursor.file, format!("tensor `{name}`"), needed, all.join(", ")));
    };
    let Some(bytes) = format.bytes(extents[0], elements) else {
        let blocks = format.block_elements();
        let problem = format!("rows of {format} are multiples of {blocks} elements, and these have {}", extents[0]);
        return Err(cursor.damaged(at, field(), problem));
    };
    // Files have the innermost extent first.
    extents.reverse();
    let field = cursor.offset;
    let offset = cursor.u64(|| format!("offset of tensor `{name}`"))?;
    let range = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(bytes.try_into().ok()?)?));
    let Some(bytes) = range else {
        let problem = format!("{bytes} bytes at offset {offset} exceed the address space");
        return Err(cursor.damaged(field, format!("offset of tensor `{name}`"), problem));
    };
    Ok(GgufRecord { name, format, extents, part, bytes, field })
}

/// The contents of the header of one file.
#[derive(Debug)]
struct GgufHeader {
    version: u32,
    entries: Vec<MetadataEntry>,
    tensors: Vec<GgufRecord>,
}

impl GgufHeader {
    /// Finds an entry and its value.
    fn get<'a>(&'a self, part: &'a GgufFile, key: &str) -> Option<(&'a MetadataEntry, MetadataValue<'a>)> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some((entry, entry.value(part)))
    }

    /// Returns an integer of the metadata, or `default` if it is absent. Rejects a value that
    /// `accept` refuses.
    fn number(&self, part: &GgufFile, key: &str, default: u64, expected: &str, accept: fn(u64) -> bool) -> Result<u64> {
        let Some((entry, value)) = self.get(part, key) else { return Ok(default) };
        value.unsigned().filter(|number| accept(*number)).ok_or_else(|| Error::Damaged {
            file: part.file.clone(),
            offset: entry.value.start as u64,
            field: format!("metadata `{key}`"),
            problem: format!("expected {expected}, found {}", describe(&value)),
        })
    }

    /// Checks that the tensors lie in the file after the header, aligned and without overlap, and
    /// makes their ranges absolute.
    fn locate_tensors(&mut self, part: &GgufFile, end: usize) -> Result<()> {
        let accept = |n: u64| n.is_power_of_two() && n <= 1 << 20;
        let alignment = self.number(part, "general.alignment", 32, "a power of two up to 1048576", accept)?;
        let length = part.bytes.len();
        let start = (end as u64).next_multiple_of(alignment);
        let damaged = |record: &GgufRecord, problem: String| Error::Damaged {
            file: part.file.clone(),
            offset: record.field as u64,
            field: format!("offset of tensor `{}`", record.name),
            problem,
        };
        for record in &mut self.tensors {
            let Range { start: from, end: to } = record.bytes;
            if !(from as u64).is_multiple_of(alignment) {
                return Err(damaged(record, format!("expected a multiple of the alignment {alignment}, found {from}")));
            }
            let absolute = |offset: usize| usize::try_from(start).ok()?.checked_add(offset).filter(|at| *at <= length);
            let (Some(from), Some(to)) = (absolute(from), absolute(to)) else {
                let needed = start as u128 + to as u128;
                let problem = format!("the tensor ends at byte {needed}, the file at byte {length}: it is truncated");
                return Err(damaged(record, problem));
            };
            record.bytes = from..to;
        }
        let mut order: Vec<&GgufRecord> = self.tensors.iter().collect();
        order.sort_by_key(|record| record.bytes.start);
        match order.windows(2).find(|pair| pair[0].bytes.end > pair[1].bytes.start) {
            Some(pair) => Err(damaged(pair[1], format!("the tensor shares bytes with tensor `{}`", pair[0].name))),
            None => Ok(()),
        }
    }
}

impl MetadataEntry {
    /// Returns the value. The reader has checked it, so that the fallback is never taken.
    fn value<'a>(&self, part: &'a GgufFile) -> MetadataValue<'a> {
        let mut cursor = FileCursor { file: &part.file, bytes: &part.bytes[self.value.clone()], offset: 0 };
        value(&mut cursor, self.value_type, 0).unwrap_or(MetadataValue::Bool(false))
    }
}

/// Describes a value for a message.
fn describe(value: &MetadataValue<'_>) -> String {
    let text = match value {
        MetadataValue::String(bytes) => quoted(bytes),
        MetadataValue::Array(array) => return format!("an array of {} {}", array.length, array.element.name()),
        MetadataValue::Bool(value) => value.to_string(),
        MetadataValue::F32(_) | MetadataValue::F64(_) => value.float().unwrap_or_default().to_string(),
        MetadataValue::I8(v) => v.to_string(),
        MetadataValue::I16(v) => v.to_string(),
        MetadataValue::I32(v) => v.to_string(),
        MetadataValue::I64(v) => v.to_string(),
        _ => value.unsigned().unwrap_or_default().to_string(),
    };
    format!("{} {text}", value.value_type().name())
}

impl Gguf {
    /// Maps a file, or all parts of a split model, and reads the headers.
    ///
    /// # Errors
    /// If a file cannot be opened or mapped, is not a GGUF file of version 2 or 3, or is truncated
    /// or damaged.
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

    /// Reads a file from memory. Messages call it `file`.
    ///
    /// # Errors
    /// If the bytes are not a GGUF file of version 2 or 3, are truncated or damaged, or are part of
    /// a split model.
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

    /// Returns the path of the file, the first of a split model.
    pub fn file(&self) -> &str {
        &self.parts[0].file
    }

    /// Returns the version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the count of files.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the metadata in the order of the file.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, MetadataValue<'_>)> {
        self.entries.iter().map(|entry| (&*entry.key, entry.value(&self.parts[0])))
    }

    /// Returns the metadata in the order of the file, with the bytes of the values.
    pub(crate) fn raw_metadata(&self) -> impl Iterator<Item = (&str, ValueType, &[u8])> {
        let bytes = &self.parts[0].bytes;
        self.entries.iter().map(|entry| (&*entry.key, entry.value_type, &bytes[entry.value.clone()]))
    }

    /// Returns the value of a metadata key.
    pub fn get(&self, key: &str) -> Option<MetadataValue<'_>> {
        self.by_key.get(key).map(|i| self.entries[*i].value(&self.parts[0]))
    }

    /// Returns the tensors in the order of the files.
    pub fn tensors(&self) -> impl Iterator<Item = FileTensor<'_>> {
        self.tensors.iter().map(|record| self.tensor_of(record))
    }

    /// Returns the tensor of a name.
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

    /// Returns an error about a metadata entry: its offset, what was expected, and what was found.
    pub(crate) fn unexpected(&self, key: &str, expected: impl std::fmt::Display) -> Error {
        let field = format!("metadata `{key}`");
        match self.by_key.get(key).map(|i| &self.entries[*i]) {
            None => Error::field(self.file(), field, format!("expected {expected}, and the file has no such entry")),
            Some(entry) => Error::Damaged {
                file: self.file().to_owned(),
                offset: entry.value.start as u64,
                field,
                problem: format!("expected {expected}, found {}", describe(&entry.value(&self.parts[0]))),
            },
        }
    }

    /// Returns a value of the metadata by one of the accessors of [`MetadataValue`], `None` if the
    /// key is absent.
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

    /// Returns a value of the metadata by one of the accessors of [`MetadataValue`].
    pub(crate) fn required<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&MetadataValue<'a>) -> Option<T>,
    ) -> Result<T> {
        self.optional(key, expected, convert)?.ok_or_else(|| self.unexpected(key, expected))
    }
}

/// Returns the path of a part of a split model from the path of any part.
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
