//! The table of clauses in the documentation of `#[kernel]`, which is made from the parser's table.

use kernel_dsl_compiler::syntax::CLAUSES;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-macros/src/clauses.md");

#[test]
fn the_page_of_clauses_matches_the_parser() {
    let row = |(form, meaning): &(&str, &str)| {
        let [form, meaning] = [form, meaning].map(|text| text.replace('|', "\\|"));
        format!("| `{form}` | {meaning} |\n")
    };
    let rows: String = CLAUSES.iter().flat_map(|clause| clause.forms).map(row).collect();
    let page = format!("| clause | meaning |\n|---|---|\n{rows}");
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(PAGE, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page, "kernel-macros/src/clauses.md is not what the parser has: set UPDATE=1");
}
