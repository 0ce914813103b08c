//! Tests of the events for subscribers of `tracing`. The subscriber is global to the process, so
//! that there is one test per process.

use kernel_dsl::prelude::*;
use runtime::{Device, Result};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Computes y ← x + 1.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len())]
fn next(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i] + 1;
    }
}

/// Stores 32 GiB beyond the end of the buffer.
#[kernel(block = 32, grid = 1)]
fn far_beyond(y: &mut [u64]) {
    y[0xffff_0000 + thread::index()] = 1;
}

/// A subscriber that collects one line per event.
struct Heard;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write;
        match field.name() {
            "message" => write!(self.0, " {value:?}").unwrap(),
            name => write!(self.0, " {name}={value:?}").unwrap(),
        }
    }
}

fn heard(what: &str, metadata: &Metadata<'_>, visit: impl FnOnce(&mut Line)) {
    let mut line = Line(format!("{} {what}", metadata.level()));
    visit(&mut line);
    LINES.lock().unwrap().push(line.0);
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "runtime"
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        static IDS: AtomicU64 = AtomicU64::new(1);
        heard(span.metadata().name(), span.metadata(), |line| span.record(line));
        span::Id::from_u64(IDS.fetch_add(1, Ordering::Relaxed))
    }

    fn event(&self, event: &Event<'_>) {
        heard("event:", event.metadata(), |line| event.record(line));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn program(device: &Device) -> Result<Vec<u32>> {
    let x = device.upload(&[1; 100])?;
    let mut y = device.zeros(100)?;
    next::launch(device, &x, &mut y)?;
    y.download()
}

/// Runs the program on a device, and returns the lines.
fn lines(device: &Device) -> Vec<String> {
    LINES.lock().unwrap().clear();
    assert_eq!(program(device).unwrap(), [2; 100]);
    std::mem::take(&mut *LINES.lock().unwrap())
}

#[test]
fn subscribers_receive_events() {
    tracing::subscriber::set_global_default(Heard).unwrap();
    let best = Device::best().unwrap();
    let chosen = LINES.lock().unwrap().iter().find(|line| line.contains("device chosen")).cloned().unwrap();
    assert!(chosen.starts_with("INFO event: device chosen device="), "{chosen}");
    assert!(chosen.contains(&best.choice().unwrap().reason), "{chosen}");

    let said = lines(&Device::cpu());
    assert_eq!(said.iter().filter(|line| *line == "DEBUG run instance=next").count(), 1, "{said:#?}");
    assert!(said.iter().any(|line| line == "TRACE event: memory taken memory=Device bytes=400"), "{said:#?}");
    assert!(said.iter().any(|line| line.starts_with("DEBUG event: memory reserved device=\"the host\"")), "{said:#?}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_subscribers_receive_events() {
    // If the tests of this file share a process, the other test may have set the subscriber.
    let _ = tracing::subscriber::set_global_default(Heard);
    let said = lines(&Device::cuda(0).unwrap());
    for expected in [
        "DEBUG submit operation=copying 400 bytes to the device at 0x",
        "DEBUG submit operation=filling 400 bytes at 0x",
        "DEBUG compile instance=next",
        "DEBUG load instance=\"next\" bytes=",
        "DEBUG submit operation=launching next in 4 × 1 × 1 blocks of 32 × 1 × 1 threads",
        "DEBUG submit operation=copying 400 bytes from the device at 0x",
        "DEBUG wait device=cuda:0 (",
        "DEBUG event: memory reserved device=cuda:0 (",
    ] {
        assert!(said.iter().any(|line| line.starts_with(expected)), "{expected}: {said:#?}");
    }

    // The fault comes last: the driver may then refuse another context of the process. The work
    // continues on the CPU, with an event.
    let device = Device::cuda(0).unwrap();
    let result = device.with_cpu_fallback(|device| {
        if !device.is_cpu() {
            // SAFETY: this is deliberately unsound for the device, to test the loss of its context.
            // No other memory of the process is at that device address.
            unsafe { far_beyond::launch_unchecked(device, &mut device.zeros(32)?)? };
        }
        program(device)
    });
    assert_eq!(result.unwrap(), [2; 100]);
    let said = LINES.lock().unwrap();
    let told = "WARN event: fallback: work restarts on another device loss=cuda:0 (";
    let told = said.iter().filter(|line| line.starts_with(told) && line.ends_with(" device=cpu (interpreter)"));
    assert_eq!(told.count(), 1, "{said:#?}");
}
