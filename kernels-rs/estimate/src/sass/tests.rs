use super::{Class, Line, Listing};

/// Shortened loop as nvdisasm of CUDA 12.9 prints it.
const LOOP: &str = r#"
	.headerflags	@"EF_CUDA_SM61"
	.section	.text.k,"ax",@progbits
k:
.text.k:
	//## File "src/lib.rs", line 11
        /*0008*/                   MOV R1, c[0x0][0x20] ;
.L_x_1:
	//## File "src/lib.rs", line 12
        /*0010*/         {         IADD32I R6, R2, 0x1 ;
        /*0018*/                   LDS.U.128 R8, [R1+0x8]         }
        /*0028*/                   FFMA R3, R4.reuse, R8, R12 ;
        /*0030*/                   FFMA R5, R4, -R9, R13 ;
        /*0038*/                   NOP ;
        /*0048*/         {         ISETP.LT.AND P0, PT, R6, R7, PT ;
        /*0050*/              @P0 BRA `(.L_x_1)         }
        /*0058*/                   EXIT ;
.L_x_0:
        /*0068*/                   BRA `(.L_x_0) ;
        /*0070*/                   NOP;
"#;

#[test]
fn a_listing_is_parsed() {
    let listing = Listing::read(LOOP).unwrap();
    let names: Vec<_> = listing.instructions.iter().map(|i| i.name.as_str()).collect();
    let expected = ["MOV", "IADD32I", "LDS.U.128", "FFMA", "FFMA", "NOP", "ISETP.LT.AND", "BRA", "EXIT"];
    assert_eq!(names, expected, "what fills the line is not there");
    let load = &listing.instructions[2];
    assert_eq!((load.address, load.opcode(), load.paired), (0x18, "LDS", true));
    assert_eq!(load.operands, "R8, [R1+0x8]");
    assert_eq!(load.line, Some(Line { file: "src/lib.rs".to_string(), number: 12 }));
    let jump = &listing.instructions[7];
    assert_eq!((jump.guard.as_str(), &jump.targets[..], jump.paired), ("@P0", &[1][..], true));
}

#[test]
fn a_loop_extends_from_the_target_of_a_jump_to_the_jump() {
    let listing = Listing::read(LOOP).unwrap();
    let [l] = &listing.loops()[..] else { panic!("one loop") };
    assert_eq!((l.head, l.jump, l.depth), (1, 7, 0));
    assert_eq!(l.body, Vec::from_iter(1..8));
    assert_eq!((l.instructions, l.slots), (6, 4), "two pairs and a NOP of seven");
    assert_eq!(l.mix["FFMA"], 2);
    let classes =
        [(Class::Fma, 2), (Class::Integer, 1), (Class::Compare, 1), (Class::SharedLoad, 1), (Class::Control, 1)];
    assert_eq!(l.classes, classes.into());
    assert_eq!(l.bank_conflicts, Some(2 + 1));
}

/// Parses a listing of sm_61 with these instructions, each at its index.
fn listing(rows: &[&str]) -> Listing {
    let address = std::cell::Cell::new(0);
    let row = |row: &&str| match row.strip_suffix(':') {
        Some(_) => row.to_string(),
        None => format!("/*{:04x}*/ {row} ;", address.replace(address.get() + 8)),
    };
    let text: Vec<_> = rows.iter().map(row).collect();
    Listing::read(&format!(".headerflags @\"EF_CUDA_SM61\"\n{}", text.join("\n"))).unwrap()
}

/// Returns head and body of each loop.
fn loops(rows: &[&str]) -> Vec<(usize, Vec<usize>)> {
    listing(rows).loops().into_iter().map(|l| (l.head, l.body)).collect()
}

#[test]
fn out_of_line_code_belongs_to_its_loop() {
    let rows = [
        ".L0:",
        "IADD R0, R0, R1",
        "@P0 BRA `(.L2)",
        ".L1:",
        "@P1 BRA `(.L0)",
        "EXIT",
        ".L2:",
        "MOV R0, R1",
        "BRA `(.L1)",
    ];
    // The last instruction jumps back, but not to the head of a loop.
    assert_eq!(loops(&rows), [(0, vec![0, 1, 2, 4, 5])]);
}

#[test]
fn nothing_follows_a_trap() {
    let rows = [
        ".L0:",
        "IADD R0, R0, R1",
        "@P0 BRA `(.L2)",
        "@P2 BRA `(.L3)",
        ".L1:",
        "@P1 BRA `(.L0)",
        "EXIT",
        ".L3:",
        "BPT.TRAP 0x1",
        ".L2:",
        "MOV R0, R1",
        "BRA `(.L1)",
    ];
    assert_eq!(loops(&rows), [(0, vec![0, 1, 2, 3, 6, 7])]);
}

#[test]
fn loops_nest() {
    let rows = [".L0:", "MOV R0, R1", ".L1:", "IADD R0, R0, R1", "@P0 BRA `(.L1)", "@P1 BRA `(.L0)", "EXIT"];
    let listing = listing(&rows);
    let nested: Vec<_> = listing.loops().into_iter().map(|l| (l.body, l.depth)).collect();
    assert_eq!(nested, [(vec![0, 1, 2, 3], 0), (vec![1, 2], 1)]);
}

#[test]
fn lanes_continue_at_their_reconvergence_point() {
    // The target of SYNC is outside the loop, and the target of CONT is its head.
    let rows = ["SSY `(.L1)", ".L0:", "@P0 SYNC", "PCNT `(.L0)", "@P1 CONT", "BRA `(.L0)", ".L1:", "EXIT"];
    assert_eq!(loops(&rows), [(1, vec![1, 2, 3, 4])]);
    // The same code, where nvdisasm names the targets.
    let with_targets =
        [".L0:", "@P0 SYNC (*\"BRANCH_TARGETS .L1\"*)", "BRX R3 -0x160 (*\"BRANCH_TARGETS .L0,.L1\"*)", ".L1:", "EXIT"];
    assert_eq!(loops(&with_targets), [(0, vec![0, 1])]);
    assert_eq!(listing(&with_targets).instructions[1].operands, "R3 -0x160");
    let volta = ["BSSY B0, `(.L1)", ".L0:", "@P0 BREAK B0", "@P0 BSYNC B0", "BRA `(.L0)", ".L1:", "EXIT"];
    assert_eq!(loops(&volta), [(1, vec![1, 2, 3])]);
}

#[test]
fn called_functions_have_separate_loops() {
    let rows = ["CAL `(f)", "EXIT", "f:", ".L0:", "IADD R0, R0, R1", "@P0 BRA `(.L0)", "RET"];
    assert_eq!(loops(&rows), [(2, vec![2, 3])]);
    // Unreachable code has no loops.
    assert_eq!(loops(&["EXIT", ".L0:", "IADD R0, R0, R1", "BRA `(.L0)"]), []);
}

/// Returns the cycles that each instruction loses.
fn lost(rows: &[&str]) -> Vec<u32> {
    listing(rows).bank_conflicts().unwrap().iter().map(|c| c.cycles).collect()
}

#[test]
fn registers_of_one_bank_conflict() {
    let rows = [
        "FADD R0, R4, R8",
        "FADD R0, R4, R9",
        "FFMA R0, R1, R1, R5",
        "FFMA R0, R1, c[0x0][0x140], R5",
        "FFMA R0, R4, R8, RZ",
        "ISETP.GE.AND P0, PT, R3, R7, PT",
        "LOP3.LUT.NZ P0, RZ, R6, R10, R2, 0xc8",
        // Memory and `f64` instructions have no conflicts.
        "STG.E [R4], R8",
        "DFMA R0, R4, R8, R12",
    ];
    assert_eq!(lost(&rows), [1, 0, 1, 1, 1, 1, 2, 0, 0]);
    let conflicts = listing(&rows[..1]).bank_conflicts().unwrap();
    assert_eq!(conflicts[0].registers, [(0, vec![4, 8])].into());
}

#[test]
fn the_operand_cache_avoids_conflicts() {
    let cached = "FADD R0, R4.reuse, R1";
    assert_eq!(lost(&[cached, "FADD R0, R4, R8"]), [0, 0]);
    assert_eq!(lost(&[cached, "FADD R0, R8, R4"]), [0, 1], "it is another operand's");
    assert_eq!(lost(&[cached, "LDS R9, [R10]", "FADD R0, R4, R8"]), [0, 0, 0], "a load leaves it");
    assert_eq!(lost(&[cached, "FADD R0, R4, R8", "FADD R0, R4, R8"]), [0, 0, 1], "it was not kept again");
    assert_eq!(lost(&[cached, ".L0:", "FADD R0, R4, R8", "@P0 BRA `(.L0)"]), [0, 1, 0], "a jump comes from elsewhere");
    let two = [cached, "FADD R0, R5.reuse, R2", "FADD R0, R4, R8"];
    assert_eq!(lost(&two), [0, 0, 0], "there is room for two");
    let three = [cached, "FADD R0, R5.reuse, R2", "FADD R0, R6.reuse, R1", "FADD R0, R4, R8"];
    assert_eq!(lost(&three), [0, 0, 0, 1]);
}

#[test]
fn conflicts_are_known_for_machines_with_four_banks() {
    let text = |sm: &str| format!(".headerflags @\"{sm}\"\n/*0000*/ FADD R0, R4, R8 ;");
    let known = |sm: &str| Listing::read(&text(sm)).unwrap().bank_conflicts().is_some();
    assert!(known("EF_CUDA_SM52") && known("EF_CUDA_TEXMODE_UNIFIED EF_CUDA_SM61 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM61)"));
    assert!(!known("EF_CUDA_SM70") && !known(""));
}

#[test]
fn other_text_is_not_a_listing() {
    assert_eq!(Listing::read(""), None);
    assert_eq!(Listing::read("nvdisasm fatal   : Unknown file"), None);
}
