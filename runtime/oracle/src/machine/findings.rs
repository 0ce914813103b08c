//! Collection of findings during a run: describes the first hit of a check at a site and counts the
//! others.

use crate::Options;
use crate::check::{Allowance, Check, Severity};
use crate::code::Pc;
use crate::program::{Program, chain};
use crate::report::{Allowed, Finding, Object, Other, Place, Produced, Report, Thread, Values};
use runtime_simt::Schedule;
use std::collections::HashMap;

/// The details of a hit, beyond its check and site.
#[derive(Debug)]
pub struct Description {
    /// The sentence.
    pub message: String,
    /// The memory.
    pub object: Option<Object>,
    /// The values.
    pub values: Option<Values>,
    /// The other side: its site, thread and action.
    pub other: Option<(Option<Pc>, Thread, &'static str)>,
    /// The operation that produced the number.
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

    /// Adds the values of the access.
    pub fn with(mut self, values: Values) -> Description {
        self.values = Some(values);
        self
    }

    /// Adds the other side of a conflict.
    pub fn against(mut self, site: Option<Pc>, thread: Thread, action: &'static str) -> Description {
        self.other = Some((site, thread, action));
        self
    }

    /// Adds the operation that produced the number.
    pub fn produced(mut self, produced: Produced) -> Description {
        self.produced = Some(produced);
        self
    }
}

/// The place of a check and site in the lists.
#[derive(Clone, Copy, Debug)]
enum Known {
    Found(usize),
    Allowed(usize),
}

/// The findings of a run so far.
#[derive(Debug)]
pub struct Findings<'p> {
    program: &'p Program,
    known: HashMap<(Check, Pc), Known>,
    /// Findings by check, site and the other side's site, where a check has conflicts with several.
    pairs: HashMap<(Check, Pc, Pc), Known>,
    list: Vec<Finding>,
    allowed: Vec<Allowed>,
    /// By check and allowance, the index in `allowed`.
    allowances: HashMap<(Check, usize), usize>,
    limit: usize,
    truncated: bool,
    schedule: Schedule,
}

impl<'p> Findings<'p> {
    /// Returns an empty collection for a run with these options.
    pub fn new(program: &'p Program, Options { limit, schedule, .. }: &Options) -> Findings<'p> {
        let (limit, schedule) = (*limit, *schedule);
        Findings {
            program,
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

    /// Counts `hits` of a known finding and returns whether it is known. With `other`, a hit is
    /// known only for that other site.
    pub fn count(&mut self, check: Check, site: Pc, other: Option<Pc>, hits: u32) -> bool {
        let of_site = self.known.get(&(check, site));
        let known = match (of_site, other) {
            (Some(Known::Allowed(_)), _) | (_, None) => of_site,
            (_, Some(other)) => self.pairs.get(&(check, site, other)),
        };
        let count = match known {
            Some(Known::Found(i)) => &mut self.list[*i].count,
            Some(Known::Allowed(i)) => &mut self.allowed[*i].count,
            None => return false,
        };
        *count += u64::from(hits);
        true
    }

    /// Adds a finding that is not known yet. The run is truncated when the number of errors reaches
    /// the limit.
    pub fn add(&mut self, check: Check, site: Pc, hits: u32, thread: Thread, description: Description) {
        if self.truncated {
            return;
        }
        let Description { message, object, values, other, produced } = description;
        let partner = other.as_ref().and_then(|(site, ..)| *site);
        let allowance = [Some(site), partner].into_iter().flatten().find_map(|s| Some((s, self.allowance(check, s)?)));
        if let Some((at, allowance)) = allowance {
            let next = self.allowed.len();
            let i = *self.allowances.entry((check, allowance)).or_insert(next);
            if i == next {
                let reason = self.program.declared.allowances[allowance].1.reason.clone();
                self.allowed.push(Allowed { check, place: self.place(at), reason, count: 0 });
            }
            self.allowed[i].count += u64::from(hits);
            // An allowance of the other side covers only conflicts with that side.
            match partner {
                Some(partner) if at != site => _ = self.pairs.insert((check, site, partner), Known::Allowed(i)),
                _ => _ = self.known.insert((check, site), Known::Allowed(i)),
            }
            return;
        }
        let known = self.known.get(&(check, site)).copied();
        let found = match known {
            Some(Known::Found(i)) => i,
            _ => self.list.len(),
        };
        self.known.insert((check, site), Known::Found(found));
        if let Some(partner) = partner {
            self.pairs.insert((check, site, partner), Known::Found(found));
        }
        let other = other.map(|(site, thread, action)| Other { place: site.map(|s| self.place(s)), thread, action });
        if let Some(finding) = self.list.get_mut(found) {
            finding.count += u64::from(hits);
            if let Some(other) = other {
                let told = |told: &Other| told.place == other.place && told.action == other.action;
                if !finding.other.iter().chain(&finding.others).any(told) {
                    finding.others.push(other);
                }
            }
            return;
        }
        self.list.push(Finding {
            check,
            severity: check.severity(self.program.target),
            message,
            place: self.place(site),
            thread,
            object,
            values,
            other,
            others: Vec::new(),
            produced,
            ptx: Vec::new(),
            count: u64::from(hits),
        });
        // Warnings do not end a run: a truncated run might be taken for one without errors.
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
            kernel: self.program.instance.clone(),
            findings: self.list,
            allowed: self.allowed,
            truncated: self.truncated,
            schedule: self.schedule,
            sources: self.program.sources.clone(),
        }
    }

    /// Returns the allowance of a statement that contains the instruction at `site` or a call that
    /// inlined it.
    fn allowance(&self, check: Check, site: Pc) -> Option<usize> {
        let Program { declared, locations, code, .. } = self.program;
        chain(locations, code.locations.get(site as usize).copied()).find_map(|location| {
            let covers = |(source, allowance): &(u32, Allowance)| {
                *source == location.source && allowance.covers(location.span) && allowance.checks.contains(&check)
            };
            declared.allowances.iter().position(covers)
        })
    }

    fn place(&self, site: Pc) -> Place {
        self.program.place_of(site)
    }
}
