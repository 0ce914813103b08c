//! Random changes of texts.

/// A generator of reproducible random numbers.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// Splits a text into pieces: words with their dots and signs, spaces, single characters.
pub fn pieces(text: &str) -> Vec<&str> {
    let class = |c: char| if c.is_ascii_alphanumeric() || "_$%.".contains(c) { 0 } else { 1 + u32::from(c) };
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (i, c) in text.char_indices() {
        if last.is_some_and(|l| l != class(c)) {
            pieces.push(&text[start..i]);
            start = i;
        }
        last = Some(class(c));
    }
    pieces.push(&text[start..]);
    pieces
}

/// Returns a text with a few changes: typing errors, and worse.
pub fn mutated(text: &str, others: &[&str], random: &mut Random) -> String {
    let mut pieces: Vec<String> = pieces(text).into_iter().map(str::to_string).collect();
    for _ in 0..1 + random.below(3) {
        let at = random.below(pieces.len());
        let from = random.below(pieces.len());
        match random.below(9) {
            0 => pieces[at].clear(),
            1 => pieces[at] = pieces[from].clone(),
            2 => pieces.swap(at, from),
            3 => pieces[at] = others[random.below(others.len())].to_string(),
            4 => {
                let copy = pieces[from].clone();
                pieces.insert(at, copy);
            }
            5 => {
                let piece = &mut pieces[at];
                let digits: Vec<_> = piece.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(i, _)| i).collect();
                if !digits.is_empty() {
                    let i = digits[random.below(digits.len())];
                    piece.replace_range(i..=i, &random.below(10).to_string());
                }
            }
            6 => {
                let odd =
                    ["{", "}", "(", "[", "\"", "/*", "//", "é", "\0", "0x", "0f", "-", "99999999999999999999", "::"];
                pieces.insert(at, odd[random.below(odd.len())].to_string());
            }
            7 => {
                // Drops the last letter.
                pieces[at].pop();
            }
            _ => pieces.truncate(if random.below(8) == 0 { at.max(1) } else { pieces.len() }),
        }
    }
    pieces.concat()
}
