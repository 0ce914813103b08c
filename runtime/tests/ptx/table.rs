//! Every row of the instruction table that sm_61 has is decoded, or refused by the name that it is known to be refused by.

use super::kit::decode;
use kernel_dsl::compiler::ptx::form::{Kind, Limit, OperandForm, OperandType, Presence, Row, Selection};
use kernel_dsl::compiler::ptx::table::ROWS;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};

/// What is not run, each refused by name.
const REFUSED: [Opcode; 4] = [Opcode::Alloca, Opcode::Brkpt, Opcode::Stackrestore, Opcode::Stacksave];

/// A choice for each slot, then the same with each slot changed by itself.
fn choices(row: &Row) -> Vec<Vec<Option<Modifier>>> {
    let first: Vec<_> = row.slots().iter().map(|s| s.alternatives.iter().next()).collect();
    let mut all = vec![first.clone()];
    for (i, slot) in row.slots().iter().enumerate() {
        for m in slot.alternatives.iter().map(Some).skip(1).chain(slot.optional.then_some(None)) {
            let mut choice = first.clone();
            choice[i] = m;
            all.push(choice);
        }
    }
    all
}

/// A register of that type, by the number of the operand.
fn register(ty: Type, n: usize) -> String {
    match ty.bits() {
        1 => format!("%p{n}"),
        16 => format!("%h{n}"),
        64 => format!("%d{n}"),
        _ => format!("%r{n}"),
    }
}

/// An operand of the form; `None` for what there is no short text of.
fn operand(form: &OperandForm, choice: &[Option<Modifier>], n: usize) -> Option<String> {
    let slot = |i: u8| choice[usize::from(i)].and_then(Modifier::ty);
    let ty = match form.ty {
        OperandType::None => None,
        OperandType::Fixed(t) => Some(t),
        OperandType::Slot(i) => slot(i),
        OperandType::Wide(i) => slot(i).and_then(Type::doubled),
    };
    let space = choice.iter().flatten().find_map(|m| m.space());
    let vector = match form.kind {
        Kind::Vector(n) => Some(usize::from(n)),
        Kind::Vectorised => choice.iter().flatten().find_map(|m| m.vector()),
        _ => None,
    };
    if let Some(parts) = vector {
        let parts: Vec<String> = (0..parts).map(|i| Some(register(ty?, 10 + i))).collect::<Option<_>>()?;
        return Some(format!("{{{}}}", parts.join(", ")));
    }
    Some(match form.kind {
        Kind::Value | Kind::Vectorised if form.limit == Limit::Event => "7".to_string(),
        Kind::Value | Kind::Vectorised if form.selection == Selection::OnePart => format!("{}.h1", register(ty?, n)),
        Kind::Value | Kind::Vectorised => register(ty?, n),
        Kind::Constant if form.limit == Limit::Event => "7".to_string(),
        Kind::Constant => "16".to_string(),
        Kind::Address if space.is_some_and(|s| s.spelling() == "param") => "[parameter]".to_string(),
        Kind::Address => "[%d5]".to_string(),
        Kind::Symbol => format!("in_{}", space.map_or("shared", |s| s.spelling())),
        Kind::Special if ty?.bits() == 64 => "%clock64".to_string(),
        Kind::Special => "%tid.x".to_string(),
        Kind::Label => "$end".to_string(),
        Kind::BranchTargets => "$list".to_string(),
        Kind::Vector(_) | Kind::Callee => return None,
    })
}

/// A module of that one instruction.
fn text(row: &Row, choice: &[Option<Modifier>]) -> Option<String> {
    let mut line = row.opcode.to_string();
    choice.iter().flatten().for_each(|m| line += &format!(".{m}"));
    let mut operands = Vec::new();
    for (n, form) in row.operands().iter().enumerate() {
        let there = match form.presence {
            Presence::Always => true,
            Presence::Optional => false,
            Presence::With(slot) => choice[usize::from(slot)].is_some(),
        };
        if there {
            operands.push(operand(form, choice, n)?);
        }
    }
    // A store to a parameter is one to an argument of a call.
    let store = row.opcode == Opcode::St && choice.iter().flatten().any(|m| *m == Modifier::Param);
    let line = format!("{line} {}", operands.join(", "))
        .replace("[parameter]", if store { "[handed]" } else { "[parameter]" });
    Some(format!(
        ".version 8.8\n.target sm_61\n.address_size 64\n.global .align 16 .b8 in_global[64];\n\
         .const .align 16 .b8 in_const[64];\n.shared .align 16 .b8 in_shared[64];\n\
         .visible .entry kernel(.param .align 16 .b8 parameter[16])\n{{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n\
         .reg .b32 %r<20>;\n.reg .b64 %d<20>;\n.local .align 16 .b8 in_local[64];\n.param .align 16 .b8 handed[16];\n\
         $list: .branchtargets $end;\n{line};\n$end:\nret;\n}}\n"
    ))
}

#[test]
fn every_row_of_sm_61_is_known_or_refused_by_name() {
    let mut decoded = 0;
    for row in ROWS.iter().filter(|row| row.target <= 61) {
        for choice in choices(row) {
            let Some(text) = text(row, &choice) else { continue };
            match decode(&text) {
                Ok(_) => {
                    assert!(!REFUSED.contains(&row.opcode), "no longer refused: {}", row.form);
                    decoded += 1;
                }
                Err(refused) => {
                    assert!(REFUSED.contains(&row.opcode), "{refused}\n{}", row.form);
                    assert!(refused.to_string().contains(&format!("`{}`", row.opcode)), "{refused}");
                }
            }
        }
    }
    assert!(decoded > 1500, "{decoded}");
}

#[test]
fn later_instructions_are_refused_by_name() {
    let text = ".version 7.3\n.target sm_80\n.address_size 64\n.visible .entry kernel()\n{\n.reg .b64 %rd<3>;\n\
                stacksave.u64 %rd0;\nret;\n}\n";
    let refused = decode(text).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the PTX interpreter does not run `kernel`\n  line 7: `stacksave.u64 %rd0`: the interpreter does not know \
         `stacksave`"
    );
}
