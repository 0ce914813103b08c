//! The command `tokenize`.

use crate::table::{counted, truncated};
use models::Checkpoint;
use models::tokenizer::{Encoding, TokenType, Tokenizer};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// Returns a list of the tokens of a text.
pub fn tokenize(file: &Path, text: &str, encoding: Encoding, wants_json: bool) -> Result<String, models::Error> {
    let tokenizer = if file.file_name().is_some_and(|name| name == "tokenizer.json") {
        Tokenizer::from_json(file)?
    } else {
        Checkpoint::open(file)?.tokenizer()?
    };
    let tokens = tokenizer.encode(text, encoding)?;
    let text_of = |token: &u32| String::from_utf8_lossy(tokenizer.text(*token).unwrap_or_default()).into_owned();
    if wants_json {
        let tokens = tokens.iter().map(|token| json!({ "token": token, "text": text_of(token) }));
        return Ok(format!("{:#}\n", tokens.collect::<serde_json::Value>()));
    }
    let mut out = String::new();
    for token in &tokens {
        let mark = if tokenizer.token_type(*token) == Some(TokenType::Control) { " (control)" } else { "" };
        let _ = writeln!(out, "{token:>8}  \"{}\"{mark}", truncated(&text_of(token), 58));
    }
    let _ = writeln!(out, "{} of {}", counted(tokens.len(), "token"), counted(text.len(), "byte"));
    Ok(out)
}
