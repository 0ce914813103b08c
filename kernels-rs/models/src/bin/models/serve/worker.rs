//! The thread that computes answers. Jobs from a queue become sequences of a batch.
//!
//! Each round of the loop takes jobs while sequences are free. The round then computes a chunk of
//! one prompt, and passes the last tokens of all other sequences through the model together. If a
//! client has disconnected, the next round frees its sequence, or its place in the queue.

use crate::output::write_message;
use models::Result;
use models::engine::{Batch, GeneratedToken, Generation, OutputText, Prompt, Sampler, StopReason};
use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A prompt to be continued.
#[derive(Debug)]
pub struct Job {
    /// The prompt.
    pub prompt: Prompt,
    /// Sampling, stop strings and the number of tokens.
    pub generation: Generation,
    /// The channel for events of the job. The job ends when the receiver is dropped.
    pub events: UnboundedSender<AnswerEvent>,
    /// The place among the unfinished jobs, until the last event.
    place: Option<JobPlace>,
}

impl Job {
    /// Sends the last event. The place becomes free before, so that a client that has its answer
    /// can send the next request.
    fn send_last(&mut self, event: AnswerEvent) {
        self.place = None;
        let _ = self.events.send(event);
    }
}

/// A place among the unfinished jobs, which becomes free when this value is dropped.
#[derive(Debug)]
struct JobPlace(Arc<AtomicUsize>);

impl JobPlace {
    /// Takes a place if fewer than `limit` are taken.
    fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<JobPlace> {
        let next = |taken: usize| (taken < limit).then_some(taken + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(JobPlace(taken.clone()))
    }
}

impl Drop for JobPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An event of a job.
#[derive(Debug)]
pub enum AnswerEvent {
    /// The prompt is computed. Keys and values of this many tokens were already in the cache.
    PromptComputed(usize),
    /// A token, and the text that the token completes.
    Token(GeneratedToken),
    /// The answer failed, for this reason.
    Failed(String),
    /// The server is stopping.
    Stopping,
}

/// A job that has a sequence.
struct ActiveJob {
    job: Job,
    sequence: usize,
    /// Tokens of the prompt whose keys and values were already in the cache.
    reused: usize,
    sampler: Sampler,
    output: OutputText,
    /// Whether the prompt is computed.
    is_prefilled: bool,
    /// The number of generated tokens.
    generated: usize,
}

/// The reason why a job ended.
#[derive(Clone, Debug)]
enum JobEnd {
    Stop(StopReason),
    ClientLeft,
    ServerStopping,
    Failed(String),
}

impl Display for JobEnd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobEnd::Stop(StopReason::EndToken) => "an end token",
            JobEnd::Stop(StopReason::StopString) => "a stop string",
            JobEnd::Stop(StopReason::TokenLimit) => "the requested number of tokens",
            JobEnd::Stop(StopReason::ContextFull) => "a full sequence",
            JobEnd::ClientLeft => "the client left",
            JobEnd::ServerStopping => "the server is stopping",
            JobEnd::Failed(why) => why,
        })
    }
}

/// The sender of the thread's queue.
pub struct JobQueue {
    jobs: Sender<Job>,
    /// The number of unfinished jobs: those with a sequence, and those that wait.
    unfinished: Arc<AtomicUsize>,
    /// The largest number of unfinished jobs.
    max_unfinished: usize,
    /// The thread has the only strong reference.
    thread: Weak<()>,
    is_stopping: Arc<AtomicBool>,
}

/// The reason why a job was not put into the queue.
pub enum QueueRefusal {
    /// All sequences are in use, and the queue is full.
    Full,
    /// The server is stopping.
    Stopping,
    /// The thread has ended by an error in this program.
    ThreadEnded,
}

impl JobQueue {
    /// Returns the number of unfinished jobs, which changes as jobs come and end.
    pub fn unfinished(&self) -> Arc<AtomicUsize> {
        self.unfinished.clone()
    }

    /// Tells whether the thread runs.
    pub fn has_thread(&self) -> bool {
        self.thread.strong_count() > 0
    }

    /// Puts a job into the queue, and returns the receiver of its events.
    pub fn push(
        &self,
        prompt: Prompt,
        generation: Generation,
    ) -> std::result::Result<UnboundedReceiver<AnswerEvent>, QueueRefusal> {
        let (events, receiver) = unbounded_channel();
        let place = Some(JobPlace::take(&self.unfinished, self.max_unfinished).ok_or(QueueRefusal::Full)?);
        let sent = self.jobs.send(Job { prompt, generation, events, place });
        match sent {
            Ok(()) => Ok(receiver),
            Err(_) if self.is_stopping.load(Ordering::Relaxed) => Err(QueueRefusal::Stopping),
            Err(_) => Err(QueueRefusal::ThreadEnded),
        }
    }
}

/// Starts the thread, and returns its handle and its queue, in which `queue_size` jobs can wait
/// while all sequences are in use. When `is_stopping` becomes true, running jobs end.
pub fn start(batch: Batch, queue_size: usize, is_stopping: Arc<AtomicBool>) -> (JoinHandle<()>, JobQueue) {
    let (sender, receiver) = channel();
    let running = Arc::new(());
    let queue = JobQueue {
        jobs: sender,
        unfinished: Arc::default(),
        max_unfinished: batch.sequences().saturating_add(queue_size),
        thread: Arc::downgrade(&running),
        is_stopping: is_stopping.clone(),
    };
    let (waiting, free) = (VecDeque::new(), VecDeque::new());
    let worker = Worker { batch, waiting, active: Vec::new(), free, is_stopping, _running: running };
    (std::thread::spawn(move || worker.run(&receiver)), queue)
}

/// The state of the thread.
struct Worker {
    batch: Batch,
    /// Jobs without a sequence, in the order of their requests.
    waiting: VecDeque<Job>,
    active: Vec<ActiveJob>,
    /// Sequences without a job, in the order in which their jobs ended.
    free: VecDeque<usize>,
    is_stopping: Arc<AtomicBool>,
    /// The reference by which others see that the thread runs.
    _running: Arc<()>,
}

impl Worker {
    /// Runs jobs until the queue is empty and has no sender.
    fn run(mut self, jobs: &Receiver<Job>) {
        self.free.extend(0..self.batch.sequences());
        loop {
            if self.active.is_empty() && self.waiting.is_empty() {
                match jobs.recv() {
                    Ok(job) => self.waiting.push_back(job),
                    Err(_) => return,
                }
            }
            self.waiting.extend(jobs.try_iter());
            // Clients that have left take no place in the queue.
            self.waiting.retain(|job| !job.events.is_closed());
            while !self.free.is_empty()
                && let Some(job) = self.waiting.pop_front()
            {
                self.begin(job);
            }
            if self.is_stopping.load(Ordering::Relaxed) {
                self.end(|_| Some(JobEnd::ServerStopping));
            }
            self.end(|active| active.job.events.is_closed().then_some(JobEnd::ClientLeft));
            if let Err(error) = self.round() {
                // If the device fails, all sequences fail.
                let why = error.to_string();
                self.end(|_| Some(JobEnd::Failed(why.clone())));
            }
        }
    }

    /// Starts a job in the free sequence that can reuse the most tokens of its prompt.
    fn begin(&mut self, mut job: Job) {
        let common = |sequence: &usize| self.batch.reusable_tokens(*sequence, &job.prompt).unwrap_or(0);
        // Among equal sequences, the one whose job ended first is taken.
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
                job.send_last(AnswerEvent::Failed(error.to_string()));
                self.free.push_back(sequence);
            }
        }
    }

    /// Sets the prompt of a sequence. Returns the number of reused tokens, and a sampler.
    fn prepare(&mut self, sequence: usize, job: &Job) -> Result<(usize, Sampler)> {
        let sampler = self.batch.model().sampler(job.generation.sampling, job.prompt.tokens())?;
        let reused = self.batch.reusable_tokens(sequence, &job.prompt)?;
        self.batch.set_prompt(sequence, job.prompt.clone())?;
        Ok((reused, sampler))
    }

    /// Computes a chunk of one prompt, and draws a token for each sequence with a computed prompt.
    /// If memory for the chunk runs out, or no token can be drawn, only that job fails.
    ///
    /// # Errors
    /// If the step of all sequences fails.
    fn round(&mut self) -> Result<()> {
        let mut ready: Vec<usize> = Vec::new();
        if let Some(i) = self.active.iter().position(|active| !active.is_prefilled) {
            let active = &mut self.active[i];
            let sequence = active.sequence;
            match self.batch.prefill(sequence) {
                Ok(is_prefilled) => {
                    active.is_prefilled = is_prefilled;
                    if is_prefilled {
                        let _ = active.job.events.send(AnswerEvent::PromptComputed(active.reused));
                        ready.push(i);
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    self.end(|active| (active.sequence == sequence).then(|| JobEnd::Failed(why.clone())));
                }
            }
        }
        let begun = ready.clone();
        ready.extend((0..self.active.len()).filter(|i| self.active[*i].is_prefilled && !begun.contains(i)));
        let sequences: Vec<usize> = ready.iter().map(|i| self.active[*i].sequence).collect();
        self.batch.advance(&sequences)?;
        let mut ended = Vec::new();
        for i in ready {
            let drawn = self.draw_token(i);
            let active = &mut self.active[i];
            let token = match drawn {
                Ok(token) => token,
                Err(error) => {
                    ended.push((active.sequence, JobEnd::Failed(error.to_string())));
                    continue;
                }
            };
            active.generated += 1;
            match token.stop {
                None => {
                    let _ = active.job.events.send(AnswerEvent::Token(token));
                }
                Some(stop) => {
                    ended.push((active.sequence, JobEnd::Stop(stop)));
                    active.job.send_last(AnswerEvent::Token(token));
                }
            }
        }
        self.end(|active| {
            let end = ended.iter().find(|(sequence, _)| *sequence == active.sequence);
            end.map(|(_, end)| end.clone())
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

    /// Ends the jobs for which `ended` returns a reason: frees their sequences, and prints a line
    /// for each.
    fn end(&mut self, ended: impl Fn(&ActiveJob) -> Option<JobEnd>) {
        let free = &mut self.free;
        self.active.retain_mut(|active| {
            let Some(end) = ended(active) else { return true };
            let ActiveJob { job, reused, generated, sequence, .. } = active;
            let prompt = job.prompt.tokens().len();
            write_message(format_args!(
                "prompt of {prompt} tokens, {reused} of them reused; {generated} generated; ended: {end}"
            ));
            match end {
                JobEnd::Failed(why) => job.send_last(AnswerEvent::Failed(why)),
                JobEnd::ServerStopping => job.send_last(AnswerEvent::Stopping),
                JobEnd::Stop(_) | JobEnd::ClientLeft => {}
            }
            free.push_back(*sequence);
            false
        });
    }
}
