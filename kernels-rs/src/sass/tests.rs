use super::{Listing, banks};

/// As nvdisasm of CUDA 12.9 prints a loop, shortened.
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
fn a_listing_is_read() {
    let listing = Listing::read(LOOP).unwrap();
    let names: Vec<_> = listing.instructions.iter().map(|i| i.name.as_str()).collect();
    let expected = ["MOV", "IADD32I", "LDS.U.128", "FFMA", "FFMA", "NOP", "ISETP.LT.AND", "BRA", "EXIT"];
    assert_eq!(names, expected, "what fills the line is not there");
    let load = &listing.instructions[2];
    assert_eq!((load.address, load.opcode(), load.paired), (0x18, "LDS", true));
    assert_eq!(load.operands, "R8, [R1+0x8]");
    assert_eq!(load.line, Some(("src/lib.rs".to_string(), 12)));
    let jump = &listing.instructions[7];
    assert_eq!((jump.guard.as_str(), jump.target, jump.paired), ("@P0", Some(1), true));
}

#[test]
fn a_loop_is_from_where_a_jump_leads_to_the_jump() {
    let listing = Listing::read(LOOP).unwrap();
    let loops = listing.loops();
    assert_eq!(loops.len(), 1);
    assert_eq!((loops[0].body.clone(), loops[0].depth), (1..8, 0));
    assert_eq!(loops[0].slots, 4, "two pairs and a NOP of seven");
    assert_eq!(loops[0].mix["FFMA"], 2);
    // R4, R8 and R12 are all of bank 0; then R4 comes from the cache, and R9 and R13 are of bank 1.
    assert_eq!(loops[0].bank_conflicts, 2 + 1);
    assert_eq!(banks::conflicts(&listing.instructions[4..5]), 1);
}

#[test]
fn what_is_no_listing_is_none() {
    assert_eq!(Listing::read(""), None);
    assert_eq!(Listing::read("nvdisasm fatal   : Unknown file"), None);
}
