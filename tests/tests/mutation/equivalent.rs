//! The mutants that survive and may: a reviewed list, a file of `equivalent` for kernels that belong together.
//!
//! A line there is `kernel | function: line of it | change #number`; a line that starts with `#` is the reason of those
//! that follow it.

use super::Name;
use std::collections::BTreeMap;
use std::fs;

/// The list, each with its reason.
pub struct Equivalent(BTreeMap<Name, String>);

impl Equivalent {
    /// The lists beside this file.
    pub fn read() -> Equivalent {
        let mut equivalent = Equivalent(BTreeMap::new());
        let lists = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutation/equivalent"));
        for list in lists.expect("the lists are beside this file") {
            let list = list.expect("the lists can be looked at").path();
            equivalent.add(&fs::read_to_string(list).expect("a list is text"));
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
                let name = name(line).unwrap_or_else(|| panic!("not a mutant's name: {line}"));
                assert!(!reason.is_empty(), "without a reason: {line}");
                assert!(self.0.insert(name, reason.clone()).is_none(), "there twice: {line}");
            }
        }
    }

    /// Why that mutant may survive.
    pub fn reason(&self, name: &Name) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }
}

fn name(line: &str) -> Option<Name> {
    // A line of Rust may have bars of its own: the instance is before the first, the change behind the last.
    let (instance, rest) = line.split_once(" | ")?;
    let (site, change) = rest.rsplit_once(" | ")?;
    let (change, number) = match change.rsplit_once(" #") {
        Some((change, number)) => (change, number.parse().ok()?),
        None => (change, 1),
    };
    Some(Name { instance: instance.to_string(), site: site.to_string(), change: change.to_string(), number })
}
