//! Values of GGUF metadata, and their types.

use crate::error::{Result, quoted};
use crate::file::bytes::FileCursor;

/// The deepest nesting of arrays that is read.
const MAX_NESTING: u32 = 8;

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
    /// Every type. The index of a type in this array is its number in files.
    pub const ALL: [ValueType; 13] = {
        use ValueType::*;
        [U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64]
    };

    /// Returns the size of a value in bytes, `None` if sizes vary.
    pub(super) const fn bytes(self) -> Option<u64> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::String | ValueType::Array => None,
        }
    }

    /// Returns the name that GGUF tools print, such as `uint8`.
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
    /// Bytes that should be UTF-8, but were not checked.
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
    pub(super) bytes: &'a [u8],
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

    /// Returns the value if it is an integer of any width and not negative.
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

    /// Returns the value if it is a floating-point number of either width.
    pub fn float(&self) -> Option<f64> {
        match *self {
            MetadataValue::F32(v) => Some(v.into()),
            MetadataValue::F64(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the value if it is a bool.
    pub fn bool(&self) -> Option<bool> {
        match *self {
            MetadataValue::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the value if it is a string in UTF-8.
    pub fn text(&self) -> Option<&'a str> {
        match *self {
            MetadataValue::String(v) => std::str::from_utf8(v).ok(),
            _ => None,
        }
    }

    /// Returns the value if it is an array.
    pub fn array(&self) -> Option<MetadataArray<'a>> {
        match *self {
            MetadataValue::Array(v) => Some(v),
            _ => None,
        }
    }
}

/// Reads a value of a type. `nesting` counts the arrays that contain the value.
pub(super) fn value<'a>(cursor: &mut FileCursor<'a>, value_type: ValueType, nesting: u32) -> Result<MetadataValue<'a>> {
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
                // A bool must be 0 or 1, so bools are read one by one, like strings and arrays.
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
                    // Each element has at least one byte, so a false length ends the loop at the
                    // end of the file.
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
pub(super) fn read_type(cursor: &mut FileCursor<'_>, field: impl Fn() -> String) -> Result<ValueType> {
    let at = cursor.offset;
    let number = cursor.u32(&field)?;
    ValueType::ALL.get(number as usize).copied().ok_or_else(|| {
        cursor.damaged(at, field(), format!("expected the number of a value type, 0 to 12, found {number}"))
    })
}

/// Describes a value for a message.
pub(super) fn describe(value: &MetadataValue<'_>) -> String {
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
