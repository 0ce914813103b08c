//! What each instruction means, in a sentence or two: enough to know which one to look up.

use super::words::Opcode;

impl Opcode {
    /// What it does, by the names that its forms give the operands.
    pub const fn meaning(self) -> &'static str {
        use Opcode::*;
        match self {
            Abs => "d = |a|; of the least signed integer, itself",
            Activemask => {
                "d = a bit for each lane that executes this with the reader, as it happens: no promise of convergence"
            }
            Add => {
                "d = a + b. Integers wrap, with `.sat` stop at the ends; `.cc` sets the carry. Floats round to \
                 nearest unless told otherwise, and without a rounding may be contracted with a product; `.sat` \
                 clamps to [0, 1]"
            }
            Addc => "d = a + b + the carry; `.cc` sets the carry anew",
            Alloca => "d = the address, in local memory, of a new a bytes on the stack",
            And => "d = a & b",
            Atom => {
                "d = what was at a; in one step, what is there becomes the operator of it and b: `.inc` counts up to \
                 b and begins again at 0, `.dec` down to 0 and again at b, `.cas` stores c if there was b. `add.f32` \
                 flushes subnormals in global memory and not in shared"
            }
            Bar => {
                "the threads of a block wait for one another: `.sync` for all or for the given number, `.arrive` \
                 without waiting, `.red` with a vote or count of c. `bar.warp.sync` is for the lanes of mask a"
            }
            Barrier => "as `bar`, for threads that need not be converged; with `.aligned` for those that are",
            Bfe => "d = the c bits of a from bit b on, extended by the last of them if the type is signed",
            Bfi => "d = b with the e bits from bit c on taken from the lowest of a",
            Bfind => {
                "d = the number of the highest bit that is not the sign's, or 0xFFFFFFFF if there is none; \
                 `.shiftamt` how far to shift it to the top"
            }
            Bmsk => "d = b ones from bit a on",
            Bra => "go to the label; `.uni` if all active lanes do",
            Brev => "d = the bits of a in reverse order",
            Brkpt => "stop for a debugger",
            Brx => "go to the label of number a in the list",
            Call => "call a function; `.uni` if all active lanes call the same",
            Clz => "d = the number of zeros above the highest one of a",
            Cnot => "d = 1 if a is 0, else 0",
            Copysign => "d = b with the sign of a",
            Cos => "d = the cosine of a, approximately",
            Cp => {
                "start to copy from global to shared memory, the reader going on; groups of copies are closed and \
                 waited for"
            }
            Cvt => {
                "d = a in another type. Integers are cut off or extended, with `.sat` stop at the ends. Floats to \
                 integers always stop at the ends, and NaN gives 0, or the least or greatest value where either side \
                 has 64 bits; they and narrower floats need a rounding, wider ones must have none"
            }
            Cvta => "d = the generic address of a, which is one in the space; with `.to`, the other way",
            Div => {
                "d = a / b, towards zero for integers; division by 0 gives anything. `.approx` within 2 ulp unless b \
                 is huge, `.full` within 2 ulp, with a rounding exact"
            }
            Dp2a => "d = c + the products of the two halves of a with two bytes of b, the low or the high ones",
            Dp4a => "d = c + the products of the four bytes of a with those of b",
            Ex2 => "d = 2 to the power of a, approximately",
            Exit => "the thread ends",
            Fence => "accesses before it are seen before those after it",
            Fma => "d = a * b + c, rounded once",
            Fns => {
                "d = the number of the c-th one of a, counted from bit b on upwards, or downwards if c is negative; \
                 0xFFFFFFFF if there is none"
            }
            Isspacep => "p = whether the generic address a is in the space",
            Istypep => "p = whether a is the handle of such an object",
            Ld => {
                "d = what is at a. A register that is wider is filled by the type's sign. `.nc` reads what nobody \
                 writes while the kernel runs"
            }
            Ldu => "d = what is at a, read-only and the same address for all lanes",
            Lg2 => "d = the logarithm of a to base 2, approximately",
            Lop3 => "d = for each bit, that bit of the constant that the bits of a, b and c number",
            Mad => "d = a * b + c: of integers the low or high half, or with `.wide` the whole; of floats as `fma`",
            Mad24 => "d = the low or high 32 bits of the 48 of a * b, of which the low 24 bits count, + c",
            Madc => "d = a half of a * b, + c + the carry; `.cc` sets the carry anew",
            Match => "d = the lanes whose a is the same as the reader's (`.any`), or all lanes or none (`.all`)",
            Max => "d = the greater; -0 is less than +0; a NaN gives way, unless `.NaN` says that it stays",
            Membar => {
                "accesses before it are seen before those after it, by the block, the device, or the whole system"
            }
            Min => "d = the less; -0 is less than +0; a NaN gives way, unless `.NaN` says that it stays",
            Mov => {
                "d = a: a register, a constant, an address, a special register; or the parts of a vector as one, or \
                 one as parts"
            }
            Mul => "d = a * b: of integers the low or high half, or with `.wide` the whole; of floats as `add`",
            Mul24 => "d = the low or high 32 bits of the 48 of a * b, of which the low 24 bits count",
            Nanosleep => "wait for about a nanoseconds",
            Neg => "d = -a",
            Not => "d = the opposite of each bit",
            Or => "d = a | b",
            Pmevent => "count an event for a profiler",
            Popc => "d = the number of ones in a",
            Prefetch | Prefetchu => "have what is at a in a cache",
            Prmt => {
                "d = four bytes of a and b, each chosen by four bits of c, the highest of which spreads the byte's \
                 sign instead; the modes choose by two bits of c"
            }
            Rcp => "d = 1 / a",
            Red => "as `atom`, without the old value",
            Redux => "d = the operator over a of all lanes of mask b",
            Rem => "d = what is left of a / b, with a's sign; of division by 0 anything",
            Ret => "return from a function; a kernel's thread ends",
            Rsqrt => "d = 1 / the square root of a, approximately",
            Sad => "d = c + |a - b|",
            Selp => "d = a if c, else b",
            Set => "d = all ones, or 1.0, if a and b compare so, else zero; combined with c by `.op`",
            Setp => {
                "p = whether a and b compare so, and what follows the bar the opposite; each combined with c by \
                 `.op`. Of NaN, `eq` to `ge` and also `ne` are false, `equ` to `geu` are true"
            }
            Shf => {
                "d = 32 bits of the 64 of b and a, b above, shifted left (the upper ones) or right (the lower ones) \
                 by c: at most 32 (`.clamp`), or by c modulo 32 (`.wrap`)"
            }
            Shfl => {
                "d = a of another lane, b up or down, b crosswise, or number b, within a segment that c sets out; p = \
                 whether there was one"
            }
            Shl => "d = a shifted left by b; 0 if b is the width or more",
            Shr => {
                "d = a shifted right by b, filled by the sign if the type is signed; b of the width or more shifts \
                 all out"
            }
            Sin => "d = the sine of a, approximately",
            Slct => "d = a if c >= 0, else b; of a NaN, b",
            Sqrt => "d = the square root of a",
            St => "what is at a becomes b",
            Stackrestore => "the stack ends at a again, which `stacksave` gave",
            Stacksave => "d = where the stack ends",
            Sub => "d = a - b, as `add`; `.cc` sets the carry of a + !b + 1, which is 1 where nothing is borrowed",
            Subc => "d = a + !b + the carry, so a - b - (1 - the carry); `.cc` sets the carry anew",
            Suld => {
                "d = the elements of a surface from the place on, whose first coordinate counts bytes; beyond its ends \
                 stop, take the last, or zero"
            }
            Suq => "d = what is asked of a surface",
            Sured => "as `red`, in a surface; `.p` counts elements and not bytes",
            Sust => {
                "the elements of a surface from the place on become b, as `suld` has it; `.p` converts them to its format"
            }
            Szext => "d = the low b bits of a, extended by sign or zeros",
            Tanh => "d = the hyperbolic tangent of a, approximately",
            Testp => "p = whether a is of that kind",
            Tex => {
                "d = the texture at the place, filtered as it says: of its `.base`, of a `.level`, or of the one that the \
                 slopes (`.grad`) call for; e steps aside, compared with f. p = whether it is all in memory"
            }
            Tld4 => "d = one channel of the four elements around the place, as `tex` would filter them",
            Trap => "stop the kernel with an error",
            Txq => "d = what is asked of a texture or a sampler",
            Vabsdiff => {
                "d = |a - b| of parts of 32-bit registers, then min, max or sum with c, or put into a part of c"
            }
            Vadd => "d = a + b of parts of 32-bit registers, then min, max or sum with c, or put into a part of c",
            Vmad => "d = (a * b + c) of parts of 32-bit registers, shifted right by 0, 7 or 15; `.po` adds one more",
            Vmax => {
                "d = the greater of parts of 32-bit registers, then min, max or sum with c, or put into a part of c"
            }
            Vmin => "d = the less of parts of 32-bit registers, then min, max or sum with c, or put into a part of c",
            Vset => {
                "d = whether parts of 32-bit registers compare so, then min, max or sum with c, or put into a part of \
                 c"
            }
            Vshl => "d = a << b of parts of 32-bit registers, then min, max or sum with c, or put into a part of c",
            Vshr => "d = a >> b of parts of 32-bit registers, then min, max or sum with c, or put into a part of c",
            Vsub => "d = a - b of parts of 32-bit registers, then min, max or sum with c, or put into a part of c",
            Vabsdiff2 | Vabsdiff4 => "|a - b| in each half or byte, put into c where the mask says, or summed with it",
            Vadd2 | Vadd4 => "a + b in each half or byte, put into c where the mask says, or summed with it",
            Vavrg2 | Vavrg4 => {
                "(a + b + 1) / 2 in each half or byte, put into c where the mask says, or summed with it"
            }
            Vmax2 | Vmax4 => "the greater in each half or byte, put into c where the mask says, or summed with it",
            Vmin2 | Vmin4 => "the less in each half or byte, put into c where the mask says, or summed with it",
            Vset2 | Vset4 => "whether each half or byte compares so, put into c where the mask says, or summed with it",
            Vsub2 | Vsub4 => "a - b in each half or byte, put into c where the mask says, or summed with it",
            Vote => {
                "p = whether a holds for all lanes, any lane, or all alike; d = a bit for each lane for which it \
                 does. Of the lanes of mask b (`.sync`), or of those active"
            }
            Xor => "d = a ^ b",
        }
    }
}
