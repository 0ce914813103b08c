//! Right programs, damaged token by token: whatever comes of it, nothing panics and nothing takes long.

use crate::support::{Checked, Crate, Function, KERNELS, library};
use kernel_dsl_compiler::{Target, lower, passes};
use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};
use quote::ToTokens;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Damaged programs a test: some seconds unoptimised.
const PROGRAMS: u32 = 4000;
/// What one of them may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

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
    /// By another token of the program, or a number at the edge of something.
    Replace(TokenTree),
    /// Of a group's delimiters.
    Unwrap,
}

/// `tokens` with the token numbered `*at` damaged.
fn damaged(tokens: TokenStream, at: &mut usize, damage: &Damage) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if *at == 0 {
            *at = usize::MAX;
            match (damage, &token) {
                (Damage::Delete, _) => {}
                (Damage::Duplicate, _) => out.extend([token.clone(), token]),
                (Damage::Swap, _) => {
                    let next = tokens.next();
                    out.extend(next);
                    out.push(token);
                }
                (Damage::Replace(by), _) => out.push(by.clone()),
                (Damage::Unwrap, TokenTree::Group(g)) => out.extend(g.stream()),
                (Damage::Unwrap, _) => out.push(Group::new(Delimiter::Parenthesis, token.into()).into()),
            }
            continue;
        }
        *at = at.saturating_sub(usize::from(*at != usize::MAX));
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

/// As far as the function goes.
fn compile(all: &Crate, function: &Function) -> &'static str {
    let program = match all.check(function) {
        Ok(Checked::Kernel(program)) => program,
        Ok(Checked::Device(_)) => return "checked",
        Err(_) => return "refused",
    };
    let Some(instance) = program.launch.instances.first() else { return "checked" };
    match lower::lower(&program, instance, Target::SM_61) {
        Ok(kernel) => match passes::optimise(kernel) {
            Ok(_) => "compiled",
            Err(_) => "refused by a pass",
        },
        Err(_) => "refused by lowering",
    }
}

/// One damaged copy of `function`: its tokens, if they are still a function.
fn mutate(function: &Function, random: &mut Random) -> (String, Option<Function>) {
    let attribute = function.attribute.clone().unwrap_or_default();
    let mut tokens = function.item.to_token_stream();
    let is_kernel = function.attribute.is_some();
    let mut attribute_tokens = attribute;
    for _ in 0..1 + random.below(3) {
        let mut stock = Vec::new();
        all(&tokens, &mut stock);
        let edge = [0u64, 1, 31, 32, 48, 1025, 65536, 4294967295, 4294967296, u64::MAX];
        let damage = match random.below(6) {
            0 => Damage::Delete,
            1 => Damage::Duplicate,
            2 => Damage::Swap,
            3 => Damage::Replace(stock[random.below(stock.len())].clone()),
            4 => Damage::Replace(Literal::u64_unsuffixed(edge[random.below(edge.len())]).into()),
            _ => Damage::Unwrap,
        };
        // Launch expressions are a small part of a kernel, and have their share.
        if is_kernel && random.below(8) == 0 && !attribute_tokens.is_empty() {
            let mut at = random.below(count(&attribute_tokens));
            attribute_tokens = damaged(attribute_tokens, &mut at, &damage);
        } else {
            let mut at = random.below(count(&tokens));
            tokens = damaged(tokens, &mut at, &damage);
        }
    }
    let text = format!("#[kernel({attribute_tokens})]\n{tokens}");
    let item = syn::parse2(tokens).ok();
    (text, item.map(|item| Function { attribute: is_kernel.then_some(attribute_tokens), item }))
}

fn survives(texts: &[&str], seed: u64) {
    let library = library();
    let crates: Vec<_> =
        texts.iter().map(|t| Crate::parse(t).expect("the file is Rust").with(&library)).collect();
    let functions: Vec<_> = crates.iter().flat_map(|c| c.functions.iter().map(move |f| (c, f))).collect();
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
    assert!(outcomes["compiled"] > PROGRAMS / 50 && outcomes["refused"] > PROGRAMS / 50, "{outcomes:?}");
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
