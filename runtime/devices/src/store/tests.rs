//! Tests of stores, in separate folders.

use super::*;
use std::process::Command;

fn store(name: &str, limit: u64) -> Store {
    let folder = std::env::temp_dir().join(format!("kernel-dsl-store-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    Store::new(folder, limit)
}

fn key(n: u32) -> EntryKey {
    EntryKey::new(&[&n.to_le_bytes()])
}

fn end(store: Store) {
    fs::remove_dir_all(store.folder()).unwrap();
}

#[test]
fn saved_entries_are_found() {
    let store = store("found", 1 << 20);
    assert_eq!(store.usage().unwrap(), Usage { entries: 0, bytes: 0, limit: 1 << 20 });
    assert_eq!(store.load(&key(1)), None);
    store.save(&key(1), b"one").unwrap();
    store.save(&key(2), &[7; 1000]).unwrap();
    fs::write(store.folder().join("somebody-else's"), b"x").unwrap();
    assert_eq!(store.load(&key(1)).as_deref(), Some(&b"one"[..]));
    assert_eq!(store.load(&key(2)), Some(vec![7; 1000]));
    assert_eq!(store.load(&key(3)), None);
    let usage = store.usage().unwrap();
    assert_eq!(usage.entries, 2);
    assert_eq!(store.clear().unwrap(), usage);
    assert_eq!(store.load(&key(1)), None);
    assert_eq!(store.usage().unwrap().bytes, 0);
    assert!(store.folder().join("somebody-else's").exists());
    end(store);
}

#[test]
fn damaged_entries_are_replaced() {
    let store = store("damaged", 1 << 20);
    store.save(&key(1), b"one").unwrap();
    for damage in [&b""[..], b"kernel-dsl cache, format 1\n", &[0xff; 200]] {
        fs::write(store.path(&key(1)), damage).unwrap();
        assert_eq!(store.load(&key(1)), None);
        assert!(!store.path(&key(1)).exists());
        store.save(&key(1), b"one").unwrap();
        assert_eq!(store.load(&key(1)).as_deref(), Some(&b"one"[..]));
    }
    // A file with another key.
    fs::copy(store.path(&key(1)), store.path(&key(2))).unwrap();
    assert_eq!(store.load(&key(2)), None);
    end(store);
}

#[test]
fn the_least_recently_used_entry_is_removed() {
    let bytes = key(0).entry(&[0; 1000]).len() as u64;
    let store = store("limit", 4 * bytes);
    let at = |n: u32, seconds| {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        File::options().append(true).open(store.path(&key(n))).unwrap().set_modified(time).unwrap();
    };
    for n in 0..4 {
        store.save(&key(n), &[n as u8; 1000]).unwrap();
        at(n, 1000 - u64::from(n));
    }
    // Using the oldest entry makes it the newest.
    assert!(store.load(&key(0)).is_some());
    store.save(&key(4), &[4; 1000]).unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(|n| store.load(&key(n)).is_some()), [true, false, true, true, true]);
    // An entry that cannot fit is not kept, and removes no other.
    store.save(&key(5), &[5; 10_000]).unwrap();
    assert_eq!(store.usage().unwrap().entries, 4);
    end(store);
}

/// A disk with room for `room` bytes.
struct Full {
    file: File,
    room: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.room);
        if fits == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= fits;
        self.file.write(&bytes[..fits])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[test]
fn a_full_disk_leaves_no_files() {
    let store = store("full", 1 << 20);
    let whole = key(1).entry(b"payload").len();
    for room in 0..whole {
        let full = |path: &Path| File::create_new(path).map(|file| Full { file, room });
        let failed = store.save_with(&key(1), b"payload", full).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        assert_eq!(store.load(&key(1)), None);
        assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 0, "with room for {room} bytes");
    }
    store.save_with(&key(1), b"payload", |path| File::create_new(path).map(|file| Full { file, room: whole })).unwrap();
    assert_eq!(store.load(&key(1)).as_deref(), Some(&b"payload"[..]));
    end(store);
}

#[test]
fn an_invalid_folder_is_an_error() {
    let store = store("file", 1 << 20);
    fs::write(store.folder(), b"a file").unwrap();
    assert!(store.save(&key(1), b"x").is_err());
    assert_eq!(store.load(&key(1)), None);
    assert!(store.usage().is_err());
    fs::remove_file(store.folder()).unwrap();
}

/// The variable with the folder, set in child processes that write until they are killed.
const WRITER: &str = "KERNELS_TEST_WRITER";

/// Returns the content of an entry, which shows whether it is whole.
fn content(n: u32) -> Vec<u8> {
    (0..20_000u32).flat_map(|i| (i ^ n).to_le_bytes()).collect()
}

#[test]
fn killed_writers_do_not_damage_the_store() {
    if let Some(folder) = std::env::var_os(WRITER) {
        let store = Store::new(folder, 2 << 20);
        for n in (0..40).cycle() {
            let _ = store.save(&key(n), &content(n));
            if let Some(found) = store.load(&key(n)) {
                assert!(found == content(n));
            }
        }
    }
    let store = store("killed", 2 << 20);
    let program = std::env::current_exe().unwrap();
    let name = "store::tests::killed_writers_do_not_damage_the_store";
    for _ in 0..6 {
        let mut writers: Vec<_> = (0..3)
            .map(|_| {
                Command::new(&program)
                    .args(["--exact", name])
                    .env(WRITER, store.folder())
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        // Waits until the writers have begun, however long that takes.
        while store.usage().unwrap().entries < 5 {
            assert!(writers.iter_mut().all(|writer| writer.try_wait().unwrap().is_none()), "a writer has failed");
            std::thread::yield_now();
        }
        for mut writer in writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        for n in 0..40 {
            if let Some(found) = store.load(&key(n)) {
                assert!(found == content(n), "entry {n}");
            }
        }
        store.clear().unwrap();
    }
    // Unfinished files disappear with time.
    let left = store.folder().join(format!("{}.1.1.{UNFINISHED}", key(1).name()));
    fs::write(&left, b"half").unwrap();
    store.save(&key(1), b"x").unwrap();
    assert!(left.exists(), "it may still be written");
    let long_ago = SystemTime::now() - 2 * UNFINISHED_FILE_AGE;
    File::options().append(true).open(&left).unwrap().set_modified(long_ago).unwrap();
    store.save(&key(1), b"x").unwrap();
    assert!(!left.exists());
    end(store);
}

#[test]
fn users_folder_follows_the_system() {
    let variables = |name: &str| match name {
        "HOME" => Some("/home/ann".into()),
        "LOCALAPPDATA" => Some(r"C:\Users\ann\AppData\Local".into()),
        _ => None,
    };
    let folder = users_folder(variables).unwrap();
    if cfg!(all(unix, not(target_os = "macos"))) {
        assert_eq!(folder, Path::new("/home/ann/.cache"));
        assert_eq!(users_folder(|_| Some("/x".into())).unwrap(), Path::new("/x"));
    }
    assert_eq!(users_folder(|_| None), None);
}
