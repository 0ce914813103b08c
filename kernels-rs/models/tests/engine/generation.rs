//! Generated text: sampling, the end of an answer, drafts, and a published model.

use crate::difference;
use crate::reference::{Reference, likeliest};
use crate::small::{TOKENS, small, with_last_embedding};
use crate::support::smollm2;
use models::engine::cache::SequencePages;
use models::engine::timing::TimedStep;
use models::engine::{Generation, Sampler, Sampling, SessionOptions, StopReason};
use models::file::gguf::Gguf;
use models::template::{Conversation, Message};
use models::tokenizer::Encoding;
use models::{Checkpoint, Model};
use runtime::Device;
use runtime::interpreter::Checks;

/// Applies each option of sampling.
#[test]
fn options_of_sampling_are_applied() {
    let path = small("sampling", "qwen3", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 40, ..SessionOptions::default() }).unwrap();
    let mut draw = |sampling: Sampling, n: usize| {
        session.set(&[5, 6]).unwrap();
        let mut sampler = Sampler::new(&model.device, sampling, TOKENS as usize, &[5, 6]).unwrap();
        (0..n).map(|_| session.next(&mut sampler).unwrap()).collect::<Vec<u32>>()
    };
    let greedy = draw(Sampling::default(), 8);
    let warm = Sampling { temperature: 2.0, seed: 3, ..Sampling::default() };
    let drawn = draw(warm, 8);
    assert_eq!(drawn, draw(warm, 8), "equal seeds give equal tokens");
    assert_ne!(drawn, draw(Sampling { seed: 4, ..warm }, 8));
    for narrow in [Sampling { top_k: 1, ..warm }, Sampling { top_p: 1e-6, ..warm }, Sampling { min_p: 1.0, ..warm }] {
        assert_eq!(draw(narrow, 8), greedy, "{narrow:?}");
    }
    // With a large presence or frequency penalty, no token repeats.
    let all = draw(Sampling { presence_penalty: 1e9, ..Sampling::default() }, 30);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 30);
    let all = draw(Sampling { frequency_penalty: 1e9, ..Sampling::default() }, 30);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 30);
    for wrong in
        [Sampling { temperature: -1.0, ..warm }, Sampling { top_p: 0.0, ..warm }, Sampling { min_p: 2.0, ..warm }]
    {
        assert!(Sampler::new(&model.device, wrong, 40, &[]).is_err());
    }
}

/// Draws a token from logits that are all NaN, after a prompt and after a step.
#[test]
fn logits_without_a_number_are_an_error() {
    let file = with_last_embedding(&small("nan-logits", "qwen3", false), &f32::NAN.to_le_bytes());
    let model = Model::load(&Device::cpu(), &file).unwrap();
    let options = SessionOptions { context_size: 8, ..SessionOptions::default() };
    let warm = Sampling { temperature: 1.0, seed: 3, ..Sampling::default() };
    for sampling in [Sampling::default(), warm, Sampling { min_p: 0.1, ..warm }] {
        let mut batch = model.batch(options, 1).unwrap();
        let mut sampler = model.sampler(sampling, &[]).unwrap();
        for is_prompt in [true, false] {
            // An embedding with a NaN makes all logits NaN.
            batch.set(0, &[TOKENS as u32 - 1]).unwrap();
            assert!(!is_prompt || batch.prefill(0).unwrap());
            let error = batch.draw(0, &mut sampler).unwrap_err().to_string();
            assert!(error.contains("all logits are NaN or −∞"), "{sampling:?}, {is_prompt}: {error}");
            batch.set(0, &[2]).unwrap();
            assert!(batch.draw(0, &mut sampler).unwrap() < TOKENS as u32 - 1);
        }
    }
}

/// Stops generation before a stop string, after a number of tokens, and when the sequence is full.
#[test]
fn generation_stops() {
    let path = small("stops", "qwen2", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 9, ..SessionOptions::default() }).unwrap();
    let mut generated = |generation: Generation| {
        let tokens: Vec<_> = session.generate("", &generation).unwrap().map(|token| token.unwrap()).collect();
        let text: String = tokens.iter().map(|token| token.text.as_str()).collect();
        (text, tokens.len(), tokens.last().unwrap().stop)
    };
    let (all, count, stop) = generated(Generation::default());
    assert_eq!((count, stop), (8, Some(StopReason::ContextFull)));
    assert_eq!(all.matches('t').count(), 8, "{all}");
    let (text, count, stop) = generated(Generation { max_tokens: 3, ..Generation::default() });
    assert_eq!((count, stop), (3, Some(StopReason::TokenLimit)));
    assert!(all.starts_with(&text));
    // The first stop string does not occur, but begins like the second, which spans several tokens.
    let from = all.match_indices('t').nth(4).unwrap().0;
    let stops = vec![format!("{}x", &all[from..from + 4]), all[from..from + 4].to_owned()];
    let (text, _, stop) = generated(Generation { stops: stops.clone(), ..Generation::default() });
    assert_eq!((text.as_str(), stop), (&all[..all.find(&stops[1]).unwrap()], Some(StopReason::StopString)));
}

/// Compares the reference with the likeliest token and its logit in other programs, and the engine
/// with the reference.
#[test]
fn smollm2_knows_the_capital_of_france() {
    let Some(path) = smollm2() else { return };
    let checkpoint = Checkpoint::open(&path).unwrap();
    let models::Files::Gguf(gguf) = checkpoint.files() else { panic!("a GGUF file") };
    let tokens = checkpoint.tokenizer().unwrap().encode("The capital of France is", Encoding::default()).unwrap();
    assert_eq!(tokens, [504, 3575, 282, 4649, 314]);
    let mut reference = Reference::new(gguf);
    let logits = tokens.iter().fold(vec![], |_, token| reference.step(*token));
    assert_eq!(likeliest(&logits), 7042);
    assert!((logits[7042] - 17.3713).abs() < 2e-4, "{}", logits[7042]);

    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 64, ..SessionOptions::default() }).unwrap();
    session.set(&tokens).unwrap();
    let found = session.logits().unwrap();
    assert_eq!(likeliest(&found), 7042);
    let error = difference(&found, &logits);
    println!("activations of 8 bits: {error} of the largest logit");
    assert!(error < 5e-2, "{error}");
}

/// Answers a question in the chat template, token by token by the graph.
#[test]
fn smollm2_answers() {
    let Some(path) = smollm2() else { return };
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 128, ..SessionOptions::default() }).unwrap();
    let conversation = Conversation::new(vec![Message::new("user", "What is 2+2?")]);
    let prompt = model.template.as_ref().unwrap().render(&conversation).unwrap();
    let generation = Generation { parse_special: true, ..Generation::default() };
    let (mut text, mut stop) = (String::new(), None);
    for token in session.generate(&prompt, &generation).unwrap() {
        let token = token.unwrap();
        text.push_str(&token.text);
        stop = token.stop;
    }
    assert_eq!((text.as_str(), stop), ("The answer to this classic math problem is 4.", Some(StopReason::EndToken)));
}

/// Continues a text by 64 tokens with every access checked, and compares them with the likeliest
/// tokens of plain loops.
///
/// The engine gets the tokens of the plain loops in chunks of 8, and computes the likeliest token
/// after each. Exact steps compute each token as if it were alone, so decoding token by token gives
/// the same results.
#[test]
fn smollm2_continues_with_every_access_checked() {
    let Some(path) = smollm2() else { return };
    let device = Device::cpu();
    device.set_checks(Checks::All);
    let model = Model::load(&device, &path).unwrap();
    let prompt = model.prompt("1, 2, 3, 4, 5, 6,", false).unwrap();
    let mut reference = Reference::new(&Gguf::open(&path).unwrap()).rounds_activations();
    let (mut text, mut logits) = (prompt.clone(), Vec::new());
    for token in &prompt {
        logits = reference.step(*token);
    }
    for _ in 0..64 {
        text.push(likeliest(&logits));
        logits = reference.step(text[text.len() - 1]);
    }
    println!("{}", String::from_utf8_lossy(&model.tokenizer.decode(&text).unwrap()));
    let mut session =
        model.session(SessionOptions { context_size: text.len(), exact: true, ..SessionOptions::default() }).unwrap();
    let found = session.likeliest(&text[..text.len() - 1]).unwrap();
    assert_eq!(found[prompt.len() - 1..], text[prompt.len()..]);
}

/// The prompt of [`continued`].
const PROMPT: &str = "The capital of France is";

/// Returns the tokens of the prompt and `n` generated tokens.
fn continued(device: &Device, path: &std::path::Path, exact: bool, n: usize) -> Vec<u32> {
    let model = Model::load(device, path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 80, exact, ..SessionOptions::default() }).unwrap();
    let generation = Generation { max_tokens: n, ..Generation::default() };
    session.generate(PROMPT, &generation).unwrap().for_each(|token| drop(token.unwrap()));
    session.tokens().to_vec()
}

/// Returns by how much the logits of `tokens` are below the largest logit, relative to the largest
/// magnitude. The result is the maximum over the tokens after the first `from`.
fn shortfall(mut reference: Reference, tokens: &[u32], from: usize) -> f32 {
    let (mut most, mut logits) = (0.0f32, Vec::new());
    for (i, token) in tokens.iter().enumerate() {
        if i >= from {
            let below = logits[likeliest(&logits) as usize] - logits[*token as usize];
            let size = logits.iter().fold(0.0f32, |top, x| top.max(x.abs()));
            most = most.max(below / size);
        }
        logits = reference.step(*token);
    }
    most
}

/// Continues a text on a GPU. Exact steps give the tokens of the CPU. Other steps give tokens
/// that are nearly as likely as those of plain loops.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_smollm2_continues_its_prompt() {
    let Some(path) = smollm2() else { return };
    let device = Device::cuda(0).unwrap();
    let tokens = continued(&device, &path, false, 64);
    let lost = shortfall(Reference::new(&Gguf::open(&path).unwrap()).rounds_activations(), &tokens, 5);
    println!("{tokens:?}: below the likeliest of the reference at most {lost}");
    assert!(lost < 2e-2, "{lost}");
    let cpu = Device::cpu();
    cpu.set_checks(Checks::Values);
    assert_eq!(continued(&device, &path, true, 64), continued(&cpu, &path, true, 64));
}

/// Rejects options and steps without tokens, instead of a panic.
#[test]
fn options_without_tokens_are_refused() {
    let device = Device::cpu();
    // A kernel that is timed alone reads memory that other kernels of the step did not write.
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &small("zeros", "qwen2", true)).unwrap();
    let options = SessionOptions { context_size: 8, ..SessionOptions::default() };
    let decode = |sequences| TimedStep::Decode { sequences, before: 2 };
    let zeros = [
        (SessionOptions { context_size: 0, ..options }, "context size"),
        (SessionOptions { chunk_size: 0, ..options }, "chunk size"),
        (SessionOptions { page: 0, ..options }, "page"),
    ];
    for (options, name) in zeros {
        let errors = [
            model.session(options).unwrap_err(),
            model.batch(options, 2).unwrap_err(),
            model.step_times(options, decode(1)).unwrap_err(),
            model.step_times(options, decode(2)).unwrap_err(),
            model.step_times(options, TimedStep::Prompt { tokens: 1, before: 0 }).unwrap_err(),
        ];
        for error in errors.map(|error| error.to_string()) {
            assert!(error.contains(&format!("a {name} of 1 token or more, found 0")), "{error}");
        }
    }
    for sequences in [0, 17] {
        let error = model.step_times(options, decode(sequences)).unwrap_err().to_string();
        assert!(error.contains(&format!("1 to 16 sequences, found {sequences}")), "{error}");
    }
    for (tokens, before) in [(0, 0), (0, 3), (1, usize::MAX), (2, u32::MAX as usize - 2)] {
        let error = model.step_times(options, TimedStep::Prompt { tokens, before }).unwrap_err().to_string();
        assert_eq!(error, format!("cannot time a step: expected 1 to 2³² − 2 tokens, found {tokens} after {before}"));
    }
    model.step_times(options, decode(3)).unwrap();
    assert_eq!(SequencePages::new(2, 5, 0).extents(), [10, 1]);
    assert_eq!(SequencePages::new(1, 0, 0).extents(), [0, 1]);
}
