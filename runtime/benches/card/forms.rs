//! Forms of the instruction table as kernels: every choice of modifiers, with the parts of operands
//! drawn at random.

use super::effects::{self, DECLARATIONS, is_special, word};
use super::operands::{Random, operands};
use kernel_dsl::compiler::ptx::cost::{ClassRule, InstructionClass};
use kernel_dsl::compiler::ptx::form::{FormRow, OperandForm, OperandKind, OperandType, Presence, Selection};
use kernel_dsl::compiler::ptx::table::{ROWS, instruction_of};
use kernel_dsl::compiler::ptx::words::TypeClass;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};
use std::collections::HashSet;
use std::fmt::Write;

/// The number of operands on which each form runs.
pub const THREADS: usize = 1024;
/// The maximum number of forms of a kernel.
const FORMS: usize = 24;

/// The results of a card: a line for each kernel, with a hash and the name of its first form.
pub const RECORDED: &str = include_str!("../../tests/ptx/card.txt");
/// The number of first lines in [`RECORDED`] whose operands depend on the place of a row.
const NUMBERED: usize = 851;

/// A form with a choice of modifiers and operands.
pub struct SampleForm {
    /// The row of the table.
    pub row: &'static FormRow,
    /// Opcode and modifiers.
    pub name: String,
    /// Code before the instruction.
    pub before: String,
    /// The instruction.
    pub text: String,
    /// Code after the instruction, which puts the results into `%d6` and `%d7`.
    pub after: String,
    /// The types of both results.
    pub results: [Type; 2],
    /// The types of the operands read.
    pub types: Vec<Type>,
    /// Whether the manual states an error bound instead of an exact result.
    pub approximate: bool,
}

/// Forms with the same operands, run one after the other.
pub struct Kernel {
    /// Number among the kernels.
    pub number: usize,
    /// The target that the module is for.
    pub target: u16,
    /// The forms, at least one.
    pub forms: Vec<SampleForm>,
}

/// Returns why a row is not compared with a card; `None` for a row that is compared.
pub fn left_out(row: &FormRow) -> Option<&'static str> {
    use Opcode::*;
    Some(match row.opcode {
        _ if row.removed.is_some_and(|(target, _)| target <= 61) => "sm_61 and later targets do not have it",
        _ if row.target > 80 => "the kernels of the comparison are for sm_61 and sm_80",
        Tex | Tld4 | Txq | Suld | Sust | Sured | Suq => {
            "it accesses a texture or surface, and the comparison binds none"
        }
        Istypep => "the interpreter rejects it",
        Trap => "it ends the launch with an error, which the tests of `control` compare",
        Brkpt => "it stops for a debugger, and without one ends the launch with an error",
        _ => return None,
    })
}

/// Returns why a form's results may differ from those of a card later than sm_61; `None` where the
/// results must agree.
pub fn explanation(form: &SampleForm) -> Option<&'static str> {
    use Opcode::*;
    match form.row.opcode {
        Vabsdiff | Vadd | Vmad | Vmax | Vmin | Vset | Vshl | Vshr | Vsub => Some(
            "sm_61 has machine instructions for the scalar video instructions (`VADD`, `VABSDIFF`, `VMNMX`, `VSET`, `VSHL`, \
             `VSHR`, `VMAD`). Later GPUs have none. The code that replaces them departs from the manual where the result \
             is saturated, merged into c or combined with c. The interpreter follows the manual.",
        ),
        Ex2 if form.results[0] != Type::F32 => Some(
            "The documented bound of `ex2` of `f16` is relative, 2⁻⁹·⁹. The card's results are rounded, too: a subnormal \
             result may be one unit off.",
        ),
        Atom | Red if form.results[0] == Type::F16x2 && form.before.contains("shared_cells") => Some(
            "In shared memory, the code that the driver makes for the card takes 0 for the upper half of b. In global \
             memory the card adds both halves. The interpreter follows the manual, and adds both.",
        ),
        _ => None,
    }
}

/// Returns whether a row is a pure computation of sm_61. The row's place among such rows determines
/// its random operands.
fn is_numbered(row: &&FormRow) -> bool {
    let is_current = row.removed.is_none_or(|(target, _)| target > 61) && row.target <= 80;
    let is_vector = row.form.starts_with("mov.v2") || row.form.starts_with("mov.v4");
    is_current && !is_vector && !(row.opcode == Opcode::Cvt && is_special(row))
}

/// Returns whether a row does more than compute.
fn has_effect(row: &FormRow) -> bool {
    use ClassRule::Always;
    use Opcode::*;
    matches!(row.opcode, Ld | Ldu | St | Prefetch | Prefetchu | Cp | Alloca | Stackrestore | Stacksave | Atom | Red)
        || matches!(row.opcode, Cvta | Isspacep | Mov | Bra | Brx | Call | Ret | Exit | Pmevent | Nanosleep)
        || matches!(instruction_of(row.opcode).class, Always(InstructionClass::Barrier | InstructionClass::Warp))
        || row.opcode == Activemask
        || row.opcode == Cvt && is_special(row)
}

/// Returns the kernels of every row that is compared and whose name begins with `prefix`.
pub fn kernels(prefix: &str) -> Vec<Kernel> {
    let mut kernels = Vec::new();
    let mut add = |forms: Vec<SampleForm>| {
        for group in chunks(forms) {
            let target = if group[0].row.target > 61 { 80 } else { 61 };
            kernels.push(Kernel { number: kernels.len(), target, forms: group });
        }
    };
    let numbered: HashSet<&str> =
        RECORDED.lines().take(NUMBERED).filter_map(|line| line.split_once(' ')).map(|(_, name)| name).collect();
    let is_compared = |row: &&FormRow| left_out(row).is_none();
    let is_pure = |row: &&'static FormRow| is_numbered(row) && row.target <= 61 && is_compared(row) && !has_effect(row);
    let is_recorded = |row: &'static FormRow| {
        let mut random = Random::new(0);
        choices(row).iter().any(|choice| numbered.contains(&form(row, choice, &mut random).name[..]))
    };
    // A row that was added later has no number, so that the numbers of the other rows stay the
    // same.
    let is_added = |row: &&'static FormRow| is_pure(row) && !is_recorded(row);
    let is_first = |row: &&'static FormRow| is_pure(row) && !is_added(row);
    let counted = ROWS.iter().filter(|row| is_numbered(row) && !is_added(row)).enumerate();
    for (at, row) in counted.filter(|(_, row)| is_first(row)) {
        let mut random = Random::new(at as u64);
        let mut forms: Vec<SampleForm> = choices(row).iter().map(|choice| form(row, choice, &mut random)).collect();
        forms.sort_by_key(|form| form.types.clone());
        add(forms);
    }
    // The operands of these rows depend on their text alone.
    for row in ROWS.iter().filter(is_compared).filter(|row| !is_first(row)) {
        let seed = row.form.bytes().fold(0u64, |seed, byte| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        let mut random = Random::new(seed);
        let one = |choice: &Vec<Option<Modifier>>| match has_effect(row) {
            true => effects::form(row, choice, &mut random),
            false => Some(form(row, choice, &mut random)),
        };
        let mut forms: Vec<SampleForm> = choices(row).iter().filter_map(one).collect();
        forms.sort_by_key(|form| form.types.clone());
        add(forms);
    }
    kernels.retain(|kernel| kernel.forms.iter().any(|form| form.name.starts_with(prefix)));
    kernels
}

/// Returns the forms in groups that take operands of the same types.
fn chunks(forms: Vec<SampleForm>) -> Vec<Vec<SampleForm>> {
    let mut groups: Vec<Vec<SampleForm>> = Vec::new();
    for form in forms {
        match groups.last_mut() {
            Some(group) if group.len() < FORMS && group[0].types == form.types && !is_last(&form) => group.push(form),
            _ => groups.push(vec![form]),
        }
    }
    groups
}

/// Returns whether threads leave the kernel at the form.
fn is_last(form: &SampleForm) -> bool {
    matches!(form.row.opcode, Opcode::Ret | Opcode::Exit)
}

/// Returns every choice of modifiers.
fn choices(row: &FormRow) -> Vec<Vec<Option<Modifier>>> {
    row.slots().iter().fold(vec![Vec::new()], |all, slot| {
        let here: Vec<_> =
            slot.optional.then_some(None).into_iter().chain(slot.alternatives.iter().map(Some)).collect();
        all.iter().flat_map(|first| here.iter().map(|m| [first.clone(), vec![*m]].concat())).collect()
    })
}

fn form(row: &'static FormRow, choice: &[Option<Modifier>], random: &mut Random) -> SampleForm {
    let mut name = row.opcode.to_string();
    choice.iter().flatten().for_each(|m| name += &format!(".{m}"));
    let (mut result, mut second, mut types, mut texts) = (Type::B32, false, Vec::new(), Vec::new());
    for operand in row.operands() {
        let there = match operand.presence {
            Presence::Always => true,
            Presence::Optional => random.below(2) == 1,
            Presence::With(slot) => choice[usize::from(slot)].is_some(),
        };
        if !there {
            continue;
        }
        if operand.kind == OperandKind::Constant {
            texts.push(random.below(256).to_string());
            continue;
        }
        let ty = operand_type(operand, choice);
        if operand.destination {
            result = ty;
            second = operand.paired;
            let bar = if second { "|%p6" } else { "" };
            texts.push(format!("{}{}{bar}", register(ty, 0), selection(operand.selection, random)));
        } else {
            types.push(ty);
            let not = if operand.negatable && random.below(2) == 1 { "!" } else { "" };
            let minus = if operand.signed && random.below(4) == 0 { "-" } else { "" };
            let register = register(ty, types.len());
            texts.push(format!("{not}{minus}{register}{}", selection(operand.selection, random)));
        }
    }
    // At most one operand of `vmad` is negated.
    let mut negated = false;
    for text in &mut texts {
        if text.starts_with('-') && std::mem::replace(&mut negated, true) {
            text.remove(0);
        }
    }
    let approximate = choice.iter().flatten().any(|m| matches!(m, Modifier::Approx | Modifier::Full));
    let text = format!("{name} {}", texts.join(", "));
    // The carry is the low bit of the last operand.
    let before = match row.opcode {
        Opcode::Addc | Opcode::Subc | Opcode::Madc => "and.b32 %r7, %r4, 1;\nadd.cc.u32 %r7, %r7, 0xffffffff;\n",
        _ => "",
    };
    let flag = if choice.contains(&Some(Modifier::Cc)) {
        "addc.u32 %r7, 0, 0;\ncvt.u64.u32 %d7, %r7;\n"
    } else if second {
        "selp.u64 %d7, 1, 0, %p6;\n"
    } else {
        "mov.u64 %d7, 0;\n"
    };
    let (before, after) = (before.to_string(), flag.to_string() + &word(result, 0, "%d6"));
    SampleForm { row, name, before, text, after, results: [result, Type::B64], types, approximate }
}

fn operand_type(operand: &OperandForm, choice: &[Option<Modifier>]) -> Type {
    let slot = |i: u8| choice[usize::from(i)].and_then(Modifier::ty).expect("a type stands in the slot");
    match operand.ty {
        OperandType::Fixed(ty) => ty,
        OperandType::Slot(i) => slot(i),
        OperandType::Wide(i) => slot(i).doubled().expect("there is a type twice as wide"),
        OperandType::None => panic!("an operand of a computation has a type"),
    }
}

/// Returns the register of a type by its number.
pub fn register(ty: Type, n: usize) -> String {
    match ty.bits() {
        1 => format!("%p{n}"),
        16 => format!("%h{n}"),
        64 => format!("%d{n}"),
        _ => format!("%r{n}"),
    }
}

/// Draws the part of a register that an instruction takes.
fn selection(selection: Selection, random: &mut Random) -> String {
    let mut digit = |n: u64| random.below(n).to_string();
    match selection {
        Selection::None => String::new(),
        Selection::Part | Selection::OnePart => match (digit(3).as_str(), selection) {
            ("0", Selection::Part) => String::new(),
            ("1", _) => format!(".h{}", digit(2)),
            _ => format!(".b{}", digit(4)),
        },
        Selection::Halves => format!(".h{}{}", digit(4), digit(4)),
        Selection::Bytes => format!(".b{}{}{}{}", digit(8), digit(8), digit(8), digit(8)),
        Selection::HalfMask => ["", ".h0", ".h1", ".h10"][random.below(4) as usize].to_string(),
        Selection::ByteMask => ["", ".b0", ".b2", ".b31", ".b320", ".b3210"][random.below(6) as usize].to_string(),
    }
}

impl Kernel {
    /// Returns the operands of each thread.
    pub fn input(&self) -> Vec<[u64; 4]> {
        let mut random = Random::new(0x1000 + self.number as u64);
        (0..THREADS).map(|_| operands(&self.forms[0].types, &mut random)).collect()
    }

    /// Returns the words that the kernel writes: two for each form and thread.
    pub fn words(&self) -> usize {
        2 * self.forms.len() * THREADS
    }

    /// Returns the module: an entry `kernel` of the addresses of the operands and of the results.
    pub fn text(&self) -> String {
        let version = if self.target > 61 { "8.1" } else { "7.8" };
        let mut text = format!(
            ".version {version}\n.target sm_{}\n.address_size 64\n{DECLARATIONS}\
            .visible .entry kernel(.param .u64 in, .param .u64 out)\n{{\n\
            .reg .pred %p<24>;\n.reg .b16 %h<24>;\n.reg .b32 %r<24>;\n.reg .b64 %d<24>;\n\
            .local .align 16 .b8 local_cell[16];\n\
            ld.param.u64 %d8, [in];\ncvta.to.global.u64 %d8, %d8;\nmov.u64 %d11, %d8;\n\
            ld.param.u64 %d9, [out];\ncvta.to.global.u64 %d9, %d9;\n\
            mov.u32 %r8, %ctaid.x;\nmov.u32 %r9, %ntid.x;\nmov.u32 %r10, %tid.x;\nmad.lo.u32 %r8, %r8, %r9, %r10;\n\
            mad.wide.u32 %d8, %r8, 32, %d8;\nmad.wide.u32 %d9, %r8, 16, %d9;\n",
            self.target
        );
        for n in 1..=4 {
            let at = 8 * (n - 1);
            writeln!(
                text,
                "ld.global.u64 %d{n}, [%d8+{at}];\ncvt.u32.u64 %r{n}, %d{n};\ncvt.u16.u64 %h{n}, %d{n};\n\
                 and.b32 %r7, %r{n}, 1;\nsetp.ne.u32 %p{n}, %r7, 0;"
            )
            .expect("a string takes all");
        }
        for (i, SampleForm { before, text: instruction, after, .. }) in self.forms.iter().enumerate() {
            let at = 16 * i * THREADS;
            writeln!(text, "{before}{instruction};\n{after}st.global.v2.u64 [%d9+{at}], {{%d6, %d7}};")
                .expect("a string takes all");
        }
        text + "ret;\n}\n"
    }
}

/// Returns both results with one pattern for every NaN. Payloads of `f64` are kept, except for
/// atomic additions, which units of L2 compute.
pub fn canonical(form: &SampleForm, words: [u64; 2]) -> [u64; 2] {
    let nan = |bits: u64, infinity: u64, sign: u64| if bits & (sign - 1) > infinity { sign - 1 } else { bits };
    std::array::from_fn(|i| {
        let (ty, bits) = (form.results[i], words[i]);
        match ty {
            Type::F16 => nan(bits, 0x7c00, 1 << 15),
            Type::F16x2 => nan(bits & 0xffff, 0x7c00, 1 << 15) | nan(bits >> 16, 0x7c00, 1 << 15) << 16,
            Type::F32 => nan(bits, 0x7f80_0000, 1 << 31),
            Type::F64 if matches!(form.row.opcode, Opcode::Atom | Opcode::Red) => {
                nan(bits, 0x7ff0_0000_0000_0000, 1 << 63)
            }
            _ if ty.class() == TypeClass::Predicate => bits & 1,
            _ => bits,
        }
    })
}
