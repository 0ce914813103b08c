//! Tests of inline PTX: which text is accepted, which errors are reported, and that ptxas accepts
//! the emitted code.

#[allow(dead_code, reason = "not every test needs all of it")]
use super::ptx_support;
use kernel_dsl_compiler::ir::build::Builder;
use kernel_dsl_compiler::ir::{AccessPlace, BlockExtents, Kernel, Op, Parameter, Region, Role, Type, Values};
use kernel_dsl_compiler::ptx::inline::{Direction, InlineBlock, InlineOperand, InlineSource};
use kernel_dsl_compiler::{Scalar, Target, emit, passes};
use ptx_support::mutate::{Random, mutated, pieces};
use std::fmt::Write;

/// Parses a block with operands such as `a = in(u32), d = out(f32)`.
fn source(text: &str, operands: &str) -> InlineSource {
    let operands = operands.split(", ").filter(|o| !o.is_empty()).map(|o| {
        let (name, rest) = o.split_once(" = ").unwrap();
        let (direction, ty) = rest.trim_end_matches(')').split_once('(').unwrap();
        let all = [Direction::In, Direction::Out, Direction::InOut];
        let direction = all.into_iter().find(|d| d.name() == direction).unwrap();
        InlineOperand { name: name.into(), direction, ty: Scalar::from_name(ty).unwrap() }
    });
    InlineSource { text: text.into(), operands: operands.collect() }
}

/// Returns a kernel of the block alone: its inputs are parameters, and its results are stored.
fn kernel(code: InlineBlock, target: Target) -> Kernel {
    let address = Role::Address { element: Scalar::U64.into(), mutable: true };
    let mut parameters = vec![Parameter { name: "out".into(), argument: 0, role: address }];
    for (i, operand) in code.source().inputs().enumerate() {
        let name = format!("p{i}");
        parameters.push(Parameter { name, argument: 1 + i as u32, role: Role::Value(operand.ty) });
    }
    let mut b = Builder::new(Kernel {
        name: "k".into(),
        rust_name: "k".into(),
        instance: "k".into(),
        target,
        block: BlockExtents::fixed([32, 1, 1]),
        min_blocks: None,
        max_registers: None,
        parameters,
        values: vec![],
        locals: vec![],
        shared: vec![],
        dynamic: vec![],
        tables: vec![],
        sources: vec![],
        locations: vec![],
        declared: Default::default(),
        unrolled: kernel_dsl_compiler::ir::MAX_UNROLLED_INSTRUCTIONS,
        body: Region::default(),
    });
    let out = b.value(Op::Parameter(0), Type::Global);
    let types: Vec<Scalar> = code.source().inputs().map(|o| o.ty).collect();
    let inputs: Values = (1..).zip(types).map(|(i, ty)| b.scalar(Op::Parameter(i), ty)).collect();
    let types: Vec<Scalar> = code.source().outputs().map(|o| o.ty).collect();
    let results = b.emit(Op::Inline { code: code.into(), inputs }, types.iter().map(|ty| Type::Scalar(*ty)));
    for (i, (value, ty)) in results.into_iter().zip(types).enumerate() {
        let place = AccessPlace::Address { base: out, offset: 8 * i as i32 };
        b.effect(Op::Store { place, element: ty, values: [value].into_iter().collect(), guard: None });
    }
    b.finish()
}

/// Returns the kernel's PTX.
fn emitted(code: InlineBlock, target: Target) -> String {
    let kernel = kernel(code, target);
    kernel_dsl_compiler::ir::verify::verify(&kernel).unwrap();
    emit::emit(&passes::optimize(kernel).unwrap()).unwrap().to_string()
}

const TAKEN: &[(&str, &str)] = &[
    ("shf.l.wrap.b32 {d}, {a}, {b}, 7;", "a = in(u32), b = in(u32), d = out(u32)"),
    ("lop3.b32 {d}, {a}, {b}, {a}, 0x96", "a = in(i32), b = in(u32), d = out(i32)"),
    (
        "{ .reg .u32 t; mul.hi.u32 t, {a}, {a}; { .reg .u64 t; mov.u64 t, 3; } mov.u32 {d}, t; }",
        "a = in(u32), d = out(u32)",
    ),
    (".reg .b32 %t<3>; mov.b32 %t2, {a}; mov.b32 {d}, %t2;", "a = in(f32), d = out(u32)"),
    ("mov.b64 {{low}, {high}}, {a};", "a = in(f64), low = out(u32), high = out(i32)"),
    ("mov.b32 {d}, {{a}, {a}};", "a = in(f16), d = out(u32)"),
    ("setp.lt.and.f32 {p}|{q}, {a}, 1.0, !{c};", "a = in(f32), c = in(bool), p = out(bool), q = out(bool)"),
    ("@{p} add.s64 {d}, {d}, 1; @!{p} sub.s64 {d}, {d}, 1;", "p = in(bool), d = inout(i64)"),
    (
        "add.cc.u32 {d}, {a}, {a}; subc.cc.u32 {e}, {a}, 0; madc.hi.u32 {f}, {a}, {a}, 1;",
        "a = in(u32), d = out(u32), e = out(u32), f = out(u32)",
    ),
    ("fma.rm.sat.f32 {d}, {a}, 0f3F800000, 1e-3;", "a = in(f32), d = out(f32)"),
    ("vmad.s32.s32.s32.shr7 {d}, -{a}.h0, {a}, {d};", "a = in(i32), d = inout(i32)"),
    ("mul.lo.s16 {d}, {a}, {a}; cvt.u16.u32 {e}, {b};", "a = in(i16), d = out(i16), b = in(u32), e = out(u16)"),
    ("mov.u32 {d}, %laneid;", "d = out(usize)"),
    ("// one\nactivemask.b32 {d}; // two\nnanosleep.u32 {n};", "d = out(u32), n = in(u32)"),
    ("mov.u64 {d}, %globaltimer;", "d = out(u64)"),
    ("xor.b16 {d}, {a}, 0x8000;", "a = in(bf16), d = out(bf16)"),
    ("pmevent 3;;", ""),
];

/// Checks how accepted blocks are printed, and which side effects are known.
#[test]
fn accepted_blocks_print_their_code() {
    let mut told = String::new();
    for (text, operands) in TAKEN {
        let source = source(text, operands);
        match source.check(None) {
            Ok(code) => {
                writeln!(told, "{text}\n  = {code}\n  {:?}", code.effect()).unwrap();
                // The printed text is the same except for separate registers.
                if code.function().registers.len() == source.operands.len() {
                    let again = InlineSource { text: code.to_string(), ..source.clone() }.check(None).unwrap();
                    assert_eq!(again.to_string(), code.to_string());
                }
                let ptx = emitted(source.check(None).unwrap(), Target::SM_75);
                if ptx_support::installed() {
                    ptx_support::assemble(&ptx, 75).unwrap_or_else(|e| panic!("{text}: {e}\n{ptx}"));
                }
            }
            Err(errors) => writeln!(told, "{text}\n  {errors:?}").unwrap(),
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn mistakes_have_their_messages() {
    let ab = "a = in(u32), b = in(u32), d = out(u32)";
    let told: Vec<String> = [
        ("add.u32 {d}, {a};", "a = in(u32), d = out(u32)"),
        ("add.u32 {d}, {a}, {b};\nadd.u32 {d}, {a}, {b}, 3;\nfrobnicate.u32 {d};", ab),
        ("fma.f32 {d}, {a}, {b}, {d};", "a = in(f32), b = in(f32), d = inout(f32)"),
        ("fma.rn.f32 {d}, {a}, {b}, {a};", "a = in(f32), b = in(u32), d = out(f32)"),
        ("mov.b32 {d}, {a};", "a = in(bool), d = out(u32)"),
        ("add.u32 {d}, {a}, {c};", "a = in(u32), d = out(u32)"),
        ("add.u32 {d}, {a}, t;", "a = in(u32), d = out(u32)"),
        ("add.u32 {d}, {a}, {b}", "a = in(u32), b = in(u32), c = in(f32), d = out(u32)"),
        ("add.u32 {d}, {d}, {a};", "a = in(u32), d = out(u32)"),
        ("add.u32 {a}, {a}, 1; mov.u32 {d}, {a};", "a = in(u32), d = out(u32)"),
        ("@{p} mov.u32 {d}, 1;", "p = in(bool), d = out(u32)"),
        ("mov.u32 {d}, {a};", "a = inout(u32), d = out(u32)"),
        ("addc.u32 {d}, {a}, {b};", ab),
        ("mov.b64 {{d}, {e}}, {a};", "a = in(u64), d = out(u32), e = out(f32)"),
        ("mov.b64 {{d}, {d}}, {a};", "a = in(u64), d = out(u32)"),
        ("add.f32 {d}, {a}, {a};", "a = in(f32), d = out(f32)"),
        ("mul.ftz.f32 {d}, {a}, {a};", "a = in(f32), d = out(f32)"),
        ("ex2.approx.f32 {d}, {a}; div.full.f32 {d}, {d}, {a}; tanh.approx.f32 {d}, {d};", "a = in(f32), d = out(f32)"),
        ("again: add.u32 {d}, {a}, 1; bra again;", "a = in(u32), d = out(u32)"),
        ("@{p} exit; ret; trap; call f;", "p = in(bool)"),
        ("ld.global.u32 {d}, [{a}]; st.shared.u32 [{a}], {d}; atom.add.u32 {d}, [{a}], 1;", "a = in(u64), d = out(u32)"),
        ("membar.gl; fence.sc.gpu; bar.sync 0; cp.async.wait_all;", ""),
        ("shfl.idx.b32 {d}, {a}, 0, 31; vote.ballot.b32 {d}, 1; match.any.sync.b32 {d}, {a}, -1; redux.sync.add.u32 {d}, {a}, -1;", "a = in(u32), d = out(u32)"),
        ("prefetch.global.L2 [{a}]; cvta.global.u64 {a}, {a}; isspacep.global {p}, {a};", "a = inout(u64), p = out(bool)"),
        (".shared .b32 t; .global .b32 u; .param .b32 v; .pragma \"nounroll\"; .loc 1 1 1;", ""),
        ("add.u32 {d}, {a}, 1.5;", "a = in(u32), d = out(u32)"),
        ("add.u32 {d, {a}, {b};", ab),
        ("add.u32 {d}, {a}, {b} add.u32 {d}, {a}, {b};", ab),
        ("}", ""),
        ("mov.u32 {d}, {a};", "a = in(u8), a = in(i8), d = out(u32)"),
        (".reg .v2 .b32 t; .reg .b32 t, t;", ""),
        ("é", ""),
    ]
    .into_iter()
    .map(|(text, operands)| {
        let errors = source(text, operands).check(None).expect_err(text);
        let mut told = format!("{text}\n");
        for error in errors {
            let message = error.message.replace('\n', "\n      ");
            writeln!(told, "  > {:?}: {message}", error.place).unwrap();
        }
        told
    })
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

/// Checks that an error names the first target with a feature.
#[test]
fn errors_name_the_first_target_with_the_feature() {
    let source = source("bmsk.clamp.b32 {d}, 3, 4; cvt.rn.bf16.f32 {h}, 1.0;", "d = out(u32), h = out(bf16)");
    let told: Vec<String> = [Target::SM_61, Target::SM_75]
        .map(|target| source.check(Some(target)).unwrap_err())
        .into_iter()
        .flatten()
        .map(|e| e.message)
        .collect();
    assert_eq!(
        told,
        [
            "`bmsk.clamp.b32 {d}, 3, 4` requires sm_70; the kernel is compiled for sm_61",
            "`cvt.rn.bf16.f32 {h}, 0f3F800000` requires sm_80; the kernel is compiled for sm_61",
            "`cvt.rn.bf16.f32 {h}, 0f3F800000` requires sm_80; the kernel is compiled for sm_75",
        ]
    );
    source.check(Some(Target::SM_80)).unwrap();
    source.check(None).unwrap();
}

/// Checks that no text makes the reader panic or loop, and that ptxas accepts the PTX made from
/// accepted ones.
#[test]
fn changed_blocks_cause_no_panic() {
    let words: Vec<&str> = TAKEN.iter().flat_map(|(text, _)| pieces(text)).collect();
    let mut random = Random(61);
    let (mut taken, mut assembled) = (0, 0);
    for i in 0..6000 {
        let (text, operands) = TAKEN[i % TAKEN.len()];
        let source = InlineSource { text: mutated(text, &words, &mut random), ..source(text, operands) };
        let Ok(code) = source.check(None) else { continue };
        taken += 1;
        if taken % 12 == 0 && ptx_support::installed() {
            let ptx = emitted(code, Target::SM_80);
            assembled += 1;
            ptx_support::assemble(&ptx, 80).unwrap_or_else(|e| panic!("{}: {e}\n{ptx}", source.text));
        }
    }
    println!("{taken} taken, {assembled} assembled");
    assert!(taken > 500, "{taken}");
}

/// Tests texts that are meant to be slow or deep.
#[test]
fn deep_and_long_blocks_end() {
    let many = |s: &str| s.repeat(50_000);
    for text in [
        many("{"),
        many("{}"),
        many("{ {d} "),
        many("mov.u32 {d}, 1;"),
        many(".reg .b32 t;"),
        many("@"),
        many(";"),
        many("}"),
        many("-"),
        format!("mov.u32 {{d}}, {}1;", many("(")),
    ] {
        let _ = source(&text, "d = out(u32)").check(None);
    }
}
