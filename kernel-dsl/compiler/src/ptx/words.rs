//! The vocabulary: types, state spaces, opcodes, modifiers, special registers, each with its spelling.

use crate::target::Target;
use std::fmt;

/// Declares an enumeration whose variants each have one spelling.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $spelling:literal)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum $name { $($variant),* }

        impl $name {
            /// All of them, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// As written in PTX.
            pub const fn spelling(self) -> &'static str {
                match self { $($name::$variant => $spelling),* }
            }

            /// The one that is spelled so.
            pub const fn from_spelling(word: &[u8]) -> Option<$name> {
                let mut i = 0;
                while i < Self::ALL.len() {
                    if same(Self::ALL[i].spelling().as_bytes(), word) {
                        return Some(Self::ALL[i]);
                    }
                    i += 1;
                }
                None
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.spelling())
            }
        }
    };
}

/// Equality of byte strings at compile time.
pub(super) const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

words! {
    /// A fundamental type, of a register or of an instruction.
    Type {
        Pred "pred"
        B8 "b8" B16 "b16" B32 "b32" B64 "b64" B128 "b128"
        U8 "u8" U16 "u16" U32 "u32" U64 "u64"
        S8 "s8" S16 "s16" S32 "s32" S64 "s64"
        F16 "f16" F16x2 "f16x2" Bf16 "bf16" Bf16x2 "bf16x2" F32 "f32" F64 "f64"
    }
}

/// What a type's bits are taken for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Class {
    Predicate,
    Bits,
    Integer,
    Float,
}

impl Type {
    /// Bits of a value.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::B8 | Type::U8 | Type::S8 => 8,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 => 16,
            Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::Bf16x2 | Type::F32 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 64,
            Type::B128 => 128,
        }
    }

    /// What the bits are taken for.
    pub const fn class(self) -> Class {
        match self {
            Type::Pred => Class::Predicate,
            Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128 => Class::Bits,
            Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S8 | Type::S16 | Type::S32 | Type::S64 => {
                Class::Integer
            }
            Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64 => Class::Float,
        }
    }

    /// The integer type of the same signedness and twice the width, as results of `mul.wide` have it.
    pub const fn doubled(self) -> Option<Type> {
        match self {
            Type::U16 => Some(Type::U32),
            Type::U32 => Some(Type::U64),
            Type::S16 => Some(Type::S32),
            Type::S32 => Some(Type::S64),
            _ => None,
        }
    }

    /// The modifier that names it.
    pub const fn modifier(self) -> Modifier {
        Modifier::ALL[self as usize]
    }

    /// The prefix of the names of its registers.
    pub const fn prefix(self) -> &'static str {
        match self {
            Type::Pred => "%p",
            Type::B8 => "%cb",
            Type::U8 => "%cu",
            Type::S8 => "%cs",
            Type::B16 => "%hb",
            Type::U16 => "%hu",
            Type::S16 => "%hs",
            Type::F16 => "%h",
            Type::Bf16 => "%g",
            Type::B32 => "%b",
            Type::F16x2 => "%hh",
            Type::Bf16x2 => "%gg",
            Type::U32 => "%r",
            Type::S32 => "%s",
            Type::F32 => "%f",
            Type::B64 => "%bd",
            Type::U64 => "%rd",
            Type::S64 => "%sd",
            Type::F64 => "%fd",
            Type::B128 => "%bq",
        }
    }
}

words! {
    /// A state space in which a variable can be declared.
    Space { Const "const" Global "global" Local "local" Param "param" Shared "shared" }
}

words! {
    /// What follows the opcode after a dot. The types come first, in the order of [`Type`].
    Modifier {
        Pred "pred"
        B8 "b8" B16 "b16" B32 "b32" B64 "b64" B128 "b128"
        U8 "u8" U16 "u16" U32 "u32" U64 "u64"
        S8 "s8" S16 "s16" S32 "s32" S64 "s64"
        F16 "f16" F16x2 "f16x2" Bf16 "bf16" Bf16x2 "bf16x2" F32 "f32" F64 "f64"
        // State spaces.
        Const "const" Global "global" Local "local" Param "param" Shared "shared"
        // Rounding: to a float, to an integral value.
        Rn "rn" Rz "rz" Rm "rm" Rp "rp" Rni "rni" Rzi "rzi" Rmi "rmi" Rpi "rpi"
        // Ways of arithmetic.
        Ftz "ftz" Sat "sat" Approx "approx" Full "full" Lo "lo" Hi "hi" Wide "wide" Cc "cc" PropagateNan "NaN"
        // Comparisons; `lo` and `hi` are above.
        Eq "eq" Ne "ne" Lt "lt" Le "le" Gt "gt" Ge "ge" Ls "ls" Hs "hs"
        Equ "equ" Neu "neu" Ltu "ltu" Leu "leu" Gtu "gtu" Geu "geu" Num "num" Nan "nan"
        // Operators inside other instructions.
        And "and" Or "or" Xor "xor" Exch "exch" Cas "cas" Add "add" Inc "inc" Dec "dec" Min "min" Max "max" Popc "popc"
        // Memory.
        V2 "v2" V4 "v4" Nc "nc" Volatile "volatile" Ca "ca" Cg "cg" Cs "cs" Lu "lu" Cv "cv" Wb "wb" Wt "wt"
        Weak "weak" Relaxed "relaxed" Acquire "acquire" Release "release" AcqRel "acq_rel" Sc "sc"
        Cta "cta" Gpu "gpu" Sys "sys" Gl "gl" To "to" L1 "L1" L2 "L2"
        Async "async" CommitGroup "commit_group" WaitGroup "wait_group" WaitAll "wait_all"
        // Cooperation.
        Sync "sync" Warp "warp" Arrive "arrive" Red "red" Aligned "aligned"
        Up "up" Down "down" Bfly "bfly" Idx "idx" All "all" Any "any" Uni "uni" Ballot "ballot"
        // Bits.
        L "l" R "r" Clamp "clamp" Wrap "wrap" Shiftamt "shiftamt"
        F4e "f4e" B4e "b4e" Rc8 "rc8" Ecl "ecl" Ecr "ecr" Rc16 "rc16"
        Finite "finite" Infinite "infinite" Number "number" NotANumber "notanumber" Normal "normal" Subnormal "subnormal"
    }
}

const _: () = {
    let mut i = 0;
    while i < Type::ALL.len() {
        let spelling = Modifier::ALL[i].spelling().as_bytes();
        assert!(same(Type::ALL[i].spelling().as_bytes(), spelling), "the types are the first modifiers");
        i += 1;
    }
};

impl Modifier {
    /// The type that it names.
    pub const fn ty(self) -> Option<Type> {
        if (self as usize) < Type::ALL.len() { Some(Type::ALL[self as usize]) } else { None }
    }

    /// The state space that it names.
    pub const fn space(self) -> Option<Space> {
        match self {
            Modifier::Const => Some(Space::Const),
            Modifier::Global => Some(Space::Global),
            Modifier::Local => Some(Space::Local),
            Modifier::Param => Some(Space::Param),
            Modifier::Shared => Some(Space::Shared),
            _ => None,
        }
    }

    /// The length of the vector that it names.
    pub const fn vector(self) -> Option<usize> {
        match self {
            Modifier::V2 => Some(2),
            Modifier::V4 => Some(4),
            _ => None,
        }
    }
}

words! {
    /// An instruction's first word.
    Opcode {
        Abs "abs" Activemask "activemask" Add "add" Addc "addc" And "and" Atom "atom" Bar "bar" Barrier "barrier"
        Bfe "bfe" Bfi "bfi" Bfind "bfind" Bmsk "bmsk" Bra "bra" Brev "brev" Brx "brx" Call "call" Clz "clz" Cnot "cnot" Copysign "copysign"
        Cos "cos" Cp "cp" Cvt "cvt" Cvta "cvta" Div "div" Dp2a "dp2a" Dp4a "dp4a" Ex2 "ex2" Exit "exit"
        Fence "fence" Fma "fma" Fns "fns" Ld "ld" Lg2 "lg2" Lop3 "lop3" Mad "mad" Mad24 "mad24" Madc "madc"
        Match "match" Max "max" Membar "membar" Min "min" Mov "mov" Mul "mul" Mul24 "mul24" Nanosleep "nanosleep"
        Neg "neg" Not "not" Or "or" Popc "popc" Prefetch "prefetch" Prmt "prmt" Rcp "rcp" Red "red" Redux "redux"
        Rem "rem" Ret "ret" Rsqrt "rsqrt" Sad "sad" Selp "selp" Set "set" Setp "setp" Shf "shf" Shfl "shfl" Shl "shl"
        Shr "shr" Sin "sin" Slct "slct" Sqrt "sqrt" St "st" Sub "sub" Subc "subc" Tanh "tanh" Testp "testp"
        Trap "trap" Vote "vote" Xor "xor"
    }
}

words! {
    /// A register that the hardware sets.
    SpecialRegister {
        TidX "%tid.x" TidY "%tid.y" TidZ "%tid.z"
        NtidX "%ntid.x" NtidY "%ntid.y" NtidZ "%ntid.z"
        CtaidX "%ctaid.x" CtaidY "%ctaid.y" CtaidZ "%ctaid.z"
        NctaidX "%nctaid.x" NctaidY "%nctaid.y" NctaidZ "%nctaid.z"
        LaneId "%laneid" WarpId "%warpid" NwarpId "%nwarpid" SmId "%smid" NsmId "%nsmid"
        LanemaskEq "%lanemask_eq" LanemaskLe "%lanemask_le" LanemaskLt "%lanemask_lt" LanemaskGe "%lanemask_ge"
        LanemaskGt "%lanemask_gt" Clock "%clock" Clock64 "%clock64" GlobalTimer "%globaltimer"
    }
}

impl SpecialRegister {
    /// Its type.
    pub const fn ty(self) -> Type {
        match self {
            SpecialRegister::Clock64 | SpecialRegister::GlobalTimer => Type::U64,
            _ => Type::U32,
        }
    }
}

/// A version of the PTX language, as `.version` names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Version {
    /// The 6 of 6.0.
    pub major: u8,
    /// The 0 of 6.0.
    pub minor: u8,
}

impl Version {
    /// Version `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Version {
        Version { major, minor }
    }

    /// The first version that knows `target`.
    pub const fn of(target: Target) -> Version {
        match target.sm() {
            0..70 => Version::new(5, 0),
            70..75 => Version::new(6, 0),
            75..80 => Version::new(6, 3),
            80..86 => Version::new(7, 0),
            86..89 => Version::new(7, 1),
            _ => Version::new(7, 8),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
