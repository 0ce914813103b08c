//! Where each instruction of a listing may go on.
//!
//! Up to Pascal, lanes that part meet again by a stack: `SSY`, `PBK` and `PCNT` push where, and `SYNC`, `BRK` and `CONT` go
//! there. From Volta on, a register holds it: `BSSY B0, …` and `BSYNC B0`. Where nvdisasm does not say where such a jump
//! leads, the stack is followed here; what a place has on it is what the first way there has, as it is the same on all
//! ways in what ptxas makes.
//!
//! A call goes on behind itself, and what it calls is another entry. An indirect jump (`BRX`, `JMX`) leads where nvdisasm says.

use super::{Instruction, Listing};

/// The graph of a listing.
pub(super) struct Flow {
    /// The kernel's first instruction, and those of the functions that it calls.
    pub entries: Vec<usize>,
    /// For each instruction, those that may follow it. Of what is never reached there are none.
    pub next: Vec<Vec<usize>>,
}

/// What a place is pushed for, and by what it is taken again.
#[derive(Clone, PartialEq, Eq)]
enum Purpose {
    Meet,
    Break,
    Continue,
    Return,
    /// A barrier register.
    Register(String),
}

/// A place that is pushed, on those that were pushed before it.
struct Pushed {
    purpose: Purpose,
    place: usize,
    below: Stack,
}

/// The uppermost of an instruction's pushed places: an index into the list of all.
type Stack = Option<usize>;

/// What an instruction does to where its lanes go on.
enum Step {
    On,
    /// To these places, and on only for lanes that it is not for.
    Away,
    Push(Purpose, usize),
    Pop(Purpose),
    Call(usize),
}

impl Flow {
    pub(super) fn of(listing: &Listing) -> Flow {
        let instructions = &listing.instructions;
        let mut flow = Flow { entries: vec![0], next: vec![Vec::new(); instructions.len()] };
        let mut pushed: Vec<Pushed> = Vec::new();
        let mut seen = vec![false; instructions.len()];
        let mut todo: Vec<(usize, Stack)> = vec![(0, None)];
        while let Some((at, stack)) = todo.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let inst = &instructions[at];
            let behind = (at + 1 < instructions.len()).then_some((at + 1, stack));
            let stays = if conditional(inst) { behind } else { None };
            let mut next: Vec<(usize, Stack)> = Vec::new();
            match step(inst) {
                Step::On => next.extend(behind),
                Step::Away => {
                    next.extend(stays);
                    next.extend(inst.targets.iter().map(|to| (*to, stack)));
                }
                Step::Push(purpose, place) => {
                    // What it is pushed for is an indirect call, which comes back there.
                    let (calls, below) = (purpose == Purpose::Return, stack);
                    pushed.push(Pushed { purpose, place, below });
                    let stack = Some(pushed.len() - 1);
                    next.extend(behind.map(|(behind, _)| (behind, stack)));
                    if calls {
                        next.push((place, below));
                    }
                }
                Step::Pop(purpose) => {
                    next.extend(stays);
                    let mut at = stack;
                    while let Some(i) = at.filter(|i| pushed[*i].purpose != purpose) {
                        at = pushed[i].below;
                    }
                    let below = at.and_then(|i| pushed[i].below);
                    match inst.targets[..] {
                        // What a return names is the function that it leaves.
                        _ if purpose == Purpose::Return => next.extend(at.map(|i| (pushed[i].place, below))),
                        [] => next.extend(at.map(|i| (pushed[i].place, below))),
                        _ => next.extend(inst.targets.iter().map(|to| (*to, below))),
                    }
                }
                Step::Call(to) => {
                    next.extend(behind);
                    if !flow.entries.contains(&to) {
                        flow.entries.push(to);
                        todo.push((to, None));
                    }
                }
            }
            // A label may stand behind the last instruction.
            next.retain(|(to, _)| *to < instructions.len());
            flow.next[at] = next.iter().map(|(to, _)| *to).collect();
            todo.extend(next);
        }
        flow
    }
}

fn step(inst: &Instruction) -> Step {
    let register = || inst.operands.split(',').next().unwrap_or_default().trim().to_string();
    match (inst.opcode(), &inst.targets[..]) {
        ("BRA" | "JMP" | "BRX" | "JMX" | "EXIT" | "KILL", _) => Step::Away,
        // A trap ends the launch, although ptxas puts other code right after it.
        ("BPT", _) if inst.name.split('.').any(|word| word == "TRAP") => Step::Away,
        ("CAL" | "JCAL" | "CALL", [to, ..]) => Step::Call(*to),
        ("SSY", [place, ..]) => Step::Push(Purpose::Meet, *place),
        ("PBK", [place, ..]) => Step::Push(Purpose::Break, *place),
        ("PCNT", [place, ..]) => Step::Push(Purpose::Continue, *place),
        ("PRET", [place, ..]) => Step::Push(Purpose::Return, *place),
        ("BSSY", [place, ..]) => Step::Push(Purpose::Register(register()), *place),
        ("SYNC", _) => Step::Pop(Purpose::Meet),
        ("BRK", _) => Step::Pop(Purpose::Break),
        ("CONT", _) => Step::Pop(Purpose::Continue),
        ("BSYNC", _) => Step::Pop(Purpose::Register(register())),
        ("RET", _) => Step::Pop(Purpose::Return),
        _ => Step::On,
    }
}

/// Whether some lanes may go on behind it: it has a guard, or what stands before its place is a condition of its own, as in
/// ``BRA CC.EQ, `(.L_x_4)`` and ``BRA.DIV UR4, `(.L_x_2)``.
fn conditional(inst: &Instruction) -> bool {
    let guarded = !inst.guard.is_empty() && inst.guard != "@PT";
    let own = match inst.opcode() {
        "BRA" | "JMP" => !inst.operands.starts_with('`'),
        // Those of a stack have nothing but such a condition.
        "SYNC" | "BRK" | "CONT" | "EXIT" => !inst.operands.is_empty(),
        _ => false,
    };
    guarded || own
}
