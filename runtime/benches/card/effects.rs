//! Forms that do more than compute: they access memory, exchange values between threads, or change
//! the flow of control. Code around each such instruction makes its effect visible as two words.
//!
//! A thread has a cell of 16 bytes in each state space, which initially holds the third and fourth
//! operand. Threads exchange values through their cells in shared memory.

use super::forms::{SampleForm, register};
use super::operands::Random;
use kernel_dsl::compiler::ptx::form::{FormRow, OperandForm, OperandKind, OperandType, Presence};
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Space, Type};

/// Variables and functions of a module that the code of these forms names.
pub const DECLARATIONS: &str = ".global .align 16 .b8 cells[16384];\n\
    .global .align 16 .b8 fixed[16] = {1, 2, 131, 4, 5, 6, 7, 8, 249, 10, 11, 12, 13, 14, 15, 240};\n\
    .const .align 16 .b8 constants[16] = {128, 255, 127, 191, 0, 0, 192, 255, 1, 0, 128, 127, 254, 129, 63, 130};\n\
    .shared .align 16 .b8 shared_cells[4096];\n\
    .shared .align 16 .b8 shared_fixed[16];\n\
    .func (.param .align 16 .b8 back[16]) echo(.param .align 16 .b8 handed[16])\n{\n.reg .b64 %a<2>;\n\
    ld.param.b64 %a0, [handed];\nld.param.b64 %a1, [handed+8];\n\
    st.param.b64 [back], %a0;\nst.param.b64 [back+8], %a1;\nret;\n}\n";

/// The first of the registers that receive a vector.
const FIRST: usize = 16;

/// Returns the last type among the modifiers.
fn last_type(choice: &[Option<Modifier>]) -> Option<Type> {
    choice.iter().flatten().filter_map(|m| m.ty()).next_back()
}

/// Returns code that puts register `n` of the type into the 64-bit register `to`, zero-extended.
pub fn word(ty: Type, n: usize, to: &str) -> String {
    let from = register(ty, n);
    match ty.bits() {
        1 => format!("selp.u64 {to}, 1, 0, {from};\n"),
        16 => format!("cvt.u64.u16 {to}, {from};\n"),
        64 => format!("mov.b64 {to}, {from};\n"),
        _ => format!("cvt.u64.u32 {to}, {from};\n"),
    }
}

/// Code that makes the second result 0.
const NO_SECOND: &str = "mov.u64 %d7, 0;\n";

/// Returns registers of the type from number `first` on, as an operand.
fn vector(ty: Type, first: usize, count: usize) -> String {
    let all: Vec<String> = (first..first + count).map(|n| register(ty, n)).collect();
    if count == 1 { all.concat() } else { format!("{{{}}}", all.join(", ")) }
}

/// Returns code that puts the registers from [`FIRST`] on into the results.
fn results(ty: Type, count: usize) -> String {
    let pair = |first: usize| vector(ty, first, 2);
    match (count, ty.bits()) {
        (1, _) => word(ty, FIRST, "%d6") + NO_SECOND,
        (2, _) => word(ty, FIRST, "%d6") + &word(ty, FIRST + 1, "%d7"),
        (_, 16) => format!("mov.b64 %d6, {};\n{NO_SECOND}", vector(ty, FIRST, 4)),
        _ => format!("mov.b64 %d6, {};\nmov.b64 %d7, {};\n", pair(FIRST), pair(FIRST + 2)),
    }
}

/// Returns code that puts the address of the thread's cell into `%d10`.
fn address(space: Space) -> &'static str {
    match space {
        Space::Global => "mov.u64 %d10, cells;\nmad.wide.u32 %d10, %r8, 16, %d10;\n",
        Space::Shared => "mov.u64 %d10, shared_cells;\nmad.wide.u32 %d10, %r10, 16, %d10;\n",
        Space::Local => "mov.u64 %d10, local_cell;\n",
        Space::Const => "mov.u64 %d10, constants;\n",
        Space::Param => "",
    }
}

/// A thread's cell, and how an instruction refers to it.
struct Cell {
    /// Code that initializes the cell and puts its address into `%d10`.
    before: String,
    /// The space of instructions that read the cell, with a dot, or nothing.
    space: String,
}

impl Cell {
    /// Returns the cell of a space. A generic address is in one of the spaces in `generic`.
    fn new(space: Option<Space>, generic: &[Space], random: &mut Random) -> Cell {
        let of = space.unwrap_or_else(|| generic[random.below(generic.len() as u64) as usize]);
        let mut before = address(of).to_string();
        if of != Space::Const {
            before += &format!("st.{of}.v2.u64 [%d10], {{%d3, %d4}};\n");
        }
        if space.is_none() {
            before += &format!("cvta.{of}.u64 %d10, %d10;\n");
        }
        Cell { before, space: space.map_or(String::new(), |space| format!(".{space}")) }
    }

    /// Returns code that reads the cell into the results.
    fn read(&self) -> String {
        format!("ld{}.v2.u64 {{%d6, %d7}}, [%d10];\n", self.space)
    }
}

/// The code of a form.
#[derive(Default)]
struct Code {
    before: String,
    /// The operands of the instruction.
    operands: String,
    after: String,
}

/// Returns a row's form with a choice of modifiers. Returns `None` if the row is a pure
/// computation, or the result differs between runs.
pub fn form(row: &'static FormRow, choice: &[Option<Modifier>], random: &mut Random) -> Option<SampleForm> {
    use Opcode::*;
    let mut name = row.opcode.to_string();
    choice.iter().flatten().for_each(|m| name += &format!(".{m}"));
    let ty = last_type(choice);
    let (mut types, mut results) = (vec![Type::B64; 4], [Type::B64; 2]);
    let code = match row.opcode {
        Ld | Ldu => load(row, choice, random),
        St => {
            types = vec![ty?, ty?, ty?, ty?];
            store(choice, random)
        }
        Atom | Red => {
            types = vec![ty?, ty?, ty?, Type::B64];
            results = [ty?, ty?];
            atomic(row, choice, random)
        }
        Membar | Fence => {
            let cell = Cell::new(Some(Space::Global), &[], random);
            Code { after: cell.read(), before: cell.before, ..Code::default() }
        }
        Prefetch | Prefetchu => {
            let cell = Cell::new(space_of(choice), &[Space::Global], random);
            Code { before: cell.before.clone(), operands: "[%d10]".into(), after: cell.read() }
        }
        Cp => copy(row, choice, random),
        Alloca => Code {
            before: "stacksave.u64 %d13;\nmov.u64 %d12, 32;\n".into(),
            operands: "%d10, %d12".into(),
            after: "st.local.u64 [%d10], %d3;\nst.local.u64 [%d10+24], %d4;\nld.local.u64 %d6, [%d10];\n\
                ld.local.u64 %d7, [%d10+24];\nstackrestore.u64 %d13;\n"
                .into(),
        },
        Stacksave => {
            Code { operands: "%d13".into(), after: format!("stackrestore.u64 %d13;\n{ANSWER}"), ..Code::default() }
        }
        Stackrestore => {
            Code { before: "stacksave.u64 %d13;\n".into(), operands: "%d13".into(), after: ANSWER.to_string() }
        }
        Cvta => convert_address(row, choice, random),
        Isspacep => examine_address(),
        Mov => {
            types = moved_types(row, choice)?;
            moved(row, choice)?
        }
        Cvt if is_special(row) => {
            let slot = |operand: usize| type_of(&row.operands()[operand], choice);
            // The only special registers of 64 bits are clocks and the number of the grid.
            if slot(1)?.bits() == 64 {
                return None;
            }
            Code {
                operands: format!("{}, %tid.x", register(slot(0)?, FIRST)),
                after: word(slot(0)?, FIRST, "%d6") + NO_SECOND,
                ..Code::default()
            }
        }
        Bra | Brx | Call | Ret | Exit | Pmevent | Nanosleep => control(row),
        Bar | Barrier => synchronize(row, choice),
        Shfl | Vote | Match | Redux | Activemask => exchange(row, choice, &mut types, random),
        _ => return None,
    };
    let Code { before, operands, after } = code;
    let text = if operands.is_empty() { name.clone() } else { format!("{name} {operands}") };
    Some(SampleForm { row, name, before, text, after, results, types, approximate: false })
}

/// Code that makes the results two constants, for instructions without a visible effect.
const ANSWER: &str = "mov.u64 %d6, 42;\nmov.u64 %d7, 0;\n";

fn space_of(choice: &[Option<Modifier>]) -> Option<Space> {
    choice.iter().flatten().find_map(|m| m.space())
}

fn has(choice: &[Option<Modifier>], modifier: Modifier) -> bool {
    choice.contains(&Some(modifier))
}

/// Returns whether the row reads a special register.
pub fn is_special(row: &FormRow) -> bool {
    row.operands().iter().any(|operand| operand.kind == OperandKind::Special)
}

fn type_of(operand: &OperandForm, choice: &[Option<Modifier>]) -> Option<Type> {
    match operand.ty {
        OperandType::Fixed(ty) => Some(ty),
        OperandType::Slot(i) => choice[usize::from(i)].and_then(Modifier::ty),
        OperandType::Wide(_) | OperandType::None => None,
    }
}

/// Code that passes the third and fourth operand to a function, and code that calls it.
const HAND: &str = "{\n.param .align 16 .b8 handed[16];\n.param .align 16 .b8 back[16];\n\
    st.param.b64 [handed], %d3;\nst.param.b64 [handed+8], %d4;\n";
const CALL: &str = "call (back), echo, (handed);\n";

fn load(row: &FormRow, choice: &[Option<Modifier>], random: &mut Random) -> Code {
    let ty = last_type(choice).expect("a load has a type");
    let count = choice.iter().flatten().find_map(|m| m.vector()).unwrap_or(1);
    let (to, after) = (vector(ty, FIRST, count), results(ty, count));
    let space = space_of(choice);
    // Memory that the kernel does not write.
    let input = match (row.opcode, space) {
        (Opcode::Ldu, Some(_)) => Some("mov.u64 %d10, %d11;\n"),
        (Opcode::Ldu, None) => Some("cvta.global.u64 %d10, %d11;\n"),
        _ if has(choice, Modifier::Nc) => Some("mov.u64 %d10, %d8;\n"),
        _ => None,
    };
    if space == Some(Space::Param) {
        return Code { before: format!("{HAND}{CALL}"), operands: format!("{to}, [back]"), after: after + "}\n" };
    }
    let before = input
        .map_or_else(|| Cell::new(space, &[Space::Global, Space::Shared, Space::Local], random).before, str::to_string);
    Code { before, operands: format!("{to}, [%d10]"), after }
}

fn store(choice: &[Option<Modifier>], random: &mut Random) -> Code {
    let ty = last_type(choice).expect("a store has a type");
    let count = choice.iter().flatten().find_map(|m| m.vector()).unwrap_or(1);
    let from = vector(ty, 1, count);
    let space = space_of(choice);
    if space == Some(Space::Param) {
        let read = "ld.param.b64 %d6, [back];\nld.param.b64 %d7, [back+8];\n}\n";
        let (operands, after) = (format!("[handed], {from}"), format!("{CALL}{read}"));
        return Code { before: HAND.to_string(), operands, after };
    }
    let cell = Cell::new(space, &[Space::Global, Space::Shared, Space::Local], random);
    Code { after: cell.read(), before: cell.before, operands: format!("[%d10], {from}") }
}

/// Returns an atomic operation on the thread's own cell, so that its result does not depend on the
/// order of threads. Half of the values that `cas` compares are equal.
fn atomic(row: &FormRow, choice: &[Option<Modifier>], random: &mut Random) -> Code {
    let ty = last_type(choice).expect("an atomic operation has a type");
    let cell = Cell::new(space_of(choice), &[Space::Global, Space::Shared], random);
    let (mut before, mut operands) = (cell.before, String::new());
    if row.opcode == Opcode::Atom {
        operands += &format!("{}, ", register(ty, FIRST));
    }
    if has(choice, Modifier::Cas) {
        before += "selp.b64 %d15, %d3, %d1, %p4;\ncvt.u32.u64 %r15, %d15;\ncvt.u16.u64 %h15, %d15;\n";
        operands += &format!("[%d10], {}, {}", register(ty, 15), register(ty, 2));
    } else {
        operands += &format!("[%d10], {}", register(ty, 1));
    }
    let first = if row.opcode == Opcode::Atom { word(ty, FIRST, "%d6") } else { "mov.u64 %d6, 0;\n".to_string() };
    Code { before, operands, after: format!("ld{}.u64 %d7, [%d10];\n{first}", cell.space) }
}

/// Returns a copy of the first two operands to shared memory, or the commands that wait for it.
fn copy(row: &FormRow, choice: &[Option<Modifier>], random: &mut Random) -> Code {
    let cell = Cell::new(Some(Space::Shared), &[], random);
    let after = format!("cp.async.wait_all;\n{}", cell.read());
    let before = cell.before.clone();
    if has(choice, Modifier::CommitGroup) || has(choice, Modifier::WaitAll) {
        let whole = "cp.async.ca.shared.global [%d10], [%d8], 16;\n";
        return Code { before: before + whole, operands: String::new(), after };
    }
    if has(choice, Modifier::WaitGroup) {
        let whole = "cp.async.ca.shared.global [%d10], [%d8], 16;\ncp.async.commit_group;\n";
        return Code { before: before + whole, operands: "0".into(), after: cell.read() };
    }
    let bytes = if has(choice, Modifier::Cg) { 16 } else { [4, 8, 16][random.below(3) as usize] };
    let mut code = Code { before, operands: format!("[%d10], [%d8], {bytes}"), after };
    if row.operands().iter().any(|o| o.presence == Presence::Optional) && random.below(2) == 1 {
        code.before += &format!("rem.u32 %r17, %r4, {};\n", bytes + 1);
        code.operands += ", %r17";
    }
    code
}

fn convert_address(row: &FormRow, choice: &[Option<Modifier>], random: &mut Random) -> Code {
    let space = space_of(choice).expect("a conversion has a space");
    let cell = Cell::new(Some(space), &[], random);
    let through = |space: &str| format!("ld{space}.u64 %d6, [%d14];\n{NO_SECOND}");
    if has(choice, Modifier::To) {
        let before = format!("{}cvta.{space}.u64 %d10, %d10;\n", cell.before);
        return Code { before, operands: "%d14, %d10".into(), after: through(&cell.space) };
    }
    if row.operands()[1].kind != OperandKind::Symbol {
        return Code { before: cell.before, operands: "%d14, %d10".into(), after: through("") };
    }
    let (before, symbol) = match space {
        Space::Shared => ("st.shared.u64 [shared_fixed], 77;\n".to_string(), "shared_fixed"),
        Space::Local => (cell.before, "local_cell"),
        Space::Const => (String::new(), "constants"),
        Space::Global | Space::Param => (String::new(), "fixed"),
    };
    Code { before, operands: format!("%d14, {symbol}"), after: through("") }
}

/// Returns an examination of generic addresses in four spaces, one for each thread of four.
fn examine_address() -> Code {
    let mut before = "and.b32 %r7, %r8, 3;\ncvta.global.u64 %d10, %d8;\n".to_string();
    for (i, (space, symbol)) in
        [("shared", "shared_fixed"), ("local", "local_cell"), ("const", "constants")].into_iter().enumerate()
    {
        before +=
            &format!("cvta.{space}.u64 %d12, {symbol};\nsetp.eq.u32 %p5, %r7, {i};\nselp.b64 %d10, %d12, %d10, %p5;\n");
    }
    Code { before, operands: "%p16, %d10".into(), after: word(Type::Pred, FIRST, "%d6") + NO_SECOND }
}

/// Returns the types of the operands of a move.
fn moved_types(row: &FormRow, choice: &[Option<Modifier>]) -> Option<Vec<Type>> {
    let from = &row.operands()[1];
    Some(match from.kind {
        OperandKind::Value | OperandKind::Vector(_) => vec![type_of(from, choice)?; 4],
        _ => vec![Type::B64; 4],
    })
}

/// Returns a move. `None` for the special registers of 64 bits, which differ between runs.
fn moved(row: &FormRow, choice: &[Option<Modifier>]) -> Option<Code> {
    let [to, from] = row.operands() else { return None };
    let ty = type_of(to, choice)?;
    let count = |operand: &OperandForm| match operand.kind {
        OperandKind::Vector(n) => usize::from(n),
        _ => 1,
    };
    let (destination, after) = (vector(ty, FIRST, count(to)), results(ty, count(to)));
    let code = |source: &str| Code { operands: format!("{destination}, {source}"), ..Code::default() };
    Some(match from.kind {
        OperandKind::Special if ty.bits() == 64 => return None,
        OperandKind::Special => Code { after, ..code("%tid.x") },
        OperandKind::Symbol => {
            let (before, symbol, space) = match ty.bits() {
                64 => ("", "fixed", "global"),
                _ => ("st.shared.u64 [shared_fixed], 77;\n", "shared_fixed", "shared"),
            };
            let after = format!("ld.{space}.u64 %d6, [{destination}];\n{NO_SECOND}");
            Code { before: before.to_string(), after, ..code(symbol) }
        }
        _ => Code { after, ..code(&vector(type_of(from, choice)?, 1, count(from))) },
    })
}

/// Returns control flow that depends on the operands. Each form is in a block with its own labels.
fn control(row: &FormRow) -> Code {
    let part = |before: &str, operands: &str, after: &str| Code {
        before: before.into(),
        operands: operands.into(),
        after: after.into(),
    };
    match row.opcode {
        Opcode::Bra => part(
            "{\nmov.u64 %d6, 1;\nmov.u64 %d7, 0;\n@%p1 bra $other;\n",
            "$end",
            "$other:\nmov.u64 %d6, 2;\n$end:\n}\n",
        ),
        Opcode::Brx => part(
            "{\n$list: .branchtargets $zero, $one, $two;\nmov.u64 %d7, 0;\nrem.u32 %r17, %r1, 3;\n",
            "%r17, $list",
            "$zero:\nmov.u64 %d6, 10;\nbra $end;\n$one:\nmov.u64 %d6, 11;\nbra $end;\n$two:\nmov.u64 %d6, 12;\n$end:\n}\n",
        ),
        Opcode::Call => {
            part(HAND, "(back), echo, (handed)", "ld.param.b64 %d6, [back];\nld.param.b64 %d7, [back+8];\n}\n")
        }
        // Threads that leave have written the first results, and the others write the second.
        Opcode::Ret | Opcode::Exit => part(
            "{\nmov.u64 %d6, 1;\nst.global.v2.u64 [%d9], {%d6, %d1};\n@%p1 bra $stay;\n",
            "",
            "$stay:\nmov.u64 %d6, 2;\nmov.u64 %d7, 0;\n}\n",
        ),
        Opcode::Nanosleep => part("", "20", ANSWER),
        _ => part("", "7", ANSWER),
    }
}

/// Returns code around a barrier. Each thread writes its cell in shared memory before the barrier,
/// and reads a neighbor's cell after it.
fn synchronize(row: &FormRow, choice: &[Option<Modifier>]) -> Code {
    let write = format!("{}st.shared.u64 [%d10], %d1;\n", address(Space::Shared));
    // The last barrier prevents a write to the cell before the neighbor has read it.
    let read = "mov.u64 %d12, shared_cells;\nmad.wide.u32 %d12, %r18, 16, %d12;\nld.shared.u64 %d7, [%d12];\n\
        bar.sync 0;\n";
    if has(choice, Modifier::Warp) {
        let before = write + "xor.b32 %r18, %r10, 5;\n";
        return Code { before, operands: "-1".into(), after: format!("mov.u64 %d6, 0;\n{read}") };
    }
    let is_threads = |o: &OperandForm| matches!(o.limit, kernel_dsl::compiler::ptx::form::ConstantLimit::Threads);
    let counts = row.operands().iter().any(is_threads);
    // If the barrier takes a number of threads, each half of the block has a separate barrier.
    let place = if counts { "%r12, 128" } else { "1" };
    let halves = "shr.u32 %r12, %r10, 7;\nadd.u32 %r12, %r12, 1;\n";
    let neighbor =
        "add.u32 %r18, %r10, 37;\nand.b32 %r18, %r18, 127;\nand.b32 %r7, %r10, 128;\nor.b32 %r18, %r18, %r7;\n";
    if has(choice, Modifier::Arrive) {
        // Two warps of each half arrive, and the other two wait and read what they wrote.
        let before = format!(
            "{write}{halves}{{\nmov.u32 %r18, %r10;\nand.b32 %r7, %r10, 64;\nsetp.ne.u32 %p5, %r7, 0;\n@%p5 bra $wait;\n"
        );
        let after = format!(
            "bra $end;\n$wait:\nbar.sync %r12, 128;\nxor.b32 %r18, %r10, 64;\n$end:\n}}\nmov.u64 %d6, 0;\n{read}"
        );
        return Code { before, operands: place.to_string(), after };
    }
    let before = format!("{write}{halves}{neighbor}");
    if !has(choice, Modifier::Red) {
        return Code { before, operands: place.to_string(), after: format!("mov.u64 %d6, 0;\n{read}") };
    }
    let ty = if has(choice, Modifier::Popc) { Type::U32 } else { Type::Pred };
    let operands = format!("{}, {place}, %p1", register(ty, FIRST));
    Code { before, operands, after: format!("{}{read}", word(ty, FIRST, "%d6")) }
}

/// Returns an exchange between the lanes of a warp. A mask has all lanes, or those of the lane's
/// half of the warp.
fn exchange(row: &FormRow, choice: &[Option<Modifier>], types: &mut Vec<Type>, random: &mut Random) -> Code {
    let halves = "and.b32 %r7, %r10, 16;\nsetp.ne.u32 %p5, %r7, 0;\nselp.b32 %r17, 0xffff0000, 0xffff, %p5;\n";
    let whole = "mov.b32 %r17, -1;\n";
    let before = if random.below(2) == 0 { halves } else { whole }.to_string();
    let sync = has(choice, Modifier::Sync);
    let member = if sync { ", %r17" } else { "" };
    let number = word(Type::B32, FIRST, "%d6");
    let second = word(Type::Pred, 6, "%d7");
    match row.opcode {
        Opcode::Activemask => Code { before: String::new(), operands: "%r16".into(), after: number + NO_SECOND },
        Opcode::Shfl => {
            *types = vec![Type::B32; 3];
            let before = whole.to_string();
            Code { before, operands: format!("%r16|%p6, %r1, %r2, %r3{member}"), after: number + &second }
        }
        Opcode::Vote => {
            let ty = if has(choice, Modifier::Ballot) { Type::B32 } else { Type::Pred };
            // All lanes of every third warp agree.
            let before = before + "shr.u32 %r7, %r8, 5;\nrem.u32 %r7, %r7, 3;\nsetp.eq.or.u32 %p15, %r7, 0, %p1;\n";
            let not = if random.below(2) == 1 { "!" } else { "" };
            let operands = format!("{}, {not}%p15{member}", register(ty, FIRST));
            Code { before, operands, after: word(ty, FIRST, "%d6") + NO_SECOND }
        }
        Opcode::Match => {
            let ty = last_type(choice).expect("a match has a type");
            // Few values, and one value in every second warp.
            let few = "and.b64 %d15, %d1, 3;\nand.b32 %r7, %r8, 32;\nsetp.eq.u32 %p5, %r7, 0;\n\
                selp.b64 %d15, 5, %d15, %p5;\ncvt.u32.u64 %r15, %d15;\n";
            let (to, after) =
                if has(choice, Modifier::All) { ("%r16|%p6", number + &second) } else { ("%r16", number + NO_SECOND) };
            Code { before: before + few, operands: format!("{to}, {}{member}", register(ty, 15)), after }
        }
        _ => {
            *types = vec![Type::B32; 3];
            Code { before, operands: format!("%r16, %r1{member}"), after: number + NO_SECOND }
        }
    }
}
