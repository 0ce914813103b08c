//! Objects that the program created and did not destroy.

use super::origin::{CallOrigin, HostFrame};
use serde_json::{Value, json};
use std::fmt;

/// The name of the check in suppressions and reports.
pub const LEAK: &str = "leak";

/// The objects that the leak check reports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LeakCheck {
    /// None.
    No,
    /// Memory, streams, events, graphs and other objects, but neither modules nor libraries: most
    /// programs keep their code loaded until they end.
    Full,
    /// Every object, also modules and libraries.
    Modules,
}

/// A type of object that leaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum LeakedObject {
    DeviceMemory,
    PoolMemory,
    ManagedMemory,
    PinnedMemory,
    RegisteredMemory,
    HeapMemory,
    Array,
    Texture,
    Surface,
    TextureReference,
    Stream,
    Event,
    Graph,
    ExecutableGraph,
    UserObject,
    Pool,
    LinkState,
    Context,
    Module,
    Library,
}

impl LeakedObject {
    /// Returns the name of one object, the name of several, and the missing operation.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        use LeakedObject::*;
        match self {
            DeviceMemory => ("an allocation of device memory", "allocations of device memory", "freed"),
            PoolMemory => ("an allocation from a pool", "allocations from a pool", "freed"),
            ManagedMemory => ("an allocation of managed memory", "allocations of managed memory", "freed"),
            PinnedMemory => ("an allocation of page-locked memory", "allocations of page-locked memory", "freed"),
            RegisteredMemory => ("a range of registered memory", "ranges of registered memory", "unregistered"),
            HeapMemory => ("an allocation by `malloc` in kernels", "allocations by `malloc` in kernels", "freed"),
            Array => ("an array", "arrays", "destroyed"),
            Texture => ("a texture object", "texture objects", "destroyed"),
            Surface => ("a surface object", "surface objects", "destroyed"),
            TextureReference => ("a texture reference", "texture references", "destroyed"),
            Stream => ("a stream", "streams", "destroyed"),
            Event => ("an event", "events", "destroyed"),
            Graph => ("a graph", "graphs", "destroyed"),
            ExecutableGraph => ("an executable graph", "executable graphs", "destroyed"),
            UserObject => ("a user object", "user objects", "released"),
            Pool => ("a memory pool", "memory pools", "destroyed"),
            LinkState => ("a link state", "link states", "destroyed"),
            Context => ("a context", "contexts", "destroyed"),
            Module => ("a module", "modules", "unloaded"),
            Library => ("a library", "libraries", "unloaded"),
        }
    }
}

/// An object that exists at the end of the process.
#[derive(Clone, Debug)]
pub struct LiveObject {
    /// The type of the object.
    pub object: LeakedObject,
    /// The size in bytes, if the object is memory.
    pub bytes: Option<u64>,
    /// The call that created the object.
    pub origin: CallOrigin,
}

/// Leaked objects of one type and size that one function of the driver created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leak {
    object: LeakedObject,
    /// The function that created the objects.
    pub function: &'static str,
    /// The size of each object in bytes, if the objects are memory.
    bytes: Option<u64>,
    count: u64,
    /// The numbers of the first calls that created the objects.
    calls: Vec<u64>,
    /// The functions of the program that made the first of the calls, innermost first.
    frames: Vec<HostFrame>,
}

/// The largest number of calls in a report of a leak.
const MAX_CALLS: usize = 16;

impl Leak {
    /// Returns the leaks of these objects, by type, creating function and size. The leaks are in
    /// the order of their first calls.
    pub fn group(mut objects: Vec<LiveObject>) -> Vec<Leak> {
        let key = |live: &LiveObject| (live.object, live.origin.function, live.bytes);
        objects.sort_by(|a, b| key(a).cmp(&key(b)).then(a.origin.number.cmp(&b.origin.number)));
        let leak = |alike: &[LiveObject]| Leak {
            object: alike[0].object,
            function: alike[0].origin.function,
            bytes: alike[0].bytes,
            count: alike.len() as u64,
            calls: alike.iter().map(|live| live.origin.number).filter(|n| *n > 0).take(MAX_CALLS).collect(),
            frames: alike[0].origin.frames(),
        };
        let mut leaks: Vec<Leak> = objects.chunk_by(|a, b| key(a) == key(b)).map(leak).collect();
        leaks.sort_by_key(|leak| leak.calls.first().copied());
        leaks
    }

    /// Returns the summary of all leaks; empty without leaks.
    pub fn summarize(leaks: &[Leak]) -> String {
        let bytes: u64 = leaks.iter().filter_map(|leak| Some(leak.bytes?.saturating_mul(leak.count))).sum();
        let head = match leaks {
            [] => return String::new(),
            [_] => "1 leak".to_string(),
            leaks => format!("{} leaks", leaks.len()),
        };
        let entries = leaks.iter().map(|leak| format!("\n{}", leak.summary()));
        let size = if bytes > 0 { format!(", {bytes} bytes in all") } else { String::new() };
        format!("{head}{size}{}", entries.collect::<String>())
    }

    /// Returns the entry of the summary: the leak, and its calls.
    fn summary(&self) -> String {
        let numbers: Vec<String> = self.calls.iter().map(u64::to_string).collect();
        let calls = match self.count {
            _ if numbers.is_empty() => "in kernels".to_string(),
            1 => format!("call {} of the process", numbers[0]),
            count if count > numbers.len() as u64 => format!("calls {} … of the process", numbers.join(", ")),
            _ => format!("calls {} of the process", numbers.join(", ")),
        };
        let mut text = format!("error[{LEAK}]: {self}\n    by `{}`, {calls}", self.function);
        for HostFrame { function, place } in &self.frames {
            text += &format!("\n    in `{function}`");
            if let Some((file, line)) = place {
                text += &format!(", {file}:{line}");
            }
        }
        text
    }

    /// Returns the leak as JSON.
    pub fn json(&self) -> Value {
        let frame = |HostFrame { function, place }: &HostFrame| {
            let (file, line) = place.clone().unzip();
            json!({ "function": function, "file": file, "line": line })
        };
        json!({
            "check": LEAK,
            "severity": "error",
            "message": self.to_string(),
            "function": self.function,
            "calls": self.calls,
            "count": self.count,
            "bytes": self.bytes,
            "frames": self.frames.iter().map(frame).collect::<Vec<_>>(),
        })
    }

    /// Returns the leak as a result in SARIF. The place is that of the innermost function with a
    /// known line.
    pub fn sarif(&self) -> Value {
        let location = match self.frames.iter().find_map(|frame| frame.place.as_ref()) {
            Some((file, line)) => json!([{ "physicalLocation": {
                "artifactLocation": { "uri": file },
                "region": { "startLine": line },
            } }]),
            None => json!([{ "logicalLocations": [{ "fullyQualifiedName": self.function }] }]),
        };
        json!({
            "ruleId": LEAK,
            "level": "error",
            "message": { "text": format!("`{}`: {self}", self.function) },
            "locations": location,
        })
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, several, undone) = self.object.words();
        match (self.count, self.bytes) {
            (1, None) => write!(f, "{one} was not {undone}"),
            (1, Some(bytes)) => write!(f, "{one} was not {undone}: {bytes} bytes"),
            (count, None) => write!(f, "{count} {several} were not {undone}"),
            (count, Some(bytes)) => write!(f, "{count} {several} were not {undone}: {bytes} bytes each"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::origin::CallCounter;
    use super::*;

    #[test]
    fn objects_of_one_function_and_size_are_one_leak() {
        let counter = CallCounter::default();
        let made = |object, function, bytes| {
            counter.begin(function);
            LiveObject { object, bytes, origin: CallOrigin::current() }
        };
        let objects = vec![
            made(LeakedObject::Stream, "cuStreamCreate", None),
            made(LeakedObject::DeviceMemory, "cuMemAlloc_v2", Some(64)),
            made(LeakedObject::DeviceMemory, "cuMemAlloc_v2", Some(8)),
            made(LeakedObject::DeviceMemory, "cuMemAlloc_v2", Some(64)),
        ];
        let leaks = Leak::group(objects);
        let summaries: Vec<String> = leaks.iter().map(Leak::summary).collect();
        assert_eq!(
            summaries,
            [
                "error[leak]: a stream was not destroyed\n    by `cuStreamCreate`, call 1 of the process",
                "error[leak]: 2 allocations of device memory were not freed: 64 bytes each\n    \
                 by `cuMemAlloc_v2`, calls 2, 4 of the process",
                "error[leak]: an allocation of device memory was not freed: 8 bytes\n    \
                 by `cuMemAlloc_v2`, call 3 of the process",
            ]
        );
        let json = leaks[1].json();
        assert_eq!((&json["calls"], &json["count"], &json["bytes"]), (&json!([2, 4]), &json!(2), &json!(64)));
        assert_eq!(leaks[0].sarif()["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "cuStreamCreate");
    }

    #[test]
    fn a_report_lists_the_first_calls() {
        let counter = CallCounter::default();
        let event = |_| {
            counter.begin("cuEventCreate");
            LiveObject { object: LeakedObject::Event, bytes: None, origin: CallOrigin::current() }
        };
        let leaks = Leak::group((0..100).map(event).collect());
        assert_eq!((leaks.len(), leaks[0].calls.len()), (1, MAX_CALLS));
        let summary = leaks[0].summary();
        assert!(summary.contains("100 events were not destroyed") && summary.contains("15, 16 … of"), "{summary}");
    }
}
