//! Damaged PTX: each file is loaded, and the kernels of accepted files are launched.

use super::api::{Library, print};
use super::{Run, failed};
use runtime::testing::Random;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// The longest file that is damaged.
const MAX_BYTES: usize = 60_000;

/// Numbers at the ends of ranges.
const EDGES: [&str; 14] = [
    "0",
    "1",
    "-1",
    "31",
    "32",
    "33",
    "255",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999999",
];

/// Collects PTX files, and the PTX of snapshots.
fn collect(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with(".git") {
                collect(&path, found);
            }
        } else if let ("ptx" | "snap", Ok(text)) = (extension, std::fs::read_to_string(&path)) {
            // A snapshot has a header, then the text.
            let text = text.find(".version").map(|at| text[at..].to_owned()).unwrap_or_default();
            if text.contains(".entry") && text.len() <= MAX_BYTES {
                found.push(text);
            }
        }
    }
}

/// Returns the ranges of words, numbers and other characters of a line.
fn tokens(line: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut last = None;
    for (i, c) in line.char_indices() {
        let word = c.is_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
        match found.last_mut() {
            Some(token) if last == Some(true) && word => token.1 = i + c.len_utf8(),
            _ if !c.is_whitespace() => found.push((i, i + c.len_utf8())),
            _ => {}
        }
        last = Some(word && !c.is_whitespace());
    }
    found
}

/// Damages a text in one to three places.
fn damaged(random: &mut Random, text: &str, other: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let others: Vec<&str> = other.lines().collect();
    for _ in 0..1 + random.below(3) {
        let n = lines.len().max(1);
        let (i, j) = (random.below(n), random.below(n));
        let Some(line) = lines.get(i).cloned() else { break };
        match random.below(10) {
            0 => _ = lines.remove(i),
            1 => lines.insert(j, line),
            2 => lines.swap(i, j),
            3 => lines.insert(i, (*random.choose(&others).unwrap_or(&"")).to_owned()),
            4 => lines.truncate(i),
            5 => {
                // A character.
                let at = random.below(line.len() + 1);
                let c = char::from(32 + random.below(95) as u8);
                if line.is_char_boundary(at) {
                    lines[i].insert(at, c);
                }
            }
            kind => {
                // A token becomes another one of the text, or a number at the end of a range.
                let (own, from) = (tokens(&line), lines[j].clone());
                let Some(&(begin, end)) = random.choose(&own) else { continue };
                let new = match (kind, random.choose(&tokens(&from))) {
                    (6 | 7, Some(&(a, b))) => from[a..b].to_owned(),
                    (8, _) => String::new(),
                    _ => (*random.choose(&EDGES).unwrap_or(&"0")).to_owned(),
                };
                lines[i].replace_range(begin..end, &new);
            }
        }
    }
    lines.join("\n")
}

/// Returns the names after `.entry`.
fn entries(text: &str) -> Vec<CString> {
    let names = text.split(".entry").skip(1).map(|rest| {
        rest.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '%'))
            .collect::<String>()
    });
    names.filter_map(|name| CString::new(name).ok()).collect()
}

/// Damages, loads and launches files.
pub fn run(run: &Run, driver: &Library, corpus: Option<PathBuf>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    collect(corpus.as_deref().unwrap_or(&root), &mut texts);
    if texts.is_empty() {
        failed("no PTX files: name a folder with `--corpus`", "");
    }
    let f = |name| driver.find(name);
    let (init, retain, current, reset) =
        (f("cuInit"), f("cuDevicePrimaryCtxRetain"), f("cuCtxSetCurrent"), f("cuDevicePrimaryCtxReset_v2"));
    let (load, unload, function, launch) =
        (f("cuModuleLoadData"), f("cuModuleUnload"), f("cuModuleGetFunction"), f("cuLaunchKernel"));
    let (allocate, free, synchronize) = (f("cuMemAlloc_v2"), f("cuMemFree_v2"), f("cuCtxSynchronize"));
    let mut answers = [BTreeMap::new(), BTreeMap::new()];
    let (mut context, mut memory) = (0u64, [0u64; 4]);
    let out = |x: &mut u64| std::ptr::from_mut(x) as u64;
    let mut begun = false;
    // SAFETY: the numbers of arguments are those of cuda.h, and pointers are to live numbers.
    let answered = unsafe { init.call(&[0]) };
    assert_eq!(answered, 0, "cuInit");
    run.each(|seed| {
        let mut random = Random::new(seed);
        let (Some(text), Some(other)) = (random.choose(&texts).cloned(), random.choose(&texts).cloned()) else {
            return;
        };
        let text = damaged(&mut random, &text, &other);
        run.watch.begin(text.clone());
        let Ok(image) = CString::new(text.as_str()) else { return };
        // SAFETY: as above. The image ends with NUL. Parameters of a kernel take at most 32,764
        // bytes, and each of the pointers is to 64 KiB.
        unsafe {
            if !begun {
                retain.call(&[out(&mut context), 0]);
                current.call(&[context]);
                for at in &mut memory {
                    allocate.call(&[out(at), 4096]);
                }
                begun = true;
            }
            let mut module = 0;
            let code = load.call(&[out(&mut module), image.as_ptr() as u64]);
            *answers[0].entry(code).or_insert(0) += 1;
            if code != 0 {
                return;
            }
            for name in entries(&text) {
                let mut kernel = 0;
                if function.call(&[out(&mut kernel), module, name.as_ptr() as u64]) != 0 {
                    continue;
                }
                let mut values: Vec<u64> = (0..8192).map(|_| random.below(70) as u64).collect();
                let mut parameters: Vec<u64> = (0..64)
                    .map(|i| {
                        // Most 64-bit parameters are addresses.
                        if random.below(100) < 70 {
                            values[i] = memory[random.below(4)];
                        }
                        std::ptr::from_mut(&mut values[i]) as u64
                    })
                    .collect();
                let dims =
                    [1 + random.below(3) as u64, 1, 1, 1 + random.below(70) as u64, 1 + random.below(2) as u64, 1];
                let shared = [0, 0, 1024, 100_000][random.below(4)];
                let [x, y, z, bx, by, bz] = dims;
                let arguments = [kernel, x, y, z, bx, by, bz, shared, 0, parameters.as_mut_ptr() as u64, 0];
                let launched = launch.call(&arguments);
                *answers[1].entry(launched).or_insert(0) += 1;
                if synchronize.call(&[]) != 0 {
                    // An error of a kernel ends its context.
                    reset.call(&[0]);
                    begun = false;
                    return;
                }
            }
            unload.call(&[module]);
            if random.below(100) == 0 {
                memory.iter().for_each(|at| _ = free.call(&[*at]));
                reset.call(&[0]);
                begun = false;
            }
        }
    });
    println!("{} files damaged; loads, then launches:", texts.len());
    answers.iter().for_each(print);
}
