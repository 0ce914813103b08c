//! Results in extreme cases: results that the manual leaves unspecified, results next to the least
//! normal number, and approximations near the limits of their operands. Each value was measured on
//! an H100.

use super::kit::{Run, found, lanes, module};
use runtime::ptx::{Check, unspecified};
use std::path::Path;

/// Returns the value that `body` leaves in `%d20` of the first lane, with or without findings.
fn value(body: &str) -> u64 {
    let (_, out) = Run::default().of(&module("", &stored(body)), 32, &[]);
    out[0]
}

fn stored(body: &str) -> String {
    format!("{body}\nst.global.u64 [%d2], %d20;")
}

#[test]
fn page_of_unspecified_results_agrees_with_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx/src/unspecified.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, unspecified::page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == unspecified::page(), "{} is not up to date; UPDATE=1 makes it anew", path.display());
}

#[test]
fn division_by_zero_gives_ones_and_is_reported() {
    for opcode in ["div", "rem"] {
        for (ty, register, bits) in [("16", "%h", 16), ("32", "%r", 32), ("64", "%d", 64)] {
            for sign in ["u", "s"] {
                let divide = format!("{opcode}.{sign}{ty} {register}13, {register}11, {register}12;");
                let body = format!(
                    "mov.b{ty} {register}11, 77;\nmov.b{ty} {register}12, 0;\n{divide}\n\
                     {}",
                    if bits == 64 {
                        "mov.b64 %d20, %d13;".to_string()
                    } else {
                        format!("cvt.u64.u{ty} %d20, {register}13;")
                    }
                );
                assert_eq!(value(&body), u64::MAX >> (64 - bits), "{divide}");
                let checks = found("", &stored(&body));
                assert_eq!(checks.len(), 1, "{checks:?}");
                assert_eq!(checks[0].0, Check::UndefinedValue);
                assert!(checks[0].1.contains("divides by zero"), "{checks:?}");
            }
        }
    }
}

#[test]
fn fields_beyond_bit_255_are_reported() {
    let of = |instruction: &str, at: u32, length: u32| {
        format!(
            "mov.u64 %d10, 0x8123456789abcdef;\nmov.u64 %d11, 0x1111111111111111;\n\
             mov.u32 %r10, 0x89abcdef;\nmov.u32 %r11, 0x11111111;\n\
             mov.u32 %r12, {at};\nmov.u32 %r13, {length};\nmov.u64 %d20, 0;\n{instruction}"
        )
    };
    let narrow = "bfe.u32 %r20, %r10, %r12, %r13;\ncvt.u64.u32 %d20, %r20;";
    let narrow_insert = "bfi.b32 %r20, %r10, %r11, %r12, %r13;\ncvt.u64.u32 %d20, %r20;";
    for (instruction, at, length, expected) in [
        // 256 is 0 in a word, and beyond the end of two words.
        (narrow, 256, 8, 0xef),
        (narrow, 4, 264, 0xde),
        (narrow_insert, 256, 8, 0x1111_11ef),
        ("bfe.u64 %d20, %d10, %r12, %r13;", 256, 8, 0),
        ("bfe.s64 %d20, %d10, %r12, %r13;", 256, 8, u64::MAX),
        ("bfe.u64 %d20, %d10, %r12, %r13;", 4, 264, 0x0812_3456_789a_bcde),
        ("bfi.b64 %d20, %d10, %d11, %r12, %r13;", 256, 8, 0x1111_1111_1111_1111),
        ("bfi.b64 %d20, %d10, %d11, %r12, %r13;", 0, u32::MAX, 0x8123_4567_89ab_cdef),
    ] {
        let body = of(instruction, at, length);
        assert_eq!(value(&body), expected, "{instruction} of {at}, {length}");
        let checks = found("", &stored(&body));
        assert!(checks.len() == 1 && checks[0].1.contains("above 255"), "{instruction}: {checks:?}");
        assert!(found("", &stored(&of(instruction, at.min(255), length.min(255)))).is_empty());
    }
}

#[test]
fn nans_of_double_keep_a_payload() {
    let (a, b, c) = ("0d7FF0000000000001", "0dFFF0000000000002", "0d7FF8000000000003");
    for (instruction, expected) in [
        (format!("add.f64 %g3, {a}, {b}"), 0xfff8_0000_0000_0002u64),
        (format!("sub.f64 %g3, {a}, {b}"), 0xfff8_0000_0000_0002),
        (format!("mul.f64 %g3, {a}, 0d3FF0000000000000"), 0x7ff8_0000_0000_0001),
        (format!("div.rn.f64 %g3, {a}, {b}"), 0x7ff8_0000_0000_0001),
        (format!("fma.rn.f64 %g3, {a}, {b}, {c}"), 0xfff8_0000_0000_0002),
        (format!("fma.rz.f64 %g3, {a}, 0d3FF0000000000000, {c}"), 0x7ff8_0000_0000_0003),
        (format!("min.f64 %g3, {a}, {b}"), 0xfff8_0000_0000_0002),
        (format!("neg.f64 %g3, {b}"), 0xfff8_0000_0000_0002),
        (format!("sqrt.rn.f64 %g3, {b}"), 0xfff8_0000_0000_0002),
        ("sqrt.rp.f64 %g3, 0dBFF0000000000000".to_string(), 0xfff8_0000_0000_0000),
        ("cvt.f64.f32 %g3, 0f7FFFC000".to_string(), 0x7fff_f800_0000_0000),
        ("cvt.ftz.f64.f32 %g3, 0f7FFFC000".to_string(), 0x7fff_ffff_e000_0000),
    ] {
        let out = lanes("", &stored(&format!("{instruction};\nmov.b64 %d20, %g3;")));
        assert_eq!(out[0], expected, "{instruction}: {:#x}", out[0]);
    }
}

#[test]
pub fn results_below_the_least_normal_number_are_flushed() {
    let single = "mov.b32 %r20, %f3;\ncvt.u64.u32 %d20, %r20;";
    let half = "cvt.u64.u16 %d20, %h3;";
    for (instruction, expected) in [
        ("mul.rn.ftz.f32 %f3, 0f3F7FFFFF, 0f00800000;", 0),
        ("div.rn.ftz.f32 %f3, 0f1FFFFFFF, 0f5F000000;", 0),
        ("rcp.rm.ftz.f32 %f3, 0fFE800001;", 0x8000_0000u64),
        ("rcp.rp.ftz.f32 %f3, 0f7E800001;", 0),
        ("mul.rm.ftz.f32 %f3, 0f80800000, 0f3F7FFFFF;", 0x8000_0000),
        ("cvt.rn.ftz.f32.f64 %f3, 0d380FFFFFE0000000;", 0),
        ("cvt.rn.ftz.f32.f64 %f3, 0d380FFFFFFC000000;", 0x80_0000),
        ("fma.rn.ftz.f32 %f3, 0f3F7FFFFF, 0f00800000, 0f00000000;", 0),
        // To f16, the operand is not flushed.
        ("cvt.rp.ftz.f16.f32 %h3, 0f00000001;", 1),
        ("mov.b16 %h1, 0x400;\nmov.b16 %h2, 0x3bff;\nmul.ftz.f16 %h3, %h1, %h2;", 0),
    ] {
        let end = if instruction.contains("%h3") { half } else { single };
        assert_eq!(lanes("", &stored(&format!("{instruction}\n{end}")))[0], expected, "{instruction}");
    }
}

#[test]
pub fn approximations_at_the_ends_agree_with_a_card() {
    for (instruction, expected) in [
        ("div.full.f32 %f3, 0f7E967699, 0f7F167699;", 0x3f00_0000u64),
        ("div.approx.f32 %f3, 0f7E967699, 0f7F167699;", 0),
        ("div.full.f32 %f3, 0f7F800000, 0f7F167699;", 0x7f80_0000),
        ("div.approx.f32 %f3, 0f7F800000, 0f7F167699;", 0x7fff_ffff),
        ("div.approx.ftz.f32 %f3, 0f7E967699, 0fFF167699;", 0x8000_0000),
    ] {
        let body = format!("{instruction}\nmov.b32 %r20, %f3;\ncvt.u64.u32 %d20, %r20;");
        assert_eq!(value(&body), expected, "{instruction}");
    }
    for (instruction, expected) in [
        ("rsqrt.approx.f64 %g3, 0d4000000000000000;", 0x3fe6_a09e_667f_3bcdu64),
        // The least subnormal number: 2^537.
        ("rsqrt.approx.f64 %g3, 0d0000000000000001;", 0x6180_0000_0000_0000),
        ("rsqrt.approx.f64 %g3, 0d7FF0000000000000;", 0),
        // Only the upper half is read, and 0x7ff00000 there is an infinity.
        ("rcp.approx.ftz.f64 %g3, 0d7FF0000000000001;", 0),
        ("rcp.approx.ftz.f64 %g3, 0d000FFFFFFFFFFFFF;", 0x7ff0_0000_0000_0000),
    ] {
        assert_eq!(value(&format!("{instruction}\nmov.b64 %d20, %g3;")), expected, "{instruction}");
    }
}
