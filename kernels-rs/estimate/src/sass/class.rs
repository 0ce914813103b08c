//! Classes of instructions by the unit that executes them.

use super::SassInstruction;
use serde::Serialize;

/// Class of machine instructions, by the executing unit and, for memory, by the state space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Fused multiply-add of `f32`.
    Fma,
    /// Other arithmetic on `f32`.
    Float,
    /// Arithmetic on `f64`.
    Double,
    /// Arithmetic on floats of 16 bits.
    Half,
    /// Products of matrices.
    Matrix,
    /// Addition, logic, shifts and bit fields of integers.
    Integer,
    /// Integer products and multiply-adds.
    Multiply,
    /// Approximations of the special function unit.
    Special,
    /// Conversions between types.
    Convert,
    /// Comparison and selection.
    Compare,
    /// Copies, and reads of special registers.
    Move,
    /// Loads from constant memory by an address. A constant operand of another instruction costs
    /// none.
    Constant,
    /// Loads from global memory.
    GlobalLoad,
    /// Stores to global memory.
    GlobalStore,
    /// Loads from shared memory.
    SharedLoad,
    /// Stores to shared memory.
    SharedStore,
    /// Loads from local memory, which holds spills.
    LocalLoad,
    /// Stores to local memory.
    LocalStore,
    /// Accesses by a generic address.
    Generic,
    /// Textures and surfaces.
    Texture,
    /// Atomic operations.
    Atomic,
    /// Exchange between lanes of a warp.
    Warp,
    /// Barriers, fences, and waits for operations in flight.
    Barrier,
    /// Jumps, calls, reconvergence, and exits.
    Control,
    /// Unknown instructions.
    Other,
}

impl Class {
    /// Returns a description of the class.
    pub fn name(self) -> &'static str {
        match self {
            Class::Fma => "f32 multiply-add",
            Class::Float => "f32",
            Class::Double => "f64",
            Class::Half => "16-bit float",
            Class::Matrix => "matrix",
            Class::Integer => "integer",
            Class::Multiply => "integer multiply",
            Class::Special => "special function",
            Class::Convert => "convert",
            Class::Compare => "compare and select",
            Class::Move => "move",
            Class::Constant => "constant load",
            Class::GlobalLoad => "global load",
            Class::GlobalStore => "global store",
            Class::SharedLoad => "shared load",
            Class::SharedStore => "shared store",
            Class::LocalLoad => "local load",
            Class::LocalStore => "local store",
            Class::Generic => "generic access",
            Class::Texture => "texture",
            Class::Atomic => "atomic",
            Class::Warp => "warp exchange",
            Class::Barrier => "barrier and wait",
            Class::Control => "control",
            Class::Other => "other",
        }
    }

    /// Returns the class of an instruction, by the instruction sets of Maxwell to Hopper in
    /// NVIDIA's "CUDA Binary Utilities".
    pub fn of(inst: &SassInstruction) -> Class {
        match inst.opcode() {
            "FFMA" | "FFMA32I" => Class::Fma,
            "FADD" | "FADD32I" | "FMUL" | "FMUL32I" | "FMNMX" | "FSWZADD" | "RRO" | "FCHK" => Class::Float,
            "DADD" | "DMUL" | "DFMA" | "DMNMX" | "DSET" | "DSETP" => Class::Double,
            "HADD2" | "HADD2_32I" | "HMUL2" | "HMUL2_32I" | "HFMA2" | "HFMA2_32I" | "HSET2" | "HSETP2" | "HMNMX2" => {
                Class::Half
            }
            "HMMA" | "IMMA" | "BMMA" | "DMMA" | "HGMMA" | "IGMMA" | "BGMMA" | "QGMMA" | "MOVM" => Class::Matrix,
            "XMAD" | "IMAD" | "IMAD32I" | "IMADSP" | "IMUL" | "IMUL32I" | "IDP" | "IDP4A" | "VMAD" => {
                // From Volta on, a copy can be a product with 1 in the other pipe.
                if inst.name.starts_with("IMAD.MOV") { Class::Move } else { Class::Multiply }
            }
            "IADD" | "IADD3" | "IADD32I" | "ISCADD" | "ISCADD32I" | "IABS" | "ISAD" | "LEA" | "LOP" | "LOP3"
            | "LOP32I" | "PLOP3" | "SHF" | "SHL" | "SHR" | "BFE" | "BFI" | "BMSK" | "BREV" | "FLO" | "POPC"
            | "SGXT" | "PRMT" | "IMNMX" | "VIMNMX" | "VIADD" | "VIADDMNMX" | "VHMNMX" | "VABSDIFF" | "VABSDIFF4"
            | "VADD" | "VADD2" | "VADD4" | "VMNMX" | "VSET" | "VSET2" | "VSET4" | "VSHL" | "VSHR" | "VSUB"
            | "VAVRG4" | "UIADD3" | "UIMAD" | "UISETP" | "ULEA" | "ULOP" | "ULOP3" | "UPLOP3" | "UPRMT" | "USEL"
            | "USHF" | "UFLO" | "UPOPC" | "USGXT" | "UBMSK" | "UBREV" | "UP2UR" => Class::Integer,
            "MUFU" => Class::Special,
            "F2F" | "F2I" | "I2F" | "I2I" | "FRND" | "F2FP" | "I2FP" | "I2IP" | "F2IP" => Class::Convert,
            "FSET" | "FSETP" | "FCMP" | "FSEL" | "ISET" | "ISETP" | "ICMP" | "SEL" | "PSET" | "PSETP" | "CSET"
            | "CSETP" => Class::Compare,
            "MOV" | "MOV32I" | "S2R" | "CS2R" | "P2R" | "R2P" | "R2B" | "B2R" | "UMOV" | "R2UR" | "S2UR" | "UR2UP"
            | "LEPC" => Class::Move,
            "LDC" | "ULDC" => Class::Constant,
            "LDG" | "LDGSTS" | "LDGDEPBAR" => Class::GlobalLoad,
            "STG" => Class::GlobalStore,
            "LDS" | "LDSM" => Class::SharedLoad,
            "STS" | "STSM" => Class::SharedStore,
            "LDL" => Class::LocalLoad,
            "STL" => Class::LocalStore,
            "LD" | "ST" | "CCTL" | "CCTLL" | "CCTLT" | "QSPC" => Class::Generic,
            "TEX" | "TEXS" | "TLD" | "TLDS" | "TLD4" | "TLD4S" | "TXQ" | "TMML" | "TXD" | "SULD" | "SUST" | "SURED"
            | "SUATOM" | "SUQUERY" => Class::Texture,
            "ATOM" | "ATOMG" | "ATOMS" | "RED" | "REDG" => Class::Atomic,
            "SHFL" | "VOTE" | "VOTEU" | "MATCH" | "REDUX" => Class::Warp,
            "BAR" | "MEMBAR" | "DEPBAR" | "TEXDEPBAR" | "ERRBAR" | "CGAERRBAR" | "ENDCOLLECTIVE" | "WARPSYNC"
            | "NANOSLEEP" | "SYNCS" | "FENCE" => Class::Barrier,
            "BRA" | "BRX" | "JMP" | "JMX" | "SSY" | "SYNC" | "PBK" | "BRK" | "PCNT" | "CONT" | "PRET" | "RET"
            | "CAL" | "JCAL" | "CALL" | "EXIT" | "BSSY" | "BSYNC" | "BREAK" | "BMOV" | "YIELD" | "KILL" | "BPT"
            | "RTT" | "PEXIT" | "RPCMOV" | "WARPGROUP" | "ELECT" | "PREEXIT" => Class::Control,
            _ => Class::Other,
        }
    }
}
