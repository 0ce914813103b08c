//! Loads and stores: every form of `ld`, `ldu` and `st` except call arguments. Each form runs in
//! every space, with addresses of the space and with generic addresses. Registers have the type's
//! width or are wider.

use super::integer::{number, signed};
use kernel_dsl::compiler::ptx::form::FormRow;
use kernel_dsl::compiler::ptx::table::ROWS;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Space, Type, parse};
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Launch, Options, ParameterValue, Program};

/// The initial memory, with alternating high and low bytes.
const THERE: [u64; 2] = [0x81_7f_fe_01_80_00_ff_92, 0x13_f4_00_80_ff_7f_c6_a8];
/// The stored values, of which each element takes the lowest bytes.
const STORED: [u64; 4] = [0xf1e2_d3c4_b5a6_9788, 0x0123_4567_89ab_cdef, 0x7fff_8000_ffff_0001, 0xaaaa_5555_3333_cccc];

fn choices(row: &FormRow) -> Vec<Vec<Modifier>> {
    row.slots().iter().fold(vec![vec![]], |all, slot| {
        let mut here: Vec<Option<Modifier>> = slot.alternatives.iter().map(Some).collect();
        here.extend(slot.optional.then_some(None));
        all.iter().flat_map(|c| here.iter().map(|m| c.iter().copied().chain(*m).collect())).collect()
    })
}

/// Runs `body` on one thread, with [`THERE`] in each space. Returns the words that it stores in
/// `out`.
fn run(body: &str) -> [u64; 6] {
    let bytes: Vec<String> = THERE.iter().flat_map(|w| w.to_le_bytes()).map(|b| b.to_string()).collect();
    let bytes = bytes.join(", ");
    let [low, high] = THERE;
    let text = format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.global .align 16 .b8 in_global[16] = {{{bytes}}};\n\
         .const .align 16 .b8 in_const[16] = {{{bytes}}};\n.shared .align 16 .b8 in_shared[16];\n\
         .visible .entry kernel(.param .u64 out, .param .align 16 .b8 in_param[16])\n{{\n\
         .local .align 16 .b8 in_local[16];\n.reg .b64 %d<4>, %w<4>;\n.reg .b32 %r<4>;\n.reg .b16 %h<4>;\n\
         ld.param.u64 %d0, [out];\nst.shared.u64 [in_shared], {low:#x};\nst.shared.u64 [in_shared+8], {high:#x};\n\
         st.local.u64 [in_local], {low:#x};\nst.local.u64 [in_local+8], {high:#x};\n{body}\nret;\n}}\n"
    );
    let module = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let program = Program::decode(&module, "kernel").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut out = [0u64; 6];
    let bytes = ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut out));
    let launch = Launch {
        grid: [1; 3],
        block: [1; 3],
        dynamic_shared: 0,
        buffers: vec![BufferArgument { name: "out".into(), bytes }],
        parameters: vec![
            ParameterValue::Address { buffer: 0, offset: 0 },
            ParameterValue::Bytes(THERE.iter().flat_map(|w| w.to_le_bytes()).collect()),
        ],
        options: Options::default(),
    };
    let outcome = program.run(launch).unwrap();
    assert!(outcome.report.findings.is_empty(), "{}\n{text}", outcome.report);
    out
}

/// Returns the possible spaces of the instruction, each with the instructions that compute an
/// address, and the address operand.
fn places(space: Option<Space>, writes: bool) -> Vec<(Space, String, String)> {
    match space {
        Some(Space::Param) => vec![(Space::Param, String::new(), "[in_param]".to_string())],
        Some(space) => {
            let by_name = (space, String::new(), format!("[in_{space}]"));
            let by_register = (space, format!("mov.u64 %d1, in_{space};\nsub.u64 %d1, %d1, 4;"), "[%d1+4]".to_string());
            vec![by_name, by_register]
        }
        None => [Space::Global, Space::Shared, Space::Local, Space::Const]
            .into_iter()
            .filter(|space| !writes || *space != Space::Const)
            .map(|space| (space, format!("mov.u64 %d1, in_{space};\ncvta.{space}.u64 %d1, %d1;"), "[%d1]".to_string()))
            .collect(),
    }
}

/// Returns element `i` of the initial memory.
fn element(i: usize, bytes: usize) -> u64 {
    let all: Vec<u8> = THERE.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&all[i * bytes..][..bytes]);
    u64::from_le_bytes(word)
}

/// Returns the instruction with its modifiers, its number of elements, and their type.
fn parts(row: &FormRow, modifiers: &[Modifier]) -> (String, usize, Type) {
    let text: String = modifiers.iter().map(|m| format!(".{m}")).collect();
    let count = modifiers.iter().find_map(|m| m.vector()).unwrap_or(1);
    (format!("{}{text}", row.opcode), count, modifiers.iter().find_map(|m| m.ty()).unwrap())
}

/// Returns the registers that can hold an element: of the type's width, and wider ones for integers
/// and bits.
fn registers(ty: Type) -> Vec<(&'static str, u32)> {
    let float = matches!(ty, Type::F32 | Type::F64);
    [("%h", 16), ("%r", 32), ("%w", 64)]
        .into_iter()
        .filter(|(_, bits)| if float { *bits == ty.bits() } else { *bits >= ty.bits() })
        .collect()
}

fn list(prefix: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("{prefix}{i}")).collect();
    if count == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
}

#[test]
fn every_load_reads_its_bytes() {
    let mut count = 0;
    for row in ROWS.iter().filter(|r| matches!(r.opcode, Opcode::Ld | Opcode::Ldu)) {
        for modifiers in choices(row) {
            let (text, n, ty) = parts(row, &modifiers);
            let space = modifiers.iter().find_map(|m| m.space());
            for (at, get, address) in places(space, false) {
                // `ldu` reads global memory only.
                if row.opcode == Opcode::Ldu && at != Space::Global {
                    continue;
                }
                for (prefix, bits) in registers(ty) {
                    let store: String =
                        (0..n).map(|i| format!("st.global.b{bits} [%d0+{}], {prefix}{i};\n", 8 * i)).collect();
                    let out = run(&format!("{get}\n{text} {}, {address};\n{store}", list(prefix, n)));
                    for (i, got) in out.into_iter().take(n).enumerate() {
                        let loaded = element(i, ty.bits() as usize / 8);
                        let expected = if signed(ty) { number(loaded, ty) as u64 } else { loaded };
                        let expected = expected & u64::MAX >> (64 - bits);
                        assert_eq!(got, expected, "element {i} of {text} from {at} to {bits} bits");
                    }
                    count += 1;
                }
            }
        }
    }
    assert!(count > 4000, "{count}");
}

#[test]
fn every_store_writes_its_bytes() {
    let mut count = 0;
    for row in ROWS.iter().filter(|r| r.opcode == Opcode::St) {
        for modifiers in choices(row) {
            let (text, n, ty) = parts(row, &modifiers);
            let space = modifiers.iter().find_map(|m| m.space());
            if space == Some(Space::Param) {
                continue;
            }
            for (at, get, address) in places(space, true) {
                for (prefix, bits) in registers(ty) {
                    let set: String = (0..n)
                        .map(|i| format!("mov.b{bits} {prefix}{i}, {:#x};\n", STORED[i] & u64::MAX >> (64 - bits)))
                        .collect();
                    let out = run(&format!(
                        "{get}\n{set}\n{text} {address}, {};\nld.{at}.u64 %d2, [in_{at}];\nld.{at}.u64 %d3, [in_{at}+8];\n\
                         st.global.u64 [%d0], %d2;\nst.global.u64 [%d0+8], %d3;",
                        list(prefix, n)
                    ));
                    let mut expected: Vec<u8> = THERE.iter().flat_map(|w| w.to_le_bytes()).collect();
                    let bytes = ty.bits() as usize / 8;
                    for (i, value) in STORED.iter().enumerate().take(n) {
                        expected[i * bytes..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                    }
                    let left: Vec<u8> = out[..2].iter().flat_map(|w| w.to_le_bytes()).collect();
                    assert_eq!(left, expected, "{text} to {at} from {bits} bits");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 3000, "{count}");
}
