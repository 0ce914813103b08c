//! Machine code under its lines of Rust: the output of `kernels show --sass`.
//!
//! Instructions appear in the order of their addresses, which is the order in which they issue. A
//! line of Rust stands above its first instruction, and is repeated after instructions of another
//! line. Brackets at the left mark the loops that contain the code; the cost of an iteration stands
//! at the start of each loop.

use super::lines::SourceFunctions;
use super::machine::{CodeCost, Issue, MachineCode};
use crate::output::counted;
use kernel_dsl::compiler::Target;
use kernels_rs_estimate::sass::banks::BankConflict;
use kernels_rs_estimate::sass::{Line, SassInstruction};
use runtime::interpreter::report::shown_path;
use std::io::{self, IsTerminal, Write};

/// Maximum width of a line of Rust.
const WIDTH: usize = 100;
/// Width of an instruction before its remark.
const OPERANDS: usize = 44;

/// Whether the output is colored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Paint {
    Plain,
    Colored,
}

impl Paint {
    /// Returns whether to color the output: stdout is a terminal and `NO_COLOR` is not set
    /// (<https://no-color.org>).
    pub(super) fn of_stdout() -> Paint {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        if io::stdout().is_terminal() && !unwanted { Paint::Colored } else { Paint::Plain }
    }

    fn put(self, style: AnsiStyle, text: &str) -> String {
        match self {
            Paint::Colored if !text.is_empty() => format!("\x1b[{}m{text}\x1b[0m", style as u8),
            _ => text.to_string(),
        }
    }
}

/// Style of a part of a line, as an ANSI code.
#[derive(Clone, Copy)]
enum AnsiStyle {
    Bold = 1,
    Dim = 2,
    Yellow = 33,
    Cyan = 36,
}

/// Contents of a listing.
pub(super) struct ListingContents<'a> {
    pub(super) instance: &'a str,
    pub(super) target: Target,
    pub(super) ptxas: String,
    pub(super) shared_bytes: u32,
    pub(super) machine: &'a MachineCode,
    pub(super) code: &'a CodeCost,
    pub(super) lines: SourceFunctions<'a>,
    pub(super) paint: Paint,
}

impl ListingContents<'_> {
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let ListingContents { instance, target, ptxas, shared_bytes, machine, code, paint, .. } = self;
        writeln!(out, "{instance} for {target}")?;
        writeln!(out, "registers     {} ({ptxas})", machine.resources)?;
        writeln!(out, "shared        {shared_bytes} bytes")?;
        writeln!(out, "machine code  {}", Issue::from(*code))?;
        let conflicts = code.listing.bank_conflicts().unwrap_or_default();
        let mut line: Option<Option<&Line>> = None;
        for (at, inst) in code.listing.instructions.iter().enumerate() {
            let function = code.listing.functions.get(&at);
            if at == 0 || function.is_some() {
                writeln!(out)?;
            }
            if let Some(name) = function {
                writeln!(out, "{}", paint.put(AnsiStyle::Bold, &format!("{name}, which ptxas adds")))?;
                line = Some(None);
            }
            for (i, l) in code.loops.iter().enumerate().filter(|(_, l)| l.head == at) {
                let around = self.gutter(at, l.depth, false);
                let place = code.listing.instructions[l.jump].line.as_ref().map_or(String::new(), place);
                let lost = match l.bank_conflicts {
                    None | Some(0) => String::new(),
                    Some(cycles) => format!(", {} lost to register banks", counted(cycles, "cycle")),
                };
                let cost = format!("{} in {}{lost}", counted(l.instructions, "instruction"), counted(l.slots, "slot"));
                let text = truncate(&format!("{around}┌ loop {}{place}: {cost}", i + 1), WIDTH);
                writeln!(out, "{}", paint.put(AnsiStyle::Cyan, &text))?;
                // The line is repeated inside the loop.
                line = None;
            }
            if line != Some(inst.line.as_ref()) {
                line = Some(inst.line.as_ref());
                self.heading(out, at, inst.line.as_ref())?;
            }
            self.instruction(out, at, inst, conflicts.get(at))?;
        }
        Ok(())
    }

    /// Returns the brackets of the loops that contain an instruction, the outermost first, padded
    /// to the deepest nesting. `closes` marks the end of a loop.
    fn gutter(&self, at: usize, depths: u32, closes: bool) -> String {
        let mark = |depth: u32| {
            let within = self.code.loops.iter().find(|l| l.depth == depth && l.body.binary_search(&at).is_ok());
            match within {
                Some(l) if closes && l.body.last() == Some(&at) => "└ ",
                Some(_) => "│ ",
                None => "  ",
            }
        };
        (0..depths).map(mark).collect()
    }

    /// Returns the maximum nesting depth of the loops.
    fn depths(&self) -> u32 {
        self.code.loops.iter().map(|l| l.depth + 1).max().unwrap_or(0)
    }

    /// Prints a line of Rust.
    fn heading(&self, out: &mut dyn Write, at: usize, line: Option<&Line>) -> io::Result<()> {
        let gutter = self.gutter(at, self.depths(), false);
        let text = match line {
            Some(line) => format!("{}:{} {}", shown_path(&line.file), line.number, self.lines.code(line)),
            None => "no line of Rust".to_string(),
        };
        let text = truncate(text.trim_end(), WIDTH - gutter.chars().count());
        writeln!(out, "{}{}", self.paint.put(AnsiStyle::Cyan, &gutter), self.paint.put(AnsiStyle::Bold, &text))
    }

    fn instruction(
        &self,
        out: &mut dyn Write,
        at: usize,
        inst: &SassInstruction,
        conflict: Option<&BankConflict>,
    ) -> io::Result<()> {
        let instructions = &self.code.listing.instructions;
        // Braces enclose instructions that issue together, as in nvdisasm.
        let pair = match (inst.paired, instructions.get(at + 1).is_some_and(|next| next.paired)) {
            (true, _) => '}',
            (false, true) => '{',
            (false, false) => ' ',
        };
        let text = format!("{pair} {:>5} {} {}", inst.guard, inst.name, self.operands(inst));
        let note = conflict.filter(|c| c.cycles > 0).map_or(String::new(), note);
        let text = match note.is_empty() {
            true => text.trim_end().to_string(),
            false => format!("{text:OPERANDS$}  "),
        };
        let (gutter, address) = (self.gutter(at, self.depths(), true), format!("{:04x}", inst.address));
        let used = [&gutter, &address, &text].map(|text| text.chars().count()).iter().sum::<usize>() + 3;
        let note = truncate(&note, WIDTH.saturating_sub(used));
        let (gutter, address) = (self.paint.put(AnsiStyle::Cyan, &gutter), self.paint.put(AnsiStyle::Dim, &address));
        writeln!(out, "{gutter}  {address} {text}{}", self.paint.put(AnsiStyle::Yellow, &note))
    }

    /// Returns the operands with addresses in the kernel instead of labels, and with the jump
    /// target if the operands do not name one.
    fn operands(&self, inst: &SassInstruction) -> String {
        let address =
            |to: &usize| self.code.listing.instructions.get(*to).map(|there| format!("{:04x}", there.address));
        let Some(places) = inst.targets.iter().map(address).collect::<Option<Vec<_>>>() else {
            return inst.operands.clone();
        };
        if places.is_empty() {
            return inst.operands.clone();
        }
        let places = places.join(", ");
        match inst.operands.split_once("`(").and_then(|(before, rest)| Some((before, rest.split_once(')')?.1))) {
            Some((before, after)) => format!("{before}{places}{after}"),
            None if inst.operands.is_empty() => places,
            None => format!("{} // to {places}", inst.operands),
        }
    }
}

/// Formats `, gemm.rs:17`: the line above has the whole path.
fn place(line: &Line) -> String {
    let file = line.file.rsplit('/').next().unwrap_or(&line.file);
    format!(", {file}:{}", line.number)
}

/// `// R4 R8 R12 in bank 0: 2 cycles`
fn note(conflict: &BankConflict) -> String {
    let of_bank = |(bank, registers): (&u32, &Vec<u32>)| {
        let names: Vec<_> = registers.iter().map(|r| format!("R{r}")).collect();
        format!("{} in bank {bank}", names.join(" "))
    };
    let banks: Vec<_> = conflict.registers.iter().map(of_bank).collect();
    format!("// {}: {}", banks.join(", "), counted(conflict.cycles, "cycle"))
}

/// Truncates `text` to `width` characters; the last one is an ellipsis if any were cut.
fn truncate(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl::compiler::source::KernelSource;
    use kernels_rs_estimate::ptxas::Resources;
    use kernels_rs_estimate::sass::Listing;

    /// Sample output of nvdisasm: nested loops, a bank conflict, a dual-issued pair, and a call.
    const TEXT: &str = r#"
	.headerflags	@"EF_CUDA_SM61"
	.type           k,@function
k:
	//## File "src/a.rs", line 11
        /*0008*/                   MOV R0, RZ ;
.L_x_1:
	//## File "src/a.rs", line 12
        /*0010*/                   FFMA R3, R4, R8, R12 ;
.L_x_2:
        /*0018*/         {         IADD R0, R0, R1 ;
        /*0028*/              @!P0 BRA `(.L_x_2)         }
	//## File "src/a.rs", line 11
        /*0030*/               @P1 BRA `(.L_x_1) ;
        /*0038*/                   CAL `(f) ;
	//## File "src/b.rs", line 1
        /*0048*/                   EXIT ;
        .type           f,@function
f:
        /*0050*/               @P0 SYNC (*"BRANCH_TARGETS .L_x_3"*) ;
.L_x_3:
        /*0058*/                   RET ;
"#;

    fn shown(paint: Paint) -> String {
        let text = vec!["for i in 0..n { // each".to_string(), format!("    {};", "long ".repeat(30))];
        let sources = [KernelSource { name: "k".to_string(), file: "src/a.rs".to_string(), line: 11, text }];
        let listing = Listing::read(TEXT).unwrap();
        let code = CodeCost { loops: listing.loops(), listing };
        let resources = Resources { registers: 13, shared_bytes: 0, stack_bytes: 8, spill_stores: 8, spill_loads: 4 };
        let machine = MachineCode { resources, code: None };
        let listed = ListingContents {
            instance: "k",
            target: Target::SM_61,
            ptxas: "ptxas 12.9".to_string(),
            shared_bytes: 0,
            machine: &machine,
            code: &code,
            lines: SourceFunctions::of(&sources),
            paint,
        };
        let mut out = Vec::new();
        listed.print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn code_is_listed_below_its_source_lines_and_loops() {
        let long = format!("src/a.rs:12 {}", "long ".repeat(30));
        let expected = format!(
            "k for sm_61
registers     13, 8 bytes of spill stores, 4 of spill loads (ptxas 12.9)
shared        0 bytes
machine code  9 instructions in 8 issue slots, 2 cycles lost to register banks

    src/a.rs:11 for i in 0..n {{
      0008         MOV R0, RZ
┌ loop 1, a.rs:11: 4 instructions in 3 slots, 2 cycles lost to register banks
│   {}…
│     0010         FFMA R3, R4, R8, R12                  // R4 R8 R12 in bank 0: 2 cycles
│ ┌ loop 2, a.rs:12: 2 instructions in 1 slot
│ │ {}…
│ │   0018 {{       IADD R0, R0, R1
│ └   0028 }}  @!P0 BRA 0018
│   src/a.rs:11 for i in 0..n {{
└     0030     @P1 BRA 0010
      0038         CAL 0050
    src/b.rs:1
      0048         EXIT

f, which ptxas adds
      0050     @P0 SYNC 0058
      0058         RET
",
            &long[..95],
            &long[..95],
        );
        assert_eq!(shown(Paint::Plain), expected);
    }

    #[test]
    fn a_terminal_adds_only_colors() {
        let colored = shown(Paint::Colored);
        assert!(colored.contains("\x1b[2m0008\x1b[0m"));
        let mut plain = colored;
        for code in [0, 1, 2, 33, 36] {
            plain = plain.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(plain, shown(Paint::Plain));
    }
}
