//! The control words of machine instructions: when the next instruction may issue, and which
//! operations in flight the instruction waits for.
//!
//! On Maxwell and Pascal, a word of 64 bits precedes each three instructions and has 21 bits for
//! each of them (maxas, "Control Codes", <https://github.com/NervanaSystems/maxas/wiki>). From
//! Volta on, an instruction has 128 bits, and its control bits start at bit 105. The source is Jia
//! and others, "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018). The 21
//! bits have one layout on all of these machines.

/// Number of scoreboard barriers of a warp.
pub const BARRIERS: usize = 6;

/// Control bits of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Cycles until the warp's next instruction may issue. 0 means that the next instruction issues
    /// in the same cycle.
    pub stall: u8,
    /// Barrier that is set until the result is written.
    pub write_barrier: Option<u8>,
    /// Barrier that is set until the operands are read.
    pub read_barrier: Option<u8>,
    /// Barriers that the instruction waits for, as a mask.
    pub waits: u8,
}

impl Control {
    /// Decodes 21 control bits.
    pub fn of(bits: u64) -> Control {
        let field = |at: u32, width: u32| bits >> at & ((1 << width) - 1);
        let barrier = |at| Some(field(at, 3)).filter(|n| *n < BARRIERS as u64).map(|n| n as u8);
        Control {
            stall: field(0, 4) as u8,
            write_barrier: barrier(5),
            read_barrier: barrier(8),
            waits: field(11, 6) as u8,
        }
    }
}

/// The encodings of a kernel's instructions.
pub struct Encodings {
    /// Words of 64 bits in the order of their addresses, without gaps.
    words: Vec<u64>,
}

impl Encodings {
    /// Splits the output of `nvdisasm -hex` into the text without encodings, which
    /// [`Listing::read`](crate::sass::Listing::read) parses, and the encodings.
    pub fn split(text: &str) -> (String, Encodings) {
        let (mut plain, mut words) = (String::with_capacity(text.len()), Vec::new());
        for row in text.lines() {
            let hex = row.rsplit_once("/* 0x").and_then(|(code, hex)| Some((code, hex.trim().strip_suffix("*/")?)));
            let word = hex.and_then(|(code, hex)| Some((code, u64::from_str_radix(hex.trim(), 16).ok()?)));
            let code = word.map_or(row, |(code, _)| code);
            words.extend(word.map(|(_, word)| word));
            if word.is_none() || !code.trim().is_empty() {
                plain.push_str(code);
                plain.push('\n');
            }
        }
        (plain, Encodings { words })
    }

    /// Returns the control bits of the instruction at `address` on the machine `sm`, such as 61;
    /// `None` if there is no such instruction.
    pub fn control(&self, sm: u16, address: u32) -> Option<Control> {
        let word = |index: u32| self.words.get(index as usize);
        if sm < 70 {
            let number = (address % 32 / 8).checked_sub(1)?;
            return Some(Control::of(word(address / 32 * 4)? >> (21 * number)));
        }
        Some(Control::of(word(address / 8 + 1)? >> 41))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `nvdisasm -hex` of CUDA 12.9 for sm_61: the control words, and a pair.
    const PASCAL: &str = "                         /* 0x001c4400fe0007f6 */
        /*0008*/                   MOV R1, c[0x0][0x20] ;  /* 0x4c98078000870001 */
        /*0010*/         {         MOV R0, c[0x0][0x198] ; /* 0x4c98078006670000 */
        /*0018*/                   S2R R92, SR_CTAID.Y         }
                                                           /* 0xf0c800000267005c */
";

    #[test]
    fn control_words_of_pascal_are_decoded() {
        let (plain, encodings) = Encodings::split(PASCAL);
        assert_eq!(plain.lines().count(), 3, "{plain}");
        let control = |address| encodings.control(61, address).unwrap();
        // 0x7f6 of the first: stall 6, yield, no barriers, no waits.
        assert_eq!(control(8), Control { stall: 6, write_barrier: None, read_barrier: None, waits: 0 });
        assert_eq!(control(16).stall, 0, "a pair issues in one cycle");
        assert_eq!(control(24), Control { stall: 1, write_barrier: Some(0), read_barrier: None, waits: 0 });
        assert_eq!(encodings.control(61, 0), None, "that is a control word");
    }

    /// The instruction of sm_90 that starts a conversion and sets barrier 3.
    const HOPPER: &str = "        /*0000*/  I2F.U32.RP R8, UR4 ;  /* 0x0000000400087d06 */
                                        /* 0x000ee20008209000 */
";

    #[test]
    fn control_bits_of_hopper_are_decoded() {
        let (_, encodings) = Encodings::split(HOPPER);
        let control = Control { stall: 1, write_barrier: Some(3), read_barrier: None, waits: 0 };
        assert_eq!(encodings.control(90, 0), Some(control));
        assert_eq!(encodings.control(90, 16), None);
    }
}
