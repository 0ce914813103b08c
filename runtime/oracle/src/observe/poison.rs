//! Propagation of undefined values: results of shuffles that read inactive lanes, and of votes with
//! missing lanes.
//!
//! A run that executes such an operation records it and continues with zeros. If there was one, the
//! launch runs again from a copy of its initial contents. Each undefined value of a lane then
//! carries its *source*. Arithmetic, moves, selections, exchanges between lanes and memory
//! propagate sources. The behavior of the kernel is undefined, and reported, if such a value:
//!
//! - is stored to a buffer;
//! - is an operand of an atomic operation;
//! - is part of an address;
//! - decides a branch.
//!
//! A selection by a defined condition propagates only the source of the selected value.

use crate::check::Check;
use crate::code::frame::{FULL, LANES, Word, lanes_of};
use crate::code::{Access, Inst, Pc, RowIndex};
use crate::machine::describe::Target;
use crate::machine::findings::{Description, Findings};
use crate::machine::observer::Observer;
use crate::machine::{Machine, Setting, Warp};
use crate::report::{Object, Thread};
use crate::{Checks, Options, Program, Report};
use std::collections::HashMap;

/// A source, from 1; 0 is none.
type Id = u32;

/// The maximum number of distinct sources; later ones are merged with the last.
const MAX_SOURCES: usize = 1 << 16;

/// An operation whose result is undefined, in one lane.
#[derive(Clone, Copy, Debug)]
struct Source {
    site: Pc,
    thread: Thread,
}

/// The sources of undefined values in a running launch.
pub struct Poison<'p> {
    findings: Findings<'p>,
    sources: Vec<Source>,
    /// The source of each value, by warp, row and lane.
    frames: Vec<Vec<[Id; LANES]>>,
    /// The source of each value in memory, by buffer and offset of its first byte; `None` is the
    /// block's shared memory.
    memory: HashMap<(Option<usize>, u64), Id>,
}

impl Program {
    /// Returns whether a run with these options tracks undefined values.
    pub(crate) fn wants_poison(&self, options: &Options) -> bool {
        let warps = |inst: &Inst| {
            matches!(inst, Inst::Shuffle { .. } | Inst::Vote { .. } | Inst::Match { .. } | Inst::Reduce { .. })
        };
        self.lowered
            && options.checks == Checks::All
            && !options.without.contains(Check::UndefinedValue)
            && self.code.insts.iter().any(warps)
    }
}

/// An instruction of a warp.
#[derive(Clone, Copy)]
struct Where {
    site: Pc,
    warp: u32,
    mask: u32,
}

impl<'p> Poison<'p> {
    /// Returns the state for a launch that is about to run.
    pub fn new(program: &'p Program, setting: &Setting, options: &Options) -> Poison<'p> {
        Poison {
            findings: Findings::new(program, options),
            sources: Vec::new(),
            frames: vec![vec![[0; LANES]; program.code.rows as usize]; setting.grid.warp_count() as usize],
            memory: HashMap::new(),
        }
    }

    /// Drops the sources in shared memory when a block begins.
    fn forget_shared(&mut self) {
        self.memory.retain(|(buffer, _), _| buffer.is_some());
    }

    /// Returns the findings.
    pub fn found(self) -> Report {
        self.findings.report()
    }

    fn row(&self, warp: u32, row: RowIndex) -> [Id; LANES] {
        self.frames[warp as usize][row as usize]
    }

    /// Sets the sources of the lanes of `mask` of a row to the results of `of`.
    fn set(&mut self, at: Where, row: RowIndex, of: impl Fn(usize) -> Id) {
        let ids = &mut self.frames[at.warp as usize][row as usize];
        lanes_of(at.mask).for_each(|lane| ids[lane] = of(lane));
    }

    /// Returns the first source among `rows`, by lane.
    fn of_rows(&self, warp: u32, rows: &[RowIndex]) -> [Id; LANES] {
        let rows: Vec<_> = rows.iter().map(|row| &self.frames[warp as usize][*row as usize]).collect();
        std::array::from_fn(|lane| rows.iter().map(|ids| ids[lane]).find(|id| *id != 0).unwrap_or(0))
    }

    fn source(&mut self, site: Pc, thread: Thread) -> Id {
        if self.sources.len() < MAX_SOURCES {
            self.sources.push(Source { site, thread });
        }
        self.sources.len() as Id
    }

    /// Reports the lanes with a source at a use that makes the kernel's behavior depend on an
    /// undefined value.
    fn tell(
        &mut self,
        machine: &Machine<'_, '_>,
        at: Where,
        ids: &[Id; LANES],
        what: &str,
        object: impl FnOnce(usize) -> Option<Object>,
    ) {
        let lanes = lanes_of(at.mask).filter(|lane| ids[*lane] != 0).fold(0, |m, lane| m | 1u32 << lane);
        let check = Check::UndefinedValue;
        if lanes == 0
            || machine.options.without.contains(check)
            || self.findings.count(check, at.site, None, lanes.count_ones())
        {
            return;
        }
        let lane = lanes.trailing_zeros() as usize;
        let Some(source) = self.sources.get(ids[lane] as usize - 1).copied() else { return };
        let object = object(lane);
        let place =
            object.as_ref().map_or(String::new(), |o| format!(": element {} of `{}`", o.element.unwrap_or(0), o.name));
        let mut description = Description::new(format!("an undefined value {what}{place}")).against(
            Some(source.site),
            source.thread,
            "gets it here, where some of the required lanes are missing",
        );
        if let Some(object) = object {
            description = description.about(object);
        }
        self.findings.add(check, at.site, lanes.count_ones(), machine.thread(at.warp, lane), description);
    }
}

impl Observer for Poison<'_> {
    fn block(&mut self) {
        self.forget_shared();
    }

    fn before(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32) {
        machine.poison_before(self, site, warp, mask);
    }

    fn after(&mut self, machine: &mut Machine<'_, '_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        machine.poison_after(self, site, warp, mask, inst);
    }
}

impl Machine<'_, '_> {
    /// Reports decisions of `inst` by undefined values, before it runs.
    fn poison_before(&mut self, p: &mut Poison<'_>, site: Pc, warp: &Warp, mask: u32) {
        let at = Where { site, warp: warp.index, mask };
        let rows = match self.program.code.insts[site as usize] {
            Inst::If { condition, .. } => vec![condition],
            Inst::EnterFor { step, .. } => vec![step],
            Inst::Test { index, limit, .. } => vec![index, limit],
            Inst::Step { index, step, limit, .. } | Inst::StepUniform { index, step, limit, .. } => {
                vec![index, step, limit]
            }
            _ => return,
        };
        let ids = p.of_rows(at.warp, &rows);
        p.tell(self, at, &ids, "decides a branch", |_| None);
        // The lanes have decided by this value: a later decision by it is the same mistake.
        rows.iter().for_each(|row| p.set(at, *row, |_| 0));
    }

    /// Propagates sources after `inst` has run on the lanes of `mask`.
    fn poison_after(&mut self, p: &mut Poison<'_>, site: Pc, warp: &Warp, mask: u32, inst: &Inst) {
        let program = self.program;
        let code = &program.code;
        let at = Where { site, warp: warp.index, mask };
        match *inst {
            Inst::Select { to, condition, yes, no, .. } => {
                let holds = self.simd.truth(&warp.rows, condition);
                let [by, yes, no] = [condition, yes, no].map(|row| p.row(at.warp, row));
                p.set(at, to, |l| match by[l] {
                    0 if holds >> l & 1 == 1 => yes[l],
                    0 => no[l],
                    id => id,
                });
            }
            Inst::Move { to, from } => {
                let ids = p.row(at.warp, from.row);
                p.set(at, to.row, |l| ids[l]);
            }
            Inst::ReadLocal { local, to } => {
                let ids = p.row(at.warp, code.locals[local as usize].first.row);
                p.set(at, to.row, |l| ids[l]);
            }
            Inst::WriteLocal { local, from } => {
                let ids = p.row(at.warp, from.row);
                p.set(at, code.locals[local as usize].first.row, |l| ids[l]);
            }
            Inst::ReadElement { local, index, to } => {
                let (local, indices) = (&code.locals[local as usize], u32::lanes(&warp.rows, index as usize));
                let by = p.row(at.warp, index);
                p.tell(self, at, &by, "is the index of a register array", |_| None);
                for l in lanes_of(mask).filter(|l| indices[*l] < local.len) {
                    let id = p.row(at.warp, local.at(indices[l]).row)[l];
                    p.set(Where { mask: 1 << l, ..at }, to.row, |_| id);
                }
            }
            Inst::WriteElement { local, index, from } => {
                let (local, indices) = (&code.locals[local as usize], u32::lanes(&warp.rows, index as usize));
                let (by, ids) = (p.row(at.warp, index), p.row(at.warp, from.row));
                p.tell(self, at, &by, "is the index of a register array", |_| None);
                for l in lanes_of(mask).filter(|l| indices[*l] < local.len) {
                    p.set(Where { mask: 1 << l, ..at }, local.at(indices[l]).row, |l| ids[l]);
                }
            }
            Inst::Shuffle { mode, width, to, from, selector } => {
                let sources =
                    crate::machine::warp::sources(mode, width.into(), u32::lanes(&warp.rows, selector as usize));
                let [ids, by] = [from.row, selector].map(|row| p.row(at.warp, row));
                let mut result = [0; LANES];
                for l in lanes_of(mask) {
                    result[l] = match (by[l], mask >> sources[l] & 1) {
                        (0, 1) => ids[sources[l]],
                        (0, _) => p.source(site, self.thread(at.warp, l)),
                        (id, _) => id,
                    };
                }
                p.set(at, to.row, |l| result[l]);
            }
            Inst::Vote { to, value, .. } => self.together_of(p, at, warp.live & !mask != 0, to, value),
            Inst::Match { to, from } => self.together_of(p, at, mask != FULL, to, from.row),
            Inst::Reduce { to, from, .. } => self.together_of(p, at, mask != FULL, to, from),
            Inst::Load(i) => {
                let access = &code.accesses[i as usize];
                self.addressed(p, at, access);
                for (i, to) in access.values.iter().enumerate() {
                    let ids = access.otherwise.get(i).map_or([0; LANES], |other| p.row(at.warp, other.row));
                    p.set(at, to.row, |l| ids[l]);
                }
                self.each_part(site, warp, mask, access, |_, part| {
                    for (i, to) in access.values.iter().enumerate() {
                        for l in lanes_of(part.lanes) {
                            let id = p.memory.get(&part.scalar(access, i, l)).copied().unwrap_or(0);
                            p.set(Where { mask: 1 << l, ..at }, to.row, |_| id);
                        }
                    }
                });
            }
            Inst::Store(i) => {
                let access = &code.accesses[i as usize];
                self.addressed(p, at, access);
                self.each_part(site, warp, mask, access, |machine, part| {
                    for (i, from) in access.values.iter().enumerate() {
                        let ids = p.row(at.warp, from.row);
                        for l in lanes_of(part.lanes) {
                            match ids[l] {
                                0 => _ = p.memory.remove(&part.scalar(access, i, l)),
                                id => _ = p.memory.insert(part.scalar(access, i, l), id),
                            }
                        }
                        if let Target::Buffer(_) = part.target {
                            let there = Where { mask: part.lanes, ..at };
                            let object = |l: usize| Some(machine.object(part.target, part.offset[l], access));
                            p.tell(machine, there, &ids, "is stored", object);
                        }
                    }
                });
            }
            Inst::Atomic(i) => {
                let atomic = &code.atomics[i as usize];
                let access = &atomic.access;
                self.addressed(p, at, access);
                let rows: Vec<_> = access.values.iter().chain(&atomic.expected).map(|value| value.row).collect();
                let ids = p.of_rows(at.warp, &rows);
                self.each_part(site, warp, mask, access, |machine, part| {
                    let there = Where { mask: part.lanes, ..at };
                    let object = |l: usize| Some(machine.object(part.target, part.offset[l], access));
                    p.tell(machine, there, &ids, "is an operand of an atomic operation", object);
                });
                atomic.to.iter().for_each(|to| p.set(at, to.row, |_| 0));
            }
            Inst::CopyAsync(i) => {
                let copy = &code.copies[i as usize];
                [&copy.to, &copy.from].into_iter().for_each(|access| self.addressed(p, at, access));
            }
            // Arithmetic: each lane depends on its operands.
            _ => {
                let mut rows = Vec::new();
                code.each_read(inst, |row| rows.push(row));
                let ids = p.of_rows(at.warp, &rows);
                code.each_computed(inst, |row| p.set(at, row, |l| ids[l]));
            }
        }
    }

    /// Propagates sources to the result of an operation across lanes on `from`; undefined if lanes
    /// are missing.
    fn together_of(&self, p: &mut Poison<'_>, at: Where, missing: bool, to: RowIndex, from: RowIndex) {
        let ids = p.row(at.warp, from);
        let any = lanes_of(at.mask).map(|l| ids[l]).find(|id| *id != 0).unwrap_or(0);
        let id = match (any, missing) {
            (0, true) => p.source(at.site, self.thread(at.warp, at.mask.trailing_zeros() as usize % LANES)),
            (id, _) => id,
        };
        p.set(at, to, |_| id);
    }

    /// Reports accesses whose address or condition is undefined.
    fn addressed(&self, p: &mut Poison<'_>, at: Where, access: &Access) {
        if let Some(guard) = access.guard {
            let ids = p.row(at.warp, guard);
            p.tell(self, at, &ids, "decides whether memory is accessed", |_| None);
        }
        let mut rows = Vec::new();
        access.each_index(|row| rows.push(row));
        let ids = p.of_rows(at.warp, &rows);
        p.tell(self, at, &ids, "is part of an address", |_| None);
    }
}
