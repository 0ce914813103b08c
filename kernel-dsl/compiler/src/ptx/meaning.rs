//! A short description of each instruction.

use super::words::Opcode;

impl Opcode {
    /// Describes the instruction, with the operand names of its forms.
    pub const fn meaning(self) -> &'static str {
        use Opcode::*;
        match self {
            Abs => "d = |a|. The minimum signed integer is unchanged",
            Activemask => {
                "d = a mask of the lanes that execute this instruction together with the executing thread. Convergence is not guaranteed"
            }
            Add => {
                "d = a + b. Integers wrap, or saturate with `.sat`; `.cc` sets the carry. Floats round to nearest by default; without a rounding modifier the assembler may contract the sum with a product. On floats `.sat` clamps to [0, 1]"
            }
            Addc => "d = a + b + carry. `.cc` sets the carry",
            Alloca => "d = the local-memory address of a newly allocated bytes on the stack",
            And => "d = a & b",
            Atom => {
                "d = the old value at address a. Atomically replaces this value by the operator applied to it and b. `.inc` counts up to b, then restarts at 0; `.dec` counts down to 0, then restarts at b; `.cas` stores c if the old value equals b. `add.f32` flushes subnormals in global memory but not in shared memory"
            }
            Bar => {
                "Waits at barrier a. `.sync` waits for all threads of the block or for the given number; `.arrive` does not wait; `.red` also votes on c or counts it. `bar.warp.sync` synchronizes the lanes of mask a"
            }
            Barrier => "As `bar`, for threads that may have diverged. `.aligned` requires converged threads",
            Bfe => "d = the c bits of a starting at bit b, sign-extended if the type is signed",
            Bfi => "d = b with the e bits starting at bit c replaced by the lowest bits of a",
            Bfind => {
                "d = the position of the highest bit that differs from the sign, or 0xFFFFFFFF if there is none. `.shiftamt` gives the shift that moves this bit to the top"
            }
            Bmsk => "d = b one bits starting at bit a",
            Bra => "Branches to the label. `.uni` asserts that all active lanes branch together",
            Brev => "d = the bits of a in reverse order",
            Brkpt => "Stops for a debugger",
            Brx => "Branches to label number a of the list",
            Call => "Calls a function. `.uni` asserts that all active lanes make the same call",
            Clz => "d = the number of leading zeros of a",
            Cnot => "d = 1 if a is 0, else 0",
            Copysign => "d = b with the sign of a",
            Cos => "d = cos(a), approximately",
            Cp => {
                "Starts a copy from global to shared memory without blocking the executing thread. Other forms commit a group of copies and wait for groups"
            }
            Cvt => {
                "d = a converted to another type. Integers are truncated or extended; `.sat` saturates. Floats to integers always saturate; NaN becomes 0, or the minimum or maximum if either side has 64 bits. Conversions to integers and narrower floats need a rounding modifier; conversions to wider floats must not have one"
            }
            Cvta => "d = the generic address of a, an address in the state space. `.to` converts back",
            Div => {
                "d = a / b, truncated for integers; integer division by 0 is unspecified. `.approx` is within 2 ulp unless |b| is huge, `.full` within 2 ulp; with a rounding modifier the result is correctly rounded"
            }
            Dp2a => "d = c + the dot product of the two halves of a and two bytes of b, low or high",
            Dp4a => "d = c + the dot product of the four bytes of a and the four bytes of b",
            Ex2 => "d = 2^a, approximately",
            Exit => "Ends the thread",
            Fence => "Orders the memory accesses before the fence before those after it",
            Fma => "d = a * b + c, rounded once",
            Fns => {
                "d = the position of the c-th set bit of a, counted upwards from bit b, or downwards if c is negative; 0xFFFFFFFF if there is none"
            }
            Isspacep => "p = whether the generic address a is in the state space",
            Istypep => "p = whether a is a handle of the given object type",
            Ld => {
                "d = the value at address a, sign- or zero-extended in a wider register. `.nc` requires that the memory is not written while the kernel runs"
            }
            Ldu => "d = the value at address a, which must be read-only and the same for all lanes",
            Lg2 => "d = log2(a), approximately",
            Lop3 => {
                "d = a bitwise function of a, b and c. Each result bit is the bit of the constant selected by the bits of a, b and c"
            }
            Mad => {
                "d = a * b + c. For integers the low or high half, or with `.wide` the full result; for floats as `fma`"
            }
            Mad24 => "d = c + the low or high 32 bits of the 48-bit product of the low 24 bits of a and b",
            Madc => "d = the low or high half of a * b, + c + carry. `.cc` sets the carry",
            Match => {
                "d = a mask of the lanes whose a equals that of the executing lane (`.any`), or of all lanes if they all agree, else 0 (`.all`)"
            }
            Max => "d = max(a, b). -0 is less than +0. If one operand is NaN, d is the other; with `.NaN`, d is NaN",
            Membar => {
                "Orders the memory accesses before the barrier before those after it, for the block, the device or the system"
            }
            Min => "d = min(a, b). -0 is less than +0. If one operand is NaN, d is the other; with `.NaN`, d is NaN",
            Mov => "d = a. a is a register, constant, address or special register; also packs and unpacks vectors",
            Mul => "d = a * b. For integers the low or high half, or with `.wide` the full result; for floats as `add`",
            Mul24 => "d = the low or high 32 bits of the 48-bit product of the low 24 bits of a and b",
            Nanosleep => "Waits for about a nanoseconds",
            Neg => "d = -a",
            Not => "d = ~a",
            Or => "d = a | b",
            Pmevent => "Triggers a profiler event",
            Popc => "d = the number of set bits in a",
            Prefetch | Prefetchu => "Loads the cache line of address a into the given cache",
            Prmt => {
                "d = four bytes selected from a and b by four bits of c each; the highest of these bits replicates the sign of the byte. In the special modes two bits of c select"
            }
            Rcp => "d = 1 / a",
            Red => "As `atom`, without returning the old value",
            Redux => "d = the reduction of a over the lanes of mask b",
            Rem => "d = the remainder of a / b, with the sign of a; unspecified if b is 0",
            Ret => "Returns from a function; in a kernel, ends the thread",
            Rsqrt => "d = 1 / sqrt(a), approximately",
            Sad => "d = c + |a - b|",
            Selp => "d = a if c, else b",
            Set => {
                "d = all ones, or 1.0 for floats, if the comparison of a and b holds, else 0. `.op` combines the comparison with c"
            }
            Setp => {
                "p = whether the comparison of a and b holds; the predicate after the bar is the negation. `.op` combines each with c. With a NaN operand, `eq` to `ge` and `ne` are false, `equ` to `geu` are true"
            }
            Shf => {
                "d = 32 bits of the 64-bit value b:a shifted by c. `.l` shifts left and keeps the upper half, `.r` shifts right and keeps the lower half. `.clamp` limits c to 32, `.wrap` takes c modulo 32"
            }
            Shfl => {
                "d = a of another lane, within the segment given by c: b lanes up or down, the lane number xor b, or lane b. p = whether that lane is in range"
            }
            Shl => "d = a shifted left by b; 0 if b is at least the width",
            Shr => {
                "d = a shifted right by b, sign-filled if the type is signed. A shift by at least the width shifts out all bits"
            }
            Sin => "d = sin(a), approximately",
            Slct => "d = a if c >= 0, else b; b if c is NaN",
            Sqrt => "d = sqrt(a)",
            St => "Stores b at address a",
            Stackrestore => "Restores the stack pointer a saved by `stacksave`",
            Stacksave => "d = the stack pointer",
            Sub => {
                "d = a - b, with the rules of `add`. `.cc` sets the carry of a + !b + 1, which is 1 if there is no borrow"
            }
            Subc => "d = a + !b + carry, that is a - b - (1 - carry). `.cc` sets the carry",
            Suld => {
                "d = the surface elements at the given location; the first coordinate is in bytes. Out of bounds, `.trap` faults, `.clamp` reads the nearest element, `.zero` reads 0"
            }
            Suq => "d = the queried property of a surface",
            Sured => "As `red`, on a surface. With `.p` the coordinate is in elements instead of bytes",
            Sust => {
                "Stores b to the surface elements at the given location, with the rules of `suld`. `.p` converts to the surface format"
            }
            Szext => "d = the low b bits of a, sign- or zero-extended",
            Tanh => "d = tanh(a), approximately",
            Testp => "p = whether a has the given property",
            Tex => {
                "d = the filtered texture at the given location, from the `.base` level, an explicit `.level`, or the level for given derivatives (`.grad`). e is an offset in texels, f a depth to compare with. p = whether all texels are resident"
            }
            Tld4 => "d = one channel of the four texels that `tex` would filter at the given location",
            Trap => "Aborts the kernel with an error",
            Txq => "d = the queried property of a texture or sampler",
            Vabsdiff => {
                "d = |a - b| of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vadd => {
                "d = a + b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vmad => "d = a * b + c of parts of 32-bit registers, shifted right by 0, 7 or 15. `.po` adds 1",
            Vmax => {
                "d = max(a, b) of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vmin => {
                "d = min(a, b) of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vset => {
                "d = whether parts of 32-bit registers compare true, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vshl => {
                "d = a << b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vshr => {
                "d = a >> b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vsub => {
                "d = a - b of parts of 32-bit registers, then combined with c by min, max or sum, or inserted into a part of c"
            }
            Vabsdiff2 | Vabsdiff4 => "d = c with |a - b| in each half or byte selected by the mask, or c + their sum",
            Vadd2 | Vadd4 => "d = c with a + b in each half or byte selected by the mask, or c + their sum",
            Vavrg2 | Vavrg4 => "d = c with (a + b + 1) / 2 in each half or byte selected by the mask, or c + their sum",
            Vmax2 | Vmax4 => "d = c with max(a, b) in each half or byte selected by the mask, or c + their sum",
            Vmin2 | Vmin4 => "d = c with min(a, b) in each half or byte selected by the mask, or c + their sum",
            Vset2 | Vset4 => {
                "d = c with the comparison result in each half or byte selected by the mask, or c + their sum"
            }
            Vsub2 | Vsub4 => "d = c with a - b in each half or byte selected by the mask, or c + their sum",
            Vote => {
                "p = whether a holds in all lanes, in any lane, or uniformly; d = a mask of the lanes in which a holds. Over the lanes of mask b (`.sync`), or over the active lanes"
            }
            Xor => "d = a ^ b",
        }
    }
}
