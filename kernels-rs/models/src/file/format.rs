//! The formats of tensors, with the sizes of their blocks.

use kernels_rs::quant;
use std::fmt;

/// Defines [`TensorFormat`] from a table: variant, number in GGUF, name, elements and bytes of a
/// block.
macro_rules! formats {
    ($($variant:ident $number:literal $name:literal $elements:literal $bytes:literal)*) => {
        /// The format of a tensor, which consists of blocks. Each block has a fixed count of
        /// elements and bytes.
        ///
        /// Numbers and names are those of GGUF's `ggml_type`. The formats of safetensors have
        /// blocks of one element.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[allow(missing_docs, non_camel_case_types)]
        pub enum TensorFormat {
            $($variant,)*
        }

        impl TensorFormat {
            /// Every format, in the order of their numbers.
            pub const ALL: &[TensorFormat] = &[$(TensorFormat::$variant),*];

            /// Returns the name that GGUF tools print, such as `Q4_K`.
            pub const fn name(self) -> &'static str {
                match self { $(TensorFormat::$variant => $name,)* }
            }

            /// Returns the number of the format in GGUF files.
            pub const fn number(self) -> u32 {
                match self { $(TensorFormat::$variant => $number,)* }
            }

            /// Returns the count of elements in a block.
            pub const fn block_elements(self) -> u64 {
                match self { $(TensorFormat::$variant => $elements,)* }
            }

            /// Returns the count of bytes in a block.
            pub const fn block_bytes(self) -> u64 {
                match self { $(TensorFormat::$variant => $bytes,)* }
            }

            /// Returns the format with this number in GGUF files.
            pub const fn from_number(number: u32) -> Option<TensorFormat> {
                match number { $($number => Some(TensorFormat::$variant),)* _ => None }
            }
        }
    };
}

formats! {
    F32      0 "F32"       1    4
    F16      1 "F16"       1    2
    Q4_0     2 "Q4_0"     32   18
    Q4_1     3 "Q4_1"     32   20
    Q5_0     6 "Q5_0"     32   22
    Q5_1     7 "Q5_1"     32   24
    Q8_0     8 "Q8_0"     32   34
    Q8_1     9 "Q8_1"     32   36
    Q2_K    10 "Q2_K"    256   84
    Q3_K    11 "Q3_K"    256  110
    Q4_K    12 "Q4_K"    256  144
    Q5_K    13 "Q5_K"    256  176
    Q6_K    14 "Q6_K"    256  210
    Q8_K    15 "Q8_K"    256  292
    IQ2_XXS 16 "IQ2_XXS" 256   66
    IQ2_XS  17 "IQ2_XS"  256   74
    IQ3_XXS 18 "IQ3_XXS" 256   98
    IQ1_S   19 "IQ1_S"   256   50
    IQ4_NL  20 "IQ4_NL"   32   18
    IQ3_S   21 "IQ3_S"   256  110
    IQ2_S   22 "IQ2_S"   256   82
    IQ4_XS  23 "IQ4_XS"  256  136
    I8      24 "I8"        1    1
    I16     25 "I16"       1    2
    I32     26 "I32"       1    4
    I64     27 "I64"       1    8
    F64     28 "F64"       1    8
    IQ1_M   29 "IQ1_M"   256   56
    BF16    30 "BF16"      1    2
    TQ1_0   34 "TQ1_0"   256   54
    TQ2_0   35 "TQ2_0"   256   66
    MXFP4   39 "MXFP4"    32   17
    NVFP4   40 "NVFP4"    64   36
    Q1_0    41 "Q1_0"    128   18
}

impl TensorFormat {
    /// Returns the size in bytes of a tensor with `elements` elements in rows of `row` elements.
    /// `None` if rows are not whole blocks or the size exceeds 64 bits.
    pub fn bytes(self, row: u64, elements: u64) -> Option<u64> {
        if !row.is_multiple_of(self.block_elements()) {
            return None;
        }
        (elements / self.block_elements()).checked_mul(self.block_bytes())
    }

    /// Returns the [`quant::Format`] of these blocks, or `None` if no kernel reads them.
    pub fn quant_format(self) -> Option<quant::Format> {
        Some(match self {
            TensorFormat::Q4_0 => quant::Format::Q4_0,
            TensorFormat::Q4_1 => quant::Format::Q4_1,
            TensorFormat::Q5_0 => quant::Format::Q5_0,
            TensorFormat::Q5_1 => quant::Format::Q5_1,
            TensorFormat::Q8_0 => quant::Format::Q8_0,
            TensorFormat::Q2_K => quant::Format::Q2K,
            TensorFormat::Q3_K => quant::Format::Q3K,
            TensorFormat::Q4_K => quant::Format::Q4K,
            TensorFormat::Q5_K => quant::Format::Q5K,
            TensorFormat::Q6_K => quant::Format::Q6K,
            TensorFormat::IQ4_NL => quant::Format::Iq4Nl,
            TensorFormat::IQ4_XS => quant::Format::Iq4Xs,
            TensorFormat::MXFP4 => quant::Format::Mxfp4,
            _ => return None,
        })
    }

    /// Tells whether each element is a separate floating-point number that kernels read: F32, F16
    /// or BF16.
    pub const fn is_dense(self) -> bool {
        matches!(self, TensorFormat::F32 | TensorFormat::F16 | TensorFormat::BF16)
    }

    /// Tells whether there are kernels for matrices in this format.
    pub fn has_kernels(self) -> bool {
        self.is_dense() || self.quant_format().is_some()
    }
}

impl fmt::Display for TensorFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
