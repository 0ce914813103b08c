//! The page of all functions, from the declarations.

/// The groups of supported functions, with the names that each file of a group declares.
const GROUPS: [(&str, &[&[&str]]); 12] = [
    ("Initialization and versions", &[super::entry::NAMES]),
    ("Devices", &[super::device::NAMES]),
    ("Contexts", &[super::context::NAMES]),
    ("Modules and the linker", &[super::module::NAMES]),
    ("Libraries and kernels", &[super::library::NAMES]),
    ("Functions, launches and occupancy", &[super::function::NAMES]),
    ("Memory", &[super::memory::NAMES]),
    ("Memory pools", &[super::pool::NAMES]),
    ("Copies and fills", &[super::copy::NAMES]),
    ("Arrays, textures and surfaces", &[super::texture::NAMES]),
    ("Streams and events", &[super::stream::NAMES]),
    ("Graphs", &super::graph::NAMES),
];

/// Returns the page: the supported functions by group, and the others by the reason.
#[cfg_attr(not(test), allow(dead_code, reason = "a test writes the page"))]
pub fn page() -> String {
    let list = |names: &[&str]| {
        let mut names: Vec<&str> = names.to_vec();
        names.sort_unstable();
        names.iter().map(|name| format!("- `{name}`\n")).collect::<String>()
    };
    let supported: usize = GROUPS.iter().flat_map(|(_, files)| *files).map(|names| names.len()).sum();
    let others: usize = super::unsupported::GROUPS.iter().map(|(_, names)| names.len()).sum();
    let mut page = format!(
        "Functions of CUDA's driver API: {supported} names are supported, and {others} return \
         `CUDA_ERROR_NOT_SUPPORTED`.\n\nNames that end with `_ptds` or `_ptsz` are those of the per-thread default \
         stream, which here has the order of the default stream.\n\n## Supported\n"
    );
    for (title, files) in GROUPS {
        page += &format!("\n### {title}\n\n{}", list(&files.concat()));
    }
    page += "\n## Not supported\n";
    for (why, names) in super::unsupported::GROUPS {
        let mut title = why.to_string();
        title[..1].make_ascii_uppercase();
        page += &format!("\n### {title}\n\n{}", list(names));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_page_of_functions_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/functions.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page(), "{} is not up to date; UPDATE=1 makes it anew", path.display());
    }

    #[test]
    fn each_name_is_exported_once() {
        let supported = GROUPS.iter().flat_map(|(_, files)| files.concat());
        let others = super::super::unsupported::GROUPS.iter().flat_map(|(_, names)| *names).copied();
        let mut all: Vec<&str> = supported.chain(others).collect();
        assert!(all.iter().all(|name| super::super::proc_address::exported(name).is_some()));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
