//! Saved results of all mutants of a kernel, so that reasons and the page can be written without
//! another run.

use super::mutate::MutationCategory;
use super::trial::{Beside, Caught, Fate};
use super::{MutantResult, Name, Row};
use kernel_dsl::compiler::ir::Kernel;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

const ORDERS: [Ordering; 3] = [Ordering::Less, Ordering::Equal, Ordering::Greater];

fn path(instance: &str) -> PathBuf {
    let name: String = instance.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect();
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants").join(name).with_extension("json")
}

/// Returns a hash that identifies this version of a kernel.
fn mark(kernel: &Kernel) -> u64 {
    let mut hasher = DefaultHasher::new();
    kernel.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Saves the results of all mutants of `kernel`.
pub fn save(kernel: &Kernel, row: &Row) {
    let tried = row.tried.iter().map(|MutantResult { name, kind, fate }| {
        let kind = MutationCategory::ALL.iter().position(|(of, _)| of == kind);
        json!([name.site, name.change, name.number, kind, of_fate(*fate)])
    });
    let all = json!({ "kernel": mark(kernel), "mutants": row.mutants, "tried": tried.collect::<Vec<_>>() });
    let path = path(&row.instance);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).expect("the output folder can be created");
    }
    fs::write(path, all.to_string()).expect("the output file is writable");
}

/// Returns the saved results of the instance, if its kernel is unchanged.
pub fn load(kernel: &Kernel, instance: &str, module: String) -> Option<Row> {
    let all: Value = serde_json::from_str(&fs::read_to_string(path(instance)).ok()?).ok()?;
    if all["kernel"].as_u64() != Some(mark(kernel)) {
        return None;
    }
    let one = |of: &Value| {
        let text = |i: usize| Some(of[i].as_str()?.to_string());
        let name =
            Name { instance: instance.into(), site: text(0)?, change: text(1)?, number: of[2].as_u64()? as usize };
        Some(MutantResult { name, kind: MutationCategory::ALL.get(of[3].as_u64()? as usize)?.0, fate: fate(&of[4])? })
    };
    let tried = all["tried"].as_array()?.iter().map(one).collect::<Option<_>>()?;
    Some(Row { instance: instance.into(), module, mutants: all["mutants"].as_u64()? as usize, tried })
}

fn of_fate(fate: Fate) -> Value {
    match fate {
        Fate::Caught(Caught::Check(check)) => json!(["check", check.name()]),
        Fate::Caught(Caught::Verifier) => json!(["verifier"]),
        Fate::Caught(Caught::Reference) => json!(["reference"]),
        Fate::Caught(Caught::Order) => json!(["order"]),
        Fate::Identical => json!(["identical"]),
        Fate::Survives(Beside { work, bits }) => {
            json!(["survives", ORDERS.iter().position(|o| *o == work), bits])
        }
    }
}

fn fate(value: &Value) -> Option<Fate> {
    let at = |i: usize| Some(value[i].as_u64()? as usize);
    Some(match value[0].as_str()? {
        "check" => Fate::Caught(Caught::Check(value[1].as_str()?.parse().ok()?)),
        "verifier" => Fate::Caught(Caught::Verifier),
        "reference" => Fate::Caught(Caught::Reference),
        "order" => Fate::Caught(Caught::Order),
        "identical" => Fate::Identical,
        "survives" => Fate::Survives(Beside { work: *ORDERS.get(at(1)?)?, bits: value[2].as_bool()? }),
        _ => return None,
    })
}
