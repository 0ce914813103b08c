//! The disk cache of compiled kernels: the PTX of instances made at run time.
//!
//! The driver caches its machine code itself (`CUDA_CACHE_PATH`, `~/.nv/ComputeCache`).
//! `kernels cache` shows and clears this cache; `kernels bench --suite runtime` measures what it
//! saves.
//!
//! | variable | |
//! |---|---|
//! | `KERNELS_CACHE` | the folder, or `off`; by default `kernel-dsl` in the user's cache folder |
//! | `KERNELS_CACHE_LIMIT` | the size limit in MiB; 256 by default |
//!
//! An entry is a file named by a hash of all that it depends on: content, target, compiler, driver.
//! The file also holds that key in full, so that two keys with equal hashes are distinguished, and
//! a checksum. Damaged entries are removed and made again. Files are written under a temporary name
//! and renamed. Any number of processes may share a folder, and no process reads a file that a
//! killed writer left. If a file cannot be written, the program runs without the cache.

mod entry;

use serde::Serialize;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub(crate) use entry::EntryKey;

/// The variable with the folder of the entries, or `off`.
const FOLDER: &str = "KERNELS_CACHE";
/// The variable with the size limit of all entries, in MiB.
const LIMIT_VARIABLE: &str = "KERNELS_CACHE_LIMIT";
const LIMIT_MIB: u64 = 256;
/// The extension of an entry's file.
const ENTRY: &str = "ptx-entry";
/// The extension of an unfinished file.
const UNFINISHED: &str = "tmp";
/// The age after which the writer of an unfinished file is presumed dead.
const UNFINISHED_FILE_AGE: Duration = Duration::from_secs(3600);

/// A folder of entries.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    limit: u64,
}

/// The content of a cache folder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Usage {
    /// Number of entries.
    pub entries: usize,
    /// Bytes of all entries.
    pub bytes: u64,
    /// The size limit in bytes.
    #[serde(rename = "limit_bytes")]
    pub limit: u64,
}

/// A file of the folder.
struct StoreFile {
    path: PathBuf,
    /// Whether the file is a complete entry; otherwise it is being written.
    is_entry: bool,
    bytes: u64,
    /// The time of the last use.
    used: SystemTime,
}

impl Store {
    /// Returns the store named by the environment, or `None` if it is disabled or no folder is
    /// known.
    pub fn of_environment() -> Option<Store> {
        let folder = match std::env::var_os(FOLDER) {
            Some(folder) if ["", "0", "off"].iter().any(|off| folder == *off) => return None,
            Some(folder) => PathBuf::from(folder),
            None => users_folder(|name| std::env::var_os(name))?.join("kernel-dsl"),
        };
        let limit = std::env::var(LIMIT_VARIABLE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(LIMIT_MIB);
        Some(Store::new(folder, limit.saturating_mul(1 << 20)))
    }

    /// Returns whether the environment names a store. A driver that compiles nothing uses a store
    /// only in this case.
    pub(crate) fn is_requested() -> bool {
        std::env::var_os(FOLDER).is_some()
    }

    /// Returns the store in a folder, which the first write creates. `limit` is the largest total
    /// size of the entries in bytes.
    pub fn new(folder: impl Into<PathBuf>, limit: u64) -> Store {
        Store { folder: folder.into(), limit }
    }

    /// Returns the folder of the entries.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the store's usage.
    ///
    /// # Errors
    /// The folder exists and cannot be read.
    pub fn usage(&self) -> io::Result<Usage> {
        let mut usage = Usage { entries: 0, bytes: 0, limit: self.limit };
        for found in self.files()? {
            usage.entries += usize::from(found.is_entry);
            usage.bytes += found.bytes;
        }
        Ok(usage)
    }

    /// Removes all entries, and returns what the store contained.
    ///
    /// # Errors
    /// The folder cannot be read, or a file not removed.
    pub fn clear(&self) -> io::Result<Usage> {
        let usage = self.usage()?;
        self.files()?.iter().try_for_each(|found| remove(&found.path))?;
        Ok(usage)
    }

    /// Returns the payload stored for a key. Removes a damaged entry.
    pub(crate) fn load(&self, key: &EntryKey) -> Option<Vec<u8>> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let Some(payload) = key.payload(&bytes) else {
            // Another process may remove it first; only its absence matters.
            let _ = remove(&path);
            return None;
        };
        // The time of the last use, by which the oldest entries are removed. A read-only folder
        // keeps its entries.
        let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(payload.to_vec())
    }

    /// Stores a payload for a key. If the entries then exceed the size limit, removes the least
    /// recently used ones.
    pub(crate) fn save(&self, key: &EntryKey, payload: &[u8]) -> io::Result<()> {
        self.save_with(key, payload, |path| File::create_new(path))
    }

    /// Saves an entry written to the result of `create`.
    fn save_with<W: Write>(
        &self,
        key: &EntryKey,
        payload: &[u8],
        create: impl FnOnce(&Path) -> io::Result<W>,
    ) -> io::Result<()> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let bytes = key.entry(payload);
        if bytes.len() as u64 > self.limit {
            return Ok(());
        }
        make_folder(&self.folder)?;
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let aside = self.folder.join(format!("{}.{}.{number}.{UNFINISHED}", key.name(), std::process::id()));
        let written = create(&aside).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.flush()
        });
        written.and_then(|()| fs::rename(&aside, self.path(key))).inspect_err(|_| _ = remove(&aside))?;
        self.trim()
    }

    /// Removes the least recently used entries until the limit is met, and files left by killed
    /// processes.
    fn trim(&self) -> io::Result<()> {
        let mut files = self.files()?;
        let now = SystemTime::now();
        let age = |found: &StoreFile| now.duration_since(found.used).unwrap_or_default();
        for forgotten in files.extract_if(.., |found| !found.is_entry && age(found) > UNFINISHED_FILE_AGE) {
            remove(&forgotten.path)?;
        }
        files.sort_by_key(|found| found.used);
        let mut bytes: u64 = files.iter().map(|found| found.bytes).sum();
        for found in files.iter().filter(|found| found.is_entry) {
            if bytes <= self.limit {
                break;
            }
            remove(&found.path)?;
            bytes -= found.bytes;
        }
        Ok(())
    }

    fn path(&self, key: &EntryKey) -> PathBuf {
        self.folder.join(key.name()).with_extension(ENTRY)
    }

    /// Lists the store's own files; other files of the folder are left alone.
    fn files(&self) -> io::Result<Vec<StoreFile>> {
        let folder = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut files = Vec::new();
        for file in folder {
            let path = file?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            let named = path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| {
                stem.split('.')
                    .next()
                    .is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
            });
            let is_entry = match extension {
                Some(UNFINISHED) if named => false,
                Some(ENTRY) if named => true,
                _ => continue,
            };
            // Another process may have removed it.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            files.push(StoreFile { path, is_entry, bytes: metadata.len(), used: metadata.modified()? });
        }
        Ok(files)
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a folder that only the user can access, because devices run code from it.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Returns the folder for this user's caches.
fn users_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        Some(path("HOME")?.join("Library/Caches"))
    } else {
        path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")))
    }
}

#[cfg(test)]
mod tests;
