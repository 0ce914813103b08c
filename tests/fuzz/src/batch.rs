//! Batches of kernels in one module: starting ptxas or the JIT takes longer than assembling a
//! kernel.

use crate::run::Good;
use kernel_dsl_compiler::Target;
use kernel_dsl_compiler::ptx::link::link;
use kernel_dsl_compiler::ptx::parse;
use kernels_rs_command::ptxas::Ptxas;

/// Links the PTX of kernels with different names into one module.
pub fn merged<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<String, String> {
    let module = |(n, text)| match parse::parse(text) {
        Ok(module) => Ok((format!("kernel {n}"), module)),
        Err(error) => Err(format!("kernel {n}: {error}")),
    };
    let modules = texts.into_iter().enumerate().map(module).collect::<Result<_, _>>()?;
    let linked = link(modules).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
    Ok(linked?.to_string())
}

/// Returns the index of the first kernel that ptxas rejects, and its message; `None` if it accepts
/// all.
pub fn assemble(ptxas: &Ptxas, goods: &[&Good]) -> Option<(usize, String)> {
    let take = |text: &str| ptxas.assemble(text, Target::SM_61).err();
    let all = match merged(goods.iter().map(|good| good.compiled.ptx.as_str())) {
        Ok(text) => take(&text)?,
        Err(error) => error,
    };
    let each = goods.iter().enumerate().find_map(|(n, good)| take(&good.compiled.ptx).map(|said| (n, said)));
    Some(each.unwrap_or((0, format!("all together: {all}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_one_of_the_newest_version() {
        let text = |version: &str, name: &str| {
            format!(
                ".version {version}\n.target sm_61\n.address_size 64\n.global .u32 g;\n.visible .entry {name}()\n{{\n    ret;\n}}\n"
            )
        };
        let all = merged([text("5.0", "a").as_str(), text("6.3", "b").as_str()]).expect("modules that can be linked");
        let module = parse::parse(&all).expect("one module");
        assert_eq!(module.entries().count(), 2);
        assert!(all.starts_with(".version 6.3\n"), "{all}");
        let names: std::collections::BTreeSet<_> = module.variables().iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn kernels_of_one_name_are_not_merged() {
        let text = ".version 6.3\n.target sm_61\n.address_size 64\n.visible .entry a()\n{\n    ret;\n}\n";
        assert!(merged([text, text]).is_err_and(|error| error.contains("'a'")));
    }
}
