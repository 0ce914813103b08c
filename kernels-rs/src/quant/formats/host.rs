//! Formats on the host: the conversions of blocks to numbers and back, and of blocks to planes and
//! back.
//!
//! A format describes only once where each field of a block is ([`BlockFormat::code`] and the
//! others), and how a unit is written to planes ([`BlockFormat::pack`]). Packing only moves bits,
//! and inverts some. Therefore one inverse serves all formats: the place to which each bit moves is
//! found by packing blocks with chosen bits (`Wiring`).

use super::device::{BlockFormat, PlaneUnit};
use kernel_dsl::half::f16;
use kernel_dsl::prelude::{View, ViewMut};

/// The rule by which a format quantizes. A NaN counts as 0, an infinity as the largest finite
/// number of its sign. A scale beyond the range of `f16` is ±65504, so that all restored numbers
/// are finite. Blocks of zeros become zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The number with the largest magnitude becomes the least code. Of two such numbers, the
    /// positive one becomes the least code.
    Largest,
    /// The largest magnitude, or 2⁻¹²⁰ if that is larger, becomes 127. Ties are rounded to even.
    Bytes,
    /// The least number becomes code 0, and the greatest the last code.
    Range,
    /// The scale is 2^⌊log₂ of the largest magnitude⌋ − 2.
    Exponent,
    /// [`Largest`](Rule::Largest) in each group. Scales of groups are integers that are at least
    /// `least`, and the one with the largest magnitude is `least`. Scales are stored with `bias`
    /// added.
    Groups {
        /// The least scale of a group.
        least: i32,
        /// The number that is added to the scale of a group when it is stored.
        bias: i32,
    },
    /// [`Range`](Rule::Range) in each group, with 0 included in the range. Scales and minima of
    /// groups are integers from 0 to `most`.
    Minima {
        /// The greatest scale, and the greatest minimum, of a group.
        most: u32,
    },
}

/// The interface of a format to the host, in addition to [`BlockFormat`].
pub trait Ggml: BlockFormat {
    /// The name of the format in GGML's files.
    const NAME: &'static str;
    /// The number of codes: a power of two.
    const CODES: u32;
    /// The rule by which numbers become codes.
    const RULE: Rule;
    /// Words for eight units in each plane of words, in order.
    const WORDS: &'static [usize];
    /// `u16` for eight units in each plane of halves, in order.
    const HALVES16: &'static [usize];

    /// Returns the integer of a code.
    fn value(code: u32) -> i32;
}

/// Returns the number of numbers that share a scale.
fn group<F: Ggml>() -> usize {
    if F::HALVES { 16 } else { 32 }
}

/// Returns the number of units of a block.
fn units_of_block<F: BlockFormat>() -> usize {
    F::NUMBERS / 32
}

/// Calls `f` with a view of `bytes`.
fn viewed<R>(bytes: &[u8], f: impl FnOnce(View<u8, 1>) -> R) -> R {
    // SAFETY: the view lives as long as the call, in which `bytes` is borrowed and not written.
    f(unsafe { View::host(bytes, [bytes.len()]) })
}

/// Writes the numbers of `block`. Each is computed with the operations of `f32` in the order of
/// ggml's reference: (d · s) · q, and − (m · t) if the format has minima.
///
/// # Panics
/// If the length of `block` or `numbers` is not that of a block.
pub fn dequantize_block<F: Ggml>(block: &[u8], numbers: &mut [f32]) {
    assert_eq!((block.len(), numbers.len()), (F::BYTES, F::NUMBERS), "a block of {}", F::NAME);
    viewed(block, |block| {
        for (g, numbers) in numbers.chunks_mut(group::<F>()).enumerate() {
            let scale = F::factor(F::d(block), F::scale(block, g));
            let min = F::offset(F::m(block), F::min(block, g));
            for (i, number) in numbers.iter_mut().enumerate() {
                *number = scale * F::value(F::code(block, group::<F>() * g + i)) as f32;
                if F::MINS {
                    *number -= min;
                }
            }
        }
    });
}

/// Returns the numbers of consecutive blocks.
///
/// # Panics
/// If the last block is incomplete.
#[must_use]
pub fn dequantize<F: Ggml>(blocks: &[u8]) -> Vec<f32> {
    assert_eq!(blocks.len() % F::BYTES, 0, "whole blocks of {}", F::NAME);
    let mut numbers = vec![0.0; blocks.len() / F::BYTES * F::NUMBERS];
    for (block, numbers) in blocks.chunks(F::BYTES).zip(numbers.chunks_mut(F::NUMBERS)) {
        dequantize_block::<F>(block, numbers);
    }
    numbers
}

/// Fields of a block: d, m, scales and minima of groups, codes of numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Fields(Vec<u32>);

impl Fields {
    fn zero<F: Ggml>() -> Fields {
        Fields(vec![0; 2 + 2 * F::NUMBERS / group::<F>() + F::NUMBERS])
    }

    fn read<F: Ggml>(block: &[u8]) -> Fields {
        viewed(block, |block| {
            let groups = 0..F::NUMBERS / group::<F>();
            let scales = groups.clone().map(|g| F::scale(block, g));
            let minima = groups.map(|g| F::min(block, g));
            let codes = (0..F::NUMBERS).map(|i| F::code(block, i));
            Fields([F::d(block), F::m(block)].into_iter().chain(scales).chain(minima).chain(codes).collect())
        })
    }

    fn d(&mut self) -> &mut u32 {
        &mut self.0[0]
    }

    fn m(&mut self) -> &mut u32 {
        &mut self.0[1]
    }

    fn scale(&mut self, g: usize) -> &mut u32 {
        &mut self.0[2 + g]
    }

    fn min<F: Ggml>(&mut self, g: usize) -> &mut u32 {
        &mut self.0[2 + F::NUMBERS / group::<F>() + g]
    }

    fn code<F: Ggml>(&mut self, i: usize) -> &mut u32 {
        &mut self.0[2 + 2 * F::NUMBERS / group::<F>() + i]
    }
}

/// The place to which each bit of some bytes moves, in a list of words.
struct Wiring {
    bytes: usize,
    /// Word and bit, and whether the bit is inverted.
    bits: Vec<(usize, u32, bool)>,
}

impl Wiring {
    /// Finds the place to which `f` moves each bit of `bytes` bytes. Bits are numbered. For each
    /// binary digit, `f` converts two blocks: one has the bits whose number has a 1 in that digit,
    /// the other has the rest. A bit of the result changes in one of the two, which gives that
    /// digit of its source's number.
    ///
    /// # Panics
    /// If `f` does anything but move and invert bits, or loses a bit.
    fn of(bytes: usize, f: impl Fn(&[u8]) -> Vec<u32>) -> Wiring {
        let base = f(&vec![0; bytes]);
        let with = |digit: u32, value: usize| {
            let mut block = vec![0u8; bytes];
            for k in (0..8 * bytes).filter(|k| k >> digit & 1 == value) {
                block[k / 8] |= 1 << (k % 8);
            }
            f(&block)
        };
        let digits = usize::BITS - (8 * bytes).leading_zeros();
        let answers: Vec<_> = (0..digits).map(|digit| (with(digit, 1), with(digit, 0))).collect();
        let mut bits = vec![None; 8 * bytes];
        for (word, bit) in (0..base.len()).flat_map(|word| (0..u32::BITS).map(move |bit| (word, bit))) {
            let changes = |found: &[u32]| (found[word] ^ base[word]) >> bit & 1 == 1;
            if answers.iter().all(|(ones, zeros)| !changes(ones) && !changes(zeros)) {
                continue;
            }
            let source = answers.iter().rev().fold(0, |source, (ones, zeros)| {
                assert_ne!(changes(ones), changes(zeros), "bit {bit} of word {word} has several sources");
                2 * source + usize::from(changes(ones))
            });
            let before = bits[source].replace((word, bit, base[word] >> bit & 1 == 1));
            assert_eq!(before, None, "bit {source} has several places");
        }
        let place = |(k, place): (usize, Option<_>)| place.unwrap_or_else(|| panic!("bit {k} is lost"));
        Wiring { bytes, bits: bits.into_iter().enumerate().map(place).collect() }
    }

    /// Returns the bytes that `f` converts to these words.
    fn invert(&self, words: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        for (k, (word, bit, inverted)) in self.bits.iter().enumerate() {
            bytes[k / 8] |= ((words[*word] >> bit & 1) as u8 ^ u8::from(*inverted)) << (k % 8);
        }
        bytes
    }
}

/// Blocks in the form of planes. A row of words ends at a multiple of 16 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planes {
    /// The words of all rows.
    pub words: Vec<u32>,
    /// The 16-bit elements of all rows.
    pub halves: Vec<u16>,
    /// The number of rows.
    pub rows: usize,
    /// The number of units of each row.
    pub units: usize,
}

/// Returns the distance in words from a row of planes to the next one.
#[must_use]
pub fn pitch<F: BlockFormat>(units: usize) -> usize {
    F::words(units).next_multiple_of(4)
}

/// Repacks rows of complete blocks.
///
/// # Panics
/// If `blocks` are not `rows` rows of complete blocks.
#[must_use]
pub fn repack<F: BlockFormat>(blocks: &[u8], rows: usize) -> Planes {
    let row_bytes = blocks.len().checked_div(rows).unwrap_or(0);
    assert!(
        row_bytes * rows == blocks.len() && row_bytes.is_multiple_of(F::BYTES),
        "{rows} rows of blocks of {} bytes",
        F::BYTES
    );
    let units = row_bytes / F::BYTES * units_of_block::<F>();
    let (wide, narrow) = (pitch::<F>(units), F::halves(units));
    let (mut words, mut halves) = (vec![0u32; rows * wide], vec![0u16; rows * narrow]);
    // SAFETY: both views are used only in this call and by one thread. The vectors outlive the
    // views, and are not used meanwhile.
    let (to_words, to_halves) =
        unsafe { (ViewMut::host(&mut words, [rows, wide]), ViewMut::host(&mut halves, [rows, narrow])) };
    for row in 0..rows {
        for unit in 0..units {
            let first = row * row_bytes + unit / units_of_block::<F>() * F::BYTES;
            viewed(&blocks[first..(row + 1) * row_bytes], |block| {
                F::pack(block, unit % units_of_block::<F>(), to_words, to_halves, PlaneUnit { row, unit, units });
            });
        }
    }
    Planes { words, halves, rows, units }
}

/// Returns the blocks that [`repack`] converts to `planes`.
///
/// # Panics
/// If the lengths of the planes do not match their numbers of rows and units.
#[must_use]
pub fn restore<F: Ggml>(planes: &Planes) -> Vec<u8> {
    let &Planes { ref words, ref halves, rows, units } = planes;
    let (wide, narrow) = (pitch::<F>(units), F::halves(units));
    assert_eq!((words.len(), halves.len()), (rows * wide, rows * narrow), "planes of {}", F::NAME);
    // One wiring serves eight units, another the rest of a row.
    let wiring = |units: usize| {
        Wiring::of(units / units_of_block::<F>() * F::BYTES, |blocks| {
            let planes = repack::<F>(blocks, 1);
            let halves = planes.halves.iter().map(|half| u32::from(*half));
            planes.words[..F::words(units)].iter().copied().chain(halves).collect()
        })
    };
    let eight = (units >= 8).then(|| wiring(8));
    let rest = (units % 8 > 0).then(|| wiring(units % 8));
    let mut blocks = Vec::new();
    for row in 0..rows {
        let (words, halves) = (&words[row * wide..(row + 1) * wide], &halves[row * narrow..(row + 1) * narrow]);
        for first in (0..units).step_by(8) {
            let n = (units - first).min(8);
            let of_words = pieces(words, F::WORDS, units, first, n);
            let of_halves = pieces(halves, F::HALVES16, units, first, n).map(u32::from);
            let group: Vec<u32> = of_words.chain(of_halves).collect();
            if let Some(wiring) = if n == 8 { &eight } else { &rest } {
                blocks.extend(wiring.invert(&group));
            }
        }
    }
    blocks
}

/// Returns the records of `n` units from `first` on, a multiple of 8, in each plane of a row. For
/// eight units, the planes have `each` elements.
fn pieces<T: Copy>(row: &[T], each: &[usize], units: usize, first: usize, n: usize) -> impl Iterator<Item = T> {
    let of = move |each: usize, units: usize| (each * units).div_ceil(8);
    each.iter()
        .scan(0, move |plane, each| {
            let at = *plane + of(*each, first);
            *plane += of(*each, units);
            Some(row[at..at + of(*each, n)].iter().copied())
        })
        .flatten()
}

/// Quantizes numbers, block by block, by the format's [`Rule`].
///
/// # Panics
/// If the last block is incomplete.
#[must_use]
pub fn quantize<F: Ggml>(numbers: &[f32]) -> Vec<u8> {
    assert_eq!(numbers.len() % F::NUMBERS, 0, "whole blocks of {}", F::NAME);
    let wiring = Wiring::of(F::BYTES, |block| Fields::read::<F>(block).0);
    numbers.chunks(F::NUMBERS).flat_map(|numbers| wiring.invert(&fields::<F>(numbers).0)).collect()
}

/// Returns the finite number that replaces `x`.
fn finite(x: f32) -> f32 {
    if x.is_nan() { 0.0 } else { x.clamp(f32::MIN, f32::MAX) }
}

/// Rounds to the nearest finite `f16`.
fn round_to_f16(x: f32) -> f16 {
    f16::from_f32(x.clamp(-65504.0, 65504.0))
}

/// Returns 1 / x, or 0 if that is not finite or x is subnormal.
fn inverse(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { 1.0 / x }
}

/// Returns the number with the largest magnitude, and of two such numbers the positive one.
fn largest(numbers: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b.abs() > a.abs() || (b.abs() == a.abs() && b > a) { b } else { a };
    numbers.iter().copied().fold(0.0, larger)
}

/// Returns the code whose integer is nearest to x · inverse. Of two equally near codes it returns
/// the greater one if codes are in order, and the smaller one if they select from a table.
fn nearest<F: Ggml>(x: f32, inverse: f32) -> u32 {
    let linear = (1..F::CODES).all(|code| F::value(code) == F::value(code - 1) + 1);
    if linear {
        return (x.mul_add(inverse, 0.5 - F::value(0) as f32) as u32).min(F::CODES - 1);
    }
    let off = |code: u32| (x * inverse - F::value(code) as f32).abs();
    (1..F::CODES).fold(0, |best, code| if off(code) < off(best) { code } else { best })
}

/// Returns the integer scales of groups: the nearest to scale / d, from `least` to `most`.
fn round_scale(scale: f32, d: f32, least: i32, most: i32) -> i32 {
    ((scale * inverse(d)).round_ties_even() as i32).clamp(least, most)
}

fn fields<F: Ggml>(numbers: &[f32]) -> Fields {
    let numbers: Vec<f32> = numbers.iter().map(|x| finite(*x)).collect();
    let mut fields = Fields::zero::<F>();
    let least = numbers.iter().copied().fold(f32::INFINITY, f32::min);
    let most = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let top = (F::CODES - 1) as f32;
    match F::RULE {
        Rule::Largest => {
            // Zeros of either sign become 0.
            let d = largest(&numbers) / F::value(0) as f32 + 0.0;
            *fields.d() = round_to_f16(d).to_bits().into();
            let inverse = inverse(d.clamp(-65504.0, 65504.0));
            for (i, x) in numbers.iter().enumerate() {
                *fields.code::<F>(i) = nearest::<F>(*x, inverse);
            }
        }
        Rule::Bytes => {
            let top = largest(&numbers).abs().clamp(2f32.powi(-120), 127.0 * 65504.0);
            *fields.d() = round_to_f16(top / 127.0).to_bits().into();
            for (i, x) in numbers.iter().enumerate() {
                *fields.code::<F>(i) =
                    u32::from((x * (127.0 / top)).round_ties_even().clamp(-127.0, 127.0) as i8 as u8);
            }
        }
        Rule::Range => {
            let d = ((most - least).min(f32::MAX) / top).min(65504.0);
            let m = least.clamp(-65504.0, 65504.0);
            *fields.d() = round_to_f16(d).to_bits().into();
            *fields.m() = round_to_f16(m).to_bits().into();
            for (i, x) in numbers.iter().enumerate() {
                *fields.code::<F>(i) = nearest::<F>(x - m, inverse(d));
            }
        }
        Rule::Exponent => {
            let top = largest(&numbers).abs();
            // ⌊log₂⌋ of a normal number. A number below 2⁻¹²⁶ has the least scale in any case.
            let e = if top == 0.0 { 0 } else { ((top.to_bits() >> 23) as i32 - 2).max(0) as u32 };
            *fields.d() = e;
            // In `f64`: the inverse of a subnormal scale may be beyond `f32`.
            let inverse = f64::from(F::factor(e, 0)).recip();
            for (i, x) in numbers.iter().enumerate() {
                *fields.code::<F>(i) = nearest::<F>((f64::from(*x) * inverse) as f32, 1.0);
            }
        }
        Rule::Groups { least, bias } => {
            let scales: Vec<f32> = numbers.chunks(group::<F>()).map(|x| largest(x) / F::value(0) as f32).collect();
            let d = round_to_f16(largest(&scales) / least as f32);
            *fields.d() = d.to_bits().into();
            for ((g, scale), group) in scales.iter().enumerate().zip(numbers.chunks(group::<F>())) {
                let scale = (round_scale(*scale, d.to_f32(), least, -least - 1) + bias) as u32 & 0xff;
                *fields.scale(g) = scale;
                let inverse = inverse(F::factor(d.to_bits().into(), scale));
                for (i, x) in group.iter().enumerate() {
                    *fields.code::<F>(g * group.len() + i) = nearest::<F>(*x, inverse);
                }
            }
        }
        Rule::Minima { most: last } => {
            let ranges = numbers.chunks(group::<F>()).map(|x| {
                let (low, high) = x.iter().fold((0.0f32, 0.0f32), |(low, high), x| (low.min(*x), high.max(*x)));
                ((high - low).min(f32::MAX) / top, -low)
            });
            let ranges: Vec<(f32, f32)> = ranges.collect();
            let greatest =
                |of: fn(&(f32, f32)) -> f32| round_to_f16(ranges.iter().map(of).fold(0.0, f32::max) / last as f32);
            let (d, m) = (greatest(|range| range.0), greatest(|range| range.1));
            (*fields.d(), *fields.m()) = (d.to_bits().into(), m.to_bits().into());
            for ((g, (scale, min)), group) in ranges.into_iter().enumerate().zip(numbers.chunks(group::<F>())) {
                let scale = round_scale(scale, d.to_f32(), 0, last as i32) as u32;
                let min = round_scale(min, m.to_f32(), 0, last as i32) as u32;
                (*fields.scale(g), *fields.min::<F>(g)) = (scale, min);
                let inverse = inverse(F::factor(d.to_bits().into(), scale));
                let min = F::offset(m.to_bits().into(), min);
                for (i, x) in group.iter().enumerate() {
                    *fields.code::<F>(g * group.len() + i) = nearest::<F>(*x + min, inverse);
                }
            }
        }
    }
    fields
}
