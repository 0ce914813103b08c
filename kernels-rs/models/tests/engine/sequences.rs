//! Several sequences in one batch.

use crate::difference;
use crate::reference::{Reference, likeliest};
use crate::small::{TOKENS, small};
use models::Model;
use models::engine::{Batch, Sampler, Sampling, SessionOptions};
use models::file::gguf::Gguf;
use models::memory::CacheFormat;
use runtime::Device;
use runtime::interpreter::Checks;

/// A text of a batch.
struct PlannedText {
    prompt: Vec<u32>,
    sampling: Sampling,
    /// The round in which the text begins.
    round: usize,
    /// The number of tokens to draw.
    tokens: usize,
}

impl PlannedText {
    /// Returns a text of the likeliest tokens, which begins in the first round.
    fn greedy(prompt: &[u32], tokens: usize) -> PlannedText {
        PlannedText { prompt: prompt.to_vec(), sampling: Sampling::default(), round: 0, tokens }
    }
}

/// Returns the tokens that a session draws after a prompt.
fn drawn_alone(model: &Model, options: SessionOptions, text: &PlannedText) -> Vec<u32> {
    let PlannedText { prompt, sampling, tokens, .. } = text;
    let mut session = model.session(options).unwrap();
    session.set(prompt).unwrap();
    let vocabulary = model.configuration.vocabulary;
    let mut sampler = Sampler::new(&model.device, *sampling, vocabulary, prompt).unwrap();
    (0..*tokens).map(|_| session.next(&mut sampler).unwrap()).collect()
}

/// Returns the tokens that a batch draws after each prompt. A text begins in its round or later, in
/// the first free sequence.
fn drawn_together(model: &Model, options: SessionOptions, sequences: usize, planned: &[PlannedText]) -> Vec<Vec<u32>> {
    let mut batch = model.batch(options, sequences).unwrap();
    let vocabulary = model.configuration.vocabulary;
    let mut drawn = vec![Vec::new(); planned.len()];
    // Text, sequence, sampler, and whether the prompt is computed.
    let mut running: Vec<(usize, usize, Sampler, bool)> = Vec::new();
    let mut waiting: Vec<usize> = (0..planned.len()).collect();
    let mut round = 0;
    while !running.is_empty() || !waiting.is_empty() {
        waiting.retain(|i| {
            let PlannedText { prompt, sampling, round: first_round, .. } = &planned[*i];
            let is_free = |sequence: &usize| running.iter().all(|(_, other, ..)| other != sequence);
            let Some(sequence) = (0..sequences).find(is_free).filter(|_| *first_round <= round) else { return true };
            batch.set(sequence, prompt).unwrap();
            let sampler = Sampler::new(&model.device, *sampling, vocabulary, prompt).unwrap();
            running.push((*i, sequence, sampler, false));
            false
        });
        // A round computes one chunk of one prompt.
        if let Some((_, sequence, _, is_prompted)) = running.iter_mut().find(|(.., is_prompted)| !is_prompted) {
            *is_prompted = batch.prefill(*sequence).unwrap();
        }
        let ready = running.iter_mut().filter(|(.., is_prompted)| *is_prompted).collect::<Vec<_>>();
        batch.advance(&ready.iter().map(|(_, sequence, ..)| *sequence).collect::<Vec<_>>()).unwrap();
        for (i, sequence, sampler, _) in ready {
            drawn[*i].push(batch.draw(*sequence, sampler).unwrap());
        }
        running.retain(|(i, ..)| drawn[*i].len() < planned[*i].tokens);
        round += 1;
    }
    drawn
}

/// Draws the same tokens for each sequence of a batch as for it alone. The sequences begin and end
/// at different times, with prompts in chunks and reused sequences.
fn sequences_as_if_alone(device: &Device) {
    let warm = |seed| Sampling { temperature: 1.5, seed, top_k: 20, presence_penalty: 0.5, ..Sampling::default() };
    let prompt = |from: u32, n: u32| (from..from + n).map(|i| i * 7 % 40).collect::<Vec<u32>>();
    let planned = [
        PlannedText { prompt: prompt(0, 3), sampling: Sampling::default(), round: 0, tokens: 9 },
        PlannedText { prompt: prompt(5, 11), sampling: warm(1), round: 0, tokens: 4 },
        PlannedText { prompt: prompt(1, 1), sampling: warm(2), round: 3, tokens: 7 },
        PlannedText { prompt: prompt(5, 12), sampling: Sampling::default(), round: 5, tokens: 6 },
        PlannedText { prompt: prompt(9, 20), sampling: warm(3), round: 6, tokens: 5 },
    ];
    let models =
        [("qwen3", true, CacheFormat::F16), ("qwen2", false, CacheFormat::F32), ("llama", true, CacheFormat::Q8_0)];
    for (architecture, quantized, cache) in models {
        let path = small(&format!("batch-{architecture}-{}", device.is_cpu()), architecture, quantized);
        let model = Model::load(device, &path).unwrap();
        // Pages of 4 tokens apply to the batch. A session has a single page.
        let options = SessionOptions {
            context_size: 40,
            chunk_size: 5,
            cache,
            page: 4,
            exact: true,
            ..SessionOptions::default()
        };
        let alone: Vec<Vec<u32>> = planned.iter().map(|text| drawn_alone(&model, options, text)).collect();
        assert_eq!(drawn_together(&model, options, 3, &planned), alone, "{architecture}");
        // Chunks of one token give the same result as longer chunks.
        let single = SessionOptions { chunk_size: 1, ..options };
        assert_eq!(drawn_alone(&model, single, &planned[3]), alone[3]);
        for (drafts, text) in [(3, 0), (15, 1)] {
            let options = SessionOptions { drafts, ..options };
            assert_eq!(drawn_alone(&model, options, &planned[text]), alone[text], "{drafts} drafts");
        }
    }
}

#[test]
fn sequences_of_a_batch_are_as_if_alone() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    sequences_as_if_alone(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_sequences_of_a_batch_are_as_if_alone() {
    sequences_as_if_alone(&Device::cuda(0).unwrap());
}

/// Shares the full pages of a common beginning between sequences, and draws the same tokens as in a
/// session.
#[test]
fn sequences_that_begin_alike_share_pages() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    for cache in CacheFormat::ALL {
        let model = Model::load(&device, &small(&format!("alike-{cache:?}"), "qwen3", true)).unwrap();
        let options = SessionOptions {
            context_size: 40,
            chunk_size: 5,
            cache,
            page: 4,
            exact: true,
            ..SessionOptions::default()
        };
        let mut batch = model.batch(options, 3).unwrap();
        let sampler = || Sampler::new(&device, Sampling::default(), TOKENS as usize, &[]).unwrap();
        let draw = |batch: &mut Batch, sequence: usize, tokens: &[u32], kept: usize| {
            let planned = PlannedText::greedy(tokens, 6);
            assert_eq!(batch.reusable_tokens(sequence, &tokens.to_vec().into()).unwrap(), kept, "{tokens:?}");
            batch.set(sequence, tokens).unwrap();
            while !batch.prefill(sequence).unwrap() {}
            let drawn: Vec<u32> = (0..6).map(|_| batch.draw(sequence, &mut sampler()).unwrap()).collect();
            assert_eq!(drawn, drawn_alone(&model, options, &planned), "{tokens:?}");
        };
        let text: Vec<u32> = (0..14).map(|i| i * 7 % 40).collect();
        let other = [&text[..10], &[1, 2, 3]].concat();
        draw(&mut batch, 0, &text, 0);
        // Full pages contain 8 of the 10 common tokens. The same sequence then reuses all but the
        // last of its 13 tokens.
        draw(&mut batch, 1, &other, 8);
        draw(&mut batch, 1, &other, 12);
        draw(&mut batch, 2, &text, 12);
        // Two sequences share the third page. A text that differs within this page computes it
        // again.
        draw(&mut batch, 0, &[&text[..11], &[5]].concat(), 8);
        draw(&mut batch, 2, &[&text[..11], &[6]].concat(), 11);
    }
}

/// Compares the logits of sequences in one step with those of the reference, without `exact`.
#[test]
fn steps_of_several_sequences_have_the_logits_of_the_reference() {
    for (cache, bound) in [(CacheFormat::F32, 2e-5), (CacheFormat::F16, 2e-3), (CacheFormat::Q8_0, 2e-2)] {
        steps_of_several_sequences(cache, bound);
    }
}

/// Compares the logits of sequences whose cache has this format. A prompt of 20 tokens passes the
/// layers at once.
fn steps_of_several_sequences(cache: CacheFormat, bound: f32) {
    let device = Device::cpu();
    device.set_checks(Checks::Accesses);
    let path = small(&format!("several-{cache:?}"), "qwen2", false);
    let model = Model::load(&device, &path).unwrap();
    let options = SessionOptions { context_size: 30, chunk_size: 20, cache, page: 7, ..SessionOptions::default() };
    let mut batch = model.batch(options, 3).unwrap();
    let texts =
        [vec![1, 2, 3, 4, 5, 6, 7, 8], vec![9], vec![3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]];
    let greedy = || Sampler::new(&device, Sampling::default(), TOKENS as usize, &[]).unwrap();
    for (i, text) in texts.iter().enumerate() {
        batch.set(i, text).unwrap();
        while !batch.prefill(i).unwrap() {}
        batch.draw(i, &mut greedy()).unwrap();
    }
    for _ in 0..3 {
        batch.advance(&[2, 0, 1]).unwrap();
        for i in 0..3 {
            let mut reference = Reference::new(&Gguf::open(&path).unwrap());
            let expected = batch.tokens(i).unwrap().iter().fold(vec![], |_, token| reference.step(*token));
            let error = difference(&batch.logits(i).unwrap(), &expected);
            println!("{cache:?}: {error}");
            assert!(error < bound, "{cache:?}: {error}");
            let drawn = batch.draw(i, &mut greedy()).unwrap();
            assert!(cache != CacheFormat::F32 || drawn == likeliest(&expected));
        }
    }
    assert!(batch.set(3, &[1]).unwrap_err().to_string().contains("no sequence 3 among 3"));
    assert!(model.batch(options, 17).unwrap_err().to_string().contains("1 to 16 sequences, found 17"));
    assert!(model.batch(options, 0).is_err());
    assert!(model.session(SessionOptions { drafts: 16, ..options }).is_err());
}

/// Drafts the tokens of a text that repeats itself, and draws the same tokens as without drafts.
#[test]
fn drafts_of_a_repetition_are_right() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &small("drafts", "llama", true)).unwrap();
    let options = SessionOptions { context_size: 100, exact: true, drafts: 7, ..SessionOptions::default() };
    // The likeliest tokens of a small model soon repeat.
    let planned = PlannedText::greedy(&[1, 2, 3], 60);
    let mut session = model.session(options).unwrap();
    session.set(&planned.prompt).unwrap();
    let mut sampler = Sampler::new(&device, Sampling::default(), TOKENS as usize, &[]).unwrap();
    let drawn: Vec<u32> = (0..60).map(|_| session.next(&mut sampler).unwrap()).collect();
    assert_eq!(drawn, drawn_alone(&model, SessionOptions { drafts: 0, ..options }, &planned));
    let [all, right] = session.drafts();
    assert!(right >= 20 && all >= right, "{right} of {all}");
}
