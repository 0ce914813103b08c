//! Forms of the instruction table as kernels: every choice of modifiers, with the parts of operands
//! drawn at random.

use super::operands::{Random, operands};
use kernel_dsl::compiler::ptx::form::{OperandForm, OperandKind, OperandType, Presence, Row, Selection};
use kernel_dsl::compiler::ptx::table::ROWS;
use kernel_dsl::compiler::ptx::words::Class;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};
use std::fmt::Write;

/// Operands that each form is run on.
pub const THREADS: usize = 1024;
/// Forms of a kernel at most.
const FORMS: usize = 24;

/// A form with a choice of modifiers and operands.
pub struct Form {
    /// The row of the table.
    pub row: &'static Row,
    /// Opcode and modifiers.
    pub name: String,
    /// The instruction.
    pub text: String,
    /// The type of the result.
    pub result: Type,
    /// Whether a second predicate is written.
    pub second: bool,
    /// The types of the operands read.
    pub types: Vec<Type>,
    /// Whether the manual gives a bound instead of a value.
    pub approximate: bool,
}

/// Forms with the same operands, run one after the other.
pub struct Kernel {
    /// Number among the kernels.
    pub number: usize,
    /// At least one.
    pub forms: Vec<Form>,
}

/// Returns why a row is not compared with a card; `None` for a pure computation.
pub fn left_out(row: &Row) -> Option<&'static str> {
    use Opcode::*;
    if row.target > 61 {
        return Some("sm_61 does not have it");
    }
    Some(match row.opcode {
        Ld | Ldu | St | Prefetch | Prefetchu | Cp | Alloca | Stackrestore | Stacksave => "accesses memory",
        Atom | Red => "is atomic on memory",
        Cvta | Isspacep | Istypep => "converts or examines an address",
        Mov => "moves bits; every kernel of the comparison does",
        Tex | Tld4 | Txq | Suld | Sust | Sured | Suq => "reads or writes a texture or surface",
        Bra | Brx | Call | Ret | Exit | Trap | Brkpt | Pmevent | Nanosleep => "is control flow",
        Bar | Barrier | Membar | Fence => "synchronizes threads",
        Shfl | Vote | Match | Redux | Activemask => "exchanges values between the lanes of a warp",
        _ => return None,
    })
}

/// Returns why a form's results may differ from those of a card later than sm_61; `None` where the
/// results must agree.
pub fn explanation(form: &Form) -> Option<&'static str> {
    use Opcode::*;
    let scalar = matches!(form.row.opcode, Vabsdiff | Vadd | Vmad | Vmax | Vmin | Vset | Vshl | Vshr | Vsub);
    scalar.then_some(
        "sm_61 has machine instructions for the scalar video instructions (`VADD`, `VABSDIFF`, `VMNMX`, `VSET`, `VSHL`, \
         `VSHR`, `VMAD`). Later GPUs have none. The code that replaces them departs from the manual where the result \
         is saturated, merged into c or combined with c. The interpreter follows the manual.",
    )
}

/// Returns whether a row has a number among the recorded results, which determines its random
/// operands. Rows that were added later have none.
fn is_numbered(row: &&Row) -> bool {
    let is_current = row.gone.is_none_or(|(target, _)| target > 61);
    let is_special = row.opcode == Opcode::Cvt && row.operands()[1].kind == OperandKind::Special;
    let is_vector = row.form.starts_with("mov.v2") || row.form.starts_with("mov.v4");
    is_current && !is_special && !is_vector
}

/// Returns the kernels of every row that is compared and whose name begins with `prefix`.
pub fn kernels(prefix: &str) -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for (at, row) in ROWS.iter().filter(is_numbered).enumerate().filter(|(_, row)| left_out(row).is_none()) {
        let mut random = Random::new(at as u64);
        let mut forms: Vec<Form> = choices(row).iter().map(|choice| form(row, choice, &mut random)).collect();
        forms.sort_by_key(|form| form.types.clone());
        for group in chunks(forms) {
            kernels.push(Kernel { number: kernels.len(), forms: group });
        }
    }
    kernels.retain(|kernel| kernel.forms.iter().any(|form| form.name.starts_with(prefix)));
    kernels
}

/// Forms in groups that take operands of the same types.
fn chunks(forms: Vec<Form>) -> Vec<Vec<Form>> {
    let mut groups: Vec<Vec<Form>> = Vec::new();
    for form in forms {
        match groups.last_mut() {
            Some(group) if group.len() < FORMS && group[0].types == form.types => group.push(form),
            _ => groups.push(vec![form]),
        }
    }
    groups
}

/// Returns every choice of modifiers.
fn choices(row: &Row) -> Vec<Vec<Option<Modifier>>> {
    row.slots().iter().fold(vec![Vec::new()], |all, slot| {
        let here: Vec<_> =
            slot.optional.then_some(None).into_iter().chain(slot.alternatives.iter().map(Some)).collect();
        all.iter().flat_map(|first| here.iter().map(|m| [first.clone(), vec![*m]].concat())).collect()
    })
}

fn form(row: &'static Row, choice: &[Option<Modifier>], random: &mut Random) -> Form {
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
    Form { row, name, text, result, second, types, approximate }
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
fn register(ty: Type, n: usize) -> String {
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
        let mut text = ".version 7.8\n.target sm_61\n.address_size 64\n\
            .visible .entry kernel(.param .u64 in, .param .u64 out)\n{\n\
            .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<12>;\n.reg .b64 %d<12>;\n\
            ld.param.u64 %d8, [in];\ncvta.to.global.u64 %d8, %d8;\n\
            ld.param.u64 %d9, [out];\ncvta.to.global.u64 %d9, %d9;\n\
            mov.u32 %r8, %ctaid.x;\nmov.u32 %r9, %ntid.x;\nmov.u32 %r10, %tid.x;\nmad.lo.u32 %r8, %r8, %r9, %r10;\n\
            mad.wide.u32 %d8, %r8, 32, %d8;\nmad.wide.u32 %d9, %r8, 16, %d9;\n"
            .to_string();
        for n in 1..=4 {
            let at = 8 * (n - 1);
            writeln!(
                text,
                "ld.global.u64 %d{n}, [%d8+{at}];\ncvt.u32.u64 %r{n}, %d{n};\ncvt.u16.u64 %h{n}, %d{n};\n\
                 and.b32 %r7, %r{n}, 1;\nsetp.ne.u32 %p{n}, %r7, 0;"
            )
            .expect("a string takes all");
        }
        for (i, form) in self.forms.iter().enumerate() {
            let carry = matches!(form.row.opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc);
            let gives = form.name.contains(".cc");
            if carry {
                // The carry is the low bit of the last operand.
                text += "and.b32 %r7, %r4, 1;\nadd.cc.u32 %r7, %r7, 0xffffffff;\n";
            }
            writeln!(text, "{};", form.text).expect("a string takes all");
            let second = if gives {
                "addc.u32 %r7, 0, 0;\ncvt.u64.u32 %d7, %r7;\n"
            } else if form.second {
                "selp.u64 %d7, 1, 0, %p6;\n"
            } else {
                "mov.u64 %d7, 0;\n"
            };
            let first = match form.result.bits() {
                1 => "selp.u64 %d6, 1, 0, %p0;\n",
                16 => "cvt.u64.u16 %d6, %h0;\n",
                64 => "mov.b64 %d6, %d0;\n",
                _ => "cvt.u64.u32 %d6, %r0;\n",
            };
            let at = 16 * i * THREADS;
            writeln!(text, "{second}{first}st.global.v2.u64 [%d9+{at}], {{%d6, %d7}};").expect("a string takes all");
        }
        text + "ret;\n}\n"
    }
}

/// Returns a result with one pattern for every NaN, except for NaNs of `f64`, whose payloads are
/// kept.
pub fn canonical(form: &Form, bits: u64) -> u64 {
    let nan = |bits: u64, infinity: u64, sign: u64| if bits & (sign - 1) > infinity { sign - 1 } else { bits };
    match form.result {
        Type::F16 => nan(bits, 0x7c00, 1 << 15),
        Type::F16x2 => nan(bits & 0xffff, 0x7c00, 1 << 15) | nan(bits >> 16, 0x7c00, 1 << 15) << 16,
        Type::F32 => nan(bits, 0x7f80_0000, 1 << 31),
        _ if form.result.class() == Class::Predicate => bits & 1,
        _ => bits,
    }
}
