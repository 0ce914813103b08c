//! Images, and their preparation for a vision tower.
//!
//! ```text
//!   PNG, JPEG, PPM ─ Image ─ resize, bicubic ─ PreparedImage ─ patches in squares of merge × merge ─▶ tower
//! ```
//!
//! The steps are those of Qwen2-VL's image processor in transformers, which Qwen3-VL uses too. A
//! square of merge × merge patches becomes one token. Resizing makes each side of the image a
//! multiple of a square's side. Resizing also scales an image with too few or too many pixels, and
//! keeps the proportions as far as multiples allow.

mod resize;

use crate::checkpoint::{Checkpoint, Files};
use crate::configuration::VisionConfiguration;
use crate::error::{Error, Result};
use crate::file::bytes::{FileBytes, name};
use crate::file::gguf::MetadataValue;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::io::Cursor;
use std::path::Path;

/// The largest file of an image, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 28;

/// The largest side of an image in a file, in pixels.
const MAX_SIDE: u32 = 1 << 16;

/// The most bytes that a decoder may allocate, and the most bytes of the decoded pixels.
const MAX_DECODED_BYTES: u64 = 1 << 28;

/// The most pixels of a resized image.
const MAX_PIXELS: u64 = 1 << 26;

/// The largest ratio of the sides of an image, as in transformers.
const MAX_RATIO: f64 = 200.0;

/// An image whose pixels have a byte each of red, green and blue.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    /// Rows of pixels, three bytes each.
    pixels: Vec<u8>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({} × {})", self.width, self.height)
    }
}

impl Image {
    /// Makes an image of `[height, width, 3]` bytes: red, green and blue of each pixel.
    ///
    /// # Errors
    /// If a side is 0, or there are not three bytes for each pixel.
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Result<Image> {
        let expected = width.checked_mul(height).and_then(|n| n.checked_mul(3)).filter(|n| *n > 0);
        if expected != Some(pixels.len()) {
            let problem =
                format!("expected 3 bytes a pixel for {width} × {height} pixels, found {} bytes", pixels.len());
            return Err(Error::field("an image", "pixels", problem));
        }
        Ok(Image { width, height, pixels })
    }

    /// Reads a file in PNG, JPEG or PPM, as [`read`](Image::read) does.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, has another format, or is too large: 256 MiB, 65,536
    /// pixels a side, or 256 MiB of decoded pixels.
    pub fn open(path: &Path) -> Result<Image> {
        Image::read(&name(path), &FileBytes::read(path, MAX_FILE_BYTES)?)
    }

    /// Decodes the bytes of a file in PNG, JPEG or PPM. Applies the orientation in the Exif data,
    /// and drops transparency. Error messages use the name `file`.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Image::open), except those of reading the file.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Image> {
        let damaged = |error: image::ImageError| Error::field(file, "image", error.to_string());
        let mut reader = ImageReader::new(Cursor::new(bytes));
        let mut limits = Limits::default();
        (limits.max_image_width, limits.max_image_height) = (Some(MAX_SIDE), Some(MAX_SIDE));
        limits.max_alloc = Some(MAX_DECODED_BYTES);
        reader.limits(limits);
        let reader = reader.with_guessed_format().map_err(|error| damaged(error.into()))?;
        if !matches!(reader.format(), Some(ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Pnm)) {
            return Err(Error::unsupported(file, "image", "the format of the file", "PNG, JPEG, PPM"));
        }
        let mut decoder = reader.into_decoder().map_err(damaged)?;
        if decoder.total_bytes() > MAX_DECODED_BYTES {
            let (width, height) = decoder.dimensions();
            let problem = format!(
                "{width} × {height} pixels need {} bytes; at most {MAX_DECODED_BYTES} are read",
                decoder.total_bytes()
            );
            return Err(Error::field(file, "image", problem));
        }
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let mut decoded = DynamicImage::from_decoder(decoder).map_err(damaged)?;
        decoded.apply_orientation(orientation);
        let rgb = decoded.into_rgb8();
        let (width, height) = rgb.dimensions();
        Image::new(width as usize, height as usize, rgb.into_raw())
            .map_err(|_| Error::field(file, "image", format!("the image has {width} × {height} pixels")))
    }

    /// Returns the pixels, `[height, width, 3]`.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Returns width and height in pixels.
    pub fn extents(&self) -> [usize; 2] {
        [self.width, self.height]
    }
}

/// The settings by which images are prepared for a vision tower.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ImageProcessor {
    /// The side of a patch in pixels.
    patch: usize,
    /// The side, in patches, of a square that becomes one token.
    merge: usize,
    /// The minimum number of pixels of a resized image, and the maximum.
    pixel_limits: [u64; 2],
    /// The mean of each color, which is subtracted. The bytes 0 to 255 count as 0 to 1.
    mean: [f32; 3],
    /// The standard deviation of each color, by which the difference is divided.
    deviation: [f32; 3],
}

impl ImageProcessor {
    /// Returns Qwen3-VL's settings for a vision tower: 2¹⁶ to 2²⁴ pixels, and a mean and standard
    /// deviation of 0.5.
    pub fn new(vision: &VisionConfiguration) -> ImageProcessor {
        let VisionConfiguration { patch, merge, .. } = *vision;
        ImageProcessor { patch, merge, pixel_limits: [1 << 16, 1 << 24], mean: [0.5; 3], deviation: [0.5; 3] }
    }

    /// Reads the settings of a checkpoint from `preprocessor_config.json`, or from the metadata of
    /// a vision tower in GGUF. Absent fields have the values of [`new`](ImageProcessor::new).
    ///
    /// # Errors
    /// If a file is damaged, or a field is out of range or needs something this crate lacks.
    pub fn from_checkpoint(checkpoint: &Checkpoint, vision: &VisionConfiguration) -> Result<ImageProcessor> {
        let mut processor = ImageProcessor::new(vision);
        match (checkpoint.projector(), checkpoint.files()) {
            (Some(gguf), _) => {
                for (key, to) in [("image_mean", &mut processor.mean), ("image_std", &mut processor.deviation)] {
                    let key = format!("clip.vision.{key}");
                    let Some(array) = gguf.optional(&key, "an array", MetadataValue::array)? else { continue };
                    let numbers: Vec<f32> = array.iter().filter_map(|x| Some(x.float()? as f32)).take(4).collect();
                    *to = numbers.try_into().map_err(|_| gguf.unexpected(&key, "three floating-point numbers"))?;
                }
                for (key, to) in ["image_min_pixels", "image_max_pixels"].into_iter().zip(&mut processor.pixel_limits) {
                    let key = format!("clip.vision.{key}");
                    *to = gguf.optional(&key, "an integer", MetadataValue::unsigned)?.unwrap_or(*to);
                }
                processor.checked(gguf.file())
            }
            (None, Files::Safetensors(_)) => processor.with_preprocessor_config(checkpoint),
            (None, Files::Gguf(_)) => Ok(processor),
        }
    }

    /// Returns the settings with the fields of `preprocessor_config.json`, if the file exists.
    fn with_preprocessor_config(mut self, checkpoint: &Checkpoint) -> Result<ImageProcessor> {
        let path = checkpoint.folder().join("preprocessor_config.json");
        let json = crate::tokenizer::read_json_or_null(&path)?;
        let file = name(&path);
        let usual = [
            ("patch_size", serde_json::json!(self.patch)),
            ("merge_size", serde_json::json!(self.merge)),
            // 3 is Pillow's number for bicubic interpolation.
            ("resample", serde_json::json!(3)),
            ("do_resize", serde_json::json!(true)),
            ("do_normalize", serde_json::json!(true)),
        ];
        for (key, usual) in usual {
            if let Some(found) = json.get(key).filter(|found| !found.is_null() && **found != usual) {
                let needed: String = found.to_string().chars().take(60).collect();
                return Err(Error::unsupported(&file, format!("`{key}`"), needed, usual.to_string()));
            }
        }
        for (key, to) in [("image_mean", &mut self.mean), ("image_std", &mut self.deviation)] {
            let Some(list) = json[key].as_array() else { continue };
            let numbers: Vec<f32> = list.iter().filter_map(|x| Some(x.as_f64()? as f32)).take(4).collect();
            let wrong = |_| Error::field(&file, format!("`{key}`"), "expected three numbers");
            *to = numbers.try_into().map_err(wrong)?;
        }
        for (keys, to) in
            [["shortest_edge", "min_pixels"], ["longest_edge", "max_pixels"]].into_iter().zip(&mut self.pixel_limits)
        {
            let [edge, pixels] = keys;
            // Each limit has two names. Both are numbers of pixels, even of an "edge".
            *to = json["size"][edge].as_u64().or(json[pixels].as_u64()).unwrap_or(*to);
        }
        self.checked(&file)
    }

    /// Checks the limits, means and deviations. `file` is the name in messages.
    fn checked(self, file: &str) -> Result<ImageProcessor> {
        let [least, most] = self.pixel_limits;
        if least == 0 || least > most || most > MAX_PIXELS {
            let problem =
                format!("expected limits from 1 to {MAX_PIXELS}, the lower one first, found {least} and {most}");
            return Err(Error::field(file, "pixels of an image", problem));
        }
        let is_usable = |x: &f32| x.is_finite() && *x > 0.0;
        if !self.deviation.iter().all(is_usable) || !self.mean.iter().all(|x| x.is_finite()) {
            let problem = format!(
                "expected finite means and positive deviations, found {:?} and {:?}",
                self.mean, self.deviation
            );
            return Err(Error::field(file, "colors of an image", problem));
        }
        Ok(self)
    }

    /// Limits the tokens of an image to `most`, unless the present limit is lower.
    pub fn with_tokens(self, most: usize) -> ImageProcessor {
        let square = ((self.patch * self.merge) as u64).pow(2);
        let [least, pixels] = self.pixel_limits;
        let most = pixels.min((most.max(1) as u64).saturating_mul(square));
        ImageProcessor { pixel_limits: [least.min(most), most], ..self }
    }

    /// Sets the minimum and the maximum number of pixels of a resized image.
    ///
    /// # Errors
    /// If the minimum is 0 or exceeds the maximum, or the maximum exceeds 2²⁶.
    pub fn with_pixels(self, least: u64, most: u64) -> Result<ImageProcessor> {
        ImageProcessor { pixel_limits: [least, most], ..self }.checked("a processor of images")
    }

    /// Returns height and width of an image after resizing, in pixels. The formula is that of
    /// `smart_resize` in transformers.
    ///
    /// # Errors
    /// If a side is 0, or one side is more than 200 times the other.
    pub fn resized_extents(&self, height: usize, width: usize) -> Result<[usize; 2]> {
        let (h, w, factor) = (height as f64, width as f64, (self.patch * self.merge) as f64);
        if height == 0 || width == 0 || h.max(w) / h.min(w) > MAX_RATIO {
            let problem = format!("sides of {width} and {height} pixels; at most a ratio of {MAX_RATIO} is supported");
            return Err(Error::field("an image", "extents", problem));
        }
        let [least, most] = self.pixel_limits.map(|pixels| pixels as f64);
        let near = |x: f64| (x / factor).round_ties_even() * factor;
        let area = near(h) * near(w);
        let sides = if area > most {
            let divisor = (h * w / most).sqrt();
            [h, w].map(|x| ((x / divisor / factor).floor() * factor).max(factor))
        } else if area < least {
            let scale = (least / (h * w)).sqrt();
            [h, w].map(|x| (x * scale / factor).ceil() * factor)
        } else {
            [near(h), near(w)]
        };
        Ok(sides.map(|x| x as usize))
    }

    /// Resizes an image by bicubic interpolation.
    ///
    /// # Errors
    /// Returns the errors of [`resized_extents`](ImageProcessor::resized_extents).
    pub fn prepare(&self, image: &Image) -> Result<PreparedImage> {
        let [height, width] = self.resized_extents(image.height, image.width)?;
        let pixels = resize::bicubic(&image.pixels, [image.height, image.width], [height, width]);
        Ok(PreparedImage { processor: *self, grid: [height / self.patch, width / self.patch], pixels })
    }
}

/// An image that was resized for a vision tower.
#[derive(Clone, PartialEq)]
pub struct PreparedImage {
    processor: ImageProcessor,
    /// Rows and columns of patches.
    grid: [usize; 2],
    /// Rows of pixels, three bytes each.
    pixels: Vec<u8>,
}

impl std::fmt::Debug for PreparedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PreparedImage({} × {} patches)", self.grid[0], self.grid[1])
    }
}

impl PreparedImage {
    /// Returns the numbers of rows and columns of patches.
    pub fn grid(&self) -> [usize; 2] {
        self.grid
    }

    /// Returns the side of a patch in pixels, and the side of a square in patches.
    pub(crate) fn patch_and_merge(&self) -> [usize; 2] {
        [self.processor.patch, self.processor.merge]
    }

    /// Returns the numbers of rows and columns of squares of patches. Each square is a token.
    pub fn squares(&self) -> [usize; 2] {
        self.grid.map(|n| n / self.processor.merge)
    }

    /// Returns the number of tokens.
    pub fn tokens(&self) -> usize {
        self.squares().iter().product()
    }

    /// Returns row and column of each patch in the order of the vision tower: squares row by row,
    /// and row by row within a square.
    pub fn patch_places(&self) -> impl Iterator<Item = [usize; 2]> {
        let merge = self.processor.merge;
        let [rows, columns] = self.squares();
        (0..rows * columns).flat_map(move |square| {
            let [row, column] = [square / columns * merge, square % columns * merge];
            (0..merge * merge).map(move |i| [row + i / merge, column + i % merge])
        })
    }

    /// Returns the normalized elements of each patch, `[patches, color, row, column]`, in the order
    /// of [`patch_places`](PreparedImage::patch_places).
    pub fn patches(&self) -> Vec<f32> {
        let ImageProcessor { patch, mean, deviation, .. } = self.processor;
        let width = self.grid[1] * patch;
        let levels: [[f32; 256]; 3] = std::array::from_fn(|color| {
            std::array::from_fn(|byte| (byte as f32 / 255.0 - mean[color]) / deviation[color])
        });
        let mut numbers = Vec::with_capacity(self.pixels.len());
        for [row, column] in self.patch_places() {
            for (color, levels) in levels.iter().enumerate() {
                for y in row * patch..(row + 1) * patch {
                    let from = (y * width + column * patch) * 3 + color;
                    let bytes = self.pixels[from..].iter().step_by(3).take(patch);
                    numbers.extend(bytes.map(|byte| levels[usize::from(*byte)]));
                }
            }
        }
        numbers
    }
}
