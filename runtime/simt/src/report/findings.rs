//! Collection of findings during a run: describes the first hit of a check at a site and counts the
//! others.

use super::{AccessValues, Allowed, CodeLocation, ConflictSide, Finding, Object, Produced, PtxInstruction, Report};
use crate::{Schedule, Thread};
use kernel_dsl_compiler::oracle::{Check, Severity};
use kernel_dsl_compiler::source::KernelSource;
use std::collections::HashMap;
use std::fmt::Debug;

/// The program of a run: descriptions of its instructions for findings, by the number of the
/// instruction.
pub trait Sites: Debug + Sync {
    /// Returns the name of the kernel.
    fn kernel(&self) -> &str;

    /// Returns the severity of a violation of `check`.
    fn severity(&self, check: Check) -> Severity;

    /// Returns the functions that contain the places.
    fn sources(&self) -> &[KernelSource] {
        &[]
    }

    /// Returns the place of an instruction.
    fn place(&self, site: u32) -> CodeLocation;

    /// Returns an instruction as text, if the program is PTX.
    fn instruction(&self, _site: u32) -> Option<PtxInstruction> {
        None
    }

    /// Returns the number and the reason of the statement that allows violations of `check` at an
    /// instruction.
    fn allowance(&self, _check: Check, _site: u32) -> Option<(usize, &str)> {
        None
    }
}

/// The details of a hit, beyond its check and site.
#[derive(Debug)]
pub struct Description {
    /// The sentence.
    pub message: String,
    /// The memory.
    pub object: Option<Object>,
    /// The values.
    pub values: Option<AccessValues>,
    /// The other side of a conflict: its site, thread and action.
    pub other: Option<(Option<u32>, Thread, &'static str)>,
    /// The operation that produced the NaN or infinity.
    pub produced: Option<Produced>,
}

impl Description {
    /// Returns a description with only a message.
    pub fn new(message: impl Into<String>) -> Description {
        Description { message: message.into(), object: None, values: None, other: None, produced: None }
    }

    /// Adds the memory that the finding is about.
    pub fn about(mut self, object: Object) -> Description {
        self.object = Some(object);
        self
    }

    /// Adds the values of the access, if any is known.
    pub fn with(mut self, values: AccessValues) -> Description {
        self.values = (values != AccessValues::default()).then_some(values);
        self
    }

    /// Adds the other side of a conflict.
    pub fn against(mut self, site: Option<u32>, thread: Thread, action: &'static str) -> Description {
        self.other = Some((site, thread, action));
        self
    }

    /// Adds the operation that produced the NaN or infinity.
    pub fn produced(mut self, produced: Produced) -> Description {
        self.produced = Some(produced);
        self
    }
}

/// The entry that counts the hits of a check at a site: an index in `list` or in `allowed`.
#[derive(Clone, Copy, Debug)]
enum ListIndex {
    Found(usize),
    Allowed(usize),
}

/// The findings of a run so far.
#[derive(Debug)]
pub struct Findings<'p> {
    sites: &'p dyn Sites,
    known: HashMap<(Check, u32), ListIndex>,
    /// The findings of conflicts, by check, site and the other side's site.
    pairs: HashMap<(Check, u32, u32), ListIndex>,
    list: Vec<Finding>,
    allowed: Vec<Allowed>,
    /// By check and allowance, the index in `allowed`.
    allowances: HashMap<(Check, usize), usize>,
    limit: usize,
    truncated: bool,
    schedule: Schedule,
}

impl<'p> Findings<'p> {
    /// Returns an empty collection for a run that ends at `limit` errors.
    pub fn new(sites: &'p dyn Sites, limit: usize, schedule: Schedule) -> Findings<'p> {
        Findings {
            sites,
            known: HashMap::new(),
            pairs: HashMap::new(),
            list: Vec::new(),
            allowed: Vec::new(),
            allowances: HashMap::new(),
            limit,
            truncated: false,
            schedule,
        }
    }

    /// Counts `hits` of a known finding and returns whether it is known. With `other`, only a
    /// finding of a conflict with that site counts.
    pub fn count(&mut self, check: Check, site: u32, other: Option<u32>, hits: u32) -> bool {
        let of_site = self.known.get(&(check, site));
        let known = match (of_site, other) {
            (Some(ListIndex::Allowed(_)), _) | (_, None) => of_site,
            (_, Some(other)) => self.pairs.get(&(check, site, other)),
        };
        let count = match known {
            Some(ListIndex::Found(i)) => &mut self.list[*i].count,
            Some(ListIndex::Allowed(i)) => &mut self.allowed[*i].count,
            None => return false,
        };
        *count += u64::from(hits);
        true
    }

    /// Adds a finding that is not known yet. The run is truncated when the number of errors reaches
    /// the limit.
    pub fn add(&mut self, check: Check, site: u32, hits: u32, thread: Thread, description: Description) {
        if self.truncated {
            return;
        }
        let Description { message, object, values, other, produced } = description;
        let partner = other.as_ref().and_then(|(site, ..)| *site);
        let sides = [Some(site), partner].into_iter().flatten();
        let allowance = { sides }.find_map(|s| Some((s, self.sites.allowance(check, s)?)));
        if let Some((at, (allowance, reason))) = allowance {
            let next = self.allowed.len();
            let i = *self.allowances.entry((check, allowance)).or_insert(next);
            if i == next {
                let (place, reason) = (self.sites.place(at), reason.to_string());
                self.allowed.push(Allowed { check, place, reason, count: 0 });
            }
            self.allowed[i].count += u64::from(hits);
            // If the statement of the other side allows the check, only conflicts with that side
            // are allowed.
            match partner {
                Some(partner) if at != site => _ = self.pairs.insert((check, site, partner), ListIndex::Allowed(i)),
                _ => _ = self.known.insert((check, site), ListIndex::Allowed(i)),
            }
            return;
        }
        let known = self.known.get(&(check, site)).copied();
        let found = match known {
            Some(ListIndex::Found(i)) => i,
            _ => self.list.len(),
        };
        self.known.insert((check, site), ListIndex::Found(found));
        if let Some(partner) = partner {
            self.pairs.insert((check, site, partner), ListIndex::Found(found));
        }
        let other = other.map(|(site, thread, action)| ConflictSide {
            place: site.map(|s| self.sites.place(s)),
            thread,
            action,
        });
        if let Some(finding) = self.list.get_mut(found) {
            finding.count += u64::from(hits);
            if let Some(other) = other {
                let is_known = |known: &ConflictSide| known.place == other.place && known.action == other.action;
                if !finding.other.iter().chain(&finding.others).any(is_known) {
                    finding.others.push(other);
                }
            }
            return;
        }
        let (severity, place) = (self.sites.severity(check), self.sites.place(site));
        let (instruction, count) = (self.sites.instruction(site), hits.into());
        let new = Finding::new(check, severity, message, place, thread);
        self.list.push(Finding { instruction, object, values, other, produced, count, ..new });
        // Warnings do not end a run: a truncated run might look like one without errors.
        self.truncated = self.list.iter().filter(|f| f.severity == Severity::Error).count() >= self.limit;
    }

    /// Returns whether the limit is reached.
    pub fn full(&self) -> bool {
        self.truncated
    }

    /// Returns whether there is no finding, allowed or not.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.allowed.is_empty()
    }

    /// Returns all findings.
    pub fn report(self) -> Report {
        Report {
            kernel: self.sites.kernel().to_string(),
            findings: self.list,
            allowed: self.allowed,
            truncated: self.truncated,
            schedule: self.schedule,
            sources: self.sites.sources().to_vec(),
        }
    }
}
