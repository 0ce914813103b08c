//! Structured control flow as labels and branches.
//!
//! A carried value of a loop has one register. Initial, next and final values are copied to this
//! register, all values of an edge in parallel ([`moves`]). A copy is omitted where one register
//! suffices:
//!
//! * A carried value takes over the register of its initial value. The initial value must have no
//!   other use, and the region that holds the loop must define it: it is then defined anew before
//!   each start of the loop.
//! * The value that a region yields is computed in the target register. No value that has occupied
//!   this register may be used later in the region.
//! * A predicated load writes to the register of the masked-lane value. That value must have no
//!   later use, and the region that holds the load must define it.
//!
//! The second rule tracks which values have occupied a carried register: its occupants.

use super::survey::KernelFacts;
use super::{Emitter, ValueForm, moves, scalar_type};
use crate::ir::{AccessPlace, For, Inst, Label, Op, Region, Unroll, Value, Values};
use crate::ptx::{self, Guard, Modifier, Opcode, Operand, RegisterId};
use smallvec::SmallVec;
use std::collections::HashMap;

type RegisterList = SmallVec<[RegisterId; 4]>;

/// The state of values and control flow at the current point of emission.
pub(super) struct EmissionState {
    pub survey: KernelFacts,
    /// The values that each carried register, or register of a construct's result, has held.
    occupants: HashMap<RegisterId, SmallVec<[Value; 4]>>,
    /// The register in which each value that ends its region should be computed.
    preferred: HashMap<Value, RegisterId>,
    /// The register in which each value that is being defined will be computed.
    assigned: HashMap<Value, RegisterId>,
    /// The region that each value was defined in, by number, and the current one.
    homes: HashMap<Value, u32>,
    home: u32,
    regions: u32,
    /// Enclosing constructs that `Break` and `Continue` can name.
    scopes: Vec<OpenScope>,
    constructs: u32,
    /// Whether control continues after the construct that was emitted last.
    reached: bool,
}

/// A construct that can be left from within.
struct OpenScope {
    label: Label,
    end: ptx::Label,
    results: RegisterList,
    /// The target of `Continue`, and the registers that `Continue` sets; `None` for a block.
    next: Option<(ptx::Label, RegisterList)>,
}

impl EmissionState {
    pub fn new(survey: KernelFacts) -> EmissionState {
        EmissionState {
            survey,
            occupants: HashMap::new(),
            preferred: HashMap::new(),
            assigned: HashMap::new(),
            homes: HashMap::new(),
            home: 0,
            regions: 0,
            scopes: Vec::new(),
            constructs: 0,
            reached: true,
        }
    }

    /// Returns the register that is assigned to `value`, which is being defined.
    pub fn assigned_register(&self, value: Value) -> Option<RegisterId> {
        self.assigned.get(&value).copied()
    }

    /// Records that `register` holds `value` from now on.
    pub fn occupy(&mut self, register: RegisterId, value: Value) {
        if let Some(o) = self.occupants.get_mut(&register) {
            o.push(value);
        }
        self.homes.insert(value, self.home);
    }

    /// Returns whether `insts`, or the regions in them, use any value that has occupied `register`.
    fn lives_in(&self, register: RegisterId, insts: &[Inst]) -> bool {
        let Some(occupants) = self.occupants.get(&register) else { return false };
        insts.iter().any(|inst| {
            let mut used = false;
            inst.op.for_each_operand(|v| used |= occupants.contains(&self.survey.root(v)));
            used || inst.op.regions().iter().any(|r| self.lives_in(register, &r.insts))
        })
    }

    pub(super) fn number(&mut self) -> u32 {
        self.constructs += 1;
        self.constructs
    }
}

impl<'k> Emitter<'k> {
    /// Copies each operand to its register, in parallel.
    fn copies(&mut self, moves: impl IntoIterator<Item = (RegisterId, Operand)>) {
        let builder = &mut self.builder;
        let ordered = moves::sequence(moves, |like| {
            let ty = builder.entry().ty(like);
            builder.register(ty)
        });
        for (to, from) in ordered {
            self.copy(to, from);
        }
    }

    fn pairs(&mut self, to: &[RegisterId], from: &[Value]) -> Vec<(RegisterId, Operand)> {
        if to.len() != from.len() {
            self.malformed("a number of values that differs from that of their destination");
        }
        to.iter().zip(from).map(|(to, from)| (*to, self.operand(*from))).collect()
    }

    pub(super) fn jump(&mut self, guard: Option<Guard>, to: ptx::Label) {
        self.guarded(guard, Opcode::Bra, &[], [Operand::Label(to)]);
    }

    /// Emits a region whose `Yield` passes its values to `yields`. Returns whether control reaches
    /// its end.
    pub(super) fn region(&mut self, region: &'k Region, yields: &[RegisterId]) -> bool {
        let outer = self.flow.home;
        self.flow.regions += 1;
        self.flow.home = self.flow.regions;
        let reached = self.region_here(region, yields);
        self.flow.home = outer;
        reached
    }

    fn region_here(&mut self, region: &'k Region, yields: &[RegisterId]) -> bool {
        let Some((terminator, insts)) = region.insts.split_last() else {
            self.malformed("an empty region");
            return false;
        };
        for p in &region.parameters {
            self.flow.homes.insert(*p, self.flow.home);
        }
        if let Op::Yield(values) = &terminator.op {
            for (value, register) in values.iter().zip(yields) {
                if self.flow.survey.root(*value) == *value {
                    self.flow.preferred.insert(*value, *register);
                }
            }
        }
        let mut next = 0;
        while let Some(inst) = insts.get(next) {
            if let Some(taken) = self.double_sum(&region.insts[next..]) {
                next += taken;
                continue;
            }
            next += 1;
            self.assign(inst, &region.insts[next..]);
            self.instruction(inst);
            if !std::mem::replace(&mut self.flow.reached, true) {
                return false;
            }
        }
        self.location = Some(terminator.location);
        match &terminator.op {
            Op::Yield(values) => {
                let pairs = self.pairs(yields, values);
                self.copies(pairs);
                true
            }
            _ => {
                if let Some((to, values)) = self.target(&terminator.op) {
                    let pairs = self.pairs(&to.1, values);
                    self.copies(pairs);
                    self.jump(None, to.0);
                } else if terminator.op == Op::Return {
                    self.op(Opcode::Ret, [], []);
                }
                false
            }
        }
    }

    /// Decides whether the results of `inst` get their preferred registers. `rest` is the code
    /// after it in its region.
    pub(super) fn assign(&mut self, inst: &Inst, rest: &[Inst]) {
        // A result that is written before all operands are read, or not in all lanes, needs its own
        // register.
        let early = match &inst.op {
            Op::Load { guard, .. } => guard.is_some() || inst.results.len() > 1,
            Op::Constant(_) | Op::Parameter(_) => true,
            _ => false,
        };
        for result in &inst.results {
            if let Some(register) = self.flow.preferred.remove(result)
                && !early
                && self.builder.entry().ty(register) == super::register_type(self.ty(*result))
                && !self.flow.lives_in(register, rest)
            {
                self.flow.assigned.insert(*result, register);
            }
        }
        if let Op::Load { guard: Some(guard), place, .. } = &inst.op {
            let base =
                if let AccessPlace::Address { base, .. } = place { Some(self.flow.survey.root(*base)) } else { None };
            for (result, kept) in inst.results.iter().zip(&guard.otherwise) {
                if Some(self.flow.survey.root(*kept)) != base
                    && let Some(register) = self.reusable_register(inst.results[0], *result, *kept, &guard.otherwise)
                {
                    self.flow.assigned.insert(*result, register);
                }
            }
        }
    }

    /// Returns the register of `kept`, the masked-lane value of `result`, if `result` may take it
    /// over. `all` are the masked-lane values of the load, and `first` is its first result.
    fn reusable_register(&mut self, first: Value, result: Value, kept: Value, all: &[Value]) -> Option<RegisterId> {
        let root = self.flow.survey.root(kept);
        let Some(ValueForm::Register(register)) = self.bindings[root.0 as usize] else { return None };
        let once = all.iter().filter(|v| self.flow.survey.root(**v) == root).count() == 1;
        let here = self.flow.homes.get(&root) == Some(&self.flow.home);
        let fits = self.builder.entry().ty(register) == super::register_type(self.ty(result))
            && self.ty(result) == self.ty(kept);
        (once && here && fits && self.flow.survey.is_last_use(kept, first)).then_some(register)
    }

    /// Returns the label that a `Break` or `Continue` jumps to, the registers that it sets, and
    /// their values.
    fn target<'o>(&mut self, op: &'o Op) -> Option<((ptx::Label, RegisterList), &'o [Value])> {
        let (label, values, leaves) = match op {
            Op::Break(label, values) => (label, values, true),
            Op::Continue(label, values) => (label, values, false),
            _ => return None,
        };
        let scope = self.flow.scopes.iter().rev().find(|s| s.label == *label);
        let to = scope.and_then(|s| if leaves { Some((s.end, s.results.clone())) } else { s.next.clone() });
        if to.is_none() {
            self.malformed("a jump out of a construct that does not enclose it");
        }
        Some((to?, values))
    }

    /// Places `label` if something jumps to it.
    fn place(&mut self, label: ptx::Label) {
        if self.builder.is_used(label) {
            self.builder.place(label);
        }
    }

    /// Returns the registers for the results of a construct: preferred registers where possible.
    fn results(&mut self, inst: &Inst) -> RegisterList {
        inst.results.iter().map(|r| self.result(*r)).collect()
    }

    fn result(&mut self, value: Value) -> RegisterId {
        let register = match self.flow.assigned_register(value) {
            Some(register) => register,
            None => self.register(super::register_type(self.ty(value))),
        };
        self.flow.occupants.entry(register).or_default();
        register
    }

    fn bind_all(&mut self, values: &[Value], registers: &[RegisterId]) {
        for (value, register) in values.iter().zip(registers) {
            self.bind(*value, *register);
        }
    }

    pub(super) fn branch(&mut self, inst: &'k Inst, condition: Value, then: &'k Region, otherwise: &'k Region) {
        let results = self.results(inst);
        match self.operand(condition) {
            Operand::Register(register) => self.emit_branches(register, then, otherwise, &results),
            _ => {
                let taken = if self.constant(condition) == Some(0) { otherwise } else { then };
                self.flow.reached = self.region(taken, &results);
            }
        }
        self.bind_all(&inst.results, &results);
    }

    fn emit_branches(
        &mut self,
        condition: RegisterId,
        then: &'k Region,
        otherwise: &'k Region,
        results: &[RegisterId],
    ) {
        let holds = Guard { register: condition, negated: false };
        let fails = Guard { register: condition, negated: true };
        // If one side only jumps, it becomes a guarded jump before the other side.
        for (side, other, guard) in [(then, otherwise, holds), (otherwise, then, fails)] {
            if self.emit_as_jump(side, guard) {
                self.flow.reached = self.region(other, results);
                return;
            }
        }
        let location = self.location;
        let number = self.flow.number();
        let end = self.builder.label(format!("$endif_{number}"));
        match (self.does_nothing(then, results), self.does_nothing(otherwise, results)) {
            (true, true) => {}
            (false, true) => {
                self.jump(Some(fails), end);
                self.region(then, results);
            }
            (true, false) => {
                self.jump(Some(holds), end);
                self.region(otherwise, results);
            }
            (false, false) => {
                let other = self.builder.label(format!("$else_{number}"));
                self.jump(Some(fails), other);
                if self.region(then, results) {
                    self.location = location;
                    self.jump(None, end);
                }
                self.builder.place(other);
                let reached = self.region(otherwise, results);
                self.flow.reached = reached || self.builder.is_used(end);
            }
        }
        self.place(end);
    }

    /// Returns the terminator of a region that otherwise contains only constants. Binds these
    /// constants.
    fn lone_terminator(&mut self, region: &'k Region) -> Option<&'k Inst> {
        let (terminator, insts) = region.insts.split_last()?;
        if !insts.iter().all(|i| matches!(i.op, Op::Constant(_))) {
            return None;
        }
        let location = self.location;
        insts.iter().for_each(|i| self.instruction(i));
        self.location = location;
        Some(terminator)
    }

    /// Emits a region as one guarded jump or return; returns `false` if the region does more.
    fn emit_as_jump(&mut self, region: &'k Region, guard: Guard) -> bool {
        let Some(terminator) = self.lone_terminator(region) else { return false };
        if terminator.op == Op::Return {
            self.guarded(Some(guard), Opcode::Ret, &[], []);
            return true;
        }
        let Some((to, values)) = self.target(&terminator.op) else { return false };
        let stays = self.pairs(&to.1, values).into_iter().all(|(to, from)| from == Operand::Register(to));
        if stays {
            self.jump(Some(guard), to.0);
        }
        stays
    }

    fn does_nothing(&mut self, region: &'k Region, results: &[RegisterId]) -> bool {
        match self.lone_terminator(region).map(|t| &t.op) {
            Some(Op::Yield(v)) => self.pairs(results, v).into_iter().all(|(to, from)| from == Operand::Register(to)),
            _ => false,
        }
    }

    /// Returns the registers for a loop's parameters. `preferred` has the preferred register of
    /// each: that of the corresponding result.
    fn carried(&mut self, parameters: &[Value], inits: &[Value], preferred: &[Option<RegisterId>]) -> RegisterList {
        let mut taken: RegisterList = preferred.iter().flatten().copied().collect();
        let mut registers = RegisterList::new();
        for ((p, init), preferred_register) in parameters.iter().zip(inits).zip(preferred) {
            let register = match (preferred_register, self.operand(*init)) {
                (Some(register), _) => *register,
                (None, Operand::Register(r)) if self.can_reuse_register(*init, *p) && !taken.contains(&r) => r,
                _ => self.register(super::register_type(self.ty(*p))),
            };
            taken.push(register);
            registers.push(register);
            self.flow.occupants.entry(register).or_default();
        }
        registers
    }

    /// Returns whether a loop in the current region can use the register of `init` for its
    /// parameter: no other instruction reads `init`.
    fn can_reuse_register(&self, init: Value, parameter: Value) -> bool {
        let survey = &self.flow.survey;
        survey.uses(init) == 1
            && survey.root(init) == init
            && self.flow.homes.get(&init) == Some(&self.flow.home)
            && super::register_type(self.ty(init)) == super::register_type(self.ty(parameter))
    }

    pub(super) fn counted(&mut self, inst: &'k Inst, l: &'k For) {
        let (Some((&index, carried)), Some(s)) = (l.body.parameters.split_first(), self.scalar(l.start)) else {
            return self.malformed("a counted loop without an index");
        };
        if carried.len() != l.inits.len() || inst.results.len() != l.inits.len() || !s.is_integer() {
            return self.malformed("a counted loop whose carried values do not match");
        }
        // The body writes the register, so the body must not use any value that has occupied it.
        let preferred: SmallVec<[Option<RegisterId>; 4]> = inst
            .results
            .iter()
            .map(|r| {
                let register = self.flow.assigned_register(*r)?;
                let occupants = self.flow.occupants.get(&register)?;
                let bound = [l.end, l.step].into_iter().any(|v| occupants.contains(&self.flow.survey.root(v)));
                (!bound && !self.flow.lives_in(register, &l.body.insts)).then_some(register)
            })
            .collect();
        let inits: Values = [l.start].into_iter().chain(l.inits.iter().copied()).collect();
        let preferred: SmallVec<[Option<RegisterId>; 4]> = [None].into_iter().chain(preferred).collect();
        let all = self.carried(&l.body.parameters, &inits, &preferred);
        let (index_register, registers) = (all[0], RegisterList::from_slice(&all[1..]));

        let number = self.flow.number();
        let [head, next, end] = ["for", "next", "end"].map(|n| self.builder.label(format!("${n}_{number}")));
        let ty = scalar_type(s);
        let bounds = (self.constant(l.start), self.constant(l.end));
        let start = self.operand(l.start);
        let entry = self.pairs(&all, &inits);
        self.copies(entry);
        let bound = self.operand(l.end);
        let always = match bounds {
            (Some(a), Some(b)) => {
                let key = |bits| match super::constant(self.ty(l.start), bits) {
                    Operand::Integer(n) if s.is_signed() => i128::from(n),
                    _ => i128::from(bits),
                };
                Some(key(a) < key(b))
            }
            _ => None,
        };
        if always != Some(true) {
            let none = self.register(ptx::Type::Pred);
            let first = if matches!(start, Operand::Register(_)) { index_register.into() } else { start };
            self.op(Opcode::Setp, [Modifier::Ge, ty.modifier()], [none.into(), first, bound.clone()]);
            self.jump(Some(Guard { register: none, negated: false }), end);
        }
        self.builder.place(head);
        if l.unroll == Unroll::Never {
            self.builder.pragma("nounroll");
        }
        self.bind(index, index_register);
        self.bind_all(carried, &registers);
        let location = self.location;
        let next_edge = Some((next, registers.clone()));
        self.flow.scopes.push(OpenScope { label: l.label, end, results: registers.clone(), next: next_edge });
        let reached = self.region(&l.body, &registers);
        self.flow.scopes.pop();
        self.location = location;
        self.place(next);
        let counts = reached || self.builder.is_used(next);
        if counts {
            let step = self.operand(l.step);
            if super::arithmetic::narrow(s) {
                let raw = self.register(ty);
                self.op(Opcode::Add, [ty.modifier()], [raw.into(), index_register.into(), step]);
                self.extend(index_register, raw.into(), s);
            } else {
                self.op(Opcode::Add, [ty.modifier()], [index_register.into(), index_register.into(), step]);
            }
            let more = self.register(ptx::Type::Pred);
            self.op(Opcode::Setp, [Modifier::Lt, ty.modifier()], [more.into(), index_register.into(), bound]);
            self.jump(Some(Guard { register: more, negated: false }), head);
        }
        // A loop without a test at its end is left only by `Break` or by the test before it.
        self.flow.reached = counts || self.builder.is_used(end);
        self.place(end);
        self.bind_all(&inst.results, &registers);
    }

    pub(super) fn endless(&mut self, inst: &'k Inst, label: Label, inits: &[Value], body: &'k Region) {
        if body.parameters.len() != inits.len() {
            return self.malformed("a loop whose carried values do not match");
        }
        let results = self.results(inst);
        let registers = self.carried(&body.parameters, inits, &vec![None; inits.len()]);
        let number = self.flow.number();
        let [head, end] = ["loop", "end"].map(|n| self.builder.label(format!("${n}_{number}")));
        let entry = self.pairs(&registers, inits);
        self.copies(entry);
        self.builder.place(head);
        self.bind_all(&body.parameters, &registers);
        let location = self.location;
        let next = Some((head, registers.clone()));
        self.flow.scopes.push(OpenScope { label, end, results: results.clone(), next });
        let reached = self.region(body, &registers);
        self.flow.scopes.pop();
        self.location = location;
        if reached {
            self.jump(None, head);
        }
        self.flow.reached = self.builder.is_used(end);
        self.place(end);
        self.bind_all(&inst.results, &results);
    }

    pub(super) fn block(&mut self, inst: &'k Inst, label: Label, body: &'k Region) {
        let results = self.results(inst);
        let number = self.flow.number();
        let end = self.builder.label(format!("$end_{number}"));
        self.flow.scopes.push(OpenScope { label, end, results: results.clone(), next: None });
        let reached = self.region(body, &results);
        self.flow.scopes.pop();
        self.flow.reached = reached || self.builder.is_used(end);
        self.place(end);
        self.bind_all(&inst.results, &results);
    }
}
