//! The vocabulary: types, state spaces, opcodes, modifiers, special registers, each with its
//! spelling.

use crate::target::Target;
use std::fmt;

/// Declares an enumeration in which each variant has one spelling.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $spelling:literal)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum $name { $($variant),* }

        impl $name {
            /// All variants, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// Returns the spelling in PTX.
            pub const fn spelling(self) -> &'static str {
                match self { $($name::$variant => $spelling),* }
            }

            /// Returns the variant with this spelling.
            pub const fn from_spelling(word: &[u8]) -> Option<$name> {
                const SPELLINGS: &[&str] = &[$($spelling),*];
                const SORTED: &[(u64, u8)] = &$crate::ptx::words::sorted::<{ SPELLINGS.len() }>(SPELLINGS);
                let key = $crate::ptx::words::key(word);
                let (mut i, mut end) = (0, SORTED.len());
                while i < end {
                    let middle = (i + end) / 2;
                    if SORTED[middle].0 < key {
                        i = middle + 1;
                    } else {
                        end = middle;
                    }
                }
                while i < SORTED.len() && SORTED[i].0 == key {
                    let place = SORTED[i].1 as usize;
                    if bytes_equal(SPELLINGS[place].as_bytes(), word) {
                        return Some(Self::ALL[place]);
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

/// Returns the first eight bytes of a word as a number.
pub(super) const fn key(word: &[u8]) -> u64 {
    let (mut key, mut i) = (0, 0);
    while i < 8 && i < word.len() {
        key |= (word[i] as u64) << (8 * i);
        i += 1;
    }
    key
}

/// Returns the keys of the words with their indices, sorted by key. The forms of the table are
/// parsed at compile time, where a linear search through all words would take half a minute.
pub(super) const fn sorted<const N: usize>(words: &[&str]) -> [(u64, u8); N] {
    assert!(N <= 256, "a place has 8 bits");
    let mut sorted = [(0, 0); N];
    let mut count = 0;
    while count < N {
        let key = key(words[count].as_bytes());
        let mut i = count;
        while i > 0 && sorted[i - 1].0 > key {
            sorted[i] = sorted[i - 1];
            i -= 1;
        }
        sorted[i] = (key, count as u8);
        count += 1;
    }
    sorted
}

/// Returns whether two byte strings are equal, at compile time.
pub(super) const fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
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
    /// A fundamental type of a register or instruction, or the type of a texture, sampler or
    /// surface, which only variables and kernel parameters can have.
    Type {
        Pred "pred"
        B8 "b8" B16 "b16" B32 "b32" B64 "b64" B128 "b128"
        U8 "u8" U16 "u16" U32 "u32" U64 "u64"
        S8 "s8" S16 "s16" S32 "s32" S64 "s64"
        F16 "f16" F16x2 "f16x2" Bf16 "bf16" Bf16x2 "bf16x2" F32 "f32" F64 "f64"
        Texref "texref" Samplerref "samplerref" Surfref "surfref"
    }
}

/// The interpretation of a type's bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum TypeClass {
    Predicate,
    Bits,
    Integer,
    Float,
    /// A texture, a sampler or a surface.
    Opaque,
}

impl Type {
    /// Returns the width in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::B8 | Type::U8 | Type::S8 => 8,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 => 16,
            Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::Bf16x2 | Type::F32 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 64,
            // An object has the width of its handle.
            Type::Texref | Type::Samplerref | Type::Surfref => 64,
            Type::B128 => 128,
        }
    }

    /// Returns the interpretation of the bits.
    pub const fn class(self) -> TypeClass {
        match self {
            Type::Pred => TypeClass::Predicate,
            Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128 => TypeClass::Bits,
            Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S8 | Type::S16 | Type::S32 | Type::S64 => {
                TypeClass::Integer
            }
            Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64 => TypeClass::Float,
            Type::Texref | Type::Samplerref | Type::Surfref => TypeClass::Opaque,
        }
    }

    /// Returns the integer type with the same signedness and twice the width, the result type of
    /// `mul.wide`.
    pub const fn doubled(self) -> Option<Type> {
        match self {
            Type::U16 => Some(Type::U32),
            Type::U32 => Some(Type::U64),
            Type::S16 => Some(Type::S32),
            Type::S32 => Some(Type::S64),
            _ => None,
        }
    }

    /// Returns the modifier that names the type.
    pub const fn modifier(self) -> Modifier {
        Modifier::ALL[self as usize]
    }

    /// Returns the prefix of names of registers of this type.
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
            // PTX has no registers of these types.
            Type::Texref | Type::Samplerref | Type::Surfref => "%object",
        }
    }
}

words! {
    /// A state space in which a variable can be declared.
    Space { Const "const" Global "global" Local "local" Param "param" Shared "shared" }
}

words! {
    /// A word after the opcode, with a leading dot. The types come first, in the order of [`Type`].
    Modifier {
        Pred "pred"
        B8 "b8" B16 "b16" B32 "b32" B64 "b64" B128 "b128"
        U8 "u8" U16 "u16" U32 "u32" U64 "u64"
        S8 "s8" S16 "s16" S32 "s32" S64 "s64"
        F16 "f16" F16x2 "f16x2" Bf16 "bf16" Bf16x2 "bf16x2" F32 "f32" F64 "f64"
        Texref "texref" Samplerref "samplerref" Surfref "surfref"
        // State spaces.
        Const "const" Global "global" Local "local" Param "param" Shared "shared"
        // Rounding: to a float, to an integral value.
        Rn "rn" Rz "rz" Rm "rm" Rp "rp" Rni "rni" Rzi "rzi" Rmi "rmi" Rpi "rpi"
        // Arithmetic modes.
        Ftz "ftz" Sat "sat" Approx "approx" Full "full" Lo "lo" Hi "hi" Wide "wide" Cc "cc" PropagateNan "NaN"
        // Comparisons; `lo` and `hi` are above.
        Eq "eq" Ne "ne" Lt "lt" Le "le" Gt "gt" Ge "ge" Ls "ls" Hs "hs"
        Equ "equ" Neu "neu" Ltu "ltu" Leu "leu" Gtu "gtu" Geu "geu" Num "num" Nan "nan"
        // Operators inside other instructions.
        And "and" Or "or" Xor "xor" Exch "exch" Cas "cas" Add "add" Inc "inc" Dec "dec" Min "min" Max "max" Popc "popc"
        // Memory.
        V2 "v2" V4 "v4" Nc "nc" Volatile "volatile" Ca "ca" Cg "cg" Cs "cs" Lu "lu" Cv "cv" Wb "wb" Wt "wt"
        Weak "weak" Relaxed "relaxed" Acquire "acquire" Release "release" AcqRel "acq_rel" Sc "sc"
        NoFtz "noftz" Proxy "proxy" Alias "alias" Mask "mask" ParamEntry "param::entry" ParamFunc "param::func"
        SharedCta "shared::cta"
        Cta "cta" Gpu "gpu" Sys "sys" Gl "gl" To "to" L1 "L1" L2 "L2"
        Async "async" CommitGroup "commit_group" WaitGroup "wait_group" WaitAll "wait_all"
        // Cooperation.
        Sync "sync" Warp "warp" Arrive "arrive" Red "red" Aligned "aligned"
        Up "up" Down "down" Bfly "bfly" Idx "idx" All "all" Any "any" Uni "uni" Ballot "ballot"
        // Bits.
        L "l" R "r" Clamp "clamp" Wrap "wrap" Shiftamt "shiftamt"
        F4e "f4e" B4e "b4e" Rc8 "rc8" Ecl "ecl" Ecr "ecr" Rc16 "rc16"
        Shr7 "shr7" Shr15 "shr15" Po "po"
        Finite "finite" Infinite "infinite" Number "number" NotANumber "notanumber"
        Normal "normal" Subnormal "subnormal"
        // Textures and surfaces: shapes, read modes and queries.
        Line "1d" Plane "2d" Volume "3d" Lines "a1d" Planes "a2d" Cube "cube" Cubes "acube" Samples "2dms"
        SamplePlanes "a2dms"
        Base "base" Level "level" Grad "grad" G "g" B "b" A "a" P "p" OrTrap "trap" OrZero "zero"
        Width "width" Height "height" Depth "depth" ChannelDataType "channel_data_type" ChannelOrder "channel_order"
        NormalizedCoords "normalized_coords" ForceUnnormalizedCoords "force_unnormalized_coords"
        ArraySize "array_size" NumMipmapLevels "num_mipmap_levels" NumSamples "num_samples"
        FilterMode "filter_mode" AddrMode0 "addr_mode_0" AddrMode1 "addr_mode_1" AddrMode2 "addr_mode_2"
        MemoryLayout "memory_layout"
    }
}

const _: () = {
    let mut i = 0;
    while i < Type::ALL.len() {
        let spelling = Modifier::ALL[i].spelling().as_bytes();
        assert!(bytes_equal(Type::ALL[i].spelling().as_bytes(), spelling), "the types are the first modifiers");
        i += 1;
    }
};

impl Modifier {
    /// Returns the type that the modifier names.
    pub const fn ty(self) -> Option<Type> {
        if (self as usize) < Type::ALL.len() { Some(Type::ALL[self as usize]) } else { None }
    }

    /// Returns the older synonym of the word, which forms use.
    pub const fn canonical(self) -> Modifier {
        match self {
            Modifier::ParamEntry | Modifier::ParamFunc => Modifier::Param,
            Modifier::SharedCta => Modifier::Shared,
            other => other,
        }
    }

    /// Returns whether the modifier must directly follow the opcode.
    pub const fn belongs_to_opcode(self) -> bool {
        matches!(
            self,
            Modifier::Lo
                | Modifier::Hi
                | Modifier::Wide
                | Modifier::L
                | Modifier::R
                | Modifier::To
                | Modifier::B
                | Modifier::P
                | Modifier::Base
                | Modifier::Level
                | Modifier::Grad
        )
    }

    /// Returns the first `.version` with this word, if it is later than the form.
    pub const fn introduced_in(self) -> Option<Version> {
        match self {
            Modifier::ParamEntry | Modifier::ParamFunc => Some(Version::new(8, 3)),
            Modifier::SharedCta => Some(Version::new(7, 8)),
            _ => None,
        }
    }

    /// Returns the state space that the modifier names.
    pub const fn space(self) -> Option<Space> {
        match self {
            Modifier::Const => Some(Space::Const),
            Modifier::Global => Some(Space::Global),
            Modifier::Local => Some(Space::Local),
            Modifier::Param | Modifier::ParamEntry | Modifier::ParamFunc => Some(Space::Param),
            Modifier::Shared | Modifier::SharedCta => Some(Space::Shared),
            _ => None,
        }
    }

    /// Returns the shape of a texture or surface that the modifier names.
    pub const fn shape(self) -> Option<TextureShape> {
        let (coordinates, indexed, axes) = match self {
            Modifier::Line => (1, false, 1),
            Modifier::Plane => (2, false, 2),
            Modifier::Volume | Modifier::Cube => (4, false, 4),
            Modifier::Lines => (2, true, 1),
            Modifier::Planes => (4, true, 2),
            Modifier::Cubes => (4, true, 4),
            // The sample index comes first, preceded by the array index.
            Modifier::Samples => (4, false, 2),
            Modifier::SamplePlanes => (4, true, 2),
            _ => return None,
        };
        Some(TextureShape { coordinates, indexed, axes })
    }

    /// Returns the vector length that the modifier names.
    pub const fn vector(self) -> Option<usize> {
        match self {
            Modifier::V2 => Some(2),
            Modifier::V4 => Some(4),
            _ => None,
        }
    }
}

/// The shape of a texture or surface: the lengths of the vectors for a location. Vectors of three
/// coordinates have four elements, the last unused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextureShape {
    /// The number of coordinates.
    pub coordinates: usize,
    /// Whether the first coordinate is an unsigned array index.
    pub indexed: bool,
    /// The number of elements of an offset or derivative.
    pub axes: usize,
}

words! {
    /// A property in the declaration of a texture or sampler.
    Property {
        Width "width" Height "height" Depth "depth"
        NormalizedCoords "normalized_coords" ForceUnnormalizedCoords "force_unnormalized_coords"
        FilterMode "filter_mode" AddrMode0 "addr_mode_0" AddrMode1 "addr_mode_1" AddrMode2 "addr_mode_2"
        ChannelDataType "channel_data_type" ChannelOrder "channel_order"
    }
}

words! {
    /// A filter or addressing mode of a texture.
    Sampling {
        Nearest "nearest" Linear "linear"
        Wrap "wrap" Mirror "mirror" ClampOgl "clamp_ogl" ClampToEdge "clamp_to_edge" ClampToBorder "clamp_to_border"
    }
}

words! {
    /// An option of `.target`.
    TargetOption {
        Debug "debug" MapF64ToF32 "map_f64_to_f32" TexmodeUnified "texmode_unified" TexmodeIndependent "texmode_independent"
    }
}

words! {
    /// The opcode of an instruction.
    Opcode {
        Abs "abs" Activemask "activemask" Add "add" Addc "addc" Alloca "alloca" And "and" Atom "atom" Bar "bar"
        Barrier "barrier" Bfe "bfe" Bfi "bfi" Bfind "bfind" Bmsk "bmsk" Bra "bra" Brev "brev" Brkpt "brkpt" Brx "brx"
        Call "call" Clz "clz" Cnot "cnot" Copysign "copysign" Cos "cos" Cp "cp" Cvt "cvt" Cvta "cvta" Div "div"
        Dp2a "dp2a" Dp4a "dp4a" Ex2 "ex2" Exit "exit" Fence "fence" Fma "fma" Fns "fns" Isspacep "isspacep" Istypep "istypep" Ld "ld"
        Ldu "ldu" Lg2 "lg2" Lop3 "lop3" Mad "mad" Mad24 "mad24" Madc "madc" Match "match" Max "max" Membar "membar"
        Min "min" Mov "mov" Mul "mul" Mul24 "mul24" Nanosleep "nanosleep" Neg "neg" Not "not" Or "or"
        Pmevent "pmevent" Popc "popc" Prefetch "prefetch" Prefetchu "prefetchu" Prmt "prmt" Rcp "rcp" Red "red"
        Redux "redux" Rem "rem" Ret "ret" Rsqrt "rsqrt" Sad "sad" Selp "selp" Set "set" Setp "setp" Shf "shf"
        Shfl "shfl" Shl "shl" Shr "shr" Sin "sin" Slct "slct" Sqrt "sqrt" St "st" Stackrestore "stackrestore"
        Stacksave "stacksave" Sub "sub" Subc "subc" Suld "suld" Suq "suq" Sured "sured" Sust "sust" Szext "szext"
        Tanh "tanh" Testp "testp" Tex "tex" Tld4 "tld4" Trap "trap" Txq "txq"
        Vabsdiff "vabsdiff" Vabsdiff2 "vabsdiff2" Vabsdiff4 "vabsdiff4" Vadd "vadd" Vadd2 "vadd2" Vadd4 "vadd4"
        Vavrg2 "vavrg2" Vavrg4 "vavrg4" Vmad "vmad" Vmax "vmax" Vmax2 "vmax2" Vmax4 "vmax4" Vmin "vmin" Vmin2 "vmin2"
        Vmin4 "vmin4" Vote "vote" Vset "vset" Vset2 "vset2" Vset4 "vset4" Vshl "vshl" Vshr "vshr" Vsub "vsub"
        Vsub2 "vsub2" Vsub4 "vsub4" Xor "xor"
    }
}

words! {
    /// A special register, which the hardware sets.
    SpecialRegister {
        TidX "%tid.x" TidY "%tid.y" TidZ "%tid.z"
        NtidX "%ntid.x" NtidY "%ntid.y" NtidZ "%ntid.z"
        CtaidX "%ctaid.x" CtaidY "%ctaid.y" CtaidZ "%ctaid.z"
        NctaidX "%nctaid.x" NctaidY "%nctaid.y" NctaidZ "%nctaid.z"
        LaneId "%laneid" WarpId "%warpid" NwarpId "%nwarpid" SmId "%smid" NsmId "%nsmid"
        LanemaskEq "%lanemask_eq" LanemaskLe "%lanemask_le" LanemaskLt "%lanemask_lt" LanemaskGe "%lanemask_ge"
        LanemaskGt "%lanemask_gt" Clock "%clock" ClockHi "%clock_hi" Clock64 "%clock64"
        GlobalTimer "%globaltimer" GlobalTimerLo "%globaltimer_lo" GlobalTimerHi "%globaltimer_hi" GridId "%gridid"
        DynamicSmemSize "%dynamic_smem_size" TotalSmemSize "%total_smem_size"
        ReservedSmemBegin "%reserved_smem_offset_begin" ReservedSmemEnd "%reserved_smem_offset_end"
        ReservedSmemCap "%reserved_smem_offset_cap" ReservedSmem0 "%reserved_smem_offset_0"
        ReservedSmem1 "%reserved_smem_offset_1" CurrentGraphExec "%current_graph_exec"
        Pm0 "%pm0" Pm0Wide "%pm0_64" Pm1 "%pm1" Pm1Wide "%pm1_64" Pm2 "%pm2" Pm2Wide "%pm2_64"
        Pm3 "%pm3" Pm3Wide "%pm3_64"
        Pm4 "%pm4" Pm4Wide "%pm4_64" Pm5 "%pm5" Pm5Wide "%pm5_64" Pm6 "%pm6" Pm6Wide "%pm6_64"
        Pm7 "%pm7" Pm7Wide "%pm7_64"
        Envreg0 "%envreg0" Envreg1 "%envreg1" Envreg2 "%envreg2" Envreg3 "%envreg3" Envreg4 "%envreg4"
        Envreg5 "%envreg5" Envreg6 "%envreg6" Envreg7 "%envreg7" Envreg8 "%envreg8" Envreg9 "%envreg9"
        Envreg10 "%envreg10" Envreg11 "%envreg11" Envreg12 "%envreg12" Envreg13 "%envreg13" Envreg14 "%envreg14"
        Envreg15 "%envreg15" Envreg16 "%envreg16" Envreg17 "%envreg17" Envreg18 "%envreg18" Envreg19 "%envreg19"
        Envreg20 "%envreg20" Envreg21 "%envreg21" Envreg22 "%envreg22" Envreg23 "%envreg23" Envreg24 "%envreg24"
        Envreg25 "%envreg25" Envreg26 "%envreg26" Envreg27 "%envreg27" Envreg28 "%envreg28" Envreg29 "%envreg29"
        Envreg30 "%envreg30" Envreg31 "%envreg31"
    }
}

impl SpecialRegister {
    /// Returns the type of the register.
    pub const fn ty(self) -> Type {
        use SpecialRegister::*;
        match self {
            Clock64 | GlobalTimer | GridId | CurrentGraphExec => Type::U64,
            Pm0Wide | Pm1Wide | Pm2Wide | Pm3Wide | Pm4Wide | Pm5Wide | Pm6Wide | Pm7Wide => Type::U64,
            _ => Type::U32,
        }
    }

    /// Returns the first target and `.version` with this register.
    pub const fn introduced_in(self) -> (u16, Version) {
        use SpecialRegister::*;
        match self {
            GlobalTimer | GlobalTimerLo | GlobalTimerHi => (30, Version::new(3, 1)),
            ClockHi => (20, Version::new(5, 0)),
            DynamicSmemSize | TotalSmemSize => (20, Version::new(4, 1)),
            Pm0Wide | Pm1Wide | Pm2Wide | Pm3Wide | Pm4Wide | Pm5Wide | Pm6Wide | Pm7Wide => (50, Version::new(4, 0)),
            ReservedSmemBegin | ReservedSmemEnd | ReservedSmemCap | ReservedSmem0 | ReservedSmem1 => {
                (80, Version::new(7, 6))
            }
            CurrentGraphExec => (50, Version::new(8, 0)),
            TidX | TidY | TidZ | NtidX | NtidY | NtidZ | CtaidX | CtaidY | CtaidZ | NctaidX | NctaidY | NctaidZ
            | GridId | Clock => (10, Version::new(1, 0)),
            LaneId | WarpId | SmId | Pm0 | Pm1 | Pm2 | Pm3 => (10, Version::new(1, 3)),
            NwarpId | NsmId | Clock64 | LanemaskEq | LanemaskLe | LanemaskLt | LanemaskGe | LanemaskGt => {
                (20, Version::new(2, 0))
            }
            _ => (20, Version::new(2, 1)),
        }
    }

    /// Returns whether `mov` reads the register as a value of `bits` bits: its width, or a width
    /// that it had in PTX 1.x.
    pub const fn moves_as(self, bits: u32) -> bool {
        use SpecialRegister::*;
        match self {
            TidX | TidY | TidZ | NtidX | NtidY | NtidZ | CtaidX | CtaidY | CtaidZ | NctaidX | NctaidY | NctaidZ => {
                matches!(bits, 16 | 32)
            }
            GridId => matches!(bits, 16 | 32 | 64),
            _ => bits == self.ty().bits(),
        }
    }
}

/// A version of the PTX language, as in `.version`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Version {
    /// The 6 of 6.0.
    pub major: u8,
    /// The 0 of 6.0.
    pub minor: u8,
}

impl Version {
    /// Returns version `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Version {
        Version { major, minor }
    }

    /// Returns the first version that supports `target`.
    pub const fn of(target: Target) -> Version {
        Version::of_sm(target.sm())
    }

    /// Returns the first version that supports the target `sm_{sm}`.
    pub const fn of_sm(sm: u16) -> Version {
        let (major, minor) = match sm {
            0..20 => (1, 0),
            20..30 => (2, 0),
            30..32 => (3, 0),
            35..37 => (3, 1),
            32..35 | 50..52 => (4, 0),
            37..50 | 52..53 => (4, 1),
            53..60 => (4, 2),
            60..70 => (5, 0),
            70..72 => (6, 0),
            72..75 => (6, 1),
            75..80 => (6, 3),
            80..86 => (7, 0),
            86..87 => (7, 1),
            87..89 => (7, 4),
            89..100 => (7, 8),
            100..103 => (8, 6),
            120..121 => (8, 7),
            _ => (8, 8),
        };
        Version::new(major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
