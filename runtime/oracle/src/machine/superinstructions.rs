//! Execution of fused instruction sequences ([`fuse`](crate::code::fuse)).

use crate::code::Pc;
use crate::code::SHARED_WORDS;
use crate::code::frame::{FULL, LANES, LaneWord as _, Row};
use crate::code::{CodeOperand, F32Operator, Fused, LocalElement, SharedWord, UniformLoop};
use crate::machine::shadow::{Clock, Stamp};
use crate::machine::shared_fast_path::{HALF, WordArrangement, load_is_clean, split_words};
use crate::machine::{ACCESSES, ALL, Machine, Warp};

/// The location of an operand's lanes.
#[derive(Clone, Copy)]
enum LaneSource {
    /// The row at this index.
    Row(u32),
    /// Consecutive words of shared memory for each half of the warp: the first word of each half.
    Words(u32, u32),
    /// One value for all lanes of each half.
    Same(u32, u32),
}

/// The location of an operand's lanes in each iteration of a loop.
#[derive(Clone, Copy)]
enum Walk {
    /// The row at this index.
    Row(u32),
    /// Consecutive words for each half: the first word of each half, and the distance to the next
    /// iteration's words.
    Words(u32, u32, u32),
    /// One word for each half: its index, and the distance to the next iteration's word.
    Same(u32, u32, u32),
}

impl Walk {
    #[inline(always)]
    fn lanes<'a>(self, rows: &'a [Row], memory: &'a [u32; SHARED_WORDS], iteration: u32) -> OperandLanes<'a> {
        match self {
            Walk::Row(row) => LaneSource::Row(row).lanes(rows, memory),
            Walk::Words(low, high, on) => {
                LaneSource::Words(low + iteration * on, high + iteration * on).lanes(rows, memory)
            }
            Walk::Same(low, high, on) => {
                let word = |first: u32| memory[usize::from(first.wrapping_add(iteration.wrapping_mul(on)) as u16)];
                OperandLanes::Same([word(low), word(high)])
            }
        }
    }
}

/// The lanes of an operand, by halves of the warp.
#[derive(Clone, Copy)]
enum OperandLanes<'a> {
    Rows([&'a [u32; HALF]; 2]),
    Same([u32; 2]),
}

impl LaneSource {
    #[inline(always)]
    fn lanes<'a>(self, rows: &'a [Row], memory: &'a [u32; SHARED_WORDS]) -> OperandLanes<'a> {
        let (low, high) = match self {
            LaneSource::Row(row) => u32::lanes(rows, row as usize).split_at(HALF),
            LaneSource::Words(low, high) => (&memory[low as usize..], &memory[high as usize..]),
            LaneSource::Same(low, high) => return OperandLanes::Same([low, high]),
        };
        let half = |words: &'a [u32]| words.first_chunk().expect("the source has whole halves");
        OperandLanes::Rows([half(low), half(high)])
    }
}

impl OperandLanes<'_> {
    /// Returns the lanes of half `h`.
    #[inline(always)]
    fn half(self, h: usize) -> [u32; HALF] {
        match self {
            OperandLanes::Rows(halves) => *halves[h],
            OperandLanes::Same(values) => [values[h]; HALF],
        }
    }
}

/// Returns the results of `f` for the lanes of half a warp.
#[inline(always)]
fn each(f: impl Fn(usize) -> f32) -> [u32; HALF] {
    let mut out = [0; HALF];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = f(lane).to_bits();
    }
    out
}

/// Returns `a` · `b` + `c` in half `h` of the warp.
#[inline(always)]
fn mul_add(h: usize, a: OperandLanes<'_>, b: OperandLanes<'_>, c: [u32; HALF]) -> [u32; HALF] {
    let of = f32::from_bits;
    match (a, b) {
        (OperandLanes::Rows(a), OperandLanes::Rows(b)) => each(|l| of(a[h][l]).mul_add(of(b[h][l]), of(c[l]))),
        (OperandLanes::Rows(a), OperandLanes::Same(b)) => each(|l| of(a[h][l]).mul_add(of(b[h]), of(c[l]))),
        (OperandLanes::Same(a), OperandLanes::Rows(b)) => each(|l| of(a[h]).mul_add(of(b[h][l]), of(c[l]))),
        (OperandLanes::Same(a), OperandLanes::Same(b)) => each(|l| of(a[h]).mul_add(of(b[h]), of(c[l]))),
    }
}

/// Computes the results of half `h` of the warp.
#[inline(always)]
fn compute(
    arithmetic: F32Operator,
    h: usize,
    a: OperandLanes<'_>,
    b: OperandLanes<'_>,
    c: OperandLanes<'_>,
) -> [u32; HALF] {
    if arithmetic == F32Operator::MulAdd {
        return mul_add(h, a, b, c.half(h));
    }
    let (a, b, of) = (a.half(h), b.half(h), f32::from_bits);
    match arithmetic {
        F32Operator::Sub => each(|l| of(a[l]) - of(b[l])),
        F32Operator::Mul => each(|l| of(a[l]) * of(b[l])),
        F32Operator::Add | F32Operator::MulAdd => each(|l| of(a[l]) + of(b[l])),
    }
}

/// Writes `from` to the lanes of `mask` in half `h` of the row at `to`.
#[inline(always)]
fn put(rows: &mut [Row], to: u32, h: usize, from: &[u32; HALF], mask: u32) {
    let to = &mut u32::lanes_mut(rows, to as usize)[h * HALF..][..HALF];
    if mask == FULL {
        to.copy_from_slice(from);
    } else {
        blend(to, from, mask >> (h * HALF));
    }
}

/// Writes `from` to the lanes of `mask`. Not inlined: otherwise, the compiler expands the mask
/// before every instruction.
#[inline(never)]
fn blend(to: &mut [u32], from: &[u32; HALF], mask: u32) {
    for (lane, (to, from)) in to.iter_mut().zip(from).enumerate() {
        *to = if mask >> lane & 1 == 1 { *from } else { *to };
    }
}

impl Machine<'_, '_> {
    /// Runs a fused sequence if there is nothing to report, and returns whether it ran.
    #[inline(always)]
    pub fn fused<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, fused: &Fused) -> bool {
        let [a, b] = &fused.operands;
        let Some(a) = self.source::<TIER>(site, warp, mask, a) else { return false };
        let Some(b) = self.source::<TIER>(site, warp, mask, b) else { return false };
        let c = match &fused.addend {
            Some(c) => match self.source::<TIER>(site, warp, mask, c) {
                Some(c) => c,
                None => return false,
            },
            None => a,
        };
        let variable = match &fused.variable {
            Some(variable) => match element(warp, mask, variable) {
                Some(at) => Some(at),
                None => return false,
            },
            None => None,
        };
        let (rows, memory) = (&warp.rows[..], &*self.shared);
        let [a, b, c] = [a.lanes(rows, memory), b.lanes(rows, memory), c.lanes(rows, memory)];
        let (low, high) = (compute(fused.arithmetic, 0, a, b, c), compute(fused.arithmetic, 1, a, b, c));
        if let Some(row) = fused.to {
            put(&mut warp.rows, row, 0, &low, FULL);
            put(&mut warp.rows, row, 1, &high, FULL);
        }
        if let Some((row, _)) = variable {
            put(&mut warp.rows, row, 0, &low, mask);
            put(&mut warp.rows, row, 1, &high, mask);
        }
        if let (true, Some((_, written))) = (TIER >= ACCESSES, variable) {
            warp.written[written] |= mask;
        }
        true
    }

    /// Runs all iterations but the last of a loop whose body is `fused`. Returns the number of
    /// executed instructions, at most `fuel`. After a result of 0, nothing has changed, and the
    /// loop must run iteration by iteration.
    #[inline(always)]
    pub fn run_iterations<const TIER: u8>(
        &self,
        warp: &mut Warp,
        mask: u32,
        fused: &Fused,
        UniformLoop { index, step, limit }: UniformLoop,
        fuel: u64,
    ) -> u64 {
        let lane = mask.trailing_zeros() as usize % LANES;
        let at = |row: u32| u32::lanes(&warp.rows, row as usize)[lane];
        let (first, step, limit) = (at(index), at(step), at(limit));
        if first >= limit || step == 0 {
            return 0;
        }
        let iterations = (limit - first).div_ceil(step) - 1;
        let last = first + iterations * step;
        let instructions = u64::from(iterations) * u64::from(fused.length + 1);
        if iterations == 0 || instructions > fuel || self.stopped {
            return 0;
        }
        let [a, b] = &fused.operands;
        let Some(a) = self.walk(warp, mask, a, index, step, iterations) else { return 0 };
        let Some(b) = self.walk(warp, mask, b, index, step, iterations) else { return 0 };
        let Some((row, written)) = fused.variable.and_then(|variable| element(warp, mask, &variable)) else {
            return 0;
        };
        if TIER >= ACCESSES && mask & !warp.written[written] != 0 {
            return 0;
        }
        let (rows, memory) = (&warp.rows[..], &*self.shared);
        let sum = LaneSource::Row(row).lanes(rows, memory);
        let (mut low, mut high) = (sum.half(0), sum.half(1));
        for iteration in 0..iterations {
            let (a, b) = (a.lanes(rows, memory, iteration), b.lanes(rows, memory, iteration));
            (low, high) = (mul_add(0, a, b, low), mul_add(1, a, b, high));
        }
        put(&mut warp.rows, row, 0, &low, mask);
        put(&mut warp.rows, row, 1, &high, mask);
        *u32::lanes_mut(&mut warp.rows, index as usize) = [last; LANES];
        instructions
    }

    /// Returns the locations of an operand from this iteration on, or `None` if a lane is out of
    /// bounds within `iterations` iterations.
    #[inline(always)]
    fn walk(
        &self,
        warp: &mut Warp,
        mask: u32,
        operand: &CodeOperand,
        index: u32,
        step: u32,
        iterations: u32,
    ) -> Option<Walk> {
        let word = match operand {
            CodeOperand::Row(row) => return Some(Walk::Row(*row)),
            CodeOperand::Element(_) => return None,
            CodeOperand::Word(word) => word,
        };
        let words = split_words(self.simd, &warp.rows, &mut warp.memos, mask, &word.split)?;
        let (low, high, pattern) = (words.of(0), words.of(HALF), words.pattern);
        let mut on = 0u32;
        for dim in word.split.uniform.iter().filter(|dim| dim.index == index) {
            let last =
                u32::lanes(&warp.rows, index as usize)[mask.trailing_zeros() as usize % LANES] + iterations * step;
            if last >= dim.extent {
                return None;
            }
            on = on.wrapping_add(step.wrapping_mul(dim.stride));
        }
        let last = u64::from(low.max(high)) + u64::from(iterations) * u64::from(on);
        match pattern {
            WordArrangement::Same => Some(Walk::Same(low, high, on)),
            WordArrangement::Row if last <= (SHARED_WORDS - HALF) as u64 => Some(Walk::Words(low, high, on)),
            WordArrangement::Row | WordArrangement::Other => None,
        }
    }

    /// Returns the location of an operand, or `None` if there is something to report.
    #[inline(always)]
    fn source<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &mut Warp,
        mask: u32,
        operand: &CodeOperand,
    ) -> Option<LaneSource> {
        match operand {
            CodeOperand::Row(row) => Some(LaneSource::Row(*row)),
            CodeOperand::Element(variable) => {
                let (row, written) = element(warp, mask, variable)?;
                (TIER < ACCESSES || mask & !warp.written[written] == 0).then_some(LaneSource::Row(row))
            }
            CodeOperand::Word(word) => self.word::<TIER>(site, warp, mask, word),
        }
    }

    /// Returns the words of a load of shared memory.
    #[inline(always)]
    fn word<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, word: &SharedWord) -> Option<LaneSource> {
        let words = split_words(self.simd, &warp.rows, &mut warp.memos, mask, &word.split)?;
        if TIER >= ALL {
            let clock = Clock {
                block: self.block_epoch,
                barrier_epoch: self.barrier_epoch,
                warp: warp.barrier_epoch,
                grid: self.grid_barrier_epoch,
                counts_earlier_blocks: false,
                known: &[],
                slices: &[],
            };
            let stamp = Stamp::new(self.epoch, site + word.after, warp.index * 32);
            if !load_is_clean(self.shared_shadow.words()?, &clock, stamp, mask, words) {
                return None;
            }
        }
        let (low, high) = (words.of(0), words.of(HALF));
        Some(match words.pattern {
            WordArrangement::Same => {
                let word = |at: u32| self.shared[usize::from(at as u16)];
                LaneSource::Same(word(low), word(high))
            }
            WordArrangement::Row if low.max(high) as usize <= SHARED_WORDS - HALF => LaneSource::Words(low, high),
            _ => {
                self.simd.gather_words(&mut warp.rows, word.to, &self.shared, words);
                LaneSource::Row(word.to)
            }
        })
    }
}

/// Returns the row of an element of a variable and its index among all elements, or `None` if the
/// index is out of bounds.
#[inline(always)]
fn element(warp: &Warp, mask: u32, element: &LocalElement) -> Option<(u32, usize)> {
    let index = match element.index {
        Some(row) => u32::lanes(&warp.rows, row as usize)[mask.trailing_zeros() as usize % LANES],
        None => 0,
    };
    (index < element.len).then(|| (element.row + index, (element.element + index) as usize))
}
