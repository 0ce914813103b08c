//! A kernel for a single form of an instruction, run on many operands.

use kernel_dsl::compiler::ptx::form::{FormRow, OperandForm, OperandKind, OperandType, Presence, Selection};
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Selector, Type, parse};
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Check, Checks, Launch, Options, ParameterValue, Program};
use std::fmt::Write;

/// A form with a choice for each of its modifiers and selectors.
pub struct Form {
    pub row: &'static FormRow,
    /// The modifiers in the text.
    pub modifiers: Vec<Modifier>,
    /// The types that the modifiers name.
    pub named: Vec<Type>,
    /// The instruction.
    pub text: String,
    /// The type of each operand of the form.
    pub types: Vec<Type>,
    /// The selector of each operand of the form, and whether it is negated.
    pub chosen: Vec<(Option<Selector>, bool)>,
    /// The constant of `lop3`.
    pub constant: u64,
    /// The width of the result register in bits.
    pub width: u32,
    /// Whether the result register is wider than its type.
    widened: bool,
    /// The number of tested values of more than 16 bits: fewer for a row with very many forms.
    tried: u64,
    paired: bool,
    /// The text of the kernel.
    kernel: String,
}

/// The results of a lane.
#[derive(Clone, Copy)]
pub struct Result {
    pub d: u64,
    pub second: bool,
    pub carry: bool,
}

/// Returns the possible selectors of an operand; the first one is `None` if a selector is optional.
fn selectors(form: &OperandForm) -> Vec<Option<Selector>> {
    use Selector::{Byte, Bytes, Half, Halves};
    let some = |list: &[Selector]| list.iter().copied().map(Some).collect::<Vec<_>>();
    let mut all = match form.selection {
        Selection::None => vec![None],
        Selection::Part => some(&[Byte(1), Half(1), Byte(3), Half(0)]),
        Selection::OnePart => return some(&[Byte(2), Half(1), Byte(0), Half(0)]),
        Selection::Halves => some(&[Halves([3, 0]), Halves([1, 2]), Halves([2, 2])]),
        Selection::Bytes => some(&[Bytes([7, 0, 2, 5].map(Some)), Bytes([3, 4, 6, 1].map(Some))]),
        Selection::HalfMask => some(&[Half(1), Half(0), Halves([1, 0])]),
        Selection::ByteMask => some(&[Byte(2), Bytes([Some(3), Some(1), None, None]), Bytes([3, 2, 1, 0].map(Some))]),
    };
    if form.selection != Selection::None {
        all.insert(0, None);
    }
    all
}

/// Returns every combination of modifiers, each with enough variants to cover all selectors and
/// signs of one operand.
pub fn forms(row: &'static FormRow) -> Vec<Form> {
    let mut choices: Vec<Vec<Option<Modifier>>> = vec![vec![]];
    for slot in row.slots() {
        let here: Vec<_> = slot.alternatives.iter().map(Some).chain(slot.optional.then_some(None)).collect();
        choices = choices.iter().flat_map(|c| here.iter().map(|m| c.iter().copied().chain([*m]).collect())).collect();
    }
    let variants = row.operands().iter().map(|o| selectors(o).len()).max().unwrap_or(1);
    let signs = if row.operands().iter().any(|o| o.signed) { 4 } else { 1 };
    let constants: &[u64] = if row.opcode == Opcode::Lop3 { &[0x00, 0xe8, 0x96, 0x1b, 0xff] } else { &[0] };
    // A conversion can have a wider result register.
    let widths: &[u32] = if row.opcode == Opcode::Cvt { &[0, 64] } else { &[0] };
    let mut forms = Vec::new();
    let tried = if choices.len() * variants > 48 { 256 } else { 1024 };
    for choice in &choices {
        for variant in 0..variants.max(signs) {
            for &constant in constants {
                for &width in widths {
                    forms.extend(form(row, choice, variant, constant, width).map(|form| Form { tried, ..form }));
                }
            }
        }
    }
    forms
}

fn form(row: &'static FormRow, choice: &[Option<Modifier>], variant: usize, constant: u64, width: u32) -> Option<Form> {
    let modifiers: Vec<Modifier> = choice.iter().flatten().copied().collect();
    let mut text = row.opcode.to_string();
    modifiers.iter().for_each(|m| _ = write!(text, ".{m}"));
    let (mut types, mut chosen, mut given) = (Vec::new(), Vec::new(), Vec::new());
    let (mut registers, mut loads) = (String::new(), String::new());
    let mut paired = false;
    let mut wide = 0;
    for (i, operand) in row.operands().iter().enumerate() {
        let there = match operand.presence {
            Presence::Always | Presence::Optional => true,
            Presence::With(slot) => choice[usize::from(slot)].is_some(),
        };
        if !there {
            continue;
        }
        let slot = |i: u8| choice[usize::from(i)].and_then(Modifier::ty);
        let ty = match operand.ty {
            OperandType::None => return None,
            OperandType::Fixed(t) => t,
            OperandType::Slot(i) => slot(i)?,
            OperandType::Wide(i) => slot(i)?.doubled()?,
        };
        types.push(ty);
        if operand.kind == OperandKind::Constant {
            given.push(constant.to_string());
            chosen.push((None, false));
            continue;
        }
        let list = selectors(operand);
        // Each operand has another selector, so that they differ.
        let selector = list[(variant + if variant == 0 { 0 } else { i * variant }) % list.len()];
        let sign = operand.signed && [0b000, 0b001, 0b010, 0b100][variant % 4] >> (i.max(1) - 1) & 1 == 1;
        let mut bits = if ty.bits() == 8 { 32 } else { ty.bits() };
        if operand.destination && operand.wider && width > bits {
            bits = width;
        } else if operand.destination && width != 0 {
            return None;
        }
        let name = format!("x{i}");
        let class = if bits == 1 { "pred".to_string() } else { format!("b{bits}") };
        _ = writeln!(registers, ".reg .{class} {name};");
        let mut operand_text = format!("{}{name}", if sign { "-" } else { "" });
        selector.iter().for_each(|s| _ = write!(operand_text, "{s}"));
        if operand.destination {
            wide = bits;
            if operand.paired {
                paired = true;
                registers += ".reg .pred second;\n";
                operand_text += "|second";
            }
        } else {
            let at = 8 * chosen.iter().zip(row.operands()).filter(|(_, o)| !o.destination).count();
            _ = match bits {
                1 => writeln!(loads, "ld.global.b32 t, [%d3+{at}];\nand.b32 t, t, 1;\nsetp.ne.u32 {name}, t, 0;"),
                _ => writeln!(loads, "ld.global.b{bits} {name}, [%d3+{at}];"),
            };
        }
        chosen.push((selector, sign));
        given.push(operand_text);
    }
    _ = write!(text, " {}", given.join(", "));
    let (set, get) = ("add.cc.u32 t, t, 0xffffffff;", "addc.u32 t, 0, 0;");
    let carries = matches!(row.opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc) || modifiers.contains(&Modifier::Cc);
    let (set, get) =
        if carries { (format!("ld.global.b32 t, [%d3+32];\n{set}"), get) } else { (String::new(), "mov.u32 t, 0;") };
    let result = match wide {
        1 => "selp.u64 r, 1, 0, x0;".to_string(),
        64 => "mov.b64 r, x0;".to_string(),
        bits => format!("cvt.u64.u{bits} r, x0;"),
    };
    let second = if paired { "selp.u32 u, 1, 0, second;" } else { "mov.u32 u, 0;" };
    let kernel = format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 out, .param .u64 in)\n{{\n\
         .reg .b32 t, u, %r<2>;\n.reg .b64 r, %d<4>;\n{registers}\
         ld.param.u64 %d0, [out];\nld.param.u64 %d1, [in];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n\
         mad.lo.u32 %r0, %r1, {BLOCK}, %r0;\nmad.wide.u32 %d2, %r0, 16, %d0;\nmad.wide.u32 %d3, %r0, 40, %d1;\n\
         {loads}{set}\n{text};\n{get}\n{result}\n{second}\nst.global.u64 [%d2], r;\n\
         st.global.v2.u32 [%d2+8], {{u, t}};\nret;\n}}\n"
    );
    Some(Form {
        row,
        named: modifiers.iter().filter_map(|m| m.ty()).collect(),
        modifiers,
        text,
        types,
        chosen,
        constant,
        width: wide,
        widened: width != 0,
        tried: 0,
        paired,
        kernel,
    })
}

/// The threads of a block, each with separate operands.
const BLOCK: u64 = 256;

/// Returns boundary values of every format, and others.
fn pool() -> Vec<u64> {
    let mut pool: Vec<u64> = vec![0, 1, 2, 3, 7, 8, 15, 16, 23, 31, 32, 33, 63, 64, 65, 127, 128, 200, 255, 256];
    for bits in [15u32, 16, 23, 24, 31, 32, 53, 63] {
        pool.extend([(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
    }
    pool.extend([0x7fff_ffff_ffff_ffff, 0x0001_0203_0405_0607, 0x8081_8283_8485_8687]);
    // Halves, in pairs and in groups of four.
    for h in [0x0001u64, 0x03ff, 0x0400, 0x3bff, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7e01, 0x8000, 0x8001, 0xbc00, 0xfc00]
    {
        pool.extend([h, h << 16 | 0x3c00, h << 16 | h]);
    }
    for x in [
        0.5f32,
        1.0,
        1.5,
        2.5,
        3.5,
        0.1,
        1e-40,
        1e-45,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
        65504.0,
        65520.0,
        3e9,
        127.5,
        255.5,
        32767.5,
        1e-3,
    ] {
        pool.extend([x, -x].map(|x| u64::from(x.to_bits())));
        // The same word twice, so that doubles get it as their upper half.
        pool.extend([u64::from(x.to_bits()) << 32 | u64::from(x.to_bits())]);
    }
    for x in [
        0.5,
        1.0,
        1.5,
        2.5,
        0.1,
        1e-310,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        1e300,
        3e9,
        1e19,
        255.5,
        1e-46,
        3.4028235677973366e38,
        65519.99,
    ] {
        pool.extend([f64::to_bits(x), f64::to_bits(-x)]);
    }
    pool.extend(pool.clone().into_iter().map(|x| !x));
    pool
}

/// Returns a repeatable sequence of numbers.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 0x1234_5678u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Returns the lanes' operands: all values of a single operand of at most 16 bits, otherwise
/// boundary and random values.
pub fn operands(form: &Form) -> Vec<([u64; 4], bool)> {
    let (pool, mut random) = (pool(), numbers());
    let sources: Vec<Type> = form
        .row
        .operands()
        .iter()
        .zip(&form.types)
        .filter(|(o, _)| !o.destination && o.kind != OperandKind::Constant)
        .map(|(_, t)| *t)
        .collect();
    let cut = |mut x: [u64; 4]| {
        for (x, ty) in x.iter_mut().zip(&sources) {
            *x &= u64::MAX >> (64 - ty.bits());
        }
        // The bit at which a search begins is below 32.
        if form.row.opcode == Opcode::Fns {
            (x[1], x[2]) = (x[1] % 32, u64::from((x[2] % 70) as u32).wrapping_sub(35) & 0xffff_ffff);
        }
        x
    };
    let small = sources.len() == 1 && sources[0].bits() <= 16;
    // A wider register gets the same value. For floats to integers `.sat` has no effect, and for
    // integers to floats it leaves only 0 and 1; there `.ftz` has no effect.
    let finished = form.modifiers.iter().any(|m| matches!(m, Modifier::Sat | Modifier::Ftz));
    let crosses =
        form.named.len() > 1 && super::float::is_float(form.named[0]) != super::float::is_float(form.named[1]);
    let all = small && !form.widened && !(finished && crosses);
    let count = if all { (1 << sources[0].bits()).max(BLOCK) } else { form.tried };
    (0..count)
        .map(|i: u64| {
            let near = |k: u64| {
                let i = i as usize;
                pool[(i * [1, 7, 11, 13][k as usize] + i / pool.len() * [0, 5, 3, 2][k as usize]) % pool.len()]
            };
            let mut x = [0, 1, 2, 3].map(|k| if i % 4 == 3 { random() } else { near(k) });
            if all {
                x[0] = i;
            }
            // Equal numbers would otherwise be rare.
            if i % 16 == 5 {
                x[1] = x[0];
            }
            // Sums of floats with near exponents round more often.
            if i % 8 == 7 {
                x[2] = x[0] ^ random() >> 40;
            }
            (cut(x), i / 3 % 2 == 1)
        })
        .collect()
}

/// Runs the form in the interpreter.
pub fn run(form: &Form, lanes: &[([u64; 4], bool)]) -> Vec<Result> {
    let module = parse(&form.kernel).unwrap_or_else(|e| panic!("{}: {e}\n{}", form.text, form.kernel));
    let program = Program::decode(&module, "kernel").unwrap_or_else(|e| panic!("{}: {e}", form.text));
    let input: Vec<u64> = lanes.iter().flat_map(|(x, carry)| x.iter().copied().chain([u64::from(*carry)])).collect();
    let mut out = vec![0u64; lanes.len() * 2];
    let launch = Launch {
        grid: [lanes.len() as u32 / BLOCK as u32, 1, 1],
        block: [BLOCK as u32, 1, 1],
        dynamic_shared: 0,
        buffers: vec![
            BufferArgument { name: "out".into(), bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut out)) },
            BufferArgument { name: "in".into(), bytes: ArgumentBytes::Shared(bytemuck::cast_slice(&input)) },
        ],
        parameters: vec![
            ParameterValue::Address { buffer: 0, offset: 0 },
            ParameterValue::Address { buffer: 1, offset: 0 },
        ],
        // All values of an operand are many lanes; other forms already check definedness.
        options: Options {
            checks: if lanes.len() > 1024 { Checks::Values } else { Checks::All },
            ..Options::default()
        },
    };
    let outcome = program.run(launch).unwrap();
    // Divisors of 0 and fields beyond bit 255 are not specified.
    let unspecified = matches!(form.row.opcode, Opcode::Div | Opcode::Rem | Opcode::Bfe | Opcode::Bfi);
    let known = |check| check == Check::Approximate || unspecified && check == Check::UndefinedValue;
    assert!(outcome.report.findings.iter().all(|f| known(f.check)), "{}: {}", form.text, outcome.report);
    assert!(!form.paired || out.iter().skip(1).step_by(2).any(|w| w & 1 == 1), "{}", form.text);
    out.chunks_exact(2).map(|w| Result { d: w[0], second: w[1] & 1 == 1, carry: w[1] >> 32 & 1 == 1 }).collect()
}
