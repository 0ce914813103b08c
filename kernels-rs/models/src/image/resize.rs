//! Bicubic resizing with the bits of Pillow before version 13: first each row, then each column.
//! Both steps round their results to bytes. Factors have 22 bits after the binary point. PyTorch's
//! factors have 15 bits; in the tests, its results differ by at most two of 256 levels.

/// The bits of a factor after the binary point.
const FACTOR_BITS: u32 = 22;

/// The number of pixels on either side that contribute to a pixel, if the image does not shrink.
const SUPPORT_PIXELS: f64 = 2.0;

/// Returns the cubic convolution kernel with a = −1/2 (Keys, 1981).
fn kernel(x: f64) -> f64 {
    const A: f64 = -0.5;
    match x.abs() {
        x if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
        x if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
        _ => 0.0,
    }
}

/// Returns, for each of `to` new pixels, the first of `from` old pixels that contribute, and the
/// factors of this pixel and of those after it. If the side shrinks, more pixels contribute.
fn factors(from: usize, to: usize) -> Vec<(usize, Vec<i64>)> {
    let scale = from as f64 / to as f64;
    let stretch = scale.max(1.0);
    let (support, shrink) = (SUPPORT_PIXELS * stretch, 1.0 / stretch);
    let factors = |i: usize| {
        let center = (i as f64 + 0.5) * scale;
        let first = (center - support + 0.5).max(0.0) as usize;
        let end = ((center + support + 0.5) as usize).min(from);
        let weights: Vec<f64> = (first..end).map(|x| kernel((x as f64 - center + 0.5) * shrink)).collect();
        let sum: f64 = weights.iter().sum();
        // Ties are rounded away from zero.
        let fixed = |weight: &f64| (weight / sum * f64::from(1 << FACTOR_BITS)).round() as i64;
        (first, weights.iter().map(fixed).collect())
    };
    (0..to).map(factors).collect()
}

/// Rounds a sum of bytes times factors to a byte.
fn rounded(sum: i64) -> u8 {
    ((sum + (1 << (FACTOR_BITS - 1))) >> FACTOR_BITS).clamp(0, 255) as u8
}

/// Resizes an image, `[height, width, 3]`, to `[to_height, to_width, 3]`. All extents are at least
/// 1.
pub(super) fn bicubic(pixels: &[u8], [height, width]: [usize; 2], [to_height, to_width]: [usize; 2]) -> Vec<u8> {
    let mut rows = pixels.to_vec();
    if to_width != width {
        let factors = factors(width, to_width);
        rows = Vec::with_capacity(height * to_width * 3);
        for row in pixels.chunks_exact(width * 3) {
            for (first, factors) in &factors {
                let mut sums = [0i64; 3];
                for (pixel, factor) in row[first * 3..].chunks_exact(3).zip(factors) {
                    (0..3).for_each(|color| sums[color] += i64::from(pixel[color]) * factor);
                }
                rows.extend(sums.map(rounded));
            }
        }
    }
    if to_height == height {
        return rows;
    }
    let row_bytes = to_width * 3;
    let mut resized = Vec::with_capacity(to_height * row_bytes);
    let mut sums = vec![0i64; row_bytes];
    for (first, factors) in factors(height, to_height) {
        sums.fill(0);
        for (row, factor) in rows[first * row_bytes..].chunks_exact(row_bytes).zip(factors) {
            sums.iter_mut().zip(row).for_each(|(sum, byte)| *sum += i64::from(*byte) * factor);
        }
        resized.extend(sums.iter().map(|sum| rounded(*sum)));
    }
    resized
}
