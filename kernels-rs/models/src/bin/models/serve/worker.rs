//! The thread that computes: a queue of requests becomes sequences of a batch.
//!
//! Each round of the loop takes requests while sequences are free. The round then computes a chunk
//! of one prompt, and passes the next token of all other sequences through the model together. A
//! client that has gone frees its sequence in the next round.

use models::Result;
use models::engine::{Batch, GeneratedToken, Generation, OutputText, Prompt, Sampler, StopReason};
use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::mpsc::UnboundedSender;

/// A sequence to be continued.
#[derive(Debug)]
pub struct Job {
    /// The prompt.
    pub prompt: Prompt,
    /// Sampling, stops and the number of tokens.
    pub generation: Generation,
    /// Receives what happens. The job ends when the receiver is dropped.
    pub events: UnboundedSender<AnswerEvent>,
}

/// A part of an answer.
#[derive(Debug)]
pub enum AnswerEvent {
    /// The prompt is computed; this many of its tokens were reused from an earlier sequence.
    PromptComputed(usize),
    /// A token, and the text that is complete with it.
    Token(GeneratedToken),
    /// The answer ends without a stop.
    Failed(String),
}

/// A job in a sequence.
struct ActiveJob {
    job: Job,
    sequence: usize,
    /// Tokens of the prompt that were in the cache already.
    reused: usize,
    sampler: Sampler,
    output: OutputText,
    /// Whether the prompt is computed.
    is_prefilled: bool,
    generated: usize,
}

/// Why a job ended.
#[derive(Clone, Debug)]
enum JobEnd {
    Stop(StopReason),
    ClientLeft,
    Failed(String),
}

impl Display for JobEnd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobEnd::Stop(StopReason::EndToken) => "an end token",
            JobEnd::Stop(StopReason::StopString) => "a stop string",
            JobEnd::Stop(StopReason::TokenLimit) => "the requested number",
            JobEnd::Stop(StopReason::ContextFull) => "a full sequence",
            JobEnd::ClientLeft => "the client left",
            JobEnd::Failed(why) => why,
        })
    }
}

/// Starts the thread. The queue's sender refuses jobs if the queue is full. `is_stopping` ends the
/// running jobs.
pub fn start(batch: Batch, queue_size: usize, is_stopping: Arc<AtomicBool>) -> (JoinHandle<()>, SyncSender<Job>) {
    let (sender, receiver) = sync_channel(queue_size);
    let worker = Worker { batch, active: Vec::new(), free: VecDeque::new(), is_stopping };
    (std::thread::spawn(move || worker.run(&receiver)), sender)
}

struct Worker {
    batch: Batch,
    active: Vec<ActiveJob>,
    /// Sequences without a job, in the order in which their jobs ended.
    free: VecDeque<usize>,
    is_stopping: Arc<AtomicBool>,
}

impl Worker {
    /// Works until the queue has no sender.
    fn run(mut self, jobs: &Receiver<Job>) {
        self.free.extend(0..self.batch.sequences());
        loop {
            if self.active.is_empty() {
                match jobs.recv() {
                    Ok(job) => self.begin(job),
                    Err(_) => return,
                }
            }
            while !self.free.is_empty() {
                match jobs.try_recv() {
                    Ok(job) => self.begin(job),
                    Err(_) => break,
                }
            }
            if self.is_stopping.load(Ordering::Relaxed) {
                self.end(|_| Some(JobEnd::Failed("the server is stopping".to_owned())));
            }
            self.end(|active| active.job.events.is_closed().then_some(JobEnd::ClientLeft));
            if let Err(error) = self.round() {
                // The device failed, and with it all sequences.
                let why = error.to_string();
                self.end(|_| Some(JobEnd::Failed(why.clone())));
            }
        }
    }

    /// Gives a job the free sequence that can reuse the most tokens for it.
    fn begin(&mut self, job: Job) {
        if job.events.is_closed() {
            return;
        }
        let common = |sequence: &usize| self.batch.reusable_tokens(*sequence, &job.prompt).unwrap_or(0);
        // If several are equal, the sequence whose job ended first.
        let best = (0..self.free.len()).rev().max_by_key(|i| common(&self.free[*i]));
        let Some(sequence) = best.and_then(|i| self.free.remove(i)) else { return };
        match self.prepare(sequence, &job) {
            Ok((reused, sampler)) => {
                let output = OutputText::new(&self.batch.model().tokenizer, &job.generation);
                self.active.push(ActiveJob {
                    job,
                    sequence,
                    reused,
                    sampler,
                    output,
                    is_prefilled: false,
                    generated: 0,
                });
            }
            Err(error) => {
                let _ = job.events.send(AnswerEvent::Failed(error.to_string()));
                self.free.push_back(sequence);
            }
        }
    }

    fn prepare(&mut self, sequence: usize, job: &Job) -> Result<(usize, Sampler)> {
        let sampler = self.batch.model().sampler(job.generation.sampling, job.prompt.tokens())?;
        let reused = self.batch.reusable_tokens(sequence, &job.prompt)?;
        self.batch.set_prompt(sequence, job.prompt.clone())?;
        Ok((reused, sampler))
    }

    /// Computes a chunk of a prompt, and a token of each sequence whose prompt is computed.
    fn round(&mut self) -> Result<()> {
        let mut ready: Vec<usize> = Vec::new();
        if let Some(i) = self.active.iter().position(|active| !active.is_prefilled) {
            let active = &mut self.active[i];
            active.is_prefilled = self.batch.prefill(active.sequence)?;
            if active.is_prefilled {
                let _ = active.job.events.send(AnswerEvent::PromptComputed(active.reused));
                ready.push(i);
            }
        }
        let begun = ready.clone();
        ready.extend((0..self.active.len()).filter(|i| self.active[*i].is_prefilled && !begun.contains(i)));
        let sequences: Vec<usize> = ready.iter().map(|i| self.active[*i].sequence).collect();
        self.batch.advance(&sequences)?;
        let mut ended = Vec::new();
        for i in ready {
            let token = self.draw_token(i)?;
            let active = &mut self.active[i];
            active.generated += 1;
            ended.extend(token.stop.map(|stop| (active.sequence, stop)));
            let _ = active.job.events.send(AnswerEvent::Token(token));
        }
        self.end(|active| {
            let stop = ended.iter().find(|(sequence, _)| *sequence == active.sequence);
            stop.map(|(_, stop)| JobEnd::Stop(*stop))
        });
        Ok(())
    }

    /// Draws the next token of a job.
    fn draw_token(&mut self, i: usize) -> Result<GeneratedToken> {
        let ActiveJob { sequence, sampler, output, .. } = &mut self.active[i];
        let token = self.batch.draw(*sequence, sampler)?;
        let is_full = self.batch.tokens(*sequence)?.len() >= self.batch.context_size();
        output.push(&self.batch.model().tokenizer, token, is_full)
    }

    /// Frees the sequences of jobs that have ended, and prints a line for each.
    fn end(&mut self, ended: impl Fn(&ActiveJob) -> Option<JobEnd>) {
        let free = &mut self.free;
        self.active.retain(|active| {
            let Some(end) = ended(active) else { return true };
            let ActiveJob { job, reused, generated, sequence, .. } = active;
            let prompt = job.prompt.tokens().len();
            eprintln!("prompt of {prompt} tokens, {reused} of them kept; {generated} generated; {end}");
            if let JobEnd::Failed(why) = end {
                let _ = job.events.send(AnswerEvent::Failed(why));
            }
            free.push_back(*sequence);
            false
        });
    }
}
