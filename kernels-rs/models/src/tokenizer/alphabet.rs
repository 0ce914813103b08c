//! The alphabet of byte-level vocabularies (GPT-2): each byte is written as a printable character.
//!
//! A printable byte of Latin-1 is written as the character with the same code. The other 68 bytes
//! are written as the characters from U+0100 on, in order; a space is `Ġ`.

use super::{TokenType, VocabularyToken};

/// Tells whether a byte is written as the character with the same code.
const fn is_itself(byte: u8) -> bool {
    matches!(byte, 33..=126 | 161..=172 | 174..=255)
}

/// The byte of each character below U+0144, `None` outside the alphabet.
const BYTES: [Option<u8>; 0x144] = {
    let mut bytes = [None; 0x144];
    let (mut byte, mut next) = (0, 0x100);
    while byte < 256 {
        if is_itself(byte as u8) {
            bytes[byte] = Some(byte as u8);
        } else {
            bytes[next] = Some(byte as u8);
            next += 1;
        }
        byte += 1;
    }
    bytes
};

/// Returns the character of each byte.
pub fn characters() -> [char; 256] {
    let mut characters = ['\0'; 256];
    for (character, byte) in ('\0'..).zip(BYTES) {
        if let Some(byte) = byte {
            characters[byte as usize] = character;
        }
    }
    characters
}

/// Returns the bytes that a text in the alphabet represents, `None` if a character is outside it.
pub fn bytes(text: &str) -> Option<Box<[u8]>> {
    text.chars().map(|character| *BYTES.get(character as usize)?).collect()
}

/// Returns a token with its text in bytes. Texts of normal tokens are in the alphabet. Texts of
/// other tokens, and texts with characters outside the alphabet, are plain UTF-8.
pub fn token(text: &[u8], token_type: TokenType) -> VocabularyToken {
    let plain = || text.into();
    let text = match token_type {
        TokenType::Normal => std::str::from_utf8(text).ok().and_then(bytes).unwrap_or_else(plain),
        _ => plain(),
    };
    VocabularyToken { text, token_type }
}
