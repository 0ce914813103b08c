//! Checks the page of instructions, which is generated from the table.

use kernel_dsl_compiler::ptx::Opcode;
use kernel_dsl_compiler::ptx::table::{instruction_of, rows};
use std::fmt::Write;
use std::path::Path;

/// Returns every opcode with its meaning and its forms.
fn page() -> String {
    let mut page = "# Instructions\n\n\
        Every instruction of the table: what it means, and its forms in the notation of [`form`](super::form), each with the \
        first target and the first `.version` that have it. Made from the table; `UPDATE=1 cargo test -p kernel-dsl-compiler --test ptx page` makes \
        it anew.\n"
        .to_string();
    for opcode in Opcode::ALL {
        write!(page, "\n## {opcode}\n\n`{opcode}`: {}.\n\n```text\n", instruction_of(*opcode).meaning).unwrap();
        for row in rows(*opcode) {
            write!(page, "{row}    // sm_{}, {}", row.target, row.version).unwrap();
            if let Some((target, version)) = row.removed {
                write!(page, "; not from sm_{target} and {version} on").unwrap();
            }
            page.push('\n');
        }
        page.push_str("```\n");
    }
    page
}

#[test]
fn the_page_of_instructions_matches_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ptx/table/instructions.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "{} is not up to date; UPDATE=1 makes it anew", path.display());
}
