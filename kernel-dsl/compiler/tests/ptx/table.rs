//! Tests of the table of instructions against ptxas, which must accept what a row allows, from the
//! version and the target of the row on. Both must reject forms that look legal and are not.

#[allow(dead_code, reason = "not every test needs all of it")]
use super::ptx_support;
use super::sample;
use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ptx::form::{FormRow, FormSlot};
use kernel_dsl_compiler::ptx::table::ROWS;
use kernel_dsl_compiler::ptx::{
    Address, Guard, Instruction, Modifier, ModuleBuilder, Opcode, Operand, SpecialRegister, Type, Version,
};
use sample::{Instead, Sample};

/// Returns every choice of modifiers that the slots allow.
fn choices(slots: &[FormSlot]) -> Vec<Vec<Option<Modifier>>> {
    slots.iter().fold(vec![vec![]], |all, slot| {
        let here: Vec<Option<Modifier>> =
            slot.alternatives.iter().map(Some).chain(slot.optional.then_some(None)).collect();
        all.iter().flat_map(|c| here.iter().map(|m| c.iter().copied().chain([*m]).collect())).collect()
    })
}

/// Returns a choice for each slot, and then copies with one slot changed.
fn one_by_one(slots: &[FormSlot]) -> Vec<Vec<Option<Modifier>>> {
    let first: Vec<_> = slots.iter().map(|s| s.alternatives.iter().next()).collect();
    let mut all = vec![first.clone()];
    for (i, slot) in slots.iter().enumerate() {
        for m in slot.alternatives.iter().map(Some).skip(1).chain(slot.optional.then_some(None)) {
            let mut choice = first.clone();
            choice[i] = m;
            all.push(choice);
        }
    }
    all
}

/// Returns each operand with each possible replacement of its register.
fn replacements(row: &FormRow) -> impl Iterator<Item = (usize, Instead)> {
    use Instead::*;
    (0..row.operands().len()).flat_map(|i| [Constant, Selected, Negated, Sink, Pair, Handle].map(|what| (i, what)))
}

/// Returns the target that a row is tested on.
fn target(row: &FormRow) -> Target {
    Target::ALL.into_iter().find(|t| t.sm() >= row.target).unwrap()
}

/// Returns whether instructions of the row are legal for sm_61 or a later target.
fn is_current(row: &FormRow) -> bool {
    row.removed.is_none_or(|(target, _)| target > 61)
}

#[test]
fn each_row_is_accepted_by_ptxas() {
    let mut failures = Vec::new();
    let mut count = 0;
    let installed = ptx_support::installed();
    for row in ROWS.iter().filter(|r| is_current(r) && r.opcode != Opcode::Call && r.opcode != Opcode::Brx) {
        let mut sample = Sample::new(target(row));
        let plain = choices(row.slots()).into_iter().map(|c| (c, None));
        let replaced =
            one_by_one(row.slots()).into_iter().flat_map(|c| replacements(row).map(move |r| (c.clone(), Some(r))));
        for (choice, instead) in plain.chain(replaced) {
            let Some(instruction) = sample.instruction(row, &choice, instead) else { continue };
            sample.builder.instruction(instruction).unwrap_or_else(|e| panic!("{}: {e}", row.form));
            count += 1;
        }
        let text = sample.text();
        if installed && let Err(e) = ptx_support::assemble(&text, target(row).sm()) {
            let named: Vec<String> = e
                .lines()
                .take(3)
                .map(|l| {
                    let number = l.split("line ").nth(1).and_then(|l| l.split(';').next()).and_then(|n| n.parse().ok());
                    format!("{l}\n    {}", number.and_then(|n: usize| text.lines().nth(n - 1)).unwrap_or_default())
                })
                .collect();
            failures.push(format!("{}\n  {}", row.form, named.join("\n  ")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{count} instructions of {} forms", ROWS.len());
}

/// Returns the module with another version and target than the builder's.
fn with(text: &str, version: Version, sm: u16) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for line in &mut lines {
        if line.starts_with(".version") {
            *line = format!(".version {version}");
        } else if line.starts_with(".target") {
            *line = format!(".target sm_{sm}");
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn no_row_is_accepted_before_its_version_or_target() {
    if !ptx_support::installed() {
        return;
    }
    let versions: Vec<Version> =
        [(5, 0), (6, 0), (6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (7, 0), (7, 1), (7, 5), (7, 6), (7, 8), (8, 0)]
            .into_iter()
            .map(|(major, minor)| Version::new(major, minor))
            .collect();
    let mut failures = Vec::new();
    for row in ROWS.iter().filter(|r| is_current(r) && r.opcode != Opcode::Call && r.opcode != Opcode::Brx) {
        let here = target(row);
        let version = versions.iter().copied().rfind(|v| *v < row.version && *v >= Version::of(here));
        let before = Target::ALL.into_iter().rfind(|t| *t < here && row.target > t.sm());
        // One module of all choices, each of which is rejected.
        let mut sample = Sample::new(here);
        for choice in one_by_one(row.slots()) {
            let instruction = sample.instruction(row, &choice, None).unwrap();
            sample.builder.instruction(instruction).unwrap();
        }
        let text = sample.text();
        let mut early = |version: Version, sm: u16| {
            let text = with(&text, version, sm);
            let refused = refused(&text, sm);
            let accepted = text.lines().enumerate().filter(|(i, _)| !refused.contains(i)).map(|(_, l)| l.trim());
            let instructions = accepted.filter(|l| l.starts_with(row.opcode.spelling()));
            failures.extend(instructions.map(|l| format!("`{l}` of {} is fine in {version} for sm_{sm}", row.form)));
        };
        if let Some(version) = version {
            early(version, here.sm());
        }
        if let Some(target) = before {
            early(Version::new(8, 0), target.sm());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns the lines of `text` that ptxas rejects, numbered from 0; it accepts the rest.
fn refused(text: &str, sm: u16) -> Vec<usize> {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut refused = Vec::new();
    // Some errors are only reported if there are no others.
    while let Err(e) = ptx_support::assemble(&(lines.join("\n") + "\n"), sm) {
        let number = |l: &str| -> Option<usize> {
            let rest = l.split_once("line ")?.1.trim_start_matches('\'');
            rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
        };
        let named: Vec<usize> = e.lines().filter_map(number).collect();
        assert!(!named.is_empty(), "{e}");
        for n in named {
            lines[n - 1] = "";
            refused.push(n - 1);
        }
    }
    refused
}

/// Groups of modifiers that may replace each other: types, rounding modes, comparisons, spaces,
/// operators.
const KINDS: [&[Modifier]; 7] = {
    use Modifier::*;
    [
        &[Pred, B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F16, F16x2, F32, F64],
        &[Rn, Rz, Rm, Rp, Rni, Rzi, Rmi, Rpi, Approx, Full],
        &[Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan],
        &[Const, Global, Local, Param, Shared],
        &[And, Or, Xor, Exch, Cas, Add, Inc, Dec, Min, Max, Popc],
        &[Line, Plane, Volume, Lines, Planes, Cube, Cubes, Samples, SamplePlanes],
        &[
            Width,
            Height,
            Depth,
            ChannelDataType,
            ChannelOrder,
            NormalizedCoords,
            ForceUnnormalizedCoords,
            ArraySize,
            NumMipmapLevels,
            NumSamples,
            FilterMode,
            AddrMode0,
            MemoryLayout,
        ],
    ]
};

/// Returns whether ptxas accepts a form that the manual does not have. Such forms are:
///
/// - extended arithmetic of 16 bits, `.ftz` for f64 where nothing is flushed, and addresses moved
///   as 16 bits;
/// - unsigned comparisons by other names, the stack by 32-bit addresses, and one number for a
///   distance along several axes;
/// - a texture with a query for surfaces.
fn beyond_the_manual(words: &str) -> bool {
    let is = |opcode: &str, rest: &[&str]| {
        words.strip_prefix(opcode).is_some_and(|w| rest.iter().any(|r| w.starts_with(r) || w.ends_with(r)))
    };
    is("addc", &[".s16", ".u16"])
        || is("subc", &[".s16", ".u16"])
        || is("mad.lo.cc", &[".s16", ".u16"])
        || is("madc.lo", &[".s16", ".u16"])
        || is("rcp", &[".ftz.f64"])
        || is("mov", &[".b16", ".u16", ".s16"])
        || words.starts_with("vset") && [".lo", ".ls", ".hi", ".hs"].iter().any(|c| words.contains(c))
        || is("alloca", &[".u32"])
        || is("stack", &[".u32"])
        || is("tex", &[".s32"])
        || is("txq", &[".memory_layout"])
}

/// Operators with which ptxas 12.9 crashes on `sured`.
const CRASHES: [Modifier; 4] = [Modifier::Xor, Modifier::Exch, Modifier::Inc, Modifier::Dec];

/// Modifiers that look as if they could be added to many instructions.
const ADDED: [Modifier; 9] = {
    use Modifier::*;
    [Ftz, Sat, Cc, Rn, Approx, Wide, Uni, Volatile, PropagateNan]
};

/// Checks each form with a type, a rounding mode or a comparison replaced or left out, and with a
/// modifier added before its type. ptxas must reject what the table rejects.
#[test]
fn ptxas_rejects_what_the_table_rejects() {
    if !ptx_support::installed() {
        return;
    }
    let mut failures = std::collections::BTreeMap::new();
    for row in
        ROWS.iter().filter(|r| is_current(r) && r.target <= 61 && r.opcode != Opcode::Call && r.opcode != Opcode::Brx)
    {
        let mut sample = Sample::new(Target::SM_61);
        let mut extra = std::collections::BTreeMap::new();
        for choice in one_by_one(row.slots()) {
            for slot in 0..choice.len() {
                let kind = KINDS.iter().find(|k| choice[slot].is_some_and(|m| k.contains(&m)));
                // ptxas accepts the operand of `.cas` for other operators.
                let kind = kind.filter(|_| choice[slot] != Some(Modifier::Cas));
                for other in kind.into_iter().flat_map(|k| k.iter().copied().map(Some).chain([None])) {
                    if row.opcode == Opcode::Sured && other.is_some_and(|m| CRASHES.contains(&m)) {
                        continue;
                    }
                    let mut changed = choice.clone();
                    changed[slot] = other;
                    let Some(instruction) = sample.instruction(row, &changed, None) else { continue };
                    if let Err(illegal) = sample.builder.instruction(instruction) {
                        let line = format!("{};\n", illegal.instruction);
                        extra.insert(changed.iter().flatten().copied().collect::<Vec<_>>(), line);
                    }
                }
            }
        }
        let first: Vec<_> = row.slots().iter().map(|s| s.alternatives.iter().next()).collect();
        for added in ADDED {
            let Some(mut instruction) = sample.instruction(row, &first, None) else { continue };
            let ty = instruction.modifiers.iter().position(|m| m.ty().is_some());
            if instruction.modifiers.contains(&added) {
                continue;
            }
            instruction.modifiers.insert(ty.unwrap_or(instruction.modifiers.len()), added);
            let words = instruction.modifiers.to_vec();
            if let Err(illegal) = sample.builder.instruction(instruction) {
                extra.insert(words, format!("{};\n", illegal.instruction));
            }
        }
        let text = with(&sample.text(), Version::new(8, 0), 61).trim_end().trim_end_matches('}').to_string();
        let before = text.lines().count();
        let whole = text + &extra.into_values().collect::<String>() + "}\n";
        let refused = refused(&whole, 61);
        failures.extend(
            whole
                .lines()
                .enumerate()
                .skip(before)
                .filter(|(i, l)| *l != "}" && !refused.contains(i))
                .map(|(_, l)| (l.split(' ').next().unwrap_or_default().to_string(), l.to_string())),
        );
    }
    let unknown: Vec<_> = failures.iter().filter(|(words, _)| !beyond_the_manual(words)).map(|f| f.1).collect();
    assert!(unknown.is_empty(), "accepted by ptxas alone: {unknown:#?}");
}

fn register(sample: &mut Sample, ty: Type) -> Operand {
    sample.builder.register(ty).into()
}

/// Checks that the table, and ptxas if it is installed, reject a form that looks legal and is not.
fn trap(opcode: Opcode, modifiers: &[Modifier], operands: impl FnOnce(&mut Sample) -> Vec<Operand>, says: &str) {
    let mut sample = Sample::new(Target::SM_61);
    let operands = operands(&mut sample).into();
    let modifiers = modifiers.iter().copied().collect();
    let illegal = sample
        .builder
        .instruction(Instruction { guard: None, opcode, modifiers, operands })
        .expect_err("it is illegal");
    assert!(illegal.to_string().contains(says), "{illegal}");
    if ptx_support::installed() {
        let text = with(&sample.text(), Version::new(8, 0), 61);
        let text = text.replace("}\n", &format!("    {};\n}}\n", illegal.instruction));
        assert!(ptx_support::assemble(&text, 61).is_err(), "ptxas takes `{}`", illegal.instruction);
    }
}

#[test]
fn forms_that_look_legal_are_rejected() {
    use Modifier::*;
    let three = |ty: Type| move |s: &mut Sample| (0..3).map(|_| register(s, ty)).collect::<Vec<_>>();
    let two = |ty: Type| move |s: &mut Sample| (0..2).map(|_| register(s, ty)).collect::<Vec<_>>();
    trap(Opcode::Shl, &[U32], three(Type::U32), "shl.type d, a, b:u32; .type = {.b16, .b32, .b64}");
    trap(Opcode::And, &[U32], three(Type::U32), "is not a valid form");
    trap(Opcode::Min, &[B32], three(Type::B32), "is not a valid form");
    trap(Opcode::Mul, &[U32], three(Type::U32), "is not a valid form");
    trap(Opcode::Shl, &[B64], three(Type::B64), "operand 3 must be");
    trap(Opcode::Fma, &[F32], |s| (0..4).map(|_| register(s, Type::F32)).collect(), "fma.rnd{.ftz}{.sat}.f32");
    trap(Opcode::Div, &[F32], three(Type::F32), "is not a valid form");
    trap(Opcode::Sqrt, &[F32], two(Type::F32), "is not a valid form");
    trap(Opcode::Ex2, &[F32], two(Type::F32), "is not a valid form");
    trap(Opcode::Max, &[F16], three(Type::F16), "requires sm_80; the kernel is compiled for sm_61");
    trap(Opcode::Max, &[PropagateNan, F32], three(Type::F32), "requires sm_80");
    trap(Opcode::Ex2, &[Approx, F16], two(Type::F16), "requires sm_75");
    trap(Opcode::Redux, &[Sync, Add, U32], three(Type::U32), "requires sm_80");
    trap(Opcode::Nanosleep, &[U32], |s| vec![register(s, Type::U32)], "requires sm_70");
    trap(Opcode::Cp, &[Async, WaitAll], |_| vec![], "requires sm_80");
    for how in [Lo, Ls] {
        trap(
            Opcode::Setp,
            &[how, S32],
            |s| [Type::Pred, Type::S32, Type::S32].map(|t| register(s, t)).into(),
            "is not a valid form",
        );
    }
    trap(
        Opcode::Setp,
        &[Lt, B32],
        |s| [Type::Pred, Type::B32, Type::B32].map(|t| register(s, t)).into(),
        "is not a valid form",
    );
    trap(Opcode::Mov, &[F32], |s| vec![register(s, Type::F32), Operand::Integer(0x3f80_0000)], "operand 2 must be");
    trap(Opcode::Cvt, &[S32, F32], |s| [Type::S32, Type::F32].map(|t| register(s, t)).into(), "is not a valid form");
    trap(Opcode::Cvt, &[F32, S32], |s| [Type::F32, Type::S32].map(|t| register(s, t)).into(), "is not a valid form");
    trap(Opcode::Cvt, &[F16, F32], |s| [Type::F16, Type::F32].map(|t| register(s, t)).into(), "is not a valid form");
    trap(
        Opcode::Cvt,
        &[Rn, F32, F16],
        |s| [Type::F32, Type::F16].map(|t| register(s, t)).into(),
        "is not a valid form",
    );
    trap(Opcode::Bar, &[Sync], |_| vec![Operand::Integer(16)], "operand 1 must be");
    trap(Opcode::Bar, &[Sync], |_| vec![Operand::Integer(0), Operand::Integer(33)], "operand 2 must be");
    trap(
        Opcode::Add,
        &[Rn, F32],
        |s| [Type::F32, Type::U32, Type::F32].map(|t| register(s, t)).into(),
        "operand 2 must be",
    );
    let address = |s: &mut Sample| {
        let base = kernel_dsl_compiler::ptx::Base::Register(s.builder.register(Type::U64));
        Operand::Address(Address { base, offset: 0 })
    };
    trap(Opcode::Ld, &[Global, F16], |s| vec![register(s, Type::F16), address(s)], "is not a valid form");
    let atom = |ty: Type| move |s: &mut Sample| vec![register(s, ty), address(s), register(s, ty)];
    trap(Opcode::Atom, &[Global, Add, S64], atom(Type::S64), "is not a valid form");
    trap(Opcode::Atom, &[Global, Max, F32], atom(Type::F32), "is not a valid form");
    trap(Opcode::Ld, &[Relaxed, Gpu, Global, U32], |s| vec![register(s, Type::U32), address(s)], "requires sm_70");
}

#[test]
fn guards_are_predicates() {
    let mut sample = Sample::new(Target::SM_61);
    let register = sample.builder.register(Type::U32);
    let guard = Some(Guard { register, negated: true });
    let ret = Instruction { guard, opcode: Opcode::Ret, modifiers: Default::default(), operands: Default::default() };
    let illegal = sample.builder.instruction(ret).unwrap_err();
    assert_eq!(illegal.to_string(), "`@!%r0 ret` has a guard that is not a predicate");
}

#[test]
fn names_and_labels_are_checked() {
    let mut builder = ModuleBuilder::new(Target::SM_61, "k").unwrap();
    assert!(builder.parameter("größe", Type::U32).unwrap_err().to_string().contains("is not a valid PTX identifier"));
    builder.parameter("n", Type::U32).unwrap();
    assert!(builder.parameter("n", Type::U32).unwrap_err().to_string().contains("the name `n` is defined twice"));
    let nowhere = builder.label("$nowhere");
    let bra = Instruction {
        guard: None,
        opcode: Opcode::Bra,
        modifiers: Default::default(),
        operands: [Operand::Label(nowhere)].into_iter().collect(),
    };
    builder.instruction(bra).unwrap();
    assert!(builder.finish().unwrap_err().to_string().contains("the target `$nowhere` of a branch is not defined"));
}

/// Checks that special registers exist from their target and version on.
#[test]
fn special_registers_exist_from_their_target_on() {
    if !ptx_support::installed() {
        return;
    }
    for register in SpecialRegister::ALL {
        let (sm, version) = register.introduced_in();
        let here = Target::ALL.into_iter().find(|t| t.sm() >= sm).unwrap();
        let mut sample = Sample::new(here);
        let d = sample.builder.register(register.ty()).into();
        let modifiers = [register.ty().modifier()].into_iter().collect();
        let operands = [d, Operand::Special(*register)].into_iter().collect();
        sample.builder.instruction(Instruction { guard: None, opcode: Opcode::Mov, modifiers, operands }).unwrap();
        let text = sample.text();
        ptx_support::assemble(&text, here.sm()).unwrap_or_else(|e| panic!("{register}: {e}"));
        let before = [(5, 0), (6, 0), (7, 0), (7, 5), (7, 8)].map(|(major, minor)| Version::new(major, minor));
        if let Some(v) = before.into_iter().rfind(|v| *v < version && *v >= Version::of(here)) {
            ptx_support::assemble(&with(&text, v, here.sm()), here.sm()).expect_err(register.spelling());
        }
        if let Some(t) = Target::ALL.into_iter().rfind(|t| *t < here) {
            ptx_support::assemble(&with(&text, Version::new(8, 0), t.sm()), t.sm()).expect_err(register.spelling());
        }
    }
}
