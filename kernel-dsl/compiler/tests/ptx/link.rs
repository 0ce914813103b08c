//! Tests of the linker: which definition of a name remains, and which modules do not fit together.

#[allow(dead_code, reason = "not every test needs all of it")]
use super::ptx_support;
use kernel_dsl_compiler::ptx::{Module, Statement, link, parse};

const HEAD: &str = ".version 6.0\n.target sm_61\n.address_size 64\n";

fn module(text: &str) -> Module {
    parse(&format!("{HEAD}{text}")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn linked(texts: &[&str]) -> Result<Module, String> {
    let named = texts.iter().enumerate().map(|(i, text)| (format!("{i}.ptx"), module(text))).collect();
    link(named).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Returns the linked module, whose printed text must mean the same and be legal.
fn good(texts: &[&str]) -> Module {
    let linked = linked(texts).unwrap();
    let printed = linked.to_string();
    let again = parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert_eq!(again.to_string(), printed);
    if ptx_support::installed() {
        ptx_support::assemble(&printed, 61).unwrap();
    }
    linked
}

const CALLER: &str = "
.extern .func (.param .b32 r) one(.param .b32 x);
.extern .global .u32 count;
.global .u32 own = 1;
.func helper() { ret; }
.visible .entry k(.param .u64 o)
.maxntid 32, 1, 1
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.global.u32 %r0, [count];
    ld.global.u32 %r2, [own];
    call helper;
    { .param .b32 a; .param .b32 q; st.param.b32 [a], %r0; call (q), one, (a); ld.param.b32 %r1, [q]; }
    mov.u64 %rd1, one;
    st.global.u32 [count], %r1;
    ret;
}";

const CALLEE: &str = "
.global .u32 own = 2;
.visible .global .u32 count = 41;
.func helper() { ret; }
.visible .func (.param .b32 r) one(.param .b32 x)
{
    .reg .b32 %r<2>;
    ld.param.b32 %r0, [x];
    ld.global.u32 %r1, [own];
    add.u32 %r0, %r0, %r1;
    call helper;
    st.param.b32 [r], %r0;
    ret;
}";

#[test]
fn names_with_linkage_are_joined_and_others_stay_apart() {
    for texts in [[CALLER, CALLEE], [CALLEE, CALLER]] {
        let linked = good(&texts);
        let names = |n: &str| linked.variables().iter().filter(|v| v.name.starts_with(n)).count();
        assert_eq!((names("count"), names("own")), (1, 2));
        let functions: Vec<&str> = linked.functions().iter().map(|f| &*f.name).collect();
        assert_eq!(functions.iter().filter(|n| **n == "one").count(), 1, "{functions:?}");
        assert_eq!(functions.iter().filter(|n| n.starts_with("helper")).count(), 2, "{functions:?}");
        let one = linked.functions().iter().find(|f| f.name == "one").unwrap();
        assert!(one.body.is_some());
    }
}

#[test]
fn strong_definitions_replace_weak_ones_and_the_first_weak_one_remains() {
    let function = |linkage: &str, n: u32| {
        format!(
            "{linkage} .func (.param .b32 r) f()\n{{\n    st.param.b32 [r], {n};\n    ret;\n}}\n{linkage} .global .u32 v = {n};\n"
        )
    };
    let (weak, other, strong) = (function(".weak", 1), function(".weak", 2), function(".visible", 3));
    for (texts, expected) in [
        (vec![&*weak, &*other], "1"),
        (vec![&*weak, &*strong], "3"),
        (vec![&*strong, &*weak], "3"),
        (vec![&*weak, &*strong, &*other], "3"),
    ] {
        let linked = good(&texts);
        assert_eq!(linked.functions().len(), 1);
        let printed = linked.to_string();
        assert!(printed.contains(&format!("st.param.b32 [r], {expected};")), "{printed}");
        assert!(printed.contains(&format!("v = {expected};")), "{printed}");
    }
    let twice = linked(&[&strong, &strong]).unwrap_err();
    assert_eq!(
        twice,
        "Multiple definition of 'f' in '1.ptx', first defined in '0.ptx'; \
         Multiple definition of 'v' in '1.ptx', first defined in '0.ptx'"
    );
}

#[test]
fn undefined_and_different_names_are_errors() {
    assert_eq!(
        linked(&[CALLER]).unwrap_err(),
        "Undefined reference to 'count' in '0.ptx'; Undefined reference to 'one' in '0.ptx'"
    );
    let other = CALLEE.replace(".b32 x", ".b64 x").replace("ld.param.b32 %r0, [x]", "mov.b32 %r0, 1");
    assert_eq!(linked(&[CALLER, &other]).unwrap_err(), "'one' is declared differently in '0.ptx' and in '1.ptx'");
    // The device has these functions, and the launch sets the size of shared memory.
    good(&[".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.extern .shared .b8 dynamic[];\n"]);
}

#[test]
fn common_variables_have_the_largest_size_and_aliases_survive() {
    let linked = good(&[".common .global .u32 c[2];", ".common .global .u32 c[5];", ".common .global .u32 c[3];"]);
    assert_eq!(linked.variables().iter().map(|v| v.size()).collect::<Vec<_>>(), [Some(20)]);
    let definition = ".func f() { ret; }\n.visible .func g();\n.alias g, f;\n";
    let user = ".extern .func g();\n.visible .entry k()\n{\n    call g;\n    ret;\n}\n";
    for texts in [[definition, user], [user, definition]] {
        let texts = texts.map(|t| t.to_string());
        let modules = texts
            .iter()
            .enumerate()
            .map(|(i, text)| (format!("{i}.ptx"), parse(&format!("{}{text}", HEAD.replace("6.0", "6.3"))).unwrap()));
        let linked = link(modules.collect()).unwrap();
        let g = linked.functions().iter().position(|f| f.name == "g").unwrap() as u32;
        let f = linked.definition(g).unwrap();
        assert_eq!(linked.functions()[f as usize].name, "f");
        assert!(parse(&linked.to_string()).is_ok(), "{linked}");
    }
}

#[test]
fn lines_refer_to_the_files_of_their_module() {
    let text = |file: &str| format!(".file 1 \"{file}\"\n.visible .entry {file}()\n{{\n.loc 1 7 3\nret;\n}}\n");
    let (a, b) = (text("a"), text("b"));
    let linked = good(&[&a, &b]);
    for (name, index) in [("a", 1), ("b", 3)] {
        let locations = linked.entry(name).unwrap().statements().iter().filter_map(|s| match s {
            Statement::Location(location) => Some(location.position.file),
            _ => None,
        });
        assert_eq!(locations.collect::<Vec<_>>(), [index]);
        assert!(linked.to_string().contains(&format!(".file {index} \"{name}\"")));
    }
}
