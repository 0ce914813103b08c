//! The names of the formats of weights.

use super::formats::device::BlockFormat;
use super::formats::host::{self, Ggml};

/// Evaluates an expression with a type as the format of weights that a [`Format`] names.
///
/// Without `else`, the type implements [`BlockFormat`]. With `else`, the type implements [`Ggml`],
/// and the expression after `else` is the value for [`Format::Int8`], which has no blocks.
///
/// ```
/// use kernels_rs::quant::{Format, formats::host::Ggml};
///
/// let name = |format: Format| kernels_rs::with_format!(format, F => F::NAME, else "int8");
/// assert_eq!((name(Format::Q4K), name(Format::Int8)), ("Q4_K", "int8"));
/// ```
#[macro_export]
macro_rules! with_format {
    ($format:expr, $F:ident => $body:expr) => {
        $crate::with_format!(@ $format, $F => $body, Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2K Q3K Q4K Q5K Q6K Iq4Nl Iq4Xs Mxfp4 Int8)
    };
    ($format:expr, $F:ident => $body:expr, else $other:expr) => {
        $crate::with_format!(@ $format, $F => $body, Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2K Q3K Q4K Q5K Q6K Iq4Nl Iq4Xs Mxfp4; $other)
    };
    (@ $format:expr, $F:ident => $body:expr, $($name:ident)* $(; $other:expr)?) => {
        match $format {
            $($crate::quant::Format::$name => {
                type $F = $crate::quant::formats::$name;
                $body
            })*
            $($crate::quant::Format::Int8 => $other)?
        }
    };
}

/// A format of weights: those of GGML's files (see [`formats`](super::formats)), and bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// Q4_0: 4.5 bits a weight.
    Q4_0,
    /// Q4_1: 5 bits a weight.
    Q4_1,
    /// Q5_0: 5.5 bits a weight.
    Q5_0,
    /// Q5_1: 6 bits a weight.
    Q5_1,
    /// Q8_0: 8.5 bits a weight.
    Q8_0,
    /// Q2_K: 2.625 bits a weight.
    Q2K,
    /// Q3_K: 3.4375 bits a weight.
    Q3K,
    /// Q4_K: 4.5 bits a weight.
    Q4K,
    /// Q5_K: 5.5 bits a weight.
    Q5K,
    /// Q6_K: 6.5625 bits a weight.
    Q6K,
    /// IQ4_NL: 4.5 bits a weight.
    Iq4Nl,
    /// IQ4_XS: 4.25 bits a weight.
    Iq4Xs,
    /// MXFP4: 4.25 bits a weight.
    Mxfp4,
    /// Bytes with a scale in `f32` for each row: 8 bits a weight.
    Int8,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 14] = [
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q2K,
        Format::Q3K,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
        Format::Iq4Nl,
        Format::Iq4Xs,
        Format::Mxfp4,
        Format::Int8,
    ];

    /// Returns the name that GGML's files use, or `int8`.
    #[must_use]
    pub fn name(self) -> &'static str {
        with_format!(self, F => <F as Ggml>::NAME, else "int8")
    }

    /// Returns the numbers quantized to blocks, as [`host::quantize`] does, or `None` for
    /// [`Format::Int8`], which has no blocks.
    ///
    /// # Panics
    /// Panics if the last block is not whole.
    #[must_use]
    pub fn quantize(self, numbers: &[f32]) -> Option<Vec<u8>> {
        with_format!(self, F => Some(host::quantize::<F>(numbers)), else None)
    }

    /// Returns the numbers of blocks, as [`host::dequantize`] reads them, or `None` for
    /// [`Format::Int8`], which has no blocks.
    ///
    /// # Panics
    /// Panics if the last block is not whole.
    #[must_use]
    pub fn dequantize(self, blocks: &[u8]) -> Option<Vec<f32>> {
        with_format!(self, F => Some(host::dequantize::<F>(blocks)), else None)
    }

    /// Returns whether units take few registers. If so, two units are in flight for each row of
    /// weights. A warp has four rows of weights and up to four of activations.
    pub(super) fn is_light(self) -> bool {
        matches!(self, Format::Q4_0 | Format::Iq4Nl | Format::Iq4Xs | Format::Mxfp4)
    }

    /// Returns the number of weights of a block, and its size in bytes.
    #[must_use]
    pub fn block(self) -> [usize; 2] {
        with_format!(self, F => [F::NUMBERS, F::BYTES])
    }
}
