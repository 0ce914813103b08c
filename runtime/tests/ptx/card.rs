//! The interpreter against the recorded results of an NVIDIA H100: the forms and operands of the
//! benchmark `card`.
//!
//! The benchmark writes `card.txt`, which has a hash of the card's results for each kernel.

#[path = "../../benches/card/effects.rs"]
mod effects;
#[path = "../../benches/card/forms.rs"]
mod forms;
#[path = "../../benches/card/interpret.rs"]
mod interpret;
#[path = "../../benches/card/operands.rs"]
mod operands;

use kernel_dsl::compiler::ptx::table::ROWS;
use std::collections::{HashMap, VecDeque};
use std::thread;

/// Checks that every row of the table is compared with a card, or left out with a reason.
#[test]
fn every_row_is_compared_or_has_a_reason() {
    let kernels = forms::kernels("");
    for row in ROWS {
        let is_compared = kernels.iter().flat_map(|kernel| &kernel.forms).any(|form| std::ptr::eq(form.row, row));
        assert_ne!(is_compared, forms::left_out(row).is_some(), "{}", row.form);
    }
}

#[test]
fn every_computation_agrees_with_a_card() {
    let kernels = forms::kernels("");
    // Kernels of one name follow each other as in the table.
    let mut recorded = HashMap::<&str, VecDeque<&str>>::new();
    for (hash, name) in forms::RECORDED.lines().filter_map(|line| line.split_once(' ')) {
        recorded.entry(name).or_default().push_back(hash);
    }
    let mut expected = Vec::new();
    for kernel in &kernels {
        let name = &kernel.forms[0].name[..];
        let hash = recorded.get_mut(name).and_then(VecDeque::pop_front);
        if hash.is_none() {
            println!("not compared: `card.txt` has no result of `{name}`, which a card adds (CONTRIBUTING.md)");
        }
        expected.push(hash);
    }
    recorded.retain(|_, left| !left.is_empty());
    assert!(recorded.is_empty(), "`card.txt` has results of forms that the table lacks: {:?}", recorded.keys());
    let share = kernels.len().div_ceil(thread::available_parallelism().map_or(1, usize::from));
    let check = |kernels: &[forms::Kernel]| -> Vec<String> {
        let differs = |kernel: &&forms::Kernel| {
            let Some(expected) = expected[kernel.number] else { return false };
            let hash = interpret::hash(kernel, &interpret::interpret(kernel, &kernel.input()));
            expected != format!("{hash:016x}")
        };
        kernels.iter().filter(differs).map(|kernel| kernel.text()).collect()
    };
    let differing: Vec<String> = thread::scope(|scope| {
        let parts: Vec<_> = kernels.chunks(share).map(|part| scope.spawn(|| check(part))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a comparison does not panic")).collect()
    });
    assert!(differing.is_empty(), "{} kernels differ from the card, the first:\n{}", differing.len(), differing[0]);
}
