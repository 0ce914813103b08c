//! Durations of a stream's work.

use crate::cuda::StreamOperation;
use kernel_dsl::compiler::launch::LaunchShape;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

/// The work of a stream since [`Stream::start_profile`](crate::Stream::start_profile), in order, by
/// the device's clock.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    pub(crate) device: String,
    pub(crate) operations: Vec<Timed>,
}

/// An operation and its time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Timed {
    /// The operation.
    pub work: ProfiledWork,
    /// The start of the operation, as the time since the start of the profile.
    pub start: Duration,
    /// The duration. On a GPU, its steps are half a microsecond, and it includes the driver's work
    /// between two operations.
    pub time: Duration,
}

/// An operation of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub enum ProfiledWork {
    /// A kernel's launch.
    Kernel { instance: String, grid: [u32; 3], block: [u32; 3] },
    /// A copy from the host.
    Upload { bytes: usize },
    /// A copy to the host.
    Download { bytes: usize },
    /// A copy within the device.
    Copy { bytes: usize },
    /// A fill.
    Fill { bytes: usize },
    /// A graph's replay.
    Graph { launches: usize },
}

/// The total duration of a kernel's launches.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct KernelTime {
    /// The kernel's instance, such as `matmul::<16>`.
    pub instance: String,
    /// The number of launches.
    pub launches: usize,
    /// The sum of the durations of all launches.
    pub total: Duration,
    /// The shortest duration of a launch.
    pub min: Duration,
    /// The longest duration of a launch.
    pub max: Duration,
}

impl KernelTime {
    /// Returns the mean duration of a launch.
    pub fn mean(&self) -> Duration {
        self.total / u32::try_from(self.launches.max(1)).unwrap_or(u32::MAX)
    }
}

impl ProfiledWork {
    pub(crate) fn of(operation: StreamOperation<'_>) -> ProfiledWork {
        match operation {
            StreamOperation::Launch { instance, shape, .. } => ProfiledWork::launch(instance, shape),
            StreamOperation::Upload { bytes, .. } => ProfiledWork::Upload { bytes },
            StreamOperation::Download { bytes, .. } => ProfiledWork::Download { bytes },
            StreamOperation::Copy { bytes, .. } => ProfiledWork::Copy { bytes },
            StreamOperation::Fill { bytes, .. } => ProfiledWork::Fill { bytes },
            StreamOperation::Replay { launches } => ProfiledWork::Graph { launches },
        }
    }

    pub(crate) fn launch(instance: &str, shape: LaunchShape) -> ProfiledWork {
        ProfiledWork::Kernel { instance: instance.to_string(), grid: shape.grid, block: shape.block }
    }

    fn name(&self) -> &str {
        match self {
            ProfiledWork::Kernel { instance, .. } => instance,
            ProfiledWork::Upload { .. } => "copy to the device",
            ProfiledWork::Download { .. } => "copy from the device",
            ProfiledWork::Copy { .. } => "copy within the device",
            ProfiledWork::Fill { .. } => "fill",
            ProfiledWork::Graph { .. } => "graph",
        }
    }
}

impl fmt::Display for ProfiledWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfiledWork::Kernel { instance, grid: [gx, gy, gz], block: [bx, by, bz] } => {
                write!(f, "{instance} in {gx} × {gy} × {gz} blocks of {bx} × {by} × {bz} threads")
            }
            ProfiledWork::Upload { bytes }
            | ProfiledWork::Download { bytes }
            | ProfiledWork::Copy { bytes }
            | ProfiledWork::Fill { bytes } => {
                write!(f, "a {} of {bytes} bytes", self.name())
            }
            ProfiledWork::Graph { launches } => write!(f, "a graph of {launches} launches"),
        }
    }
}

impl Profile {
    /// Returns all operations, in order.
    pub fn operations(&self) -> &[Timed] {
        &self.operations
    }

    /// Returns the total duration of each kernel, the longest first.
    pub fn kernels(&self) -> Vec<KernelTime> {
        let mut kernels: BTreeMap<&str, KernelTime> = BTreeMap::new();
        for Timed { work: what, time, .. } in &self.operations {
            let ProfiledWork::Kernel { instance, .. } = what else { continue };
            let kernel = kernels.entry(instance).or_insert_with(|| KernelTime {
                instance: instance.clone(),
                launches: 0,
                total: Duration::ZERO,
                min: Duration::MAX,
                max: Duration::ZERO,
            });
            kernel.launches += 1;
            kernel.total += *time;
            (kernel.min, kernel.max) = (kernel.min.min(*time), kernel.max.max(*time));
        }
        let mut kernels: Vec<_> = kernels.into_values().collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.total));
        kernels
    }

    /// Returns the profile as a file for Perfetto and chrome://tracing: JSON in the Trace Event
    /// Format. Times are in microseconds.
    pub fn chrome_trace(&self) -> String {
        let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        json.push_str("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":");
        quote(&mut json, &self.device);
        json.push_str("}}");
        for Timed { work: what, start, time } in &self.operations {
            json.push_str(",\n{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"name\":");
            quote(&mut json, what.name());
            let (category, arguments) = match what {
                ProfiledWork::Kernel { grid, block, .. } => {
                    ("kernel", format!("\"grid\":{grid:?},\"block\":{block:?}"))
                }
                ProfiledWork::Upload { bytes }
                | ProfiledWork::Download { bytes }
                | ProfiledWork::Copy { bytes }
                | ProfiledWork::Fill { bytes } => ("memory", format!("\"bytes\":{bytes}")),
                ProfiledWork::Graph { launches } => ("kernel", format!("\"launches\":{launches}")),
            };
            let (start, time) = (start.as_secs_f64() * 1e6, time.as_secs_f64() * 1e6);
            // Writing to a string does not fail.
            let _ =
                write!(json, ",\"cat\":\"{category}\",\"ts\":{start:.3},\"dur\":{time:.3},\"args\":{{{arguments}}}}}");
        }
        json.push_str("\n]}\n");
        json
    }
}

/// Appends a JSON string.
fn quote(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => _ = write!(json, "\\u{:04x}", u32::from(c)),
            c => json.push(c),
        }
    }
    json.push('"');
}

/// Writes a line for each kernel, then one line for all copies and fills.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        writeln!(f, "{}: kernels, times in µs", self.device)?;
        writeln!(f, "{:>8} {:>12} {:>10} {:>10} {:>10}  kernel", "launches", "total", "mean", "min", "max")?;
        for kernel in self.kernels() {
            let [total, mean, min, max] = [kernel.total, kernel.mean(), kernel.min, kernel.max].map(micros);
            writeln!(
                f,
                "{:>8} {total:>12.1} {mean:>10.2} {min:>10.2} {max:>10.2}  {}",
                kernel.launches, kernel.instance
            )?;
        }
        let others = self.operations.iter().filter(|timed| !matches!(timed.work, ProfiledWork::Kernel { .. }));
        let (count, time) = others.fold((0, Duration::ZERO), |(n, time), timed| (n + 1, time + timed.time));
        write!(f, "{count} copies and fills, {:.1} µs", micros(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let micros = Duration::from_micros;
        let kernel = |name: &str, start, time| Timed {
            work: ProfiledWork::launch(name, LaunchShape { grid: [4, 1, 1], block: [256, 1, 1] }),
            start: micros(start),
            time: micros(time),
        };
        let copy = Timed { work: ProfiledWork::Upload { bytes: 4096 }, start: micros(90), time: micros(7) };
        let operations = vec![kernel("a", 0, 10), kernel("matmul::<16>", 20, 30), kernel("a", 60, 14), copy];
        Profile { device: "cuda:0 (a \"card\")".into(), operations }
    }

    #[test]
    fn kernels_are_summarized() {
        let kernels = profile().kernels();
        assert_eq!(kernels.iter().map(|k| &k.instance[..]).collect::<Vec<_>>(), ["matmul::<16>", "a"]);
        let a = &kernels[1];
        let micros = Duration::from_micros;
        assert_eq!((a.launches, a.total, a.mean(), a.min, a.max), (2, micros(24), micros(12), micros(10), micros(14)));
        let shown = profile().to_string();
        assert!(shown.contains("       2         24.0      12.00      10.00      14.00  a\n"), "{shown}");
        assert!(shown.ends_with("1 copies and fills, 7.0 µs"), "{shown}");
    }

    #[test]
    fn a_trace_is_json() {
        let json: serde_json::Value = serde_json::from_str(&profile().chrome_trace()).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], "cuda:0 (a \"card\")");
        assert_eq!(events.len(), 5);
        assert_eq!((&events[2]["name"], &events[2]["ph"]), (&"matmul::<16>".into(), &"X".into()));
        assert_eq!((events[2]["ts"].as_f64(), events[2]["dur"].as_f64()), (Some(20.0), Some(30.0)));
        assert_eq!(events[2]["args"]["grid"], serde_json::json!([4, 1, 1]));
        assert_eq!(events[4]["args"]["bytes"], 4096);
        let mut quoted = String::new();
        quote(&mut quoted, "a\\\u{1}\n\"é");
        assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), "a\\\u{1}\n\"é");
    }
}
