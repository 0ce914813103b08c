//! Every special register: its value in each thread of two- and three-dimensional launches.

use super::kit::program;
use kernel_dsl::compiler::ptx::{SpecialRegister, Type};
use runtime::interpreter::ArgumentBytes;
use runtime::ptx::{BufferArgument, Check, Launch, Options, Outcome, ParameterValue};

const BLOCK: [u32; 3] = [5, 3, 4];
const GRID: [u32; 3] = [2, 3, 2];
const DYNAMIC: u32 = 48;

/// Returns each thread's two reads of `register`, and the outcome of the launch.
fn read(register: SpecialRegister) -> (Outcome, Vec<[u64; 2]>) {
    let (ty, mov) = if register.ty() == Type::U64 { ("b64", "u64") } else { ("b32", "u32") };
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 8 .b8 own[40];\n\
         .visible .entry kernel(.param .u64 out)\n{{\n.reg .b32 %r<12>;\n.reg .b64 %d<4>;\n.reg .{ty} x, y;\n\
         mov.{mov} x, {register};\n\
         mov.u32 %r0, %tid.x;\nmov.u32 %r1, %tid.y;\nmov.u32 %r2, %tid.z;\n\
         mad.lo.u32 %r3, %r2, 3, %r1;\nmad.lo.u32 %r3, %r3, 5, %r0;\n\
         mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ctaid.y;\nmov.u32 %r6, %ctaid.z;\n\
         mad.lo.u32 %r7, %r6, 3, %r5;\nmad.lo.u32 %r7, %r7, 2, %r4;\nmad.lo.u32 %r7, %r7, 60, %r3;\n\
         ld.param.u64 %d0, [out];\nmad.wide.u32 %d0, %r7, 16, %d0;\nmov.u32 %r8, own;\nst.shared.u32 [%r8], 0;\n\
         mov.{mov} y, {register};\n\
         st.global.u64 [%d0], 0;\nst.global.{ty} [%d0], x;\nst.global.u64 [%d0+8], 0;\nst.global.{ty} [%d0+8], y;\n}}\n"
    );
    let threads: u32 = BLOCK.iter().chain(&GRID).product();
    let mut out = vec![[0u64; 2]; threads as usize];
    let launch = Launch {
        grid: GRID,
        block: BLOCK,
        dynamic_shared: DYNAMIC,
        buffers: vec![BufferArgument {
            name: "out".into(),
            bytes: ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut out)),
        }],
        parameters: vec![ParameterValue::Address { buffer: 0, offset: 0 }],
        options: Options::default(),
    };
    let outcome = program(&text).run(launch).unwrap();
    (outcome, out)
}

/// Returns the expected value in a thread of a block; `None` for clocks and for registers of
/// unknown contents.
fn expected(register: SpecialRegister, thread: u32, block: u32) -> Option<u64> {
    use SpecialRegister::*;
    let lane = thread % 32;
    let [x, y] = [thread % 5, thread / 5];
    Some(u64::from(match register {
        TidX => x,
        TidY => y % 3,
        TidZ => y / 3,
        NtidX => 5,
        NtidY => 3,
        NtidZ => 4,
        CtaidX => block % 2,
        CtaidY => block / 2 % 3,
        CtaidZ => block / 6,
        NctaidX => 2,
        NctaidY => 3,
        NctaidZ => 2,
        LaneId => lane,
        WarpId => thread / 32,
        NwarpId => 2,
        LanemaskEq => 1 << lane,
        LanemaskLt => (1 << lane) - 1,
        LanemaskLe => ((2u64 << lane) - 1) as u32,
        LanemaskGt => !(((2u64 << lane) - 1) as u32),
        LanemaskGe => !((1 << lane) - 1),
        DynamicSmemSize => DYNAMIC,
        // The sum of the module's shared memory, padded to the start of the launch's dynamic part,
        // and of that part.
        TotalSmemSize => 48 + DYNAMIC,
        // A single multiprocessor runs all blocks; no shared memory is reserved; the launch is not
        // part of a graph.
        SmId | GridId | CurrentGraphExec => 0,
        NsmId => 1,
        ReservedSmemBegin | ReservedSmemEnd | ReservedSmemCap | ReservedSmem0 | ReservedSmem1 => 0,
        _ => return None,
    }))
}

#[test]
fn every_special_register_is_read_or_rejected() {
    let (mut known, mut clocks, mut unknown) = (0, 0, 0);
    for &register in SpecialRegister::ALL {
        let (outcome, out) = read(register);
        let name = register.spelling();
        if name.starts_with("%pm") || name.starts_with("%envreg") {
            // A store of such a register is reported as undefined.
            let finding = &outcome.report.findings[0];
            assert_eq!(finding.check, Check::UndefinedValue, "{register}");
            let why = if name.starts_with("%pm") { "and there is none" } else { "only the driver sets its value" };
            assert!(finding.message.contains(name) && finding.message.contains(why), "{finding:?}");
            unknown += 1;
            continue;
        }
        assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
        if name.contains("clock") || name.contains("timer") {
            // Clocks never decrease; the upper half of a short run is 0.
            assert!(
                out.iter().all(|[a, b]| if name.ends_with("hi") { [a, b] == [&0, &0] } else { a < b }),
                "{register}"
            );
            clocks += 1;
            continue;
        }
        for (i, read) in (0..).zip(out) {
            let expected =
                expected(register, i % 60, i / 60).unwrap_or_else(|| panic!("nothing is said of {register}"));
            assert_eq!(read, [expected; 2], "{register} in thread {} of block {}", i % 60, i / 60);
        }
        known += 1;
    }
    assert_eq!((known, clocks, unknown), (31, 6, 48));
}
