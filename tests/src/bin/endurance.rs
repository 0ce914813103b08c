//! The load of a day-long job in minutes: checks that memory use stays constant and that results
//! are correct.
//!
//! ```text
//! cargo run --release -p tests --bin endurance -- --device cuda:0 rounds 1000000
//! cargo run --release -p tests --bin endurance -- --device cpu rounds 1000000
//! cargo run --release -p tests --bin endurance -- --device cuda:0 random 10      # minutes, on 8 threads
//! ```
//!
//! A round allocates, launches, checks the result and releases. Sizes, kinds of launches and
//! streams change from round to round. The program prints the host memory of the process and the
//! device memory of the pool twice: after a tenth of the rounds, when caches are warm, and at the
//! end. Growth of more than a mebibyte on the host, or of any amount on the device, is an error.

#[path = "../../tests/devices/streams/random.rs"]
mod random;
#[path = "../../tests/devices/streams/sum.rs"]
mod sum;

use runtime::{Device, Stream};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use sum::{add, added};

const MIB: u64 = 1 << 20;
const USAGE: &str = "usage: endurance [--device cpu|cuda:N] rounds COUNT | random MINUTES";

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let device = if arguments.first().is_some_and(|first| first == "--device") {
        let named = arguments.drain(..2.min(arguments.len())).nth(1).ok_or(USAGE)?;
        match named.strip_prefix("cuda:") {
            Some(ordinal) => Device::cuda(ordinal.parse()?)?,
            None if named == "cpu" => Device::cpu(),
            None => return Err(USAGE.into()),
        }
    } else {
        Device::best()?
    };
    match &arguments[..] {
        [what, count] if what == "rounds" => rounds(&device, count.parse()?),
        [what, minutes] if what == "random" => {
            let end = Instant::now() + Duration::from_secs_f64(60.0 * minutes.parse::<f64>()?);
            let (steps, most) = if device.is_cpu() { (200, 2_000) } else { (2_000, 200_000) };
            let mut times = 0;
            while Instant::now() < end {
                random::threads(&device, 8, steps, most);
                times += 1;
            }
            println!("{device}: 8 threads of {steps} steps, {times} times: all contents right; {}", device.memory());
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// Amounts of memory, in bytes.
#[derive(Clone, Copy, Debug)]
struct MemoryAmounts {
    /// Resident host memory of the process.
    host: Option<u64>,
    /// Device memory in use, in the pools.
    in_use: u64,
    /// Device memory reserved by the pools, used or not.
    reserved: u64,
}

impl MemoryAmounts {
    fn now(device: &Device) -> MemoryAmounts {
        let (memory, pinned) = (device.memory(), device.pinned_memory());
        MemoryAmounts {
            host: resident(),
            in_use: memory.in_use + pinned.in_use,
            reserved: memory.reserved + pinned.reserved,
        }
    }
}

/// Returns the resident memory that Linux reports for the process.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

fn rounds(device: &Device, count: u64) -> Result<(), Failed> {
    let start = Instant::now();
    let mut warm = None;
    let mut stream = device.stream()?;
    for n in 0..count {
        if n % 1000 == 0 {
            // Streams are replaced from time to time.
            stream = device.stream()?;
        }
        round(device, &stream, n)?;
        if n == count / 10 {
            stream.wait()?;
            warm = Some(MemoryAmounts::now(device));
        }
    }
    stream.wait()?;
    drop(stream);
    let (Some(warm), end) = (warm, MemoryAmounts::now(device)) else { return Err("no round".into()) };
    println!("{device}: {count} rounds in {:.1?}", start.elapsed());
    println!("after a tenth: {warm:?}\nat the end:    {end:?}");
    let grown = end.host.zip(warm.host).map_or(0, |(end, warm)| end.saturating_sub(warm));
    if grown > MIB || end.in_use > warm.in_use || end.reserved > warm.reserved {
        return Err(format!("memory has grown: host memory by {grown} bytes").into());
    }
    Ok(())
}

fn round(device: &Device, stream: &Stream, n: u64) -> Result<(), Failed> {
    let len = 1 + (n * 7919 % 257) as usize;
    let x = stream.upload(&vec![n as u32; len])?;
    let mut y = device.zeros(len)?;
    match n % 4 {
        0 => add::launch(device, 2, &x, &mut y)?,
        1 => add::launch(stream, 2, &x, &mut y)?,
        // SAFETY: each thread accesses only its own elements, in bounds.
        2 => unsafe { add::launch_unchecked(stream, 2, &x, &mut y)? },
        _ => stream.prepare(add::call(2, &x, &mut y))?.launch()?,
    }
    let event = stream.record()?;
    if n % 16 == 3 {
        event.wait()?;
    }
    if n % 64 == 5 {
        let expected = added(2, n as u32, 0);
        if y.download()? != vec![expected; len] {
            return Err(format!("round {n}: wrong").into());
        }
    }
    Ok(())
}
