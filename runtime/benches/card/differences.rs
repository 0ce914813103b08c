//! Every form on extreme operands: the interpreter's results against a card's.

use super::bounds::within;
use super::forms::{Kernel, SampleForm, THREADS, canonical, explanation, kernels, left_out};
use super::gpu::{Gpu, GpuMemory};
use super::interpret::{hash, interpret};
use kernel_dsl::compiler::ptx::Opcode;
use kernel_dsl::compiler::ptx::table::ROWS;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A form whose results differ.
struct Difference {
    opcode: Opcode,
    text: String,
    /// The number of differences among [`THREADS`] results.
    count: usize,
    /// Operands, the interpreter's results, the card's.
    examples: Vec<([u64; 4], [u64; 2], [u64; 2])>,
    explanation: Option<&'static str>,
}

/// The result of comparing a kernel.
struct Compared {
    differences: Vec<Difference>,
    hash: u64,
}

/// Compares all forms whose name begins with `prefix`, and writes `differences.md` and `card.txt`.
pub fn run(folder: &Path, prefix: &str) -> Result<(), Box<dyn Error>> {
    let gpu = Gpu::open()?;
    let kernels = kernels(prefix);
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut compared: Vec<(usize, Compared)> = thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(kernel) = kernels.get(at) else { return mine };
                mine.push((at, compare(gpu, kernel)));
            }
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("a comparison does not panic")).collect()
    });
    compared.sort_by_key(|(at, _)| *at);
    let mut hashes = String::new();
    for (at, result) in &compared {
        writeln!(hashes, "{:016x} {}", result.hash, kernels[*at].forms[0].name)?;
    }
    let differences: Vec<Difference> = compared.into_iter().flat_map(|(_, result)| result.differences).collect();
    std::fs::write(folder.join("card.txt"), hashes)?;
    std::fs::write(folder.join("differences.md"), page(&gpu.name()?, &kernels, &differences)?)?;
    let unexplained: Vec<&Difference> = differences.iter().filter(|d| d.explanation.is_none()).collect();
    for Difference { text, count, examples, .. } in &unexplained {
        println!("{text}: {count} differ; operands, interpreter, card: {examples:x?}");
    }
    let unexplained = unexplained.len();
    println!("{} forms differ, {unexplained} without an explanation", differences.len());
    if unexplained == 0 { Ok(()) } else { Err("some differences have no explanation".into()) }
}

/// Returns the page of differences.
fn page(card: &str, kernels: &[Kernel], differences: &[Difference]) -> Result<String, Box<dyn Error>> {
    let count =
        |holds: &dyn Fn(&SampleForm) -> bool| kernels.iter().flat_map(|k| &k.forms).filter(|f| holds(f)).count();
    let mut page = String::new();
    writeln!(
        page,
        "# Differences from a card\n\n\
         This page compares the interpreter with {card}. A form is a row of the instruction table with one choice of \
         modifiers.\n\
         Each form runs on {THREADS} extreme, related and random operands. Of {} forms, {} agree bit for bit.\n\n\
         A NaN of `f16` or `f32` counts as equal to any other NaN. A result of an approximate instruction only has to \
         be within the instruction's bound.\n\
         An instruction may access memory, exchange values between threads or change the flow of control. Code around \
         such an instruction makes the effect visible.\n\
         Special registers of 64 bits are left out, because they differ between runs. The end of the page lists the \
         rows that are not compared, with the reasons.\n\n\
         `cargo bench -p runtime --bench card -- differences FOLDER` writes this page.\n\n\
         | instruction | forms | forms that differ | for example | interpreter | card | why |\n|---|---|---|---|---|---|---|",
        count(&|_| true),
        count(&|_| true) - differences.len(),
    )?;
    let mut opcodes: Vec<Opcode> = differences.iter().map(|d| d.opcode).collect();
    opcodes.dedup();
    let mut reasons: Vec<&str> = Vec::new();
    for opcode in opcodes {
        let mine: Vec<&Difference> = differences.iter().filter(|d| d.opcode == opcode).collect();
        let Difference { text, examples, explanation, .. } = mine[0];
        let why = match explanation {
            None => "not explained".to_string(),
            Some(reason) => {
                let at = reasons.iter().position(|r| r == reason).unwrap_or_else(|| {
                    reasons.push(*reason);
                    reasons.len() - 1
                });
                format!("{}", at + 1)
            }
        };
        let forms = count(&|form| form.row.opcode == opcode);
        let (operands, ours, theirs) = examples.first().copied().unwrap_or_default();
        let [a, b, c, _] = operands;
        let word = usize::from(ours[0] == theirs[0]);
        writeln!(
            page,
            "| `{opcode}` | {forms} | {} | `{text}` of {a:#x}, {b:#x}, {c:#x} | {:#x} | {:#x} | {why} |",
            mine.len(),
            ours[word],
            theirs[word],
        )?;
    }
    for (i, reason) in reasons.iter().enumerate() {
        writeln!(page, "\n{}. {reason}", i + 1)?;
    }
    writeln!(page, "\n## Rows that are not compared\n")?;
    let mut left: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in ROWS {
        if let Some(reason) = left_out(row) {
            left.entry(reason).or_default().push(format!("* `{}`", row.form));
        }
    }
    for (reason, rows) in left {
        writeln!(page, "{}:\n\n{}\n", reason, rows.join("\n"))?;
    }
    Ok(page)
}

fn compare(gpu: Gpu, kernel: &Kernel) -> Compared {
    let input = kernel.input();
    let ours = interpret(kernel, &input);
    let card = match on_card(gpu, kernel, &input) {
        Ok(card) => card,
        Err(error) => {
            let differences = kernel.forms.iter().map(|form| Difference {
                opcode: form.row.opcode,
                text: format!("{}: {error}", form.text),
                count: THREADS,
                examples: Vec::new(),
                explanation: None,
            });
            return Compared { differences: differences.collect(), hash: 0 };
        }
    };
    let mut compared = Compared { differences: Vec::new(), hash: hash(kernel, &card) };
    let results = ours.chunks(2 * THREADS).zip(card.chunks(2 * THREADS));
    for (form, (ours, card)) in kernel.forms.iter().zip(results) {
        let mut found = Difference {
            opcode: form.row.opcode,
            text: form.text.clone(),
            count: 0,
            examples: Vec::new(),
            explanation: explanation(form),
        };
        for (operands, (ours, card)) in input.iter().zip(ours.chunks(2).zip(card.chunks(2))) {
            let same = canonical(form, [ours[0], ours[1]]) == canonical(form, [card[0], card[1]]);
            let agrees = same || form.approximate && within(form, card[0], ours[0], operands[0]);
            if !agrees {
                found.count += 1;
                if found.examples.is_empty() {
                    found.examples.push((*operands, [ours[0], ours[1]], [card[0], card[1]]));
                }
            }
        }
        if found.count > 0 {
            compared.differences.push(found);
        }
    }
    compared
}

fn on_card(gpu: Gpu, kernel: &Kernel, input: &[[u64; 4]]) -> Result<Vec<u64>, cudarc::driver::DriverError> {
    gpu.enter()?;
    let loaded = gpu.load(&kernel.text())?;
    let mut words = vec![0; kernel.words()];
    let mut from: GpuMemory = gpu.allocate(size_of_val(input))?;
    let to = gpu.allocate(8 * words.len())?;
    from.write(input)?;
    // SAFETY: the kernel reads 32 bytes a thread from the first address, and writes all of the
    // second.
    unsafe { loaded.run([THREADS as u32 / 256, 256], &[from.address(), to.address()])? };
    to.read(&mut words)?;
    Ok(words)
}
