//! Mistakes that rustc reports where it sees the kernel, in texts that it does not see. The fuzzer
//! `wrong` in `tests/fuzz` compares our checker with rustc on thousands of such texts.

use kernel_dsl_compiler::source_file::standalone;

/// Items that the kernels of this file use.
const ITEMS: &str = "
#[device]
struct Account { total: f32, count: u32 }

#[device]
#[derive(Clone, Copy, PartialEq)]
enum Figure { Dot, Disk(f32), Bar { length: f32, width: u32 } }

#[device]
fn spend(account: Account) -> f32 { account.total }

#[device]
fn deposit(account: &mut Account, by: f32) { account.total += by; }

#[device]
fn swap(left: &mut f32, right: &mut f32) { let kept = *left; *left = *right; *right = kept; }

#[device]
fn largest<T: Number>(a: T, b: T) -> T { if a > b { a } else { b } }

#[device]
mod bank {
    use kernel_dsl::prelude::*;
    #[derive(Clone, Copy)]
    pub struct Rate { percent: f32, pub fixed: bool }
    impl Rate {
        pub fn new(percent: f32) -> Self { Rate { percent, fixed: false } }
        fn hidden(self) -> f32 { self.percent }
        pub fn shown(self) -> f32 { self.hidden() }
    }
    pub trait Map: Copy { fn map(self, x: f32) -> f32; }
    fn private(x: f32) -> f32 { x }
    pub fn public(x: f32) -> f32 { private(x) }
}
use bank::{Map, Rate, public};
";

/// Returns the message about a kernel with this body; an empty one if there is none.
fn message(items: &str, body: &str) -> String {
    let text = format!(
        "{ITEMS}{items}\n#[kernel(block = 32, grid = 1)]\nfn k(n: u32, x: &[f32], y: &mut [f32]) {{\n    let i = thread::x();\n    {body}\n}}\n"
    );
    standalone(&text, "f.rs", None).err().map(|errors| errors.to_string()).unwrap_or_default()
}

/// Checks that each body has a message with each part, separated by `…`, in order.
fn refused(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (body, expected) in cases {
        let said = message("", body);
        let mut rest = said.as_str();
        let found = expected.split('…').all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        });
        if !found || said.is_empty() {
            wrong.push(format!("{body}\nexpected: {expected}\nfound: {said}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn accepted(bodies: &[&str]) {
    let wrong: Vec<String> = bodies
        .iter()
        .map(|body| (body, message("", body)))
        .filter(|(_, said)| !said.is_empty())
        .map(|(body, said)| format!("{body}\n{said}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn patterns_cover_all_values() {
    refused(&[
        ("let v = match n { 0 => 1.0, 2..=9 => 2.0 }; y[i] = v;", "this `match` does not cover `1`: add an arm"),
        ("let v = match n { 0..=9 => 1.0, 11.. => 2.0 }; y[i] = v;", "does not cover `10`"),
        ("let v = match n as i8 { -128..=-1 => 1.0, 1.. => 2.0 }; y[i] = v;", "does not cover `0`"),
        ("let v = match i { 0 => 1.0, 1..=5 => 2.0 }; y[i] = v;", "does not cover `6..`"),
        ("let v = match n > 3 { true => 1.0 }; y[i] = v;", "does not cover `false`"),
        ("let v = match (n > 3, i > 3) { (true, _) => 1.0, (_, true) => 2.0 }; y[i] = v;", "`(false, false)`"),
        ("let v = match x[i] { 0.0 => 1.0 }; y[i] = v;", "does not cover all values"),
        ("let v = match x.get(i).copied() { Some(v) if v > 0.0 => v, None => 1.0 }; y[i] = v;", "`Some(_)`"),
        (
            "let s = Figure::Dot; y[i] = match s { Figure::Dot => 1.0, Figure::Bar { width: 0, .. } => 2.0, Figure::Disk(_) => 3.0 };",
            "does not cover `Figure::Bar(_, 1..)`",
        ),
        ("let Some(v) = x.get(i).copied(); y[i] = v;", "this pattern does not cover `None`: write `let … else"),
        ("let (0, v) = (n, 1.0) ; y[i] = v;", "this pattern does not cover `(1.., _)`"),
    ]);
    accepted(&[
        "y[i] = match n { 0 => 1.0, 1..=9 => 2.0, 10.. => 3.0 };",
        "y[i] = match n as i8 { i8::MIN..=-1 => 1.0, 0 => 2.0, 1..=i8::MAX => 3.0 };",
        "y[i] = match (n > 3, i) { (true, _) => 1.0, (false, 0) => 2.0, (false, 1..) => 3.0 };",
        "y[i] = match [n > 3, i > 3] { [true, ..] => 1.0, [_, true] => 2.0, [false, false] => 3.0 };",
        "let s = Figure::Dot; y[i] = match s { Figure::Dot => 1.0, Figure::Bar { .. } => 2.0, Figure::Disk(r) => r };",
    ]);
}

#[test]
fn variables_have_a_value() {
    refused(&[
        ("const C: f32 = 1.0; const C: f32 = 2.0; y[i] = C;", "this block has two constants `C`: rename one of them"),
        ("let v: f32; y[i] = v;", "`v` may have no value here: assign it on every path"),
        ("let v; if n > 3 { v = 1.0; } y[i] = v;", "`v` may have no value here"),
        ("let v; while n > 3 { v = 1.0; break; } y[i] = v;", "`v` may have no value here"),
        ("let v; v = 1.0; v = 2.0; y[i] = v;", "`v` may be assigned a second time here: declare it `mut`"),
        ("let v; for _ in 0..n { v = 1.0; } y[i] = 1.0;", "`v` may be assigned a second time here"),
    ]);
    accepted(&[
        "let v; if n > 3 { v = 1.0; } else { return; } y[i] = v;",
        "let v; match n { 0 => v = 1.0, 1 => return, _ => v = 2.0 } y[i] = v;",
        "let v; loop { v = 1.0; break; } y[i] = v;",
        "for _ in 0..n { let v; v = 1.0; y[i] = v; }",
        "let mut v; v = 1.0; v += 2.0; y[i] = v;",
    ]);
}

#[test]
fn moved_values_are_not_used() {
    let account = "let mut a = Account { total: x[i], count: 1 };";
    let refusals = [
        ("let b = a; y[i] = a.total + b.total;", "`a` is used after it was moved: pass a reference, `&a`"),
        ("y[i] = spend(a) + spend(a);", "`a` is used after it was moved"),
        ("for _ in 0..n { y[i] = spend(a); }", "`a` is used after it was moved"),
        ("if n > 3 { y[i] = spend(a); } deposit(&mut a, 1.0);", "`a` is used after it was moved"),
        ("let f = || spend(a); y[i] = f() + f();", "`f` is used after it was moved"),
        (
            "let r = &a; y[i] = spend(*r);",
            "this value cannot be moved out of a reference: derive `Clone, Copy` for `Account`",
        ),
        ("let all = [a]; y[i] = spend(all[0]);", "this value cannot be moved out of an element"),
    ];
    let refusals: Vec<_> = refusals.iter().map(|(body, said)| (format!("{account} {body}"), *said)).collect();
    refused(&refusals.iter().map(|(body, said)| (body.as_str(), *said)).collect::<Vec<_>>());
    let right = [
        "let b = a; a = Account { total: 1.0, count: 2 }; y[i] = a.total + b.total;",
        "if n > 3 { y[i] = spend(a); } else { y[i] = a.total; }",
        "deposit(&mut a, 1.0); deposit(&mut a, 2.0); y[i] = spend(a);",
        "let Account { total, count } = a; y[i] = total + count as f32 + a.total;",
    ];
    let right: Vec<_> = right.iter().map(|body| format!("{account} {body}")).collect();
    accepted(&right.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn borrows_do_not_conflict() {
    refused(&[
        ("let mut a = x[i]; swap(&mut a, &mut a); y[i] = a;", "`a` is borrowed here by a reference that is used later"),
        ("let mut a = x[i]; let r = &mut a; a = 2.0; *r = 1.0; y[i] = a;", "`a` is borrowed here"),
        ("let mut a = x[i]; let r = &a; a = 2.0; y[i] = *r;", "`a` is borrowed here"),
        ("let mut a = x[i]; let r = &mut a; let s = &mut a; *r = 1.0; *s = 2.0; y[i] = a;", "`a` is borrowed here"),
        ("let r; { let a = x[i]; r = &a; } y[i] = *r;", "the reference is used after the end of its block"),
        ("let mut c = 0; let mut f = || c += 1; f(); c += 1; f(); y[i] = c as f32;", "`c` is borrowed here"),
        ("let mut c = 0; let f = || c += 1; f(); y[i] = c as f32;", "so its variable must be `mut`: `let mut f"),
    ]);
    accepted(&[
        "let mut a = x[i]; let mut b = 1.0; swap(&mut a, &mut b); swap(&mut b, &mut a); y[i] = a;",
        "let mut a = x[i]; let r = &mut a; *r = 1.0; a += 2.0; let r = &mut a; *r += 1.0; y[i] = a;",
        "let mut p = [x[i], 1.0]; for v in &mut p { *v += 1.0; } for v in &mut p { *v *= 2.0; } y[i] = p[0];",
        "let mut a = (x[i], 1.0); swap(&mut a.0, &mut a.1); y[i] = a.0;",
        "let mut c = 0; let mut f = || c += 1; f(); f(); c += 1; y[i] = c as f32;",
    ]);
}

#[test]
fn closures_have_the_trait_of_their_parameter() {
    let items = "
#[device]
fn reads(f: impl Fn(f32) -> f32) -> f32 { f(1.0) + f(2.0) }
#[device]
fn writes(mut f: impl FnMut(f32) -> f32) -> f32 { f(1.0) + f(2.0) }
#[device]
fn once<F: FnOnce() -> Account>(f: F) -> f32 { f().total }
";
    let account = "let mut s = 0.0; let account = Account { total: 1.0, count: 1 };";
    for (more, body, expected) in [
        ("", "y[i] = reads(|v| { s += v; v });", "this closure changes what it captures, and the parameter is `Fn`"),
        (
            "",
            "let mut add = |v| { s += v; v }; y[i] = reads(add);",
            "the parameter is `Fn`: declare the parameter `FnMut`",
        ),
        ("", "y[i] = writes(|v| v + spend(account));", "takes what it captures, and the parameter is `FnMut`"),
        ("", "y[i] = reads(|v| v + spend(account));", "takes what it captures, and the parameter is `Fn`"),
        ("", "y[i] = warp::reduce(1.0, |a, b| { s += a; a + b });", "the parameter is `Fn`"),
        ("", "y[i] = [1.0, 2.0].map(|v| v + spend(account))[0];", "the parameter is `FnMut`"),
        ("fn g(f: impl FnMut(f32) -> f32) -> f32 { f(1.0) }", "y[i] = g(|v| v);", "declare it `mut f`"),
        ("fn g(f: impl FnOnce() -> f32) -> f32 { f() + f() }", "y[i] = g(|| 1.0);", "`f`"),
        ("fn g(mut f: impl FnMut(f32) -> f32) -> f32 { reads(f) }", "y[i] = g(|v| v);", "the parameter is `Fn`"),
    ] {
        let more = if more.is_empty() { String::new() } else { format!("#[device]\n{more}\n") };
        let said = message(&format!("{items}{more}"), &format!("{account} {body}"));
        assert!(said.contains(expected), "{body}\nexpected: {expected}\nfound: {said}");
    }
    for (more, body) in [
        ("", "y[i] = reads(|v| v + s) + spend(account);"),
        ("", "y[i] = writes(|v| { s += v; s });"),
        ("", "let mut add = |v| { s += v; v }; y[i] = add(1.0) + writes(add);"),
        ("", "y[i] = once(|| account);"),
        ("", "y[i] = warp::reduce(1.0, |a, b| a + b + s);"),
        ("", "y[i] = [1.0, 2.0].map(|v| { s += v; v })[0];"),
        ("", "let all: [f32; 3] = std::array::from_fn(|k| { s += k as f32; s }); y[i] = all[2];"),
        ("", "y[i] = x.get(i).copied().map(|v| { s += v; v }).unwrap_or(s);"),
        ("", "y[i] = x.get(i).copied().map(|v| v + spend(account)).unwrap_or(s);"),
        ("fn g(f: impl Fn(f32) -> f32) -> f32 { writes(f) }", "y[i] = g(|v| v);"),
        ("fn g(mut f: impl FnMut(f32) -> f32) -> f32 { writes(f) }", "y[i] = g(|v| { s += v; v });"),
    ] {
        let more = if more.is_empty() { String::new() } else { format!("#[device]\n{more}\n") };
        let said = message(&format!("{items}{more}"), &format!("{account} {body}"));
        assert!(said.is_empty(), "{body}\n{said}");
    }
}

#[test]
fn conversions_take_no_generic_arguments() {
    let items = |call: &str| format!("#[device]\nfn narrow<T: Float>(x: T) -> f32 {{ x.{call} }}\n");
    assert!(
        message(&items("to_f32::<usize>()"), "y[i] = narrow(1.0f32);").contains("`to_f32` takes no generic arguments")
    );
    assert_eq!(message(&items("to_f32()"), "y[i] = narrow(1.0f32);"), "");
}

#[test]
fn device_copies_are_copies() {
    let derived = |derives: &str, more: &str| {
        let items = format!("#[device]\n#[derive({derives})]\n#[repr(C)]\nstruct Pair {{ a: f32, b: f32 }}\n{more}");
        message(&items, "let p = Pair { a: 1.0, b: 2.0 }; let q = Pair { a: 3.0, ..p }; y[i] = q.a + q.b;")
    };
    assert!(
        derived("Clone, DeviceCopy", "").contains("`DeviceCopy` needs `Copy`"),
        "{}",
        derived("Clone, DeviceCopy", "")
    );
    assert_eq!(derived("Clone, Copy, DeviceCopy", ""), "");
    assert_eq!(derived("Clone, DeviceCopy", "impl Copy for Pair {}\n"), "");
}

#[test]
fn certain_failures_are_denied() {
    refused(&[
        ("y[i] = (255u8 + 1) as f32;", "this is 256, which does not fit in `u8`"),
        ("let zero = 0; y[i] = (n / zero) as f32;", "this divides by zero"),
        ("let few = [1.0, 2.0]; y[i] = few[2];", "the index 2 is beyond the end of this array, which has 2 elements"),
        ("let v: i8 = 128; y[i] = v as f32;", "`128` does not fit in `i8`, whose largest number is 127"),
        ("let v: f32 = 1e39; y[i] = v;", "this number does not fit in `f32`"),
        ("y[i] = x[-1];", "`-` does not apply to `usize`, which has no negative values"),
        ("let v = -1; y[i] = x[i + v];", "`-` does not apply to `usize`"),
        ("let by = 40; y[i] = (n << by) as f32;", "a shift by 40 is out of range for `u32`"),
    ]);
    accepted(&[
        "let v: i8 = -128; y[i] = v as f32 + i8::MIN as f32;",
        "let v = -1; y[i] = (v + n as i32) as f32;",
        "y[i] = 255u8.wrapping_add(1) as f32;",
    ]);
}

#[test]
fn names_are_those_of_rust() {
    refused(&[
        ("y[i] = bank::private(x[i]);", "`private` is private to its module: declare it `pub`"),
        ("y[i] = private(x[i]);", "`private` is not in scope here: import it, `use …::private;`"),
        ("let r = Rate::new(1.0); y[i] = r.percent;", "the field `percent` of `Rate` is private to its module"),
        ("let r = Rate { percent: 1.0, fixed: true }; y[i] = r.shown();", "the field `percent` of `Rate` is private"),
        ("let r = Rate::new(1.0); y[i] = r.hidden();", "`hidden` is private to its module"),
        ("let r = Rate::new(1.0); y[i] = r.shown::<f32>();", "`shown` takes 0 generic arguments, 1 given"),
        ("let p = [x[i], 1.0]; y[i] = p.len::<f32>() as f32;", "`len` takes no generic arguments"),
        ("let (v, v) = (x[i], 1.0); y[i] = v;", "the name `v` is bound twice"),
        ("if n > 3 { 1.0 } else { 2.0 } y[i] = 1.0;", "expected `()`, found"),
        ("y[i] = if largest(true, false) { 1.0 } else { 2.0 };", "`bool` does not implement `Number`"),
    ]);
    let twice = "#[device]\nfn f(x: f32) -> f32 { x }\n#[device]\nfn f(x: f32) -> f32 { x }\n";
    assert!(message(twice, "y[i] = f(x[i]);").contains("the item `f` is declared twice"));
    let unused = "#[device]\nfn f(x: f32) -> u32 { x }\n";
    assert!(message(unused, "y[i] = 1.0;").contains("expected `u32`, found `f32`"));
    let lacks = "#[device]\nmod m {\n    use super::bank::Map;\n    #[derive(Clone, Copy)]\n    pub struct S;\n    impl Map for S {}\n}\n";
    let said = message(lacks, "y[i] = 1.0;");
    assert!(said.contains("this impl lacks `map` of the trait `Map`"), "{said}");
    let moves = "#[device]\nmod m {\n    use super::bank::Map;\n    pub struct S;\n    impl Map for S {\n        fn map(self, x: f32) -> f32 { x }\n    }\n}\n";
    let said = message(moves, "y[i] = 1.0;");
    assert!(said.contains("`S` does not implement `Copy`, which the trait `Map` needs"), "{said}");
    let missing = "use bank::Nothing;\n";
    assert!(message(missing, "y[i] = 1.0;").contains("there is no item `bank::Nothing` to import"));
}
