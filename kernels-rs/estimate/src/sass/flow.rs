//! The control flow graph of a listing.
//!
//! Up to Pascal, diverged lanes reconverge by a stack: `SSY`, `PBK` and `PCNT` push a target, and
//! `SYNC`, `BRK` and `CONT` jump to it. From Volta on, a register holds the target: `BSSY B0, …`
//! and `BSYNC B0`. If nvdisasm does not name the target of such a jump, this module follows the
//! stack. An instruction gets the stack of the first path that reaches it: in code from ptxas, all
//! paths have the same one.
//!
//! Control returns from a call to the next instruction; the callee is another entry. An indirect
//! jump (`BRX`, `JMX`) leads to the targets that nvdisasm names.

use super::{Listing, SassInstruction};

/// Control flow graph of a listing.
pub(super) struct ControlFlowGraph {
    /// First instructions of the kernel and of the functions that it calls.
    pub entries: Vec<usize>,
    /// Successors of each instruction; none for unreachable instructions.
    pub next: Vec<Vec<usize>>,
}

/// Purpose of a pushed target, which determines the instruction that pops it.
#[derive(Clone, PartialEq, Eq)]
enum TargetPurpose {
    Meet,
    Break,
    Continue,
    Return,
    /// A barrier register.
    Register(String),
}

/// Pushed target, linked to the one below it on the stack.
struct Pushed {
    purpose: TargetPurpose,
    place: usize,
    below: TargetStack,
}

/// Top of the stack: an index into the list of all pushed targets.
type TargetStack = Option<usize>;

/// Effect of an instruction on control flow.
enum FlowEffect {
    On,
    /// Jumps to its targets; continues only for lanes that its guard excludes.
    Away,
    Push(TargetPurpose, usize),
    Pop(TargetPurpose),
    Call(usize),
}

impl Listing {
    /// Returns the successors of each instruction; none for unreachable instructions. Calls
    /// continue at the next instruction.
    pub fn successors(&self) -> Vec<Vec<usize>> {
        ControlFlowGraph::of(self).next
    }
}

impl ControlFlowGraph {
    pub(super) fn of(listing: &Listing) -> ControlFlowGraph {
        let instructions = &listing.instructions;
        let mut flow = ControlFlowGraph { entries: vec![0], next: vec![Vec::new(); instructions.len()] };
        let mut pushed: Vec<Pushed> = Vec::new();
        let mut seen = vec![false; instructions.len()];
        let mut todo: Vec<(usize, TargetStack)> = vec![(0, None)];
        while let Some((at, stack)) = todo.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let inst = &instructions[at];
            let following = (at + 1 < instructions.len()).then_some((at + 1, stack));
            let stays = if conditional(inst) { following } else { None };
            let mut next: Vec<(usize, TargetStack)> = Vec::new();
            match step(inst) {
                FlowEffect::On => next.extend(following),
                FlowEffect::Away => {
                    next.extend(stays);
                    next.extend(inst.targets.iter().map(|to| (*to, stack)));
                }
                FlowEffect::Push(purpose, place) => {
                    // `PRET` precedes an indirect call, which returns to the pushed target.
                    let (calls, below) = (purpose == TargetPurpose::Return, stack);
                    pushed.push(Pushed { purpose, place, below });
                    let stack = Some(pushed.len() - 1);
                    next.extend(following.map(|(following, _)| (following, stack)));
                    if calls {
                        next.push((place, below));
                    }
                }
                FlowEffect::Pop(purpose) => {
                    next.extend(stays);
                    let mut at = stack;
                    while let Some(i) = at.filter(|i| pushed[*i].purpose != purpose) {
                        at = pushed[i].below;
                    }
                    let below = at.and_then(|i| pushed[i].below);
                    match inst.targets[..] {
                        // The operand of a return names the function that it leaves, not the
                        // target.
                        _ if purpose == TargetPurpose::Return => next.extend(at.map(|i| (pushed[i].place, below))),
                        [] => next.extend(at.map(|i| (pushed[i].place, below))),
                        _ => next.extend(inst.targets.iter().map(|to| (*to, below))),
                    }
                }
                FlowEffect::Call(to) => {
                    next.extend(following);
                    if !flow.entries.contains(&to) {
                        flow.entries.push(to);
                        todo.push((to, None));
                    }
                }
            }
            // A label may stand after the last instruction.
            next.retain(|(to, _)| *to < instructions.len());
            flow.next[at] = next.iter().map(|(to, _)| *to).collect();
            todo.extend(next);
        }
        flow
    }
}

fn step(inst: &SassInstruction) -> FlowEffect {
    let register = || inst.operands.split(',').next().unwrap_or_default().trim().to_string();
    match (inst.opcode(), &inst.targets[..]) {
        ("BRA" | "JMP" | "BRX" | "JMX" | "EXIT" | "KILL", _) => FlowEffect::Away,
        // A trap ends the launch, although ptxas puts other code right after it.
        ("BPT", _) if inst.name.split('.').any(|word| word == "TRAP") => FlowEffect::Away,
        ("CAL" | "JCAL" | "CALL", [to, ..]) => FlowEffect::Call(*to),
        ("SSY", [place, ..]) => FlowEffect::Push(TargetPurpose::Meet, *place),
        ("PBK", [place, ..]) => FlowEffect::Push(TargetPurpose::Break, *place),
        ("PCNT", [place, ..]) => FlowEffect::Push(TargetPurpose::Continue, *place),
        ("PRET", [place, ..]) => FlowEffect::Push(TargetPurpose::Return, *place),
        ("BSSY", [place, ..]) => FlowEffect::Push(TargetPurpose::Register(register()), *place),
        ("SYNC", _) => FlowEffect::Pop(TargetPurpose::Meet),
        ("BRK", _) => FlowEffect::Pop(TargetPurpose::Break),
        ("CONT", _) => FlowEffect::Pop(TargetPurpose::Continue),
        ("BSYNC", _) => FlowEffect::Pop(TargetPurpose::Register(register())),
        ("RET", _) => FlowEffect::Pop(TargetPurpose::Return),
        _ => FlowEffect::On,
    }
}

/// Returns whether some lanes may continue at the next instruction: the instruction has a guard, or
/// a condition before its target, as in ``BRA CC.EQ, `(.L_x_4)`` and ``BRA.DIV UR4, `(.L_x_2)``.
fn conditional(inst: &SassInstruction) -> bool {
    let guarded = !inst.guard.is_empty() && inst.guard != "@PT";
    let own = match inst.opcode() {
        "BRA" | "JMP" => !inst.operands.starts_with('`'),
        // The operand of a stack instruction can only be such a condition.
        "SYNC" | "BRK" | "CONT" | "EXIT" => !inst.operands.is_empty(),
        _ => false,
    };
    guarded || own
}
