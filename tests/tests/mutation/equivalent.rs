//! The reviewed list of mutants that may survive, with one file in `equivalent` for related
//! kernels.
//!
//! A line of a file is `kernel | function: line of it | change #number`. A line that starts with
//! `#` is the reason for the lines after it.

use super::Name;
use std::collections::BTreeMap;
use std::fs;

/// The list of mutants with their reasons.
pub struct Equivalent(BTreeMap<Name, String>);

impl Equivalent {
    /// Reads the files in `equivalent`, beside this file.
    pub fn read() -> Equivalent {
        let mut equivalent = Equivalent(BTreeMap::new());
        let lists = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutation/equivalent"));
        for list in lists.expect("the lists are beside this file") {
            let list = list.expect("the list has a path").path();
            equivalent.add(&fs::read_to_string(list).expect("the list is readable text"));
        }
        equivalent
    }

    fn add(&mut self, text: &str) {
        let (mut reason, mut fresh) = (String::new(), true);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(text) = line.strip_prefix('#') {
                if !std::mem::replace(&mut fresh, true) {
                    reason.clear();
                }
                reason = format!("{reason} {}", text.trim()).trim().to_string();
            } else {
                fresh = false;
                let name = name(line).unwrap_or_else(|| panic!("invalid name of a mutant: {line}"));
                assert!(!reason.is_empty(), "the mutant has no reason: {line}");
                assert!(self.0.insert(name, reason.clone()).is_none(), "there twice: {line}");
            }
        }
    }

    /// Returns the reason why this mutant may survive.
    pub fn reason(&self, name: &Name) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the names of all mutants in the list.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }
}

fn name(line: &str) -> Option<Name> {
    // A line of Rust may contain bars: the instance is before the first, the change after the last.
    let (instance, rest) = line.split_once(" | ")?;
    let (site, change) = rest.rsplit_once(" | ")?;
    let (change, number) = match change.rsplit_once(" #") {
        Some((change, number)) => (change, number.parse().ok()?),
        None => (change, 1),
    };
    Some(Name { instance: instance.to_string(), site: site.to_string(), change: change.to_string(), number })
}
