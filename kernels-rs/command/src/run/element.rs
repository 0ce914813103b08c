//! Elements of buffers: their types, their notation, and initial contents.

use kernel_dsl::compiler::half;
use kernel_dsl::compiler::ptx::Type;
use runtime::testing::Random;
use std::collections::TryReserveError;

/// Type of a buffer's elements or of a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BufferElement {
    Unsigned(IntegerWidth),
    Signed(IntegerWidth),
    Half,
    Bfloat,
    Float,
    Double,
}

/// Size of an integer in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IntegerWidth {
    One = 1,
    Two = 2,
    Four = 4,
    Eight = 8,
}

/// Names of the types, in PTX's and in Rust's spelling.
pub(super) const NAMES: &str = "f32, f64, f16, bf16, u8, u16, u32, u64, s8 to s64 or i8 to i64, b8 to b64";

impl BufferElement {
    pub(super) fn from_name(name: &str) -> Option<BufferElement> {
        match name {
            "f16" => return Some(BufferElement::Half),
            "bf16" => return Some(BufferElement::Bfloat),
            "f32" => return Some(BufferElement::Float),
            "f64" => return Some(BufferElement::Double),
            _ => {}
        }
        let width = match name.get(1..)? {
            "8" => IntegerWidth::One,
            "16" => IntegerWidth::Two,
            "32" => IntegerWidth::Four,
            "64" => IntegerWidth::Eight,
            _ => return None,
        };
        match name.as_bytes()[0] {
            b'u' | b'b' => Some(BufferElement::Unsigned(width)),
            b's' | b'i' => Some(BufferElement::Signed(width)),
            _ => None,
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            BufferElement::Unsigned(width) => format!("u{}", 8 * width as u32),
            BufferElement::Signed(width) => format!("i{}", 8 * width as u32),
            BufferElement::Half => "f16".to_string(),
            BufferElement::Bfloat => "bf16".to_string(),
            BufferElement::Float => "f32".to_string(),
            BufferElement::Double => "f64".to_string(),
        }
    }

    /// Returns whether a PTX parameter of type `ty` accepts the element. A bit type accepts all
    /// types of its size, and an integer accepts both signs: PTX does not distinguish them.
    pub(super) fn fits(self, ty: Type) -> bool {
        let is_float = matches!(self, BufferElement::Float | BufferElement::Double);
        let alike = match ty {
            Type::F32 | Type::F64 => is_float,
            Type::B8 | Type::B16 | Type::B32 | Type::B64 => true,
            _ => !is_float,
        };
        alike && ty.bits() == 8 * self.bytes() as u32
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            BufferElement::Unsigned(width) | BufferElement::Signed(width) => width as usize,
            BufferElement::Half | BufferElement::Bfloat => 2,
            BufferElement::Float => 4,
            BufferElement::Double => 8,
        }
    }

    /// Parses a number into its bits: decimal, or `0x…` for integers; floats are rounded to
    /// nearest. Returns `None` for text that is not a number and for integers out of range.
    pub(super) fn parse(self, text: &str) -> Option<u64> {
        match self {
            BufferElement::Float => text.parse::<f32>().ok().map(|x| x.to_bits().into()),
            BufferElement::Double => text.parse::<f64>().ok().map(f64::to_bits),
            BufferElement::Half => text.parse().ok().map(|x| half::f16_from_f32(x).into()),
            BufferElement::Bfloat => text.parse().ok().map(|x| half::bf16_from_f32(x).into()),
            BufferElement::Unsigned(width) => {
                let (negative, digits) = (text.starts_with('-'), text.trim_start_matches('-'));
                let n = integer(digits).filter(|n| !negative || *n == 0)?;
                (n >> (8 * width as u32 - 1) <= 1).then_some(n)
            }
            BufferElement::Signed(width) => {
                let bits = 8 * width as u32;
                let n = match text.strip_prefix('-') {
                    Some(digits) => 0i128 - i128::from(integer(digits)?),
                    None => integer(text)?.into(),
                };
                // `0x…` may give the bits of a negative number.
                let most = if text.starts_with("0x") { 1i128 << bits } else { 1i128 << (bits - 1) };
                (-(1i128 << (bits - 1))..most).contains(&n).then_some(n as u64 & u64::MAX >> (64 - bits))
            }
        }
    }

    /// Formats the number with these bits so that [`BufferElement::parse`] can parse it again.
    pub(super) fn show(self, bits: u64) -> String {
        match self {
            BufferElement::Float => format!("{:?}", f32::from_bits(bits as u32)),
            BufferElement::Double => format!("{:?}", f64::from_bits(bits)),
            BufferElement::Half => format!("{:?}", half::f16_to_f32(bits as u16)),
            BufferElement::Bfloat => format!("{:?}", half::bf16_to_f32(bits as u16)),
            BufferElement::Unsigned(_) => bits.to_string(),
            BufferElement::Signed(width) => {
                let unused = 64 - 8 * width as u32;
                ((bits << unused) as i64 >> unused).to_string()
            }
        }
    }

    /// Returns the bits of `n`, rounded to the type.
    fn count(self, n: u64) -> u64 {
        match self {
            BufferElement::Float => (n as f32).to_bits().into(),
            BufferElement::Double => (n as f64).to_bits(),
            BufferElement::Half => half::f16_from_f32(n as f32).into(),
            BufferElement::Bfloat => half::bf16_from_f32(n as f32).into(),
            BufferElement::Unsigned(_) | BufferElement::Signed(_) => n,
        }
    }

    /// Converts random bits to the bits of a number: a float of [−1, 1) in exactly representable
    /// steps, or any integer.
    fn random(self, bits: u64) -> u64 {
        // A `bf16` represents 8 bits exactly.
        let unit = |bits_kept: u32| (bits >> (64 - bits_kept)) as f64 / f64::from(1 << (bits_kept - 1)) - 1.0;
        match self {
            BufferElement::Float => (unit(24) as f32).to_bits().into(),
            BufferElement::Double => unit(30).to_bits(),
            BufferElement::Half => half::f16_from_f32(unit(11) as f32).into(),
            BufferElement::Bfloat => half::bf16_from_f32(unit(8) as f32).into(),
            BufferElement::Unsigned(_) | BufferElement::Signed(_) => bits,
        }
    }

    /// Appends the lowest bytes of `bits`.
    fn push(self, to: &mut Vec<u8>, bits: u64) {
        to.extend_from_slice(&bits.to_le_bytes()[..self.bytes()]);
    }

    /// Iterates over the bits of each element in `bytes`.
    pub(super) fn read(self, bytes: &[u8]) -> impl Iterator<Item = u64> {
        bytes.chunks_exact(self.bytes()).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        })
    }
}

/// Parses a decimal or `0x…` integer.
fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Initial content of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// The same bits for each element.
    Each(u64),
    /// 0, 1, 2, …
    Iota,
    /// Random numbers from a seed.
    Random(u64),
    /// Content of a file, in memory layout.
    File(String),
}

impl Content {
    /// Returns the bytes of `count` elements. The content of a file is read elsewhere.
    pub(super) fn fill(&self, element: BufferElement, count: usize) -> Result<Vec<u8>, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(count.saturating_mul(element.bytes()))?;
        let mut random = Random::new(if let Content::Random(seed) = self { *seed } else { 0 });
        for i in 0..count as u64 {
            let bits = match self {
                Content::Each(bits) => *bits,
                Content::Iota => element.count(i),
                Content::Random(_) => element.random(random.bits()),
                Content::File(_) => 0,
            };
            element.push(&mut bytes, bits);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str) -> BufferElement {
        BufferElement::from_name(name).unwrap()
    }

    #[test]
    fn numbers_are_in_the_range_of_their_type() {
        let bits = |name: &str, text: &str| element(name).parse(text);
        assert_eq!(bits("f32", "1.5"), Some(1.5f32.to_bits().into()));
        assert_eq!(bits("f16", "-2"), Some(0xC000));
        assert_eq!(bits("bf16", "1"), Some(0x3F80));
        assert_eq!(bits("u8", "255"), Some(255));
        assert_eq!(bits("s8", "-128"), Some(0x80));
        assert_eq!(bits("i32", "0xffffffff"), Some(0xFFFF_FFFF));
        assert_eq!(bits("u64", "0xffffffffffffffff"), Some(u64::MAX));
        assert_eq!(bits("i64", "-9223372036854775808"), Some(1 << 63));
        for (name, text) in [("u8", "256"), ("u32", "-1"), ("s8", "128"), ("s8", "-129"), ("u32", "1.0"), ("f32", "x")]
        {
            assert_eq!(bits(name, text), None, "{name} {text}");
        }
        for name in ["f8", "u", "q32", "", "é8"] {
            assert_eq!(BufferElement::from_name(name), None);
        }
    }

    #[test]
    fn displayed_values_parse_back() {
        for name in ["u8", "s16", "i32", "b64", "f16", "bf16", "f32", "f64"] {
            let element = element(name);
            for content in [Content::Iota, Content::Random(1), Content::Each(element.parse("7").unwrap())] {
                let bytes = content.fill(element, 20).unwrap();
                for bits in element.read(&bytes) {
                    assert_eq!(element.parse(&element.show(bits)), Some(bits), "{name}");
                }
            }
        }
        let bytes: Vec<_> = element("i8").read(&[255, 0]).map(|bits| element("i8").show(bits)).collect();
        assert_eq!(bytes, ["-1", "0"]);
    }

    #[test]
    fn random_floats_are_around_zero() {
        let bytes = Content::Random(7).fill(BufferElement::Float, 1000).unwrap();
        let values: Vec<_> = BufferElement::Float.read(&bytes).map(|bits| f32::from_bits(bits as u32)).collect();
        assert!(values.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(values.iter().sum::<f32>().abs() < 100.0);
        assert_ne!(bytes, Content::Random(8).fill(BufferElement::Float, 1000).unwrap());
    }
}
