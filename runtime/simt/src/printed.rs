//! The text that kernels print.

use std::collections::VecDeque;

/// The largest number of bytes that a launch prints; earlier text is dropped, as on a GPU.
pub const MAX_PRINTED: usize = 1 << 20;

/// The text that a launch printed, in order.
#[derive(Debug, Default)]
pub struct Printed {
    parts: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Printed {
    /// Adds a text.
    pub fn add(&mut self, text: Vec<u8>) {
        self.bytes += text.len();
        self.parts.push_back(text);
        while self.bytes > MAX_PRINTED
            && let Some(first) = self.parts.pop_front()
        {
            self.bytes -= first.len();
        }
    }

    /// Returns the whole text.
    pub fn take(self) -> Vec<u8> {
        self.parts.into_iter().flatten().collect()
    }
}
