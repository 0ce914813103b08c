//! Textures and surfaces of a launch, by their 64-bit handles.
//!
//! The owner of the memory gives each launch its [`Objects`]. The handle of a texture object is the
//! number that the program chose; the handle of a `.texref` or `.surfref` variable is the
//! variable's address. Texels are in the device's memory.
//!
//! # Values
//!
//! The formulas are those of the CUDA C programming guide, "Texture Fetching". Where the guide does
//! not determine a value, these rules were measured on an H100:
//!
//! - A normalized coordinate is rounded down to a multiple of 2⁻²¹ before it is scaled.
//! - For a linear filter, a coordinate is rounded to a multiple of 2⁻⁸ texels, halves up.
//! - Weights have 8 fractional bits. The weight of the far corner of a square is rounded, and the
//!   other weights keep the sums along the axes.
//! - Normalized integers are combined to a number of 16 bits, halves to a half, singles to a
//!   single. Each is rounded once.
//! - A texture of one axis without layers is filtered as a plane of one row, at y = 0.
//! - Channels that a texture does not have are 0, in its border too.
//!
//! In an eighth of cases, the weights of a volume's eight texels differ by one step from a card's.
//! Means of signed bytes differ in one of 31 cases. A filtered value counts as approximate.

use smallvec::SmallVec;
use std::collections::HashMap;

/// The number of fractional bits of a filter's weights.
const WEIGHT_BITS: u32 = 8;

/// The values of the second, third and fourth channel of a texture that does not have them.
const MISSING_CHANNELS: [u32; 4] = [0; 4];

/// The textures and surfaces of a launch, by handle.
pub type Objects = HashMap<u64, TextureOrSurface>;

/// A texture or a surface.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TextureOrSurface {
    /// Texels that are read with a sampler.
    Texture(Texels, TextureSampler),
    /// Texels that are read and written by position.
    Surface(Texels),
}

impl TextureOrSurface {
    /// Returns the texels.
    pub fn texels(&self) -> &Texels {
        match self {
            TextureOrSurface::Texture(texels, _) | TextureOrSurface::Surface(texels) => texels,
        }
    }
}

/// The format of a channel of a texel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl Channel {
    /// Returns the size in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Channel::U8 | Channel::S8 => 1,
            Channel::U16 | Channel::S16 | Channel::F16 => 2,
            Channel::U32 | Channel::S32 | Channel::F32 => 4,
        }
    }

    /// Returns the stored number that a read converts to 1, for channels that a read converts to
    /// fractions.
    const fn greatest(self) -> Option<f64> {
        match self {
            Channel::U8 => Some(255.0),
            Channel::U16 => Some(65535.0),
            Channel::S8 => Some(127.0),
            Channel::S16 => Some(32767.0),
            _ => None,
        }
    }

    /// Returns the number that the channel's bits represent.
    fn number(self, word: u32) -> f64 {
        match self {
            Channel::U8 | Channel::U16 | Channel::U32 => word.into(),
            Channel::S8 => (word as i8).into(),
            Channel::S16 => (word as i16).into(),
            Channel::S32 => (word as i32).into(),
            Channel::F16 => f32::from_bits(half(word)).into(),
            Channel::F32 => f32::from_bits(word).into(),
        }
    }

    /// Returns the result of a filter: the weighted mean of stored numbers, rounded.
    fn combined(self, mean: f64) -> f32 {
        let Some(greatest) = self.greatest() else {
            return if self == Channel::F16 { to_half(mean) as f32 } else { mean as f32 };
        };
        // The hardware rounds the mean to a fraction of 16 bits, signed or unsigned.
        let most = if matches!(self, Channel::U8 | Channel::U16) { 65535.0 } else { 32767.0 };
        let steps = (mean * most / greatest + 0.5).floor().clamp(-most, most);
        steps as f32 / most as f32
    }

    /// Returns whether the channel holds an integer.
    pub const fn is_integer(self) -> bool {
        !matches!(self, Channel::F16 | Channel::F32)
    }
}

/// A box of texels in the device's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Texels {
    /// The address of the first texel.
    pub start: u64,
    /// The number of texels along x, y and z. The layers of a layered texture are along z.
    pub size: [u32; 3],
    /// The bytes from one row to the next.
    pub row: u64,
    /// The bytes from one layer to the next.
    pub layer: u64,
    /// The format of a channel.
    pub channel: Channel,
    /// The number of channels: 1, 2 or 4.
    pub channels: u32,
    /// The sizes that a query returns: 0 for an axis that the resource does not have.
    pub queried: [u32; 3],
    /// Whether the texels are a row of linear memory.
    pub is_linear: bool,
}

impl Texels {
    /// Returns the size of a texel in bytes.
    pub const fn texel_bytes(&self) -> u32 {
        self.channel.bytes() * self.channels
    }

    /// Returns the address of a texel.
    pub fn address(&self, [x, y, z]: [u32; 3]) -> u64 {
        let offset = u64::from(z) * self.layer + u64::from(y) * self.row + u64::from(x) * u64::from(self.texel_bytes());
        self.start.wrapping_add(offset)
    }
}

/// The treatment of coordinates outside of a texture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// The texture is repeated. Without normalized coordinates, equivalent to
    /// [`Addressing::Clamp`].
    Wrap,
    /// The nearest texel of the edge.
    Clamp,
    /// The texture is repeated, and every second copy is reflected. Without normalized coordinates,
    /// equivalent to [`Addressing::Clamp`].
    Mirror,
    /// The border color.
    Border,
}

/// The way in which a texture is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TextureSampler {
    /// The treatment of coordinates outside, for each axis.
    pub addressing: [Addressing; 3],
    /// Whether neighboring texels are combined. Texels of integers are never combined.
    pub linear: bool,
    /// Whether coordinates from 0 to 1 span the texture.
    pub normalized: bool,
    /// Whether integers of 8 and 16 bits stay integers, instead of becoming numbers up to 1.
    pub as_integer: bool,
    /// The border color.
    pub border: [f32; 4],
}

/// A texel that contributes to a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilterTap {
    /// The texel, or `None` for the border color.
    pub texel: Option<[u32; 3]>,
    /// The weight, in units of 2⁻⁸.
    pub weight: u32,
}

/// The weight of a texel that contributes alone.
pub const FULL_WEIGHT: u32 = 1 << WEIGHT_BITS;

/// The number of fractional bits of a normalized coordinate.
const NORMALIZED_BITS: i32 = 21;

/// A location in a texture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TexelLocation {
    /// The coordinates.
    pub coordinates: [f32; 3],
    /// The offset in texels along each axis.
    pub offset: [i32; 3],
    /// The number of axes with coordinates.
    pub axes: usize,
    /// The index of the layer, if there are layers.
    pub layer: Option<u32>,
}

impl TexelLocation {
    /// Returns the index of the layer, clamped, or else 0.
    fn layer(&self, texels: &Texels) -> u32 {
        self.layer.unwrap_or(0).min(texels.size[2].saturating_sub(1))
    }
}

/// The two texels of a linear filter along an axis, `None` outside, and the weight of the second.
type Pair = ([Option<u32>; 2], u32);

/// Rounds a number in units of 2⁻¹⁶ to one of 2⁻⁸.
const fn rounded(number: u32) -> u32 {
    (number + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS
}

/// Returns the weights of the corners of a square, x fastest.
const fn square(x: u32, y: u32) -> [u32; 4] {
    let both = rounded(x * y);
    [FULL_WEIGHT + both - x - y, x - both, y - both, both]
}

/// Returns the weights of the corners of a cube, x fastest.
fn cube(x: u32, y: u32, z: u32) -> [[u32; 4]; 2] {
    let all = square(x, y);
    let mut near = all.map(|weight| rounded(weight * (FULL_WEIGHT - z)));
    // The first weight is chosen such that the weights of the near plane add up exactly, unless
    // that is out of range.
    let others: u32 = near[1..].iter().sum();
    near[0] = (FULL_WEIGHT - z).saturating_sub(others).min(all[0]);
    [near, std::array::from_fn(|i| all[i] - near[i])]
}

impl TextureSampler {
    /// Returns whether the results are integers.
    pub fn gives_integers(&self, channel: Channel) -> bool {
        match channel {
            Channel::U32 | Channel::S32 => true,
            Channel::U8 | Channel::S8 | Channel::U16 | Channel::S16 => self.as_integer,
            Channel::F16 | Channel::F32 => false,
        }
    }

    /// Returns whether neighboring texels of this format are combined.
    pub fn filters(&self, channel: Channel) -> bool {
        self.linear && !self.gives_integers(channel)
    }

    /// Applies the addressing mode of an axis to an index that may be outside.
    fn index(&self, axis: usize, index: i64, size: u32) -> Option<u32> {
        let (n, last) = (i64::from(size.max(1)), i64::from(size.max(1)) - 1);
        let found = match self.addressing[axis] {
            Addressing::Border => Some(index).filter(|i| (0..n).contains(i))?,
            Addressing::Wrap if self.normalized => index.rem_euclid(n),
            Addressing::Mirror if self.normalized => {
                let within = index.rem_euclid(2 * n);
                if within < n { within } else { 2 * n - 1 - within }
            }
            Addressing::Clamp | Addressing::Wrap | Addressing::Mirror => index.clamp(0, last),
        };
        Some(found as u32)
    }

    /// Returns the coordinate in texels. Distant coordinates are clamped, and NaN is 0.
    fn scaled(&self, axis: usize, coordinate: f32, size: u32) -> f64 {
        const MAX_COORDINATE: f64 = (1u64 << 40) as f64;
        let repeats = matches!(self.addressing[axis], Addressing::Wrap | Addressing::Mirror);
        let coordinate = if coordinate.is_nan() { 0.0 } else { f64::from(coordinate) };
        if !self.normalized {
            return coordinate.clamp(-MAX_COORDINATE, MAX_COORDINATE);
        }
        // An infinite coordinate has no position in a repeated texture, so 0 replaces the
        // coordinate.
        if coordinate.is_infinite() && repeats {
            return 0.0;
        }
        let steps = f64::from(1 << NORMALIZED_BITS);
        (coordinate.clamp(-MAX_COORDINATE, MAX_COORDINATE) * steps).floor() / steps * f64::from(size)
    }

    /// Returns the texels of a linear filter along an axis.
    fn pair(&self, axis: usize, coordinate: f32, offset: i32, size: u32) -> Pair {
        let fixed = ((self.scaled(axis, coordinate, size) - 0.5) * f64::from(FULL_WEIGHT) + 0.5).floor() as i64;
        let low = (fixed >> WEIGHT_BITS) + i64::from(offset);
        let weight = (fixed & i64::from(FULL_WEIGHT - 1)) as u32;
        ([self.index(axis, low, size), self.index(axis, low + 1, size)], weight)
    }

    /// Returns the texels that contribute to the value at a location.
    pub fn taps(&self, texels: &Texels, at: &TexelLocation) -> SmallVec<[FilterTap; 8]> {
        let layer = at.layer(texels);
        if !self.filters(texels.channel) {
            let mut texel = Some([0, 0, layer]);
            for axis in 0..at.axes.min(3) {
                let index = self.scaled(axis, at.coordinates[axis], texels.size[axis]).floor() as i64;
                let index = self.index(axis, index + i64::from(at.offset[axis]), texels.size[axis]);
                texel = texel.zip(index).map(|(mut texel, index)| {
                    texel[axis] = index;
                    texel
                });
            }
            return [FilterTap { texel, weight: FULL_WEIGHT }].into_iter().collect();
        }
        let axis = |axis: usize| self.pair(axis, at.coordinates[axis], at.offset[axis], texels.size[axis]);
        let (xs, x) = axis(0);
        let (ys, y) = match (at.axes, at.layer) {
            (1, Some(_)) => ([Some(0); 2], 0),
            (1, None) => self.pair(1, 0.0, 0, 1),
            _ => axis(1),
        };
        let (zs, weights) = match at.axes {
            3 => {
                let (zs, z) = axis(2);
                (zs, cube(x, y, z))
            }
            _ => ([Some(layer); 2], [square(x, y), [0; 4]]),
        };
        let corners = (0..8).map(|i| FilterTap {
            texel: xs[i & 1].zip(ys[i >> 1 & 1]).zip(zs[i >> 2]).map(|((x, y), z)| [x, y, z]),
            weight: weights[i >> 2][i & 3],
        });
        corners.filter(|tap| tap.weight > 0).collect()
    }

    /// Returns the four texels that `tld4` reads, counterclockwise from the one with the lower x
    /// and the higher y.
    pub fn corners(&self, texels: &Texels, at: &TexelLocation) -> [Option<[u32; 3]>; 4] {
        let axis = |axis: usize| self.pair(axis, at.coordinates[axis], at.offset[axis], texels.size[axis]);
        let (([left, right], _), ([low, high], _)) = (axis(0), axis(1));
        let layer = at.layer(texels);
        [(left, high), (right, high), (right, low), (left, low)].map(|(x, y)| Some([x?, y?, layer]))
    }

    /// Returns the four result words of taps. `read` returns the word of a channel of a texel,
    /// zero-extended.
    pub fn value(&self, texels: &Texels, taps: &[FilterTap], mut read: impl FnMut([u32; 3], u32) -> u32) -> [u32; 4] {
        let mut result = MISSING_CHANNELS;
        for (channel, result) in (0..texels.channels).zip(&mut result) {
            let border = self.border[channel as usize];
            let alone = !self.filters(texels.channel);
            if let ([FilterTap { texel, .. }], true) = (taps, alone) {
                *result = match texel {
                    Some(texel) => self.converted(texels.channel, read(*texel, channel)),
                    None if self.gives_integers(texels.channel) => border as i64 as u32,
                    None => border.to_bits(),
                };
                continue;
            }
            let greatest = texels.channel.greatest();
            let sum: f64 = taps
                .iter()
                .map(|tap| {
                    let value = match tap.texel {
                        Some(texel) => texels.channel.number(read(texel, channel)),
                        None => f64::from(border) * greatest.unwrap_or(1.0),
                    };
                    value * f64::from(tap.weight)
                })
                .sum();
            *result = texels.channel.combined(sum / f64::from(FULL_WEIGHT)).to_bits();
        }
        result
    }

    /// Returns the result word of a channel's stored bits.
    pub fn converted(&self, channel: Channel, word: u32) -> u32 {
        let number = |value: i32, greatest: f32| {
            if self.as_integer { value as u32 } else { (value as f32 / greatest).max(-1.0).to_bits() }
        };
        match channel {
            Channel::U8 => number(word as i32, 255.0),
            Channel::U16 => number(word as i32, 65535.0),
            Channel::S8 => number((word as i8).into(), 127.0),
            Channel::S16 => number((word as i16).into(), 32767.0),
            Channel::F16 => half(word),
            Channel::U32 | Channel::S32 | Channel::F32 => word,
        }
    }
}

/// Rounds a number to a half; ties round away from zero.
fn to_half(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let exponent = (number.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let step = f64::from(exponent.max(-14) - 10).exp2();
    ((number.abs() / step + 0.5).floor() * step).copysign(number)
}

/// Converts the bits of a half to the bits of a single.
fn half(bits: u32) -> u32 {
    use super::arithmetic::convert::to_float;
    use super::arithmetic::float::{F16, F32, Rounding};
    to_float(F16, F32, bits.into(), Rounding::Nearest) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texels(size: [u32; 3], channel: Channel) -> Texels {
        let row = u64::from(size[0] * channel.bytes());
        let layer = row * u64::from(size[1]);
        Texels { start: 0, size, row, layer, channel, channels: 1, queried: size, is_linear: false }
    }

    fn sampler(mode: Addressing, linear: bool, normalized: bool) -> TextureSampler {
        TextureSampler { addressing: [mode; 3], linear, normalized, as_integer: false, border: [9.0; 4] }
    }

    fn at(x: f32) -> TexelLocation {
        TexelLocation { coordinates: [x, 0.0, 0.0], offset: [0; 3], axes: 1, layer: Some(0) }
    }

    /// Returns the first channel of a texture with four texels, of values 0, 10, 20 and 30.
    fn one(sampler: TextureSampler, x: f32) -> f32 {
        let texels = texels([4, 1, 1], Channel::F32);
        let taps = sampler.taps(&texels, &at(x));
        f32::from_bits(sampler.value(&texels, &taps, |[x, _, _], _| (10.0 * x as f32).to_bits())[0])
    }

    #[test]
    fn points_outside_follow_the_addressing_mode() {
        let normalized = [(Addressing::Wrap, [30.0, 10.0]), (Addressing::Mirror, [0.0, 20.0])];
        let clamped = [(Addressing::Clamp, [0.0, 30.0]), (Addressing::Border, [9.0, 9.0])];
        for (mode, [before, after]) in normalized.into_iter().chain(clamped) {
            assert_eq!(one(sampler(mode, false, true), -0.125), before, "{mode:?}");
            assert_eq!(one(sampler(mode, false, true), 1.375), after, "{mode:?}");
        }
        assert_eq!(one(sampler(Addressing::Wrap, false, false), -0.5), 0.0, "only normalized coordinates wrap");
    }

    #[test]
    fn weights_have_eight_fractional_bits() {
        let linear = sampler(Addressing::Clamp, true, false);
        for (x, wanted) in [(0.5, 0.0), (1.0, 5.0), (1.25, 7.5), (3.9, 30.0), (-3.0, 0.0)] {
            assert_eq!(one(linear, x), wanted, "{x}");
        }
        // Half of a step rounds up, less than half down.
        assert_eq!(one(linear, 0.5 + 1.0 / 512.0), 10.0 / 256.0);
        assert_eq!(one(linear, 0.5 + 0.99 / 512.0), 0.0);
        assert_eq!(one(sampler(Addressing::Border, true, false), 0.0), 4.5);
        assert_eq!(one(sampler(Addressing::Wrap, true, true), 0.0), 15.0);
    }

    #[test]
    fn weights_of_corners_have_the_sums_of_the_axes() {
        for (x, y, z) in [(0, 0, 0), (64, 1, 3), (255, 255, 255), (1, 255, 128), (77, 130, 201)] {
            let [near, far] = cube(x, y, z);
            assert_eq!(near.iter().chain(&far).sum::<u32>(), FULL_WEIGHT);
            let square = square(x, y);
            assert_eq!((square[1] + square[3], square[2] + square[3]), (x, y));
        }
        assert_eq!(square(64, 1), [191, 64, 1, 0], "a quarter of a step is lost, as on a card");
    }

    #[test]
    fn integers_become_numbers_up_to_one() {
        let (read, whole) = (sampler(Addressing::Clamp, false, false), true);
        let values = [
            (Channel::U8, 255, 1.0),
            (Channel::S8, 0x80, -1.0),
            (Channel::S8, 0x81, -1.0),
            (Channel::U16, 0xffff, 1.0),
            (Channel::S16, 0x4000, 16384.0 / 32767.0),
            (Channel::F16, 0x3e00, 1.5),
        ];
        for (channel, word, wanted) in values {
            assert_eq!(f32::from_bits(read.converted(channel, word)), wanted, "{channel:?} {word:#x}");
        }
        let integers = TextureSampler { as_integer: whole, ..read };
        assert_eq!(integers.converted(Channel::S8, 0x80) as i32, -128);
        assert_eq!(integers.converted(Channel::U16, 0xffff), 0xffff);
    }

    #[test]
    fn far_coordinates_have_texels() {
        for mode in [Addressing::Wrap, Addressing::Clamp, Addressing::Mirror] {
            for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e30, -1e30] {
                for (linear, normalized) in [(false, false), (false, true), (true, false), (true, true)] {
                    assert!((0.0..=30.0).contains(&one(sampler(mode, linear, normalized), x)), "{mode:?} {x}");
                }
            }
        }
    }
}
