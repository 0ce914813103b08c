//! Right programs, damaged token by token: whatever comes of it, nothing panics and nothing takes long.

use crate::support::{Checked, Crate, Function, KERNELS, library};
use kernel_dsl_compiler::{analyses, ir, lower, passes};
use proc_macro2::{Delimiter, Group, Ident, Literal, TokenStream, TokenTree};
use quote::ToTokens;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Damaged functions a test, of which the larger part is still a function: a second or two unoptimised.
const PROGRAMS: u32 = 4000;
/// What one of them may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Numbers at the edge of something.
const EDGES: [u64; 10] = [0, 1, 31, 32, 48, 1025, 65536, 4294967295, 4294967296, u64::MAX];

/// xorshift64* (Vigna, 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n.max(1) as u64) as usize
    }
}

/// Tokens of a tree, groups included.
fn count(tokens: &TokenStream) -> usize {
    let below = |t: TokenTree| match t {
        TokenTree::Group(g) => 1 + count(&g.stream()),
        _ => 1,
    };
    tokens.clone().into_iter().map(below).sum()
}

/// All tokens of a tree, in order.
fn all(tokens: &TokenStream, found: &mut Vec<TokenTree>) {
    for token in tokens.clone() {
        if let TokenTree::Group(g) = &token {
            all(&g.stream(), found);
        }
        found.push(token);
    }
}

/// What happens to a token.
enum Damage {
    Delete,
    Duplicate,
    /// With the one that follows.
    Swap,
    /// By one of these, the first of its kind: most programs stay functions that way.
    Replace(Vec<TokenTree>),
    /// Of a group's delimiters.
    Unwrap,
}

/// Whether a parser may take one where it takes the other.
fn alike(a: &TokenTree, b: &TokenTree) -> bool {
    let keyword = |i: &Ident| syn::parse_str::<Ident>(&i.to_string()).is_err();
    match (a, b) {
        (TokenTree::Group(a), TokenTree::Group(b)) => a.delimiter() == b.delimiter(),
        (TokenTree::Ident(a), TokenTree::Ident(b)) => keyword(a) == keyword(b),
        (TokenTree::Punct(a), TokenTree::Punct(b)) => a.spacing() == b.spacing(),
        (TokenTree::Literal(_), TokenTree::Literal(_) | TokenTree::Ident(_)) => true,
        (TokenTree::Ident(_), TokenTree::Literal(_)) => true,
        _ => false,
    }
}

/// `tokens` with the token numbered `*at` damaged.
fn damaged(tokens: TokenStream, at: &mut usize, damage: &Damage) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        if *at == 0 {
            *at = usize::MAX;
            match (damage, token) {
                (Damage::Delete, _) => {}
                (Damage::Duplicate, token) => out.extend([token.clone(), token]),
                (Damage::Swap, token) => {
                    out.extend(tokens.next());
                    out.push(token);
                }
                (Damage::Replace(by), token) => {
                    out.push(by.iter().find(|t| alike(&token, t)).unwrap_or(&token).clone())
                }
                (Damage::Unwrap, TokenTree::Group(g)) => out.extend(g.stream()),
                (Damage::Unwrap, token) => out.push(Group::new(Delimiter::Parenthesis, token.into()).into()),
            }
            continue;
        }
        *at -= usize::from(*at != usize::MAX);
        out.push(match token {
            TokenTree::Group(g) => {
                let mut group = Group::new(g.delimiter(), damaged(g.stream(), at, damage));
                group.set_span(g.span());
                group.into()
            }
            other => other,
        });
    }
    out.into_iter().collect()
}

/// A damaged copy of `function`: its text, and itself if it is still a function.
fn mutate(function: &Function, random: &mut Random) -> (String, Option<Function>) {
    let mut attribute = function.attribute.clone();
    let mut tokens = function.item.to_token_stream();
    for _ in 0..1 + random.below(3) {
        let mut stock = Vec::new();
        all(&tokens, &mut stock);
        let mut some: Vec<_> = (0..8).map(|_| stock[random.below(stock.len())].clone()).collect();
        let damage = match random.below(12) {
            0 => Damage::Delete,
            1 => Damage::Duplicate,
            2 => Damage::Swap,
            3 => Damage::Unwrap,
            4..7 => Damage::Replace(vec![Literal::u64_unsuffixed(EDGES[random.below(EDGES.len())]).into()]),
            _ => {
                some.push(Literal::f64_unsuffixed(0.5).into());
                Damage::Replace(some)
            }
        };
        // Launch expressions are a small part of a kernel, and have a share of their own.
        let part = match &mut attribute {
            Some(attribute) if !attribute.is_empty() && random.below(8) == 0 => attribute,
            _ => &mut tokens,
        };
        let mut at = random.below(count(part));
        *part = damaged(std::mem::take(part), &mut at, &damage);
    }
    let text = format!("#[kernel({})]\n{tokens}", attribute.clone().unwrap_or_default());
    (text, syn::parse2(tokens).ok().map(|item| Function { attribute, item }))
}

/// As far as the function goes.
fn compile(all: &Crate, function: &Function) -> &'static str {
    let program = match all.check(function) {
        Ok(Checked::Kernel(program)) => program,
        Ok(Checked::Device(_)) => return "checked",
        Err(_) => return "refused",
    };
    let Some(instance) = program.launch.instances.first() else { return "checked" };
    match lower::lower(&program, instance, program.launch.target) {
        Ok(kernel) => {
            ir::verify::verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
            if analyses::accept(&kernel).is_err() {
                return "refused by an analysis";
            }
            match passes::optimise(kernel) {
                Ok(_) => "compiled",
                Err(_) => "refused by a pass",
            }
        }
        Err(_) => "refused by lowering",
    }
}

fn survives(texts: &[&str], seed: u64) {
    let library = library();
    let read = |text: &&str| Crate::parse(text).expect("the file is Rust");
    let crates: Vec<_> = texts.iter().map(|text| (read(text), read(text).with(&library))).collect();
    let functions: Vec<_> = crates.iter().flat_map(|(own, all)| own.functions.iter().map(move |f| (all, f))).collect();
    let mut random = Random(seed);
    let mut outcomes = std::collections::BTreeMap::<&str, u32>::new();
    for _ in 0..PROGRAMS {
        let (all, function) = functions[random.below(functions.len())];
        let (text, mutant) = mutate(function, &mut random);
        let Some(mutant) = mutant else {
            *outcomes.entry("not a function").or_default() += 1;
            continue;
        };
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| compile(all, &mutant)));
        assert!(start.elapsed() < PATIENCE, "{:?} for:\n{text}", start.elapsed());
        match outcome {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(_) => panic!("a panic for:\n{text}"),
        }
    }
    println!("{outcomes:?}");
    // Damage that no program survives, or all do, would test one stage alone.
    assert!(["compiled", "refused"].iter().all(|o| outcomes[o] > PROGRAMS / 40), "{outcomes:?}");
}

#[test]
fn kernels_damaged() {
    survives(&KERNELS, 1);
}

#[test]
fn constructs_damaged() {
    let texts = [
        include_str!("lowered/values.rs"),
        include_str!("lowered/control.rs"),
        include_str!("lowered/functions.rs"),
        include_str!("lowered/memory.rs"),
    ];
    survives(&texts, 2);
}

/// Inline PTX in a loop, with every direction.
const INLINE: &str = r##"
#[device]
fn product(a: u32, b: u32) -> (u32, u32) {
    ptx!("mul.lo.u32 {low}, {a}, {b};", "mul.hi.u32 {high}, {a}, {b};", a = in(u32) a, b = in(u32) b, low = out(u32), high = out(u32))
}

#[kernel(block = 64, grid = x.len().div_ceil(64))]
pub fn inline(x: &[u32], y: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        let mut sum = 0;
        for k in 0..4 {
            let (low, high) = product(x[i], k as u32);
            sum = ptx!("@{p} add.u32 {d}, {d}, {a};", p = in(bool) k < 2, a = in(u32) low ^ high, d = inout(u32) sum);
        }
        ptx!("pmevent 3;");
        y[i] = ptx!("cvt.rz.f32.u32 {d}, {a};", a = in(u32) sum, d = out(f32));
    }
}
"##;

#[test]
fn inline_ptx_damaged() {
    survives(&[INLINE], 3);
}
