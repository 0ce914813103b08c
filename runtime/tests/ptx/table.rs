//! Every row of the instruction table for sm_61 is decoded, or rejected by its expected name.

use super::kit::decode;
use kernel_dsl::compiler::ir::build::Builder;
use kernel_dsl::compiler::ir::{BlockExtents, Kernel, Op, Region, Values};
use kernel_dsl::compiler::ptx::form::{
    ConstantLimit, FormRow, OperandForm, OperandKind, OperandType, Presence, Selection,
};
use kernel_dsl::compiler::ptx::inline::{self, InlineBlock, InlineSource};
use kernel_dsl::compiler::ptx::table::ROWS;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};
use kernel_dsl::compiler::{Target, emit, passes};
use runtime::interpreter::{self, Launch, Options};
use std::collections::BTreeSet;

/// Parts of the text of the unsupported instructions.
const REFUSED: [&str; 13] = [
    "istypep",
    "cube",
    "2dms",
    ".f16x2.",
    "sust.p",
    "sured.p",
    "channel_",
    "memory_layout",
    "num_samples",
    "force_unnormalized",
    "filter_mode",
    "addr_mode",
    "txq.level",
];

/// Returns whether an instruction is unsupported. The operand `f:f32` marks a comparison with a
/// depth.
fn is_refused(row: &FormRow, line: &str) -> bool {
    let of_object = [
        Opcode::Istypep,
        Opcode::Suld,
        Opcode::Suq,
        Opcode::Sured,
        Opcode::Sust,
        Opcode::Tex,
        Opcode::Tld4,
        Opcode::Txq,
    ];
    of_object.contains(&row.opcode) && (row.form.contains(", f:f32") || REFUSED.iter().any(|part| line.contains(part)))
}

/// Returns whether sm_61 has the form.
fn is_of_sm_61(row: &&FormRow) -> bool {
    row.target <= 61 && row.removed.is_none_or(|(target, _)| target > 61)
}

/// Returns one choice for each slot, and variants with a single slot changed.
fn choices(row: &FormRow) -> Vec<Vec<Option<Modifier>>> {
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

/// Returns a register of that type, numbered by the operand.
fn register(ty: Type, n: usize) -> String {
    match ty.bits() {
        1 => format!("%p{n}"),
        16 => format!("%h{n}"),
        64 => format!("%d{n}"),
        _ => format!("%r{n}"),
    }
}

/// Returns an operand of the form; `None` if the operand has no short text.
fn operand(form: &OperandForm, choice: &[Option<Modifier>], n: usize) -> Option<String> {
    let slot = |i: u8| choice[usize::from(i)].and_then(Modifier::ty);
    let ty = match form.ty {
        OperandType::None => None,
        OperandType::Fixed(t) => Some(t),
        OperandType::Slot(i) => slot(i),
        OperandType::Wide(i) => slot(i).and_then(Type::doubled),
    };
    let space = choice.iter().flatten().find_map(|m| m.space());
    let shape = choice.iter().flatten().find_map(|m| m.shape());
    let vector = match form.kind {
        OperandKind::Vector(n) => Some(usize::from(n)),
        OperandKind::Vectorized => choice.iter().flatten().find_map(|m| m.vector()),
        OperandKind::Axes => Some(shape?.axes),
        _ => None,
    };
    if let Some(parts) = vector {
        let parts: Vec<String> = (0..parts).map(|i| Some(register(ty?, 10 + i))).collect::<Option<_>>()?;
        return Some(format!("{{{}}}", parts.join(", ")));
    }
    Some(match form.kind {
        OperandKind::Value | OperandKind::Vectorized if form.limit == ConstantLimit::Event => "7".to_string(),
        OperandKind::Value | OperandKind::Vectorized if form.selection == Selection::OnePart => {
            format!("{}.h1", register(ty?, n))
        }
        OperandKind::Value | OperandKind::Vectorized => register(ty?, n),
        OperandKind::Constant if form.limit == ConstantLimit::Event => "7".to_string(),
        OperandKind::Constant => "16".to_string(),
        OperandKind::Address if space.is_some_and(|s| s.spelling() == "param") => "[parameter]".to_string(),
        OperandKind::Address => "[%d5]".to_string(),
        OperandKind::Symbol => format!("in_{}", space.map_or("shared", |s| s.spelling())),
        OperandKind::Special if ty?.bits() == 64 => "%clock64".to_string(),
        OperandKind::Special => "%tid.x".to_string(),
        OperandKind::Label => "$end".to_string(),
        OperandKind::BranchTargets => "$list".to_string(),
        OperandKind::Object(object) => format!("[{}]", object_of(object)),
        OperandKind::OwnSampler => "[a_texture]".to_string(),
        OperandKind::Texel(object) => {
            let shape = shape?;
            let first = shape.indexed.then_some(Type::U32);
            let rest = std::iter::repeat_n(ty?, shape.coordinates - usize::from(shape.indexed));
            let coordinates: Vec<_> = first.into_iter().chain(rest).enumerate().map(|(i, t)| register(t, i)).collect();
            format!("[{}, {{{}}}]", object_of(object), coordinates.join(", "))
        }
        OperandKind::Vector(_) | OperandKind::Axes | OperandKind::Callee => return None,
    })
}

/// Returns the name of such an object, or a register with its handle.
fn object_of(ty: Type) -> &'static str {
    match ty {
        Type::Texref => "a_texture",
        Type::Surfref => "a_surface",
        _ => "%d9",
    }
}

/// Returns the text of the instruction.
fn line(row: &FormRow, choice: &[Option<Modifier>]) -> Option<String> {
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
    Some(format!("{line} {}", operands.join(", ")))
}

/// Returns a module with that single instruction.
fn text(row: &FormRow, choice: &[Option<Modifier>]) -> Option<String> {
    // A store to `.param` stores an argument of a call.
    let store = row.opcode == Opcode::St && choice.iter().flatten().any(|m| *m == Modifier::Param);
    let line = line(row, choice)?.replace("[parameter]", if store { "[handed]" } else { "[parameter]" });
    Some(format!(
        ".version 8.8\n.target sm_61\n.address_size 64\n.global .texref a_texture;\n.global .surfref a_surface;\n\
         .global .align 16 .b8 in_global[64];\n\
         .const .align 16 .b8 in_const[64];\n.shared .align 16 .b8 in_shared[64];\n\
         .visible .entry kernel(.param .align 16 .b8 parameter[16])\n{{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n\
         .reg .b32 %r<20>;\n.reg .b64 %d<20>;\n.local .align 16 .b8 in_local[64];\n.param .align 16 .b8 handed[16];\n\
         $list: .branchtargets $end;\n{line};\n$end:\nret;\n}}\n"
    ))
}

#[test]
fn every_row_of_sm_61_is_supported_or_rejected_by_name() {
    let mut decoded = 0;
    for row in ROWS.iter().filter(is_of_sm_61) {
        for choice in choices(row) {
            let Some((text, line)) = text(row, &choice).zip(line(row, &choice)) else { continue };
            match decode(&text) {
                Ok(_) => {
                    assert!(!is_refused(row, &line), "no longer refused: {line}");
                    decoded += 1;
                }
                Err(refused) => {
                    assert!(is_refused(row, &line), "{refused}\n{}", row.form);
                    assert!(refused.to_string().contains(&format!("`{}", row.opcode)), "{refused}");
                }
            }
        }
    }
    assert!(decoded > 1500, "{decoded}");
}

#[test]
fn unsupported_instructions_are_rejected_by_name() {
    let text = ".version 7.3\n.target sm_80\n.address_size 64\n.visible .entry kernel()\n{\n.reg .b64 %rd<3>;\n\
                .reg .b32 %r<3>;\nsuq.memory_layout.b32 %r0, [%rd0];\nret;\n}\n";
    let refused = decode(text).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the PTX interpreter does not run `kernel`\n  line 8: `suq.memory_layout.b32 %r0, [%rd0]`: the interpreter \
         does not support the query `.memory_layout`"
    );
}

/// Returns a kernel with only this inline block.
fn of_block(code: InlineBlock) -> Kernel {
    let mut builder = Builder::new(Kernel {
        name: "kernel".into(),
        rust_name: "kernel".into(),
        instance: "kernel".into(),
        target: Target::SM_61,
        block: BlockExtents::fixed([32, 1, 1]),
        tables: Vec::new(),
        min_blocks: None,
        max_registers: None,
        parameters: Vec::new(),
        values: Vec::new(),
        locals: Vec::new(),
        shared: Vec::new(),
        dynamic: Vec::new(),
        sources: Vec::new(),
        locations: Vec::new(),
        declared: Default::default(),
        unrolled: kernel_dsl::compiler::ir::MAX_UNROLLED_INSTRUCTIONS,
        body: Region::default(),
    });
    builder.effect(Op::Inline { code: code.into(), inputs: Values::new() });
    builder.finish()
}

/// Instructions that inline PTX rejects, at least in some forms.
const REFUSED_INLINE: &str = "add alloca atom bar barrier bra brx cos cvta div ex2 exit isspacep istypep ld ldu lg2 membar mov mul \
     prefetch prefetchu rcp red ret rsqrt shfl sin sqrt st stackrestore stacksave sub suld suq sured sust tex tld4 \
     trap txq vote";

/// Instructions that are valid inline PTX, but are not supported by the oracle.
const NOT_INLINE: [Opcode; 1] = [Opcode::Brkpt];

/// Checks every row of sm_61 as inline PTX. A row is rejected with a reason, or the oracle runs it
/// and the emitter prints it. The exceptions are rejected by name.
#[test]
fn every_row_of_sm_61_is_inline_ptx_or_rejected_with_a_reason() {
    let mut start = ".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %d<20>;\n".to_string();
    for n in 0..20 {
        start += &format!("setp.eq.u32 %p{n}, 1, {n}; mov.b16 %h{n}, {n}; mov.b32 %r{n}, {n}; mov.b64 %d{n}, {n};\n");
    }
    let (mut run, mut told) = (0, BTreeSet::new());
    for row in ROWS.iter().filter(is_of_sm_61) {
        for choice in choices(row) {
            let Some(line) = line(row, &choice) else { continue };
            let carry = "add.cc.u32 %r0, %r0, %r0;";
            let source = InlineSource { text: format!("{start}{carry}\n{line};"), operands: Vec::new() };
            let code = match source.check(Some(Target::SM_61)) {
                Ok(code) => code,
                Err(errors) => {
                    let words = [
                        " is not allowed in inline PTX: ",
                        " is approximate, ",
                        " has no rounding modifier, ",
                        " is not a register",
                    ];
                    let known = |e: &inline::Error| words.iter().any(|w| e.message.contains(w));
                    assert!(!errors.is_empty() && errors.iter().all(known), "{line}: {errors:?}");
                    told.insert(row.opcode);
                    continue;
                }
            };
            let kernel = of_block(code);
            match interpreter::Program::decode(&kernel) {
                Ok(program) => {
                    assert!(!NOT_INLINE.contains(&row.opcode), "no longer refused: {}", row.form);
                    let launch =
                        Launch { grid: [1; 3], block: None, arguments: Vec::new(), options: Options::default() };
                    program.run(launch).unwrap();
                    run += 1;
                }
                Err(refused) => {
                    assert!(NOT_INLINE.contains(&row.opcode), "{refused}\n{}", row.form);
                    assert!(refused.to_string().contains(&format!("`{}`", row.opcode)), "{refused}");
                    continue;
                }
            }
            let ptx = emit::emit(&passes::legal(kernel).unwrap()).unwrap().to_string();
            decode(&ptx).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
    }
    assert!(run > 900, "{run}");
    let told: Vec<&str> = told.iter().map(|opcode| opcode.spelling()).collect();
    assert_eq!(told.join(" "), REFUSED_INLINE);
}
