//! The header of a GGUF file: metadata entries, and the ranges of tensors.

use super::value::{MetadataValue, ValueType, describe, read_type, value};
use crate::error::{Error, Result, quoted};
use crate::file::TensorFormat;
use crate::file::bytes::{FileBytes, FileCursor};
use std::ops::Range;

/// The most metadata entries. Real files have some 50.
const MAX_ENTRIES: u64 = 1 << 16;

/// The most tensors. Real files have some 1,000.
const MAX_TENSORS: u64 = 1 << 18;

/// The longest key or tensor name. GGUF's specification has this limit for keys.
const MAX_NAME_BYTES: usize = 65_535;

/// The most dimensions of a tensor: ggml's `GGML_MAX_DIMS`.
const MAX_DIMENSIONS: u32 = 4;

/// A file: a whole model, or a part of a split one.
#[derive(Debug)]
pub(super) struct GgufFile {
    pub(super) file: String,
    pub(super) bytes: FileBytes,
}

/// A metadata entry. The value is a copy: its text stays valid UTF-8 even if another process writes
/// to the file.
#[derive(Debug)]
pub(super) struct MetadataEntry {
    pub(super) key: String,
    pub(super) value_type: ValueType,
    /// The bytes of the value, without its type.
    pub(super) bytes: Box<[u8]>,
    /// The offset of these bytes in the file.
    pub(super) value_offset: usize,
    /// The offset of the entry in the file.
    pub(super) offset: usize,
}

/// A tensor, whose bytes stay in the file.
#[derive(Debug)]
pub(super) struct GgufRecord {
    pub(super) name: String,
    pub(super) format: TensorFormat,
    pub(super) extents: Vec<u64>,
    /// The index of the file among the parts of the model.
    pub(super) part: usize,
    pub(super) bytes: Range<usize>,
    /// The offset, in the file, of the header field with the position of `bytes`.
    pub(super) offset_position: usize,
}

/// The contents of the header of one file.
#[derive(Debug)]
pub(super) struct GgufHeader {
    pub(super) version: u32,
    pub(super) entries: Vec<MetadataEntry>,
    pub(super) tensors: Vec<GgufRecord>,
}

impl GgufFile {
    /// Reads the header. `part` is the index of the file among the parts of the model.
    pub(super) fn header(&self, part: usize) -> Result<GgufHeader> {
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

impl GgufHeader {
    /// Returns the entry of a key, and its value.
    fn get(&self, key: &str) -> Option<(&MetadataEntry, MetadataValue<'_>)> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some((entry, entry.value()))
    }

    /// Returns an integer of the metadata, or `default` if the key is absent. Rejects a value for
    /// which `accept` returns false; the message says that `expected` was expected.
    pub(super) fn number(
        &self,
        part: &GgufFile,
        key: &str,
        default: u64,
        expected: &str,
        accept: fn(u64) -> bool,
    ) -> Result<u64> {
        let Some((entry, value)) = self.get(key) else { return Ok(default) };
        value.unsigned().filter(|number| accept(*number)).ok_or_else(|| Error::Damaged {
            file: part.file.clone(),
            offset: entry.value_offset as u64,
            field: format!("metadata `{key}`"),
            problem: format!("expected {expected}, found {}", describe(&value)),
        })
    }

    /// Checks that the tensors lie in the file after the header, aligned and without overlap. Makes
    /// their ranges relative to the beginning of the file. `end` is the offset after the header.
    pub(super) fn locate_tensors(&mut self, part: &GgufFile, end: usize) -> Result<()> {
        let accept = |n: u64| n.is_power_of_two() && n <= 1 << 20;
        let alignment = self.number(part, "general.alignment", 32, "a power of two up to 1048576", accept)?;
        let length = part.bytes.len();
        let start = (end as u64).next_multiple_of(alignment);
        let damaged = |record: &GgufRecord, problem: String| Error::Damaged {
            file: part.file.clone(),
            offset: record.offset_position as u64,
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
    /// Returns the value. The reader has checked the value, so the fallback is taken only if
    /// another process changed the file between the check and the copy.
    pub(super) fn value(&self) -> MetadataValue<'_> {
        let mut cursor = FileCursor { file: "", bytes: &self.bytes, offset: 0 };
        value(&mut cursor, self.value_type, 0).unwrap_or(MetadataValue::Bool(false))
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

/// Reads the key of an entry, or the name of a tensor.
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
    let bytes = cursor.bytes[start..cursor.offset].into();
    Ok(MetadataEntry { key, value_type, bytes, value_offset: start, offset })
}

/// Reads the record of tensor number `i`. The range of the tensor counts from the end of the header
/// and its padding.
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
    let offset_position = cursor.offset;
    let offset = cursor.u64(|| format!("offset of tensor `{name}`"))?;
    let range = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(bytes.try_into().ok()?)?));
    let Some(bytes) = range else {
        let problem = format!("{bytes} bytes at offset {offset} exceed the address space");
        return Err(cursor.damaged(offset_position, format!("offset of tensor `{name}`"), problem));
    };
    Ok(GgufRecord { name, format, extents, part, bytes, offset_position })
}
