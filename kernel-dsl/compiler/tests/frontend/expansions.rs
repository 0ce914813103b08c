//! Expansions as tokens: what is in them, that they are Rust, and that no input makes a macro
//! panic. What rustc says to them is tested with rustc, in crate `tests`.

use kernel_dsl_compiler::expand::{device, kernel, link, step};
use kernel_dsl_compiler::hir::{DeviceLibrary, serial};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Item;
use syn::visit::Visit;

const SAXPY: &str = "
    /// y ← a·x + y
    pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
        let i = grid::index();
        if i < y.len() { y[i] = a.mul_add(x[i], y[i]); }
    }";

const MATMUL: &str = "
    #[requires(a.cols() == b.rows(), c.rows() == a.rows(), c.cols() == b.cols())]
    pub fn matmul<const T: usize>(a: View<f32, 2>, b: View<f32, 2>, mut c: ViewMut<f32, 2>) {
        let ta = Shared::<f32, 2>::padded([T, T]);
        let tb = Shared::<f32, 2>::padded([T, T]);
        let (row, col) = (block::y() * T + thread::y(), block::x() * T + thread::x());
        let mut acc = 0.0;
        for k in (0..a.cols()).step_by(T) {
            ta.copy_from(a.offset((block::y() * T, k)));
            tb.copy_from(b.offset((k, block::x() * T)));
            block::sync();
            for i in unroll(0..T) { acc = ta[(thread::y(), i)].mul_add(tb[(i, thread::x())], acc); }
            block::sync();
        }
        if row < c.rows() && col < c.cols() { c[(row, col)] = acc; }
    }";

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("tokens")
}

fn expand(attribute: &str, item: &str) -> TokenStream {
    kernel(tokens(attribute), tokens(item))
}

/// Parses an expansion. Returns its items.
fn items(expansion: &TokenStream) -> Vec<Item> {
    syn::parse2::<syn::File>(expansion.clone()).unwrap_or_else(|e| panic!("{e}: {expansion}")).items
}

/// Returns the arguments of all calls of the macro `name` in an expansion.
fn said(expansion: &TokenStream, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut bang = Vec::new();
    for token in expansion.clone() {
        match &token {
            TokenTree::Group(g) => {
                match bang.as_slice() {
                    [.., TokenTree::Ident(i), TokenTree::Punct(p)] if i == name && p.as_char() == '!' => {
                        found.push(g.stream().to_string());
                    }
                    _ => found.extend(said(&g.stream(), name)),
                }
                bang.clear();
            }
            _ => bang.push(token),
        }
    }
    found
}

/// Returns the HIR that the macro of a device function passes.
fn handed(expansion: &TokenStream) -> Vec<u8> {
    let mut literals = Literals(Vec::new());
    for item in items(expansion) {
        if let Item::Macro(m) = item {
            literals.tokens(m.mac.tokens);
        }
    }
    literals.0.pop().expect("a literal").value()
}

struct Literals(Vec<syn::LitByteStr>);

impl Literals {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(g) => self.tokens(g.stream()),
                other => self.0.extend(syn::parse2::<syn::LitByteStr>(other.into())),
            }
        }
    }
}

/// Returns what a device item expands to in a module, and in a block.
fn levels(expansion: &TokenStream) -> Option<[TokenStream; 2]> {
    let choices = tokens(&said(expansion, "level").pop()?);
    let choices: Vec<_> = choices
        .into_iter()
        .map(|choice| match choice {
            TokenTree::Group(choice) => choice.stream(),
            other => panic!("{other}"),
        })
        .collect();
    choices.try_into().ok()
}

/// Simulates rustc on a chain: the state of the first call, followed by the literals of all macros.
/// A kernel calls them by aliases. A device item is in a block.
fn follow(expansion: &TokenStream, macros: &[(&str, &TokenStream)]) -> TokenStream {
    let in_block = levels(expansion).map(|[_, in_block]| in_block);
    let expansion = in_block.as_ref().unwrap_or(expansion);
    let called = |name: &str| said(expansion, name).pop().map(|state| tokens(&state));
    let (first, _) = macros[0];
    let own = called(first);
    let aliased = own.is_none();
    let state: Vec<TokenTree> =
        own.or_else(|| called("__callee_0")).expect("the chain's first call").into_iter().collect();
    let stops = state[0].to_string();
    for (i, (name, _)) in macros.iter().enumerate().skip(1) {
        let name = if aliased { format!("__callee_{i}") } else { name.to_string() };
        assert!(stops.contains(&name), "{stops}");
    }
    assert!(stops.replace(' ', "").ends_with("[::kernel_dsl::__link]]"), "{stops}");
    let rest = &state[1..];
    let literals = macros.iter().map(|(_, device)| proc_macro2::Literal::byte_string(&handed(device)));
    link(quote!([] #(#rest)* #(#literals)*))
}

#[test]
fn a_kernel_is_a_namespace() {
    let expansion = expand("block = 256, grid = y.len().div_ceil(256)", SAXPY);
    let items = items(&expansion);
    let Item::Struct(s) = &items[0] else { panic!("{expansion}") };
    assert_eq!(s.ident, "saxpy");
    assert!(
        matches!(&s.fields, syn::Fields::Named(f) if f.named.is_empty()),
        "braced, so that `let saxpy` stays possible"
    );
    assert!(matches!(s.vis, syn::Visibility::Public(_)));
    assert!(s.attrs.iter().any(|a| a.path().is_ident("doc")));
    let text = expansion.to_string();
    for part in [
        "SliceArgument < 'a , f32 >",
        "SliceMutArgument < 'a , f32 >",
        "a : f32",
        "submit !",
        "const PTX : & 'static str",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn instances_have_the_names_of_their_declarations() {
    let name = |attribute: &str, item: &str| {
        let text = expand(&format!("block = 1, grid = 1, {attribute}"), item).to_string();
        let names = text.split("Declared { name : \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_string());
        names.collect::<Vec<_>>()
    };
    let kernel =
        "fn k<const N: usize, T: Float, const F: bool>(y: View<T, 1>, mut z: ViewMut<T, 1>) { let _ = (N, F); }";
    assert_eq!(name("instances(N = 4, T = f32, F = true)", kernel), ["k<N = 4, f32, F = true>"]);
    assert_eq!(name("instances(tile: N = 4, T = f32, F = true)", kernel), ["k@tile"]);
    // Each parameter with alternatives adds its value.
    let several = "instances(tile: N = 4 | 8, T = f32 | f16, F = false; wide: N = 16, T = f32, F = false | true)";
    assert_eq!(
        name(several, kernel),
        ["k@tile_n4_f32", "k@tile_n4_f16", "k@tile_n8_f32", "k@tile_n8_f16", "k@wide", "k@wide_f"]
    );
    assert_eq!(name("", "fn k(y: &mut [f32]) {}"), ["k"]);
}

#[test]
fn instances_have_their_ptx_and_the_generic_type_its_constants() {
    let attribute = "block = (T, T), grid = 1, instances(T = 16 | 32)";
    let expansion = expand(attribute, MATMUL);
    items(&expansion);
    let text = expansion.to_string();
    for part in [
        "impl matmul < 16 >",
        "impl matmul < 32 >",
        "impl < const T : usize > matmul < T >",
        "device_usize (T)",
        "ViewArgument < 'a , f32 , 2 >",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_expansion_contains_rustcs_type_checks() {
    let text = expand(
        "block = 1, grid = 1",
        "fn k(y: &mut [f32]) { let mut t = 0.0; t += y[0]; y[0] = warp::sum(t); block::sync(); }",
    )
    .to_string();
    assert!(text.contains("let _ = & t as & :: core :: primitive :: f32 ;"), "{text}");
    assert!(
        text.contains("let mut function = block :: sync ; function = :: kernel_dsl :: prelude :: block :: sync ;"),
        "{text}"
    );
    assert!(text.contains("warp :: sum :: < :: core :: primitive :: f32 > ;"), "{text}");
}

/// Checks that no variable is compared with the type of another, in an editor that gives all tokens
/// the same position.
#[test]
fn types_of_names_at_one_location_are_not_compared() {
    let item = quote::quote!(
        fn k(y: &mut [f32]) {
            let i = grid::index();
            y[i] = 1.0;
        }
    );
    let text = kernel(tokens("block = 1, grid = 1"), item).to_string();
    assert!(text.contains("let mut function = grid :: index") && !text.contains("let _ = & "), "{text}");
}

#[test]
fn launch_expressions_are_in_the_copy() {
    let expansion = expand(
        "block = (8, 4), grid = (y.len(), n)",
        "#[requires(n > 0)] fn k(n: usize, y: &mut [f32]) { y[0] = 1.0; }",
    );
    let text = expansion.to_string();
    for part in ["blocks_or_threads : 8", "blocks_or_threads : 4", "blocks_or_threads : y . len ()", "if n > 0 { }"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn each_rejection_is_reported_once_and_uses_still_resolve() {
    let expansion = expand(
        "block = 1, grid = 1",
        "fn k<const N: usize>(y: &mut [f32]) { let s = \"x\"; let c = move || 1; y[0] = 1.0; }",
    );
    items(&expansion);
    assert_eq!(said(&expansion, "compile_error").len(), 2);
    assert_eq!(said(&expansion, "panic").len(), 0);
    assert!(expansion.to_string().contains("impl < const N : usize > k < N >"));
}

#[test]
fn errors_of_the_macro_come_after_rustcs() {
    let expansion =
        expand("block = 1, grid = 1", "fn k(y: &mut [f32]) { let a: usize = 0x1_0000_0000; y[a] = missing; }");
    items(&expansion);
    assert_eq!(said(&expansion, "compile_error").len(), 0);
    assert_eq!(said(&expansion, "panic").len(), 2);
    let text = expansion.to_string();
    assert!(text.contains("fn k () -> impl :: core :: marker :: Sized { | y : & mut [f32] | -> ()"), "{text}");
    assert_eq!(text.matches("missing ;").count(), 1, "one copy, so that rustc counts its errors once");
}

#[test]
fn a_device_function_stays_and_gets_a_macro_of_its_visibility() {
    let expansion = device(tokens(""), tokens("pub fn twice(x: f32) -> f32 { x + x }"));
    let items = items(&expansion);
    assert!(matches!(&items[0], Item::Fn(f) if f.sig.ident == "twice"));
    let Some(Item::Macro(m)) = items.iter().find(|i| matches!(i, Item::Macro(_))) else { panic!() };
    assert!(m.attrs.iter().any(|a| a.path().is_ident("macro_export")));
    assert!(m.ident.as_ref().is_some_and(|i| i.to_string().starts_with("__device_twice_")));
    let library = serial::library(&handed(&expansion)).unwrap();
    assert_eq!(library.functions[0].name, "twice");

    let private = device(tokens(""), tokens("pub(crate) fn twice(x: f32) -> f32 { x + x }"));
    assert!(!private.to_string().contains("macro_export"));
    assert!(private.to_string().contains("pub (crate) use __device_twice_"));
}

#[test]
fn equal_functions_in_two_places_have_macros_of_two_names() {
    let name = |expansion: &TokenStream| {
        items(expansion)
            .into_iter()
            .find_map(|i| if let Item::Macro(m) = i { m.ident } else { None })
            .unwrap()
            .to_string()
    };
    let both = tokens("pub fn f(x: f32) -> f32 { x } pub fn f(x: f32) -> f32 { x }");
    let functions = syn::parse2::<syn::File>(both).unwrap().items;
    let names: Vec<_> = functions.iter().map(|f| name(&device(TokenStream::new(), f.to_token_stream()))).collect();
    assert_ne!(names[0], names[1]);
}

#[test]
fn a_chain_ends_with_everything_available() {
    let twice = device(tokens(""), tokens("fn twice(x: f32) -> f32 { x + x }"));
    let start = device(tokens(""), tokens("fn four(x: f32) -> f32 { twice(twice(x)) }"));
    let four = follow(&start, &[("twice", &twice)]);
    let library = serial::library(&handed(&four)).unwrap();
    let names: Vec<_> = library.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["four", "twice"]);

    let start = expand("block = 1, grid = 1", "fn k(y: &mut [f32]) { y[0] = four(y[0]) + other::twice(y[1]); }");
    items(&start);
    let artifact = follow(&start, &[("four", &four), ("twice", &twice)]);
    let artifact = syn::parse2::<syn::Expr>(artifact).expect("an expression");
    assert!(artifact.to_token_stream().to_string().contains(":: kernel_dsl :: Artifact"));
}

#[test]
fn callers_of_an_invalid_function_report_nothing() {
    let failed = device(tokens(""), tokens("fn twice(x: f32) -> f32 { let s = \"x\"; x }"));
    assert_eq!(said(&failed, "compile_error").len(), 1);
    assert_eq!(handed(&failed), b"");
    let start = device(tokens(""), tokens("fn four(x: f32) -> f32 { twice(twice(x)) }"));
    let four = follow(&start, &[("twice", &failed)]);
    assert_eq!(said(&four, "compile_error").len(), 0);
    assert_eq!(handed(&four), b"");
    let start = expand("block = 1, grid = 1", "fn k(y: &mut [f32]) { y[0] = four(y[0]); }");
    let artifact = follow(&start, &[("four", &four)]);
    assert!(said(&artifact, "compile_error").is_empty() && said(&artifact, "panic").is_empty());
}

/// Simulates rustc on the chain of a device item in a module.
#[test]
fn in_a_module_the_chain_defines_macros_and_the_rest_is_in_a_block() {
    let once = device(tokens(""), tokens("fn once(x: f32) -> f32 { x }"));
    let start = device(tokens(""), tokens("pub fn thrice(x: f32) -> f32 { once(x) + host::twice(x) }"));
    let [in_module, _] = levels(&start).expect("a choice");
    let stop = |tokens_of: &TokenStream| {
        let [fallback, ..] = &said(tokens_of, "cfg_select")[..] else { panic!("{tokens_of}") };
        let fallback = tokens(fallback);
        let body = fallback.into_iter().last().expect("a body").into_token_stream();
        let state: Vec<TokenTree> = tokens(&said(&body, "__define")[0]).into_iter().collect();
        assert_eq!(state[0].to_string(), "b\"missing\"");
        state[1..].iter().cloned().collect::<TokenStream>()
    };
    let state = stop(&in_module);
    let library = proc_macro2::Literal::byte_string(&handed(&once));
    let second = step(quote!(#library #state));
    let state = stop(&second);
    let ended = step(quote!(b"missing" #state));
    let exported = items(&ended).swap_remove(0).into_token_stream();
    assert_eq!(handed(&exported), b"", "a callee of the host: callers report nothing");
    let names: Vec<_> = said(&ended, "panic").into_iter().chain(said(&ended, "compile_error")).collect();
    assert_eq!(names, [""; 0], "the rest reports");
    let rest = link(
        quote!([] {device} { (crate = ::kernel_dsl) pub fn thrice(x: f32) -> f32 { once(x) + host::twice(x) } } #library b"missing" 7u64),
    );
    let [message] = said(&rest, "panic").try_into().unwrap();
    assert!(message.contains("`host::twice` is not a device item, so a device function cannot use it"), "{message}");
    assert!(!items(&rest).iter().any(|item| matches!(item, Item::Macro(_))), "{rest}");
}

#[test]
fn a_foreign_hir_is_refused_at_the_call() {
    let mut stale = serial::encode_library(&DeviceLibrary::default());
    stale[0] = 77;
    let literal = proc_macro2::Literal::byte_string(&stale);
    let linked = link(quote!([] { device } { (crate = ::kernel_dsl) fn four(x: f32) -> f32 { twice(x) } } #literal));
    let [message] = said(&linked, "compile_error").try_into().unwrap();
    assert!(message.contains("cannot read the device item `twice`: found HIR of format 77"), "{message}");
}

#[test]
fn the_facade_is_where_the_attribute_says() {
    let expansion = expand("block = 1, grid = 1, crate = ::a::b", "fn k(y: &mut [f32]) { y[0] = f(1.0); }");
    assert!(!expansion.to_string().contains("kernel_dsl"), "{expansion}");
    let expansion = device(tokens("crate = ::a::b"), tokens("fn f(x: f32) -> f32 { g(x) }"));
    assert!(!expansion.to_string().contains("kernel_dsl"), "{expansion}");
}

/// Checks that every name that can appear in a message is the user's, or describes itself.
#[test]
fn the_expansion_contains_no_generated_names() {
    struct Underscored(Vec<String>);
    impl<'a> Visit<'a> for Underscored {
        fn visit_ident(&mut self, ident: &'a Ident) {
            self.0.extend(ident.to_string().starts_with("__").then(|| ident.to_string()));
        }
    }
    for expansion in [expand("block = 256, grid = 1", SAXPY), expand("block = T, grid = 1, instances(T = 4)", MATMUL)] {
        let mut found = Underscored(Vec::new());
        found.visit_file(&syn::parse2(expansion).unwrap());
        found.0.retain(|name| name != "__private");
        assert_eq!(found.0, [""; 0]);
    }
}

#[test]
fn no_input_makes_a_macro_panic() {
    let attributes = [
        "",
        "block",
        "block =",
        "block = 1, grid",
        "instances(",
        "crate =",
        "crate = 5",
        "= = =",
        "256",
        "block = (1, 2, 3, 4), grid = ()",
        "instances(T = )",
        "crate",
        "block = 1, grid = 1, instances(T = \"x\" | 99999999999)",
    ];
    let items = [
        "",
        "struct S;",
        "fn",
        "fn f",
        "fn f()",
        "fn f();",
        "fn f() {}",
        "fn f(self) {}",
        "fn f(&mut self, x: f32) {}",
        "async fn f() {}",
        "const unsafe extern \"C\" fn f<'a, T: 'a, const N: u8 = 3>(x: &'a T, _: [T; N], (a, b): (u8, u8), ...) -> impl Fn() where T: Copy { || () }",
        "fn f(x: impl Copy, y: dyn Fn(), z: !, w: _, f: fn(u8) -> u8, p: *const u8) -> f32 { 1.0 }",
        "fn f<const T: usize>(x: View<>, y: ViewMut, z: View<f32, T>, w: &[[f32; 2]], v: &mut f32) { f(); line(); loop { break 5; } }",
        "fn f(x: &[f32]) { match x { _ => {} } return 5; async {}; x?; unsafe {} ; yield 1; let _ = [1; 2; 3]; }",
        "#[requires()] #[requires] #[requires = 5] #[requires(a b)] #[doc] #[doc = include_str!(\"x\")] fn f() {}",
        "pub(in a::b) fn f() { a::b::<3>::c::<f32>(1); ::d(2); Self::x(); self.y(); }",
        "impl X { fn f() {} }",
        "mod m { fn f() {} }",
        "5 + 5",
        "fn f() { let x = 1u128; let y = 99999999999999999999999; let v = 9999999999999999999999999999999999999999; let z = 1e999f32; let w = 0xffu8 as char; }",
    ];
    let known: Vec<_> = items.iter().filter_map(|text| text.parse::<TokenStream>().ok()).collect();
    for attribute in attributes.iter().filter_map(|text| text.parse::<TokenStream>().ok()) {
        for item in &known {
            kernel(attribute.clone(), item.clone());
            device(attribute.clone(), item.clone());
            link(quote!([] {kernel} { (#attribute) #item }));
            link(quote!([] {device} { (#attribute) #item } b"" b"x"));
            link(quote!(#attribute #item));
            step(quote!(b"" [] {device exports} { (#attribute) #item } b""));
            step(quote!(b"missing" [a r#b] {module exports} { (#attribute) #item }));
            step(quote!(#attribute #item));
        }
    }
}
