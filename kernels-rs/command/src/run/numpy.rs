//! Arrays in files of NumPy (`.npy`): a header with the type and the shape, then the elements.
//!
//! Format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use super::element::{BufferElement, IntegerWidth};

/// First bytes of a file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Number of bytes by which the elements are aligned.
const ALIGNMENT: usize = 64;

/// Returns the length of an array's header in bytes, or `None` if the bytes are no array.
///
/// # Errors
/// Returns the reason why the array cannot be the content of a buffer with this element.
pub(super) fn header_bytes(element: BufferElement, bytes: &[u8]) -> Option<Result<usize, String>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    Some(checked_header(element, rest).map(|header| MAGIC.len() + header))
}

/// Returns the length of the header after the magic number.
fn checked_header(element: BufferElement, rest: &[u8]) -> Result<usize, String> {
    let cut = || "the array's header is cut off".to_string();
    // The version determines the width of the header's length.
    let (start, length) = match rest {
        [1, _, a, b, ..] => (4, u32::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, ..] => (6, u32::from_le_bytes([*a, *b, *c, *d])),
        [version, ..] if *version > 3 => return Err(format!("version {version} of NumPy's format is unknown")),
        _ => return Err(cut()),
    };
    let end = start + length as usize;
    let header = String::from_utf8_lossy(rest.get(start..end).ok_or_else(cut)?).into_owned();
    let field = |name: &str| Some(header.split_once(&format!("'{name}':"))?.1.trim_start());
    let invalid = || format!("the array's header is not one of NumPy: {}", header.trim());
    let ty = field("descr").and_then(|text| text.strip_prefix('\'')?.split_once('\'')).ok_or_else(invalid)?.0;
    if element.numpy_type() != Some(ty) {
        return Err(format!("the array's elements are `{ty}`, and the buffer's are {}", element.name()));
    }
    let shape = field("shape").and_then(|text| text.strip_prefix('(')?.split_once(')')).ok_or_else(invalid)?.0;
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let extents: Vec<usize> = extents.map(str::parse).collect::<Result<_, _>>().map_err(|_| invalid())?;
    if extents.len() > 1 && field("fortran_order").is_none_or(|order| order.starts_with("True")) {
        return Err("the array's columns are contiguous; save it with numpy.ascontiguousarray".to_string());
    }
    let bytes = extents.iter().try_fold(element.bytes(), |all, extent| all.checked_mul(*extent));
    let given = rest.len() - end;
    if bytes != Some(given) {
        return Err(format!("the array's shape ({shape}) does not fit the {given} bytes after the header"));
    }
    Ok(end)
}

/// Returns a file with the elements as an array of one dimension.
///
/// # Errors
/// Returns an error if NumPy has no such type.
pub(super) fn array(element: BufferElement, elements: &[u8]) -> Result<Vec<u8>, String> {
    let Some(ty) = element.numpy_type() else {
        return Err(format!("NumPy has no type {}; a file with another name gets the bytes", element.name()));
    };
    let count = elements.len() / element.bytes();
    let mut header = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({count},), }}");
    // The magic number, the version and the length of the header come first, and a newline ends it.
    let before = MAGIC.len() + 4;
    let padding = (before + header.len() + 1).next_multiple_of(ALIGNMENT) - (before + header.len() + 1);
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(|_| "the array's header is too long".to_string())?;
    Ok([MAGIC, &[1, 0], &length.to_le_bytes(), header.as_bytes(), elements].concat())
}

impl BufferElement {
    /// Returns NumPy's name of the type, for a little-endian machine.
    fn numpy_type(self) -> Option<&'static str> {
        use IntegerWidth::*;
        Some(match self {
            BufferElement::Unsigned(One) => "|u1",
            BufferElement::Unsigned(Two) => "<u2",
            BufferElement::Unsigned(Four) => "<u4",
            BufferElement::Unsigned(Eight) => "<u8",
            BufferElement::Signed(One) => "|i1",
            BufferElement::Signed(Two) => "<i2",
            BufferElement::Signed(Four) => "<i4",
            BufferElement::Signed(Eight) => "<i8",
            BufferElement::Half => "<f2",
            BufferElement::Float => "<f4",
            BufferElement::Double => "<f8",
            BufferElement::Bfloat => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as `numpy.save` writes a matrix of two rows.
    fn file(ty: &str, order: &str, bytes: usize) -> Vec<u8> {
        let header = format!("{{'descr': '{ty}', 'fortran_order': {order}, 'shape': (2, 3), }}\n");
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &vec![7; bytes]]
            .concat()
    }

    #[test]
    fn arrays_are_read_only_with_their_own_type_and_shape() {
        let float = |bytes: &[u8]| header_bytes(BufferElement::Float, bytes);
        let good = file("<f4", "False", 24);
        assert_eq!(float(&good), Some(Ok(good.len() - 24)));
        assert_eq!(float(b"raw bytes"), None);
        for (bytes, why) in [
            (file("<f8", "False", 48), "the array's elements are `<f8`, and the buffer's are f32"),
            (file(">f4", "False", 24), "the array's elements are `>f4`, and the buffer's are f32"),
            (file("<f4", "False", 20), "the array's shape (2, 3) does not fit the 20 bytes after the header"),
            (file("<f4", "True", 24), "the array's columns are contiguous; save it with numpy.ascontiguousarray"),
            (good[..9].to_vec(), "the array's header is cut off"),
            (good[..40].to_vec(), "the array's header is cut off"),
            (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "version 9 of NumPy's format is unknown"),
        ] {
            assert_eq!(float(&bytes), Some(Err(why.to_string())));
        }
    }

    #[test]
    fn written_arrays_are_read_back() {
        let elements = [1, 2, 3, 4, 5, 6];
        let short = BufferElement::from_name("i16").unwrap();
        let bytes = array(short, &elements).unwrap();
        let start = header_bytes(short, &bytes).unwrap().unwrap();
        assert_eq!((start % ALIGNMENT, &bytes[start..]), (0, &elements[..]));
        assert!(array(BufferElement::Bfloat, &elements).is_err());
    }
}
