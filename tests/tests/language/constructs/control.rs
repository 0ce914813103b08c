//! Constructs of statements and control flow.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[branches::ALL, patterns::ALL, loops::ALL, functions::ALL];

const A: [u32; 8] = [0, 1, 2, 3, 7, 8, 12, 20];

values! { branches, "Statements and control", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`let x = …;`" fn binding -> u32 { let x = a + 1; x * b }
    "`let mut x`, `x = …`" fn assignment -> u32 { let mut x = a; x = x * 2 + b; x }
    "`let x;`, set later" fn set_later -> u32 { let x; if a > b { x = a } else { x = b } x }
    "shadowing" fn shadowing -> u32 { let a = a + b; let a = a * 2; a }
    "`(x, y) = (y, x)`" fn destructuring -> u32 { let (mut x, mut y) = (a, b); (x, y) = (y, x); x * 10 + y }
    "`std::mem::swap(&mut a, &mut b)`" fn exchanged -> u32 { let (mut x, mut y) = (a, b); std::mem::swap(&mut x, &mut y); x * 10 + y }
    "`{ … }`, a block as a value" fn block -> u32 { let x = { let y = a * 3; y + 1 }; x + b }
    "`if`, `else if`, `else`" fn branch -> u32 { if a > 10 { a - b } else if a > 2 { a * b } else { b } }
    "`p && q`, `p || q`" fn lazy -> u32 { (a != 0 && 24 / a > b || b == 2) as u32 }
    "`if let`" fn if_let -> u32 { let o = if a > b { Some(a) } else { None }; if let Some(x) = o { x + 1 } else { 0 } }
    "`if let … && …`" fn chain -> u32 { let o = if a > b { Some(a) } else { None }; if let Some(x) = o && x % 2 == 0 { x } else { 1 } }
    "`let … else`" fn let_else -> u32 { let o = if a > b { Some(a) } else { None }; let mut r = 5; 'out: { let Some(x) = o else { break 'out }; r = x; } r }
    "`assert!(…)`" fn asserted -> u32 { assert!(b > 0, "b is {b}"); assert_ne!(a, 21); debug_assert!(a < 21); a + b }
    "`panic!(…)`" fn panics -> u32 { if a > 20 { panic!("a is {a:#x}") } else { a + b } }
    "`log!(…)`" fn logged -> u32 { if a > 20 { log!("a is {a}") } a + b }
    "`matches!(x, …)`" fn matches -> u32 { matches!(a, 1 | 3..=8) as u32 }
}

values! { patterns, "Patterns", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`match`, of numbers" fn literals -> u32 { match a { 0 => b, 3 => 30, 7 => 70, _ => a } }
    "`1..=4`, `5..`" fn ranges -> u32 { match a { 0..2 => 1, 2..=7 => 2, 8.. => 3 } }
    "`p | q`" fn alternatives -> u32 { match a { 1 | 2 | 3 => b, 7 | 8 => 2 * b, _ => 0 } }
    "`Some(x) | Other(x)`, alternatives that bind" fn bound_alternatives -> u32 { match (a, b) { (x, 1) | (3, x) => x * 10, (x @ (0 | 7), _) | (_, x) => x } }
    "`x @ 1..=4`" fn bound -> u32 { match a { x @ 1..=4 => x * 100, x => x } }
    "`x if …`" fn guard -> u32 { match a { x if x > 4 * b => x - b, x if x == b => 1000, _ => 2 } }
    "`(p, q)`" fn tuples -> u32 { match (a % 2, b) { (0, 1) => 1, (1, x) => x, (_, 5) => 55, _ => 9 } }
    "`[p, .., q]`" fn arrays -> u32 { let [x, .., y] = [a, 7, 8, b]; x * 10 + y }
    "`Some(p)`" fn options -> u32 { match (if a > 2 { Some((a, b)) } else { None }) { Some((x, 1)) => x, Some((_, y)) => y, None => 77 } }
    "`true`, `false`" fn truths -> u32 { match (a > 2, b > 1) { (true, true) => 3, (true, false) => 2, (false, _) => 1 } }
    "`_`" fn anything -> u32 { let (_, y) = (a, b); y }
    "`-1`, of signed numbers" fn negative -> u32 { match a as i32 - 2 { -2 => 20, -1 => 10, 0 => 5, _ => 1 } }
}

values! { loops, "Loops", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`while`" fn while_loop -> u32 { let (mut n, mut s) = (a, 0); while n > 0 { s += n; n /= 2; } s }
    "`while let`" fn while_let -> u32 { let mut o = Some(a); let mut s = 0; while let Some(x) = o { s += x; o = if x > b { Some(x - b) } else { None }; } s }
    "`loop`, `break` with a value" fn endless -> u32 { let mut n = a; loop { if n > 50 { break n; } n = n * 2 + b; } }
    "`break`" fn leaving -> u32 { let mut s = 0; for i in 0..100u32 { if i > a { break; } s += i; } s }
    "`continue`" fn skipping -> u32 { let mut s = 0; for i in 0..a { if i % 3 == b % 3 { continue; } s += i; } s }
    "`'name: for`, `break 'name`, `continue 'name`" fn labels -> u32 { let mut s = 0; 'out: for i in 0..a { for j in 0..i { if j > 3 { continue 'out; } if s > 60 { break 'out; } s += j; } } s }
    "`'name: { … break 'name x … }`" fn labeled_block -> u32 { 'found: { if a > 7 { break 'found 1; } if b > 1 { break 'found 2; } 3 } }
    "`for i in a..b`" fn range -> u32 { let mut s = 0; for i in b..a { s = s * 2 + i; s %= 1000; } s }
    "`(a..b).step_by(n)`" fn stepped -> u32 { let mut s = 0; for i in (0..a).step_by(3) { s += i; } s }
    "`(a..b).rev()`" fn reversed -> u32 { let mut s = 0; for i in (0..a).rev() { s = (s * 3 + i) % 1000; } s }
    "`for i in a..=b`" fn inclusive -> u32 { let mut s = 0; for i in 1..=a { s = (s * 3 + i) % 1000; } s }
    "`.enumerate()`" fn enumerated -> u32 { let mut s = 0; for (i, k) in (b as usize..a as usize).enumerate() { s += i * k; } s as u32 }
    "`for x in array`" fn of_array -> u32 { let mut s = 0; for x in [a, b, 5] { s = s * 2 + x; } s }
    "`for x in &array`, `array.iter()`" fn of_references -> u32 { let v = [a, b, 5]; let mut s = 0; for x in &v { s = s * 2 + *x; } for (i, x) in v.iter().enumerate() { s += x * i as u32; } s }
    "`for x in &mut array`" fn of_mutable_references -> u32 { let mut v = [a, b]; for x in &mut v { *x += 3; } v[0] * v[1] }
    "`unroll(a..b)`" fn unrolled -> u32 { let mut s = a; for i in unroll(0..4) { s = s * 2 + i as u32; } s }
    "`unroll_by::<N>(a..b)`" fn unrolled_by -> u32 { let mut s = 0; for i in unroll_by::<2>(0..a as usize) { s += i as u32 * b; } s }
    "`rolled(a..b)`" fn rolled_loop -> u32 { let mut s = a; for i in rolled(0..4) { s = s * 2 + i as u32; } s }
}

values! { functions, "Functions", (a: u32 = A, b: u32 = [1, 2, 5]):
    "`|x| …`" fn closure -> u32 { let f = |x: u32| x * b; f(a) + f(3) }
    "a closure that captures by reference" fn capture -> u32 { let mut n = 0; let mut add = |x: u32| n += x; add(a); add(b); n }
    "a call of a `#[device] fn`" fn call -> u32 { thrice(a) + b }
    "`impl Fn(A) -> B`" fn callable -> u32 { twice_over(a, |x| x + b) }
    "a function's path for `impl Fn`" fn by_path -> u32 { twice_over(a, thrice) }
    "`&mut` parameters" fn by_reference -> u32 { let mut x = a; grow(&mut x, b); grow(&mut x, 2); x }
    "a pattern as a parameter" fn pattern_parameter -> u32 { crossed((a, b), [3, 1, a]) }
    "`return`" fn early -> u32 { clipped(a) + b }
    "generic over a constant" fn over_constant -> u32 { summed::<3>([a, b, 1]) }
    "generic over types" fn over_types -> u32 { second(a as f32, b) }
}

/// Computes 3 · x.
#[device]
pub fn thrice(x: u32) -> u32 {
    3 * x
}

/// Computes f(f(x)).
#[device]
pub fn twice_over(x: u32, f: impl Fn(u32) -> u32) -> u32 {
    f(f(x))
}

/// Computes x ← x + by.
#[device]
pub fn grow(x: &mut u32, by: u32) {
    *x += by;
}

/// Computes a product of sums of parts.
#[device]
pub fn crossed((x, y): (u32, u32), [first, .., last]: [u32; 3]) -> u32 {
    (x + first) * (y + last)
}

/// Returns x, but at most 10.
#[device]
pub fn clipped(x: u32) -> u32 {
    if x > 10 {
        return 10;
    }
    x
}

/// Returns the sum of an array.
#[device]
pub fn summed<const N: usize>(v: [u32; N]) -> u32 {
    let mut s = 0;
    for i in unroll(0..N) {
        s += v[i];
    }
    s
}

/// Returns the second of two values.
#[device]
pub fn second<A: Copy, B: Copy>(_: A, b: B) -> B {
    b
}
