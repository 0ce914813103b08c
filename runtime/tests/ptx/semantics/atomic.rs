//! Atomic operations: every form of `atom` and `red`, in every space, by 32 lanes that access the
//! same address.

use super::Value as Expected;
use super::float::{flush, value};
use super::integer::number;
use kernel_dsl::compiler::ptx::form::FormRow;
use kernel_dsl::compiler::ptx::table::ROWS;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type, parse};
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Launch, Options, ParameterValue, Program};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Half, Single};

/// The space of the address.
#[derive(Clone, Copy, PartialEq, Debug)]
enum AtomicSpace {
    Global,
    Shared,
}

/// Returns every combination of the row's modifiers.
fn choices(row: &FormRow) -> Vec<Vec<Modifier>> {
    row.slots().iter().fold(vec![vec![]], |all, slot| {
        let mut here: Vec<Option<Modifier>> = slot.alternatives.iter().map(Some).collect();
        here.extend(slot.optional.then_some(None));
        all.iter().flat_map(|c| here.iter().map(|m| c.iter().copied().chain(*m).collect())).collect()
    })
}

/// Computes the new value in memory.
fn updated(modifiers: &[Modifier], ty: Type, place: AtomicSpace, old: u64, b: u64, c: u64) -> Expected {
    let has = |m| modifiers.contains(&m);
    let mask = u64::MAX >> (64 - ty.bits());
    let (x, y) = (number(old, ty), number(b, ty));
    Expected::Bits(match () {
        () if has(Modifier::And) => old & b,
        () if has(Modifier::Or) => old | b,
        () if has(Modifier::Xor) => old ^ b,
        () if has(Modifier::Exch) => b,
        () if has(Modifier::Cas) => {
            if old == b {
                c
            } else {
                old
            }
        }
        () if has(Modifier::Inc) => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        () if has(Modifier::Dec) => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        () if has(Modifier::Min) => {
            if x < y {
                old
            } else {
                b
            }
        }
        () if has(Modifier::Max) => {
            if x > y {
                old
            } else {
                b
            }
        }
        () => match ty {
            Type::F16 => return value(ty, sum::<Half>(old, b)),
            Type::F16x2 => {
                let part = |shift: u32| sum::<Half>(old >> shift & 0xffff, b >> shift & 0xffff);
                return Expected::Halves([part(0) as u16, part(16) as u16]);
            }
            // Singles flush subnormals in global memory, but not in shared memory.
            Type::F32 if place == AtomicSpace::Global => {
                return value(ty, flush(ty, sum::<Single>(flush(ty, old), flush(ty, b))));
            }
            Type::F32 => return value(ty, sum::<Single>(old, b)),
            Type::F64 => return value(ty, sum::<Double>(old, b)),
            _ => (x + y) as u64 & mask,
        },
    })
}

fn sum<F: Float>(a: u64, b: u64) -> u64 {
    (F::from_bits(a.into()) + F::from_bits(b.into())).value.to_bits() as u64
}

/// Returns the initial value in memory, and operands of 32 lanes, for a type.
fn operands(ty: Type, seed: u64) -> (u64, Vec<[u64; 2]>) {
    let mask = u64::MAX >> (64 - ty.bits());
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = state ^ state >> 31;
        let float = (x >> 40) as f64 / 4096.0 - 2000.0;
        match (seed % 4, ty) {
            // Few distinct values, so that comparisons succeed.
            (0, _) => x >> 60,
            (1, Type::F64) => float.to_bits(),
            (1, Type::F32) => (float as f32).to_bits().into(),
            // Subnormals.
            (2, Type::F32) => x >> 42,
            (3, Type::F16 | Type::F16x2) => x & 0xbbff_bbff,
            _ => x,
        }
    };
    (next() & mask, (0..32).map(|_| [next() & mask, next() & mask]).collect())
}

/// Runs the instruction. Returns each lane's result, and the final value in memory.
fn run(
    row: &FormRow,
    modifiers: &[Modifier],
    ty: Type,
    place: AtomicSpace,
    first: u64,
    lanes: &[[u64; 2]],
) -> (Vec<u64>, u64) {
    let bits = ty.bits();
    let suffix: String = modifiers.iter().map(|m| format!(".{m}")).collect();
    let named = modifiers.iter().any(|m| m.space().is_some());
    let get = match (place, named) {
        (AtomicSpace::Global, _) => "add.u64 %d3, %d1, 0;".to_string(),
        (AtomicSpace::Shared, true) => "mov.u64 %d3, cell;".to_string(),
        (AtomicSpace::Shared, false) => "cvta.shared.u64 %d3, cell;".to_string(),
    };
    let space = if place == AtomicSpace::Shared { "shared" } else { "global" };
    let own = if place == AtomicSpace::Shared && !named { "cvta.to.shared.u64 %d4, %d3;" } else { "mov.u64 %d4, %d3;" };
    let third = if modifiers.contains(&Modifier::Cas) { ", c" } else { "" };
    let d = if row.opcode == Opcode::Atom { "d, " } else { "" };
    let text = format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.shared .align 8 .b8 cell[8];\n\
         .visible .entry kernel(.param .u64 out, .param .u64 there, .param .u64 in)\n{{\n.reg .b{bits} b, c, d, e;\n\
         .reg .b32 %r<2>;\n.reg .b64 %d<6>;\n.reg .pred p;\n\
         ld.param.u64 %d0, [out];\nld.param.u64 %d1, [there];\nld.param.u64 %d2, [in];\nmov.u32 %r0, %tid.x;\n\
         mad.wide.u32 %d0, %r0, 8, %d0;\nmad.wide.u32 %d2, %r0, 16, %d2;\n\
         ld.global.b{bits} b, [%d2];\nld.global.b{bits} c, [%d2+8];\n{get}\n{own}\n\
         ld.global.b{bits} e, [%d1];\nsetp.eq.u32 p, %r0, 0;\n@p st.{space}.b{bits} [%d4], e;\nbar.sync 0;\n\
         mov.b{bits} d, 0;\n{opcode}{suffix} {d}[%d3], b{third};\nbar.sync 0;\n\
         st.global.b{bits} [%d0], d;\nld.{space}.b{bits} e, [%d4];\n@p st.global.b{bits} [%d1], e;\n}}\n",
        opcode = row.opcode
    );
    let module = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let program = Program::decode(&module, "kernel").unwrap_or_else(|e| panic!("{e}"));
    let (mut out, mut there) = ([0u64; 32], [first]);
    let input: Vec<u64> = lanes.iter().flatten().copied().collect();
    let buffer = |name: &str, bytes| BufferArgument { name: name.into(), bytes };
    let launch = Launch {
        grid: [1; 3],
        block: [32, 1, 1],
        dynamic_shared: 0,
        buffers: vec![
            buffer("out", ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut out))),
            buffer("there", ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut there))),
            buffer("in", ArgumentBytes::Shared(bytemuck::cast_slice(&input))),
        ],
        parameters: (0..3).map(|buffer| ParameterValue::Address { buffer, offset: 0 }).collect(),
        options: Options::default(),
    };
    let outcome = program.run(launch).unwrap();
    assert!(outcome.report.findings.is_empty(), "{}\n{text}", outcome.report);
    (out.to_vec(), there[0])
}

/// Checks the lanes one after the other, each on the value that the previous one stored.
#[test]
fn every_atomic_operation_matches_its_definition() {
    let mut count = 0u64;
    for row in ROWS.iter().filter(|r| matches!(r.opcode, Opcode::Atom | Opcode::Red)) {
        for modifiers in choices(row) {
            let ty = modifiers.iter().rev().find_map(|m| m.ty()).unwrap();
            let places: &[AtomicSpace] = match modifiers.iter().find_map(|m| m.space()) {
                None => &[AtomicSpace::Global, AtomicSpace::Shared],
                Some(space) if space.spelling() == "shared" => &[AtomicSpace::Shared],
                Some(_) => &[AtomicSpace::Global],
            };
            for &place in places {
                // The memory order does not change results, so one set of operands suffices for
                // each order.
                let ordered = modifiers
                    .iter()
                    .any(|m| matches!(m, Modifier::Relaxed | Modifier::Acquire | Modifier::Release | Modifier::AcqRel));
                for seed in if ordered { count % 4..count % 4 + 1 } else { 0..4 } {
                    let (first, lanes) = operands(ty, seed);
                    let (out, left) = run(row, &modifiers, ty, place, first, &lanes);
                    let mut old = first;
                    for (lane, ([b, c], got)) in lanes.iter().zip(out).enumerate() {
                        if row.opcode == Opcode::Atom {
                            assert_eq!(got, old, "{} {modifiers:?} {place:?}: what lane {lane} finds", row.opcode);
                        }
                        let expected = updated(&modifiers, ty, place, old, *b, *c);
                        // The NaN of the interpreter is used for the next lane.
                        old = match expected {
                            Expected::Bits(bits) => bits,
                            Expected::Halves(halves) => {
                                let [low, high] = halves.map(|h| if h & 0x7fff > 0x7c00 { 0x7fff } else { h });
                                u64::from(low) | u64::from(high) << 16
                            }
                            _ => match ty {
                                Type::F64 => 0x7ff8_0000_0000_0000,
                                Type::F16 => 0x7fff,
                                _ => 0x7fff_ffff,
                            },
                        };
                    }
                    assert_eq!(left, old, "{} {modifiers:?} {place:?}: what is left", row.opcode);
                    count += 1;
                }
            }
        }
    }
    assert!(count > 1500, "{count}");
}
