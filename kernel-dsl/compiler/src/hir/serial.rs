//! HIR as bytes: the format's version as a little-endian `u16`, then postcard.
//!
//! The macro of one build and the program of the same build read and write the same version; another version is refused by
//! number, before postcard sees a byte of it.

use super::{Library, Program};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// Version of the format. Any change to the types of [`hir`](super) is a new one.
pub const VERSION: u16 = 1;

/// Why bytes are not HIR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Fewer bytes than the version takes.
    Empty,
    /// Written by a compiler of another format version.
    #[allow(missing_docs)]
    Version { found: u16 },
    /// Right version, wrong contents.
    Malformed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => f.write_str("serialised HIR ends before its version number"),
            Error::Version { found } => write!(
                f,
                "serialised HIR has format version {found}, this compiler reads version {VERSION}: \
                 the macros and the library are of different builds"
            ),
            Error::Malformed(why) => write!(f, "serialised HIR is malformed: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// The bytes of a kernel.
pub fn encode_program(program: &Program) -> Vec<u8> {
    encode(program)
}

/// The kernel that `bytes` hold.
pub fn program(bytes: &[u8]) -> Result<Program, Error> {
    decode(bytes)
}

/// The bytes of a device function.
pub fn encode_library(library: &Library) -> Vec<u8> {
    encode(library)
}

/// The device function that `bytes` hold.
pub fn library(bytes: &[u8]) -> Result<Library, Error> {
    decode(bytes)
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_extend(value, VERSION.to_le_bytes().to_vec())
        .expect("HIR holds no type that postcard refuses, and a Vec takes any number of bytes")
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let (version, rest) = bytes.split_first_chunk().ok_or(Error::Empty)?;
    let found = u16::from_le_bytes(*version);
    if found != VERSION {
        return Err(Error::Version { found });
    }
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Ok(value),
        Ok((_, left)) => Err(Error::Malformed(format!("{} bytes follow its end", left.len()))),
        Err(e) => Err(Error::Malformed(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let empty = Library { functions: vec![] };
        assert_eq!(library(&encode_library(&empty)), Ok(empty));
    }

    #[test]
    fn wrong_bytes_are_refused() {
        let bytes = encode_library(&Library { functions: vec![] });
        assert_eq!(library(&[]), Err(Error::Empty));
        assert_eq!(library(&[1]), Err(Error::Empty));
        assert_eq!(library(&[9, 0, 0]), Err(Error::Version { found: 9 }));
        assert!(matches!(library(&bytes[..2]), Err(Error::Malformed(_))));
        assert!(matches!(library(&[&bytes[..], &[0]].concat()), Err(Error::Malformed(_))));
    }
}
