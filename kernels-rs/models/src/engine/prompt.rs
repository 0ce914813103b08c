//! Prompts: the tokens of a text, and the images between them.

use crate::error::{Error, Result};
use crate::image::PreparedImage;
use std::ops::Range;
use std::sync::Arc;

/// The texts of Qwen3-VL for an image in a prompt: the token before the image, the placeholder of
/// the image, and the token after the image.
pub const IMAGE_MARKUP: [&str; 3] = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"];

/// An image in a prompt.
#[derive(Clone, Debug)]
struct PlacedImage {
    /// The index of the image's first token in the prompt.
    first_token: usize,
    image: Arc<PreparedImage>,
}

impl PlacedImage {
    /// Returns the indices of the image's tokens in the prompt.
    fn range(&self) -> Range<usize> {
        self.first_token..self.first_token + self.image.tokens()
    }
}

impl PartialEq for PlacedImage {
    fn eq(&self, other: &PlacedImage) -> bool {
        self.first_token == other.first_token && (Arc::ptr_eq(&self.image, &other.image) || self.image == other.image)
    }
}

/// The tokens of a text, and the images between them. An image has a placeholder token for each
/// square of its patches.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Prompt {
    tokens: Vec<u32>,
    /// Images in order.
    images: Vec<PlacedImage>,
}

impl From<Vec<u32>> for Prompt {
    /// Makes a prompt without images.
    fn from(tokens: Vec<u32>) -> Prompt {
        Prompt { tokens, images: Vec::new() }
    }
}

impl Prompt {
    /// Makes a prompt with images. Each token `placeholder` of `tokens` is repeated for each token
    /// of the next image.
    ///
    /// # Errors
    /// If the number of placeholders is not the number of images.
    pub fn with_images(tokens: &[u32], placeholder: u32, pictures: &[Arc<PreparedImage>]) -> Result<Prompt> {
        let mut prompt = Prompt::default();
        let places = tokens.iter().filter(|token| **token == placeholder).count();
        if places != pictures.len() {
            let problem =
                format!("expected {places} images, one for each placeholder in the text; found {}", pictures.len());
            return Err(Error::Tokens { action: "put images into a text", problem });
        }
        let mut parts = tokens.split(|token| *token == placeholder);
        prompt.tokens.extend(parts.next().unwrap_or_default());
        for (picture, text) in pictures.iter().zip(parts) {
            prompt.images.push(PlacedImage { first_token: prompt.tokens.len(), image: picture.clone() });
            prompt.tokens.extend(std::iter::repeat_n(placeholder, picture.tokens()));
            prompt.tokens.extend(text);
        }
        Ok(prompt)
    }

    /// Returns the tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Returns the number of images.
    pub fn images(&self) -> usize {
        self.images.len()
    }

    /// Adds a token at the end.
    pub(super) fn push(&mut self, token: u32) {
        self.tokens.push(token);
    }

    /// Returns the number of leading tokens that are equal in another prompt. Tokens of different
    /// images are not equal.
    pub(super) fn common_prefix(&self, other: &Prompt) -> usize {
        let equal = self.tokens.iter().zip(&other.tokens).take_while(|(a, b)| a == b).count();
        let differing = (0..).map(|i| [self.images.get(i), other.images.get(i)]).take_while(|pair| *pair != [None; 2]);
        let first = differing
            .filter(|[a, b]| a != b)
            .flat_map(|pair| pair.into_iter().flatten())
            .map(|image| image.first_token)
            .min();
        equal.min(first.unwrap_or(equal))
    }

    /// Returns the images that have tokens in a range. For each: its number in the prompt, the
    /// indices of its tokens, and the image.
    pub(super) fn images_in(
        &self,
        range: &Range<usize>,
    ) -> impl Iterator<Item = (usize, Range<usize>, &Arc<PreparedImage>)> {
        let (start, end) = (range.start, range.end);
        let images = self.images.iter().enumerate().map(|(i, image)| (i, image.range(), &image.image));
        images.filter(move |(_, tokens, _)| tokens.start < end && start < tokens.end)
    }

    /// Returns the positions of a range of tokens on the axes time, height and width. The three
    /// positions of a token of text are equal.
    ///
    /// In an image, the time is constant, height is the row of the square, and width the column;
    /// all count from the position of the first token. The token after an image of r rows and c
    /// columns continues max(r, c) positions after that (Qwen2-VL's technical report, section 2.1).
    pub fn positions(&self, tokens: Range<usize>) -> [Vec<u32>; 3] {
        let mut positions = [const { Vec::new() }; 3];
        let mut push = |position: [usize; 3]| {
            positions.iter_mut().zip(position).for_each(|(axis, position)| axis.push(position as u32));
        };
        let mut images = self.images.iter().peekable();
        // The next token, and its position.
        let (mut at, mut position) = (0, 0);
        while at < tokens.end {
            match images.next_if(|image| image.first_token == at) {
                Some(image) => {
                    let [rows, columns] = image.image.squares();
                    for i in (0..rows * columns).filter(|i| tokens.contains(&(at + i))) {
                        push([position, position + i / columns, position + i % columns]);
                    }
                    (at, position) = (at + rows * columns, position + rows.max(columns));
                }
                None => {
                    let end = images.peek().map_or(tokens.end, |image| image.first_token.min(tokens.end));
                    let first = at.max(tokens.start).min(end);
                    (first..end).for_each(|i| push([position + i - at; 3]));
                    (at, position) = (end, position + end - at);
                }
            }
        }
        positions
    }
}
