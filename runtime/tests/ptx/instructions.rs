//! Instructions from text against plain Rust: each on a pool of boundary values, in full warps and
//! in single lanes.

use super::kit::{Run, module};
use runtime::ptx::Check;

/// Returns boundary values, and others.
fn pool() -> Vec<u64> {
    let edges = [0, 1, 2, 7, 31, 32, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    let floats = [0.5f32, 1.0, -1.0, 1.5, -2.5, 3e9, -3e9, 1e-40, f32::INFINITY, f32::NAN, f32::MAX]
        .map(|x| u64::from(x.to_bits()));
    let mut x = 0x243f_6a88_85a3_08d3u64;
    let random = std::iter::repeat_with(move || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        x ^ x >> 29
    });
    edges.into_iter().chain(edges.map(|e| !e)).chain(floats).chain(random.take(23)).collect()
}

/// Returns operands for 32 lanes: a runs over the pool, and b and c vary for each.
fn operands() -> Vec<[u64; 3]> {
    let pool = pool();
    let n = pool.len();
    (0..n * 8).map(|i| [pool[i % n], pool[(i * 7 + i / n * 5) % n], pool[(i * 11 + i / n * 3 + 1) % n]]).collect()
}

/// Runs `body` on operands, and compares the result in %d20 with `expected`. The operands are in
/// %d10, %d11 and %d12, low words in %r10…, halves in %h10…, floats in %f10… and %g10…. The results
/// must not depend on the active lanes.
fn check(name: &str, body: &str, expected: impl Fn(u64, u64, u64) -> u64) {
    let load = "
        mul.lo.u32 %r1, %r0, 24;
        cvt.u64.u32 %d3, %r1;
        add.u64 %d3, %d3, %d1;
        ld.global.u64 %d10, [%d3];
        ld.global.u64 %d11, [%d3+8];
        ld.global.u64 %d12, [%d3+16];
        cvt.u32.u64 %r10, %d10;
        cvt.u32.u64 %r11, %d11;
        cvt.u32.u64 %r12, %d12;
        cvt.u16.u64 %h10, %d10;
        cvt.u16.u64 %h11, %d11;
        cvt.u16.u64 %h12, %d12;
        mov.b32 %f10, %r10;
        mov.b32 %f11, %r11;
        mov.b32 %f12, %r12;
        mov.b64 %g10, %d10;
        mov.b64 %g11, %d11;
        mov.b64 %g12, %d12;
        mov.u64 %d20, 0;";
    let whole = module("", &format!("{load}\n{body}\nst.global.u64 [%d2], %d20;"));
    // The odd lanes run first, then the even ones.
    let parted = module(
        "",
        &format!(
            "{load}\nand.b32 %r2, %r0, 1;\nsetp.eq.u32 %p9, %r2, 0;\n@%p9 bra $even;\n{body}\nbra $end;\n$even:\n{body}\n\
             $end:\nst.global.u64 [%d2], %d20;"
        ),
    );
    for lanes in operands().chunks_exact(32) {
        let input: Vec<u64> = lanes.iter().flatten().copied().collect();
        let (together, apart) = (Run::default().good(&whole, 32, &input), Run::default().good(&parted, 32, &input));
        for (lane, [a, b, c]) in lanes.iter().enumerate() {
            let expected = expected(*a, *b, *c);
            assert_eq!(together[lane], expected, "{name} of {a:#x}, {b:#x}, {c:#x}");
            assert_eq!(apart[lane], expected, "{name} of {a:#x}, {b:#x}, {c:#x}, lanes apart");
        }
    }
}

/// Checks an instruction with a 32-bit result in %r20.
fn check32(instruction: &str, expected: impl Fn(u32, u32, u32) -> u32) {
    let body = format!("{instruction}\ncvt.u64.u32 %d20, %r20;");
    check(instruction, &body, |a, b, c| expected(a as u32, b as u32, c as u32).into());
}

/// Checks an instruction with a 16-bit result in %h20.
fn check16(instruction: &str, expected: impl Fn(u16, u16, u16) -> u16) {
    let body = format!("{instruction}\ncvt.u64.u16 %d20, %h13;").replace("%h20", "%h13");
    check(instruction, &body, |a, b, c| expected(a as u16, b as u16, c as u16).into());
}

/// Checks an instruction with a predicate result in %p1.
fn check_predicate(instruction: &str, expected: impl Fn(u64, u64, u64) -> bool) {
    check(instruction, &format!("{instruction}\nselp.u64 %d20, 1, 0, %p1;"), |a, b, c| expected(a, b, c).into());
}

/// Returns the bits of a single, with one canonical NaN.
fn single(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

/// Checks a float function whose result is in %f20, with one canonical NaN.
fn check_float(instruction: &str, expected: impl Fn(f32, f32, f32) -> f32) {
    let text = instruction.replace("%f20", "%f13");
    let body = format!("{text}\nmov.b32 %r20, %f13;\ncvt.u64.u32 %d20, %r20;");
    check(instruction, &body, |a, b, c| {
        single(expected(f32::from_bits(a as u32), f32::from_bits(b as u32), f32::from_bits(c as u32))).into()
    });
}

#[test]
fn operations_of_32_bits_match_their_definition() {
    check32("add.u32 %r20, %r10, %r11;", |a, b, _| a.wrapping_add(b));
    check32("sub.s32 %r20, %r10, %r11;", |a, b, _| a.wrapping_sub(b));
    check32("add.sat.s32 %r20, %r10, %r11;", |a, b, _| (a as i32).saturating_add(b as i32) as u32);
    check32("sub.sat.s32 %r20, %r10, %r11;", |a, b, _| (a as i32).saturating_sub(b as i32) as u32);
    check32("mul.lo.u32 %r20, %r10, %r11;", |a, b, _| a.wrapping_mul(b));
    check32("mul.hi.u32 %r20, %r10, %r11;", |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    check32("mul.hi.s32 %r20, %r10, %r11;", |a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
    check32("mad.lo.s32 %r20, %r10, %r11, %r12;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    check32("mad.hi.sat.s32 %r20, %r10, %r11, %r12;", |a, b, c| {
        (((i64::from(a as i32) * i64::from(b as i32)) >> 32) + i64::from(c as i32))
            .clamp(i32::MIN.into(), i32::MAX.into()) as u32
    });
    check32("min.u32 %r20, %r10, %r11;", |a, b, _| a.min(b));
    check32("max.s32 %r20, %r10, %r11;", |a, b, _| (a as i32).max(b as i32) as u32);
    check32("neg.s32 %r20, %r10;", |a, _, _| a.wrapping_neg());
    check32("abs.s32 %r20, %r10;", |a, _, _| (a as i32).wrapping_abs() as u32);
    check32("or.b32 %r11, %r11, 1;\ndiv.s32 %r20, %r10, %r11;", |a, b, _| {
        (a as i32).wrapping_div((b | 1) as i32) as u32
    });
    check32("or.b32 %r11, %r11, 1;\nrem.u32 %r20, %r10, %r11;", |a, b, _| a % (b | 1));
    check32("sad.s32 %r20, %r10, %r11, %r12;", |a, b, c| (a as i32).abs_diff(b as i32).wrapping_add(c));
    check32("mad24.lo.u32 %r20, %r10, %r11, %r12;", |a, b, c| {
        (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)
    });
    check32("dp4a.s32.s32 %r20, %r10, %r11, %r12;", |a, b, c| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        (0..4).fold(c, |sum, i| sum.wrapping_add((i32::from(a[i] as i8) * i32::from(b[i] as i8)) as u32))
    });
    check32("dp2a.hi.u32.s32 %r20, %r10, %r11, %r12;", |a, b, c| {
        let b = b.to_le_bytes();
        let sum = i64::from(a & 0xffff) * i64::from(b[2] as i8) + i64::from(a >> 16) * i64::from(b[3] as i8);
        (sum + i64::from(c)) as u32
    });
}

#[test]
fn operations_of_16_and_64_bits_match_their_definition() {
    check16("add.u16 %h20, %h10, %h11;", |a, b, _| a.wrapping_add(b));
    check16("mul.hi.s16 %h20, %h10, %h11;", |a, b, _| ((i32::from(a as i16) * i32::from(b as i16)) >> 16) as u16);
    check16("shr.s16 %h20, %h10, 3;", |a, _, _| (a as i16 >> 3) as u16);
    check16("and.b32 %r11, %r11, 31;\nshl.b16 %h20, %h10, %r11;", |a, b, _| {
        a.checked_shl(u32::from(b & 31)).unwrap_or(0)
    });
    check16("not.b16 %h20, %h10;", |a, _, _| !a);
    check16("min.s16 %h20, %h10, %h11;", |a, b, _| (a as i16).min(b as i16) as u16);
    check32("mul.wide.s16 %r20, %h10, %h11;", |a, b, _| (i32::from(a as i16) * i32::from(b as i16)) as u32);
    check("mul.wide", "mul.wide.s32 %d20, %r10, %r11;", |a, b, _| (i64::from(a as i32) * i64::from(b as i32)) as u64);
    check("mad.wide", "mad.wide.u32 %d20, %r10, %r11, %d12;", |a, b, c| {
        (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(c)
    });
    check("mul.hi.u64", "mul.hi.u64 %d20, %d10, %d11;", |a, b, _| ((u128::from(a) * u128::from(b)) >> 64) as u64);
    check("mad.lo.s64", "mad.lo.s64 %d20, %d10, %d11, %d12;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    check("max.s64", "max.s64 %d20, %d10, %d11;", |a, b, _| (a as i64).max(b as i64) as u64);
    check("shr.s64", "shr.s64 %d20, %d10, %r11;", |a, b, _| (a as i64 >> (b as u32).min(63)) as u64);
    check("shl.b64", "shl.b64 %d20, %d10, %r11;", |a, b, _| a.checked_shl(b as u32).unwrap_or(0));
}

/// Computes `fns` by the machine code that ptxas 12.9 generates for sm_61, step by step.
fn fns_in_machine_code(mask: u32, base: u32, offset: i32) -> u32 {
    let shl = |x: u32, by: u32| x.checked_shl(by).unwrap_or(0);
    let (mut bits, base, reversed, wanted) = match offset {
        0 => (mask & shl(1, base), base, false, 1),
        1.. => (mask, base, false, offset as u32),
        _ => (mask.reverse_bits(), 31u32.wrapping_sub(base), true, offset.wrapping_neg() as u32),
    };
    bits &= shl(u32::MAX, base);
    let all = bits.count_ones();
    let (mut left, mut at) = (wanted, 0);
    for half in [16, 8, 4, 2, 1] {
        let low = (bits & ((1 << half) - 1)).count_ones();
        if low < left {
            (bits, left, at) = (bits >> half, left - low, at + half);
        }
    }
    if (all as i32) < wanted as i32 {
        return u32::MAX;
    }
    if reversed { 31 - at } else { at }
}

#[test]
fn searches_beyond_the_documented_range_are_defined() {
    let body = "
        mad.wide.u32 %d3, %r0, 8, %d1;
        ld.global.v2.u32 {%r1, %r2}, [%d3];
        ld.global.u32 %r3, [%d1+256];
        fns.b32 %r4, %r3, %r1, %r2;
        cvt.u64.u32 %d4, %r4;
        st.global.u64 [%d2], %d4;";
    let text = module("", body);
    let offsets = [0, 1, 2, 5, 31, 32, 33, 1 << 20, i32::MAX];
    let offsets: Vec<i32> = offsets.iter().flat_map(|x| [*x, -x]).chain([i32::MIN, i32::MIN + 1]).collect();
    for mask in [0, 1, 1 << 31, 0x8001_0003, 0x5a5a_1234, u32::MAX] {
        for base in [0, 1, 15, 30, 31, 32, 33, 63, 64, 1 << 31, u32::MAX] {
            for some in offsets.chunks(5) {
                let pairs: Vec<(u32, i32)> = (0..32).map(|i| (base, some[i % some.len()])).collect();
                let words = pairs.iter().map(|(b, o)| u64::from(*b) | u64::from(*o as u32) << 32);
                let input: Vec<u64> = words.chain([mask.into()]).collect();
                let (outcome, words) = Run::default().of(&text, 32, &input);
                let expected: Vec<u64> = pairs.iter().map(|(b, o)| fns_in_machine_code(mask, *b, *o).into()).collect();
                assert_eq!(words, expected, "{mask:#x} {pairs:?}");
                let outside = pairs.iter().any(|(b, o)| *b > 31 || *o == i32::MIN);
                let found: Vec<Check> = outcome.report.findings.iter().map(|f| f.check).collect();
                assert_eq!(found, vec![Check::UndefinedValue; usize::from(outside)], "{mask:#x} {pairs:?}");
            }
        }
    }
}

/// Checks the carry between all forms. In sm_61 machine code, `CC.CF` is the adder's carry. For
/// `sub.cc`, ptxas emits `IADD.CC` with a negated operand; for every form that reads the carry,
/// `IADD.X`. A difference without a borrow thus sets the carry to 1, whichever form reads it.
#[test]
pub fn carries_pass_between_all_instructions() {
    let part = |x: u64, bits: u32| if bits == 64 { x } else { x & 0xffff_ffff };
    for ty in ["u32", "s32", "u64", "s64"] {
        let bits: u32 = ty[1..].parse().unwrap();
        let (class, [a, b, c]) =
            if bits == 64 { ("b64", ["%d10", "%d11", "%d12"]) } else { ("b32", ["%r10", "%r11", "%r12"]) };
        // The sum of each form, at most 129 bits, of the operands and the previous carry.
        let product = move |a: u64, b: u64, high: bool| {
            let whole = match ty {
                "u32" | "u64" => u128::from(a) * u128::from(b),
                "s32" => (i128::from(a as u32 as i32) * i128::from(b as u32 as i32)) as u128,
                _ => (i128::from(a as i64) * i128::from(b as i64)) as u128,
            };
            u128::from(part((if high { whole >> bits } else { whole }) as u64, bits))
        };
        type Sum = Box<dyn Fn(u64, u64, u64, u128) -> u128>;
        let not = move |b: u64| u128::from(part(!b, bits));
        let forms: [(&str, &str, Sum); 8] = [
            ("add", "addc", Box::new(|a, b, _, carry| u128::from(a) + u128::from(b) + carry)),
            ("sub", "subc", Box::new(move |a, b, _, carry| u128::from(a) + not(b) + carry)),
            ("mad.lo", "madc.lo", Box::new(move |a, b, c, carry| product(a, b, false) + u128::from(c) + carry)),
            ("mad.hi", "madc.hi", Box::new(move |a, b, c, carry| product(a, b, true) + u128::from(c) + carry)),
            ("addc", "addc", Box::new(|a, b, _, carry| u128::from(a) + u128::from(b) + carry)),
            ("subc", "subc", Box::new(move |a, b, _, carry| u128::from(a) + not(b) + carry)),
            ("madc.lo", "madc.lo", Box::new(move |a, b, c, carry| product(a, b, false) + u128::from(c) + carry)),
            ("madc.hi", "madc.hi", Box::new(move |a, b, c, carry| product(a, b, true) + u128::from(c) + carry)),
        ];
        for (i, (first, _, sum)) in forms.iter().enumerate() {
            for (_, second, next) in &forms[..4] {
                let operands = |name: &str, x: &str, y: &str| {
                    if name.starts_with("mad") { format!("{x}, {y}, {c}") } else { format!("{x}, {y}") }
                };
                let body = format!(
                    "{{ .reg .{class} first, second, third;
                     {{ .reg .b32 one; mov.u32 one, 1; add.cc.u32 one, one, 0xffffffff; }}
                     {first}.cc.{ty} first, {};
                     {second}.cc.{ty} second, {};
                     addc.{ty} third, 0, 0;
                     {{ .reg .b64 x, y; cvt.u64.u{bits} x, second; cvt.u64.u{bits} y, third;
                     shl.b64 y, y, 63; xor.b64 %d20, x, y; }} }}",
                    operands(first, a, b),
                    operands(second, b, a),
                );
                let expected = |a: u64, b: u64, c: u64| {
                    let [a, b, c] = [a, b, c].map(|x| part(x, bits));
                    let before = u128::from(i >= 4 || *first == "sub");
                    let carry = sum(a, b, c, before) >> bits & 1;
                    let result = next(b, a, c, carry);
                    part(result as u64, bits) ^ ((result >> bits & 1) as u64) << 63
                };
                check(&format!("{first}.cc.{ty}, {second}.cc.{ty}"), &body, expected);
            }
        }
    }
}

/// Checks a division of 128 bits by 128 in the style of NVRTC, where sums read the carry of
/// differences.
#[test]
pub fn division_of_128_bits_mixes_sums_and_differences() {
    let body = "
        mad.wide.u32 %d3, %r0, 32, %d1;
        ld.global.v2.u64 {%d4, %d5}, [%d3];
        ld.global.v2.u64 {%d6, %d7}, [%d3+16];
        mov.u64 %d8, 0;
        mov.u64 %d9, 0;
        mov.u64 %d10, 0;
        mov.u64 %d11, 0;
        mov.u32 %r1, 128;
    $bit:
        add.cc.u64 %d4, %d4, %d4;
        addc.cc.u64 %d5, %d5, %d5;
        addc.cc.u64 %d10, %d10, %d10;
        addc.cc.u64 %d11, %d11, %d11;
        addc.u32 %r2, 0, 0;
        sub.cc.u64 %d12, %d10, %d6;
        subc.cc.u64 %d13, %d11, %d7;
        addc.u32 %r3, %r2, 0;
        setp.ne.u32 %p0, %r3, 0;
        selp.b64 %d10, %d12, %d10, %p0;
        selp.b64 %d11, %d13, %d11, %p0;
        add.cc.u32 %r4, %r3, 0xffffffff;
        addc.cc.u64 %d8, %d8, %d8;
        addc.u64 %d9, %d9, %d9;
        sub.u32 %r1, %r1, 1;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra $bit;
        mad.wide.u32 %d3, %r0, 32, %d0;
        st.global.v2.u64 [%d3], {%d8, %d9};
        st.global.v2.u64 [%d3+16], {%d10, %d11};";
    let pool = pool();
    let wide = |i: usize| u128::from(pool[i % pool.len()]) << 64 | u128::from(pool[(7 * i + 3) % pool.len()]);
    let words = |x: u128| [x as u64, (x >> 64) as u64];
    let (text, run) = (module("", body), Run::default());
    for start in (0..512).step_by(32) {
        let pairs: Vec<[u128; 2]> =
            (start..start + 32).map(|i| [wide(i), (wide(5 * i + 1) >> (i % 127)).max(1)]).collect();
        let input: Vec<u64> = pairs.iter().flat_map(|pair| pair.map(words)).flatten().collect();
        let expected: Vec<u64> = pairs.iter().flat_map(|[n, d]| [n / d, n % d].map(words)).flatten().collect();
        assert_eq!(run.good(&text, 128, &input), expected);
    }
}

#[test]
pub fn carries_run_through_chains() {
    let body = "
        mov.b64 {%r1, %r2}, %d10;
        mov.b64 {%r3, %r4}, %d11;
        add.cc.u32 %r5, %r1, %r3;
        addc.u32 %r6, %r2, %r4;
        mov.b64 %d20, {%r5, %r6};";
    check("add.cc", body, |a, b, _| a.wrapping_add(b));
    let body = body.replace("add.cc", "sub.cc").replace("addc", "subc");
    check("sub.cc", &body, |a, b, _| a.wrapping_sub(b));
    // The upper half of 64 × 64 bits, by carries of products.
    let body = "
        mul.lo.u64 %d3, %d10, %d11;
        mad.lo.cc.u64 %d4, %d10, %d11, %d12;
        madc.hi.u64 %d20, %d10, %d11, 0;";
    check("madc", body, |a, b, c| ((u128::from(a) * u128::from(b) + u128::from(c)) >> 64) as u64);
}

#[test]
fn bit_operations_match_their_definition() {
    check32("lop3.b32 %r20, %r10, %r11, %r12, 0xe8;", |a, b, c| a & b | a & c | b & c);
    check32("prmt.b32 %r20, %r10, %r11, 0x5410;", |a, b, _| a & 0xffff | b << 16);
    check32("shf.l.wrap.b32 %r20, %r10, %r11, 5;", |a, b, _| b << 5 | a >> 27);
    check32("bfe.s32 %r20, %r10, 4, 8;", |a, _, _| ((a << 20) as i32 >> 24) as u32);
    check32("bfi.b32 %r20, %r10, %r11, 8, 12;", |a, b, _| b & !0xf_ff00 | (a & 0xfff) << 8);
    check32("bfind.u32 %r20, %r10;", |a, _, _| if a == 0 { u32::MAX } else { a.ilog2() });
    check32("brev.b32 %r20, %r10;", |a, _, _| a.reverse_bits());
}

#[test]
fn searches_and_complements_match_their_definition() {
    check("popc", "popc.b64 %r20, %d10;\ncvt.u64.u32 %d20, %r20;", |a, _, _| a.count_ones().into());
    check("clz", "clz.b32 %r20, %r10;\ncvt.u64.u32 %d20, %r20;", |a, _, _| (a as u32).leading_zeros().into());
    check("brev", "brev.b64 %d20, %d10;", |a, _, _| a.reverse_bits());
    check("cnot", "cnot.b32 %r20, %r10;\ncvt.u64.u32 %d20, %r20;", |a, _, _| u64::from(a as u32 == 0));
    check("not", "not.b64 %d20, %d10;", |a, _, _| !a);
}

#[test]
fn comparisons_and_selections_match_their_definition() {
    check_predicate("setp.lt.s32 %p1, %r10, %r11;", |a, b, _| (a as i32) < b as i32);
    check_predicate("setp.hi.u32 %p1, %r10, %r11;", |a, b, _| a as u32 > b as u32);
    check_predicate("setp.ge.u64 %p1, %d10, %d11;", |a, b, _| a >= b);
    check_predicate("setp.ne.b16 %p1, %h10, %h11;", |a, b, _| a as u16 != b as u16);
    let (f, g) = (|x: u64| f32::from_bits(x as u32), f64::from_bits);
    check_predicate("setp.lt.f32 %p1, %f10, %f11;", move |a, b, _| f(a) < f(b));
    check_predicate("setp.ne.f32 %p1, %f10, %f11;", move |a, b, _| f(a) < f(b) || f(a) > f(b));
    check_predicate("setp.neu.f32 %p1, %f10, %f11;", move |a, b, _| f(a) != f(b));
    check_predicate("setp.geu.f64 %p1, %g10, %g11;", move |a, b, _| g(a) >= g(b) || g(a).is_nan() || g(b).is_nan());
    check_predicate("setp.nan.f32 %p1, %f10, %f11;", move |a, b, _| f(a).is_nan() || f(b).is_nan());
    check_predicate("setp.eq.ftz.f32 %p1, %f10, 0f00000000;", move |a, _, _| f(a) == 0.0 || f(a).is_subnormal());
    check_predicate("setp.gt.s32 %p2, %r12, 0;\nsetp.lt.and.s32 %p1|%p3, %r10, %r11, !%p2;", |a, b, c| {
        (a as i32) < b as i32 && c as i32 <= 0
    });
    check_predicate("setp.gt.s32 %p2, %r12, 0;\nsetp.lt.or.s32 %p3|%p1, %r10, %r11, %p2;", |a, b, c| {
        a as i32 >= b as i32 || c as i32 > 0
    });
    check32("set.le.u32.s32 %r20, %r10, %r11;", |a, b, _| if a as i32 <= b as i32 { u32::MAX } else { 0 });
    check32("set.gt.f32.u32 %f13, %r10, %r11;\nmov.b32 %r20, %f13;", |a, b, _| {
        (if a > b { 1f32 } else { 0.0 }).to_bits()
    });
    check32("slct.b32.f32 %r20, %r10, %r11, %f12;", |a, b, c| if f32::from_bits(c) >= 0.0 { a } else { b });
    check32("slct.u32.s32 %r20, %r10, %r11, %r12;", |a, b, c| if c as i32 >= 0 { a } else { b });
    check_predicate("testp.subnormal.f32 %p1, %f10;", move |a, _, _| f(a).is_subnormal());
    check_predicate("testp.normal.f64 %p1, %g10;", move |a, _, _| g(a).is_normal() || g(a) == 0.0);
}

#[test]
fn float_operations_match_their_definition() {
    check_float("add.rn.f32 %f20, %f10, %f11;", |a, b, _| a + b);
    check_float("mul.f32 %f20, %f10, %f11;", |a, b, _| a * b);
    check_float("div.rn.f32 %f20, %f10, %f11;", |a, b, _| a / b);
    check_float("rcp.rn.f32 %f20, %f10;", |a, _, _| 1.0 / a);
    check_float("sqrt.rn.f32 %f20, %f10;", |a, _, _| a.sqrt());
    check_float("fma.rn.f32 %f20, %f10, %f11, %f12;", |a, b, c| a.mul_add(b, c));
    check_float("neg.f32 %f20, %f10;", |a, _, _| -a);
    check_float("abs.f32 %f20, %f10;", |a, _, _| a.abs());
    check32("copysign.f32 %f13, %f10, %f11;\nmov.b32 %r20, %f13;", |a, b, _| a & 1 << 31 | b & !(1 << 31));
    let flush = |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x };
    check_float("add.rn.ftz.f32 %f20, %f10, %f11;", move |a, b, _| flush(flush(a) + flush(b)));
    check_float("fma.rn.ftz.f32 %f20, %f10, %f11, %f12;", move |a, b, c| flush(flush(a).mul_add(flush(b), flush(c))));
    let saturate = |x: f32| if x.is_nan() || x <= 0.0 { 0.0 } else { x.min(1.0) };
    check_float("mul.rn.sat.f32 %f20, %f10, %f11;", move |a, b, _| saturate(a * b));
    check_float("fma.rn.sat.f32 %f20, %f10, %f11, %f12;", move |a, b, c| saturate(a.mul_add(b, c)));
    check_float("max.f32 %f20, %f10, %f11;", |a, b, _| match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => f32::from_bits(a.to_bits() & b.to_bits()),
        _ => {
            if a > b {
                a
            } else {
                b
            }
        }
    });
    // A product of singles is exact in double; rounding towards zero truncates its bits.
    check_float("mul.rz.f32 %f20, %f10, %f11;", |a, b, _| {
        let exact = f64::from(a) * f64::from(b);
        let near = exact as f32;
        if near.is_finite() && f64::from(near).abs() > exact.abs() {
            f32::from_bits(near.to_bits() - 1)
        } else if near.is_infinite() && a.is_finite() && b.is_finite() && b != 0.0 {
            f32::MAX.copysign(near)
        } else {
            near
        }
    });
    let double = |x: f64| if x.is_nan() { 0x7ff8_0000_0000_0000 } else { x.to_bits() };
    let body = |text: &str| {
        format!(
            "{text}\nmov.b64 %d20, %g13;\ntestp.notanumber.f64 %p8, %g13;\n\
             selp.b64 %d20, 0x7ff8000000000000, %d20, %p8;"
        )
    };
    let g = f64::from_bits;
    check("sub.f64", &body("sub.rn.f64 %g13, %g10, %g11;"), |a, b, _| double(g(a) - g(b)));
    check("fma.f64", &body("fma.rn.f64 %g13, %g10, %g11, %g12;"), |a, b, c| double(g(a).mul_add(g(b), g(c))));
    check("sqrt.f64", &body("sqrt.rn.f64 %g13, %g10;"), |a, _, _| double(g(a).sqrt()));
}

#[test]
fn halves_match_their_definition() {
    use kernel_dsl::compiler::half::{f16_from_f32, f16_to_f32};
    let h = |x: u64| f16_to_f32(x as u16);
    let half = |x: f32| if x.is_nan() { 0x7fff } else { f16_from_f32(x) };
    // Sums and products of halves can be rounded to single and then to half without double
    // rounding: 24 ≥ 2 · 11 + 2 bits.
    check16("add.rn.f16 %h20, %h10, %h11;", |a, b, _| half(h(a.into()) + h(b.into())));
    check16("mul.rn.f16 %h20, %h10, %h11;", |a, b, _| half(h(a.into()) * h(b.into())));
    check32("sub.f16x2 %r20, %r10, %r11;", |a, b, _| {
        let part = |shift: u32| u32::from(half(h((a >> shift).into()) - h((b >> shift).into()))) << shift;
        part(0) | part(16)
    });
    check32("fma.rn.f16x2 %r20, %r10, %r11, %r12;", |a, b, c| {
        // The exact sum of a product does not fit a single; it fits a double, rounded to odd.
        let part = |shift: u32| {
            let [x, y, z] = [a, b, c].map(|w| f64::from(h((w >> shift).into())));
            let (product, sum) = (x * y, x * y + z);
            let rest = if sum.is_finite() { (product - (sum - z)) + (z - (sum - (sum - z))) } else { 0.0 };
            let odd = if rest != 0.0 && sum.to_bits() & 1 == 0 {
                f64::from_bits(if (rest > 0.0) == (sum > 0.0) { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
            } else {
                sum
            };
            let narrow = odd as f32;
            let exact = f64::from(narrow);
            // Converts to single, again rounded to odd.
            let narrow = if exact != odd && odd.is_finite() && narrow.to_bits() & 1 == 0 {
                f32::from_bits(if odd.abs() > exact.abs() { narrow.to_bits() + 1 } else { narrow.to_bits() - 1 })
            } else {
                narrow
            };
            u32::from(half(narrow)) << shift
        };
        part(0) | part(16)
    });
    check_predicate("setp.lt.f16 %p1, %h10, %h11;", move |a, b, _| h(a) < h(b));
}

#[test]
fn conversions_match_their_definition() {
    check32("cvt.rzi.s32.f32 %r20, %f10;", |a, _, _| f32::from_bits(a) as i32 as u32);
    check32("cvt.rni.u32.f32 %r20, %f10;", |a, _, _| f32::from_bits(a).round_ties_even() as u32);
    check32("cvt.rmi.s8.f32 %r20, %f10;", |a, _, _| f32::from_bits(a).floor() as i8 as i32 as u32);
    check32("cvt.s32.s8 %r20, %r10;", |a, _, _| a as i8 as i32 as u32);
    check32("cvt.sat.u8.s32 %r20, %r10;", |a, _, _| (a as i32).clamp(0, 255) as u32);
    check32("cvt.s8.s32 %r20, %r10;", |a, _, _| a as i8 as i32 as u32);
    check32("cvt.u16.u32 %r20, %r10;", |a, _, _| a & 0xffff);
    check("cvt.s64.s16", "cvt.s64.s16 %d20, %r10;", |a, _, _| i64::from(a as i16) as u64);
    check("cvt.rzi.s64.f32", "cvt.rzi.s64.f32 %d20, %f10;", |a, _, _| {
        let x = f32::from_bits(a as u32);
        if x.is_nan() { 1 << 63 } else { x as i64 as u64 }
    });
    check("cvt.rzi.u32.f64", "cvt.rzi.u32.f64 %r20, %g10;\ncvt.u64.u32 %d20, %r20;", |a, _, _| {
        let x = f64::from_bits(a);
        if x.is_nan() { 1 << 31 } else { u64::from(x as u32) }
    });
}

#[test]
fn conversions_to_floats_match_their_definition() {
    let singles = |text: &str| format!("{text}\nmov.b32 %r20, %f13;\ncvt.u64.u32 %d20, %r20;");
    check("s64", &singles("cvt.rn.f32.s64 %f13, %d10;"), |a, _, _| (a as i64 as f32).to_bits().into());
    check("u32", &singles("cvt.rn.f32.u32 %f13, %r10;"), |a, _, _| (a as u32 as f32).to_bits().into());
    check("s32", &singles("cvt.rn.f32.s32 %f13, %r10;"), |a, _, _| (a as i32 as f32).to_bits().into());
    check("f64", &singles("cvt.rn.f32.f64 %f13, %g10;"), |a, _, _| single(f64::from_bits(a) as f32).into());
    check("rpi", &singles("cvt.rpi.f32.f32 %f13, %f10;"), |a, _, _| single(f32::from_bits(a as u32).ceil()).into());
    check("double", "cvt.rn.f64.u64 %g13, %d10;\nmov.b64 %d20, %g13;", |a, _, _| (a as f64).to_bits());
}

#[test]
fn video_operations_match_their_definition() {
    let halves = |x: u32| [x as i16, (x >> 16) as i16];
    check32("vadd.s32.u32.s32.sat %r20, %r10.b1, %r11.h1;", |a, b, _| {
        (i32::from(a.to_le_bytes()[1]) + i32::from(halves(b)[1])) as u32
    });
    check32("vsub.u32.u32.u32.sat.add %r20, %r10, %r11, %r12;", |a, b, c| a.saturating_sub(b).wrapping_add(c));
    check32("vmax.s32.s32.s32 %r20.h1, %r10.h0, %r11.h0, %r12;", |a, b, c| {
        c & 0xffff | u32::from(halves(a)[0].max(halves(b)[0]) as u16) << 16
    });
    check32("vabsdiff4.u32.u32.u32.add %r20, %r10, %r11, %r12;", |a, b, c| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        (0..4).fold(c, |sum, i| sum.wrapping_add(a[i].abs_diff(b[i]).into()))
    });
    check32("vadd2.s32.s32.s32.sat %r20.h1, %r10.h10, %r11.h32, %r12;", |a, b, c| {
        c & 0xffff | u32::from(halves(a)[1].saturating_add(halves(b)[1]) as u16) << 16
    });
    check32("vavrg4.u32.u32.u32 %r20, %r10, %r11, %r12;", |a, b, _| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        u32::from_le_bytes(std::array::from_fn(|i| ((u32::from(a[i]) + u32::from(b[i])).div_ceil(2)) as u8))
    });
    check32("vset4.u32.u32.lt %r20, %r10, %r11, %r12;", |a, b, _| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        u32::from_le_bytes(std::array::from_fn(|i| u8::from(a[i] < b[i])))
    });
    check32("vshr.u32.u32.u32.clamp %r20, %r10, %r11.b0;", |a, b, _| a.checked_shr(b & 0xff).unwrap_or(0));
    check32("vmad.s32.s32.s32.sat.shr7 %r20, %r10.h0, %r11.h1, %r12;", |a, b, c| {
        let sum = i64::from(halves(a)[0]) * i64::from(halves(b)[1]) + i64::from(c as i32);
        (sum >> 7).clamp(i32::MIN.into(), i32::MAX.into()) as u32
    });
    check32("vmad.u32.u32.u32.po %r20, %r10, %r11, %r12;", |a, b, c| a.wrapping_mul(b).wrapping_add(c).wrapping_add(1));
    check32("vmad.s32.u32.u32 %r20, %r10, %r11, -%r12;", |a, b, c| a.wrapping_mul(b).wrapping_sub(c));
}
