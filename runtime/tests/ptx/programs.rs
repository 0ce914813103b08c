//! Whole programs, as other compilers write them: recursion and indirect calls, functions of the
//! device, aliases, and PTX of old versions. The expected words are those of an H100, or follow
//! from plain Rust.

use super::kit::POLICIES;
use kernel_dsl::compiler::ptx::parse;
use runtime::interpreter::{ArgumentBytes, Schedule};
use runtime::ptx::{BufferArgument, Check, Launch, Options, Outcome, ParameterValue, Program};

/// Runs entry `k` of a text on `threads` threads with these words after the address of `out`.
fn run(text: &str, threads: u32, out: usize, arguments: &[u64], options: Options) -> (Outcome, Vec<u32>) {
    run_blocks(text, [if options.cooperative { 8 } else { 1 }, threads], out, arguments, options)
}

/// Runs entry `k` of a text on blocks of threads, as [`run`] does.
fn run_blocks(
    text: &str,
    [blocks, threads]: [u32; 2],
    out: usize,
    arguments: &[u64],
    options: Options,
) -> (Outcome, Vec<u32>) {
    let module = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let program = Program::decode(&module, "k").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut words = vec![0u32; out];
    let bytes = ArgumentBytes::Exclusive(bytemuck::cast_slice_mut(&mut words));
    let arguments = arguments.iter().map(|n| ParameterValue::Bits(*n));
    let outcome = program.run(Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        dynamic_shared: 0,
        buffers: vec![BufferArgument { name: "out".into(), bytes }],
        parameters: [ParameterValue::Address { buffer: 0, offset: 0 }].into_iter().chain(arguments).collect(),
        options,
    });
    (outcome.unwrap_or_else(|e| panic!("{e}")), words)
}

/// Runs a text under both policies with every check, and without checks. There must be no errors.
fn words(text: &str, threads: u32, out: usize, arguments: &[u64]) -> Vec<u32> {
    let all = POLICIES.map(|policy| Options { policy, ..Options::default() });
    let values = Options { checks: runtime::ptx::Checks::Values, ..Options::default() };
    let mut results = all.into_iter().chain([values]).map(|options| {
        let (outcome, words) = run(text, threads, out, arguments, options);
        assert!(outcome.report.findings.is_empty(), "{}\n{text}", outcome.report);
        words
    });
    let first = results.next().unwrap();
    assert!(results.all(|other| other == first), "{text}");
    first
}

const HEAD: &str = ".version 6.4\n.target sm_61\n.address_size 64\n";

#[test]
fn every_version_and_header_runs() {
    let body = "{ .reg .u64 o; ld.param.u64 o, [p]; st.global.u32 [o], 7; ret; }";
    for header in [
        ".version 1.4\n.target sm_13\n",
        ".version 2.3\n.target sm_20\n.address_size 64\n",
        ".version 4.3\n.target sm_30\n.address_size 64\n",
        ".version 4.3\n.target sm_52\n.address_size 64\n",
        ".version 6.0\n.target sm_61\n",
        ".version 6.0\n.target compute_61\n",
        ".version 8.8\n.target sm_61, debug\n",
        ".version 9.0\n.target sm_61\n.address_size 64\n",
    ] {
        assert_eq!(words(&format!("{header}.entry k(.param .u64 p) {body}"), 1, 1, &[]), [7], "{header}");
    }
    for header in [".version 1.3\n.target sm_13\n", ".version 4.3\n.target sm_61\n", ".version 10.0\n.target sm_61\n"] {
        assert!(parse(&format!("{header}.entry k(.param .u64 p) {body}")).is_err(), "{header}");
    }
}

/// Checks that singles are flushed in arithmetic for targets before sm_20, as ptxas compiles it.
#[test]
fn targets_before_sm_20_flush_subnormals() {
    let text = |version: &str, target: &str, mad: &str| {
        format!(
            ".version {version}\n.target {target}\n.entry k(.param .u64 p)\n{{\n.reg .u64 o; .reg .f32 a, b, c, d;\n\
             ld.param.u64 o, [p];\nmov.f32 a, 0f00400000; mov.f32 b, 0f40000000;\nmul.f32 c, a, b;\n\
             {mad} d, a, b, a;\nadd.f32 a, a, b;\nst.global.f32 [o], c;\nst.global.f32 [o+4], d;\n\
             st.global.f32 [o+8], a;\nexit;\n}}\n"
        )
    };
    assert_eq!(words(&text("1.4", "sm_13", "mad.f32"), 1, 3, &[]), [0, 0, 0x4000_0000]);
    assert_eq!(words(&text("2.0", "sm_20", "mad.rn.f32"), 1, 3, &[]), [0x0080_0000, 0x00c0_0000, 0x4000_0000]);
}

#[test]
fn forms_that_few_compilers_write_are_read() {
    // Special registers by `mov` and `cvt`, in their low 16 bits too.
    let special = ".reg .u64 O; .reg .u32 x, y, z, g; .reg .u16 h; ld.param.u64 O, [o];
        cvt.s32.u32 x, %tid.x; mov.u16 h, %tid.x; cvt.u32.u16 y, h; cvt.u32.u16 z, %tid.x; add.u32 g, x, 10;
        mad.wide.u32 O, x, 16, O; st.global.v4.u32 [O], {x, y, z, g}; mov.u32 g, %gridid; cvt.u32.u32 g, %clock; ret;";
    let text = format!("{HEAD}.visible .entry k(.param .u64 o) {{ {special} }}");
    assert_eq!(words(&text, 3, 12, &[])[8..], [2, 2, 2, 12]);
    // Vectors of registers.
    let vectors = ".reg .u64 O; .reg .v2 .u32 v; .reg .v4 .u32 w<2>; ld.param.u64 O, [o]; mov.u32 v.x, 1;
        mov.u32 v.y, 2; mov.u32 w1.x, v.y; mov.u32 w1.g, v.x; mov.u32 w1.z, 4; mov.u32 w1.w, 3;
        st.global.v4.u32 [O], w1; mov.v2.u32 v, {v.y, v.x}; st.global.v2.u32 [O+16], v; mov.b64 O, v; ret;";
    let text = format!("{HEAD}.visible .entry k(.param .u64 o) {{ {vectors} }}");
    assert_eq!(words(&text, 1, 6, &[]), [2, 1, 4, 3, 2, 1]);
    // A vector of registers as a parameter.
    let text = format!(
        "{HEAD}.func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) {{ .reg .u32 x; add.u32 x, a.x, a.y; mov.u32 r.x, x;
         mov.u32 r.y, a.y; ret; }}
         .visible .entry k(.param .u64 o) {{ .reg .u64 O; .reg .v2 .u32 p, q; ld.param.u64 O, [o]; mov.u32 p.x, 1;
         mov.u32 p.y, 2; call (q), f, (p); st.global.v2.u32 [O], q; ret; }}"
    );
    assert_eq!(words(&text, 1, 2, &[]), [3, 2]);
    // A prototype without a semicolon.
    let text = format!(
        "{HEAD}.visible .func (.param .u32 r) f (.param .u32 a)\n\n
         .visible .entry k(.param .u64 o) {{ .reg .u64 O; .reg .u32 x; ld.param.u64 O, [o];
         {{ .param .u32 p; .param .u32 q; st.param.u32 [p], 4; call (q), f, (p); ld.param.u32 x, [q]; }}
         st.global.u32 [O], x; ret; }}
         .visible .func (.param .u32 r) f (.param .u32 a) {{ .reg .u32 x; ld.param.u32 x, [a]; add.u32 x, x, 1;
         st.param.u32 [r], x; ret; }}"
    );
    assert_eq!(words(&text, 1, 1, &[]), [5]);
    // Constants are truncated to the width of the type.
    let wide = ".reg .u64 O; .reg .u32 x; .reg .u16 h; .reg .pred p; ld.param.u64 O, [o]; mov.u32 x, 0x1FFFFFFFE;
        st.global.u32 [O], x; mov.u16 h, 70000; st.global.u16 [O+4], h; mov.pred p, 4; selp.u32 x, 1, 2, p;
        st.global.u32 [O+8], x; st.global.u8 [O+12], 300; ret;";
    let text = format!("{HEAD}.visible .entry k(.param .u64 o) {{ {wide} }}");
    assert_eq!(words(&text, 1, 4, &[]), [0xffff_fffe, 70000 - 65536, 1, 44]);
}

/// Checks calls by the aliases `f1` and `f0` of a function that adds 5.
#[test]
fn calls_of_aliases_run_the_aliasee() {
    for (called, aliases) in [("f1", ".alias f1, f2;"), ("f0", ".alias f1, f2;\n.alias f0, f1;")] {
        let text = format!(
            "{HEAD}.func (.param .b32 r) f1(.param .b32 x);
             .func (.param .b32 r) f2(.param .b32 x) {{ .reg .b32 v; ld.param.b32 v, [x]; add.u32 v, v, 5;
             st.param.b32 [r], v; ret; }}
             .func (.param .b32 r) f0(.param .b32 x);\n{aliases}
             .visible .entry k(.param .u64 out) {{ .reg .b64 o, a; .reg .b32 v; .reg .pred p;
             ld.param.u64 o, [out]; mov.u32 v, 37;
             {{ .param .b32 p0; st.param.b32 [p0], v; .param .b32 r0; call.uni (r0), {called}, (p0);
             ld.param.b32 v, [r0]; }} st.global.u32 [o], v; ret; }}"
        );
        assert_eq!(words(&text, 1, 1, &[]), [42]);
    }
    let text = format!(
        "{HEAD}.func f1();\n.func f2();\n.alias f1, f2;\n.alias f2, f1;\n
         .visible .entry k(.param .u64 out) {{ call f1; ret; }}"
    );
    let refused = Program::decode(&parse(&text).unwrap(), "k").unwrap_err().to_string();
    assert!(refused.contains("the module does not define it"), "{refused}");
}

const FIB: &str = "
    .func (.param .b32 r) fib(.param .b32 x);
    .func (.param .b32 r) fib(.param .b32 x) {
     .reg .b32 v, a, b; .reg .pred p; ld.param.b32 v, [x];
     setp.lt.u32 p, v, 2; @p bra E;
     sub.u32 a, v, 1; { .param .b32 p0; st.param.b32 [p0], a; .param .b32 r0; call (r0), fib, (p0); ld.param.b32 b, [r0]; }
     sub.u32 a, v, 2; { .param .b32 p0; st.param.b32 [p0], a; .param .b32 r0; call (r0), fib, (p0); ld.param.b32 a, [r0]; }
     add.u32 v, a, b;
    E: st.param.b32 [r], v; ret; }
    .visible .entry k(.param .u64 out, .param .u32 n) {
     .reg .b64 o; .reg .b32 v, t;
     ld.param.u64 o, [out]; ld.param.u32 v, [n]; mov.u32 t, %tid.x; mad.wide.u32 o, t, 4, o; add.u32 v, v, t;
     { .param .b32 p0; st.param.b32 [p0], v; .param .b32 r0; call.uni (r0), fib, (p0); ld.param.b32 v, [r0]; }
     st.global.u32 [o], v; ret; }";

#[test]
fn functions_call_themselves() {
    fn fib(n: u32) -> u32 {
        if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
    }
    // Each lane recurses to another depth.
    let expected: Vec<u32> = (0..12).map(fib).collect();
    assert_eq!(words(&format!("{HEAD}{FIB}"), 12, 12, &[0]), expected);
    // Parameters in registers.
    let text = format!(
        "{HEAD}.func (.reg .u32 r) f(.reg .u32 a) {{ .reg .pred p; .reg .u32 x, y; mov.u32 r, 1;
         setp.lt.u32 p, a, 2; @p ret; sub.u32 x, a, 1; call (y), f, (x); mul.lo.u32 r, y, a; ret; }}
         .visible .entry k(.param .u64 o) {{ .reg .u64 O; .reg .u32 x, y; ld.param.u64 O, [o];
         mov.u32 x, %tid.x; mad.wide.u32 O, x, 4, O; call (y), f, (x); st.global.u32 [O], y; ret; }}"
    );
    assert_eq!(words(&text, 11, 11, &[]), [1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362_880, 3_628_800]);
    // A recursion that is never taken.
    let text = format!(
        "{HEAD}.func (.param .b32 r) f(.param .b32 x) {{ .reg .b32 v; .reg .pred p; ld.param.b32 v, [x];
         setp.lt.u32 p, v, 1000; @p bra E; sub.u32 v, v, 1;
         {{ .param .b32 p0; st.param.b32 [p0], v; .param .b32 r0; call (r0), f, (p0); ld.param.b32 v, [r0]; }}
         E: add.u32 v, v, 1; st.param.b32 [r], v; ret; }}
         .visible .entry k(.param .u64 out) {{ .reg .b64 o; .reg .b32 v; ld.param.u64 o, [out]; mov.u32 v, 41;
         {{ .param .b32 p0; st.param.b32 [p0], v; .param .b32 r0; call.uni (r0), f, (p0); ld.param.b32 v, [r0]; }}
         st.global.u32 [o], v; ret; }}"
    );
    assert_eq!(words(&text, 1, 1, &[]), [42]);
}

/// Checks mutual recursion, whose frames hold arrays that callees change through pointers: the
/// Hofstadter sequences F and M.
#[test]
fn frames_of_mutual_recursion_are_separate() {
    fn pair(n: u32) -> (u32, u32) {
        let (mut f, mut m) = (vec![1], vec![0]);
        for i in 1..=n as usize {
            m.push(i as u32 - f[m[i - 1] as usize]);
            f.push(i as u32 - m[f[i - 1] as usize]);
        }
        (f[n as usize], m[n as usize])
    }
    let function = |name: &str, other: &str, base: u32| {
        format!(
            ".func {name}(.param .b32 n, .param .b64 to)
             {{
                 .local .align 4 .b32 mine[2];
                 .reg .b32 v, w; .reg .b64 d, t; .reg .pred p;
                 ld.param.b32 v, [n]; ld.param.b64 t, [to];
                 setp.eq.u32 p, v, 0; @p bra Z;
                 mov.u64 d, mine; cvta.local.u64 d, d; add.u64 d, d, 4;
                 st.local.b32 [mine], v;
                 sub.u32 w, v, 1;
                 {{ .param .b32 a; .param .b64 b; st.param.b32 [a], w; st.param.b64 [b], d; call {name}, (a, b); }}
                 ld.local.b32 w, [mine+4];
                 {{ .param .b32 a; .param .b64 b; st.param.b32 [a], w; st.param.b64 [b], d; call {other}, (a, b); }}
                 ld.local.b32 w, [mine+4]; ld.local.b32 v, [mine];
                 sub.u32 w, v, w; st.b32 [t], w; ret;
             Z:  st.b32 [t], {base}; ret;
             }}\n"
        )
    };
    let text = format!(
        "{HEAD}.func F(.param .b32 n, .param .b64 to);\n.func M(.param .b32 n, .param .b64 to);\n{}{}
         .visible .entry k(.param .u64 out) {{ .local .align 4 .b32 got[2]; .reg .b64 o, a, b; .reg .b32 v, w;
         ld.param.u64 o, [out]; mov.u32 v, %tid.x; mad.wide.u32 o, v, 8, o; mov.u64 a, got; cvta.local.u64 a, a;
         add.u64 b, a, 4;
         {{ .param .b32 n; .param .b64 t; st.param.b32 [n], v; st.param.b64 [t], a; call F, (n, t); }}
         {{ .param .b32 n; .param .b64 t; st.param.b32 [n], v; st.param.b64 [t], b; call M, (n, t); }}
         ld.local.v2.b32 {{v, w}}, [got]; st.global.v2.b32 [o], {{v, w}}; ret; }}",
        function("F", "M", 1),
        function("M", "F", 0)
    )
    .replace(".align 4 .b32 got", ".align 8 .b32 got");
    let expected: Vec<u32> = (0..8).flat_map(|n| <[u32; 2]>::from(pair(n))).collect();
    assert_eq!(words(&text, 8, 16, &[]), expected);
}

/// Checks an endless recursion, and lanes that exit inside a recursive function.
#[test]
fn the_stack_is_limited_and_lanes_exit_inside_calls() {
    let text = format!("{HEAD}.func f() {{ call f; ret; }}\n.visible .entry k(.param .u64 out) {{ call f; ret; }}");
    let (outcome, _) = run(&text, 2, 1, &[], Options::default());
    let finding = &outcome.report.findings[0];
    assert_eq!((finding.check, finding.count), (Check::Trap, 2));
    assert_eq!(finding.message, "has no room left on the stack, after 4096 calls that have not returned");
    // A launch may give the stack another size, of 16 bytes a call.
    for (bytes, depth) in [(128, 8), (1 << 18, 16384)] {
        let (outcome, _) = run(&text, 2, 1, &[], Options { stack: Some(bytes), ..Options::default() });
        let message = format!("has no room left on the stack, after {depth} calls that have not returned");
        assert_eq!(outcome.report.findings[0].message, message);
    }
    let text = format!(
        "{HEAD}.func f(.param .b32 n) {{ .reg .b32 v; .reg .pred p; ld.param.b32 v, [n]; setp.eq.u32 p, v, 3;
         @p exit; setp.eq.u32 p, v, 0; @p ret; sub.u32 v, v, 1;
         {{ .param .b32 a; st.param.b32 [a], v; call f, (a); }} ret; }}
         .visible .entry k(.param .u64 out) {{ .reg .b64 o; .reg .b32 v, t; ld.param.u64 o, [out]; mov.u32 t, %tid.x;
         mad.wide.u32 o, t, 4, o; and.b32 v, t, 7;
         {{ .param .b32 a; st.param.b32 [a], v; call f, (a); }} activemask.b32 v; st.global.u32 [o], v; ret; }}"
    );
    let expected: Vec<u32> = (0..32).map(|t| if t & 7 < 3 { 0x0707_0707 } else { 0 }).collect();
    assert_eq!(words(&text, 32, 32, &[]), expected);
}

/// Checks the limit of the stack. On an H200, whose frames of this function have 272 bytes, the
/// recursions that end here end too, and the others are errors.
#[test]
fn local_variables_of_calls_count_towards_the_limit_of_the_stack() {
    let text = |depth: u32, store: &str| {
        format!(
            "{HEAD}.func (.param .b32 o) f(.param .b32 n) {{ .reg .b32 r, s, t; .reg .pred p; .local .align 4 .b8 a[256];
             ld.param.b32 r, [n]; and.b32 s, r, 63; mov.u32 t, a; {store} setp.eq.u32 p, r, 0; @p bra E;
             sub.u32 s, r, 1; {{ .param .b32 u; .param .b32 v; st.param.b32 [u], s; call (v), f, (u);
             ld.param.b32 s, [v]; }} E: ld.local.b32 r, [t]; add.u32 r, r, s; st.param.b32 [o], r; ret; }}
             .visible .entry k(.param .u64 out) {{ .reg .b64 q; .reg .b32 r; ld.param.u64 q, [out];
             {{ .param .b32 u; .param .b32 v; st.param.b32 [u], {depth}; call (v), f, (u); ld.param.b32 r, [v]; }}
             st.global.u32 [q], r; ret; }}"
        )
    };
    let (indexed, constant) = ("mad.lo.u32 t, s, 4, t; st.local.b32 [t], r;", "add.u32 t, t, 8; st.local.b32 [t], r;");
    for (limit, depth, store, sum) in [
        (1024, 2, indexed, Some(3)),
        (1024, 4, indexed, None),
        (8192, 29, indexed, Some(435)),
        (8192, 99, indexed, None),
        // Accesses at constant offsets: the variable can be kept in registers.
        (1024, 29, constant, Some(435)),
    ] {
        let options = Options { stack_limit: Some(limit), ..Options::default() };
        let (outcome, words) = run(&text(depth, store), 1, 1, &[], options);
        let messages: Vec<&str> = outcome.report.findings.iter().map(|finding| &finding.message[..]).collect();
        match sum {
            Some(sum) => assert!(messages.is_empty() && words == [sum], "{limit} {depth}: {}", outcome.report),
            None => {
                let calls = limit / 256;
                let bytes = limit + 256;
                let expected = format!(
                    "has no room left on the stack, after {calls} calls that have not returned: the local variables of \
                     the calls take {bytes} bytes, and the limit of the stack is {limit}; raise CU_LIMIT_STACK_SIZE"
                );
                assert_eq!(messages, [expected], "{limit} {depth}");
            }
        }
    }
}

/// Checks an indirect call with more possible functions than are inlined, one of them recursive.
#[test]
fn indirect_calls_reach_every_function() {
    let functions: String = (0..7)
        .map(|i| {
            format!(
                ".func (.param .b32 r) f{i}(.param .b32 x) {{ .reg .b32 v; ld.param.b32 v, [x];
                 mad.lo.u32 v, v, 10, {i}; st.param.b32 [r], v; ret; }}\n"
            )
        })
        .collect();
    let names: Vec<String> = (0..7).map(|i| format!("f{i}")).collect();
    let text = format!(
        "{HEAD}{functions}.global .align 8 .u64 table[7] = {{{}}};
         .visible .entry k(.param .u64 out) {{ .reg .b64 o, a; .reg .b32 v, t; ld.param.u64 o, [out];
         mov.u32 t, %tid.x; mad.wide.u32 o, t, 4, o; rem.u32 v, t, 7; mov.u64 a, table; mad.wide.u32 a, v, 8, a;
         ld.global.u64 a, [a];
         {{ .param .b32 p0; st.param.b32 [p0], t; .param .b32 r0; P: .callprototype (.param .b32 _) _ (.param .b32 _);
         call (r0), a, (p0), P; ld.param.b32 v, [r0]; }}
         st.global.u32 [o], v; ret; }}",
        names.join(", ")
    );
    assert_eq!(words(&text, 20, 20, &[]), (0..20).map(|t| 10 * t + t % 7).collect::<Vec<u32>>());
}

const PRINTS: &str = "
    .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
    .extern .func (.param .b64 r) malloc(.param .b64 n);
    .extern .func free(.param .b64 p);
    .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
    .global .align 1 .b8 text[24] = {37, 100, 32, 37, 46, 50, 102, 32, 37, 115, 10, 0, 119, 111, 114, 100, 0};
    .global .align 1 .b8 x[2] = {120, 0};
";

#[test]
fn kernels_print() {
    let text = format!(
        "{HEAD}{PRINTS}.visible .entry k(.param .u64 o) {{ .local .align 8 .b8 a[24]; .reg .u64 O, A, T; .reg .u32 n;
         .reg .f64 d; ld.param.u64 O, [o]; mov.u64 A, a; cvta.local.u64 A, A; mov.u32 n, %tid.x; st.u32 [A], n;
         cvt.rn.f64.u32 d, n; mul.f64 d, d, 0d3FE0000000000000; st.f64 [A+8], d;
         mov.u64 T, text; cvta.global.u64 T, T; add.u64 T, T, 12; st.u64 [A+16], T; sub.u64 T, T, 12;
         {{ .param .b64 p; .param .b64 q; .param .b32 r; st.param.b64 [p], T; st.param.b64 [q], A;
         call (r), vprintf, (p, q); ld.param.b32 n, [r]; }} st.global.u32 [O], n; ret; }}"
    );
    let (outcome, words) = run(&text, 3, 1, &[], Options::default());
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    assert_eq!(String::from_utf8(outcome.printed).unwrap(), "0 0.00 word\n1 0.50 word\n2 1.00 word\n");
    assert_eq!(words, [3], "the number of arguments");
}

#[test]
fn kernels_allocate_and_free() {
    let text = format!(
        "{HEAD}{PRINTS}.visible .entry k(.param .u64 o) {{ .reg .u64 O, M; .reg .u32 x, t; ld.param.u64 O, [o];
         mov.u32 t, %tid.x; mad.wide.u32 O, t, 4, O;
         {{ .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); ld.param.b64 M, [r]; }}
         st.u32 [M+8], t; bar.sync 0; ld.u32 x, [M+8]; st.global.u32 [O], x;
         {{ .param .b64 p; st.param.b64 [p], M; call free, (p); }} ret; }}"
    );
    assert_eq!(words(&text, 64, 64, &[]), (0..64).collect::<Vec<u32>>());
    let twice = text.replace("call free, (p); }", "call free, (p); call free, (p); }");
    let (outcome, _) = run(&twice, 1, 1, &[], Options::default());
    let finding = &outcome.report.findings[0];
    assert_eq!((finding.check, &*finding.message), (Check::Trap, "frees an address that `malloc` did not return"));
    // A request beyond the heap gives null.
    let large = text.replace("st.param.b64 [n], 16", "st.param.b64 [n], 0x10000000000").replace(
        "st.u32 [M+8], t; bar.sync 0; ld.u32 x, [M+8];",
        ".reg .pred p; setp.eq.u64 p, M, 0; selp.u32 x, 1, 0, p;",
    );
    assert_eq!(words(&large, 1, 1, &[]), [1]);
}

#[test]
fn assertions_stop_the_launch() {
    let text = format!(
        "{HEAD}{PRINTS}.visible .entry k(.param .u64 o, .param .u32 n) {{ .reg .b64 f; .reg .b32 t, m; .reg .pred p;
         ld.param.u32 m, [n]; mov.u32 t, %tid.x; setp.lt.u32 p, t, m; @p bra OK; mov.u64 f, x; cvta.global.u64 f, f;
         {{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], f;
         st.param.b64 [b], f; st.param.b32 [c], 7; st.param.b64 [d], f; st.param.b64 [e], 1;
         call.uni __assertfail, (a, b, c, d, e); }} OK: ret; }}"
    );
    words(&text, 4, 1, &[4]);
    let (outcome, _) = run(&text, 4, 1, &[2], Options::default());
    let line = |t: u32| format!("x:7: x: block: [0,0,0], thread: [{t},0,0] Assertion `x` failed.\n");
    assert_eq!(outcome.asserted, line(2) + &line(3));
    let finding = &outcome.report.findings[0];
    assert_eq!((finding.check, finding.count), (Check::Assertion, 2));
}

/// Checks barriers of all blocks: by the function of CUDA's device runtime, and by a counter that
/// each block polls.
#[test]
fn blocks_of_cooperative_launches_wait_for_one_another() {
    let text = |barrier: &str| {
        format!(
            "{HEAD}.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);
             .extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);
             .visible .entry k(.param .u64 out) {{ .reg .b64 o, a, h; .reg .b32 b, n, t, v; .reg .pred p, q;
             ld.param.u64 o, [out]; mov.u32 b, %ctaid.x; mov.u32 n, %nctaid.x; mov.u32 t, %tid.x;
             mad.wide.u32 a, b, 4, o; setp.ne.u32 p, t, 0; add.u32 v, b, 1; @!p st.volatile.global.u32 [a], v;
             {barrier}
             add.u32 v, b, 1; rem.u32 v, v, n; mad.wide.u32 h, v, 4, o; ld.volatile.global.u32 v, [h];
             @!p st.volatile.global.u32 [a+32], v; ret; }}"
        )
    };
    let by_function = "
        { .param .b32 s; .param .b64 r; st.param.b32 [s], 1; call (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 h, [r]; }
        { .param .b64 x; .param .b32 f; .param .b32 r; st.param.b64 [x], h; st.param.b32 [f], 0;
          call (r), cudaCGSynchronize, (x, f); ld.param.b32 v, [r]; }";
    // The code of cooperative groups: two registers of the driver hold the workspace's address.
    let by_counter = "
        mov.b32 v, %envreg2; mov.b32 t, %envreg1; mov.b64 h, {v, t}; bar.sync 0;
        @p bra met; membar.gl; atom.global.add.u32 t, [h+4], 1;
        poll: ld.volatile.global.u32 t, [h+4]; setp.lt.u32 q, t, n; @q bra poll;
        met: bar.sync 0;";
    let expected: Vec<u32> = (1..=8).chain((2..=8).chain([1])).collect();
    for barrier in [by_function, by_counter] {
        for policy in POLICIES {
            let options = Options { cooperative: true, policy, ..Options::default() };
            let (outcome, words) = run(&text(barrier), 64, 16, &[], options);
            assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
            assert_eq!(words, expected, "{barrier}");
        }
    }
    let (outcome, _) = run(&text(by_function), 64, 16, &[], Options::default());
    assert!(outcome.report.findings[0].message.contains("the launch is not cooperative"), "{}", outcome.report);
    // A block that ends early does not take part.
    let early = text(by_function).replace("add.u32 v, b, 1; @!p", "setp.eq.u32 q, b, 3; @q exit; add.u32 v, b, 1; @!p");
    let options = Options { cooperative: true, ..Options::default() };
    let (outcome, words) = run(&early, 64, 16, &[], options);
    assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
    assert_eq!(words, [1, 2, 3, 0, 5, 6, 7, 8, 2, 3, 0, 0, 6, 7, 8, 1]);
}

/// Checks a barrier of all blocks in memory, in launches that are not cooperative: by loads, by
/// atomic operations, and with a barrier of the block in the loop.
#[test]
fn blocks_of_small_launches_wait_for_one_another() {
    let text = |poll: &str| {
        format!(
            "{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b64 o, a; .reg .b32 b, n, t, v; .reg .pred p, q;
             ld.param.u64 o, [out]; mov.u32 b, %ctaid.x; mov.u32 n, %nctaid.x; mov.u32 t, %tid.x;
             mad.wide.u32 a, b, 4, o; setp.ne.u32 p, t, 0; add.u32 v, b, 1; @!p st.volatile.global.u32 [a], v;
             @!p membar.gl; @!p atom.global.add.u32 t, [o+124], 1;
             poll: {poll} setp.lt.u32 q, t, n; @q bra poll;
             bar.sync 0; add.u32 v, b, 1; rem.u32 v, v, n; mad.wide.u32 a, v, 4, o; ld.volatile.global.u32 v, [a];
             mad.wide.u32 a, b, 4, o; @!p st.volatile.global.u32 [a+64], v; ret; }}"
        )
    };
    let polls = [
        "ld.volatile.global.u32 t, [o+124];",
        "atom.global.or.b32 t, [o+124], 0;",
        "bar.sync 0; ld.volatile.global.u32 t, [o+124];",
        "membar.gl; ld.global.u32 t, [o+124];",
    ];
    let expected: Vec<u32> = (1..=8).chain([0; 8]).chain(2..=8).chain([1]).chain([0; 7]).chain([8]).collect();
    for poll in polls {
        for policy in POLICIES {
            for schedule in [Schedule::InOrder, Schedule::Reversed] {
                let options = Options { policy, schedule, ..Options::default() };
                let (outcome, words) = run_blocks(&text(poll), [8, 32], 32, &[], options);
                assert!(outcome.report.findings.is_empty(), "{poll} {schedule}: {}", outcome.report);
                assert_eq!(words, expected, "{poll} {schedule}");
            }
        }
        // Six multiprocessors hold six blocks of 1024 threads, and 16 blocks of a warp are certain.
        for [blocks, threads] in [[8, 1024], [17, 32]] {
            let message = stopped(&text(poll), [blocks, threads]);
            let expected = format!("and the {blocks} blocks of the launch need not be resident at once");
            assert!(
                message.starts_with("a wait for another block") && message.contains(&expected),
                "{poll}: {message}"
            );
        }
        // The blocks wait for one more block than there is.
        let message = stopped(&text(poll).replace("mov.u32 n, %nctaid.x;", "mov.u32 n, 9;"), [8, 32]);
        assert!(message.starts_with("a deadlock"), "{poll}: {message}");
    }
}

/// Checks a lock for which lanes of a warp compete. A GPU before sm_70 never ends such a launch.
#[test]
fn lanes_that_wait_for_a_lock_of_their_warp_are_named() {
    let text = |leaves: &str| {
        format!(
            "{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b64 o; .reg .b32 t, v; .reg .pred p, q;
             ld.param.u64 o, [out]; mov.u32 t, %tid.x; {leaves}
             take: atom.global.cas.b32 v, [o], 0, 1; setp.ne.u32 p, v, 0; @p bra take;
             ld.volatile.global.u32 v, [o+4]; add.u32 v, v, 1; st.volatile.global.u32 [o+4], v; membar.gl;
             atom.global.exch.b32 v, [o], 0; free: ret; }}"
        )
    };
    for (shape, start) in
        [([1, 32], "a wait within a warp"), ([99, 64], "a wait within a warp"), ([4, 32], "a deadlock")]
    {
        let message = stopped(&text(""), shape);
        assert!(message.starts_with(start) && message.contains("lanes of a warp poll"), "{shape:?}: {message}");
    }
    // One lane of each warp takes the lock.
    let one = text("and.b32 t, t, 31; setp.ne.u32 q, t, 0; @q bra free;");
    for policy in POLICIES {
        let options = Options { policy, ..Options::default() };
        let (outcome, words) = run_blocks(&one, [4, 64], 2, &[], options);
        assert!(outcome.report.findings.is_empty(), "{}", outcome.report);
        assert_eq!(words, [0, 8]);
    }
}

/// Runs a launch that never ends, and returns the message that stops it long before the limit.
fn stopped(text: &str, shape: [u32; 2]) -> String {
    let (outcome, _) = run_blocks(text, shape, 64, &[], Options::default());
    assert_eq!(outcome.report.findings[0].check, Check::FuelExhausted, "{}", outcome.report);
    assert!(outcome.statistics.warp_instructions < 1 << 25, "{:?}", outcome.statistics);
    outcome.report.findings[0].message.clone()
}
