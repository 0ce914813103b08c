//! Readers of model files: metadata and tensors, as the files store them.
//!
//! | format | reader | metadata | tensors |
//! |---|---|---|---|
//! | GGUF, one file or parts | [`gguf::Gguf`] | in the file | every format of [`TensorFormat`] |
//! | safetensors, one file or shards | [`safetensors::Safetensors`] | `config.json` | F64, F32, F16, BF16, I8 to I64, U8, BOOL |
//!
//! Files are mapped into memory, and a [`FileTensor`] is a slice of the mapping. Opening a file of
//! 100 GB reads its header only. Every length and offset in a file is checked before use. A damaged
//! file gives an [`Error`](crate::Error) with the byte offset and the field.

pub(crate) mod bytes;
mod format;
pub mod gguf;
pub mod safetensors;

pub use format::TensorFormat;

/// A tensor in a file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FileTensor<'a> {
    /// The name in the file.
    pub name: &'a str,
    /// The format of the elements.
    pub format: TensorFormat,
    /// Extents in elements, outermost first: a matrix is `[rows, columns]`, and the bytes of a row
    /// are consecutive.
    pub extents: &'a [u64],
    /// The elements as blocks of the format, row after row.
    pub bytes: &'a [u8],
}

impl FileTensor<'_> {
    /// Returns the count of elements.
    pub fn elements(&self) -> u64 {
        self.extents.iter().product()
    }
}
