//! A fast path for the common load from shared memory: one word for each lane. In tiled kernels,
//! each half of the warp mostly loads consecutive words, or one word.

use super::code::{Data, MemoryAccess, Window};
use super::memory::ScratchMemory;
use super::registers::{FULL, LANES, RegisterPlace, RegisterScalar, Registers};

/// The number of lanes in half a warp.
const HALF: usize = LANES / 2;

/// Loads a word of shared memory for each lane. Returns `false`, without an effect, if the access
/// has another form or any lane's access is invalid.
#[inline(always)]
pub fn load_words(shared: &ScratchMemory, registers: &mut Registers, access: &MemoryAccess) -> bool {
    let (Window::Shared, 4, &[Some(Data { place: RegisterPlace::Word(to), .. })], Some((RegisterPlace::Word(at), _))) =
        (access.window, access.element, &access.values[..], access.base)
    else {
        return false;
    };
    let (Ok(offset), Ok(words)) = (u32::try_from(access.offset), bytemuck::try_cast_slice::<u8, u32>(&shared.bytes))
    else {
        return false;
    };
    let Some(values) = gather(words, u32::row(registers, at), offset) else { return false };
    registers.put(to, FULL, &values);
    true
}

/// Returns the words at these addresses plus `offset`; `None` if one is misaligned or outside.
#[inline(always)]
fn gather(words: &[u32], addresses: &[u32; LANES], offset: u32) -> Option<[u32; LANES]> {
    #[cfg(target_arch = "x86_64")]
    if super::rows::is_wide() {
        #[target_feature(enable = "avx2")]
        fn wide(words: &[u32], addresses: &[u32; LANES], offset: u32) -> Option<[u32; LANES]> {
            of(words, addresses, offset)
        }
        // SAFETY: the processor supports AVX2, as just checked.
        return unsafe { wide(words, addresses, offset) };
    }
    of(words, addresses, offset)
}

#[inline(always)]
fn of(words: &[u32], addresses: &[u32; LANES], offset: u32) -> Option<[u32; LANES]> {
    // No summand has the highest bit, so the sums do not wrap. No summand has one of the two lowest
    // bits, so the sums are aligned.
    let bits = addresses.iter().fold(offset, |bits, address| bits | address);
    if bits >> 31 != 0 || bits & 3 != 0 {
        return None;
    }
    let index = |lane: usize| ((addresses[lane] + offset) >> 2) as usize;
    let mut values = [0; LANES];
    if differences(addresses, 4) == 0 {
        let (low, high) = (words.get(index(0)..)?.first_chunk()?, words.get(index(HALF)..)?.first_chunk()?);
        let (low, high): (&[u32; HALF], &[u32; HALF]) = (low, high);
        for lane in 0..HALF {
            values[lane] = u32::from_le(low[lane]);
        }
        for lane in 0..HALF {
            values[HALF + lane] = u32::from_le(high[lane]);
        }
    } else if differences(addresses, 0) == 0 {
        let (low, high) = (u32::from_le(*words.get(index(0))?), u32::from_le(*words.get(index(HALF))?));
        values[..HALF].fill(low);
        values[HALF..].fill(high);
    } else {
        let last = words.len().checked_sub(1)?;
        let mut most = 0;
        for (lane, value) in values.iter_mut().enumerate() {
            most = most.max(index(lane));
            *value = u32::from_le(words[index(lane).min(last)]);
        }
        if most > last {
            return None;
        }
    }
    Some(values)
}

/// Returns 0 if, in each half of the warp, the addresses of neighboring lanes are `distance` bytes
/// apart.
#[inline(always)]
fn differences(addresses: &[u32; LANES], distance: u32) -> u32 {
    let mut bits = 0;
    for lane in 0..HALF {
        bits |= addresses[lane].wrapping_sub(addresses[0]) ^ (distance * lane as u32);
    }
    for lane in 0..HALF {
        bits |= addresses[HALF + lane].wrapping_sub(addresses[HALF]) ^ (distance * lane as u32);
    }
    bits
}
