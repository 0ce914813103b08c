//! The text of `printf` in a kernel, formatted as C does.

/// The source of the arguments of one call.
pub trait Arguments {
    /// Returns the next argument of `bytes` bytes, zero-extended; `None` if it cannot be read.
    fn next(&mut self, bytes: u64) -> Option<u64>;

    /// Returns the text at an address, up to its NUL; `None` if it cannot be read.
    fn text(&mut self, address: u64) -> Option<Vec<u8>>;
}

/// A conversion: what follows a `%`.
#[derive(Default)]
struct FormatConversion {
    left: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Whether an integer has 64 bits.
    is_long: bool,
    /// The bits of an integer that `h` or `hh` keeps.
    short: Option<u32>,
}

/// The largest width and precision.
const MAX_WIDTH: usize = 4096;

/// Formats a text. Returns the result and the number of arguments, or `None` if an argument cannot
/// be read.
pub fn format(format: &[u8], arguments: &mut dyn Arguments) -> Option<(Vec<u8>, u32)> {
    let (mut out, mut count, mut at) = (Vec::new(), 0, 0);
    while let Some(&byte) = format.get(at) {
        at += 1;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let start = at;
        let mut conversion = FormatConversion::default();
        let mut number = |arguments: &mut dyn Arguments, at: &mut usize| -> Option<i64> {
            if format.get(*at) == Some(&b'*') {
                *at += 1;
                count += 1;
                return arguments.next(4).map(|n| i64::from(n as i32));
            }
            let digits = format[*at..].iter().take_while(|c| c.is_ascii_digit()).count();
            let text = std::str::from_utf8(&format[*at..*at + digits]).unwrap_or_default();
            *at += digits;
            Some(text.parse().unwrap_or(0))
        };
        while let Some(flag) = format.get(at) {
            match flag {
                b'-' => conversion.left = true,
                b'+' => conversion.plus = true,
                b' ' => conversion.space = true,
                b'#' => conversion.alternative = true,
                b'0' => conversion.zeros = true,
                _ => break,
            }
            at += 1;
        }
        let width = number(arguments, &mut at)?;
        conversion.left |= width < 0;
        conversion.width = (width.unsigned_abs() as usize).min(MAX_WIDTH);
        if format.get(at) == Some(&b'.') {
            at += 1;
            let precision = number(arguments, &mut at)?;
            conversion.precision = usize::try_from(precision).ok().map(|n| n.min(MAX_WIDTH));
        }
        while let Some(size) = format.get(at) {
            match size {
                b'l' | b'j' | b'z' | b't' | b'q' | b'L' => conversion.is_long = true,
                b'h' => conversion.short = Some(if conversion.short.is_some() { 8 } else { 16 }),
                _ => break,
            }
            at += 1;
        }
        let Some(&kind) = format.get(at) else {
            out.extend_from_slice(&format[start - 1..]);
            break;
        };
        at += 1;
        if kind == b'%' {
            out.push(b'%');
            continue;
        }
        let text = match kind {
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' => {
                let bits = arguments.next(if conversion.is_long { 8 } else { 4 })?;
                conversion.integer(kind, bits)
            }
            b'c' => {
                let character = arguments.next(4)? as u8;
                conversion.padded(b"", &[character], false)
            }
            b'p' => {
                let address = arguments.next(8)?;
                conversion.padded(b"", format!("0x{address:x}").as_bytes(), false)
            }
            b's' => {
                let address = arguments.next(8)?;
                let text = if address == 0 { b"(null)".to_vec() } else { arguments.text(address)? };
                let length = conversion.precision.unwrap_or(text.len()).min(text.len());
                conversion.padded(b"", &text[..length], false)
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let bits = arguments.next(8)?;
                conversion.float(kind, f64::from_bits(bits))
            }
            // An unknown conversion is printed as it is.
            _ => {
                out.extend_from_slice(&format[start - 1..at]);
                continue;
            }
        };
        count += 1;
        out.extend_from_slice(&text);
    }
    Some((out, count))
}

impl FormatConversion {
    /// Returns a sign or prefix and digits, padded to the width.
    fn padded(&self, prefix: &[u8], digits: &[u8], zeros: bool) -> Vec<u8> {
        let missing = self.width.saturating_sub(prefix.len() + digits.len());
        let fill = |c: u8, wanted: bool| std::iter::repeat_n(c, if wanted { missing } else { 0 });
        let zeros = zeros && self.zeros && !self.left;
        fill(b' ', !self.left && !zeros)
            .chain(prefix.iter().copied())
            .chain(fill(b'0', zeros))
            .chain(digits.iter().copied())
            .chain(fill(b' ', self.left))
            .collect()
    }

    fn sign(&self, negative: bool) -> &'static [u8] {
        match (negative, self.plus, self.space) {
            (true, ..) => b"-",
            (_, true, _) => b"+",
            (_, _, true) => b" ",
            _ => b"",
        }
    }

    fn integer(&self, kind: u8, bits: u64) -> Vec<u8> {
        let width = if self.is_long { 64 } else { self.short.unwrap_or(32) };
        let unused = 64 - width;
        let (prefix, digits): (&[u8], String) = match kind {
            b'd' | b'i' => {
                let value = (bits << unused) as i64 >> unused;
                (self.sign(value < 0), value.unsigned_abs().to_string())
            }
            _ => {
                let value = bits << unused >> unused;
                let marked = self.alternative && value != 0;
                match kind {
                    b'o' => (b"", format!("{}{value:o}", if marked { "0" } else { "" })),
                    b'x' => (if marked { b"0x" } else { b"" }, format!("{value:x}")),
                    b'X' => (if marked { b"0X" } else { b"" }, format!("{value:X}")),
                    _ => (b"", value.to_string()),
                }
            }
        };
        match self.precision {
            Some(0) if digits == "0" => self.padded(prefix, b"", false),
            Some(least) => self.padded(prefix, format!("{digits:0>least$}").as_bytes(), false),
            None => self.padded(prefix, digits.as_bytes(), true),
        }
    }

    fn float(&self, kind: u8, value: f64) -> Vec<u8> {
        let upper = kind.is_ascii_uppercase();
        let magnitude = value.abs();
        let sign = self.sign(value.is_sign_negative());
        if !value.is_finite() {
            let text = if value.is_nan() { "nan" } else { "inf" };
            let text = if upper { text.to_uppercase() } else { text.to_string() };
            return self.padded(sign, text.as_bytes(), false);
        }
        let precision = self.precision.unwrap_or(6);
        let mut prefix = sign.to_vec();
        let text = match kind.to_ascii_lowercase() {
            b'f' => self.fixed(magnitude, precision),
            b'e' => self.scientific(magnitude, precision),
            b'g' => self.shortest(magnitude, precision.max(1)),
            _ => {
                prefix.extend_from_slice(b"0x");
                self.hexadecimal(magnitude)
            }
        };
        let (prefix, text) = if upper { (prefix.to_ascii_uppercase(), text.to_uppercase()) } else { (prefix, text) };
        self.padded(&prefix, text.as_bytes(), true)
    }

    fn fixed(&self, magnitude: f64, precision: usize) -> String {
        let point = if self.alternative && precision == 0 { "." } else { "" };
        format!("{magnitude:.precision$}{point}")
    }

    fn scientific(&self, magnitude: f64, precision: usize) -> String {
        let (digits, exponent) = parts(magnitude, precision);
        let point = if self.alternative && precision == 0 { "." } else { "" };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}{point}e{sign}{:02}", exponent.abs())
    }

    fn shortest(&self, magnitude: f64, precision: usize) -> String {
        let (_, exponent) = parts(magnitude, precision - 1);
        let trimmed = |text: &str| match text.contains('.') && !self.alternative {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text.to_string(),
        };
        if exponent < -4 || exponent >= precision as i32 {
            let text = self.scientific(magnitude, precision - 1);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, ""));
            return format!("{}e{exponent}", trimmed(digits));
        }
        trimmed(&self.fixed(magnitude, (precision as i32 - 1 - exponent) as usize))
    }

    /// Returns the digits of `%a` after `0x`.
    fn hexadecimal(&self, magnitude: f64) -> String {
        let bits = magnitude.to_bits();
        let (mut exponent, mut fraction) = ((bits >> 52) as i64 - 1023, bits & ((1 << 52) - 1));
        let mut lead = 1;
        if bits >> 52 == 0 {
            (lead, exponent) = (0, if fraction == 0 { 0 } else { -1022 });
        }
        let mut digits = 13;
        match self.precision {
            Some(precision) if precision < 13 => {
                // Rounded to nearest, ties to even.
                let dropped = 4 * (13 - precision) as u32;
                let whole = lead << 52 | fraction;
                let (kept, rest) = (whole >> dropped, whole & ((1 << dropped) - 1));
                let half = 1 << (dropped - 1);
                let kept = kept + u64::from(rest > half || rest == half && kept & 1 == 1);
                digits = precision;
                lead = kept >> (4 * precision);
                fraction = kept & ((1 << (4 * precision)) - 1);
            }
            Some(_) => {}
            None => {
                while digits > 0 && fraction & 0xf == 0 {
                    (digits, fraction) = (digits - 1, fraction >> 4);
                }
            }
        }
        let mut text = format!("{lead}");
        if digits > 0 || self.alternative {
            text.push('.');
        }
        if digits > 0 {
            text += &format!("{fraction:0digits$x}");
            let missing = self.precision.unwrap_or(0).saturating_sub(digits);
            text.extend(std::iter::repeat_n('0', missing));
        }
        format!("{text}p{exponent:+}")
    }
}

/// Returns the digits of a magnitude in scientific notation, and its decimal exponent.
fn parts(magnitude: f64, precision: usize) -> (String, i32) {
    let text = format!("{magnitude:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_string(), exponent.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct List<'a>(Vec<u64>, &'a str);

    impl Arguments for List<'_> {
        fn next(&mut self, _: u64) -> Option<u64> {
            if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
        }

        fn text(&mut self, _: u64) -> Option<Vec<u8>> {
            Some(self.1.as_bytes().to_vec())
        }
    }

    fn printed(text: &str, arguments: &[u64]) -> String {
        let (out, _) = format(text.as_bytes(), &mut List(arguments.to_vec(), "word")).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Compares with texts that glibc's `printf` wrote.
    #[test]
    fn texts_are_those_of_c() {
        let minus = |n: i64| n as u64;
        for (text, arguments, expected) in [
            ("hi %d%%\n", vec![7], "hi 7%\n"),
            ("[%5d|%-5d|%05d|%+d|% d]", vec![minus(-3), 4, minus(-5), 6, 7], "[   -3|4    |-0005|+6| 7]"),
            ("[%u|%x|%#X|%o|%#o]", vec![0xffff_ffff, 255, 255, 8, 8], "[4294967295|ff|0XFF|10|010]"),
            (
                "[%hhd|%hd|%hu|%ld|%llu|%zx]",
                vec![0x1ff, 0x18000, 0x18000, minus(-1), u64::MAX, 16],
                "[-1|-32768|32768|-1|18446744073709551615|10]",
            ),
            ("[%.3d|%5.2d|%.0d]", vec![7, 7, 0], "[007|   07|]"),
            ("[%*d|%-*d|%.*d]", vec![4, 1, 4, 2, 3, 9], "[   1|2   |009]"),
            ("[%c|%3c|%s|%6s|%-6s|%.2s]", vec![65, 66, 1, 1, 1, 1], "[A|  B|word|  word|word  |wo]"),
            ("[%p]", vec![0xabc], "[0xabc]"),
            ("%y %", vec![], "%y %"),
        ] {
            assert_eq!(printed(text, &arguments), expected, "{text}");
        }
        for (text, value, expected) in [
            ("%f", 1.5, "1.500000"),
            ("%.0f", 2.5, "2"),
            ("%#.0f", 2.5, "2."),
            ("%8.3f|", -0.0005, "  -0.001|"),
            ("%08.2f", -3.146, "-0003.15"),
            ("%e", 12345.678, "1.234568e+04"),
            ("%.2E", 1e-300, "1.00E-300"),
            ("%g", 100000.0, "100000"),
            ("%g", 1000000.0, "1e+06"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001234, "1.234e-05"),
            ("%#g", 1.0, "1.00000"),
            ("%.3g", 2.0, "2"),
            ("%a", 1.0, "0x1p+0"),
            ("%a", 0.1, "0x1.999999999999ap-4"),
            ("%.2a", 1.999, "0x2.00p+0"),
            ("%A", -255.5, "-0X1.FFP+7"),
            ("%f", f64::INFINITY, "inf"),
            ("%5G|", f64::NAN, "  NAN|"),
            ("%+f", 0.0, "+0.000000"),
            ("%a", 0.0, "0x0p+0"),
        ] {
            assert_eq!(printed(text, &[f64::to_bits(value)]), expected, "{text}");
        }
    }
}
