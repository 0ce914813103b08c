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
    pub events: UnboundedSender<Event>,
}

/// A part of an answer.
#[derive(Debug)]
pub enum Event {
    /// The prompt is computed; this many of its tokens were reused from an earlier sequence.
    Begin(usize),
    /// A token, and the text that is complete with it.
    Piece(GeneratedToken),
    /// The answer ends without a stop.
    Failed(String),
}

/// A job in a sequence.
struct Active {
    job: Job,
    sequence: usize,
    /// Tokens of the prompt that were in the cache already.
    reused: usize,
    sampler: Sampler,
    output: OutputText,
    /// Whether the prompt is computed.
    is_prompted: bool,
    generated: usize,
}

/// Why a job ended.
#[derive(Clone, Debug)]
enum End {
    Stop(StopReason),
    Left,
    Failed(String),
}

impl Display for End {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Stop(StopReason::End) => "an end token",
            End::Stop(StopReason::Text) => "a stop string",
            End::Stop(StopReason::Tokens) => "the requested number",
            End::Stop(StopReason::Room) => "a full sequence",
            End::Left => "the client left",
            End::Failed(why) => why,
        })
    }
}

/// Starts the thread. The queue's sender refuses jobs if the queue is full. `stops` ends the
/// running jobs.
pub fn start(batch: Batch, room: usize, stops: Arc<AtomicBool>) -> (JoinHandle<()>, SyncSender<Job>) {
    let (sender, receiver) = sync_channel(room);
    let worker = Worker { batch, active: Vec::new(), free: VecDeque::new(), stops };
    (std::thread::spawn(move || worker.run(&receiver)), sender)
}

struct Worker {
    batch: Batch,
    active: Vec<Active>,
    /// Sequences without a job, in the order in which their jobs ended.
    free: VecDeque<usize>,
    stops: Arc<AtomicBool>,
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
            if self.stops.load(Ordering::Relaxed) {
                self.end(|_| Some(End::Failed("the server is stopping".to_owned())));
            }
            self.end(|active| active.job.events.is_closed().then_some(End::Left));
            if let Err(error) = self.round() {
                // The device failed, and with it all sequences.
                let why = error.to_string();
                self.end(|_| Some(End::Failed(why.clone())));
            }
        }
    }

    /// Gives a job the free sequence that can reuse the most tokens for it.
    fn begin(&mut self, job: Job) {
        if job.events.is_closed() {
            return;
        }
        let common = |sequence: &usize| self.batch.common(*sequence, &job.prompt).unwrap_or(0);
        // If several are equal, the sequence whose job ended first.
        let best = (0..self.free.len()).rev().max_by_key(|i| common(&self.free[*i]));
        let Some(sequence) = best.and_then(|i| self.free.remove(i)) else { return };
        match self.started(sequence, &job) {
            Ok((reused, sampler)) => {
                let output = OutputText::new(&self.batch.model().tokenizer, &job.generation);
                self.active.push(Active { job, sequence, reused, sampler, output, is_prompted: false, generated: 0 });
            }
            Err(error) => {
                let _ = job.events.send(Event::Failed(error.to_string()));
                self.free.push_back(sequence);
            }
        }
    }

    fn started(&mut self, sequence: usize, job: &Job) -> Result<(usize, Sampler)> {
        let sampler = self.batch.model().sampler(job.generation.sampling, job.prompt.tokens())?;
        let reused = self.batch.common(sequence, &job.prompt)?;
        self.batch.set_prompt(sequence, job.prompt.clone())?;
        Ok((reused, sampler))
    }

    /// Computes a chunk of a prompt, and a token of each sequence whose prompt is computed.
    fn round(&mut self) -> Result<()> {
        let mut ready: Vec<usize> = Vec::new();
        if let Some(i) = self.active.iter().position(|active| !active.is_prompted) {
            let active = &mut self.active[i];
            active.is_prompted = self.batch.prompt(active.sequence)?;
            if active.is_prompted {
                let _ = active.job.events.send(Event::Begin(active.reused));
                ready.push(i);
            }
        }
        let begun = ready.clone();
        ready.extend((0..self.active.len()).filter(|i| self.active[*i].is_prompted && !begun.contains(i)));
        let sequences: Vec<usize> = ready.iter().map(|i| self.active[*i].sequence).collect();
        self.batch.advance(&sequences)?;
        let mut ended = Vec::new();
        for i in ready {
            let piece = self.piece(i)?;
            let active = &mut self.active[i];
            active.generated += 1;
            ended.extend(piece.stop.map(|stop| (active.sequence, stop)));
            let _ = active.job.events.send(Event::Piece(piece));
        }
        self.end(|active| {
            let stop = ended.iter().find(|(sequence, _)| *sequence == active.sequence);
            stop.map(|(_, stop)| End::Stop(*stop))
        });
        Ok(())
    }

    /// Draws the next token of a job.
    fn piece(&mut self, i: usize) -> Result<GeneratedToken> {
        let Active { sequence, sampler, output, .. } = &mut self.active[i];
        let token = self.batch.draw(*sequence, sampler)?;
        let is_full = self.batch.tokens(*sequence)?.len() >= self.batch.room();
        output.push(&self.batch.model().tokenizer, token, is_full)
    }

    /// Frees the sequences of jobs that have ended, and prints a line for each.
    fn end(&mut self, ended: impl Fn(&Active) -> Option<End>) {
        let free = &mut self.free;
        self.active.retain(|active| {
            let Some(end) = ended(active) else { return true };
            let Active { job, reused, generated, sequence, .. } = active;
            let prompt = job.prompt.tokens().len();
            eprintln!("prompt of {prompt} tokens, {reused} of them kept; {generated} generated; {end}");
            if let End::Failed(why) = end {
                let _ = job.events.send(Event::Failed(why));
            }
            free.push_back(*sequence);
            false
        });
    }
}
