//! Tests of `math::` on the device: the same bits as on the host, and the cost beside NVIDIA's
//! library.

mod bits;
mod conversions;
mod cost;
mod kernels;
mod path;
#[path = "../../../kernel-dsl/tests/ulp/mod.rs"]
mod ulp;

use super::every_target;
use std::path::Path;
use std::{env, fs};

/// Compares a table with the one in a page of `kernel_dsl` that begins with `begins` and ends with
/// an empty line. `UPDATE=1` writes it there.
fn page(file: &str, begins: &str, table: &str) {
    print!("{table}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-dsl/src").join(file);
    let page = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let start = page.find(begins).unwrap_or_else(|| panic!("{file} has no table that begins with `{begins}`"));
    let ends = page[start..].find("//!\n").or_else(|| page[start..].find("\n\n").map(|at| at + 1));
    let end = start + ends.unwrap_or(page.len() - start);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{}{table}{}", &page[..start], &page[end..]))
            .unwrap_or_else(|e| panic!("{file}: {e}"));
    } else {
        assert_eq!(&page[start..end], table, "UPDATE=1 writes the table");
    }
}
