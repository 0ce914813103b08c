//! Readable names of kernels: the path of a mangled C++ or Rust name, without types.

/// Returns the readable form of a name. A name that is not mangled is returned unchanged.
///
/// The form has the path and the parameters that are numbers: `scale<4>`, `solver::step`. Types are
/// left out, because the path identifies the kernel.
pub fn demangled(name: &str) -> String {
    parts(name).map_or_else(|| name.to_string(), |parts| parts.join("::"))
}

/// Returns the parts of the path of a mangled name.
fn parts(name: &str) -> Option<Vec<String>> {
    let mangled = name.strip_prefix("_Z")?;
    // Internal linkage of C++.
    let (nested, mut rest) = match mangled.strip_prefix('N') {
        Some(rest) => (true, rest),
        None => (false, mangled.strip_prefix('L').unwrap_or(mangled)),
    };
    rest = rest.trim_start_matches(['K', 'V']);
    let mut parts: Vec<String> = Vec::new();
    loop {
        if let Some(part) = identifier(&mut rest) {
            // The last part of an older Rust name is a hash.
            if !(part.len() == 17 && part.starts_with('h') && part[1..].bytes().all(|c| c.is_ascii_hexdigit())) {
                parts.push(if part.starts_with("_GLOBAL__N") { "(anonymous namespace)".to_string() } else { part });
            }
        } else if let Some(arguments) = rest.strip_prefix('I') {
            // Template arguments: integers are shown, types are skipped.
            let (shown, after) = template_arguments(arguments)?;
            if !shown.is_empty() {
                *parts.last_mut()? += &format!("<{}>", shown.join(", "));
            }
            rest = after;
        } else {
            break;
        }
        if !nested && !rest.starts_with('I') {
            break;
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// Takes a name that is preceded by its length.
fn identifier(rest: &mut &str) -> Option<String> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = rest[..digits].parse().ok()?;
    let part = rest.get(digits..digits.checked_add(length)?)?;
    *rest = &rest[digits + length..];
    Some(part.replace("..", "::").replace("$LT$", "<").replace("$GT$", ">"))
}

/// Parses template arguments up to their `E`. Returns the integers, and the rest.
fn template_arguments(mut rest: &str) -> Option<(Vec<String>, &str)> {
    let mut shown = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('E') {
            return Some((shown, after));
        }
        if let Some(literal) = rest.strip_prefix('L') {
            let (value, after) = literal.split_once('E')?;
            let number = value.trim_start_matches(|c: char| c.is_ascii_lowercase() && c != 'n');
            shown.push(number.replacen('n', "-", 1));
            rest = after;
        } else if rest.starts_with(|c: char| c.is_ascii_digit()) {
            identifier(&mut rest)?;
        } else if let Some(nested) = rest.strip_prefix(['I', 'N', 'J', 'X']) {
            rest = template_arguments(nested)?.1;
        } else {
            let mut characters = rest.chars();
            characters.next()?;
            rest = characters.as_str();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn names_are_readable() {
        for (name, readable) in [
            ("saxpy", "saxpy"),
            ("_Z5saxpyifPfS_", "saxpy"),
            ("_ZN6solver4stepEPdi", "solver::step"),
            ("_Z5scaleILi4EfEvPT0_", "scale<4>"),
            ("_Z5scaleILin3ELb1EEvPf", "scale<-3, 1>"),
            ("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfEEEEvT1_", "at::native::reduce_kernel<512, 1>"),
            ("_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo"),
            ("_ZN7kernels5scale17h0123456789abcdefE", "kernels::scale"),
            ("_ZL3fooPf", "foo"),
            ("_Z", "_Z"),
            ("_Z99x", "_Z99x"),
            ("_ZN", "_ZN"),
        ] {
            assert_eq!(demangled(name), readable);
        }
    }
}
