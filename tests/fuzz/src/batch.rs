//! Batches of kernels in one module: starting ptxas or the JIT takes longer than assembling a
//! kernel.

use crate::run::Good;
use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ptx::parse;
use kernels_rs_command::ptxas::Ptxas;
use std::fmt::Write;

/// Merges the PTX of kernels with different names into one module of the newest required version.
pub fn merged<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let (mut version, mut body) = ((0u32, 0u32), String::new());
    for (n, text) in texts.into_iter().enumerate() {
        let mut text = text.to_string();
        // Module variables are renamed too: each belongs to one kernel.
        if let Ok(module) = parse::parse(&text) {
            for variable in module.variables() {
                text = renamed(&text, &variable.name, &format!("{}_of_{n}", variable.name));
            }
        }
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some(".version") => {
                    let (major, minor) = words.next().and_then(|v| v.split_once('.')).unwrap_or(("0", "0"));
                    version = version.max((major.parse().unwrap_or(0), minor.parse().unwrap_or(0)));
                }
                Some(".target" | ".address_size") => {}
                _ => {
                    let _ = writeln!(body, "{line}");
                }
            }
        }
    }
    format!(".version {}.{}\n.target sm_61\n.address_size 64\n\n{body}", version.0, version.1)
}

/// Returns `text` with the name `name` replaced by `to`.
fn renamed(text: &str, name: &str, to: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '%');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        out.push_str(before);
        let whole = !before.ends_with(part) && !after.starts_with(part);
        out.push_str(if whole { to } else { name });
        rest = after;
    }
    out + rest
}

/// Returns the index of the first kernel that ptxas rejects, and its message; `None` if it accepts
/// all.
pub fn assemble(ptxas: &Ptxas, goods: &[&Good]) -> Option<(usize, String)> {
    let texts = |goods: &[&Good]| {
        merged(goods.iter().flat_map(|good| [good.compiled.ptx.clone()]).collect::<Vec<_>>().iter().map(String::as_str))
    };
    let take = |text: &str| ptxas.assemble(text, Target::SM_61).err();
    let all = take(&texts(goods))?;
    let each = goods.iter().enumerate().find_map(|(n, good)| take(&good.compiled.ptx).map(|said| (n, said)));
    Some(each.unwrap_or((0, format!("all together: {all}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_changed_where_it_is_whole() {
        assert_eq!(renamed("t[4]; ta, %t, at, t;", "t", "u"), "u[4]; ta, %t, at, u;");
    }

    #[test]
    fn modules_become_one_of_the_newest_version() {
        let text = |version: &str, name: &str| {
            format!(
                ".version {version}\n.target sm_61\n.address_size 64\n.global .u32 g;\n.visible .entry {name}()\n{{\n    ret;\n}}\n"
            )
        };
        let all = merged([text("5.0", "a").as_str(), text("6.3", "b").as_str()]);
        let module = parse::parse(&all).expect("one module");
        assert_eq!(module.entries().count(), 2);
        assert!(all.starts_with(".version 6.3\n"), "{all}");
        let names: Vec<_> = module.variables().iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["g_of_0", "g_of_1"]);
    }
}
